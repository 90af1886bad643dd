# SPDX-License-Identifier: GPL-2.0
"""A continuous profile in PostgreSQL.

Answers by build, host and time must be the sums that perf makes of the recordings.
"""

import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psycopg2

from tests.harness import eventsamples, fleet, servers, sumsfile
from tests.harness.env import CHECK, PERF, TOP, must, run
from tests.harness.simulation import Libraries

sys.path.insert(0, str(TOP / "report"))
from functions_report import store  # noqa: E402 pylint: disable=import-error,wrong-import-position

DATA = CHECK / "store"
REPORT = TOP / "report/functions-report"
MINUTES = 1
HOSTS, DAYS = 4, 3
NAMES: list[str] = []
RECORDED: list[tuple[str, int]] = []


def day(number: int) -> str:
    return f"2026-11-{number:02}T12:00:00+00:00"


def build(number: int) -> str:
    """The build that ran on a day."""
    return "v1" if number < 3 else "v2"


def path_of(host: str, number: int) -> Path:
    return DATA / f"{host}-{number}.data"


def setUpModule() -> None:
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    NAMES.extend(fleet.library(DATA / "code.so"))
    for place in range(HOSTS * DAYS):
        host, number = f"host{place % HOSTS}", 1 + place // HOSTS
        RECORDED.append((host, number))
        made = fleet.Host(place, DATA / "code.so", NAMES, 20 + place)
        made.write(path_of(host, number), 1000)


class Store(unittest.TestCase):
    """A server; each test has an empty database on it."""

    @classmethod
    def setUpClass(cls):
        context = servers.postgresql()
        cls.server = context.__enter__()  # pylint: disable=unnecessary-dunder-call
        cls.addClassCleanup(context.__exit__, None, None, None)

    def setUp(self):
        """Makes an empty database, whose name needs quotes."""
        name = f"profile {self._testMethodName}"
        self.sql(f'create database "{name}"', self.server)
        self.url = self.server.replace("/postgres?", f"/{name.replace(' ', '%20')}?")
        self.out = DATA / "out.sums"
        self.out.unlink(missing_ok=True)

    def connect(self, url: str = ""):
        connection = psycopg2.connect(url or self.url)
        self.addCleanup(connection.close)
        connection.autocommit = True
        return connection

    def sql(self, command: str, url: str = "") -> list[tuple]:
        connection = self.connect(url)
        with connection.cursor() as cursor:
            cursor.execute(command)
            rows = cursor.fetchall() if cursor.description else []
        connection.close()
        return rows

    def place(self, host: str, number: int) -> list[str]:
        """The options that store a host's sums of a day."""
        at = "--at", day(number)
        return ["--store", self.url, "--build", build(number), "--host", host, *at]

    def put(self, host: str, number: int) -> None:
        must(REPORT, *self.place(host, number), path_of(host, number))

    def ask(self, *options: object) -> bytes:
        """The sums file of a range."""
        self.assertEqual(must(REPORT, "--from", self.url, "--sums", self.out, *options), "")
        return self.out.read_bytes()

    def refused(self, pattern: str, *arguments: object) -> None:
        """There is one line, and no file."""
        self.out.unlink(missing_ok=True)
        done = run(REPORT, *arguments, stderr=subprocess.PIPE)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, rf"\A(usage: (.*\n)*)?functions-report: {pattern}\n\Z")
        self.assertFalse(self.out.exists())

    def check(self, wanted: list[tuple[str, int]], *options: object) -> None:
        """The answer is byte for byte perf's sum of these recordings."""
        self.assertEqual(self.ask(*options), fleet.sums(path_of(*key) for key in wanted))


class Secrets(unittest.TestCase):
    """Messages about a database, which a log may keep, tell no password."""

    def test_messages_tell_no_password(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{closed.getsockname()[1]}/db"
            for url in (
                f"postgresql://user:S3cret@{place}",
                f"postgresql://{place}?user=x&password=S3cret",
                f"postgresql://{place}?pass%77ord=S3cret",
                f"postgresql://user:S3%zzcret@{place}",
                f"postgresql://user:S3@cret@{place}",
                f"postgresql://{place}?password=S3cret%zz",
                "postgresql://[user:S3cret@127.0.0.1/db",
                "host=127.0.0.1 dbname=db user=x password=S3cret",
                "password='S3cret' host=127.0.0.1",
            ):
                with self.subTest(url):
                    done = run(REPORT, "--from", url)
                    self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1), done)
                    self.assertRegex(done.stdout, "^functions-report: (postgresql:|host=|password)")
                    self.assertNotRegex(done.stdout, "(?i)S3|cret")


