# SPDX-License-Identifier: GPL-2.0
"""Compares the module for kernels that cannot be rebuilt with a kernel that has the series.

It compares what an overflow and a recording cost, and how near the tables come to the truth.
cost.py counts the costs, published.py makes the recordings (without a limit), and accuracy.py
calculates the errors.
"""

from concurrent.futures import ThreadPoolExecutor

from bench import accuracy, experiment, published
from bench.accuracy import percent
from bench.cost import added, alternating, boot, per_overflow, table
from bench.experiment import ALTERNATE, ITERATIONS, LONG
from bench.guest import SHARE, Kernel, program, recording, unthrottled
from bench.markdown import prose
from tests.harness.machines import BY_MODULE
from tests.harness.pristine import IMAGE, pristine_module

TITLE = "By the module"

KERNELS = {
    "series": Kernel(),
    "module": Kernel("insmod /share/perf_alt_period.ko\n", ("--kernel", IMAGE)),
}
# the arguments of overflows.c: one overflow in 1000 instructions in all cases
LOADED = {"loaded": "1000", "module": "1500 500", "module jitter": "1500 500 12"}
DEPTH, PERIODS = 1, (LONG, ALTERNATE)


def costs() -> dict[str, float]:
    """Instructions of an overflow."""
    program("overflows")
    program("overflows", *BY_MODULE, output="overflows-by-module")
    kernel = KERNELS["module"]
    unthrottled(
        kernel.setup
        + "\n".join(
            f"./overflows-by-module {arguments} > '{name}'" for name, arguments in LOADED.items()
        ),
        *kernel.options,
    )
    return {
        **boot(IMAGE, {"pristine": "1000"})[0],
        **boot(alternating(), {"used": "1500 500", "jitter": "1500 500 12"})[0],
        **{name: per_overflow((SHARE / name).read_text()) for name in LOADED},
    }


def recordings(name: str, iterations: int) -> dict[str, dict]:
    """Bytes, samples and run time of the published recordings, by their periods, with a kernel."""
    kernel, paths = KERNELS[name], {
        periods: SHARE / f"{name}, {periods}.data" for periods in PERIODS
    }
    commands = [
        recording(
            path.name,
            experiment.events(periods, published.SIBLINGS, iterations),
            f"benchmark --iterations {iterations} 0 1",
        )
        for periods, path in paths.items()
    ]
    unthrottled(kernel.setup + "".join(commands), *kernel.options)
    rows = {
        periods: {"bytes": path.stat().st_size, **experiment.records(path)._asdict()}
        for periods, path in paths.items()
    }
    for path in paths.values():
        path.unlink()
    return rows


def errors(name: str, windows: tuple[int, ...], iterations: int) -> list[dict]:
    """Returns the errors of tables, as in accuracy.py, with a kernel."""
    wanted = accuracy.recordings(windows, ())
    return accuracy.rows_of(
        name, wanted, accuracy.record(name, DEPTH, wanted, iterations, KERNELS[name])
    )


def measure(
    iterations: int = ITERATIONS,
    windows: tuple[int, ...] = accuracy.WINDOWS,
    pairs: int = accuracy.ITERATIONS,
) -> dict:
    """Makes the module and runs both kernels; pairs: iterations of the benchmark for the errors."""
    SHARE.mkdir(parents=True, exist_ok=True)
    pristine_module(SHARE)
    instructions = costs()
    with ThreadPoolExecutor(2) as pool:
        rows = dict(zip(KERNELS, pool.map(lambda name: recordings(name, iterations), KERNELS)))
        tables = dict(zip(KERNELS, pool.map(lambda name: errors(name, windows, pairs), KERNELS)))
    return {
        "instructions": {name: round(number, 1) for name, number in instructions.items()},
        "added": added(instructions),
        "recordings": rows,
        "run time": {
            name: row[ALTERNATE]["run_time"] / row[LONG]["run_time"] for name, row in rows.items()
        },
        "tables": tables,
    }


def report(result: dict) -> str:
    """The result as Markdown."""
    about = """
        The module makes events alternate on kernels that cannot be rebuilt. Here it is compared
        with the series in the emulated machine: the instructions of an overflow, recordings of the
        published experiment without a rate limit, and the errors of tables. The kernel with the
        series also has its fix of arm_pmuv3, which costs each event some instructions. In the first
        table it has no quiet windows.
    """
    lines = [
        prose(about),
        "",
        *table(
            result,
            {
                "pristine": "without the series",
                "used": "with the series, the event alternates",
                "jitter": "with the series, it alternates with jitter",
                "loaded": "with the module, the event does not alternate",
                "module": "with the module, it alternates",
                "module jitter": "with the module, it alternates with jitter",
            },
        ),
        "",
        "| recording | MB: series | module | samples: series | module "
        "| run time, s: series | module |",
        "|---|" + "--:|" * 6,
    ]
    for periods in PERIODS:
        series, module = (result["recordings"][name][periods] for name in KERNELS)
        lines.append(
            f"| {periods} | {series['bytes'] / 1e6:.3f} | {module['bytes'] / 1e6:.3f} "
            f"| {series['samples']:,} | {module['samples']:,} "
            f"| {series['run_time']:.4f} | {module['run_time']:.4f} |"
        )
    ratios = " and ".join(
        f"{ratio:.4f} times as long with the {name}" for name, ratio in result["run time"].items()
    )
    errors_about = f"""
        Compared with `{LONG}`, alternate periods make the program run {ratios}. The next table has
        errors in percent, recorded at depth {DEPTH} (see *Accuracy*). The module opens the first
        window one long period later than the series, so their windows are at different places. The
        errors of the two therefore differ by chance, even without jitter:
    """
    lines += [
        "",
        prose(errors_about),
        "",
        "| recording | window | share, discard: series | module | by chance "
        "| rate, discard: series | module | rate, none: series | module |",
        "|---|" + "--:|" * 8,
    ]
    rows = {
        name: {(row["kind"], row["window"], row["mode"]): row for row in result["tables"][name]}
        for name in KERNELS
    }
    for kind, window, mode in rows["series"]:
        if mode == "discard":
            series, module = (
                (row[kind, window, mode], row[kind, window, "none"]) for row in rows.values()
            )
            cells = [
                series[0]["share error"],
                module[0]["share error"],
                module[0]["by chance"],
                *(row[place]["rate error"] for place in (0, 1) for row in (series, module)),
            ]
            lines.append(f"| {kind} | {window:,} | {' | '.join(map(percent, cells))} |")
    return "\n".join(lines)
