# SPDX-License-Identifier: GPL-2.0
"""The dispatch trace log of ppc64le as the events of the PMU vpa_dtl, which Linux has since 6.18.

QEMU accepts the place of the log and never writes an entry. The module of tests/kernel/vpa_dtl
writes entries, whose content is calculated here a second time.
"""

import errno
import functools
import json
import re
import shutil
import struct
import subprocess
import unittest
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.harness import perfdata
from tests.harness.env import BUILD, CHECK, LINUX, PERF, TOP, functions, in_guest, machine, must
from tests.harness.pristine import SYMBOLS, prepare_modules
from tests.harness.truth import check_shares, read_truth

SLOW = True
MINUTES = 20
ON_BASES = "newer"
MACHINES = "ppc64le"

ARCH = "ppc64le"
SHARE = CHECK / "vpa_dtl"
KERNEL, KBUILD = BUILD / "kernel" / ARCH, CHECK / "vpa_dtl-kbuild"
CPUS = 2
RING = 4096 // 48  # entries that the log of a CPU holds, one of them perhaps still being written
MILLION, SOME, STOPPED = 1_000_000, 5000, 6000
PARTIAL = 4  # PERF_AUX_FLAG_PARTIAL

DISPATCH = (
    "external_interrupt",
    "firmware_internal_event",
    "H_PROD",
    "decrementer_interrupt",
    "system_reset",
    "firmware_internal_event",
    "conferred_cycles",
    "time_slice",
    "virtual_memory_page_fault",
    "expropriated_adjunct",
    "priv_doorbell",
)
PREEMPT = {2: "H_CEDE", 4: "time_slice", 6: "virtual_memory_page_fault"}
KINDS = {"dtl_cede": 2, "dtl_preempt": 4, "dtl_fault": 6}  # event, reason

LOG = """
cd /tmp
write=/sys/kernel/debug/vpa_dtl_hypervisor/write
# the last messages of the module
wrote() {
	dmesg | sed -n 's/.*vpa_dtl_hypervisor: //p' | tail -n $(nproc) > /share/$1.wrote
}
# record NAME ENTRIES OPTION...: a recording of that many entries on each CPU, and of the command
# $and
and=
record() {
	name=$1 entries=$2
	shift 2
	perf record -q -a -T --sample-cpu -o $name.data "$@" -- sh -c "echo $entries > $write $and" 2> /share/$name.said || {
		cat /share/$name.said
		exit 1
	}
	wrote $name
	mv $name.data /share
}
# ... and what perf makes of it
log() {
	record "$@"
	perf script -i /share/$1.data --ns > $1.script
	mv $1.script /share
}
parameter() {
	echo $2 > /sys/module/vpa_dtl_hypervisor/parameters/$1
}
dmesg -c > /dev/null
insmod /share/vpa_dtl_hypervisor.ko
"""
COMMANDS = f"""
grep -r . /sys/bus/event_source/devices/vpa_dtl/events /sys/bus/event_source/devices/vpa_dtl/format > /share/sysfs
perf list vpa_dtl > /share/list
record many {MILLION // CPUS} -e sched:sched_switch -e vpa_dtl/dtl_all,period=1000000/
log some {SOME} -e sched:sched_switch -e vpa_dtl/dtl_all,period=1000000/
for event in {' '.join(KINDS)}; do
	log $event 300 -e vpa_dtl/$event,period=1000000/
done
log plain 300 -e vpa_dtl/dtl_all/
log group 2000 -e '{{cycles/period=100000/,instructions}}:S' -e vpa_dtl/dtl_all,period=1000000/
perf evlist -g -i /share/group.data > /share/group
perf report --stdio -i /share/group.data > /share/report
log late 50 -e vpa_dtl/dtl_all,period=100000000000/
# perf reads nothing while more is logged than the area and the log hold
python3 -c 'import resource; print(resource.getpagesize())' > /share/page
perf record -q -a -T --sample-cpu -m ,1 -o full.data -e vpa_dtl/dtl_all,period=1000000/ -- \\
	sh -c "kill -STOP \\$PPID; echo {STOPPED} > $write; kill -CONT \\$PPID; sleep 0.1; echo 100 > $write"
mv full.data /share
# perf ends it with a signal
echo 50000 > $write &
perf record -q -a -T --sample-cpu -o again.data -e vpa_dtl/dtl_all,period=1000000/ -D 5-15,25-35 -- sleep 1 || true
wait
wrote again
perf script -i again.data --ns > /share/again.script
perf record -q -a -o killed.data -e vpa_dtl/dtl_all,period=1000000/ -- sleep 1 &
sleep 0.1
kill -KILL $!
wait $! || true
parameter most 5
log slow 400 -e vpa_dtl/dtl_all,period=10000000/
log fast 400 -e vpa_dtl/dtl_all,period=1000/
log often 400 -F 500 -e vpa_dtl/dtl_all/
parameter most 200
log lost 1000 -e vpa_dtl/dtl_all,period=1000000/
dmesg > /share/dmesg
"""

