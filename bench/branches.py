# SPDX-License-Identifier: GPL-2.0
"""Measures shares and CPI of functions from branch records: `perf record -b`, and no window.

The programs are those of bench/truth.py, in the machine with caches and the kernel. Linux 7.3 reads
the machine's branch records with its own driver. At the end of a period no interrupt has disturbed
the program, and the records are the path before it. `perf functions report --source branches` reads
all 64 records of each sample, and copies of the recording with the last 32 and 16.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

from bench import truth
from bench.experiment import functions_of
from bench.guest import SHARE, UNTHROTTLED
from bench.markdown import prose
from emulator.compare import by_function, compare
from tests.harness import branchrecords
from tests.harness.env import BASE, PERF, TOP, in_guest, must

TITLE = "Shares and CPI from branch records"
PROGRAMS = truth.PROGRAMS | truth.NESTED
MODELS = "small,kernel=on", "large,kernel=on"
EVENTS = "{cycles,instructions}:uS"
PERIOD = 49999
RECORDS = 64, 32, 16
# the goals: the error of shares to what chance makes of it, that of the CPI, marks, and intervals
CHANCE, ERROR, MARKED, COVERED = 1.2, 0.06, 0.1, 0.93
METRICS = truth.CYCLES, "CPI"


def record(program: str, model: str) -> tuple[Path, Path]:
    """Records a program; returns the recording and its truth."""
    SHARE.mkdir(parents=True, exist_ok=True)
    name = truth.file_name(program, model.partition(",")[0], "branches")
    data, counted, true = (SHARE / f"{name}.{end}" for end in ("data", "txt", "true"))
    command = f"sh -c '{PROGRAMS[program]} > /dev/null'"
    in_guest(
        UNTHROTTLED
        + truth.setup_of(program)
        + f"cd /tmp; settle; perf record -q -b -T --sample-cpu -m 16M "
        f"-o {data.name} -e '{EVENTS}' -c {PERIOD} -- {command} > record.out 2>&1 || "
        f"{{ cat record.out; exit 1; }}\nmv {data.name} /share\n",
        *("--model", model, "--truth", counted, "--root", f"{truth.root_of(program)}.cpio"),
        share=SHARE,
        timeout=1200,
    )
    must(TOP / "emulator/truth.py", data, counted, true)
    counted.unlink()
    return data, true


def horizon(data: Path, *files: object) -> str:
    """The cycles that count, and those between them and the overflow."""
    table = json.loads(
        must(
            *(PERF, "functions", "report", "--source", "branches", "-j", data),
            *files,
            stderr=subprocess.DEVNULL,
        )
    )
    group = table["groups"][0]
    return f"{group['alternative_sample_period']}/{group['alternative_sample_count']}"


def values(program: str, data: Path, true: Path) -> dict[str, Any]:
    """All errors of a recording, by the number of records."""
    files = "--symfs", truth.root_of(program)
    exact = by_function(functions_of(true, PERF, "--source", "windows", "--share", "none", *files))

    def read(path: Path, source: str) -> dict[str, Any]:
        found = by_function(functions_of(path, PERF, "--source", source, *files))
        rows = compare(found, exact, truth.LEAST)
        return {"functions": len(rows), **truth.result_of(rows)}

    result: dict[str, Any] = {}
    for records in RECORDS:
        path = data if records == RECORDS[0] else data.with_suffix(f".{records}")
        if path != data:
            branchrecords.shorten(data, path, records)
        result[str(records)] = {**read(path, "branches"), "horizon": horizon(path, *files)}
    return result


def measure() -> dict:
    """Records the programs, one after the other."""
    if BASE == "6.12":
        raise LookupError("Linux 6.12 has no driver of branch records: use BASE=7.3")
    return {
        model: {program: values(program, *record(program, model)) for program in PROGRAMS}
        for model in MODELS
    }


def goals(programs: dict[str, dict]) -> list[tuple[str, str, bool]]:
    """Returns the goals of 64 records, the results, and whether they are met."""
    rows = [row[str(RECORDS[0])] for row in programs.values()]
    shares = sum(row[truth.CYCLES]["error"] <= CHANCE * row[truth.CYCLES]["chance"] for row in rows)
    rates = sum(row["CPI"]["error"] <= ERROR for row in rows)
    number, marked, right = (
        sum(row[metric][key] for row in rows for metric in METRICS)
        for key in ("values", "marked", "right")
    )
    return [
        (
            f"error of {truth.CYCLES} at most {CHANCE} times the error of chance",
            f"{shares} of {len(rows)} programs",
            shares == len(rows),
        ),
        (
            f"error of CPI at most {100 * ERROR:.0f} %",
            f"{rates} of {len(rows)} programs",
            rates == len(rows),
        ),
        (
            f"at least {100 * COVERED:.0f} % of the intervals without a mark contain the truth",
            f"{right} of {number - marked}",
            right >= COVERED * (number - marked),
        ),
        (
            "at most a tenth of the values are marked or missing",
            f"{marked} of {number}",
            marked <= MARKED * number,
        ),
    ]


def report(result: dict) -> str:
    """The result as Markdown."""
    lines = [
        prose(
            f"""Programs of Debian are recorded in the machine with caches and the kernel, with
            `perf record -b -e '{EVENTS}' -c {PERIOD}`, and read by
            `perf functions report --source branches`. Linux reads the branch records with its own
            driver; no event alternates. The tables have errors in percent, of the functions with
            at least {truth.LEAST:.0f} % of the true cycles."""
        ),
        "",
        prose(
            f"""*{truth.CYCLES}* is the percentage of the cycles that went to a wrong function.
            *CPI* is the mean of |recorded - true|, weighted by cycles, relative to the true mean.
            The number in brackets is what the random choice of the samples alone would make.
            *intervals* are those that contain the truth, of both values, if they have no mark.
            32 and 16 records are the last ones of the same samples. *cycles* are those that count,
            and those between them and the overflow."""
        ),
    ]
    for model, programs in result.items():
        lines += [
            "",
            f"`MODEL={model}`:",
            "",
            f"| program | functions | records | cycles | {' | '.join(METRICS)} | intervals |",
            f"|---|--:|--:|--:|{'--:|' * (1 + len(METRICS))}",
        ]
        for program, own in programs.items():
            for records in RECORDS:
                row = own[str(records)]
                cells = [
                    f"{100 * row[key]['error']:.1f} ({100 * row[key]['chance']:.1f})"
                    for key in METRICS
                ]
                right = sum(row[key]["right"] for key in METRICS)
                plain = sum(row[key]["values"] - row[key]["marked"] for key in METRICS)
                lines.append(
                    f"| {program} | {row['functions']} | {records} | {row['horizon']} "
                    f"| {' | '.join(cells)} | {right} of {plain} |"
                )
        lines += ["", f"Goals, {RECORDS[0]} records:", "", "| goal | found | |", "|---|---|---|"]
        lines += [
            f"| {goal} | {found} | {'met' if is_met else 'not met'} |"
            for goal, found, is_met in goals(programs)
        ]
    return "\n".join(lines)
