# SPDX-License-Identifier: GPL-2.0
"""The patch store: scripts/series/series.py on a small repository, and the rules for patches/.

The small repository has two bases of a Linux of few files.
"""

import difflib
import email
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

from tests.harness.env import BASE, LINUX, TOP, must, run

MINUTES = 1

NEWEST, OLDER = "7.3", "6.12"
BASES = NEWEST, OLDER
MAILER = "Mai Ler <mai@example.org>"
SOMEBODY = "-c", "user.name=Somebody", "-c", "user.email=somebody@invalid"
GET_MAINTAINER = """#!/usr/bin/perl
print "Main Tainer <main\\@example.org> (maintainer:EVERYTHING)\\n";
print "list\\@example.org (open list:EVERYTHING)\\n";
"""


def lines(word: str) -> str:
    return "".join(f"{word} {number}\n" for number in range(1, 41))


def linux(base: str, folder: str, core: str) -> dict[str, str]:
    """The texts of a Linux tree by path."""
    version, patchlevel = base.split(".")
    return {
        "Makefile": f"VERSION = {version}\nPATCHLEVEL = {patchlevel}\nSUBLEVEL = 4\n",
        "MAINTAINERS": "\nEVERYTHING\nM:\tMain Tainer <main@example.org>\nF:\t*\n",
        "scripts/get_maintainer.pl": GET_MAINTAINER,
        "kernel/core.c": core,
        "kernel/sched.c": lines("sched"),
        "drivers/last.c": lines("last"),
        f"{folder}/Build": lines("build"),
    }


# the older base has other lines before and between the changes, and another name of a folder
SOURCES = {
    NEWEST: linux(NEWEST, "tools/shell/attr", lines("core")),
    OLDER: linux(
        OLDER, "tools/attr", "before\n" * 7 + lines("core").replace("core 12", "older 12")
    ),
}
SERIES = f"""# The order.
base {NEWEST}
base {OLDER} tools/shell/attr=tools/attr

core/first.patch
feature/differs.patch
feature/tool.patch
user/uses.patch
private/last.patch
"""
LETTERS = {
    "core": "Subject: the core\n\nOn Linux {linux}.\n",
    "feature": "Subject: a feature\nPrefix: RFC PATCH\n\nIt takes {cost[switch]} of {version}.\n",
    "user": "Subject: a user of the core\nNeeds: core\n\nIt uses the core.\n",
}
TAGS = 'Fixes: 0123456789ab ("core: Begin")\nSuggested-by: Sue Gest <sue@example.org>\n'
NEW = {"tools/shell/attr/run.sh": "#!/bin/sh\n" + lines("run"), "include/tool.h": lines("tool")}


def patch_of(
    subject: str, path: str, before: str, after: str, tags: str = "", new: str = ""
) -> str:
    """The text of a patch of one file."""
    diff = difflib.unified_diff(before.splitlines(True), after.splitlines(True))
    header = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
    message = f"Subject: {subject}\n\nSomething was wrong.\n\n{tags}".rstrip("\n")
    return f"{message}\n\n---\n{new}{header}{''.join([*diff][2:])}"


def patches() -> dict[str, str]:
    """The files of patches/."""
    newest = SOURCES[NEWEST]
    core, sched, last = (
        newest[f"{name}.c"] for name in ("kernel/core", "kernel/sched", "drivers/last")
    )
    first = core.replace("core 10\n", "core 10\nfirst\n")
    build = newest["tools/shell/attr/Build"]
    differs = [sched.replace("sched 5\n", f"sched 5\nof {name}\n") for name in ("newest", "older")]
    tool = patch_of(
        "feature: Tool",
        "tools/shell/attr/Build",
        build,
        build.replace("build 5\n", "build 5\ntool\n"),
        new="".join(f"new: {name}\n" for name in sorted(NEW)),
    )
    return {
        "series": SERIES,
        "core/first.patch": patch_of("core: First", "kernel/core.c", core, first, TAGS),
        "feature/differs.patch": patch_of("feature: Do", "kernel/sched.c", sched, differs[0]),
        f"overrides/{OLDER}/feature/differs.patch": patch_of(
            "feature: Do", "kernel/sched.c", sched, differs[1]
        ),
        "feature/tool.patch": tool,
        "user/uses.patch": patch_of(
            "user: Use", "kernel/core.c", first, first.replace("first\n", "used\n")
        ),
        "private/last.patch": patch_of(
            "private: Last", "drivers/last.c", last, last.replace("last 5\n", "at last\n")
        ),
        **{f"{topic}/cover-letter": letter for topic, letter in LETTERS.items()},
    }