LONG, WINDOW = 999000, 1000
BOTH = 20000
# opens an event of each CPU, with an attr of 160 bytes and an alternate period; prints the result
OPEN = """
import ctypes, struct, sys
kind = int(open("/sys/bus/event_source/devices/vpa_dtl/type").read())
attr = bytearray(160)
struct.pack_into("<IIQQ", attr, 0, kind, 160, 7, 1000000)
attr[40] = 1
struct.pack_into("<Q", attr, 144, int(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(319, bytes(attr), -1, 0, -1, 0)
print("opened" if fd >= 0 else ctypes.get_errno())
"""
SERIES = f"""
python3 /share/open.py 0 > /share/plain
python3 /share/open.py 1000 > /share/alternate
perf functions top --stdio -a -e '{{cycles,instructions}}:S' -e vpa_dtl/dtl_all,period=1000000/ -- sleep 60 2> /share/top && echo 0 >> /share/top || echo $? >> /share/top
perf record -o refused.data -a -e vpa_dtl/dtl_all,period=1000000,alt-period=1000/ -- echo ran > /share/refused 2>&1 || echo $? >> /share/refused
sysctl -qw kernel.perf_event_max_sample_rate=10000000 kernel.perf_cpu_time_max_percent=0
benchmark --truth 0 1 > /share/truth
and='& benchmark 0 1; wait'
log both {BOTH} -m 16M -e '{{cycles/period={LONG},alt-period={WINDOW}/,instructions}}:S' -e vpa_dtl/dtl_all,period=1000000/
perf report --stdio -i /share/both.data > /share/report
"""


class Entry(NamedTuple):
    """An entry of the log, as in struct dtl_entry."""

    dispatch_reason: int
    preempt_reason: int
    processor_id: int
    enqueue_to_dispatch_time: int
    ready_to_enqueue_time: int
    waiting_to_ready_time: int
    fault_addr: int
    srr0: int
    srr1: int


LAYOUT = struct.Struct(">BBHIIIQQQQ")


def known_entry(cpu: int, number: int, function: int) -> Entry:
    """The entry that the module writes, without the timebase."""
    return Entry(
        number % 11,
        (number % 3 + 1) * 2,
        cpu,
        number,
        number * 0x61C88647 % (1 << 32),
        number ^ 0xFFFFFFFF,
        number * 0x61C8864680B583EB % (1 << 64),
        function + number % 4 * 4,
        number ^ 0x8000000000009033,
    )


def chunks(entries: int, most: int) -> Iterator[range]:
    """The ranges of numbers that the module writes at once."""
    start = 0
    while start < entries:
        end = min(entries, start + start * 0x61C88647 % (1 << 32) % most + 1)
        yield range(start, end)
        start = end


# the lines of perf script
EVENT = re.compile(
    r"^ *(?P<comm>\S.*?) +(?P<pid>\d+) +\[(?P<cpu>\d+)\] +(?P<sec>\d+)\.(?P<nsec>\d{9}): +"
    r"(?:\d+ +)?(?P<name>\S+): +(?P<rest>.*)$"
)
FIRST = re.compile(r"timebase: (\d+) dispatch_reason:(\w+), preempt_reason:(\w+),$")
SECOND = re.compile(
    r"^enqueue_to_dispatch_time:(-?\d+),"
    r" ready_to_enqueue_time:(-?\d+),waiting_to_ready_time:(-?\d+), "
    r"processor_id: (\d+) +([0-9a-f]+) (\S+)"
)
SWITCH = re.compile(r"prev_pid=(\d+) .*next_pid=(\d+)")


class Printed(NamedTuple):
    """A printed event of perf script. words: those of an entry, or the two threads of a switch."""

    name: str
    cpu: int
    time: int
    words: tuple[str, ...]


