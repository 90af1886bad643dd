#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The Linux tree and the series: three forms of one thing.

  repository   patches/BASE/series lists the commits in order, one a line:
                   NNNN-subject.patch [NEW FILE[=PATH]]...
               a patch is a mail whose diff touches only files that Linux has;
               the new files that its commit introduces lie at their kernel path,
               those of 6.12; all bases share them. PATH is where another base
               has the file; what else is different there is in the patch
  tree         a git tree of pristine Linux with one commit per line
  mail         what is sent: each commit with its patch and its new files

usage: series.py tree DIR      make or update the tree (--linux: pristine source)
       series.py mail DIR      write 0000-cover-letter.patch ... (--tree)
       series.py export        write patches and new files back from a tree (--tree)
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PRISTINE, SERIES = "pristine", "series"
SHARED = "6.12"  # the base whose new files lie in the repository
MEASURED = (
    "kernel",
    "include",
    "arch/arm64",
    "drivers/perf",
    "tools/perf/util",
    "tools/perf/builtin-functions.c",
)  # by make bench


def git(tree: Path, *args: str, stdin: str | None = None, env: dict | None = None) -> str:
    """Runs git in tree and returns its output; its failure ends us with its words."""
    # the user's settings (signing, hooks, line ends) are not for these commits
    own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(tree), *args],
        input=stdin,
        env={**os.environ, **own, **(env or {})},
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"series: git {args[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.rstrip("\n")


def commits(base: str) -> list[tuple[Path, dict[str, str]]]:
    """The lines of patches/BASE/series: patch, and the repository's file for each path in Linux that is new."""
    folder = TOP / "patches" / base
    lines = [line.split() for line in (folder / "series").read_text().splitlines()]
    return [
        (folder / words[0], {word.split("=")[-1]: word.split("=")[0] for word in words[1:]})
        for words in lines
        if words and words[0][0] != "#"
    ]


def add_files(tree: Path, env: dict[str, str], new_files: dict[str, str]) -> None:
    """Adds files of the repository to the index in env, by their path in Linux."""
    for path, name in new_files.items():
        mode = "100755" if os.access(TOP / name, os.X_OK) else "100644"
        blob = git(tree, "hash-object", "-w", "--no-filters", str(TOP / name))
        git(tree, "update-index", "--add", "--cacheinfo", f"{mode},{blob},{path}", env=env)


def linux_version(source: Path) -> str:
    """VERSION.PATCHLEVEL.SUBLEVEL of a Linux tree. Raises SystemExit if it is none."""
    try:
        text = (source / "Makefile").read_text()
        return ".".join(
            re.search(rf"^{key} = (\d+)$", text, re.M)[1]
            for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL")
        )
    except (OSError, TypeError):
        sys.exit(f"series: {source} is not a Linux tree; give one with LINUX=/path")


def check_version(linux: Path, base: str, source: Path) -> None:
    """Ends us if linux, which is or comes from source, is not of the release base."""
    if not linux_version(linux).startswith(base + "."):
        sys.exit(f"series: {source} is Linux {linux_version(linux)}; these patches are for {base}")


def unpack(source: Path, base: str, tree: Path) -> None:
    """Puts pristine Linux (a folder or Debian's tar archive) into a new git tree."""
    if source.is_dir():
        check_version(source, base, source)
    part = tree.with_name(tree.name + ".new")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        if source.is_dir():
            if (source / ".git").exists():
                git(
                    source,
                    f"--work-tree={part}",
                    f"--git-dir={source}/.git",
                    "checkout-index",
                    "--all",
                )
            else:
                shutil.copytree(source, part, symlinks=True, dirs_exist_ok=True)
        elif source.is_file():
            subprocess.run(
                ["tar", "-xf", str(source), "-C", str(part), "--strip-components=1"], check=True
            )
        else:
            sys.exit(
                f"series: {source} is missing: install linux-source-{base}, or give a tree with LINUX=/path"
            )
        check_version(part, base, source)
        git(part, "init", "--quiet", "--initial-branch", SERIES)
        git(part, "config", "gc.auto", "0")
        git(part, "config", "core.looseCompression", "1")
        git(part, "config", "series.source", identify(source))
        git(part, "add", "--force", "--all", ".")
        date = {
            "GIT_AUTHOR_DATE": "2024-11-17T22:15:08Z",
            "GIT_COMMITTER_DATE": "2024-11-17T22:15:08Z",
        }
        git(
            part,
            "commit",
            "--quiet",
            "-m",
            f"Linux {linux_version(part)}",
            env={**identity("linux", "linux@invalid"), **date},
        )
        git(part, "tag", PRISTINE)
        shutil.rmtree(tree, ignore_errors=True)
        part.rename(tree)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def identity(name: str, mail: str) -> dict[str, str]:
    """git's environment for one author who is the committer too."""
    return {
        f"GIT_{who}_{key}": value
        for who in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", name), ("EMAIL", mail))
    }


