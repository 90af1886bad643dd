# SPDX-License-Identifier: GPL-2.0
"""Tests of the functions of JITs: their names, what is one row, and what is said without a map.

The recordings have chosen addresses and maps, or come from a program that writes code and its map.
"""

import json
import os
import random
import unittest
from pathlib import Path

from tests.harness.env import CHECK, PERF, must
from tests.harness.recording import Windows
from tests.harness.tables import ended

DATA = CHECK / "jit"
DATA.mkdir(parents=True, exist_ok=True)
JIT, UNNAMED = "[JIT]", "[unnamed JIT code]"
NO_PROCESS = 10_000_000 + 10 * os.getpid()  # no process has a PID like this


class Workers(Windows):
    """Workers that compile functions to their own addresses."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.addresses = random.Random(seed)
        self.pids = [NO_PROCESS + 2 * seed + worker for worker in range(2)]

    def compile(self, pid: int, *lines: tuple[int, int, str]) -> int:
        """Gives a worker functions: start, size, name. Returns the first address of its memory."""
        self.pid = pid
        base = self.addresses.randrange(1 << 20, 1 << 34) << 12
        self.writer.comm(self.where(), "worker")
        self.map("//anon", base)
        text = "".join(f"{base + start:x} {size:x} {name}\n" for start, size, name in lines)
        Path(f"/tmp/perf-{pid}.map").write_text(text, encoding="utf-8")
        return base


class Maps(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.addCleanup(self.remove_maps)

    @staticmethod
    def remove_maps() -> None:
        for path in Path("/tmp").glob(f"perf-{NO_PROCESS // 10}?.map"):
            path.unlink()

    def record(self, seed: int) -> Path:
        """Two workers, with two functions of which the first is compiled twice; 12 windows."""
        recording = Workers(seed)
        for pid in recording.pids:
            base = recording.compile(
                pid, (0, 64, "JS:*f /a b.js:1"), (64, 32, "g"), (128, 64, "JS:*f /a b.js:1")
            )
            recording.window(base + 1, base + 130)  # from the first version to the second
            recording.window(base + 128, base + 129)
            recording.window(base + 64, base + 64)
            recording.window(base, base + 70)
            recording.window(base + 96, base + 1024)  # no line has these
            recording.window(base + 200, base + 2)
        return recording.write(DATA / f"workers{seed}.data")

    def test_one_row(self) -> None:
        """A name is one row, in the processes and at the addresses where it was compiled."""
        path = self.record(0)
        f, g = "JS:*f /a b.js:1", "g"
        expected = {f: (6, 4), g: (4, 2), UNNAMED: (2, 2)}
        self.assertEqual(ended("-i", path), {(name, JIT): n for name, n in expected.items()})
        self.assertEqual(
            ended("-i", path, "--by", "comm,symbol"),
            {(f"worker;{name}", JIT): n for name, n in expected.items()},
        )
        # without lines, rows are offsets in a function
        self.assertEqual(
            {name: n for (name, _), n in ended("-i", path, "--by", "srcline").items()},
            {f"{f}+2": (4, 0), f"{f}+1": (2, 0), f"{g}+0": (2, 2), f"{g}+6": (2, 0)}
            | {UNNAMED: (2, 2)},
        )

    def test_comparison(self) -> None:
        """Another run has other PIDs and addresses, and the same functions."""
        one, two = self.record(0), self.record(1)
        for by in ("symbol",), ("symbol", "srcline"), ("comm", "symbol"):
            with self.subTest(by):
                changes = "--diff", one, two, "--by", ",".join(by)
                told = json.loads(must(PERF, "functions", "report", "-j", *changes, stderr=-1))
                self.assertEqual({row["status"] for row in told["functions"]}, {"both"})
        texts = [must(PERF, "functions", "report", "-i", i, "--sums", "-") for i in (one, two)]
        self.assertEqual(*texts)
        self.assertNotIn("/tmp", texts[0])

    def test_damaged_map(self) -> None:
        """Sizes beyond the last address, lines without an end, and lines that are none."""
        recording = Workers(0)
        base = recording.compile(recording.pids[0])
        Path(f"/tmp/perf-{recording.pids[0]}.map").write_bytes(
            f"\n\0\nxyz\n{base:x}\n{base:x} \n{base:x} 40\n{base:x} ffffffffffffffff all\n"
            f"ffffffffffffffff ffffffffffffffff end\n{base + 64:x} 40 \xff b\0c\n"
            f"{base + 128:x} 40 last".encode("latin-1")
        )
        for at in 0, 64, 128:
            recording.window(base + at)
        names = {symbol for symbol, _ in ended("-i", recording.write(DATA / "damaged.data"))}
        self.assertIn("all", names)
        self.assertEqual(len(names), 3)
