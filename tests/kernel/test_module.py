# SPDX-License-Identifier: GPL-2.0
"""The module, built from its DKMS package, on Linux 6.12 without the series."""

import json

from bench import experiment
from tests.harness import modules
from tests.harness.env import CHECK, PERF, in_guest, must, pack_reproduce
from tests.harness.machines import RECORD
from tests.harness.modules import GROUP, SHORT_LONG, WINDOW
from tests.harness.pristine import IMAGE, pristine_module
from tests.harness.truth import LEAVES, read_truth

# beside test_series.py, which builds what this suite needs before it takes the work tree
MINUTES = 5
MACHINES = "arm64"

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


class Linux(modules.Module):
    share = CHECK / "module"
    OPTIONS = ("--kernel", IMAGE)
    COMMANDS = f"""
record short.data '{GROUP}' true
mkdir /tmp/clone
tar -xf /share/clone.tar -C /tmp/clone
# perf reads its own recordings only, and who owns /share is not who owns the guest
/tmp/clone/bench/reproduce --iterations {REPRODUCED} --out /tmp/reproduce > /share/reproduced
cp /tmp/reproduce/results.json /share/
"""

    @classmethod
    def make(cls):
        pristine_module(cls.share)
        pack_reproduce(cls.share / "clone.tar")

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
            *self.OPTIONS,
            "--smp",
            2,
            "--no-icount",
            share=self.share,
            timeout=1800,
        )
        self.assertGreater(int((self.share / "turns").read_text()), 5)
        self.assertNotRegex((self.share / "two.dmesg").read_text(), modules.COMPLAINTS)
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
