# SPDX-License-Identifier: GPL-2.0
"""Random recordings, and the sums that a table of them must have.

A recording is simulated interval by interval. The sums follow from the simulation by the rules of
the specification, without the code of either collector.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.harness import perfwrite as pw
from tests.harness.env import must

# Functions have 64 bytes, four lines of 16; `twice` is in both libraries, and twice in the first.
LIBRARIES = {
    "one": ("alpha", "beta", "twice", "gamma"),
    "two": ("delta", "twice", "epsilon", "[u8; 4]::zeta"),
}
LOADED = {"one": 0x10000000, "two": 0x20000000}
EVENTS = (
    ("cycles", 0, 0),
    ("instructions", 0, 1),
    ("branch-misses", 0, 5),
    ("page-faults", 1, 2),
    ("armv8_pmuv3_0/l1d_cache/", 8, 4),
    ("r001b", 4, 0x1B),
    ("dTLB-load-misses:u", 3, 0x10003),
    ("branches", 0, 4),
    ("my,own\tname", 8, 0x3777),
)
BY = (
    *("dso", "comm", "thread", "process", "cpu", "pmu", "srcline", "callchain", "cgroup"),
    "children",
)
PLACELESS = {"comm", "thread", "process", "cpu", "pmu", "cgroup"}  # keys without an address
SEVERAL = (  # combinations of keys
    "comm,symbol",
    "symbol,thread",
    "cpu,dso,comm",
    "thread,callchain",
    "srcline,symbol",
    "symbol,dso,comm,thread,process,cpu,pmu,srcline,callchain,cgroup",
)
CGROUPS = {1: "/", 21: "/system.slice/a;b.service", 2**40: ""}  # paths by id; one is not known
ALL, CUT = ("[all]", 0), ("[cut]", 0)  # the rows below all frames
MAX_STACK = 4  # frames, where chains are cut
NOWHERE = ("", 0)  # the page of address 0, which Linux 7.3 writes for samples in the kernel
LINE = "nop;" * 16 + "\n"


class Libraries:
    """ELF files with the functions above; after those of `one` follows a second, local `twice`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for name, functions in LIBRARIES.items():
            self.build(name, functions)
        self.functions = self.symbols()
        self.lines = self.source_lines()

    def path(self, name: str) -> Path:
        return self.folder / f"lib{name}.so"

    def build(self, name: str, functions: Sequence[str]) -> None:
        sources = [self.folder / f"{name}.s"]
        sources[0].write_text(
            ".text\n"
            + "".join(
                f'.globl "{function}"\n.type "{function}", @function\n'
                f'"{function}":\n{4 * LINE}.size "{function}", 64\n'
                for function in functions
            )
        )
        if name == "one":
            sources.append(self.folder / "local.s")
            sources[-1].write_text(
                f'.text\n.type twice, @function\n"twice":\n{4 * LINE}.size twice, 64\n{4 * LINE}'
            )
        options = ("-g", "-shared", "-nostdlib", "-Wl,--build-id=none")
        must("gcc", *options, "-o", self.path(name), *sources)

    def symbols(self) -> dict[tuple[str, int], str]:
        """The name that nm gives to each function, by (library, address)."""
        found = {}
        for name in LIBRARIES:
            for line in must("nm", "--defined-only", self.path(name)).splitlines():
                address, kind, symbol = line.split(maxsplit=2)
                if kind in "tT":
                    found[name, int(address, 16)] = symbol
        return found

    def source_lines(self) -> dict[tuple[str, int], str]:
        """File and line as they were written, by (library, address of 16 bytes)."""
        found = {}
        last = max(address for library, address in self.functions if library == "one")
        for (library, start), function in self.functions.items():
            # the second `twice`, which follows all others, is local
            file = "local.s" if (library, start) == ("one", last) else f"{library}.s"
            text = (self.folder / file).read_text().splitlines()
            first = text.index(f'"{function}":') + 2  # lines count from 1
            found.update(
                {(library, start + 16 * line): f"{file}:{first + line}" for line in range(4)}
            )
        return found


class Counted(NamedTuple):
    """The counts of a sample by event, in the interval that it ends."""

    group: int  # its place in the recording
    counts: Counter


