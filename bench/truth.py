# SPDX-License-Identifier: GPL-2.0
"""Measures the error of the table for programs from Debian.

The programs are Debian's, for arm64, and run in the machine with caches (emulator/README.md), whose
core model counts what each of their functions really does. The benchmark's nested calls are
measured beside them. Each program is recorded twice: with a core of its own in which the kernel
leaves no traces, and with everything modelled, so that the interrupts of the recording itself
disturb caches and predictors, as they do on hardware. Each recording is read twice, the second time
with --correct.

All functions that have at least 1 % of the true cycles are compared:

  error     the mean of |recorded - true|, weighted by cycles, relative to that of the truth;
            for %CY half the sum of the differences, the cycles that the table gives to a
            wrong function
  chance    what this half sum would be if only the draw of the samples made it
  interval  how many 95 % intervals of values without a mark contain the truth
  marked    how many values perf marks as weak
"""

import json
import math
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.experiment import functions_of
from bench.guest import with_truth
from bench.markdown import prose
from emulator.compare import SHARE as CYCLES
from emulator.compare import Row, by_function, compare
from tests.harness.env import BUILD, PERF, must

TITLE = "Debian's programs compared with the truth"
MODELS = {
    "own core": "small",
    "with the kernel": "small,kernel=on",
    "large core with the kernel": "large,kernel=on",
}
READINGS = {"": ("--share", "auto"), ", corrected": ("--share", "auto", "--correct")}
ROOT = BUILD / "root/arm64-programs"
NESTED_ROOT = BUILD / "root/arm64"
EVENTS = "{cycles/period=49700,alt-period=300,alt-period-jitter=14/,instructions,"
EVENTS += "branch-misses,cache-misses,"
EVENTS += "dTLB-load-misses,L1-icache-load-misses,br_return_retired}:uS"
METRICS = (CYCLES, "CPI", "BM/KI", "CM/KI", "TM/KI")
LEAST = 1.0  # percent of the cycles
DEPTHS = 1, 2, 3  # of the benchmark's calls
# the goals: error of %CY to what chance makes of it; intervals without a mark; values with one
CHANCE, COVERED, MARKED = 1.5, 0.93, 1 / 3
# the goals of quiet windows: half of what was measured without them, or what remains if writing the
# sample leaves no traces; of --correct, its error
QUIET = "python3"
QUIET_ERRORS = {
    "with the kernel": {"CPI": 0.50, "CM/KI": 0.56},
    "large core with the kernel": {"CPI": 0.19, "CM/KI": 0.22},
    "large core with the kernel, corrected": {"CPI": 0.10},
}
QUIET_ADDED = {
    "with the kernel": {"cycles": 145.5 / 2, "cache-misses": 1.144 / 2},
    "large core with the kernel": {"cycles": 80.7 / 2, "cache-misses": 0.372 / 2},
}
PREPARE = r"""
cat /usr/bin/python3* /usr/bin/bash | head -c 1500000 > /tmp/data
head -c 300000 /tmp/data > /tmp/some
awk 'BEGIN {
	for (n = 0; n < 60; n++)
		printf "int f%d(int *a, int n)\n{\n\tint s = 0;\n\n\tfor (int i = 0; i < n; i++)\n" \
			"\t\ts += a[i] * %d + (a[i] > %d ? a[n - i] : s / 3);\n\treturn s;\n}\n", \
			n, n + 2, n
}' > /tmp/file.c
cat > /tmp/words.py << 'END'
words = {}
for number in range(40000):
    word = "w%d" % (number * 7919 % 3001)
    words[word] = words.get(word, 0) + len(word)
print(sorted(words.items(), key=lambda item: (-item[1], item[0]))[:3])
END
cat > /tmp/words.pl << 'END'
for my $n (0 .. 40000) { my $w = "w" . ($n * 7919 % 3001); $c{$w} += length($w); }
print join(",", (sort { $c{$b} <=> $c{$a} || $a cmp $b } keys %c)[0 .. 2]), "\n";
END
cat > /tmp/table.sql << 'END'
create table t(a integer, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 8000)
insert into t select x * 7919 % 10007, hex(x) from c;
create index i on t(a);
select count(*), sum(length(b)) from t join t as u on t.a = u.a + 1 where t.b > '31';
END
"""
PROGRAMS = {
    "gzip": "gzip -n -9 < /tmp/data",
    "xz": "xz -3 < /tmp/some",
    "sqlite3": "sqlite3 -init /tmp/table.sql :memory: .quit",
    "python3": "python3 /tmp/words.py",
    "perl": "perl /tmp/words.pl",
    "gcc": "gcc -O2 -S -o /tmp/file.s /tmp/file.c",
    "pigz, 4 threads": "pigz -n -p 4 < /tmp/data",
}
NESTED = {f"benchmark, depth {depth}": f"benchmark --iterations 2000 0 {depth}" for depth in DEPTHS}


