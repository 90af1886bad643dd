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

from tests.harness import perfwrite as pw
from tests.harness import stacks, sumsfile
from tests.harness.env import PERF, must, run, words
from tests.harness.recording import LONG, WINDOW, Recording
from tests.harness.stacks import DATA, Stacks, address


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


class Activations(unittest.TestCase):
    """The functions of a call chain for which a window counts."""

    def check(self, first: Sequence[int], last: Sequence[int], expected: dict[str, int]) -> None:
        """expected: 1 if the window counts, else 0, by function of the last chain."""
        recording = Stacks()
        recording.window(first, last)
        found = numbers(recording.save("window"))
        self.assertEqual(found, {name: (1, counts) for name, counts in expected.items()})

    def test_same_function(self):
        main = address("beta", 8)
        self.check(
            [address("alpha", 4), main],
            [address("alpha", 9), main],
            {"[all]": 1, "beta": 1, "alpha": 1},
        )

    def test_call_and_return(self):
        """The caller was on the stack all the time; its callee was not."""
        inner, outer = [address("alpha", 4), address("beta", 8)], [address("beta", 12)]
        self.check(inner, outer, {"[all]": 1, "beta": 1})
        self.check(outer, inner, {"[all]": 1, "beta": 1, "alpha": 0})

    def test_another_call(self):
        """Calls from two places in beta are two calls. Calls from one place look like one."""
        first, second = (
            [address("alpha", 4), address("beta", at), address("gamma", 4)] for at in (8, 16)
        )
        self.check(first, second, {"[all]": 1, "gamma": 1, "beta": 1, "alpha": 0})
        self.check(first, first, {"[all]": 1, "gamma": 1, "beta": 1, "alpha": 1})

    def test_recursion_counts_once(self):
        """A function that is on the stack several times was in its first activation."""
        again = [address("alpha", 4), address("alpha", 8), address("alpha", 8), address("beta", 8)]
        self.check(again, again[1:], {"[all]": 1, "beta": 1, "alpha": 1})
        self.check(again[1:], again, {"[all]": 1, "beta": 1, "alpha": 1})

    def test_burst_is_one_window(self):
        """It is for the caller, whose call goes on; callees in turn have windows of their own."""
        recording = Stacks()
        recording.groups[0][0].alternative_sample_count = 3
        caller = address("beta", 8)
        recording.take([address("alpha", 4), caller])
        for name, instructions in (("alpha", 5), ("gamma", 7), ("gamma", 11)):
            recording.take([address(name, 4), caller], WINDOW, instructions)
        path = recording.save("burst")
        text = must(PERF, "functions", "report", "-i", path, "--children", "--sums=-", stderr=-1)
        squares = {
            symbol: sums["products"]["instructions*instructions"]
            for ((symbol, *_), _), sums in sumsfile.read(text)[0].items()
        }
        self.assertEqual(
            squares, {"[all]": 23**2, "beta": 23**2, "alpha": 5**2, "gamma": 11**2}
        )


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


class CutChains(unittest.TestCase):
    """A chain with as many frames as the kernel writes has no root; its callers are not known."""

    def test_cut(self):
        recording = Stacks(max_stack=3)
        chain = [address(name, 4) for name in ("alpha", "beta", "gamma")]
        recording.window(chain, chain)
        recording.window(chain[1:], chain)
        recording.window(chain, chain[1:])
        recording.window(chain[1:], chain[1:])
        path = recording.save("cut")
        self.assertEqual(
            numbers(path), {"[all]": (2, 1), "[cut]": (2, 1), "beta": (2, 1), "gamma": (2, 1)}
        )
        told = report("-i", path, "--children", "-F", "#,%CY")
        self.assertIn(
            "perf functions: 2 of 4 windows have longer call chains than were recorded", told.stderr
        )
        self.assertEqual(
            words(told.stdout)[1:],
            [
                ["[all]", "2", "100.0"],
                ["beta", "2", "100.0"],
                ["gamma", "2", "100.0"],
                ["[cut]", "2", "-"],
            ],
        )


class Refusals(unittest.TestCase):
    """One line says what is wrong."""

    def check(self, reason: str, *arguments: object) -> None:
        told = report(*arguments)
        self.assertGreater(told.returncode, 0)
        self.assertEqual((told.stdout, told.stderr), ("", f"perf functions: {reason}\n"))

    def test_options(self):
        path = Stacks().save("options")
        inline = "--children has rows of functions: leave out --by and --inline"
        for options, reason in (
            (("--by", "dso"), inline),
            (("--by", "callchain"), inline),
            (("--inline",), inline),
            (
                ("--share", "none"),
                "--children does not go with --share none: leave out one of them",
            ),
        ):
            with self.subTest(options):
                self.check(reason, "-i", path, "--children", *options)
        self.check(
            "no --by children, there are: "
            "symbol dso comm thread process cpu pmu srcline callchain cgroup",
            *("-i", path, "--by", "children"),
        )

    def test_recordings_without_whole_chains(self):
        lacks = (
            "cycles lacks data that these options need: use "
            "perf functions record --call-graph fp"
        )
        plain = [pw.Event("cycles", 0, 0, [1], LONG, WINDOW), pw.Event("instructions", 0, 1, [2])]
        self.check(lacks, "-i", Recording([plain]).write(DATA / "plain.data"), "--children")


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

    def test_sums_add_up(self):
        """The sums of two recordings add up to those of both.

        So do the sums of spans of time.
        """
        one, other, both = DATA / "one.sums", DATA / "other.sums", DATA / "both.sums"
        path = self.program.record(3, 200)
        for sums, span in ((one, ",0.000001200"), (other, "0.000001201,")):
            must(
                PERF,
                "functions",
                "report",
                "-i",
                path,
                "--children",
                "--time",
                span,
                "--sums",
                sums,
            )
        must(PERF, "functions", "report", "-i", path, "--children", "--sums", both)
        spans = must(PERF, "functions", "report", one, other, "--sums", "-", stderr=-1)
        self.assertEqual(spans, both.read_text())
        twice = must(PERF, "functions", "report", both, both, "-j", stderr=-1)
        found = {row["symbol"]: row["events"] for row in json.loads(twice)["functions"]}
        for name, row in rows(path).items():
            count = row["events"]["cycles"]["count"]
            self.assertEqual(found[name]["cycles"]["count"], 2 * count)


if __name__ == "__main__":
    unittest.main()
