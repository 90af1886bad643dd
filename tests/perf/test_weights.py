# SPDX-License-Identifier: GPL-2.0
"""perf functions report gives each sample the weight of its period.

So recordings with other periods, or a frequency, add up. Events of groups without a common event
compare if all was counted. Events that took turns on the counters are scaled.
"""

import random
import subprocess
import unittest
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.eventsamples import ungrouped
from tests.harness.recording import WINDOW, Recording
from tests.harness.tables import flat

DATA = CHECK / "weights"
F, G = 0x1000, 0x2000  # addresses of functions
KINDS = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD | pw.IDENTIFIER
FREQ = pw.FLAG_FREQ | pw.FLAG_EXCLUDE_KERNEL | pw.FLAG_SAMPLE_ID_ALL
TIMES = pw.FORMAT_ENABLED | pw.FORMAT_RUNNING
RAW = 4
CONFIGS = {"cycles": 0, "instructions": 1, "branches": 4, "branch-misses": 5}


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def report(*arguments: object) -> subprocess.CompletedProcess:
    return run(PERF, "functions", "report", "-j", *arguments, stderr=-1)


def table(*arguments: object) -> dict[int, dict]:
    """The functions by address."""
    done = report(*arguments)
    assert not done.returncode, done
    return {row["address"]: row for row in flat(done.stdout)["functions"]}


def metrics(name: str, *arguments: object) -> dict[int, float]:
    return {address: row["metrics"][name] for address, row in table(*arguments).items()}


def sums_of(name: str, *inputs: object) -> Path:
    """A sums file."""
    must(PERF, "functions", "report", *inputs, "--sums", DATA / name, stderr=-1)
    return DATA / name