def file_name(program: str, model: str) -> str:
    return f"truth, {program}, {model}".replace(", ", "-").replace(" ", "-")


def root_of(program: str) -> Path:
    """The files of the machine in which a program runs."""
    return NESTED_ROOT if program in NESTED else ROOT


def recordings_of(program: str, model: str, events: str, more: str = "") -> tuple[Path, Path]:
    """Records a program; returns the recording and its truth. more: an end of their names."""
    return with_truth(
        file_name(program, model) + more,
        events,
        f"sh -c '{(PROGRAMS | NESTED)[program]} > /dev/null'",
        MODELS[model],
        *("--root", f"{root_of(program)}.cpio"),
        setup="" if program in NESTED else PREPARE,
    )


def added_of(data: Path, *files: object) -> dict[str, float]:
    """What the interrupt before a window adds to it, by event."""
    words = "functions", "report", *files, "-i", data, "--json"
    found = json.loads(must(PERF, *words, stderr=subprocess.DEVNULL))["interrupts"]
    return {name: cell["added"] for name, cell in found[0]["added"].items()} if found else {}


def record(program: str, model: str) -> tuple[dict[str, list[Row]], dict[str, float]]:
    """Records a program; returns its functions, recorded and true, by how they are read, and what
    the interrupt adds to a window.
    """
    data, true = recordings_of(program, model, EVENTS)
    files = "--symfs", root_of(program)
    truth = by_function(functions_of(true, PERF, "--share", "discard", *files))
    rows = {
        name: compare(by_function(functions_of(data, PERF, *options, *files)), truth, LEAST)
        for name, options in READINGS.items()
    }
    return rows, added_of(data, *files)


def result_of(rows: list[Row]) -> dict[str, Any]:
    """Error, intervals and marks of each metric."""
    result = {}
    for metric in METRICS:
        values = [
            (row.values[CYCLES].true, row.values[metric]) for row in rows if metric in row.values
        ]
        known = [(share, value) for share, value in values if value.recorded is not None]
        wrong = sum(share * abs(value.recorded - value.true) for share, value in known)
        plain = [value for _, value in known if not value.weak and value.missed is not None]
        if metric == CYCLES:
            error = sum(abs((value.recorded or 0) - value.true) for _, value in values) / 200
        else:
            error = wrong / (sum(share * value.true for share, value in known) or 1)
        result[metric] = {
            "error": error,
            "values": len(values),
            # a missing value or interval counts as marked
            "marked": len(values) - len(plain),
            "right": sum(not value.missed for value in plain),
        }
    # the mean of |x - p| is sqrt(2 / pi) standard errors
    errors = [row.values[CYCLES].error for row in rows]
    result["by chance"] = math.sqrt(2 / math.pi) * sum(errors) / 200
    return result


def measure() -> dict:
    """Records all programs, two at a time."""
    jobs = [(program, model) for program in PROGRAMS | NESTED for model in MODELS]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(jobs, pool.map(lambda job: record(*job), jobs)))
    return {
        f"{model}{reading}": {
            program: {
                "functions": len(found[program, model][0][reading]),
                "added": found[program, model][1],
                **result_of(found[program, model][0][reading]),
            }
            for program in PROGRAMS | NESTED
        }
        for model in MODELS
        for reading in READINGS
    }


