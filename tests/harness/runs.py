# SPDX-License-Identifier: GPL-2.0
"""Simulated runs of a program as sums files, and the comparison that perf makes of them.

It is known how far runs differ and what has changed between builds.
"""

import json
import math
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.harness.env import CHECK, PERF, run
from tests.harness.estimates import HEADER, discard_line, poisson

DATA = CHECK / "diff"
SPREAD = 40  # standard deviation of the instructions in a window
# a few functions have most windows, as in real programs
MANY = {f"f{number}": 5000 // number for number in range(1, 21)}
COLUMNS = ("CPI", "PF/KI", "%CY")


class Program(NamedTuple):
    """A program of which runs are drawn."""

    sizes: dict[str, int]  # number of windows by function
    cpi: float = 1.5
    folder: Path = DATA  # for sums files

    def run(
        self, draw: random.Random, deviation: float, together: float = 0, slower: float = 1
    ) -> dict[str, Sequence[int]]:
        """The numbers of each function in a sums file.

        CPI, page faults and share differ from run to run by a standard deviation; together is the
        part of the variance of CPI that all functions have in common. Functions named slow* are
        slower by the factor slower. The moments of normal windows are drawn instead of the windows.
        """
        common = math.sqrt(together) * deviation * draw.gauss(0, 1)
        own = math.sqrt(1 - together) * deviation
        numbers = {}
        for name, size in self.sizes.items():
            cpi = self.cpi * math.exp(common + own * draw.gauss(0, 1))
            cpi *= slower if name.startswith("slow") else 1
            number = max(2, poisson_or_normal(draw, size * math.exp(deviation * draw.gauss(0, 1))))
            instructions = draw.gauss(300 / cpi * number, SPREAD * math.sqrt(number))
            squares = SPREAD**2 * draw.gammavariate((number - 1) / 2, 2)
            faults = poisson_or_normal(draw, number * math.exp(deviation * draw.gauss(0, 1)))
            numbers[name] = [number, number] + [
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

    def runs(self, draw: random.Random, number: int, side: str, **options: float) -> list[Path]:
        """Sums files of several runs."""
        paths = [self.folder / f"{side}-{place}.sums" for place in range(number)]
        for path in paths:
            lines = sorted(self.run(draw, **options).items())
            path.write_text(
                "\n".join(
                    [
                        HEADER,
                        *(discard_line(name, *numbers[:2], numbers[2:]) for name, numbers in lines),
                        "end\n",
                    ]
                )
            )
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


def by_column(done: subprocess.CompletedProcess) -> dict[str, dict[str, dict]]:
    """The changes, by column and symbol."""
    rows = json.loads(done.stdout)["functions"]
    return {column: {row["symbol"]: row["metrics"][column] for row in rows} for column in COLUMNS}
