# SPDX-License-Identifier: GPL-2.0
"""Tests of `make bench`: the goals that it measures, its arithmetic, the same numbers twice."""

import json
import math
import os
import random
import re
import statistics
import unittest

from tests.harness.env import CHECK, TOP, must, run

SLOW = True
ALONE = True
MINUTES = 60
MACHINES = "arm64 emulator"

OUT = CHECK / "bench"
os.environ["BENCH_OUT"] = str(OUT)  # do not overwrite the results of `make bench`
# pylint: disable=wrong-import-position
from bench import (
    accuracy,
    by_module,
    collect,
    cost,
    experiment,
    hosts,
    published,
    resonance,
    scaling,
    stitched_lbr,
)
from tests.harness.truth import Line

OTHERS = "cost resonance collect hosts"  # experiments without a small form to test
# 800 iterations have 827 pairs; the limits are four standard deviations
RATE_ERROR = {"alternate": 0.04, "jitter": 0.07}
WINDOWS_DIFFER = {"alternate": 32, "jitter": 32}


class Arithmetic(unittest.TestCase):
    def test_interrupted_blocks_do_not_count(self):
        blocks = [(0, 1000 + 16 * (n % 3)) for n in range(99)] + [(0, 9000)] * 5
        blocks += [
            (10 + n % 2, 1016 + 70 * (10 + n % 2) + (5000 if n % 7 == 0 else 0)) for n in range(99)
        ]
        random.Random(1).shuffle(blocks)
        self.assertEqual(cost.per_overflow("\n".join(f"{n} {time}" for n, time in blocks)), 70)

    def test_what_jittered_windows_are_worth(self):
        """Random walks confirm the number of independent windows.

        The mean of cos(2 pi place / loop) over jittered windows has the error of so many of them.
        """
        generator, windows, length, pair = random.Random(1), 400, 2700, 100 * 2700
        for jitter in 8, 9:
            widths, means = (2 * (1 << jitter) + 1, resonance.WINDOW + 1), []
            for _ in range(400):
                place, total = generator.randrange(length), 0.0
                for _ in range(windows):
                    place += sum(int(width * generator.random()) - width // 2 for width in widths)
                    total += math.cos(2 * math.pi * place / length)
                means.append(total / windows)
            worth = resonance.independent(windows, length, pair, jitter)
            self.assertAlmostEqual(statistics.stdev(means) / math.sqrt(0.5 / worth), 1, delta=0.12)

    def test_a_longer_run(self):
        """The estimate for the published run is right.

        A table takes 1 s to start and 1 µs for each sample; this run is as long as the published
        one.
        """

        def row(samples: int, seconds: float) -> dict:
            return {"samples": samples, "seconds": dict.fromkeys(experiment.COMMANDS, seconds)}

        limited = {
            experiment.FEW_SAMPLES: row(4, 1),
            experiment.LONG: row(27_890, 9),
            experiment.ALTERNATE: row(50_000, 9),
            experiment.SHORT: row(3_500_000, 9),
        }
        text = published.longer(
            {"limit": {"25 %": limited, "none": {experiment.SHORT: row(10**6, 2)}}}
        )
        self.assertIn("For a run 1 times as long", text)
        # 4.5 s to 1.05 s; for a run 118 times as long, 1 + 413 to 1 + 5.9
        found = re.findall(r" 4 for \S[^(]* \(a ratio of 60 takes a run 118 times as long\)", text)
        self.assertEqual(len(found), 2, text)

    def test_without_jitter_windows_are_worth_nothing(self):
        self.assertEqual(resonance.independent(1000, 2700, 270000, 0), 0)


class Published(unittest.TestCase):
    """A short form of the published experiment."""

    ITERATIONS, LENGTH = 1500, 51_700  # LENGTH: instructions of a call of iteration()

    @classmethod
    def setUpClass(cls):
        cls.result = published.measure(cls.ITERATIONS)
        cls.again = published.measure(cls.ITERATIONS)

    def test_samples_are_as_many_as_the_periods_say(self):
        """There is no limit; the start of the benchmark adds up to a tenth to its samples."""
        for periods, samples in {
            experiment.LONG: 1e-6,
            "period=1000": 1e-3,
            experiment.SHORT: 1 / 300,
            experiment.ALTERNATE: 2e-6,
        }.items():
            found = self.result["limit"]["none"][periods]
            expected = self.ITERATIONS * self.LENGTH * samples
            self.assertTrue(
                0.97 * expected - 2 < found["samples"] < 1.1 * expected + 2,
                f"{periods}: {found}, expected {expected}",
            )
            self.assertEqual((found["throttled"], found["lost"]), (0, 0), periods)

    def test_limit_cuts_short_periods_only(self):
        limited, free = (self.result["limit"][limit] for limit in ("25 %", "none"))
        for periods in experiment.LONG, experiment.ALTERNATE:
            self.assertEqual(limited[periods]["throttled"], 0)
            self.assertEqual(limited[periods]["samples"], free[periods]["samples"])
        self.assertGreater(limited[experiment.SHORT]["throttled"], 3)
        self.assertLess(
            limited[experiment.SHORT]["samples"], 110_000 * limited[experiment.SHORT]["run_time"]
        )

    def test_goals(self):
        """In so short a run, one turn of perf itself is some percent."""
        self.assertTrue(self.result["met"]["file, none"], self.result["ratios"])
        for limit, rows in self.result["limit"].items():
            self.assertLess(
                rows[experiment.ALTERNATE]["run_time"] - rows[experiment.LONG]["run_time"],
                0.005,
                limit,
            )
            self.assertGreater(
                self.result["limit"]["none"][experiment.SHORT]["run_time"],
                5 * rows[experiment.LONG]["run_time"],
            )

    def test_a_table_of_every_window_takes_longer(self):
        for name in experiment.COMMANDS:
            self.assertGreater(self.result["ratios"][f"{name}, none"], 3)

    def test_same_again(self):
        """Samples of user instructions are exactly as many; times differ by a turn of perf."""
        for limit, rows in self.result["limit"].items():
            for periods, row in rows.items():
                other = self.again["limit"][limit][periods]
                # with a limit, their number depends on where the program starts in a tick of
                # 100,000 / HZ samples
                differ = 2 * 400 if row["throttled"] else 0
                self.assertAlmostEqual(
                    row["samples"], other["samples"], delta=differ, msg=f"{limit}, {periods}"
                )
                self.assertAlmostEqual(
                    row["run_time"],
                    other["run_time"],
                    delta=0.005 + 0.01 * row["run_time"],
                    msg=periods,
                )


class Accuracy(unittest.TestCase):
    """A short form of the comparison with the truth."""

    @classmethod
    def setUpClass(cls):
        cls.result = accuracy.measure(iterations=2400, windows=(300, 3000), depths=(1, 2))
        cls.again = accuracy.measure(iterations=2400, windows=(300, 3000), depths=(1, 2))

    def row(self, kind: str, window: int, mode: str, depth: int = 1) -> dict:
        (found,) = accuracy.select(self.result, kind=kind, window=window, mode=mode, depth=depth)
        return found

    def test_errors_of_a_known_table(self):
        """A twentieth of the cycles and a fifth of the page faults are in the wrong function."""
        truth = {
            "dcache_miss": Line(100, 1, 100, 0.5, 10),
            "nops": Line(100, 1, 100, 0.5, 0),
        }
        table = {
            name: {
                "sums": [
                    {
                        "opened": 200,
                        "samples": 50,
                        "matched": 40,
                        "totals": {"cycles": part, "instructions": part, "page-faults": faults},
                    }
                ],
                "metrics": {"%CY": share, "PF/KI": rate},
            }
            for name, part, faults, share, rate in (
                ("dcache_miss", 450, 40, 48.0, 110.0),
                ("nops", 550, 10, 52.0, 0.0),
            )
        }
        found = accuracy.errors(table, truth)
        self.assertEqual((found["windows"], found["matched"]), (100, 80))
        self.assertAlmostEqual(found["share error"], 0.05)
        self.assertAlmostEqual(found["rate error"], 40 / 450 / 0.1 - 1)
        self.assertAlmostEqual(found["spill"], 0.2)
        # 400 samples end long periods, and the table's own values are nearer to the truth
        found = accuracy.errors(table, truth, "auto")
        self.assertAlmostEqual(found["share error"], 0.02)
        self.assertAlmostEqual(found["by chance"], math.sqrt(2 / math.pi * 0.25 / 400))
        self.assertAlmostEqual(found["rate error"], 0.1)

    def test_shares_of_long_periods_are_true(self):
        for depth in 1, 2:
            for window in 300, 3000:
                row = self.row("alternate", window, "auto", depth)
                self.assertLess(row["share error"], 2.5 * row["by chance"], row)

    def test_every_window_kept_has_the_true_shares(self):
        """A recording of every window has no sampling error that could hide a wrong share."""
        for depth in 1, 2:
            self.assertLess(self.row("plain", 300, "none", depth)["share error"], 0.002)

    def test_windows_kept_have_the_shares_that_follow_from_the_calls(self):
        for depth in 1, 2:
            row = self.row("plain", 300, "discard", depth)
            self.assertAlmostEqual(
                row["share error"], self.result["bias"][str(depth)]["300"], delta=0.003
            )
        self.assertGreater(self.result["bias"]["2"]["300"], 4 * self.result["bias"]["1"]["300"])

    def test_discarding_has_the_error_that_is_calculated(self):
        for window in 300, 3000:
            row, bias = (
                self.row("alternate", window, "discard"),
                self.result["bias"]["1"][str(window)],
            )
            self.assertLess(abs(row["share error"] - bias), 2.5 * row["by chance"], row)
        self.assertGreater(
            self.row("alternate", 3000, "discard")["share error"],
            2 * self.result["bias"]["1"]["300"],
        )

    def test_rate(self):
        """Short windows have the rate; without windows, all functions have the mean."""
        for kind in "alternate", "jitter":
            self.assertLess(abs(self.row(kind, 300, "discard")["rate error"]), 0.04)
            self.assertEqual(self.row(kind, 300, "discard")["spill"], 0)
        share = self.result["truth"]["1"]["dcache_miss"]
        self.assertLess(abs(self.row("plain", 1_000_000, "none")["rate error"] - (share - 1)), 0.1)
        self.assertGreater(self.row("alternate", 3000, "none")["spill"], 0.1)

    def test_deep_calls_want_shorter_windows(self):
        for window in "300", "3000":
            self.assertGreater(self.result["bias"]["2"][window], self.result["bias"]["1"][window])
        self.assertEqual(self.result["best"]["1"], 300)

    def test_same_again(self):
        """All rows are the same but those with jitter."""
        for row, other in zip(self.result["rows"], self.again["rows"], strict=True):
            if row["kind"] != "jitter":
                self.assertEqual(row, other)

    def test_plots(self):
        for plot in accuracy.PLOT, accuracy.FUNCTIONS_PLOT:
            self.assertIn("<svg", plot.read_text())
        self.assertIn(">isb<", accuracy.FUNCTIONS_PLOT.read_text())


class ByModule(unittest.TestCase):
    """A short form of the comparison of module and series."""

    @classmethod
    def setUpClass(cls):
        cls.result = by_module.measure(iterations=1500, windows=(300,), pairs=800)
        cls.rows = {
            name: {(row["kind"], row["mode"]): row for row in rows}
            for name, rows in cls.result["tables"].items()
        }

    def test_an_overflow_costs_an_exception_more(self):
        cost_of = self.result["added"]
        self.assertGreater(cost_of["loaded"], 5 * cost_of["used"])
        self.assertLess(cost_of["module"] - cost_of["loaded"], 2 * cost_of["used"])

    def test_recordings_are_as_large(self):
        for periods in by_module.PERIODS:
            series, module = (
                self.result["recordings"][name][periods] for name in ("series", "module")
            )
            self.assertEqual((module["lost"], module["throttled"]), (0, 0))
            self.assertAlmostEqual(module["samples"], series["samples"], delta=2)
            self.assertAlmostEqual(module["bytes"], series["bytes"], delta=0.02 * series["bytes"])
            self.assertAlmostEqual(module["run_time"], series["run_time"], delta=0.005)

    def test_errors(self):
        """They are those of the series, except for chance.

        The module's windows begin 300 cycles earlier, as its first one follows two long intervals.
        """
        for (kind, mode), row in self.rows["module"].items():
            self.assertLess(abs(row["rate error"]), RATE_ERROR[kind], row)
            self.assertAlmostEqual(
                row["windows"],
                self.rows["series"][kind, mode]["windows"],
                delta=WINDOWS_DIFFER[kind],
            )
            if mode == "discard":
                self.assertLess(row["share error"], 0.01 + 2.5 * row["by chance"], row)


class Scaling(unittest.TestCase):
    """A short form of the scaling."""

    @classmethod
    def setUpClass(cls):
        cls.result = scaling.measure(
            iterations=2000, cpus=(2,), threads=(1, 1000), samples=(10**4, 10**5)
        )

    def test_threads(self):
        """Each thread begins with a long interval."""
        one, many = self.result["threads"]
        pairs = 2000 * 51_700 / (scaling.LONG + scaling.WINDOW)
        self.assertTrue(0.97 * pairs < one["windows"] < 1.1 * pairs, one)
        self.assertAlmostEqual(
            many["windows"],
            1000 * (2 * 51_700 // (scaling.LONG + scaling.WINDOW)),
            delta=20,
        )
        for row in one, many:
            self.assertEqual((row["lost"], row["throttled"]), (0, 0))
        self.assertLess(abs(one["rate error"]), 0.04)
        self.assertLess(one["share error"], 3 * one["by chance"])

    def test_processors(self):
        (row,) = self.result["cpus"]
        self.assertEqual(row["lost"], 0)
        self.assertGreater(row["windows"], 100)

    def test_time_grows_with_samples_memory_of_the_command_does_not(self):
        """measure() itself checks that the tables have what was written."""
        few, many = self.result["samples"]
        for name in scaling.COMMANDS:
            self.assertLess(many["seconds"][name], 20 * few["seconds"][name])
        self.assertLess(many["memory"]["native"], 1.5 * few["memory"]["native"])

    def test_thousand_threads(self):
        self.assertEqual(scaling.workload(1000, 2000).count("--threads 250 --iterations 2 "), 4)
        self.assertEqual(
            scaling.workload(10, 2000), "benchmark --faults --threads 10 --iterations 200 0 1"
        )


class StitchedLbr(unittest.TestCase):
    """A short form of the stitching."""

    def test_levels_and_time(self):
        result = stitched_lbr.measure(samples=10_000)
        self.assertEqual(result["levels"], {"without": 32, "with": 43})
        self.assertTrue(0 < result["more time"] < 1, result)
        self.assertRegex(
            stitched_lbr.report(result), r"\| increase \| 34[.]4 % \| \d+ % \| 34[.]4 % \| 39 % \|"
        )


class Bench(unittest.TestCase):  # pylint: disable=too-many-public-methods
    @classmethod
    def setUpClass(cls):
        must("make", "bench", "BENCH=cost", timeout=3600)
        cls.first = json.loads((OUT / "results.json").read_text())
        cls.output = must("make", "bench", f"BENCH={OTHERS}", timeout=3600)
        results = json.loads((OUT / "results.json").read_text())
        cls.cost, cls.resonance, cls.collect, cls.hosts = (
            results[name] for name in ("cost", "resonance", "collect", "hosts")
        )

    def test_tables_are_shown_and_kept(self):
        table = (OUT / "README.md").read_text()
        self.assertIn(table, self.output)
        for measurement in cost, resonance, collect, hosts:
            self.assertIn(f"## {measurement.TITLE}\n", table)

    def test_cost_of_an_event_that_does_not_alternate(self):
        self.assertLessEqual(self.cost["added"]["unused"], 4)

    def test_cost_of_an_event_that_alternates(self):
        self.assertGreater(self.cost["added"]["used"], self.cost["added"]["unused"])
        self.assertLessEqual(self.cost["added"]["used"], 30)
        self.assertGreater(self.cost["added"]["jitter"], self.cost["added"]["used"])

    def test_stop_and_start_is_what_the_series_saves(self):
        self.assertGreater(self.cost["stop-start ratio"], 5)

    def test_struct_perf_event_grows_by_what_the_attr_grows(self):
        growth = {name: size["after"] - size["before"] for name, size in self.cost["bytes"].items()}
        self.assertGreater(growth["struct perf_event_attr"], 0)
        self.assertEqual(growth["struct perf_event"], growth["struct perf_event_attr"])

    def test_results_page_says_what_was_measured(self):
        readme = (TOP / "results/6.12/README.md").read_text()
        rows = [line for line in cost.report(self.cost).splitlines() if line.startswith("|")]
        self.assertEqual([row for row in rows if f"\n{row}\n" not in readme], [])

    def test_loop_is_as_long_as_its_functions(self):
        """The PMU counts the instructions by the symbols' sizes, and the few of the loop itself."""
        truth, length = self.resonance["truth"], self.resonance["loop"]
        own = length - round(sum(truth.values()) * length)
        self.assertTrue(0 < own < 10, own)

    def test_resonance_without_jitter(self):
        self.assertEqual(sorted(self.resonance["jitter"]["0"]["shares"].values()), [0, 0, 1])

    def test_wide_jitter_breaks_it(self):
        for jitter in "12", "14", "16":
            row = self.resonance["jitter"][jitter]
            self.assertLess(row["standard error"], 0.04)
            for name, share in row["shares"].items():
                self.assertLess(
                    abs(share - self.resonance["truth"][name]),
                    5 * row["standard error"],
                    f"{jitter}: {row}",
                )

    def test_narrow_jitter_does_not(self):
        self.assertGreater(self.resonance["jitter"]["7"]["largest deviation"], 0.1)

    def test_first_run_gave_the_same_cost_and_no_more(self):
        self.assertEqual(
            self.first,
            {"cost": self.cost, **{name: self.first[name] for name in ("seconds", "tree")}},
        )
        self.assertEqual(list(self.first["seconds"]), ["cost"])

    def test_size_of_the_recordings(self):
        small, _, large = self.collect["sizes"]
        self.assertGreaterEqual(large["group samples"], 2_000_000)
        self.assertGreater(large["group samples"], 3 * small["group samples"])
        for row in self.collect["sizes"]:
            self.assertGreater(row["event samples"], 2 * row["group samples"])

    def test_native_command_to_decode(self):
        self.assertLessEqual(self.collect["native to decode"], 3)

    def test_script_to_native_command(self):
        self.assertGreaterEqual(self.collect["script to native"], 10)

    def test_time_is_linear_in_samples(self):
        for name, exponent in self.collect["exponent"].items():
            self.assertLess(abs(exponent - 1), 0.3, name)

    def test_memory_does_not_grow_with_samples(self):
        for name, ratio in self.collect["memory of the largest to the smallest"].items():
            self.assertLess(ratio, 1.25, name)

    def test_call_chains_cost_next_to_nothing(self):
        """Chains add little per group sample to the smallest recording; resolving takes 28 us."""
        row, plain = self.collect["call chains"], self.collect["sizes"][0]
        for name in "native", "script":
            more = (
                row["seconds"][name] / row["group samples"]
                - plain["seconds"][name] / plain["group samples"]
            )
            self.assertLess(more, 2e-6, name)

    def test_more_hosts_cost_no_more_each(self):
        one, *_, many = [row for row in self.hosts["rows"] if "cluster" in row]
        self.assertEqual(many["hosts"], 100)
        for name in "cluster", "one process":
            self.assertLess(many[name] / many["hosts"], 1.5 * one[name], name)

    def test_sums_of_many_hosts_are_as_large_as_their_functions(self):
        """Sums stop growing once they have all functions: more hosts add digits, not lines."""
        one, *_, many, synthetic = self.hosts["rows"]
        self.assertEqual(synthetic["hosts"], 1000)
        self.assertGreater(many["bytes"], 3 * one["bytes"])
        self.assertLess(synthetic["bytes"], 1.5 * many["bytes"])
        self.assertLess(synthetic["functions"], 1.1 * many["functions"])

    def test_plot_of_hosts(self):
        self.assertIn("<svg", hosts.PLOT.read_text())

    def test_plot(self):
        text = collect.PLOT.read_text()
        for name in collect.COMMANDS:
            self.assertRegex(text, rf"<text [^>]*>{name}</text>")

    def test_unknown_measurement(self):
        done = run("bench/run.py", "speed")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"^bench: no measurement speed; there is: \w+( \w+)+$")


if __name__ == "__main__":
    unittest.main()
