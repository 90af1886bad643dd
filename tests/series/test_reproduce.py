# SPDX-License-Identifier: GPL-2.0
"""bench/reproduce: the values it reads from recordings, and what it knows without an oracle."""

import json
import tempfile
import unittest
from pathlib import Path

from bench import experiment, known
from tests.harness import perfdata
from tests.harness.env import CHECK, in_guest, pack_reproduce
from tests.harness.truth import LEAVES, read_truth

MACHINES = "arm64 emulator"
MINUTES = 2


class Rows(unittest.TestCase):
    def test_records_of_a_recording(self):
        """It takes 1.5 s from the exec to the exit of the last of two threads."""
        leader = perfdata.Event("cycles", 0, 0, [1], 999700, 300)
        writer = perfdata.Writer([[leader]])

        def at(time: int, tid: int = 7) -> perfdata.Where:
            return perfdata.Where(time, 7, tid)

        writer.comm(at(1_000_000_000), "perf-exec")
        comm = perfdata.struct.pack("<II", 7, 7) + perfdata.padded("benchmark")
        writer.side(perfdata.COMM, comm, at(2_000_000_000), 1, perfdata.MISC_USER | 1 << 13)
        for number in range(5):
            writer.sample(
                leader, at(2_100_000_000 + number), 0x1000, 300, [(1, 1_000_000 * number)]
            )
        writer.throttle(perfdata.THROTTLE, at(2_200_000_000), 1)
        writer.lost(at(2_300_000_000), 1, 9)
        writer.task(perfdata.EXIT, at(3_000_000_000, 8), at(0))
        writer.task(perfdata.EXIT, at(3_500_000_000), at(0))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "perf.data"
            writer.write(path)
            self.assertEqual(experiment.records(path), (5, 1, 9, 1.5))


class Known(unittest.TestCase):
    def test_each_source(self):
        """In the machine with caches, the sources see what the benchmark does, and a slow-down."""
        share = CHECK / "known"
        share.mkdir(parents=True, exist_ok=True)
        pack_reproduce(share / "clone.tar")
        command = "clone/bench/reproduce --known --iterations 3000 --out /tmp/out > said"
        said = in_guest(
            f"""
            mkdir /tmp/clone && tar -xf clone.tar -C /tmp/clone && cd /tmp && {command}
            cp said out/results.json /share/
            benchmark --truth 0 1
            """,
            *("--model", "small"),
            share=share,
        )
        truth = read_truth(said[said.index("# function") :])
        total = sum(truth[name].instructions for name in LEAVES)
        result = json.loads((share / "results.json").read_text())["known"]
        self.assertLessEqual({"samples", "operations"}, set(result))
        for source, found in result.items():
            if source == "windows":  # they are few
                continue
            exact = source == "true"
            for name in LEAVES:
                true = truth[name].instructions / total
                delta = 0.001 if exact else 0.06  # four times what chance does, as below
                self.assertAlmostEqual(found["shares"][name], true, delta=delta)
            if found["slowdown"]:
                self.assertAlmostEqual(found["slowdown"], 2, delta=0.01 if exact else 1)
                self.assertAlmostEqual(found["added"], result["true"]["added"], delta=0.1)
        self.assertIn(f"slow-down of {known.SLOW}", (share / "said").read_text())
