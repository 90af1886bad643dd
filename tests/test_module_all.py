# SPDX-License-Identifier: GPL-2.0
"""The module for kernels that cannot be rebuilt, on Debian's own kernel: nothing of it is built here but the module."""

import re
import shutil
import unittest
from pathlib import Path

import modules
from env import ARCH, BUILD, CHECK, TOP, machine, must
from pristine import dkms_source

KEPT = CHECK / "debian-kernel"
# what the emulated machine's console and shared folders need; Debian has them as modules
DRIVERS = ("virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_console",
           "netfs", "fscache", "9pnet", "9pnet_virtio", "9p")
INIT = """#!/bin/busybox sh
for driver in {}; do
	/bin/busybox insmod /drivers/$driver.ko
done
exec /init
"""


def fetch() -> Path:
    """Debian's kernel for the emulated machine and what it takes to build modules for it here, unpacked, once."""
    root, apt = KEPT / "root", KEPT / "apt"
    if not (KEPT / "fetched").exists():
        shutil.rmtree(KEPT, ignore_errors=True)
        # the compiler's part of the headers runs here
        for arch, names in ((ARCH, "image headers"), (must("dpkg", "--print-architecture").strip(), "kbuild")):
            (apt / arch).mkdir(parents=True)
            must(TOP / "scripts/apt.sh", apt / arch, arch, "bookworm", "bookworm-security")
            env = {"APT_CONFIG": str(apt / arch / "apt.conf")}
            must("apt-get", "--quiet", "--quiet", "update", env=env)
            wanted = ["linux-kbuild-6.1"]
            if names != "kbuild":
                wanted = [re.findall(r"Depends: (\S+)", must("apt-cache", "depends", f"linux-{name}-{ARCH}", env=env))[0]
                          for name in names.split()]
                wanted.append(wanted[1].removesuffix(f"-{ARCH}") + "-common")
            must("apt-get", "--quiet", "--quiet", "download", *wanted, env=env, cwd=apt)
        for package in apt.glob("*.deb"):
            must("dpkg-deb", "--extract", package, root)
        headers, = root.glob(f"usr/src/linux-headers-*-{ARCH}")
        makefile = (headers / "Makefile").read_text()
        (headers / "Makefile").write_text(makefile.replace("include /usr", f"include {root}/usr"))
        (KEPT / "fetched").touch()
    return root


def make_root(root: Path) -> Path:
    """The machine's root file system, with Debian's drivers before its own first process."""
    more, out = KEPT / "more", KEPT / "root.cpio"
    (more / "drivers").mkdir(parents=True, exist_ok=True)
    there = {path.stem: path for path in root.glob("lib/modules/*/kernel/**/*.ko")}
    for name in DRIVERS:
        shutil.copy(there[name], more / "drivers")
    (more / "init.debian").write_text(INIT.format(" ".join(DRIVERS)))
    (more / "init.debian").chmod(0o755)
    base = BUILD / "root" / f"{ARCH}.cpio"
    must("sh", "-ec", f"find . | cpio --quiet --create --format=newc | cat {base} - > {out}", cwd=more)
    return out


class Debian(modules.Module):

    share = CHECK / "module-debian"
    # Linux 6.1 opens no group that samples counts and is inherited
    NOT = modules.Module.NOT + (" child_of_long_interval child_of_window grandchild_of_long_interval thread_of_long_interval"
                                " thread_of_window ioc_period_and_children exec_of_child_keeps_rest_of_interval")
    SELFTESTS = 24

    @classmethod
    def make(cls):
        root = fetch()
        kernel, = root.glob("boot/vmlinuz-*")
        headers, = root.glob(f"usr/src/linux-headers-*-{ARCH}")
        cls.OPTIONS = ("--kernel", kernel, "--root", make_root(root), "--append", "rdinit=/init.debian", "--qemu", "-cpu neoverse-n1")
        source = dkms_source(KEPT / "dkms")
        must("make", "-C", source, f"KDIR={headers}", f"CROSS_COMPILE={machine(ARCH, 'cross_compile')}")
        shutil.copy(source / "perf_alt_period.ko", cls.share)


class Dkms(unittest.TestCase):
    """The package on a Debian with that kernel: installed, it builds the module; removed, it leaves nothing."""

    SCRIPT = """echo "Dpkg::Use-Pty 0;" > /etc/apt/apt.conf.d/no-pty
apt-get install --yes --quiet=2 /*.deb
dkms status
modinfo -F vermagic -k $(ls /lib/modules) perf_alt_period
apt-get remove --yes --quiet=2 perf-alt-period-dkms
echo left: $(dkms status) $(find /lib/modules /usr/src -name "perf*alt*period*")"""

    def test_package_builds_and_removes(self):
        out = CHECK / "dkms"
        must(TOP / "scripts/dkms.sh", out)
        package, = out.glob("*.deb")
        arch = must("dpkg", "--print-architecture").strip()
        for suite in "bookworm", "trixie":
            with self.subTest(suite):
                said = must("mmdebstrap", "--quiet", "--format=null", "--variant=minbase", f"--include=dkms,linux-headers-{arch}",
                            f"--customize-hook=copy-in {package} /", f"--customize-hook=chroot \"$1\" sh -ec '{self.SCRIPT}'", suite)
                self.assertRegex(said, rf"(?m)^perf-alt-period/1.0, (6\.\S+-{arch}), \S+: installed\n\1 .*mod_unload")
                self.assertRegex(said, r"(?m)^left:$")


if __name__ == "__main__":
    unittest.main()
