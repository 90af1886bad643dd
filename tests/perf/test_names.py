# SPDX-License-Identifier: GPL-2.0
"""An event is what it counts, on whatever CPU, and whatever somebody has called it.

Recordings of two functions have known counts: f takes 2 cycles per instruction and g 5. The events
have the numbers and names that vendors give them. The same numbers and names on CPUs of other
vendors are other events, which no report may add up, compare or call by the name of the first.
"""

import re
import unittest
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.env import CHECK, PERF, run
from tests.harness.recording import Recording
from tests.harness.runs import rows_of
from tests.harness.tables import flat

DATA = CHECK / "names"
F, G = 0x1000, 0x2000
INTEL, AMD, ARM = "GenuineIntel,6,85,7", "AuthenticAMD,25,97,2", "0x00000000413fd0c1"
APPLE = "0x00000000611f0221"
RAW = 4
SAMPLE = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD | pw.IDENTIFIER
PERIOD = 1000
Named = tuple[str, int, int]  # name, type, config
CYCLES, INSTRUCTIONS = ("cycles:u", 0, 0), ("instructions:u", 0, 1)
MISSES, ACCESSES = ("cache-misses:u", 0, 3), ("cache-references:u", 0, 2)
L1D_MISSES, L1D_LOADS = ("L1-dcache-load-misses:u", 3, 0x10000), ("L1-dcache-loads:u", 3, 0)
L1D_COLUMNS = "L1DM/KI", "%L1DMR", "%L1DM", "%L1DA"
# samples of each event in f and in g, for CPIs of 2 and 5
SAMPLES = {F: (400, 200), G: (600, 120)}
OTHERS = (100, 300)  # of each further event


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def sampled(
    name: str, cpu: str, *named: Named, branches: bool = False, pmus: tuple[tuple, ...] = ()
) -> Path:
    """A recording of events that sample by themselves: cycles, instructions, others."""
    kinds = SAMPLE | pw.BRANCH_STACK * branches
    period = (1 + 9 * branches) * PERIOD
    events = [
        pw.Event(*event, [1 + place], period, sample_type=kinds)
        for place, event in enumerate(named)
    ]
    if branches:
        for event in events:
            event.branch_sample_type = pw.BRANCH_USER | pw.BRANCH_ANY
    made = Recording([[event] for event in events], cpuid=cpu, pmus=pmus)
    made.map("/nowhere", 0, 0x10000)
    for place, event in enumerate(events):
        for at, address in enumerate((F, G)):
            for _ in range(SAMPLES[address][place] if place < 2 else OTHERS[at]):
                loop = [(address + 0x20, address, 100)] * 32
                made.writer.sample(
                    event,
                    made.where(),
                    address + 4,
                    period,
                    [],
                    branches=(0, loop if branches else ()),
                    number=event.ids[0],
                )
    return made.write(DATA / f"{name}.data")


