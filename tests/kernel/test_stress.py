# SPDX-License-Identifier: GPL-2.0
"""A million random calls, and the selftests, on a kernel that checks itself.

It checks memory (KASAN, kmemleak), arithmetic (UBSAN), locks (lockdep), sleeping and preemption. A
complaint ends the machine or is found in its log. Afterwards there must be no more events, tasks
and open files than before.
"""

import os
import re
import unittest
from concurrent.futures import ThreadPoolExecutor

from tests.harness import fuzz
from tests.harness.env import ARCH, CHECK, TOP, machine, must, vm
from tests.harness.machines import PROGRAMS, make_selftest

SLOW = True
MINUTES = 30
MACHINES = "arm64"

SHARE = CHECK / "stress"

# Runs COMMAND. Freed memory leaves late (RCU, KASAN's quarantine, the slab allocator's stock), so
# wait up to a minute for a steady state. Kernel threads may come and go.
GUEST = """
count() {
	for cache in perf_event task_struct filp; do echo 1 > /sys/kernel/slab/$cache/shrink; done
	read -r events _ < /sys/kernel/slab/perf_event/objects
	read -r tasks _ < /sys/kernel/slab/task_struct/objects
	read -r _ _ _ threads _ < /proc/loadavg
	read -r files _ < /sys/kernel/slab/filp/objects
	programs=$(readlink /proc/[0-9]*/exe | wc -l)
	echo "events $events, dead tasks $((tasks - ${threads#*/})), files $files, programs $programs"
}

settled() {
	for _ in $(seq 60); do
		now=$(count)
		[ "$now" != "${1-$last}" ] || break
		last=$now
		sleep 1
	done
	echo "$now"
}

before=$(settled)
{ COMMAND
}
status=$?
echo "before: $before"
echo "after: $(settled "$before")"
echo scan > /sys/kernel/debug/kmemleak
sleep 6
echo scan > /sys/kernel/debug/kmemleak
cat /sys/kernel/debug/kmemleak
grep debug_locks /proc/lockdep_stats
dmesg | grep -E -A 40 '(BUG|WARNING|UBSAN|INFO):|Call trace|suspected memory leak'
exit $status
"""


# 16 samples at each tick, so that few windows are cut by a throttle; not so many that they take all
# of the processor's time, and no fewer because this kernel needs long for each.
RATE = """
echo 4000 > /proc/sys/kernel/perf_event_max_sample_rate
echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent
"""


def setUpModule() -> None:
    must("make", "kernel", f"ARCH={ARCH}", "DEBUG=1")
    fuzz.build(SHARE)
    make_selftest(SHARE, ARCH, *PROGRAMS)
    must(
        *(machine(ARCH, "cross_compile") + "gcc", "-O2", "-Wall", "-Werror", "-static"),
        *("-isystem", SHARE / "headers/usr/include"),
        *("-o", SHARE / "bpf_address", TOP / "tests/kernel/bpf_address.c"),
    )


class Stress(unittest.TestCase):
    def guest(self, command: str, *options: object) -> str:
        """The command's output; checks that the machine did not complain and lost nothing."""
        done = vm(GUEST.replace("COMMAND", command), "--debug", *options, share=SHARE, timeout=3600)
        self.assertEqual(done.returncode, 0, done.stdout)
        output, separator, end = done.stdout.partition("before: ")
        self.assertTrue(separator, done.stdout)
        kept = r"events (\d+), dead tasks (-?\d+), files (\d+), programs (\d+)\n"
        found = re.fullmatch(rf"{kept}after: {kept} *debug_locks: +1\n", end)
        self.assertTrue(found, done.stdout)
        counts = [int(number) for number in found.groups()]
        for before, after in zip(counts[:4], counts[4:], strict=True):
            self.assertLessEqual(after, before, end)
        return output

    def test_kunit_and_selftests(self):
        """The unit tests, which the kernel runs at boot, and the system call's selftests pass."""
        output = self.guest(" && ".join(["dmesg", *(f"./{name}" for name in PROGRAMS)]))
        self.assertRegex(output, r"(?m)^ok \d+ perf_alt_period$")
        self.assertEqual(
            len(re.findall(r"^# PASSED: (\d+) / \1 tests passed", output, re.M)),
            len(PROGRAMS),
            output,
        )

    def test_program_reads_no_stack(self):
        """This kernel fills variables with a pattern, which a program must not see."""
        self.assertRegex(self.guest("./bpf_address"), r"\d\d samples without an address")

    def test_one_processor(self):
        """The calls are the same in each run; machines run at once, one per processor."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            outputs = pool.map(
                self.guest, [f"{RATE} ./fuzz_attr {seed} 250000" for seed in range(1, 5)]
            )
            output = "".join(outputs)
        self.assertEqual(fuzz.totals(self, output)["calls"], 1000000)

    def test_two_processors(self):
        """Two fuzzers run at once on two processors; one processor comes and goes."""
        output = self.guest(
            RATE
            + """
            pids=
            for seed in 11 12; do
                ./fuzz_attr $seed 20000 > $seed.out & pids="$pids $!"
            done
            status=0
            for pid in $pids; do wait $pid || status=1; done
            cat 11.out 12.out
            (exit $status)""",
            "--smp",
            2,
            "--no-icount",
        )
        totals = fuzz.totals(self, output)
        self.assertEqual(totals["calls"], 40000)
        self.assertGreater(totals["hotplugs"], 5, output)
