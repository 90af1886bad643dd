# SPDX-License-Identifier: GPL-2.0
"""Collecting on a Dask cluster: sums are right, whatever dies; one line tells what is wrong.

The generator of the recordings adds up the sums that must come out.
"""

import contextlib
import json
import os
import re
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
HOSTS, SAMPLES, LARGE = (200, 50_000, 1_000_000) if SLOW else (20, 2000, 40_000)
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


def without_version(text: bytes) -> bytes:
    """A sums file without its first line."""
    return text.partition(b"\n")[2]


def noted(*names: str) -> str:
    """What is said of recordings without a window."""
    return "".join(
        f"perf functions: {DATA}/{name}.data: no samples that count: "
        "record for longer, or with a shorter period\n"
        for name in names
    )


def idle(path: Path) -> None:
    """Writes a host's recording without a window, with one sample on each CPU."""
    host = fleet.Host(10**6, DATA / "code.so", NAMES)
    host.write(path, fleet.CPUS)
    assert not any(interval.is_window for interval in host.intervals)
    RECORDED.append(host)


NAMES: list[str] = []
RECORDED: list[fleet.Host] = []
FILES: list[Path] = []
ONE = DATA / "one.sums"  # the sums of them that one process makes


def setUpModule() -> None:
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    NAMES.extend(fleet.library(DATA / "code.so"))
    for number in range(HOSTS):
        path = DATA / f"host{number}.data"
        RECORDED.append(fleet.Host(number, DATA / "code.so", NAMES, 20 + number % 20))
        RECORDED[-1].write(path, SAMPLES)
        FILES.append(path)
    FILES.append(DATA / "idle.data")
    idle(FILES[-1])
    FILES.append(DATA / "empty.data")
    fleet.Host(1, DATA / "code.so", NAMES).write(FILES[-1], 0)
    must(PERF, "functions", "report", "--sums", ONE, *FILES)


def tearDownModule() -> None:
    for path in FILES:
        path.unlink()


class Readme(unittest.TestCase):
    """The commands that start a cluster."""

    def test_commands(self):
        text = (TOP / "report/README.md").read_text(encoding="utf-8")
        scheduler, worker, use = re.search(
            r"^    (dask-scheduler) .*\n    (dask-worker [^#\n]*?) +#.*\n    (report/\S+.*)\n",
            text,
            re.M,
        ).groups()
        folder = DATA / "readme"
        folder.mkdir(exist_ok=True)
        file = folder / "scheduler.json"
        file.unlink(missing_ok=True)
        options = {
            "cwd": folder,
            "env": {"PATH": "/usr/bin:/bin", "HOME": str(folder)},
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        # a port that is free, and only for this machine
        own = "--host 127.0.0.1 --port 0 --dashboard-address 127.0.0.1:0 --scheduler-file"
        with contextlib.ExitStack() as stack:

            def start(*command: object) -> None:
                process = subprocess.Popen([*map(str, command)], **options)
                stack.callback(process.wait)
                stack.callback(process.terminate)

            start(*scheduler.split(), *own.split(), file)
            address = servers.until(
                "scheduler",
                lambda: file.exists() and file.stat().st_size and json.loads(file.read_text()),
            )["address"]
            start(*worker.replace("tcp://scheduler:8786", address).split())
            words = use.replace("tcp://scheduler:8786", address).split()[:-1]
            words[words.index("all.sums")] = str(DATA / "readme.sums")
            done = run(*words, *FILES[:3], stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        one = must(PERF, "functions", "report", "--sums", "-", *FILES[:3], stderr=-1)
        self.assertEqual((DATA / "readme.sums").read_text(), one)


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

    def test_is_what_one_process_makes_and_what_the_generator_knows(self):
        self.assert_sums(self.cluster(*FILES))
        self.assertEqual(without_version(self.out.read_bytes()), fleet.total(RECORDED))

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
        self.assertEqual(without_version(whole.read_bytes()), fleet.total([host]))
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
        (DATA / "folder").mkdir(exist_ok=True)
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
        self.refused(
            f"failed to open {DATA}/folder/data: .*", self.cluster(FILES[0], DATA / "folder")
        )
        cut = DATA / "cut.data"
        cut.write_bytes(FILES[0].read_bytes()[:100_000])
        self.refused(rf"{cut}: .* \(on {here}\)", self.cluster(*FILES, cut))
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
                pid = (
                    servers.until(
                        f"call to {what}", (self.dask.folder / f"calls/{what}.pid").exists
                    )
                    and (self.dask.folder / f"calls/{what}.pid").read_text().split()
                )
                for victim in map(int, pid):
                    os.kill(victim, signal.SIGKILL)
            said = child.communicate(timeout=600)[1]
        self.assertEqual((child.returncode, said), (0, noted("empty")))
        self.assertEqual(self.out.read_bytes(), ONE.read_bytes())
        collected = [call.split()[-1] for call in self.calls() if call.endswith(".data")]
        self.assertGreater(len(collected), len(FILES))

    def test_no_workers(self):
        for _ in range(4):
            self.dask.kill()
        start = time.monotonic()
        self.refused(
            r"the scheduler has had no workers for 30 s: dask-worker tcp://\S+ starts one",
            self.cluster(FILES[0]),
        )
        self.assertGreater(time.monotonic() - start, 29)


class Local(unittest.TestCase):
    """Without a scheduler, --cluster starts one."""

    def test_cluster_of_this_machine(self):
        """It works even if Dask's port for browsers is taken."""
        out = DATA / "local.sums"
        with contextlib.suppress(OSError):  # another process may have it already
            self.enterContext(socket.create_server(("", 8787)))
        for arguments in (["--cluster", *FILES], [*FILES, "--cluster"]):
            done = report("--sums", out, *arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", noted("empty")))
            self.assertEqual(out.read_bytes(), ONE.read_bytes())
            out.unlink()


if __name__ == "__main__":
    unittest.main()
