# SPDX-License-Identifier: GPL-2.0
"""Tests of the core model without QEMU: known geometries, known sequences, exact counts.

trace.c runs the traces of these tests through emulator/model. The expected counts are computed by
hand where that is possible, else by the models below, which share nothing with the C code. objdump
tells what an instruction is.
"""

import random
import re
import unittest
from collections import Counter, OrderedDict
from collections.abc import Iterable
from pathlib import Path

from tests.harness.env import CHECK, TOP, must, run
from tests.harness.predictor import Gshare

MACHINES = "arm64 emulator"

MODEL = TOP / "emulator/model"
OUT = CHECK / "model"
LINE, PAGE = 64, 4096
(
    OTHER,
    DIRECT,
    CONDITIONAL,
    INDIRECT,
    CALL,
    INDIRECT_CALL,
    RETURN,
    INTEGER_DIVIDE,
    FLOAT_DIVIDE,
    CONVERT,
    ISB,
    EXCEPTION_RETURN,
) = range(12)


class Lru:
    """A set-associative memory, implemented a second time."""

    def __init__(self, lines: int, ways: int) -> None:
        self.sets: list[OrderedDict[object, None]] = [OrderedDict() for _ in range(lines // ways)]
        self.ways = ways

    def hit(self, line: int, space: int = 0) -> bool:
        here = self.sets[line % len(self.sets)]
        found = (line, space) in here
        here[line, space] = None
        here.move_to_end((line, space))
        if len(here) > self.ways:
            here.popitem(last=False)
        return found


class Trace(unittest.TestCase):
    """Runs traces."""

    program: Path

    @classmethod
    def setUpClass(cls):
        OUT.mkdir(parents=True, exist_ok=True)
        cls.program = OUT / "trace"
        sources = [TOP / "tests/emulator/trace.c"]
        sources += [path for path in MODEL.glob("*.c") if path.name not in ("plugin.c", "truth.c")]
        must(
            *("gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Werror", "-I", MODEL),
            *("-fsanitize=address,undefined", "-fno-sanitize-recover"),
            *must("pkg-config", "--cflags", "--libs", "glib-2.0").split(),
            *("-o", cls.program, *sources, "-lglib-2.0"),
        )

    def run_trace(self, lines: Iterable[str], *arguments: str) -> tuple[list[str], dict[str, int]]:
        """The result of each line, and the counts."""
        done = must(self.program, *arguments, input="\n".join(lines) + "\n", stdin=None)
        *results, counts = done.splitlines()
        return results, {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", counts)}

    def counts(self, lines: Iterable[str], *arguments: str) -> dict[str, int]:
        return self.run_trace(lines, *arguments)[1]


class Caches(Trace):
    def test_one_line_too_many_misses_always(self):
        """A sweep over too many lines is the worst case of least recently used."""
        # 5 lines of one set of 4 ways: 128 sets are 8 KiB apart
        sweep = [f"l {line * 128 * LINE:#x} 8" for line in range(5)] * 100
        counts = self.counts(sweep, "l1d=32", "l1d_ways=4")
        self.assertEqual(counts["L1D_CACHE_REFILL"], 500)
        counts = self.counts(sweep, "l1d=40", "l1d_ways=5")
        self.assertEqual(counts["L1D_CACHE_REFILL"], 5)

    def test_second_level_holds_what_the_first_does_not(self):
        sweep = [f"l {line * LINE:#x} 8" for line in range(2048)] * 3
        results, counts = self.run_trace(
            sweep, "l1d=32", "l2=256", "l2_latency=10", "memory_latency=90", "walk_latency=0"
        )
        self.assertEqual((counts["L1D_CACHE_REFILL"], counts["L2D_CACHE_REFILL"]), (6144, 2048))
        # a difference of long lists takes minutes to print
        self.assertEqual(Counter(results[:2048]), {"90": 2048})
        self.assertEqual(Counter(results[2048:]), {"10": 4096})
        self.assertEqual(counts["STALL_BACKEND"], 2048 * 90 + 4096 * 10)
        self.assertEqual(counts["STALL"], counts["STALL_BACKEND"] + counts["STALL_FRONTEND"])
        self.assertEqual(counts["CYCLES"], counts["STALL"])

    def test_random_accesses(self):
        """The model agrees with the second implementation, for two processes and the kernel."""
        chance = random.Random(1)
        l1d, l2, dtlb = Lru(256, 2), Lru(1024, 4), Lru(16, 4)
        lines, expected, space = [], {"L1D_CACHE_REFILL": 0, "L2D_CACHE_REFILL": 0}, 0
        expected["L1D_TLB_REFILL"] = 0
        for _ in range(20000):
            if chance.random() < 0.01:
                space = chance.choice([1, 2])
                lines.append(f"p {space}")
            kernel = chance.random() < 0.2
            address = chance.randrange(20 * PAGE) // 8 * 8 + (0xFFFF800000000000 if kernel else 0)
            lines.append(f"l {address:#x} 8")
            owner = 0 if kernel else space
            expected["L1D_TLB_REFILL"] += not dtlb.hit(address // PAGE, owner)
            if not l1d.hit(address // LINE, owner):
                expected["L1D_CACHE_REFILL"] += 1
                expected["L2D_CACHE_REFILL"] += not l2.hit(address // LINE, owner)
        counts = self.counts(
            lines, "l1d=16", "l1d_ways=2", "l2=64", "l2_ways=4", "dtlb=16", "dtlb_ways=4"
        )
        self.assertEqual({name: counts[name] for name in expected}, expected)
        self.assertGreater(expected["L2D_CACHE_REFILL"], 1000)
        self.assertLess(expected["L1D_CACHE_REFILL"], 19000)

    def test_stores_wait_when_their_buffer_is_full(self):
        """Each 10 cycles a store misses for 100: with 4 pending, each waits for 90."""
        lines = []
        for line in range(50):
            lines += ["x 10", f"s {line * LINE:#x} 8"]
        results, _ = self.run_trace(lines, "memory_latency=100", "walk_latency=0", "store_buffer=4")
        waits = [int(wait) for wait in results[1::2]]
        self.assertEqual(waits[:4], [0] * 4)
        self.assertEqual(waits[-40:], [90] * 40)
        results, _ = self.run_trace(lines, "memory_latency=9", "walk_latency=0")
        self.assertEqual(results[1::2], ["0"] * 50)


class Branches(Trace):
    def branches(self, outcomes: Iterable[tuple[int, bool]], *arguments: str) -> dict[str, int]:
        """The counts of conditional branches, each with its address and outcome."""
        return self.counts(
            (
                f"b {CONDITIONAL} {pc:#x} {pc + 64:#x} {pc + (64 if taken else 4):#x}"
                for pc, taken in outcomes
            ),
            *arguments,
        )

    def test_random_branches(self):
        """The model agrees with the second implementation."""
        chance = random.Random(2)
        outcomes = [
            (chance.randrange(0x1000, 0x9000, 4), chance.random() < 0.7) for _ in range(20000)
        ]
        for bits, history in (12, 8), (6, 0), (8, 12):
            model = Gshare(bits, history)
            wrong = sum(not model.right(pc, taken) for pc, taken in outcomes)
            counts = self.branches(outcomes, f"predictor_bits={bits}", f"history_bits={history}")
            self.assertEqual(counts["BR_MIS_PRED"], wrong)
            self.assertEqual(counts["STALL_FRONTEND"], 12 * wrong)
            self.assertEqual(counts["INST_SPEC"], 8 * wrong)
            # the cycles, but not the event, belong to the instruction after the branch
            after = {name: count for name, count in counts.items() if "AFTER" in name and count}
            self.assertEqual(after, {"AFTER_STALL_FRONTEND": 12 * wrong})

    def test_returns_go_back(self):
        """The return stack holds 16: of 20 nested calls, it forgets the outer four."""
        for depth, wrong in (16, 0), (20, 4):
            calls = [
                f"b {CALL} {0x1000 * level:#x} {0x1000 * (level + 1):#x} {0x1000 * (level + 1):#x}"
                for level in range(1, depth + 1)
            ]
            returns = [
                f"b {RETURN} {0x1000 * (level + 1) + 32:#x} 0 {0x1000 * level + 4:#x}"
                for level in range(depth, 0, -1)
            ]
            counts = self.counts(calls + returns)
            self.assertEqual(counts["BR_MIS_PRED"], wrong)
            self.assertEqual(counts["BR_RETIRED"], 2 * depth)
            self.assertEqual(counts["BR_RETURN_RETIRED"], depth)


class Units(Trace):
    def test_latencies(self):
        kinds = {"integer_divide": INTEGER_DIVIDE, "float_divide": FLOAT_DIVIDE}
        kinds |= {"convert": CONVERT, "isb": ISB}
        for number, (name, kind) in enumerate(kinds.items(), 21):
            results, counts = self.run_trace([f"u {kind}"], f"{name}={number}")
            self.assertEqual(results, [str(number)])
            side = "STALL_FRONTEND" if name == "isb" else "STALL_BACKEND"
            self.assertEqual((counts[side], counts["STALL"]), (number, number))


class Arguments(Trace):
    def test_wrong_ones_are_refused(self):
        for argument, word in {
            "l1d_ways=3": "power of two",
            "l2=0": "power of two",
            "l1d=x": "number",
            "predictor_bits=60": "too large",
            "preset=huge": "small and large",
            "color=blue": "no such",
        }.items():
            done = run(self.program, argument)
            self.assertEqual(done.returncode, 1, argument)
            self.assertIn(word, done.stdout)
            self.assertEqual(len(done.stdout.splitlines()), 1)


class Decoding(Trace):
    """The decoder agrees with objdump."""

    KINDS = {
        r"b|bc?\.(al|nv)": DIRECT,
        r"bl": CALL,
        r"bc?\..*|cbn?z|tbn?z": CONDITIONAL,
        r"br|bra[ab]z?": INDIRECT,
        r"blr|blra[ab]z?": INDIRECT_CALL,
        r"ret|reta[ab]": RETURN,
        r"[us]div": INTEGER_DIVIDE,
        r"fdiv|fsqrt": FLOAT_DIVIDE,
        r"isb": ISB,
        r"eret|ereta[ab]": EXCEPTION_RETURN,
    }

    def kind(self, mnemonic: str) -> int:
        for pattern, kind in self.KINDS.items():
            if re.fullmatch(pattern, mnemonic):
                return kind
        return OTHER

    def test_random_instructions(self):
        chance = random.Random(3)
        # instructions of each known kind with random fields, and random words
        bases = (0x14000000, 0x94000000, 0x54000000, 0x34000000, 0x36000000, 0xD61F0000)
        bases += (0xD63F0000, 0xD65F0000, 0x1AC00800, 0x1E201800, 0x1E21C000, 0x6E20FC00)
        bases += (0x2EA1F800, 0xD50330DF, 0xD69F03E0)
        fields = (0x03FFFFFF, 0x03FFFFFF, 0x00FFFFFF, 0x81FFFFFF, 0x81FFFFFF, 0x3E0, 0x3E0, 0x3E0)
        fields += (0x801F07FF, 0x00DF03FF, 0x00C003FF, 0x405F03FF, 0x404003FF, 0xF00)
        fields += (0xC1F,)
        words = [
            base | chance.getrandbits(32) & field
            for base, field in zip(bases, fields)
            for _ in range(300)
        ] + [chance.getrandbits(32) for _ in range(20000)]
        binary = OUT / "instructions"
        binary.write_bytes(b"".join(word.to_bytes(4, "little") for word in words))
        listing = must(
            *("aarch64-linux-gnu-objdump", "-D", "-z", "-b", "binary", "-m", "aarch64"),
            *("-M", "no-aliases", "--adjust-vma=0x400000000", binary),
        )
        listed = re.findall(r"^\s*([0-9a-f]+):\s+([0-9a-f]{8})\s+(\S+)(.*)$", listing, re.M)
        self.assertEqual(len(listed), len(words))
        results, _ = self.run_trace(f"d 0x{word} 0x{pc}" for pc, word, _, _ in listed)
        seen = set()
        for (_, word, mnemonic, operands), result in zip(listed, results):
            kind, target = result.split()
            # SVE and SME have divisions of their own, which the model does not know
            expected = OTHER if re.search(r"\bz\d|\bza", operands) else self.kind(mnemonic)
            if mnemonic == ".inst":  # undefined
                continue
            if int(kind) == CONVERT:
                self.assertRegex(mnemonic, r"fcvt|[su]cvtf|fmov|fjcvtzs", word)
                continue
            if int(kind) > EXCEPTION_RETURN:
                self.assertEqual(mnemonic, "msr", word)
                continue
            self.assertEqual(int(kind), expected, f"{word} {mnemonic} {operands}")
            if expected in (DIRECT, CONDITIONAL, CALL):
                self.assertEqual(target, re.findall(r"0x([0-9a-f]+)", operands)[-1], word)
            seen.add(expected)
        self.assertEqual(len(seen), 11)
