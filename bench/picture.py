# SPDX-License-Identifier: GPL-2.0
"""Pictures of what was measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure


@contextmanager
def picture(path: Path, width: float, height: float) -> Iterator[Figure]:
    """A figure of this size in inches; it is saved as SVG when the block ends.

    Its text stays text, and the same data make the same file.
    """
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": path.stem}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
