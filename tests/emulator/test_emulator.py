# SPDX-License-Identifier: GPL-2.0
"""The emulated machine with the core model: its PMU counts what the model counts.

The true values come from the core model, which counts each instruction of each program
(emulator/truth.py reads its table); test_model.py tests that model. The counts and samples of perf
come from the guest's driver, arm_pmuv3.
"""

import re
import unittest

from bench.guest import UNTHROTTLED
from tests.harness import code, perfdata, truth
from tests.harness.env import CHECK, in_guest, must

MACHINES = "arm64 emulator"
MINUTES = 5

OUT = CHECK / "emulator"

# the model's columns that each of perf's events counts
EVENTS = {
    "instructions": ["INST_RETIRED"],
    "cycles": ["INST_RETIRED", "STALL"],
    "L1-icache-loads": ["L1I_CACHE"],
    "L1-icache-load-misses": ["L1I_CACHE_REFILL"],
    "iTLB-load-misses": ["L1I_TLB_REFILL"],
    "cache-references": ["L1D_CACHE"],
    "L1-dcache-loads": ["L1D_CACHE"],
    "dTLB-loads": ["L1D_CACHE"],
    "cache-misses": ["L1D_CACHE_REFILL"],
    "L1-dcache-load-misses": ["L1D_CACHE_REFILL"],
    "dTLB-load-misses": ["L1D_TLB_REFILL"],
    "l2d_cache": ["L2D_CACHE"],
    "l2d_cache_refill": ["L2D_CACHE_REFILL"],
    "branches": ["BR_RETIRED"],
    "br_pred": ["BR_RETIRED"],
    "br_return_retired": ["BR_RETURN_RETIRED"],
    "branch-misses": ["BR_MIS_PRED"],
    "br_mis_pred_retired": ["BR_MIS_PRED"],
    "inst_spec": ["INST_SPEC"],
    "stall_frontend": ["STALL_FRONTEND"],
    "stall_backend": ["STALL_BACKEND"],
    "stall": ["STALL"],
}
COUNTERS = 6


def modelled(command: str, name: str, *options: object, model: str = "small") -> str:
    """Output of a command in the machine with caches; its truth goes to OUT/NAME.truth."""
    return in_guest(
        command, "--model", model, "--truth", OUT / f"{name}.truth", *options, share=OUT
    )


def read_truth(name: str) -> list[dict[str, int]]:
    return truth.table(OUT / f"{name}.truth")


def counted(text: str) -> dict[str, int]:
    """The counts that perf stat -x, printed, by event."""
    fields = [line.split(",") for line in text.splitlines() if line.count(",") > 4]
    return {line[2].removesuffix(":u"): int(line[0]) for line in fields}


def assemble(name: str, source: str):
    """Makes /share/NAME, which is nothing but this, and where no other program is."""
    words = "-nostdlib", "-static", "-Wl,-Ttext-segment=0x7000000", "-x", "assembler", "-o"
    text = f".globl _start; {source}\n"
    must("aarch64-linux-gnu-gcc", *words, OUT / name, "-", input=text, stdin=None)


