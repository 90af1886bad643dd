#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turns the core model's counts into a recording: the truth of another recording.

The model writes how often each instruction of each program was executed, and its
events (model/truth.h). This turns them into samples: for each instruction, one of
each event that it had, whose period is their number. Everything else, for example which
program each thread executed and its memory maps, is copied from RECORDING. So perf
reads the truth as it reads RECORDING, and groups it by the same functions:

  emulator/truth.py perf.data truth.txt truth.data
  perf functions report -i truth.data

RECORDING must contain each program's start: record the programs from their start,
in the same run of the machine. If the model lacks a recorded event, the
exit status is 3.
"""

import argparse
import struct
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple, NoReturn

EXIT, FORK, COMM, SAMPLE = 4, 7, 3, 9
LOST, THROTTLE, UNTHROTTLE, FINISHED_ROUND, LOST_SAMPLES, COMPRESSED = 2, 5, 6, 68, 13, 81
AUX, ITRACE_START, AUXTRACE_INFO, AUXTRACE = 11, 12, 70, 71
LEFT_OUT = {SAMPLE, LOST, THROTTLE, UNTHROTTLE, FINISHED_ROUND, LOST_SAMPLES}
LEFT_OUT |= {AUX, ITRACE_START, AUXTRACE_INFO, AUXTRACE}
COMM_EXEC = 1 << 13
MISC_KERNEL, MISC_USER = 1, 2
USER_TYPES = 64  # records from this type on are perf's own, and have no time
# bits of sample_type, in the order of the fields of a sample
IP, TID, TIME, ADDR, _, _, ID, CPU, PERIOD, STREAM_ID = (1 << bit for bit in range(10))
IDENTIFIER = 1 << 16
FIELDS = (IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD)
TRAILER = (TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER)  # of records that are no samples
EXCLUDE_USER, EXCLUDE_KERNEL, FREQ, SAMPLE_ID_ALL = 1 << 4, 1 << 5, 1 << 10, 1 << 18
PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE, PERF_TYPE_RAW = 0, 3, 4
SOFTWARE_TYPES = {1, 2, 5}
DUMMY = 1, 9  # type and config of an event that counts nothing
LEAST_ATTR = 64 + 16  # the oldest perf_event_attr, and the place of its ids
KERNEL = 1 << 63

# events that armv8_pmuv3 uses for the generic ones
HARDWARE = {0: 0x11, 1: 0x08, 2: 0x04, 3: 0x03, 4: 0x21, 5: 0x10, 7: 0x23, 8: 0x24}
CACHES = {  # (cache, result): all of them for reads
    (0, 0): 0x04,
    (0, 1): 0x03,
    (1, 0): 0x14,
    (1, 1): 0x01,
    (3, 0): 0x25,
    (3, 1): 0x05,
    (4, 0): 0x26,
    (4, 1): 0x02,
    (5, 0): 0x12,
    (5, 1): 0x10,
}
# their columns in the model's table
COLUMNS = {
    0x08: ("INST_RETIRED",),
    0x11: ("INST_RETIRED", "STALL"),
    0x14: ("L1I_CACHE",),
    0x26: ("L1I_CACHE",),
    0x01: ("L1I_CACHE_REFILL",),
    0x02: ("L1I_TLB_REFILL",),
    0x04: ("L1D_CACHE",),
    0x25: ("L1D_CACHE",),
    0x03: ("L1D_CACHE_REFILL",),
    0x05: ("L1D_TLB_REFILL",),
    0x16: ("L2D_CACHE",),
    0x17: ("L2D_CACHE_REFILL",),
    0x12: ("BR_RETIRED",),
    0x21: ("BR_RETIRED",),
    0x0E: ("BR_RETURN_RETIRED",),
    0x10: ("BR_MIS_PRED",),
    0x22: ("BR_MIS_PRED",),
    0x1B: ("INST_SPEC",),
    0x23: ("STALL_FRONTEND",),
    0x24: ("STALL_BACKEND",),
    0x3C: ("STALL",),
}


NO_TRUTH = 3  # exit status
DAMAGED = "the recording or the table is damaged: record again"


def fail(message: str, status: int = 1) -> NoReturn:
    print(f"truth: {message}", file=sys.stderr)
    sys.exit(status)


class Attr(NamedTuple):
    """An event of the recording."""

    place: int  # of its perf_event_attr in the file
    type: int
    config: int
    sample_type: int
    flags: int
    ids: tuple[int, ...]


class Record(NamedTuple):
    """A record of the recording, and its time (0: it has none)."""

    kind: int
    misc: int
    data: bytes
    time: int


class Line(NamedTuple):
    """An instruction: its address, how often it was executed, its events."""

    address: int
    counts: dict[str, int]


Images = dict[int, list[list[Line]]]  # by thread


def read_attrs(data: bytes) -> list[Attr]:
    """Reads the events of the header."""
    size, offset, length = struct.unpack_from("<QQQ", data, 16)
    attrs, left = [], len(data)
    if size < LEAST_ATTR:
        fail(DAMAGED)
    for at in range(offset, offset + length, size):
        kind, _, config, _, sample_type, _, flags = struct.unpack_from("<IIQQQQQ", data, at)
        ids_at, ids_size = struct.unpack_from("<QQ", data, at + size - 16)
        left -= ids_size
        if left < 0:
            fail(DAMAGED)
        ids = struct.unpack_from(f"<{ids_size // 8}Q", data, ids_at)
        attrs.append(Attr(at, kind, config, sample_type, flags, ids))
    return attrs


def read_records(data: bytes, attr: Attr) -> Iterator[Record]:
    """Reads all records. Records of the kernel end with the fields of the TRAILER."""
    offset, length = struct.unpack_from("<QQ", data, 40)
    fields = [bit for bit in TRAILER if attr.sample_type & bit]
    end = offset + length
    if end > len(data):
        fail("the recording is cut short: record again")
    while offset < end:
        kind, misc, size = struct.unpack_from("<IHH", data, offset)
        if size < 8 or offset + size > end:
            fail("the recording is cut short: record again")
        record, time = data[offset : offset + size], 0
        if kind == COMPRESSED:
            fail("compressed recordings cannot be read: record without -z")
        if kind == SAMPLE:
            place = [bit for bit in FIELDS if attr.sample_type & bit].index(TIME)
            (time,) = struct.unpack_from("<Q", record, 8 + 8 * place)
        elif kind < USER_TYPES and attr.flags & SAMPLE_ID_ALL:
            (time,) = struct.unpack_from(
                "<Q", record, size - 8 * (len(fields) - fields.index(TIME))
            )
        yield Record(kind, misc, record, time)
        offset += size
        if kind == AUXTRACE:  # its data follow
            offset += struct.unpack_from("<Q", record, 8)[0]


def type_of_operations(records: Iterable[Record]) -> int | None:
    """The type of the event that follows operations, which is no counter; None if there is none."""
    for record in records:
        if record.kind == AUXTRACE_INFO:
            own = struct.unpack_from(f"<{len(record.data) // 8 - 2}Q", record.data, 16)
            return next((word for word in own if word > max(SOFTWARE_TYPES)), None)
    return None


def columns(attr: Attr) -> tuple[str, ...]:
    """Returns the model's columns for the events of the recording."""
    config = attr.config & 0xFFFFFFFF
    if attr.type == PERF_TYPE_HARDWARE:
        event = HARDWARE.get(config)
    elif attr.type == PERF_TYPE_HW_CACHE:
        event = CACHES.get((config & 0xFF, config >> 16)) if not config >> 8 & 0xFF else None
    else:
        event = None if attr.type in SOFTWARE_TYPES else config & 0xFFFF
    if event not in COLUMNS:
        event = f"type {attr.type}, config {attr.config:#x}"
        fail(f"the core model does not count the event with {event}: leave it out", NO_TRUTH)
    return COLUMNS[event]


