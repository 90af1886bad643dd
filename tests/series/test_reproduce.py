# SPDX-License-Identifier: GPL-2.0
"""bench/reproduce: what it knows without an oracle."""

import json
import unittest

from bench import known
from tests.harness.env import CHECK, in_guest, pack_reproduce
from tests.harness.truth import LEAVES, read_truth

MACHINES = "arm64 emulator"
MINUTES = 2


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
