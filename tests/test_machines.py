# SPDX-License-Identifier: GPL-2.0
"""The emulated x86_64 machine. test_machines_all.py has those that `make check-all` runs, too."""

import unittest

import machines


class X86(machines.Guest):
    """TCG emulates no PMU for x86."""

    ARCH = UNAME = "x86_64"


class X86Selftest(machines.Selftest):

    ARCH = "x86_64"
    MAY_SKIP = f"({machines.TWO_CPUS}|no hardware event with alternate sample periods)"


if __name__ == "__main__":
    unittest.main()
