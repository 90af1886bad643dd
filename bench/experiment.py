# SPDX-License-Identifier: GPL-2.0
"""The published experiment: one program, recorded with a long, a short, and both periods.

This module has the options of a recording, its reader, and the comparison, for emulated and for
real machines. It needs nothing but Python.
"""

import json
import os
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

# The recordings whose sizes were published had no call chains; their group was
# {cycles,instructions}.
OPTIONS = "-T", "--sample-cpu"
# the events of the published table, of a Neoverse-N1
SIBLINGS = ["instructions", "branch-misses", "cache-references", "cache-misses"]
ITERATIONS = 16500
LONG, SHORT, ALTERNATE = "period=1000000", "period=300", "period=999700,alt-period=300"
FEW_SAMPLES = "four samples"
PERIODS = FEW_SAMPLES, LONG, "period=1000", SHORT, ALTERNATE
COMMANDS = "native", "script"
RUNS = 2
# Size of perf.data in MB, samples, seconds of the script. A sample of the group counts twice,
# once for each of its two events.
PUBLISHED = {
    LONG: (2.601, 55_780, 0.362),
    "period=1000": (283.749, 6_162_932, 33.100),
    SHORT: (304.281, 6_614_182, 35.826),
    ALTERNATE: (4.923, 107_512, 0.578),
}
# the limit of each goal, whether it is an upper limit, the published value
GOALS = {
    "file, 25 %": (62, False, 61.8),
    "file, none": (1000, False, None),
    "run time": (1.02, True, 1.2),
    "script, 25 %": (60, False, 62.0),
    "script, none": (60, False, None),
    "native, 25 %": (60, False, None),
    "native, none": (60, False, None),
}
MEANING = {
    "file": "`perf.data`",
    "script": "`generate-function-metrics.py`",
    "native": "`perf functions report`",
}

RECORDS = struct.Struct("<IHH")  # type, misc, size
WORD = struct.Struct("<Q")
LOST, COMM, EXIT, THROTTLE, SAMPLE, AUXTRACE = 2, 3, 4, 5, 9, 71
COMM_EXEC = 1 << 13


class Records(NamedTuple):
    """The records of a recording."""

    samples: int  # of groups
    throttled: int
    lost: int  # samples
    run_time: float  # of the program, in seconds: from its exec to the last exit


def events(periods: str, siblings: list[str], iterations: int) -> str:
    """The group of a recording of `iterations` iterations, for perf record -e."""
    periods = periods.replace(FEW_SAMPLES, f"period={12000 * iterations}")
    return f"{{{','.join((f'cycles/{periods}/', *siblings))}}}:uS"


def records(path: Path) -> Records:
    """Reads a recording, whose samples have a time, a CPU and an identifier."""
    data = path.read_bytes()
    at, size = struct.unpack_from("<QQ", data, 40)
    end, counts, lost, begun, ended = at + size, dict.fromkeys(range(256), 0), 0, 0, 0
    while at < end:
        kind, misc, length = RECORDS.unpack_from(data, at)
        counts[kind] += 1
        at += length
        if kind == AUXTRACE:  # its data follow
            at += WORD.unpack_from(data, at - length + 8)[0]
        # a record that is no sample ends with the time, the CPU and the identifier
        if kind == COMM and misc & COMM_EXEC:
            begun = begun or WORD.unpack_from(data, at - 24)[0]
        elif kind == EXIT:
            ended = max(ended, WORD.unpack_from(data, at - 24)[0])
        elif kind == LOST:
            lost += WORD.unpack_from(data, at - length + 16)[0]
    return Records(counts[SAMPLE], counts[THROTTLE], lost, (ended - begun) / 1e9)


def processor_time(*command: object) -> float:
    """Seconds of processor time that a command takes.

    Raises AssertionError with the command's messages when it fails.
    """
    words = [str(word) for word in command]
    with tempfile.TemporaryFile("w+", errors="replace") as said, subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
    ) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise AssertionError(
                f"{' '.join(words)}: exit status {child.returncode}\n{said.read()[-2000:]}"
            )
    return usage.ru_utime + usage.ru_stime


