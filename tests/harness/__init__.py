# SPDX-License-Identifier: GPL-2.0
"""Code that suites and the bench share: paths, the emulated machine, recordings, the truth."""
