# SPDX-License-Identifier: GPL-2.0
"""The JSON of perf functions: its forms.

Every form is as perf-functions.schema.json says, and both programs print the same for a recording.
"""

import itertools
import json
import re
import unittest
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from tests.harness import perfwrite as pw
from tests.harness.env import CHECK, PERF, TOP, must
from tests.harness.recording import LONG, WINDOW, Recording
from tests.harness.simulation import BY, SEVERAL, Libraries, Simulation

MINUTES = 1

DATA = CHECK / "json"
SCHEMA = json.loads((TOP / "tools/perf/Documentation/perf-functions.schema.json").read_text())
EXACT = 2**53 - 1  # the largest whole number that JavaScript never rounds
# objects whose members are named by events or columns
MAPS = "totals", "products", "block_products", "metrics", "errors", "run_deviations", "added"
OPTIONAL = "time", "skid", "tree"
# the script does not know them
NO_WHOLES = "symbol", "dso", "columns", "metrics", "errors", "intervals", "run_deviations", "time"
NASTY = 'ev\x1b]0;il\x07\x9b2J\x7f\udc80\udcff\udced\udca0\udc80ö\u2028"\\'


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


def wholes(item: Any) -> Iterator[int | str]:
    """The numbers that the schema calls whole: sums and other exact numbers."""
    if isinstance(item, dict):
        for key, value in item.items():
            if key not in NO_WHOLES or (key == "intervals" and isinstance(value, list)):
                yield from wholes(value)
    elif isinstance(item, list):
        for value in item:
            if isinstance(value, (dict, list)):
                yield from wholes(value)
    elif isinstance(item, int) or (isinstance(item, str) and item.isdecimal()):
        yield item


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
            for number in wholes(item):
                self.assertEqual(isinstance(number, str), int(number) > EXACT, number)
            for names in (set(row["metrics"]) for row in item["functions"]):
                self.assertEqual(names, {column["name"] for column in item["columns"]})
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
            ("--share", "discard"),
            ("--share", "none"),
            ("--ci=next",),
            ("--correct",),
            ("--inline",),
            ("-F", "CPI,#,CPI"),
            ("-s", "CPI", "--limit", 1),
            ("--percent-limit", 5),
            ("--symbols", "alpha"),
        ):
            with self.subTest(options=options):
                found = self.table(self.one, *options)
                self.assertIn("skid", found)
                self.assertNotIn("time", found)
        self.assertEqual(self.table(self.one, "--ci=next")["intervals_of"], "next run")
        self.assertEqual(self.table(self.one, "--correct")["corrected"], "all")

    def test_rows(self):
        path = DATA / "rows.data"
        for by in (*BY, *SEVERAL):
            Simulation(1, libraries(), by=by).run(100, path)
            with self.subTest(by=by):
                options = ["--children"] if by == "children" else ["--by", by]
                self.assertEqual(self.table(path, *options)["by"], by)

    def test_sums(self):
        found = self.table(self.sums, self.two)
        self.assertEqual(len(found["groups"]), 1)
        self.assertNotIn("skid", self.table(self.sums))

    def test_groups(self):
        """Windows add up however they were recorded; each way is told."""
        text = self.sums.read_text()
        (group,) = re.findall("(?m)^group\t.*", text)
        (expected,) = self.table(self.sums)["groups"]
        names = [name for name in expected if name not in ("events", "share")]
        for place, name in enumerate(names, 2):
            fields, path = group.split("\t"), DATA / "other-group.sums"
            number = int(fields[place])
            self.assertEqual(number, expected[name])
            fields[place] = str(1 - number if name == "inherit" else number + 1)
            path.write_text(text.replace(group, "\t".join(fields)))
            told = [one[name] for one in self.table(path, self.sums)["groups"]]
            self.assertEqual(told, sorted((number, int(fields[place]))))

    def test_intervals(self):
        text = must(PERF, "functions", "report", "-j", self.one, "--interval", "1e-6", stderr=-1)
        tables = self.check("table", text)
        self.assertGreater(len(tables), 1)
        for table in tables:
            self.assertLess(*table["time"])

    def test_metrics(self):
        """A vendor's metrics, and two lengths of windows, which --correct=own compares."""
        windows = Recording(
            [
                [pw.Event("cycles", 0, 0, [1], LONG, WINDOW), pw.Event("instructions", 0, 1, [2])],
                [
                    pw.Event("cycles", 0, 0, [3], LONG, 4 * WINDOW),
                    pw.Event("instructions", 0, 1, [4]),
                ],
            ],
            cpuid="0x00000000413fd0c1",
        )
        for number in range(200):
            for group, window in (0, WINDOW), (1, 4 * WINDOW):
                windows.sample(0x1000, LONG, 3000 + number % 7, group=group)
                windows.sample(0x1000, window + number % 5, window // 3, group=group)
        path = windows.write(DATA / "metrics.data")
        self.assertIn("ipc", self.table(path, "-M", "ipc")["functions"][0]["metrics"])
        self.assertIn("ipc", self.table(path, "-M", "all")["functions"][0]["metrics"])
        (row,) = self.table(path, "-M", "ipc", "--tree")["functions"]
        self.assertEqual(row["tree"], [{"metric": "ipc", "above": None, "parts": []}])
        self.assertEqual(self.table(path, "--correct=own")["corrected"], "own")
        found = self.table("-M", "ipc", "--diff", path, path, form="comparison")
        self.assertIn("ipc", found["functions"][0]["metrics"])

    def test_comparisons(self):
        found = self.table("--diff", self.one, self.two, form="comparison")
        self.assertEqual((found["before"]["runs"], found["run_deviations"]), (1, {}))
        options = "--before", self.one, self.two, "--after", self.one, self.sums
        found = self.table(*options, form="comparison")
        self.assertEqual([found[side]["runs"] for side in ("before", "after")], [2, 2])
        self.assertTrue(found["run_deviations"])

    def broken(self, item: Any, name: str = "") -> Iterator[str]:
        """Breaks a table in each place in turn: a member too many, too few, or of another type."""
        if isinstance(item, list):
            for part in item[:1]:
                yield from self.broken(part, name)
        if not isinstance(item, dict):
            return
        is_map = name in MAPS or (name == "intervals" and "long" not in item)
        if not is_map:
            item["unknown"] = 0
            yield f"{name}/unknown"
            del item["unknown"]
            for key in [key for key in item if key not in OPTIONAL]:
                value = item.pop(key)
                yield f"{name} without {key}"
                item[key] = value
        for key in [*item][:1] if is_map else [*item]:
            value, item[key] = item[key], object()  # of no type that JSON has
            yield f"{name}/{key}"
            item[key] = value
            yield from self.broken(value, key)

    def test_schema_is_strict(self):
        """It refuses each of these forms with a member too many or too few, or of another type."""
        forms = {
            "table": self.table(self.one),
            "comparison": self.table("--diff", self.one, self.two, form="comparison"),
        }
        for form, table in forms.items():
            del table["functions"][1:]
            self.assertTrue(validator(form).is_valid(table))
            jsonschema.Draft202012Validator(SCHEMA).validate(table)
            others = [other for other in forms if other != form]
            self.assertFalse(any(validator(other).is_valid(table) for other in others))
            broken = 0
            for where in self.broken(table):
                self.assertFalse(validator(form).is_valid(table), where)
                broken += 1
            self.assertGreater(broken, 40)
            self.assertTrue(validator(form).is_valid(table))


class Values(Case):
    def test_large_numbers(self):
        """Integers above 2^53 - 1 are strings with all digits, addresses too."""
        for count in EXACT, EXACT + 1, 2**60:
            group = [
                pw.Event("cycles", 0, 0, [1], LONG, WINDOW),
                pw.Event("instructions", 0, 1, [2]),
            ]
            windows = Recording([group])
            address = 0xFFFF800000001234
            for number in range(4):
                windows.sample(address, LONG if number % 2 == 0 else WINDOW, 1)
            windows.sample(address, LONG, count)
            windows.sample(address, WINDOW, count)
            path = windows.write(DATA / "large.data")
            printed = "instructions*instructions", "instructions"
            table = self.table(path)
            (row,) = table["functions"]
            self.assertEqual(row["address"], str(address))
            own = row["sums"][0]
            self.assertEqual(own["products"][printed[0]], str(count**2 + 2 * (1)))
            total = count + 2
            self.assertEqual(own["totals"]["instructions"], str(total))
            self.assertEqual(own["samples"], 3)

    def test_names(self):
        """Names of events, comms and files may have any bytes."""
        nasty = r"\x80\xff\xed\xa0\x80ö" + '\u2028"\\'
        nasty = "ev\x1b]0;il\x07\x9b2J\x7f" + nasty
        group = [
            pw.Event("cycles", 0, 0, [1], LONG, WINDOW),
            pw.Event(NASTY, 4, 0x777, [2]),
            pw.Event("instructions", 0, 1, [3]),
        ]
        windows = Recording([group], comm=NASTY[:12])
        windows.map(f"/{NASTY}", 0x1000)
        for _, cycles in itertools.product(range(3), (LONG, WINDOW)):
            windows.sample(0x1000, cycles, 1, 2)
        path, sums = windows.write(DATA / "names.data"), DATA / "names.sums"
        must(PERF, "functions", "report", path, "--sums", sums)
        table = self.table(path)
        self.assertEqual(table["groups"][0]["events"], ["cycles", nasty, "instructions"])
        self.assertEqual(table["functions"][0]["dso"], f"/{nasty}")
        self.assertIn(f"cycles*{nasty}", table["functions"][0]["sums"][0]["products"])
        self.table(path, "--by", "comm")
        self.table("--diff", path, sums, form="comparison")


if __name__ == "__main__":
    unittest.main()
