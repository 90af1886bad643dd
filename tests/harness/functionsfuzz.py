# SPDX-License-Identifier: GPL-2.0
"""Builds fuzz_sums.c and fuzz_recordings.c, the fuzzers of perf functions, and their seeds."""

import struct
from collections.abc import Iterator
from pathlib import Path

from tests.harness import perfwrite as pw
from tests.harness import sumsfile
from tests.harness.env import BASE
from tests.harness.parserfuzz import build
from tests.harness.recording import LONG, WINDOW, Recording, Windows

# compiled with the sanitizers; of the rest of perf they only see its use of the heap
OF_SUMS = "columns diff diff-print effect interval json print sums sums-file text u192"
SUMS = tuple(f"functions/{name}" for name in OF_SUMS.split())
RECORDINGS = (
    *SUMS,
    *(f"functions/{name}" for name in "events recording resolve windows".split()),
    *"evlist evsel session".split(),
    *(("read-delta",) if BASE == "6.12" else ()),  # a part of session on newer bases
)


def build_sums(folder: Path) -> Path:
    return build(folder, "fuzz_sums", SUMS)


def build_recordings(folder: Path) -> Path:
    return build(folder, "fuzz_recordings", RECORDINGS)


def sums_seeds(folder: Path) -> None:
    """Writes sums files of one group and of two."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = "perf-function-sums 4\nby\tsymbol\t0\nlost\t0\nthrottled\t0\ncpu\tcpu slots=4\n"
    one = "group\tauto\t999700\t0\t300\t4\t0\t1\tcycles\tinstructions\n"
    counts, values = "9\t7", "2100\t700\t630000\t210000\t70000"
    intervals = sumsfile.intervals(2, [(300, 100)] * 3, [(999700, 300000)] * 2) + "\n"

    def rows(opened: str, begun: str, of_begun: str) -> str:
        return "".join(
            f"sums\t{name}\t/x\t-\t{opened}\t{counts}\t5\t{begun}\t{values}\t{of_begun}\n"
            for name in ("f", "g")
        )

    auto = rows("8", "8\t6", "2400\t900\t810000\t210000\t90000")
    none = rows("0", "0\t0", "0" + 4 * "\t0")

    two = "group\tnone\t1000\t0\t0\t0\t0\t0\tcycles\tpage-faults\n"
    (folder / "one").write_text(f"{begin}{one}{intervals}{auto}end\n")
    (folder / "two").write_text(f"{begin}{one}{intervals}{auto}{two}{none}end\n")
