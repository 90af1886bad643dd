# SPDX-License-Identifier: GPL-2.0
"""The same Linux without our series, built beside ours: what tests compare with.

A work tree of build/linux stands at the tag `pristine`; its kernel and its perfs
are built once and kept. test_series.py walks the same work tree through the
commits, so that each needs an incremental build only.
"""

import shutil

from env import ARCH, CHECK, LINUX, TOP, must, run

WALK = CHECK / "linux"
KERNEL, HOST_PERF, GUEST_PERF = CHECK / "kernel", CHECK / "perf", CHECK / f"perf-{ARCH}"
KEPT = CHECK / "pristine"
IMAGE = KEPT / "Image"          # kernel for the emulated machine
HOST = KEPT / "host/perf"       # perf for this machine
GUEST = KEPT / "root"           # perf for the emulated machine, as installed


def pristine() -> None:
    """Makes the work tree and what is built from it, once."""
    commit = must("git", "-C", LINUX, "rev-parse", "pristine")
    if run("git", "-C", WALK, "rev-parse", "pristine").stdout != commit:
        shutil.rmtree(WALK, ignore_errors=True)
        must("git", "-C", LINUX, "worktree", "prune")
        must("git", "-C", LINUX, "worktree", "add", "--quiet", "--detach", WALK, "pristine")
    made_by = "\n".join([commit, *((TOP / name).read_text() for name in ("scripts/build.sh", f"scripts/vm/{ARCH}.py"))])
    stamp = KEPT / "made-by"
    if stamp.is_file() and stamp.read_text() == made_by:
        return
    must("git", "-C", WALK, "checkout", "--quiet", "--detach", "pristine")
    HOST.parent.mkdir(parents=True, exist_ok=True)
    build_kernel()
    shutil.copy(KERNEL / "arch/arm64/boot/Image", IMAGE)
    build_perf()
    shutil.copy(HOST_PERF / "perf", HOST)
    shutil.copytree(HOST_PERF / "dlfilters", HOST.parent / "dlfilters", dirs_exist_ok=True)
    must(TOP / "scripts/build.sh", "perf", WALK, GUEST_PERF, ARCH)
    shutil.rmtree(GUEST, ignore_errors=True)
    shutil.copytree(GUEST_PERF / "root", GUEST, symlinks=True)
    stamp.write_text(made_by)


def build_kernel() -> None:
    """The work tree's kernel for the emulated machine."""
    must(TOP / "scripts/build.sh", "kernel", WALK, KERNEL, ARCH)


def build_perf() -> None:
    """The work tree's perf for this machine."""
    must(TOP / "scripts/build.sh", "perf", WALK, HOST_PERF)
