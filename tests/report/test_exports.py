# SPDX-License-Identifier: GPL-2.0
"""The output of functions-report for other programs, as these programs read it.

pprof opens profiles. The parser of prometheus_client reads OpenMetrics text. The expected values
come from a simulation or from a sums file.
"""

import itertools
import re
import shutil
import subprocess
import tempfile
import unittest
from collections import Counter
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.harness import fleet
from tests.harness import perfdata as pw
from tests.harness import reports, stacks, sumsfile
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.eventsamples import KINDS
from tests.harness.recording import LONG, Recording, Windows
from tests.harness.reports import REPORT, perf_table
from tests.harness.simulation import Libraries, Simulation

DATA = CHECK / "exports"
# chains, callees first: windows, cycles, instructions, page faults
CHAINS = {"leaf;main": (40, 12000, 6000, 80), "main": (10, 3000, 3000, 0)}
EVERYTHING = ("-trim=false", "-nodecount=1000000")  # options that make pprof leave out nothing


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    must("make", "build/report/profile_pb2.py")


def pprof(profile: Path, *options: object) -> str:
    """The output of pprof for a profile."""
    if not shutil.which("go"):
        raise unittest.SkipTest("pprof is a part of golang-go, which make check-all installs")
    home = {"HOME": str(DATA), "PPROF_TMPDIR": str(DATA)}
    return must(
        "go", "tool", "pprof", *options, profile, env=home, cwd="/", stderr=subprocess.DEVNULL
    )


def top(profile: Path, event: str) -> dict[str, tuple[int, int]]:
    """The values of an event in pprof -top, by function: its own, and with its callees."""
    text = pprof(profile, "-top", *EVERYTHING, f"-sample_index={event}", "-unit=minimum")
    found = {}
    for line in text.partition("cum%\n")[2].splitlines():
        flat, _, _, total, _, name = line.split(maxsplit=5)
        found[name] = tuple(int(re.sub("ns$", "", number)) for number in (flat, total))
    return found


def traces(profile: Path, event: str) -> Counter:
    """The values of an event in pprof -traces, by chain, callees first."""
    text = pprof(profile, "-traces", *EVERYTHING, f"-sample_index={event}")
    found: Counter = Counter()
    for block in re.split(r"^-+\+-+\n", text, flags=re.M)[1:]:
        lines = block.rstrip("\n").split("\n")  # other ends of lines are part of a name
        lines = list(itertools.dropwhile(re.compile(r" +weak: ").match, lines))
        if lines[0]:
            number, first = lines[0].split(maxsplit=1)
            found[";".join((first, *(line.strip() for line in lines[1:])))] += int(number)
    return found


def perf_names(*arguments: object) -> list[str]:
    """The names of the rows as perf itself prints them."""
    text = must(PERF, "functions", "report", "-F", "#", *arguments, stderr=subprocess.DEVNULL)
    return [line.rsplit(maxsplit=1)[0] for line in text.splitlines()[1:]]


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = Path(temporary.name)
        self.chains = self.dir / "chains.sums"
        self.chains.write_text(reports.chain_sums(CHAINS), encoding="utf-8")
        self.profile = self.dir / "profile.pb.gz"

    def refused(self, pattern: str, *command: object) -> None:
        """One line says why, and the folder does not change."""
        before = sorted(self.dir.iterdir())
        done = run(*command, stderr=subprocess.PIPE)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertRegex(
            done.stderr, rf"\A(usage: (.*\n)*)?functions-report: (error: )?{pattern}\n\Z"
        )
        self.assertEqual(sorted(self.dir.iterdir()), before)


