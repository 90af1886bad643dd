# SPDX-License-Identifier: GPL-2.0
"""perf functions: the same sums as generate-function-metrics.py and as what the
recording was made of, on recordings that are made up at random; sums files,
output and bad input.

A recording is simulated interval by interval; the sums it must have are taken
from the simulation by the rules of the specification, not by either collector.
"""

import csv
import importlib.util
import io
import itertools
import json
import math
import os
import random
import re
import sys
import unittest
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness import perfwrite as pw
from tests.harness.env import BASE, CHECK, LINUX, PERF, SCRIPT, must, run, words

MINUTES = 2

DATA = CHECK / "functions"
RANDOM = int(os.environ.get("FUNCTIONS_RECORDINGS", "60"))
# Two libraries with functions of 64 bytes each, four lines of 16; `twice` is in both, and twice in the first.
LIBRARIES = {
    "one": ("alpha", "beta", "twice", "gamma"),
    "two": ("delta", "twice", "epsilon", "[u8; 4]::zeta"),
}
LOADED = {"one": 0x10000000, "two": 0x20000000}
EVENTS = (
    ("cycles", 0, 0),
    ("instructions", 0, 1),
    ("branch-misses", 0, 5),
    ("page-faults", 1, 2),
    ("armv8_pmuv3_0/l1d_cache/", 8, 4),
    ("r001b", 4, 0x1B),
    ("dTLB-load-misses:u", 3, 0x10003),
    ("branches", 0, 4),
    ("my,own\tname", 8, 0x77),
)


BY = ("dso", "comm", "thread", "cpu", "srcline", "callchain")
LINE = "nop;" * 16 + "\n"


def build_libraries() -> None:
    """ELF files with the symbols above; in `one` a second, local `twice` follows."""
    for name, functions in LIBRARIES.items():
        text = ".text\n"
        for function in functions:
            text += f'.globl "{function}"\n.type "{function}", @function\n"{function}":\n{4 * LINE}.size "{function}", 64\n'
        (DATA / f"{name}.s").write_text(text)
        sources = [DATA / f"{name}.s"]
        if name == "one":
            sources.append(DATA / "local.s")
            sources[-1].write_text(
                f'.text\n.type twice, @function\n"twice":\n{4 * LINE}.size twice, 64\n{4 * LINE}'
            )
        must(
            "gcc",
            "-g",
            "-shared",
            "-nostdlib",
            "-Wl,--build-id=none",
            "-o",
            DATA / f"lib{name}.so",
            *sources,
        )


def symbols() -> dict[tuple[str, int], str]:
    """(library, address) of each function: its name, as nm reads them."""
    found = {}
    for name in LIBRARIES:
        for line in must("nm", "--defined-only", DATA / f"lib{name}.so").splitlines():
            address, kind, symbol = line.split(maxsplit=2)
            if kind in "tT":
                found[name, int(address, 16)] = symbol
    return found


def source_lines() -> dict[tuple[str, int], str]:
    """(library, address of 16 bytes): file and line, as they were written."""
    found = {}
    for (library, start), function in symbols().items():
        file = f"{library}.s" if function in LIBRARIES[library] else "local.s"
        if function == "twice" and library == "one":  # the one that follows all others is local
            local = start == max(address for (other, address) in symbols() if other == library)
            file = "local.s" if local else "one.s"
        text = (DATA / file).read_text().splitlines()
        first = text.index(f'"{function}":') + 2  # lines count from 1
        found.update({(library, start + 16 * line): f"{file}:{first + line}" for line in range(4)})
    return found


@dataclass
class Stream:
    """What the simulation knows of a leader on a thread or CPU."""

    values: dict[int, int] = field(default_factory=dict)  # recorded last, by id
    pending: Counter = field(
        default_factory=Counter
    )  # counted, but left out of the samples so far, by slot
    last: tuple | None = None  # thread, function and kind of the last sample
    broken: bool = False


@dataclass
class Task:
    number: int
    pid: int
    tid: int
    comm: str


