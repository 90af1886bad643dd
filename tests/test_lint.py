# SPDX-License-Identifier: GPL-2.0
"""shellcheck, pylint, checkpatch and codespell over what is ours."""

import re
import unittest

from env import LINUX, TOP, must, run


def tracked() -> list[str]:
    """The repository's files, as git would commit them."""
    return must("git", "ls-files", "--cached", "--others", "--exclude-standard").split()


def starting_with(*first: str) -> list[str]:
    """Files whose first line begins with one of these words."""
    return [name for name in tracked()
            if (TOP / name).read_bytes()[:40].decode("utf-8", "replace").startswith(first)]


class Lint(unittest.TestCase):

    def check(self, *command: object) -> None:
        done = run(*command)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, ""))

    def test_shellcheck(self):
        scripts = starting_with("#!/bin/sh", "#!/bin/bash", "#!/bin/busybox")
        self.assertGreater(len(scripts), 5)
        self.check("shellcheck", "--external-sources", "--severity=style", *scripts)

    def test_pylint(self):
        scripts = [name for name in tracked() if name.endswith(".py")]
        self.assertGreater(len(scripts), 5)
        self.check("/usr/bin/pylint", "--rcfile=tests/pylintrc", "--score=no", *scripts)

    def test_javascript(self):
        scripts = [name for name in tracked() if name.endswith(".js")]
        self.assertGreater(len(scripts), 5)
        for name in scripts:
            self.check("node", "--check", name)

    def test_checkpatch(self):
        """The C files of the module and the tests; those of the series are looked at commit by commit."""
        files = [name for name in tracked() if re.fullmatch(r"(module|tests)/.*\.[ch]", name)]
        self.assertTrue(files)
        self.check("perl", LINUX / "scripts/checkpatch.pl", "--strict", "--no-tree", "--quiet", "--file", *files)

    def test_spelling(self):
        self.check("codespell", "--ignore-words-list=pevent,filp,nd", *(name for name in tracked() if name != "COPYING"))


if __name__ == "__main__":
    unittest.main()