def put(folder: Path, files: dict[str, str]) -> None:
    """Writes files; programs can be executed."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if text.count(old) != 1:
        raise ValueError(f"{path} has {old!r} not once")
    path.write_text(text.replace(old, new))


def git(tree: Path, *args: object) -> str:
    return must("git", *SOMEBODY, "-C", tree, *args).strip()


class Case(unittest.TestCase):
    """A repository with scripts/, patches/, new files and trees in build/; two Linux sources."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.top = self.folder / "top"
        for base, files in SOURCES.items():
            put(self.folder / f"linux-{base}", files)
        for name in "series/store.py", "series/series.py", "series/mail.py", "version":
            (self.top / "scripts/series").mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / "scripts" / name, self.top / "scripts" / name)
        put(self.top / "patches", patches())
        put(
            self.top,
            {
                **NEW,
                "CHANGELOG.md": "## [4.5.6] - 2024-11-17\n",
                "results/6.12.json": '{"cost": {"switch": 4220}}',
                "MAINTAINERS": "OURS\nM:\tOur Own <own@example.org>\nF:\t*\n",
                "build/.gitconfig": "[user]\n\tname = Mai Ler\n\temail = mai@example.org\n",
            },
        )

    def series(self, *args: object) -> subprocess.CompletedProcess:
        """Runs scripts/series/series.py as a user does."""
        own = {"GIT_CONFIG_GLOBAL": f"{self.top}/build/.gitconfig", "GIT_CONFIG_NOSYSTEM": "1"}
        command = sys.executable, "-B", self.top / "scripts/series/series.py", *args
        return run(*command, cwd=self.top, env=own, stderr=subprocess.PIPE)

    def tree(self, base: str) -> Path:
        return self.top / "build" / base / "linux"

    def make(self, base: str) -> subprocess.CompletedProcess:
        """Makes the tree of a base."""
        source = self.folder / f"linux-{base}"
        return self.series("tree", "--base", base, "--linux", source, self.tree(base))

    def made(self, *bases: str) -> Path:
        """Makes trees; returns the first one."""
        for base in bases:
            self.assertDone(self.make(base))
        return self.tree(bases[0])

    def export(self, base: str) -> set[str]:
        """Runs the export; returns the files that have changed, come or gone."""
        before = self.files()
        self.assertDone(self.series("export", "--base", base))
        now = self.files()
        return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}

    def files(self) -> dict[str, str]:
        """The files that a user writes or commits: all but build/."""
        found = {str(path.relative_to(self.top)): path for path in self.top.rglob("*")}
        return {
            name: path.read_text()
            for name, path in found.items()
            if path.is_file() and not name.startswith("build/")
        }

    def commits(self, base: str) -> dict[str, str]:
        """The commits of a tree in order, by the patch that each one names."""
        form = "--format=%(trailers:key=Patch,valueonly,separator=) %H"
        log = git(self.tree(base), "log", "--reverse", form, "pristine..series")
        return dict(line.split() for line in log.splitlines())

    def edit(self, base: str, name: str, path: str, old: str, new: str) -> None:
        """Changes a file in the commit of a patch, as a user does."""
        tree, commit = self.tree(base), self.commits(base)[name]
        git(tree, "checkout", "--quiet", "--detach", commit)
        replace(tree / path, old, new)
        git(tree, "commit", "--quiet", "--all", "--amend", "--no-edit")
        git(tree, "rebase", "--quiet", "--onto", "HEAD", commit, "series")

    def assertDone(self, done: subprocess.CompletedProcess) -> None:
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def assertRefused(self, done: subprocess.CompletedProcess, *words: str) -> None:
        """One line says why nothing was done."""
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Aseries: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, done.stderr)


