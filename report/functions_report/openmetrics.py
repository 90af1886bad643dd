# SPDX-License-Identifier: GPL-2.0
"""The first functions of a table, or of each host of a store, in OpenMetrics text format.

All values are gauges: they are those of the recordings or the span of time that was
asked for, and go down when that changes.
"""

import argparse
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from . import ReportError
from .table import Table, is_weak, write_output

PREFIX = "perf_functions_"
Labels = dict[str, str]
# observations of a function: name, family, meaning and unit
OBSERVATIONS = (
    ("samples", "samples", "Samples of events", "samples"),
    ("windows", "windows", "Windows in one function", "windows"),
    ("branches", "paths", "Paths of branch records", "paths"),
    ("operations", "operations", "Sampled operations", "operations"),
)


def check() -> None:
    """Raises ReportError if there is no library."""
    library()


def library() -> tuple[Any, Any]:
    """Returns the class of a family of gauges, and its text writer. Raises ReportError."""
    try:
        # pylint: disable=import-outside-toplevel
        from prometheus_client.metrics_core import GaugeMetricFamily
        from prometheus_client.openmetrics.exposition import generate_latest
    except ImportError:
        raise ReportError(
            "--openmetrics needs prometheus_client: install python3-prometheus-client"
        ) from None
    return GaugeMetricFamily, generate_latest


def family_name(column: Table) -> str:
    """Returns the name of a column's family: its own if that is a word, as in vendors' metrics."""
    name = column["name"]
    words = name if re.fullmatch("[a-z][a-z0-9_]+", name) else column["meaning"]
    return PREFIX + re.sub("[^a-z0-9]+", "_", words.lower()).strip("_")


def key(function: Table) -> tuple:
    """Returns the identity of a function in all tables of a store."""
    return function["symbol"], function["dso"], function.get("address")


def label_names(by: str) -> tuple[str, str, str]:
    """Returns the names of the labels of a row."""
    return "function" if by == "symbol" else by.replace(",", "_"), "dso", "address"


def labels(by: str, function: Table) -> Labels:
    """Returns the labels of a row; one without a value is left out."""
    address = function.get("address")
    values = function["symbol"], function["dso"], address or ""
    return {name: value for name, value in zip(label_names(by), values) if value}


def label(text: str) -> tuple[str, str]:
    """NAME=VALUE of the command line."""
    name, equals, value = text.partition("=")
    if not (equals and value and re.fullmatch("(?!__)[a-zA-Z_][a-zA-Z0-9_]*", name)):
        raise argparse.ArgumentTypeError(
            f"{text}: a label is NAME=VALUE, as in service=web; NAME has letters, digits and _"
        )
    return name, os.fsencode(value).decode("utf-8", "replace")


class Families:
    """The families of the text, in the order of their first use."""

    def __init__(self, family: Any) -> None:
        self.family = family
        self.families: dict[str, Any] = {}

    def add(self, name: str, meaning: str, unit: str, where: Labels, value: float) -> None:
        """Adds a value. A unit is the end of the name."""
        if unit and not name.endswith(f"_{unit}"):
            name += f"_{unit}"
        if name not in self.families:
            self.families[name] = self.family(name, meaning, unit=unit)
        self.families[name].add_sample(name, where, value)

    def collect(self) -> Iterable[Any]:
        """Returns the families, for the library."""
        return self.families.values()

    def add_counts(self, where: Labels, events: Iterable[Table], function: Table) -> None:
        """Adds the observations and events of one function, those that are known."""
        for source, name, meaning, unit in OBSERVATIONS:
            if source in function["observations"]:
                number = function["observations"][source]
                self.add(PREFIX + name, meaning, unit, where, number)
        for event in events:
            estimate = function["events"][event["name"]]
            if estimate is None:
                continue
            count = estimate["value"]
            is_time = event["unit"] == "nanoseconds"
            self.add(
                PREFIX + "events",
                "Events of the recording, as estimated",
                "seconds" if is_time else event["unit"],
                {**where, "event": event["name"]},
                count / 10**9 if is_time else count,
            )

    def add_metrics(self, where: Labels, columns: Iterable[Table], function: Table) -> None:
        """Adds the metrics of one function, those that it has, their intervals and marks."""
        for column in columns:
            name = family_name(column)
            unit = "percent" if column["unit"] == "%" else ""
            value = function["metrics"].get(column["name"])
            if column["role"] == "count" or value is None:
                continue
            here = {**where, "column": column["name"]}
            self.add(name, column["meaning"], unit, here, value["value"])
            for end in "low", "high":
                if value.get(end) is not None:
                    meaning = f"{column['meaning']}: {end} end of the 95 % interval"
                    self.add(f"{name}_{end}", meaning, unit, here, value[end])
            self.add(
                f"{name}_weak",
                f"{column['meaning']}: 1 if the value is weak",
                "",
                here,
                int(is_weak(value)),
            )


def text_of(
    tables: Iterable[tuple[Labels, Table]], whole: Table, top: int, own: Sequence[tuple[str, str]]
) -> bytes:
    """The text of the first functions of the whole table in each table, which has labels.

    own: labels of all values. Raises ReportError for one that a value has already.
    """
    family, generate = library()
    families = Families(family)
    wanted = {key(function) for function in whole["functions"][:top]}
    for place, table in tables:
        where = {**dict(own), **place}
        for name, _ in own:
            if name in place or name in ("event", "column", *label_names(table["by"])):
                raise ReportError(f"--label {name}: values have this label: take another name")
        for name, meaning, number in (
            ("lost_records", "Lost records", table["lost"]),
            ("throttle_records", "Throttle records", table["throttled"]),
        ):
            families.add(PREFIX + name, meaning, "records", where, number)
        for function in table["functions"]:
            if key(function) in wanted:
                here = {**where, **labels(table["by"], function)}
                families.add_counts(here, table["events"], function)
                families.add_metrics(here, table["columns"], function)
    return generate(families)


def write(
    path: Path,
    tables: Iterable[tuple[Labels, Table]],
    whole: Table,
    top: int,
    own: Sequence[tuple[str, str]],
) -> None:
    """Writes the text, which is UTF-8 in any locale. Raises ReportError."""
    write_output(path, text_of(tables, whole, top, own))
