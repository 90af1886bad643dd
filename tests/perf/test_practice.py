# SPDX-License-Identifier: GPL-2.0
"""Recordings as others make them: values, rows and names against what is known of each."""

import csv
import io
import os
import shutil
import unittest
from pathlib import Path

from tests.harness import perfdata as pw
from tests.harness.env import CHECK, PERF, TOP, must
from tests.harness.recording import Recording
from tests.harness.tables import flat

DATA = CHECK / "practice"
F, G = 0x401000, 0x402000
ALONE = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD | pw.IDENTIFIER
SPE, CYCLES, INSTRUCTIONS = (
    pw.Event("arm_spe_0//", 9, 1 << 32, [1], 1, sample_type=ALONE),
    pw.Event("armv8_pmuv3_0/cpu_cycles/", 8, 0x11, [2], 1000, sample_type=ALONE),
    pw.Event("armv8_pmuv3_0/inst_retired/", 8, 8, [3], 500, sample_type=ALONE),
)
LOOP = """
    __attribute__((noinline)) long NAME(long a)
    {
        for (int i = 0; i < N; i++) { a = a * 31 + i; __asm__ volatile("" : "+r"(a)); }
        return a;
    }
"""


def setUpModule() -> None:
    DATA.mkdir(parents=True, exist_ok=True)


def table(*words: object) -> dict:
    return flat(must(PERF, "functions", "report", "-j", *words, stderr=-1))


def values(path: Path, title: str, *words: object) -> dict[int, float]:
    """A column by address."""
    return {row["address"]: row["metrics"][title] for row in table("-i", path, *words)["functions"]}