class Range(Store):
    """The ranges that can be asked for."""

    def test_event_samples(self):
        """Each row has the periods of its own samples, of all hosts."""
        libraries, true = Libraries(DATA / "libraries"), Counter()
        for number in 1, 2:
            path = DATA / f"samples-{number}.data"
            true += eventsamples.record(path, libraries, number)
            must(REPORT, *self.place(f"host{number}", number), path)
        self.ask()
        table = json.loads(must(PERF, "functions", "report", self.out, "-j"))["functions"]
        self.assertEqual(eventsamples.counts_of(table), true)

    def test_openmetrics_of_each_host(self):
        """Messages are about all of them."""
        self.put("host0", 1)
        self.put("host1", 1)
        words = REPORT, "--from", self.url, "--limit", 1000
        done = run(*words, "--openmetrics", "-", stderr=subprocess.PIPE)
        self.assertEqual(done.stderr, run(*words, stderr=subprocess.PIPE).stderr)
        for host in "host0", "host1":
            text = must(PERF, "functions", "report", "-j", path_of(host, 1), stderr=-3)
            pattern = rf'^perf_functions_windows{{.*build="v1",.*host="{host}"}} (.*)\.0$'
            self.assertCountEqual(
                map(int, re.findall(pattern, done.stdout, re.M)),
                [row["observations"]["windows"] for row in json.loads(text)["functions"]],
            )

    def test_factors(self):
        """Of the factors by which sums were scaled, that which differs most from 1."""
        paths = []
        for number, factor in enumerate((1, 0.5, 1.25)):
            scaled = sumsfile.line("event", "cycles", 0, 0, 0, 0, factor, 1)
            own = sumsfile.sample_set({"cycles": {"f": [1000]}}).splitlines(keepends=True)
            text = "".join((sumsfile.HEAD, *own[:2], scaled, *own[2:], "end\n"))
            paths.append(DATA / f"scaled-{number}.sums")
            paths[-1].write_text(text)
            store.put(self.url, text.encode(), "v1", f"host{number}", datetime.now(timezone.utc))
        self.assertEqual(self.ask(), fleet.sums(paths))
        self.assertIn(b"\nevent\tcycles\t0\t0\t0\t0\t0.5\t1\n", self.out.read_bytes())

    def test_page_tells_no_password(self):
        self.put("host0", 1)
        url = self.url.replace("test@", "test:s3cret@") + "&password=s3cret&connect_timeout=9"
        must(REPORT, "--from", url, "--html", DATA / "page.html")
        page = (DATA / "page.html").read_text(encoding="utf-8")
        self.assertIn("<title>postgresql:///profile", page)
        self.assertNotIn("s3cret", page)

    def test_once_more_takes_the_place(self):
        for _ in "12":
            self.put("host0", 1)
        self.check([("host0", 1)])
        must(REPORT, *self.place("host0", 1), path_of("host3", 3))
        self.check([("host3", 3)])


