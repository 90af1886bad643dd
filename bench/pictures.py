# SPDX-License-Identifier: GPL-2.0
"""The pictures of the pages: tables in a terminal, the page in a browser.

Nothing is measured. The benchmark is recorded with its call chains in the emulated
machine; the page is made of the recording and photographed in headless Chromium. The end of
what `make demo` prints is drawn as text.
"""

import os
from html import escape
from pathlib import Path

from bench.guest import OUT
from tests.harness.env import TOP, must

TITLE = "Pictures"
PAGE, TERMINAL = OUT / "page.png", OUT / "terminal.svg"
PICTURES = PAGE, TERMINAL
SIZE = 1200, 760  # of the window, in pixels
FONT, WIDTH, HEIGHT, MARGIN = 14, 8.4, 20, 16  # of the text, in pixels
BACKGROUND, PLAIN, STRONG = "#1d1f21", "#c5c8c6", "#b5bd68"


def terminal(lines: list[str]) -> str:
    """Lines of text as SVG. Commands and the heads of tables stand out."""
    strong = "$", "symbol ", "function "
    width = round(2 * MARGIN + WIDTH * max(map(len, lines)))
    height = 2 * MARGIN + HEIGHT * len(lines)
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + HEIGHT * number + FONT}" xml:space="preserve" '
        f'textLength="{len(line) * WIDTH:.1f}" '
        f'fill="{STRONG if line.startswith(strong) else PLAIN}">{escape(line)}</text>'
        for number, line in enumerate(lines)
        if line
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="{FONT}">',
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
            *rows,
            "</svg>\n",
        ]
    )


def photograph(page: Path, path: Path) -> None:
    """Takes a picture of the page in a browser. Raises AssertionError for any of its messages."""
    # only this needs a browser
    from tests.harness.chromium import Browser  # pylint: disable=import-outside-toplevel

    browser = Browser()
    try:
        browser.window(*SIZE)
        browser.open(page)
        console, _asked = browser.told()
        if console:
            raise AssertionError(f"{page}: {console}")
        browser.picture(path)
    finally:
        browser.close()


def measure() -> dict[str, int]:
    """Makes the pictures; returns their bytes."""
    # the page shows the name of the recording
    folder = Path(os.path.relpath(OUT / "demo", TOP))
    must("make", "report", f"OUT={folder}")
    photograph(TOP / folder / "report.html", PAGE)
    said = must("make", "demo", f"OUT={folder}").splitlines()
    first = next(number for number, line in enumerate(said) if line.startswith("symbol "))
    last = next(number for number, line in enumerate(said) if "that contain the truth" in line)
    TERMINAL.write_text(terminal(["$ make demo", "...", *said[first : last + 1]]))
    return {path.name: os.path.getsize(path) for path in PICTURES}


def report(result: dict[str, int]) -> str:
    """The result as Markdown."""
    return "\n".join(f"- `{name}`: {size:,} bytes" for name, size in result.items())
