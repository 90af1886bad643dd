# SPDX-License-Identifier: GPL-2.0
"""Measures a store of a fleet: sums of a week of hourly recordings, and questions about it.

The sums are synthetic, by cgroup, those of the last day by cgroup and function, too. Each host has
sums of its own, and those of an hour are a multiple of them. So it is known what all add up to:
an answer that differs from that, as perf reads it, fails.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from random import Random

from bench.guest import OUT
from bench.hosts import Synthetic
from bench.markdown import prose
from tests.harness import fleet, servers
from tests.harness.env import PERF, TOP, must

sys.path.insert(0, str(TOP / "report"))
from functions_report import store  # noqa: E402 pylint: disable=import-error,wrong-import-position

TITLE = "Questions to a store with a week of sums"
HOSTS, DAYS, HOURS = 200, 7, 24
COMMON, SERVICES, OF_A_HOST = 12, 150, 18  # cgroups of all hosts, of some, and how many of these
FUNCTIONS = 10  # of a cgroup
TOP_N, RUNS, GOAL = 10, 5, 1.0
START = datetime(2026, 11, 2, tzinfo=timezone.utc)
SCALE = 10_000  # of 2,500 windows
LAST_DAY = (DAYS - 1) * HOURS  # its first hour
BOTH = "cgroup,symbol"
CPUS = "0x00000000410fd0c0", "0x00000000410fd400"
DATA = OUT / "week"
REPORT = TOP / "report/functions-report"

MORE_PROFILES = """
insert into perf_functions.profile (build, host, time, rows, kind, lost, throttled)
select build, host, %s, rows, kind, %s * lost, throttled from perf_functions.profile
where host = %s and time = %s and rows = %s returning id
"""
MORE_SUMS = """
insert into perf_functions.sums
select b.profile, events, function, array(select factor * number from unnest(numbers) number)
from perf_functions.sums s join (values {}) b (profile, first, factor) on b.first = s.profile
"""


class Host(Synthetic):
    """Sums of an hour of a host by cgroup, or by cgroup and function."""

    def __init__(self, number: int, names: list[str]) -> None:
        # pylint: disable=super-init-not-called # there is no code
        self.random, self.intervals, self.lost, self.throttled = Random(number), [], number % 3, 0
        self.places, self.rows = list(range(len(names))), names
        self.cpu = CPUS[number % len(CPUS)]
        self.make()
        self.numbers = fleet.Host.sums(self)
        self.every = self.all_intervals()


def cgroups_of(number: int) -> list[str]:
    """The cgroups of a host."""
    some = Random(number).sample(range(SERVICES), OF_A_HOST)
    return [f"/system.slice/unit{place}.service" for place in range(COMMON)] + [
        f"/services.slice/service{place}.service" for place in sorted(some)
    ]


def factor(number: int, hour: int) -> int:
    """The multiple of a host's own sums in an hour, which has as many windows as a busy hour."""
    return SCALE * (1 if hour in (0, LAST_DAY) else 1 + (7 * number + 5 * hour) % 9)


def add(numbers: Iterable[list[int]]) -> list[int]:
    """Adds up lists, number by number."""
    return [sum(each) for each in zip(*numbers)]


def text(by: str, version: bytes, hosts: list[tuple[Host, int]]) -> bytes:
    """The sums file of hosts, each of which counts this many times."""
    rows: dict[str, list[list[int]]] = {}
    for host, times in hosts:
        for place, numbers in host.numbers.items():
            rows.setdefault(host.rows[place], []).append([times * each for each in numbers])
    every = add([times * each for each in host.every] for host, times in hosts)
    of_windows = 1 + len(fleet.EVENTS) + fleet.PAIRS
    group = "group", "auto", fleet.LONG, 0, fleet.WINDOW, 0, 0, 1, *fleet.EVENTS
    lines = [
        ("by", by, 0),
        ("lost", sum(times * host.lost for host, times in hosts)),
        ("throttled", 0),
        *(("cpu", cpu) for cpu in sorted({host.cpu for host, _ in hosts})),
        group,
        ("windows", *every[:of_windows]),
        ("long", *every[of_windows:]),
        *(("sums", name, "", "-", *add(rows[name])) for name in sorted(rows)),
        ("end",),
    ]
    return version + "".join("\t".join(map(str, line)) + "\n" for line in lines).encode()


