# SPDX-License-Identifier: GPL-2.0
"""The tests that `make check` runs: suites by subject, and the harness that they share."""
