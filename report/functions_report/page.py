# SPDX-License-Identifier: GPL-2.0
"""A report as one HTML file that needs nothing but a browser.

`make report` builds the template of the page from report/web. This module adds the data: JSON that
cannot end the element it is in.
"""

import html
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import ReportError, flame
from .table import Table, labels, write_output

TOP = Path(__file__).resolve().parent.parent.parent
TEMPLATE = TOP / "build/report/template.html"
DATA, TITLE = "@DATA@", "@TITLE@"
DEEPEST = 20000
TIMELINE_ROWS = 100  # most functions with a timeline, which is the largest part of a page
# characters that mean something in HTML or end a line in a script
ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def script_json(data: Any) -> str:
    """Returns JSON for an element of a page, with any strings in it."""
    # a list in a list for each call of a chain
    sys.setrecursionlimit(max(DEEPEST, sys.getrecursionlimit()))
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(
        ESCAPES
    )


def values(item: Table, columns: list[Table]) -> tuple[list, list, list]:
    """Metrics and intervals in the order of the columns, and the indexes of weak values."""
    names = [column["name"] for column in columns]
    return (
        [item["metrics"].get(name) for name in names],
        [item["intervals"].get(name) for name in names],
        [i for i, name in enumerate(names) if name in item["weak"]],
    )


def windows_of(table: Table) -> list[int]:
    """The numbers of all windows of a table, and of those that begin elsewhere."""
    rows = table["functions"]
    if table["by"] == "children":  # callers have the windows of what they call: two rows have all
        roots = ("[all]", ""), ("[cut]", "")
        rows = [row for row in rows if (row["symbol"], row["dso"] or "") in roots]
    return [sum(flame.total(row, number) for row in rows) for number in ("samples", "discarded")]


def table_data(table: Table, whole: Table) -> Table:
    """A table for the page: rows as lists, without the products of events.

    whole: the same with all rows, which give names and numbers of windows.
    """
    names = dict(zip(map(key, whole["functions"]), labels(whole["functions"])))
    columns = table["columns"]
    sets: list[list[str]] = []
    rows = []
    for function in table["functions"]:
        sums = []
        for one in function["sums"]:
            if one["events"] not in sets:
                sets.append(one["events"])
            sums.append(
                [
                    sets.index(one["events"]),
                    one["samples"],
                    one["discarded"],
                    [str(one["totals"][event]) for event in one["events"]],
                ]
            )
        identity = names[key(function)], function["symbol"], function["dso"]
        rows.append([*identity, *values(function, columns), sums])
    return {
        "by": table["by"],
        "inline": table["inline"],
        "groups": table["groups"],
        "throttled": table["throttled"],
        "lost": table["lost"],
        "columns": columns,
        "sets": sets,
        "windows": windows_of(whole),
        "rows": rows,
    }


def add_parents(columns: list[Table], tree: list[Table]) -> None:
    """Adds to each column the metric that it is a part of. tree: each metric with its parts."""
    named = {column["name"]: column for column in columns}
    stack = list(tree)
    while stack:
        node = stack.pop()
        parts = node.get("parts", [])
        for part in parts:
            named.get(part.get("metric"), {})["parent"] = node.get("metric")
        stack += parts


def timeline_data(table: Table, whole: Table, intervals: Iterable[Table], dates: bool) -> Table:
    """The first functions of a table in each interval, for the page.

    whole: the table with all rows; intervals: tables with a "time", [begin, end] in seconds;
    dates: since 1970, else of a clock of the machine.
    """
    functions = table["functions"][:TIMELINE_ROWS]
    places = {key(function): row for row, function in enumerate(functions)}
    # perf gives an address to a name when a second function has it, which may be in a later
    # interval: before, the function may be either, and is left out
    same = Counter((function["symbol"], function["dso"]) for function in whole["functions"])
    for row, function in enumerate(functions):
        if same[function["symbol"], function["dso"]] == 1:
            places[function["symbol"], function["dso"], None] = row
    times: list[list[float]] = []
    rows: list[list] = [[] for _ in functions]
    for interval in intervals:
        found = {}
        for function in interval["functions"]:
            found[places.get(key(function))] = function
        times.append(interval["time"])
        for row, cells in enumerate(rows):
            cells.append([*values(found[row], table["columns"])] if row in found else None)
    return {"times": times, "rows": rows, "dates": dates}


def key(function: Table) -> tuple[str, str, int | None]:
    """Returns the identity of a function."""
    return function["symbol"], function["dso"], function.get("address")


def diff_data(table: Table) -> Table:
    """Returns a comparison for the page."""
    columns = table["columns"]
    rows = [
        [
            name,
            function["symbol"],
            function["dso"],
            function["status"],
            [function["metrics"].get(column["name"]) for column in columns],
        ]
        for name, function in zip(labels(table["functions"]), table["functions"])
    ]
    return {
        "by": table["by"],
        "before": table["before"],
        "after": table["after"],
        "columns": columns,
        "rows": rows,
    }


def flame_data(event: str | None, root: flame.Node, columns: list[Table], note: str) -> Table:
    """A tree for the page; note: the reason if it has one level only, else empty."""

    def short(node: flame.Node) -> list:
        return [node["name"], node["value"], node["windows"], *values(node, columns)]

    # iteratively: chains may be deeper than Python's stack
    tree = [*short(root), []]
    stack = [(root, tree)]
    while stack:
        node, data = stack.pop()
        for child in node["children"]:
            data[-1].append([*short(child), []])
            stack.append((child, data[-1][-1]))
    return {"event": event, "columns": columns, "root": tree, "note": note}


def template() -> str:
    """The page without data."""
    try:
        return TEMPLATE.read_text(encoding="utf-8")
    except OSError:
        raise ReportError(
            f"{TEMPLATE}: there is no template of the page: `make report` builds it"
        ) from None


def write(path: Path, title: str, data: Table) -> None:
    """Writes the page of a table, or of a comparison."""
    before, after = template().split(DATA)
    title = os.fsencode(title).decode("utf-8", "replace")  # names of files are bytes
    page = before.replace(TITLE, html.escape(title)) + script_json({"title": title, **data}) + after
    write_output(path, page.encode())
