# SPDX-License-Identifier: GPL-2.0
# generate-function-metrics.py - metrics of functions from the counts of groups
#
# Usage:
#
#     perf record -T --sample-cpu -e '{cycles/period=999700,alt-period=300/,instructions,
#         branch-misses,cache-references,cache-misses}:uS' -- COMMAND
#     perf script -s generate-function-metrics.py -- -s discard --sort CPI --limit 20
#
# or, with the same events:
#
#     perf script record generate-function-metrics -- COMMAND
#     perf script report generate-function-metrics -s discard --sort CPI --limit 20
#
# Sums of recordings add up, without perf too:
#
#     perf script -s generate-function-metrics.py -- --write-sums host1.sums
#     python3 generate-function-metrics.py --sums host1.sums host2.sums
#
# perf's script names have dashes, its handlers as many arguments as a table has columns, and a
# group as many attributes as it has properties:
# pylint: disable=invalid-name,too-many-arguments,too-many-instance-attributes,too-many-lines

"""
Print a table of metrics (cycles per instruction, misses per 1000 instructions ...) per function.

The input is a recording of counter groups (`{leader,member,...}:S`) whose leader alternates
between a long sample period and a short one, the window. A window which begins and ends in the
same function of the same thread belongs to that function, and so do the counts of the whole
group in it. A recording with one small period (`{cycles/period=1000/,instructions}:S`) can be
read too: there every interval is a window.

Terms:

- A *stream* is one leader on one thread, or on one CPU where the counts are not inherited.
- A sample's counts are those since the sample before it in the stream. The first sample of a
  stream only opens it; with jitter its interval has any length.
- A window is *matched* when the sample before it in its stream was in the same function (symbol
  of a DSO, or address where there is no symbol) and thread, and nothing was throttled or lost in
  between. That sample ended a long interval, or was the first one, or ended another window of
  the burst. A sample at address 0 is in no known function, so it matches no other: Linux 7.3
  writes 0 into a `:u` sample whose interrupt came in the kernel.
- Windows of a burst that count for one function count as one in the products: they are next to each
  other, so they are not independent.
- In share mode auto a window counts a second time, apart from the matched ones: for the function
  in which it *begins*, wherever it ends.
- A recording has up to 20 *blocks* of time, all equally long (see Blocks). A window is in the block
  of the sample at its end. The totals of the blocks tell how much a function differs from one time
  to another, which neither a window nor a burst can tell.
- In share mode auto all intervals of a group whose beginning is known are summed up, too, each for
  itself: the windows and the long ones. Wherever they begin and end, they tell what an interrupt
  adds to an interval.
- With an alternate period a sample that ends no window ends a long interval, and so does the
  first one of a stream: it has *opened* the window after it.
- Share modes: `discard` counts matched windows only, the others raise the function's number of
  samples and its discard ratio. `none` counts every window for the function at its end, save
  those over a throttle or lost record: members may count on while their leader is throttled.
  `auto` is `none` for groups without an alternate period. For the others it counts the windows
  that `discard` counts, but the share of the leader's event is that of the opened samples, which
  no window is lost from, and the share of another event is that times its rate in the windows.
  If many windows that begin in a function end elsewhere (see STAYS), the matched ones are those
  of its long runs: its rates are then those of all windows that begin in it.

Windows are matched by the samples before them, which filters of perf script (--comm, --symbols,
--time ...) keep from this: those of `perf functions report` only choose windows.

Any event may be in a group. Those which METRICS knows have columns with short names; each other
event NAME has a column NAME/KI, its number per 1000 instructions, if instructions were counted.

Several groups (more events than counters) are summed apart. A metric of two events uses the
groups which hold both. If no group does, both events are taken relative to one which their
groups share (cycles, as a rule), or to the number of windows.

With --children, a window counts for all functions that were on the stack from its start to its
end: those of the frames that the call chains at its ends have in common, from the root on. It is a
sample of each function of the chain at its end, once, however often that function is there. The
addresses of frames tell two calls of one function from different places apart, so perf has to hand
out the chains as they were recorded (call_chain_table).

`perf functions` does the same in C. Change both together, because the sums have to be
identical. The format of sums files is in perf-functions(1).
"""

import argparse
import ast
import csv
import gc
import json
import os
import re
import signal
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby, zip_longest
from operator import attrgetter, mul
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    NamedTuple,
    NoReturn,
    Optional,
    Sequence,
    Set,
    TextIO,
    Tuple,
)

PERF_TYPE_HARDWARE = 0
PERF_TYPE_SOFTWARE = 1
PERF_TYPE_TRACEPOINT = 2
PERF_TYPE_HW_CACHE = 3
PERF_TYPE_RAW = 4
PERF_TYPE_MAX = 6  # types from here on are numbers of PMUs
PERF_SAMPLE_READ = 1 << 4
PERF_SAMPLE_CALLCHAIN = 1 << 5
PERF_SAMPLE_STACK_USER = 1 << 13
PERF_SAMPLE_BRANCH_CALL_STACK = 1 << 11
MOST_EVENTS, MOST_COLUMNS = 64, 500  # of a group in a sums file, of a table
COUNT, SUM = (1 << 64) - 1, (1 << 192) - 1  # the largest number of windows, the largest sum
MAPPED = (PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE)  # the kernel maps the event to one of the PMU
ARM_CPU = "(0x[0-9a-f]{16})?( |$)"  # the form of its MIDR, or unknown

HEADER = "Perf-Trace-Util/lib/Perf/Trace/FunctionMetrics.h"


def definitions() -> str:
    """The text of FunctionMetrics.h, which perf's C code includes as well. The header lies beside
    this script. A copy of the script finds it where perf is installed."""
    folders = [os.path.dirname(os.path.realpath(__file__))]
    if "PERF_EXEC_PATH" in os.environ:
        folders.append(os.path.join(os.environ["PERF_EXEC_PATH"], "scripts/python"))
    paths = [os.path.join(folder, HEADER) for folder in folders]
    path = next(filter(os.path.exists, paths), paths[0])
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().replace("NULL", '""')
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}: copy Perf-Trace-Util beside this script, too")


def uses(macro: str) -> List[Tuple]:
    """Yield the arguments of each use of a macro in FunctionMetrics.h."""
    found = re.findall(rf"^{macro}\(([^)]*)\)", DEFINITIONS, re.MULTILINE)
    return [ast.literal_eval(f"({arguments})") for arguments in found]


DEFINITIONS = definitions()
# names of events by perf_event_attr.config
HARDWARE = dict(uses("HARDWARE_EVENT"))
SOFTWARE = dict(uses("SOFTWARE_EVENT"))
HW_CACHE = dict(uses("CACHE_EVENT"))
ARM = dict(uses("ARM_EVENT"))
ALIASES = dict(uses("EVENT_ALIAS"))  # the same events, by other names
KNOWN = {*HARDWARE.values(), *SOFTWARE.values()}

TOTAL = "total"  # Metric.per of a share
# The least part of a function's windows that must also end in it. With fewer, the
# matched windows are not a fair sample.
STAYS = 0.9
ALL, CUT = "[all]", "[cut]"  # rows of `children` that are no functions: roots of call chains


@dataclass(frozen=True)
class Metric:
    """A column: scale x event / per, where per is an event, TOTAL (the event's sum over all
    functions) or nothing. `samples`, `matched` and `discarded` count windows."""

    column: str
    meaning: str
    event: str
    per: str = ""
    scale: int = 1
    digits: int = 1

    @property
    def formula(self) -> str:
        """The formula in words."""
        per = f"{TOTAL} {self.event}" if self.per == TOTAL else self.per
        return (
            self.event
            + (f" / {per}" if per else "")
            + (f" x {self.scale}" if self.scale != 1 else "")
        )


METRICS = tuple(Metric(*arguments) for arguments in uses("FUNCTION_METRIC"))
WINDOWS = ("samples", "matched", "discarded")  # names that every group has besides its events


def bare_name(name: str) -> Tuple[str, str]:
    """Split perf's name of an event, which may be pmu/terms/modifiers, name/terms/modifiers or
    name:modifiers, into the PMU ("" if none) and the event's own name."""
    if "/" not in name:
        return "", re.sub(r":[A-Za-z]+$", "", name)
    before, terms = name.split("/")[:2]
    terms = [
        term
        for term in terms.split(",")
        if term
        and not re.match(
            r"(alt-)?period|freq|name=|time|call-graph|stack-size|(no-)?inherit|max-|"
            r"(no-)?overwrite|branch_type|percore|aux-|metric-id=",
            term,
        )
    ]
    if before.lower() in ALIASES or before in KNOWN or not terms:
        return "", before
    return before, ",".join(terms)


def canonical_event(attr: Dict[str, int], name: str, cpu: str) -> str:
    """The event which an attr counts, in the words of METRICS; for others the bare name. The
    attr decides where it can, for the name may be the user's (name=...). cpu is as in
    attr_table."""
    kind, config = attr["type"], attr["config"]
    pmu, bare = bare_name(name)
    if kind == PERF_TYPE_HARDWARE and config & 0xFFFFFFFF in HARDWARE:
        return HARDWARE[config & 0xFFFFFFFF]  # the upper half may be a PMU's number
    if kind == PERF_TYPE_SOFTWARE and config in SOFTWARE:
        return SOFTWARE[config]
    if kind == PERF_TYPE_HW_CACHE:
        return HW_CACHE.get(config & 0xFFFFFFFF, bare)
    # the identification of an Arm CPU is its MIDR
    if (
        (kind == PERF_TYPE_RAW or kind >= PERF_TYPE_MAX)
        and config in ARM
        and re.match(r"armv\d" if pmu else ARM_CPU, pmu or cpu)
    ):
        return ARM[config]
    lower = bare.lower()
    return ALIASES.get(lower, lower if lower in KNOWN | {"inst_spec"} else bare)


def core_of(attr: Dict[str, int]) -> int:
    """The PMU that an attr names besides its event, as those of hybrid CPUs do, which have one for
    each kind of core; 0 if it names none."""
    return attr["config"] >> 32 if attr["type"] in MAPPED else 0


def differ(attr: Dict[str, int], other: Dict[str, int], cpu: str) -> bool:
    """Return whether two events of one name count different things, as two numbers do. Of those
    that the kernel maps, cache-misses are those of L1D on Arm and those of the last level
    elsewhere."""
    mapped = [one["type"] in MAPPED for one in (attr, other)]
    if mapped[0] != mapped[1]:
        return False
    if attr["type"] == other["type"] or not mapped[0]:
        return (attr["config"] ^ other["config"]) & (0xFFFFFFFF if mapped[0] else -1) != 0
    return not re.match(ARM_CPU, cpu)


