# SPDX-License-Identifier: GPL-2.0
"""The same Linux without our series, built beside ours: tests and measurements compare with it.

A work tree of build/BASE/linux stands at the tag `pristine`; its kernel, its perfs and
their tests are built once and kept. test_series.py walks the same work tree
through the commits, so that each needs an incremental build only.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.env import ARCH, BUILD, CHECK, LINUX, TOP, machine, must, run

WALK = CHECK / "linux"
KERNEL, HOST_PERF, GUEST_PERF = CHECK / f"kernel-{ARCH}", CHECK / "perf", CHECK / f"perf-{ARCH}"
BUILT = KERNEL / "arch/arm64/boot/Image"
CORE = "kernel/events/core.o"
KEPT = CHECK / "pristine"
IMAGE = KEPT / "Image"  # kernel for the emulated machine
SYMBOLS = "vmlinux.symvers"  # ... and what modules may use of it
KBUILD = KEPT / "kbuild"  # ... and the rest of what it takes to build them
MODULE = "perf_alt_period.ko"
HOST = KEPT / "host/perf"  # perf for this machine
TOOLS = KEPT / "tools"  # its tests, and what they need
GUEST = KEPT / "root"  # perf for the emulated machine, as installed


def pristine() -> None:
    """Makes what other suites need of the work tree, once."""
    pristine_kernel()
    keep(KEPT / "perf.made-by", "pristine", build_and_copy_perf)
    keep_module()


def pristine_kernel() -> None:
    """Makes the kernel alone, once."""
    keep_kernel(KEPT, "pristine")


def keep_kernel(folder: Path, commit: str, patch: Path | None = None) -> None:
    """Puts Image, core.o and SYMBOLS of the kernel at commit into folder, once.

    patch: a change on top of it.
    """

    def build() -> None:
        try:
            if patch:
                # a patch that was made on another base has other lines beside its changes
                must("git", "-C", WALK, "apply", "-C1", patch)
            build_kernel()
        finally:
            must("git", "-C", WALK, "checkout", "--quiet", "--", ".")
        shutil.copy(BUILT, folder)
        shutil.copy(KERNEL / CORE, folder)
        shutil.copy(KERNEL / SYMBOLS, folder)

    keep(folder / "image.made-by", commit, build, *[patch] if patch else [])


def keep(stamp: Path, commit: str, build: Callable[[], None], *sources: Path) -> None:
    """Runs build, with the work tree at commit, unless stamp says that it was built from the same
    commit and sources.
    """
    sources = (
        *(TOP / "scripts" / name for name in ("build.sh", "vm/common.config", f"vm/{ARCH}.py")),
        *sources,
    )
    made_by = "\n".join(
        [
            must("git", "-C", LINUX, "rev-parse", f"{commit}^{{tree}}"),
            *(path.read_text() for path in sources),
        ]
    )

    def is_kept() -> bool:
        return stamp.is_file() and stamp.read_text() == made_by

    if is_kept():
        return
    stamp.parent.mkdir(parents=True, exist_ok=True)
    with held():
        # meanwhile another one may have made it
        if is_kept():
            return
        work_tree()
        must("git", "-C", WALK, "checkout", "--quiet", "--force", "--detach", commit)
        build()
        stamp.write_text(made_by)


@contextmanager
def held() -> Iterator[None]:
    """The work tree for the caller alone: another suite, or `make bench`, waits for it.

    In this block, keep() would wait forever.
    """
    CHECK.mkdir(parents=True, exist_ok=True)
    with open(CHECK / "pristine.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def work_tree() -> None:
    """Makes the work tree, anew if LINUX was; it stands at the tag `pristine` then."""
    commit = must("git", "-C", LINUX, "rev-parse", "pristine")
    if run("git", "-C", WALK, "rev-parse", "pristine").stdout != commit:
        shutil.rmtree(WALK, ignore_errors=True)
        must("git", "-C", LINUX, "worktree", "prune")
        must(
            "git",
            "-C",
            LINUX,
            "worktree",
            "add",
            "--quiet",
            "--no-checkout",
            "--detach",
            WALK,
            "HEAD",
        )
        # The same files, in which git never writes: it makes new ones. They keep their times, so
        # that only what the series changes is built again, see inherit().
        shutil.copytree(
            LINUX,
            WALK,
            symlinks=True,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns(".git"),
            copy_function=os.link,
        )
        must("git", "-C", WALK, "reset", "--quiet")
    must("git", "-C", WALK, "checkout", "--quiet", "--force", "--detach", "pristine")


def inherit(built: Path, folder: Path, tree: Path = LINUX) -> None:
    """Begins a build of tree in folder, unless it has begun, with what was built from LINUX.

    Linux goes by its notes of commands and files, in which paths are absolute.
    """
    if built.exists() and not folder.exists():
        shutil.copytree(built, folder, symlinks=True)
        for note in folder.rglob("*.cmd"):
            note.write_text(
                note.read_text().replace(str(built), str(folder)).replace(f"{LINUX}/", f"{tree}/")
            )


def build_and_copy_perf() -> None:
    """The pristine perfs, HOST and GUEST."""
    build_perf()
    HOST.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(HOST_PERF / "perf", HOST)
    shutil.copytree(HOST_PERF / "dlfilters", HOST.parent / "dlfilters", dirs_exist_ok=True)
    shutil.rmtree(TOOLS, ignore_errors=True)
    shutil.copytree(WALK / "tools", TOOLS, symlinks=True)
    build_perf(ARCH)
    shutil.rmtree(GUEST, ignore_errors=True)
    shutil.copytree(GUEST_PERF / "root", GUEST, symlinks=True)


def pristine_module(share: Path) -> None:
    """Makes the kernel, and, in share, perf_alt_period.ko for it from the DKMS package."""
    pristine_kernel()
    keep_module()
    shutil.copy(KEPT / MODULE, share)


def keep_module() -> None:
    """Makes MODULE from the DKMS package, once."""
    names = "Makefile", "dkms.conf", "perf_alt_period.c"
    sources = (
        "scripts/debian/dkms.sh",
        "include/linux/perf_alt_period.h",
        *(f"module/{name}" for name in names),
    )
    keep(KEPT / "module.made-by", "pristine", build_module, *(TOP / name for name in sources))


def dkms_source(folder: Path) -> Path:
    """Makes the DKMS package anew in folder and unpacks it there; returns where its source is."""
    must(TOP / "scripts/debian/dkms.sh", folder)
    must("dpkg-deb", "--extract", *folder.glob("*.deb"), folder)
    (source,) = (folder / "usr/src").iterdir()
    return source


def build_module() -> None:
    """MODULE, of the pristine kernel, whose headers are those of the work tree."""
    prepare_modules(WALK, KEPT / SYMBOLS, KBUILD, ARCH)
    source = dkms_source(KEPT / "dkms")
    must(
        "make",
        "-C",
        source,
        f"KDIR={KBUILD}",
        f"ARCH={ARCH}",
        f"CROSS_COMPILE={machine(ARCH, 'cross_compile')}",
    )
    shutil.copy(source / MODULE, KEPT)


def prepare_modules(tree: Path, symbols: Path, folder: Path, arch: str) -> None:
    """Prepares folder for building modules for the kernel of tree that has these symbols."""
    must(TOP / "scripts/build.sh", "kernel", tree, folder, arch, "modules_prepare")
    shutil.copy(symbols, folder / "Module.symvers")


def build_kernel(arch: str = ARCH, targets: Iterable[str] = ()) -> str:
    """Makes the work tree's kernel for an emulated machine, or only these targets of its make.

    Returns what make says.
    """
    inherit(BUILD / "kernel" / arch, CHECK / f"kernel-{arch}", WALK)
    return must(TOP / "scripts/build.sh", "kernel", WALK, CHECK / f"kernel-{arch}", arch, *targets)


def build_perf(arch: str = "") -> None:
    """The work tree's perf, for this machine or for an emulated one."""
    folder = GUEST_PERF if arch else HOST_PERF
    inherit(BUILD / folder.name, folder, WALK)
    # what is built before fixdep is not built again when a header has changed
    shutil.rmtree(folder / "libperf", ignore_errors=True)
    must(TOP / "scripts/build.sh", "perf", WALK, folder, *[arch] if arch else [])
