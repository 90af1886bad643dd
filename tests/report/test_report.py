# SPDX-License-Identifier: GPL-2.0
"""functions-report: its command line, its pictures, and its pages of real recordings."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.harness import reports, servers, stacks
from tests.harness.env import PERF, TOP, must, run
from tests.harness.reports import DATA, NAMES, REPORT, report
from tests.harness.simulation import Libraries, Simulation

sys.path.insert(0, str(TOP / "report"))
from functions_report import plot  # noqa: E402 pylint: disable=import-error,wrong-import-position

MINUTES = 1


def setUpModule() -> None:
    reports.prepare()


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
        must(REPORT, "--html", DATA / "program.html", path, stderr=subprocess.DEVNULL)
        seen = self.frames(self.data(DATA / "program.html")["flame"]["root"])
        whole = program.done["[all]"]["cycles"]
        for name, *callers in (["[all]"], ["gamma"], ["beta", "gamma"], ["twice", "gamma"]):
            frame = seen[tuple(reversed(callers)) + (name,) if callers or name != "[all]" else ()]
            share = frame["counts"]["cycles"] / seen[()]["counts"]["cycles"]
            self.assertAlmostEqual(share, program.done[name]["cycles"] / whole, delta=0.025)
        told = must(PERF, "functions", "report", "-i", path, "--children", "-j", stderr=-1)
        rows = {row["symbol"]: row for row in json.loads(told)["functions"]}
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
        must(REPORT, "--html", DATA / "names.html", DATA / "names.sums")
        seen = self.frames(self.data(DATA / "names.html")["flame"]["root"])
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
        names = [(row["symbol"], row["dso"]) for row in data["table"]["rows"]]
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
        for options in (), ("--single-run",):
            done = report("--perf", self.perf, *options, *runs)
            self.assertEqual(done.stdout, (self.dir / "perf.diff").read_text())
        done = report("--perf", self.perf, "--html", html, *runs)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"{self.input}, {self.input} → {self.input}", html.read_text())

    def test_bad_input(self):
        html, perf = self.dir / "report.html", ("--perf", self.perf)
        killed = self.dir / "killed"
        killed.write_text(
            "#!/bin/sh\necho 'perf functions: 12 records were lost' >&2\nkill -9 $$\n"
        )
        killed.chmod(0o755)
        both = "--before and --after go together"
        for reason, *words in (
            ("no-such.data: there is no such file", "--html", html, self.dir / "no-such.data"),
            ("`make perf` builds perf, --perf says", "--perf", self.dir / "none", "--html", html),
            ("some.data", "--html", html),  # perf's own words on an empty file
            ("perf ended with signal 9: the kernel's log", "--perf", killed, "--html", html),
            ("there is no such folder", *perf, "--html", self.dir / "none/report.html"),
            ("is a folder", *perf, "--html", self.dir),
            ("a picture is .png or .svg", *perf, "--plot", self.dir / "picture.pdf"),
            (
                "there is no column %NO; there is: # CPI",
                *(*perf, "--plot", self.dir / "a.png", "--fields", "%NO"),
            ),
            ("--diff takes two inputs, BEFORE and AFTER; there is 1", *perf, "--diff"),
            (both, *perf, "--before"),
            (both, *perf, "--before", self.input, "--diff", "--after"),
            (both, *perf, self.input, "--before", self.input, "--after"),
            ("--single-run is about a comparison", *perf, "--single-run"),
            ("go with --diff", *perf, "--sums", self.dir / "a.sums", "--diff", self.input),
        ):
            with self.subTest(reason):
                self.refused(reason, *words, self.input)
        for text in "no JSON", '{"version": 1, "functions": []}':
            (self.dir / "perf.table").write_text(text)
            self.refused("wrote JSON that functions-report", *perf, "--html", html, self.input)
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

    @staticmethod
    def without_one(item: Any, place: str = "") -> Iterator[tuple[str, Any]]:
        """Copies of an object, each without one of its members; of a list, that of its first."""
        pairs = enumerate(item[:1]) if isinstance(item, list) else [*item.items()]
        for key, value in pairs:
            if isinstance(item, dict):
                yield f"{place}.{key}", {name: item[name] for name in item if name != key}
            for inner, copy in (
                CommandLine.without_one(value, f"{place}.{key}")
                if isinstance(value, (list, dict)) and key not in ("groups", "sets")
                else ()
            ):
                whole = item.copy()
                whole[key] = copy
                yield inner, whole

    def test_missing_members(self):
        """An older or newer perf may not write all: one line says so, or nobody needs it."""
        table = reports.table(NAMES[:2])
        table["columns"] = table["columns"][:2]
        change = reports.diff(table, table)
        for name, made, words in (
            ("table", table, ("--html", "page", "--pprof", "gz", "--openmetrics", "prom")),
            ("diff", change, ("--html", "page", "--plot", "change.svg", "--diff", self.input)),
        ):
            for place, part in self.without_one(made):
                if place.startswith(".functions.0.metrics.") and not place.endswith(".value"):
                    continue  # a row may lack a metric
                (self.dir / f"perf.{name}").write_text(json.dumps(part))
                done = run(REPORT, "--perf", self.perf, *words, self.input, cwd=self.dir)
                with self.subTest(place=place):
                    if done.returncode:
                        member = place.rpartition(".")[2]
                        why = f"{self.perf} functions report -j wrote JSON that functions-report"
                        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
                        self.assertIn(
                            f"functions-report: {why} cannot read: there is no ", done.stdout
                        )
                        # this one tells a comparison from a table
                        self.assertIn("sets" if place == ".before" else member, done.stdout)
                    else:
                        self.assertEqual(done.stdout, "")
            (self.dir / f"perf.{name}").write_text(json.dumps(made))

    def test_signals(self):
        """Whatever it does, and with a terminal or not: no temporary file is left, and no perf."""
        perf, folder = self.dir / "slow", self.dir / "tmp"
        folder.mkdir()
        perf.write_text(f"#!/bin/sh\necho $$ > {self.dir}/pid\nexec sleep 600\n")
        perf.chmod(0o755)
        words = [REPORT, "--perf", perf, "--html", self.dir / "page", self.input]
        quoted = " ".join(map(str, words))
        for number in signal.SIGTERM, signal.SIGHUP:
            for command in words, ["script", "-qec", f"exec {quoted}", "/dev/null"]:
                with self.subTest(signal=number, terminal=command is not words):
                    (self.dir / "pid").unlink(missing_ok=True)
                    command = [*map(str, command)]
                    with subprocess.Popen(
                        ["env", "PATH=/usr/bin:/bin", f"TMPDIR={folder}", *command],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                    ) as child:
                        pid = servers.until(
                            "perf",
                            lambda: (self.dir / "pid").exists()
                            and (self.dir / "pid").read_text().strip(),
                        )
                        parent = re.search(
                            r"PPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text("ascii")
                        )[1]
                        self.assertTrue(list(folder.iterdir()))
                        os.kill(int(parent), number)
                        self.assertNotEqual(child.wait(60), 0)
                    self.assertEqual(list(folder.iterdir()), [])
                    # its orphan may be dead before init reaps it
                    servers.until("its end", lambda pid=pid: has_ended(pid))
        self.assertFalse((self.dir / "page").exists())

    def test_signal_while_a_program_starts(self):
        """perf ends, too, though nobody knows it yet when the signal comes."""
        perf = self.dir / "slow"
        perf.write_text("#!/bin/sh\nexec sleep 600\n")
        perf.chmod(0o755)
        text = f"""if True:
            import os, signal, subprocess, sys
            sys.path.insert(0, "{TOP}/report")
            from functions_report import cli
            fork_exec = subprocess._fork_exec
            def start(*words):
                pid = fork_exec(*words)
                print(pid, flush=True)
                os.kill(os.getpid(), signal.SIGTERM)
                return pid
            subprocess._fork_exec = start
            cli.main(["--perf", "{perf}", "--html", "{self.dir}/page", "{self.input}"])
        """
        done = run(sys.executable, "-c", text)
        self.assertTrue(has_ended(done.stdout.split()[0]), done)

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
                [row["metrics"][name]["value"] for row in known],
            )
            self.assertEqual(
                [bool(patch.get_hatch()) for patch in axes.patches],
                [row["metrics"][name].get("mark") == "weak" for row in known],
            )
            ends = [
                [float(end) for end in collection.get_segments()[0][:, 0]]
                for collection in axes.collections
            ]
            values = [row["metrics"][name] for row in known if "low" in row["metrics"][name]]
            for seen, value in zip(ends, values):
                self.assertAlmostEqual(seen[0], value["low"])
                self.assertAlmostEqual(seen[1], value["high"])
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
