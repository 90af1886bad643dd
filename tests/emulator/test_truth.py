# SPDX-License-Identifier: GPL-2.0
"""emulator/truth.py on recordings made up here: no machine."""

import re
import struct
import tempfile
import unittest
from pathlib import Path

from bench import truth
from tests.harness import perfdata as pw
from tests.harness.env import TOP, run

COMM_EXEC = 1 << 13
EXCLUDE_USER = 1 << 4
NO_TRUTH = 3  # exit status
MAIN, CHILD, THREAD = pw.Where(0, 10, 10), pw.Where(0, 11, 11), pw.Where(0, 10, 12)
NAMES = (TOP / "emulator/model/core.h").read_text().split("enum core_event {")[1].split("NR_")[0]
COLUMNS = ["INST_RETIRED", *re.findall(r"\w+", NAMES)]
KERNEL = 0xFFFF800080000000


def at(where: pw.Where, time: int) -> pw.Where:
    return pw.Where(time, where.pid, where.tid)


def row(thread: int, image: int, address: int, **counts: int) -> str:
    """A line of the model's table."""
    numbers = " ".join(str(counts.get(name, 0)) for name in COLUMNS)
    return f"{thread} {image} {address:x} {numbers}"


class Truth(unittest.TestCase):
    """A program that forks, a child that executes another program, a thread."""

    ROWS = (
        # the copy of perf before exec is not counted
        row(10, 0, 0x1000, INST_RETIRED=1000),
        row(10, 1, 0x2000, INST_RETIRED=10, STALL=3, STALL_BACKEND=3),
        # no cycles
        row(10, 1, 0x2004, BR_MIS_PRED=1),
        row(10, 1, 0x2008, INST_RETIRED=20, BR_MIS_PRED=4),
        row(10, 1, KERNEL, INST_RETIRED=500),
        row(11, 0, 0x2000, INST_RETIRED=30),
        row(11, 1, 0x3000, INST_RETIRED=40),
        row(12, 0, 0x2008, INST_RETIRED=50),
        # a thread that the recording does not know
        row(99, 0, 0x2008, INST_RETIRED=60),
    )

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.contents = cls.made(cls.recording(), cls.ROWS)

    @staticmethod
    def recording(
        flags: int = pw.FLAG_EXCLUDE_KERNEL,
    ) -> pw.Writer:
        flags |= pw.FLAG_SAMPLE_ID_ALL | pw.FLAG_INHERIT
        names = ("cycles", 0), ("instructions", 1), ("branch-misses", 5)
        group = [
            pw.Event(name, 0, config, [number], 1000, 300 if number == 1 else 0, flags=flags)
            for number, (name, config) in enumerate(names, 1)
        ]
        writer = pw.Writer([group])

        def execute(where: pw.Where) -> None:
            body = struct.pack("<II", where.pid, where.tid) + pw.padded("program")
            writer.side(pw.COMM, body, where, 1, COMM_EXEC)

        writer.comm(at(MAIN, 1), "perf-exec")
        execute(at(MAIN, 10))
        # a member samples, too
        counts = [(1, 600), (2, 5), (3, 0)]
        writer.sample(group[0], at(MAIN, 12), 0x2000, 5, counts, number=2)
        writer.sample(group[0], at(MAIN, 15), 0x2000, 1000, [(1, 1000), (2, 9), (3, 0)])
        writer.task(pw.FORK, at(CHILD, 20), MAIN)
        execute(at(CHILD, 30))
        writer.task(pw.FORK, at(THREAD, 40), MAIN)
        writer.task(pw.EXIT, at(THREAD, 50), MAIN)
        writer.task(pw.EXIT, at(CHILD, 60), MAIN)
        writer.task(pw.EXIT, at(MAIN, 70), MAIN)
        return writer

    @classmethod
    def make(cls, writer: pw.Writer, rows: tuple[str, ...]):
        folder = Path(cls.folder.name)
        writer.write(folder / "data")
        (folder / "table").write_text(
            "\n".join([f"thread image address {' '.join(COLUMNS)}", *rows])
        )
        (folder / "true").unlink(missing_ok=True)
        return run(TOP / "emulator/truth.py", folder / "data", folder / "table", folder / "true")

    @classmethod
    def made(cls, writer: pw.Writer, rows: tuple[str, ...]) -> pw.Contents:
        done = cls.make(writer, rows)
        if done.returncode:
            raise AssertionError(done.stdout)
        return pw.read(Path(cls.folder.name) / "true")

    def counts(self, contents: pw.Contents) -> dict[tuple[int, int, int], list[int]]:
        """The periods of the samples of each event, by thread, time and address."""
        found: dict[tuple[int, int, int], list[int]] = {}
        for sample in contents.samples:
            counts = found.setdefault((sample.tid, sample.time, sample.ip), [0, 0, 0])
            counts[sample.id - 1] += sample.period
        return found

    def test_counts_and_times(self):
        """Each program's counts come just before it ends."""
        self.assertEqual(
            self.counts(self.contents),
            {
                (10, 69, 0x2000): [13, 10, 0],
                (10, 69, 0x2004): [0, 0, 1],
                (10, 69, 0x2008): [20, 20, 4],
                (11, 29, 0x2000): [30, 30, 0],
                (11, 59, 0x3000): [40, 40, 0],
                (12, 49, 0x2008): [50, 50, 0],
            },
        )

    def test_kernel(self):
        counts = self.counts(self.made(self.recording(flags=0), self.ROWS))
        self.assertEqual(counts[10, 69, KERNEL], [500, 500, 0])

    def test_events_of_the_kernel_alone(self):
        """They have no truth unless the kernel was modelled."""
        writer = self.recording(flags=EXCLUDE_USER)
        rows = [row for row in self.ROWS if f"{KERNEL:x}" not in row]
        done = self.make(writer, rows)
        self.assertEqual(done.returncode, NO_TRUTH)
        self.assertRegex(done.stdout, "^truth: .*kernel=on.*\n$")
        self.assertEqual(list(self.counts(self.made(writer, self.ROWS))), [(10, 69, KERNEL)])

    def test_bench_reads_all_of_it(self):
        """Also where a function has one instruction, or is entered: each count is somewhere."""
        self.made(self.recording(), self.ROWS)
        rows = truth.exact(Path(self.folder.name) / "true")
        cycles = {0x2000: 13 + 30, 0x2004: 0, 0x2008: 20 + 50, 0x3000: 40}
        shares = {hex(address): 100 * count / 153 for address, count in cycles.items()}
        found = {address: row["metrics"] for (_, _, address), row in rows.items()}
        self.assertEqual(found.keys(), shares.keys())
        for address, share in shares.items():
            self.assertAlmostEqual(found[address]["%CY"]["value"], share)
        self.assertAlmostEqual(found["0x2000"]["CPI"]["value"], (13 + 30) / (10 + 30))
        self.assertAlmostEqual(found["0x2008"]["BM/KI"]["value"], 1000 * 4 / (20 + 50))
