#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the measurements of bench/ and writes the results page.

A measurement is a module of bench/ with a TITLE, measure(), which returns what goes into
results.json under its name, report(), which makes Markdown of that, and PICTURES, the
files that it draws. They leave README.md, results.json and the pictures in
build/BASE/bench; results.json also holds how many seconds each measurement took, and
which state of the series it measured. Earlier results stay there, so a measurement
can be repeated; the page names what is of an older state. Those of the machine with
caches and of no kernel run if they are named, and have a page each.
results/README.md has findings of several measurements (findings.py).
"""

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

TOP = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOP), str(TOP / "scripts")]

# pylint: disable-next=wrong-import-position,import-error
import mail

from bench.markdown import bullet, prose  # pylint: disable=wrong-import-position

MEASUREMENTS = (
    "table",
    "published",
    "accuracy",
    "scaling",
    "cost",
    "by_module",
    "resonance",
    "collect",
    "hosts",
)
# in the machine with caches
MODELLED = ("bottlenecks", "branches", "bursts", "candidates", "layout", "model", "truth")
# these, and three more: each has a page and a JSON file of its own, NAME.md and NAME.json
APART = (*MODELLED, "diff", "week", "top")
PICTURES = "pictures"  # shows, measures nothing
ENDS = (".json", ".md")
DEFAULT_BASE = "6.12"


def module_of(name: str) -> ModuleType:
    """The module of a measurement."""
    return importlib.import_module(f"bench.{name}")


def short(results: dict[str, Any], command: str) -> Iterator[str]:
    """The results that README quotes, each with the command that repeats it."""
    if published := results.get("published"):
        ratios = published["ratios"]
        yield bullet(
            f"""Without the kernel's limit on the sampling rate, a recording with a period of 300
            cycles is {ratios['file, none']:.0f} times as large as one that alternates 999,700 and
            300 cycles, and `perf functions report` needs {ratios['native, none']:.0f} times as long
            for its table. With the default limit the ratios are {ratios['file, 25 %']:.0f} and
            {ratios['native, 25 %']:.1f}. A program runs {ratios['run time']:.3f} times as long with
            alternate periods as with one sample in each million cycles. (`{command}published`)"""
        )
    if accuracy := results.get("accuracy"):
        percent = module_of("accuracy").percent
        near, far, near_discard, far_discard = (
            module_of("accuracy").select(
                accuracy, depth=depth, kind="alternate", window=300, mode=mode
            )[0]
            for mode in ("auto", "discard")
            for depth in (1, 2)
        )
        yield bullet(
            f"""Calls of the benchmark take 3,365 to 11,539 cycles. With windows of 300,
            {percent(near['share error'])} % of the cycles go to a wrong function (by chance alone:
            {percent(near['by chance'])} %), and the page-fault rate of `dcache_miss` is
            {percent(abs(near['rate error']))} % off. If calls are an eighth as long, these errors
            are {percent(far['share error'])} % and {percent(abs(far['rate error']))} %. With
            `--share discard`, {percent(near_discard['share error'])} % of the cycles (short calls:
            {percent(far_discard['share error'])} %) go to a wrong function. (`{command}accuracy`)"""
        )
    if cost := results.get("cost"):
        added = cost["added"]
        saved = min(added[name] - added[f"quiet {name}"] for name in ("unused", "used", "jitter"))
        yield bullet(
            f"""An overflow of arm_pmuv3 with its sample takes
            {cost['instructions']['pristine']:.0f} instructions. The series adds
            {added['unused']:.0f}, or {added['used']:.0f} if the event alternates, or
            {added['jitter']:.0f} with jitter. Topic `quiet` saves {saved:.0f} or more.
            (`{command}cost`)"""
        )
    if by_module := results.get("by_module"):
        added = by_module["added"]
        yield bullet(
            f"""The module adds {added['module']:.0f} instructions to an overflow of an event that
            alternates, and {added['loaded']:.0f} to that of any other event.
            (`{command}by_module`)"""
        )
    if collect := results.get("collect"):
        yield bullet(
            f"""`perf functions report` reads {collect['sizes'][-1]['group samples'] / 1e6:.1f}
            million samples of a group in {collect['native to decode']:.2f} times the time of
            `perf report --stats`. The Python script takes {collect['script to native']:.1f} times as
            long. (`{command}collect`)"""
        )


def older(trees: dict[str, dict[str, str]]) -> Iterator[str]:
    """Names measurements older than a change of the series, and the paths changed since then."""
    *_, newest = {}, *trees.values()
    names = [name for name in MEASUREMENTS if name in trees and trees[name] != newest]
    changed = {path for name in names for path in newest if trees[name].get(path) != newest[path]}
    if names:
        yield prose(
            f"""These sections were measured before the last change of
            {' or '.join(f'`{path}`' for path in sorted(changed))}:
            {', '.join(f'*{module_of(name).TITLE}*' for name in names)}."""
        )


def others(base: str) -> Iterator[str]:
    """A list of the pages of measurements that are in no other one."""
    pages = [path for name in APART if (path := TOP / "results" / base / f"{name}.md").is_file()]
    if pages:
        links = [
            f"[{path.read_text().partition(chr(10))[0].removeprefix('# ')}]({path.name})"
            for path in pages
        ]
        yield prose(f"These measurements have a page each: {', '.join(links)}.")


def page(results: dict[str, Any], base: str) -> str:
    """README.md of the results of a base of Linux."""
    command = f"make bench{'' if base == DEFAULT_BASE else f' BASE={base}'}"
    kernel = results.get("published", {}).get("kernel", base)
    minutes = sum(results["seconds"].values()) / 60
    parts = [
        f"# What was measured on Linux {base}",
        prose(
            f"""`{command}` repeats the measurements on this page in {minutes:.0f} minutes. It
            writes `results.json` and a new page to `build/{base}/bench`; `bench/run.py --keep`
            copies them here. `bench/run.py --report results/{base}/results.json` writes the page
            from the kept figures, without measuring."""
        ),
        prose(
            f"""The recordings were made with Linux {kernel} in the emulated arm64 machine. There,
            each instruction takes one cycle of one nanosecond, and there are no caches. Samples,
            sizes of recordings and run times are measured inside the machine, on its virtual clock.
            The number of samples without a rate limit and the errors without jitter are the same in
            each run; sizes and run times repeat to 1 %. The time that a table takes is processor
            time of the computer that runs the emulator. It differs from run to run."""
        ),
    ]
    parts += others(base)
    parts += older(results.get("tree", {}))
    if lines := list(short(results, f"{command} BENCH=")):
        parts += ["## In short", "\n".join(lines)]
    for name in MEASUREMENTS:
        if name not in results:
            continue
        module = module_of(name)
        parts += [f"## {module.TITLE}", module.report(results[name])]
        pictures = getattr(module, "PICTURES", {})
        parts += [f"![{text}]({path.name})" for path, text in pictures.items()]
        seconds = results["seconds"][name]
        parts.append(f"Repeat: `{command} BENCH={name}` ({seconds:.0f} s).")
    return "\n\n".join(parts) + "\n"


def write(path: Path, text: str) -> None:
    """A file, whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


