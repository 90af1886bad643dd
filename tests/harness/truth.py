# SPDX-License-Identifier: GPL-2.0
"""The truth of the benchmark, and checks of tables of metrics against it.

`benchmark --truth` counts it one instruction at a time, without a PMU. The rows of a table are
those of perf functions report --json, by symbol.
"""

import bisect
import math
import re
import unittest
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.harness.env import ARCH, BUILD, machine, must
from tests.harness.perfdata import Sample

LEAVES = [
    "nops",
    "int_divider_stalls",
    "fp_divider_stalls",
    "isb",
    "branch_mispredicts",
    "double_to_int",
    "dcache_miss",
]
PAGES = 96  # touched by dcache_miss in an iteration
Rows = dict[str, dict[str, Any]]


def places(samples: Sequence[Sample]) -> list[str]:
    """The function of the emulated machine's benchmark that each sample is in, as nm has it."""
    program = BUILD / f"root/{ARCH}/usr/bin/benchmark"
    listing = must(f"{machine(ARCH, 'cross_compile')}nm", "-n", program)
    symbols = re.findall(r"^(\w+) [tT] (\w+)$", listing, re.M)
    starts = [int(address, 16) for address, _ in symbols]
    return [symbols[bisect.bisect(starts, sample.ip) - 1][1] for sample in samples]


class Line(NamedTuple):
    """A line of --truth."""

    length: int  # instructions of a call
    calls: int
    instructions: int
    share: float  # part of all instructions
    faults: int  # page faults in a call


Truth = dict[str, Line]


def read_truth(text: str) -> Truth:
    """Parses the output of --truth, by function."""
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {
        name: Line(int(length), int(calls), int(total), float(share) / 100, int(faults))
        for name, length, calls, total, share, faults in lines
    }


def predicted(truth: Truth, window: int) -> dict[str, float]:
    """The shares of windows inside one call: share x (1 - window / call length), renormalised."""
    rest = {name: row.share * max(0.0, 1 - window / row.length) for name, row in truth.items()}
    return {name: value / sum(rest.values()) for name, value in rest.items()}


def check_shares(case: unittest.TestCase, table: Rows, truth: Truth, window: int) -> None:
    """Asserts that shares of cycles, the leader, are right within 4 standard errors.

    In share mode auto, where samples have opened windows, the right shares are the truth; in the
    others predicted() gives them.
    """
    every = {name: row["windows"]["opened"] for name, row in table.items()}
    if any(every.values()):
        shares, weight = {name: row.share for name, row in truth.items()}, 1
    else:
        every = {name: row["events"]["cycles"]["count"] for name, row in table.items()}
        shares, weight = predicted(truth, window), window
    counts = {name: every.get(name, 0) for name in truth}
    # the table, but not the truth, includes start and end of the program
    case.assertGreater(sum(counts.values()), 0.98 * sum(every.values()))
    windows = sum(counts.values()) / weight
    for name, share in shares.items():
        error = math.sqrt(share * (1 - share) / windows)
        measured = counts[name] / sum(counts.values())
        case.assertLessEqual(
            abs(measured - share), 4 * error, f"{name}: {measured}, expected {share}"
        )


def measured_rates(
    table: Rows, event: str, per: str = "instructions"
) -> dict[str, tuple[float, float, int]]:
    """Per function with two windows or more: event / per, its standard error, the number of events.

    The error is that of a ratio of sums over windows: sqrt(sum (e - r p)^2) / sum p.
    """
    rows = {}
    for name, row in table.items():
        total, product = row["sums"][0]["totals"], row["sums"][0]["products"]
        if row["windows"]["matched"] < 2:
            continue
        rate = total[event] / total[per]
        cross = product["*".join(sorted((event, per)))]
        squares = (
            product[f"{event}*{event}"] - 2 * rate * cross + rate**2 * product[f"{per}*{per}"]
        )
        rows[name] = rate, math.sqrt(max(0, squares)) / total[per], total[event]
    return rows
