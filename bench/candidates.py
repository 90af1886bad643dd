# SPDX-License-Identifier: GPL-2.0
"""Compares choices of windows for the rates of a function, and of leaders that end the windows.

A window is known by its two ends. The programs of truth.py are recorded with several leaders
and lengths, and each recording is read in several ways, which differ in the function that a
window counts for:

  matched    the one at both ends
  no return  the one at both ends, if no function has returned in between
  start      the one at its start
  ends       the one at its start for one half, the one at its end for the other half
  regressed  all at once: rates that are not negative and explain the windows best, if each half
             of a window is spent in the function at that end
  Simpson    the same, if a window is spent where windows of no length, of half its length and of
             its length end that begin in the same function, with the weights 1, 4 and 1 of
             Simpson's rule; those of half the length come from a second group
  one group  Simpson's rule without a second group: with jitter the longest windows of a group are
             twice as long as its shortest ones

The last two are read from recordings of their own, of some programs, which have both groups.

The error of a rate is that of truth.py: the mean of |recorded - true|, weighted by cycles,
relative to the mean truth. A function with fewer than 10 windows has no value.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from bench.experiment import functions_of
from bench.markdown import bullet, prose
from bench.truth import LEAST, PROGRAMS, ROOT, recordings_of
from emulator.compare import SHARE as CYCLES
from tests.harness.env import PERF, must

TITLE = "Which windows count for a function"
LONG = 10000
EVENTS = "cycles", "instructions", "branch-misses", "cache-misses"
RETURNS = "r000e"
# model, leader, length of a window
CASES = (
    ("own core", "cycles", 300),
    ("own core", "cycles", 100),
    ("own core", "instructions", 100),
    ("own core", "instructions", 40),
    ("own core", "instructions", 10),
    ("with the kernel", "cycles", 300),
    ("with the kernel", "instructions", 100),
    ("with the kernel", "instructions", 40),
)
# recorded with a second group, too, whose windows are half as long
HALVED = CASES[:2]
HALF = "half"  # the name of its only event
PER = "instructions"
METRICS = {  # event, scale
    "CPI": ("cycles", 1),
    "BM/KI": ("branch-misses", 1000),
    "CM/KI": ("cache-misses", 1000),
}
NAMES = [name for name in PROGRAMS if "threads" not in name]
HALVED_NAMES = [name for name in NAMES if name != "gcc"]
READINGS = (
    "*matched* uses the windows with the same function at both ends.",
    "*no return* uses only those *matched* windows in which no function returned.",
    "*start* uses all windows, and counts each for the function at its start.",
    """*ends* uses all windows, and counts one half of each for the function at its start and the
    other half for the function at its end.""",
    "*regressed* looks for the rates, none of them negative, that explain all windows best.",
)
CONCLUSIONS = (
    """
        **Conclusions.** If at least nine of ten windows that begin in a function also end in it,
        `perf functions report` uses *matched*, otherwise *start*. With windows of 300 cycles, no
        other reading is better on both models, and almost every function has a rate.
        Without the kernel, short windows of instructions are best. With the kernel, the interrupt
        adds more to a window than the choice of the window changes, and a short window suffers
        most. So `perf functions record` uses 300 cycles by default; `--window` and `-e` choose
        other windows.
    """,
    """
        *Simpson* is not worth its counter. Its rates of CPI and CM/KI are worse than those of
        *ends*, which needs no counter. Its BM/KI is better with windows of 100 cycles; we did not
        measure why. The rule assumes that a function always has the same rates, wherever it is
        called from and however long it has run. It can tell functions that call each other
        constantly apart only by small differences. We did not try it with the leader
        `instructions`, nor with the kernel.
    """,
    """
        Branch records show the path through a window, so a window can count for each of its
        functions. [Another page](../7.3/branches.md) measures this on Linux 7.3, and has the
        conclusion.
    """,
)
FEWEST = 10  # windows of a value
STEPS = 2000  # of the regression

Function = tuple[str, str]  # symbol, DSO
SAMPLE = re.compile(
    r"\s*(?P<thread>\d+)\s+(?P<time>[\d.]+):\s+(?P<count>\d+)\s+(?P<event>[^\s/:]+)\S*\s+"
    r"[0-9a-f]+ (?P<symbol>.*?) \((?P<dso>.*)\)$"
)


class Windows(NamedTuple):
    """The windows of a recording: numbers of the functions at both ends, counts by event."""

    start: np.ndarray
    end: np.ndarray
    counts: dict[str, np.ndarray]


def samples_of(text: str) -> Iterator[tuple[str, Function, dict[str, int]]]:
    """Thread, function and counts of each sample, from what perf script prints of its group."""
    lines = filter(None, map(SAMPLE.match, text.splitlines()))
    for (thread, _), group in groupby(lines, lambda line: line.group("thread", "time")):
        leader, *members = group
        function = leader["symbol"].split("+0x")[0], leader["dso"]
        counts = {line["event"]: int(line["count"]) for line in (leader, *members)}
        yield thread, function, counts


def windows_of(text: str, leader: str, numbers: dict[Function, int]) -> Windows:
    """The windows in perf script's output. numbers: of functions; all others share the next one."""
    before: dict[str, Function] = {}
    found = []
    for thread, function, counts in samples_of(text):
        if leader not in counts:
            continue
        if thread in before and counts[leader] < LONG / 2:
            found.append((before[thread], function, counts))
        before[thread] = function
    names = {*EVENTS, RETURNS, leader}
    return Windows(
        np.array([numbers.get(start, len(numbers)) for start, _, _ in found], int),
        np.array([numbers.get(end, len(numbers)) for _, end, _ in found], int),
        {name: np.array([counts.get(name, 0) for *_, counts in found], float) for name in names},
    )