def values_of(events: Sequence[str], bursts: Sequence[Sequence[Counted]]) -> dict:
    """The number of bursts, the totals, and the products."""
    windows = [window for burst in bursts for window in burst]
    return {
        "bursts": len(bursts),
        "totals": {event: sum(one.counts[event] for one in windows) for event in events},
        "products": products_of(events, bursts),
    }


@dataclass
class Stream:
    """The simulation's knowledge of a leader on a thread or CPU."""

    values: dict[int, int] = field(default_factory=dict)  # last recorded values by id
    pending: Counter = field(default_factory=Counter)  # counted, but not yet in a sample, by slot
    last: tuple | None = None  # thread, function, page and callers of the last sample
    windows: int = 0  # since the last long interval
    burst: list | None = None  # the windows of the current burst, up to the last sample
    run: tuple | None = None  # a function, and the latest windows, which all began in it
    frames: list = field(default_factory=list)  # of the last sample: function and address
    bursts: dict = field(default_factory=dict)  # the current burst by function on the stack
    broken: bool = False


@dataclass
class Task:
    number: int
    pid: int
    tid: int
    comm: str


class Simulation:
    """A random recording, and the sums that a table of it must have."""

    def __init__(
        self,
        seed: int,
        libraries: Libraries,
        events: int = 0,
        by: str = "symbol",
    ) -> None:
        """events: make one group with this number of events, the same for every seed; by: the key of
        rows.
        """
        self.by, self.keys = by, by.split(",")
        self.cgroup = 0  # of the current sample
        self.random = random.Random(seed)
        self.libraries = libraries
        self.nr_cpus = self.random.choice((1, 2, 4))
        self.inherit = self.random.random() < 0.6
        # perf of Linux 6.12 sets attr.inherit for CPUs, too, where nothing is inherited
        self.any_thread = not self.inherit and self.random.random() < 0.5
        self.share = self.random.choice(("auto", "none", "discard"))
        self.next_id = 1
        self.max_stack = 0
        if events:
            self.share = "auto"
            self.groups = [
                self.make_group(
                    EVENTS[:events],
                    pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD | pw.IDENTIFIER | pw.READ,
                    pw.FORMAT_ID | pw.FORMAT_GROUP,
                    10000,
                    300,
                )
            ]
        else:
            self.groups = self.make_groups()
        self.is_arm = seed % 3 == 1
        self.writer = pw.Writer(
            self.groups,
            cpuid=("", "0x00000000413fd0c1", "GenuineIntel,6,85,4")[seed % 3],
            slots=seed % 2 * 8,
            threads=((), ("0-1", "2,3"), ("0", "1"))[seed // 2 % 3],
        )
        self.time = 1000
        self.numbers = 0
        self.streams: dict[tuple, Stream] = {}
        self.sums: dict[tuple, dict] = {}
        self.weights: dict[tuple, int] = {}  # of the samples in "opened", set by expected()
        # in share mode auto, the intervals that are fully known: windows, and long ones
        self.intervals: tuple[list[Counted], list[Counted]] = ([], [])
        self.rows: dict[tuple, tuple] = {}  # symbol, DSO and address of each row, by its key
        self.called: dict[int, str] = {}  # name of each thread, and below 0 of each process
        self.lost = self.throttled = 0
        self.tasks = [self.new_task(100, 100, "program")]
        self.free: list[int] = []
        self.pages = [*libraries.functions, ("one", None), ("", None), NOWHERE]

    def make_groups(self) -> list[list[pw.Event]]:
        kinds = (
            pw.IP
            | pw.TID
            | pw.TIME
            | pw.READ
            | pw.CPU
            | pw.PERIOD
            | self.random.choice((pw.ID, pw.IDENTIFIER))
        )
        kinds |= (
            pw.CALLCHAIN
            if "callchain" in self.keys or self.by == "children"
            else self.random.choice((0, pw.CALLCHAIN))
        )
        kinds |= pw.SAMPLE_CGROUP if "cgroup" in self.keys else 0
        form = (
            pw.FORMAT_ID
            | pw.FORMAT_GROUP
            | self.random.choice((0, pw.FORMAT_LOST))
            | self.random.choice((0, pw.FORMAT_ENABLED | pw.FORMAT_RUNNING))
        )
        groups = []
        if self.by == "children":
            self.share = self.random.choice(("auto", "discard"))
            self.max_stack = self.random.choice((0, MAX_STACK))
        for _ in range(self.random.choice((1, 1, 2, 3))):
            chosen = [self.random.choice(EVENTS[:2])]
            others = [event for event in EVENTS if event != chosen[0]]
            chosen += self.random.sample(others, self.random.randrange(0, 6))
            if self.random.random() < 0.2:
                chosen.append((f"{chosen[0][0]}:k", *chosen[0][1:]))  # the same in the kernel
            periods = self.random.choice(
                (
                    (10000, 300),
                    (10000, 300, 4),
                    (10000, 0),
                    (300, 0),
                    (999, 998),
                    (5000, 5000),
                    (99, 300, 0, pw.FLAG_FREQ),
                    (99, 300, 3, pw.FLAG_FREQ),
                )
            )
            groups.append(self.make_group(chosen, kinds, form, *periods))
        return groups

    def make_group(
        self,
        chosen: Sequence[tuple],
        kinds: int,
        form: int,
        period: int,
        alternate: int,
        count: int = 0,
        freq: int = 0,
    ) -> list[pw.Event]:
        group = []
        for name, kind, config in chosen:
            ids = list(range(self.next_id, self.next_id + self.nr_cpus))
            self.next_id += self.nr_cpus
            flags = pw.FLAG_EXCLUDE_KERNEL | pw.FLAG_SAMPLE_ID_ALL
            flags |= pw.FLAG_INHERIT if self.inherit or self.any_thread else 0
            flags |= 0 if group else freq
            periods = (0,) * 4 if group else (period, alternate, 5 if alternate else 0, count)
            group.append(
                pw.Event(
                    name,
                    kind,
                    config,
                    ids,
                    *periods,
                    kinds,
                    form,
                    flags,
                    sample_max_stack=self.max_stack,
                )
            )
        return group

    def new_task(self, pid: int, tid: int, comm: str) -> Task:
        self.numbers += 1
        return Task(self.numbers, pid, tid, comm)

    def where(self, task: Task, cpu: int = 0) -> pw.Where:
        self.time += self.random.randrange(1, 100)
        return pw.Where(self.time, task.pid, task.tid, cpu)

    def begin(self) -> None:
        """Writes the program and its mappings."""
        task = self.tasks[0]
        if self.any_thread:
            self.writer.any_thread()
        self.writer.comm(self.where(task), task.comm)
        for number, path in CGROUPS.items() if "cgroup" in self.keys else ():
            if path:
                self.writer.cgroup(self.where(task), number, path)
        for library, base in LOADED.items():
            self.writer.mmap2(self.where(task), base, 0x10000, str(self.libraries.path(library)))

    def fork(self) -> None:
        parent = self.random.choice(self.tasks)
        tid = self.free.pop() if self.free and self.random.random() < 0.5 else 200 + self.numbers
        pid = self.random.choice((parent.pid, tid))
        task = self.new_task(pid, tid, parent.comm)
        self.writer.task(pw.FORK, self.where(task), pw.Where(0, parent.pid, parent.tid))
        self.tasks.append(task)

    def exit(self) -> None:
        """Ends a task without threads, if there is one: perf forgets the maps of a dead process."""
        ready = [
            task
            for task in self.tasks[1:]
            if all(other is task or other.pid != task.tid for other in self.tasks)
        ]
        if not ready:
            return
        task = self.random.choice(ready)
        self.tasks.remove(task)
        self.writer.task(pw.EXIT, self.where(task), task_of(task))
        self.free.append(task.tid)

    def interrupt(self) -> None:
        """Writes a throttle record of a leader, or a loss."""
        cpu = self.random.randrange(self.nr_cpus)
        where = self.where(self.random.choice(self.tasks), cpu)
        leader = self.random.choice(self.groups)[0].ids[cpu]
        if self.random.random() < 0.6:
            kind = self.random.choice((pw.THROTTLE, pw.UNTHROTTLE))
            self.writer.throttle(kind, where, leader)
            self.throttled += kind == pw.THROTTLE
            hit = [stream for key, stream in self.streams.items() if key[0] == leader]
        else:
            number = self.random.randrange(1, 9)
            self.writer.lost(where, leader, number)
            self.lost += number
            hit = list(self.streams.values())
        for stream in hit:
            stream.broken = True

    def sample(self) -> None:
        """Ends one interval of a group."""
        group = self.random.choice(self.groups)
        leader = group[0]
        task, cpu = self.random.choice(self.tasks), self.random.randrange(self.nr_cpus)
        # tasks move from cgroup to cgroup
        self.cgroup = list(CGROUPS)[(task.number + self.time // 5000) % len(CGROUPS)]
        stream = self.streams.setdefault(
            (leader.ids[cpu], task.number if self.inherit else 0), Stream()
        )
        alternates = alternating(leader)
        is_due = stream.last and stream.windows < max(leader.alternative_sample_count, 1)
        if alternates and is_due:
            nominal = leader.alternative_sample_period
        elif leader.flags & pw.FLAG_FREQ:
            nominal = self.random.choice((1, 10000, 1000000))  # the kernel adapts it
        else:
            nominal = leader.sample_period
        # with jitter the first interval has any length
        least = nominal * 3 // 4 if stream.last else 1
        counts = [self.random.randrange(least, nominal * 3 // 2 + 1) or 1]
        counts += [
            self.random.choice((0, self.random.randrange(500), self.random.randrange(2**40)))
            for _ in group[1:]
        ]
        # mostly stay in the function of the last sample
        page = (
            stream.last[2]
            if stream.last and self.random.random() < 0.6
            else self.random.choice(self.pages)
        )
        callers = (
            stream.last[3] if stream.last and self.random.random() < 0.6 else self.make_callers()
        )
        is_long = alternates and 2 * counts[0] >= total_of_periods(leader)
        if self.by == "children":
            self.sample_children(group, stream, cpu, task, counts, is_long)
            return
        chain = [(*place, self.address_in(*place)) for place in (page, *callers)]
        self.write_sample(group, stream, cpu, task, counts, [address for *_, address in chain])
        counted = self._counted(group, counts)
        function = self.row(task, cpu, chain)
        # address 0 identifies neither a function nor a DSO
        known = page != NOWHERE or not set(self.keys) - PLACELESS
        stream.burst = self._count(group, stream, function, task, counted, is_long, known)
        if stream.last and not stream.broken and self._share_of(group) == "auto":
            self.intervals[is_long].append(counted)
        stream.windows = 0 if is_long or not stream.last else stream.windows + 1
        stream.last = (task.number, function if known else None, page, callers)
        stream.broken = False

    def sample_children(
        self,
        group: list[pw.Event],
        stream: Stream,
        cpu: int,
        task: Task,
        counts: list[int],
        is_long: bool,
    ) -> None:
        """Ends an interval whose stack has grown and shrunk; finds who was on it all the time.

        A frame is a function with the address in it. It is still the same call if all frames below
        it are unchanged. Its own address may differ, as its code goes on.
        """
        before, was_cut = stream.frames, stream.frames[:1] == [(CUT, 0)]
        frames = [] if was_cut else list(before[1 : self.random.randrange(6) + 1])
        if frames and self.random.random() < 0.5:
            place = self.random.choice([p for p in self.pages if p != NOWHERE])
            (frames[-1],) = [(place, self.address_in(*place))]
        for _ in range(self.random.randrange(4)):
            place = self.random.choice(self.pages)
            frames.append((place, self.address_in(*place)))
        # a sample itself may be at address 0, its callers never are
        frames = [frame for frame in frames[:-1] if frame[1]] + frames[-1:]
        frames = frames or [(place := self.pages[0], self.address_in(*place))]
        addresses = [address for _, address in reversed(frames)]
        if self.max_stack and len(addresses) >= self.max_stack:
            frames = [(CUT, 0)]
        else:
            frames = [(ALL, 0), *(frame for frame in frames if frame[1])]
        addresses = addresses[: self.max_stack or None]
        self.write_sample(group, stream, cpu, task, counts, addresses)

        common = set()
        if stream.last and stream.last[0] == task.number and not stream.broken:
            common = common_calls(self.function_of, frames, before)
        bursts = {}
        if stream.last and not is_long:
            counted = self._counted(group, counts)
            for function in {self.function_of(*place, address) for place, address in frames}:
                self.rows[function] = function
                sums = self.sums.setdefault((function, self.key(group)), empty_sums())
                sums["samples"] += 1
                if function in common:
                    burst = stream.bursts.get(function)
                    if burst is None:
                        burst = []
                        sums["bursts"].append(burst)
                    burst.append(counted)
                    bursts[function] = burst
        stream.bursts = bursts if alternating(group[0]) else {}
        stream.frames = frames
        stream.windows = 0 if is_long or not stream.last else stream.windows + 1
        stream.last = (task.number, None, self.pages[0], [])
        stream.broken = False

    def _counted(self, group: list[pw.Event], counts: list[int]) -> Counted:
        """The counts of the sample that was written last."""
        names = self.names(group)
        return Counted(self.groups.index(group), Counter(dict(zip(names, counts))))

    def _share_of(self, group: list[pw.Event]) -> str:
        """The share mode of a group in the table."""
        if self.by == "children":
            return "discard"
        return "none" if self.share == "auto" and not alternating(group[0]) else self.share

    def make_callers(self) -> list[tuple]:
        """Up to two functions."""
        return (
            self.random.choices(self.pages, k=self.random.randrange(3))
            if "callchain" in self.keys
            else []
        )

    def address_in(self, library: str, start: int | None) -> int:
        """An address in a function, in a library outside of functions, or outside of libraries."""
        if (library, start) == NOWHERE:
            return 0
        if not library:
            return 0x70000000 + 16 * self.random.randrange(3)
        return LOADED[library] + (
            0x8000 + 16 * self.random.randrange(3)
            if start is None
            else start + self.random.randrange(64)
        )

    def write_sample(
        self,
        group: list[pw.Event],
        stream: Stream,
        cpu: int,
        task: Task,
        counts: list[int],
        chain: list[int],
    ) -> None:
        """Writes counts as values; a member left out now and then counts in the next sample."""
        values = []
        for slot, event in enumerate(group):
            number = event.ids[cpu]
            if slot and self.random.random() < 0.03:
                stream.pending[slot] += counts[slot]
                counts[slot] = 0
                continue
            counts[slot] += stream.pending.pop(slot, 0)
            stream.values[number] = stream.values.get(number, 0) + counts[slot]
            values.append((number, stream.values[number]))
        callers = chain[1:]
        where = self.where(task, cpu)
        self.writer.sample(
            group[0], where, chain[0], counts[0], values, callers, cgroup=self.cgroup
        )

    def function_of(self, library: str, start: int | None, ip: int) -> tuple:
        """Symbol, DSO and address of a function, as in the table."""
        if (library, start) in (ALL, CUT):
            return (library, "", 0)
        if not library:
            return ("", "", ip)
        path = str(self.libraries.path(library))
        if start is None:
            return ("", path, ip - LOADED[library])
        return (self.libraries.functions[library, start], path, start)

    def row(self, task: Task, cpu: int, chain: list[tuple]) -> tuple:
        """The key of the row of this sample; notes its name."""
        frames = tuple(self.function_of(*place) for place in chain)
        (library, _, ip), function = chain[0], frames[0]
        path = Path(function[1])
        source = (library, ip - LOADED.get(library, 0) & ~15)
        name = ";".join(
            symbol.replace(";", ":") or f"{address:#x} [{Path(dso).name or 'unknown'}]"
            for symbol, dso, address in frames
        )
        first = next(other for other in self.tasks if other.tid == task.pid)
        rows = {
            "symbol": (function, function),
            "dso": (path, (path.name or "[unknown]", function[1], 0)),
            "comm": (task.comm, (task.comm, "", 0)),
            "thread": (task.number, (f"{task.tid}:{task.comm}", "", 0)),
            "process": (-first.number, (f"{first.tid}:{first.comm}", "", 0)),
            "cpu": (cpu, (f"{cpu:03}", "", 0)),
            "pmu": ("cpu", ("cpu", "", 0)),  # leaders do not name their PMU
            "cgroup": (self.cgroup, (CGROUPS[self.cgroup] or "[unknown]", "", 0)),
            "srcline": (
                (line := self.libraries.lines.get(source) or unknown_line(path, function[2])),
                (line, "", 0),
            ),
            "callchain": (frames, (name, *function[1:])),
        }
        # all rows of a thread or process have its last name
        for key in "thread", "process":
            self.called[rows[key][0]] = rows[key][1][0]
        if len(self.keys) == 1:
            identity, row = rows[self.by]
            self.rows[identity] = row
            return identity
        identity = tuple(rows[key][0] for key in self.keys)
        parts = [
            rows[key][0] if key in ("thread", "process") else part_of(key, *rows[key][1])
            for key in self.keys
        ]
        code = [rows[key][1] for key in self.keys if rows[key][1][1:] != ("", 0)]
        address = max((at for _, _, at in code), default=0)
        self.rows[identity] = (tuple(parts), code[0][1] if code else "", address)
        return identity

    def _named(self, row: tuple) -> tuple:
        """The name of a row, once the last names of all threads are known."""
        if isinstance(row[0], str):
            return row
        parts = (self.called.get(part, part) for part in row[0])
        return (";".join(parts), *row[1:])

    def _count(
        self,
        group: list[pw.Event],
        stream: Stream,
        function: tuple,
        task: Task,
        window: Counted,
        is_long: bool,
        known: bool,
    ) -> list | None:
        """Counts the interval by the specification's rules. Returns the burst that it is in."""
        share = self._share_of(group)
        is_window = not is_long and stream.last is not None
        self._count_begun(group, stream, task, window, is_window and share == "auto")
        if not (is_window or share == "auto"):
            return None
        sums = self.sums.setdefault((function, self.key(group)), empty_sums())
        if not is_window:
            sums["opened"].append(window)
            return None
        sums["samples"] += 1
        if stream.broken:
            return None
        same = known and stream.last[:2] == (task.number, function)
        if not (same or share == "none"):
            return None
        sums["inside"] += same
        burst = stream.burst if same else None
        if burst is None:
            burst = []
            sums["bursts"].append(burst)
        burst.append(window)
        return burst if alternating(group[0]) else None

    def _count_begun(
        self, group: list[pw.Event], stream: Stream, task: Task, window: Counted, counts: bool
    ) -> None:
        """Counts a window where it begins, if that function is known and wanted."""
        run, stream.run = stream.run, None
        if not counts or stream.broken or stream.last[0] != task.number:
            return
        begin = stream.last[1]
        if begin is None:
            return
        if run is None or run[0] != begin:
            run = (begin, [])
            sums = self.sums.setdefault((begin, self.key(group)), empty_sums())
            sums["begun"].append(run[1])
        run[1].append(window)
        stream.run = run

    def names(self, group: list[pw.Event]) -> list[str]:
        """Names of the events of a group in the table."""
        known = {
            "armv8_pmuv3_0/l1d_cache/": "cache-references",
            "r001b": "inst_spec" if self.is_arm else "r001b",
            "dTLB-load-misses:u": "dTLB-load-misses",
        }
        return [known.get(event.name, event.name) for event in group]

    def key(self, group: list[pw.Event]) -> tuple[str, ...]:
        first, *rest = self.names(group)
        return (first, *sorted(rest))

    def run(self, number: int, path: Path) -> None:
        """Writes a recording with this number of samples.

        The records of each round are shuffled.
        """
        self.begin()
        first = len(self.writer.records)
        for _ in range(number):
            what = self.random.random()
            if what < 0.02 and len(self.tasks) < 9:
                self.fork()
            elif what < 0.03 and len(self.tasks) > 1:
                self.exit()
            elif what < 0.05:
                self.interrupt()
            elif what < 0.06:
                task = self.random.choice(self.tasks)
                task.comm = self.random.choice(("program", "sh", "my worker"))
                self.writer.comm(self.where(task), task.comm)
            self.sample()
        records, self.writer.records = self.writer.records[first:], self.writer.records[:first]
        for at in range(0, len(records), 50):
            chunk = records[at : at + 50]
            self.random.shuffle(chunk)
            self.writer.records += chunk
            self.writer.finished_round()
        self.writer.write(path)

    def expected(self) -> dict[tuple, dict]:
        """The expected sums of the JSON object by function and group."""
        addresses: dict[tuple, set] = {}
        both: dict[tuple, dict] = {}
        weights: Counter[tuple] = Counter()
        for (identity, events), sums in self.sums.items():
            function = self._named(self.rows[identity])
            addresses.setdefault(function[:2], set()).add(function[2])
            matched = inside = sum(map(len, sums["bursts"]))
            begun = sum(map(len, sums["begun"]))
            shares = {self._share_of(group) for group in self.groups if self.key(group) == events}
            if shares == {"none"}:
                begun = inside = sums["inside"]
            told = {
                "opened": len(sums["opened"]),
                "samples": sums["samples"],
                "matched": matched,
                "discarded": sums["samples"] - inside,
                **values_of(events, sums["bursts"]),
                "begun": {
                    "windows": begun,
                    **values_of(events, sums["begun"]),
                },
            }
            both[function, events] = added(both.get((function, events), {}), told)
            weights[function, events] += sum(map(self._weight, sums["opened"]))
        keys = {
            (function, events): (
                (*function[:2], function[2] if not has_name(function, addresses) else None),
                events,
            )
            for function, events in both
        }
        self.weights = {keys[key]: weight for key, weight in weights.items()}
        return {keys[key]: {"events": list(key[1]), **told} for key, told in both.items()}

    def _weight(self, sample: Counted) -> int:
        """The events of the leader that a sample at the end of a long period stands for."""
        group = self.groups[sample.group]
        leader = group[0]
        return (
            sample.counts[self.names(group)[0]]
            if leader.flags & pw.FLAG_FREQ
            else leader.sample_period
        )

    def expected_intervals(self) -> list[dict]:
        """The expected sums of all intervals in the JSON object."""
        told = []
        for events in sorted({*map(self.key, self.groups)}):
            same = [
                number
                for number, group in enumerate(self.groups)
                if self.key(group) == events and self._share_of(group) == "auto"
            ]
            if not same:
                continue
            windows, long = (
                values_of(events, [[one] for one in some if one.group in same])
                for some in self.intervals
            )
            told.append(
                {
                    "events": list(events),
                    "windows": {
                        "number": windows["bursts"],
                        "totals": windows["totals"],
                        "products": windows["products"],
                    },
                    "long": {
                        "number": long["bursts"],
                        "totals": long["totals"],
                        "products": long["products"],
                    },
                }
            )
        return told


def part_of(key: str, symbol: str, dso: str, address: int) -> str:
    """The part of a row's name from one of several keys; a ; may only be between frames."""
    symbol = symbol or f"{address:#x} [{Path(dso).name or 'unknown'}]"
    return symbol if key == "callchain" else symbol.replace(";", ":")


def has_name(function: tuple, addresses: dict[tuple, set]) -> bool:
    """Returns whether no other function has its symbol and DSO."""
    return bool(function[0]) and len(addresses[function[:2]]) == 1


def added(one: dict, other: dict) -> dict:
    """Adds two sums, number by number."""
    return {
        key: added(one.get(key, {}), value) if isinstance(value, dict) else one.get(key, 0) + value
        for key, value in other.items()
    }


def common_calls(
    function_of: Callable[..., tuple], frames: Sequence[tuple], before: Sequence[tuple]
) -> set[tuple]:
    """The functions of the calls that are in both stacks."""
    found = set()
    for (place, address), (other_place, other_address) in zip(frames, before):
        function = function_of(*place, address)
        if function == function_of(*other_place, other_address):
            found.add(function)
        if (place, address) != (other_place, other_address):
            break
    return found


def empty_sums() -> dict:
    """The sums of a function: samples that open windows, the number of windows, matched windows by
    burst, and windows that begin in it by run.
    """
    return {"opened": [], "samples": 0, "bursts": [], "begun": [], "inside": 0}


def products_of(events: Sequence[str], bursts: Sequence[Sequence[Counted]]) -> dict[str, int]:
    """The products of bursts; each counts as one window."""
    sums = [sum((window.counts for window in burst), Counter()) for burst in bursts]
    return {
        f"{a}*{b}": sum(burst[a] * burst[b] for burst in sums)
        for a in sorted(events)
        for b in sorted(events)
        if a <= b
    }


def unknown_line(path: Path, address: int) -> str:
    """The text that perf prints in place of an unknown line."""
    return f"{path.name}[{address:x}]" if path.name else "??:0"


def alternating(leader: pw.Event) -> bool:
    """Returns whether windows differ from long intervals: equal periods are plain, with jitter."""
    return leader.alternative_sample_period not in (0, leader.sample_period)


def total_of_periods(leader: pw.Event) -> int:
    """The sum of both periods; an interval of at least half of it is long.

    At a frequency, four windows stand for the long period.
    """
    window = leader.alternative_sample_period
    return window + (4 * window if leader.flags & pw.FLAG_FREQ else leader.sample_period)


def task_of(task: Task) -> pw.Where:
    return pw.Where(0, task.pid, task.tid)


def recorded(path: Path, seed: int, libraries: Libraries, **options) -> Path:
    """Writes a recording of 1000 samples; the options are those of Simulation."""
    Simulation(seed, libraries, **options).run(1000, path)
    return path
