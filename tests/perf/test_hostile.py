# SPDX-License-Identifier: GPL-2.0
"""Hostile recordings and sums files, from files, stdin and pipes.

They have names that a terminal would obey or JSON cannot hold, numbers that no recording has, and
groups that come too late. The script must print what perf functions prints.
"""

import csv
import io
import itertools
import json
import math
import os
import pty
import random
import re
import resource
import struct
import subprocess
import unittest
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from tests.harness import functionsfuzz
from tests.harness import perfwrite as pw
from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, must, run, words
from tests.harness.recording import LONG, WINDOW, Recording, Windows

DATA = CHECK / "hostile"
HEADER = "perf-function-sums 4\nby\tsymbol\t0\nlost\t0\nthrottled\t0\n"
COUNT, SUM = 2**64 - 1, 2**192 - 1  # the largest number of windows, the largest sum
ONE = (1,) * 5  # totals and products of two events in one window
NASTY = "ev\x1b]0;il\x07\x9b2J\x7f\udc80\udcffö\t\u2028\\"
PRINTED = r"ev\x1b]0;il\x07\xc2\x9b2J\x7f\x80\xffö\x09" + "\u2028\\"  # the same for a terminal


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def sums_file(name: str, *groups: tuple[Sequence[str], Sequence[Sequence[object]]]) -> Path:
    """A sums file of groups.

    A group has its events, and lines of sums with name, numbers of windows and of matched windows,
    totals and products. No window is in a burst or counts where it begins.
    """

    def line(*fields: object) -> str:
        escapes = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n"})
        return "\t".join(str(part).translate(escapes) for part in fields) + "\n"

    text = HEADER
    for events, rows in groups:
        text += line("group", "discard", 999700, 0, 300, 0, 0, 1, *events)
        for row in rows:
            samples, matched, *values = row[3:]
            none = [0] * len(values)
            text += line("sums", *row[:3], 0, samples, matched, matched, 0, 0, *values, *none)
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
    pid, file = pty.fork()
    if not pid:
        os.environ.update(TERM="xterm", LC_ALL="C.UTF-8", PERF_PAGER="cat", PERF_CONFIG="/dev/null")
        os.execv(str(command[0]), [str(word) for word in command])
    output = b""
    try:
        while part := os.read(file, 65536):
            output += part
    except OSError:  # it has ended
        pass
    os.close(file)
    os.waitpid(pid, 0)
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
        self.assert_refused("after the first samples: record again", report(DATA / "late.pipe"))

    def test_leader_that_comes_late(self):
        """In a pipe, a group gets another leader, which was sampled before with fewer events."""
        functionsfuzz.late_leader().write_pipe(DATA / "late.pipe")
        self.assert_refused("after the first samples: record again", report(DATA / "late.pipe"))

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

    def test_member_of_another_group(self):
        """A sample has the value of an event that the header has in another group."""
        events = [pw.Event("cycles", 0, 0, [number], LONG, WINDOW) for number in (1, 2, 3, 4)]
        writer = pw.Writer([events[:2], events[2:]])
        for values in [(1, LONG), (3, 1)], [(1, LONG), (4, 1)], [(2, LONG), (3, 1)]:
            writer.records.clear()
            writer.comm(pw.Where(1, 100, 100), "program")
            writer.sample(events[0], pw.Where(2, 100, 100), 0x1000, LONG, values, number=1)
            writer.write(DATA / "member.data")
            self.assert_refused(
                "is not in the group that counts it: the file is damaged, record again",
                report(DATA / "member.data"),
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
        self.assertIn("cannot be read to its end", done.stderr)

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

    def test_group_without_end(self):
        """Each two events have a product: 32 bits cannot number those of 100,000 events."""
        events = [pw.Event("cycles", 0, 0, [1], LONG, WINDOW)]
        events += [pw.Event(f"r{number:x}", 4, number, [number]) for number in range(2, 1100)]
        writer = pw.Writer([events])
        writer.comm(pw.Where(1, 100, 100), "program")
        writer.sample(events[0], pw.Where(2, 100, 100), 0x1000, LONG, [(1, LONG)])
        writer.write(DATA / "large.data")
        self.assert_refused("is in too large a group", report(DATA / "large.data"))

    def test_losses_without_end(self):
        """Their number does not wrap around."""
        windows = Windows()
        windows.window(0x1000)
        for _ in range(2):
            windows.writer.lost(windows.where(), 1, COUNT)
        path = windows.write(DATA / "lost.data")
        self.assertEqual(loads(report("-j", path).stdout)["lost"], str(COUNT))
        must(PERF, "functions", "report", path, "--sums", DATA / "lost.sums")
        done = report("-j", DATA / "lost.sums", path)
        self.assertEqual(loads(done.stdout)["lost"], str(COUNT))

    def test_comm_that_is_not_utf8(self):
        windows = Windows()
        windows.writer.comm(windows.where(), NASTY.replace("\t", ""))
        windows.window(0x1000)
        path = windows.write(DATA / "comm.data")
        row, _ = loads(must(PERF, "functions", "report", "--by", "comm", "-j", path))["functions"]
        self.assertEqual(row["symbol"], "ev\x1b]0;il\x07\x9b2J\x7f\\x80\\xffö\u2028\\")

    def test_cpu(self):
        """Messages name the CPUs of recordings."""
        paths = []
        for number, cpu in enumerate((NASTY.replace("\t", ""), "other")):
            windows = Windows()
            windows.writer.cpuid = cpu
            windows.window(0x1000)
            paths.append(windows.write(DATA / f"cpu-{number}.data"))
        for done in report(*paths), report("-M", "ipc", paths[0]):
            self.assertIn("ev\\x1b]0;il\\x07", done.stderr)
            self.assertNotRegex(done.stderr, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")


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
                if title not in ("status", "weak") and cell != "-":
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
        self.assertIsNone(change["interval"])
        self.assertAlmostEqual(change["change"] / (1000 * (SUM // 3 - SUM)), 1)

    def test_no_sums_of_windows_that_do_not_fit(self):
        """Sums that are too large are refused and do not wrap around.

        They are in one file or two, of one function or two.
        """
        full = ("f", "/x", "-", COUNT, 1, *ONE)
        heavy = ("f", "/x", "-", 1, 1, 1, SUM, *ONE[2:])
        for number, row in enumerate((full, heavy)):
            path = cycles(f"full{number}.sums", row)
            for inputs in ((path, path), (cycles("twice.sums", row, row),)):
                self.assert_refused("too large", report(*inputs))
            both = cycles("both.sums", row, ("g", *row[1:]))
            self.assert_refused("too large", report(both))
            self.assert_refused("too large", report("--diff", path, both))
            self.assertEqual(report("--sums", "-", path).stdout, path.read_text())

    def refuse_line(self, text: str) -> None:
        """perf refuses a sums file for one of its lines."""
        (DATA / "bad.sums").write_text(text)
        self.assert_refused(
            "is damaged: write the file again with --sums", report(DATA / "bad.sums")
        )

    def test_too_many_groups_and_cpus(self):
        """Each is compared with those before it, so 100,000 would keep perf busy for minutes."""
        text = cycles("good.sums", ("f", "/x", "-", 1, 1, *ONE)).read_text()
        (group,) = (line for line in text.splitlines() if line.startswith("group"))
        many = "".join(f"{group}{number}\n" for number in range(100_000))
        cpus = "".join(f"cpu\tx{number}\n" for number in range(100_000))
        for more in many, cpus:
            (DATA / "many.sums").write_text(text.replace(group, more + group))
            self.assert_refused(
                "it has more than 1000 groups or CPUs: add up fewer files",
                report(DATA / "many.sums"),
            )

    def test_fields_that_do_not_fit(self):
        good = cycles("good.sums", ("f", "/x", "-", 1, 1, *ONE)).read_text()
        self.assertEqual(report(DATA / "good.sums").returncode, 0)
        for old, new in (
            ("\t1\tcycles", "\t2\tcycles"),
            ("300\t0\t0", f"300\t{2**32}\t0"),
            ("300\t0\t0", f"300\t0\t{2**32}"),
            ("999700\t0", "999700\t-1"),
            ("discard", "matched"),
            ("lost\t0", f"lost\t{COUNT + 1}"),
            ("-\t0\t1\t1", f"-\t0\t{COUNT + 1}\t1"),
            ("-\t0\t1\t1\t1" + 4 * "\t0" + "\t1", f"-\t0\t1\t1\t1\t0\t0\t0\t0\t{SUM + 1}"),
            ("-\t0\t1\t1\t1", "-\t0\t1\t2\t1"),  # more matched windows than windows
            ("-\t0\t1\t1\t1", "-\t0\t2\t1\t2"),  # more bursts than matched windows
            ("-\t0\t1\t1\t1", "-\t0\t1\t1\t0"),
            ("-\t0", "-\t1"),  # opened in share mode discard
            ("-\t0", f"-\t{COUNT + 1}"),
            ("-\t0\t1\t1\t1\t0\t0", "-\t0\t1\t1\t1\t1\t1"),  # counted where it begins
            ("0\nend", "1\nend"),  # totals of no window
            ("0\nend", "0\t0\nend"),
            ("\t0\nend", "\nend"),
            ("sums\tf", "sums\tf\0"),
        ):
            with self.subTest(new=new):
                self.assertIn(old, good)
                self.refuse_line(good.replace(old, new))
        (DATA / "bad.sums").write_text(HEADER + "cpu\tsome\nend\n")
        self.assert_refused("has no group", report(DATA / "bad.sums", DATA / "good.sums"))
        (DATA / "bad.sums").write_text(good.replace(" 4\n", " 4and more\n"))
        self.assert_refused("it is not a sums file", report(DATA / "bad.sums"))

    def test_lines_of_auto_that_do_not_fit(self):
        """Windows may begin where they do not end, and each is of one burst.

        The lines of all intervals have to be where they belong.
        """
        begun = "300\t1\t90000\t300\t1"
        line = "sums\tf\t/x\t-\t1\t1\t0\t0\t{}" + "\t0" * 5 + "\t{}\n"
        group = "group\tauto\t999700\t0\t300\t0\t0\t1\tcycles\tinstructions\n"
        windows, long = sumsfile.intervals(2, [(300, 1)], [(999700, 9)]).split("\n")
        rows = line.format("1\t1", begun)
        good = f"{HEADER}{group}{windows}\n{long}\n{rows}end\n"
        path = DATA / "auto.sums"
        path.write_text(good)
        self.assertEqual(report("--sums", "-", path).stdout, good)
        for counts in "0\t0", "0\t1", "1\t0", "1\t2":
            with self.subTest(counts=counts):
                self.refuse_line(good.replace(rows, line.format(counts, begun)))
        for old, new in (
            (windows, f"{windows}\n{windows}"),
            (f"{windows}\n{long}", f"{long}\n{windows}"),
            (windows, "lost\t0\n" + windows),
            (long, f"lost\t0\n{long}"),
            (windows, windows.replace("\t1\t", "\t0\t", 1)),  # totals of no interval
            (long, long.replace("\t1\t", "\t0\t", 1)),
            (windows, windows + "\t0"),
            (windows, windows.rpartition("\t")[0]),
            (windows, "windows"),
            (long, long + "\t0"),
            (long, long.rpartition("\t")[0]),
            (long, "long\t1"),
            (windows, windows.replace("\t1\t", f"\t{COUNT + 1}\t", 1)),
            (long, long.replace("\t1\t1\t", f"\t1\t{COUNT + 1}\t", 1)),
            (windows, windows.replace("90000", str(SUM + 1))),
        ):
            with self.subTest(new=new):
                self.assertIn(old, good)
                self.refuse_line(good.replace(old, new))
        for share in "discard", "none":
            text = good.replace("auto", share).replace(rows, "")
            with self.subTest(share=share):
                self.refuse_line(text)
        for missing in windows, long:
            path.write_text(good.replace(f"{missing}\n", ""))
            done = report(path)
            self.assertGreater(done.returncode, 0)
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))

    def test_cells_have_the_number(self):
        """Cells have the number of the JSON at any size, as far as their digits allow."""
        digits = {"CPI": 1, "%I": 1, "%CY": 1}
        for number in (10**15, 10**16, 10**31, 10**32, SUM):
            path = cycles("cell.sums", ("f", "/x", "-", COUNT, COUNT, number, 1, number, 1, 1))
            (row,) = loads(report("-j", path).stdout)["functions"]
            for done in report(path), report("--ci", path):
                titles, cells = words(done.stdout)[-2:]
                cells = [cell.strip("?") for cell in cells if ".." not in cell]
                titles = [title for title in titles if title not in ("95", "%")]
                printed = dict(zip(titles[1:], cells[1:]))
                self.assertEqual(int(printed["#"]), 2**64)  # a double of COUNT
                for column in digits:
                    value = row["metrics"][column]
                    self.assertTrue(
                        math.isclose(float(printed[column]), value, rel_tol=0.05, abs_tol=0.05),
                        (column, printed, value),
                    )
            other = cycles("other.sums", ("f", "/x", "-", COUNT, COUNT, *ONE))
            line = words(report("--diff", path, other, "-F", "CPI").stdout)[1]
            self.assertTrue(math.isclose(float(line[2].strip("*")), 1 - number, rel_tol=0.05))

    def test_callers_without_squares(self):
        """The product of two totals is 0, which no windows can have."""
        path = cycles("callers.sums", ("[all]", "", "-", 2, 2, 600, 300, 0, 0, 0))
        path.write_text(path.read_text().replace("by\tsymbol", "by\tchildren"))
        done = report("-j", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = loads(done.stdout)["functions"]
        self.assertEqual(row["metrics"]["%CY"], 100)

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

    def test_too_many_columns(self):
        groups = (
            (("instructions", *(f"e{number}-{event:02}" for event in range(60))), [])
            for number in range(9)
        )
        row = "f", "/x", "-", 1, 1, *(61 + 61 * 62 // 2) * [1]
        path = sums_file("columns.sums", *((events, [row]) for events, _ in groups))
        done = report(path)
        self.assert_refused("too many events for a table (record fewer)", done)

    def test_titles_of_columns(self):
        """No two columns have the same title, whose case does not matter to --sort."""
        events = "BM", "X", "branch-misses", "instructions", "x"
        path = sums_file(
            "titles.sums", (events, [("f", "/x", "-", 9, 9, 10, 20, 30, 1000, 40, *15 * [0])])
        )
        table = loads(report("-j", path).stdout)
        values = {name: round(value) for name, value in table["functions"][0]["metrics"].items()}
        self.assertEqual(
            {name: value for name, value in values.items() if name.endswith("/KI")},
            {"BM/KI": 30, "event:BM/KI": 10, "X/KI": 20, "event:x/KI": 40},
        )

    def test_many_rows_of_one_name(self):
        """In 20,000 DSOs, some of one short name, and at 20,000 addresses of one."""
        dsos = [("f", f"/{number % 100}/{number // 2}.so", "-") for number in range(20000)]
        addresses = [("f", "/x.so", hex(number)) for number in range(20000)]
        for name, rows in (("dsos", dsos), ("addresses", addresses)):
            path = cycles(f"{name}.sums", *((*row, 1, 1, *ONE) for row in rows))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            labels = [line[:-5] for line in words(report(path).stdout)[1:]]
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertLess(after.ru_utime - before.ru_utime, 0.5)
            expected = (
                [["f", f"[{dso}]"] for _, dso, _ in rows]
                if name == "dsos"
                else [["f", address] for _, _, address in rows]
            )
            self.assertEqual(sorted(labels), sorted(expected))
            done = report("--diff", path, path)
            self.assertEqual(done.returncode, 0, done.stderr)
            last = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertLess(last.ru_utime - after.ru_utime, 3)


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
        self.assertEqual(table["groups"][0]["events"][1], name)
        self.assertIn(f"{PRINTED}/KI", table["functions"][0]["metrics"])
        loads(must(PERF, "functions", "report", "-j", "--diff", self.path, self.twice, stderr=-1))

    def test_no_terminal_obeys(self):
        perf = PERF, "functions", "report"
        for command in (
            (*perf, self.path),
            (*perf, self.twice),
            (*perf, "--ci", self.path),
            (*perf, "-x", ";", self.path),
            (*perf, "-j", self.path),
            (*perf, "--diff", self.path, self.path),
            (*perf, "--diff", "-x", ";", self.path, self.path),
            (*perf, "-F", "nothing", self.path),
        ):
            with self.subTest(command=command):
                text = at_terminal(*command)
                self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f-\x9f\udc80-\udcff]")
                if "-j" not in command:
                    self.assertIn(PRINTED[:20], text)

    def test_separated_values_are_the_names(self):
        """Programs that read them get all bytes of names."""
        done = run(
            PERF, "functions", "report", "-x", ",", self.path, stderr=-1, errors="surrogateescape"
        )
        rows = list(csv.reader(io.StringIO(done.stdout)))
        self.assertEqual(rows[1][:2], [NASTY, f"/lib/{NASTY}"])
        names = "a\nb", "a\rb", 'a"b', "a,b"
        path = cycles("separated.sums", *((name, "/x", "-", 1, 1, *ONE) for name in names))
        text = subprocess.check_output((PERF, "functions", "report", "-x", ",", path)).decode()
        rows = list(csv.reader(io.StringIO(text, newline="")))
        self.assertEqual([row[0] for row in rows[1:]], [*names])

    def test_one_symbol_in_several_dsos(self):
        """A row has the short name of its DSO, or its path if another one has the same."""
        dsos = "/1/a", "/2/a", "/3/b"
        path = cycles("dsos.sums", *(("f", dso, "-", 1, 1, *ONE) for dso in dsos))
        labels = [line.split()[:2] for line in report(path).stdout.splitlines()[1:]]
        self.assertEqual(labels, [["f", f"[{dso}]"] for dso in ("/1/a", "/2/a", "b")])


class Inputs(unittest.TestCase):
    """The same table, wherever recordings and sums come from."""

    @classmethod
    def setUpClass(cls):
        windows = Windows()
        for address in (0x1000, 0x2000, 0x2000):
            windows.window(address)
        cls.recording = windows.write(DATA / "input.data")
        windows.writer.write_pipe(DATA / "input.pipe")
        cls.pipe = DATA / "input.pipe"
        cls.sums = DATA / "input.sums"
        cls.table = must(PERF, "functions", "report", cls.recording, stderr=-1)
        must(PERF, "functions", "report", cls.recording, "--sums", cls.sums)

    def bash(self, command: str) -> str:
        """The output of a shell in which report is perf functions report."""
        commands = f'report() {{ {PERF} functions report "$@"; }}; '
        done = run("bash", "-c", commands + command, stderr=-1)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_stdin(self):
        for command in (
            f"cat {self.sums} | report -",
            f"cat {self.sums} | report -i -",
            f"report - < {self.sums}",
            f"cat {self.pipe} | report -",
            f"report -i - < {self.pipe}",
            f"report - < {self.recording}",
        ):
            with self.subTest(command=command):
                self.assertEqual(self.bash(command), self.table)

    def test_process_substitution(self):
        for command in (
            f"report <(cat {self.sums})",
            f"report <(cat {self.pipe})",
            f"report -i <(cat {self.pipe})",
        ):
            with self.subTest(command=command):
                self.assertEqual(self.bash(command), self.table)
        sums = report(*[self.recording] * 4, "--sums", "-").stdout
        pipes = f"<(cat {self.pipe}) <(cat {self.sums}) <(cat {self.pipe}) - < {self.pipe}"
        self.assertEqual(self.bash(f"report --sums - {pipes}"), sums)
        self.assertEqual(
            self.bash(f"report --diff <(cat {self.pipe}) <(cat {self.sums})"),
            self.bash(f"report --diff {self.recording} {self.recording}"),
        )

    def test_slow_pipe(self):
        """Its first byte comes late and alone."""
        slow = "(sleep 0.3; head -c 1 {0}; sleep 0.3; tail -c +2 {0})"
        for path in self.sums, self.pipe:
            self.assertEqual(self.bash(f"report <{slow.format(path)}"), self.table)

    def test_short_queue(self):
        """perf report delivers all samples, however few may wait for their turn."""
        windows = Windows()
        # two CPUs whose buffers are written one after the other
        for first in 2000, 2001:
            windows.clock = itertools.count(first, 2)
            for _ in range(1500):
                windows.window(0x1000)
        windows.writer.write_pipe(DATA / "queue.pipe")
        windows.write(DATA / "queue.data")
        for size in "80K", "200K", "1M":
            config = DATA / "queue.config"
            config.write_text(f"[report]\n\tqueue-size = {size}\n")
            for source in "- < queue.pipe", "queue.data":
                with self.subTest(size=size, source=source):
                    rows = must(
                        *("bash", "-c", f"{PERF} report --stdio -F sample -s pid -i {source}"),
                        env={**os.environ, "PERF_CONFIG": str(config)},
                        cwd=DATA,
                        stderr=-1,
                    )
                    numbers = re.findall(r"^ +(\d+)", rows, re.MULTILINE)
                    self.assertEqual(set(numbers), {"6001"}, rows)

    def test_nothing(self):
        for source in "/dev/null", "<(true)", "- < /dev/null":
            done = run("bash", "-c", f"{PERF} functions report {source}", stderr=-1)
            self.assertEqual((done.returncode, done.stdout), (255, ""))
            self.assertTrue(done.stderr)


if __name__ == "__main__":
    unittest.main()
