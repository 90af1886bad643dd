# SPDX-License-Identifier: GPL-2.0
"""The guide to perf functions: its examples, and the program of its worked example."""

import re
from textwrap import dedent

from tests.harness.env import TOP

PAGE = TOP / "Documentation/admin-guide/perf/function-metrics.rst"
MARK = "-- example --"
WORKED = "How do I speed up a function that misses the cache?"  # its heading


def parts() -> tuple[str, str]:
    """The page without the worked example; the worked example."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(WORKED)}\n=+\n(?:.*\n)*?(?=.*\n==+$)", text, re.M)
    if not found:
        raise AssertionError(f"{PAGE} has no worked example")
    return text[: found.start()] + text[found.end() :], found[0]


def listing() -> str:
    """The C program of the worked example."""
    found = re.findall(r"^\.\. code-block:: c\n\n((?:(?: .*)?\n)+)", parts()[1], re.M)
    if len(found) != 1:
        raise AssertionError(f"{PAGE}: the worked example has {len(found)} listings")
    return dedent(found[0]).strip() + "\n"


def examples(text: str) -> list[tuple[str, str]]:
    """Commands of a part of the page, and what they print, in its order."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("  $ "):
            found.append((line[4:], ""))
        elif line.startswith("  > "):
            found[-1] = f"{found[-1][0]}\n{line[4:]}", ""
        elif line.startswith("  ") and found and not found[-1][1].endswith("\n\n"):
            found[-1] = found[-1][0], f"{found[-1][1]}{line[2:]}\n"
        elif found and not found[-1][1].endswith("\n\n"):
            found[-1] = found[-1][0], found[-1][1] + "\n\n"
    return [(command, output.rstrip("\n")) for command, output in found]


def commands_of(there: list[tuple[str, str]]) -> str:
    """Commands for the guest that run these as in a terminal without colours."""
    lines = "\n".join(f"echo '{MARK}'\n{command}" for command, _ in there)
    return f"set -e\n{{\n{lines}\n}} 2>&1 | cat\n"


def printed(output: str) -> list[str]:
    """The output of each of these commands."""
    return [part.strip("\n") for part in output.split(MARK + "\n")[1:]]
