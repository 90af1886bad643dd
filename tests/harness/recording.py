# SPDX-License-Identifier: GPL-2.0
"""Recordings with known content, which tests make sample by sample."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from tests.harness import perfdata as pw

LONG, WINDOW = 10000, 300


class Recording:
    """A recording of one process. Suites derive classes that choose where its samples are."""

    def __init__(
        self,
        groups: Sequence[Sequence[pw.Event]],
        pid: int = 100,
        comm: str = "program",
        **writer: object,
    ) -> None:
        """groups: each with its leader first; writer: further fields of perfdata.Writer."""
        self.groups = groups
        self.writer = pw.Writer(groups, **writer)
        self.pid = pid
        self.clock = itertools.count(1000)
        self.values = {event.ids[0]: 0 for group in groups for event in group}
        self.writer.comm(self.where(), comm)

    def where(self, tid: int = 0, cpu: int = 0) -> pw.Where:
        """The next moment, in the process or in one of its threads."""
        return pw.Where(next(self.clock), self.pid, tid or self.pid, cpu)

    def map(self, path: object, start: int, length: int = 0x10000, **more: int) -> None:
        """A mapping."""
        self.writer.mmap2(self.where(), start, length, str(path), **more)

    def sample(
        self, address: int, *counts: int, group: int = 0, tid: int = 0, cpu: int = 0, **more: object
    ) -> None:
        """A sample of a group; counts are those of its events since the sample before."""
        events = self.groups[group]
        for event, count in zip(events, counts, strict=True):
            self.values[event.ids[0]] += count
        values = [(event.ids[0], self.values[event.ids[0]]) for event in events]
        where = self.where(tid, cpu)
        self.writer.sample(events[0], where, address, counts[0], values, **more)

    def write(self, path: Path) -> Path:
        self.writer.write(path)
        return path


class Windows(Recording):
    """Windows of cycles and instructions that open and close at given addresses."""

    def __init__(self, pid: int = 100, flags: int = 0) -> None:
        flags |= pw.FLAG_SAMPLE_ID_ALL
        group = [
            pw.Event("cycles", 0, 0, [1], LONG, WINDOW, flags=flags),
            pw.Event("instructions", 0, 1, [2], flags=flags),
        ]
        super().__init__([group], pid)
        self.take(0x1000, LONG)  # opens the stream

    def take(self, address: int, cycles: int, misc: int = pw.MISC_USER) -> None:
        """One sample."""
        self.sample(address, cycles, cycles // 3, misc=misc)

    def window(self, *places: int, misc: int = pw.MISC_USER) -> None:
        """A window that opens at the first address and closes at the last."""
        self.take(places[0], LONG, misc)
        self.take(places[-1], WINDOW, misc)
