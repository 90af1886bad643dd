# SPDX-License-Identifier: GPL-2.0
"""What functions-report writes for other programs, as these programs read it.

pprof and speedscope open profiles. What they show is held against what was simulated or
written into a sums file.
"""

import base64
import hashlib
import json
import os
import re
import subprocess
import tempfile
import unittest
from collections import Counter
from pathlib import Path

from selenium.webdriver.support.wait import WebDriverWait

from tests.harness import reports
from tests.harness.chromium import Browser
from tests.harness.env import CHECK, PERF, TOP, must, run
from tests.harness.reports import REPORT
from tests.harness.simulation import Libraries, Simulation

DATA = CHECK / "exports"
SPEEDSCOPE = "1.25.0"
SPEEDSCOPE_SHA256 = "2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03"
# chains, callees first: windows, cycles, instructions, page faults
CHAINS = {
    "leaf;middle;main": (100, 30000, 60000, 300),
    "other;middle;main": (50, 15000, 3000, 0),
    "middle;main": (20, 6000, 6000, 0),
    "leaf;main": (40, 12000, 6000, 80),
    "main": (10, 3000, 3000, 0),
    "again;again;main": (5, 1500, 700, 0),
}
CHAIN_EVENTS = ("cycles", "instructions", "page-faults")
EVERYTHING = ("-trim=false", "-nodecount=1000000")  # pprof leaves nothing out


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    must("make", "build/report/profile_pb2.py")


def pprof(profile: Path, *options: object) -> str:
    """What pprof prints of a profile."""
    home = {"HOME": str(DATA), "PPROF_TMPDIR": str(DATA)}
    return must(
        "go", "tool", "pprof", *options, profile, env=home, cwd="/", stderr=subprocess.DEVNULL
    )


def top(profile: Path, event: str, unit: str = "minimum") -> dict[str, tuple[int, int]]:
    """What pprof -top prints of an event: by function, its own and with what it calls."""
    text = pprof(profile, "-top", *EVERYTHING, f"-sample_index={event}", f"-unit={unit}")
    found = {}
    for line in text.partition("cum%\n")[2].splitlines():
        flat, _, _, total, _, name = line.split(maxsplit=5)
        found[name] = tuple(int(re.sub("ns$", "", number)) for number in (flat, total))
    return found


def traces(profile: Path, event: str) -> Counter:
    """What pprof -traces prints of an event: by chain, callees first."""
    text = pprof(profile, "-traces", *EVERYTHING, f"-sample_index={event}")
    found: Counter = Counter()
    for block in re.split(r"^-+\+-+\n", text, flags=re.M)[1:]:
        lines = block.rstrip("\n").split("\n")  # other ends of lines are part of a name
        if lines[0]:
            number, first = lines[0].split(maxsplit=1)
            found[";".join((first, *(line.strip() for line in lines[1:])))] += int(number)
    return found


def perf_table(*arguments: object) -> dict:
    """What perf itself prints as JSON."""
    return json.loads(
        must(PERF, "functions", "report", "-j", *arguments, stderr=subprocess.DEVNULL)
    )


def perf_names(*arguments: object) -> list[str]:
    """The names of the rows as perf itself prints them."""
    text = must(PERF, "functions", "report", "-F", "#", *arguments, stderr=subprocess.DEVNULL)
    return [line.rsplit(maxsplit=1)[0] for line in text.splitlines()[1:]]


def written_chains() -> dict[str, Counter]:
    """By event, what CHAINS counts by function: its own, and that of what it calls, too."""
    found = {}
    for place, event in enumerate(CHAIN_EVENTS, 1):
        own, total = Counter(), Counter()
        for chain, numbers in CHAINS.items():
            own[chain.partition(";")[0]] += numbers[place]
            for name in set(chain.split(";")):
                total[name] += numbers[place]
        found[event] = {name: (own[name], total[name]) for name in total if total[name]}
    return found


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = Path(temporary.name)
        self.chains = self.dir / "chains.sums"
        self.chains.write_text(reports.chain_sums(CHAINS), encoding="utf-8")
        self.profile = self.dir / "profile.pb.gz"

    def refused(self, pattern: str, *command: object, status: int = 1) -> None:
        """One line says why, and the folder is as it was."""
        before = sorted(self.dir.iterdir())
        done = run(*command, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done)
        self.assertRegex(
            done.stderr, rf"\A(usage: (.*\n)*)?functions-report: (error: )?{pattern}\n\Z"
        )
        self.assertEqual(sorted(self.dir.iterdir()), before)


