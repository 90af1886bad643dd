# SPDX-License-Identifier: GPL-2.0
"""Measures the instructions of an overflow and a context switch, and the growth of the code.

The emulated machine takes a nanosecond for each instruction, so the time that
overflows.c takes with and without an event is an exact count of instructions.
It is divided into blocks; the median of them is one that neither the timer nor
a kernel thread has interrupted.

Three kernels are compared: Linux without the series, with it, and with it and
stop-start.patch. This patch stops and starts the PMU on each overflow of an event
that alternates, as RFC v2 of the published series did (2024). All have the series'
fix of arm_pmuv3, which has nothing to do with alternate periods. The module is
measured on Linux without the series and without this fix.

The interrupt that opens a window is also measured in the machine with caches, where a plugin of
QEMU (emulator/interrupts.c) sees each instruction of the kernel and each access to memory: of what it
executes and touches, the window finds less of its own in the caches.

A context switch is half a turn of `perf bench sched pipe`, on one CPU, with an event
whose period is too long for an overflow.
"""

import re
import statistics
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import Any

from bench.experiment import records
from bench.guest import HERE, OUT, SHARE, program, recording, tool, unthrottled
from bench.markdown import prose
from tests.harness.env import ARCH, BASE, BUILD, TOP, in_guest, must
from tests.harness.machines import BY_MODULE
from tests.harness.pristine import CORE, IMAGE, keep_kernel, pristine_module

TITLE = "Cost of an overflow"
FIX = "arm-pmu/leave-disabled-after-overflow.patch"

# the arguments of overflows.c for each kernel: one overflow in 1000 instructions in all cases
RUNS = {
    "pristine": {"pristine": "1000"},
    "series": {
        "unused": "1000",
        "used": "1500 500",
        "jitter": "1500 500 12",
    },
    "stop-start": {"stop-start": "1500 500"},
}
# the same with the module loaded
MODULE_RUNS = {"not used": "1000", "used": "1500 500", "jitter": "1500 500 12"}
PIPE = "perf bench sched pipe -l 5000"
RECORD = "perf record -q -o /tmp/perf.data -e cycles/period=1000000000"
SWITCHES = {
    "pristine": {"none before": PIPE, "plain before": f"{RECORD}/u -- {PIPE}"},
    "series": {
        "none": PIPE,
        "plain": f"{RECORD}/u -- {PIPE}",
        "alternating": f"{RECORD},alt-period=300/u -- {PIPE}",
    },
}
# a group of seven, as `perf functions record` makes it
GROUP = "{cycles/period=49700,alt-period=300,alt-period-jitter=14/,instructions,branch-misses,"
GROUP += "cache-misses,dTLB-load-misses,L1-icache-load-misses,br_return_retired}:uS"
PROGRAM = "python3 -c 'print(sum(i * i % 7 for i in range(60000)))'"
# instructions of the program, more than any window has and fewer than a long interval
BETWEEN = 1000
COUNTS = "instructions", "lines of code", "lines of data", "pages of data"
LISTED = 25  # functions
# what perf functions record without options costs
PROGRAMS = {
    "python3": "python3 -c 'print(sum(i * i % 7 for i in range(300000)))'",
    "benchmark": "benchmark --iterations 20000 0 1",
}
TIMED = """import subprocess, sys, time
begin = time.monotonic_ns()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(time.monotonic_ns() - begin)
"""
MODELS = {"1 cycle an instruction": "none", "small caches": "small,kernel=on"}
LONGER, MOST_SAMPLES = 1.02, 5000
SIZES = "cat /sys/kernel/slab/perf_event/object_size && ./overflows"


def per_overflow(blocks: str) -> float:
    """Instructions of an overflow, from the output of overflows.c."""
    rows = [tuple(map(int, line.split())) for line in blocks.splitlines()]
    without = statistics.median(time for samples, time in rows if not samples)
    return statistics.median((time - without) / samples for samples, time in rows if samples)


def boot(image: Path, runs: dict[str, str]) -> tuple[dict[str, float], dict[str, int]]:
    """Boots a kernel; returns instructions per overflow of each run, and sizes of structures."""
    commands = [SIZES, *(f"./overflows {arguments} > '{name}'" for name, arguments in runs.items())]
    event, attr = map(
        int, unthrottled("\n".join(commands), "--kernel", image, "--append", "slab_nomerge").split()
    )
    return (
        {name: per_overflow((SHARE / name).read_text()) for name in runs},
        {"struct perf_event": event, "struct perf_event_attr": attr},
    )


def by_module() -> dict[str, float]:
    """Instructions per overflow without and with the module, on a kernel without the series."""
    pristine_module(SHARE)
    program("overflows", *BY_MODULE, output="overflows-by-module")
    plain, _ = boot(IMAGE, RUNS["pristine"])
    runs = (
        f"./overflows-by-module {arguments} > 'module {name}'"
        for name, arguments in MODULE_RUNS.items()
    )
    unthrottled("\n".join(("insmod /share/perf_alt_period.ko", *runs)), "--kernel", IMAGE)
    found = {name: per_overflow((SHARE / f"module {name}").read_text()) for name in MODULE_RUNS}
    return {name: round(number, 1) for name, number in (plain | found).items()}


