# SPDX-License-Identifier: GPL-2.0
"""functions-report: its command line, its pictures, and its pages of real recordings."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

from tests.harness import reports, stacks, sumsfile
from tests.harness.env import PERF, TOP, must, run
from tests.harness.reports import DATA, NAMES, REPORT, report
from tests.harness.simulation import Libraries, Simulation
from tests.harness.stacks import Stacks, address

sys.path.insert(0, str(TOP / "report"))
from functions_report import (  # noqa: E402 pylint: disable=import-error,wrong-import-position
    ReportError,
    cli,
    flame,
    page,
    plot,
)

MINUTES = 1


def setUpModule() -> None:
    reports.prepare()


class Chains(unittest.TestCase):
    """Sums of call chains, without perf."""

    # opened; samples, matched, bursts; begun, their bursts; values of both
    NUMBERS = {
        "leaf;main": (9, 5, 4, 3, 6, 5, *range(10, 12), *range(20, 22)),
        "main": (1, 2, 2, 2, 2, 2, *range(40, 42), *range(50, 52)),
    }

    @classmethod
    def text(cls, *events: str, share: str = "auto") -> str:
        """A sums file with a group for each of these events."""
        lines = []
        for event in events:
            lines.append(f"group\t{share}\t999700\t0\t300\t0\t0\t1\t{event}")
            if share == "auto":
                lines.append(sumsfile.intervals(1, [(300,)], [(999700,)]))
            lines += [
                "\t".join(("sums", chain, "/x", "-", *map(str, numbers)))
                for chain, numbers in cls.NUMBERS.items()
            ]
        return "\n".join(("perf-function-sums 4", "by\tcallchain\t0", *lines, "end\n"))

    def rows(self, text: str) -> list[list[str]]:
        """The lines of sums in it."""
        return [line.split("\t") for line in text.split("\n") if line.startswith("sums\t")]

    def test_lines_of_all_intervals(self):
        """They follow the group line at each depth, and are not taken for chains."""
        chains = flame.Chains.parse(self.text("cycles", "instructions"))
        self.assertEqual(chains.depth(), 2)
        expected = [
            line for line in self.text("cycles", "instructions").split("\n") if "sums\t" not in line
        ]
        for depth in range(3):
            lines = chains.cut(depth).split("\n")
            self.assertEqual([line for line in lines if "sums\t" not in line], expected)
            words = [line.partition("\t")[0] for line in lines]
            for number, word in enumerate(words):
                if word == "windows":
                    self.assertEqual(words[number - 1], "group")
                    self.assertEqual(words[number + 1 : number + 3], ["long", "sums"])

    def test_numbers(self):
        """Each number is added up."""
        for share in ("auto", "discard"):
            chains = flame.Chains.parse(self.text("cycles", share=share))
            both = [str(sum(numbers)) for numbers in zip(*self.NUMBERS.values())]
            self.assertEqual(self.rows(chains.cut(0)), [["sums", "all", "", "-", *both]])
            self.assertEqual(self.rows(chains.cut(1)), [["sums", "main", "", "-", *both]])
            self.assertEqual(
                {row[1]: tuple(map(int, row[4:])) for row in self.rows(chains.cut(2))}, self.NUMBERS
            )


class Recordings(unittest.TestCase):
    """Pages of recordings, made with the real perf."""

    @classmethod
    def setUpClass(cls):
        cls.libraries = Libraries(DATA / "simulation")

    @staticmethod
    def data(path: Path) -> dict:
        """The data in a page."""
        found = re.search(
            r'<script type="application/json" id="data">(.*?)</script>',
            path.read_text(encoding="utf-8"),
            re.S,
        )
        return json.loads(found[1])

    @staticmethod
    def simulated(simulation: Simulation, event: str) -> dict[tuple[str, ...], list[int]]:
        """Counts of an event, and windows, by callers, outermost first.

        If samples have opened windows (share mode auto), they divide the leader's counts.
        """
        sums: dict[tuple[str, ...], list[int]] = {}
        for ((name, *_), events), one in simulation.expected().items():
            frames = tuple(reversed(name.split(";")))
            led = events[0] == event
            numbers = (
                one["totals"].get(event, 0),
                one["matched"],
                led * one["opened"],
                led * one["totals"][events[0]],
            )
            for depth in range(len(frames) + 1):
                above = sums.setdefault(frames[:depth], [0] * 4)
                sums[frames[:depth]] = [a + b for a, b in zip(above, numbers)]
        *_, opened, counted = sums[()]
        widths = {
            frames: [numbers[2] * counted // opened if opened else numbers[0], numbers[1]]
            for frames, numbers in sums.items()
        }
        return {frames: numbers for frames, numbers in widths.items() if numbers[0]} or {(): [0, 0]}

    @staticmethod
    def frames(root: list) -> dict[tuple[str, ...], list[int]]:
        """Counts and windows of the tree in a page."""
        seen, nodes = {}, [((), root)]
        while nodes:
            above, (_, value, windows, *_, children) = nodes.pop()
            seen[above] = [value, windows]
            nodes += [((*above, child[0]), child) for child in children]
        return seen

    @staticmethod
    def inclusive(simulation: Simulation, path: Path) -> dict[tuple[str, ...], int]:
        """The windows of functions with all that they call, by callers, outermost first.

        Only functions that one path calls are in it, as far as windows show.
        """
        if simulation.share == "none":
            return {}
        told = must(PERF, "functions", "report", "-i", path, "--children", "-j", stderr=-1)
        rows: dict[str, list[int]] = {}
        for row in json.loads(told)["functions"]:
            file = Path(row["dso"]).name or "unknown"
            name = row["symbol"] or f"{row['address']:#x} [{file}]"
            matched = sum(sums["matched"] for sums in row["sums"])
            rows.setdefault(name.replace(";", ":"), []).append(matched)
        paths: dict[str, set[tuple[str, ...]]] = {"[all]": {()}}
        inner = set()
        for ((chain, *_), _), sums in simulation.expected().items():
            frames = tuple(reversed(chain.split(";")))
            inner |= {frames[:depth] for depth in range(len(frames))}
            for depth, name in enumerate(frames, 1):
                if sums["samples"] and name not in frames[: depth - 1]:
                    paths.setdefault(name, set()).add(frames[:depth])
        return {
            frames: rows[name][0]
            for name, (frames, *others) in paths.items()
            if not others and frames in inner and len(rows.get(name, ())) == 1 and rows[name][0]
        }

    def test_random_recordings_with_call_chains(self):
        """Frames have the sums that were simulated below them.

        Their windows are those of --children, where inclusive() has them.
        """
        several = inclusive = 0
        for seed in range(6):
            simulation = Simulation(seed, self.libraries, by="callchain")
            simulation.run(300, DATA / "chains.data")
            must(
                REPORT,
                "--html",
                DATA / "simulated.html",
                "--share",
                simulation.share,
                DATA / "chains.data",
            )
            graph = self.data(DATA / "simulated.html")["flame"]
            seen = self.frames(graph["root"])
            expected = self.simulated(simulation, graph["event"])
            for frames, windows in self.inclusive(simulation, DATA / "chains.data").items():
                if frames in expected:
                    expected[frames][1] = windows
                    inclusive += 1
            self.assertEqual(seen, expected)
            several += len(seen) > 20
        self.assertGreater(several, 2)
        self.assertGreater(inclusive, 2)

    def test_functions_with_all_that_they_call(self):
        """The table has the rows of --children, from sums too, whose graph has the root only."""
        simulation = Simulation(3, self.libraries, by="children")
        simulation.run(300, DATA / "children.data")
        made, sums = DATA / "children.html", DATA / "children.sums"
        expected = simulation.expected()
        samples = {
            (symbol, dso): sum(
                one["samples"] for (row, _), one in expected.items() if row[:2] == (symbol, dso)
            )
            for ((symbol, dso, address), _) in expected
            if address is None
        }
        must(REPORT, "--sums", sums, "--children", DATA / "children.data")
        for arguments in (("--children", DATA / "children.data"), (sums,)):
            must(REPORT, "--html", made, *arguments)
            data = self.data(made)
            found = {
                tuple(row[1:3]): sum(one[1] for one in row[-1])
                for row in data["table"]["rows"]
                if tuple(row[1:3]) in samples
            }
            self.assertEqual(found, samples)
            self.assertEqual(data["table"]["by"], "children")
        event, root = data["flame"]["event"], data["flame"]["root"]
        whole = (
            one["totals"].get(event, 0) for (row, _), one in expected.items() if row[0] == "[all]"
        )
        self.assertEqual(root[1], sum(whole))
        done = report("--pprof", DATA / "children.pb.gz", sums)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("have windows in common", done.stderr)

    def nodes(self, path: Path, *options: object) -> dict[tuple[str, ...], dict]:
        """The frames of a recording's page, with what perf's rows have."""
        must(REPORT, "--html", DATA / "stacks.html", *options, path)
        graph = self.data(DATA / "stacks.html")["flame"]
        names = [column["name"] for column in graph["columns"]]
        found, nodes = {}, [((), graph["root"])]
        while nodes:
            above, (_, _, windows, values, bounds, weak, children) = nodes.pop()
            found[above] = {
                "windows": windows,
                "metrics": dict(zip(names, values)),
                "intervals": {name: both for name, both in zip(names, bounds) if both},
                "weak": {names[at] for at in weak},
            }
            nodes += [((*above, child[0]), child) for child in children]
        return found

    # each call of beta's callees is as long as a window, so a window ends in the other callee
    CALLS: stacks.Calls = {
        "gamma": [(1500, 1), "beta"],
        "beta": ["alpha", "twice"] * 2,
        "alpha": [(50, 6)],
        "twice": [(100, 3)],
    }

    def test_frames_with_all_that_they_call(self):
        """Frames have the rates of --children, which are true where no window stays in a callee.

        Frames without callees have the windows of their chains.
        """
        program = stacks.Program(self.CALLS)
        path, sums = program.record(1, 4000, "page"), DATA / "stacks.sums"
        must(PERF, "functions", "report", "-i", path, "--by=callchain", "--sums", sums, stderr=-1)
        of_chains, found = self.nodes(sums), self.nodes(path)
        told = must(PERF, "functions", "report", "-i", path, "--children", "-j", stderr=-1)
        rows = {row["symbol"]: row for row in json.loads(told)["functions"]}
        for above in (), ("gamma",), ("gamma", "beta"):
            name = above[-1] if above else "[all]"
            one, row, done = found[above], rows[name], program.done[name]
            with self.subTest(name):
                self.assertEqual(one["metrics"], row["metrics"])
                self.assertEqual(one["intervals"], row["intervals"])
                self.assertEqual(one["weak"], set(row["weak"]))
                self.assertEqual(one["windows"], row["sums"][0]["matched"])
                true = done["cycles"] / done["instructions"]
                self.assertAlmostEqual(one["metrics"]["CPI"] / true, 1, delta=0.03)
        above = "gamma", "beta"
        self.assertGreater(found[above]["windows"], 800)
        # chains alone have the rate of all windows that begin there, even those that leave
        self.assertEqual(of_chains[above]["windows"], 0)
        self.assertLess(of_chains[above]["metrics"]["CPI"], 3.4)
        for name in self.CALLS["beta"]:
            self.assertEqual(found[*above, name], of_chains[*above, name])

    def check_windows(self, recording: Stacks, expected: dict[str, int]) -> None:
        """Checks the number of windows of each frame, by callers, outermost first."""
        found = self.nodes(recording.save("frames"))
        self.assertEqual(
            {" ".join(above): one["windows"] for above, one in found.items()}, expected
        )
        # perf's messages on --children are left out, as the table has no such rows
        self.assertEqual(self.data(DATA / "stacks.html")["warnings"], [])

    def test_frame_of_one_path(self):
        """beta calls alpha and twice in turn: it was on the stack all the time.

        Frames without callees have the windows of their chains, of all calls together.
        """
        recording = Stacks()
        one = [address("alpha", 4), address("beta", 8)]
        other, again = ([address("twice", 4), address("beta", at)] for at in (16, 24))
        for first, last in (one, one), (one, other), (other, other), (other, again):
            recording.window(first, last)
        self.check_windows(
            recording, {"": 4, "alpha": 0, "beta": 4, "beta alpha": 1, "beta twice": 2}
        )

    def test_frames_of_several_paths(self):
        """The row of alpha is of both of its calls, so it is used for neither."""
        recording = Stacks()
        for caller in "beta", "gamma":
            below = [address("alpha", 8), address(caller, 8)]
            recording.window([address("twice", 4), *below], [address("twice", 4), *below])
            recording.window([address("twice", 4), *below], below)
        self.check_windows(
            recording,
            {
                "": 4,
                "alpha": 0,
                "beta": 2,
                "beta alpha": 1,
                "beta alpha twice": 1,
                "gamma": 2,
                "gamma alpha": 1,
                "gamma alpha twice": 1,
            },
        )

    def test_frames_of_a_recursion(self):
        """The row of a recursive function is used for its outermost call."""
        recording = Stacks()
        first, second = (
            [address(leaf, 4), *[address("gamma", 8)] * 2, address("beta", 8)]
            for leaf in ("alpha", "twice")
        )
        recording.window(first, first)
        recording.window(first, second)
        self.check_windows(
            recording,
            {
                "": 2,
                "alpha": 0,
                "beta": 2,
                "beta gamma": 2,
                "beta gamma gamma": 1,
                "beta gamma gamma alpha": 1,
            },
        )

    def test_frames_of_cut_chains(self):
        """The caller of the first frame of a cut chain is not known.

        So a frame with such chains has no row, whether one path has its name or several do.
        """
        recording = Stacks(max_stack=3)
        chain = [address(name, 4) for name in ("alpha", "beta", "gamma")]
        recording.window(chain, chain)
        recording.window(chain, chain)
        for caller in "beta", "beta", "gamma":
            recording.window(
                *([address(name, 4), address(caller, 8)] for name in ("alpha", "twice"))
            )
        self.check_windows(
            recording,
            {
                "": 2,
                "alpha": 0,
                "beta": 0,
                "beta alpha": 0,
                "gamma": 2,
                "gamma alpha": 0,
                "gamma beta": 2,
                "gamma beta alpha": 2,
            },
        )

    def test_any_name_in_a_call_chain(self):
        names = [
            name for name in (*reports.NASTY, "back\\slash", "next\x85line") if ";" not in name
        ]
        (DATA / "names.sums").write_text(
            reports.chain_sums(
                {f"{name};main".replace("\\", r"\\"): (9, 2700, 900, 0) for name in names}
            ),
            encoding="utf-8",
        )
        must(REPORT, "--html", DATA / "names.html", DATA / "names.sums")
        seen = self.frames(self.data(DATA / "names.html")["flame"]["root"])
        self.assertEqual(
            seen,
            {
                (): [2700 * len(names), 9 * len(names)],
                ("main",): [2700 * len(names), 9 * len(names)],
                **{("main", name): [2700, 9] for name in names},
            },
        )

    def test_many_rows_of_one_name(self):
        """Time grows with the number of rows, not with its square, which would be minutes."""
        head, line, end = re.split(
            r"^(sums\t.*\n)", reports.chain_sums({"same": (9, 2700, 900, 0)}), flags=re.M
        )
        rows = sorted(line.replace("program", f"{number}.so") for number in range(20000))
        sums, made = DATA / "same.sums", DATA / "same.html"
        sums.write_text(head.replace("callchain", "symbol") + "".join(rows) + end)
        must(REPORT, "--html", made, sums, timeout=40)
        names = [row[0] for row in self.data(made)["table"]["rows"]]
        self.assertEqual({*names}, {f"same [{number}.so]" for number in range(20000)})

    def test_deep_recursion(self):
        def node(name: str) -> dict:
            return {
                "name": name,
                "value": 1,
                "windows": 1,
                "metrics": {},
                "intervals": {},
                "weak": [],
                "children": [],
            }

        root = last = node("all")
        for _ in range(3000):
            last["children"].append(node("again"))
            last = last["children"][0]
        text = page.script_json(page.flame_data("cycles", root, [], ""))
        self.assertEqual(text.count("again"), 3000)

    def test_plain_table_is_perfs(self):
        simulation = Simulation(1, self.libraries, events=3)
        simulation.run(300, DATA / "plain.data")
        for options in ((), ("--by", "dso"), ("--comm", "sh")):
            done = report(*options, DATA / "plain.data")
            self.assertEqual(
                (done.returncode, done.stdout),
                (
                    0,
                    must(
                        PERF,
                        "functions",
                        "report",
                        *options,
                        DATA / "plain.data",
                        stderr=subprocess.DEVNULL,
                    ),
                ),
            )
        must(REPORT, "--sums", DATA / "plain.sums", DATA / "plain.data")
        self.assertEqual(report(DATA / "plain.sums").stdout, report(DATA / "plain.data").stdout)
        must(REPORT, "--html", DATA / "plain.html", DATA / "plain.data", DATA / "plain.data")
        data = self.data(DATA / "plain.html")
        truth = json.loads(
            must(
                PERF,
                "functions",
                "report",
                "-j",
                DATA / "plain.data",
                DATA / "plain.data",
                stderr=subprocess.DEVNULL,
            )
        )
        text = must(
            PERF,
            "functions",
            "report",
            "-F",
            "#",
            DATA / "plain.data",
            DATA / "plain.data",
            stderr=subprocess.DEVNULL,
        )
        names = [line.rsplit(maxsplit=1)[0] for line in text.splitlines()[1:]]
        self.assertEqual([row[0] for row in data["table"]["rows"]], names)
        self.assertTrue(
            {"twice [libone.so]", "twice [libtwo.so]"}
            <= {re.sub(" 0x[0-9a-f]+", "", name) for name in names}
        )
        ranges = DATA / "ranges.sums"
        ranges.write_text(
            (DATA / "plain.sums").read_text().replace("\talpha\t", "\t0x1000-0x1040\t")
        )
        must(REPORT, "--html", DATA / "ranges.html", ranges)
        self.assertIn(
            "0x1000-0x1040 [libone.so]",
            [row[0] for row in self.data(DATA / "ranges.html")["table"]["rows"]],
        )
        self.assertIn(
            "0x1000-0x1040 [libone.so]",
            must(PERF, "functions", "report", ranges, stderr=subprocess.DEVNULL),
        )
        self.assertEqual(
            [row[1] for row in data["table"]["rows"]], [row["symbol"] for row in truth["functions"]]
        )
        for row, function in zip(data["table"]["rows"], truth["functions"]):
            for value, column in zip(row[3], data["table"]["columns"]):
                self.assertEqual(value, function["metrics"][column["name"]])

    def test_timeline(self):
        """Each interval has the values of a table of that time alone."""
        path, html = DATA / "timeline.data", DATA / "timeline-real.html"
        simulation = Simulation(3, self.libraries)
        simulation.run(3000, path)
        must(REPORT, "--html", html, "--interval", "2e-5", path, stderr=subprocess.DEVNULL)
        data = self.data(html)
        # rows that --percent-limit leaves out give no values to others
        limited = DATA / "timeline-limited.html"
        limit = "--percent-limit=5", "--interval=2e-5"
        must(REPORT, "--html", limited, *limit, path, stderr=subprocess.DEVNULL)
        few = self.data(limited)
        number = len(few["table"]["rows"])
        self.assertLess(number, len(data["table"]["rows"]))
        self.assertEqual(few["table"]["rows"], data["table"]["rows"][:number])
        self.assertEqual(few["timeline"]["rows"], data["timeline"]["rows"][:number])
        columns = [column["name"] for column in data["table"]["columns"]]
        names = [(row[1], row[2]) for row in data["table"]["rows"]]
        timeline, compared = data["timeline"], 0
        self.assertGreater(len(timeline["times"]), 3)
        self.assertEqual(len(timeline["rows"]), len(names))
        for number, (begin, end) in enumerate(timeline["times"]):
            alone = must(
                *(PERF, "functions", "report", "-j", "-i", path),
                *("--time", f"{begin:.9f},{end:.9f}"),
                stderr=subprocess.DEVNULL,
            )
            rows = {(row["symbol"], row["dso"]): row for row in json.loads(alone)["functions"]}
            for name, cells in zip(names, timeline["rows"]):
                if names.count(name) > 1:
                    continue
                cell = cells[number]
                self.assertEqual(cell is not None, name in rows, name)
                if cell:
                    self.assertEqual(
                        dict(zip(columns, cell[0])), {**rows[name]["metrics"]}, (name, begin)
                    )
                    compared += 1
        self.assertGreater(compared, 10)


class Options(unittest.TestCase):
    """Options for perf, with the real one."""

    @classmethod
    def setUpClass(cls):
        cls.libraries = Libraries(DATA / "simulation")

    def test_names_of_options(self):
        """The names are those of perf functions report, and older ones."""
        path = DATA / "options.data"
        simulation = Simulation(1, self.libraries, events=3)
        simulation.run(300, path)
        sums = DATA / "options.sums"
        must(REPORT, "--sums", sums, path)
        changed = 0
        for names, value in (
            (("--comms", "-c", "--comm"), "sh"),
            (("--dsos", "-d", "--dso"), self.libraries.path("two")),
            (("--symbols", "-S", "--symbol"), "alpha,delta"),
            (("--cpu", "-C"), "0"),
            (("--limit", "--top"), 3),
            (("--percent-limit",), 5),
        ):
            wanted = must(
                *(PERF, "functions", "report", names[0], value, path), stderr=subprocess.DEVNULL
            )
            changed += wanted != report(path).stdout
            for name in names:
                self.assertEqual(report(name, value, path).stdout, wanted, name)
            done = report(names[0], value, sums)
            if names[0].endswith("limit"):
                self.assertEqual(done.stdout, wanted)
            else:
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(
                    done.stderr,
                    rf"\Afunctions-report: .*: {names[0]} needs a recording, and this is a sums"
                    r" file: .*\n\Z",
                )
        self.assertGreater(changed, 4)

    def test_percent_limit(self):
        """Page, picture and OpenMetrics text have the rows of perf's table, and the same values.

        The widths of the flame graph do not change.
        """
        path, made = DATA / "share.data", DATA / "share.html"
        simulation = Simulation(1, self.libraries, events=3)
        simulation.run(300, path)
        must(REPORT, "--html", made, path, stderr=subprocess.DEVNULL)
        whole = Recordings.data(made)
        must(REPORT, "--html", made, "--percent-limit=5", path, stderr=subprocess.DEVNULL)
        data = Recordings.data(made)
        rows, all_rows = data["table"]["rows"], whole["table"]["rows"]
        place = [column["name"] for column in data["table"]["columns"]].index("%CY")
        self.assertEqual(rows, [row for row in all_rows if row[3][place] >= 5])
        self.assertGreater(len(all_rows), len(rows))
        self.assertEqual(data["flame"], whole["flame"])
        self.assertEqual(data["table"]["windows"], whole["table"]["windows"])
        text = must(
            *(REPORT, "--openmetrics", "-", "--percent-limit=5", path), stderr=subprocess.DEVNULL
        )
        shares = re.findall(r"^perf_functions_share_of_the_cycles_percent\{", text, re.M)
        self.assertEqual(len(shares), len(rows))
        for option in "--sums", "--pprof":
            done = report(option, DATA / "share.out", "--percent-limit=5", path)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("--percent-limit goes with --html, --plot, --openm", done.stderr)


class CommandLine(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = Path(temporary.name)
        self.perf = reports.fake_perf(
            self.dir / "perf",
            reports.table(NAMES),
            reports.diff(reports.table(NAMES), reports.table(NAMES, 2)),
        )
        self.input = self.dir / "some.data"
        self.input.touch()

    def refused(self, pattern: str, *arguments: object, program: Path = REPORT) -> None:
        """One line says why, and the folder does not change."""
        before = sorted(self.dir.iterdir())
        done = run(program, *arguments, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done)
        self.assertRegex(done.stderr, f"^functions-report: .*{pattern}")
        self.assertEqual(sorted(self.dir.iterdir()), before)

    def test_several_runs(self):
        """The table and the page are those of a comparison."""
        html = self.dir / "change.html"
        runs = ("--before", self.input, self.input, "--after", self.input)
        done = report("--perf", self.perf, *runs)
        self.assertEqual(done.stdout, (self.dir / "perf.diff").read_text())
        done = report("--perf", self.perf, "--html", html, *runs)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"{self.input}, {self.input} → {self.input}", html.read_text())

    def test_bad_input(self):
        html = self.dir / "report.html"
        self.refused(
            "no-such.data: there is no such file", "--html", html, self.dir / "no-such.data"
        )
        self.refused(
            "No such file or directory: `make perf` builds perf, --perf says where it is",
            "--perf",
            self.dir / "none",
            "--html",
            html,
            self.input,
        )
        self.refused("some.data", "--html", html, self.input)  # perf's own words on an empty file
        killed = self.dir / "killed"
        killed.write_text(
            "#!/bin/sh\necho 'perf functions: 12 records were lost' >&2\nkill -9 $$\n"
        )
        killed.chmod(0o755)
        why = "perf ended with signal 9: the kernel's log may say why"
        self.refused(why, "--perf", killed, "--html", html, self.input)
        self.refused(
            "there is no such folder",
            "--perf",
            self.perf,
            "--html",
            self.dir / "none/report.html",
            self.input,
        )
        self.refused("is a folder", "--perf", self.perf, "--html", self.dir, self.input)
        self.refused(
            "a picture is .png or .svg",
            "--perf",
            self.perf,
            "--plot",
            self.dir / "picture.pdf",
            self.input,
        )
        self.refused(
            "there is no column %NO; there is: # CPI",
            "--perf",
            self.perf,
            "--plot",
            self.dir / "a.png",
            "--fields",
            "%NO",
            self.input,
        )
        self.refused(
            "--diff takes two inputs, BEFORE and AFTER; there is 1",
            "--perf",
            self.perf,
            "--html",
            html,
            "--diff",
            self.input,
        )
        for words in (
            ("--before", self.input),
            ("--before", self.input, "--diff", "--after", self.input),
            (self.input, "--before", self.input, "--after", self.input),
        ):
            self.refused("--before and --after go together", "--perf", self.perf, *words)
        self.refused(
            "go with --diff",
            "--perf",
            self.perf,
            "--sums",
            self.dir / "a.sums",
            "--diff",
            self.input,
            self.input,
        )
        (self.dir / "perf.table").write_text("no JSON")
        self.refused(
            "wrote JSON that functions-report", "--perf", self.perf, "--html", html, self.input
        )
        (self.dir / "perf.table").write_text('{"functions": []}')
        self.refused(
            "wrote JSON that functions-report", "--perf", self.perf, "--html", html, self.input
        )
        for option in "--fields=%CY", "--slice-size=1", "--slice-size=nan", "--by=dso,dso":
            self.assertEqual(run(REPORT, option, self.input).returncode, 2, option)
        for words in (
            ("--interval=1",),
            *(("--interval", step, "--html", html) for step in ("0", "-1", "nan", "inf", "1s")),
            *(
                ("--interval=1", "--html", html, *more)
                for more in (
                    (self.input,),
                    ("--diff", self.input),
                    ("--cluster",),
                    ("--sums", html),
                )
            ),
        ):
            done = run(REPORT, *words, self.input, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn("--interval", done.stderr.splitlines()[-1])
            self.assertFalse(html.exists())
        (self.dir / "perf.table").write_text(json.dumps(reports.table(NAMES)))
        (self.dir / "perf.intervals").write_text('{"functions": []\n}\n')
        self.refused(
            "wrote JSON that functions-report",
            *("--perf", self.perf, "--html", html, "--interval=1", self.input),
        )
        done = run(REPORT, cwd=self.dir)
        self.assertEqual(
            (done.returncode, done.stdout.partition(": name a ")[0]),
            (1, "functions-report: perf.data: there is no such file"),
        )

    def test_ranges_of_numbers(self):
        """The message on a wrong number has the numbers that are right."""
        for options, bad, pattern in (
            (("--html=a", "--interval"), ("0", "x", "nan"), "SECONDS is a number from 1e-09 to 1e"),
            (
                ("--limit",),
                ("0", "abc", "1.5", "-1", str(2**32)),
                "N is a whole number from 1 to",
            ),
            (("--percent-limit",), ("-1", "101", "nan", "x"), "PERCENT is a number from 0 to 100"),
            (("--cluster", "--slice-size"), ("0", "inf", "x"), "MB is a number above 0"),
        ):
            for number in bad:
                done = report(*options[:-1], f"{options[-1]}={number}", self.input)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                last = done.stderr.splitlines()[-1]
                self.assertRegex(last, f"argument {options[-1]}.*: {number}: {pattern}")

    def test_old_report_stays_when_a_new_one_fails(self):
        html = self.dir / "report.html"
        html.write_text("old")
        (self.dir / "perf.table").unlink()
        self.refused("perf.table", "--perf", self.perf, "--html", html, self.input)
        self.assertEqual(html.read_text(), "old")

    def test_nothing_half_written(self):
        """No file may be longer than 100 KiB, as if the disk were full."""
        for option, name in (("--html", "report.html"), ("--plot", "picture.png")):
            self.refused(
                "File too large",
                "-c",
                'ulimit -f 100 && "$@"',
                "bash",
                REPORT,
                "--perf",
                self.perf,
                option,
                self.dir / name,
                self.input,
                program=Path("/bin/bash"),
            )
        self.refused(
            "cannot write the table: No space left on device: send the output elsewhere",
            "-c",
            '"$@" > /dev/full',
            "bash",
            REPORT,
            "--perf",
            self.perf,
            self.input,
            program=Path("/bin/bash"),
        )

    def test_any_name_of_a_file(self):
        html = self.dir / "report.html"
        for name in b"-x.data", b"\xff.data":
            (self.dir / os.fsdecode(name)).touch()
            done = run(
                REPORT, "--perf", self.perf, "--html", html, "--", os.fsdecode(name), cwd=self.dir
            )
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertIn(
                f"<title>{name.decode(errors='replace')}", html.read_text(encoding="utf-8")
            )

    def test_no_template(self):
        shutil.copytree(
            TOP / "report", self.dir / "report", ignore=shutil.ignore_patterns("__pycache__")
        )
        done = run(
            self.dir / "report/functions-report",
            "--perf",
            self.perf,
            "--html",
            self.dir / "report.html",
            self.input,
            env={"PYTHONDONTWRITEBYTECODE": "1"},
        )
        self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1))
        self.assertRegex(done.stdout, "there is no template of the page: `make report` builds it")
        self.assertFalse((self.dir / "report.html").exists())

    def on_terminal(self, *command: object) -> tuple[str, str]:
        """The standard error of a command on a terminal, and its output."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [str(word) for word in command], stderr=theirs, stdout=subprocess.PIPE, text=True
        ) as process:
            os.close(theirs)
            told = b""
            while True:
                try:
                    told += os.read(ours, 4096)
                except OSError:  # the other end is closed
                    break
            output = process.stdout.read()
        os.close(ours)
        self.assertEqual(process.returncode, 0, told)
        return told.decode(), output

    def test_progress_is_for_terminals(self):
        """perf's progress is shown, too; its other messages come when the work is done."""
        (self.dir / "slow").write_text(
            f"""#!/bin/sh
if [ -t 2 ]; then printf 'some.data: 5 samples, 40 %%, 1 s left\\033[K\\r' >&2; fi
sleep 1.5
[ ! -t 2 ] || printf '\\033[K' >&2
case "$*" in *callchain*) ;; *) echo 'perf functions: beware' >&2 ;; esac
exec {self.perf} "$@"
"""
        )
        (self.dir / "slow").chmod(0o755)
        command = (
            REPORT,
            "--perf",
            self.dir / "slow",
            "--html",
            self.dir / "report.html",
            self.input,
        )
        done = run(*command, stderr=subprocess.PIPE)
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr), (0, "", "perf functions: beware\n")
        )
        made = (self.dir / "report.html").read_text(encoding="utf-8")
        told, output = self.on_terminal(*command)
        self.assertRegex(
            told, r"\r\033\[Kreading: some[.]data: 5 samples, 40 %, 1 s left \([1-9]\d* s\)"
        )
        self.assertTrue(told.endswith("\r\033[Kperf functions: beware\r\n"), told)
        self.assertEqual((told.count("\n"), output), (1, ""))
        self.assertEqual((self.dir / "report.html").read_text(encoding="utf-8"), made)

    def test_perfs_warnings_are_handed_on(self):
        self.perf.write_text(
            "#!/bin/sh\necho 'perf functions: beware' >&2\n" + self.perf.read_text()
        )
        done = report("--perf", self.perf, "--html", self.dir / "report.html", self.input)
        self.assertEqual((done.returncode, done.stderr), (0, "perf functions: beware\n"))
        self.assertIn(
            "perf functions: beware", (self.dir / "report.html").read_text(encoding="utf-8")
        )

    def test_what_is_left_out_is_told_of_sums_too(self):
        note = "perf functions: ignored, because they are in no counter group: faults"
        self.perf.write_text(f"#!/bin/sh\necho '{note}' >&2\nprintf 'sums\\nend\\n'\n")
        done = report("--perf", self.perf, "--sums", self.dir / "all.sums", self.input)
        self.assertEqual((done.returncode, done.stderr), (0, note + "\n"))

    def test_examples_of_the_help(self):
        shown = must(REPORT, "--help")
        examples = re.findall(r"^  functions-report (.*?)   *\w.*$", shown, re.M)
        self.assertGreater(len(examples), 5)
        # examples with --sums need real recordings: the suites cluster and store run them
        for example in (example for example in examples if "--sums" not in example):
            words = [str(self.perf) if word == "perf" else word for word in example.split()]
            for word in words:
                if word.endswith((".data", ".sums")):
                    (self.dir / word).touch()
            done = run(REPORT, "--perf", self.perf, *words, cwd=self.dir)
            self.assertEqual(done.returncode, 0, (example, done.stdout))

    def complete(self, line: str) -> list[str]:
        """The completions that bash would offer at the end of a line."""
        result = self.dir / "offered"
        result.write_text("")
        told = {
            "_ARGCOMPLETE": "1",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
            "COMP_TYPE": "9",
            "_ARGCOMPLETE_IFS": "\n",
        }
        run("bash", "-c", '"$0" 8>"$1" 9>/dev/null', REPORT, result, env=told, cwd=self.dir)
        return [word.strip() for word in result.read_text().split("\n") if word]

    def test_completion(self):
        self.assertEqual(self.complete("functions-report --ht"), ["--html"])
        self.assertEqual(sorted(self.complete("functions-report --by ")), sorted(cli.BY))
        offered = self.complete("functions-report --by cgroup,comm,s")
        self.assertEqual(offered, ["cgroup,comm,symbol", "cgroup,comm,srcline"])
        self.assertIn("some.data", self.complete("functions-report --html x.html so"))
        must(
            "bash",
            "-c",
            (
                'set -e; eval "$(register-python-argcomplete functions-report)"; complete -p'
                " functions-report"
            ),
        )