class Pprof(Case):
    """pprof opens profiles."""

    @classmethod
    def setUpClass(cls):
        cls.libraries = Libraries(DATA / "simulation")

    def recording(self, seed: int, *arguments: object, **options) -> tuple[Simulation, Path]:
        """A simulated recording, and its profile."""
        simulation = Simulation(seed, self.libraries, **options)
        path = self.dir / "simulated.data"
        simulation.run(300, path)
        must(REPORT, "--pprof", self.profile, "--share", simulation.share, *arguments, path)
        return simulation, path

    def test_the_same_functions_and_values_as_perfs(self):
        _, path = self.recording(1, events=5)
        table = perf_table(path)
        seen = 0
        for event in table["groups"][0]["events"]:
            values = [function["sums"][0]["totals"][event] for function in table["functions"]]
            wanted = {
                name: (value, value) for name, value in zip(perf_names(path), values) if value
            }
            self.assertEqual(top(self.profile, event), wanted)
            seen += len(wanted)
        self.assertGreater(seen, 20)
        for dso in "libone.so", "libtwo.so":
            self.assertIn(f"/simulation/{dso}", pprof(self.profile, "-raw"))

    def test_call_chains_are_the_simulated_ones(self):
        several = 0
        for seed in range(4):
            simulation, _ = self.recording(seed, by="callchain")
            wanted: dict[str, Counter] = {}
            for ((name, *_), _), one in simulation.expected().items():
                for event, total in one["totals"].items():
                    wanted.setdefault(event, Counter())[name] += total
            for event, chains in wanted.items():
                # a tab in the name of an event is a blank in pprof's own choice of it
                if "\t" not in event:
                    found = traces(self.profile, event)
                    self.assertEqual(found, Counter(+chains), event)
                    several += len(found)
        self.assertGreater(several, 20)

    def test_sums_of_call_chains(self):
        must(REPORT, "--pprof", self.profile, self.chains)
        for event, functions in written_chains().items():
            self.assertEqual(top(self.profile, event), functions)
        # what pprof shows if nothing is chosen
        self.assertIn("\nType: cycles\n", pprof(self.profile, "-top"))

    def test_rows_that_were_asked_for(self):
        """Of a recording that has call chains."""
        simulation, path = self.recording(1, "--by", "comm", by="callchain")
        table = perf_table("--by", "comm", "--share", simulation.share, path)
        event = table["groups"][0]["events"][0]
        wanted: Counter = Counter()
        for function in table["functions"]:
            for sums in function["sums"]:
                wanted[function["symbol"]] += sums["totals"].get(event, 0)
        found = {name: own for name, (own, _) in top(self.profile, event).items()}
        self.assertEqual(found, +wanted)
        self.assertGreater(len(found), 1)

    def test_any_name(self):
        """C++ too, whose arguments pprof leaves out of the names that it demangles itself."""
        names = [name for name in (*reports.NASTY, "f(int)<T>::g") if ";" not in name]
        self.chains.write_text(
            reports.chain_sums({f"{name};main": (9, 2700, 900, 0) for name in names}),
            encoding="utf-8",
        )
        must(REPORT, "--pprof", self.profile, self.chains)
        self.assertEqual(traces(self.profile, "cycles"), {f"{name};main": 2700 for name in names})

    def test_clocks_are_times(self):
        self.chains.write_text(
            reports.chain_sums({"f;main": (9, 2700, 900, 0)}).replace("cycles", "task-clock"),
            encoding="utf-8",
        )
        must(REPORT, "--pprof", self.profile, self.chains)
        self.assertIn("2.70us", pprof(self.profile, "-top"))

    def test_largest_numbers(self):
        """A number of the format has 63 bits, a total in a sums file has more."""
        for number, fits in ((2**63 - 1, True), (2**63, False)):
            self.chains.write_text(
                reports.chain_sums({"f;main": (1, 300, 0, 0)}).replace(
                    "\t300\t0\t0\t", f"\t{number}\t0\t0\t"
                ),
                encoding="utf-8",
            )
            if fits:
                must(REPORT, "--pprof", self.profile, self.chains)
                self.assertIn(f" {number} ", pprof(self.profile, "-raw"))
                self.profile.write_text("old")
            else:
                self.refused(
                    f"--pprof: {number} events are too many for the format, .*",
                    REPORT,
                    "--pprof",
                    self.profile,
                    self.chains,
                )
                self.assertEqual(self.profile.read_text(), "old")

    def test_no_generated_code(self):
        must("cp", "-r", TOP / "report", self.dir / "report")
        self.refused(
            ".*profile_pb2.py: there is no code for profiles: `make report` generates it",
            "/usr/bin/env",
            "PYTHONDONTWRITEBYTECODE=1",
            self.dir / "report/functions-report",
            "--pprof",
            self.profile,
            self.chains,
        )


