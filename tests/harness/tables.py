# SPDX-License-Identifier: GPL-2.0
"""Reads what `perf functions report -j` prints, in a form that is short to test."""

import json
from typing import Any

from tests.harness import sumsfile
from tests.harness.env import PERF, must


def objects(text: str) -> list[dict]:
    """JSON objects that come one after another."""
    found, decoder = [], json.JSONDecoder()
    while text := text.lstrip():
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:]
    return found


def flat(text: str) -> dict[str, Any]:
    """The object, with the values of a function as numbers, and beside them their intervals.

    windows: the numbers of windows ("matched") and of observations ("samples").
    """
    table = json.loads(text)
    for row in table["functions"]:
        address = row.get("address")
        row["address"] = address and int(address, 16)
        values = {name: value or {} for name, value in row["metrics"].items()}
        row["metrics"] = {name: value.get("value") for name, value in values.items()}
        row["errors"] = {name: value.get("error") for name, value in values.items()}
        row["intervals"] = {
            name: [value["low"], value["high"]] if value.get("low") is not None else None
            for name, value in values.items()
        }
        row["weak"] = [name for name, value in values.items() if value.get("mark") == "weak"]
        row["rough"] = [name for name, value in values.items() if value.get("mark") == "rough"]
        row["doubts"] = {name: value.get("doubt") for name, value in values.items()}
        seen = row["observations"]
        row["windows"] = {
            "matched": seen.get("windows", 0),
            "samples": seen.get("windows", max(seen.values(), default=0)),
        }
        row["events"] = {
            name: {"count": event["value"], "variance": (event.get("error") or 0) ** 2}
            for name, event in row["events"].items()
            if event
        }
    return table


def ended(*arguments: object, perf: object = (PERF,)) -> dict[tuple[str, str], tuple[int, int]]:
    """Windows that end in a row, and those of them that begin in it, too.

    The keys are the symbol, or else the address, and the DSO.
    """
    text = must(*perf, "functions", "report", "--sums=-", *arguments, stderr=-1)
    found = {}
    for ((symbol, dso, address), source, _), own in sumsfile.read(text)[0].items():
        if source == "windows" and (own["ended"] or own["number"]):
            found[symbol or hex(address), dso] = int(own["ended"]), int(own["number"])
    return found
