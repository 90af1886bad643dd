# SPDX-License-Identifier: GPL-2.0
"""`make deb`: packages that install beside Debian's, and a machine that runs from them."""

import csv
import shutil
import unittest
from pathlib import Path

from tests.harness.env import ARCH, BUILD, CHECK, in_guest, machine, must
from tests.harness.truth import LEAVES

SLOW = True
MINUTES = 90
MACHINES = "arm64 x86_64"

OUT = CHECK / "deb"
HOME = "usr/lib/perf-alt-period"
# The guest's dpkg installs the packages; nothing else there has perf or the benchmark. Debian's
# root has no man and no manual.
INSTALL = """
dpkg --install *.deb > installed 2>&1 || { cat installed; exit 1; }
dpkg-query --show --showformat '${Package} ${db:Status-Abbrev}\\n' linux-image-$(uname -r) linux-perf-alt-period
dpkg-query --listfiles linux-image-$(uname -r) | grep -x /boot/vmlinuz-$(uname -r)
if command -v perf; then exit 1; fi
"""
RECORD = """
cd /tmp
record() {{
	perf-alt-period record -q -T --sample-cpu -o "$1" -e "$2" -- /{home}/bin/perf test -w benchmark -- --faults 0 1
}}
table() {{
	perf-alt-period script -i "$1" -s /{home}/libexec/perf-core/scripts/python/generate-function-metrics.py -- --csv -s discard
}}
record alternate.data '{events}'
table alternate.data > /share/script.csv
perf-alt-period functions report -i alternate.data --source windows -x , > /share/native.csv
perf-alt-period functions report -i alternate.data
"""
TRUTH = f"/{HOME}/bin/perf test -w benchmark -- --truth --faults 0 1 > /share/truth\n"


def field(package: Path, name: str) -> str:
    """A field of a package's control file."""
    return must("dpkg-deb", "--field", package, name).strip()


def files(package: Path) -> set[str]:
    """The paths that a package installs, without folders."""
    lines = [
        line.split(maxsplit=5) for line in must("dpkg-deb", "--contents", package).splitlines()
    ]
    return {
        words[5].split(" -> ")[0].removeprefix("./")
        for words in lines
        if not words[0].startswith("d")
    }


class Packages(unittest.TestCase):
    """The content of the packages, for the architecture that is not this machine's."""

    @classmethod
    def setUpClass(cls):
        must("make", "deb", f"ARCH={ARCH}", "CONFIG=small", timeout=7200)
        cls.debian = machine(ARCH, "debian")
        (cls.perf,) = (BUILD / "deb").glob(f"linux-perf-alt-period_*_{cls.debian}.deb")
        (cls.kernel,) = (BUILD / "deb").glob(f"linux-image-*-alt-period-small_*_{cls.debian}.deb")
        cls.root = OUT / "root"
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir(parents=True)
        must("dpkg-deb", "--extract", cls.perf, cls.root)

    def test_paths_have_the_names_of_the_packages(self):
        """No other kernel and no other perf uses these paths."""
        for package, name in (self.perf, "perf-alt-period"), (
            self.kernel,
            field(self.kernel, "Package").removeprefix("linux-image-"),
        ):
            self.assertEqual([path for path in files(package) if name not in path], [])

    def test_kernel_starts_from_uefi(self):
        """GRUB and UEFI cannot start a compressed image on arm64.

        Documentation/arch/arm64/booting.rst tells how an uncompressed one begins.
        """
        image = OUT / "kernel"
        must("dpkg-deb", "--extract", self.kernel, image)
        (vmlinuz,) = (image / "boot").glob("vmlinuz-*")
        self.assertEqual(vmlinuz.read_bytes()[0x38:0x3C], b"ARM\x64")

    def test_manual(self):
        pages = self.root / HOME / "share/man/man1"
        self.assertIn("alt-period-jitter", must("man", "-l", pages / "perf-record.1.gz"))
        self.assertTrue((pages / "perf-functions.1.gz").is_file())
        self.assertTrue(
            (self.root / "usr/share/man/man1/perf-alt-period.1.gz")
            .resolve()
            .samefile(pages / "perf.1.gz")
        )


class Installed(unittest.TestCase):
    """A guest boots the package's kernel; it has only Debian's packages and these two."""

    ARCH = ARCH
    EVENTS = "{cycles/period=999700,alt-period=300/,instructions,page-faults}:uS"

    @classmethod
    def setUpClass(cls):
        must("make", "deb", f"ARCH={cls.ARCH}", "CONFIG=small", timeout=7200)
        must("scripts/debian/root.sh", "debian", cls.ARCH)
        cls.share = OUT / cls.ARCH
        shutil.rmtree(cls.share, ignore_errors=True)
        cls.share.mkdir(parents=True)
        debian = machine(cls.ARCH, "debian")
        for name in (
            f"linux-perf-alt-period_*_{debian}.deb",
            f"linux-image-*-alt-period-small_*_{debian}.deb",
        ):
            (package,) = (BUILD / "deb").glob(name)
            shutil.copy(package, cls.share)
        must("dpkg-deb", "--extract", package, cls.share / "kernel")
        (kernel,) = (cls.share / "kernel/boot").glob("vmlinuz-*")
        cls.release = kernel.name.removeprefix("vmlinuz-")
        cls.output = in_guest(
            "uname -r\n" + INSTALL + TRUTH + RECORD.format(home=HOME, events=cls.EVENTS),
            "--kernel",
            kernel,
            "--root",
            BUILD / f"root/{cls.ARCH}-debian.cpio",
            arch=cls.ARCH,
            share=cls.share,
            timeout=1800,
        )
        cls.native, cls.script = (
            {row["symbol"]: row for row in csv.DictReader((cls.share / name).open())}
            for name in ("native.csv", "script.csv")
        )

    def test_both_are_installed(self):
        lines = self.output.splitlines()
        self.assertEqual(
            lines[:4],
            [
                self.release,
                f"linux-image-{self.release} ii ",
                "linux-perf-alt-period ii ",
                f"/boot/vmlinuz-{self.release}",
            ],
        )
        self.assertNotIn("error", (self.share / "installed").read_text())

    def test_table_has_the_benchmark(self):
        self.assertLessEqual(set(LEAVES), set(self.native))
        self.assertEqual(self.native.keys(), self.script.keys())
        for name, row in self.script.items():
            cells = row["DIS"], self.native[name]["DIS"]
            self.assertEqual(*(cell == "-" or round(float(cell), 6) for cell in cells), name)


class InstalledArm64(Installed):
    """The machine has a PMU."""


class InstalledX86(Installed):
    """It is built natively, and has software events only."""

    ARCH = "x86_64"
    EVENTS = "{cpu-clock/period=990000,alt-period=10000/,page-faults}:uS"


del Installed  # unittest would run it, too
