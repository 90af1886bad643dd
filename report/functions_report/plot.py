# SPDX-License-Identifier: GPL-2.0
"""A table or a comparison as a picture for a paper: bars with their 95 % intervals."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import ReportError
from .table import Table, is_diff, is_weak, value_of, write_output

FORMATS = (".png", ".svg")
# widths of one and of both columns of a page, in inches
ONE, BOTH = 3.5, 7.0
LABEL = 30  # characters of a name
# of the colours of Okabe and Ito, which all eyes tell apart
SHARE, RATE, MORE, LESS, WEAK = "#56b4e9", "#e69f00", "#d55e00", "#0072b2", "#999999"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "functions-report",
    "hatch.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.size": 0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,
    "axes.formatter.limits": (-3, 4),
}


def short(name: str) -> str:
    """Returns a name for a picture, with its middle cut out if it is long."""
    name = "".join(character if character.isprintable() else "\ufffd" for character in name)
    half = (LABEL - 1) // 2
    return name if len(name) <= LABEL else f"{name[:half]}…{name[-half:]}"


def chosen(table: Table, fields: Sequence[str] | None) -> list[Table]:
    """The columns of the picture: those named, else the first share and three rates."""
    columns = table["columns"]
    if not fields:
        shares, rates = (
            [column for column in columns if column["role"] == role] for role in ("share", "rate")
        )
        return shares[:1] + rates[:3] or columns[:1]
    by_name = {column["name"]: column for column in columns}
    for field in fields:
        if field not in by_name:
            raise ReportError(f"there is no column {field}; there is: {' '.join(by_name)}")
    return [by_name[field] for field in fields]


def ends(estimate: Table) -> list[list[float]]:
    """Returns how far the interval of an estimate reaches to both sides of its value."""
    value = estimate["value"]
    low, high = estimate.get("low"), estimate.get("high")
    return [
        [0 if low is None else max(0, value - low)],
        [0 if high is None else max(0, high - value)],
    ]


def draw_values(axes: Any, column: Table, rows: Sequence[Table]) -> None:
    """Bars of the values; weak ones are hatched."""
    name = column["name"]
    for at, row in enumerate(rows):
        value = row["metrics"].get(name)
        if value is None:
            axes.text(0, at, " –", va="center")
            continue
        color = SHARE if column["role"] in ("share", "count") else RATE
        weak = is_weak(value)
        axes.barh(
            at,
            value["value"],
            height=0.7,
            color="white" if weak else color,
            edgecolor=color,
            hatch="////" if weak else None,
            linewidth=0.6,
        )
        if "low" in value:
            axes.errorbar(
                value["value"],
                at,
                xerr=ends(value),
                color="black",
                elinewidth=0.7,
                capsize=1.5,
                capthick=0.7,
            )
    if all(value_of(row["metrics"].get(name)) >= 0 for row in rows):
        axes.set_xlim(left=0)


def draw_changes(axes: Any, column: Table, rows: Sequence[Table]) -> None:
    """Changes around 0; those that are not significant are hollow, those of weak values grey."""
    axes.axvline(0, color="black", linewidth=0.6)
    for at, row in enumerate(rows):
        one = row["metrics"].get(column["name"])
        if not one or one["change"] is None:
            axes.text(0, at, " –" if row["status"] == "both" else f" {row['status']}", va="center")
            continue
        change = one["change"]
        color = MORE if change["value"] > 0 else LESS
        if is_weak(one["before"]) or is_weak(one["after"]):
            color = WEAK
        axes.errorbar(
            change["value"],
            at,
            xerr=ends(change),
            fmt="o",
            markersize=3.5,
            color=color,
            markerfacecolor=color if one["significant"] else "white",
            elinewidth=0.8,
            capsize=1.5,
            capthick=0.8,
        )


def draw(table: Table, top: int, fields: Sequence[str] | None) -> Any:
    """The figure."""
    # only pictures need it
    from matplotlib import rc_context  # pylint: disable=import-outside-toplevel
    from matplotlib.figure import Figure  # pylint: disable=import-outside-toplevel

    columns, rows = chosen(table, fields), table["functions"][:top]
    if not rows:
        raise ReportError(
            "there is nothing to draw: the table is empty: choose more functions or a longer time"
        )
    with rc_context(STYLE):
        figure = Figure(
            figsize=(ONE if len(columns) <= 2 else BOTH, 0.55 + 0.17 * len(rows)),
            layout="constrained",
        )
        all_axes = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axes, column in zip(all_axes, columns):
            (draw_changes if is_diff(table) else draw_values)(axes, column, rows)
            axes.set_title(column["name"])
            axes.set_xlabel("change" if is_diff(table) else "%" if column["unit"] == "%" else "")
            axes.margins(y=0.5 / len(rows))
            axes.locator_params(axis="x", nbins=4)
        all_axes[0].set_yticks(range(len(rows)), [short(row["label"]) for row in rows])
        all_axes[0].invert_yaxis()
    return figure


def checked(path: Path) -> Path:
    """The path of a picture. Raises ReportError where it cannot be made."""
    if path.suffix not in FORMATS:
        raise ReportError(f"{path}: a picture is {' or '.join(FORMATS)}: end its name so")
    try:
        import matplotlib  # pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        raise ReportError("pictures need matplotlib: install python3-matplotlib") from None
    return path


def write(path: Path, table: Table, top: int, fields: Sequence[str] | None) -> None:
    """Writes a picture, the same one for the same table."""
    from matplotlib import rc_context  # pylint: disable=import-outside-toplevel

    figure = draw(table, top, fields)
    picture = io.BytesIO()
    with rc_context(STYLE):
        figure.savefig(
            picture,
            format=path.suffix[1:],
            dpi=300,
            metadata={"Date": None} if path.suffix == ".svg" else {"Software": None},
        )
    write_output(path, picture.getvalue())
