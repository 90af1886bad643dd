#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""An emulated machine as a function call.

A command goes in; its output and its exit status come out. The guest runs our
kernel and root file system, sees the folder SHARE as /share (its working
directory), and powers off when the command ends. A hang ends at the time limit
with the console shown. Machines are described in scripts/vm/ARCH.py.

exit status: the command's; 124 after the time limit, 125 when the machine died or
the truth was not written.
"""

import argparse
import contextlib
import importlib.util
import io
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import IO

TOP = Path(__file__).resolve().parent.parent
BUILD = TOP / "build" / os.environ.get("BASE", "6.12")
EMULATOR = TOP / "build/emulator"
# when overflow interrupts come: at the end of a block of instructions, or cycles later
SKID, BLOCK, MOST_SKID = "skid=", "block", 10000
TIMED_OUT, DIED = 124, 125
KVM = Path("/dev/kvm")
PROBE_SECONDS = 5
COMPLAINT = re.compile(r"\b(BUG|WARNING|INFO|UBSAN|Oops|Kernel panic)\b.*:")
# Show warnings, and end the machine at one. Allow for a slow processor. Keep slabs of each kind
# apart, so that objects can be counted. Run unit tests at boot, which newer kernels do only if told
# to.
DEBUG_CMDLINE = (
    "loglevel=5 panic_on_warn=1 rcupdate.rcu_cpu_stall_timeout=300 slab_nomerge kunit.autorun=1"
)


def machines() -> list[str]:
    """Returns the architectures that have a machine, sorted."""
    return sorted(path.stem for path in (TOP / "scripts/vm").glob("*.py"))


def machine(arch: str) -> dict:
    """Returns the description of one machine: ARCH of scripts/vm/ARCH.py.

    Raises SystemExit with one line when there is none.
    """
    if arch not in machines():
        sys.exit(f"vm: no machine for ARCH={arch}; there is: {' '.join(machines())}")
    spec = importlib.util.spec_from_file_location(arch, TOP / f"scripts/vm/{arch}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    common = (TOP / "scripts/vm/common.config").read_text(encoding="utf-8")
    return module.ARCH | {
        "kconfig": common + module.ARCH["kconfig"].lstrip(),
        "emulator": module.ARCH["qemu"][0],
    }


def escaped(path: Path) -> str:
    """Returns a path as a value among QEMU's options, which commas separate."""
    return str(path).replace(",", ",,")


def qemu_command(arch: dict, args: argparse.Namespace, control: Path) -> list[str]:
    """Returns the QEMU command line: kernel console to a file, virtio console to us."""

    def folder(tag: str, path: Path) -> list[str]:
        return [
            "-fsdev",
            f"local,id={tag},path={escaped(path)},security_model=none",
            "-device",
            f"virtio-9p-pci,fsdev={tag},mount_tag={tag}",
        ]

    qemu = list(arch["qemu"])
    if args.no_icount and "-icount" in qemu:
        at = qemu.index("-icount")
        del qemu[at : at + 2]
    return [
        *qemu,
        "-m",
        args.memory,
        "-smp",
        str(args.smp),
        "-seed",
        "1",
        "-kernel",
        str(args.kernel),
        "-initrd",
        str(args.root),
        "-append",
        f"console={arch['console']} panic=-1 quiet {arch['cmdline']} {args.append}",
        "-display",
        "none",
        "-vga",
        "none",
        "-monitor",
        "none",
        "-nic",
        "none",
        "-no-reboot",
        "-serial",
        f"file:{control / 'console'}",
        "-chardev",
        f"stdio,id=out,signal={'off' if args.terminal else 'on'}",
        "-device",
        "virtio-serial-pci",
        "-device",
        "virtconsole,chardev=out",
        *folder("vm", control),
        *folder("share", args.share),
        *core_model(args),
        *args.qemu,
    ]


def core_model(args: argparse.Namespace) -> list[str]:
    """Returns the options for the plugin with the core model, which the PMU counts."""
    if args.model == "none":
        return []
    preset, *more = args.model.split(",")
    skids = [word.removeprefix(SKID) for word in more if word.startswith(SKID)]
    words = [escaped(EMULATOR / "model.so"), f"preset={preset}"]
    words += [word for word in more if not word.startswith(SKID)]
    if args.truth:
        words.append(f"truth={escaped(args.truth.resolve())}")
    return ["-plugin", ",".join(words), *late_interrupts(skids[-1] if skids else BLOCK)]


