# SPDX-License-Identifier: GPL-2.0
"""Reads branch records without perf's code: a second implementation, and shorter records."""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from tests.harness import perfdata

# cycles that count, and those between them and the overflow
SPANS = (200, 100), (150, 50), (100, 50), (50, 50), (25, 25)
LONGEST = 4096  # instructions from one branch to the next
UNKNOWN = 0, 0xFFFF  # cycles
REACHED = 0.99

Sums = dict[str, list[Fraction]]  # cycles and instructions of each function
Part = tuple[int, int, int]  # address, cycles and instructions


def path(branches: Sequence[perfdata.Branch]) -> Iterator[Part]:
    """The parts between two records, the newest one first. Instructions have four bytes."""
    for branch, before in zip(branches, branches[1:]):
        n = (branch.source - before.target) // 4 + 1
        if branch.cycles in UNKNOWN or not 0 < n <= LONGEST:
            return
        yield before.target, branch.cycles, n


def since_last(parts: Sequence[Part], target: int, number: int) -> int:
    """How long ago the last record was: at a place in the parts that begin at its target.

    number: how many samples have records so far. The places of the samples are spread evenly.
    """
    lengths, reach = [], 0
    for address, cycles, _ in parts:
        if reach < sum(SPANS[0]):
            lengths += [cycles] * (address == target)
        reach += cycles
    place = sum(lengths) * (40503 * number % 65536) // 65536
    for cycles in lengths:
        if place < cycles:
            return place
        place -= cycles
    return 0


def choose(stacks: Sequence[Sequence[perfdata.Branch]]) -> tuple[int, int] | None:
    """The first span that nearly all samples have, of those whose path is not cut."""
    deepest, reaches = 0, []
    for branches in stacks:
        deepest = max(deepest, len(branches))
        parts = list(path(branches))
        reach = sum(part[1] for part in parts)
        if reach >= sum(SPANS[0]) or (len(branches) == deepest and len(parts) == deepest - 1):
            reaches.append(reach)
    for span in SPANS:
        if sum(reach >= sum(span) for reach in reaches) >= REACHED * len(reaches) > 0:
            return span
    return None


def sums_within(
    stacks: Sequence[Sequence[perfdata.Branch]], span: tuple[int, int], name: Callable[[int], str]
) -> Sums:
    """The sums of the cycles in the span, of all samples that have them."""
    horizon, guard = span
    sums: Sums = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for number, branches in enumerate(filter(None, stacks), 1):
        parts = list(path(branches))
        if sum(part[1] for part in parts) < horizon + guard:
            continue
        skip = guard - min(since_last(parts, branches[0].target, number), guard)
        left = horizon
        for address, cycles, instructions in parts:
            counted = min(max(cycles - skip, 0), left)
            skip, left = max(skip - cycles, 0), left - counted
            if counted:
                row = sums[name(address)]
                row[0] += counted
                row[1] += Fraction(instructions * counted, cycles)
    return sums


def shorten(source: Path, target: Path, most: int) -> None:
    """Copies a recording; each sample keeps at most `most` records, its last field."""
    data = source.read_bytes()
    attrs = perfdata.read_attrs(data)
    begin, size = struct.unpack_from("<QQ", data, 40)
    at, parts = begin, []
    while at < begin + size:
        kind, misc, length = struct.unpack_from("<IHH", data, at)
        body = data[at + 8 : at + length]
        if kind == perfdata.SAMPLE:
            sample = perfdata.read_sample(body, attrs)
            number = len(sample.branches)
            index = bool(sample.attr.branch_sample_type & perfdata.BRANCH_HW_INDEX)
            count_at = len(body) - 24 * number - 8 * index - 8
            kept = min(number, most)
            body = body[:count_at] + struct.pack("<Q", kept) + body[count_at + 8 :]
            body = body[: len(body) - 24 * (number - kept)]
        parts.append(struct.pack("<IHH", kind, misc, 8 + len(body)) + body)
        at += length
    records = b"".join(parts)
    # the table of the features follows the records
    features = bytearray(data[begin + size :])
    (bits,) = struct.unpack_from("<Q", data, 72)
    for number in range(bits.bit_count()):
        (place,) = struct.unpack_from("<Q", features, 16 * number)
        struct.pack_into("<Q", features, 16 * number, place - size + len(records))
    header = bytearray(data[:begin])
    struct.pack_into("<Q", header, 48, len(records))
    target.write_bytes(bytes(header) + records + bytes(features))
