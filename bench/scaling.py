# SPDX-License-Identifier: GPL-2.0
"""Measures what grows with processors, threads and samples.

The same work is done by 1 to 1000 threads, and on 1 to 4 processors of the emulated
machine, which runs one at a time. Recordings of up to ten million samples are written
by perfwrite.py, and their tables must say what was written.
"""

import json
import math
import subprocess
from pathlib import Path

from bench import accuracy, collect
from bench.experiment import MEANING, records
from bench.guest import OUT, SHARE, recording, unthrottled
from bench.markdown import prose
from bench.picture import picture
from tests.harness import fleet
from tests.harness import perfwrite as pw
from tests.harness.env import PERF, must
from tests.harness.truth import read_truth

TITLE = "Scaling"
PLOT = OUT / "scaling.svg"
PICTURES = {PLOT: "Time for a table by number of samples, and run time by number of threads"}
ITERATIONS = 8000  # of all threads together
CPUS, THREADS, SAMPLES = (1, 2, 4), (1, 10, 100, 1000), (10**4, 10**5, 10**6, 10**7)
THREADS_OF_A_PROCESS = 250
BASE, CLOCK = 0x10000000, 10**9
LONG, WINDOW = 49_700, 300
RECORDINGS = {"few": "period=10000000", "alternate": f"period={LONG},alt-period={WINDOW}"}
EVENTS = "{{cycles/{}/,instructions,page-faults}}:uS"
COMMANDS = "native", "script"
SAMPLE = [
    ("type", "<u4"),
    ("misc", "<u2"),
    ("size", "<u2"),
    ("identifier", "<u8"),
    ("ip", "<u8"),
    ("pid", "<u4"),
    ("tid", "<u4"),
    ("time", "<u8"),
    ("cpu", "<u8"),
    ("period", "<u8"),
    ("members", "<u8"),
    ("read", "<u8", (2, 2)),
]


def workload(threads: int, iterations: int) -> str:
    """A command that does the work in `threads` threads, in several processes if there are many."""
    processes = math.ceil(threads / THREADS_OF_A_PROCESS)
    program = (
        f"benchmark --faults --threads {threads // processes} "
        f"--iterations {iterations // threads} 0 1"
    )
    return program if processes == 1 else f"sh -c \"{f'{program} & ' * processes} wait\""


def guest_row(threads: int, cpus: int, iterations: int) -> dict:
    """The size, the errors and the cost of a recording of the work."""
    command = workload(threads, iterations)
    out = unthrottled(
        "benchmark --truth --faults 0 1\n"
        + "".join(
            recording(f"{name}.data", EVENTS.format(terms), command)
            for name, terms in RECORDINGS.items()
        ),
        "--smp",
        cpus,
    )
    path = SHARE / "alternate.data"
    found, without = records(path), records(SHARE / "few.data")
    errors = accuracy.errors(accuracy.table_of(path, "discard"), read_truth(out))
    return {
        "cpus": cpus,
        "threads": threads,
        "bytes": path.stat().st_size,
        **found._asdict(),
        "to few samples": found.run_time / without.run_time,
        **{
            name: errors[name]
            for name in ("windows", "matched", "share error", "by chance", "rate error")
        },
        "seconds": {name: collect.run(path, *collect.COMMANDS[name])[0] for name in COMMANDS},
    }


