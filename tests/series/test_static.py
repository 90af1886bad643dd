# SPDX-License-Identifier: GPL-2.0
"""`make static`: a perf that runs where there is nothing else."""

import platform
import re
import shutil
import unittest
from pathlib import Path

from tests.harness.env import ARCH, BUILD, CHECK, PERF, in_guest, must, run
from tests.harness.truth import LEAVES

MINUTES = 4
MACHINES = "arm64"

OUT = CHECK / "static"
HOST = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
# functions of C++ and Rust, by the names that compilers give them
PROGRAM = r"""
#include <stdlib.h>
#define work(name, turns) \
	__attribute__((noinline)) void name(void) { for (volatile long i = 0; i < turns; i++); }
void cxx(void) __asm__("_ZN2ns3FooIlE3runEv");
void rust(void) __asm__("_ZN35_$LT$r..m..S$u20$as$u20$r..m..T$GT$2go17h4af2b162a0b1e6d0E");
work(cxx, 300000)
work(rust, 100000)
__attribute__((noinline)) void caller(void) { cxx(); rust(); __asm__(""); }
int main(void) { for (int i = 0; i < 2500; i++) caller(); return 0; }
"""
CALLERS = ["caller", "main"]
NAMES = ["ns::Foo<long>::run()", "<r::m::S as r::m::T>::go"]


def unpack(arch: str) -> Path:
    """A folder with what `make static` has packed."""
    must("make", "static", f"ARCH={arch}", timeout=3600)
    must("sha256sum", "--check", f"perf-functions-{arch}.tar.xz.sha256", cwd=BUILD / "static")
    folder = OUT / arch
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = BUILD / f"static/perf-functions-{arch}.tar.xz"
    must("tar", "-xJf", archive, "-C", folder, "--strip-components=1")
    return folder


class Host(unittest.TestCase):
    """In a folder with nothing else in it."""

    @classmethod
    def setUpClass(cls):
        folder = unpack(HOST)
        cls.pages = sorted((folder / "man1").iterdir())
        cls.root = folder / "root"
        cls.root.mkdir()
        shutil.copy(folder / "perf", cls.root)
        cls.program = folder / "program"
        (folder / "program.c").write_text(PROGRAM)
        must("gcc", "-O1", "-fomit-frame-pointer", "-o", cls.program, folder / "program.c")
        there = cls.root / cls.program.relative_to("/")
        there.parent.mkdir(parents=True)
        shutil.copy(cls.program, there)

    def alone(self, *command: object) -> str:
        done = run("unshare", "--map-root-user", f"--root={self.root}", *command)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def record(self, name: str, *options: object) -> None:
        events = "-F", 2000, "-e", "cpu-clock:u"
        data = self.root / name
        must(PERF, "record", "-q", *events, *options, "-o", data, "--", self.program)

    def test_reads_a_recording(self):
        """Shares of C++ and Rust code, of which the first does three times the work."""
        self.record("plain")
        self.record("compressed", "-z")
        compressed = (self.root / "compressed").read_bytes()
        # the magic of zstd; a recording that is not compressed has none
        self.assertIn(b"\x28\xb5\x2f\xfd", compressed)
        self.assertNotIn(b"\x28\xb5\x2f\xfd", (self.root / "plain").read_bytes())
        for name in "plain", "compressed":
            rows = [
                line.split(";")
                for line in self.alone("/perf", "functions", "report", "-x;", name).splitlines()
            ]
            shares = {row[0]: row[3] for row in rows if len(row) > 3}
            self.assertAlmostEqual(float(shares[NAMES[0]].strip("~?")), 75, delta=10, msg=rows)
            self.assertAlmostEqual(float(shares[NAMES[1]].strip("~?")), 25, delta=10, msg=rows)

    def test_unwinds_by_debug_information(self):
        self.record("stacks", "--call-graph", "dwarf,512")
        said = self.alone("/perf", "script", "-i", "stacks", "-F", "ip,sym")
        stacks = [re.findall(r"^\s+[0-9a-f]+ (.+)$", stack, re.M) for stack in said.split("\n\n")]
        stacks = list(filter(None, stacks))
        self.assertGreater(len(stacks), 50)
        full = [stack for stack in stacks if stack[1:3] == CALLERS]
        self.assertGreater(len(full), 0.9 * len(stacks), said[:1000])

    def test_recording_needs_two_file_systems(self):
        """Without them perf record would write a file that nobody can read."""
        words = f"--root={self.root}", "/perf", "functions", "record", "--", "/perf"
        done = run("unshare", "--map-root-user", *words)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout, "perf functions: no /proc or no /sys here, .*: mount ")
        self.assertFalse((self.root / "perf.data").exists())

    def test_manual(self):
        """The pages that the series adds or changes, without a warning."""
        self.assertIn("perf-functions.1", {page.name for page in self.pages})
        for page in self.pages:
            text = must("man", "--warnings", "-l", page, env={"MANWIDTH": "80"})
            self.assertTrue(text.startswith(f"{page.stem.upper()}(1)"), text[:200])


class Machine(unittest.TestCase):
    def test_records_and_reports_without_a_c_library(self):
        """In an emulated machine, whose PMU counts cycles and instructions."""
        folder = unpack(ARCH)
        said = in_guest(
            """
            mkdir -p /tmp/empty/proc /tmp/empty/sys
            cp perf /tmp/empty/
            mount -t proc proc /tmp/empty/proc
            mount -t sysfs sysfs /tmp/empty/sys
            alone() { chroot /tmp/empty /perf "$@"; }
            alone functions record -q -- /perf test -w benchmark -- --iterations 3000 0 1
            alone functions report -x, -F CPI
            """,
            arch=ARCH,
            share=folder,
        )
        names = {line.split(",")[0] for line in said.splitlines() if line.count(",") > 2}
        self.assertLessEqual({*LEAVES, "symbol"}, names, said)
        self.assertIn(",CPI,", said)
