# SPDX-License-Identifier: GPL-2.0
"""The commands that pages print: each one runs in an emulated machine.

The guide's examples print what the page says.

The worked example runs in the machine with the core model. Its values are compared with the model's
counts. The commands for a real machine (HARDWARE.md, README.md) run there as well.
"""

import doctest
import platform
import re
import unittest

from bench import layout
from tests.harness import guide
from tests.harness.env import BASE, TOP, in_guest, words
from tests.harness.truth import LEAVES

MACHINES = "arm64 emulator"
MINUTES = 2

# the names that the packages give to perf
PACKAGE = r"""
sudo() { "$@"; }
printf '#!/bin/sh\nexec /usr/bin/perf "$@"\n' > /usr/bin/perf-alt-period
chmod +x /usr/bin/perf-alt-period
mkdir -p /usr/lib/perf-alt-period/bin
ln -s /usr/bin/perf /usr/lib/perf-alt-period/bin
cd /tmp
ln -s /usr/bin/perf .
"""

# the figures on the page are those of Linux 6.12 and of the benchmark built with Debian 12's
# compiler
OF_THE_PAGE = (BASE, platform.freedesktop_os_release()["VERSION_CODENAME"]) == ("6.12", "bookworm")
NUMBER = re.compile(r"-?\d+\.\d+")


def nearly(expected: str, actual: str) -> str:
    """The actual text, with the expected fractions where they differ by 1 in the last digit.

    One of 166.4 was 166.5 while the host was busy. All else is the same in each run.
    """
    wanted = NUMBER.findall(expected)
    if len(wanted) != len(NUMBER.findall(actual)):
        return actual
    numbers = iter(wanted)

    def replaced(found: re.Match) -> str:
        number = next(numbers)
        digits = len(number.partition(".")[2])
        same = len(found[0].partition(".")[2]) == digits
        near = abs(float(number) - float(found[0])) < 1.5 * 10**-digits
        return number if same and near else found[0]

    return NUMBER.sub(replaced, actual)


class Printed(unittest.TestCase):
    maxDiff = None

    def check(self, command: str, expected: str, actual: str) -> None:
        """The text is that of the page; see nearly() for fractions, and `...` is anything.

        A kernel or benchmark built in another way has windows in other places: only the first line,
        with a note or the columns, is compared then, without its numbers.
        """
        if not OF_THE_PAGE:
            expected, actual = (
                re.sub(r"\d+", "N", text.partition("\n")[0]) for text in (expected, actual)
            )
            expected += "..."  # the page wraps notes
        with self.subTest(command):
            same = doctest.OutputChecker().check_output(
                expected, nearly(expected, actual), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            )
            self.assertTrue(same, f"\n{actual}")


class Guide(Printed):
    def test_examples(self):
        page, _ = guide.parts()
        there = guide.examples(page)
        self.assertGreater(len(there), 5)
        output = in_guest("cd /tmp\n" + guide.commands_of(there))
        for (command, expected), actual in zip(there, guide.printed(output), strict=True):
            self.check(command, expected, actual)


class WorkedExample(Printed):
    @classmethod
    def setUpClass(cls):
        cls.printed = layout.session()
        cls.result = layout.result()

    def test_example(self):
        _, example = guide.parts()
        there = guide.examples(example)
        self.assertEqual(len(there), 6)
        for (command, expected), (_, actual) in zip(there, self.printed, strict=True):
            self.check(command, expected, actual)

    def test_recorded_values_and_changes_are_true(self):
        """The interval of each value and change contains the model's count."""
        self.assertEqual(len(self.result["values"]), 27)
        for row in self.result["values"]:
            low, high = row["interval"]
            self.assertTrue(low <= row["true"] <= high, row)


class RealMachine(unittest.TestCase):
    """The commands to type where the packages are installed. test_deb runs those that install."""

    @staticmethod
    def typed(page: str, heading: str) -> str:
        """The commands below a heading that need neither a clone nor another machine."""
        text = (TOP / page).read_text(encoding="utf-8")
        below = re.search(rf"^## {heading}\n((?:(?!## ).*\n)*)", text, re.M)[1]
        lines = re.findall(r"^    (.*)", below, re.M)
        return "".join(
            f"{line}\n".replace("COMMAND", "benchmark 0 1")
            for line in lines
            if not re.match("make |tar |bench/|sudo apt |sudo reboot", line)
        )

    def table(self, commands: str) -> dict[str, dict[str, str]]:
        """The values of the benchmark's functions by column in the table that these print."""
        # in a file, tables have no colours, and in a pipe perf record would write its samples
        commands = f"{{{PACKAGE}{commands}}} > /tmp/printed 2>&1; cat /tmp/printed"
        output = in_guest(commands, "--model", "small")
        titles, *rows = words(output.partition("\nsymbol ")[2])
        return {
            name: dict(zip(titles, values))
            for name, *values in filter(None, rows)
            if name in LEAVES
        }

    def test_experiment(self):
        """Its table is right by the signs that the page names."""
        commands = self.typed("HARDWARE.md", "The published experiment")
        self.assertEqual(commands.count("sudo sysctl"), 3)
        table = self.table(commands)
        cpi = {name: float(table[name]["CPI"]) for name in LEAVES}
        self.assertEqual(set(sorted(cpi, key=cpi.get)[:2]), {"nops", "double_to_int"})
        for name in "isb", "fp_divider_stalls", "int_divider_stalls":
            self.assertGreater(cpi[name], 2 * cpi["double_to_int"])
        self.assertGreater(float(table["branch_mispredicts"]["%BM"]), 75)
        self.assertGreater(float(table["dcache_miss"]["%L1DM"]), 90)

    def test_readme(self):
        commands = self.typed("README.md", "Use it on the machine that you have")
        self.assertEqual(commands.count("./perf functions "), 2)
        self.assertEqual(set(self.table(commands)), set(LEAVES))
