# SPDX-License-Identifier: GPL-2.0
"""Each function of bottlenecks.c has one bottleneck, and perf's table shows it.

The program runs in the machine with caches, with both presets of the core model. The table is
compared with what the model has counted, and with a function that has no bottleneck.
"""

import subprocess
import unittest
from itertools import product
from pathlib import Path

from tests.harness.env import CHECK, PERF, TOP, in_guest, must
from tests.harness.tables import flat

MACHINES = "arm64 emulator"
MINUTES = 1

OUT = CHECK / "bottlenecks"
MODELS = "small", "large"
ROUNDS = 150
GROUPS = (
    "branch-misses,cache-misses,dTLB-load-misses,L1-icache-load-misses,iTLB-load-misses",
    "l2d_cache_refill,branches",
)
# the metric that must stand out
BOTTLENECKS = {
    "l1d_miss": "CM/KI",
    "l2_miss": "l2d_cache_refill/KI",
    "dtlb_miss": "TM/KI",
    "store_miss": "l2d_cache_refill/KI",
    "l1i_miss": "L1-icache-load-misses/KI",
    "itlb_miss": "iTLB-load-misses/KI",
    "branch_target": "BM/KI",
    "deep_return": "BM/KI",
}
WITHOUT = "compute"
FACTOR = 5  # by which it stands out
NEAR = 0.2  # windows that cross a call do not count, so rates of short calls are a bit off


def metrics(recording: Path, *options: str) -> dict[str, dict[str, float]]:
    """The metrics of each function."""
    command = PERF, "functions", "report", "-j", "--symfs", OUT, *options, recording
    rows = flat(must(*command, stderr=subprocess.DEVNULL))["functions"]
    return {row["symbol"]: row["metrics"] for row in rows}


class Bottlenecks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # perf finds the program under its path in the machine
        program = OUT / "share/bottlenecks"
        program.parent.mkdir(parents=True, exist_ok=True)
        source = TOP / "tests/emulator/bottlenecks.c"
        must("aarch64-linux-gnu-gcc", "-O2", "-Wall", "-Werror", "-static", "-o", program, source)

    def tables(self, model: str, number: int) -> list[dict[str, dict[str, float]]]:
        """What perf has recorded of a group, and what the model has counted."""
        name = f"{model}-{number}"
        data, counted, true = (OUT / f"share/{name}.{end}" for end in ("data", "txt", "true"))
        events = f"{{cycles/period=49700,alt-period=300/,instructions,{GROUPS[number]}}}:uS"
        in_guest(
            "sysctl -qw kernel.perf_event_max_sample_rate=10000000"
            " kernel.perf_cpu_time_max_percent=0\n"
            f"cd /tmp; settle; perf record -q -T --sample-cpu -m 16M -o data -e '{events}' -- "
            f"/share/bottlenecks {ROUNDS}; cp data /share/{data.name}",
            *("--model", model, "--truth", counted),
            share=OUT / "share",
        )
        must(TOP / "emulator/truth.py", data, counted, true)
        return [metrics(data, "--source", "windows"), metrics(true)]

    def test_each_is_found(self):
        found = set()
        for model, number in product(MODELS, range(len(GROUPS))):
            recorded, true = self.tables(model, number)
            for function, metric in BOTTLENECKS.items():
                if metric not in recorded[WITHOUT]:
                    continue
                found.add((model, function))
                with self.subTest(model=model, function=function):
                    for table in recorded, true:
                        least = FACTOR * max(table[WITHOUT][metric], 1)
                        self.assertGreaterEqual(table[function][metric], least)
                    ratio = recorded[function][metric] / true[function][metric]
                    self.assertAlmostEqual(ratio, 1, delta=NEAR)
        self.assertEqual(len(found), len(MODELS) * len(BOTTLENECKS))
