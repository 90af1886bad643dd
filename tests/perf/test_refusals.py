# SPDX-License-Identifier: GPL-2.0
"""The messages of perf functions about input that it cannot read, an output that it would spoil,
and a command or a program that does not exist.
"""

import functools
import re
import shutil
import unittest
from pathlib import Path

from tests.harness.env import CHECK, PERF, TOP, must, run
from tests.harness.simulation import Libraries, Simulation, recorded

DATA = CHECK / "refusals"


@functools.cache
def libraries() -> Libraries:
    """The libraries that the recordings are of."""
    return Libraries(DATA)


class Case(unittest.TestCase):
    """A recording, and what is said of it."""

    one: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.one = recorded(DATA / "one.data", 1, libraries(), events=3)

    def report(self, *options: object) -> str:
        """The text that is printed; it is an error to fail."""
        return must(PERF, "functions", "report", *options, stderr=-1)

    def assert_refused(self, reason: str, *options: object) -> None:
        """One line says why, and nothing is printed."""
        done = run(PERF, "functions", "report", *options, stderr=-1)
        self.assertEqual((done.returncode, done.stdout), (255, ""))
        self.assertEqual(done.stderr, f"perf functions: {reason}\n")


class Output(Case):
    def test_sums_do_not_replace_their_recording(self):
        """Sums may replace a sums file, but not their recording, by whatever name."""
        folder = DATA / "same"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        path, link, hard = (folder / name for name in ("one.data", "link", "hard"))
        shutil.copy(self.one, path)
        link.symlink_to(path)
        hard.hardlink_to(path)
        for name in path, link, hard:
            self.assert_refused(
                f"{path}: --sums would replace this recording: give the sums another name",
                *("-i", path, "--sums", name),
            )
            self.assertEqual(path.read_bytes(), self.one.read_bytes())
        self.report(path, "--sums", folder / "sums")
        self.report(folder / "sums", "--sums", folder / "sums")


class Options(Case):
    """Options that would change nothing are refused."""

    def test_misspelt(self):
        """A line names the nearest option, also in other commands of perf."""
        for name, *words in (
            ("sort", "functions", "report", "--sotr", "CPI"),
            ("window", "functions", "record", "--widow=3", "true"),
            ("percent-limit", "report", "--percentlimit", "3"),
        ):
            done = run(PERF, *words, stderr=-1)
            self.assertEqual((done.returncode, done.stdout), (129, ""))
            self.assertRegex(done.stderr, rf"^[^\n]*: did you mean --{name}\?[^\n]*\n\Z")
        done = run(PERF, "functions", "report", "--nothing-like-it", stderr=-1)
        self.assertEqual(done.returncode, 129)
        self.assertNotIn("did you mean", done.stderr)

    def test_values_of_sums(self):
        """Sums have no values, so nothing can be corrected, sorted or left out."""
        reason = (
            "--sums writes no values: leave out -j, -x, -F, -M, --sort, --limit, --percent-limit "
            "and --ci, and give them when you report the sums"
        )
        for options in ("--ci",), ("-j",), ("-F", "CPI"), ("-M", "all"), ("--limit", 1):
            self.assert_refused(reason, self.one, "--sums", "-", *options)

    def test_inlined_functions_of_sums(self):
        sums, inlined = DATA / "plain.sums", DATA / "inlined.sums"
        self.report(self.one, "--sums", sums)
        self.report(self.one, "--inline", "--sums", inlined)
        reason = (
            f"{sums}: these sums have no inlined functions: leave out --inline, or write sums anew "
            "from the recording"
        )
        self.assert_refused(reason, "--inline", sums)
        self.assert_refused(reason, "--inline", sums, self.one)
        self.assertEqual(self.report("--inline", inlined), self.report(inlined))


