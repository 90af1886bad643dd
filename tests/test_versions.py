# SPDX-License-Identifier: GPL-2.0
"""The series on the oldest and the newest Linux 6.12 that Debian has, of whatever suite, besides the one in build/linux."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from env import BUILD, CHECK, LINUX, must, run

PACKAGE = "linux-source-6.12"
SUITES = {"debian": ("bookworm", "bookworm-backports", "trixie", "sid"),
          "debian-security": ("bookworm-security", "trixie-security")}
# Patches that an older 6.12 does not take as they are, and why.
TOO_NEW = {
    "perf-core-Alternate-between-two-sample-periods":
        "6.12.111 has no PERF_PMU_CAP_AUX_PREFER_LARGE, the last of the list to which it adds",
    "perf-test-Add-a-benchmark-workload-with-known-shares":
        "6.12.107 has no workload traploop, the last of the list to which it adds",
}


def private_apt(folder: Path) -> list[str]:
    """Options of an apt that knows all SUITES of this machine's mirrors, and keeps this to folder."""
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "cache/archives/partial").mkdir(parents=True)
    mirrors = set(must("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").split())
    lines = [f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} {suite} main\n"
             for mirror in mirrors for suite in SUITES.get(mirror.rstrip("/").rsplit("/", 1)[-1], ())]
    (folder / "sources.list").write_text("".join(lines))
    settings = {"Dir::Etc::SourceList": folder / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
                "Dir::State::Lists": folder / "lists", "Dir::Cache": folder / "cache", "Acquire::Languages": "none",
                "APT::Sandbox::User": "root"}
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def numbers(version: str) -> tuple[int, ...]:
    """6.12.117-1~deb12u1: (6, 12, 117)."""
    return tuple(int(number) for number in re.match(r"[\d.]+", version)[0].split("."))


class Versions(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        must("make", "series")
        cls.mail = sorted((BUILD / "series").glob("*.patch"))[1:]
        CHECK.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=CHECK)  # pylint: disable=consider-using-with
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.apt = private_apt(cls.folder)
        run("apt-get", *cls.apt, "update")      # a suite that is no more is no failure
        listed = [line.split("|")[1].strip() for line in must("apt-cache", *cls.apt, "madison", PACKAGE).splitlines()]
        cls.versions = sorted(set(listed), key=numbers)

    def tree(self, version: str) -> Path:
        """A git tree of the files of that Linux which the series changes."""
        must("apt-get", *self.apt, "download", f"{PACKAGE}={version}", cwd=self.folder)
        package = next(self.folder.glob(f"{PACKAGE}_*.deb"))
        tree = self.folder / version
        tree.mkdir()
        names = must("git", "-C", LINUX, "diff", "--name-only", "--diff-filter=M", "pristine", "series").split()
        (tree / "names").write_text("".join(f"{PACKAGE}/{name}\n" for name in names))
        subprocess.run(f"dpkg-deb --fsys-tarfile {package} | tar -xO ./usr/src/{PACKAGE}.tar.xz |"
                       f" tar -xJ -C {tree} --strip-components=1 -T {tree}/names", shell=True, check=True)
        package.unlink()
        self.git(tree, "init", "--quiet")
        self.git(tree, "add", "--force", "--all")
        self.git(tree, "commit", "--quiet", "-m", version)
        return tree

    def git(self, tree: Path, *words: object) -> subprocess.CompletedProcess:
        done = run("git", "-C", tree, "-c", "user.name=Somebody", "-c", "user.email=somebody@invalid", *words)
        if words[0] != "am":
            self.assertEqual(done.returncode, 0, done.stdout)
        return done

    def test_applies_without_fuzz(self):
        """git am takes no fuzz: the lines around each change must be the same, wherever they are."""
        self.assertGreater(len(self.versions), 1)
        ours = numbers(must("make", "-s", "-C", LINUX, "kernelversion"))
        for version in (self.versions[0], self.versions[-1]):
            if numbers(version) == ours:
                continue
            with self.subTest(version):
                tree = self.tree(version)
                refused = {}
                for patch in self.mail:
                    done = self.git(tree, "am", "--quiet", patch)
                    if done.returncode:
                        refused[patch.stem.split("-", 1)[1]] = done.stdout
                        self.git(tree, "am", "--abort")
                        run("git", "-C", tree, "apply", "--reject", patch)
                        self.git(tree, "add", "--force", "--all")
                        self.git(tree, "commit", "--quiet", "--allow-empty", "-m", patch.name)
                for name in TOO_NEW if numbers(version) < ours else ():
                    refused.pop(name, None)
                self.assertEqual(refused, {})


if __name__ == "__main__":
    unittest.main()
