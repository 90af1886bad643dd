#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of generate-function-metrics.py, under perf script and, on 7.3, by itself.

Its tables are compared with those of perf functions, and with counts that are known.
"""

import csv
import importlib.util
import io
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.env import BASE, BUILD, CHECK, LINUX, PERF, SCRIPT, must, run
from tests.harness.recording import LONG, WINDOW, Recording, Windows
from tests.harness.simulation import Libraries, Simulation

SPEC = importlib.util.spec_from_file_location("function_metrics", SCRIPT)
fm = importlib.util.module_from_spec(SPEC)
sys.modules["function_metrics"] = fm
SPEC.loader.exec_module(fm)

DATA = CHECK / "function-metrics"
DATA.mkdir(parents=True, exist_ok=True)
RANDOM = int(os.environ.get("FUNCTIONS_RECORDINGS", "40"))
PROGRAM = {"PYTHONPATH": str(BUILD / "perf/python"), "PATH": "/usr/bin:/bin"}
# perf's module reads recordings since 7.3; perf script of 7.4 only starts the program
WAYS = ("script",) if BASE == "6.12" else ("script", "module")


def table(path: Path, *options: object, way: str = "script") -> subprocess.CompletedProcess:
    """The script's table, made in one of the ways to run it."""
    if way == "module":
        return run(SCRIPT, "-i", path, *options, stderr=-1, env=PROGRAM)
    return run(PERF, "script", "-i", path, "-s", SCRIPT, "--", *options, stderr=-1)


def rows(text: str) -> list[dict[str, str]]:
    """The rows of comma-separated values."""
    return list(csv.DictReader(io.StringIO(text)))


WINDOWS = "functions", "report", "--source", "windows", "-x", ","
LOSSES = re.compile(": (.* were (?:lost|throttled) .*)")


class Case(unittest.TestCase):
    def assert_rates(self, found: str, expected: str) -> int:
        """The same rates of matched windows. Returns their number.

        The command adds up two events of one meaning, as cycles:u and cycles:k.
        """
        ours, others = (
            {(row["symbol"], row["dso"]): row for row in rows(text)} for text in (found, expected)
        )
        titles = {title for row in ours.values() for title in row if re.search("^CPI$|/KI$", title)}
        if titles - next(iter(others.values()), {}).keys():
            return 0
        cells = {
            (name, title): float(row[title])
            for name, row in ours.items()
            for title in titles
            if row[title] != "-"
        }
        for (name, title), value in cells.items():
            self.assertTrue(
                math.isclose(float(others[name][title]), value, rel_tol=1e-9), (name, title, value)
            )
        return len(cells)

    def read(self, path: Path, *options: object) -> list[dict[str, str]]:
        """The rows, the same in each way; nothing is said."""
        found = None
        for way in WAYS:
            done = table(path, "--csv", *options, way=way)
            self.assertEqual((done.returncode, done.stderr), (0, ""), way)
            self.assertIn(found, (None, done.stdout))
            found = done.stdout
        return rows(found)

    def refused(self, path: Path, reason: str, *options: object) -> None:
        """One line says why there is no table."""
        for way in WAYS:
            done = table(path, *options, way=way)
            self.assertEqual((done.returncode, done.stdout), (1, ""), way)
            said = done.stderr
            if way == "module":  # perf says first that a handler has failed
                said = said[max(said.find("generate-function-metrics:"), 0) :]
            self.assertRegex(said, rf"\Agenerate-function-metrics: .*{reason}.*\n\Z")


class SameAsCommand(Case):
    def test_random_recordings(self):
        """The rates of windows are those of perf functions report, and so is what was lost."""
        libraries, path, compared = Libraries(DATA), DATA / "random.data", 0
        for seed in range(RANDOM):
            Simulation(seed, libraries).run(300, path)
            command = run(PERF, *WINDOWS, "-i", path, stderr=-1)
            expected = command.stdout
            for way in WAYS:
                with self.subTest(seed=seed, way=way):
                    done = table(path, "-s", "discard", "--csv", way=way)
                    if not rows(expected):
                        self.assertRegex(done.stderr, "no window")
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(*(LOSSES.findall(one.stderr) for one in (done, command)))
                    compared += self.assert_rates(done.stdout, expected)
        self.assertGreater(compared, RANDOM)


