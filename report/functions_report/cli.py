# SPDX-License-Identifier: GPL-2.0
"""The command line of functions-report."""

import argparse
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from . import ReportError, cluster, database, flame, openmetrics, page, plot, pprof, store, sums
from .progress import Progress, printable
from .table import (
    Perf,
    Table,
    check_folder,
    file_of,
    has_any,
    is_diff,
    is_regular,
    is_stdout,
    is_stream,
    paths,
    unit_of,
    write_output,
    write_stdout,
)

BUILT = page.TOP / "build" / os.environ.get("BASE", "6.12") / "perf/perf"
BY = "symbol dso comm thread process cpu pmu srcline callchain cgroup".split()
# options for `perf functions report` that choose samples, the place of symbols ...
COLLECT = (
    ("--comms", "LIST", "only these comms"),
    ("--pid", "LIST", "only these processes"),
    ("--tid", "LIST", "only these threads"),
    ("--dsos", "LIST", "only these DSOs"),
    ("--symbols", "LIST", "only these symbols"),
    ("--cpu", "LIST", "only these CPUs, as in 0,2-4"),
    ("--time", "START,STOP", "only this span of time"),
    ("--symfs", "DIR", "folder to search for files with symbols"),
    ("--vmlinux", "FILE", "the kernel's symbols"),
    ("--kallsyms", "FILE", "the kernel's symbols"),
    ("--addr2line", "FILE", "program that finds source lines and inlined functions"),
)
# ... and those that change the table
SHOW = (("--metrics", "LIST", "also metrics of the CPU's vendor"),)
# --comm, --dso and --symbol, the older names, abbreviate the new ones
SHORT = {"--comms": "-c", "--dsos": "-d", "--symbols": "-S", "--cpu": "-C", "--metrics": "-M"}
# files to write, in the order of their use
OUTPUTS = ("sums", "html", "plot", "pprof", "openmetrics")
MOST_ROWS = 2**32 - 1  # that perf takes

# the runs before and after
Sides = tuple[Sequence[str], Sequence[str]]

EXAMPLES = """\
examples:
  functions-report perf.data                                    print perf's table
  functions-report --html report.html perf.data                 a page: table, flame graph
  functions-report --html report.html one.data two.data         of several recordings, added up
  functions-report --html report.html --by dso perf.data        a row for each binary
  functions-report --html report.html --interval 10 perf.data   with a timeline
  functions-report --html change.html --diff old.data new.data  what changed
  functions-report --html change.html --before old*.data --after new*.data
  functions-report --plot figure.svg perf.data                  a picture, or .png
  functions-report --pprof profile.pb.gz perf.data              for pprof, Grafana, speedscope
  functions-report --openmetrics web.prom --label service=web perf.data     for Prometheus
  functions-report --sums hosts.sums a.data b.data              sums: inputs of reports, too
  functions-report --cluster tcp://scheduler:8786 --sums all.sums /shared/host*.data
  functions-report --store postgresql://db/profile --build v1.2 --host web7 perf.data
  functions-report --from postgresql://db/profile --since 2026-11-01 --html november.html
  functions-report --from postgresql://db/profile --by cgroup --limit 10

A flame graph has call chains if they were recorded:
  perf functions record --call-graph fp,4 --user-callchains -- COMMAND

Completion in bash: eval "$(register-python-argcomplete functions-report)"
"""


