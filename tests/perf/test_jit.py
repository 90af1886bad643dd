# SPDX-License-Identifier: GPL-2.0
"""Tests of the functions of JITs: their names, what is one row, and what is said without a map.

The recordings have chosen addresses and maps, or come from a program that writes code and its map.
"""

import json
import os
import random
import re
import unittest
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.harness import perfwrite as pw
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.recording import LONG, Recording, Windows

DATA = CHECK / "jit"
DATA.mkdir(parents=True, exist_ok=True)
JIT, UNNAMED = "[JIT]", "[unnamed JIT code]"
SHARE = ("--share", "discard")
NO_PROCESS = 10_000_000 + 10 * os.getpid()  # no process has a PID like this
GONE = (
    r"^perf functions: (|before: |after: )100 % of the window samples are in JIT code without "
    rf"a name, because the JIT's map /tmp/perf-{NO_PROCESS // 10}\d.map is gone or was never "
    "written: "
)
# Each worker writes loops to memory, and names them in its map. The second argument tells how many
# times it writes both of them, the third one whether to the same addresses.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned char loop[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };

int main(int argc, char **argv)
{
	for (int worker = 0; worker < atoi(argv[1]); worker++) {
		char path[32], *code;
		FILE *map;

		if (fork())
			continue;
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
		puts(path);
		map = fopen(path, "w");
		code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int i = 0; i < 2 * atoi(argv[2]); i++) {
			char *at = code + 64 * (atoi(argv[3]) ? i % 2 : i);

			memcpy(at, loop, sizeof(loop));
			fprintf(map, "%lx 40 %s my loop;%d\n", (long)at,
				!atoi(argv[3]) ? "any" : i / 2 ? "new" : "old", i % 2);
			fflush(map);
			((void (*)(long))at)(50000000);
		}
		return 0;
	}
	while (wait(NULL) > 0)
		;
}
"""


def report(*options: object, stderr: int = -1) -> dict:
    return json.loads(must(PERF, "functions", "report", "-j", *options, stderr=stderr))


def rows(*options: object) -> dict[tuple, tuple]:
    """Samples and matched windows by symbol, DSO and address."""
    return {
        (row["symbol"], row["dso"], row["address"]): (
            row["sums"][0]["samples"],
            row["sums"][0]["matched"],
        )
        for row in report(*SHARE, *options)["functions"]
    }


def symbols(path: Path, leader: str) -> Counter[str]:
    """Samples of the leader by symbol, as perf script has them."""
    lines = must(PERF, "script", "-i", path, "-F", "event,ip,sym", stderr=-1).splitlines()
    words = (line.split(maxsplit=2) for line in lines)
    return Counter(symbol for event, _, symbol in words if event.startswith(leader))


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
        self.assertEqual(rows("-i", path), {(name, JIT, None): n for name, n in expected.items()})
        self.assertEqual(
            rows("-i", path, "--by", "comm,symbol"),
            {(f"worker;{name}", JIT, None): n for name, n in expected.items()},
        )
        self.assertEqual(rows("-i", path, "--by", "dso"), {(JIT, JIT, None): (12, 12)})
        self.assertEqual(rows("-i", path, "--dsos", JIT), rows("-i", path))
        # without lines, rows are offsets in a function
        self.assertEqual(
            {name: n for (name, _, _), n in rows("-i", path, "--by", "srcline").items()},
            {f"{f}+2": (4, 0), f"{f}+1": (2, 0), f"{g}+0": (2, 2), f"{g}+6": (2, 0)}
            | {UNNAMED: (2, 2)},
        )

    def test_comparison(self) -> None:
        """Another run has other PIDs and addresses, and the same functions."""
        one, two = self.record(0), self.record(1)
        for by in ("symbol",), ("symbol", "srcline"), ("comm", "symbol"):
            with self.subTest(by):
                changes = report("--diff", one, two, "--by", ",".join(by))["functions"]
                self.assertEqual({row["status"] for row in changes}, {"both"})
        texts = [must(PERF, "functions", "report", "-i", i, "--sums", "-") for i in (one, two)]
        self.assertEqual(*texts)
        self.assertNotIn("/tmp", texts[0])

    def test_call_chains(self) -> None:
        """A chain has the names of its functions, too, with --by callchain and --children."""
        kinds = pw.IP | pw.TID | pw.TIME | pw.READ | pw.PERIOD | pw.IDENTIFIER | pw.CALLCHAIN
        group = [
            pw.Event("cycles", 0, 0, [1], LONG, 300, sample_type=kinds),
            pw.Event("instructions", 0, 1, [2], sample_type=kinds),
        ]
        recording = Recording([group])
        for pid, base in (NO_PROCESS, 0x7F0000000000), (NO_PROCESS + 1, 0x7E0000001000):
            recording.pid = pid
            recording.map("//anon", base)
            text = f"{base:x} 40 main\n{base + 0x40:x} 40 leaf;1\n"
            Path(f"/tmp/perf-{pid}.map").write_text(text, encoding="utf-8")
            for count in LONG, 300:
                recording.sample(base + 0x44, count, 1, callers=(base + 0x80, base + 4))
        path = recording.write(DATA / "chains.data")
        chain = (f"leaf:1;{UNNAMED};main", JIT, None)
        self.assertEqual(rows("-i", path, "--by", "callchain"), {chain: (2, 2)})
        names = {symbol for symbol, dso, _ in rows("-i", path, "--children") if dso == JIT}
        self.assertEqual(names, {"main", "leaf;1", UNNAMED})

    def test_later_line(self) -> None:
        """The last line that has an address is right: its code has replaced all others."""
        for seed in range(20):
            chosen, recording = random.Random(seed), Workers(0)
            lines = [
                (chosen.randrange(512), chosen.randrange(200), f"{'xyz'[i % 3]}{i}")
                for i in range(chosen.randrange(1, 60))
            ]
            base = recording.compile(recording.pids[0], *lines)
            truth: Counter[str] = Counter()
            for at in range(720):
                named = [n for start, size, n in lines if start <= at < start + max(size, 1)]
                truth[named[-1] if named else UNNAMED] += 1
                recording.window(base + at)
            path = recording.write(DATA / "later.data")
            with self.subTest(seed=seed):
                found = {symbol: n for (symbol, _, _), (n, _) in rows("-i", path).items()}
                self.assertEqual(found, truth)
                script = symbols(path, "cycles")
                for name in truth.keys() - {UNNAMED}:
                    self.assertEqual(script[name], 2 * truth[name], name)

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
        names = {symbol for symbol, _, _ in rows("-i", recording.write(DATA / "damaged.data"))}
        self.assertIn("all", names)
        self.assertEqual(len(names), 3)

    def test_map_is_gone(self) -> None:
        """Without a map, all code is one row in each run, and a line says what is lost."""
        paths = [self.record(seed) for seed in range(2)]
        self.remove_maps()
        for by in "symbol", "comm,symbol", "srcline":
            done = run(PERF, "functions", "report", "-i", paths[0], *SHARE, "--by", by, stderr=-1)
            self.assertRegex(done.stderr, GONE)
            self.assertNotIn("debug symbols", done.stderr)
            self.assertEqual(len(done.stdout.splitlines()), 2)
        self.assertEqual(rows("-i", paths[0]), {(UNNAMED, JIT, None): (12, 12)})
        done = run(PERF, "functions", "report", *SHARE, "--diff", *paths, stderr=-1)
        self.assertEqual(len(re.findall(GONE, done.stderr, re.M)), 2)
        self.assertEqual(len(done.stdout.splitlines()), 2)
        done = run(PERF, "functions", "report", "-i", paths[0], "--by", "dso", stderr=-1)
        self.assertEqual(done.stderr, "")

    def test_map_lacks_functions(self) -> None:
        """The map is there, but has no name for most of the code."""
        recording = Workers(0)
        base = recording.compile(recording.pids[0], (0, 64, "some function"))
        for at in 0, 64, 128, 192:
            recording.window(base + at)
        path = recording.write(DATA / "lacks.data")
        done = run(PERF, "functions", "report", "-i", path, stderr=-1)
        self.assertIn(
            "75 % of the window samples are in JIT code without a name: record a jitdump",
            done.stderr,
        )
        self.assertNotIn("gone", done.stderr)


class Program(unittest.TestCase):
    """Recordings of a program that writes code, as a JIT does."""

    def record(self, name: str, *arguments: object) -> Path:
        """A recording; the program prints the paths of its maps, which are removed at the end."""
        source, program, path = DATA / "program.c", DATA / "program", DATA / f"{name}.data"
        source.write_text(PROGRAM)
        must("gcc", "-O1", "-o", program, source)
        maps = must(
            *(PERF, "record", "-q", "-e", "{cpu-clock,page-faults}:uS", "-c", 1000000),
            *("-o", path, program, *arguments),
            stderr=-1,
        )
        for written in maps.split():
            self.addCleanup(Path(written).unlink)
        return path

    def check(self, path: Path, names: Sequence[str], workers: int) -> None:
        """The rows have these names, and all samples but the first of each worker on each CPU."""
        found = {symbol: n for (symbol, dso, _), (n, _) in rows("-i", path).items() if dso == JIT}
        self.assertEqual(sorted(found), sorted(names))
        truth = symbols(path, "cpu-clock")
        for name in names:
            self.assertLessEqual(found[name], truth[name])
            self.assertGreaterEqual(found[name], truth[name] - workers * (os.cpu_count() or 1))

    @unittest.skipUnless(os.uname().machine == "x86_64", "the code is that of x86-64")
    def test_workers(self) -> None:
        paths = [self.record(f"run{i}", 3, 2, 0) for i in range(2)]
        for path in paths:
            self.check(path, ["any my loop;0", "any my loop;1"], 3)
        changes = report("--diff", *paths)["functions"]
        self.assertEqual(
            {row["symbol"] for row in changes if row["status"] == "both"},
            {"any my loop;0", "any my loop;1"},
        )

    @unittest.skipUnless(os.uname().machine == "x86_64", "the code is that of x86-64")
    def test_replaced_code(self) -> None:
        """A map has no times: the whole run counts for the functions that were there at the end."""
        self.check(self.record("replaced", 1, 3, 1), ["new my loop;0", "new my loop;1"], 1)


if __name__ == "__main__":
    unittest.main()
