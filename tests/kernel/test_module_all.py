# SPDX-License-Identifier: GPL-2.0
"""The module for kernels that cannot be rebuilt, on Debian's own kernels."""

import os
import re
import shutil
import unittest
from pathlib import Path

from tests.harness import modules
from tests.harness.env import ARCH, BUILD, CHECK, TOP, machine, must, run
from tests.harness.pristine import dkms_source

SLOW = True
MINUTES = 30
MACHINES = "arm64"

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

    @classmethod
    def make(cls):
        kernel = Kernel(ARCH)
        cls.OPTIONS = *kernel.options(), "--qemu", "-cpu neoverse-n1"
        kernel.make(dkms_source(kernel.kept / "dkms"), cls.share)


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
