# SPDX-License-Identifier: GPL-2.0
"""Branch records (FEAT_BRBE) of the machine with caches.

Linux's own driver reads the records of branches.S, whose path is computed here, with the branches
that the core model has to predict wrongly and the cycles between them.
"""

import bisect
import json
import shutil
import subprocess
import unittest
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench.guest import UNTHROTTLED
from tests.harness import code, perfdata, truth
from tests.harness.env import BASE, CHECK, PERF, TOP, in_guest, must, native
from tests.harness.predictor import Gshare
from tests.harness.tables import flat

MACHINES = "arm64 emulator"
MINUTES = 2

OUT = CHECK / "brbe"
PROGRAM = OUT / "branches"
# only mispredicted branches wait
MODEL = "small,l2_latency=0,memory_latency=0,walk_latency=0"
LOST = 12  # cycles
ROUNDS = 4000
# kinds of branches
DIRECT, CONDITIONAL, INDIRECT, CALL, INDIRECT_CALL, RETURN = range(6)


@dataclass(frozen=True)
class Step:
    """A branch. time: the cycle at its end; missed: how many were predicted wrongly until then."""

    kind: int
    source: int
    target: int
    taken: bool
    wrong: bool
    time: int
    missed: int = 0


def walk(program: Path = PROGRAM) -> list[Step]:
    """The branches of branches.S."""
    at = code.addresses(program)
    # where calls return to
    at |= {f"after {call}": at[call] + 4 for call in ("round", "one_call", "two_call")}
    predictor = Gshare(12, 8)
    targets: dict[int, int] = {}
    steps: list[Step] = []
    time, missed, bits = 6, 0, 1  # before the first round

    def branch(kind: int, n: int, source: str, target: str, taken: bool = True) -> None:
        """A branch, and how many instructions end with it."""
        nonlocal time, missed
        pc, to = at[source], at[target]
        wrong = False
        if kind == CONDITIONAL:
            wrong = not predictor.right(pc, taken)
        elif kind in (INDIRECT, INDIRECT_CALL):
            wrong = targets.get(pc) != to
            targets[pc] = to
        time += n
        missed += wrong
        steps.append(Step(kind, pc, to, taken, wrong, time, missed))
        time += LOST * wrong

    for left in reversed(range(ROUNDS)):
        branch(CALL, 1, "round", "one")
        branch(CALL, 2, "one_call", "two")
        branch(INDIRECT_CALL, 2, "two_call", "three")
        branch(RETURN, 2, "three_end", "after two_call")
        branch(RETURN, 1, "two_end", "after one_call")
        branch(RETURN, 1, "one_end", "after round")
        time += 1
        for turn in range(7):
            branch(CONDITIONAL, 2, "loop_end", "loop", turn < 6)
        odd, bits = bits & 1, bits >> 1
        branch(CONDITIONAL, 3, "random", "even", not odd)
        if odd:
            bits ^= 0xB400
            time += 1
        side = "right" if bits & 2 else "left"
        branch(INDIRECT, 3, "jump", side)
        if side == "left":
            branch(DIRECT, 2, "left_end", "join")
        else:
            time += 2
        branch(CONDITIONAL, 2, "join_end", "round", left > 0)
    return steps


def record(name: str, options: str, model: str = MODEL, command: str = "/tmp/branches") -> Path:
    """Records a program in the machine."""
    in_guest(
        f"{UNTHROTTLED}cp branches /tmp; cd /tmp; settle\n"
        f"perf record -q -N -T -m 16M -o data {options} -- {command} > /dev/null\n"
        f"cp data /share/{name}.data",
        *("--model", model),
        share=OUT,
    )
    return OUT / f"{name}.data"


def samples(recording: Path) -> list[perfdata.Sample]:
    return sorted(perfdata.read(recording).samples, key=lambda sample: sample.time)


class KnownProgram(unittest.TestCase):
    """The program branches.S."""

    @classmethod
    def setUpClass(cls):
        OUT.mkdir(parents=True, exist_ok=True)
        must(
            *("aarch64-linux-gnu-gcc", "-nostdlib", "-static", "-o", PROGRAM),
            TOP / "tests/emulator/branches.S",
        )
        cls.path = walk()


