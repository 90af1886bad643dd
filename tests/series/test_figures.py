# SPDX-License-Identifier: GPL-2.0
"""The figures in pages are those that `make bench` measured.

results/BASE/results.json is the result of one run. The tests need no perf, no kernel and no tree of
Linux, so `make lint` runs them.
"""

import json
import math
import re
import subprocess
import sys
import tempfile
import unittest
from html import unescape
from pathlib import Path

from bench import accuracy, experiment, findings, pictures, published, run, truth
from emulator.compare import by_function, compare
from tests.harness.env import TOP
from tests.harness.truth import LEAVES

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
        self.assertGreaterEqual(len(RESULTS), 2)
        for path in RESULTS:
            with self.subTest(path.parent.name):
                self.assertEqual(
                    path.with_name("README.md").read_text(),
                    run.page(json.loads(path.read_text()), path.parent.name),
                )

    def test_another_figure_makes_another_page(self):
        """Otherwise a page without the figure would pass."""
        results = results_of("6.12")
        before = run.page(results, "6.12")
        for change in (
            lambda: results["cost"]["added"].update(used=99),
            lambda: results["published"]["ratios"].update({"run time": 1.0123}),
            lambda: results["accuracy"]["bias"]["1"].update({"300": 0.123}),
            lambda: results["by_module"]["added"].update(module=987),
            lambda: results["resonance"]["jitter"]["12"].update(windows=4321),
            lambda: results["scaling"]["samples"][0].update(bytes=7_700_000),
            lambda: results["collect"].update({"native to decode": 2.98}),
        ):
            change()
            after = run.page(results, "6.12")
            self.assertNotEqual(after, before)
            before = after

    def test_pictures_are_there(self):
        for path in RESULTS:
            shown = re.findall(
                r"^!\[[^]]+\]\((\S+)\)$", path.with_name("README.md").read_text(), re.M
            )
            self.assertGreaterEqual(len(shown), 6)
            for name in shown:
                self.assertTrue(path.with_name(name).is_file(), f"{path.parent.name}/{name}")

    def test_whole_run(self):
        """All measurements took less than an hour. Missed goals are those of README."""
        for path in RESULTS:
            results = json.loads(path.read_text())
            self.assertLessEqual(set(run.MEASUREMENTS), set(results))
            self.assertLess(sum(results["seconds"].values()), 3600)
            self.assertEqual(results["accuracy"]["iterations"], accuracy.ITERATIONS)
            missed = [name for name, met in results["published"]["met"].items() if not met]
            known = {"file, 25 %", "script, 25 %", "native, 25 %", "native, none"}
            self.assertLessEqual(set(missed), known)

    def test_what_the_page_says_of_every_result(self):
        """Sentences of the page that hold for every result, but have no figure."""
        for path in RESULTS:
            results = json.loads(path.read_text())
            # the module opens the first window a long interval later
            recordings = results["by_module"]["recordings"]
            samples = [recordings[name][experiment.ALTERNATE]["samples"] for name in recordings]
            self.assertEqual(samples[0] - samples[1], 1)
            # memory does not grow with the number of samples
            for ratio in results["collect"]["memory of the largest to the smallest"].values():
                self.assertLess(ratio, 1.25)
            # some 33 times as long
            theirs = experiment.PUBLISHED[experiment.LONG][1] / experiment.PUBLISHED_EVENTS
            ours = results["published"]["limit"]["25 %"][experiment.LONG]["samples"]
            self.assertEqual(round(theirs / ours), 33)
            self.assertIn("33 times as long", published.longer(results["published"]))

    def test_the_page_needs_no_library(self):
        """Only measuring and drawing need numpy and matplotlib."""
        code = "import sys; from bench import run; " + (
            "[run.module_of(name) for name in run.MEASUREMENTS]; "
            "print(*{'numpy', 'matplotlib', 'selenium'} & set(sys.modules))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, check=True
        )
        self.assertEqual(done.stdout.strip(), "")

    def test_pages_of_their_own(self):
        """They are made of the results beside them. candidates needs numpy, which is not here."""
        names = [name for name in run.APART if name != "candidates"]
        made = [path for name in names for path in TOP.glob(f"results/*/{name}.json")]
        self.assertGreaterEqual(len(made), len(names))
        for path in made:
            module = run.module_of(path.stem)
            text = f"# {module.TITLE}\n\n{module.report(json.loads(path.read_text()))}\n\nRepeat: "
            self.assertTrue(path.with_suffix(".md").read_text().startswith(text), path)

    def test_report_writes_the_page_beside_the_results(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "6.12/results.json"
            path.parent.mkdir()
            results = {name: results_of("6.12")[name] for name in ("cost", "seconds")}
            path.write_text(json.dumps(results))
            subprocess.run(
                [TOP / "bench/run.py", "--report", path], check=True, capture_output=True
            )
            self.assertEqual(path.with_name("README.md").read_text(), run.page(results, "6.12"))


class Findings(unittest.TestCase):
    """results/README.md."""

    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.page = (findings.KEPT / "README.md").read_text()

    def test_page_is_what_bench_makes_of_the_results(self):
        self.assertEqual(self.page, findings.page(findings.read()))

    def test_another_figure_makes_another_page(self):
        """Otherwise a page without the figure would pass."""
        measured = findings.read()
        published_, resonance = (measured["results"][name] for name in ("published", "resonance"))
        xz = measured["truth"][findings.WITH_KERNEL]["xz"]
        corrected = measured["truth"][findings.CORRECTED]["xz"]
        rows = {(row["differ"], row["runs"]): row for row in measured["diff"]["rows"]}
        before = self.page
        for change in (
            lambda: published_["ratios"].update({"file, none": 1234}),
            lambda: published_["limit"]["none"][experiment.SHORT].update(bytes=222_000_000),
            lambda: published_["ratios"].update({"run time": 1.0777}),
            lambda: published_["limit"]["25 %"][experiment.SHORT].update(run_time=3.21),
            lambda: xz["%CY"].update(error=0.222),
            lambda: corrected["CPI"].update(error=3.33),
            lambda: corrected["CM/KI"].update(marked=1),
            lambda: corrected["CM/KI"].update(right=7),
            lambda: resonance["jitter"]["0"].update({"largest deviation": 0.555}),
            lambda: resonance["jitter"]["14"].update({"standard error": 0.044}),
            lambda: rows[1, 3].update(found=123),
            lambda: rows[3, 10].update(found=234),
            lambda: rows[0, 5]["alarms"].update(CPI=99),
        ):
            change()
            after = findings.page(measured)
            self.assertNotEqual(after, before)
            before = after

    def test_each_has_a_figure_a_picture_and_a_command(self):
        parts = self.page.split("\n## ")[1:]
        self.assertEqual(len(parts), 5)
        for part, name in zip(parts, findings.PLOTS):
            heading = part.partition("\n")[0].partition(". ")[2]
            self.assertRegex(heading, "[0-9]")
            self.assertEqual(re.findall(r"^!\[[^]]+\]\((\S+)\)$", part, re.M), [f"{name}.svg"])
            (command,) = re.findall(r"^Repeat: `make bench BENCH=(\w+)`", part, re.M)
            self.assertIn(command, (*run.MEASUREMENTS, *run.APART))

    def test_pictures_have_the_figures(self):
        measured = findings.read()
        limits = measured["results"]["published"]["limit"].values()
        recordings = [
            row for rows in limits for name, row in rows.items() if name != experiment.FEW_SAMPLES
        ]
        programs = [
            (measured["truth"][findings.WITH_KERNEL][name], corrected)
            for name, corrected in measured["truth"][findings.CORRECTED].items()
            if name in truth.PROGRAMS
        ]
        jitter = measured["results"]["resonance"]["jitter"].values()
        wild = [row for row in measured["diff"]["rows"] if row["differ"] == 3]
        number = measured["diff"]["comparisons"]
        for name, values, least in (
            ("volume", [row["bytes"] / 1e6 for row in recordings], 10),
            ("run-time", [row["run_time"] for row in recordings], 10),
            ("truth", [100 * plain["CPI"]["error"] for plain, _ in programs], 0),
            ("truth", [100 * corrected["CPI"]["error"] for _, corrected in programs], 0),
            ("truth", [100 * plain["%CY"]["error"] for plain, _ in programs], None),
            ("resonance", [100 * row["largest deviation"] for row in jitter], None),
            ("diff", [100 * row["found"] / number / 2 for row in wild], 0),
            ("diff", [sum(row["alarms"].values()) / number / 0.03 for row in wild], None),
        ):
            drawn = re.findall(r">([0-9.,]+)</text>", (findings.KEPT / f"{name}.svg").read_text())
            for value in values:
                digits = 1 if least is None else 0 if value >= least else 2
                self.assertIn(f"{value:.{digits}f}", drawn, name)

    def test_readme_links_it(self):
        self.assertIn("](results/README.md)", (TOP / "README.md").read_text())


class Truth(unittest.TestCase):
    def test_marks_and_goals(self):
        """One function is right, one is marked, and one has no rate."""

        def row(symbol: str, share: float, cpi: float | None, weak: list[str]) -> dict:
            known = {} if cpi is None else {"CPI": cpi}
            return {
                **{"symbol": symbol, "dso": "/x", "address": None, "weak": weak},
                "metrics": {"%CY": share, **known},
                "errors": {"%CY": 1.0},
                "intervals": {name: (value - 2, value + 2) for name, value in known.items()}
                | {"%CY": (share - 2, share + 2)},
            }

        true = [row("f", 50, 2, []), row("g", 30, 4, []), row("h", 20, 1, [])]
        rows = [row("f", 51, 3, []), row("g", 26, 9, ["CPI"]), row("h", 23, None, [])]
        found = truth.result_of(compare(by_function(rows), by_function(true), 1))
        self.assertAlmostEqual(found["%CY"]["error"], 0.04)
        self.assertAlmostEqual(found["by chance"], 0.015 * (2 / math.pi) ** 0.5)
        self.assertAlmostEqual(found["CPI"]["error"], (50 * 1 + 30 * 5) / (50 * 2 + 30 * 4))
        for name, expected in ("%CY", [3, 0, 1]), ("CPI", [3, 2, 1]):
            numbers = [found[name][key] for key in ("values", "marked", "right")]
            self.assertEqual(numbers, expected, name)
        near = {**found, "%CY": {**found["%CY"], "error": 0.017, "right": 3}}
        for program, expected in (found, (False, False, True)), (near, (True, True, True)):
            self.assertEqual(
                tuple(is_met for _, _, is_met in truth.goals({"p": {"functions": 3, **program}})),
                expected,
            )

    def test_a_rate_without_an_interval(self):
        """Nothing says that it is right, so it counts as marked."""
        row = {"symbol": "f", "dso": "/x", "address": None, "weak": [], "errors": {}}
        row |= {"metrics": {"%CY": 99, "CPI": 2}, "intervals": {"%CY": (98, 100)}}
        rows = by_function([row])
        found = truth.result_of(compare(rows, rows, 1))
        for name, expected in ("%CY", [1, 0, 1]), ("CPI", [1, 1, 0]):
            numbers = [found[name][key] for key in ("values", "marked", "right")]
            self.assertEqual(numbers, expected, name)


class Readme(unittest.TestCase):
    def test_results_are_those_of_the_results_page(self):
        readme = (TOP / "README.md").read_text()
        part = readme.partition("\n## Results\n")[2].partition("\n## ")[0]
        quoted = re.findall(r"^- .*(?:\n  .*)*", part, re.M)
        self.assertEqual(len(quoted), 5)
        page = (TOP / "results/6.12/README.md").read_text()
        for text in quoted:
            self.assertIn(f"\n{text}\n", page)
            self.assertRegex(text, r"\(`make bench BENCH=\w+`\)$")

    def test_pictures(self):
        """`make bench BENCH=pictures` makes all of them; they are small enough for a web page."""
        shown = {
            page.parent / name
            for page in (TOP / folder / "README.md" for folder in (".", "report", "emulator"))
            for name in re.findall(r"!\[[^]]+\]\((\S+)\)", page.read_text())
        }
        made = {TOP / "results/6.12" / path.name for path in pictures.PICTURES}
        self.assertEqual({path.resolve() for path in shown}, made)
        for path in made:
            self.assertTrue(10 < path.stat().st_size / 100 < 3000, path)

    def test_terminal(self):
        """The tables of the seven functions have recorded values near the true ones."""
        drawn = unescape((TOP / "results/6.12/terminal.svg").read_text())
        lines = re.findall(r">([^<]*)</text>", drawn)
        for name in LEAVES:
            (recorded,) = [line.split() for line in lines if re.match(rf"{name} +\d+ ", line)]
            (compared,) = [line for line in lines if re.match(rf"{name} +\S+ / ", line)]
            _share, (cpi, true), *_rates = re.findall(r"(\S+) / (\S+)", compared)
            self.assertLess(abs(float(cpi) / float(true) - 1), 0.02, compared)
            self.assertAlmostEqual(float(recorded[2]), float(cpi), delta=0.051)

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
    def test_figures_of_both_bases(self):
        """The page on the interface has figures of both bases."""
        page = words(PAGE)
        newest = max(
            (path.parent.name for path in RESULTS),
            key=lambda base: tuple(map(int, base.split("."))),
        )
        self.assertNotEqual(newest, "6.12")
        results, newer = results_of("6.12"), results_of(newest)
        added, of_newer = (each["cost"]["added"] for each in (results, newer))
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
            f"6.12; {of_newer['used']:.0f} and {of_newer['jitter']:.0f} of",
        ):
            self.assertIn(figure, page)


