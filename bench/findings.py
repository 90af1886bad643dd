# SPDX-License-Identifier: GPL-2.0
"""Writes results/README.md: five findings with a plot each, from the results of one base.

`bench/run.py --findings` writes it. Each figure comes from the JSON files that `make bench`
leaves in results/6.12.
"""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench import diff, truth
from bench.experiment import ALTERNATE, FEW_SAMPLES, LONG, PERIODS, SHORT
from bench.markdown import prose
from bench.picture import picture
from tests.harness.env import TOP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEPT = TOP / "results"
BASE = "6.12"
SOURCES = "results", "truth", "diff"  # JSON files
RECORDS_BASE = "7.3"  # Linux 6.12 has no driver of branch records
LIGHT, MIDDLE, DARK = "#a9c4e0", "#5a86b5", "#1f3b5c"  # they differ in black and white, too
LIMITS = {"25 %": "the kernel's default limit on the rate", "none": "no limit"}


class Finding(NamedTuple):
    """A section of the page."""

    name: str  # of the plot
    heading: str
    plot: str  # its description
    sentences: str
    limits: str
    measurement: str  # that repeats it
    details: str  # the page that has all numbers


def read() -> dict[str, Any]:
    """The results of the measurements, by the names of their files."""
    files = {name: KEPT / BASE / f"{name}.json" for name in SOURCES}
    files["branches"] = KEPT / RECORDS_BASE / "branches.json"
    return {name: json.loads(path.read_text()) for name, path in files.items()}


def megabytes(row: dict) -> str:
    """The size of a recording."""
    return f"{row['bytes'] / 1e6:,.{2 if row['bytes'] < 1e7 else 0}f} MB"


def span(numbers: list[float], digits: int = 0) -> str:
    """The smallest and the largest one, in percent."""
    low, high = (f"{100 * end(numbers):.{digits}f}" for end in (min, max))
    return f"{low} to {high} %"


def volume(measured: dict[str, Any]) -> Finding:
    """Bytes of recordings."""
    published = measured["results"]["published"]
    limited, free = (published["limit"][limit] for limit in LIMITS)
    ratios = published["ratios"]
    return Finding(
        "volume",
        f"A sample every 300 cycles writes {ratios['file, none']:,.0f} times as much data as "
        "alternate periods",
        "Size of perf.data by period",
        f"""One program is recorded with the group `{{{','.join(published['events'])}}}`. A sample
        every 300 cycles (`{SHORT}`) makes a `perf.data` of {megabytes(free[SHORT])}, and alternate
        periods (`{ALTERNATE}`) make one of {megabytes(free[ALTERNATE])}. By default the kernel
        limits the sampling rate. It then drops most samples of the short period, and
        {megabytes(limited[SHORT])} are left: {ratios['file, 25 %']:.0f} times as much as with
        alternate periods.""",
        f"""Both recordings have windows of 300 cycles, but the small one has fewer:
        {free[ALTERNATE]['samples'] // 2:,} instead of {free[SHORT]['samples']:,}. A function that
        seldom runs needs a longer recording before its values are exact.""",
        "published",
        f"{BASE}/README.md#the-published-experiment",
    )


def run_time(measured: dict[str, Any]) -> Finding:
    """Run times of recorded programs."""
    published = measured["results"]["published"]
    limited, free = (published["limit"][limit] for limit in LIMITS)
    added = published["ratios"]["run time"] - 1
    slow = free[SHORT]["run_time"] / free[LONG]["run_time"]
    return Finding(
        "run-time",
        f"Alternate periods make a program less than {math.floor(100 * added) + 1} % slower; with "
        f"a sample every 300 cycles it runs {slow:.0f} times as long",
        "Run time of the recorded program by period",
        f"""The recordings are those of finding 1. Both are compared with one sample every million
        cycles (`{LONG}`), a usual profile, with which the program runs
        {free[LONG]['run_time']:.2f} s. With alternate periods it runs {100 * added:.1f} % longer.
        With a sample every 300 cycles it runs
        {free[SHORT]['run_time']:.2f} s, or {limited[SHORT]['run_time']:.2f} s where the kernel's
        default limit drops most samples.""",
        """Run times repeat to 1 %, so the difference of alternate periods may be chance. The
        emulated CPU executes one instruction per cycle and has no caches. On a real CPU each
        interrupt also evicts the program's data from the caches, so the program may lose more
        time.""",
        "published",
        f"{BASE}/README.md#the-published-experiment",
    )