def row_of(path: Path, perf: Path, script: Path, *symbols: object) -> dict[str, Any]:
    """A recording's size and counts, and the seconds that each command needs for its table.

    The seconds are the best of several runs. symbols are perf's options that say where symbols are.
    """
    commands = {
        "native": (perf, "functions", "report", *symbols, "-i", path),
        "script": (perf, "script", *symbols, "-i", path, "-s", script),
    }
    return {
        "bytes": path.stat().st_size,
        **records(path)._asdict(),
        "seconds": {
            name: min(processor_time(*command) for _ in range(RUNS))
            for name, command in commands.items()
        },
    }


def table_of(path: Path, perf: Path | str, *options: object) -> dict[str, Any]:
    """What `perf functions report --json` says of a recording. Raises CalledProcessError."""
    words = perf, "functions", "report", "--json", *options, path
    command = [str(word) for word in words]
    return json.loads(
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    )


def functions_of(path: Path, perf: Path | str, *options: object) -> list[dict]:
    """The functions of a recording's table. Raises CalledProcessError."""
    return table_of(path, perf, *options)["functions"]


def value_of(row: dict, column: str) -> float | None:
    """A value of a function, None if it has none."""
    found = row["metrics"].get(column)
    return found["value"] if found else None


def ratios(rows: dict[str, dict[str, dict]]) -> dict[str, float]:
    """Returns the ratios that have goals."""
    found = {
        "run time": max(row[ALTERNATE]["run_time"] / row[LONG]["run_time"] for row in rows.values())
    }
    for limit, row in rows.items():
        found[f"file, {limit}"] = row[SHORT]["bytes"] / row[ALTERNATE]["bytes"]
        found[f"samples, {limit}"] = row[SHORT]["samples"] / row[ALTERNATE]["samples"]
        for name in COMMANDS:
            found[f"{name}, {limit}"] = (
                row[SHORT]["seconds"][name] / row[ALTERNATE]["seconds"][name]
            )
    return found


def result_of(iterations: int, rows: dict[str, dict[str, dict]]) -> dict[str, Any]:
    """The result as results.json has it, from the rows by limit and recording."""
    found = ratios(rows)
    met = {
        name: found[name] <= goal if most else found[name] >= goal
        for name, (goal, most, _) in GOALS.items()
        if name in found
    }
    return {"iterations": iterations, "limit": rows, "ratios": found, "met": met}


def report(result: dict) -> str:  # pylint: disable=too-many-locals
    """The tables of a result, as Markdown."""
    lines = [
        f"| limit | recording | MB | samples | run time, s | {MEANING['script']}, s "
        f"| {MEANING['native']}, s | published: MB | samples | {MEANING['script']}, s |",
        "|--:|---|" + "--:|" * 8,
    ]
    for limit, rows in result["limit"].items():
        for periods, row in rows.items():
            cells = [
                f"{row['bytes'] / 1e6:.3f}",
                f"{row['samples']:,}",
                f"{row['run_time']:.3f}",
                *(f"{row['seconds'][name]:.3f}" for name in ("script", "native")),
            ]
            theirs = PUBLISHED.get(periods) if limit == "25 %" else None
            cells += (
                [f"{theirs[0]:.3f}", f"{theirs[1]:,}", f"{theirs[2]:.3f}"] if theirs else [""] * 3
            )
            lines.append(f"| {limit} | {periods} | {' | '.join(cells)} |")
    lines += [
        "",
        "| ratio | goal | published | measured | | ratio of samples |",
        "|---|--:|--:|--:|---|--:|",
    ]
    for name in result["met"]:
        goal, most, ratio = GOALS[name]
        what, _, limit = name.partition(", ")
        text = (
            f"{'size' if what == 'file' else 'time'} of {MEANING[what]}, limit {limit}: period=300 "
            "to alternate periods"
            if limit
            else "run time: alternate periods to period=1000000"
        )
        samples = f"{result['ratios'][f'samples, {limit}']:.1f}" if limit else ""
        digits = 4 if most else 1
        lines.append(
            f"| {text} | {'≤' if most else '≥'} {goal} | {ratio or ''} | "
            f"{result['ratios'][name]:.{digits}f} | {'met' if result['met'][name] else 'not met'} "
            f"| {samples} |"
        )
    lost = sum(row["lost"] for rows in result["limit"].values() for row in rows.values())
    return "\n".join(
        [
            *lines,
            "",
            f"Samples lost: {lost}. The published numbers of samples count both events of a group.",
        ]
    )
