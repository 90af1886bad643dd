# SPDX-License-Identifier: GPL-2.0
"""perf functions report --tui at a terminal, compared with the printed table.

The tests are of rows, the code of a function, sorting, names, and the way back.
"""

import contextlib
import re
import unittest
from collections.abc import Iterator
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.code import addresses, assembly, build
from tests.harness.env import CHECK, PERF, must, run, words
from tests.harness.recording import Windows
from tests.harness.terminal import Terminal

DATA = CHECK / "browser"
BASE = 0x10000000
DOWN, ENTER = "\x1b[B", "\r"
# the lines of a function's code follow its name; newer perf has the name only in the title
CODE = r"(<{0}>:|^{0}  .*)(\n.*{1}){{20}}"


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def browser(*options: object) -> Iterator[Terminal]:
    """Runs the browser, which must end by a q."""
    terminal = Terminal(PERF, "functions", "report", "--tui", *options)
    try:
        yield terminal
    finally:
        terminal.press("q")
        status = terminal.end()
    if status:
        raise AssertionError(f"exit status {status}")


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        library = build(
            DATA / "browse.s",
            assembly("alpha", "beta", "gamma").replace(".skip 64", ".fill 63, 1, 0x90; ret"),
        )
        recording = Windows()
        recording.map(library, BASE)
        for name, number in (("alpha", 2), ("beta", 7), ("gamma", 4)):
            for _ in range(number):
                recording.window(BASE + addresses(library)[name] + 8)
        recording.window(BASE + addresses(library)["beta"], BASE + addresses(library)["alpha"])
        cls.data = recording.write(DATA / "browse.data")
        cls.sums = DATA / "browse.sums"
        must(PERF, "functions", "report", "-i", cls.data, "--sums", cls.sums)
        cls.table = words(must(PERF, "functions", "report", "-i", cls.data, stderr=-1))

    def test_rows(self):
        """The rows of a recording and of a sums file are those of the table, in its order."""
        for options in (("-i", self.data), (self.sums,)):
            with browser(*options) as terminal:
                lines = terminal.until("^alpha .*\n*")
                self.assertEqual(lines[0], "Metrics of 4 functions")
                self.assertEqual(words("\n".join(lines[1:6])), self.table)
                self.assertEqual(lines[-1], "Press '?' for help on key bindings")

    def test_annotate(self):
        """ENTER opens the code of a row, whose samples are at one instruction; q closes it."""
        with browser("-i", self.data) as terminal:
            terminal.until("^alpha")
            terminal.press(DOWN + ENTER)
            lines = terminal.until(CODE.format("gamma", "nop"))
            self.assertRegex(lines[1], "^gamma  .*browse.so")
            code = [line for line in lines if line.endswith("nop")]
            self.assertRegex(code[8], r"^ *100.00 +100.00 ")
            self.assertEqual([line for line in code if "100.00" in line], [code[8]])
            terminal.press("q")
            self.assertEqual(words("\n".join(terminal.until("^alpha")[1:6])), self.table)
        # with several keys, of which one is a function
        with browser("-i", self.data, "--by", "comm,symbol") as terminal:
            terminal.until("^program;alpha")
            terminal.press(DOWN + ENTER)
            terminal.until(CODE.format("gamma", "nop"))
            terminal.press("q")
            terminal.until("^program;alpha")

    def test_sort_and_names(self):
        with browser("-i", self.data) as terminal:
            terminal.until("^alpha")
            terminal.press("s")
            terminal.until("^DIS")
            terminal.press(DOWN * 4 + ENTER)
            lines = terminal.until("^symbol.*\nalpha")
            by_discarded = must(
                PERF, "functions", "report", "-i", self.data, "-s", "DIS", stderr=-1
            )
            self.assertEqual(words("\n".join(lines[1:6])), words(by_discarded))
            terminal.press("/")
            terminal.until("Name to show")
            terminal.press("amm" + ENTER)
            lines = terminal.until("^symbol.*\ngamma")
            self.assertEqual([line.split()[0] for line in lines[2:-1] if line], ["gamma"])
            terminal.press("/")
            terminal.until("Name to show")
            terminal.press("nothing" + ENTER)
            terminal.until("No row has nothing in its name")
            terminal.press("x")
            terminal.until("^symbol.*\ngamma")

    def test_notes(self):
        """Notes on a table come in a window first, in whole words; n opens it again."""
        recording = Windows()
        for _ in range(30):
            recording.window(BASE)
        recording.writer.lost(recording.where(), 1, 7)
        recording.writer.throttle(pw.THROTTLE, recording.where(), 1)
        recording.window(BASE)
        lossy = recording.write(DATA / "lossy.data")
        for inputs in (lossy,), (lossy, self.discarded()):
            told = run(PERF, "functions", "report", *inputs, stderr=-1).stderr
            self.assertIn("7 records were lost", told)
            self.assertIn("throttled 1 times", told)
            self.assertEqual("shares are those of discard" in told, len(inputs) == 2)
            expected = " ".join(re.findall("^perf functions: (.*)", told, re.M))
            with browser(*inputs) as terminal:
                for key in "n", "x":
                    window = "\n".join(terminal.until("Press any key"))
                    self.assertIn(self.plain(expected), self.plain(window))
                    terminal.press("x")
                    terminal.until(r"\A(?![\s\S]*Press any key)")
                    terminal.press(key)
                terminal.until(r"\A(?![\s\S]*Press any key)")

    @staticmethod
    def plain(text: str) -> str:
        """The words without the frame of the window."""
        return " ".join(re.sub(r"[^\w\s:,.()%-]", " ", text).split())

    def discarded(self) -> Path:
        """A sums file of share mode discard, with other windows."""
        path = DATA / "discard.sums"
        must(
            PERF, "functions", "report", self.data, "--share", "discard", "--sums", path, stderr=-1
        )
        return path
