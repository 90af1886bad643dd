# SPDX-License-Identifier: GPL-2.0
"""Linux's documentation of the kernel side, as a web page; perf's manual."""

import re
import tempfile
import unittest
from pathlib import Path

from tests.harness.env import CHECK, LINUX, TOP, must

SLOW = True
MINUTES = 10
ON_BASES = "every"

FOLDER = "admin-guide/perf"
PAGES = ("alternate-period", "function-metrics")


class Documentation(unittest.TestCase):
    def test_pages_are_made_without_a_warning(self):
        CHECK.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CHECK) as out:
            output = must("make", "-C", LINUX, f"O={out}", f"SPHINXDIRS={FOLDER}", "htmldocs")
            folder = Path(out) / "Documentation/output" / FOLDER
            index = (folder / "index.html").read_text()
            for page in PAGES:
                self.assertIn("alternat", (folder / f"{page}.html").read_text())
                self.assertIn(f'href="{page}.html"', index)
        ours = re.compile(
            rf"({'|'.join(PAGES)}|perf_alt_period)\S*: (WARNING|ERROR|CRITICAL|warning|error)\b"
        )
        self.assertEqual([line for line in output.splitlines() if ours.search(line)], [])

    def test_carets(self):
        """asciidoc makes a superscript of what is between two of a paragraph, and drops both."""
        manual = TOP / "tools/perf/Documentation/perf-functions.txt"
        # blocks between lines of dashes, and indented paragraphs, are literal
        text = re.sub(r"(?ms)^-----$.*?^-----$", "", manual.read_text())
        for paragraph in re.split(r"\n(?:\+?\n)+|::\n", text):
            if not paragraph.startswith(("\t", " ")):
                self.assertLess(paragraph.count("^"), 2, paragraph)
