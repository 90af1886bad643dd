# SPDX-License-Identifier: GPL-2.0
"""The estimates that perf functions makes from windows, calculated a second time.

Windows are drawn, or written as a line of a sums file; their estimates come from the equations that
the documentation gives, not from perf's code.
"""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from tests.harness import sumsfile

EVENTS = ("cycles", "instructions", "page-faults")
# of windows alone, whose leader tells no shares; its lines are to be joined with the next ones
HEADER = sumsfile.HEAD + sumsfile.window_set(EVENTS, {}).rstrip("\n")
Window = tuple[int, int, int]  # the counts of the events
Bounds = tuple[float, float]


def sums_line(
    symbol: str, matched: Sequence[Window], left: Sequence[Window] = (), entered: int = 0
) -> str:
    """A function's line of a sums file, without the end of the line.

    The arguments are matched windows, windows that begin here and end elsewhere, and the number of
    windows that begin elsewhere and end here. No window is in a burst.
    """
    numbers = sumsfile.window_numbers(matched, len(EVENTS))
    numbers[2:4] = len(matched) + len(left), len(matched) + entered
    return sumsfile.line("row", symbol, "/prog", "-", *numbers).rstrip("\n")


def integral(low: float, high: float, freedom: float, steps: int = 2000) -> float:
    """Of the density of Student's t distribution, but for a factor, by Simpson's rule.

    With t = sqrt(freedom) tan(angle) the density is cos^(freedom - 1).
    """
    width = (high - low) / steps
    height = [math.cos(low + step * width) ** (freedom - 1) for step in range(steps + 1)]
    return width / 3 * (height[0] + height[-1] + 4 * sum(height[1::2]) + 2 * sum(height[2:-1:2]))


def quantile(freedom: float) -> float:
    """97.5 % of Student's t distribution."""
    low, high = 0.0, math.pi / 2
    whole = integral(0, math.pi / 2 - 1e-12, freedom)
    for _ in range(50):
        middle = (low + high) / 2
        below = integral(0, middle, freedom) < 0.95 * whole
        low, high = (middle, high) if below else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def score(value: float, error: float, t: float, whole: float = math.inf) -> Bounds:
    """The true values R for which value is at most t standard errors off.

    The variance is proportional to R (1 - R / whole), so R solves

    (value - R)^2 = (t error)^2 R (1 - R / whole) / (value (1 - value / whole)).
    """
    slope = (t * error) ** 2 / (value * (1 - value / whole))
    square, half = 1 + slope / whole, value + slope / 2
    root = math.sqrt(half**2 - square * value**2)
    return (half - root) / square, (half + root) / square


class Estimate(NamedTuple):
    """A ratio of totals, its standard error, and the degrees of freedom of that."""

    value: float
    error: float
    freedom: float

    @property
    def bounds(self) -> Bounds:
        """Its interval."""
        return score(self.value, self.error, quantile(self.freedom))


def estimate(windows: Sequence[tuple[int, ...]], event: int, per: int) -> Estimate:
    """The ratio of one event of windows to another."""
    below, number = sum(window[per] for window in windows), len(windows)
    value = sum(window[event] for window in windows) / below
    squares = sum((window[event] - value * window[per]) ** 2 for window in windows)
    return Estimate(value, math.sqrt(number / (number - 1) * squares) / below, number - 1)


def crowd(windows: Sequence[tuple[int, ...]], event: int) -> float:
    """The mean number of events in the window of an event."""
    total = sum(window[event] for window in windows)
    return sum(window[event] ** 2 for window in windows) / total if total else 1.0


def stretch(windows: Sequence[tuple[int, ...]], event: int) -> float:
    """The power of a bound's ratio to the value that tells how much farther an interval reaches."""
    mean = sum(window[event] for window in windows) / len(windows)
    return max(1.0, 2 - (1 + mean) / crowd(windows, event))


def rate_bounds(
    windows: Sequence[tuple[int, ...]], event: int, per: int, everywhere: float = 1.0
) -> Bounds:
    """The interval of the ratio of one event of windows to another.

    everywhere: the result of crowd() for the windows of all functions.
    """
    one, below = estimate(windows, event, per), sum(window[per] for window in windows)
    three = -math.log(0.05)  # rule of three: at most this number is unseen
    low, high = one.bounds
    return (
        min(
            one.value * (low / one.value) ** stretch(windows, per),
            max(one.value - three / below, 0),
            one.value * below / (below + three * crowd(windows, per)),
        ),
        max(
            one.value * (high / one.value) ** stretch(windows, event),
            one.value + three / below * max(1.0, crowd(windows, event), everywhere),
        ),
    )


def poisson(draw: random.Random, mean: float) -> int:
    """A number of events, by Knuth's method."""
    number, left = 0, draw.random()
    while left > math.exp(-mean):
        number, left = number + 1, left * draw.random()
    return number
