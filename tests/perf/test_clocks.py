# SPDX-License-Identifier: GPL-2.0
"""What a person sees whose machine has no PMU: samples by a clock, and of page faults.

Recordings are made up sample by sample. Those of this machine need the right to record.
"""

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


class Length(unittest.TestCase):
    def test_factor(self):
        """A line says how many times as long to record."""
        clock = pw.Event("cpu-clock", SOFTWARE, 0, [1], MILLISECOND, sample_type=KINDS)
        recording = Recording([[clock]])
        for at in 30 * (0x1000, 0x2000):
            recording.writer.sample(clock, recording.where(), at, MILLISECOND, [], number=1)
        said = must(PERF, "functions", "report", recording.write(DATA / "few.data"))
        (times,) = re.findall(r"in the first row, record ([\d.]+) times as long", said)
        # the standard error of a share of a half is 10 % / 1.96 with 384 samples
        self.assertAlmostEqual(float(times), 384 / 60, delta=0.7)
