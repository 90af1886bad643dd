# SPDX-License-Identifier: GPL-2.0
"""README's table, and the figures in letters and patches, are those that `make bench` measured.

results/BASE.json has the figures of the last run of each experiment. The tests need no perf, no
kernel and no tree of Linux, so `make lint` runs them.
"""

import json
import re
import unittest
from pathlib import Path

from bench import branches, run, truth
from tests.harness.env import TOP

KEPT = {path.stem: path for path in sorted(TOP.glob("results/*.json"))}


def figures_of(base: str) -> dict:
    """The kept figures of a base."""
    return json.loads(KEPT[base].read_text())


def words(path: Path) -> str:
    """The text of a file as one line."""
    return " ".join(path.read_text().split())


class Kept(unittest.TestCase):
    def test_each_experiment_prints_its_tables(self):
        self.assertGreaterEqual(len(KEPT), 2)
        found = set()
        for base in KEPT:
            figures = figures_of(base)
            self.assertEqual(KEPT[base].read_text(), run.text(figures) + "\n", base)
            names = set(figures) - {"seconds", "tree"}
            for name in names:
                self.assertRegex(run.page(name, figures[name], 1), r"(?s)^## .*\nRepeat: ")
            found |= names
        self.assertEqual(found, {*run.USUAL, *run.LONG})


class Readme(unittest.TestCase):
    def test_errors_by_source(self):
        """README and the guide have the errors of CPI and CM/KI that bench has measured."""
        kept = figures_of("6.12")
        followed = kept["operations"]["programs"]["small,kernel=on"]
        records = figures_of("7.3")["branches"]["programs"]["small,kernel=on"]
        sources = {
            "branch records": {name: records[name]["64"] for name in truth.PROGRAMS},
            "operations": {name: followed[name]["operations"] for name in truth.PROGRAMS},
            "event samples": kept["truth"]["small: event samples"],
            "windows": kept["truth"]["small: windows"],
        }
        pages = TOP / "README.md", TOP / "Documentation/admin-guide/perf/function-metrics.rst"
        readme, guide = map(words, pages)
        for metric in "CPI", "CM/KI":
            self.assertIn(f"| {metric} | {' | '.join(truth.PROGRAMS)} |", readme)
            for source, rows in sources.items():
                if (source, metric) == ("branch records", "CM/KI"):
                    continue  # they tell no misses
                errors = [f"{100 * rows[name][metric]['error']:.1f}" for name in truth.PROGRAMS]
                self.assertIn(f"| {source} | {' | '.join(errors)} |", readme)
                self.assertIn(" ".join([source, *errors]), guide)
        rows = [row["64"] for row in records.values()]
        (_, held, _), _ = truth.certainty(rows, branches.METRICS, branches.MARKED)
        line = f"| branch records, small caches | 0 | ≤ 10 | {held.split()[-2]} |"
        self.assertIn(line, words(TOP / "results/README.md"))

    def test_length(self):
        for name, most in {"README.md": 150, "results/README.md": 200}.items():
            self.assertLessEqual(len((TOP / name).read_text().splitlines()), most, name)


class Messages(unittest.TestCase):
    def test_fields_of_letters(self):
        """Each figure in braces is kept."""
        figures = figures_of("6.12") | {"linux": "", "version": ""}
        letters = list((TOP / "patches").glob("**/cover-letter"))
        self.assertGreater(len(letters), 10)
        for path in letters:
            path.read_text().format(**figures)

    def test_cost(self):
        """The cost in messages is that of their base; results/README.md has that of 7.3."""
        executed = figures_of("6.12")["cost"]["instructions"]
        found = words(TOP / "patches/overrides/6.12/alternate/core.patch")
        self.assertIn(
            f"{executed['unused']:.0f} instead of {executed['pristine']:.0f} instructions, "
            f"{executed['used']:.0f} if the event alternates",
            found,
        )
        self.assertIn(f"makes it {executed['stop-start']:.0f}.", found)
        rows = re.findall(
            r"(?m)^\| (.*) \| \d+ \| (\d+) \|$", (TOP / "results/README.md").read_text()
        )
        before, unused, used, jitter = (int(number) for _, number in rows[:4])
        found = words(TOP / "patches/alternate/core.patch")
        self.assertIn(
            f"{before + unused} instead of {before} instructions, {before + used} if the event "
            f"alternates, and {jitter - used} more with jitter",
            found,
        )
        letter = words(TOP / "patches/alternate/cover-letter")
        self.assertIn(f"{before} {before + unused} one period - {before + used} alt", letter)
        self.assertIn(f"- {before + jitter} alternating, with jitter", letter)