def windows(name: str, cpu: str, *named: Named) -> Path:
    """Windows of 300 cycles with 30 of the interrupt in it."""
    events = [
        pw.Event(*event, [1 + place], *((100_000, 300) if not place else ()))
        for place, event in enumerate(named)
    ]
    made = Recording([events], cpuid=cpu)
    made.map("/nowhere", 0, 0x10000)
    for turn in range(400):
        address, cpi = (F, 2) if turn % 8 < 3 else (G, 5)
        # runs of several windows in a function; the long period is of both
        made.sample(address + 4, 100_000, 34_000)
        made.sample(address + 4, 300, 270 // cpi)
    return made.write(DATA / f"{name}.data")


def report(*words: object) -> tuple[dict, str]:
    """The JSON object, and what is said."""
    done = run(PERF, "functions", "report", "-j", *words, stderr=-1)
    if done.returncode:
        raise AssertionError(done.stderr)
    return flat(done.stdout), done.stderr


def metrics(*words: object) -> dict[int, dict[str, float]]:
    """The metrics of f and g."""
    return {row["address"] & ~0xFFF: row["metrics"] for row in report(*words)[0]["functions"]}


def titles(*words: object) -> dict[str, str]:
    """The columns and their meanings."""
    return {column["name"]: column["meaning"] for column in report(*words)[0]["columns"]}


class Vendors(unittest.TestCase):
    """The events that the vendors call cycles and instructions."""

    PAIRS = (
        (INTEL, ("cpu_clk_unhalted.thread:u", RAW, 0x3C), ("inst_retired.any:u", RAW, 0xC0)),
        (INTEL, ("r3c:u", RAW, 0x3C), ("rc0:u", RAW, 0xC0)),
        (INTEL, ("cpu_core/r3c/", RAW, 0x3C), ("mine", RAW, 0xC0)),
        (AMD, ("ls_not_halted_cyc:u", RAW, 0x76), ("ex_ret_instr:u", RAW, 0xC0)),
        (ARM, ("r11", RAW, 0x11), ("INST_RETIRED:u", 8, 8)),
        ("", ("cpu_clk_unhalted.thread", RAW, 0x3C), ("inst_retired.any", RAW, 0xC0)),
        ("", ("armv8_pmuv3_0/r11/", 8, 0x11), ("armv8_pmuv3_0/inst_retired/", 8, 8)),
    )

    def test_samples(self):
        for cpu, *pair in self.PAIRS:
            with self.subTest(pair=pair, cpu=cpu):
                found = metrics(sampled("pair", cpu, *pair, ("page-faults:u", 1, 2)))
                for at, (address, (cycles, instructions)) in enumerate(SAMPLES.items()):
                    own = found[address]
                    self.assertAlmostEqual(own["CPI"], cycles / instructions)
                    self.assertAlmostEqual(own["%CY"], cycles / 10)
                    self.assertAlmostEqual(own["%I"], 100 * instructions / 320)
                    self.assertAlmostEqual(own["PF/KI"], 1000 * OTHERS[at] / instructions)

    def test_windows(self):
        """The same values, marks and messages as for the generic names of the same counts."""
        generic = report(windows("generic", INTEL, CYCLES, INSTRUCTIONS))
        self.assertIn("of the interrupt", generic[1])
        for leader, member in (CYCLES, self.PAIRS[0][2]), self.PAIRS[0][1:], self.PAIRS[1][1:]:
            with self.subTest(leader=leader, member=member):
                self.assertEqual(report(windows("vendor", INTEL, leader, member)), generic)

    def test_metric(self):
        """A metric finds its events by what they are, as before."""
        for cpu, metric in (INTEL, "tma_info_thread_ipc"), (ARM, "ipc"):
            pair = next(pair for own, *pair in self.PAIRS if own == cpu)
            found, said = report(sampled("metric", cpu, *pair), "-M", metric)
            if "perf has no metrics" in said:
                self.skipTest("perf was built without the tables of this CPU")
            values = {row["address"] & ~0xFFF: row["metrics"] for row in found["functions"]}
            for address, (cycles, instructions) in SAMPLES.items():
                self.assertAlmostEqual(values[address][metric], instructions / cycles)


class Numbers(unittest.TestCase):
    """A number means nothing but on the CPU that has it."""

    def test_others(self):
        """The column has the number's name, and no other column has its counts."""
        for cpu, event in (
            (INTEL, ("r11", RAW, 0x11)),
            (APPLE, ("r11", RAW, 0x11)),
            ("", ("r11", RAW, 0x11)),
            (INTEL, ("uncore_imc_0/event=0x3c/", 20, 0x3C)),
        ):
            with self.subTest(event=event, cpu=cpu):
                found = set(titles(sampled("other", cpu, event, INSTRUCTIONS)))
                self.assertFalse(found & {"CPI", "%CY"}, found)
                own = event[0] if "/" not in event[0] else "event=0x3c"
                self.assertTrue({f"{own}/KI", f"%{own}"} <= found, found)

    def test_own_names(self):
        """A name of the user's says nothing, and the PMU's number whose event it is."""
        pmus = (10, "cpu_atom"), (11, "cpu_lowpower"), (20, "arm_dsu_0"), (21, "hisi_sccl1_ddrc0")
        for cpu, *events in (
            (INTEL, ("mine", 10, 0x3C), ("cpu_atom/rc0/", 10, 0xC0)),
            (INTEL, ("cpu_lowpower/r3c/", 11, 0x3C), ("cpu_lowpower/rc0/", 11, 0xC0)),
            (ARM, CYCLES, INSTRUCTIONS, ("arm_dsu_0/cycles/", 20, 0x11), ("mine", 21, 0x11)),
        ):
            with self.subTest(events=events):
                found = metrics(sampled("own", cpu, *events, pmus=pmus))
                self.assertEqual([found[F]["CPI"], found[G]["CPI"]], [2, 5])

    def test_repeated(self):
        """An event that counts once more what another one counts has columns of its own."""
        for cpu, event, again in (
            (INTEL, ACCESSES, ("r3c:u", RAW, 0x3C)),
            (ARM, MISSES, L1D_MISSES),
            (ARM, ("branch-misses:u", 0, 5), ("r22:u", RAW, 0x22)),
        ):
            with self.subTest(again=again):
                path = sampled("repeated", cpu, CYCLES, INSTRUCTIONS, event, again)
                found = metrics(path)
                self.assertEqual([found[F]["CPI"], found[G]["CPI"]], [2, 5])
                for title in set(found[F]) & {"CM/KI", "BM/KI"}:
                    self.assertEqual(found[F][title], 1000 * OTHERS[0] / SAMPLES[F][1])
                self.assertIn(f"%{again[0]}", titles(path))
        for again in ("r3c:u", RAW, 0x3C), CYCLES:
            group = [
                pw.Event(*event, [1 + place], PERIOD * (not place))
                for place, event in enumerate((CYCLES, INSTRUCTIONS, again))
            ]
            made = Recording([group], cpuid=INTEL)
            for _ in range(100):
                made.sample(F, PERIOD, PERIOD // 2, PERIOD)
            self.assertEqual(metrics(made.write(DATA / "group.data"))[F]["CPI"], 2)

    def test_branch_records(self):
        """Records of a number that is not cycles are not samples of time."""
        for name, number in ("r11", 0x11), ("r3c", 0x3C):
            event = name, RAW, number
            found, _ = report(sampled("records", INTEL, event, INSTRUCTIONS, branches=True))
            sources = {column.get("source") for column in found["columns"]}
            self.assertEqual("branches" in sources, name == "r3c")

    def test_name_of_another_event(self):
        """Somebody has called another event instructions."""
        named = ("instructions", RAW, 0xD1)
        found = set(titles(sampled("called", INTEL, CYCLES, named)))
        self.assertFalse(found & {"CPI", "%I"}, found)

    def test_pmu(self):
        """An event without a name has that of its PMU, not its terms."""
        found = titles(
            sampled(
                *("ibs", AMD, ("ibs_op/cnt_ctl=1/", 11, 1 << 19), INSTRUCTIONS),
                ("ibs_fetch/rand_en=1/", 10, 1 << 57),
            )
        )
        self.assertTrue({"ibs_fetch/KI", "%ibs_fetch"} <= set(found), found)
        self.assertFalse([title for title in found if "=" in title])

    def test_off_cpu(self):
        """Times off the CPU are named as what they are."""
        path = sampled("off", INTEL, CYCLES, INSTRUCTIONS, ("offcpu-time", 1, 10))
        _, said = report(path)
        self.assertRegex(said, r"^perf functions: ignored: offcpu-time \([^\n]*off the CPU[^\n]*\n")
        self.assertNotRegex(said, "tracepoint|group")


class Caches(unittest.TestCase):
    """Titles and meanings say of which cache an event is."""

    def test_caches(self):
        both = {"CM/KI": "last-level", "L1DM/KI": "L1D", "%LLM": "last-level", "%L1DM": "L1D"}
        generic = MISSES, ACCESSES
        # a word of the meaning of each column of a cache
        for cpu, events, expected in (
            (ARM, generic, {"CM/KI": "L1D", "%CM": "cache", "%L1DM": "L1D", "%L1DA": "L1D"}),
            (INTEL, (MISSES, L1D_MISSES), both),
            (AMD, generic, {"CM/KI": "L2", "%CM": "cache", "%L2M": "L2", "%L2A": "L2"}),
            ("", (MISSES,), {"CM/KI": "cache", "%cache-misses": "cache"}),
            ("", (L1D_MISSES, L1D_LOADS), dict.fromkeys(L1D_COLUMNS, "L1D")),
            (ARM, (L1D_MISSES,), {"CM/KI": "L1D", "%L1DM": "L1D"}),
            (INTEL, [("r412e", RAW, 0x412E)], {"CM/KI": "last-level", "%LLM": "last-level"}),
        ):
            with self.subTest(cpu=cpu, events=events):
                path = sampled("cache", cpu, CYCLES, INSTRUCTIONS, *events)
                found = titles(path)
                caches = {title for title in found if re.search("[LC][1-9DLMAR]|cache", title)}
                self.assertEqual(caches, set(expected), found)
                for title, word in expected.items():
                    self.assertIn(word, found[title])
                values = metrics(path)
                for title in caches & {"CM/KI", "L1DM/KI"}:
                    self.assertAlmostEqual(values[F][title], 1000 * OTHERS[0] / SAMPLES[F][1])
                for title in caches & {"%L1DM", "%L1DA", "%LLM", "%L2M", "%cache-misses"}:
                    self.assertAlmostEqual(values[G][title], 75)


class UnitMasks(unittest.TestCase):
    def test_are_no_modifiers(self):
        """Names as libpfm has them: what stands behind the last colon may say what is counted."""
        masks = ("br_inst_exec:taken", RAW, 0x4188), ("br_inst_exec:any:u", RAW, 0x7F88)
        found = titles(sampled("masks", INTEL, CYCLES, INSTRUCTIONS, *masks))
        self.assertLessEqual({"%br_inst_exec:taken", "%br_inst_exec:any"}, set(found))


class Inputs(unittest.TestCase):
    """Inputs of CPUs of several vendors."""

    def pair(self, event: Named | None) -> list[Path]:
        """The same events on an Intel and an Arm CPU, as recordings and as sums files."""
        paths = [
            sampled(name, cpu, CYCLES, INSTRUCTIONS, *([event] if event else []))
            for name, cpu in (("intel", INTEL), ("arm", ARM))
        ]
        for path in paths:
            run(PERF, "functions", "report", path, "--sums", path.with_suffix(".sums"), stderr=-1)
        return paths

    def test_added_up(self):
        """Refused in one line if a name means two things, else told."""
        for event, ends in (
            (MISSES, (".data", ".data")),
            (("r24", RAW, 0x24), (".data", ".sums")),
            (("dTLB-load-misses:u", 3, 0x10003), (".sums", ".sums")),
        ):
            inputs = [path.with_suffix(end) for path, end in zip(self.pair(event), ends)]
            for order in inputs, inputs[::-1]:
                with self.subTest(event=event, order=order):
                    done = run(PERF, "functions", "report", *order, stderr=-1)
                    self.assertEqual((done.returncode, done.stdout), (255, ""))
                    self.assertRegex(
                        done.stderr,
                        rf"^perf functions: {order[1]}: cannot be added [^\n]*"
                        r"(another vendor|other events)[^\n]*\n\Z",
                    )
        # cycles of Arm are not r11 of Intel
        r11 = "r11", RAW, 0x11
        paths = [sampled(f"r11-{cpu[:2]}", cpu, r11, INSTRUCTIONS) for cpu in (INTEL, ARM)]
        done = run(PERF, "functions", "report", *paths, stderr=-1)
        self.assertEqual(done.returncode, 255)
        self.assertRegex(done.stderr, r"^[^\n]*cannot be added[^\n]*\n\Z")
        found, said = report(*self.pair(None))
        self.assertIn("several kinds of CPUs", said)
        self.assertEqual({row["metrics"]["CPI"] for row in found["functions"]}, {2, 5})
        self.assertNotIn("CPU", report(*self.pair(MISSES)[:1] * 2)[1])

    def test_compared(self):
        """Told in one line; what two events count is not compared, and no limit is checked."""
        for end in ".data", ".sums":
            inputs = [path.with_suffix(end) for path in self.pair(MISSES)]
            sides = "--before", *inputs[:1] * 3, "--after", *inputs[1:] * 3
            done = run(PERF, "functions", "report", "-j", *sides, stderr=-1)
            self.assertRegex(done.stderr, "the CPU before is Intel's and the one after Arm's")
            for row in rows_of(done):
                own = row["metrics"]
                self.assertEqual(own["CPI"]["change"], 0)
                for title in set(own) & {"CM/KI", "%L1DM", "%LLM"}:
                    self.assertEqual(
                        (own[title]["change"], own[title]["interval"], own[title]["significant"]),
                        (None, None, False),
                    )
            done = run(PERF, "functions", "report", *sides, "--fail-on", "CPI>5%", stderr=-1)
            self.assertEqual((done.returncode, done.stdout), (255, ""))
            self.assertRegex(done.stderr, r"^perf functions: --fail-on [^\n]*one vendor\n\Z")
