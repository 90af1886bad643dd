# SPDX-License-Identifier: GPL-2.0
"""The module for kernels that cannot be rebuilt, on Linux 6.12 without the series.

It is built from its DKMS package. The selftest of the series, its periods moved to where
the module finds them by by_module.c, says what happens to events.
"""

import re
import unittest

import modules
from env import CHECK, PERF, in_guest, must, vm
from machines import RECORD, TWO_CPUS, in_memory, make_selftest
from modules import GROUP, SHORT, SHORT_LONG, WINDOW
from pristine import IMAGE, pristine_module


class Linux(modules.Module):

    share = CHECK / "module"
    OPTIONS = ("--kernel", IMAGE)
    COMMANDS = f"""
record children.data '{SHORT}' sh -c 'benchmark --iterations 500 0 1; benchmark --iterations 1000 0 1 & wait'
record short.data '{GROUP}' true
"""

    @classmethod
    def make(cls):
        pristine_module(cls.share)

    def test_children_begin_at_the_beginning(self):
        recording = self.read("children")
        streams = [stream for stream in recording.streams(recording.leader()).values() if len(stream) > 100]
        self.assertEqual(len(streams), 2)
        for stream in streams:
            found = [sample.period for sample in stream]
            self.assertEqual((found[:2], set(found[2::2]), set(found[3::2])), ([SHORT_LONG, SHORT_LONG], {WINDOW}, {SHORT_LONG}))

    def test_attr_is_that_of_a_kernel_with_the_series(self):
        in_guest(RECORD + f"record kernel.data '{GROUP}' true", share=self.share)
        shown = [must(PERF, "evlist", "-v", "-i", self.share / f"{name}.data") for name in ("kernel", "short")]
        self.assertIn(f"alternative_sample_period: {WINDOW}", shown[0])
        self.assertEqual(*shown)


class Selftest(unittest.TestCase):
    """Those tests of alternate_period that are about hardware events and the system calls of any kernel."""

    # wider than the module's; signals are the kernel's; only the kernel keeps tasks from exchanging events
    NOT = "extreme_values_open sigtrap tasks_do_not_exchange_events"

    def test_passes(self):
        share = make_selftest("arm64", "alternate_period", by_module=True)
        (share / "perf_alt_period.ko").write_bytes((Linux.share / "perf_alt_period.ko").read_bytes())
        options = " ".join(f"-T {name}" for name in self.NOT.split()) + " -f event"
        done = vm("insmod perf_alt_period.ko\n" + in_memory(f"by_module/alternate_period {options}"), "--kernel", IMAGE, share=share)
        lines = re.findall(r"^(?:not )?ok .*$", done.stdout, re.M)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertGreaterEqual(len(lines), 25)
        for line in lines:
            self.assertRegex(line, rf"^ok \d+ (\S+$|(?=\S+ # SKIP ).*{TWO_CPUS})", done.stdout)


if __name__ == "__main__":
    unittest.main()
