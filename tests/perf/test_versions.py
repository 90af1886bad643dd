# SPDX-License-Identifier: GPL-2.0
"""The series on the newest Linux of its base in Debian's suites; README promises no older one."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from tests.harness.env import BASE, CHECK, LINUX, TOP, must, run

SLOW = True
MINUTES = 5
LOCK = "trees"

PACKAGE = f"linux-source-{BASE}"
SUITES = (
    "bookworm",
    "bookworm-security",
    "bookworm-backports",
    "trixie",
    "trixie-security",
    "trixie-backports",
    "sid",
)


def numbers(version: str) -> tuple[int, ...]:
    """6.12.117-1~deb12u1: (6, 12, 117)."""
    return tuple(int(number) for number in re.match(r"[\d.]+", version)[0].split("."))


class Versions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        CHECK.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=CHECK)  # pylint: disable=consider-using-with
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        mails = cls.folder / "mails"
        must("git", "-C", LINUX, "format-patch", "--quiet", "-o", mails, "pristine..series")
        cls.mail = sorted(mails.iterdir())
        must(TOP / "scripts/debian/apt.sh", cls.folder, "amd64", *SUITES)
        cls.apt = {"APT_CONFIG": str(cls.folder / "apt.conf")}
        run("apt-get", "update", env=cls.apt)  # it is no failure if a suite is gone
        listed = [
            line.split("|")[1].strip()
            for line in must("apt-cache", "madison", PACKAGE, env=cls.apt).splitlines()
        ]
        cls.versions = sorted(set(listed), key=numbers)

    def tree(self, version: str) -> Path:
        """A git tree with those files of a Linux that the series changes."""
        must("apt-get", "download", f"{PACKAGE}={version}", cwd=self.folder, env=self.apt)
        package = next(self.folder.glob(f"{PACKAGE}_*.deb"))
        tree = self.folder / version
        tree.mkdir()
        names = must(
            "git", "-C", LINUX, "diff", "--name-only", "--diff-filter=M", "pristine", "series"
        ).split()
        (tree / "names").write_text("".join(f"{PACKAGE}/{name}\n" for name in names))
        subprocess.run(
            (
                f"dpkg-deb --fsys-tarfile {package} | tar -xO ./usr/src/{PACKAGE}.tar.xz |"
                f" tar -xJ -C {tree} --strip-components=1 -T {tree}/names"
            ),
            shell=True,
            check=True,
        )
        package.unlink()
        self.git(tree, "init", "--quiet")
        self.git(tree, "add", "--force", "--all")
        self.git(tree, "commit", "--quiet", "-m", version)
        return tree

    def git(self, tree: Path, *words: object) -> subprocess.CompletedProcess:
        done = run(
            "git",
            "-C",
            tree,
            "-c",
            "user.name=Somebody",
            "-c",
            "user.email=somebody@invalid",
            *words,
        )
        if words[0] not in ("am", "apply"):
            self.assertEqual(done.returncode, 0, done.stdout)
        return done

    def test_applies_without_fuzz(self):
        """git am applies no fuzz: the lines around each change must be equal, at any place."""
        ours = must("make", "-s", "-C", LINUX, "kernelversion").strip()
        newest = self.versions[-1]
        if numbers(newest) <= numbers(ours):
            self.skipTest(f"Debian has no Linux {BASE} after {ours}")
        tree = self.tree(newest)
        refused = []
        for patch in self.mail:
            if self.git(tree, "am", "--quiet", patch).returncode:
                self.git(tree, "am", "--abort")
                refused.append(patch.name)
        self.assertEqual(refused, [], newest)


if __name__ == "__main__":
    unittest.main()
