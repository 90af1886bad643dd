# SPDX-License-Identifier: GPL-2.0
"""Measures shares and CPI of functions from branch records: `perf record -b`, and no window.

The programs are those of bench/truth.py, in the machine with caches and the kernel. Linux 7.3 reads
the machine's branch records with its own driver. At the end of a period no interrupt has disturbed
the program, and the records are the path before it: from one record's target to the next one's
source, each part with its cycles and instructions.

Only the cycles from `guard` to `guard + horizon` before the last record count. A fixed time is what
makes it fair: a fixed number of records would look farther back where code is slow. The horizon is
the one that REACHED of the samples have, or HORIZON.
"""

import math
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from bench import truth
from bench.guest import SHARE, UNTHROTTLED
from bench.markdown import prose
from tests.harness import perfdata
from tests.harness.env import BASE, PERF, TOP, in_guest, must

TITLE = "Shares and CPI from branch records"
PROGRAMS = "gzip", "xz", "sqlite3", "python3", "perl"
MODELS = "small,kernel=on", "large,kernel=on"
EVENTS = "{cycles,instructions}:uS"
PERIOD = 49999
# records that a sample keeps, and the cycles before the last one that are left out
GUARDS = {64: 100, 32: 50, 16: 50}
HORIZON = 200
REACHED = 0.99
LONGEST = 5000  # instructions from one branch to the next

Sums = dict[str, list[float]]  # cycles and instructions of each function
Shares = dict[str, float]


def record(program: str, model: str) -> tuple[Path, Path]:
    """Records a program; returns the recording and its truth."""
    SHARE.mkdir(parents=True, exist_ok=True)
    name = f"branches-{program}-{model.partition(',')[0]}"
    data, counted, true = (SHARE / f"{name}.{end}" for end in ("data", "txt", "true"))
    command = f"sh -c '{truth.PROGRAMS[program]} > /dev/null'"
    in_guest(
        UNTHROTTLED + truth.PREPARE + f"cd /tmp; settle; perf record -q -b -T --sample-cpu -m 16M "
        f"-o {data.name} -e '{EVENTS}' -c {PERIOD} -- {command} > record.out 2>&1 || "
        f"{{ cat record.out; exit 1; }}\nmv {data.name} /share\n",
        *("--model", model, "--truth", counted, "--root", f"{truth.ROOT}.cpio"),
        share=SHARE,
        timeout=1200,
    )
    must(TOP / "emulator/truth.py", data, counted, true)
    counted.unlink()
    return data, true


def symbols(true: Path) -> dict[int, str]:
    """The function of each executed address: the truth has a sample for every one."""
    text = must(
        *(PERF, "script", "-i", true, "--symfs", truth.ROOT, "-F", "ip,sym,dso", "-G"),
        stderr=subprocess.DEVNULL,
    )
    rows = (line.split(maxsplit=1) for line in text.splitlines())
    return {int(row[0], 16): row[1] for row in rows if len(row) == 2}


def true_sums(true: Path, symbol: dict[int, str]) -> Sums:
    """What the model has counted."""
    contents = perfdata.read(true)
    ids = [attr.ids for attr in contents.attrs]
    sums: Sums = defaultdict(lambda: [0.0, 0.0])
    last: dict[int, list[int]] = {}
    for sample in sorted(contents.samples, key=lambda sample: sample.time):
        counts = [
            next(sample.values[key] for key in event if key in sample.values) for event in ids
        ]
        if sample.ip:
            before = last.get(sample.tid, [0, 0])
            for at in range(2):
                sums[symbol.get(sample.ip, "")][at] += counts[at] - before[at]
        last[sample.tid] = counts
    return sums


def path(sample: perfdata.Sample, records: int) -> Iterator[tuple[int, int, int]]:
    """Address, cycles and instructions of each part, the newest one first."""
    branches = sample.branches[:records]
    for branch, before in zip(branches, branches[1:]):
        n = (branch.source - before.target) // 4 + 1
        # unknown cycles: there was an interrupt
        if not branch.cycles or not 0 < n < LONGEST:
            return
        yield before.target, branch.cycles, n


def recorded_sums(
    samples: list[perfdata.Sample], symbol: dict[int, str], records: int
) -> tuple[Sums, int, int]:
    """The sums between guard and horizon, the horizon, and how many samples have it."""
    guard = GUARDS[records]
    paths = [list(path(sample, records)) for sample in samples]
    reach = sorted(sum(part[1] for part in parts) for parts in paths if len(parts) == records - 1)
    horizon = min(HORIZON, reach[int((1 - REACHED) * len(reach))] - guard) if reach else 0
    sums: Sums = defaultdict(lambda: [0.0, 0.0])
    used = 0
    for parts in paths:
        if horizon <= 0 or sum(part[1] for part in parts) < guard + horizon:
            continue
        used += 1
        skip, left = guard, horizon
        for address, cycles, instructions in parts:
            counted = min(max(cycles - skip, 0), left)
            skip, left = max(skip - cycles, 0), left - counted
            row = sums[symbol.get(address, "")]
            row[0] += counted
            row[1] += instructions * counted / cycles
    return sums, horizon, used


