# SPDX-License-Identifier: GPL-2.0
"""Suites of the emulator: the core model, and the machine that it is in."""
