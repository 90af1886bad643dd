# SPDX-License-Identifier: GPL-2.0
"""Measures how often a comparison of two builds is wrong, and how often it finds a true change.

The runs are simulated, so it is known what has changed and how far runs differ: between two
runs of one build, the CPI, the page faults and the share of each function differ by chance,
with a given standard deviation. perf functions report --before ... --after ... compares them
as it compares recordings. The same numbers are drawn each time.
"""

import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.markdown import prose
from tests.harness.runs import COLUMNS, MANY, Program, by_column, compared

TITLE = "Comparisons of two builds"
DIFFER = 0, 1, 3  # percent, from run to run
RUNS = 3, 5, 10  # of each build
COMPARISONS = 200
SLOWER = 1.05
CHANGED = {"slow": 2000, "slower": 1000}  # windows of the functions that have changed
ALLOWED = 0.05  # false alarms


def significant(
    program: Program, draw: random.Random, number: int, differ: int, slower: float
) -> dict[str, set[str]]:
    """The functions that perf marks as changed, by column, in one comparison."""
    before, after = (
        program.runs(draw, number, side, deviation=differ / 100, slower=factor)
        for side, factor in (("before", 1), ("after", slower))
    )
    done = compared(before, after)
    if done.returncode or done.stderr:
        raise AssertionError(f"perf functions report: {done.returncode}\n{done.stderr}")
    return {
        column: {name for name, change in changes.items() if change["significant"]}
        for column, changes in by_column(done).items()
    }


def row_of(differ: int, number: int, comparisons: int, folder: Path) -> dict:
    """Compares equal builds, and builds of which one is slower."""
    draw = random.Random(1000 * differ + number)
    equal, changed = (Program(sizes, folder=folder) for sizes in (MANY, MANY | CHANGED))
    alarms: Counter[str] = Counter(dict.fromkeys(COLUMNS, 0))
    found = 0
    for _ in range(comparisons):
        told = significant(equal, draw, number, differ, 1)
        alarms.update(column for column, names in told.items() if names)
        told = significant(changed, draw, number, differ, SLOWER)
        found += len(told["CPI"] & set(CHANGED))
    return {"differ": differ, "runs": number, "alarms": dict(alarms), "found": found}


def measure(comparisons: int = COMPARISONS) -> dict:
    """Compares builds with all numbers of runs, and all differences between runs."""
    with TemporaryDirectory() as folder:
        rows = [
            row_of(differ, number, comparisons, Path(folder))
            for differ in DIFFER
            for number in RUNS
        ]
    return {"comparisons": comparisons, "rows": rows}


def alarm_rate(result: dict, row: dict) -> float:
    """The share of columns with a false change."""
    return sum(row["alarms"].values()) / (len(COLUMNS) * result["comparisons"])


def power(result: dict, row: dict) -> float:
    """The share of true changes that are found."""
    return row["found"] / (len(CHANGED) * result["comparisons"])


def report(result: dict) -> str:
    """The result as Markdown."""
    about = f"""
        `perf functions report --before ... --after ...` compares simulated runs of two builds. The
        program has {len(MANY)} functions with {min(MANY.values()):,} to {max(MANY.values()):,}
        windows in each run. *differ* is the standard deviation of each function's CPI, page faults
        and share between runs of one build. For the columns *false*, both builds are equal. A cell
        is the percentage of comparisons in which perf marks a change of at least one function. For
        the column *found*, {len(CHANGED)} more functions with
        {' and '.join(f'{size:,}' for size in CHANGED.values())} windows have a CPI that is
        {100 * (SLOWER - 1):.0f} % higher in the second build. A cell is the percentage of these
        changes that perf marks. Each cell comes from {result['comparisons']} comparisons.
    """
    lines = [
        prose(about),
        "",
        f"| differ, % | runs of each build | {' | '.join(f'false: {name}' for name in COLUMNS)} "
        "| found |",
        f"|--:|--:|{'--:|' * len(COLUMNS)}--:|",
    ]
    for row in result["rows"]:
        cells = [
            *(f"{100 * row['alarms'][name] / result['comparisons']:.1f}" for name in COLUMNS),
            f"{100 * power(result, row):.0f}",
        ]
        lines.append(f"| {row['differ']} | {row['runs']} | {' | '.join(cells)} |")
    after = f"""
        perf aims at false alarms in at most {100 * ALLOWED:.0f} % of the comparisons of a column.
        The numbers are drawn from normal and Poisson distributions, independently for each
        function, and are the same each time. Runs of a real program may differ in other ways: all
        functions may change together, or drift.
    """
    return "\n".join([*lines, "", prose(after)])
