# SPDX-License-Identifier: GPL-2.0
"""Recordings with made-up call chains, and a program whose stack is known at each cycle."""

import functools
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.harness import code
from tests.harness import perfdata as pw
from tests.harness.env import CHECK
from tests.harness.recording import LONG, WINDOW, Recording
from tests.harness.simulation import LOADED, Libraries

DATA = CHECK / "children"
BASE = LOADED["one"]
# each process has its own, as suites run side by side
FOLDER = tempfile.TemporaryDirectory(prefix="stacks-")


@functools.cache
def library() -> Libraries:
    """The library `one` with the functions alpha, beta, twice and gamma, each of 64 bytes."""
    DATA.mkdir(parents=True, exist_ok=True)
    return Libraries(Path(FOLDER.name))


@functools.cache
def address(name: str, offset: int = 0) -> int:
    """An address in a function of the library `one`; of two with the name, in the first."""
    found = (
        at
        for (which, at), symbol in library().functions.items()
        if (which, symbol) == ("one", name)
    )
    return BASE + min(found) + offset


class Stacks(Recording):
    """Windows of cycles and instructions with call chains: addresses, the sample's own first."""

    def __init__(self, max_stack: int = 0, registers: int = 0, kinds: int = 0, **writer) -> None:
        kinds |= pw.Event.sample_type | pw.CALLCHAIN | (pw.REGS_USER if registers else 0)
        options = {"sample_type": kinds, "sample_regs_user": registers}
        group = [
            pw.Event("cycles", 0, 0, [1], LONG, WINDOW, sample_max_stack=max_stack, **options),
            pw.Event("instructions", 0, 1, [2], **options),
        ]
        super().__init__([group], **writer)
        path, arch = library().path("one"), writer.get("arch")
        self.map(code.for_machine(path, arch) if arch else path, BASE)
        self.take([address("alpha")])

    def take(self, chain: Sequence[int], cycles: int = LONG, instructions: int = 1, **more) -> None:
        if self.groups[0][0].sample_type & pw.REGS_USER:
            more.setdefault("registers", [0])
        self.sample(chain[0], cycles, instructions, callers=chain[1:], **more)

    def window(self, first: Sequence[int], last: Sequence[int], instructions: int = 100) -> None:
        """A window that opens at one stack and closes at another."""
        self.take(first)
        self.take(last, WINDOW, instructions)

    def save(self, name: str) -> Path:
        return self.write(Path(FOLDER.name) / f"{name}.data")


# The parts of a call: (instructions, cycles of each), or the name of a callee.
Calls = dict[str, list[tuple[int, int] | str]]
PROGRAM: Calls = {
    "gamma": [(40, 1), "beta", (5, 1), "beta", (300, 2), "twice"],
    "beta": [(3, 1), *["alpha", (4, 1)] * 30],
    "alpha": [(25, 6)],
    "twice": [(900, 3), "alpha"],
}
MAIN = "gamma"


def steps(
    calls: Calls, name: str, callers: tuple[int, ...] = ()
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The instructions of a call: the cycles of each, and the stack, callees first."""
    for place, what in enumerate(calls[name]):
        here = (address(name, min(place, 63)), *callers)
        if isinstance(what, str):
            yield from steps(calls, what, here)
        else:
            for _ in range(what[0]):
                yield what[1], here


class Program:
    """A program in a loop, and windows at random places of it."""

    def __init__(self, calls: Calls | None = None) -> None:
        """calls: the parts of each function; `gamma` is called first."""
        calls = calls or PROGRAM
        self.done: dict[str, Counter] = {name: Counter() for name in (*calls, "[all]")}
        # by cycle: instructions so far, stack
        self.timeline: list[tuple[int, tuple[int, ...]]] = []
        for number, (cycles, stack) in enumerate(steps(calls, MAIN)):
            self.timeline += [(number, stack)] * cycles
            on_it = {
                name for name in calls for at in stack if address(name) <= at < address(name) + 64
            }
            for name in (*on_it, "[all]"):
                self.done[name] += Counter(cycles=cycles, instructions=1)

    def record(self, seed: int, windows: int, name: str = "program") -> Path:
        """Writes a recording of windows at random places of the program in a loop."""
        chosen = random.Random(seed)
        recording = Stacks()
        whole, length = self.done["[all]"]["instructions"], len(self.timeline)
        for _ in range(windows):
            begin = chosen.randrange(length)
            end = (begin + WINDOW) % length
            first, last = self.timeline[begin], self.timeline[end]
            recording.window(first[1], last[1], (last[0] - first[0]) % whole)
        return recording.save(name)