def switches(image: Path, runs: dict[str, str]) -> dict[str, int]:
    """Boots a kernel; returns instructions per context switch of each run, to the nearest ten: now
    and then the kernel's tick is among them.
    """
    output = unthrottled("\n".join(runs.values()), "--kernel", image)
    turns = re.findall(r"([\d.]+) usecs/op", output)
    return {name: 10 * round(50 * float(turn)) for name, turn in zip(runs, turns, strict=True)}


def symbols(map_file: Path) -> list[tuple[int, str]]:
    """The functions of a kernel, by address."""
    words = (line.split() for line in map_file.read_text().splitlines())
    return sorted((int(address, 16), name) for address, kind, name in words if kind in "tTwW")


def opening(kernel: Path) -> dict[str, Any]:
    """What the interrupts before and after a window execute and touch, on average."""
    functions = symbols(kernel / "System.map")
    mark = next(address for address, name in functions if name == "perf_event_overflow")
    plugin, counted = OUT / "interrupts.so", OUT / "interrupts.txt"
    flags = must("pkg-config", "--cflags", "glib-2.0").split()
    include = f"-I{TOP / 'build/emulator/include'}"
    words = "-std=gnu11", "-O2", "-Wall", "-Werror", "-fPIC", "-shared", include, *flags
    SHARE.mkdir(parents=True, exist_ok=True)
    must("gcc", *words, "-o", plugin, TOP / "emulator/interrupts.c")
    unthrottled(
        recording("opening.data", GROUP, PROGRAM),
        *("--kernel", kernel / "arch/arm64/boot/Image", "--model", "small"),
        f"--qemu=-plugin {plugin},mark={mark},window={BETWEEN},out={counted}",
    )
    opens, closes, *executed = (line.split() for line in counted.read_text().splitlines())
    number = int(opens[0])
    instructions: Any = Counter()  # of floats
    for pc, times in executed:
        name = functions[bisect_right(functions, (int(pc, 16), "~")) - 1][1]
        instructions[name] += int(times) / number
    return {
        "windows": number,
        **{
            name: dict(zip(COUNTS, (int(count) / int(row[0]) for count in row[1:]), strict=True))
            for name, row in (("opens", opens), ("closes", closes))
        },
        "functions": {name: round(n, 1) for name, n in instructions.most_common(LISTED)},
    }


def run_time(name: str, model: str, command: str = "perf functions record -q") -> dict[str, float]:
    """How much longer a program takes with a recording, the default one or that of a command; its
    samples and bytes per second.
    """
    timed, data = SHARE / "timed.py", SHARE / "cost.data"
    SHARE.mkdir(parents=True, exist_ok=True)
    timed.write_text(TIMED)
    timed_program = f"python3 /share/timed.py {PROGRAMS[name]}"
    out = in_guest(
        f"cd /tmp; {timed_program} > /dev/null; settle; {timed_program}; settle\n"
        f"{command} -o cost.data -- {timed_program}\nmv cost.data /share\n",
        *("--model", model),
        share=SHARE,
        timeout=1200,
    )
    alone, recorded = (int(line) for line in out.split("\n") if line.isdigit())
    second = recorded / 1e9
    return {
        "times": recorded / alone,
        "samples": records(data).samples / second,
        "bytes": data.stat().st_size / second,
    }


def code_size(core: Path) -> int:
    """Bytes of code in an object file."""
    return sum(
        int(line.split()[1])
        for line in tool("size", "-A", core).splitlines()
        if line.startswith(".text")
    )


def measure() -> dict:
    """Builds and runs the kernels."""
    program("overflows")
    before, stop_start = OUT / "before", OUT / "stop-start"
    own = TOP / "patches/overrides" / BASE / FIX
    keep_kernel(before, "pristine", own if own.exists() else TOP / "patches" / FIX)
    keep_kernel(stop_start, "series", HERE / "stop-start.patch")
    series = BUILD / "kernel" / ARCH
    images = {
        "pristine": before / "Image",
        "series": series / "arch/arm64/boot/Image",
        "stop-start": stop_start / "Image",
    }

    instructions, sizes, switch = {}, {}, {}
    for name, image in images.items():
        numbers, sizes[name] = boot(image, RUNS[name])
        instructions.update(numbers)
    for name, runs in SWITCHES.items():
        switch.update(switches(images[name], runs))
    sizes["pristine"][".text of core.o"] = code_size(before / "core.o")
    sizes["series"][".text of core.o"] = code_size(series / CORE)
    more = added(instructions)
    return {
        "instructions": {name: round(number, 1) for name, number in instructions.items()},
        "added": more,
        "module": by_module(),
        "stop-start ratio": round(more["stop-start"] / more["used"], 1),
        "switch": switch,
        "opening": opening(series),
        "default": {
            name: {where: run_time(name, model) for where, model in MODELS.items()}
            for name in PROGRAMS
        },
        "bytes": {
            name: {"before": before, "after": sizes["series"][name]}
            for name, before in sizes["pristine"].items()
        },
    }


