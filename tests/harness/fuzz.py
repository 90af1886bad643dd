# SPDX-License-Identifier: GPL-2.0
"""Builds fuzz_attr.c for the emulated machine, and adds up its output."""

import re
import unittest
from pathlib import Path

from tests.harness.env import ARCH, LINUX, TOP, machine, must

# the totals of its last line, in this order
TOTALS = (
    "calls",
    "alternating events",
    "samples",
    "of alternating events",
    "periods checked",
    "violations",
)


def build(folder: Path) -> None:
    """Puts fuzz_attr into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    must(
        machine(ARCH, "cross_compile") + "gcc",
        "-O2",
        "-Wall",
        "-Werror",
        "-static",
        "-pthread",
        "-isystem",
        LINUX / "tools/include/uapi",
        "-o",
        folder / "fuzz_attr",
        TOP / "tests/harness/fuzz_attr.c",
    )


def totals(test: unittest.TestCase, output: str) -> dict[str, int]:
    """The sums over all runs in the output, which must have gone deep and found nothing.

    At least a third of the opens succeeds, and a tenth of them alternates; there are samples, and
    each call succeeds now and then.
    """
    last = re.findall(r"^seed \d+: \d+ calls, .*$", output, re.M)
    test.assertTrue(last, output)
    sums = {
        name: sum(int(re.search(rf"(\d+) {name}\b", line)[1]) for line in last) for name in TOTALS
    }
    test.assertEqual(sums["violations"], 0, output)
    opens = [
        (int(count), int(ok)) for count, ok in re.findall(r"^open +(\d+): ok (\d+)", output, re.M)
    ]
    test.assertEqual(len(opens), len(last), output)
    done, succeeded = map(sum, zip(*opens))
    test.assertGreater(succeeded, done / 3, output)
    test.assertGreater(sums["alternating events"], succeeded / 10, output)
    test.assertGreater(sums["of alternating events"], sums["calls"] / 1000, output)
    test.assertGreater(sums["periods checked"], sums["calls"] / 1000, output)
    for kind in ("mmap", "ENABLE", "REFRESH", "PERIOD", "SET_OUTPUT", "PAUSE_OUTPUT", "fork"):
        test.assertRegex(output, rf"(?m)^{kind} +\d+: ok \d")
    return sums
