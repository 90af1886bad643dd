# SPDX-License-Identifier: GPL-2.0
"""`perf test`: old tests give the result that they give without our patches, new ones pass.

New tests skip, with a reason, where the kernel cannot do what they test. In the emulated machine
`make check` runs the tests that the series adds or changes; `make check-all` compares all of them.
"""

import functools
import os
import re
import shlex
import unittest
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.harness.env import BASE, LINUX, PERF, SLOW, run, vm
from tests.harness.pristine import HOST, IMAGE, KEPT, TOOLS, pristine

# beside test_series.py, which builds what this suite needs before it takes the work tree
MINUTES = 9
MACHINES = "arm64"

LINE = re.compile(r"^ *\d+(\.\d+)?: (.*?) *:(?: (Ok|Skip|FAILED!).*)?$", re.M)
PARSE_EVENTS = (
    "Test event parsing",
    "Parsing of alternate periods",
    "Parsing of bad alternate periods",
    "Alternate periods and the options of perf record",
)
OF_ATTR = ("Setup struct perf_event_attr",) if BASE == "6.12" else ()
NEED_THE_KERNEL = (
    "perf record alternate periods tests",
    "perf script generate-function-metrics test",
)
ALL_METRICS = "perf all metrics test"
# On Linux 6.12 this test never ends, because its workload takes 0.01 s. Root has another workload.
ENDLESS = (ALL_METRICS,) if BASE == "6.12" and os.getuid() else ()
# These wait for more than a minute. make check-all runs them.
WAITING = () if SLOW else ("daemon operations", "perf pipe recording and injection test")
SKIPPED_TESTS = ENDLESS + WAITING


def results(output: str) -> dict[tuple[str, str], str]:
    """The result of each test, by the names of suite and test; results of one name are joined."""
    suite, found = "", {}
    for subtest, name, result in LINE.findall(output):
        suite = suite if subtest else name
        if result:
            found[suite, name] = found.get((suite, name), "") + result
    return found


def result_of(output: str, name: str) -> str:
    """The results of the tests of one name, joined."""
    return "".join(result for (_suite, test), result in results(output).items() if test == name)


def said(output: str, name: str) -> str:
    """The output of a test of that name, and its result."""
    before, name, after = output.rpartition(f": {name} ")
    return before.rpartition("--- start ---")[2] + name + after.partition("\n")[0]


def skipping(tests: Collection[str], perf_test: Callable[..., str]) -> list[str]:
    """The option of `perf test` that leaves these tests out, if any."""
    listed = perf_test("list") if tests else ""
    numbers = [
        number for number, name in re.findall(r"^ *(\d+): (.*\S)", listed, re.M) if name in tests
    ]
    return ["--skip", ",".join(numbers)] if numbers else []


