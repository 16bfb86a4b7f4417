# SPDX-License-Identifier: GPL-2.0
"""The command line: what it lists, prints and refuses. No kernel is booted here."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from testbed.__main__ import main
from testbed.tests.made import TWO_FLOWS, experiment, result_set


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "lp_beside_cubic" in capsys.readouterr().out
    assert main(["list", "--json", "demo"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["demo"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["list", "no_such_tag"], "no experiment has the tag 'no_such_tag'"),
        (["run", "lp_besides_cubic"], "near: lp_beside"),
        (["run", "demo", "--set", "x"], "expected key=value"),
        (["run", "demo", "--set", "topology.rate=5"], "unknown key"),
        (["run", "demo", "--set", "topology.rate_mbit=-5"], "allowed are 0.01 to 10000"),
        (["run", "demo", "--case", "background=blue"], "variants of background are cubic"),
        (["run", "demo", "--case", "blue"], "expected DIM=VARIANT"),
        (["run", "demo", "--jobs", "0"], "at least 1"),
        (["run", "demo", "--runs", "0", "--dry-run"], "allowed are 1 to"),
        (["show", "--out", "/nonexistent"], "no results in"),
        (["show", "demo", "--out", "/nonexistent"], "run demo makes them"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert main(words) in (1, 2)
    out, err = capsys.readouterr()
    assert out == "" and message in err


def test_unknown_words_are_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["dance"])
    assert stop.value.code == 2
    with pytest.raises(SystemExit) as stop:
        main(["run", "--help"])
    assert stop.value.code == 0 and "examples:" in capsys.readouterr().out


def test_dry_run_prints_commands_and_plans(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "demo", "--short", "--case", "background=lp", "--dry-run"]) == 0
    out = capsys.readouterr().out
    for words in (
        "insmod tcp_lp.ko",
        "ip netns add snd",
        "tc -n rtr qdisc add dev east",
        "flow id=2 kind=greedy",
        "sink port=5001",
    ):
        assert words in out


def test_report_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"alone": [{"be": 9.0, "bg": math.nan}] * 2, "polite": [{"be": 8.9, "bg": 0.1}] * 2}
    result_set(experiment(), values).save(tmp_path)
    assert main(["show", "--out", str(tmp_path), "--no-plots"]) == 0
    assert "1 of 1 bounds met" in capsys.readouterr().out
    assert main(["show", "made", "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checks"][0]["status"] == "pass"
    assert list(tmp_path.glob("*.svg")) and list(tmp_path.glob("*.png"))


def test_an_experiment_of_one_s_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TWO_FLOWS)
    assert main(["run", str(path), "--dry-run"]) == 0
    assert "# mine: background=alone, seed 1" in capsys.readouterr().out
