# SPDX-License-Identifier: GPL-2.0
"""Measures the error of tables from operations: Arm's Statistical Profiling Extension.

The programs are those of bench/truth.py, in the machine with caches and the kernel. Each is
recorded once, with event samples as there, and with one operation in so many. The recording is read
by both, and by event samples alone. Two more measurements are of cost: that of the default recording
for a recorded program, and that of the table.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

from bench import collect, cost, truth
from bench.branches import PROGRAMS, cell
from bench.experiment import functions_of
from bench.guest import SHARE, with_truth
from bench.markdown import prose
from emulator.compare import Row, by_function, compare
from tests.harness.env import PERF

TITLE = "Tables from operations"
MODELS = tuple(truth.MODELS.values())
PERIOD = 4096
EVENTS = truth.EVENTS + f",arm_spe_0/jitter=1,event_filter=2,period={PERIOD}/u"
READINGS = {"operations": "best", "event samples": "samples"}
INTERVAL = PERIOD + 127.5  # with the mean jitter
CYCLES = 150_000  # between two samples of cycles that end a long period
RATES = {"BM/KI": "branch-misses", "CM/KI": "cache-misses", "TM/KI": "dTLB-load-misses"}
METRICS = "%I", *RATES, "CPI"
# the goals: errors to what chance makes of them; intervals without a mark; marks
CHANCE = dict.fromkeys(METRICS, 1.2) | {"CPI": 1.5}
COVERED, MARKED = 0.94, (0.1, "a tenth")
COSTS = {
    "without operations": "perf functions record -q --no-operations",
    "as by default": "perf functions record -q",
}
LONGER, SLOWER = 1.02, 1.5  # the goals: run time of a program, time of a table
RUNS = 3


def with_chance(rows: list[Row], exact: dict[Any, dict]) -> list[Row]:
    """The rows with standard errors that follow from the true counts: perf knows none of an event
    that it has not seen.
    """
    by_label = {row["label"]: row["events"] for row in exact.values()}
    total = sum(events["instructions"]["value"] for events in by_label.values())
    result = []
    for row in rows:
        counts = {name: one["value"] for name, one in by_label[row.name].items() if one}
        part, number = counts["instructions"] / total, counts["instructions"] / INTERVAL
        relative = {
            "%I": math.sqrt((1 - part) / number),
            "CPI": math.sqrt(1 / number + CYCLES / counts["cycles"]),
        }
        for metric, event in RATES.items():
            relative[metric] = math.sqrt(INTERVAL / (counts.get(event) or math.inf))
        values = {
            key: value._replace(error=value.true * relative.get(key, 0))
            for key, value in row.values.items()
        }
        result.append(Row(row.name, values))
    return result


def record(program: str, model: str) -> dict[str, Any]:
    """Records a program; returns its errors by how it is read, and the number of operations."""
    data, true = with_truth(
        truth.file_name(program, model.partition(",")[0], "operations"),
        EVENTS,
        f"sh -c '{PROGRAMS[program]} > /dev/null'",
        model,
        *("--root", f"{truth.root_of(program)}.cpio"),
        setup=truth.setup_of(program),
    )
    files = "--symfs", truth.root_of(program)
    exact = truth.exact(true, *files)
    found: dict[str, Any] = {}
    for name, source in READINGS.items():
        rows = by_function(functions_of(data, PERF, "--source", source, *files))
        compared = compare(rows, exact, truth.LEAST, METRICS + (truth.CYCLES,))
        if source == "best":
            compared = with_chance(compared, exact)
        found[name] = {"functions": len(compared), **truth.result_of(compared, METRICS)}
    numbers = [
        row["observations"].get("operations", 0)
        for row in functions_of(data, PERF, "--source", "operations", *files)
    ]
    return found | {"number": sum(numbers)}


def measure() -> dict:
    """Records the programs, two at a time."""
    jobs = [(program, model) for model in MODELS for program in PROGRAMS]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(jobs, pool.map(lambda job: record(*job), jobs)))
    times = {name: cost.run_time("python3", MODELS[0], words) for name, words in COSTS.items()}
    readers = {"table": ("functions", "report"), "report": ("report", "--itrace=i1i", "--stdio")}
    return {
        "programs": {
            model: {program: found[program, model] for program in PROGRAMS} for model in MODELS
        },
        "cost": times,
        "seconds": {
            name: min(collect.run(SHARE / "cost.data", *words)[0] for _ in range(RUNS))
            for name, words in readers.items()
        },
    }


def report(result: dict) -> str:
    """The result as Markdown."""
    longer = {name: row["times"] for name, row in result["cost"].items()}
    slower = result["seconds"]["table"] / result["seconds"]["report"]
    lines = [
        prose(
            f"""Programs of Debian are recorded in the machine with caches and the kernel, with
            `{EVENTS}`. Linux reads the operations with its own driver. The tables have errors in
            percent, of the functions with at least {truth.LEAST:.0f} % of the true cycles, and in
            brackets what the random choice of operations, or of samples, alone would make (of
            operations: from the true counts; of samples: perf's own errors). *intervals* are those
            that contain the truth, of all values of a line, if they have no mark. *operations*: CPI
            comes from samples of cycles, over operations. *event samples*: the same recording,
            read with `--source samples`."""
        ),
        "",
        prose(
            f"""python3 takes {longer['as by default']:.3f} times as long with the default recording,
            and {longer['without operations']:.3f} times without operations (goal: at most {LONGER}
            times, {'met' if longer['as by default'] <= LONGER else 'not met'}). The table of this
            recording takes {slower:.1f} times as long as `perf report --itrace=i1i` (goal: at most
            {SLOWER} times, {'met' if slower <= SLOWER else 'not met'})."""
        ),
    ]
    for model, programs in result["programs"].items():
        lines += [
            "",
            f"`MODEL={model}`:",
            "",
            f"| program | operations | read by | {' | '.join(METRICS)} | intervals |",
            f"|---|--:|---|{'--:|' * (1 + len(METRICS))}",
        ]
        for program, own in programs.items():
            for name in READINGS:
                row = own[name]
                right = sum(row[key]["right"] for key in METRICS)
                plain = sum(row[key]["values"] - row[key]["marked"] for key in METRICS)
                cells = " | ".join(cell(row[key]) for key in METRICS)
                lines.append(
                    f"| {program} | {own['number']:,} | {name} | {cells} | {right} of {plain} |"
                )
        rows = [own["operations"] for own in programs.values()]
        known = [row[key] for row, key in product(rows, METRICS) if row[key]["chance"]]
        times = sum(one["error"] / one["chance"] for one in known) / len(known)
        lines += [
            "",
            f"On average, errors of operations are {times:.2f} times those of chance; in one run,",
            "some programs have more luck than others.",
        ]
        lines += truth.table_of_goals(
            [
                *(truth.within_chance(rows, metric, times) for metric, times in CHANCE.items()),
                *truth.certainty(rows, METRICS, MARKED, COVERED),
            ]
        )
    return "\n".join(lines)
