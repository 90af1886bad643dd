# SPDX-License-Identifier: GPL-2.0
"""Measures the error of the table for programs from Debian.

The programs are Debian's, for arm64, and run in the machine with caches (emulator/README.md), whose
core model counts what each of their functions really does. The benchmark's nested calls are
measured beside them. The kernel is modelled, too, so that the interrupts of the recording itself
disturb caches and predictors, as they do on hardware. Each program is recorded in a machine with
small caches and in one with large caches. Each recording is read twice: by its windows, and by the
samples of each event, as by default: then windows tell what skid may have done. Samples of events
are compared a second time, with the quiet truth: what the model counts if nothing takes samples. So
are the true counts of recorded runs: this is what a recording changes.

All functions that have at least 1 % of the true cycles are compared:

  error     the mean of |recorded - true|, weighted by cycles, relative to that of the truth;
            for %CY half the sum of the differences, the cycles that the table gives to a
            wrong function
  chance    what this error would be if only the draw of the samples made it
  interval  how many 95 % intervals of values without a mark contain the truth
  marked    how many values perf marks as weak
"""

import math
import re
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from bench.experiment import functions_of
from bench.guest import with_truth
from bench.markdown import prose
from emulator.compare import SHARE as CYCLES
from emulator.compare import Row, by_function, compare
from tests.harness.env import BUILD, PERF

TITLE = "Debian's programs compared with the truth"
MODELS = {"small": "small,kernel=on", "large": "large,kernel=on"}
WINDOWS, SAMPLES = "windows", "event samples"
QUIET = "event samples, with the quiet truth"
CHANGED, CHANGED_BY_DEFAULT = "what this recording changes", "what perf functions record changes"
READINGS = {WINDOWS: ("--source", "windows"), SAMPLES: ("--source", "best")}
ROOT = BUILD / "root/arm64-programs"
NESTED_ROOT = BUILD / "root/arm64"
# samples a second of each event but the first, which has about as many, as by default
RATE = 8000
EVENTS = "{cycles/period=149700,alt-period=300,alt-period-jitter=14/"
EVENTS += f",instructions/freq={RATE}/,branch-misses/freq={RATE}/,cache-misses/freq={RATE}/"
EVENTS += f",dTLB-load-misses/freq={RATE}/,L1-icache-load-misses,br_return_retired}}:uS"
NO_SAMPLES = re.sub("/.*?/", "/period=1000000000000/", EVENTS)
METRICS = (CYCLES, "CPI", "BM/KI", "CM/KI", "TM/KI")
LEAST = 1.0  # percent of the cycles
DEPTHS = 1, 2, 3  # of the benchmark's calls
# the goals: errors to what chance makes of them; intervals without a mark; marks
CHANCE = {CYCLES: 2, "CPI": 2, "BM/KI": 3, "CM/KI": 3, "TM/KI": 3}
COVERED, MARKED = 0.93, (0.45, "45 %")
Goal = tuple[str, str, bool]  # what, the result, and whether it is met
PREPARE = r"""
export PERL_HASH_SEED=0 PYTHONHASHSEED=0    # each run does the same
cat /usr/bin/python3* /usr/bin/bash | head -c 1500000 > /tmp/data
awk 'BEGIN {
	for (n = 0; n < 60; n++)
		printf "int f%d(int *a, int n)\n{\n\tint s = 0;\n\n\tfor (int i = 0; i < n; i++)\n" \
			"\t\ts += a[i] * %d + (a[i] > %d ? a[n - i] : s / 3);\n\treturn s;\n}\n", \
			n, n + 2, n
}' > /tmp/file.c
cat > /tmp/words.py << 'END'
words = {}
for number in range(80000):
    word = "w%d" % (number * 7919 % 3001)
    words[word] = words.get(word, 0) + len(word)
print(sorted(words.items(), key=lambda item: (-item[1], item[0]))[:3])
END
cat > /tmp/words.pl << 'END'
for my $n (0 .. 300000) { my $w = "w" . ($n * 7919 % 3001); $c{$w} += length($w); }
print join(",", (sort { $c{$b} <=> $c{$a} || $a cmp $b } keys %c)[0 .. 2]), "\n";
END
cat > /tmp/table.sql << 'END'
create table t(a integer, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 40000)
insert into t select x * 7919 % 40009, hex(x) from c;
create index i on t(a);
select count(*), sum(length(t.b)) from t join t as u on t.a = u.a + 1 where t.b > '31';
END
"""
PROGRAMS = {
    "gzip": "gzip -n -9 < /tmp/data",
    "xz": "xz -3 < /tmp/data",
    "sqlite3": "sqlite3 -batch -bail :memory: < /tmp/table.sql",
    "python3": "python3 /tmp/words.py",
    "perl": "perl /tmp/words.pl",
    "gcc": "gcc -O2 -S -o /tmp/file.s /tmp/file.c",
    "pigz, 4 threads": "pigz -n -p 4 < /tmp/data",
}
NESTED = {f"benchmark, depth {depth}": f"benchmark --iterations 2000 0 {depth}" for depth in DEPTHS}


