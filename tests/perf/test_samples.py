# SPDX-License-Identifier: GPL-2.0
"""perf functions report where each event samples itself.

perf script is a second reader of the sums. A simulated program, whose counts are known exactly,
tells whether shares, rates and intervals are true.
"""

import bisect
import itertools
import math
import random
import unittest
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.harness import code
from tests.harness import perfdata as pw
from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, SLOW, must, run
from tests.harness.eventsamples import EVENTS, KINDS, Clock, Function, Run, named_once, ungrouped
from tests.harness.recording import LONG, WINDOW, Recording, Windows
from tests.harness.simulation import Libraries
from tests.harness.tables import flat

DATA = CHECK / "samples"
PERIOD = 20000  # cycles
# the events of each column, and its scale
SHARES = {"%CY": 0, "%I": 1, "%BM": 2, "%cache-misses": 3}
RATES = {"CPI": (0, 1, 1), "BM/KI": (2, 1, 1000), "CM/KI": (3, 1, 1000)}


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def report(*arguments: object) -> dict:
    """The JSON object."""
    return flat(must(PERF, "functions", "report", "-j", *arguments, stderr=-1))


def sums(*arguments: object) -> dict[tuple, tuple[int, int]]:
    """Sum of the periods, and of their squares, by function and event."""
    found: dict[tuple, tuple[int, int]] = {}
    rows, _ = sumsfile.read(must(PERF, "functions", "report", *arguments, "--sums", "-", stderr=-1))
    for ((symbol, _, _), _, _), own in rows.items():
        for event, total in own["totals"].items():
            before = found.get((symbol, event), (0, 0))
            square = own["squares"][event]
            found[symbol, event] = before[0] + total, before[1] + square
    return {key: pair for key, pair in found.items() if pair[0]}


def second_reader(path: Path) -> dict[tuple, tuple[int, int]]:
    """The same from perf script."""
    found: dict[tuple, tuple[int, int]] = {}
    for line in must(PERF, "script", "-i", path, "-F", "event,period,ip,sym").splitlines():
        if line.strip():
            period, event, _, symbol = line.split(None, 3)
            key = symbol, event.rstrip(":")
            total, squares = found.get(key, (0, 0))
            found[key] = total + int(period), squares + int(period) ** 2
    return found


def program(rng: random.Random, number: int) -> list[Function]:
    """Functions of very different sizes and rates."""
    return [
        Function(
            rng.choice((1, 1, 2, 4, 8)),
            10 ** rng.uniform(2, 4),
            (1, rng.uniform(0.2, 2), *(10 ** rng.uniform(-4, -1.7) for _ in range(2))),
        )
        for _ in range(number)
    ]


class Sums(unittest.TestCase):
    libraries: Libraries
    names: Sequence[str]  # of the functions

    @classmethod
    def setUpClass(cls):
        cls.libraries = Libraries(DATA / "libraries")
        cls.names = list(named_once(cls.libraries))

    def run_program(self, seed: int, frequency: bool, samples: int) -> tuple[list[Function], Run]:
        """A run with about this number of samples of each event."""
        rng = random.Random(seed)
        functions = program(rng, len(self.names))
        cycles = sum(function.calls * function.cycles for function in functions)
        clocks = [
            Clock(
                PERIOD
                * sum(one.calls * one.cycles * one.rates[event] for one in functions)
                / cycles
                * rng.uniform(0.5, 1),
                frequency / PERIOD,
            )
            for event in range(len(EVENTS))
        ]
        return functions, Run(rng, functions, clocks, samples * PERIOD)


