# SPDX-License-Identifier: GPL-2.0
"""scripts/lint accepts the repository, and finds the faults that are planted in a part of it."""

import re
import shutil
import tempfile
import unittest
from pathlib import Path

from tests.harness.env import TOP, must, run

SETTINGS = (
    ".gitignore",
    ".editorconfig",
    "pyproject.toml",
    "scripts/lint",
    "scripts/words",
    "COPYING",
)
SPDX = "# SPDX-License-Identifier: GPL-2.0\n"
C = "// SPDX-License-Identifier: GPL-2.0\n"
LONG = " ".join(f"word{number}" for number in range(20))
# a file, its text, and the line and the words of the finding
FAULTS = {
    "format.py": (SPDX + '"""A module."""\n\nX = [1,2]\n', 4, "black formats"),
    "imports.py": (
        SPDX + '"""A module."""\n\nimport sys\nimport os\n\nX = os, sys\n',
        4,
        "isort formats",
    ),
    "unused.py": (SPDX + '"""A module."""\n\nimport os\n', 4, "unused-import"),
    "long.py": (SPDX + f'"""A module."""\n\n# {LONG}\n', 4, "line-too-long"),
    "fault.sh": ("#!/bin/sh\n" + SPDX + "rm $1\n", 3, "SC2086"),
    "fault.js": ("const one = 1;\none = = 2;\n", 2, "SyntaxError"),
    "style.c": (C + "\nint one(void)\n{\n\treturn(1);\n}\n", 5, "parentheses"),
    "long.c": (C + f"\n/* {LONG} */\n", 3, "100 columns"),
    "words.txt": ("Nobody has rec" + "ieved it.\n", 1, "received"),
    "long.txt": (f"Two\n{LONG}\n", 2, "100 columns"),
    "cover-letter": (f"Two\n{LONG[:90]}\n", 2, "79 columns"),
    "space.txt": ("One \n", 1, "white space"),
    "end.txt": ("One\nTwo", 2, "no newline"),
    "file.md": ("# One\n\nSee [two](missing.md).\n", 3, "missing.md"),
    "anchor.md": ("# One\n\nSee [two](good.md#three) and `code`.\n", 3, "three"),
    "spelling.md": ("# One\n\nTwo wnd" + "ows.\n", 3, "wnd" + "ows"),
    "message.patch": (
        "Subject: lib: One\n\n    wnd\n\nTwo wnd" + "ows.\n\n---\nwnds\n",
        5,
        "wnd" + "ows",
    ),
    "own.md": ("# One\n\nSee [two](#two).\n", 3, "two"),
    "file.rst": ("===\nOne\n===\n\nSee `two <missing.rst>`_.\n", 5, "missing.rst"),
    "page.rst": ("===\nOne\n===\n\nSee :doc:`two <missing>`.\n", 5, "missing"),
}
# files that look faulty and are not
GOOD = {
    "good.md": "# A `name` of (two), and more\n\n"
    "[Up](#a-name-of-two-and-more), [page](good.rst#one),\n"
    "[again](#one-1), [this](../COPYING), [there](https://example.org/x)\n\n"
    "## One\n\n## One\n\n```\n[code](missing.md)\n```\n\n`[code](missing.md)`\n\n"
    f"| a table |\n|---|\n| {LONG} |\n\nSee https://example.org/{'x' * 100}\n",
    "good.rst": "===\nOne\n===\n\n"
    "See `two <good.md>`_ and :doc:`one <good>`, :doc:`/admin-guide/index`.\n\n"
    f"::\n\n  $ {LONG}\n",
    "good.py": SPDX + '"""A module."""\n\nimport sys\n\nX = [1, sys]\n',
    "good.c": C + '\nconst char *const one[] = {\n\t"' + LONG + '",\n};\n',
}


class Lint(unittest.TestCase):
    def test_the_repository(self):
        done = run("scripts/lint")
        self.assertEqual(done.returncode, 0, done.stdout)
        steps = re.findall(r"^  (\w+) +(?:[0-9.]+ s$|skipped: .)", done.stdout, re.M)
        self.assertLessEqual(
            {"black", "isort", "pylint", "shellcheck", "checkpatch", "spelling", "links"},
            set(steps),
        )


