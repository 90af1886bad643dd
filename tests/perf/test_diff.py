# SPDX-License-Identifier: GPL-2.0
"""perf functions report --diff: changes, their intervals and their significance.

The expected values are computed here a second time or known from a simulation. Other tests are of
runs that differ, of how functions are matched, and of --fail-on for scripts.
"""

import csv
import itertools
import json
import math
import operator
import random
import re
import subprocess
import unittest
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest import mock

from bench import diff as bench_diff
from tests.harness import sumsfile
from tests.harness.env import PERF, run
from tests.harness.estimates import (
    HEADER,
    discard_line,
    Window,
    crowd,
    estimate,
    opened_line,
    poisson,
    quantile,
    rate_bounds,
    sums_line,
)
from tests.harness.runs import DATA, MANY, Program, by_column, compared
from tests.harness.simulation import Libraries, recorded

Function = tuple[str, str, str, Sequence[Window]]  # symbol, DSO, address, windows
THREE = -math.log(0.05)
ONE_RUN = "^perf functions: with one run of each build, [^\n]*\n"


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def write(name: str, functions: Sequence[Function], header: str = HEADER) -> None:
    """A sums file."""
    lines = sorted(
        (
            (symbol, dso, int(address, 16) if address != "-" else 0),
            sums_line(symbol, windows).replace("\t/prog\t-\t", f"\t{dso}\t{address}\t"),
        )
        for symbol, dso, address, windows in functions
    )
    (DATA / name).write_text("\n".join([header, *(line for _, line in lines), "end\n"]))


def write_auto(
    name: str,
    functions: dict[str, tuple[int, Sequence[Window]]],
    left: dict[str, Sequence[Window]] | None = None,
) -> Path:
    """Writes sums in share mode auto; each function has some samples that end a long interval.
    left: windows that begin in a function and end elsewhere.
    """
    header = HEADER.replace("discard\t999700\t0\t300\t0", "auto\t999700\t0\t300\t1")
    lines = (
        opened_line(function, opened, windows, (left or {}).get(function, ()), events=3)
        for function, (opened, windows) in sorted(functions.items())
    )
    path = DATA / name
    path.write_text("\n".join([header, sumsfile.intervals(3), *lines, "end\n"]))
    return path


def plain(**functions: Sequence[Window]) -> list[Function]:
    """Functions of one program."""
    return [(name, "/prog", "-", windows) for name, windows in functions.items()]


def diff(*options: object) -> subprocess.CompletedProcess:
    return run(
        PERF,
        "functions",
        "report",
        "--diff",
        DATA / "before.sums",
        DATA / "after.sums",
        *options,
        stderr=-1,
    )


def changes(before: Sequence[Function], after: Sequence[Function]) -> list[dict]:
    """The functions of the JSON object."""
    write("before.sums", before)
    write("after.sums", after)
    done = diff("-j")
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)["functions"]


def tail(t: float, freedom: float, steps: int = 2000) -> float:
    """The probability that |t| is exceeded in Student's t distribution.

    With t = sqrt(freedom) tan(angle) the density is cos^(freedom - 1), integrated by Simpson's
    rule.
    """

    def integral(low: float, high: float) -> float:
        width = (high - low) / steps
        height = [math.cos(low + step * width) ** (freedom - 1) for step in range(steps + 1)]
        return (
            width / 3 * (height[0] + height[-1] + 4 * sum(height[1::2]) + 2 * sum(height[2:-1:2]))
        )

    angle = math.atan(abs(t) / math.sqrt(freedom))
    return integral(angle, math.pi / 2 - 1e-9) / integral(0, math.pi / 2 - 1e-9)


def drawn(draw: random.Random, number: int, cpi: float = 1.5, faults: float = 1.0) -> list[Window]:
    """Windows of a function."""
    return [
        (300, max(1, round(draw.gauss(300 / cpi, 40))), poisson(draw, faults))
        for _ in range(number)
    ]


class Change(NamedTuple):
    """The change of a ratio, its interval, and the probability of such a change by chance."""

    change: float
    low: float
    high: float
    chance: float


def expected_change(
    before: dict[str, list[Window]], after: dict[str, list[Window]], name: str, event: int
) -> Change:
    """The change of event / instructions of a function, among all functions."""
    before_bounds, after_bounds = (
        rate_bounds(table[name], event, 1, crowd(list(itertools.chain(*table.values())), event))
        for table in (before, after)
    )
    new, old = (estimate(table[name], event, 1) for table in (after, before))
    bounds, chance = [], 1.0
    for side, sign in ((0, -1), (1, 1)):
        one = abs(after_bounds[side] - new.value) / quantile(new.freedom)
        other = abs(before_bounds[1 - side] - old.value) / quantile(old.freedom)
        error = math.hypot(one, other)
        freedom = error**4 / (one**4 / new.freedom + other**4 / old.freedom)
        bounds.append(new.value - old.value + sign * quantile(freedom) * error)
        if (new.value - old.value) * sign < 0:
            chance = tail((new.value - old.value) / error, freedom)
    return Change(new.value - old.value, *bounds, chance)


def significant(chances: dict[str, float]) -> set[str]:
    """The significant ones, with 5 % false discoveries (Benjamini and Hochberg)."""
    ordered = sorted(chances.values())
    limit = max(
        (chance for rank, chance in enumerate(ordered, 1) if chance <= 0.05 * rank / len(ordered)),
        default=-1,
    )
    return {name for name, chance in chances.items() if chance <= limit}


