# SPDX-License-Identifier: GPL-2.0
"""Tests of what is one function: kernel and modules, JITs, C++, vdso, inlined functions.

The recordings have chosen addresses, so their functions are known. The command and the script have
to agree.
"""

import csv
import io
import os
import random
import re
import unittest
from pathlib import Path

from tests.harness import code
from tests.harness import perfdata as pw
from tests.harness.code import addresses, assembly
from tests.harness.env import CHECK, PERF, SCRIPT, must
from tests.harness.recording import Windows
from tests.harness.tables import ended

DATA = CHECK / "identity"
DATA.mkdir(parents=True, exist_ok=True)
BASE = 0x10000000


def native(path: Path, *options: object) -> dict[tuple[str, str], tuple[int, int]]:
    """Windows that end in a row, and those that begin there, too, by symbol and DSO."""
    return ended("-i", path, *options)


def build(name: str, source: str, *options: str) -> Path:
    """A library with debug information."""
    return code.build(DATA / name, source, "-O2", "-g", "-fPIC", *options)


class Identity(unittest.TestCase):
    maxDiff = None

    def check(self, path: Path, expected: dict, *options: object) -> None:
        """Command and script have these rows and no others."""
        self.assertEqual(native(path, *options), expected)
        script = must(
            *(PERF, "script", "-i", path, *options, "-s", SCRIPT, "--", "--csv"), stderr=-1
        )
        found = {}
        for row in csv.DictReader(io.StringIO(script)):
            lost = float(row["DIS"]) * int(row["#"]) / 100
            found[row["symbol"], row["dso"]] = int(row["#"]), int(row["#"]) - round(lost)
        self.assertEqual(found, expected)

    def test_kernel_and_modules(self):
        """The kernel and a module share a name; kallsyms lacks another module."""
        text, module, other = 0xFFFF800008000000, 0xFFFF800001000000, 0xFFFF800002000000
        kallsyms = DATA / "kallsyms"
        kallsyms.write_text(
            f"{text:016x} T _text\n{text:016x} T _stext\n{text + 0x1000:016x} T"
            f" do_work\n{text + 0x2000:016x} t helper\n{text + 0x10000:016x} T"
            f" _etext\n{module + 0x100:016x} t do_work\t[veryfast]\n{module + 0x200:016x} t"
            " helper_two\t[veryfast]\n"
        )
        recording = Windows()
        recording.map("[kernel.kallsyms]_text", text, 0x10000, offset=text, misc=pw.MISC_KERNEL)
        recording.map("[veryfast]", module, 0x1000, misc=pw.MISC_KERNEL)
        recording.map("/lib/modules/6/kernel/other.ko", other, 0x1000, misc=pw.MISC_KERNEL)
        recording.window(text + 0x1004, text + 0x1100, misc=pw.MISC_KERNEL)
        recording.window(text + 0x1004, text + 0x2000, misc=pw.MISC_KERNEL)
        recording.window(module + 0x104, module + 0x1F0, misc=pw.MISC_KERNEL)
        recording.window(text + 0x1004, module + 0x1F0, misc=pw.MISC_KERNEL)
        recording.window(other + 0x10, misc=pw.MISC_KERNEL)
        self.check(
            recording.write(DATA / "kernel.data"),
            {
                ("do_work", "[kernel.kallsyms]"): (1, 1),
                ("helper", "[kernel.kallsyms]"): (1, 0),
                ("do_work", "[veryfast]"): (2, 1),
                ("0x10", "/lib/modules/6/kernel/other.ko"): (1, 1),
            },
            "--kallsyms",
            kallsyms,
        )

    def test_demangling(self):
        """Names are of C++, and of Rust's older scheme; --no-demangle leaves them alone."""
        mangled = {
            "_ZN3geo6VectorIdE3dotERKS1_": "geo::Vector<double>::dot(geo::Vector<double> const&)",
            "_ZN4core3fmt9Formatter3pad17h0a6d0e3c7b5a9f21E": "core::fmt::Formatter::pad",
            "_Restore": "_Restore",
        }
        library = build("mangled.s", assembly(*mangled))
        at = addresses(library)
        recording = Windows()
        recording.map(library, BASE, os.path.getsize(library))
        for symbol in mangled:
            recording.window(BASE + at[symbol], BASE + at[symbol] + 63)
        path = recording.write(DATA / "mangled.data")
        self.check(path, {(symbol, str(library)): (1, 1) for symbol in mangled.values()})
        self.assertEqual(
            native(path, "--no-demangle"), {(symbol, str(library)): (1, 1) for symbol in mangled}
        )

    def test_stripped(self):
        """The range in the unwind information is a function; without it, each address is one."""
        script = DATA / "stripped.map"
        script.write_text("{ global: shown; local: *; };")
        unwound = "".join(
            f".type {name}, @function\n{name}: .cfi_startproc\n.skip 64\n.cfi_def_cfa_offset"
            f" 32\n.skip 64\n.cfi_endproc\n.size {name}, {size}\n"
            for name, size in (("one", 128), ("shown", 64), ("two", 128))
        )
        library = build(
            "stripped.s",
            f".globl shown\n{assembly('gone')}{unwound}{assembly('behind')}",
            f"-Wl,--version-script={script}",
        )
        at = addresses(library)
        must("strip", library)
        self.assertEqual(addresses(library), {})
        self.assertEqual(addresses(library, "-D"), {"shown": at["shown"]})
        recording = Windows()
        recording.map(library, BASE)
        for opens, closes in (
            (("one", 0), ("one", 127)),
            (("two", 127), ("two", 2)),
            (("one", 64), ("two", 64)),
            (("shown", 3), ("shown", 127)),
            (("gone", 0), ("gone", 0)),
            (("gone", 0), ("gone", 4)),
            (("behind", 8), ("behind", 8)),
            (("behind", 8), ("behind", 4)),
        ):
            recording.window(BASE + at[opens[0]] + opens[1], BASE + at[closes[0]] + closes[1])
        path = recording.write(DATA / "stripped.data")
        one, two = (f"{at[name]:#x}-{at[name] + 128:#x}" for name in ("one", "two"))
        self.check(
            path,
            {
                (one, str(library)): (1, 1),
                (two, str(library)): (2, 1),
                ("shown", str(library)): (1, 1),
                (hex(at["gone"]), str(library)): (1, 1),
                (hex(at["gone"] + 4), str(library)): (1, 0),
                (hex(at["behind"] + 8), str(library)): (1, 1),
                (hex(at["behind"] + 4), str(library)): (1, 0),
            },
        )
        table = must(PERF, "functions", "report", "-i", path)
        for label in f"{two} [stripped.so]", "shown", f"{at['gone']:#x} [stripped.so]":
            self.assertRegex(table, rf"(?m)^{re.escape(label)} +\d")

    def test_perf_report_of_a_group(self):
        """Each function of three libraries has a row, and so has each address outside of functions.

        Equal addresses in several libraries share a row.
        """
        draw = random.Random(1)
        recording = Windows()
        expected = {"0x0000000000001000": [1, 1]}
        places = {}
        for number in range(3):
            library = build(f"rows{number}.s", assembly(f"first{number}", f"second{number}"))
            base = (number + 1) * BASE
            recording.map(library, base)
            at = addresses(library)
            places.update((base + at[name], name) for name in (f"first{number}", f"second{number}"))
            places.update(
                (base + unknown, f"{unknown:#018x}")
                for unknown in draw.choices(range(0x4000, 0x6000, 16), k=20)
            )
        for address in draw.choices(list(places), k=300):
            cycles = draw.randrange(1, 6)
            recording.take(address, cycles)
            row = expected.setdefault(places[address], [0, 0])
            row[0] += 1
            row[1] += cycles >= 3
        path = recording.write(DATA / "rows.data")
        words = "-i", path, "--stdio", "--no-children", "-s", "sym", "-F", "sample,sym"
        told = must("timeout", 60, PERF, "report", *words, stderr=-1)
        found = [line.split() for line in told.splitlines() if line and not line.startswith("#")]
        self.assertEqual({row[-1]: [int(row[0]), int(row[1])] for row in found}, expected)


