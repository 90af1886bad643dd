# SPDX-License-Identifier: GPL-2.0
"""Recordings that are unusual: groups that no header describes, samplers that do not lead, guests,
records of a newer perf, and names with commas.

The truth is what each recording was made of.
"""

import collections
import itertools
import json
import struct
import subprocess
import unittest
from collections.abc import Sequence
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.env import CHECK, PERF, run
from tests.harness.eventsamples import ungrouped
from tests.harness.recording import LONG, WINDOW, Recording, Windows
from tests.harness.tables import flat, objects

DATA = CHECK / "reading"
F, G = 0x1000, 0x2000
GUEST_KERNEL, GUEST_USER = 4, 5
AUXTRACE_INFO, HEADER_VERSION = 70, 5
NEVER = 1 << 62  # simpleperf's period of an event that does not sample
TIMES = pw.FORMAT_ENABLED | pw.FORMAT_RUNNING
TRACEPOINT = 2
MONOTONIC = 1


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def report(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run(PERF, "functions", "report", "-j", path, *options, stderr=-1)


def lone(group: Sequence[pw.Event]) -> pw.Writer:
    """Events of a group that the header does not describe."""
    return pw.Writer([[event] for event in group])


class OneCpu(pw.Writer):
    """The recording of a machine with one CPU."""

    def cpu(self) -> dict[int, bytes]:
        return {**super().cpu(), pw.HEADER_NRCPUS: struct.pack("<II", 1, 1)}


class Groups(unittest.TestCase):
    """f takes 2 cycles per instruction, g 4: ten samples of g, then ten of f, and so on."""

    SAMPLES = 120
    # the first window is unknown, and the first of the next ten begins in the other function
    FOUND = {F: (54, 2), G: (54, 4)}

    @staticmethod
    def group(
        *names: str, first: int = 1, cpus: int = 1, form: int = 0, flags: int = 0
    ) -> list[pw.Event]:
        """Events with ids from first on, one per CPU. Cycles sample."""
        events = []
        for number, name in enumerate(names):
            ids = list(range(first + 100 * number, first + 100 * number + cpus))
            config = ("cycles", "instructions", "cache-references", "cache-misses").index(name)
            events.append(pw.Event(name, 0, config, ids, 1000 if name == "cycles" else 0))
            events[-1].read_format |= form
            events[-1].flags |= flags
        return events

    def take(self, writer: pw.Writer, group: Sequence[pw.Event], back: int = 0) -> pw.Writer:
        """Samples of the group on each CPU. In the middle, the clock is set back by this time."""
        writer.comm(pw.Where(1, 10, 10), "prog")
        values = {id_: 0 for event in group for id_ in event.ids}
        events = {event.name: event for event in group}
        for number in range(self.SAMPLES):
            cpi = 2 if number // 10 % 2 else 4
            counts = {"cycles": 1000, "instructions": 1000 // cpi}
            for cpu, id_ in enumerate(events["cycles"].ids):
                for event in group:
                    values[event.ids[cpu]] += counts.get(event.name, 0)
                writer.sample(
                    events["cycles"],
                    pw.Where(
                        2000 + 1000 * number + cpu - back * (2 * number >= self.SAMPLES),
                        *(10, 10, cpu),
                    ),
                    F if cpi == 2 else G,
                    1000,
                    [(event.ids[cpu], values[event.ids[cpu]]) for event in group],
                    number=id_,
                )
        return writer

    def check(
        self, writer: pw.Writer, factor: int = 1, forms: Sequence[str] = ("data", "pipe")
    ) -> None:
        """The number of windows and the CPI of each function, in a file and in a pipe.

        factor: this number of streams have the same samples.
        """
        writer.write(DATA / "groups.data")
        writer.write_pipe(DATA / "groups.pipe")
        for path in (DATA / f"groups.{form}" for form in forms):
            done = report(path)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = {}
            for row in flat(done.stdout)["functions"]:
                rows[row["address"]] = {(row["windows"]["samples"], row["metrics"]["CPI"])}
            expected = {
                name: {(number * factor, cpi)} for name, (number, cpi) in self.FOUND.items()
            }
            self.assertEqual(rows, expected, path)

    def test_no_description(self):
        for form in (0, TIMES, pw.FORMAT_LOST):
            group = self.group("cycles", "instructions", first=7, form=form)
            group[1].sample_period = NEVER
            for events in group, group[::-1]:
                with self.subTest(form=form, events=events[0].name):
                    self.check(self.take(lone(events), group))

    def test_other_member_samples(self):
        """It has the windows, also if the leader counts nothing; raw and parsed."""
        names = "cache-misses", "cycles", "cache-references", "instructions"
        for cpus, flags in (1, 0), (3, 0), (1, pw.FLAG_INHERIT):
            group = self.group(*names, cpus=cpus, form=TIMES, flags=flags)
            for writer in pw.Writer([group]), lone(group):
                with self.subTest(cpus=cpus, flags=flags):
                    self.check(self.take(writer, group), factor=cpus)

    def test_clock_set_back(self):
        """As with perf record -k CLOCK_REALTIME. The buffer of one CPU has the right order."""
        group = self.group("cycles", "instructions")
        self.check(self.take(OneCpu([group]), group, back=59_500), forms=["data"])

    def test_code_of_a_jit(self):
        """perf inject --jit writes all code where the JIT begins, with the times of its loads."""
        ((event,),) = groups = ungrouped("cycles")
        event.flags, event.clock = pw.FLAG_SAMPLE_ID_ALL | pw.FLAG_CLOCKID, MONOTONIC
        writer = OneCpu(groups)
        for time, path in (1, "/first.so"), (20, "/second.so"):
            writer.mmap2(pw.Where(time, 10, 10), F, 4096, path)
        for time in 10, 11, 30:
            writer.sample(event, pw.Where(time, 10, 10), F, 1000, [(1, 0)])
        writer.write(DATA / "jit.data")
        rows = flat(report(DATA / "jit.data", "--by", "dso").stdout)["functions"]
        found = {row["symbol"]: row["metrics"]["#"] for row in rows}
        self.assertEqual(found, {"first.so": 2, "second.so": 1})

    def test_throttled_leader(self):
        """Since Linux 6.16 a record names the leader. The window is not used."""
        group = self.group("cache-misses", "cycles", "instructions")
        writer = self.take(pw.Writer([group]), group)
        at = len(writer.records) - 5
        totals = []
        for throttled in (False, True):
            if throttled:
                rest, writer.records[at:] = writer.records[at:], []
                where = pw.Where(1500 + 1000 * 115, 10, 10)
                writer.throttle(pw.THROTTLE, where, group[0].ids[0])
                writer.records += rest
            writer.write(DATA / "throttled.data")
            rows = flat(report(DATA / "throttled.data").stdout)["functions"]
            totals.append(sum(row["windows"]["matched"] for row in rows))
        self.assertEqual(totals, [108, 107])


class Throttled(unittest.TestCase):
    """Before Linux 6.16 a throttled member stands still alone. Each tenth instruction is a miss."""

    def make(self, has_end: bool, flags: int) -> Path:
        """A thread on each of two CPUs. On CPU 0 the member stands still in windows 5 to 9 of ten.

        Without a record of its end, it counts again after window 9, else from the middle on.
        """
        group = [
            pw.Event(name, 0, config, [10 * config + 1, 10 * config + 2], flags=flags)
            for name, config in (("cycles", 0), ("instructions", 1), ("cache-misses", 3))
        ]
        group[0].sample_period, group[0].alternative_sample_period = LONG, WINDOW
        writer = pw.Writer([group])
        clock = itertools.count(1000)
        values = collections.Counter()

        def sample(cpu: int, cycles: int, misses: int) -> None:
            for event, count in zip(group, (cycles, cycles, misses)):
                values[event.ids[cpu]] += count
            now = [(event.ids[cpu], values[event.ids[cpu]]) for event in group]
            writer.sample(group[0], pw.Where(next(clock), 10, 10 + cpu, cpu), F, cycles, now)

        def throttle(kind: int) -> None:
            writer.throttle(kind, pw.Where(next(clock), 10, 10, 0), group[2].ids[0])

        for number in range(30):
            place = number % 10
            sample(0, LONG, 0 if place > 5 else LONG // 10)
            sample(1, LONG, LONG // 10)
            if place == 5:
                throttle(pw.THROTTLE)
            if place == 9 and has_end:
                throttle(pw.UNTHROTTLE)
            half = place == 5 or (place == 9 and has_end)
            sample(0, WINDOW, WINDOW // 20 if half else 0 if place > 5 else WINDOW // 10)
            sample(1, WINDOW, WINDOW // 10)
        writer.write(DATA / "member.data")
        return DATA / "member.data"

    def test_member(self):
        """Windows count if the member was there; those of the other CPU always do."""
        flags = pw.FLAG_SAMPLE_ID_ALL
        for has_end, own in itertools.product((True, False), (flags, flags | pw.FLAG_INHERIT)):
            path = self.make(has_end, own)
            for options, number in (((), 45), (("--cpu", "0"), 15), (("--cpu", "1"), 30)):
                with self.subTest(has_end=has_end, flags=own, options=options):
                    done = report(path, *options)
                    (row,) = flat(done.stdout)["functions"]
                    self.assertAlmostEqual(row["metrics"]["CM/KI"], 100)
                    self.assertEqual(row["windows"]["matched"], number)
                    self.assertIn("events were throttled 3 times", done.stderr)

    def test_samplers(self):
        """Since Linux 6.16 all of a group stand still, and their leader is named, whoever samples.

        Other groups go on. Before, an event stood still alone, and was named itself.
        """
        kinds = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD | pw.IDENTIFIER
        events = [
            pw.Event(name, 0, config, [config + 1], LONG, sample_type=kinds)
            for name, config in (("cycles", 0), ("instructions", 1), ("branch-misses", 5))
        ]
        for named, doubtful in (1, {"%CY", "%I"}), (2, {"%I"}), (6, {"%BM"}):
            recording = Recording([events[:2], events[2:]])
            for event in events * 100:
                recording.writer.sample(event, recording.where(), F, LONG, [(event.ids[0], 0)])
            recording.writer.throttle(pw.THROTTLE, recording.where(), named)
            done = report(recording.write(DATA / "samplers.data"))
            (row,) = flat(done.stdout)["functions"]
            shares = {title: row["doubts"][title] for title in ("%CY", "%I", "%BM")}
            expected = {title: "throttled" if title in doubtful else None for title in shares}
            self.assertEqual(shares, expected, named)

    def test_later(self):
        """Nothing is missing in the next span of time."""
        recording = Recording([[pw.Event("cycles", 0, 0, [1], LONG)]])
        for number in range(1900):
            recording.sample(F, LONG)
            if number == 500:
                recording.writer.throttle(pw.THROTTLE, recording.where(), 1)
        path = recording.write(DATA / "later.data")
        for table in objects(report(path, "--interval", "1e-6").stdout):
            begin, end = (f"{time:.9f}" for time in table["time"])
            for text in json.dumps(table), report(path, "--time", f"{begin},{end}").stdout:
                (row,) = flat(text)["functions"]
                expected = "throttled" if table["throttled"] else None
                self.assertEqual(row["doubts"]["%CY"], expected, text)


class Guests(unittest.TestCase):
    def test_rows(self):
        """The guest's kernel, its programs and a function of the host, in one share each."""
        windows = Windows()
        windows.map("/no/program", 0x1000)
        kinds = ((GUEST_KERNEL, 5), (GUEST_USER, 3), (pw.MISC_USER, 2))
        for number in range(100):
            for misc, share in kinds:
                for _ in range(share):  # a guest has any addresses
                    windows.window(0x1000 + number * 16 * (misc != pw.MISC_USER), misc=misc)
        path = windows.write(DATA / "guests.data")
        for options in (), ("--by", "dso"), ("--by", "srcline"):
            done = report(path, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = flat(done.stdout)["functions"]
            found = collections.Counter()
            for row in rows:
                found[row["symbol"]] += row["windows"]["samples"]
            with self.subTest(options=options):
                self.assertEqual(found["[guest kernel]"], 500)
                self.assertEqual(found["[guest]"], 300)
                self.assertEqual(sum(found.values()), 1000)
                total = sum(row["events"]["cycles"]["count"] for row in rows)
                self.assertEqual(total, 1000 * (LONG + WINDOW) + LONG)  # with the first sample


class Swapped(unittest.TestCase):
    def test_pipe(self):
        """Of a big-endian machine: the samples of a thread on two CPUs."""
        kinds = pw.IP | pw.TID | pw.CPU
        attr = struct.pack(">IIQQQ32x", 0, 64, 0, 1000, kinds)
        records = [
            (pw.HEADER_ATTR, attr + struct.pack(">Q", 1)),
            (pw.HEADER_FEATURE, struct.pack(">QII", pw.HEADER_NRCPUS, 128, 128)),
        ]
        for cpu in 2, 5, 5:
            records.append((pw.SAMPLE, struct.pack(">QIIII", F, 100, 101, cpu, 0)))
        path = DATA / "swapped.pipe"
        path.write_bytes(
            struct.pack(">QQ", int.from_bytes(b"2ELIFREP", "big"), 16)
            + b"".join(struct.pack(">IHH", kind, 2, 8 + len(body)) + body for kind, body in records)
        )
        rows = flat(report(path, "--by", "thread,cpu").stdout)["functions"]
        found = {row["symbol"]: row["events"]["cycles"]["count"] for row in rows}
        self.assertEqual(found, {"101::101;002": 1000, "101::101;005": 2000})


class Messages(unittest.TestCase):
    def refused(self, path: Path, message: str) -> None:
        done = report(path)
        self.assertEqual((done.returncode, done.stdout), (255, ""), done.stderr)
        self.assertIn(f"perf functions: {path}: {message}", done.stderr.splitlines()[-1])

    def test_records_of_a_newer_perf(self):
        class Versioned(pw.Writer):
            def features(self) -> dict[int, bytes]:
                return {**super().features(), HEADER_VERSION: pw.sized("9.1\x1b")}

        for kind, of in (Versioned, ", version 9.1\\x1b"), (pw.Writer, ""):
            windows = Windows()
            windows.window(0x1000)
            windows.writer.record(250, bytes(16))
            windows.writer.finished_round()
            writer = kind(windows.groups, windows.writer.records)
            writer.write(DATA / "newer.data")
            writer.write_pipe(DATA / "newer.pipe")
            for path in DATA / "newer.data", DATA / "newer.pipe":
                self.refused(path, f"written by a newer perf{of}: read it with that one")

    def test_no_counts(self):
        kinds = pw.Event("", 0, 0, []).sample_type ^ pw.READ
        cases = (
            (TRACEPOINT, 0, "only tracepoints, which have no counts: record with"),
            (0, pw.FLAG_FREQ, "no counter group, and no event that samples by itself and tells"),
        )
        for type_, flags, message in cases:
            event = pw.Event(
                "sched:sched_switch", type_, 5, [1], 1, sample_type=kinds & ~pw.PERIOD, flags=flags
            )
            writer = pw.Writer([[event]])
            writer.comm(pw.Where(1, 10, 10), "prog")
            writer.sample(event, pw.Where(2, 10, 10), F, 1, [], number=1)
            writer.write_pipe(DATA / "kinds.pipe")  # a file has the formats of tracepoints
            self.refused(DATA / "kinds.pipe", message)
        writer = pw.Writer([[pw.Event("intel_pt//", 9, 0, [1], 1, sample_type=kinds)]])
        writer.comm(pw.Where(1, 10, 10), "prog")
        writer.record(AUXTRACE_INFO, struct.pack("<IIQ", 1, 0, 0), 0)
        writer.write(DATA / "aux.data")
        self.refused(DATA / "aux.data", "only AUX data (intel_pt, arm_spe), which has no counts:")
