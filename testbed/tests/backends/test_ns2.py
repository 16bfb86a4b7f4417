# SPDX-License-Identifier: GPL-2.0
"""ns-2 as a backend: its plans, reading its results, its refusals. ns is not run: a stored run's files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.backends.backend import BackendError
from testbed.backends.ns2 import machine, plan
from testbed.campaign import oracle
from testbed.commands.choose import make_backend
from testbed.measure.metrics import Run
from testbed.run import job as jobs
from testbed.spec.experiment import load, parse
from testbed.spec.tables import ExperimentError

SMALL = """
[experiment]
claim = "one flow and a square wave"
source = "made up"
duration_s = 2
measure_s = [1, 2]
sample_ms = 1000
[topology]
rate_mbit = 1.5
framing = "ip"
mtu = 1000
delay_ms = 20
timestamps = false
queue = { kind = "pfifo", packets = 22 }
[flow.tcp]
cc = "ns2_reno"
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
node = "rcv"
run = "ip route replace default via 10.0.2.1 quickack 1"
[metric.tcp]
kind = "share"
flow = "tcp"
[metric.queue]
kind = "queue_mean"
[metric.cwnd]
kind = "cwnd_mean"
flow = "tcp"
"""
#: the files that network.tcl writes for two seconds of SMALL; a packet has 1000 octets
STORED = {
    "recv": "0 1 0\n0 2 0\n1 1 60000\n1 2 10000\n2 1 160000\n2 2 20000\n",
    "send": "0 1 1 20 0 0\n1 1 12.5 20 110000 0\n2 1 14.5 20 130000 3\n",
    "queue": "0 1 0 0 0 0 0\n1 1 9 9000 0 70000 70\n2 1 12 12000 3 180000 180\n",
    "web": "",
}


def a_job(text: str = SMALL, **sets: object) -> jobs.Job:
    one = parse(text, Path("small.toml"))
    return jobs.make("small", {}, 1, one.setting({}, "default", {key.replace("__", "."): v for key, v in sets.items()}))


def stored(folder: Path, **changed: str) -> Path:
    for name, text in (STORED | changed).items():
        (folder / name).write_text(text, encoding="ascii")
    return folder


def line_of(job: jobs.Job, word: str) -> str:
    return next(line for line in plan.text(job).lines if line.startswith(word))


def test_a_plan_has_the_experiments_numbers() -> None:
    job = a_job()
    assert line_of(job, "bottleneck 1") == "bottleneck 1 rtr rtr2 1.5 20 DropTail {limit_ 23}"
    greedy = line_of(job, "greedy")
    assert greedy.startswith("greedy 1 snd rcv Reno {packetSize_ 960 ") and " minrto_ 1.0 " in greedy
    # `quickack 1` on the receiver's route: one ACK a packet
    assert " TCPSink " in greedy
    # 972 octets of payload make an IP packet of 1000
    assert line_of(job, "square") == "square 2 snd rcv 1000 0.5 1 0.5 10 0 2"


def test_a_chain_begins_with_the_first_link() -> None:
    """As on the other backends: `hops` lists the links after the first one."""
    text = SMALL.replace(
        "[flow.tcp]", 'hops = [{ rate_mbit = 5, delay_ms = 10 }]\nhosts = { mid = "rtr2" }\n[flow.tcp]'
    )
    lines = plan.text(a_job(text)).lines
    links = [line.split()[2:6] for line in lines if line.startswith("bottleneck")]
    assert links[::2] == [["rtr", "rtr2", "1.5", "20"], ["rtr2", "rtr3", "5", "10"]]
    assert [line.split()[1:3] for line in lines if line.startswith("host")] == [
        ["snd", "rtr"], ["rcv", "rtr3"], ["mid", "rtr2"],
    ]  # fmt: skip


def test_a_receiver_without_that_route_delays_its_acks() -> None:
    text = SMALL.replace(" quickack 1", "")
    assert " TCPSink/DelAck " in line_of(a_job(text), "greedy")
    sack = a_job(text, flow__tcp__cc="ns2_sack")
    assert " TCPSink/Sack1/DelAck " in line_of(sack, "greedy") and " Sack1 {" in line_of(sack, "greedy")


def test_the_least_time_out_comes_from_where_it_is_set() -> None:
    assert plan.rto_min_s(a_job(), "snd") == 1.0
    without = SMALL.replace("rto_min_ms = 1000", "")
    assert plan.rto_min_s(a_job(without), "snd") == plan.RTO_MIN_S
    route = without.replace(
        'node = "rcv"\nrun = "ip route replace default via 10.0.2.1 quickack 1"',
        'node = "snd"\nrun = "ip route replace default via 10.0.1.1 rto_min 700ms"',
    )
    assert plan.rto_min_s(a_job(route), "snd") == 0.7


@pytest.mark.parametrize(
    ("sets", "named"),
    [
        ({"flow__tcp__cc": "cubic"}, "cubic"),
        ({"flow__tcp__cc": "ns2_background"}, "ns2_background"),
        ({"topology__framing": "ethernet"}, "ethernet"),
        ({"topology__queue": {"kind": "tc", "packets": 20, "tc": "fq_codel"}}, "fq_codel"),
        ({"topology__loss_pct": 1.0}, "loss"),
    ],
)
def test_what_ns2_cannot_say_is_named(sets: dict[str, Any], named: str) -> None:
    with pytest.raises(plan.CannotSay, match=named):
        plan.text(a_job(**sets))


def test_red_of_a_shred_queue_without_its_hint() -> None:
    queue = "shred limit {limit_bytes} min 30000 max 90000 avpkt 1000 burst 190 probability 0.1 bandwidth 10mbit gentle"
    red = a_job(topology__queue={"kind": "tc", "bytes": 218750, "tc": f"{queue} hint off"})
    line = line_of(red, "bottleneck 1")
    assert "RED {limit_ 218 " in line and "thresh_ 30.0 maxthresh_ 90.0 linterm_ 10.0" in line
    with pytest.raises(plan.CannotSay):
        plan.text(a_job(topology__queue={"kind": "tc", "bytes": 218750, "tc": f"{queue} hint tos"}))


def test_a_stored_run_gives_the_metrics_that_a_kernels_gives(tmp_path: Path) -> None:
    job = a_job()
    run = Run(machine.series(job, stored(tmp_path)), job.setting, job.flows)
    values = {name: run.value(metric) for name, metric in job.setting.metrics.items()}
    # 100 kB of IP packets in the second second, on a link of 1.5 Mbit/s
    assert values["tcp"] == pytest.approx(100 * 0.8 / 1.5, rel=1e-3)
    assert values["cwnd"] == pytest.approx(13, abs=0.6)
    assert values["queue"] == pytest.approx((9000 + 12000) / 2 * 8 / 1.5e3, rel=1e-3)


def test_a_count_of_more_than_an_int_holds_goes_on(tmp_path: Path) -> None:
    """ns-2 counts octets in an int of 32 bits; 3000 s of 10 Mbit/s are more than 2^31 of them."""
    counts = {"1": [2147400000, 2147480000, -2147406296, -2147306296], "2": [0, 0, 500, 900]}
    rows = [f"{t} {flow} {counts[flow][t]}\n" for t in range(4) for flow in counts]
    got = machine.series(a_job(), stored(tmp_path, recv="".join(rows))).recv
    assert np.diff(got["bytes"][got["flow"] == 1] / 0.96).round(-2).tolist() == [80000, 81000, 100000]
    assert got["bytes"][got["flow"] == 2][-1] > 0 and (got["bytes"] < 2**32).all()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"queue": ""}, "before its time"),
        ({"recv": "0 1\n"}, "2 columns instead of 3"),
        ({"send": "0 1 x 20 0 0\n"}, "send"),
    ],
)
def test_a_run_that_lacks_something_is_no_run(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(machine.Ns2Failed, match=said):
        machine.series(a_job(), stored(tmp_path, **changed))


def test_a_trace_becomes_gaps_and_octets() -> None:
    one = load("lowpri_battery")
    case = next(case for case in one.cases() if case["test"] == "one_pre")
    job = jobs.make(one.name, case, 1, one.setting(case))
    flow = next(flow for flow in job.flows if flow.group == "pre")
    packets = np.frombuffer(plan.packets_of(job, flow, flow.start_s + 119.0).content(), dtype=">u4").reshape(-1, 2)
    assert packets[:, 0].sum() / 1e6 == pytest.approx(119, abs=0.5)
    assert packets[:, 1].sum() / 119 == pytest.approx(179533, rel=0.05)


def test_without_the_program_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BackendError, match="scripts/deps ns2"):
        make_backend("ns2").prepare(())


def test_words_of_the_command() -> None:
    assert oracle.wanted(["shred-table-1"]) == ["shred_tables_paper", "shred_tables"]
    assert {"shred_tables_paper", "lowpri_paper"} <= set(oracle.wanted([]))
    assert "lp_fig11_square" in oracle.wanted(["tcp_lp"])
    assert oracle.wanted([])[0] == oracle.SENDERS
    with pytest.raises(ExperimentError):
        oracle.wanted(["no_such"])