class LostCycles(KnownProgram):
    def test_belong_to_the_next_instruction(self):
        """The mispredicts belong to the branch."""
        command = "sh -c 'echo $$; exec ./branches'"
        thread = in_guest(command, "--model", MODEL, "--truth", OUT / "truth", share=OUT).strip()
        missed, lost = Counter[int](), Counter[int]()
        for row in truth.of_program(OUT / "truth", int(thread)):
            missed[row["address"]] = row["BR_MIS_PRED"]
            lost[row["address"]] = row["STALL"]
        wrong = [step for step in self.path if step.wrong]
        self.assertEqual(+missed, Counter(step.source for step in wrong))
        after = Counter(step.target if step.taken else step.source + 4 for step in wrong)
        self.assertEqual(+lost, Counter({address: n * LOST for address, n in after.items()}))


class Table(unittest.TestCase):
    """The table of branches.S beside its path, on bases without a driver, too.

    Linux 7.3 made the recording that is kept: record("kept", "-b -e cycles:u -c 4999").
    """

    def test_values(self):
        must("tar", "-C", OUT, "-xJf", TOP / "tests/emulator/branches.tar.xz")
        table = flat(
            native(OUT / "branches.data", *f"--source branches -j --symfs {OUT}".split()).stdout
        )
        rows = {row["symbol"]: row for row in table["functions"]}
        true = self.truth(OUT / "tmp/branches")
        hits = 0
        for name, values in true.items():
            for metric, value in values.items():
                low, high = rows[name]["intervals"][metric]
                hits += low <= value <= high
        self.assertGreater(hits, 0.9 * 3 * len(true))
        found = rows["loop"]["metrics"]
        self.assertAlmostEqual(found["CPI"], true["loop"]["CPI"], delta=0.1)
        self.assertEqual(rows["one"]["metrics"]["CPI"], 1)

    @staticmethod
    def truth(program: Path) -> dict[str, dict[str, float]]:
        """CPI and shares of the labels with a hundredth of the cycles, from the path alone."""
        places = sorted((address, name) for name, address in code.addresses(program).items())
        cycles, instructions = Counter[str](), Counter[str]()
        for before, step in pairwise(one for one in walk(program) if one.taken):
            _, name = places[bisect.bisect(places, (before.target, "~")) - 1]
            cycles[name] += step.time - before.time
            instructions[name] += (step.source - before.target) // 4 + 1
        return {
            name: {
                "CPI": number / instructions[name],
                "%CY": 100 * number / cycles.total(),
                "%I": 100 * instructions[name] / instructions.total(),
            }
            for name, number in cycles.items()
            if number > cycles.total() / 100
        }


