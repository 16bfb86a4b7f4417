# SPDX-License-Identifier: GPL-2.0
"""The metrics of Table 1 (active_share, gap_use) on series whose shares are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from testbed.measure import metrics
from testbed.measure.series import Series, bridged
from testbed.run import runner
from testbed.spec import records
from testbed.spec.experiment import parse

TEXT = """
[experiment]
claim = "known shares"
source = "vulture/tests/test_pauses.py"
duration_s = 40
measure_s = [0, 39.9]
[flow.be]
[flow.lbe]
[metric.on]
kind = "active_share"
flow = "be"
[metric.off]
kind = "gap_use"
flow = "be"
"""


def known(be_on_mbit: float, lbe_on_mbit: float, lbe_off_mbit: float, period_s: float) -> dict[str, float]:
    """be sends every other period; what the metrics say."""
    (job,) = runner.plan(parse(TEXT, Path("pauses.toml")), runner.Options(runs=1, seed=1))
    t = np.arange(0, 40.05, 0.1)
    on = (t // period_s) % 2 == 0
    rows = []
    for flow, rate in ((1, np.where(on, be_on_mbit, 0)), (2, np.where(on, lbe_on_mbit, lbe_off_mbit))):
        total = np.concatenate([[0], np.cumsum(rate[:-1] * 0.1 * 1e6 / 8)])
        one = np.zeros(len(t), records.RECV)
        one["t_ns"], one["flow"], one["bytes"] = t * 1e9, flow, total
        rows.append(one)
    empty = np.zeros(0, records.SEND), np.zeros(0, records.QUEUE)
    series = Series(empty[0], np.concatenate(rows), empty[1])
    run = metrics.Run(series, job.setting, job.flows)
    return {name: run.value(metric) for name, metric in job.setting.metrics.items()}


def test_shares_are_those_put_in() -> None:
    found = known(8, 1, 5, 5)
    assert found["on"] == pytest.approx(100 * 8 / 9, abs=1)
    assert found["off"] == pytest.approx(100 * 5 / 9.41, abs=2)


def test_a_flow_that_never_pauses_has_a_share_and_no_pauses() -> None:
    found = known(2, 6, 5, 100)
    assert found["on"] == pytest.approx(25) and np.isnan(found["off"])


def test_a_flow_that_never_sends_has_neither() -> None:
    assert all(np.isnan(value) for value in known(0, 1, 5, 5).values())


def test_short_gaps_are_no_pauses() -> None:
    active = np.array([True, False, False, True, False, False, False, True])
    assert bridged(active, 3).tolist() == [True] * 4 + [False] * 3 + [True]
