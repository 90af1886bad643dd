# SPDX-License-Identifier: GPL-2.0
"""perf functions report --children: the samples of a function and of all that it calls.

Made-up programs take steps of one instruction with a known number of cycles. Their stack is known
after each step, and so are the sums of each function and its callees. test_functions.py compares
the sums of random call chains.
"""

import json
import unittest
from collections.abc import Sequence
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness import stacks
from tests.harness.env import PERF, must
from tests.harness.stacks import Stacks, address


def rows(path: Path, *options: object) -> dict[str, dict]:
    """The rows of --children by symbol."""
    text = must(PERF, "functions", "report", "-i", path, "--children", "-j", *options, stderr=-1)
    return {row["symbol"]: row for row in json.loads(text)["functions"]}


def samples(path: Path, *options: object) -> dict[str, int]:
    """The samples of each row."""
    return {name: row["observations"]["samples"] for name, row in rows(path, *options).items()}


class LinkRegister(unittest.TestCase):
    """arm64 leaves a function's caller out of the chain while the function has no frame."""

    MASK = 1 << 30

    def names(self, chain: Sequence[int], register: int, arch: str = "aarch64") -> set[str]:
        recording = Stacks(registers=self.MASK, arch=arch)
        recording.take(chain, registers=[register])
        return set(samples(recording.save("register"), "--symfs=/")) - {"[all]"}

    def test_leaf(self):
        self.assertEqual(
            self.names([address("alpha", 4), address("gamma", 8)], address("beta", 8)),
            {"alpha", "beta", "gamma"},
        )

    def test_frame_is_there(self):
        """The function has its frame: it has made a call, or its frame comes first."""
        chain = [address("alpha", 4), address("gamma", 8)]
        for register in (address("alpha", 40), chain[1], 0, 0x1234):
            with self.subTest(f"{register:#x}"):
                self.assertEqual(self.names(chain, register), {"alpha", "gamma"})


class Kernel(unittest.TestCase):
    """Frames in the kernel and its modules."""

    TEXT, MODULE = 0xFFFF800080000000, 0xFFFF80007A000000

    def test_module(self):
        """On arm64, modules lie before the kernel."""
        kallsyms = stacks.DATA / "module.kallsyms"
        kallsyms.write_text(
            f"{self.TEXT:016x} T _text\n{self.TEXT + 64:016x} T do_work\n"
            f"{self.MODULE:016x} t helper\t[driver]\n",
            encoding="utf-8",
        )
        recording = Stacks(arch="aarch64")
        recording.map("[kernel.kallsyms]_text", self.TEXT, offset=self.TEXT, misc=pw.MISC_KERNEL)
        recording.map("/lib/modules/1/kernel/driver.ko", self.MODULE, misc=pw.MISC_KERNEL)
        for at in (8, 16):
            kernel = pw.CONTEXT_KERNEL, self.TEXT + 68, self.MODULE + at
            chain = *kernel, pw.CONTEXT_USER, address("beta", 4)
            recording.take([self.TEXT + 68], frames=chain, misc=pw.MISC_KERNEL)
        found = samples(recording.save("module"), "--symfs=/", "--kallsyms", kallsyms)
        self.assertEqual(found, {"do_work": 2, "helper": 2, "beta": 2, "alpha": 1, "[all]": 3})

    def test_user_callchains(self):
        """The function of a sample is not in its chain."""
        recording = Stacks()
        chain = pw.CONTEXT_USER, address("beta", 4), address("gamma", 8)
        recording.take([address("alpha")], frames=chain)
        found = samples(recording.save("user"))
        self.assertEqual(found, {"alpha": 2, "beta": 1, "gamma": 1, "[all]": 2})


class Program(unittest.TestCase):
    """Shares of a program whose calls are short."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.program = stacks.Program()
        cls.done = cls.program.done

    def test_shares(self):
        """Those of each function with all that it calls are right. Windows do not count."""
        path = self.program.record(1, 4000)
        table = rows(path)
        whole = self.done["[all]"]["cycles"]
        for name, done in self.done.items():
            with self.subTest(name):
                self.assertEqual(list(table[name]["metrics"]), ["#", "%CY"])
                share = 100 * done["cycles"] / whole
                self.assertAlmostEqual(table[name]["metrics"]["%CY"]["value"], share, delta=2.5)
                self.assertLess(table[name]["metrics"]["%CY"]["low"], share + 1e-9)


class Depth(unittest.TestCase):
    """Chains that are as long as the kernel records them at most may lack callers."""

    def record(self, *depths: int, limit: int = 0) -> Path:
        """Samples in alpha, which has so many callers, all of them in beta; first it has none."""
        recording = Stacks(max_stack=limit)
        for depth in depths:
            chain = [address("alpha"), *[address("beta")] * (depth - 1)]
            recording.take(chain)
        return recording.save("depth")

    def test_limits(self):
        """That of the event or of the system: a chain of more than 127 calls proves another one."""
        cut = {"alpha": 2, "beta": 1, "[all]": 2, "[cut]": 1}
        self.assertEqual(samples(self.record(9, 10, limit=10)), cut)
        self.assertEqual(samples(self.record(126, 127)), cut)
        found = samples(self.record(*[200] * 3, 127))
        self.assertEqual(found, {"alpha": 5, "beta": 4, "[all]": 5})
