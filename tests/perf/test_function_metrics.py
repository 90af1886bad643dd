#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of generate-function-metrics.py: crafted streams of samples in, sums and tables out.

The streams are written down as perf delivers them: one sample per member of a group, leader
first, none for a count of zero.
"""

# pylint: disable=invalid-name,too-many-lines,too-many-public-methods

import argparse
import contextlib
import csv
import importlib.util
import io
import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

SCRIPT = (
    Path(__file__).resolve().parents[2] / "tools/perf/scripts/python/generate-function-metrics.py"
)
SPEC = importlib.util.spec_from_file_location("function_metrics", SCRIPT)
fm = importlib.util.module_from_spec(SPEC)
sys.modules["function_metrics"] = fm
SPEC.loader.exec_module(fm)

LONG, WINDOW = 999700, 300
READ = 1 << 4  # PERF_SAMPLE_READ
HARDWARE = {
    "cycles": 0,
    "instructions": 1,
    "cache-references": 2,
    "cache-misses": 3,
    "branch-misses": 5,
}
GROUP = ("cycles", "instructions", "branch-misses")


def attr(kind=0, config=0, **other):
    """A perf_event_attr as perf hands it to scripts."""
    return {
        "type": kind,
        "config": config,
        "sample_type": READ,
        "sample_period": 0,
        "freq": 0,
        "inherit": 0,
        "alternative_sample_period": 0,
        "jitter_alternate_period": 0,
        **other,
    }


class Feed:
    """Calls a collector as perf does when it reads a recording."""

    FUNCTIONS = {"f": 1, "g": 2, "h": 3}

    def __init__(self, share="discard"):
        self.collector = fm.Collector(share)
        self.events = {}
        self.collector.dso_table(1, 1, "prog", "/usr/bin/prog", "")
        for name, symbol in self.FUNCTIONS.items():
            self.collector.symbol_table(symbol, 1, 0x1000 * symbol, 0x1000 * symbol + 64, 1, name)

    def group(self, *names, period=LONG, alternate=WINDOW, inherit=0, jitter=0):
        """Open a group, return the id of its leader."""
        leader = len(self.events) + 1
        for event, name in enumerate(names, leader):
            self.events[event] = name
            self.collector.evsel_table(event, name)
            self.collector.attr_table(
                event,
                leader,
                attr(
                    0,
                    HARDWARE[name],
                    inherit=inherit,
                    sample_period=period if event == leader else 0,
                    freq=int(event == leader and not period),
                    alternative_sample_period=alternate if event == leader else 0,
                    jitter_alternate_period=jitter if event == leader else 0,
                ),
            )
        return leader

    def raw_sample(self, event, count, symbol, *, thread=1, dso=1, ip=0x1000, cpu=0, time=0):
        """One member's sample. Each event has one id per CPU."""
        fields = [0] * 28
        fields[1], fields[3], fields[5], fields[6] = event, thread, dso, symbol
        fields[8], fields[9], fields[10], fields[15] = ip, time, cpu, count
        fields[25] = 100 * cpu + event
        self.collector.sample_table(*fields)

    def sample(self, function, *counts, leader=1, **where):
        """A group sample. Members which counted nothing are not delivered."""
        for event, count in enumerate(counts, leader):
            if count:
                self.raw_sample(event, count, self.FUNCTIONS[function], **where)

    def pair(self, function, *counts, **where):
        """A long interval and a window in one function."""
        self.sample(function, LONG, 5000, 50, **where)
        self.sample(function, *counts, **where)

    def sums(self, function, group=GROUP):
        """The sums of a function, or none."""
        table = self.collector.table()
        groups = {key.symbol: value for key, value in table.functions.items()}
        return groups.get(function, {}).get(group[:1] + tuple(sorted(group[1:])))


def sums_of(events, windows):
    """The sums of windows that count, each with the counts of the events."""
    names = sorted(events)
    columns = {name: [window[events.index(name)] for window in windows] for name in names}
    return fm.Sums(
        len(windows),
        len(windows),
        0,
        {name: sum(column) for name, column in columns.items()},
        {
            (one, other): sum(map(int.__mul__, columns[one], columns[other]))
            for one in names
            for other in names
            if one <= other
        },
        len(windows),
    )


def started(share="discard", **options):
    """A recording with one group whose stream is open."""
    recording = Feed(share)
    recording.group(*GROUP, **options)
    recording.sample("h", LONG, 7, 7)
    return recording