class Tree(Case):
    def test_both_bases(self):
        names = [line.split()[0] for line in SERIES.splitlines() if ".patch" in line]
        self.made(*BASES)
        for base, edits, folder in (
            (NEWEST, "core 9\ncore 10\nused\ncore 11\ncore 12\n", "tools/shell/attr"),
            (OLDER, "core 9\ncore 10\nused\ncore 11\nolder 12\n", "tools/attr"),
        ):
            with self.subTest(base):
                tree, commits = self.tree(base), self.commits(base)
                self.assertEqual(list(commits), names)
                message = git(tree, "log", "-1", "--format=%B", commits[names[0]])
                self.assertEqual(
                    message,
                    f"core: First\n\nSomething was wrong.\n\n{TAGS}\nPatch: core/first.patch",
                )
                self.assertIn(edits, (tree / "kernel/core.c").read_text())
                sched = "newest" if base == NEWEST else "older"
                self.assertIn(
                    f"sched 5\nof {sched}\nsched 6", (tree / "kernel/sched.c").read_text()
                )
                self.assertIn("build 5\ntool\n", (tree / folder / "Build").read_text())
                for name, mode in (f"{folder}/run.sh", 0o111), ("include/tool.h", 0):
                    self.assertEqual((tree / name).stat().st_mode & 0o111, mode)
                self.assertEqual(git(tree, "status", "--porcelain"), "")

    def test_own_changes_are_refused_and_kept(self):
        """Whether or not they are committed, and whatever the source is."""
        tree = self.made(NEWEST)
        replace(tree / "kernel/core.c", "core 30\n", "mine\n")
        for commit, source in (False, "= 4"), (True, "= 4"), (True, "= 5"):
            if commit:
                git(tree, "commit", "--quiet", "--allow-empty", "--all", "-m", "core: Mine")
            replace(self.folder / f"linux-{NEWEST}/Makefile", "SUBLEVEL = 4", f"SUBLEVEL {source}")
            self.assertRefused(self.make(NEWEST), str(tree), "changes of its own", "export")
            self.assertIn("mine\n", (tree / "kernel/core.c").read_text())

    def test_folder_of_somebody_else_is_refused_and_kept(self):
        put(self.tree(NEWEST), {"thesis": "the only copy\n"})
        self.assertRefused(self.make(NEWEST), str(self.tree(NEWEST)))
        self.assertEqual([path.name for path in self.tree(NEWEST).iterdir()], ["thesis"])

    def test_patch_that_does_not_apply(self):
        """The two lines around a change must be as in the patch, those beyond may differ."""
        path = self.top / "patches/core/first.patch"
        replace(path, " core 9\n", " core nine\n")
        self.made(*BASES)
        own = f"patches/overrides/{OLDER}/feature/differs.patch"
        for name, old, new, base in (
            (own, " sched 5\n", " sched five\n", OLDER),
            ("patches/core/first.patch", " core 10\n", " core ten\n", NEWEST),
        ):
            replace(self.top / name, old, new)
            self.assertRefused(self.make(base), name, "does not apply")


