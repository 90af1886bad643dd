# SPDX-License-Identifier: GPL-2.0
"""Builds fuzz_attr.c for the emulated machine, and adds up its output."""

import re
import unittest
from collections import Counter
from pathlib import Path

from tests.harness.env import ARCH, LINUX, TOP, machine, must


def build(folder: Path) -> None:
    """Puts fuzz_attr into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    must(
        *(machine(ARCH, "cross_compile") + "gcc", "-O2", "-Wall", "-Werror", "-static", "-pthread"),
        *("-isystem", LINUX / "tools/include/uapi"),
        *("-o", folder / "fuzz_attr", TOP / "tests/harness/fuzz_attr.c"),
    )


def totals(test: unittest.TestCase, output: str) -> Counter[str]:
    """The sums over all runs in the output, which must have gone deep and found nothing."""
    sums = Counter[str]()
    for line in re.findall(r"^seed \d+: (.*)$", output, re.M):
        sums.update({name: int(number) for number, name in re.findall(r"(\d+) ([a-z ]+)", line)})
    test.assertEqual(sums["violations"], 0, output)
    test.assertGreater(sums["events"], sums["opens"] / 3, output)
    test.assertGreater(sums["alternating"], sums["events"] / 10, output)
    test.assertGreater(sums["of alternating events"], sums["calls"] / 1000, output)
    test.assertGreater(sums["periods checked"], sums["calls"] / 1000, output)
    return sums
