# SPDX-License-Identifier: GPL-2.0
"""Measures the cost of stitching LBR call stacks, and compares it with the published one.

tests/harness/lbr.py writes a recording of the published program, which has a chain of 43 calls,
with the 32 LBRs of a CPU. perf report reads the file with and without --stitch-lbr; its time is the
processor time that the kernel accounts to it.
"""

import re
from pathlib import Path

from bench import collect
from bench.guest import OUT
from bench.markdown import prose
from tests.harness import lbr

TITLE = "Stitched LBR call stacks"
SAMPLES, RUNS = 100_000, 5
OPTIONS = {"without": (), "with": ("--stitch-lbr",)}
# "Stitch LBR call stack (Perf Tools)", Kan Liang, 28 February 2020
PUBLISHED = {"levels": {"without": 32, "with": 43}, "seconds": {"without": 11.0, "with": 15.3}}


def run(path: Path, *options: str) -> tuple[float, int]:
    """Processor time in seconds of a report, and the callers of f43 in it."""
    seconds, _, text = collect.run(
        path, "report", "--stdio", "-g", "folded,0,callee,function,count", *options
    )
    return seconds, max(chain.count(";") for chain in re.findall(r"^\d+ (\S+)$", text, re.M))


def increase(values: dict) -> float:
    """Returns the relative increase with stitching."""
    return values["with"] / values["without"] - 1


def measure(samples: int = SAMPLES) -> dict:
    """Writes the recording, reads it."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / "stitched.data"
    lbr.write_chain(path, samples)
    # take the best of several runs in turns, so that other load affects both
    runs = [{name: run(path, *options) for name, options in OPTIONS.items()} for _ in range(RUNS)]
    found = {name: min(row[name] for row in runs) for name in OPTIONS}
    result = {
        "samples": samples,
        "bytes": path.stat().st_size,
        "published": PUBLISHED,
        "seconds": {name: seconds for name, (seconds, _) in found.items()},
        "levels": {name: levels for name, (_, levels) in found.items()},
    }
    path.unlink()
    return {
        **result,
        "more time": increase(result["seconds"]),
        "more levels": increase(result["levels"]),
        "more time, published": increase(PUBLISHED["seconds"]),
    }


def report(result: dict) -> str:
    """The result as Markdown."""
    about = f"""
        A CPU's last branch records (LBR) hold only 32 levels of a call chain.
        `perf report --stitch-lbr` makes longer chains from several samples. The columns *published*
        have the figures of the patch that added the option (2020). The same program, with a chain
        of 43 calls, is written into a recording as such a CPU would record it
        ({result['samples']:,} samples, {result['bytes'] / 1e6:.0f} MB, nearly all of them 43 levels
        deep), and read with and without the option.
        `perf functions report --by callchain --stitch-lbr` uses these chains to match windows.
    """
    lines = [
        prose(about),
        "",
        "| `perf report` | levels | s | published: levels | s |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, option in (("without", "without the option"), ("with", "`--stitch-lbr`")):
        lines.append(
            f"| {option} | {result['levels'][name]} | {result['seconds'][name]:.2f} | "
            f"{PUBLISHED['levels'][name]} | {PUBLISHED['seconds'][name]:.1f} |"
        )
    lines.append(
        f"| increase | {100 * result['more levels']:.1f} % | {100 * result['more time']:.0f} % | "
        f"{100 * increase(PUBLISHED['levels']):.1f} % "
        f"| {100 * result['more time, published']:.0f} % |"
    )
    return "\n".join(lines)
