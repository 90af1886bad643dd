# SPDX-License-Identifier: GPL-2.0
"""perf functions report reads branch records.

Recordings are written without perf's code. Some have values that follow from a formula; random ones
are read by tests/harness/branchrecords.py, too. objdump says how many instructions x86 code has.
"""

import json
import platform
import random
import re
import unittest
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.harness import branchrecords
from tests.harness import perfdata as pw
from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.tables import flat

DATA = CHECK / "branches"
AT = 0x10000000  # where the library is mapped
SIZE = 0x4000  # of a function
FUNCTIONS = "quick", "slow", "third"
QUICK, TARDY, THIRD = (AT + SIZE * number for number in range(3))
NOWHERE = 0x7FFF00000000
KERNEL = 0xFFFF800000001000
WHERE = pw.Where(1000, 100, 100)
PERIOD = 1000000
WRONG_PATH = 1 << 20  # in place of cycles
EVENTS = {
    "cycles": (0, 0),
    "instructions": (0, 1),
    "cache-misses": (0, 3),
    "branches": (0, 4),
    "branch-misses": (0, 5),
    "page-faults": (1, 2),
    "ex_ret_near_ret_mispred": (4, 0xC9),
}

Records = Sequence[tuple[int, ...]]  # from, to and cycles of each, the newest one first


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    source = DATA / "library.s"
    source.write_text(
        ".text\n"
        + "".join(
            f".globl {name}\n.type {name}, %function\n{name}: .skip {SIZE}\n"
            f".size {name}, {SIZE}\n"
            for name in FUNCTIONS
        )
    )
    must(
        *("aarch64-linux-gnu-gcc", "-shared", "-nostdlib", "-Wl,--build-id=none"),
        *("-Wl,-z,max-page-size=4096", "-o", DATA / "library.so", source),
    )


def offset() -> int:
    """Of the first function in the file, where address and offset are the same."""
    table = must("nm", "--defined-only", DATA / "library.so")
    return min(int(line.split()[0], 16) for line in table.splitlines() if line[-5:] == "quick")


class Hit(NamedTuple):
    """A sample of an event."""

    event: str
    stack: Records
    ip: int = THIRD  # where the interrupt came
    misc: int = pw.MISC_USER


def written(  # pylint: disable=too-many-arguments
    name: str,
    hits: Sequence[Hit],
    *,
    arch: str = "aarch64",
    filters: int = pw.BRANCH_USER | pw.BRANCH_ANY,
    flags: int = pw.FLAG_EXCLUDE_KERNEL | pw.FLAG_SAMPLE_ID_ALL,
    period: int = PERIOD,
    bare: str = "",
    library: tuple[Path, int] | None = None,
) -> Path:
    """A recording in which each event samples by itself. bare: the one without branch records."""
    kinds = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.IDENTIFIER | pw.BRANCH_STACK
    events = {
        event: pw.Event(
            event,
            *EVENTS[event],
            [number],
            period,
            sample_type=kinds & ~pw.BRANCH_STACK if event == bare else kinds,
            read_format=pw.FORMAT_ID,
            flags=flags,
            branch_sample_type=0 if event == bare else filters,
        )
        for number, event in enumerate(sorted({hit.event for hit in hits}), 1)
    }
    writer = pw.Writer([[event] for event in events.values()], arch=arch)
    path, begin = library or (DATA / "library.so", offset())
    writer.comm(WHERE, "program")
    writer.mmap2(WHERE, AT, 0x10000000, str(path), begin)
    for at, hit in enumerate(hits):
        event = events[hit.event]
        writer.sample(
            *(event, pw.Where(2000 + at, WHERE.pid, WHERE.tid), hit.ip, period),
            [(event.ids[0], 0)],
            branches=(0, hit.stack),
            misc=hit.misc,
        )
    writer.write(DATA / f"{name}.data")
    return DATA / f"{name}.data"


def recording(name: str, stacks: Sequence[Records], event: str = "cycles", **more) -> Path:
    """A recording of one event, whose samples come right after these records."""
    hits = [Hit(event, stack, stack[0][1] if stack else THIRD) for stack in stacks]
    return written(name, hits, **more)


def report(path: Path, *options: str) -> dict:
    """The JSON object."""
    return flat(must(PERF, "functions", "report", "-j", *options, path, stderr=-1))


