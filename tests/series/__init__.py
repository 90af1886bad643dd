# SPDX-License-Identifier: GPL-2.0
"""Suites of the series and of the repository itself."""
