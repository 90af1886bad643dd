# SPDX-License-Identifier: GPL-2.0
"""The counts that interrupts add to windows, values without them, intervals of the next run.

Programs are simulated here: the rates of their functions are known, and so is what each interrupt
adds to the interval after it. The tests write sums files of that.
"""

import itertools
import json
import math
import random
import statistics
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.harness import perfwrite as pw
from tests.harness import recording as pw_recording
from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.estimates import quantile

DATA = CHECK / "effect"
EVENTS = ("cycles", "branch-misses", "instructions")  # the leader, then by name
LONG, WINDOW, OTHER_WINDOW = 50000, 300, 1200
RECORDINGS = 40
COVERED = 0.93  # least part of 95 % intervals that contain the truth
METRICS = ("CPI", "BM/KI")
N1 = "0x00000000410fd0c0"  # a CPU whose vendor has IPC among its metrics


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

    def __init__(
        self,
        draw: random.Random,
        added: dict[str, Added],
        number: int = 1500,
        lengths: Sequence[int] = (WINDOW,),
    ) -> None:
        self.windows: dict[str, list[tuple[int, int, int]]] = {name: [] for name in FUNCTIONS}
        self.long: list[tuple[int, int, int]] = []
        names, shares = zip(*((name, one.share) for name, one in FUNCTIONS.items()))
        for name in draw.choices(names, shares, k=number):
            nominal = draw.choice(lengths)
            length = draw.randint(nominal // 2, nominal + nominal // 2)
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
            sumsfile.intervals(len(EVENTS), every, self.long, 1),
        ]
        for name, windows in self.windows.items():
            values, none = sumsfile.values(windows, len(EVENTS)), [0] * 6
            counts = [len(windows)] * 4 + [0] + [len(windows)] * 2 + [0]
            fields = "sums", name, "/x", "-", *counts, *(*values, *none) * 2, 0, 0
            lines.append("\t".join(map(str, fields)))
        return "\n".join([*lines, "end\n"])


def report(recording: Recording, *options: str) -> dict:
    """Runs perf functions report -j."""
    return report_text(recording.text(), *options)


