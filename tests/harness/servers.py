# SPDX-License-Identifier: GPL-2.0
"""Real servers on this machine: Dask, PostgreSQL.

Each server ends with its `with` block.
"""

import fcntl
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.env import CHECK


def until(what: str, found: Callable, seconds: float = 60):
    """Waits for a true result of a function and returns it.

    Raises AssertionError when none comes in this time.
    """
    end = time.monotonic() + seconds
    while True:
        result = found()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"no {what} after {seconds} s")
        time.sleep(0.05)


class Dask:
    """A scheduler and its workers, each a process with one thread."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "scheduler.json"
        file.unlink(missing_ok=True)
        self.scheduler = self.start(
            *("scheduler", "--host", "127.0.0.1", "--port", 0, "--scheduler-file", file)
        )
        until("scheduler", lambda: file.exists() and file.stat().st_size)
        self.address = json.loads(file.read_text())["address"]
        options = "--nthreads", 1, "--no-nanny", "--local-directory", folder
        self.workers = [self.start("worker", self.address, *options) for _ in range(workers)]

    def start(self, what: str, *arguments: object) -> subprocess.Popen:
        """One of Dask's commands."""
        with open(self.folder / "dask.log", "a", encoding="utf-8") as log:
            return subprocess.Popen(
                [f"/usr/bin/dask-{what}", "--no-dashboard", *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "PATH": "/usr/bin:/bin",
                    "PYTHONPATH": "",
                    "HOME": str(self.folder),
                    "TMPDIR": str(self.folder),  # tests kill workers
                },
                cwd=self.folder,
            )

    def stop(self) -> None:
        """Stops all processes."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[Dask]:
    """A scheduler with workers."""
    server = Dask(folder, workers)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def starting() -> Iterator[Callable[[], None]]:
    """Nobody else starts a server before the function is called: two would take the same port."""
    CHECK.mkdir(parents=True, exist_ok=True)
    with open(CHECK / "postgresql.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lambda: fcntl.flock(lock, fcntl.LOCK_UN)


@contextmanager
def postgresql() -> Iterator[str]:
    """Runs a server with an empty database, behind a socket in its own folder. Yields its URL."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, starting() as started:
        os.chmod(folder, 0o777)  # the server is postgres, if we are root
        options = (
            *("-t", "-o", f"unix_socket_directories={folder}", "-o", "listen_addresses="),
            *("-i", "--auth=trust --locale=C --encoding=UTF8"),
        )
        role = f"psql --quiet --host={folder} --command='CREATE ROLE test SUPERUSER LOGIN'"
        shell = f"{role} && echo port $PGPORT && read _; true"
        with subprocess.Popen(
            ["/usr/bin/pg_virtualenv", *options, "sh", "-c", shell],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            said = iter(server.stdout.readline, "")
            port = next((line.split()[1] for line in said if line.startswith("port ")), None)
            if not port:
                raise AssertionError("pg_virtualenv has started no server")
            started()
            try:
                yield f"postgresql://test@/postgres?host={folder}&port={port}"
            finally:
                server.communicate()  # the end of its input stops the server
