#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Compares values that two programs print for one recording, function by function.

usage: same.py [--rates] PERF OTHER RECORDING... [-- OPTION...]

PERF and OTHER are builds of perf with `perf functions report -x`. If OTHER is a script, it is
generate-function-metrics.py, and --rates compares the rates of matched windows. OPTIONs, such as
--symfs, go to both. Prints the values that differ by more than one part in a billion.
"""

import csv
import subprocess
import sys
from pathlib import Path

MOST = 1e-9


def table(perf: str, script: str, path: str, options: list[str]) -> dict[str, dict[str, str]]:
    """The rows by name."""
    if script:
        command = [perf, "script", "-i", path, *options, "-s", script, "--", "-s", "discard", "--csv"]
    else:
        command = [perf, "functions", "report", "-i", path, "-x", ",", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return {row["symbol"]: row for row in csv.DictReader(done.stdout.splitlines())}


def is_same(one: str, other: str) -> bool:
    if "-" in (one, other):
        return one == other
    return abs(float(one) - float(other)) <= MOST * max(abs(float(one)), abs(float(other)))


def main() -> int:
    words = sys.argv[1:]
    options = words[words.index("--") + 1 :] if "--" in words else []
    words = words[: words.index("--")] if "--" in words else words
    rates = "--rates" in words
    perf, other, *paths = (word for word in words if word != "--rates")
    script = other if Path(other).suffix == ".py" else ""
    differ = 0
    for path in paths:
        ours = table(perf, "", path, options + (["--source", "windows"] if script else []))
        theirs = table(perf if script else other, script, path, options)
        compared = 0
        for name in ours.keys() & theirs.keys():
            for title, value in ours[name].items():
                is_rate = title == "CPI" or title.endswith("/KI")
                if title not in theirs[name] or (rates and not is_rate):
                    continue
                if title in ("symbol", "dso", "#", "weak", "rough"):
                    continue
                compared += 1
                if not is_same(value, theirs[name][title]):
                    differ += 1
                    print(f"{path}: {title} of {name}: {value}, {theirs[name][title]}")
        print(f"{path}: {compared} values of {len(ours)} and {len(theirs)} rows")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
