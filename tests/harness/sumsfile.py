# SPDX-License-Identifier: GPL-2.0
"""Lines of sums files, in the format of SUMS FILE in perf-functions(1)."""

from collections.abc import Sequence


def values(windows: Sequence[Sequence[int]], events: int) -> list[int]:
    """The totals and products of windows; each window is its events' counts."""
    return [
        *(sum(window[event] for window in windows) for event in range(events)),
        *(
            sum(window[one] * window[other] for window in windows)
            for one in range(events)
            for other in range(one, events)
        ),
    ]


def intervals(
    events: int,
    windows: Sequence[Sequence[int]] = (),
    long: Sequence[Sequence[int]] = (),
    blocks: int = 0,
) -> str:
    """The two lines of all intervals that follow the group lines in share mode auto. blocks: the
    number of those with a sample that ends a long interval.
    """
    lines = (
        ("windows", len(windows), *values(windows, events)),
        ("long", len(long), blocks, *values(long, events)),
    )
    return "\n".join("\t".join(map(str, line)) for line in lines)


def without_blocks(text: str) -> str:
    """A sums file with 0 for all numbers of blocks, which no other number depends on."""
    lines, events = [], 0
    for line in text.split("\n"):
        word, *fields = line.split("\t")
        if word == "group":
            events = len(fields) - 7
        pairs = events * (events + 1) // 2
        half = events + 2 * pairs  # numbers of matched windows; as many follow for those that begin
        of_blocks = {
            "long": [1],
            "sums": [
                *(7, 10),
                *(
                    11 + half * reading - place
                    for reading in (1, 2)
                    for place in range(1, pairs + 1)
                ),
                *(11 + 2 * half, 12 + 2 * half),
            ],
        }
        for place in of_blocks.get(word, ()):
            fields[place] = "0"
        lines.append("\t".join((word, *fields)))
    return "\n".join(lines)
