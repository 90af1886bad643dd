# SPDX-License-Identifier: GPL-2.0
"""The output of functions-report for other programs, as these programs read it.

pprof opens profiles. The parser of prometheus_client reads OpenMetrics text. The expected values
come from a simulation or from a sums file.
"""

import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
from collections import Counter
from datetime import datetime
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.harness import fleet
from tests.harness import perfdata as pw
from tests.harness import reports, stacks, sumsfile
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.eventsamples import KINDS
from tests.harness.recording import Recording, Windows
from tests.harness.reports import REPORT
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


def top(profile: Path, event: str, unit: str = "minimum") -> dict[str, tuple[int, int]]:
    """The values of an event in pprof -top, by function: its own, and with its callees."""
    text = pprof(profile, "-top", *EVERYTHING, f"-sample_index={event}", f"-unit={unit}")
    found = {}
    for line in text.partition("cum%\n")[2].splitlines():
        flat, _, _, total, _, name = line.split(maxsplit=5)
        found[name] = tuple(int(re.sub("ns$", "", number)) for number in (flat, total))
    return found


def traces(profile: Path, event: str, *options: str) -> Counter:
    """The values of an event in pprof -traces, by chain, callees first."""
    text = pprof(profile, "-traces", *EVERYTHING, f"-sample_index={event}", *options)
    found: Counter = Counter()
    for block in re.split(r"^-+\+-+\n", text, flags=re.M)[1:]:
        lines = block.rstrip("\n").split("\n")  # other ends of lines are part of a name
        lines = list(itertools.dropwhile(re.compile(r" +weak: ").match, lines))
        if lines[0]:
            number, first = lines[0].split(maxsplit=1)
            found[";".join((first, *(line.strip() for line in lines[1:])))] += int(number)
    return found


