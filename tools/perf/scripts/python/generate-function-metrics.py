#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# generate-function-metrics.py - metrics of functions from the counts of groups
#     perf record -T --sample-cpu -e '{cycles/period=999700,alt-period=300/,instructions,
#         branch-misses,cache-references,cache-misses}:uS' -- COMMAND
#     perf script -s generate-function-metrics.py -- -s discard --sort CPI --limit 20
# With perf's module of Linux 7.3 it is also a program, which `perf script FILE.py` of 7.4 starts:
#     generate-function-metrics.py -i perf.data -s discard
#
# To add a column:
#   1. Add a line to METRICS: title, meaning, event, the event that it is divided by, scale, digits.
#   2. If EVENTS lacks one of these events, add it there, or use the name that perf prints for it.
#   3. Record with these events in the group. The column appears where all of them were recorded.
"""
Print a table of metrics (cycles per instruction, misses per 1000 instructions ...) per function.

The input is a recording of counter groups (`{leader,member,...}:S`) whose leader alternates
between a long period and a short one, the window. A window that begins and ends in one function and
thread is *matched*: what the group has counted in it is of that function. One in which a member has
interrupted is left out. With one small period, every interval is a window. `perf functions report`
reads the same recordings, and prints much more.
"""

import argparse
import csv
import os
import re
import signal
import struct
import sys
from collections import Counter, defaultdict, namedtuple
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Set, Tuple

IS_IN_PERF = "perf_trace_context" in sys.builtin_module_names  # run by perf script
TOTAL = "total"  # Metric.per of a share
WINDOWS = {"samples", "matched", "discarded"}  # numbers of windows, which Metric.event may name

# A column: scale x event / per. per is an event, or TOTAL for the function's share of the event.
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

HARDWARE, SOFTWARE, TRACEPOINT, HW_CACHE, RAW, FIRST_PMU = 0, 1, 2, 3, 4, 6  # perf_event_attr.type

# The events of METRICS: type and config, numbers on Arm's CPUs, names there and at Intel and AMD
Event = namedtuple("Event", "name configs arm aliases")
EVENTS = (
    Event("cycles", [(HARDWARE, 0)], [0x11], "cpu-cycles cpu_cycles cpu_clk_unhalted.thread"),
    Event("instructions", [(HARDWARE, 1)], [0x08], "inst_retired inst_retired.any ex_ret_instr"),
    Event("cache-references", [(HARDWARE, 2)], [0x04, (HW_CACHE, 0)], "l1d_cache"),
    Event("cache-misses", [(HARDWARE, 3)], [0x03, (HW_CACHE, 0x10000)], "l1d_cache_refill"),
    Event("branch-misses", [(HARDWARE, 5)], [0x10, 0x22], "br_mis_pred br_mis_pred_retired"),
    Event("dTLB-load-misses", [(HW_CACHE, 0x10003)], [0x05], "l1d_tlb_refill"),
    Event("page-faults", [(SOFTWARE, 2)], [], "faults"),
    Event("inst_spec", [], [0x1B], ""),
)
BY_CONFIG = {config: event.name for event in EVENTS for config in event.configs}
ON_ARM = {number: event.name for event in EVENTS for number in event.arm}
BY_ALIAS = {alias: event.name for event in EVENTS for alias in event.aliases.split()}
BY_ALIAS["ls_not_halted_cyc"] = "cycles"
ARM_CPU = r"0x[0-9a-f]{16}( |$)"  # a MIDR

# terms that do not change what an event counts
SETTINGS = r"$|(alt-)?period|freq|name=|time|call-graph|stack-size|(no-)?inherit|max-|overwrite"

# perf_event_attr up to jitter_alternate_period, and numbers of bits in its members
ATTR = struct.Struct("=I4x3Q8xQ96xQI")
SAMPLE_READ, INHERIT, FREQ, DEFER_CALLCHAIN = 4, 1, 10, 38

Function = Tuple[str, str, int]  # symbol, DSO, address of the symbol, or of what has none
Place = Tuple[int, Function]  # the sampled address, and where it is
Sums = Dict[str, int]  # of windows: WINDOWS, and the events in the matched ones
Value = Tuple[int, int, int]  # event, its id on this CPU, and what it has counted so far