def strangers(measured: dict[str, Any], reading: str, model: str = "small") -> dict[str, dict]:
    """Debian's programs."""
    return {name: measured["truth"][f"{model}: {reading}"][name] for name in truth.PROGRAMS}


def recorded(measured: dict[str, Any], model: str = "small") -> dict[str, dict]:
    """Debian's programs, by branch records."""
    found = measured["branches"]["programs"][truth.MODELS[model]]
    return {name: found[name]["64"] for name in truth.PROGRAMS}


def errors(programs: dict[str, dict], metric: str) -> list[float]:
    """Returns the errors of each program."""
    return [row[metric]["error"] for row in programs.values()]


def against_truth(measured: dict[str, Any]) -> Finding:
    """Programs that nobody here wrote."""
    windows, corrected, samples = (strangers(measured, name) for name in truth.READINGS)
    large, large_samples = (
        strangers(measured, name, "large") for name in (truth.WINDOWS, truth.SAMPLES)
    )
    records, large_records = (recorded(measured, model) for model in truth.MODELS)
    values, marked, right = (
        sum(row[metric][key] for row in samples.values() for metric in truth.METRICS)
        for key in ("values", "marked", "right")
    )
    _, half, most = truth.quantiles(samples.values())
    _, half_records, most_records = truth.quantiles(records.values())
    return Finding(
        "truth",
        f"In {len(windows)} programs from Debian, the CPI from windows is "
        f"{span(errors(windows, 'CPI'))} off, from event samples "
        f"{span(errors(samples, 'CPI'))}, and from branch records {span(errors(records, 'CPI'))}",
        "Errors of the share of cycles and of CPI by program",
        f"""QEMU runs the programs with a model of a CPU that has caches, TLBs and branch
        predictors. The model itself counts the events of each function, so the true values are
        known. A window measures the interrupt that opens it: the kernel has replaced the program's
        data in the caches. An event sample tells which function has just caused the event, and no
        interrupt came before. Both are read from one recording. From windows, the mean error of a
        function's CPI (cycles per instruction) is {span(errors(windows, 'CPI'))} with small caches
        and {span(errors(large, 'CPI'))} with large ones. With `--correct`, which subtracts an
        estimate of what interrupts add, it is {span(errors(corrected, 'CPI'))} with small caches.
        From event samples, it is {span(errors(samples, 'CPI'))} with small caches and
        {span(errors(large_samples, 'CPI'))} with large ones. Branch records tell the cycles of the
        path before a sample. From them, on Linux {RECORDS_BASE} (`BENCH=branches
        BASE={RECORDS_BASE}`), it is {span(errors(records, 'CPI'))} with small caches and
        {span(errors(large_records, 'CPI'))} with large ones. The share of the cycles is
        {span(errors(samples, truth.CYCLES))} off, of which chance alone makes
        {span([row[truth.CYCLES]['chance'] for row in samples.values()])}, and from branch records
        {span(errors(records, truth.CYCLES))}. For comparison: on a simulated core that executes out
        of order, with many more samples, published errors of this share are 9.1 % by interrupts,
        1.6 % by PEBS-like sampling, and 0.3 to 1.6 % by TIP (MICRO 2021). TEA's cycles by cause and instruction are 2.1 % off (ISCA 2023), a number without a
        counterpart here.""",
        f"""Each event has thousands of samples, and chance alone makes errors of
        {span([row['CPI']['chance'] for row in samples.values()])} in CPI. Samples come late, so a
        short function's events are given to others: the intervals without a mark contain the truth
        in {100 * right / (values - marked):.0f} % of the cases, not in 95 %, and
        {100 * marked / values:.0f} % of the values are marked or missing. Half of the CPIs without
        a mark are at most {100 * half:.0f} % off, and nine in ten at most {100 * most:.0f} %. With
        branch records these numbers are {100 * half_records:.0f} and {100 * most_records:.0f} %.
        The page of all numbers lists the goals that are missed. The model is not a real CPU: it
        executes in order, and does not prefetch.""",
        "truth",
        f"{BASE}/truth.md",
    )