class Week:
    """The hosts, and the store that they fill."""

    def __init__(self, url: str) -> None:
        self.url = url
        empty = DATA / "version.sums"
        empty.write_text(
            "perf-function-sums 4\nby\tsymbol\t0\ngroup\tdiscard\t1\t0\t1\t0\t0\t0\tx\nend\n"
        )
        self.version = (
            must(PERF, "functions", "report", "--sums", "-", empty).encode().split(b"\n")[0] + b"\n"
        )
        cgroups = [cgroups_of(number) for number in range(HOSTS)]
        self.hosts = {
            "cgroup": [Host(number, names) for number, names in enumerate(cgroups)],
            BOTH: [
                Host(number, [f"{name};f{place}" for name in names for place in range(FUNCTIONS)])
                for number, names in enumerate(cgroups)
            ],
        }

    def put(self, by: str, number: int, hour: int) -> None:
        """Stores what a host has recorded in an hour, as --store does."""
        sums = text(by, self.version, [(self.hosts[by][number], factor(number, hour))])
        store.put(self.url, sums, "v1", f"host{number}", START + timedelta(hours=hour))

    def fill(self) -> None:
        """Stores the hours in order: the first one as hosts do, the others inside the database."""
        for by, first in ("cgroup", 0), (BOTH, LAST_DAY):
            for number in range(HOSTS):
                self.put(by, number, first)
            for hour in range(first + 1, DAYS * HOURS):
                self.copy(by, first, hour)
        self.rows("analyze")  # the server does this by itself after a while

    def copy(self, by: str, first: int, hour: int) -> None:
        """Stores an hour: multiples of the sums of the first hour."""
        with store.database(self.url, writes=True) as cursor:
            cursor.execute(
                "select id, host from perf_functions.profile where time = %s and rows = %s",
                (START + timedelta(hours=first), f"by\t{by}\t0".encode()),
            )
            values = []
            for profile, host in cursor.fetchall():
                number = int(host.removeprefix("host"))
                then, now = (START + timedelta(hours=each) for each in (first, hour))
                times = factor(number, hour) // SCALE
                cursor.execute(MORE_PROFILES, (now, times, host, then, f"by\t{by}\t0".encode()))
                values.append(f"({cursor.fetchone()[0]}, {profile}, {times})")
            cursor.execute(MORE_SUMS.format(", ".join(values)))

    def rows(self, command: str) -> list[tuple]:
        """Returns the rows that a command finds."""
        with store.database(self.url, writes=True) as cursor:
            cursor.execute(command)
            return cursor.fetchall() if cursor.description else []

    def truth(self, by: str, first: int, last: int, hosts: Iterable[int]) -> str:
        """The first rows of the table of these hours and hosts, which perf makes of their sum."""
        path = DATA / "truth.sums"
        parts = [
            (self.hosts[by][number], sum(factor(number, hour) for hour in range(first, last)))
            for number in hosts
        ]
        path.write_bytes(text(by, self.version, parts))
        return must(PERF, "functions", "report", "--limit", TOP_N, path, stderr=subprocess.DEVNULL)

    def ask(self, by: str, *options: object) -> str:
        """The first rows of a table of the store."""
        command = REPORT, "--from", self.url, "--by", by, "--top", TOP_N, *options
        return must(*command, stderr=subprocess.DEVNULL)


def hour_of(hour: int) -> str:
    """A time of the command line."""
    return (START + timedelta(hours=hour)).isoformat()


# the questions: keys, first hour, hour after the last, hosts, options
QUESTIONS = {
    "top cgroups of the week": ("cgroup", 0, DAYS * HOURS, range(HOSTS), ()),
    "... of a week without 9 hours of its first day and 10 of its last one": (
        *("cgroup", 9, DAYS * HOURS - 10, range(HOSTS)),
        ("--since", hour_of(9), "--until", hour_of(DAYS * HOURS - 10)),
    ),
    "... of one host": ("cgroup", 0, DAYS * HOURS, (17,), ("--host", "host17")),
    "top functions of cgroups, of the last day": (BOTH, LAST_DAY, DAYS * HOURS, range(HOSTS), ()),
}


