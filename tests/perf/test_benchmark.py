#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the benchmark: `benchmark --truth` is true, and each function does what its name says.

The program is built for this machine into a temporary directory. Where architectures may differ,
the machine code of every installed compiler is checked, too. The last test compares with the
counters of the emulated machine, if that is built.
"""

import os
import re
import shutil
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

# prefix of the tools -> what must be in the code of a function, and what must not
COMPILERS = {
    "x86_64-linux-gnu-": {
        "nops": (r"\bnop$", None),
        "int_divider_stalls": (r"\bdiv\b", None),
        "fp_divider_stalls": (r"\bdivsd\b", None),
        "isb": (r"\blfence\b", None),
        "branch_mispredicts": (r"\bj(n?e|ae|b)\b", r"\b(cmov|set)"),
        "double_to_int": (r"\bcvttsd2si\b", None),
    },
    "aarch64-linux-gnu-": {
        "nops": (r"\bnop$", None),
        "int_divider_stalls": (r"\budiv\b", None),
        "fp_divider_stalls": (r"\bfdiv\b", None),
        "isb": (r"\bisb\b", None),
        "branch_mispredicts": (r"\bt?b(z|nz|\.eq|\.ne)\b", r"\bcs(el|et|inc|inv|neg)|\bcinc"),
        "double_to_int": (r"\bfcvtzs\b", None),
    },
    "riscv64-linux-gnu-": {
        "nops": (r"\bnop$", None),
        "int_divider_stalls": (r"\bdivu\b", None),
        "fp_divider_stalls": (r"\bfdiv\.d\b", None),
        "isb": (r"\bfence\.i\b", None),
        "branch_mispredicts": (r"\bb(eqz|nez)\b", None),
        "double_to_int": (r"\bfcvt\.w\.d\b", None),
    },
    "powerpc64le-linux-gnu-": {
        "nops": (r"\bnop$", None),
        "int_divider_stalls": (r"\bdivdu\b", None),
        "fp_divider_stalls": (r"\bfdiv\b", None),
        "isb": (r"\bisync\b", None),
        "branch_mispredicts": (r"\bb(eq|ne)\b", r"\bisel"),
        "double_to_int": (r"\bfctiwz\b", None),
    },
}
CALLS = {
    "x86_64-linux-gnu-": r"\bcall",
    "aarch64-linux-gnu-": r"\bblr?\b",
    "riscv64-linux-gnu-": r"\bjalr?\b",
    "powerpc64le-linux-gnu-": r"\b(bl|bctrl)\b",
}


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

    def test_bad_input(self) -> None:
        for args in (
            [],
            ["0"],
            ["0", "0"],
            ["0", "4"],
            ["7", "1"],
            ["-1", "1"],
            ["x", "1"],
            ["0", "1", "2"],
            ["0", "1x"],
            ["", "1"],
            ["0", "1", "--iterations"],
            ["0", "1", "--iterations", "0"],
            ["0", "1", "--iterations", "1e3"],
            ["0", "1", "--threads", "0"],
            ["0", "1", "--threads", "100000"],
            ["0", "1", "--seed", "-1"],
            ["0", "1", "--seed", "99999999999999999999"],
            ["0", "1", "--unknown"],
        ):
            with self.subTest(args=args):
                run = subprocess.run(
                    [self.program, *args], capture_output=True, text=True, timeout=10, check=False
                )
                self.assertNotEqual(run.returncode, 0)
                self.assertEqual(run.stdout, "")
                self.assertRegex(run.stderr, r"\Abenchmark: [^\n]+\n\Z")


class CodeTest(unittest.TestCase):
    """The code that compilers make of it."""

    def test_instructions(self) -> None:
        there = [
            prefix
            for prefix in COMPILERS
            if shutil.which(prefix + "objdump") and self.has_library(prefix)
        ]
        self.assertTrue(there)
        for prefix in there:
            expected = COMPILERS[prefix]
            for level in "-O2", "-O3":
                code = self.disassemble(prefix, level)
                for name, (wanted, unwanted) in expected.items():
                    with self.subTest(compiler=prefix, level=level, function=name):
                        self.assertRegex(code[name], re.compile(wanted, re.MULTILINE))
                        self.assertNotRegex(code[name], CALLS[prefix])
                        if unwanted:
                            self.assertNotRegex(code[name], unwanted)

    def has_library(self, prefix: str) -> bool:
        """Returns whether there is a compiler with a C library, for more than kernels."""
        return (
            bool(shutil.which(prefix + "gcc"))
            and subprocess.run(
                [prefix + "gcc", "-E", "-"],
                input="#include <errno.h>",
                text=True,
                capture_output=True,
                check=False,
            ).returncode
            == 0
        )

    def disassemble(self, prefix: str, level: str) -> dict[str, str]:
        """The instructions of each counted function."""
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "benchmark.o"
            subprocess.run([prefix + "gcc", *FLAGS, level, "-c", SOURCE, "-o", program], check=True)
            text = subprocess.run(
                [prefix + "objdump", "-d", "--no-show-raw-insn", "-j", "benchmark_text", program],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout
        text = re.sub(r"\n+[0-9a-f]+ <\.\w+>:\n", "\n", text)  # drop riscv's local labels
        code = {}
        for name, body in re.findall(
            r"^[0-9a-f]+ <(\w+)>:\n((?:\s+[0-9a-f]+:.*\n|\s*\.\.\.\n)+)", text, re.MULTILINE
        ):
            code[name] = re.sub(r"[ \t]+$", "", body, flags=re.MULTILINE)
        self.assertLessEqual(set(LEAVES), code.keys(), prefix)
        return code


if __name__ == "__main__":
    unittest.main()
