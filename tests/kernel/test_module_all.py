# SPDX-License-Identifier: GPL-2.0
"""The module for kernels that cannot be rebuilt, on Debian's own kernels."""

import os
import re
import shutil
import unittest
from itertools import pairwise
from pathlib import Path

from tests.harness import modules, perfdata
from tests.harness.env import ARCH, BUILD, CHECK, TOP, in_guest, machine, must, run
from tests.harness.machines import RECORD
from tests.harness.pristine import dkms_source

SLOW = True
MINUTES = 30
MACHINES = "arm64 x86_64"

# drivers that the emulated machine's console and shared folders need, if Debian's are modules
DRIVERS = (
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_console",
    "netfs",
    "fscache",
    "9pnet",
    "9pnet_virtio",
    "9p",
)
INIT = """#!/bin/busybox sh
for driver in {}; do
	/bin/busybox insmod /drivers/$driver.ko
done
exec /init
"""


class Kernel:
    """Debian's kernel for an emulated machine and its headers for modules; unpacked once."""

    def __init__(self, arch: str):
        self.arch, self.kept = arch, CHECK / "debian-kernel" / arch
        self.debian, self.root = machine(arch, "debian"), self.kept / "root"
        if not (self.kept / "fetched").exists():
            shutil.rmtree(self.kept, ignore_errors=True)
            self.fetch()
            (self.kept / "fetched").touch()
        (self.image,) = self.root.glob("boot/vmlinuz-*")
        (self.headers,) = self.root.glob(f"usr/src/linux-headers-*-{self.debian}")

    def fetch(self) -> None:
        """Downloads and unpacks the packages."""
        apt = self.kept / "apt"
        wanted = {self.debian: ["image", "headers"]}
        # the programs among the headers run on this computer
        wanted.setdefault(must("dpkg", "--print-architecture").strip(), []).append("kbuild")
        for debian, names in wanted.items():
            (apt / debian).mkdir(parents=True)
            must(
                TOP / "scripts/debian/apt.sh", apt / debian, debian, "bookworm", "bookworm-security"
            )
            env = {"APT_CONFIG": str(apt / debian / "apt.conf")}
            must("apt-get", "--quiet", "--quiet", "update", env=env)
            packages = []
            for name in names:
                if name == "kbuild":
                    packages.append("linux-kbuild-6.1")
                    continue
                packages += re.findall(
                    r"Depends: (\S+)",
                    must("apt-cache", "depends", f"linux-{name}-{debian}", env=env),
                )[:1]
                if name == "headers":
                    packages.append(packages[-1].removesuffix(f"-{debian}") + "-common")
            must("apt-get", "--quiet", "--quiet", "download", *packages, env=env, cwd=apt)
        for package in apt.glob("*.deb"):
            must("dpkg-deb", "--extract", package, self.root)
        (headers,) = self.root.glob(f"usr/src/linux-headers-*-{self.debian}")
        makefile = (headers / "Makefile").read_text()
        (headers / "Makefile").write_text(
            makefile.replace("include /usr", f"include {self.root}/usr")
        )

    def make(self, source: Path, share: Path) -> None:
        """Builds the module of a folder, and puts it into the share."""
        must(
            "make",
            "-C",
            self.headers,
            f"M={source}",
            f"CROSS_COMPILE={machine(self.arch, 'cross_compile')}",
            "modules",
        )
        for module in source.glob("*.ko"):
            shutil.copy(module, share)

    def options(self) -> tuple[object, ...]:
        """The options of scripts/vm.py that boot it with Debian's drivers loaded."""
        more, out = self.kept / "more", self.kept / "root.cpio"
        (more / "drivers").mkdir(parents=True, exist_ok=True)
        there = {path.stem: path for path in self.root.glob("lib/modules/*/kernel/**/*.ko")}
        drivers = [name for name in DRIVERS if name in there]
        for name in drivers:
            shutil.copy(there[name], more / "drivers")
        (more / "init.debian").write_text(INIT.format(" ".join(drivers)))
        (more / "init.debian").chmod(0o755)
        base = BUILD / "root" / f"{self.arch}.cpio"
        must(
            "sh",
            "-ec",
            f"find . | cpio --quiet --create --format=newc | cat {base} - > {out}",
            cwd=more,
        )
        return "--kernel", self.image, "--root", out, "--append", "rdinit=/init.debian"


class Debian(modules.Module):
    share = CHECK / "module-debian"
    # Linux 6.1 does not open a group that samples counts and is inherited
    NOT = modules.Module.NOT + " child_of_window thread_of_window ioc_period_and_children"
    SELFTESTS = 18

    @classmethod
    def make(cls):
        kernel = Kernel(ARCH)
        cls.OPTIONS = *kernel.options(), "--qemu", "-cpu neoverse-n1"
        kernel.make(dkms_source(kernel.kept / "dkms"), cls.share)


