# SPDX-License-Identifier: GPL-2.0
"""Measures the cost of adding up recordings of many hosts on a cluster, and the size of their sums.

Each host's recording has samples in a part of the functions of one library. Up
to 100 hosts are recorded; their sums, and synthetic ones of more hosts with as
many functions, are then added up from sums files. The workers are processes on
this machine, so they share its processors.
"""

import os
import resource
from collections.abc import Callable
from pathlib import Path

from bench.guest import OUT
from bench.markdown import prose
from bench.picture import picture
from tests.harness import fleet, servers
from tests.harness.env import PERF, TOP, must

TITLE = "Many hosts"
PLOT = OUT / "hosts.svg"
PICTURES = {PLOT: "Time for each host, and size of the merged sums, by number of hosts"}
WORKERS = 4
RECORDED, SYNTHETIC = (1, 10, 100), 1000
SAMPLES = 50_000
FUNCTIONS, OF_A_HOST = 2000, 400
SLICES = 1, 2, 4, 8  # of one large recording
LARGE = 2_000_000
DATA = OUT / "hosts"
REPORT = TOP / "report/functions-report"


def timed(*command: object, others: Callable[[], float] = lambda: 0.0) -> float:
    """Seconds of processor time that a command takes, and others meanwhile."""

    def now() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime + others()

    start = now()
    must(*command)
    return now() - start


