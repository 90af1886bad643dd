# SPDX-License-Identifier: GPL-2.0
"""perf functions top in the emulated machine, at a terminal and without one.

Its tables of the benchmark are compared with the truth, which `benchmark --truth` counts.
"""

import json
import re
import shutil
import signal
import unittest
from pathlib import Path

import pyte
import wcwidth

from tests.harness.env import CHECK, TOP, in_guest, words
from tests.harness.tables import objects
from tests.harness.truth import LEAVES, read_truth

MINUTES = 4
MACHINES = "arm64"

SHARE = CHECK / "top"
LEADER = "cycles/period=999700,alt-period=300,alt-period-jitter=18/"
EVENTS = f"{{{LEADER},instructions,page-faults}}:uS"
# A message of perf record of 7.3 if the kernel has no CONFIG_SCHEDSTATS, as in the machine.
NO_SCHEDSTAT = "Failed to open /proc/schedstat"
# Runs in the guest; keeps what is seen on the screen after each step, by the step's name.
AT_TERMINAL = r"""
import json, os, re, shutil, signal, subprocess, sys, termios, time
from terminal import Terminal

PERF = "/usr/bin/perf"
seen = {}


def samples(terminal):
    found = re.search(r"(\d+) (windows|event samples)", terminal.lines()[0])
    return int(found[1]) if found else 0


def top(*options):
    terminal = Terminal(PERF, "functions", "top", "--windows-only", "-d", "0.5", *options)
    terminal.before = termios.tcgetattr(terminal.file)
    return terminal


def leave(name, terminal, keys):
    terminal.press(keys) if isinstance(keys, str) else os.kill(terminal.pid, keys)
    while terminal.read():
        pass
    after = termios.tcgetattr(terminal.file)
    seen[name] = {
        "status": terminal.end(), "restored": after == terminal.before, "raw": terminal.raw
    }


def resize(terminal, lines, columns):
    terminal.resize(lines, columns)
    end = time.monotonic() + 1
    while time.monotonic() < end and terminal.read():
        pass
    # without what was still written for the size before
    terminal.resize(lines, columns)


def press(terminal, keys, pattern):
    terminal.press(keys)
    return terminal.until(pattern)


def until_stopped(terminal):
    state = lambda: open(f"/proc/{terminal.pid}/stat").read().rsplit(")", 1)[1].split()[0]
    while state() != "T":
        time.sleep(0.01)


def running(name):
    return subprocess.run(["pgrep", name], stdout=-1).stdout.decode()


busy = subprocess.Popen(["benchmark", "--iterations", "10000000", "0", "1"], stdout=-3)
terminal = top("-p", busy.pid, "--last", "0", "-F", "#,CPI,%CY,%I")
terminal.until("^dcache_miss")
terminal.wait(lambda: samples(terminal) > 1000)
seen["table"] = terminal.lines()
seen["help"] = press(terminal, "h", "^q  quit")
press(terminal, "x", "^dcache_miss")
press(terminal, "s", "column to sort by")
press(terminal, "FOO\r", "there is no column FOO")
press(terminal, "s", "column to sort by")
seen["sorted"] = press(terminal, "symbolx\x7f\r", r"^symbol\*[\s\S]*\ndcache_miss")
press(terminal, "e", r"^number of rows \(0")
press(terminal, "3\r", r"\A(?![\s\S]*isb)")
seen["few"] = terminal.lines()
press(terminal, "e", r"^number of rows \(0")
press(terminal, "0\r", "isb")
press(terminal, "f", "least share")
seen["large"] = press(terminal, "15\r", r"\A(?![\s\S]*isb)")
press(terminal, "f", "least share")
press(terminal, "0\r", "isb")
press(terminal, "d", "from one table to the next")
press(terminal, "0.3\r", r"\A(?![\s\S]*from one table to the next)")
before = samples(terminal)
terminal.press("z")
terminal.wait(lambda: 0 < samples(terminal) < before)
seen["zeroed"] = [before, samples(terminal)]
terminal.until("^dcache_miss")
press(terminal, "l", "seconds that a table covers")
press(terminal, "1\r", r"\A(?![\s\S]*seconds that)")
time.sleep(2.5)
seen["last"] = terminal.until("top: [01][.]. s")
resize(terminal, 8, 40)
terminal.until("^dcache_miss")
seen["small"] = terminal.lines()
terminal.resize(30, 110)
terminal.until("^dcache_miss.*")
# ^Z, and back
terminal.press("\x1a")
until_stopped(terminal)
seen["stopped"] = termios.tcgetattr(terminal.file) == terminal.before
terminal.resize(30, 110)
os.kill(terminal.pid, signal.SIGCONT)
terminal.until("^dcache_miss")
leave("q", terminal, "Q")
seen["goes on"] = busy.poll() is None

for name, keys in (("^C", "\x03"), ("TERM", signal.SIGTERM)):
    terminal = top("-p", busy.pid)
    terminal.until("^dcache_miss")
    leave(name, terminal, keys)
terminal = top("-p", busy.pid, "--count", "2")
leave("count", terminal, "")
busy.kill()
busy.wait()
# ^Z in a shell, and back: the program runs again, and so does perf record
terminal = Terminal("/bin/sh", "-i")
terminal.press(f"{PERF} functions top -d 0.5 --last 0 -- benchmark --iterations 10000000 0 1\r")
terminal.until("^dcache_miss")
terminal.press("\x1a")
terminal.until("Stopped")
terminal.press("fg\r")
begun = samples(terminal)
terminal.wait(lambda: samples(terminal) > begun + 1000)
terminal.press("q")
while running("benchmark"):
    terminal.read()
terminal.press("exit\r")
terminal.end()
# where nothing runs, from the first moment on
idle = subprocess.Popen(["sleep", "1000"])
terminal = top("-p", idle.pid)
terminal.until("no samples yet")
leave("idle", terminal, "q")
idle.kill()
# the end of a program, whose output is not on the screen
terminal = top("--", "sh", "-c", "echo LOUD; echo LOUD >&2; benchmark 0 1; exit 7")
leave("program", terminal, "")
# a program that does not end when it is told to; it sleeps, which takes no time in this machine
for name in "q twice", "patience":
    terminal = top("--", "sh", "-c", "trap '' TERM; benchmark 0 1; exec tail -f /dev/null")
    terminal.until("^dcache_miss")
    seen["ending"] = press(terminal, "q", "ending")
    begin = time.monotonic()
    time.sleep(1)
    leave(name, terminal, "q" if name == "q twice" else "")
    seen[f"{name}, seconds"] = time.monotonic() - begin
# the terminal goes away
terminal = top("--", "benchmark", "--iterations", "10000000", "0", "1")
terminal.until("^dcache_miss")
os.close(terminal.file)
os.waitpid(terminal.pid, 0)
seen["left"] = running("perf|benchmark|tail")
# a name that a terminal would obey
evil = "/tmp/e\x1b[2Jvil"
shutil.copy("/usr/bin/benchmark", evil)
terminal = top("--by", "comm", "--", evil, "0", "1")
leave("evil", terminal, "")
json.dump(seen, open("/share/seen.json", "w"))
"""

