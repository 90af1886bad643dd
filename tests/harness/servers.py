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

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = open(folder / "dask.log", "w", encoding="utf-8")
        self.processes: list[subprocess.Popen] = []
        self.workers: list[subprocess.Popen] = []
        file = folder / "scheduler.json"
        self.start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            file,
        )
        self.address = until(
            "scheduler",
            lambda: file.exists() and file.stat().st_size and json.loads(file.read_text()),
        )["address"]

    def start(self, what: str, *arguments: object) -> subprocess.Popen:
        """One of Dask's commands."""
        environment = {
            **os.environ,
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": "",
            "HOME": str(self.folder),
        }
        process = subprocess.Popen(
            [f"/usr/bin/dask-{what}", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=environment,
            cwd=self.folder,
        )
        self.processes.append(process)
        return process

    def add(self, number: int) -> None:
        """More workers."""
        for _ in range(number):
            self.workers.append(
                self.start(
                    "worker",
                    self.address,
                    "--nthreads",
                    1,
                    "--no-nanny",
                    "--no-dashboard",
                    "--local-directory",
                    self.folder,
                )
            )

    def kill(self) -> None:
        """Kills one worker without warning."""
        self.workers.pop().kill()

    def stop(self) -> None:
        """Stops all processes."""
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        self.log.close()


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[Dask]:
    """A scheduler with workers."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scheduler.json").unlink(missing_ok=True)
    server = Dask(folder)
    try:
        server.add(workers)
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
