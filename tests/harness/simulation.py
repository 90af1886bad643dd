# SPDX-License-Identifier: GPL-2.0
"""Random recordings, and the sums that a table of them must have.

A recording is simulated interval by interval. The sums follow from the simulation by the rules of
the specification, without the code of either collector.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from pathlib import Path

from tests.harness import perfdata as pw
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
    "cpu,dso,comm",
    "thread,callchain",
    "srcline,symbol",
    "symbol,dso,comm,thread,process,cpu,pmu,srcline,callchain,cgroup",
)
CGROUPS = {1: "/", 21: "/system.slice/a;b.service", 2**40: ""}  # paths by id; one is not known
ALL = ("[all]", 0)  # the row below all frames
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


@dataclass
class Stream:
    """The simulation's knowledge of a leader on a thread or CPU."""

    values: dict[int, int] = field(default_factory=dict)  # last recorded values by id
    pending: Counter = field(default_factory=Counter)  # counted, but not yet in a sample, by slot
    thread: int = 0  # of the last sample, 0 before the first
    page: tuple = ()  # where it was
    callers: list = field(default_factory=list)
    frames: list = field(default_factory=list)  # of its stack: place and address
    rows: tuple = ()  # that it is known to be in
    windows: int = 0  # since the last long interval
    burst: tuple = ((), ())  # the current one: its rows, and windows
    broken: bool = False


@dataclass
class Sums:
    """Of the windows of a row: those that begin and end in it, by burst, and their ends."""

    bursts: list[list[Counter]] = field(default_factory=list)
    begun: int = 0
    ended: int = 0

    def told(self, events: Sequence[str]) -> dict:
        """As tests/harness/sumsfile.py reads them."""
        sums = [sum(burst, Counter()) for burst in self.bursts]
        pairs = combinations_with_replacement(sorted(events), 2)
        return {
            "source": "windows",
            "events": [*events],
            "number": sum(map(len, self.bursts)),
            "independent": len(self.bursts),
            "begun": self.begun,
            "ended": self.ended,
            "totals": {event: sum(one[event] for one in sums) for event in events},
            "products": {f"{a}*{b}": sum(one[a] * one[b] for one in sums) for a, b in pairs},
        }


@dataclass
class Task:
    number: int
    pid: int
    tid: int
    comm: str


