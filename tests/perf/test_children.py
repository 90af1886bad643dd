# SPDX-License-Identifier: GPL-2.0
"""perf functions report --children: the windows of a function and of all that it calls.

Made-up programs take steps of one instruction with a known number of cycles. Their stack is known
after each step, and so are the sums of each function and its callees. test_functions.py compares
the sums of random call chains. Command and script make the same sums, to the digit, so the tests of
the command hold for the script.
"""

import json
import unittest
from collections.abc import Sequence
from pathlib import Path

from tests.harness import stacks
from tests.harness.env import PERF, must, run
from tests.harness.recording import WINDOW
from tests.harness.stacks import Stacks, address


def report(*arguments: object, **options):
    return run(PERF, "functions", "report", *arguments, stderr=-1, **options)


def rows(path: Path, *options: object) -> dict[str, dict]:
    """The rows of --children by symbol."""
    text = must(PERF, "functions", "report", "-i", path, "--children", "-j", *options, stderr=-1)
    return {row["symbol"]: row for row in json.loads(text)["functions"]}


def numbers(path: Path, *options: object) -> dict[str, tuple[int, int]]:
    """Samples and matched windows of each row."""
    return {
        name: (row["windows"]["samples"], row["windows"]["matched"])
        for name, row in rows(path, *options).items()
    }


class LinkRegister(unittest.TestCase):
    """arm64 leaves a function's caller out of the chain while the function has no frame."""

    MASK = 1 << 30

    def names(self, chain: Sequence[int], register: int, arch: str = "aarch64") -> set[str]:
        recording = Stacks(registers=self.MASK, arch=arch)
        recording.take(chain, registers=[register])
        recording.take(chain, WINDOW, registers=[register])
        return set(numbers(recording.save("register"))) - {"[all]"}

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
            done, metrics, intervals = (
                self.done[name],
                table[name]["metrics"],
                table[name]["intervals"],
            )
            with self.subTest(name):
                self.assertAlmostEqual(
                    metrics["CPI"] / (done["cycles"] / done["instructions"]), 1, delta=0.03
                )
                share = 100 * done["cycles"] / whole["cycles"]
                self.assertAlmostEqual(metrics["%CY"], share, delta=2.5)
                self.assertAlmostEqual(
                    metrics["%I"], 100 * done["instructions"] / whole["instructions"], delta=2.5
                )
                self.assertLess(intervals["%CY"][0], share + 1e-9)
        share = 100 * self.done["alpha"]["cycles"] / whole["cycles"]
        self.assertAlmostEqual(table["alpha"]["metrics"]["%CY"], share, delta=2.5)
        alone = json.loads(must(PERF, "functions", "report", "-i", path, "-j", stderr=-1))
        beta = next(row for row in alone["functions"] if row["symbol"] == "beta")
        self.assertLess(beta["windows"]["matched"], 0.1 * table["beta"]["windows"]["matched"])