class Emulator(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        OUT.mkdir(parents=True, exist_ok=True)


class Counts(Emulator):
    def test_members_count_what_the_model_counts(self):
        """The counts are exact, even for a program with page faults in the middle of blocks."""
        names = list(EVENTS)
        groups = [names[at : at + COUNTERS - 1] for at in range(0, len(names), COUNTERS - 1)]
        command = "cd /tmp\n"
        for number, group in enumerate(groups):
            events = ",".join(f"{name}:u" for name in group)
            command += (
                f"perf stat -x, -o stat{number} -e {events} sh -c "
                f"'echo $$ > thread{number}; exec benchmark --faults --iterations 40 0 1'\n"
            )
        command += 'for n in stat* thread*; do echo; echo "= $n"; cat $n; done'
        output = modelled(command, "members")
        parts = dict(re.findall(r"= (\w+)\n(.*?)\n(?=\n= |\Z)", output + "\n", re.S))
        for number, group in enumerate(groups):
            counts = counted(parts[f"stat{number}"])
            # sh is a program before it becomes the benchmark
            rows = [
                row
                for row in read_truth("members")
                if row["thread"] == int(parts[f"thread{number}"])
                and row["image"] > 0
                and not row["address"] >> 63
            ]
            true = {
                name: sum(row[column] for row in rows for column in EVENTS[name]) for name in group
            }
            self.assertEqual(counts, true)
            self.assertGreater(min(true.values()), 50)

    # clears 64 new pages by an instruction that ends its block, then makes a nop a branch, and back
    CHANGES = """.section code, "awx"; .balign 4096; .org 4092; zero: dc zva, x1
    add x1, x1, #4096; subs x19, x19, #1; b.ne zero
    mov x19, #64; adr x1, slot; ldr w2, =0xd503201f ^ 0x14000001
    round: ldr w3, [x1]; eor w3, w3, w2; str w3, [x1]; isb
    slot: nop; subs x19, x19, #1; b.ne round; mov x8, #93; svc #0
    _start: mov x19, #64; ldr x1, =pages; b zero
    .bss; .balign 4096; pages: .skip 64 * 4096"""

    def test_code_that_faults_or_changes(self):
        assemble("changes", self.CHANGES)
        command = "perf stat -x, -o /tmp/stat -e instructions:u,branches:u ./changes; cat /tmp/stat"
        true = {"instructions": 64 * (4 + 7) + 8, "branches": 64 * 5 // 2 + 1}
        self.assertEqual(counted(modelled(command, "changes")), true)
        rows = [row for row in read_truth("changes") if row["address"] >> 24 == 7]
        sums = {name: sum(row[EVENTS[name][0]] for row in rows) for name in true}
        self.assertEqual(sums, true)


class Leaders(Emulator):
    """Overflow interrupts."""

    def samples(self, event: str, period: int, name: str) -> tuple[list[int], dict[str, int]]:
        """The counts at the samples of an event that leads its group, and the truth."""
        modelled(
            f"{UNTHROTTLED}cd /tmp; perf record -q -T -m 16M -e '{{{event}/period={period}/,"
            "cycles}:uS' -o data benchmark --iterations 60 0 1\ncp data /share/" + f"{name}.data",
            name,
        )
        contents = perfdata.read(OUT / f"{name}.data")
        stream = contents.stream()
        counts = [next(iter(sample.values.values())) for sample in stream]
        rows = truth.of_program(OUT / f"{name}.truth", stream[0].tid)
        return counts, {key: sum(row[key] for row in rows) for key in rows[0]}

    def test_interrupts_come_at_the_event(self):
        """Their number is exact; each comes within a block of instructions after its event."""
        for event, period in {
            "branch-misses": 100,
            "cache-misses": 500,
            "stall_backend": 5000,
            "branches": 1000,
            "instructions": 3001,
        }.items():
            with self.subTest(event):
                counts, true = self.samples(event, period, f"leader-{event}")
                total = sum(true[column] for column in EVENTS[event])
                self.assertEqual(len(counts), total // period)
                late = [count - period * number for number, count in enumerate(counts, 1)]
                self.assertEqual(min(late), 0)
                # a stall adds many events at once
                self.assertLess(max(late), {"stall_backend": 200, "instructions": 1}.get(event, 20))


class Late(Emulator):
    """MODEL=small,skid=N: overflow interrupts come N cycles late."""

    # no instruction waits
    LOOP = "mov x19, #20000; round: .rept 60; nop; .endr; subs x19, x19, #1; b.ne round"
    # instructions behind the branch's target, with the next of which a branch is counted
    PLACES = {"block": 0, 0: 1, 10: 11, 30: 31}

    def test_the_instruction_and_the_cycle(self):
        assemble("late", f"_start: {self.LOOP}; mov x8, #93; svc #0")
        target = code.addresses(OUT / "late")["round"]
        record = "perf record -q -T -m 16M -e '{0}' -o /tmp/data ./late; cp /tmp/data late{1}\n"
        commands = UNTHROTTLED + record.format("branches/period=101/u", 0)
        commands += record.format("{cycles/period=1999/,stall}:uS", 1)
        for skid, place in self.PLACES.items():
            modelled(commands, "late", model=f"small,skid={skid}")
            branches, cycles = (perfdata.read(OUT / f"late{n}").stream() for n in (0, 1))
            with self.subTest(skid=skid):
                self.assertEqual(len(branches), 20000 // 101)
                # the branch predictor learns
                self.assertEqual({(one.ip - target) // 4 for one in branches[3:]}, {place})
                counts = [next(iter(one.values.values())) for one in cycles]
                late = min(count - 1999 * number for number, count in enumerate(counts, 1))
                self.assertEqual(late, int(skid if skid != "block" else 0))


class Processors(Emulator):
    def test_each_counts_its_own(self):
        """Four programs run on four processors: each counts what it counts alone."""
        program = "benchmark --iterations 30 0 1"
        events = "instructions:u,branches:u,inst_spec:u"
        output = modelled(
            f"cd /tmp; for n in 0 1 2 3 4; do taskset -c $((n % 4)) perf stat -x, -o stat$n "
            f"-e {events} {program} & [ $n -lt 3 ] || wait; done; cat stat*",
            "processors",
            *("--smp", 4),
        )
        counts = [
            counted(part) for part in re.split(r"^(?=\d+,,instructions)", output, flags=re.M)[1:]
        ]
        self.assertEqual(len(counts), 5)
        for name in "instructions", "branches":
            self.assertEqual(len({count[name] for count in counts}), 1, name)


class Truth(Emulator):
    """The table of the model."""

    def test_the_kernel(self):
        """With kernel=on, there are as many events in the kernel as perf stat counts there."""
        events = {"instructions": ["INST_RETIRED"], "cache-misses": ["L1D_CACHE_REFILL"]}
        events["cycles"] = ["INST_RETIRED", "STALL"]
        command = "dd if=data of=/dev/null bs=512"
        output = modelled(
            "cd /tmp; dd if=/dev/zero of=data bs=1M count=16 2> log; "
            f"perf stat -x, -e {','.join(f'{name}:k' for name in events)} "
            f"sh -c 'echo thread $$; exec {command}' 2>&1",
            "kernel",
            model="small,kernel=on",
        )
        thread = int(re.search(r"^thread (\d+)$", output, re.M)[1])
        rows = [row for row in read_truth("kernel") if row["thread"] == thread]
        in_kernel = [row for row in rows if row["address"] >> 63]
        counts = counted(output)
        for name, columns in events.items():
            # perf counts from some point of the first execve() to some point of the exit
            most, least = (
                sum(row[key] for row in in_kernel if row["image"] >= first for key in columns)
                for first in (0, 1)
            )
            self.assertLess(counts[f"{name}:k"], most, name)
            self.assertGreater(counts[f"{name}:k"], 0.99 * least, name)
            self.assertGreater(least, 0.7 * most, name)
