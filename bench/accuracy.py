# SPDX-License-Identifier: GPL-2.0
"""Measures how near the table of windows comes to the truth, by window and depth of calls.

`benchmark --truth` counts what the benchmark does one instruction at a time, without a PMU: the
share of each function in the instructions, and the page faults in a call, which only dcache_miss
has. The errors are

 share     half the sum of |share - truth| of all functions: the part of the cycles that the
           table gives to a wrong function. Shares are those of the leader's samples.
 rate      that of the page faults per instruction of dcache_miss, relative to the true rate, of
           the windows that begin and end in it

A share of n samples has a standard error, and from those of all functions follows how large
the first error is by chance alone: a mean of |x| is sqrt(2 / pi) standard errors.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.collect import SYMBOLS
from bench.experiment import functions_of, value_of
from bench.guest import SHARE, recording, unthrottled
from bench.markdown import prose
from tests.harness.env import PERF
from tests.harness.tables import ended
from tests.harness.truth import Truth, read_truth

TITLE = "Accuracy by length of the window"
ITERATIONS = 5000
DEPTHS = 1, 2, 3
WINDOWS = 100, 200, 300, 500, 1000, 3000, 10000
PAIR = 50_000  # cycles of a long period and its window


def file_of(depth: int, window: int) -> str:
    """The name of a recording."""
    return f"accuracy-{depth}-{window}.data"


def record(depth: int, iterations: int, windows: tuple[int, ...]) -> Truth:
    """Records each window; returns the truth."""
    commands = f"benchmark --truth --faults 0 {depth}\n"
    for window in windows:
        periods = f"period={PAIR - window},alt-period={window}"
        commands += recording(
            file_of(depth, window),
            f"{{cycles/{periods}/,instructions,page-faults}}:uS",
            f"benchmark --faults --iterations {iterations} 0 {depth}",
        )
    return read_truth(unthrottled(commands))


def errors(path: Path, truth: Truth) -> dict[str, Any]:
    """The errors of the table of a recording of the benchmark."""
    found = functions_of(path, PERF, *SYMBOLS, "--source", "windows")
    table = {row["symbol"]: row for row in found if row["symbol"] in truth}
    windows = [own for (name, _), own in ended(path, *SYMBOLS).items() if name in truth]
    number, matched = map(sum, zip(*windows))
    cycles = {name: value_of(row, "%CY") or 0 for name, row in table.items()}
    true = {name: row.share for name, row in truth.items()}
    fault = truth["dcache_miss"]
    rate = value_of(table["dcache_miss"], "PF/KI") / 1000
    chance = sum(math.sqrt(2 / math.pi * p * (1 - p) / number) for p in true.values()) / 2
    total = sum(cycles.values())
    return {
        "windows": number,
        "matched": matched,
        "share error": sum(abs(cycles.get(name, 0) / total - true[name]) for name in true) / 2,
        "by chance": chance,
        "rate error": rate / (fault.faults / fault.length) - 1,
    }


def measure(
    iterations: int = ITERATIONS,
    windows: tuple[int, ...] = WINDOWS,
    depths: tuple[int, ...] = DEPTHS,
) -> dict:
    """Records each depth in a machine of its own, two at a time; compares the tables."""
    with ThreadPoolExecutor(2) as pool:
        truths = list(pool.map(lambda depth: record(depth, iterations, windows), depths))
    rows = []
    for depth, truth in zip(depths, truths):
        for window in windows:
            path = SHARE / file_of(depth, window)
            rows.append({"depth": depth, "window": window, **errors(path, truth)})
            path.unlink()
    return {"rows": rows}


def report(result: dict) -> str:
    """The result as Markdown."""
    rows = {(row["depth"], row["window"]): row for row in result["rows"]}
    depths, windows = (list(dict.fromkeys(key[at] for key in rows)) for at in (0, 1))
    shortest = [rows[depth, windows[0]]["by chance"] for depth in depths]
    about = f"""
        The truth is counted one instruction at a time, without a PMU. *Depth* is the number of
        calls from the benchmark to the function that does the work: at depth 1 a call has 3,365 to
        11,539 instructions, at depths 2 and 3 an eighth of that. A long period and its window have
        {PAIR:,} cycles together, without jitter. *share* is the percentage of the cycles that the
        table gives to a wrong function; with the shortest window chance alone makes
        {100 * min(shortest):.1f} to {100 * max(shortest):.1f}. *rate* is the error of the page
        faults per instruction of `dcache_miss`, in percent.
    """
    lines = [prose(about)]
    lines += [
        "",
        "| window |" + "".join(f" depth {depth}: share | rate |" for depth in depths),
        "|--:|" + "--:|--:|" * len(depths),
    ]
    for window in windows:
        cells = [
            f"{100 * rows[depth, window][error]:.1f}"
            for depth in depths
            for error in ("share error", "rate error")
        ]
        lines.append(f"| {window:,} | {' | '.join(cells)} |")
    return "\n".join(lines)
