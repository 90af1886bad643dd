# SPDX-License-Identifier: GPL-2.0
"""The figures in pages are those that `make bench` measured.

results/6.12/results.json is the result of one run. The tests need no perf, no kernel and no tree of
Linux, so `make lint` runs them.
"""

import json
import re
import unittest
from pathlib import Path

from bench import findings, run, truth
from tests.harness.env import TOP

RESULTS = sorted(TOP.glob("results/*/results.json"))
PAGE = TOP / "Documentation/admin-guide/perf/alternate-period.rst"


def results_of(base: str) -> dict:
    """The results of a base."""
    return json.loads((TOP / "results" / base / "results.json").read_text())


def words(path: Path) -> str:
    """The text of a file as one line."""
    return " ".join(path.read_text().split())


class ResultsPages(unittest.TestCase):
    maxDiff = None

    def test_pages_are_what_bench_makes_of_the_results(self):
        self.assertTrue(RESULTS)
        for path in RESULTS:
            with self.subTest(path.parent.name):
                self.assertEqual(
                    path.with_name("README.md").read_text(),
                    run.page(json.loads(path.read_text()), path.parent.name),
                )

    def test_pictures_are_there(self):
        for path in RESULTS:
            shown = re.findall(
                r"^!\[[^]]+\]\((\S+)\)$", path.with_name("README.md").read_text(), re.M
            )
            self.assertGreaterEqual(len(shown), 6)
            for name in shown:
                self.assertTrue(path.with_name(name).is_file(), f"{path.parent.name}/{name}")

    def test_pages_of_their_own(self):
        """They are made of the results beside them. candidates needs numpy, which is not here."""
        names = [name for name in run.APART if name != "candidates"]
        made = [path for name in names for path in TOP.glob(f"results/*/{name}.json")]
        self.assertGreaterEqual(len(made), len(names))
        for path in made:
            module = run.module_of(path.stem)
            text = f"# {module.TITLE}\n\n{module.report(json.loads(path.read_text()))}\n\nRepeat: "
            self.assertTrue(path.with_suffix(".md").read_text().startswith(text), path)


class Findings(unittest.TestCase):
    """results/README.md."""

    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.page = (findings.KEPT / "README.md").read_text()

    def test_page_is_what_bench_makes_of_the_results(self):
        self.assertEqual(self.page, findings.page(findings.read()))


class Readme(unittest.TestCase):
    def test_results_are_those_of_the_results_page(self):
        readme = (TOP / "README.md").read_text()
        part = readme.partition("\n## Results\n")[2].partition("\n## ")[0]
        quoted = re.findall(r"^- .*(?:\n  .*)*", part, re.M)
        self.assertEqual(len(quoted), 2)
        page = (TOP / "results/6.12/README.md").read_text()
        for text in quoted:
            self.assertIn(f"\n{text}\n", page)
            self.assertRegex(text, r"\(`make bench BENCH=\w+`\)$")

    def test_errors_by_source(self):
        """README and the guide have a table of the errors of CPI that bench has measured."""
        measured = json.loads((TOP / "results/6.12/truth.json").read_text())
        branches = json.loads((TOP / "results/7.3/branches.json").read_text())
        records = branches["programs"]["small,kernel=on"]
        readme = words(TOP / "README.md")
        guide = words(PAGE.with_name("function-metrics.rst"))
        names = [name for name in truth.PROGRAMS if name in records]
        self.assertIn(f"| | {' | '.join(names)} |", readme)
        found = {
            name: [
                *(measured[f"small: {read}"][name]["CPI"]["error"] for read in truth.READINGS),
                records[name]["64"]["CPI"]["error"],
            ]
            for name in names
        }
        for name, errors in found.items():
            self.assertIn(" ".join([name, *(f"{100 * error:.1f}" for error in errors)]), guide)
        titles = "windows", "windows, `--correct`", "event samples", "branch records"
        for title, errors in zip(titles, zip(*found.values())):
            figures = " | ".join(f"{100 * error:.1f}" for error in errors)
            self.assertIn(f"| {title} | {figures} |", readme)

    def test_length(self):
        for name in "README.md", "CONTRIBUTING.md":
            self.assertLessEqual(len((TOP / name).read_text().splitlines()), 150, name)


class Module(unittest.TestCase):
    def test_cost(self):
        """The cost in the module's page is the measured one."""
        page, results = words(TOP / "module/README.md"), results_of("6.12")["by_module"]
        added = results["added"]
        for figure in (
            f"executes {added['module']:.0f} more instructions with the module",
            f"and {added['used']:.0f} more with the series",
            f"executes {added['loaded']:.0f} more",
        ):
            self.assertIn(figure, page)
        for periods, row in results["recordings"]["series"].items():
            module = results["recordings"]["module"][periods]
            for what, most in ("bytes", 0.012), ("samples", 0.001), ("run_time", 0.002):
                self.assertLess(abs(module[what] / row[what] - 1), most, (periods, what))


