# SPDX-License-Identifier: GPL-2.0
"""Recordings of the emulated machine: alternation, tables of the benchmark, threads and children.

perfdata.py reads the samples, not perf. `benchmark --truth` counts what the benchmark does, one
instruction at a time, without a PMU.
"""

import math
import re
import unittest
from collections import Counter
from itertools import count, pairwise

from tests.harness import perfdata
from tests.harness import perfwrite as pw
from tests.harness.env import CHECK, PERF, functions, in_guest, must, run, words
from tests.harness.machines import RECORD
from tests.harness.truth import Truth, check_shares, measured_rates, read_truth

MINUTES = 2
MACHINES = "arm64"

SHARE = CHECK / "recording"
LONG, WINDOW = 999700, 300
MEMBERS = "instructions,page-faults"
JITTER_LONG, JITTER_WINDOW, JITTER = 20000, 2000, 7
# fewer iterations where every window is recorded: 140,000 windows
SHORT = "--iterations 800"
# numbers of windows in a burst, and rates of long intervals per second
COUNTS, PERIOD = (1, 2, 4, 8), 99700
RATES = 100, 1000
COMMANDS = (
    RECORD
    + f"""
benchmark --truth --faults 0 1 > /share/truth
record alternate.data '{{cycles/period={LONG},alt-period={WINDOW}/,{MEMBERS}}}:uS' benchmark --faults 0 1
record plain-window.data '{{cycles/period={WINDOW}/,{MEMBERS}}}:uS' benchmark --faults {SHORT} 0 1
record jitter.data '{{cycles/period={JITTER_LONG},alt-period={JITTER_WINDOW},alt-period-jitter={JITTER}/,instructions}}:uS' \\
	benchmark --iterations 1000 0 1
record tracepoint.data raw_syscalls:sys_enter/alt-period=2,period=4/ sh -c 'i=0; while [ $i -lt 100 ]; do echo; i=$((i + 1)); done'
record threads.data '{{cycles/period=99700,alt-period=300/,instructions}}:uS' benchmark --threads 3 --iterations 500 0 1
record children.data '{{cycles/period=99700,alt-period=300/,instructions}}:uS' \\
	sh -c 'benchmark --iterations 500 0 1; benchmark --iterations 1000 0 1 & benchmark --iterations 500 1 1; wait'
for count in {" ".join(map(str, COUNTS))}; do
	record burst-$count.data "{{cycles/period={PERIOD},alt-period={WINDOW},alt-period-count=$count/,instructions}}:uS" \\
		benchmark --iterations 2000 0 1
done
record frequency-100.data '{{cycles/freq=100,alt-period={WINDOW},alt-period-count=2/,instructions}}:uS' benchmark 0 1
perf record -q -F 1000 -T --sample-cpu -m 16M -o frequency.data -e '{{cycles/alt-period={WINDOW}/,instructions}}:uS' -- \\
	benchmark 0 1 > /dev/null
mv frequency.data /share/frequency-1000.data
"""
)


ON_TWO_CPUS = """
cd /tmp
perf record -q -T --sample-cpu -o two-cpus.data -e '{cycles/period=99700,alt-period=300/,instructions}:uS' -- \\
	benchmark --threads 3 --iterations 500 0 1 > /dev/null
mv two-cpus.data /share
"""

# Programs that come and go, so that a window often closes late, when its task leaves the CPU.
ON_FOUR_CPUS = """
cd /tmp
cat > busy <<'END'
for n in 1 2 3 4 5 6 7 8; do
	i=0
	while [ $i -lt 100 ]; do echo $i | cat > /dev/null; i=$((i + 1)); done &
done
benchmark --threads 4 --iterations 300 0 1 > /dev/null &
wait
END
perf record -q -a -m 4M -o four-cpus.data -e '{cycles/period=49700,alt-period=20000/,instructions}:uS' -- sh busy
mv four-cpus.data /share
"""


def setUpModule() -> None:
    for old in SHARE.glob("*"):
        old.unlink()
    in_guest(COMMANDS, share=SHARE, timeout=1800)
    in_guest(ON_TWO_CPUS, "--smp", 2, share=SHARE)
    in_guest(ON_FOUR_CPUS, "--smp", 4, share=SHARE)


def read(name: str) -> perfdata.Contents:
    return perfdata.read(SHARE / f"{name}.data")


def truth() -> Truth:
    """Length of a call, share, and page faults in a call, by function of the benchmark."""
    return read_truth((SHARE / "truth").read_text())


def deltas(recording: perfdata.Contents, number: int = 0) -> list[int]:
    """The counts of one group member between the samples of the only stream."""
    values = [list(sample.values.values())[number] for sample in recording.stream()]
    return [late - early for early, late in pairwise(values)]


