# SPDX-License-Identifier: GPL-2.0
"""`perf test`: what was there before gives the result it gives without our
patches, what is new passes, and skips with the reason where the kernel cannot."""

import functools
import re
import unittest
from pathlib import Path

from env import LINUX, PERF, run, vm
from pristine import HOST, IMAGE, KEPT, WALK, pristine

RESULT = re.compile(r"^ *\d+(?:\.\d+)?: (.*?) +: (Ok|Skip|FAILED!)(.*)$", re.M)
ATTR = "Setup struct perf_event_attr"
PARSE_EVENTS = ("Test event parsing", "Parsing of alternate periods", "Parsing of bad alternate periods",
                "Alternate periods and the options of perf record")
NEED_THE_KERNEL = ("perf record alternate periods tests", "perf script generate-function-metrics test")
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


@functools.cache
def patched_in_guest() -> str:
    """What our perf's tests say in the emulated machine."""
    return guest_tests()


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

    def compare(self, before: str, after: str) -> None:
        old, new = results(before), results(after)
        self.assertGreater(len(old), 100)
        self.assertEqual(old, {name: new.get(name) for name in old})

    def test_in_the_emulated_machine(self):
        old = "cp -r /share/root /tmp/old; export PATH=/tmp/old/usr/bin:$PATH PERF_EXEC_PATH=/tmp/old/usr/libexec/perf-core"
        self.compare(guest_tests(old), patched_in_guest())

    def test_on_this_machine(self):
        outputs = [run(perf, "--exec-path", tree / "tools/perf", "test", cwd=tree / "tools/perf",
                       env={"PATH": f"{perf.parent}:/usr/bin:/bin:/usr/sbin:/sbin"}).stdout
                   for perf, tree in ((HOST, WALK), (PERF, LINUX))]
        self.compare(*outputs)
        for name in [ATTR, *PARSE_EVENTS, *new_tests()]:
            self.assertIn(results(outputs[1]).get(name), ("Ok", "Skip"), name)


class NewTests(unittest.TestCase):

    def test_pass_in_the_emulated_machine(self):
        found = results(patched_in_guest())
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
