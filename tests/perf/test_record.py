# SPDX-License-Identifier: GPL-2.0
"""perf functions record: the sampling of the leaders of groups by its options, and its messages if
the kernel or the machine cannot do that.

perf evlist -v shows the attrs of a recording. Other kernels and machines are simulated: a library
replaces perf_event_open(2) in front of the emulated machine's kernel, which alternates and has a
PMU.
"""

import json
import re
import tempfile
import unittest
from pathlib import Path

from tests.harness.env import CHECK, PERF, in_guest, must, run
from tests.harness.tables import flat
from tests.harness.truth import LEAVES, read_truth

MINUTES = 2
MACHINES = "arm64"

SHARE = CHECK / "record"
PERIOD, WINDOW, JITTER, PLAIN = 999700, 300, 18, 1000
N2 = "0x00000000410fd490"
OWN = "-e '{{cycles/{}/,instructions}}:uS'"

# options, and how they sample the leader of each group: period, or frequency as text; window,
# jitter and burst, 0 where there is none
CASES: tuple[tuple[str, list[tuple]], ...] = (
    ("", [(PERIOD, WINDOW, JITTER, 0)]),
    ("--period 50000", [(50000, WINDOW, JITTER, 0)]),
    ("-c 7 --period=50000", [(50000, WINDOW, JITTER, 0)]),
    ("-F 500", [("500 Hz", WINDOW, JITTER, 0)]),
    ("--no-jitter", [(PERIOD, WINDOW, 0, 0)]),
    ("--period 5000 --window 700 --jitter 9", [(5000, 700, 9, 0)]),
    ("--no-window", [(PLAIN, 0, 0, 0)]),
    ("--no-window -F 500", [("500 Hz", 0, 0, 0)]),
    ("--kernel", [(PERIOD, WINDOW, JITTER, 0)]),
    # those of -e as perf record samples them
    ("-e '{cycles,instructions}:uS'", [("4000 Hz", 0, 0, 0)]),
    ("--eve cycles:u -e instructions:u", 2 * [("4000 Hz", 0, 0, 0)]),
    ("--period 7 -e '{cycles,instructions}:uS' -c 5000", [(5000, 0, 0, 0)]),
    (OWN.format("period=5000"), [(5000, 0, 0, 0)]),
    (OWN.format("period=5000,alt-period=700,alt-period-count=3"), [(5000, 700, 0, 3)]),
    (OWN.format("alt-period=700,alt-period-jitter=5") + " --period 5000", [(5000, 700, 5, 0)]),
    (
        "-e '{instructions/period=5000/,cycles}:uS' -e cycles:u",
        [(5000, 0, 0, 0), ("4000 Hz", 0, 0, 0)],
    ),
    ("-M ipc --period 5000 --window 700 --jitter 9", [(5000, 700, 9, 0)]),
    ("-M ipc --no-window --kernel", [(PLAIN, 0, 0, 0)]),
)

# Replaces perf_event_open(2): answers as the KERNEL would.
KERNELS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { TYPE = 0, SIZE = 1 };			/* of 32 bits */
enum { SAMPLE_TYPE = 3, FLAGS = 5, ALTERNATE = 18, JITTER };	/* of 64 bits */
enum { HARDWARE = 0, SAMPLE_READ = 1 << 4, INHERIT = 1 << 1, EXCLUDE_GUEST = 1 << 20 };
#define DEFER_CALLCHAIN (1ULL << 38)		/* perf asks for it first; newer than 6.11 */

