# SPDX-License-Identifier: GPL-2.0
"""The module, built from its DKMS package, on Linux 6.12 without the series."""

import json
import shutil
import unittest
from itertools import pairwise

from bench import experiment
from tests.harness import perfdata
from tests.harness.env import CHECK, PERF, in_guest, must, pack_reproduce
from tests.harness.machines import RECORD
from tests.harness.pristine import IMAGE, pristine_module
from tests.harness.truth import LEAVES, read_truth

# beside test_series.py, which builds what this suite needs before it takes the work tree
MINUTES = 5
MACHINES = "arm64"

LONG, WINDOW = 999700, 300
GROUP = f"{{cycles/period={LONG},alt-period={WINDOW}/,instructions,page-faults}}:uS"
SHORT_LONG = 99700
SHORT = f"{{cycles/period={SHORT_LONG},alt-period={WINDOW}/,instructions}}:uS"

RATE = "events with a period and one window at a time"
# events that the module cannot alternate and a short period cannot replace, with perf's words
REFUSED = {
    "software": ("page-faults/period=7,alt-period=2/u", "the hardware events of a CPU"),
    "precise": ("cycles/period=999700,alt-period=300/up", "events that are not precise"),
    "wide": (
        f"cycles/period=999700,alt-period={1 << 40}/u",
        "periods of 3 or more and an 'alt-period' below 2^40",
    ),
    "frequency": ("cycles/freq=1000,alt-period=300/u", RATE),
    "burst": ("cycles/period=999700,alt-period=300,alt-period-count=2/u", RATE),
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

# iterations: enough for some hundred windows; the function with the smallest share has seven
REPRODUCED = 2000

# With two processors, the emulator's counters do not count instructions, and times are the host's.
ON_TWO = f"""
insmod /share/perf_alt_period.ko
perf record -q -a -o /tmp/two.data -e cycles/period={SHORT_LONG},alt-period={WINDOW}/u -- \\
	benchmark --threads 4 --iterations 20000 0 1 > /dev/null &
until pgrep -x benchmark > /dev/null; do sleep 0.01; done
turns=0
while pgrep -x benchmark > /dev/null; do
	sleep 0.01
	rmmod perf_alt_period
	insmod /share/perf_alt_period.ko
	turns=$((turns + 1))
done
wait $!
mv /tmp/two.data /share
echo $turns > /share/turns
dmesg > /share/two.dmesg
"""
REPRODUCE = f"""
record short.data '{GROUP}' true
mkdir /tmp/clone
tar -xf /share/clone.tar -C /tmp/clone
# perf reads its own recordings only, and who owns /share is not who owns the guest
/tmp/clone/bench/reproduce --iterations {REPRODUCED} --out /tmp/reproduce > /share/reproduced
cp /tmp/reproduce/results.json /share/
"""


class Module(unittest.TestCase):
    """Recordings by the module, what perf says, and events that are open when it goes."""

    @classmethod
    def setUpClass(cls):
        cls.share = CHECK / "module"
        shutil.rmtree(cls.share, ignore_errors=True)
        cls.share.mkdir(parents=True)
        pristine_module(cls.share)
        pack_reproduce(cls.share / "clone.tar")
        in_guest(
            RECORD + WITHOUT + WITH + REPRODUCE + UNLOAD,
            *("--kernel", IMAGE),
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
        (told,) = (line for line in lines if "module" in line)
        self.assertIn("not know alternate sample periods, the module perf_alt_period does.", told)

    def test_error_without_the_module_names_both_ways(self):
        lines, status = self.said("record-without")
        self.assertNotEqual(status, 0)
        self.assertNotIn("ran", lines)
        (told,) = (line for line in lines if "does not know alternate sample periods" in line)
        self.assertIn("needs one with perf_event_attr.alternative_sample_period, or the mod", told)

    def test_refuses_what_the_module_cannot(self):
        for name, (_, limit) in REFUSED.items():
            with self.subTest(name):
                lines, status = self.said(f"refused-{name}")
                self.assertNotEqual(status, 0)
                self.assertNotIn("ran", lines)
                reason = f"the module perf_alt_period has them for {limit} only."
                self.assertEqual([line.endswith(reason) for line in lines].count(True), 1, lines)

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

    def test_reproduces_the_published_experiment(self):
        result = json.loads((self.share / "results.json").read_text())["published"]
        (rows,) = result["limit"].values()
        events = REPRODUCED * sum(
            row.length for row in read_truth((self.share / "truth").read_text()).values()
        )
        self.assertAlmostEqual(rows[experiment.ALTERNATE]["samples"], 2 * events / 1e6, delta=12)
        self.assertLessEqual(set(LEAVES), {row["symbol"] for row in result["functions"]})

    def test_comes_and_goes_beside_another_processor(self):
        in_guest(
            RECORD + ON_TWO,
            *("--kernel", IMAGE, "--smp", 2, "--no-icount"),
            share=self.share,
            timeout=1800,
        )
        self.assertGreater(int((self.share / "turns").read_text()), 5)
        self.assertNotRegex((self.share / "two.dmesg").read_text(), COMPLAINTS)
        for cpu in 0, 1:
            found = [sample.period for sample in self.read("two").samples if sample.cpu == cpu]
            self.assertEqual(set(found), {SHORT_LONG, WINDOW})
            self.assertGreater(found.count(WINDOW), 100)

    def test_attr_is_that_of_a_kernel_with_the_series(self):
        in_guest(RECORD + f"record kernel.data '{GROUP}' true", share=self.share)
        shown = [
            must(PERF, "evlist", "-v", "-i", self.share / f"{name}.data")
            for name in ("kernel", "short")
        ]
        self.assertIn(f"alternative_sample_period: {WINDOW}", shown[0])
        self.assertEqual(*shown)
