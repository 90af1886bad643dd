# SPDX-License-Identifier: GPL-2.0
"""Windows that are longer than calls: their values are mixtures of functions, and are marked."""

import random
import unittest

from tests.harness import perfdata as pw
from tests.harness.env import CHECK, PERF, run
from tests.harness.recording import Recording
from tests.harness.tables import flat

DATA = CHECK / "lengths"
F, G = 0x1000, 0x2000
CPI = {F: 0.5, G: 4.0}


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


class Calls(Recording):
    """A program that spends a part of its cycles in f and the others in g, call by call."""

    def __init__(self, *periods: int, flags: int = 0, part: float = 0.5, call: int = 1500) -> None:
        flags |= pw.FLAG_SAMPLE_ID_ALL
        group = [
            pw.Event("cycles", 0, 0, [1], *periods, flags=flags),
            pw.Event("instructions", 0, 1, [2], flags=flags),
        ]
        super().__init__([group])
        self.random = random.Random(1)
        self.lengths = {F: 2 * call * part, G: 2 * call * (1 - part)}
        self.place, self.left = F, self.lengths[F]

    def run(self, cycles: float) -> None:
        """Runs for this number of cycles, and takes a sample. Calls have exponential lengths."""
        instructions, rest = 0.0, cycles
        while rest:
            here = min(rest, self.left)
            instructions += here / CPI[self.place]
            rest -= here
            self.left -= here
            if not self.left:
                self.place = F + G - self.place
                self.left = self.random.expovariate(1 / self.lengths[self.place])
        self.sample(self.place, int(cycles), int(instructions))


def plain(length: int, **more: float) -> Calls:
    """2000 windows of one length."""
    program = Calls(length, **more)
    for _ in range(2001):
        program.run(length)
    return program


def report(recording: Recording, *options: str) -> tuple[dict[str, dict], str]:
    """The rows by name, and the messages."""
    path = recording.write(DATA / "lengths.data")
    done = run(PERF, "functions", "report", "-i", path, "-j", *options, stderr=-1)
    every = flat(done.stdout)["functions"]
    return {row["symbol"] or f"{row['address']:#x}": row for row in every}, done.stderr


class Lengths(unittest.TestCase):
    """Truth: the CPIs of both functions, and the ends of windows in the recording's samples."""

    def check(self, recording: Recording, is_right: bool, *options: str) -> None:
        """Either each CPI is right and has no mark, or it has one and a message says why."""
        rows, said = report(recording, *options)
        for place, cpi in CPI.items():
            row = rows[f"{place:#x}"]
            with self.subTest(place=place, options=options):
                self.assertEqual("CPI" in row["weak"], not is_right)
                if is_right:
                    self.assertAlmostEqual(row["metrics"]["CPI"], cpi, delta=0.1 * cpi)
        self.assertEqual("more than most calls" in said, not is_right, said)

    def test_windows_in_calls(self):
        self.check(plain(300, call=30_000), True, "--source", "windows")

    def test_windows_longer_than_calls(self):
        self.check(plain(100_000), False, "--source", "windows")
        self.check(plain(100_000, flags=pw.FLAG_FREQ), False, "--source", "windows")

    def test_windows_that_end_late(self):
        """Windows of 300 were asked for, but the PMU needs 20,000 events to end them."""
        recording = Calls(1_000_000, 300)
        for _ in range(1000):
            recording.run(1_000_000)
            recording.run(20_000)
        self.check(recording, False)
        rows, _ = report(recording)
        self.assertTrue(all("%I" in row["weak"] for row in rows.values()))
        self.assertFalse(any("%CY" in row["weak"] for row in rows.values()))

    def test_shares_of_mixtures(self):
        """Samples know the share of their event; of no other one."""
        rows, _ = report(plain(100_000))
        for row in rows.values():
            self.assertEqual({"%I", "%CY"} & set(row["weak"]), {"%I"})

    def test_rows_that_windows_lie_in(self):
        """The same windows are right where a row is the whole program."""
        rows, said = report(plain(100_000), "--by", "comm")
        self.assertNotIn("more than", said)
        self.assertNotIn("CPI", rows["program"]["weak"])
