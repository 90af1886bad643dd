# SPDX-License-Identifier: GPL-2.0
"""The patch store and the Linux tree: two forms of one series.

patches/README.md describes the store. In the tree, a git repository of pristine
Linux with one commit per patch, each commit names its patch in a last line:

    Patch: TOPIC/NAME.patch

A patch is a subject, a body, a line `---`, then the new files of its commit
(`new: PATH`, a file of this repository), then a diff of files that Linux has.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PATCHES = TOP / "patches"
OVERRIDES = PATCHES / "overrides"
PRISTINE, SERIES = "pristine", "series"
PRIVATE = "private"  # the topic that is never mailed
TRAILER = re.compile(r"\n*^Patch: (\S+)\n?\Z", re.M)


def git(tree: Path, *args: str, stdin: str | None = None, env: dict | None = None) -> str:
    """Runs git in tree and returns its output. Raises SystemExit with git's words when it fails."""
    done = try_git(tree, *args, stdin=stdin, env=env)
    if done.returncode:
        sys.exit(f"series: git {args[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.rstrip("\n")


def try_git(
    tree: Path, *args: str, stdin: str | None = None, env: dict | None = None
) -> subprocess.CompletedProcess:
    """Runs git in tree without the user's settings (signing, hooks, line ends).

    A hook of another repository may have called us: its variables do not count. Nor does a
    repository around the tree, and the tree may be another user's.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    own["GIT_CEILING_DIRECTORIES"] = str(tree.resolve().parent)
    return subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(tree), *args],
        input=stdin,
        env={**own, **(env or {})},
        text=True,
        capture_output=True,
        check=False,
    )


def identity(name: str, mail: str, date: str) -> dict[str, str]:
    """Returns git's environment for one author and committer."""
    return {
        f"GIT_{who}_{key}": value
        for who in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", name), ("EMAIL", mail), ("DATE", date))
    }


# The same patches always make the same commits.
NOBODY = identity("series", "series@invalid", "2024-11-17T22:15:08Z")


@dataclass
class Base:
    """A release of Linux, and the folders that have other names there, by their names here."""

    name: str
    folders: dict[str, str] = field(default_factory=dict)

    def there(self, text: str) -> str:
        """Converts a path of the newest base, or a diff, to the paths of this base."""
        for here, there in self.folders.items():
            text = re.sub(
                rf"(?m)^((?:diff --git a/|--- a/|\+\+\+ b/)?){here}/", rf"\1{there}/", text
            )
            text = re.sub(rf"(?m)^(diff --git \S+ b/){here}/", rf"\1{there}/", text)
        return text

    def here(self, path: str) -> str:
        """Converts a path of this base to that of the newest base."""
        for here, there in self.folders.items():
            path = re.sub(rf"^{there}/", f"{here}/", path)
        return path


@dataclass
class Patch:
    """A file of the store: the message and the changes of one commit."""

    message: str
    new: list[str]
    diff: str

    @staticmethod
    def read(path: Path) -> "Patch":
        """Reads a patch. Raises SystemExit if the file is none."""
        if not path.exists():
            sys.exit(f"series: {path.relative_to(TOP)} is missing, and patches/series names it")
        message, end, rest = path.read_text().partition("\n---\n")
        if not end or not message.startswith("Subject: "):
            sys.exit(f"series: {path.relative_to(TOP)} is no patch: it wants `Subject: ` and `---`")
        lines, at = rest.splitlines(keepends=True), 0
        while at < len(lines) and lines[at].startswith("new: "):
            at += 1
        new = [line.removeprefix("new: ").strip() for line in lines[:at]]
        return Patch(message.removeprefix("Subject: ").rstrip("\n"), new, "".join(lines[at:]))

    def write(self, path: Path) -> None:
        """Writes the file that read() reads."""
        path.parent.mkdir(parents=True, exist_ok=True)
        new = "".join(f"new: {name}\n" for name in self.new)
        path.write_text(f"Subject: {self.message}\n\n---\n{new}{self.diff}")

    def equals(self, path: Path) -> bool:
        """Returns whether a file is this patch, apart from line numbers and git's hashes."""
        if not path.exists():
            return False
        other, numbers = Patch.read(path), r"(?m)^(?:index .*|@@ .*)\n"
        mine, its = (re.sub(numbers, "", patch.diff) for patch in (self, other))
        return (self.message, self.new, mine) == (other.message, other.new, its)


class Store:
    """patches/series: the bases, newest first, and the patches in order."""

    def __init__(self) -> None:
        self.bases: dict[str, Base] = {}
        self.entries: list[tuple[str, str | None]] = []  # TOPIC/NAME.patch, the only base or None
        for line in (PATCHES / "series").read_text().splitlines():
            words = line.split("#")[0].split()
            if words[:1] == ["base"]:
                folders = dict(word.split("=", 1) for word in words[2:])
                self.bases[words[1]] = Base(words[1], folders)
            elif words:
                only = [word.removeprefix("only=") for word in words[1:]]
                self.entries.append((words[0], only[0] if only else None))

    @property
    def newest(self) -> str:
        return next(iter(self.bases))

    def base(self, name: str) -> Base:
        """Returns the base of this name. Raises SystemExit if there is none."""
        if name not in self.bases:
            sys.exit(f"series: no series for BASE={name}; there is: {' '.join(self.bases)}")
        return self.bases[name]

    def names(self, base: str) -> list[str]:
        """Returns the patches of a base, in order."""
        return [name for name, only in self.entries if only in (None, base)]

    def topics(self, base: str) -> list[str]:
        """Returns the topics of a base that can be mailed, in order."""
        found = dict.fromkeys(name.split("/")[0] for name in self.names(base))
        return [topic for topic in found if topic != PRIVATE]

    def path(self, base: str, name: str) -> Path:
        """Returns the file of a patch: the base's own one, if there is one."""
        own = OVERRIDES / base / name
        return own if own.exists() else PATCHES / name


def add_files(tree: Path, env: dict[str, str], base: Base, names: list[str]) -> None:
    """Adds files of this repository to the index in env, at their path in the base."""
    for name in names:
        mode = "100755" if os.access(TOP / name, os.X_OK) else "100644"
        blob = git(tree, "hash-object", "-w", "--no-filters", str(TOP / name))
        info = f"{mode},{blob},{base.there(name)}"
        git(tree, "update-index", "--add", "--cacheinfo", info, env=env)


# Numbers of context lines before and after a change that must agree if the whole patch fails.
# An addition needs a neighbour; a removal is located by the removed lines.
CONTEXT = (3, 3), (2, 2), (3, 0), (2, 0), (0, 3), (1, 1), (0, 2), (1, 0), (0, 1)


def apply(tree: Path, env: dict[str, str], base: Base, patch: Patch, exact: bool) -> str:
    """Applies a patch to the index in env; returns what git says, nothing if all went well.

    Lines around a change may differ in an older base, or where a topic stands alone.
    Unless exact, each change of the patch is then applied by itself: where as much of its
    context as agrees is found once, or else nearest to its line.
    """
    add_files(tree, env, base, patch.new)
    diff = base.there(patch.diff)
    if not diff:
        return ""
    said = apply_diff(tree, env, diff)
    if not said or exact:
        return said
    for file in re.split(r"(?m)^(?=diff --git )", diff)[1:]:
        if not apply_diff(tree, env, file):
            continue
        path = re.search(r"(?m)^--- a/(.*)", file)[1]
        for header, before, change, after, line in changes(file):
            shown = try_git(tree, "show", f":{path}", env=env)
            if shown.returncode:  # this base lacks the file
                return said
            content = f"\n{shown.stdout}\n"
            counts = CONTEXT + (((0, 0),) if any(text[0] == "-" for text in change) else ())
            for once, count in itertools.product((True, False), counts):
                lines = before[len(before) - count[0] :] + change + after[: count[1]]
                there = "".join(text[1:] for text in lines if text[0] != "+")
                if once and content.count("\n" + there) != 1:
                    continue
                old, new = (sum(text[0] != mark for text in lines) for mark in "+-")
                at = line - min(count[0], len(before))
                hunk = f"@@ -{at},{old} +{at},{new} @@\n" + "".join(lines)
                if not apply_diff(tree, env, header + hunk, "--unidiff-zero"):
                    break
            else:
                return said
    return ""


def apply_diff(tree: Path, env: dict[str, str], diff: str, *options: str) -> str:
    """Applies a diff to the index in env; returns what git says if it does not apply."""
    options = "--cached", "--whitespace=nowarn", *options
    done = try_git(tree, "apply", *options, "-", stdin=diff, env=env)
    return done.stderr.strip() if done.returncode else ""


def changes(file: str) -> Iterator[tuple[str, list[str], list[str], list[str], int]]:
    """Yields the changes of one file's diff: header, lines before, changed, after, line number."""
    first, *hunks = re.split(r"(?m)^(?=@@ )", file)
    header = "".join(line for line in first.splitlines(True) if not line.startswith("index "))
    for hunk in hunks:
        title, *lines = hunk.splitlines(True)
        line = int(re.match(r"@@ -\S+ \+(\d+)", title)[1])
        runs = [list(run) for _, run in itertools.groupby(lines, lambda text: text[0] in "+-")]
        for number, run in enumerate(runs):
            if run[0][0] in "+-":
                before = runs[number - 1][-3:] if number else []
                after = runs[number + 1][:3] if number + 1 < len(runs) else []
                yield header, before, run, after, line
            line += sum(text[0] != "-" for text in run)


def commit(tree: Path, env: dict[str, str], parent: str, message: str, who: dict) -> str:
    """Makes a commit of the index in env; returns its name."""
    content = git(tree, "write-tree", env=env)
    return git(tree, "commit-tree", "-p", parent, "-F", "-", content, stdin=message, env=who)


def own_index(tree: Path, content: str) -> dict[str, str]:
    """Returns git's environment with a separate index, which holds a commit.

    So a checkout changes the modification times of changed files only.
    """
    path = tree.resolve() / git(tree, "rev-parse", "--git-path", "series-index")
    env = {"GIT_INDEX_FILE": str(path)}
    git(tree, "read-tree", content, env=env)
    return env


def add_patches(  # pylint: disable=too-many-arguments
    tree: Path,
    series: Store,
    base: str,
    names: list[str],
    parent: str = PRISTINE,
    made: dict[tuple[str, str], str] | None = None,
) -> str:
    """Makes a commit on parent of each of these patches; returns the last one.

    made: those of earlier calls, by parent and patch, to which the new ones are added.
    Raises SystemExit if one does not apply.
    """
    env, head = {}, git(tree, "rev-parse", parent)
    made = {} if made is None else made
    whole = names == series.names(base)
    for name in names:
        place = head, name
        if place in made:
            env, head = {}, made[place]
            continue
        env = env or own_index(tree, head)
        path = series.path(base, name)
        patch = Patch.read(path)
        exact = whole and (base == series.newest or path.is_relative_to(OVERRIDES))
        said = apply(tree, env, series.base(base), patch, exact)
        if said:
            why = said.splitlines()[0].removeprefix("error: ")
            sys.exit(f"series: {path.relative_to(TOP)} does not apply to Linux {base}: {why}")
        head = commit(tree, env, head, f"{patch.message}\n\nPatch: {name}\n", NOBODY)
        made[place] = head
    return head


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


def unpack(source: Path, base: str, tree: Path) -> None:
    """Puts pristine Linux (a folder or Debian's tar archive) into a new git tree."""
    if source.is_dir():
        check_version(source, base, source)
    part = tree.with_name(tree.name + ".new")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        if source.is_dir() and (source / ".git").exists():
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
        git(part, "config", "gc.auto", "0")
        git(part, "config", "core.looseCompression", "1")
        # tests hard-link the files into trees of their own, which changes their ctime
        git(part, "config", "core.trustctime", "false")
        git(part, "config", "series.source", identify(source))
        git(part, "add", "--force", "--all", ".")
        git(part, "commit", "--quiet", "-m", f"Linux {linux_version(part)}", env=NOBODY)
        git(part, "tag", PRISTINE)
        # removing takes long: if that is interrupted, nothing is left in the tree's place
        old = tree.with_name(tree.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        if tree.exists():
            tree.rename(old)
        part.rename(tree)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def identify(source: Path) -> str:
    """Identifies the Linux in a folder or archive: if it changes, the tree is made anew."""
    if (source / ".git").exists():
        return f"{source} {git(source, 'rev-parse', 'HEAD')}"
    if source.is_dir():
        return f"{source} {linux_version(source)}"
    return f"{source} {source.stat().st_size if source.exists() else 'missing'}"


def history(tree: Path, head: str) -> list[str]:
    """Returns tree and message of each commit up to head."""
    log = git(tree, "log", "--reverse", "--format=%T%n%B%x00", f"{PRISTINE}..{head}")
    return [TRAILER.sub(r"\nPatch: \1", entry.strip()) for entry in log.split("\0")]


def keep_own_changes(tree: Path, *known: str) -> None:
    """Raises SystemExit if tree has commits that are neither ours nor among the known ones."""
    made = git(tree, "config", "--default", PRISTINE, "--get", "series.made")
    own, *others = (history(tree, name) for name in ("HEAD", made, *known))
    if own not in others or git(tree, "status", "--porcelain", "--untracked-files=no"):
        sys.exit(
            f"series: {tree} has changes of its own: commit them and run `series.py export`, "
            "or remove the folder"
        )


def make_tree(series: Store, base: str, source: Path, tree: Path) -> None:
    """Brings tree to pristine + the series; only files that differ are touched."""
    series.base(base)
    if not (tree / ".git").exists():
        if tree.exists() and any(tree.iterdir()):
            sys.exit(f"series: {tree} has files, which this did not make: give a new folder")
        unpack(source, base, tree)
    elif git(tree, "config", "series.source") != identify(source):
        keep_own_changes(tree)
        unpack(source, base, tree)
    head = add_patches(tree, series, base, series.names(base))
    keep_own_changes(tree, head)
    git(tree, "checkout", "--quiet", "-B", SERIES, head)
    git(tree, "config", "series.made", head)


def commits(tree: Path) -> dict[str, str]:
    """Returns the commits of a tree's series by the patch that each names, in order.

    Raises SystemExit for a commit that names none, or one that another names, too.
    """
    found: dict[str, str] = {}
    for name in git(tree, "rev-list", "--reverse", f"{PRISTINE}..{SERIES}").split():
        message = git(tree, "log", "-1", "--format=%B", name)
        patch = TRAILER.search(message)
        subject = message.splitlines()[0]
        if not patch:
            sys.exit(
                f"series: the commit `{subject}` does not name its patch: "
                "end its message with a line `Patch: TOPIC/NAME.patch`"
            )
        if patch[1] in found:
            sys.exit(f"series: two commits name {patch[1]}, the second is `{subject}`")
        found[patch[1]] = name
    return found


def message_of(tree: Path, head: str) -> str:
    """Returns a commit's message without its last line, which names the patch."""
    return TRAILER.sub("", git(tree, "log", "-1", "--format=%B", head)).rstrip("\n")


def write_file(tree: Path, blob: str, mode: str, name: str) -> None:
    """Writes a file of a commit to its place in this repository."""
    command = ["git", "-C", str(tree), "cat-file", "blob", blob]
    content = subprocess.run(command, capture_output=True, check=True).stdout
    (TOP / name).parent.mkdir(parents=True, exist_ok=True)
    if not (TOP / name).exists() or (TOP / name).read_bytes() != content:
        (TOP / name).write_bytes(content)
    (TOP / name).chmod(0o755 if mode == "100755" else 0o644)


def export(series: Store, base: str, tree: Path) -> None:
    """Writes the patches and new files of a base back from its tree.

    The newest base, and a patch that only this base has, own their new files. An
    older base gets a patch of its own only where the shared one does not give the
    tree of its commit.
    """
    check_version(tree, base, tree)
    found, names, linux = commits(tree), series.names(base), series.base(base)
    if list(found) != names:
        differ = [name for name in found if name not in names] + [
            name for name in names if name not in found
        ]
        where = f"{differ[0]} is in one of them" if differ else "their order differs"
        sys.exit(f"series: patches/series and the commits of {tree} disagree: {where}")
    public = [head for name, head in found.items() if not name.startswith(f"{PRIVATE}/")][-1]
    shared = set()  # patches of the newest base that make the same tree here
    for name, head in found.items():
        if series.path(base, name).exists():
            Patch.read(series.path(base, name))
        if base == series.newest or (name, base) in series.entries:
            continue
        if gives(tree, linux, PATCHES / name, head):
            shared.add(name)
            if Patch.read(PATCHES / name).message != message_of(tree, head):
                sys.exit(
                    f"series: the message of {name} is that of Linux {series.newest}: "
                    "change it in that tree, too, and export that first"
                )
    for name, head in found.items():
        new, own = [], (name, base) in series.entries or base == series.newest
        added = git(tree, "diff-tree", "-r", "--no-renames", "--diff-filter=A", f"{head}^", head)
        for line in added.splitlines():
            (_, mode, _, blob, _), path = line.split("\t")[0].split(), line.split("\t")[1]
            new.append(linux.here(path))
            if own:
                # a later patch that is mailed may add to the file: ours is the last version, and
                # the diff of this patch takes away what is not in it yet
                last = git(tree, "ls-tree", public, "--", path).split()[:3] or (mode, "", blob)
                write_file(tree, last[2], last[0], linux.here(path))
        file = (PATCHES if base == series.newest else OVERRIDES / base) / name
        if name in shared:
            file.unlink(missing_ok=True)
            continue
        env = own_index(tree, f"{head}^")
        add_files(tree, env, linux, [path for path in new if (TOP / path).exists()])
        options = "--no-renames", "--abbrev=12", git(tree, "write-tree", env=env), head
        diff = git(tree, "diff", *options)
        new = [path for path in new if (TOP / path).exists()]
        patch = Patch(message_of(tree, head), new, diff + "\n" if diff else "")
        # do not write a patch again for line numbers alone, which change with each patch before it
        if not patch.equals(file) or not gives(tree, linux, file, head, exact=True):
            patch.write(file)
    git(tree, "config", "series.made", git(tree, "rev-parse", SERIES))


def gives(tree: Path, base: Base, file: Path, head: str, exact: bool = False) -> bool:
    """Returns whether a patch, applied to the parent of a commit, gives the commit's tree."""
    if not file.exists():
        return False
    env = own_index(tree, f"{head}^")
    said = apply(tree, env, base, Patch.read(file), exact)
    content = git(tree, "rev-parse", f"{head}^{{tree}}")
    return not said and git(tree, "write-tree", env=env) == content


def compare(trees: list[Path], options: list[str]) -> None:
    """Prints git's range-diff between the series of two trees."""
    ranges = [
        f"{git(tree, 'rev-parse', PRISTINE)}..{git(tree, 'rev-parse', SERIES)}" for tree in trees
    ]
    objects = trees[1].resolve() / git(trees[1], "rev-parse", "--git-path", "objects")
    env = {**os.environ, "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects)}
    command = ["git", "-C", str(trees[0]), "range-diff", *options, *ranges]
    sys.exit(subprocess.run(command, env=env, check=False).returncode)
