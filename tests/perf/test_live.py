# SPDX-License-Identifier: GPL-2.0
"""Recordings that are read as perf functions top reads them, live.

perf record reads the buffers of all CPUs in rounds, one CPU after the other. So in a pipe, an event
of one CPU may come behind later events of other CPUs. The truth is a report of a file with the same
records in the order of their times.
"""

import collections
import random
import re
import unittest
from subprocess import DEVNULL

from tests.harness import perfdata as pw
from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, TOP, must, run
from tests.harness.functionsfuzz import compiler_words, rest_of_perf
from tests.harness.recording import LONG, WINDOW

DATA = CHECK / "live"
PROGRAM = DATA / "live"
CPUS = 3
PIDS = 100, 200
TIME = 400_000_000  # ns that a recording takes
ROUND = 20_000_000  # ns from one round to the next
GAP = 2_000_000  # ns from one CPU to the next in a round
NUMBER = 2000  # of events


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    must(
        *("gcc", "-w", *compiler_words(), "-o", PROGRAM, TOP / "tests/harness/live.c"),
        *rest_of_perf(DATA),
    )


class Events:
    """Records of some CPUs. Each program runs in a library that others replace now and then.

    window: 0 if there is one period. others: how many records there are of each kind besides
    samples of the leader: map, lost, throttle, and without a window member, a sample of its own.
    """

    def __init__(self, seed: int, flags: int = 0, window: int = WINDOW, **others: int) -> None:
        self.random = random.Random(seed)
        ids = [list(range(first, first + CPUS)) for first in (1, 11)]
        flags |= pw.FLAG_SAMPLE_ID_ALL
        self.group = [
            pw.Event("cycles", 0, 0, ids[0], LONG, window, flags=flags),
            pw.Event("instructions", 0, 1, ids[1], 0 if window else LONG, flags=flags),
        ]
        self.values = [[0, 0] for _ in range(CPUS)]
        self.writer = pw.Writer([self.group])
        kinds = [kind for kind, number in others.items() for _ in range(number)]
        kinds += ["sample"] * (NUMBER - 1 - len(kinds))
        self.random.shuffle(kinds)
        # by time: time, CPU, record; the first sample is the first one in a pipe, too
        self.records: list[tuple[int, int, bytes]] = []
        times = sorted(self.random.sample(range(1, TIME), NUMBER))
        for time, kind in zip(times, ["sample", *kinds], strict=True):
            cpu = self.random.randrange(CPUS) if self.records else 0
            pid = self.random.choice(PIDS)
            self.write(kind, pw.Where(time, pid, pid, cpu))
            self.records.append((time, cpu, self.writer.records[-1]))

    def write(self, kind: str, where: pw.Where) -> None:
        number = self.group[0].ids[where.cpu]
        if kind == "map":
            self.writer.mmap2(where, 0x1000, 0x1000, f"/lib/{self.random.randrange(5)}.so")
        elif kind == "lost":
            self.writer.lost(where, number, 1)
        elif kind == "throttle":
            self.writer.throttle(pw.THROTTLE, where, number)
        else:
            cycles = self.random.choice((LONG, WINDOW))
            values = self.values[where.cpu]
            values[0] += cycles
            values[1] += self.random.randrange(cycles)
            values = [(event.ids[where.cpu], value) for event, value in zip(self.group, values)]
            address = self.random.randrange(0x1000, 0x1004)
            own = self.group[kind == "member"].ids[where.cpu]
            self.writer.sample(self.group[0], where, address, cycles, values, number=own)

    def ordered(self) -> str:
        """The sums of a file with the records in the order of time."""
        writer = pw.Writer([self.group], [record for *_, record in self.records])
        writer.write(DATA / "ordered.data")
        report = PERF, "functions", "report", "-i", DATA / "ordered.data", "--sums", "-"
        return must(*report, stderr=DEVNULL)  # notes about losses

    def live(self, *parts: str, rounds: int = TIME // ROUND) -> str:
        """The sums of a pipe with the records in rounds; after this number, perf record was killed.

        parts: "parts" for sums after each round.
        """
        writer = pw.Writer([self.group])
        rest = self.records
        for number in range(1, TIME // ROUND + 2):
            for cpu in range(CPUS):
                end = number * ROUND + cpu * GAP
                read = [one for one in rest if one[1] == cpu and one[0] < end]
                rest = [one for one in rest if one not in read]
                writer.records += [record for *_, record in read]
            if number <= rounds:
                writer.finished_round()
        writer.write_pipe(DATA / "live.pipe")
        done = run(PROGRAM, DATA / "live.pipe", *parts, stderr=-1)
        if done.returncode or "out of order" in done.stderr:
            raise AssertionError(done.stderr)
        return done.stdout


def observed(sums: str) -> tuple:
    """What was observed by function, in all, and lost. Event samples are without their periods:
    only a whole recording tells what the events have counted, to which these are scaled.
    """
    rows, every = sumsfile.read(sums)
    for row in rows.values():
        if row["source"] == "samples":
            del row["totals"], row["squares"]
    every = [one for one in every if one["source"] != "samples"]
    return rows, every, re.findall(r"^(?:lost|throttled)\t.*", sums, re.M)


def samples(sums: str) -> collections.Counter[tuple]:
    """The number of event samples by function."""
    rows, _ = sumsfile.read(sums)
    return collections.Counter(
        {name: row["number"] for (name, source, _), row in rows.items() if source == "samples"}
    )


class Live(unittest.TestCase):
    maxDiff = 3000

    def check(self, events: Events, **more: int) -> None:
        expected = observed(events.ordered())
        self.assertGreater(len(expected[0]), 3)
        self.assertEqual(observed(events.live(**more)), expected)

    def test_others_are_in_order(self):
        """A sample is in the library that its program had then; a loss breaks windows over it."""
        for seed in range(5):
            with self.subTest(seed):
                self.check(Events(seed, map=10, lost=3, throttle=3))

    def test_inherited(self):
        """The counts are those of threads, which change their CPUs."""
        for seed in range(3):
            with self.subTest(seed):
                self.check(Events(seed, pw.FLAG_INHERIT, map=5))

    def test_members_sample(self):
        """Their samples are in the leader's stream, but have to be parsed."""
        for seed in range(3):
            with self.subTest(seed):
                self.check(Events(seed, window=0, member=10))

    def test_parts(self):
        """Each round has its samples after the next one, and no sample comes twice."""
        events = Events(4, map=3)
        parts = [samples(part) for part in events.live("parts").split("perf-function-sums")[1:]]
        self.assertEqual(sum(parts, collections.Counter()), samples(events.ordered()))
        self.assertGreaterEqual(sum(map(bool, parts)), TIME // ROUND - 2)

    def test_killed(self):
        """Samples that wait for the end of a round are not lost."""
        for rounds in 0, 1, TIME // ROUND - 1:
            with self.subTest(rounds):
                self.check(Events(3, map=2), rounds=rounds)
