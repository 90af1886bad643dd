# SPDX-License-Identifier: GPL-2.0
"""Do bursts of windows give narrower intervals for the same number of interrupts?

The benchmark is recorded in the machine with caches, with bursts of 1, 2, 4 and 8 windows and long
periods that make the interrupts equally frequent. As in the collectors, a burst is a run of windows
in one function. Their counts are added up before the error of a metric is calculated, so that the
error does not depend on how alike they are. This module calculates it a second time, with each
window by itself, and prints how alike they are.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, groupby, pairwise
from math import isclose, sqrt
from pathlib import Path

from bench.experiment import functions_of
from bench.guest import with_truth
from bench.markdown import prose
from tests.harness import perfdata
from tests.harness.env import BUILD, PERF
from tests.harness.perfdata import Sample
from tests.harness.truth import places

TITLE = "Several windows after each long period"
COUNTS = 1, 2, 4, 8
EACH = 60000  # cycles per interrupt
WINDOW, JITTER = 300, 16
EVENTS = "cycles", "instructions", "branch-misses", "cache-misses"
COMMAND = "benchmark --iterations 4000 0 1"
# the rates: function, column, event, divisor
METRICS = (
    ("branch_mispredicts", "CPI", "cycles", "instructions"),
    ("branch_mispredicts", "BM/KI", "branch-misses", "instructions"),
    ("dcache_miss", "CPI", "cycles", "instructions"),
    ("dcache_miss", "CM/KI", "cache-misses", "instructions"),
    ("int_divider_stalls", "CPI", "cycles", "instructions"),
)
SHARE_OF = "dcache_miss"
NORMAL_95 = 1.96

Counts = dict[str, int]


def record(count: int) -> Path:
    """A recording with bursts of this number of windows."""
    long = (count + 1) * EACH - count * WINDOW
    terms = f"period={long},alt-period={WINDOW},alt-period-jitter={JITTER},alt-period-count={count}"
    events = f"{{cycles/{terms}/,{','.join(EVENTS[1:])}}}:uS"
    return with_truth(f"bursts-{count}", events, COMMAND, "small")[0]


def counts_between(early: Sample, late: Sample) -> Counts:
    """Returns the counts of each event from one sample to the next."""
    values = zip(EVENTS, early.values.values(), late.values.values())
    return {event: new - old for event, old, new in values}


def bursts_of(stream: Sequence[Sample]) -> dict[str, list[list[Counts]]]:
    """The windows of each function, by burst."""
    windows = (
        (function if late.period < 2 * WINDOW and function == begin else None, early, late)
        for (early, late), (begin, function) in zip(pairwise(stream), pairwise(places(stream)))
    )
    found: dict[str, list[list[Counts]]] = {}
    for function, burst in groupby(windows, key=lambda window: window[0]):
        if function:
            counts = [counts_between(early, late) for _, early, late in burst]
            found.setdefault(function, []).append(counts)
    return found


def residuals(bursts: list[list[Counts]], event: str, per: str) -> list[list[float]]:
    """Returns the difference of each window to the ratio of all, relative to the mean of `per`."""
    windows = [window for burst in bursts for window in burst]
    total = sum(window[per] for window in windows)
    ratio = sum(window[event] for window in windows) / total
    scale = total * ratio / len(windows)
    return [[(window[event] - ratio * window[per]) / scale for window in burst] for burst in bursts]


def error(parts: Iterable[float], windows: int) -> float:
    """The relative standard error of a ratio, from the residuals of its independent parts."""
    return sqrt(windows / (windows - 1) * sum(part * part for part in parts)) / windows


def correlation(bursts: list[list[float]]) -> float | None:
    """Returns the correlation of two windows of a burst."""
    pairs = sum(len(burst) * (len(burst) - 1) for burst in bursts)
    squares = sum(part * part for burst in bursts for part in burst)
    if not pairs or not squares:
        return None
    products = sum(sum(burst) ** 2 for burst in bursts) - squares
    return products / pairs / (squares / sum(map(len, bursts)))


def row_of(path: Path) -> dict:
    """Relative half widths, as the table has them and as if windows were independent."""
    table = {
        row["symbol"]: row for row in functions_of(path, PERF, "--symfs", BUILD / "root/arm64")
    }
    recording = perfdata.read(path)
    windows_of = bursts_of(recording.stream())
    found = {}
    for function, column, event, per in METRICS:
        metrics, errors = (table[function][what] for what in ("metrics", "errors"))
        parts = residuals(windows_of[function], event, per)
        number = sum(map(len, parts))
        own = error(map(sum, parts), number)
        if not isclose(own, errors[column] / metrics[column], rel_tol=1e-6):
            raise AssertionError(f"{function}, {column}: {own} is not the error of the table")
        single = error(chain.from_iterable(parts), number)
        found[f"{function}, {column}"] = {
            "value": metrics[column],
            "width": NORMAL_95 * own,
            "width if independent": NORMAL_95 * single,
            "correlation": correlation(parts),
        }
    share = table[SHARE_OF]
    return {
        "interrupts": len(recording.samples),
        "windows": sum(row["windows"]["matched"] for row in table.values()),
        "share": {
            "value": share["metrics"]["%CY"],
            "width": NORMAL_95 * share["errors"]["%CY"] / share["metrics"]["%CY"],
        },
        "metrics": found,
    }


def measure() -> dict:
    """Records with each count."""
    with ThreadPoolExecutor(2) as pool:
        return {str(n): row_of(path) for n, path in zip(COUNTS, pool.map(record, COUNTS))}


def report(result: dict) -> str:
    """The result as Markdown."""

    def percent(value: float) -> str:
        return f"{100 * value:.2f}"

    def line(name: str, cells: Iterable[str]) -> str:
        return f"| {name} | {' | '.join(cells)} |"

    rows = result.values()
    names = list(result[str(COUNTS[0])]["metrics"])
    heads = [f"N = {number}" for number in result]
    lines = [
        prose(
            f"""With `alt-period-count=N`, a burst of N windows follows each long period. The
            benchmark is recorded in the machine with caches (`MODEL=small`), with windows of
            {WINDOW} cycles. The long period is chosen so that there is one interrupt in {EACH:,}
            cycles for each N. Each cell is half the width of a 95 % interval, in percent of the
            value. The number in brackets is what it would be if the windows of a burst were
            independent. The share %CY depends on the places of the bursts, so more windows in a
            burst do not make it more exact."""
        ),
        "",
        line("", heads),
        f"|---|{'--:|' * len(heads)}",
        line("interrupts", (f"{row['interrupts']:,}" for row in rows)),
        line("windows that count", (f"{row['windows']:,}" for row in rows)),
        line(f"{SHARE_OF}, %CY", (percent(row["share"]["width"]) for row in rows)),
    ]
    for name in names:
        metrics = [row["metrics"][name] for row in rows]
        lines.append(
            line(
                name,
                (
                    f"{percent(metric['width'])} ({percent(metric['width if independent'])})"
                    for metric in metrics
                ),
            )
        )
    lines += [
        "",
        prose(
            """The next table has the correlation between two windows of a burst, by their
            difference to the mean of the function. It is negative if the function is regular: an
            instruction that waits at the end of a window adds some cycles to this window and the
            others to the next one."""
        ),
        "",
        line("", heads[1:]),
        f"|---|{'--:|' * (len(heads) - 1)}",
    ]
    for name in names:
        values = [row["metrics"][name]["correlation"] for row in rows][1:]
        lines.append(line(name, ("" if value is None else f"{value:.2f}" for value in values)))
    return "\n".join(lines)
