# SPDX-License-Identifier: GPL-2.0
"""Measures the cost of the table of a large recording, against a pure decode of the same file.

The emulated machine records groups with short alternating periods, so that there are millions of
samples, in three sizes. A smaller recording also has call chains, which neither command looks at.
Each command runs on this machine; its time is the processor time that the kernel accounts to it,
its memory is what it allocates, without the pages of the file. Ratios compare runs on the same
file.
"""

import math
import os
import re
import subprocess
import time
from pathlib import Path

from bench.guest import HERE, OUT, SHARE, recording, unthrottled
from bench.markdown import prose
from tests.harness.env import ARCH, BUILD, PERF, SCRIPT

TITLE = "Cost of a table"
START = 1  # iterations of a recording that takes a command no more than its start
ITERATIONS = 4000, 8000, 16000  # the last one makes two million group samples
CHAINS = 1000
RUNS = 3
EVENTS = "{cycles/period=500,alt-period=300/,instructions,page-faults}:uS"
SYMBOLS = "--symfs", BUILD / "root" / ARCH, "--kallsyms", BUILD / "kernel" / ARCH / "System.map"
COMMANDS = {
    "decode": ("report", "--stats"),
    "native": ("functions", "report", *SYMBOLS),
    "script": ("script", *SYMBOLS, "-s", SCRIPT),
    "empty": ("script", *SYMBOLS, "-s", HERE / "empty_sample_table.py"),
}
MEANING = {
    "decode": "`perf report --stats`, which only decodes",
    "native": "`perf functions report`",
    "script": "`generate-function-metrics.py`",
    "empty": "a script whose `sample_table` only counts",
}


def record(iterations: int, options: str = "") -> Path:
    """A recording of the benchmark, made by the emulated machine."""
    name = f"collect-{iterations}.data"
    unthrottled(
        recording(name, EVENTS, f"benchmark --faults --iterations {iterations} 0 1", options)
    )
    return SHARE / name


def anonymous(pid: int) -> int:
    """Memory that a process has allocated, in bytes; 0 when it has ended."""
    try:
        found = re.search(
            r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"), re.M
        )
    except OSError:
        found = None
    return int(found[1]) << 10 if found else 0


def run(path: Path, *words: object) -> tuple[float, int, str]:
    """Runs perf on a recording; returns processor time (s), peak memory (bytes) and output.

    Raises AssertionError if perf fails.
    """
    output = OUT / "collect.out"
    command = [str(word) for word in (PERF, *words, "-i", path)]
    with open(output, "w", encoding="utf-8") as out:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        ) as child:
            memory = 0
            while True:
                memory = max(memory, anonymous(child.pid))
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)
                if pid:
                    break
                time.sleep(0.001)  # a table of 10,000 samples takes 10 ms
            child.returncode = os.waitstatus_to_exitcode(status)
    text = output.read_text(encoding="utf-8")
    if child.returncode:
        raise AssertionError(f"{' '.join(command)}: exit status {child.returncode}\n{text[-2000:]}")
    return usage.ru_utime + usage.ru_stime, memory, text


def cost(path: Path) -> dict:
    """Returns the best of several runs of each command."""
    row: dict = {"bytes": path.stat().st_size, "seconds": {}, "memory": {}}
    for name, words in COMMANDS.items():
        runs = [run(path, *words) for _ in range(RUNS)]
        row["seconds"][name] = min(seconds for seconds, _, _ in runs)
        row["memory"][name] = max(memory for _, memory, _ in runs)
        if name == "decode":
            row["group samples"] = int(
                re.search(r"^\s*SAMPLE events:\s+(\d+)", runs[0][2], re.M)[1]
            )
        if name == "empty":
            row["event samples"] = int(re.search(r"^event samples: (\d+)$", runs[0][2], re.M)[1])
    return row


def slope(start: dict, first: dict, last: dict, name: str) -> float:
    """The exponent by which time, less the time of a start, grows with samples: 1 is linear."""
    before, *times = (row["seconds"][name] for row in (start, first, last))
    return math.log((times[1] - before) / (times[0] - before)) / math.log(
        last["group samples"] / first["group samples"]
    )


def measure() -> dict:
    """Makes the recordings, reads them with each command."""
    rows = []
    for iterations in START, *ITERATIONS:
        path = record(iterations)
        rows.append(cost(path))
        path.unlink()
    start, *rows = rows
    path = record(CHAINS, "--call-graph fp,4 --user-callchains")
    chains = cost(path)
    path.unlink()

    large = rows[-1]
    seconds = large["seconds"]
    return {
        "sizes": rows,
        "call chains": chains,
        "native to decode": seconds["native"] / seconds["decode"],
        "script to native": seconds["script"] / seconds["native"],
        "script, us per event sample": 1e6 * seconds["script"] / large["event samples"],
        "empty, us per event sample": 1e6 * seconds["empty"] / large["event samples"],
        "exponent": {name: slope(start, rows[0], rows[-1], name) for name in COMMANDS},
        "memory of the largest to the smallest": {
            name: large["memory"][name] / rows[0]["memory"][name] for name in COMMANDS
        },
    }


def report(result: dict) -> str:
    """The result as Markdown."""
    rows = [*result["sizes"], result["call chains"]]
    names = [f"{row['group samples']:,}" for row in rows]
    names[-1] += " with call chains"
    head = f"| group samples | {' | '.join(names)} | exponent |"
    lines = [
        prose(
            "Processor time and memory that each command takes to read a recording of the emulated "
            "machine. A group sample is a sample with the counts of all events of a group. Times "
            "are for each group sample. An exponent of 1 means that the time grows in proportion "
            "to the number of samples."
        ),
        "",
        head,
        "|---|" + "--:|" * (len(rows) + 1),
    ]
    for name, text in MEANING.items():
        cells = [f"{1e6 * row['seconds'][name] / row['group samples']:.2f}" for row in rows]
        lines.append(f"| {text}, µs | {' | '.join(cells)} | {result['exponent'][name]:.2f} |")
    for name, text in MEANING.items():
        cells = [f"{row['memory'][name] / 2**20:.0f}" for row in rows]
        lines.append(f"| {text}, MB | {' | '.join(cells)} | |")
    memory = rows[-2]["memory"]
    after = f"""
        For a table of {rows[-2]['group samples']:,} group samples, `perf functions report` takes
        {result['native to decode']:.2f} times as long as a bare decode of the file, and the script
        {result['script to native']:.1f} times as long as `perf functions report`. perf hands a
        group sample to a script as {rows[-2]['event samples'] / rows[-2]['group samples']:.2f}
        samples of single events, on average. Our script takes
        {result['script, us per event sample']:.2f} µs for each of these, and a script that only
        counts them {result['empty, us per event sample']:.2f} µs. Memory
        ({memory['native'] / 2**20:.0f} MB for `perf functions report`,
        {memory['script'] / 2**20:.0f} MB for the script) does not grow with the number of samples
        once each function has appeared.
    """
    return "\n".join([*lines, "", prose(after)])