class Simulation:
    """A random recording, and the sums that are in it."""

    def __init__(
        self,
        seed: int,
        functions: dict[tuple[str, int], str],
        events: int = 0,
        read: bool = True,
        by: str = "symbol",
        deferred: bool = False,
    ) -> None:
        """events: one group, and the same one with every seed, of so many events; read: with their values; by: what
        tells samples apart; deferred: all have call chains, and some of them their ends in later records.
        """
        self.by, self.deferred = by, deferred
        self.wants: Callable[[Task], bool] = lambda _task: True  # the windows of a task
        self.lines = source_lines()
        self.random = random.Random(seed)
        self.functions = functions
        self.nr_cpus = self.random.choice((1, 2, 4))
        self.inherit = self.random.random() < 0.6
        # perf of Linux 6.12 sets attr.inherit for CPUs, too, where nothing is inherited
        self.any_thread = not self.inherit and self.random.random() < 0.5
        self.share = self.random.choice(("auto", "none", "discard"))
        self.next_id = 1
        if events:
            self.share = "auto"
            self.groups = [
                self.make_group(
                    EVENTS[:events],
                    10000,
                    300,
                    pw.IP
                    | pw.TID
                    | pw.TIME
                    | pw.CPU
                    | pw.PERIOD
                    | pw.IDENTIFIER
                    | (pw.READ if read else 0),
                    pw.FORMAT_ID | pw.FORMAT_GROUP,
                )
            ]
        else:
            self.groups = self.make_groups()
        self.is_intel = seed % 3 == 2
        self.writer = pw.Writer(
            self.groups,
            cpuid=("", "0x00000000413fd0c1", "GenuineIntel,6,85,4")[seed % 3],
            slots=seed % 2 * 8,
            threads=((), ("0-1", "2,3"), ("0", "1"))[seed // 2 % 3],
        )
        self.time = 1000
        self.numbers = 0
        self.streams: dict[tuple, Stream] = {}
        self.sums: dict[tuple, dict] = {}
        self.rows: dict[tuple, tuple] = {}  # what tells samples apart: symbol, DSO, address
        self.lost = self.throttled = 0
        self.tasks = [self.new_task(100, 100, "program")]
        self.free: list[int] = []
        self.pages = [*functions, ("one", None), ("", None)]

    def make_groups(self) -> list[list[pw.Event]]:
        kinds = (
            pw.IP
            | pw.TID
            | pw.TIME
            | pw.READ
            | pw.CPU
            | pw.PERIOD
            | self.random.choice((pw.ID, pw.IDENTIFIER))
        )
        kinds |= (
            pw.CALLCHAIN
            if self.by == "callchain" or self.deferred
            else self.random.choice((0, pw.CALLCHAIN))
        )
        form = (
            pw.FORMAT_ID
            | pw.FORMAT_GROUP
            | self.random.choice((0, pw.FORMAT_LOST))
            | self.random.choice((0, pw.FORMAT_ENABLED | pw.FORMAT_RUNNING))
        )
        groups = []
        for _ in range(self.random.choice((1, 1, 2, 3))):
            chosen = [self.random.choice(EVENTS[:2])]
            others = [event for event in EVENTS if event != chosen[0]]
            chosen += self.random.sample(others, self.random.randrange(0, 6))
            if self.random.random() < 0.2:
                chosen.append((f"{chosen[0][0]}:k", *chosen[0][1:]))  # the same once more
            period, alternate = self.random.choice(
                ((10000, 300), (10000, 0), (300, 0), (999, 998), (5000, 5000))
            )
            groups.append(self.make_group(chosen, period, alternate, kinds, form))
        return groups

    def make_group(
        self, chosen: Sequence[tuple], period: int, alternate: int, kinds: int, form: int
    ) -> list[pw.Event]:
        group = []
        for name, kind, config in chosen:
            ids = list(range(self.next_id, self.next_id + self.nr_cpus))
            self.next_id += self.nr_cpus
            flags = pw.FLAG_EXCLUDE_KERNEL | pw.FLAG_SAMPLE_ID_ALL
            flags |= pw.FLAG_INHERIT if self.inherit or self.any_thread else 0
            flags |= pw.FLAG_DEFER_CALLCHAIN if self.deferred else 0
            periods = (0, 0, 0) if group else (period, alternate, 5 if alternate else 0)
            group.append(pw.Event(name, kind, config, ids, *periods, kinds, form, flags))
        return group

    def new_task(self, pid: int, tid: int, comm: str) -> Task:
        self.numbers += 1
        return Task(self.numbers, pid, tid, comm)

    def tick(self) -> int:
        self.time += self.random.randrange(1, 100)
        return self.time

    def where(self, task: Task, cpu: int = 0) -> pw.Where:
        return pw.Where(self.tick(), task.pid, task.tid, cpu)

    def begin(self) -> None:
        """The program and its mappings."""
        task = self.tasks[0]
        if self.any_thread:
            self.writer.any_thread()
        self.writer.comm(self.where(task), task.comm)
        for library, base in LOADED.items():
            self.writer.mmap2(self.where(task), base, 0x10000, str(DATA / f"lib{library}.so"))

    def fork(self) -> None:
        parent = self.random.choice(self.tasks)
        tid = self.free.pop() if self.free and self.random.random() < 0.5 else 200 + self.numbers
        pid = self.random.choice((parent.pid, tid))
        task = self.new_task(pid, tid, parent.comm)
        self.writer.task(pw.FORK, self.where(task), pw.Where(0, parent.pid, parent.tid))
        self.tasks.append(task)

    def exit(self) -> None:
        """The end of a task, if there is one that no thread belongs to: perf forgets the maps with the process."""
        ready = [
            task
            for task in self.tasks[1:]
            if all(other is task or other.pid != task.tid for other in self.tasks)
        ]
        if not ready:
            return
        task = self.random.choice(ready)
        self.tasks.remove(task)
        self.writer.task(pw.EXIT, self.where(task), task_of(task))
        self.free.append(task.tid)

    def interrupt(self) -> None:
        """A throttle record of a leader, or a loss."""
        cpu = self.random.randrange(self.nr_cpus)
        where = self.where(self.random.choice(self.tasks), cpu)
        leader = self.random.choice(self.groups)[0].ids[cpu]
        if self.random.random() < 0.6:
            kind = self.random.choice((pw.THROTTLE, pw.UNTHROTTLE))
            self.writer.throttle(kind, where, leader)
            self.throttled += kind == pw.THROTTLE
            hit = [stream for key, stream in self.streams.items() if key[0] == leader]
        else:
            number = self.random.randrange(1, 9)
            self.writer.lost(where, leader, number)
            self.lost += number
            hit = list(self.streams.values())
        for stream in hit:
            stream.broken = True

    def sample(self) -> None:
        """One interval of a group ends."""
        group = self.random.choice(self.groups)
        leader = group[0]
        task, cpu = self.random.choice(self.tasks), self.random.randrange(self.nr_cpus)
        stream = self.streams.setdefault(
            (leader.ids[cpu], task.number if self.inherit else 0), Stream()
        )
        alternates = alternating(leader)
        was_long = stream.last is not None and stream.last[2] == "long"
        nominal = (
            leader.alternative_sample_period if alternates and was_long else leader.sample_period
        )
        counts = [self.random.randrange(nominal * 3 // 4, nominal * 3 // 2)]
        counts += [
            self.random.choice((0, self.random.randrange(500), self.random.randrange(2**40)))
            for _ in group[1:]
        ]
        # mostly stay in the function of the last sample
        page = (
            stream.last[3]
            if stream.last and self.random.random() < 0.6
            else self.random.choice(self.pages)
        )
        callers = (
            stream.last[4] if stream.last and self.random.random() < 0.6 else self.make_callers()
        )
        chain = [(*place, self.address_in(*place)) for place in (page, *callers)]
        self.write_sample(group, stream, cpu, task, counts, [address for *_, address in chain])
        function = self.row(task, cpu, chain)
        kind = (
            "long"
            if alternates
            and 2 * counts[0] >= leader.sample_period + leader.alternative_sample_period
            else "window"
        )
        self.count(group, stream, function, task, counts, kind)
        stream.last = (task.number, function, kind, page, callers)
        stream.broken = False

    def make_callers(self) -> list[tuple]:
        """Up to two functions."""
        return (
            self.random.choices(self.pages, k=self.random.randrange(3))
            if self.by == "callchain"
            else []
        )

    def address_in(self, library: str, start: int | None) -> int:
        """An address in a function, in a library without function, or in none."""
        if not library:
            return 0x70000000 + 16 * self.random.randrange(3)
        return LOADED[library] + (
            0x8000 + 16 * self.random.randrange(3)
            if start is None
            else start + self.random.randrange(64)
        )

    def write_sample(
        self,
        group: list[pw.Event],
        stream: Stream,
        cpu: int,
        task: Task,
        counts: list[int],
        chain: list[int],
    ) -> None:
        """Turn counts into values; a member is left out now and then, and its count comes with the next."""
        values = []
        for slot, event in enumerate(group):
            number = event.ids[cpu]
            if slot and self.random.random() < 0.03:
                stream.pending[slot] += counts[slot]
                counts[slot] = 0
                continue
            counts[slot] += stream.pending.pop(slot, 0)
            stream.values[number] = stream.values.get(number, 0) + counts[slot]
            values.append((number, stream.values[number]))
        callers = chain[1:]
        if self.deferred and self.random.random() < 0.5:
            callers += [pw.CONTEXT_USER_DEFERRED, self.time]
        self.writer.sample(group[0], self.where(task, cpu), chain[0], counts[0], values, callers)

    def function_of(self, library: str, start: int | None, ip: int) -> tuple:
        """Symbol, DSO, address, as the table has them."""
        if not library:
            return ("", "", ip)
        path = str(DATA / f"lib{library}.so")
        if start is None:
            return ("", path, ip - LOADED[library])
        return (self.functions[library, start], path, start)

    def row(self, task: Task, cpu: int, chain: list[tuple]) -> tuple:
        """What tells this sample from others; notes what it is called."""
        frames = tuple(self.function_of(*place) for place in chain)
        (library, _, ip), function = chain[0], frames[0]
        path = Path(function[1])
        source = (library, ip - LOADED.get(library, 0) & ~15)
        name = ";".join(
            symbol.replace(";", ":") or f"{address:#x} [{Path(dso).name or 'unknown'}]"
            for symbol, dso, address in frames
        )
        identity, row = {
            "symbol": (function, function),
            "dso": (path, (path.name or "[unknown]", function[1], 0)),
            "comm": (task.comm, (task.comm, "", 0)),
            "thread": (task.number, (f"{task.tid}:{task.comm}", "", 0)),
            "cpu": (cpu, (f"{cpu:03}", "", 0)),
            "srcline": (
                (line := self.lines.get(source) or unknown_line(path, function[2])),
                (line, "", 0),
            ),
            "callchain": (frames, (name, *function[1:])),
        }[self.by]
        self.rows[identity] = row
        return identity

    def count(
        self,
        group: list[pw.Event],
        stream: Stream,
        function: tuple,
        task: Task,
        counts: list[int],
        kind: str,
    ) -> None:
        """What the specification says of the interval."""
        alternates = alternating(group[0])
        share = self.share if self.share != "auto" else "discard" if alternates else "none"
        if kind == "long" or stream.last is None or not self.wants(task):
            return
        sums = self.sums.setdefault((function, self.key(group)), {"samples": 0, "windows": []})
        sums["samples"] += 1
        same = stream.last[:2] == (task.number, function) and (
            stream.last[2] == "long" or not alternates
        )
        if not stream.broken and (same or share == "none"):
            sums["windows"].append(dict(zip(self.names(group), counts)))

    def names(self, group: list[pw.Event]) -> list[str]:
        """Names of the events of a group in the table."""
        known = {
            "armv8_pmuv3_0/l1d_cache/": "cache-references",
            "r001b": "r001b" if self.is_intel else "inst_spec",
            "dTLB-load-misses:u": "dTLB-load-misses",
        }
        return [known.get(event.name, event.name) for event in group]

    def key(self, group: list[pw.Event]) -> tuple[str, ...]:
        first, *rest = self.names(group)
        return (first, *sorted(rest))

    def run(self, number: int, path: Path) -> None:
        """A recording with this number of samples. In the file, the records of a CPU are together in each round."""
        self.begin()
        first = len(self.writer.records)
        for _ in range(number):
            what = self.random.random()
            if what < 0.02 and len(self.tasks) < 9:
                self.fork()
            elif what < 0.03 and len(self.tasks) > 1:
                self.exit()
            elif what < 0.05:
                self.interrupt()
            elif what < 0.06:
                task = self.random.choice(self.tasks)
                task.comm = self.random.choice(("program", "sh", "my worker"))
                self.writer.comm(self.where(task), task.comm)
            self.sample()
        records, self.writer.records = self.writer.records[first:], self.writer.records[:first]
        for at in range(0, len(records), 50):
            chunk = records[at : at + 50]
            self.random.shuffle(chunk)
            self.writer.records += chunk
            self.writer.finished_round()
        self.writer.write(path)

    def expected(self) -> dict[tuple, dict]:
        """By function and group what JSON must say."""
        addresses: dict[tuple, set] = {}
        merged: dict[tuple, dict] = {}
        for (identity, events), sums in self.sums.items():
            function = self.rows[identity]
            addresses.setdefault(function[:2], set()).add(function[2])
            both = merged.setdefault((function, events), {"samples": 0, "windows": []})
            both["samples"] += sums["samples"]
            both["windows"] = both["windows"] + sums["windows"]
        result = {}
        for (function, events), sums in merged.items():
            plain = function[0] and len(addresses[function[:2]]) == 1
            windows = sums["windows"]
            products = {
                f"{a}*{b}": sum(window[a] * window[b] for window in windows)
                for a in sorted(events)
                for b in sorted(events)
                if a <= b
            }
            result[(function[0], function[1], None if plain else function[2]), events] = {
                "events": list(events),
                "samples": sums["samples"],
                "matched": len(windows),
                "discarded": sums["samples"] - len(windows),
                "products": products,
                "totals": {event: sum(window[event] for window in windows) for event in events},
            }
        return result


def unknown_line(path: Path, address: int) -> str:
    """What perf prints in place of a line."""
    return f"{path.name}[{address:x}]" if path.name else "??:0"


def alternating(leader: pw.Event) -> bool:
    """Whether its intervals differ: equal periods are plain ones with jitter."""
    return leader.alternative_sample_period not in (0, leader.sample_period)


def task_of(task: Task) -> pw.Where:
    return pw.Where(0, task.pid, task.tid)


def native(path: Path, *options: object):
    """perf functions report."""
    return run(PERF, "functions", "report", "-i", path, *options, stderr=-1)


def script(path: Path, *options: object):
    return run(PERF, "script", "-i", path, "-s", SCRIPT, "--", *options, stderr=-1)


def sums_of(report: dict) -> dict[tuple, dict]:
    """The sums of a JSON report by function and group."""
    return {
        ((row["symbol"], row["dso"], row["address"]), tuple(sums["events"])): sums
        for row in report["functions"]
        for sums in row["sums"]
    }


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    build_libraries()


class RandomRecordings(unittest.TestCase):
    def check(self, seed: int, functions: dict) -> None:
        simulation = Simulation(seed, functions)
        path = DATA / "random.data"
        simulation.run(simulation.random.choice((5, 100, 1000)), path)
        share = ("--share", simulation.share)
        ours, theirs = native(path, "-j", *share), script(path, "--json", *share)
        if not simulation.sums:
            self.assertGreater(ours.returncode, 0)
            self.assertGreater(theirs.returncode, 0)
            return
        self.assertEqual((ours.returncode, theirs.returncode), (0, 0), ours.stderr + theirs.stderr)
        ours, theirs = json.loads(ours.stdout), json.loads(theirs.stdout)
        self.assertEqual(sums_of(ours), simulation.expected())
        self.assertEqual(sums_of(theirs), simulation.expected())
        self.assertEqual((ours["lost"], ours["throttled"]), (simulation.lost, simulation.throttled))
        self.assert_same_report(ours, theirs)
        self.assertEqual(words(native(path, *share).stdout), words(script(path, *share).stdout))

    def assert_same_report(self, ours: dict, theirs: dict) -> None:
        """The same metrics, the same order of rows, all else equal."""
        self.assertEqual(
            [row["symbol"] for row in ours["functions"]],
            [row["symbol"] for row in theirs["functions"]],
        )
        for mine, other in zip(ours["functions"], theirs["functions"]):
            for what in ("metrics", "errors"):
                self.assertEqual(mine[what].keys(), other[what].keys())
                for column, value in other[what].items():
                    # the command takes doubles for sums: an error that is 0 comes to 1e-8 of its metric
                    close = what == "errors" and 1e-7 * abs(other["metrics"][column])
                    self.assertTrue(
                        mine[what][column] is None
                        if value is None
                        else math.isclose(mine[what][column], value, rel_tol=1e-9, abs_tol=close),
                        (mine["symbol"], column, mine[what][column], value),
                    )
        self.assertEqual((ours["lost"], ours["throttled"]), (theirs["lost"], theirs["throttled"]))

    def test_sums(self):
        """The sums of both collectors are those of the simulation."""
        functions = symbols()
        for seed in range(RANDOM):
            with self.subTest(seed=seed):
                self.check(seed, functions)

    def test_deferred_call_chains(self):
        """Samples do not wait for the end of their chains: the counts of each are those since the one before it."""
        for seed in range(10):
            with self.subTest(seed=seed):
                simulation = Simulation(seed, symbols(), deferred=True)
                simulation.run(100, DATA / "deferred.data")
                told = native(DATA / "deferred.data", "-j", "--share", simulation.share)
                if BASE == "6.12":  # it knows no such chains
                    self.assertIn("Please update perf tool.\n", told.stderr)
                    continue
                self.assertEqual(
                    sums_of(json.loads(told.stdout)), simulation.expected(), told.stderr
                )
                told = native(DATA / "deferred.data", "--by", "callchain")
                self.assertGreater(told.returncode, 0)
                self.assertIn(
                    "call chains, which come later: record without 'defer'\n", told.stderr
                )
                # perf script does let them wait
                told = run(PERF, "script", "-i", DATA / "deferred.data", "-s", SCRIPT, stderr=-1)
                self.assertGreater(told.returncode, 0)
                self.assertIn("record without 'defer', or use perf functions\n", told.stderr)

    def test_rows_by_anything_else(self):
        """The sums of rows that are no functions; the script prints the same of their sums file."""
        functions = symbols()
        path, sums = DATA / "by.data", DATA / "by.sums"
        for seed in range(RANDOM // len(BY)):
            for by in BY:
                simulation = Simulation(seed, functions, by=by)
                simulation.run(500, path)
                options = ("--by", by, "--share", simulation.share)
                with self.subTest(seed=seed, by=by):
                    report = json.loads(
                        must(PERF, "functions", "report", "-i", path, "-j", *options, stderr=-1)
                    )
                    self.assertEqual(sums_of(report), simulation.expected())
                    self.assertEqual(report["by"], by)
                    must(PERF, "functions", "report", "-i", path, "--sums", sums, *options)
                    for ours, theirs in (((), ()), (("-x", ","), ("--csv",))):
                        table = must(
                            PERF,
                            "functions",
                            "report",
                            "-i",
                            path,
                            *options,
                            *ours,
                            "-s",
                            by,
                            stderr=-1,
                        )
                        from_sums = must(
                            "/usr/bin/python3",
                            SCRIPT,
                            *theirs,
                            "--sort",
                            by,
                            "--sums",
                            sums,
                            stderr=-1,
                        )
                        self.assertEqual(words(from_sums), words(table))
                        self.assertEqual(
                            must(PERF, "functions", "report", sums, *ours, "-s", by, stderr=-1),
                            table,
                        )


def recording(name: str, seed: int, **options) -> Path:
    """A recording of 1000 samples of one group."""
    path = DATA / f"{name}.data"
    simulation = Simulation(seed, symbols(), **options)
    simulation.run(1000, path)
    return path


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.one, cls.two = recording("one", 1, events=3), recording("two", 2, events=3)

    def report(self, *options: object) -> str:
        """What is printed; it is an error to fail."""
        done = run(PERF, "functions", "report", *options, stderr=-1)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_refused(self, reason: str, *options: object) -> None:
        """A reason on one line, nothing printed."""
        done = run(PERF, "functions", "report", *options, stderr=-1)
        self.assertGreater(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, reason)
        self.assertEqual(
            len([line for line in done.stderr.splitlines() if line.startswith("perf functions:")]),
            1,
        )

    def test_sums_files_are_the_same(self):
        for path in (self.one, self.two):
            ours, theirs = DATA / "ours.sums", DATA / "theirs.sums"
            self.report(path, "--sums", ours)
            must(PERF, "script", "-i", path, "-s", SCRIPT, "--", "--write-sums", theirs)
            self.assertEqual(ours.read_text(), theirs.read_text())

    def test_sums_add_up(self):
        """Recordings and sums files, in any order, by either reader; each number is the sum of its parts."""
        sums = {}
        for name, path in (("one", self.one), ("two", self.two)):
            self.report(path, "--sums", DATA / f"{name}.sums")
            sums[name] = sums_of(json.loads(self.report(path, "-j")))
        total = self.report("-j", self.one, self.two)
        for inputs in (
            (self.two, self.one),
            (DATA / "one.sums", self.two),
            (DATA / "two.sums", DATA / "one.sums"),
        ):
            self.assertEqual(json.loads(self.report("-j", *inputs)), json.loads(total))
        script_total = must(
            "/usr/bin/python3",
            SCRIPT,
            "--json",
            "--sums",
            DATA / "two.sums",
            DATA / "one.sums",
            stderr=-1,
        )
        self.assertEqual(sums_of(json.loads(script_total)), sums_of(json.loads(total)))
        for key, both in sums_of(json.loads(total)).items():
            parts = [part[key] for part in sums.values() if key in part]
            self.assertEqual(both["samples"], sum(part["samples"] for part in parts))
            for what in ("totals", "products"):
                for name, number in both[what].items():
                    self.assertEqual(number, sum(part[what][name] for part in parts))

    def test_sums_are_what_is_reported(self):
        """A table from a sums file is that of its recording, by either reader; in JSON too."""
        self.report(self.one, "--sums", DATA / "one.sums")
        for ours, theirs in ((("-x", ","), "--csv"), ((), "--limit=99")):
            table = self.report(*ours, self.one)
            self.assertEqual(self.report(*ours, DATA / "one.sums"), table)
            from_sums = must(
                "/usr/bin/python3", SCRIPT, theirs, "--sums", DATA / "one.sums", stderr=-1
            )
            self.assertEqual(words(from_sums), words(table))
        self.assertEqual(
            json.loads(self.report("-j", DATA / "one.sums")),
            json.loads(self.report("-j", self.one)),
        )
        self.assertEqual(
            self.report("--sums", "-", DATA / "one.sums"), (DATA / "one.sums").read_text()
        )

    def test_csv(self):
        """As the script's, all digits included."""
        self.assertEqual(self.report("-x", ",", self.one), script(self.one, "--csv").stdout)
        rows = list(csv.DictReader(io.StringIO(self.report("-x", ";", self.one)), delimiter=";"))
        sums = sums_of(json.loads(self.report("-j", self.one)))
        samples = Counter()
        for ((symbol, dso, _), _), part in sums.items():
            samples[symbol, dso] += part["samples"] if symbol else 0
        for row in rows:
            if row["symbol"] in ("alpha", "beta", "gamma", "delta", "epsilon"):
                self.assertEqual(int(row["#"]), samples[row["symbol"], row["dso"]])

    def test_fields_sort_and_limit(self):
        full = words(self.report(self.one, "--symbol", "alpha,beta,gamma"))
        names = full[0]
        lines = words(
            self.report(
                self.one, "--symbol", "alpha,beta,gamma", "-F", "dis,#", "-s", "#", "--limit", 2
            )
        )
        self.assertEqual(lines[0], ["symbol", "DIS", "#"])
        most = sorted(full[1:], key=lambda row: -int(row[1]))[:2]
        self.assertEqual(lines[1:], [[row[0], row[names.index("DIS")], row[1]] for row in most])
        by_name = [
            line.split()[0]
            for line in self.report(
                self.one, "-s", "symbol", "--symbol", "gamma,alpha"
            ).splitlines()
        ]
        self.assertEqual(by_name, ["symbol", "alpha", "gamma"])
        named = DATA / "named.sums"
        name = "event=0xc5,umask=0x1"
        named.write_text(self.report(self.one, "--sums", "-").replace("branch-misses", name))
        self.assertEqual(
            words(self.report(named, "-F", f"#,{name}/KI,dis"))[0],
            ["symbol", "#", f"{name}/KI", "DIS"],
        )
        self.assert_refused("no column event=0xc5 ", named, "-F", f"#,{name}")

    def test_filter_leaves_matching_alone(self):
        """What comes before a window is looked at, though it is filtered out itself."""
        every = sums_of(json.loads(self.report("-j", self.one)))
        some = sums_of(json.loads(self.report("-j", self.one, "--symbol", "alpha")))
        self.assertEqual(some, {key: value for key, value in every.items() if key[0][0] == "alpha"})
        library = str(DATA / "libtwo.so")
        some = sums_of(json.loads(self.report("-j", self.one, "--dso", library)))
        self.assertEqual(some.keys(), {key for key in every if key[0][1] == library})

    def test_source_lines(self):
        """Short and full names of files; those that another addr2line says."""
        short = {
            row[0][0] for row in sums_of(json.loads(self.report("-j", self.one, "--by", "srcline")))
        }
        full = {
            row[0][0]
            for row in sums_of(
                json.loads(self.report("-j", self.one, "--by", "srcline", "--full-source-path"))
            )
        }
        self.assertEqual(
            {name for name in short if ".s:" in name},
            {Path(name).name for name in full if ".s:" in name},
        )
        self.assertEqual({str(Path(name).parent) for name in full if ".s:" in name}, {str(DATA)})
        must(
            "sh",
            "-c",
            f"{PERF} functions report -i {self.one} --by srcline -j 2>{DATA}/errors | head -n 1",
        )
        self.assertNotIn("Broken pipe", (DATA / "errors").read_text())
        tool = DATA / "addr2line"
        tool.write_text('#!/bin/sh\naddr2line "$@" | sed -u s/one[.]s:/uno.s:/\n')
        tool.chmod(0o755)
        report = json.loads(self.report("-j", self.one, "--by", "srcline", "--addr2line", tool))
        self.assertEqual(
            {row[0][0] for row in sums_of(report)},
            {name.replace("one.s:", "uno.s:") for name in short},
        )

    def test_help(self):
        """With examples."""
        told = run(PERF, "functions", "report", "-h")
        self.assertEqual(told.returncode, 129)
        self.assertIn("--diff <before> <after>", told.stdout)
        self.assertGreater(len(re.findall("^    perf functions report ", told.stdout, re.M)), 3)

    def test_filters_of_tasks(self):
        """By comm at the time, pid and tid: windows of others are not counted, but what they do to streams is."""
        filters = {
            "--comm": ("sh,my worker", lambda task: task.comm in ("sh", "my worker")),
            "--pid": ("100", lambda task: task.pid == 100),
            "--tid": ("100", lambda task: task.tid == 100),
        }
        for seed, (option, (value, wants)) in itertools.product(range(4), filters.items()):
            simulation = Simulation(seed, symbols(), events=3)
            simulation.wants = wants
            simulation.run(1000, DATA / "filter.data")
            report = json.loads(self.report("-j", "-i", DATA / "filter.data", option, value))
            self.assertEqual(sums_of(report), simulation.expected(), (seed, option))

    def test_time(self):
        """Two halves have the windows of the whole."""
        whole = sums_of(json.loads(self.report("-j", self.one)))
        halves = [
            sums_of(json.loads(self.report("-j", self.one, "--time", span)))
            for span in (",0.000025", "0.000025001,")
        ]
        for key, sums in whole.items():
            self.assertEqual(
                sums["samples"], sum(half[key]["samples"] for half in halves if key in half), key
            )

    def test_bad_input(self):
        sums = DATA / "one.sums"
        self.report(self.one, "--sums", sums)
        text = sums.read_text()
        bad = DATA / "bad.sums"
        numbers = re.search(r"(?m)^sums(?:\t[^\t]*){3}\t(\d+)\t(\d+)\t(\d+)\t.*$", text)
        groups = re.search(r"(?m)^group\tdiscard\t\d+\t\d+\t\d+\t([01])\t", text)

        def instead(found: re.Match, group: int, what: str) -> tuple[str, str]:
            return (
                text[: found.start(group)] + what + text[found.end(group) :],
                "is not one of a sums file",
            )

        for content, reason in (
            *(instead(numbers, 1, what) for what in ("-1", "1_0", "0x10", "", " 1")),
            *(instead(numbers, 3, what) for what in ("-1", "1" + 400 * "0", "1.0")),
            instead(groups, 1, "7"),
            (text.replace("lost\t", "lost\t-"), "is not one of a sums file"),
            (text[:-5], "cut short"),
            (text.replace("sums 3", "sums 9"), "version 9"),
            (text.replace("by\tsymbol", "by\tname"), "line 2 is not one of a sums file"),
            (text.replace("lost\t", "last\t"), "line 3 is not one of a sums file"),
            (text.replace("lost\t", "lost\t1\t("), "line 3 is not one of a sums file"),
            (text.replace("end\n", "sums\tx\n"), "is not one of a sums file"),
        ):
            bad.write_text(content)
            self.assert_refused(reason, bad)
            done = run("/usr/bin/python3", SCRIPT, "--sums", bad)
            self.assertEqual((done.returncode, len(done.stdout.splitlines())), (1, 1), done.stdout)
        other = recording("other", 3, events=2)
        self.assert_refused("other.data: does not add up.*other events", self.one, other)
        self.report(self.one, "--share", "none", "--sums", bad)
        self.assert_refused("does not add up.*share mode", bad, self.one)
        self.assert_refused(
            "one.sums: these are sums of --share discard$", self.one, sums, "--share", "none"
        )
        done = run("/usr/bin/python3", SCRIPT, "--sums", sums, "-s", "none", stderr=-1)
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr),
            (1, "", f"generate-function-metrics: {sums}: these are sums of --share discard\n"),
        )
        self.assert_refused("no window is one that --comm chooses$", self.one, "--comm", "nobody")
        self.assert_refused("no column FOO.*there are: symbol # ", self.one, "-s", "FOO")
        self.assert_refused("no column FOO", self.one, "-F", "#,FOO")
        self.assert_refused("no share mode some", self.one, "--share", "some")
        self.assert_refused(
            "no --by line, there are: symbol dso comm thread cpu srcline callchain$",
            self.one,
            "--by",
            "line",
        )
        self.assert_refused(
            "recorded without what this takes: perf record --call-graph fp,4$",
            self.one,
            "--by",
            "callchain",
        )
        self.assert_refused(
            "--inline goes with --by symbol and --by callchain$",
            self.one,
            "--by",
            "comm",
            "--inline",
        )
        self.report(self.one, "--by", "comm", "--sums", bad)
        self.assert_refused("does not add up.*another kind", self.one, bad)
        self.assert_refused("bad.sums: these are sums by comm$", bad, "--by", "dso")
        done = run("/usr/bin/python3", SCRIPT, "--sums", sums, bad)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (1, 1), done.stdout)
        for options in ((DATA / "missing.data",), (self.one, "--sums", DATA / "no/such/folder")):
            done = run(PERF, "functions", "report", *options, stderr=-1)
            self.assertGreater(done.returncode, 0)
            self.assertEqual(done.stdout, "")
            self.assertIn("No such file", done.stderr.splitlines()[-1])

    def test_sums_that_cannot_be_written(self):
        """What was there stays, and nothing else does."""
        folder = DATA / "full"
        folder.mkdir(exist_ok=True)
        sums = folder / "all.sums"
        self.report(self.one, "--sums", sums)
        before = sums.read_text()
        full = "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"
        for command in (
            (PERF, "functions", "report", sums, "--sums", sums),
            ("/usr/bin/python3", SCRIPT, "--sums", sums, "--write-sums", sums),
        ):
            # what it says goes through a pipe
            done = run("sh", "-c", *full, *command)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"(?m)^[^\n]*: File too large\n\Z")
            self.assertEqual({path: path.read_text() for path in folder.iterdir()}, {sums: before})

    def test_cut_recording(self):
        """However much is missing: a table of what is there, or a reason, and no signal."""
        raw = (
            self.two.read_bytes()
        )  # whose last bytes perf needs, unlike those of a PMU's capabilities
        cut = DATA / "cut.data"
        for size in [*range(0, len(raw), len(raw) // 20), len(raw) - 1, len(raw) - 300]:
            cut.write_bytes(raw[:size])
            done = native(cut)
            self.assertGreater(done.returncode, 0, size)
            self.assertTrue(done.stderr)
            self.assertEqual(done.stdout, "")

    def test_cut_recording_for_the_script(self):
        """What tells the groups is at the end: members without it are no leaders. Newer perf script refuses the file."""
        cut = DATA / "cut.data"
        cut.write_bytes(self.two.read_bytes()[:-3000])
        done = script(cut, "--write-sums", DATA / "cut.sums")
        self.assertRegex(
            done.stderr, "is in no group, is the file cut short[?]|incompatible file format"
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((DATA / "cut.sums").exists())

    def test_no_group(self):
        path = recording("single", 4, events=1, read=False)
        self.assert_refused("no counter group: record with -e '{", path)

    def test_pipe(self):
        """From stdin: of a file that is none, as perf record -o - writes it, a reason."""
        done = run("sh", "-c", f"head -c 5000 {self.one} | {PERF} functions report -i -", stderr=-1)
        self.assertEqual((done.returncode, done.stdout), (255, ""))
        self.assertIn("incompatible file format", done.stderr)


def rounds(
    name: str,
    groups: Sequence[Sequence[tuple]],
    counts: Sequence[Sequence[int]],
    cpuid: str = "",
    periods: Sequence[int] = (999_700, 999_700),
) -> Path:
    """A recording of a hundred windows of each group in `alpha`. An event is its name, type, config, and its period if it
    is a member that has one; the counts are those of a window, that of the leader first."""
    # pylint: disable=too-many-locals
    numbers = itertools.count(1)
    flags = pw.FLAG_EXCLUDE_KERNEL | pw.FLAG_SAMPLE_ID_ALL | pw.FLAG_INHERIT
    events = [
        [
            pw.Event(
                *event[:3],
                [next(numbers)],
                *(event[3:] or ((period, 300) if place == 0 else ())),
                flags=flags,
            )
            for place, event in enumerate(group)
        ]
        for group, period in zip(groups, periods)
    ]
    writer = pw.Writer(events, cpuid=cpuid)
    writer.comm(pw.Where(1, 100, 100), "prog")
    writer.mmap2(pw.Where(2, 100, 100), LOADED["one"], 0x10000, str(DATA / "libone.so"))
    address = next(
        address
        for (library, address), symbol in symbols().items()
        if (library, symbol) == ("one", "alpha")
    )
    values: Counter = Counter()
    for time in range(1000, 1202):
        for group, row, period in zip(events, counts, periods):
            row = row if time % 2 else [period, *row[1:]]
            values.update({event.ids[0]: count for event, count in zip(group, row)})
            writer.sample(
                group[0],
                pw.Where(time, 100, 100),
                LOADED["one"] + address + 4,
                row[0],
                [(event.ids[0], values[event.ids[0]]) for event in group],
            )
    path = DATA / f"{name}.data"
    writer.write(path)
    return path


class Mixed(unittest.TestCase):
    """Recordings whose counts do not belong together."""

    INTEL, ARM = "GenuineIntel-6-151-2", "0x00000000410fd0c0"
    BOTH = ("cycles:u", 0, 0), ("instructions:u", 0, 1)

    def values(self, path: Path, note: str = "") -> dict:
        """The metrics of the one function, which both say; and the note that they print, if there is to be one."""
        ours, theirs = native(path, "-j"), script(path, "--json")
        ours_metrics, theirs_metrics = (
            json.loads(done.stdout)["functions"][0]["metrics"] for done in (ours, theirs)
        )
        self.assertEqual(ours_metrics, theirs_metrics)
        self.assertEqual(json.loads(ours.stdout)["groups"], json.loads(theirs.stdout)["groups"])
        for done in (ours, theirs):
            self.assertRegex(done.stderr, note or r"\A\Z")
        return ours_metrics

    def test_member_that_samples(self):
        """Each of its samples would end an interval of the leader, which is then taken for a window."""
        path = rounds("own", [[*self.BOTH[:1], ("instructions:u", 0, 1, 1000000)]], [[300, 300]])
        for done in native(path), script(path):
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(
                "instructions:u samples by itself, which splits the intervals of its group",
                done.stderr,
            )
            self.assertEqual(done.stdout, "")

    def test_two_events_of_one_name(self):
        """Misses of the last level and of L1D are two things where the kernel maps them so; those of the program count."""
        groups = [
            [*self.BOTH, ("cache-misses:u", 0, 3)],
            [*self.BOTH, ("L1-dcache-load-misses:u", 3, 0x10000)],
        ]
        counts = [[300, 300, 3], [300, 300, 60]]
        metrics = self.values(rounds("misses", groups, counts, self.INTEL))
        self.assertEqual((metrics["CM/KI"], metrics["L1-dcache-load-misses:u/KI"]), (10, 200))
        metrics = self.values(rounds("misses", groups, counts, self.ARM))
        self.assertEqual(metrics["CM/KI"], 105)
        groups = [
            [*self.BOTH, ("r10:u", 4, 0x10)],
            [*self.BOTH, ("armv8_pmuv3_0/br_mis_pred_retired/u", 8, 0x22)],
        ]
        metrics = self.values(rounds("mispredicts", groups, counts, self.ARM))
        self.assertEqual(
            (metrics["BM/KI"], metrics["armv8_pmuv3_0/br_mis_pred_retired/u/KI"]), (10, 200)
        )

    def test_cores_of_several_kinds(self):
        """Each has its PMU, whose number is in the attr: counts are added up, and that is said, by sums, too."""
        groups = [
            [(f"cpu_core/{name}", 0, 4 << 32 | config) for name, _, config in self.BOTH],
            [(f"cpu_atom/{name}", 0, 10 << 32 | config) for name, _, config in self.BOTH],
        ]
        path, sums = (
            rounds("hybrid", groups, [[300, 300], [300, 75]], self.INTEL),
            DATA / "hybrid.sums",
        )
        note = rf"several kinds of CPUs \({self.INTEL} pmu=10, {self.INTEL} pmu=4\) are added up"
        self.assertEqual(self.values(path, note)["CPI"], 1.6)
        native(path, "--sums", sums)
        for done in native(sums), run("/usr/bin/python3", SCRIPT, "--sums", sums, stderr=-1):
            self.assertRegex(done.stderr, note)
        for inputs in path, sums:
            done = native(inputs, "-M", "tma_info_thread_ipc")
            self.assertIn("-M: these are sums of several kinds of CPUs", done.stderr)
            self.assertEqual(done.stdout, "")
        # two groups on one kind
        self.values(rounds("core", [groups[0], groups[0]], [[300, 300], [300, 75]], self.INTEL))

    def test_several_periods(self):
        """A window stands for its period, and shares are of windows."""
        groups, counts = [self.BOTH, self.BOTH], [[300, 300], [300, 300]]
        self.values(
            rounds("periods", groups, counts, periods=(999_700, 99_700)),
            "with several periods: functions weigh more",
        )
        self.values(rounds("periods", groups, counts))


class Manual(unittest.TestCase):
    """perf-functions(1) says what there is, and all of it."""

    @classmethod
    def setUpClass(cls) -> None:
        text = (LINUX / "tools/perf/Documentation/perf-functions.txt").read_text()
        cls.sections = dict(
            re.findall(r"^([A-Z ]+)\n-+\n((?s:.*?))(?=^[A-Z ]+\n-+\n|\Z)", text, re.M)
        )

    def test_options(self):
        there = set(run(PERF, "functions", "report", "--list-opts").stdout.split())
        told = set(
            re.findall(r"^(--[a-z0-9-]+)(?:=\S*)?::$", self.sections["REPORT OPTIONS"], re.M)
        )
        self.assertEqual(told, there)

    def test_columns(self):
        """Those of the script, which has a table of them."""
        spec = importlib.util.spec_from_file_location("metrics", SCRIPT)
        metrics = importlib.util.module_from_spec(spec)
        sys.modules["metrics"] = metrics
        spec.loader.exec_module(metrics)
        told = [
            word
            for line in self.sections["COLUMNS"].splitlines()
            for word in line[:15].split()
            if line[14:15] == " "
        ]
        for metric in metrics.METRICS:
            self.assertIn(metric.column, told)


class Completion(unittest.TestCase):
    """What bash makes of a line, by perf-completion.sh."""

    def complete(self, *words_: str) -> list[str]:
        """The words that the last one, which may be empty, may become."""
        commands = """source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _perf 2>/dev/null; echo "${COMPREPLY[*]}" """
        path = f"{PERF.parent}:/usr/bin:/bin"
        return must(
            "bash",
            "-c",
            f"PATH={path}; {commands}",
            LINUX / "tools/perf/perf-completion.sh",
            "perf",
            *words_,
        ).split()

    def test_subcommands(self):
        self.assertEqual(self.complete("func"), ["functions"])
        self.assertEqual(self.complete("functions", ""), ["record", "report"])
        self.assertEqual(self.complete("functions", "rec"), ["record"])

    def test_options(self):
        """Those of the subcommand, though there is a command of its name."""
        there = run(PERF, "functions", "report", "--list-opts").stdout.split()
        self.assertEqual(self.complete("functions", "report", "--"), there)
        self.assertEqual(self.complete("functions", "report", "--ci", "--fa"), ["--fail-on"])
        self.assertIn("--all-cpus", self.complete("functions", "record", "--all"))
        self.assertEqual(self.complete("report", "--fa"), [])
        self.assertIn("--header", self.complete("report", "--hea"))

    def test_files(self):
        """No words, so that bash looks for files."""
        self.assertEqual(self.complete("functions", "report", ""), [])
        self.assertEqual(self.complete("functions", "report", "--diff", "re"), [])


class Record(unittest.TestCase):
    def command(self, *options: str) -> str:
        """The perf record that is run."""
        done = run(PERF, "functions", "record", "-v", "-o", DATA / "record.data", *options)
        lines = [line for line in done.stdout.splitlines() if line.startswith("calling: ")]
        self.assertEqual(len(lines), 1)
        return lines[0]

    def test_default_group(self):
        for options in (
            ("true",),
            ("--", "true"),
            ("-F", "99", "--", "sh", "-e", "x"),
            ("true", "-e", "cycles"),
        ):
            self.assertRegex(
                self.command(*options),
                r" -T --sample-cpu -e \{cycles/period=999700,alt-period=300/[a-z,-]*\}:uS -v -o .*"
                + " ".join(options),
            )

    def test_own_events(self):
        for options in (
            ("-e", "faults", "true"),
            ("--event=faults", "true"),
            ("-g", "--event", "faults", "--", "true"),
            ("-ge", "faults", "true"),
        ):
            self.assertNotIn("alt-period", self.command(*options))


if __name__ == "__main__":
    unittest.main()
