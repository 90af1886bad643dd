# SPDX-License-Identifier: GPL-2.0
"""Call stacks of last branch records (LBRs) that perf lengthens by those of earlier samples."""

import json
import re
import unittest
from collections import Counter
from pathlib import Path

from tests.harness.env import CHECK, PERF, must, run
from tests.harness.lbr import NAMES, REGISTERS, Thread

DATA = CHECK / "lbr"
HANDLER = """
def process_event(sample):
    print(sample["ev_name"], ";".join(node["sym"]["name"] for node in sample["callchain"]))
"""


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / "handler.py").write_text(HANDLER)


def thread(name: str, top: int = 0) -> Thread:
    return Thread(DATA / name, top)


def chain(depth: int, callers: int) -> str:
    """The chain of this depth with so many callers, callees first."""
    return ";".join(reversed(NAMES[depth - callers : depth + 1]))


def chains(path: Path, *options: str) -> Counter:
    """The number of samples of each chain in perf report."""
    words = "--stdio", "--no-children", "-g", "folded,0,callee,function,count", "-i", path
    out = must(PERF, "report", *words, *options, stderr=-1)
    found = re.findall(r"^(\d+) (\S+)$", out, re.M)
    return Counter({names: int(number) for number, names in found})


class Report(unittest.TestCase):
    """perf report and perf script. 43 calls leave the last 32 in the registers."""

    def record(self, top: int = 0) -> Path:
        """Calls until 31 are there, then 43; after a return to 41 it calls again."""
        recording = thread("calls", top)
        for depth in 31, 43, 41, 43:
            recording.take(depth=depth)
        return recording.write(DATA / "calls.data")

    WHOLE = Counter({chain(31, 31): 1, chain(43, 43): 2, chain(41, 41): 1})

    def test_index_wraps(self):
        """The first call may be in any register."""
        for top in range(REGISTERS):
            with self.subTest(top=top):
                self.assertEqual(chains(self.record(top), "--stitch-lbr"), self.WHOLE)
        self.assertIn(chain(43, 32), chains(self.record()))

    def test_scripts(self):
        words = "--stitch-lbr", "-i", self.record(), "-s", DATA / "handler.py"
        lines = must(PERF, "script", *words, stderr=-1).splitlines()
        found = Counter(line.split()[1] for line in lines if line.startswith("cycles"))
        self.assertEqual(found, self.WHOLE)

    def test_no_call_yet(self):
        """There is no LBR; the sample's address is known."""
        recording = thread("begin")
        recording.take()
        recording.take(depth=1)
        path = recording.write(DATA / "begin.data")
        for options in (), ("--stitch-lbr",):
            self.assertEqual(chains(path, *options), {"main": 1, chain(1, 1): 1})


class Children(unittest.TestCase):
    """perf functions report --children --stitch-lbr."""

    def samples(self, recording: Thread) -> dict[str, int]:
        """The samples of each function and all that it calls."""
        words = "--children", "--stitch-lbr", "-j", "-i"
        path = recording.write(DATA / "samples.data")
        table = json.loads(must(PERF, "functions", "report", *words, path, stderr=-1))
        return {row["symbol"]: row["observations"]["samples"] for row in table["functions"]}

    def test_callers(self):
        """All callers count, as soon as a sample has seen the outermost one."""
        recording = thread("seen")
        for depth in 20, 43, 43, 45:
            recording.take(depth=depth)
        found = self.samples(recording)
        self.assertEqual(found["[all]"], 4)
        counts = {NAMES[n]: sum(n <= depth for depth in (20, 43, 43, 45)) for n in range(46)}
        self.assertEqual({name: found.get(name) for name in counts}, counts)
        self.assertNotIn("[cut]", found)

    def test_cut(self):
        """No sample has seen main(), also if later ones are longer than the registers."""
        recording = thread("unseen")
        for depth in 43, 44, 45:
            recording.take(depth=depth)
        self.assertEqual(self.samples(recording), {"[cut]": 3})

    def test_other_recordings(self):
        path = thread("other").write(DATA / "other.data")
        done = run(PERF, "functions", "report", "--stitch-lbr", "-i", path)
        self.assertEqual(done.returncode, 255)
        self.assertRegex(done.stdout, "^perf functions: --stitch-lbr .*add --children\n$")
