# SPDX-License-Identifier: GPL-2.0
"""Reads and writes perf.data files without perf's code: recordings of known content, for tests.

The format is that of tools/perf/Documentation/perf.data-file-format.txt and of
include/uapi/linux/perf_event.h. Only what `perf record` on a little-endian machine writes into a
file is read.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LOST, COMM, EXIT, THROTTLE, UNTHROTTLE, FORK, READ_COUNTS, SAMPLE, MMAP2, AUX = range(2, 12)
CGROUP, HEADER_ATTR, FINISHED_ROUND, AUXTRACE, THREAD_MAP, HEADER_FEATURE = 19, 64, 68, 71, 73, 80
MISC_KERNEL, MISC_USER, MISC_EXACT_IP = 1, 2, 1 << 14
CONTEXT_KERNEL, CONTEXT_USER = 2**64 - 128, 2**64 - 512
REGS_ABI_64 = 2
IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID = (1 << bit for bit in range(10))
BRANCH_STACK, REGS_USER, IDENTIFIER, SAMPLE_CGROUP = (1 << bit for bit in (11, 12, 16, 21))
RAW, WEIGHT, DATA_SRC = (1 << bit for bit in (10, 14, 15))
AUXTRACE_INFO, TIME_CONV, TRACE_SPE = 70, 79, 4
BRANCH_USER, BRANCH_ANY, BRANCH_ANY_CALL, BRANCH_CALL_STACK = (1 << bit for bit in (0, 3, 4, 11))
BRANCH_NO_FLAGS, BRANCH_NO_CYCLES, BRANCH_HW_INDEX = (1 << bit for bit in (14, 15, 17))
FORMAT_ENABLED, FORMAT_RUNNING, FORMAT_ID, FORMAT_GROUP, FORMAT_LOST = (
    1 << bit for bit in range(5)
)
FLAG_INHERIT, FLAG_EXCLUDE_USER, FLAG_EXCLUDE_KERNEL, FLAG_FREQ, FLAG_SAMPLE_ID_ALL = (
    1 << bit for bit in (1, 4, 5, 10, 18)
)
FLAG_PRECISE, FLAG_CLOCKID = 1 << 15, 1 << 25
HEADER_BUILD_ID, HEADER_HOSTNAME, HEADER_OSRELEASE = 2, 3, 4
HEADER_ARCH, HEADER_NRCPUS, HEADER_CPUID, HEADER_CMDLINE, HEADER_EVENT_DESC = 6, 7, 9, 11, 12
HEADER_CPU_TOPOLOGY, HEADER_PMU_MAPPINGS, HEADER_GROUP_DESC = 13, 16, 17
HEADER_SAMPLE_TIME, HEADER_CPU_PMU_CAPS, HEADER_PMU_CAPS = 21, 28, 31
ATTR_SIZE = 160
# the leading, fixed fields, in the order of a sample
FIXED = {
    "identifier": IDENTIFIER,
    "ip": IP,
    "tid": TID,
    "time": TIME,
    "addr": ADDR,
    "id": ID,
    "stream_id": STREAM_ID,
    "cpu": CPU,
    "period": PERIOD,
}
# the fields at the end of other records (sample_id_all)
TRAILER = {name: FIXED[name] for name in ("tid", "time", "id", "stream_id", "cpu", "identifier")}


@dataclass
class Event:
    """An event: its name, its type and config, its ids (one per CPU). A file tells no name."""

    name: str
    type: int
    config: int
    ids: list[int]
    sample_period: int = 0
    alternative_sample_period: int = 0
    jitter_alternate_period: int = 0
    alternative_sample_count: int = 0
    sample_type: int = IP | TID | TIME | READ | CPU | PERIOD | IDENTIFIER
    read_format: int = FORMAT_ID | FORMAT_GROUP
    flags: int = FLAG_EXCLUDE_KERNEL | FLAG_SAMPLE_ID_ALL
    branch_sample_type: int = 0
    sample_regs_user: int = 0
    clock: int = 0  # of its times, with FLAG_CLOCKID
    sample_max_stack: int = 0
    config1: int = 0
    config3: int = 0
    size: int = ATTR_SIZE

    @property
    def inherit(self) -> bool:
        return bool(self.flags & FLAG_INHERIT)

    def attr(self) -> bytes:
        """Its perf_event_attr."""
        begin = struct.pack(
            "<IIQQQQQ8xQ8xQQ",
            self.type,
            ATTR_SIZE,
            self.config,
            self.sample_period,
            self.sample_type,
            self.read_format,
            self.flags,
            self.config1,
            self.branch_sample_type,
            self.sample_regs_user,
        )
        begin += bytes(92 - len(begin)) + struct.pack("<i", self.clock)
        begin += bytes(108 - len(begin)) + struct.pack("<H", self.sample_max_stack)
        begin += bytes(128 - len(begin)) + struct.pack("<Q", self.config3)
        end = struct.pack(
            "<QII",
            self.alternative_sample_period,
            self.jitter_alternate_period,
            self.alternative_sample_count,
        )
        return begin + bytes(ATTR_SIZE - len(begin) - len(end)) + end


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

    attr: Event
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

    attrs: list[Event]
    samples: list[Sample]
    records: dict[int, int]
    aux: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    trace: dict[int, bytes] = field(default_factory=dict)

    def leader(self) -> Event:
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

    def streams(self, attr: Event) -> dict[tuple[int, int], list[Sample]]:
        """Samples of one event by (event id, thread), in the order of time."""
        streams: dict[tuple[int, int], list[Sample]] = {}
        for sample in sorted((s for s in self.samples if s.attr is attr), key=lambda s: s.time):
            streams.setdefault((sample.id, sample.tid), []).append(sample)
        return streams


def read_attrs(data: bytes) -> list[Event]:
    """The attrs section of the file."""
    attr_size, offset, size = struct.unpack_from("<QQQ", data, 16)
    attrs = []
    for at in range(offset, offset + size, attr_size):
        kind, length, config, period, *words = struct.unpack_from("<IIQQQQQ", data, at)
        alternate = struct.unpack_from("<QII", data, at + 144) if length >= 160 else (0, 0, 0)
        ids_at, ids_size = struct.unpack_from("<QQ", data, at + attr_size - 16)
        ids = list(struct.unpack_from(f"<{ids_size // 8}Q", data, ids_at))
        (branches,) = struct.unpack_from("<Q", data, at + 72)
        values = kind, config, ids, period, *alternate, *words, branches
        attrs.append(Event("", *values, size=length))
    return attrs


def event_of(words: Sequence[int], attrs: list[Event]) -> Event:
    """The event of a sample with these 64-bit words. All samples have its id in the same place."""
    common = attrs[0].sample_type
    place = 0
    if not common & IDENTIFIER:
        names = [name for name, bit in FIXED.items() if common & bit]
        if "id" not in names:
            return attrs[0]
        place = names.index("id")
    return next(attr for attr in attrs if words[place] in attr.ids)


def read_sample(body: bytes, attrs: list[Event]) -> Sample:
    """One PERF_SAMPLE without its header."""
    words = struct.unpack(f"<{len(body) // 8}Q", body)
    sample = Sample(event_of(words, attrs))
    rest = iter(words)
    for name, bit in FIXED.items():
        if sample.attr.sample_type & bit:
            sample.fields[name] = next(rest)
    if "tid" in sample.fields:
        sample.fields["pid"], sample.fields["tid"] = sample.tid & 0xFFFFFFFF, sample.tid >> 32
    sample.fields.setdefault("id", sample.fields.get("identifier", 0))
    form = sample.attr.read_format
    if sample.attr.sample_type & READ and form & FORMAT_GROUP and form & FORMAT_ID:
        number = next(rest)
        for _ in range(bool(form & FORMAT_ENABLED) + bool(form & FORMAT_RUNNING)):
            next(rest)
        for _ in range(number):
            value, member = next(rest), next(rest)
            sample.values[member] = value
            if form & FORMAT_LOST:
                next(rest)
    if sample.attr.sample_type & BRANCH_STACK:
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
        if kind == SAMPLE:
            found.samples.append(read_sample(data[at + 8 : at + length], attrs))
        elif kind == AUX:
            _offset, size, flags, *rest = struct.unpack_from(f"<{length // 8 - 1}Q", data, at + 8)
            whose = dict(
                zip((name for name, bit in TRAILER.items() if attrs[0].sample_type & bit), rest)
            )
            found.aux.setdefault(whose["cpu"], []).append((whose["time"], size, flags))
        elif kind == AUXTRACE:
            size, cpu = struct.unpack_from("<Q24xI", data, at + 8)
            trace.setdefault(cpu, []).append(data[at + length : at + length + size])
            length += size
        at += length
    found.trace = {cpu: b"".join(parts) for cpu, parts in trace.items()}
    return found


@dataclass
class Where:
    """The time, the thread and the CPU of something that happened."""

    time: int
    pid: int
    tid: int
    cpu: int = 0


@dataclass
class Writer:
    """The records of a recording, in the order of the file.

    groups: lists of events, leader first; times: those of the first and the last sample, for the
    header.
    """

    groups: list[list[Event]]
    records: list[bytes] = field(default_factory=list)
    times: tuple[int, int] | None = None
    cpuid: str = ""
    arch: str = ""
    host: str = ""
    release: str = ""
    command: tuple[str, ...] = ()  # the words of perf's command line
    build_ids: dict[str, str] = field(default_factory=dict)  # by path, in hexadecimal
    slots: int = 0  # the number that the PMU reports
    branches: int = 0  # the depth of its branch records
    threads: tuple[str, ...] = ()  # the threads of each core
    pmus: tuple[tuple[int, str], ...] = ()  # number and name of each PMU
    caps: tuple[str, ...] = ()  # of the first of them

    @property
    def leader(self) -> Event:
        return self.groups[0][0]

    def record(self, kind: int, body: bytes, misc: int = MISC_USER) -> None:
        self.records.append(struct.pack("<IHH", kind, misc, 8 + len(body)) + body)

    def side(
        self, kind: int, body: bytes, where: Where, number: int = 0, misc: int = MISC_USER
    ) -> None:
        """A record other than a sample; at its end stands where it comes from (sample_id_all)."""
        kinds = self.leader.sample_type
        trailer = b""
        for bit, value in (
            (TID, struct.pack("<II", where.pid, where.tid)),
            (TIME, struct.pack("<Q", where.time)),
            (ID, struct.pack("<Q", number)),
            (CPU, struct.pack("<II", where.cpu, 0)),
            (IDENTIFIER, struct.pack("<Q", number)),
        ):
            if kinds & bit:
                trailer += value
        self.record(kind, body + trailer, misc)

    def comm(self, where: Where, name: str) -> None:
        self.side(
            COMM, struct.pack("<II", where.pid, where.tid) + padded(name), where, self.leader.ids[0]
        )

    def mmap2(
        self,
        where: Where,
        start: int,
        length: int,
        path: str,
        offset: int = 0,
        misc: int = MISC_USER,
    ) -> None:
        """A mapping of code: PROT_READ | PROT_EXEC, MAP_PRIVATE; device and inode are 0.

        A mapping of the kernel has pid -1.
        """
        pid = -1 if misc == MISC_KERNEL else where.pid
        self.side(
            MMAP2,
            struct.pack("<iIQQQIIQQII", pid, where.tid, start, length, offset, 0, 0, 0, 0, 5, 2)
            + padded(path),
            where,
            self.leader.ids[0],
            misc,
        )

    def task(self, kind: int, where: Where, parent: Where) -> None:
        """A FORK or EXIT record."""
        self.side(
            kind,
            struct.pack("<IIIIQ", where.pid, parent.pid, where.tid, parent.tid, where.time),
            where,
            self.leader.ids[0],
        )

    def throttle(self, kind: int, where: Where, number: int) -> None:
        """THROTTLE or UNTHROTTLE of the event with this id."""
        self.side(kind, struct.pack("<QQQ", where.time, number, number), where, number)

    def lost(self, where: Where, number: int, count: int) -> None:
        """A LOST record of the kernel: `count` samples of the event with this id had no room."""
        self.side(LOST, struct.pack("<QQ", number, count), where, number)

    def counted(self, where: Where, number: int, value: int, times: tuple[int, int]) -> None:
        """What the event with this id has counted in a thread that ends (perf record --stat)."""
        body = struct.pack("<IIQQQQ", where.pid, where.tid, value, *times, number)
        self.side(READ_COUNTS, body, where, number)

    def cgroup(self, where: Where, number: int, path: str) -> None:
        """The path of the cgroup with this id."""
        self.side(CGROUP, struct.pack("<Q", number) + padded(path), where, self.leader.ids[0])

    def thread_map(self, pid: int = -1) -> None:
        """The process that is recorded, -1 in a CPU-wide recording."""
        self.record(THREAD_MAP, struct.pack("<Qq16s", 1, pid, b""), 0)

    def finished_round(self) -> None:
        self.record(FINISHED_ROUND, b"", 0)

    def sample(
        self,
        leader: Event,
        where: Where,
        ip: int,
        period: int,
        values: Sequence[tuple[int, int]],
        callers: Sequence[int] = (),
        misc: int = MISC_USER,
        branches: tuple[int, Sequence[tuple[int, ...]]] = (0, ()),
        registers: Sequence[int] = (),
        cgroup: int = 0,
        number: int = 0,
        times: tuple[int, int] = (7, 7),
        raw: bytes = b"",
        memory: tuple[int, int] = (0, 0),
        frames: Sequence[int] = (),
    ) -> None:
        """A sample of a group.

        values: (id, value), the leader's first; callers: return addresses, last call first;
        branches: the index of the last register, and (from, to), (from, to, cycles) or
        (from, to, cycles, mispredicted) of each branch, last one first; registers: those of
        sample_regs_user; cgroup: its id; number: the id of the event that samples, if it is not the
        leader's; times: for which it was enabled, and has counted; raw: 4 bytes more than a
        multiple of 8; memory: the weight and the data source; frames: the call chain with its
        contexts, instead of that of a sample in user space.
        """
        number = number or values[0][0]
        chain = frames or (CONTEXT_USER, ip, *callers)
        index, pairs = branches
        stack = [len(pairs), *([index] if leader.branch_sample_type & BRANCH_HW_INDEX else ())]
        for source, target, *more in pairs:
            cycles, missed = (*more, 0, 0)[:2]
            stack += [source, target, cycles << 4 | missed]
        parts = {
            IDENTIFIER: struct.pack("<Q", number),
            IP: struct.pack("<Q", ip),
            TID: struct.pack("<II", where.pid, where.tid),
            TIME: struct.pack("<Q", where.time),
            ID: struct.pack("<Q", number),
            CPU: struct.pack("<II", where.cpu, 0),
            PERIOD: struct.pack("<Q", period),
            READ: self.read(leader, values, times),
            CALLCHAIN: struct.pack(f"<{1 + len(chain)}Q", len(chain), *chain),
            RAW: struct.pack("<I", len(raw)) + raw,
            BRANCH_STACK: struct.pack(f"<{len(stack)}Q", *stack),
            REGS_USER: struct.pack(f"<{1 + len(registers)}Q", REGS_ABI_64, *registers),
            WEIGHT: struct.pack("<Q", memory[0]),
            DATA_SRC: struct.pack("<Q", memory[1]),
            SAMPLE_CGROUP: struct.pack("<Q", cgroup),
        }
        self.record(
            SAMPLE,
            b"".join(value for bit, value in parts.items() if leader.sample_type & bit),
            misc,
        )

    @staticmethod
    def read(
        leader: Event, values: Sequence[tuple[int, int]], times: tuple[int, int] = (7, 7)
    ) -> bytes:
        """The values of a sample."""
        form = leader.read_format
        known = [time for bit, time in zip((FORMAT_ENABLED, FORMAT_RUNNING), times) if form & bit]
        if not form & FORMAT_GROUP:
            words = [values[0][1], *known, values[0][0]] + [0] * bool(form & FORMAT_LOST)
        else:
            words = [len(values), *known]
            for number, value in values:
                words += [value, number] + [0] * bool(form & FORMAT_LOST)
        return struct.pack(f"<{len(words)}Q", *words)

    def write(self, path: Path) -> None:
        """Writes the whole file: header, ids, attrs, records, features."""
        events = [event for group in self.groups for event in group]
        ids_at, ids = 104, b""
        attrs = b""
        for event in events:
            own = struct.pack(f"<{len(event.ids)}Q", *event.ids)
            attrs += event.attr() + struct.pack("<QQ", ids_at + len(ids), len(own))
            ids += own
        attrs_at = ids_at + len(ids)
        data_at, size = attrs_at + len(attrs), sum(map(len, self.records))
        features = self.features()
        bits = sum(1 << feature for feature in features)
        header = struct.pack(
            "<8sQQQQQQQQ",
            b"PERFILE2",
            104,
            ATTR_SIZE + 16,
            attrs_at,
            len(attrs),
            data_at,
            size,
            0,
            0,
        ) + struct.pack("<QQQQ", bits, 0, 0, 0)
        features = sections(data_at + size, *(text for _, text in sorted(features.items())))
        with path.open("wb") as file:
            file.writelines((header, ids, attrs, *self.records, features))

    def write_pipe(self, path: Path) -> None:
        """Writes what perf record -o - would: attrs and features are records, too."""
        begin = Writer(self.groups)
        for group in self.groups:
            for event in group:
                begin.record(
                    HEADER_ATTR, event.attr() + struct.pack(f"<{len(event.ids)}Q", *event.ids), 0
                )
        for number, text in sorted(self.features().items()):
            begin.record(HEADER_FEATURE, struct.pack("<Q", number) + text, 0)
        with path.open("wb") as file:
            file.writelines((struct.pack("<8sQ", b"PERFILE2", 16), *begin.records, *self.records))

    def features(self) -> dict[int, bytes]:
        """The features of the header by number."""
        features = {
            HEADER_EVENT_DESC: self.event_desc(event for group in self.groups for event in group),
            HEADER_GROUP_DESC: self.group_desc(),
            **self.cpu(),
        }
        if self.build_ids:
            features[HEADER_BUILD_ID] = b"".join(
                build_id(path, text) for path, text in self.build_ids.items()
            )
        if self.times:
            features[HEADER_SAMPLE_TIME] = struct.pack("<QQ", *self.times)
        return features

    def cpu(self) -> dict[int, bytes]:
        """The features that describe the CPUs."""
        features = {HEADER_NRCPUS: struct.pack("<II", 128, 128)}
        for number, text in (
            (HEADER_HOSTNAME, self.host),
            (HEADER_OSRELEASE, self.release),
            (HEADER_ARCH, self.arch),
        ):
            if text:
                features[number] = sized(text)
        if self.cpuid:
            features[HEADER_CPUID] = sized(self.cpuid)
        if self.command:
            words = b"".join(map(sized, self.command))
            features[HEADER_CMDLINE] = struct.pack("<I", len(self.command)) + words
        if self.threads:
            cores = struct.pack("<I", 1) + sized("0-63")
            features[HEADER_CPU_TOPOLOGY] = (
                cores + struct.pack("<I", len(self.threads)) + b"".join(map(sized, self.threads))
            )
        if self.branches:
            number = sized("branches") + sized(str(self.branches))
            features[HEADER_CPU_PMU_CAPS] = struct.pack("<I", 1) + number
        if self.pmus:
            features[HEADER_PMU_MAPPINGS] = struct.pack("<I", len(self.pmus)) + b"".join(
                struct.pack("<I", number) + sized(name) for number, name in self.pmus
            )
        if self.caps:
            features[HEADER_PMU_CAPS] = struct.pack("<II", 1, len(self.caps)) + b"".join(
                sized(name) + sized("1") for name in self.caps
            )
            features[HEADER_PMU_CAPS] += sized(self.pmus[0][1])
        if self.slots:
            caps = sized("bus_slots") + sized("0x1") + sized("slots") + sized(f"{self.slots:#010x}")
            features[HEADER_PMU_CAPS] = struct.pack("<II", 1, 2) + caps + sized("armv8_pmuv3_0")
        return features

    @staticmethod
    def event_desc(events: Iterable[Event]) -> bytes:
        """HEADER_EVENT_DESC: the names of the events."""
        events = list(events)
        text = struct.pack("<II", len(events), ATTR_SIZE)
        for event in events:
            text += event.attr() + struct.pack("<I", len(event.ids)) + sized(event.name)
            text += struct.pack(f"<{len(event.ids)}Q", *event.ids)
        return text

    def group_desc(self) -> bytes:
        """HEADER_GROUP_DESC: the events that are in groups."""
        groups, first = [], 0
        for group in self.groups:
            if len(group) > 1:
                groups.append(sized("{anon_group}") + struct.pack("<II", first, len(group)))
            first += len(group)
        return struct.pack("<I", len(groups)) + b"".join(groups)


def write_trace(writer: Writer, pmu: int, data: bytes) -> None:
    """AUX data of SPE on CPU 0, whose clock counts nanoseconds."""
    writer.record(TIME_CONV, struct.pack("<QQQQQB7x", 0, 1, 0, 0, 2**64 - 1, 1), 0)
    writer.record(AUXTRACE_INFO, struct.pack("<IIQQ", TRACE_SPE, 0, pmu, 0), 0)
    writer.record(AUXTRACE, struct.pack("<QQQIiII", len(data), 0, 0, 0, -1, 0, 0), 0)
    writer.records.append(data)


def sections(at: int, *texts: bytes) -> bytes:
    """The features at the end of the file: the place of each one, then all of them."""
    at += 16 * len(texts)
    table = b""
    for text in texts:
        table += struct.pack("<QQ", at, len(text))
        at += len(text)
    return table + b"".join(texts)


def build_id(path: str, text: str) -> bytes:
    """An entry of HEADER_BUILD_ID; the kernel is in brackets."""
    misc = MISC_KERNEL if path.startswith("[kernel") else MISC_USER
    body = struct.pack("<i20sI", -1, bytes.fromhex(text), len(text) // 2) + padded(path)
    return struct.pack("<IHH", 67, misc | 1 << 15, 8 + len(body)) + body


def padded(text: str) -> bytes:
    """A string of a record: it ends with 0 and is padded to a multiple of 8."""
    raw = text.encode(errors="surrogateescape") + b"\0"
    return raw + bytes(-len(raw) % 8)


def sized(text: str) -> bytes:
    """A string of the header: its length, padded to a multiple of 64, and the string."""
    raw = text.encode(errors="surrogateescape") + b"\0"
    raw += bytes(-len(raw) % 64)
    return struct.pack("<I", len(raw)) + raw
