#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the suites of tests/ and counts.

usage: run.py [--all] [SUITE...]        a suite is the NAME of tests/test_NAME.py

Each suite is a unittest module: one line with its counts and its time, and a
log in build/check/NAME.log; failures and the reasons of skips are printed. The
last line is `N passed, N failed, N skipped`.
"""

import os
import sys
import time
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
LOGS = TESTS.parent / "build/check"
# `make check` runs these: cheap ones first, so that a mistake is told early.
CHECK = ("lint", "function_metrics", "functions", "metrics", "intervals", "diff", "report", "page", "identity", "browser", "terms",
         "verbs", "benchmark", "recording", "compat", "demo", "guide", "cluster", "store", "syscalls", "machines", "fuzz", "series",
         "perf", "kunit", "reproduce")
# `make check-all` runs these too: they take longer, or need more packages.
ALL = ("docs", "versions", "parser_fuzz", "machines_all", "bench", "builds", "stress", "deb")


def suites(names: list[str]) -> list[str]:
    """The suites to run, in order. Raises SystemExit for one that does not exist."""
    every = names[:1] == ["--all"]
    names = names[every:]
    if every:
        os.environ["CHECK_ALL"] = "1"
    there = sorted(path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py"))
    unknown = [name for name in names if name not in there]
    if unknown:
        sys.exit(f"run.py: no suite {' '.join(unknown)}; there is: {' '.join(there)}")
    wanted = names or [name for name in there if every or name in CHECK]
    return sorted(wanted, key=(CHECK + ALL).index)


def run(name: str) -> tuple[int, int, int]:
    """Runs one suite; returns how many tests passed, failed and were skipped."""
    start = time.monotonic()
    with open(LOGS / f"{name}.log", "w", encoding="utf-8") as log:
        tests = unittest.defaultTestLoader.loadTestsFromName(f"test_{name}")
        result = unittest.TextTestRunner(log, verbosity=2).run(tests)
    problems = {test.id(): text for test, text in result.failures + result.errors}
    problems.update({test.id(): "succeeded unexpectedly" for test in result.unexpectedSuccesses})
    failed, skipped = len(problems), len(result.skipped)
    # a module whose set-up fails has run no test, and one failure
    passed = max(0, result.testsRun - failed - skipped)
    print(f"  {name:20} {passed:4} passed {failed:3} failed {skipped:3} skipped {time.monotonic() - start:8.1f} s", flush=True)
    for test, text in problems.items():
        print(f"    FAILED {test}\n" + "\n".join(f"      {line}" for line in text.rstrip().splitlines()[-25:]), flush=True)
    for test, reason in result.skipped:
        print(f"    skipped {test.id()}: {reason}", flush=True)
    return passed, failed, skipped


def main() -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(TESTS))
    counts = [run(name) for name in suites(sys.argv[1:])]
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
