# SPDX-License-Identifier: GPL-2.0
"""Shows the progress of long work at a terminal, and nothing elsewhere."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import IO

from .sums import streams

CLEAR = "\r\033[K"
CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\udc80-\udcff]")  # but tabs and ends of lines
# In a program's output for a terminal: escape sequences; a line that the next one overwrites.
ESCAPES, PASSING = re.compile(r"\033\[[0-9;?]*[A-Za-z]"), re.compile(r"[^\n]*\r(?!\n)")


def printable(text: str) -> str:
    """A text to print: \\xNN is a byte of a control character, as perf prints it."""

    def escaped(found: re.Match) -> str:
        return "".join(f"\\x{byte:02x}" for byte in found[0].encode("utf-8", "surrogateescape"))

    return CONTROLS.sub(escaped, text)


class Progress:
    """One line on a terminal's standard error, which is gone when the work is done."""

    def __init__(self) -> None:
        self.quiet = not sys.stderr.isatty()
        self.start = time.monotonic()
        self.shown = ""

    def show(self, text: str) -> None:
        """Replaces the previous text."""
        text = printable(text)
        seconds = time.monotonic() - self.start
        line = f"{CLEAR}{text} ({seconds:.0f} s)" if seconds >= 1 else f"{CLEAR}{text}"
        if not self.quiet and line != self.shown:
            sys.stderr.write(line)
            sys.stderr.flush()
            self.shown = line

    def clear(self) -> None:
        """Removes the line."""
        if not self.quiet:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def run(self, command: Sequence[str], output: IO[bytes], text: str) -> tuple[int, str]:
        """Runs a program; returns its exit status and messages. Its progress is shown instead."""
        if self.quiet:
            done = subprocess.run(
                command, stdout=output, stderr=subprocess.PIPE, check=False, **streams(command)
            )
            return done.returncode, done.stderr.decode("utf-8", "replace")
        ours, theirs = pty.openpty()
        try:
            with os.fdopen(theirs, "wb") as errors:
                process = subprocess.Popen(
                    command, stdout=output, stderr=errors, **streams(command)
                )
            with process:
                try:
                    said = self.listen(ours, text)
                except BaseException:
                    process.kill()
                    raise
        finally:
            os.close(ours)
            self.clear()
        said = PASSING.sub("", said)
        return process.returncode, ESCAPES.sub("", said).replace("\r\n", "\n")

    def listen(self, terminal: int, text: str) -> str:
        """Yields all output to a terminal until its other end is closed."""
        said = b""
        while True:
            passing = (
                ESCAPES.sub("", said.decode("utf-8", "replace"))
                .rstrip("\r")
                .replace("\n", "\r")
                .rpartition("\r")[2]
                .strip()
            )
            self.show(f"{text}: {passing}" if passing else text)
            if select.select([terminal], [], [], 0.25)[0]:
                try:
                    said += os.read(terminal, 4096)
                except OSError:  # EIO: closed
                    return said.decode("utf-8", "replace")