@dataclass
class Sums:
    """The sums over windows of a function: their numbers, the total of each event over the
    counted ones and the total of the product of each pair of events (a <= b), in which a burst
    is one window. All are exact integers. discarded windows do not begin in the function; those
    that count in share mode `none` are called matched, wherever they begin. bursts are the matched windows, those of a burst that
    follow one another being one; opened are the samples that end a long interval; begun are the
    sums of the windows that begin in the function, all of them matched, None if there are none.

    blocks are those with a matched window, and block_products the sums over them of the products of
    their totals. opened_squares and opened_all are such sums, too: of the square of the function's
    opened samples in a block, and of their product with those of all functions."""

    samples: int = 0
    matched: int = 0
    discarded: int = 0
    totals: Dict[str, int] = field(default_factory=dict)
    products: Dict[Tuple[str, str], int] = field(default_factory=dict)
    bursts: int = 0
    opened: int = 0
    begun: Optional["Sums"] = None
    blocks: int = 0
    block_products: Dict[Tuple[str, str], int] = field(default_factory=dict)
    opened_squares: int = 0
    opened_all: int = 0

    def __iadd__(self, other: "Sums") -> "Sums":
        self.samples += other.samples
        self.matched += other.matched
        self.discarded += other.discarded
        for event, total in other.totals.items():
            self.totals[event] = self.totals.get(event, 0) + total
        for pair, total in other.products.items():
            self.products[pair] = self.products.get(pair, 0) + total
        for pair, total in other.block_products.items():
            self.block_products[pair] = self.block_products.get(pair, 0) + total
        self.bursts += other.bursts
        self.blocks += other.blocks
        self.opened += other.opened
        self.opened_squares += other.opened_squares
        self.opened_all += other.opened_all
        if other.begun:
            self.begun = (self.begun or Sums()) + other.begun
        return self

    def __add__(self, other: "Sums") -> "Sums":
        result = Sums()
        result += self
        result += other
        return result

    def __sub__(self, other: "Sums") -> "Sums":
        """Subtract, but never below 0."""

        def rest(mine: Dict, others: Dict) -> Dict:
            return {key: max(total - others.get(key, 0), 0) for key, total in mine.items()}

        return Sums(
            max(self.samples - other.samples, 0),
            max(self.matched - other.matched, 0),
            max(self.discarded - other.discarded, 0),
            rest(self.totals, other.totals),
            rest(self.products, other.products),
            max(self.bursts - other.bursts, 0),
        )

    def __getitem__(self, name: str) -> int:
        return getattr(self, name) if name in WINDOWS else self.totals.get(name, 0)

    @property
    def fits(self) -> bool:
        """Return whether a sums file can have them."""
        values = *self.totals.values(), *self.products.values(), *self.block_products.values()
        return (
            max(self.samples, self.opened, self.blocks) <= COUNT
            and max(*values, self.opened_squares, self.opened_all) <= SUM
            and (not self.begun or self.begun.fits)
        )

    def product(self, one: str, other: str) -> int:
        """Return the total of one x other. A window counts 0 or 1, so its square is itself."""
        if one in WINDOWS or other in WINDOWS:
            return self[one if other in WINDOWS else other]
        return self.products.get((min(one, other), max(one, other)), 0)


class Function(NamedTuple):
    """A row: a symbol of a DSO. The address (in the DSO) tells functions of one name in one DSO
    apart, and stands for the name where there is no symbol; otherwise it is None."""

    symbol: str
    dso: str
    address: Optional[int] = None

    def name_of_address(self) -> str:
        """Return the address, which stands for the name where there is no symbol."""
        return "" if self.address is None else f"{self.address:#x}"

    def label(self, with_dso: bool) -> str:
        """Return the name to print."""
        label = self.symbol or self.name_of_address()
        if self.symbol and self.address is not None:
            label += f" {self.address:#x}"
        # perf names a function without a name by its range
        with_dso = with_dso or not self.symbol or (self.dso != "" and label.startswith("0x"))
        return f"{label} [{self.dso or 'unknown'}]" if with_dso else label


Events = Tuple[str, ...]  # of a group, leader first
Groups = Dict[Events, Sums]


def add_sums(groups: Groups, events: Events, sums: Sums) -> None:
    """Add sums to those of the group of these events."""
    if events not in groups:
        groups[events] = Sums()
    groups[events] += sums


def begun_in(groups: Groups, auto: Set[Events]) -> Groups:
    """The sums of the windows that begin in a function, wherever they end; of a group that is not
    in share mode auto those of the matched ones."""
    return {
        events: (sums.begun or Sums()) if events in auto else sums
        for events, sums in groups.items()
    }


def stays(groups: Groups, auto: Set[Events]) -> bool:
    """Return whether most windows that begin in a function end in it, too."""
    own = {events: sums for events, sums in groups.items() if events in auto}
    return pooled(own).matched >= STAYS * pooled(begun_in(own, auto)).matched


def rated(groups: Groups, auto: Set[Events]) -> Groups:
    """Return the sums of the windows for a function's rates."""
    return groups if stays(groups, auto) else begun_in(groups, auto)


class Value(NamedTuple):
    """A metric of a function and its standard error, None where they are not defined."""

    value: Optional[float]
    error: Optional[float] = None


def pooled(groups: Groups, *names: str) -> Sums:
    """Return the sums of the groups that have all of the events."""
    fit = [
        sums
        for events, sums in groups.items()
        if all(name in events or name in WINDOWS for name in names)
    ]
    return fit[0] if len(fit) == 1 else sum(fit, Sums())


def common_event(total: Groups, one: str, other: str) -> str:
    """An event that both a group with one and a group with other have; `matched` if there is
    none. `` if a group has both."""
    with_one = [events for events in total if one in events or one in WINDOWS]
    with_other = [events for events in total if other in events or other in WINDOWS]
    if set(with_one) & set(with_other):
        return ""
    common = {event for events in with_one for event in events} & {
        event for events in with_other for event in events
    }
    return "cycles" if "cycles" in common else min(common, default="matched")


def inclusive_share(metric: Metric, groups: Groups, total: Groups) -> Value:
    """The share of a function and all that it calls: p r / R, where p is the part of the samples
    that have it in their chains, whatever became of their windows, and r and R are the rates per
    event of the leader in its windows and in all. All are those windows, with the weight p, and
    the others. Each part has an error of p and one of its rate."""
    event = metric.event
    leader = next(events[0] for events in sorted(total) if event in events)
    own, whole = pooled(groups, event, leader), pooled(total, event, leader)
    others = whole - own
    rates = [1.0, 1.0, 1.0]
    if event != leader:
        if not own[leader] or not whole[leader] or not whole[event]:
            return Value(None)
        rates = [
            float(sums[event]) / float(sums[leader]) if sums[leader] else 0.0
            for sums in (own, whole, others)
        ]
    if not whole.samples or own.samples > whole.samples:
        return Value(None)
    part = own.samples / whole.samples
    share = min(part * rates[0] / rates[1], 1.0)  # the rates come from other windows
    if not whole.matched or not whole[leader]:
        return Value(metric.scale * share)
    # windows of a burst count as one
    square = whole.product(leader, leader)
    bursts = float(whole[leader]) ** 2 / square if square else whole.matched
    number = whole.samples * min(bursts / whole.matched, 1)
    if number < 2:
        return Value(metric.scale * share)
    variance = 0.0
    for sums, weight, rate, factor in (
        (own, part, rates[0], 1 - share),
        (others, 1 - part, rates[2], share),
    ):
        error = sums_ratio(sums, event, leader).error or 0.0
        variance += factor**2 * (weight * rate**2 / number + (weight * error) ** 2)
    return Value(metric.scale * share, metric.scale * variance**0.5 / rates[1])


def metric_value(metric: Metric, groups: Groups, total: Groups, inclusive: bool) -> Value:
    """A metric of the function with the sums `groups`; `total` are those of all functions, whose
    shares are `inclusive` where callers have the windows of what they call, too."""
    event, per = metric.event, metric.per
    if not per:
        return Value(pooled(groups, event)[event] * metric.scale)
    if per == TOTAL and inclusive:
        return inclusive_share(metric, groups, total)
    if per == TOTAL:
        own, whole = pooled(groups, event), pooled(total, event)
        square = own.product(event, event)
        return ratio(
            metric.scale,
            whole.bursts,
            own[event],
            whole[event],
            square,
            square,
            whole.product(event, event),
        )
    link = common_event(total, event, per)
    if link:
        one, other = pooled(groups, event, link), pooled(groups, per, link)
        return linked_ratio(
            ratio(metric.scale, 0, float(one[event]) * other[link], float(one[link]) * other[per]),
            sums_ratio(one, event, link),
            sums_ratio(other, per, link),
        )
    return sums_ratio(pooled(groups, event, per), event, per, metric.scale)


def sums_ratio(sums: Sums, event: str, per: str, scale: int = 1) -> Value:
    """scale x event / per."""
    return ratio(
        scale,
        sums.samples if event in WINDOWS else sums.bursts,
        sums[event],
        sums[per],
        sums.product(event, event),
        sums.product(event, per),
        sums.product(per, per),
    )


def linked_ratio(whole: Value, one: Value, other: Value) -> Value:
    """A ratio of two which have no windows in common: the squares of their relative errors add
    up."""
    if whole.value is None or one.error is None or other.error is None:
        return whole
    first = one.error / one.value if one.value else 0.0
    return Value(whole.value, whole.value * (first**2 + (other.error / other.value) ** 2) ** 0.5)


def ratio(
    scale: int, number: int, y: float, x: float, yy: int = 0, xy: int = 0, xx: int = 0
) -> Value:
    """scale x y / x, where y and x are totals over a number of windows, and yy, xy and xx the
    totals of products. The error is that of a ratio estimator (Cochran, Sampling Techniques,
    2.11): n / (n - 1) x sum (y_i - R x_i)^2 / x^2, squared. The integers in it are exact, the
    division is one of floats, as in perf functions."""
    if not x:
        return Value(None)
    value = scale * float(y) / float(x)
    if number < 2:
        return Value(value)
    squares = yy * x * x - 2 * xy * x * y + xx * y * y
    # in a sums file of another program it may be less than 0
    return Value(value, scale * (number * max(squares, 0) / ((number - 1) * x**4)) ** 0.5)


def rounded_sum(values: Iterable[float]) -> float:
    """The sum, rounded after each value, as perf functions has it and sum() before Python 3.12."""
    total = 0.0
    for value in values:
        total += value
    return total