def rows(path: Path, *options: str) -> dict[str, dict]:
    """The metrics of each function."""
    return {row["symbol"]: row["metrics"] for row in report(path, *options)["functions"]}


def sums(path: Path, *options: str) -> dict[str, list[int]]:
    """Cycles and instructions of each function."""
    text = must(
        *(PERF, "functions", "report", "--source", "branches", *options, path, "--sums", "-"),
        stderr=-1,
    )
    return {
        symbol: [own["totals"][event] / PERIOD for event in ("cycles", "instructions")]
        for ((symbol, _, _), source, events), own in sumsfile.read(text)[0].items()
        if source == "branches" and "instructions" in events and own["totals"]["cycles"]
    }


def said(path: Path, *options: str) -> str:
    done = run(PERF, "functions", "report", *options, path, stderr=-1)
    return done.stdout + done.stderr


def loop(function: int, n: int, cycles: int, number: int = 64) -> list[tuple[int, int, int]]:
    """Records of a loop of n instructions that take this number of cycles."""
    return [(function + 4 * (n - 1), function, cycles)] * number


class Formula(unittest.TestCase):
    def test_cpi(self):
        """Two loops: of 10 instructions in 5 cycles, and of 5 in 20."""
        stacks = [*[loop(QUICK, 10, 5)] * 30, *[loop(TARDY, 5, 20)] * 90]
        path = recording("cpi", stacks)
        for options in (), ("--source", "branches"), ("--source", "best"):
            found = rows(path, *options)
            self.assertAlmostEqual(found["quick"]["CPI"], 0.5)
            self.assertAlmostEqual(found["slow"]["CPI"], 4)
            self.assertAlmostEqual(found["quick"]["%CY"], 25)
            # 30 x 200 / 0.5 and 90 x 200 / 4 instructions
            self.assertAlmostEqual(found["quick"]["%I"], 100 * 12 / 16.5)
        table = {column["name"]: column.get("source") for column in report(path)["columns"]}
        self.assertEqual((table["CPI"], table["%CY"]), ("branches", "branches"))
        self.assertIn("from the 200 cycles that end 100 before the overflow", said(path))
        self.assertNotIn("CPI", rows(path, "--source", "samples")["quick"])

    def test_long_parts_are_hit_more_often(self):
        """A load of 100 cycles in each sixth turn of a loop: samples are taken at any time."""
        turns = [100, 4, 4, 4, 4, 4] * 10
        stacks = []
        for time in range(600, 1200, 7):
            cycles = next(turns[:n] for n in range(len(turns)) if sum(turns[: n + 1]) > time)
            stacks.append([(QUICK + 12, QUICK, n) for n in reversed(cycles)])
        found = rows(recording("stalls", stacks))["quick"]
        self.assertAlmostEqual(found["CPI"], 120 / (6 * 4), delta=0.15)

    def test_last_branch_is_recorded_twice(self):
        """By Intel's Skylake, now and then. A jump forwards does not follow itself."""
        jump = (QUICK + 36, TARDY, 5)
        stacks = [[jump] * 2 + loop(QUICK, 10, 5)] * 30 + [loop(QUICK, 10, 20)] * 30
        found = rows(recording("twice", stacks))["quick"]
        # 200 cycles of each sample
        self.assertAlmostEqual(found["CPI"], 400 / (200 / 0.5 + 200 / 2))

    def test_cycles_of_the_kernel_are_left_out(self):
        """Of user space, Intel has the return from the kernel only, Arm has no kernel address.

        The code behind a system call is slow at first: 100 cycles with CPI 4, and 100 with CPI 1.
        """
        fast = loop(TARDY, 10, 5, 200)
        slow = [(QUICK + 36, TARDY, 10), *loop(QUICK, 10, 10, 9), *loop(QUICK, 5, 20, 5)]
        for cycles in 700, 0xFFFF:
            for back in [(0, QUICK, cycles), (TARDY + 8, 0, 3)], [(KERNEL, QUICK, cycles)]:
                done = fast[:80] + slow + back + fast
                stacks = [done[first:][:64] for first in range(96)]
                path = recording("call", stacks)
                self.assertAlmostEqual(rows(path)["quick"]["CPI"], 1.6, delta=0.1)
                (row,) = rows(path, "--by", "comm").values()
                self.assertLess(row["CPI"], 1)
                self.assertNotIn("cannot be read", said(path))

    def test_guest(self):
        """The records of a guest have addresses of its own programs."""
        guest_user = 5
        stack = loop(QUICK, 10, 5)
        hits = [Hit("cycles", stack, QUICK, misc) for misc in (pw.MISC_USER, guest_user)] * 10
        shares = {name: row["%CY"] for name, row in rows(written("guest", hits)).items()}
        self.assertEqual(shares, {"quick": 50, "[guest]": 50})

    def test_first_samples_choose_the_horizon(self):
        """Of a long recording; later samples that do not reach it are left out."""
        far, near = loop(QUICK, 10, 400, 2), loop(TARDY, 10, 60, 2)
        path = recording("first", [*[far] * 10000, *[near] * 2000])
        self.assertIn("from the 200 cycles that end 100 before the overflow", said(path))
        self.assertEqual({name: own[0] for name, own in sums(path).items()}, {"quick": 2000000})
        path = recording("first", [*[near] * 2000, *[far] * 10000])
        self.assertIn("from the 25 cycles that end 25 before the overflow", said(path))
        self.assertEqual(sum(own[0] for own in sums(path).values()), 12000 * 25)

    def test_share_is_of_the_last_target(self):
        """Whatever was before, and wherever the interrupt came."""
        stacks = [
            [(QUICK + 36, target, 5), *loop(QUICK, 10, 5)] for target in (TARDY, TARDY, THIRD)
        ]
        found = rows(recording("shares", stacks * 40))
        self.assertAlmostEqual(found["slow"]["%CY"], 200 / 3)
        self.assertAlmostEqual(found["third"]["%CY"], 100 / 3)
        self.assertEqual(found["quick"]["%CY"], 0)
        self.assertEqual(found["slow"]["CPI"], None)

    def test_branches_of_the_wrong_path(self):
        """AMD's records have also what was guessed, and never executed."""
        guessed, loops = (QUICK + 36, THIRD, WRONG_PATH), loop(TARDY, 5, 0, 14)
        path = recording("guess", [[guessed, guessed, *loops]] * 40)
        self.assertAlmostEqual(rows(path)["slow"]["%CY"], 100)
        for event, function in (("cache-misses", "slow"), ("branches", "slow")):
            path = written("guessed", [Hit(event, [guessed, *loops])] * 9)
            self.assertEqual([row["symbol"] for row in report(path)["functions"]], [function])
        path = written("only", [Hit("cycles", [guessed])] * 40)
        self.assertAlmostEqual(rows(path)["third"]["%CY"], 100)

    def test_samples_without_records(self):
        """They have a part of the cycles; nothing tells their instructions."""
        path = recording("none", [*[loop(QUICK, 10, 5)] * 40, *[[]] * 60])
        found = {row["symbol"]: row for row in report(path)["functions"]}
        self.assertAlmostEqual(found["third"]["metrics"]["%CY"], 60)
        doubts = {title: doubt for title, doubt in found["quick"]["doubts"].items() if doubt}
        self.assertEqual(doubts, {"%I": "few"})

    def test_interval_is_of_samples(self):
        """Records of a sample are not independent of each other."""
        covered = Counter[bool]()
        for seed in range(60):
            rng = random.Random(seed)
            stacks = [loop(QUICK, 10, rng.choice((5, 10, 30))) for _ in range(60)]
            row = report(recording("interval", stacks))["functions"][0]
            low, high = row["intervals"]["CPI"]
            # each takes a third of the samples, and each sample 200 cycles
            covered[low <= 3 / (1 / 0.5 + 1 / 1 + 1 / 3) <= high] += 1
        self.assertGreaterEqual(covered[True], 53)

    def test_interval_is_no_shorter_than_the_error_of_records(self):
        """However many samples have the same records; nor is that of a metric."""
        path = recording("many", [loop(QUICK, 10, 5)] * 2000)
        cpu = {"PERF_CPUID": "0x00000000413fd0c1"}
        for title, value, *options in ("CPI", 0.5), ("ipc", 2, "-M", "ipc"):
            text = must(PERF, "functions", "report", "-j", *options, path, stderr=-1, env=cpu)
            low, high = flat(text)["functions"][0]["intervals"][title]
            self.assertAlmostEqual(low / value, 0.95, delta=0.004)
            self.assertAlmostEqual(high / value, 1.05, delta=0.004)


