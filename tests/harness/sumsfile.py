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
) -> str:
    """The two lines of all intervals that follow the group lines in share mode auto."""
    lines = (
        ("windows", len(windows), *values(windows, events)),
        ("long", len(long), *values(long, events)),
    )
    return "\n".join("\t".join(map(str, line)) for line in lines)
