# SPDX-License-Identifier: GPL-2.0
"""perf functions -M: the metrics that vendors give for their CPUs, per function.

Formulas of perf's tables are written down here a second time and evaluated on the windows of
made-up recordings. A standard error is compared with that of the jackknife, which leaves out each
window in turn. `perf test`, which runs here, compares every metric of every CPU with perf stat's.
"""

import itertools
import json
import random
import re
import shlex
import statistics
import unittest
from collections.abc import Callable, Sequence
from functools import partial

from tests.harness import perfdata as pw
from tests.harness.env import ARCH, BUILD, CHECK, PERF, in_guest, must, run
from tests.harness.estimates import quantile
from tests.harness.recording import LONG, WINDOW, Recording

MINUTES = 1
MACHINES = "arm64"

DATA = CHECK / "metrics"
N1, N2 = "0x00000000413fd0c1", "0x00000000410fd493"
PLACES = (0x1000, 0x2000)  # addresses of the two functions
Counts = dict[str, float]


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def named(event: str, config: int) -> tuple[str, int, int]:
    """An event of an Arm PMU as perf's tables call it."""
    return event, 8, config


CYCLES = ("cycles", 0, 0)
TOPDOWN = [
    CYCLES,
    named("STALL_SLOT", 0x3F),
    named("STALL_SLOT_BACKEND", 0x3D),
    named("STALL_SLOT_FRONTEND", 0x3E),
    named("OP_RETIRED", 0x3A),
    named("OP_SPEC", 0x3B),
    named("BR_MIS_PRED", 0x10),
]


class RandomWindows(Recording):
    """Windows with random counts in two functions.

    Groups of events: (name, type, config), leader first.
    """

    def __init__(
        self, groups: Sequence[Sequence[tuple[str, int, int]]], windows: int = 50, **cpu: object
    ) -> None:
        numbers = itertools.count(1)
        flags = pw.FLAG_EXCLUDE_KERNEL | pw.FLAG_SAMPLE_ID_ALL
        groups = [
            [
                pw.Event(
                    *event, [next(numbers)], *((0, 0) if place else (LONG, WINDOW)), flags=flags
                )
                for place, event in enumerate(group)
            ]
            for group in groups
        ]
        super().__init__(groups, **cpu)
        self.windows: dict[tuple[int, int], list[list[int]]] = {}  # by group, place
        dice = random.Random(5)
        for number, group in enumerate(groups):
            place = PLACES[0]
            for count in range(2 * windows + 1):
                if not count % 2:
                    place = dice.choice(PLACES)
                times = 1 if count % 2 else LONG // WINDOW  # interrupts add nothing
                delta = [WINDOW + dice.randrange(20) if count % 2 else LONG]
                delta += [
                    dice.randrange(50 * slot, 90 * slot) * times for slot in range(1, len(group))
                ]
                self.sample(place, *delta, group=number)
                if count % 2:
                    self.windows.setdefault((number, place), []).append(delta)

    def totals(self, place: int, without: int | None = None, group: int = 0) -> Counts:
        """The counts of a function, in all windows or all but one."""
        windows = [
            window for number, window in enumerate(self.windows[group, place]) if number != without
        ]
        return {
            "windows": len(windows),
            **dict(zip((event.name for event in self.groups[group]), map(sum, zip(*windows)))),
        }

    def variance(self, place: int, formula: Callable[[Counts], float], group: int = 0) -> float:
        """The variance that the windows of a group add, by the jackknife."""
        number = len(self.windows[group, place])
        values = [formula(self.totals(place, without, group)) for without in range(number)]
        return (number - 1) * statistics.pvariance(values)


def stalled(c: Counts, event: str) -> float:
    """The percentage of the slots of a Neoverse N2, which has 5."""
    return 100 * c[event] / (5 * c["cycles"])


def flush(c: Counts, cycles: int) -> float:
    return 100 * cycles * c["BR_MIS_PRED"] / c["cycles"]


def issued(c: Counts, part: float) -> float:
    return part * (100 - stalled(c, "STALL_SLOT"))


