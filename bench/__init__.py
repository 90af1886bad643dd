# SPDX-License-Identifier: GPL-2.0
"""The measurements: one file per experiment."""