def read_images(lines: Iterable[str]) -> Images:
    """Reads the model's table."""
    rows = iter(lines)
    names = next(rows, "").split()
    if names[:3] != ["thread", "image", "address"]:
        fail("the table is not from the core model: `make truth` makes one")
    images: Images = defaultdict(list)
    for row in rows:
        fields = row.split()
        if len(fields) != len(names):
            fail("the model's table is cut short: run the program again")
        thread, image, address = int(fields[0]), int(fields[1]), int(fields[2], 16)
        of_thread = images[thread]
        # each image has rows, and they follow those of the image before
        if not 0 <= image <= len(of_thread):
            fail(DAMAGED)
        if image == len(of_thread):
            of_thread.append([])
        counts = dict(zip(names[3:], map(int, fields[3:])))
        of_thread[image].append(Line(address, counts))
    return images


class Life(NamedTuple):
    """The programs that a thread of the recording executed, and their ends."""

    process: int
    ends: list[int]


def lives(records: list[Record]) -> dict[int, Life]:
    """Returns the threads. A program ends when the next one starts, or when the thread exits."""
    last = max((record.time for record in records), default=0) + 1
    found: dict[int, Life] = {}
    forked = set()
    started: dict[int, int] = defaultdict(int)
    for record in sorted(records, key=lambda record: record.time):
        if record.kind not in (COMM, FORK, EXIT):
            continue
        process, thread = struct.unpack_from("<II", record.data, 8)
        if record.kind != COMM:
            thread = struct.unpack_from("<IIII", record.data, 8)[2]
        if record.kind == FORK and record.time:
            forked.add(thread)
        life = found.setdefault(thread, Life(process, []))
        if record.kind == COMM and record.misc & COMM_EXEC:
            # the model did not count the copy of perf that became the first program
            counted = started[thread] or thread in forked
            life.ends.append(record.time - 1 if counted else 0)
            started[thread] += 1
        elif record.kind == EXIT:
            life.ends.append(record.time - 1)
    for thread, life in found.items():
        if len(life.ends) == started[thread]:
            life.ends.append(last)
    return found


