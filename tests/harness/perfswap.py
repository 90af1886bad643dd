# SPDX-License-Identifier: GPL-2.0
"""Turns a perf.data file into the one that a machine of the other byte order would have written.

The format is that of tools/perf/Documentation/perf.data-file-format.txt and of
include/uapi/linux/perf_event.h. The code refuses what our recordings do not have, so that no number
stays unswapped without notice.
"""

import struct
from pathlib import Path

MAGIC = {b"PERFILE2": "<", b"2ELIFREP": ">"}
ATTR = "IIQQQQ", "IIQQQQIiQIHHIIQQQQII"  # before the flags and behind them
SAMPLE_ID_ALL = 1 << 18
WORDS = 1 << 4 | 1 << 5 | 1 << 12  # values, call chain and registers have 64 bits each
# bits of sample_type, in the order of a sample, and in the order of what ends the other records
FIXED = (
    (1 << 16, "Q"),
    (1 << 0, "Q"),
    (1 << 1, "II"),
    (1 << 2, "Q"),
    (1 << 3, "Q"),
    (1 << 6, "Q"),
    (1 << 9, "Q"),
    (1 << 7, "II"),
    (1 << 8, "Q"),
)
TRAILER = (
    (1 << 1, "II"),
    (1 << 2, "Q"),
    (1 << 6, "Q"),
    (1 << 9, "Q"),
    (1 << 7, "II"),
    (1 << 16, "Q"),
)
SAMPLE, MMAP2, ID_INDEX, THREAD_MAP, CPU_MAP, EVENT_UPDATE = 9, 10, 69, 73, 74, 78
UPDATE_CPUS = 3
MISC_MMAP_BUILD_ID = 1 << 14
# the numbers that other records begin with: those of the kernel and those of perf
KERNEL = {
    1: "IIQQQ",
    2: "QQ",
    3: "II",
    4: "IIIIQ",
    5: "QQQ",
    6: "QQQ",
    7: "IIIIQ",
    10: "IIQQQIIQQII",
    13: "Q",
}
OWN = {68: "", 79: "QQQQQ", 82: ""}
# features that are a row of numbers and strings (s); ROWS are a number, and this number of rows
FEATURES = {
    3: "s",
    4: "s",
    5: "s",
    6: "s",
    7: "II",
    9: "s",
    10: "Q",
    21: "QQ",
    23: "Q",
    25: "I",
    26: "I",
    33: "II",
    34: "I",
}
ROWS = {11: "s", 16: "Is", 17: "sII", 28: "ss"}
BUILD_ID, EVENT_DESC, CPU_TOPOLOGY, PMU_CAPS = 2, 12, 13, 31