static int answer(uint32_t *words)
{
	uint64_t *attr = (uint64_t *)words;
	const char *kernel = getenv("KERNEL") ?: "";
	int is_hardware = words[TYPE] == HARDWARE;

	if (strstr(kernel, "6.11") &&
	    (attr[FLAGS] & DEFER_CALLCHAIN ||
	     (attr[FLAGS] & INHERIT && attr[SAMPLE_TYPE] & SAMPLE_READ)))
		return EINVAL;
	/* perf asks with shorter ones what the kernel can do */
	if (words[SIZE] < 160)
		return 0;
	if (strstr(kernel, "plain") && (attr[ALTERNATE] || attr[JITTER])) {
		words[SIZE] = 136;
		return E2BIG;
	}
	if (strstr(kernel, "pmu") && is_hardware && attr[ALTERNATE])
		return EOPNOTSUPP;
	if (strstr(kernel, "guests") && is_hardware && !(attr[FLAGS] & EXCLUDE_GUEST))
		return EOPNOTSUPP;
	if (strstr(kernel, "rights"))
		return EPERM;
	if (strstr(kernel, "none") && is_hardware)
		return ENOENT;
	return 0;
}

long syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	int error = number == SYS_perf_event_open ? answer((void *)a) : 0;

	if (!error)
		return real(number, a, b, c, d, e, f);
	errno = error;
	return -1;
}
"""

COMMANDS = f"""
sysctl -qw kernel.perf_event_max_sample_rate=10000000 kernel.perf_cpu_time_max_percent=0
export PERF_CPUID={N2}
cd /tmp
option() {{
	perf functions record -q "$@" true 2> said || {{ cat said; exit 1; }}
}}
{{
{{options}}
}}
unset PERF_CPUID

# on KERNEL NAME COMMAND...: NAME.said gets the output of COMMAND on that kernel, and its status
on() {{
	local kernel=$1 name=$2 status=0
	shift 2
	KERNEL=$kernel LD_PRELOAD=/share/kernels.so "$@" > $name.said 2>&1 < /dev/null || status=$?
	echo $status >> $name.said
}}
# the parent has windows, too
program="sh -c 'benchmark --iterations 2000 0 1; i=0; while [ \\$i -lt 8000 ]; do i=\\$((i + 1)); done'"
for way in "" -a; do
	eval on 6.11 children$way perf functions record --windows-only -o children.data $way -- "$program"
	perf functions report -i children.data -j > children$way.json || true
done
eval on 6.12 inherited perf functions record --windows-only -o inherited.data -- "$program"
perf functions report -i inherited.data -j > inherited.json 2> inherited.notes

on plain plain perf functions record --windows-only -o plain.data true
on pmu pmu perf functions record --windows-only -o pmu.data true
on guests guests perf functions record -o guests.data -e '{{cycles,instructions}}:uGHS' true
on guests host perf functions record -o host.data true
on guests host-kernel perf functions record -o host-kernel.data --kernel true
on none none perf functions record -o none.data true
on "plain none" nothing perf functions record -o nothing.data -- \
	sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done'
perf functions report -i nothing.data -j > nothing.json
on "plain none" no-windows perf functions record --windows-only -o no-windows.data true
on "plain none" own-clock perf functions record -e cycles:u -o own-clock.data true
on rights rights perf functions record -o rights.data true
on "" large perf functions record -e '{{cycles,r3,r4,r8,r10,r12,r13,r17,r1b}}:uS' -o large.data true
# members sample, too
for kernel in own plain pmu; do
	on $kernel samples-$kernel perf functions record -o samples-$kernel.data -- benchmark 0 1
	perf functions report -i samples-$kernel.data -j > samples-$kernel.json \
		2> samples-$kernel.notes
	for source in windows samples; do
		on own $kernel-$source perf functions report -i samples-$kernel.data --source $source
	done
done
on own samples-faults perf functions record -o samples-faults.data \
	-e cycles:u,page-faults:u -- benchmark --faults 0 1
perf functions report -i samples-faults.data -j > samples-faults.json 2> samples-faults.notes
benchmark --truth 0 1 > /share/truth
benchmark --truth --faults 0 1 > /share/truth-faults
on own samples-default perf functions record -o samples-default.data --period 99700 true
on plain samples-window perf functions record -o /dev/null --window 300 true