class Speedscope(Case):
    """speedscope opens profiles, in a browser."""

    @classmethod
    def setUpClass(cls):
        archive = DATA / f"speedscope-{SPEEDSCOPE}.tgz"
        if not archive.exists():
            # whose npm may be from elsewhere
            done = run(
                *("npm", "pack", "--silent", f"speedscope@{SPEEDSCOPE}"),
                cwd=DATA,
                env={"PATH": os.environ["PATH"]},
            )
            if done.returncode:
                raise unittest.SkipTest(
                    f"npm cannot fetch speedscope: {done.stdout.strip()[-200:]}"
                )
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        assert found == SPEEDSCOPE_SHA256, f"{archive} is not the speedscope that was tried"
        must("tar", "-xzf", archive, "-C", DATA)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def test_sandwich(self):
        """Its table of functions, of the sample type that is shown first."""
        must(REPORT, "--pprof", self.profile, self.chains)
        script = self.dir / "profile.js"
        text = base64.b64encode(self.profile.read_bytes()).decode()
        script.write_text(f'speedscope.loadFileFromBase64("profile.pb.gz", "{text}")')
        page = (DATA / "package/dist/release/index.html").as_uri()
        self.browser.driver.get(f"{page}#localProfilePath={script}")
        wait = WebDriverWait(self.browser.driver, 30)
        shown = "return document.body.innerText"
        wait.until(lambda _: "Sandwich" in self.browser.run(shown))
        self.browser.keys("3")
        wait.until(lambda _: "Symbol Name" in self.browser.run(shown))
        rows = self.browser.run(
            "return [...document.querySelectorAll('table tr')].slice(1).map(row =>"
            "[...row.children].map(cell => cell.textContent))"
        )
        numbers = {
            name: tuple(int(cell.split()[0].replace(",", "")) for cell in (own, total))
            for total, own, name in rows
        }
        self.assertEqual(numbers, written_chains()["cycles"])


class Mistakes(Case):
    """One line, and no file."""

    def test_wrong_inputs(self):
        bad = self.dir / "bad.data"
        bad.write_text("no recording")
        for option in ("--pprof",):
            out = self.dir / "out"
            self.refused("incompatible file format .*", REPORT, option, out, bad)
            self.refused(
                ".*there is no such folder", REPORT, option, self.dir / "none/out", self.chains
            )
            self.refused(".* is a folder", REPORT, option, self.dir, self.chains)
            self.refused(
                "--pprof has no form for a comparison: it cannot be with --diff",
                REPORT,
                option,
                out,
                "--diff",
                self.chains,
                self.chains,
            )

    def test_no_library(self):
        """As if these packages were not installed."""
        for name in ("google",):
            (self.dir / f"{name}.py").write_text("raise ImportError\n")
        paths = "/usr/bin/env", "PYTHONDONTWRITEBYTECODE=1", f"PYTHONPATH={self.dir}", REPORT
        for option, package in (("--pprof", "protobuf"),):
            self.refused(
                f"{option} needs {package.replace('-', '_')}: install python3-{package}",
                *(*paths, option, self.dir / "out", self.chains),
            )


if __name__ == "__main__":
    unittest.main()
