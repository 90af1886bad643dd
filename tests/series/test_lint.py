# SPDX-License-Identifier: GPL-2.0
"""scripts/lint accepts the repository."""

import unittest

from tests.harness.env import TOP, run


class Lint(unittest.TestCase):
    def test_the_repository(self):
        done = run(TOP / "scripts/lint")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("skipped", done.stdout)


if __name__ == "__main__":
    unittest.main()
