# SPDX-License-Identifier: GPL-2.0
"""Counts samples, no more: its time is what perf needs to call a script for each sample.

usage: perf script -s empty_sample_table.py
"""

perf_db_export_mode = True  # pylint: disable=invalid-name
COUNT = [0]


def sample_table(*_arguments: object) -> None:
    """Counts a sample of one event."""
    COUNT[0] += 1


def trace_end() -> None:
    """Prints the number of samples."""
    print(f"event samples: {COUNT[0]}")