TOPDOWN_L1: dict[str, Callable[[Counts], float]] = {
    "frontend_bound": lambda c: stalled(c, "STALL_SLOT_FRONTEND") - flush(c, 1),
    "backend_bound": lambda c: stalled(c, "STALL_SLOT_BACKEND") - flush(c, 3),
    "bad_speculation": lambda c: issued(c, 1 - c["OP_RETIRED"] / c["OP_SPEC"]) + flush(c, 4),
    "retiring": lambda c: issued(c, c["OP_RETIRED"] / c["OP_SPEC"]),
}


def report(*options: object, **more: object) -> dict:
    table = json.loads(must(PERF, "functions", "report", "-j", *options, stderr=-1, **more))
    for row in table["functions"]:
        row["address"] = int(row["address"], 16) if "address" in row else None
    return table


class Metrics(unittest.TestCase):
    """Values and errors."""

    def compare(
        self,
        recording: RandomWindows,
        metrics: dict[str, Callable[[Counts], float]],
        *options: object,
    ) -> None:
        """A recording has these columns besides the number of observations."""
        path = recording.write(DATA / "metrics.data")
        rows = {row["address"]: row["metrics"] for row in report("-i", path, *options)["functions"]}
        self.assertEqual(set(rows), set(PLACES))
        for place, row in rows.items():
            self.assertEqual(set(row), {"#", *metrics})
            for name, formula in metrics.items():
                with self.subTest(name=name, place=place):
                    number = len(recording.windows[0, place])
                    self.check(
                        row[name],
                        formula(recording.totals(place)),
                        recording.variance(place, formula),
                        number - 1,
                        few=number < 20,
                    )

    def check(
        self, told: dict, value: float, variance: float, freedom: float, few: bool, places: int = 5
    ) -> None:
        """A value, its error, its interval and its mark."""
        self.assertAlmostEqual(told["value"] / value, 1, 10)
        self.assertAlmostEqual(told["error"] / variance**0.5, 1, delta=0.05)
        half = (told["high"] - told["low"]) / 2
        self.assertAlmostEqual(half / told["error"], quantile(freedom), places)
        weak, rough = few or half > abs(value) / 2, half > abs(value) / 4
        self.assertEqual(told.get("mark"), "weak" if weak else "rough" if rough else None)

    def test_topdown(self):
        recording = RandomWindows([TOPDOWN], cpuid=N2, slots=5)
        self.compare(recording, TOPDOWN_L1, "-M", "TopdownL1")

    def test_slots(self):
        """Intel's slots are the event that tables call TOPDOWN.SLOTS, by its number."""
        parts = "topdown-fe-bound", "topdown-bad-spec", "topdown-retiring", "topdown-be-bound"
        numbers = 0x8200, 0x8100, 0x8000, 0x8300
        group = [CYCLES, ("slots", 4, 0x400), *((name, 4, at) for name, at in zip(parts, numbers))]

        def part(number: int, counts: Counts) -> float:
            return 100 * counts[parts[number]] / sum(counts[name] for name in parts)

        self.compare(
            RandomWindows([group], cpuid="GenuineIntel,6,143,8"),
            {"tma_retiring": partial(part, 2), "tma_backend_bound": partial(part, 3)},
            *("-M", "tma_retiring,tma_backend_bound"),
        )

    def test_groups(self):
        """Events in two groups are related by the cycles that both count.

        Both add to the error. Cycles go before another event that both count. Without one, windows
        of different leaders stand for different lengths.
        """

        def ratio(link: str, one: Counts, other: Counts) -> float:
            return one["BR_MIS_PRED_RETIRED"] / one[link] * other[link] / other["BR_RETIRED"]

        name = "branch_misprediction_ratio"
        for leader, link, *both in (
            (CYCLES, "cycles"),
            (CYCLES, "cycles", named("BUS_ACCESS", 0x19)),
            (("instructions", 0, 1), ""),
        ):
            recording = RandomWindows(
                [
                    [CYCLES, named("BR_MIS_PRED_RETIRED", 0x22), *both],
                    [leader, named("BR_RETIRED", 0x21), *both],
                ],
                cpuid=N1,
            )
            path = recording.write(DATA / "groups.data")
            if not link:
                done = run(PERF, "functions", "report", "-j", "-M", name, path, stderr=-1)
                self.assertIn(
                    f"{name} (groups with different leaders have its events)", done.stderr
                )
                for row in json.loads(done.stdout)["functions"]:
                    self.assertIsNone(row["metrics"][name])
                continue
            for row in report("-i", path, "-M", name)["functions"]:
                place = row["address"]
                one, other = (recording.totals(place, group=group) for group in (0, 1))
                parts = (
                    recording.variance(place, partial(ratio, link, other=other)),
                    recording.variance(place, partial(ratio, link, one), group=1),
                )
                number = min(one["windows"], other["windows"])
                self.check(
                    row["metrics"][name],
                    ratio(link, one, other),
                    sum(parts),
                    number - 1,
                    few=number < 20,
                )


