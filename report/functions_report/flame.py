# SPDX-License-Identifier: GPL-2.0
"""A tree of call chains for a flame graph: nodes as wide as their cycles, with perf's metrics.

The metrics of an inner node are those of all windows below it. perf makes them: chains that are
cut at one depth (counted from the outermost caller) are a partition of all windows, so their sums
are a table like any other. But these windows begin and end in the same chain. One that goes from a
callee to another one was below the node, too: it is in the row of --children, which the node has
if all windows of this row end below it.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import ReportError
from .table import Perf, Table, labels

Node = dict[str, Any]
ALL = "all"


@dataclass
class Chains:
    """The sums of call chains: the head of their file, and for each set of events the lines of its
    groups and of all intervals, which are of no chain, and each chain's numbers.
    """

    head: list[str]
    groups: list[tuple[list[str], dict[str, list[int]]]]

    @classmethod
    def parse(cls, text: str) -> "Chains":
        """Reads a sums file, see SUMS FILE in perf-functions(1)."""
        head: list[str] = []
        groups: list[tuple[list[str], dict[str, list[int]]]] = []
        for line in text.rstrip("\n").split("\n"):
            kind, *fields = line.split("\t")
            if kind == "group":
                if not groups or groups[-1][1]:
                    groups.append(([], {}))
                groups[-1][0].append(line)
            elif kind in ("windows", "long"):
                groups[-1][0].append(line)
            elif kind == "sums":
                add(groups[-1][1], fields[0], [int(number) for number in fields[3:]])
            elif kind != "end":
                head.append(line)
        return cls(head, groups)

    def depth(self) -> int:
        """Returns the length of the longest chain."""
        return max(
            (len(chain.split(";")) for _, chains in self.groups for chain in chains), default=0
        )

    def cut(self, depth: int) -> str:
        """A sums file of the chains' outermost frames, so many (0: of all chains together).

        The counts of chains are added up, in the same block of time, too, as if their blocks
        were of several recordings.
        """
        lines = list(self.head)
        for descriptions, chains in self.groups:
            lines += descriptions
            cut: dict[str, list[int]] = {}
            for chain, numbers in chains.items():
                add(cut, ";".join(chain.split(";")[-depth:]) if depth else ALL, numbers)
            lines += [
                "\t".join(("sums", chain, "", "-", *map(str, numbers)))
                for chain, numbers in sorted(
                    cut.items(), key=lambda item: unescape(item[0]).encode()
                )
            ]
        return "\n".join((*lines, "end\n"))


def add(sums: dict[str, list[int]], chain: str, numbers: Sequence[int]) -> None:
    """Adds numbers to those of a chain."""
    before = sums.get(chain)
    sums[chain] = [a + b for a, b in zip(before, numbers)] if before else list(numbers)


def unescape(name: str) -> str:
    """A name in a sums file."""
    return "\\".join(part.replace("\\t", "\t").replace("\\n", "\n") for part in name.split("\\\\"))


def width_event(table: Table) -> str | None:
    """Returns the event whose total is the width: cycles, else the first leader."""
    every = [sums for function in table["functions"] for sums in function["sums"]]
    leaders = [sums["events"][0] for sums in every if sums.get("opened")]
    if leaders:
        return "cycles" if "cycles" in leaders else leaders[0]
    if any("cycles" in sums["events"] for sums in every):
        return "cycles"
    return every[0]["events"][0] if every else None


def node(function: Table, name: str, width: int) -> Node:
    """Returns the node of a row of a table."""
    return {
        "name": name,
        "value": width,
        "metrics": function["metrics"],
        "intervals": function["intervals"],
        "weak": function["weak"],
        "windows": total(function, "matched"),
        "samples": total(function, "samples"),
        "is_inner": False,  # set when a longer chain is seen
        "children": [],
    }


def total(function: Table, number: str) -> int:
    """Returns a number of a row, in all groups together."""
    return sum(sums[number] for sums in function["sums"])


def widths(table: Table, event: str | None) -> list[int]:
    """Returns the widths of the rows of a table: the total of the event.

    In share mode auto it is spread over the rows by the samples that end a long interval, as perf
    does. It is rounded down, so that no frame is narrower than its callees together.
    """
    opened, own, every = [], [], []
    for function in table["functions"]:
        led = [sums for sums in function["sums"] if sums["events"][0] == event]
        opened.append(sum(sums.get("opened", 0) for sums in led))
        own.append(sum(sums["totals"][event] for sums in led))
        every.append(sum(sums["totals"].get(event, 0) for sums in function["sums"]))
    return [sum(own) * one // sum(opened) for one in opened] if any(opened) else every


def of_table(table: Table) -> tuple[str | None, Node]:
    """The event that is the width, and a tree of one level: the rows of a table."""
    event = width_event(table)
    rows = list(zip(labels(table["functions"]), table["functions"], widths(table, event)))
    if table["by"] == "children":  # callers include the windows of their callees
        rows = [row for row in rows if row[1]["symbol"] == "[all]"]
    children = [node(function, name, width) for name, function, width in rows]
    return event, {
        "name": ALL,
        "value": sum(child["value"] for child in children),
        "metrics": {},
        "intervals": {},
        "weak": [],
        "windows": sum(child["windows"] for child in children),
        "samples": sum(child["samples"] for child in children),
        "is_inner": bool(children),
        "children": [child for child in children if child["value"]],
    }


def add_level(
    above: dict[str, Node], table: Table, depth: int, event: str | None
) -> dict[str, Node]:
    """Adds the frames of one depth to those of their callers; returns the new ones by chain."""
    level = {}
    for function, width in zip(table["functions"], widths(table, event)):
        callee, _, callers = function["symbol"].partition(";")
        if function["symbol"].count(";") == depth - 1:  # a shorter chain has its node
            level[function["symbol"]] = child = node(function, callee, width)
            above[callers]["is_inner"] = True
            if child["value"]:
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
    for function in table["functions"]:
        symbol, dso = function["symbol"], function.get("dso") or ""
        name = symbol.replace(";", ":")
        if (symbol, dso) == ("[all]", ""):
            name = ""
        elif not symbol:
            name = f"{function['address']:#x} [{os.path.basename(dso) or 'unknown'}]"
        rows.setdefault(name, []).append(function)
    return {name: same[0] for name, same in rows.items() if len(same) == 1}


def make_inclusive(nodes: dict[str, Node], rows: dict[str, Table]) -> None:
    """Gives inner nodes the rows of their functions with all that they call, in place of their
    chains'.

    A row is a node's if all its windows end below this node: the function is called on no other
    path, and none of its chains was cut. Of a recursion the first call has the row.
    """
    places: dict[str, list[Node]] = {}
    for chain, one in nodes.items():
        name, *callers = chain.split(";")
        if one["samples"] and name not in callers:
            places.setdefault(name, []).append(one)
    for name, row in rows.items():
        one, *others = places.get(name, [None])
        if not one or others or not one["is_inner"] or one["samples"] != total(row, "samples"):
            continue
        if total(row, "matched"):
            one.update({key: row[key] for key in ("metrics", "intervals", "weak")})
            one["windows"] = total(row, "matched")


def why_none(error: ReportError) -> str:
    """Returns why there are no call chains, from perf's messages."""
    if "--call-graph" in str(error):
        return "The recording has no call chains"
    if "these are sums" in str(error):
        return "These sums have no call chains: --by callchain makes such"
    return f"No call chains: {error}"