class Origin(unittest.TestCase):
    """The function in which an event has happened, before its interrupt was late."""

    def found(self, hits: Sequence[Hit], **more) -> dict[str, int]:
        """The number of samples of each function."""
        path = written("origin", hits, **more)
        table = report(path)["functions"]
        return {row["symbol"]: row["observations"]["samples"] for row in table}

    def test_is_that_of_the_last_record(self):
        """Here all interrupts come in another one."""
        hits = [
            Hit(event, [(TARDY if target == QUICK else QUICK, target, 5), (THIRD, THIRD, 5)])
            for event, target, number in (
                ("instructions", QUICK, 60),
                ("instructions", TARDY, 40),
                ("cache-misses", QUICK, 12),
                ("cache-misses", TARDY, 2),
            )
            for _ in range(number)
        ]
        path = written("last", hits)
        files = path, DATA / "last.sums"
        must(PERF, "functions", "report", path, "--sums", files[1])
        for file in files:
            found = rows(file)
            self.assertEqual(set(found), {"quick", "slow"})
            self.assertAlmostEqual(found["quick"]["CM/KI"], 200)
            self.assertAlmostEqual(found["slow"]["CM/KI"], 50)
            self.assertAlmostEqual(found["slow"]["%I"], 40)
            self.assertIn("in the function of the last branch record", said(file))
        self.assertEqual(set(rows(path, "--by", "comm")), {"program"})
        self.assertEqual(set(rows(path, "--symbols", "quick")), {"quick"})
        self.assertEqual(rows(path, "--symbols", "third"), {})

    def test_branch_is_where_it_left(self):
        """A mispredict that the last record does not have is of a branch that was not taken."""
        for event, missed, function in (
            ("branch-misses", 1, "quick"),
            ("branch-misses", 0, "slow"),
            ("branches", 0, "quick"),
            ("ex_ret_near_ret_mispred", 1, "quick"),
            ("cache-misses", 1, "slow"),
        ):
            with self.subTest(f"{event} {missed}"):
                self.assertEqual(
                    self.found([Hit(event, [(QUICK, TARDY, 5, missed)])] * 9), {function: 9}
                )

    def test_is_that_of_the_address_else(self):
        """Without records that tell."""
        last = [(QUICK, TARDY, 5)]
        for name, hit, options in (
            ("none", Hit("cache-misses", []), {}),
            ("nowhere", Hit("cache-misses", [(QUICK, NOWHERE, 5)]), {}),
            ("zero", Hit("cache-misses", [(QUICK, 0, 5)]), {}),
            ("kernel", Hit("cache-misses", [(QUICK, KERNEL, 0)]), {}),
            ("exact", Hit("cache-misses", last, misc=pw.MISC_USER | pw.MISC_EXACT_IP), {}),
            ("calls", Hit("cache-misses", last), {"filters": pw.BRANCH_USER | pw.BRANCH_ANY_CALL}),
            # the last records of the kernel are missing
            ("levels", Hit("cache-misses", last), {"flags": pw.FLAG_SAMPLE_ID_ALL}),
        ):
            with self.subTest(name):
                self.assertEqual(self.found([hit] * 9, **options), {"third": 9})

    def test_interrupt_in_the_kernel(self):
        """Linux 7.3 does not tell the address."""
        self.assertEqual(
            self.found([Hit("cache-misses", [(QUICK, TARDY, 5)], ip=0)] * 9), {"slow": 9}
        )

    def test_all_events_need_records(self):
        """Both events of a rate have to be of the same place."""
        last = [(QUICK, TARDY, 5)]
        hits = [Hit("cache-misses", last), Hit("instructions", last)] * 9
        self.assertEqual(self.found(hits), {"slow": 18})
        self.assertEqual(self.found(hits, bare="instructions"), {"third": 18})
        path = written("bare", hits, bare="instructions")
        self.assertNotIn("branch record", said(path))
        # software events are not late
        hits += [Hit("page-faults", [])] * 5
        self.assertEqual(self.found(hits, bare="page-faults"), {"slow": 18, "third": 5})


