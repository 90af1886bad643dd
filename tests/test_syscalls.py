# SPDX-License-Identifier: GPL-2.0
"""The series' selftest of perf_event_open(2) in the emulated machine, with our kernel and with pristine Linux."""

import re
import subprocess
import unittest
from pathlib import Path

from env import CHECK, LINUX, must, vm
from pristine import IMAGE, pristine

NAME = "alternate_period"
SHARE = CHECK / "syscalls"
TESTS = 46                      # at least
TWO_CPUS = ("migration_keeps_rest_of_interval", "hotplug_keeps_rest_of_interval", "hotplug_ends_event_of_cpu")


def make(output: Path, *words: object, flags: str = "") -> str:
    """The selftests' own Makefile, with nothing but cross compiler and headers of the tree that need no preparation."""
    include = LINUX / "tools/include"
    return must("make", "-s", "-C", LINUX / "tools/testing/selftests/perf_events", f"OUTPUT={output}",
                "CROSS_COMPILE=aarch64-linux-gnu-", f"KHDR_INCLUDES=-isystem {include}/uapi -idirafter {include}",
                f"USERCFLAGS=-O2 -Werror {flags}", "USERLDFLAGS=-static", *words)


def setUpModule() -> None:
    """One binary for a machine with one processor, which stops at the very instruction that overflows, one for others."""
    for output, flags in (SHARE, "-DSKID=0"), (SHARE / "smp", ""):
        output.mkdir(parents=True, exist_ok=True)
        (output / NAME).unlink(missing_ok=True)
        make(output, output / NAME, flags=flags)


class AlternatePeriod(unittest.TestCase):

    def results(self, done: subprocess.CompletedProcess, at_least: int = TESTS) -> list[str]:
        """The lines `ok ...` and `not ok ...`: as many as were announced."""
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = re.findall(r"^(?:not )?ok .*$", done.stdout, re.M)
        self.assertEqual(re.findall(r"^1\.\.(\d+)$", done.stdout, re.M), [str(len(lines))], done.stdout)
        self.assertGreaterEqual(len(lines), at_least)
        return lines

    def test_is_one_of_the_selftests(self):
        self.assertIn(f"perf_events:{NAME}", make(SHARE, "emit_tests", "COLLECTION=perf_events").split())

    def test_passes_with_the_series(self):
        done = vm(f"./{NAME}", "--smp", 1, share=SHARE)
        for line in self.results(done):
            if not re.search(rf"\.({'|'.join(TWO_CPUS)}) # SKIP needs ", line):
                self.assertRegex(line, r"^ok \d+ \w+\.\w+$", done.stdout)

    def test_passes_with_two_processors(self):
        done = vm(f"./smp/{NAME} " + " ".join(f"-t {name}" for name in TWO_CPUS), "--smp", 2, share=SHARE)
        for line in self.results(done, len(TWO_CPUS)):
            self.assertRegex(line, r"^ok \d+ \w+\.\w+$", done.stdout)

    def test_skips_without_the_series(self):
        pristine()
        done = vm(f"./{NAME}", "--smp", 1, "--kernel", IMAGE, share=SHARE)
        for line in self.results(done):
            self.assertRegex(line, r"^ok \d+ \w+\.\w+ # SKIP .*kernel without", done.stdout)


if __name__ == "__main__":
    unittest.main()
