# SPDX-License-Identifier: GPL-2.0
"""The published table of the benchmark, of a Neoverse-N1, beside that of the core model.

The model executes in order, one instruction in each cycle at most: its numbers are not a
Neoverse's. But in each column, the same ones of the seven behaviours must stand out.
"""

from bench.experiment import SIBLINGS, functions_of
from bench.guest import SHARE, UNTHROTTLED, recording
from bench.markdown import prose
from tests.harness.env import BUILD, PERF, in_guest

MODEL = "large"
COLUMNS = ("#", "CPI", "BM/KI", "CM/KI", "%CM", "%CY", "%I", "%BM", "%L1DA", "%L1DM")
PUBLISHED = {
    "fp_divider_stalls": (6553, 4.9, 0.0, 0.0, 0.0, 41.8, 22.9, 0.1, 0.6, 0.0),
    "int_divider_stalls": (4741, 3.5, 0.0, 0.0, 1.1, 28.3, 21.5, 0.1, 1.9, 0.2),
    "isb": (3414, 20.1, 0.2, 0.0, 0.4, 17.6, 2.3, 0.1, 0.8, 0.0),
    "branch_mispredicts": (1234, 1.1, 33.0, 0.0, 0.0, 6.1, 15.2, 99.0, 71.6, 0.1),
    "double_to_int": (694, 0.5, 0.0, 0.0, 0.6, 3.4, 19.1, 0.1, 1.2, 0.1),
    "nops": (417, 0.3, 0.2, 0.0, 2.8, 1.9, 18.3, 0.6, 0.4, 0.1),
    "dcache_miss": (185, 3.6, 0.4, 184.7, 53.8, 0.7, 0.5, 0.0, 18.4, 99.1),
}
# columns in which one behaviour stands out because of what it is, not how often it is called
TELLING = ("CPI", "BM/KI", "CM/KI", "%CM", "%BM", "%L1DM")

Table = dict[str, list[float]]


def measure(iterations: int) -> Table:
    """Records the benchmark; returns the rows."""
    events = f"{{cycles/period=99700,alt-period=300/,{','.join(SIBLINGS)}}}:uS"
    name = "neoverse.data"
    in_guest(
        UNTHROTTLED + recording(name, events, f"benchmark --iterations {iterations} 0 1"),
        *("--model", MODEL),
        share=SHARE,
    )
    functions = functions_of(SHARE / name, PERF, "--symfs", BUILD / "root/arm64")
    rows = {row["symbol"]: row["metrics"] for row in functions}
    # an undefined ratio counts as 0
    return {name: [rows[name][column] or 0.0 for column in COLUMNS] for name in PUBLISHED}


def outstanding(table: Table) -> dict[str, str]:
    """The behaviour with the highest value, in each telling column."""
    found = {}
    for column in TELLING:
        place = COLUMNS.index(column)
        found[column] = max((row[place], name) for name, row in table.items())[1]
    return found


def report(result: Table, iterations: int) -> str:
    """The result of this number of iterations, as Markdown."""
    lines = [
        prose(
            f"""The next table compares the published table, from a Neoverse-N1, with a recording of
            the benchmark in the machine with caches (`MODEL={MODEL}`, {iterations:,} iterations).
            Each cell is *published / here*. The model is not a Neoverse, so the values differ;
            compare which function stands out in each column."""
        ),
        "",
        f"| function | {' | '.join(COLUMNS)} |",
        f"|---|{'--:|' * len(COLUMNS)}",
    ]
    for name, published in PUBLISHED.items():
        cells = (
            f"{one:.0f} / {other:.0f}" if column == "#" else f"{one:.1f} / {other:.1f}"
            for column, one, other in zip(COLUMNS, published, result[name])
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    theirs, ours = outstanding(PUBLISHED), outstanding(result)
    words = ", ".join(
        f"{name} ({column}{'' if ours[column] == name else f'; here {ours[column]}'})"
        for column, name in theirs.items()
    )
    both = "both tables" if ours == theirs else "the published table"
    lines += [
        "",
        prose(
            f"""In the columns that do not depend on how often a function is called, these functions
            have the highest value in {both}: {words}."""
        ),
    ]
    return "\n".join(lines)
