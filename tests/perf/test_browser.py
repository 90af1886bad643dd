# SPDX-License-Identifier: GPL-2.0
"""perf functions report --tui at a terminal, compared with the printed table.

The tests are of rows, sorting, names, and the way back.
"""

import contextlib
import re
import unittest
from collections.abc import Iterator

from tests.harness import perfdata as pw
from tests.harness.code import addresses, assembly, build
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.recording import Windows
from tests.harness.terminal import Terminal

DATA = CHECK / "browser"
BASE = 0x10000000
DOWN, ENTER = "\x1b[B", "\r"


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
            assembly("alpha", "beta", "gamma"),
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
        cls.table = cls.printed()

    @classmethod
    def printed(cls, *options: str) -> list[list[str]]:
        """The table that is printed, without the lines about it."""
        text = must(PERF, "functions", "report", "-i", cls.data, *options, stderr=-1)
        return [line.split() for line in text.splitlines() if not line.startswith("#")]

    def check(self, lines: list[str], table: list[list[str]], sort: str) -> None:
        """Compares a screen with a table. The title of the column that sorts has a mark."""
        titles, *rows = table
        shown = [line.split() for line in lines[1:-1] if line]
        self.assertEqual(shown, [[f"{one}*" if one == sort else one for one in titles], *rows])

    def test_rows(self):
        """The rows of a recording and of a sums file are those of the table, in its order."""
        for options in (("-i", self.data), (self.sums,)):
            with browser(*options) as terminal:
                lines = terminal.until("^alpha .*\n*")
                self.assertEqual(lines[0], "Metrics of 4 functions")
                self.assertIn("?", "".join(sum(self.table, [])))  # a weak value
                self.check(lines, self.table, "%CY")
                self.assertEqual(lines[-1], "Press '?' for help on key bindings")

    def test_sort_and_names(self):
        """Sorting keeps the rows that were chosen, and the title counts these."""
        with browser("-i", self.data) as terminal:
            terminal.until("^alpha")
            terminal.press("s")
            terminal.until("^DIS")
            terminal.press(DOWN * 5 + ENTER)
            lines = terminal.until(r"^symbol.*DIS\*")
            self.check(lines, self.printed("-s", "DIS"), "DIS")
            terminal.press("/")
            terminal.until("Name to show")
            terminal.press("mm" + ENTER)
            chosen = "^Metrics of 1 of 4 functions: those with mm in their names\n"
            terminal.until(chosen + r"symbol.*DIS\*\ngamma.*\n\n")

    def test_notes(self):
        """Notes come in a window first, in whole words at each width; n opens it again."""
        recording = Windows()
        for _ in range(30):
            recording.window(BASE)
        recording.writer.lost(recording.where(), 1, 7)
        recording.writer.throttle(pw.THROTTLE, recording.where(), 1)
        recording.window(BASE)
        lossy = recording.write(DATA / "lossy.data")
        told = run(PERF, "functions", "report", "-i", lossy, stderr=-1).stderr
        self.assertIn("7 records were lost", told)
        self.assertIn("throttled 1 times", told)
        expected = self.plain(re.findall("^perf functions: (.*)", told, re.M))
        with browser("-i", lossy) as terminal:
            terminal.wait(lambda: expected in self.plain(terminal.lines()))
            # the same size again would not be told
            terminal.resize(30, 60)
            terminal.wait(lambda: expected in self.plain(terminal.lines()))
            self.assertRegex(terminal.lines()[0], "^Metrics of 2 functions$")
            terminal.press("x")
            terminal.until(r"\A(?![\s\S]*Press any key)")
            terminal.press("n")
            terminal.until("Press any key")
            terminal.press("x")
            terminal.until(r"\A(?![\s\S]*Press any key)")

    @staticmethod
    def plain(lines: list[str]) -> str:
        """The words without the frame of the window."""
        return " ".join(re.sub(r"[^\w\s:,.()%-]", " ", "\n".join(lines)).split())