def file_name(program: str, model: str, kind: str = "truth") -> str:
    return f"{kind}, {program}, {model}".replace(", ", "-").replace(" ", "-")


def root_of(program: str) -> Path:
    """The files of the machine in which a program runs."""
    return NESTED_ROOT if program in NESTED else ROOT


def setup_of(program: str) -> str:
    """The commands that make the files which a program reads."""
    return "" if program in NESTED else PREPARE


def recordings_of(program: str, model: str, events: str = EVENTS) -> tuple[Path, Path]:
    """Records a program; returns the recording and its truth."""
    return with_truth(
        file_name(program, model, {EVENTS: "truth", NO_SAMPLES: "quiet"}.get(events, "default")),
        events,
        f"sh -c '{(PROGRAMS | NESTED)[program]} > /dev/null'",
        MODELS[model],
        *("--root", f"{root_of(program)}.cpio"),
        setup=setup_of(program),
    )


def exact(true: Path, *options: object) -> dict[str, Any]:
    """The functions of a truth."""
    return by_function(functions_of(true, PERF, *options))


def true_functions(program: str, model: str, events: str = NO_SAMPLES) -> dict[str, Any]:
    """What the functions of a program do while it is recorded."""
    return exact(recordings_of(program, model, events)[1], "--symfs", root_of(program))


def record(program: str, model: str) -> dict[str, list[Row]]:
    """Records a program; returns its functions, recorded and true, by how they are read."""
    data, true = recordings_of(program, model)
    files = "--symfs", root_of(program)
    found = {
        name: by_function(functions_of(data, PERF, *options, *files))
        for name, options in READINGS.items()
    }
    truth, quiet = exact(true, *files), true_functions(program, model)
    by_default = true_functions(program, model, "")
    disturbed = {QUIET: found[SAMPLES], CHANGED: truth, CHANGED_BY_DEFAULT: by_default}
    return {name: compare(rows, truth, LEAST) for name, rows in found.items()} | {
        name: compare(rows, quiet, LEAST) for name, rows in disturbed.items()
    }


def result_of(rows: list[Row], metrics: Collection[str] = METRICS) -> dict[str, Any]:
    """Error, intervals and marks of each metric."""
    result: dict[str, Any] = {}
    for metric in metrics:
        values = [
            (row.values[CYCLES].true, row.values[metric]) for row in rows if metric in row.values
        ]
        known = [(share, value) for share, value in values if value.recorded is not None]
        wrong = sum(share * abs(value.recorded - value.true) for share, value in known)
        plain = [value for _, value in known if not value.weak and value.missed is not None]
        if metric.startswith("%"):
            error = sum(abs((value.recorded or 0) - value.true) for _, value in values) / 200
            chance = sum(value.error for _, value in values) / 200
        else:
            whole = sum(share * value.true for share, value in known) or 1
            error = wrong / whole
            chance = sum(share * value.error for share, value in known) / whole
        result[metric] = {
            "error": error,
            # the mean of |x - p| is sqrt(2 / pi) standard errors
            "chance": math.sqrt(2 / math.pi) * chance,
            "values": len(values),
            # a missing value or interval counts as marked
            "marked": len(values) - len(plain),
            "right": sum(not value.missed for value in plain),
        }
        if metric == "CPI":
            off = (abs(value.recorded / value.true - 1) for value in plain if value.true)
            result[metric]["off"] = sorted(round(part, 4) for part in off)
    return result


def measure() -> dict:
    """Records all programs, two at a time."""
    jobs = [(program, model) for program in PROGRAMS | NESTED for model in MODELS]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(jobs, pool.map(lambda job: record(*job), jobs)))
    result = {}
    programs: dict[str, Any]
    for model, reading in product(MODELS, (*READINGS, QUIET, CHANGED, CHANGED_BY_DEFAULT)):
        result[f"{model}: {reading}"] = programs = {}
        for program in PROGRAMS | NESTED:
            rows = found[program, model][reading]
            programs[program] = {"functions": len(rows), **result_of(rows)}
    return result


