# SPDX-License-Identifier: GPL-2.0
"""Recordings of many hosts.

Each host has CPUs with one thread each. Windows follow long intervals, most of them in the same
function. There are losses and throttling. Some functions of one library share a name, and some
hosts see only one of them.
"""

import random
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.env import PERF, must

EVENTS = "cycles", "branch-misses", "instructions"  # the leader, then by name, as in a sums file
# sums of squares are whole numbers of less than 2^53, which doubles add up without an error
LONG, WINDOW, CPUS, BASE, SPACE = 99700, 300, 4, 0x10000000, 64


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
    """One host's recording."""

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
        self.lost = self.throttled = 0

    def write(self, path: Path, samples: int) -> None:
        """Makes the recording; samples are those of the group."""
        rand, clock, pid = self.random.random, 10**9, 1000
        writer = pw.Writer([self.group])
        for cpu in range(CPUS):
            writer.comm(pw.Where(clock, pid, pid + cpu, cpu), "program")
        writer.mmap2(pw.Where(clock, pid, pid), BASE, 0x100000, str(self.code))
        values = [[0, 0, 0] for _ in range(CPUS)]
        opened, seen = [-1] * CPUS, [False] * CPUS
        for number in range(samples):
            clock += 1 + int(2000 * rand())
            cpu = number % CPUS
            if rand() < 0.002:
                self.lost += 2
                writer.lost(pw.Where(clock, pid, pid + cpu, cpu), 100 + cpu, 2)
            if rand() < 0.002 and seen[cpu]:
                self.throttled += 1
                writer.throttle(pw.THROTTLE, pw.Where(clock, pid, pid + cpu, cpu), 100 + cpu)
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
            opened[cpu], seen[cpu] = place, True
            now = values[cpu] = [value + count for value, count in zip(values[cpu], counts)]
            writer.sample(
                self.group[0],
                pw.Where(clock, pid, pid + cpu, cpu),
                BASE + self.starts[place] + int(rand() * SPACE),
                counts[0],
                [(event.ids[cpu], value) for event, value in zip(self.group, now)],
                misc=pw.MISC_USER | pw.MISC_EXACT_IP,  # no entry is near
            )
            if number % 1000 == 999:
                writer.finished_round()
        writer.times = (10**9 + 1, clock)
        writer.write(path)


def sums(paths: Iterable[Path]) -> bytes:
    """The sums file of several hosts, of which test_functions.py tests that it is right."""
    words = PERF, "functions", "report", "--sums", "-", *paths
    return must(*words, stderr=subprocess.DEVNULL).encode()
