# SPDX-License-Identifier: GPL-2.0
"""Makes up tables as `perf functions report -j` prints them, sums files, a fake perf, and pages."""

import json
import random
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.harness.env import CHECK, TOP, must, run

DATA = CHECK / "report"
REPORT = TOP / "report/functions-report"
Table = dict[str, Any]
NAMES = [
    f"{verb}_{noun}"
    for verb in ("parse", "copy", "hash", "sort")
    for noun in ("block", "line", "tree", "Word", "page", "list")
]
EVENTS = ("cycles", "branch-misses", "cache-misses", "instructions")  # leader, then by name
PERCENT, PER_1000 = "percent", "events per 1000 instructions"
COLUMNS = (
    ("#", "window samples", "windows", "count", 0, "samples", None, 1),
    (
        *("CPI", "cycles per instruction", "cycles per instruction", "rate", 1),
        *("cycles", "instructions", 1),
    ),
    (
        *("BM/KI", "branch mispredicts per 1000 instructions", PER_1000, "rate", 1),
        *("branch-misses", "instructions", 1000),
    ),
    (
        *("CM/KI", "L1D misses per 1000 instructions", PER_1000, "rate", 1),
        *("cache-misses", "instructions", 1000),
    ),
    ("%CY", "share of the cycles", PERCENT, "share", 1, "cycles", "total", 100),
    ("%I", "share of the instructions", PERCENT, "share", 1, "instructions", "total", 100),
    ("%BM", "share of the branch mispredicts", PERCENT, "share", 1, "branch-misses", "total", 100),
    ("DIS", "windows that began elsewhere", PERCENT, "discarded", 1, "discarded", "samples", 100),
)
KEYS = ("name", "meaning", "unit", "role", "digits", "event", "per", "scale")
GROUP = {
    "events": list(EVENTS),
    "share": "discard",
    "sample_period": 999700,
    "sample_freq": 0,
    "alternative_sample_period": 300,
    "alternative_sample_count": 0,
    "jitter_alternate_period": 12,
    "inherit": True,
}
# names that try to get out of the page
NASTY = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a\u2028b\u2029c",
    "&lt;b&gt; ]]> --> '\"`",
    "<!--<script>",
    "operator<<(std::ostream&, char const*)",
    "@DATA@ @TITLE@ @CODE@",
    "😀" * 30,
    "toString",
    "__proto__",
)


def columns() -> list[Table]:
    return [{**dict(zip(KEYS, column)), "source": "windows"} for column in COLUMNS]


def counts(rng: random.Random) -> Table:
    """Random windows and events of a function."""
    samples = int(rng.paretovariate(0.6)) % 100000 + 1
    matched = rng.randrange(samples + 1)
    cycles = 300 * matched
    instructions = int(cycles / rng.uniform(0.25, 20)) if matched else 0
    totals = {
        "cycles": cycles,
        "branch-misses": int(instructions * rng.choice((0, 0.001, 0.03))),
        "cache-misses": int(instructions * rng.random() ** 4 / 5),
        "instructions": instructions,
    }
    return {
        "windows": {
            "opened": 0,
            "samples": samples,
            "matched": matched,
            "discarded": samples - matched,
        },
        "samples": 0,
        "events": {event: {"count": count, "variance": count} for event, count in totals.items()},
    }


def add_values(row: Table, whole: dict[str, int]) -> None:
    """Adds metrics, with intervals that are narrower the more windows there are."""
    windows = row["windows"]
    known = {**{event: one["count"] for event, one in row["events"].items()}, **windows}
    row["metrics"], row["intervals"] = {}, {}
    for name, *_, event, per, scale in COLUMNS:
        divisor = 1 if per is None else whole[event] if per == "total" else known[per]
        row["metrics"][name] = value = scale * known[event] / divisor if divisor else None
        if value is not None and per not in (None, "samples"):
            half = value / max(1, windows["matched"]) ** 0.5
            row["intervals"][name] = [value - half, value + half]
    row["weak"] = [
        name
        for name, (low, high) in row["intervals"].items()
        if row["metrics"][name] and high - low >= row["metrics"][name]
    ]
    row["errors"] = {
        name: (high - low) / 2 / 1.96 for name, (low, high) in row["intervals"].items()
    }