class Filters(unittest.TestCase):
    stacks = [*[loop(QUICK, 10, 5)] * 30, *[loop(TARDY, 5, 20)] * 90]

    def test_records_that_tell_no_path(self):
        """Of some branches, of call chains, of events other than time, of an interrupt's path."""
        for name, options in (
            ("calls", {"filters": pw.BRANCH_USER | pw.BRANCH_ANY_CALL}),
            ("stack", {"filters": pw.BRANCH_USER | pw.BRANCH_ANY | pw.BRANCH_CALL_STACK}),
            ("misses", {"event": "branch-misses"}),
            ("short", {"period": 2999}),
        ):
            with self.subTest(name):
                path = recording(name, self.stacks, **options)
                self.assertNotIn("CPI", rows(path)["quick"])
                self.assertRegex(said(path, "--source", "branches"), "no (cycles|branch records)")

    def test_rows_and_filters(self):
        path = recording("filters", self.stacks)
        self.assertEqual(sums(path, "--symbols", "slow"), {"slow": [18000, 4500]})
        self.assertEqual(sums(path, "--time", ",0.000002029"), {"quick": [6000, 12000]})
        for by in "dso", "comm", "cpu":
            (row,) = report(path, "--by", by)["functions"]
            self.assertAlmostEqual(row["metrics"]["CPI"], 120 * 200 / (12000 + 4500), msg=by)

    def test_sums_and_comparison(self):
        """Sums files add up, and are compared, like recordings."""
        before, after = recording("before", self.stacks), DATA / "after.sums"
        later = recording("after", [loop(QUICK, 10, 8)] * 90)
        must(PERF, "functions", "report", later, "--sums", after)
        twice = flat(must(PERF, "functions", "report", "-j", after, before, stderr=-1))
        found = {row["symbol"]: row["metrics"]["CPI"] for row in twice["functions"]}
        # 30 and 90 samples, each of 200 cycles
        self.assertAlmostEqual(found["quick"], 120 / (30 / 0.5 + 90 / 0.8))
        sides = "--diff", before, after, "--source", "branches"
        text = must(PERF, "functions", "report", "-j", *sides, stderr=-1)
        rows_ = json.loads(text)["functions"]
        cpi = next(row for row in rows_ if row["symbol"] == "quick")["metrics"]["CPI"]
        self.assertAlmostEqual(cpi["before"]["value"], 0.5)
        self.assertAlmostEqual(cpi["after"]["value"], 0.8)