class Parts(unittest.TestCase):
    """The first levels of top-down analysis, whose parts a page can open."""

    EVENTS = (
        *("IDQ_UOPS_NOT_DELIVERED.CORE", "UOPS_ISSUED.ANY", "UOPS_RETIRED.RETIRE_SLOTS"),
        *("INT_MISC.RECOVERY_CYCLES", "CYCLE_ACTIVITY.STALLS_MEM_ANY"),
        *("EXE_ACTIVITY.BOUND_ON_STORES", "CYCLE_ACTIVITY.STALLS_TOTAL"),
        *("EXE_ACTIVITY.1_PORTS_UTIL", "EXE_ACTIVITY.2_PORTS_UTIL"),
        "CYCLE_ACTIVITY.STALLS_L1D_MISS",
    )

    def test_skylake(self):
        """Columns name their parts."""
        group = [CYCLES, *(named(event, 0x900 + at) for at, event in enumerate(self.EVENTS))]
        made = RandomWindows([group], cpuid="GenuineIntel,6,85,4", threads=("0", "1"))
        path = made.write(DATA / "skylake.data")
        told = report("-i", path, "-M", "TopdownL1,TopdownL2")
        columns = {one["name"]: one for one in told["columns"]}
        self.assertEqual(columns["tma_memory_bound"]["parent"], "tma_backend_bound")
        self.assertEqual(columns["tma_backend_bound"]["divides"], "slots")
        self.assertNotIn("parent", columns["tma_backend_bound"])


class Missing(unittest.TestCase):
    def test_events_and_literals(self):
        """One line tells what cannot be done."""
        path = RandomWindows([TOPDOWN[:-2]], cpuid=N2).write(DATA / "missing.data")
        options = "-M", "retiring,ipc", "-x", ","
        done = run(PERF, "functions", "report", "-i", path, *options, stderr=-1)
        self.assertEqual(done.returncode, 0)
        rows = [row.split(",")[3:5] for row in done.stdout.splitlines()[1:]]
        self.assertEqual(rows, [["-"] * 2] * 2)
        self.assertIn(
            "perf functions: no value (-) for retiring (#slots of the recorded machine is not "
            "known), ipc (INST_RETIRED was not recorded)\n",
            done.stderr,
        )


class Tables(unittest.TestCase):
    """perf's tables of all CPUs."""

    def test_every_metric_is_that_of_perf_stat(self):
        output = must(
            "sh",
            "-c",
            (
                f"{PERF} test -vv 'metrics as in perf stat' 2>&1 | grep '^metrics: \\|as in perf"
                " stat *: [OF]'"
            ),
        )
        self.assertRegex(output, "perf stat *: Ok")
        found, same, undefined, different, *_ = map(
            int, re.findall(r": (\d+)", output[output.index("metrics: ") :])
        )
        self.assertGreater(found, 4500)
        self.assertEqual(different, 0)
        # Others are of time, or of the kernel alone: 9 % of them, and 20 % in 7.3.
        self.assertGreater(same + undefined, 0.75 * found)


# Replaces perf_event_open(2): opens any event, and up to COUNTERS of them in a group.
COUNTERS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>

static int members[4096];

long syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	int fd, leader = d;

	if (number != SYS_perf_event_open)
		return real(number, a, b, c, d, e, f);
	if (leader >= 0 && members[leader] >= atoi(getenv("COUNTERS"))) {
		errno = EINVAL;
		return -1;
	}
	fd = open("/dev/null", O_RDONLY);
	members[fd] = 1;
	if (leader >= 0)
		members[leader]++;
	return fd;
}
"""
RECORD = f"""
cd /share
for number in 1 2 4 7; do
	COUNTERS=$number LD_PRELOAD=/share/counters.so PERF_CPUID={N2} perf functions record \\
		--windows-only -M branch,cache -o /dev/null -- true \\
		> messages.$number 2>&1 || true
