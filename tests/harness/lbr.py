# SPDX-License-Identifier: GPL-2.0
"""Recordings of a thread whose last calls a CPU has in registers (LBRs in call-stack mode).

A call writes the next register; a return clears the last one and steps back. Calls deeper than
there are registers overwrite those of the outermost callers, which a sample then lacks.
"""

from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.code import addresses, assembly, build
from tests.harness.recording import LONG, WINDOW, Recording

REGISTERS, BASE, SPACE = 32, 0x10000000, 64
KINDS = pw.IP | pw.TID | pw.TIME | pw.READ | pw.CALLCHAIN | pw.PERIOD | pw.BRANCH_STACK
CALLS = pw.BRANCH_USER | pw.BRANCH_CALL_STACK | pw.BRANCH_NO_FLAGS | pw.BRANCH_NO_CYCLES
NAMES = ("main", *(f"f{number}" for number in range(1, 60)))


class Thread(Recording):
    """A thread that calls f1, f1 calls f2, and so on; its samples are of windows."""

    def __init__(self, code: Path, top: int = 0) -> None:
        """top: the register that was written last before main()."""
        options = {
            "sample_type": KINDS | pw.IDENTIFIER,
            "branch_sample_type": CALLS | pw.BRANCH_HW_INDEX,
        }
        group = [
            pw.Event("cycles", 0, 0, [1], LONG, WINDOW, **options),
            pw.Event("instructions", 0, 1, [2], **options),
        ]
        super().__init__([group], 7, arch="x86_64", branches=REGISTERS)
        build(code.with_suffix(".s"), assembly(*NAMES))
        starts = addresses(code.with_suffix(".so"))
        self.starts = [BASE + starts[name] for name in NAMES]
        self.map(code.with_suffix(".so"), BASE)
        self.top, self.depth = top, 0
        self.registers: list[tuple[int, int] | None] = [None] * REGISTERS

    def go(self, depth: int) -> None:
        """Returns or calls until there are so many callers."""
        while self.depth > depth:
            self.registers[self.top] = None
            self.top, self.depth = (self.top - 1) % REGISTERS, self.depth - 1
        while self.depth < depth:
            self.top, here = (self.top + 1) % REGISTERS, self.starts[self.depth] + SPACE // 2
            self.depth += 1
            self.registers[self.top] = here, self.starts[self.depth]

    def take(self, cycles: int = LONG, depth: int = -1) -> None:
        """A sample, at this depth."""
        self.go(self.depth if depth < 0 else depth)
        pairs = []
        for age in range(REGISTERS):
            pair = self.registers[(self.top - age) % REGISTERS]
            if not pair:
                break
            pairs.append(pair)
        ip = self.starts[self.depth] + SPACE // 2
        self.sample(ip, cycles, cycles // 3, branches=(self.top, pairs))