class Changes(unittest.TestCase):
    """The values that are printed of a change."""

    def test_values_and_intervals(self):
        """Functions with few and many windows.

        All functions of a column decide which are significant.
        """
        draw = random.Random(1)
        before = {f"f{number}": drawn(draw, 6 + 2 * number) for number in range(20)}
        after = {
            name: drawn(draw, 60 - len(windows), 1.5 + number % 5 / 8, 1 + number % 3)
            for number, (name, windows) in enumerate(before.items())
        }
        rows = {row["symbol"]: row["metrics"] for row in changes(plain(**before), plain(**after))}
        for column, event, scale in (("CPI", 0, 1), ("PF/KI", 2, 1000)):
            expected = {name: expected_change(before, after, name, event) for name in before}
            for name, change in expected.items():
                told = rows[name][column]
                self.assertAlmostEqual(
                    told["before"], scale * estimate(before[name], event, 1).value
                )
                self.assertAlmostEqual(told["after"], scale * estimate(after[name], event, 1).value)
                for one, other in zip((told["change"], *told["interval"]), change):
                    self.assertTrue(
                        math.isclose(one, scale * other, rel_tol=1e-5, abs_tol=1e-6),
                        (name, column, told, change),
                    )
            names = significant({name: change.chance for name, change in expected.items()})
            self.assertEqual({name for name in before if rows[name][column]["significant"]}, names)
            self.assertGreater(len(names), 3)
            self.assertLess(len(names), 17)

    def test_nothing_where_something_was(self):
        """A count of 0 has an interval, and so has its change."""
        draw = random.Random(2)
        rows = changes(
            plain(f=drawn(draw, 200), g=drawn(draw, 200)),
            plain(f=drawn(draw, 200, faults=0), g=drawn(draw, 200)),
        )
        by_name = {row["symbol"]: row["metrics"]["PF/KI"] for row in rows}
        self.assertTrue(by_name["f"]["significant"])
        self.assertFalse(by_name["g"]["significant"])
        low, high = by_name["f"]["interval"]
        self.assertTrue(low < -by_name["f"]["before"] < high < 0)

    def test_coverage(self):
        """Over 93 % of the intervals contain the true change; for many windows, at most 97 %."""
        draw = random.Random(3)
        # number of windows, CPI, page faults in a window: before, after
        for name, before, after, most in (
            ("many windows", (80, 1.2, 1), (40, 2, 1.5), 97),
            ("rare events", (100, 1, 0.1), (200, 1, 0.2), 97),
            ("few and many windows", (5, 1.5, 2), (60, 1.5, 2), 100),
        ):
            rows = changes(
                *(
                    plain(**{f"f{trial}": drawn(draw, *case) for trial in range(1500)})
                    for case in (before, after)
                )
            )
            for column, truth in (
                ("CPI", after[1] - before[1]),
                ("PF/KI", (after[2] * after[1] - before[2] * before[1]) / 0.3),
            ):
                bounds = [row["metrics"][column]["interval"] for row in rows]
                percent = 100 * sum(low <= truth <= high for low, high in bounds) / len(bounds)
                print(
                    f"{name}: {column}: {percent:.1f} % of {len(bounds)} intervals contain the true"
                    " change"
                )
                with self.subTest(name, column=column):
                    self.assertGreater(percent, 93)
                    self.assertLessEqual(percent, most)

    def test_false_discoveries(self):
        """One of 51 functions has changed: it is found, and others seldom are."""
        draw = random.Random(4)
        found, false = 0, []
        for _ in range(200):
            names = [f"f{number}" for number in range(50)]
            before = {name: drawn(draw, 30) for name in names}
            after = {name: drawn(draw, 30) for name in names} | {"changed": drawn(draw, 60, 1.8)}
            rows = changes(plain(**before, changed=drawn(draw, 60)), plain(**after))
            told = {row["symbol"] for row in rows if row["metrics"]["CPI"]["significant"]}
            found += "changed" in told
            false.append(len(told - {"changed"}) / max(len(told), 1))
        print(
            f"{found} of 200 changes found, {100 * sum(false) / 200:.1f} % of the discoveries are"
            " false"
        )
        self.assertGreater(found, 160)
        # 5 %, and 3 standard errors of that
        self.assertLess(sum(false) / 200, 0.05 + 3 * 0.15 / math.sqrt(200))


