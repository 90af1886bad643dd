# SPDX-License-Identifier: GPL-2.0
"""The Makefile's verbs: bad input ends with one clear line and leaves nothing behind."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from tests.harness.env import BASE, BUILD, LINUX, TOP, must, run

MINUTES = 2
LOCK = "trees"
MACHINES = "arm64"


def bases() -> list[str]:
    """The versions of Linux that there is a series for, newest first."""
    return must("make", "-s", "--eval=bases: ; @echo $(BASES)", "bases").split()


def copy_files(folder: Path) -> None:
    """Copies the repository's files, as they are now, into the folder."""
    must("sh", "-c", f"git ls-files -z | xargs -0 cp --parents --target-directory={folder}")


class BadInput(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = Path(temporary.name)

    def refused(self, pattern: str, *command: object, **options) -> None:
        """The command fails, and its last line, not counting make's own, says why."""
        done = run(*command, **options)
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
        (self.dir / "old").mkdir()
        (self.dir / "old/Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 99\n")
        head = must("git", "-C", LINUX, "rev-parse", "HEAD")
        must("tar", "-cf", self.dir / "old.tar", "-C", self.dir, "old")
        for old in "old", "old.tar":
            self.refused(
                f"is Linux 6.1.99; these patches are for {BASE}",
                "make",
                "linux",
                f"LINUX={self.dir / old}",
            )
        self.refused("is not a Linux tree", "make", "linux", f"LINUX={self.dir}")
        self.assertEqual(must("git", "-C", LINUX, "rev-parse", "HEAD"), head)
        self.assertFalse((BUILD / "linux.new").exists())

    def without_source(self) -> dict[str, str]:
        """Makes a copy, in which nothing can be installed and Debian has no source."""
        copy_files(self.dir)
        for name, shell in (
            (
                "bin/apt-get",
                'case "$*" in *indextargets*) echo http://x ;; *download*) exit 100 ;; esac',
            ),
            ("scripts/debian/install.sh", ""),
        ):
            path = self.dir / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\n{shell}\n")
            path.chmod(0o755)
        return {"PATH": f"{self.dir}/bin:/usr/bin:/bin"}

    def test_base_without_source(self):
        """Every verb that needs the source says so, in one line."""
        base, env = bases()[0], self.without_source()
        reason = (
            f"source: Debian has no linux-source-{base} any more; "
            f"give a tree of Linux {base} with LINUX=/path"
        )
        verbs = (
            "linux perf kernel vm demo report series bench deb check check-fast check-all".split()
        )
        for verb in verbs:
            with self.subTest(verb):
                done = run(
                    "make", verb, f"BASE={base}", "T=", cwd=self.dir, env={**env, "LINUX": ""}
                )
                self.assertEqual(done.returncode, 2)
                step, said, end = done.stdout.splitlines()
                self.assertRegex(step, rf"^  Debian's source of Linux {base} .* failed$")
                self.assertEqual(said, reason)
                self.assertRegex(end, r"^make: \*\*\* ")
                made = [str(path) for path in (self.dir / "build").rglob("*") if path.is_file()]
                self.assertEqual([path for path in made if "/build/log/" not in path], [])


class Emulator(unittest.TestCase):
    """scripts/vm.py with an emulator that is made up here."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="a,b")
        self.addCleanup(temporary.cleanup)
        self.dir = Path(temporary.name)
        must("cp", "-r", "scripts", self.dir)
        self.program = self.dir / "build/emulator/bin/qemu-system-aarch64"
        self.program.parent.mkdir(parents=True)
        (self.dir / "build/emulator/model.so").touch()
        self.env = {"PATH": f"{self.program.parent}:/usr/bin:/bin", "TMPDIR": str(self.dir)}

    def command(self, shell: str, *options: object) -> list[object]:
        """vm.py with an emulator that runs shell lines: $status and $truth are what it writes."""
        self.program.write_text(
            f"""#!/bin/bash
            said=$(printf '%s\\n' "$@" | sed 's/,,/,/g')
            status=$(sed -n 's/^local,id=vm,path=\\(.*\\),security.*/\\1/p' <<< "$said")/status
            truth=$(sed -n 's/.*,truth=//p' <<< "$said")
            {shell}
            """
        )
        self.program.chmod(0o755)
        files = "--kernel", self.program, "--root", self.program
        return [self.dir / "scripts/vm.py", *files, *options]

    def vm(self, shell: str, *options: object) -> subprocess.CompletedProcess:
        return run(*self.command(shell, *options), "true", env=self.env)

    def test_truth_that_was_not_written(self):
        """A file of an earlier run does not hide that the emulator was killed."""
        truth = self.dir / "truth"
        truth.write_text("old")
        options = "--model", "small", "--truth", truth
        done = self.vm("echo 0 > $status; kill -9 $$", *options)
        self.assertEqual(done.returncode, 125)
        self.assertRegex(done.stdout, rf"^vm: .*{truth} .*\n\Z")
        self.assertFalse(truth.exists())
        done = self.vm("echo 3 > $status; echo new > $truth", *options)
        self.assertEqual((done.returncode, done.stdout, truth.read_text()), (3, "", "new\n"))

    def test_status_that_is_none(self):
        """The machine has died, whatever the guest has left."""
        for said in "", "abc", r"\xff", "256", "-1":
            done = self.vm(f"printf -- '{said}' > $status")
            self.assertEqual(done.returncode, 125, said)
            self.assertRegex(done.stdout, r"^vm: the machine died .*: look .*\n\Z")
        self.assertEqual(self.vm("echo 255 > $status").returncode, 255)


class Clean(unittest.TestCase):
    def test_empties_build_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as copy:
            for name in ("Makefile", "scripts", "patches"):
                must("cp", "-r", TOP / name, copy)
            (Path(copy) / f"build/{BASE}/perf").mkdir(parents=True)
            must("make", "clean", cwd=copy)
            self.assertEqual(sorted(os.listdir(copy)), ["Makefile", "patches", "scripts"])


class Dkms(unittest.TestCase):
    def test_kernels_for_which_the_module_is_built(self):
        """DKMS builds it for no kernel into which it cannot be loaded."""
        for arch, kernel, is_built in (
            ("aarch64", "5.14.0-21-arm64", False),
            ("aarch64", "5.15.0-91-generic", True),
            ("x86_64", "5.15.0-91-generic", False),
            ("x86_64", "5.16.0-6-amd64", True),
            ("x86_64", "6.12.117-amd64", True),
            ("x86_64", "10.0-amd64", True),
        ):
            script = f'arch={arch}; . "$0"; [[ {kernel} =~ $BUILD_EXCLUSIVE_KERNEL ]]'
            done = run("bash", "-c", script, TOP / "module/dkms.conf")
            self.assertEqual(done.returncode == 0, is_built, (arch, kernel))


class Help(unittest.TestCase):
    def test_lists_every_verb(self):
        verbs = set(re.findall(r"^\.PHONY: ([a-z-]+)$", (TOP / "Makefile").read_text(), re.M))
        self.assertGreaterEqual(
            verbs,
            set(
                "demo check check-all linux perf kernel vm series bench bench-collect deb fresh "
                "clean help".split()
            ),
        )
        said = must("make", "help")
        listed = re.findall(r"^  make ([\w-]+) +\S.*$", said, re.M)
        self.assertEqual(sorted(listed), sorted(verbs))
        for verb in sorted(verbs):
            must("make", "-n", verb)
