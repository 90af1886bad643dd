# SPDX-License-Identifier: GPL-2.0
"""Linux's documentation of the kernel side, as a web page; perf's man pages."""

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

    def test_man_pages_are_made_without_a_warning(self):
        """The man pages of perf that the series adds or changes."""
        folder = LINUX / "tools/perf/Documentation"
        pages = [
            Path(name).name
            for name in must(
                "git",
                "-C",
                LINUX,
                "diff",
                "--name-only",
                "pristine..series",
                "--",
                "tools/perf/Documentation",
            ).split()
        ]
        pages = [name for name in pages if re.match(r"perf-.*\.txt$", name)]
        self.assertIn("perf-functions.txt", pages)
        with tempfile.TemporaryDirectory(dir=CHECK) as out:
            output = must(
                "make",
                "-s",
                "-C",
                folder,
                "man",
                f"OUTPUT={out}/",
                "USE_ASCIIDOCTOR=1",
                f"MAN1_TXT={' '.join(pages)}",
            )
            # make 4.4 prints the steps in spite of -s, and warns of perf's Makefile
            of_make = re.compile(r"  (GEN|ASCIIDOC) |Makefile:\d+: warning: ")
            said = [line for line in output.splitlines() if not of_make.match(line)]
            self.assertEqual(said, [])
            for name in pages:
                text = must(
                    "man",
                    "--warnings",
                    "-l",
                    Path(out) / Path(name).with_suffix(".1"),
                    env={"MANWIDTH": "80"},
                )
                self.assertTrue(
                    text.startswith(name.removesuffix(".txt").upper() + "(1)"), text[:200]
                )