def opening_leader(total: Groups, event: str) -> str:
    """Return the leader whose opened samples give the shares of an event; `` if there is none."""
    leaders = {events[0] for events, sums in total.items() if event in events and sums.opened}
    return "cycles" if "cycles" in leaders else min(leaders, default="")


def led(groups: Groups, leader: str, event: str) -> Sums:
    """Return the sums of the groups that have this leader and the event."""
    return sum(
        (sums for events, sums in groups.items() if events[0] == leader and event in events), Sums()
    )


def opened_rate(
    groups: Groups, total: Groups, auto: Set[Events], leader: str, event: str
) -> Tuple[Value, bool]:
    """An event by its leader, and whether it is the function's own: in the matched windows; where
    they are fewer than 3, in all that begin in it; and where there are none, in those of all
    functions. The error of such a rate is not known: it is taken to be as large as the rate
    itself. The matched ones are those of stalls, but of all functions alike, and a share is
    relative to all functions."""
    if event == leader:
        return Value(1.0, 0.0), True
    own = led(groups, leader, event)
    if own.bursts >= 3 and own[leader]:
        return sums_ratio(own, event, leader), True
    for row in groups, total:
        begun = led(begun_in(row, auto), leader, event)
        if begun[leader]:
            rate = float(begun[event]) / float(begun[leader])
            return Value(rate, rate), row is groups
    return Value(0.0, 0.0), False


def opened_shares(
    metric: Metric, functions: Dict["Function", Groups], total: Groups, auto: Set[Events]
) -> Optional[Dict["Function", Value]]:
    """The shares of an event in share mode auto, None if no sample was opened:

        s = p r / S, where S is the sum of all functions' p r
        variance of s = (sum over the functions g of (1[g = f] - s)^2 v_g) / S^2
        v = p r^2 / N + p^2 x (standard error of r)^2

    p is the function's share of the N opened samples, r its rate of the event by the leader's."""
    event = metric.event
    leader = opening_leader(total, event)
    if not leader:
        return None
    number = led(total, leader, leader).opened
    parts = {}  # p r, v, and whether the function has a rate of its own
    # in the order of perf functions, so that both round alike
    for function, groups in sorted(functions.items(), key=lambda item: by_name(item[0])):
        p = led(groups, leader, leader).opened / number
        (rate, error), is_own = opened_rate(groups, total, auto, leader, event)
        parts[function] = (p * rate, p * rate**2 / number + (p * error) ** 2, is_own)
    both = rounded_sum(part[0] for part in parts.values())
    variance = rounded_sum(part[1] for part in parts.values())
    shares = {}
    for function, (part, own_variance, is_known) in parts.items():
        shares[function] = Value(None)
        if both and is_known:
            share = part / both
            squares = (1 - 2 * share) * own_variance + share**2 * variance
            shares[function] = Value(
                metric.scale * share,
                metric.scale * max(squares, 0) ** 0.5 / both if number > 1 else None,
            )
    return shares


SHARES = ("auto", "none", "discard")


class GroupInfo(NamedTuple):
    """The way a group was recorded, and the share mode, which chooses the windows that count."""

    events: Events
    share: str
    sample_period: int
    sample_freq: int
    alternative_sample_period: int
    alternative_sample_count: int
    jitter_alternate_period: int
    inherit: bool


class Intervals(NamedTuple):
    """The sums of all intervals of a group in share mode auto, each for itself: of the windows, and
    of the long ones, whose blocks are those with a sample that ends one or opens a stream."""

    windows: Sums
    long: Sums

    def __add__(self, other: "Intervals") -> "Intervals":  # type: ignore[override]
        return Intervals(self.windows + other.windows, self.long + other.long)


class Table:
    """The sums of functions, apart for each group, and the metrics made from them. `groups`, `lost`
    and `throttled` say how they were recorded."""

    def __init__(self, by: str = "symbol", inline: bool = False) -> None:
        self.by, self.inline = by, inline  # the kind of rows; the script makes no others
        self.functions: Dict[Function, Groups] = {}
        self.groups: List[GroupInfo] = []
        self.intervals: Dict[Events, Intervals] = {}  # of the groups in share mode auto
        self.cpus: Set[str] = set()  # the kinds of CPUs that counted
        self.lost = self.throttled = 0
        self.lacks_children = False  # sums say so; recordings do not tell the script
        self.was_mixed = False  # auto was added to discard, so the result has the latter only

    def add(self, function: Function, events: Events, sums: Sums) -> None:
        """Add a function's sums."""
        add_sums(self.functions.setdefault(function, {}), events, sums)

    def add_intervals(self, events: Events, intervals: Intervals) -> None:
        """Add the sums of all intervals of a group."""
        before = self.intervals.get(events)
        self.intervals[events] = before + intervals if before else intervals

    def recorded(self) -> List[GroupInfo]:
        """Return how the groups were recorded, in order, each once."""
        return sorted(
            set(self.groups), key=lambda group: (group.events, SHARES.index(group.share), group[2:])
        )

    def kinds(self) -> Dict[Events, Set[bool]]:
        """Return by its events whether a group is in share mode none."""
        kinds: Dict[Events, Set[bool]] = defaultdict(set)
        for group in self.groups:
            kinds[group.events].add(group.share == "none")
        return kinds

    def shares(self) -> Set[str]:
        """Return the share modes of the groups."""
        return {group.share for group in self.groups}

    def auto(self) -> Set[Events]:
        """Return the events of the groups in share mode auto."""
        return {group.events for group in self.groups if group.share == "auto"}

    def discard(self) -> None:
        """Turn sums of share mode auto into those of discard, whose matched windows are the
        same."""
        self.groups = [
            group._replace(share="discard") if group.share == "auto" else group
            for group in self.groups
        ]
        self.intervals = {}
        for groups in self.functions.values():
            for sums in groups.values():
                sums.opened, sums.begun = 0, None
                sums.opened_squares = sums.opened_all = 0
        self.drop_empty()

    def drop_empty(self) -> None:
        """Remove sums without samples."""
        for function, groups in list(self.functions.items()):
            for events, sums in list(groups.items()):
                if not sums.samples and not sums.opened and not sums.begun:
                    del groups[events]
            if not groups:
                del self.functions[function]

    def has_window(self) -> bool:
        """Return whether there is any window."""
        return any(sums.samples for groups in self.functions.values() for sums in groups.values())

    @property
    def fits(self) -> bool:
        """Return whether a sums file can have each of its sums."""
        each = [sums for groups in self.functions.values() for sums in groups.values()]
        every = [sums for intervals in self.intervals.values() for sums in intervals]
        return all(sums.fits for sums in each + every)

    def __add__(self, other: "Table") -> "Table":
        table = Table(self.by, self.inline)
        for part in self, other:
            table.groups += [group for group in part.groups if group not in table.groups]
            table.cpus |= part.cpus
            table.lost = min(table.lost + part.lost, COUNT)
            table.throttled = min(table.throttled + part.throttled, COUNT)
            for function, groups in part.functions.items():
                for events, sums in groups.items():
                    table.add(function, events, sums)
            for events, intervals in part.intervals.items():
                table.add_intervals(events, intervals)
        table.lacks_children = self.lacks_children or other.lacks_children
        table.was_mixed = self.was_mixed or other.was_mixed
        if {"auto", "discard"} <= table.shares():
            table.discard()
            table.was_mixed = True
        return table

    def total(self) -> Groups:
        """The sums over all functions. Where callers have the windows of what they call, too,
        there is such a row."""
        total: Groups = {}
        for function, groups in self.functions.items():
            for events, sums in groups.items():
                is_part = self.by != "children" or function == Function(ALL, "")
                add_sums(total, events, sums if is_part else Sums())
        return total

    def metrics(self) -> List[Metric]:
        """Return the columns: the metrics whose events were recorded."""
        groups = {events for groups in self.functions.values() for events in groups}
        recorded = {event: None for events in sorted(groups) for event in events}
        *metrics, last = [
            metric
            for metric in METRICS
            if all(
                name in recorded or name in WINDOWS
                for name in (metric.event, metric.per)
                if name not in ("", TOTAL)
            )
        ]
        for event in recorded if "instructions" in recorded else ():
            if any(event == metric.event for metric in METRICS):
                continue
            if len(metrics) == MOST_COLUMNS:
                fail("too many events for a table (record fewer): report fewer files at once")
            name = printable(event)
            title = f"{name}/KI"
            while any(title.lower() == metric.column.lower() for metric in metrics):
                title = f"event:{title}"
            text = f"{name} per 1000 instructions"
            metrics.append(Metric(title, text, event, "instructions", 1000, 3))
        return [*metrics, last]

    def values(self, metrics: Sequence[Metric]) -> Dict[Function, Dict[str, Value]]:
        """Return the value of each metric of each function."""
        total, inclusive, auto = self.total(), self.by == "children", self.auto()
        of_rates = {function: rated(groups, auto) for function, groups in self.functions.items()}
        values: Dict[Function, Dict[str, Value]] = {function: {} for function in self.functions}
        for metric in metrics:
            shares = None
            if metric.per == TOTAL and not inclusive:
                shares = opened_shares(metric, self.functions, total, auto)
            is_rate = metric.per not in ("", TOTAL) and metric.event not in WINDOWS
            for function, groups in (of_rates if is_rate else self.functions).items():
                if shares:
                    value = shares[function]
                elif metric.per == TOTAL and inclusive and function == Function(CUT, ""):
                    value = Value(None)
                else:
                    value = metric_value(metric, groups, total, inclusive)
                values[function][metric.column] = value
        return values


BATCH = 1024  # number of a function's windows that are kept before they are summed up
BLOCKS = 20  # most blocks of time

SymbolKey = Any  # id of a symbol, or (id of a DSO, address), or ALL, or CUT
Frame = Tuple[SymbolKey, int]  # a function that runs or waits for its callee, and the address in it
Place = Tuple  # thread and function (SymbolKey) at the end of an interval, or:
NOWHERE: Place = ("the sample is at address 0",)
BROKEN: Place = ("something was throttled or lost since",)
Window = List[int]  # counts by slot, of which the last ones may be missing
Pairs = Dict[Tuple[int, int], int]  # by the slots of two events, the lower one first
ByBlock = Dict[int, List[int]]


def added(one: Iterable[int], other: Iterable[int]) -> List[int]:
    """Return the sum of two lists, number by number."""
    return [a + b for a, b in zip_longest(one, other, fillvalue=0)]


def together(windows: Sequence[Window]) -> Window:
    """Return the counts of several windows together."""
    return list(map(sum, zip_longest(*windows, fillvalue=0)))


