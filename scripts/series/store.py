# SPDX-License-Identifier: GPL-2.0
"""The patches of this repository, and the Linux trees that are made from them.

patches/README.md describes the patches. A tree is a git repository of pristine Linux
with one commit per patch, each of which names its patch in its last line:

    Patch: TOPIC/NAME.patch
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
PATCHES = TOP / "patches"
PRISTINE, SERIES = "pristine", "series"
TRAILER = re.compile(r"\n*^Patch: (\S+)\n?\Z", re.M)
CONTEXT = "-C1"  # the least lines around a change that have to be as in the patch


def try_git(
    folder: Path, *args: str, stdin: str | None = None, env: dict | None = None
) -> subprocess.CompletedProcess:
    """Runs git in a folder, whoever owns it, without settings of a user, a hook or a parent."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    own |= {"GIT_CEILING_DIRECTORIES": str(folder.resolve().parent)} | (env or {})
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *args]
    return subprocess.run(
        command, input=stdin, env=own, text=True, capture_output=True, check=False
    )


def git(folder: Path, *args: str, stdin: str | None = None, env: dict | None = None) -> str:
    """Returns git's output. Raises SystemExit with its words when it fails."""
    done = try_git(folder, *args, stdin=stdin, env=env)
    if done.returncode:
        sys.exit(f"series: git {args[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.rstrip("\n")


def identity(name: str, mail: str, date: str) -> dict:
    """Returns git's environment for one author and committer."""
    values = {"NAME": name, "EMAIL": mail, "DATE": date}
    people = "AUTHOR", "COMMITTER"
    return {f"GIT_{who}_{key}": value for who in people for key, value in values.items()}


# The same patches always make the same commits.
NOBODY = identity("series", "series@invalid", "2024-11-17T22:15:08Z")


@dataclass
class Patch:
    """A file of patches/: the message, the new files and the diff of one commit."""

    message: str
    new: list[str]
    diff: str

    @staticmethod
    def read(path: Path) -> "Patch":
        """Reads a patch. Raises SystemExit if the file is none."""
        text = path.read_text() if path.exists() else ""
        message, end, rest = text.partition("\n---\n")
        if not end or not message.startswith("Subject: "):
            sys.exit(f"series: {path.relative_to(TOP)} is no patch: it wants `Subject: ` and `---`")
        new = re.match(r"(?:new: .*\n)*", rest)[0]
        names = [line.removeprefix("new: ") for line in new.splitlines()]
        return Patch(message.removeprefix("Subject: ").rstrip("\n"), names, rest[len(new) :])


class Store:
    """patches/series: the bases, newest first, and the patches in order."""

    def __init__(self) -> None:
        # the folders that have another name in a base, by their name here
        self.folders: dict[str, dict[str, str]] = {}
        self.entries: list[tuple[str, str | None]] = []  # TOPIC/NAME.patch, the only base or None
        for line in (PATCHES / "series").read_text().splitlines():
            words = line.split("#")[0].split()
            if words[:1] == ["base"]:
                self.folders[words[1]] = dict(word.split("=", 1) for word in words[2:])
            elif words:
                only = [word.removeprefix("only=") for word in words[1:]]
                self.entries.append((words[0], only[0] if only else None))
        self.newest = next(iter(self.folders))


class Tree:
    """A git tree of Linux with the series of a base, in a folder."""

    def __init__(self, store: Store, base: str, folder: Path) -> None:
        """Raises SystemExit if there are no patches for this base."""
        if base not in store.folders:
            sys.exit(f"series: no series for BASE={base}; there is: {' '.join(store.folders)}")
        self.base, self.folder, self.newest = base, folder, base == store.newest
        self.patches = PATCHES if self.newest else PATCHES / "overrides" / base
        self.names = [name for name, only in store.entries if only in (None, base)]
        self.renamed = store.folders[base]

    def git(self, *args: str, **options: Any) -> str:
        """Runs git in this tree, see git()."""
        return git(self.folder, *args, **options)

    def there(self, text: str) -> str:
        """Converts the paths in a text to those of this base."""
        for here, there in self.renamed.items():
            text = text.replace(f"{here}/", f"{there}/")
        return text

    def index(self, commit: str) -> dict:
        """Returns git's environment with an index of its own, which holds a commit.

        The work tree stays as it is, so a checkout of the result touches only what has changed.
        """
        git_folder = self.git("rev-parse", "--absolute-git-dir")
        index = {"GIT_INDEX_FILE": f"{git_folder}/series-index"}
        self.git("read-tree", commit, env=index)
        return index

    def add_files(self, index: dict, names: list[str]) -> None:
        """Copies files of this repository into an index."""
        for name in names:
            mode = "100755" if os.access(TOP / name, os.X_OK) else "100644"
            blob = self.git("hash-object", "-w", "--no-filters", str(TOP / name))
            info = f"{mode},{blob},{self.there(name)}"
            self.git("update-index", "--add", "--cacheinfo", info, env=index)

    def apply(self, index: dict, patch: Patch, *options: str) -> str:
        """Applies a patch to an index. Returns what git says if that fails, else nothing."""
        self.add_files(index, patch.new)
        if not patch.diff:
            return ""
        command = "apply", "--cached", "--whitespace=nowarn", *options, "-"
        done = try_git(self.folder, *command, stdin=self.there(patch.diff), env=index)
        return done.stderr.strip() if done.returncode else ""

    def gives(self, path: Path, head: str, *options: str) -> bool:
        """Returns whether a patch makes the files of a commit from those of its parent."""
        index = self.index(f"{head}^")
        if not path.exists() or self.apply(index, Patch.read(path), *options):
            return False
        return self.git("write-tree", env=index) == self.git("rev-parse", f"{head}^{{tree}}")

    def commit(self, names: list[str], parent: str, who: dict, trailer: bool = True) -> str:
        """Makes a commit of each of these patches on parent; returns the last one.

        trailer: each message names its patch. Raises SystemExit if one does not apply.
        """
        head, index = self.git("rev-parse", parent), self.index(parent)
        for name in names:
            own = self.patches / name
            path = own if own.exists() else PATCHES / name
            patch = Patch.read(path)
            said = self.apply(index, patch, CONTEXT)
            if said:
                why = re.search(r"(?m)^error: (.*)", said)[1]
                sys.exit(
                    f"series: {path.relative_to(TOP)} does not apply to Linux {self.base}: {why}"
                )
            message = patch.message + (f"\n\nPatch: {name}\n" if trailer else "\n")
            files = self.git("write-tree", env=index)
            head = self.git("commit-tree", "-p", head, "-F", "-", files, stdin=message, env=who)
        return head

    def commits(self) -> dict[str, tuple[str, str]]:
        """Returns commit and message of each patch of the series, in order.

        Raises SystemExit unless they are those of patches/series.
        """
        found: dict[str, tuple[str, str]] = {}
        for head in self.git("rev-list", "--reverse", f"{PRISTINE}..{SERIES}").split():
            message = self.git("log", "-1", "--format=%B", head)
            patch, subject = TRAILER.search(message), message.splitlines()[0]
            if not patch or patch[1] in found:
                sys.exit(
                    f"series: the commit `{subject}` does not name a patch of its own: "
                    "end its message with a line `Patch: TOPIC/NAME.patch`"
                )
            found[patch[1]] = head, TRAILER.sub("", message)
        if list(found) != self.names:
            differ = [*(found.keys() ^ set(self.names)), ""][0]
            where = f"{differ} is in one of them" if differ else "their order differs"
            sys.exit(f"series: patches/series and the commits of {self.folder} disagree: {where}")
        return found

    def keep_own_changes(self, *known: str) -> None:
        """Raises SystemExit if a change is neither exported nor in a known commit."""
        made = self.git("config", "--default", PRISTINE, "--get", "series.made")
        changed = self.git("status", "--porcelain", "--untracked-files=no")
        if changed or self.git("rev-parse", "HEAD") not in (self.git("rev-parse", made), *known):
            sys.exit(
                f"series: {self.folder} has changes of its own: commit them and run "
                "`scripts/series/series.py export`, or remove the folder"
            )


def linux_version(source: Path) -> str:
    """Returns VERSION.PATCHLEVEL.SUBLEVEL of a Linux tree. Raises SystemExit if it is none."""
    keys = "VERSION", "PATCHLEVEL", "SUBLEVEL"
    try:
        text = (source / "Makefile").read_text()
        return ".".join(re.search(rf"^{key} = (\d+)$", text, re.M)[1] for key in keys)
    except (OSError, TypeError):
        sys.exit(f"series: {source} is not a Linux tree; give one with LINUX=/path")


def check_version(linux: Path, base: str, source: Path) -> None:
    """Raises SystemExit if linux, which comes from source, is not of the release base."""
    version = linux_version(linux)
    if not version.startswith(base + "."):
        sys.exit(f"series: {source} is Linux {version}; these patches are for {base}")


def identify(source: Path) -> str:
    """Identifies the Linux in a folder or archive: if it changes, the tree is made anew."""
    if (source / ".git").exists():
        return f"{source} {git(source, 'rev-parse', 'HEAD')}"
    if source.is_dir():
        return f"{source} {linux_version(source)}"
    return f"{source} {source.stat().st_size if source.exists() else 'missing'}"


def unpack(source: Path, base: str, folder: Path) -> None:
    """Puts pristine Linux (a folder or Debian's tar archive) into a new git tree."""
    part = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        if (source / ".git").exists():
            folders = f"--work-tree={part}", f"--git-dir={source}/.git"
            git(source, *folders, "checkout-index", "--all")
        elif source.is_dir():
            shutil.copytree(source, part, symlinks=True, dirs_exist_ok=True)
        elif source.is_file():
            tar = "tar", "-xf", str(source), "-C", str(part), "--strip-components=1"
            subprocess.run(tar, check=True)
        else:
            sys.exit(
                f"series: {source} is missing: install linux-source-{base}, "
                "or give a tree with LINUX=/path"
            )
        check_version(part, base, source)
        git(part, "init", "--quiet", "--initial-branch", SERIES)
        # tests hard-link the files into trees of their own, which changes their ctime
        settings = {"gc.auto": "0", "core.looseCompression": "1", "core.trustctime": "false"}
        for name, value in (settings | {"series.source": identify(source)}).items():
            git(part, "config", name, value)
        git(part, "add", "--force", "--all", ".")
        git(part, "commit", "--quiet", "-m", f"Linux {linux_version(part)}", env=NOBODY)
        git(part, "tag", PRISTINE)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def make_tree(tree: Tree, source: Path) -> None:
    """Brings a tree to pristine Linux and the series; only files that differ are touched."""
    if not (tree.folder / ".git").exists():
        if tree.folder.exists() and any(tree.folder.iterdir()):
            sys.exit(f"series: {tree.folder} has files, which this did not make: give a new folder")
        unpack(source, tree.base, tree.folder)
    elif tree.git("config", "series.source") != identify(source):
        tree.keep_own_changes()
        unpack(source, tree.base, tree.folder)
    head = tree.commit(tree.names, PRISTINE, NOBODY)
    tree.keep_own_changes(head)
    tree.git("checkout", "--quiet", "-B", SERIES, head)
    tree.git("config", "series.made", head)


def export(tree: Tree) -> None:
    """Writes the patches of a base back from its tree.

    A patch that does what its commit does stays as it is, whatever its line numbers are. An older
    base has a patch of its own only where the shared one does not do what its commit does. The new
    files of this repository are those of the newest base, and of patches that only one base has.
    """
    check_version(tree.folder, tree.base, tree.folder)
    found, shared = tree.commits(), set()
    for name, (head, message) in found.items():
        if not tree.newest and tree.gives(PATCHES / name, head, CONTEXT):
            shared.add(name)
            if Patch.read(PATCHES / name).message != message:
                sys.exit(
                    f"series: the message of {name} is that of the newest base: "
                    "change it in that tree, too, and export that first"
                )
    for name, (head, message) in found.items():
        path = tree.patches / name
        if name in shared:
            path.unlink(missing_ok=True)
            continue
        if not tree.newest and (PATCHES / name).exists():
            new = Patch.read(PATCHES / name).new
        else:
            added = "diff-tree", "-r", "--no-renames", "--diff-filter=A", "--name-only"
            names = tree.git(*added, f"{head}^", head).splitlines()
            new = [write_file(tree, head, name) for name in names]
        if tree.gives(path, head) and Patch.read(path).message == message:
            continue
        index = tree.index(f"{head}^")
        tree.add_files(index, new)
        options = "--no-renames", "--abbrev=12", tree.git("write-tree", env=index), head
        diff = tree.git("diff", *options)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"new: {file}\n" for file in new) + diff + "\n" * bool(diff)
        path.write_text(f"Subject: {message}\n\n---\n{lines}")
    tree.git("config", "series.made", tree.git("rev-parse", SERIES))


def write_file(tree: Tree, commit: str, name: str) -> str:
    """Writes a file of a commit to its place in this repository. Returns its name here."""
    own = name
    for here, there in tree.renamed.items():
        own = own.replace(f"{there}/", f"{here}/")
    text, path = try_git(tree.folder, "show", f"{commit}:{name}").stdout, TOP / own
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    path.chmod(int(tree.git("ls-tree", commit, "--", name)[3:6], 8))
    return own
