#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints the truth, and under it the values of a recording from each source.

The tables are what `perf functions report --json` prints: of the truth (emulator/truth.py),
and of the recording, made in the machine with caches, with each --source. A value is
marked with ? where perf marks it, and with ! where its 95 % interval does not contain the
truth.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

MARK = "!"
SHARE = "%CY"
COLUMNS = [SHARE, "CPI", "BM/KI", "CM/KI", "TM/KI"]


class Value(NamedTuple):
    """A metric of a function: recorded, true, whether the interval misses the truth (None: there
    is no interval), the standard error, and whether perf marks it as weak.
    """

    recorded: float | None
    true: float
    missed: bool | None
    error: float = 0.0
    weak: bool = False


class Row(NamedTuple):
    """A function, and its values by column."""

    name: str
    values: dict[str, Value]


def by_function(rows: Iterable[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """Returns the rows of a table by function."""
    return {(row["symbol"], row["dso"], row.get("address")): row for row in rows}


def read(path: Path) -> dict[Any, dict[str, Any]]:
    """Reads a table, by function."""
    with open(path, encoding="utf-8") as file:
        return by_function(json.load(file)["functions"])


def compare(
    recorded: dict[Any, Any],
    true: dict[Any, Any],
    least: float,
    columns: Iterable[str] = tuple(COLUMNS),
) -> list[Row]:
    """Returns the functions with at least @least % of the true cycles."""
    rows = []
    for function, truth in true.items():
        share = truth["metrics"].get(SHARE)
        if not share or share["value"] < least:
            continue
        found = recorded[function]["metrics"] if function in recorded else {}
        values = {}
        for column in columns:
            if not (exact := truth["metrics"].get(column)):
                continue
            value, missed = found.get(column) or {}, None
            if "low" in value:
                missed = not value["low"] <= exact["value"] <= value["high"]
            values[column] = Value(
                value.get("value"),
                exact["value"],
                missed,
                value.get("error", 0.0),
                value.get("mark") == "weak",
            )
        rows.append(Row(truth["label"], values))
    return sorted(rows, key=lambda row: -row.values[SHARE].true)


def text(value: Value | None, is_true: bool = False) -> str:
    """Formats a cell."""
    number = value and (value.true if is_true else value.recorded)
    if number is None:
        return "-  "
    marks = "" if is_true else "?" * value.weak + MARK * bool(value.missed)
    return f"{number:.2f}{marks:2}"


def print_tables(tables: dict[str, list[Row]]) -> None:
    """Prints the values of each source below the truth, and how many intervals contain it."""
    first, *_ = tables.values()
    columns = [column for column in COLUMNS if any(column in row.values for row in first)]
    lines = [["function", "", *(f"{column}  " for column in columns)]]
    for number, row in enumerate(first):
        cells = [text(row.values.get(column), is_true=True) for column in columns]
        lines.append([row.name, "truth", *cells])
        for source, rows in tables.items():
            cells = [text(rows[number].values.get(column)) for column in columns]
            lines.append(["", source, *cells])
    widths = [max(map(len, column)) for column in zip(*lines)]
    for name, source, *cells in lines:
        fields = [name.ljust(widths[0]), source.ljust(widths[1])]
        fields += [cell.rjust(width) for cell, width in zip(cells, widths[2:])]
        print("  ".join(fields).rstrip())
    found = []
    for source, rows in tables.items():
        values = [value for row in rows for value in row.values.values()]
        missed = [v.missed for v in values if v.missed is not None and not v.weak]
        found.append(f"{source}, {missed.count(False)} of {len(missed)}")
    print(f"\nIntervals without a ? that contain the truth: {'; '.join(found)}.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("true", type=Path, help="the table of the truth")
    parser.add_argument(
        "recorded", type=Path, nargs="+", help="a table of the recording, named for its source"
    )
    parser.add_argument(
        "--least",
        type=float,
        default=0.1,
        metavar="PERCENT",
        help="show functions with at least this part of the true cycles (default: %(default)s)",
    )
    options = parser.parse_args()
    try:
        true = read(options.true)
        tables = {path.stem: compare(read(path), true, options.least) for path in options.recorded}
    except OSError as error:
        sys.exit(f"compare: {error.filename}: {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sys.exit("compare: an input is not a table of `perf functions report --json`")
    print_tables(tables)


if __name__ == "__main__":
    main()
