# SPDX-License-Identifier: GPL-2.0
"""ns-3 as a backend: its plans, reading its results, its refusals. ns-3 is not run, but for one test of `make
check-report`: a stored run's files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.backends.backend import BackendError
from testbed.backends.ns2 import machine as form
from testbed.backends.ns2.plan import CannotSay
from testbed.backends.ns3 import machine, package, plan
from testbed.base.errors import LbeError
from testbed.campaign import oracle
from testbed.commands.choose import make_backend
from testbed.judge import coverage, figures
from testbed.measure.metrics import Run
from testbed.measure.summary import summarise
from testbed.present import simulated, tables
from testbed.run import job as jobs
from testbed.spec.experiment import load, parse

SMALL = """
[experiment]
claim = "lp and a square wave"
source = "made up"
duration_s = 2
measure_s = [1, 2]
sample_ms = 1000
[topology]
rate_mbit = 1.5
framing = "ip"
mtu = 1000
delay_ms = 20
processing_us = 0
queue = { kind = "pfifo", packets = 22 }
[flow.data]
cc = "lp"
[flow.square]
kind = "square"
proto = "udp"
rate_mbit = 0.486
pkt_bytes = 972
period_s = 1
[modules.lbe_ns2]
rto_min_ms = 1000
[[event]]
at_s = 0
node = "snd"
run = "ip route replace default via 10.0.1.1 initcwnd 1"
[[event]]
at_s = 0
node = "rcv"
run = "ip route replace default via 10.0.2.1 quickack 1"
[metric.data]
kind = "share"
flow = "data"
[metric.queue]
kind = "queue_mean"
"""
#: the files that network.cc writes for two seconds of SMALL: octets are payload
STORED = {
    "recv": "0 1 0\n0 2 0\n1 1 56880\n1 2 9720\n2 1 151680\n2 2 19440\n",
    "send": "0 1 1 20 0 0\n1 1 12.5 20 110000 0\n2 1 14.5 20 130000 3\n",
    "queue": "0 1 0 0 0 0 0\n1 1 9 9000 0 70000 70\n2 1 12 12000 3 180000 180\n",
    "web": "",
}


def a_job(text: str = SMALL, **sets: object) -> jobs.Job:
    one = parse(text, Path("small.toml"))
    return jobs.make("small", {}, 1, one.setting({}, "default", {key.replace("__", "."): v for key, v in sets.items()}))


def line_of(job: jobs.Job, word: str) -> str:
    return next(line for line in plan.text(job) if line.startswith(word))


def test_a_plan_has_the_experiments_numbers() -> None:
    job = a_job()
    assert line_of(job, "begin") == "begin 1 1000 1 1 1"
    assert line_of(job, "link rtr") == "link rtr rtr2 1.5 1.5 20 22 22 1"
    # 40 octets of headers and 12 of timestamps; lp has the kernel's least time-out, lbe_ns2's is for its own senders
    assert line_of(job, "greedy") == f"greedy 1 snd rcv TcpLp 948 {plan.OPEN_WINDOW_BYTES} 1 0.2 1 0"
    assert line_of(job, "square") == "square 2 snd rcv 972 0.486 1 0.5 0 2"
    reno = a_job(flow__data__cc="ns2_reno")
    assert line_of(reno, "greedy") == f"greedy 1 snd rcv TcpNewReno 948 {plan.OPEN_WINDOW_BYTES} 1 1.0 1 0"


def test_the_initial_window_and_delayed_acks_come_from_the_routes() -> None:
    text = SMALL.replace(" initcwnd 1", "").replace(" quickack 1", "")
    assert line_of(a_job(text), "greedy").endswith(" 10 0.2 2 0")


@pytest.mark.parametrize(
    ("sets", "named"),
    [
        ({"flow__data__cc": "cubic"}, "cubic"),
        ({"modules__tcp_lp__paper": True}, "TcpLp has no parameters"),
        ({"topology__timestamps": False}, "timestamps"),
        ({"topology__framing": "ethernet"}, "ethernet"),
        ({"topology__queue": {"kind": "red", "packets": 20}}, "red"),
        ({"topology__loss_pct": 1.0}, "loss"),
        ({"topology__processing_us": 100}, "processing_us"),
        ({"flow__data__stop_s": 1.0}, "stop_s"),
        ({"flow__data__kind": "bytes", "flow__data__bytes": 1000}, "'bytes'"),
    ],
)
def test_what_ns3_cannot_say_is_named(sets: dict[str, Any], named: str) -> None:
    with pytest.raises(CannotSay, match=named):
        plan.text(a_job(**sets))


def test_the_command_runs_tcp_lps_rows() -> None:
    assert oracle.wanted([], simulated.NS3) == ["lp_table1_paper", "lp_fig11_paper"]
    cases = simulated.expressible(load("lp_table1_paper"), simulator=simulated.NS3)
    assert {case["other"] for case in cases} == {"alone", "lp", "tcp"}
    cases = simulated.expressible(load("lp_fig11_paper"), simulator=simulated.NS3)
    assert {case["data"] for case in cases} == {"lp", "tcp", "tcp_rto1s"}


def stored(folder: Path, **changed: str) -> Path:
    for name, text in (STORED | changed).items():
        (folder / name).write_text(text, encoding="ascii")
    return folder


def fake(folder: Path, *lines: str) -> machine.Ns3:
    """A backend whose program is a script; $1 is the plan, beside which the output goes."""
    program = folder / "program"
    program.write_text("\n".join(["#!/bin/sh", *lines]) + "\n", encoding="ascii")
    program.chmod(0o755)
    backend = machine.Ns3()
    backend.program = program
    return backend


def test_a_stored_run_gives_the_metrics_that_a_kernels_gives(tmp_path: Path) -> None:
    (tmp_path / "stored").mkdir()
    backend = fake(tmp_path, f'cp {stored(tmp_path / "stored")}/* "$(dirname "$1")"')
    job = a_job()
    run = Run(backend.record(job, 60).series, job.setting, job.flows)
    values = {name: run.value(metric) for name, metric in job.setting.metrics.items()}
    # 94.8 kB of payload in the second second: 100 packets of 1000 octets, on a link of 1.5 Mbit/s
    assert values["data"] == pytest.approx(100 * 0.8 / 1.5, rel=1e-3)
    assert values["queue"] == pytest.approx((9000 + 12000) / 2 * 8 / 1.5e3, rel=1e-3)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['echo "no node x" >&2', "exit 2"], "ns-3: exit status 2: no node x"),
        (["exit 0"], "ns-3: recv: "),
        (['cd "$(dirname "$1")"', "touch recv send queue web"], "ns-3: the run ended before its time"),
        (["sleep 60"], "timed out"),
    ],
)
def test_a_run_that_lacks_something_is_no_run(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises((machine.Ns3Failed, form.Ns2Failed), match=said):
        fake(tmp_path, *lines).record(a_job(), 2)


def test_without_the_package_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Path:
        raise LbeError("ns-3: pip: no network")

    monkeypatch.setattr(package, "ensure", refuse)
    with pytest.raises(BackendError, match="no network"):
        make_backend("ns3").prepare(())


def test_a_figure_has_the_column_only_with_a_number_for_it() -> None:
    def row(ns3: float | None) -> coverage.Row:
        what, verdict = ("x", "tcp", {"other": "lp"}), ("shown", "", False)
        theirs = None if ns3 is None else summarise([ns3])
        return coverage.row_of(figure, what, 50.0, summarise([49.0, 51.0]), (None, None), verdict, ns3=theirs)

    figure = figures.Figure("tcp_lp", "Table I", "shows", experiment="lp_table1_paper")
    without = coverage.FigureVerdict(figure, [row(None)], "no bound", "default")
    assert "ns-3" not in tables.row_table(without)[0] and tables.of_ns3(without) == ""
    head, rows = tables.row_table(coverage.FigureVerdict(figure, [row(None), row(48.0)], "no bound", "default"))
    first, second = (line[head.index("ns-3")] for line in rows)
    assert first == "" and second.startswith("48.0")
    assert len({len(line) for line in rows} | {len(head)}) == 1


@pytest.mark.report
def test_ns3_itself(tmp_path: Path) -> None:
    """A NewReno of ns-3 fills a link, and its TcpLp takes a small part beside it."""
    backend = machine.Ns3()
    try:
        backend.prepare(())
    except BackendError as error:
        # without a network or a compiler one sentence says so
        assert str(error).startswith("ns-3: ")
        return
    one = load("lp_table1_paper")
    values = {}
    for other in ("alone", "lp"):
        case = {"traffic": "none", "other": other}
        setting = one.setting(case, "short")
        job = jobs.make(one.name, case, 1, setting)
        run = Run(backend.record(job, 300).series, setting, job.flows)
        values[other] = {name: run.value(metric) for name, metric in setting.metrics.items()}
    assert values["alone"]["tcp"] > 99
    assert values["lp"]["tcp"] > 80 and 1 < values["lp"]["other"] < 20
