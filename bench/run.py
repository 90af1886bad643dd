#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the experiments of bench/, keeps their figures, and prints their tables.

An experiment is a module of bench/ with a TITLE, measure(), which returns what JSON can hold, and
report(), which makes Markdown of that. A run adds to build/BASE/bench/results.json: the figures,
how many seconds they took, and the tree that was measured. --keep merges this file into
results/BASE.json, so one experiment can be measured anew. --report prints the tables of kept
figures: each figure in a document can be found there.
"""

import argparse
import importlib
import json
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))

# pylint: disable-next=wrong-import-position
from tests.harness.env import BASE, LINUX, must

USUAL = "table", "published", "cost", "resonance", "collect"
# these run if they are named
LONG = "layout", "truth", "branches", "operations"
# this one judges perf; no document has its figures, and they are not kept
JUDGES = ("skid",)
PICTURES = "pictures"  # shows, measures nothing
KEPT = TOP / "results" / f"{BASE}.json"
# the paths of the tree that the figures depend on
MEASURED = (
    "kernel",
    "include",
    "arch/arm64",
    "drivers/perf",
    "tools/perf/util",
    "tools/perf/builtin-functions.c",
)
WIDTH, DIGITS = 160, 8  # of a line, of a number

Figures = dict[str, Any]


def module_of(name: str) -> ModuleType:
    """The module of an experiment."""
    return importlib.import_module(f"bench.{name}")


def text(value: Any, indent: str = "") -> str:
    """JSON whose changes can be read: what is short enough is in one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent + line) <= WIDTH or not isinstance(value, (dict, list)):
        return line
    inner = f"{indent} "
    if isinstance(value, dict):
        begin, end = "{", "}"
        items = [f"{json.dumps(key)}: {text(part, inner)}" for key, part in value.items()]
    else:
        begin, end = "[", "]"
        items = [text(part, inner) for part in value]
    return f"{begin}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{end}"


def read(path: Path) -> Figures:
    """The figures of a file, none if there is no file."""
    found = json.loads(path.read_text()) if path.is_file() else {}
    return {"seconds": {}, "tree": {}} | found


def write(path: Path, figures: Figures) -> None:
    """Writes figures, all or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text(text(figures) + "\n")
    new.replace(path)


def merge(old: Figures, new: Figures) -> Figures:
    """The new figures, and the old ones of experiments that have no new ones."""
    names = [name for name in (*USUAL, *LONG) if name in old or name in new]
    found: Figures = {
        key: {name: part[name] for name in names if name in (part := old[key] | new[key])}
        for key in ("seconds", "tree")
    }
    return found | {name: new.get(name, old.get(name)) for name in names}


def page(name: str, result: Any, seconds: float | None) -> str:
    """The tables of an experiment."""
    module = module_of(name)
    base = "" if BASE == "6.12" else f" BASE={BASE}"
    repeat = f"Repeat: `make bench BENCH={name}{base}`"
    repeat += f" ({seconds:.0f} s)." if seconds else "."
    return f"## {module.TITLE}\n\n{module.report(result)}\n\n{repeat}\n"


def report(names: list[str]) -> None:
    """Prints the tables of kept figures, by default of all."""
    kept = read(KEPT)
    if missing := [name for name in names if name not in kept]:
        sys.exit(f"bench: {KEPT.relative_to(TOP)} has no figures of {' '.join(missing)}")
    wanted = names or [name for name in (*USUAL, *LONG) if name in kept]
    print("\n".join(page(name, kept[name], kept["seconds"].get(name)) for name in wanted), end="")


def keep(names: list[str]) -> None:
    """Merges figures into the kept ones, by default all that were measured; copies the pictures."""
    source = module_of("guest").OUT / "results.json"
    # shorter numbers
    figures = json.loads(
        source.read_text() if source.is_file() else "{}",
        parse_float=lambda number: float(f"{float(number):.{DIGITS}g}"),
    )
    made = [path for path in module_of(PICTURES).PICTURES if path.is_file()]
    wanted = names or [name for name in (*USUAL, *LONG) if name in figures]
    missing = [name for name in wanted if name not in figures]
    if missing or not wanted and not made:
        sys.exit(
            f"bench: {source} has no figures of {' '.join(missing or USUAL)}: run `make bench`"
        )
    if wanted:
        new = {key: {name: figures[key][name] for name in wanted} for key in ("seconds", "tree")}
        write(KEPT, merge(read(KEPT), new | {name: figures[name] for name in wanted}))
        print(f"  {KEPT.relative_to(TOP)}: {' '.join(wanted)}")
    for path in made:
        kept = TOP / "results" / path.name
        kept.write_bytes(path.read_bytes())
        print(f"  {kept.relative_to(TOP)}")


def measure(names: list[str]) -> None:
    """Runs experiments; writes their figures, and prints their tables."""
    path, failures = module_of("guest").OUT / "results.json", []
    tree = {
        part: must("git", "-C", LINUX, "rev-parse", f"series:{part}").strip() for part in MEASURED
    }
    pages = []
    for name in names:
        start = time.monotonic()
        try:
            result = module_of(name).measure()
        except (AssertionError, LookupError, OSError, subprocess.CalledProcessError) as error:
            failures.append(f"bench: {name}: {error}")
            continue
        spent = round(time.monotonic() - start, 1)
        print(f"  {name:58} {spent:6.1f} s", flush=True)
        pages.append(page(name, result, spent))
        if name != PICTURES:
            found = {"seconds": {name: spent}, "tree": {name: tree}, name: result}
            write(path, merge(read(path), found))
    print("".join(f"\n{each}" for each in pages), end="")
    if failures:
        sys.exit("\n".join(failures))


def main() -> None:
    usual = (*USUAL, PICTURES)
    known = (*usual, *LONG, *JUDGES)
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], epilog=f"experiments: {' '.join(known)}"
    )
    parser.add_argument(
        "names", metavar="EXPERIMENT", nargs="*", help=f"default: {' '.join(usual)}"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--report",
        action="store_true",
        help=f"measure nothing; print the tables of results/{BASE}.json",
    )
    what.add_argument(
        "--keep",
        action="store_true",
        help=f"measure nothing; merge what was measured into results/{BASE}.json",
    )
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in known]
    if unknown:
        sys.exit(f"bench: no experiment {' '.join(unknown)}; there is: {' '.join(known)}")
    if args.report:
        report(args.names)
    elif args.keep:
        keep(args.names)
    else:
        measure(args.names or list(usual))


if __name__ == "__main__":
    main()