def parser() -> argparse.ArgumentParser:
    """Returns the parser of all options."""
    result = argparse.ArgumentParser(
        prog="functions-report",
        usage="%(prog)s [OPTION]... [INPUT]...",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Makes a page, a picture or a table of per-function metrics from recordings, "
        "with perf functions report.",
    )
    result.add_argument(
        "inputs",
        nargs="*",
        metavar="INPUT",
        help="recordings and sums files, which are added up (default: perf.data); - is the "
        "standard input, also in a pipe from perf record -o -",
    )
    output = result.add_argument_group(
        "output (default: print perf's table)",
        "FILE may be -, the standard output, but for pictures.",
    )
    output.add_argument(
        "--html", metavar="FILE", type=Path, help="write an HTML page that works offline"
    )
    output.add_argument("--plot", metavar="FILE", type=Path, help="write a picture, .png or .svg")
    output.add_argument(
        "--pprof",
        metavar="FILE",
        type=Path,
        help="write a profile for pprof, with a sample type for each event, and with call chains "
        "if they were recorded",
    )
    output.add_argument(
        "--openmetrics",
        metavar="FILE",
        type=Path,
        help="write the first functions as OpenMetrics text; with --from, those of each build and "
        "host",
    )
    output.add_argument(
        "--label",
        metavar="NAME=VALUE",
        type=openmetrics.label,
        action="append",
        default=[],
        help="with --openmetrics: give each value this label, too, so that files of several "
        "services can be in one folder; may be repeated",
    )
    output.add_argument("--sums", metavar="FILE", type=Path, help="write a sums file")
    output.add_argument("--diff", action="store_true", help="compare two INPUTs: BEFORE and AFTER")
    for side in "before", "after":
        output.add_argument(
            f"--{side}",
            metavar="RUN",
            nargs="+",
            action="extend",
            help=f"compare several runs: the runs {side} the change",
        )
    output.add_argument(
        "--single-run",
        action="store_true",
        help="mark changes although there is one run of each side",
    )
    output.add_argument(
        "--limit",
        "--top",
        metavar="N",
        type=rows,
        help="number of rows in the printed table (default: all), or of functions in a picture or "
        "with --openmetrics (default: 20)",
    )
    output.add_argument(
        "--percent-limit",
        metavar="PERCENT",
        type=percent,
        default=0,
        help="leave out functions with a smaller share of the cycles",
    )
    output.add_argument(
        "--fields",
        metavar="LIST",
        help="columns of a picture (default: one share, three ratios); a paper has room for two",
    )
    choice = result.add_argument_group("options for perf functions report")
    choice.add_argument(
        "--perf",
        metavar="PERF",
        help="the perf to use (default: the one of `make perf`, else perf)",
    )
    choice.add_argument(
        "--interval",
        metavar="SECONDS",
        type=seconds,
        help="with --html: add a timeline of the first functions, in intervals of this length, "
        "for one recording or with --from",
    )
    by = choice.add_argument(
        "--by",
        metavar="KEY[,KEY...]",
        type=keys,
        help=f"make a row for each of these: one or several of {', '.join(BY)} (default: symbol)",
    )
    setattr(by, "completer", next_keys)  # argcomplete looks for it
    choice.add_argument(
        "--children",
        action="store_true",
        help="count a function with all that it calls; needs recordings with --call-graph fp",
    )
    choice.add_argument(
        "--inline", action="store_true", help="show inlined functions as functions of their own"
    )
    choice.add_argument(
        "-f", "--force", action="store_true", help="read recordings of other users, too"
    )
    for name, metavar, text in COLLECT + SHOW:
        names = (SHORT[name], name) if name in SHORT else (name,)
        choice.add_argument(*names, metavar=metavar, help=text)
    cluster.add_arguments(result)
    store.add_arguments(result)
    return result


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line; ends with a message if it is wrong."""
    result = parser()
    complete(result)
    options, files = split(sys.argv[1:] if words is None else words)
    arguments = result.parse_intermixed_args(options)
    arguments.inputs += files
    cluster.separate(arguments)
    store.check_arguments(arguments, result)
    has_rows = arguments.plot or arguments.openmetrics or prints(arguments)
    if arguments.limit and not has_rows:
        result.error("--limit goes with --plot, --openmetrics and the printed table: leave it out")
    if arguments.percent_limit and not (has_rows or arguments.html):
        result.error(
            "--percent-limit goes with --html, --plot, --openmetrics and the printed table: "
            "leave it out"
        )
    to_stdout = [name for name, path in outputs(arguments) if is_stdout(path)]
    if len(to_stdout) > 1:
        result.error(f"--{' and --'.join(to_stdout)} are both -: name a file for one of them")
    if arguments.fields and not arguments.plot:
        result.error("--fields goes with --plot: add --plot FILE")
    if arguments.label and not arguments.openmetrics:
        result.error("--label goes with --openmetrics: add --openmetrics FILE")
    if arguments.interval and not arguments.html:
        result.error("--interval goes with --html: add --html FILE")
    others = arguments.store, arguments.sums, arguments.diff, arguments.before, arguments.after
    if arguments.interval and (
        any(others) or arguments.cluster is not None or len(arguments.inputs) > 1
    ):
        result.error(
            "--interval takes one recording, or sums with --from: "
            "it does not go with --diff, --before, --after, --sums, --store and --cluster"
        )
    if arguments.slice_size and arguments.cluster is None:
        result.error("--slice-size goes with --cluster: add --cluster")
    if arguments.source and (passed(arguments, COLLECT) or arguments.cluster is not None):
        result.error(
            "--from takes sums as they are stored: it does not go with --cluster, "
            f"{', '.join(name for name, _, _ in COLLECT)}"
        )
    if not (arguments.inputs or arguments.before or arguments.after):
        arguments.inputs = ["perf.data"]
    return arguments


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits the words at --. argparse does it wrongly if options follow inputs."""
    at = [*words, "--"].index("--")
    return [*words[:at]], [*words[at + 1 :]]


