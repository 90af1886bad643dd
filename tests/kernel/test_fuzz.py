# SPDX-License-Identifier: GPL-2.0
"""Random calls around alternating events, for some seconds.

test_stress.py makes more, where the kernel checks itself.
"""

import unittest

from tests.harness import fuzz
from tests.harness.env import CHECK, in_guest

MINUTES = 1
MACHINES = "arm64"

SHARE = CHECK / "fuzz"
CALLS = 20000


class Fuzz(unittest.TestCase):
    def test_random_calls(self):
        fuzz.build(SHARE)
        output = in_guest(
            f"""
            echo 5000 > /proc/sys/kernel/perf_event_max_sample_rate
            ./fuzz_attr 1 {CALLS}
            ! dmesg | grep -E '(BUG|WARNING|INFO):|Call trace'
            """,
            share=SHARE,
        )
        self.assertGreaterEqual(fuzz.totals(self, output)["calls"], CALLS)


if __name__ == "__main__":
    unittest.main()
