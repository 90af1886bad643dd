# SPDX-License-Identifier: GPL-2.0
"""A program of short nested calls with known shares, and windows at random places of it.

Functions work between two calls for fewer cycles than a window has, so most windows begin and end
in different functions.
"""

import bisect
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.harness import sumsfile
from tests.harness.estimates import opened_line

HEADER = sumsfile.HEAD + sumsfile.window_set(("cycles", "instructions"), {}).rstrip("\n")
DEPTH, CALLEES = 3, 4  # CALLEES: of each function that calls


class Program:
    """One run of the program: its cycles in order, each with its function."""

    def __init__(self, seed: int, calls: int = 20000) -> None:
        draw = random.Random(seed)
        self.functions = [f"f{number:02}" for number in range(1 + CALLEES + CALLEES**2)]
        self.rates = {name: draw.uniform(0.25, 3) for name in self.functions}
        # cycles between two calls: mostly in the lower half of 30 to 500
        typical = [round(30 * (500 / 30) ** draw.random()) for _ in self.functions]
        self.at: list[str] = []  # the function of each stretch between two calls
        lengths, stack = [], [0]
        weights = [draw.uniform(0.2, 3) for _ in self.functions]
        for _ in range(calls):
            if len(stack) == DEPTH or (len(stack) > 1 and draw.random() < 0.5):
                stack.pop()
            else:
                callees = [CALLEES * stack[-1] + number for number in range(1, CALLEES + 1)]
                stack += draw.choices(callees, [weights[callee] for callee in callees])
            self.at.append(self.functions[stack[-1]])
            lengths.append(draw.randrange(typical[stack[-1]] // 2, typical[stack[-1]] * 3 // 2))
        self.ends = list(itertools.accumulate(lengths))
        self.executed = list(
            itertools.accumulate(
                length * self.rates[name] for name, length in zip(self.at, lengths)
            )
        )
        self.cycles: Counter[str] = Counter()
        for name, length in zip(self.at, lengths):
            self.cycles[name] += length

    def shares(self, column: str) -> dict[str, float]:
        """The true shares of cycles (%CY) and instructions (%I), in percent."""
        totals = {
            name: cycles * (self.rates[name] if column == "%I" else 1)
            for name, cycles in self.cycles.items()
        }
        return {name: 100 * total / sum(totals.values()) for name, total in totals.items()}

    def instructions(self, time: int) -> float:
        """The number of instructions executed up to a time."""
        stretch = bisect.bisect_right(self.ends, time)
        return self.executed[stretch] - self.rates[self.at[stretch]] * (self.ends[stretch] - time)

    def windows(
        self, draw: random.Random, number: int, window: int
    ) -> Iterator[tuple[str, str, int]]:
        """The functions in which windows begin and end, and the instructions of each window."""
        for _ in range(number):
            begin = draw.randrange(self.ends[-1] - window)
            end = begin + window
            first, last = (self.at[bisect.bisect_right(self.ends, at)] for at in (begin, end))
            yield first, last, round(self.instructions(end) - self.instructions(begin))

    def write(self, path: Path, draw: random.Random, number: int, window: int = 300) -> Path:
        """Writes the sums file of windows at random places. Samples at their begins tell shares."""
        samples: Counter[str] = Counter()
        matched: dict[str, list[tuple[int, int]]] = {}
        left: dict[str, list[tuple[int, int]]] = {}
        entered: Counter[str] = Counter()
        for first, last, instructions in self.windows(draw, number, window):
            samples[first] += 1
            where = matched if first == last else left
            where.setdefault(first, []).append((window, instructions))
            entered[last] += first != last
        names = sorted({*samples, *entered})
        lines = [
            opened_line(name, matched.get(name, []), left.get(name, []), entered[name])
            for name in names
        ]
        periods = {name: [999700.0] * samples[name] for name in names if samples[name]}
        shares = sumsfile.sample_set({"cycles": periods}, even=2, dso="/prog")
        header = HEADER.replace("set\twindows\t0", "set\twindows\t2")
        path.write_text("\n".join([header, *lines, f"{shares}end\n"]))
        return path
