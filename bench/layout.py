# SPDX-License-Identifier: GPL-2.0
"""The worked example of the guide: a program, another layout of its data, and what has changed.

The program and its commands are those of the page. They run in the machine with caches, which
counts the truth. The number of cache lines that the program reads follows from its layout.
"""

import shutil
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.experiment import functions_of
from bench.guest import OUT, SHARE, program
from bench.markdown import prose
from tests.harness import guide
from tests.harness.env import PERF, TOP, in_guest, must

TITLE = "Another layout of the data"
MODEL = "small"
BUILDS = {"before": (), "after": ("-DSPLIT",)}
FUNCTIONS = "hash_prices", "count_odd", "mix"
COLUMNS = "CPI", "CM/KI", "%CY"
READ = 1000 * 8192  # prices
# bytes from one price to the next, bytes of a line of the cache
STRIDE, LINE = {"before": 64, "after": 8}, 64


def session() -> list[tuple[str, str]]:
    """Runs the commands of the page; returns each with what it has printed.

    Leaves the recordings in SHARE, each with its truth: before.data, before.true ...
    """
    source = OUT / "orders.c"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(guide.listing())
    for build, words in BUILDS.items():
        program(source, "-g", *words, output=build)
    commands = guide.examples(guide.parts()[1])
    counted = SHARE / "orders.txt"
    output = in_guest(
        f"cp {' '.join(f'/share/{build}' for build in BUILDS)} /tmp; cd /tmp; settle\n"
        + guide.commands_of(commands)
        + "cp *.data /share\n",
        *("--model", MODEL, "--truth", counted),
        share=SHARE,
    )
    for build in BUILDS:
        true = SHARE / f"{build}.true"
        must(TOP / "emulator/truth.py", true.with_suffix(".data"), counted, true)
    counted.unlink()
    texts = guide.printed(output)
    return [(command, text) for (command, _), text in zip(commands, texts, strict=True)]


def table(path: Path, *words: object) -> dict[str, dict[str, Any]]:
    """perf's row of each function."""
    # the programs were in the guest's /tmp
    with TemporaryDirectory() as folder:
        (Path(folder) / "tmp").mkdir()
        for build in BUILDS:
            shutil.copy(SHARE / build, Path(folder) / "tmp")
        rows = functions_of(path, PERF, "--symfs", folder, *words)
    return {row["symbol"]: row for row in rows}


def measure() -> dict:
    """Runs the example, and reads it."""
    session()
    return result()


def result() -> dict:
    """The values from the recordings, and the true ones."""
    tables = {
        build: [table(SHARE / f"{build}.{end}") for end in ("data", "true")] for build in BUILDS
    }
    changes = [
        table(SHARE / f"after.{end}", "--single-run", "--diff", SHARE / f"before.{end}")
        for end in ("data", "true")
    ]
    values = []
    for function, column in product(FUNCTIONS, COLUMNS):
        for which, (recorded, true) in tables.items():
            both = [each[function]["metrics"][column] for each in (recorded, true)]
            values.append((function, column, which, both, both[0].get("mark") == "weak"))
        ours, theirs = (each[function]["metrics"][column] for each in changes)
        both = [each["change"] for each in (ours, theirs)]
        values.append((function, column, "change", both, ours["significant"]))
    counted = {
        build: {event: counts["value"] for event, counts in true[FUNCTIONS[0]]["events"].items()}
        for build, (_, true) in tables.items()
    }
    return {
        "counted": counted,
        "values": [
            {
                "function": function,
                "column": column,
                "which": which,
                "recorded": recorded["value"],
                "interval": [recorded["low"], recorded["high"]],
                "true": true["value"],
                "significant" if which == "change" else "weak": mark,
            }
            for function, column, which, (recorded, true), mark in values
        ],
    }


def report(found: dict) -> str:
    """The result as Markdown."""
    about = f"""
        The worked example of the guide
        (`Documentation/admin-guide/perf/function-metrics.rst`): `{FUNCTIONS[0]}` reads
        8 bytes of each of many structures. *Before*, a structure has {STRIDE['before']} bytes, as
        many as a line of the cache. *After*, the bytes that are read have an array of their own.
        The machine with caches (`MODEL={MODEL}`) ran each build once. A row has the value that perf
        reports from event samples, its 95 % interval, and the value that the core model has
        counted. A change is the one that `--diff` reports.
    """
    lines = [
        prose(about),
        "",
        "| function | metric | | recorded | 95 % interval | true |",
        "|---|---|---|--:|--:|--:|",
    ]
    for row in found["values"]:
        sign = "+" if row["which"] == "change" else ""
        recorded, low, high, true = (
            f"{value:{sign}.2f}" for value in (row["recorded"], *row["interval"], row["true"])
        )
        names = f"{row['function']} | {row['column']} | {row['which']}"
        lines.append(f"| {names} | {recorded} | {low} to {high} | {true} |")
    misses = {build: counts["cache-misses"] for build, counts in found["counted"].items()}
    after = f"""
        The layout alone tells how often `{FUNCTIONS[0]}` misses the cache: before, once for each
        structure, and after, once for {LINE // STRIDE['after']} of them. It reads
        {READ:,} in all. The core model has counted {misses['before']:,} misses before,
        and {misses['after']:,} after.
    """
    return "\n".join([*lines, "", prose(after)])
