# SPDX-License-Identifier: GPL-2.0
"""Recordings of a simulated program in which each event samples itself.

The program calls functions at random, each with rates of its own. Every event is counted where it
happens, and a sample ends after a period of events, as in the kernel.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.harness import perfdata as pw
from tests.harness.simulation import LOADED, Libraries

EVENTS = ("cycles", "instructions", "branch-misses", "cache-misses")
CONFIGS = {"cycles": 0, "instructions": 1, "cache-misses": 3, "branch-misses": 5}
KINDS = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD | pw.IDENTIFIER


def ungrouped(*names: str, period: int = 1000) -> list[list[pw.Event]]:
    """Events that are in no group, with ids from 1 on."""
    return [
        [pw.Event(name, 0, CONFIGS[name], [at], period, sample_type=KINDS)]
        for at, name in enumerate(names, 1)
    ]


def named_once(libraries: Libraries) -> dict[str, tuple[str, int]]:
    """The functions whose name no other has, with their libraries and addresses."""
    names = Counter(libraries.functions.values())
    return {name: place for place, name in libraries.functions.items() if names[name] == 1}


class Function(NamedTuple):
    """How often it is called, the mean of its cycles, and its events per cycle."""

    calls: float
    cycles: float
    rates: Sequence[float]  # of EVENTS


class Clock:
    """Ends a sample every `period` events, or as the kernel does for a frequency: it begins with a
    period of 1, and moves an eighth towards the one that would have met the frequency.
    """

    def __init__(self, period: float, frequency: float = 0) -> None:
        """frequency: samples per cycle, 0 for a fixed period."""
        self.frequency = frequency
        self.period = 1.0 if frequency else period
        self.left, self.last = self.period, 0.0

    def advance(self, count: float, now: float, cycles: float) -> list[int]:
        """The periods that end within `count` events, which take `cycles` from `now` on."""
        ended, at = [], 0.0
        while count - at >= self.left:
            at += self.left
            ended.append(round(self.period))
            if self.frequency:
                time = now + cycles * at / count
                wanted = self.period / max((time - self.last) * self.frequency, 1e-9)
                self.period = max(self.period + (min(wanted, 1e9) - self.period) / 8, 1)
                self.last = time
            self.left = self.period
        self.left -= count - at
        return ended


class Run:
    """One run of a program: what each event counts by function, and the samples."""

    def __init__(
        self, rng: random.Random, functions: Sequence[Function], clocks: Sequence[Clock], end: float
    ) -> None:
        """end: the length in cycles; clocks: of EVENTS."""
        self.counts = [Counter() for _ in EVENTS]
        self.samples: list[tuple[int, int, int]] = []  # event, function, period
        calls = [function.calls for function in functions]
        now = 0.0
        while now < end:
            for place in rng.choices(range(len(functions)), calls, k=100):
                function = functions[place]
                cycles = rng.expovariate(1 / function.cycles)
                for event, (rate, clock) in enumerate(zip(function.rates, clocks)):
                    self.counts[event][place] += cycles * rate
                    for period in clock.advance(cycles * rate, now, cycles):
                        self.samples.append((event, place, period))
                now += cycles

    def write(self, path: Path, libraries: Libraries, size: int = 1) -> None:
        """A recording of the samples, at functions of the libraries, in groups of this size."""
        events = [
            pw.Event(name, 0, CONFIGS[name], [1 + at], 4000, sample_type=KINDS)
            for at, name in enumerate(EVENTS)
        ]
        for event in events:
            event.flags |= pw.FLAG_FREQ
        writer = pw.Writer([events[at : at + size] for at in range(0, len(events), size)])
        writer.comm(pw.Where(1, 10, 10), "prog")
        for library, base in LOADED.items():
            writer.mmap2(pw.Where(2, 10, 10), base, 0x10000, str(libraries.path(library)))
        addresses = [LOADED[library] + at + 48 for library, at in named_once(libraries).values()]
        for number, (event, place, period) in enumerate(self.samples):
            writer.sample(
                events[event],
                pw.Where(1000 * (10 + number), 10, 10),
                addresses[place],
                period,
                [],
                number=1 + event,
            )
        writer.write(path)


def record(path: Path, libraries: Libraries, seed: int) -> Counter:
    """Records a small program; returns what each event counts, by function and event."""
    names = list(named_once(libraries))
    functions = [Function(1, 1000, (1, 0.5, 0.01, 0.005)) for _ in names]
    clocks = [Clock(period) for period in (20011, 10007, 211, 101)]
    done = Run(random.Random(seed), functions, clocks, 2_000_000)
    done.write(path, libraries)
    counts: Counter = Counter()
    for event, place, period in done.samples:
        counts[names[place], EVENTS[event]] += period
    return counts


def counts_of(table: Iterable[dict[str, Any]]) -> Counter:
    """The same from the rows of perf functions report -j."""
    counts: Counter = Counter()
    for row in table:
        for event, own in row["events"].items():
            counts[row["symbol"], event] += round(own["value"]) if own else 0
    return +counts
