# SPDX-License-Identifier: GPL-2.0
"""Measures which jitter breaks a resonance between a loop and the alternation.

The loop of resonance.c goes round exactly 37 times in a long interval and a
window, so that without jitter each window is at the same place. The shares of
its three functions are known from their size: they have no branch.

With jitter the place of the windows takes a random step in each pair, and what
this is worth can be calculated: with L the length of the loop, the mean of
exp(2 pi i place / L) falls by a factor r with each step, sin(pi (2h + 1) / L) /
((2h + 1) sin(pi / L)) for an interval drawn from 2h + 1 integers. N windows then
say at least as much as N (1 - |r|) / (1 + |r|) independent ones.

The jittered rows differ from run to run, by the standard error: the kernel's
random numbers are seeded from the times of interrupts, and those of the shared
folder are the host's.

The same loop is recorded as by default, in which each event samples itself. This needs the machine
with caches: QEMU's own PMU loses overflows of instructions.
"""

import math

from bench.experiment import functions_of, value_of
from bench.guest import OUT, SHARE, program, recording, tool, unthrottled
from bench.markdown import prose
from tests.harness.env import PERF
from tests.harness.tables import ended

TITLE = "Resonance"
JITTERS = (0, 7, 9, 11, 12, 14, 16)
WINDOW, TURNS_IN_A_PAIR, WINDOWS = 300, 37, 3236
NAMES = ("largest", "middle", "smallest")
TURNS = 80000  # of the loop, for some thousand samples of each event

LENGTH = """
for turns in 100 200; do
	perf stat -x, -e instructions:u ./resonance $turns 2>&1 | cut -d, -f1
done
"""


def independent(windows: int, length: int, pair: int, jitter: int) -> float:
    """The number of independent windows that tell as much as these (see the text above)."""
    correlation = 1.0
    for period in (pair - WINDOW, WINDOW) if jitter else ():
        width = 2 * min(1 << jitter, period // 2) + 1
        correlation *= math.sin(math.pi * width / length) / (width * math.sin(math.pi / length))
    return windows * (1 - abs(correlation)) / (1 + abs(correlation))


def windows_of(name: str) -> dict[str, int]:
    """The number of windows that end in each function."""
    found = {symbol: own for (symbol, _), (own, _) in ended(SHARE / name, "--symfs", OUT).items()}
    return {name: found.get(name, 0) for name in NAMES}


def row_of(
    windows: dict[str, int], truth: dict[str, float], length: int, pair: int, jitter: int
) -> dict:
    """Shares against the truth, and by how much they may differ from it."""
    number = sum(windows.values())
    worth = independent(number, length, pair, jitter)
    share = truth[NAMES[0]]
    return {
        "windows": number,
        "shares": {name: count / number for name, count in windows.items()},
        "independent": round(worth, 1),
        "largest deviation": max(abs(windows[name] / number - truth[name]) for name in NAMES),
        "standard error": math.sqrt(share * (1 - share) / worth) if worth >= 1 else None,
    }


def event_samples() -> dict[str, dict]:
    """Shares of the instructions by samples of the default recording, and their intervals."""
    name = "resonance-default.data"
    unthrottled(
        f"perf functions record -q -o /tmp/{name} -- /share/resonance {TURNS}\n"
        f"cp /tmp/{name} /share\n",
        *("--model", "small"),
    )
    rows = functions_of(SHARE / name, PERF, "--symfs", OUT, "--source", "samples")
    return {
        row["symbol"]: {
            "share": value_of(row, "%I") / 100,
            "interval": [row["metrics"]["%I"][end] / 100 for end in ("low", "high")],
        }
        for row in rows
        if row["symbol"] in NAMES
    }


def measure() -> dict:
    """Records the loop with each jitter."""
    table = (line.split() for line in tool("nm", "-S", program("resonance")).splitlines())
    size = {words[3]: int(words[1], 16) // 4 for words in table if len(words) == 4}
    short, long = map(int, unthrottled(LENGTH).split())
    length = (long - short) // 100
    truth = {name: size[name] / length for name in NAMES}
    pair = TURNS_IN_A_PAIR * length
    # the first interval opens no window, and the last pair may be short of a few instructions
    periods = f"period={pair - WINDOW},alt-period={WINDOW}"
    unthrottled(
        "".join(
            recording(
                f"resonance-{n}.data",
                f"{{cycles/{periods}{f',alt-period-jitter={n}' if n else ''}/,instructions}}:uS",
                f"/share/resonance {TURNS_IN_A_PAIR * (WINDOWS + 1)}",
            )
            for n in JITTERS
        )
    )
    rows = {
        str(n): row_of(windows_of(f"resonance-{n}.data"), truth, length, pair, n) for n in JITTERS
    }
    return {
        "loop": length,
        "pair": pair,
        "truth": truth,
        "jitter": rows,
        "event samples": event_samples(),
    }


def report(result: dict) -> str:
    """The result as Markdown."""

    def line(first: str, shares: dict[str, float], *rest: str) -> str:
        return (
            f"| {first} | "
            + " | ".join([*(f"{100 * shares[name]:.1f}" for name in NAMES), *rest])
            + " |"
        )

    about = f"""
        A loop of {result['loop']:,} instructions runs exactly {result['pair'] // result['loop']}
        times in a long period and its window. So without jitter each window is at the same place of
        the loop. The columns {', '.join(f'*{name}*' for name in NAMES)} have the shares of the
        loop's three functions, in percent; the first row has the truth:
    """
    lines = [
        prose(about),
        "",
        f"| jitter | {' | '.join(NAMES)} | deviation | standard error | windows | worth |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
        line("truth", result["truth"], "", "", "", ""),
    ]
    for jitter, row in result["jitter"].items():
        error = row["standard error"]
        lines.append(
            line(
                jitter,
                row["shares"],
                f"{100 * row['largest deviation']:.1f}",
                "any" if error is None else f"{100 * error:.1f}",
                str(row["windows"]),
                f"{row['independent']:.0f}",
            )
        )
    columns = """
        *jitter* is the N of `alt-period-jitter=N`. *deviation* is the error of the share that is
        furthest from the truth, and *standard error* is the error that chance explains. *worth* is
        the number of windows at random, independent places that carry as much information. *any*:
        all windows carry less information than one random window, so any deviation is possible.
        Rows with jitter differ from run to run by their standard error.
    """
    return "\n".join([*lines, "", prose(columns), "", prose(report_samples(result))])


def report_samples(result: dict) -> str:
    """What event samples tell of the loop."""
    found = result["event samples"]
    shares = ", ".join(f"{100 * found[name]['share']:.1f}" for name in NAMES)
    within = sum(
        found[name]["interval"][0] <= result["truth"][name] <= found[name]["interval"][1]
        for name in NAMES
    )
    return f"""
        By the event samples of the default recording, in the machine with caches, the shares are
        {shares} % of the instructions. {within} of {len(NAMES)} intervals contain the truth.
    """
