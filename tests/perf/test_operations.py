# SPDX-License-Identifier: GPL-2.0
"""Rates of functions from operations that the CPU follows: Arm's SPE, AMD's IBS, Intel's loads.

Recordings are made up operation by operation. What they hold is read a second time by perf script
-D, which prints each record on its own.
"""

import json
import random
import re
import struct
import subprocess
import unittest
from collections import Counter
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.env import BASE, CHECK, PERF, must, run
from tests.harness.recording import Recording

DATA = CHECK / "operations"
PMU = 9  # the type of the PMU that follows operations
KINDS = pw.IDENTIFIER | pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD
PERIOD = 100_000
# what part of a function's operations are loads, stores, branches; what part of these miss
FUNCTIONS = {0x1000: (0.3, 0.1, 0.2, 0.2), 0x2000: (0.5, 0.2, 0.1, 0.5), 0x3000: (0.0, 0.0, 0.3, 0)}
ZEN = {
    "zen2": ("AuthenticAMD,23,49,0", 0x7FF & ~(1 << 11), (2, 3, 4)),
    "zen3": ("AuthenticAMD,25,1,1", 0x7FF & ~(1 << 11), (2, 3, 4)),
    "zen4": ("AuthenticAMD,25,97,2", 0xFFF, (1, 2, 3, 5, 6, 8, 12)),
}
INTEL = "GenuineIntel,6,85,4"
FILTERED = "only operations that"


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def table(path: Path, *options: str) -> dict[str, dict[str, dict[str, float]]]:
    """The values of the rows by address and title."""
    text = must(*(PERF, "functions", "report", "-j", *options, path), stderr=subprocess.DEVNULL)
    return {row["address"]: row["metrics"] for row in json.loads(text)["functions"]}


def counters() -> list[pw.Event]:
    """cycles and instructions, which sample themselves."""
    flags = pw.FLAG_SAMPLE_ID_ALL | pw.FLAG_EXCLUDE_KERNEL
    return [
        pw.Event(name, 0, config, [1 + config], PERIOD, sample_type=KINDS, flags=flags)
        for config, name in enumerate(("cycles", "instructions"))
    ]


def dump(path: Path) -> str:
    return must(PERF, "script", "-D", "-i", path, stderr=subprocess.DEVNULL)


def place_of(line: str) -> str:
    return hex(int(re.search(r" (0x[0-9a-f]+) period:", line)[1], 16) & ~0xFFF)


class Operations(unittest.TestCase):
    def check(
        self, rows: dict, true: dict[str, Counter], rates: dict[str, tuple[str, str, float]]
    ) -> None:
        """Each value is that of the counts, and lies in its interval."""
        for address, counts in true.items():
            for title, (event, per, scale) in rates.items():
                total = sum(one[event] for one in true.values()) if per == "all" else counts[per]
                value = rows[address].get(title)
                with self.subTest(f"{address} {title}"):
                    if not total:
                        self.assertIsNone(value)
                        continue
                    self.assertAlmostEqual(
                        value["value"], scale * counts[event] / total, 6, f"{address} {title}"
                    )
                    if "high" in value:
                        self.assertLessEqual(value["low"], value["value"] * (1 + 1e-9))
                        self.assertGreaterEqual(value["high"] * (1 + 1e-9), value["value"])


