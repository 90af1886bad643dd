# SPDX-License-Identifier: GPL-2.0
"""Hostile recordings and sums files, from files, stdin and pipes.

They have names that a terminal would obey or JSON cannot hold, numbers that no recording has, and
groups that come too late. The script must print what perf functions prints.
"""

import csv
import io
import json
import math
import os
import pty
import random
import struct
import subprocess
import unittest
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from tests.harness import functionsfuzz
from tests.harness import perfdata as pw
from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, SCRIPT, must, run
from tests.harness.recording import LONG, WINDOW, Recording

DATA = CHECK / "hostile"
BPF_EVENT, NAMESPACES, HEADER_BPF_PROG_INFO = 18, 16, 25
COUNT, SUM = 2**64 - 1, 10**60  # the largest whole number, the largest sum
ONE = (1,) * 5  # totals and products of two events in one window
NASTY = "ev\x1b]0;il\x07\x9b2J\x7f\udc80\udcffö\t\u2028\\"
PRINTED = r"ev\x1b]0;il\x07\xc2\x9b2J\x7f\x80\xffö\x09" + "\u2028\\"  # the same for a terminal


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def sums_file(name: str, *groups: tuple[Sequence[str], Sequence[Sequence[object]]]) -> Path:
    """A sums file of groups.

    A group has its events, and lines of sums with name, numbers of windows and of matched windows,
    totals and products. No window is in a burst or leaves its function.
    """

    def line(*fields: object) -> str:
        escapes = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n"})
        return "\t".join(str(part).translate(escapes) for part in fields) + "\n"

    text = sumsfile.HEAD
    for events, rows in groups:
        text += line("set", "windows", 0, 0, 0, 0, *events)
        text += line("group", 999700, 0, 300, 0, 0, 1)
        for row in rows:
            ended, matched, *values = row[3:]
            text += line("row", *row[:3], matched, matched, matched, ended, *values)
    path = DATA / name
    path.write_text(text + "end\n", errors="surrogateescape")
    return path


def cycles(name: str, *rows: Sequence[object]) -> Path:
    """A sums file of one group of cycles and instructions."""
    return sums_file(name, (("cycles", "instructions"), rows))


def report(*options: object, **more) -> subprocess.CompletedProcess:
    return run(PERF, "functions", "report", *options, stderr=subprocess.PIPE, **more)


