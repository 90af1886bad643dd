# SPDX-License-Identifier: GPL-2.0
"""The patch store: scripts/series/series.py on a small repository, and the rules for patches/.

The small repository has two bases of a tiny Linux. Each change is stated as lines to replace, from
which the tests compute what every commit of a tree must hold.
"""

import contextlib
import email
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from unittest import mock

from tests.harness.env import LINUX, TOP, must, run

MINUTES = 1

NEWEST, OLDER = "7.3", "6.12"
BASES = NEWEST, OLDER
MAILER = "Mai Ler <mai@example.org>"
SOMEBODY = "-c", "user.name=Somebody", "-c", "user.email=somebody@invalid"
GET_MAINTAINER = """#!/usr/bin/perl
print "Main Tainer <main\\@example.org> (maintainer:EVERYTHING)\\n";
print "list\\@example.org (open list:EVERYTHING)\\n";
"""

# The texts of files by path; the path of an executable file ends with *, as in `ls -F`.
Files = dict[str, str]
# Lines of files to replace: path, old lines, new lines.
Edits = list[tuple[str, str, str]]


def lines(word: str, count: int = 40) -> str:
    return "".join(f"{word} {number}\n" for number in range(1, count + 1))


def linux(release: str, **files: str) -> Files:
    """A Linux tree of few files."""
    version, patchlevel = release.split(".")
    return {
        "Makefile": f"VERSION = {version}\nPATCHLEVEL = {patchlevel}\nSUBLEVEL = 4\n",
        "MAINTAINERS": "\nEVERYTHING\nM:\tMain Tainer <main@example.org>\nF:\t*\n",
        "scripts/get_maintainer.pl*": GET_MAINTAINER,
        **{name.replace("__", "/") + ".c": text for name, text in files.items()},
    }


@dataclass
class Change:
    """One patch: it replaces lines of Linux's files, and adds files of ours."""

    name: str
    edits: Edits = field(default_factory=list)
    new: Files = field(default_factory=dict)
    only: str | None = None
    older_edits: Edits | None = None  # edits of the older base, if it has a patch of its own
    tags: str = ""

    @property
    def message(self) -> str:
        subject = self.name.removesuffix(".patch").replace("/", ": Do ")
        return f"{subject}\n\nSomething was wrong.\n{self.tags}".rstrip("\n")

    def owners(self) -> list[str]:
        """The bases that have a file of their own for this patch."""
        if self.only:
            return [self.only]
        return [NEWEST] if self.older_edits is None else [NEWEST, OLDER]

    def on(self, base: str, files: Files) -> Files:
        """The files with this change."""
        own = base == OLDER and self.older_edits is not None
        files = dict(files)
        for path, old, new in self.older_edits if own else self.edits:
            path = there(base, path)
            if files[path].count(old) != 1:
                raise ValueError(f"{path} has {old!r} not once")
            files[path] = files[path].replace(old, new)
        return files | {there(base, path): text for path, text in self.new.items()}


def there(base: str, path: str) -> str:
    """The path of a file in a base: one folder has another name in the older one."""
    return path.replace("tools/shell/attr/", "tools/attr/") if base == OLDER else path


def put(folder: Path, files: Files) -> None:
    for name, text in files.items():
        path = folder / name.rstrip("*")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if name.endswith("*") else 0o644)


def git(tree: Path, *args: object) -> str:
    return must("git", *SOMEBODY, "-C", tree, *args)


def held(tree: Path, commit: str) -> Files:
    """The files of a commit."""
    command = ["git", "-C", str(tree), "archive", commit]
    archive = io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout)
    with tarfile.open(fileobj=archive) as tar:
        return {
            member.name + "*" * bool(member.mode & 0o100): tar.extractfile(member).read().decode()
            for member in tar
            if member.isfile()
        }