def late_interrupts(skid: str) -> list[str]:
    """Returns the options for a PMU whose interrupts come so many cycles after the overflow."""
    if skid == BLOCK:
        return []
    if not skid.isdecimal() or int(skid) > MOST_SKID:
        sys.exit(
            f"vm: MODEL (--model) has {SKID}{skid}: say {BLOCK}, or a number up to {MOST_SKID}"
        )
    # QEMU takes interrupts between blocks
    return ["-accel", "tcg,one-insn-per-tb=on", "-global", f"max-arm-cpu.pmu-skid={int(skid)}"]


def last(lines: list[str]) -> list[str]:
    """Returns the end of a console, from the kernel's first complaint on: 30 to 200 lines."""
    first = next(
        (number for number, line in enumerate(lines) if COMPLAINT.search(line)), len(lines)
    )
    return lines[max(0, min(first, len(lines) - 30)) :][:200]


@contextlib.contextmanager
def same_terminal(is_used: bool) -> Iterator[None]:
    """Leaves the terminal as it was: a QEMU that is killed leaves it raw and non-blocking."""
    settings = termios.tcgetattr(0) if is_used else None
    try:
        yield
    finally:
        if settings:
            termios.tcsetattr(0, termios.TCSANOW, settings)
            os.set_blocking(0, True)


def run(arch: dict, args: argparse.Namespace, output: IO[str] | None = None) -> int:
    """Boots, runs args.command, returns its exit status (see the module's text)."""
    control = Path(tempfile.mkdtemp(prefix="vm."))
    try:
        (control / "command").write_text(args.command + "\n", encoding="utf-8")
        if args.terminal:
            (control / "terminal").touch()
        with same_terminal(args.terminal), subprocess.Popen(
            qemu_command(arch, args, control),
            stdin=None if args.terminal else subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        ) as qemu:
            try:
                qemu.wait(timeout=args.timeout)
                status = DIED
                reason = "the machine died before the command ended: look above for the cause"
            except subprocess.TimeoutExpired:
                status = TIMED_OUT
                reason = f"no end after {args.timeout:g} s: allow more by TIMEOUT=N (--timeout N)"
            except BaseException:
                qemu.kill()
                raise
            qemu.kill()
        ended = control / "status"
        said = ended.read_text(errors="replace").strip() if ended.is_file() else ""
        if status == DIED and said in map(str, range(256)):
            if not args.truth or args.truth.is_file():
                return int(said)
            reason = (
                f"QEMU ended without writing {args.truth} (exit status {qemu.returncode}): "
                "free memory and disk space, and run again"
            )
        console = control / "console"
        lines = console.read_text(errors="replace").splitlines() if console.is_file() else []
        print(*last(lines), f"vm: {reason}", sep="\n", file=sys.stderr)
        return status
    finally:
        shutil.rmtree(control, ignore_errors=True)


def check_kvm(arch: dict, args: argparse.Namespace) -> None:
    """Raises SystemExit with one line if KVM cannot run the machine, whatever its files are."""
    if Path(arch["qemu"][0]).name.removeprefix("qemu-system-") != platform.machine():
        sys.exit(
            f"vm: KVM runs only {platform.machine()} guests here: leave ACCEL=kvm out, "
            "or choose that ARCH"
        )
    if args.model != "none":
        sys.exit("vm: under KVM the processor is real: leave ACCEL=kvm or MODEL out")
    if not os.access(KVM, os.R_OK | os.W_OK):
        sys.exit(f"vm: {KVM} cannot be used: load the module kvm, or ask for access to it")


def use_kvm(arch: dict, args: argparse.Namespace) -> None:
    """Changes the machine so that this computer's own processor and PMU run it.

    Raises SystemExit with one line when that does not work here.
    """
    args.no_icount = True
    arch["qemu"] = [
        {"max": "host", "virt,gic-version=3": "virt,gic-version=host"}.get(word, word)
        for word in arch["qemu"]
    ] + ["-accel", "kvm"]
    probe = argparse.Namespace(**vars(args))
    probe.command = (
        "test -e /sys/bus/event_source/devices/cpu || ls -d /sys/bus/event_source/devices/armv8*"
    )
    probe.timeout, probe.terminal = PROBE_SECONDS, False
    with contextlib.redirect_stderr(io.StringIO()), tempfile.TemporaryFile("w+") as output:
        status = run(arch, probe, output)
        output.seek(0)
        said = output.readline().strip() or f"nothing happened in {PROBE_SECONDS} seconds"
    if status in (TIMED_OUT, DIED):
        sys.exit(f"vm: no guest starts under KVM here ({said}): leave ACCEL=kvm out")
    if status:
        sys.exit("vm: KVM gives guests no PMU here (on x86: kvm.enable_pmu=1): leave ACCEL=kvm out")


