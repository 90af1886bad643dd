# SPDX-License-Identifier: GPL-2.0
"""Measures shares and CPI of functions from branch records: `perf record -b`, and no window.

The programs are those of bench/truth.py, in the machine with caches and the kernel. Linux 7.3 reads
the machine's branch records with its own driver. At the end of a period no interrupt has disturbed
the program, and the records are the path before it. `perf functions report --source branches` reads
all 64 records of each sample, and copies of the recording with the last 32 and 16.

The nearest that perf has without us is the column IPC of `perf report --sort symbol` (ipc_lbr), which
takes the blocks of the same records that lie inside of a function.

A second recording has windows, samples of each event, and branch records, as by default. The
records tell in which function the event of a sample has happened. The cost of the records for a
recorded program is measured, too.
"""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import cost, truth
from bench.experiment import functions_of, table_of
from bench.guest import CROSS, SHARE, UNTHROTTLED
from bench.markdown import prose
from emulator.compare import by_function, compare
from tests.harness import branchrecords
from tests.harness.env import BASE, PERF, TOP, in_guest, must

TITLE = "Shares and CPI from branch records"
PROGRAMS = truth.PROGRAMS | truth.NESTED
MODELS = tuple(truth.MODELS.values())
EVENTS = "{cycles,instructions}:uS"
PERIOD = 49999
PATHS = f"-e '{EVENTS}' -c {PERIOD}"
# as bench/truth.py, without two members that no rate needs: the records take a counter
SAMPLED = truth.EVENTS.partition(",L1-icache")[0] + "}:uS"
SAMPLES = f"-e '{SAMPLED}'"
EVENT_SAMPLES, STOCK, QUIET = "event samples", "ipc_lbr", "quiet truth"
# perf report starts objdump for each function: programs that have few of them
FEW_FUNCTIONS = "gzip", "xz", "pigz, 4 threads", *truth.NESTED
RECORDS = 64, 32, 16
# the goals: the error of shares to what chance makes of it, that of the CPI, and marks
CHANCE, ERROR, MARKED = 1.2, 0.06, (0.1, "a tenth")
METRICS = truth.CYCLES, "CPI"
RATES = "BM/KI", "CM/KI", "TM/KI"
CHANCE_OF_RATES = 1.5
# what records cost a program: commands that record it
COSTS = {
    f"`{PATHS}`": f"perf record -q -T --sample-cpu {PATHS}",
    f"`-b {PATHS}`": f"perf record -q -T --sample-cpu -b {PATHS}",
    "as by default, but `--no-branches`": "perf functions record -q --no-branches",
    "as by default": "perf functions record -q",
}


