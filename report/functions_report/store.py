# SPDX-License-Identifier: GPL-2.0
"""Keeps sums in PostgreSQL, per build, host and time: a continuous profile.

The database adds up the sums that a query asks for.

A sums file (perf-functions(1), SUMS FILE) is kept in parts: the lines before
the first sums and between them, which say what adds up (a kind); what is lost
and throttled; per function its numbers, and those of all intervals of a group.
Lines are kept as bytes, as they are in the file, for names have no encoding.
Numbers are exact.

The database also keeps the sums of each hour and day (UTC), over all hosts. Triggers do that, so
hosts with an older program may store. A query of all hosts adds up whole days and, at the ends of
its span of time, hours and profiles.
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
from .table import file_of

VERSION = 1
EPOCH = datetime(2000, 1, 1, tzinfo=timezone.utc)
SCHEMA = f"""
create schema perf_functions;
create table perf_functions.version (version integer not null);
insert into perf_functions.version values ({VERSION});
-- what is not a number in a sums file: its lines but those of functions and of all intervals, lost
-- and throttled
create table perf_functions.kind (
	id bigint generated always as identity primary key,
	lines bytea not null
);
create unique index on perf_functions.kind (sha256(lines));
-- symbol, DSO and address as a line has them; one word, windows or long, is no function: the
-- numbers are those of all intervals
create table perf_functions.function (
	id bigint generated always as identity primary key,
	name bytea not null
);
create unique index on perf_functions.function (sha256(name));
create table perf_functions.profile (
	id bigint generated always as identity primary key,
	build text not null,
	host text not null,
	time timestamptz not null,
	rows bytea not null, -- the line that says what the rows are: such sums are kept apart
	kind bigint not null references perf_functions.kind,
	lost numeric(20, 0) not null,
	throttled numeric(20, 0) not null,
	unique (build, host, time, rows)
);
create index on perf_functions.profile (host, time);
create index on perf_functions.profile (time);
-- numbers: those of a line, which all add up; how many there are the version in kind tells
-- events: the number of the group line that a function's line follows
create table perf_functions.sums (
	profile bigint not null references perf_functions.profile on delete cascade,
	events integer not null,
	function bigint not null references perf_functions.function,
	numbers numeric(58, 0)[] not null,
	primary key (profile, events, function)
);
"""
# array_append() returns an array whose elements are found fast, because it knows their places. Each
# number is an expression of the query, so the number of columns is limited.
MOST_NARROW = 500
NARROW_SUMS = "array_remove(array[{sums}], null)"
SPANS = f"""
-- the sums of all hosts, as add_to_spans() keeps them; a sum may have more digits than a number
create table perf_functions.span (
	unit text not null, -- hour or day
	start timestamptz not null, -- of one of UTC
	build text not null,
	kind bigint not null references perf_functions.kind,
	events integer not null,
	function bigint not null references perf_functions.function,
	profiles bigint not null,
	numbers numeric[] not null,
	primary key (kind, unit, start, build, events, function)
) with (fillfactor = 50); -- a row is updated in its page

-- the rows of spans that some sums make, as a query; those with many numbers are in none
create function perf_functions.spans_of(sums text, sign text, number integer) returns text
language sql set search_path = pg_catalog, pg_temp as $$
	select format($query$
		select unit, start, build, kind, events, function, %s count(*), {NARROW_SUMS.format(sums="%s")}
		from (
			select unit, date_trunc(unit, time, 'UTC') as start, build, kind, events, function,
			       array_append(numbers, null) as numbers
			from %s s join perf_functions.profile p on p.id = s.profile,
			     (values ('hour'), ('day')) u (unit)
			where cardinality(numbers) <= {MOST_NARROW} offset 0
		) s group by unit, start, build, kind, events, function
	$query$, sign, string_agg(format('%s sum(numbers[%s])', sign, place), ', '), sums)
	from generate_series(1, least(number, {MOST_NARROW})) place
$$;

-- makes days and their hours once more
create function perf_functions.recount(first timestamptz, last timestamptz) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare number integer;
begin
	first := date_trunc('day', first, 'UTC');
	last := date_trunc('day', last, 'UTC') + interval '1 day';
	lock table perf_functions.span in share row exclusive mode;
	delete from perf_functions.span where start >= first and start < last;
	select max(cardinality(numbers)) into number from perf_functions.sums;
	if number > 0 then
		execute 'insert into perf_functions.span ' || perf_functions.spans_of(
			format(
				'(select s.* from perf_functions.sums s join perf_functions.profile p '
				'on p.id = s.profile where time >= %L and time < %L)', first, last
			), '', number
		);
	end if;