class House:
    """A repository with scripts/, patches/, new files and trees in build/; two Linux sources."""

    def __init__(self, folder: Path, sources: dict[str, Files], changes: list[Change]) -> None:
        self.folder, self.top, self.sources, self.changes = folder, folder / "top", sources, changes

    def build(self) -> "House":
        """Writes everything but the trees."""
        for base, files in self.sources.items():
            put(self.folder / f"linux-{base}", files)
        scripts = "series/store.py", "series/series.py", "series/mail.py", "version"
        (self.top / "scripts/series").mkdir(parents=True)
        for name in scripts:
            shutil.copy2(TOP / "scripts" / name, self.top / "scripts" / name)
        put(
            self.top,
            {
                "CHANGELOG.md": "## [4.5.6] - 2024-11-17\n",
                "results/6.12.json": '{"cost": {"switch": 4220}}',
                "MAINTAINERS": "OURS\nM:\tOur Own <own@example.org>\nF:\t*\n",
                ".home/.gitconfig": "[user]\n\tname = Mai Ler\n\temail = mai@example.org\n",
            },
        )
        self.write_series()
        git(self.folder, "init", "--quiet", "--bare", "scratch")
        for base in BASES:
            files = self.sources[base]
            for change in self.of(base):
                before, files = files, change.on(base, files)
                if base in change.owners():
                    self.write_patch(base, change, before, files)
        return self

    def of(self, base: str) -> list[Change]:
        return [change for change in self.changes if change.only in (None, base)]

    def write_series(self) -> None:
        entries = "".join(
            f"{change.name} only={change.only}\n" if change.only else f"{change.name}\n"
            for change in self.changes
        )
        bases = f"base {NEWEST}\nbase {OLDER} tools/shell/attr=tools/attr\n"
        put(self.top, {"patches/series": f"# The order.\n\n{bases}\n{entries}"})

    def patch(self, base: str, name: str) -> Path:
        """The file of a patch that a base owns."""
        return self.top / "patches" / (name if base == NEWEST else f"overrides/{base}/{name}")

    def add_letters(self) -> "House":
        for topic, letter in LETTERS.items():
            put(self.top / "patches", {f"{topic}/cover-letter": letter})
        return self

    def write_patch(self, base: str, change: Change, before: Files, after: Files) -> None:
        """Writes a patch and its new files, made with git in a separate repository."""
        put(self.top, change.new)
        added = {there(base, path): text for path, text in change.new.items()}
        trees = [self.scratch_tree(files) for files in (before | added, after)]
        diff = git(self.folder / "scratch", "diff", "--abbrev=12", *trees)
        new = "".join(f"new: {path.rstrip('*')}\n" for path in sorted(change.new))
        path = self.patch(base, change.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Subject: {change.message}\n\n---\n{new}{diff}")

    def scratch_tree(self, files: Files) -> str:
        """git's id of a tree of these files."""
        work = self.folder / "scratch.work"
        shutil.rmtree(work, ignore_errors=True)
        put(work, files)
        own = f"--git-dir={self.folder}/scratch", f"--work-tree={work}"
        git(work, *own, "add", "--all", "--force", ".")
        return git(work, *own, "write-tree").strip()

    def tree(self, base: str) -> Path:
        return self.top / "build" / base / "linux"

    def series(self, *args: object) -> subprocess.CompletedProcess:
        """Runs scripts/series/series.py as a user does."""
        home = self.top / ".home"
        own = {
            "HOME": str(home),
            "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        command = sys.executable, "-B", self.top / "scripts/series/series.py", *args
        return run(*command, cwd=self.top, env=own, stderr=subprocess.PIPE)

    def must(self, *args: object) -> str:
        done = self.series(*args)
        if done.returncode or done.stderr:
            raise AssertionError(f"series.py {args}: {done.returncode}\n{done.stderr}")
        return done.stdout

    def tree_args(self, base: str, out: Path | None = None) -> tuple[object, ...]:
        source = self.folder / f"linux-{base}"
        return "tree", "--base", base, "--linux", source, out or self.tree(base)

    def make(self, *bases: str) -> "House":
        for base in bases:
            self.must(*self.tree_args(base))
        return self

    def export(self, base: str) -> dict[str, str]:
        """Runs the export; returns what became of each file that changed."""
        before = self.files()
        self.must("export", "--base", base)
        return self.changed(before)

    def files(self) -> dict[str, tuple[bytes, bool]]:
        """The files that a user writes or commits: all but build/."""
        return {
            str(path.relative_to(self.top)): (path.read_bytes(), bool(path.stat().st_mode & 0o100))
            for path in self.top.rglob("*")
            if path.is_file() and path.relative_to(self.top).parts[0] not in ("build", ".home")
        }

    def changed(self, before: dict[str, tuple[bytes, bool]]) -> dict[str, str]:
        now = self.files()
        kinds = {(True, False): "removed", (False, True): "added", (True, True): "changed"}
        return {
            name: kinds[name in before, name in now]
            for name in before.keys() | now.keys()
            if before.get(name) != now.get(name)
        }

    def commits(self, base: str) -> dict[str, str]:
        """The commits of a tree in order, by the patch that each one names."""
        log = git(self.tree(base), "log", "--reverse", "--format=%H%n%B%x00", "pristine..series")
        entries = [entry.strip().split("\n") for entry in log.split("\0")[:-1]]
        return {entry[-1].removeprefix("Patch: "): entry[0] for entry in entries}

    def expected(self, base: str) -> dict[str, Files]:
        """The files that the commit of each patch must have."""
        files, found = self.sources[base], {}
        for change in self.of(base):
            files = found[change.name] = change.on(base, files)
        return found

    def edit(self, base: str, name: str, path: str, old: str, new: str) -> None:
        """Changes a file in the commit of a patch, as a user does."""
        tree, commit = self.tree(base), self.commits(base)[name]
        git(tree, "checkout", "--quiet", "--detach", commit)
        replace(tree / path, old, new)
        git(tree, "commit", "--quiet", "--all", "--amend", "--no-edit")
        git(tree, "rebase", "--quiet", "--onto", "HEAD", commit, "series")

    def reword(self, base: str, old: str, new: str) -> None:
        """Changes the message of the last commit."""
        tree = self.tree(base)
        message = git(tree, "log", "-1", "--format=%B").replace(old, new)
        git(tree, "commit", "--quiet", "--amend", "-m", message)

    def commit(self, base: str, path: str, old: str, new: str, message: str) -> None:
        """Adds a commit, as a user does."""
        replace(self.tree(base) / path, old, new)
        git(self.tree(base), "commit", "--quiet", "--all", "-m", message)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if text.count(old) != 1:
        raise ValueError(f"{path} has {old!r} not once")
    path.write_text(text.replace(old, new))


SOURCES = {
    NEWEST: linux(
        NEWEST,
        kernel__core=lines("core"),
        kernel__sched=lines("sched"),
        kernel__newest=lines("newest"),
        drivers__other=lines("other"),
        drivers__last=lines("last"),
    )
    | {"tools/shell/attr/Build": lines("build")},
    # the older base has other lines before and between the changes
    OLDER: linux(
        OLDER,
        kernel__core=lines("before", 7) + lines("core").replace("core 12\n", "older 12\n"),
        kernel__sched=lines("sched"),
        kernel__oldest=lines("oldest"),
        drivers__other=lines("other").replace("other 3\n", "older 3\n"),
        drivers__last=lines("last"),
    )
    | {"tools/attr/Build": lines("build")},
}
MAINTAINED = "M:\tOur Own <own@example.org>\nF:\tinclude/logic.h\n"
CHANGES = [
    Change(
        "core/first.patch",
        [("kernel/core.c", "core 10\n", "core 10\nfirst\n")],
        tags='\nFixes: 0123456789ab ("core: Begin")\nSuggested-by: Sue Gest <sue@example.org>',
    ),
    Change(
        "core/only-newest.patch",
        [("kernel/newest.c", "newest 5\n", "")],
        only=NEWEST,
    ),
    Change("private/reserve.patch", [("kernel/oldest.c", "oldest 5\n", "reserved\n")], only=OLDER),
    Change(
        "feature/logic.patch",
        [("kernel/core.c", "core 20\n", "logic\n")],
        {"include/logic.h": lines("logic", 9)},
    ),
    Change(
        "feature/differs.patch",
        [("kernel/sched.c", "sched 5\n", "sched 5\nof the newest\n")],
        older_edits=[("kernel/sched.c", "sched 5\n", "sched 5\nof the older\n")],
    ),
    Change(
        "feature/tool.patch",
        [("tools/shell/attr/Build", "build 5\n", "build 5\ntool\n")],
        {
            "tools/shell/attr/run.sh*": "#!/bin/sh\n" + lines("run"),
            "tools/shell/attr/data": lines("data"),
        },
    ),
    Change("other/alone.patch", [("drivers/other.c", "other 5\n", "other\n")]),
    Change("other/maintained.patch", [("MAINTAINERS", "\nEV", f"\nA\n{MAINTAINED}\nEV")]),
    Change("user/uses.patch", [("kernel/core.c", "logic\n", "uses\n")]),
    Change("private/last.patch", [("drivers/last.c", "last 5\n", "last\n")]),
]
LETTERS = {
    "core": "Subject: the core\n\nOn Linux {linux}.\n",
    "feature": "Subject: a feature\nNeeds: core\nPrefix: RFC PATCH\n\nVersion {version}.\n",
    "other": "Subject: something else\n\nIt takes {cost[switch]} instructions.\n",
    "user": "Subject: a user of the feature\nNeeds: feature\n\nIt uses the feature.\n",
}

WORK = Path()  # setUpModule() sets it


def setUpModule() -> None:
    global WORK  # pylint: disable=global-statement
    WORK = Path(unittest.enterModuleContext(tempfile.TemporaryDirectory()))


class Case(unittest.TestCase):
    def folder(self) -> Path:
        return Path(self.enterContext(tempfile.TemporaryDirectory()))

    def house(self, *bases: str) -> House:
        """A repository with the trees of these bases.

        It is built once, and then copied to the same path, as a tree has the path of its source.
        """
        house = House(WORK / "house", SOURCES, list(CHANGES))
        saved = WORK / f"saved {bases}"
        shutil.rmtree(house.folder, ignore_errors=True)
        if saved.exists():
            shutil.copytree(saved, house.folder)
            return house
        house.folder.mkdir()
        house.build().add_letters().make(*bases)
        shutil.copytree(house.folder, saved)
        return house

    def assertRefused(self, done: subprocess.CompletedProcess, *words: str) -> None:
        """One line says why nothing was done."""
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Aseries: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, done.stderr)

    @contextlib.contextmanager
    def nothing_written(self, house: House, *bases: str) -> Iterator[None]:
        """No file of the repository changes, and no tree of these bases."""
        trees = [house.tree(base) for base in bases]

        def state() -> list[object]:
            return [(git(tree, "rev-parse", "HEAD", "series"), stamps(tree)) for tree in trees]

        files, before = house.files(), state()
        yield
        self.assertEqual(house.changed(files), {})
        self.assertEqual(state(), before)

    def assertTree(self, house: House, base: str) -> None:
        """Each commit of a tree, and its working files, are as the changes say."""
        tree, commits, expected = house.tree(base), house.commits(base), house.expected(base)
        self.assertEqual(list(commits), list(expected))
        for change in house.of(base):
            commit = commits[change.name]
            self.assertEqual(held(tree, commit), expected[change.name], change.name)
            message = git(tree, "log", "-1", "--format=%B", commit).strip()
            self.assertEqual(message, f"{change.message}\n\nPatch: {change.name}")
        self.assertEqual(held(tree, "pristine"), house.sources[base])
        self.assertEqual(git(tree, "status", "--porcelain"), "")
        self.assertEqual(git(tree, "rev-parse", "HEAD"), git(tree, "rev-parse", "series"))


def stamps(tree: Path) -> dict[str, int]:
    """The modification time of each file of a work tree, in ns."""
    found = {
        str(path.relative_to(tree)): path.stat().st_mtime_ns
        for path in tree.rglob("*")
        if path.is_file()
    }
    return {name: stamp for name, stamp in found.items() if not name.startswith(".git/")}


class Tree(Case):
    def test_each_commit_of_both_bases(self):
        house = self.house(*BASES)
        for base in BASES:
            with self.subTest(base):
                self.assertTree(house, base)
                self.assertEqual("core/only-newest.patch" in house.commits(base), base == NEWEST)
                self.assertEqual("private/reserve.patch" in house.commits(base), base == OLDER)
                script = house.tree(base) / there(base, "tools/shell/attr/run.sh")
                self.assertEqual(script.stat().st_mode & 0o111, 0o111)
                data = house.tree(base) / there(base, "tools/shell/attr/data")
                self.assertEqual(data.stat().st_mode & 0o111, 0)
        self.assertFalse((house.tree(OLDER) / "tools/shell").exists())

    def test_changed_patch_and_file_touch_only_what_they_change(self):
        house = self.house(NEWEST)
        before = stamps(house.tree(NEWEST))
        replace(house.patch(NEWEST, "feature/differs.patch"), "+of the newest", "+of another day")
        replace(house.top / "include/logic.h", "logic 3\n", "logic three\n")
        house.make(NEWEST)
        now = stamps(house.tree(NEWEST))
        self.assertEqual(now.keys(), before.keys())
        changed = {name for name, stamp in now.items() if stamp != before[name]}
        self.assertEqual(changed, {"kernel/sched.c", "include/logic.h"})
        self.assertIn("of another day\n", (house.tree(NEWEST) / "kernel/sched.c").read_text())

    def test_another_source_makes_another_tree(self):
        house = self.house(NEWEST)
        makefile = house.sources[NEWEST]["Makefile"].replace("SUBLEVEL = 4", "SUBLEVEL = 5")
        house.sources = house.sources | {NEWEST: house.sources[NEWEST] | {"Makefile": makefile}}
        put(house.folder / f"linux-{NEWEST}", {"Makefile": makefile})
        house.make(NEWEST)
        self.assertTree(house, NEWEST)

    def test_called_by_a_hook_of_another_repository(self):
        """git tells hooks of a linked tree where their repository is; it stays as it is."""
        house = self.house(NEWEST)
        other = house.folder / "other"
        must("git", "init", "--quiet", other)
        put(other, {"file": "theirs\n"})
        git(other, "add", "file")
        git(other, "commit", "--quiet", "-m", "Theirs")
        before = git(other, "log", "--format=%H", "--all"), git(other, "status", "--porcelain")
        shutil.rmtree(house.tree(NEWEST))
        hook = {"GIT_DIR": f"{other}/.git", "GIT_INDEX_FILE": f"{other}/.git/index"}
        with mock.patch.dict(os.environ, hook):
            house.make(NEWEST)
        after = git(other, "log", "--format=%H", "--all"), git(other, "status", "--porcelain")
        self.assertEqual(after, before)
        self.assertTree(house, NEWEST)

    def test_own_changes_are_refused_and_kept(self):
        tree = (house := self.house(NEWEST)).tree(NEWEST)
        made = git(tree, "rev-parse", "HEAD").strip()

        def edit() -> None:
            replace(tree / "kernel/core.c", "core 30\n", "mine\n")

        def stage() -> None:
            edit()
            git(tree, "add", "kernel/core.c")

        def commit() -> None:
            edit()
            git(tree, "commit", "--quiet", "--all", "-m", "core: Mine")

        for own in (edit, stage, commit):
            for newer_source in (False, True):
                with self.subTest(own.__name__, newer_source=newer_source):
                    own()
                    if newer_source:
                        makefile = house.sources[NEWEST]["Makefile"].replace("= 4", "= 5")
                        put(house.folder / f"linux-{NEWEST}", {"Makefile": makefile})
                    with self.nothing_written(house, NEWEST):
                        done = house.series(*house.tree_args(NEWEST))
                        self.assertRefused(done, str(tree), "changes of its own", "export")
                    self.assertIn("mine\n", (tree / "kernel/core.c").read_text())
                    put(house.folder / f"linux-{NEWEST}", house.sources[NEWEST])
                    git(tree, "reset", "--quiet", "--hard", made)

    def test_own_message_is_refused_and_kept(self):
        tree = (house := self.house(NEWEST)).tree(NEWEST)
        house.reword(NEWEST, "Something was wrong.", "Everything was wrong.")
        with self.nothing_written(house, NEWEST):
            done = house.series(*house.tree_args(NEWEST))
            self.assertRefused(done, str(tree), "changes of its own", "export")
        self.assertIn("Everything was wrong.", git(tree, "log", "-1", "series"))

    def test_exported_changes_are_no_own_changes(self):
        house = self.house(NEWEST)
        house.edit(NEWEST, "other/alone.patch", "drivers/other.c", "other 30\n", "thirty\n")
        house.reword(NEWEST, "Something was wrong.", "Everything was wrong.")
        house.must("export", "--base", NEWEST)
        before = stamps(house.tree(NEWEST))
        house.make(NEWEST)
        self.assertEqual(stamps(house.tree(NEWEST)), before)
        self.assertIn("thirty\n", (house.tree(NEWEST) / "drivers/other.c").read_text())
        self.assertIn("Everything was", git(house.tree(NEWEST), "log", "-1"))

    def test_folder_of_somebody_else_is_refused_and_kept(self):
        house = self.house()
        put(house.tree(NEWEST), {"thesis": "the only copy\n"})
        self.assertRefused(house.series(*house.tree_args(NEWEST)), str(house.tree(NEWEST)))
        self.assertEqual([path.name for path in house.tree(NEWEST).iterdir()], ["thesis"])

    def test_source_of_another_release_is_refused(self):
        house = self.house()
        source = house.folder / f"linux-{OLDER}"
        done = house.series("tree", "--base", NEWEST, "--linux", source, house.tree(NEWEST))
        self.assertRefused(done, str(source), "6.12.4", NEWEST)
        self.assertFalse(house.tree(NEWEST).exists())


class Export(Case):
    def test_unchanged_tree_changes_no_file(self):
        house = self.house(*BASES)
        for base in (*BASES, *BASES):
            self.assertEqual(house.export(base), {}, base)

    def test_edited_commit_changes_just_its_patch(self):
        house = self.house(*BASES)
        # three patches change kernel/core.c: line numbers of later patches change with this one
        for name, path, old, new in (
            ("core/first.patch", "kernel/core.c", "first\n", "first\nsecond\n"),
            ("other/alone.patch", "drivers/other.c", "other 30\n", "thirty\n"),
        ):
            house.edit(NEWEST, name, path, old, new)
            self.assertEqual(house.export(NEWEST), {f"patches/{name}": "changed"})
            self.assertIn(f"+{new.splitlines()[-1]}\n", house.patch(NEWEST, name).read_text())
            out = house.folder / f"again {Path(name).name}"
            house.must(*house.tree_args(NEWEST, out))
            for what in "series^{tree}", "pristine^{tree}":
                trees = out, house.tree(NEWEST)
                self.assertEqual(*(git(tree, "rev-parse", what) for tree in trees))
        # the older base, which has other lines there, follows
        house.make(OLDER)
        core = (house.tree(OLDER) / "kernel/core.c").read_text()
        self.assertIn("core 10\nfirst\nsecond\ncore 11\nolder 12\n", core)
        self.assertEqual(house.export(OLDER), {})

    def test_inserted_dropped_and_moved_patches_change_no_other(self):
        house = self.house(NEWEST)
        tree, first = house.tree(NEWEST), house.commits(NEWEST)["core/first.patch"]
        git(tree, "checkout", "--quiet", "--detach", first)
        replace(tree / "kernel/core.c", "core 2\n", "core 2\ninserted\ninserted\n")
        git(tree, "commit", "--quiet", "--all", "-m", "core: Insert\n\nPatch: core/insert.patch")
        git(tree, "rebase", "--quiet", "--onto", "HEAD", first, "series")
        house.changes.insert(1, Change("core/insert.patch"))
        house.write_series()
        self.assertEqual(house.export(NEWEST), {"patches/core/insert.patch": "added"})
        text = house.patch(NEWEST, "core/insert.patch").read_text()
        self.assertRegex(text, r"\ASubject: core: Insert\n\n---\ndiff --git a/kernel/core.c ")
        # move the second patch to the end
        house.changes.append(house.changes.pop(1))
        house.write_series()
        house.make(NEWEST)
        self.assertEqual(list(house.commits(NEWEST))[-1], "core/insert.patch")
        self.assertEqual(house.export(NEWEST), {})
        del house.changes[-1]
        house.write_series()
        house.patch(NEWEST, "core/insert.patch").unlink()
        house.make(NEWEST)
        self.assertEqual(house.export(NEWEST), {})
        self.assertTree(house, NEWEST)

    def test_message_of_a_shared_patch_is_not_lost_with_the_older_base(self):
        house = self.house(OLDER)
        house.reword(OLDER, "Something was wrong.", "Everything was wrong.")
        with self.nothing_written(house, OLDER):
            done = house.series("export", "--base", OLDER)
            self.assertRefused(done, "private/last.patch", "message", "newest base")

    def test_older_base_gets_a_file_where_its_change_differs_and_loses_it(self):
        house = self.house(*BASES)
        own = "patches/overrides/6.12/other/alone.patch"
        house.edit(OLDER, "other/alone.patch", "drivers/other.c", "other\n", "older\n")
        self.assertEqual(house.export(OLDER), {own: "added"})
        self.assertEqual(house.export(OLDER), {})
        self.assertEqual(house.export(NEWEST), {})
        house.make(OLDER)
        self.assertIn("older\n", (house.tree(OLDER) / "drivers/other.c").read_text())
        house.edit(OLDER, "other/alone.patch", "drivers/other.c", "older\n", "other\n")
        self.assertEqual(house.export(OLDER), {own: "removed"})
        # the newest one follows
        house.edit(NEWEST, "feature/differs.patch", "kernel/sched.c", "the newest", "the older")
        self.assertEqual(house.export(NEWEST), {"patches/feature/differs.patch": "changed"})
        self.assertEqual(
            house.export(OLDER), {"patches/overrides/6.12/feature/differs.patch": "removed"}
        )

    def test_patch_of_the_older_base_alone_is_its_own(self):
        house = self.house(OLDER)
        house.edit(OLDER, "private/reserve.patch", "kernel/oldest.c", "reserved", "spared")
        self.assertEqual(
            house.export(OLDER), {"patches/overrides/6.12/private/reserve.patch": "changed"}
        )

    def test_new_file_edited_in_the_newest_base_is_written_back(self):
        house = self.house(*BASES)
        name = "tools/shell/attr/run.sh"
        house.edit(NEWEST, "feature/tool.patch", name, "run 7\n", "seven\n")
        self.assertEqual(house.export(NEWEST), {name: "changed"})
        self.assertIn("run 6\nseven\nrun 8\n", (house.top / name).read_text())
        self.assertEqual((house.top / name).stat().st_mode & 0o111, 0o111)
        # the older base shares it
        house.make(OLDER)
        self.assertIn("seven\n", (house.tree(OLDER) / "tools/attr/run.sh").read_text())
        self.assertEqual(house.export(OLDER), {})

    def test_new_file_edited_in_the_older_base_becomes_a_diff(self):
        house = self.house(*BASES)
        house.edit(OLDER, "feature/tool.patch", "tools/attr/data", "data 7\n", "seven\n")
        self.assertEqual(
            house.export(OLDER), {"patches/overrides/6.12/feature/tool.patch": "added"}
        )
        text = house.patch(OLDER, "feature/tool.patch").read_text()
        names = "tools/shell/attr/data", "tools/shell/attr/run.sh"
        self.assertEqual(re.findall(r"(?m)^new: (.*)", text), list(names))
        diff = text.partition("\n---\n")[2]
        changed = re.findall(r"(?m)^(?:\+\+\+ b/(.*)|([+-](?![+-]{2} ).*))", diff)
        self.assertEqual(
            [path or line for path, line in changed],
            ["tools/attr/Build", "+tool", "tools/attr/data", "-data 7", "+seven"],
        )
        house.must(*house.tree_args(OLDER, house.folder / "again"))
        trees = house.folder / "again", house.tree(OLDER)
        self.assertEqual(*(git(tree, "rev-parse", "series^{tree}") for tree in trees))
        self.assertEqual(house.export(OLDER), {})

    def test_new_patch_with_a_new_file(self):
        house = self.house(NEWEST)
        put(house.tree(NEWEST), {"tools/shell/attr/more.sh*": "#!/bin/sh\n"})
        git(house.tree(NEWEST), "add", "--all")
        house.commit(
            NEWEST, "drivers/last.c", "last 20\n", "more\n", "last: More\n\nPatch: x/y.patch"
        )
        house.changes.append(Change("x/y.patch"))
        house.write_series()
        name = "tools/shell/attr/more.sh"
        self.assertEqual(house.export(NEWEST), {"patches/x/y.patch": "added", name: "added"})
        self.assertEqual((house.top / name).stat().st_mode & 0o111, 0o111)
        text = house.patch(NEWEST, "x/y.patch").read_text()
        self.assertRegex(text, rf"\ASubject: last: More\n\n---\nnew: {name}\ndiff --git a/drivers/")
        self.assertNotIn("#!/bin/sh", text)
        house.make(OLDER)
        self.assertTrue((house.tree(OLDER) / "tools/attr/more.sh").exists())


class Context(Case):
    """One line beside a change has to be as in the patch; the change itself, too."""

    EDITS = [("kernel/core.c", "core 20\n", "changed\n")]

    def older(self, *differ: int, edits: Edits | None = None) -> House:
        """A repository with one patch, and five more lines, and these other ones, in the older
        base, which has edits of its own or not.
        """
        text = lines("before", 5) + lines("core")
        for number in differ:
            text = text.replace(f"core {number}\n", f"older {number}\n")
        sources = {
            NEWEST: linux(NEWEST, kernel__core=lines("core")),
            OLDER: linux(OLDER, kernel__core=text),
        }
        change = Change("core/change.patch", self.EDITS, older_edits=edits)
        return House(self.folder(), sources, [change]).build()

    def test_shared_where_one_line_agrees_on_each_side(self):
        for differ in (), (18, 22), (17, 18, 22, 23):
            with self.subTest(differ):
                house = self.older(*differ, edits=self.EDITS).make(OLDER)
                own = house.patch(OLDER, "core/change.patch")
                self.assertEqual(house.export(OLDER), {str(own.relative_to(house.top)): "removed"})
                house.make(OLDER)
                self.assertTree(house, OLDER)

    def test_own_file_where_none_agrees(self):
        for differ in (19,), (21,), (19, 21):
            with self.subTest(differ):
                house = self.older(*differ, edits=self.EDITS).make(OLDER)
                self.assertTree(house, OLDER)
                self.assertEqual(house.export(OLDER), {})
                house.patch(OLDER, "core/change.patch").unlink()
                done = house.series(*house.tree_args(OLDER))
                self.assertRefused(done, "patches/core/change.patch", "does not apply", OLDER)

    def test_git_alone_applies_a_patch(self):
        """Any tool that knows diffs applies what stands behind the new files."""
        house = self.house(NEWEST)
        files = house.folder / f"linux-{NEWEST}"
        for change in house.of(NEWEST):
            put(files, change.new)
            text = house.patch(NEWEST, change.name).read_text()
            diff = house.folder / "diff"
            diff.write_text(re.sub(r"(?s)\A.*?\n---\n(new: [^\n]*\n)*", "", text))
            if diff.read_text():
                must("patch", "-p1", "-F2", "--silent", "-i", diff, cwd=files)
        expected = house.expected(NEWEST)[house.of(NEWEST)[-1].name]
        for name, content in expected.items():
            self.assertEqual((files / name.rstrip("*")).read_text(), content, name)


class Errors(Case):
    def export_refused(self, house: House, *words: str, base: str = NEWEST) -> None:
        with self.nothing_written(house, base):
            self.assertRefused(house.series("export", "--base", base), *words)

    def tree_refused(self, house: House, *words: str, base: str = NEWEST) -> None:
        with self.nothing_written(house, base):
            self.assertRefused(house.series(*house.tree_args(base)), *words)

    def edited(self, *bases: str) -> House:
        """A repository with a change that export would write."""
        house = self.house(*bases)
        for base in bases:
            house.edit(base, "core/first.patch", "kernel/core.c", "first\n", "begin\n")
        return house

    def test_commit_that_the_series_lacks(self):
        for end, *words in (
            ("Of it.", "last: More", "Patch: TOPIC/NAME.patch"),
            ("Patch: core/first.patch", "patch of its own", "last: More"),
            ("Patch: other/more.patch", "patches/series", "build/7.3/linux", "other/more.patch"),
        ):
            house = self.edited(NEWEST)
            message = f"last: More\n\n{end}"
            house.commit(NEWEST, "drivers/last.c", "last 20\n", "more\n", message)
            self.export_refused(house, *words)

    def test_patch_that_the_tree_lacks(self):
        house = self.edited(NEWEST)
        house.changes.append(Change("other/more.patch"))
        house.write_series()
        self.export_refused(house, "patches/series", str(house.tree(NEWEST)), "other/more.patch")

    def test_commits_in_another_order(self):
        house = self.edited(NEWEST)
        house.changes.insert(0, house.changes.pop(6))
        house.write_series()
        self.export_refused(house, "patches/series", str(house.tree(NEWEST)), "order")

    def test_patch_that_does_not_apply(self):
        house = self.house(*BASES)
        replace(house.patch(NEWEST, "core/first.patch"), " core 10\n", " core ten\n")
        self.tree_refused(house, "patches/core/first.patch", "does not apply", "kernel/core.c")
        replace(house.patch(NEWEST, "core/first.patch"), " core ten\n", " core 10\n")
        replace(house.patch(OLDER, "feature/differs.patch"), " sched 5\n", " sched five\n")
        name = "patches/overrides/6.12/feature/differs.patch"
        self.tree_refused(house, name, "does not apply", "kernel/sched.c", base=OLDER)

    def test_file_that_is_no_patch(self):
        house = self.edited(*BASES)
        for text in ("", "Subject: half\n\nNo end.\n", "perf: No subject\n\n---\n"):
            for base in BASES:
                with self.subTest(text, base=base):
                    put(house.top, {"patches/feature/tool.patch": text})
                    name = "patches/feature/tool.patch"
                    self.tree_refused(house, name, "no patch", base=base)

    def test_missing_file(self):
        for name in "patches/feature/tool.patch", "include/logic.h":
            house = self.house(NEWEST)
            (house.top / name).unlink()
            self.tree_refused(house, name)

    def test_unknown_base_or_missing_tree(self):
        house, out = self.house(), self.folder()
        for base, reason in ("5.4", f"{NEWEST} {OLDER}"), (NEWEST, str(house.tree(NEWEST))):
            for args in (("export", "--base", base),):
                with self.subTest(args):
                    self.assertRefused(house.series(*args), reason)
        self.assertEqual(list(out.iterdir()), [])


class Mail(Case):
    def mails(self, folder: Path) -> dict[str, Message]:
        """The mails by name, in order."""
        paths = sorted(folder.iterdir())
        return {path.name: email.message_from_string(path.read_text()) for path in paths}

    def test_topics(self):
        house, base = self.house(NEWEST), NEWEST
        house.must("mail", out := house.top / "build/series")
        topics = ["core", "feature", "other", "user"]
        self.assertEqual(sorted(path.name for path in out.iterdir()), topics)
        for topic in topics:
            with self.subTest(topic):
                own = [change for change in house.of(base) if change.name.startswith(f"{topic}/")]
                mails = self.mails(out / topic)
                self.assertEqual(next(iter(mails)), "0000-cover-letter.patch")
                self.assertEqual(len(mails), 1 + len(own))
                for number, mail in enumerate(mails.values()):
                    kind = "RFC PATCH" if topic == "feature" else "PATCH"
                    place = f"{number}/{len(own)}"
                    subject = own[number - 1].message.splitlines()[0] if number else ""
                    subject = subject or LETTERS[topic].splitlines()[0].removeprefix("Subject: ")
                    subject = f"[{kind} {place}] {subject}"
                    self.assertEqual(mail["Subject"].replace("\n", ""), subject)
                    self.assertEqual(mail["From"], MAILER)
                    self.assertEqual(mail["To"], "Main Tainer <main@example.org>")
                    self.assertIn("list@example.org", mail["Cc"])
                    body = mail.get_payload()
                    self.assertNotRegex(body, r"(?m)^Patch: ")
                    self.assertNotIn("***", body)
                    signed = re.findall(r"(?m)^Signed-off-by: (.*)", body)
                    self.assertEqual(signed, [MAILER] if number else [])
        first = self.mails(out / "core")["0001-core-Do-first.patch"]
        self.assertIn("Sue Gest <sue@example.org>", first["Cc"])
        tags = 'Fixes: 0123456789ab ("core: Begin")\nSuggested-by: Sue Gest <sue@example.org>\n'
        self.assertIn(f"\n\n{tags}Signed-off-by: {MAILER}\n---\n", first.get_payload())
        letters = {topic: (out / topic / "0000-cover-letter.patch").read_text() for topic in topics}
        self.assertIn("\n\nOn Linux 7.3.4.\n", letters["core"])
        self.assertIn("\n\nVersion 4.5.6.\n", letters["feature"])
        self.assertIn("\n\nIt takes 4220 instructions.\n", letters["other"])
        # the sender of the mails is the maintainer
        maintained = (out / "other/0002-other-Do-maintained.patch").read_text()
        self.assertIn(f"\n+M:\t{MAILER}\n+F:\tinclude/logic.h\n", maintained)
        self.assertNotIn("Our Own", maintained)

    def test_only_needed_topics_are_below(self):
        house = self.house(NEWEST)
        core = ["core/first.patch", "core/only-newest.patch"]
        feature = [f"feature/{name}.patch" for name in ("logic", "differs", "tool")]
        other = [f"other/{name}.patch" for name in ("alone", "maintained")]
        wanted = {
            "core": core,
            "feature": [*core, *feature],
            "other": other,
            "user": [*core, *feature, "user/uses.patch"],
        }
        house.must("mail", out := house.top / "build/series")
        tree = house.tree(NEWEST)
        for topic, names in wanted.items():
            with self.subTest(topic):
                below = [change for change in house.of(NEWEST) if change.name in names]
                self.assertEqual([change.name for change in below], names)
                files = house.sources[NEWEST]
                for change in below:
                    files = change.on(NEWEST, files)
                self.assertEqual(held(tree, f"topic/{topic}"), files)
                # mails give the same files to those who get them, except for the maintainer
                own = sum(change.name.startswith(f"{topic}/") for change in below)
                git(tree, "checkout", "--quiet", "--detach", f"topic/{topic}~{own}")
                git(tree, "am", "--quiet", *sorted((out / topic).iterdir())[1:])
                sent = {
                    path: text.replace(MAILER, "Our Own <own@example.org>")
                    for path, text in held(tree, "HEAD").items()
                }
                self.assertEqual(sent, files)

    def test_topic_whose_needs_miss_one(self):
        house, out = self.house(NEWEST), self.folder() / "mails"
        replace(house.top / "patches/user/cover-letter", "Needs: feature\n", "")
        done = house.series("mail", "--topic", "user", out)
        self.assertRefused(done, "patches/user/uses.patch", "does not apply")
        self.assertFalse(out.exists())

    def test_without_mailer(self):
        house, out = self.house(NEWEST), self.folder() / "mails"
        for config in ("", "[user]\n\tname = Mai Ler\n", "[user]\n\temail = mai@example.org\n"):
            with self.subTest(config), self.nothing_written(house, NEWEST):
                put(house.top, {".home/.gitconfig": config})
                done = house.series("mail", out)
                self.assertRefused(done, "user.name", "user.email", "git config")
                self.assertFalse(out.exists())

    def test_twenty_patches_and_no_more(self):
        many = [Change(f"user/{word}.patch") for word in "abcdefghijklmnopqrst"]
        for at, change in enumerate(many):
            change.edits = [("drivers/last.c", f"last {at + 11}\n", f"user {change.name}\n")]
        changes = [*(each for each in CHANGES if not each.name.startswith("user/")), *many]
        changes.append(Change("user/u.patch", [("drivers/last.c", "last 1\n", "")]))
        house, out = House(self.folder(), SOURCES, changes), self.folder() / "mails"
        house.build().add_letters().make(NEWEST)
        with self.nothing_written(house, NEWEST):
            done = house.series("mail", out)
            self.assertRefused(done, "user", "21", "20 ")
            self.assertFalse(out.exists())
        house.changes.pop()
        house.write_series()
        house.must("mail", out)
        self.assertEqual(len(list((out / "user").iterdir())), 21)

    def test_one_topic(self):
        house, out = self.house(NEWEST), self.folder()
        house.must("mail", "--topic", "feature", out)
        self.assertEqual([path.name for path in out.iterdir()], ["feature"])
        self.assertEqual(len(list((out / "feature").iterdir())), 4)

    def test_unknown_topic(self):
        house, out = self.house(NEWEST), self.folder() / "mails"
        for topic in ("features", "private"):
            done = house.series("mail", "--topic", topic, out)
            self.assertRefused(done, topic, "core feature other user")
            self.assertFalse(out.exists())

    def test_old_mails_go_and_other_files_stay(self):
        house, out = self.house(NEWEST), self.folder()
        put(out, {"feature/0009-old.patch": "old\n"})
        house.must("mail", out)
        self.assertFalse((out / "feature/0009-old.patch").exists())
        put(out, {"thesis": "the only copy\n"})
        house.must("mail", out)
        self.assertEqual((out / "thesis").read_text(), "the only copy\n")

    def test_topic_without_letter(self):
        house, out = self.house(NEWEST), self.folder() / "mails"
        (house.top / "patches/other/cover-letter").unlink()
        done = house.series("mail", "--topic", "other", out)
        self.assertRefused(done, "patches/other/cover-letter")
        self.assertFalse(out.exists())


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
        cls.newest = next(iter(cls.bases))
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
        self.assertEqual([name for name, count in Counter(names).items() if count > 1], [])
        for _, bases in self.entries:
            self.assertLessEqual(set(bases), set(self.bases))
        used = {name for base in self.bases for name in self.used(base)}
        self.assertEqual(used, {patch.path for patch in self.patches})
        # the patches of the newest base are at the top
        self.assertEqual(
            [name for name in used if name.startswith(f"overrides/{self.newest}/")], []
        )

    def test_patches_of_the_benchmark_apply(self):
        for path in sorted((TOP / "bench").glob("*.patch")):
            must("git", "-C", LINUX, "apply", "--check", path)

    def test_no_patch_changes_a_new_file_of_another(self):
        """Only one that is never mailed does; so a diff shows what its message says."""
        by_path = {patch.path: patch for patch in self.patches}
        for base, renamed in self.bases.items():
            found: set[str] = set()
            for path in self.used(base):
                patch = by_path[path]
                changed = set(re.findall(r"(?m)^diff --git a/(\S+) ", patch.diff))
                if not re.match(r"(overrides/[^/]+/)?private/", path):
                    self.assertEqual(changed & found, set(), path)
                for name in patch.new:
                    for words in renamed:
                        name = name.replace(*words.split("="))
                    found.add(name)

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
            self.assertEqual([name for name, count in Counter(new).items() if count > 1], [])
            everything |= set(new)
        self.assertGreater(len(everything), 50)
        tracked = set(must("git", "ls-files").split("\n"))
        self.assertLessEqual(everything, tracked)
        # every file for Linux is in the series
        ours = r"(?:arch|drivers|include|kernel|lib|tools|Documentation)/"
        self.assertEqual({name for name in tracked if re.match(ours, name)} - everything, set())


if __name__ == "__main__":
    unittest.main()