def record(program: str, model: str, kind: str, options: str) -> tuple[Path, Path]:
    """Records a program; returns the recording and its truth."""
    SHARE.mkdir(parents=True, exist_ok=True)
    name = truth.file_name(program, model.partition(",")[0], kind)
    data, counted, true = (SHARE / f"{name}.{end}" for end in ("data", "txt", "true"))
    command = f"sh -c '{PROGRAMS[program]} > /dev/null'"
    in_guest(
        UNTHROTTLED
        + truth.setup_of(program)
        + f"cd /tmp; settle; perf record -q -b -T --sample-cpu -m 16M "
        f"-o {data.name} {options} -- {command} > record.out 2>&1 || "
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
    group = table_of(data, PERF, "--source", "branches", *files)["sets"][0]["groups"][0]
    return f"{group['window']}/{group['burst']}"


def error_of_ipc(data: Path, exact: dict, *files: object) -> dict[str, float]:
    """The error of the CPI that perf report makes of branch records, and how many of the functions
    have one.
    """
    rows = {
        row["symbol"]: [row["metrics"][key]["value"] for key in METRICS]
        for row in exact.values()
        if all(row["metrics"].get(key) for key in METRICS)
    }
    rows = {name: row for name, row in rows.items() if row[0] >= truth.LEAST and "," not in name}
    options = "--sort", "symbol", "--stdio", "-S", ",".join(rows), "--objdump", f"{CROSS}objdump"
    text = must(PERF, "report", "-i", data, *files, *options, stderr=subprocess.DEVNULL)
    found = {
        name.strip(): float(ipc)
        for name, ipc in re.findall(r"\[.\] (.+?) +([\d.]+) +\[ *[\d.]+%\]", text)
    }
    known = {name: row for name, row in rows.items() if found.get(name)}
    wrong = sum(share * abs(1 / found[name] - cpi) for name, (share, cpi) in known.items())
    whole = sum(share * cpi for share, cpi in known.values()) or 1
    return {"error": wrong / whole, "known": len(known), "functions": len(rows)}


def values(program: str, model: str) -> dict[str, Any]:
    """All errors of a program: by the number of records, and of event samples."""
    files = "--symfs", truth.root_of(program)

    def compared(found: dict, exact: dict) -> dict[str, Any]:
        rows = compare(found, exact, truth.LEAST)
        return {"functions": len(rows), **truth.result_of(rows)}

    def read(path: Path, source: str) -> dict:
        return by_function(functions_of(path, PERF, "--source", source, *files))

    data, true = record(program, model, "branches", PATHS)
    exact = truth.exact(true, *files)
    result: dict[str, Any] = {}
    for records in RECORDS:
        path = data if records == RECORDS[0] else data.with_suffix(f".{records}")
        if path != data:
            branchrecords.shorten(data, path, records)
        found = compared(read(path, "branches"), exact)
        result[str(records)] = {**found, "horizon": horizon(path, *files)}
    quiet = truth.true_functions(program, model.partition(",")[0])
    result[QUIET] = compared(read(data, "branches"), quiet)
    if program in FEW_FUNCTIONS:
        result[STOCK] = error_of_ipc(data, exact, *files)
    data, true = record(program, model, "origin", SAMPLES)
    result[EVENT_SAMPLES] = compared(read(data, "samples"), truth.exact(true, *files))
    return result


def measure() -> dict:
    """Records the programs, two at a time."""
    if BASE == "6.12":
        raise LookupError("Linux 6.12 has no driver of branch records: use BASE=7.3")
    jobs = [(program, model) for model in MODELS for program in PROGRAMS]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(jobs, pool.map(lambda job: values(*job), jobs)))
    return {
        "programs": {
            model: {program: found[program, model] for program in PROGRAMS} for model in MODELS
        },
        "cost": {
            name: cost.run_time("python3", MODELS[0], command) for name, command in COSTS.items()
        },
    }


def goals(programs: dict[str, dict], reading: str = str(RECORDS[0])) -> list[truth.Goal]:
    """The goals of 64 records."""
    rows = [row[reading] for row in programs.values()]
    return [
        truth.within_chance(rows, truth.CYCLES, CHANCE),
        truth.within(rows, "CPI", f"{100 * ERROR:.0f} %", lambda _value: ERROR),
        *truth.certainty(rows, METRICS, MARKED),
    ]


def goals_of_samples(programs: dict[str, dict]) -> list[truth.Goal]:
    """The goals of event samples with records."""
    rows = [row[EVENT_SAMPLES] for row in programs.values()]
    return [
        *(truth.within_chance(rows, metric, CHANCE_OF_RATES) for metric in RATES),
        *truth.certainty(rows, RATES, MARKED),
    ]


def cell(value: dict[str, Any]) -> str:
    """An error, and that of chance, in percent; - if there is no value."""
    if not value["error"] and value["marked"] == value["values"]:
        return "-"
    return f"{100 * value['error']:.1f} ({100 * value['chance']:.1f})"


def samples_of(programs: dict[str, dict]) -> list[str]:
    """The errors of event samples, as lines of Markdown."""
    lines = [
        "",
        "Event samples:",
        "",
        f"| program | functions | {' | '.join(RATES)} | intervals |",
        f"|---|--:|{'--:|' * (1 + len(RATES))}",
    ]
    for program, own in programs.items():
        row = own[EVENT_SAMPLES]
        right = sum(row[key]["right"] for key in RATES)
        plain = sum(row[key]["values"] - row[key]["marked"] for key in RATES)
        cells = " | ".join(cell(row[key]) for key in RATES)
        lines.append(f"| {program} | {row['functions']} | {cells} | {right} of {plain} |")
    return lines + truth.table_of_goals(goals_of_samples(programs))


