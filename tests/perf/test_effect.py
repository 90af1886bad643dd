# SPDX-License-Identifier: GPL-2.0
"""The counts that interrupts add to windows: marks and notes.

A program is simulated here: the rates of its functions are known, and so is what each interrupt
adds to the interval after it.
"""

import math
import random
import unittest
from typing import NamedTuple

from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, must
from tests.harness.estimates import poisson
from tests.harness.tables import flat

DATA = CHECK / "effect"
EVENTS = ("cycles", "branch-misses", "instructions")  # the leader, then by name
LONG, WINDOW = 50000, 300


class Function(NamedTuple):
    """A function: its share of the time, cycles per instruction, misses per 1000 instructions."""

    share: float
    cpi: float
    misses: float


FUNCTIONS = {
    "f": Function(0.5, 2.0, 5.0),
    "g": Function(0.3, 1.0, 0.5),
    "h": Function(0.2, 5.0, 1.0),
}


def window(draw: random.Random, name: str, cycles: float, misses: float) -> tuple[int, int, int]:
    """One window of a function, to which the interrupt adds cycles and misses on average."""
    length = draw.randint(WINDOW // 2, WINDOW + WINDOW // 2)
    lost = min(max(draw.gauss(cycles, cycles / 5), 0), length - 1)
    instructions = max(round((length - lost) / FUNCTIONS[name].cpi * draw.gauss(1, 0.05)), 0)
    own = poisson(draw, FUNCTIONS[name].misses * instructions / 1000)
    return length, own + poisson(draw, misses), instructions


def interval(draw: random.Random, cycles: float, misses: float) -> tuple[int, int, int]:
    """A long interval, in which each function has about its share of the time."""
    parts = [one.share * draw.gauss(1, 0.2) for one in FUNCTIONS.values()]
    length = draw.randint(LONG - 5000, LONG + 5000)
    work = [
        (length - cycles) * part / sum(parts) / one.cpi
        for part, one in zip(parts, FUNCTIONS.values())
    ]
    own = sum(done * one.misses for done, one in zip(work, FUNCTIONS.values())) / 1000
    own = round(draw.gauss(own, math.sqrt(own)))
    return length, own + poisson(draw, misses), round(sum(work))


def rows(cycles: float, misses: float) -> dict[str, dict]:
    """The rows by symbol of a program's windows, all of which end where they begin."""
    draw = random.Random(6)
    windows: dict[str, list] = {name: [] for name in FUNCTIONS}
    for name in draw.choices([*FUNCTIONS], [one.share for one in FUNCTIONS.values()], k=4000):
        windows[name].append(window(draw, name, cycles, misses))
    longs = [interval(draw, cycles, misses) for _ in range(4000)]
    text = sumsfile.HEAD + sumsfile.window_set(EVENTS, windows, longs, period=LONG) + "end\n"
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / "drawn.sums").write_text(text)
    table = must(PERF, "functions", "report", "-j", DATA / "drawn.sums", stderr=-1)
    return {row["symbol"]: row for row in flat(table)["functions"]}


class Effect(unittest.TestCase):
    def test_disturbed_values_are_marked(self):
        """Values are marked if the windows' rates are not those of the long intervals."""
        for row in rows(40, 0.7).values():
            self.assertEqual({row["doubts"][title] for title in ("CPI", "BM/KI")}, {"interrupt"})
        for name, row in rows(0, 0).items():
            self.assertNotIn("CPI", row["weak"])
            self.assertAlmostEqual(row["metrics"]["CPI"] / FUNCTIONS[name].cpi, 1, delta=0.05)
