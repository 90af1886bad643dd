# SPDX-License-Identifier: GPL-2.0
"""Measures how much of a processor perf functions top takes, with its perf record.

The emulated machine has one processor here, which is busy, and takes a nanosecond for each
instruction: with more of them, the time of one goes on while the others run. Two delays between
tables tell what samples take and what tables take. On four processors there are four times as
many samples, and as many tables as on one. Times are those of both processes' clocks, in user and
in kernel mode, from 5 seconds after the start.
"""

import json

from bench.guest import SHARE, unthrottled
from bench.markdown import prose

TITLE = "Cost of perf functions top"
DELAYS = 1, 5
DEFAULT = 2  # seconds from one table to the next
CPUS = 4
GOAL = 1.0  # percent of one processor
MEASURE = r"""
import glob, json, subprocess, time

def fields(file):
    return open(file).read().rsplit(")", 1)[1].split()

def used(pid):
    stats = glob.glob("/proc/[0-9]*/stat")
    both = (pid, *(int(file.split("/")[2]) for file in stats if int(fields(file)[1]) == pid))
    # the clock of a process, see clock_getcpuclockid(3): it has no ticks
    return sum(time.clock_gettime(~one << 3 | 2) for one in both)

def share(delay):
    top = subprocess.Popen(
        ["perf", "functions", "top", "-a", "--stdio", "-d", str(delay)], stdout=subprocess.DEVNULL
    )
    time.sleep(5.2)
    before, start = used(top.pid), time.monotonic()
    time.sleep(20)
    after, end = used(top.pid), time.monotonic()
    top.terminate()
    top.wait()
    return 100 * (after - before) / (end - start)

json.dump({delay: share(delay) for delay in DELAYS}, open("/share/top.json", "w"))
"""


def measure() -> dict:
    """Percent of a processor, by delay; of samples and of tables; on four processors."""
    SHARE.mkdir(parents=True, exist_ok=True)
    (SHARE / "top.py").write_text(f"DELAYS = {DELAYS}\n{MEASURE}", encoding="utf-8")
    unthrottled(
        "benchmark --iterations 100000000 0 1 > /dev/null &\n"
        "cp top.py /tmp; cd /tmp; python3 top.py; kill $!\n"
    )
    shares = json.loads((SHARE / "top.json").read_text(encoding="utf-8"))
    short, long = (shares[str(delay)] for delay in DELAYS)
    table = (short - long) / (1 / DELAYS[0] - 1 / DELAYS[1])  # one in each second
    samples = short - table / DELAYS[0]
    total = CPUS * samples + table / DEFAULT
    return {
        "shares": shares,
        "samples": round(samples, 3),
        "tables": round(table / DEFAULT, 3),
        "total": round(total, 2),
        "met": total <= GOAL,
    }


def report(result: dict) -> str:
    """The result as Markdown."""
    about = f"""
        Time that `perf functions top -a` and its `perf record` take from one processor while the
        benchmark keeps all processors busy. In the emulated machine, a cycle is a nanosecond. The
        default period is 999,700 cycles, so each processor takes 2,000 samples per second. The rows
        with a table every {DELAYS[0]} and {DELAYS[1]} seconds were measured on one processor. The
        others are calculated from them.
    """
    lines = [
        prose(about),
        "",
        "| | % of one processor |",
        "|---|--:|",
        *(f"| a table every {time} s | {share:.2f} |" for time, share in result["shares"].items()),
        f"| samples of one processor, without tables | {result['samples']:.2f} |",
        f"| a table every {DEFAULT} s, without samples | {result['tables']:.2f} |",
        f"| {CPUS} processors, a table every {DEFAULT} s | {result['total']:.2f} |",
        "",
        f"Goal for {CPUS} processors: at most {GOAL:.0f} %, {'' if result['met'] else 'not '}met.",
    ]
    return "\n".join(lines)