class Input(Case):
    def refused_input(self, command: str) -> str:
        """The messages of perf functions report, which prints nothing else."""
        done = run("bash", "-c", f"{command} ", PERF, "functions", "report", stderr=-1)
        self.assertEqual((done.returncode, done.stdout), (255, ""), done.stderr)
        return done.stderr

    def test_input_that_is_no_recording(self):
        """A line says what is wrong with it."""
        cut, junk, empty = (DATA / f"{name}.data" for name in ("cut", "junk", "empty"))
        junk.write_text("junk\n")
        empty.write_bytes(b"")
        in_pipe = "in a pipe, a recording must come from perf record -o -: copy it to a file"
        no_recording = "neither a recording nor a sums file: see perf functions record"
        no_data = "there is no data: see perf functions record"
        for command, name, message in (
            (f"head -c 5000 {self.one} | $0 $@ -i -", "-", in_pipe),
            (f"$0 $@ -i <(cat {self.one})", r"/dev/fd/\d+", in_pipe),
            (f"cat {junk} | $0 $@ -i -", "-", no_recording),
            (f"$0 $@ -i {junk}", junk, no_recording),
            (": | $0 $@ -i -", "-", no_data),
            (f"$0 $@ {empty}", empty, no_data),
        ):
            with self.subTest(command):
                self.assertRegex(
                    self.refused_input(command), rf"^perf functions: {name}: {message}\n$"
                )
        for size in 3, 20, 300:
            cut.write_bytes(self.one.read_bytes()[:size])
            self.assertEqual(
                self.refused_input(f"$0 $@ -i {cut}"),
                f"perf functions: {cut}: the file is cut short: record again\n",
            )

    def test_cut_or_damaged_pipe(self):
        """Like a cut file, it gives a reason and no table that lacks the end."""
        simulation = Simulation(1, libraries(), events=3)
        simulation.run(500, DATA / "whole.data")
        pipe = DATA / "whole.pipe"
        simulation.writer.finished_round()
        simulation.writer.write_pipe(pipe)
        raw, sums = pipe.read_bytes(), DATA / "whole.sums"
        self.report(DATA / "whole.data", "--sums", sums)
        for whole in pipe, sums:
            self.assertEqual(
                must("sh", "-c", f"cat {whole} | {PERF} functions report -i -", stderr=-1),
                self.report(DATA / "whole.data"),
            )
        reason = "cannot be read to its end: the pipe is cut short or damaged, record again\n"
        bad = DATA / "bad.pipe"
        # within a sample, and a record without a size
        at = len(raw) - sum(map(len, simulation.writer.records[-4:]))
        for content in raw[: at + 8], raw[: at + 24], raw[:at] + bytes(8), raw[:at] + bytes(80):
            bad.write_bytes(content)
            self.assertIn(reason, self.refused_input(f"cat {bad} | $0 $@ -j -i -"))


class Manual(unittest.TestCase):
    """The manual has the options that there are, and no others."""

    PAGE = TOP / "tools/perf/Documentation/perf-functions.txt"

    @staticmethod
    def options(*command: str) -> set[str]:
        return {*run(PERF, *command, "--list-opts").stdout.split()}

    def described(self, command: str) -> set[str]:
        """The options in the section of a command."""
        section = re.search(
            rf"^{command.upper()} OPTIONS\n-+\n((?:.*\n)*?)(?=.*\n-{{6,}}\n)",
            self.PAGE.read_text(),
            re.M,
        )[1]
        return {*re.findall(r"^(--[a-z0-9-]+).*::$", section, re.M)}

    def test_report(self):
        self.assertEqual(self.described("report"), self.options("functions", "report"))

    def test_record_and_top(self):
        """Those of perf record have its manual, those of report are in the section before."""
        record = self.options("record")
        there = self.options("functions", "record")
        self.assertLessEqual(there - record, self.described("record"))
        self.assertLessEqual(self.described("record"), there)
        top = self.options("functions", "top")
        self.assertLessEqual(top - there - self.described("report"), self.described("top"))
        self.assertLessEqual(self.described("top"), top)
