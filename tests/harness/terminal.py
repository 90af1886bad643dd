# SPDX-License-Identifier: GPL-2.0
"""A terminal for a command, and the text on its screen. Guests import this, too."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable

import pyte

LINES, COLUMNS = 30, 110
PATIENCE = 30
HOME = "\x1b[H"
ERASE = re.compile(r"\x1b\[\d*J")


class Terminal:
    """A command in a terminal, and its screen."""

    def __init__(self, *command: object, **environment: str) -> None:
        self.screen = pyte.Screen(COLUMNS, LINES)
        self.stream = pyte.Stream(self.screen)
        self.raw = ""
        self.resized = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.pid, self.file = pty.fork()
        if not self.pid:
            os.environ.update(
                {
                    "TERM": "xterm",
                    "LC_ALL": "C.UTF-8",
                    "PERF_CONFIG": "/dev/null",
                    "PERF_PAGER": "cat",
                    "PATH": "/usr/bin:/bin",
                    **environment,
                }
            )
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            os.execv(str(command[0]), [str(word) for word in command])

    def lines(self) -> list[str]:
        """The screen, without the scroll bar."""
        return [line[:-1].rstrip() for line in self.screen.display]

    def is_whole(self) -> bool:
        """False while a screen is half drawn: top begins one at home, and erases below it last."""
        begin = self.raw.rfind(HOME, self.resized)
        if begin < 0:
            return not self.resized
        return bool(ERASE.search(self.raw, begin))

    def wait(self, condition: Callable[[], object], reason: str = "not yet") -> None:
        """Waits until a whole screen meets a condition. Raises AssertionError after a while."""
        end = time.monotonic() + PATIENCE
        while not (self.is_whole() and condition()):
            # perf does not see a signal that comes between its drawing and its waiting for keys
            if self.resized and self.resized == len(self.raw):
                os.kill(self.pid, signal.SIGWINCH)
            if time.monotonic() > end or not self.read():
                raise AssertionError(f"{reason} in:\n" + "\n".join(self.lines()))

    def until(self, pattern: str) -> list[str]:
        """Waits until a whole screen matches; returns it. Raises AssertionError after a while."""
        self.wait(lambda: re.search(pattern, "\n".join(self.lines()), re.M), f"no {pattern}")
        return self.lines()

    def read(self) -> bool:
        """Reads what the command has written; returns False when it has ended."""
        if select.select([self.file], [], [], 1)[0]:
            try:
                text = self.decoder.decode(os.read(self.file, 65536))
            except OSError:
                return False
            self.raw += text
            self.stream.feed(text)
        return True

    def press(self, keys: str) -> None:
        os.write(self.file, keys.encode())

    def resize(self, lines: int, columns: int) -> None:
        """Tells the command a smaller size, and clears the screen."""
        self.resized = len(self.raw)
        self.screen.resize(LINES, columns)
        self.screen.erase_in_display(2)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def end(self) -> int:
        """Waits for the end of the command and returns its exit status; does not wait forever."""
        late = time.monotonic() + PATIENCE
        while self.read():
            if time.monotonic() > late:
                os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
