# SPDX-License-Identifier: GPL-2.0
"""Sums files (perf-functions(1), SUMS FILE): perf makes them of recordings and adds them up.

The workers of a cluster run what is here. They have perf, but not this package,
so it takes nothing but the standard library. Raises ValueError, with one line
that says what is wrong with which file.
"""

import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Part = tuple[bytes, frozenset[str]]  # a sums file, and perf's messages about what it left out
MAGIC = b"perf-function-sums "
STDIN = {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}
# sums do not have them
NOTES = ": ignored, because |: no samples that count: "


def cut(text: bytes, depth: int) -> bytes:
    """Cuts call chains to this many functions, from the outermost caller; 0: all are one row.

    A sums file may have several rows of one name: perf adds them up.
    """
    lines = text.split(b"\n")
    for number, line in enumerate(lines):
        if line.startswith(b"row\t"):
            word, chain, _, _, values = line.split(b"\t", 4)
            name = b";".join(chain.split(b";")[-depth:]) if depth else b"[all]"
            lines[number] = b"\t".join((word, name, b"", b"-", values))
    return b"\n".join(lines)


def reason(output: str) -> str:
    """Returns the line that says why perf failed: its own last one, else the last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    own = [
        line.removeprefix("perf functions: ")
        for line in lines
        if line.startswith("perf functions: ")
    ]
    return (own or lines or ["no reason given"])[-1]


def why_unknown(perf: str, said: str) -> str:
    """Returns what to say of a perf that lacks `perf functions`, "" if it does not."""
    if "is not a perf-command" not in said:
        return ""
    return f"{perf} has no `perf functions`: `make perf` builds one, --perf says where it is"


def is_sums(path: str) -> bool:
    """Returns whether a file has sums. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def streams(command: Sequence[str]) -> dict[str, Any]:
    """Options of Popen for perf's open inputs: -, and those that a shell makes of <(...)."""
    found = (re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", word) for word in command)
    return {
        "stdin": None if STDIN.intersection(command) else subprocess.DEVNULL,
        "pass_fds": [int(match[1]) for match in found if match],
    }


def run(perf: str, arguments: Sequence[str], *names: str) -> Part:
    """The output of `perf functions report --sums -`.

    If perf names none of the inputs, error messages have the first of these names.
    """
    command = [perf, "functions", "report", "--sums=-", *arguments]
    here = socket.gethostname()
    try:
        done = subprocess.run(command, capture_output=True, check=False, **streams(command))
    except OSError as error:
        raise ValueError(
            f"{here}: cannot run {perf}: {error.strerror}: "
            "`make perf` builds perf, --perf says where it is"
        ) from None
    said = done.stderr.decode(errors="replace")
    if done.returncode < 0:
        raise ValueError(
            f"{names[0]}: perf on {here} ended with signal {-done.returncode}: "
            "the kernel's log there may say why"
        )
    if done.returncode or not done.stdout.endswith(b"\nend\n"):
        why = why_unknown(perf, said)
        if why:
            raise ValueError(f"{here}: {why}")
        why = reason(said)
        is_named = any(name in why for name in names)
        raise ValueError(f"{why if is_named else f'{names[0]}: {why}'} (on {here})")
    return done.stdout, frozenset(line for line in said.splitlines() if re.search(NOTES, line))


def collect(perf: str, path: str, options: Sequence[str]) -> Part:
    """The sums of one recording, or of a span of its time, or of a sums file."""
    return run(perf, [*options, path], path)


def add(perf: str, names: Sequence[str], *parts: Part) -> Part:
    """The sum of parts, of which each one has a name."""
    paths: list[str] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, str(number)) for number in range(len(parts))]
            for path, part in zip(paths, parts):
                Path(path).write_bytes(part[0])
            total, notes = run(perf, paths, folder)
    except OSError as error:
        raise ValueError(
            f"{socket.gethostname()}: {tempfile.gettempdir()}: {error.strerror}: "
            "make room, or set TMPDIR"
        ) from None
    except ValueError as error:
        text = str(error)
        for path, name in reversed(list(zip(paths, names))):
            text = text.replace(path, name)
        every = f"the sums of {' and '.join((*names[:1], *names[1:][-1:]))}"
        raise ValueError(text.replace(folder, every)) from None
    return total, notes.union(*(part[1] for part in parts))


def merge(perf: str, paths: Iterable[object], options: Sequence[str] = ()) -> Part:
    """The sums of recordings and sums files, all read by one perf."""
    names = [path if path == "-" else os.path.abspath(path) for path in map(str, paths)]
    return run(perf, [*options, *names], *names)
