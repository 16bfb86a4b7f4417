# SPDX-License-Identifier: GPL-2.0
"""Rows printed as columns: widths, alignment, and no blanks at a line's end."""

from __future__ import annotations

from testbed.base.columns import aligned


def test_words_to_the_left_and_numbers_to_the_right() -> None:
    rows = [("part", "kernel", "cases"), ("fuzz", "6.12", "104450"), ("a longer one", "7.2", "3")]
    assert aligned(rows, words=2) == [
        "part          kernel   cases",
        "fuzz          6.12    104450",
        "a longer one  7.2          3",
    ]


def test_words_alone_leave_no_blanks_at_the_end() -> None:
    assert aligned([("a", "long"), ("b", "x")], words=2) == ["a  long", "b  x"]
    assert aligned([], words=1) == []