def table(names: list[str], seed: int = 1) -> Table:
    """A table of functions with random totals. Some values are undefined, some lack support."""
    rng = random.Random(seed)
    rows: list[Table] = []
    for i, name in enumerate(names):
        rows.append(
            {
                "symbol": name,
                "dso": rng.choice(
                    ("/usr/bin/program", "/usr/lib/libexample.so.1", "[kernel.kallsyms]")
                ),
                "address": None if name else 4096 * i,
                **counts(rng),
            }
        )
    whole = {event: sum(row["events"][event]["count"] for row in rows) for event in EVENTS}
    for row in rows:
        row["label"] = name_of(row)
        add_values(row, whole)
    rows.sort(key=lambda row: -(row["metrics"]["%CY"] or 0))
    return {
        "version": 2,
        "by": "symbol",
        "inline": False,
        "groups": [GROUP],
        "throttled": 3,
        "lost": 0,
        "samples": 0,
        "windows": {
            name: sum(row["windows"][name] for row in rows)
            for name in ("opened", "samples", "matched", "discarded")
        },
        "events": [{"name": event, "unit": "events"} for event in EVENTS],
        "width": "cycles",
        "columns": columns(),
        "functions": rows,
    }


def name_of(row: Table) -> str:
    """The label of a row: its symbol, or where it is."""
    return row["symbol"] or f"{row['address']:#x} [{Path(row['dso']).name}]"


def add_levels(made: Table, names: dict[str, str | None], weak: int = 0) -> None:
    """Adds metrics of top-down analysis.

    names: each with that of the level above, upper levels first. The metrics of a level add up to
    the one above, those of the first level to 100. Every weak-th value is weak.
    """
    rng, number = random.Random(5), 0
    made["columns"] += [
        {
            "name": name,
            "meaning": f"{name} (percent of slots)",
            "unit": PERCENT,
            "role": "rate" if above else "slots",
            "digits": 1,
            **({"parent": above} if above else {}),
        }
        for name, above in names.items()
    ]
    for row in made["functions"]:
        for above in dict.fromkeys(names.values()):
            below = [name for name in names if names[name] == above]
            parts = [rng.random() ** 2 + 0.01 for _ in below]
            whole = row["metrics"][above] if above else 100
            for name, part in zip(below, parts):
                row["metrics"][name] = value = whole * part / sum(parts)
                row["intervals"][name] = [0.9 * value, 1.1 * value]
                number += 1
                if weak and not number % weak:
                    row["weak"].append(name)


def diff(before: Table, after: Table) -> Table:
    """The changes from one table to another, significant changes first."""
    rows = []
    old, new = ({row["symbol"]: row for row in one["functions"]} for one in (before, after))
    for name in {**old, **new}:
        row = new.get(name) or old[name]
        status = (
            "both" if name in old and name in new else "appeared" if name in new else "vanished"
        )
        metrics = {}
        for column in before["columns"]:
            key = column["name"]
            a, b = (one[name]["metrics"][key] if name in one else None for one in (old, new))
            change = b - a if a is not None and b is not None else None
            half = (
                0.1 * (abs(a) + abs(b))
                if change is not None and column["role"] != "count"
                else None
            )
            metrics[key] = {
                "before": a,
                "after": b,
                "change": change,
                "interval": None if half is None else [change - half, change + half],
                "significant": half is not None and abs(change) > half,
            }
        rows.append(
            {
                "label": row["label"],
                "symbol": name,
                "dso": row["dso"],
                "address": row["address"],
                "status": status,
                "metrics": metrics,
            }
        )
    rows.sort(key=lambda row: -sum(one["significant"] for one in row["metrics"].values()))
    return {
        "version": 2,
        "by": "symbol",
        "inline": False,
        **{
            key: {"groups": one["groups"], "throttled": one["throttled"], "lost": one["lost"]}
            for key, one in (("before", before), ("after", after))
        },
        "columns": before["columns"],
        "functions": rows,
    }


