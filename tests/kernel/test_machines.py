# SPDX-License-Identifier: GPL-2.0
"""Tests of the emulated machines that `make check-all` adds to arm64's."""

import unittest
from itertools import pairwise

from tests.harness import machines
from tests.harness.env import BASE, BUILD, in_guest, machine, must
from tests.harness.truth import LEAVES, PAGES, Line, Truth, executed, measured_rates

SLOW = True
MINUTES = 33
ON_BASES = "every"
MACHINES = "x86_64 riscv64 ppc64le"


class X86(machines.Recordings):
    """TCG emulates no PMU for x86: the CPU clock is the leader, and one instruction takes 1 ns."""

    ARCH = UNAME = "x86_64"
    LONG, WINDOW = 990000, 10000
    LEADER = "cpu-clock"
    MOST = 0.9  # page faults take time when the program begins
    COMMANDS = """
benchmark --truth --faults 0 1 > /share/truth
record alternate.data '{cpu-clock/period=990000,alt-period=10000/,page-faults}:uS' benchmark --iterations 1650 0 1
record faults.data '{cpu-clock/period=990000,alt-period=10000,alt-period-jitter=30/,page-faults}:S' benchmark --iterations 200 --faults 0 1
"""

    def test_reported_period_is_what_was_counted(self):
        """The difference is the time to the handler; the start in the kernel has no sample."""
        stream = self.read("alternate").stream()
        values = [list(sample.values.values())[0] for sample in stream]
        differences = [
            late - early - sample.period
            for sample, (early, late) in zip(stream[1:], pairwise(values))
        ]
        self.assertGreater(
            sum(abs(difference) < 1000 for difference in differences), 0.95 * len(differences)
        )

    def test_page_faults(self):
        """Windows have page faults at the rate of the whole run.

        The kernel needs longer for a fault than dcache_miss() needs to the next one. So nearly all
        windows of dcache_miss() end in the kernel, and the test adds up the windows of all
        functions.
        """
        stream = self.read("faults").stream()
        counts = [list(sample.values.values()) for sample in stream]
        clock, faults = counts[-1]
        self.assertLess(abs(faults / (200 * self.truth()["dcache_miss"].faults) - 1), 0.02)
        windows = [
            (new[0] - old[0], new[1] - old[1])
            for sample, (old, new) in zip(stream[1:], pairwise(counts))
            if sample.period < 2 * self.WINDOW
        ]
        self.assertGreater(len(windows), 50)
        time, seen = map(sum, zip(*windows))
        # the error is that of faults in windows, which have many or none
        error = sum(number**2 for _, number in windows) ** 0.5 / time
        self.assertLess(abs(seen / time - faults / clock), 4 * error)
        self.assertLess(4 * error, faults / clock)


class X86Selftest(machines.Selftest):
    ARCH = "x86_64"
    SKIPPED_TESTS = f"({machines.SKIPPED}|no hardware event that samples)"


class Riscv64(machines.Recordings):
    """The machine's PMU counts TLB misses, too."""

    ARCH = UNAME = "riscv64"
    COMMANDS = """
record alternate.data '{cycles/period=999700,alt-period=300/,instructions,page-faults,dTLB-load-misses}:uS' benchmark --faults 0 1
! benchmark --truth 0 1 > /share/no-truth 2>&1
"""

    @classmethod
    def setUpClass(cls):
        """There is no PTRACE_SINGLESTEP: QEMU counts the truth, one instruction at a time."""
        super().setUpClass()
        program, tools = BUILD / "root" / cls.ARCH / "usr/bin/benchmark", machine(
            cls.ARCH, "cross_compile"
        )
        section = must(tools + "objdump", "-h", "-j", "benchmark_text", program).split()
        size, start = section[section.index("benchmark_text") + 1 :][:2]
        in_guest(
            "benchmark --iterations 1 --faults 0 1",
            "--qemu",
            (
                "-accel tcg,one-insn-per-tb=on -d exec "
                f"-dfilter 0x{start}+0x{size} -D {cls.share}/executed"
            ),
            arch=cls.ARCH,
            share=cls.share,
            timeout=1800,
        )
        cls.counts = executed((cls.share / "executed").read_text(), must(tools + "nm", program))

    def truth(self) -> Truth:
        return {
            name: Line(
                self.counts[name],
                1,
                self.counts[name],
                self.counts[name] / sum(self.counts.values()),
                PAGES * (name == "dcache_miss"),
            )
            for name in (*LEAVES, "iteration")
        }

    def test_truth_without_single_steps_says_so(self):
        self.assertRegex(
            (self.share / "no-truth").read_text(),
            r"\Abenchmark: no single steps on this architecture: [^\n]+\n\Z",
        )

    def rate(self, event: str, per_page: int) -> None:
        """dcache_miss() has per_page such events for each page that it touches, others none."""
        expected = self.truth()
        found = measured_rates(self.table("alternate"), event)
        rate, error, number = found["dcache_miss"]
        self.assertGreaterEqual(number, 400)
        self.assertGreater(error, 0)
        self.assertLess(abs(rate - per_page * PAGES / expected["dcache_miss"].length), 4 * error)
        for name in LEAVES[:-1]:
            self.assertEqual(found[name][2], 0, name)

    def test_page_faults(self):
        self.rate("page-faults", 1)

    def test_tlb_misses(self):
        # the load that faults misses, and so does the same load after the fault
        self.rate("dTLB-load-misses", 2)


class Riscv64Selftest(machines.Selftest):
    ARCH = "riscv64"
    # in Linux 6.12 a throttled event goes on; a comment in the driver says why
    SKIPPED_TESTS = f"({machines.SKIPPED}|breakpoint{'|no stop when throttled' * (BASE == '6.12')})"
    # QEMU cannot count an event twice at once. After an attempt the next group, even a plain one,
    # loses its first overflows.
    WITHOUT = {"alternate_tasks": "multiplexing_keeps_rest_of_interval"}


class Ppc64le(machines.Recordings):
    """The PMU of a POWER10 in QEMU, where no window is shorter than some 700 cycles."""

    ARCH = UNAME = "ppc64le"
    LONG, WINDOW = 999000, 1000
    COMMANDS = """
benchmark --truth 0 1 > /share/truth
record alternate.data '{cycles/period=999000,alt-period=1000/,instructions}:S' benchmark 0 1
"""


class Ppc64leSelftest(machines.Selftest):
    ARCH = "ppc64le"


if __name__ == "__main__":
    unittest.main()
