# SPDX-License-Identifier: GPL-2.0
"""Collecting on a Dask cluster: sums are right, whatever dies; one line tells what is wrong.

The sums that must come out are those that one process makes.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest
from collections.abc import Sequence
from pathlib import Path

from tests.harness import fleet, servers
from tests.harness.env import CHECK, PERF, SLOW, TOP, must, run

MINUTES = 1

DATA = CHECK / "cluster"
REPORT = TOP / "report/functions-report"
HOSTS, SAMPLES, LARGE = (200, 10_000, 1_000_000) if SLOW else (20, 2000, 40_000)
# a perf that stops when it first gets a recording and when it first adds up; it names its caller
STOPPING = """#!/bin/sh
echo "$@" >> calls/all
case "$*" in
*.data) what=collect ;;
*/1*) what=add ;;
*) what=none ;;
esac
if [ $what != none ] && mkdir calls/$what 2> /dev/null; then
	echo $PPID $$ > calls/$what.part
	mv calls/$what.part calls/$what.pid
	exec sleep 600
fi
exec {perf} "$@"
"""


def report(*arguments: object, **options) -> subprocess.CompletedProcess:
    """functions-report."""
    return run(REPORT, *arguments, stderr=subprocess.PIPE, **options)


def noted(*names: str) -> str:
    """What is said of recordings without a window."""
    return "".join(
        f"perf functions: {DATA}/{name}.data: no samples that count: "
        "record for longer, or with a shorter period\n"
        for name in names
    )


NAMES: list[str] = []
FILES: list[Path] = []
ONE = DATA / "one.sums"  # the sums of them that one process makes


def setUpModule() -> None:
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    NAMES.extend(fleet.library(DATA / "code.so"))
    for number in range(HOSTS):
        path = DATA / f"host{number}.data"
        fleet.Host(number, DATA / "code.so", NAMES, 20 + number % 20).write(path, SAMPLES)
        FILES.append(path)
    # without a window: one sample on each CPU, and none
    for name, samples in ("idle", fleet.CPUS), ("empty", 0):
        FILES.append(DATA / f"{name}.data")
        fleet.Host(10**6, DATA / "code.so", NAMES).write(FILES[-1], samples)
    must(PERF, "functions", "report", "--sums", ONE, *FILES)


def tearDownModule() -> None:
    for path in FILES:
        path.unlink()


class Workers(unittest.TestCase):
    """A scheduler with four workers."""

    @classmethod
    def start(cls, cleanup) -> None:
        context = servers.dask(DATA / "dask", 4)
        cls.dask = context.__enter__()  # pylint: disable=unnecessary-dunder-call
        cleanup(context.__exit__, None, None, None)

    def setUp(self):
        self.out = DATA / "out.sums"
        self.out.unlink(missing_ok=True)
        shutil.rmtree(self.dask.folder / "calls", ignore_errors=True)
        (self.dask.folder / "calls").mkdir()

    def cluster(self, *arguments: object, **options) -> subprocess.CompletedProcess:
        return report("--cluster", self.dask.address, "--sums", self.out, *arguments, **options)

    def perf(self, text: str) -> Path:
        """A perf with this text, which runs in Dask's folder."""
        path = DATA / "perf"
        path.write_text(text.format(perf=PERF))
        path.chmod(0o755)
        return path

    def calls(self) -> list[str]:
        """The calls of that perf."""
        return (self.dask.folder / "calls/all").read_text().splitlines()

    def assert_sums(
        self,
        done: subprocess.CompletedProcess,
        one: Path = ONE,
        empty: Sequence[str] = ("empty",),
    ) -> None:
        """The run made the sums that one process makes, and named recordings without samples."""
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", noted(*empty)))
        self.assertEqual(self.out.read_bytes(), one.read_bytes())

    def refused(self, pattern: str, done: subprocess.CompletedProcess) -> None:
        """There is one line, and no file."""
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, rf"\Afunctions-report: {pattern}\n\Z")
        self.assertEqual(list(DATA.glob("*out.sums*")), [])