def prints(arguments: argparse.Namespace) -> bool:
    """Returns whether perf's table is printed, because nothing else is made."""
    return not (outputs(arguments) or arguments.store)


def outputs(arguments: argparse.Namespace) -> list[tuple[str, Path]]:
    """Returns the options for files to write, with these files."""
    given = ((name, getattr(arguments, name)) for name in OUTPUTS)
    return [(name, path) for name, path in given if path]


def rows(text: str) -> int:
    """A number of rows."""
    if not (text.isdecimal() and 1 <= int(text) <= MOST_ROWS):
        raise argparse.ArgumentTypeError(f"{text}: N is a whole number from 1 to {MOST_ROWS}")
    return int(text)


def number_in(text: str, what: str, least: float, most: float) -> float:
    """A number in this range."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text}: {what} is a number from {least:g} to {most:g}")
    return number


def percent(text: str) -> float:
    """A share."""
    return number_in(text, "PERCENT", 0, 100)


def seconds(text: str) -> float:
    """A time above 0, which perf takes to the nanosecond."""
    return number_in(text, "SECONDS", 1e-9, 1e9)


def keys(text: str) -> str:
    """Keys of --by, each once."""
    names = text.split(",")
    if not set(names) <= set(BY) or len(names) > len(set(names)):
        raise argparse.ArgumentTypeError(f"{text}: KEY is one of {', '.join(BY)}, each once")
    return text


def next_keys(prefix: str, **_: object) -> list[str]:
    """Returns the possible next keys of a list, for completion."""
    before = prefix.split(",")[:-1]
    return [",".join([*before, key]) for key in BY if key not in before]


def passed(arguments: argparse.Namespace, options: Sequence[tuple[str, str, str]]) -> list[str]:
    """Returns the given options, for perf."""
    given = ((name, getattr(arguments, name[2:])) for name, _, _ in options)
    return [f"{name}={value}" for name, value in given if value is not None]


def large(arguments: argparse.Namespace) -> list[str]:
    """The option that leaves out rows with a small share, for perf's tables."""
    return [f"--percent-limit={arguments.percent_limit}"] if arguments.percent_limit else []


def find_perf(name: str | None) -> str:
    """Returns the perf to use."""
    if name:
        return name
    return str(BUILT) if os.access(BUILT, os.X_OK) else shutil.which("perf") or str(BUILT)


