# SPDX-License-Identifier: GPL-2.0
"""The counts that interrupts add to windows are seen, and the values marked.

Programs are simulated here: the rates of their functions are known, and so is what each interrupt
adds to the interval after it. The tests write sums files of that.
"""

import itertools
import math
import random
import unittest
from itertools import product
from typing import NamedTuple

from tests.harness import perfdata as pw
from tests.harness import recording as pw_recording
from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.tables import flat

DATA = CHECK / "effect"
EVENTS = ("cycles", "branch-misses", "instructions")  # the leader, then by name
LONG, WINDOW = 50000, 300
METRICS = ("CPI", "BM/KI")


class Function(NamedTuple):
    """A function: its share of the time, cycles per instruction, misses per 1000 instructions."""

    share: float
    cpi: float
    misses: float


class Added(NamedTuple):
    """The counts that an interrupt adds to the interval after it, on average."""

    cycles: float = 0.0
    misses: float = 0.0


FUNCTIONS = {
    "f": Function(0.5, 2.0, 5.0),
    "g": Function(0.3, 1.0, 0.5),
    "h": Function(0.2, 5.0, 1.0),
}
NOTHING = {name: Added() for name in FUNCTIONS}
SAME = {name: Added(40, 0.7) for name in FUNCTIONS}
UNEQUAL = {"f": Added(30, 1.0), "g": Added(60, 0.3), "h": Added(45, 0.6)}


def poisson(draw: random.Random, mean: float) -> int:
    """A number of events that come by chance."""
    limit, number, left = math.exp(-mean), 0, draw.random()
    while left > limit:
        number, left = number + 1, left * draw.random()
    return number


class Recording:
    """A recording of the program as the lines of a sums file; all windows are matched."""

    def __init__(self, draw: random.Random, added: dict[str, Added], number: int = 1500) -> None:
        self.windows: dict[str, list[tuple[int, int, int]]] = {name: [] for name in FUNCTIONS}
        self.long: list[tuple[int, int, int]] = []
        names, shares = zip(*((name, one.share) for name, one in FUNCTIONS.items()))
        for name in draw.choices(names, shares, k=number):
            length = draw.randint(WINDOW // 2, WINDOW + WINDOW // 2)
            self.windows[name].append(self.window(draw, name, length, added[name]))
            self.long.append(self.interval(draw, added[name]))

    @staticmethod
    def window(draw: random.Random, name: str, length: int, added: Added) -> tuple[int, int, int]:
        """One window of a function."""
        lost = min(max(draw.gauss(added.cycles, added.cycles / 5), 0), length - 1)
        instructions = round((length - lost) / FUNCTIONS[name].cpi * draw.gauss(1, 0.05))
        own = poisson(draw, FUNCTIONS[name].misses * instructions / 1000)
        return length, own + poisson(draw, added.misses), max(instructions, 0)

    @staticmethod
    def interval(draw: random.Random, added: Added) -> tuple[int, int, int]:
        """A long interval, in which each function has about its share of the time."""
        parts = [one.share * draw.gauss(1, 0.2) for one in FUNCTIONS.values()]
        length = draw.randint(LONG - 5000, LONG + 5000)
        work = [
            (length - added.cycles) * part / sum(parts) / one.cpi
            for part, one in zip(parts, FUNCTIONS.values())
        ]
        misses = sum(done * one.misses for done, one in zip(work, FUNCTIONS.values())) / 1000
        own = round(draw.gauss(misses, math.sqrt(misses)))
        return length, own + poisson(draw, added.misses), round(sum(work))

    def text(self) -> str:
        """The sums file."""
        samples = {name: [LONG] * len(windows) for name, windows in self.windows.items()}
        return (
            sumsfile.HEAD
            + sumsfile.window_set(EVENTS, self.windows, self.long, even=2, period=LONG)
            + sumsfile.sample_set({EVENTS[0]: samples}, even=2, hidden=True)
            + "end\n"
        )


def rows_of(recording: Recording) -> dict[str, dict]:
    """The rows of perf functions report -j by symbol."""
    DATA.mkdir(parents=True, exist_ok=True)
    path = DATA / "drawn.sums"
    path.write_text(recording.text())
    result = flat(must(PERF, "functions", "report", "-j", path, stderr=-1))
    return {row["symbol"]: row for row in result["functions"]}


class Effect(unittest.TestCase):
    def doubted(self, seed: int, added: dict[str, Added]) -> set[tuple[str, str]]:
        """The values that are marked because of the interrupts."""
        rows = rows_of(Recording(random.Random(seed), added, number=4000))
        return {
            (name, metric)
            for name, row in rows.items()
            for metric, doubt in row["doubts"].items()
            if doubt == "interrupt"
        }

    def test_disturbed_values_are_marked(self):
        """Those of all functions, whether interrupts add the same to each or not."""
        for added in SAME, UNEQUAL:
            self.assertLessEqual(set(product(FUNCTIONS, METRICS)), self.doubted(6, added))

    def test_nothing_is_left_alone(self):
        for seed in range(10):
            self.assertEqual(self.doubted(seed, NOTHING), set())

    def test_notes_are_of_all_intervals(self):
        """The effect of interrupts is told of all windows, also if there is a table for each span,
        and by the table of sums.
        """
        group = [
            pw.Event(
                "cycles",
                0,
                0,
                [1],
                pw_recording.LONG,
                pw_recording.WINDOW,
                flags=pw.FLAG_SAMPLE_ID_ALL,
            ),
            pw.Event("instructions", 0, 1, [2], flags=pw.FLAG_SAMPLE_ID_ALL),
        ]
        drawn = pw_recording.Recording([group], 100)
        drawn.clock = itertools.count(1, 10**6)
        draw = random.Random(17)
        # the interrupt adds much in the first span, and little in the others
        for instructions, number in (70, 400), (145, 600):
            for _ in range(number):
                drawn.sample(0x1000, pw_recording.LONG, 5000 + draw.randrange(20))
                drawn.sample(0x1000, pw_recording.WINDOW, instructions + draw.randrange(10))
        path = drawn.write(DATA / "spans.data")
        command = PERF, "functions", "report", path
        (note,) = self.told(*command)
        self.assertEqual(self.told(*command, "--interval", "0.8"), [note])
        sums = DATA / "spans.sums"
        self.assertEqual(self.told(*command, "--sums", sums), [])
        self.assertEqual(self.told(PERF, "functions", "report", sums), [note])

    def told(self, *command: object) -> list[str]:
        """The notes on what interrupts add."""
        done = run(*command, stderr=-1)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stderr.splitlines() if "the interrupt that" in line]
