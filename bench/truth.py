# SPDX-License-Identifier: GPL-2.0
"""How far the table is from the truth for programs that nobody here wrote.

They are Debian's, for arm64, and run in the machine with caches (emulator/README.md), whose
core model counts what each of their functions really does. Each is recorded twice: with a
core of its own that the kernel leaves no traces in, and with everything modelled, so that
the interrupts of the recording itself disturb caches and predictors, as they do on
hardware.

All functions that have at least 1 % of the true cycles are compared:

  error     the mean of |recorded - true|, weighted by cycles, relative to that of the truth;
            for %CY half the sum of the differences, the cycles that the table gives to a
            wrong function
  interval  how many 95 % intervals contain the truth
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.experiment import functions_of
from bench.guest import with_truth
from bench.markdown import prose
from emulator.compare import SHARE as CYCLES
from emulator.compare import Row, by_function, compare
from tests.harness.env import BUILD, PERF

TITLE = "Programs that nobody here wrote"
MODELS = {"own core": "small", "with the kernel": "small,kernel=on"}
ROOT = BUILD / "root/arm64-programs"
EVENTS = "{cycles/period=49700,alt-period=300/,instructions,branch-misses,cache-misses,"
EVENTS += "dTLB-load-misses,L1-icache-load-misses}:uS"
METRICS = (CYCLES, "CPI", "BM/KI", "CM/KI", "TM/KI")
LEAST = 1.0  # percent of the cycles
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


def file_name(program: str, model: str) -> str:
    return f"truth, {program}, {model}".replace(", ", "-").replace(" ", "-")


def record(program: str, model: str) -> list[Row]:
    """Records a program; returns its functions, recorded and true."""
    recordings = with_truth(
        file_name(program, model),
        EVENTS,
        f"sh -c '{PROGRAMS[program]} > /dev/null'",
        MODELS[model],
        *("--root", f"{ROOT}.cpio"),
        setup=PREPARE,
    )
    tables = (by_function(functions_of(path, PERF, "--symfs", ROOT)) for path in recordings)
    return compare(*tables, LEAST)


def result_of(rows: list[Row]) -> dict[str, Any]:
    """Error and intervals of each metric."""
    result = {}
    for metric in METRICS:
        values = [(row.values[CYCLES].true, row.values[metric]) for row in rows]
        known = [(share, value) for share, value in values if value.recorded is not None]
        wrong = sum(share * abs(value.recorded - value.true) for share, value in known)
        if metric == CYCLES:
            error = sum(abs((value.recorded or 0) - value.true) for _, value in values) / 200
        else:
            error = wrong / (sum(share * value.true for share, value in known) or 1)
        result[metric] = {
            "error": error,
            "intervals": len(known),
            "right": sum(not value.missed for _, value in known),
        }
    return result


def measure() -> dict:
    """Records all programs, two at a time."""
    jobs = [(program, model) for program in PROGRAMS for model in MODELS]
    with ThreadPoolExecutor(2) as pool:
        rows = dict(zip(jobs, pool.map(lambda job: record(*job), jobs)))
    return {
        model: {
            program: {"functions": len(rows[program, model]), **result_of(rows[program, model])}
            for program in PROGRAMS
        }
        for model in MODELS
    }


def report(result: dict) -> str:
    """The result as Markdown."""
    lines = [
        prose(
            f"""Debian's programs in the machine with caches, recorded with `{EVENTS}`. Functions
            with at least {LEAST:.0f} % of the true cycles are compared with what the core model
            has counted. The first number of a cell is the error in percent: for {CYCLES} the
            cycles given to a wrong function, for a rate the mean of |recorded - true|, weighted
            by cycles, relative to the true mean. The second one tells how many of the 95 %
            intervals contain the truth."""
        )
    ]
    titles = {
        "own core": "The kernel leaves no traces in caches and predictors:",
        "with the kernel": "With the kernel, and what the recording's own interrupts disturb:",
    }
    for model, programs in result.items():
        lines += [
            "",
            titles[model],
            "",
            f"| program | functions | {' | '.join(METRICS)} |",
            f"|---|--:|{'--:|' * len(METRICS)}",
        ]
        for program, row in programs.items():
            cells = [
                f"{100 * row[metric]['error']:.1f}, {row[metric]['right']} of "
                f"{row[metric]['intervals']}"
                for metric in METRICS
            ]
            lines.append(f"| {program} | {row['functions']} | {' | '.join(cells)} |")
    return "\n".join(lines)