class X86(unittest.TestCase):
    """The module on x86_64.

    The emulated machine has no PMU, so clock_pmu.c is one; the probe of its overflows is real.
    """

    ARCH = "x86_64"
    LONG, WINDOW = 1_000_000, 50_000
    COMMANDS = f"""
    insmod /share/clock_pmu.ko
    insmod /share/perf_alt_period.ko
    refused() {{ ! perf record -o said.data "$@" -- echo ran >> /share/refused 2>&1; }}
    refused -e cpu/event=1,in_tx_cp,period={LONG},alt-period={WINDOW}/
    refused -e '{{cpu/event=1,period={LONG},alt-period={WINDOW}/,cpu/event=2,acr_mask=1/}}'
    refused -b -e cycles/period={LONG},alt-period={WINDOW}/
    alternate='{{cycles/period={LONG},alt-period={WINDOW}/,instructions}}:S'
    record alternate.data "$alternate" benchmark --iterations 2000 0 1
    record running.data "$alternate" benchmark --iterations 2000 0 1 &
    until pgrep -x benchmark > /dev/null; do sleep 0.01; done
    sleep 0.05
    rmmod perf_alt_period
    wait $!
    dmesg > /share/dmesg"""

    @classmethod
    def setUpClass(cls):
        kernel, cls.share = Kernel(cls.ARCH), CHECK / "module-x86"
        shutil.rmtree(cls.share, ignore_errors=True)
        cls.share.mkdir(parents=True)
        kernel.make(dkms_source(kernel.kept / "dkms"), cls.share)
        pmu = kernel.kept / "clock_pmu"
        shutil.rmtree(pmu, ignore_errors=True)
        kernel.make(shutil.copytree(TOP / "tests/kernel/clock_pmu", pmu), cls.share)
        in_guest(RECORD + cls.COMMANDS, *kernel.options(), arch=cls.ARCH, share=cls.share)

    def periods(self, name: str) -> list[int]:
        return [sample.period for sample in perfdata.read(self.share / f"{name}.data").stream()]

    def test_refuses_where_the_driver_has_the_period(self):
        said = (self.share / "refused").read_text()
        self.assertNotIn("ran\n", said)
        self.assertEqual(
            said.count(
                "has them for events without 'in_tx_cp', 'acr_mask' or AMD's branch sampling"
                " only.\n"
            ),
            3,
            said,
        )

    def test_window_is_as_long_as_it_says(self):
        """The difference is the time of the timer and the handler."""
        stream = perfdata.read(self.share / "alternate.data").stream()
        counts = [list(sample.values.values())[0] for sample in stream]
        for sample, (early, late) in zip(stream[1:], pairwise(counts)):
            self.assertAlmostEqual(late - early, sample.period, delta=self.WINDOW / 2)

    def test_event_goes_on_without_the_module(self):
        found = self.periods("running")
        last = len(found) - 1 - found[::-1].index(self.WINDOW)
        self.assertGreater(last, 20)
        self.assertGreater(len(found) - last, 20)
        self.assertEqual(set(found[last + 1 :]), {self.LONG})

    def test_kernel_does_not_complain(self):
        self.assertNotRegex((self.share / "dmesg").read_text(), modules.COMPLAINTS)


class Dkms(unittest.TestCase):
    """On a Debian with that kernel, the package builds the module; its removal leaves nothing."""

    SCRIPT = """echo "Dpkg::Use-Pty 0;" > /etc/apt/apt.conf.d/no-pty
apt-get install --yes --quiet=2 /*.deb
dkms status
modinfo -F vermagic -k $(ls /lib/modules) perf_alt_period
apt-get remove --yes --quiet=2 perf-alt-period-dkms
echo left: $(dkms status) $(find /lib/modules /usr/src -name "perf*alt*period*")"""

    def test_package_builds_and_removes(self):
        sudo = ["sudo", "-n"] if os.geteuid() else []
        if sudo and run(*sudo, "true").returncode:
            self.skipTest("no right to make a Debian root: run as root, or with sudo")
        out = CHECK / "dkms"
        must(TOP / "scripts/debian/dkms.sh", out)
        (package,) = out.glob("*.deb")
        arch = must("dpkg", "--print-architecture").strip()
        for suite in "bookworm", "trixie":
            with self.subTest(suite):
                said = must(
                    *sudo,
                    "mmdebstrap",
                    "--quiet",
                    "--format=null",
                    "--variant=minbase",
                    f"--include=dkms,linux-headers-{arch}",
                    f"--customize-hook=copy-in {package} /",
                    f"--customize-hook=chroot \"$1\" sh -ec '{self.SCRIPT}'",
                    suite,
                )
                version = re.escape(must("scripts/version").strip())
                self.assertRegex(
                    said,
                    rf"(?m)^perf-alt-period/{version}, (6\.\S+-{arch}), \S+: installed\n"
                    r"\1 .*mod_unload",
                )
                self.assertRegex(said, r"(?m)^left:$")


if __name__ == "__main__":
    unittest.main()