class Hostile(unittest.TestCase):
    def check(self, name: str, stacks: Sequence[Records], **more) -> str:
        """It ends with a table or one line."""
        path = recording(name, stacks, **more)
        for form in (("-j",), ("--sums", "-")):
            done = run(PERF, "functions", "report", *form, path, stderr=-1)
            self.assertIn(done.returncode, (0, 234), done.stderr)
            self.assertTrue(done.stdout if not done.returncode else done.stderr)
            for line in done.stderr.splitlines():
                self.assertTrue(line.startswith("perf functions: "), line)
        return said(path)

    def test_without_cycles(self):
        text = self.check("nocycles", [loop(QUICK, 10, 0)] * 30)
        self.assertIn("they have no cycles", text)
        self.assertAlmostEqual(rows(DATA / "nocycles.data")["quick"]["%CY"], 100)
        self.assertNotIn("CPI", rows(DATA / "nocycles.data")["quick"])

    def test_unknown_instructions(self):
        self.assertIn(
            "not known on this architecture",
            self.check("s390", [loop(QUICK, 10, 5)] * 30, arch="s390x"),
        )

    def test_nonsense(self):
        nowhere = [(NOWHERE + 4 * i, NOWHERE, 5) for i in range(64)]
        top = [(2**64 - 1, 2**64 - 4, 5)] * 64
        backward = [(QUICK, QUICK + 400, 5)] * 64
        full = loop(QUICK, 10, 0xFFFF)
        many = loop(QUICK, 10, 1, 2600)
        wide = [(QUICK + SIZE * 2, QUICK, 5)] * 64
        zero = [(0, 0, 0)] * 64
        for name, stacks in {
            "nowhere": [nowhere] * 30,
            "top": [top] * 30,
            "backward": [backward] * 30,
            "full": [full] * 30,
            "many": [many] * 30,
            "wide": [wide] * 30,
            "zero": [zero] * 30,
            "none": [[]] * 30,
            "one": [[(QUICK, TARDY, 7)]] * 30,
            "all": [nowhere, top, backward, full, many, wide, zero, [], loop(TARDY, 5, 20)] * 9,
        }.items():
            with self.subTest(name):
                self.check(name, stacks)
                self.check(f"{name}-x86", stacks, arch="x86_64")


