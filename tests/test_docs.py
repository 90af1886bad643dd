# SPDX-License-Identifier: GPL-2.0
"""Linux's documentation of the kernel side, as a web page."""

import re
import tempfile
import unittest
from pathlib import Path

from env import CHECK, LINUX, must

FOLDER = "admin-guide/perf"
PAGE = "alternate-period"


class Documentation(unittest.TestCase):

    def test_page_is_made_without_a_warning(self):
        CHECK.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CHECK) as out:
            output = must("make", "-C", LINUX, f"O={out}", f"SPHINXDIRS={FOLDER}", "htmldocs")
            page = Path(out) / "Documentation/output" / FOLDER / f"{PAGE}.html"
            self.assertIn("alternative_sample_period", page.read_text())
            index = page.with_name("index.html").read_text()
            self.assertIn(f'href="{PAGE}.html"', index)
        ours = re.compile(rf"({PAGE}|perf_alt_period)\S*: (WARNING|ERROR|CRITICAL|warning|error)\b")
        self.assertEqual([line for line in output.splitlines() if ours.search(line)], [])


if __name__ == "__main__":
    unittest.main()
