# SPDX-License-Identifier: GPL-2.0
"""The module for kernels that cannot be rebuilt, on Linux 6.12 without the series.

It is built from its DKMS package.
"""

import unittest

import modules
from env import CHECK, PERF, in_guest, must
from machines import RECORD
from modules import GROUP, SHORT, SHORT_LONG, WINDOW
from pristine import IMAGE, pristine_module


class Linux(modules.Module):

    share = CHECK / "module"
    OPTIONS = ("--kernel", IMAGE)
    COMMANDS = f"""
record children.data '{SHORT}' sh -c 'benchmark --iterations 500 0 1; benchmark --iterations 1000 0 1 & wait'
record threads.data '{SHORT}' benchmark --threads 4 --iterations 2000 0 1
record short.data '{GROUP}' true
"""

    @classmethod
    def make(cls):
        pristine_module(cls.share)

    def test_children_and_threads_begin_at_the_beginning(self):
        """Older kernels sample no group of those that inherit."""
        for name, number in ("children", 2), ("threads", 4):
            recording = self.read(name)
            streams = [stream for stream in recording.streams(recording.leader()).values() if len(stream) > 100]
            self.assertEqual(len(streams), number)
            for stream in streams:
                found = [sample.period for sample in stream]
                self.assertEqual((found[:2], set(found[2::2]), set(found[3::2])), ([SHORT_LONG, SHORT_LONG], {WINDOW}, {SHORT_LONG}))

    def test_attr_is_that_of_a_kernel_with_the_series(self):
        in_guest(RECORD + f"record kernel.data '{GROUP}' true", share=self.share)
        shown = [must(PERF, "evlist", "-v", "-i", self.share / f"{name}.data") for name in ("kernel", "short")]
        self.assertIn(f"alternative_sample_period: {WINDOW}", shown[0])
        self.assertEqual(*shown)


if __name__ == "__main__":
    unittest.main()
