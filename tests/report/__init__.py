# SPDX-License-Identifier: GPL-2.0
"""Suites of functions-report: pages, clusters, the store."""
