# SPDX-License-Identifier: GPL-2.0
"""tests/run.py: the suites that it runs, their order, and its output."""

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from tests import run as runner
from tests.harness.env import TOP

PASSING = """
import unittest

class Case(unittest.TestCase):
    def test_it(self):
        pass
"""
FAILING = PASSING.replace("pass\n", "self.assertEqual(6 * 9, 42)\n")
SKIPPING = PASSING.replace("pass\n", "self.skipTest('no such processor')\n")
# a suite whose declaration is true, and which takes half a second
SLEEPING = """
import time
import unittest
from pathlib import Path

class Case(unittest.TestCase):
    def test_it(self):
        with open("order", "a", encoding="utf-8") as order:
            order.write(f"begin {__name__}\\n")
        time.sleep(0.5)
        with open("order", "a", encoding="utf-8") as order:
            order.write(f"end {__name__}\\n")
"""


class Copy(unittest.TestCase):
    """A copy of run.py with made-up suites."""

    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="run-"))
        self.addCleanup(shutil.rmtree, self.dir)
        (self.dir / "tests/some").mkdir(parents=True)
        shutil.copy(TOP / "tests/run.py", self.dir / "tests")
        for folder in "tests", "tests/some":
            (self.dir / folder / "__init__.py").touch()

    def suite(self, name: str, declared: str = "", body: str = PASSING) -> None:
        text = textwrap.dedent(declared) + body
        (self.dir / f"tests/some/test_{name}.py").write_text(text, encoding="utf-8")

    def command(self, *words: str) -> list[str]:
        return [sys.executable, str(self.dir / "tests/run.py"), *words]

    def run_suites(self, *words: str, base: str = "6.12") -> subprocess.CompletedProcess:
        environment = {name: value for name, value in os.environ.items() if name != "CHECK_SLOW"}
        return subprocess.run(
            self.command(*words),
            cwd=self.dir,
            env={**environment, "BASE": base},
            capture_output=True,
            text=True,
            check=False,
        )


class Selection(Copy):
    """The suites that run."""

    def ran(self, *words: str, base: str = "6.12") -> list[str]:
        """The names of the suites that have run, sorted."""
        done = self.run_suites(*words, base=base)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return sorted(re.findall(r"^  (\w+) +\d+ passed", done.stdout, re.M))

    def test_slow_suites_are_for_all(self):
        self.suite("plain")
        self.suite("once", "SLOW = True")
        self.suite("both", 'SLOW = True\nON_BASES = "every"')
        self.suite("newer", 'SLOW = True\nON_BASES = "newer"')
        self.assertEqual(self.ran(), ["plain"])
        self.assertEqual(self.ran(base="9.9"), ["plain"])
        self.assertEqual(self.ran("--all"), ["both", "once", "plain"])
        self.assertEqual(self.ran("--all", base="9.9"), ["both", "newer", "plain"])

    def test_a_name_is_enough(self):
        self.suite("plain")
        self.suite("once", "SLOW = True")
        self.assertEqual(self.ran("once"), ["once"])
        self.assertEqual(self.ran("--all", "plain"), ["plain"])

    def test_all_is_told_to_the_suites(self):
        body = PASSING.replace("pass\n", 'self.assertNotIn("CHECK_SLOW", __import__("os").environ)')
        self.suite("environment", body=body)
        self.assertEqual(self.run_suites().returncode, 0)
        self.assertEqual(self.run_suites("--all").returncode, 1)

    def test_unknown_name(self):
        self.suite("one")
        self.suite("two")
        done = self.run_suites("one", "three", "four")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "run.py: no suite three four; there is: one two\n")

    def test_needs(self):
        self.suite("one", 'MACHINES = "arm64 x86_64"')
        self.suite("two", 'SLOW = True\nMACHINES = "ppc64le arm64"')
        self.suite("three")
        for words, needs in (
            ((), "arm64 x86_64"),
            (("--all",), "arm64 ppc64le slow x86_64"),
            (("two",), "arm64 ppc64le slow"),
            (("three",), ""),
        ):
            done = self.run_suites("--needs", *words)
            self.assertEqual((done.returncode, done.stdout), (0, f"{needs}\n"))

    def test_wrong_declaration(self):
        for declared, message in (
            ("MINUTES = 'two'", "MINUTES must be a constant of type int"),
            ("LOCK = str(1)", "LOCK must be a constant of type str"),
            ("ON_BASES = 'all'", "ON_BASES must be 6.12, every or newer"),
        ):
            self.suite("wrong", declared)
            done = self.run_suites()
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, rf"\Arun.py: \S+/test_wrong.py: {message}\n\Z")