class Matching(unittest.TestCase):
    """The windows that count, and the functions for which they count."""

    def assert_sums(self, sums, samples, matched, totals, elsewhere=0):
        """Compare the numbers of windows and the totals in the order of GROUP. elsewhere: of the
        matched windows, those that began in another function."""
        self.assertIsNotNone(sums)
        self.assertEqual(
            (sums.samples, sums.matched, sums.discarded),
            (samples, matched, samples - matched + elsewhere),
        )
        self.assertEqual([sums[event] for event in GROUP], totals)

    def test_matched(self):
        """A window after a long interval in the same function counts, the long one does not."""
        recording = started()
        recording.pair("f", 310, 100, 3)
        recording.pair("f", 290, 120, 4)
        self.assert_sums(recording.sums("f"), 2, 2, [600, 220, 7])
        self.assertIsNone(recording.sums("h"))

    def test_unmatched(self):
        """A window which ends elsewhere is a discarded sample of the function at its end."""
        recording = started()
        recording.sample("f", LONG, 5000)
        recording.sample("g", 300, 100, 1)
        self.assert_sums(recording.sums("g"), 1, 0, [0, 0, 0])
        self.assertIsNone(recording.sums("f"))

    def test_unmatched_counts_stay_out(self):
        """The members of a discarded window are not added to the matched window before."""
        recording = started()
        recording.pair("f", 300, 100, 0)
        recording.sample("f", LONG, 5000, 50)
        recording.sample("g", 300, 100, 9)
        self.assert_sums(recording.sums("f"), 1, 1, [300, 100, 0])

    def test_long_counts_stay_out(self):
        """Nor are those of a long interval."""
        recording = started()
        recording.pair("f", 300, 100, 0)
        recording.sample("f", LONG, 5000, 50)
        self.assert_sums(recording.sums("f"), 1, 1, [300, 100, 0])

    def test_address_0(self):
        """Samples at address 0 match no other, with an alternate period and without one."""
        for options in ({}, {"share": "discard", "alternate": 0}):
            for first, second in ((0, 0), (0, 0x1000), (0x1000, 0)):
                recording = started(**options)
                recording.sample("f", LONG, 5000, 50, ip=first)
                recording.sample("f", 300, 100, 1, ip=second)
                samples = 2 if options else 1  # with one period, each interval is a window
                with self.subTest(options=options, first=first, second=second):
                    self.assert_sums(recording.sums("f"), samples, 0, [0, 0, 0])

    def test_burst(self):
        """Each window of a burst has its own two ends."""
        recording = started()
        recording.sample("f", LONG, 5000, 50)
        for function in "ffggf":
            recording.sample(function, 300, 100, 1)
        self.assert_sums(recording.sums("f"), 3, 2, [600, 200, 2])
        self.assert_sums(recording.sums("g"), 2, 1, [300, 100, 1])

    def test_burst_is_one_in_products(self):
        """Consecutive windows in one function are one in the products; others are not."""
        recording = started()
        for counts in ((310, 100, 3), (290, 50, 0), (300, 7, 2)):
            recording.pair("f", *counts)
            recording.sample("f", 300, 0, 4)
        recording.sample("g", 300, 1, 1)
        recording.sample("f", 300, 1, 1)
        recording.sample("f", 305, 20, 1)
        sums = recording.sums("f")
        bursts = ((610, 100, 7), (590, 50, 4), (600, 7, 6), (305, 20, 1))
        self.assert_sums(sums, 8, 7, [sum(column) for column in zip(*bursts)])
        for i, one in enumerate(GROUP):
            for j, other in enumerate(GROUP):
                with self.subTest(one=one, other=other):
                    self.assertEqual(
                        sums.product(one, other), sum(burst[i] * burst[j] for burst in bursts)
                    )

    def test_throttle_ends_burst(self):
        """The window over a throttle record is discarded, and those after it begin anew."""
        recording = started()
        recording.pair("f", 300, 100, 1)
        recording.collector.throttle(0, 1)
        for _ in range(3):
            recording.sample("f", 300, 100, 1)
        sums = recording.sums("f")
        self.assert_sums(sums, 4, 3, [900, 300, 3])
        self.assertEqual(sums.product("cycles", "cycles"), 300**2 + 600**2)
        self.assertEqual(sums.bursts, 2)

    def test_plain_windows_are_no_burst(self):
        """With one period, consecutive windows are separate ones."""
        recording = started("none", alternate=0)
        for _ in range(3):
            recording.sample("f", 300, 100, 1)
        self.assertEqual(recording.sums("f").product("cycles", "cycles"), 3 * 300**2)

    def test_boundary_with_jitter(self):
        """Jitter makes long intervals half as long at least, and windows 1.5 times at most."""
        limit = (LONG - LONG // 2 + WINDOW + WINDOW // 2) // 2
        for count, windows in ((limit - 1, 1), (limit, 0), (LONG - LONG // 2, 0)):
            recording = started(jitter=20)
            recording.sample("f", LONG, 1)
            recording.sample("f", count, 1)
            sums = recording.sums("f")
            with self.subTest(count=count):
                self.assertEqual(sums.samples if sums else 0, windows)

    def test_windows_at_a_frequency(self):
        """The long period is not known: windows are shorter than 2.5 alternate periods."""
        for count, windows in ((WINDOW * 5 // 2 - 1, 1), (WINDOW * 5 // 2, 0), (LONG, 0)):
            recording = started(period=0)
            recording.sample("f", LONG, 1)
            recording.sample("f", count, 100, 1)
            with self.subTest(count=count):
                sums = recording.sums("f")
                self.assertEqual(sums.matched if sums else 0, windows)
        info = recording.collector.groups[1].info()
        self.assertEqual(
            (info.share, info.sample_period, info.alternative_sample_period), ("discard", 0, 300)
        )

    def test_first_sample(self):
        """The first sample of a stream only opens it, whatever it is."""
        recording = Feed()
        recording.group(*GROUP)
        recording.sample("f", 300, 100, 1)
        self.assertIsNone(recording.sums("f"))
        recording.pair("f", 300, 100, 1)
        self.assert_sums(recording.sums("f"), 1, 1, [300, 100, 1])

    def test_first_sample_opens_a_window(self):
        """With jitter the first interval may be as short as a window."""
        recording = Feed()
        recording.group(*GROUP)
        recording.sample("f", 299, 99, 9)
        recording.sample("f", 300, 100, 1)
        self.assert_sums(recording.sums("f"), 1, 1, [300, 100, 1])

    def test_first_long_sample(self):
        """A first sample that ends a long interval opens the window after it."""
        recording = Feed()
        recording.group(*GROUP)
        recording.pair("f", 300, 100, 1)
        self.assert_sums(recording.sums("f"), 1, 1, [300, 100, 1])

    def test_missing_sibling(self):
        """A member that perf does not deliver counted nothing."""
        recording = started()
        recording.pair("f", 300, 100, 0)
        recording.pair("f", 300, 0, 2)
        self.assert_sums(recording.sums("f"), 2, 2, [600, 100, 2])

    def test_member_known_late(self):
        """perf tells of a member when it first counts: windows before have counts of 0."""
        recording = Feed()
        recording.group("cycles")
        recording.sample("f", LONG)
        recording.sample("f", 300)
        recording.sample("f", LONG)
        recording.raw_sample(1, 300, 1)
        recording.collector.evsel_table(2, "branch-misses")
        recording.collector.attr_table(2, 1, attr(0, HARDWARE["branch-misses"]))
        recording.raw_sample(2, 4, 1)
        sums = recording.sums("f", ("cycles", "branch-misses"))
        self.assertEqual((sums.matched, sums["cycles"], sums["branch-misses"]), (2, 600, 4))

    def test_boundary(self):
        """d is a window if and only if 2 d < period + alternate period."""
        limit = (LONG + WINDOW) // 2
        for count, windows in ((limit - 1, 1), (limit, 0), (limit + 1, 0)):
            recording = started()
            recording.sample("f", LONG, 1)
            recording.sample("f", count, 1)
            sums = recording.sums("f")
            self.assertEqual(sums.samples if sums else 0, windows)

    def test_boundary_odd(self):
        """Nothing is rounded: with periods of 7 and 4, d = 5 is a window and d = 6 is long."""
        for count, windows in ((5, 1), (6, 0)):
            recording = Feed()
            recording.group(*GROUP, period=7, alternate=4)
            recording.sample("f", 7)
            recording.sample("f", count)
            sums = recording.sums("f")
            self.assertEqual(sums.samples if sums else 0, windows)

    def test_other_thread(self):
        """In a CPU's stream, another thread in the same function does not match."""
        recording = started()
        recording.sample("f", LONG, 5000, thread=1)
        recording.sample("f", 300, 100, thread=2)
        self.assert_sums(recording.sums("f"), 1, 0, [0, 0, 0])

    def test_cpu_streams(self):
        """Each CPU has a stream of its own; threads do not."""
        recording = started()
        recording.sample("h", LONG, cpu=1)
        recording.sample("f", LONG, 5000, cpu=0, thread=1)
        recording.sample("g", LONG, 5000, cpu=1, thread=2)
        recording.sample("f", 300, 100, 1, cpu=0, thread=1)
        recording.sample("g", 300, 200, 2, cpu=1, thread=2)
        recording.sample("g", LONG, 5000, cpu=0, thread=3)
        recording.sample("g", 300, 300, 3, cpu=0, thread=3)
        self.assert_sums(recording.sums("f"), 1, 1, [300, 100, 1])
        self.assert_sums(recording.sums("g"), 2, 2, [600, 500, 5])

    def test_thread_streams(self):
        """Inherited counts: threads have streams of their own under one sample id."""
        recording = started(inherit=1)
        for thread in 1, 2:
            recording.sample("h", LONG, thread=thread)
        recording.sample("f", LONG, thread=1)
        recording.sample("g", LONG, thread=2)
        recording.sample("f", 300, 100, 1, thread=1)
        recording.sample("g", 300, 200, 2, thread=2)
        recording.sample("f", 300, 100, 1, thread=3)  # opens the third stream
        self.assert_sums(recording.sums("f"), 1, 1, [300, 100, 1])
        self.assert_sums(recording.sums("g"), 1, 1, [300, 200, 2])

    def test_throttled(self):
        """Throttling or its end between two samples discards a window, but not in other streams."""
        for handler in "throttle", "unthrottle":
            for sample_id, matched in ((1, 0), (101, 1), (77, 1)):
                recording = started()
                recording.sample("h", LONG, cpu=1)
                recording.sample("f", LONG)
                getattr(recording.collector, handler)(5, sample_id, sample_id, 0, 9, 9)
                recording.sample("f", 300, 100, 1)
                self.assert_sums(
                    recording.sums("f"), 1, matched, [300, 100, 1] if matched else [0, 0, 0]
                )

    def test_throttled_thread(self):
        """With inherited counts, any thread of the leader may have been throttled."""
        recording = started(inherit=1)
        recording.sample("f", LONG, thread=4)
        recording.collector.throttle(5, 1, 1, 0, 9, 9)
        recording.sample("f", 300, 100, 1, thread=4)
        self.assert_sums(recording.sums("f"), 1, 0, [0, 0, 0])

    def test_throttled_before(self):
        """Throttling before the long sample or after the window does not discard the window."""
        recording = started()
        recording.collector.throttle(5, 1, 1, 0, 9, 9)
        recording.pair("f", 300, 100, 1)
        recording.collector.throttle(6, 1, 1, 0, 9, 9)
        self.assert_sums(recording.sums("f"), 1, 1, [300, 100, 1])

    def test_lost(self):
        """A lost record may be of any stream, whatever its ids say."""
        for sample_id in 1, 101, 77, 0:
            recording = started()
            recording.sample("h", LONG, cpu=1)
            recording.sample("f", LONG)
            recording.sample("f", LONG, cpu=1)
            recording.collector.lost(5, sample_id, 3, 0, 9, 9)
            recording.sample("f", 300, 100, 1)
            recording.sample("f", 300, 100, 1, cpu=1)
            self.assert_sums(recording.sums("f"), 2, 0, [0, 0, 0])
            recording.pair("f", 300, 100, 1)
            self.assert_sums(recording.sums("f"), 3, 1, [300, 100, 1])

    def test_lost_total(self):
        """The total that perf record writes at its end has no time and discards no window."""
        recording = started()
        recording.sample("f", LONG)
        recording.collector.lost(0, 0, 3, -1, 0, 0)
        recording.sample("f", 300, 100, 1)
        self.assert_sums(recording.sums("f"), 1, 1, [300, 100, 1])

    def test_lost_number(self):
        """perf record tells lost samples a second time, without an id: they are not added."""
        recording = started()
        recording.collector.lost(5, 1, 3, 0, 9, 9)
        recording.collector.lost(6, 1, 4, 0, 9, 9)
        recording.collector.lost(0, 0, 6, 0, 9, 9)
        self.assertTrue(
            any(note.startswith("7 records") for note in fm.notes(recording.collector.table()))
        )

    def test_jitter(self):
        """Intervals that are half shorter or longer than their period are told apart.

        One in 6000 long intervals is so short that the rule takes it for a window. It follows a
        window, so it is unmatched.
        """
        recording = started(jitter=20)
        for length, window in (((LONG + WINDOW) // 2, 450), (LONG * 3 // 2, 150), (LONG, 301)):
            recording.sample("f", length, 9999, 99)
            recording.sample("f", window, window // 2, 1)
        self.assert_sums(recording.sums("f"), 3, 3, [901, 225 + 75 + 150, 3])

    def test_no_alternate_period(self):
        """A plain recording: each interval is a window; auto counts them all."""
        for share, f, g in (("auto", 2, 2), ("none", 2, 2), ("discard", 1, 1)):
            recording = Feed(share)
            recording.group(*GROUP, period=300, alternate=0)
            recording.sample("f", 300, 100, 1)  # opens the stream
            recording.sample("f", 310, 110, 2)  # f after f
            recording.sample("g", 320, 120, 3)  # g after f
            recording.sample("g", 330, 130, 4)  # g after g
            recording.sample("f", 340, 140, 5)  # f after g
            counts = {1: [310, 110, 2], 2: [650, 250, 7]}
            self.assert_sums(recording.sums("f"), 2, f, counts[f], elsewhere=f - 1)
            counts = {1: [330, 130, 4], 2: [650, 250, 7]}
            self.assert_sums(recording.sums("g"), 2, g, counts[g], elsewhere=g - 1)

    def test_equal_periods(self):
        """alt-period=period,alt-period-jitter=N is a plain recording with a random period."""
        recording = Feed("auto")
        recording.group(*GROUP, period=300, alternate=300, jitter=6)
        for count in 300, 250, 350:
            recording.sample("f", count, 100, 1)
        self.assert_sums(recording.sums("f"), 2, 2, [600, 200, 2])

    def test_longer_alternate_period(self):
        """The window is the shorter of the two."""
        recording = started(period=WINDOW, alternate=LONG)
        recording.pair("f", 310, 100, 3)
        self.assert_sums(recording.sums("f"), 1, 1, [310, 100, 3])

    def test_no_alternate_period_break(self):
        """No share mode counts an interval with a throttle or lost record in it."""
        for share in "auto", "none", "discard":
            for handler in "throttle", "unthrottle", "lost":
                recording = Feed(share)
                recording.group(*GROUP, period=300, alternate=0)
                recording.sample("f", 300, 100, 1)
                getattr(recording.collector, handler)(5, 1, 1, 0, 9, 9)
                recording.sample("f", 310, 110, 2)
                recording.sample("f", 320, 120, 3)
                self.assert_sums(recording.sums("f"), 2, 1, [320, 120, 3])

    def test_share_none_break(self):
        """Share mode none leaves out an interval over a throttle or lost record, too."""
        recording = started("none")
        recording.sample("f", LONG)
        recording.collector.throttle(5, 1, 1, 0, 9, 9)
        recording.sample("f", 300, 100, 1)
        recording.sample("g", 300, 100, 1)  # a window after a window
        self.assert_sums(recording.sums("f"), 1, 0, [0, 0, 0])
        self.assert_sums(recording.sums("g"), 1, 1, [300, 100, 1], elsewhere=1)

    def test_frequency(self):
        """A recording with a frequency has no period at all: it is a plain one."""
        recording = Feed()
        recording.group(*GROUP, period=0, alternate=0)
        recording.sample("f", 1, 1)
        recording.sample("f", 123456, 100, 1)
        self.assert_sums(recording.sums("f"), 1, 1, [123456, 100, 1])

    def test_share_none(self):
        """Every window counts for the function at its end; long intervals never do."""
        recording = started("none")
        recording.sample("f", LONG, 5000)
        recording.sample("g", 300, 100, 1)
        recording.pair("g", 310, 110, 2)
        self.assert_sums(recording.sums("g"), 2, 2, [610, 210, 3], elsewhere=1)
        self.assertIsNone(recording.sums("f"))

    def test_old_perf_without_fields(self):
        """A perf which knows no alternate period hands out attrs without it."""
        recording = Feed()
        old = {
            key: value for key, value in attr(sample_period=300).items() if "alternat" not in key
        }
        recording.collector.evsel_table(1, "cycles")
        recording.collector.attr_table(1, 1, old)
        recording.sample("f", 300)
        recording.sample("f", 300)
        self.assertEqual(recording.sums("f", ("cycles",)).matched, 1)

    def test_many_windows(self):
        """More windows than are kept at a time: sums are exact, products too."""
        recording = started()
        number = 2 * fm.BATCH + 3
        for _ in range(number):
            recording.pair("f", 300, 7, 2)
            group = recording.collector.groups[1]
            for part in group.matched, group.single:
                self.assertLessEqual(len(part.kept[recording.FUNCTIONS["f"]]), fm.BATCH)
        sums = recording.sums("f")
        self.assert_sums(sums, number, number, [300 * number, 7 * number, 2 * number])
        self.assertEqual(sums.product("instructions", "cycles"), 2100 * number)
        self.assertEqual(sums.product("branch-misses", "branch-misses"), 4 * number)

    def test_endless_burst(self):
        """More windows in one burst than are kept at a time: it is one in the products."""
        recording, number = started("auto"), 2 * fm.BATCH + 3
        for place in range(number + 1):
            recording.sample("f", 300, place, 2)
        recording.sample("g", 300, 5, 2)
        bursts = {
            "f": [300 * number, (number + 1) * number // 2, 2 * number],
            "begun": [300 * (number + 1), (number + 1) * number // 2 + 5, 2 * number + 2],
        }
        sums = recording.sums("f")
        self.assert_sums(sums, number + 1, number, bursts["f"])
        for one, counts in ((sums, bursts["f"]), (sums.begun, bursts["begun"])):
            self.assertEqual(one.bursts, 1)
            for i, event in enumerate(GROUP):
                self.assertEqual(one.product(event, event), counts[i] ** 2)
        recording.pair("f", 300, 0, 0)
        self.assertEqual(
            recording.sums("f").product("cycles", "cycles"), (300 * number) ** 2 + 300**2
        )
        ((windows, _),) = recording.collector.table().intervals.values()
        self.assertEqual(windows.matched, number + 3)
        self.assertEqual(windows.product("cycles", "cycles"), 300**2 * (number + 3))
        self.assertEqual(
            windows.product("instructions", "instructions"),
            sum(place**2 for place in range(number + 1)) + 25,
        )

    def test_counts_backwards(self):
        """A counter that was reset (the difference is negative) is no window."""
        recording = started()
        recording.sample("f", LONG)
        recording.raw_sample(1, -5, 1)
        self.assertIsNone(recording.sums("f"))

    def test_two_groups(self):
        """Groups have streams of their own, even when their samples interleave."""
        recording = started()
        second = ("cycles", "cache-references", "cache-misses")
        leader = recording.group(*second)
        recording.sample("h", LONG, leader=leader)
        recording.sample("f", LONG, 5000)
        recording.sample("g", LONG, 5000, 50, leader=leader)
        recording.sample("f", 300, 100, 1)
        recording.sample("g", 310, 20, 2, leader=leader)
        self.assert_sums(recording.sums("f"), 1, 1, [300, 100, 1])
        self.assertIsNone(recording.sums("g"))
        sums = recording.sums("g", second)
        self.assertEqual(
            (sums.samples, sums["cycles"], sums["cache-references"], sums["cache-misses"]),
            (1, 310, 20, 2),
        )


class Opened(unittest.TestCase):
    """Share mode auto: samples that end a long interval."""

    def opened(self, recording):
        """The number of samples that end a long interval, by function with sums."""
        groups = recording.collector.table().functions
        return {key.symbol: sums.opened for key, value in groups.items() for sums in value.values()}

    def test_what_opens(self):
        """The first sample of a stream does, and so does each sample that ends no window."""
        recording = started("auto")
        recording.pair("f", 300, 100, 1)
        recording.sample("g", LONG, 5000)
        recording.sample("f", 300, 100, 1)
        recording.sample("h", 300, 100, 1)  # a burst
        self.assertEqual(self.opened(recording), {"h": 1, "f": 1, "g": 1})
        recording.sample("f", 299, 100, 1, cpu=1)  # as with jitter
        self.assertEqual(self.opened(recording), {"h": 1, "f": 2, "g": 1})

    def test_after_a_loss(self):
        """A sample that ends a long interval opens a window, whatever was lost."""
        recording = started("auto")
        recording.sample("f", 300, 100, 1)
        recording.collector.lost(5, 1, 3, 0, 9, 9)
        recording.pair("f", 300, 100, 1)
        self.assertEqual(self.opened(recording), {"h": 1, "f": 1})

    def test_address_0(self):
        """A sample at address 0 counts for the row that shows it."""
        recording = started("auto")
        recording.sample("f", LONG, 5000, ip=0)
        self.assertEqual(self.opened(recording), {"h": 1, "f": 1})

    def test_other_modes(self):
        """Nothing is opened, and functions without a window have no row."""
        for share, options in (("discard", {}), ("none", {}), ("auto", {"alternate": 0})):
            recording = started(share, **options)
            recording.pair("f", 300, 100, 1)
            with self.subTest(share=share):
                self.assertEqual(self.opened(recording), {"f": 0})

    def test_shares(self):
        """Shares are those of the opened samples, times the rate of the matched windows.

        That holds even where CPI is that of all windows that begin in the function, as in f.
        """
        recording = started("auto")
        for _ in range(3):
            recording.pair("f", 300, 150)
            recording.pair("g", 300, 600)
        for _ in range(3):
            recording.sample("f", LONG)
            recording.sample("g", 300, 90)
        recording.sample("h", LONG)
        table = recording.collector.table()
        values = table.values(table.metrics())
        shares = {
            column: {key.symbol: row[column].value for key, row in values.items()}
            for column in ("%CY", "%I")
        }
        # no window begins in h, so it has the rate of all: 2520 instructions in 2700 cycles
        for function, opened in (("f", 6), ("g", 3), ("h", 2)):
            self.assertAlmostEqual(shares["%CY"][function], 100 * opened / 11)
        whole = 6 * 0.5 + 3 * 2 + 2 * 2520 / 2700
        self.assertAlmostEqual(shares["%I"]["f"], 300 / whole)
        self.assertAlmostEqual(shares["%I"]["g"], 600 / whole)
        self.assertIsNone(shares["%I"]["h"])


class Begun(unittest.TestCase):
    """Share mode auto: windows count for the function in which they begin, too."""

    AUTO = ("cycles", "instructions")

    def assert_begun(self, recording, function, bursts, windows):
        """bursts: their counts, none if no window has begun; windows: the number in all bursts."""
        begun = (recording.sums(function) or fm.Sums()).begun
        self.assertEqual(begun is None, not bursts)
        if not bursts:
            return
        self.assertEqual(
            (begun.samples, begun.matched, begun.discarded, begun.bursts),
            (windows, windows, 0, len(bursts)),
        )
        for i, one in enumerate(GROUP):
            self.assertEqual(begun[one], sum(burst[i] for burst in bursts))
            for j, other in enumerate(GROUP):
                with self.subTest(one=one, other=other):
                    products = sum(burst[i] * burst[j] for burst in bursts)
                    self.assertEqual(begun.product(one, other), products)

    def test_bursts(self):
        """f f g g f h h: a run in f includes the window that leaves f, which is not matched."""
        recording = started("auto")
        recording.sample("f", LONG, 5000, 50)
        for function, *counts in (
            ("f", 310, 100, 1),
            ("f", 290, 0, 2),
            ("g", 300, 50, 0),
            ("g", 305, 7, 3),
            ("f", 295, 9, 0),
            ("h", 300, 11, 1),
            ("h", 301, 12, 0),
        ):
            recording.sample(function, *counts)
        recording.sample("f", LONG, 5000, 50)
        recording.sample("f", 300, 8, 2)
        self.assert_begun(
            recording, "f", [(310 + 290 + 300, 150, 3), (300, 11, 1), (300, 8, 2)], windows=5
        )
        self.assert_begun(recording, "g", [(305 + 295, 16, 3)], windows=2)
        self.assert_begun(recording, "h", [(301, 12, 0)], windows=1)
        sums = recording.sums("f")
        self.assertEqual((sums.samples, sums.matched, sums.bursts), (4, 3, 2))
        self.assertEqual(sums.product("cycles", "cycles"), 600**2 + 300**2)
        self.assertEqual([sums[event] for event in GROUP], [900, 108, 5])

    def test_what_ends_a_run(self):
        """A run ends with a long interval, or a window over a throttle record, counted nowhere."""
        recording = started("auto")
        recording.pair("f", 300, 1, 1)
        recording.pair("f", 301, 2, 2)
        recording.collector.throttle(5, 1, 1, 0, 9, 9)
        recording.sample("f", 302, 3, 3)
        recording.sample("f", 303, 4, 4)
        self.assert_begun(recording, "f", [(300, 1, 1), (301, 2, 2), (303, 4, 4)], windows=3)
        recording.collector.lost(6, 1, 3, 0, 9, 9)
        recording.sample("g", 304, 5, 5)
        self.assert_begun(recording, "f", [(300, 1, 1), (301, 2, 2), (303, 4, 4)], windows=3)
        self.assert_begun(recording, "g", [], windows=0)

    def test_other_thread(self):
        """A window that ends in another thread counts for no function in which it begins."""
        recording = started("auto")
        recording.sample("f", LONG, 5000, thread=1)
        recording.sample("g", 300, 100, thread=2)
        for function in "fg":
            self.assert_begun(recording, function, [], windows=0)

    def test_address_0(self):
        """A window that begins at address 0 counts for no function, one that ends there does."""
        for first, second, bursts in (
            (0, 0x1000, []),
            (0x1000, 0, [(300, 100, 1)]),
            (0, 0, []),
        ):
            recording = started("auto")
            recording.sample("f", LONG, 5000, 50, ip=first)
            recording.sample("f", 300, 100, 1, ip=second)
            with self.subTest(first=first, second=second):
                self.assert_begun(recording, "f", bursts, windows=1)

    def test_other_modes(self):
        """No window counts where it begins; mode none has their number, of those that end there."""
        for share, options in (("discard", {}), ("none", {}), ("auto", {"alternate": 0})):
            recording = started(share, **options)
            for function in "ffgf":
                recording.sample(function, 300, 100, 1)
            for function in "fgh":
                with self.subTest(share=share, function=function):
                    begun = (recording.sums(function) or fm.Sums()).begun or fm.Sums()
                    inside = int(function == "f" and share != "discard")
                    self.assertEqual(begun, fm.Sums(matched=inside))

    def test_many_windows(self):
        """There may be more windows than are kept at a time."""
        recording = started("auto")
        number = fm.BATCH + 3
        for _ in range(number):
            recording.pair("f", 300, 7, 2)
            recording.sample("g", 301, 6, 1)
        self.assert_begun(recording, "f", [(601, 13, 3)] * number, windows=2 * number)

    def values(self, matched, begun):
        """The values of f: so many matched windows of CPI 2, so many of CPI 3 that begin in it.

        The windows of another function g all stay in it and have CPI 1.
        """
        table = fm.Table()
        table.groups = [fm.GroupInfo(self.AUTO, "auto", LONG, 0, WINDOW, 0, 0, True)]
        for name, numbers in (("f", ((matched, 150), (begun, 100))), ("g", ((9, 300), (9, 300)))):
            sums, others = (
                sums_of(self.AUTO, [(300, instructions)] * windows)
                for windows, instructions in numbers
            )
            sums.begun, sums.opened = others if others.matched else None, 10
            table.add(fm.Function(name, ""), self.AUTO, sums)
        values = table.values(table.metrics())
        return {column: value.value for column, value in values[fm.Function("f", "")].items()}

    def test_function_that_stays(self):
        """Its rates are those of the matched windows, if these are 90 % of those that begin. Its
        shares are by the matched windows in any case."""
        for matched, begun, cpi in ((9, 10, 2), (8, 10, 3), (90, 100, 2), (89, 100, 3), (9, 0, 2)):
            values = self.values(matched, begun)
            with self.subTest(matched=matched, begun=begun):
                self.assertAlmostEqual(values["CPI"], cpi)
                self.assertAlmostEqual(values["%CY"], 50)
                self.assertAlmostEqual(values["%I"], 100 / 3)
                self.assertEqual((values["#"], values["DIS"]), (matched, 0))

    def test_few_matched_windows(self):
        """Fewer than 3 bursts: the share uses the rate of windows that begin, the rate does not."""
        values = self.values(2, 2)
        self.assertAlmostEqual(values["CPI"], 2)
        self.assertAlmostEqual(values["%I"], 100 / 4)
        values = self.values(0, 1)
        self.assertAlmostEqual(values["CPI"], 3)
        self.assertAlmostEqual(values["%I"], 100 / 4)

    def test_discarded(self):
        """Added to sums of share mode discard, sums of auto become sums of discard."""
        recording = started("auto")
        recording.pair("f", 300, 100, 1)
        recording.sample("g", 300, 100, 1)
        other = started("discard")
        other.pair("f", 300, 100, 1)
        both = recording.collector.table() + other.collector.table()
        self.assertTrue(both.was_mixed)
        for groups in both.functions.values():
            for sums in groups.values():
                self.assertIsNone(sums.begun)


class Blocks(unittest.TestCase):
    """Blocks of time, against a calculation from all times at once."""

    PAIRS = [(one, other) for place, one in enumerate(GROUP) for other in GROUP[place:]]

    def block_of(self, times):
        """The block of each time, if the first one is the origin."""
        offsets = [max(time - times[0], 0) for time in times]
        width = next(2**n for n in range(65) if all(offset // 2**n < 20 for offset in offsets))
        return {time: offset // width for time, offset in zip(times, offsets)}

    def assert_blocks(self, sums, block_of, windows):
        """The sums are those of windows, each with its time and its counts."""
        totals = {}
        for time, *counts in windows:
            before = totals.setdefault(block_of[time], (0, 0, 0))
            totals[block_of[time]] = tuple(map(sum, zip(before, counts)))
        self.assertEqual(sums.blocks, len(totals))
        for i, one in enumerate(GROUP):
            for j, other in enumerate(GROUP):
                product = sum(total[i] * total[j] for total in totals.values())
                pair = min(one, other), max(one, other)
                self.assertEqual(sums.block_products.get(pair, 0), product, pair)

    def test_width(self):
        """There are at most twenty blocks; their width is the shortest power of two for that."""
        for span, blocks in (
            (0, [0]),
            (19, [0, 9, 19]),
            (20, [0, 5, 10]),
            (39, [0, 9, 19]),
            (40, [0, 5, 10]),
            (10**12, [0, 7, 14]),
            (2**64 - 1, [0, 7, 15]),
        ):
            recording, times = Feed(), [0, span // 2, span]
            recording.group(*GROUP)
            # another width would have them in other blocks
            times += [span // 2 + 1, max(span - 1, 0)]
            windows = []
            for number, time in enumerate(times):
                windows.append((time, 300 + number, 100, 1))
                recording.pair("f", *windows[-1][1:], time=time)
            with self.subTest(span=span):
                block_of = self.block_of(times)
                self.assertEqual([*dict.fromkeys(block_of[time] for time in times[:3])], blocks)
                self.assert_blocks(recording.sums("f"), block_of, windows)

    def test_random(self):
        """Windows in any order make the blocks that the last width makes."""
        draw = random.Random(3)
        for share, spread, order in (
            ("auto", 3, sorted),
            ("discard", 10**4, sorted),
            ("auto", 10**7, sorted),
            ("auto", 10**7, list),
        ):
            recording, times = Feed(share), [5000]
            recording.group(*GROUP)
            recording.sample("h", LONG, 7, 7, time=5000)
            matched, begun, opened = {}, {}, {"h": [5000]}
            stamps = order(draw.randrange(5000, 5000 + 600 * spread) for _ in range(600))
            place = "h"
            for number, time in enumerate(stamps):
                before = place
                place = draw.choice(["f", "g", "h", before, before])
                times.append(time)
                if not number % 4:
                    opened.setdefault(place, []).append(time)
                    recording.sample(place, LONG, 5000, 50, time=time)
                    continue
                counts = 300 + draw.randrange(9), draw.randrange(500), draw.randrange(2)
                recording.sample(place, *counts, time=time)
                begun.setdefault(before, []).append((time, *counts))
                if place == before:
                    matched.setdefault(place, []).append((time, *counts))
            block_of, auto = self.block_of(times), share == "auto"
            every = Counter(block_of[time] for some in opened.values() for time in some)
            for function in "fgh":
                with self.subTest(share=share, spread=spread, function=function):
                    sums = recording.sums(function)
                    self.assert_blocks(sums, block_of, matched[function])
                    self.assertGreater(sums.blocks, 1)
                    self.assertEqual(sums.begun is not None, auto)
                    if not auto:
                        continue
                    self.assert_blocks(sums.begun, block_of, begun[function])
                    own = Counter(block_of[time] for time in opened[function])
                    self.assertEqual(sums.opened, own.total())
                    self.assertEqual(sums.opened_squares, sum(n * n for n in own.values()))
                    self.assertEqual(
                        sums.opened_all, sum(own[block] * every[block] for block in own)
                    )
            for _, long in recording.collector.table().intervals.values():
                self.assertEqual(long.blocks, len(every))

    def test_many_widths(self):
        """Blocks are merged when they are many, and still make those of the last width."""
        recording = started("auto")
        times = [0, *(number << shift for shift in range(50) for number in range(10, 20))]
        windows = [(time, 300, number, 1) for number, time in enumerate(times)]
        for time, *counts in windows:
            recording.pair("f", *counts, time=time)
        group = recording.collector.groups[1]
        for part in group.matched.sums, group.opened:
            for blocks in part.values():
                self.assertLessEqual(len(blocks), 4 * fm.BLOCKS)
        sums, block_of = recording.sums("f"), self.block_of(times)
        self.assert_blocks(sums, block_of, windows)
        own = Counter(block_of[time] for time in times)
        self.assertEqual(sums.opened_squares, sum(number**2 for number in own.values()))

    def test_origin(self):
        """The origin is the first sample of any group, counted or not; earlier samples join it."""
        other = ("cycles", "cache-misses")
        recording = Feed()
        recording.group(*GROUP)
        leader = recording.group(*other)
        recording.collector.evsel_table(9, "faults")
        recording.collector.attr_table(9, 9, attr(1, 2, sample_type=0))
        recording.raw_sample(9, 5, 1, time=50)  # of no group
        recording.sample("h", LONG, leader=leader, time=100)
        recording.sample("h", LONG, time=130)
        times = 90, 139, 140, 119, 103  # blocks of 2: 0, 19, and 20, which makes them of 4
        for time in times:
            recording.sample("f", LONG, time=time)
            recording.sample("f", 300, 100, 1, time=time)
        block_of = self.block_of((100, *times))
        self.assertEqual([*block_of.values()], [0, 0, 9, 10, 4, 0])
        self.assert_blocks(recording.sums("f"), block_of, [(time, 300, 100, 1) for time in times])

    def test_no_time(self):
        """perf gives each sample the largest time, as a signed number: all are in one block."""
        recording = Feed("auto")
        recording.group(*GROUP)
        for count in 300, 310:
            recording.pair("f", count, 100, 1, time=-1)
        sums = recording.sums("f")
        self.assert_blocks(sums, {-1: 0}, [(-1, 300, 100, 1), (-1, 310, 100, 1)])
        self.assertEqual((sums.opened, sums.opened_squares, sums.opened_all), (2, 4, 4))

    def test_late_times(self):
        """Times from 2^63 on are negative numbers here; their distances are right."""
        recording = started(alternate=0)
        for time in (-(2**63), 2**63 - 1):
            recording.sample("h", 300, 1, 1, time=time)
        self.assertEqual(recording.sums("h").blocks, 2)
        recording = Feed()
        recording.group(*GROUP, alternate=0)
        for time in (2**63 - 1, 2**63 - 1, -(2**63), -(2**63) + 18, -1):
            recording.sample("h", 300, 1, 1, time=time)
            if time == -(2**63) + 18:
                self.assertEqual(recording.sums("h").blocks, 3)
        self.assertEqual(recording.sums("h").blocks, 2)

    def test_burst_over_blocks(self):
        """Each window of a burst is in the block where it ends; products have the burst as one."""
        recording = Feed("auto")
        recording.group(*GROUP)
        windows = [(4, 300, 100, 1), (8, 310, 90, 0), (8, 305, 7, 2), (19, 299, 3, 1)]
        recording.sample("f", LONG)
        for time, *counts in windows:
            recording.sample("f", *counts, time=time)
        recording.sample("g", 303, 8, 1, time=19)
        block_of = {time: time for time in range(20)}
        sums = recording.sums("f")
        self.assert_blocks(sums, block_of, windows)
        self.assert_blocks(sums.begun, block_of, [*windows, (19, 303, 8, 1)])
        self.assertEqual((sums.bursts, sums.begun.bursts), (1, 1))
        self.assertEqual(sums.product("cycles", "cycles"), 1214**2)
        self.assertEqual(sums.begun.product("cycles", "cycles"), 1517**2)

    def test_share_none(self):
        """Matched windows are those that end in the function."""
        recording = started("none")
        recording.sample("f", 300, 100, 1, time=3)
        recording.sample("g", 310, 90, 0, time=5)
        recording.sample("f", 305, 80, 0, time=7)
        windows = [(3, 300, 100, 1), (7, 305, 80, 0)]
        self.assert_blocks(recording.sums("f"), {3: 3, 7: 7}, windows)

    def test_groups_of_the_same_events(self):
        """Each group has blocks of its own."""
        recording = Feed("auto")
        leaders = recording.group(*GROUP), recording.group(*GROUP)
        for leader in leaders:
            for count in 300, 310:
                recording.sample("f", LONG, leader=leader)
                recording.sample("f", count, 100, 1, leader=leader)
        sums = recording.sums("f")
        self.assertEqual((sums.matched, sums.blocks), (4, 2))
        self.assertEqual(sums.block_products["cycles", "cycles"], 2 * 610**2)
        self.assertEqual((sums.opened, sums.opened_squares, sums.opened_all), (4, 8, 8))


class AllIntervals(unittest.TestCase):
    """Share mode auto: all intervals of a group, each for itself."""

    def assert_intervals(self, recording, windows, long):
        """The intervals are these, each given by its counts."""
        (told,) = recording.collector.table().intervals.values()
        for sums, intervals in zip(told, (windows, long)):
            self.assertEqual(sums.matched, len(intervals))
            for i, one in enumerate(GROUP):
                self.assertEqual(sums[one], sum(counts[i] for counts in intervals))
                for j, other in enumerate(GROUP):
                    product = sum(counts[i] * counts[j] for counts in intervals)
                    self.assertEqual(sums.product(one, other), product)

    def test_of_all_functions(self):
        """Intervals count wherever they begin and end, and one by one in a burst."""
        recording, windows, long = started("auto"), [], []
        draw = random.Random(4)
        for number in range(200):
            counts = 300 + draw.randrange(20), draw.randrange(200), draw.randrange(3)
            if number % 5 < 2:
                counts = LONG + counts[0], *counts[1:]
            (windows if counts[0] < LONG else long).append(counts)
            recording.sample(draw.choice("ffg"), *counts)
        self.assert_intervals(recording, windows, long)

    def test_many(self):
        """More than are kept at a time."""
        recording = started("auto")
        number = fm.BATCH + 3
        for _ in range(number):
            recording.sample("f", LONG, 5000, 50)
            recording.sample("g", 300, 7, 2)
            recording.sample("g", 301, 6, 1)
        windows = [(300, 7, 2), (301, 6, 1)] * number
        self.assert_intervals(recording, windows, [(LONG, 5000, 50)] * number)

    def test_beginning_that_is_not_known(self):
        """The first interval of each stream is left out."""
        recording = Feed("auto")
        recording.group(*GROUP, inherit=1)
        for thread in 1, 2:
            recording.sample("f", 300, 100, 1, thread=thread)
        self.assert_intervals(recording, [], [])
        recording.sample("f", LONG, 5000, 50, thread=2)
        self.assert_intervals(recording, [], [(LONG, 5000, 50)])

    def test_broken(self):
        """An interval over a throttle record or a loss is left out."""
        for handler in "throttle", "unthrottle", "lost":
            for counts in (300, 100, 1), (LONG, 5000, 50):
                recording = started("auto")
                getattr(recording.collector, handler)(5, 1, 1, 0, 9, 9)
                recording.sample("f", *counts)
                with self.subTest(handler=handler, counts=counts):
                    self.assert_intervals(recording, [], [])
                    recording.sample("f", 300, 100, 1)
                    self.assert_intervals(recording, [(300, 100, 1)], [])

    def test_address_0_and_other_thread(self):
        """These samples name no function, but their intervals are known."""
        recording = started("auto")
        for where in ({"ip": 0}, {}, {"thread": 2}, {"ip": 0}, {"thread": 3, "ip": 0}):
            recording.sample("f", LONG, 5000, 50, **where)
            recording.sample("f", 300, 100, 1, **where)
            recording.sample("g", 301, 90, 0, **where)
        self.assert_intervals(recording, [(300, 100, 1), (301, 90, 0)] * 5, [(LONG, 5000, 50)] * 5)

    def test_count_backwards(self):
        """perf functions takes such a count for what it is modulo 2^64."""
        recording = started("auto")
        recording.raw_sample(1, -5, 1)
        self.assert_intervals(recording, [], [(2**64 - 5, 0, 0)])

    def test_blocks(self):
        """The blocks are those of samples that end a long interval, known or not."""
        recording = Feed("auto")
        recording.group(*GROUP)
        for time in 0, 3, 3, 7, 19:
            recording.sample("f", LONG if time in (3, 7) else 300, 100, 1, time=time)
        ((_, long),) = recording.collector.table().intervals.values()
        self.assertEqual((long.matched, long.blocks), (3, 3))

    def test_other_modes(self):
        """Other share modes have no sums of all intervals."""
        for share, options in (("discard", {}), ("none", {}), ("auto", {"alternate": 0})):
            recording = started(share, **options)
            recording.pair("f", 300, 100, 1)
            with self.subTest(share=share):
                self.assertEqual(recording.collector.table().intervals, {})

    def test_groups_of_the_same_events(self):
        """Their numbers are added; a group in share mode none adds nothing."""
        recording = started("auto")
        recording.group("cycles", "cache-misses")
        for options in ({}, {"alternate": 0}):
            leader = recording.group(*GROUP, **options)
            for _ in "12":
                recording.sample("f", LONG, 5000, 50, leader=leader)
        recording.sample("f", LONG, 5000, 50)
        table = recording.collector.table()
        self.assertEqual(len(table.intervals), 2)
        windows, long = table.intervals[recording.collector.groups[1].key]
        self.assertEqual((windows.matched, long.matched, long.blocks), (0, 2, 2))
        self.assertEqual(long.product("cycles", "cycles"), 2 * LONG**2)


class Files(unittest.TestCase):
    """Sums files."""

    EVENTS = ("cycles", "instructions")
    NAMES = "\t".join(EVENTS)
    GROUP = f"group\tauto\t999700\t0\t300\t0\t0\t1\t{NAMES}"
    INTERVALS = ("windows\t0" + 5 * "\t0", "long\t0\t0" + 5 * "\t0")
    WINDOWS = (1, 2, 3, 4, 5)  # totals and products, of matched windows or those that begin
    BLOCKS = (6, 7, 8)  # products of blocks
    NONE = 8 * (0,)

    def read_lines(self, *lines, share="auto", version=4):
        """The table in a file of one group."""
        group = self.GROUP.replace("auto", share)
        if version < 4:
            group = f"group\t{share}\t999700\t300\t0\t1\t{self.NAMES}"
        return fm.read_sums([group, *lines], version)

    def read(self, *numbers, share="auto", version=4):
        """The sums of a function in a file with such numbers."""
        line = "\t".join(("sums", "f", "/x", "-", *map(str, numbers)))
        lines = [*self.INTERVALS, line] if share == "auto" else [line]
        (groups,) = self.read_lines(*lines, share=share, version=version).functions.values()
        return groups[self.EVENTS]

    def test_written(self):
        """A written file is read as the same sums, which print the same JSON."""
        recording = started("auto")
        for function, time in zip("ffgfgg", (3, 3, 3, 5, 5, 7)):
            recording.pair(function, 300, 100, 1, time=time)
            recording.sample("g", 301, 99, 0, time=9 if time == 3 else time)
        table, text = recording.collector.table(), io.StringIO()
        fm.write_sums(table, text)
        first, *lines = text.getvalue().split("\n")
        self.assertEqual(first, "perf-function-sums 4")
        again, copy, printed = fm.read_sums(lines[:-2], 4), io.StringIO(), []
        fm.write_sums(again, copy)
        self.assertEqual(copy.getvalue(), text.getvalue())
        for one in table, again:
            printed.append(io.StringIO())
            fm.print_json(fm.sorted_rows(one.values(one.metrics()), "#"), one, printed[-1])
        self.assertEqual(printed[1].getvalue(), printed[0].getvalue())
        data = json.loads(printed[0].getvalue())
        (sums,) = next(row["sums"] for row in data["functions"] if row["symbol"] == "f")
        begun = sums["begun"]
        self.assertEqual((begun["windows"], begun["bursts"], begun["blocks"]), (6, 3, 3))
        self.assertEqual(begun["totals"], {"cycles": 1803, "instructions": 597, "branch-misses": 3})
        self.assertEqual(begun["products"]["cycles*cycles"], 3 * 601**2)
        self.assertEqual(begun["block_products"]["cycles*cycles"], 600**2 + 602**2 + 601**2)
        self.assertEqual(sums["blocks"], 2)
        self.assertEqual(sums["block_products"]["cycles*instructions"], 600 * 200 + 300 * 100)
        numbers = next(line.split("\t") for line in lines if line.startswith("sums\tf\t"))
        # after the address: opened; samples, matched, bursts, blocks; begun, bursts, blocks
        self.assertEqual([*map(int, numbers[4:12])], [3, 3, 3, 3, 2, 6, 3, 3])
        self.assertEqual([*map(int, numbers[-2:])], [5, 8])
        self.assertEqual((sums["opened_squares"], sums["opened_all"]), (5, 8))
        (intervals,) = data["intervals"]
        self.assertEqual(intervals["events"], sums["events"])
        windows, long = intervals["windows"], intervals["long"]
        self.assertEqual((windows["number"], long["number"], long["blocks"]), (12, 6, 4))
        self.assertEqual(windows["totals"]["cycles"], 6 * 601)
        self.assertEqual(windows["products"]["cycles*cycles"], 6 * (300**2 + 301**2))
        self.assertEqual(long["products"]["branch-misses*cycles"], 6 * 50 * LONG)

    def test_other_modes(self):
        """A file without share mode auto has no line of intervals, and JSON an empty list."""
        recording, text = started("none"), io.StringIO()
        recording.pair("f", 300, 100, 1)
        table = recording.collector.table()
        fm.write_sums(table, text)
        words = [line.partition("\t")[0] for line in text.getvalue().splitlines()[1:]]
        self.assertEqual(words, ["by", "lost", "throttled", "group", "sums", "end"])
        text = io.StringIO()
        fm.print_json([], table, text)
        self.assertEqual(json.loads(text.getvalue())["intervals"], [])

    def test_numbers(self):
        """Their order: opened; samples, matched, bursts, blocks; begun, their bursts and blocks;
        totals, products and those of blocks of each; opened squares, opened by all."""
        sums = self.read(9, 5, 4, 3, 2, 8, 7, 6, *range(10, 18), *range(20, 28), 30, 31)
        pairs = [("cycles", "cycles"), ("cycles", "instructions"), ("instructions",) * 2]
        begun = fm.Sums(
            8,
            8,
            0,
            {"cycles": 20, "instructions": 21},
            dict(zip(pairs, (22, 23, 24))),
            7,
            blocks=6,
            block_products=dict(zip(pairs, (25, 26, 27))),
        )
        expected = fm.Sums(
            5,
            4,
            1,
            {"cycles": 10, "instructions": 11},
            dict(zip(pairs, (12, 13, 14))),
            3,
            9,
            begun,
            2,
            dict(zip(pairs, (15, 16, 17))),
            30,
            31,
        )
        self.assertEqual(sums, expected)

    def test_intervals(self):
        """Windows have their number, totals and products; long intervals have the blocks, too."""
        table = self.read_lines("windows\t9\t1\t2\t3\t4\t5", "long\t8\t7\t1\t2\t3\t4\t6")
        windows, long = table.intervals[self.EVENTS]
        self.assertEqual((windows.matched, long.matched, long.blocks), (9, 8, 7))
        for sums, last in ((windows, 5), (long, 6)):
            self.assertEqual([sums[event] for event in self.EVENTS], [1, 2])
            self.assertEqual(sums.product("cycles", "instructions"), 4)
            self.assertEqual(sums.product("instructions", "instructions"), last)

    def test_version_3(self):
        """Windows are their own bursts, none begin, and the recording is one block."""
        sums = self.read(5, 4, 10, 11, 12, 13, 14, share="discard", version=3)
        self.assertEqual(
            (sums.opened, sums.samples, sums.matched, sums.bursts, sums.begun), (0, 5, 4, 4, None)
        )
        self.assertEqual(sums.product("instructions", "instructions"), 14)
        self.assertEqual(sums.blocks, 1)
        self.assertEqual([*sums.block_products.values()], [100, 110, 121])

    def test_blocks_of_version_3(self):
        """Without windows there are no blocks; they are unknown if a total may be of several."""
        sums = self.read(5, 0, 0, 0, 0, 0, 0, share="none", version=3)
        self.assertEqual((sums.blocks, any(sums.block_products.values())), (0, False))
        for cycles, blocks in ((2**64 - 1, 1), (2**64, 0)):
            numbers = 5, 4, cycles, 11, 12, 13, 14
            sums = self.read(*numbers, share="discard", version=3)
            self.assertEqual(sums.blocks, blocks)
            products = cycles**2 * blocks, 11 * cycles * blocks, 121 * blocks
            self.assertEqual([*sums.block_products.values()], [*products])

    def test_refused(self):
        """Numbers that no program writes."""
        sums, none = (*self.WINDOWS, *self.BLOCKS), self.NONE
        # neither the matched windows nor those that begin are a part of the other
        self.read(9, 5, 4, 3, 2, 2, 1, 1, *sums, *sums, 7, 7)
        self.read(9, 5, 4, 3, 2, 0, 0, 0, *sums, *none, 7, 7)
        self.read(9, 5, 4, 3, 0, 2, 1, 0, *self.WINDOWS, 0, 0, 0, *self.WINDOWS, 0, 0, 0, 7, 7)
        self.read(0, 5, 4, 3, 2, 0, 0, 0, *sums, *none, 0, 0, share="discard")
        self.read(0, 5, 4, 3, 0, 0, 0, 0, *self.WINDOWS, 0, 0, 0, *none, 0, 0, share="none")
        for share, numbers in (
            ("auto", (9, 5, 4, 3, 2, 0, 0, 0, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 0, 0, 0, *sums, *none[1:], 1, 7, 7)),
            ("auto", (9, 5, 0, 0, 0, 2, 1, 1, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 0, 0, 0, 2, 1, 1, *self.WINDOWS, 0, 0, 0, *sums, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 2, 3, 1, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 2, 0, 1, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 0, 1, 0, *sums, *none, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 2, 1, 3, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 2, 1, 0, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 0, 0, 1, *sums, *none, 7, 7)),
            ("auto", (9, 5, 4, 5, 2, 2, 1, 1, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 4, 0, 2, 2, 1, 1, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 4, 3, 5, 2, 1, 1, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 4, 3, 0, 2, 1, 1, *sums, *sums, 7, 7)),
            ("auto", (9, 3, 4, 3, 2, 2, 1, 1, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 2, 1, 1, *sums, *sums, 7, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 2, 1, 1, *sums, *sums, 7, 7, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 2, 1, 1, *sums, *sums, 7)),
            ("auto", (9, 5, 4, 3, 2, 2, 1, 1, *sums, *sums)),
            ("auto", (9, 5, 4, 3, 2, 2, 1, 1, *self.WINDOWS, *self.WINDOWS, 7, 7)),
            ("auto", (9, 5, 4, 3, 2)),
            ("auto", ()),
            ("auto", (9, 5, 4, 3, 2, 2, 1, 1, *sums, *sums, 7, 2**192)),
            ("auto", (2**64, 5, 4, 3, 2, 2, 1, 1, *sums, *sums, 7, 7)),
            ("auto", (9, 2**64, 4, 3, 2, 2, 1, 1, *sums, *sums, 7, 7)),
            ("auto", (9, 5, 4, 3, 2, 2**64, 1, 1, *sums, *sums, 7, 7)),
            ("discard", (1, 5, 4, 3, 2, 0, 0, 0, *sums, *none, 0, 0)),
            ("discard", (0, 5, 4, 3, 2, 2, 1, 1, *sums, *sums, 0, 0)),
            ("discard", (0, 5, 4, 3, 2, 0, 0, 0, *sums, *none, 1, 0)),
            ("discard", (0, 5, 4, 3, 2, 0, 0, 0, *sums, *none, 0, 1)),
            ("none", (0, 5, 4, 3, 2, 2, 1, 1, *sums, *sums, 0, 0)),
        ):
            with self.subTest(share=share, numbers=numbers), self.assertRaises(ValueError):
                self.read(*numbers, share=share)

    def test_refused_intervals(self):
        """Lines that are missing, that are where they do not belong, or have other numbers."""
        windows, long = self.INTERVALS
        row = "\t".join(("sums", "f", "/x", "-", *map(str, (9, *(0,) * 25))))
        self.read_lines(windows, long, row)
        self.read_lines(windows, long, self.GROUP.replace("300", "400"), row)
        self.read_lines(self.GROUP.replace("auto", "none"), self.GROUP, windows, long, share="none")
        for share, lines in (
            ("auto", [row]),
            ("auto", []),
            ("auto", [windows, row]),
            ("auto", [long, row]),
            ("auto", [long, windows, row]),
            ("auto", [row, windows, long]),
            ("auto", ["lost\t0", windows, long]),
            ("auto", [windows, "lost\t0", long]),
            ("auto", [windows, windows, long]),
            ("auto", [windows, long, long]),
            ("auto", [windows, long, windows, long]),
            ("auto", [windows, long, self.GROUP, windows, long]),
            ("auto", [windows, long, self.GROUP.replace("instructions", "faults"), row]),
            ("discard", [windows, long]),
            ("discard", [windows, long, self.GROUP]),
            ("auto", [windows + "\t0", long]),
            ("auto", [windows, long + "\t0"]),
            ("auto", [windows[:-2], long]),
            ("auto", [windows, long[:-2]]),
            ("auto", ["windows", long]),
            ("auto", [windows, "long"]),
            ("auto", [windows, "long\t0"]),
            ("auto", [windows[:-1] + "1", long]),  # a total without a window
            ("auto", [windows, long[:-1] + "1"]),
            ("auto", [windows.replace("0", str(2**64), 1), long]),
            ("auto", [windows, long.replace("0\t0", f"0\t{2**64}", 1)]),
            ("auto", [windows.replace("0\t0", f"1\t{2**192}", 1), long]),
        ):
            with self.subTest(share=share, lines=lines), self.assertRaises(ValueError):
                self.read_lines(*lines, share=share)
        with self.assertRaises(ValueError):
            self.read_lines(windows, long, share="discard", version=3)

    def test_too_large(self):
        """Sums that a file cannot have do not add up."""
        windows, long = self.INTERVALS

        def row(place, number):
            """A line of sums with one value replaced."""
            values = [number if place == other else 1 for other in range(18)]
            return "\t".join(("sums", "f", "/x", "-", *map(str, (9, 5, 4, 3, 2, 2, 1, 1, *values))))

        small = [windows, long, row(0, 1)]
        for lines in (
            ["windows\t1" + 5 * f"\t{2**191}", long],
            [f"windows\t{2**63}" + 5 * "\t1", long],
            [windows, "long\t1\t1" + 5 * f"\t{2**191}"],
            [windows, f"long\t{2**63}\t1" + 5 * "\t1"],
            [windows, f"long\t1\t{2**63}" + 5 * "\t1"],
            *([windows, long, row(place, 2**191)] for place in range(18)),
        ):
            tables = [(name, self.read_lines(*lines)) for name in "ab"]
            with self.subTest(lines=lines):
                fm.add_up([tables[0], ("c", self.read_lines(*small))])
                with self.assertRaisesRegex(SystemExit, "b: cannot be added .*too large"):
                    fm.add_up([("a", self.read_lines(*lines)), tables[1]])


class Functions(unittest.TestCase):
    """The definition of a function."""

    def table(self, *places, symbols=(), dsos=()):
        """One matched window in each place, a (symbol, dso, ip)."""
        recording = started()
        for dso in dsos:
            recording.collector.dso_table(*dso)
        for symbol in symbols:
            recording.collector.symbol_table(*symbol)
        for symbol, dso, ip in places:
            recording.raw_sample(1, LONG, symbol, dso=dso, ip=ip)
            recording.raw_sample(1, 300, symbol, dso=dso, ip=ip)
        return recording.collector.table()

    def test_same_name_in_two_dsos(self):
        """Two rows, which show the DSO: by its file name or, if need be, its path."""
        table = self.table(
            (11, 11, 0),
            (12, 12, 0),
            (13, 13, 0),
            (1, 1, 0),
            dsos=(
                (11, 1, "liba.so", "/lib/liba.so", ""),
                (12, 1, "libb.so", "/lib/libb.so", ""),
                (13, 1, "libb.so", "/opt/libb.so", ""),
            ),
            symbols=(
                (11, 11, 16, 32, 1, "same"),
                (12, 12, 16, 32, 1, "same"),
                (13, 13, 16, 32, 1, "same"),
            ),
        )
        self.assertEqual(
            sorted(fm.labels(table.functions).values()),
            ["f", "same [/lib/libb.so]", "same [/opt/libb.so]", "same [liba.so]"],
        )

    def test_same_name_in_one_dso(self):
        """Two static functions of one name: two rows, told apart by their addresses."""
        table = self.table(
            (11, 1, 0),
            (12, 1, 0),
            symbols=((11, 1, 0x10, 0x20, 0, "same"), (12, 1, 0x30, 0x40, 0, "same")),
        )
        self.assertEqual(sorted(fm.labels(table.functions).values()), ["same 0x10", "same 0x30"])

    def test_no_symbol(self):
        """perf makes an empty symbol of the address: each address is a function."""
        table = self.table(
            (11, 1, 0x410),
            (12, 1, 0x420),
            (13, 1, 0x430),
            (14, 1, 0x440),
            symbols=(
                (11, 1, 0x10, 0x10, 0, "unknown"),
                (12, 1, 0x20, 0x20, 0, "unknown"),
                (13, 1, 0x30, 0x38, 0, "unknown"),
                (14, 1, 0x40, 0x40, 0, "label"),
            ),
        )
        self.assertEqual(
            sorted(fm.labels(table.functions).values()),
            ["0x10 [prog]", "0x20 [prog]", "label", "unknown"],
        )

    def test_no_map(self):
        """Neither symbol nor DSO: the address; those of the kernel arrive as negative numbers."""
        table = self.table((0, 0, 0x410), (0, 0, 0x420), (0, 0, -16))
        self.assertEqual(
            sorted(fm.labels(table.functions).values()),
            ["0x410 [unknown]", "0x420 [unknown]", "0xfffffffffffffff0 [unknown]"],
        )

    def test_no_name_and_no_address(self):
        """Such a row comes from --by comm and a thread with an empty name, or from a sums file."""
        nameless = fm.Function("", "/bin/prog")
        self.assertEqual(fm.labels([nameless]), {nameless: " [prog]"})
        out = io.StringIO()
        fm.print_csv([(nameless, {})], [], out)
        self.assertEqual(out.getvalue(), "symbol,dso\n,/bin/prog\n")

    def test_address_does_not_match_another(self):
        """A window at another address without a symbol is unmatched."""
        recording = started()
        recording.raw_sample(1, LONG, 0, dso=0, ip=0x410)
        recording.raw_sample(1, 300, 0, dso=0, ip=0x420)
        (groups,) = recording.collector.table().functions.values()
        self.assertEqual([sums.discarded for sums in groups.values()], [1])

    def test_address_within_symbol(self):
        """Within a symbol, the address does not matter."""
        recording = started()
        recording.raw_sample(1, LONG, 1, ip=0x1004)
        recording.raw_sample(1, 300, 1, ip=0x1008)
        self.assertEqual(recording.sums("f").matched, 1)


class Adding(unittest.TestCase):
    """Sums of recordings add up."""

    def test_sums(self):
        """Each number, event and product is added."""
        one = fm.Sums(3, 2, 1, {"a": 5, "b": 1}, {("a", "a"): 13, ("a", "b"): 2, ("b", "b"): 1})
        two = fm.Sums(5, 1, 4, {"a": 7, "c": 2}, {("a", "a"): 49, ("a", "c"): 14, ("c", "c"): 4})
        self.assertEqual(
            one + two,
            fm.Sums(
                8,
                3,
                5,
                {"a": 12, "b": 1, "c": 2},
                {("a", "a"): 62, ("a", "b"): 2, ("b", "b"): 1, ("a", "c"): 14, ("c", "c"): 4},
            ),
        )

    def test_blocks(self):
        """Each recording has blocks of its own: their numbers are added, too."""
        tables = []
        for number, times in enumerate(((0, 3, 3), (0, 0, 7))):
            recording = started("auto")
            for time in times:
                recording.pair("f", 300 + number, 100, 1, time=time)
            recording.sample("g", 300, 100, 1, time=9)
            tables.append(recording.collector.table())
        f, key = fm.Function("f", "/usr/bin/prog"), ("cycles", "branch-misses", "instructions")
        one, two = (table.functions[f][key] for table in tables)
        both = (tables[0] + tables[1]).functions[f][key]
        self.assertEqual((one.blocks, two.blocks, both.blocks, both.begun.blocks), (2, 2, 4, 6))
        squares = (300**2 + 600**2) + (602**2 + 301**2)
        self.assertEqual(both.block_products["cycles", "cycles"], squares)
        self.assertEqual((one.opened_squares, two.opened_squares, both.opened_squares), (5, 5, 10))
        self.assertEqual((one.opened_all, two.opened_all, both.opened_all), (6, 7, 13))
        windows, long = (tables[0] + tables[1]).intervals[key]
        self.assertEqual((windows.matched, long.matched, long.blocks), (8, 6, 4))
        self.assertEqual(windows["cycles"], 5 * 300 + 3 * 301)

    def test_auto_and_discard(self):
        """Sums that only mode auto knows are dropped; the blocks of matched windows are kept."""
        tables = []
        for share in "auto", "discard":
            recording = started(share)
            for time in 0, 3:
                recording.pair("f", 300, 100, 1, time=time)
            tables.append(recording.collector.table())
        both = tables[0] + tables[1]
        (groups,) = both.functions.values()
        (sums,) = groups.values()
        self.assertEqual((sums.blocks, sums.block_products["cycles", "cycles"]), (4, 4 * 300**2))
        self.assertEqual((sums.opened, sums.opened_squares, sums.opened_all), (0, 0, 0))
        self.assertEqual((sums.begun, both.intervals), (None, {}))

    def test_exact(self):
        """Integers of any size."""
        sums = fm.Sums(1, 1, 0, {"a": 1 << 63}, {("a", "a"): 1 << 126})
        self.assertEqual(
            (sums + fm.Sums(1, 1, 0, {"a": 1}, {("a", "a"): 1})).products,
            {("a", "a"): (1 << 126) + 1},
        )

    def test_recordings(self):
        """Two recordings add up to one of both; their order and their ids do not matter."""

        def record(windows, first_thread):
            recording = started(inherit=1)
            for thread, (function, *counts) in enumerate(windows, first_thread):
                recording.sample("h", LONG, thread=thread)
                recording.sample("f", LONG, 1, thread=thread)
                recording.sample(function, *counts, thread=thread)
            return recording.collector.table()

        one = [("f", 300, 100, 1), ("g", 310, 110, 2)]
        two = [("f", 320, 120, 3), ("f", 330, 130, 0)]

        def without_blocks(table):
            for groups in table.functions.values():
                for sums in groups.values():
                    sums.blocks, sums.block_products = 0, {}
            return table.functions

        self.assertEqual(
            without_blocks(record(one, 2) + record(two, 9)), without_blocks(record(one + two, 2))
        )

    def test_recordings_other_functions(self):
        """Functions and groups of one recording only are kept."""
        one, two = fm.Table(), fm.Table()
        one.add(fm.Function("f", "a"), ("cycles",), fm.Sums(1, 1, 0, {"cycles": 5}))
        two.add(fm.Function("f", "b"), ("cycles",), fm.Sums(2, 2, 0, {"cycles": 6}))
        two.add(fm.Function("f", "a"), ("faults",), fm.Sums(3, 3, 0, {"faults": 7}))
        both = (one + two).functions
        self.assertEqual(
            both[fm.Function("f", "a")],
            {
                ("cycles",): fm.Sums(1, 1, 0, {"cycles": 5}),
                ("faults",): fm.Sums(3, 3, 0, {"faults": 7}),
            },
        )
        self.assertEqual(both[fm.Function("f", "b")][("cycles",)].samples, 2)
        self.assertEqual(len(one.functions), 1)


class EventNames(unittest.TestCase):
    """The same event under all its names."""

    def same(self, expected, *events, cpu=""):
        """All of the (name, type, config) are the expected event."""
        for name, kind, config in events:
            self.assertEqual(
                fm.canonical_event(attr(kind, config), name, cpu), expected, (name, kind, config)
            )

    def test_numbers_of_arm(self):
        """These are events of Arm's CPUs.

        A recording that does not name its CPU is taken for one of them.
        """
        for cpu in "", "0x00000000410fd0c0", "0x00000000410fd0c0 smt_on=0":
            self.same(
                "dTLB-load-misses",
                ("r5", 4, 5),
                ("mine", 8, 5),
                ("armv8_pmuv3_0/event=5/", 8, 5),
                cpu=cpu,
            )
        for cpu in "GenuineIntel-6-8F-8 slots=4", "0x489-0x8000000000000007-0x0", "004e1202":
            self.same("r5", ("r5", 4, 5), ("r5:u", 4, 5), cpu=cpu)
            self.same("dTLB-load-misses", ("armv8_pmuv3_0/event=5/", 8, 5), cpu=cpu)

    def test_cycles(self):
        """The kernel's number, Arm's number, with a PMU, renamed."""
        self.same(
            "cycles",
            ("cycles", 0, 0),
            ("cycles/period=999700,alt-period=300/uS", 0, 0),
            ("cpu-cycles:u", 0, 0),
            ("r0011", 4, 0x11),
            ("r11:u", 4, 0x11),
            ("armv8_pmuv3_0/cpu_cycles/", 8, 0x11),
            ("armv8_pmuv3_0/cycles/u", 8, 0x11),
            ("armv8_pmuv3_0/event=0x11,period=1000/", 8, 0x11),
            ("mine", 0, 0),
            ("mine", 8, 0x11),
            ("instructions", 0, 0),
            ("mine", 0, 10 << 32),
            ("cpu_cycles", 9, 0x3C),
        )

    def test_instructions(self):
        """The kernel's number, Arm's number, with a PMU, renamed."""
        self.same(
            "instructions",
            ("instructions", 0, 1),
            ("r0008", 4, 8),
            ("r8:S", 4, 8),
            ("inst_retired", 8, 8),
            ("armv8_cortex_a72/inst_retired/", 8, 8),
            ("ins", 0, 1),
        )

    def test_speculated_instructions(self):
        """Only Arm has them, and only by number."""
        self.same(
            "inst_spec",
            ("r001b", 4, 0x1B),
            ("inst_spec", 8, 0x1B),
            ("armv8_pmuv3_0/inst_spec/", 8, 0x1B),
            ("spec", 8, 0x1B),
            ("somepmu/inst_spec/", 8, 0x99),
        )

    def test_branch_misses(self):
        """The kernel's branch-misses is either of Arm's two."""
        self.same(
            "branch-misses",
            ("branch-misses", 0, 5),
            ("r0010", 4, 0x10),
            ("r0022", 4, 0x22),
            ("br_mis_pred", 8, 0x10),
            ("br_mis_pred_retired", 8, 0x22),
        )

    def test_cache(self):
        """On Arm the kernel's cache-* are L1D's."""
        self.same(
            "cache-references",
            ("cache-references", 0, 2),
            ("r0004", 4, 4),
            ("l1d_cache", 8, 4),
            ("L1-dcache-loads", 3, 0),
        )
        self.same(
            "cache-misses",
            ("cache-misses", 0, 3),
            ("r0003", 4, 3),
            ("l1d_cache_refill", 8, 3),
            ("L1-dcache-load-misses", 3, 0x10000),
        )

    def test_software(self):
        """Software events by number."""
        self.same("page-faults", ("page-faults:u", 1, 2), ("faults", 1, 2), ("x", 1, 2))
        self.same("context-switches", ("cs", 1, 3))
        self.same("cpu-clock", ("cpu-clock/period=100000/u", 1, 0))

    def test_not_arm(self):
        """The number of another PMU's event, in a PMU that says so, means nothing."""
        self.same("pperf", ("msr/pperf/", 8, 3))
        self.same("event=0x11", ("arm_cmn_0/event=0x11/", 8, 0x11))
        self.same("clock-ticks", ("uncore_x/clock-ticks/", 12, 0x11))

    def test_others(self):
        """Other events keep their names, without periods and modifiers."""
        self.same("r00c5", ("r00c5:u", 4, 0xC5), ("r00c5/period=300/u", 4, 0xC5))
        self.same(
            "stall_backend",
            ("armv8_pmuv3_0/stall_backend/u", 8, 0x24),
            ("stall_backend", 8, 0x24),
            ("stall_backend:S", 8, 0x24),
        )
        self.same("L2_Stall", ("L2_Stall", 8, 0x124))
        self.same(
            "dTLB-load-misses",
            ("dTLB-load-misses:u", 3, 0x10003),
            ("r0005", 4, 5),
            ("armv8_pmuv3_0/l1d_tlb_refill/", 8, 5),
            ("misses", 3, 0x10003),
        )

    def test_twice_in_a_group(self):
        """The second event of one meaning keeps its name: counts are not mixed."""
        collector = fm.Collector()
        for event, name in enumerate(("cycles:u", "cycles:k", "cycles:k"), 1):
            collector.evsel_table(event, name)
            collector.attr_table(event, 1, attr(0, 0, sample_period=LONG if event == 1 else 0))
        self.assertEqual(collector.groups[1].events, ["cycles", "cycles:k", "cycles:k#2"])


def table_of(events, **functions):
    """A table of functions with (samples, matched, totals in the order of the events)."""
    table = fm.Table()
    for name, (samples, matched, *totals) in functions.items():
        table.add(
            fm.Function(name, "/bin/x"),
            events,
            fm.Sums(samples, matched, samples - matched, dict(zip(events, totals))),
        )
    return table


class Metrics(unittest.TestCase):
    """From sums to columns."""

    def test_formulas(self):
        """Each column of the specification, from sums whose ratios are seen at once."""
        events = (
            "cycles",
            "instructions",
            "inst_spec",
            "branch-misses",
            "cache-references",
            "cache-misses",
            "page-faults",
            "dTLB-load-misses",
        )
        table = table_of(
            events,
            f=(10, 8, 3000, 1000, 2000, 7, 400, 20, 3, 4),
            g=(10, 10, 1000, 3000, 6000, 1, 400, 60, 1, 12),
        )
        values = table.values(table.metrics())[fm.Function("f", "/bin/x")]
        self.assertEqual(
            {column: value.value for column, value in values.items()},
            {
                "#": 10,
                "CPI": 3,
                "%RI": 50,
                "BM/KI": 7,
                "CM/KI": 20,
                "%CM": 5,
                "TM/KI": 4,
                "PF/KI": 3,
                "%CY": 75,
                "%I": 25,
                "%BM": 87.5,
                "%L1DA": 50,
                "%L1DM": 25,
                "%TM": 25,
                "%IS": 25,
                "%PF": 75,
                "DIS": 20,
            },
        )

    def test_columns_need_events(self):
        """No column without its events; the order is the specification's."""

        def columns(*events):
            return [metric.column for metric in table_of(events, f=(1, 1)).metrics()]

        self.assertEqual(columns("cycles"), ["#", "%CY", "DIS"])
        self.assertEqual(columns("cycles", "instructions"), ["#", "CPI", "%CY", "%I", "DIS"])
        self.assertEqual(
            columns(
                "cycles",
                "instructions",
                "branch-misses",
                "cache-references",
                "cache-misses",
                "inst_spec",
            ),
            "# CPI %RI BM/KI CM/KI %CM %CY %I %BM %L1DA %L1DM %IS DIS".split(),
        )
        self.assertEqual(columns("cycles", "stall"), ["#", "%CY", "DIS"])
        self.assertEqual(
            columns("cycles", "instructions", "stall"), ["#", "CPI", "%CY", "%I", "stall/KI", "DIS"]
        )

    def test_other_event(self):
        """Any other event per 1000 instructions."""
        table = table_of(("instructions", "stall"), f=(1, 1, 2000, 5))
        (values,) = table.values(table.metrics()).values()
        self.assertEqual(values["stall/KI"].value, 2.5)

    def test_division_by_zero(self):
        """The value is not a number, and is printed as a dash."""
        table = table_of(
            ("cycles", "instructions", "branch-misses"), f=(1, 1, 300, 0, 1), g=(1, 0, 0, 0, 0)
        )
        metrics = table.metrics()
        values = table.values(metrics)
        for metric in "CPI", "BM/KI", "%I":
            self.assertIsNone(values[fm.Function("f", "/bin/x")][metric].value)
        out = io.StringIO()
        fm.print_table(fm.sorted_rows(values, "%CY"), fm.labels(values), metrics, out)
        self.assertEqual(
            out.getvalue(),
            (
                "symbol # CPI BM/KI   %CY %I   %BM   DIS\n"
                "f      1   -     - 100.0  - 100.0   0.0\n"
                "g      1   -     -   0.0  -   0.0 100.0\n"
            ),
        )

    def test_two_groups(self):
        """Events of two groups are related through the one that both have."""
        table = fm.Table()
        f = fm.Function("f", "/bin/x")
        # CPI 2 over 10000 cycles, 30 misses in 20000 other cycles: 3 per 1000 instructions
        table.add(
            f, ("cycles", "instructions"), fm.Sums(5, 4, 1, {"cycles": 10000, "instructions": 5000})
        )
        table.add(
            f, ("cycles", "cache-misses"), fm.Sums(7, 7, 0, {"cycles": 20000, "cache-misses": 30})
        )
        g = fm.Function("g", "/bin/x")
        table.add(
            g, ("cycles", "instructions"), fm.Sums(1, 1, 0, {"cycles": 30000, "instructions": 5000})
        )
        values = table.values(table.metrics())
        self.assertEqual(
            {column: value.value for column, value in values[f].items()},
            {"#": 12, "CPI": 2, "CM/KI": 3, "%CY": 50, "%I": 50, "%L1DM": 100, "DIS": 100 / 12},
        )
        self.assertEqual(values[g]["CPI"].value, 6)
        self.assertIsNone(values[g]["CM/KI"].value)

    def test_two_groups_nothing_common(self):
        """Without a common event, they are related through the number of windows."""
        table = fm.Table()
        f = fm.Function("f", "/bin/x")
        table.add(
            f, ("cycles", "instructions"), fm.Sums(5, 4, 1, {"cycles": 10000, "instructions": 5000})
        )
        table.add(
            f,
            ("cpu-clock", "cache-misses"),
            fm.Sums(8, 8, 0, {"cpu-clock": 20000, "cache-misses": 30}),
        )
        self.assertEqual(table.values(table.metrics())[f]["CM/KI"].value, 3)

    def test_two_groups_much_common(self):
        """Of several common events, cycles relate them."""
        table = fm.Table()
        f = fm.Function("f", "/bin/x")
        table.add(
            f,
            ("cycles", "branches", "instructions", "page-faults"),
            fm.Sums(
                5, 4, 1, {"branches": 10, "cycles": 10000, "instructions": 5000, "page-faults": 1}
            ),
        )
        table.add(
            f,
            ("cycles", "branches", "cache-misses", "page-faults"),
            fm.Sums(
                7, 7, 0, {"branches": 1, "cycles": 20000, "cache-misses": 30, "page-faults": 1}
            ),
        )
        self.assertEqual(table.values(table.metrics())[f]["CM/KI"].value, 3)

    def test_error_of_ratio(self):
        """The standard error is that over the windows, calculated here a second time."""
        windows = {"f": [(300, 100), (310, 150), (290, 90), (305, 101)], "g": [(300, 50)] * 3}
        table = fm.Table()
        for name, counts in windows.items():
            table.add(
                fm.Function(name, ""),
                ("cycles", "instructions"),
                sums_of(("cycles", "instructions"), counts),
            )
        value = table.values(table.metrics())[fm.Function("f", "")]
        number, cycles, instructions = 4, 1205, 441
        residuals = [c - cycles / instructions * i for c, i in windows["f"]]
        self.assertAlmostEqual(
            value["CPI"].error, math.sqrt(number * statistics.variance(residuals, 0)) / instructions
        )
        share = cycles / (cycles + 900)
        residuals = [
            (name == "f") * c - share * c for name, counts in windows.items() for c, _ in counts
        ]
        self.assertAlmostEqual(
            value["%CY"].error,
            100 * math.sqrt(7 * statistics.variance(residuals, 0)) / (cycles + 900),
        )

    def test_published(self):
        """The rows published for the N1SDP, from sums that have these ratios (shares in
        1/100000: instructions are 2.68 times fewer than cycles; 5.07 mispredicts, 9.31 L1D
        accesses and 0.93 misses per 1000 instructions)."""
        events = ("cycles", "instructions", "branch-misses", "cache-references", "cache-misses")
        scale = (268, 100, 0.507, 0.931, 0.093)
        shares = {
            "fp_divider_stalls": (6553, 41800, 22900, 100, 600, 2),
            "int_divider_stalls": (4741, 28300, 21500, 100, 1900, 209),
            "isb": (3414, 17600, 2345, 100, 800, 32),
            "branch_mispredicts": (1234, 6100, 15200, 99000, 71600, 100),
            "double_to_int": (694, 3400, 19100, 100, 1200, 72),
            "nops": (417, 1900, 18300, 560, 400, 112),
            "dcache_miss": (185, 665, 499, 39, 18400, 99100),
            "_start": (3, 235, 156, 1, 5100, 373),
        }
        published = """\
fp_divider_stalls  6553  4.9  0.0   0.0  0.0 41.8 22.9  0.1  0.6  0.0
int_divider_stalls 4741  3.5  0.0   0.0  1.1 28.3 21.5  0.1  1.9  0.2
isb                3414 20.1  0.2   0.0  0.4 17.6  2.3  0.1  0.8  0.0
branch_mispredicts 1234  1.1 33.0   0.0  0.0  6.1 15.2 99.0 71.6  0.1
double_to_int       694  0.5  0.0   0.0  0.6  3.4 19.1  0.1  1.2  0.1
nops                417  0.3  0.2   0.0  2.8  1.9 18.3  0.6  0.4  0.1
dcache_miss         185  3.6  0.4 184.7 53.8  0.7  0.5  0.0 18.4 99.1
"""
        table = table_of(
            events,
            **{
                name: (samples, samples, *(round(1000 * s * x) for s, x in zip(scale, share)))
                for name, (samples, *share) in shares.items()
            },
        )
        metrics = table.metrics()
        values = table.values(metrics)
        out = io.StringIO()
        fm.print_table(fm.sorted_rows(values, "%CY"), fm.labels(values), metrics, out)
        header, *rows = (line.split() for line in out.getvalue().splitlines())
        self.assertEqual(header, "symbol # CPI BM/KI CM/KI %CM %CY %I %BM %L1DA %L1DM DIS".split())
        self.assertEqual(
            [row[:-1] for row in rows[:7]], [line.split() for line in published.splitlines()]
        )


class Output(unittest.TestCase):
    """Options, forms of the table, and recordings that make none."""

    def report(self, recording, *options):
        """The text on both outputs; a failure's message is its exit status."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(err):
            fm.report(fm.recorded_table(recording.collector), fm.parse_options(options), out)
        return out.getvalue(), err.getvalue()

    def recording(self):
        """f: 2 windows, g: 1 and 1 discarded, h: 2; CPI 3, 2 and 4."""
        recording = started()
        recording.pair("f", 300, 100, 1)
        recording.pair("f", 300, 100, 0)
        recording.pair("g", 300, 150, 0)
        recording.sample("f", LONG)
        recording.sample("g", 300, 150)
        recording.pair("h", 300, 75, 3)
        recording.pair("h", 300, 75, 3)
        return recording

    def names(self, *options):
        """The symbols in the order in which they are printed."""
        lines = self.report(self.recording(), *options)[0].splitlines()
        return [line.split()[0] for line in lines[1:]]

    def test_table(self):
        """Aligned, sorted by the share of the cycles, equal ones by name."""
        self.assertEqual(
            self.report(self.recording()),
            (
                (
                    "symbol # CPI BM/KI  %CY   %I  %BM  DIS\n"
                    "f      2 3.0   5.0 40.0 40.0 14.3  0.0\n"
                    "h      2 4.0  40.0 40.0 30.0 85.7  0.0\n"
                    "g      2 2.0   0.0 20.0 30.0  0.0 50.0\n"
                ),
                "",
            ),
        )

    def test_sort(self):
        """Largest first, names in their order; upper and lower case are the same."""
        self.assertEqual(self.names("--sort", "CPI"), ["h", "f", "g"])
        self.assertEqual(self.names("--sort", "dis"), ["g", "f", "h"])
        self.assertEqual(self.names("--sort", "#"), ["f", "g", "h"])
        self.assertEqual(self.names("--sort", "symbol"), ["f", "g", "h"])

    def test_sort_undefined_last(self):
        """Undefined values come last, even after 0."""
        recording = started()
        recording.pair("f", 300, 0, 1)
        recording.pair("g", 300, 100, 0)
        lines = self.report(recording, "--sort", "BM/KI")[0].splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["symbol", "g", "f"])

    def test_sort_unknown(self):
        """The message lists the columns."""
        with self.assertRaisesRegex(SystemExit, "no column %PF.*CPI.*symbol"):
            self.report(self.recording(), "--sort", "%PF")

    def test_limit(self):
        """Fewer rows, the same shares."""
        full = self.report(self.recording())[0].splitlines()
        some = self.report(self.recording(), "--limit", "2")[0].splitlines()
        self.assertEqual([line.split() for line in some], [line.split() for line in full[:3]])

    def test_csv(self):
        """A header and a row for each function, all digits."""
        rows = list(csv.DictReader(io.StringIO(self.report(self.recording(), "--csv")[0])))
        self.assertEqual([row["symbol"] for row in rows], ["f", "h", "g"])
        self.assertEqual(rows[0]["dso"], "/usr/bin/prog")
        self.assertEqual(float(rows[0]["%BM"]), 100 / 7)

    def test_csv_undefined(self):
        """A dash, as in the table; an address is a name."""
        recording = started()
        recording.raw_sample(1, LONG, 0, dso=1, ip=0x410)
        recording.raw_sample(1, 300, 0, dso=1, ip=0x410)
        rows = list(csv.DictReader(io.StringIO(self.report(recording, "--csv")[0])))
        self.assertEqual(
            (rows[0]["CPI"], rows[0]["symbol"], rows[0]["dso"]), ("-", "0x410", "/usr/bin/prog")
        )

    def test_json(self):
        """Groups, sums, metrics and errors."""
        data = json.loads(self.report(self.recording(), "--json")[0])
        self.assertEqual(
            data["groups"],
            [
                {
                    "events": ["cycles", "branch-misses", "instructions"],
                    "share": "discard",
                    "sample_period": LONG,
                    "sample_freq": 0,
                    "alternative_sample_period": WINDOW,
                    "alternative_sample_count": 0,
                    "jitter_alternate_period": 0,
                    "inherit": False,
                }
            ],
        )
        f, _, g = data["functions"]
        self.assertEqual((f["symbol"], f["dso"], f["address"]), ("f", "/usr/bin/prog", None))
        (sums,) = f["sums"]
        self.assertEqual(sums["totals"], {"cycles": 600, "instructions": 200, "branch-misses": 1})
        self.assertEqual(
            sums["products"],
            {
                "branch-misses*branch-misses": 1,
                "branch-misses*cycles": 300,
                "branch-misses*instructions": 100,
                "cycles*cycles": 180000,
                "cycles*instructions": 60000,
                "instructions*instructions": 20000,
            },
        )
        self.assertEqual(
            (g["sums"][0]["samples"], g["sums"][0]["matched"], g["sums"][0]["discarded"]), (2, 1, 1)
        )
        self.assertEqual(f["metrics"]["CPI"], 3)
        self.assertEqual(f["errors"]["CPI"], 0)
        self.assertNotIn("CPI", g["errors"])  # one window has no variance

    def test_json_undefined(self):
        """null."""
        recording = started()
        recording.pair("f", 300, 0, 1)
        data = json.loads(self.report(recording, "--json")[0])
        self.assertIsNone(data["functions"][0]["metrics"]["CPI"])

    def test_long_name(self):
        """The table shortens names, the other forms do not."""
        recording = started()
        name = "a" * 50 + "b" * 100 + "c" * 50
        recording.collector.symbol_table(9, 1, 1, 2, 0, name)
        recording.raw_sample(1, LONG, 9)
        recording.raw_sample(1, 300, 9)
        self.assertRegex(self.report(recording)[0], "\na{28}[.]{3}c{28} ")
        self.assertIn(name, self.report(recording, "--csv")[0])
        self.assertIn(name, self.report(recording, "--json")[0])

    def test_empty(self):
        """A recording without samples."""
        with self.assertRaisesRegex(SystemExit, "no samples"):
            self.report(Feed())

    def test_no_window(self):
        """A recording that ends before a window does."""
        with self.assertRaisesRegex(SystemExit, "no window"):
            self.report(started())

    def test_no_group(self):
        """For a recording of single events, the message tells how to record."""
        recording = Feed()
        recording.collector.evsel_table(1, "cycles")
        recording.collector.attr_table(1, 1, attr(sample_type=0))
        recording.sample("f", 300)
        recording.sample("f", 300)
        with self.assertRaisesRegex(
            SystemExit, "no counter group: record with perf functions record"
        ):
            self.report(recording)

    def test_group_and_single(self):
        """A single event beside a group is left out, with a note."""
        recording = started()
        recording.collector.evsel_table(9, "faults")
        recording.collector.attr_table(9, 9, attr(1, 2, sample_type=0))
        recording.pair("f", 300, 100, 1)
        recording.raw_sample(9, 4, 1)
        out, err = self.report(recording)
        self.assertIn("no counter group: faults", err)
        self.assertEqual(len(out.splitlines()), 2)
        self.assertEqual(recording.sums("f")["branch-misses"], 1)

    def test_tracepoint(self):
        """perf hands out samples of a tracepoint in another way: there is no column of 0 for it."""
        recording = Feed()
        recording.group("cycles", "instructions")
        recording.collector.evsel_table(3, "sched:sched_switch")
        recording.collector.attr_table(3, 1, attr(2, 300))
        recording.sample("f", LONG, 1)
        recording.sample("f", 300, 1)
        out, err = self.report(recording)
        self.assertNotIn("sched", out)
        self.assertIn("no counter group: sched:sched_switch", err)

    def test_tracepoint_leads(self):
        """Nor is there a group if a tracepoint leads it."""
        recording = Feed()
        for event, kind in ((1, 2), (2, 0)):
            recording.collector.evsel_table(event, f"event{event}")
            recording.collector.attr_table(event, 1, attr(kind, 1))
        recording.raw_sample(2, 300, 1)
        with self.assertRaisesRegex(SystemExit, "no counter group"):
            self.report(recording)

    def test_lost_and_throttled(self):
        """There is a table, and a note."""
        recording = self.recording()
        table = self.report(recording)[0]
        recording.collector.throttle(5, 1, 1, 0, 9, 9)
        recording.collector.unthrottle(6, 1, 1, 0, 9, 9)
        recording.collector.lost(5, 1, 3, 0, 9, 9)
        out, err = self.report(recording)
        self.assertEqual(out, table)
        self.assertRegex(err, "3 records were lost")
        self.assertRegex(err, "throttled 1 times")

    def test_no_symbols(self):
        """There is a note, as windows hardly ever match by address."""
        recording = self.recording()
        self.assertNotIn("symbol", self.report(recording)[1])
        recording.raw_sample(1, LONG, 0, ip=0x410)
        recording.raw_sample(1, 300, 0, ip=0x420)
        self.assertIn("14 % of the window samples have no symbol", self.report(recording)[1])

    def test_old_perf(self):
        """A perf without attr_table: the first sample ends it."""
        recording = Feed()
        recording.collector.evsel_table(1, "cycles")
        with self.assertRaisesRegex(SystemExit, "attr_table.*alt-period"):
            recording.sample("f", 300)

    def test_bad_options(self):
        """Usage errors."""
        for options in (
            ["--limit", "0"],
            ["--limit", "x"],
            ["-s", "some"],
            ["--csv", "--json"],
            ["extra"],
        ):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                fm.parse_options(options)
        self.assertEqual(
            fm.parse_options([]),
            argparse.Namespace(
                share="auto",
                children=False,
                sort=None,
                limit=None,
                csv=False,
                json=False,
                sums=[],
                write_sums=None,
            ),
        )

    def test_without_perf(self):
        """Run by Python alone, it prints help, or that perf has to run it."""
        run = subprocess.run(
            [sys.executable, SCRIPT, "--help"], capture_output=True, text=True, check=True
        )
        for metric in fm.METRICS:
            self.assertIn(f"{metric.meaning}: {metric.formula}", run.stdout)
        run = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("perf script -s", run.stderr)


class Scripts(unittest.TestCase):
    """The scripts of `perf script record` and `report`, which sh runs here as in perf."""

    GROUP = (
        "{cycles/period=999700,alt-period=300/,instructions,branch-misses,cache-references,"
        "cache-misses}:uS"
    )

    def perf(self, script, *options):
        """The arguments that perf gets."""
        with tempfile.TemporaryDirectory() as folder:
            perf = Path(folder, "perf")
            perf.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
            perf.chmod(0o755)
            run = subprocess.run(
                ["sh", SCRIPT.parent / "bin" / script, *options],
                check=True,
                text=True,
                capture_output=True,
                env={"PATH": f"{folder}:/usr/bin:/bin", "PERF_EXEC_PATH": "/exec"},
            )
        self.assertEqual(run.stderr, "")
        return run.stdout.splitlines()

    def test_copy(self):
        """A copy of the script finds the definitions of the metrics where perf is installed."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "scripts").mkdir()
            Path(folder, "scripts/python").symlink_to(SCRIPT.parent)
            copy = shutil.copy(SCRIPT, folder)
            run = subprocess.run(
                [sys.executable, copy, "--help"],
                check=True,
                text=True,
                capture_output=True,
                env={"PERF_EXEC_PATH": folder},
            )
            self.assertIn("CPI     cycles per instruction: cycles / instructions\n", run.stdout)
            run = subprocess.run(
                [sys.executable, copy], check=False, text=True, capture_output=True, env={}
            )
            self.assertEqual(run.returncode, 1)
            self.assertRegex(
                run.stderr, r"\A\S+FunctionMetrics.h: No such file or directory: copy .*\n\Z"
            )

    def test_record(self):
        """The default group is recorded; a -e of the program does not matter."""
        for options in ([], ["-o", "x"], ["--", "sh", "-e", "a b"]):
            self.assertEqual(
                self.perf("generate-function-metrics-record", *options),
                ["record", "-T", "--sample-cpu", "-e", self.GROUP, *options],
            )

    def test_record_other_events(self):
        """The user's events replace the default group."""
        for options in (["-e", "{a,b}:S"], ["-a", "-e{a}:S"], ["--event={a}:S", "--", "x y"]):
            self.assertEqual(
                self.perf("generate-function-metrics-record", *options),
                ["record", "-T", "--sample-cpu", *options],
            )

    def test_report(self):
        """Options are the script's, except for the file, which perf appends in live mode, too."""
        script = ["-s", "/exec/scripts/python/generate-function-metrics.py", "--"]
        self.assertEqual(self.perf("generate-function-metrics-report"), ["script", *script])
        self.assertEqual(
            self.perf("generate-function-metrics-report", "-s", "none", "--csv"),
            ["script", *script, "-s", "none", "--csv"],
        )
        self.assertEqual(
            self.perf("generate-function-metrics-report", "-i", "a b", "--csv"),
            ["script", "-i", "a b", *script, "--csv"],
        )


if __name__ == "__main__":
    unittest.main()
