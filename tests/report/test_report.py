# SPDX-License-Identifier: GPL-2.0
"""functions-report: its command line, its pictures, and its pages of real recordings."""

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.harness import reports, servers, stacks
from tests.harness.env import PERF, TOP, must, run
from tests.harness.reports import DATA, NAMES, REPORT, page, perf_table, random_sums, report
from tests.harness.simulation import Libraries, Simulation

sys.path.insert(0, str(TOP / "report"))
from functions_report import plot  # noqa: E402 pylint: disable=import-error,wrong-import-position

MINUTES = 1


def setUpModule() -> None:
    reports.prepare()


class Recordings(unittest.TestCase):
    """Pages of recordings, made with the real perf."""

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
    def frames(root: dict) -> dict[tuple[str, ...], dict]:
        """The nodes of the tree in a page, by their callers, outermost first."""
        seen, nodes = {}, [((), root)]
        while nodes:
            above, node = nodes.pop()
            seen[above] = node
            nodes += [((*above, child["name"]), child) for child in node["children"]]
        return seen

    def test_frames_have_what_is_below_them(self):
        """Widths are true. A function that one path calls has the values of --children."""
        program = stacks.Program()
        path = program.record(1, 3000)
        seen = self.frames(self.data(page("program", path))["flame"]["root"])
        whole = program.done["[all]"]["cycles"]
        for name, *callers in (["[all]"], ["gamma"], ["beta", "gamma"], ["twice", "gamma"]):
            frame = seen[tuple(reversed(callers)) + (name,) if callers or name != "[all]" else ()]
            share = frame["counts"]["cycles"] / seen[()]["counts"]["cycles"]
            self.assertAlmostEqual(share, program.done[name]["cycles"] / whole, delta=0.025)
        rows = {row["symbol"]: row for row in perf_table("--children", path)["functions"]}
        for frames in ("gamma",), ("gamma", "beta"), ("gamma", "twice"):
            self.assertEqual(seen[frames]["metrics"], rows[frames[-1]]["metrics"], frames)
        # beta and twice call alpha: its frames have their own part
        parts = [frame for names, frame in seen.items() if "alpha" in names]
        self.assertGreater(len(parts), 1)
        samples = [one["observations"]["samples"] for one in (*parts, rows["alpha"])]
        self.assertEqual(sum(samples[:-1]), samples[-1])

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
        seen = self.frames(self.data(page("names", DATA / "names.sums"))["flame"]["root"])
        self.assertEqual(
            {
                name: [node["counts"]["cycles"], node["observations"]["windows"]]
                for name, node in seen.items()
            },
            {
                (): [2700 * len(names), 9 * len(names)],
                ("main",): [2700 * len(names), 9 * len(names)],
                **{("main", name): [2700, 9] for name in names},
            },
        )

    def test_timeline(self):
        """Each interval has the values of a table of that time alone."""
        path = DATA / "timeline-real.data"
        Simulation(3, Libraries(DATA / "simulation")).run(3000, path)
        data = self.data(page("timeline-real", "--interval", "2e-5", path))
        names = [(row["symbol"], row["dso"]) for row in data["table"]["rows"]]
        timeline, compared = data["timeline"], 0
        self.assertGreater(len(timeline["times"]), 3)
        self.assertEqual(len(timeline["rows"]), len(names))
        for number, (begin, end) in enumerate(timeline["times"]):
            alone = perf_table("--time", f"{begin:.9f},{end:.9f}", path)
            rows = {(row["symbol"], row["dso"]): row for row in alone["functions"]}
            for name, cells in zip(names, timeline["rows"]):
                if names.count(name) > 1:
                    continue
                cell = cells[number]
                self.assertEqual(cell is not None, name in rows, name)
                if cell:
                    both = cell["metrics"], rows[name]["metrics"]
                    for value in (value for one in both for value in one.values() if value):
                        value.pop("doubt", None)  # of several, any one is told
                    self.assertEqual(*both, (name, begin))
                    compared += 1
        self.assertGreater(compared, 10)


