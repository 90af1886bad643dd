# SPDX-License-Identifier: GPL-2.0
"""The topics of a series as mails: each with a cover letter, on pristine Linux.

patches/TOPIC/cover-letter begins with a header:

    Subject: the change that the topic makes
    Needs: topics that it depends on, besides the private patches before it (optional)
    Prefix: RFC PATCH (optional)

Its body is a format string of what `make bench` has measured (results/6.12.json)
and of {linux}, {version}. A base may have a letter of its own, patches/overrides/BASE/TOPIC/cover-letter.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import store
from store import PRISTINE, SERIES, TOP, TRAILER, Store, git

MEASURED_ON = "6.12"  # the base of the figures in letters for every base
FIGURES = TOP / f"results/{MEASURED_ON}.json"
MOST = 20  # most mails of a topic
LARGEST = 100_000  # most bytes of a mail: the lists drop larger ones


@dataclass
class Letter:
    """A topic's cover letter, before its figures are filled in."""

    subject: str
    needs: list[str]
    prefix: str
    body: str

    @staticmethod
    def read(series: Store, base: str, topic: str) -> "Letter":
        """Reads a letter. Raises SystemExit if there is none, or if it has no subject."""
        path = series.path(base, f"{topic}/cover-letter")
        try:
            header, body = path.read_text().split("\n\n", 1)
            fields = dict(line.split(": ", 1) for line in header.splitlines())
            needs = fields.get("Needs", "").split()
            return Letter(fields["Subject"], needs, fields.get("Prefix", "PATCH"), body)
        except (OSError, ValueError, LookupError) as error:
            sys.exit(f"series: {path.relative_to(TOP)} is no cover letter: {error!r}")


def names_of(series: Store, base: str, topic: str) -> list[str]:
    """Returns the patches that a topic needs and its own, in order."""
    wanted, queue = {store.PRIVATE}, [topic]
    while queue:
        wanted.add(queue[-1])
        queue += [
            need for need in Letter.read(series, base, queue.pop()).needs if need not in wanted
        ]
    names = [name for name in series.names(base) if name.split("/")[0] in wanted]
    last = max(at for at, name in enumerate(names) if name.startswith(f"{topic}/"))
    return names[: last + 1]


def mailer() -> tuple[str, str]:
    """Returns name and address of the sender. Raises SystemExit if git does not know them."""
    found = [
        subprocess.run(
            ["git", "config", key], cwd=TOP, text=True, capture_output=True, check=False
        ).stdout.strip()
        for key in ("user.name", "user.email")
    ]
    if not all(found):
        sys.exit(
            "series: a mail wants a sender: set `git config --global user.name` and "
            "`git config --global user.email`; nothing was written"
        )
    return found[0], found[1]


def maintainer() -> str:
    """Returns the maintainer of our files in the patches; in the mails the sender replaces him."""
    return re.search(r"(?m)^M:\t(.*)", (TOP / "MAINTAINERS").read_text())[1]


def version() -> str:
    """Returns the version of this project, of packages, module and letters."""
    return subprocess.run(
        [TOP / "scripts/version"], text=True, capture_output=True, check=True
    ).stdout.strip()


@functools.cache
def warn_if_old(tree: Path) -> None:
    """Warns once about figures of another tree of MEASURED_ON."""
    then = json.loads(FIGURES.read_text())["tree"]
    paths = {path for hashes in then.values() for path in hashes}
    now = {path: git(tree, "rev-parse", f"{SERIES}:{path}") for path in paths}
    names = [name for name, hashes in then.items() if not hashes.items() <= now.items()]
    if names:
        print(
            f"series: {FIGURES.relative_to(TOP)} has figures of an older tree: "
            f"`make bench BENCH='{' '.join(names)}'` measures anew",
            file=sys.stderr,
        )


