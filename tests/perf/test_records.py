# SPDX-License-Identifier: GPL-2.0
"""Records of losses, counts that begin anew, windows that end late, and groups that end early."""

import json
import random
import struct
import unittest
from pathlib import Path

from tests.harness import perfwrite as pw
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.recording import LONG, WINDOW, Recording, Windows

DATA = CHECK / "records"


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def sums(windows: Windows, *options: str) -> tuple[dict, dict, str]:
    """A report, the sums of its one function, and the messages."""
    path = windows.write(DATA / "records.data")
    done = run(PERF, "functions", "report", "-i", path, "-j", *options, stderr=-1)
    report = json.loads(done.stdout)
    (row,) = report["functions"]
    return report, row["sums"][0], done.stderr


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
        report, found, messages = sums(windows)
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
            (row,) = json.loads(done.stdout)["functions"]
            matched = {of["events"][-1]: of["matched"] for of in row["sums"]}
            self.assertEqual(matched, {"instructions": 20, "cache-misses": 10})
            files = []
            for path in one, other:
                files.append(path.with_suffix(".sums"))
                must(PERF, "functions", "report", path, "--sums", files[-1], stderr=-1)
            both = json.loads(must(PERF, "functions", "report", "-j", *files, stderr=-1))
            self.assertEqual(both["functions"][0]["sums"], row["sums"])

    def test_sums_keep_their_rights(self):
        """A file that is replaced keeps its access rights, whatever the umask is."""
        windows = Windows()
        windows.window(0x1000)
        one, path = windows.write(DATA / "rights.data"), DATA / "rights.sums"
        for mode in 0o600, 0o664, 0o666:
            path.write_text("old")
            path.chmod(mode)
            must(PERF, "functions", "report", one, "--sums", path, stderr=-1)
            self.assertEqual(path.stat().st_mode & 0o777, mode)
            self.assertNotEqual(path.read_text(), "old")

    def test_cgroup_of_a_guest(self):
        """Its cgroups are not known."""
        kind = pw.Event("cycles", 0, 0, [1]).sample_type | pw.SAMPLE_CGROUP
        group = [
            pw.Event("cycles", 0, 0, [1], LONG, WINDOW, sample_type=kind),
            pw.Event("instructions", 0, 1, [2], sample_type=kind),
        ]
        recording = Recording([group])
        index = struct.pack("<Q4qQQ", 1, 1, 0, 0, 100, 100, 0)  # event 1 is of guest 100
        recording.writer.record(self.ID_INDEX, index, 0)
        for _ in range(20):
            recording.sample(0x1000, LONG, 1000, cgroup=7, misc=self.GUEST_USER)
            recording.sample(0x1000, WINDOW, 100, cgroup=7, misc=self.GUEST_USER)
        path = recording.write(DATA / "guest.data")
        done = run(PERF, "functions", "report", "--by", "cgroup", "-j", path, stderr=-1)
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = json.loads(done.stdout)["functions"]
        self.assertEqual((row["symbol"], row["sums"][0]["matched"]), ("[unknown]", 20))

    ID_INDEX, GUEST_USER = 69, 5


class Late(unittest.TestCase):
    """The counter goes on after an overflow, and the next interval is shorter by that."""

    def write(self, *ends: tuple[int, int, int]) -> Path:
        """A recording of windows. ends: the start and the end of each, and its delay."""
        windows, before = Windows(), 0
        for begin, end, late in ends:
            for address, period, more in (begin, LONG, -before), (end, WINDOW, late):
                windows.values[1] += period + more
                values = [*windows.values.items()]
                windows.writer.sample(
                    windows.groups[0][0], windows.where(), address, period, values
                )
            before = late
        return windows.write(DATA / "late.data")

    def test_quantiles(self):
        """Of 100 windows, 50 are late by 51 or more, and 5 by 96 or more."""
        late = [1 + 37 * number % 100 for number in range(100)]
        path = self.write(*((0x1000, 0x1000, number) for number in late))
        done = run(PERF, "functions", "report", "-j", path, stderr=-1)
        self.assertEqual(
            json.loads(done.stdout)["skid"],
            [
                {
                    "leader": "cycles",
                    "windows": 100,
                    "mean": 50.5,
                    "median": 51,
                    "percentile_95": 96,
                }
            ],
        )
        self.assertIn(
            "windows of cycles end late, on average by 50.5 events, and one in 20 by 96 or more",
            done.stderr,
        )

    def test_intervals_of_shares(self):
        """They are longer by skid x max(left, entered) / counts, but not in a comparison."""
        stay = [(0x1000, 0x1000, 20), (0x2000, 0x2000, 20)] * 30
        path, sums_file = self.write(*stay, *[(0x1000, 0x2000, 20)] * 10), DATA / "late.sums"
        must(PERF, "functions", "report", path, "--sums", sums_file, stderr=-1)
        tables = [
            json.loads(must(PERF, "functions", "report", "-j", one, stderr=-1))["functions"]
            for one in (path, sums_file)
        ]
        for late, exact in zip(*tables):
            self.assertEqual(late["address"], exact["address"])
            one, other = (row["intervals"]["%CY"] for row in (late, exact))
            moved = 100 * 20 * 10 / (70 * (WINDOW + 20))
            self.assertAlmostEqual(one[1] - other[1], moved, 9)
            self.assertAlmostEqual(other[0] - one[0], moved, 9)
        ours, theirs = (
            must(PERF, "functions", "report", "-j", "--diff", one, one, stderr=-1)
            for one in (path, sums_file)
        )
        self.assertEqual(ours, theirs)

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
            report = json.loads(must(PERF, "functions", "report", "-j", path, stderr=-1))
            late = {skid["leader"]: skid["mean"] for skid in report["skid"]}
            self.assertEqual(late, dict(zip(("cycles", "cpu-clock"), (late for _, late in kinds))))
            shares.append({row["address"]: row["intervals"]["%CY"] for row in report["functions"]})
        self.assertEqual(shares[0], shares[1])


