# SPDX-License-Identifier: GPL-2.0
"""Suites of the kernel: the feature, the module, the machines."""