class Alternation(unittest.TestCase):
    """Long, window, long, window ..."""

    def test_periods_strictly_alternate(self):
        periods = [sample.period for sample in read("alternate").stream()]
        self.assertEqual((set(periods[::2]), set(periods[1::2])), ({LONG}, {WINDOW}))

    def test_tracepoint(self):
        periods = [sample.period for sample in read("tracepoint").stream()]
        self.assertGreater(len(periods), 20)
        self.assertEqual((set(periods[::2]), set(periods[1::2])), ({4}, {2}))

    def test_reported_period_is_what_was_counted(self):
        recording = read("alternate")
        stream = recording.stream()
        self.assertGreater(len(stream), 1500)
        self.assertEqual([sample.period for sample in stream][1:], deltas(recording))
        self.assertEqual(stream[0].period, list(stream[0].values.values())[0])


class Order(unittest.TestCase):
    """The sample that opens a window is written when it closes."""

    def test_perf_sorts_what_is_written_late(self):
        """On a busy machine of four processors."""
        path = SHARE / "four-cpus.data"
        done = run(PERF, "report", "-D", "-i", path)
        self.assertNotIn("out of order", done.stdout)
        records = [
            (cpu, int(time), int(place, 16))
            for cpu, time, place in re.findall(
                r"(?m)^(\d+) ([1-9]\d*) 0x([\da-f]+) \[0x[\da-f]+\]: PERF_RECORD_", done.stdout
            )
        ]
        self.assertGreater(len(records), 10000)
        times = [time for _, time, _ in records]
        self.assertEqual(times, sorted(times))
        late, newest = 0, Counter()
        for cpu, _, place in records:
            late += place < newest[cpu]
            newest[cpu] = max(place, newest[cpu])
        self.assertGreater(late, 100)


