# SPDX-License-Identifier: GPL-2.0
"""The basics that the tests share: paths, commands, the emulated machine."""

import os
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BASE = os.environ.get("BASE", "6.12")  # of Linux
BUILD = TOP / "build" / BASE
CHECK = BUILD / "check"
LINUX = BUILD / "linux"
PERF = BUILD / "perf/perf"
SCRIPT = TOP / "tools/perf/scripts/python/generate-function-metrics.py"
ARCH = "arm64"
SLOW = "CHECK_SLOW" in os.environ  # `make check-all`: tests may take long
# Settings of the make that runs the tests: commands of the tests do not get them. They do get
# LINUX, without which make would fetch Debian's source of a base other than 6.12.
SAID_TO_MAKE = set(
    "MAKEFLAGS MAKELEVEL MFLAGS V DEBUG T TOPIC BENCH CONFIG WORKLOAD EVENTS RUN TIMEOUT".split()
)
# the sender of the commits, whatever name this machine's user has
IDENTITY = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "user.name",
    "GIT_CONFIG_VALUE_0": "Some Body",
    "GIT_CONFIG_KEY_1": "user.email",
    "GIT_CONFIG_VALUE_1": "somebody@example.org",
}


def run(*command: object, **options) -> subprocess.CompletedProcess:
    """A command's exit status and output, both streams in stdout unless told otherwise."""
    options = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
        "errors": "replace",
        "check": False,
        "stdin": subprocess.DEVNULL,
        "cwd": TOP,
        **options,
    }
    # use Debian's commands, whatever else is installed
    own = {"LC_ALL": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    ours = {name: value for name, value in os.environ.items() if name not in SAID_TO_MAKE}
    options["env"] = {**ours, **own, **options.get("env", {})}
    options["args"] = [str(word) for word in command]
    return subprocess.run(**options)  # pylint: disable=subprocess-run-check


def must(*command: object, **options) -> str:
    """A command's output. Raises AssertionError, with the output, when it fails."""
    done = run(*command, **options)
    if done.returncode:
        raise AssertionError(
            f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout[-4000:]}"
        )
    return done.stdout


def vm(
    command: str, *options: object, arch: str = ARCH, share: Path | None = None, timeout: int = 900
) -> subprocess.CompletedProcess:
    """Runs a command in an emulated machine; share is its /share and working directory."""
    share = share or CHECK / "share"
    settings = "--arch", arch, "--timeout", timeout, "--share", share
    return run(TOP / "scripts/vm.py", *settings, *options, command)


def machine(arch: str, key: str) -> str:
    """One value of a machine's description, as in scripts/vm/ARCH.py."""
    return must(TOP / "scripts/vm.py", "--arch", arch, "--get", key).strip()


def in_guest(command: str, *options: object, **more) -> str:
    """Like vm(), for commands that must succeed; returns the output."""
    done = vm("set -e\n" + command, *options, **more)
    if done.returncode:
        raise AssertionError(
            f"in the emulated machine: exit status {done.returncode}\n{done.stdout[-4000:]}"
        )
    return done.stdout


def native(recording: Path, *options: object) -> subprocess.CompletedProcess:
    """perf functions report on a recording of the emulated machine."""
    kernel = BUILD / "kernel" / ARCH / "System.map"
    place = "-i", recording, "--symfs", BUILD / "root" / ARCH, "--kallsyms", kernel
    return run(PERF, "functions", "report", *place, *options, stderr=subprocess.PIPE)


def words(table: str) -> list[list[str]]:
    """A table's lines as words, without the marks of weak values."""
    return [[word.removesuffix("?") for word in line.split()] for line in table.splitlines()]


def pack_reproduce(archive: Path) -> None:
    """Writes what bench/reproduce needs of this repository into a tar archive."""
    folders = "bench", "scripts", "tools/perf/scripts"
    must("tar", "--exclude", "__pycache__", "-cf", archive, *folders)
