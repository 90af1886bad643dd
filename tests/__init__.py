# SPDX-License-Identifier: GPL-2.0
"""What `make check` runs: suites by subject, and the harness that they share."""
