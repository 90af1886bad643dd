# SPDX-License-Identifier: GPL-2.0
"""Simulated runs of a program as sums files, and the comparison that perf makes of them.

It is known how far runs differ and what has changed between builds.
"""

import json
import math
import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, run
from tests.harness.estimates import EVENTS, poisson

DATA = CHECK / "diff"
LONG = 999700  # period between windows
SPREAD = 40  # standard deviation of the instructions in a window
# a few functions have most windows, as in real programs
MANY = {f"f{number}": 5000 // number for number in range(1, 21)}
COLUMNS = ("CPI", "PF/KI", "%CY")


Row = tuple[str, str, str, Sequence[float]]  # symbol, DSO, address, number, totals, products


def sums(rows: Sequence[Row]) -> str:
    """A sums file: windows of rows, and the samples of their leader that begin them."""
    line = sumsfile.line
    windows, samples = [], []
    for *name, (number, *values) in rows:
        windows.append(line("row", *name, *[number] * 4, *values))
        periods = LONG * number, LONG**2 * number
        near = [0] * sumsfile.BINS
        samples.append(line("row", *name, number, number, 0, 0, *periods, number, *near))
    return "".join(
        [
            sumsfile.HEAD,
            line("set", "windows", 2, 0, 0, 0, *EVENTS),
            line("group", LONG, 0, 300, 1, 0, 1),
            *windows,
            line("set", "samples", 2, 0, 0, 1, EVENTS[0]),
            line("group", LONG, 0, 300, 1, 0, 1),
            *samples,
            "end\n",
        ]
    )


class Program(NamedTuple):
    """A program of which runs are drawn."""

    sizes: dict[str, int]  # number of windows by function
    cpi: float = 1.5
    folder: Path = DATA  # for sums files

    def run(
        self,
        draw: random.Random,
        deviation: float | Mapping[str, float],
        together: float = 0,
        slower: float = 1,
    ) -> dict[str, Sequence[int]]:
        """The numbers of each function in a sums file.

        CPI, page faults and share differ from run to run by a standard deviation, of all functions
        or of each; together is the part of the variance of CPI that all functions have in common. Functions named slow* are
        slower by the factor slower. The moments of normal windows are drawn instead of the windows.
        """
        common = math.sqrt(together) * draw.gauss(0, 1)
        numbers = {}
        for name, size in self.sizes.items():
            own = deviation if isinstance(deviation, (int, float)) else deviation[name]
            cpi = self.cpi * math.exp(own * (common + math.sqrt(1 - together) * draw.gauss(0, 1)))
            cpi *= slower if name.startswith("slow") else 1
            number = max(2, poisson_or_normal(draw, size * math.exp(own * draw.gauss(0, 1))))
            instructions = draw.gauss(300 / cpi * number, SPREAD * math.sqrt(number))
            squares = SPREAD**2 * draw.gammavariate((number - 1) / 2, 2)
            faults = poisson_or_normal(draw, number * math.exp(own * draw.gauss(0, 1)))
            numbers[name] = [number] + [
                round(value)
                for value in (
                    300 * number,
                    instructions,
                    faults,
                    300**2 * number,
                    300 * instructions,
                    300 * faults,
                    instructions**2 / number + squares,
                    instructions * faults / number,
                    faults**2 / number + faults,
                )
            ]
        return numbers

    def runs(self, draw: random.Random, number: int, side: str, **options: object) -> list[Path]:
        """Sums files of several runs."""
        paths = [self.folder / f"{side}-{place}.sums" for place in range(number)]
        for path in paths:
            numbers = self.run(draw, **options)
            path.write_text(sums([(name, "/prog", "-", own) for name, own in numbers.items()]))
        return paths


def poisson_or_normal(draw: random.Random, mean: float) -> int:
    """A number of events by chance; many are nearly normal."""
    return poisson(draw, mean) if mean < 50 else round(draw.gauss(mean, math.sqrt(mean)))


def compared(
    before: Sequence[Path], after: Sequence[Path], *options: str
) -> subprocess.CompletedProcess:
    """The JSON object of perf functions report --before ... --after ..., and its exit status."""
    return run(
        PERF,
        "functions",
        "report",
        "-j",
        "--before",
        *before,
        "--after",
        *after,
        *options,
        stderr=-1,
    )


def flat(change: dict) -> dict:
    """A change of the JSON object as numbers."""
    values = {name: change[name] or {} for name in ("before", "after", "change")}
    numbers = {name: value.get("value") for name, value in values.items()}
    ends = values["change"]
    return numbers | {
        "interval": [ends["low"], ends["high"]] if "low" in ends else None,
        "significant": change["significant"],
        **{
            mark: any(value.get("mark") == mark for value in values.values())
            for mark in ("weak", "rough")
        },
    }


def rows_of(done: subprocess.CompletedProcess) -> list[dict]:
    """The functions of the JSON object, with the numbers of each change."""
    return [
        row | {"metrics": {name: flat(one) for name, one in row["metrics"].items()}}
        for row in json.loads(done.stdout)["functions"]
    ]


def by_column(done: subprocess.CompletedProcess) -> dict[str, dict[str, dict]]:
    """The changes, by column and symbol."""
    rows = rows_of(done)
    return {column: {row["symbol"]: row["metrics"][column] for row in rows} for column in COLUMNS}
