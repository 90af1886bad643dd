# SPDX-License-Identifier: GPL-2.0
"""functions-report: inputs and outputs that are no plain files, with the real perf."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tests.harness import reports
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.reports import REPORT
from tests.harness.simulation import Libraries, Simulation
from tests.harness.terminal import Terminal

DATA = CHECK / "files"


def setUpModule() -> None:
    reports.prepare()
    DATA.mkdir(parents=True, exist_ok=True)
    must("make", "build/report/profile_pb2.py")


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        simulation = Simulation(1, Libraries(DATA / "simulation"), events=3)
        simulation.run(300, DATA / "file.data")
        simulation.writer.write_pipe(DATA / "pipe.data")

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = Path(temporary.name)
        self.data = self.dir / "some.data"
        shutil.copy(DATA / "file.data", self.data)
        self.sums = self.dir / "some.sums"
        must(PERF, "functions", "report", "--sums", self.sums, self.data)

    def shell(self, command: str, *words: object) -> bytes:
        """The output of a command of the shell, in which $0 is functions-report."""
        command = ("bash", "-c", command, REPORT, *words)
        done = run(*command, cwd=self.dir, stderr=-1, text=False, errors=None)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def inputs(self, options: str) -> set[bytes]:
        """The outputs with these options, of the same recording read in several ways."""
        return {
            self.shell(f"{command} {options}", DATA / "pipe.data", self.data)
            for command in (
                'cat "$1" | "$0" -',
                '"$0" - < "$2"',
                '"$0" /dev/stdin < "$2"',
                'cat "$1" | "$0" /dev/stdin',
                '"$0" <(cat "$1")',
                'ln -sf "$1" - && "$0" ./-',
            )
        }

    def test_stdin_and_pipes(self):
        table = must(PERF, "functions", "report", self.data, stderr=subprocess.DEVNULL)
        text = must(PERF, "functions", "report", "--limit=2", self.data, stderr=subprocess.DEVNULL)
        self.assertEqual(self.inputs(""), {table.encode()})
        self.assertEqual(self.inputs("--limit 2"), {text.encode()})
        self.assertEqual(self.inputs("--sums -"), {self.sums.read_bytes()})
        self.assertEqual(len(self.inputs("--comms sh --openmetrics -")), 1)
        self.assertEqual(self.shell('"$0" - < "$1"', self.sums), table.encode())
        both = self.shell('"$0" <(cat "$1") <(cat "$1")', self.sums)
        self.assertEqual(both, self.shell('"$0" "$1" "$1"', self.sums))

    def test_pipes_that_are_read_for_several_tables(self):
        """They are read once, and messages have their names."""

        def page(inputs: str) -> str:
            text = self.shell(f'"$0" --html - {inputs}', self.data, DATA / "pipe.data").decode()
            return re.sub(r'<title>.*?</title>|"title":"[^"]*"', "", text)

        for path in '"$1"', '"$2"':
            for inputs in f"- < {path}", f"- < <(cat {path})", f"<(cat {path})":
                self.assertEqual(page(inputs), page(path), inputs)
        self.assertEqual(page('--diff <(cat "$1") <(cat "$1")'), page('--diff "$1" "$1"'))
        done = run("bash", "-c", '"$0" --html - <(echo nothing)', REPORT, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Afunctions-report: .*/dev/fd/\d+: neither .*\n\Z")

    def test_a_cluster_reads_files(self):
        done = run(REPORT, "--cluster", "-", "--sums", self.dir / "a", stderr=subprocess.PIPE)
        self.assertEqual(
            (done.returncode, done.stderr),
            (1, "functions-report: -: a cluster reads files: write this to a file first\n"),
        )

    def test_stdout(self):
        for option in "--sums", "--html", "--pprof", "--openmetrics":
            made = self.shell(f'"$0" {option} - "$1"', self.data)
            self.assertFalse((self.dir / "-").exists())
            must(REPORT, option, self.dir / "made", self.data, stderr=subprocess.DEVNULL)
            self.assertEqual(made, (self.dir / "made").read_bytes(), option)
        done = run(REPORT, "--html=-", "--sums=-", self.data, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--sums and --html are both -: name a file for one", done.stderr)

    def test_terminal_as_stdout(self):
        """The terminal obeys no name, and gets no profile."""
        name = "\x1b[31mred\u009b8m"
        text = reports.chain_sums({name: (9, 2700, 900, 0)})
        self.sums.write_text(text, encoding="utf-8")
        for option in "--openmetrics", "--sums", "--html":
            terminal = Terminal(REPORT, option, "-", self.sums)
            self.assertEqual(terminal.end(), 0)
            self.assertNotIn("\x1b[31m", terminal.raw)
            self.assertNotIn("\u009b", terminal.raw)
            if option != "--html":  # it has \\u001b
                self.assertIn(r"\x1b[31mred\xc2\x9b8m", terminal.raw)
        self.assertIn(name, must(REPORT, "--openmetrics", "-", self.sums))
        terminal = Terminal(REPORT, "--pprof", "-", self.sums)
        self.assertEqual(terminal.end(), 1)
        self.assertEqual(
            terminal.raw.strip(),
            "functions-report: --pprof -: a profile is not for a terminal: name a file or use a"
            " pipe",
        )

    def test_output_that_is_no_file(self):
        """A pipe gets the output, and stays a pipe."""
        fifo = self.dir / "out.svg"
        os.mkfifo(fifo)
        for option in "--sums", "--html", "--pprof", "--openmetrics", "--plot":
            command = 'timeout 60 cat "$1" & "$0" "$2" "$1" "$3" && wait'
            self.assertTrue(self.shell(command, fifo, option, self.data), option)
            self.assertTrue(fifo.is_fifo(), option)

    def test_output_that_is_a_link(self):
        """The file that it links to is replaced, even one that is not there yet."""
        folder = self.dir / "folder"
        folder.mkdir()
        link = self.dir / "link.svg"
        link.symlink_to("folder/made.svg")
        for option in "--sums", "--html", "--pprof", "--openmetrics", "--plot":
            (folder / "made.svg").unlink(missing_ok=True)
            for _ in range(2):
                must(REPORT, option, link, self.data, stderr=subprocess.DEVNULL)
                self.assertTrue(link.is_symlink(), option)
                self.assertGreater((folder / "made.svg").stat().st_size, 100)
                self.assertEqual(len([*folder.iterdir()]), 1)
        link.unlink()
        link.symlink_to("nowhere/made.svg")
        done = run(REPORT, "--html", link, self.data)
        self.assertEqual(
            (done.returncode, done.stdout),
            (1, f"functions-report: {link}: there is no such folder: make it first\n"),
        )

    def test_output_that_is_an_input(self):
        """No recording is replaced. Sums may be added to a sums file, and nothing else."""
        (self.dir / "link.svg").symlink_to(self.data)
        os.link(self.data, self.dir / "hard.svg")
        before = self.data.read_bytes()
        for option, path, *inputs in (
            ("--sums", self.data, self.data),
            ("--sums", self.data, "-"),
            ("--sums", self.dir / "link.svg", self.sums, self.data),
            ("--html", self.data, self.sums, self.data),
            ("--pprof", self.dir / "hard.svg", self.data),
            ("--openmetrics", self.data, self.dir / "hard.svg"),
            ("--plot", self.dir / "link.svg", "--diff", self.sums, self.data),
            ("--html", self.sums, self.sums),
        ):
            with self.data.open("rb") as stdin:
                done = run(REPORT, option, path, *inputs, stdin=stdin, stderr=subprocess.PIPE)
            why = f"{option} would replace this input: name another file to write"
            self.assertEqual(
                (done.returncode, done.stdout, done.stderr),
                (1, "", f"functions-report: {path}: {why}\n"),
            )
            self.assertEqual(self.data.read_bytes(), before)
        folder = self.dir / "folder"  # as perf record --dir makes it
        folder.mkdir()
        (folder / "data").write_bytes(before)
        done = run(REPORT, "--openmetrics", folder / "data", folder, stderr=subprocess.PIPE)
        why = f"{folder}/data: --openmetrics would replace this input: name another file to write"
        self.assertEqual((done.returncode, done.stderr), (1, f"functions-report: {why}\n"))
        self.assertEqual((folder / "data").read_bytes(), before)

    def test_outputs_that_are_the_same(self):
        made = self.dir / "made"
        link = self.dir / "link"
        link.symlink_to(made)
        done = run(REPORT, "--sums", made, "--html", link, self.data, stderr=subprocess.PIPE)
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr),
            (
                1,
                "",
                f"functions-report: {link}: --sums and --html would both write it: name another "
                "file for one of them\n",
            ),
        )
        self.assertFalse(made.exists())
        must(REPORT, "--sums", self.sums, self.sums, self.data, stderr=subprocess.DEVNULL)
        twice = self.dir / "twice.sums"
        must(PERF, "functions", "report", "--sums", twice, self.data, self.data)
        self.assertEqual(self.sums.read_bytes(), twice.read_bytes())


if __name__ == "__main__":
    unittest.main()
