# SPDX-License-Identifier: GPL-2.0
"""Builds the series for every architecture whose PMUs it changes, and for s390.

gcc's W=1 and sparse also complain about pristine Linux. So the tests compare their
complaints about one object with the series and without it.
"""

import os
import re
import tempfile
import unittest
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import or_
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness.env import BASE, CHECK, LINUX, must
from tests.harness.pristine import WALK, held, work_tree

SLOW = True
MINUTES = 90
LOCK = "trees"
ON_BASES = "every"

# name | Debian packages of the compiler | make's variables | configuration, options set over it |
# objects
#
# scripts/debian/install.sh reads the packages from here.
TABLE = """
x86_64 | gcc | ARCH=x86_64 | allmodconfig | kernel/events/ kernel/trace/trace_event_perf.o arch/x86/events/ drivers/perf/
arm64 | gcc-aarch64-linux-gnu | ARCH=arm64 | allmodconfig | kernel/events/ drivers/perf/ arch/arm64/kernel/perf_callchain.o
i386 | gcc | ARCH=i386 | allnoconfig SMP | kernel/events/ arch/x86/events/
ppc64le | gcc-powerpc64le-linux-gnu | ARCH=powerpc | allnoconfig PPC64 PPC_BOOK3S_64 CPU_LITTLE_ENDIAN PPC_POWERNV PPC_PSERIES PPC_PERF_CTRS HV_PERF_CTRS | kernel/events/ arch/powerpc/perf/
ppc64-book3e | gcc-powerpc64-linux-gnu | ARCH=powerpc | allnoconfig PPC64 PPC_BOOK3E_64 FSL_SOC_BOOKE CORENET_GENERIC FSL_EMB_PERFMON FSL_EMB_PERF_EVENT | kernel/events/ arch/powerpc/perf/
ppc32-e500 | gcc-powerpc-linux-gnu | ARCH=powerpc | allnoconfig PPC_85xx FSL_SOC_BOOKE MPC85xx_CDS FSL_EMB_PERFMON FSL_EMB_PERF_EVENT | kernel/events/ arch/powerpc/perf/
ppc32-6xx | gcc-powerpc-linux-gnu | ARCH=powerpc | allnoconfig PPC_BOOK3S_32 PPC_PMAC PPC_PERF_CTRS | kernel/events/ arch/powerpc/perf/
armhf | gcc-arm-linux-gnueabihf | ARCH=arm | allnoconfig MMU ARCH_MULTIPLATFORM ARCH_MULTI_V7 ARCH_VIRT ARM_PMU ARM_PMUV3 | kernel/events/ drivers/perf/
riscv64 | gcc-riscv64-linux-gnu | ARCH=riscv C=0 | allnoconfig 64BIT MMU RISCV_SBI RISCV_PMU RISCV_PMU_SBI RISCV_PMU_LEGACY | kernel/events/ drivers/perf/
riscv32 | gcc-riscv64-linux-gnu | ARCH=riscv C=0 | allnoconfig ARCH_RV32I NONPORTABLE MMU RISCV_SBI RISCV_PMU RISCV_PMU_SBI | kernel/events/ drivers/perf/
s390x | gcc-s390x-linux-gnu | ARCH=s390 | allnoconfig | kernel/events/ arch/s390/kernel/perf_cpum_sf.o arch/s390/kernel/perf_cpum_cf.o arch/s390/kernel/perf_pai_crypto.o arch/s390/kernel/perf_pai_ext.o
"""
# riscv has C=0, as Debian's sparse does not know its instruction sets.
# Cells of the table that differ in another base than 6.12. Linux 7.3 has one driver for s390's two
# PMUs of that kind and no MPC85xx_CDS.
OTHERWISE = {
    "7.3": {
        "perf_pai_crypto.o arch/s390/kernel/perf_pai_ext.o": "perf_pai.o",
        "MPC85xx_CDS": "MPC85xx_DS",
    }
}

# Options of every configuration; and those that only slow allmodconfig, or need more packages.
EVERYWHERE = ["PERF_EVENTS=y", "KUNIT=y", "RUNTIME_TESTING_MENU=y", "PERF_ALT_PERIOD_KUNIT_TEST=y"]
WITHOUT = [
    "DEBUG_INFO_NONE=y",
    *(
        f"{option}=n"
        for option in (
            "GCC_PLUGINS",
            "GCOV_KERNEL",
            "KASAN",
            "KCOV",
            "KCSAN",
            "KUNIT_ALL_TESTS",
            "MODVERSIONS",
            "RUST",
            "UBSAN",
            "WERROR",
        )
    ),
]


