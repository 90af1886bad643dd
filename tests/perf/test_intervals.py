# SPDX-License-Identifier: GPL-2.0
"""Do the 95 % intervals of `perf functions report` contain the truth in 95 of 100 cases?

Intervals are computed here a second time, from the equations that they solve. Windows are drawn
from several distributions with known rates.
"""

import itertools
import math
import random
import unittest
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, must
from tests.harness.estimates import (
    EVENTS,
    HEADER,
    Bounds,
    Window,
    crowd,
    estimate,
    poisson,
    rate_bounds,
    sums_line,
)
from tests.harness.tables import flat

DATA = CHECK / "intervals"


def report(*functions: str) -> dict[str, dict]:
    """The rows that perf functions makes of lines of a sums file, by symbol."""
    DATA.mkdir(parents=True, exist_ok=True)
    path = DATA / "drawn.sums"
    path.write_text("\n".join([HEADER, *sorted(functions), "end\n"]))
    return rows_of(must(PERF, "functions", "report", "-j", path))


def report_samples(windows: dict[str, list[Window]]) -> dict[str, dict]:
    """The rows of windows that follow a sample each, which tell the shares."""
    samples = {name: [999700.0] * len(own) for name, own in windows.items()}
    path = DATA / "samples.sums"
    path.write_text(
        sumsfile.HEAD
        + sumsfile.window_set(EVENTS, windows, even=2)
        + sumsfile.sample_set({EVENTS[0]: samples}, even=2, hidden=True)
        + "end\n"
    )
    return rows_of(must(PERF, "functions", "report", "-j", path))


def rows_of(text: str) -> dict[str, dict]:
    """The rows of a JSON report by symbol."""
    return {row["symbol"]: row for row in flat(text)["functions"]}