class Reading(Sums):
    def test_second_reader(self):
        """Fixed periods and frequencies, events alone and in groups."""
        for seed, (frequency, size) in enumerate(((0, 1), (1, 1), (1, 2), (1, 4))):
            with self.subTest(frequency=frequency, size=size):
                _, done = self.run_program(seed, bool(frequency), 200)
                path = DATA / f"second-{seed}.data"
                done.write(path, self.libraries, size)
                expected = second_reader(path)
                self.assertGreater(len(expected), 15)
                self.assertEqual(sums(path), expected)
                counts = {
                    (row["symbol"], event): own["count"]
                    for row in report(path)["functions"]
                    for event, own in row["events"].items()
                    if own["count"]
                }
                self.assertEqual(counts, {key: total for key, (total, _) in expected.items()})

    def test_choice(self):
        """Windows and samples of one recording, each by itself."""
        recording = Interrupted()
        for number in range(100):
            recording.window(0x1000)
            recording.member(0x2000)
            if number % 4 == 0:
                recording.window(0x1000, interrupted=True)
        for _ in range(50):
            recording.member(0x1000)
        path, sums_file = recording.write(DATA / "choice.data"), DATA / "choice.sums"
        must(PERF, "functions", "report", path, "--sums", sums_file)
        for source, rows in (
            ("windows", {0x1000: 100}),
            ("samples", {0x1000: 1 + 2 * 125 + 50, 0x2000: 100 + 25}),
        ):
            found = report(path, "--source", source)["functions"]
            seen = {row["address"]: row["observations"].get(source, 0) for row in found}
            self.assertEqual(seen, rows)
            self.assertEqual(report(sums_file, "--source", source)["functions"], found)
        # 125 long periods and 125 windows, and the one that opens the stream
        cycles = 126 * LONG + 125 * WINDOW
        best = report(path)["functions"]
        metrics = {row["address"]: row["metrics"] for row in best}
        self.assertEqual(metrics[0x1000]["%CY"], 100)
        self.assertAlmostEqual(metrics[0x2000]["%I"], 100 * 125 / 175)
        self.assertEqual(best[0]["events"]["cycles"]["count"], cycles)

    def test_share_of_a_rare_event(self):
        """Without cycles, time and instructions, the share of another event sorts and limits."""
        recording = Recording(ungrouped("cache-misses"))
        for period in 1, 1, 1, 97:
            recording.sample(0x2000 if period > 1 else 0x1000, period)
        path = recording.write(DATA / "rare.data")
        for options, places in ((), [0x2000, 0x1000]), (("--percent-limit", 50), [0x2000]):
            found = report(path, *options)["functions"]
            self.assertEqual([row["address"] for row in found], places)

    def test_rows_without_rates(self):
        """A share by %CY is weak if windows tell nothing of a function with many cycles."""
        recording = Windows()
        for _ in range(100):
            recording.window(0x1000)
            recording.window(0x2000, 0x3000)
        rows = report(recording.write(DATA / "part.data"))["functions"]
        doubts = {row["address"]: row["doubts"] for row in rows}
        self.assertEqual((doubts[0x1000]["%I"], doubts[0x1000]["%CY"]), ("few", None))