def printed(name: str) -> Iterator[Printed]:
    """The events that perf script printed, in order.

    Raises ValueError for anything but an entry or a switch.
    """
    with open(SHARE / f"{name}.script", encoding="utf-8") as lines:
        for line in lines:
            event = EVENT.match(line)
            if not event:
                raise ValueError(f"{name}.script: {line}")
            if event["name"] == "vpa-dtl":
                found = FIRST.match(event["rest"]), SECOND.match(next(lines, ""))
            else:
                found = (SWITCH.search(event["rest"]),)
            if None in found:
                raise ValueError(f"{name}.script: {line}")
            yield Printed(
                event["name"],
                int(event["cpu"]),
                int(event["sec"]) * 10**9 + int(event["nsec"]),
                sum((part.groups() for part in found), ()),
            )


class Wrote(NamedTuple):
    """The entries that the module wrote on a CPU: thread, number of entries, sum of timebases."""

    thread: int
    entries: int
    timebases: int


def wrote(name: str) -> dict[int, Wrote]:
    """The entries that the module wrote, by CPU."""
    text = (SHARE / f"{name}.wrote").read_text()
    return {
        cpu: Wrote(*rest)
        for cpu, *rest in (map(int, re.findall(r"\d+", line)) for line in text.splitlines())
    }


def make_module() -> None:
    """Builds the module for the kernel, and puts it into the share."""
    if (
        not KBUILD.exists()
        or (KBUILD / "Module.symvers").read_bytes() != (KERNEL / SYMBOLS).read_bytes()
    ):
        prepare_modules(LINUX, KERNEL / SYMBOLS, KBUILD, ARCH)
    source = SHARE / "module"
    shutil.copytree(TOP / "tests/kernel/vpa_dtl", source)
    must(
        "make",
        "-C",
        KBUILD,
        f"M={source}",
        f"ARCH={machine(ARCH, 'kernel_arch')}",
        f"CROSS_COMPILE={machine(ARCH, 'cross_compile')}",
        "modules",
    )
    shutil.copy(source / "vpa_dtl_hypervisor.ko", SHARE)


def setUpModule() -> None:
    if not (LINUX / "arch/powerpc/perf/vpa-dtl.c").exists():
        raise unittest.SkipTest("this Linux has no vpa_dtl: BASE=7.3 has")
    shutil.rmtree(SHARE, ignore_errors=True)
    SHARE.mkdir(parents=True)
    make_module()


@functools.cache
def address() -> int:
    """The address that entries come from, that of plpar_hcall_norets."""
    return int(
        re.search(r"^(\w+) T plpar_hcall_norets$", (KERNEL / "System.map").read_text(), re.M)[1], 16
    )