def perf_table(*arguments: object) -> dict:
    """The JSON of perf itself."""
    return json.loads(
        must(PERF, "functions", "report", "-j", *arguments, stderr=subprocess.DEVNULL)
    )


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

    def refused(self, pattern: str, *command: object, status: int = 1) -> None:
        """One line says why, and the folder does not change."""
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
        must(REPORT, "--pprof", self.profile, *arguments, path, stderr=subprocess.DEVNULL)
        return simulation, path

    def test_the_same_functions_and_values_as_perfs(self):
        _, path = self.recording(1, events=5)
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

    def test_time(self):
        """Samples of 61 s end when the file is written, or at the time that a clock tells."""
        written, told = 1_800_000_000, 1_700_000_000
        # CLOCK_MONOTONIC was 4 s at this time, and the first sample is at 5 s
        clock = {29: struct.pack("<IIQQ", 1, 1, told * 10**9, 4 * 10**9)}
        for more, begin in ({}, written - 61), (clock, told + 1):
            windows = Windows()
            windows.window(0x1000)
            windows.writer.times = (5 * 10**9, 66 * 10**9)
            features = {**windows.writer.features(), **more}
            windows.writer.features = lambda features=features: features
            path = windows.write(self.dir / "times.data")
            os.utime(path, (written, written))
            for inputs, seconds in ([path], 61), ([path, path], 122):
                must(REPORT, "--pprof", self.profile, *inputs, stderr=subprocess.DEVNULL)
                found = re.search(r"Time: (.*)\nDuration: (\S+)", pprof(self.profile, "-raw"))
                self.assertEqual(
                    (datetime.fromisoformat(found[1].partition(" +")[0]).timestamp(), found[2]),
                    (begin, {61: "1m1s", 122: "2m2s"}[seconds]),
                )


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

    def most(self, paths: list[Path], number: int) -> list[tuple]:
        """The functions with the most cycles of all hosts."""
        cycles: Counter = Counter()
        for path in paths:
            for key, own in self.sums(path).items():
                cycles[key] += own["samples"]["totals"]["cycles"]
        return [key for key, _ in cycles.most_common(number)]

    def of_host(self, path: Path, functions: list[tuple], place: dict[str, str]) -> dict:
        """The sums of a host's functions, in the form of samples()."""
        found: dict = {"samples": {}, "windows": {}}
        table = self.sums(path)
        for key in table.keys() & functions:
            symbol, dso, address = key
            labels = {"function": symbol, "dso": dso, **place}
            if address is not None:
                labels["address"] = f"{address:#x}"
            for source, values in found.items():
                number = table[key].get(source, {"number": 0})["number"]
                values[frozenset(labels.items())] = number
        return found

    def hosts(self, number: int) -> list[tuple[fleet.Host, Path]]:
        """Writes recordings of hosts."""
        names = fleet.library(DATA / "code.so")
        found = []
        for place in range(number):
            host = fleet.Host(place, DATA / "code.so", names, 20 + place)
            found.append((host, self.dir / f"{place}.data"))
            host.write(found[-1][1], 2000)
        return found

    def check_sums(self, seen: dict, wanted: dict) -> None:
        for name, values in wanted.items():
            self.assertEqual(seen[f"perf_functions_{name}"], values, name)

    def test_table(self):
        (host, path), *_ = self.hosts(1)
        done = run(REPORT, "--openmetrics", "-", "--top", 5, path, stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.endswith("\n# EOF\n"))
        seen = self.samples(done.stdout)
        self.check_sums(seen, self.of_host(path, self.most([path], 5), {}))
        self.assertEqual(
            (seen["perf_functions_lost_records"], seen["perf_functions_throttle_records"]),
            ({frozenset(): host.lost}, {frozenset(): host.throttled}),
        )
        self.assertIn("# UNIT perf_functions_events events\n", done.stdout)
        sums = self.dir / "several.sums"
        must(PERF, "functions", "report", path, "--by", "comm,symbol", "--sums", sums)
        text = must(REPORT, "--openmetrics", "-", sums, stderr=subprocess.DEVNULL)
        for labels in self.samples(text)["perf_functions_windows"]:
            self.assertIn("comm_symbol", dict(labels))
        must(REPORT, "--openmetrics", self.dir / "a.prom", "--top", 5, path)
        self.assertEqual((self.dir / "a.prom").read_text(), done.stdout)

    def test_metrics(self):
        """The metrics follow from the sums."""
        (_, path), *_ = self.hosts(1)
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
        for low, value, high in (
            [
                seen[f"perf_functions_cycles_per_instruction{end}"][key]
                for end in ("_low", "", "_high")
            ]
            for key in seen["perf_functions_cycles_per_instruction_low"]
        ):
            self.assertTrue(low <= value <= high)

    def test_marks(self):
        """Each mark of the table is a mark here."""
        words = "--openmetrics", "-", "--top", 1000, self.chains
        seen = self.samples(must(REPORT, *words, stderr=subprocess.DEVNULL))
        found = Counter()
        for name, values in seen.items():
            if name.endswith("_weak"):
                found.update(values.values())
        rows = perf_table(self.chains)["functions"]
        marks = [one.get("mark") for row in rows for one in row["metrics"].values() if one]
        self.assertEqual(found[1], marks.count("weak"))
        self.assertTrue(found[0] and found[1])

    def test_files_of_several_services(self):
        """All can be in the folder that a node exporter reads: no series is in two of them."""
        paths = [path for _, path in self.hosts(2)]
        files, labels = [], [("service=web", "zone=a"), ("service=db", "zone=a")]
        for path, own in zip(paths, labels):
            words = [word for label in own for word in ("--label", label)]
            options = "--openmetrics", "-", "--top", 5, *words
            files.append(self.samples(must(REPORT, *options, path, stderr=subprocess.DEVNULL)))
        for name in files[0].keys() & files[1].keys():
            self.assertFalse(files[0][name].keys() & files[1][name].keys(), name)
        for file, own in zip(files, labels):
            for series in file.values():
                for key in series:
                    self.assertLessEqual({tuple(one.split("=")) for one in own}, key)

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

    def test_wrong_labels(self):
        path = self.hosts(1)[0][1]
        form = "a label is NAME=VALUE, as in service=web; NAME has letters, digits and _"
        for label in "service", "service=", "=web", "a-b=c", "__name__=x", "1=2":
            why = f"argument --label: {label}: {form}"
            words = "--openmetrics", "-", "--label", label, path
            self.refused(re.escape(why), REPORT, *words, status=2)
        for label in "function=x", "dso=x", "address=x", "event=x", "column=x":
            why = f"--label {label[:-2]}: values have this label: take another name"
            self.refused(why, REPORT, "--openmetrics", "-", "--label", label, path)
        why = "--label goes with --openmetrics: add --openmetrics FILE"
        self.refused(why, REPORT, "--label", "service=web", path, status=2)


class Mistakes(Case):
    """There is one line, and no file."""

    def test_wrong_inputs(self):
        bad = self.dir / "bad.data"
        bad.write_text("no recording")
        for option in "--pprof", "--openmetrics":
            out = self.dir / "out"
            self.refused("perf functions: .*neither a recording nor .*", REPORT, option, out, bad)
            self.refused(
                ".*there is no such folder: make it first",
                REPORT,
                option,
                self.dir / "none/out",
                self.chains,
            )
            self.refused(".* is a folder: name a file in it", REPORT, option, self.dir, self.chains)
            self.refused(
                "--pprof and --openmetrics have no form for a comparison: "
                "they do not go with --diff, --before and --after",
                REPORT,
                option,
                out,
                "--diff",
                self.chains,
                self.chains,
            )
        message = "--limit goes with --plot, --openmetrics and the printed table: leave it out"
        self.refused(message, REPORT, "--limit=3", "--pprof", out, self.chains, status=2)
