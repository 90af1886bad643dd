# SPDX-License-Identifier: GPL-2.0
"""PMU drivers that no emulator runs, with a simulated counter."""

import re
import tempfile
import unittest
from pathlib import Path

from tests.harness.env import LINUX, TOP, must

PROGRAM = TOP / "tests/kernel/counters.c"
# the driver's name for its PMU, its file, the bits of its counters
DRIVERS = {
    "mipspmu": ("arch/mips/kernel/perf_event_mipsxx.c", (32, 48, 64)),
    "loongarch_pmu": ("arch/loongarch/kernel/perf_event.c", (64,)),
}


def function(text: str, name: str) -> str:
    """The text of a static function of a C file, renamed to what follows _event_."""
    found = re.search(rf"^static \w+ {name}\(.*?^}}$", text, re.M | re.S)
    assert found, name
    return found[0].replace(name, name.partition("_event_")[2], 1)


class Counters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.programs = []
        for pmu, (file, _) in DRIVERS.items():
            driver, program = Path(folder) / f"{pmu}.h", Path(folder) / pmu
            text = (LINUX / file).read_text()
            names = f"{pmu}_event_set_period", f"{pmu}_event_update"
            driver.write_text("\n\n".join(function(text, name) for name in names))
            must("gcc", "-O2", f"-DPMU={pmu}", f'-DDRIVER="{driver}"', "-o", program, PROGRAM)
            cls.programs.append(program)

    def check(self, bits: int, period: int, overflows: int, samples: int, parts: int = 0) -> None:
        """There are so many samples, and each ends a whole period."""
        for program in self.programs:
            if bits not in DRIVERS[program.name][1]:
                continue
            with self.subTest(program.name, bits=bits, period=period):
                output = must(program, bits, period, parts, overflows)
                self.assertEqual(output.split(), [str(period)] * samples)

    def test_period_that_the_counter_holds(self):
        for bits in 32, 48, 64:
            self.check(bits, 1000, 10, 10)
            self.check(bits, 2 ** (bits - 1) - 1, 1, 1)

    def test_longer_period(self):
        self.check(32, 2**31, 4, 2)
        self.check(32, 3_000_000_000, 6, 3)
        self.check(48, 2**62 - 1, 2**15 + 1, 1)

    def test_period_of_two_to_the_62nd_and_more(self):
        self.check(32, 2**62, 1000, 0)
        self.check(32, 2**63 - 1, 1000, 0)
        self.check(48, 2**62, 2**15 + 1, 1)
        self.check(48, 2**63 - 1, 2**16 + 2, 1)

    def test_event_that_is_stopped_and_started(self):
        for period in 1000, 2**62 - 1, 2**62, 2**63 - 1:
            self.check(64, period, 1, 1, parts=10)


if __name__ == "__main__":
    unittest.main()
