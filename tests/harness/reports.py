# SPDX-License-Identifier: GPL-2.0
"""Sums files of functions with random windows, and of call chains; tables and reports of them."""

import json
import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.harness import sumsfile
from tests.harness.env import CHECK, PERF, TOP, must, run

DATA = CHECK / "report"
REPORT = TOP / "report/functions-report"
Table = dict[str, Any]
NAMES = [
    f"{verb}_{noun}"
    for verb in ("parse", "copy", "hash", "sort")
    for noun in ("block", "line", "tree", "Word", "page", "list")
]
# names that try to get out of the page
NASTY = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a\u2028b\u2029c",
    "&lt;b&gt; ]]> --> '\"`",
    "<!--<script>",
    "operator<<(std::ostream&, char const*)",
    "@DATA@ @TITLE@ @CODE@",
    "😀" * 30,
    "toString",
    "__proto__",
)


def sums(events: Sequence[str], windows: Mapping[str, sumsfile.Windows]) -> str:
    """A sums file of windows by function. As many samples of their leader tell the shares."""
    samples = {name: [own[0] for own in rows] for name, rows in windows.items()}
    return "".join(
        (
            sumsfile.HEAD.replace("throttled\t0", "throttled\t3"),
            sumsfile.window_set(events, windows, even=2),
            sumsfile.sample_set({events[0]: samples}, even=2, hidden=True),
            "end\n",
        )
    )


def random_sums(path: Path, names: Sequence[str], seed: int = 1) -> Path:
    """A sums file of functions. The first one has no instructions, some have few windows."""
    draw = random.Random(seed)
    windows = {}
    for name in names:
        ipc, rate = draw.uniform(0.25, 4) * (name != names[0]), draw.choice((0, 0.02, 0.1))
        windows[name] = []
        for _ in range(2 + int(draw.paretovariate(0.4)) % 400):
            instructions = int(300 * ipc * draw.uniform(0.7, 1.3))
            misses = int(instructions * rate * draw.uniform(0.5, 1.5))
            windows[name].append([300, misses, instructions])
    events = "cycles", "cache-misses", "instructions"  # leader, then by name
    path.write_text(sums(events, windows), encoding="utf-8")
    return path


def chain_sums(chains: Mapping[str, tuple[int, ...]]) -> str:
    """A sums file by call chain: (windows, cycles, instructions, page-faults).

    All windows of a chain are alike.
    """
    windows = {
        chain: [[number / windows for number in totals]] * windows
        for chain, (windows, *totals) in chains.items()
    }
    return sums(("cycles", "instructions", "page-faults"), windows).replace("symbol", "callchain")


def perf_table(*arguments: object) -> Table:
    """The JSON of perf itself."""
    words = PERF, "functions", "report", "-j", *arguments
    return json.loads(must(*words, stderr=subprocess.DEVNULL))


def report(*arguments: object, **options) -> subprocess.CompletedProcess:
    """Runs functions-report, with messages apart from output."""
    return run(REPORT, *arguments, **{"stderr": subprocess.PIPE, **options})


def prepare() -> None:
    """Makes what the tests of reports need."""
    DATA.mkdir(parents=True, exist_ok=True)
    must("make", "build/report/template.html")


def page(name: str, *arguments: object) -> Path:
    """Makes a page."""
    path = DATA / f"{name}.html"
    must(REPORT, "--html", path, *arguments, stderr=subprocess.DEVNULL)
    return path