def counted_of(event: str, sums: dict[tuple, dict], intervals: Sequence[Table]) -> int:
    """What was counted of an event: in share mode auto in all intervals, else in the windows that
    count."""
    return sum(
        one[kind]["totals"].get(event, 0) for one in intervals for kind in ("windows", "long")
    ) + sum(
        one["totals"].get(event, 0)
        for (_, events), one in sums.items()
        if list(events) not in [one["events"] for one in intervals]
    )


def chain_sums(chains: dict[str, tuple[int, ...]]) -> str:
    """A sums file by call chain: (windows, cycles, instructions, page-faults).

    All windows of a chain are alike.
    """
    version = re.search(
        r"^perf-function-sums \d+",
        (TOP / "tools/perf/Documentation/perf-functions.txt").read_text(),
        re.M,
    )[0]
    lines = [
        version,
        "by\tcallchain\t0",
        "lost\t0",
        "throttled\t0",
        "group\tdiscard\t999700\t0\t300\t0\t0\t1\tcycles\tinstructions\tpage-faults",
    ]
    for chain, (windows, *totals) in sorted(chains.items(), key=lambda item: item[0].encode()):
        products = [a * b // windows for i, a in enumerate(totals) for b in totals[i:]]
        lines.append(
            "\t".join(
                map(
                    str,
                    (
                        "sums",
                        chain,
                        "/usr/bin/program",
                        "-",
                        0,
                        windows + 1,
                        *(windows,) * 2,
                        *(0, 0),  # windows by their beginning: none in share mode discard
                        *totals,
                        *products,
                        *(0 for _ in (*totals, *products)),
                    ),
                )
            )
        )
    return "\n".join((*lines, "end\n"))


def fake_perf(
    path: Path,
    made: Table,
    change: Table | None = None,
    chains: str = "perf functions record --call-graph fp,4",
    intervals: Sequence[Table] = (),
) -> Path:
    """A perf that prints these tables.

    chains: the options that it asks for before it fails by call chain; intervals: its output of
    --interval.
    """
    path.with_suffix(".intervals").write_text(
        "".join(f"{json.dumps(one, indent=1)}\n" for one in intervals), encoding="utf-8"
    )
    for name, one in (("table", made), ("diff", change)):
        path.with_suffix(f".{name}").write_text(json.dumps(one), encoding="utf-8")
    path.with_suffix(".chains").write_text(
        f"perf functions: this lacks data that these options need: use {chains}\n", encoding="utf-8"
    )
    path.write_text(
        f"""#!/bin/sh
case "$*" in
*callchain*) cat {path.with_suffix(".chains")} >&2; exit 1 ;;
*--interval*) exec cat {path.with_suffix(".intervals")} ;;
*--before*) exec cat {path.with_suffix(".diff")} ;;
*) exec cat {path.with_suffix(".table")} ;;
esac
""",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def report(*arguments: object, **options) -> subprocess.CompletedProcess:
    """Runs functions-report, with messages apart from output."""
    return run(REPORT, *arguments, **{"stderr": subprocess.PIPE, **options})


def prepare() -> None:
    """Makes what the tests of reports need."""
    DATA.mkdir(parents=True, exist_ok=True)
    must("make", "build/report/template.html")


def page(
    name: str,
    made: Table,
    change: Table | None = None,
    intervals: Sequence[Table] = (),
    options: Sequence[str] = (),
) -> Path:
    """The page of a table that a made-up perf prints, with further options."""
    perf = fake_perf(DATA / f"{name}.perf", made, change, intervals=intervals)
    for recording in ("before.data", "after.data"):
        (DATA / recording).touch()
    inputs = [*options, *(["--diff", DATA / "before.data"] if change else [])]
    if intervals:
        inputs.append("--interval=10")
    done = report("--perf", perf, "--html", DATA / f"{name}.html", *inputs, DATA / "after.data")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", ""), done
    return DATA / f"{name}.html"