end $$;

-- one transaction at a time changes a day and its hours
create function perf_functions.add_to_spans() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare number integer; at record;
begin
	select max(cardinality(numbers)) into number from changed;
	if number is null then
		return null;
	end if;
	perform pg_advisory_xact_lock(hashtext('perf_functions.span'), day - date '2000-01-01') from (
		select distinct (time at time zone 'UTC')::date as day
		from changed c join perf_functions.profile p on p.id = c.profile order by day
	) days;
	execute 'insert into perf_functions.span as s '
		|| perf_functions.spans_of('changed', case tg_op when 'INSERT' then '' else '-' end, number)
		|| 'on conflict (kind, unit, start, build, events, function) do update set
		profiles = s.profiles + excluded.profiles, numbers = (
			select array_agg(a + b order by place)
			from unnest(s.numbers, excluded.numbers) with ordinality as n (a, b, place)
		)';
	for at in
		select distinct kind, unit, date_trunc(unit, time, 'UTC') as start
		from changed c join perf_functions.profile p on p.id = c.profile,
		     (values ('hour'), ('day')) u (unit)
		where tg_op = 'DELETE'
	loop
		delete from perf_functions.span s
		where (s.kind, s.unit, s.start, s.profiles) = (at.kind, at.unit, at.start, 0);
	end loop;
	return null;
end $$;
create trigger put after insert on perf_functions.sums
referencing new table as changed execute function perf_functions.add_to_spans();
create trigger remove after delete on perf_functions.sums
referencing old table as changed execute function perf_functions.add_to_spans();

-- while the profile still tells of which time and kind its sums are
create function perf_functions.remove_sums() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$ begin
	delete from perf_functions.sums where profile = old.id;
	return coalesce(new, old);
end $$;
create trigger remove before delete on perf_functions.profile
for each row execute function perf_functions.remove_sums();
create trigger replace before update on perf_functions.profile
for each row when (old.kind <> new.kind) execute function perf_functions.remove_sums();

create function perf_functions.recount_moved() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$ begin
	perform perf_functions.recount(min(time), max(time)) from (
		select unnest(array[before.time, now.time]) as time
		from before join now on now.id = before.id
		where (before.time, before.build) <> (now.time, now.build)
	) moved having count(*) > 0;
	return null;
end $$;
create trigger move after update on perf_functions.profile
referencing old table as before new table as now
execute function perf_functions.recount_moved();

