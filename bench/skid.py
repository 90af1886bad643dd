# SPDX-License-Identifier: GPL-2.0
"""Measures what late interrupts do to event samples, and whether perf says so.

Some of bench/truth.py's programs run in the machine with caches. Its core model logs where each
event of a sample has happened, and what is executed some cycles later (late= in
emulator/README.md). From one run this makes recordings that differ in the PMU only:

  precise members   cycles are late, all other samples are where the event was: precise_ip says so
  all samples       all are late, and precise_ip is 0

Further recordings are perf's own, of machines whose PMU is late (skid=). They have windows, too,
which tell how late the interrupts are.
"""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from bench import truth
from bench.experiment import functions_of
from bench.guest import SHARE, with_truth
from bench.markdown import prose
from emulator import truth as model
from emulator.compare import by_function, compare
from tests.harness import perfdata as pw
from tests.harness.env import PERF

TITLE = "Late samples compared with the truth"
MODELS = "small", "large"
PROGRAMS = "sqlite3", "python3"
# less work than in bench/truth.py: blocks of one instruction take several times as long
LESS = {"range(80000)": "range(8000)", "x < 40000": "x < 11000"}
BLOCK = "block"
SKIDS = 0, BLOCK, 10, 30  # cycles, of the machines; the first one is logged
PLACES = {BLOCK: 1, 0: 2, 10: 3, 30: 4, 80: 5}  # in the log, behind the address of the event
# recordings that are made of the log: are members precise, and how late the others are
WRITTEN = [(False, late) for late in PLACES] + [(True, late) for late in (10, 30, 80)]
RECORDED, ALL_LATE, PRECISE_MEMBERS = "recorded", "all samples", "precise members"
# marked and covered values: nothing is precise, members are
GOALS = ((0.45, "45 %"), 0.93), ((0.10, "a tenth"), 0.95)
SAMPLES = 20000  # of each event: those of 20 seconds at 1,000 Hz
ENOUGH = 6000  # of rarer events, no recording of these programs tells a rate
# the programs are short: more samples than in bench/truth.py
RECORD = truth.EVENTS.replace("=149700", "=29700").replace(f"={truth.RATE}/", f"={5 * truth.RATE}/")
RATES = {"BM/KI": "branch-misses", "CM/KI": "cache-misses", "TM/KI": "dTLB-load-misses"}
PRECISE = 2  # precise_ip
# name, type, config, as Linux has them
EVENTS = (
    ("cycles", 0, 0),
    ("instructions", 0, 1),
    ("branch-misses", 0, 5),
    ("cache-misses", 0, 3),
    ("dTLB-load-misses", 3, 0x10003),
)


class Sample(NamedTuple):
    """A sample of the log: whose it is, the time when the program has ended, and the addresses of
    the event and of what is executed later.
    """

    thread: int
    process: int
    time: int
    addresses: list[int]


class Run(NamedTuple):
    """What a recorded program has mapped and executed, and its logged samples by event, each with
    their mean period.
    """

    records: list[model.Record]
    trailer: int  # bytes at the end of each record
    samples: dict[str, tuple[int, list[Sample]]]


