# SPDX-License-Identifier: GPL-2.0
"""perf report --stitch-lbr makes chains longer than the CPU's last branch records (LBRs); perf
functions matches the ends of windows by them.

The recordings are of known calls, with 32 registers. The tests state the rule a second time, on
calls, not on perf's lists: if the outermost call of a sample is in the same register as in the
sample before, its outer calls are those of that sample.
"""

import json
import random
import re
import unittest
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from tests.harness import lbr
from tests.harness.env import CHECK, PERF, must

DATA = CHECK / "lbr"
LONG, WINDOW = 10000, 300
# Two ways to c40, with 43 and 44 callers, and calls from there.
WAYS = {"a": ("a1", "a2", "a3"), "b": ("b1", "b2", "b3", "b4")}
COMMON, DEEPER = (
    tuple(f"{letter}{number}" for number in range(1, most))
    for letter, most in (("c", 41), ("d", 11))
)
HANDLER = """
def process_event(sample):
    print(sample["ev_name"], sample["sample"]["tid"], sample["sample"]["period"],
          ";".join(node["sym"]["name"] for node in sample["callchain"]))
"""
Sample = tuple[int, str, tuple[int, ...]]  # thread, chain, counts
Rows = dict[str, list[int]]  # by chain: windows, matched windows, counts of these


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / "handler.py").write_text(HANDLER)


def chain(*names: str) -> str:
    """A chain as perf names it: callees first."""
    return ";".join(reversed(names))


def chains(path: Path, *options: str) -> Counter:
    """The number of samples of each chain in perf report."""
    out = must(
        PERF,
        "report",
        "--stdio",
        "--no-children",
        "-g",
        "folded,0,callee,function,count",
        "-i",
        path,
        *options,
        stderr=-1,
    )
    return Counter(
        {names: int(number) for number, names in re.findall(r"^(\d+) (\S+)$", out, re.M)}
    )


def native(source: object, *options: str, **more) -> Rows:
    """The rows of perf functions report."""
    report = json.loads(
        must(
            PERF,
            "functions",
            "report",
            "-i",
            source,
            "--by",
            "callchain",
            "--share",
            "discard",
            "-j",
            *options,
            stderr=-1,
            **more,
        )
    )
    return {
        row["symbol"]: [
            row["windows"]["samples"],
            row["windows"]["matched"],
            *(event["count"] for event in row["events"].values()),
        ]
        for row in report["functions"]
    }


def exported(path: Path, *options: str) -> list[Sample]:
    """The samples that perf passes to a script."""
    samples: list[Sample] = []
    for line in must(
        PERF, "script", "-i", path, *options, "-s", DATA / "handler.py", stderr=-1
    ).splitlines():
        name, tid, count, names = line.split()
        if name == "cycles":
            samples.append((int(tid), names, (int(count),)))
        else:
            samples[-1] = (*samples[-1][:2], (*samples[-1][2], int(count)))
    return samples


def rows(samples: Iterable[Sample]) -> Rows:
    """The rows that the specification gives for the samples of one stream."""
    table: Rows = {}
    for before, (tid, names, counts) in pairwise(samples):
        if 2 * counts[0] < LONG + WINDOW:
            row = table.setdefault(names, [0] * (2 + len(counts)))
            row[0] += 1
            if before[:2] == (tid, names) and 2 * before[2][0] >= LONG + WINDOW:
                row[1:] = map(sum, zip(row[1:], (1, *counts)))
    return table


class Told:
    """The chain of a thread, as its samples tell it."""

    def __init__(self) -> None:
        self.top, self.number, self.calls = (
            0,
            0,
            [],
        )  # of the last sample: registers, and calls including stitched ones

    def sample(self, thread: lbr.Thread) -> str:
        """Takes a sample; returns its chain."""
        top, own = thread.read()
        calls = list(own)
        place = (
            self.top - top + len(own) - 1
        ) % lbr.REGISTERS  # place of the outermost call in the sample before
        if own and place < self.number and self.calls[place] == own[-1]:
            calls += self.calls[place + 1 :]
        self.top, self.number, self.calls = top, len(own), calls
        return thread.chain(calls)


