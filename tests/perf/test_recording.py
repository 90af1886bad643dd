# SPDX-License-Identifier: GPL-2.0
"""Recordings of the emulated machine: alternation, plain profiles, threads and children.

perfdata.py reads the samples, not perf. `benchmark --truth` counts what the benchmark does, one
instruction at a time, without a PMU.
"""

import math
import re
import unittest
from itertools import pairwise

from tests.harness import perfdata as pw
from tests.harness.env import ARCH, BUILD, CHECK, PERF, in_guest, must
from tests.harness.machines import RECORD
from tests.harness.truth import Truth, read_truth

MINUTES = 2
MACHINES = "arm64"

SHARE = CHECK / "recording"
LONG, WINDOW = 999700, 300
MEMBERS = "instructions,page-faults"
COMMANDS = (
    RECORD
    + f"""
benchmark --truth --faults 0 1 > /share/truth
record alternate.data '{{cycles/period={LONG},alt-period={WINDOW}/,{MEMBERS}}}:uS' benchmark --faults 0 1
record threads.data '{{cycles/period=99700,alt-period=300/,instructions}}:uS' benchmark --threads 3 --iterations 500 0 1
record children.data '{{cycles/period=99700,alt-period=300/,instructions}}:uS' \\
	sh -c 'benchmark --iterations 500 0 1; benchmark --iterations 1000 0 1 & benchmark --iterations 500 1 1; wait'
profile() {{
	perf record -q -T -m 16M -o profile.data "$@" -e cycles:u -- benchmark 0 1 > /dev/null
}}
profile; mv profile.data /share/plain-frequency.data
profile --alt-period; mv profile.data /share/option-frequency.data
profile -c 199700; mv profile.data /share/plain-period.data
profile -c 199700 --alt-period; mv profile.data /share/option-period.data
"""
)


def setUpModule() -> None:
    for old in SHARE.glob("*"):
        old.unlink()
    in_guest(COMMANDS, share=SHARE, timeout=1800)


def read(name: str) -> pw.Contents:
    return pw.read(SHARE / f"{name}.data")


def truth() -> Truth:
    """Length of a call, share, and page faults in a call, by function of the benchmark."""
    return read_truth((SHARE / "truth").read_text())


def deltas(recording: pw.Contents, number: int = 0) -> list[int]:
    """The counts of one group member between the samples of the only stream."""
    values = [list(sample.values.values())[number] for sample in recording.stream()]
    return [late - early for early, late in pairwise(values)]


class Alternation(unittest.TestCase):
    """Long, window, long, window ...: the selftests say it of all kinds of events."""

    def test_reported_period_is_what_was_counted(self):
        recording = read("alternate")
        stream = recording.stream()
        self.assertGreater(len(stream), 1500)
        periods = [sample.period for sample in stream]
        self.assertEqual((set(periods[::2]), set(periods[1::2])), ({LONG}, {WINDOW}))
        self.assertEqual(periods[1:], deltas(recording))
        self.assertEqual(stream[0].period, list(stream[0].values.values())[0])


class PlainProfile(unittest.TestCase):
    """perf report shows the same of a recording with --alt-period and of one without it."""

    def check(self, name: str, alternates: bool) -> int:
        """Shares are those of the benchmark, within chance. Returns the number of cycles."""
        recording = read(name)
        fixed = recording.leader().sample_period  # samples with a fixed period do not say it
        weights = [sample.fields.get("period", fixed) for sample in recording.samples]
        self.assertEqual({weight == WINDOW for weight in weights[1::2]}, {alternates})
        options = f"-i {SHARE / name}.data --symfs {BUILD / 'root' / ARCH} --stdio -F period,sym"
        out = must(PERF, "report", *options.split())
        rows = {row[1]: int(row[0]) for row in re.findall(r"(?m)^ *(\d+) +\[.\] (\S+)", out)}
        whole, number = sum(rows.values()), sum(weights) ** 2 / sum(one**2 for one in weights)
        for function, row in truth().items():
            error = math.sqrt(row.share * (1 - row.share) / number)
            self.assertLess(abs(rows[function] / whole - row.share), 4 * error, (name, function))
        return whole

    def test_a_sample_weighs_as_much_as_its_period(self):
        for kind in "frequency", "period":
            plain = self.check(f"plain-{kind}", False)
            self.assertLess(abs(self.check(f"option-{kind}", True) / plain - 1), 0.01)


class Threads(unittest.TestCase):
    """All threads and children of a program are there, each with its own counts."""

    def counted(self, name: str) -> list[int]:
        """The instructions that each busy thread counted, on all CPUs, sorted."""
        recording = read(name)
        threads: dict[int, int] = {}
        for (_, thread), stream in recording.streams(recording.leader()).items():
            threads[thread] = threads.get(thread, 0) + list(stream[-1].values.values())[1]
        # the shell and the benchmark's first thread do little
        return sorted(number for number in threads.values() if number > 10_000_000)

    def check(self, name: str, iterations: list[int]) -> None:
        """There is a thread for each of these numbers of iterations of the benchmark."""
        counted = self.counted(name)
        length = sum(row.length for row in truth().values())
        self.assertEqual(len(counted), len(iterations))
        for instructions, expected in zip(counted, sorted(iterations)):
            self.assertAlmostEqual(instructions / length / expected, 1, delta=0.02)
        recording = read(name)
        for stream in recording.streams(recording.leader()).values():
            values = [list(sample.values.values())[0] for sample in stream]
            own = [late - early for early, late in pairwise(values)]
            self.assertEqual(own, [sample.period for sample in stream][1:])

    def test_threads(self):
        self.check("threads", [500, 500, 500])

    def test_children(self):
        self.check("children", [500, 500, 1000])
