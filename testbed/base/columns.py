# SPDX-License-Identifier: GPL-2.0
"""Rows of words as columns of plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def aligned(rows: Iterable[Sequence[str]], words: int) -> list[str]:
    """A line a row, columns two blanks apart: the first ``words`` to the left, the others, numbers, to the right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  ".join(
            cell.ljust(width) if index < words else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
