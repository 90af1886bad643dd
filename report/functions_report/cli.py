# SPDX-License-Identifier: GPL-2.0
"""The command line."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from . import cluster, store, sums
from .sums import Problem

BUILT = Path(__file__).resolve().parents[2] / "build/perf/perf"
# options of perf functions report that choose what is counted, with their argument if they take one
FILTERS = {"by": "KEY", "inline": "", "share": "MODE", "comm": "COMM", "pid": "PID", "tid": "TID", "dso": "DSO", "symbol": "SYMBOL",
           "time": "START,STOP", "vmlinux": "FILE", "kallsyms": "FILE", "symfs": "DIRECTORY", "addr2line": "PATH",
           "full-source-path": "", "force": ""}
EXAMPLES = """
examples:
  functions-report host*.data
  functions-report --cluster tcp://scheduler:8786 --sums all.sums /shared/host*.data
  functions-report --store postgresql://db/profile --build v1.2 --host web7 perf.data
  functions-report --from postgresql://db/profile --build v1.2 --since 2026-11-01 --until 2026-12-01
"""


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="functions-report", description="Metrics per function of recordings and sums files.",
                                     epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("inputs", metavar="INPUT", nargs="*", help="recordings and sums files (default: perf.data)")
    parser.add_argument("--perf", default=str(BUILT) if BUILT.exists() else "perf", help="perf (default: %(default)s)")
    parser.add_argument("--sums", metavar="FILE", type=Path, help="write the sums to this file instead of printing a table")
    filters = parser.add_argument_group("options of perf functions report, see perf-functions(1)")
    for name, argument in FILTERS.items():
        filters.add_argument(f"--{name}", **({"metavar": argument} if argument else {"action": "store_true"}))
    cluster.add_arguments(parser)
    store.add_arguments(parser)
    args = parser.parse_intermixed_args(argv)
    cluster.separate(args)
    store.check_arguments(args, parser)
    args.inputs = args.inputs or ["perf.data"]
    args.perf_options = []
    for name, argument in FILTERS.items():
        value = getattr(args, name.replace("-", "_"))
        if value:
            args.perf_options += [f"--{name}", value] if argument else [f"--{name}"]
    return args


def gather(args: argparse.Namespace) -> bytes:
    """The sums that are asked for."""
    if args.source:
        return store.ask(args)
    if args.cluster is not None:
        return cluster.collect(args.inputs, args.cluster, args)
    return sums.merge(args.perf, args.inputs, args.perf_options)


def show(args: argparse.Namespace, text: bytes) -> int:
    """What is to be done with the sums."""
    if args.store:
        store.keep(args, text, args.inputs)
    if args.sums:
        sums.write(args.sums, text)
    if args.sums or args.store:
        return 0
    with tempfile.NamedTemporaryFile(suffix=".sums") as file:
        file.write(text)
        file.flush()
        return subprocess.run([args.perf, "functions", "report", file.name], check=False).returncode


def main(argv: list[str] | None = None) -> int:
    """Run it; returns the exit status."""
    args = parse(argv)
    try:
        return show(args, gather(args))
    except (Problem, ValueError) as problem:
        print(f"functions-report: {problem}", file=sys.stderr)
        return 1