class Ibs(Operations):
    """Samples of IBS with its registers, as Zen 2, 3 and 4 have them."""

    RATES = {
        "%I": ("all", "all", 100),
        "BM/KO": ("OpBrnMisp", "all_", 1000),
        "%BMR": ("OpBrnMisp", "BrnRet", 100),
        "CM/KO": ("DcMiss", "all_", 1000),
        "%CM": ("DcMiss", "memory", 100),
        "TM/KO": ("walk", "all_", 1000),
        "LLM/KO": ("beyond", "all_", 1000),
        "MLAT": ("DcMissLat", "missing loads", 1),
        "%L1DM": ("DcMiss", "all", 100),
    }

    @staticmethod
    def registers(rng: random.Random, parts: tuple[float, ...], sources: tuple[int, ...]):
        """op_data, op_data2, op_data3 of an operation by chance."""
        loads, stores, branches, miss = parts
        kind = rng.random()
        is_load, is_store = kind < loads, loads <= kind < loads + stores
        is_branch = loads + stores <= kind < loads + stores + branches
        data = rng.randrange(100) | rng.randrange(100) << 16
        data |= is_branch << 37 | (is_branch and rng.random() < 0.3) << 36
        if not (is_load or is_store):
            return data, 0, 0
        source = rng.choice((0, *sources, 7))
        data3 = is_load | is_store << 1 | 1 << 17 | (rng.random() < 0.02) << 14
        if rng.random() < miss:
            data3 |= 1 << 7 | (rng.random() < 0.5) << 20 | rng.randrange(20, 900) << 32
            data3 |= (rng.random() < 0.1) << 16 | (rng.random() < 0.1) << 21
        data3 |= (rng.random() < 0.2) << 2 | (rng.random() < 0.5) << 3
        return data, (source & 7) | source >> 3 << 6, data3

    def record(self, name: str, config: int = 1 << 19, beside: bool = False) -> Path:
        cpuid, caps, sources = ZEN[name]
        event = pw.Event("ibs_op//", PMU, config, [9], PERIOD, sample_type=KINDS | pw.RAW)
        groups = [[event], *([one] for one in counters() if beside)]
        zen4 = {"caps": ("zen4_ibs_extensions",)} if name == "zen4" else {}
        recording = Recording(groups, cpuid=cpuid, arch="x86_64", pmus=((PMU, "ibs_op"),), **zen4)
        rng = random.Random(name)
        for address, parts in FUNCTIONS.items():
            for number in range(2000):
                words = self.registers(rng, parts, sources)
                regs = 3 << 17 | 1 << 19, address, *words, 0, 0, 0
                raw = struct.pack("<I8Q", caps, *regs)
                cpu = int(number % 5 > 0)
                recording.sample(address, PERIOD, raw=raw, cpu=cpu)
                for group in range(1, len(groups)):
                    # two cycles for an operation, four instructions for five of them
                    for _ in range(2 if group == 1 else cpu):
                        recording.sample(address, PERIOD, group=group, cpu=cpu)
        return recording.write(DATA / f"{name}-{config}-{beside}.data")

    @staticmethod
    def second(path: Path, name: str) -> dict[str, Counter]:
        """What perf script -D prints of the registers."""
        found: dict[str, Counter] = {}
        ours: Counter = Counter()
        for line in dump(path).splitlines():
            bits = {key: int(value) for key, value in re.findall(r"(\w+) +(\d+)", line)}
            # the sample follows its registers
            if "PERF_RECORD_SAMPLE" in line and ours:
                found.setdefault(place_of(line), Counter()).update(ours)
                ours = Counter()
            elif line.startswith("ibs_op_data:"):
                source = None
                ours = Counter(all=1, all_=1, BrnRet=bits["BrnRet"])
                ours["OpBrnMisp"] += bits.get("OpBrnMisp", 0)
            elif line.startswith("ibs_op_data2:"):
                source = re.search(r"DataSrc (\d+)", line)
            elif line.startswith("ibs_op_data3:") and (bits["LdOp"] or bits["StOp"]):
                ours.update(memory=1, walk=bits["DcL1TlbMiss"] and bits["DcL2TlbMiss"])
                if bits["DcMiss"] and not bits["DcUcMemAcc"]:
                    ours.update({"DcMiss": 1, "missing loads": bits["LdOp"]})
                    ours["DcMissLat"] += bits["LdOp"] * bits["DcMissLat"]
                    # a device is no cache; registers of Zen 3 may be wrong (erratum 1293)
                    far = ("2", "3", "5", "6", "8", "12") if name == "zen4" else ("3", "4")
                    is_far = bits["LdOp"] and bits.get("L2Miss") and source and source[1] in far
                    ours["beyond"] += bool(is_far)
        return found

    def test_layouts(self):
        for name in ZEN:
            with self.subTest(name):
                path = self.record(name)
                self.check(table(path), self.second(path, name), self.RATES)

    def test_beside(self):
        """Instructions beside make rates those of instructions, and cycles make CPI: by default,
        and of operations alone, also from sums.
        """
        path = self.record("zen4", beside=True)
        sums = path.with_suffix(".sums")
        must(PERF, "functions", "report", "--sums", sums, path)
        true = self.second(path, "zen4")
        for words in (path,), (path, "--source", "operations"), (sums, "--source", "operations"):
            rows = table(*words)
            for address, counts in true.items():
                misses = 1000 * counts["OpBrnMisp"] / counts["all"] / 0.8
                self.assertAlmostEqual(rows[address]["CPI"]["value"], 2 / 0.8, 3)
                self.assertAlmostEqual(rows[address]["BM/KI"]["value"], misses, 3)
                self.assertEqual("%CY" in rows[address], len(words) == 1)
        # operations per instruction are those of the whole recording, whatever is chosen of it
        for row in table(path, "-C", "1").values():
            self.assertAlmostEqual(row["CPI"]["value"], 2 / 0.8, 3)
        # cycles of all inputs are not divided by operations of some
        bare = Recording([[event] for event in counters()], cpuid=ZEN["zen4"][0])
        for _ in range(1000):
            bare.sample(0x1000, PERIOD, group=0)
            bare.sample(0x1000, PERIOD, group=1)
        row = table(path, str(bare.write(DATA / "bare.data")))["0x1000"]
        self.assertAlmostEqual(row["CPI"]["value"], (4000 + 1000) / (1600 + 1000))
        # samples alone are no reason to print a table of operations, or to compare two
        none = path.with_suffix(".none")
        none.write_text(
            re.sub(r"(?m)(^set\toperations.*(\n(?!row|set).*)*)(\nrow.*)+", r"\1", sums.read_text())
        )
        done = run(PERF, "functions", "report", "--source", "operations", none, stderr=-1)
        self.assertIn("no samples that count", done.stderr)
        words = "--before", sums, sums, "--after", none, none, "--fail-on", "%BM>5"
        done = run(PERF, "functions", "report", "--source", "operations", *words, stderr=-1)
        self.assertEqual(done.returncode, 255, done)

    def test_windows_beside(self):
        """Windows count an instruction for two operations, also in one thread of two."""
        ibs = pw.Event("ibs_op//", PMU, 1 << 19, [9], PERIOD, sample_type=KINDS | pw.DATA_SRC)
        cycles = pw.Event("cycles", 0, 0, [1], PERIOD)
        recording = Recording(
            [[ibs], [cycles, pw.Event("instructions", 0, 1, [2])]],
            cpuid=ZEN["zen4"][0],
            pmus=((PMU, "ibs_op"),),
        )
        for tid, number in (100, 300), (101, 100):
            for _ in range(number):
                recording.sample(0x1000, PERIOD, tid=tid, memory=(0, 2 | 0x82 << 5))  # of memory
                recording.sample(0x1000, PERIOD, PERIOD // 2, group=1, tid=tid)
        path = recording.write(DATA / "windows.data")
        for options in (), ("--tid", "101"):
            row = table(path, *options)["0x1000"]
            self.assertAlmostEqual(row["CM/KI"]["value"] / 2000, 1, 1, options)

    def test_modes(self):
        """Operations of the kernel do not count if instructions do not. Those of user space alone
        are not compared with instructions of the kernel.
        """
        user, kinds = pw.FLAG_EXCLUDE_KERNEL, KINDS | pw.DATA_SRC
        for of_operations, of_instructions, title in (0, user, "KI"), (user, 0, "KO"), (0, 0, "KI"):
            cycles, instructions = counters()
            ibs = pw.Event("ibs_op//", PMU, 1 << 19, [9], PERIOD, sample_type=kinds)
            ibs.flags = pw.FLAG_SAMPLE_ID_ALL | of_operations
            instructions.flags = pw.FLAG_SAMPLE_ID_ALL | of_instructions
            cycles.flags = pw.FLAG_SAMPLE_ID_ALL
            recording = Recording(
                [[ibs], [cycles], [instructions]],
                cpuid=ZEN["zen4"][0],
                pmus=((PMU, "ibs_op"),),
            )
            for _ in range(100):
                for address, misc in (0x1000, pw.MISC_USER), (0xFFFFFFFF80001000, pw.MISC_KERNEL):
                    for group, flags in enumerate((of_operations, 0, of_instructions)):
                        if misc == pw.MISC_USER or not flags:
                            memory = (0, 2 | 0x82 << 5)  # loads of memory
                            recording.sample(address, PERIOD, group=group, misc=misc, memory=memory)
            path = recording.write(DATA / "modes.data")
            row = table(path)["0x1000"]
            self.assertAlmostEqual(row[f"CM/{title}"]["value"], 1000, 3, (title, row))
            self.assertEqual(row["CPI"]["value"], 1)
            done = run(PERF, "functions", "report", path, stderr=-1)
            self.assertEqual("of user space" in done.stderr, title == "KO")

    def test_by_cycles(self):
        """Where cycles choose, values are marked, and a line says so."""
        path = self.record("zen3", config=0)
        done = run(PERF, "functions", "report", "-j", "-i", path, stderr=subprocess.PIPE)
        self.assertIn("chosen by cycles", done.stderr)
        for row in json.loads(done.stdout)["functions"]:
            for title, value in row["metrics"].items():
                if value and title != "#":
                    self.assertEqual(value["mark"], "weak", title)
        # so is what is divided by them
        for row in table(self.record("zen3", config=0, beside=True)).values():
            self.assertEqual(row["CPI"]["doubt"], "cycles")

    def test_filters(self):
        """What IBS has left out is no part of the rates."""
        for config, config1 in (1 << 16, 0), (0, 128), (0, 1 << 12):  # l3missonly, ldlat, loads
            event = pw.Event("ibs_op//", PMU, 1 << 19 | config, [9], PERIOD, sample_type=KINDS)
            event.config1 = config1
            recording = Recording([[event]], cpuid=ZEN["zen4"][0], pmus=((PMU, "ibs_op"),))
            recording.sample(0x1000, PERIOD)
            path = recording.write(DATA / "chosen.data")
            done = run(PERF, "functions", "report", path, stderr=-1)
            self.assertIn(FILTERED + " IBS' filters left", done.stderr)
            self.assertNotIn("%I", table(path)["0x1000"])

    def test_throttled(self):
        """Operations are missing then, and values that come from them are marked."""
        event = pw.Event("ibs_op//", PMU, 1 << 19, [9], PERIOD, sample_type=KINDS | pw.DATA_SRC)
        recording = Recording([[event]], cpuid=ZEN["zen4"][0], pmus=((PMU, "ibs_op"),))
        for address in (0x1000, 0x2000) * 100:
            recording.sample(address, PERIOD)
        recording.writer.throttle(pw.THROTTLE, recording.where(), 9)
        for row in table(recording.write(DATA / "throttled.data")).values():
            self.assertEqual(row["%I"]["doubt"], "throttled")


class Spe(Operations):
    """AUX data with the packets of the architecture."""

    RATES = {
        "%I": ("all", "all", 100),
        "BM/KO": ("MISPRED", "all_", 1000),
        "%BMR": ("MISPRED", "B", 100),
        "CM/KO": ("L1D-REFILL", "all_", 1000),
        "%CM": ("L1D-REFILL", "L1D-ACCESS", 100),
        "TM/KO": ("TLB-REFILL", "all_", 1000),
        "LLM/KO": ("LLC-REFILL", "all_", 1000),
        "LAT": ("latency", "LD", 1),
        "%BM": ("MISPRED", "all", 100),
    }
    FILTER = 1 << 33  # loads

    @staticmethod
    def packets(rng: random.Random, address: int, time: int, retired: float) -> bytes:
        """The record of an operation by chance."""
        loads, stores, branches, miss = FUNCTIONS[address]
        kind = rng.random()
        events, kinds = (rng.random() < retired) << 1, b"\x48\x00"
        if kind < loads + stores:
            kinds = b"\x49" + bytes([kind >= loads])
            events |= 1 << 2 | 1 << 4 | (rng.random() < 0.02) << 5
            if rng.random() < miss:
                events |= 1 << 3 | 1 << 8 | (rng.random() < 0.5) << 9
        elif kind < loads + stores + branches:
            kinds = b"\x4a\x01"
            events |= (rng.random() < 0.3) << 7 | (rng.random() < 0.5) << 6
        return b"".join(
            (
                struct.pack("<BQ", 0xB0, address | 1 << 63),
                struct.pack("<BI", 0x64, 100),
                struct.pack("<BH", 0x52, events),
                kinds,
                struct.pack("<BH", 0x98, rng.randrange(1, 500)),
                struct.pack("<BQ", 0x71, time),
            )
        )

    def record(self, name: str, config: int = 1 << 16, **more: float) -> Path:
        event = pw.Event("arm_spe_0/jitter=1/u", PMU, config, [9], 4096, sample_type=KINDS)
        event.config3 = more.get("config3", 0)
        recording = Recording(
            [[event], *([one] for one in counters())],
            cpuid="0x00000000410fd490",
            arch="aarch64",
            pmus=((PMU, "arm_spe_0"),),
        )
        rng, time = random.Random(name), 2000
        data = b""
        for address in FUNCTIONS:
            for _ in range(1500):
                data += self.packets(rng, address, time, more.get("retired", 0.9))
                time += rng.randrange(3)
        pw.write_trace(recording.writer, PMU, data)
        return recording.write(DATA / f"{name}.data")

    @staticmethod
    def second(path: Path) -> dict[str, Counter]:
        """What perf script -D prints of the packets, of operations that have retired."""
        found: dict[str, Counter] = {}
        lines = re.findall(r"^\.  [0-9a-f]{8}: (?: [0-9a-f]{2})+ +([A-Z].*)$", dump(path), re.M)
        for text in " ".join(lines).split("PC ")[1:]:
            address, words = text.split()[0], text.split()
            if "RETIRED" not in words:
                continue
            ours = found.setdefault(hex(int(address, 16)), Counter())
            ours.update(all=1, all_=1)
            ours.update(words)
            ours["latency"] += "LD" in words and int(words[words.index("LAT") + 1])
        return found

    def test_packets(self):
        """Operations that were not executed to their end do not count."""
        path = self.record("packets")
        self.check(table(path), self.second(path), self.RATES)

    def test_inject(self):
        """perf inject writes the same operations as samples, whether they have retired or not."""
        path = self.record("inject", retired=1)
        injected = DATA / "injected.data"
        must(PERF, "inject", "--itrace=i1ifmtb", "-i", path, "-o", injected)
        lost = "%BMR" if BASE == "6.12" else "BM"  # 7.3 has mispredicts as flags
        rates = {title: rate for title, rate in self.RATES.items() if lost not in title}
        self.check(table(injected), self.second(path), rates)
        path = self.record("mixed")
        must(PERF, "inject", "--itrace=i1ifmtb", "-i", path, "-o", injected)
        done = run(PERF, "functions", "report", injected, stderr=subprocess.PIPE)
        self.assertIn("were speculated", done.stderr)

    def test_filters(self):
        """If only some operations were recorded, nothing is said of the others."""
        # loads; floating point (Linux 6.19); those that do not miss L1D
        for config, inverse in (self.FILTER, 0), (1 << 36, 0), (0, 1 << 3):
            path = self.record("filters", config, config3=inverse)
            done = run(PERF, "functions", "report", "-j", "-i", path, stderr=subprocess.PIPE)
            self.assertIn(FILTERED, done.stderr)
            for row in json.loads(done.stdout)["functions"]:
                self.assertNotIn("%I", row["metrics"])
                self.assertIn("CM/KO", row["metrics"])

    def test_sums(self):
        """Sums hold operations; comparisons and several inputs add them up."""
        one, other = self.record("one"), self.record("other")
        for path in one, other:
            must(PERF, "functions", "report", "--sums", f"{path}.sums", "-i", path)
        self.assertEqual(table(f"{one}.sums"), table(one))
        both = table(one, str(other))
        true = [self.second(path) for path in (one, other)]
        self.check(both, {at: true[0][at] + true[1][at] for at in true[0]}, self.RATES)


class Memory(unittest.TestCase):
    """Samples with a data source and a weight: Intel's loads, and IBS without registers."""

    HIT, L1, L2, L3, RAM = 2, 8, 0x20, 0x40, 0x80
    TLB_HIT, TLB_MISS = 0xA, 0x14
    # each 100 times: level, TLB, latency
    LOADS = (L1, TLB_HIT, 5), (L2, TLB_HIT, 15), (RAM, TLB_MISS, 310)

    def test_sources(self):
        loads = {"LAT": 110, "%I": None}
        for cpu, pmu, name, config, latency in (
            (INTEL, "cpu", "cpu/mem-loads,ldlat=30/P", 0x1CD, loads),
            ("GenuineIntel,6,151,2", "cpu_atom", "slow:ldlat=64:pinned", 0x5D0, loads),
            (ZEN["zen4"][0], "ibs_op", "ibs_op//", 1 << 19, {"MLAT": 162.5, "%I": 100}),
        ):
            kinds = KINDS | pw.DATA_SRC | pw.WEIGHT
            event = pw.Event(name, PMU, config, [9], PERIOD, sample_type=kinds)
            event.config1 = least = int((re.findall("ldlat=(\\d+)", name) or [0])[0])
            recording = Recording([[event]], cpuid=cpu, arch="x86_64", pmus=((PMU, pmu),))
            for level, tlb, cycles in self.LOADS * 100:
                source = 2 | (level | self.HIT) << 5 | tlb << 26
                recording.sample(0x1000, PERIOD, memory=(cycles, source))
            path = recording.write(DATA / f"{pmu}.data")
            done = run(PERF, "functions", "report", path, stderr=-1)
            self.assertEqual(f"that load for more than {least} cycles" in done.stderr, least > 0)
            values = table(path)["0x1000"]
            third = 1000 / 3
            true = {"CM/KO": 2 * third, "TM/KO": third, "LLM/KO": third} | latency
            for title, value in true.items():
                found = values.get(title) or {"value": None}
                self.assertEqual(
                    found["value"] and round(found["value"], 3), value and round(value, 3)
                )

    def test_levels(self):
        """Sources as Linux' tables for Intel's CPUs and IBS have them: many have a number alone."""
        load, store, hit, miss, l3, remote = 2, 4, 2, 4, 0x40, 1 << 37
        for name, pmu, operation, level, number, *true in (
            ("L0", "cpu", load, hit, 7, 0, 0),
            ("L2 miss buffer", "cpu", load, hit, 5, 1, 0),
            ("L3", "cpu", load, hit | l3, 3, 1, 0),
            ("unknown miss of L3", "cpu", load, miss, 3, 1, 1),
            ("cache of another CPU", "cpu", load | remote, hit, 11, 1, 1),
            ("L4", "cpu", load, hit, 4, 1, 1),
            ("memory-side cache", "cpu", load, hit, 6, 1, 1),
            ("uncached", "cpu", load, hit, 8, 0, 0),
            ("CXL", "ibs_op", load, 0, 9, 1, 1),
            ("miss of L2", "ibs_op", store, 1, 15, 1, 0),
        ):
            cpu, config = (ZEN["zen4"][0], 1 << 19) if pmu == "ibs_op" else (INTEL, 0x1CD)
            event = pw.Event(pmu, PMU, config, [9], PERIOD, sample_type=KINDS | pw.DATA_SRC)
            recording = Recording([[event]], cpuid=cpu, arch="x86_64", pmus=((PMU, pmu),))
            recording.sample(0x1000, PERIOD, memory=(0, operation | level << 5 | number << 33))
            row = table(recording.write(DATA / "level.data"))["0x1000"]
            found = [row[title]["value"] / 1000 for title in ("CM/KO", "LLM/KO")]
            self.assertEqual(found, true, name)
