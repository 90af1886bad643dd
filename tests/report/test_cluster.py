# SPDX-License-Identifier: GPL-2.0
"""Collecting on a Dask cluster: sums are right, whatever dies; one line tells what is wrong.

The generator of the recordings adds up the sums that must come out.
"""

import contextlib
import os
import pty
import shutil
import signal
import socket
import subprocess
import time
import unittest
from collections.abc import Sequence
from pathlib import Path

from tests.harness import fleet
from tests.harness import perfwrite as pw
from tests.harness import servers
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
DEADLY = "#!/bin/sh\nkill -9 $PPID\n"


def report(*arguments: object, **options) -> subprocess.CompletedProcess:
    """functions-report."""
    return run(REPORT, *arguments, stderr=subprocess.PIPE, **options)


def without_version(text: bytes) -> bytes:
    """A sums file without its first line."""
    return text.partition(b"\n")[2]


def noted(*names: str) -> str:
    """What is said of recordings without a window."""
    return "".join(
        f"perf functions: {DATA}/{name}.data: no samples that end a window: "
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
        empty: Sequence[str] = ("empty", "idle"),
    ) -> None:
        """The run made the sums that one process makes, and named recordings without windows."""
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

    def test_options_of_perf(self):
        one = DATA / "dso.sums"
        must(PERF, "functions", "report", "--by", "dso", "--share", "none", "--sums", one, *FILES)
        self.assertNotEqual(one.read_bytes(), ONE.read_bytes())
        self.assert_sums(self.cluster("--by", "dso", "--share", "none", *FILES), one)

    def test_sums_and_recordings(self):
        half = DATA / "half.sums"
        must(PERF, "functions", "report", "--sums", half, *FILES[::2])
        self.assert_sums(self.cluster(half, *FILES[1::2]), empty=["empty"])

    def test_sums_of_another_share_mode(self):
        """They are of share mode discard, and so are sums added to them; one line says so."""
        old, one = DATA / "old.sums", DATA / "mixed.sums"
        numbers = "3\t2\t2\t0\t0\t600\t2\t900\t180000\t600\t270000\t2\t900\t405000"
        old.write_text(
            "perf-function-sums 4\nby\tsymbol\t0\nlost\t1\nthrottled\t0\n"
            + "\t".join(("group", "discard", "999700", "0", "300", "0", "0", "1", *fleet.EVENTS))
            + f"\nsums\tolder\tlib\t-\t0\t{numbers}"
            + 9 * "\t0"
            + "\nend\n"
        )
        must(PERF, "functions", "report", "--sums", one, *FILES, old, stderr=subprocess.DEVNULL)
        done = self.cluster(*FILES[:-1], old, FILES[-1])
        note = "share modes auto and discard are added up: the shares are those of discard"
        self.assertEqual(
            (done.returncode, done.stderr),
            (0, f"{noted('empty', 'idle')}perf functions: {note} (use one mode for all)\n"),
        )
        self.assertEqual(self.out.read_bytes(), one.read_bytes())
        lost = 1 + sum(host.lost for host in RECORDED)
        self.assertIn(b"\nlost\t%d\n" % lost, self.out.read_bytes())
        older = b"\nsums\tolder\tlib\t-\t0\t3\t2\t2\t0\t0\t600\t2\t900\t"
        self.assertIn(older, self.out.read_bytes())

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

    def test_spans_of_few_windows(self):
        """Spans may see one of two functions with the same name, or no window at all."""
        small, whole = DATA / "small.data", DATA / "small.sums"
        host = fleet.Host(78, DATA / "code.so", NAMES)
        host.write(small, 200)
        must(PERF, "functions", "report", "--sums", whole, small)
        self.assertEqual(without_version(whole.read_bytes()), fleet.total([host]))
        self.assert_sums(
            self.cluster("--slice-size", small.stat().st_size / 2**20 / 100, small),
            whole,
            empty=(),
        )

    def spans_of_microseconds(self, times: bool) -> None:
        """Spans begin and end at whole microseconds, where samples are."""
        path, whole, number, cycles = DATA / "micro.data", DATA / "micro.sums", 101, 0
        group = [pw.Event("cycles", 0, 0, [1], 10000, 300), pw.Event("instructions", 0, 1, [2])]
        writer = pw.Writer([group])
        for place in range(number):
            period = 300 if place % 2 else 10000
            cycles += period
            writer.sample(
                group[0],
                pw.Where(10**9 + 1000 * place, 1, 1),
                64,
                period,
                [(1, cycles), (2, 7 * place)],
            )
        writer.times = (10**9, 10**9 + 1000 * (number - 1)) if times else None
        writer.write(path)
        must(PERF, "functions", "report", "--sums", whole, path)
        self.assertRegex(whole.read_text(), r"\nsums\t.*\t50\t50\t\d+\t15000\t350\t")
        self.assert_sums(
            self.cluster("--slice-size", path.stat().st_size / 2**20 / 99.5, path),
            whole,
            empty=(),
        )

    def test_samples_on_the_bounds_of_spans(self):
        self.spans_of_microseconds(True)

    def test_recording_that_does_not_tell_its_times_is_one_part(self):
        self.spans_of_microseconds(False)

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

    def test_sums_that_do_not_add_up(self):
        """The message names the user's file."""
        other = DATA / "other.sums"
        must(PERF, "functions", "report", "--by", "dso", "--sums", other, *FILES)
        self.refused(
            (
                rf"{other}: cannot be added to the inputs before it: its rows are of another kind"
                r" .* \(on .*\)"
            ),
            self.cluster(*FILES, other),
        )

    def test_output_that_cannot_be_written(self):
        done = report("--cluster", self.dask.address, "--sums", DATA / "nowhere/out.sums", FILES[0])
        self.refused(f"{DATA}/nowhere/out.sums: there is no such folder: make it first", done)

    def test_progress_is_for_terminals(self):
        own, theirs = pty.openpty()
        done = run(
            REPORT,
            "--cluster",
            self.dask.address,
            "--perf",
            self.perf('#!/bin/sh\nsleep 1\nexec {perf} "$@"\n'),
            "--sums",
            self.out,
            *FILES[:8],
            stderr=theirs,
        )
        os.close(theirs)
        said = ""
        with os.fdopen(own, "rb", buffering=0) as terminal, contextlib.suppress(
            OSError
        ):  # the terminal is closed
            while True:
                said += terminal.read(4096).decode()
        self.assertEqual(done.returncode, 0)
        self.assertRegex(
            said,
            r"\r\033\[K0 of 8 collected.*\r\033\[K[1-8] of 8 collected, \d+ s left.*\r\033\[K\Z",
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
        self.assertEqual((child.returncode, said), (0, noted("empty", "idle")))
        self.assertEqual(self.out.read_bytes(), ONE.read_bytes())
        collected = [call.split()[-1] for call in self.calls() if call.endswith(".data")]
        self.assertGreater(len(collected), len(FILES))

    def test_what_kills_every_worker_ends(self):
        self.refused(
            "workers died again and again, .*memory.*",
            self.cluster("--perf", self.perf(DEADLY), FILES[0], timeout=300),
        )

    def test_no_workers(self):
        for _ in range(4):
            self.dask.kill()
        start = time.monotonic()
        self.refused(
            r"the scheduler has had no workers for 30 s: dask-worker tcp://\S+ starts one",
            self.cluster(FILES[0]),
        )
        self.assertGreater(time.monotonic() - start, 29)

    def test_scheduler_that_dies(self):
        with subprocess.Popen(
            [
                REPORT,
                "--cluster",
                self.dask.address,
                "--perf",
                self.perf(STOPPING),
                "--sums",
                self.out,
                *FILES,
            ],
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            pid = (
                servers.until("call", (self.dask.folder / "calls/collect.pid").exists)
                and (self.dask.folder / "calls/collect.pid").read_text().split()
            )
            self.dask.processes[0].kill()
            said = child.communicate(timeout=300)[1]
            os.kill(int(pid[1]), signal.SIGKILL)
        self.refused(
            "the scheduler tcp://.* is gone: start it again",
            subprocess.CompletedProcess([], child.returncode, "", said),
        )


class Local(unittest.TestCase):
    """Without a scheduler, --cluster starts one."""

    def test_cluster_of_this_machine(self):
        """It works even if Dask's port for browsers is taken."""
        out = DATA / "local.sums"
        with contextlib.suppress(OSError):  # another process may have it already
            self.enterContext(socket.create_server(("", 8787)))
        for arguments in (["--cluster", *FILES], [*FILES, "--cluster"]):
            done = report("--sums", out, *arguments)
            self.assertEqual(
                (done.returncode, done.stdout, done.stderr), (0, "", noted("empty", "idle"))
            )
            self.assertEqual(out.read_bytes(), ONE.read_bytes())
            out.unlink()

    def test_table_is_that_of_perf(self):
        self.assertEqual(
            report("--cluster", *FILES).stdout,
            must(PERF, "functions", "report", ONE, stderr=subprocess.DEVNULL),
        )
        self.assertEqual(
            report(*FILES).stdout, must(PERF, "functions", "report", ONE, stderr=subprocess.DEVNULL)
        )

    def test_addresses(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
            for address, pattern in (
                (f"tcp://127.0.0.1:{port}", "cannot reach the scheduler: .*"),
                ("tcp://127.0.0.1", "the address of a scheduler is tcp://HOST:PORT"),
                ("http://127.0.0.1:80", "the address of a scheduler is tcp://HOST:PORT"),
                ("tls://127.0.0.1:80", "there are no certificates: distributed.comm.tls in .*"),
            ):
                done = report("--cluster", address, FILES[0], timeout=100)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(
                    done.stderr, rf"\Afunctions-report: --cluster {address}: {pattern}\n\Z"
                )


if __name__ == "__main__":
    unittest.main()