def add_products(products: Pairs, windows: Sequence[Window]) -> None:
    """Add the products of each two events in windows."""
    columns = [
        (slot, column)
        for slot, column in enumerate(zip_longest(*windows, fillvalue=0))
        if any(column)
    ]
    for place, (one, first) in enumerate(columns):
        for other, second in columns[place:]:
            pair = one, other
            products[pair] = products.get(pair, 0) + sum(map(mul, first, second))


class Blocks:
    """Blocks of time, all of 2^shift ns, of which the first one begins with the first sample of the
    recording. The shift is the least one with which there are no more than BLOCKS of them: when it
    grows, several become one. A block goes by its beginning, which may be that of a shorter one."""

    def __init__(self) -> None:
        self.origin: Optional[int] = None  # the time of the first sample
        self.shift = 0
        self.begin = 0  # of the block at hand, after the origin

    def enter(self, time: int) -> Tuple[int, int]:
        """Enter the block of this time. Return when it begins and ends."""
        if self.origin is None:
            self.origin = time
        offset = max(time - self.origin, 0)
        while offset >> self.shift >= BLOCKS:
            self.shift += 1
        self.begin = offset >> self.shift << self.shift
        begin = self.origin + self.begin
        return begin if self.begin else 0, begin + (1 << self.shift)

    def add(self, blocks: ByBlock, numbers: List[int]) -> None:
        """Add numbers to those of the current block."""
        before = blocks.get(self.begin)
        blocks[self.begin] = added(before, numbers) if before else numbers
        if len(blocks) > 4 * BLOCKS:
            self.merge(blocks)

    def merge(self, blocks: ByBlock) -> ByBlock:
        """Merge the shorter blocks in each block."""
        parts = list(blocks.items())
        blocks.clear()
        for begin, numbers in parts:
            begin = begin >> self.shift << self.shift
            blocks[begin] = added(blocks[begin], numbers) if begin in blocks else numbers
        return blocks


class Kept:
    """Windows of functions, which are kept to sum up many at a time."""

    def __init__(self) -> None:
        self.kept: Dict[SymbolKey, List[Window]] = defaultdict(list)

    def keep(self, symbol: SymbolKey, window: Window) -> None:
        """Add a window to those of a function; its other counts may be added until the next one."""
        windows = self.kept[symbol]
        if len(windows) >= BATCH:
            self.sum_up(symbol, windows)
            windows.clear()
        windows.append(window)

    def sum_up(self, symbol: SymbolKey, windows: List[Window]) -> None:
        """Add windows of a function to its sums."""
        raise NotImplementedError

    def sum_up_all(self) -> None:
        """Add all that are kept."""
        for symbol, windows in self.kept.items():
            self.sum_up(symbol, windows)
        self.kept.clear()