def added(instructions: dict[str, float]) -> dict[str, float]:
    """Instructions that each run has more than the pristine kernel's."""
    return {
        name: round(number - instructions["pristine"], 1) for name, number in instructions.items()
    }


def table(instructions: dict[str, float], rows: dict[str, str]) -> list[str]:
    """Lines of Markdown; rows: what each run is."""
    lines = [
        "",
        "| an overflow of arm_pmuv3, with its sample | instructions | added |",
        "|---|--:|--:|",
    ]
    more = added(instructions)
    for name, text in rows.items():
        other = f"{more[name]:.0f}" if name != "pristine" else ""
        lines.append(f"| {text} | {instructions[name]:.0f} | {other} |")
    return lines


def report(result: dict) -> str:
    """The result as Markdown."""
    lines = [
        prose(
            "Each instruction takes one nanosecond in the emulated machine. So the time of an "
            "overflow, from the interrupt to the return, is an exact count of its instructions. "
            "All kernels have the series' fix of arm_pmuv3 (topic arm-pmu), which any event needs. "
            "Differences are those of the numbers before they were rounded. "
            "The second table is of the module, and of a kernel without that fix:"
        ),
        *table(
            result["instructions"],
            {
                "pristine": "without the series",
                "unused": "with the series, the event does not alternate",
                "used": "with the series, it alternates",
                "jitter": "with the series, it alternates with jitter",
                "stop-start": "for comparison: the PMU is stopped and started on each overflow",
            },
        ),
        *table(
            result["module"],
            {
                "pristine": "without the series, without its fix",
                "not used": "with the module, the event does not alternate",
                "used": "with the module, it alternates",
                "jitter": "with the module, it alternates with jitter",
            },
        ),
        "",
        "| bytes | without the series | with it | growth |",
        "|---|--:|--:|--:|",
    ]
    for name, size in result["bytes"].items():
        lines.append(
            f"| `{name}` | {size['before']} | {size['after']} | {size['after'] - size['before']} |"
        )
    switch = result["switch"]
    lines += [
        "",
        "| a context switch (`perf bench sched pipe`) | without the series | with it |",
        "|---|--:|--:|",
        f"| no event | {switch['none before']} | {switch['none']} |",
        f"| each thread has an event | {switch['plain before']} | {switch['plain']} |",
        f"| each thread has an event that alternates | | {switch['alternating']} |",
    ]
    after = f"""
        For an event that does not alternate, the core executes one more load and one more branch.
        RFC v2 of the published series stopped and started the PMU on each overflow, which adds
        {result['stop-start ratio']} times as many instructions. Compilers and configurations that
        inline other functions may change these numbers by a few instructions.
    """
    return "\n".join(
        [
            *lines,
            *("", prose(after)),
            *report_opening(result["opening"]),
            *report_default(result["default"]),
        ]
    )


def report_default(result: dict[str, Any]) -> list[str]:
    """Lines of Markdown about the default recording."""
    caption = f"""
        `perf functions record` without options, on one CPU of 1 GHz, which also runs perf. Goals: at
        most {LONGER} times the run time, and at most {MOST_SAMPLES:,} samples a second.
    """
    lines = ["", prose(caption), "", "| program | machine | run time | samples a second | goals |"]
    lines.append("|---|---|--:|--:|---|")
    for name, rows in result.items():
        for where, row in rows.items():
            met = round(row["times"], 3) <= LONGER and row["samples"] <= MOST_SAMPLES
            lines.append(
                f"| {name} | {where} | {row['times']:.3f} | {row['samples']:,.0f} "
                f"| {'met' if met else 'not met'} |"
            )
    return lines


def report_opening(result: dict[str, Any]) -> list[str]:
    """Lines of Markdown about the interrupts around a window."""
    caption = f"""
        The interrupts of `{GROUP}` around {result['windows']:,} windows of python3. The table has
        the means of what they execute and touch, in lines of 64 bytes and pages of 4 KiB.
    """
    lines = ["", prose(caption), "", f"| an interrupt that | {' | '.join(COUNTS)} |"]
    lines.append(f"|---|{'--:|' * len(COUNTS)}")
    for row, text in (("opens", "opens a window"), ("closes", "closes one")):
        lines.append(f"| {text} | {' | '.join(f'{result[row][name]:.0f}' for name in COUNTS)} |")
    lines += ["", "| function | instructions when a window opens |", "|---|--:|"]
    lines += [f"| `{name}` | {number:.0f} |" for name, number in result["functions"].items()]
    return lines