def report_cost(rows: dict[str, dict[str, float]]) -> list[str]:
    """What the records cost a program, as lines of Markdown."""
    lines = [
        prose(
            f"""The records cost time and space. python3 is recorded in the machine with small
            caches, at 1 GHz. *run time* is relative to that without a recording. Goal: at most
            {cost.LONGER} times for the default recording. *cycles a sample* are those that the
            program loses, among them those of perf, which writes the recording."""
        ),
        "",
        "| recorded with | run time | samples a second | cycles a sample | MB a second | goal |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for name, row in rows.items():
        met = "met" if round(row["times"], 3) <= cost.LONGER else "not met"
        cycles = 1e9 * (1 - 1 / row["times"]) / row["samples"]
        lines.append(
            f"| {name} | {row['times']:.3f} | {row['samples']:,.0f} | {cycles:,.0f} "
            f"| {row['bytes'] / 1e6:.1f} | {met if name == 'as by default' else ''} |"
        )
    return lines


def report(result: dict) -> str:
    """The result as Markdown."""
    lines = [
        prose(
            f"""Programs of Debian are recorded in the machine with caches and the kernel, with
            `perf record -b {PATHS}`, and read by `perf functions report --source branches`. Linux
            reads the branch records with its own driver; no event alternates. The tables have
            errors in percent, of the functions with at least {truth.LEAST:.0f} % of the true
            cycles."""
        ),
        "",
        prose(
            f"""*{truth.CYCLES}* is the percentage of the cycles that went to a wrong function.
            *CPI* is the mean of |recorded - true|, weighted by cycles, relative to the true mean.
            The number in brackets is what the random choice of the samples alone would make.
            *intervals* are those that contain the truth, of all values of a line, if they have no
            mark. 32 and 16 records are the last ones of the same samples. *cycles* has how many
            cycles of a sample count, and how many lie between these and the overflow.
            *{STOCK}* is the IPC of `perf report --sort symbol`, of the 64 records: all records of a
            block count alike, and it has no interval."""
        ),
        "",
        prose(
            f"""*Event samples* are those of another recording with `-b`, of `{SAMPLED}`. It is read
            with `--source samples`: each sample counts for the function that its last branch record
            names."""
        ),
        "",
        *report_cost(result["cost"]),
    ]
    for model, programs in result["programs"].items():
        lines += [
            "",
            f"`MODEL={model}`:",
            "",
            f"| program | functions | records | cycles | {' | '.join(METRICS)} | intervals |",
            f"|---|--:|--:|--:|{'--:|' * (1 + len(METRICS))}",
        ]
        for program, own in programs.items():
            for number in RECORDS:
                row = own[str(number)]
                cells = " | ".join(cell(row[key]) for key in METRICS)
                right = sum(row[key]["right"] for key in METRICS)
                unmarked = sum(row[key]["values"] - row[key]["marked"] for key in METRICS)
                lines.append(
                    f"| {program} | {row['functions']} | {number} | {row['horizon']} | {cells} "
                    f"| {right} of {unmarked} |"
                )
            if not (row := own.get(STOCK)):
                continue
            lines.append(
                f"| {program} | {row['known']} of {row['functions']} | {STOCK} | | "
                f"| {100 * row['error']:.1f} | |"
            )
        most = {program: own[str(RECORDS[0])] for program, own in programs.items()}
        lines += [
            "",
            prose(f"Goals of {RECORDS[0]} records. {truth.nearness(most)}"),
            *truth.table_of_goals(goals(programs)),
            "",
            "The same with the quiet truth, that of a run without samples:",
            *truth.table_of_goals(goals(programs, QUIET)),
        ]
        lines += samples_of(programs)
    return "\n".join(lines)