class Windows(Kept):
    """Windows of functions: in each block their number, then their totals."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.blocks = blocks
        self.sums: Dict[SymbolKey, ByBlock] = defaultdict(dict)

    def sum_up(self, symbol: SymbolKey, windows: List[Window]) -> None:
        self.blocks.add(self.sums[symbol], [len(windows), *together(windows)])


class Products(Kept):
    """Windows of functions, or what several of them have counted together: their number, then their
    totals, and the products of each two events."""

    def __init__(self) -> None:
        super().__init__()
        self.totals: Dict[SymbolKey, List[int]] = {}
        self.products: Dict[SymbolKey, Pairs] = defaultdict(dict)

    def sum_up(self, symbol: SymbolKey, windows: List[Window]) -> None:
        totals = [len(windows), *together(windows)]
        self.totals[symbol] = added(self.totals.get(symbol, ()), totals)
        add_products(self.products[symbol], windows)


class Group:
    """A group of events in the recording, and its windows while the samples come in."""

    def __init__(self, attr: Dict[str, int], share: str, blocks: Blocks) -> None:
        self.attr, self.blocks = attr, blocks
        self.events: List[str] = []
        period, alternate = attr["sample_period"], attr.get("alternative_sample_period", 0)
        # With a frequency only the kernel knows the long period, which changes. A window is meant
        # to be at most a quarter of it. An interval that is as short as a window is as useful as
        # one, whichever of the two it was.
        if attr["freq"]:
            period = 4 * min(alternate, COUNT // 4)
        # equal periods mean one period with jitter
        self.alternates = alternate not in (0, period)
        self.share = "none" if share == "auto" and not self.alternates else share
        self.per_thread = bool(attr["inherit"])
        # an interval of d events is a window if 2 d is less than the sum of the longest window and
        # the shortest long interval
        width = min(attr.get("jitter_alternate_period", 0), 63)
        longest, shortest = (
            min(nominal + sign * (min(1 << width, nominal // 2) if width else 0), COUNT)
            for nominal, sign in ((alternate, 1), (period, -1))
        )
        self.limit = longest + shortest if self.alternates else 1 << 66
        self.rest: Window = []  # counts of windows before the members are known
        # windows that count for the function in which they end, and those that leave a function
        self.matched, self.leaving = Windows(blocks), Windows(blocks)
        # bursts of one matched window, those of several, and those that the next window leaves
        self.single, self.several, self.left = (Products() for _ in range(3))
        # windows that leave a function: with no burst before them, and together with that burst
        self.alone, self.with_burst = (Products() for _ in range(2))
        # by no function: windows that are neither single nor alone, each for itself; long intervals
        self.others, self.long = Products(), Products()
        self.discarded: Dict[SymbolKey, int] = {}
        # in share mode none: counted windows that begin elsewhere
        self.elsewhere: Dict[SymbolKey, int] = Counter()
        # samples that end a long interval, or are the first ones: of the block at hand; all
        self.opening: List[SymbolKey] = []
        self.opened: Dict[SymbolKey, ByBlock] = defaultdict(dict)

    def add_event(self, name: str, raw_name: str) -> int:
        """Add a member, return its slot in the lists of counts. A second event of the same
        meaning (cycles:u and cycles:k, say) goes by the name that perf gave it."""
        slot = len(self.events)
        name = raw_name if name in self.events else name
        self.events.append(f"{raw_name}#{slot}" if name in self.events else name)
        self.rest = [0] * slot
        return slot

    @property
    def key(self) -> Events:
        """Return the events, in an order that does not depend on the recording."""
        return (self.events[0], *sorted(self.events[1:]))

    def info(self) -> GroupInfo:
        """Return how it was recorded."""
        return GroupInfo(
            self.key,
            self.share,
            self.attr["sample_period"],
            self.attr["freq"] and self.attr.get("sample_freq", 0),
            self.attr.get("alternative_sample_period", 0),
            self.attr.get("alternative_sample_count", 0),
            self.attr.get("jitter_alternate_period", 0),
            self.per_thread,
        )

    def open_window(self, symbol: SymbolKey) -> None:
        """The sample ended a long interval, or was the first one. With one period nothing opens."""
        if self.share == "auto":
            self.opening.append(symbol)

    def end_block(self) -> None:
        """Close the block: it has no more samples, for now."""
        self.matched.sum_up_all()
        self.leaving.sum_up_all()
        for symbol, number in Counter(self.opening).items():
            self.blocks.add(self.opened[symbol], [number])
        self.opening.clear()

    def end(self) -> None:
        """Close all: there are no more samples, for now."""
        self.end_block()
        for part in self.single, self.several, self.left, self.alone, self.with_burst:
            part.sum_up_all()
        self.others.sum_up_all()
        self.long.sum_up_all()

    def by_event(self, totals: Sequence[int]) -> Dict[str, int]:
        """Totals that are not 0."""
        return {self.events[slot]: total for slot, total in enumerate(totals) if total}

    def by_pair(self, every: Iterable[Pairs]) -> Dict[Tuple[str, str], int]:
        """The sum of products."""
        sums: Dict[Tuple[str, str], int] = {}
        for products in every:
            for slots, product in products.items():
                one, other = sorted(self.events[slot] for slot in slots)
                sums[one, other] = sums.get((one, other), 0) + product
        return sums

    def sums(
        self, symbol: SymbolKey, windows: Sequence[Windows], bursts: Sequence[Products]
    ) -> Sums:
        """The sums of windows of a function, and of the bursts that they make."""
        blocks: ByBlock = {}
        for part in windows:
            for block, numbers in self.blocks.merge(part.sums.get(symbol, {})).items():
                blocks[block] = added(blocks.get(block, ()), numbers)
        number, *totals = reduce(added, blocks.values(), [0])
        block_products: Pairs = {}
        add_products(block_products, [numbers[1:] for numbers in blocks.values()])
        return Sums(
            number,
            number,
            0,
            self.by_event(totals),
            self.by_pair(part.products.get(symbol, {}) for part in bursts),
            sum(part.totals.get(symbol, [0])[0] for part in bursts),
            blocks=len(blocks),
            block_products=self.by_pair([block_products]),
        )

    def opened_by_block(self) -> Dict[int, int]:
        """Samples of all functions that end a long interval, or are the first ones."""
        every: Dict[int, int] = Counter()
        for blocks in self.opened.values():
            for block, (number,) in self.blocks.merge(blocks).items():
                every[block] += number
        return every

    def results(self, counts_all: bool) -> Iterable[Tuple[SymbolKey, Sums]]:
        """The sums of each function. counts_all: groups of these events are in share mode none."""
        every = self.opened_by_block()
        parts = self.matched.sums, self.leaving.sums, self.discarded, self.opened
        for symbol in {symbol: None for part in parts for symbol in part}:
            sums = self.sums(symbol, [self.matched], [self.single, self.several, self.left])
            discarded = self.discarded.get(symbol, 0)
            sums += Sums(discarded, 0, discarded)
            if counts_all:
                sums.discarded += self.elsewhere[symbol]
            if counts_all and sums.samples > sums.discarded:
                sums.begun = Sums(matched=sums.samples - sums.discarded)
            for block, (number,) in self.blocks.merge(self.opened.get(symbol, {})).items():
                sums.opened += number
                sums.opened_squares += number**2
                sums.opened_all += number * every[block]
            begun = self.sums(
                symbol,
                [self.matched, self.leaving],
                [self.single, self.several, self.alone, self.with_burst],
            )
            if self.share == "auto" and begun.matched:
                sums.begun = begun
            yield symbol, sums

    def intervals(self) -> Intervals:
        """The sums of all intervals."""

        def whole(*parts: Products) -> Sums:
            totals = [one for part in parts for one in part.totals.values()]
            number, *counts = reduce(added, totals, [0])
            products = self.by_pair(one for part in parts for one in part.products.values())
            return Sums(number, number, 0, self.by_event(counts), products, number)

        long = whole(self.long)
        long.blocks = len(self.opened_by_block())
        return Intervals(whole(self.single, self.alone, self.others), long)


class Last:
    """The last sample of a stream, and the run of windows up to it that begin in one function."""

    __slots__ = ("place", "group", "symbol", "run", "earlier", "leaves")

    def __init__(self, place: Place, group: Group) -> None:
        self.place, self.group = place, group
        self.symbol: SymbolKey = None  # at the start of the run, None if there is no run
        self.run: List[Window] = []
        self.earlier: Window = []  # counts of the earlier windows of the run
        self.leaves = False  # its last window ends elsewhere

    def begin_run(self, symbol: SymbolKey, window: Window) -> None:
        """The sample ended a window that counts. With one period there are no bursts."""
        self.end_run()
        if self.group.alternates:
            self.symbol, self.run = symbol, [window]
        else:
            self.group.single.keep(symbol, window)

    def go_on(self, window: Window) -> None:
        """The sample ended another window of the run."""
        if len(self.run) >= BATCH:
            self.earlier = together([self.earlier, *self.run])
            self.end_windows()
            self.run = []
        self.run.append(window)

    def leave(self, symbol: SymbolKey, window: Window) -> None:
        """The sample ended a window that began in a function and ends elsewhere."""
        if self.symbol is None or self.leaves:
            self.begin_run(symbol, window)
        else:
            self.go_on(window)
        self.leaves = True

    def end_unmatched(
        self, symbol: SymbolKey, before: Place, thread: int, count: int
    ) -> Optional[Window]:
        """The sample ended a window that is not matched, in a thread. Return it, for the counts of
        its members, if it is to be summed up."""
        group = self.group
        window = [count, *group.rest]
        if group.share == "none" and before is not BROKEN:
            group.elsewhere[symbol] += 1
            group.matched.keep(symbol, window)
            self.begin_run(symbol, window)
            return window
        group.discarded[symbol] = group.discarded.get(symbol, 0) + 1
        if group.share == "auto" and before[0] == thread:  # an unknown place has none
            group.leaving.keep(before[1], window)
            self.leave(before[1], window)
            return window
        self.end_run()
        if group.share != "auto" or before is BROKEN:
            return None
        group.others.keep(None, window)
        return window

    def end_windows(self) -> None:
        """Add a run of several windows, which is complete."""
        for window in self.run if self.group.share == "auto" else ():
            self.group.others.keep(None, window)

    def end_run(self) -> None:
        """End the run, which has no more windows, and add them."""
        symbol, run, group = self.symbol, self.run, self.group
        if symbol is None:
            return
        if len(run) == 1 and not self.earlier:
            (group.alone if self.leaves else group.single).keep(symbol, run[0])
        else:
            whole = together([self.earlier, *run])
            (group.with_burst if self.leaves else group.several).keep(symbol, whole)
            if self.leaves:
                group.left.keep(symbol, together([self.earlier, *run[:-1]]))
            self.end_windows()
        self.symbol, self.earlier, self.leaves = None, [], False


class Calls:
    """The last sample of a stream, its call chain from the root on, and the burst up to it: the
    counts of its windows, the last one apart, by each function whose call went on in them."""

    __slots__ = ("place", "group", "chain", "bursts")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.place: Place = BROKEN
        self.chain: Sequence[Frame] = ()
        self.bursts: Dict[SymbolKey, List[Window]] = {}

    def common(self, chain: Sequence[Frame]) -> int:
        """Return the number of frames that are the same calls as before, as far as chains tell.
        Two frames of one function are if their callers are: the last ones may be at different
        addresses."""
        for number, (before, now) in enumerate(zip(self.chain, chain)):
            if before != now:
                return number + (before[0] == now[0])
        return min(len(self.chain), len(chain))

    def take(self, thread: int, chain: Sequence[Frame], window: Optional[Window]) -> None:
        """A sample, and the window that it ends, if it ends one."""
        place: Place = (thread,)
        common = self.common(chain) if place == self.place else 0
        self.place, self.chain = place, chain
        if not window or not self.group.alternates:
            self.end_run()
        if not window:
            return
        bursts: Dict[SymbolKey, List[Window]] = {}
        # in a recursion the first frame was there all the time
        first = {frame[0]: number for number, frame in reversed([*enumerate(chain)])}
        for symbol, number in first.items():
            if number < common:
                self.group.matched.keep(symbol, window)
                bursts[symbol] = [together(self.bursts.pop(symbol, ())), window]
            else:
                self.group.discarded[symbol] = self.group.discarded.get(symbol, 0) + 1
        self.end_run()
        self.bursts = bursts

    def end_run(self) -> None:
        """End the run of the calls, and add its windows."""
        for symbol, windows in self.bursts.items():
            self.group.single.keep(symbol, together(windows))
        self.bursts = {}


class Collector:
    """Receives what perf exports, in the order of time, and makes the table of it.

    perf calls evsel_table and attr_table before the first sample of an event, dso_table and
    symbol_table before the first sample in a symbol.
    """

    def __init__(self, share: str = "auto", children: bool = False) -> None:
        self.share, self.children = "discard" if children else share, children
        self.names: Dict[int, str] = {}  # of events
        self.slots: Dict[int, int] = {}  # event: slot, 0 for a leader
        self.groups: Dict[int, Group] = {}  # by leader
        self.events: Dict[str, Dict[str, int]] = {}  # attr of the first of each name
        # sample id: thread: Last, or Calls
        self.streams: Dict[int, Dict[int, Any]] = defaultdict(dict)
        self.chain: Optional[List[Frame]] = None  # of the sample that comes next
        self.dsos: Dict[int, str] = {}
        self.symbols: Dict[int, Tuple[int, int, int, str]] = {}
        self.ignored: List[str] = []  # events that are not in a group
        self.cpus: Dict[str, Set[int]] = {}  # and the PMUs of its kinds of cores
        self.lost_records = self.lost_samples = self.throttled = 0
        self.blocks = Blocks()
        self.sample_table = self.sample_handler()

    def evsel_table(self, evsel: int, name: str) -> None:
        """An event."""
        self.names[evsel] = name

    def attr_table(self, evsel: int, leader: int, attr: Dict[str, int], cpu: str = "") -> None:
        """The attr of an event, that of the leader before those of the members; and the CPU."""
        if attr.get("defer_callchain"):  # perf script delays such samples
            fail(
                "the counts of samples are mixed up where call chains come later: "
                f"record without 'defer'{'' if self.children else ', or use perf functions'}"
            )
        name = self.names.get(evsel, f"event{evsel}")
        is_tracepoint = attr["type"] == PERF_TYPE_TRACEPOINT  # perf delays their samples
        samples = attr["sample_period"] or attr["freq"]
        if evsel == leader and attr["sample_type"] & PERF_SAMPLE_READ and not is_tracepoint:
            if not samples:
                fail(f"{name} is in no group: the file is cut short, record again")
            # other chains end where the copy of the stack does or the LBRs do, and do not tell
            if self.children and (
                not attr["sample_type"] & PERF_SAMPLE_CALLCHAIN
                or attr["sample_type"] & PERF_SAMPLE_STACK_USER
                or attr["branch_sample_type"] & PERF_SAMPLE_BRANCH_CALL_STACK
            ):
                fail(f"{name} lacks data that these options need: use perf record --call-graph fp")
            self.groups[evsel] = Group(attr, self.share, self.blocks)
            self.cpus.setdefault(cpu, set()).add(core_of(attr))
        if leader in self.groups and not is_tracepoint:
            if evsel != leader and samples and self.groups[leader].alternates:
                fail(
                    f"{name} samples by itself, which splits the windows of its group: "
                    "record it without a period"
                )
            event = canonical_event(attr, name, cpu)
            if differ(attr, self.events.setdefault(event, attr), cpu):
                event = name
            self.slots[evsel] = self.groups[leader].add_event(event, name)
        else:
            self.slots[evsel] = 0
            self.ignored.append(name)

    def dso_table(
        self, dso: int, _machine: int, short_name: str, long_name: str, _build_id: str
    ) -> None:
        """Note a DSO. The vdso is a copy in a temporary file of perf."""
        self.dsos[dso] = short_name if short_name.startswith("[vdso") else long_name

    def symbol_table(
        self, symbol: int, dso: int, start: int, end: int, _binding: int, name: str
    ) -> None:
        """Note a symbol. If there is none, perf invents an empty one at the sample's address."""
        self.symbols[symbol] = (dso, start, end, name)

    def call_chain_table(
        self, _sample: int, frames: Sequence[Tuple[int, int, int]], is_cut: bool
    ) -> None:
        """Note the call chain of the next sample, the sample's own address first."""
        chain = [(symbol or (dso, ip), ip) for symbol, dso, ip in reversed(frames)]
        self.chain = [(CUT, 0)] if is_cut else [(ALL, 0), *chain]

    def take_chain(self, group: Group, stream: Dict[int, Any], sample: Sequence[int]) -> Any:
        """Take a sample of a group with its call chain. Return the window that it ends, if any."""
        chain, self.chain = self.chain, None
        if chain is None:
            fail(
                "this perf does not tell scripts call chains (call_chain_table): use the perf of "
                "the alt-period series, or perf functions report --children"
            )
        if chain == [(ALL, 0)] and sample[8]:
            chain.append((sample[6] or (sample[5], sample[8]), sample[8]))
        thread = sample[3] if group.per_thread else 0
        is_window = thread in stream and 0 < 2 * sample[15] < group.limit
        window = [sample[15], *group.rest] if is_window else None
        last = stream.setdefault(thread, Calls(group))
        last.take(sample[3], chain, window)
        return window

    def throttle(self, _time: int, sample_id: int, *_: int) -> None:
        """A leader was throttled: its members may count on meanwhile, so the interval at hand is
        of no use. This holds for all its threads: the record's need not be the one meant."""
        self.throttled += 1
        for last in self.streams.get(sample_id, {}).values():
            last.place = BROKEN

    def unthrottle(self, *record: int) -> None:
        """Throttling ends in the interval that has the members' surplus."""
        self.throttle(*record)
        self.throttled -= 1

    def lost(self, time: int, sample_id: int, number: int, *_: int) -> None:
        """Records were lost: of which streams is not known, for streams share buffers. The
        kernel tells where it happens (with the id of an event), and perf record tells the
        samples among them once more at the end (without id and time)."""
        if sample_id:
            self.lost_records += number
        else:
            self.lost_samples += number
        if not time:
            return
        for last in self.last_samples():
            last.place = BROKEN

    def last_samples(self) -> Iterable[Any]:
        """Return the last samples of all streams."""
        return (last for stream in self.streams.values() for last in stream.values())

    def enter_block(self, time: int) -> Tuple[int, int]:
        """A sample is in another block than the one before. Return when it begins and ends."""
        for group in self.groups.values():
            group.end_block()
        return self.blocks.enter(time)

    def sample_handler(self) -> Callable[..., None]:
        """Return the handler of samples. perf calls it for each member of a group with a count,
        leader first: millions of times, hence one closure and no attribute but a Group's."""
        slots, groups, streams = self.slots, self.groups, self.streams
        children = self.children
        window: Optional[Window] = None  # the counts of the current group sample
        begin = end = 0  # of the block at hand

        def handler(*sample: int) -> None:  # pylint: disable=too-many-branches
            # 1: event, 3: thread, 5: DSO, 6: symbol, 8: ip, 9: time, 15: count, 25: sample's id
            nonlocal window, begin, end
            slot = slots.get(sample[1])
            if slot:
                if window is not None:
                    try:
                        window[slot] += sample[15]
                    except IndexError:  # perf has learnt of the member just now
                        window += [0] * (slot - len(window)) + [sample[15]]
                return
            window = None
            group = groups.get(sample[1])
            if group is None:
                if slot is None:
                    fail(
                        "this perf does not tell scripts the attributes of events (attr_table): "
                        "use the perf of the alt-period series"
                    )
                return

            time = sample[9] & COUNT  # perf passes it as a signed number
            if not begin <= time < end:
                begin, end = self.enter_block(time)
            stream = streams[sample[25]]
            if children:
                window = self.take_chain(group, stream, sample)
                return
            symbol = sample[6] or (sample[5], sample[8])
            place = (sample[3], symbol) if sample[8] else NOWHERE
            thread = sample[3] if group.per_thread else 0
            last = stream.get(thread)
            if last is None:
                stream[thread] = Last(place, group)
                group.open_window(symbol)
                return
            before, last.place = last.place, place
            count = sample[15]
            if not 0 < 2 * count < group.limit:
                if last.symbol is not None:
                    last.end_run()
                if group.share == "auto":
                    group.opening.append(symbol)
                    if before is not BROKEN:
                        window = [count & COUNT, *group.rest]
                        group.long.keep(None, window)
            elif before == place and place is not NOWHERE:
                window = [count, *group.rest]
                group.matched.keep(symbol, window)
                if last.symbol == symbol:
                    last.go_on(window)
                else:
                    last.begin_run(symbol, window)
            else:
                window = last.end_unmatched(symbol, before, sample[3], count)

        return handler

    def function_of(self, symbol: SymbolKey) -> Function:
        """Return the function of a symbol or address, with its address."""
        if symbol in (ALL, CUT):
            return Function(symbol, "")
        if isinstance(symbol, tuple):
            return Function("", self.dsos.get(symbol[0], ""), symbol[1] & (1 << 64) - 1)
        dso, start, end, name = self.symbols[symbol]
        is_invented = start == end and name == "unknown"
        return Function("" if is_invented else name, self.dsos.get(dso, ""), start & (1 << 64) - 1)

    def table(self) -> Table:
        """Return the sums of all groups and functions."""
        for last in self.last_samples():
            last.end_run()
        for group in self.groups.values():
            group.end()
        modes: Dict[Events, set] = defaultdict(set)
        for group in self.groups.values():
            modes[group.key].add(group.share)
        results = [
            (self.function_of(symbol), group, sums)
            for group in self.groups.values()
            for symbol, sums in group.results(modes[group.key] == {"none"})
        ]
        addresses: Dict[Tuple[str, str], set] = {}
        for function, _, _ in results:
            addresses.setdefault(function[:2], set()).add(function.address)
        table = Table("children" if self.children else "symbol")
        table.groups = [group.info() for group in self.groups.values()]
        for group in self.groups.values():
            if group.share == "auto":
                table.add_intervals(group.key, group.intervals())
        for cpu, cores in self.cpus.items():
            cores -= {0}
            if cpu:
                name = printable(cpu)
                table.cpus |= {f"{name} pmu={core}" for core in cores} if len(cores) > 1 else {name}
        table.lost = min(max(self.lost_records, self.lost_samples), COUNT)
        table.throttled = self.throttled
        for function, group, sums in results:
            if function.symbol and len(addresses[function[:2]]) == 1:
                function = function._replace(address=None)
            table.add(function, group.key, sums)
        return table