done
for number in 1 3 5; do
	COUNTERS=$number LD_PRELOAD=/share/counters.so perf functions record --windows-only -v \\
		-o /dev/null -- true > default.$number 2>&1 || true
done
PERF_CPUID={N2} perf functions record --windows-only -M ipc,Cycle_Accounting,branch_mpki \\
	-o /tmp/guest.data -- benchmark 0 1 2> messages > /dev/null
mv /tmp/guest.data .
perf functions record -M ipc true 2> unknown || true
"""


class Record(unittest.TestCase):
    def test_in_the_emulated_machine(self):
        """Groups for any number of counters keep the events of a metric together where they fit.

        Then the test makes a real recording.
        """
        for old in DATA.glob("messages*"):
            old.unlink()
        (DATA / "counters.c").write_text(COUNTERS)
        must(
            "aarch64-linux-gnu-gcc",
            "-shared",
            "-fPIC",
            "-w",
            "-o",
            DATA / "counters.so",
            DATA / "counters.c",
            "-ldl",
        )
        in_guest(RECORD, share=DATA)
        leader = "cycles/period=999700,alt-period=300,alt-period-jitter=18/"
        metrics = (
            {"BR_MIS_PRED_RETIRED", "BR_RETIRED"},
            {"BR_MIS_PRED_RETIRED", "INST_RETIRED"},
            {"L1D_CACHE", "L1D_CACHE_REFILL"},
            {"L1I_CACHE_REFILL", "INST_RETIRED"},
            {"LL_CACHE_RD", "LL_CACHE_MISS_RD"},
            {"L3D_CACHE", "L3D_CACHE_REFILL"},
        )
        for number in (2, 4, 7):
            text = (DATA / f"messages.{number}").read_text()
            words = shlex.split(
                next(line for line in text.splitlines() if line.startswith("perf record"))
            )
            *begin, events = words
            self.assertEqual(begin, "perf record -T --sample-cpu -e".split())
            groups = [
                group.split(",")
                for group in re.findall(r"\{([^}]*)\}:uHS", events.replace(leader, "LEADER"))
            ]
            for group in groups:
                self.assertEqual(group[0], "LEADER")
                self.assertEqual(len(set(group)), len(group))
                self.assertLessEqual(len(group), number)
            for metric in metrics:
                together = any(metric <= set(group) for group in groups)
                self.assertEqual(together, number > 2, (metric, groups))
                self.assertTrue(all(any(event in group for group in groups) for event in metric))
        none = (DATA / "messages.1").read_text().splitlines()
        self.assertIn(
            "perf functions: the metric branch_mpki is left out: "
            "this machine does not count BR_MIS_PRED_RETIRED in a group led by cycles",
            none,
        )
        self.assertEqual(
            none[-1],
            "perf functions: -M branch,cache: this machine does not count its events in "
            "a group led by cycles: choose another metric, see perf list metric",
        )
        members = "branch-misses", "cache-misses", "cache-references", "instructions"
        for number, chosen in (1, []), (3, [members[0], members[3]]), (5, members):
            group = "{" + ",".join([leader, *chosen]) + "}:uHS"
            self.assertIn(f" -e '{group}'\n", (DATA / f"default.{number}").read_text())
        self.check_recording(leader)

    def check_recording(self, leader: str) -> None:
        """The machine takes an instruction for a cycle, never stalls and counts no branches."""
        command = (DATA / "messages").read_text().splitlines()[0]
        self.assertRegex(
            command,
            rf"^perf record -T --sample-cpu -e '\{{{leader},[A-Z_,]*\}}:uHS'$",
        )
        self.assertIn(
            "perf has no metrics of the CPU 0x00000000000f0510", (DATA / "unknown").read_text()
        )
        (row,) = report(
            "-i",
            DATA / "guest.data",
            "--symfs",
            BUILD / "root" / ARCH,
            "-M",
            "ipc,Cycle_Accounting,branch_mpki",
            "--symbol",
            "nops",
            env={"PERF_CPUID": N2},
        )["functions"]
        self.assertAlmostEqual(row["metrics"]["ipc"]["value"], 1, 2)
        for name in ("frontend_stalled_cycles", "backend_stalled_cycles", "branch_mpki"):
            self.assertEqual(row["metrics"][name]["value"], 0)
