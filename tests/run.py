#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the suites of tests/ and counts.

usage: run.py [--needs | --skip=REASON] [--all | --fast] [SUITE...]

A SUITE is the NAME of tests/SUBJECT/test_NAME.py.

A suite is a unittest module. It gets one line with its counts and its time, and a log in
build/BASE/check/NAME.log; failures and the reasons of skips are printed. Three suites run at once.
The last line is `N passed, N failed, N skipped`. With --needs, it prints instead what these suites
need: the architectures of emulated machines, and `slow` if a suite is slow. With --skip, none runs
and all are counted. With --fast, only quick suites run, which need no machine and no Linux tree.

Each suite declares its own needs, as constants of its module; all of them can be left out:

 SLOW = True             only --all runs it
 ON_BASES = "every"      --all runs this slow suite on every base of Linux, not only on 6.12;
                         "newer": on every base but 6.12
 MINUTES = 4             how long it takes: a suite with none takes less than a minute
 LOCK = "trees"          never beside another suite with this lock: it checks out or commits in the
                         Linux trees, or waits for a suite that does
 ALONE = True            it measures: after all others, never beside another suite
 MACHINES = "arm64"      the emulated machines that it needs, separated by spaces; emulator for
                         the core model
"""

import argparse
import ast
import contextlib
import io
import os
import sys
import time
import unittest
from collections.abc import Collection, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

DEFAULT = "6.12"  # base of Linux
LANES = 3  # on two processors: many suites wait for most of the time
SLOWEST = 10  # number of suites that the summary names


@dataclass(frozen=True)
class Suite:
    """The declarations of a suite."""

    path: Path
    slow: bool = False
    on_bases: str = DEFAULT
    minutes: int = 0
    lock: str = ""
    alone: bool = False
    machines: str = ""

    @property
    def name(self) -> str:
        return self.path.stem.removeprefix("test_")

    def needs(self) -> list[str]:
        return self.machines.split() + ["slow"] * self.slow

    def is_fast(self) -> bool:
        return not (self.needs() or self.minutes or self.lock)

    def is_wanted(self, base: str, everything: bool) -> bool:
        """Returns whether a run without suite names includes this one."""
        if not self.slow:
            return True
        bases = {DEFAULT: base == DEFAULT, "every": True, "newer": base != DEFAULT}
        return everything and bases[self.on_bases]


class Result(NamedTuple):
    """The result of a suite. text: the lines that are printed about it."""

    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float
    text: str


def declared(path: Path) -> Suite:
    """Reads what a suite declares, without importing it. Raises SystemExit for a wrong value."""
    kinds = {name: kind for name, kind in Suite.__annotations__.items() if name != "path"}
    found: dict[str, Any] = {}
    for line in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            name = line.targets[0].id
            if name.isupper() and name.lower() in kinds:
                try:
                    value = ast.literal_eval(line.value)
                except ValueError:
                    value = None
                if not isinstance(value, kinds[name.lower()]):
                    kind = kinds[name.lower()].__name__
                    sys.exit(f"run.py: {path}: {name} must be a constant of type {kind}")
                found[name.lower()] = value
    suite = Suite(path, **found)
    if suite.on_bases not in (DEFAULT, "every", "newer"):
        sys.exit(f"run.py: {path}: ON_BASES must be {DEFAULT}, every or newer")
    return suite


def selected(
    suites: Collection[Suite], names: list[str], base: str, everything: bool
) -> list[Suite]:
    """The suites of these names, or all that are wanted. Raises SystemExit for an unknown name."""
    there = {suite.name: suite for suite in suites}
    unknown = [name for name in names if name not in there]
    if unknown:
        listed = " ".join(sorted(there))
        sys.exit(f"run.py: no suite {' '.join(unknown)}; there is: {listed}")
    if names:
        return [there[name] for name in dict.fromkeys(names)]
    return [suite for suite in suites if suite.is_wanted(base, everything)]


def ordered(suites: Collection[Suite]) -> list[Suite]:
    """Quick suites first, so that a mistake shows early; then the longest first.

    The suites with the same lock are as long as all of them together, because they take turns.
    """

    def length(suite: Suite) -> int:
        same = [other for other in suites if other.lock == suite.lock] if suite.lock else [suite]
        return sum(other.minutes for other in same)

    return sorted(
        suites,
        key=lambda suite: (
            suite.alone,
            suite.minutes > 0,
            -length(suite) if suite.minutes else 0,
            -suite.minutes,
            suite.name,
        ),
    )


def next_suite(waiting: list[Suite], running: Collection[Suite]) -> Suite | None:
    """The first of the waiting suites that may start beside the running ones."""
    if any(suite.alone for suite in running):
        return None
    locks = {suite.lock for suite in running if suite.lock}
    for suite in waiting:
        if suite.alone:
            return None if running else suite
        if suite.lock not in locks:
            return suite
    return None


def run(suite: Suite, logs: Path) -> Result:
    """Runs one suite."""
    start = time.monotonic()
    log_file = open(logs / f"{suite.name}.log", "w", encoding="utf-8")
    with log_file as log, contextlib.redirect_stdout(io.StringIO()) as printed:
        tests = unittest.defaultTestLoader.discover(
            str(suite.path.parent), suite.path.name, str(suite.path.parents[2])
        )
        ended = unittest.TextTestRunner(log, verbosity=2).run(tests)
    return result_of(suite, ended, printed.getvalue(), time.monotonic() - start)


def result_of(suite: Suite, ended: unittest.TestResult, printed: str, seconds: float) -> Result:
    """The result of a suite. printed: the output of its tests."""
    problems = {test.id(): text for test, text in ended.failures + ended.errors}
    problems.update({test.id(): "succeeded unexpectedly" for test in ended.unexpectedSuccesses})
    failed, skipped = len(problems), len(ended.skipped)
    # a module whose set-up fails runs no test, and has one failure
    passed = max(0, ended.testsRun - failed - skipped)
    counts = f"{passed:4} passed {failed:3} failed {skipped:3} skipped {seconds:8.1f} s"
    lines = [f"  {suite.name:20} {counts}"]
    lines += [f"    {line}" for line in printed.splitlines()]
    for test, text in problems.items():
        lines.append(f"    FAILED {test}")
        lines += [f"      {line}" for line in text.rstrip().splitlines()[-25:]]
    lines += [f"    skipped {test.id()}: {reason}" for test, reason in ended.skipped]
    return Result(suite.name, passed, failed, skipped, seconds, "\n".join(lines))


class Status:
    """On a terminal, a line that is rewritten all the time: the suites done and running."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.start = time.monotonic()
        self.shown = sys.stdout.isatty()

    def show(self, done: int, running: Iterable[Suite]) -> None:
        if self.shown:
            minutes, seconds = divmod(int(time.monotonic() - self.start), 60)
            names = ", ".join(suite.name for suite in running)
            line = f"  {done} of {self.number} suites, {minutes}:{seconds:02}: {names}"
            columns = os.get_terminal_size(sys.stdout.fileno()).columns or 80
            print(f"\r\033[K{line[:columns - 1]}", end="", flush=True)

    def clear(self) -> None:
        if self.shown:
            print("\r\033[K", end="", flush=True)


