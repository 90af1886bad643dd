# SPDX-License-Identifier: GPL-2.0
"""Tests of the emulated machines that `make check-all` adds to arm64's."""

from itertools import pairwise

from tests.harness import machines

SLOW = True
MINUTES = 33
ON_BASES = "every"
MACHINES = "x86_64 riscv64 ppc64le"


class X86(machines.Recordings):
    """TCG emulates no PMU for x86: the CPU clock is the leader, and one instruction takes 1 ns."""

    ARCH = "x86_64"
    COMMANDS = """
record alternate.data '{cpu-clock/period=990000,alt-period=10000/,page-faults}:uS' benchmark --iterations 1650 0 1
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


class X86Selftest(machines.Selftest):
    ARCH = "x86_64"
    SKIPPED_TESTS = "no hardware event that samples"


class Riscv64(machines.Recordings):
    ARCH = "riscv64"
    COMMANDS = """
record alternate.data '{cycles/period=999700,alt-period=300/,instructions}:uS' benchmark 0 1
"""


class Riscv64Selftest(machines.Selftest):
    ARCH = "riscv64"
    SKIPPED_TESTS = "breakpoint"


class Ppc64le(machines.Recordings):
    """The PMU of a POWER10 in QEMU, where no window is shorter than some 700 cycles."""

    ARCH = "ppc64le"
    COMMANDS = """
record alternate.data '{cycles/period=999000,alt-period=1000/,instructions}:S' benchmark 0 1
"""


class Ppc64leSelftest(machines.Selftest):
    ARCH = "ppc64le"
