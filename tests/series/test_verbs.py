# SPDX-License-Identifier: GPL-2.0
"""The Makefile's verbs: bad input ends with one clear line and leaves nothing behind."""

import re
import tempfile
import unittest
from pathlib import Path

from tests.harness.env import BASE, BUILD, LINUX, TOP, must, run

MINUTES = 2
LOCK = "trees"
MACHINES = "arm64"


class BadInput(unittest.TestCase):
    def refused(self, pattern: str, *command: object) -> None:
        """The command fails, and its last line, not counting make's own, says why."""
        done = run(*command)
        self.assertNotEqual(done.returncode, 0)
        lines = [
            line for line in done.stdout.splitlines() if not re.match(r"make(\[\d\])?: ", line)
        ]
        self.assertRegex(lines[-1] if lines else done.stdout, pattern)
        self.assertNotIn("Traceback", done.stdout)

    def test_unknown_arch(self):
        for verb in ("demo", "kernel", "vm"):
            self.refused(r"no machine for ARCH=vax; there is: .*arm64", "make", verb, "ARCH=vax")
        self.assertFalse((BUILD / "kernel/vax").exists())

    def test_linux_tree_of_another_version(self):
        head = must("git", "-C", LINUX, "rev-parse", "HEAD")
        with tempfile.TemporaryDirectory() as old:
            self.refused("is not a Linux tree", "make", "linux", f"LINUX={old}")
            version = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 99\n"
            (Path(old) / "Makefile").write_text(version)
            reason = f"is Linux 6.1.99; these patches are for {BASE}"
            self.refused(reason, "make", "linux", f"LINUX={old}")
        self.assertEqual(must("git", "-C", LINUX, "rev-parse", "HEAD"), head)


class Dkms(unittest.TestCase):
    def test_kernels_for_which_the_module_is_built(self):
        """DKMS builds it for no kernel into which it cannot be loaded."""
        for arch, kernel, is_built in (
            ("aarch64", "5.14.0-21-arm64", False),
            ("aarch64", "5.15.0-91-generic", True),
            ("x86_64", "5.15.0-91-generic", False),
            ("x86_64", "5.16.0-6-amd64", True),
            ("x86_64", "10.0-amd64", True),
        ):
            script = f'arch={arch}; . "$0"; [[ {kernel} =~ $BUILD_EXCLUSIVE_KERNEL ]]'
            done = run("bash", "-c", script, TOP / "module/dkms.conf")
            self.assertEqual(done.returncode == 0, is_built, (arch, kernel))


class Help(unittest.TestCase):
    def test_lists_every_verb(self):
        verbs = set(re.findall(r"^\.PHONY: ([a-z-]+)$", (TOP / "Makefile").read_text(), re.M))
        said = must("make", "help")
        listed = re.findall(r"^  make ([\w-]+) +\S.*$", said, re.M)
        self.assertEqual(sorted(listed), sorted(verbs))
        for verb in sorted(verbs):
            must("make", "-n", verb)