class Cluster(Workers):
    """A cluster on which nothing dies."""

    @classmethod
    def setUpClass(cls):
        cls.start(cls.addClassCleanup)

    def test_sums_and_recordings(self):
        half = DATA / "half.sums"
        must(PERF, "functions", "report", "--sums", half, *FILES[::2])
        self.assert_sums(self.cluster(half, *FILES[1::2]), empty=["empty"])

    def test_spans_of_a_large_recording(self):
        """Each window counts once, and so do losses and throttling.

        Functions with the same name stay apart in all spans.
        """
        large, whole = DATA / "large.data", DATA / "large.sums"
        host = fleet.Host(77, DATA / "code.so", NAMES)
        host.write(large, LARGE)
        self.addCleanup(large.unlink)
        self.assertTrue(host.lost and host.throttled)
        must(PERF, "functions", "report", "--sums", whole, large)
        for number in (3, 40):
            size = large.stat().st_size / 2**20 / (number - 0.5)
            shutil.rmtree(self.dask.folder / "calls")
            (self.dask.folder / "calls").mkdir()
            perf = self.perf('#!/bin/sh\necho "$@" >> calls/all\nexec {perf} "$@"\n')
            self.assert_sums(
                self.cluster("--perf", perf, "--slice-size", size, large, cwd=self.dask.folder),
                whole,
                empty=(),
            )
            self.assertEqual(sum("--time" in call for call in self.calls()), number)

    def test_bad_files(self):
        """Bad files are named, with the host, and not tried again."""
        bad, here = DATA / "bad.data", socket.gethostname()
        bad.write_text("no recording")
        perf = self.perf('#!/bin/sh\necho "$@" >> calls/all\nexec {perf} "$@"\n')
        self.out.write_text("old")
        done = self.cluster("--perf", perf, *FILES, bad)
        self.assertEqual(self.out.read_text(), "old")
        self.out.unlink()
        self.refused(rf"{bad}: .* \(on {here}\)", done)
        self.assertEqual(sum(call.endswith(str(bad)) for call in self.calls()), 1)
        self.refused(
            f"{DATA}/missing.data: there is no such file: name a recording or a sums file",
            self.cluster(*FILES, DATA / "missing.data"),
        )
        for options in (), ("--slice-size", 0.01):
            self.refused(
                f"{here}: cannot run /nowhere/perf: No such file or directory: "
                "`make perf` builds perf, --perf says where it is",
                self.cluster(*options, "--perf", "/nowhere/perf", *FILES),
            )


class Deaths(Workers):
    """Processes die without warning."""

    def setUp(self):
        self.start(self.addCleanup)
        super().setUp()

    def test_workers_killed_in_the_middle(self):
        """One worker dies while it collects, then one while it adds up.

        Their perf waits, so that they are in the middle of it.
        """
        perf = self.perf(STOPPING)
        with subprocess.Popen(
            [REPORT, "--cluster", self.dask.address, "--perf", perf, "--sums", self.out, *FILES],
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            for what in ("collect", "add"):
                pid = self.dask.folder / f"calls/{what}.pid"
                servers.until(f"call to {what}", pid.exists)
                for victim in map(int, pid.read_text().split()):
                    os.kill(victim, signal.SIGKILL)
            said = child.communicate(timeout=600)[1]
        self.assertEqual((child.returncode, said), (0, noted("empty")))
        self.assertEqual(self.out.read_bytes(), ONE.read_bytes())
        collected = [call.split()[-1] for call in self.calls() if call.endswith(".data")]
        self.assertGreater(len(collected), len(FILES))

    def test_no_workers(self):
        for worker in self.dask.workers:
            worker.kill()
        start = time.monotonic()
        self.refused(
            r"the scheduler has had no workers for 30 s: dask-worker tcp://\S+ starts one",
            self.cluster(FILES[0]),
        )
        self.assertGreater(time.monotonic() - start, 29)


class Local(unittest.TestCase):
    """Without a scheduler, --cluster starts one."""

    def test_cluster_of_this_machine(self):
        """It works even if Dask's port for browsers is taken, and leaves no temporary file."""
        out, folder = DATA / "local.sums", DATA / "tmp"
        folder.mkdir()
        with contextlib.suppress(OSError):  # another process may have it already
            self.enterContext(socket.create_server(("", 8787)))
        for arguments in (["--cluster", *FILES], [*FILES, "--cluster"]):
            done = report("--sums", out, *arguments, env={**os.environ, "TMPDIR": str(folder)})
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", noted("empty")))
            self.assertEqual(out.read_bytes(), ONE.read_bytes())
            self.assertEqual(list(folder.iterdir()), [])
            out.unlink()