class Report(unittest.TestCase):
    """perf report of the published program."""

    @staticmethod
    def expected(levels: int, runs: int) -> dict[str, int]:
        """The chains with so many callers of f43.

        f41 and f42 are sampled after returns, so their outermost caller is the same.
        """
        return {
            chain(*lbr.CHAIN[43 - levels if depth > 31 else 0 : depth + 1]): number * runs
            for depth, number in ((31, 1), (41, 1), (42, 1), (43, 997))
        }

    def test_levels(self):
        """f43 has all 43 callers, 32 without the option; a script gets the same."""
        lbr.write_chain(DATA / "chain.data", 3000)
        for levels, *options in (43, "--stitch-lbr"), (32,):
            self.assertEqual(chains(DATA / "chain.data", *options), self.expected(levels, 3))
            given = Counter(names for _, names, _ in exported(DATA / "chain.data", *options))
            self.assertEqual(given, self.expected(levels, 3))

    def test_empty_stack(self):
        """Before the first call there is no LBR; the sample's address is known."""
        code = DATA / "begin.so"
        thread, recording = lbr.Thread(lbr.library(code, *lbr.CHAIN)), lbr.Branches(code)
        recording.take(thread)
        thread.call("f1")
        recording.take(thread)
        recording.write(DATA / "begin.data")
        for options in (), ("--stitch-lbr",):
            self.assertEqual(chains(DATA / "begin.data", *options), {"main": 1, "f1;main": 1})


class Functions(unittest.TestCase):
    """perf functions report --by callchain."""

    def check(self, path: Path, expected: Rows, *options: str) -> None:
        """Both implementations have these rows."""
        self.assertEqual(native(path, *options), expected)
        self.assertEqual(rows(exported(path, *options)), expected)

    def test_matching(self):
        """The ends of a window may only seem to be in one chain, or in two."""
        code, path = DATA / "ways.so", DATA / "ways.data"
        thread = lbr.Thread(lbr.library(code, "main", *WAYS["a"], *WAYS["b"], *COMMON, *DEEPER))
        recording = lbr.Branches(code, alternate=WINDOW)

        def run_to(*names: str) -> None:
            thread.leave(0)
            thread.call(*names)

        def long() -> None:
            recording.take(thread, LONG, 7)

        def window(instructions: int) -> None:
            recording.take(thread, WINDOW, instructions)

        short, whole = (*WAYS["a"], *COMMON[:28]), (*WAYS["a"], *COMMON)
        for instructions in 1, 100:
            run_to(*short)
            long()
            window(instructions)
            thread.call(*COMMON[28:])
            long()
            if instructions == 1:  # both ends are in the same chain
                window(10)
                long()
                run_to(*WAYS["b"], *COMMON)  # the last 32 calls are the same, but not all 44
            else:
                thread.call(*DEEPER)  # it takes the LBRs of ten callers, which leaves 22
                thread.leave(len(whole))
            window(1000 * instructions)
        recording.write(path)

        same = {chain("main", *short): [2, 2, 2 * WINDOW, 101]}
        cut, left = chain(*COMMON[-33:]), chain(*COMMON[-23:])
        self.check(path, {**same, cut: [2, 2, 2 * WINDOW, 1010], left: [1, 0, 0, 0]})
        self.check(
            path,
            {**same, chain("main", *whole): [2, 2, 2 * WINDOW, 100_010], cut: [1, 0, 0, 0]},
            "--stitch-lbr",
        )

    def simulate(self, seed: int, path: Path) -> tuple[Rows, Rows]:
        """A random recording of two threads as file and pipe; rows without and with stitching."""
        rng = random.Random(seed)
        names = [f"g{number}" for number in range(5)]
        starts = lbr.library(path.with_suffix(".so"), "main", *names)
        recording = lbr.Branches(path.with_suffix(".so"), alternate=WINDOW)
        told = {lbr.Thread(starts, rng.randrange(lbr.REGISTERS), tid): Told() for tid in (7, 8)}
        samples: tuple[list[Sample], list[Sample]] = ([], [])
        for number in range(500):
            # mostly stay in a chain, so that there are windows to match
            thread = rng.choice(list(told)) if number % 5 == 0 else thread
            depth = len(thread.names) - 1
            # sometimes go elsewhere, or return from deeper calls
            what = rng.choice(("go", "call", "stay", "stay"))
            if what == "go":
                thread.leave(max(0, depth - rng.choice((3, 12, 40))))
            if what != "stay":
                thread.call(*rng.choices(names, k=rng.choice((1, 9, 20))))
            if what == "call":
                thread.leave(depth)
            counts = rng.randrange(WINDOW // 2, 2 * WINDOW) if number % 2 else LONG, rng.randrange(
                1, 500
            )
            recording.take(thread, *counts)
            samples[0].append((thread.tid, thread.chain(thread.read()[1]), counts))
            samples[1].append((thread.tid, told[thread].sample(thread), counts))
        recording.write(path)
        recording.writer.write_pipe(path.with_suffix(".pipe"))
        return rows(samples[0]), rows(samples[1])

    def test_random_walks(self):
        gained = 0
        for seed in range(10):
            path = DATA / "walk.data"
            plain, stitched = self.simulate(seed, path)
            with self.subTest(seed=seed):
                self.check(path, plain)
                self.check(path, stitched, "--stitch-lbr")
            gained += sum(row[1] for row in stitched.values()) - sum(
                row[1] for row in plain.values()
            )
        self.assertGreater(gained, 100, "stitching makes no difference to what is tested")


if __name__ == "__main__":
    unittest.main()
