# SPDX-License-Identifier: GPL-2.0
"""The bench fails where 6.12 is slower than its aim. The speeds are made up."""

from __future__ import annotations

import pytest

from testbed.bench import speed


def at(case: str, series: str, simulated_s_per_s: float) -> speed.Speed:
    which = next(one for one in speed.CASES if one.name == case)
    return speed.Speed(series, which, 120.0, 120.0 / simulated_s_per_s, 9.4)


@pytest.mark.parametrize(
    ("case", "series", "fast", "slow"),
    [("two flows", "6.12", 75.1, 74.9), ("64 flows", "6.12", 30.1, 29.9), ("20,000 web connections", "6.12", 5.1, 4.9)],
)
def test_a_kernel_below_its_aim_is_told_with_the_aim(case: str, series: str, fast: float, slow: float) -> None:
    simulator = {"two flows": 42.0, "64 flows": 20.0}
    assert speed.slow([at(case, series, fast)], simulator) == []
    ((missed, aim),) = speed.slow([at(case, series, slow)], simulator)
    assert missed.case.name == case and slow < aim < fast
    assert speed.slow([at(case, "6.1", slow)], simulator) == [], "the aims are for 6.12"


def test_without_the_simulator_nothing_is_compared_with_it() -> None:
    assert speed.slow([at("64 flows", "6.12", 1.0)], None) == []
    assert len(speed.slow([at("two flows", "6.12", 1.0)], None)) == 1


def test_every_case_has_an_aim() -> None:
    assert all(case.aim or case.beside for case in speed.CASES)