class Method(unittest.TestCase):
    """The interval of each metric is the one that its documentation says."""

    def assert_bounds(self, told: Sequence[float], expected: Bounds) -> None:
        for one, other in zip(told, expected, strict=True):
            self.assertTrue(math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9), (told, expected))

    def test_rates(self):
        """Windows are few or many, and events frequent or rare."""
        draw = random.Random(1)
        windows = {
            f"f{number:03}": [
                (300, draw.randrange(50, 600), draw.randrange(number // 5, 9))
                for _ in range(number)
            ]
            for number in (2, 3, 4, 7, 20, 40)
        }
        rows = report(*(sums_line(*item) for item in windows.items()))
        everything = list(itertools.chain(*windows.values()))
        for name, row in rows.items():
            for column, event, scale in (("CPI", 0, 1), ("PF/KI", 2, 1000)):
                told = [bound / scale for bound in row["intervals"][column]]
                error = scale * estimate(windows[name], event, 1).error
                self.assertAlmostEqual(row["errors"][column] / error, 1)
                self.assert_bounds(
                    told, rate_bounds(windows[name], event, 1, crowd(everything, event))
                )

    def test_windows_that_leave(self):
        """Its rates are weak if more than a tenth of the windows that begin in a function leave it.

        They are those of the windows that stay.
        """
        draw = random.Random(7)
        stay, leave = ([(300, draw.randrange(200, 300), 0) for _ in range(n)] for n in (45, 6))
        for number, is_left in ((5, False), (6, True)):
            told = report(
                sums_line("f", stay, leave[:number], entered=20),
                sums_line("g", stay, entered=number),
            )["f"]
            value = estimate(stay, 0, 1)
            self.assertAlmostEqual(told["metrics"]["CPI"], value.value)
            self.assertAlmostEqual(told["errors"]["CPI"], value.error, delta=1e-6)
            self.assertEqual(told["doubts"]["CPI"], "leaves" if is_left else None)
            self.assertEqual(told["metrics"]["DIS"], 100 * 20 / 65)

    def test_bursts(self):
        """The windows of a burst are one in the degrees of freedom."""
        draw = random.Random(9)
        bursts = [(600, draw.randrange(100, 900), 0) for _ in range(5)]
        fields = sums_line("f", bursts).split("\t")
        for place in (4, 6, 7):  # windows that begin and end here, that begin here, that end here
            fields[place] = "10"
        row = report("\t".join(fields))["f"]
        self.assertAlmostEqual(row["errors"]["CPI"], estimate(bursts, 0, 1).error, delta=1e-6)
        self.assert_bounds(row["intervals"]["CPI"], rate_bounds(bursts, 0, 1))


class Printed(unittest.TestCase):
    """--ci, and the marks of weak values."""

    @classmethod
    def setUpClass(cls) -> None:
        draw = random.Random(5)
        cls.rows = report(
            sums_line(
                "hot", [(300, draw.randrange(150, 250), draw.randrange(6)) for _ in range(400)]
            ),
            sums_line("idle", [(300, 300, 0)] * 100),
            sums_line("rare", [(300, 100, 1), (300, 400, 0)]),
            sums_line("once", [(300, 300, 0)]),
        )
        cls.path = DATA / "printed.sums"
        (DATA / "drawn.sums").rename(cls.path)

    def table(self, *options: str) -> str:
        return must(PERF, "functions", "report", self.path, *options, stderr=-1)

    def test_ci_of_the_table(self):
        note, header, *lines = self.table("--ci").replace("95 %", "95%").splitlines()
        # the note tells what the intervals are about, and what they are not about
        self.assertRegex(note, "^# 95% .*this run.*several runs")
        self.assertEqual(header.split()[:6], ["symbol", "#", "CPI", "95%", "PF/KI", "95%"])
        for line in lines:
            if line.startswith("#"):
                continue
            symbol, *cells = line.replace("?", " ").split()
            intervals = self.rows[symbol]["intervals"]
            for column, digits, cell in ("CPI", 1, cells[2]), ("PF/KI", 3, cells[4]):
                bounds = intervals[column] or []
                told = "..".join(f"{bound:.{digits}f}" for bound in bounds) or "-"
                self.assertEqual(cell, told)

    def marked(self) -> set[tuple[str, str]]:
        """Functions and columns of the values with a mark."""
        table = [line for line in self.table().splitlines() if not line.startswith("#")]
        header, *lines = (line.split() for line in table)
        return {
            (line[0], name)
            for line in lines
            for name, word in zip(header, line)
            if word.endswith("?")
        }

    def test_marks(self):
        """A value is marked where it comes from less than 20 windows, where its interval is not
        narrower than itself, or where a 0 may be what others have.
        """
        marked = self.marked()
        self.assertIn(("rare", "CPI"), marked)
        self.assertIn(("once", "CPI"), marked)
        self.assertIn(("once", "PF/KI"), marked)
        self.assertNotIn(("hot", "PF/KI"), marked)
        self.assertNotIn(("idle", "PF/KI"), marked)
        for symbol, row in self.rows.items():
            for column, value in row["metrics"].items():
                if column != "#" and value:
                    low, high = row["intervals"][column] or (-math.inf, math.inf)
                    few = row["metrics"]["#"] < 20 and not column.startswith("%")
                    self.assertEqual(
                        (symbol, column) in marked, few or high - low >= value, (symbol, column)
                    )
            self.assertEqual({column for name, column in marked if name == symbol}, {*row["weak"]})


def skidding(draw: random.Random) -> Window:
    """A window that is longer now and then."""
    cycles = 300 + 12 * poisson(draw, 2.5)
    return cycles, cycles * 2 // 3 + draw.randrange(-20, 21), 0


class Drawn(NamedTuple):
    """Windows of a function whose true rate is known.

    most: the highest percentage of intervals that may contain the rate; it is 97 where windows are
    many and their counts regular.
    """

    column: str
    truth: float
    number: int
    window: Callable[[random.Random], Window]
    most: float = 97


DRAWN = {
    "frequent events": Drawn("PF/KI", 2.5 / 0.3, 40, lambda draw: (300, 300, poisson(draw, 2.5))),
    "rare events": Drawn("PF/KI", 0.1 / 0.3, 200, lambda draw: (300, 300, poisson(draw, 0.1))),
    "bursts of events": Drawn(
        "PF/KI", 1 / 0.3, 200, lambda draw: (300, 300, poisson(draw, draw.choice((0, 0, 0, 4)))), 98
    ),
    "regular events": Drawn("PF/KI", 2.5 / 0.3, 100, lambda draw: (300, 300, draw.choice((2, 3)))),
    "instructions vary": Drawn(
        "CPI", 1.5, 100, lambda draw: (300, round(draw.gammavariate(8, 25)), 0)
    ),
    "instructions vary much": Drawn(
        "CPI", 1.5, 100, lambda draw: (300, round(draw.gammavariate(1, 200)), 0), 98
    ),
    "two phases": Drawn("CPI", 1.2, 100, lambda draw: (300, draw.choice((100, 400)), 0)),
    "few windows": Drawn(
        "CPI", 1.5, 4, lambda draw: (draw.randrange(295, 306), round(draw.gauss(200, 30)), 0), 100
    ),
    "skid": Drawn("CPI", 1.5, 1000, skidding),
}
REGULAR: dict[str, tuple[str, Callable[[random.Random], Window]]] = {
    "CPI of windows that differ by 10 %": (
        "CPI",
        lambda draw: (300, round(draw.gauss(200, 20)), 0),
    ),
    "CPI of windows that differ by 35 %": (
        "CPI",
        lambda draw: (300, round(draw.gammavariate(8, 25)), 0),
    ),
    "four events": ("PF/KI", lambda draw: (300, 300, poisson(draw, 4))),
    "30 events, more or less": ("PF/KI", lambda draw: (300, 300, max(0, round(draw.gauss(30, 8))))),
}
SHARES = {"a": (0.45, 300), "b": (0.3, 100), "c": (0.15, 600), "d": (0.07, 200), "e": (0.03, 300)}


def alike(
    window: Callable[[random.Random], Window],
    number: int,
    functions: int,
    draw: random.Random,
    *others: str,
) -> dict[str, dict]:
    """The table of functions with this number of windows each, and of others."""
    return report(
        *others,
        *(
            sums_line(f"f{function:04}", [window(draw) for _ in range(number)])
            for function in range(functions)
        ),
    )


class Coverage(unittest.TestCase):
    """At least 93 % of the intervals of drawn windows contain the truth.

    At most 97 % do where windows are many and regular.
    """

    def assert_coverage(self, name: str, inside: Sequence[bool], most: float = 97) -> None:
        percent = 100 * sum(inside) / len(inside)
        print(f"{name}: {percent:.1f} % of {len(inside)} intervals contain the truth")
        self.assertGreater(percent, 93, name)
        self.assertLessEqual(percent, most, name)

    def test_rates(self):
        for name, case in DRAWN.items():
            draw = random.Random(3)
            trials = min(3000, 400000 // case.number)
            rows = alike(case.window, case.number, trials, draw)
            bounds = [row["intervals"][case.column] for row in rows.values()]
            with self.subTest(name):
                self.assert_coverage(
                    name, [low <= case.truth <= high for low, high in bounds], case.most
                )

    def test_power(self):
        """Not everything is marked: 20 regular windows are enough.

        With many windows, the interval is no wider than chance makes it.
        """
        for name, (column, window) in REGULAR.items():
            draw = random.Random(10)
            few, many = (alike(window, *size, draw).values() for size in ((20, 300), (2000, 30)))
            weak = sum(column in row["weak"] for row in few)
            widths = [
                (high - low) / (2 * 1.96 * row["errors"][column])
                for row in many
                for low, high in [row["intervals"][column]]
            ]
            print(
                f"{name}: {weak} of 300 of 20 windows are marked; of 2000 windows intervals are"
                f" {sum(widths) / len(widths):.2f} times as wide as 1.96 standard errors"
            )
            with self.subTest(name):
                self.assertLess(weak, 9)
                self.assertLess(sum(widths) / len(widths), 1.1)

    def test_shares(self):
        """Shares of cycles and of instructions have right intervals.

        A window follows each sample of cycles; windows of some functions have more instructions.
        """
        draw = random.Random(4)
        whole = sum(share * instructions for share, instructions in SHARES.values())
        inside: dict[str, dict[str, list[bool]]] = {"%CY": {}, "%I": {}}
        for _ in range(2000):
            windows: dict[str, list[Window]] = {name: [] for name in SHARES}
            for name in draw.choices(list(SHARES), [share for share, _ in SHARES.values()], k=150):
                windows[name].append((300, round(SHARES[name][1] * draw.uniform(0.8, 1.2)), 0))
            rows = report_samples(windows)
            for name, (share, instructions) in SHARES.items():
                for column, truth in (("%CY", share), ("%I", share * instructions / whole)):
                    bounds = rows[name]["intervals"][column] if name in rows else [0, 0]
                    if bounds:  # one window has no interval
                        is_inside = bounds[0] <= 100 * truth <= bounds[1]
                        inside[column].setdefault(name, []).append(is_inside)
        for column, functions in inside.items():
            for name, cases in functions.items():
                with self.subTest(column, name=name):
                    what = f"{column} of {100 * SHARES[name][0]:.0f} %"
                    self.assert_coverage(what, cases, most=99)  # some have few samples