class Functions(unittest.TestCase):
    """The functions of two builds that are taken for the same."""

    def pairs(
        self, before: Sequence[tuple[str, str, str]], after: Sequence[tuple[str, str, str]]
    ) -> dict:
        """The status of each function and its place before, which its instructions encode."""
        rows = changes(
            [(*function, [(300, 100 + place, 1)] * 3) for place, function in enumerate(before)],
            [(*function, [(300, 300, 1)] * 3) for function in after],
        )
        result = {}
        for row in rows:
            cpi = row["metrics"]["CPI"]["before"]
            key = row["symbol"], row["dso"], row["address"]
            self.assertNotIn(key, result)
            result[key] = (row["status"], None if cpi is None else round(300 / cpi) - 100)
        return result

    def test_same(self):
        self.assertEqual(
            self.pairs([("f", "/a", "-"), ("g", "/a", "-")], [("g", "/a", "-"), ("h", "/a", "-")]),
            {
                ("g", "/a", None): ("both", 1),
                ("h", "/a", None): ("appeared", None),
                ("f", "/a", None): ("vanished", 0),
            },
        )

    def test_moved_build(self):
        """The file name of a DSO is enough; if two share it, the path decides."""
        self.assertEqual(
            self.pairs(
                [("f", "/old/a", "-"), ("f", "/old/b", "-")],
                [("f", "/new/b", "-"), ("f", "/new/a", "-")],
            ),
            {("f", "/new/a", None): ("both", 0), ("f", "/new/b", None): ("both", 1)},
        )
        self.assertEqual(
            self.pairs(
                [("f", "/1/a", "-"), ("f", "/2/a", "-")], [("f", "/2/a", "-"), ("f", "/3/a", "-")]
            ),
            {("f", "/2/a", None): ("both", 1), ("f", "/3/a", None): ("both", 0)},
        )
        self.assertEqual(
            self.pairs([("f", "/1/a", "-"), ("f", "/2/a", "-")], [("f", "/3/a", "-")]),
            {
                ("f", "/3/a", None): ("appeared", None),
                ("f", "/1/a", None): ("vanished", 0),
                ("f", "/2/a", None): ("vanished", 1),
            },
        )

    def test_renamed_program(self):
        """The symbol alone is enough if no other function has it."""
        self.assertEqual(
            self.pairs(
                [("f", "/a-1", "-"), ("g", "/a-1", "-"), ("g", "/b-1", "-")],
                [("f", "/a-2", "-"), ("g", "/a-2", "-"), ("g", "/b-2", "-")],
            ),
            {
                ("f", "/a-2", None): ("both", 0),
                ("g", "/a-2", None): ("appeared", None),
                ("g", "/b-2", None): ("appeared", None),
                ("g", "/a-1", None): ("vanished", 1),
                ("g", "/b-1", None): ("vanished", 2),
            },
        )

    def test_twins(self):
        """Functions with the same name and DSO are matched by the order of their addresses."""
        self.assertEqual(
            self.pairs(
                [("f", "/a", "0x10"), ("f", "/a", "0x20")],
                [("f", "/a", "0x30"), ("f", "/a", "0x40")],
            ),
            {("f", "/a", 0x30): ("both", 0), ("f", "/a", 0x40): ("both", 1)},
        )
        self.assertEqual(
            self.pairs([("f", "/a", "0x10"), ("f", "/a", "0x20")], [("f", "/a", "0x30")]),
            {
                ("f", "/a", 0x30): ("appeared", None),
                ("f", "/a", 0x10): ("vanished", 0),
                ("f", "/a", 0x20): ("vanished", 1),
            },
        )

    def test_twins_of_which_one_side_has_one(self):
        """There the name was unique, so it has no address: it may be any of the others."""
        twins = [("f", "/a", "0x10"), ("f", "/a", "0x20")]
        for dso in "/a", "/new/a":
            self.assertEqual(self.pairs(twins, [("f", dso, "-")]), {("f", dso, None): ("both", 0)})
            self.assertEqual(self.pairs([("f", dso, "-")], twins), {("f", "/a", None): ("both", 0)})

    def test_runs_of_which_one_has_one_of_twins(self):
        """All runs of both sides then have one row."""
        one, two = DATA / "one.sums", DATA / "two.sums"
        write(one.name, [("f", "/a", "-", [(300, 100, 1)] * 3)])
        write(two.name, [("f", "/a", address, [(300, 100, 1)] * 3) for address in ("0x10", "0x20")])
        for files in (one, two), (two, one), (two, two):
            addresses = [16, 32] if one not in files else [None]
            for sides in ((two, two), files), (files, (two, two)):
                done = run(
                    *(PERF, "functions", "report", "-j", "--before", *sides[0]),
                    *("--after", *sides[1]),
                    stderr=-1,
                )
                rows = json.loads(done.stdout)["functions"]
                self.assertEqual(
                    [(row["address"], row["status"]) for row in rows],
                    [(address, "both") for address in addresses],
                )

    def test_file_of_the_same_name_is_another_one(self):
        """Twins stay apart, though a DSO elsewhere has one function of their name."""
        functions = [("f", "/x/a", "0x10"), ("f", "/x/a", "0x20"), ("f", "/y/a", "-")]
        self.assertEqual(
            self.pairs(functions, functions),
            {
                ("f", "/x/a", 0x10): ("both", 0),
                ("f", "/x/a", 0x20): ("both", 1),
                ("f", "/y/a", None): ("both", 2),
            },
        )

    def test_no_symbols(self):
        """A function without a symbol has only its address; another address is another function."""
        self.assertEqual(
            self.pairs(
                [("", "/a", "0x10"), ("", "/a", "0x20")], [("", "/a", "0x20"), ("", "/a", "0x30")]
            ),
            {
                ("", "/a", 0x20): ("both", 1),
                ("", "/a", 0x30): ("appeared", None),
                ("", "/a", 0x10): ("vanished", 0),
            },
        )


