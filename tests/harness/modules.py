# SPDX-License-Identifier: GPL-2.0
"""The tests of the module for kernels that cannot be rebuilt, on any such kernel.

A suite derives a class for a kernel, and tells how to boot it and make the module for it. The tests
of recordings are those of test_recording.py.
"""

import shutil
import unittest
from itertools import pairwise
from pathlib import Path

from tests.harness import perfdata
from tests.harness.env import in_guest
from tests.harness.machines import RECORD

LONG, WINDOW = 999700, 300
GROUP = f"{{cycles/period={LONG},alt-period={WINDOW}/,instructions,page-faults}}:uS"
SHORT_LONG = 99700
SHORT = f"{{cycles/period={SHORT_LONG},alt-period={WINDOW}/,instructions}}:uS"

MODULE_RATE = "events with a period and one window at a time"
MODULE_PERIODS = "periods of 3 or more and an 'alt-period' below 2^40"
# events that the module cannot alternate and a short period cannot replace, with perf's words
REFUSED = {
    "software": ("page-faults/period=7,alt-period=2/u", "the hardware events of a CPU"),
    "clock": ("cpu-clock/period=100000,alt-period=20000/u", "the hardware events of a CPU"),
    "tracepoint": ("raw_syscalls:sys_enter/period=4,alt-period=2/", "the hardware events of a CPU"),
    "breakpoint": ("mem:0x1000/4:w/period=4,alt-period=2/", "the hardware events of a CPU"),
    "precise": ("cycles/period=999700,alt-period=300/up", "events that are not precise"),
    "wide": (f"cycles/period=999700,alt-period={1 << 40}/u", MODULE_PERIODS),
    "narrow": ("cycles/period=999700,alt-period=2/u", MODULE_PERIODS),
    "short": ("cycles/period=2,alt-period=300/u", MODULE_PERIODS),
    "frequency": ("cycles/freq=1000,alt-period=300/u", MODULE_RATE),
    "burst": ("cycles/period=999700,alt-period=300,alt-period-count=2/u", MODULE_RATE),
}

WITHOUT = f"""
say() {{
	name=$1
	shift
	status=0
	perf "$@" -- echo ran > /share/$name.out 2>&1 || status=$?
	echo $status >> /share/$name.out
}}
say record-without record -o said.data -e '{GROUP}'
say trace-without trace --no-syscalls -e cycles/period={LONG},alt-period={WINDOW}/u
"""

WITH = f"""
insmod /share/perf_alt_period.ko
benchmark --truth --faults 0 1 > /share/truth
record alternate.data '{GROUP}' benchmark --faults 0 1
say record-with record -o said.data -e '{GROUP}' -e cycles/period={LONG},alt-period={WINDOW}/u
""" + "".join(
    f"say refused-{name} record -o said.data -e '{event}'\n" for name, (event, _) in REFUSED.items()
)

# Some million instructions of the shell
BUSY = "i=0; while [ $i -lt 5000 ]; do i=$((i + 1)); done"
UNLOAD = f"""
mkfifo ready go
unload() {{
	rmmod perf_alt_period
	[ -z "$sleeping" ] || echo > go
	wait $recording
	insmod /share/perf_alt_period.ko
}}
unload_under_load() {{
	recording=$!
	until pgrep -x benchmark > /dev/null; do sleep 0.01; done
	sleep 0.05
	unload
}}
record running.data '{SHORT}' benchmark --iterations 4000 0 1 &
unload_under_load
perf record -q -a -o system.data -e '{SHORT}' -- benchmark --iterations 4000 0 1 > /dev/null &
unload_under_load
mv system.data /share
record asleep.data '{SHORT}' sh -c '{BUSY}; echo > ready; read line < go; {BUSY}' &
recording=$!
read line < ready
sleeping=1 unload
dmesg > /share/dmesg
"""

COMPLAINTS = r"\b(BUG|WARNING|Oops|Unable to handle)\b"


