# SPDX-License-Identifier: GPL-2.0
"""Measures how near the table comes to the truth, by window, share mode, depth of calls and jitter.

`benchmark --truth` counts what the benchmark does one instruction at a time, without a PMU: the
length of a call of each function, the share of each in the instructions, and the page faults in a
call, which only dcache_miss has. The errors are

 shares    half the sum of |share - truth| of all functions: the part of the cycles that the
           table gives to a wrong function
 rate      that of the page faults per instruction of dcache_miss, relative to the true rate
 spill     the part of all page faults that the table gives to other functions

A share of n windows has a standard error, and from those of all functions follows how large
the first error is by chance alone: a mean of |x| is sqrt(2 / pi) standard errors.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.collect import SYMBOLS
from bench.experiment import functions_of
from bench.guest import OUT, SHARE, Kernel, recording, unthrottled
from bench.markdown import prose
from bench.picture import picture
from tests.harness.env import PERF
from tests.harness.truth import LEAVES, Rows, Truth, read_truth

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "Accuracy"
PLOT, FUNCTIONS_PLOT = OUT / "accuracy.svg", OUT / "accuracy-functions.svg"
PICTURES = {
    PLOT: "Errors of shares and rates by length of the window",
    FUNCTIONS_PLOT: "Error of each function's share by length of the window",
}
ITERATIONS, SHORT_ITERATIONS = 5000, 1000
DEPTHS = 1, 2, 3
WINDOWS = 100, 200, 300, 500, 1000, 3000, 10000
PAIR, PLAIN, JITTER = 50_000, (1_000_000, 300), 14
MODES = "auto", "discard", "none"
EVENTS = "{{cycles/{}/,instructions,page-faults}}:uS"


def recordings(
    windows: tuple[int, ...], plain: tuple[int, ...] = PLAIN
) -> dict[tuple[str, int], str]:
    """Terms of the events by kind and window."""
    found = {("plain", period): f"period={period}" for period in plain}
    for window in windows:
        terms = f"period={PAIR - window},alt-period={window}"
        found["alternate", window] = terms
        found["jitter", window] = f"{terms},alt-period-jitter={JITTER}"
    return found


def file_of(kind: str, window: int, name: str) -> str:
    """The name of a recording."""
    return f"accuracy-{kind}-{window}-{name}.data"


def record(
    name: str,
    depth: int,
    wanted: dict[tuple[str, int], str],
    iterations: int,
    kernel: Kernel = Kernel(),
) -> Truth:
    """Makes recordings() of a depth; returns the truth."""
    commands = f"{kernel.setup}benchmark --truth --faults 0 {depth}\n"
    for (kind, window), terms in wanted.items():
        # every window is recorded where there is no long period
        number = (
            min(iterations, SHORT_ITERATIONS) if (kind, window) == ("plain", 300) else iterations
        )
        commands += recording(
            file_of(kind, window, name),
            EVENTS.format(terms),
            f"benchmark --faults --iterations {number} 0 {depth}",
        )
    return read_truth(unthrottled(commands, *kernel.options))


def table_of(path: Path, mode: str) -> Rows:
    """The table of a recording, by symbol."""
    return {row["symbol"]: row for row in functions_of(path, PERF, *SYMBOLS, "--share", mode)}


def half_sum(one: dict[str, float], other: dict[str, float]) -> float:
    """Half the sum of the differences between shares."""
    return sum(abs(one[name] - other[name]) for name in other) / 2


def modes_of(kind: str, window: int) -> tuple[str, ...]:
    """The share modes in which a recording is read.

    Two long samples in a row share a function only by chance: there is nothing to discard. Only
    alternate periods have the samples that auto needs.
    """
    if (kind, window) == ("plain", PLAIN[0]):
        return ("none",)
    return MODES if kind != "plain" else ("discard", "none")


def errors(table: Rows, truth: Truth, mode: str = "discard") -> dict[str, Any]:
    """The errors of a table of the benchmark.

    In share mode auto the shares and rates are the table's values. In the others they follow from
    the events in the windows that count.
    """

    def total(event: str) -> dict[str, int]:
        return {
            name: table[name]["events"][event]["count"] if name in table else 0 for name in truth
        }

    cycles, faults, instructions = total("cycles"), total("page-faults"), total("instructions")
    windows, matched = (
        sum(table[name]["windows"][count] for name in truth if name in table)
        for count in ("samples", "matched")
    )
    if not matched:
        return {
            "windows": windows,
            "matched": 0,
            "shares": dict.fromkeys(truth, 0.0),
            "share error": None,
            "by chance": None,
            "rate error": None,
            "spill": None,
        }
    true = {name: row.share for name, row in truth.items()}
    true_rate = truth["dcache_miss"].faults / truth["dcache_miss"].length
    number, rate, spill = matched, None, None
    if mode == "auto":
        values = {name: table[name]["metrics"] for name in truth if name in table}
        cycles = {name: values[name]["%CY"] if name in values else 0 for name in truth}
        number = sum(table[name]["windows"]["opened"] for name in values)
        if "dcache_miss" in values:
            rate = values["dcache_miss"]["PF/KI"] / 1000
    else:
        if instructions["dcache_miss"]:
            rate = faults["dcache_miss"] / instructions["dcache_miss"]
        if sum(faults.values()):
            spill = 1 - faults["dcache_miss"] / sum(faults.values())
    shares = {name: count / sum(cycles.values()) for name, count in cycles.items()}
    return {
        "windows": windows,
        "matched": matched,
        "shares": shares,
        "share error": half_sum(shares, true),
        "by chance": sum(math.sqrt(2 / math.pi * p * (1 - p) / number) for p in true.values()) / 2,
        "rate error": None if rate is None else rate / true_rate - 1,
        "spill": spill,
    }


def expected(truth: Truth, window: int) -> dict[str, float]:
    """The share that each function has of the windows that begin and end in one function.

    It is calculated from the benchmark's calls, in 50 iterations that each shuffle their order.
    The callers of a function do their work before each of its calls.
    """
    import numpy  # pylint: disable=import-outside-toplevel

    names, random = list(truth), numpy.random.default_rng(1)
    iterations = truth["iteration"].calls
    of_a_function = {
        name: truth[name].instructions / iterations / len(LEAVES)
        for name in names
        if name not in LEAVES
    }
    runs = []
    for name in [name for _ in range(50) for name in random.permutation(LEAVES)]:
        pieces = truth[name].calls // iterations
        for piece in range(pieces):
            runs += [
                (caller, of_a_function[caller] / times)
                for caller, times in (("iteration", 1), ("outer", 2), ("middle", pieces))
                if caller in truth and piece % (pieces // times or 1) == 0
            ]
            runs.append((name, truth[name].length))
    where = numpy.repeat(
        [names.index(name) for name, _ in runs], [round(length) for _, length in runs]
    )
    kept = numpy.bincount(where[where == numpy.roll(where, -window)], minlength=len(names))
    return {name: count / kept.sum() for name, count in zip(names, kept)}


def rows_of(name: str, wanted: dict[tuple[str, int], str], truth: Truth) -> list[dict]:
    """The errors of the tables of recordings; removes the recordings."""
    rows = []
    for kind, window in wanted:
        path = SHARE / file_of(kind, window, name)
        for mode in modes_of(kind, window):
            rows.append(
                {
                    "kind": kind,
                    "window": window,
                    "mode": mode,
                    **errors(table_of(path, mode), truth, mode),
                }
            )
        path.unlink()
    return rows


def measure(
    iterations: int = ITERATIONS,
    windows: tuple[int, ...] = WINDOWS,
    depths: tuple[int, ...] = DEPTHS,
) -> dict:
    """Records each depth in a machine of its own, two at a time; compares the tables."""
    wanted = recordings(windows)
    with ThreadPoolExecutor(2) as pool:
        truths = dict(
            zip(
                depths,
                pool.map(lambda depth: record(str(depth), depth, wanted, iterations), depths),
            )
        )
    rows = [
        {"depth": depth, **row}
        for depth, truth in truths.items()
        for row in rows_of(str(depth), wanted, truth)
    ]
    result = {
        "iterations": iterations,
        "pair": PAIR,
        "jitter": JITTER,
        "rows": rows,
        "truth": {
            str(depth): {name: row.share for name, row in truth.items()}
            for depth, truth in truths.items()
        },
        # discarding windows over a call makes this error in the shares, with any number of windows
        "bias": {
            str(depth): {
                str(window): half_sum(
                    expected(truth, window), {name: row.share for name, row in truth.items()}
                )
                for window in windows
            }
            for depth, truth in truths.items()
        },
    }
    result["best"] = {str(depth): best(result, depth) for depth in depths}
    plot(result)
    return result


def select(result: dict, **wanted: Any) -> list[dict]:
    """The rows with these values."""
    return [
        row for row in result["rows"] if all(row[name] == value for name, value in wanted.items())
    ]


def best(result: dict, depth: int) -> int:
    """The window with the smallest sum of two errors: of the expected shares, of the measured rate.

    Both errors are parts of 1. The shares are the expected ones because chance changes measured
    shares equally for all windows.
    """
    bias = result["bias"][str(depth)]
    return min(
        select(result, depth=depth, kind="alternate", mode="discard"),
        key=lambda row: bias[str(row["window"])]
        + abs(1 if row["rate error"] is None else row["rate error"]),
    )["window"]


def plot(result: dict) -> None:  # pylint: disable=too-many-locals
    """Errors over windows, and the error of each function's share."""
    depths = sorted({row["depth"] for row in result["rows"]})
    width = 4 * len(depths)
    with picture(PLOT, width, 7) as figure, picture(FUNCTIONS_PLOT, width, 4) as functions:
        for column, depth in enumerate(depths):
            for line, error in enumerate(("share error", "rate error")):
                axes = figure.add_subplot(2, len(depths), line * len(depths) + column + 1)
                for kind in "alternate", "jitter":
                    for mode in MODES:
                        rows = [
                            row
                            for row in select(result, depth=depth, kind=kind, mode=mode)
                            if row[error] is not None
                        ]
                        axes.plot(
                            [row["window"] for row in rows],
                            [100 * abs(row[error]) for row in rows],
                            ".-",
                            label=f"{kind}, {mode}",
                        )
                for row in select(result, depth=depth, kind="plain", mode="none"):
                    axes.axhline(
                        100 * abs(row[error]),
                        linestyle=":",
                        color="k" if row["window"] == PLAIN[0] else "0.6",
                        label=f"plain {row['window']:,}",
                    )
                if error == "share error":
                    bias = result["bias"][str(depth)]
                    axes.plot(
                        [int(window) for window in bias],
                        [100 * part for part in bias.values()],
                        "k--",
                        label="discard, expected",
                    )
                axes.set(
                    xscale="log",
                    yscale="log",
                    xlabel="window",
                    ylabel=f"{error}, %",
                    title=f"depth {depth}",
                )
            axes = functions.add_subplot(1, len(depths), column + 1)
            plot_functions(axes, result, depth)
        for each, columns in (figure, 1), (functions, 2):
            first, *_ = each.axes
            first.legend(fontsize="x-small", ncol=columns)