class Swapper:
    """The bytes of a file; all numbers up to `at` and those of features read are swapped."""

    def __init__(self, data: bytes) -> None:
        """Raises ValueError if this is no perf.data file."""
        if data[:8] not in MAGIC:
            raise ValueError("not a perf.data file")
        self.data = bytearray(data)
        self.old = MAGIC[data[:8]]
        self.new = "><"[self.old == ">"]
        self.at = 0
        self.kinds: dict[int, int] = {}  # sample_type by id

    def numbers(self, form: str) -> tuple[int, ...]:
        """Swaps the numbers that follow; returns them."""
        values = struct.unpack_from(self.old + form, self.data, self.at)
        struct.pack_into(self.new + form, self.data, self.at, *values)
        self.at += struct.calcsize(self.old + form)
        return values

    def row(self, form: str) -> tuple[int, ...]:
        """Swaps numbers, and skips strings, which follow their length; returns the numbers."""
        values: tuple[int, ...] = ()
        for letter in form:
            if letter == "s":
                (length,) = self.numbers("I")
                self.at += length
            else:
                values += self.numbers(letter)
        return values

    def attr(self) -> tuple[int, int]:
        """A perf_event_attr; returns its sample_type and flags."""
        begin = self.at
        _, size, _, _, sample_type, _ = self.numbers(ATTR[0])
        # the first bit-field is the lowest bit on a little-endian machine, the highest on a
        # big-endian one
        flags = self.data[self.at : self.at + 8]
        turned = bytes(int(f"{byte:08b}"[::-1], 2) for byte in flags)
        self.data[self.at : self.at + 8] = turned
        self.at += 8
        for letter in ATTR[1]:
            if self.at - begin >= size:
                break
            self.numbers(letter)
        if self.at - begin != size:
            raise ValueError(f"an attr of {size} bytes")
        return sample_type, int.from_bytes(flags if self.old == "<" else turned, "little")

    def file(self) -> bytes:
        """Swaps the whole file."""
        self.data[:8] = self.data[7::-1]
        self.at = 8
        _, attr_size, attrs_at, attrs_size, data_at, data_size, _, _ = self.numbers("8Q")
        features = [
            bit
            for word, value in enumerate(self.numbers("4Q"))
            for bit in range(64 * word, 64 * word + 64)
            if value >> bit % 64 & 1
        ]
        for self.at in range(attrs_at, attrs_at + attrs_size, attr_size):
            sample_type, flags = self.attr()
            ids_at, ids_size = self.numbers("QQ")
            self.at = ids_at
            self.kinds.update(dict.fromkeys(self.numbers(f"{ids_size // 8}Q"), sample_type))
            if not flags & SAMPLE_ID_ALL:
                raise ValueError("records that do not end with where they come from")
        self.at = data_at
        while self.at < data_at + data_size:
            self.record()
        self.at = data_at + data_size
        sections = [(feature, *self.numbers("QQ")) for feature in features]
        for feature, at, size in sections:
            self.at = at
            self.feature(feature, at + size)
            if self.at != at + size:
                raise ValueError(f"feature {feature} of another length")
        return bytes(self.data)

    def record(self) -> None:
        """One record."""
        begin = self.at
        kind, misc, size = self.numbers("IHH")
        end = begin + size
        if kind == SAMPLE:
            self.sample(end)
        elif kind in KERNEL:
            if kind == MMAP2 and misc & MISC_MMAP_BUILD_ID:
                # bytes of a build ID, where other records have device and inode
                self.numbers("IIQQQ")
                self.at += 24
                self.numbers("II")
            else:
                self.numbers(KERNEL[kind])
            (trailer,) = {
                "".join(form for bit, form in TRAILER if kind & bit) for kind in self.kinds.values()
            }
            self.at = end - struct.calcsize("<" + trailer)
            self.numbers(trailer)
        elif kind in OWN:
            self.numbers(OWN[kind])
        elif kind == ID_INDEX:
            self.numbers(f"{(end - self.at) // 8}Q")
        elif kind == THREAD_MAP:
            for _ in range(self.numbers("Q")[0]):
                self.numbers("Q")
                self.at += 16
        elif kind == CPU_MAP:
            self.cpu_map()
        elif kind == EVENT_UPDATE:
            if self.numbers("QQ")[0] != UPDATE_CPUS:
                raise ValueError("an event's update that is not of its CPUs")
            self.cpu_map()
        else:
            raise ValueError(f"a record of type {kind}")
        self.at = end

    def sample(self, end: int) -> None:
        """Swaps a sample.

        Everything after the fixed part has 64 bits. If the sample types differ, the id comes first.
        """
        kinds = set(self.kinds.values())
        sample_type = (
            kinds.pop()
            if len(kinds) == 1
            else self.kinds[struct.unpack_from(self.old + "Q", self.data, self.at)[0]]
        )
        if sample_type & ~(WORDS | sum(bit for bit, _ in FIXED)):
            raise ValueError(f"sample_type {sample_type:#x}")
        self.numbers("".join(form for bit, form in FIXED if sample_type & bit))
        self.numbers(f"{(end - self.at) // 8}Q")

    def cpu_map(self) -> None:
        """A list of CPUs, a mask of 64-bit words, or a range."""
        (kind,) = self.numbers("H")
        if kind == 0:
            self.numbers(f"{self.numbers('H')[0]}H")
        elif kind == 1:
            number, size = self.numbers("HH")
            if size != 8:
                raise ValueError("a mask of CPUs that has no 64-bit words")
            self.at += 2  # skip to the next multiple of 8
            self.numbers(f"{number}Q")
        else:
            self.at += 2
            self.numbers("HH")

    def feature(self, feature: int, end: int) -> None:
        """A section of the header's features."""
        if feature in FEATURES:
            self.row(FEATURES[feature])
        elif feature == BUILD_ID:
            while self.at < end:
                begin = self.at
                _, _, size, _ = self.numbers("IHHi")
                self.at = begin + size
        elif feature == EVENT_DESC:
            for _ in range(self.numbers("II")[0]):
                self.attr()
                (number,) = self.numbers("I")
                self.row("s" + number * "Q")
        elif feature == CPU_TOPOLOGY:
            self.topology(end)
        elif feature == PMU_CAPS:
            for _ in range(self.numbers("I")[0]):
                self.rows("ss")
                self.row("s")
        elif feature in ROWS:
            self.rows(ROWS[feature])
        else:
            raise ValueError(f"feature {feature}")

    def rows(self, form: str) -> None:
        """Swaps a number, and this number of rows."""
        for _ in range(self.numbers("I")[0]):
            self.row(form)

    def topology(self, end: int) -> None:
        """Names of cores and threads, core and socket of each CPU, and perhaps the same of dies."""
        self.rows("s")
        self.rows("s")
        while self.at < end:
            self.numbers("I")


def swap(source: Path, target: Path) -> None:
    """Writes the file with the other byte order."""
    target.write_bytes(Swapper(source.read_bytes()).file())
