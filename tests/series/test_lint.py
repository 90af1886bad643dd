# SPDX-License-Identifier: GPL-2.0
"""shellcheck, pylint, checkpatch and codespell over what is ours; figures in the README and a page."""

import json
import re
import unittest

from bench import accuracy, by_module, cost, experiment, published, resonance, scaling
from tests.harness.env import LINUX, TOP, must, run


def tracked() -> list[str]:
    """The repository's files, as git would commit them."""
    return must("git", "ls-files", "--cached", "--others", "--exclude-standard").split()


def starting_with(*first: str) -> list[str]:
    """Files whose first line begins with one of these words."""
    return [
        name
        for name in tracked()
        if (TOP / name).read_bytes()[:40].decode("utf-8", "replace").startswith(first)
    ]


class Lint(unittest.TestCase):
    def check(self, *command: object) -> None:
        done = run(*command)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, ""))

    def test_shellcheck(self):
        scripts = starting_with("#!/bin/sh", "#!/bin/bash", "#!/bin/busybox")
        self.assertGreater(len(scripts), 5)
        self.check("shellcheck", "--external-sources", "--severity=style", *scripts)

    def test_pylint(self):
        scripts = [name for name in tracked() if name.endswith(".py")]
        self.assertGreater(len(scripts), 5)
        self.check("/usr/bin/pylint", "--rcfile=pyproject.toml", "--score=no", *scripts)

    def test_javascript(self):
        scripts = [name for name in tracked() if name.endswith(".js")]
        self.assertGreater(len(scripts), 5)
        for name in scripts:
            self.check("node", "--check", name)

    def test_checkpatch(self):
        """The C files of the module and the tests; those of the series are looked at commit by commit."""
        files = [name for name in tracked() if re.fullmatch(r"(module|tests)/.*\.[ch]", name)]
        self.assertTrue(files)
        self.check(
            "perl",
            LINUX / "scripts/checkpatch.pl",
            "--strict",
            "--no-tree",
            "--quiet",
            "--file",
            *files,
        )

    def test_spelling(self):
        self.check(
            "codespell",
            "--ignore-words-list=pevent,filp,nd,responsiblity",
            *(name for name in tracked() if name != "COPYING"),
        )


class Figures(unittest.TestCase):
    def test_readme_has_the_tables_that_were_measured(self):
        """Those of results/6.12, which one run of `make bench` has left."""
        results = json.loads((TOP / "results/6.12/results.json").read_text())
        readme = (TOP / "README.md").read_text()
        for name, text in (
            ("published", experiment.report),
            ("accuracy", accuracy.summary),
            ("cost", cost.report),
            ("by_module", by_module.report),
            ("resonance", resonance.report),
            ("scaling", scaling.report),
        ):
            for line in text(results[name]).splitlines():
                if line.startswith("|"):
                    self.assertTrue(f"\n{line}\n" in readme, line)
        # what README says of goals
        self.assertEqual(results["accuracy"]["iterations"], accuracy.ITERATIONS)
        missed = [name for name, met in results["published"]["met"].items() if not met]
        self.assertEqual(missed, ["script, 25 %", "native, 25 %"])
        collect, stitched, text = (
            results["collect"],
            results["stitched_lbr"],
            " ".join(readme.split()),
        )
        memory = collect["sizes"][-1]["memory"]
        self.assertLess(sum(results["seconds"].values()), 1800)
        for figure in (
            f"run of {sum(results['seconds'].values()) / 60:.0f} minutes",
            f"memory ({memory['native'] / 2**20:.0f} and {memory['script'] / 2**20:.0f} MB)",
            f"{collect['native to decode']:.2f} times as long as a bare decode",
            f"{collect['script to native']:.1f} times as long",
            f"comes out {-100 * results['scaling']['cpus'][1]['rate error']:.0f} % too low",
            f"takes {100 * stitched['more time']:.0f} % longer",
            published.longer(results["published"]),
        ):
            self.assertTrue(figure in text, figure)

    def test_page_has_the_figures_that_were_measured(self):
        """The page on the interface has figures of both bases."""
        page = " ".join(
            (TOP / "Documentation/admin-guide/perf/alternate-period.rst").read_text().split()
        )
        results, newer = (
            json.loads((TOP / f"results/{base}/results.json").read_text())
            for base in ("6.12", "7.2")
        )
        added, of_newer = (each["cost"]["added"] for each in (results, newer))
        worth = " ".join(
            f"{float(format(row['independent'], '.2g')):.0f}"
            for jitter, row in results["resonance"]["jitter"].items()
            if jitter != "0"
        )
        for figure in (
            f" windows {worth} and ",
            f"executes {added['used']:.0f} more, {added['jitter']:.0f} with jitter",
            f"6.12; {of_newer['used']:.0f} and {of_newer['jitter']:.0f} of",
        ):
            self.assertTrue(figure in page, figure)


if __name__ == "__main__":
    unittest.main()
