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

LINES, COLUMNS = 30, 110
PATIENCE = 30
HOME = "\x1b[H"
ERASE = re.compile(r"\x1b\[\d*J")
TOKEN = re.compile(r"\x1b\[([?\d;]*)([@-~])|\x1b[()].|\x1b[=>78M]|[\s\S]")
HALF = re.compile(r"(\x1b([()]|\[[?\d;]*)?)?\Z")


class Terminal:
    """A command in a terminal, and its screen. It knows the escape sequences of perf's browser."""

    def __init__(self, *command: object, **environment: str) -> None:
        self.screen = [[" "] * COLUMNS for _ in range(LINES)]
        self.line = self.column = 0
        self.columns = COLUMNS
        self.raw = ""
        self.fed = self.resized = 0
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

    def feed(self, text: str) -> None:
        """Writes to the screen, but for half a sequence at the end."""
        self.raw += text
        begin, self.fed = self.fed, HALF.search(self.raw, self.fed).start()
        for token in TOKEN.finditer(self.raw, begin, self.fed):
            if token[2]:
                self.control(
                    token[2], [int(number or 1) for number in token[1].strip("?").split(";")]
                )
            elif token[0] == "\r":
                self.column = 0
            elif token[0] == "\n":
                self.line = min(self.line + 1, LINES - 1)
            elif token[0] == "\b":
                self.column = max(self.column - 1, 0)
            elif token[0] >= " ":
                self.screen[self.line][min(self.column, self.columns - 1)] = token[0]
                self.column += 1

    def control(self, what: str, numbers: list[int]) -> None:
        """Obeys one control sequence."""
        if what == "H":
            self.line, self.column = numbers[0] - 1, (numbers + [1])[1] - 1
        elif what == "C":
            self.column += numbers[0]
        elif what == "K":
            self.screen[self.line][self.column :] = [" "] * (COLUMNS - self.column)
        elif what == "J" and numbers[0] == 2:
            self.screen = [[" "] * COLUMNS for _ in range(LINES)]
        elif what == "J":
            self.control("K", [])
            for line in self.screen[self.line + 1 :]:
                line[:] = [" "] * COLUMNS

    def lines(self) -> list[str]:
        """The screen, without the scroll bar."""
        return ["".join(line[:-1]).rstrip() for line in self.screen]

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
                self.feed(self.decoder.decode(os.read(self.file, 65536)))
            except OSError:
                return False
        return True

    def press(self, keys: str) -> None:
        os.write(self.file, keys.encode())

    def resize(self, lines: int, columns: int) -> None:
        """Changes the size of the screen, and clears it."""
        self.resized = len(self.raw)
        self.columns = columns
        self.screen = [[" "] * COLUMNS for _ in range(LINES)]
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def end(self) -> int:
        """Waits for the end of the command and returns its exit status; does not wait forever."""
        late = time.monotonic() + PATIENCE
        while self.read():
            if time.monotonic() > late:
                os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
