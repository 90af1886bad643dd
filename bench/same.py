#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Compares what two programs print for one recording, function by function.

usage: same.py [--perf OTHER] [RECORDING...] [-- OPTION...]

Without OTHER, it compares the rates of windows with those of generate-function-metrics.py; with
OTHER, a build of perf, all values of the table with those of that one. OPTIONs, such as --source
and --symfs, go to both. Without a RECORDING, it reads those that `make demo` and the bench have
left. It prints the values that differ by more than one part in a billion.
"""

import argparse
import csv
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))
from tests.harness.env import BUILD, PERF, SCRIPT  # pylint: disable=wrong-import-position

MOST = 1e-9
LISTED = 10  # of a recording
NO_VALUES = "symbol", "dso", "address", "#", "weak", "rough"


def recordings() -> dict[Path, list[str]]:
    """The recordings that are there, and options that say where their programs are."""
    roots = {"demo*/perf.data": "arm64", "bench/share/truth-*.data": "arm64-programs"}
    return {
        path: ["--symfs", str(BUILD / "root" / root)]
        for pattern, root in roots.items()
        for path in sorted(BUILD.glob(pattern))
    }


def table(*command: object) -> dict[tuple[str, ...], dict[str, str]]:
    """The rows of a command's comma-separated values by function."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=-3, text=True, check=True)
    rows = csv.DictReader(done.stdout.splitlines())
    return {(row["symbol"], row["dso"], row.get("address") or ""): row for row in rows}


def is_rate(title: str) -> bool:
    """Whether a column is a ratio of two counts of a function."""
    return title in ("CPI", "%CM", "%RI", "DIS") or title.endswith("/KI")


def is_same(one: str, other: str) -> bool:
    if "-" in (one, other):
        return one == other
    return abs(float(one) - float(other)) <= MOST * max(abs(float(one)), abs(float(other)))


def compare(path: Path, perf: str, options: list[str]) -> int:
    """Compares the tables of a recording; returns the number of values that differ."""
    report = "functions", "report", "-i", path, "-x", ",", *options
    if perf:
        ours, theirs = table(PERF, *report), table(perf, *report)
    else:
        script = "-s", SCRIPT, "--", "-s", "discard", "--csv"
        ours = table(PERF, *report, "--source", "windows")
        theirs = table(PERF, "script", "-i", path, *options, *script)
    values = [
        (row.get(title, "-"), other.get(title, "-"), title, name)
        for name in ours.keys() | theirs.keys()
        for row, other in [(ours.get(name, {}), theirs.get(name, {}))]
        for title in row | other
        if (title not in NO_VALUES if perf else is_rate(title))
    ]
    differ = [one for one in values if not is_same(one[0], one[1])]
    for value, other, title, (symbol, dso, _) in differ[:LISTED]:
        print(f"  {title} of {symbol} in {dso}: {value}, {other}")
    numbers = [(float(one), float(other)) for one, other, *_ in differ if "-" not in (one, other)]
    most = max((abs(one - other) / max(one, other) for one, other in numbers), default=0)
    more = f", by up to {100 * most:.2g} %" * bool(differ)
    print(f"{path}: {len(values)} values of {len(ours)} functions, {len(differ)} differ{more}")
    return len(differ)


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[2].removeprefix("usage: "))
    parser.add_argument("--perf", default="", metavar="OTHER")
    parser.add_argument("recordings", nargs="*", type=Path)
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:at])
    found = dict.fromkeys(args.recordings, []) or recordings()
    return sum(compare(path, args.perf, own + words[at + 1 :]) for path, own in found.items()) > 0


if __name__ == "__main__":
    sys.exit(main())