class Output(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        draw = random.Random(5)
        write(
            "before.sums",
            plain(
                hot=drawn(draw, 600),
                warm=drawn(draw, 300),
                cold=drawn(draw, 60),
                same=drawn(draw, 100),
                gone=drawn(draw, 30),
                less=drawn(draw, 9),
                left=drawn(random.Random(6), 2),
            ),
        )
        write(
            "after.sums",
            plain(
                hot=drawn(draw, 300),
                warm=drawn(draw, 300, 1.8, 2),
                cold=drawn(draw, 60, 1.2),
                same=drawn(draw, 100),
                new=drawn(draw, 20),
                few=drawn(draw, 2),
                less=drawn(draw, 9),
            ),
        )
        cls.rows = json.loads(diff("-j").stdout)["functions"]

    def refused(self, reason: str, *command: object) -> None:
        done = run(PERF, "functions", "report", *command, stderr=-1)
        self.assertEqual((done.returncode, done.stdout), (255, ""), command)
        self.assertRegex(done.stderr, f"^perf functions: .*{reason}[^\n]*\n$")

    def test_notes_of_both_sides(self):
        """Each note says which side it is about."""
        (DATA / "lossy.sums").write_text(
            (DATA / "after.sums").read_text().replace("lost\t0", "lost\t7")
        )
        for before, after, side in (
            ("before.sums", "lossy.sums", "after"),
            ("lossy.sums", "after.sums", "before"),
        ):
            said = run(
                PERF, "functions", "report", "--diff", DATA / before, DATA / after, stderr=-1
            ).stderr
            self.assertIn(f"perf functions: {side}: 7 records were lost", said)
            self.assertEqual(said.count("were lost"), 1)

    def test_order(self):
        """Significant changes, largest %CY first; others; other ones that appeared or vanished."""

        def rank(row: dict) -> tuple:
            order = ("both", "appeared", "vanished").index(row["status"])
            is_first = any(change["significant"] for change in row["metrics"].values())
            return (0 if is_first else 1 + order, -abs(row["metrics"]["%CY"]["change"]))

        self.assertEqual(self.rows, sorted(self.rows, key=rank))
        self.assertEqual([row["symbol"] for row in self.rows][:2], ["hot", "warm"])
        self.assertEqual([row["symbol"] for row in self.rows][-3:], ["less", "few", "left"])
        by_rate = [
            row["symbol"] for row in json.loads(diff("-j", "-s", "PF/KI").stdout)["functions"]
        ]
        self.assertEqual(by_rate[0], "warm")

    def test_object(self):
        whole = json.loads(diff("-j", "-F", "#,CPI").stdout)
        self.assertEqual(
            list(whole)[2:],
            ["by", "inline", "before", "after", "columns", "run_deviations", "functions"],
        )
        self.assertEqual(
            list(whole["after"]), ["runs", "groups", "throttled", "lost", "lacks_children"]
        )
        self.assertEqual(whole["run_deviations"], {})
        self.assertEqual([column["name"] for column in whole["columns"]], ["#", "CPI"])
        new = next(row for row in whole["functions"] if row["symbol"] == "new")
        self.assertEqual(
            new["metrics"]["#"],
            {
                **{"before": None, "after": 20, "change": None, "interval": None},
                **{"significant": False, "weak": False},
            },
        )
        hot = next(row for row in whole["functions"] if row["symbol"] == "hot")
        self.assertEqual(
            hot["metrics"]["#"],
            {
                **{"before": 600, "after": 300, "change": -300, "interval": None},
                **{"significant": False, "weak": False},
            },
        )

    def test_percent_limit(self):
        """Functions that have the share on one side at least, in the same order."""

        def largest(row: dict) -> float:
            share = row["metrics"]["%CY"]
            return max(share["before"] or 0, share["after"] or 0)

        limit = sorted(map(largest, self.rows))[len(self.rows) // 2]
        some = json.loads(diff("-j", "--percent-limit", limit).stdout)["functions"]
        self.assertEqual(some, [row for row in self.rows if largest(row) >= limit])
        self.assertTrue(0 < len(some) < len(self.rows))

    def test_table(self):
        """The same as text: value, ? if weak, change, * if significant; with --ci the interval; the
        number of rows that is asked for.
        """
        header, *lines = (
            diff("--ci", "-F", "CPI", "--limit", "4").stdout.replace("95 %", "95%").splitlines()
        )
        self.assertEqual(header.split(), ["symbol", "CPI", "change", "95%"])
        self.assertEqual(len(lines), 4)
        for line, row in zip(lines, self.rows):
            told = row["metrics"]["CPI"]
            if row["status"] == "vanished":
                self.assertEqual(
                    line.split(),
                    ["gone", f"{told['before']:.1f}" + "?" * told["weak"], *"--", "vanished"],
                )
                continue
            self.assertEqual(
                line.split(),
                [
                    row["symbol"],
                    f"{told['after']:.1f}" + "?" * told["weak"],
                    f"{told['change']:+.1f}" + "*" * told["significant"],
                    "..".join(f"{bound:+.1f}" for bound in told["interval"]),
                ],
            )
        lines = {line.split()[0]: line.split() for line in diff("-F", "%CY").stdout.splitlines()}
        for name, end in (("new", "appeared"), ("few", "appeared"), ("gone", "vanished")):
            (row,) = (row for row in self.rows if row["symbol"] == name)
            told = row["metrics"]["%CY"]
            value = f"{told['after']:.1f}" + "?" * told["weak"]
            change = f"{told['change']:+.1f}" + "*" * told["significant"]
            self.assertEqual(lines[name], [name, value, change, end])

    def test_separated_values(self):
        rows = list(csv.DictReader(diff("-x", ",").stdout.splitlines()))
        self.assertEqual([row["symbol"] for row in rows], [row["symbol"] for row in self.rows])
        for line, row in zip(rows, self.rows):
            self.assertEqual((line["dso"], line["status"]), (row["dso"], row["status"]))
            for column, told in row["metrics"].items():
                low, high = told["interval"] or (None, None)
                expected = [
                    told["before"],
                    told["after"],
                    told["change"],
                    low,
                    high,
                    told["significant"],
                    told["weak"],
                ]
                names = ("before", "after", "change", "low", "high", "significant", "weak")
                self.assertEqual(
                    [
                        None if line[f"{column} {name}"] == "-" else float(line[f"{column} {name}"])
                        for name in names
                    ],
                    expected,
                )

    def test_recordings(self):
        """Recordings are compared as their sums are."""
        libraries = Libraries(DATA / "simulation")
        paths = [
            recorded(DATA / f"recorded-{seed}.data", seed, libraries, events=3) for seed in (1, 2)
        ]
        for name, path in zip(("one", "two"), paths):
            run(PERF, "functions", "report", "-i", path, "--sums", DATA / f"{name}.sums")
        told = [
            run(PERF, "functions", "report", "-j", "--diff", *inputs, stderr=-1)
            for inputs in (
                paths,
                (DATA / "one.sums", paths[1]),
                (DATA / "one.sums", DATA / "two.sums"),
            )
        ]
        self.assertEqual([done.returncode for done in told], [0, 0, 0], told[0].stderr)
        self.assertEqual(len({done.stdout for done in told}), 1)
        self.assertGreater(len(json.loads(told[0].stdout)["functions"]), 5)

    def test_other_periods(self):
        self.assertRegex(diff().stderr, ONE_RUN + "$")
        (DATA / "other.sums").write_text(
            (DATA / "after.sums").read_text().replace("\t999700\t0\t300\t", "\t99700\t0\t3000\t")
        )
        done = run(
            PERF,
            "functions",
            "report",
            "--diff",
            DATA / "before.sums",
            DATA / "other.sums",
            stderr=-1,
        )
        self.assertRegex(
            done.stderr,
            ONE_RUN + "perf functions: the sides were recorded with different periods[^\n]*\n$",
        )
        sides = DATA / "slow.sums", DATA / "fast.sums"
        for path, frequency in zip(sides, (1000, 2000)):
            write_auto(path.name, {"f": (20, [(300, 300, 1)] * 20)})
            path.write_text(path.read_text().replace("\t999700\t0\t", f"\t0\t{frequency}\t"))
        done = run(PERF, "functions", "report", "--diff", *sides, stderr=-1)
        self.assertIn("the sides were recorded with different periods", done.stderr)

    def test_bad_input(self):
        before, after = DATA / "before.sums", DATA / "after.sums"
        for inputs in (
            (),
            (before,),
            (before, after, after),
            (before, after, "--sums", DATA / "x.sums"),
            ("-i", before, after),
            ("--before", before),
            ("--after", before, after),
            (before, "--before", before, "--after", after),
            ("-i", before, "--before", before, "--after", after),
        ):
            self.refused("--diff needs two", "--diff", *inputs)
        done = run(PERF, "functions", "report", "--diff", before, DATA / "missing.sums", stderr=-1)
        self.assertEqual((done.returncode, done.stdout), (255, ""))
        self.assertIn("No such file", done.stderr)
        comm = DATA / "comm.sums"
        comm.write_text(after.read_text().replace("by\tsymbol", "by\tcomm"))
        self.refused("another kind", "--diff", before, comm)
        inlines = DATA / "inlines.sums"
        inlines.write_text(after.read_text().replace("by\tsymbol\t0", "by\tsymbol\t1"))
        self.refused("another kind", "--diff", before, inlines)
        self.refused(
            "no column IPC .*there are: symbol # CPI", "--diff", before, after, "-s", "IPC"
        )

    def fail_on(self, *limits: str) -> tuple[int, list[str]]:
        """Exit status, and the functions that are told."""
        done = diff(*(word for limit in limits for word in ("--fail-on", limit)))
        self.assertEqual(done.stdout, diff().stdout)
        lines = re.sub(ONE_RUN, "", done.stderr).splitlines()
        return done.returncode, [" ".join(line.split()[2:5]) for line in lines]

    def told(self, column: str, exceeds: Callable[[dict], bool]) -> list[str]:
        return [
            f"{column} of {row['symbol']}"
            for row in self.rows
            if row["metrics"][column]["interval"] and exceeds(row["metrics"][column])
        ]

    def test_fail_on(self):
        """Changes whose interval is beyond the limit, relative or not, up or down."""
        rise = self.told("CPI", lambda told: told["interval"][0] > 0.1 * told["before"])
        self.assertEqual(rise, ["CPI of warm"])
        self.assertEqual(self.fail_on("CPI>10%"), (2, rise))
        self.assertEqual(self.fail_on("CPI>0.2"), (2, rise))
        self.assertEqual(self.fail_on("CPI>100%"), (0, []))
        fall = self.told("CPI", lambda told: told["interval"][1] < -0.1 * told["before"])
        self.assertEqual(fall, ["CPI of cold"])
        self.assertEqual(self.fail_on("cpi<-10%"), (2, ["CPI of cold"]))
        self.assertEqual(self.fail_on("CPI<-0.5"), (0, []))
        share = self.told("%CY", lambda told: told["interval"][1] < -5)
        self.assertEqual(self.fail_on(" CPI > 10 % , %CY<-5"), (2, rise + share))
        self.assertEqual(self.fail_on("CPI>10%", "CPI<-10%"), (2, rise + fall))
        # the change is, but its interval is not
        (warm,) = (row["metrics"]["CPI"] for row in self.rows if row["symbol"] == "warm")
        between = (warm["interval"][0] + warm["change"]) / 2
        self.assertEqual(self.fail_on(f"CPI>{between}"), (0, []))
        # a large change of few windows may be chance
        few = next(row["metrics"]["CPI"] for row in self.rows if row["symbol"] == "less")
        self.assertGreater(abs(few["change"]), 0.01 * few["before"])
        self.assertNotIn("CPI of less", self.fail_on("CPI>1%", "CPI<-1%")[1])
        self.assertEqual(diff("--fail-on", "CPI>10%", "--limit", 1, "-j").returncode, 2)
        few = "CPI>10%", "--percent-limit", 100, "-j"
        self.assertEqual(diff("--fail-on", *few).returncode, 2)

    def test_bad_limits(self):
        inputs = ("--diff", DATA / "before.sums", DATA / "after.sums")
        for limit in (
            "CPI",
            "CPI>",
            ">5",
            "CPI>five",
            "CPI>5%%",
            "CPI>-5",
            "CPI<5",
            "CPI>5 BM/KI>3",
            "CPI>nan",
            "",
        ):
            self.refused("cannot read --fail-on", *inputs, "--fail-on", limit)
        self.refused("no column IPC", *inputs, "--fail-on", "CPI>5%,IPC>5%")
        self.refused("a number of windows has no 95 % interval", *inputs, "--fail-on", "#>1%")
        self.refused(
            "--fail-on checks a comparison: add --diff", DATA / "before.sums", "--fail-on", "CPI>5%"
        )


class Runs(unittest.TestCase):
    """Several runs of each side, of programs whose truth is known."""

    def columns(self, done: subprocess.CompletedProcess) -> dict[str, dict[str, dict]]:
        """The changes, by column and symbol."""
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return by_column(done)

    def test_false_alarms(self):
        """Nothing has changed, but runs differ: few changes are significant.

        At most 5 % of the intervals miss 0, and at most 5 % of the comparisons have a significant
        change.
        """
        draw = random.Random(11)
        trials = 25
        for deviation, together, sides in (
            (0, 0, (3, 3)),
            (0.01, 0, (3, 3)),
            (0.03, 0, (3, 3)),
            (0.03, 0, (5, 1)),
            (0.03, 0.5, (2, 3)),
            (0.03, 1, (3, 3)),
        ):
            alarms: Counter[str] = Counter()
            missed: Counter[str] = Counter()
            found = []
            for _ in range(trials):
                before, after = (
                    Program(MANY).runs(draw, number, side, deviation=deviation, together=together)
                    for side, number in zip(("before", "after"), sides)
                )
                done = compared(before, after)
                found.append(json.loads(done.stdout)["run_deviations"]["CPI"])
                for column, told in self.columns(done).items():
                    alarms[column] += any(change["significant"] for change in told.values())
                    missed[column] += sum(
                        not change["interval"][0] <= 0 <= change["interval"][1]
                        for change in told.values()
                    )
            mean = math.sqrt(sum(one**2 for one in found) / trials)
            print(
                f"runs differ by {100 * deviation:.0f} % ({100 * together:.0f} % together),"
                f" {sides[0]} before and {sides[1]} after: {100 * mean:.2f} % found; significant in"
                f" {dict(alarms)} of {trials} comparisons; intervals that miss:"
                + ",".join(f" {column} {missed[column] / trials / 0.2:.1f} %" for column in missed)
            )
            with self.subTest(deviation=deviation, together=together, sides=sides):
                self.assertLess(abs(mean - deviation), 0.1 * deviation + 0.004)
                # of all columns, and 3 standard errors
                self.assertLess(sum(alarms.values()) / 3 / trials, 0.05 + 3 * 0.22 / 8.7)
                self.assertLess(
                    sum(missed.values()) / 3 / trials / len(MANY), 0.06 if together < 1 else 0.1
                )

    def test_power(self):
        """The less runs differ, the more often a change of 5 or 10 % in 2 of 20 is found."""
        draw = random.Random(12)
        sizes = {**MANY, "slow": 2000, "slower": 1000}
        for deviation, slower, least in (
            (0, 1.05, (1, 1, 1)),
            (0.01, 1.05, (0.7, 1, 1)),
            (0.03, 1.05, (0, 0, 0.3)),
            (0.03, 1.1, (0.2, 0.6, 0.9)),
        ):
            powers = []
            for number in (3, 5, 10):
                told = [
                    self.columns(
                        compared(
                            Program(sizes).runs(draw, number, "before", deviation=deviation),
                            Program(sizes).runs(
                                draw, number, "after", deviation=deviation, slower=slower
                            ),
                        )
                    )["CPI"]
                    for _ in range(10)
                ]
                powers.append(
                    sum(one[name]["significant"] for one in told for name in ("slow", "slower"))
                    / 20
                )
            print(
                f"runs differ by {100 * deviation:.0f} %, a change of {100 * (slower - 1):.0f} % is"
                f" found in {', '.join(f'{100 * power:.0f}' for power in powers)} % with 3, 5, 10"
                " runs a side"
            )
            with self.subTest(deviation=deviation, slower=slower):
                self.assertTrue(all(map(operator.ge, powers, least)), powers)

    def test_function_that_differs_more(self):
        """A function that differs from run to run five times as much is not significant."""
        draw = random.Random(13)
        wild, alarms = Program({"wild": 2000}), 0
        for _ in range(25):
            sides = []
            for side in ("before", "after"):
                paths = Program(MANY).runs(draw, 4, side, deviation=0.01)
                for path, other in zip(paths, wild.runs(draw, 4, "wild", deviation=0.05)):
                    (line,) = re.findall("^sums.*\n", other.read_text(), re.M)
                    path.write_text(path.read_text().replace("end\n", line + "end\n"))
                sides.append(paths)
            alarms += self.columns(compared(sides[0], sides[1]))["CPI"]["wild"]["significant"]
        print(f"{alarms} of 25 comparisons with one function that differs more: significant")
        self.assertLessEqual(alarms, 4)

    def test_function_without_chance(self):
        """All windows of a function are alike in all runs: only a change is significant."""
        draw = random.Random(21)
        sides = []
        for side, instructions in (("before", 300), ("after", 200)):
            paths = Program(MANY).runs(draw, 3, side, deviation=0)
            lines = [
                sums_line(name, [(300, number, 0)] * 200) + "\n"
                for name, number in (("gets_worse", instructions), ("stays", 300))
            ]
            for path in paths:
                path.write_text(path.read_text().replace("end\n", "".join(lines) + "end\n"))
            sides.append(paths)
        told = self.columns(compared(sides[0], sides[1]))["CPI"]
        self.assertTrue(told["gets_worse"]["significant"])
        self.assertGreater(told["gets_worse"]["interval"][0], 0.45)
        self.assertFalse(told["stays"]["significant"])
        self.assertEqual(compared(sides[0], sides[1], "--fail-on", "CPI>40%").returncode, 2)

    def test_values_are_those_of_all_windows(self):
        """Before and after are the values of all runs together, in any order."""
        draw = random.Random(14)
        before, after = (
            Program(MANY).runs(draw, 3, side, deviation=0.02) for side in ("before", "after")
        )
        done = compared(before, after)
        whole = json.loads(done.stdout)
        self.assertEqual((whole["before"]["runs"], whole["after"]["runs"]), (3, 3))
        for name, paths in (("before", before), ("after", after)):
            table = json.loads(run(PERF, "functions", "report", "-j", *paths, stderr=-1).stdout)
            values = {row["symbol"]: row["metrics"] for row in table["functions"]}
            for column, told in self.columns(done).items():
                for symbol, change in told.items():
                    self.assertEqual(change[name], values[symbol][column])
        told = self.columns(compared(before[::-1], after[::-1]))
        for column, changes_ in self.columns(done).items():
            for symbol, change in changes_.items():
                for one, other in zip(change["interval"], told[column][symbol]["interval"]):
                    self.assertAlmostEqual(one, other)

    def test_spelling(self):
        """Files belong to the side named before them; one of each is the same as --diff."""
        draw = random.Random(15)
        before, after = (
            Program(MANY).runs(draw, 2, side, deviation=0.02) for side in ("before", "after")
        )
        report = (PERF, "functions", "report")
        expected = compared(before, after).stdout
        for words in (
            (
                "--before",
                before[0],
                "--after",
                after[0],
                "--before",
                before[1],
                "--after",
                after[1],
            ),
            (f"--before={before[0]}", before[1], "-j", f"--after={after[0]}", "--", after[1]),
            ("--diff", "--after", *after, "-s", "%CY", "--before", *before),
        ):
            self.assertEqual(run(*report, "-j", *words, stderr=-1).stdout, expected, words)
        pair = before[0], after[0]
        self.assertEqual(
            run(*report, "-j", "--diff", *pair, stderr=-1).stdout,
            compared(pair[:1], pair[1:]).stdout,
        )

    def test_one_run_a_side(self):
        """It says that runs were not compared."""
        draw = random.Random(16)
        before, after = (
            Program(MANY).runs(draw, 2, side, deviation=0) for side in ("before", "after")
        )
        for form in ("-j",), ("-x", ","), ():
            done = run(PERF, "functions", "report", *form, "--diff", before[0], after[0], stderr=-1)
            self.assertRegex(done.stderr, ONE_RUN + "$")
        self.assertEqual(compared(before, after[:1]).stderr, "")

    def test_runs_that_do_not_add_up(self):
        draw = random.Random(17)
        before, after = (
            Program(MANY).runs(draw, 2, side, deviation=0) for side in ("before", "after")
        )
        text = after[1].read_text()
        for other, reason in (
            (text.replace("page-faults", "cs"), "it has other events"),
            (text.replace("group\tdiscard", "group\tnone"), "another share mode"),
            (text.replace("by\tsymbol", "by\tcomm"), "another kind"),
        ):
            after[1].write_text(other)
            done = compared(before, after)
            self.assertEqual((done.returncode, done.stdout), (255, ""))
            self.assertRegex(done.stderr, f"^perf functions: {after[1]}: .*{reason}.*\n$")

    def test_limit(self):
        """A true change of 4 % is not beyond 5 %, one of 8 % is; with one run and with three."""
        draw = random.Random(18)
        program = Program({f"slow{number}": 3000 for number in range(4)})
        for number, deviation in ((1, 0), (3, 0.01)):
            fired = {1.04: 0, 1.08: 0}
            for slower in fired:
                for _ in range(40):
                    done = compared(
                        program.runs(draw, number, "before", deviation=deviation),
                        program.runs(draw, number, "after", deviation=deviation, slower=slower),
                        "--fail-on",
                        "CPI>5%",
                    )
                    fired[slower] += done.returncode == 2
                    self.assertIn(done.returncode, (0, 2))
            print(f"CPI>5%, {number} a side: {fired} of 40 fired by true change")
            self.assertLessEqual(fired[1.04], 2)
            self.assertGreater(fired[1.08], 30)

    def test_several_limits(self):
        """The more there are, the wider is an interval, even if nothing exceeds the others."""
        draw = random.Random(25)
        (row,) = changes(plain(f=drawn(draw, 100)), plain(f=drawn(draw, 100, 1.8)))
        just_below = f"CPI>{0.99 * row['metrics']['CPI']['interval'][0]}"
        for limits, status in (
            ((just_below,), 2),
            ((just_below, "CPI>100"), 0),
            ((f"CPI>100,{just_below}",), 0),
        ):
            options = itertools.chain(*(("--fail-on", limit) for limit in limits))
            self.assertEqual(diff(*options).returncode, status, limits)

    def test_columns_of_one_side(self):
        """A column has values where its event was recorded, and no change."""
        windows = drawn(random.Random(26), 50)
        write("before.sums", plain(f=windows))
        write("after.sums", plain(f=windows), HEADER.replace("page-faults", "other-faults"))
        (row,) = json.loads(diff("-j").stdout)["functions"]
        rate = 1000 * sum(window[2] for window in windows) / sum(window[1] for window in windows)
        for column, *expected in ("PF/KI", rate, None), ("other-faults/KI", None, rate):
            told = row["metrics"][column]
            self.assertEqual([told["before"], told["after"], told["change"]], [*expected, None])

    def test_function_of_one_side(self):
        """A function that appears may have had up to 3 unseen windows before."""
        draw = random.Random(19)
        old = Program({"f": 1000, "g": 1000, "gone": 300})
        new = Program({"f": 1000, "g": 500, "new": 900, "few": 4})
        for number in (1, 3):
            before, after = (
                program.runs(draw, number, side, deviation=0.01)
                for program, side in ((old, "before"), (new, "after"))
            )
            done = compared(before, after, "--fail-on", "%CY>5", "--fail-on", "%CY<-5")
            self.assertEqual(done.returncode, 2)
            told = re.findall("%CY of (\\S+) ", done.stderr)
            self.assertEqual(sorted(told), ["g", "gone", "new"])
            rows = {row["symbol"]: row for row in json.loads(done.stdout)["functions"]}
            share = rows["new"]["metrics"]["%CY"]
            self.assertEqual((rows["new"]["status"], share["before"]), ("appeared", 0))
            self.assertTrue(share["significant"])
            self.assertTrue(share["interval"][0] < share["after"] < share["interval"][1])
            self.assertEqual(rows["gone"]["metrics"]["%CY"]["after"], 0)
            self.assertIsNone(rows["new"]["metrics"]["CPI"]["before"])
            windows = sum(row["metrics"]["#"]["before"] or 0 for row in rows.values())
            few = rows["few"]["metrics"]["%CY"]
            self.assertLess(few["interval"][0], few["after"] - 100 * THREE / windows)

    def test_function_of_one_side_in_share_mode_auto(self):
        """The limit comes from all samples that end a long interval, not from the windows."""
        draw = random.Random(23)
        write_auto("before.sums", {"f": (500, drawn(draw, 50)), "g": (500, drawn(draw, 50))})
        shares = {"f": (49000, drawn(draw, 50)), "g": (49000, drawn(draw, 50))}
        write_auto("after.sums", {**shares, "new": (2000, drawn(draw, 50))})
        rows = {row["symbol"]: row for row in json.loads(diff("-j").stdout)["functions"]}
        new = rows["new"]["metrics"]["%CY"]
        self.assertAlmostEqual(new["after"], 2)
        self.assertAlmostEqual(new["interval"][0], 2 - 100 * THREE / 1000, delta=0.1)

    def test_sides_of_other_share_modes(self):
        """Shares of discard are compared: both sums have the same windows."""
        draw = random.Random(24)
        windows = {name: drawn(draw, 50) for name in "fg"}
        write("before.sums", plain(**windows))
        write_auto("after.sums", {"f": (100, windows["f"]), "g": (900, windows["g"])})
        for before, after in ("before", "after"), ("after", "before"):
            done = run(
                *(PERF, "functions", "report", "-j", "--diff"),
                *(DATA / f"{name}.sums" for name in (before, after)),
                stderr=-1,
            )
            self.assertIn("some inputs have share mode auto, others discard", done.stderr)
            for row in json.loads(done.stdout)["functions"]:
                self.assertEqual(row["metrics"]["%CY"]["change"], 0)
        # two runs of a side with other shares of auto: they do not differ
        write_auto("again.sums", {"f": (900, windows["f"]), "g": (100, windows["g"])})
        before, *after = (DATA / f"{name}.sums" for name in ("before", "after", "again"))
        self.assertEqual(json.loads(compared([before], after).stdout)["run_deviations"]["%CY"], 0)

    def test_rates_come_from_the_same_windows_in_all_runs(self):
        """A little less than a tenth of the windows leave a function, or a little more."""
        draw = random.Random(25)
        windows, leave = drawn(draw, 910), drawn(draw, 110, cpi=15)
        paths = [
            write_auto(
                f"leave-{stays}.sums",
                {"f": (500, windows[:stays])},
                {"f": leave[: 1000 - stays]},
            )
            for stays in range(890, 911, 4)
        ]
        for before, after in (paths[:1], paths[-1:]), (paths[-1:], paths[:1]):
            done = compared(before, after, "--fail-on", "CPI>1%", "--fail-on", "CPI<-1%")
            self.assertEqual(done.returncode, 0, done.stderr)
        cpi = by_column(done)["CPI"]["f"]
        # after has the most windows that leave
        cycles, instructions, _ = map(sum, zip(*windows[:890], *leave))
        self.assertAlmostEqual(cpi["after"], cycles / instructions)
        done = compared(paths[::2], paths[1::2])
        self.assertLess(json.loads(done.stdout)["run_deviations"]["CPI"], 0.01)

    def test_function_that_all_windows_leave(self):
        """No window ends in it, but its rates have windows."""
        draw = random.Random(26)
        for name, cpi in ("before", 2), ("after", 3):
            write_auto(
                f"{name}.sums",
                {"f": (400, ()), "g": (5000, drawn(draw, 100))},
                {"f": drawn(draw, 400, cpi=cpi)},
            )
        rows = {row["symbol"]: row for row in json.loads(diff("-j").stdout)["functions"]}
        change = rows["f"]["metrics"]["CPI"]
        self.assertTrue(change["significant"], change)
        self.assertAlmostEqual(change["change"], 1, delta=0.05)

    def test_options_that_have_no_negation(self):
        for option in "--no-before", "--no-after", "--no-fail-on":
            done = run(PERF, "functions", "report", option, DATA / "before.sums", stderr=-1)
            self.assertEqual((done.returncode, done.stdout), (129, ""), done.stderr)

    def test_function_of_some_runs(self):
        """One that is in one run of three has a share of 0 in the others, and no other rate."""
        draw = random.Random(20)
        usual = Program({"f": 1000, "g": 1000})
        before, after = (usual.runs(draw, 3, side, deviation=0) for side in ("before", "after"))
        other = Program({"f": 1000, "g": 1000, "rare": 300}).runs(draw, 1, "other", deviation=0)
        rows = {
            row["symbol"]: row["metrics"]
            for row in json.loads(compared(before, [*after[:2], *other]).stdout)["functions"]
        }
        rare = rows["rare"]["%CY"]
        self.assertAlmostEqual(rare["after"], 300 / 63, delta=0.6)
        # it differs from run to run by its whole value
        self.assertFalse(rare["significant"])
        self.assertLess(rare["interval"][0], 0)

    def test_sums_near_the_end(self):
        """Runs with numbers of any size: a table of numbers, or one line."""
        paths = []
        for place, number in enumerate((1, 10**18, 2**180, 3)):
            path = DATA / f"huge-{place}.sums"
            path.write_text(
                "\n".join(
                    (
                        HEADER,
                        discard_line("f", 3, 3, [number, 2, 0, *[1] * 6]),
                        discard_line("g", 2**63 - 9, 1, [0, number, 9, *[number] * 6]),
                        "end\n",
                    )
                )
            )
            paths.append(path)
        for before, after in ((paths[:2], paths[2:]), (paths[::2], paths[1::2]), (paths, paths)):
            done = compared(before, after, "--fail-on", "CPI>5%")
            self.assertIn(done.returncode, (0, 2, 255))
            if done.returncode == 255:
                self.assertRegex(done.stderr, "^perf functions: [^\n]*\n$")
            else:
                self.assertNotRegex(done.stdout, r"\b(nan|inf)\b")
                json.loads(done.stdout)


class Measurement(unittest.TestCase):
    """`make bench BENCH=diff`, of a few comparisons."""

    def test_what_is_counted(self):
        """Changes of 5 % are found where runs are alike, and hardly with 3 runs that differ by 3 %.

        The same numbers come out again.
        """
        result = bench_diff.measure(4)
        rows = {(row["differ"], row["runs"]): row for row in result["rows"]}
        self.assertEqual(len(rows), 9)
        for number in bench_diff.RUNS:
            self.assertEqual(bench_diff.power(result, rows[0, number]), 1)
        self.assertLessEqual(bench_diff.power(result, rows[3, 3]), 0.5)
        for row in rows.values():
            self.assertLessEqual(bench_diff.alarm_rate(result, row), 0.5)
        with TemporaryDirectory() as folder:
            self.assertEqual(bench_diff.row_of(3, 5, 4, Path(folder)), rows[3, 5])

    def test_equal_builds_are_counted_apart(self):
        """Builds of which all functions differ: each column has a false change, or none has."""

        def told(program: Program, *_: object) -> dict[str, set[str]]:
            names = set(program.sizes)
            return {"CPI": names, "PF/KI": set(), "%CY": names & {"slow"}}

        with mock.patch.object(bench_diff, "significant", told):
            row = bench_diff.row_of(1, 3, 7, DATA)
        self.assertEqual(row["alarms"], {"CPI": 7, "PF/KI": 0, "%CY": 0})
        self.assertEqual(row["found"], 14)
        self.assertAlmostEqual(bench_diff.alarm_rate({"comparisons": 7}, row), 1 / 3)
        self.assertEqual(bench_diff.power({"comparisons": 7}, row), 1)


if __name__ == "__main__":
    unittest.main()