def write(path: Path, samples: int) -> dict[str, int]:  # pylint: disable=too-many-locals
    """A recording of one thread; returns the cycles of the matched windows by function."""
    import numpy  # pylint: disable=import-outside-toplevel

    kind = numpy.dtype(SAMPLE)
    code = path.with_suffix(".so")
    fleet.library(code)
    starts = numpy.array(fleet.addresses(code), dtype="<u8")
    random = numpy.random.default_rng(1)
    # a long interval and the window after it are in one function
    place = numpy.repeat(random.integers(len(starts), size=samples // 2), 2)
    cycles = numpy.where(numpy.arange(samples) % 2, WINDOW, LONG) + random.integers(
        30, size=samples
    )
    table = numpy.zeros(samples, kind)
    for name, value in {
        "type": pw.SAMPLE,
        "misc": pw.MISC_USER,
        "size": kind.itemsize,
        "identifier": 1,
        "pid": 1000,
        "tid": 1000,
        "members": 2,
        "period": cycles,
        "ip": BASE + starts[place],
        "time": CLOCK + numpy.cumsum(cycles),
    }.items():
        table[name] = value
    table["read"][:, 0, 0], table["read"][:, 1, 0] = numpy.cumsum(cycles), 2 * numpy.cumsum(cycles)
    table["read"][:, :, 1] = 1, 2
    leader, member = pw.Event("cycles", 0, 0, [1], LONG, WINDOW), pw.Event(
        "instructions", 0, 1, [2]
    )
    writer = pw.Writer([[leader, member]])
    begin = pw.Where(CLOCK, 1000, 1000)
    writer.comm(begin, "program")
    writer.mmap2(begin, BASE, 0x100000, str(code))
    for part in numpy.split(table, range(1000, samples, 1000)):
        writer.records.append(part.tobytes())
        writer.finished_round()
    writer.write(path)
    symbols = {int(line.split()[0], 16): line.split()[2] for line in must("nm", code).splitlines()}
    totals: dict[str, int] = {}
    for number, start in enumerate(starts):
        name = symbols[int(start)]
        totals[name] = totals.get(name, 0) + int(cycles[1::2][place[1::2] == number].sum())
    return totals


def sample_row(samples: int) -> dict:
    """The cost of a table of this number of samples.

    Raises AssertionError if the table differs from what was written into the recording.
    """
    path = OUT / "scaling.data"
    written = write(path, samples)
    row = {"samples": samples, "bytes": path.stat().st_size, "seconds": {}, "memory": {}}
    for name in COMMANDS:
        row["seconds"][name], row["memory"][name], _ = collect.run(path, *collect.COMMANDS[name])
    found: dict[str, int] = {}
    for line in json.loads(
        must(
            *(PERF, "functions", "report", "-i", path, "-j", "--share", "discard"),
            stderr=subprocess.DEVNULL,
        )
    )["functions"]:
        found[line["symbol"]] = found.get(line["symbol"], 0) + line["events"]["cycles"]["count"]
    if found != written:
        raise AssertionError(f"a table of {samples} samples is not what was written")
    path.unlink()
    return row


def measure(
    iterations: int = ITERATIONS,
    cpus: tuple[int, ...] = CPUS,
    threads: tuple[int, ...] = THREADS,
    samples: tuple[int, ...] = SAMPLES,
) -> dict:
    """Records the work, then writes recordings and makes their tables."""
    result = {
        "iterations": iterations,
        "threads": [guest_row(number, 1, iterations) for number in threads],
        "cpus": [guest_row(4, number, iterations) for number in cpus],
        "samples": [sample_row(number) for number in samples],
    }
    plot(result)
    return result


def plot(result: dict) -> None:
    """Seconds and bytes over samples."""
    rows = result["samples"]
    with picture(PLOT, 9, 4) as figure:
        time, run = figure.subplots(1, 2)
        for name in COMMANDS:
            time.loglog(
                [row["samples"] for row in rows],
                [row["seconds"][name] for row in rows],
                ".-",
                label=MEANING[name].replace("`", ""),
            )
        time.set(xlabel="group samples", ylabel="processor time, s")
        time.legend()
        run.semilogx(
            [row["threads"] for row in result["threads"]],
            [row["to few samples"] for row in result["threads"]],
            ".-",
        )
        run.set(xlabel="threads", ylabel="run time / run time with few samples")


def report(result: dict) -> str:
    """The result as Markdown."""

    def row_of(first: int, row: dict, *more: str) -> str:
        cells = [
            first,
            f"{row['bytes'] / 1e6:.3f}",
            f"{row['samples']:,}",
            row["lost"],
            f"{row['to few samples']:.3f}",
            f"{row['seconds']['script']:.2f}",
            f"{row['seconds']['native']:.2f}",
            *more,
        ]
        return f"| {' | '.join(map(str, cells))} |"

    threads = f"""
        The same work ({result['iterations']:,} iterations of the benchmark in all) is done by 1 to
        1000 threads; 1000 threads run in four processes. The periods are {LONG:,} and {WINDOW}.
        *run time, ratio* compares with a recording of few samples. The columns of the two commands
        have the times for a table, as above. *discarded* and the errors are in percent:
    """
    why = """
        Without jitter, each thread begins with a long period of full length. So short threads have
        too few windows, and all threads have them at the same places. This makes the shares wrong.
        With `alt-period-jitter` the first long period has a random length, and short threads have
        as many windows as are due.
    """
    low = "".join(
        f" The rate of `dcache_miss` is then {-100 * row['rate error']:.0f} % too low."
        for row in result["cpus"][1:2]
    )
    processors = f"""
        In the next table, four threads do the same work on one or more processors. The emulator
        runs one processor at a time, and all processors use its one clock as their cycle counter.
        With two processors, each therefore counts the cycles of the other one, too. So there are
        twice as many samples, and a window also holds events of the other thread.{low} These rows
        show only how many samples are lost and what the recording costs; accuracy needs real
        processors:
    """
    samples = """
        The last table has the time and memory for a table by the number of group samples. A group
        sample is a sample with the counts of all events of a group. These recordings are synthetic
        and the same in each run:
    """
    script, native = (MEANING[name] for name in ("script", "native"))
    common = f"MB | samples | lost | run time, ratio | {script}, s | {native}, s |"
    lines = [
        prose(threads),
        "",
        f"| threads | {common} windows | discarded | share error | by chance | rate error |",
        "|--:|" + "--:|" * 11,
    ]
    for row in result["threads"]:
        parts = (
            1 - row["matched"] / row["windows"],
            row["share error"],
            row["by chance"],
            row["rate error"],
        )
        lines.append(
            row_of(
                row["threads"], row, f"{row['windows']:,}", *(f"{100 * part:.1f}" for part in parts)
            )
        )
    lines += [
        "",
        prose(why),
        "",
        prose(processors),
        "",
        f"| processors | {common}",
        "|--:|" + "--:|" * 6,
    ]
    lines += [row_of(row["cpus"], row) for row in result["cpus"]]
    lines += [
        "",
        prose(samples),
        "",
        f"| group samples | MB | {native}, s | µs per sample | memory, MB "
        f"| {script}, s | µs per sample | memory, MB |",
        "|--:|" + "--:|" * 7,
    ]
    for row in result["samples"]:
        cells = []
        for name in COMMANDS:
            seconds = row["seconds"][name]
            cells += [
                f"{seconds:.2f}",
                f"{1e6 * seconds / row['samples']:.2f}",
                f"{row['memory'][name] / 2**20:.0f}",
            ]
        lines.append(f"| {row['samples']:,} | {row['bytes'] / 1e6:.1f} | {' | '.join(cells)} |")
    return "\n".join(lines)
