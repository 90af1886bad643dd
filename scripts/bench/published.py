# SPDX-License-Identifier: GPL-2.0
"""The published experiment: what four choices of periods cost, with and without the kernel's limit of samples.

The recordings are those of the series' first posting, where they were made on a
Neoverse-N1; here they are made in the emulated machine, of a shorter run. What is
published is beside what is measured. The kernel's limit (kernel.perf_cpu_time_max_percent)
is 25 % by default and cuts short periods off; it was in force when the published sizes
were measured.

Samples, bytes and run time are the emulated machine's. What a table takes is processor time
of this machine. As the run is shorter than the published one, the start of
perf and of Python is a larger part of it: it is measured by a recording of four samples.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

import collect
from env import in_guest
from guest import OUT, SHARE, UNTHROTTLED, Records, recording, records

TITLE = "The published experiment"
PLOT = OUT / "published.svg"
ITERATIONS = 16500
EVENTS = "{{cycles/{}/,instructions,page-faults}}:uS"
LONG, SHORT, ALTERNATE = "period=1000000", "period=300", "period=999700,alt-period=300"
FEW_SAMPLES = "four samples"
PERIODS = FEW_SAMPLES, LONG, "period=1000", SHORT, ALTERNATE
# The rate can be set while there is a limit only; the kernel lowers it by itself when interrupts take long.
LIMITED = "sysctl -qw kernel.perf_cpu_time_max_percent=25 kernel.perf_event_max_sample_rate=100000\n"
LIMITS = {"25 %": LIMITED, "none": LIMITED + UNTHROTTLED}
COMMANDS = "native", "script"
RUNS = 2
# perf.data in MB, samples, seconds of the script
PUBLISHED = {LONG: (2.601, 55_780, 0.362), "period=1000": (283.749, 6_162_932, 33.100),
             SHORT: (304.281, 6_614_182, 35.826), ALTERNATE: (4.923, 107_512, 0.578)}
# what a goal is about: the least or the most it may be, whether it is the most, what was published
GOALS = {"file, 25 %": (62, False, 61.8), "file, none": (1000, False, None), "run time": (1.02, True, 1.2),
         "script, 25 %": (60, False, 62.0), "script, none": (60, False, None),
         "native, 25 %": (60, False, None), "native, none": (60, False, None)}
MEANING = {"file": "`perf.data`", "script": "`generate-function-metrics.py`", "native": "`perf functions report`"}


def path_of(limit: str, periods: str) -> Path:
    """A recording."""
    return SHARE / f"limit {limit}, {periods}.data"


def record(limit: str, iterations: int) -> None:
    """Makes the recordings with a limit."""
    commands = ""
    for periods in PERIODS:
        terms = EVENTS.format(periods.replace(FEW_SAMPLES, f"period={12000 * iterations}"))
        commands += LIMITS[limit] + recording(path_of(limit, periods).name, terms, f"benchmark --iterations {iterations} 0 1")
    in_guest(commands, "--memory", "4G", share=SHARE, timeout=1800)


def row_of(path: Path) -> dict[str, Any]:
    """What a recording is and what a table of it takes, the best of several runs."""
    found: Records = records(path)
    seconds = {name: min(collect.run(path, *collect.COMMANDS[name])[0] for _ in range(RUNS)) for name in COMMANDS}
    return {"bytes": path.stat().st_size, **found._asdict(), "seconds": seconds}


def ratios(rows: dict[str, dict[str, dict]]) -> dict[str, float]:
    """What the goals are about."""
    found = {"run time": max(row[ALTERNATE]["run_time"] / row[LONG]["run_time"] for row in rows.values())}
    for limit, row in rows.items():
        found[f"file, {limit}"] = row[SHORT]["bytes"] / row[ALTERNATE]["bytes"]
        found[f"samples, {limit}"] = row[SHORT]["samples"] / row[ALTERNATE]["samples"]
        for name in COMMANDS:
            found[f"{name}, {limit}"] = row[SHORT]["seconds"][name] / row[ALTERNATE]["seconds"][name]
    return found


def measure(iterations: int = ITERATIONS) -> dict:
    """Records with each choice and limit, in a machine for each limit; makes the tables."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda limit: record(limit, iterations), LIMITS))
    rows = {limit: {periods: row_of(path_of(limit, periods)) for periods in PERIODS} for limit in LIMITS}
    for limit, row in rows.items():
        for periods in row:
            path_of(limit, periods).unlink()
    found = ratios(rows)
    met = {name: found[name] <= goal if most else found[name] >= goal for name, (goal, most, _) in GOALS.items()}
    result = {"iterations": iterations, "limit": rows, "ratios": found, "met": met}
    plot(result)
    return result