def plot_functions(axes: "Axes", result: dict, depth: int) -> None:
    """Draws the error of each function's share, by window.

    Crosses are recordings with jitter. Plain recordings stand to the right.
    """
    for number, name in enumerate(LEAVES):
        for kind, mode, style in (
            ("alternate", "discard", ".-"),
            ("jitter", "discard", "x:"),
            ("plain", "none", "o"),
        ):
            rows = select(result, depth=depth, kind=kind, mode=mode)
            axes.plot(
                [
                    f"plain {row['window']:,}" if kind == "plain" else f"{row['window']:,}"
                    for row in rows
                ],
                [100 * (row["shares"][name] - result["truth"][str(depth)][name]) for row in rows],
                style,
                color=f"C{number}",
                label=name if kind == "alternate" else None,
            )
    axes.tick_params("x", rotation=45)
    axes.set_yscale("symlog", linthresh=1)
    # leave room for the legend
    axes.set(
        ylim=(-30, 1000),
        xlabel="window (x: with jitter)",
        ylabel="share - truth, percentage points",
        title=f"depth {depth}",
    )


def percent(value: float | None) -> str:
    """A part of 1, in percent."""
    return "-" if value is None else f"{100 * value:.1f}"


def summary(result: dict) -> str:
    """The errors by window, as two tables of Markdown: of shares, of a rate."""
    depths = sorted({row["depth"] for row in result["rows"]})
    tables = []
    for names in ("share", "share, discard", "expected"), ("rate", "rate, discard", "rate, none"):
        lines = [
            "| window |" + "".join(f" depth {depth}: {' | '.join(names)} |" for depth in depths),
            "|--:|" + "--:|--:|--:|" * len(depths),
        ]
        for window, rows in errors_by_window(result, depths):
            cells = [percent(row[name]) for row in rows for name in names]
            lines.append(f"| {window:,} | {' | '.join(cells)} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def errors_by_window(
    result: dict, depths: list[int]
) -> Iterator[tuple[int, list[dict[str, float | None]]]]:
    """Each window, and the errors of its tables at each depth, by column of summary()."""
    for window in map(int, result["bias"][str(depths[0])]):
        rows = []
        for depth in depths:
            auto, discard, none = (
                select(result, depth=depth, window=window, kind="alternate", mode=mode)[0]
                for mode in MODES
            )
            rows.append(
                {
                    "share": auto["share error"],
                    "share, discard": discard["share error"],
                    "expected": result["bias"][str(depth)][str(window)],
                    "rate": auto["rate error"],
                    "rate, discard": discard["rate error"],
                    "rate, none": none["rate error"],
                }
            )
        yield window, rows


