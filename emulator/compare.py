#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints a table of metrics with the truth beside each value.

Both are what `perf functions report --json` prints: of a recording made in the
machine with caches, and of its truth (emulator/truth.py). A value is marked with !
where its 95 % interval does not contain the truth.
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
    return {(row["symbol"], row["dso"], row["address"]): row for row in rows}


def read(path: Path) -> dict[Any, dict[str, Any]]:
    """Reads a table, by function."""
    with open(path, encoding="utf-8") as file:
        return by_function(json.load(file)["functions"])


def compare(recorded: dict[Any, Any], true: dict[Any, Any], least: float) -> list[Row]:
    """Returns the functions with at least @least % of the true cycles."""
    rows = []
    for function, truth in true.items():
        if truth["metrics"].get(SHARE, 0) < least:
            continue
        row = recorded.get(function, {"metrics": {}, "intervals": {}, "errors": {}, "weak": []})
        values = {}
        for column in COLUMNS:
            exact = truth["metrics"].get(column)
            if exact is None:
                continue
            missed = None
            if interval := row["intervals"].get(column):
                low, high = interval
                missed = not low <= exact <= high
            values[column] = Value(
                row["metrics"].get(column),
                exact,
                missed,
                row["errors"].get(column) or 0.0,
                column in row["weak"],
            )
        symbol, dso, address = function
        rows.append(Row(symbol or f"{address:#x} [{Path(dso).name}]", values))
    return sorted(rows, key=lambda row: -row.values[SHARE].true)


def text(value: Value | None) -> str:
    """Formats a cell."""
    if value is None:
        return "-"
    recorded = "-" if value.recorded is None else f"{value.recorded:.2f}"
    return f"{recorded} / {value.true:.2f} {MARK if value.missed else ' '}"


def print_rows(rows: list[Row]) -> None:
    """Prints the table, and how many intervals contain the truth."""
    columns = [column for column in COLUMNS if any(column in row.values for row in rows)]
    cells = [["recorded / true", *columns]]
    cells += [[row.name, *(text(row.values.get(name)) for name in columns)] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns) + 1)]
    for line in cells:
        fields = [line[0].ljust(widths[0])]
        fields += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        print("  ".join(fields).rstrip())
    missed = [value.missed for row in rows for value in row.values.values()]
    print(
        f"\n{missed.count(False)} of {len(missed) - missed.count(None)} intervals contain the "
        f"truth; {MARK} marks the others"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recorded", type=Path, help="the table of the recording")
    parser.add_argument("true", type=Path, help="the table of its truth")
    parser.add_argument(
        "--least",
        type=float,
        default=0.1,
        metavar="PERCENT",
        help="show functions with at least this part of the true cycles (default: %(default)s)",
    )
    options = parser.parse_args()
    try:
        rows = compare(read(options.recorded), read(options.true), options.least)
    except OSError as error:
        sys.exit(f"compare: {error.filename}: {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sys.exit("compare: an input is not a table of `perf functions report --json`")
    print_rows(rows)


if __name__ == "__main__":
    main()
