# SPDX-License-Identifier: GPL-2.0
"""Builds fuzz_functions.c, the fuzzer of perf functions, and its seeds.

clang compiles perf functions again, with the sanitizers. The linker gets that before the objects of
perf's own build, and takes the first of two definitions. The other objects are not instrumented,
but the sanitizers see what they do to the heap.
"""

import re
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness import sumsfile
from tests.harness.env import BUILD, LINUX, TOP, must
from tests.harness.recording import LONG, WINDOW, Recording, Windows

PERF_BUILD, PERF_SOURCE = BUILD / "perf", LINUX / "tools/perf"
SANITIZERS = "address,undefined"
# keep the structures of perf's own build, which adds reference counts under a sanitizer
CLANG = *("clang", "-g", "-O1", "-w", "-D__has_feature(feature)=0"), *(
    f"-fsanitize=fuzzer-no-link,{SANITIZERS}",
    "-fno-sanitize-recover=undefined",
    *("-Dfuzz_initialize=LLVMFuzzerInitialize", "-Dfuzz_one_input=LLVMFuzzerTestOneInput"),
    *("-Dfuzz_mutate=LLVMFuzzerCustomMutator", "-Dfuzz_mutate_bytes=LLVMFuzzerMutate"),
    # perf's evlist copies 0 bytes from NULL; its samples have 8 bytes behind raw data of any size
    "-fno-sanitize=nonnull-attribute,alignment",
)


def compiler_words() -> list[str]:
    """The compiler options of perf's build, without warnings, optimization and foreign paths."""
    name, command = re.search(
        r"^cmd_(\S+) := (.*)$", (PERF_BUILD / "util/.parse-events.o.cmd").read_text(), re.M
    ).groups()
    built = name.removesuffix("/util/parse-events.o")
    source = re.search(r"-I(\S+)/tools/perf\b", command)[1]
    words = command.replace(built, str(PERF_BUILD)).replace(source, str(LINUX)).split()
    return [
        word
        for word in words
        if re.match("-[DIU]|-std|-f", word) and not re.search("BUILD_STR|FORTIFY|stack-prot", word)
    ]


def rest_of_perf(folder: Path) -> list[object]:
    """What the linker needs of perf's build, for a program with a main function of its own."""
    perf = folder / "perf-in.o"
    must("objcopy", "--redefine-sym", "main=perf_main", PERF_BUILD / "perf-in.o", perf)
    archives = sorted(PERF_BUILD.glob("*.a")) + sorted(PERF_BUILD.glob("lib*/lib*.a"))
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", must("readelf", "-d", PERF_BUILD / "perf"))
    libraries = [f"-l:{name}" for name in needed if not name.startswith("ld-")]
    return [perf, "-Wl,--start-group", *archives, "-Wl,--end-group", *libraries]