class Export(Case):
    def test_edited_commit_changes_just_its_patch(self):
        """Two patches change kernel/core.c; line numbers of the other one change, too."""
        self.made(*BASES)
        for base in BASES:
            self.assertEqual(self.export(base), set())
        self.edit(NEWEST, "core/first.patch", "kernel/core.c", "core 5\n", "five\nfive\n")
        self.assertEqual(self.export(NEWEST), {"patches/core/first.patch"})
        # what was exported is no change of its own
        self.made(NEWEST)
        # the older base, which has other lines there, follows
        core = (self.made(OLDER) / "kernel/core.c").read_text()
        self.assertIn("core 4\nfive\nfive\ncore 6\n", core)
        self.assertEqual(self.export(OLDER), set())

    def test_older_base_gets_a_file_where_its_change_differs_and_loses_it(self):
        self.made(*BASES)
        own = f"patches/overrides/{OLDER}/private/last.patch"
        for old, new in ("at last\n", "at least\n"), ("at least\n", "at last\n"):
            self.edit(OLDER, "private/last.patch", "drivers/last.c", old, new)
            self.assertEqual(self.export(OLDER), {own})
            self.assertEqual((self.top / own).exists(), new == "at least\n")
            self.assertEqual(self.export(NEWEST), set())
            self.assertIn(new, (self.made(OLDER) / "drivers/last.c").read_text())

    def test_new_file_edited_in_the_newest_base_is_written_back(self):
        self.made(*BASES)
        name = "tools/shell/attr/run.sh"
        self.edit(NEWEST, "feature/tool.patch", name, "run 7\n", "seven\n")
        self.assertEqual(self.export(NEWEST), {name})
        self.assertIn("run 6\nseven\nrun 8\n", (self.top / name).read_text())
        self.assertEqual((self.top / name).stat().st_mode & 0o111, 0o111)
        # the older base shares it
        self.assertIn("seven\n", (self.made(OLDER) / "tools/attr/run.sh").read_text())
        self.assertEqual(self.export(OLDER), set())

    def test_new_patch_with_a_new_file(self):
        tree, name = self.made(NEWEST), "tools/shell/attr/more.sh"
        put(tree, {name: "#!/bin/sh\n"})
        replace(tree / "drivers/last.c", "last 20\n", "more\n")
        git(tree, "add", "--all")
        git(tree, "commit", "--quiet", "-m", "last: More\n\nPatch: x/y.patch")
        before = self.files()
        done = self.series("export", "--base", NEWEST)
        self.assertRefused(done, "patches/series", str(tree), "x/y.patch")
        self.assertEqual(self.files(), before)
        put(self.top, {"patches/series": f"{SERIES}x/y.patch\n"})
        self.assertEqual(self.export(NEWEST), {"patches/x/y.patch", name})
        self.assertEqual((self.top / name).stat().st_mode & 0o111, 0o111)
        text = (self.top / "patches/x/y.patch").read_text()
        self.assertRegex(text, rf"\ASubject: last: More\n\n---\nnew: {name}\ndiff --git a/drivers/")
        self.assertNotIn("#!/bin/sh", text)


class Mail(Case):
    def test_topics(self):
        self.made(NEWEST)
        self.assertDone(self.series("mail", out := self.top / "build/series"))
        self.assertEqual(sorted(path.name for path in out.iterdir()), sorted(LETTERS))
        for topic, (kind, *subjects) in {
            "core": ("PATCH", "the core", "core: First"),
            "feature": ("RFC PATCH", "a feature", "feature: Do", "feature: Tool"),
            "user": ("PATCH", "a user of the core", "user: Use"),
        }.items():
            paths = sorted((out / topic).iterdir())
            self.assertEqual(len(paths), len(subjects))
            for number, (path, subject) in enumerate(zip(paths, subjects)):
                mail = email.message_from_string(path.read_text())
                place = f"{number}/{len(paths) - 1}"
                self.assertEqual(mail["Subject"].replace("\n", ""), f"[{kind} {place}] {subject}")
                self.assertEqual(mail["From"], MAILER)
                self.assertEqual(mail["To"], "Main Tainer <main@example.org>")
                self.assertIn("list@example.org", mail["Cc"])
                body = mail.get_payload()
                self.assertNotRegex(body, r"(?m)^Patch: |\*\*\*")
                signed = re.findall(r"(?m)^Signed-off-by: (.*)", body)
                self.assertEqual(signed, [MAILER] if number else [])
        texts = {path.name: path.read_text() for path in out.rglob("*.patch")}
        self.assertIn(f"\n\n{TAGS}Signed-off-by: {MAILER}\n---\n", texts["0001-core-First.patch"])
        self.assertRegex(texts["0001-core-First.patch"], r"(?s)\nCc: .*Sue Gest <sue@.*?\n\n")
        letters = ((out / topic / "0000-cover-letter.patch").read_text() for topic in LETTERS)
        for letter, words in zip(
            letters, ("On Linux 7.3.4.", "It takes 4220 of 4.5.6.", "It uses")
        ):
            self.assertIn(f"\n\n{words}", letter)


@dataclass
class Stored:
    """A patch file of this repository, read apart from scripts/series/store.py."""

    path: str
    message: str
    new: list[str]
    diff: str

    @staticmethod
    def read(path: Path) -> "Stored":
        message, rest = path.read_text().split("\n---\n", 1)
        new = re.match(r"(?:new: .*\n)*", rest)[0]
        names = [line.split(": ")[1] for line in new.splitlines()]
        return Stored(str(path.relative_to(TOP / "patches")), message, names, rest[len(new) :])


