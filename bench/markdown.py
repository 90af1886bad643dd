# SPDX-License-Identifier: GPL-2.0
"""Text of the tables."""

import re
import textwrap

WIDTH = 100
KEPT = "\0"  # stands for a space where a line does not end


def prose(text: str) -> str:
    """A paragraph, in lines of the repository's width; code and percentages stay in one line."""
    words = " ".join(text.split())
    words = re.sub(r"`[^`]*`|[0-9] %", lambda found: found[0].replace(" ", KEPT), words)
    lines = textwrap.fill(words, WIDTH, break_long_words=False, break_on_hyphens=False)
    return lines.replace(KEPT, " ")
