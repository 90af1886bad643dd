# SPDX-License-Identifier: GPL-2.0
"""Pictures of what was measured. Only drawing needs matplotlib: the tables are made without it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def picture(path: Path, width: float, height: float) -> "Iterator[Figure]":
    """A figure of this size in inches; it is saved as SVG when the block ends.

    Its text stays text, and the same data make the same file.
    """
    import matplotlib  # pylint: disable=import-outside-toplevel
    from matplotlib.figure import Figure  # pylint: disable=import-outside-toplevel

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": path.stem}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
