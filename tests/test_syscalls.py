# SPDX-License-Identifier: GPL-2.0
"""The series' selftest of perf_event_open(2) in the emulated machine, with our kernel and with pristine Linux."""

import re
import subprocess
import unittest

from env import CHECK, LINUX, must, vm
from pristine import IMAGE, pristine

NAME = "alternate_period"
SHARE = CHECK / "syscalls"
TESTS = 22                      # at least


def make(*words: object) -> str:
    """The selftests' own Makefile, with nothing but cross compiler and headers of the tree that need no preparation.

    The emulated machine stops at the very instruction that overflows: SKID=0.
    """
    return must("make", "-s", "-C", LINUX / "tools/testing/selftests/perf_events", f"OUTPUT={SHARE}",
                "CROSS_COMPILE=aarch64-linux-gnu-", f"KHDR_INCLUDES=-isystem {LINUX}/tools/include/uapi",
                "USERCFLAGS=-O2 -Werror -DSKID=0", "USERLDFLAGS=-static", *words)


def setUpModule() -> None:
    SHARE.mkdir(parents=True, exist_ok=True)
    (SHARE / NAME).unlink(missing_ok=True)
    make(SHARE / NAME)


class AlternatePeriod(unittest.TestCase):

    def results(self, done: subprocess.CompletedProcess) -> list[str]:
        """The lines `ok ...` and `not ok ...`: as many as were announced."""
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = re.findall(r"^(?:not )?ok .*$", done.stdout, re.M)
        self.assertEqual(re.findall(r"^1\.\.(\d+)$", done.stdout, re.M), [str(len(lines))], done.stdout)
        self.assertGreaterEqual(len(lines), TESTS)
        return lines

    def test_is_one_of_the_selftests(self):
        self.assertIn(f"perf_events:{NAME}", make("emit_tests", "COLLECTION=perf_events").split())

    def test_passes_with_the_series(self):
        done = vm(f"./{NAME}", "--smp", 1, share=SHARE)
        for line in self.results(done):
            self.assertRegex(line, r"^ok \d+ \w+\.\w+$", done.stdout)

    def test_skips_without_the_series(self):
        pristine()
        done = vm(f"./{NAME}", "--smp", 1, "--kernel", IMAGE, share=SHARE)
        for line in self.results(done):
            self.assertRegex(line, r"^ok \d+ \w+\.\w+ # SKIP .*kernel without", done.stdout)


if __name__ == "__main__":
    unittest.main()
