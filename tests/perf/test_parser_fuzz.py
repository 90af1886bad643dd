# SPDX-License-Identifier: GPL-2.0
"""Fuzzes perf's parser of events with libFuzzer, watched by two of clang's sanitizers."""

import re
import shutil
import subprocess
import unittest

from tests.harness import parserfuzz
from tests.harness.env import CHECK, run
from tests.harness.sysfs import make_system

SLOW = True
MINUTES = 20

FOLDER = CHECK / "parser-fuzz"
RUNS = 1_000_000
PLANTED = {
    "a value that is not checked": (
        "if (check_range(term, err, 1, LLONG_MAX))",
        "if (0 && check_range(term, err, 1, LLONG_MAX))",
        "fuzz_parse_events: alternate period is too long",
    ),
    "a word that is used after it is freed": (
        "\t\t\t\t\t   str, NULL);\n\treturn -EINVAL;",
        "\t\t\t\t\t   str, NULL);\n\tfree(str);\n\treturn -EINVAL;",
        "AddressSanitizer: heap-use-after-free",
    ),
}


class ParserFuzz(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        cls.program = parserfuzz.build(FOLDER)
        cls.seeds = parserfuzz.seeds(FOLDER / "seeds")
        cls.words = parserfuzz.dictionary(FOLDER / "words")
        cls.env = {**make_system(FOLDER / "system"), **parserfuzz.ENVIRONMENT}

    def fuzz(self, program: object, runs: int) -> subprocess.CompletedProcess:
        """The output of libFuzzer and the sanitizers. Their findings are kept in FOLDER."""
        found = FOLDER / "corpus"
        shutil.rmtree(found, ignore_errors=True)
        found.mkdir()
        return run(
            program,
            "-seed=1",
            f"-runs={runs}",
            "-max_len=200",
            "-close_fd_mask=1",
            f"-dict={FOLDER}/words",
            "-timeout=60",
            "-rss_limit_mb=6000",
            f"-artifact_prefix={FOLDER}/",
            found,
            FOLDER / "seeds",
            env=self.env,
            cwd=FOLDER,
        )

    def test_seeds_are_those_of_perf(self):
        self.assertGreater(self.seeds, 100)
        self.assertGreater(self.words, 30)
        self.assertIn('"alt-period-count"', (FOLDER / "words").read_text())

    def test_finds_a_planted_error(self):
        for what, (old, new, finding) in PLANTED.items():
            with self.subTest(what):
                done = self.fuzz(parserfuzz.build_planted(FOLDER, old, new), 20000)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(finding, done.stdout)

    def test_finds_nothing(self):
        done = self.fuzz(self.program, RUNS)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])
        self.assertEqual(re.findall(r"^Done (\d+) runs", done.stdout, re.M), [str(RUNS)])


if __name__ == "__main__":
    unittest.main()