def loads(text: str) -> dict:
    """Parses JSON, which has no NaN and no Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    text.encode()  # raises for surrogates, which stand for bytes that are not UTF-8
    return json.loads(text, parse_constant=refuse)


def at_terminal(*command: object) -> str:
    """The text that a command writes to a terminal, without colours."""
    ours, theirs = pty.openpty()
    own = {"TERM": "xterm", "LC_ALL": "C.UTF-8", "PERF_PAGER": "cat", "PERF_CONFIG": "/dev/null"}
    output = b""
    # It leads no session: the kernel drops what is not read yet when the leader ends.
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | own
    ):
        os.close(theirs)
        try:
            while part := os.read(ours, 65536):
                output += part
        except OSError:  # it has ended
            pass
    os.close(ours)
    text = output.decode(errors="surrogateescape").replace("\r\n", "\n")
    for color in ("\x1b[m", "\x1b[31m", "\x1b[32m", "\x1b[90m", "\x1b[1m"):
        text = text.replace(color, "")
    return text


class Refused(unittest.TestCase):
    def assert_refused(self, why: str, done: subprocess.CompletedProcess) -> None:
        """One line tells why."""
        self.assertGreater(done.returncode, 0, done)
        self.assertEqual(done.stdout, "")
        self.assertIn(why, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Recordings(Refused):
    def test_group_that_comes_late(self):
        """In a pipe, a tracepoint joins the group of an event that was sampled before."""
        functionsfuzz.late_group().write_pipe(DATA / "late.pipe")
        self.assert_refused("the values of another event", report(DATA / "late.pipe"))

    def test_values_of_another_event(self):
        """The first value of a sample is of an event that reads values in another form."""
        for own, other in (
            (pw.FORMAT_ID | pw.FORMAT_GROUP, pw.FORMAT_ID | pw.FORMAT_GROUP | pw.FORMAT_LOST),
            (pw.FORMAT_ID, pw.FORMAT_ID | pw.FORMAT_GROUP),
        ):
            events = [
                pw.Event("cycles", 0, 0, [number], LONG, WINDOW, read_format=form)
                for number, form in ((1, own), (2, other))
            ]
            writer = pw.Writer([[event] for event in events])
            writer.comm(pw.Where(1, 100, 100), "program")
            for time in (2, 3):
                values = [(2, 2**40 + time), *((3, time) for _ in range(4000))]
                writer.sample(events[0], pw.Where(time, 100, 100), 0x1000, LONG, values)
                # the sample itself is of the first event
                head = writer.records[-1]
                writer.records[-1] = head[:8] + struct.pack("<Q", 1) + head[16:]
            writer.write(DATA / "values.data")
            with self.subTest(own=own):
                self.assert_refused(
                    "has a sample with the values of another event", report(DATA / "values.data")
                )

    def test_many_groups(self):
        """Each event samples, with the ids of 500 unknown events: the time is linear."""
        chance = random.Random(3)
        events = [pw.Event(f"r{number:x}", 4, number, [number], LONG) for number in range(1, 3000)]
        writer = pw.Writer([[event] for event in events])
        writer.comm(pw.Where(1, 100, 100), "program")
        for time, event in enumerate(events, 2):
            values = [(event.ids[0], time), *((chance.randrange(2**64), 1) for _ in range(500))]
            writer.sample(event, pw.Where(time, 100, 100), 0x1000, LONG, values)
        writer.write(DATA / "many.data")
        begin = monotonic()
        self.assertGreaterEqual(report(DATA / "many.data").returncode, 0)  # each has one sample
        self.assertLess(monotonic() - begin, 20)

    def test_sample_without_values(self):
        """The sample is of a group, but has the value of no event."""
        leader = pw.Event("cycles", 0, 0, [1], LONG, WINDOW, sample_type=pw.READ | pw.IDENTIFIER)
        writer = pw.Writer([[leader]])
        for _ in range(200):  # fill the memory after each sample
            writer.record(pw.SAMPLE, struct.pack("<QQ", 1, 0))
        writer.write_pipe(DATA / "empty.pipe")
        done = report(DATA / "empty.pipe")
        self.assertEqual((done.returncode, done.stdout), (255, ""))
        self.assertIn("the file is damaged, record again", done.stderr)

    def test_sample_of_no_event(self):
        """In a pipe, the sample comes before the first event."""
        leader = pw.Event("cycles", 0, 0, [1], LONG, WINDOW)
        writer = pw.Writer([[leader]])
        writer.sample(leader, pw.Where(1, 100, 100), 0x1000, LONG, [(0, LONG)])
        writer.finished_round()
        with (DATA / "before.pipe").open("wb") as file:
            file.writelines((struct.pack("<8sQ", b"PERFILE2", 16), *writer.records))
        done = report(DATA / "before.pipe")
        self.assertEqual((done.returncode, done.stdout), (255, ""))
        self.assertIn("cannot be read to its end", done.stderr)

    def test_arrays_of_a_program(self):
        """Those of a BPF program lie outside of its data, or nowhere. A record lacks namespaces."""
        event = pw.Event("cycles", 0, 0, [1], LONG, sample_type=pw.IP | pw.TID | pw.TIME)
        for arrays, place, number in (1 << 3, 2**40, 1), (1 << 3, 0, 2**24), (0, 4096, 1):
            info = bytearray(232)
            struct.pack_into("<I", info, 4, 7)
            struct.pack_into("<IIQ", info, 104, number, number, place)
            where, writer = pw.Where(1, 100, 100), pw.Writer([[event]])
            writer.side(BPF_EVENT, struct.pack("<HHIQ", 1, 0, 7, 0), where)  # program 7 is loaded
            writer.sample(event, where, 0x1000, LONG, [(1, 0)])
            program = struct.pack("<IIIQ", 1, len(info), 8, arrays) + info + bytes(8)
            writer.features = lambda now={**writer.features(), HEADER_BPF_PROG_INFO: program}: now
            writer.side(NAMESPACES, struct.pack("<IIQ", 100, 100, 1 << 20), where)
            writer.write(DATA / "program.data")
            done = report(DATA / "program.data")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("%CY", done.stdout)

    def test_rows_of_many_events(self):
        """Each sample is in another function: rows have no products of 64 events."""
        kinds = pw.IP | pw.TID | pw.TIME | pw.PERIOD | pw.IDENTIFIER
        for number in 64, 2:
            events = [
                pw.Event(f"r{event:x}", 4, event, [event], LONG, sample_type=kinds, read_format=0)
                for event in range(1, number + 1)
            ]
            recording = Recording([[event] for event in events])
            for place in range(14000):
                event = events[place % number]
                where = recording.where()
                recording.writer.sample(
                    event, where, 0x1000 + 16 * place, LONG, [(event.ids[0], 0)]
                )
            recording.writer.finished_round()
            path = recording.write(DATA / "wide.data")
            recording.writer.write_pipe(DATA / "wide.pipe")
            for done in report("-x", ",", path), report("-x", ",", DATA / "wide.pipe"):
                self.assertEqual(done.stdout.count("\n"), 14001, done.stderr)
        self.assertEqual(report("--by", "comm", path).returncode, 0)

    def test_events_of_one_name(self):
        """One counts 50 beside 100 instructions; the name is also a word of the command."""
        for word, first, other in (
            ("samples", "samples/KI", "samples#2/KI"),
            ("total", "event:total/KI", "total/KI"),
        ):
            counts = ("cycles", 0, 0), (word, 4, 0x99), (word, 4, 0x98), ("instructions", 0, 1)
            windows = Recording(
                [
                    [
                        pw.Event(name, kind, config, [number], LONG * (number == 1), WINDOW)
                        for number, (name, kind, config) in enumerate(counts, 1)
                    ]
                ]
            )
            for _ in range(30):
                for scale in LONG // WINDOW, 1:
                    windows.sample(0x1000, scale * WINDOW, scale * 50, scale * 25, scale * 100)
            path = windows.write(DATA / "word.data")
            (row,) = loads(must(PERF, "functions", "report", "-j", path, stderr=-1))["functions"]
            self.assertAlmostEqual(row["metrics"][first]["value"], 500)
            self.assertAlmostEqual(row["metrics"][other]["value"], 250)
            table = must(PERF, "script", "-s", SCRIPT, "-i", path).splitlines()
            found = dict(zip(table[0].split()[1:], table[1].split()[2:]))  # 0x1000 [unknown]
            values = f"event:{word}/KI", f"{word}#2/KI"
            self.assertEqual([found[title] for title in values], ["500.000", "250.000"])


class Numbers(Refused):
    def check(self, path: Path, *options: object) -> dict:
        """JSON and separated values of a report or a comparison have numbers; returns the JSON."""
        table = loads(must(PERF, "functions", "report", "-j", *options, path, stderr=-1))
        rows = csv.DictReader(
            io.StringIO(
                must(PERF, "functions", "report", "-x", ",", "--ci", *options, path, stderr=-1)
            )
        )
        for row in rows:
            for title, cell in list(row.items())[2:]:
                if title not in ("status", "weak", "rough") and cell != "-":
                    self.assertTrue(math.isfinite(float(cell)), (title, cell))
        return table

    def test_numbers_that_are_not_finite(self):
        """The interval of a change uses the fourth power of the largest sums, which is infinite."""
        events = "instructions", "page-faults"
        rows = (("f", "/x", "-", 2, 2, 1, SUM // part, SUM, 0, 0) for part in (1, 3))
        before, after = (
            sums_file(f"huge{number}.sums", (events, [row])) for number, row in enumerate(rows)
        )
        for path in before, after:
            self.check(path)
        (row,) = self.check(after, "--diff", before)["functions"]
        change = row["metrics"]["PF/KI"]
        self.assertIsNone(change["change"].get("low"))
        self.assertAlmostEqual(change["change"]["value"] / (1000 * (SUM // 3 - SUM)), 1)

    def test_too_many_groups_and_cpus(self):
        """Each is compared with those before it, so 100,000 would keep perf busy for minutes."""
        text = cycles("good.sums", ("f", "/x", "-", 1, 1, *ONE)).read_text()
        (group,) = (line for line in text.splitlines() if line.startswith("group"))
        many = "".join(f"group\t{number}\t0\t300\t0\t0\t1\n" for number in range(100_000))
        cpus = "".join(f"cpu\tx{number}\n" for number in range(100_000))
        for more in many, cpus:
            (DATA / "many.sums").write_text(text.replace(group, more + group))
            for words in (), ("--diff", DATA / "good.sums"):
                self.assert_refused(
                    "more than 1000 groups or CPUs: add up fewer files",
                    report(*words, DATA / "many.sums"),
                )

    def test_fields_that_do_not_fit(self):
        good = cycles("good.sums", ("f", "/x", "-", 1, 1, *ONE)).read_text()
        self.assertEqual(report(DATA / "good.sums").returncode, 0)
        damaged = "is damaged: write the file again with --sums"
        for old, new, why in (
            ("0\tcycles", "2\tcycles", damaged),
            ("300\t0\t0", f"300\t{2**32}\t0", damaged),
            ("windows\t0", "matched\t0", damaged),
            ("windows\t0", "windows\t3", damaged),  # there is one set
            ("lost\t0", f"lost\t{COUNT + 1}", damaged),
            ("partial\t0", "partial\t-1", damaged),
            ("-\t1\t1\t1\t1\t1", f"-\t1\t1\t1\t1\t{SUM * 2}", damaged),
            ("-\t1\t1", "-\t1\tnan", damaged),
            ("-\t1\t1", "-\t1\t2", damaged),  # more observations than windows
            ("1\nend", "1\t0\nend", damaged),
            ("\t1\nend", "\nend", damaged),
            ("row\tf", "row\tf\0", damaged),
            (" 7\n", " 7and more\n", "it is not a sums file"),
        ):
            with self.subTest(new=new):
                self.assertIn(old, good)
                (DATA / "bad.sums").write_text(good.replace(old, new))
                self.assert_refused(why, report(DATA / "bad.sums"))

    def test_rows_of_many_columns(self):
        """130,000 rows have one event, and one row has 480: a table of 4 GB."""
        groups = []
        for first in range(0, 480, 60):
            events = ["instructions", *(f"e{event:03}" for event in range(first, first + 60))]
            values = (len(events) * (len(events) + 3) // 2) * [1]
            groups.append((events, [("f", "/x", "-", 1, 1, *values)]))
        rows = [(f"g{number}", "", "-", 1, 1, 1, 1) for number in range(130_000)]
        for number, status in ((1000, 0), (130_000, 255)):
            done = report(sums_file("columns.sums", *groups, (["cycles"], rows[:number])))
            self.assertEqual(done.returncode, status, done.stderr)
        self.assert_refused("too many rows for their columns", done)
        path = DATA / "columns.sums"
        self.assert_refused("too many rows for their columns", report("--diff", path, path))

    def test_set_of_a_dropped_one(self):
        """A set may name one for its shares, and that a third one, which --source leaves out."""
        windows = sumsfile.window_set(("cycles", "instructions"), {"f": [(300, 100)] * 3}, even=2)
        samples = {"cycles": {"f": [1000] * 5}}
        third = sumsfile.sample_set(samples | {"instructions": {"f": [10]}}, even=3)
        path = DATA / "third.sums"
        path.write_text(
            f"{sumsfile.HEAD}{windows}{sumsfile.sample_set(samples, even=3)}{third}end\n"
        )
        made = DATA / "made.sums"
        must(PERF, "functions", "report", "--source", "windows", "--sums", made, path, stderr=-1)
        must(PERF, "functions", "report", made, stderr=-1)

    def test_group_of_too_many_events(self):
        """Each pair of events has a product in each row, so there are no more than 64 events."""
        for number in 64, 65:
            events = ["cycles", *(f"e{event:02}" for event in range(1, number))]
            values = (number + number * (number + 1) // 2) * [1]
            path = sums_file("events.sums", (events, [("f", "/x", "-", 1, 1, *values)]))
            status = number > 64
            self.assertEqual(bool(report(path).returncode), status)
        writer = Recording([[pw.Event(f"e{number}", 4, number, [number]) for number in range(65)]])
        writer.sample(0x1000, *65 * [1])
        path = writer.write(DATA / "events.data")
        self.assert_refused("is in too large a group: record fewer events", report(path))


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        events = "cycles", NASTY, "instructions"
        row = (NASTY, f"/lib/{NASTY}", "-", 9, 9, *(1,) * 9)
        cls.path = sums_file("names.sums", (events, [row, ("g", *row[1:])]))
        other = (NASTY, f"/lib2/{NASTY}", *row[2:])
        cls.twice = sums_file("names2.sums", (events, [row, other]))

    def test_json(self):
        """Control bytes as JSON has them; a byte that is not UTF-8 as text."""
        name = "ev\x1b]0;il\x07\x9b2J\x7f\\x80\\xffö\t\u2028\\"
        text = must(PERF, "functions", "report", "-j", self.path, stderr=-1)
        table = loads(text)
        self.assertEqual([row["symbol"] for row in table["functions"]], [name, "g"])
        self.assertEqual(table["functions"][0]["dso"], f"/lib/{name}")
        self.assertIn(name, [event["name"] for event in table["sets"][0]["events"]])
        self.assertIn(f"{PRINTED}/KI", table["functions"][0]["metrics"])
        loads(must(PERF, "functions", "report", "-j", "--diff", self.path, self.twice, stderr=-1))

    def test_control_characters_are_escaped(self):
        perf = PERF, "functions", "report"
        for command in (
            (*perf, "--ci", self.path),
            (*perf, "-x", ";", self.path),
            (*perf, "-j", self.path),
            (*perf, "--diff", self.path, self.twice),
            (*perf, "-F", "nothing", self.path),
        ):
            with self.subTest(command=command):
                text = at_terminal(*command)
                self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f-\x9f\udc80-\udcff]")
                if "-j" not in command:
                    self.assertIn(PRINTED[:20], text)