class Random(unittest.TestCase):
    """Random programs: the second implementation has the same sums, within the rounding."""

    @staticmethod
    def name(address: int) -> str:
        return FUNCTIONS[(address - AT) // SIZE]

    def stacks(self, rng: random.Random) -> list[Records]:
        blocks = [
            (base + 4 * rng.randrange(1000), rng.randint(1, 30), rng.randint(1, 60))
            for base in (QUICK, TARDY, THIRD)
            for _ in range(8)
        ]
        found: list[Records] = []
        for _ in range(200):
            # a walk through the blocks, in the order of time; a record ends each
            walk = [rng.choice(blocks) for _ in range(65)]
            stack = [
                (
                    begin + 4 * (n - 1),
                    after,
                    rng.choice((0, 0xFFFF)) if rng.random() < 0.002 else cycles,
                )
                for (begin, n, cycles), (after, _, _) in pairwise(walk)
            ]
            found.append(stack[::-1][: rng.choice((64, 64, 64, 64, 20))])
        return found

    def test_second_reader(self):
        spans = set()
        for seed in range(20):
            rng = random.Random(seed)
            stacks = self.stacks(rng)
            path = DATA / "random.data"
            recording("whole", stacks)
            branchrecords.shorten(DATA / "whole.data", path, rng.choice((64, 32, 16, 8)))
            own = [sample.branches for sample in pw.read(path).samples]
            span = branchrecords.choose(own)
            spans.add(span)
            if not span:
                self.assertNotIn("CPI", rows(path)["quick"])
                continue
            expected = branchrecords.sums_within(own, span, self.name)
            found = sums(path)
            self.assertEqual(
                {name: row[0] for name, row in found.items()},
                {name: row[0] for name, row in expected.items()},
            )
            for function, (_, instructions) in expected.items():
                # each sample has two parts that are cut
                self.assertLess(abs(found[function][1] - instructions), 40)
        self.assertGreater(len(spans), 3)


@unittest.skipUnless(platform.machine() == "x86_64", "needs x86 code")
class X86(unittest.TestCase):
    @staticmethod
    def blocks(path: str) -> list[list[int]]:
        """The addresses of instructions, by function."""
        found: list[list[int]] = []
        text = must("objdump", "-d", "--no-show-raw-insn", "--section=.text", path)
        for line in text.splitlines():
            if line.endswith(">:"):
                found.append([])
            elif match := re.match(r" +([0-9a-f]+):\t(.*)", line):
                bad = "(bad)" in match[2]
                found[-1].append(-1 if bad else int(match[1], 16))
        return [block for block in found if len(block) > 20 and -1 not in block]

    def test_disassembler(self):
        """Blocks of a program of this machine: objdump counts the same instructions."""
        program = Path("/usr/bin/objdump").resolve()
        blocks = self.blocks(str(program))
        self.assertGreater(sum(map(len, blocks)), 10000)
        rng = random.Random(3)
        expected, stacks = 0, []
        for _ in range(400):
            (block,) = rng.choices(blocks, map(len, blocks))
            first = rng.randrange(len(block) - 1)
            last = rng.randrange(first, min(first + 200, len(block)))
            begin, end = AT + block[first], AT + block[last]
            # 200 cycles of the code, after 100 of one instruction
            stacks.append([(begin, AT, 100), (end, begin, 200), (0, begin, 1)])
            expected += last - first + 1
        path = recording("x86", stacks, arch="x86_64", library=(program, 0))
        found = sums(path)
        self.assertEqual(sum(row[1] for row in found.values()), expected)
        self.assertEqual(sum(row[0] for row in found.values()), 400 * 200)

    def test_unreadable(self):
        """Shares remain, and one line says what is missing."""
        stacks = [loop(QUICK, 10, 5)] * 30
        path = recording("gone", stacks, arch="x86_64", library=(Path("/nowhere/library.so"), 0))
        self.assertIn("branch records tell shares, but no CPI: the code of all", said(path))
        (row,) = report(path, "--by", "comm")["functions"]
        self.assertAlmostEqual(row["metrics"]["%CY"], 100)