select perf_functions.recount(min(time), max(time)) from perf_functions.profile
having count(*) > 0;
"""
# The functions run with the owner's rights. The triggers above call them for everybody. But whoever
# may execute one could also call it from a trigger of his own.
GUARD = "revoke all on all functions in schema perf_functions from public"
UNGUARDED = """
select exists (
	select from pg_proc p join pg_namespace n on n.oid = p.pronamespace
	where nspname = 'perf_functions' and pg_has_role(proowner, 'usage')
	and has_function_privilege('public', p.oid, 'execute')
)
"""
INCOMING = "create temporary table incoming (events integer, name bytea, numbers numeric(58, 0)[])"
# in one order, so that two writers of the same new names wait and do not deadlock
NEW_FUNCTIONS = """
insert into perf_functions.function (name) select distinct name from incoming i
where not exists (select from perf_functions.function f where sha256(f.name) = sha256(i.name))
order by name on conflict do nothing
"""
NEW_SUMS = """
insert into perf_functions.sums select %s, events, f.id, numbers
from incoming i join perf_functions.function f on sha256(f.name) = sha256(i.name)
"""
PROFILE = """
insert into perf_functions.profile (build, host, time, rows, kind, lost, throttled)
values (%s, %s, %s, %s, %s, %s, %s)
on conflict (build, host, time, rows) do update
set kind = excluded.kind, lost = excluded.lost, throttled = excluded.throttled
returning id
"""
ASKED = """
from perf_functions.profile p where (%(build)s is null or build = %(build)s)
and (%(host)s is null or host = %(host)s) and (%(rows)s is null or rows = %(rows)s)
and (%(since)s::timestamptz is null or time >= %(since)s)
and (%(until)s::timestamptz is null or time < %(until)s)
"""
KINDS = (
    f"select p.kind, k.lines, sum(lost), sum(throttled) from (select * {ASKED}) p "
    "join perf_functions.kind k on k.id = p.kind group by p.kind, k.lines order by p.kind"
)
HOSTS = f"select distinct build, host {ASKED} order by build, host"
TIMES = f"select distinct time {ASKED} order by time"
# all from profiles; or from days, from hours before and after these, and from profiles at the ends
OF_PROFILES = f"""
select events, function, numbers from (select id {ASKED} and kind = %(kind)s {{where}}) p
join perf_functions.sums s on s.profile = p.id
"""
OF_ALL = f"""
select events, function, numbers from perf_functions.span
where kind = %(kind)s and (%(build)s is null or build = %(build)s) and (
	unit = 'day' and (%(first day)s::timestamptz is null or start >= %(first day)s)
	and (%(last day)s::timestamptz is null or start < %(last day)s)
	or unit = 'hour' and (
		start >= %(first hour)s::timestamptz and start < %(first day)s::timestamptz
		or start >= %(last day)s::timestamptz and start < %(last hour)s::timestamptz
	)
) union all {OF_PROFILES.format(
    where="and (time < %(first hour)s::timestamptz or time >= %(last hour)s::timestamptz)"
)}
"""
NARROW = f"""
select events, f.name, array_to_string(totals, E'\\t'), cardinality(totals) = number from (
	select events, function, {NARROW_SUMS} as totals, max(cardinality(numbers)) - 1 as number
	from (
		select events, function, array_append(numbers, null) as numbers from ({{asked}}) s offset 0
	) s group by events, function
) every join perf_functions.function f on f.id = function
"""
WIDE = """
select events, f.name, array_to_string(totals, E'\\t'), true from (
	select events, function, array_agg(total order by place) as totals from (
		select events, function, place, sum(number) as total
		from ({asked}) s, unnest(numbers) with ordinality as n (number, place)
		group by events, function, place
	) one group by events, function
) every join perf_functions.function f on f.id = function
"""


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


def shown(url: str) -> str:
    """Returns the URL of a database for messages and titles, without what may be secret.

    Only parameters that say where the database is are shown: libpq knows several with a secret, and
    their names may be escaped.
    """
    place, _, query = re.sub("//[^/@]*@", "//", url, count=1).partition("?")
    if "://" not in place:  # maybe keywords and values
        place = re.sub("=.*", "=...", place, flags=re.S)
    place = re.sub(r"^(\w+:/*)?.*@", r"\1", place)  # a password with a slash
    known = [word for word in query.split("&") if re.match("(host|hostaddr|port|dbname)=", word)]
    return "?".join([place, *filter(None, ["&".join(known)])])


def told(url: str, error: Exception) -> str:
    """Returns in one line what libpq said, without parts of the URL that shown() leaves out."""
    text = " ".join(re.sub(r"\sIs the server running [^?]*\?", "", str(error)).split())
    if text.startswith("connection to server"):
        return text
    return re.sub('"(.*)"', lambda quoted: quoted[0] if quoted[1] in shown(url) else "...", text)


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


@contextmanager
def database(url: str, writes: bool) -> Iterator:
    """A cursor in a transaction, which is undone if the block fails; a reader sees one state.

    Raises ReportError.
    """
    try:
        import psycopg2  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise ReportError("--store and --from need psycopg2: install python3-psycopg2") from None
    if not re.match("postgres(ql)?://", url):
        raise ReportError(
            f"{shown(url)}: no URL of a database: write postgresql://user@host/database"
        )
    try:
        try:
            connection = psycopg2.connect(url, connect_timeout=10)
        except psycopg2.OperationalError as error:
            raise ReportError(
                f"{shown(url)}: {told(url, error)}: correct the URL, or start the server"
            ) from None
        except psycopg2.ProgrammingError as error:  # libpq cannot read the URL
            raise ReportError(f"{shown(url)}: {told(url, error)}: correct the URL") from None
        try:
            if not writes:
                connection.set_session("repeatable read", readonly=True)
            with connection, connection.cursor() as cursor:
                yield cursor
        finally:
            connection.close()
    except psycopg2.Error as error:
        raise ReportError(f"{shown(url)}: {' '.join(str(error).split())}") from None


def check_schema(cursor, create: bool) -> None:
    """Creates missing tables, and checks that their version is known."""
    # read the catalogue itself, not the session's cache
    there = "select exists (select from pg_namespace where nspname = 'perf_functions')"
    cursor.execute(there)
    if not cursor.fetchone()[0]:
        if not create:
            raise ReportError("nothing has been stored in this database: use --store first")
        be_alone(cursor)  # another one may make them
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
    if create and lacks_spans(cursor):
        be_alone(cursor)
        if lacks_spans(cursor):
            cursor.execute("lock perf_functions.profile, perf_functions.sums in exclusive mode")
            cursor.execute(SPANS)
    if create:
        cursor.execute(UNGUARDED)
        if cursor.fetchone()[0]:
            be_alone(cursor)
            cursor.execute(GUARD)


def be_alone(cursor) -> None:
    """Lets only one process at a time make tables."""
    cursor.execute("select pg_advisory_xact_lock(hashtext('perf_functions'))")


def lacks_spans(cursor) -> bool:
    """Returns whether an older program has made the tables, and this user may add the spans."""
    cursor.execute(
        "select pg_has_role(nspowner, 'usage') and not exists "
        "(select from pg_class where relnamespace = n.oid and relname = 'span') "
        "from pg_namespace n where nspname = 'perf_functions'"
    )
    return cursor.fetchone()[0]


INTERVALS = (b"windows", b"long")  # lines that follow those of a group in this order


def line_of(name: bytes, numbers: str) -> bytes:
    """Returns a line of a function or of all intervals, with tabs between numbers."""
    words = (name,) if name in INTERVALS else (b"sums", name)
    return b"\t".join((*words, numbers.encode())) + b"\n"


def split(text: bytes) -> tuple[bytes, dict[bytes, int], list[tuple[int, bytes, list[bytes]]]]:
    """Splits a sums file: its kind; losses and throttles; its functions.

    A function is the number of lines of the kind before it, its name and its numbers. So is a line
    of all intervals, whose name is its word.
    """
    kind, counts, rows = [], {}, []
    for line in io.BytesIO(text):  # lines end with \n only
        word, *fields = line.rstrip(b"\n").split(b"\t")
        if word == b"sums":
            rows.append((len(kind), b"\t".join(fields[:3]), fields[3:]))
        elif word in INTERVALS:
            rows.append((len(kind), word, fields))
        elif word in (b"lost", b"throttled"):
            counts[word] = int(fields[0])
            kind.append(word + b"\n")
        else:
            kind.append(line)
    return b"".join(kind), counts, rows


def join(kind: bytes, counts: dict[bytes, int], rows: dict[int, list[bytes]]) -> bytes:
    """Joins the parts of a sums file."""
    lines = []
    for number, line in enumerate(io.BytesIO(kind)):
        word = line.rstrip(b"\n")
        lines += rows.get(number, []) + [
            word + b"\t%d\n" % counts[word] if word in counts else line
        ]
    return b"".join(lines)


def find_kind(cursor, lines: bytes) -> int:
    """Returns the number of a kind, a new one if needed."""
    cursor.execute(
        (
            "insert into perf_functions.kind (lines) select %(lines)s where not exists "
            "(select from perf_functions.kind where sha256(lines) = sha256(%(lines)s)) "
            "on conflict do nothing"
        ),
        {"lines": lines},
    )
    cursor.execute("select id from perf_functions.kind where sha256(lines) = sha256(%s)", (lines,))
    return cursor.fetchone()[0]


def put(url: str, text: bytes, build: str, host: str, time: datetime) -> None:
    """Stores a sums file, all of it or nothing. Raises ReportError."""
    kind, counts, rows = split(text)
    incoming = io.StringIO(
        "".join(
            f"{events}\t\\\\x{name.hex()}\t{{{b','.join(numbers).decode()}}}\n"
            for events, name, numbers in rows
        )
    )
    rows_are = next(line for line in kind.split(b"\n") if line.startswith(b"by\t"))
    with database(url, writes=True) as cursor:
        check_schema(cursor, create=True)
        cursor.execute(INCOMING)
        cursor.copy_expert("copy incoming from stdin", incoming)
        number = find_kind(cursor, kind)
        cursor.execute(NEW_FUNCTIONS)
        # commit the names first, so that nobody who waits for them holds a lock on a day
        cursor.connection.commit()
        lost = counts[b"lost"], counts[b"throttled"]
        cursor.execute(PROFILE, (build, host, time, rows_are, number, *lost))
        profile = cursor.fetchone()[0]
        cursor.execute("delete from perf_functions.sums where profile = %s", (profile,))
        cursor.execute(NEW_SUMS, (profile,))


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


def place_of(row: tuple) -> tuple[int, int]:
    """Returns the sort key of a line: lines of all intervals precede those of functions."""
    events, name = row[0], bytes(row[1])
    return events, INTERVALS.index(name) if name in INTERVALS else len(INTERVALS)


def rounded(time: datetime | None, unit: timedelta, up: bool) -> datetime | None:
    """Rounds a time to whole units."""
    if not time:
        return None
    past = (time - EPOCH) % unit
    return time + (unit - past if up and past else -past)


def spans_of(asked: dict) -> dict[str, datetime | None] | None:
    """The ends of the hours and days that lie in the span that is asked for, None without any."""
    ends = {
        f"{end} {name}": rounded(asked[bound], unit, up)
        for name, unit in (("hour", timedelta(hours=1)), ("day", timedelta(days=1)))
        for end, bound, up in (("first", "since", True), ("last", "until", False))
    }
    if asked["since"] and asked["until"] and ends["first day"] >= ends["last day"]:
        ends["first day"] = ends["last day"] = ends["last hour"]
        return ends if ends["first hour"] < ends["last hour"] else None
    return ends


def sums_of(cursor, asked: dict, lines: bytes) -> list[tuple]:
    """The functions of a kind: lines before each, its name and totals, whether these are whole."""
    cursor.execute(
        "select exists (select from pg_class where oid = to_regclass('perf_functions.span') "
        "and has_table_privilege(oid, 'select'))"
    )
    spans = spans_of(asked) if cursor.fetchone()[0] and not asked["host"] else None
    groups = [line for line in lines.split(b"\n") if line.startswith(b"group\t")]
    events = max(line.count(b"\t") for line in groups) - 7
    most = 2 * events * (events + 2) + 10  # numbers of a function; older versions have fewer
    # each sum is an expression: to compile them takes longer than to evaluate them
    cursor.execute("set local jit = off; set local work_mem = '256MB'")
    if most <= MOST_NARROW:
        each = ", ".join(f"sum(numbers[{place}])" for place in range(1, most + 1))
        of_all = OF_ALL if spans else OF_PROFILES.format(where="")
        cursor.execute(NARROW.format(sums=each, asked=of_all), {**asked, **(spans or {})})
        found = cursor.fetchall()
        if all(is_whole for _, _, _, is_whole in found):
            return found
    cursor.execute(WIDE.format(asked=OF_PROFILES.format(where="")), asked)
    return cursor.fetchall()


def totals(cursor, asked: dict) -> Iterator[bytes]:
    """Returns the requested sums, a sums file for each kind."""
    cursor.execute(KINDS, asked)
    for kind, lines, lost, throttled in cursor.fetchall():
        rows: dict[int, list[bytes]] = {}
        found = sums_of(cursor, {**asked, "kind": kind}, bytes(lines))
        for events, name, numbers, _ in sorted(found, key=place_of):
            rows.setdefault(events, []).append(line_of(bytes(name), numbers))
        yield join(bytes(lines), {b"lost": int(lost), b"throttled": int(throttled)}, rows)


def get(cursor, asked: dict[str, str | bytes | datetime | None], perf: str) -> sums.Part:
    """Returns the sum of all stored files of this build, host, rows and span of time.

    rows is a line of sums files; the span is from `since` on and before `until`. None stands for
    any value. Raises ReportError.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, text in enumerate(totals(cursor, asked)):
            paths.append(Path(folder) / str(number))
            paths[-1].write_bytes(text)
        if not paths:
            words = " ".join(
                f"{name} {value}" for name, value in asked.items() if value and name != "rows"
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


def span(args: argparse.Namespace) -> tuple[int, int]:
    """Returns the first time that is stored, since 1970, and the length to the last one, in ns.

    Raises ReportError.
    """
    with reading(args.source) as cursor:
        cursor.execute(TIMES, asked_for(args))
        times = [round(time.timestamp() * 10**6) * 1000 for (time,) in cursor.fetchall()]
    return times[0], times[-1] - times[0]


def ask_each(args: argparse.Namespace, perf: str) -> Iterator[tuple[dict[str, str], bytes]]:
    """Returns the same of each build on each host, for --from.

    Raises ReportError.
    """
    asked = asked_for(args)
    with reading(args.source) as cursor:
        cursor.execute(HOSTS, asked)
        places = [{"build": build, "host": host} for build, host in cursor.fetchall()]
        for place in places:
            yield place, get(cursor, {**asked, **place}, perf)[0]


def ask_times(args: argparse.Namespace, perf: str) -> Iterator[tuple[list[float], bytes]]:
    """--from with --interval: begin and end (seconds since 1970), and the sums between them.

    Intervals begin at the first time that is stored. Raises ReportError.
    """
    asked = asked_for(args)
    with reading(args.source) as cursor:
        cursor.execute(TIMES, asked)
        times = [time for (time,) in cursor.fetchall()]
        step = timedelta(seconds=max(args.interval, 1e-6))  # with the precision of the database
        for number in sorted({(time - times[0]) // step for time in times}):
            begin = times[0] + number * step
            text = get(cursor, {**asked, "since": begin, "until": begin + step}, perf)[0]
            yield [begin.timestamp(), (begin + step).timestamp()], text