def fail(message: str) -> NoReturn:
    """End perf with an error message."""
    sys.exit(f"generate-function-metrics: {printable(message)}")


def find_column(wanted: Optional[str], by: str, metrics: Sequence[Metric]) -> str:
    """The column to sort by: the wanted one, or the share of a leader, or the samples."""
    columns = {metric.column.lower(): metric.column for metric in metrics}
    columns["symbol"] = "symbol"
    if wanted == by:
        return "symbol"
    if wanted is None:
        wanted = next((name for name in ("%cy", "%clk", "%tclk") if name in columns), "#")
    if wanted.lower() not in columns:
        fail(f"no column {wanted} in this recording, there are: {' '.join(columns.values())}")
    return columns[wanted.lower()]


Row = Tuple[Function, Dict[str, Value]]


def by_name(function: Function) -> Tuple[str, str, int]:
    """Sort key of functions."""
    return function.symbol, function.dso, function.address or 0


def sorted_rows(values: Dict[Function, Dict[str, Value]], column: str) -> List[Row]:
    """Return rows in the order of a column: largest first, undefined last, equal ones by name."""
    rows = sorted(values.items(), key=lambda row: by_name(row[0]))
    if column == "symbol":
        return rows

    def order(row: Row) -> Tuple[bool, float]:
        value = row[1][column].value
        return (value is None, -(value or 0))

    return sorted(rows, key=order)


def labels(functions: Iterable[Function]) -> Dict[Function, str]:
    """The names to print, with the DSO where the same symbol is in several: its short name if
    this is enough, else the path."""

    def short(path: str) -> str:
        return path.rsplit("/", 1)[-1]

    dsos: Dict[str, Set[str]] = {}
    for function in functions:
        dsos.setdefault(function.symbol, set()).add(function.dso)
    shorts = {symbol: Counter(map(short, paths)) for symbol, paths in dsos.items()}
    result = {}
    for function in functions:
        name = short(function.dso)
        if shorts[function.symbol][name] > 1 and function.symbol:
            name = function.dso
        label = function._replace(dso=name).label(len(dsos[function.symbol]) > 1)
        result[function] = printable(label)
    return result


def printable(text: str) -> str:
    """A text that no terminal obeys: \\xNN stands for each byte of a control character and for each
    byte that is not UTF-8."""
    return re.sub(
        "[\x00-\x1f\x7f-\x9f]",
        lambda control: "".join(f"\\x{byte:02x}" for byte in control[0].encode()),
        unicode(text),
    )