def report_text(text: str, *options: str) -> dict:
    """Runs perf functions report -j on a sums file."""
    DATA.mkdir(parents=True, exist_ok=True)
    path = DATA / "drawn.sums"
    path.write_text(text)
    return json.loads(must(PERF, "functions", "report", "-j", *options, path, stderr=-1))


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
    maxDiff = None

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

    def covered(self, seed: int, added: dict[str, Added], **options) -> float:
        """The fraction of intervals that contain the truth, of values without a mark."""
        draw, inside, all_of_them = random.Random(seed), 0, 0
        more = options.pop("options", ("--correct",))
        for _ in range(RECORDINGS):
            for name, row in rows_of(report(Recording(draw, added, **options), *more)).items():
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

    def test_corrected_value(self):
        """The error of CPI shrinks by more than 5 times if all functions have the same added."""
        draw, errors = random.Random(5), {(): 0.0, ("--correct",): 0.0}
        for _ in range(RECORDINGS // 4):
            recording = Recording(draw, SAME)
            for options, error in errors.items():
                for name, row in rows_of(report(recording, *options)).items():
                    error += abs(row["metrics"]["CPI"] / FUNCTIONS[name].cpi - 1)
                errors[options] = error
        plain, corrected = (error / (RECORDINGS // 4 * 3) for error in errors.values())
        print(f"CPI is {100 * plain:.1f} % off, {100 * corrected:.1f} % with --correct")
        self.assertGreater(plain, 0.1)
        self.assertLess(corrected, plain / 5)

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

    def test_own(self):
        """Lengths of windows give each function its own correction, whatever is added to it."""
        for lengths in (WINDOW,), (WINDOW, OTHER_WINDOW):
            options = {"number": 6000, "lengths": lengths, "options": ("--correct=own",)}
            self.assertGreaterEqual(self.covered(7, UNEQUAL, **options), COVERED)

    def test_own_by_formula(self):
        """R = S_wy / S_wx, with the deviations from means written out."""
        recording = Recording(random.Random(8), UNEQUAL, lengths=(WINDOW, OTHER_WINDOW))
        rows = rows_of(report(recording, "--correct=own"))
        for name, windows in recording.windows.items():
            means = [statistics.fmean(column) for column in zip(*windows)]
            away = [[count - mean for count, mean in zip(one, means)] for one in windows]
            slope = sum(one[0] * one[2] for one in away)
            value = sum(one[0] * one[0] for one in away) / slope
            self.assertAlmostEqual(rows[name]["metrics"]["CPI"], value, 6)
            rest = [one[0] - value * one[2] for one in away]
            variance = sum(one * one for one in rest) / (len(windows) - 2)
            error = math.sqrt(2 * variance * sum(one[0] ** 2 for one in away)) / slope
            self.assertAlmostEqual(rows[name]["errors"]["CPI"], error, 6)

    def test_own_needs_lengths(self):
        """With windows of about one length, the same is subtracted from all.

        So it is if one of two groups has such windows.
        """
        text = Recording(random.Random(13), SAME).text()
        nearly = [text.replace("\t14\t1\t", f"\t{jitter}\t1\t") for jitter in (0, 4)]
        group = f"group\tauto\t{LONG}\t0\t{WINDOW}\t0\t0\t1\tcycles\tpage-faults\n"
        two = text.replace("\nend\n", f"\n{group}{sumsfile.intervals(2)}\nend\n")
        for one in *nearly, two:
            result = report_text(one, "--correct")
            self.assertEqual(report_text(one, "--correct=own"), result)
            self.assertEqual(result["corrected"], "all")
            done = run(PERF, "functions", "report", "--correct=own", DATA / "drawn.sums", stderr=-1)
            self.assertIn("own needs windows of different lengths", done.stderr)

    @staticmethod
    def added(windows: Sequence[tuple[int, int]], long: Sequence[tuple[int, int]]) -> dict:
        """The cycles that interrupts add, if intervals have these cycles and instructions."""
        values = "\t".join(map(str, (*sumsfile.values(windows, 2), 0, 0, 0)))
        counts = "\t".join(map(str, [len(windows)] * 4 + [0] + [len(windows)] * 2 + [0]))
        result = report_text(
            "perf-function-sums 4\nby\tsymbol\t0\nlost\t0\nthrottled\t0\n"
            f"group\tauto\t{LONG}\t0\t300\t0\t0\t1\tcycles\tinstructions\n"
            + sumsfile.intervals(2, windows, long, 1)
            + f"\nsums\tf\t/x\t-\t{counts}\t{values}\t{values}\t0\t0\nend\n"
        )
        (told,) = result["interrupts"]
        return told["added"]["cycles"]

    def test_small_effect(self):
        """An effect of less than a hundredth of the counts is not told."""
        for cycles, is_told in (2, False), (4, True):
            told = self.added([(300 + cycles, 300)] * 3, [(LONG, LONG)] * 3)
            self.assertAlmostEqual(told["added"], cycles, 1)
            self.assertIs(told["seen"], is_told)

    def test_error_of_long_intervals(self):
        """If their rates differ, so does what is told of one recording and of another."""
        draw, added, errors = random.Random(14), [], []
        for _ in range(100):
            long = [(LONG, round(LONG * draw.uniform(0.8, 1.2))) for _ in range(20)]
            told = self.added([(340, 300)] * 20, long)
            added.append(told["added"])
            errors.append(told["error"])
        self.assertLess(abs(statistics.fmean(errors) / statistics.stdev(added) - 1), 0.25)

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
        return [line for line in done.stderr.splitlines() if "the interrupt before" in line]

    def test_nothing_to_correct(self):
        """A group without instructions cannot be corrected."""
        text = (
            "perf-function-sums 4\nby\tsymbol\t0\nlost\t0\nthrottled\t0\n"
            "group\tauto\t999700\t0\t300\t0\t0\t1\tcycles\tpage-faults\n"
            + sumsfile.intervals(2, [(300, 1)] * 3, [(999700, 7)] * 3, 1)
            + "\nsums\tf\t/x\t-\t3\t3\t3\t3\t0\t3\t3\t0"
            + "\t900\t3\t270000\t900\t3\t0\t0\t0" * 2
            + "\t0\t0\nend\n"
        )
        DATA.mkdir(parents=True, exist_ok=True)
        (DATA / "faults.sums").write_text(text)
        done = run(PERF, "functions", "report", "--correct", DATA / "faults.sums", stderr=-1)
        self.assertEqual(done.returncode, 0)
        self.assertIn("nothing to correct", done.stderr)

    def test_metrics_of_vendors(self):
        """IPC is 1 / CPI with the same relative error, for this run and for the next one."""
        recording = Recording(random.Random(11), SAME, number=4000)
        one_by_one = (), ("--correct",)
        for options in *one_by_one, ("--ci=next",), ("--ci=next", "--correct"):
            text = (
                recording.text()
                if "--ci=next" not in options
                else Phases(random.Random(12), 3, 60).text()
            )
            with self.subTest(options=options):
                rows = rows_of(
                    report_text(
                        text.replace("throttled\t0", f"throttled\t0\ncpu\t{N1}"),
                        "-M",
                        "ipc",
                        "-F",
                        "CPI,ipc",
                        *options,
                    )
                )
                for row in rows.values():
                    of = {
                        name: row["errors"][name] / row["metrics"][name] for name in ("CPI", "ipc")
                    }
                    self.assertAlmostEqual(row["metrics"]["CPI"] * row["metrics"]["ipc"], 1, 9)
                    self.assertAlmostEqual(of["ipc"] / of["CPI"], 1, 5)
                    self.assertEqual("ipc" in row["weak"], "CPI" in row["weak"])

    def test_wrong_words(self):
        for option in "--correct=some", "--ci=last":
            done = run(PERF, "functions", "report", option, DATA / "none")
            self.assertGreater(done.returncode, 0)
            self.assertIn(f"perf functions: {option}: ", done.stdout)
        done = run(PERF, "functions", "report", "--ci=next", "--diff", DATA / "a", DATA / "b")
        self.assertGreater(done.returncode, 0)
        self.assertIn("--ci=next does not go with a comparison: compare several runs", done.stdout)


class Filters(unittest.TestCase):
    """Half of the time goes to a function of CPI 1, the rest to one of CPI 10."""

    def write(self, flags: int) -> Path:
        """A recording of two threads: an interrupt adds 30 cycles in one, 60 in the other."""
        group = [
            pw.Event("cycles", 0, 0, [1], pw_recording.LONG, WINDOW, flags=flags),
            pw.Event("instructions", 0, 1, [2]),
        ]
        recording = pw_recording.Recording([group])
        where = recording.where(200)
        recording.writer.task(pw.FORK, where, recording.where(100))
        recording.writer.comm(where, "other")
        recording.map("/fast", 0x10000)
        recording.map("/slow", 0x30000)
        if flags & pw.FLAG_INHERIT:  # each thread has its own values
            values = {tid: dict(recording.values) for tid in (100, 200)}
        else:
            values = dict.fromkeys((100, 200), recording.values)
        for number in range(100):
            for tid, added in (100, 30), (200, 60):
                address, cpi = ((0x10000, 1), (0x30000, 10))[number % 2]
                recording.values = values[tid]
                work = (pw_recording.LONG - added) * 0.55
                recording.sample(address, pw_recording.LONG, round(work), tid=tid)
                recording.sample(address, WINDOW, round((WINDOW - added) / cpi), tid=tid)
        DATA.mkdir(parents=True, exist_ok=True)
        return recording.write(DATA / "filters.data")

    @staticmethod
    def added(path: Path, *options: str) -> float:
        """The number of cycles that an interrupt adds, as perf functions report -j has it."""
        result = json.loads(must(PERF, "functions", "report", "-j", *options, path, stderr=-1))
        (interrupts,) = result["interrupts"]
        return interrupts["added"]["cycles"]["added"]

    def test_functions(self):
        """The rate of the functions that are shown does not change what interrupts add."""
        path = self.write(pw.FLAG_SAMPLE_ID_ALL)
        for options in (), ("-d", "/fast"), ("-d", "/slow"), ("-S", "0x30000"):
            with self.subTest(options=options):
                self.assertAlmostEqual(self.added(path, *options), 45, 0)

    def test_threads(self):
        """The counts of a thread tell what was added to it, those of a CPU do not."""
        path = self.write(pw.FLAG_SAMPLE_ID_ALL | pw.FLAG_INHERIT)
        self.assertAlmostEqual(self.added(path), 45, 0)
        self.assertAlmostEqual(self.added(path, "-c", "program"), 30, 0)
        self.assertAlmostEqual(self.added(path, "--tid", "200", "-d", "/slow"), 60, 0)
        path = self.write(pw.FLAG_SAMPLE_ID_ALL)
        self.assertAlmostEqual(self.added(path, "-c", "program"), 45, 0)


class Phases:
    """A program in phases of some windows each, drawn anew for each run."""

    BLOCKS, WINDOWS = 20, 4000

    def __init__(self, draw: random.Random, functions: int, length: int) -> None:
        """length: the mean length of a phase, in windows."""
        self.lines, self.values = [], []
        self.opened: list[list[int]] = []
        for _ in range(functions):
            windows = self.windows(draw, length)
            self.values.append(sum(one[0] for one in windows) / sum(one[1] for one in windows))
            self.lines.append(windows)

    def windows(self, draw: random.Random, length: int) -> list[tuple[int, int]]:
        """Cycles and instructions of two kinds of work that take turns."""
        found: list[tuple[int, int]] = []
        cpi = 1.0
        while len(found) < self.WINDOWS:
            cpi = 3 - cpi
            for _ in range(1 + int(draw.expovariate(1 / length))):
                found.append((300, round(300 / cpi * draw.gauss(1, 0.1))))
        return found[: self.WINDOWS]

    def text(self) -> str:
        """The sums file."""
        every = [window for windows in self.lines for window in windows]
        lines = [
            "perf-function-sums 4\nby\tsymbol\t0\nlost\t0\nthrottled\t0",
            "group\tauto\t999700\t0\t300\t0\t0\t1\tcycles\tinstructions",
            sumsfile.intervals(2, every, [(999700, 500000)] * 3, self.BLOCKS),
        ]
        for number, windows in enumerate(self.lines):
            size = len(windows) // self.BLOCKS
            totals = [
                [sum(column) for column in zip(*windows[size * block : size * (block + 1)])]
                for block in range(self.BLOCKS)
            ]
            of_blocks = sumsfile.values(totals, 2)[2:]
            reading = [*sumsfile.values(windows, 2), *of_blocks]
            counts = [len(windows)] * 4 + [self.BLOCKS] + [len(windows)] * 2 + [self.BLOCKS]
            opened = [self.BLOCKS * size**2, self.BLOCKS * size**2 * len(self.lines)]
            fields = "sums", f"f{number:03}", "/x", "-", *counts, *reading * 2, *opened
            lines.append("\t".join(map(str, fields)))
        return "\n".join([*lines, "end\n"])


class NextRun(unittest.TestCase):
    FUNCTIONS = 150

    def intervals(self, run_of_it: Phases, *options: str) -> list[Sequence[float]]:
        DATA.mkdir(parents=True, exist_ok=True)
        path = DATA / "phases.sums"
        path.write_text(run_of_it.text())
        result = json.loads(must(PERF, "functions", "report", "-j", *options, path, stderr=-1))
        self.assertEqual(result["intervals_of"], "next run" if options else "this run")
        return [row["intervals"]["CPI"] for _, row in sorted(rows_of(result).items())]

    def covered(self, intervals: Sequence[Sequence[float]], values: Sequence[float]) -> float:
        return statistics.fmean(
            low <= value <= high for (low, high), value in zip(intervals, values)
        )

    def test_coverage(self):
        """Intervals contain the next run's value if phases are shorter than blocks."""
        draw = random.Random(9)
        for length in 1, 20, 60, 100:
            first, second = (Phases(draw, self.FUNCTIONS, length) for _ in range(2))
            plain, next_run = (self.intervals(first, *more) for more in ((), ("--ci=next",)))
            print(
                f"phases of {length} windows: the next run is in "
                f"{100 * self.covered(plain, second.values):.0f} % of the intervals of this run, "
                f"{100 * self.covered(next_run, second.values):.0f} % of those of the next"
            )
            self.assertGreaterEqual(self.covered(next_run, second.values), COVERED)
        self.assertLess(self.covered(plain, second.values), 0.5)

    def test_formula(self):
        """The error is that of a ratio of blocks' totals, for two runs."""
        one = Phases(random.Random(10), 1, 60)
        ((low, high),) = self.intervals(one, "--ci=next")
        windows = one.lines[0]
        size = len(windows) // one.BLOCKS
        rest, total = 0.0, sum(window[1] for window in windows)
        for block in range(one.BLOCKS):
            cycles, instructions = (
                sum(column) for column in zip(*windows[size * block : size * (block + 1)])
            )
            rest += (cycles - one.values[0] * instructions) ** 2
        error = math.sqrt(2 * one.BLOCKS / (one.BLOCKS - 1) * rest) / total
        half = 2 * math.asinh(quantile(one.BLOCKS - 1) * error / (2 * one.values[0]))
        self.assertAlmostEqual(high / one.values[0], math.exp(half), 4)
        # the lower end is farther: some windows have more instructions than others
        crowd = sum(window[1] ** 2 for window in windows) / total
        stretch = max(2 - (1 + total / len(windows)) / crowd, 1)
        self.assertAlmostEqual(one.values[0] / low, math.exp(half * stretch), 4)

    def test_intervals_of_time(self):
        """Each table of --interval divides its own time into 10 to 20 blocks."""
        windows = pw_recording.Windows()
        for _ in range(1000):
            windows.window(0x1000)
        path = windows.write(DATA / "spans.data")
        text = must(PERF, "functions", "report", "-j", "--interval", "4e-7", path, stderr=-1)
        tables = json.loads("[" + text.replace("}\n{", "},{") + "]")
        self.assertEqual(len(tables), 6)
        for table in tables[:-1]:
            (row,) = table["functions"]
            self.assertIn(row["sums"][0]["blocks"], range(10, 21))

    def test_one_block_tells_nothing(self):
        """One block tells nothing about the next run."""
        one = Phases(random.Random(11), 1, 20)
        one.BLOCKS = 1
        DATA.mkdir(parents=True, exist_ok=True)
        (DATA / "one.sums").write_text(one.text())
        result = must(PERF, "functions", "report", "-j", "--ci=next", DATA / "one.sums", stderr=-1)
        (row,) = json.loads(result)["functions"]
        self.assertNotIn("CPI", row["intervals"])
        self.assertIn("CPI", row["weak"])


if __name__ == "__main__":
    unittest.main()
