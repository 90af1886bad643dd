#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the suites of tests/ and counts.

usage: run.py [--all] [SUITE...]        a suite is the NAME of tests/SUBJECT/test_NAME.py

Each suite is a unittest module: one line with its counts and its time, and a
log in build/BASE/check/NAME.log; failures and the reasons of skips are printed. Two
run at a time. The last line is `N passed, N failed, N skipped`.
"""

import os
import sys
import time
import unittest
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parent
BASE = os.environ.get("BASE", "6.12")
LOGS = TESTS.parent / "build" / BASE / "check"
# `make check` runs these: cheap ones first, so that a mistake is told early.
CHECK = (
    "lint",
    "function_metrics",
    "functions",
    "metrics",
    "intervals",
    "diff",
    "report",
    "page",
    "identity",
    "browser",
    "terms",
    "stitched_lbr",
    "verbs",
    "benchmark",
    "recording",
    "compat",
    "demo",
    "guide",
    "cluster",
    "store",
    "syscalls",
    "machines",
    "fuzz",
    "series",
    "perf",
    "module",
    "kunit",
    "reproduce",
)
# `make check-all` runs these too: they take longer, or need more packages.
ALL = (
    "docs",
    "versions",
    "parser_fuzz",
    "machines_all",
    "module_all",
    "bench",
    "builds",
    "stress",
    "deb",
    "matrix",
)
# ... and these on another base of Linux than 6.12: what the bases share is tested once.
NEWER = ("docs", "machines_all", "builds", "vpa_dtl")
# They check out or commit in the Linux trees: one after the other, beside the rest.
IN_TURN = ("verbs", "series", "module", "kunit", "versions", "builds", "matrix")
# It measures: after the rest.
ALONE = ("bench",)


def suites(names: list[str]) -> list[str]:
    """The suites to run, in order. Raises SystemExit for one that does not exist."""
    every = names[:1] == ["--all"]
    names = names[every:]
    if every:
        os.environ["CHECK_ALL"] = "1"
    there = sorted(path.stem.removeprefix("test_") for path in TESTS.glob("*/test_*.py"))
    unknown = [name for name in names if name not in there]
    if unknown:
        sys.exit(f"run.py: no suite {' '.join(unknown)}; there is: {' '.join(there)}")
    more = ALL if BASE == "6.12" else NEWER
    wanted = names or CHECK + more * every
    return sorted(wanted, key=(CHECK + ALL + NEWER).index)


def subject(name: str) -> str:
    """The folder that a suite is in."""
    (path,) = TESTS.glob(f"*/test_{name}.py")
    return path.parent.name


def run(name: str) -> tuple[int, int, int]:
    """Runs one suite and says how it ended; returns how many tests passed, failed and were skipped."""
    start = time.monotonic()
    with open(LOGS / f"{name}.log", "w", encoding="utf-8") as log:
        tests = unittest.defaultTestLoader.loadTestsFromName(f"tests.{subject(name)}.test_{name}")
        result = unittest.TextTestRunner(log, verbosity=2).run(tests)
    problems = {test.id(): text for test, text in result.failures + result.errors}
    problems.update({test.id(): "succeeded unexpectedly" for test in result.unexpectedSuccesses})
    failed, skipped = len(problems), len(result.skipped)
    # a module whose set-up fails has run no test, and one failure
    passed = max(0, result.testsRun - failed - skipped)
    lines = [
        f"  {name:20} {passed:4} passed {failed:3} failed {skipped:3} skipped {time.monotonic() - start:8.1f} s"
    ]
    for test, text in problems.items():
        lines += [
            f"    FAILED {test}",
            *(f"      {line}" for line in text.rstrip().splitlines()[-25:]),
        ]
    lines += [f"    skipped {test.id()}: {reason}" for test, reason in result.skipped]
    print("\n".join(lines), flush=True)
    return passed, failed, skipped


def main() -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(TESTS.parent))
    names = suites(sys.argv[1:])
    with ProcessPoolExecutor(1) as one, ProcessPoolExecutor(1) as other:
        lanes = (
            one.map(run, [name for name in names if name in IN_TURN]),
            other.map(run, [name for name in names if name not in IN_TURN + ALONE]),
        )
        counts = [count for lane in lanes for count in lane]
    counts += [run(name) for name in names if name in ALONE]
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
