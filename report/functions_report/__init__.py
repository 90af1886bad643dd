# SPDX-License-Identifier: GPL-2.0
"""Reports made of what `perf functions report` knows: tables, clusters, a store."""
