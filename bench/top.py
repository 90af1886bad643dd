# SPDX-License-Identifier: GPL-2.0
"""Measures how much of a processor perf functions top takes, with its perf record.

top runs at a terminal, whose screen has 30 lines. A program reads what top writes there.

The emulated machine has one processor here, which is busy, and takes a nanosecond for each
instruction: with more of them, the time of one goes on while the others run. Two delays between
tables tell what samples take and what tables take. On four processors there are four times as
many samples, and as many tables as on one.

A real processor executes more than one instruction in a nanosecond, but also more cycles. So top
also runs on this computer, with as many samples per second as four processors of 3 GHz take. These
are samples of a clock, because the kernel of this computer may not alternate.

Times are those of both processes' clocks, in user and in kernel mode, for 20 seconds. They begin
20 seconds after the start, because top first reads the symbols of what runs. The buffers of all
processors together are as large as those of four.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.guest import OUT, SHARE, unthrottled
from bench.markdown import prose
from tests.harness.env import PERF, TOP, run

TITLE = "Cost of perf functions top"
DEFAULT = 2  # seconds from one table to the next
DELAYS = DEFAULT, 10
CPUS = 4
HERTZ = 3e9  # of the processors that this computer stands for
PERIOD = 1e6  # cycles from one window to the next; there are two samples
GOAL = 3.0  # percent of one processor
# usage: measure.py OUTPUT DELAYS COMMAND...
MEASURE = r"""
import glob, json, re, sys, time
from terminal import Terminal

def fields(file):
    return open(file).read().rsplit(")", 1)[1].split()

def children(pid):
    for file in glob.glob("/proc/[0-9]*/stat"):
        try:
            if int(fields(file)[1]) == pid:
                yield int(file.split("/")[2])
        except FileNotFoundError:
            pass

def used(pid):
    # the clock of a process, see clock_getcpuclockid(3): it has no ticks
    return sum(time.clock_gettime(~one << 3 | 2) for one in (pid, *children(pid)))

class Unseen(Terminal):
    # top would also see what draws its screen
    def feed(self, text):
        self.raw += text

    def watch(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read():
            pass

def measure(delay):
    terminal = Unseen(*sys.argv[3:], "-d", delay)
    terminal.watch(20)
    before, start = used(terminal.pid), time.monotonic()
    terminal.watch(20)
    after, end = used(terminal.pid), time.monotonic()
    # windows, of which each sample of a plain period is one
    seconds, windows = re.findall(r"([\d.]+) s, (\d+) windows", terminal.raw)[-1]
    terminal.press("q")
    terminal.end()
    return {
        "share": 100 * (after - before) / (end - start),
        "samples": int(windows) / float(seconds),
    }

shares = {delay: measure(delay) for delay in json.loads(sys.argv[2])}
json.dump(shares, open(sys.argv[1], "w"))
"""
COMMAND = "functions", "top", "-a"


def prepare(folder: Path) -> None:
    """Puts what measures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "measure.py").write_text(MEASURE, encoding="utf-8")
    shutil.copy(TOP / "tests/harness/terminal.py", folder)


def emulated() -> dict:
    """Percent of a processor, by delay; of samples and of tables; on four processors."""
    prepare(SHARE)
    unthrottled(
        "mkdir -p /dev/pts\n"
        "mount -t devpts devpts /dev/pts\n"
        "benchmark --iterations 100000000 0 1 > /dev/null &\n"
        "cp measure.py terminal.py /tmp; cd /tmp\n"
        f"python3 measure.py /share/top.json '{json.dumps(DELAYS)}' /usr/bin/perf "
        f"{' '.join(COMMAND)}\n"
        "kill $!\n"
    )
    measured = json.loads((SHARE / "top.json").read_text(encoding="utf-8"))
    short, long = (measured[str(delay)]["share"] for delay in DELAYS)
    table = (short - long) / (1 / DELAYS[0] - 1 / DELAYS[1])  # one in each second
    samples = short - table / DELAYS[0]
    return {
        "shares": {str(delay): measured[str(delay)]["share"] for delay in DELAYS},
        "samples": round(samples, 3),
        "tables": round(table / DEFAULT, 3),
        "total": round(CPUS * samples + table / DEFAULT, 2),
    }


def here() -> dict:
    """Percent of a processor of this computer and samples in a second, or a reason for neither."""
    processors = os.cpu_count() or 1
    period = round(1e9 * processors / (CPUS * 2 * HERTZ / PERIOD))  # ns
    buffers = f"{1 << max(CPUS // processors, 1).bit_length() - 1}M"
    events = f"{{cpu-clock/period={period}/,page-faults,minor-faults,major-faults,cs}}:uS"
    program, output = OUT / "measure.py", OUT / "top-here.json"
    output.unlink(missing_ok=True)
    prepare(OUT)
    busy = (str(PERF), "test", "-w", "benchmark", "--", "--iterations", "100000000", "0", "1")
    programs = [subprocess.Popen(busy, stdout=subprocess.DEVNULL) for _ in range(processors)]
    try:
        top = PERF, *COMMAND, "-m", buffers, "-e", events
        run(sys.executable, program, output, json.dumps([DEFAULT]), *top)
    finally:
        for one in programs:
            one.kill()
            one.wait()
    if not output.exists():
        return {"reason": "perf functions top -a printed no table"}
    return json.loads(output.read_text(encoding="utf-8"))[str(DEFAULT)]


def measure() -> dict:
    """The results of both machines."""
    return {**emulated(), "here": here()}


def met(share: float) -> str:
    """Says whether a share of one processor is within the goal."""
    return "met" if share <= GOAL else "not met"


def of_here(result: dict) -> str:
    """A row with the result of this computer."""
    if "reason" in result:
        return f"| this computer: {result['reason']} | |"
    return (
        f"| this computer, {result['samples']:,.0f} samples in a second, a table every "
        f"{DEFAULT} s | {result['share']:.2f} |"
    )


def report(result: dict) -> str:
    """The result as Markdown."""
    about = f"""
        Time that `perf functions top -a` and its `perf record` take from one processor while the
        benchmark keeps all processors busy. top runs at a terminal of 30 lines. In the emulated
        machine, each cycle and each instruction is a nanosecond. The default period is 999,700
        cycles, so each processor takes 2,000 samples per second. The rows with a table every
        {DELAYS[0]} and {DELAYS[1]} seconds were measured on one processor. The next three are
        calculated from them. The last row was measured on the computer that runs the emulator, with
        as many samples of a clock as {CPUS} processors of {HERTZ / 1e9:.0f} GHz take.
    """
    goal = f"""
        Goal for {CPUS} processors: at most {GOAL:.0f} %. It is {met(result["total"])} in the
        emulated machine.
    """
    if "share" in result["here"]:
        goal += f"It is {met(result['here']['share'])} on this computer."
    lines = [
        prose(about),
        "",
        "| | % of one processor |",
        "|---|--:|",
        *(f"| a table every {time} s | {share:.2f} |" for time, share in result["shares"].items()),
        f"| samples of one processor, without tables | {result['samples']:.2f} |",
        f"| a table every {DEFAULT} s, without samples | {result['tables']:.2f} |",
        f"| {CPUS} processors, a table every {DEFAULT} s | {result['total']:.2f} |",
        of_here(result["here"]),
        "",
        prose(goal),
    ]
    return "\n".join(lines)
