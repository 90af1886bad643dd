# SPDX-License-Identifier: GPL-2.0
"""Makes pages, pictures and profiles of many hosts from the tables of `perf functions report`."""


class ReportError(Exception):
    """An error that the user is told in one line; the command ends with status 1."""
