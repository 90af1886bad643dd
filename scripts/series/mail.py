# SPDX-License-Identifier: GPL-2.0
"""The topics of the newest base as mails: each with a cover letter, on pristine Linux.

patches/TOPIC/cover-letter begins with a header:

    Subject: the change that the topic makes
    Needs: topics that it depends on (optional)
    Prefix: RFC PATCH (optional)

Its body is a format string of what `make bench` has measured (results/6.12.json)
and of {linux}, {version}.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from store import PATCHES, PRISTINE, TOP, Tree, check_version, identity, linux_version

RESULTS = TOP / "results/6.12.json"
MOST = 20  # most mails of a topic
LARGEST = 100_000  # most bytes of a mail: the lists drop larger ones


def read_letter(topic: str) -> dict[str, str]:
    """Reads a letter: its header, and its Body. Raises SystemExit if there is none."""
    path = PATCHES / topic / "cover-letter"
    try:
        header, body = path.read_text().split("\n\n", 1)
        fields = dict(line.split(": ", 1) for line in header.splitlines())
        defaults = {"Subject": fields["Subject"], "Needs": "", "Prefix": "PATCH"}
        return defaults | fields | {"Body": body.strip()}
    except (OSError, ValueError, LookupError) as error:
        sys.exit(f"series: {path.relative_to(TOP)} is no cover letter: {error!r}")


def fill(topic: str, body: str, linux: str) -> str:
    """Returns the body of a letter with its figures. Raises SystemExit if some are missing."""
    version = subprocess.check_output([TOP / "scripts/version"], text=True).strip()
    try:
        return body.format(linux=linux, version=version, **json.loads(RESULTS.read_text()))
    except (OSError, ValueError, LookupError) as error:
        sys.exit(
            f"series: the letter of {topic} wants figures of {RESULTS.relative_to(TOP)}, which "
            f"`make bench` measures: {error!r}"
        )


def needed(topic: str) -> set[str]:
    """Returns a topic and those that it needs, also by way of others."""
    return {topic}.union(*map(needed, read_letter(topic)["Needs"].split()))


def mailer() -> tuple[str, str]:
    """Returns name and address of the sender. Raises SystemExit if git does not know them."""
    found = [
        subprocess.run(["git", "-C", TOP, "config", key], text=True, stdout=-1, check=False).stdout
        for key in ("user.name", "user.email")
    ]
    if not all(found):
        sys.exit(
            "series: a mail wants a sender: set `git config --global user.name` and "
            "`git config --global user.email`; nothing was written"
        )
    return found[0].strip(), found[1].strip()


def recipients(tree: Tree, commits: str, body: str, owner: str) -> list[str]:
    """Returns format-patch's options for maintainers, lists, and people in tags."""
    command = "perl scripts/get_maintainer.pl --no-git --no-git-fallback --no-keywords".split()
    diff = tree.git("diff", commits)
    said = subprocess.run(command, input=diff, cwd=tree.folder, text=True, stdout=-1, check=True)
    # our own entry is not in anybody's MAINTAINERS yet
    lines = [line for line in said.stdout.splitlines() if owner not in line]
    named = [re.fullmatch(r"(.*>|\S+) \((.*)\)", line).groups() for line in lines]
    messages = tree.git("log", "--format=%B", commits) + "\n" + body
    tagged = re.findall(r"(?m)^(?:Cc|[A-Z][a-z-]+-by): (.+ <\S+>|\S+@\S+)$", messages)
    to = [f"--to={who}" for who, role in named if " list" not in f" {role}"]
    lists = [who for who, role in named if " list" in f" {role}"]
    return [*to, *(f"--cc={who}" for who in dict.fromkeys([*lists, *tagged]))]


def write(tree: Tree, out: Path, wanted: str | None) -> None:
    """Writes out/TOPIC/0000-cover-letter.patch ... of each topic, or of the one wanted."""
    sender = mailer()
    who = identity(*sender, f"{time.time():.0f} +0000")
    topics = list(dict.fromkeys(name.split("/")[0] for name in tree.names))
    topics.remove("private")
    if wanted and wanted not in topics:
        sys.exit(f"series: no topic {wanted} for Linux {tree.base}; there is: {' '.join(topics)}")
    check_version(tree.folder, tree.base, tree.folder)
    owner = re.search(r"(?m)^M:\t(.*)", (TOP / "MAINTAINERS").read_text())[1]
    known = re.search(r" ([0-9a-f]{40})$", tree.git("config", "series.source"))
    linux = linux_version(tree.folder)
    based = f"base-commit: {known[1]}" if known else f"base: Linux {linux}"
    # make all checks before the first mail is written
    made = []
    for topic in [wanted] if wanted else topics:
        letter, below = read_letter(topic), needed(topic) - {topic}
        own = [name for name in tree.names if name.startswith(f"{topic}/")]
        if len(own) > MOST:
            sys.exit(f"series: the topic {topic} has {len(own)} patches: {MOST} are the most")
        before = [name for name in tree.names if name.split("/")[0] in below]
        start = tree.commit(before, PRISTINE, who, trailer=False)
        end = tree.commit(own, start, who, trailer=False)
        tree.git("branch", "--force", f"topic/{topic}", end)
        made.append((topic, letter, fill(topic, letter["Body"], linux), f"{start}..{end}"))
    for topic, letter, body, commits in made:
        shutil.rmtree(out / topic, ignore_errors=True)
        tree.git(
            *("format-patch", "--quiet", "--signoff", "--cover-letter", f"--base={PRISTINE}"),
            *(f"--subject-prefix={letter['Prefix']}", f"--output-directory={out / topic}"),
            *(*recipients(tree, commits, body, owner), commits),
            env=who,
        )
        for mail in (out / topic).iterdir():
            text = mail.read_text().replace("*** SUBJECT HERE ***", letter["Subject"])
            text = re.sub(r"(?m)^base-commit: .*", based, text.replace("*** BLURB HERE ***", body))
            # the sender maintains what we add
            mail.write_text(text.replace(owner, f"{sender[0]} <{sender[1]}>"))
            if mail.stat().st_size > LARGEST:
                sys.exit(f"series: {mail} has more than {LARGEST:,} bytes: split its patch")