class Synthetic(fleet.Host):
    """The sums of a host without its recording."""

    def make(self) -> None:
        """Windows of a tenth of a recording, each after a long interval in its function."""
        rand = self.random.random
        for number in range(SAMPLES // 20):
            place = self.places[int(rand() * len(self.places))]
            for is_window, nominal in ((False, fleet.LONG), (True, fleet.WINDOW)):
                counts = nominal + int(rand() * 30), 1, 1 + int(rand() * 1200)
                self.intervals.append(
                    fleet.Interval(10**6 * number, place, place, counts, is_window, False)
                )

    def sums(self) -> dict[int, list[int]]:
        """Each window counts for ten."""
        return {
            place: [10 * number for number in numbers] for place, numbers in super().sums().items()
        }


def make(code: Path) -> tuple[list[Path], list[Path]]:
    """Recordings, and sums files of more hosts."""
    names = fleet.library(code, FUNCTIONS)
    files, sums = [], []
    for number in range(max(RECORDED)):
        files.append(DATA / f"{number}.data")
        fleet.Host(number, code, names, OF_A_HOST).write(files[-1], SAMPLES)
        sums.append(DATA / f"{number}.sums")
        must(PERF, "functions", "report", "--sums", sums[-1], files[-1])
    version = sums[0].read_bytes().partition(b"\n")[0] + b"\n"
    for number in range(len(sums), SYNTHETIC):
        host = Synthetic(number, code, names, OF_A_HOST)
        host.make()
        sums.append(DATA / f"{number}.sums")
        sums[-1].write_bytes(version + fleet.total([host]))
    return files, sums


def rows(dask: servers.Dask, files: list[Path], sums: list[Path]) -> list[dict]:
    """Seconds and bytes for each number of hosts.

    Raises AssertionError if the sums of a cluster differ from those of one process.
    """
    cluster, one = DATA / "cluster.sums", DATA / "one.sums"
    collect = REPORT, "--cluster", dask.address, "--sums", cluster
    found = []
    for number in (*RECORDED, SYNTHETIC):
        row: dict = {"hosts": number}
        if number <= len(files):
            row["cluster"] = timed(*collect, *files[:number], others=dask.seconds)
            row["one process"] = timed(PERF, "functions", "report", "--sums", one, *files[:number])
            if cluster.read_bytes() != one.read_bytes():
                raise AssertionError(f"the sums of {number} recordings are others on a cluster")
        row["sums on the cluster"] = timed(*collect, *sums[:number], others=dask.seconds)
        row["sums in one process"] = timed(
            PERF, "functions", "report", "--sums", one, *sums[:number]
        )
        if cluster.read_bytes() != one.read_bytes():
            raise AssertionError(f"the sums of {number} sums files are others on a cluster")
        row["bytes"] = one.stat().st_size
        row["functions"] = one.read_bytes().count(b"\nsums\t")
        found.append(row)
    return found


def spans(dask: servers.Dask, code: Path) -> dict[int, float]:
    """Seconds for one large recording by the number of tasks that read it."""
    large = DATA / "large.data"
    fleet.Host(0, code, fleet.library(code)).write(large, LARGE)
    size = large.stat().st_size / 2**20
    collect = REPORT, "--cluster", dask.address, "--sums", DATA / "cluster.sums"
    seconds = {
        number: timed(*collect, "--slice-size", size / (number - 0.5), large, others=dask.seconds)
        for number in SLICES
    }
    large.unlink()
    return seconds


def measure() -> dict:
    """Makes the recordings, collects them on a cluster."""
    DATA.mkdir(parents=True, exist_ok=True)
    code = DATA / "code.so"
    files, sums = make(code)
    with servers.dask(DATA / "dask", WORKERS) as dask:
        must(
            REPORT, "--cluster", dask.address, "--sums", DATA / "cluster.sums", *files[:WORKERS]
        )  # the workers have started
        result = {
            "processors": len(os.sched_getaffinity(0)),
            "workers": WORKERS,
            "rows": rows(dask, files, sums),
            "bytes of a recording": files[0].stat().st_size,
            "spans": spans(dask, DATA / "large.so"),
        }
    for path in files + sums:
        path.unlink()
    plot(result)
    return result


def plot(result: dict) -> None:
    """Seconds per host, and bytes of the sum, over the number of hosts."""
    with picture(PLOT, 10, 4) as figure:
        time, size = figure.subplots(1, 2)
        for name, label in (
            ("cluster", "recordings, cluster"),
            ("one process", "recordings, one process"),
            ("sums on the cluster", "sums files, cluster"),
            ("sums in one process", "sums files, one process"),
        ):
            found = [
                (row["hosts"], 1000 * row[name] / row["hosts"])
                for row in result["rows"]
                if name in row
            ]
            time.loglog(*zip(*found), "o-", label=label)
        time.set(xlabel="hosts", ylabel="ms of processor time per host")
        time.legend()
        size.loglog(
            [row["hosts"] for row in result["rows"]],
            [row["bytes"] / 1024 for row in result["rows"]],
            "o-",
        )
        size.set(xlabel="hosts", ylabel="KB of the merged sums")


def report(result: dict) -> str:
    """The result as Markdown."""
    about = f"""
        Processor time to add up the recordings of many hosts, or their sums files, on a Dask
        cluster (`functions-report --cluster`) and in one process. Cells are milliseconds per host,
        of all processes together. The cluster has {result['workers']} workers on
        {result['processors']} processors. A recording has {SAMPLES:,} samples
        ({result['bytes of a recording'] / 2**20:.1f} MB) in {OF_A_HOST} of {FUNCTIONS:,} functions.
        Of the {SYNTHETIC} hosts, only the first {max(RECORDED)} have recordings; the sums of the
        others are synthetic.
    """
    lines = [
        prose(about),
        "",
        "| hosts | recordings: cluster | one process | sums files: cluster | one process "
        "| functions | merged sums |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in result["rows"]:
        cells = [
            f"{1000 * row[name] / row['hosts']:.1f}" if name in row else ""
            for name in ("cluster", "one process", "sums on the cluster", "sums in one process")
        ]
        lines.append(
            f"| {row['hosts']} | {' | '.join(cells)} | {row['functions']} "
            f"| {row['bytes'] / 1024:.0f} KB |"
        )
    first, *others = (
        f"{seconds:.2f} s with {number} task{'' if int(number) == 1 else 's'}"
        for number, seconds in result["spans"].items()
    )
    after = f"""
        On the cluster, several tasks can read one large recording together. For {LARGE:,} samples,
        the processor time of all tasks is {', '.join([first, *others[:-1]])} and {others[-1]}.
    """
    return "\n".join([*lines, "", prose(after)])
