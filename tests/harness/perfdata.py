# SPDX-License-Identifier: GPL-2.0
"""Reads the samples of a perf.data file without perf's code, for tests.

The format is that of tools/perf/Documentation/perf.data-file-format.txt and of
include/uapi/linux/perf_event.h. Only what `perf record` on a little-endian
machine writes into a file is understood.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

RECORD_SAMPLE, RECORD_AUX, RECORD_AUXTRACE = 9, 11, 71
FORMAT_ENABLED, FORMAT_RUNNING, FORMAT_ID, FORMAT_GROUP, FORMAT_LOST = (
    1 << bit for bit in range(5)
)
# sample_type bits of the leading, fixed fields, in the order of a sample
IDENTIFIER = 1 << 16
FIXED = (
    ("identifier", IDENTIFIER),
    ("ip", 1 << 0),
    ("tid", 1 << 1),
    ("time", 1 << 2),
    ("addr", 1 << 3),
    ("id", 1 << 6),
    ("stream_id", 1 << 9),
    ("cpu", 1 << 7),
    ("period", 1 << 8),
)
SAMPLE_READ = 1 << 4
SAMPLE_BRANCH_STACK = 1 << 11
BRANCH_HW_INDEX = 1 << 17
# the fields at the end of other records (sample_id_all)
TRAILER = tuple(
    (name, dict(FIXED)[name]) for name in ("tid", "time", "id", "stream_id", "cpu", "identifier")
)


@dataclass
class Attr:
    """A perf_event_attr and the ids of its events."""

    type: int
    size: int
    config: int
    sample_period: int
    sample_type: int
    read_format: int
    flags: int
    alternative_sample_period: int
    jitter_alternate_period: int
    alternative_sample_count: int
    branch_sample_type: int
    ids: list[int]

    @property
    def inherit(self) -> bool:
        """Returns whether children count too (second bit of the flags)."""
        return bool(self.flags & 2)


@dataclass(frozen=True)
class Branch:
    """One entry of a branch stack."""

    source: int
    target: int
    missed: bool
    cycles: int


@dataclass
class Sample:
    """One sample.

    Its fixed fields (those recorded), its group's values by event id, its last branches, the newest
    one first.
    """

    attr: Attr
    fields: dict[str, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    branches: list[Branch] = field(default_factory=list)

    def __getattr__(self, name: str) -> int:
        return self.fields[name]


@dataclass
class Contents:
    """The attrs, the samples in file order, and the number of records of each type.

    aux: (time, size, flags) of the records that announce AUX data, by CPU; trace: that data.
    """

    attrs: list[Attr]
    samples: list[Sample]
    records: dict[int, int]
    aux: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    trace: dict[int, bytes] = field(default_factory=dict)

    def leader(self) -> Attr:
        """The first event."""
        return self.attrs[0]

    def stream(self) -> list[Sample]:
        """The samples of the leader's stream.

        Raises ValueError if it has more than one, or none.
        """
        streams = list(self.streams(self.leader()).values())
        if len(streams) != 1:
            raise ValueError(f"the leader has {len(streams)} streams, not one")
        return streams[0]

    def streams(self, attr: Attr) -> dict[tuple[int, int], list[Sample]]:
        """Samples of one event by (event id, thread), in the order of time."""
        streams: dict[tuple[int, int], list[Sample]] = {}
        for sample in sorted((s for s in self.samples if s.attr is attr), key=lambda s: s.time):
            streams.setdefault((sample.id, sample.tid), []).append(sample)
        return streams


def read_attrs(data: bytes) -> list[Attr]:
    """The attrs section of the file."""
    attr_size, offset, size = struct.unpack_from("<QQQ", data, 16)
    attrs = []
    for at in range(offset, offset + size, attr_size):
        kind, length, *words = struct.unpack_from("<IIQQQQQ", data, at)
        alternate = struct.unpack_from("<QII", data, at + 144) if length >= 160 else (0, 0, 0)
        ids_at, ids_size = struct.unpack_from("<QQ", data, at + attr_size - 16)
        ids = list(struct.unpack_from(f"<{ids_size // 8}Q", data, ids_at))
        (branches,) = struct.unpack_from("<Q", data, at + 72)
        attrs.append(Attr(kind, length, *words, *alternate, branches, ids))
    return attrs


def event_of(words: Sequence[int], attrs: list[Attr]) -> Attr:
    """The event of a sample with these 64-bit words. All samples have its id in the same place."""
    common = attrs[0].sample_type
    place = 0
    if not common & IDENTIFIER:
        names = [name for name, bit in FIXED if common & bit]
        if "id" not in names:
            return attrs[0]
        place = names.index("id")
    return next(attr for attr in attrs if words[place] in attr.ids)


def read_sample(body: bytes, attrs: list[Attr]) -> Sample:
    """One PERF_RECORD_SAMPLE without its header."""
    words = struct.unpack(f"<{len(body) // 8}Q", body)
    sample = Sample(event_of(words, attrs))
    rest = iter(words)
    for name, bit in FIXED:
        if sample.attr.sample_type & bit:
            sample.fields[name] = next(rest)
    if "tid" in sample.fields:
        sample.fields["pid"], sample.fields["tid"] = sample.tid & 0xFFFFFFFF, sample.tid >> 32
    sample.fields.setdefault("id", sample.fields.get("identifier", 0))
    form = sample.attr.read_format
    if sample.attr.sample_type & SAMPLE_READ and form & FORMAT_GROUP and form & FORMAT_ID:
        number = next(rest)
        for _ in range(bool(form & FORMAT_ENABLED) + bool(form & FORMAT_RUNNING)):
            next(rest)
        for _ in range(number):
            value, member = next(rest), next(rest)
            sample.values[member] = value
            if form & FORMAT_LOST:
                next(rest)
    if sample.attr.sample_type & SAMPLE_BRANCH_STACK:
        number = next(rest)
        if sample.attr.branch_sample_type & BRANCH_HW_INDEX:
            next(rest)
        for _ in range(number):
            source, target, flags = next(rest), next(rest), next(rest)
            branch = Branch(source, target, bool(flags & 1), flags >> 4 & 0xFFFF)
            sample.branches.append(branch)
    return sample


def read(path: Path) -> Contents:
    """The contents of a perf.data file. Raises ValueError if it is not one."""
    data = path.read_bytes()
    if data[:8] != b"PERFILE2":
        raise ValueError(f"{path} is not a perf.data file")
    attrs = read_attrs(data)
    at, size = struct.unpack_from("<QQ", data, 40)
    end = at + size
    found = Contents(attrs, [], {})
    trace: dict[int, list[bytes]] = {}
    while at < end:
        kind, length = struct.unpack_from("<I2xH", data, at)
        found.records[kind] = found.records.get(kind, 0) + 1
        if kind == RECORD_SAMPLE:
            found.samples.append(read_sample(data[at + 8 : at + length], attrs))
        elif kind == RECORD_AUX:
            _offset, size, flags, *rest = struct.unpack_from(f"<{length // 8 - 1}Q", data, at + 8)
            whose = dict(zip((name for name, bit in TRAILER if attrs[0].sample_type & bit), rest))
            found.aux.setdefault(whose["cpu"], []).append((whose["time"], size, flags))
        elif kind == RECORD_AUXTRACE:
            size, cpu = struct.unpack_from("<Q24xI", data, at + 8)
            trace.setdefault(cpu, []).append(data[at + length : at + length + size])
            length += size
        at += length
    found.trace = {cpu: b"".join(parts) for cpu, parts in trace.items()}
    return found