class Paths(unittest.TestCase):
    """Branch records of samples with these periods, each of a loop of one function."""

    LOOP = 10  # instructions

    def recording(
        self, name: str, samples: Sequence[tuple[int, int, int]], flags: int = FREQ
    ) -> Path:
        """samples: function, cycles of the loop, and period. It is the first one without FREQ."""
        cycles = pw.Event(
            "cycles",
            *(0, 0, [1], 4000 if flags & pw.FLAG_FREQ else samples[0][2]),
            sample_type=KINDS | pw.BRANCH_STACK,
            read_format=pw.FORMAT_ID,
            flags=flags,
            branch_sample_type=pw.BRANCH_USER | pw.BRANCH_ANY,
        )
        recording = Recording([[cycles]], arch="aarch64")
        for function, taken, period in samples:
            loop = [(function + 4 * (self.LOOP - 1), function, taken)] * 64
            recording.writer.sample(
                *(cycles, recording.where(), function, period, [(1, 0)]), branches=(0, loop)
            )
        return recording.write(DATA / f"{name}.data")

    def check(self, samples: Sequence[tuple[int, int, int]], *inputs: object) -> None:
        """The values are those of the sums of all periods."""
        cycles: Counter[int] = Counter()
        instructions: Counter[int] = Counter()
        for function, taken, period in samples:
            cycles[function] += period
            instructions[function] += period * self.LOOP / taken
        for address, row in table(*inputs).items():
            found = row["metrics"]
            self.assertAlmostEqual(found["%CY"], 100 * cycles[address] / cycles.total(), 9)
            self.assertAlmostEqual(
                found["%I"], 100 * instructions[address] / instructions.total(), 1
            )
            self.assertAlmostEqual(found["CPI"], cycles[address] / instructions[address], 2)

    def test_frequency(self):
        """A busy function has few samples, each of a long period. One is of two phases."""
        samples = [(F, 5, 3_000_000)] * 60 + [(F, 20, 30_000)] * 60 + [(G, 10, 30_000)] * 120
        path = self.recording("frequency", samples)
        self.check(samples, path)
        self.check(samples * 2, path, path)
        self.check(samples, sums_of("frequency.sums", path))
        self.check(samples * 2, DATA / "frequency.sums", path)
        self.assertNotIn("period", report(path).stderr)

    def test_periods(self):
        """Of two recordings."""
        slow = [(F, 20, 5_000_000)] * 40
        fast = [(F, 5, 1_000_000)] * 40 + [(G, 10, 1_000_000)] * 160
        flags = FREQ & ~pw.FLAG_FREQ
        paths = self.recording("slow", slow, flags), self.recording("fast", fast, flags)
        files = [sums_of(path.stem + ".sums", path) for path in paths]
        for inputs in paths, files, (files[0], paths[1]):
            self.check(slow + fast, *inputs)
        self.assertNotIn("period", report(*paths).stderr)

    def test_several_events(self):
        """Records of two events, as of two groups, are in sums, too."""
        events = [
            pw.Event(
                *("cycles", 0, 0, [place], 1_000_000),
                sample_type=KINDS | pw.BRANCH_STACK,
                branch_sample_type=pw.BRANCH_USER | pw.BRANCH_ANY,
            )
            for place in (1, 2)
        ]
        recording = Recording([[event] for event in events], arch="aarch64")
        for function, event in (F, events[0]), (G, events[0]), (G, events[1]):
            loop = [(function + 4 * (self.LOOP - 1), function, 5)] * 64
            for _ in range(30):
                recording.writer.sample(
                    *(event, recording.where(), function, 1_000_000, [(event.ids[0], 0)]),
                    branches=(0, loop),
                )
        path = recording.write(DATA / "several.data")
        for row in table(path).values():
            counts = [row["events"][name]["count"] for name in ("instructions", "cycles")]
            self.assertAlmostEqual(counts[0] / counts[1], 2)
        shares = metrics("%CY", path, "--source", "branches")
        self.assertAlmostEqual(shares[G], 200 / 3)
        self.assertEqual(metrics("%CY", sums_of("several.sums", path)), shares)
        self.assertEqual(metrics("%CY", DATA / "several.sums", DATA / "several.sums"), shares)

    def test_intervals(self):
        """Three long periods say no more than three samples, however many short ones there are."""
        samples = [(F, 5, 10**9)] * 3 + [(F, 20, 1000)] * 500 + [(G, 10, 1000)] * 500
        rows = table(self.recording("few", samples))
        low, high = rows[G]["intervals"]["%CY"]
        self.assertLess(low, 0.1)
        self.assertGreater(high, 30)
        low, high = rows[F]["intervals"]["CPI"]
        self.assertTrue("CPI" in rows[F]["weak"] or high - low > 0.3)

    def test_coverage(self):
        """95 % of the intervals of shares and CPI contain the truth."""
        covered: Counter[bool] = Counter()
        rng = random.Random(1)
        for _ in range(60):
            # F: half of the cycles at a CPI of 0.5, half at 2; G has a tenth of the cycles
            samples = []
            for _ in range(150):
                period = rng.choice((300_000, 1_000_000))
                chosen = rng.random() < 0.1
                samples.append((G if chosen else F, 10 if chosen else rng.choice((5, 20)), period))
            rows = table(self.recording("coverage", samples))
            for name, true in ("%CY", 90), ("CPI", 2 / (1 / 0.5 + 1 / 2)):
                low, high = rows[F]["intervals"][name]
                covered[low <= true <= high] += 1
        self.assertGreaterEqual(covered[True], 108)