class Groups(unittest.TestCase):
    def test_one_ends_early(self):
        """The tables of --interval after its last window lack its columns, and have the others."""
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
        self.assertEqual(titles, ["time,symbol,dso,%PF,CPI,weak", "time,symbol,dso,CPI,weak"])


class Raw(unittest.TestCase):
    """perf functions reads most samples from their records, without parsing them."""

    @staticmethod
    def groups(window: int, form: int, flags: int) -> list[list[pw.Event]]:
        """Two groups; the second has no periods in its samples. Without a window, members sample.

        form: to be added to read_format.
        """
        groups = [
            [
                pw.Event("cycles", 0, 0, [1], LONG, window),
                pw.Event("faults", 1, 2, [2], 0 if window else LONG),
            ],
            [
                pw.Event("cpu-clock", 1, 0, [3], LONG, window),
                pw.Event("switches", 1, 3, [4], 0 if window else LONG),
            ],
        ]
        for event in groups[0] + groups[1]:
            event.read_format |= form
            event.flags |= flags
        for event in groups[1]:
            event.sample_type ^= pw.PERIOD
        return groups

    @staticmethod
    def rows(groups: list[list[pw.Event]], *options: str) -> list[dict]:
        """The rows of random samples, some of which repeat the values of the one before."""
        chance = random.Random(5)
        recording = Recording(groups)
        recording.map("/no/program", 0x1000)  # the kernel has no code there
        for number in range(4000):
            group = number // 2 % 2
            recording.sample(
                chance.choice((0x1000, 0x1000, 0x2000)),
                chance.choice((LONG, LONG, 0)) if number % 2 else chance.choice((WINDOW, 0)),
                chance.choice((0, 1, 7)),
                group=group,
                tid=chance.choice((100, 101)),
                cpu=chance.choice((0, 3)),
                misc=chance.choice((pw.MISC_USER, pw.MISC_KERNEL)),
                number=chance.choice(
                    [event.ids[0] for event in groups[group] if event.sample_period]
                ),
            )
        path = recording.write(DATA / "raw.data")
        report = must(PERF, "functions", "report", path, "-j", *options, stderr=-1)
        return json.loads(report)["functions"]

    def test_same_as_parsed(self):
        """With the times of the values, the samples are parsed."""
        by = "--by", "dso,thread"
        for window in (WINDOW, 0):
            for flags in (0, pw.FLAG_INHERIT):
                for options in (by, (*by, "-C", "3"), ("--time", "0.000003,")):
                    with self.subTest(window=window, flags=flags, options=options):
                        parsed = self.rows(self.groups(window, pw.FORMAT_ENABLED, flags), *options)
                        self.assertGreater(sum(row["sums"][0]["matched"] for row in parsed), 30)
                        raw = self.rows(self.groups(window, 0, flags), *options)
                        self.assertEqual(raw, parsed)

    def test_forms(self):
        """ID or IDENTIFIER; with or without more after the values."""
        usual = self.rows(self.groups(WINDOW, 0, 0), "--by", "dso,thread")
        for sample_type, form in ((pw.ID | pw.IDENTIFIER, 0), (pw.CALLCHAIN, pw.FORMAT_LOST)):
            groups = self.groups(WINDOW, form, 0)
            for event in groups[0] + groups[1]:
                event.sample_type ^= sample_type
            self.assertEqual(self.rows(groups, "--by", "dso,thread"), usual)

    def test_no_values(self):
        windows = Windows()
        windows.window(0x1000)
        windows.writer.sample(windows.groups[0][0], windows.where(), 0x1000, LONG, [], number=1)
        done = run(PERF, "functions", "report", windows.write(DATA / "none.data"), stderr=-1)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "cannot be read to its end: the file is .* damaged")


class Counts(unittest.TestCase):
    def test_new_thread(self):
        """A value below the one before counts from 0."""
        windows = Windows()
        windows.window(0x1000)
        windows.take(0x1000, LONG)
        windows.values[2] = 0
        windows.take(0x1000, WINDOW)
        totals = sums(windows)[1]["totals"]
        self.assertEqual(totals, {"cycles": 2 * WINDOW, "instructions": 2 * (WINDOW // 3)})


if __name__ == "__main__":
    unittest.main()