def fill(letter: Letter, base: str, tree: Path, topic: str) -> str:
    """Returns the body of a letter with its figures. Raises SystemExit if some are missing."""
    figures = {"linux": store.linux_version(tree), "version": version()}
    body = letter.body
    if re.search(r"{(?!linux}|version}|{)", body.replace("{{", "")):
        try:
            figures |= json.loads(FIGURES.read_text())
        except (OSError, ValueError) as error:
            sys.exit(
                f"series: the letter of {topic} has figures, and {FIGURES.relative_to(TOP)} cannot "
                f"be read ({error}): `make bench` measures them"
            )
        if base == MEASURED_ON:
            warn_if_old(tree)
    try:
        return body.format(**figures)
    except (ValueError, LookupError) as error:
        sys.exit(f"series: the letter of {topic} names a figure that is not there: {error!r}")


def add_topic(
    series: Store, base: str, tree: Path, topic: str, commits: dict[tuple[str, str], str]
) -> tuple[str, str]:
    """Makes the commits of a topic and its needs; returns the topic's first parent and its end.

    The branch topic/NAME of the tree is that end. commits: those of other topics, see add_patches.
    """
    names = names_of(series, base, topic)
    before = [name for name in names if not name.startswith(f"{topic}/")]
    own = [name for name in names if name not in before]
    if len(own) > MOST:
        sys.exit(f"series: the topic {topic} has {len(own)} patches: split it, {MOST} are the most")
    start = store.add_patches(tree, series, base, before, made=commits)
    end = store.add_patches(tree, series, base, own, start, commits)
    git(tree, "branch", "--force", f"topic/{topic}", end)
    return start, end


def write(series: Store, base: str, tree: Path, out: Path, wanted: str | None) -> None:
    """Writes out/TOPIC/0000-cover-letter.patch ... of each topic, or of the one wanted."""
    who = store.identity(*mailer(), f"{time.time():.0f} +0000")
    topics = series.topics(base)
    if wanted and wanted not in topics:
        sys.exit(f"series: no topic {wanted} for Linux {base}; there is: {' '.join(topics)}")
    if out.exists():
        others = [path.name for path in out.iterdir() if path.name not in topics]
        if others:
            sys.exit(f"series: {out} has {others[0]}, which is no topic: give a new folder")
    store.check_version(tree, base, tree)
    perf = recipients(tree, "-f", "kernel/events/core.c")
    # make all checks before the first mail is written
    made, commits = [], {}
    for topic in [wanted] if wanted else topics:
        letter = Letter.read(series, base, topic)
        body = fill(letter, base, tree, topic)
        made.append((topic, letter, body, *add_topic(series, base, tree, topic, commits)))
    for topic, letter, body, start, end in made:
        signed = sign(tree, start, end, who)
        shutil.rmtree(out / topic, ignore_errors=True)
        git(
            tree,
            "format-patch",
            "--quiet",
            "--cover-letter",
            f"--base={PRISTINE}",
            f"--subject-prefix={letter.prefix}",
            "--output-directory",
            str(out / topic),
            f"{start}..{signed}",
            env=who,
        )
        first, *patches = sorted((out / topic).iterdir())
        text = first.read_text().replace("*** SUBJECT HERE ***", letter.subject)
        text = re.sub(r"(?m)^base-commit: .*", base_of(tree), text)
        first.write_text(text.replace("*** BLURB HERE ***", body.strip()))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            asked = pool.map(lambda patch: recipients(tree, str(patch)), patches)
            found = [
                # a file that nobody maintains goes to perf's maintainers
                merge([each, *([] if each["To"] else [perf]), tagged(mail)])
                for each, mail in zip(asked, patches)
            ]
        letters = [perf] if any("kernel/" in path.read_text() for path in patches) else []
        for mail, each in zip(
            (first, *patches), (merge([*letters, *found, tagged(first)]), *found)
        ):
            address(mail, each)


def base_of(tree: Path) -> str:
    """Returns the line that names the base of a series; others do not have our commits."""
    commit = re.search(
        r" ([0-9a-f]{40})$", git(tree, "config", "--default", "", "--get", "series.source")
    )
    return f"base-commit: {commit[1]}" if commit else f"base: Linux {store.linux_version(tree)}"


