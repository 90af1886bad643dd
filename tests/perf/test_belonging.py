# SPDX-License-Identifier: GPL-2.0
"""Tests that names and ranges come only from what was recorded, not from this machine's files."""

import platform
import subprocess
import unittest
from pathlib import Path

from tests.harness import code
from tests.harness import perfdata as pw
from tests.harness.code import addresses, assembly
from tests.harness.env import CHECK, PERF, must, run
from tests.harness.recording import Windows
from tests.harness.tables import ended

DATA = CHECK / "belonging"
DATA.mkdir(parents=True, exist_ok=True)
BASE, TEXT = 0x10000000, 0xFFFF800080010000
HERE = {"host": platform.node(), "release": platform.release(), "arch": platform.machine()}


def report(path: Path, *options: object) -> tuple[dict[str, int], str]:
    """Windows by symbol or, without one, by address; and the messages."""
    perf = PERF, "--buildid-dir", DATA / "none"
    done = run(*perf, "functions", "report", "-i", path, *options, stderr=subprocess.PIPE)
    assert not done.returncode, done
    found = ended("-i", path, *options, perf=perf)
    return {name: samples for (name, _), (samples, _) in found.items() if samples}, done.stderr


def recording(path: Path, *ips: int, base: int = BASE, **header: object) -> Windows:
    """Windows at places of a file."""
    made = Windows()
    for key, value in header.items():
        setattr(made.writer, key, value)
    made.map(path, base)
    for ip in ips:
        made.window(base + ip)
    return made


class Files(unittest.TestCase):
    """The file at a recorded path."""

    def test_rebuilt(self):
        """Functions and lines of another build, recognized by its build-id, are not told."""
        path = DATA / "rebuilt.c"
        two = "int one(int n) {{ return n * {}; }}\nint two(int n) {{ return one(n) + n; }}\n"
        options = "-g", "-O1", "-Wl,--build-id=sha1"
        library = code.build(path, two.format(3), *options)
        notes = must("readelf", "-n", library)
        number = notes.split("Build ID:")[1].split()[0]
        at = addresses(library)
        made = recording(library, at["one"], at["two"], build_ids={str(library): number})
        data = made.write(DATA / "rebuilt.data")
        self.assertEqual(report(data)[0], {"one": 1, "two": 1})
        self.assertIn("rebuilt.c:1", report(data, "--by", "srcline")[0])
        code.build(path, "int other(int n) { return n; }\n" + two.format(77777), *options)
        addresses_only = {hex(at["one"]): 1, hex(at["two"]): 1}
        for strip in False, True:  # a stripped file still has the ranges of its functions
            if strip:
                must("strip", library)
            rows, message = report(data, "--inline")
            self.assertEqual(rows, addresses_only)
            self.assertIn(f"{library} is another build here", message)
        code.build(path, "int other(int n) { return n; }\n" + two.format(77777), *options)
        self.assertFalse([row for row in report(data, "--by", "srcline")[0] if ".c:" in row])

    def test_other_architecture_or_host(self):
        """Without a build-id, architecture and host tell."""
        library = code.build(DATA / "plain.s", assembly("plain", "next"))
        at = addresses(library)["plain"]
        other = "aarch64" if HERE["arch"] == "x86_64" else "x86_64"
        headers = {}, HERE, {**HERE, "host": "elsewhere"}, {**HERE, "arch": other}
        for number, header in enumerate(headers):
            named = number < 2
            with self.subTest(header=header):
                data = recording(library, at, **header).write(DATA / f"plain{number}.data")
                rows, message = report(data)
                self.assertEqual(rows, {"plain" if named else hex(at): 1})
                self.assertEqual("so its functions are addresses" in message, not named)
        elsewhere = DATA / "plain2.data"
        self.assertEqual(report(elsewhere, "--symfs", "/")[0], {"plain": 1})
        # a folder with the files of the other host
        (DATA / "none").mkdir(exist_ok=True)
        self.assertEqual(report(elsewhere, "--symfs", DATA / "none")[0], {hex(at): 1})
        # a process here has the recorded pid, but sees other files
        command = f"mount -t tmpfs none '{library.parent}' && echo && exec sleep 60"
        with subprocess.Popen(("unshare", "-m", "sh", "-c", command), stdout=-1) as process:
            process.stdout.readline()
            made = Windows(process.pid)
            made.map("/" + library.name, BASE)
            made.window(BASE + at)
            rows, _ = report(made.write(DATA / "process.data"), "--symfs", library.parent)
            process.kill()
        self.assertEqual(rows, {"plain": 1})

    def test_map_of_a_process_elsewhere(self):
        """/tmp/perf-PID.map is that of a process of this machine."""
        pid = int(must("sh", "-c", "echo $$"))
        path = Path(f"/tmp/perf-{pid}.map")
        self.addCleanup(path.unlink)
        path.write_text(f"{BASE:x} 40 jitted\n", encoding="utf-8")
        for host, row in (HERE["host"], "jitted"), ("elsewhere", "[unnamed JIT code]"):
            made = Windows(pid)
            made.writer.host = host
            made.map("//anon", BASE)
            made.window(BASE + 4 if host == HERE["host"] else BASE)
            rows, message = report(made.write(DATA / "jit.data"))
            self.assertEqual(rows, {row: 1})
            self.assertEqual(f"{path} may be one of another host" in message, row != "jitted")


