# SPDX-License-Identifier: GPL-2.0
"""What measures: one file per experiment."""