class Results(Copy):
    """The lines that are printed about suites."""

    def test_failure(self):
        self.suite("bad", body=FAILING)
        self.suite("broken", body="raise OSError('no disk')\n")
        self.suite("good")
        done = self.run_suites()
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("    FAILED tests.some.test_bad.Case.test_it\n", done.stdout)
        self.assertIn("AssertionError: 54 != 42\n", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^    FAILED .*test_broken$")
        self.assertIn("OSError: no disk\n", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 2 failed, 0 skipped")
        log = (self.dir / "build/6.12/check/bad.log").read_text(encoding="utf-8")
        self.assertIn("test_it (tests.some.test_bad.Case.test_it) ... FAIL\n", log)

    def test_skip(self):
        self.suite("good")
        self.suite("skipping", body=SKIPPING)
        done = self.run_suites()
        self.assertEqual(done.returncode, 0)
        self.assertIn(
            "    skipped tests.some.test_skipping.Case.test_it: no such processor\n", done.stdout
        )
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 0 failed, 1 skipped")

    def test_nothing_passed(self):
        """A run that tests nothing is a failure."""
        self.suite("skipping", body=SKIPPING)
        self.assertEqual(self.run_suites().returncode, 1)

    def test_what_a_test_prints(self):
        self.suite("telling", body=PASSING.replace("pass\n", 'print("93 of 100")\n'))
        self.assertRegex(self.run_suites().stdout, r"\A  telling .* s\n    93 of 100\nslowest: ")

    def test_slowest(self):
        for number in range(12):
            body = PASSING.replace("pass\n", f"__import__('time').sleep({number / 10})\n")
            self.suite(f"take{number}", body=body)
        *_, slowest, _counts = self.run_suites().stdout.splitlines()
        self.assertRegex(slowest, r"^slowest: (take\d+ \d+ s, ){9}take\d+ \d+ s$")
        names = re.findall(r"take\d+", slowest)
        self.assertEqual((names[:3], len(set(names))), (["take11", "take10", "take9"], 10))

    def test_status_on_a_terminal(self):
        self.suite("one", "MINUTES = 2", SLEEPING)
        self.suite("two", "MINUTES = 1", SLEEPING)
        here, there = pty.openpty()
        with subprocess.Popen(self.command(), cwd=self.dir, stdout=there) as process:
            os.close(there)
            seen = b""
            try:
                while part := os.read(here, 4096):
                    seen += part
            except OSError:  # it has ended
                pass
            os.close(here)
        self.assertEqual(process.returncode, 0)
        text = seen.decode()
        self.assertIn("\r\x1b[K  0 of 2 suites, 0:00: one, two", text)
        self.assertRegex(text, r"\r\x1b\[K  1 of 2 suites, 0:0\d: (one|two)\r")
        # the text that stays on the screen
        left = re.sub(r"[^\n]*\r\x1b\[K", "", text.replace("\r\n", "\n"))
        self.assertRegex(left, r"\A(  (one|two) .* s\n){2}slowest: .*\n2 passed, .*\n\Z")


class Together(Copy):
    """The suites that run beside others."""

    def order(self) -> list[str]:
        """The order in which suites began and ended."""
        self.assertEqual(self.run_suites().returncode, 0)
        lines = (self.dir / "order").read_text(encoding="utf-8")
        return lines.replace("tests.some.test_", "").splitlines()

    def test_two_run_at_a_time(self):
        self.suite("one", body=SLEEPING)
        self.suite("two", body=SLEEPING)
        order = self.order()
        self.assertEqual([line.split()[0] for line in order], ["begin", "begin", "end", "end"])

    def test_suites_with_a_lock_take_turns(self):
        self.suite("one", 'LOCK = "trees"', SLEEPING)
        self.suite("two", 'LOCK = "trees"', SLEEPING)
        self.assertEqual(self.order(), ["begin one", "end one", "begin two", "end two"])

    def test_measurements_run_alone_and_last(self):
        self.suite("measure", "ALONE = True", SLEEPING)
        self.suite("other", "MINUTES = 1", SLEEPING)
        self.assertEqual(self.order(), ["begin other", "end other", "begin measure", "end measure"])


class Order(unittest.TestCase):
    """The suite that comes first, and the suites that may start."""

    def named(self, **minutes: int) -> list[runner.Suite]:
        """Suites; those with tree in their names have a lock."""
        return [
            runner.Suite(Path(f"test_{name}.py"), minutes=number, lock="trees" * ("tree" in name))
            for name, number in minutes.items()
        ]

    def test_quick_ones_first_then_the_longest(self):
        suites = self.named(long=9, quick=0, longer=10, fast=0)
        found = [suite.name for suite in runner.ordered(suites)]
        self.assertEqual(found, ["fast", "quick", "longer", "long"])

    def test_suites_with_a_lock_are_one_long_suite(self):
        suites = self.named(long=9, tree_a=4, tree_b=7, middle=8)
        found = [suite.name for suite in runner.ordered(suites)]
        self.assertEqual(found, ["tree_b", "tree_a", "long", "middle"])

    def test_what_waits_for_a_lock_lets_others_pass(self):
        first, second, other = self.named(tree_a=4, tree_b=3, other=1)
        self.assertEqual(runner.next_suite([second, other], [first]), other)
        self.assertIsNone(runner.next_suite([second], [first]))
        self.assertEqual(runner.next_suite([second, other], [other]), second)


class Declarations(unittest.TestCase):
    """The declarations of the suites of the repository."""

    @classmethod
    def setUpClass(cls):
        cls.suites = [runner.declared(path) for path in sorted(TOP.glob("tests/*/test_*.py"))]

    def test_every_suite_of_every_change_runs_on_each_base(self):
        for base in "6.12", "9.9":
            found = runner.selected(self.suites, [], base, False)
            self.assertEqual(found, [suite for suite in self.suites if not suite.slow])

    def test_machines_exist(self):
        there = {path.stem for path in TOP.glob("scripts/vm/*.py")} | {"emulator"}
        for suite in self.suites:
            self.assertLessEqual(set(suite.machines.split()), there, suite.name)

    def test_only_slow_suites_choose_bases(self):
        for suite in self.suites:
            self.assertTrue(suite.slow or suite.on_bases == runner.DEFAULT, suite.name)

    def test_names_are_unique(self):
        names = [suite.name for suite in self.suites]
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
