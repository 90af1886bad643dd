# SPDX-License-Identifier: GPL-2.0
"""The last branch records (LBRs) of a CPU in call-stack mode, and recordings that hold them.

A call writes the next register; a return clears the last one and steps back by one. Calls deeper
than there are registers overwrite those of the outermost callers, which a sample then lacks.
"""

from collections.abc import Iterable
from pathlib import Path

from tests.harness import perfwrite as pw
from tests.harness.code import addresses, assembly, build
from tests.harness.recording import Recording

REGISTERS, BASE, SPACE = 32, 0x10000000, 64
# The program that was published with perf report --stitch-lbr; it works in f31 and f43.
CHAIN = ("main", *(f"f{number}" for number in range(1, 44)))
Pair = tuple[int, int]  # addresses of a call and of the function called


def library(path: Path, *names: str) -> dict[str, int]:
    """Makes a library of these functions; returns where they are when it is mapped at BASE."""
    build(path.with_suffix(".s"), assembly(*names))
    return {name: BASE + start for name, start in addresses(path).items() if name in names}


class Thread:
    """The functions that a thread is in, and its registers; `top` is the one written last."""

    def __init__(self, starts: dict[str, int], top: int = 0, tid: int = 7) -> None:
        self.starts, self.top, self.tid = starts, top, tid
        self.names = ["main"]
        self.registers: list[Pair | None] = [None] * REGISTERS
        self.functions = {start + SPACE // 2: name for name, start in starts.items()}

    @property
    def ip(self) -> int:
        """The address in the current function."""
        return self.starts[self.names[-1]] + SPACE // 2

    def call(self, *names: str) -> None:
        """Calls these functions, each from the one before it."""
        for name in names:
            self.top = (self.top + 1) % REGISTERS
            self.registers[self.top] = (self.ip, self.starts[name])
            self.names.append(name)

    def leave(self, depth: int) -> None:
        """Returns until this many callers are left."""
        while len(self.names) > depth + 1:
            self.registers[self.top] = None
            self.top = (self.top - 1) % REGISTERS
            self.names.pop()

    def read(self) -> tuple[int, list[Pair]]:
        """The index of the last register, and the calls in the registers, the last one first."""
        pairs = []
        for age in range(REGISTERS):
            pair = self.registers[(self.top - age) % REGISTERS]
            if not pair:
                break
            pairs.append(pair)
        return self.top, pairs

    def chain(self, calls: Iterable[Pair]) -> str:
        """The chain that perf makes of the current function and these calls, the last one first."""
        return ";".join((self.names[-1], *(self.functions[source] for source, _ in calls)))


class Branches(Recording):
    """Samples with these registers; alternate is a period, 0 for a plain recording of one event."""

    def __init__(
        self, code: Path, index: bool = True, depth: int = REGISTERS, alternate: int = 0
    ) -> None:
        kinds = (
            pw.IP
            | pw.TID
            | pw.TIME
            | pw.CALLCHAIN
            | pw.PERIOD
            | pw.BRANCH_STACK
            | pw.IDENTIFIER
            | (pw.READ if alternate else 0)
        )
        lbr = (
            pw.BRANCH_USER
            | pw.BRANCH_CALL_STACK
            | pw.BRANCH_NO_FLAGS
            | pw.BRANCH_NO_CYCLES
            | (pw.BRANCH_HW_INDEX if index else 0)
        )
        group = [
            pw.Event(
                "cycles", 0, 0, [1], 10000, alternate, sample_type=kinds, branch_sample_type=lbr
            )
        ]
        if alternate:
            group.append(
                pw.Event("instructions", 0, 1, [2], sample_type=kinds, branch_sample_type=lbr)
            )
        super().__init__([group], 7, "tchain_edit", branches=depth)
        self.map(code, BASE)

    def take(self, thread: Thread, *counts: int) -> None:
        """Takes a sample where the thread is. counts: those of the events since the last sample."""
        self.sample(thread.ip, *counts or (10000,), tid=thread.tid, branches=thread.read())


def write_chain(
    path: Path, samples: int, index: bool = True, depth: int = REGISTERS, top: int = 0
) -> None:
    """Writes so many samples of the published program, which runs again and again.

    Of each thousand samples the first is in f31, the others are in f43, except one each in f42 and
    f41, to which the program returns. top: the register written last before main().
    """
    code = path.with_suffix(".so")
    recording, starts = Branches(code, index, depth), library(code, *CHAIN)
    thread = Thread(starts, top)
    for number in range(samples):
        where = {0: 31, 500: 42, 501: 41}.get(number % 1000, 43)
        thread.leave(where if number % 1000 else 0)
        thread.call(*CHAIN[len(thread.names) : where + 1])
        recording.take(thread)
    recording.write(path)
