# SPDX-License-Identifier: GPL-2.0
"""Keeps sums in PostgreSQL, per build, host and time: a continuous profile.

A sums file (perf-functions(1), SUMS FILE) is kept in two parts: the lines whose numbers add up, and
its kind, the other lines. The database adds up files of one kind, perf those of several. What is
true of an event in one file is true in the sum, so the largest of these numbers counts; of the
factors of its sums, that which differs most from 1. Lines are kept as bytes, as they are in the
file, for names have no encoding.
"""

import argparse
import io
import os
import re
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

from . import ReportError, sums
from .database import database
from .table import file_of

VERSION = 3
SCHEMA = f"""
create schema perf_functions;
create table perf_functions.version (version integer not null);
insert into perf_functions.version values ({VERSION});
create table perf_functions.profile (
	id bigint generated always as identity primary key,
	build text not null,
	host text not null,
	time timestamptz not null,
	rows bytea not null, -- the line that says what the rows are: such sums are kept apart
	kind bytea not null,
	unique (build, host, time, rows)
);
create index on perf_functions.profile (host, time);
create index on perf_functions.profile (time);
-- place: how many lines of the kind are before this line; name: its begin up to the numbers
create table perf_functions.sums (
	profile bigint not null references perf_functions.profile on delete cascade,
	place integer not null,
	name bytea not null,
	numbers double precision[] not null
);
create index on perf_functions.sums (profile);
"""
PROFILE = """
insert into perf_functions.profile (build, host, time, rows, kind) values (%s, %s, %s, %s, %s)
on conflict (build, host, time, rows) do update set kind = excluded.kind returning id
"""
ASKED = """
from perf_functions.profile where (%(build)s is null or build = %(build)s)
and (%(host)s is null or host = %(host)s) and (%(rows)s is null or rows = %(rows)s)
and (%(since)s::timestamptz is null or time >= %(since)s)
and (%(until)s::timestamptz is null or time < %(until)s)
"""
FACTOR = 5  # which number of an event's line is SCALE
KINDS = f"select kind {ASKED} group by kind order by min(id)"
TOTALS = f"""
select place, name, array_agg(total order by number) from (
	select place, name, number, case
		when name < 'event' or name >= 'evenu' then sum(value)
		when number = {FACTOR} and 1 - min(value) > max(value) - 1 then min(value)
		else max(value) end as total
	from perf_functions.sums, unnest(numbers) with ordinality as n (value, number)
	where profile in (select id {ASKED} and kind = %(kind)s) group by place, name, number
) t group by place, name
"""
PLACES = f"select distinct build, host, time {ASKED} order by time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this module."""
    group = parser.add_argument_group(
        "store",
        "URL names a PostgreSQL database: postgresql://user@host/database. A time is written "
        "2026-11-20 or 2026-11-20T19:30+01:00; without a zone it is local time. New sums replace "
        "stored sums of the same build, host, time and --by.",
    )
    group.add_argument(
        "--store", metavar="URL", help="store the sums of the inputs in this database"
    )
    group.add_argument(
        "--from",
        dest="source",
        metavar="URL",
        help="read sums from this database instead of inputs; --build, --host, --since and --until "
        "select them",
    )
    group.add_argument("--build", help="the recorded build: a version or a build ID")
    group.add_argument("--host", help="the recorded host (with --store, default: this machine)")
    group.add_argument(
        "--at",
        metavar="T",
        help="time of the recording (default: when the last input was written)",
    )
    group.add_argument("--since", metavar="T", help="from this time on")
    group.add_argument("--until", metavar="T", help="before this time")


def check(args: argparse.Namespace) -> None:
    """Checks times and database before the work begins. Raises ReportError."""
    for text in args.at, args.since, args.until:
        moment(text)
    if args.store:
        with database(args.store, writes=False):
            pass


