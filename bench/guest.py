# SPDX-License-Identifier: GPL-2.0
"""Commands of the measurements in the emulated machine."""

import os
import subprocess
from pathlib import Path

from bench.experiment import OPTIONS
from tests.harness.env import BUILD, LINUX, TOP, in_guest, must

HERE = TOP / "bench"
OUT = Path(os.environ.get("BENCH_OUT", BUILD / "bench"))  # set by the tests
SHARE = OUT / "share"  # the guest's /share
CROSS = "aarch64-linux-gnu-"
# no limit on the rate of overflows
UNTHROTTLED = (
    "sysctl -qw kernel.perf_event_max_sample_rate=10000000 kernel.perf_cpu_time_max_percent=0\n"
)


def program(name: str | Path, *words: object, output: str = "") -> Path:
    """Compiles NAME.c, or the file NAME, for the guest, where it is /share/OUTPUT.

    words: further options of the compiler.
    """
    SHARE.mkdir(parents=True, exist_ok=True)
    source = name if isinstance(name, Path) else HERE / f"{name}.c"
    made = SHARE / (output or source.stem)
    must(
        f"{CROSS}gcc",
        "-O2",
        "-Wall",
        "-Werror",
        "-static",
        "-isystem",
        LINUX / "tools/include/uapi",
        "-o",
        made,
        source,
        *words,
    )
    return made


def tool(name: str, *words: object) -> str:
    """Output of a tool of the cross compiler's family."""
    return must(CROSS + name, *words, stderr=subprocess.DEVNULL)


def unthrottled(command: str, *options: object) -> str:
    """Output of a command in the guest, where no event is throttled."""
    return in_guest(UNTHROTTLED + command, *options, share=SHARE, timeout=1200)


def recording(name: str, events: str, command: str, options: str = "") -> str:
    """Commands for the guest that record a command there, in its memory, and leave /share/NAME.

    events: "" for what perf functions record takes.
    """
    record = f"record {' '.join(OPTIONS)} -m 16M -e '{events}'" if events else "functions record"
    return (
        f"cd /tmp; settle; perf {record} -q -o '{name}' {options} -- {command} > record.out 2>&1 "
        f"|| {{ cat record.out; exit 1; }}\nmv '{name}' /share\n"
    )


def with_truth(
    name: str, events: str, command: str, model: str, *options: object, setup: str = ""
) -> tuple[Path, Path]:
    """Records a command in the machine with a core model.

    setup: commands before it. Returns two recordings: this one, and what the model has counted.
    """
    SHARE.mkdir(parents=True, exist_ok=True)
    data, counted, true = (SHARE / f"{name}.{end}" for end in ("data", "txt", "true"))
    in_guest(
        UNTHROTTLED + setup + recording(data.name, events, command),
        *("--model", model, "--truth", counted, *options),
        share=SHARE,
        timeout=1200,
    )
    must(TOP / "emulator/truth.py", data, counted, true)
    counted.unlink()
    return data, true