class Windows(unittest.TestCase):
    """A leader that alternates with a frequency."""

    def recording(self, name: str, samples: Sequence[tuple[int, int]], kinds: int = 0) -> Path:
        """samples: the function of each, and its long period."""
        leader = pw.Event("cycles", 0, 0, [1], 1000, WINDOW, flags=FREQ)
        member = pw.Event("instructions", 0, 1, [2], flags=FREQ)
        for event in leader, member:
            event.sample_type &= ~kinds
        recording = Recording([[leader, member]])
        for function, period in samples:
            recording.sample(function, period, period // 2)
            recording.sample(function, WINDOW, WINDOW // 2)
        return recording.write(DATA / f"{name}.data")

    def test_frequency(self):
        """Samples of a busy function are of long periods. Rates are those of the windows."""
        samples = [(F, 3_000_000)] * 60 + [(G, 30_000)] * 60
        path = self.recording("windows", samples)
        bare = self.recording("bare", samples, kinds=pw.PERIOD)
        whole = 60 * (3_000_000 + 30_000 + 2 * WINDOW)
        for inputs in (path,), (sums_of("windows.sums", path),), (path, path), (bare,):
            found = metrics("%CY", *inputs)
            for address, period in (F, 3_000_000), (G, 30_000):
                share = 100 * 60 * (period + WINDOW) / whole
                self.assertAlmostEqual(found[address], share, delta=0.02)
            self.assertEqual(metrics("CPI", *inputs), {F: 2, G: 2})
        low, high = table(path)[G]["intervals"]["%CY"]
        self.assertTrue(low < 1 < high, (low, high))


class Groups(unittest.TestCase):
    """Groups without a common event."""

    # counts of each group when a function ends one period
    COUNTS = {F: ((1000, 500), (100, 5)), G: ((1000, 250), (100, 25))}
    TRUE = {F: {"BM/KI": 10, "branches/KI": 200}, G: {"BM/KI": 50, "branches/KI": 200}}

    def recording(
        self, name: str, longer: int = 1, window: int = 0, running: int = 10, form: int = TIMES
    ) -> Path:
        """360,000 cycles of F, and as many of G, which has half of the branches.

        longer: of the periods of branches; window: of the leaders; running: tenths of the time in
        which the branches are counted.
        """
        pairs = ("cycles", "instructions"), ("branches", "branch-misses")
        groups = [
            [
                pw.Event(
                    event,
                    *(0, CONFIGS[event], [1 + CONFIGS[event]]),
                    read_format=pw.FORMAT_ID | pw.FORMAT_GROUP | form,
                )
                for event in pair
            ]
            for pair in pairs
        ]
        for group, period in zip(groups, (1000, 100 * longer)):
            group[0].sample_period = period
            group[0].alternative_sample_period = window
        recording = Recording(groups)
        for number in range(1, 721):
            function = G if (number - 1) % 60 >= 30 else F
            cycles, branches = self.COUNTS[function]
            recording.sample(function, *cycles, times=(number, number))
            if number % (longer if function == F else 2 * longer):
                continue
            recording.sample(
                function,
                *(count * longer * running // 10 for count in branches),
                group=1,
                times=(10 * number, running * number),
            )
        return recording.write(DATA / f"{name}.data")

    def test_sums(self):
        """They compare if each period is a window, whatever the periods are."""
        for name, options in (("same", {}), ("longer", {"longer": 3}), ("timeless", {"form": 0})):
            path = self.recording(name, **options)
            for inputs in (path,), (sums_of("groups.sums", path),), (path, path):
                for address, row in table(*inputs).items():
                    for metric, value in self.TRUE[address].items():
                        self.assertAlmostEqual(row["metrics"][metric], value, 9)
                        low, high = row["intervals"][metric]
                        self.assertTrue(low < value < high)
                        self.assertNotIn(metric, row["weak"])
            self.assertNotIn("common event", report(path).stderr)

    def test_turns(self):
        """Of groups that have taken turns, each is scaled to the whole time."""
        path = self.recording("turns", running=5)
        for inputs in (path,), (sums_of("turns.sums", path),):
            for address, row in table(*inputs).items():
                for metric, value in self.TRUE[address].items():
                    # half of 5 and of 25 mispredicts were counted, rounded
                    half = {"BM/KI": (2 / 2.5, 12 / 12.5)[address == G]}.get(metric, 1)
                    self.assertAlmostEqual(row["metrics"][metric] / value, half, 9)
        self.assertIn("the counts of events such as branches were scaled", report(path).stderr)

    def test_windows(self):
        """Of what was counted they are a part, which differs: no value, and one line."""
        path = self.recording("parts", window=10)
        done = report(path)
        for row in flat(done.stdout)["functions"]:
            for metric in "BM/KI", "branches/KI":
                self.assertIsNone(row["metrics"][metric])
        said = [line for line in done.stderr.splitlines() if "common event" in line]
        self.assertEqual(len(said), 1)
        self.assertIn("branch-misses and instructions", said[0])

    def test_event_of_two_groups(self):
        """Each of both groups has counted all of it. The counts of all events are equal."""
        configs = {**CONFIGS, "cache-misses": 3}
        for kinds in KINDS, KINDS | pw.READ:
            groups = []
            for pair in (
                ("cycles", "instructions"),
                ("instructions", "cache-misses"),
                ("branches", "branch-misses"),
            ):
                groups.append(
                    [
                        pw.Event(
                            *(name, 0, configs[name], [10 * len(groups) + place + 1]),
                            1000 if not place or kinds == KINDS else 0,
                            sample_type=kinds,
                        )
                        for place, name in enumerate(pair)
                    ]
                )
            recording = Recording(groups)
            for number in range(150):
                for event in groups[number % 3] if kinds == KINDS else ():
                    where = recording.where()
                    recording.writer.sample(event, where, F, 1000, [(event.ids[0], 0)])
                if kinds != KINDS:
                    recording.sample(F, 1000, 1000, group=number % 3)
            path = recording.write(DATA / "twice.data")
            for inputs in (path,), (path, sums_of("twice.sums", path)):
                self.assertEqual(metrics("BM/KI", *inputs), {F: 1000})
                self.assertEqual(metrics("CM/KI", *inputs), {F: 1000})
                found = metrics("branch-misses", *inputs, "-F", "CPI,branch-misses")
                self.assertEqual(found, {F: 50_000 * len(inputs)})

    def test_some_inputs(self):
        """Sums of a group that one input lacks do not compare with those of all inputs."""
        paths = []
        for names in ("cycles", "instructions"), tuple(CONFIGS):
            events = [
                pw.Event(name, 0, CONFIGS[name], [1 + CONFIGS[name]], 1000, sample_type=KINDS)
                for name in names
            ]
            groups = [events[at : at + 2] for at in range(0, len(events), 2)]
            recording = Recording(groups, cpuid="GenuineIntel,6,85,4", arch="x86_64")
            for event in 50 * events:
                recording.writer.sample(event, recording.where(), F, 1000, [(event.ids[0], 0)])
            paths.insert(0, recording.write(DATA / f"inputs-{len(names)}.data"))
        for inputs in paths, [sums_of(f"{path.stem}.sums", path) for path in paths]:
            done = report(*inputs)
            self.assertIn("not in all inputs", done.stderr)
            (row,) = flat(done.stdout)["functions"]
            self.assertEqual((row["metrics"]["CPI"], row["metrics"]["BM/KI"]), (1, None))
        self.assertEqual(metrics("BM/KI", paths[0]), {F: 1000})
        apart = "tma_info_bad_spec_ipmispredict"
        for inputs, value in (paths[:1], 1), (paths, None):
            self.assertEqual(metrics(apart, "-M", apart, *inputs), {F: value})


class Kinds(unittest.TestCase):
    """Groups of user space and the kernel, or of two kinds of cores, count different things."""

    BIG, LITTLE = 8, 9  # numbers of PMUs
    NAMES = ("cycles", 0x11), ("instructions", 8), ("branch-misses", 0x10)

    def recording(self, name: str, **kinds: int) -> Path:
        """100 periods of 1000 cycles in F by the first group, and 50 by the second one.

        Only the first one counts branch-misses. kinds: further fields of the events.
        """
        groups = [
            [
                pw.Event(event, kind, number, [place + 1], sample_type=KINDS | pw.READ, **more)
                for place, (event, number) in enumerate(self.NAMES[: 3 - group], 10 * group)
            ]
            for group, (kind, more) in enumerate(kinds.values())
        ]
        recording = Recording(groups, arch="aarch64")
        recording.writer.cpuid = "0x00000000410fd490"
        recording.writer.pmus = ((self.BIG, "armv8_cortex_a57"), (self.LITTLE, "armv8_cortex_a53"))
        for group in groups:
            group[0].sample_period = 1000
        for _ in range(50):
            recording.sample(F, 1000, 500, 10, group=0)
            recording.sample(F, 1000, 500, 10, group=0)
            recording.sample(F, 1000, 250, group=1)
        return recording.write(DATA / f"{name}.data")

    def test_numbers(self):
        """The counts of an event in all groups add up, also in sums and twice."""
        user = {"flags": pw.FLAG_EXCLUDE_KERNEL | pw.FLAG_SAMPLE_ID_ALL}
        kernel = {"flags": 1 << 4 | pw.FLAG_SAMPLE_ID_ALL}
        for name, first, second in (
            ("modes", (RAW, user), (RAW, kernel)),
            ("cores", (self.BIG, user), (self.LITTLE, user)),
        ):
            path = self.recording(name, first=first, second=second)
            for times, inputs in (
                (1, (path,)),
                (1, (sums_of("kinds.sums", path),)),
                (2, (path, path)),
            ):
                with self.subTest(name=name, inputs=inputs):
                    (row,) = table(*inputs, "-F", "#,CPI,cycles").values()
                    self.assertAlmostEqual(row["metrics"]["cycles"], times * 150_000)
        for keys in "symbol", "pmu,symbol":
            told = "--by pmu,symbol tells them apart" in report(path, "--by", keys).stderr
            self.assertEqual(told, keys == "symbol")

    def test_software(self):
        """An event of the kernel is on the PMU of its group."""
        kinds = ("cycles", RAW, 0x11, [1], 1000), ("page-faults", 1, 2, [2], 1000)
        recording = Recording([[pw.Event(*kind, sample_type=KINDS) for kind in kinds]])
        for event in recording.groups[0]:
            recording.writer.sample(event, recording.where(), F, 1000, [], number=event.ids[0])
        (row,) = flat(report("--by", "pmu", recording.write(DATA / "pmu.data")).stdout)["functions"]
        self.assertEqual([own["count"] for own in row["events"].values()], [1000, 1000])


class Twice(unittest.TestCase):
    """The same event is in two options -e, or counts in two cgroups."""

    def test_cycles(self):
        """It counts all, or a part."""
        parts = ("-aG one,one,two", -1, 2), ("-a --cgroup=one,one,two", -1, 2)
        for words, pid, cpi in ("-a", -1, 1), *parts, ("gcc -D_GNU_SOURCE a.c", 100, 1):
            command = "perf", "record", "-e", "cycles", *words.split()
            recording = Recording(ungrouped("cycles", "instructions", "cycles"), command=command)
            recording.writer.thread_map(pid)
            for group in 30 * [0, 1, 2]:
                recording.sample(F, 1000, group=group)
            found = metrics("CPI", recording.write(DATA / "twice.data"))
            self.assertEqual(found, {F: cpi}, words)

    def test_groups(self):
        """Groups of the same events are one set, and so are an event and a group that it leads."""
        for kinds in KINDS, KINDS | pw.READ:
            one, other = (
                [
                    pw.Event("cycles", 0, 0, [at], 1000, sample_type=kinds),
                    pw.Event("instructions", 0, 1, [at + 1], sample_type=kinds),
                ]
                for at in (2, 4)
            )
            for groups in (one, other), (*ungrouped("cycles"), one):
                recording = Recording(groups, command=("perf", "record"))
                for _ in range(30):
                    for group, events in enumerate(groups):
                        recording.sample(F, *[1000] * len(events), group=group)
                row = table(recording.write(DATA / "groups.data"))[F]
                self.assertEqual(row["events"]["cycles"]["count"], 30_000)

    def test_inputs(self):
        """One group has counted it in one input, and two have in the other."""
        groups = [ungrouped("cycles")[0], ungrouped("cycles", "instructions")]
        groups[1] = [event for group in groups[1] for event in group]
        for event in groups[1]:
            event.ids[0] += 1
            event.sample_type |= pw.READ
        paths = []
        for number in 1, 2:
            recording = Recording(groups[:number], command=("perf", "record"))
            for at in range(30 * number):
                recording.sample(F, *[1000] * (1 + at % number), group=at % number)
            paths.insert(0, recording.write(DATA / f"groups{number}.data"))
        for inputs in paths, paths[::-1]:
            self.assertEqual(table(*inputs)[F]["events"]["cycles"]["count"], 60_000)


class Turns(unittest.TestCase):
    """Events without a group that have taken turns on the counters."""

    EVENTS = "cycles", "instructions", "branches", "branch-misses"

    def recording(self, name: str, reads: bool, records: bool, tids: int = 1) -> Path:
        """Branch mispredicts have counted in two thirds of the time, a tenth of the branches.

        reads: samples have counts and times; records: records at the end of threads have them, of
        two CPUs.
        """
        form = pw.FORMAT_ID | (TIMES if reads or records else 0)
        groups = [
            [
                pw.Event(
                    event,
                    *(0, CONFIGS[event], [1 + CONFIGS[event], 101 + CONFIGS[event]], 1000),
                    sample_type=KINDS | (pw.READ if reads else 0),
                    read_format=form,
                    flags=FREQ & ~pw.FLAG_FREQ | pw.FLAG_INHERIT,
                )
            ]
            for event in self.EVENTS
        ]
        recording = Recording(groups)
        numbers = {"cycles": 60, "instructions": 60, "branches": 60, "branch-misses": 40}
        for tid in range(100, 100 + tids):
            for at in range(60):
                for group, (event, number) in enumerate(numbers.items()):
                    if at >= number:
                        continue
                    time = 3000 * (at + 1)
                    times = (time * 60 // number, time)
                    value = [(groups[group][0].ids[0], 1000 * (at + 1))]
                    recording.writer.sample(
                        *(groups[group][0], recording.where(tid), F if at % 2 else G, 1000, value),
                        times=times,
                    )
            for group, number in zip(groups, numbers.values()):
                for cpu, event in enumerate(group[0].ids if records else ()):
                    counted = 1000 * (1 + cpu) * number
                    recording.writer.counted(
                        recording.where(tid, cpu=cpu), event, counted, (180000, counted)
                    )
        return recording.write(DATA / f"{name}.data")

    def test_times(self):
        """Their samples are scaled, if the recording has the times."""
        for reads, records in (True, False), (False, True), (True, True):
            path = self.recording("times", reads, records, tids=2)
            for inputs in path, sums_of("times.sums", path):
                for row in table(inputs).values():
                    self.assertAlmostEqual(row["metrics"]["BM/KI"], 1000, 9)
                    self.assertAlmostEqual(row["metrics"]["branches/KI"], 1000, 9)
            self.assertIn("such as branch-misses were scaled", report(path).stderr)

    def test_cpus_of_a_task(self):
        """A task's events of all CPUs are enabled wherever it runs, and one of them counts."""
        event = pw.Event("cycles", 0, 0, [1, 2], 1000, read_format=pw.FORMAT_ID | TIMES)
        event.flags |= pw.FLAG_INHERIT
        recording = Recording([[event]])
        for number in range(1, 101):
            for cpu in 0, 1:
                recording.writer.sample(
                    *(event, recording.where(cpu=cpu), F, 1000, [(1 + cpu, 1000 * number)]),
                    times=(2000 * number + 1000 * cpu - 1000, 1000 * number),
                )
        done = report(recording.write(DATA / "cpus.data"))
        self.assertEqual(flat(done.stdout)["functions"][0]["events"]["cycles"]["count"], 200_000)
        self.assertNotIn("turns", done.stderr)

    def test_span(self):
        """In a span of time, only the turns in it count."""
        event = pw.Event("cycles", 0, 0, [1], 1000, read_format=pw.FORMAT_ID | TIMES)
        recording = Recording([[event]])
        for number in range(1, 101):  # from 1001 ns on; alone on the counters up to the 50th one
            enabled = number + max(number - 50, 0)
            recording.sample(F, 1000, times=(1000 * enabled, 1000 * number))
        path = recording.write(DATA / "span.data")
        for span, count in (",0.00000105", 50_000), ("0.000001051,", 100_000):
            (row,) = table("--time", span, path).values()
            self.assertEqual(row["events"]["cycles"]["count"], count)

    def test_no_times(self):
        """Nothing tells: a line says so, if there are more events than counters may be."""
        path = self.recording("unknown", False, False)
        self.assertNotIn("turns", report(path).stderr)
        events = [
            pw.Event(f"r{at}", RAW, at, [at], 1000, sample_type=KINDS, read_format=4 | TIMES)
            for at in range(1, 7)
        ]
        recording = Recording([[event] for event in events])
        for group in 30 * [*range(6)]:
            recording.sample(F, 1000, group=group)
        said = report(recording.write(DATA / "six.data")).stderr
        self.assertIn("6 events sample without a group", said)
        # those of another cgroup, or kind of cores, do not count at the same time
        for place, event in enumerate(events):
            event.type, event.config = 0, place % 3
        said = report(recording.write(DATA / "copies.data")).stderr
        self.assertNotIn("without a group", said)