class Samplers(Case):
    """Groups whose members sample by themselves, as `perf functions record` records them."""

    GROUP = (
        ("cycles", 0, 0, LONG, WINDOW),
        ("instructions", 0, 1, 5003),
        ("branch-misses", 0, 5, 101),
        ("cache-misses", 0, 3),
    )

    def recording(self, cpus: int = 1, flags: int = 0) -> Recording:
        """Groups with one id per CPU: 1, 2 of cycles, 3, 4 of instructions ..."""
        flags |= pw.FLAG_SAMPLE_ID_ALL | pw.FLAG_EXCLUDE_KERNEL
        group = [
            pw.Event(name, kind, config, [cpus * place + cpu for cpu in range(1, cpus + 1)], *more)
            for place, (name, kind, config, *more) in enumerate(self.GROUP)
        ]
        for event in group:
            event.flags = flags
        return Recording([group])

    def test_same_as_command(self):
        """Random samples of all members on two CPUs and threads, with losses and throttling."""
        for seed in range(RANDOM):
            chance = random.Random(seed)
            inherit = pw.FLAG_INHERIT if seed % 2 else 0
            recording = self.recording(2, inherit)
            values, due = defaultdict(int), defaultdict(int)
            for _ in range(600):
                cpu, tid = chance.randrange(2), chance.choice((100, 101))
                where, kind = recording.where(tid, cpu), chance.random()
                if kind < 0.02:
                    recording.writer.lost(where, 1 + cpu, 2)
                    continue
                if kind < 0.06:
                    what = chance.choice((pw.THROTTLE, pw.UNTHROTTLE))
                    recording.writer.throttle(what, where, chance.randrange(1, 7))
                    continue
                sampler = chance.choices((0, 1, 2), (6, 2, 1))[0]
                stream = cpu, tid if inherit else 0
                is_first = chance.random() < 0.9  # no other event has overflowed at the same time
                length = WINDOW if due[stream] else LONG
                due[stream] ^= not sampler
                own = []
                for place in range(4):
                    number = 2 * place + 1 + cpu
                    count = length * (1, 0.5, 0.01, 0.02)[place] * chance.uniform(0.8, 1)
                    values[number, stream] += round(count) if is_first else 0
                    own.append((number, values[number, stream]))
                recording.writer.sample(
                    recording.groups[0][sampler],
                    where,
                    chance.choice((0x1000, 0x1000, 0x1000, 0x2000)),
                    1,
                    own,
                    number=2 * sampler + 1 + cpu,
                )
            path = recording.write(DATA / "samplers.data")
            expected = run(PERF, *WINDOWS, "-i", path, stderr=-1).stdout
            self.assertGreaterEqual(len(rows(expected)), 2)
            for way in WAYS:
                with self.subTest(seed=seed, way=way):
                    done = table(path, "-s", "discard", "--csv", way=way)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertGreater(self.assert_rates(done.stdout, expected), 0)


