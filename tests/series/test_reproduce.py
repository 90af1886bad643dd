# SPDX-License-Identifier: GPL-2.0
"""bench/reproduce: the values it reads from recordings, and its message if it cannot record."""

import tempfile
import unittest
from pathlib import Path

from bench import experiment
from tests.harness import perfdata
from tests.harness.env import run


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


class Refusals(unittest.TestCase):
    """There is one line, and no results."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = Path(temporary.name)

    def refused(self, pattern: str, perf: object) -> None:
        done = run("bench/reproduce", "--perf", perf, "--out", self.dir / "out")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, rf"\Areproduce: {pattern}\n\Z")
        self.assertFalse((self.dir / "out").exists())

    def stand_in(self, text: str) -> Path:
        """A perf that has the series and answers `perf stat` and `perf record` with this text."""
        perf = self.dir / "perf"
        perf.write_text(f"#!/bin/sh\ncase $1 in functions) echo record report;; {text} esac\n")
        perf.chmod(0o755)
        return perf

    def test_no_perf(self):
        self.refused("there is no /no/perf: .*make perf.*", "/no/perf")

    def test_perf_without_the_series(self):
        self.refused("/bin/true does not know `perf functions`: .*", "/bin/true")

    def test_no_pmu(self):
        self.refused(
            "this machine counts no cycles: .*PMU.*",
            self.stand_in("stat) echo '<not supported>,,cycles:u' >&2;;"),
        )

    def test_no_permission(self):
        self.refused(
            ".*run this as root.*",
            self.stand_in("stat) echo 'perf_event_paranoid setting is 3' >&2; exit 255;;"),
        )

    def test_kernel_without_the_series(self):
        """The message is perf's own sentence."""
        self.refused(
            "cycles: this kernel does not know .*",
            self.stand_in(
                "stat) echo 5,,cycles:u,1,100 >&2;; record) printf 'Error:\\ncycles: this kernel"
                " does not know alternate sample periods\\n' >&2; exit 255;;"
            ),
        )

    def test_no_samples(self):
        """The group has more events than the PMU has counters: perf records nothing."""
        empty = self.dir / "empty"
        empty.write_bytes(bytes(104))
        perf = self.stand_in(
            "stat) echo 5,,cycles:u,1,100 >&2;; "
            f'record) while [ $1 != -o ]; do shift; done; [ "$2" = /dev/null ] || cp {empty} "$2";;'
        )
        done = run("bench/reproduce", "--perf", perf, "--out", self.dir / "out")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(
            done.stdout,
            (
                r'\Areproduce: the recording "four samples" has no samples: .*for cycles and 4'
                r" events at once, give fewer --events[^\n]*\n\Z"
            ),
        )
        self.assertEqual(list((self.dir / "out").iterdir()), [])
