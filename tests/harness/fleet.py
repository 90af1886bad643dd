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

from tests.harness import perfdata as pw
from tests.harness import sumsfile
from tests.harness.env import must

EVENTS = "cycles", "branch-misses", "instructions"  # the leader, then by name, as in a sums file
PAIRS = len(EVENTS) * (len(EVENTS) + 1) // 2
MATCHED, BEGUN = 2, 4  # their indices in the numbers of a function
TOTALS = 6  # index of the first total, after the numbers of samples and bursts
VALUES = len(EVENTS) + PAIRS
LONG, WINDOW, CPUS, BASE, SPACE = 999700, 300, 4, 0x10000000, 64
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
                    pw.MISC_USER,
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

    def windows_of(self, windows: list[Interval]) -> tuple[list[int], list[int]]:
        """The numbers of windows and bursts; the totals and products.

        No window is in a burst, so windows and bursts are equally many.
        """
        counts = sumsfile.values([window.counts for window in windows], len(EVENTS))
        return [len(windows)] * 2, counts

    def sums(self) -> dict[int, list[int]]:
        """The numbers of each function, in the order of a sums file."""
        opened: Counter[int] = Counter()
        windows: dict[int, list[Interval]] = {}
        matched: dict[int, list[Interval]] = {}
        begun: dict[int, list[Interval]] = {}
        for one in self.intervals:
            if not one.is_window:
                opened[one.end] += 1
                continue
            windows.setdefault(one.end, []).append(one)
            if one.is_broken:
                continue
            begun.setdefault(one.begin, []).append(one)
            if one.begin == one.end:
                matched.setdefault(one.end, []).append(one)
        sums = {}
        for place in {**opened, **windows, **begun}:
            numbers, values = self.windows_of(matched.get(place, []))
            numbers_begun, values_begun = self.windows_of(begun.get(place, []))
            sums[place] = [
                opened[place],
                len(windows.get(place, [])),
                *numbers,
                *numbers_begun,
                *values,
                *values_begun,
            ]
        return sums

    def all_intervals(self) -> list[int]:
        """The numbers in the lines of all intervals: of windows, and of long ones."""
        known = [one for one in self.intervals if not one.is_broken]
        lines = sumsfile.intervals(
            len(EVENTS),
            *([one.counts for one in known if one.is_window is kind] for kind in (True, False)),
        )
        return [int(word) for word in lines.split() if word.isdigit()]

    def table(self) -> dict[Key, list[int]]:
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


def total(hosts: Iterable[Host]) -> bytes:
    """The sums file of several hosts."""
    table: dict[Key, list[int]] = {}
    hosts = list(hosts)
    for host in hosts:
        for key, numbers in host.table().items():
            table[key] = [a + b for a, b in zip(table.get(key, [0] * len(numbers)), numbers)]
    every = [str(sum(numbers)) for numbers in zip(*(host.all_intervals() for host in hosts))]
    of_windows = 1 + len(EVENTS) + PAIRS
    lines = [
        "by\tsymbol\t0",
        f"lost\t{sum(host.lost for host in hosts)}",
        f"throttled\t{sum(host.throttled for host in hosts)}",
        "\t".join(("group", "auto", str(LONG), "0", str(WINDOW), "0", "0", "0", *EVENTS)),
        "\t".join(("windows", *every[:of_windows])),
        "\t".join(("long", *every[of_windows:])),
    ]
    for key, numbers in sorted(
        table.items(),
        key=lambda item: (item[0][:2], -1 if item[0][2] == "-" else int(item[0][2], 16)),
    ):
        lines.append("\t".join(("sums", *key, *map(str, numbers))))
    return "\n".join((*lines, "end", "")).encode()