def page_data(perf: Perf, arguments: argparse.Namespace, by: Sequence[str]) -> Table:
    """Returns the data of the page: a table and its flame graph, or the comparison, and the
    timeline if there are intervals.
    """
    inputs = arguments.inputs
    data: Table = {}
    if arguments.sides:
        data["diff"] = compare(perf, arguments, [*by, *large(arguments)])
        inputs = arguments.sides[1]
    table = perf.table(inputs, *by, *large(arguments))
    data["table"] = page.table_data(table)
    note = ""
    try:
        tree = flame.of_chains(perf, inputs, arguments.inline)
    except ReportError as error:
        note = flame.why_none(error)
        tree = flame.of_table(perf.table(inputs, *by) if large(arguments) else table)
    data["flame"] = {"columns": table["columns"], "root": tree, "note": note}
    data["flame"]["event"] = table.get("width")
    data["flame"]["units"] = {one["name"]: unit_of(table, one["name"]) for one in table["events"]}
    data["warnings"] = list(perf.warnings)
    if arguments.interval:
        data["timeline"] = page.timeline_data(
            table, intervals(perf, arguments, by), bool(arguments.source)
        )
        perf.warnings[:] = data["warnings"]  # warnings about another table would confuse
    return data


def intervals(perf: Perf, arguments: argparse.Namespace, by: Sequence[str]) -> Iterator[Table]:
    """Yields the table of each interval that has observations, with its "time"."""
    if not arguments.source:
        yield from perf.tables(arguments.inputs, *by, f"--interval={arguments.interval:.9f}")
        return
    for time, text in store.ask_times(arguments, perf.program):
        with tempfile.NamedTemporaryFile(suffix=".sums") as file:
            file.write(text)
            file.flush()
            table = perf.table_of_sums(file.name, what="reading intervals")
        if has_any(table):
            yield {**table, "time": time}


def find_sides(arguments: argparse.Namespace) -> Sides | None:
    """Returns the sides of the comparison, if there is one. Raises ReportError."""
    if arguments.before or arguments.after:
        if arguments.diff or arguments.inputs or not (arguments.before and arguments.after):
            raise ReportError(
                "--before and --after go together: give both, and no other inputs or --diff"
            )
        return arguments.before, arguments.after
    if not arguments.diff and arguments.single_run:
        raise ReportError("--single-run is about a comparison: add --diff, or --before and --after")
    if not arguments.diff:
        return None
    if len(arguments.inputs) != 2:
        raise ReportError(
            f"--diff takes two inputs, BEFORE and AFTER; there is {len(arguments.inputs)}: "
            "for several of each use --before and --after"
        )
    return arguments.inputs[:1], arguments.inputs[1:]


def words_of(arguments: argparse.Namespace) -> list[str]:
    """Returns perf's options for a comparison."""
    before, after = arguments.sides
    insisting = ["--single-run"] if arguments.single_run else []
    return [*insisting, "--before", *paths(before), "--after", *paths(after)]


def compare(perf: Perf, arguments: argparse.Namespace, by: Sequence[str]) -> Table:
    """Returns the comparison of the runs of two sides."""
    table = perf.table((), *by, *words_of(arguments), what="comparing")
    if not is_diff(table):
        raise ReportError(f"{perf.program} cannot compare: --perf names a newer one")
    return table


def gather(
    arguments: argparse.Namespace, perf: Perf, by: Sequence[str], folder: str
) -> bytes | None:
    """The requested sums, None if perf is to read the inputs for each output.

    folder: for temporary files. Raises ReportError, and ValueError for inputs that perf cannot read.
    """
    if arguments.source:
        text, notes = store.ask(arguments, perf.program)
        perf.warnings += sorted(notes)
        return text
    options = [*perf.collect, *by]
    if arguments.cluster is not None:
        text, notes = cluster.collect(
            arguments.inputs,
            arguments.cluster,
            perf.program,
            options,
            arguments.slice_size * 2**20,
            folder,
        )
    elif arguments.sums or arguments.store:
        text, notes = sums.merge(perf.program, arguments.inputs, options)
    else:
        return None
    perf.warnings += sorted(notes)
    return text