class Simulation:
    """A random recording, and the sums that a table of it must have."""

    def __init__(
        self, seed: int, libraries: Libraries, events: int = 0, by: str = "symbol"
    ) -> None:
        """events: make one group of so many, the same for every seed; by: the key of rows."""
        self.by, self.keys = by, by.split(",")
        self.cgroup = 0  # of the current sample
        self.random = random.Random(seed)
        self.libraries = libraries
        self.nr_cpus = self.random.choice((1, 2, 4))
        self.inherit = self.random.random() < 0.6
        # perf of Linux 6.12 sets attr.inherit for CPUs, too, where nothing is inherited
        self.any_thread = not self.inherit and self.random.random() < 0.5
        self.next_id = 1
        if events:
            self.groups = [
                self._make_group(
                    EVENTS[:events],
                    pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD | pw.IDENTIFIER | pw.READ,
                    pw.FORMAT_ID | pw.FORMAT_GROUP,
                    10000,
                    300,
                )
            ]
        else:
            self.groups = self._make_groups()
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
        self.sums: defaultdict[tuple, Sums] = defaultdict(Sums)  # by row and events
        # the intervals that are fully known, by whether they are long, and by events
        self.intervals: defaultdict[tuple, Sums] = defaultdict(Sums)
        self.samples: Counter = Counter()  # of leaders, by row and event
        self.rows: dict[tuple, tuple] = {}  # symbol, DSO and address of each row, by its key
        self.called: dict[int, str] = {}  # name of each thread, and below 0 of each process
        self.lost = self.throttled = 0
        self.tasks = [self.new_task(100, 100, "program")]
        self.free: list[int] = []
        self.pages = [*libraries.functions, ("one", None), ("", None), NOWHERE]

    def _make_groups(self) -> list[list[pw.Event]]:
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
            groups.append(self._make_group(chosen, kinds, form, *periods))
        return groups

    def _make_group(
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
            mode = pw.FLAG_EXCLUDE_USER if name.endswith(":k") else pw.FLAG_EXCLUDE_KERNEL
            flags = mode | pw.FLAG_SAMPLE_ID_ALL
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
            self.writer.thread_map()
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
        is_due = stream.thread and stream.windows < max(leader.alternative_sample_count, 1)
        if alternates and is_due:
            nominal = leader.alternative_sample_period
        elif leader.flags & pw.FLAG_FREQ:
            nominal = self.random.choice((1, 10000, 1000000))  # the kernel adapts it
        else:
            nominal = leader.sample_period
        # with jitter the first interval has any length
        least = nominal * 3 // 4 if stream.thread else 1
        counts = [self.random.randrange(least, nominal * 3 // 2 + 1) or 1]
        counts += [
            self.random.choice((0, self.random.randrange(500), self.random.randrange(2**20)))
            for _ in group[1:]
        ]
        if self.by == "children":
            frames = self._stack(stream)
            addresses = [address for _, address in reversed(frames)]
            frames = [(ALL, 0), *(frame for frame in frames if frame[1])]
            rows = self._functions(frames)
            self.rows.update(zip(rows, rows))
            known, common = rows, ()  # windows do not count
        else:
            # mostly stay in the function of the last sample
            if not stream.thread or self.random.random() >= 0.6:
                stream.page = self.random.choice(self.pages)
            if not stream.thread or self.random.random() >= 0.6:
                stream.callers = self._make_callers()
            frames = [(place, self.address_in(*place)) for place in (stream.page, *stream.callers)]
            addresses = [address for _, address in frames]
            rows = (self.row(task, cpu, frames),)
            # address 0 identifies neither a function nor a DSO
            known = rows if stream.page != NOWHERE or not set(self.keys) - PLACELESS else ()
            common = rows if known == stream.rows == rows else ()
        self.write_sample(group, stream, cpu, task, counts, addresses)
        counted = Counter()
        for event, count in zip(self.names(group), counts):
            counted[event] += count
        is_long = alternates and 2 * counts[0] >= total_of_periods(leader)
        self._count(group, stream, task.number, counted, is_long, rows, common)
        stream.windows = 0 if is_long or not stream.thread else stream.windows + 1
        stream.thread, stream.rows, stream.frames = task.number, known, frames
        stream.broken = False

    def _stack(self, stream: Stream) -> list[tuple]:
        """Lets a stack shrink and grow. A frame is a function with the address in it.

        It is still the same call if all frames below it are unchanged. Its own address may differ,
        as its code goes on.
        """
        frames = stream.frames[1 : self.random.randrange(6) + 1]
        if frames and self.random.random() < 0.5:
            place = self.random.choice([p for p in self.pages if p != NOWHERE])
            frames[-1] = (place, self.address_in(*place))
        for _ in range(self.random.randrange(4)):
            place = self.random.choice(self.pages)
            frames.append((place, self.address_in(*place)))
        # a sample itself may be at address 0, its callers never are
        frames = [frame for frame in frames[:-1] if frame[1]] + frames[-1:]
        return frames or [(place := self.pages[0], self.address_in(*place))]

    def _functions(self, frames: Sequence[tuple]) -> tuple:
        """The functions of frames, each once."""
        return tuple(dict.fromkeys(self._function_of(*place, address) for place, address in frames))

    def _count(
        self,
        group: list[pw.Event],
        stream: Stream,
        thread: int,
        counts: Counter,
        is_long: bool,
        rows: tuple,
        common: tuple,
    ) -> None:
        """Counts an interval by the specification's rules.

        rows: where it ends; common: those that it does not leave, if it is one of this thread.
        """
        key = self.key(group)
        self.samples.update((row, key[0]) for row in rows)
        if self.by == "children":
            return
        is_whole = stream.thread and not stream.broken
        is_same = is_whole and stream.thread == thread
        if is_whole:
            self.intervals[is_long, key].bursts.append([counts])
        (before, burst), stream.burst = stream.burst, ((), [])
        if is_long or not stream.thread:
            return
        for row in rows:
            self.sums[row, key].ended += 1
        if not is_same:
            return
        for row in stream.rows:
            self.sums[row, key].begun += 1
        if before != common:
            burst = []
            for row in common:
                self.sums[row, key].bursts.append(burst)
        burst.append(counts)
        if alternating(group[0]):
            stream.burst = common, burst

    def _make_callers(self) -> list[tuple]:
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

    def _function_of(self, library: str, start: int | None, ip: int) -> tuple:
        """Symbol, DSO and address of a function, as in the table."""
        if (library, start) == ALL:
            return (library, "", 0)
        if not library:
            return ("", "", ip)
        path = str(self.libraries.path(library))
        if start is None:
            return ("", path, ip - LOADED[library])
        return (self.libraries.functions[library, start], path, start)

    def row(self, task: Task, cpu: int, chain: list[tuple]) -> tuple:
        """The key of the row of this sample; notes its name."""
        frames = tuple(self._function_of(*place, address) for place, address in chain)
        ((library, _), ip), function = chain[0], frames[0]
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

    def names(self, group: list[pw.Event]) -> list[str]:
        """Names of the events of a group in the table."""
        known = {
            "armv8_pmuv3_0/l1d_cache/": "cache-references",
            "r001b": "inst_spec" if self.is_arm else "r001b",
        }
        names = (event.name.removesuffix(":k").removesuffix(":u") for event in group)
        return [known.get(name, name) for name in names]

    def key(self, group: list[pw.Event]) -> tuple[str, ...]:
        first, *rest = self.names(group)
        return (first, *sorted({*rest} - {first}))

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
        """The expected sums of windows by row, source and events."""
        both: defaultdict[tuple, Sums] = defaultdict(Sums)
        for (identity, events), sums in self.sums.items():
            one = both[self._named(self.rows[identity]), events]
            one.bursts += sums.bursts
            one.begun += sums.begun
            one.ended += sums.ended
        named = self._known_by()
        return {
            (named(row), "windows", events): sums.told(events)
            for (row, events), sums in both.items()
        }

    def expected_samples(self) -> dict[tuple, int]:
        """The expected numbers of the leaders' samples by row and event."""
        named, found = self._known_by(), Counter()
        for (identity, event), number in self.samples.items():
            found[named(self._named(self.rows[identity])), event] += number
        return found

    def counted(self) -> dict[str, float]:
        """What leaders have counted; each of the sets that one leads has counted it."""
        counted: Counter = Counter()
        for group in self.groups:
            for (number, _), stream in self.streams.items():
                if number in group[0].ids:
                    counted[self.key(group)] += stream.values[number]
        found: dict[str, list[int]] = {}
        for key, number in counted.items():
            found.setdefault(key[0], []).append(number)
        return {event: sum(numbers) / len(numbers) for event, numbers in found.items()}

    def _known_by(self) -> Callable[[tuple], tuple]:
        """Returns what leaves out the address of a row whose name says enough."""
        rows = {self._named(self.rows[identity]) for identity, _ in self.samples}
        alike = Counter(row[:2] for row in rows)
        return lambda row: (*row[:2], row[2] if not row[0] or alike[row[:2]] > 1 else None)

    def expected_intervals(self, events: Sequence[str]) -> dict[str, dict]:
        """The expected sums of all intervals of a set."""
        found = {}
        for is_long, kind in enumerate(("windows", "longs")):
            found[kind] = self.intervals[bool(is_long), (*events,)].told(events)
            del found[kind]["begun"], found[kind]["ended"]
        # nobody asks how much long intervals vary
        found["longs"]["products"] = dict.fromkeys(found["longs"]["products"], 0)
        return found


def part_of(key: str, symbol: str, dso: str, address: int) -> str:
    """The part of a row's name from one of several keys; a ; may only be between frames."""
    symbol = symbol or f"{address:#x} [{Path(dso).name or 'unknown'}]"
    return symbol if key == "callchain" else symbol.replace(";", ":")


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