def wide_enough(found: dict[str, Any]) -> str:
    """The first measured jitter of at least a quarter of the loop."""
    return next(n for n in found["jitter"] if 4 * 2 ** int(n) >= found["loop"])


def resonance(measured: dict[str, Any]) -> Finding:
    """A loop in step with the periods."""
    found = measured["results"]["resonance"]
    n = wide_enough(found)
    none, wide = found["jitter"]["0"], found["jitter"][n]
    wrong = max(none["shares"], key=lambda name: abs(none["shares"][name] - found["truth"][name]))
    return Finding(
        "resonance",
        "A loop in step with the periods makes a share wrong by "
        f"{100 * none['largest deviation']:.0f} percentage points; jitter reduces that to "
        f"{100 * wide['largest deviation']:.1f}",
        "Error of the share that is furthest off, by jitter",
        f"""A long period and its window have {found['pair']:,} cycles, exactly
        {found['pair'] // found['loop']} rounds of a loop of {found['loop']:,}. So each window is at
        the same place of the loop.
        The table gives {100 * none['shares'][wrong]:.0f} % of the cycles to
        a function that has {100 * found['truth'][wrong]:.0f} %. With `alt-period-jitter={n}` the
        kernel makes each long period longer or shorter by a random number of up to 2^{n} cycles,
        and each window by up to half of its length. The error is then
        {100 * wide['largest deviation']:.1f} points; chance alone has a
        standard error of {100 * wide['standard error']:.1f} points.""",
        """The loop was written to be in step, and how often real programs are was not measured. A
        longer loop needs more jitter: 2^N has to be at least a quarter of its length.
        `perf functions record` uses jitter unless told otherwise, `perf record` does not.""",
        "resonance",
        f"{BASE}/README.md#resonance",
    )


def rows_of(result: dict, differ: int) -> list[dict]:
    """Returns the rows of runs that differ by so much."""
    return [row for row in result["rows"] if row["differ"] == differ]


def comparisons(measured: dict[str, Any]) -> Finding:
    """Builds that are equal, and a build that is slower."""
    result = measured["diff"]
    most = max(diff.alarm_rate(result, row) for row in result["rows"])
    alarms, worst, row = max(
        ((number, name, row) for row in result["rows"] for name, number in row["alarms"].items()),
        key=lambda found: found[0],
    )
    rate = alarms / result["comparisons"]
    of_worst = (
        f"For {worst}, with {row['runs']} runs that differ by {row['differ']} %, it is "
        f"{100 * rate:.1f} %, "
        + (
            f"above the goal (with {result['comparisons']} comparisons, this may be chance)."
            if rate > diff.ALLOWED
            else "within the goal."
        )
    )
    easy = rows_of(result, 1)[0]
    hard = rows_of(result, 3)
    slower = f"{100 * (diff.SLOWER - 1):.0f} %"
    return Finding(
        "diff",
        f"Comparing {easy['runs']} runs of each build finds {100 * diff.power(result, easy):.0f} % "
        f"of the functions that became {slower} slower, where runs differ by 1 %",
        "False changes, and true changes that are found, by number of runs",
        f"""`perf functions report --before old*.data --after new*.data` compares several
        recordings of two builds, and marks the changes that are more than chance. *Runs differ by
        1 %* means that the values of a function have a standard deviation of 1 % from run to run.
        If that is 3 %, a comparison finds {100 * diff.power(result, hard[0]):.0f} % of the slower
        functions with {hard[0]['runs']} runs of each build, and
        {100 * diff.power(result, hard[-1]):.0f} % with {hard[-1]['runs']}. If both builds are
        equal, perf should mark a change of a metric (CPI, page faults, share of cycles) in at most
        {100 * diff.ALLOWED:.0f} % of the comparisons. Averaged over the metrics, the rate is at
        most {100 * most:.1f} %. {of_worst}""",
        f"""The runs are simulated, as only then the truth is known: {len(diff.MANY)} functions
        whose values differ from run to run independently, and {len(diff.CHANGED)} more that became
        slower, with {' and '.join(f'{size:,}' for size in diff.CHANGED.values())} windows in each
        run. Each point is of {result['comparisons']} comparisons. Real runs may differ in other
        ways, such as a drift.""",
        "diff",
        f"{BASE}/diff.md",
    )


