# SPDX-License-Identifier: GPL-2.0
"""Collects sums on a Dask cluster.

A task collects those of one recording, or of a span of time of a large one. A tree of tasks adds
them up.

A task reads files and returns sums, nothing else, so Dask may run it again when
a worker has died. Workers need perf and python3-distributed, and see the files
under the same names.
"""

import argparse
import logging
import math
import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError

from . import ReportError, sums
from .progress import Progress

FAN_IN = 16  # number of parts that a task adds up
UNREACHABLE = 10  # seconds to find the scheduler
NO_WORKER = 30  # seconds without any worker


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this module."""
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "--cluster",
        metavar="ADDRESS",
        nargs="?",
        const="",
        help="collect on the workers of this Dask scheduler (tcp://HOST:8786), or without ADDRESS "
        "on all processors of this machine; the workers need perf, and see the files under the "
        "same names",
    )
    group.add_argument(
        "--slice-size",
        metavar="MB",
        type=megabytes,
        default=0,
        help="read a recording that is larger than this in several tasks, each for a span of time; "
        "each task decodes the whole recording (default: one task)",
    )


def megabytes(text: str) -> float:
    """A number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: MB is a number above 0")
    return number


def separate(args: argparse.Namespace) -> None:
    """Treats the word after --cluster as an input if it is no address."""
    if args.cluster and "://" not in args.cluster:
        args.inputs.insert(0, args.cluster)
        args.cluster = ""


def size(path: str) -> int:
    """Returns the bytes of a recording, which may be a folder. Raises OSError."""
    return (
        sum(entry.stat().st_size for entry in os.scandir(path))
        if os.path.isdir(path)
        else os.path.getsize(path)
    )


def span(perf: str, path: str) -> tuple[int, int] | None:
    """Times of first and last sample in the header of a recording, in us; None if it has none."""
    command = [perf, "report", "--header-only", "-f", "-i", path]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:  # only the workers have perf
        return None
    times = [
        int(second) * 10**6 + int(micro)
        for second, micro in re.findall(
            rb"^# time of (?:first|last) sample : (\d+)\.(\d{6})$", done.stdout, re.M
        )
    ]
    return (times[0], times[1]) if len(times) == 2 and 0 < times[0] < times[1] else None