class Pprof(Case):
    """pprof opens profiles."""

    def test_the_same_functions_and_values_as_perfs(self):
        path = self.dir / "simulated.data"
        Simulation(1, Libraries(DATA / "simulation"), events=5).run(300, path)
        must(REPORT, "--pprof", self.profile, path, stderr=subprocess.DEVNULL)
        table, seen = perf_table(path), 0
        for event in (one["name"] for one in table["events"]):
            found = top(self.profile, event)
            for name, row in zip(perf_names(path), table["functions"]):
                own, total = found.pop(name, (0, 0))
                counted = row["events"][event]
                self.assertAlmostEqual(own, counted["value"] if counted else 0, delta=1)
                self.assertEqual(own, total)
                seen += own > 0
            self.assertEqual(found, {})
        self.assertGreater(seen, 20)
        for dso in "libone.so", "libtwo.so":
            self.assertIn(f"/simulation/{dso}", pprof(self.profile, "-raw"))

    def test_call_chains(self):
        """Those of a program whose stack is known at each cycle."""
        program = stacks.Program()
        path = program.record(1, 3000)
        must(REPORT, "--pprof", self.profile, path, stderr=subprocess.DEVNULL)
        found = traces(self.profile, "cycles")
        self.assertLessEqual(
            {"gamma", "beta;gamma", "alpha;beta;gamma", "twice;gamma", "alpha;twice;gamma"},
            found.keys(),
        )
        for name in "alpha", "twice":
            own = sum(number for chain, number in found.items() if name in chain.split(";"))
            share = program.done[name]["cycles"] / program.done["[all]"]["cycles"]
            self.assertAlmostEqual(own / found.total(), share, delta=0.025)


