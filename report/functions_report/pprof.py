# SPDX-License-Identifier: GPL-2.0
"""A table as a profile for pprof, and for all that reads its format (profile.proto).

Each event is a sample type, whose values are the totals of the windows that count. A
sample is a call chain where these were recorded, else a row of the table.
"""

import gzip
import importlib.util
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from . import ReportError, flame
from .page import TOP
from .table import Perf, Table, labels, replacing

# what `make report` generates from Debian's copy of profile.proto
FORMAT = TOP / "build/report/profile_pb2.py"
UNITS = {"cpu-clock": "nanoseconds", "task-clock": "nanoseconds"}
LARGEST = 2**63 - 1


def check() -> None:
    """Raises ReportError if a profile cannot be written here."""
    load_format()


def load_format() -> Any:
    """The generated module. Raises ReportError."""
    if not FORMAT.exists():
        raise ReportError(f"{FORMAT}: there is no code for profiles: `make report` generates it")
    spec = importlib.util.spec_from_file_location(FORMAT.stem, FORMAT)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError:
        raise ReportError("--pprof needs protobuf: install python3-protobuf") from None
    return module


def read(perf: Perf, inputs: Sequence[str | Path], by: Sequence[str]) -> tuple[Table, str]:
    """The table of call chains, or that of the rows and why it is not of call chains.

    by: options; the rows that a user asks for with --by are the samples.
    """
    note = ""
    if not any(option.startswith("--by=") for option in by):
        try:
            chains = ["--by", "callchain", *by]
            return perf.table(inputs, *chains, what="reading the call chains"), note
        except ReportError as error:
            note = flame.why_none(error)
    return perf.table(inputs, *by), note


class Builder:
    """A profile, to which samples are added."""

    def __init__(self, profile: Any, events: Sequence[str]) -> None:
        """profile: an empty message; events: the sample types, in their order."""
        self.profile = profile
        self.events = list(events)
        self.ids: dict[tuple, int] = {}
        self.string("")
        for event in self.events:
            profile.sample_type.add(
                type=self.string(event), unit=self.string(UNITS.get(event, "count"))
            )

    def string(self, text: str) -> int:
        """The index of a string."""
        key = ("string", text)
        if key not in self.ids:
            self.ids[key] = len(self.profile.string_table)
            self.profile.string_table.append(text)
        return self.ids[key]

    def identify(self, messages: Any, *key: Any) -> tuple[int, Any]:
        """The ID of what has this key, and the message to fill in if it is new, else None.

        IDs count from 1: 0 means that there is none.
        """
        key = (messages is self.profile.mapping, messages is self.profile.location, *key)
        if key in self.ids:
            return self.ids[key], None
        self.ids[key] = len(messages) + 1
        return self.ids[key], messages.add(id=self.ids[key])

    def mapping(self, dso: str) -> int:
        """The ID of a DSO, 0 if it is not known."""
        if not dso:
            return 0
        number, new = self.identify(self.profile.mapping, dso)
        if new:
            new.filename = self.string(dso)
            new.has_functions = True  # readers need not look for symbols
        return number

    def location(self, name: str, dso: str) -> int:
        """The ID of a function in a DSO."""
        mapping = self.mapping(dso)
        function, new = self.identify(self.profile.function, name)
        if new:
            # without a system name: pprof would take such a name for one to be demangled
            new.name = self.string(name)
        number, new = self.identify(self.profile.location, function, mapping)
        if new:
            new.mapping_id = mapping
            new.line.add(function_id=function)
        return number

    def sample(self, locations: Iterable[int], counted: Counter) -> None:
        """Adds a chain, callees first. Raises ReportError if its numbers are too large."""
        values = [counted[event] for event in self.events]
        if max(values, default=0) > LARGEST:
            raise ReportError(
                f"--pprof: {max(values)} events are too many for the format, "
                f"which has up to {LARGEST}"
            )
        self.profile.sample.add(location_id=locations, value=values)


def totals_of(sums: list[Table], opened: int, counted: int) -> Counter:
    """What the windows of a row that count have counted, in groups of one leader, by event.

    In share mode auto the leader's counts are spread over the rows as perf does, by the samples
    that end a long interval, and other events follow their rates in the row's windows. opened and
    counted are the numbers of such samples and of the leader's counts in all rows.
    """
    leader = sums[0]["events"][0]
    own: Counter = Counter()
    for one in sums:
        own.update({event: int(total) for event, total in one["totals"].items()})
    if opened:
        share = counted * sum(one["opened"] for one in sums)
        windows = opened * (own[leader] or 1)
        own = Counter({event: total * share // windows for event, total in own.items()})
        own[leader] = share // opened
    return own


def totals(table: Table) -> list[Counter]:
    """What each row of a table has counted, by event."""
    rows = []
    opened: Counter = Counter()
    counted: Counter = Counter()
    for function in table["functions"]:
        rows.append(led := {})
        for sums in function["sums"]:
            leader = sums["events"][0]
            led.setdefault(leader, []).append(sums)
            opened[leader] += sums.get("opened", 0)
            counted[leader] += int(sums["totals"][leader])
    return [
        sum((totals_of(led[one], opened[one], counted[one]) for one in led), Counter())
        for led in rows
    ]


def profile_of(table: Table, comments: Iterable[str]) -> bytes:
    """The profile of a table, as a message. Raises ReportError."""
    functions = table["functions"]
    if table["by"] == "children":
        raise ReportError(
            "--pprof: functions with all that they call have windows in common, "
            "which a profile would count several times"
        )
    events = dict.fromkeys(event for group in table["groups"] for event in group["events"])
    builder = Builder(load_format().Profile(), list(events))
    for name, function, counted in zip(labels(functions), functions, totals(table)):
        if table["by"] == "callchain":
            # perf tells the DSO of the innermost function only
            callee, *callers = function["symbol"].split(";")
            locations = [builder.location(callee, function["dso"])]
            locations += [builder.location(caller, "") for caller in callers]
        else:
            locations = [builder.location(name, function["dso"])]
        builder.sample(locations, counted)
    event = flame.width_event(table)
    if event:
        builder.profile.default_sample_type = builder.string(event)
    for comment in filter(None, comments):
        # names of files are bytes
        text = os.fsencode(comment).decode("utf-8", "replace")
        builder.profile.comment.append(builder.string(text))
    return builder.profile.SerializeToString()


def write(path: Path, table: Table, comments: Iterable[str]) -> None:
    """Writes the profile of a table. Raises ReportError."""
    text = gzip.compress(profile_of(table, comments), mtime=0)
    with replacing(path) as new:
        new.write_bytes(text)