echo nobody:x:65534:65534::/:/bin/sh > /etc/passwd
for event in cycles:u cycles; do
	su nobody -c "perf record -g -e $event -o - benchmark 0 1 | perf script -i - -F sym" |
		sed -n '/nops/,/main$/p' | head -4 > /share/callers-$event
done
mv ./*.data ./*.said ./*.notes ./*.json /share
"""


def has_events(options: str) -> bool:
    """Whether these are the user's."""
    return "-e " in options or "--eve " in options


def setUpModule() -> None:
    SHARE.mkdir(parents=True, exist_ok=True)
    for old in SHARE.glob("*"):
        old.unlink()
    (SHARE / "kernels.c").write_text(KERNELS)
    compiler = "aarch64-linux-gnu-gcc -shared -fPIC -w -o"
    must(*compiler.split(), SHARE / "kernels.so", SHARE / "kernels.c", "-ldl")
    options = "\n".join(
        f"option -o option-{number}.data {options}" + " --windows-only" * (not has_events(options))
        for number, (options, _) in enumerate(CASES)
    )
    in_guest(COMMANDS.replace("{options}", options), share=SHARE, timeout=1800)


def attrs(name: str) -> list[dict[str, str]]:
    """The attrs of a recording, as perf evlist -v prints them."""
    text = must(PERF, "evlist", "-v", "-i", SHARE / f"{name}.data")
    lines = [line for line in text.splitlines() if ", size: " in line]
    return [dict(re.findall(r"([\w{][\w, ]*\}?): ([^,]*)", line)) for line in lines]


def leaders(name: str) -> list[dict[str, str]]:
    """The attrs of events that sample."""
    return [attr for attr in attrs(name) if "{ sample_period, sample_freq }" in attr]


def sampling(attr: dict[str, str]) -> tuple:
    """The sampling of an event, as in CASES."""
    rate = int(attr["{ sample_period, sample_freq }"])
    return (
        f"{rate} Hz" if "freq" in attr else rate,
        int(attr.get("alternative_sample_period", 0)),
        int(attr.get("jitter_alternate_period", 0)),
        int(attr.get("alternative_sample_count", 0)),
    )


def said(name: str) -> tuple[str, int]:
    """The output of a command, and its exit status."""
    *lines, status = (SHARE / f"{name}.said").read_text().splitlines()
    return "\n".join(lines), int(status)


def windows(name: str) -> int:
    """The number of matched windows in a report."""
    report = flat((SHARE / f"{name}.json").read_text())
    return sum(row["windows"]["matched"] for row in report["functions"])


class Options(unittest.TestCase):
    def test_sampling(self):
        """Each leader samples as the options and its own terms say."""
        for number, (options, expected) in enumerate(CASES):
            with self.subTest(options):
                found = leaders(f"option-{number}")
                self.assertEqual([sampling(attr) for attr in found], expected)

    def test_what_is_counted(self):
        """User space counts, the kernel only with --kernel, and a guest never does."""
        for number, (options, _) in enumerate(CASES):
            if has_events(options):
                continue
            for attr in attrs(f"option-{number}"):
                with self.subTest(options):
                    self.assertEqual("exclude_kernel" not in attr, "--kernel" in options)
                    self.assertNotIn("exclude_user", attr)
                    self.assertIn("exclude_guest", attr)

    def test_members_are_read_with_samples(self):
        for number in 0, 1:
            leader, *members = attrs(f"option-{number}")
            self.assertIn("READ", leader["sample_type"].split("|"))
            self.assertTrue(members)
            for member in members:
                self.assertNotIn("{ sample_period, sample_freq }", member)


class Samples(unittest.TestCase):
    """Members sample, too, unless --windows-only is given."""

    def test_sources(self):
        """A kernel or PMU that cannot alternate has no windows. That is nothing to complain of."""
        for kernel, windows_too in ("own", True), ("plain", False), ("pmu", False):
            text, status = said(f"samples-{kernel}")
            self.assertEqual(status, 0, text)
            self.assertNotIn("perf functions:", text)
            self.assertEqual(said(f"{kernel}-samples")[1], 0)
            self.assertEqual(said(f"{kernel}-windows")[1], 0 if windows_too else 255)
        leader, *members = (sampling(attr) for attr in leaders("samples-own"))
        self.assertEqual(leader, (4999700, WINDOW, 21, 0))
        self.assertGreater(len(members), 0)
        self.assertEqual({one[1:] for one in members}, {(0, 21, 0)})
        # the first interval of each process is drawn, where the kernel can
        for kernel, jitter in ("plain", 0), ("pmu", 21):
            found = attrs(f"samples-{kernel}")
            self.assertEqual(len(found), len(members) + 1)
            rate = f"{min(1000, 4000 // len(found))} Hz"
            self.assertEqual({sampling(attr) for attr in found}, {(rate, 0, jitter, 0)})
            self.assertNotIn("READ", found[0]["sample_type"].split("|"))

    def test_rates(self):
        """All events together take at most 4,000 samples a second, at 5 GHz."""
        leader, *members = leaders("samples-default")
        self.assertEqual(sampling(leader), (99700, WINDOW, 21, 0))
        rates = [int(attr["{ sample_period, sample_freq }"]) for attr in members]
        self.assertGreater(len(rates), 0)
        self.assertLessEqual(sum(rates), 2000)
        self.assertEqual({"freq" in attr for attr in members}, {True})

    def test_window_that_was_asked_for(self):
        """It is refused, as with --windows-only."""
        text, status = said("samples-window")
        self.assertEqual(status, 255)
        self.assertIn("does not know alternate sample periods", text)

    def test_truth(self):
        """Shares of the cycles, and of the page faults, each by its own samples."""
        hits = 0
        for name, truth in ("own", ""), ("plain", ""), ("pmu", ""), ("faults", "-faults"):
            true = read_truth((SHARE / f"truth{truth}").read_text())
            rows = {
                row["symbol"]: row["intervals"]
                for row in flat((SHARE / f"samples-{name}.json").read_text())["functions"]
            }
            for leaf in LEAVES:
                low, high = rows[leaf]["%CY"]
                hits += low <= 100 * true[leaf].share <= high
        low, high = rows["dcache_miss"]["%PF"]
        self.assertGreater(high, 99)
        self.assertGreater(low, 80)
        # of intervals of 95 %, six miss by chance in one of 400 runs
        self.assertGreater(hits, 4 * len(LEAVES) - 6)


class Children(unittest.TestCase):
    """The kernel lets no child inherit a group with counts in its samples."""

    WARNING = "children and new threads of the program are not in this profile"

    def test_warns(self):
        """The children do the work, but the recording has none of it; with -a it has all."""
        for name, warns in ("children", True), ("children-a", False), ("inherited", False):
            text, status = said(name)
            self.assertEqual(status, 0, text)
            self.assertEqual(text.count(self.WARNING), warns, text)
        self.assertLess(windows("children"), windows("inherited") / 2)


class Ways(unittest.TestCase):
    """What is said where events cannot be recorded as wanted: one line, if perf has none."""

    def test_no_alternation(self):
        """The kernel, or its PMU, does not alternate."""
        for name, message in (
            ("plain", "does not know alternate sample periods"),
            ("pmu", "cannot alternate between two sample periods"),
        ):
            text, status = said(name)
            self.assertEqual(status, 255, text)
            self.assertEqual(text.count(message), 1)
            self.assertNotIn("perf functions", text)

    def test_group_that_is_too_large(self):
        """A message names the event, or perf itself leaves the event out (since Linux 7.0)."""
        text, status = said("large")
        if status:
            self.assertRegex(
                text, "perf functions: no counter is left for r[0-9a-f]+ in its group: "
            )
        else:
            self.assertRegex(text, "Failure to open event 'r[0-9a-f]+'.* which will be removed")

    def test_virtual_machine_has_the_pmu(self):
        """Linux 7.0 and later refuse events that count guests; this command's events do not."""
        text, status = said("guests")
        self.assertEqual(status, 255)
        self.assertRegex(text, "a virtual machine has the counters .*modifier H")
        for name in ("host", "host-kernel"):
            self.assertEqual(said(name)[1], 0)
            self.assertTrue(all("exclude_guest" in attr for attr in attrs(name)))

    def test_no_pmu(self):
        """The clock and page faults are recorded, and one line says so; windows are refused."""
        for name in "none", "nothing":
            text, status = said(name)
            self.assertEqual(status, 0, text)
            (line,) = (one for one in text.splitlines() if one.startswith("perf functions:"))
            self.assertRegex(line, "no PMU.*: recording the clock and page faults .*make demo")
            self.assertNotIn("alternate", text)
            types = [attr["type"] for attr in attrs(name)]
            self.assertEqual(types, ["1 (software)"] * 2)
        table = json.loads((SHARE / "nothing.json").read_text())
        self.assertIn("%CLK", {column["name"] for column in table["columns"]})
        self.assertGreater(len(table["functions"]), 0)
        text, status = said("no-windows")
        self.assertEqual((status, len(text.splitlines())), (255, 1), text)
        self.assertRegex(text, "no PMU.*: windows, -b and -M need one")

    def test_clock_instead_of_cycles(self):
        """perf record takes it without a word."""
        text, status = said("own-clock")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, "perf functions: .*no PMU.*clock")

    def test_no_rights(self):
        """A container may forbid what sysctl allows; perf would have 20 lines of advice."""
        text, status = said("rights")
        self.assertEqual((status, len(text.splitlines())), (255, 1), text)
        self.assertIn("CAP_PERFMON", text)

    def test_callers_without_rights(self):
        """perf record -g of somebody who may not see the kernel."""
        for event in "cycles:u", "cycles":
            found = (SHARE / f"callers-{event}").read_text().split()[1::2]
            self.assertEqual(found, ["nops", "iteration", "benchmark_run", "main"], event)


class Here(unittest.TestCase):
    """On this machine."""

    def test_directory(self):
        """One that is no recording stays where it is."""
        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder) / "own"
            own.mkdir()
            done = run(PERF, "functions", "record", "-o", own, "true", stderr=-1)
            self.assertIn(f"{own} is a directory, and not of perf record", done.stderr)
            self.assertTrue(done.returncode)
            self.assertTrue(own.is_dir())
            self.assertEqual(list(Path(folder).iterdir()), [own])

    def test_pipe(self):
        """perf script reads the pipe that it has."""
        command = f"{PERF} record -e cpu-clock:u -o - -- {PERF} test -w sqrtloop 1 | {PERF} script"
        self.assertIn("cpu-clock:u:", run("sh", "-c", command, stderr=-1).stdout)

    def test_full_device(self):
        """It is full before perf record begins, or while it records; the program would not end."""
        data = SHARE / "here.data"
        if run(PERF, "record", "-q", "-e", "cpu-clock:u", "-o", data, "true").returncode:
            self.skipTest("no right to record here: see kernel.perf_event_paranoid")
        with tempfile.TemporaryDirectory() as folder:
            mount = f"mount -t tmpfs -o size=1m none {folder}"
            if run("unshare", "--mount", *mount.split()).returncode:
                self.skipTest("no right to mount a file system")
            for output in "/dev/full", f"{folder}/data":
                done = run(
                    *("unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"),
                    *(PERF, "functions", "record", "-o", output),
                    *("-e", "{cpu-clock/period=100000/,page-faults}:uS"),
                    *("sh", "-c", "while :; do :; done"),
                    stderr=-1,
                )
                reason = "failed to write perf data, error: No space left on device"
                self.assertEqual((done.stderr, done.returncode), (f"{reason}\n", 255), output)
