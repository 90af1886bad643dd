# SPDX-License-Identifier: GPL-2.0
"""Recordings of many hosts, and their sums, which Python's integers add up.

Each host has CPUs with one thread each. Windows follow long intervals, most of them in the same
function. There are losses and throttling. Some functions of one library share a name, and some
hosts see only one of them.
"""

import random
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.harness import perfwrite as pw
from tests.harness import sumsfile
from tests.harness.env import must

EVENTS = "cycles", "branch-misses", "instructions"  # the leader, then by name, as in a sums file
MATCHED, BEGUN, TOTALS = 0, 2, 4  # indices in the numbers of windows: the first total is of cycles
# sums of squares are whole numbers of less than 2^53, which doubles add up without an error
LONG, WINDOW, CPUS, BASE, SPACE = 99700, 300, 4, 0x10000000, 64
SAMPLE = struct.Struct("<IHH QQIIQIIQ Q6Q")
Key = tuple[str, str, str]  # symbol, DSO, address as in a sums file
Counts = tuple[int, ...]


class Interval(NamedTuple):
    """An interval of a CPU, and the functions in which it begins and ends.

    It is broken if a record was lost or the event throttled in it, or if its beginning is not
    known, as in the first interval.
    """

    time: int  # of its end
    begin: int
    end: int
    counts: Counts
    is_window: bool
    is_broken: bool


