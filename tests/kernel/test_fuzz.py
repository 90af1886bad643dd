# SPDX-License-Identifier: GPL-2.0
"""Random calls around alternating events, for some seconds, and tests of what they once found.

test_stress.py makes more calls, on a kernel that checks itself.
"""

import unittest

from tests.harness import fuzz
from tests.harness.env import CHECK, in_guest

MINUTES = 1
MACHINES = "arm64"

SHARE = CHECK / "fuzz"
CALLS = 20000
NO_COMPLAINT = "! dmesg | grep -E '(BUG|WARNING|INFO):|Call trace'"
MEMBERS = 4 * ",instructions"


class Fuzz(unittest.TestCase):
    def test_random_calls(self):
        fuzz.build(SHARE)
        output = in_guest(
            f"""
            echo 5000 > /proc/sys/kernel/perf_event_max_sample_rate
            echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent
            ./fuzz_attr 1 {CALLS}
            {NO_COMPLAINT}
            """,
            share=SHARE,
        )
        self.assertEqual(fuzz.totals(self, output)["calls"], CALLS)

    def test_groups_that_share_the_counters(self):
        """Overflows arrive while perf changes what is counted: no counter runs then."""
        in_guest(
            f"""
            echo 1 > /sys/bus/event_source/devices/armv8_pmuv3/perf_event_mux_interval_ms
            echo 1000000 > /proc/sys/kernel/perf_event_max_sample_rate
            echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent
            perf record -q -o /dev/null -e '{{instructions/period=700/{MEMBERS}}}:S' \\
                -e '{{instructions/period=777/{MEMBERS}}}:S' -- benchmark --iterations 3000 0 1
            {NO_COMPLAINT}
        """
        )
