# SPDX-License-Identifier: GPL-2.0
"""Measures how near the table comes to the truth, by window, depth of calls and share mode.

`benchmark --truth` counts what the benchmark does one instruction at a time, without a PMU: the
share of each function in the instructions, and the page faults in a call, which only dcache_miss
has. The errors are

 share     half the sum of |share - truth| of all functions: the part of the cycles that the
           table gives to a wrong function
 rate      that of the page faults per instruction of dcache_miss, relative to the true rate

A share of n windows has a standard error, and from those of all functions follows how large
the first error is by chance alone: a mean of |x| is sqrt(2 / pi) standard errors.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.collect import SYMBOLS
from bench.experiment import functions_of
from bench.guest import SHARE, recording, unthrottled
from bench.markdown import prose
from tests.harness.env import PERF
from tests.harness.truth import Rows, Truth, read_truth

TITLE = "Accuracy by length of the window"
ITERATIONS = 5000
DEPTHS = 1, 2, 3
WINDOWS = 100, 200, 300, 500, 1000, 3000, 10000
PAIR = 50_000  # cycles of a long period and its window
MODES = "auto", "discard", "none"
# columns of the tables: an error, and a share mode
SHARES = ("share error", "auto"), ("share error", "discard")
RATES = ("rate error", "auto"), ("rate error", "discard"), ("rate error", "none")


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


def errors(table: Rows, truth: Truth, mode: str) -> dict[str, Any]:
    """The errors of a table of the benchmark.

    In share mode auto the shares and rates are the table's values. In the others they follow from
    the events in the windows that count.
    """
    rows = {name: table[name] for name in truth if name in table}
    windows, matched, opened = (
        sum(row["windows"][count] for row in rows.values())
        for count in ("samples", "matched", "opened")
    )
    events = {name: row["events"] for name, row in rows.items()}
    fault = rows["dcache_miss"]
    if mode == "auto":
        cycles = {name: row["metrics"]["%CY"] or 0 for name, row in rows.items()}
        rate, number = fault["metrics"]["PF/KI"] / 1000, opened
    else:
        cycles = {name: counts["cycles"]["count"] for name, counts in events.items()}
        counts = events["dcache_miss"]
        rate, number = counts["page-faults"]["count"] / counts["instructions"]["count"], matched
    true = {name: row.share for name, row in truth.items()}
    total = sum(cycles.values())
    true_rate = truth["dcache_miss"].faults / truth["dcache_miss"].length
    chance = sum(math.sqrt(2 / math.pi * p * (1 - p) / number) for p in true.values()) / 2
    return {
        "windows": windows,
        "matched": matched,
        "share error": sum(abs(cycles.get(name, 0) / total - true[name]) for name in true) / 2,
        "by chance": chance,
        "rate error": rate / true_rate - 1,
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
            for mode in MODES:
                found = functions_of(path, PERF, *SYMBOLS, "--share", mode)
                table = {row["symbol"]: row for row in found}
                rows.append(
                    {"depth": depth, "window": window, "mode": mode, **errors(table, truth, mode)}
                )
            path.unlink()
    return {"rows": rows}


def report(result: dict) -> str:
    """The result as Markdown."""
    rows = {(row["depth"], row["window"], row["mode"]): row for row in result["rows"]}
    depths, windows = (list(dict.fromkeys(key[at] for key in rows)) for at in (0, 1))
    shortest = [rows[depth, windows[0], "discard"]["by chance"] for depth in depths]
    about = f"""
        The truth is counted one instruction at a time, without a PMU. *Depth* is the number of
        calls from the benchmark to the function that does the work: at depth 1 a call has 3,365 to
        11,539 instructions, at depths 2 and 3 an eighth of that. A long period and its window have
        {PAIR:,} cycles together, without jitter. *share* is the percentage of the cycles that the
        table gives to a wrong function, by share mode; with the shortest window chance alone makes
        {100 * min(shortest):.1f} to {100 * max(shortest):.1f}. *rate* is the error of the page
        faults per instruction of `dcache_miss`, in percent.
    """
    lines = [prose(about)]
    for columns in SHARES, RATES:
        names = [f"{error.removesuffix(' error')}, {mode}" for error, mode in columns]
        lines += [
            "",
            "| window |" + "".join(f" depth {depth}: {' | '.join(names)} |" for depth in depths),
            "|--:|" + "--:|" * (len(depths) * len(names)),
        ]
        for window in windows:
            cells = [
                f"{100 * rows[depth, window, mode][error]:.1f}"
                for depth in depths
                for error, mode in columns
            ]
            lines.append(f"| {window:,} | {' | '.join(cells)} |")
    return "\n".join(lines)
