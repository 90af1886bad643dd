# SPDX-License-Identifier: GPL-2.0
"""Tests of perf functions: sums, sums files, output and bad input.

On random recordings it has the same sums as generate-function-metrics.py and as the simulation.
tests/harness/simulation.py makes the recordings and knows their sums.
"""

import csv
import functools
import io
import itertools
import json
import os
import unittest
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.simulation import BY, SEVERAL, Libraries, Simulation, recorded
from tests.harness.tables import flat, objects

DATA = CHECK / "functions"
RANDOM = int(os.environ.get("FUNCTIONS_RECORDINGS", "60"))


def native(path: Path, *options: object):
    """perf functions report."""
    return run(PERF, "functions", "report", "-i", path, *options, stderr=-1)


def sums_of(*arguments: object) -> tuple[dict[tuple, dict], list[dict]]:
    """The sums by function and group, and those of all intervals."""
    return sumsfile.read(must(PERF, "functions", "report", "--sums=-", *arguments, stderr=-1))


@functools.cache
def libraries() -> Libraries:
    """The libraries that the recordings are of."""
    return Libraries(DATA)


class RandomRecordings(unittest.TestCase):
    def check(self, seed: int) -> None:
        simulation = Simulation(seed, libraries())
        path = DATA / "random.data"
        simulation.run(simulation.random.choice((5, 100, 1000)), path)
        ours = native(path, "-j")
        self.assertEqual(ours.returncode, 0, ours.stderr)
        ours = flat(ours.stdout)
        self.check_sums(simulation, path)
        self.assertEqual((ours["lost"], ours["throttled"]), (simulation.lost, simulation.throttled))
        # the events of a leader add up to what was counted
        for event, expected in simulation.counted().items():
            counts = [row["events"][event]["count"] for row in ours["functions"]]
            self.assertAlmostEqual(sum(counts), expected, delta=1e-9 * expected)

    def check_sums(self, simulation: Simulation, *inputs: object) -> None:
        """The sums of windows, and the numbers of the leaders' samples."""
        sums, intervals = sums_of(*inputs)
        windows = {key: one for key, one in sums.items() if key[1] == "windows"}
        self.assertEqual(windows, simulation.expected())
        for one in intervals:
            if one["source"] == "windows":
                for kind, expected in simulation.expected_intervals(one["events"]).items():
                    self.assertEqual(one[kind] | expected, one[kind])
        samples = Counter()
        for (row, source, _), one in sums.items():
            for event, number in one["numbers"].items() if source == "samples" else ():
                samples[row, event] += number
        self.assertEqual(samples, simulation.expected_samples())

    def test_sums(self):
        """The sums are those of the simulation."""
        for seed in range(RANDOM):
            with self.subTest(seed=seed):
                self.check(seed)

    def test_rows_by_anything_else(self):
        """The sums of rows that are no functions; their sums file has the same table."""
        self.check_rows(BY, RANDOM // len(BY))

    def test_rows_by_several_keys(self):
        """Rows of, say, one comm and one symbol have the right sums, too."""
        self.check_rows(SEVERAL, RANDOM // 20)

    def check_rows(self, kinds: Sequence[str], seeds: int) -> None:
        """Rows of each kind in this number of recordings."""
        path, sums = DATA / "by.data", DATA / "by.sums"
        for seed in range(seeds):
            for by in kinds:
                simulation = Simulation(seed, libraries(), by=by)
                simulation.run(500, path)
                options = ("--children",) if by == "children" else ("--by", by)
                with self.subTest(seed=seed, by=by):
                    report = json.loads(
                        must(PERF, "functions", "report", "-i", path, "-j", *options, stderr=-1)
                    )
                    self.check_sums(simulation, path, *options)
                    self.assertEqual(report["by"], by)
                    must(PERF, "functions", "report", "-i", path, "--sums", sums, *options)
                    table = "functions", "report", "-x", ",", "-s", by
                    self.assertEqual(
                        must(PERF, *table, sums, stderr=-1),
                        must(PERF, *table, *options, path, stderr=-1),
                    )


def recording(name: str, seed: int, **options) -> Path:
    """A recording of 1000 samples; the options are those of Simulation."""
    return recorded(DATA / f"{name}.data", seed, libraries(), **options)


class Interval(unittest.TestCase):
    """report --interval: each table is that of --time, which reads the recording for it alone."""

    STEP = 10000  # ns

    def report(self, *options: object) -> str:
        """The text that is printed."""
        return must(PERF, "functions", "report", *options, stderr=-1)

    def tables(self, path: Path, *options: object) -> list[dict]:
        """The objects of each interval."""
        return objects(self.report(path, "-j", "--interval", self.STEP / 1e9, *options))

    @staticmethod
    def named(report: dict) -> list[tuple]:
        """The rows of a report without what an interval may have otherwise than a table of its own.

        That is the address, which names have only where they need it.
        """
        return sorted(
            (row["symbol"], row["dso"], json.dumps([row["observations"], row["events"]]))
            for row in report["functions"]
        )

    def test_sums(self):
        """Groups of every kind, bursts and call chains have the same sums as with --time."""
        path = DATA / "interval.data"
        for seed, by in itertools.product(range(8), ("symbol", "comm,cpu", "children")):
            simulation = Simulation(seed, libraries(), by=by)
            simulation.run(600, path)
            options = ["--children"] if by == "children" else ["--by", by]
            with self.subTest(seed=seed, by=by):
                tables = self.tables(path, *options)
                self.assertGreater(len(tables), 1)
                for table in tables:
                    begin, end = (f"{time:.9f}" for time in table["time"])
                    alone = json.loads(
                        native(path, "-j", "--time", f"{begin},{end}", *options).stdout
                    )
                    self.assertEqual(self.named(table), self.named(alone))
                for name, number in ("lost", simulation.lost), ("throttled", simulation.throttled):
                    self.assertEqual(sum(table[name] for table in tables), number)
                whole = json.loads(self.report(path, "-j", *options))
                numbers = Counter()
                for table in (*tables, whole):
                    for row in table["functions"]:
                        for source, number in row["observations"].items():
                            numbers[source, table is whole] += number
                for source, _ in numbers:
                    self.assertEqual(numbers[source, True], numbers[source, False])


class Report(unittest.TestCase):
    """Two recordings, and what is printed of them."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.one, cls.two = recording("one", 1, events=3), recording("two", 2, events=3)

    def report(self, *options: object) -> str:
        """The text that is printed; it is an error to fail."""
        done = run(PERF, "functions", "report", *options, stderr=-1)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_refused(self, reason: str, *options: object) -> None:
        """A reason on one line, nothing printed."""
        done = run(PERF, "functions", "report", *options, stderr=-1)
        self.assertGreater(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, reason)
        self.assertEqual(
            len([line for line in done.stderr.splitlines() if line.startswith("perf functions:")]),
            1,
        )

    def test_sums_add_up(self):
        """Recordings and sums files, in any order; each number is the sum of its parts."""
        for path in self.one, self.two:
            self.report(path, "--sums", path.with_suffix(".sums"))
        parts = [sums_of(path) for path in (self.one, self.two)]
        total = self.report("-j", self.one, self.two)
        for inputs in (
            (self.two, self.one),
            ("-i", self.two, self.one),
            (DATA / "one.sums", self.two),
            (DATA / "two.sums", DATA / "one.sums"),
        ):
            self.assertEqual(flat(self.report("-j", *inputs)), flat(total), inputs)
        added, intervals = sums_of(self.one, self.two)
        for key, both in added.items():
            self.assert_sum(both, [rows[key] for rows, _ in parts if key in rows])
        for number, both in enumerate(intervals):
            for kind in both.keys() & {"windows", "longs"}:
                self.assert_sum(both[kind], [every[number][kind] for _, every in parts])

    def assert_sum(self, both: dict, parts: list[dict]) -> None:
        """Each number is the sum of those of the parts."""
        for key, number in both.items():
            if isinstance(number, dict):
                self.assert_sum(number, [part[key] for part in parts])
            elif isinstance(number, float):
                self.assertAlmostEqual(
                    number, sum(part[key] for part in parts), delta=1e-9 * number
                )

    def values(self, *options: object) -> list[dict[str, str]]:
        """The rows with all digits."""
        return list(csv.DictReader(io.StringIO(self.report("-x", ",", *options))))

    def test_rows_and_columns(self):
        """Those that are asked for, in the order that is asked for."""
        whole = self.values(self.one, "-s", "CPI")
        shares = sorted(float(row["%CY"]) for row in whole)
        limit = shares[len(shares) // 2]
        some = [row for row in whole if float(row["%CY"]) >= limit]
        self.assertTrue(0 < len(some) < len(whole))
        self.assertEqual(self.values(self.one, "-s", "CPI", "--percent-limit", limit), some)
        names = "--symbol", "alpha,beta,gamma"
        most = sorted(self.values(self.one, *names), key=lambda row: -int(row["#"]))[:2]
        found = self.values(self.one, *names, "-F", "dis,#", "-s", "#", "--limit", 2)
        self.assertEqual([*found[0]], ["symbol", "dso", "DIS", "#", "weak", "rough"])
        for row, expected in zip(found, most, strict=True):
            for title in "symbol", "DIS", "#":
                self.assertEqual(row[title], expected[title])
        found = self.values(self.one, "-s", "symbol", *names)
        self.assertEqual([row["symbol"] for row in found], ["alpha", "beta", "gamma"])
        named = DATA / "named.sums"
        name = "event=0xc5,umask=0x1"
        named.write_text(self.report(self.one, "--sums", "-").replace("branch-misses", name))
        titles = [*self.values(named, "-F", f"#,{name}/KI,{name},dis")[0]]
        self.assertEqual(titles[2:6], ["#", f"{name}/KI", name, "DIS"])

    def test_source_lines(self):
        """Names of files are short or full; another addr2line may give them."""
        short, full = (
            {row[0][0] for row in sums_of(self.one, "--by", "srcline", *options)[0]}
            for options in ((), ("--full-source-path",))
        )
        self.assertLess({f"{DATA}/{name}" for name in short if ".s:" in name}, full)
        tool = DATA / "addr2line"
        tool.write_text('#!/bin/sh\naddr2line "$@" | sed -u s/one[.]s:/uno.s:/\n')
        tool.chmod(0o755)
        other, _ = sums_of(self.one, "--by", "srcline", "--addr2line", tool)
        self.assertEqual(
            {row[0][0] for row in other}, {name.replace("one.s:", "uno.s:") for name in short}
        )

    def test_browser_without_terminal(self):
        """There is nothing to browse: the table is printed."""
        self.assertEqual(self.report(self.one, "--tui"), self.report(self.one))

    def test_bad_input(self):
        sums, bad = DATA / "one.sums", DATA / "bad.sums"
        self.report(self.one, "--sums", sums)
        for version in 6, 9:
            bad.write_text(sums.read_text().replace("sums 7", f"sums {version}"))
            self.assert_refused("older perf" if version < 7 else "newer perf", bad)
        bad.write_text(sums.read_text().replace("branch-misses", "branch-loads"))
        self.assert_refused("bad.sums: cannot be added.*other events", self.one, bad)
        for reason, *options in (
            ("no row has a share of 99.5 %: take a smaller", self.one, "--percent-limit", "99.5"),
            ("cannot read --time abc: write START,STOP", self.one, "--time", "abc"),
            ("leave out other inputs, --tui", self.one, "--tui", "--interval", "1"),
            ("one.sums: --cpu needs a recording", sums, "-C", "0"),
            ("no column FOO.*there are: symbol # ", self.one, "-s", "FOO"),
            ("no --by line, there are, each", self.one, "--by=line"),
            ("no --by comm, there are, each", self.one, "--by=comm,comm"),
            ("need: use perf functions record --call-graph fp,4$", self.one, "--by", "callchain"),
        ):
            with self.subTest(reason):
                self.assert_refused(reason, *options)
        done = run(PERF, "functions", "report", self.one, "--cpu=63", stderr=-1)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 1))
        self.assertIn(f"{self.one}: no sample matches --cpu: leave it out", done.stderr)
        self.report(self.one, "--by", "comm", "--sums", bad)
        self.assert_refused("cannot be added.*another kind", self.one, bad)

    def test_sums_that_cannot_be_written(self):
        """An old file stays as it was, and no new file is left."""
        folder = DATA / "full"
        folder.mkdir(exist_ok=True)
        sums = folder / "all.sums"
        self.report(self.one, "--sums", sums)
        before = sums.read_text()
        full = "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"
        # messages go through a pipe
        done = run("sh", "-c", *full, PERF, "functions", "report", sums, "--sums", sums)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout, rf": {sums}: File too large: name another file\n\Z")
        self.assertEqual({path: path.read_text() for path in folder.iterdir()}, {sums: before})


class Record(unittest.TestCase):
    def test_bad_input(self):
        """There is one line, and nothing is recorded."""
        for options, message in (
            ("--jitter=31", "--jitter takes a number from 0 to 30"),
            ("--window=3x", f"--window takes a number from 0 to {2**63 - 1}"),
            ("--no-window --jitter 2", "needs windows: leave --no-window out"),
            ("--period 299", "a window of 300 is longer than the period"),
            ("-e cpu-clock --window 300", "--window does not go with -e"),
            (f"-c {2**64 - 1}", f"--period (-c) takes a number from 1 to {2**63 - 1}"),
            ("-c 100 -F 100", "-c sets a period and -F a frequency: leave out one of them"),
            ("--alt-period", "--alt-period is of perf record and alternates members, too"),
            ("-M ipc -e cycles", "-M does not go with -e"),
        ):
            with self.subTest(options):
                done = run(PERF, "functions", "record", *options.split(), "true")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(message, done.stdout)
                self.assertEqual(len(done.stdout.splitlines()), 1)

    def test_kernel(self):
        """It counts, too, with a PMU or without."""
        words = "-v", "--kernel", "-o", DATA / "kernel.data", "true"
        done = run(PERF, "functions", "record", *words)
        if "no right to record" in done.stdout:
            self.skipTest("no right to record the kernel here: see kernel.perf_event_paranoid")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^perf record -T .*}:HS?\b")