def within(rows: Collection[dict], metric: str, limit: str, most: Callable[[dict], float]) -> Goal:
    """Each program's error of a metric is at most most(its value), which limit names."""
    number = sum(row[metric]["error"] <= most(row[metric]) for row in rows)
    return (
        f"error of {metric} at most {limit}",
        f"{number} of {len(rows)} programs",
        number == len(rows),
    )


def within_chance(rows: Collection[dict], metric: str, times: float) -> Goal:
    """Each program's error of a metric is at most this multiple of the error of chance."""
    text = f"{times} times the error of chance"
    return within(rows, metric, text, lambda value: times * value["chance"])


def certainty(
    rows: Collection[dict],
    metrics: Collection[str],
    marked_part: tuple[float, str],
    least: float = COVERED,
) -> list[Goal]:
    """Intervals contain the truth, and at most this part of the values is marked."""
    number, marked, right = (
        sum(row[metric][key] for row in rows for metric in metrics)
        for key in ("values", "marked", "right")
    )
    covered = right / max(number - marked, 1)
    most, name = marked_part
    return [
        (
            f"at least {100 * least:.0f} % of the values that are not weak have the truth in their "
            "interval",
            f"{right} of {number - marked}, {100 * covered:.0f} %",
            covered >= least,
        ),
        (
            f"at most {name} of the values are weak or missing",
            f"{marked} of {number}, {100 * marked / number:.0f} %",
            marked <= most * number,
        ),
    ]


def table_of_goals(found: list[Goal]) -> list[str]:
    """The goals, as lines of Markdown."""
    return ["", "| goal | found | |", "|---|---|---|"] + [
        f"| {goal} | {what} | {'met' if is_met else 'not met'} |" for goal, what, is_met in found
    ]


def goals(programs: dict[str, dict]) -> list[Goal]:
    """The goals of event samples."""
    rows = programs.values()
    return [
        *(within_chance(rows, metric, times) for metric, times in CHANCE.items()),
        *certainty(rows, METRICS, MARKED),
    ]


def quantiles(rows: Collection[dict]) -> tuple[int, float, float]:
    """The number of CPIs without a mark, and how far off they are, as parts of the truth: half are
    at most the first number off, nine in ten at most the second.
    """
    off = sorted(part for row in rows for part in row["CPI"]["off"])
    return len(off), off[len(off) // 2], off[9 * len(off) // 10]


def nearness(programs: dict[str, dict]) -> str:
    """How far off the CPIs of Debian's programs are, as a sentence."""
    number, half, most = quantiles([programs[name] for name in PROGRAMS])
    return prose(
        f"""Of the {number} CPIs of Debian's programs that are not weak, half are at most
        {100 * half:.0f} % off, and nine in ten at most {100 * most:.0f} %."""
    )


def report(result: dict) -> str:
    """The result as Markdown."""
    lines = [
        prose(
            f"""Debian's programs and the benchmark with nested calls are recorded in the machine
            with caches, with `{EVENTS}`. The kernel is modelled, so the interrupts of the recording
            disturb caches and predictors. The core model counts the truth. The *quiet truth* is
            that of a run without samples. The tables compare the functions that have at least
            {LEAST:.0f} % of the true cycles. The first number of a cell is the error in percent.
            For {CYCLES} it is the percentage of the cycles that went to a wrong function. For a
            rate it is the mean of |recorded - true|, weighted by cycles, relative to the true mean.
            The number in brackets is *chance*, the error that the random choice of samples alone
            would make. Then follow the 95 % intervals that contain the truth, of the values that
            are not weak. The other functions have a weak value, or none."""
        )
    ]
    for title, programs in result.items():
        model, _, reading = title.partition(": ")
        lines += [
            "",
            f"{reading.capitalize()}, {model} caches:",
            "",
            f"| program | functions | {' | '.join(METRICS)} |",
            f"|---|--:|{'--:|' * len(METRICS)}",
        ]
        for program, row in programs.items():
            cells = [
                (f"{100 * row[metric]['error']:.1f}" if row[metric]["error"] else "-")
                if "changes" in reading
                else f"{100 * row[metric]['error']:.1f} ({100 * row[metric]['chance']:.1f}); "
                f"{row[metric]['right']} of {row[metric]['values'] - row[metric]['marked']}"
                for metric in METRICS
            ]
            lines.append(f"| {program} | {row['functions']} | {' | '.join(cells)} |")
        if reading in (SAMPLES, QUIET):
            lines += ["", nearness(programs), *table_of_goals(goals(programs))]
    return "\n".join(lines)
