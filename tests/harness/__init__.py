# SPDX-License-Identifier: GPL-2.0
"""What suites and the bench share: where things are, the emulated machine, recordings, the truth."""