class OpenMetrics(Case):
    """The parser of prometheus_client reads the text."""

    def samples(self, text: str) -> dict[str, dict[frozenset, float]]:
        """Each value by its labels, by family; checks that families are gauges with a help text."""
        found = {}
        for family in text_string_to_metric_families(text):
            self.assertEqual(family.type, "gauge")
            self.assertTrue(family.documentation)
            self.assertTrue(family.name.startswith("perf_functions_"))
            found[family.name] = {
                frozenset(sample.labels.items()): sample.value for sample in family.samples
            }
        return found

    @staticmethod
    def sums(path: Path) -> dict[tuple, dict[str, dict]]:
        """The sums of a host's functions by source."""
        found: dict[tuple, dict[str, dict]] = {}
        for (name, source, _), own in sumsfile.read(fleet.sums([path]).decode())[0].items():
            found.setdefault(name, {})[source] = own
        return found

    def of_host(self, path: Path, most: int, place: dict[str, str]) -> dict:
        """The sums of the functions with the most cycles, in the form of samples()."""
        found: dict = {"samples": {}, "windows": {}}
        table = self.sums(path)
        order = sorted(table, key=lambda key: -table[key]["samples"]["totals"]["cycles"])
        for symbol, dso, address in order[:most]:
            labels = {"function": symbol, "dso": dso, **place}
            if address is not None:
                labels["address"] = f"{address:#x}"
            for source, values in found.items():
                number = table[symbol, dso, address].get(source, {"number": 0})["number"]
                values[frozenset(labels.items())] = number
        return found

    def host(self) -> tuple[fleet.Host, Path]:
        """Writes a recording of a host."""
        host = fleet.Host(0, DATA / "code.so", fleet.library(DATA / "code.so"), 20)
        path = self.dir / "host.data"
        host.write(path, 2000)
        return host, path

    def test_table(self):
        host, path = self.host()
        words = "--label", "service=web", "--top", 5, path
        text = must(REPORT, "--openmetrics", "-", *words, stderr=subprocess.DEVNULL)
        self.assertTrue(text.endswith("\n# EOF\n"))
        seen = self.samples(text)
        web = {"service": "web"}
        for name, values in self.of_host(path, 5, web).items():
            self.assertEqual(seen[f"perf_functions_{name}"], values, name)
        whole = frozenset(web.items())
        self.assertEqual(seen["perf_functions_lost_records"], {whole: host.lost})
        self.assertEqual(seen["perf_functions_throttle_records"], {whole: host.throttled})
        must(REPORT, "--openmetrics", self.dir / "a.prom", *words)
        self.assertEqual((self.dir / "a.prom").read_text(), text)

    def test_metrics(self):
        """The metrics follow from the sums."""
        _, path = self.host()
        seen = self.samples(
            must(REPORT, "--openmetrics", "-", "--top", 1000, path, stderr=subprocess.DEVNULL)
        )
        table = self.sums(path)
        whole = sum(own["samples"]["totals"]["cycles"] for own in table.values())
        wanted: dict[str, dict] = {"cycles_per_instruction": {}, "share_of_the_cycles_percent": {}}
        for (symbol, dso, address), own in table.items():
            labels = {"function": symbol, "dso": dso, "column": "%CY"}
            labels |= {"address": f"{address:#x}"} if address is not None else {}
            share = 100 * own["samples"]["totals"]["cycles"] / whole
            wanted["share_of_the_cycles_percent"][frozenset(labels.items())] = share
            counts = own.get("windows", {"totals": {"instructions": 0}})["totals"]
            if counts["instructions"]:
                cpi = counts["cycles"] / counts["instructions"]
                labels["column"] = "CPI"
                wanted["cycles_per_instruction"][frozenset(labels.items())] = cpi
        for name, values in wanted.items():
            found = seen[f"perf_functions_{name}"]
            self.assertEqual(found.keys(), values.keys())
            for key, value in values.items():
                self.assertAlmostEqual(found[key], value, delta=1e-9 * value)
        name = "perf_functions_cycles_per_instruction"
        for key, low in seen[f"{name}_low"].items():
            self.assertTrue(low <= seen[name][key] <= seen[f"{name}_high"][key])

    def test_times_are_in_seconds(self):
        """OpenMetrics has no other unit for them."""
        clock = pw.Event("task-clock", 1, 1, [1], 10**6, sample_type=KINDS)
        recording = Recording([[clock]])
        for _ in range(1500):
            recording.sample(0x1000, 10**6)
        path = recording.write(self.dir / "clock.data")
        seen = self.samples(must(REPORT, "--openmetrics", "-", path, stderr=subprocess.DEVNULL))
        self.assertEqual([*seen["perf_functions_events_seconds"].values()], [1.5])
        self.assertFalse([name for name in seen if name.endswith("nanoseconds")])

    def test_unknown_counts(self):
        """A function without windows has an unknown number of instructions, which is not 0."""
        recording = Windows()
        for _ in range(30):
            recording.window(0x1000)
        recording.take(0x2000, LONG)
        path = recording.write(self.dir / "windows.data")
        seen = self.samples(must(REPORT, "--openmetrics", "-", path, stderr=subprocess.DEVNULL))
        told = {(dict(key)["address"], dict(key)["event"]) for key in seen["perf_functions_events"]}
        known = {("0x1000", "cycles"), ("0x1000", "instructions"), ("0x2000", "cycles")}
        self.assertEqual(told, known)

    def test_operations(self):
        """Of operations, too, the text tells how many there are."""
        path = self.dir / "operations.sums"
        windows = sumsfile.window_set(["operations"], {"hot": [[1000]] * 30}, even=1)
        operations = windows.replace("set\twindows", "set\toperations")
        path.write_text(f"{sumsfile.HEAD}{operations}end\n", encoding="utf-8")
        seen = self.samples(must(REPORT, "--openmetrics", "-", path, stderr=subprocess.DEVNULL))
        self.assertEqual([*seen["perf_functions_operations"].values()], [30])

    def test_wrong_labels(self):
        for label, reason in (
            ("=web", "a label is NAME=VALUE, as in service=web; NAME has letters, digits and _"),
            ("a-b=c", "a label is NAME=VALUE, as in service=web; NAME has letters, digits and _"),
            ("dso=x", "--label dso: values have this label: take another name"),
        ):
            words = "--openmetrics", "-", "--label", label, self.chains
            self.refused(f".*{re.escape(reason)}", REPORT, *words)
