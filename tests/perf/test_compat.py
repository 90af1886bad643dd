# SPDX-License-Identifier: GPL-2.0
"""Old and new together: perf and kernel with and without the series, and the ways that a recording
can take.

In the emulated machine a program executes the same instructions in each run, and only those are
counted. So however it is recorded, the sums of its functions are equal to the last digit.
test_top.py tests that they are right.
"""

import shutil
import subprocess
import unittest
from pathlib import Path

from tests.harness import perfdata
from tests.harness.env import ARCH, BUILD, CHECK, PERF, in_guest, must, native, run
from tests.harness.pristine import GUEST, HOST, IMAGE, pristine

MINUTES = 1
MACHINES = "arm64"

SHARE = CHECK / "compat"
LONG, WINDOW = 99700, 300
MEMBERS = "instructions,page-faults"
WORK = "benchmark --faults --iterations 1000 0 1"
SYMBOLS = "--symfs", BUILD / "root" / ARCH, "--kallsyms", BUILD / "kernel" / ARCH / "System.map"

SHELL = f"""
set -o pipefail
sysctl -qw kernel.perf_event_max_sample_rate=10000000 kernel.perf_cpu_time_max_percent=0
cd /tmp
group='{{cycles/period={LONG},alt-period={WINDOW}/,{MEMBERS}}}:uS'
plain='{{cycles/period={LONG + WINDOW}/,{MEMBERS}}}:uS'
record() {{
	perf record -q -T --sample-cpu -m 16M "$@" 2> record.err || {{ cat record.err >&2; exit 1; }}
}}
old() {{
	/share/old/perf record -q -T --sample-cpu "$@" 2> record.err || {{ cat record.err >&2; exit 1; }}
}}
"""

COMMANDS = (
    SHELL
    + f"""
record -o plain.data -e "$group" -- {WORK}
record -o compressed.data -z -e "$group" -- {WORK}
record -o - -e "$group" -- {WORK} > piped.data
record -o - -e "$group" -- {WORK} | perf script -i - -F ip,sym,event,period > live.script
record -o long.data -e "$plain" -- {WORK}
perf archive plain.data > /dev/null
old -o old.data -e "$plain" -- {WORK}
old -o old-graph.data -g -e cycles/period=100000/u -e page-faults -- {WORK}
mv *.data *.data.* live.script /share
"""
)

ON_OLD_KERNEL = (
    SHELL
    + f"""
record -o new-perf.data -e "$plain" -- {WORK}
mv new-perf.data /share
"""
)


def setUpModule() -> None:
    pristine()
    shutil.rmtree(SHARE, ignore_errors=True)
    (SHARE / "old").mkdir(parents=True)
    shutil.copy(GUEST / "usr/bin/perf", SHARE / "old")
    in_guest(COMMANDS, share=SHARE, timeout=1800)


def path(name: str) -> Path:
    return SHARE / f"{name}.data"


def sums(recording: Path) -> str:
    """The sums of a recording."""
    ours = native(recording, "--sums", "-")
    if ours.returncode:
        raise AssertionError(f"{recording}: {ours.returncode}\n{ours.stderr}{ours.stdout}")
    return ours.stdout


def said(perf: Path, recording: Path, *words: object, pipe: bool = False) -> str:
    """The standard output of a perf on a recording."""
    if not pipe:
        return must(perf, *words, "-i", recording, stderr=subprocess.PIPE)
    with subprocess.Popen(["cat", recording], stdout=subprocess.PIPE) as source:
        return must(perf, *words, "-i", "-", stdin=source.stdout, stderr=subprocess.PIPE)


SAMPLES = "script", *SYMBOLS, "-F", "ip,sym,event,period"
REPORT = "report", *SYMBOLS, "--stdio", "-g", "none", "--no-children", "-s", "sym"
# the commands that read a recording, whoever made it
READERS = (
    ("evlist", "-v"),
    ("script", *SYMBOLS, "--show-mmap-events", "--show-task-events"),
    SAMPLES,
    REPORT,
    ("report", "--header-only", "--stdio"),
    ("report", "--stats", "--stdio"),
    ("buildid-list",),
)


def facts(recording: Path) -> list[tuple]:
    """The samples, without time and process."""
    return [
        (sample.ip, sample.fields.get("period"), *sample.values.values())
        for sample in perfdata.read(recording).samples
    ]


class Ways(unittest.TestCase):
    """The same run, recorded or passed on in other ways."""

    def check(self, name: str, pipe: bool = False) -> None:
        """Sums, report and samples are those of the plain recording."""
        self.assertEqual(sums(path(name)), sums(path("plain")))
        for words in (SAMPLES, REPORT):
            self.assertEqual(
                said(PERF, path(name), *words, pipe=pipe), said(PERF, path("plain"), *words)
            )

    def test_compressed(self):
        self.assertLess(path("compressed").stat().st_size, path("plain").stat().st_size / 3)
        self.check("compressed")

    def test_pipe(self):
        self.check("piped", pipe=True)
        self.assertEqual((SHARE / "live.script").read_text(), said(PERF, path("plain"), *SAMPLES))
        ours = said(PERF, path("piped"), "functions", "report", *SYMBOLS, "--sums", "-", pipe=True)
        self.assertEqual(ours, sums(path("plain")))


class OldKernel(unittest.TestCase):
    """Our perf with a kernel without the series."""

    @classmethod
    def setUpClass(cls):
        in_guest(ON_OLD_KERNEL, "--kernel", IMAGE, share=SHARE, timeout=1800)

    def test_plain_event(self):
        """It works, with the same attr and the same samples as on the series' kernel."""
        leader = perfdata.read(path("new-perf")).leader()
        self.assertEqual(
            (leader.size, leader.alternative_sample_period, leader.inherit), (160, 0, True)
        )
        self.assertGreater(len(facts(path("new-perf"))), 400)
        self.assertTrue(facts(path("new-perf")) == facts(path("long")))
        self.assertEqual(sums(path("new-perf")), sums(path("long")))


class OldPerf(unittest.TestCase):
    """perf without the series, and recordings of both."""

    def test_refuses_a_new_file(self):
        for recording in (path("plain"), path("long")):
            for words in (
                *READERS,
                ("annotate", "--stdio"),
                ("report", "-D"),
                ("inject", "-o", SHARE / "refused"),
            ):
                done = run(HOST, *words, "-i", recording)
                self.assertGreater(done.returncode, 0, words)
                self.assertEqual(
                    done.stdout.strip(),
                    "incompatible file format (rerun with -v to learn more)",
                    words,
                )

    def test_its_files(self):
        for name in ("old", "old-graph"):
            for words in READERS:
                with self.subTest(name, words=words):
                    text = said(PERF, path(name), *words)
                    self.assertTrue(text)
                    self.assertEqual(text, said(HOST, path(name), *words))
