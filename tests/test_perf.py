# SPDX-License-Identifier: GPL-2.0
"""`perf test`: what was there before gives the result it gives without our
patches, what is new passes, and skips with the reason where the kernel cannot."""

import re
import unittest
from collections.abc import Callable
from pathlib import Path

from env import LINUX, PERF, run, vm
from pristine import HOST, IMAGE, KEPT, WALK, pristine

RESULT = re.compile(r"^ *\d+(?:\.\d+)?: (.*?) +: (Ok|Skip|FAILED!)(.*)$", re.M)
ATTR = "Setup struct perf_event_attr"
PARSE_EVENTS = ("Test event parsing", "Parsing of alternate periods", "Parsing of bad alternate periods",
                "Alternate periods and the options of perf record")
NEED_THE_KERNEL = ("perf record alternate periods tests", "perf script generate-function-metrics test")
LAST: dict[str, str] = {}       # outputs of our perf's tests, which take minutes
RECORD = "perf record -o /tmp/x -e cycles/period=100000,alt-period=300/u -- true"


def results(output: str) -> dict[str, str]:
    """Result of each test and subtest by name; those of one name are joined."""
    names: dict[str, str] = {}
    for name, result, _reason in RESULT.findall(output):
        names[name] = names.get(name, "") + result
    return names


def guest_tests(prefix: str = "", tests: str = "", kernel: Path | None = None) -> str:
    """The output of `perf test -v`, after other shell commands, in the emulated machine."""
    options = ("--kernel", kernel) if kernel else ()
    return vm(f"{prefix}\ncd /tmp\nperf test -v {tests} 2>&1 | cat", *options, share=KEPT, timeout=1200).stdout


def patched_in_guest() -> str:
    """What our perf's tests say in the emulated machine, for later tests as well."""
    LAST["guest"] = guest_tests()
    return LAST["guest"]


def host_tests(perf: Path, tree: Path) -> str:
    """The output of `perf test` with one perf and its tree, on this machine."""
    folder = tree / "tools/perf"
    return run(perf, "--exec-path", folder, "test", cwd=folder,
               env={"PATH": f"{perf.parent}:/usr/bin:/bin:/usr/sbin:/sbin"}).stdout


def patched_on_host() -> str:
    """What our perf's tests say on this machine, for later tests as well."""
    LAST["host"] = host_tests(PERF, LINUX)
    return LAST["host"]


def new_tests() -> list[str]:
    """Descriptions of the shell tests that the series adds, as `perf test` shows them."""
    names = run("git", "-C", LINUX, "diff", "--diff-filter=A", "--name-only", "pristine..series", "--",
                "tools/perf/tests/shell").stdout.split()
    lines = ((LINUX / name).read_text().splitlines() for name in names if name.endswith(".sh"))
    return [next(line[1:].strip() for line in text[1:] if not re.match(r"# SPDX|#$", line)) for text in lines]


def setUpModule() -> None:
    pristine()


class BeforeAndAfter(unittest.TestCase):
    """Every test that was there before."""

    maxDiff = None

    def compare(self, before: Callable[[], str], after: Callable[[], str]) -> None:
        """Each test gives a result with our patches that it gives without them.

        Some of perf's tests depend on the moment: where a run of each differs,
        both are run again, up to three times.
        """
        old: dict[str, set[str]] = {}
        new: dict[str, set[str]] = {}
        different: dict[str, object] = {"not": "run"}
        for _ in range(3):
            for seen, output in ((old, before()), (new, after())):
                for name, result in results(output).items():
                    seen.setdefault(name, set()).add(result)
            different = {name: (seen, new.get(name)) for name, seen in old.items() if not seen & new.get(name, set())}
            if not different:
                break
        self.assertGreater(len(old), 100)
        self.assertEqual(different, {})

    def test_in_the_emulated_machine(self):
        old = "cp -r /share/root /tmp/old; export PATH=/tmp/old/usr/bin:$PATH PERF_EXEC_PATH=/tmp/old/usr/libexec/perf-core"
        self.compare(lambda: guest_tests(old), patched_in_guest)

    def test_on_this_machine(self):
        self.compare(lambda: host_tests(HOST, WALK), patched_on_host)

    def test_new_ones_pass_or_skip_on_this_machine(self):
        for name in [ATTR, *PARSE_EVENTS, *new_tests()]:
            self.assertIn(results(LAST.get("host") or patched_on_host()).get(name), ("Ok", "Skip"), name)


class NewTests(unittest.TestCase):

    def test_pass_in_the_emulated_machine(self):
        found = results(LAST.get("guest") or patched_in_guest())
        for name in [ATTR, *PARSE_EVENTS, *new_tests()]:
            self.assertEqual(found.get(name), "Ok", name)

    def test_skip_with_the_reason_on_a_kernel_without_the_feature(self):
        for name in NEED_THE_KERNEL:
            output = guest_tests(kernel=IMAGE, tests=f"'{name}'")
            self.assertEqual(results(output).get(name), "Skip", output)
            self.assertIn("does not know alternate sample periods", output)

    def test_record_says_what_such_a_kernel_lacks(self):
        done = vm(RECORD, "--kernel", IMAGE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("does not know alternate sample periods", done.stdout)


if __name__ == "__main__":
    unittest.main()