def report(path: Path) -> None:
    """Writes README.md and the plots beside a results.json."""
    os.environ["BENCH_OUT"] = str(path.parent.resolve())
    results = json.loads(path.read_text())
    write(path.with_name("README.md"), page(results, path.resolve().parent.name))
    for name in MEASUREMENTS:
        if name in results and hasattr(module_of(name), "PICTURES"):
            module_of(name).plot(results[name])


def keep() -> None:
    """Copies what the last run has left in build/6.12/bench to results/6.12."""
    guest = importlib.import_module("bench.guest")
    if guest.BUILD.name != DEFAULT_BASE:
        sys.exit(f"bench: only figures of {DEFAULT_BASE} are kept; results/7.3.md has what differs")
    kept = TOP / "results" / DEFAULT_BASE
    results = guest.OUT / "results.json"
    kept.mkdir(parents=True, exist_ok=True)
    files = [path for path in module_of(PICTURES).PICTURES if path.is_file()]
    if results.is_file() and set(MEASUREMENTS) <= set(json.loads(results.read_text())):
        files += [results, guest.OUT / "README.md"]
        files += [
            path for name in MEASUREMENTS for path in getattr(module_of(name), "PICTURES", ())
        ]
    else:
        print(f"bench: {results} is not from a complete `make bench`: only pictures are kept")
    for name in APART:
        files += [path for path in (guest.OUT / f"{name}{end}" for end in ENDS) if path.is_file()]
    for path in files:
        shutil.copyfile(path, kept / path.name)
        print(f"  {(kept / path.name).relative_to(TOP)}")
    findings()


