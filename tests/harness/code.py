# SPDX-License-Identifier: GPL-2.0
"""Builds shared libraries for tests, and tells where their functions are."""

from pathlib import Path

from tests.harness.env import must


def assembly(*names: str) -> str:
    """Assembler source of functions of 64 bytes."""
    return ".text\n" + "".join(
        f'.globl "{name}"\n.type "{name}", @function\n"{name}": .skip 64\n.size "{name}", 64\n'
        for name in names
    )


def build(path: Path, source: str, *options: str) -> Path:
    """Makes a shared library of C or assembler, which is written to path; returns the library."""
    path.write_text(source)
    library = path.with_suffix(".so")
    must("gcc", "-shared", "-nostdlib", "-Wl,--build-id=none", *options, "-o", library, path)
    return library


def for_machine(library: Path, arch: str) -> Path:
    """A copy of the library whose header says that it is for this architecture (uname -m)."""
    number = {"aarch64": 183, "riscv64": 243, "x86_64": 62}[arch]
    code = library.read_bytes()
    copy = library.with_suffix(f".{arch}.so")
    copy.write_bytes(code[:18] + number.to_bytes(2, "little") + code[20:])
    return copy


def addresses(library: Path, *options: str) -> dict[str, int]:
    """The addresses of its symbols."""
    lines = (line.split() for line in must("nm", "--defined-only", *options, library).splitlines())
    return {words[2]: int(words[0], 16) for words in lines if len(words) == 3}
