# SPDX-License-Identifier: GPL-2.0
"""usage: perf script -s empty_sample_table.py

Does nothing but count: its time is what perf itself needs to call a script for each sample.
"""

perf_db_export_mode = True  # pylint: disable=invalid-name
COUNT = [0]


def sample_table(*_arguments: object) -> None:
    """A sample of one event."""
    COUNT[0] += 1


def trace_end() -> None:
    """All samples were seen."""
    print(f"event samples: {COUNT[0]}")