def sample(attr: Attr, kinds: int, address: int, task: int, time: int, count: int) -> bytes:
    """A sample of an event, with these fields."""
    fields = {
        **dict.fromkeys((IDENTIFIER, ID, STREAM_ID), attr.ids[0] if attr.ids else 0),
        **{IP: address, TID: task, TIME: time, PERIOD: count},
    }
    words = [fields.get(bit, 0) for bit in FIELDS if kinds & bit]
    misc = MISC_KERNEL if address & KERNEL else MISC_USER
    return struct.pack(f"<IHH{len(words)}Q", SAMPLE, misc, 8 + 8 * len(words), *words)


def samples(
    attrs: list[Attr], kinds: int, images: Images, threads: dict[int, Life]
) -> Iterator[tuple[int, bytes]]:
    """Returns the samples of all threads, with their times."""
    # an event that was recorded twice counts once
    events = {
        (columns(attr), attr.flags & (EXCLUDE_USER | EXCLUDE_KERNEL)): attr
        for attr in reversed(attrs)
        if (attr.type, attr.config) != DUMMY
    }
    counted = False
    for thread, life in threads.items():
        # both lists end with the same program
        executed = images.get(thread, [])[-len(life.ends) :]
        for program, end in zip(executed, life.ends[len(life.ends) - len(executed) :]):
            for line, ((names, excluded), attr) in product(program if end else [], events.items()):
                if excluded & (EXCLUDE_KERNEL if line.address & KERNEL else EXCLUDE_USER):
                    continue
                if count := sum(line.counts[name] for name in names):
                    counted = True
                    task = thread << 32 | life.process
                    yield end, sample(attr, kinds, line.address, task, end, count)
    if not counted:
        fail(
            "the core model counted none of these events; "
            "it counts the kernel's with kernel=on (MODEL=small,kernel=on)",
            NO_TRUTH,
        )


def with_records(data: bytes, attrs: list[Attr], kinds: int, records: Iterable[bytes]) -> bytes:
    """Returns the recording with these records. Each event samples with a period."""
    offset, length = struct.unpack_from("<QQ", data, 40)
    header, rest = bytearray(data[:offset]), bytearray(data[offset + length :])
    body = b"".join(records)
    struct.pack_into("<Q", header, 48, len(body))
    for attr in attrs:
        _, size = struct.unpack_from("<II", header, attr.place)
        struct.pack_into("<IIQ", header, attr.place, attr.type, size, attr.config)
        struct.pack_into("<QQ", header, attr.place + 16, 1, kinds)
        struct.pack_into("<Q", header, attr.place + 40, attr.flags & ~FREQ)
        struct.pack_into("<Q", header, attr.place + 72, 0)  # no branch records
        if size >= 160:
            struct.pack_into("<QII", header, attr.place + 144, 0, 0, 0)
    # the sections after the records move
    features = int.from_bytes(header[72:104], "little").bit_count()
    for at in range(0, 16 * features, 16):
        place, size = struct.unpack_from("<QQ", rest, at)
        if place + size > len(data):
            fail("the recording is cut short: record again")
        struct.pack_into("<Q", rest, at, place + len(body) - length)
    return bytes(header) + body + bytes(rest)


def truth(data: bytes, lines: Iterable[str]) -> bytes:
    """Returns the recording @data with the counts of the model's table instead of its samples."""
    if data[:8] != b"PERFILE2":
        fail("the recording is not a perf.data file of a little-endian machine")
    attrs = read_attrs(data)
    needed = TIME | TID
    if not attrs or attrs[0].sample_type & needed != needed:
        fail("the recording has no times: record with -T")
    records = list(read_records(data, attrs[0]))
    aux, (dummy, config) = type_of_operations(records), DUMMY
    attrs = [
        attr._replace(type=dummy, config=config) if attr.type == aux else attr for attr in attrs
    ]
    images, threads = read_images(lines), lives(records)
    mixed = [(record.time, record.data) for record in records if record.kind not in LEFT_OUT]
    # fields that records of other kinds have stay
    kinds = IP | PERIOD | attrs[0].sample_type & sum(TRAILER)
    mixed += samples(attrs, kinds, images, threads)
    mixed.sort(key=lambda item: item[0])  # records of the same time keep their order
    return with_records(data, attrs, kinds, (record for _, record in mixed))


def write(path: Path, content: bytes) -> None:
    """Writes a file, whole or not at all. A pipe or a device stays what it is."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = path.resolve()
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_bytes(content)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recording", type=Path, help="perf.data of the emulated machine")
    parser.add_argument("table", type=Path, help="the counts of the core model in the same run")
    parser.add_argument("output", type=Path, help="the recording to write")
    options = parser.parse_args()
    try:
        data = options.recording.read_bytes()
        with open(options.table, encoding="ascii") as lines:
            result = truth(data, lines)
        write(options.output, result)
    except OSError as error:
        fail(f"{error.filename or options.output}: {error.strerror}: name another file")
    except (struct.error, ValueError, LookupError, OverflowError):
        fail(DAMAGED)


if __name__ == "__main__":
    main()