class Spans(Store):
    """Spans of time have the sums of the model, which has all stored profiles."""

    TIMES = (
        *("01T00:00:00", "01T00:59:59.999999", "01T01:00:00", "01T13:37:00", "01T23:59:59.999999"),
        *("02T00:00:00", "02T12:30:00", "02T23:00:00", "03T06:00:00", "04T00:00:00"),
    )

    def test_spans(self):
        model: dict[tuple[str, str, datetime], Path] = {}
        paths = itertools.cycle(path_of(*key) for key in RECORDED)
        for number, (time, name) in enumerate(itertools.product(self.TIMES, ("a", "b"))):
            moment = datetime.fromisoformat(f"2026-11-{time}+00:00")
            place, path = (f"v{number % 3}", name, moment), next(paths)
            store.put(self.url, fleet.sums([path]), *place)
            model[place] = path
        rand, first = random.Random(1), datetime(2026, 11, 1, tzinfo=timezone.utc)
        ends: list[datetime | None] = [None, *(time for _, _, time in model)]
        ends += [first + timedelta(hours=rand.randrange(100)) for _ in range(20)]
        number = 0
        while number < 40:
            since, until = rand.choice(ends), rand.choice(ends)
            asked = {"build": rand.choice((None, None, "v1")), "host": rand.choice((None, "a"))}
            wanted = [
                path
                for (build, name, time), path in model.items()
                if (not since or time >= since)
                and (not until or time < until)
                and asked["build"] in (None, build)
                and asked["host"] in (None, name)
            ]
            if not wanted:
                continue
            number += 1
            asked |= {"rows": None, "since": since, "until": until}
            with self.subTest(**asked):
                with store.reading(self.url) as cursor:
                    found = store.get(cursor, asked, str(PERF))[0]
                self.assertEqual(found, fleet.sums(wanted))


class Trouble(Store):
    """Deaths, crowds and mistakes."""

    def test_killed_in_the_middle(self):
        """The old sums are still there, whole."""
        self.put("host0", 1)
        blocker = self.connect()
        blocker.autocommit = False
        blocker.cursor().execute("lock table perf_functions.sums in exclusive mode")
        waiting = "select 1 from pg_locks where not granted"
        command = REPORT, *self.place("host0", 1), path_of("host1", 2)
        place = {**os.environ, "TMPDIR": str(DATA)}  # its temporary folder stays
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=place) as child:
            try:
                servers.until("transaction that waits", lambda: self.sql(waiting))
            finally:
                child.send_signal(signal.SIGKILL)
        blocker.rollback()
        servers.until("end of it", lambda: not self.sql(waiting))
        self.check([("host0", 1)])

    def test_wrong_questions(self):
        said = "nothing has been stored in this database: use --store first"
        self.refused(said, "--from", self.url)
        self.put("host0", 1)
        self.refused(
            r"nothing is stored for build v7; there are builds v1, from 2026-11-01T\S+ to \S+",
            *("--from", self.url, "--build", "v7"),
        )
        said = r"nothing is stored for host x, these rows \(--by, .*\); there are .*"
        self.refused(said, "--from", self.url, "--host", "x", "--by", "cgroup")
        self.refused("yesterday: no time: write .*", "--from", self.url, "--since", "yesterday")
        for options in ("--store", self.url), (path_of("host0", 1),), ("--cluster",):
            self.refused("error: --(store|from) .*", "--from", self.url, *options)
        self.refused("error: --since goes with --from", "--since", day(1), path_of("host0", 1))

    def test_wrong_databases(self):
        said = "sqlite:x: no URL of a database: write postgresql://user@host/database"
        self.refused(said, "--from", "sqlite:x")
        self.refused(
            r"postgresql:///none\?host=\S+: .*database \"none\" does not exist: "
            "correct the URL, or start the server",
            "--from",
            self.server.replace("test@", "test:secret@").replace("/postgres?", "/none?"),
        )
        self.put("host0", 1)
        self.sql("update perf_functions.version set version = 4")
        said = "the tables in this database are of version 4, this program knows 3: use a newer one"
        for arguments in (["--from", self.url], [*self.place("host0", 1), path_of("host0", 1)]):
            self.refused(said, *arguments)

    def test_no_server(self):
        """A missing input is reported first, without a question to the database."""
        url = "postgresql://127.0.0.1:1/none"  # nobody listens there
        words = "--store", url, "--build", "b"
        said = rf"{url}: .*Connection refused: correct the URL, or start the server"
        self.refused(said, *words, path_of("host0", 1))
        said = "nosuch: there is no such file: name a recording or a sums file"
        self.refused(said, *words, "nosuch")

    def test_input_that_is_refused_is_not_stored(self):
        bad = DATA / "bad.data"
        bad.write_text("no recording")
        self.refused(rf"{bad}: .*", "--store", self.url, "--build", "b", bad)
        self.assertEqual(self.sql("select to_regclass('perf_functions.version')"), [(None,)])