FINDINGS = volume, run_time, against_truth, resonance, comparisons


def page(measured: dict[str, Any]) -> str:
    """README.md of all results."""
    parts = [
        "# Five findings",
        prose(
            f"""Finding 3 compares the three sources of `perf functions`: event samples, branch
            records and windows. The others are about windows. A perf event with alternate periods counts a
            long period, then a short one. For example, `cycles/{ALTERNATE}/` takes a
            sample after 999,700 cycles and the next one 300 cycles later. These 300 cycles are the
            *window*. The sample before it names the function that runs. The sample after it has the
            counts of the group in the window. If both samples are in the same function, the counts
            are this function's. Shares of the cycles come from the samples that end long
            periods."""
        ),
        prose(
            f"""No finding comes from a real CPU. Findings 1, 2 and 4 were measured in an emulated
            arm64 machine in which each instruction takes one cycle, finding 3 in one with a model
            of caches ([emulator/README.md](../emulator/README.md)), and finding 5 with simulated
            runs. Code writes this page and its plots from the JSON files in `results/{BASE}`:
            `bench/run.py --findings`."""
        ),
    ]
    for number, make in enumerate(FINDINGS, 1):
        finding = make(measured)
        parts += [
            f"## {number}. {finding.heading}",
            f"![{finding.plot}]({finding.name}.svg)",
            prose(finding.sentences),
            prose(f"**Limits.** {finding.limits}"),
            f"Repeat: `make bench BENCH={finding.measurement}`. [All numbers]({finding.details}).",
        ]
    return "\n\n".join(parts) + "\n"


def bars(axes: "Axes", series: dict[str, list[float]], label: Callable[[float], str]) -> None:
    """Bars side by side at each place, with their values."""
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        color = (LIGHT, DARK) if len(series) == 2 else (LIGHT, MIDDLE, DARK)
        drawn = axes.bar(
            [place + (number + 0.5) * width - 0.4 for place in range(len(values))],
            values,
            width,
            color=color[number],
            edgecolor="black",
            linewidth=0.6,
            label=name,
        )
        axes.bar_label(drawn, [label(value) for value in values], padding=1, fontsize=8)


def draw_periods(
    figure: "Figure", measured: dict[str, Any], label: str, value: Callable[[dict], float]
) -> "Axes":
    """A number of each recording of the published experiment."""
    limits = measured["results"]["published"]["limit"]
    names = [name for name in PERIODS if name != FEW_SAMPLES]
    axes = figure.add_subplot()
    series = {
        name: [value(limits[limit][periods]) for periods in names] for limit, name in LIMITS.items()
    }
    bars(axes, series, lambda number: f"{number:,.{2 if number < 10 else 0}f}")
    axes.set(xlabel="periods, cycles", ylabel=label)
    axes.margins(y=0.25)
    axes.set_xticks(range(len(names)), [name.replace(",", "\n") for name in names])
    axes.legend(loc="upper left")
    return axes