def unicode(text: str) -> str:
    """A text in which \\xNN stands for each byte that is not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def shorten(text: str, width: int = 60) -> str:
    """Cut the middle out of a long text."""
    half = (width - 3) // 2
    return text if len(text) <= width else f"{text[:half]}...{text[-half:]}"


def print_table(
    rows: Sequence[Row],
    names: Dict[Function, str],
    metrics: Sequence[Metric],
    out: TextIO,
    by: str = "symbol",
) -> None:
    """Print aligned columns."""

    def text(metric: Metric, value: Value) -> str:
        if value.value is None:
            return "-"
        # beyond this a double has no more digits
        form = "e" if metric.per and abs(value.value) >= 1e16 else "f"
        return f"{value.value:.{metric.digits}{form}}"

    lines = [[by, *(metric.column for metric in metrics)]]
    for function, values in rows:
        lines.append(
            [shorten(names[function]), *(text(metric, values[metric.column]) for metric in metrics)]
        )
    widths = [max(map(len, column)) for column in zip(*lines)]
    for name, *cells in lines:
        print(
            name.ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(cells, widths[1:])),
            file=out,
        )


def print_csv(
    rows: Sequence[Row], metrics: Sequence[Metric], out: TextIO, by: str = "symbol"
) -> None:
    """Print comma-separated values with all their digits."""
    writer = csv.writer(out, lineterminator="\n")
    name = printable if out.isatty() else str
    writer.writerow([by, "path" if by == "dso" else "dso", *(metric.column for metric in metrics)])
    for function, values in rows:
        cells = (values[metric.column].value for metric in metrics)
        writer.writerow(
            [
                name(function._replace(dso="").label(False))
                if function.symbol
                else function.name_of_address(),
                name(function.dso),
                *("-" if cell is None else cell for cell in cells),
            ]
        )


JSON_VERSION = 1
EXACT = (1 << 53) - 1  # the largest whole number that a double, and so JavaScript, never rounds


def exact(item: Any) -> Any:
    """Return a number for JSON: a string of its digits if JavaScript would round it."""
    if isinstance(item, dict):
        return {key: exact(value) for key, value in item.items()}
    if isinstance(item, list):
        return [*map(exact, item)]
    return str(item) if isinstance(item, int) and item > EXACT else item


def json_products(events: Events, products: Dict[Tuple[str, str], int]) -> Dict[str, int]:
    """The products of each two events, by their names in order."""
    return {unicode("*".join(pair)): products.get(pair, 0) for pair in pairs_of(events)}


def json_values(events: Events, sums: Sums) -> Dict[str, Any]:
    """Return the counts of windows in a group."""
    return {
        "totals": {unicode(event): sums[event] for event in events},
        "products": json_products(events, sums.products),
    }


def json_sums(events: Events, sums: Sums) -> Dict[str, Any]:
    """The sums of a function in a group."""
    begun = sums.begun or Sums()
    return {
        "events": [unicode(event) for event in events],
        "opened": sums.opened,
        "opened_squares": sums.opened_squares,
        "opened_all": sums.opened_all,
        "samples": sums.samples,
        "matched": sums.matched,
        "bursts": sums.bursts,
        "blocks": sums.blocks,
        "discarded": sums.discarded,
        **json_values(events, sums),
        "block_products": json_products(events, sums.block_products),
        "begun": {
            "windows": begun.matched,
            "bursts": begun.bursts,
            "blocks": begun.blocks,
            **json_values(events, begun),
            "block_products": json_products(events, begun.block_products),
        },
    }


def json_intervals(events: Events, intervals: Intervals) -> Dict[str, Any]:
    """The sums of all intervals of a group."""
    windows, long = intervals
    return {
        "events": [unicode(event) for event in events],
        "windows": {"number": windows.matched, **json_values(events, windows)},
        "long": {"number": long.matched, "blocks": long.blocks, **json_values(events, long)},
    }


def json_metric(value: Optional[float]) -> Optional[float]:
    """A value of a metric: a double, as in `perf functions`, which may be too large for one."""
    return value if value is None or abs(value) <= EXACT else float(value)


def json_column(metric: Metric) -> Dict[str, Any]:
    """Return a column as an object."""
    kind = "share" if metric.per == TOTAL else "ratio" if metric.per else "count"
    return {
        "name": unicode(metric.column),
        "meaning": unicode(metric.meaning),
        "kind": kind,
        "digits": metric.digits,
    }


def json_function(function: Function, values: Dict[str, Value], groups: Groups) -> Dict[str, Any]:
    """A row."""
    return {
        "symbol": unicode(function.symbol),
        "dso": unicode(function.dso),
        "address": exact(function.address),
        "sums": [exact(json_sums(*item)) for item in sorted(groups.items())],
        "metrics": {unicode(name): json_metric(value.value) for name, value in values.items()},
        "errors": {
            unicode(name): json_metric(value.error)
            for name, value in values.items()
            if value.error is not None
        },
    }


def print_json(rows: Sequence[Row], table: Table, out: TextIO) -> None:
    """Print an object: groups as recorded, functions with sums, metrics and standard errors. Its
    members are those of tools/perf/Documentation/perf-functions.schema.json."""
    groups = [
        {**group._asdict(), "events": [unicode(event) for event in group.events]}
        for group in table.recorded()
    ]
    json.dump(
        {
            "version": JSON_VERSION,
            "program": "generate-function-metrics",
            "by": table.by,
            "inline": table.inline,
            "groups": exact(groups),
            "throttled": exact(table.throttled),
            "lost": exact(table.lost),
            "intervals": [exact(json_intervals(*item)) for item in sorted(table.intervals.items())],
            "columns": [json_column(metric) for metric in table.metrics()],
            "functions": [
                json_function(function, values, table.functions[function])
                for function, values in rows
            ],
        },
        out,
        indent=1,
        allow_nan=False,
    )
    print(file=out)


SUMS_FILE = "perf-function-sums {}"  # first line of a sums file, with its version
VERSIONS = (3, 4)
BY = ("symbol", "dso", "comm", "thread", "cpu", "srcline", "callchain", "cgroup")


def is_by(by: str) -> bool:
    """Return whether rows can be by this: keys, each once, separated by commas; or children."""
    keys = by.split(",")
    return by == "children" or (len(set(keys)) == len(keys) and set(keys) <= set(BY))


def pairs_of(events: Events) -> List[Tuple[str, str]]:
    """The pairs of events in the order of a sums file, the lower name first."""
    return [
        (min(one, other), max(one, other))
        for place, one in enumerate(events)
        for other in events[place:]
    ]


def values_of(events: Events, sums: Sums) -> List[int]:
    """Totals and products in the order of a sums file."""
    return [
        *(sums[event] for event in events),
        *(sums.products.get(pair, 0) for pair in pairs_of(events)),
    ]


def values_with_blocks(events: Events, sums: Sums) -> List[int]:
    """The same, and the products of blocks."""
    return [
        *values_of(events, sums),
        *(sums.block_products.get(pair, 0) for pair in pairs_of(events)),
    ]


def write_sums(table: Table, out: TextIO) -> None:
    """Write a sums file."""

    def line(*fields: Any) -> None:
        escaped = (
            str(value).replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n")
            for value in fields
        )
        print(*escaped, sep="\t", file=out)

    print(SUMS_FILE.format(VERSIONS[-1]), file=out)
    line("by", table.by, int(table.inline))
    line("lost", table.lost)
    line("throttled", table.throttled)
    if table.lacks_children:
        line("lacks-children")
    for cpu in sorted(table.cpus):
        line("cpu", cpu)
    for events, infos in groupby(table.recorded(), key=attrgetter("events")):
        for info in infos:
            line("group", info.share, *map(int, info[2:]), *events)
        if events in table.auto():
            windows, long = table.intervals.get(events) or Intervals(Sums(), Sums())
            line("windows", windows.matched, *values_of(events, windows))
            line("long", long.matched, long.blocks, *values_of(events, long))
        for function, groups in sorted(table.functions.items(), key=lambda item: by_name(item[0])):
            sums = groups.get(events)
            if sums:
                begun = sums.begun or Sums()
                line(
                    "sums",
                    function.symbol,
                    function.dso,
                    "-" if function.address is None else f"{function.address:#x}",
                    sums.opened,
                    sums.samples,
                    sums.matched,
                    sums.bursts,
                    sums.blocks,
                    begun.matched,
                    begun.bursts,
                    begun.blocks,
                    *values_with_blocks(events, sums),
                    *values_with_blocks(events, begun),
                    sums.opened_squares,
                    sums.opened_all,
                )
    line("end")


def write_sums_file(table: Table, path: str) -> None:
    """Write a sums file. An existing one is replaced when the new one is complete."""
    path = os.path.realpath(path)
    # for example, a pipe is written to
    is_file = not os.path.exists(path) or os.path.isfile(path)
    new = f"{path}.{os.getpid()}.new" if is_file else path
    try:
        with open(new, "w", encoding="utf-8", errors="surrogateescape") as file:
            write_sums(table, file)
        os.replace(new, path)
    except OSError as error:
        if is_file and os.path.exists(new):
            os.unlink(new)
        fail(f"{path}: {error.strerror}: name another file")


def unescape(name: str) -> str:
    """The text of a field."""
    return re.sub(r"\\(.)", lambda match: {"t": "\t", "n": "\n"}.get(match[1], match[1]), name)


def natural(text: str, most: int = COUNT, digits: str = "[0-9]{1,58}", base: int = 10) -> int:
    """A number in a sums file. Raises ValueError if it is none, or too large."""
    if not re.fullmatch(digits, text) or int(text, base) > most:
        raise ValueError
    return int(text, base)


def sums_of_values(
    events: Events, windows: int, bursts: int, blocks: int, values: Sequence[int]
) -> Sums:
    """The sums of so many windows, all of them matched. Raises ValueError if none can have them."""
    pairs = pairs_of(events)
    products, of_blocks = values[len(events) :], values[len(events) + len(pairs) :]
    if len(of_blocks) != len(pairs) or max(bursts, blocks) > windows:
        raise ValueError
    for number, counts in ((bursts, [windows]), (windows, values), (blocks, of_blocks)):
        if not number and any(counts):
            raise ValueError
    return Sums(
        windows,
        windows,
        0,
        dict(zip(events, values)),
        dict(zip(pairs, products)),
        bursts,
        blocks=blocks,
        block_products=dict(zip(pairs, of_blocks)),
    )


def numbers_of_old_line(events: Events, numbers: Sequence[str]) -> List[int]:
    """The numbers of a line of version 3 as those of version 4. No window begins in the function.
    The recording is one block, unless a total is larger than those of one recording."""
    samples, matched = map(natural, numbers[:2])
    values = [natural(number, SUM) for number in numbers[2:]]
    totals = values[: len(events)]
    is_block = matched > 0 and max(totals) <= COUNT
    of_block = [
        one * other * is_block for place, one in enumerate(totals) for other in totals[place:]
    ]
    none = [0] * (len(values) + len(of_block))
    return [0, samples, matched, matched, int(is_block), 0, 0, 0, *values, *of_block, *none, 0, 0]


def sums_of_line(events: Events, fields: Sequence[str], version: int, is_none: bool) -> Sums:
    """The sums in the numbers of a line. Raises ValueError if they are not as many as it takes."""
    if version < 4:
        numbers = numbers_of_old_line(events, fields)
    else:
        numbers = [
            natural(number, SUM if place >= 8 else COUNT) for place, number in enumerate(fields)
        ]
    opened, samples, matched, bursts, blocks, begun, begun_bursts, begun_blocks, *values = numbers
    half = len(values) // 2 - 1
    sums = sums_of_values(events, matched, bursts, blocks, values[:half])
    inside = matched
    if is_none:
        inside = begun = matched if version < 4 else begun
        others = Sums(matched=begun)
        if begun > matched or begun_bursts or begun_blocks or any(values[half:-2]):
            raise ValueError
    else:
        others = sums_of_values(events, begun, begun_bursts, begun_blocks, values[half:-2])
    if matched > samples or (not opened and any(values[-2:])):
        raise ValueError
    sums.samples, sums.discarded, sums.opened = samples, samples - inside, opened
    sums.opened_squares, sums.opened_all = values[-2:]
    sums.begun = others if begun else None
    return sums


def intervals_of_line(events: Events, number: str, fields: Sequence[str]) -> Sums:
    """The sums of so many intervals. Raises ValueError if none can have them."""
    intervals, values = natural(number), [natural(field, SUM) for field in fields]
    of_blocks = [0] * len(pairs_of(events))
    return sums_of_values(events, intervals, intervals, 0, [*values, *of_blocks])


def group_of_line(fields: Sequence[str], version: int) -> GroupInfo:
    """A group. Raises ValueError if the line is not one."""
    if version < 4:
        fields = [*fields[:2], "0", fields[2], "0", *fields[3:]]
    share, period, freq, alternate, count, jitter, inherit, *events = fields
    if not 0 < len(events) <= MOST_EVENTS or share not in SHARES[version < 4 :]:
        raise ValueError
    if inherit not in ("0", "1"):
        raise ValueError
    return GroupInfo(
        tuple(events),
        share,
        *map(natural, (period, freq, alternate)),
        *(natural(number, (1 << 32) - 1) for number in (count, jitter)),
        inherit == "1",
    )


def read_fact(table: Table, word: str, fields: List[str]) -> None:
    """A line that tells of the whole recording. Raises ValueError if it is none."""
    if word == "by" and len(fields) == 2 and is_by(fields[0]) and fields[1] in ("0", "1"):
        table.by, table.inline = fields[0], fields[1] == "1"
    elif word in ("lost", "throttled") and len(fields) == 1:
        setattr(table, word, natural(fields[0]))
    elif word == "lacks-children" and not fields:
        table.lacks_children = True
    elif word == "cpu" and len(fields) == 1:
        table.cpus.add(printable(fields[0]))
    else:
        raise ValueError


def read_sums(lines: Sequence[str], version: int) -> Table:
    """The table in the lines of a sums file, without the first. Raises ValueError for one that
    is none."""
    table = Table()
    events: Events = ()
    word, windows = "", Sums()
    for line in lines:
        if "\0" in line:
            raise ValueError
        before = word
        word, *fields = map(unescape, line.split("\t"))
        if word == "sums" and events:
            symbol, dso, address, *numbers = fields
            at = None if address == "-" else natural(address, COUNT, "0x[0-9a-f]{1,16}", 16)
            modes = {group.share for group in table.groups if group.events == events}
            sums = sums_of_line(events, numbers, version, modes == {"none"})
            if (sums.opened or (sums.begun and "none" not in modes)) and events not in table.auto():
                raise ValueError
            table.add(Function(symbol, dso, at), events, sums)
        elif word == "group" and len(fields) > (5 if version < 4 else 7):
            table.groups.append(group_of_line(fields, version))
            events = table.groups[-1].events
        elif (word, before) == ("windows", "group") and events in table.auto() - {*table.intervals}:
            number, *values = fields
            windows = intervals_of_line(events, number, values)
        elif (word, before) == ("long", "windows"):
            number, blocks, *values = fields
            long = intervals_of_line(events, number, values)
            long.blocks = natural(blocks)
            table.intervals[events] = Intervals(windows, long)
        else:
            read_fact(table, word, fields)
    if not table.groups or table.auto() != {*table.intervals}:
        raise ValueError
    return table


def read_sums_file(path: str) -> Table:
    """The table in a sums file; - is stdin."""
    try:
        source = 0 if path == "-" else path
        with open(source, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            first, *lines = file.read().split("\n")
        version = next((one for one in VERSIONS if first == SUMS_FILE.format(one)), 0)
        if not version:
            begins = " or ".join(map(SUMS_FILE.format, VERSIONS))
            fail(f"{path}: not a sums file that this program reads, which begins with {begins}")
        if lines[-2:] != ["end", ""]:
            fail(f"{path}: the sums file is cut short: write it again")
        return read_sums(lines[:-2], version)
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except (ValueError, TypeError):
        fail(f"{path}: not a sums file: write it with --write-sums")


def add_up(tables: Sequence[Tuple[str, Table]]) -> Table:
    """The sum of tables, which have names."""
    result = tables[0][1]
    for name, table in tables[1:]:
        if (table.by, table.inline) != (result.by, result.inline):
            fail(
                f"{name}: cannot be added to the inputs before it: its rows are of another kind: "
                "report it separately"
            )
        # a group without samples is not in a table
        less, more = sorted((table.kinds(), result.kinds()), key=len)
        if not less.items() <= more.items():
            fail(
                f"{name}: cannot be added to the inputs before it: other events or share modes: "
                "report it separately"
            )
        result += table
        if not result.fits:
            fail(
                f"{name}: cannot be added to the inputs before it: the sums become too large: "
                "report it separately"
            )
    if not all(sums.fits for sums in result.total().values()):
        fail("the sums of all functions are too large to add up: report fewer files at once")
    return result


def notes(table: Table) -> List[str]:
    """Print notes about the recording for the reader of the table."""
    texts = []
    if len(table.cpus) > 1:
        one, other = sorted(table.cpus)[:2]
        texts.append(
            f"counts of several kinds of CPUs ({one}, {other}) are added up "
            "(record one kind: taskset -c)"
        )
    periods: Dict[str, set] = {}
    for group in table.groups:
        periods.setdefault(group.events[0], set()).add(
            (
                group.sample_period,
                group.sample_freq,
                # in share mode auto shares come from samples, so windows do not matter
                0 if group.share == "auto" else group.alternative_sample_period,
            )
        )
    if any(len(different) > 1 for different in periods.values()):
        texts.append(
            "recorded with several periods: functions weigh more where periods are shorter "
            "(report the recordings of each period separately)"
        )
    if table.was_mixed:
        texts.append(
            "share modes auto and discard are added up: the shares are those of discard "
            "(use one mode for all)"
        )
    if table.lacks_children:
        texts.append("recorded without new threads and children: these did not inherit the events")
    if table.lost:
        texts.append(
            f"{table.lost} records were lost: windows over a loss are discarded "
            "(larger buffers: perf record -m)"
        )
    if table.throttled:
        texts.append(
            f"throttled {table.throttled} times: the windows around it are discarded "
            "(use longer periods, or raise sysctl kernel.perf_event_max_sample_rate)"
        )
    if table.by == "children":
        roots = [pooled(table.functions.get(Function(name, ""), {})).samples for name in (ALL, CUT)]
        if roots[1]:
            texts.append(
                f"{roots[1]} of {sum(roots)} windows have longer call chains than were recorded: "
                "they are in the row [cut] only (record with --call-graph fp; beyond 127 frames "
                "raise sysctl kernel.perf_event_max_stack and record with --call-graph fp,N)"
            )
        return texts
    samples = {True: 0, False: 0}
    for function, groups in table.functions.items():
        samples[not function.symbol] += pooled(groups).samples
    percent = 100 * samples[True] / (sum(samples.values()) or 1)
    if percent >= 10:
        texts.append(
            f"{percent:.0f} % of the window samples have no symbol: install debug symbols, "
            "or name their folder with --symfs"
        )
    return texts


def recorded_table(collector: Collector) -> Table:
    """The table of a recording."""
    if not collector.groups:
        if collector.ignored:
            fail(
                "the recording has no counter group: record with perf functions record, or "
                "-e '{cycles/period=999700,alt-period=300/,instructions,branch-misses}:uS'"
            )
        fail("the recording has no samples: record for longer, or with a shorter period")
    if collector.ignored:
        print(
            "generate-function-metrics: ignored, because they are tracepoints or in no counter "
            f"group: {printable(', '.join(collector.ignored))}",
            file=sys.stderr,
        )
    return collector.table()


def report(table: Table, options: argparse.Namespace, out: TextIO) -> None:
    """Print the table in the form that the options ask for."""
    if not table.has_window() and not options.write_sums:
        fail("the recording has no window: record for longer, or with a shorter period")
    metrics = table.metrics()
    column = find_column(options.sort, table.by, metrics)
    rows = sorted_rows(table.values(metrics), column)[: options.limit]
    for note in notes(table):
        print(f"generate-function-metrics: {note}", file=sys.stderr)
    if options.write_sums == "-":
        write_sums(table, out)
    elif options.write_sums:
        write_sums_file(table, options.write_sums)
    elif options.csv:
        print_csv(rows, metrics, out, table.by)
    elif options.json:
        print_json(rows, table, out)
    else:
        print_table(rows, labels(table.functions), metrics, out, table.by)


def main(options: argparse.Namespace, collector: Optional["Collector"]) -> None:
    """Add up all inputs and print them, without perf (no collector) or in it."""
    tables = [("the recording", recorded_table(collector))] if collector else []
    for path in options.sums:
        table = read_sums_file(path)
        if options.children and table.by != "children":
            fail(f"{path}: these are sums by {table.by}: leave out --children, or write them anew")
        if options.share == "discard":
            table.discard()
        shares = table.shares()
        if options.share != "auto" and shares - {options.share}:
            fail(
                f"{path}: these are sums of --share {' and '.join(sorted(shares))}: "
                "leave --share out, or write them anew from the recording"
            )
        tables.append((path, table))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends perf silently
    try:
        # not through sys.stdout, which would try again to write the rest
        with open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False) as out:
            report(add_up(tables), options, out)
    except OSError as error:
        fail(f"cannot write the table: {error.strerror}: send the output elsewhere")


EXAMPLES = """
examples:
  perf record -T --sample-cpu \\
    -e '{cycles/period=999700,alt-period=300/,instructions,branch-misses}:uS' -- COMMAND
  perf script -s generate-function-metrics.py
  perf script -s generate-function-metrics.py -- --sort CPI --limit 10
  perf script -s generate-function-metrics.py -- -s none --csv > functions.csv