def sign(tree: Path, start: str, end: str, who: dict[str, str]) -> str:
    """Repeats the commits start..end, written and signed off by the sender; returns the last."""
    sender = f"{who['GIT_AUTHOR_NAME']} <{who['GIT_AUTHOR_EMAIL']}>"
    head, owner = start, maintainer()
    for name in git(tree, "rev-list", "--reverse", f"{start}..{end}").split():
        message = TRAILER.sub("", git(tree, "log", "-1", "--format=%B", name)).rstrip("\n")
        tags = re.search(r"\n\n([A-Z][A-Za-z-]+: .*\n?)+\Z", message)
        message += ("\n" if tags else "\n\n") + f"Signed-off-by: {sender}\n"
        *early, _ = parts = split(tree, name)
        subject, _, body = message.partition("\n")
        for number, files in enumerate(early, 1):
            part = store.own_index(tree, head)
            for line in files:
                git(tree, "update-index", "--add", "--cacheinfo", line, env=part)
            title = f"{subject} ({number}/{len(parts)})"
            note = (
                f"The first files, for mails of less than {LARGEST // 1000} kB. Part {len(parts)}"
            )
            text = f"{title}\n\n{note}\nbuilds them.\n\nSigned-off-by: {sender}\n"
            head = store.commit(tree, part, head, text, who)
        if early:
            message = f"{subject} ({len(parts)}/{len(parts)})\n{body}"
        env = store.own_index(tree, name)
        entry = git(tree, "show", f"{name}:MAINTAINERS")
        if owner in entry:
            text = entry.replace(owner, sender) + "\n"
            blob = git(tree, "hash-object", "-w", "--stdin", stdin=text)
            git(tree, "update-index", "--cacheinfo", f"100644,{blob},MAINTAINERS", env=env)
        head = store.commit(tree, env, head, message, who)
    return head


def split(tree: Path, name: str) -> list[list[str]]:
    """Returns the new files of each mail of a commit, as update-index takes them.

    The last mail has the changes of other files, too, so that none of the others is built alone.
    """
    parts: list[list[str]] = [[]]
    size = len(git(tree, "format-patch", "-1", "--stdout", name))
    if size <= LARGEST:
        return parts
    added = git(tree, "diff-tree", "-r", "--no-renames", "--diff-filter=A", f"{name}^", name)
    left = 0
    for line in added.splitlines():
        (_, mode, _, blob, _), path = line.split("\t")[0].split(), line.split("\t")[1]
        content = git(tree, "cat-file", "blob", blob)
        # each line gets a `+`
        size = len(content) + content.count("\n")
        if left + size > LARGEST * 0.9 and parts[-1]:
            parts.append([])
            left = 0
        parts[-1].append(f"{mode},{blob},{path}")
        left += size
    return parts


def recipients(tree: Path, *what: str) -> dict[str, list[str]]:
    """Returns the people (To) and lists (Cc) in MAINTAINERS for a patch or, after -f, a file."""
    options = "--no-git", "--no-git-fallback", "--no-keywords"
    command = ["perl", "scripts/get_maintainer.pl", *options, *what]
    done = subprocess.run(command, cwd=tree, text=True, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"series: get_maintainer.pl: {done.stderr.strip()}")
    # our own entry is not in anybody's MAINTAINERS yet
    lines = [line for line in done.stdout.splitlines() if maintainer() not in line]
    named = [re.fullmatch(r"(.*>|\S+) \((.*)\)", line).groups() for line in lines]
    return {
        "To": [who for who, role in named if " list" not in f" {role}"],
        "Cc": [who for who, role in named if " list" in f" {role}"],
    }


def tagged(mail: Path) -> dict[str, list[str]]:
    """Returns the people in a mail's own tags (Cc)."""
    tags = r"(?m)^(?:Cc|(?!Signed-off)[A-Z][a-z-]+-by): (.+ <\S+>|\S+@\S+)$"
    return {"To": [], "Cc": re.findall(tags, mail.read_text())}


def merge(found: list[dict[str, list[str]]]) -> dict[str, list[str]]:
    """Returns all recipients, each once."""
    return {
        field: list(dict.fromkeys(who for each in found for who in each[field]))
        for field in ("To", "Cc")
    }


def address(mail: Path, to_whom: dict[str, list[str]]) -> None:
    """Writes recipients into a mail's header."""
    header, body = mail.read_text().split("\n\n", 1)
    lines = [f"{field}: " + ",\n\t".join(who) for field, who in to_whom.items() if who]
    mail.write_text("\n".join([header, *lines]) + "\n\n" + body)
