# SPDX-License-Identifier: GPL-2.0
"""Measures the cost of the core model: the demo's recording with and without it.

The cost is the processor time of this computer, including the start of the machine: the least of
several runs that take turns. A modelled program takes about three times as many cycles. So its
period is three times as long, and all recordings have about as many samples.
"""

from bench.experiment import processor_time
from bench.guest import SHARE, UNTHROTTLED, recording
from bench.markdown import prose
from tests.harness.env import TOP, machine

TITLE = "Cost of the core model"
RUNS = 3
PLAIN = "none"
# the most that a recording with a model may take, relative to the plain machine
GOALS = {
    PLAIN: None,
    "small": 2.0,
    "small,kernel=on": 3.0,
    "large": 2.0,
    "large,kernel=on": 3.0,
}


def record(model: str) -> float:
    """Seconds of processor time that a recording takes."""
    period = 99700 if model == PLAIN else 299700
    events = f"{{cycles/period={period},alt-period=300/,instructions}}:uS"
    command = recording("model.data", events, machine("arm64", "model_workload"))
    truth = () if model == PLAIN else ("--truth", SHARE / "model.txt")
    return processor_time(
        *(TOP / "scripts/vm.py", "--arch", "arm64", "--share", SHARE, "--model", model, *truth),
        f"set -e\n{UNTHROTTLED}{command}",
    )


def measure() -> dict[str, float]:
    """Seconds of each model."""
    SHARE.mkdir(parents=True, exist_ok=True)
    seconds: dict[str, list[float]] = {model: [] for model in GOALS}
    for _ in range(RUNS):
        for model, found in seconds.items():
            found.append(record(model))
    return {model: min(found) for model, found in seconds.items()}


def report(result: dict[str, float]) -> str:
    """The result as Markdown."""
    lines = [
        prose(
            """Processor time of a recording of the benchmark, the start of the machine included.
            The machines with a model also write the truth. *ratio* compares with the machine
            without a model (`none`)."""
        ),
        "",
        "| MODEL | seconds | ratio | goal | |",
        "|---|--:|--:|--:|---|",
    ]
    for model, goal in GOALS.items():
        ratio = result[model] / result[PLAIN]
        cells = [model, f"{result[model]:.1f}", f"{ratio:.2f}", "", ""]
        if goal:
            cells[3:] = [f"≤ {goal:.0f}", "met" if ratio <= goal else "not met"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
