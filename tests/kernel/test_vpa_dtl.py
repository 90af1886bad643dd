# SPDX-License-Identifier: GPL-2.0
"""The dispatch trace log of ppc64le as events of the PMU vpa_dtl, which Linux has since 6.18.

QEMU accepts the place of the log and never writes an entry. The module of tests/kernel/vpa_dtl
writes numbered ones.
"""

import re
import shutil
import unittest
from itertools import pairwise

from tests.harness.env import BUILD, CHECK, LINUX, TOP, in_guest, machine, must
from tests.harness.pristine import SYMBOLS, prepare_modules

SLOW = True
MINUTES = 20
ON_BASES = "newer"
MACHINES = "ppc64le"

ARCH = "ppc64le"
SHARE = CHECK / "vpa_dtl"
KERNEL, KBUILD = BUILD / "kernel" / ARCH, CHECK / "vpa_dtl-kbuild"
AT_ONCE = 64  # entries that the module writes at once
MANY = 400 * AT_ONCE  # 1.2 MB: the area of four pages wraps five times
FEW = AT_ONCE
COMMANDS = f"""
cd /tmp
write=/sys/kernel/debug/vpa_dtl_hypervisor
dmesg -c > /dev/null
insmod /share/vpa_dtl_hypervisor.ko
record() {{
	name=$1
	shift
	perf record -q -a -T --sample-cpu -o $name.data "$@"
	perf script -i $name.data --ns > /share/$name
}}
record wraps -m ,4 -e vpa_dtl/dtl_all,period=1000000/ -- sh -c "echo {MANY} > $write"
# nothing polls before the end
record ends -e vpa_dtl/dtl_all,period=100000000000/ -- sh -c "echo {FEW} > $write"
echo {MANY} > $write &
record again -e vpa_dtl/dtl_all,period=1000000/ -D 20-120,220-320 -- sleep 1 || true
wait
perf record -q -a -o killed.data -e vpa_dtl/dtl_all,period=1000000/ -- sleep 1 &
sleep 0.1
kill -KILL $!
wait $! || true
dmesg > /share/dmesg
"""


def setUpModule() -> None:
    """Builds the module for the kernel, and runs all commands."""
    if not (LINUX / "arch/powerpc/perf/vpa-dtl.c").exists():
        raise unittest.SkipTest("this Linux has no vpa_dtl: BASE=7.3 has")
    shutil.rmtree(SHARE, ignore_errors=True)
    SHARE.mkdir(parents=True)
    prepare_modules(LINUX, KERNEL / SYMBOLS, KBUILD, ARCH)
    source = shutil.copytree(TOP / "tests/kernel/vpa_dtl", SHARE / "module")
    arch = f"ARCH={machine(ARCH, 'kernel_arch')}"
    cross = f"CROSS_COMPILE={machine(ARCH, 'cross_compile')}"
    must("make", "-C", KBUILD, f"M={source}", arch, cross, "modules")
    shutil.copy(source / "vpa_dtl_hypervisor.ko", SHARE)
    in_guest(COMMANDS, arch=ARCH, share=SHARE, timeout=600)


class Log(unittest.TestCase):
    def numbers(self, name: str) -> list[int]:
        """The numbers of the entries that perf script prints."""
        text = (SHARE / name).read_text()
        return [int(number) for number in re.findall(r"enqueue_to_dispatch_time:(\d+)", text)]

    def test_area_wraps(self):
        self.assertEqual(self.numbers("wraps"), list(range(MANY)))

    def test_entries_after_the_last_poll(self):
        self.assertEqual(self.numbers("ends"), list(range(FEW)))

    def test_disabled_and_enabled_again(self):
        """Each entry of two times is there, and none of the time between them."""
        found = self.numbers("again")
        gaps = [(one, next_) for one, next_ in pairwise(found) if next_ != one + 1]
        self.assertEqual(len(gaps), 1)
        self.assertGreater(gaps[0][1] - gaps[0][0], 10 * AT_ONCE)
        self.assertGreater(len(found), 20 * AT_ONCE)

    def test_kernel_does_not_complain(self):
        """Neither when perf is killed, and its area is unmapped."""
        complaint = r"\b(BUG|WARNING|Oops|Unable to handle)\b"
        self.assertNotRegex((SHARE / "dmesg").read_text(), complaint)
