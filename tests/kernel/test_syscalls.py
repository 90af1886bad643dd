# SPDX-License-Identifier: GPL-2.0
"""The selftests of perf_event_open(2) in the emulated machine, on our kernel and pristine Linux."""

import unittest

from tests.harness import machines
from tests.harness.env import ARCH, CHECK, in_guest, vm
from tests.harness.pristine import IMAGE, pristine_kernel

MINUTES = 2
MACHINES = "arm64"


class Arm64Selftest(machines.Selftest):
    ARCH = ARCH

    def test_skips_without_the_series(self):
        pristine_kernel()
        for name in machines.PROGRAMS:
            for line in self.selftest(name, "--kernel", IMAGE):
                self.assertRegex(line, r"^ok \d+ \S+ # SKIP .*kernel without")


class Guest(unittest.TestCase):
    def test_status_of_a_command(self):
        self.assertEqual(vm("exit 3").returncode, 3)


class Throttled(unittest.TestCase):
    """Faults of perf's core that core-fixes repairs: a loop of a second is throttled."""

    SCRIPT = """
sysctl -q kernel.perf_event_max_sample_rate=2000 kernel.perf_cpu_time_max_percent=0
cd /tmp
perf record -q -e '{task-clock/period=20000/,page-faults}:S' -- perf test -w noploop 1
perf script -F event,period > /share/clock
perf record -q -e '{cycles/period=5000/,instructions/period=5000/}:u' -- perf test -w noploop 1
perf script -F event > /share/group
"""

    @classmethod
    def setUpClass(cls):
        cls.share = CHECK / "throttled"
        cls.share.mkdir(parents=True, exist_ok=True)
        in_guest(cls.SCRIPT, share=cls.share)

    def test_task_clock_counts_no_time_twice(self):
        lines = [line.split() for line in (self.share / "clock").read_text().splitlines()]
        counts = [int(count) for count, event in lines if event.startswith("task-clock")]
        self.assertGreater(len(counts), 1000)
        self.assertLess(sum(counts), 1.1e9)

    def test_group_goes_on(self):
        """Each instruction takes a cycle, so both members overflow in the same interrupt."""
        samples = (self.share / "group").read_text()
        for event in "cycles", "instructions":
            self.assertGreater(samples.count(event), 1000, event)


class Refused(unittest.TestCase):
    """What perf says of samples above the limit, 1000 a second, and on an AMD CPU."""

    SCRIPT = """
sysctl -q kernel.perf_event_max_sample_rate=1000
record() {
	perf record -q -o /tmp/perf.data "$@" -- true > output 2>&1 && echo opens || cat output
}
cd /tmp
{
record -F 333 -e cycles/alt-period=300,alt-period-count=2/u
record -F 334 -e cycles/alt-period=300,alt-period-count=2/u
sysctl -q kernel.perf_event_max_sample_rate=100000
printf 'vendor_id\t: AuthenticAMD\nflags\t\t: fpu perfctr_core\n' > cpuinfo
mount --bind cpuinfo /proc/cpuinfo
record -e cycles/period=999700,alt-period=300/
record -e cycles/period=999700,alt-period=300/u
} > /share/refused
"""

    def test_says_limit_and_way_out(self):
        share = CHECK / "refused"
        share.mkdir(parents=True, exist_ok=True)
        in_guest(self.SCRIPT, share=share)
        text = (share / "refused").read_text()
        lines = [line for line in text.splitlines() if line and line != "Error:"]
        expected = (
            "opens",
            "frequency of 334 .*windows: 2.* 1000 samples .* 333 .*perf_event_max_sample_rate",
            "AMD before Zen 4.*modifier 'u'",
            "opens",
        )
        self.assertEqual(len(lines), len(expected), lines)
        for line, pattern in zip(lines, expected):
            self.assertRegex(line, pattern)