def library(path: Path, number: int = 40) -> list[str]:
    """Makes a library of functions of 64 bytes, and returns their names.

    The last fifth of the functions repeat names of others.
    """
    unique = number - number // 5
    parts = [f"function_{place}" for place in range(unique)], [
        f"function_{place}" for place in range(0, 4 * (number // 5), 4)
    ]
    sources = [path.with_suffix(suffix) for suffix in (".1.s", ".2.s")]
    for source, names in zip(sources, parts):
        source.write_text(
            '.section .note.GNU-stack,"",@progbits\n.text\n'
            + "".join(
                f".type {name}, @function\n{name}: .skip {SPACE}\n.size {name}, {SPACE}\n"
                for name in names
            )
        )
    must("gcc", "-shared", "-nostdlib", "-Wl,--build-id=none", "-o", path, *sources)
    return parts[0] + parts[1]


def addresses(path: Path) -> list[int]:
    """The addresses of the functions, in their order."""
    return sorted(
        int(line.split()[0], 16) for line in must("nm", path).splitlines() if " function_" in line
    )


class Host:
    """One host's recording and its sums."""

    def __init__(self, number: int, code: Path, names: list[str], most: int = 40) -> None:
        self.random = random.Random(number)
        self.code, self.names, self.starts = code, names, addresses(code)
        self.places = self.random.sample(range(len(names)), most)
        self.group = [
            pw.Event(
                name,
                0,
                config,
                [10 * config + 100 + cpu for cpu in range(CPUS)],
                *((LONG, WINDOW) if not config else ()),
            )
            for name, config in zip(EVENTS, (0, 5, 1))
        ]
        self.intervals: list[Interval] = []
        self.lost = self.throttled = 0

    def write(self, path: Path, samples: int, pid: int = 1000) -> None:
        """Makes the recording; samples are those of the group."""
        # pylint: disable=too-many-locals
        rand, clock = self.random.random, 10**9
        writer = pw.Writer([self.group])
        for cpu in range(CPUS):
            writer.comm(pw.Where(clock, pid, pid + cpu, cpu), "program")
        writer.mmap2(pw.Where(clock, pid, pid), BASE, 0x100000, str(self.code))
        values = [[0, 0, 0] for _ in range(CPUS)]
        opened, broken, seen = [-1] * CPUS, [True] * CPUS, [False] * CPUS
        for number in range(samples):
            clock += 1 + int(2000 * rand())
            cpu = number % CPUS
            if rand() < 0.002:
                self.lost += 2
                writer.lost(pw.Where(clock, pid, pid + cpu, cpu), 100 + cpu, 2)
                broken = [True] * CPUS
            if rand() < 0.002 and seen[cpu]:
                self.throttled += 1
                writer.throttle(pw.THROTTLE, pw.Where(clock, pid, pid + cpu, cpu), 100 + cpu)
                broken[cpu] = True
            is_window = number // CPUS % 2 == 1
            place = (
                opened[cpu]
                if is_window and rand() < 0.8
                else self.places[int(rand() * len(self.places))]
            )
            counts = (
                (WINDOW if is_window else LONG) + int(rand() * 30),
                int(rand() * 1.1),
                1 + place + int(rand() * 200),
            )
            clock += 1
            self.intervals.append(
                Interval(clock, opened[cpu], place, counts, is_window, broken[cpu])
            )
            opened[cpu], broken[cpu], seen[cpu] = place, False, True
            now = values[cpu] = [value + count for value, count in zip(values[cpu], counts)]
            writer.records.append(
                SAMPLE.pack(
                    pw.SAMPLE,
                    pw.MISC_USER | pw.MISC_EXACT_IP,  # no entry is near
                    SAMPLE.size,
                    100 + cpu,
                    BASE + self.starts[place] + int(rand() * SPACE),
                    pid,
                    pid + cpu,
                    clock,
                    cpu,
                    0,
                    counts[0],
                    3,
                    now[0],
                    100 + cpu,
                    now[1],
                    150 + cpu,
                    now[2],
                    110 + cpu,
                )
            )
            if number % 1000 == 999:
                writer.finished_round()
        writer.times = (10**9 + 1, clock)
        writer.write(path)

    def sums(self) -> dict[int, tuple[list[float], list[float]]]:
        """The numbers of each function, in the order of a sums file: of windows and of samples.

        They are empty for a function without any.
        """
        begun: Counter[int] = Counter()
        ended: Counter[int] = Counter()
        matched: dict[int, list[Counts]] = {}
        periods: dict[int, list[int]] = {}
        for one in self.intervals:
            periods.setdefault(one.end, []).append(one.counts[0])
            if not one.is_window:
                continue
            ended[one.end] += 1
            begun[one.begin] += not one.is_broken
            if one.begin == one.end and not one.is_broken:
                matched.setdefault(one.end, []).append(one.counts)
        sums = {}
        for place in {**periods, **ended, **begun}:
            windows = matched.get(place, [])
            numbers = sumsfile.window_numbers(windows, len(EVENTS))
            numbers[2:4] = begun[place], ended[place]
            sums[place] = (
                numbers if begun[place] or ended[place] else [],
                sumsfile.sample_numbers([periods[place]]) if place in periods else [],
            )
        return sums

    def every(self, is_window: bool) -> list[float]:
        """The numbers of all windows, or of all long intervals."""
        known = (one for one in self.intervals if not one.is_broken)
        counts = [one.counts for one in known if one.is_window is is_window]
        return [len(counts)] * 2 + [0, 0] + sumsfile.values(counts, len(EVENTS))

    def table(self) -> dict[Key, tuple[list[float], list[float]]]:
        """The sums by symbol, DSO and address as in a sums file."""
        sums = self.sums()
        seen = [self.names[place] for place in sums]
        return {
            (
                self.names[place],
                str(self.code),
                f"{self.starts[place]:#x}" if seen.count(self.names[place]) > 1 else "-",
            ): numbers
            for place, numbers in sums.items()
        }


def add(one: list[float], other: list[float]) -> list[float]:
    """The sum of two lists of numbers, of which one may be empty."""
    return [a + b for a, b in zip(one, other)] if one and other else one or other


def total(hosts: Iterable[Host]) -> bytes:
    """The sums file of several hosts."""
    table: dict[Key, tuple[list[float], list[float]]] = {}
    hosts = list(hosts)
    for host in hosts:
        for key, (windows, samples) in host.table().items():
            old = table.get(key, ([], []))
            table[key] = add(old[0], windows), add(old[1], samples)
    every = [
        [sum(one) for one in zip(*(host.every(kind) for host in hosts))] for kind in (True, False)
    ]
    lines = [
        *(("by", "symbol", 0), ("lost", sum(host.lost for host in hosts))),
        *(("throttled", sum(host.throttled for host in hosts)), ("flags", 0, 0, 0)),
    ]
    rows = sorted(table, key=lambda key: (key[:2], -1 if key[2] == "-" else int(key[2], 16)))
    for number, (source, events) in enumerate((("windows", EVENTS), ("samples", EVENTS[:1]))):
        lines += [("set", source, 2, 0, int(source == "windows"), 0, *events)]
        lines += [("group", LONG, 0, WINDOW, 0, 0, 0)]
        throttled = int(source == "samples" and any(host.throttled for host in hosts))
        lines += [("event", event, 1, throttled, 0, 0, 1) for event in events]
        zeros = [0] * len(sumsfile.sample_numbers([[]]))
        for word, numbers in zip(("windows", "longs"), every):
            lines.append((word, *(zeros if number else numbers)))
        lines += [("row", *key, *table[key][number]) for key in rows if table[key][number]]
    return "".join(sumsfile.line(*line) for line in (*lines, ("end",))).encode()