COMMANDS = f"""
sysctl -qw kernel.perf_event_max_sample_rate=10000000 kernel.perf_cpu_time_max_percent=0
cp /share/terminal.py /share/at_terminal.py /tmp
cd /tmp
benchmark --truth 0 1 > /share/truth
benchmark --faults --truth 0 1 > /share/truth-faults
perf functions top -j -d 0.5 --last 0 -e '{EVENTS}' -- benchmark --faults 0 1 \
	> /share/program.json 2> /share/program.said
benchmark --iterations 10000000 0 1 > /dev/null &
busy=$!
sleep 0.1
perf functions top --windows-only -p $busy -d 0.5 --count 3 --last 0 > /share/tables \
	2> /share/tables.said
perf functions top --windows-only -p $busy -j -d 0.2 --last 1 --count 10 > /share/sliding.json
kill $busy
wait || true
# the status of each, and what it says
try() {{
	local name=$1 status=0
	shift
	"$@" > /share/$name.out 2> /share/$name.said < /dev/null || status=$?
	echo $status >> /share/$name.said
}}
try status perf functions top --windows-only -- sh -c 'benchmark 0 1; exit 3'
try nothing perf functions top --windows-only -- /nowhere/program
try process perf functions top --windows-only -p 999999
try delay perf functions top --windows-only --delay 0
try separate perf functions top --windows-only --stdio -- \
	sh -c 'echo to stdout; echo to stderr >&2; benchmark 0 1'
# nothing runs for a while
try idle perf functions top -j -d 0.3 --count 8 -e '{EVENTS}' -- \
	sh -c 'benchmark 0 1; sleep 3; exec benchmark --iterations 10000000 0 1'
# a program that does not end when it is told to
try stubborn timeout --preserve-status -s INT 3 perf functions top --windows-only -d 60 --last 0 -- \
	sh -c "trap '' INT TERM; benchmark 0 1; exec tail -f /dev/null"
# timeout(1) sends its signal twice: to the command and to its group
perf functions top --windows-only --stdio -- benchmark --iterations 10000000 0 1 \
	> /share/killed.out 2> /share/killed.said &
killed=$!
until pgrep benchmark > /dev/null; do sleep 0.1; done
kill -KILL $(pgrep -P $killed)
status=0
wait $killed || status=$?
echo $status >> /share/killed.said
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
PYTHONPATH=/share python3 at_terminal.py
"""


