# SPDX-License-Identifier: GPL-2.0
"""perf functions report --children: the windows of a function and of all that it calls.

Made-up programs take steps of one instruction with a known number of cycles. Their stack is known
after each step, and so are the sums of each function and its callees. test_functions.py compares
the sums of random call chains.
"""

import json
import unittest
from collections.abc import Sequence
from pathlib import Path

from tests.harness import stacks
from tests.harness.env import PERF, must, run
from tests.harness.recording import WINDOW
from tests.harness.stacks import Stacks, address

NAMES = "alpha", "beta", "[all]", "[cut]"


def report(*arguments: object, **options):
    return run(PERF, "functions", "report", *arguments, stderr=-1, **options)


def rows(path: Path, *options: object) -> dict[str, dict]:
    """The rows of --children by symbol."""
    text = must(PERF, "functions", "report", "-i", path, "--children", "-j", *options, stderr=-1)
    return {row["symbol"]: row for row in json.loads(text)["functions"]}


def windows(path: Path, *options: object) -> dict[str, int]:
    """The windows of each row."""
    found = rows(path, "--source", "windows", *options)
    return {name: row["observations"]["windows"] for name, row in found.items()}


class LinkRegister(unittest.TestCase):
    """arm64 leaves a function's caller out of the chain while the function has no frame."""

    MASK = 1 << 30

    def names(self, chain: Sequence[int], register: int, arch: str = "aarch64") -> set[str]:
        recording = Stacks(registers=self.MASK, arch=arch)
        recording.take(chain, registers=[register])
        recording.take(chain, WINDOW, registers=[register])
        return set(windows(recording.save("register"), "--symfs=/")) - {"[all]"}

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


class Program(unittest.TestCase):
    """Rates and shares of a program whose calls are shorter than its windows."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.program = stacks.Program()
        cls.done = cls.program.done

    def test_rates_and_shares(self):
        """Rates and shares of each function with all that it calls are right.

        A table of functions alone lacks the callers: their calls leave no window in them alone.
        `alpha` has no rate, as a window is longer than the function. Fewer windows hold the begin
        and end of a call, so a rate is off by up to 3 % here.
        """
        path = self.program.record(1, 4000)
        table = rows(path)
        whole = self.done["[all]"]
        for name in ("gamma", "beta", "twice", "[all]"):
            done, metrics = self.done[name], table[name]["metrics"]
            with self.subTest(name):
                cpi = done["cycles"] / done["instructions"]
                self.assertAlmostEqual(metrics["CPI"]["value"] / cpi, 1, delta=0.03)
                share = 100 * done["cycles"] / whole["cycles"]
                self.assertAlmostEqual(metrics["%CY"]["value"], share, delta=2.5)
                instructions = 100 * done["instructions"] / whole["instructions"]
                self.assertAlmostEqual(metrics["%I"]["value"], instructions, delta=2.5)
                self.assertLess(metrics["%CY"]["low"], share + 1e-9)
        share = 100 * self.done["alpha"]["cycles"] / whole["cycles"]
        self.assertAlmostEqual(table["alpha"]["metrics"]["%CY"]["value"], share, delta=2.5)
        alone = json.loads(must(PERF, "functions", "report", "-i", path, "-j", stderr=-1))
        beta = next(row for row in alone["functions"] if row["symbol"] == "beta")
        inclusive = table["beta"]["observations"]["windows"]
        self.assertLess(beta["observations"]["windows"], 0.1 * inclusive)


class Depth(unittest.TestCase):
    """Chains that are as long as the kernel records them at most may lack callers."""

    def record(self, *depths: int, limit: int = 0) -> Path:
        """Windows in alpha, which has so many callers, all of them in beta."""
        recording = Stacks(max_stack=limit)
        for depth in depths:
            chain = [address("alpha"), *[address("beta")] * (depth - 1)]
            recording.window(chain, chain)
        return recording.save("depth")

    def test_a_limit_of_the_event(self):
        self.assertEqual(windows(self.record(9, 10, limit=10)), dict.fromkeys(NAMES, 1))

    def test_the_usual_limit(self):
        self.assertEqual(windows(self.record(126, 127)), dict.fromkeys(NAMES, 1))

    def test_another_limit_of_the_system(self):
        """A chain of more than 127 calls proves that the machine's limit is another one."""
        found = windows(self.record(*[200] * 3, 127))
        self.assertEqual(found, {"alpha": 4, "beta": 4, "[all]": 4})
