# SPDX-License-Identifier: GPL-2.0
"""The counts that interrupts add to windows, and values without them.

Programs are simulated here: the rates of their functions are known, and so is what each interrupt
adds to the interval after it. The tests write sums files of that.
"""

import itertools
import math
import random
import statistics
import unittest
from typing import NamedTuple

from tests.harness import perfdata as pw
from tests.harness import recording as pw_recording
from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.tables import flat

DATA = CHECK / "effect"
EVENTS = ("cycles", "branch-misses", "instructions")  # the leader, then by name
LONG, WINDOW = 50000, 300
RECORDINGS = 40
COVERED = 0.93  # least part of 95 % intervals that contain the truth
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
    limit, number, product = math.exp(-mean), 0, draw.random()
    while product > limit:
        number, product = number + 1, product * draw.random()
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
        every = [window for windows in self.windows.values() for window in windows]
        lines = [
            "perf-function-sums 4\nby\tsymbol\t0\nlost\t0\nthrottled\t0",
            f"group\tauto\t{LONG}\t0\t{WINDOW}\t0\t14\t1\t" + "\t".join(EVENTS),
            sumsfile.intervals(len(EVENTS), every, self.long),
        ]
        for name, windows in self.windows.items():
            values = sumsfile.values(windows, len(EVENTS))
            fields = "sums", name, "/x", "-", *[len(windows)] * 6, *values * 2
            lines.append("\t".join(map(str, fields)))
        return "\n".join([*lines, "end\n"])


def report(recording: Recording, *options: str) -> dict:
    """Runs perf functions report -j."""
    DATA.mkdir(parents=True, exist_ok=True)
    path = DATA / "drawn.sums"
    path.write_text(recording.text())
    return flat(must(PERF, "functions", "report", "-j", *options, path, stderr=-1))


def rows_of(result: dict) -> dict[str, dict]:
    """The rows by symbol."""
    return {row["symbol"]: row for row in result["functions"]}


def truth(name: str, metric: str) -> float:
    """The value of the function without interrupts."""
    return FUNCTIONS[name].cpi if metric == "CPI" else FUNCTIONS[name].misses


def added_of(recording: Recording) -> list[float]:
    """The counts interrupts add, solved from y = a + b x for windows and for long intervals."""
    every = [window for windows in recording.windows.values() for window in windows]
    window, long = (
        [statistics.fmean(column) for column in zip(*intervals)]
        for intervals in (every, recording.long)
    )
    slopes = [(many - few) / (long[2] - window[2]) for few, many in zip(window, long)]
    return [few - slope * window[2] for few, slope in zip(window, slopes)]


class Effect(unittest.TestCase):
    def test_equations(self):
        """perf reports the equations' solution; its error is the spread over recordings."""
        draw, told, errors = random.Random(1), [], []
        for _ in range(RECORDINGS):
            recording = Recording(draw, SAME)
            (interrupts,) = report(recording)["interrupts"]
            rows = [interrupts["added"][event] for event in EVENTS]
            for row, expected in zip(rows, added_of(recording)):
                self.assertAlmostEqual(row["added"], expected, 6)
            told.append([row["added"] for row in rows[:2]])
            errors.append([row["error"] for row in rows[:2]])
        for values, error, added in zip(zip(*told), zip(*errors), SAME["f"]):
            spread = statistics.stdev(values)
            self.assertLess(abs(statistics.fmean(values) - added), 4 * spread / RECORDINGS**0.5)
            self.assertLess(abs(statistics.fmean(error) / spread - 1), 0.4)

    def test_nothing_is_left_alone(self):
        """Without an effect no value changes."""
        draw, seen = random.Random(2), 0
        for _ in range(RECORDINGS):
            recording = Recording(draw, NOTHING)
            result = report(recording)
            (interrupts,) = result["interrupts"]
            if any(row["seen"] for row in interrupts["added"].values()):
                seen += 1
                continue
            self.assertEqual(rows_of(report(recording, "--correct")), rows_of(result))
        # an effect is seen if one of 80 values is off by more than three errors
        self.assertLess(seen, 4)

    def covered(self, seed: int, added: dict[str, Added]) -> float:
        """The fraction of intervals that contain the truth, of values without a mark."""
        draw, inside, all_of_them = random.Random(seed), 0, 0
        for _ in range(RECORDINGS):
            for name, row in rows_of(report(Recording(draw, added), "--correct")).items():
                for metric in METRICS:
                    low, high = row["intervals"][metric]
                    self.assertGreaterEqual(low, 0)
                    if metric in row["weak"]:
                        continue
                    all_of_them += 1
                    inside += low <= truth(name, metric) <= high
        self.assertGreater(all_of_them, RECORDINGS)
        print(f"{inside} of {all_of_them} corrected intervals contain the truth")
        return inside / all_of_them

    def test_corrected(self):
        """Intervals contain the truth, whether interrupts add the same to each function or not."""
        self.assertGreaterEqual(self.covered(3, SAME), COVERED)
        self.assertGreaterEqual(self.covered(4, UNEQUAL), COVERED)

    def test_disturbed_values_are_marked(self):
        """Values are marked if the effect is more than the interval, but not with --correct."""
        recording = Recording(random.Random(6), SAME, number=4000)
        plain, corrected = (rows_of(report(recording, *more)) for more in ((), ("--correct",)))
        for name in FUNCTIONS:
            self.assertIn("CPI", plain[name]["weak"])
            self.assertNotIn("CPI", corrected[name]["weak"])
        quiet = rows_of(report(Recording(random.Random(6), NOTHING, number=4000)))
        for row in quiet.values():
            self.assertNotIn("CPI", row["weak"])

    def test_notes_are_of_all_intervals(self):
        """The effect of interrupts is told of all sums, also if there is a table for each span."""
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
        for instructions, number in (70, 400), (145, 4000):
            for _ in range(number):
                drawn.sample(0x1000, pw_recording.LONG, 5000 + draw.randrange(20))
                drawn.sample(0x1000, pw_recording.WINDOW, instructions + draw.randrange(10))
        path = drawn.write(DATA / "spans.data")
        command = PERF, "functions", "report", path
        (note,) = self.told(*command)
        self.assertEqual(self.told(*command, "--interval", "0.8"), [note])
        self.assertEqual(self.told(*command, "--sums", "-"), [note])

    def told(self, *command: object) -> list[str]:
        """The notes on what interrupts add."""
        done = run(*command, stderr=-1)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stderr.splitlines() if "the interrupt that" in line]
