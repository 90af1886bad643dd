# SPDX-License-Identifier: GPL-2.0
"""The imports that modules may have: suites and the bench share only the code of tests/harness."""

import ast
import re
import unittest
from collections.abc import Iterator
from pathlib import Path

from tests.harness.env import TOP


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, anywhere in it; for `from A import B` also A.B."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # a relative import, from the file's own package
            package = path.relative_to(TOP).with_suffix("").parts[: -node.level or None]
            module = [*(package if node.level else ()), *([node.module] if node.module else ())]
            yield ".".join(module)
            yield from (".".join((*module, alias.name)) for alias in node.names)


def forbidden(path: Path) -> list[str]:
    """The modules of tests/ that a file imports, except the harness and run.py."""
    return [
        name
        for name in imported(path)
        if name.startswith("tests.")
        and name.split(".")[1] not in ("harness", "run")
        or name.split(".")[-1].startswith("test_")
    ]


class Imports(unittest.TestCase):
    def check(self, *patterns: str) -> None:
        paths = [path for pattern in patterns for path in sorted(TOP.glob(pattern))]
        self.assertGreater(len(paths), 10)
        found = {str(path.relative_to(TOP)): forbidden(path) for path in paths}
        self.assertEqual({path: names for path, names in found.items() if names}, {})

    def test_no_suite_imports_a_suite(self):
        self.check("tests/*/test_*.py", "tests/harness/*.py")

    def test_bench_imports_the_harness_only(self):
        self.check("bench/*.py", "scripts/*.py", "scripts/*/*.py")
        for path in TOP.glob("bench/*.py"):
            self.assertNotIn("tests.run", set(imported(path)), path.name)

    def test_rooms_include_only_from_those_before(self):
        """record, collect, estimate, show; a change of one cannot break those before it."""
        rooms = "record", "collect", "estimate", "show"
        for number, room in enumerate(rooms):
            for path in TOP.glob(f"tools/perf/util/functions/{room}/*.[ch]"):
                found = set(re.findall(r'#include "\.\./(\w+)/', path.read_text()))
                self.assertLessEqual(found, set(rooms[:number]), path.name)


if __name__ == "__main__":
    unittest.main()
