# SPDX-License-Identifier: GPL-2.0
"""The JSON of perf functions: every form is as perf-functions.schema.json says."""

import json
import unittest
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from tests.harness import perfdata as pw
from tests.harness.env import CHECK, PERF, TOP, must
from tests.harness.recording import LONG, WINDOW, Recording
from tests.harness.simulation import BY, SEVERAL, Libraries, Simulation

DATA = CHECK / "json"
SCHEMA = json.loads((TOP / "tools/perf/Documentation/perf-functions.schema.json").read_text())


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


@cache
def libraries() -> Libraries:
    """The libraries that the recordings are of."""
    return Libraries(DATA)


def recording(name: str, seed: int) -> Path:
    """A recording of 100 samples of one group."""
    Simulation(seed, libraries(), events=3).run(100, DATA / name)
    return DATA / name


@cache
def validator(form: str) -> jsonschema.Draft202012Validator:
    """The validator of one form of the JSON."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    chosen = {key: part for key, part in SCHEMA.items() if key != "oneOf"}
    return jsonschema.Draft202012Validator({**chosen, "$ref": f"#/$defs/{form}"})


def once(pairs: Sequence[tuple[str, Any]]) -> dict:
    """An object whose members must all have different names."""
    item = dict(pairs)
    if len(item) < len(pairs):
        raise AssertionError(f"twice: {[name for name, _ in pairs]}")
    return item


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} in JSON")


def objects(text: str) -> list[dict]:
    """JSON objects that come one after another, in UTF-8, without NaN and Infinity."""
    text.encode()
    decoder = json.JSONDecoder(object_pairs_hook=once, parse_constant=refuse)
    found = []
    while text := text.lstrip():
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:]
    return found


class Case(unittest.TestCase):
    def check(self, form: str, text: str) -> list[dict]:
        """The objects of a text are of this form."""
        found = objects(text)
        self.assertTrue(found)
        for item in found:
            errors = [
                f"{'/'.join(map(str, error.absolute_path))}: {error.message[:500]}"
                for error in validator(form).iter_errors(item)
            ]
            self.assertEqual(errors, [])
            for row in item["functions"]:
                self.assertEqual(set(row["metrics"]), {one["name"] for one in item["columns"]})
                if form == "table":
                    self.assertEqual([*row["events"]], [one["name"] for one in item["events"]])
        return found

    def only(self, form: str, text: str) -> dict:
        """The one object of a text."""
        found = self.check(form, text)
        self.assertEqual(len(found), 1)
        return found[0]

    def table(self, *options: object, form: str = "table") -> dict:
        """The object that the command prints."""
        text = must(PERF, "functions", "report", "-j", *options, stderr=-1)
        return self.only(form, text)


class Forms(Case):
    """The output of the command with each option that shapes it."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.one, cls.two = (recording(f"{seed}.data", seed) for seed in (1, 2))
        cls.sums = DATA / "1.sums"
        must(PERF, "functions", "report", cls.one, "--sums", cls.sums)

    def test_options(self):
        for options in (
            (),
            ("--inline",),
            ("-F", "CPI,#,CPI"),
            ("-s", "CPI", "--limit", 1),
            ("--percent-limit", 5),
            ("--symbols", "alpha"),
        ):
            with self.subTest(options=options):
                self.assertNotIn("time", self.table(self.one, *options))
        marks = [
            (value.get("mark"), "doubt" in value)
            for row in self.table(self.one)["functions"]
            for value in row["metrics"].values()
            if value
        ]
        self.assertLessEqual({("weak", True), (None, False)}, set(marks))

    def test_rows(self):
        path = DATA / "rows.data"
        for by in (*BY, *SEVERAL):
            Simulation(1, libraries(), by=by).run(100, path)
            with self.subTest(by=by):
                options = ["--children"] if by == "children" else ["--by", by]
                self.assertEqual(self.table(path, *options)["by"], by)

    def test_sums(self):
        """Sums have all that is in the JSON of their recording, but no times."""
        self.assertEqual(self.table(self.sums), self.table(self.one))
        self.assertEqual(len(self.table(self.sums, self.two)["sets"]), 2)

    def test_comparison(self):
        found = self.table("--before", *[self.one] * 2, "--after", self.two, form="comparison")
        self.assertEqual((found["before"]["runs"], found["after"]["runs"]), (2, 1))
        self.assertTrue(found["functions"])

    def test_intervals(self):
        text = must(PERF, "functions", "report", "-j", self.one, "--interval", "1e-6", stderr=-1)
        tables = self.check("table", text)
        self.assertGreater(len(tables), 1)
        for table in tables:
            self.assertLess(*table["time"])

    def test_metrics(self):
        """A vendor's metrics."""
        group = [pw.Event("cycles", 0, 0, [1], LONG, WINDOW), pw.Event("instructions", 0, 1, [2])]
        windows = Recording([group], cpuid="0x00000000413fd0c1")
        for number in range(200):
            windows.sample(0x1000, LONG, 3000 + number % 7)
            windows.sample(0x1000, WINDOW + number % 5, WINDOW // 3)
        path = windows.write(DATA / "metrics.data")
        self.assertIn("ipc", self.table(path, "-M", "ipc")["functions"][0]["metrics"])
        self.assertIn("ipc", self.table(path, "-M", "all")["functions"][0]["metrics"])
        found = self.table("-M", "ipc", "--diff", path, path, form="comparison")
        self.assertIn("ipc", found["functions"][0]["metrics"])