def setUpModule() -> None:
    shutil.rmtree(SHARE, ignore_errors=True)
    SHARE.mkdir(parents=True)
    shutil.copy(TOP / "tests/harness/terminal.py", SHARE)
    for module in pyte, wcwidth:
        shutil.copytree(Path(module.__file__).parent, SHARE / module.__name__)
    (SHARE / "at_terminal.py").write_text(AT_TERMINAL)
    in_guest(COMMANDS, share=SHARE, timeout=1800)
    for file in SHARE.glob("*.said"):
        file.write_text(file.read_text().replace(f"{NO_SCHEDSTAT}\n", ""))


def rows(lines: list[str]) -> dict[str, list[float]]:
    """The values by function in a table on the screen, which is given as lines."""
    return {
        line[0]: [float(value.lstrip("~").replace("-", "nan")) for value in line[1:]]
        for line in words("\n".join(lines))
        if line and line[0] in LEAVES
    }


def said(name: str) -> tuple[list[str], int]:
    """The output of a command by line, and its exit status."""
    *lines, status = (SHARE / f"{name}.said").read_text().splitlines()
    return lines, int(status)


class WithoutTerminal(unittest.TestCase):
    """Tables that follow one another."""

    def setUp(self) -> None:
        self.truth = read_truth((SHARE / "truth").read_text())

    def test_program(self):
        """The last object covers all and is true; earlier ones cover the beginning."""
        parts = objects((SHARE / "program.json").read_text())
        self.assertEqual((SHARE / "program.said").read_text(), "")
        self.assertGreaterEqual(len(parts), 2)
        numbers = [part["observations"]["windows"] for part in parts]
        # the first two tables may be of the same windows
        self.assertEqual(numbers, sorted(numbers))
        self.assertLess(numbers[0], numbers[-1] / 2)
        self.assertEqual(len({part["time"][0] for part in parts}), 1)
        table = {row["symbol"]: row for row in parts[-1]["functions"]}
        truth = read_truth((SHARE / "truth-faults").read_text())
        for name, line in truth.items():
            share = table[name]["metrics"]["%CY"]["value"]
            self.assertAlmostEqual(share, 100 * line.share, delta=4)
        rate, line = table["dcache_miss"]["metrics"]["PF/KI"], truth["dcache_miss"]
        self.assertGreater(table["dcache_miss"]["events"]["page-faults"]["value"], 100)
        self.assertLess(
            abs(rate["value"] / 1000 - line.faults / line.length), 4 * rate["error"] / 1000
        )

    def test_tables(self):
        """Each begins with its times, which end later and later; --count limits their number."""
        tables = (SHARE / "tables").read_text().split("\n\n")
        self.assertEqual((SHARE / "tables.said").read_text(), "")
        self.assertEqual(len(tables), 3)
        spans = [re.match(r"# --time ([\d.]+),([\d.]+)\n", table) for table in tables]
        self.assertEqual(len({span[1] for span in spans}), 1)
        ends = [float(span[2]) for span in spans]
        for before, after in zip(ends, ends[1:]):
            self.assertAlmostEqual(after - before, 0.5, delta=0.26)
        shares = {name: values[2] for name, values in rows(tables[-1].splitlines()).items()}
        self.assertEqual(set(shares), set(LEAVES))
        for name, share in shares.items():
            self.assertAlmostEqual(share, 100 * self.truth[name].share, delta=6)

    def test_last(self):
        """Each table has all windows of the last second, one for each million cycles, once."""
        parts = objects((SHARE / "sliding.json").read_text())
        self.assertEqual(len(parts), 10)
        for number, part in enumerate(parts):
            begin, end = part["time"]
            if number > 5:
                self.assertAlmostEqual(end - begin, 1, delta=0.25)
            windows = part["observations"]["windows"]
            # a slice of a fifth of a second must neither be missing nor count twice
            seconds = end - begin
            self.assertAlmostEqual(windows, 1000 * seconds, delta=100 * seconds + 20)

    def test_status(self):
        """The status is the program's; its output goes to stderr."""
        self.assertEqual(said("status")[1], 3)
        self.assertIn("dcache_miss", (SHARE / "status.out").read_text())
        lines, status = said("separate")
        self.assertEqual(status, 0)
        self.assertEqual(lines[:2], ["to stdout", "to stderr"])
        self.assertNotIn("to std", (SHARE / "separate.out").read_text())

    def test_idle(self):
        """No table comes twice: each one has more windows."""
        lines, status = said("idle")
        self.assertEqual((lines, status), ([], 0))
        parts = objects((SHARE / "idle.out").read_text())
        self.assertEqual(len(parts), 8)
        numbers = [sum(part["observations"].values()) for part in parts]
        self.assertEqual(numbers, sorted(set(numbers)))
        ends = [part["time"][1] for part in parts]
        self.assertGreater(max(b - a for a, b in zip(ends, ends[1:])), 2)

    def test_stubborn(self):
        """The last table comes after the program was killed."""
        self.assertEqual(said("stubborn"), ([], 0))
        self.assertIn("dcache_miss", (SHARE / "stubborn.out").read_text())

    def test_record_killed(self):
        """Nobody but this process can say it."""
        lines, status = said("killed")
        self.assertEqual(status, 128 + signal.SIGKILL)
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], "because perf record was killed: Killed: start it again$")

    def test_refused(self):
        """One line says what is wrong."""
        for name, reason in (
            ("nothing", "No such file or directory"),
            ("process", "no such process|No such process"),
            ("delay", "--delay takes a number from 0.1"),
        ):
            with self.subTest(name):
                lines, status = said(name)
                self.assertNotEqual(status, 0)
                self.assertRegex("\n".join(lines), reason)
                # the usage of an option may follow
                self.assertTrue(len(lines) == 1 or "Usage:" in lines[2], lines)
                self.assertEqual((SHARE / f"{name}.out").read_text(), "")


