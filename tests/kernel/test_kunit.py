# SPDX-License-Identifier: GPL-2.0
"""The pure logic in the kernel's own unit tests, run by the tree's kunit.py."""

import os
import re
import unittest

from tests.harness.env import BUILD, CHECK, LINUX, SLOW, machine, must
from tests.harness.pristine import inherit

MINUTES = 2
LOCK = "trees"
MACHINES = "arm64"

KUNITCONFIG = "kernel/events/.kunitconfig"


class KUnit(unittest.TestCase):
    def test_alternate_periods(self):
        """They pass in the emulated machine's kernel, of which unchanged parts are not built again.

        `make check-all` also runs them in the kernel of x86_64.
        """
        # leave out the options that kunit.py and its serial ports, the test or the compilers set
        others = re.findall(r"^CONFIG_(\w+)=", (LINUX / KUNITCONFIG).read_text(), re.M)
        others += ["RUNTIME_TESTING_MENU", "(?:SERIAL|EEPROM|KUNIT|RUSTC)_.*"]
        option = rf"CONFIG_(?!(?:{'|'.join(others)})\b)\w+"
        for arch in ("arm64", "x86_64")[: 1 + SLOW]:
            with self.subTest(arch):
                kernel, folder, config = (
                    BUILD / "kernel" / arch,
                    CHECK / f"kunit-{arch}",
                    CHECK / f"kunit-{arch}.config",
                )
                inherit(kernel, folder)
                lines = re.findall(
                    rf"^{option}=y$|^# {option} is not set$", (kernel / ".config").read_text(), re.M
                )
                config.write_text("\n".join(lines))
                # newer kunit.py asks for KVM, which may not work in a virtual machine
                emulator = folder / "bin" / machine(arch, "emulator")
                emulator.parent.mkdir(exist_ok=True)
                emulator.write_text(
                    f'#!/bin/bash\nexec /usr/bin/{emulator.name} "${{@/#kvm/tcg}}"\n'
                )
                emulator.chmod(0o755)
                output = must(
                    "/usr/bin/python3",
                    "tools/testing/kunit/kunit.py",
                    "run",
                    "--arch",
                    arch,
                    f"--cross_compile={machine(arch, 'cross_compile')}",
                    f"--kunitconfig={config}",
                    f"--kunitconfig={KUNITCONFIG}",
                    f"--build_dir={folder}",
                    f"--jobs={os.cpu_count()}",
                    cwd=LINUX,
                    env={"PATH": f"{emulator.parent}:/usr/bin:/bin"},
                )
                counts = re.search(
                    r"Testing complete\. Ran (\d+) tests: passed: (\d+)$", output, re.M
                )
                self.assertIsNotNone(counts, output[-2000:])
                self.assertEqual(counts[1], counts[2])
                self.assertGreaterEqual(int(counts[1]), 5)
