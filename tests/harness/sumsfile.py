# SPDX-License-Identifier: GPL-2.0
"""Lines of sums files, in the format of SUMS FILE in perf-functions(1)."""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement

HEAD = "perf-function-sums 7\nby\tsymbol\t0\nlost\t0\nthrottled\t0\npartial\t0\n"
Windows = Sequence[Sequence[float]]
SAMPLED = "totals", "squares", "numbers"  # arrays by event, and those of BINS
BINS = 4


def values(windows: Windows, events: int) -> list[float]:
    """The totals and products of windows; each window is its events' counts."""
    return [
        *(sum(window[event] for window in windows) for event in range(events)),
        *(
            sum(window[one] * window[other] for window in windows)
            for one in range(events)
            for other in range(one, events)
        ),
    ]


def line(word: str, *fields: object) -> str:
    """A line of these fields."""
    return "\t".join(map(str, (word, *fields))) + "\n"


def window_numbers(windows: Windows, events: int) -> list[float]:
    """The numbers of windows that begin and end in the same row."""
    return [len(windows)] * 4 + values(windows, events)


def window_set(
    events: Sequence[str],
    rows: Mapping[str, Windows],
    longs: Windows = (),
    even: int = 0,
    period: int = 999700,
) -> str:
    """A set of windows of 300 events of the leader, in functions of /x."""
    every = [window for windows in rows.values() for window in windows]
    return (
        line("set", "windows", even, 0, 0, 0, *events)
        + line("group", period, 0, 300, 1, 0, 1)
        + line("windows", *window_numbers(every, len(events)))
        + line("longs", *window_numbers(longs, len(events)))
        + "".join(
            line("row", name, "/x", "-", *window_numbers(windows, len(events)))
            for name, windows in rows.items()
        )
    )


def sample_set(
    events: Mapping[str, Mapping[str, Sequence[float]]],
    even: int = 1,
    hidden: bool = False,
    period: int = 1000,
    dso: str = "/x",
) -> str:
    """A set of events that sample themselves: their periods in functions of a DSO."""
    names = dict.fromkeys(name for rows in events.values() for name in rows)
    head = line("set", "samples", even, 0, 0, int(hidden), *events)
    lines = [head, line("group", period, 0, 0, 0, 0, 1)]
    for name in names:
        periods = [events[event].get(name, ()) for event in events]
        lines.append(line("row", name, dso, "-", *sample_numbers(periods)))
    return "".join(lines)


def sample_numbers(periods: Sequence[Sequence[float]]) -> list[float]:
    """The numbers of samples of each event, in no place near to an entry."""
    number = sum(map(len, periods))
    return [
        *(number, number, 0, 0),
        *map(sum, periods),
        *(sum(one**2 for one in own) for own in periods),
        *map(len, periods),
        *[0] * (BINS * len(periods)),
    ]


def sums_of(source: str, events: Sequence[str], numbers: Sequence[float]) -> dict:
    """The sums of a row, or of all windows."""
    found: dict = dict(zip(("number", "independent", "begun", "ended"), numbers))
    found |= {"source": source, "events": [*events]}
    rest, nr = numbers[4:], len(events)
    if source == "samples":
        arrays = (dict(zip(events, rest[at * nr :])) for at in range(len(SAMPLED)))
        return found | dict(zip(SAMPLED, arrays))
    pairs = ("*".join(sorted(pair)) for pair in combinations_with_replacement(events, 2))
    return found | {"totals": dict(zip(events, rest)), "products": dict(zip(pairs, rest[nr:]))}


def read(text: str) -> tuple[dict[tuple, dict], list[dict]]:
    """The sums by function (symbol, DSO, address or None), source and events; of each set those of
    all windows and all long intervals.
    """
    rows: dict[tuple, dict] = {}
    every: list[dict] = []
    source, events = "", ()
    known = {"\\t": "\t", "\\n": "\n", "\\\\": "\\"}
    for text_line in text.split("\n"):
        word, *fields = (
            re.sub(r"\\[tn\\]", lambda match: known[match[0]], field)
            for field in text_line.split("\t")
        )
        if word == "set":
            source, events = fields[0], tuple(fields[5:])
            every.append({"source": source, "events": [*events]})
        elif word == "row":
            symbol, dso, address, *numbers = fields
            name = symbol, dso, None if address == "-" else int(address, 16)
            rows[name, source, events] = sums_of(source, events, [*map(float, numbers)])
        elif word in ("windows", "longs"):
            every[-1][word] = sums_of(source, events, [*map(float, fields)])
    return rows, every
