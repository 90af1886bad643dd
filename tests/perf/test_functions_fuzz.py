# SPDX-License-Identifier: GPL-2.0
"""Fuzzes perf functions report with libFuzzer, with recordings and sums files.

Files of perf record, which libFuzzer does not make, are damaged here and there, headers too. The
sanitizers look for bad addresses, undefined behaviour and leaks. `make check-all` gives it a million
inputs.
"""

import json
import random
import re
import shutil
import unittest

from tests.harness import functionsfuzz
from tests.harness.env import CHECK, PERF, SLOW, in_guest, run

MINUTES = 1
MACHINES = "arm64"

FOLDER = CHECK / "functions-fuzz"
RUNS = 1_000_000 if SLOW else 5000
FILES = 20_000 if SLOW else 1000
NUMBERS = 0, 1, 8, 0xFFFF, 1 << 28, 1 << 32, 1 << 63, (1 << 64) - 1
OPTIONS = (), ("-j", "--by", "thread,cpu"), ("--sums", "-")


class Fuzzer(unittest.TestCase):
    def test_sums_and_recordings(self):
        """libFuzzer and the sanitizers find nothing; else they keep the input in FOLDER."""
        if not shutil.which("clang"):
            self.skipTest("there is no clang")
        program = functionsfuzz.build(FOLDER)
        corpus, seeds = FOLDER / "corpus", FOLDER / "seeds"
        for folder in corpus, seeds:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        functionsfuzz.sums_seeds(seeds)
        functionsfuzz.recording_seeds(seeds)
        done = run(
            *(program, "-seed=1", f"-runs={RUNS}", "-max_len=8000", "-timeout=60"),
            *("-rss_limit_mb=4000", f"-artifact_prefix={FOLDER}/", corpus, seeds),
            env={"FUZZ_FEATURES": str(FOLDER / "features")},
            cwd=FOLDER,
        )
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])
        (runs,) = re.findall(r"^Done (\d+) runs", done.stdout, re.M)
        self.assertGreaterEqual(int(runs), RUNS)
        # the command does not refuse all inputs at once
        *_, covered = re.findall(r" cov: (\d+)", done.stdout)
        self.assertGreater(int(covered), 1500)


def damage(draw: random.Random, data: bytearray) -> None:
    """Changes, removes or repeats some bytes, mostly in headers and features."""
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        front = draw.random() < 0.4
        at = draw.randrange(1000) if front else draw.randrange(len(data) - 100)
        if not front and draw.random() < 0.5:
            at = len(data) - 100 - draw.randrange(5000)
        what = draw.randrange(4)
        if what == 0:
            data[at] = draw.randrange(256)
        elif what == 1:
            data[at : at + 8] = draw.choice(NUMBERS).to_bytes(8, "little")
        elif what == 2:
            del data[at : at + draw.choice((1, 8, 64))]
        else:
            data[at:at] = data[at : at + draw.choice((8, 48))]
    if draw.random() < 0.1:
        del data[draw.randrange(1, len(data)) :]


class DamagedFiles(unittest.TestCase):
    def test_each_is_read_or_refused(self):
        """No damaged file crashes perf functions report, or keeps it for long."""
        folder = FOLDER / "files"
        folder.mkdir(parents=True, exist_ok=True)
        in_guest(
            """
            perf functions record -q -g -o one.data --period 5000 -- true
            perf functions record -q -a -o two.data --sample-cpu -- true
            """,
            share=folder,
        )
        refused = 0
        for number in range(FILES):
            draw = random.Random(number)
            data = bytearray((folder / draw.choice(("one.data", "two.data"))).read_bytes())
            damage(draw, data)
            (folder / "damaged.data").write_bytes(data)
            command = PERF, "functions", "report", "-i", folder / "damaged.data"
            options = draw.choice(OPTIONS)
            done = run(*command, *options, stderr=-1, timeout=30)
            if done.returncode not in (0, 255):
                (folder / f"found-{number}.data").write_bytes(data)
            self.assertIn(done.returncode, (0, 255), (number, done.stderr[-500:]))
            refused += done.returncode == 255
            if "-j" in options and not done.returncode:
                json.loads(done.stdout)
        self.assertGreater(refused, FILES // 10)
        self.assertLess(refused, FILES * 19 // 20)