def has_ended(pid: str) -> bool:
    """Whether a process is gone or dead."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return True


class CommandLine(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = Path(temporary.name)
        self.input = random_sums(self.dir / "some.sums", NAMES)

    def perf(self, text: str) -> Path:
        """A perf that is a script."""
        path = self.dir / "perf"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

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
        done = report("--html", html, *runs)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"{self.input}, {self.input} → {self.input}", html.read_text())
        table = must(PERF, "functions", "report", *runs, stderr=subprocess.DEVNULL)
        self.assertEqual(report(*runs).stdout, table)

    def test_bad_input(self):
        html, diff = self.dir / "report.html", ("--diff", self.input)
        killed = self.perf("echo 'perf functions: 12 records were lost' >&2\nkill -9 $$")
        for reason, *words in (
            ("no-such.data: there is no such file", "--html", html, self.dir / "no-such.data"),
            ("`make perf` builds perf, --perf says", "--perf", self.dir / "none", "--html", html),
            ("perf ended with signal 9: the kernel's log", "--perf", killed, "--html", html),
            ("there is no such folder", "--html", self.dir / "none/report.html"),
            ("is a folder", "--html", self.dir),
            ("a picture is .png or .svg", "--plot", self.dir / "picture.pdf"),
            ("there is no column %NO; there is: # CPI", "--plot", "a.png", "--fields", "%NO"),
            ("--diff takes two inputs, BEFORE and AFTER; there is 1", "--diff"),
            ("--before and --after go together", "--before"),
            ("--single-run is about a comparison", "--single-run"),
            ("go with --diff", "--sums", self.dir / "a.sums", *diff),
            ("have no form for a comparison", "--pprof", html, *diff),
            ("have no form for a comparison", "--openmetrics", html, *diff),
        ):
            with self.subTest(reason):
                self.refused(reason, *words, self.input)
        other = self.dir / "other.sums"
        other.write_bytes(self.input.read_bytes().replace(b"\nby\tsymbol", b"\nby\tdso"))
        done = report("--sums", self.dir / "a.sums", self.input, other)
        self.assertIn(f"functions-report: {other}: cannot be added to the inputs", done.stderr)
        for text in "no JSON", '{"version": 1, "functions": []}':
            perf = self.perf(f"echo '{text}'")
            words = "--perf", perf, "--html", html, self.input
            self.refused("wrote JSON that functions-report", *words)
        for option, *words in (
            ("--fields", "--fields=%CY"),
            ("--slice-size", "--slice-size=nan"),
            ("--by", "--by=dso,dso"),
            ("--interval", "--interval=1"),
            ("--interval", "--html", html, "--interval=0"),
            ("--interval", "--html", html, "--interval=1", *diff),
        ):
            done = report(*words, self.input)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(option, done.stderr.splitlines()[-1])
            self.assertFalse(html.exists())
        done = run(REPORT, cwd=self.dir)
        self.assertEqual(
            (done.returncode, done.stdout.partition(": name a ")[0]),
            (1, "functions-report: perf.data: there is no such file"),
        )

    def test_signals(self):
        """No temporary file is left, and no perf."""
        folder = self.dir / "tmp"
        folder.mkdir()
        perf = self.perf(f"echo $$ > {self.dir}/pid\nexec sleep 600")
        words = ["env", "--default-signal", REPORT, "--perf", perf]
        words += ["--html", self.dir / "page", self.input]
        for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
            (self.dir / "pid").unlink(missing_ok=True)
            with self.subTest(number), subprocess.Popen(
                words,
                env={"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)},
                stderr=subprocess.DEVNULL,
            ) as child:
                pid = servers.until(
                    "perf",
                    lambda: (self.dir / "pid").exists() and (self.dir / "pid").read_text().strip(),
                )
                self.assertTrue(list(folder.iterdir()))
                child.send_signal(number)
                self.assertEqual(child.wait(60), 128 + number)
                self.assertEqual(list(folder.iterdir()), [])
                # its orphan may be dead before init reaps it
                servers.until("its end", lambda pid=pid: has_ended(pid))
        self.assertFalse((self.dir / "page").exists())

    def test_nohup(self):
        """A signal that the parent ignores does not end the command."""
        perf = self.perf(f'kill -HUP $PPID\nexec {PERF} "$@"')
        words = REPORT, "--perf", perf, "--html", self.dir / "page", self.input
        done = run("nohup", *words, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done)

    def test_nothing_half_written(self):
        """No file may be longer than 100 KiB, as if the disk were full."""
        bash = Path("/bin/bash")
        for option, name in (("--html", "report.html"), ("--plot", "picture.png")):
            words = REPORT, option, self.dir / name, self.input
            limit = 'ulimit -f 100 && "$@"'
            self.refused("File too large", "-c", limit, "bash", *words, program=bash)
        reason = "cannot write the table: No space left on device: send the output elsewhere"
        self.refused(reason, "-c", '"$@" > /dev/full', "bash", REPORT, self.input, program=bash)

    def test_examples_of_the_help(self):
        shown = must(REPORT, "--help")
        examples = re.findall(r"^  functions-report (.*?)   *\w.*$", shown, re.M)
        self.assertGreater(len(examples), 5)
        # those with --sums need servers: the suites cluster and store run them
        recording = DATA / "example.data"
        Simulation(1, Libraries(DATA / "simulation")).run(300, recording)
        for example in (example for example in examples if "--sums" not in example):
            words = [str(PERF) if word == "perf" else word for word in example.split()]
            for word in words:
                if word.endswith((".data", ".sums")):
                    shutil.copy(recording, self.dir / word)
            done = run(REPORT, *words, cwd=self.dir)
            self.assertEqual(done.returncode, 0, (example, done.stdout))


class Plots(unittest.TestCase):
    def test_bars_and_errors(self):
        table = perf_table(random_sums(DATA / "plot.sums", NAMES))
        names = ["%CY", "CPI", "#"]
        for axes, name in zip(plot.draw(table, 10, names).axes, names, strict=True):
            self.assertEqual(axes.get_title(), name)
            values = [row["metrics"][name] for row in table["functions"][:10]]
            values = [value for value in values if value]
            self.assertEqual(
                [(patch.get_width(), bool(patch.get_hatch())) for patch in axes.patches],
                [(value["value"], value.get("mark") == "weak") for value in values],
            )
            lines = [line.get_segments()[0][:, 0] for line in axes.collections]
            ends = [(value["low"], value["high"]) for value in values if "low" in value]
            for seen, true in zip(lines, ends, strict=True):
                self.assertAlmostEqual(seen[0], true[0])
                self.assertAlmostEqual(seen[1], true[1])

    def test_weak_changes(self):
        """A change of a weak value is grey."""
        paths = [random_sums(DATA / f"{seed}.sums", NAMES, seed) for seed in (1, 2)]
        table = perf_table("--single-run", "--diff", *paths)
        changes = [row["metrics"]["CPI"] for row in table["functions"]]
        expected = [
            any(one[side].get("mark") == "weak" for side in ("before", "after"))
            for one in changes
            if one["change"]
        ]
        figure = plot.draw(table, 100, ["CPI"])
        lines = [line for axes in figure.get_axes() for line in axes.lines]
        points = [line for line in lines if line.get_marker() == "o"]
        self.assertEqual([line.get_color() == plot.WEAK for line in points], expected)
        self.assertIn(False, expected)
        self.assertIn(True, expected)
