# SPDX-License-Identifier: GPL-2.0
"""The limit of the row "web sessions" (Documentation/tcp_lbe.md): its equation against a queue, packet by packet."""

from __future__ import annotations

import pytest

from tcp_lbe.tests.web_limit import longer_pct, most_use, simulated_ms, wait_ms


@pytest.mark.parametrize("use", [0.0, 0.3, 0.6])
def test_a_burst_waits_as_long_as_the_equation_says(use: float) -> None:
    assert simulated_ms(use) == pytest.approx(wait_ms(use), rel=0.1)


def test_two_percent_and_three_fifths_exclude_each_other() -> None:
    limit = most_use(2)
    assert longer_pct(limit) == pytest.approx(2) and limit < 0.4 and longer_pct(0.6) > 5
