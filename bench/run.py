#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the measurements of bench/ and writes them down.

usage: run.py [MEASUREMENT...]        default: all

A measurement is a module with a TITLE, measure(), which returns what goes into
build/BASE/bench/results.json under its name, and report(), which makes Markdown of it
for build/BASE/bench/results.md. Both files hold what one run has measured, and how many
seconds each took, of which state of the series; one that fails is left out.
"""

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
MEASUREMENTS = (
    "table",
    "published",
    "accuracy",
    "scaling",
    "stitched_lbr",
    "cost",
    "by_module",
    "resonance",
    "collect",
    "hosts",
)


def main() -> None:
    wanted = sys.argv[1:] or MEASUREMENTS
    unknown = [name for name in wanted if name not in MEASUREMENTS]
    if unknown:
        sys.exit(f"bench: no measurement {' '.join(unknown)}; there is: {' '.join(MEASUREMENTS)}")
    sys.path.insert(0, str(TOP))
    guest, series = map(importlib.import_module, ("bench.guest", "scripts.series"))
    results, reports, failures, seconds = {}, [], [], {}
    for name in wanted:
        start = time.monotonic()
        measurement = importlib.import_module(f"bench.{name}")
        try:
            results[name] = measurement.measure()
        except (AssertionError, LookupError, OSError, subprocess.CalledProcessError) as error:
            failures.append(f"bench: {name}: {error}")
            continue
        reports.append(f"## {measurement.TITLE}\n\n{measurement.report(results[name])}\n")
        seconds[name] = round(time.monotonic() - start, 1)
        print(f"  {name:58} {seconds[name]:6.1f} s", flush=True)
    print(f"  {'all':58} {sum(seconds.values()):6.1f} s", flush=True)
    results |= {"seconds": seconds, "tree": series.measured(guest.LINUX)}
    guest.OUT.mkdir(parents=True, exist_ok=True)
    for file, text in ("results.json", json.dumps(results, indent=2) + "\n"), (
        "results.md",
        "\n".join(reports),
    ):
        (guest.OUT / f"{file}.new").write_text(text)
        (guest.OUT / f"{file}.new").replace(guest.OUT / file)
    print("\n" + "\n".join(reports), end="")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