def emulator(arch: dict, args: argparse.Namespace) -> str:
    """Returns the QEMU to start. Raises SystemExit with one line if it is missing."""
    if args.model == "none":
        if args.truth:
            sys.exit(
                "vm: only a core model counts the truth: give --model small, or leave --truth out"
            )
        # prefer the QEMU that scripts/debian/qemu.sh fetched
        path = f"{TOP}/build/qemu/bin:{os.environ.get('PATH', os.defpath)}"
        found = shutil.which(arch["emulator"], path=path)
        return found or sys.exit(f"vm: {arch['emulator']} is missing: install {arch['packages']}")
    if args.arch != "arm64":
        sys.exit("vm: only arm64 has a core model: leave MODEL (--model) out")
    if args.no_icount:
        sys.exit("vm: the core model counts instructions: leave --no-icount or MODEL (--model) out")
    if not (EMULATOR / "model.so").is_file():
        sys.exit(f"vm: {EMULATOR / 'model.so'} is missing: run `make emulator`")
    return str(EMULATOR / "bin" / arch["emulator"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Runs a command in an emulated machine, and ends with its exit status.",
        epilog=f"machines: {' '.join(machines())}",
    )
    parser.add_argument("--arch", default="arm64", help="machine to emulate (default: %(default)s)")
    parser.add_argument(
        "--kernel", type=Path, help="kernel image (default: the one of `make kernel`)"
    )
    parser.add_argument(
        "--root", type=Path, help="root file system (default: the one of `make vm`)"
    )
    parser.add_argument(
        "--share",
        type=Path,
        default=BUILD / "share",
        help="folder seen as /share (default: build/BASE/share)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600,
        help="stop the machine after this many seconds (default: %(default)s)",
    )
    parser.add_argument("--smp", type=int, default=1, help="processors (default: %(default)s)")
    parser.add_argument(
        "--no-icount",
        action="store_true",
        help="run all processors at the same time and at full speed; two runs then differ",
    )
    parser.add_argument(
        "--accel",
        choices=("tcg", "kvm"),
        default="tcg",
        help="kvm: use this computer's own processor and PMU; the architecture must be the same",
    )
    parser.add_argument(
        "--model",
        default="none",
        metavar="PRESET[,NAME=VALUE...]",
        help="the core model: small or large, and values to change in it (emulator/README.md); "
        "none: each instruction takes one cycle (default)",
    )
    parser.add_argument(
        "--truth",
        type=Path,
        metavar="FILE",
        help="write the counts of the core model to this file at the end",
    )
    parser.add_argument(
        "--debug",
        action="store_true",
        help="use the kernel of `make kernel DEBUG=1`, which checks itself; its first warning "
        "stops the machine",
    )
    parser.add_argument("--memory", default="2G", help="memory (default: %(default)s)")
    parser.add_argument("--append", default="", help="append this to the kernel's command line")
    parser.add_argument(
        "--qemu", type=shlex.split, default=[], help="append this to QEMU's command line"
    )
    parser.add_argument(
        "--get", metavar="KEY", help="print one value of the machine's description and exit"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="check what needs no file of the machine, and exit",
    )
    parser.add_argument(
        "command",
        nargs="?",
        default="",
        help="command for bash in the machine (default: a shell on this terminal)",
    )
    args = parser.parse_args()

    arch = machine(args.arch)
    if args.get:
        print(str(arch.get(args.get, "")).strip())
        return 0
    if args.accel == "kvm":
        check_kvm(arch, args)
    if args.check:
        return 0
    if args.debug:
        args.append = f"{DEBUG_CMDLINE} {args.append}"
    args.kernel = (
        args.kernel or BUILD / "kernel" / (args.arch + "-debug" * args.debug) / arch["image"]
    )
    args.root = args.root or BUILD / "root" / f"{args.arch}.cpio"
    for needed, verb in ((args.kernel, "kernel"), (args.root, "vm")):
        if not needed.is_file():
            sys.exit(f"vm: {needed} is missing: run `make {verb} ARCH={args.arch}`")
    arch["qemu"][0] = emulator(arch, args)
    args.terminal = not args.command
    if args.terminal:
        if not sys.stdin.isatty():
            sys.exit("vm: a shell needs a terminal; give a command: make vm RUN='command'")
        args.command = "bash -i"
    try:
        args.share.mkdir(parents=True, exist_ok=True)
        if args.truth:
            # the model writes a new file at the end; an old one would hide that it could not
            args.truth.touch()
            if not args.truth.is_file():
                sys.exit(f"vm: {args.truth} is not a regular file: give another path")
            args.truth.unlink()
    except OSError as error:
        sys.exit(f"vm: {error.filename}: {error.strerror}: give another path")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if args.accel == "kvm":
        use_kvm(arch, args)
    return run(arch, args)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
