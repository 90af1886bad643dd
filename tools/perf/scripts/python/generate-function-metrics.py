# SPDX-License-Identifier: GPL-2.0
# generate-function-metrics.py - metrics of functions from the counts of groups
#
# Usage:
#     perf record -T --sample-cpu -e '{cycles/period=999700,alt-period=300/,instructions,
#         branch-misses,cache-references,cache-misses}:uS' -- COMMAND
#     perf script -s generate-function-metrics.py -- -s discard --sort CPI --limit 20
#
# or, where Python finds perf's module: python3 generate-function-metrics.py -i perf.data
# pylint: disable=c-extension-no-member,possibly-unused-variable

"""
Print a table of metrics (cycles per instruction, misses per 1000 instructions ...) per function.

The input is a recording of counter groups (`{leader,member,...}:S`) whose leader alternates
between a long period and a short one, the window. A window that begins and ends in one function and
thread is *matched*: what the group has counted in it is of that function. A recording with one
small period can be read, too: there every interval is a window.

Collector has the rules and METRICS the columns: edit them as you like. `perf functions report`
reads the same recordings, and prints much more.
"""

import argparse
import csv
import os
import re
import signal
import struct
import sys
from collections import defaultdict, namedtuple
from operator import itemgetter
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence, Set, Tuple

TOTAL = "total"  # Metric.per of a share
HARDWARE, SOFTWARE, TRACEPOINT, HW_CACHE, RAW, FIRST_PMU = 0, 1, 2, 3, 4, 6  # perf_event_attr.type
SAMPLE_READ, FORMAT_GROUP = 1 << 4, 1 << 3
ATTR = struct.Struct("=I4x5Q96xQI")

# a column: scale x event / per, an event or TOTAL; `samples` and `discarded` are windows
Metric = namedtuple("Metric", "column meaning event per scale digits", defaults=(100, 1))
METRICS = (
    Metric("#", "window samples", "samples", "", 1, 0),
    Metric("CPI", "cycles per instruction", "cycles", "instructions", 1),
    Metric("%RI", "speculated instructions that retired", "instructions", "inst_spec"),
    Metric("BM/KI", "branch mispredicts", "branch-misses", "instructions", 1000),
    Metric("CM/KI", "L1D misses", "cache-misses", "instructions", 1000),
    Metric("%CM", "accesses that miss", "cache-misses", "cache-references"),
    Metric("TM/KI", "data TLB misses", "dTLB-load-misses", "instructions", 1000, 3),
    Metric("PF/KI", "page faults", "page-faults", "instructions", 1000, 3),
    Metric("%CY", "share of the cycles", "cycles", TOTAL),
    Metric("%I", "share of the instructions", "instructions", TOTAL),
    Metric("%BM", "share of the branch mispredicts", "branch-misses", TOTAL),
    Metric("%L1DA", "share of the L1D accesses", "cache-references", TOTAL),
    Metric("%L1DM", "share of the L1D misses", "cache-misses", TOTAL),
    Metric("%TM", "share of the data TLB misses", "dTLB-load-misses", TOTAL),
    Metric("%IS", "share of the speculated instructions", "inst_spec", TOTAL),
    Metric("%CLK", "share of the CPU clock", "cpu-clock", TOTAL),
    Metric("%TCLK", "share of the task clock", "task-clock", TOTAL),
    Metric("%PF", "share of the page faults", "page-faults", TOTAL),
    Metric("DIS", "windows that began elsewhere", "discarded", "samples"),
)
WINDOWS = {"samples", "discarded", "matched"}

