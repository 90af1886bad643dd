# SPDX-License-Identifier: GPL-2.0
"""Records of losses, windows that end late, and groups that end early."""

import struct
import unittest

from tests.harness import perfdata as pw
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.recording import LONG, WINDOW, Recording, Windows
from tests.harness.tables import flat

DATA = CHECK / "records"


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def windows_of(windows: Windows, *options: str) -> tuple[dict, dict, str]:
    """A report, the windows of its one function, and the messages."""
    path = windows.write(DATA / "records.data")
    done = run(PERF, "functions", "report", "-i", path, "-j", *options, stderr=-1)
    report = flat(done.stdout)
    (row,) = report["functions"]
    return report, row["windows"], done.stderr


class Lost(unittest.TestCase):
    """At the end perf record tells what each event has lost, as the kernel may have before."""

    LOST_SAMPLES, BY_BPF = 13, 1 << 15

    def told(self, kernel: int, *at_end: tuple[int, int]) -> tuple[int, int]:
        """The number of lost records, and that of matched windows among 20.

        kernel: the number in one of the kernel's; at_end: numbers, with flags, from perf record.
        """
        windows = Windows()
        for number in range(20):
            windows.take(0x1000, LONG)
            if number == 5 and kernel:
                windows.writer.lost(windows.where(), 1, kernel)
            if number in (8, 12):  # records without time are read within the first of these windows
                windows.writer.finished_round()
            windows.take(0x1000, WINDOW)
        for number, flags in at_end:
            body = struct.pack("<Q", number)
            windows.writer.side(self.LOST_SAMPLES, body, pw.Where(0, 0, 0), 1, flags)
        report, found, messages = windows_of(windows)
        told = f"perf functions: {report['lost']} records were lost"
        self.assertEqual(told in messages, report["lost"] > 0, messages)
        return report["lost"], found["matched"]

    def test_both(self):
        """They are the same records, so these are not added up; the place of a loss matters."""
        self.assertEqual(self.told(0), (0, 20))
        self.assertEqual(self.told(3), (3, 19))
        self.assertEqual(self.told(0, (4, 0), (5, 0)), (9, 20))
        self.assertEqual(self.told(3, (7, 0)), (7, 19))
        self.assertEqual(self.told(7, (3, 0)), (7, 19))

    def test_samples_that_a_filter_drops(self):
        self.assertEqual(self.told(0, (7, self.BY_BPF)), (0, 20))


class Parts(unittest.TestCase):
    """Recordings of which a group or a span of time has samples."""

    def test_group_without_samples(self):
        """A recording of the same groups adds up with one in which a group has no sample."""
        groups = [
            [pw.Event("cycles", 0, 0, [1], LONG, WINDOW), pw.Event("instructions", 0, 1, [2])],
            [pw.Event("cycles", 0, 0, [3], LONG, WINDOW), pw.Event("cache-misses", 0, 3, [4])],
        ]
        paths = []
        for number in 1, 2:
            recording = Recording(groups)
            for group in range(number):
                for _ in range(10):
                    recording.sample(0x1000, LONG, 100, group=group)
                    recording.sample(0x1000, WINDOW, 30, group=group)
            paths.append(recording.write(DATA / f"groups{number}.data"))
        for one, other in paths, paths[::-1]:
            done = run(PERF, "functions", "report", "-j", one, other, stderr=-1)
            self.assertEqual(done.returncode, 0, done.stderr)
            (row,) = flat(done.stdout)["functions"]
            self.assertEqual(row["windows"]["matched"], 30)
            counts = {name: event["count"] for name, event in row["events"].items()}
            # both groups of a recording have counted the same cycles
            self.assertEqual(counts["cycles"], 20 * (LONG + WINDOW))
            for member in "instructions", "cache-misses":  # by their rates in windows
                self.assertAlmostEqual(counts[member], counts["cycles"] / 10)


class Late(unittest.TestCase):
    """The counter goes on after an overflow, and the next interval is shorter by that."""

    def test_each_leader_has_its_own_skid(self):
        """Windows in nanoseconds that end late do not change the shares of cycles."""
        groups = [
            [pw.Event("cycles", 0, 0, [1], LONG, WINDOW), pw.Event("instructions", 0, 1, [2])],
            [pw.Event("cpu-clock", 1, 0, [3], LONG, 2000), pw.Event("page-faults", 1, 2, [4])],
        ]
        shares = []
        for kinds in ((WINDOW, 20),), ((WINDOW, 20), (2000, 1500)):
            recording = Recording(groups[: len(kinds)])
            for number in range(120):
                places = 0x1000 << number % 2, 0x1000 << number % 3 % 2
                for group, (window, late) in zip(recording.groups, kinds):
                    for address, period, more in zip(
                        places, (LONG, window), (-late if number else 0, late)
                    ):
                        recording.values[group[0].ids[0]] += period + more
                        values = [(event.ids[0], recording.values[event.ids[0]]) for event in group]
                        where = recording.where()
                        recording.writer.sample(group[0], where, address, period, values)
            path = recording.write(DATA / "leaders.data")
            report = flat(must(PERF, "functions", "report", "-j", path, stderr=-1))
            shares.append({row["address"]: row["intervals"]["%CY"] for row in report["functions"]})
        self.assertEqual(shares[0], shares[1])


class Groups(unittest.TestCase):
    def test_one_ends_early(self):
        """The tables of --interval after its last window have its columns, without values."""
        members = ("instructions", 0, 1), ("page-faults", 1, 2)
        recording = Recording(
            [
                [pw.Event("cycles", 0, 0, [id_], LONG, WINDOW), pw.Event(*member, [id_ + 1])]
                for id_, member in zip((1, 3), members)
            ]
        )
        for number in range(200):
            for group in (0, 1) if number < 100 else (0,):
                recording.sample(0x1000, LONG, 10, group=group)
                recording.sample(0x1000, WINDOW, 3, group=group)
        path = recording.write(DATA / "early.data")
        options = "-x", ",", "-F", "%PF,CPI", "-s", "%PF"
        text = must(PERF, "functions", "report", "--interval", "1e-7", *options, path, stderr=-1)
        titles = [line for line in text.splitlines() if line.startswith("time,")]
        self.assertEqual(titles, ["time,symbol,dso,%PF,CPI,weak,rough"])
        values = [line.split(",")[3:5] for line in text.splitlines() if "0x1000" in line]
        self.assertEqual((values[0], values[-1]), (["100", "100"], ["-", "100"]))
