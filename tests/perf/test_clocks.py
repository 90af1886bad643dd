# SPDX-License-Identifier: GPL-2.0
"""What a person sees whose machine has no PMU: samples by a clock, and of page faults.

Recordings are made up sample by sample. Those of this machine need the right to record.
"""

import itertools
import json
import re
import subprocess
import unittest
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.env import CHECK, PERF, must
from tests.harness.eventsamples import KINDS
from tests.harness.recording import Recording
from tests.harness.reports import REPORT

DATA = CHECK / "clocks"
SOFTWARE = 1  # the type of these events, with their configs
MILLISECOND = 1_000_000  # ns
# time and faults of functions, by address
SPENT = {0x1000: (90, 1), 0x2000: (10, 99)}


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    must(
        "make",
        "build/report/template.html",
    )


def sampled() -> Path:
    """A recording in which a clock and the page faults of its group sample themselves."""
    group = [
        pw.Event("task-clock", SOFTWARE, 1, [1], MILLISECOND, sample_type=KINDS),
        pw.Event("page-faults", SOFTWARE, 2, [2], 1, sample_type=KINDS),
    ]
    recording = Recording([group])
    for address, numbers in SPENT.items():
        # a program has faults before it takes time
        for place, event, number in reversed([*zip((1, 2), group, numbers)]):
            for _ in range(number):
                where, period = recording.where(), event.sample_period
                recording.writer.sample(event, where, address, period, [], number=place)
    return recording.write(DATA / "task-clock.data")


class Widths(unittest.TestCase):
    """Time is as wide as time, whatever other events there are."""

    def test_page(self):
        """Its flame graph has the unit, too."""
        page = DATA / "page.html"
        must(REPORT, "--html", page, sampled(), stderr=subprocess.DEVNULL)
        graph = json.loads(re.search('id="data">(.*?)</script>', page.read_text())[1])["flame"]
        self.assertEqual(
            (graph["event"], graph["units"]["task-clock"]), ("task-clock", "nanoseconds")
        )
        widths = {
            node["name"][:6]: node["counts"]["task-clock"] for node in graph["root"]["children"]
        }
        spent = {hex(at): time * MILLISECOND for at, (time, _) in SPENT.items()}
        self.assertEqual(widths, spent)


class FewSamples(unittest.TestCase):
    """A short run has a table, and a line says how many times as long to record."""

    def printed(self, samples: int) -> str:
        """Two functions share the samples, which come every 100 ms."""
        clock = pw.Event("cpu-clock", SOFTWARE, 0, [1], 100 * MILLISECOND, sample_type=KINDS)
        recording = Recording([[clock]])
        recording.clock = itertools.count(1000, clock.sample_period)
        for number in range(samples):
            place = 0x1000 + 0x1000 * (number % 2)
            recording.writer.sample(
                clock, recording.where(), place, 100 * MILLISECOND, [], number=1
            )
        return must(PERF, "functions", "report", recording.write(DATA / "few.data"))

    def test_time(self):
        # the standard error of a share of a half is 10 % / 1.96 with 384 samples
        for samples in 60, 6:
            said = self.printed(samples)
            line = re.search("^# for .* in the first row, record ([0-9.]+) times as", said, re.M)
            self.assertIsNotNone(line, said)
            self.assertAlmostEqual(float(line[1]) * samples / 384, 1, delta=0.1)

    def test_enough(self):
        self.assertNotIn("times as long", self.printed(500))