class Jitter(unittest.TestCase):
    """Each interval is drawn uniformly from p - h to p + h."""

    def test_bounds_mean_and_distribution(self):
        first, *periods = [sample.period for sample in read("jitter").stream()]
        self.assertTrue(1 <= first <= JITTER_LONG + JITTER_WINDOW)
        for nominal, drawn in ((JITTER_LONG, periods[1::2]), (JITTER_WINDOW, periods[::2])):
            half = min(1 << JITTER, nominal // 2)
            self.assertGreaterEqual(len(drawn), 1000)
            self.assertGreaterEqual(min(drawn), nominal - half)
            self.assertLessEqual(max(drawn), nominal + half)
            error = math.sqrt(((2 * half + 1) ** 2 - 1) / 12 / len(drawn))
            self.assertLess(abs(sum(drawn) / len(drawn) - nominal), 4 * error)
            self.assertLess(self.chi_square(drawn, nominal - half, 2 * half + 1, 16), self.LIMIT_15)

    # chi-square with 15 degrees of freedom exceeds this once in 10,000 times
    LIMIT_15 = 44.26

    @staticmethod
    def chi_square(drawn: list[int], low: int, width: int, bins: int) -> float:
        """The chi-square of numbers in equal bins against a uniform distribution of integers."""
        seen, size = [0] * bins, [0] * bins
        for value in range(width):
            size[value * bins // width] += 1
        for value in drawn:
            seen[(value - low) * bins // width] += 1
        expected = [len(drawn) * part / width for part in size]
        return sum((number - mean) ** 2 / mean for number, mean in zip(seen, expected))


class Bursts(unittest.TestCase):
    """Long, window, window ..., each window between its own two samples."""

    def test_windows_follow_each_long_interval(self):
        for number in COUNTS:
            with self.subTest(number=number):
                periods = [sample.period for sample in read(f"burst-{number}").stream()]
                self.assertGreater(len(periods), 500 * (number + 1))
                self.assertEqual(set(periods[:: number + 1]), {PERIOD})
                for place in range(number):
                    self.assertEqual(set(periods[place + 1 :: number + 1]), {WINDOW})


class Frequency(unittest.TestCase):
    """The kernel chooses the long period; the windows have the length asked for."""

    def test_windows_follow_each_long_interval(self):
        for rate, number in zip(RATES, (2, 1)):
            periods = [sample.period for sample in read(f"frequency-{rate}").stream()]
            with self.subTest(rate=rate):
                for place in range(number):
                    self.assertEqual(set(periods[place + 1 :: number + 1]), {WINDOW})
                self.assertGreater(min(periods[10 * (number + 1) :: number + 1]), 100 * WINDOW)

    def test_rate_of_the_long_intervals(self):
        for rate, number in zip(RATES, (2, 1)):
            times = [sample.time for sample in read(f"frequency-{rate}").stream()][:: number + 1]
            # skip the start: the kernel does not yet know how fast the program counts
            times = times[len(times) // 10 :]
            with self.subTest(rate=rate):
                found = (len(times) - 1) / (times[-1] - times[0]) * 1e9
                self.assertLess(abs(found / rate - 1), 0.1)


class Measured(unittest.TestCase):
    """The table agrees with the benchmark."""

    def test_shares(self):
        """In share mode auto, the default, they are right, whether windows match or not."""
        for recording, *options in (
            ("alternate",),
            ("alternate"),
            ("plain-window"),
        ):
            table = functions(SHARE / f"{recording}.data", *options)
            check_shares(self, table, truth(), WINDOW)

    def faults(self, recording: str) -> dict[str, tuple[float, float, int]]:
        """Page faults per instruction of each function, their standard error, and their number."""
        return measured_rates(functions(SHARE / f"{recording}.data"), "page-faults")

    def test_page_faults(self):
        expected = truth()
        for recording in "alternate", "plain-window":
            faults = self.faults(recording)
            rate, error, number = faults["dcache_miss"]
            self.assertGreaterEqual(number, 400)
            self.assertGreater(error, 0)
            true = expected["dcache_miss"].faults / expected["dcache_miss"].length
            self.assertLess(abs(rate - true), 4 * error)
            for name, (_, _, number) in faults.items():
                if name in expected and not expected[name].faults:
                    self.assertEqual(number, 0, name)


class Threads(unittest.TestCase):
    """All threads and children of a program are there, each with its own counts."""

    def counted(self, name: str) -> list[int]:
        """The instructions that each busy thread counted, on all CPUs, sorted."""
        recording = read(name)
        threads: dict[int, int] = {}
        for (_, thread), stream in recording.streams(recording.leader()).items():
            threads[thread] = threads.get(thread, 0) + list(stream[-1].values.values())[1]
        # the shell and the benchmark's first thread do little
        return sorted(number for number in threads.values() if number > 10_000_000)

    def check(self, name: str, iterations: list[int]) -> None:
        """There is a thread for each of these numbers of iterations of the benchmark."""
        counted = self.counted(name)
        length = sum(row.length for row in truth().values())
        self.assertEqual(len(counted), len(iterations))
        for instructions, expected in zip(counted, sorted(iterations)):
            self.assertAlmostEqual(instructions / length / expected, 1, delta=0.02)
        recording = read(name)
        for stream in recording.streams(recording.leader()).values():
            values = [list(sample.values.values())[0] for sample in stream]
            own = [late - early for early, late in pairwise(values)]
            self.assertEqual(own, [sample.period for sample in stream][1:])

    def test_threads(self):
        self.check("threads", [500, 500, 500])

    def test_threads_on_two_cpus(self):
        # counts are not compared: with several CPUs, QEMU counts the instructions of all of them
        self.assertEqual(len(self.counted("two-cpus")), 3)
        self.assertEqual({sample.cpu for sample in read("two-cpus").samples}, {0, 1})

    def test_children(self):
        self.check("children", [500, 500, 1000])

    def test_perf_gives_each_thread_its_own_deltas(self):
        for name in ("threads", "children", "two-cpus"):
            recording = read(name)
            expected = sorted(
                late - early
                for stream in recording.streams(recording.leader()).values()
                for early, late in pairwise(list(sample.values.values())[1] for sample in stream)
            )
            out = must(PERF, "script", "-i", SHARE / f"{name}.data", "-F", "tid,cpu,event,period")
            # each thread has a stream on each CPU, whose first sample only opens it
            told: dict[tuple[str, str], list[int]] = {}
            for thread, cpu, period in re.findall(r"(\d+) \[(\d+)\] +(\d+) +instructions", out):
                told.setdefault((thread, cpu), []).append(int(period))
            self.assertEqual(
                sorted(period for periods in told.values() for period in periods[1:]), expected
            )
            self.assertGreater(len(told), 2)

    def test_thread_with_the_tid_of_a_former_one(self):
        """Its counts begin at zero, even if they soon exceed those of the former thread."""
        group = [pw.Event("cycles", 0, 0, [1], LONG, flags=pw.FLAG_SAMPLE_ID_ALL | pw.FLAG_INHERIT)]
        writer = pw.Writer([group])
        clock = count(1000)
        thread, parent = (lambda tid=tid: pw.Where(next(clock), 100, tid) for tid in (7, 100))
        writer.comm(parent(), "program")
        for values in (100, 400), (1000, 1200), (30, 90):
            writer.task(pw.FORK, thread(), parent())
            for value in values:
                writer.sample(group[0], thread(), 0x1000, LONG, [(1, value)])
            writer.task(pw.EXIT, thread(), parent())
        writer.write(SHARE / "tids.data")
        out = must(PERF, "script", "-i", SHARE / "tids.data", "-F", "tid,period")
        self.assertEqual(
            words(out), [["7", str(period)] for period in (100, 300, 1000, 200, 30, 60)]
        )


if __name__ == "__main__":
    unittest.main()