def slices(perf: str, path: str, most: float) -> list[str]:
    """Values of --time for spans that hold each window once; [""] is the whole recording.

    Both ends of a span belong to it.
    """
    number = int(-(-size(path) // (most or math.inf)))
    times = span(perf, path) if number > 1 else None
    if not times:
        return [""]
    first, last = times
    ends = [first + (last - first) * part // number for part in range(1, number)]
    starts = ["", *(f"{end // 10**6}.{end % 10**6:06}000" for end in ends)]
    stops = [*(f"{(end - 1) // 10**6}.{(end - 1) % 10**6:06}999" for end in ends), ""]
    return [f"--time={start},{stop}" for start, stop in zip(starts, stops)]


def tasks(inputs: Sequence[str], perf: str, options: Sequence[str], most: float) -> list[tuple]:
    """Returns the function to call for each part, with its arguments."""
    found: list[tuple] = []
    for path in [os.path.abspath(name) for name in inputs]:
        try:
            spans = slices(perf, path, most)
        except OSError as error:
            raise ReportError(f"{path}: {error.strerror}: name a file that you may read") from None
        if any(option.startswith("--time") for option in options):
            spans = [""]
        found += [
            (sums.collect, perf, path, [*options, *([when] if when else [])]) for when in spans
        ]
    return found


def connect(address: str, folder: str):
    """A client of the scheduler, or of a cluster of threads here: their tasks wait for perf."""
    try:
        import cloudpickle  # pylint: disable=import-outside-toplevel
        import dask  # pylint: disable=import-outside-toplevel
        import distributed  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise ReportError(f"--cluster needs {error.name}: install python3-distributed") from None
    logging.disable()  # report errors in one line
    cloudpickle.register_pickle_by_value(sums)
    if not address:
        dask.config.set({"temporary-directory": folder})
        # Dask starts an HTTP server even without a dashboard: take a free port, only on this host
        return distributed.Client(
            processes=False,
            n_workers=1,
            threads_per_worker=len(os.sched_getaffinity(0)),
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            set_as_default=False,
        )
    if not re.fullmatch(r"(tcp|tls|wss?)://([^][/:]+|\[[^]]+\]):\d+", address):
        raise ReportError(f"--cluster {address}: the address of a scheduler is tcp://HOST:PORT")
    keys = distributed.Security().get_connection_args("client")
    if address.startswith("tls:") and not keys["ssl_context"]:
        raise ReportError(
            f"--cluster {address}: there are no certificates: "
            "distributed.comm.tls in Dask's configuration names them"
        )
    try:
        return distributed.Client(address, timeout=UNREACHABLE, set_as_default=False)
    except OSError as error:  # time-outs, too
        raise ReportError(
            f"--cluster {address}: cannot reach the scheduler: {str(error).splitlines()[0]}"
        ) from None


class ByValue:
    """A function that is sent with its code.

    Workers do not have its module, nor do schedulers that look at the tasks.
    """

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.__name__ = function.__name__  # the task has this name, too

    def __call__(self, *arguments: object) -> sums.Part:
        return self.function(*arguments)

    def __reduce__(self) -> tuple:
        import cloudpickle  # pylint: disable=import-outside-toplevel

        return cloudpickle.loads, (cloudpickle.dumps(self.function),)


def plant(client, todo: Sequence[tuple], perf: str) -> tuple[list, object]:
    """Starts all tasks; returns those that collect, and the root of the tree that adds up."""
    leaves = [
        client.submit(ByValue(function), *arguments, pure=False) for function, *arguments in todo
    ]
    layer = list(zip(leaves, (task[2] for task in todo)))
    while len(layer) > 1 or layer[0][0] in leaves:
        chunks = [layer[at : at + FAN_IN] for at in range(0, len(layer), FAN_IN)]
        layer = [
            (
                client.submit(
                    ByValue(sums.add),
                    perf,
                    [name for _, name in chunk],
                    *(part for part, _ in chunk),
                    pure=False,
                ),
                chunk[0][1],
            )
            for chunk in chunks
        ]
    return leaves, layer[0][0]


def harvest(client, leaves: list, root) -> sums.Part:
    """Waits for the result."""
    from distributed import KilledWorker  # pylint: disable=import-outside-toplevel

    progress, alone = Progress(), time.monotonic()
    try:
        while root.status == "pending":
            time.sleep(0.05)
            done = sum(leaf.status == "finished" for leaf in leaves)
            left = (time.monotonic() - progress.start) * (len(leaves) / done - 1) if done else 0
            progress.show(
                f"{done} of {len(leaves)} collected" + (f", {left:.0f} s left" if done else "")
            )
            # a lost scheduler reports no worker
            if client.scheduler_info().get("workers"):
                alone = time.monotonic()
            elif time.monotonic() - alone > NO_WORKER:
                raise ReportError(
                    f"the scheduler has had no workers for {NO_WORKER} s: "
                    f"dask-worker {client.scheduler.address} starts one"
                )
        return root.result()
    except ValueError as error:
        raise ReportError(str(error)) from None
    except KilledWorker as error:
        raise ReportError(
            f"workers died again and again, the last one {error.last_worker.address}: "
            "give them more memory, or fewer threads"
        ) from None
    finally:
        progress.clear()


def collect(
    inputs: Sequence[str], address: str, perf: str, options: Sequence[str], most: float, folder: str
) -> sums.Part:
    """The sums of recordings and sums files, from perf functions report with these options.

    Several tasks read a recording of more than `most` bytes; 0 means one task for each recording.
    A temporary folder has the files of a cluster here. Raises ReportError.
    """
    todo = tasks(inputs, perf, options, most)
    client = connect(address, folder)
    try:
        return harvest(client, *plant(client, todo, perf))
    except (CancelledError, OSError):
        raise ReportError(f"the scheduler {address} is gone: start it again") from None
    finally:
        client.close()