def logarithmic(axes: "Axes") -> None:
    """An axis of powers of ten, written as plain numbers."""
    axes.set(yscale="log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def draw_volume(figure: "Figure", measured: dict[str, Any]) -> None:
    """Bytes by periods."""
    logarithmic(
        draw_periods(figure, measured, "size of perf.data, MB", lambda row: row["bytes"] / 1e6)
    )


def draw_run_time(figure: "Figure", measured: dict[str, Any]) -> None:
    """Seconds by periods."""
    draw_periods(figure, measured, "run time, s", lambda row: row["run_time"])


def draw_truth(figure: "Figure", measured: dict[str, Any]) -> None:
    """Errors of shares and of CPI, by each source."""
    windows, samples = (strangers(measured, name) for name in (truth.WINDOWS, truth.SAMPLES))
    sources = {"windows": windows, "event samples": samples, "branch records": recorded(measured)}

    def percent(metric: str) -> dict[str, list[float]]:
        return {
            name: [100 * error for error in errors(programs, metric)]
            for name, programs in sources.items()
        }

    shares, rates = percent(truth.CYCLES), percent("CPI")
    left, right = figure.subplots(1, 2)
    for axes, series, digits in ((left, shares, 1), (right, rates, 0)):
        bars(axes, series, lambda number, digits=digits: f"{number:.{digits}f}")
        axes.set_xticks(range(len(windows)), [name.partition(",")[0] for name in windows])
        axes.tick_params(axis="x", labelrotation=30)
        axes.margins(y=0.2)
        axes.legend(loc="upper right" if axes is left else "upper left")
    left.set(ylabel="cycles given to a wrong function, %")
    right.set(ylabel="mean error of CPI, %")


def labelled(
    axes: "Axes", values: list[float], digits: int, side: str, offset: tuple[int, int]
) -> None:
    """The values beside their points, at this distance in points."""
    for place, value in enumerate(values):
        axes.annotate(
            f"{value:.{digits}f}",
            (place, value),
            offset,
            textcoords="offset points",
            ha=side,
            fontsize=8,
        )


def draw_resonance(figure: "Figure", measured: dict[str, Any]) -> None:
    """The largest error by jitter, beside chance."""
    rows = measured["results"]["resonance"]["jitter"]
    axes = figure.add_subplot()
    errors_ = [100 * row["largest deviation"] for row in rows.values()]
    axes.plot(errors_, "o-", color=DARK, label="error of the share that is furthest off")
    labelled(axes, errors_, 1, "center", (-3, -13))
    chance = [
        (place, 100 * row["standard error"])
        for place, row in enumerate(rows.values())
        if row["standard error"] is not None
    ]
    axes.plot(*zip(*chance), "x--", color="black", label="what chance explains (standard error)")
    logarithmic(axes)
    axes.set(xlabel="jitter, cycles", ylabel="error, percentage points")
    axes.set_xticks(range(len(rows)), ["none" if n == "0" else f"2^{n}" for n in rows])
    axes.margins(x=0.08, y=0.1)
    axes.legend()


def draw_diff(figure: "Figure", measured: dict[str, Any]) -> None:
    """False and true changes by number of runs."""
    result = measured["diff"]
    left, right = figure.subplots(1, 2)
    for axes, rate in ((left, diff.alarm_rate), (right, diff.power)):
        for differ, style in zip(diff.DIFFER, ("o-", "s--", "^:")):
            values = [100 * rate(result, row) for row in rows_of(result, differ)]
            axes.plot(values, style, color=DARK, label=f"runs differ by {differ} %")
        axes.set_xticks(range(len(diff.RUNS)), diff.RUNS)
        axes.set_xlabel("runs of each build")
        places = ("center", (0, 6)) if axes is left else ("left", (4, -10))
        labelled(axes, values, 1 if axes is left else 0, *places)
        axes.margins(x=0.12)
    left.axhline(100 * diff.ALLOWED, color="black", linewidth=0.8)
    left.annotate("allowed", (0, 100 * diff.ALLOWED), (0, 3), textcoords="offset points")
    left.set(ylim=(0, 150 * diff.ALLOWED), ylabel="false changes, mean of three columns, %")
    slower = f"{100 * (diff.SLOWER - 1):.0f} %"
    right.set(ylim=(0, 105), ylabel=f"changes of {slower} that are found, %")
    left.legend(loc="upper right")


PLOTS: dict[str, tuple[Callable[["Figure", dict[str, Any]], None], float, float]] = {
    "volume": (draw_volume, 7, 4),
    "run-time": (draw_run_time, 7, 4),
    "truth": (draw_truth, 12, 4.5),
    "resonance": (draw_resonance, 7, 4),
    "diff": (draw_diff, 9, 4),
}


def plots(measured: dict[str, Any], folder: Path = KEPT) -> Iterator[Path]:
    """Draws all; yields their files."""
    for name, (draw, width, height) in PLOTS.items():
        path = folder / f"{name}.svg"
        with picture(path, width, height) as figure:
            draw(figure, measured)
        yield path