class AtTerminal(unittest.TestCase):
    """The screen."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.seen = json.loads((SHARE / "seen.json").read_text())
        cls.truth = read_truth((SHARE / "truth").read_text())

    def test_table(self):
        status, titles, *lines = self.seen["table"]
        self.assertRegex(
            status, r"^perf functions top: [\d.]+ s, \d+ event samples  h: help  q: quit$"
        )
        self.assertEqual(titles.split(), ["symbol", "#", "CPI", "%CY*", "%I"])
        table = rows(lines)
        self.assertEqual(set(table), set(LEAVES))
        for name, (_, cycles, share, _) in table.items():
            self.assertEqual(cycles, 1, name)  # this machine has no caches
            self.assertAlmostEqual(share, 100 * self.truth[name].share, delta=4)
        shares = [values[2] for values in table.values()]
        self.assertEqual(shares, sorted(shares, reverse=True))

    def test_keys(self):
        names = [line.split()[0] for line in self.seen["sorted"][2:] if line]
        self.assertEqual([name for name in names if name in LEAVES], sorted(LEAVES))
        few = [line.split()[0] for line in self.seen["few"][2:] if line and line[0] != "#"]
        self.assertEqual((len(few), few), (3, sorted(few)))
        self.assertIn(sorted(LEAVES)[0], few)
        for _, _, share, _ in rows(self.seen["large"]).values():
            self.assertGreaterEqual(share, 15)
        self.assertIn("dcache_miss", rows(self.seen["large"]))
        before, after = self.seen["zeroed"]
        self.assertLess(after, before / 2)
        # one second, within a slice
        seconds = float(re.search(r"top: ([\d.]+) s", self.seen["last"][0])[1])
        self.assertLess(seconds, 1.6)

    def test_size(self):
        """A small screen has the first rows and the columns that fit in."""
        small = self.seen["small"]
        self.assertEqual(len([line for line in small if line]), 7)
        self.assertTrue(all(len(line) <= 40 for line in small), small)
        self.assertEqual(list(rows(small))[0], sorted(LEAVES)[0])

    def test_ends(self):
        """The terminal is restored, and the last table stays on it."""
        for name in "q", "^C", "TERM", "count", "idle", "program", "q twice", "patience":
            with self.subTest(name):
                end = self.seen[name]
                self.assertTrue(end["restored"])
                screen, left = end["raw"].rsplit("\x1b[?1049l", 1)
                left = left.replace(f"{NO_SCHEDSTAT}\r\n", "")
                self.assertIn("\x1b[?1049h\x1b[?25l", screen)
                self.assertTrue(screen.endswith("\x1b[?25h"))
                if name == "program":
                    self.assertEqual(end["status"], 7)
                    self.assertIn("dcache_miss", left)
                    self.assertNotIn("LOUD", end["raw"])
                elif name == "idle":
                    self.assertEqual((end["status"], left), (0, ""))
                else:
                    self.assertEqual(end["status"], 0)
                    self.assertIn("dcache_miss", left)
        self.assertTrue(self.seen["goes on"])
        self.assertTrue(self.seen["stopped"])

    def test_program_that_goes_on(self):
        """Another q, or 10 seconds, kill it, so that nothing of it is left."""
        self.assertRegex(self.seen["ending"][0], r"samples  ending  q: at once$")
        self.assertLess(self.seen["q twice, seconds"], 8)
        self.assertGreater(self.seen["patience, seconds"], 8)
        self.assertLess(self.seen["patience, seconds"], 20)
        self.assertEqual(self.seen["left"], "")

    def test_control_characters_are_escaped(self):
        self.assertNotIn("\x1b[2J", self.seen["evil"]["raw"])
        self.assertIn(r"e\x1b[2Jvil", self.seen["evil"]["raw"])
