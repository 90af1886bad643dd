# SPDX-License-Identifier: GPL-2.0
"""The tests that each emulated machine must pass.

Recordings alternate. The selftests of the series pass. A suite derives a class for a machine and
sets ARCH.
"""

import re
import unittest
from itertools import pairwise
from pathlib import Path

from tests.harness import perfdata
from tests.harness.env import CHECK, LINUX, TOP, in_guest, machine, must, vm

# the selftests, with the least number of tests that each must have
PROGRAMS = {
    "alternate_period": 6,
    "alternate_software": 17,
}
SELFTESTS = CHECK / "selftests"
# compiler options that make a program ask the module for alternate periods
BY_MODULE = ("-Wl,--wrap=syscall", TOP / "tests/harness/by_module.c")
# The most events between an overflow and its sample. It is 0 on the emulated machines with one
# processor, which stop at the very instruction. The driver of ppc64le may find an overflow when it
# stops the event; it reports that one with the next event.
SKID = {"ppc64le": 1}

RECORD = """
sysctl -qw kernel.perf_event_max_sample_rate=10000000 kernel.perf_cpu_time_max_percent=0
cd /tmp
record() {
	output=$1 events=$2
	shift 2
	perf record -q -T --sample-cpu -m 16M -o "$output" -e "$events" -- "$@" > /dev/null 2> record.err || { cat record.err; exit 1; }
	mv "$output" /share
}
"""


class Recordings(unittest.TestCase):
    """Recordings alternate."""

    ARCH = ""
    COMMANDS = ""

    @classmethod
    def setUpClass(cls):
        cls.share = CHECK / "machines" / cls.ARCH
        cls.share.mkdir(parents=True, exist_ok=True)
        for old in cls.share.glob("*"):
            old.unlink()
        in_guest(RECORD + cls.COMMANDS, arch=cls.ARCH, share=cls.share, timeout=1800)

    def read(self, name: str) -> perfdata.Contents:
        return perfdata.read(self.share / f"{name}.data")

    def test_reported_period_is_what_was_counted(self):
        stream = self.read("alternate").stream()
        values = [list(sample.values.values())[0] for sample in stream]
        for sample, (early, late) in zip(stream[1:], pairwise(values)):
            self.assertIn(late - early - sample.period, range(SKID.get(self.ARCH, 0) + 1))


def make_selftest(folder: Path, arch: str, *words: object) -> None:
    """Makes selftests in a folder with their own Makefile and a cross compiler; words: which."""
    headers, cross = folder / "headers", machine(arch, "cross_compile")
    flags = f"-O2 -Werror -DSKID={SKID.get(arch, 0)}"
    folder.mkdir(parents=True, exist_ok=True)
    must(
        "make", "-s", "-C", LINUX, f"O={headers}", f"ARCH={machine(arch, 'kernel_arch')}", "headers"
    )
    must(
        "make",
        "-s",
        "-B",
        "-C",
        LINUX / "tools/testing/selftests/perf_events",
        f"OUTPUT={folder}",
        f"CROSS_COMPILE={cross}",
        f"KHDR_INCLUDES=-isystem {headers}/usr/include",
        "USERLDFLAGS=-static",
        f"USERCFLAGS={flags}",
        *(folder / word for word in words),
    )


def in_memory(command: str) -> str:
    """Shell commands that run a program of the share without the share: output is shown at the end.

    While an idle guest waits for the share, its clock leaps from timer to timer, and a test times
    out.
    """
    program, *words = command.split()
    return (
        f"cp {program} /tmp/test && /tmp/test {' '.join(words)} > /tmp/said 2>&1; status=$?; cat"
        " /tmp/said; (exit $status)"
    )


class Selftest(unittest.TestCase):
    """The series' selftests of perf_event_open(2)."""

    ARCH = ""
    SKIPPED_TESTS = "none"  # reasons or names of tests that may be skipped

    @classmethod
    def setUpClass(cls):
        make_selftest(SELFTESTS / cls.ARCH, cls.ARCH, *PROGRAMS)

    def selftest(self, command: str, *options: object) -> list[str]:
        """The lines `ok ...` and `not ok ...` of a run; the number of them is checked."""
        done = vm(in_memory(command), *options, arch=self.ARCH, share=SELFTESTS / self.ARCH)
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = re.findall(r"^(?:not )?ok .*$", done.stdout, re.M)
        self.assertEqual(
            re.findall(r"^1\.\.(\d+)$", done.stdout, re.M), [str(len(lines))], done.stdout
        )
        return lines

    def test_passes_with_the_series(self):
        for name, number in PROGRAMS.items():
            with self.subTest(name):
                lines = self.selftest(name)
                self.assertGreaterEqual(len(lines), number)
                for line in lines:
                    self.assertRegex(
                        line,
                        rf"^ok \d+ (\S+$|(?=\S+ # SKIP ).*{self.SKIPPED_TESTS})",
                        "\n".join(lines),
                    )
