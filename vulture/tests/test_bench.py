# SPDX-License-Identifier: GPL-2.0
"""The table that bench.py puts into a page."""

from __future__ import annotations

import pytest

from . import bench

pytestmark = pytest.mark.harness


def numbers() -> bench.Numbers:
    found = {
        "packet_with": [1100, 1320], "packet_plain": [1000, 1200], "flow_with": [21000, 20000],
        "flow_plain": [20000, 20000], "filled_with": [50000], "filled_plain": [40000],
    }  # fmt: skip
    return dict.fromkeys((*bench.FLOWS, *bench.UNTOUCHED), found)


def test_the_page_gets_a_row_for_each_number_of_connections_and_for_other_traffic() -> None:
    page = bench.PAGE.read_text(encoding="utf-8")
    once = bench.with_table(page, bench.table("6.12", numbers(), 1000.0))
    rows = [line for line in bench.BLOCK.findall(once)[0].splitlines() if "1.100" in line]
    assert rows[0] == "| 1 under control | 1100 | 1000 | 1.100 | 20000 | 20000 | 1.025 |  |"
    assert rows[2] == "| 10000 under control | 1100 | 1000 | 1.100 | 20000 | 20000 | 1.025 | 1024 |"
    assert [row.split(" | ")[0] for row in rows[4:]] == ["| loaded, not used", "| beside a rule"]
    assert bench.with_table(once, bench.table("6.12", numbers(), 1000.0)) == once
    assert bench.BLOCK.sub("", once) == bench.BLOCK.sub("", page), "nothing else changes"


def test_a_page_without_a_place_for_it_and_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(bench.BadPage, match="there is not one"):
        bench.with_table("no place\n", "")
    for words in (("6.12", "7.2"), ("--writ",)):
        assert bench.main(*words) == 2
        assert f"not '{' '.join(words)}'" in capsys.readouterr().err
