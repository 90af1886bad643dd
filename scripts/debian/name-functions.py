#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Gives the functions of stripped programs names, so that perf tells them apart.

Debian's programs have no symbols, but each function has an entry in .eh_frame, which tells
where it begins. This adds a symbol table to each ELF file of arm64 below the folder: with
the names that .dynsym has, and f_ADDRESS for all others. Loaded parts stay where they are.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = "aarch64-linux-gnu-"
ELF, AARCH64 = b"\x7fELF", 183


def output(*command: object) -> str:
    return subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True
    ).stdout


def is_stripped(path: Path) -> bool:
    """Returns whether this is a program or library of arm64 whose functions have no names."""
    with open(path, "rb") as file:
        header = file.read(20)
    if header[:4] != ELF or int.from_bytes(header[18:20], "little") != AARCH64:
        return False
    sections = output(f"{TOOLS}readelf", "--sections", "--wide", path)
    return " .eh_frame " in sections and " .symtab " not in sections


def name_functions(path: Path) -> None:
    """Adds the symbol table."""
    frames = output(f"{TOOLS}readelf", "--debug-dump=frames", path)
    starts = {int(start, 16) for start in re.findall(r" FDE .*pc=([0-9a-f]+)\.\.", frames)}
    names: dict[int, str] = {}
    for line in output(f"{TOOLS}nm", "--dynamic", "--defined-only", path).splitlines():
        start, kind, name = line.split()
        if kind in "TtWi":
            names.setdefault(int(start, 16), name.partition("@")[0])
    sections = re.findall(
        r"\] (\.\S+) +PROGBITS +([0-9a-f]+) \S+ ([0-9a-f]+) \S+ +AX ",
        output(f"{TOOLS}readelf", "--sections", "--wide", path),
    )
    with tempfile.NamedTemporaryFile("w", suffix=".options") as options:
        for address in sorted(starts | set(names)):
            for section, start, size in sections:
                offset = address - int(start, 16)
                if 0 <= offset < int(size, 16):
                    name = names.get(address, f"f_{address:x}")
                    options.write(f"--add-symbol={name}={section}:{offset},function,local\n")
        options.flush()
        output(f"{TOOLS}objcopy", f"@{options.name}", path)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"usage: {Path(sys.argv[0]).name} FOLDER")
    for path in sorted(Path(sys.argv[1]).rglob("*")):
        if path.is_file() and not path.is_symlink() and is_stripped(path):
            try:
                name_functions(path)
            except subprocess.CalledProcessError as error:
                sys.exit(f"name-functions: {path}: {error.stderr.strip().splitlines()[-1]}")


if __name__ == "__main__":
    main()
