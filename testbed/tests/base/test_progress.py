# SPDX-License-Identifier: GPL-2.0
"""Progress when the output is no terminal: few lines, each with the time left."""

from __future__ import annotations

import time

import pytest

from testbed.base.progress import RunsProgress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace time.monotonic() by a clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_line_now_and_then_and_one_at_the_end(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunsProgress()
    for done, at_s in ((1, 5.0), (2, 20.0), (3, 25.0), (4, 40.0)):
        clock[0] = at_s
        progress(done, 4, f"run {done}")
    assert capsys.readouterr().err.splitlines() == [
        "50 %, 2 of 4 runs, about 20 s left (run 2)",
        "100 %, 4 of 4 runs, about 0 s left (run 4)",
    ]


def test_the_time_left_is_by_the_share_of_the_work_and_at_most_to_the_limit(clock: list[float]) -> None:
    progress = RunsProgress(limit_s=50.0)
    clock[0] = 10.0
    assert progress.left(0.0) == ""
    assert progress.left(0.25) == "about 30 s left"
    assert progress.left(0.1) == "about 40 s left"
    assert RunsProgress(limit_s=1e6).left(0.5) == "about 0 s left"