# events of METRICS, their types and configs, their numbers on Arm's CPUs, and other names
EVENTS = (
    ("cycles", [(HARDWARE, 0)], [0x11], "cpu-cycles cpu_cycles"),
    ("instructions", [(HARDWARE, 1)], [0x08], "inst_retired"),
    ("cache-references", [(HARDWARE, 2), (HW_CACHE, 0)], [0x04], "l1d_cache l1-dcache-loads"),
    ("cache-misses", [(HARDWARE, 3), (HW_CACHE, 0x10000)], [0x03], "l1d_cache_refill"),
    ("branch-misses", [(HARDWARE, 5)], [0x10, 0x22], "br_mis_pred br_mis_pred_retired"),
    ("dTLB-load-misses", [(HW_CACHE, 0x10003)], [0x05], "l1d_tlb_refill"),
    ("page-faults", [(SOFTWARE, 2)], [], "faults"),
    ("inst_spec", [], [0x1B], ""),
)
NUMBERS = {number: name for name, numbers, _, _ in EVENTS for number in numbers}
ARM = {number: name for name, _, numbers, _ in EVENTS for number in numbers}
ALIASES = {alias: name for name, _, _, aliases in EVENTS for alias in aliases.split()}
SETTINGS = r"$|(alt-)?period|freq|name=|time|call-graph|stack-size|(no-)?inherit|max-|overwrite"


class Attr:
    """The members of struct perf_event_attr that matter here, from its bytes."""

    def __init__(self, raw: bytes) -> None:
        raw = raw.ljust(ATTR.size, b"\0")  # a perf without alternate periods has a shorter attr
        kind, config, period, sample_type, read_format, flags, *alternate = ATTR.unpack_from(raw)
        self.alternate, self.jitter = alternate
        bits = f"{flags:064b}" if sys.byteorder == "big" else f"{flags:064b}"[::-1]
        self.inherit, is_freq, self.defers_callchain = (bits[n] == "1" for n in (1, 10, 38))
        self.type, self.config, self.samples = kind, config, period > 0
        self.is_read = bool(sample_type & SAMPLE_READ) and kind != TRACEPOINT
        self.reads_group = bool(read_format & FORMAT_GROUP)
        self.period = 4 * self.alternate if is_freq else period  # which only the kernel knows


def event_name(attr: Attr, name: str, cpu: str) -> str:
    """The event in the words of METRICS, or its name without PMU, periods and modifiers. The
    number decides where it can, for the name may be the user's. cpu: an Arm CPU's is its MIDR."""
    pmu, slash, rest = name.partition("/")
    terms = [term for term in rest.split("/")[0].split(",") if not re.match(SETTINGS, term)]
    bare = (",".join(terms) or pmu) if slash else re.sub(r":\w+$", "", name)
    bare = f"event:{bare}" if bare in {*WINDOWS, TOTAL} else bare
    if attr.type in (HARDWARE, SOFTWARE, HW_CACHE):
        return NUMBERS.get((attr.type, attr.config & 0xFFFFFFFF), bare)  # the rest may name a PMU
    if attr.config in ARM and (attr.type == RAW or attr.type >= FIRST_PMU):
        if re.match(r"armv\d|(0x[0-9a-f]{16})?( |$)", pmu if slash else cpu):
            return ARM[attr.config]
    return ALIASES.get(bare.lower(), bare)


def printable(text: str) -> str:
    """A text with \\xNN for bytes of control characters or not UTF-8."""
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return re.sub("[\0-\x1f\x7f-\x9f]", lambda control: f"\\x{ord(control[0]):02x}", text)


def fail(message: str) -> NoReturn:
    sys.exit(f"generate-function-metrics: {printable(message)}")


Counts = Dict[int, int]  # by event
Function = Tuple[str, str, int]  # symbol, DSO, address of the symbol, or of what has none
Sums = Dict[str, int]  # of windows: WINDOWS, and the events in the matched ones
FIRST, BROKEN = ("no sample before",), ("throttled or lost since the sample before",)