class Plots(unittest.TestCase):
    def setUp(self):
        self.table = reports.table([*NAMES, reports.NASTY[0], "control\x01"])

    def test_bars_and_errors(self):
        names = ["%CY", "CPI", "#"]
        panels = list(plot.draw(self.table, 10, names).axes)
        rows = self.table["functions"][:10]
        for axes, name in zip(panels, names):
            self.assertEqual(axes.get_title(), name)
            known = [row for row in rows if row["metrics"][name] is not None]
            self.assertEqual(
                [patch.get_width() for patch in axes.patches],
                [row["metrics"][name] for row in known],
            )
            self.assertEqual(
                [bool(patch.get_hatch()) for patch in axes.patches],
                [name in row["weak"] for row in known],
            )
            ends = [
                [float(end) for end in collection.get_segments()[0][:, 0]]
                for collection in axes.collections
            ]
            for seen, row in zip(ends, [row for row in known if name in row["intervals"]]):
                for end, true in zip(seen, row["intervals"][name]):
                    self.assertAlmostEqual(end, true)
        self.assertEqual(len(panels[0].collections), 10)
        self.assertEqual(
            [label.get_text() for label in panels[0].get_yticklabels()],
            [
                row["symbol"]
                if len(row["symbol"]) <= 30
                else f"{row['symbol'][:14]}…{row['symbol'][-14:]}"
                for row in rows
            ],
        )

    def test_changes(self):
        diff = reports.diff(reports.table(NAMES), reports.table([*NAMES[2:], "brand_new"], 2))
        (panel,) = list(plot.draw(diff, 100, ["CPI"]).axes)
        known = [
            row["metrics"]["CPI"]
            for row in diff["functions"]
            if row["metrics"]["CPI"]["change"] is not None
        ]
        points = [container[0] for container in panel.containers]
        self.assertEqual(
            [float(point.get_xdata()[0]) for point in points], [one["change"] for one in known]
        )
        self.assertEqual(
            [point.get_markerfacecolor() != "white" for point in points],
            [one["significant"] for one in known],
        )

    def test_same_picture_twice_and_text_is_text(self):
        with tempfile.TemporaryDirectory() as folder:
            for suffix in (".svg", ".png"):
                paths = [Path(folder) / f"{number}{suffix}" for number in "ab"]
                for path in paths:
                    plot.write(path, self.table, 40, None)
                self.assertEqual(paths[0].read_bytes(), paths[1].read_bytes())
                shutil.copy(paths[0], DATA / f"plot{suffix}")
            svg = xml.etree.ElementTree.parse(DATA / "plot.svg")
            written = {
                "".join(element.itertext())
                for element in svg.iter("{http://www.w3.org/2000/svg}text")
            }
            self.assertLessEqual({*NAMES, "%CY", "CPI", "control\ufffd"}, written)
            png = (DATA / "plot.png").read_bytes()
            self.assertEqual(
                (png[:8], int.from_bytes(png[16:20], "big")), (b"\x89PNG\r\n\x1a\n", 2100)
            )  # 7 inches with 300 dots each

    def test_nothing_to_draw(self):
        with self.assertRaisesRegex(ReportError, "nothing to draw"):
            plot.draw(reports.table([]), 10, None)


if __name__ == "__main__":
    unittest.main()
