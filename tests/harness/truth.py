# SPDX-License-Identifier: GPL-2.0
"""The truth: `benchmark --truth` counts its own one instruction at a time, the core model that of
all programs.
"""

import bisect
import re
from collections.abc import Sequence
from pathlib import Path
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


def table(path: Path) -> list[dict[str, int]]:
    """The model's table: thread, image, address, and counts."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return [
        {key: int(text, 16 if key == "address" else 10) for key, text in zip(lines[0], line)}
        for line in lines[1:]
    ]


def of_program(path: Path, thread: int) -> list[dict[str, int]]:
    """The rows of the last program of a thread, without the kernel's."""
    rows = [row for row in table(path) if row["thread"] == thread and not row["address"] >> 63]
    return [row for row in rows if row["image"] == rows[-1]["image"]]
