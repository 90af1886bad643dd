# SPDX-License-Identifier: GPL-2.0
"""Lines of sums files, in the format of SUMS FILE in perf-functions(1)."""

import re
from collections.abc import Sequence
from itertools import combinations_with_replacement


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
    events: int, windows: Sequence[Sequence[int]] = (), long: Sequence[Sequence[int]] = ()
) -> str:
    """The two lines of all intervals that follow the group lines in share mode auto."""
    lines = (
        ("windows", len(windows), *values(windows, events)),
        ("long", len(long), *values(long, events)),
    )
    return "\n".join("\t".join(map(str, line)) for line in lines)


def named(events: Sequence[str], numbers: Sequence[int]) -> dict[str, dict[str, int]]:
    """Totals and products by the names of their events."""
    pairs = ("*".join(sorted(pair)) for pair in combinations_with_replacement(events, 2))
    return {
        "totals": dict(zip(events, numbers)),
        "products": dict(zip(pairs, numbers[len(events) :])),
    }


def row(events: Sequence[str], shares: set[str], numbers: Sequence[int]) -> dict:
    """The sums of a function."""
    opened, samples, matched, bursts, begun, begun_bursts, *values_ = numbers
    half = len(values_) // 2
    return {
        "events": list(events),
        "opened": opened,
        "samples": samples,
        "matched": matched,
        "bursts": bursts,
        "discarded": samples - (begun if shares == {"none"} else matched),
        **named(events, values_[:half]),
        "begun": {"windows": begun, "bursts": begun_bursts, **named(events, values_[half:])},
    }


def read(text: str) -> tuple[dict[tuple, dict], list[dict]]:
    """The sums by function (symbol, DSO, address or None) and events; those of all intervals."""
    rows: dict[tuple, dict] = {}
    every: list[dict] = []
    events: tuple[str, ...] = ()
    shares: dict[tuple[str, ...], set[str]] = {}
    known = {"\\t": "\t", "\\n": "\n", "\\\\": "\\"}
    for line in text.split("\n"):
        word, *fields = (
            re.sub(r"\\[tn\\]", lambda match: known[match[0]], field) for field in line.split("\t")
        )
        if word == "group":
            events = tuple(fields[7:])
            shares.setdefault(events, set()).add(fields[0])
        elif word == "sums":
            symbol, dso, address, *numbers = fields
            key = symbol, dso, None if address == "-" else int(address, 16)
            rows[key, events] = row(events, shares[events], [*map(int, numbers)])
        elif word in ("windows", "long"):
            number, *numbers = map(int, fields)
            if word == "windows":
                every.append({"events": list(events)})
            every[-1][word] = {"number": number, **named(events, numbers)}
    return rows, every