def asked(week: Week) -> dict[str, list[float]]:
    """Seconds of each question, several times. Raises AssertionError if the answer is wrong."""
    seconds: dict[str, list[float]] = {}
    for name, (by, first, last, hosts, options) in QUESTIONS.items():
        truth = week.truth(by, first, last, hosts)
        for _ in range(RUNS):
            start = time.monotonic()
            answer = week.ask(by, *options)
            seconds.setdefault(name, []).append(time.monotonic() - start)
            if answer != truth:
                raise AssertionError(f"{name}: the store says\n{answer}\nthe truth is\n{truth}")
    return seconds


def loaded(week: Week, at_once: int) -> float:
    """Returns how many files this number of loaders store in a second, in place of older ones."""

    def load(number: int) -> None:
        week.put("cgroup", number, LAST_DAY)

    start = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(load, range(HOSTS)))
    return HOSTS / (time.monotonic() - start)


def measure() -> dict:
    """Fills a store and asks it."""
    DATA.mkdir(parents=True, exist_ok=True)
    with servers.postgresql() as url:
        week = Week(url)
        week.fill()
        tables = dict(
            week.rows(
                "select relname::text, pg_total_relation_size(oid) from pg_class "
                "where relnamespace = 'perf_functions'::regnamespace and relkind = 'r'"
            )
        )
        return {
            "processors": len(os.sched_getaffinity(0)),
            "files": dict(
                week.rows(
                    "select convert_from(rows, 'UTF8'), count(*) "
                    "from perf_functions.profile group by 1 order by 1"
                )
            ),
            "rows": week.rows("select count(*) from perf_functions.sums")[0][0],
            "rows of spans": week.rows("select count(*) from perf_functions.span")[0][0],
            "bytes": sum(tables.values()),
            "bytes of spans": tables["span"],
            "seconds": asked(week),
            "loaded": {str(number): loaded(week, number) for number in (1, 2)},
        }


def report(result: dict) -> str:
    """The result as Markdown."""
    about = f"""
        A PostgreSQL store (`functions-report --store`) has the sums of {HOSTS} hosts for {DAYS}
        days: {sum(result['files'].values()):,} files. Each host has stored a file by cgroup for
        each hour, and on the last day also one by cgroup and function. A host has {COMMON} cgroups
        that all hosts have and {OF_A_HOST} of {SERVICES} others, with {FUNCTIONS} functions each.
        The group has {len(fleet.EVENTS)} events. The store takes {result['bytes'] / 1e6:,.0f} MB:
        the sums of the files are {result['rows'] / 1e6:.1f} million rows, and the sums of each hour
        and day over all hosts are {result['rows of spans']:,} rows
        ({result['bytes of spans'] / 1e6:.0f} MB). Each question is a
        `functions-report --from ... --top {TOP_N}`, timed from its start to its end, with the
        server, on {result['processors']} processors. Each answer was equal to the table that perf
        makes from the sum of the files. The goal is a median of {GOAL:.0f} s in {RUNS} runs. The
        computer may have been busy with other work meanwhile.
    """
    lines = [
        prose(about),
        "",
        "| question | median, s | fastest | slowest | |",
        "|---|--:|--:|--:|---|",
    ]
    for name, seconds in result["seconds"].items():
        middle = statistics.median(seconds)
        cells = (f"{each:.2f}" for each in (middle, min(seconds), max(seconds)))
        lines.append(f"| {name} | {' | '.join(cells)} | {'' if middle <= GOAL else 'not '}met |")
    one, two = (result["loaded"][str(number)] for number in (1, 2))
    after = f"""
        One loader replaces {one:.0f} stored files per second, and two at once replace {two:.0f}, on
        a server that does not wait for the disk.
    """
    return "\n".join([*lines, "", prose(after)])
