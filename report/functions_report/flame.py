# SPDX-License-Identifier: GPL-2.0
"""A tree of call chains for a flame graph: nodes as wide as an event, with perf's metrics.

The metrics of an inner node are those of all observations below it. perf makes them: chains that
are cut at one depth (counted from the outermost caller) are a partition of all observations, so
their sums are a table like any other. But a window begins and ends in the same chain. One that goes
from a callee to another one was below the node, too: it is in the row of --children, which the node
has if all samples of this row are below it.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import ReportError
from .sums import cut
from .table import Perf, Table, value_of

Node = dict[str, Any]
ALL = "all"
OF_ROW = "observations", "metrics"  # members of a row that a node has


def node(row: Table, name: str) -> Node:
    """Returns the node of a row of a table. Its width is one of the counts of events."""
    return {
        "name": name,
        "counts": {event: value_of(one) for event, one in row["events"].items()},
        **{key: row[key] for key in OF_ROW},
        "is_inner": False,  # set when a longer chain is seen
        "children": [],
    }


def empty(table: Table) -> Node:
    """Returns a root without metrics."""
    row = {"events": {}, "observations": table["observations"], "metrics": {}}
    return node(row, ALL)


def is_all(row: Table) -> bool:
    """Returns whether a row of --children is that of all complete chains."""
    return (row["symbol"], row["dso"]) == ("[all]", "")


def of_table(table: Table) -> Node:
    """A tree of one level: the rows of a table."""
    rows = table["functions"]
    if table["by"] == "children":  # callers include the windows of their callees
        rows = [row for row in rows if is_all(row)]
    root = empty(table)
    children = [node(row, row["label"]) for row in rows]
    for child in children:
        for event, count in child["counts"].items():
            root["counts"][event] = root["counts"].get(event, 0) + count
    root["children"] = [child for child in children if any(child["counts"].values())]
    return root


def add_level(above: dict[str, Node], table: Table, depth: int) -> dict[str, Node]:
    """Adds the frames of one depth to those of their callers; returns the new ones by chain."""
    level = {}
    for row in table["functions"]:
        callee, _, callers = row["symbol"].partition(";")
        if row["symbol"].count(";") == depth - 1:  # a shorter chain has its node
            level[row["symbol"]] = child = node(row, callee)
            above[callers]["is_inner"] = True
            if any(child["counts"].values()):
                above[callers]["children"].append(child)
    return level


def inclusive_rows(perf: Perf, inputs: Sequence[str | Path]) -> dict[str, Table]:
    """The rows of functions with all that they call, by their names in call chains; "" is the row
    of all. Without names that several functions have, and empty if the input does not tell.
    """
    warnings = list(perf.warnings)
    try:
        table = perf.table(inputs, "--children", what="reading what functions call")
    except ReportError:
        return {}
    perf.warnings[:] = warnings  # warnings about another table would confuse
    rows: dict[str, list[Table]] = {}
    for row in table["functions"]:
        name = "" if is_all(row) else row["symbol"] or row["label"]
        rows.setdefault(name.replace(";", ":"), []).append(row)
    return {name: same[0] for name, same in rows.items() if len(same) == 1}


def make_inclusive(nodes: dict[str, Node], rows: dict[str, Table]) -> None:
    """Gives inner nodes the rows of their functions with all that they call, in place of their
    chains'.

    A row is a node's if all its samples are below this node: the function is called on no other
    path, and none of its chains was cut. Of a recursion the first call has the row.
    """
    places: dict[str, list[Node]] = {}
    for chain, one in nodes.items():
        name, *callers = chain.split(";")
        if one["observations"].get("samples") and name not in callers:
            places.setdefault(name, []).append(one)
    for name, row in rows.items():
        one, *others = places.get(name, [None])
        if not one or others or not one["is_inner"]:
            continue
        if one["observations"]["samples"] == row["observations"].get("samples"):
            one.update({key: row[key] for key in OF_ROW})


def why_none(error: ReportError) -> str:
    """Returns why there are no call chains, from perf's messages."""
    if "--call-graph" in str(error):
        return "The recording has no call chains"
    if "these are sums" in str(error):
        return "These sums have no call chains: --by callchain makes such"
    return f"No call chains: {error}"


def of_chains(perf: Perf, inputs: Sequence[str | Path], inline: bool) -> Node:
    """The tree of call chains, with inlined functions or without.

    Raises ReportError if there are no call chains.
    """
    options = ["--by", "callchain", *(["--inline"] if inline else [])]
    with tempfile.TemporaryDirectory(prefix="functions-report-") as folder:
        file = Path(folder) / "chains.sums"
        perf.sums(inputs, file, *options, what="reading the call chains")
        warnings, whole = list(perf.warnings), file.read_bytes()

        def table_at(depth: int) -> Table:
            file.write_bytes(cut(whole, depth))
            return perf.table_of_sums(file, what=f"metrics of call chains, depth {depth}")

        table, depth = table_at(0), 0
        rows = table["functions"]
        root = node(rows[0], ALL) if rows else empty(table)
        level = {"": root}
        nodes = dict(level)
        while level:
            depth += 1
            level = add_level(level, table_at(depth), depth)
            nodes.update(level)
    perf.warnings[:] = warnings  # those of a cut table name a file that nobody knows
    if root["is_inner"]:
        make_inclusive(nodes, inclusive_rows(perf, inputs))
    return root
