# SPDX-License-Identifier: GPL-2.0
"""Reports of what `perf functions report` makes of recordings: pages, pictures, profiles of many hosts."""


class ReportError(Exception):
    """What the user is told in one line; the command ends with status 1."""
