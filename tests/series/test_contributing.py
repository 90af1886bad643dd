# SPDX-License-Identifier: GPL-2.0
"""Pages for newcomers: the paths that they name exist, and a killed test is one failure."""

import re
import tempfile
import unittest
from pathlib import Path

from tests.harness.env import TOP, run

PAGES = "CONTRIBUTING.md", "kernel/README.md"


def named(page: str) -> set[str]:
    """The paths in the code and commands of a page, without what a build makes."""
    text = (TOP / page).read_text(encoding="utf-8")
    parts = re.findall(r"`([^`]+)`|^    (.+)$", text, re.M)
    tops = "|".join(re.escape(path.name) for path in TOP.iterdir() if path.name != "build")
    found = set()
    for word in " ".join(map(" ".join, parts)).split():
        word = re.sub(r"^T=|^BENCH=|['\"]", "", word)
        if re.match(rf"({tops})(/|$)", word) and word not in ("tests", "scripts"):
            found.add(word.rstrip("/.,;:"))
    return found


class Pages(unittest.TestCase):
    def test_paths_exist(self):
        """NAME and the like stand for any name."""
        for page in PAGES:
            names = named(page)
            self.assertGreater(len(names), 10)
            for name in names:
                path, _, test = name.partition("::")
                with self.subTest(page, name=name):
                    pattern = re.sub(r"(?<![A-Za-z])[A-Z]{3,}(?![A-Za-z])", "*", path)
                    there = (TOP / path).exists() or any(TOP.glob(pattern))
                    self.assertTrue(there or is_of_linux(path), name)
                    for part in filter(None, test.split("::")):
                        self.assertIn(part, (TOP / path).read_text(encoding="utf-8"))


def is_of_linux(path: str) -> bool:
    """Returns whether a patch changes a file of Linux."""
    return any(
        f"+++ b/{path}" in patch.read_text(encoding="utf-8")
        for patch in (TOP / "patches").glob("*/*.patch")
    )


class Killed(unittest.TestCase):
    SUITE = "import os\ndef test_one(): pass\ndef test_two(): os.kill(os.getpid(), 9)\n"

    def test_one_test_fails_and_the_rest_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            suite = Path(folder) / "test_suite.py"
            suite.write_text(f"{self.SUITE}def test_three(): pass\n", encoding="utf-8")
            words = "-m pytest -q -n 2 --dist loadgroup -p tests.conftest -c /dev/null".split()
            done = run("/usr/bin/python3", *words, f"--rootdir={folder}", suite)
        self.assertRegex(done.stdout, r"(?m)^1 failed, 2 passed", done.stdout)
        self.assertIn("test_two", done.stdout)