def selected(windows: Windows, which: np.ndarray) -> Windows:
    """Some of the windows."""
    counts = {event: numbers[which] for event, numbers in windows.counts.items()}
    return Windows(windows.start[which], windows.end[which], counts)


def not_negative(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Rates that solve normal equations best: non-negative least squares by projected gradients."""
    number = len(target)
    scale = np.sqrt(np.maximum(np.diag(matrix), 1))
    matrix /= np.outer(scale, scale)
    target /= scale
    step = 1 / np.linalg.norm(matrix, 2)
    rate = old = np.zeros(number)
    for turn in range(STEPS):
        ahead = rate + turn / (turn + 3) * (rate - old)
        old, rate = rate, np.maximum(ahead - step * (matrix @ ahead - target), 0)
    return rate / scale


def regressed(windows: Windows, leader: str, counts: np.ndarray, number: int) -> np.ndarray:
    """Events per event of the leader, if each half of a window is spent at one end."""
    half = windows.counts[leader] / 2
    matrix = np.zeros((number, number))
    target = np.zeros(number)
    for one in windows.start, windows.end:
        np.add.at(target, one, half * counts)
        for other in windows.start, windows.end:
            np.add.at(matrix, (one, other), half * half)
    return not_negative(matrix, target)


def ends_of(windows: Windows, number: int) -> np.ndarray:
    """The parts of the windows that begin in a function, by the function in which they end."""
    ends = np.zeros((number, number))
    np.add.at(ends, (windows.start, windows.end), 1)
    without = ends.sum(1) == 0
    ends[without, without.nonzero()[0]] = 1
    return ends / ends.sum(1, keepdims=True)


def simpson(
    windows: Windows, halves: Windows, leader: str, counts: np.ndarray, number: int
) -> np.ndarray:
    """Events per event of the leader: the r of W / 6 (I + 4 M_half + M) r = E[counts | start],
    where M tells in which functions windows end, by where they begin.
    """
    begun = np.bincount(windows.start, minlength=number)
    length = np.bincount(windows.start, windows.counts[leader], number)
    where = np.eye(number) + 4 * ends_of(halves, number) + ends_of(windows, number)
    spent = length[:, None] / 6 * where
    found = np.bincount(windows.start, counts, number)
    weight = 1 / np.maximum(begun, 1)  # of sums of `begun` windows
    return not_negative(spent.T @ (weight[:, None] * spent), spent.T @ (weight * found))


def totals_of(
    windows: Windows, halves: Windows | None, leader: str, number: int
) -> dict[str, dict[str, np.ndarray]]:
    """The events of each function in the windows that count for it, by reading and event.

    A function with too few windows has none.
    """
    start, end = windows.start, windows.end
    same, each = start == end, np.ones(len(start))
    # the functions of the windows, and their weights
    parts_of = {
        "matched": [(start, same)],
        "no return": [(start, same & (windows.counts[RETURNS] == 0))],
        "start": [(start, each)],
        "ends": [(start, each / 2), (end, each / 2)],
    }
    totals = {}
    for name, parts in parts_of.items():
        number_of = sum(np.bincount(whose, part, number) for whose, part in parts)
        totals[name] = {
            event: (number_of >= FEWEST)
            * sum(np.bincount(whose, part * counts, number) for whose, part in parts)
            for event, counts in windows.counts.items()
        }
    totals["regressed"] = {
        event: regressed(windows, leader, windows.counts[event], number) for event in EVENTS
    }
    if not halves:
        return totals
    # from half a window to one and a half; the means of these are 5/4 and 5/8
    length = windows.counts[leader]
    long = selected(windows, length >= np.quantile(length, 0.5))
    short = selected(windows, length <= np.quantile(length, 0.25))
    for name, whole, half in (("Simpson", windows, halves), ("one group", long, short)):
        totals[name] = {
            event: simpson(whole, half, leader, whole.counts[event], number) for event in EVENTS
        }
    return totals


def errors_of(
    totals: dict[str, np.ndarray], truth: list[dict[str, float]], large: list[int]
) -> dict[str, Any]:
    """Error of each metric over the functions of these numbers, and how many have no value."""
    there = [function for function in large if totals[PER][function] > 0]
    result: dict[str, Any] = {"without": len(large) - len(there)}
    for metric, (event, scale) in METRICS.items():
        wrong = whole = 0.0
        for function in there:
            true = truth[function][metric]
            value = scale * totals[event][function] / totals[PER][function]
            wrong += truth[function][CYCLES] * abs(value - true)
            whole += truth[function][CYCLES] * true
        result[metric] = wrong / whole if whole else None
    return result


def terms(window: int) -> str:
    """Returns the terms of a leader, without their end."""
    return f"period={LONG - window},alt-period={window},alt-period-jitter=12"


def result_of(
    program: str, model: str, leader: str, window: int, is_halved: bool
) -> dict[str, Any]:
    """Returns the error of each reading of a recording. All small functions are one."""
    members = ",".join([event for event in EVENTS if event != leader] + [RETURNS])
    events = f"{{{leader}/{terms(window)}/,{members}}}:uS"
    if is_halved:
        events += f",{{{leader}/{terms(window // 2)},name={HALF}/}}:uS"
    data, true = recordings_of(program, model, events, f"-{leader}-{window}")
    rows = [
        row
        for row in functions_of(true, PERF, "--symfs", ROOT)
        if row["metrics"].get(CYCLES, 0) >= LEAST / 10
    ]
    numbers = {(row["symbol"], row["dso"]): number for number, row in enumerate(rows)}
    fields = "tid,time,period,event,ip,sym,dso"
    text = must(PERF, "script", "-i", data, "--symfs", ROOT, "--ns", "-F", fields)
    data.unlink()
    true.unlink()
    windows = windows_of(text, leader, numbers)
    halves = windows_of(text, HALF, numbers) if is_halved else None
    truth = [row["metrics"] for row in rows]
    large = [number for number, row in enumerate(truth) if row[CYCLES] >= LEAST]
    totals = totals_of(windows, halves, leader, len(rows) + 1)
    return {
        "functions": len(large),
        "windows": len(windows.start),
        "matched": float(np.mean(windows.start == windows.end)),
        "readings": {name: errors_of(events, truth, large) for name, events in totals.items()},
    }


def measure() -> list[dict]:
    """Records all programs in all cases, two at a time."""
    cases = [(case, False, NAMES) for case in CASES]
    cases += [(case, True, HALVED_NAMES) for case in HALVED]
    jobs = [(name, *case, halved) for case, halved, names in cases for name in names]
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(jobs, pool.map(lambda job: result_of(*job), jobs)))
    return [
        {
            "model": model,
            "leader": leader,
            "window": window,
            "halved": halved,
            "programs": {name: results[name, model, leader, window, halved] for name in names},
        }
        for (model, leader, window), halved, names in cases
    ]


def mean_of(programs: dict[str, dict], reading: str, metric: str) -> float:
    """The mean error of all programs that have a value."""
    errors = [row["readings"][reading][metric] for row in programs.values()]
    return float(np.mean([error for error in errors if error is not None]))


def table(cases: list[dict]) -> str:
    """Returns the error of each reading of each case."""
    lines = [
        f"| model | leader, window | reading | {' | '.join(METRICS)} | without |",
        f"|---|---|---|{'--:|' * (len(METRICS) + 1)}",
    ]
    for case in cases:
        programs = case["programs"]
        for reading in next(iter(programs.values()))["readings"]:
            cells = [f"{100 * mean_of(programs, reading, metric):.1f}" for metric in METRICS]
            cells.append(str(sum(row["readings"][reading]["without"] for row in programs.values())))
            lines.append(
                f"| {case['model']} | {case['leader']}, {case['window']} | {reading} "
                f"| {' | '.join(cells)} |"
            )
    return "\n".join(lines)


def functions_in(case: dict) -> int:
    """Returns the functions of all programs that are large enough."""
    return sum(row["functions"] for row in case["programs"].values())


def report(result: list[dict]) -> str:
    """The result as Markdown."""
    plain = [case for case in result if not case["halved"]]
    halved = [case for case in result if case["halved"]]
    about = f"""
        A window has samples only at its start and its end, so perf does not know which functions
        ran in between. We recorded {len(NAMES)} programs in the machine with caches, and read each
        recording in several ways:
    """
    errors = f"""
        In the model *own core* the kernel leaves no traces in caches and predictors. A long period
        and its window have {LONG:,} cycles or instructions together. The errors are in percent and
        defined as in [truth.md](truth.md), for the {functions_in(plain[0])} functions with at least
        {LEAST:.0f} % of the cycles. Each cell is the mean over the programs. *without* is the
        number of these functions that have no rate, because they have fewer than {FEWEST} windows:
    """
    about_halved = f"""
        For the next table, a second group with windows half as long was recorded as well. These
        show which function runs after half a window. *Simpson* combines the functions at the start,
        after half a window and after a whole window by Simpson's rule. Then it looks for the rates,
        none of them negative, that explain all windows best (lag-Simpson). It needs one more
        counter, for the leader of the second group. *one group* needs no second group: with jitter,
        the longest windows of one group are twice as long as its shortest ones. The programs are
        {', '.join(halved[0]['programs'])}, with {functions_in(halved[0])} such functions:
    """
    parts = [prose(about), "\n".join(map(bullet, READINGS)), prose(errors), table(plain)]
    parts += [prose(about_halved), table(halved)]
    return "\n\n".join([*parts, *map(prose, CONCLUSIONS)])
