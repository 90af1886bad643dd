# SPDX-License-Identifier: GPL-2.0
"""Connects to PostgreSQL. Messages do not tell a password."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from . import ReportError


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