class Counts(Case):
    """Recordings whose counts are written down."""

    EVENTS = (
        ("cycles", 0, 0),
        ("instructions", 0, 1),
        ("branch-misses", 0, 5),
        ("cache-references", 0, 2),
        ("cache-misses", 0, 3),
        ("r001b", 4, 0x1B),
    )

    def test_published_columns(self):
        """Each column of two windows of f and one of g, of known counts."""
        group = [
            pw.Event(name, kind, config, [number], *((LONG, WINDOW) if number == 1 else ()))
            for number, (name, kind, config) in enumerate(self.EVENTS, 1)
        ]
        recording = Recording([group], cpuid="0x00000000413fd0c1")
        recording.sample(0x1000, LONG, *5 * [7])
        for address, *counts in (
            (0x1000, 300, 100, 1, 20, 10, 125),
            (0x1000, 300, 50, 0, 20, 0, 25),
            (0x2000, 400, 50, 2, 0, 0, 50),
        ):
            recording.sample(address, LONG, *5 * [9])
            recording.sample(address, *counts)
        f, g = self.read(recording.write(DATA / "published.data"))
        expected = {
            "CPI": (4, 8),
            "%RI": (100, 100),
            "BM/KI": (1000 / 150, 40),
            "CM/KI": (10000 / 150, 0),
            "%CM": (25, None),
            "%CY": (60, 40),
            "%I": (75, 25),
            "%BM": (100 / 3, 200 / 3),
            "%L1DA": (100, 0),
            "%L1DM": (100, 0),
            "%IS": (75, 25),
            "DIS": (0, 0),
        }
        self.assertEqual([*f], ["symbol", "dso", "#", *expected])
        for title, values in expected.items():
            for row, value in zip((f, g), values):
                with self.subTest(title, symbol=row["symbol"]):
                    if value is None:
                        self.assertEqual(row[title], "-")
                    else:
                        self.assertAlmostEqual(float(row[title]), value)

    def test_output(self):
        """Rows by a column, by name where equal; their number; what it cannot do is one line."""
        windows = Windows()
        for address in 0x3000, 0x1000, 0x1000, 0x2000, 0x2000:
            windows.window(address)
        path = windows.write(DATA / "output.data")
        names = [row["symbol"] for row in self.read(path)]
        self.assertEqual(names, ["0x1000", "0x2000", "0x3000"])
        names = [row["symbol"] for row in self.read(path, "--sort", "symbol", "--limit", "2")]
        self.assertEqual(names, ["0x1000", "0x2000"])
        self.refused(path, "no column FOO in this recording, there are: symbol # CPI", "--sort=FOO")
        self.refused(path, "--limit", "--limit=0")
        done = run("sh", "-c", f"'{PERF}' script -i '{path}' -s '{SCRIPT}' > /dev/full")
        told = "generate-function-metrics: the table cannot be written: No space left on device\n"
        self.assertEqual((done.returncode, done.stdout), (1, told))
        self.refused(Windows().write(DATA / "none.data"), "no window .*: use perf functions report")

    def test_control_characters_in_names_are_escaped(self):
        """Control bytes, bytes that are not UTF-8, and letters that the C locale lacks."""
        events = (("cycles", 0, 0), ("instructions", 0, 1), ("é\x1b]0;il\x07\udcff", 4, 0x777))
        group = [
            pw.Event(*event, [number], *((LONG, WINDOW) if number == 1 else ()))
            for number, event in enumerate(events, 1)
        ]
        recording = Recording([group])
        for cycles in LONG, LONG, WINDOW:
            recording.sample(0x1000, cycles, 10, 1)
        path = recording.write(DATA / "names.data")
        title = r"é\x1b]0;il\x07\xff/KI"
        command = PERF, "script", "-i", path, "-s", SCRIPT, "--", "--sort", title
        for locale in "C", "C.UTF-8":
            self.assertIn(title, run(*command, stderr=-1, env={"LC_ALL": locale}).stdout, locale)


