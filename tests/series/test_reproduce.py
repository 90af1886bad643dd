# SPDX-License-Identifier: GPL-2.0
"""bench/reproduce: the values it reads from recordings."""

import tempfile
import unittest
from pathlib import Path

from bench import experiment
from tests.harness import perfdata


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

    def test_ratios(self):
        def row(size: int, time: float, native: float, script: float) -> dict:
            return {
                "bytes": size,
                "samples": size // 3,
                "throttled": 0,
                "lost": 0,
                "run_time": time,
                "seconds": {"native": native, "script": script},
            }

        rows = {
            experiment.FEW_SAMPLES: row(3, 1, 0.5, 1),
            experiment.LONG: row(60, 2, 0.75, 2),
            experiment.SHORT: row(9000, 30, 10.5, 81),
            experiment.ALTERNATE: row(90, 2.02, 1.5, 3),
        }
        result = experiment.result_of(1000, {"25 %": rows})
        self.assertEqual(
            result["ratios"],
            {
                "run time": 1.01,
                "file, 25 %": 100,
                "samples, 25 %": 100,
                "native, 25 %": 7,
                "script, 25 %": 27,
            },
        )
        self.assertEqual(
            result["met"],
            {"file, 25 %": True, "run time": True, "script, 25 %": False, "native, 25 %": False},
        )
        self.assertIn("| ≥ 62 | 61.8 | 100.0 | met |", experiment.report(result))
