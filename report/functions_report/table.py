# SPDX-License-Identifier: GPL-2.0
"""Tables of functions, as `perf functions report -j` makes them.

All metrics and intervals are perf's own; this module does not compute them again.
"""

import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from . import ReportError
from .progress import Progress, printable
from .sums import why_unknown

Table = dict[str, Any]
VERSION = 3  # of the JSON
# that names of events end with
UNITS = "cycles|instructions|faults|misses|loads|stores|references|branches|switches|migrations"


class Perf:
    """`perf functions report` with the user's options. Raises ReportError where it fails."""

    def __init__(
        self, program: str, collect: Sequence[str], show: Sequence[str], progress: Progress
    ) -> None:
        """collect: options that choose the windows; show: options of all tables, sums too."""
        self.program = program
        self.collect = list(collect)
        self.show = list(show)
        self.progress = progress
        self.warnings: list[str] = []
        self.names: dict[str, str] = {}  # of inputs that were copied, for messages

    @contextmanager
    def output(self, *arguments: str | Path, what: str) -> Iterator[IO[bytes]]:
        """The standard output of `perf functions report`; perf's other messages become warnings."""
        command = [self.program, "functions", "report", *map(str, arguments)]
        with tempfile.TemporaryFile() as output:
            try:
                status, text = self.progress.run(command, output, what)
            except OSError as error:
                raise ReportError(
                    f"{self.program}: {error.strerror}: "
                    "`make perf` builds perf, --perf says where it is"
                ) from None
            for copy, name in self.names.items():
                text = text.replace(copy, name)
            said = [line.strip() for line in text.splitlines() if line.strip()]
            why = why_unknown(self.program, text)
            if status < 0:
                why = f"perf ended with signal {-status}: the kernel's log may say why"
            if why:
                raise ReportError(why)
            if status:
                # perf's own words, whatever follows them
                own = [line for line in said if line.startswith("perf functions: ")]
                raise ReportError(
                    (own or said or [f"{' '.join(command)}: exit status {status}"])[-1]
                )
            self.warnings += [line for line in said if line not in self.warnings]
            output.seek(0)
            yield output

    def run(self, *arguments: str | Path, what: str) -> str:
        """The same output as text."""
        with self.output(*arguments, what=what) as output:
            return output.read().decode("utf-8", "replace")

    def table(self, inputs: Sequence[str | Path], *options: str, what: str = "reading") -> Table:
        """Returns perf's table of recordings and sums files."""
        return self.read(*self.collect, *self.show, "-j", *options, *paths(inputs), what=what)

    def tables(self, inputs: Sequence[str | Path], *options: str) -> Iterator[Table]:
        """The tables of each --interval, one at a time: all of them may not fit in memory."""
        words = (*self.collect, *self.show, "-j", *options, *paths(inputs))
        with self.output(*words, what="reading intervals") as output:
            lines: list[bytes] = []
            for line in output:
                lines.append(line)
                if line == b"}\n":  # no other line of an object is the same
                    yield self.parse(b"".join(lines).decode("utf-8", "replace"), "time")
                    lines.clear()

    def table_of_sums(self, sums: str | Path, *options: str, what: str) -> Table:
        """Returns the table of a sums file, for which few options are left."""
        return self.read(*self.show, "-j", *options, sums, what=what)

    def sums(self, inputs: Sequence[str | Path], file: Path, *options: str, what: str) -> None:
        """Writes a sums file."""
        self.run(*self.collect, *options, f"--sums={file}", *paths(inputs), what=what)

    def text(self, inputs: Sequence[str | Path], *options: str) -> str:
        """The table as perf prints it."""
        return self.run(*self.collect, *self.show, *options, *paths(inputs), what="reading")

    def read(self, *arguments: str | Path, what: str) -> Table:
        """The table that perf makes with these arguments."""
        return self.parse(self.run(*arguments, what=what))

    def parse(self, text: str, *more: str) -> Table:
        """The table of perf's JSON, which has these members, too. Raises ReportError."""
        try:
            table = json.loads(text, strict=False, parse_constant=lambda _name: None)
            need(table, *more)
            return checked(table)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ReportError(
                f"{self.program} functions report -j wrote JSON that functions-report cannot read: "
                f"{error}: name another perf with --perf"
            ) from None


def paths(inputs: Sequence[str | Path]) -> list[str]:
    """Returns names of files that cannot be options; - is the standard input."""
    return [f"./{name}" if re.match("-.", str(name)) else str(name) for name in inputs]


def file_of(name: str) -> str:
    """Returns the file of an input."""
    return "/dev/stdin" if name == "-" else name