def plot(result: dict) -> None:
    """Bytes and run time of each recording, as SVG whose text is text."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "published"}):
        figure = Figure(figsize=(9, 4), layout="constrained")
        axes = figure.subplots(1, 2)
        for (limit, rows), shift in zip(result["limit"].items(), (-0.2, 0.2)):
            places = [place + shift for place in range(1, len(PERIODS))]
            axes[0].bar(places, [rows[periods]["bytes"] / 1e6 for periods in PERIODS[1:]], 0.4, label=f"limit: {limit}")
            axes[1].bar(places, [rows[periods]["run_time"] / rows[FEW_SAMPLES]["run_time"] for periods in PERIODS[1:]], 0.4)
        axes[0].set(yscale="log", ylabel="perf.data, MB")
        axes[1].set(yscale="log", ylabel="run time, to that with four samples")
        for each in axes:
            each.set_xticks(range(1, len(PERIODS)), [periods.removeprefix("period=").replace(",", "\n") for periods in PERIODS[1:]])
        axes[0].legend()
        OUT.mkdir(parents=True, exist_ok=True)
        figure.savefig(PLOT, metadata={"Date": None})


def report(result: dict) -> str:    # pylint: disable=too-many-locals
    """The result as Markdown."""
    lines = ["| limit | recording | MB | samples | run time, s | script, s | native, s | published: MB | samples | script, s |",
             "|--:|---|" + "--:|" * 8]
    for limit, rows in result["limit"].items():
        for periods, row in rows.items():
            cells = [f"{row['bytes'] / 1e6:.3f}", f"{row['samples']:,}", f"{row['run_time']:.3f}",
                     *(f"{row['seconds'][name]:.3f}" for name in ("script", "native"))]
            theirs = PUBLISHED.get(periods) if limit == "25 %" else None
            cells += [f"{theirs[0]:.3f}", f"{theirs[1]:,}", f"{theirs[2]:.3f}"] if theirs else [""] * 3
            lines.append(f"| {limit} | {periods} | {' | '.join(cells)} |")
    lines += ["", "| ratio | goal | published | measured | | of samples |", "|---|--:|--:|--:|---|--:|"]
    for name, (goal, most, theirs) in GOALS.items():
        what, _, limit = name.partition(", ")
        text = f"{MEANING[what]}, limit {limit}: period=300 to alternate" if limit else "run time: alternate to period=1000000"
        samples = f"{result['ratios'][f'samples, {limit}']:.1f}" if limit else ""
        digits = 4 if most else 1
        lines.append(f"| {text} | {'≤' if most else '≥'} {goal} | {theirs or ''} | {result['ratios'][name]:.{digits}f} | "
                     f"{'met' if result['met'][name] else 'not met'} | {samples} |")
    few, alternate = (result["limit"]["25 %"][periods]["seconds"] for periods in (FEW_SAMPLES, ALTERNATE))
    start = ", ".join(f"{100 * few[name] / alternate[name]:.0f} % of {MEANING[name]}" for name in COMMANDS)
    lines += ["", f"A run of {result['iterations']:,} iterations. Samples, bytes and run time are those of the emulated machine; without a "
              "limit the samples are the same in each run, the rest to a percent. Seconds of the script and of the native "
              "command are processor time of this machine. The alternate recording is so short that starting up is most of what its table "
              f"takes ({start}); a run as long as the published one comes to the ratio of the samples, as the time for each is the same. "
              f"Samples lost: {sum(row['lost'] for rows in result['limit'].values() for row in rows.values())}."]
    return "\n".join(lines)
