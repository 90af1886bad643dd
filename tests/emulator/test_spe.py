# SPDX-License-Identifier: GPL-2.0
"""Operations (FEAT_SPE) of the machine with caches: known ones, of operations.S.

Linux's own driver records them, and perf's decoder reads them. The model counts how often each
instruction and event has happened.
"""

import math
import re
import subprocess
import unittest
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.harness import code, truth
from tests.harness.env import CHECK, PERF, TOP, in_guest, must

MACHINES = "arm64 emulator"
MINUTES = 2

OUT = CHECK / "spe"
PROGRAM = OUT / "root/tmp/operations"
ROUNDS = 400000
PERIOD = 1024
JITTERED = PERIOD + 127.5  # on average
MEMORY, WALK = 90, 20  # cycles of waiting
NO_WAITS = "small,l2_latency=0,memory_latency=0,walk_latency=0,mispredict_latency=0"
BLOCK = 16  # instructions at most
LIKELY = 4.5  # standard deviations
# perf's names of events, and the model's
EVENTS = {
    "RETIRED": "INST_RETIRED",
    "L1D-ACCESS": "L1D_CACHE",
    "L1D-REFILL": "L1D_CACHE_REFILL",
    "LLC-REFILL": "L2D_CACHE_REFILL",
    "TLB-REFILL": "L1D_TLB_REFILL",
    "MISPRED": "BR_MIS_PRED",
}
BRANCHES = {"bl": "B", "ret": "B IND"} | dict.fromkeys(("cbz", "cbnz", "b.ne"), "B COND")
RETURNS = {"_start": 0, "loads": 4, "stores": 8, "branches": 12}  # to round


@dataclass
class Operation:
    """The packets of a record, as perf prints them."""

    offset: int
    pc: int = 0
    kind: str = ""
    events: set[str] = field(default_factory=set)
    latency: dict[str, int] = field(default_factory=dict)
    address: int = 0
    thread: int = 0
    time: int = 0

    def take(self, name: str, *words: str):
        if name in ("LD", "ST", "B", "OTHER"):
            self.kind = " ".join((name, *words))
        elif name == "EV":
            self.events = set(words)
        elif name == "LAT":
            self.latency[words[1]] = int(words[0])
        elif name != "END":
            names = {"PC": "pc", "CONTEXT": "thread", "TS": "time"}
            setattr(self, names.get(name, "address"), int(words[0], 0))


FILTERS: dict[str, Callable[[Operation], bool]] = {
    "event_filter=0x8": lambda one: "L1D-REFILL" in one.events,
    "event_filter=0x80": lambda one: "MISPRED" in one.events,
    "load_filter=1": lambda one: one.kind.startswith("LD"),
    "store_filter=1,branch_filter=1": lambda one: one.kind[0] in "SB",
    f"min_latency={1 + MEMORY}": lambda one: "L1D-REFILL" in one.events,
}


def operations(recording: Path) -> list[Operation]:
    """What perf's decoder finds in the program. Each record ends with one of two packets."""
    found, ended = list[Operation](), True
    text = must(PERF, "script", "-D", "-i", recording, stderr=subprocess.DEVNULL)
    for line in text.splitlines():
        match = re.match(r"\.  ([0-9a-f]{8}): (?: [0-9a-f]{2}){1,16} +([A-Z].*)", line)
        if match and match[2] != "PAD":
            if ended:
                found.append(Operation(int(match[1], 16)))
            found[-1].take(*match[2].split())
            ended = match[2].split()[0] in ("TS", "END")
    assert ended
    return [one for one in found if one.pc < 1 << 32]  # not of the shell before the program


def record(options: dict[str, str], model: str, *more: object):
    """Records the program once with each of the options, into files of these names."""
    in_guest(
        "cp root/tmp/operations /tmp; cd /tmp; settle\n"
        + "".join(
            f"perf record -q -N -o data -c {PERIOD} -e arm_spe_0/{config} -- "
            "sh -c 'echo $$ > thread; exec ./operations'\n"
            f"cp data /share/{name}.data; cp thread /share/{name}.thread\n"
            for name, config in options.items()
        ),
        *("--model", model, *more),
        share=OUT,
    )