def check_arguments(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Ends with a message if options contradict each other."""
    if args.store and args.source:
        parser.error("--store writes and --from reads: use them one after the other")
    if args.store and not args.build:
        parser.error("--store needs --build: name what was running, as in --build v1.2")
    if args.source and args.inputs:
        parser.error("--from reads sums from the database, not from files: leave the inputs out")
    for option, name in ("--build", args.build), ("--host", args.host):
        if name and any("\udc80" <= character <= "\udcff" for character in name):
            parser.error(f"{option}: the name is no UTF-8: write it in UTF-8")
    store, source = ("--store", args.store), ("--from", args.source)
    for option, value, *needs in (
        ("--build", args.build, store, source),
        ("--host", args.host, store, source),
        ("--at", args.at, store),
        ("--since", args.since, source),
        ("--until", args.until, source),
    ):
        if value and not any(given for _, given in needs):
            parser.error(f"{option} goes with {' and '.join(name for name, _ in needs)}")


def moment(text: str | None) -> datetime | None:
    """Parses a time of the command line. Raises ReportError."""
    try:
        return datetime.fromisoformat(text).astimezone() if text else None
    except (ValueError, OverflowError):
        raise ReportError(
            f"{text}: no time: write 2026-11-20T19:30, or 2026-11-20T19:30:00+01:00"
        ) from None


def check_schema(cursor, create: bool) -> None:
    """Creates missing tables, and checks that their version is known."""
    # read the catalogue itself, not the session's cache
    there = "select exists (select from pg_namespace where nspname = 'perf_functions')"
    cursor.execute(there)
    if not cursor.fetchone()[0]:
        if not create:
            raise ReportError("nothing has been stored in this database: use --store first")
        # another one may make them
        cursor.execute("select pg_advisory_xact_lock(hashtext('perf_functions'))")
        cursor.execute(there)
        if not cursor.fetchone()[0]:
            cursor.execute(SCHEMA)
    cursor.execute("select version from perf_functions.version")
    version = cursor.fetchone()[0]
    if version != VERSION:
        raise ReportError(
            f"the tables in this database are of version {version}, this program knows {VERSION}: "
            + (
                "use a newer one"
                if version > VERSION
                else "store into a new database, or use an older program"
            )
        )


# words that begin lines with numbers, in their order in the file, and how many words are the name
NUMBERED = {
    **{b"lost": 1, b"throttled": 1, b"event": 2},
    **{b"windows": 1, b"longs": 1, b"late": 1, b"row": 4},
}


def split(text: bytes) -> tuple[bytes, list[tuple[int, bytes, list[bytes]]]]:
    """Splits a sums file into its kind and the lines with numbers: place, name and numbers."""
    kind, rows = [], []
    for line in io.BytesIO(text):  # lines end with \n only
        words = line.rstrip(b"\n").split(b"\t")
        size = NUMBERED.get(words[0])
        if size:
            rows.append((len(kind), b"\t".join(words[:size]), words[size:]))
        else:
            kind.append(line)
    return b"".join(kind), rows


def order(row: tuple) -> tuple[int, int]:
    """Returns the sort key of a line in a file."""
    place, name, _ = row
    return place, [*NUMBERED].index(bytes(name).partition(b"\t")[0])


def join(kind: bytes, rows: list[tuple]) -> bytes:
    """Makes a sums file of its parts."""
    lines: list[list[bytes]] = [[line] for line in io.BytesIO(kind)]
    for place, name, numbers in sorted(rows, key=order):
        words = bytes(name), *(b"%.17g" % number for number in numbers)
        lines[place].insert(-1, b"\t".join(words) + b"\n")
    return b"".join(line for place in lines for line in place)


def put(url: str, text: bytes, build: str, host: str, time: datetime) -> None:
    """Stores a sums file, all of it or nothing. Raises ReportError."""
    kind, rows = split(text)
    by = next(line for line in kind.split(b"\n") if line.startswith(b"by\t"))
    with database(url, writes=True) as cursor:
        check_schema(cursor, create=True)
        cursor.execute(PROFILE, (build, host, time, by, kind))
        profile = cursor.fetchone()[0]
        cursor.execute("delete from perf_functions.sums where profile = %s", (profile,))
        lines = (
            f"{profile}\t{place}\t\\\\x{name.hex()}\t{{{b','.join(numbers).decode()}}}\n"
            for place, name, numbers in rows
        )
        cursor.copy_expert("copy perf_functions.sums from stdin", io.StringIO("".join(lines)))


def stored(cursor) -> str:
    """Describes the stored files for a message."""
    cursor.execute(
        "select count(*), array_agg(distinct build), min(time), max(time) "
        "from perf_functions.profile"
    )
    number, builds, first, last = cursor.fetchone()
    if not number:
        return "there is nothing"
    more = f" and {len(builds) - 5} more" if len(builds) > 5 else ""
    return (
        f"there are builds {', '.join(builds[:5])}{more}, "
        f"from {first.astimezone():%FT%T%z} to {last.astimezone():%FT%T%z}"
    )


def totals(cursor, asked: dict) -> Iterator[bytes]:
    """Returns the requested sums, a sums file for each kind."""
    # to compile the query takes longer than to run it
    cursor.execute("set local jit = off; set local work_mem = '256MB'")
    cursor.execute(KINDS, asked)
    for (kind,) in cursor.fetchall():
        cursor.execute(TOTALS, {**asked, "kind": kind})
        yield join(bytes(kind), cursor.fetchall())


def get(cursor, asked: dict[str, str | bytes | datetime | None], perf: str) -> sums.Part:
    """Returns the sum of all stored files of this build, host, rows and span of time.

    rows is a line of sums files; the span is from `since` on and before `until`. None stands for
    any value. Raises ReportError.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, total in enumerate(totals(cursor, asked)):
            paths.append(Path(folder) / str(number))
            paths[-1].write_bytes(total)
        if not paths:
            words = ", ".join(
                "these rows (--by, --children, --inline)" if name == "rows" else f"{name} {value!s}"
                for name, value in asked.items()
                if value
            )
            raise ReportError(f"nothing is stored for {words or 'this'}; {stored(cursor)}")
        try:
            return sums.merge(perf, paths)  # perf knows what adds up, and the order of lines
        except ValueError as error:
            if not re.search("cannot be added|too large", str(error)):
                raise
            raise ReportError(
                "what is stored does not add up: "
                + re.sub(r"^.*before it: |: report it separately| \(on [^()]*\)$", "", str(error))
                + ": ask for less (--by, --build, --host, --since, --until)"
            ) from None


@contextmanager
def reading(url: str) -> Iterator:
    """A cursor that reads one state of a store, for any number of questions.

    Raises ReportError.
    """
    with database(url, writes=False) as cursor:
        check_schema(cursor, create=False)
        yield cursor


def keep(args: argparse.Namespace, text: bytes) -> None:
    """Stores the sums of these inputs, for --store. Raises ReportError."""
    time = moment(args.at) or datetime.fromtimestamp(
        max(os.stat(file_of(name)).st_mtime for name in args.inputs), timezone.utc
    )
    put(args.store, text, args.build, args.host or socket.gethostname(), time)


def asked_for(args: argparse.Namespace) -> dict[str, str | bytes | datetime | None]:
    """Returns the request of --from. Raises ReportError."""
    by = "children" if args.children else args.by or "symbol"
    rows = (
        f"by\t{by}\t{args.inline:d}".encode() if args.by or args.children or args.inline else None
    )
    return {
        "build": args.build,
        "host": args.host,
        "rows": rows,
        "since": moment(args.since),
        "until": moment(args.until),
    }


def ask(args: argparse.Namespace, perf: str) -> sums.Part:
    """Returns the requested sums, for --from. Raises ReportError."""
    with reading(args.source) as cursor:
        return get(cursor, asked_for(args), perf)


def times_of(cursor, asked: dict) -> list[datetime]:
    """Returns the requested times that are stored."""
    cursor.execute(PLACES, asked)
    return [time for _, _, time in cursor.fetchall()]


def span(args: argparse.Namespace) -> tuple[int, int]:
    """Returns the first time that is stored, since 1970, and the length to the last one, in ns.

    Raises ReportError.
    """
    with reading(args.source) as cursor:
        times = times_of(cursor, asked_for(args))
    first, last = (round(time.timestamp() * 10**6) * 1000 for time in (times[0], times[-1]))
    return first, last - first


def ask_each(args: argparse.Namespace, perf: str) -> Iterator[tuple[dict[str, str], bytes]]:
    """Returns the same of each build on each host, for --from. Raises ReportError."""
    asked = asked_for(args)
    with reading(args.source) as cursor:
        cursor.execute(PLACES, asked)
        for build, host in sorted({row[:2] for row in cursor.fetchall()}):
            place = {"build": build, "host": host}
            yield place, get(cursor, {**asked, **place}, perf)[0]


def ask_times(args: argparse.Namespace, perf: str) -> Iterator[tuple[list[float], bytes]]:
    """--from with --interval: begin and end (seconds since 1970), and the sums between them.

    Intervals begin at the first time that is stored. Raises ReportError.
    """
    asked = asked_for(args)
    with reading(args.source) as cursor:
        times = times_of(cursor, asked)
        step = timedelta(seconds=max(args.interval, 1e-6))  # with the precision of the database
        for number in sorted({(time - times[0]) // step for time in times}):
            begin = times[0] + number * step
            text = get(cursor, {**asked, "since": begin, "until": begin + step}, perf)[0]
            yield [begin.timestamp(), (begin + step).timestamp()], text
