# SPDX-License-Identifier: GPL-2.0
"""Rates of functions from windows whose branch records show their path.

The kernel clears the records at each interrupt, so the sample that ends a window has the branches
taken in it. A window then counts for each of its functions: cycles and instructions of a part are
known. Which part had the other events is not: they are split by the cycles that each part has lost
beyond one an instruction, and by the rates that the functions have so far (expectation
maximization for Poisson rates).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.harness import perfdata
from tests.harness.branchrecords import UNKNOWN, Part
from tests.harness.env import PERF, must

# columns, and the numbers of their events in the group
RATES = {"BM/KI": 2, "CM/KI": 3, "TM/KI": 4}
ROUNDS = 20
LITTLE = 0.02  # of its cycles a part can lose without a stall
LINE = re.compile(r"\s*([0-9a-f]+) (.*?) \((.*)\)$")

Window = tuple[list[int], list[Part]]  # counts in the group's order, and parts


def parts_of(sample: perfdata.Sample, begin: int, counts: list[int]) -> list[Part]:
    """The parts of a window that begins at an address, [] if the records do not show them all.

    counts: of the window.
    """
    records = sample.branches[::-1]
    cycles, instructions, *_ = counts
    starts = [begin, *(record.target for record in records)]
    ends = [*(record.source + 4 for record in records), sample.ip]
    lengths = [(end - start) // 4 for start, end in zip(starts, ends)]
    known = [record.cycles for record in records[1:]]
    rest = cycles - sum(known)
    if min(lengths) < 0 or sum(lengths) != instructions or rest < 0 or set(known) & set(UNKNOWN):
        return []
    if not records:
        return [(begin, cycles, instructions)]
    # no record tells the cycles before the first branch and after the last one
    first = rest * lengths[0] // max(lengths[0] + lengths[-1], 1)
    return list(zip(starts, [first, *known, rest - first], lengths))


def windows_of(path: Path, longest: int) -> Iterator[Window]:
    """The windows of a recording in which no member has sampled; longest: the cycles of one."""
    contents = perfdata.read(path)
    leader = contents.leader()
    before: dict[int, perfdata.Sample] = {}
    for sample in sorted(contents.samples, key=lambda sample: sample.time):
        last = before.get(sample.tid)
        before[sample.tid] = sample
        if not last or not sample.attr is last.attr is leader:
            continue
        counts = [value - last.values.get(key, 0) for key, value in sample.values.items()]
        if counts[0] <= longest and (parts := parts_of(sample, last.ip, counts)):
            yield counts, parts


def split(seen: np.ndarray, where: np.ndarray, whose: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The events of each function. seen: of each window. where, whose, weight: the window, the
    function and the weight of each part.
    """
    exposure = np.maximum(np.bincount(whose, weight), 1e-9)
    rate = np.full(len(exposure), seen.sum() / exposure.sum())
    for _ in range(ROUNDS):
        expected = np.maximum(np.bincount(where, weight * rate[whose], len(seen)), 1e-9)
        rate *= np.bincount(whose, weight * (seen / expected)[where]) / exposure
    return rate * exposure


def table(path: Path, true: Path, exact: dict[Any, Any], longest: int, *files: object) -> dict:
    """The rates of the functions in exact, as emulator/compare.py compares them.

    true: the truth, which has a sample of each executed address. files: perf's options that say
    where symbols are.
    """
    windows = list(windows_of(path, longest))
    text = must(PERF, "script", "-i", true, *files, "-F", "ip,sym,dso")
    names = {
        int(found[1], 16): (found[2], found[3])
        for found in map(LINE.match, text.splitlines())
        if found
    }
    numbers = {name: number for number, name in enumerate(sorted(set(names.values())), 1)}
    rows = [
        (window, numbers.get(names.get(address, ("", "")), 0), cycles, instructions)
        for window, (_, parts) in enumerate(windows)
        for address, cycles, instructions in parts
    ]
    where, whose, cycles, instructions = np.array(rows).T
    counts = np.array([counts for counts, _ in windows], float)
    weight = np.maximum(cycles - instructions, 0) + LITTLE * cycles
    executed = np.bincount(whose, instructions)
    found = {"CPI": np.bincount(whose, cycles)}
    found |= {
        column: 1000 * split(counts[:, event], where, whose, weight)
        for column, event in RATES.items()
    }
    return {
        key: {
            "metrics": {column: sums[number] / executed[number] for column, sums in found.items()},
            "intervals": {},
            "errors": {},
            "weak": [],
        }
        for key in exact
        if (number := numbers.get(key[:2], 0)) < len(executed) and executed[number]
    }