def guest_tests(*suites: str, prefix: str = "", kernel: Path | None = None) -> str:
    """The output of `perf test -v`, after other shell commands, in the emulated machine."""
    options = ("--kernel", kernel) if kernel else ()
    command = f"{prefix}\ncd /tmp\nperf test {shlex.join(('-v', *suites))} 2>&1 | cat"
    done = vm(command, *options, share=KEPT, timeout=3600)
    if done.returncode:
        raise AssertionError(f"perf test did not end: {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def host_tests(perf: Path, tools: Path, *suites: str, skipped: Collection[str] = ()) -> str:
    """The output of `perf test` with one perf and the tools/ of its tree, on this machine."""
    folder = tools / "perf"

    def perf_test(*words: str) -> str:
        return run(
            perf,
            f"--exec-path={folder}",
            "test",
            *words,
            cwd=folder,
            env={"PATH": f"{perf.parent}:/usr/bin:/bin:/usr/sbin:/sbin"},
        ).stdout

    return perf_test("-v", *skipping(skipped, perf_test), *suites)


@functools.cache
def patched_in_guest() -> str:
    """The output of our perf's tests in the emulated machine; see above which."""
    return guest_tests(*(() if SLOW else (*OF_ATTR, *PARSE_EVENTS, *new_tests())))


@functools.cache
def patched_on_host() -> str:
    """The output of our perf's tests on this machine."""
    return host_tests(PERF, LINUX / "tools", skipped=SKIPPED_TESTS)


def pristine_on_host() -> str:
    """The same of the perf without our patches: its output is kept, as long as that perf."""
    kept = KEPT / ("host-all.tests" if SLOW else "host.tests")
    if not kept.exists() or kept.stat().st_mtime < HOST.stat().st_mtime:
        kept.write_text(host_tests(HOST, TOOLS, skipped=SKIPPED_TESTS))
    return kept.read_text()


def new_files(suffix: str) -> list[str]:
    """Texts of the files of tests that the series adds."""
    names = run(
        "git",
        "-C",
        LINUX,
        "diff",
        "--diff-filter=A",
        "--name-only",
        "pristine..series",
        "--",
        "tools/perf/tests",
    ).stdout.split()
    return [(LINUX / name).read_text() for name in names if name.endswith(suffix)]


def new_c_tests() -> list[str]:
    """Descriptions of the tests in C that the series adds."""
    return [
        name
        for text in new_files(".c")
        for name in re.findall(r'^(?:\tTEST_CASE|DEFINE_SUITE)\w*\("([^"]+)"', text, re.M)
    ]


def new_tests() -> list[str]:
    """Descriptions of the shell tests that the series adds, as `perf test` shows them."""
    lines = (text.splitlines() for text in new_files(".sh"))
    return [
        next(line[1:].strip() for line in text[1:] if not re.match(r"# SPDX|#$", line))
        for text in lines
    ]


def setUpModule() -> None:
    pristine()


class BeforeAndAfter(unittest.TestCase):
    """The tests that were there before the series."""

    maxDiff = None

    def compare(
        self, old: dict, new: dict, before: functools.partial, after: Callable[..., str]
    ) -> None:
        """Each test that is not skipped gives the same result with our patches and without them.

        Some of perf's tests depend on timing: suites in which results differ are run again, up to
        three times, until both have a result in common.
        """
        self.assertGreater(len(old), 100)
        seen = {
            test: ({result}, {new.get(test)})
            for test, result in old.items()
            if test[0] not in before.keywords.get("skipped", ())
        }
        for rerun in range(4):
            different = {test: pair for test, pair in seen.items() if not pair[0] & pair[1]}
            if not different or rerun == 3:
                break
            suites = sorted({suite for suite, _name in different})
            again = results(before(*suites)), results(after(*suites))
            for test, pair in different.items():
                for results_so_far, more in zip(pair, again):
                    # only a test that ran again has another result
                    results_so_far.update({more[test]} if test in more else ())
        self.assertEqual(different, {}, "without the patches, with them")

    def test_in_the_emulated_machine(self):
        if not SLOW:
            self.skipTest("make check-all compares all tests in the emulated machine")
        before = functools.partial(
            guest_tests, prefix="rm -r /usr/libexec/perf-core; cp -r /share/root/. /"
        )
        # two machines need two processors
        with ThreadPoolExecutor() as pool:
            old, new = pool.map(lambda tests: results(tests()), (before, patched_in_guest))
        self.compare(old, new, before, guest_tests)

    def test_on_this_machine(self):
        before = functools.partial(host_tests, HOST, TOOLS, skipped=SKIPPED_TESTS)
        # both wait for most of the time
        with ThreadPoolExecutor() as pool:
            old, new = pool.map(lambda tests: results(tests()), (pristine_on_host, patched_on_host))
        self.compare(old, new, before, functools.partial(host_tests, PERF, LINUX / "tools"))


class NewTests(unittest.TestCase):
    def test_pass_in_the_emulated_machine(self):
        output = patched_in_guest()
        for name in (*OF_ATTR, *PARSE_EVENTS, *new_tests()):
            self.assertEqual(result_of(output, name), "Ok", said(output, name))

    def test_pass_or_skip_on_this_machine(self):
        """The old suites are only compared: some fail here, for example without tracefs."""
        self.assertGreater(len(new_c_tests()), 1)
        output = patched_on_host()
        for name in [*new_tests(), *new_c_tests()]:
            self.assertIn(result_of(output, name), ("Ok", "Skip"), said(output, name))

    def test_skip_with_the_reason_on_a_kernel_without_the_feature(self):
        for name in NEED_THE_KERNEL:
            output = guest_tests("-v", name, kernel=IMAGE)
            self.assertEqual(result_of(output, name), "Skip", output)
            self.assertIn("does not know alternate sample periods", output)