class KernelPage(unittest.TestCase):
    def test_figures(self):
        page = words(PAGE)
        results = results_of("6.12")
        added = results["cost"]["added"]
        worth = " ".join(
            f"{float(format(row['independent'], '.2g')):.0f}"
            for jitter, row in results["resonance"]["jitter"].items()
            if jitter != "0"
        )
        switch = results["cost"]["switch"]
        for figure in (
            f"executes {switch['alternating']} instructions, and {switch['plain']} with one",
            f" windows {worth} Without jitter, ",
            f"executes {added['used']:.0f} more, {added['jitter']:.0f} with jitter",
        ):
            self.assertIn(figure, page)


class Texts(unittest.TestCase):
    def test_errors_that_interrupts_cause(self):
        """The guide, the manual and the changelog quote results/6.12/truth.json."""
        measured = json.loads((TOP / "results/6.12/truth.json").read_text())

        def errors(digits: int) -> list[str]:
            kinds = "small: windows", "small: windows, corrected"
            found = (100 * measured[kind]["python3"]["CPI"]["error"] for kind in kinds)
            return [f"{error:.{digits}f} %" for error in found]

        plain, corrected = errors(1)
        self.assertIn(
            f"python3's functions is {plain} off, and {corrected} with ``--correct``",
            words(PAGE.with_name("function-metrics.rst")),
        )
        manual = words(TOP / "tools/perf/Documentation/perf-functions.txt")
        self.assertIn(f"python3 is {plain} off, and {corrected} with --correct", manual)
        plain, corrected = errors(0)
        self.assertIn(f"python3 falls from {plain} to {corrected}.", words(TOP / "CHANGELOG.md"))

    def test_how_often_values_are_right(self):
        """The guide quotes the marks and the intervals of Debian's programs, of both machines."""
        measured = json.loads((TOP / "results/6.12/truth.json").read_text())
        marked, right = [], []
        for reading in truth.WINDOWS, truth.SAMPLES:
            values, weak, contained = (
                sum(
                    measured[f"{model}: {reading}"][program][metric][key]
                    for model in truth.MODELS
                    for program in truth.PROGRAMS
                    for metric in truth.METRICS
                )
                for key in ("values", "marked", "right")
            )
            marked.append(f"{100 * weak / values:.0f} % of")
            right.append(f"{100 * contained / (values - weak):.0f} %")
        guide = words(PAGE.with_name("function-metrics.rst"))
        self.assertIn(f"{marked[0]} the values from windows and {marked[1]} those from", guide)
        self.assertIn(f"{' and '.join(right)} of the cases", guide)
        samples = measured[f"small: {truth.SAMPLES}"]
        _, half, most = truth.quantiles([samples[name] for name in truth.PROGRAMS])
        near = f"within {100 * half:.0f} % of the truth, and nine in ten within {100 * most:.0f} %"
        self.assertIn(near, guide)
        limit = (
            f"of the 95 % intervals of values without `?`, {right[1]} contain the truth. "
            f"Half of such CPIs are within {100 * half:.0f} % of it, and nine in ten within "
            f"{100 * most:.0f} %"
        )
        self.assertIn(limit, words(TOP / "README.md"))


class Messages(unittest.TestCase):
    def test_cost(self):
        """The cost in the messages of the series is that of 6.12."""
        cost = results_of("6.12")["cost"]
        executed, switch = cost["instructions"], cost["switch"]
        for name, figures in {
            "alternate/core": (
                f"{executed['unused']:.0f} instead of {executed['pristine']:.0f} instructions, "
                f"{executed['used']:.0f} if the event alternates",
                f"makes it {executed['stop-start']:.0f}.",
            ),
            "alternate-more/switch": (
                f" no event {switch['none']} ",
                f" exchanged {switch['plain']} ",
                f",alt-period=300/u {switch['alternating']} ",
            ),
        }.items():
            for path in (TOP / "patches").glob(f"**/{name}.patch"):
                for figure in figures:
                    self.assertIn(figure, words(path))
        opens = cost["opening"]["opens"]
        letter = words(TOP / "patches/quiet/cover-letter")
        self.assertIn(f"of the interrupt 3310 {opens['instructions']:.0f} ", letter)
        self.assertIn(f" 64 bytes 198 {opens['lines of code']:.0f} ", letter)
        self.assertIn(f" {executed['quiet unused']:.0f} in all instead of ", letter)
        self.assertIn(
            f"executes {opens['instructions']:,.0f} instructions instead of 3,310",
            words(TOP / "CHANGELOG.md"),
        )


if __name__ == "__main__":
    unittest.main()
