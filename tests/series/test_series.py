# SPDX-License-Identifier: GPL-2.0
"""The series as maintainers get it: it applies, builds at each commit, and is clean."""

import re
import subprocess
import unittest
from pathlib import Path

import pytest

from tests.harness import machines
from tests.harness.env import (
    ARCH,
    BASE,
    BUILD,
    CHECK,
    IDENTITY,
    LINUX,
    SLOW,
    TOP,
    machine,
    must,
    run,
    vm,
)
from tests.harness.pristine import BUILT, WALK, build_kernel, build_perf, held, pristine, work_tree

MINUTES = 6
LOCK = "trees"
MACHINES = "arm64"

MAIL = BUILD / "series"


def git(*args: object) -> str:
    return must("git", "-C", WALK, *args).rstrip("\n")


def commits() -> list[tuple[str, str, str]]:
    """The commits of the series: name, topic, subject."""
    form = "%H %(trailers:key=Patch,valueonly,separator=) %s"
    lines = git("log", "--reverse", f"--format={form}", "pristine..series")
    found = [line.split(" ", 2) for line in lines.splitlines()]
    return [(name, patch.split("/")[0], subject) for name, patch, subject in found]


@pytest.fixture(scope="module", autouse=True)
def own_work_tree():
    pristine()
    with held():
        work_tree()
        yield
        git("checkout", "--quiet", "--detach", "pristine")