def add_commit(
    tree: Path, env: dict[str, str], parent: str, patch: Path, new_files: dict[str, str]
) -> str:
    """Applies one patch and its new files to the index in env; returns the commit."""
    with tempfile.TemporaryDirectory() as work:
        message, diff = Path(work) / "message", Path(work) / "diff"
        info = git(tree, "mailinfo", str(message), str(diff), stdin=patch.read_text())
        head = dict(line.split(": ", 1) for line in info.splitlines() if ": " in line)
        add_files(tree, env, new_files)
        git(
            tree, "apply", "--cached", "--allow-empty", "--whitespace=error-all", str(diff), env=env
        )
        who = {
            **identity(head["Author"], head["Email"]),
            "GIT_AUTHOR_DATE": head["Date"],
            "GIT_COMMITTER_DATE": head["Date"],
        }
        text = head["Subject"] + "\n\n" + message.read_text()
        return git(
            tree,
            "commit-tree",
            "-p",
            parent,
            "-F",
            "-",
            git(tree, "write-tree", env=env),
            stdin=text,
            env=who,
        )


def identify(source: Path) -> str:
    """Which Linux a folder or archive is: another answer asks for another tree."""
    if (source / ".git").exists():
        return f"{source} {git(source, 'rev-parse', 'HEAD')}"
    if source.is_dir():
        return f"{source} {linux_version(source)}"
    return f"{source} {source.stat().st_size if source.exists() else 'missing'}"


def keep_own_changes(tree: Path, *known: str) -> None:
    """Ends us if tree has content that neither we made nor the known commits have."""
    made = git(tree, "config", "--default", PRISTINE, "--get", "series.made")
    content, *others = (
        git(tree, "rev-parse", f"{commit}^{{tree}}") for commit in ("HEAD", made, *known)
    )
    if content not in others or git(tree, "status", "--porcelain", "--untracked-files=no"):
        sys.exit(
            f"series: {tree} has changes of its own: commit them and run `series.py export`, or remove the folder"
        )


def own_index(tree: Path) -> dict[str, str]:
    """git's environment for commits that are made beside the work tree: a checkout then changes no more modification
    times than the change deserves."""
    return {
        "GIT_INDEX_FILE": str(tree.resolve() / git(tree, "rev-parse", "--git-path", "series-index"))
    }


def make_tree(base: str, source: Path, tree: Path) -> None:
    """Brings tree to pristine + the series; only files that differ are touched."""
    if not (tree / ".git").exists():
        if tree.exists() and any(tree.iterdir()):
            sys.exit(f"series: {tree} has files, which this did not make: give a new folder")
        unpack(source, base, tree)
    elif git(tree, "config", "series.source") != identify(source):
        keep_own_changes(tree)
        unpack(source, base, tree)
    env = own_index(tree)
    git(tree, "read-tree", PRISTINE, env=env)
    head = git(tree, "rev-parse", PRISTINE)
    for patch, new_files in commits(base):
        head = add_commit(tree, env, head, patch, new_files)
    keep_own_changes(tree, head)
    git(tree, "checkout", "--quiet", "-B", SERIES, head)
    git(tree, "config", "series.made", head)