class Rules(unittest.TestCase):
    """The patches of this repository."""

    @classmethod
    def setUpClass(cls) -> None:
        text = (TOP / "patches/series").read_text()
        rows = [line.split("#")[0].split() for line in text.splitlines()]
        cls.bases = {row[1]: row[2:] for row in rows if row[:1] == ["base"]}
        # TOPIC/NAME.patch, and the bases that have it
        cls.entries = [
            (row[0], [row[1].removeprefix("only=")] if row[1:] else list(cls.bases))
            for row in rows
            if row and row[0] != "base"
        ]
        paths = (TOP / "patches").rglob("*.patch")
        # the manual page belongs to another project
        cls.patches = [Stored.read(path) for path in sorted(paths) if "man-pages" not in path.parts]

    def used(self, base: str) -> list[str]:
        """The files that a base uses."""
        own = {patch.path for patch in self.patches}
        names = [name for name, bases in self.entries if base in bases]
        pairs = [(f"overrides/{base}/{name}", name) for name in names]
        return [override if override in own else name for override, name in pairs]

    def test_every_file_is_listed_and_every_line_has_its_file(self):
        names = [name for name, _ in self.entries]
        self.assertGreater(len(names), 50)
        self.assertEqual(len(names), len(set(names)))
        used = {name for base in self.bases for name in self.used(base)}
        self.assertEqual(used, {patch.path for patch in self.patches})

    def test_patches_of_the_benchmark_apply(self):
        for path in sorted((TOP / "bench").glob("*.patch")):
            must("git", "-C", LINUX, "apply", "--check", path)

    def test_git_alone_applies_them(self):
        """Copies the new files of each patch, then `git apply -C1`: that makes the series' tree."""
        by_path = {patch.path: patch for patch in self.patches}
        with tempfile.TemporaryDirectory() as own:
            env = {"GIT_INDEX_FILE": f"{own}/index", "GIT_OBJECT_DIRECTORY": own}
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(LINUX / ".git/objects")

            def in_linux(*args: str, text: str = "") -> str:
                return must("git", "-C", LINUX, *args, env=env, input=text, stdin=None).strip()

            def there(text: str) -> str:
                for here, other in (words.split("=") for words in self.bases[BASE]):
                    text = text.replace(f"{here}/", f"{other}/")
                return text

            in_linux("read-tree", "pristine")
            for path in self.used(BASE):
                new, diff = by_path[path].new, by_path[path].diff
                paths = "".join(f"{TOP / name}\n" for name in new)
                blobs = in_linux("hash-object", "-w", "--no-filters", "--stdin-paths", text=paths)
                rows = ""
                for name, blob in zip(new, blobs.split(), strict=True):
                    mode = "100755" if os.access(TOP / name, os.X_OK) else "100644"
                    rows += f"{mode} {blob}\t{there(name)}\n"
                in_linux("update-index", "--add", "--index-info", text=rows)
                if diff:
                    in_linux("apply", "--cached", "-C1", "--whitespace=nowarn", text=there(diff))
            made = in_linux("rev-parse", "series^{tree}")
            self.assertEqual(in_linux("write-tree"), made)

    def test_nobody_signs_in_the_store(self):
        for patch in self.patches:
            with self.subTest(patch.path):
                self.assertRegex(patch.message, r"\ASubject: \S.*\n\n\S")
                self.assertNotRegex(patch.message, r"(?mi)^(Signed-off-by|From|Date|Author|Patch):")

    def test_every_new_file_is_there_and_introduced_once(self):
        by_path = {patch.path: patch for patch in self.patches}
        everything = set()
        for base in self.bases:
            new = [name for path in self.used(base) for name in by_path[path].new]
            self.assertEqual(len(new), len(set(new)))
            everything |= set(new)
        tracked = set(must("git", "ls-files").split("\n"))
        self.assertLessEqual(everything, tracked)
        # every file for Linux is in the series
        ours = r"(?:arch|drivers|include|kernel|lib|tools|Documentation)/"
        found = {name for name in tracked if re.match(ours, name)}
        self.assertEqual(found - everything, {"kernel/README.md"})