class Texts(unittest.TestCase):
    def test_errors_that_interrupts_cause(self):
        """The guide, the manual and the changelog quote results/6.12/truth.json."""
        measured = json.loads((TOP / "results/6.12/truth.json").read_text())

        def errors(program: str, digits: int) -> list[str]:
            kinds = "with the kernel", "with the kernel, corrected"
            found = (100 * measured[kind][program]["CPI"]["error"] for kind in kinds)
            return [f"{error:.{digits}f} %" for error in found]

        plain, corrected = errors("benchmark, depth 1", 1)
        self.assertIn(
            f"functions is {plain} off, and {corrected} with ``--correct``",
            words(PAGE.with_name("function-metrics.rst")),
        )
        plain, corrected = errors("python3", 1)
        manual = words(TOP / "tools/perf/Documentation/perf-functions.txt")
        self.assertIn(f"python3 is {plain} off, and {corrected} with --correct", manual)
        plain, corrected = errors("python3", 0)
        self.assertIn(f"python3 falls from {plain} to {corrected}.", words(TOP / "CHANGELOG.md"))


class Messages(unittest.TestCase):
    def test_time_of_a_table(self):
        seconds = results_of("6.12")["collect"]["sizes"][-1]["seconds"]
        for path in (TOP / "patches").glob("**/functions/command.patch"):
            text = words(path)
            for program, name in (
                ("perf report --stats", "decode"),
                ("perf functions report", "native"),
                ("generate-function-metrics.py", "script"),
            ):
                self.assertIn(f"{program} {seconds[name]:.2f} ", text)

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
            "alternate/switch": (
                f" no event {switch['none']} ",
                f" exchanged {switch['plain']} ",
                f",alt-period=300/u {switch['alternating']} ",
            ),
        }.items():
            for path in (TOP / "patches").glob(f"**/{name}.patch"):
                for figure in figures:
                    self.assertIn(figure, words(path))


if __name__ == "__main__":
    unittest.main()