class Machine(NamedTuple):
    """One row of the table."""

    name: str
    packages: str
    variables: list[str]
    config: str
    options: list[str]
    objects: list[str]


def machines() -> list[Machine]:
    """The rows of the table."""
    rows, table = [], TABLE.strip()
    for name, other in OTHERWISE.get(BASE, {}).items():
        table = table.replace(name, other)
    for line in table.splitlines():
        name, packages, variables, config, objects = (cell.strip() for cell in line.split("|"))
        cross = (
            packages.removeprefix("gcc-") + "-"
            if packages.endswith(("gnu", "eabi", "eabihf"))
            else ""
        )
        rows.append(
            Machine(
                name,
                packages,
                [f"CROSS_COMPILE={cross}", *variables.split()],
                *config.split(" ", 1)[:1],
                [word if "=" in word else word + "=y" for word in config.split()[1:]],
                objects.split(),
            )
        )
    return rows


def where_no_matter(line: str, tree: Path) -> str:
    """A message without lines, columns, and the folder of the tree."""
    return re.sub(r":\d+(:\d+(-\d+)?)?:|\bline \d+", ":", line.replace(f"{tree}/", ""))


def compile_objects(tree: Path, machine: Machine, objects: list[str]) -> dict[str, Counter]:
    """The complaints of gcc and sparse by object. Raises AssertionError if one does not compile."""
    with tempfile.TemporaryDirectory(dir=CHECK) as out:
        make = ["make", "-C", tree, f"O={out}", "W=1", "C=1", *machine.variables]
        wanted = [f"CONFIG_{option}" for option in EVERYWHERE + machine.options]
        settings = Path(out) / "settings"
        settings.write_text("\n".join(wanted + [f"CONFIG_{option}" for option in WITHOUT]) + "\n")
        must(*make, machine.config, env={"KCONFIG_ALLCONFIG": str(settings)})
        absent = set(wanted) - set((Path(out) / ".config").read_text().splitlines())
        if absent and tree == LINUX:
            raise AssertionError(
                f"{machine.name}: not to be had in this configuration: {' '.join(absent)}"
            )
        # not parallel: a complaint is about the object that was announced last
        output = must(*make, *objects)
    said, name = {}, ""
    for line in output.splitlines():
        if announced := re.match(r"  ([A-Z]+) (?:\[M\])? +(\S+)", line):
            if announced[1] == "CC":
                name = announced[2]
                said[name] = Counter()
            elif announced[1] != "CHECK":
                name = ""
        elif name and re.search(r"\b(warning|error): ", line):
            said[name][where_no_matter(line, tree)] += 1
    return said


def new_complaints(machine: Machine) -> tuple[set[str], list[str]]:
    """The compiled objects, and complaints about them that pristine Linux does not have."""
    ours = compile_objects(LINUX, machine, machine.objects)
    # leave out what `make prepare` compiles
    loud = [name for name, said in ours.items() if said and name.startswith(tuple(machine.objects))]
    known = [name for name in loud if (WALK / name).with_suffix(".c").is_file()]
    theirs = compile_objects(WALK, machine, known) if known else {}
    # complaints about a new file may be about headers: those of any other file are not new
    anywhere = reduce(or_, theirs.values(), Counter())
    return set(ours), [
        text for name in loud for text in (ours[name] - theirs.get(name, anywhere)).elements()
    ]


def changed() -> list[str]:
    """The kernel's C files and headers that the series touches."""
    names = must(
        "git", "-C", LINUX, "diff", "--name-only", "pristine", "series", "--", "*.c", "*.h"
    ).split()
    return [name for name in names if not name.startswith("tools/")]


@pytest.fixture(scope="module", autouse=True)
def own_work_tree():
    with held():
        work_tree()
        yield


class Builds(unittest.TestCase):
    def test_every_architecture(self):
        """gcc and sparse have no new warning; each C file of the series is compiled somewhere."""
        compiled = set()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = {machine.name: pool.submit(new_complaints, machine) for machine in machines()}
        for name, job in jobs.items():
            with self.subTest(name):
                objects, complaints = job.result()
                compiled |= {name.rsplit(".", 1)[0] for name in objects}
                self.assertEqual(complaints, [])
        for name in changed():
            with self.subTest(name):
                self.assertTrue(
                    name.endswith(".h") or name.removesuffix(".c") in compiled,
                    "compiled for no architecture",
                )