def make(arguments: argparse.Namespace) -> None:
    """Runs the command. Raises ReportError."""
    arguments.sides = find_sides(arguments)
    if arguments.sides:
        arguments.inputs = [name for side in arguments.sides for name in side]
    if arguments.sides and (
        arguments.sums or arguments.store or arguments.source or arguments.cluster is not None
    ):
        raise ReportError(
            "a comparison takes its inputs as they are: "
            "--sums, --store, --from and --cluster do not go with --diff, --before and --after"
        )
    if arguments.sides and (arguments.pprof or arguments.openmetrics):
        raise ReportError(
            "--pprof and --openmetrics have no form for a comparison: "
            "they do not go with --diff, --before and --after"
        )
    perf = Perf(
        find_perf(arguments.perf), passed(arguments, COLLECT), passed(arguments, SHOW), Progress()
    )
    perf.collect += ["--force"] if arguments.force else []
    by = ([f"--by={arguments.by}"] if arguments.by else []) + (
        ["--inline"] if arguments.inline else []
    )
    by += ["--children"] if arguments.children else []
    title = (
        database.shown(arguments.source)
        if arguments.source
        else " → ".join(", ".join(side) for side in arguments.sides or [arguments.inputs])
    )
    check(arguments)
    arguments.recorded = arguments.inputs
    with tempfile.TemporaryDirectory(prefix="functions-report-") as folder:
        text = gather(arguments, perf, by, folder)
        if text is not None:
            if arguments.store:
                store.keep(arguments, text)
            if arguments.sums:
                write_output(arguments.sums, text)
            if prints(arguments) or any(name != "sums" for name, _ in outputs(arguments)):
                gathered = Path(folder) / "gathered.sums"
                gathered.write_bytes(text)
                perf.names[str(gathered)] = title
                # sums have no options left
                arguments.inputs, perf.collect, by = [str(gathered)], [], []
        elif arguments.html or arguments.pprof or len(outputs(arguments)) > 1:
            copy_streams(arguments, perf, folder)
            arguments.recorded = arguments.inputs
        write(arguments, perf, by, title)
    for warning in perf.warnings:
        print(printable(warning), file=sys.stderr)


def check(arguments: argparse.Namespace) -> None:
    """Raises ReportError for what is missing, before the work begins."""
    if not arguments.source:
        check_inputs(arguments)
    if arguments.html:
        page.template()
    if arguments.plot:
        plot.checked(arguments.plot)
    if arguments.pprof:
        pprof.check(arguments.pprof)
    if arguments.openmetrics:
        openmetrics.check()
    for number, (option, path) in enumerate(outputs(arguments)):
        check_folder(path)
        for other, same in outputs(arguments)[:number]:
            if is_regular(path) and os.path.realpath(path) == os.path.realpath(same):
                raise ReportError(
                    f"{path}: --{other} and --{option} would both write it: name another file "
                    "for one of them"
                )
    store.check(arguments)


def check_inputs(arguments: argparse.Namespace) -> None:
    """Raises ReportError if an input is missing, or if an output would destroy it."""
    for name in arguments.inputs:
        if (is_stream(name) or name in sums.STDIN) and arguments.cluster is not None:
            raise ReportError(f"{name}: a cluster reads files: write this to a file first")
        for option, path in outputs(arguments):
            if is_stdout(path) or not path.is_file() or not is_part(path, file_of(name)):
                continue
            # sums may be added to those in a file
            if option != "sums" or os.path.isdir(name) or not sums.is_sums(file_of(name)):
                raise ReportError(
                    f"{path}: --{option} would replace this input: name another file to write"
                )


def is_part(path: Path, recording: str) -> bool:
    """Returns whether a file is this recording, or in its folder. Raises OSError."""
    if os.path.isdir(recording):
        path = Path(os.path.realpath(path)).parent
    return os.path.samefile(path, recording)


