# SPDX-License-Identifier: GPL-2.0
"""The published experiment: costs of four choices of periods, with the kernel's limit and without.

The recordings are those of the series' first posting, which were made on a Neoverse-N1. Here the
emulated machine makes them, of a shorter run. Published values stand beside measured ones. The
kernel's limit (kernel.perf_cpu_time_max_percent) is 25 % by default and cuts short periods off; it
was in force when the published sizes were measured.

Samples, bytes and run time are the emulated machine's. The cost of a table is processor time of
this machine. As the run is shorter than the published one, the start of perf and of Python is a
larger part of it: a recording of four samples measures it.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import collect, experiment
from bench.experiment import ALTERNATE, COMMANDS, FEW_SAMPLES, ITERATIONS, MEANING, PERIODS
from bench.guest import SHARE, UNTHROTTLED, recording
from bench.markdown import prose
from tests.harness.env import PERF, SCRIPT, in_guest

TITLE = "The published experiment"
PAPER = "https://lore.kernel.org/r/20250408171530.140858-1-mark.barnett@arm.com"
SIBLINGS = ["instructions", "page-faults"]
# The rate can be set only while there is a limit; the kernel lowers it when interrupts take long.
LIMITED = (
    "sysctl -qw kernel.perf_cpu_time_max_percent=25 kernel.perf_event_max_sample_rate=100000\n"
)
LIMITS = {"25 %": LIMITED, "none": LIMITED + UNTHROTTLED}


def path_of(limit: str, periods: str) -> Path:
    """The path of a recording."""
    return SHARE / f"limit {limit}, {periods}.data"


def record(limit: str, iterations: int) -> str:
    """Makes the recordings with a limit; returns the release of the kernel."""
    commands = "uname -r\n"
    for periods in PERIODS:
        terms = experiment.events(periods, SIBLINGS, iterations)
        commands += LIMITS[limit] + recording(
            path_of(limit, periods).name, terms, f"benchmark --iterations {iterations} 0 1"
        )
    return in_guest(commands, "--memory", "4G", share=SHARE, timeout=1800).strip()


def measure(iterations: int = ITERATIONS) -> dict:
    """Records with each choice and limit, in a machine for each limit; makes the tables."""
    with ThreadPoolExecutor(2) as pool:
        kernel, *_ = pool.map(lambda limit: record(limit, iterations), LIMITS)
    rows = {
        limit: {
            periods: experiment.row_of(path_of(limit, periods), PERF, SCRIPT, *collect.SYMBOLS)
            for periods in PERIODS
        }
        for limit in LIMITS
    }
    for limit, row in rows.items():
        for periods in row:
            path_of(limit, periods).unlink()
    return experiment.result_of(iterations, rows) | {
        "machine": "QEMU's virt machine",
        "kernel": kernel,
        "events": ["cycles", *SIBLINGS],
    }


def report(result: dict) -> str:
    """The result as Markdown."""
    few, alternate = (
        result["limit"]["25 %"][periods]["seconds"] for periods in (FEW_SAMPLES, ALTERNATE)
    )
    parts_of = {name: 100 * few[name] / alternate[name] for name in COMMANDS}
    start = " and ".join(f"{part:.0f} % with {MEANING[name]}" for name, part in parts_of.items())
    if max(parts_of.values()) > 100:
        start += " (more than 100 % is chance)"
    about = f"""
        Engineers at Arm proposed alternate periods in ["A mechanism for efficient support for
        per-function metrics"]({PAPER}), with measurements on a Neoverse-N1 (N1SDP). The columns
        *published* have their figures. We repeat their experiment in the emulated machine: it
        records the benchmark ({result['iterations']:,} iterations) with each choice of periods.
        Their run was some 33 times as long. The *limit* is the sysctl
        `kernel.perf_cpu_time_max_percent`, by default 25 %. The columns of
        `generate-function-metrics.py` and `perf functions report` have the processor time that
        these take for a table. The period of the recording *four samples* is so long that its table
        takes hardly more than the start of perf and Python.
    """
    after = f"""
        The goals for tables are from the long published run. Our run is short, so the start of the
        command takes most of the time for a table of the alternate recording: {start}. So the
        faster a command reads samples, the smaller is its ratio. The time for each sample does not
        depend on the length of the run.
    """
    return "\n\n".join([prose(about), experiment.report(result), prose(after)])