def findings() -> None:
    """Writes results/README.md and its plots from what is kept."""
    module = module_of("findings")
    measured = module.read()
    write(module.KEPT / "README.md", module.page(measured))
    for path in (module.KEPT / "README.md", *module.plots(measured)):
        print(f"  {path.relative_to(TOP)}")


def write_alone(path: Path, result: dict[str, Any], seconds: float) -> None:
    """Writes and prints the page of a measurement that is in no other one."""
    module = module_of(path.name)
    text = f"# {module.TITLE}\n\n{module.report(result)}\n\n"
    base = os.environ.get("BASE", DEFAULT_BASE)
    command = f"make bench BENCH={path.name}{'' if base == DEFAULT_BASE else f' BASE={base}'}"
    text += f"Repeat: `{command}` ({seconds:.0f} s).\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    for end, content in zip(ENDS, (json.dumps(result, indent=2) + "\n", text)):
        write(path.with_suffix(end), content)
    print("\n" + text, end="")


def earlier(path: Path) -> dict[str, Any]:
    """The results that were measured before."""
    return json.loads(path.read_text()) if path.is_file() else {"seconds": {}, "tree": {}}


def measure(names: list[str]) -> None:
    """Runs measurements, writes and prints the page."""
    guest = importlib.import_module("bench.guest")
    path, failures, done = guest.OUT / "results.json", [], []
    results, tree = earlier(path), mail.measured(guest.LINUX)
    for name in names:
        start = time.monotonic()
        try:
            result = module_of(name).measure()
        except (AssertionError, LookupError, OSError, subprocess.CalledProcessError) as error:
            failures.append(f"bench: {name}: {error}")
            continue
        spent = round(time.monotonic() - start, 1)
        print(f"  {name:58} {spent:6.1f} s", flush=True)
        if name in APART:
            write_alone(guest.OUT / name, result, spent)
        elif name != PICTURES:
            results[name], results["seconds"][name] = result, spent
            results["tree"].pop(name, None)  # the last one is the newest
            results["tree"][name] = tree
            done.append(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, json.dumps(results, indent=2) + "\n")
            write(path.with_name("README.md"), page(results, guest.BUILD.name))
    if done:
        seconds = {name: results["seconds"][name] for name in done}
        print(f"  {'all':58} {sum(seconds.values()):6.1f} s", flush=True)
        trees = {name: results["tree"][name] for name in done}
        now = {name: results[name] for name in done} | {"seconds": seconds, "tree": trees}
        print("\n" + page(now, guest.BUILD.name), end="")
    if failures:
        sys.exit("\n".join(failures))


def main() -> None:
    usual = (*MEASUREMENTS, PICTURES)
    known = (*usual, *APART)
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], epilog=f"measurements: {' '.join(known)}"
    )
    parser.add_argument(
        "names", metavar="MEASUREMENT", nargs="*", help=f"default: {' '.join(usual)}"
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="RESULTS.JSON",
        help="measure nothing; write README.md and the plots into the folder of this file",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="measure nothing; copy the last run from build/6.12/bench to results/6.12",
    )
    parser.add_argument(
        "--findings",
        action="store_true",
        help="measure nothing; write results/README.md and its plots from results/6.12",
    )
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in known]
    if unknown:
        sys.exit(f"bench: no measurement {' '.join(unknown)}; there is: {' '.join(known)}")
    if args.report:
        report(args.report)
    elif args.keep:
        keep()
    elif args.findings:
        findings()
    else:
        measure(args.names or list(usual))


if __name__ == "__main__":
    main()