@unittest.skipIf(BASE == "6.12", "Linux 6.12 has no driver of branch records")
class Samples(KnownProgram):
    def check(self, found: list[perfdata.Sample], ends: list[int], records: int, *kinds: int):
        """Each sample has the last branches until the place of its overflow, of these kinds."""
        self.assertEqual(len(found), len(ends))
        interrupted, last = 0, -2
        for sample, end in zip(found, ends):
            # the branch after an overflow is not recorded
            steps = [step for step in self.path[last + 2 : end + 1] if step.taken]
            steps = [step for step in steps if not kinds or step.kind in kinds]
            stack = sample.branches[::-1]
            recorded = steps[-records:]
            # Linux clears the records when it switches to another task
            cleared = len(recorded) - len(stack)
            self.assertEqual(
                [(one.source, one.target, one.missed) for one in stack],
                [(step.source, step.target, step.wrong) for step in recorded[max(cleared, 0) :]],
            )
            # the first one's are unknown, as are those after another interrupt
            cycles = [0] + [step.time - before.time for before, step in pairwise(steps)]
            wrong = [
                (one.cycles, true)
                for one, true in zip(stack, cycles[len(cycles) - len(stack) :])
                if one.cycles != true
            ]
            self.assertEqual({cycles for cycles, _ in wrong} - {0}, set())
            interrupted += len(wrong) + (cleared > 0)
            last = end
        self.assertLess(interrupted, 5)

    def ends(self, name: str, period: int) -> list[int]:
        """The place of each overflow in the path."""
        counts = [
            step.missed if name == "branch-misses" else number
            for number, step in enumerate(self.path, 1)
        ]
        return [
            bisect.bisect_left(counts, count) for count in range(period, counts[-1] + 1, period)
        ]

    def test_records(self):
        """The last record is the one at the overflow: of a branch, and of a mispredict."""
        for event, period, records in (
            ("branches", 997, 64),
            ("branches", 41, 64),
            ("branches", 499, 32),
            ("branch-misses", 31, 16),
        ):
            with self.subTest(f"{event} {period} {records}"):
                recording = record(
                    "known", f"-b -e {event}:u -c {period}", f"{MODEL},records={records}"
                )
                self.check(samples(recording), self.ends(event, period), records)

    def test_filters(self):
        for name, kinds in {
            "any_call": (CALL, INDIRECT_CALL),
            "any_ret": (RETURN,),
            "ind_call": (INDIRECT_CALL,),
            "cond": (CONDITIONAL,),
            "ind_jmp,call": (INDIRECT, CALL),
        }.items():
            with self.subTest(name):
                recording = record("filter", f"-j {name},u -e branches:u -c 997")
                self.check(samples(recording), self.ends("branches", 997), 64, *kinds)


@unittest.skipIf(BASE == "6.12", "Linux 6.12 has no driver of branch records")
class Functions(KnownProgram):
    """perf functions record and report."""

    def test_events_are_where_they_happened(self):
        """The model tells the branch or the cycle; the interrupt comes one branch later."""
        at = code.addresses(PROGRAM)
        functions = "_start", "one", "two", "three"

        def function_at(address: int) -> str:
            return max((at[name], name) for name in functions if at[name] <= address)[1]

        times = [step.time for step in self.path]
        (OUT / "root/tmp").mkdir(parents=True, exist_ok=True)
        shutil.copy(PROGRAM, OUT / "root/tmp/branches")
        for event, period, ends in (
            ("branches", 41, range(40, len(times), 41)),
            ("cycles", 487, [bisect.bisect_left(times, n) for n in range(487, times[-1], 487)]),
        ):
            with self.subTest(event):
                true = Counter(function_at(self.path[end].source) for end in ends)
                recording = record("origin", f"-b -e {event}:u -c {period}")
                table = json.loads(
                    must(
                        *(PERF, "functions", "report", "--json", "--source", "samples"),
                        *("-i", recording, "--symfs", OUT / "root"),
                        stderr=subprocess.DEVNULL,
                    )
                )
                found = Counter[str]()
                for row in table["functions"]:  # perf takes each label for a function
                    found[function_at(at[row["symbol"]])] += row["samples"]
                wrong = sum(((found - true) | (true - found)).values())
                self.assertLessEqual(wrong, 2, f"{found} {true}")

    def test_records_are_the_default(self):
        """They are there unless an option or the kind of the group says no."""
        commands = {"default": "", "asked": "-b", "none": "--no-branches"}
        in_guest(
            UNTHROTTLED
            + "cd /tmp\n"
            + "".join(
                f"perf functions record -q -o data {options} -- benchmark --iterations 300 0 1"
                f" > /dev/null\ncp data /share/functions-{name}.data\n"
                for name, options in commands.items()
            ),
            *("--model", MODEL),
            share=OUT,
        )
        for name in commands:
            with self.subTest(name):
                path = OUT / f"functions-{name}.data"
                found = perfdata.read(path).samples
                self.assertGreater(len(found), 20)
                # of members, too
                events = {one.attr.config for one in found if one.branches}
                self.assertEqual(len(events) > 3, name != "none", events)
                columns = {
                    column["name"]: column["source"]
                    for column in json.loads(native(path, "--json").stdout)["columns"]
                }
                self.assertEqual(columns["CPI"] == "branches", name != "none", columns)