class Numbers:
    """What a cover letter calls a base's patches: {patch[x86-Support]} is the number of the first with that in its name."""

    def __init__(self, base: str) -> None:
        self.names = [patch.name for patch, _new_files in commits(base)]

    def __getitem__(self, part: str) -> int:
        """Raises KeyError if there is none."""
        for number, name in enumerate(self.names, 1):
            if part in name:
                return number
        raise KeyError(part)


def measured(tree: Path) -> dict[str, str]:
    """git's names for what a benchmark of the tree depends on, by path."""
    return {path: git(tree, "rev-parse", f"{SERIES}:{path}") for path in MEASURED}


def cover_letter(base: str, tree: Path) -> str:
    """patches/BASE/cover-letter, a format string, with the release of Linux, the numbers of the patches and what was measured."""
    text, path = TOP / "patches" / base / "cover-letter", TOP / "results" / base / "results.json"
    try:
        results = json.loads(path.read_text())
        letter = text.read_text().format(linux=linux_version(tree), patch=Numbers(base), **results)
    except (OSError, ValueError, LookupError) as error:
        sys.exit(
            f"series: {text} wants what is not there: {error!r}; {path} is what `make bench BASE={base}` measures"
        )
    changed = [
        name
        for name, content in measured(tree).items()
        if results.get("tree", {}).get(name) != content
    ]
    if changed:
        print(
            f"series: {path.relative_to(TOP)} was measured before a change of {', '.join(changed)}: `make bench BASE={base}` "
            "measures anew",
            file=sys.stderr,
        )
    return letter


def write_mail(base: str, tree: Path, out: Path) -> None:
    """Writes the series as it is mailed, cover letter first, into out."""
    subject, body = cover_letter(base, tree).split("\n", 1)
    others = [
        path.name for path in out.glob("*") if not re.fullmatch(r"\d{4}-.*\.patch", path.name)
    ]
    if others:
        sys.exit(f"series: {out} has {others[0]}, which is none of the mails: give a new folder")
    shutil.rmtree(out, ignore_errors=True)
    name, mail = git(tree, "log", "-1", "--format=%an%n%ae", SERIES).split("\n")
    git(
        tree,
        "format-patch",
        "--quiet",
        "--cover-letter",
        "-o",
        str(out),
        f"{PRISTINE}..{SERIES}",
        env=identity(name, mail),
    )
    letter, *patches = sorted(out.iterdir())
    text = (
        letter.read_text()
        .replace("*** SUBJECT HERE ***", subject)
        .replace("*** BLURB HERE ***", body.strip())
    )
    letter.write_text(text)
    perf = recipients(tree, "-f", "kernel/events/core.c")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(
            pool.map(
                lambda patch: merge([perf, recipients(tree, str(patch)), tagged(patch)]), patches
            )
        )
    for mail, each in zip((letter, *patches), (merge([*found, tagged(letter)]), *found)):
        address(mail, each)


def recipients(tree: Path, *what: str) -> dict[str, list[str]]:
    """Whom Linux's MAINTAINERS names for a patch or, after -f, a file: people (To) and lists (Cc)."""
    done = subprocess.run(
        ["perl", "scripts/get_maintainer.pl", "--no-git", "--no-git-fallback", *what],
        cwd=tree,
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"series: get_maintainer.pl: {done.stderr.strip()}")
    named = [
        re.fullmatch(r"(.*>|\S+) \((.*)\)", line).groups() for line in done.stdout.splitlines()
    ]
    return {
        "To": [who for who, role in named if " list" not in f" {role}"],
        "Cc": [who for who, role in named if " list" in f" {role}"],
    }


def tagged(mail: Path) -> dict[str, list[str]]:
    """Whom a mail's own tags name (Cc)."""
    return {
        "To": [],
        "Cc": re.findall(
            r"(?m)^(?:Cc|(?!Signed-off)[A-Z][a-z-]+-by): (.+ <\S+>|\S+@\S+)$", mail.read_text()
        ),
    }


def merge(found: list[dict[str, list[str]]]) -> dict[str, list[str]]:
    """All recipients, each once."""
    return {
        field: list(dict.fromkeys(who for each in found for who in each[field]))
        for field in ("To", "Cc")
    }


