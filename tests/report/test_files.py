# SPDX-License-Identifier: GPL-2.0
"""functions-report: inputs and outputs that are no plain files, with the real perf."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tests.harness import reports
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.reports import REPORT
from tests.harness.simulation import Libraries, Simulation

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

    @unittest.skipIf(os.geteuid(), "only root can give a file to another user")
    def test_file_of_another_user(self):
        """It is refused by an option's name, and read with this option, also beside sums."""
        os.chown(self.data, 1234, -1)
        self.assertIn("(use -f to override)", run(REPORT, self.data).stdout)
        for option in (), ("--html", "/dev/null"), ("--cluster",), ("--pprof", "/dev/null"):
            must(REPORT, "-f", *option, self.data, self.sums, stderr=subprocess.STDOUT)

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
        said = self.shell('! "$0" --cluster - < "$1" 2>&1', self.data)
        self.assertIn(b": -: a cluster reads files: write this to a file first", said)

    def test_closed_output(self):
        """A line says so. Files are written."""
        for option in "", "--html -", "--pprof -", "--html closed.html":
            words = "sh", "-c", f'exec "$0" {option} "$1" >&-', REPORT, self.sums
            done = run(*words, stderr=subprocess.PIPE, cwd=self.dir)
            said = [line for line in done.stderr.splitlines() if line.startswith("functions-")]
            if option.endswith("closed.html"):
                self.assertEqual((said, done.returncode), ([], 0))
                continue
            reason = "cannot write the table: stdout is closed: send the output elsewhere"
            self.assertEqual((said, done.returncode), ([f"functions-report: {reason}"], 1))
            self.assertNotIn("Traceback", done.stderr)

    def test_output_that_is_an_input(self):
        """No recording is replaced. Sums may be added to a sums file, and nothing else."""
        (self.dir / "link.svg").symlink_to(self.data)
        os.link(self.data, self.dir / "hard.svg")
        before = self.data.read_bytes()
        for option, path, *inputs in (
            ("--sums", self.data, "-"),
            ("--html", self.data, self.sums, self.data),
            ("--openmetrics", self.data, self.dir / "hard.svg"),
            ("--plot", self.dir / "link.svg", "--diff", self.sums, self.data),
        ):
            with self.data.open("rb") as stdin:
                done = run(REPORT, option, path, *inputs, stdin=stdin, stderr=subprocess.PIPE)
            why = f"{option} would replace this input: name another file to write"
            self.assertEqual(
                (done.returncode, done.stdout, done.stderr),
                (1, "", f"functions-report: {path}: {why}\n"),
            )
            self.assertEqual(self.data.read_bytes(), before)

    def written(self) -> list[tuple[list[object], Path]]:
        """Commands that write a file each, without its name, which stands last."""
        return [
            ([PERF, "functions", "report", self.data, "--sums"], self.dir / "perf.sums"),
            ([REPORT, self.data, "--html"], self.dir / "page.html"),
        ]

    def test_mode_of_a_file_that_is_written_again(self):
        """It stays, so that a private file stays private. A new file has that of the umask."""
        for command, path in self.written():
            with self.subTest(path.name):
                must(*command, path, stderr=subprocess.DEVNULL, umask=0o027)
                self.assertEqual(path.stat().st_mode & 0o777, 0o640)
                for mode in 0o600, 0o664:
                    path.write_text("old")
                    path.chmod(mode)
                    must(*command, path, stderr=subprocess.DEVNULL)
                    self.assertEqual(path.stat().st_mode & 0o777, mode)
                    self.assertNotEqual(path.read_bytes(), b"old")

    def test_read_only_files_stay(self):
        """Also those of root, who may write them."""
        for command, path in self.written():
            with self.subTest(path.name):
                path.write_text("old")
                path.chmod(0o444)
                done = run(*command, path, stderr=subprocess.PIPE)
                program = "perf functions" if command[0] == PERF else "functions-report"
                why = "is read-only: name another file, or make it writable"
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.splitlines()[-1], f"{program}: {path}: {why}")
                self.assertEqual(path.read_text(), "old")
                self.assertEqual(path.stat().st_mode & 0o777, 0o444)