def copy_streams(arguments: argparse.Namespace, perf: Perf, folder: str) -> None:
    """Copies inputs that can be read only once, because perf reads inputs for each table."""
    copies = {}
    for name in filter(is_stream, dict.fromkeys(arguments.inputs)):
        copies[name] = copy = f"{folder}/{len(copies)}.data"
        perf.names[copy] = name
        # a socket has no name to open
        source = os.dup(sys.stdin.fileno()) if name == "-" else name
        with open(source, "rb") as stream, open(copy, "wb") as file:
            shutil.copyfileobj(stream, file)
    arguments.inputs = [copies.get(name, name) for name in arguments.inputs]
    if arguments.sides:
        arguments.sides = tuple(
            [copies.get(name, name) for name in side] for side in arguments.sides
        )


def labelled(
    arguments: argparse.Namespace, perf: Perf, table: Table
) -> Iterator[tuple[openmetrics.Labels, Table]]:
    """The tables for OpenMetrics; with --from there is one for each build on each host."""
    if not arguments.source:
        yield {}, table
        return
    warnings = list(perf.warnings)
    for place, text in store.ask_each(arguments, perf.program):
        with tempfile.NamedTemporaryFile(suffix=".sums") as file:
            file.write(text)
            file.flush()
            table = perf.table_of_sums(file.name, what=f"metrics of {place['host']}")
        perf.warnings[:] = warnings  # those of each part do not say what they are about
        if has_any(table):
            yield place, table


def write(arguments: argparse.Namespace, perf: Perf, by: Sequence[str], title: str) -> None:
    """Writes the requested files, or prints the table if there are none.

    Raises ReportError.
    """
    if arguments.html:
        page.write(arguments.html, title, page_data(perf, arguments, by))
    shown = [*by, *large(arguments)]
    if arguments.plot:
        table = (
            compare(perf, arguments, shown)
            if arguments.sides
            else perf.table(arguments.inputs, *shown)
        )
        plot.write(
            arguments.plot,
            table,
            arguments.limit or 20,
            arguments.fields.split(",") if arguments.fields else None,
        )
    if arguments.pprof:
        table, note = pprof.read(perf, arguments.inputs, by)
        span = (
            store.span(arguments) if arguments.source else pprof.span_of(perf, arguments.recorded)
        )
        pprof.write(arguments.pprof, table, [title, note, *perf.warnings], span)
    if arguments.openmetrics:
        table = perf.table(arguments.inputs, *shown)
        openmetrics.write(
            arguments.openmetrics,
            labelled(arguments, perf, table),
            table,
            arguments.limit or 20,
            arguments.label,
        )
    if prints(arguments):
        options = [*shown, *([f"--limit={arguments.limit}"] if arguments.limit else [])]
        text = (
            perf.text((), *options, *words_of(arguments))
            if arguments.sides
            else perf.text(arguments.inputs, *options)
        )
        write_stdout(text.encode())


def complete(result: argparse.ArgumentParser) -> None:
    """Completes the command line if bash asks for it and argcomplete is installed."""
    try:
        import argcomplete  # pylint: disable=import-outside-toplevel # is optional
    except ImportError:
        return
    argcomplete.autocomplete(result)


def end(number: int, frame: FrameType | None) -> None:
    """Ends the command at a signal, so that temporary files are removed, and no program is left: if
    one is being started, it waits until somebody knows it.
    """
    while frame and frame.f_code is not subprocess.Popen.__init__.__code__:
        frame = frame.f_back
    if not frame:
        raise SystemExit(128 + number)
    signal.signal(signal.SIGALRM, lambda _, now: end(number, now))
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    arguments = parse(words)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup does
            signal.signal(number, end)
    try:
        make(arguments)
    except BrokenPipeError:
        return 1
    except (ReportError, ValueError) as error:
        print(printable(f"functions-report: {error}"), file=sys.stderr)
        return 1
    except OSError as error:
        what, next_step = error.filename, "name another file"
        if not what:  # a file that is open: a temporary one
            what, next_step = tempfile.gettempdir(), "make room, or set TMPDIR to another folder"
        print(
            printable(f"functions-report: {what}: {error.strerror}: {next_step}"), file=sys.stderr
        )
        return 1
    return 0