class Group:
    """A leader, the events that are read with it, and the sums of its windows by function."""

    def __init__(self, attr: Attr) -> None:
        self.alternate, self.per_thread = attr.alternate, attr.inherit
        self.alternates = attr.alternate not in (0, attr.period)
        # A window is nearer to the alternate period than to the long one. Jitter widens both.
        width = attr.jitter and 1 << min(attr.jitter, 63)
        longest = attr.alternate + min(width, attr.alternate // 2)
        shortest = attr.period - min(width, attr.period // 2)
        self.limit = longest + shortest if self.alternates else 1 << 66
        self.names: Dict[int, str] = {}  # of the events, the leader first
        self.functions: Dict[Function, Sums] = defaultdict(lambda: defaultdict(int))
        self.streams: Dict[Tuple[int, int], Tuple] = {}  # thread and function of the last sample


class Collector:
    """Takes the events and samples of a recording in the order of time, and adds up windows.

    A stream is a leader on one CPU, or on one thread where counts are inherited. A window is
    matched if the sample before it in its stream is of the same function and thread, at a known
    address, with no loss or throttling in between. `counts_all`: others count where they end."""

    def __init__(self, counts_all: bool) -> None:
        self.counts_all = counts_all
        self.events: Dict[int, Tuple[Attr, str, str]] = {}  # with event_name() and perf's own
        self.groups: Dict[int, Group] = {}  # by leader
        self.ignored: Set[str] = set()
        self.lost_numbers, self.throttled = [0, 0], 0

    def add_event(self, event: int, name: str, attr: Attr, cpu: str) -> None:
        if attr.defers_callchain:  # perf script delays such samples
            fail("samples are mixed up: record without 'defer', or use perf functions report")
        if attr.is_read:
            self.events[event] = attr, event_name(attr, name, cpu), name
        self.ignored |= set() if attr.is_read or name.startswith("dummy") else {name}

    def add_member(self, leader: int, event: int) -> Group:
        """An event that is read with a leader. A second one of its kind goes by its full name."""
        attr, name, full_name = self.events[event]
        group = self.groups.setdefault(leader, Group(attr))
        if event != leader and attr.samples and group.alternates:
            fail(f"{full_name} samples by itself, which splits windows: record it without a period")
        taken = {*group.names.values(), *WINDOWS, TOTAL}
        names = name, full_name, f"{full_name}#{len(group.names)}"
        group.names[event] = next((one for one in names if one not in taken), names[2])
        return group

    def sample(self, stream: int, thread: Any, ip: int, row: Function, counts: Counts) -> None:
        """A sample of a group. counts: since the sample before, the leader's first."""
        leader, count = next(iter(counts.items()))
        group = self.groups.get(leader) or self.add_member(leader, leader)
        for event in [event for event in counts if event not in group.names]:
            self.add_member(leader, event)
        key = stream, thread if group.per_thread else 0
        before = group.streams.get(key, FIRST)
        # Linux 7.3 writes 0 into a `:u` sample whose interrupt came in the kernel
        group.streams[key] = place = (thread, row) if ip else ()
        if before is FIRST or not 0 < 2 * count < group.limit:
            return
        sums = group.functions[row]
        sums["samples"] += 1
        is_matched = bool(place) and place == before
        sums["discarded"] += not is_matched
        if is_matched or (self.counts_all and before is not BROKEN):
            sums["matched"] += 1
            for event, count in counts.items():
                sums[group.names[event]] += count

    def throttle(self, stream: int, is_begin: bool) -> None:
        """A leader was throttled, or no longer is. Its members may have counted meanwhile."""
        self.throttled += is_begin
        for group in self.groups.values():
            group.streams.update({key: BROKEN for key in group.streams if key[0] == stream})

    def lost(self, time: int, number: int, are_samples: bool) -> None:
        """Records were lost. At its end, perf record tells the samples again, without a time."""
        self.lost_numbers[are_samples] += number
        for group in self.groups.values() if time else ():
            group.streams = dict.fromkeys(group.streams, BROKEN)

    def notes(self) -> List[str]:
        """What a reader of the table has to know."""
        lost, ignored = max(self.lost_numbers), ", ".join(sorted(self.ignored))
        notes = [f"ignored, because in no counter group: {ignored}"] if ignored else []
        if lost or self.throttled:
            what = f"{lost} records were lost, throttled {self.throttled} times"
            notes.append(f"{what}: windows over this are discarded")
        for leader, group in self.groups.items():
            name, rows = group.names[leader], group.functions.values()
            mean = sum(row[name] for row in rows) / max(sum(row["matched"] for row in rows), 1)
            if mean > max(10000, 2 * group.alternate):
                what = f"windows have {mean:.0f} {name} on average, more than most calls"
                notes.append(f"{what}: other functions ran in them, too (perf functions record)")
        return notes


class Table:
    """The rows of all groups, and the metrics made from them."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = [{*group.names.values(), *WINDOWS} for group in groups]
        rows = sorted({function for group in groups for function in group.functions})
        self.rows = {row: [dict(group.functions.get(row, {})) for group in groups] for row in rows}
        self.total = [
            {name: sum(row.get(name, 0) for row in group.functions.values()) for name in names}
            for group, names in zip(groups, self.groups)
        ]
        every = dict.fromkeys(name for group in groups for name in group.names.values())
        known = {*every, *WINDOWS, TOTAL, ""}
        *metrics, last = (one for one in METRICS if {one.event, one.per} <= known)
        others = [*every] if "instructions" in every else []
        for name in (name for name in others if all(one.event != name for one in METRICS)):
            metrics.append(Metric(f"{printable(name)}/KI", "", name, "instructions", 1000, 3))
        self.metrics = [*metrics, last]

    def pooled(self, sums: Sequence[Sums], event: str, other: str = "samples") -> float:
        """The sum of an event over the groups that have another one, too."""
        both = {event, other}
        return float(sum(one.get(event, 0) for one, all_ in zip(sums, self.groups) if both <= all_))

    def value(self, metric: Metric, row: Sequence[Sums]) -> Optional[float]:
        """The metric of a function, None where it is a division by 0."""
        _, _, event, per, scale, _ = metric
        if not per:
            return int(self.pooled(row, event))
        if per == TOTAL:
            above, below = self.pooled(row, event), self.pooled(self.total, event)
        elif any({event, per} <= names for names in self.groups):
            above, below = self.pooled(row, event, per), self.pooled(row, per, event)
        else:  # two groups, which are related through an event of both
            both = [set().union(*(n for n in self.groups if one in n)) for one in (event, per)]
            common = both[0] & both[1] - WINDOWS
            link = "cycles" if "cycles" in common else min(common, default="matched")
            above = self.pooled(row, event, link) * self.pooled(row, link, per)
            below = self.pooled(row, link, event) * self.pooled(row, per, link)
        return scale * above / below if below else None

    def name(self, function: Function) -> str:
        """The symbol, with the address where its DSO has several of the name; or the address."""
        symbol, dso, address = function
        is_single = sum(row[:2] == (symbol, dso) for row in self.rows) == 1
        return symbol if symbol and is_single else f"{symbol} {address:#x}".strip()

    def label(self, function: Function) -> str:
        """The name to print: with the DSO where several have it."""
        label, dsos = self.name(function), {row[1] for row in self.rows if row[0] == function[0]}
        if len(dsos) > 1 or not function[0] or label.startswith("0x"):
            label += f" [{os.path.basename(function[1]) or 'unknown'}]"
        label = printable(label)
        return label if len(label) <= 60 else f"{label[:28]}...{label[-28:]}"


def report(collector: Collector, options: argparse.Namespace) -> None:
    """Print the table in the order and form that the options ask for."""
    table = Table([*collector.groups.values()])
    if not table.rows:
        fail("no window of a counter group: record with perf functions record, or for longer")
    titles = ["symbol", *(metric.column for metric in table.metrics)]
    places = {title.lower(): place for place, title in enumerate(titles)}
    wanted = next(name for name in ("%cy", "%clk", "%tclk", "#") if name in places)
    place = places.get((options.sort or wanted).lower())
    if place is None:
        fail(f"no column {options.sort} in this recording, there are: {' '.join(titles)}")
    for note in collector.notes():
        print(f"generate-function-metrics: {printable(note)}", file=sys.stderr)
    metrics, rows = table.metrics, table.rows.items()
    lines = [(function, *(table.value(one, row) for one in metrics)) for function, row in rows]
    if place:  # largest first, undefined last
        lines.sort(key=lambda line: (line[place] is None, -(line[place] or 0)))
    lines = lines[: options.limit and max(options.limit, 1)]
    if options.csv:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(["symbol", "dso", *titles[1:]])
        for function, *values in lines:
            own = ["-" if value is None else value for value in values]
            out.writerow([printable(table.name(function)), printable(function[1]), *own])
        return
    cells = [titles]
    for function, *values in lines:
        own = ["-" if one is None else f"{one:.{m.digits}f}" for one, m in zip(values, metrics)]
        cells.append([table.label(function), *own])
    widths = [max(map(len, column)) for column in zip(*cells)]
    for first, *rest in cells:
        print(first.ljust(widths[0]), *map(str.rjust, rest, widths[1:]))


def handlers(collector: Collector, options: argparse.Namespace) -> Dict[str, Any]:
    """Return the functions that perf script looks for. It calls sample_table for each event of a
    sample that has counted, the leader first. If the header does not say which events are a group,
    those of one sample are at the same time and place."""
    names, dsos, symbols = {}, {}, {}  # type: ignore[var-annotated]
    leaders: Dict[int, int] = {}  # the leader, 0 for one; the event itself where it is not known
    counts: Counts = {}  # of the events of a sample
    sample: Sequence[int] = ()  # that of the leader
    where: Any = None  # it is, if the members are not known

    def end_sample() -> None:
        if counts:
            symbol, dso = symbols.get(sample[6]), dsos.get(sample[5], "")
            function = symbol or ("", dso, sample[8] & (1 << 64) - 1)
            collector.sample(sample[25], sample[3], sample[8], function, counts)
            counts.clear()

    def attr_table(event: int, leader: int, raw_attr: bytes, cpu: str) -> None:
        attr = Attr(raw_attr)
        collector.add_event(event, names[event], attr, cpu)
        leaders[event] = leader if event != leader or attr.reads_group else 0
        if event != leader and leader in collector.events and event in collector.events:
            leaders[leader] = 0
            if leader not in collector.groups:
                collector.add_member(leader, leader)
            collector.add_member(leader, event)

    def dso_table(dso: int, _machine: int, short: str, path: str, _build_id: str) -> None:
        dsos[dso] = short if short.startswith("[vdso") else path  # which is a copy of perf's

    def symbol_table(symbol: int, dso: int, start: int, end: int, _bind: int, name: str) -> None:
        name = "" if start == end and name == "unknown" else name  # perf has invented it
        symbols[symbol] = name, dsos.get(dso, ""), start & (1 << 64) - 1

    def sample_table(*now: int) -> None:
        # 1: event, 3: thread, 5: DSO, 6: symbol, 8: address, 9: time, 10: CPU, 15: count, 25: id
        nonlocal sample, where
        event = now[1]
        if event not in leaders:
            fail("this perf lacks attr_table: use the perf of the alt-period series")
        leader = leaders[event]
        here = itemgetter(3, 8, 9, 10)(now) if leader == event else None
        if event not in counts and (leader in counts or (here and here == where and counts)):
            counts[event] = now[15]
            return
        end_sample()
        if event in collector.events and leader in (event, 0):
            sample, where = now, here
            counts[event] = now[15]

    def after_sample(action: Callable) -> Callable:
        return lambda *record: (end_sample(), action(*record))

    throttle = after_sample(lambda _time, stream, *_: collector.throttle(stream, True))
    unthrottle = after_sample(lambda _time, stream, *_: collector.throttle(stream, False))
    lost = after_sample(lambda time, event, lost, *_: collector.lost(time, lost, not event))
    trace_end = after_sample(lambda: report(collector, options))
    evsel_table = names.__setitem__
    perf_db_export_mode = True
    return {name: value for name, value in locals().items() if not name.startswith("_")}


def read_file(collector: Collector, path: str) -> None:
    """Read a recording with perf's module. Its samples have the values of all events."""
    try:
        import perf  # pylint: disable=import-outside-toplevel
    except ImportError:
        fail("Python finds no module perf: set PYTHONPATH, or use perf script -s, see --help")
    if not hasattr(perf.sample_event, "read_values"):
        fail("this module perf has no counts of groups: use perf script -s, see --help")
    events: Dict[int, int] = {}  # by their ids
    last: Dict[Tuple, int] = defaultdict(int)  # values
    forks: Dict[int, int] = defaultdict(int)  # tell threads of one number apart

    def sample(one: Any) -> None:
        if not (collector.events or collector.ignored):  # the first records correct attrs
            for event, evsel in enumerate(session.evlist):
                collector.add_event(event, str(evsel)[6:-1], Attr(evsel.attr), session.cpu)
                events.update(dict.fromkeys(evsel.ids if event in collector.events else (), event))
        counts, values = {}, [one for one in one.read_values or () if one[0] in events]
        thread = one.sample_tid, forks[one.sample_tid]
        for number, value, *_ in values:
            event = events[number]
            key = number, thread if collector.events[event][0].inherit else 0
            counts[event], last[key] = value - last[key], value
        if not counts:
            return
        symbol, address = one.symbol or "", one.sym_start
        if not symbol:
            offset = one.map_pgoff - one.map_start if one.dso and one.sample_ip >> 63 == 0 else 0
            address = one.sample_ip + offset
        dso = (one.dso if (one.dso or "").startswith("[vdso") else one.dso_long_name) or ""
        collector.sample(values[0][0], thread, one.sample_ip, (symbol, dso, address), counts)

    try:
        session = perf.session(
            perf.data(path),
            sample=sample,
            throttle=lambda one: collector.throttle(one.id, True),
            unthrottle=lambda one: collector.throttle(one.id, False),
            lost=lambda one: collector.lost(one.sample_time, one.lost, False),
            lost_samples=lambda one: collector.lost(one.sample_time, one.lost, True),
            fork=lambda one: forks.update({one.tid: forks[one.tid] + 1}),
        )
        session.process_events()
    except OSError as error:
        fail(f"{path}: cannot be read: {error}")


def parse_options(is_in_perf: bool) -> argparse.Namespace:
    columns = "".join(f"  {m.column:6} {m.meaning}: {m.event} / {m.per or 1}\n" for m in METRICS)
    parser = argparse.ArgumentParser(
        prog="generate-function-metrics",
        epilog=f"columns, if their events were recorded:\n{columns}  NAME/KI any other event",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-s", "--share", choices=("discard", "none"), default="discard", help="windows that count")
    add("--sort", metavar="COLUMN", help="sort by this column, or symbol (default: %%CY, else #)")
    add("--limit", metavar="N", type=int, help="print N functions only")
    add("--csv", action="store_true", help="comma-separated, all digits")
    if not is_in_perf:
        add("-i", "--input", default="perf.data", help="the recording (default: perf.data)")
    return parser.parse_args()


if __name__ == "__main__":
    IN_PERF = "perf_trace_context" in sys.builtin_module_names
    OPTIONS = parse_options(IN_PERF)
    COLLECTOR = Collector(OPTIONS.share == "none")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it silently
    if IN_PERF:
        globals().update(handlers(COLLECTOR, OPTIONS))
    else:
        read_file(COLLECTOR, OPTIONS.input)
        report(COLLECTOR, OPTIONS)