class Cases(Case):
    """Recordings as people have them."""

    def test_group_that_the_header_does_not_tell(self):
        """The ids in the samples tell it: f has CPI 2 and g 4, in 60 and 59 windows."""
        kinds = pw.IP | pw.TID | pw.TIME | pw.READ | pw.CPU | pw.PERIOD | pw.IDENTIFIER
        form = {"sample_type": kinds, "read_format": pw.FORMAT_ID | pw.FORMAT_GROUP}
        cycles = pw.Event("cycles:u", 0, 0, [2], 1000, **form)
        instructions = pw.Event("instructions:u", 0, 1, [3], 1 << 62, **form)
        recording = Recording([[cycles], [instructions]])
        total = [0, 0]
        for number in range(120):
            g = number // 10 % 2
            total[0] += 1000
            total[1] += 250 if g else 500
            values = [(2, total[0]), (3, total[1])]
            recording.writer.sample(cycles, recording.where(), 0x1000 * (1 + g), 1000, values)
        path = recording.write(DATA / "no-group-desc.data")
        found = self.read(path, "-s", "none", "--sort", "symbol")
        cells = [(row["symbol"], row["#"], row["CPI"]) for row in found]
        self.assertEqual(cells, [("0x1000", "59", "2.0"), ("0x2000", "60", "4.0")])

    def test_leader_that_does_not_sample(self):
        """The event that samples has the windows: f has CPI 2 and g 4, in 30 windows each. The
        first leader counts nothing."""
        idle = pw.Event("cache-misses:u", 0, 3, [1])
        instructions = pw.Event("instructions:u", 0, 1, [3])
        cycles = pw.Event("cycles:u", 0, 0, [2], LONG, WINDOW)
        for group in [idle, cycles, instructions], [instructions, cycles]:
            recording = Recording([group])
            for number in range(120):
                address, cpi = (0x1000, 2) if number < 60 else (0x2000, 4)
                length = WINDOW if number % 2 else LONG
                recording.values[2] += length
                recording.values[3] += length // cpi if length == WINDOW else length
                values = [(event.ids[0], recording.values[event.ids[0]]) for event in group]
                where = recording.where()
                recording.writer.sample(cycles, where, address, length, values, number=2)
            path = recording.write(DATA / "other-samples.data")
            with self.subTest(group[0].name):
                found = self.read(path, "--sort", "symbol")
                cells = [(row["symbol"], row["#"], row["CPI"]) for row in found]
                self.assertEqual(cells, [("0x1000", "30", "2.0"), ("0x2000", "30", "4.0")])
                expected = run(PERF, *WINDOWS, "-i", path, stderr=-1).stdout
                self.assertEqual(sorted(float(row["CPI"]) for row in rows(expected)), [2, 4])

    def test_groups_without_a_common_event(self):
        """Where each period is a window, all is counted: f has 10 mispredicts and 200 branches per
        1000 instructions and g 50 and 200. Else nobody can say."""
        for window in 0, 300:
            recording = Recording(
                [
                    [
                        pw.Event("cycles:u", 0, 0, [1], 1000, window),
                        pw.Event("instructions:u", 0, 1, [2]),
                    ],
                    [
                        pw.Event("branches:u", 0, 4, [3], 100),
                        pw.Event("branch-misses:u", 0, 5, [4]),
                    ],
                ]
            )
            for address, cycles, mispredicts in (0x1000, 2000, 5), (0x2000, 4000, 25):
                for _ in range(cycles // 200):
                    recording.sample(address, 1000, 200000 // cycles * 5)
                    if window:
                        recording.sample(address, window, window // 2)
                for _ in range(10):
                    recording.sample(address, 100, mispredicts, group=1)
            path = recording.write(DATA / "apart.data")
            for way in WAYS:
                with self.subTest(window=window, way=way):
                    done = table(path, "-s", "none", "--csv", "--sort=symbol", way=way)
                    cells = [(row["BM/KI"], row["branches/KI"]) for row in rows(done.stdout)]
                    known = [("10.0", "200.0"), ("50.0", "200.0")]
                    self.assertEqual(cells, [("-", "-"), ("-", "-")] if window else known)
                    self.assertEqual("no values of BM/KI, br" in done.stderr, window > 0)

    def test_by_itself(self):
        """Where there is no module, or none that has counts, one line says so."""
        with tempfile.TemporaryDirectory() as folder:
            for text, reason in (
                ("raise ImportError", "Python finds no module perf: set PYTHONPATH"),
                ("sample_event = 1", "this module perf has no counts of groups: use perf script"),
            ):
                Path(folder, "perf.py").write_text(text, encoding="utf-8")
                done = run(SCRIPT, env={"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"})
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stdout, rf"\Agenerate-function-metrics: {reason}.*\n\Z")


class EventNames(unittest.TestCase):
    """The same event under its names; a number of another CPU, or of none, means nothing."""

    ARM = "0x00000000413fd0c1"

    def test_names(self):
        for expected, name, kind, config, cpu in (
            ("cycles", "cpu_core/cycles/", 0, 4 << 32, ""),
            ("cycles", "cycles/period=999700,alt-period=300/u", 0, 0, ""),
            ("cycles", "mine", 0, 0, ""),
            ("cycles", "armv8_pmuv3_0/cpu_cycles/", 8, 0x11, ""),
            ("cycles", "CPU_CLK_UNHALTED.THREAD", 4, 0x3C, ""),
            ("cycles", "r0011", 4, 0x11, self.ARM),
            ("r0011", "r0011", 4, 0x11, "GenuineIntel-6-85-4"),
            ("r11", "r11:u", 4, 0x11, ""),
            ("cache-misses", "L1-dcache-load-misses", 3, 0x10000, self.ARM),
            ("L1-dcache-load-misses", "L1-dcache-load-misses", 3, 0x10000, ""),
            ("event=0x10", "cpu/event=0x10,period=9/u", 9, 0x10, ""),
        ):
            attr = fm.Attr(struct.pack("=IIQQQQQ", kind, 160, config, 0, 16, 8, 0))
            with self.subTest(name, cpu=cpu):
                self.assertEqual(fm.event_name(attr, name, cpu), expected)


class Scripts(unittest.TestCase):
    """The scripts of `perf script record` and `report`, which sh runs here as in perf."""

    GROUP = (
        "{cycles/period=999700,alt-period=300/,instructions,branch-misses,cache-references,"
        "cache-misses}:uS"
    )
    REPORT = "-s", "/exec/scripts/python/generate-function-metrics.py", "--"

    def test_arguments(self):
        """The user's events replace the default group; options are the script's but for a file."""
        record = "record", "-T", "--sample-cpu"
        for script, options, expected in (
            ("record", ["-o", "x"], [*record, "-e", self.GROUP, "-o", "x"]),
            ("record", ["--", "sh", "-e"], [*record, "-e", self.GROUP, "--", "sh", "-e"]),
            ("record", ["-a", "-e{a}:S"], [*record, "-a", "-e{a}:S"]),
            ("report", ["-s", "none"], ["script", *self.REPORT, "-s", "none"]),
            ("report", ["-i", "a b", "--csv"], ["script", "-i", "a b", *self.REPORT, "--csv"]),
        ):
            with self.subTest(options), tempfile.TemporaryDirectory() as folder:
                perf = Path(folder, "perf")
                perf.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
                perf.chmod(0o755)
                path = SCRIPT.parent / f"bin/generate-function-metrics-{script}"
                env = {"PATH": f"{folder}:/usr/bin:/bin", "PERF_EXEC_PATH": "/exec"}
                self.assertEqual(run("sh", path, *options, env=env).stdout.splitlines(), expected)

    def test_events_of_the_user(self):
        """perf script takes them, too."""
        path = DATA / "script-record.data"
        command = PERF, "script", "record", "generate-function-metrics", "-e", "cpu-clock"
        env = {"PATH": f"{PERF.parent}:/usr/bin:/bin", "PERF_EXEC_PATH": str(LINUX / "tools/perf")}
        must(*command, "-o", path, "--", "true", env=env)
        self.assertIn("cpu-clock", run(PERF, "evlist", "-i", path).stdout)

    def test_usage(self):
        """Each option that `perf script -l` advertises is one of the script's."""
        text = (SCRIPT.parent / "bin/generate-function-metrics-report").read_text()
        usage = re.search("(?m)^# args: (.*)", text)[1]
        help_ = run(SCRIPT, "--help").stdout
        for option in re.findall(r"(?<![\w-])--?\w[\w-]*", usage):
            self.assertRegex(help_, rf"(?<!\S){option}\b")
