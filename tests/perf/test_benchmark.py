#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the benchmark: `benchmark --truth` is true, and each function does what its name says.

The program is built for this machine into a temporary directory. Where architectures may differ,
the machine code of every installed compiler is checked, too. The last test compares with the
counters of the emulated machine, if that is built.
"""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from tests.harness.truth import LEAVES, PAGES, Truth, read_truth

MACHINES = "arm64"

TOP = Path(__file__).resolve().parents[2]
SOURCE = TOP / "tools/perf/tests/workloads/benchmark.c"
FLAGS = [
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wmissing-prototypes",
    "-Wshadow",
    "-pthread",
    "-DBENCHMARK_MAIN",
]
PIECES = 8  # calls of a leaf per iteration at depth 2 and 3
MEMORY = 64 << 20  # bytes that the benchmark walks through
STRAY = 16  # faults by which two runs differ: the kernel maps what is in its cache, and where the
# stack begins is random; 290 iterations with --faults make thousands


class BenchmarkTest(unittest.TestCase):
    """The program on this machine."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.program = Path(folder) / "benchmark"
        subprocess.run(["gcc", *FLAGS, "-static", SOURCE, "-o", cls.program], check=True)

    def truth(self, *args: str) -> Truth:
        """The table for these arguments."""
        out = subprocess.run(
            [self.program, "--truth", *args],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
        ).stdout
        self.assertEqual(
            out.split("\n", 1)[0].split(),
            [
                "#",
                "function",
                "instructions/call",
                "calls",
                "instructions",
                "share%",
                "faults/call",
            ],
        )
        return read_truth(out)

    def minor_faults(self, *args: str) -> int:
        """Page faults of a run with these arguments."""
        with subprocess.Popen([self.program, *args]) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return usage.ru_minflt

    def test_truth_adds_up(self) -> None:
        for depth, wrappers in ("1", []), ("2", ["middle"]), ("3", ["middle", "outer"]):
            with self.subTest(depth=depth):
                rows = self.truth("--iterations", "1000", "--threads", "3", "0", depth)
                self.assertEqual(list(rows), [*LEAVES, *wrappers, "iteration"])
                total = sum(row.instructions for row in rows.values())
                for name, row in rows.items():
                    self.assertEqual(row.instructions, row.length * row.calls, name)
                    self.assertAlmostEqual(row.share, row.instructions / total, 5, name)
                self.assertEqual(rows["iteration"].calls, 3000)
                for name in LEAVES:
                    self.assertEqual(rows[name].calls, 3000 * (1 if depth == "1" else PIECES))
                self.assertLess(rows["iteration"].share, 0.01)

    def test_calls_are_long_and_differ(self) -> None:
        lengths = sorted(row.length for name, row in self.truth("0", "1").items() if name in LEAVES)
        self.assertGreater(lengths[0], 3000)
        self.assertTrue(all(b > 1.01 * a for a, b in zip(lengths, lengths[1:])), lengths)

    def test_faults(self) -> None:
        page = os.sysconf("SC_PAGESIZE")
        passes = 3 * MEMORY // page // PAGES  # enough to give the memory back twice
        for depth in "13":
            rows = self.truth("--faults", "--iterations", "1", "0", depth)
            self.assertEqual({name for name, row in rows.items() if row.faults}, {"dcache_miss"})
            per_iteration = rows["dcache_miss"].faults * rows["dcache_miss"].calls
            self.assertEqual(per_iteration, PAGES)
            for threads in 1, 2:
                with self.subTest(depth=depth, threads=threads):
                    few, many = (
                        self.minor_faults(
                            "--faults",
                            "--threads",
                            str(threads),
                            "--iterations",
                            str(n),
                            "0",
                            depth,
                        )
                        for n in (10, 10 + passes)
                    )
                    self.assertLess(abs(many - few - passes * per_iteration * threads), STRAY)

    def test_slow(self) -> None:
        """One function does its work twice, the others as before."""
        once, twice = self.truth("0", "1"), self.truth("--slow", "isb", "0", "1")
        for name in once:
            factor = 2 if name == "isb" else 1
            self.assertEqual(twice[name].instructions, factor * once[name].instructions, name)