def build(folder: Path) -> Path:
    """Builds the fuzzer in a folder; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = [TOP / "tests/harness/fuzz_functions.c", PERF_SOURCE / "builtin-functions.c"]
    sources += sorted((PERF_SOURCE / "util/functions").rglob("*.c"))
    sources += [PERF_SOURCE / f"util/{name}.c" for name in ("evlist", "evsel", "session")]
    units = [folder / f"{number}-{source.stem}.o" for number, source in enumerate(sources)]
    words = *CLANG, *compiler_words(), "-c", "-o"
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(must, *words, unit, source, cwd=PERF_SOURCE)
            for unit, source in zip(units, sources)
        ]
        for job in jobs:
            job.result()
    must(
        *("clang", f"-fsanitize=fuzzer,{SANITIZERS}", "-Wl,-z,muldefs", "-o", folder / "fuzzer"),
        *(*units, *rest_of_perf(folder)),
    )
    return folder / "fuzzer"


def sums_seeds(folder: Path) -> None:
    """Writes sums files of one set and of two."""
    folder.mkdir(parents=True, exist_ok=True)
    events, short, long = ("cycles", "instructions"), [(300, 100)] * 3, [(999700, 300000)] * 2
    samples = sumsfile.sample_set({"cycles": {"f": [1000] * 5}, "faults": {"f": [10] * 3}})
    for name, even, more in ("one", 0, ""), ("two", 2, samples):
        made = sumsfile.window_set(events, {"f": short, "g": short}, long, even)
        text = f"{sumsfile.HEAD}cpu\tcpu slots=4\n{made}{more}end\n"
        (folder / name).write_text(f"\0{text}")  # the first byte chooses options


def recording_seeds(folder: Path) -> None:
    """Writes recordings in pipes for each kind of row, and their features beside folder."""
    features = b""
    recordings = (
        *(windows(), threads(), chains(), late_group(), late_leader()),
        *(branches("aarch64"), branches("x86_64"), aux(), registers()),
    )
    for number, recording in enumerate(recordings):
        recording.write_pipe(folder / "pipe")
        text = (folder / "pipe").read_bytes()
        for options in range(10):
            (folder / f"{number}-{options}").write_bytes(bytes([options]) + text)
        features += b"".join(record for kind, record in records(text) if kind == pw.HEADER_FEATURE)
    (folder / "pipe").unlink()
    folder.with_name("features").write_bytes(features)


def records(text: bytes) -> Iterator[tuple[int, bytes]]:
    """The type and the bytes of each record in a pipe."""
    at = 16
    while at < len(text):
        kind, _, size = struct.unpack_from("<IHH", text, at)
        if kind == pw.AUXTRACE:  # its data follow
            size += struct.unpack_from("<Q", text, at + 8)[0]
        yield kind, text[at : at + size]
        at += size


def windows() -> pw.Writer:
    """A recording with windows in three places, losses and throttling."""
    made = Windows()
    for address in (0x1000, 0x2000, 0x2000):
        made.window(address)
    made.writer.lost(made.where(), 1, 5)
    made.window(0x2000)
    made.writer.throttle(pw.THROTTLE, made.where(), 1)
    made.window(0x1000, 0x2000)
    made.map("/lib/x.so", 0x1000)
    made.window(0x1000)
    made.writer.comm(made.where(), "\udcff\x1b")
    made.window(0x1000)
    return made.writer


def threads() -> pw.Writer:
    """Two groups with inherited counts, on two threads."""
    flags = pw.FLAG_INHERIT | pw.FLAG_SAMPLE_ID_ALL
    groups = [
        [
            pw.Event("cycles", 0, 0, [10 * group + 1], LONG, WINDOW, flags=flags),
            pw.Event("instructions", 0, 1, [10 * group + 2], flags=flags),
            pw.Event("r1b", 4, 0x1B, [10 * group + 3], flags=flags),
        ]
        for group in range(2)
    ]
    made = Recording(groups)
    made.writer.task(pw.FORK, made.where(101), made.where())
    for _ in range(3):
        for group in range(2):
            for tid in 100, 101:
                made.sample(0x1000, LONG, 500, 5, group=group, tid=tid)
                made.sample(0x1000, WINDOW, 100, 1, group=group, tid=tid)
    made.writer.task(pw.EXIT, made.where(101), made.where())
    return made.writer


def chains() -> pw.Writer:
    """A recording with call chains."""
    kinds = pw.Event("", 0, 0, []).sample_type | pw.CALLCHAIN
    made = Recording(
        [[pw.Event("cycles", 0, 0, [1], 1000, sample_type=kinds), pw.Event("faults", 1, 2, [2])]]
    )
    for address in range(0x1000, 0x1030, 8):
        made.sample(address, 1000, 1, callers=(0x2000, 0x3000))
    return made.writer


def branches(arch: str) -> pw.Writer:
    """A recording with branch records: of two functions, of nowhere, damaged ones, and none."""
    kinds = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.IDENTIFIER | pw.BRANCH_STACK
    event = pw.Event(
        *("cycles", 0, 0, [1], LONG),
        sample_type=kinds,
        branch_sample_type=pw.BRANCH_USER | pw.BRANCH_ANY,
    )
    other = pw.Event("faults", 1, 2, [2], sample_type=kinds)
    writer = pw.Writer([[event, other]], arch=arch)
    where = pw.Where(1, 100, 100)
    writer.comm(where, "program")
    writer.mmap2(where, 0x1000, 0x2000, "/usr/bin/true")
    two = [(0x1010, 0x1100, 5), (0x1110, 0x1000, 20)] * 16
    for stack in (
        *(two, two, two[:3], []),
        [(0x7000, 0x7000, 0xFFFF)] * 8,
        [(0x1000, 0x1100, 1), (2**64 - 1, 2**63, 300), (0, 0, 0)],
    ):
        writer.sample(event, where, 0x1000, LONG, [(1, 0)], branches=(0, stack))
    return writer


def aux() -> pw.Writer:
    """AUX data of SPE: a load that misses, a branch, and padding."""
    kinds = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.IDENTIFIER
    event = pw.Event("arm_spe_0//", 9, 1 << 16, [9], 4096, sample_type=kinds)
    pmus = ((9, "arm_spe_0"),)
    made = Recording([[event]], cpuid="0x00000000410fd490", arch="aarch64", pmus=pmus)
    made.map("/usr/bin/true", 0x1000, 0x2000)
    data = b""
    for time in range(2000, 2040, 2):
        data += struct.pack("<BQBIBH", 0xB0, 0x1010 | 1 << 63, 0x64, 100, 0x52, 0x33E)
        data += struct.pack("<BBBHBQ", 0x49, 0, 0x98, 30, 0x71, time)
        data += struct.pack("<BQBIBH", 0xB0, 0x1100 | 1 << 63, 0x64, 100, 0x52, 0x82)
        data += struct.pack("<BBBQ", 0x4A, 1, 0x71, time + 1) + bytes(3)
    pw.write_trace(made.writer, 9, data)
    made.writer.side(pw.AUX, struct.pack("<QQQ", 0, len(data), 9), made.where(), 9)
    return made.writer


def registers() -> pw.Writer:
    """Samples of IBS: with registers, with too few of them, and with a data source."""
    kinds = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD | pw.IDENTIFIER
    events = [
        pw.Event("ibs_op//", 9, 1 << 19, [1], LONG, sample_type=kinds | pw.RAW),
        pw.Event("ibs_op//", 9, 0, [2], LONG, sample_type=kinds | pw.DATA_SRC | pw.WEIGHT),
    ]
    groups = [[event] for event in events]
    made = Recording(groups, cpuid="AuthenticAMD,25,97,2", arch="x86_64", pmus=((9, "ibs_op"),))
    words = 3 << 17 | 1 << 19, 0x1000, 3 << 36, 2, 100 << 32 | 0x10008D, 0, 0, 0
    for size in 68, 68, 44, 8:
        made.sample(0x1000, LONG, raw=struct.pack("<I8Q", 0xFFF, *words)[:size])
        made.sample(0x1000, LONG, group=1, memory=(size, 2 | 0x82 << 5 | 0x14 << 26))
    return made.writer


def late_group() -> pw.Writer:
    """A tracepoint that joins a group after the first samples."""
    leader = pw.Event("cycles", 0, 0, [1], LONG, WINDOW)
    member = pw.Event("sched:sched_switch", 2, 7, [2], 1)
    writer = pw.Writer([[leader]])
    writer.comm(pw.Where(1, 100, 100), "program")
    for time in (2, 30_000_000):  # perf keeps back the last 10 ms of a round
        writer.sample(leader, pw.Where(time, 100, 100), 0x1000, LONG, [(1, time * LONG)])
    writer.finished_round()
    writer.finished_round()  # now these samples are read
    writer.record(pw.HEADER_ATTR, member.attr() + struct.pack("<Q", 2), 0)
    group = pw.Writer([[leader, member]]).group_desc()
    writer.record(pw.HEADER_FEATURE, struct.pack("<Q", pw.HEADER_GROUP_DESC) + group, 0)
    writer.sample(member, pw.Where(40_000_000, 100, 100), 0x1000, 1, [(2, 1)])
    return writer


def late_leader() -> pw.Writer:
    """A group that gets another leader after the samples of both."""
    leader, first = (pw.Event("cycles", 0, 0, [number], LONG, WINDOW) for number in (1, 2))
    group = [first, *(pw.Event("instructions", 0, 1, [number]) for number in (3, 4))]
    writer = pw.Writer([[leader], group])
    writer.comm(pw.Where(1, 100, 100), "program")
    for time in (2, 3):
        where = pw.Where(time, 100, 100)
        writer.sample(first, where, 0x1000, LONG, [(2, time), (3, time), (4, time)])
        writer.sample(leader, where, 0x1000, LONG, [(1, time)])
    writer.finished_round()
    writer.finished_round()  # now these samples are read
    late = pw.Writer([[leader, *group]]).group_desc()
    writer.record(pw.HEADER_FEATURE, struct.pack("<Q", pw.HEADER_GROUP_DESC) + late, 0)
    writer.sample(leader, pw.Where(4, 100, 100), 0x1000, LONG, [(1, 4), (4, 4)])
    return writer