class Interrupted(Recording):
    """A leader that alternates, and a member that samples."""

    def __init__(self) -> None:
        flags = pw.FLAG_SAMPLE_ID_ALL
        super().__init__(
            [
                [
                    pw.Event("cycles", 0, 0, [1], LONG, WINDOW, flags=flags),
                    pw.Event("instructions", 0, 1, [2], 7001, flags=flags),
                ]
            ]
        )
        self.sample(0x1000, LONG, LONG // 3)

    def member(self, address: int) -> None:
        """A sample of instructions."""
        values = [(event.ids[0], self.values[event.ids[0]]) for event in self.groups[0]]
        self.writer.sample(self.groups[0][1], self.where(), address, 7001, values, number=2)

    def window(self, address: int, interrupted: bool = False) -> None:
        """A long period and a window."""
        self.sample(address, LONG, LONG // 3)
        if interrupted:
            self.member(0x2000)
        self.sample(address, WINDOW, WINDOW // 3)


class Late(Recording):
    """Two functions run in turns; the first ends by a mispredicted branch. Samples are late.

    precise: only those of cycles are, and of the other events that are not in it.
    """

    VISITS = {0x1000: (700, 2), 0x2000: (300, 1)}  # cycles, instructions per cycle
    TRUE = {
        0x1000: {"CPI": 0.5, "BM/KI": 1000 / 700 / 2, "%CY": 70},
        0x2000: {"CPI": 1, "BM/KI": 0, "%CY": 30},
    }
    LATE = 60  # cycles

    def __init__(
        self,
        precise: Sequence[str] = (),
        last: tuple[str, int] = ("branch-misses", 5),
        visits: dict[int, tuple[int, int]] | None = None,
    ) -> None:
        flags = pw.FLAG_SAMPLE_ID_ALL
        group = [
            pw.Event("cycles", 0, 0, [1], LONG, WINDOW, flags=flags),
            pw.Event("instructions", 0, 1, [2], 7001, flags=flags),
            pw.Event(last[0], 0, last[1], [3], 11, flags=flags),
        ]
        late = []
        for one in group:
            one.flags |= 2 * pw.FLAG_PRECISE * (one.name in precise)
            late.append(0 if one.name in precise else self.LATE)
        super().__init__([group])
        rng, now = random.Random(1), [0.0, 0.0, 0.0]
        left = [float(LONG), 7001.0, 11.0]
        due: list[tuple[float, int, int]] = []  # cycles, event, period
        periods = [LONG, 7001, 11]
        for _ in range(20000):
            for address, (cycles, speed) in (visits or self.VISITS).items():
                begin, cycles = now[0], rng.uniform(0.5, 1.5) * cycles
                for event, count in enumerate((cycles, cycles * speed, address == 0x1000)):
                    while left[event] <= count:
                        at = begin + (cycles if event == 2 else left[event] / count * cycles)
                        due.append((at + late[event], event, periods[event]))
                        if event == 0:
                            periods[0] = LONG + WINDOW - periods[0]
                        left[event] += periods[event]
                    left[event] -= count
                due.sort()
                # a precise sample at the end of a call belongs to it
                while due and due[0][0] < begin + cycles + 1e-6:
                    at, event, period = due.pop(0)
                    values = [at, now[1] + (at - begin) * speed, now[2]]
                    self.writer.sample(
                        group[0 if event == 0 else event],
                        self.where(),
                        address,
                        period,
                        [(1 + slot, round(value)) for slot, value in enumerate(values)],
                        number=1 + event,
                    )
                now = [now[0] + cycles, now[1] + cycles * speed, now[2] + (address == 0x1000)]

    @classmethod
    def missed(cls, path: Path, *options: object) -> set[tuple[int, str]]:
        """The values without a mark whose intervals do not contain the truth."""
        return {
            (row["address"], metric)
            for row in report(path, *options)["functions"]
            for metric, true in cls.TRUE[row["address"]].items()
            if not row["intervals"][metric][0] <= true <= row["intervals"][metric][1]
            and metric not in row["weak"]
        }


class Truth(Sums):
    """Do values and intervals agree with what the program has done?"""

    REPEATS = 60 if SLOW else 12

    def check(self, frequency: bool, samples: int, repeats: int) -> None:
        covered: Counter = Counter()
        for seed in range(repeats):
            _, done = self.run_program(1000 * samples + seed, frequency, samples)
            path = DATA / "truth.data"
            done.write(path, self.libraries)
            for row in report(path)["functions"]:
                place = self.names.index(row["symbol"])
                truth = {
                    name: 100 * done.counts[event][place] / done.counts[event].total()
                    for name, event in SHARES.items()
                }
                for name, (event, per, scale) in RATES.items():
                    truth[name] = scale * done.counts[event][place] / done.counts[per][place]
                for name, (low, high) in filter(lambda one: one[1], row["intervals"].items()):
                    covered["all"] += 1
                    covered["hit"] += low <= truth[name] <= high
                    covered["sure"] += name not in row["weak"]
                    covered["sure hit"] += name not in row["weak"] and low <= truth[name] <= high
        self.assertGreaterEqual(covered["hit"], 0.93 * covered["all"], covered)
        self.assertGreaterEqual(covered["sure hit"], 0.93 * covered["sure"], covered)
        if samples >= 100:
            self.assertGreater(covered["sure"], 0.3 * covered["all"])

    def test_skid(self):
        """Windows tell that mispredicted calls are sampled in the other function."""
        path = Late().write(DATA / "late.data")
        self.assertEqual(Late.missed(path), set())
        self.assertLessEqual(
            {(0x2000, "CPI"), (0x1000, "BM/KI")}, Late.missed(path, "--source", "samples")
        )

    def test_skid_of_metrics(self):
        """The intervals of metrics allow for late samples, too."""
        path = Late().write(DATA / "metric.data")
        text = must(
            *(PERF, "functions", "report", "-j", "-M", "branch_mpki,ipc", path),
            stderr=-1,
            env={"PERF_CPUID": "0x00000000413fd0c1"},
        )
        for row in flat(text)["functions"]:
            true = Late.TRUE[row["address"]]
            for metric, value in ("branch_mpki", true["BM/KI"]), ("ipc", 1 / true["CPI"]):
                if row["metrics"][metric] and metric not in row["weak"]:
                    low, high = row["intervals"][metric]
                    self.assertTrue(low <= value <= high, (metric, row))

    def test_precise(self):
        """Samples of precise events are not late, so skid does not widen their intervals."""
        columns = {"CPI", "BM/KI", "%I", "%BM"}
        # windows tell of skid, which is that of cycles; both events of a rate have to be precise
        for precise in ("branch-misses",), ("branch-misses", "instructions"):
            same = columns if len(precise) > 1 else {"%BM"}
            path = Late(precise).write(DATA / "precise.data")
            tables = (report(path, "--source", source) for source in ("best", "samples"))
            for row, other in zip(*(table["functions"] for table in tables), strict=True):
                for metric in filter(row["metrics"].get, columns):
                    is_same = row["intervals"][metric] == other["intervals"][metric]
                    self.assertEqual(is_same, metric in same, (precise, metric))
        self.assertEqual(Late.missed(path), set())

    def test_nothing_sampled(self):
        """Skid may move all events of short calls elsewhere: 0 may be what all functions have."""
        visits = {0x1000: (100, 2), 0x2000: (400, 1)}
        path = Late(last=("cache-misses", 3), visits=visits).write(DATA / "nothing.data")
        row = next(row for row in report(path)["functions"] if row["address"] == 0x1000)
        self.assertEqual(row["metrics"]["CM/KI"], 0)
        self.assertTrue("CM/KI" in row["weak"] or 1000 / 200 <= row["intervals"]["CM/KI"][1], row)

    def test_part_of_a_sample(self):
        """A rate has no end that is a number of many digits, as of samples with short periods."""
        recording = Recording(ungrouped("cycles", "instructions"))
        for period, place in (1_000_000, 0x2000), (10_000, 0x1000), (1, 0x1000):
            for _ in range(20 if place == 0x2000 else 1):
                recording.sample(0x1000, 1000)
                recording.sample(place, period, group=1)
        rows = report(recording.write(DATA / "part.data"))["functions"]
        (row,) = (row for row in rows if row["address"] == 0x1000)
        self.assertIn("CPI", row["weak"])
        low, high = row["intervals"]["CPI"] or (0, 0)
        self.assertTrue(low <= high < 1e6 * row["metrics"]["CPI"], row)

    def test_neighbours(self):
        """Each call has a miss, and some a second one, which is sampled in the next function."""
        names = [f"f{number}" for number in range(8)]
        library = code.build(DATA / "neighbours.s", code.assembly(*names, "loop"))
        at = {name: 0x10000000 + place for name, place in code.addresses(library).items()}
        # the loop is never left, and far from its entry
        often = {name: number / 9 for number, name in enumerate(names, 1)} | {"loop": 0}
        for behind in 0, 11:  # instructions, behind its entry
            rng = random.Random(3)
            recording = Recording(ungrouped("cycles", "instructions", "cache-misses", period=40))
            recording.map(library, 0x10000000)
            for _, (name, part) in itertools.product(range(3000), often.items()):
                own = [2 * rng.randrange(n or 20 * (not part), 32) for n in (0, 0, 20)]
                places = [at[name] + place for place in own]
                places += [at[rng.choice(names)] + 2 * behind] * (rng.random() < part)
                for group, place in zip((0, 1, 2, 2), places):
                    if rng.random() < (0.8, 0.8, 1 / 3)[group]:
                        recording.sample(place, (40, 40, 3)[group], group=group)
            for row in report(recording.write(DATA / "neighbours.data"))["functions"]:
                low, high = row["intervals"]["CM/KI"]
                self.assertNotIn("CM/KI", row["weak"])
                self.assertTrue(low < 1000 * (1 + often[row["symbol"]]) / 32 < high, row)
                self.assertTrue(often[row["symbol"]] or high < 1.3 * low, row)

    def test_all_late(self):
        """All samples are late by about two calls, and nothing tells how late."""
        rng, late, calls, length = random.Random(4), 30, 4000, 16
        true = {f"f{number}": 0.8 + number / 10 for number in range(6)}
        library = code.build(DATA / "late.s", code.assembly(*true))
        at = {name: 0x10000000 + place for name, place in code.addresses(library).items()}
        recording = Recording(ungrouped("cycles", "instructions", period=40))
        recording.map(library, 0x10000000)
        order = rng.choices(list(true), k=calls)
        begins = [0.0, *itertools.accumulate(length * true[name] for name in order)]
        times = [(0, rng.uniform(0, begins[-1] - late)) for _ in range(20000)]
        for _ in range(round(20000 * length * calls / begins[-1])):
            call, done = divmod(rng.randrange(length * (calls - 50)), length)
            times.append((1, begins[call] + true[order[call]] * (done + 0.5)))
        for group, time in times:
            call = bisect.bisect(begins, time + late) - 1
            done = int((time + late - begins[call]) / true[order[call]])
            recording.sample(at[order[call]] + 2 * min(done, length - 1), 40, group=group)
        for row in report(recording.write(DATA / "late-all.data"))["functions"]:
            low, high = row["intervals"]["CPI"]
            self.assertNotIn("CPI", row["weak"])
            self.assertTrue(low < true[row["symbol"]] < high, row)

    def test_crumb(self):
        """The first periods of a frequency are of few events: no ground for an endless interval."""
        library = code.build(DATA / "crumb.s", code.assembly("near", "far"))
        at = {name: 0x10000000 + place for name, place in code.addresses(library).items()}
        recording = Recording(ungrouped("cycles", "instructions", period=40))
        recording.map(library, 0x10000000)
        for group, place, number, period in (
            *((group, at["near"], 50, 1_000_000) for group in (0, 1)),
            *((group, at["near"] + 40, 1, 1) for group in (0, 1)),
            *((group, at["far"] + 40, 50, 1_000_000) for group in (0, 1)),
        ):
            for _ in range(number):
                recording.sample(place, period, group=group)
        for row in report(recording.write(DATA / "crumb.data"))["functions"]:
            self.assertLess(row["intervals"]["CPI"][1], 1e6, row["symbol"])

    def test_coverage(self):
        for samples in 1, 10, 100, 1000, 10000:
            for frequency in False, True:
                with self.subTest(samples=samples, frequency=frequency):
                    self.check(frequency, samples, max(self.REPEATS * 100 // (samples + 100), 2))

    def test_exact(self):
        """Limits at which 3 or more, or 3 or fewer, of 13 samples are 2.5 % probable."""
        recording = Recording(
            [
                [pw.Event(name, 0, config, [1 + config], 100, sample_type=KINDS)]
                for name, config in (("cycles", 0), ("instructions", 1))
            ]
        )
        for group, address, number in (0, 0x1000, 3), (0, 0x2000, 10), (1, 0x1000, 10):
            for _ in range(number):
                recording.sample(address, 100, group=group)
        path = recording.write(DATA / "exact.data")
        row = next(row for row in report(path)["functions"] if row["address"] == 0x1000)
        self.assertEqual(
            {name for name, one in row["intervals"].items() if one}, {"CPI", "%CY", "%I"}
        )
        for metric, part in ("%CY", lambda share: share / 100), (
            "CPI",
            lambda cpi: cpi / (1 + cpi),
        ):
            low, high = map(part, row["intervals"][metric])
            below = sum(math.comb(13, k) * low**k * (1 - low) ** (13 - k) for k in range(3))
            above = sum(math.comb(13, k) * high**k * (1 - high) ** (13 - k) for k in range(4))
            self.assertAlmostEqual(1 - below, 0.025, 9)
            self.assertAlmostEqual(above, 0.025, 9)


class Mixed(unittest.TestCase):
    """Inputs of which only some have windows, or event samples. Each has two functions."""

    def test_order_of_events(self):
        """Recordings of the same events add up, whichever event samples first."""
        paths = []
        for first in range(2):
            recording = Recording(ungrouped("cycles", "instructions"))
            for number in range(40):
                recording.sample(0x1000, 1000, group=(number + first) % 2)
            paths.append(recording.write(DATA / f"first{first}.data"))
        for inputs in paths, paths[::-1]:
            (row,) = report(*inputs)["functions"]
            self.assertEqual((row["observations"]["samples"], row["metrics"]["CPI"]), (80, 1))

    def sums(self, name: str, sources: str, cpi: float, number: int = 2000) -> Path:
        """A sums file. With both sources, the samples of the leader tell the windows' shares."""
        functions = ("cold", 1.5), ("hot", cpi)
        windows = {
            name: [(300, round(300 / value) + at % 2) for at in range(number)]
            for name, value in functions
        }
        samples = {
            "cycles": {name: [20000] * number for name, _ in functions},
            "instructions": {name: [20000] * round(number / value) for name, value in functions},
        }
        text, even = sumsfile.HEAD, sources == "windows samples"
        if "windows" in sources:
            text += sumsfile.window_set(("cycles", "instructions"), windows, even=2 * even)
        if "samples" in sources:
            text += sumsfile.sample_set(samples, even=1 + even)
        path = DATA / f"{name}.sums"
        path.write_text(f"{text}end\n")
        return path

    def test_limit(self):
        """A function that became slower never passes because the sides cannot be compared."""
        for before, after, source, status, message in (
            ("windows", "samples", "best", 255, "its values come from other sources before than"),
            ("windows samples", "windows", "best", 255, "record both alike"),
            ("windows samples", "windows", "windows", 2, "CPI of hot"),
            ("samples", "windows samples", "best", 2, "CPI of hot from 1.5"),
        ):
            sides = self.sums("before", before, 1.5), self.sums("after", after, 6)
            done = run(
                *(PERF, "functions", "report", "--diff", *sides, "--single-run"),
                *("--fail-on", "CPI>5%", "--source", source),
                stderr=-1,
            )
            with self.subTest(before=before, after=after, source=source):
                self.assertEqual(done.returncode, status)
                self.assertIn(message, done.stderr)

    def test_event_of_some_inputs(self):
        """Both inputs have event samples, but one lacks those of cache misses."""
        paths = []
        for events in ("cycles", "cache-misses", "instructions"), ("cycles", "instructions"):
            paths.append(DATA / f"{len(events)}.sums")
            samples = sumsfile.sample_set(dict.fromkeys(events, {"hot": [1000] * 100}))
            paths[-1].write_text(f"{sumsfile.HEAD}{samples}end\n")
        done = run(PERF, "functions", "report", *paths, stderr=-1)
        self.assertIn("only some inputs have event samples of all these events, so", done.stderr)

    def test_adding_up(self):
        """Values of a source are those of the inputs that have it, and a message says so."""
        recording, windows = Interrupted(), Windows()
        for _ in range(50):
            recording.window(0x1000)
            recording.member(0x1000)
            windows.take(0x1000, LONG)
            windows.sample(0x1000, WINDOW, WINDOW // 2)
        both, plain = recording.write(DATA / "all.data"), windows.write(DATA / "windows.data")
        (alone,) = report(both)["functions"]
        for files, told in ((both, plain), 1), ((plain, both), 1), ((both, both), 0):
            done = run(PERF, "functions", "report", "-j", *files, stderr=-1)
            (row,) = flat(done.stdout)["functions"]
            self.assertEqual(row["metrics"]["CPI"], alone["metrics"]["CPI"])
            self.assertEqual(done.stderr.count("only some inputs have event samples"), told)
        (row,) = report("--source=windows", both, plain)["functions"]
        # half of the windows have 3 cycles per instruction, the others 2
        self.assertAlmostEqual(row["metrics"]["CPI"], 2 / (1 / 3 + 1 / 2))