def goals(programs: dict[str, dict]) -> list[tuple[str, str, bool]]:
    """Returns the goals of the recordings with a model, the results, and whether they are met."""
    within = sum(row[CYCLES]["error"] <= CHANCE * row["by chance"] for row in programs.values())
    cells = [row[metric] for row in programs.values() for metric in METRICS]
    number, marked, right = (
        sum(cell[key] for cell in cells) for key in ("values", "marked", "right")
    )
    covered = right / max(number - marked, 1)
    return [
        (
            f"error of {CYCLES} at most {CHANCE} times the error of chance",
            f"{within} of {len(programs)} programs",
            within == len(programs),
        ),
        (
            f"at least {100 * COVERED:.0f} % of the intervals without a mark contain the truth",
            f"{right} of {number - marked}, {100 * covered:.0f} %",
            covered >= COVERED,
        ),
        (
            "at most a third of the values are marked or missing",
            f"{marked} of {number}, {100 * marked / number:.0f} %",
            marked <= MARKED * number,
        ),
    ]


def quiet_goals(model: str, row: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """The same for quiet windows; results before them do not tell what the interrupt adds."""
    if "added" not in row:
        return []
    errors = [
        (
            f"error of {metric} of {QUIET} at most {100 * goal:.0f} %",
            f"{100 * row[metric]['error']:.0f} %",
            row[metric]["error"] <= goal,
        )
        for metric, goal in QUIET_ERRORS.get(model, {}).items()
    ]
    added = [
        (
            f"the interrupt adds at most {goal:.2f} {name} to a window of {QUIET}",
            f"{row['added'][name]:.2f}",
            row["added"][name] <= goal,
        )
        for name, goal in QUIET_ADDED.get(model, {}).items()
        if name in row["added"]
    ]
    return errors + added


def report(result: dict) -> str:
    """The result as Markdown."""
    lines = [
        prose(
            f"""Debian's programs and the benchmark with nested calls are recorded in the machine
            with caches, with `{EVENTS}`. The core model counts the truth. The tables compare the
            functions that have at least {LEAST:.0f} % of the true cycles. The first number of a
            cell is the error in percent. For {CYCLES} it is the percentage of the cycles that went
            to a wrong function. For a rate it is the mean of |recorded - true|, weighted by cycles,
            relative to the true mean. *chance* is the error of {CYCLES} that the random choice of
            samples alone would make. The second number counts the 95 % intervals that contain the
            truth, of the values without a mark. The other functions have a marked value, or
            none."""
        )
    ]
    titles = {
        "own core": "The kernel is not modelled. It leaves no traces in caches and predictors:",
        "own core, corrected": "The same recordings, read with `--correct`:",
        "with the kernel": "The kernel is modelled. The interrupts of the recording itself disturb "
        "caches and predictors:",
        "with the kernel, corrected": "The same recordings, read with `--correct`:",
        "large core with the kernel": "The kernel is modelled, with the model `large`:",
        "large core with the kernel, corrected": "The same recordings, read with `--correct`:",
    }
    for model, programs in result.items():
        lines += [
            "",
            titles[model],
            "",
            f"| program | functions | chance | {' | '.join(METRICS)} |",
            f"|---|--:|--:|{'--:|' * len(METRICS)}",
        ]
        for program, row in programs.items():
            cells = [
                f"{100 * row[metric]['error']:.1f}; {row[metric]['right']} of "
                f"{row[metric]['values'] - row[metric]['marked']}"
                for metric in METRICS
            ]
            lines.append(
                f"| {program} | {row['functions']} | {100 * row['by chance']:.1f} "
                f"| {' | '.join(cells)} |"
            )
        lines += ["", "| goal | found | |", "|---|---|---|"]
        lines += [
            f"| {goal} | {found} | {'met' if is_met else 'not met'} |"
            for goal, found, is_met in goals(programs) + quiet_goals(model, programs[QUIET])
        ]
    why = """
        Why the goals are missed. *%CY*: the CPU takes an interrupt some cycles after the overflow.
        By then a short function may have ended; the benchmark's functions are long enough.
        *Intervals*: most of those that miss the truth are intervals of %CY. They allow for the mean
        of this delay, but not for the longest delays. *Marks*: most functions of these programs are
        shorter than a window, or call others in it. With the kernel, the interrupt adds half of the
        cycles of a window of python3, and an interval that covers this is wide.
    """
    return "\n".join([*lines, "", prose(why)])
