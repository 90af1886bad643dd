# SPDX-License-Identifier: GPL-2.0
"""Suites of perf: the terms, the script, `perf functions`."""