def read_log(log: Path, threads: dict[int, model.Life]) -> dict[str, tuple[int, list[Sample]]]:
    """The samples of the recorded programs."""
    lines = [line.split() for line in log.read_text().splitlines()]
    last: dict[int, int] = defaultdict(int)
    periods: dict[str, int] = {}
    found: dict[str, list[Sample]] = defaultdict(list)
    for task, number, *_ in lines:
        last[int(task)] = max(last[int(task)], int(number))
    for task, number, event, period, *addresses in lines:
        thread = int(task)
        life = threads.get(thread)
        # both lists end with the same program
        place = int(number) - last[thread] - 1
        if not life or -place > len(life.ends) or not life.ends[place]:
            continue
        periods[event] = int(period)
        ips = [int(address, 16) for address in addresses]
        found[event].append(Sample(thread, life.process, life.ends[place], ips))
    steps = {event: max(len(samples) // SAMPLES, 1) for event, samples in found.items()}
    return {
        event: (periods[event] * steps[event], samples[:: steps[event]])
        for event, samples in found.items()
    }


def read_run(data: Path, log: Path) -> Run:
    """Reads a recording, and the log of the same run."""
    content = data.read_bytes()
    (attr, *_) = model.read_attrs(content)
    records = list(model.read_records(content, attr))
    return Run(
        [record for record in records if record.kind in (pw.MMAP2, pw.COMM, pw.FORK, pw.EXIT)],
        8 * sum(bool(attr.sample_type & bit) for bit in model.TRAILER),
        read_log(log, model.lives(records)),
    )


def event_of(number: int, period: int, is_exact: bool) -> pw.Event:
    """An event of EVENTS that samples alone."""
    flags = pw.FLAG_EXCLUDE_KERNEL | pw.FLAG_SAMPLE_ID_ALL | PRECISE * pw.FLAG_PRECISE * is_exact
    kinds = pw.IP | pw.TID | pw.TIME | pw.PERIOD | pw.IDENTIFIER
    return pw.Event(*EVENTS[number], [number + 1], period, sample_type=kinds, flags=flags)


def write(run: Run, output: Path, late: object, is_precise: bool) -> None:
    """Writes a recording of a run whose samples are so late."""
    is_exact = [is_precise and name != "cycles" for name, *_ in EVENTS]
    events = [
        event_of(number, run.samples[name][0], is_exact[number])
        for number, (name, *_) in enumerate(EVENTS)
    ]
    writer = pw.Writer([[event] for event in events], arch="aarch64")
    items: list[tuple[int, Any]] = [(record.time, record) for record in run.records]
    for event, exact in zip(events, is_exact):
        place = 0 if exact else PLACES[late]
        misc = pw.MISC_USER | pw.MISC_EXACT_IP * exact
        for sample in run.samples[event.name][1]:
            items.append((sample.time, (event, sample, sample.addresses[place], misc)))
    for time, item in sorted(items, key=lambda one: one[0]):
        if isinstance(item, model.Record):
            body = item.data[8 : len(item.data) - run.trailer]
            writer.side(item.kind, body, pw.Where(time, 0, 0), 1, item.misc)
        else:
            event, sample, address, misc = item
            where = pw.Where(time, sample.process, sample.thread)
            values = [(event.ids[0], 0)]
            writer.sample(event, where, address, event.sample_period, values, misc=misc)
    writer.write(output)


def result_of(path: Path, exact: dict[str, Any]) -> dict[str, Any]:
    """The errors of a recording's event samples, its intervals and marks. A rate is left out if
    there are not even ENOUGH of its event.
    """
    rows = functions_of(path, PERF, *truth.READINGS[truth.SAMPLES], "--symfs", truth.ROOT)
    found = truth.result_of(compare(by_function(rows), exact, truth.LEAST))
    for metric, event in RATES.items():
        if sum(row["events"][event]["value"] for row in exact.values()) < ENOUGH:
            found[metric] |= {"values": 0, "marked": 0, "right": 0}
    return found


def measure_program(program: str, name: str, skid: object) -> dict[str, Any]:
    """Records a program in a machine; returns the results of this recording, and of those that are
    written from the log of the run.
    """
    SHARE.mkdir(parents=True, exist_ok=True)
    file = f"{truth.file_name(program, name, 'skid')}-{skid}"
    log, made = (SHARE / f"{file}.{end}" for end in ("log", "written"))
    setup = truth.PREPARE
    for more, less in LESS.items():
        setup = setup.replace(more, less)
    data, true = with_truth(
        file,
        RECORD,
        f"sh -c '{truth.PROGRAMS[program]} > /dev/null'",
        f"{name},skid={skid}" + f",late={log}" * (skid == SKIDS[0]),
        *("--root", f"{truth.ROOT}.cpio"),
        setup=setup,
    )
    exact = truth.exact(true, "--symfs", truth.ROOT)
    found = {f"{RECORDED}, late by {skid}": result_of(data, exact)}
    if skid == SKIDS[0]:
        run = read_run(data, log)
        log.unlink()
        for is_precise, late in WRITTEN:
            write(run, made, late, is_precise)
            what = f"{PRECISE_MEMBERS}, cycles" if is_precise else ALL_LATE
            found[f"{what} late by {late}"] = result_of(made, exact)
        made.unlink()
    return found


def measure() -> dict:
    """Records all programs, two at a time."""
    jobs = list(product(PROGRAMS, MODELS, SKIDS))
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda job: measure_program(*job), jobs)
    result: dict[str, Any] = defaultdict(dict)
    for (program, name, _), results in zip(jobs, found):
        for recording, values in results.items():
            result[recording][f"{program}, {name}"] = values
    return dict(sorted(result.items()))


def goals_of(recording: str, rows: dict[str, Any]) -> list[truth.Goal]:
    """The goals of a kind of recording, on each model and on both."""
    marked, covered = GOALS[recording.startswith(PRECISE_MEMBERS)]
    goals = []
    for name in MODELS:
        chosen = [row for key, row in rows.items() if key.endswith(name)]
        goals += [
            (f"{recording}, {name} caches: {goal}", text, is_met)
            for goal, text, is_met in truth.certainty(chosen, truth.METRICS, marked, covered)
        ]
    return goals


def report(result: dict) -> str:
    """The result as Markdown."""
    text = prose(
        f"""{len(PROGRAMS)} of Debian's programs run in the machine with caches. *{RECORDED}*: perf
        records `{RECORD}` in a machine whose PMU is so late. The other recordings are written
        from the log of such a run, without windows, with {SAMPLES} samples of an event or more,
        if it has as many. In them all samples are late, or those of cycles only: the attributes of
        all others say `precise_ip` (*{PRECISE_MEMBERS}*). A rate does not count in programs that
        have fewer than {ENOUGH} of its event."""
    )
    goals = [goal for recording, rows in result.items() for goal in goals_of(recording, rows)]
    return "\n".join([text, *truth.table_of_goals(goals)])
