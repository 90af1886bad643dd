# SPDX-License-Identifier: GPL-2.0
"""As test_machines.py, the machines that `make check-all` runs: riscv64 and ppc64le."""

import unittest

from tests.harness import machines
from tests.harness.env import BASE, BUILD, in_guest, machine, must
from tests.harness.truth import LEAVES, PAGES, Line, Truth, executed, measured_rates

SLOW = True
MINUTES = 30
ON_BASES = "every"
MACHINES = "riscv64 ppc64le"


class Riscv64(machines.Recordings):
    """A PMU that counts TLB misses, too."""

    ARCH = UNAME = "riscv64"
    COMMANDS = """
record alternate.data '{cycles/period=999700,alt-period=300/,instructions,page-faults,dTLB-load-misses}:uS' benchmark --faults 0 1
! benchmark --truth 0 1 > /share/no-truth 2>&1
"""

    @classmethod
    def setUpClass(cls):
        """Without PTRACE_SINGLESTEP it is QEMU that counts, one instruction at a time."""
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
            timeout=580,
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
        """dcache_miss() has so many events for each page that it comes to, the others none."""
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
    # a throttled event goes on in Linux 6.12, the driver says why
    SKIPPED_TESTS = (
        f"({machines.TWO_CPUS}|breakpoint{'|no stop when throttled' * (BASE == '6.12')})"
    )
    # QEMU counts an event once. After an attempt to count it twice the next group, a plain one too,
    # loses its first overflows
    WITHOUT = {"alternate_period": "multiplexing_keeps_rest_of_interval"}


class Ppc64le(machines.Recordings):
    """The PMU of a POWER10, as far as QEMU has it: no window below some 700 cycles."""

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