share modes:
  discard  a window counts if the sample before it is in the same function and thread
  none     every window counts for the function at its end
  auto     for groups with an alternate period as discard, but shares are those of the samples
           that end a long interval, and if many windows leave a function its rates are those
           of all windows that begin in it; none for others

columns (those whose events were recorded; - is a division by zero):
"""


def parse_options(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""

    def limit(text: str) -> int:
        if int(text) < 1:
            raise ValueError
        return int(text)

    columns = "".join(
        f"  {metric.column:7} {metric.meaning}: {metric.formula}\n" for metric in METRICS
    )
    columns += "  NAME/KI any other event per 1000 instructions: NAME / instructions x 1000\n"
    parser = argparse.ArgumentParser(
        prog="generate-function-metrics",
        description="Metrics per function from the windows of a recording of counter groups.",
        epilog=EXAMPLES + columns,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "-s",
        "--share",
        choices=("auto", "none", "discard"),
        default="auto",
        help="which windows count (default: auto)",
    )
    parser.add_argument(
        "--children",
        action="store_true",
        help="functions with all that they call, from recordings with --call-graph fp",
    )
    parser.add_argument(
        "--sort", metavar="COLUMN", help="sort by this column, or symbol (default: %%CY, else #)"
    )
    parser.add_argument("--limit", metavar="N", type=limit, help="print N functions only")
    parser.add_argument(
        "--sums",
        metavar="FILE",
        nargs="+",
        default=[],
        help="add the sums in these files; perf is not needed to read them",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="comma-separated, all digits")
    form.add_argument(
        "-j",
        "--json",
        action="store_true",
        help="an object with the sums, the metrics and their standard errors",
    )
    form.add_argument(
        "--write-sums",
        metavar="FILE",
        help="write the sums to this file, - for stdout, instead of printing metrics",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    OPTIONS = parse_options(sys.argv[1:])
    IN_PERF = "perf_trace_context" in sys.builtin_module_names
    if OPTIONS.children and OPTIONS.share == "none":
        fail("--children does not go with --share none: leave out one of them")
    if not IN_PERF:
        if not OPTIONS.sums:
            fail(
                "perf runs this script: perf script -s generate-function-metrics.py -- [OPTIONS], "
                "or give it --sums FILE..."
            )
        main(OPTIONS, None)
        sys.exit()
    gc.disable()  # there are no cycles, but millions of lists to search
    COLLECTOR = Collector(OPTIONS.share, OPTIONS.children)

    # The handlers that perf looks for, in the order of its calls
    perf_db_export_mode = True
    evsel_table = COLLECTOR.evsel_table
    attr_table = COLLECTOR.attr_table
    dso_table = COLLECTOR.dso_table
    symbol_table = COLLECTOR.symbol_table
    if OPTIONS.children:
        call_chain_table = COLLECTOR.call_chain_table
    sample_table = COLLECTOR.sample_table
    throttle = COLLECTOR.throttle
    unthrottle = COLLECTOR.unthrottle
    lost = COLLECTOR.lost

    def trace_end() -> None:
        """All samples were seen."""
        main(OPTIONS, COLLECTOR)
