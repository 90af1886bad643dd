# SPDX-License-Identifier: GPL-2.0
"""The emulated x86_64 machine. test_machines_all.py has those that `make check-all` runs, too."""

import unittest
from itertools import pairwise

from tests.harness import machines

MINUTES = 3
MACHINES = "x86_64"


class X86(machines.Recordings):
    """TCG emulates no PMU for x86: the CPU clock is the leader, and one instruction takes 1 ns."""

    ARCH = UNAME = "x86_64"
    LONG, WINDOW = 990000, 10000
    LEADER = "cpu-clock"
    MOST = 0.9  # the program begins with page faults
    COMMANDS = """
benchmark --truth 0 1 > /share/truth
record alternate.data '{cpu-clock/period=990000,alt-period=10000/,page-faults}:uS' benchmark --iterations 1650 0 1
record faults.data '{cpu-clock/period=990000,alt-period=10000/,page-faults}:uS' benchmark --iterations 200 --faults 0 1
"""

    def test_reported_period_is_what_was_counted(self):
        """Except for the time to the handler, and for the program's begin in the kernel, which has
        no sample.
        """
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
        faults = {
            name: row["sums"][0]["totals"]["page-faults"]
            for name, row in self.table("faults").items()
        }
        self.assertGreater(faults.pop("dcache_miss"), 50)
        self.assertEqual(sum(faults.values()), 0, faults)


class X86Selftest(machines.Selftest):
    ARCH = "x86_64"
    SKIPPED_TESTS = f"({machines.TWO_CPUS}|no hardware event with alternate sample periods)"


if __name__ == "__main__":
    unittest.main()