def address(mail: Path, to_whom: dict[str, list[str]]) -> None:
    """Writes recipients into a mail's header."""
    header, body = mail.read_text().split("\n\n", 1)
    lines = [f"{field}: " + ",\n\t".join(who) for field, who in to_whom.items() if who]
    mail.write_text("\n".join([header, *lines]) + "\n\n" + body)


def shared(path: str) -> str | None:
    """The repository's file for a path that is new in a base of Linux: of that path, or else of that name in 6.12's."""
    files = {there: name for _, new_files in commits(SHARED) for there, name in new_files.items()}
    moved = [name for name in files if Path(name).name == Path(path).name]
    return path if path in files else moved[0] if len(moved) == 1 else None


def write_file(tree: Path, commit: str, name: str) -> str:
    """Writes a commit's file to its place in the repository, which it returns."""
    (TOP / name).parent.mkdir(parents=True, exist_ok=True)
    (TOP / name).write_bytes(
        subprocess.run(
            ["git", "-C", str(tree), "cat-file", "blob", f"{commit}:{name}"],
            capture_output=True,
            check=True,
        ).stdout
    )
    mode = git(tree, "ls-tree", commit, name).split()[0]
    (TOP / name).chmod(0o755 if mode == "100755" else 0o644)
    return name


def export(base: str, tree: Path) -> None:
    """Writes patches/BASE from the commits PRISTINE..SERIES of tree, and the new files, but those that 6.12 has too."""
    check_version(tree, base, tree)
    folder, lines = TOP / "patches" / base, []
    env = own_index(tree)
    folder.mkdir(parents=True, exist_ok=True)
    old = set(folder.glob("*.patch"))
    for number, commit in enumerate(
        git(tree, "rev-list", "--reverse", f"{PRISTINE}..{SERIES}").split(), 1
    ):
        new = {}
        for path in git(
            tree,
            "diff-tree",
            "-r",
            "--no-commit-id",
            "--name-only",
            "--no-renames",
            "--diff-filter=A",
            commit,
        ).split():
            new[path] = (shared(path) if base != SHARED else None) or write_file(tree, commit, path)
        head = git(
            tree,
            "log",
            "-1",
            "--format=From: %an <%ae>%nDate: %aD%nSubject: [PATCH] %s%n%n%b",
            commit,
        )
        git(tree, "read-tree", f"{commit}^", env=env)
        add_files(tree, env, new)
        diff = git(
            tree, "diff", "--no-renames", "--abbrev=12", git(tree, "write-tree", env=env), commit
        )
        name = (
            f"{number:04}-{git(tree, 'log', '-1', '--format=%f', commit)[:52].rstrip('-.')}.patch"
        )
        (folder / name).write_text(f"{head.rstrip()}\n---\n{diff + chr(10) if diff else ''}")
        old.discard(folder / name)
        lines.append(
            " ".join(
                [name, *(path if path == here else f"{here}={path}" for path, here in new.items())]
            )
        )
    comment = "# one commit a line, in order: its patch, then the new files it introduces\n"
    (folder / "series").write_text(comment + "\n".join(lines) + "\n")
    for patch in old:
        patch.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Linux tree, patches and mail series from one another"
    )
    parser.add_argument("what", choices=("tree", "mail", "export"))
    parser.add_argument("out", type=Path, nargs="?", help="folder to write (tree, mail)")
    parser.add_argument(
        "--base", default="6.12", help="Linux release of the patches (default: %(default)s)"
    )
    parser.add_argument(
        "--tree", type=Path, help="git tree to read (default: build/linux, or that of the base)"
    )
    parser.add_argument(
        "--linux", type=Path, help="pristine Linux: folder or tar archive (default: Debian's)"
    )
    args = parser.parse_args()
    tree = (args.tree or TOP / "build" / args.base / "linux").resolve()
    if args.what != "export" and not args.out:
        parser.error(f"{args.what} needs a folder to write")
    if args.what == "tree":
        source = args.linux or Path(f"/usr/src/linux-source-{args.base}.tar.xz")
        make_tree(args.base, source.resolve(), args.out.resolve())
    elif args.what == "mail":
        write_mail(args.base, tree, args.out.resolve())
    else:
        export(args.base, tree)


if __name__ == "__main__":
    main()
