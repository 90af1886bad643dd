# SPDX-License-Identifier: GPL-2.0
"""A recording without samples: of an idle host, or of a program that is shorter than a period."""

import unittest
from pathlib import Path

from tests.harness.env import CHECK, PERF, must, run
from tests.harness.recording import Recording, Windows
from tests.harness.tables import flat

DATA = CHECK / "idle"


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


class Idle(unittest.TestCase):
    """A recording without samples has no window, and ends nothing."""

    def setUp(self):
        group = Windows().groups[0]
        self.idle = Recording([group]).write(DATA / "idle.data")
        self.busy, self.other = (
            self.write(f"busy-{address:x}.data", 0x1000, address) for address in (0x2000, 0x3000)
        )

    @staticmethod
    def write(name: str, *addresses: int) -> Path:
        """A recording with 20 windows at each address."""
        windows = Windows()
        for address in addresses:
            for _ in range(20):
                windows.window(address)
        return windows.write(DATA / name)

    def report(self, *options: object, idle: object = "") -> str:
        """What is printed if the idle recording is named in one line."""
        done = run(PERF, "functions", "report", *options, stderr=-1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            [line for line in done.stderr.splitlines() if "no samples that count" in line],
            [
                f"perf functions: {idle or self.idle}: no samples that count: "
                "record for longer, or with a shorter period"
            ],
        )
        return done.stdout

    def test_alone(self):
        titles = "symbol # CPI %CY %I DIS".split()
        self.assertEqual(self.report(self.idle).split(), titles)
        self.assertEqual(flat(self.report("-j", self.idle))["functions"], [])
        self.assertEqual(self.report("-j", "--interval", 1, self.idle), "")
        pipe = DATA / "idle.pipe"
        Recording([Windows().groups[0]]).writer.write_pipe(pipe)
        self.assertEqual(self.report(pipe, idle=pipe).split(), titles)

    def test_among_others(self):
        sums = DATA / "idle.sums"
        self.report("--sums", sums, self.idle)
        for form in ("-j",), ("-x", ","), ("--sums=-",):
            expected = must(PERF, "functions", "report", *form, self.busy, stderr=-1)
            self.assertEqual(self.report(*form, self.idle, self.busy), expected)
            self.assertEqual(self.report(*form, self.busy, self.idle), expected)
            done = run(PERF, "functions", "report", *form, sums, self.busy, stderr=-1)
            self.assertEqual(done.stdout, expected)

    def test_runs(self):
        """A run without windows changes no comparison; a side of such runs has none."""
        compared = ("-j", "--before", self.busy, "--after", self.other)
        expected = must(PERF, "functions", "report", *compared, stderr=-1)
        self.assertIn("vanished", expected)
        self.assertEqual(self.report(*compared, self.idle), expected)
        done = run(PERF, "functions", "report", "--diff", self.idle, self.busy, stderr=-1)
        self.assertEqual((done.returncode, done.stdout), (255, ""))
        self.assertIn("no samples before: there is nothing to compare with", done.stderr)