def printable(text: str) -> str:
    """A text with \\xNN for bytes of control characters or not UTF-8."""
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return re.sub("[\0-\x1f\x7f-\x9f]", lambda control: f"\\x{ord(control[0]):02x}", text)


def fail(message: str) -> NoReturn:
    sys.exit(f"generate-function-metrics: {printable(message)}")


def parse_options() -> argparse.Namespace:
    columns = "".join(f"  {m.column:6} {m.meaning}: {m.event} / {m.per or 1}\n" for m in METRICS)
    parser = argparse.ArgumentParser(
        prog="generate-function-metrics",
        epilog=f"columns, if their events were recorded:\n{columns}  NAME/KI any other event",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.error = lambda message: fail(f"{message}, see --help")  # type: ignore
    add = parser.add_argument
    shares = "discard: leave out windows that began elsewhere (default); none: count all"
    add("-s", "--share", choices=("discard", "none"), default="discard", help=shares)
    add("--sort", metavar="COLUMN", help="sort by this column, or symbol (default: %%CY, else #)")
    add("--limit", metavar="N", type=int, help="print N functions only")
    add("--csv", action="store_true", help="comma-separated, all digits")
    if not IS_IN_PERF:
        add("-i", "--input", default="perf.data", help="the recording (default: perf.data)")
    chosen = parser.parse_args()
    if chosen.limit is not None and chosen.limit < 1:
        fail(f"--limit {chosen.limit}: choose 1 or more")
    return chosen


class Attr:
    """The members of struct perf_event_attr that matter here, from its bytes."""

    def __init__(self, raw: bytes) -> None:
        raw = raw.ljust(ATTR.size, b"\0")  # a perf without alternate periods has a shorter attr
        self.type, self.config, period, sample_type, flags, *more = ATTR.unpack_from(raw)
        self.alternate, self.jitter = more
        bits = f"{flags:064b}" if sys.byteorder == "big" else f"{flags:064b}"[::-1]
        self.inherit = bits[INHERIT] == "1"
        self.defers_callchain = bits[DEFER_CALLCHAIN] == "1"
        self.samples = period > 0
        self.is_read = bool(sample_type & 1 << SAMPLE_READ) and self.type != TRACEPOINT
        # with a frequency only the kernel knows the long period
        self.period = 4 * self.alternate if bits[FREQ] == "1" else period


def event_name(attr: Attr, name: str, cpu: str) -> str:
    """The event in the words of METRICS, or its name without PMU, periods and modifiers. The number
    decides where it can, for the name may be the user's. Raw ones mean something on Arm only."""
    pmu, slash, rest = name.partition("/")
    terms = [term for term in rest.split("/")[0].split(",") if not re.match(SETTINGS, term)]
    bare = (",".join(terms) or pmu) if slash else re.sub(r":\w+$", "", name)
    if bare in {*WINDOWS, TOTAL}:
        bare = f"event:{bare}"
    is_raw = attr.type == RAW or attr.type >= FIRST_PMU
    key = attr.config if is_raw else (attr.type, attr.config & 0xFFFFFFFF)  # the rest names a PMU
    is_arm = re.match(r"armv\d", pmu) if is_raw and slash else re.match(ARM_CPU, cpu)
    if key in BY_CONFIG or (is_arm and key in ON_ARM):
        return BY_CONFIG.get(key) or ON_ARM[key]
    return BY_ALIAS.get(bare.lower(), bare) if is_raw else bare


class Stream:
    """A leader on one CPU, or on one thread that inherits it. Its first interval is not known."""

    def __init__(self) -> None:
        self.values: Dict[int, int] = {}  # by id, at the last sample
        self.seen = 0  # when that was, in numbers of samples
        self.place: Tuple = ()  # thread and function of it; empty if not known
        self.is_interrupted = False  # a member has sampled since then
        self.sums: Sums = {}  # of its last row
        self.window: Sums = {}  # what its last window added to them


class Group:
    """A sampler, the events that are read with it, and the sums of its windows by function. It is
    the leader; one without a period, of AUX data for example, lets another event sample."""

    def __init__(self, sampler: int, attr: Attr) -> None:
        self.sampler = sampler
        self.alternate, self.per_thread = attr.alternate, attr.inherit
        self.alternates = attr.alternate not in (0, attr.period)
        # A window is nearer to the alternate period than to the long one. Jitter widens both.
        width = attr.jitter and 1 << min(attr.jitter, 63)
        longest = attr.alternate + min(width, attr.alternate // 2)
        shortest = attr.period - min(width, attr.period // 2)
        self.limit = longest + shortest if self.alternates else 1 << 66
        self.names: Dict[int, str] = {}  # of the events, the sampler first
        self.functions: Dict[Function, Counter] = defaultdict(Counter)
        self.whole: Dict[Function, Sums] = defaultdict(lambda: defaultdict(int))  # of all intervals
        self.streams: Dict[Tuple, Stream] = defaultdict(Stream)


class Collector:
    """Takes the events and samples of a recording in the order of time, and adds up windows. A
    window is matched if the sample before it in its stream is of the same function and thread, at a
    known address, with no loss or throttling in between."""

    def __init__(self) -> None:
        self.counts_all = False  # also windows that are not matched, where they end
        self.events: Dict[int, Tuple[Attr, str, str]] = {}  # with event_name() and perf's own
        self.groups: Dict[int, Group] = {}  # by leader
        self.ignored: Set[str] = set()
        self.is_arm = False  # the CPU
        self.now = self.last_lost = 0  # numbers of samples, so far and at the last loss
        self.lost_numbers, self.throttles = [0, 0], 0
        self.last_throttled: Dict[int, int] = {}  # by id of an event, and of its leader
        self.still: Dict[int, Set[int]] = defaultdict(set)  # throttled members, by id of the leader
        self.leaders: Dict[int, int] = {}  # id of the leader by id of a member

    def add_event(self, event: int, name: str, attr: Attr, cpu: str) -> None:
        if attr.defers_callchain:  # perf script delays such samples
            fail("samples are mixed up: record without 'defer', or use perf functions report")
        if attr.is_read:
            self.events[event] = attr, event_name(attr, name, cpu), name
            self.is_arm = bool(re.match(ARM_CPU, cpu))
        elif not name.startswith("dummy"):
            self.ignored.add(name)

    def add_member(self, group: Group, event: int) -> None:
        """An event that is read with a group. A second one of its kind goes by its full name."""
        _, name, full_name = self.events[event]
        taken = {*group.names.values(), *WINDOWS, TOTAL}
        names = name, full_name, f"{full_name}#{len(group.names)}"
        group.names[event] = next((one for one in names if one not in taken), names[2])

    def count(self, group: Group, stream: Stream, values: Sequence[Value]) -> Dict[int, int]:
        """What each event has counted since the last sample; empty if that is not known."""
        leader, leader_number, _ = values[0]
        counts = {event: value - stream.values.get(number, 0) for event, number, value in values}
        if min(counts.values()) < 0:  # the clock was set back: the last window has others in it
            for name, count in stream.window.items():
                stream.sums[name] -= count
            stream.window = {}
        if not counts[leader] or min(counts.values()) < 0:
            return {}
        for event, number, value in values:
            if event not in group.names:
                self.add_member(group, event)
            stream.values[number] = value
            self.leaders[number] = leader_number
        return counts

    def has_still_member(self, stream: Stream, values: Sequence[Value]) -> bool:
        """Whether a member is throttled, and so does not count, while the leader does. If it has
        counted in an interval that began later, the record of its end was lost."""
        still = self.still.get(values[0][1], set())
        for _, number, value in values if still else ():
            has_counted = value != stream.values.get(number, 0)
            if number in still and has_counted and self.last_throttled[number] < stream.seen:
                still.discard(number)
        return bool(still)

    def sample(self, event: int, thread: Any, place: Place, values: Sequence[Value]) -> None:
        """A sample of an event, with the values of all events of its group, the leader first."""
        values = [value for value in values if value[0] in self.events]
        if not values:
            return
        leader = values[0][0]
        if leader not in self.groups:
            has_other = event in self.events and not self.events[leader][0].samples
            sampler = event if has_other else leader
            self.groups[leader] = Group(sampler, self.events[sampler][0])
        group = self.groups[leader]
        if leader != group.sampler:
            values.sort(key=lambda value: value[0] != group.sampler)
        leader, number, _ = values[0]  # from here on, the sampler leads
        stream = group.streams[number, thread if group.per_thread else 0]
        if event != leader and group.alternates:
            stream.is_interrupted = True
            return

        has_still_member = self.has_still_member(stream, values)
        counts = self.count(group, stream, values)
        if not counts:
            return
        address, function = place
        # Linux 7.3 writes 0 into a `:u` sample whose interrupt came in the kernel
        here = (thread, function) if address else ()
        last_broken = max(self.last_lost, self.last_throttled.get(number, 0))
        is_broken = stream.seen <= last_broken or has_still_member
        is_window = stream.seen and 2 * counts[leader] < group.limit and not stream.is_interrupted
        is_matched = bool(here) and here == stream.place and not is_broken
        self.now += 1
        stream.seen, stream.place, stream.is_interrupted = self.now, here, False

        if not group.alternates:
            for one, count in counts.items():
                group.whole[function][group.names[one]] += count
        stream.window = {}
        if not is_window:
            return
        window = {"samples": 1, "discarded": int(not is_matched)}
        if is_matched or (self.counts_all and not is_broken):
            window.update({group.names[n]: count for n, count in counts.items()}, matched=1)
        stream.window, stream.sums = window, group.functions[function]
        for name, count in window.items():
            stream.sums[name] += count

    def throttle(self, number: int, is_begin: bool) -> None:
        """The event with this id is throttled, or no longer. Others may count meanwhile."""
        self.throttles += is_begin
        leader = self.leaders.get(number, number)
        self.last_throttled[number] = self.last_throttled[leader] = self.now
        self.still[leader].discard(number)
        if is_begin and number != leader:
            self.still[leader].add(number)

    def lost(self, time: int, number: int, are_samples: bool) -> None:
        """Records were lost. At its end, perf record tells the samples again, without a time."""
        self.lost_numbers[are_samples] += number
        if time:
            self.last_lost = self.now

    def notes(self) -> List[str]:
        notes = []
        if self.ignored:
            notes.append(f"ignored, because in no counter group: {', '.join(sorted(self.ignored))}")
        if any(self.lost_numbers):
            what = f"{max(self.lost_numbers)} records were lost, and counts with them"
            notes.append(f"{what}: record with larger buffers (-m)")
        if self.throttles:
            what = f"events were throttled {self.throttles} times, and their counts in these times"
            rate = "sysctl kernel.perf_event_max_sample_rate"
            notes.append(f"{what} are missing: use longer periods, or raise {rate}")
        for group in self.groups.values():
            name, rows = group.names.get(group.sampler, ""), group.functions.values()
            mean = sum(row[name] for row in rows) / max(sum(row["matched"] for row in rows), 1)
            if mean > max(10000, 2 * group.alternate):
                what = f"windows have {mean:.0f} {name} on average, more than most calls"
                notes.append(f"{what}, so they count several functions: use perf functions report")
        return notes


class Table:
    """The rows of all groups, and the metrics made from them."""

    def __init__(self, groups: Sequence[Group], is_arm: bool) -> None:
        self.groups, self.is_arm = groups, is_arm
        self.events = [{*group.names.values(), *WINDOWS} for group in groups]
        functions = sorted({function for group in groups for function in group.functions})
        self.rows = {one: [group.functions[one] for group in groups] for one in functions}
        self.total = [
            {name: sum(row.get(name, 0) for row in group.functions.values()) for name in events}
            for group, events in zip(groups, self.events)
        ]
        self.unknown: Set[str] = set()  # columns of events that have no relation
        self.addresses = Counter(function[:2] for function in functions)  # by symbol and DSO
        self.dsos = Counter(symbol for symbol, _ in self.addresses)  # by symbol

    def metrics(self) -> List[Metric]:
        """METRICS whose events were recorded, and before the last a rate of each other event."""
        names = [*dict.fromkeys(name for group in self.groups for name in group.names.values())]
        known = {*names, *WINDOWS, TOTAL, ""}
        *metrics, last = (one for one in METRICS if {one.event, one.per} <= known)
        others = [name for name in names if all(one.event != name for one in METRICS)]
        for name in others if "instructions" in names else []:
            metrics.append(Metric(f"{printable(name)}/KI", "", name, "instructions", 1000, 3))
        metrics.append(last)
        if not self.is_arm:  # the kernel's cache-misses are those of another cache than L1D
            return [m._replace(column=f"%{m.event}") if "%L1D" in m.column else m for m in metrics]
        return metrics

    def pooled(self, sums: Sequence[Sums], event: str, other: str = "samples") -> float:
        """The sum of an event over the groups that have another one, too."""
        pairs = zip(sums, self.events)
        return float(sum(one.get(event, 0) for one, names in pairs if {event, other} <= names))

    def counted(self, function: Function, event: str) -> Optional[float]:
        """All that an event has counted in a function, where each interval is a window."""
        groups = [group for group in self.groups if event in group.names.values()]
        if any(group.alternates for group in groups):
            return None
        return sum(group.whole[function][event] for group in groups) / len(groups)

    def link(self, one: str, other: str) -> Optional[str]:
        """An event that was counted with each of two: cycles, or the first by name."""
        with_one = set().union(*(names for names in self.events if one in names))
        with_other = set().union(*(names for names in self.events if other in names))
        common = (with_one & with_other) - WINDOWS
        return "cycles" if "cycles" in common else min(common, default=None)

    def value(self, metric: Metric, function: Function) -> Optional[float]:
        """The metric of a function, None where it is a division by 0 or cannot be known."""
        column, _, event, per, scale, _ = metric
        row = self.rows[function]
        if not per:
            return int(self.pooled(row, event))
        if per == TOTAL:
            above, below = self.pooled(row, event), self.pooled(self.total, event)
        elif any({event, per} <= names for names in self.events):
            above, below = self.pooled(row, event, per), self.pooled(row, per, event)
        elif link := self.link(event, per):
            above = self.pooled(row, event, link) * self.pooled(row, link, per)
            below = self.pooled(row, link, event) * self.pooled(row, per, link)
        else:
            above, below = self.counted(function, event), self.counted(function, per)
            if above is None or below is None:
                self.unknown.add(column)
                return None
        return scale * above / below if below else None

    def name(self, function: Function) -> str:
        """The symbol, with the address where its DSO has several of the name; or the address."""
        symbol, dso, address = function
        if symbol and self.addresses[symbol, dso] == 1:
            return symbol
        return f"{symbol} {address:#x}".strip()

    def label(self, function: Function) -> str:
        """The name to print: with the DSO where several have it."""
        symbol, dso, _ = function
        label = self.name(function)
        if not symbol or self.dsos[symbol] > 1 or label.startswith("0x"):
            label += f" [{os.path.basename(dso) or 'unknown'}]"
        label = printable(label)
        return label if len(label) <= 60 else f"{label[:28]}...{label[-28:]}"


def print_csv(table: Table, metrics: Sequence[Metric], lines: Sequence[Tuple]) -> None:
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["symbol", "dso", *(metric.column for metric in metrics)])
    for function, *values in lines:
        cells = ["-" if value is None else value for value in values]
        out.writerow([printable(table.name(function)), printable(function[1]), *cells])


def print_text(table: Table, metrics: Sequence[Metric], lines: Sequence[Tuple]) -> None:
    cells = [["symbol", *(metric.column for metric in metrics)]]
    for function, *values in lines:
        own = ["-" if one is None else f"{one:.{m.digits}f}" for one, m in zip(values, metrics)]
        cells.append([table.label(function), *own])
    widths = [max(map(len, column)) for column in zip(*cells)]
    for first, *rest in cells:
        print(first.ljust(widths[0]), *map(str.rjust, rest, widths[1:]))


# perf script calls the functions below: an event, a DSO and a symbol come before the first sample
# that refers to them by their number.

perf_db_export_mode = True  # call them
perf_db_export_reads = True  # a sample of a group comes once, with the values of all its events

collector = Collector()
options = argparse.Namespace()  # those of the command line, see below
event_names: Dict[int, str] = {}
dsos: Dict[int, str] = {}
symbols: Dict[int, Function] = {}


def evsel_table(event: int, name: str) -> None:
    event_names[event] = name


def attr_table(event: int, _leader: int, attr: bytes, cpu: str) -> None:
    collector.add_event(event, event_names[event], Attr(attr), cpu)


def dso_table(dso: int, _machine: int, short: str, path: str, _build_id: str) -> None:
    dsos[dso] = short if short.startswith("[vdso") else path  # which is a copy of perf's


def symbol_table(symbol: int, dso: int, start: int, end: int, _binding: int, name: str) -> None:
    if start == end and name == "unknown":  # perf has invented it
        name = ""
    symbols[symbol] = name, dsos.get(dso, ""), start & (1 << 64) - 1


def sample_table(*sample: Any) -> None:
    if len(sample) < 29:
        fail("this perf lacks the values of groups: use the perf of the alt-period series")
    event, thread, dso, symbol, address, values = (sample[n] for n in (1, 3, 5, 6, 8, 28))
    function = symbols.get(symbol) or ("", dsos.get(dso, ""), address & (1 << 64) - 1)
    collector.sample(event, thread, (address, function), values)


def throttle(_time: int, event_id: int, *_: int) -> None:
    collector.throttle(event_id, True)


def unthrottle(_time: int, event_id: int, *_: int) -> None:
    collector.throttle(event_id, False)


def lost(time: int, event_id: int, number: int, *_: int) -> None:
    collector.lost(time, number, not event_id)


def trace_end() -> None:
    """Print the table in the order and form that the options ask for."""
    table = Table([*collector.groups.values()], collector.is_arm)
    if not table.rows:
        what = "no window of a counter group ({...}:S)"
        fail(f"{what}: use perf functions report, or record for longer")
    metrics = table.metrics()
    titles = ["symbol", *(metric.column for metric in metrics)]
    places = {title.lower(): place for place, title in enumerate(titles)}
    usual = next(title for title in ("%cy", "%clk", "%tclk", "#") if title in places)
    place = places.get(printable(options.sort or usual).lower())
    if place is None:
        fail(f"no column {options.sort} in this recording, there are: {' '.join(titles)}")
    lines = [(row, *(table.value(metric, row) for metric in metrics)) for row in table.rows]
    if place:  # largest first, undefined last
        lines.sort(key=lambda line: (line[place] is None, -(line[place] or 0)))
    notes = collector.notes()
    if table.unknown:
        unknown = ", ".join(title for title in titles if title in table.unknown)
        notes.append(f"no values of {unknown}: their events are in groups without a common event")
    for note in notes:
        print(f"generate-function-metrics: {printable(note)}", file=sys.stderr)
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore  # for names, in any locale
    try:
        (print_csv if options.csv else print_text)(table, metrics, lines[: options.limit])
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        fail(f"the table cannot be written: {error.strerror}")


def read_file(path: str) -> None:
    """Read a recording with perf's module, without perf script."""
    # pylint: disable=c-extension-no-member
    try:
        import perf  # pylint: disable=import-outside-toplevel
    except ImportError:
        fail("Python finds no module perf: set PYTHONPATH, or use perf script -s, see --help")
    if not hasattr(perf.sample_event, "read_values"):
        fail("this module perf has no counts of groups: use perf script -s, see --help")
    events: Dict[int, int] = {}  # by their ids
    forks: Dict[int, int] = defaultdict(int)  # tell threads of one number apart

    def read_sample(sample: Any) -> None:
        if not (collector.events or collector.ignored):  # the first records correct attrs
            for event, evsel in enumerate(session.evlist):
                collector.add_event(event, str(evsel)[6:-1], Attr(evsel.attr), session.cpu)
                events.update(dict.fromkeys(evsel.ids, event))
        read = sample.read_values or ()
        values = [(events[number], number, value) for number, value, *_ in read if number in events]
        dso = (sample.dso if (sample.dso or "").startswith("[vdso") else sample.dso_long_name) or ""
        is_mapped = sample.dso and sample.sample_ip >> 63 == 0
        offset = sample.map_pgoff - sample.map_start if is_mapped else 0
        address = sample.sym_start if sample.symbol else sample.sample_ip + offset
        collector.sample(
            events.get(sample.sample_id, 0),
            (sample.sample_tid, forks[sample.sample_tid]),
            (sample.sample_ip, (sample.symbol or "", dso, address)),
            values,
        )

    try:
        session = perf.session(
            perf.data(path),
            sample=read_sample,
            throttle=lambda one: collector.throttle(one.id, True),
            unthrottle=lambda one: collector.throttle(one.id, False),
            lost=lambda one: collector.lost(one.sample_time, one.lost, False),
            lost_samples=lambda one: collector.lost(one.sample_time, one.lost, True),
            fork=lambda one: forks.update({one.tid: forks[one.tid] + 1}),
        )
        session.process_events()
    except OSError as error:
        fail(f"{path}: cannot be read: {error}")


if __name__ == "__main__":
    options = parse_options()
    collector.counts_all = options.share == "none"
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it silently
    if not IS_IN_PERF:
        read_file(options.input)
        trace_end()