class Module(unittest.TestCase):  # pylint: disable=too-many-public-methods
    """Recordings by the module, what perf says, and events that are open when it goes."""

    share: Path
    OPTIONS: tuple[object, ...] = ()  # for scripts/vm.py
    COMMANDS = ""  # further commands with the module loaded

    @classmethod
    def make(cls) -> None:
        """Puts perf_alt_period.ko for the kernel into the share."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        shutil.rmtree(cls.share, ignore_errors=True)
        cls.share.mkdir(parents=True)
        cls.make()
        in_guest(
            RECORD + WITHOUT + WITH + cls.COMMANDS + UNLOAD,
            *cls.OPTIONS,
            share=cls.share,
            timeout=1800,
        )

    def read(self, name: str) -> perfdata.Contents:
        return perfdata.read(self.share / f"{name}.data")

    def periods(self, name: str) -> list[int]:
        return [sample.period for sample in self.read(name).stream()]

    def said(self, name: str) -> tuple[list[str], int]:
        """The lines that a command printed, and its exit status."""
        *lines, status = (self.share / f"{name}.out").read_text().splitlines()
        return [line for line in lines if line.strip()], int(status)

    def test_periods_strictly_alternate_after_the_first_two(self):
        found = self.periods("alternate")
        self.assertGreater(len(found), 1500)
        self.assertEqual(found[:2], [LONG, LONG])
        self.assertEqual(set(found[2::2]), {WINDOW})
        self.assertEqual(set(found[3::2]), {LONG})

    def test_reported_period_is_what_was_counted(self):
        stream = self.read("alternate").stream()
        values = [list(sample.values.values())[0] for sample in stream]
        self.assertEqual(
            [late - early for early, late in pairwise(values)],
            [sample.period for sample in stream][1:],
        )

    # perf's messages

    def test_says_once_that_it_uses_the_module(self):
        lines, status = self.said("record-with")
        self.assertEqual((status, lines.count("ran")), (0, 1))
        self.assertEqual(
            [line for line in lines if "module" in line],
            [
                "This kernel does not know alternate sample periods, the module perf_alt_period"
                " does."
            ],
        )

    def test_error_without_the_module_names_both_ways(self):
        for name in ("record-without", "trace-without"):
            with self.subTest(name):
                lines, status = self.said(name)
                self.assertNotEqual(status, 0)
                self.assertNotIn("ran", lines)
                told = [line for line in lines if "does not know alternate sample periods" in line]
                self.assertEqual(len(told), 1, lines)
                self.assertRegex(
                    told[0],
                    (
                        r"needs one with perf_event_attr\.alternative_sample_period, or the module"
                        r" perf_alt_period\."
                    ),
                )

    def test_refuses_what_the_module_cannot(self):
        for name, (_, limit) in REFUSED.items():
            with self.subTest(name):
                lines, status = self.said(f"refused-{name}")
                self.assertNotEqual(status, 0)
                self.assertNotIn("ran", lines)
                self.assertEqual(
                    len(
                        [
                            line
                            for line in lines
                            if line.endswith(
                                f"the module perf_alt_period has them for {limit} only."
                            )
                        ]
                    ),
                    1,
                    lines,
                )

    # events that are open when the module is removed end their window, and go on with the long
    # period

    def check_unloaded(self, found: list[int]) -> None:
        self.assertEqual(set(found), {SHORT_LONG, WINDOW})
        last = len(found) - 1 - found[::-1].index(WINDOW)
        self.assertGreater(last, 20)
        self.assertGreater(len(found) - last, 20)
        self.assertEqual(set(found[2 : last + 1 : 2]), {WINDOW})
        self.assertEqual(set(found[3 : last + 1 : 2]), {SHORT_LONG})

    def test_running_event(self):
        self.check_unloaded(self.periods("running"))

    def test_event_of_a_cpu(self):
        samples = sorted(self.read("system").samples, key=lambda sample: sample.time)
        self.check_unloaded([sample.period for sample in samples])

    def test_event_of_a_sleeping_task(self):
        self.check_unloaded(self.periods("asleep"))

    def test_kernel_does_not_complain(self):
        self.assertNotRegex((self.share / "dmesg").read_text(), COMPLAINTS)