class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for name in SETTINGS:
            (cls.folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(TOP / name, cls.folder / name)
        (cls.folder / "build").symlink_to(TOP / "build")
        with open(cls.folder / ".gitignore", "a", encoding="utf-8") as ignored:
            ignored.write("/build\n")
        must("git", "init", "-q", cwd=cls.folder)
        (cls.folder / "part").mkdir()
        for name, text in GOOD.items():
            (cls.folder / "part" / name).write_text(text)

    def lint(self, *names: str) -> tuple[int, str]:
        done = run(self.folder / "scripts/lint", *names, cwd=self.folder)
        return done.returncode, done.stdout

    def test_each_fault_is_found(self):
        """One run finds all of them and fails; no other line of these files is a finding."""
        status, output = self.lint()
        self.assertEqual((status, re.findall(r"^.*:\d+: .*", output, re.M)), (0, []))
        files = [self.folder / "part" / name for name in FAULTS]
        self.addCleanup(lambda: [file.unlink() for file in files])
        for file in files:
            file.write_text(FAULTS[file.name][0])
        status, output = self.lint()
        self.assertEqual(status, 1, output)
        skipped = "black        skipped" in output
        for name, (_, line, words) in FAULTS.items():
            with self.subTest(name):
                if skipped and "black" in words:
                    self.skipTest(re.search(r"black +skipped: (.*)", output)[1])
                found = re.findall(rf"^part/{re.escape(name)}:(\d+): (.*)", output, re.M)
                self.assertTrue(any(re.search(words, text) for _, text in found), output)
                self.assertEqual({int(at) for at, _ in found}, {line}, found)
        # good files have no finding
        self.assertEqual(
            set(re.findall(r"^part/([^:]+):", output, re.M)) - set(FAULTS), set(), output
        )

    def test_only_the_files_that_are_named(self):
        files = [self.folder / "part" / name for name in ("words.txt", "space.txt")]
        self.addCleanup(lambda: [file.unlink() for file in files])
        for file in files:
            file.write_text(FAULTS[file.name][0])
        status, output = self.lint("part/words.txt")
        self.assertEqual(status, 1, output)
        self.assertIn("part/words.txt:1: ", output)
        self.assertNotIn("part/space.txt", output)
        self.assertEqual(self.lint("part/good.c")[0], 0)

    def test_settings_that_disagree(self):
        settings = self.folder / ".editorconfig"
        self.addCleanup(settings.write_text, text := settings.read_text())
        settings.write_text(text.replace("max_line_length = 100", "max_line_length = 120"))
        status, output = self.lint()
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"(?m)^\.editorconfig:\d+: ")

    def test_a_command_that_cannot_run(self):
        """It is a finding that names the command; the other steps run."""
        lint = self.folder / "scripts/lint"
        self.addCleanup(lint.write_text, text := lint.read_text())
        for words in ('"no-codespell",', '"codespell", "--no-such-option",'):
            with self.subTest(words):
                lint.write_text(text.replace('("codespell",', f"({words}"))
                status, output = self.lint("COPYING", "scripts/lint", "part/good.md")
                self.assertEqual(status, 1, output)
                self.assertRegex(output, r"(?m)^scripts/lint:1: .*codespell.*(No such|status)")
                self.assertRegex(output, r"(?m)^  links")


class SameCode(unittest.TestCase):
    """scripts/same-code says of each change of a file what it is."""

    # a file, its text, the same with other comments, with other strings, with other code
    FILES = {
        "one.py": (
            'def one(a, b=2):\n    "Adds."\n    return "1", a + b  # two\n',
            'def one(a, b=2):\n    """The sum\n    of two."""\n\n    return ("1", a + b)\n',
            'def one(a, b=2):\n    "Adds."\n    return "2", a + b  # two\n',
            'def one(a, b=2):\n    "Adds."\n    return "1", a - b  # two\n',
        ),
        "one.c": (
            '/* One */\n#define A 1\nint one(void)\n{\n\treturn puts("a");\n}\n',
            '#define A 1\n/*\n * "Two"\n */\nint one(void)\n{\n\treturn puts("a"); // b\n}\n',
            '/* One */\n#define A 1\nint one(void)\n{\n\treturn puts("b");\n}\n',
            '/* One */\n#define A 2\nint one(void)\n{\n\treturn puts("a");\n}\n',
        ),
        "one": (
            '#!/bin/sh\n# One\nrm -f "$1/a"\n',
            '#!/bin/sh\n# Two\n# lines\nrm -f "$1/a"\n',
            '#!/bin/sh\n# One\nrm -f "$1/b"\n',
            '#!/bin/sh\n# One\nrm -r "$1/a"\n',
        ),
    }

    COMMIT = "git -c user.name=A -c user.email=a@b commit -qm One"

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        must("git", "init", "-q", cwd=self.folder)

    def write(self, number: int) -> None:
        for name, texts in self.FILES.items():
            (self.folder / name).write_text(texts[number])

    def test_each_kind(self):
        self.write(0)
        must("git", "add", ".", cwd=self.folder)
        must(*self.COMMIT.split(), cwd=self.folder)
        for number, kind in enumerate(("comments", "strings", "code"), 1):
            self.write(number)
            done = run(TOP / "scripts/same-code", "HEAD", cwd=self.folder)
            expected = sorted(f"{name}: {kind}" for name in self.FILES)
            self.assertEqual(sorted(done.stdout.splitlines()), expected)
            self.assertEqual(done.returncode, kind == "code")

    def test_what_cannot_be_compared(self):
        done = run(TOP / "scripts/same-code", "nothing", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "(?m)^same-code: .*: name two commits of this clone$")


if __name__ == "__main__":
    unittest.main()