class Mails(unittest.TestCase):
    """Each topic is a mail thread of its own, for the newest base."""

    @classmethod
    def setUpClass(cls) -> None:
        if BASE == "6.12":
            raise unittest.SkipTest("mails are for the newest base")
        must("make", "series", env=IDENTITY)

    def topics(self) -> list[Path]:
        found = sorted(path for path in MAIL.iterdir() if path.is_dir())
        wanted = {topic for _, topic, _ in commits()} - {"private"}
        self.assertEqual({path.name for path in found}, wanted)
        return found

    def test_topics_apply_with_git_am_one_after_the_other(self):
        """Each topic applies to the topics that it needs, and gives the tree that was mailed."""
        self.addCleanup(run, "git", "-C", WALK, "am", "--abort")
        for topic in self.topics():
            with self.subTest(topic.name):
                patches = sorted(topic.glob("*.patch"))[1:]
                below = git("rev-parse", f"topic/{topic.name}~{len(patches)}")
                git("checkout", "--quiet", "--force", "--detach", below)
                who = "-c", "user.name=Another", "-c", "user.email=another@example.org"
                git(*who, "am", "--quiet", *patches)
                mailed = git("rev-parse", f"topic/{topic.name}^{{tree}}")
                differ = git("diff", "--name-only", "HEAD", mailed).split()
                # MAINTAINERS names the sender
                self.assertIn(differ, ([], ["MAINTAINERS"]))

    def test_each_topic_has_a_letter(self):
        for topic in self.topics():
            with self.subTest(topic.name):
                first, *patches = sorted(topic.glob("*.patch"))
                self.assertLessEqual(len(patches), 20)
                letter = first.read_text()
                self.assertRegex(letter, r"(?m)^Subject: \[(RFC )?PATCH 0+/\d+\] \S+")
                self.assertNotRegex(letter, r"\*\*\*|@[A-Z]+@")
                # commands and tables are further to the right
                prose = letter.partition("\n\n")[2].partition(f" ({len(patches)}):\n")[0]
                self.assertNotRegex(prose, r"(?m)^(?! {2}).{80,}$")
                self.assertLessEqual(len(prose.splitlines()), 60)
                # our own commits are nobody's base
                self.assertRegex(letter, r"(?m)^base(-commit: [0-9a-f]{40}|: Linux [\d.]+)$")
                self.assertNotIn(git("rev-parse", "pristine"), letter)

    def test_lists_take_each_mail(self):
        for path in MAIL.rglob("*.patch"):
            self.assertLessEqual(path.stat().st_size, 100_000, path.name)

    def test_checkpatch_strict(self):
        # The commits that Fixes: names are not in this tree, which begins with Debian's.
        # MAINTAINERS is one commit, the last of its topic. The letter of core-fixes tells which
        # patch has no Fixes:, and why. A shell test of perf begins with its name.
        # Python takes keywords as char *; a macro makes functions that have names of members.
        # Other macros iterate, like list_for_each_entry().
        ignored = "UNKNOWN_COMMIT_ID,FILE_PATH_CHANGES,MISSING_FIXES_TAG,SPDX_LICENSE_TAG"
        ignored += ",STATIC_CONST_CHAR_ARRAY,MACRO_ARG_PRECEDENCE,MACRO_ARG_REUSE"
        patches = [path for path in MAIL.rglob("*.patch") if not path.name.startswith("0000-")]
        command = "scripts/checkpatch.pl", "--strict", "--terse", "--ignore", ignored
        lines = run(*command, *patches, cwd=LINUX).stdout.splitlines()
        # Python and libelf name their C interfaces
        known = r"total: 0 errors, 0 warnings, .*|.* CHECK: Avoid CamelCase: <(Py|G?Elf)\w*>"
        self.assertTrue(lines)
        self.assertEqual([line for line in lines if not re.fullmatch(known, line)], [])

    def test_each_topic_builds_with_what_it_needs_alone(self):
        """The branch of a topic has the topics that its letter names, and no other."""
        if not SLOW:
            self.skipTest("make check-all builds each topic alone")
        for topic in self.topics():
            with self.subTest(topic.name):
                git("checkout", "--quiet", "--force", "--detach", f"topic/{topic.name}")
                files = git("diff", "--name-only", "pristine", "HEAD").split()
                build(files)

    def test_alternate_alone(self):
        """With what it needs alone it builds without a warning, boots, and skips no selftest."""
        if not SLOW:
            self.skipTest("make check-all builds and boots it")
        git("checkout", "--quiet", "--force", "--detach", "topic/alternate")
        for arch in "arm64", "x86_64":
            self.assertNotIn("warning:", build_kernel(arch))
        must("make", "-C", WALK, f"O={CHECK}/alone-headers", "ARCH=arm64", "headers")
        tests, name = WALK / "tools/testing/selftests/perf_events", "alternate_period"
        must(
            f"{machine(ARCH, 'cross_compile')}gcc",
            *"-static -O2 -Wall -Werror -DSKID=0 -isystem".split(),
            *(CHECK / "alone-headers/usr/include", "-o"),
            *(CHECK / "share" / name, tests / f"{name}.c", "-lpthread"),
        )
        done = vm(machines.in_memory(name), "--kernel", BUILT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertGreaterEqual(len(re.findall(r"(?m)^ok \d+ \S+$", done.stdout)), 5)
        self.assertNotIn("SKIP", done.stdout)


def folders_of(files: list[str]) -> set[str]:
    """The folders of the kernel for arm64 that have these files, or use these headers."""
    sources = r"((arch/arm64|drivers|kernel)/.*/)[^/]+\.c"
    found = {match[1] for name in files if (match := re.fullmatch(sources, name))}
    return found | {"kernel/events/"}


def build(files: list[str]) -> None:
    """Builds what these files change of the work tree: kernels, perf.

    Only `make check-all` builds whole kernels, and the kernel for x86_64.
    """
    arches = ("arm64", "x86_64")[: 1 + SLOW]
    folders = {"arm64": "arm64", "x86_64": "x86"}
    kernels = [
        arch
        for arch in arches
        if any(
            re.match(rf"(arch/{folders[arch]}|drivers|include|init|kernel|lib)/", name)
            for name in files
        )
    ]
    for arch in kernels:
        build_kernel(arch, () if SLOW else sorted(folders_of(files)))
    perf = r"tools/(?!perf/(Documentation|tests/shell|scripts)/|testing/)"
    if any(re.match(perf, name) for name in files):
        build_perf()


class Commits(unittest.TestCase):
    """The first class by name: after `git am` in the work tree, make would build more again."""

    def test_each_builds(self):
        """Builds perf where a commit touches tools, and the kernel for arm64 where it touches that.

        `make check` stops at the end of each topic that another one needs, and compiles the folders
        of the kernel that changed; `make` has built the whole series. `make check-all` stops at
        each commit: it builds whole kernels, for x86_64, too.
        """
        walked = commits()
        letters = "\n".join(path.read_text() for path in TOP.glob("patches/*/cover-letter"))
        needed = set(" ".join(re.findall(r"(?m)^Needs: (.*)", letters)).split())
        ends = {topic: name for name, topic, _ in walked if topic in needed}.values()
        before = "pristine"
        for commit, topic, subject in walked:
            if not SLOW and commit not in ends:
                continue
            files = git("diff", "--name-only", before, commit).split()
            before = commit
            git("checkout", "--quiet", "--force", "--detach", commit)
            with self.subTest(f"{topic}: {subject}"):
                build(files)


class ManPage(unittest.TestCase):
    def test_patch_applies_to_the_page_and_leaves_no_warning(self):
        folder, debian = CHECK / "man", CHECK / "man/debian"
        # fetch Debian 12's pages, which the patch is for; a small system has none installed
        must(
            TOP / "scripts/debian/fetch.sh",
            debian,
            "bookworm",
            must("dpkg", "--print-architecture").strip(),
            "manpages-dev",
        )
        installed = debian / "usr/share/man/man2/perf_event_open.2.gz"
        (folder / "man2").mkdir(exist_ok=True)
        (folder / "man2/perf_event_open.2").write_text(must("zcat", installed))
        for patch in sorted((TOP / "patches/man-pages").glob("*.patch")):
            must("patch", "-p1", "--fuzz=0", "-i", patch, cwd=folder)
        page = run(
            "man", "--warnings", "-l", "man2/perf_event_open.2", cwd=folder, stderr=subprocess.PIPE
        )
        self.assertEqual((page.returncode, page.stderr), (0, ""))
        self.assertIn("jitter_alternate_period", page.stdout)


class Maintainers(unittest.TestCase):
    def test_get_maintainer_knows_every_folder_of_the_repository(self):
        script = LINUX / "scripts/get_maintainer.pl"
        tracked = must("git", "ls-files").split()
        # one file of each folder and kind: a pattern names files by these
        for name in {(Path(name).parent, Path(name).suffix): name for name in tracked}.values():
            options = "--no-tree", "--no-git", "--no-git-fallback", "--mpath=MAINTAINERS"
            out = must("perl", script, *options, "-f", name)
            self.assertRegex(out, r"maintainers@.*maintainer:", name)