class Kernel(unittest.TestCase):
    """Names of the kernel."""

    @classmethod
    def setUpClass(cls) -> None:
        lines = (
            line.split() for line in Path("/proc/kallsyms").read_text(encoding="utf-8").splitlines()
        )
        symbols = {words[2]: int(words[0], 16) for words in lines if len(words) == 3}
        cls.text, cls.at = symbols["_text"], symbols["do_exit"]
        if not cls.at:
            raise unittest.SkipTest("only root sees addresses in /proc/kallsyms")

    def kernel(self, text: int, at: int, **header: object) -> Windows:
        made = Windows()
        for key, value in header.items():
            setattr(made.writer, key, value)
        made.map("[kernel.kallsyms]_text", text, 2**25, offset=text, misc=pw.MISC_KERNEL)
        made.window(at, misc=pw.MISC_KERNEL)
        return made

    def test_which_kernel(self):
        """Without a build-id, host, release, architecture and address tell the running kernel."""
        notes = Path("/sys/kernel/notes").read_bytes()
        number = notes[notes.index(b"\3\0\0\0GNU\0") + 8 :][:20].hex()
        other = "aarch64" if HERE["arch"] == "x86_64" else "x86_64"
        for offset, header, named in (
            (0, HERE, True),
            (0, {}, False),
            (0, {**HERE, "host": "elsewhere"}, False),
            (0, {**HERE, "release": "1.0"}, False),
            (0, {**HERE, "arch": other}, False),
            (2**21, HERE, False),
            (0, {"build_ids": {"[kernel.kallsyms]": number}}, True),
            (0, {**HERE, "build_ids": {"[kernel.kallsyms]": "77" * 20}}, False),
        ):
            for pipe in False, True:
                if pipe and "build_ids" in header:  # write_pipe() writes no such records
                    continue
                with self.subTest(offset=offset, header=header, pipe=pipe):
                    data = DATA / "which.data"
                    made = self.kernel(self.text + offset, self.at + offset, **header).writer
                    (made.write_pipe if pipe else made.write)(data)
                    rows, message = report(data)
                    self.assertEqual("do_exit" in rows, named, rows)
                    self.assertEqual("--kallsyms" in message, not named, message)
        self.assertIn("do_exit", report(data, "--kallsyms", "/proc/kallsyms")[0])

    def test_kernel_behind_its_modules(self):
        """Symbols that move the kernel behind a module do not end perf before its table."""
        kallsyms = DATA / "behind.kallsyms"
        kallsyms.write_text(f"{TEXT + 2**33:016x} T do_work\n")
        made = Windows()
        made.map("[kernel.kallsyms]_text", TEXT, 0x10000, misc=pw.MISC_KERNEL)
        made.map("[veryfast]", TEXT + 2**32, 0x1000, misc=pw.MISC_KERNEL)
        made.window(TEXT + 0x104, misc=pw.MISC_KERNEL)
        path = made.write(DATA / "behind.data")
        self.assertEqual(report(path, "--kallsyms", kallsyms)[0], {hex(TEXT + 0x104): 1})
