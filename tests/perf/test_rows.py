# SPDX-License-Identifier: GPL-2.0
"""Tests of rows per kind of core: --by pmu."""

import json
import unittest
from pathlib import Path

from tests.harness import perfwrite as pw
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.recording import LONG, WINDOW, Recording

DATA = CHECK / "rows"
DATA.mkdir(parents=True, exist_ok=True)


def rows(path: Path, *options: object) -> dict[str, int]:
    """Windows of each row."""
    text = must(
        *(PERF, "functions", "report", "-i", path, "-j", "--share", "discard", *options), stderr=-1
    )
    return {row["symbol"]: row["windows"]["samples"] for row in json.loads(text)["functions"]}


class Cores(unittest.TestCase):
    """The kinds of cores of a hybrid machine."""

    @staticmethod
    def record(name: str, numbers: tuple[int, ...], **writer: object) -> Path:
        """A recording with one group for each PMU: windows of 1, 2, ... rounds."""
        groups, fresh = [], iter(range(1, 100))
        for number in numbers:
            groups.append(
                [
                    pw.Event("cycles", 0, number << 32, [next(fresh)], LONG, WINDOW),
                    pw.Event("instructions", 0, number << 32 | 1, [next(fresh)]),
                ]
            )
        recording = Recording(groups, cpuid="GenuineIntel,6,151,2", **writer)
        for group in range(len(numbers)):
            recording.sample(0x1000, LONG, 1, group=group)
        for group in range(len(numbers)):
            for _ in range(group + 1):
                recording.sample(0x1000, LONG, 1, group=group)
                recording.sample(0x1000, WINDOW, 1, group=group)
        return recording.write(DATA / f"{name}.data")

    def test_hybrid(self) -> None:
        pmus = (1, "software"), (4, "cpu_core"), (10, "cpu_atom")
        path = self.record("hybrid", (4, 10), pmus=pmus)
        self.assertEqual(rows(path, "--by", "pmu"), {"cpu_core": 1, "cpu_atom": 2})
        self.assertEqual(
            rows(path, "--by", "pmu,comm"), {"cpu_core;program": 1, "cpu_atom;program": 2}
        )
        for by, is_told in (("pmu", False), ("symbol", True)):
            done = run(PERF, "functions", "report", "-i", path, "--by", by, stderr=-1)
            self.assertEqual("several kinds of CPUs" in done.stderr, is_told)


if __name__ == "__main__":
    unittest.main()