def large(true: Sums) -> list[str]:
    """The functions that are compared."""
    total = sum(row[0] for row in true.values())
    return [name for name, row in true.items() if row[0] * 100 >= truth.LEAST * total]


def cpi_error(found: Sums, true: Sums) -> tuple[float, int]:
    """The error as in bench/truth.py, and how many functions have no value."""
    names = large(true)
    known = [name for name in names if found[name][1] > 0]
    cpi = {name: true[name][0] / true[name][1] for name in known}
    wrong = sum(true[name][0] * abs(found[name][0] / found[name][1] - cpi[name]) for name in known)
    total = sum(true[name][0] * cpi[name] for name in known)
    return wrong / total if total else math.nan, len(names) - len(known)


def share_errors(samples: list[perfdata.Sample], symbol: dict[int, str], true: Sums) -> Shares:
    """The shares of samples: of their last record's target, of their own address; and chance."""
    total = sum(row[0] for row in true.values())
    shares = {name: true[name][0] / total for name in large(true)}
    places = {
        "record": [sample.branches[0].target for sample in samples if sample.branches],
        "address": [sample.ip for sample in samples],
    }
    result = {}
    for key, addresses in places.items():
        counts = Counter(symbol.get(address, "") for address in addresses)
        wrong = (abs(counts[name] / len(addresses) - share) for name, share in shares.items())
        result[key] = sum(wrong) / 2
    # the mean of |x - p| is sqrt(2 / pi) standard errors
    chance = (math.sqrt(share * (1 - share) / len(samples)) for share in shares.values())
    return {**result, "by chance": math.sqrt(2 / math.pi) * sum(chance) / 2}


def values(data: Path, true: Path) -> dict:
    """All errors of a recording."""
    symbol, samples = symbols(true), perfdata.read(data).samples
    counts = true_sums(true, symbol)
    result: dict = {"samples": len(samples), "functions": len(large(counts))}
    result[truth.CYCLES] = share_errors(samples, symbol, counts)
    for records in GUARDS:
        sums, horizon, used = recorded_sums(samples, symbol, records)
        error, without = cpi_error(sums, counts)
        result[str(records)] = {
            "horizon": horizon,
            "used": used,
            "CPI": error,
            "without": without,
        }
    return result


def measure() -> dict:
    """Records the programs, one after the other."""
    if BASE == "6.12":
        raise LookupError("Linux 6.12 has no driver of branch records: use BASE=7.3")
    return {
        model: {program: values(*record(program, model)) for program in PROGRAMS}
        for model in MODELS
    }


def report(result: dict) -> str:
    """The result as Markdown."""
    lines = [
        prose(
            f"""Programs of Debian are recorded in the machine with caches and the kernel, with
            `perf record -b -e '{EVENTS}' -c {PERIOD}`. Linux reads the branch records with its own
            driver; no event alternates. The tables have errors in percent, of the functions with
            at least {truth.LEAST:.0f} % of the true cycles."""
        ),
        "",
        prose(
            f"""*{truth.CYCLES}* is the percentage of the cycles that went to a wrong function: if
            a sample counts for the function of its last record's target, and for that of its
            address. *chance* is what the random choice of the samples alone would make."""
        ),
        "",
        prose(
            """*CPI* is the mean of |recorded - true|, weighted by cycles, relative to the true
            mean. It comes from the cycles between guard and horizon before the last record, of all
            64 records, of the last 32, and of the last 16. In brackets: the horizon, which nearly
            all samples reach, and how many functions have no value."""
        ),
    ]
    for model, programs in result.items():
        columns = [f"CPI, {records} records" for records in GUARDS]
        lines += [
            "",
            f"`MODEL={model}`:",
            "",
            f"| program | samples | functions | {truth.CYCLES}: record | address | chance "
            f"| {' | '.join(columns)} |",
            f"|---|--:|--:|--:|--:|--:|{'--:|' * len(columns)}",
        ]
        for program, row in programs.items():
            shares = row[truth.CYCLES]
            cells = [f"{100 * shares[key]:.1f}" for key in ("record", "address", "by chance")]
            cells += [
                f"{100 * row[str(records)]['CPI']:.1f} ({row[str(records)]['horizon']}, "
                f"{row[str(records)]['without']})"
                for records in GUARDS
            ]
            lines.append(
                f"| {program} | {row['samples']} | {row['functions']} | {' | '.join(cells)} |"
            )
    return "\n".join(lines)