class Inlined(unittest.TestCase):
    SOURCE = """
#define HERE(name) asm volatile(".globl " #name "\\n.hidden " #name "\\n" #name ": .fill 16, 1, 0x90")
static inline __attribute__((always_inline)) void deep(void) { HERE(in_deep); }
static inline __attribute__((always_inline)) void callee(void) { HERE(in_callee); deep(); }
void outer(void) { HERE(in_outer); callee(); HERE(after); }
void other(void) { HERE(in_other); }
"""

    @classmethod
    def setUpClass(cls) -> None:
        cls.library = build("inlined.c", cls.SOURCE, "-fno-asynchronous-unwind-tables")
        cls.at = {name: BASE + address for name, address in addresses(cls.library).items()}

    def rows(self, *options: str) -> dict[str, tuple[int, int]]:
        """Rows by symbol. The library has no symbols of labels inside its functions."""
        at, plain = self.at, DATA / "plain.so"
        labels = [name for name in at if name.startswith("in_") or name == "after"]
        must("objcopy", *(f"--strip-symbol={name}" for name in labels), self.library, plain)
        recording = Windows()
        recording.map(plain, BASE)
        recording.window(at["in_outer"], at["after"])
        recording.window(at["in_callee"], at["in_callee"] + 8)
        recording.window(at["in_outer"], at["in_callee"])
        recording.window(at["in_deep"])
        recording.window(at["in_callee"], at["in_deep"])
        recording.window(at["in_other"])
        path = recording.write(DATA / "inlined.data")
        return {symbol: counts for (symbol, _), counts in native(path, *options).items()}

    def test_windows_are_split(self):
        self.assertEqual(self.rows(), {"outer": (5, 5), "other": (1, 1)})
        self.assertEqual(
            self.rows("--inline"),
            {
                "outer": (1, 1),
                "callee (inlined);outer": (2, 1),
                "deep (inlined);callee (inlined);outer": (2, 1),
                "other": (1, 1),
            },
        )
