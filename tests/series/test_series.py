# SPDX-License-Identifier: GPL-2.0
"""The series as the maintainers get it: applies, builds at each commit, is clean."""

import email
import email.utils
import re
import subprocess
import unittest
from email.message import Message
from fnmatch import fnmatch
from pathlib import Path

from tests.harness import machines
from tests.harness.env import ARCH, BUILD, CHECK, LINUX, SLOW, TOP, must, run, vm
from tests.harness.pristine import BUILT, WALK, build_kernel, build_perf, held, pristine, work_tree

MINUTES = 20
LOCK = "trees"
MACHINES = "arm64 x86_64"

MAIL = BUILD / "series"
SELFTESTS = CHECK / "series"


def git(*args: object) -> str:
    return must("git", "-C", WALK, *args).rstrip("\n")


def addresses(mail: Message, field: str) -> set[str]:
    """The addresses in a field of a mail's header."""
    return {address for _, address in email.utils.getaddresses(mail.get_all(field, []))}


def setUpModule() -> None:
    pristine()
    unittest.enterModuleContext(held())
    work_tree()
    must("make", "series")


def tearDownModule() -> None:
    git("checkout", "--quiet", "--detach", "pristine")


class Series(unittest.TestCase):
    def test_applies_with_git_am_and_gives_the_tree(self):
        git("checkout", "--quiet", "--detach", "pristine")
        self.addCleanup(run, "git", "-C", WALK, "am", "--abort")
        git(
            "-c",
            "user.name=Somebody",
            "-c",
            "user.email=somebody@invalid",
            "am",
            "--quiet",
            *sorted(MAIL.glob("*.patch"))[1:],
        )
        self.assertEqual(git("rev-parse", "HEAD^{tree}"), git("rev-parse", "series^{tree}"))

    def test_cover_letter_is_written(self):
        letter = next(MAIL.glob("0000-*")).read_text()
        self.assertRegex(letter, r"(?m)^Subject: \[PATCH 00/\d\d\] perf: ")
        self.assertNotRegex(letter, r"\*\*\*|@[A-Z]+@")
        # commands are further to the right
        prose = letter.partition("\n\n")[2].partition(f" ({len(list(MAIL.iterdir())) - 1}):\n")[0]
        self.assertNotRegex(prose, r"(?m)^(?! {4}).{80,}$")
        # what it calls patches 1-9, 10-19 and so on are all but the last one
        named = [
            (int(first), int(last)) for first, last in re.findall(r"Patches\s(\d+)-(\d+)", letter)
        ]
        self.assertEqual(
            [first for first, _last in named], [1, *(last + 1 for _first, last in named[:-1])]
        )
        self.assertEqual(named[-1][1], len(list(MAIL.iterdir())) - 2)
        self.assertEqual(
            *(
                re.search(r"^From: (.*)", path.read_text(), re.M)[1]
                for path in sorted(MAIL.iterdir())[:2]
            )
        )

    def test_mails_go_to_those_whose_files_they_touch(self):
        letter, *patches = (
            email.message_from_string(path.read_text()) for path in sorted(MAIL.glob("*.patch"))
        )
        (riscv,) = (mail for mail in patches if "riscv_pmu_sbi: Support" in mail["Subject"])
        self.assertIn("linux-riscv@lists.infradead.org", addresses(riscv, "Cc"))
        self.assertIn("peterz@infradead.org", addresses(letter, "To"))
        self.assertLess(
            sum("linux-riscv@lists.infradead.org" in addresses(mail, "Cc") for mail in patches),
            len(patches) // 2,
        )
        (core,) = (mail for mail in patches if "perf/core: Alternate between" in mail["Subject"])
        self.assertIn(
            re.search(r"(?m)^Suggested-by: .* <(.*)>$", core.get_payload())[1],
            addresses(core, "Cc"),
        )
        for mail in patches:
            for field in "To", "Cc":
                self.assertTrue(addresses(mail, field), mail["Subject"])
                self.assertNotIn("", addresses(mail, field), mail["Subject"])
                self.assertLessEqual(addresses(mail, field), addresses(letter, field))

    def test_each_commit_builds(self):
        """perf for this machine where the commit touches tools, the kernel for arm64 where it touches that.

        Of all tests: the kernel for x86_64, too; the one for arm64 boots, and
        passes each of the series' selftests that any kernel before it passed.
        """
        machines.make_selftest(SELFTESTS, ARCH, *machines.PROGRAMS)
        passed: set[str] = set()
        for commit in git("rev-list", "--reverse", "pristine..series").split():
            subject = git("log", "-1", "--format=%s", commit)
            files = git("diff-tree", "-r", "--no-commit-id", "--name-only", commit).split()
            git("checkout", "--quiet", "--detach", commit)
            with self.subTest(subject):
                kernels = [
                    arch
                    for arch, folder in (("arm64", "arm64"), ("x86_64", "x86"))[: 1 + SLOW]
                    if any(
                        re.match(rf"(arch/{folder}|drivers|include|init|kernel|lib)/", name)
                        for name in files
                    )
                ]
                for arch in kernels:
                    build_kernel(arch)
                # not one that was built before the walk: it may have the whole series
                if SLOW and "arm64" in kernels:
                    passed = self.passing(passed)
                if any(
                    name.startswith("tools/")
                    and not re.match(r"tools/perf/(Documentation|tests/shell|scripts)/", name)
                    for name in files
                ):
                    build_perf()
        self.assertEqual(bool(passed), SLOW)

    def passing(self, before: set[str]) -> set[str]:
        """The selftests that pass in the kernel just built: at least those that passed before."""
        done = vm(
            "; ".join(map(machines.in_memory, machines.PROGRAMS)) + "; true",
            "--kernel",
            BUILT,
            share=SELFTESTS,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        now = set(re.findall(r"^ok \d+ (\S+)$", done.stdout, re.M))
        self.assertLessEqual(before, now, done.stdout)
        return now

    def test_checkpatch_strict(self):
        for commit in git("rev-list", "--reverse", "pristine..series").split():
            with self.subTest(git("log", "-1", "--format=%s", commit)):
                # the commits that Fixes: names are not in this tree, which begins with Debian's
                output = run(
                    "scripts/checkpatch.pl",
                    "--strict",
                    "--quiet",
                    "--ignore=UNKNOWN_COMMIT_ID",
                    "-g",
                    commit,
                    cwd=LINUX,
                ).stdout
                # the names of the C interfaces of Python and libelf are theirs
                output = re.sub(
                    r"(?m)^CHECK: Avoid CamelCase: <(Py|G?Elf)\w*>\n#.*\n.*\n\n", "", output
                )
                output = re.sub(r"^total: 0 errors, 0 warnings, \d+ checks.*\n", "", output)
                self.assertEqual(output, "")

    def test_kernel_doc(self):
        """Linux's own check of its comments; a struct of which it misses every member today may have one more."""
        git("checkout", "--quiet", "--detach", "pristine")

        def complaints(tree: Path, name: str) -> set[str]:
            output = run("perl", "scripts/kernel-doc", "-none", "-Wall", name, cwd=tree).stdout
            return {
                re.sub(r":\d+:|'\w+' (?=not described)", "", line)
                for line in output.splitlines()
                if "warning:" in line
            }

        names = git("diff", "--name-only", "pristine", "series", "--", "*.c", "*.h").split()
        self.assertIn("include/linux/perf_event.h", names)
        new = git("diff", "--name-only", "--diff-filter=A", "pristine", "series").split()
        for name in names:
            # perf's own files have no kernel-doc to speak of
            if not name.startswith("tools/") or name in new:
                known = complaints(WALK, name) if (WALK / name).exists() else set()
                self.assertEqual(complaints(LINUX, name) - known, set(), name)

    def test_every_commit_is_signed_off_by_its_author(self):
        for entry in git("log", "--format=%an <%ae>%x00%b%x01", "pristine..series").split("\x01")[
            :-1
        ]:
            author, body = entry.strip().split("\x00")
            self.assertIn(f"Signed-off-by: {author}", body)

    def test_uapi_header_and_its_copy_in_tools_are_identical(self):
        name = "include/uapi/linux/perf_event.h"
        self.assertEqual((LINUX / name).read_bytes(), (LINUX / "tools" / name).read_bytes())


class ManPage(unittest.TestCase):
    def test_patch_applies_to_the_page_and_leaves_no_warning(self):
        folder, debian = CHECK / "man", CHECK / "man/debian"
        # Debian 12's, which the patch is for; a small system has no installed pages
        must(
            TOP / "scripts/debian/fetch.sh",
            debian,
            "bookworm",
            must("dpkg", "--print-architecture").strip(),
            "manpages-dev",
        )
        must(
            "sh",
            "-ec",
            f"mkdir -p man2; zcat {debian}/usr/share/man/man2/perf_event_open.2.gz > man2/perf_event_open.2",
            cwd=folder,
        )
        for patch in sorted((TOP / "patches/man-pages").glob("*.patch")):
            must("patch", "-p1", "--fuzz=0", "-i", patch, cwd=folder)
        page = run(
            "man", "--warnings", "-l", "man2/perf_event_open.2", cwd=folder, stderr=subprocess.PIPE
        )
        self.assertEqual((page.returncode, page.stderr), (0, ""))
        self.assertIn("jitter_alternate_period", page.stdout)


class Maintainers(unittest.TestCase):
    def test_get_maintainer_knows_every_file_of_the_repository(self):
        script = LINUX / "scripts/get_maintainer.pl"
        tracked = must("git", "ls-files").split()
        for name in tracked:
            out = must(
                "perl",
                script,
                "--no-tree",
                "--no-git",
                "--no-git-fallback",
                "--mpath=MAINTAINERS",
                "-f",
                name,
            )
            self.assertRegex(out, r"maintainers@.*maintainer:", name)

    def test_every_pattern_names_something(self):
        tracked = must("git", "ls-files").split()
        for pattern in re.findall(r"^F:\t(.*)", (TOP / "MAINTAINERS").read_text(), re.M):
            self.assertTrue(
                any(fnmatch(name, pattern + "*" * pattern.endswith("/")) for name in tracked),
                pattern,
            )


if __name__ == "__main__":
    unittest.main()
