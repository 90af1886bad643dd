# SPDX-License-Identifier: GPL-2.0
"""A report as one HTML file that needs nothing but a browser.

`make report` builds the template of the page from report/web. This module adds the data: JSON that
cannot end the element it is in.
"""

import html
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import ReportError
from .table import Table, write_output

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


def members(item: Table, *names: str) -> Table:
    """Some members of an object."""
    return {name: item[name] for name in names}


def table_data(table: Table) -> Table:
    """A table for the page, without what the page does not show."""
    names = "by", "inline", "sets", "throttled", "lost", "columns", "observations"
    of_row = "label", "symbol", "dso", "observations", "events", "metrics"
    rows = [members(function, *of_row) for function in table["functions"]]
    return {**members(table, *names), "rows": rows}


def timeline_data(table: Table, intervals: Iterable[Table], dates: bool) -> Table:
    """The first functions of a table in each interval, for the page.

    intervals: tables with a "time", [begin, end] in seconds; dates: since 1970, else of a clock of
    the machine.
    """
    functions = table["functions"][:TIMELINE_ROWS]
    times: list[list[float]] = []
    rows: list[list] = [[] for _ in functions]
    for interval in intervals:
        found = {key(function): function for function in interval["functions"]}
        times.append(interval["time"])
        for function, cells in zip(functions, rows):
            one = found.get(key(function))
            cells.append(members(one, "metrics") if one else None)
    return {"times": times, "rows": rows, "dates": dates}


def key(function: Table) -> tuple[str, str, int | None]:
    """Returns the identity of a function."""
    return function["symbol"], function["dso"], function.get("address")


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
