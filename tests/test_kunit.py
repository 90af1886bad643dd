# SPDX-License-Identifier: GPL-2.0
"""The pure logic in the kernel's own unit tests, run by the tree's kunit.py."""

import os
import re
import unittest

from env import ARCH, CHECK, LINUX, must


class KUnit(unittest.TestCase):

    def test_alternate_periods(self):
        output = must("/usr/bin/python3", "tools/testing/kunit/kunit.py", "run", "--arch", ARCH,
                      "--cross_compile=aarch64-linux-gnu-", "--kunitconfig=kernel/events/.kunitconfig",
                      f"--build_dir={CHECK / 'kunit'}", f"--jobs={os.cpu_count()}", cwd=LINUX)
        counts = re.search(r"Testing complete\. Ran (\d+) tests: passed: (\d+)$", output, re.M)
        self.assertIsNotNone(counts, output[-2000:])
        self.assertEqual(counts[1], counts[2])
        self.assertGreaterEqual(int(counts[1]), 5)


if __name__ == "__main__":
    unittest.main()
