# SPDX-License-Identifier: GPL-2.0
"""Compares each source with what is known without an oracle.

The benchmark executes a known number of instructions in each function, and counts them itself, one
step at a time (--truth). In a second run one function does its work twice. So it takes twice the
cycles, and the cycles that `perf stat` counts more are its own, whatever a profile says.
"""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.experiment import functions_of, value_of

SLOW = "int_divider_stalls"
# runs are this many times as long as those of the published experiment: each event has few samples
TIMES = 4
SOURCES = "samples", "windows", "branches", "operations"  # of --source


def output(*command: object) -> str:
    """What a command prints. Raises CalledProcessError."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdin=-3, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def run(perf: str, path: Path, program: list[str]) -> dict[str, Any]:
    """Counts a program's cycles, and records it: the shares of its functions by source."""
    counted = output(perf, "stat", "-x,", "-e", "cycles:u", *program)
    output(perf, "functions", "record", "-q", "-o", path, "--", *program)
    found: dict[str, Any] = {"cycles": int(re.findall(r"^(\d+),", counted, re.M)[0])}
    for source in SOURCES:
        try:
            rows = functions_of(path, perf, "--source", source)
        except subprocess.CalledProcessError:
            continue  # not in this recording
        found[source] = {
            row["symbol"]: {column: value_of(row, column) for column in ("%I", "%CY")}
            for row in rows
        }
    path.unlink()
    return found


def measure(perf: str, folder: Path, iterations: int) -> dict[str, Any]:
    """Makes the two runs; returns what is true, and what each source saw."""
    program = [perf, "test", "-w", "benchmark", "--"]
    lines = [line.split() for line in output(*program, "--truth", 0, 1).splitlines()]
    true = {words[0]: int(words[3]) for words in lines if words[0] not in ("#", "iteration")}
    program += ["--iterations", str(TIMES * iterations)]
    plain = run(perf, folder / "known.data", [*program, "0", "1"])
    slow = run(perf, folder / "known.data", [*program, "--slow", SLOW, "0", "1"])
    all_cycles, added = slow["cycles"], slow["cycles"] - plain["cycles"]
    result = {"true": column(true, 2, added / all_cycles)}
    for source in (name for name in SOURCES if name in plain and name in slow):
        seen = {name: plain[source].get(name, {}).get("%I") or 0 for name in true}
        before, after = (
            (each[source].get(SLOW, {}).get("%CY") or 0) / 100 * each["cycles"]
            for each in (plain, slow)
        )
        result[source] = column(
            seen, after / before if before else None, (after - before) / all_cycles
        )
    return result


def column(
    instructions: Mapping[str, float], slowdown: float | None, added: float
) -> dict[str, Any]:
    """Shares of the functions in what they execute together, and the slow-down."""
    total = sum(instructions.values())
    return {
        "shares": {name: number / total if total else 0 for name, number in instructions.items()},
        "slowdown": slowdown or None,  # a source may tell no cycles
        "added": added if slowdown else None,
    }


def report(result: dict[str, Any]) -> str:
    """The result as Markdown."""

    def row(title: str, cells: list[float | None], digits: int, factor: int = 1) -> str:
        shown = ("-" if cell is None else f"{factor * cell:.{digits}f}" for cell in cells)
        return f"| {title} | {' | '.join(shown)} |"

    columns = list(result.values())
    return "\n".join(
        [
            f"| % of instructions | {' | '.join(result)} |",
            "|---|" + "--:|" * len(result),
            *(
                row(name, [each["shares"][name] for each in columns], 1, 100)
                for name in result["true"]["shares"]
            ),
            row(f"slow-down of {SLOW}", [each["slowdown"] for each in columns], 2),
            row("cycles that it adds, % of all", [each["added"] for each in columns], 1, 100),
        ]
    )
