# SPDX-License-Identifier: GPL-2.0
"""Runs with incomplete results fail; a result file is read back as it was written, or refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from testbed.results import files as results
from testbed.results.files import BadResults
from testbed.run import collect
from testbed.run import job as jobs
from testbed.run.collect import IncompleteRun
from testbed.run.runner import run_one
from testbed.spec.records import RECV
from testbed.tests.made import PretendBackend, experiment, result_set, series

#: what a test does to a file or to the folder of a run's results
Damage = Callable[[Path], object]


@pytest.fixture
def job() -> jobs.Job:
    one = experiment()
    return jobs.make("made", {"background": "polite"}, 1, one.setting({"background": "polite"}))


def run(job: jobs.Job, tmp_path: Path, spoil: Damage | None = None) -> results.Record:
    agent = tmp_path / "agent"
    agent.write_bytes(b"")
    return run_one(job, PretendBackend(agent, spoil), keep=tmp_path / "run")


def test_a_good_run_is_complete(job: jobs.Job, tmp_path: Path) -> None:
    record = run(job, tmp_path)
    assert record.facts["uname"] == "Linux 6.12.0"
    assert record.facts["sysctls"]["snd"]["net.ipv4.tcp_sack"] == "1"
    assert record.facts["counters"]["snd"] == {"Tcp.InSegs": 3}
    assert collect.compute(job, record) == {"be": pytest.approx(9.0), "bg": pytest.approx(0.4)}


def edit(name: str, change: Damage) -> Damage:
    def spoil(out: Path) -> None:
        path = out / name
        change(path)

    return spoil


def drop_sysctl(path: Path) -> None:
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "tcp_sack" not in line))


def other_sysctl(path: Path) -> None:
    path.write_text(path.read_text().replace("tcp_sack = 1", "tcp_sack = 0"))


def drop_flow_2(path: Path) -> None:
    rows = np.fromfile(path, dtype=RECV)
    rows[rows["flow"] == 1].tofile(path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("uname", Path.unlink, "left no uname"),
        ("uname", lambda path: path.write_text(" "), "uname is empty"),
        ("rtr.qdisc", Path.unlink, "left no rtr.qdisc"),
        ("rtr.qdisc", lambda path: path.write_text("[{"), "no JSON"),
        ("snd.sysctl", drop_sysctl, "sysctl net.ipv4.tcp_sack was not read back"),
        ("snd.sysctl", other_sysctl, "tcp_sack is '0', asked for '1'"),
        ("rcv.counters", Path.unlink, "left no rcv.counters"),
        ("rcv.recv", Path.unlink, "no recv series"),
        ("rcv.recv", drop_flow_2, "flow bg .* has no received series"),
        ("rcv.recv", lambda path: path.write_bytes(path.read_bytes()[:-5]), "no multiple of a record's 24"),
        ("rtr.queue", lambda path: path.write_bytes(b""), "no queue series"),
        ("snd.events", lambda path: path.write_text("soon 1 start\n"), "unreadable line"),
        ("snd.events", Path.unlink, "left no snd.events"),
    ],
)
def test_a_run_that_lacks_something_fails(
    job: jobs.Job, tmp_path: Path, name: str, change: Damage, message: str
) -> None:
    with pytest.raises(IncompleteRun, match=message):
        run(job, tmp_path, edit(name, change))


def test_a_module_must_be_read_back_with_its_version(tmp_path: Path) -> None:
    one = experiment()
    job = jobs.make(
        "made", {"background": "polite"}, 1, one.setting({"background": "polite"}, sets={"flow.bg.cc": "lp"})
    )
    with pytest.raises(IncompleteRun, match="module tcp_lp was not read back"):
        run(job, tmp_path)
    with pytest.raises(IncompleteRun, match="module tcp_lp has no version"):
        run(job, tmp_path, edit("modules", lambda path: path.write_text("module tcp_lp\n")))
    record = run(job, tmp_path, edit("modules", lambda path: path.write_text("module tcp_lp\nversion v1\n")))
    assert record.facts["modules"] == {"tcp_lp": {"version": "v1"}}


def saved(tmp_path: Path) -> Path:
    return result_set(experiment(), {"alone": [{"be": 9.0, "bg": math.nan}], "polite": [{"be": 8.9, "bg": 0.1}]}).save(
        tmp_path
    )


def test_files_come_back_as_they_went(tmp_path: Path) -> None:
    path = saved(tmp_path)
    back = results.load(path)
    assert [one.case["background"] for one in back.results] == ["alone", "polite"]
    assert back.results[1].metrics == {"be": 8.9, "bg": 0.1}
    assert math.isnan(back.results[0].metrics["bg"]), "no number stays no number"
    assert results.series_bytes(back.results[0].series) == results.series_bytes(series({1: 9.0, 2: 0.4}))


def change_json(path: Path, key: str) -> None:
    document = json.loads(path.read_text())
    if key == "format":
        document["format"] = 99
    elif key in document:
        del document[key]
    else:
        del document["provenance"][key]
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("format", "format 99, this testbed reads 2"),
        ("runs", "runs missing"),
        ("kernel", "provenance.kernel missing"),
        ("modules_version", "modules_version missing"),
    ],
)
def test_files_that_lack_something_are_refused(tmp_path: Path, key: str, message: str) -> None:
    path = saved(tmp_path)
    change_json(path, key)
    with pytest.raises(BadResults, match=message):
        results.load(path)


def test_files_whose_series_were_changed_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = bytearray((tmp_path / "made.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "made.npz").write_bytes(bytes(data))
    with pytest.raises(BadResults, match="its hash is not the one"):
        results.load(path)
    (tmp_path / "made.npz").unlink()
    with pytest.raises(BadResults, match="No such file"):
        results.load(path)
    path.write_text("")
    with pytest.raises(BadResults, match=r"made\.json"):
        results.load(path)
