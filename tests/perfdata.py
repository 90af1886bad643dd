# SPDX-License-Identifier: GPL-2.0
"""Reads the samples of a perf.data file without perf's code, for tests.

The format is that of tools/perf/Documentation/perf.data-file-format.txt and of
include/uapi/linux/perf_event.h. Only what `perf record` on a little-endian
machine writes into a file is understood.
"""

import struct
from dataclasses import dataclass, field
from pathlib import Path

RECORD_LOST, RECORD_THROTTLE, RECORD_SAMPLE = 2, 5, 9
FORMAT_ENABLED, FORMAT_RUNNING, FORMAT_ID, FORMAT_GROUP, FORMAT_LOST = (1 << bit for bit in range(5))
# sample_type bits of the leading, fixed fields, in the order of a sample
FIXED = (("identifier", 1 << 16), ("ip", 1 << 0), ("tid", 1 << 1), ("time", 1 << 2), ("addr", 1 << 3),
         ("id", 1 << 6), ("stream_id", 1 << 9), ("cpu", 1 << 7), ("period", 1 << 8))
SAMPLE_READ = 1 << 4


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
    ids: list[int]

    @property
    def inherit(self) -> bool:
        """Whether children count too (second bit of the flags)."""
        return bool(self.flags & 2)


@dataclass
class Sample:
    """One sample: its fixed fields (those recorded) and its group's values by event id."""
    attr: Attr
    fields: dict[str, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)

    def __getattr__(self, name: str) -> int:
        return self.fields[name]


@dataclass
class Recording:
    """The attrs, the samples in file order, and how many records of other types there are."""
    attrs: list[Attr]
    samples: list[Sample]
    records: dict[int, int]

    def leader(self) -> Attr:
        """The first event."""
        return self.attrs[0]

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
        kind, length, config, period, sample_type, read_format, flags = struct.unpack_from("<IIQQQQQ", data, at)
        alternative, jitter = struct.unpack_from("<QI", data, at + 144) if length >= 160 else (0, 0)
        ids_at, ids_size = struct.unpack_from("<QQ", data, at + attr_size - 16)
        ids = list(struct.unpack_from(f"<{ids_size // 8}Q", data, ids_at))
        attrs.append(Attr(kind, length, config, period, sample_type, read_format, flags, alternative, jitter, ids))
    return attrs


def read_sample(data: bytes, at: int, attrs: list[Attr]) -> Sample:
    """One PERF_RECORD_SAMPLE, whose body begins at `at`."""
    common = attrs[0].sample_type
    if common & dict(FIXED)["identifier"]:
        event, = struct.unpack_from("<Q", data, at)
    elif len(attrs) > 1:
        skip = sum(8 for name, bit in FIXED[1:FIXED.index(("id", 1 << 6))] if common & bit)
        event, = struct.unpack_from("<Q", data, at + skip)
    else:
        event = attrs[0].ids[0] if attrs[0].ids else 0
    sample = Sample(next((attr for attr in attrs if event in attr.ids), attrs[0]))
    for name, bit in FIXED:
        if not sample.attr.sample_type & bit:
            continue
        if name == "tid":
            sample.fields["pid"], sample.fields["tid"] = struct.unpack_from("<II", data, at)
        elif name == "cpu":
            sample.fields["cpu"], = struct.unpack_from("<I", data, at)
        else:
            sample.fields[name], = struct.unpack_from("<Q", data, at)
        at += 8
    sample.fields.setdefault("id", sample.fields.get("identifier", event))
    if sample.attr.sample_type & SAMPLE_READ:
        form = sample.attr.read_format
        words = 1 + bool(form & FORMAT_ID) + bool(form & FORMAT_LOST)
        if form & FORMAT_GROUP:
            number, = struct.unpack_from("<Q", data, at)
            at += 8
        else:
            number = 1
        if not form & FORMAT_GROUP:
            sample.values[event], = struct.unpack_from("<Q", data, at)
            return sample
        at += 8 * (bool(form & FORMAT_ENABLED) + bool(form & FORMAT_RUNNING))
        for _ in range(number):
            value, member = struct.unpack_from("<QQ", data, at)
            sample.values[member] = value
            at += 8 * words
    return sample


def read(path: Path) -> Recording:
    """All samples of a perf.data file. Raises ValueError when it is none."""
    data = path.read_bytes()
    if data[:8] != b"PERFILE2":
        raise ValueError(f"{path} is not a perf.data file")
    attrs = read_attrs(data)
    at, size = struct.unpack_from("<QQ", data, 40)
    end = at + size
    samples, records = [], {}
    while at < end:
        kind, _misc, length = struct.unpack_from("<IHH", data, at)
        records[kind] = records.get(kind, 0) + 1
        if kind == RECORD_SAMPLE:
            samples.append(read_sample(data, at + 8, attrs))
        at += length
    return Recording(attrs, samples, records)