def report(result: dict) -> str:  # pylint: disable=too-many-locals
    """The result as Markdown."""
    shortest = min(row["window"] for row in select(result, kind="alternate"))
    chance = [row["by chance"] for row in select(result, kind="alternate", window=shortest)]
    windows = [row["windows"] for row in select(result, kind="alternate", mode="discard")]
    best_windows = ", ".join(
        f"{window} at depth {depth}" for depth, window in result["best"].items()
    )
    plain = select(result, kind="plain", window=PLAIN[0], depth=1)
    about = f"""
        The error of a table depends on the length of the window. The truth is counted one
        instruction at a time, without a PMU. *Depth* is the number of calls from the benchmark to
        the function that does the work. A long period and its window have {result['pair']:,} cycles
        together, without jitter. All errors are in percent. The first table has the errors of
        shares, the second those of a rate:
    """
    columns = f"""
        *share* is the percentage of the cycles that the table gives to a wrong function, in the
        default share mode, auto. *share, discard* is the same in the share mode `discard`, and
        *expected* is the latter for an infinite number of windows, calculated from the lengths and
        the order of the calls. The recordings have {min(windows):,} to {max(windows):,} windows, so
        with the shortest window chance alone makes a share error of {percent(min(chance))} to
        {percent(max(chance))}. *rate* is the error of the page faults per instruction of
        `dcache_miss`, in the three share modes.
    """
    why = f"""
        Shares in the mode auto come from the samples that end long periods, so they are right
        except for chance, whatever the window. Its rates come from the windows that begin and end
        in the function, or from all that begin in it if more than a tenth leave it. The mode
        `discard` discards each window that begins in one function and ends in another. So
        long windows lose the functions with short calls. The mode `none` keeps these windows, and
        gives their counts to the function at the end. Its shares are right except for chance, but
        its rates mix both functions. A short window holds few events, so its rate is less exact. In
        the mode `discard`, the window with the smallest sum of the expected share error and the
        measured rate error is {best_windows}.
    """
    deep = """
        At depth 1 a call has 3,365 to 11,539 instructions. At depths 2 and 3 it is split into eight
        calls, each an eighth as long, and before each the caller executes fewer than 100
        instructions. The caller hardly ever has a window of its own, which causes most of the share
        error of the mode `discard`. A window that reaches over two of the calls also counts the
        work of the caller, which lowers the rate of the function. Windows of 500 cycles and more
        can begin in one call and end in the next call of the same function. They are kept, so the
        shares of this mode become better again.
    """
    chances = """
        *by chance* is calculated for windows at independent places. Without jitter the places are
        not quite independent, because a long period and its window are together nearly as long as
        an iteration of the benchmark. Rows without jitter are the same in each run; rows with
        jitter differ by chance.
    """
    sampling = "".join(
        f" Plain sampling every {PLAIN[0]:,} cycles gives all functions the same rate, so the rate "
        f"of `dcache_miss` is {-100 * row['rate error']:.0f} % too low."
        for row in plain
    )
    lines = [
        prose(about),
        "",
        summary(result),
        "",
        prose(columns),
        "",
        prose(why + sampling),
        "",
        prose(deep),
        "",
        prose(
            "The next table has all recordings. *alternate* has a long period and a window, "
            f"*jitter* has both with `alt-period-jitter={result['jitter']}`, and *plain* has one "
            "period only. *discarded* is the percentage of the windows that are discarded. "
            "*expected* is the expected share error. *spill* is the percentage of all page faults "
            "that the table gives to functions other than `dcache_miss`:"
        ),
        "",
        "| depth | recording | window | mode | windows | discarded | share error | by chance "
        "| expected | rate error | spill |",
        "|--:|---|--:|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in result["rows"]:
        bias = (
            result["bias"][str(row["depth"])].get(str(row["window"]))
            if row["mode"] == "discard"
            else 0.0
        )
        cells = [
            row["depth"],
            row["kind"],
            f"{row['window']:,}",
            row["mode"],
            f"{row['windows']:,}",
            percent(1 - row["matched"] / row["windows"]),
            percent(row["share error"]),
            percent(row["by chance"]),
            percent(bias),
            percent(row["rate error"]),
            percent(row["spill"]),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, "", prose(chances)])
