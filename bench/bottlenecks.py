# SPDX-License-Identifier: GPL-2.0
"""Known bottlenecks: each function of bottlenecks.c has one, which one metric must show.

They are recorded in the machine with caches (emulator/README.md), with both presets of the core
model, and compared with what it has counted. A metric stands out if it is at least FACTOR times
that of a function without bottleneck, and at least FACTOR.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.experiment import functions_of
from bench.guest import SHARE, program, with_truth
from bench.markdown import prose
from tests.harness.env import PERF, TOP

TITLE = "Known bottlenecks"
ROUNDS = 150
FACTOR = 5
WITHOUT = "compute"
MODELS = "small", "large"
GROUPS = (
    "branch-misses,cache-misses,dTLB-load-misses,L1-icache-load-misses,iTLB-load-misses",
    "l2d_cache_refill,stall_frontend,stall_backend",
)
# the metric that must stand out, and its unit: events for each 1000 instructions
BOTTLENECKS = {
    "l1d_miss": "CM/KI",
    "l2_miss": "l2d_cache_refill/KI",
    "dtlb_miss": "TM/KI",
    "store_miss": "l2d_cache_refill/KI",
    "l1i_miss": "L1-icache-load-misses/KI",
    "itlb_miss": "iTLB-load-misses/KI",
    "int_divide": "stall_backend/KI",
    "float_divide": "stall_backend/KI",
    "square_root": "stall_backend/KI",
    "barrier": "stall_frontend/KI",
    "branch_direction": "BM/KI",
    "branch_target": "BM/KI",
    "deep_return": "BM/KI",
}


def metrics(recorded: Path) -> dict[str, dict[str, float]]:
    """Returns the metrics of each function."""
    rows = functions_of(recorded, PERF, "--symfs", SHARE.parent)
    return {row["symbol"]: row["metrics"] for row in rows}


def record(model: str, rounds: int = ROUNDS) -> dict[str, dict[str, list[float]]]:
    """Returns each metric of each function: recorded, true."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in (*BOTTLENECKS, WITHOUT)}
    for number, members in enumerate(GROUPS):
        events = f"{{cycles/period=49700,alt-period=300/,instructions,{members}}}:uS"
        command = f"/share/bottlenecks {rounds}"
        recordings = with_truth(f"bottlenecks-{model}-{number}", events, command, model)
        tables = [metrics(recorded) for recorded in recordings]
        for function, values in found.items():
            for metric in tables[0][function]:
                values[metric] = [table[function][metric] for table in tables]
    return found


def stands_out(table: dict[str, dict[str, list[float]]], function: str) -> bool:
    """Returns whether the recorded metric of a function's bottleneck stands out."""
    metric = BOTTLENECKS[function]
    return table[function][metric][0] >= FACTOR * max(table[WITHOUT][metric][0], 1.0)


def measure() -> dict:
    """Records both presets."""
    program(TOP / "tests/emulator/bottlenecks.c")
    with ThreadPoolExecutor() as pool:
        return dict(zip(MODELS, pool.map(record, MODELS)))


def report(result: dict) -> str:
    """The result as Markdown."""
    lines = [
        prose(
            f"""Each function of a test program has one bottleneck, which one metric must show: the
            metric must be at least {FACTOR} times that of a function without a bottleneck. If it is
            not, the last column says so. *recorded* is the value in the table, and *true* is the
            count of the core model, for both presets of the model."""
        ),
        "",
        "| function | metric |" + "".join(f" {model}: recorded | true | |" for model in MODELS),
        f"|---|---|{'--:|--:|---|' * len(MODELS)}",
    ]
    for function, metric in BOTTLENECKS.items():
        cells = [function, metric]
        for model in MODELS:
            recorded, true = result[model][function][metric]
            out = "" if stands_out(result[model], function) else "does not stand out"
            cells += [f"{recorded:.1f}", f"{true:.1f}", out]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