class Recordings(unittest.TestCase):
    def test_events_beside_aux_data(self):
        """Events of a PMU by name sample, whatever AUX data there are beside them."""
        recording = Recording([[SPE], [CYCLES], [INSTRUCTIONS]], arch="aarch64")
        recording.writer.cpuid = "0x00000000410fd490"
        recording.writer.pmus = ((8, "armv8_pmuv3_0"), (9, "arm_spe_0"))
        recording.writer.record(70, bytes(4) + bytes(12), 0)  # AUXTRACE_INFO
        for place, instructions in ((F, 2), (G, 1)):
            for _ in range(40):
                recording.writer.sample(CYCLES, recording.where(), place, 1000, [(2, 0)])
            for _ in range(20 * instructions):
                recording.writer.sample(INSTRUCTIONS, recording.where(), place, 500, [(3, 0)])
        self.assertEqual(values(recording.write(DATA / "spe.data"), "CPI"), {F: 2, G: 4})

    def test_clock_that_steps_back(self):
        """The values of a thread only grow: an interval with others in it is none."""
        group = [pw.Event("cycles", 0, 0, [1], 1000), pw.Event("instructions", 0, 1, [2])]
        recording = Recording([group])
        for i in range(240):
            place, count = ((F, 500), (G, 250))[i // 10 % 2]
            recording.sample(place, 1000, count)
            if i == 120:
                recording.clock = iter(range(1070, 2000))
        path = recording.write(DATA / "step.data")
        self.assertEqual(values(path, "CPI"), {F: 2, G: 4})
        script = TOP / "tools/perf/scripts/python/generate-function-metrics.py"
        text = must(PERF, "script", "-i", path, "-s", script, "--", "--csv", stderr=-1)
        found = {row["symbol"]: row["CPI"] for row in csv.DictReader(io.StringIO(text))}
        self.assertEqual(found, {f"{F:#x}": "2.0", f"{G:#x}": "4.0"})

    def test_code_in_a_memfd(self):
        """The map of a JIT whose code is in a memfd (.NET), or in named memory, is read."""
        pid = 10_000_000 + 10 * os.getpid()
        lines = "".join(f"{place:x} 1000 {name}\n" for place, name in ((F, "fast"), (G, "slow")))
        file = Path(f"/tmp/perf-{pid}.map")
        file.write_text(lines, encoding="utf-8")
        self.addCleanup(file.unlink)
        events = [[pw.Event("cpu-clock", 1, 0, [1], 1000, sample_type=ALONE)]]
        for path in "//anon", "/memfd:doublemapper (deleted)", "[anon:v8]", "[anon_shmem:x]":
            recording = Recording(events, pid)
            recording.map(path, F, 0x2000)
            for i in range(80):
                place = (F if i % 4 else G) + 4 * (i % 32)
                recording.writer.sample(events[0][0], recording.where(), place, 1000, [(1, 0)])
            with self.subTest(path):
                rows = table("-i", recording.write(DATA / "memfd.data"))["functions"]
                found = {row["symbol"]: row["metrics"]["%CLK"] for row in rows}
                self.assertEqual(found, {"fast": 75, "slow": 25})


class Programs(unittest.TestCase):
    """Programs that run here, sampled by the clock."""

    def program(self, name: str, text: str, *command: str) -> Path:
        source = DATA / f"{name}.c"
        source.write_text(text, encoding="utf-8")
        must(*command, "-O1", "-fomit-frame-pointer", "-o", DATA / name, source)
        return DATA / name

    def record(self, program: Path, *options: str) -> Path:
        path = program.with_suffix(".data")
        must(PERF, "record", "-qNF999", "-ecpu-clock:u", *options, "-o", path, program)
        return path

    def test_short_names(self):
        """f is no float, and no address."""
        text = "".join(LOOP.replace("NAME", name) for name in "fghx").replace("N;", "20000000;")
        text += "int main(void) { long y = 1; for (int i = 0; i < 4; i++)"
        text += " y += f(y) + g(y) + h(y) + x(y); return y == 42; }"
        path = self.record(self.program("short", text, "gcc"))
        found = {row["symbol"] for row in table("-i", path, "--percent-limit", 5)["functions"]}
        self.assertEqual(found, set("fghx"))
        names = DATA / "names"
        names.write_text("f\n", encoding="utf-8")
        for words in "f", f"file://{names}":
            (row,) = table("-i", path, "-S", words)["functions"]
            self.assertEqual(row["symbol"], "f")

    @unittest.skipUnless(shutil.which("clang") and shutil.which("ld.lld"), "no clang, or no lld")
    def test_segments_that_lie_apart(self):
        """lld's programs: chains are whole, and functions have the addresses that nm prints."""
        text = LOOP.replace("NAME(long a)", "leaf(long a, int n)").replace("< N", "< n")
        for name, number in ("three", 30), ("one", 10):
            text += f"__attribute__((noinline)) long {name}(long a)"
            text += f" {{ return leaf(a, {number}000000) + 1; }}\n"
        text += "int main(void) { long y = 1; for (int i = 0; i < 8; i++)"
        text += " y += three(y) + one(y); return y == 42; }"
        identity = f"-Wl,--build-id=0x{os.getpid():040x}"  # perf's cache has no such file
        program = self.program("apart", text, "clang", "-fuse-ld=lld", identity)
        path = self.record(program, "--call-graph=dwarf,512")
        rows = table("-i", path, "--by", "callchain", "--percent-limit", 5)["functions"]
        chains = {row["symbol"].split(";_")[0]: row["metrics"]["%CLK"] for row in rows}
        self.assertAlmostEqual(chains["leaf;three;main"], 75, delta=10)
        self.assertAlmostEqual(chains["leaf;one;main"], 25, delta=10)
        symbols = must("nm", program).splitlines()
        (leaf,) = (int(line.split()[0], 16) for line in symbols if line.endswith(" leaf"))
        must("strip", program)
        rows = table("-i", self.record(program), "--limit", 1)["functions"]
        self.assertTrue(rows[0]["symbol"].startswith(f"{leaf:#x}-"), rows[0]["symbol"])

    def test_page_faults(self):
        """Without a PMU: functions have the pages that they touch, and those without have none."""
        text = "#include <stdlib.h>\n" + LOOP.replace("NAME", "busy").replace("N;", "300000000;")
        for name, number in ("most", 3000), ("least", 1000):
            text += f"__attribute__((noinline)) void {name}(volatile char *p)"
            text += f" {{ for (long i = 0; i < {number}; i++) p[4096 * i] = 1; }}\n"
        text += "int main(void) { most(malloc(3000 * 4096 + 4096));"
        text += " least(malloc(1000 * 4096 + 4096)); return busy(1) == 42; }"
        path = DATA / "faults.data"
        must(PERF, "functions", "record", "-qo", path, self.program("faults", text, "gcc"))
        rows = {row["symbol"]: row["metrics"] for row in table("-i", path)["functions"]}
        if "%PF" not in rows["busy"]:
            self.skipTest("this machine has a PMU, and records no page faults")
        found = rows["most"]["%PF"], rows["least"]["%PF"]
        self.assertAlmostEqual(100 * found[0] / sum(found), 75, delta=2)
        self.assertGreater(sum(found), 90)
        self.assertGreater(rows["busy"]["#"], 50)

    def test_addresses(self):
        """Code without a name, and functions of one name, have the addresses that nm prints."""
        text = "".join(LOOP.replace("NAME", name) for name in "fg").replace("N;", "40000000;")
        text += "int main(void) { long y = 1; for (int i = 0; i < 4; i++)"
        text += " y += f(y) + g(y); return y == 42; }"
        options = "-static", "-no-pie", "-fno-asynchronous-unwind-tables", "-Wl,--build-id=none"
        program = self.program("placed", text, "gcc", *options)
        must("objcopy", "--redefine-sym", "g=f", program)
        symbols = [line.split() for line in must("nm", "-S", program).splitlines()]
        twins = {int(at, 16): int(size, 16) for at, size, *_, name in symbols if name == "f"}
        found = set(values(self.record(program), "%CLK", "-S", "f"))
        self.assertEqual(found, set(twins))
        must("strip", program)
        for address in values(self.record(program), "%CLK", "--percent-limit", 5):
            self.assertTrue(any(at <= address < at + twins[at] for at in twins), hex(address))
