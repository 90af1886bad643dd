# SPDX-License-Identifier: GPL-2.0
"""Makes up tables as `perf functions report -j` prints them, sums files, a fake perf, and pages."""

import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.harness import sumsfile
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
PERCENT, PER_1000 = "%", "1/KI"
COLUMNS = (
    ("#", "windows", "", "count", 0, "windows", None, 1),
    ("CPI", "cycles per instruction", "", "rate", 1, "cycles", "instructions", 1),
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
)
KEYS = ("name", "meaning", "unit", "role", "digits")
SET = {
    "source": "windows",
    "events": [{"name": name, "precise": False, "scale": 1} for name in EVENTS],
    "groups": [
        {"period": 999700, "freq": 0, "window": 300, "burst": 0, "jitter": 12, "inherit": True}
    ],
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
    windows = rng.randrange(int(rng.paretovariate(0.6)) % 100000 + 2)
    cycles = 300 * windows
    instructions = int(cycles / rng.uniform(0.25, 20))
    totals = {
        "cycles": cycles,
        "branch-misses": int(instructions * rng.choice((0, 0.001, 0.03))),
        "cache-misses": int(instructions * rng.random() ** 4 / 5),
        "instructions": instructions,
    }
    return {
        "observations": {"windows": windows},
        "events": {
            event: {"value": count, "error": count**0.5} for event, count in totals.items()
        },
    }


def add_values(row: Table, whole: dict[str, int]) -> None:
    """Adds metrics, with intervals that are narrower the more windows there are."""
    known = {event: one["value"] for event, one in row["events"].items()}
    known |= row["observations"]
    row["metrics"] = {}
    for name, *_, event, per, scale in COLUMNS:
        divisor = 1 if per is None else whole[event] if per == "total" else known[per]
        row["metrics"][name] = None
        if not divisor:
            continue
        row["metrics"][name] = one = {"value": scale * known[event] / divisor}
        if per is None:
            continue
        half = one["value"] / max(1, known["windows"]) ** 0.5
        one |= {"low": one["value"] - half, "high": one["value"] + half, "error": half / 1.96}
        if one["value"] and half > 0.25 * one["value"]:
            one["mark"] = "weak" if half >= 0.5 * one["value"] else "rough"


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
                **({} if name else {"address": hex(4096 * i)}),
                **counts(rng),
            }
        )
    whole = {event: sum(row["events"][event]["value"] for row in rows) for event in EVENTS}
    for row in rows:
        row["label"] = name_of(row)
        add_values(row, whole)
    rows.sort(key=lambda row: -value_of(row, "%CY"))
    return {
        "version": 3,
        "by": "symbol",
        "inline": False,
        "sets": [SET],
        "throttled": 3,
        "lost": 0,
        "observations": {"windows": sum(row["observations"]["windows"] for row in rows)},
        "events": [{"name": event, "unit": "events"} for event in EVENTS],
        "width": "cycles",
        "columns": columns(),
        "functions": rows,
    }


def value_of(row: Table, name: str) -> float:
    """The value of a metric in a row, 0 if there is none."""
    return row["metrics"][name]["value"] if row["metrics"].get(name) else 0


def name_of(row: Table) -> str:
    """The label of a row: its symbol, or where it is."""
    return row["symbol"] or f"{row['address']} [{Path(row['dso']).name}]"


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
            "role": "rate",
            "digits": 1,
            **({"parent": above} if above else {"divides": "slots"}),
        }
        for name, above in names.items()
    ]
    for row in made["functions"]:
        for above in dict.fromkeys(names.values()):
            below = [name for name in names if names[name] == above]
            parts = [rng.random() ** 2 + 0.01 for _ in below]
            whole = value_of(row, above) if above else 100
            for name, part in zip(below, parts):
                value = whole * part / sum(parts)
                row["metrics"][name] = {"value": value, "low": 0.9 * value, "high": 1.1 * value}
                number += 1
                if weak and not number % weak:
                    row["metrics"][name]["mark"] = "weak"


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
            change = half = None
            if a and b:
                change = {"value": b["value"] - a["value"]}
            if change and column["role"] != "count":
                half = 0.1 * (abs(a["value"]) + abs(b["value"]))
                change |= {"low": change["value"] - half, "high": change["value"] + half}
            metrics[key] = {
                "before": a,
                "after": b,
                "change": change,
                "significant": half is not None and abs(change["value"]) > half,
            }
        rows.append(
            {
                "label": row["label"],
                "symbol": name,
                "dso": row["dso"],
                "status": status,
                "metrics": metrics,
            }
        )
    rows.sort(key=lambda row: -sum(one["significant"] for one in row["metrics"].values()))
    return {
        "version": 3,
        "by": "symbol",
        "inline": False,
        **{
            key: {"sets": one["sets"], "throttled": one["throttled"], "lost": one["lost"]}
            for key, one in (("before", before), ("after", after))
        },
        "columns": before["columns"],
        "functions": rows,
    }


def chain_sums(chains: dict[str, tuple[int, ...]]) -> str:
    """A sums file by call chain: (windows, cycles, instructions, page-faults).

    All windows of a chain are alike. As many samples of cycles tell the shares.
    """
    events = ("cycles", "instructions", "page-faults")
    windows = {
        chain: [[number / windows for number in totals]] * windows
        for chain, (windows, *totals) in chains.items()
    }
    samples = {chain: [cycles for cycles, *_ in windows] for chain, windows in windows.items()}
    return "".join(
        (
            sumsfile.HEAD.replace("symbol", "callchain"),
            sumsfile.window_set(events, windows, even=2),
            sumsfile.sample_set({"cycles": samples}, even=2, hidden=True),
            "end\n",
        )
    )


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
