# SPDX-License-Identifier: GPL-2.0
"""The module for kernels that cannot be rebuilt beside a kernel with the series: what an overflow costs, what a table says.

Costs are counted as in cost.py; tables are held against what the benchmark is known to do.
"""

from pathlib import Path

import known
from cost import added, boot, per_overflow, table
from env import ARCH, BUILD, LINUX, functions, must
from guest import CROSS, HERE, SHARE, program, unthrottled
from machines import BY_MODULE
from pristine import IMAGE, pristine_module

TITLE = "By the module"

SERIES = BUILD / "kernel" / ARCH / "arch/arm64/boot/Image"
INSMOD = "insmod /share/perf_alt_period.ko\n"
# the arguments of overflows.c: one overflow in 1000 instructions in all cases
LOADED = {"loaded": "1000", "module": "1500 500", "module jitter": "1500 500 12"}
LONG, WINDOW = 999700, 300
RECORD = f"""perf record -q -T --sample-cpu -m 16M -o /tmp/perf.data \\
	-e '{{cycles/period={LONG},alt-period={WINDOW}/,instructions,page-faults}}:uS' -- benchmark --faults 0 1 > /dev/null
mv /tmp/perf.data /share/"""


def costs() -> dict[str, float]:
    """Instructions of an overflow."""
    program("overflows")
    must(f"{CROSS}gcc", "-O2", "-Wall", "-Werror", "-static", "-isystem", LINUX / "tools/include/uapi", "-Wl,--wrap=syscall",
         "-o", SHARE / "overflows-by-module", HERE / "overflows.c", BY_MODULE)
    unthrottled(INSMOD + "\n".join(f"./overflows-by-module {arguments} > '{name}'" for name, arguments in LOADED.items()),
                "--kernel", IMAGE)
    return {**boot(IMAGE, {"pristine": "1000"})[0], **boot(SERIES, {"used": "1500 500", "jitter": "1500 500 12"})[0],
            **{name: per_overflow((SHARE / name).read_text()) for name in LOADED}}


def accuracy(recording: Path, truth: known.Truth) -> dict[str, float]:
    """How a table differs from the truth."""
    measured = functions(recording, "-s", "discard")
    cycles = {name: measured[name]["sums"][0]["totals"]["cycles"] if name in measured else 0 for name in truth}
    total = sum(cycles.values())
    rate, error, _ = known.rates(measured, "page-faults")["dcache_miss"]
    return {"windows": total // WINDOW,
            "share": round(max(100 * abs(cycles[name] / total - share) for name, share in known.predicted(truth, WINDOW).items()), 2),
            "faults": round(1000 * rate, 3), "error": round(1000 * error, 3)}


def measure() -> dict:
    """Makes the module and runs both kernels."""
    SHARE.mkdir(parents=True, exist_ok=True)
    pristine_module(SHARE)
    instructions = costs()
    unthrottled(f"benchmark --truth --faults 0 1 > truth\n{RECORD}series.data", "--kernel", SERIES)
    unthrottled(f"{INSMOD}{RECORD}module.data", "--kernel", IMAGE)
    truth = known.truth((SHARE / "truth").read_text())
    row = truth["dcache_miss"]
    return {"instructions": {name: round(number, 1) for name, number in instructions.items()},
            "added": added(instructions),
            "tables": {name: accuracy(SHARE / f"{name}.data", truth) for name in ("series", "module")},
            "true faults": round(1000 * row.faults / row.length, 3)}


def report(result: dict) -> str:
    """The result as Markdown."""
    lines = table(result, {"pristine": "without the series", "used": "with it, the event alternates",
                           "jitter": "with it, with jitter", "loaded": "module, the event does not alternate",
                           "module": "module, it alternates", "module jitter": "module, with jitter"})
    lines += ["", "| table of the benchmark | windows | largest error of a share, in points | PF/KI of `dcache_miss` | standard error |",
              "|---|--:|--:|--:|--:|"]
    for name, row in result["tables"].items():
        lines.append(f"| {name} | {row['windows']} | {row['share']} | {row['faults']:.3f} | {row['error']:.3f} |")
    lines.append(f"| truth | | | {result['true faults']:.3f} | |")
    return "\n".join(lines)
