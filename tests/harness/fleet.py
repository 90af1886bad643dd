# SPDX-License-Identifier: GPL-2.0
"""Recordings of many hosts, and their sums, which the generator adds up in Python's integers.

Each host has CPUs with one thread each. Windows follow long intervals, most of
them in the same function; there are losses, throttles, and functions of one
name in one library, of which some hosts see only one.
"""

import random
import struct
from collections.abc import Iterable
from pathlib import Path

from tests.harness import perfwrite as pw
from tests.harness.env import must

EVENTS = "cycles", "instructions", "branch-misses"
PRODUCTS = [(a, b) for a in range(3) for b in range(a, 3)]
TOTALS = 6  # where the totals begin, behind the numbers of samples
VALUES = len(EVENTS) + len(PRODUCTS)
LONG, WINDOW, CPUS, BASE, SPACE = 999700, 300, 4, 0x10000000, 64
SAMPLE = struct.Struct("<IHH QQIIQIIQ Q6Q")
Key = tuple[str, str, str]  # symbol, DSO, address as in a sums file


def library(path: Path, number: int = 40) -> list[str]:
    """Makes a library of functions of 64 bytes.

    The last fifth has names of others. Returns the names.
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
    """Where the functions are, in their order."""
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
            for name, config in zip(EVENTS, (0, 1, 5))
        ]
        self.sums: dict[int, list[int]] = {}
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
                1 + place + int(rand() * 200),
                int(rand() * 1.1),
            )
            if is_window:
                self.count(place, counts, opened[cpu], broken[cpu])
            else:
                self.of(place)[0] += 1
            opened[cpu], broken[cpu], seen[cpu] = place, False, True
            now = values[cpu] = [value + count for value, count in zip(values[cpu], counts)]
            clock += 1
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
                    110 + cpu,
                    now[2],
                    150 + cpu,
                )
            )
            if number % 1000 == 999:
                writer.finished_round()
        writer.times = (10**9 + 1, clock)
        writer.write(path)

    def of(self, place: int) -> list[int]:
        """The sums of a function: numbers of samples; totals and products, those of the windows
        that count and those of the windows that begin there."""
        return self.sums.setdefault(place, [0] * (TOTALS + 2 * VALUES))

    def count(self, place: int, counts: tuple[int, ...], begin: int, broken: bool) -> None:
        """Add a window to the sums of the functions at its two ends."""
        self.of(place)[1] += 1
        values = *counts, *(counts[a] * counts[b] for a, b in PRODUCTS)
        for function, number, first in ((place, 2, 0), (begin, 4, VALUES)):
            if broken or (number == 2 and begin != place):
                continue
            numbers = self.of(function)
            numbers[number] += 1
            numbers[number + 1] += 1  # no burst
            for slot, value in enumerate(values):
                numbers[TOTALS + first + slot] += value

    def table(self) -> dict[Key, list[int]]:
        """The sums by what a sums file calls the functions."""
        seen = [self.names[place] for place in self.sums]
        return {
            (
                self.names[place],
                str(self.code),
                f"{self.starts[place]:#x}" if seen.count(self.names[place]) > 1 else "-",
            ): numbers
            for place, numbers in self.sums.items()
        }


def total(hosts: Iterable[Host]) -> bytes:
    """The sums file of several hosts.

    Its events are in order: the leader, then the others by name.
    """
    order = [0, 2, 1]
    products = [
        PRODUCTS.index((min(order[a], order[b]), max(order[a], order[b]))) for a, b in PRODUCTS
    ]
    table: dict[Key, list[int]] = {}
    hosts = list(hosts)
    for host in hosts:
        for key, numbers in host.table().items():
            table[key] = [a + b for a, b in zip(table.get(key, [0] * len(numbers)), numbers)]
    lines = [
        "by\tsymbol\t0",
        f"lost\t{sum(host.lost for host in hosts)}",
        f"throttled\t{sum(host.throttled for host in hosts)}",
        "\t".join(
            (
                "group",
                "auto",
                str(LONG),
                "0",
                str(WINDOW),
                "0",
                "0",
                "0",
                *(EVENTS[slot] for slot in order),
            )
        ),
    ]
    for key, numbers in sorted(
        table.items(),
        key=lambda item: (item[0][:2], -1 if item[0][2] == "-" else int(item[0][2], 16)),
    ):
        sums = numbers[:TOTALS] + [
            numbers[TOTALS + first + slot]
            for first in (0, VALUES)
            for slot in (*order, *(3 + product for product in products))
        ]
        lines.append("\t".join(("sums", *key, *map(str, sums))))
    return "\n".join((*lines, "end", "")).encode()
