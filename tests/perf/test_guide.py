# SPDX-License-Identifier: GPL-2.0
"""The guide's examples: each command runs in the emulated machine and prints what the page says."""

import doctest
import platform
import unittest

from tests.harness.env import BASE, TOP, in_guest

MACHINES = "arm64"

PAGE = TOP / "Documentation/admin-guide/perf/function-metrics.rst"
MARK = "-- example --"
# its figures are those of Linux 6.12 and the benchmark as the compiler of Debian 12 builds them
OF_THE_PAGE = (BASE, platform.freedesktop_os_release()["VERSION_CODENAME"]) == ("6.12", "bookworm")


def examples() -> list[tuple[str, str]]:
    """Commands and what they print, in the page's order."""
    found: list[tuple[str, str]] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("  $ "):
            found.append((line[4:], ""))
        elif line.startswith("  > "):
            found[-1] = f"{found[-1][0]}\n{line[4:]}", ""
        elif line.startswith("  ") and found and not found[-1][1].endswith("\n\n"):
            found[-1] = found[-1][0], f"{found[-1][1]}{line[2:]}\n"
        elif found and not found[-1][1].endswith("\n\n"):
            found[-1] = found[-1][0], found[-1][1] + "\n\n"
    return [(command, output.rstrip("\n")) for command, output in found]


class Guide(unittest.TestCase):
    maxDiff = None

    def test_examples(self):
        """To the last digit, for the machine is the same in each run; `...` stands for anything.
        Windows lie elsewhere in what is not built like the page's; the columns are the same.
        """
        there = examples()
        self.assertGreater(len(there), 10)
        commands = "\n".join(f"echo '{MARK}'\n{command}" for command, _ in there)
        # as one sees it in a terminal of one's own, without colours
        output = in_guest(f"cd /tmp\nset -e\n{{\n{commands}\n}} 2>&1 | cat")
        printed = [part.strip("\n") for part in output.split(MARK + "\n")[1:]]
        for (command, expected), actual in zip(there, printed, strict=True):
            if not OF_THE_PAGE:
                expected, actual = expected.partition("\n")[0], actual.partition("\n")[0]
            with self.subTest(command):
                same = doctest.OutputChecker().check_output(
                    expected, actual, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
                )
                self.assertTrue(same, f"\n{actual}")


if __name__ == "__main__":
    unittest.main()