def run_all(suites: list[Suite], logs: Path) -> list[Result]:
    """Runs suites in this order, some at a time; prints each result as soon as it is there."""
    waiting, results = list(suites), []
    running: dict[Future, Suite] = {}
    status = Status(len(suites))
    # a process for each suite: it inherits nothing from the suite before
    with ProcessPoolExecutor(LANES, max_tasks_per_child=1) as pool:
        while waiting or running:
            while len(running) < LANES and (suite := next_suite(waiting, running.values())):
                waiting.remove(suite)
                running[pool.submit(run, suite, logs)] = suite
            status.show(len(results), running.values())
            for future in wait(running, timeout=1, return_when=FIRST_COMPLETED).done:
                del running[future]
                results.append(future.result())
                status.clear()
                print(results[-1].text, flush=True)
    return results


def summary(results: Collection[Result]) -> str:
    """The slowest suites, and the counts of all."""
    slowest = sorted(results, key=lambda result: -result.seconds)[:SLOWEST]
    times = ", ".join(f"{result.name} {result.seconds:.0f} s" for result in slowest)
    passed, failed, skipped = (sum(result[column] for result in results) for column in (1, 2, 3))
    return f"slowest: {times}\n{passed} passed, {failed} failed, {skipped} skipped"


def main(arguments: list[str], tests: Path, base: str) -> int:
    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for option in "--needs", "--all", "--fast":
        parser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--skip", help=argparse.SUPPRESS)
    parser.add_argument("suites", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    suites = [declared(path) for path in sorted(tests.glob("*/test_*.py"))]
    if given.fast:
        suites = [suite for suite in suites if suite.is_fast()]
    wanted = ordered(selected(suites, given.suites, base, given.all))
    if given.needs:
        print(*sorted({word for suite in wanted for word in suite.needs()}))
        return 0
    if given.skip:
        for suite in wanted:
            print(f"  {suite.name:20} skipped: {given.skip}")
        print(f"0 passed, 0 failed, {len(wanted)} skipped")
        return 0
    if given.all:
        os.environ["CHECK_SLOW"] = "1"
    # sys.path must not have this folder, some of whose packages are named like packages at the top
    sys.path[0] = str(tests.parent)
    logs = tests.parent / "build" / base / "check"
    logs.mkdir(parents=True, exist_ok=True)
    results = run_all(wanted, logs)
    print(summary(results))
    failed = any(result.failed for result in results)
    return 1 if failed or not any(result.passed for result in results) else 0


if __name__ == "__main__":
    HERE = Path(__file__).resolve().parent
    sys.exit(main(sys.argv[1:], HERE, os.environ.get("BASE", DEFAULT)))