class Log(unittest.TestCase):
    """Recordings on a machine with two CPUs."""

    @classmethod
    def setUpClass(cls):
        in_guest(LOG + COMMANDS, "--smp", CPUS, arch=ARCH, share=SHARE, timeout=1200)
        # use this computer's perf: the guest would take minutes
        must(
            "sh",
            "-c",
            '"$@" > many.script',
            "sh",
            PERF,
            "script",
            "-i",
            "many.data",
            "--ns",
            "--kallsyms",
            KERNEL / "System.map",
            cwd=SHARE,
        )

    def test_sysfs(self):
        found = sorted(
            line.split("vpa_dtl/")[1] for line in (SHARE / "sysfs").read_text().splitlines()
        )
        self.assertEqual(
            found,
            [
                "events/dtl_all:event=0x07",
                "events/dtl_cede:event=0x01",
                "events/dtl_fault:event=0x04",
                "events/dtl_preempt:event=0x02",
                "format/event:config:0-7",
            ],
        )

    def test_perf_lists_the_events(self):
        self.assertEqual(
            sorted(re.findall(r"vpa_dtl/(\w+)/", (SHARE / "list").read_text())),
            ["dtl_all", *sorted(KINDS)],
        )

    # every entry comes out, once

    def check(self, name: str, numbers: list[int] | range, extra: int = 0) -> None:
        """Exactly these entries of each CPU are in the AUX data and in perf script's output.

        extra: the number of others that were written.
        """
        told = wrote(name)
        self.assertEqual(sorted(told), list(range(CPUS)))
        recorded = perfdata.read(SHARE / f"{name}.data")
        self.assertNotIn(perfdata.RECORD_LOST, recorded.records)
        entries: dict[int, list[Printed]] = {cpu: [] for cpu in told}
        for event in printed(name):
            if event.name == "vpa-dtl":
                entries[event.cpu].append(event)
        for cpu, (_, number, timebases) in told.items():
            self.assertEqual(number, len(numbers) + extra)
            _, *raw = LAYOUT.iter_unpack(recorded.trace[cpu])
            self.assertEqual([entry[3] for entry in raw], list(numbers))
            self.assertEqual(len(entries[cpu]), len(raw))
            times = [entry[6] for entry in raw]
            self.assertEqual(times, sorted(times))
            if not extra:
                self.assertEqual(sum(times) % (1 << 64), timebases)
            for entry, event in zip(raw, entries[cpu]):
                self.check_entry(entry, event, *struct.unpack_from("<QQ", recorded.trace[cpu]))

    def check_entry(self, raw: tuple[int, ...], event: Printed, boot: int, frequency: int) -> None:
        """An entry in the AUX data and in the output of perf script is as the module wrote it."""
        entry = known_entry(event.cpu, raw[3], address())
        self.assertEqual((*raw[:6], *raw[7:]), entry)
        # perf calculates the time as a double
        self.assertLessEqual(abs(event.time - (raw[6] - boot) * 10**9 // frequency), 1)
        time, dispatch, preempt, *numbers, ip, symbol = event.words
        self.assertEqual(
            (int(time), dispatch, preempt),
            (raw[6], DISPATCH[entry.dispatch_reason], PREEMPT[entry.preempt_reason]),
        )
        self.assertEqual([int(value) % (1 << 32) for value in numbers], [*entry[3:6], event.cpu])
        self.assertEqual((int(ip, 16), symbol.split("+")[0]), (entry.srr0, "plpar_hcall_norets"))

    def test_a_million_entries(self):
        self.check("many", range(MILLION // CPUS))
        self.check("some", range(SOME))

    def test_mask(self):
        for number, event in enumerate(KINDS):
            with self.subTest(event):
                self.check(event, range(number, 300, 3))

    def test_what_is_logged_after_the_last_poll(self):
        self.check("late", range(50))

    def test_what_the_hypervisor_overwrote_is_a_gap(self):
        expected = [number for chunk in chunks(1000, 200) for number in chunk[-(RING - 1) :]]
        self.assertLess(len(expected), 800)
        self.check("lost", expected, 1000 - len(expected))
        gaps = sum(len(chunk) >= RING for chunk in chunks(1000, 200))
        for aux in perfdata.read(SHARE / "lost.data").aux.values():
            self.assertEqual(sum(bool(flags & PARTIAL) for _, _, flags in aux), gaps)
        for cpu in perfdata.read(SHARE / "many.data").aux.values():
            self.assertEqual({flags for _, _, flags in cpu}, {0})

    def test_full_area(self):
        """Entries without room wait in the log.

        perf finds the last of them when it reads again; the others are a gap.
        """
        recorded = perfdata.read(SHARE / "full.data")
        room = (
            int((SHARE / "page").read_text()) // LAYOUT.size - 1
        )  # boot time and frequency take one entry
        for cpu in range(CPUS):
            _, *raw = LAYOUT.iter_unpack(recorded.trace[cpu])
            numbers = [entry[3] for entry in raw]
            waited = len(numbers) - room - 100
            self.assertIn(waited, range(1, RING))
            self.assertEqual(
                numbers, [*range(room), *range(STOPPED - waited, STOPPED), *range(100)]
            )
            self.assertTrue(any(flags & PARTIAL for _, _, flags in recorded.aux[cpu]))

    # order

    def order(self, name: str, number: int) -> None:
        """All events are in the order of time, each entry while the thread that wrote it ran."""
        told, running, last, seen = wrote(name), {}, 0, 0
        for event in printed(name):
            self.assertGreaterEqual(event.time, last)
            last = event.time
            if event.name == "vpa-dtl":
                self.assertEqual(running.get(event.cpu), told[event.cpu].thread)
                seen += 1
            else:
                running[event.cpu] = int(event.words[1])
        self.assertEqual(seen, number)

    def test_entries_lie_where_their_writer_ran(self):
        self.order("some", CPUS * SOME)
        self.order("many", MILLION)

    # polling

    def polls(self, name: str, period: int) -> None:
        """Data comes at multiples of the period, mostly one period later."""
        for aux in perfdata.read(SHARE / f"{name}.data").aux.values():
            late = [(second[0] - first[0]) / period for first, second in pairwise(aux[:-1])]
            self.assertGreater(len(late), 5)
            for ratio in late:
                self.assertLess(abs(ratio - round(ratio)), 0.2)
            self.assertGreater([round(ratio) for ratio in late].count(1), 0.6 * len(late))

    def test_period(self):
        self.check("slow", range(400))
        self.polls("slow", 10_000_000)

    def test_shortest_period_is_a_millisecond(self):
        self.check("fast", range(400))
        self.polls("fast", 1_000_000)

    def test_neither_period_nor_frequency(self):
        self.check("plain", range(300))

    def test_frequency(self):
        self.check("often", range(400))
        self.polls("often", 2_000_000)

    def test_group_beside_it(self):
        self.assertIn("{cycles/period=100000/,instructions}\n", (SHARE / "group").read_text())
        report = (SHARE / "report").read_text()
        self.assertRegex(
            report,
            r"# Samples: \S+ +of events 'anon group \{ cycles/period=100000/, instructions \}'\n",
        )
        self.assertRegex(
            report,
            rf"# Samples: .* of event 'vpa-dtl'\n# Event count \(approx\.\): {CPUS * 2000}\n",
        )

    # enabling and complaints

    def test_disabled_and_enabled_again(self):
        """All entries of the enabled times are there, each once."""
        found = {cpu: [] for cpu in range(CPUS)}
        for event in printed("again"):
            found[event.cpu].append(int(event.words[3]))
        for cpu, (_, entries, _) in wrote("again").items():
            self.assertEqual(len(found[cpu]), entries)
            self.assertEqual(found[cpu], sorted(set(found[cpu])))
            self.assertGreater(entries, 300)
            self.assertGreaterEqual(max(late - early for early, late in pairwise(found[cpu])), 100)

    def test_kernel_does_not_complain(self):
        self.assertNotRegex(
            (SHARE / "dmesg").read_text(), r"\b(BUG|WARNING|Oops|Unable to handle)\b"
        )


class AlternatePeriods(unittest.TestCase):
    """The log beside events that alternate, with a kernel and a perf of the series."""

    @classmethod
    def setUpClass(cls):
        (SHARE / "open.py").write_text(OPEN)
        in_guest(LOG + SERIES, arch=ARCH, share=SHARE, timeout=580)

    def test_refused(self):
        self.assertEqual((SHARE / "plain").read_text(), "opened\n")
        self.assertEqual((SHARE / "alternate").read_text(), f"{errno.EOPNOTSUPP}\n")

    def test_perf_says_so(self):
        lines = (SHARE / "refused").read_text().splitlines()
        self.assertNotIn("ran", lines)
        self.assertNotEqual(int(lines[-1]), 0)
        self.assertEqual(
            len(
                [
                    line
                    for line in lines
                    if "PMU vpa_dtl cannot alternate between two sample periods" in line
                ]
            ),
            1,
            lines,
        )

    def test_report_has_both(self):
        for report in (
            (SHARE / "report").read_text(),
            must(PERF, "report", "--stdio", "-i", SHARE / "both.data"),
        ):
            self.assertRegex(
                report, rf"# Samples: .* of event 'vpa-dtl'\n# Event count \(approx\.\): {BOTH}\n"
            )
            self.assertRegex(report, r"# Samples: .* of events? '.*cycles.*'\n")

    def test_top_refuses_it(self):
        *said, status = (SHARE / "top").read_text().splitlines()
        self.assertIn("top takes neither tracepoints nor AUX data", "\n".join(said))
        self.assertNotEqual(int(status), 0)

    def test_function_table(self):
        """Script and command make the right table; the kernel has part of the cycles."""
        native = must(
            PERF,
            "functions",
            "report",
            "--json",
            "--share",
            "discard",
            "-i",
            SHARE / "both.data",
            "--symfs",
            BUILD / "root" / ARCH,
            "--kallsyms",
            KERNEL / "System.map",
            stderr=subprocess.PIPE,
        )
        tables = functions(SHARE / "both.data", "--share", "discard", arch=ARCH), {
            row["symbol"]: row for row in json.loads(native)["functions"]
        }
        for table in tables:
            check_shares(self, table, read_truth((SHARE / "truth").read_text()), WINDOW, most=0.9)
        script, native = ({name: row["sums"] for name, row in table.items()} for table in tables)
        self.assertEqual(native, script)


if __name__ == "__main__":
    unittest.main()