class Operations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        must(
            *("aarch64-linux-gnu-gcc", "-nostdlib", "-static", f"-Wa,--defsym,ROUNDS={ROUNDS}"),
            *("-o", PROGRAM, TOP / "tests/emulator/operations.S"),
        )
        cls.at = code.addresses(PROGRAM)
        options = {"known": "jitter=1/u", "full": "jitter=1/u -m ,2"}
        options |= {name: f"jitter=1,{name}/u" for name in FILTERS}
        record(options, "small", "--truth", OUT / "truth")
        cls.found = operations(OUT / "known.data")
        thread = int((OUT / "known.thread").read_text())
        # the model's counts of each instruction of the program
        cls.true = {row["address"]: row for row in truth.of_program(OUT / "truth", thread)}

    def likely(self, count: int, mean: float, what: object, deviation: float = 0):
        """Chance makes such a count of this mean."""
        limit = LIKELY * (deviation or math.sqrt(mean)) + 1
        self.assertLessEqual(abs(count - mean), limit, f"{what}: {count} of {mean}")

    def function(self, pc: int) -> str:
        return max((self.at[name], name) for name in RETURNS if self.at[name] <= pc)[1]

    def test_packets(self):
        """Type, address, events and latencies are those of the instruction."""
        thread = int((OUT / "known.thread").read_text())
        listing = must("aarch64-linux-gnu-objdump", "-d", PROGRAM)
        words = re.findall(r"^ +(\w+):\t\w+ \t([\w.]+)(?:\t(.*))?$", listing, re.M)
        code_of = {int(address, 16): (name, operands) for address, name, operands in words}
        for one in self.found:
            self.assertEqual(one.offset % 64, 0)
            name, operands = code_of[one.pc]
            kind, address, events = BRANCHES.get(name, "OTHER INSN-OTHER"), 0, {"RETIRED"}
            latency = {"TOT": 1, "ISSUE": 0}
            if name in BRANCHES:
                events |= one.events & {"NOT-TAKEN", "MISPRED"}
                address = self.at["round"] + RETURNS[self.function(one.pc)]
                if name != "ret":
                    address = int(re.search(r"(\w+) <", operands)[1], 16)
                if "NOT-TAKEN" in events:
                    address = one.pc + 4
                self.assertTrue(kind == "B COND" or len(events) == 1)
            elif "[" in operands:
                kind = "LD" if name.startswith("ld") else "ST"
                kind += " SIMD-FP" if operands.startswith("d") else " GP-REG"
                address = self.at["hot"] + int((re.findall(r"#(\d+)", operands) or "0")[0])
                events |= {"L1D-ACCESS", "TLB-ACCESS"}
                latency["XLAT"] = 0
            if one.pc == self.at["miss"]:
                address = one.address
                self.assertIn(address, range(self.at["cold"], self.at["cold"] + (1 << 20), 64))
                events |= {"L1D-REFILL", "LLC-ACCESS", "LLC-REFILL"}
                if address % 4096 == 0:
                    events.add("TLB-REFILL")
                    latency["XLAT"] = WALK
                latency["TOT"] += MEMORY + latency["XLAT"]
            self.assertEqual(
                (one.kind, one.address, one.events, one.latency, one.thread),
                (kind, address, events, latency, thread),
                f"{one.pc:x} {name} {operands}",
            )

    def test_counts(self):
        """Each instruction and each of its events has its share of the operations."""
        for event, name in EVENTS.items():
            found = Counter(one.pc for one in self.found if event in one.events)
            self.assertEqual(set(found) - set(self.true), set())
            for pc, row in self.true.items():
                self.likely(found[pc], row[name] / JITTERED, (event, hex(pc)))
        executed = sum(row["INST_RETIRED"] for row in self.true.values())
        self.assertAlmostEqual(len(self.found) * JITTERED / executed, 1, delta=0.005)
        misses = Counter("L1D-REFILL" in one.events for one in self.found if one.kind[0] == "L")
        self.likely(misses[True], misses.total() / 7, "misses of loads")

    def test_filters(self):
        """Each leaves the operations that it is for, and no fewer."""
        for name, matches in FILTERS.items():
            with self.subTest(name):
                filtered = operations(OUT / f"{name}.data")
                self.assertTrue(all(map(matches, filtered)))
                mean = sum(map(matches, self.found))
                self.likely(len(filtered), mean, name, math.sqrt(2 * mean))

    def test_jitter(self):
        """Intervals are the period without jitter, and up to 255 longer with it."""
        record({"fixed": "jitter=0/u", "jittered": "jitter=1/u"}, NO_WAITS)
        for name, jitter in (("fixed", 0), ("jittered", 255)):
            times = [one.time for one in operations(OUT / f"{name}.data")]
            gaps = [after - before for before, after in pairwise(times)]
            known = [gap for gap in gaps if gap <= PERIOD + jitter + BLOCK]
            self.assertGreater(len(known), 0.95 * len(gaps))  # the kernel makes some longer
            self.assertGreaterEqual(min(known), PERIOD - BLOCK)
            self.assertAlmostEqual(sum(known) / len(known), PERIOD + jitter / 2, delta=5)
            if jitter:
                parts = Counter((gap - PERIOD) // 32 for gap in known)
                for part in range(8):
                    self.likely(parts[part], len(known) / 8, part)

    def test_full_buffer(self):
        """perf says that operations were lost, and the recording goes on."""
        said = must(PERF, "report", "-i", OUT / "full.data", "--stdio")
        self.assertGreater(int(re.search(r"AUX data lost (\d+) times", said)[1]), 10)
        self.assertGreater(len(operations(OUT / "full.data")), 0.8 * len(self.found))

    def test_kernel(self):
        """The address tells the exception level."""
        record({"kernel": "jitter=1/"}, "small,kernel=on")
        levels = re.findall(
            r"PC 0x(\w+) el(\d) ns=1", must(PERF, "script", "-D", "-i", OUT / "kernel.data")
        )
        self.assertEqual(
            {(len(pc) > 12, level) for pc, level in levels}, {(False, "0"), (True, "1")}
        )
