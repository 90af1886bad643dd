# SPDX-License-Identifier: GPL-2.0
"""The pure logic in the kernel's own unit tests, run by the tree's kunit.py."""

import os
import re
import unittest

from env import CHECK, LINUX, must

CROSS = {"arm64": "aarch64-linux-gnu-", "x86_64": ""}
# what x86_64 builds by default and the test does not need: a quarter of the files
WITHOUT = ["EXPERT=y", *(f"{option}=n" for option in (
    "ACPI", "BLOCK", "CPU_MITIGATIONS", "HID_SUPPORT", "HWMON", "INPUT", "IO_URING", "IOMMU_SUPPORT", "PCI", "VT"))]


class KUnit(unittest.TestCase):

    def test_alternate_periods(self):
        for arch, cross in CROSS.items():
            with self.subTest(arch):
                settings = [f"--kconfig_add=CONFIG_{option}" for option in WITHOUT if arch == "x86_64"]
                output = must("/usr/bin/python3", "tools/testing/kunit/kunit.py", "run", "--arch", arch,
                              f"--cross_compile={cross}", "--kunitconfig=kernel/events/.kunitconfig", *settings,
                              f"--build_dir={CHECK / 'kunit'}-{arch}", f"--jobs={os.cpu_count()}", cwd=LINUX)
                counts = re.search(r"Testing complete\. Ran (\d+) tests: passed: (\d+)$", output, re.M)
                self.assertIsNotNone(counts, output[-2000:])
                self.assertEqual(counts[1], counts[2])
                self.assertGreaterEqual(int(counts[1]), 5)


if __name__ == "__main__":
    unittest.main()
