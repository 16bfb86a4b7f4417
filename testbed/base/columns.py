# SPDX-License-Identifier: GPL-2.0
"""Plain-text tables with aligned columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def aligned(rows: Iterable[Sequence[str]], words: int) -> list[str]:
    """A line for each row, two blanks between columns; the first ``words`` columns are left-aligned, others right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  ".join(
            cell.ljust(width) if index < words else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