def of_chains(perf: Perf, inputs: Sequence[str | Path], inline: bool) -> tuple[str | None, Node]:
    """The event that is the width, and the tree of call chains, with inlined functions or without.

    Raises ReportError if there are no call chains.
    """
    options = ["--by", "callchain", *(["--inline"] if inline else [])]
    chains = Chains.parse(perf.sums(inputs, *options, what="reading the call chains"))
    if "callchain" not in "\n".join(chains.head):
        raise ReportError("these sums are not by call chain: collect them with --by callchain")
    depths, warnings = chains.depth(), list(perf.warnings)
    with tempfile.TemporaryDirectory(prefix="functions-report-") as folder:
        file = Path(folder) / "cut.sums"
        for depth in range(depths + 1):
            file.write_text(chains.cut(depth), encoding="utf-8")
            table = perf.table_of_sums(
                file, what=f"metrics of call chains, depth {depth} of {depths}"
            )
            if depth:
                level = add_level(level, table, depth, event)
                nodes.update(level)
            else:
                event = width_event(table)
                root = (
                    node(table["functions"][0], ALL, widths(table, event)[0])
                    if table["functions"]
                    else of_table(table)[1]
                )
                nodes = {"": root}
                level = dict(nodes)
    perf.warnings[:] = warnings  # those of a cut table name a file that nobody knows
    if root["is_inner"]:
        make_inclusive(nodes, inclusive_rows(perf, inputs))
    return event, root
