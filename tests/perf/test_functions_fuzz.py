# SPDX-License-Identifier: GPL-2.0
"""Fuzzes both readers of perf functions, of recordings and of sums files, with libFuzzer.

The sanitizers look for bad addresses, undefined behaviour and leaks. `make check-all` gives each
reader a million inputs, and plants faults, which must be found.
"""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

from tests.harness import functionsfuzz
from tests.harness.env import CHECK, SLOW, run
from tests.harness.parserfuzz import build_planted

MINUTES = 1

FOLDER = CHECK / "functions-fuzz"
RUNS = 1_000_000 if SLOW else 5000


class Fuzzer(unittest.TestCase):
    def setUp(self):
        if not shutil.which("clang"):
            self.skipTest("there is no clang")

    def fuzz(self, folder: Path, program: Path, runs: int) -> subprocess.CompletedProcess:
        """What libFuzzer and the sanitizers print. What they find is kept in folder."""
        corpus = folder / "corpus"
        shutil.rmtree(corpus, ignore_errors=True)
        corpus.mkdir()
        return run(
            program,
            "-seed=1",
            f"-runs={runs}",
            "-max_len=8000",
            "-timeout=60",
            "-rss_limit_mb=4000",
            f"-artifact_prefix={folder}/",
            corpus,
            folder / "seeds",
            env={"FUZZ_FEATURES": str(folder / "features")},
            cwd=folder,
        )

    def assert_nothing(self, folder: Path, program: Path) -> None:
        done = self.fuzz(folder, program, RUNS)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])
        self.assertEqual(re.findall(r"^Done (\d+) runs", done.stdout, re.M), [str(RUNS)])

    def assert_found(self, finding: str, folder: Path, program: Path) -> None:
        done = self.fuzz(folder, program, 20_000)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(finding, done.stdout)

    def test_sums(self):
        folder, units = FOLDER / "sums", functionsfuzz.SUMS
        program = functionsfuzz.build_sums(folder)
        functionsfuzz.sums_seeds(folder / "seeds")
        self.assert_nothing(folder, program)
        if not SLOW:
            return
        unknown_share = "share < 0 || (share == FUNCTION_SHARE_AUTO && version < 4)"
        known = "share == FUNCTION_SHARE_AUTO && version < 4"
        planted = build_planted(folder, unknown_share, known, "functions/sums", units)
        self.assert_found("SUMMARY: UndefinedBehaviorSanitizer", folder, planted)
        planted = build_planted(
            folder, "\tfree(printable);\n\treturn err;", "\treturn err;", "functions/sums", units
        )
        self.assert_found("LeakSanitizer: detected memory leaks", folder, planted)

    def test_recordings(self):
        folder = FOLDER / "recordings"
        program = functionsfuzz.build_recordings(folder)
        functionsfuzz.recording_seeds(folder / "seeds")
        self.assert_nothing(folder, program)
        if not SLOW:
            return
        planted = build_planted(
            folder,
            "\t\tif (pos->priv)\n",
            "\t\tif (0 && pos->priv)\n",
            "functions/recording",
            functionsfuzz.RECORDINGS,
        )
        self.assert_found("LeakSanitizer: detected memory leaks", folder, planted)


if __name__ == "__main__":
    unittest.main()
