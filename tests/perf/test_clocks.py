# SPDX-License-Identifier: GPL-2.0
"""What a person sees whose machine has no PMU: samples by a clock, and of page faults.

Recordings are made up sample by sample. Those of this machine need the right to record.
"""

import gzip
import importlib.util
import itertools
import json
import re
import subprocess
import unittest
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.env import CHECK, PERF, TOP, must, run
from tests.harness.eventsamples import KINDS
from tests.harness.recording import Recording
from tests.harness.reports import REPORT
from tests.harness.terminal import Terminal

DATA = CHECK / "clocks"
SOFTWARE = 1  # the type of these events, with their configs
CONFIGS = {"cpu-clock": 0, "task-clock": 1, "page-faults": 2}
MILLISECOND = 1_000_000  # ns
# time and faults of functions, by address
SPENT = {0x1000: (90, 1), 0x2000: (10, 99)}
# functions with a long name; few faults, so that their shares are weak
PROGRAM = """
#include <stdlib.h>
#include <time.h>
volatile long sum, times;
void function_with_a_name_that_is_wider_than_what_a_small_screen_leaves_for_names(void)
{
	for (long i = 0; i < 20000000; i++)
		sum += i;
}
int main(int argc, char **argv)
{
	for (time_t end = time(NULL) + atoi(argv[1]); time(NULL) < end; times++)
		function_with_a_name_that_is_wider_than_what_a_small_screen_leaves_for_names();
}
"""


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    must("make", "build/report/template.html", "build/report/profile_pb2.py")


def sampled(clock: str) -> Path:
    """A recording in which a clock and the page faults of its group sample themselves."""
    group = [
        pw.Event(name, SOFTWARE, CONFIGS[name], [1 + place], period, sample_type=KINDS)
        for place, (name, period) in enumerate(((clock, MILLISECOND), ("page-faults", 1)))
    ]
    recording = Recording([group])
    for address, numbers in SPENT.items():
        # a program has faults before it takes time
        for place, event, number in reversed([*zip((0, 1), group, numbers)]):
            for _ in range(number):
                where, period = recording.where(), event.sample_period
                recording.writer.sample(event, where, address, period, [], number=1 + place)
    return recording.write(DATA / f"{clock}.data")


class Widths(unittest.TestCase):
    """Time is as wide as time, whatever other events there are."""

    def test_page(self):
        """Its flame graph has the unit, too."""
        for clock in "cpu-clock", "task-clock":
            with self.subTest(clock):
                page = DATA / "page.html"
                must(REPORT, "--html", page, sampled(clock), stderr=subprocess.DEVNULL)
                data = json.loads(re.search('id="data">(.*?)</script>', page.read_text())[1])
                graph = data["flame"]
                self.assertEqual((graph["event"], graph["units"][clock]), (clock, "nanoseconds"))
                nodes = graph["root"]["children"]
                widths = {node["name"][:6]: node["counts"][clock] for node in nodes}
                spent = {hex(at): time * MILLISECOND for at, (time, _) in SPENT.items()}
                self.assertEqual(widths, spent)

    def test_pprof(self):
        path = TOP / "build/report/profile_pb2.py"
        spec = importlib.util.spec_from_file_location(path.stem, path)
        form = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(form)
        for clock in "cpu-clock", "task-clock":
            with self.subTest(clock):
                must(REPORT, "--pprof", DATA / "p.gz", sampled(clock), stderr=subprocess.DEVNULL)
                profile = form.Profile.FromString(gzip.decompress((DATA / "p.gz").read_bytes()))
                words = profile.string_table
                self.assertEqual(words[profile.default_sample_type], clock)
                self.assertEqual(
                    {words[one.type]: words[one.unit] for one in profile.sample_type},
                    {clock: "nanoseconds", "page-faults": "faults"},
                )


class FewSamples(unittest.TestCase):
    """A short run has a table, and a line says for how long to record."""

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
        said = self.printed(60)
        line = re.search(r"^# only 60 samples: .*, record about (\d+) seconds longer$", said, re.M)
        self.assertIsNotNone(line, said)
        self.assertAlmostEqual(int(line[1]), 0.1 * (384 - 60), delta=5)
        line = re.search(r"^# only 6 samples: .* (\d+) seconds longer$", self.printed(6), re.M)
        self.assertAlmostEqual(int(line[1]), 0.1 * (384 - 6), delta=20)

    def test_enough(self):
        self.assertNotIn("only", self.printed(300))
        self.assertNotIn("longer", self.printed(500))


class Screen(unittest.TestCase):
    """perf functions top."""

    def test_marks_on_a_small_screen(self):
        """A weak value has its mark on each screen, and no column is cut."""
        program = DATA / "program"
        if run(PERF, "record", "-q", "-e", "cpu-clock:u", "-o", DATA / "a", "true").returncode:
            self.skipTest("no right to record here: see kernel.perf_event_paranoid")
        must("gcc", "-x", "c", "-o", program, "-", input=PROGRAM, stdin=None)
        for width in 80, 30:
            with self.subTest(width=width):
                events = "-e", "cpu-clock:u,page-faults:u", "-F", "#,%CLK,%PF"
                words = *events, "--delay", "0.3", "--", program, 6
                terminal = Terminal(PERF, "functions", "top", *words)
                terminal.until("perf functions top")
                terminal.resize(30, width)
                terminal.end()
                screens = terminal.raw[terminal.resized :].split("\x1b[?1049l")[0].split("\x1b[H")
                # the first ones may have another size
                text = re.sub(r"\x1b\[[\d;?]*\w|\r", "", "".join(screens[2:]))
                lines = [line for line in text.splitlines() if line.startswith("function")]
                self.assertGreater(len(lines), 2)
                for line in lines:
                    self.assertLessEqual(len(line), width)
                    mark = r" +~?[\d.]+\??"
                    values = rf"{mark} +(~[\d.]+|[\d.]+\?)" if width == 80 else rf"({mark})?"
                    self.assertRegex(line, rf"^function\S+ +\d+{values}$")