def is_stream(name: str) -> bool:
    """Returns whether an input can be read only once. Raises ReportError if it is missing."""
    try:
        mode = os.stat(file_of(name)).st_mode
    except FileNotFoundError:
        raise ReportError(
            f"{name}: there is no such file: name a recording or a sums file"
        ) from None
    except OSError as error:
        raise ReportError(f"{name}: {error.strerror}: name a file that you may read") from None
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def checked(table: Table) -> Table:
    """The table. Raises ValueError if it is of another version, or lacks what is needed of it."""
    need(table, "version")
    if table["version"] != VERSION:
        raise ValueError(f"it has version {table['version']}, not {VERSION}")
    need(table, "by", "inline", "columns", "functions")
    for column in table["columns"]:
        need(column, "name", "meaning", "unit", "role", "digits")
    for function in table["functions"]:
        need(function, "label", "symbol", "dso", "metrics")
    (check_comparison if is_diff(table) else check_table)(table)
    return table


def need(item: Table, *names: str) -> None:
    """Raises ValueError if an object lacks one of these members."""
    missing = [name for name in names if name not in item]
    if missing:
        raise ValueError(f"there is no {', '.join(missing)}")


def need_values(estimates: Iterable[Table | None]) -> None:
    """Raises ValueError if an estimate has no value."""
    for estimate in estimates:
        if estimate is not None:
            need(estimate, "value")


def check_comparison(table: Table) -> None:
    """Raises ValueError if a comparison lacks what some output needs of it."""
    need(table, "after")
    for side in table["before"], table["after"]:
        need(side, "sets", "throttled", "lost")
    for function in table["functions"]:
        need(function, "status")
        for change in function["metrics"].values():
            need(change, "before", "after", "change", "significant")
            need_values(change[name] for name in ("before", "after", "change"))


def check_table(table: Table) -> None:
    """The same of a table."""
    need(table, "sets", "throttled", "lost", "observations", "events")
    for event in table["events"]:
        need(event, "name", "unit")
    for function in table["functions"]:
        need(function, "observations", "events")
        need(function["events"], *(event["name"] for event in table["events"]))
        need_values(function["events"].values())
        need_values(function["metrics"].values())


def value_of(estimate: Table | None) -> float:
    """Returns an estimate, 0 if there is none."""
    return estimate["value"] if estimate else 0


def is_weak(estimate: Table | None) -> bool:
    """Returns whether an estimate is not to be relied on."""
    return bool(estimate) and estimate.get("mark") == "weak"


def has_any(table: Table) -> bool:
    """Returns whether a table has an observation."""
    return any(table["observations"].values())


def unit_of(table: Table, event: str | None) -> str:
    """Returns the unit of an event's counts: nanoseconds, or what is counted, if its name tells."""
    unit = next((one["unit"] for one in table["events"] if one["name"] == event), "events")
    noun = re.search(f"(?:^|[-_.])({UNITS})$", event or "")
    return noun[1] if noun and unit == "events" else unit


def is_diff(table: Table) -> bool:
    """Returns whether this is a comparison of two tables."""
    return "before" in table


def check_folder(path: Path) -> None:
    """Raises ReportError if there can be no file of this name, or if it must not be replaced."""
    if not is_stdout(path) and (path.is_dir() or not Path(os.path.realpath(path)).parent.is_dir()):
        raise ReportError(
            f"{path}: is a folder: name a file in it"
            if path.is_dir()
            else f"{path}: there is no such folder: make it first"
        )
    if is_regular(path) and path.exists() and not is_writable(path):
        raise ReportError(f"{path}: is read-only: name another file, or make it writable")


def is_writable(path: Path) -> bool:
    """Returns whether a file may be replaced; root keeps what nobody may write, too."""
    return os.access(path, os.W_OK) and path.stat().st_mode & 0o222 != 0


def write_output(path: Path, content: bytes) -> None:
    """Writes a file, to which `path` may link; - is the standard output.

    A regular file is replaced when the new one is complete. Others, such as pipes, stay what they
    are. Raises ReportError, and BrokenPipeError if nobody reads the standard output.
    """
    if is_stdout(path):
        write_stdout(content)
        return
    check_folder(path)
    try:
        if is_regular(path):
            replace(Path(os.path.realpath(path)), content)
        else:
            path.write_bytes(content)
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror or error}: name another file") from None


def write_stdout(content: bytes) -> None:
    """Writes to the standard output, and escapes control characters on a terminal.

    Raises ReportError, and BrokenPipeError if nobody reads.
    """
    if not sys.stdout:
        raise ReportError("cannot write the table: stdout is closed: send the output elsewhere")
    if sys.stdout.isatty():
        content = printable(content.decode("utf-8", "surrogateescape")).encode()
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except OSError as error:
        # do not try again to write the rest at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise ReportError(
            f"cannot write the table: {error.strerror}: send the output elsewhere"
        ) from None


def replace(path: Path, content: bytes) -> None:
    """Writes a file beside this one, which then takes its place and its mode."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    try:
        new.unlink(missing_ok=True)  # of a process that was killed
        private = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(new, private, 0o666 if mode is None else 0o600), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def is_stdout(path: Path) -> bool:
    """Returns whether an output is the standard output."""
    return str(path) == "-"


def is_regular(path: Path) -> bool:
    """Returns whether an output is a regular file, or will be one."""
    return not is_stdout(path) and (path.is_file() or not path.exists())
