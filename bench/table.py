# SPDX-License-Identifier: GPL-2.0
"""Compares the table of `make demo MODEL=none` with the known behaviour of the benchmark."""

from bench.guest import OUT
from bench.markdown import prose
from tests.harness.env import in_guest, must
from tests.harness.truth import read_truth

TITLE = "The table and the truth"


def measure() -> dict:
    """Records the benchmark, counts it one instruction at a time."""
    must("make", "demo", "MODEL=none", f"OUT={OUT / 'demo'}")
    truth = read_truth(in_guest("benchmark --truth --faults 0 1"))
    header, *rows = (OUT / "demo/functions.txt").read_text().splitlines()
    lines = [f"{header}   true %I, PF/KI"]
    for row in rows:
        what = truth.get(row.split()[0])
        lines.append(
            row
            + (
                f"    {100 * what.share:6.2f} {1000 * what.faults / what.length:6.3f}"
                if what
                else ""
            )
        )
    return {
        "windows": sum(int(row.split()[1]) for row in rows),
        "text": "\n".join(f"  {line}" for line in lines),
    }


def report(result: dict) -> str:
    """The result as Markdown."""
    about = """
        `make demo MODEL=none` prints this table. The two columns on the right are the truth,
        counted one instruction at a time without a PMU. Each instruction takes one cycle in this
        machine, so every function has a CPI of 1. Only the rate of page faults differs.
    """
    text = "\n".join(line.removeprefix("  ") for line in result["text"].splitlines())
    return f"{prose(about)}\n\n```\n{text}\n```"
