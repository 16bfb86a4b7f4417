# SPDX-License-Identifier: GPL-2.0
"""`testbed speed`, each case cut to seconds. `make check-report` runs this, `make bench` the cases' full lengths."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from testbed.__main__ import main
from testbed.bench import speed

pytestmark = pytest.mark.report

#: the times in the cases' texts -> the shorter times that replace them
CUT = {
    "duration_s = 120": "duration_s = 12",
    "measure_s = [20, 120]": "measure_s = [6, 12]",
    "duration_s = 175": "duration_s = 8",
    "measure_s = [0, 175]": "measure_s = [0, 8]",
    "stop_s = 172": "stop_s = 6",
}


def cut(case: speed.Case, least: float) -> speed.Case:
    """Cut a case to seconds. Most of so short a run is the boot, so the case has no aim."""
    text = case.text
    for old, new in CUT.items():
        text = text.replace(old, new)
    assert text != case.text
    return replace(case, text=text, least=least, aim=None, beside=None)


def test_each_case_is_measured_and_ns3_beside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speed, "CASES", tuple(cut(case, 3.0) for case in speed.CASES))
    assert main(["speed", "--kernel", "6.12", "--rounds", "1"]) == 0
    first, _, *ours, a, b = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"measured \d{4}-\d\d-\d\d, testbed \S+", first)
    # if ns-3's package is missing, one line says so in place of the two of ns-3
    beside = [a, b] if " ns-3 " in a else [b]
    if len(beside) == 1:
        ours.append(a)
        assert b.startswith("ns-3 does not install here: ")
        beside = []
    assert [line.split("  ")[0] for line in ours] == ["two flows", "64 flows", "20,000 web connections"]
    for line in ours + beside:
        seconds = line.split(" s")
        assert float(seconds[2].split()[0]) > 0, line


def test_a_case_that_lets_nothing_through_is_red(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speed, "CASES", (cut(speed.CASES[0], 1e6),))
    monkeypatch.setattr(speed, "beside_ns3", lambda *_: None)
    assert main(["speed", "--kernel", "6.12", "--rounds", "1"]) == 1
    assert "two flows on 6.12: next to nothing came through" in capsys.readouterr().err
