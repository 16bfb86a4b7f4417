# SPDX-License-Identifier: GPL-2.0
"""Web traffic in the harness: lines of plans, metrics of made-up records, records kept in results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from testbed.measure.metrics import Run, family_lost_pct
from testbed.results import files as results
from testbed.run.job import make
from testbed.spec import records, traffic
from testbed.spec.experiment import Setting
from testbed.spec.metrics import Metric
from testbed.spec.traffic import FlowGroup, TrafficError, expand, plans
from testbed.tests.made import experiment, series

WEB = """
[experiment]
claim = "made up"
source = "made up"
duration_s = 20
measure_s = [10, 20]
[flow.web]
kind = "web"
rate_mbit = 7
objects = 8
stop_s = 18
options = { maxseg = 960 }
server_options = { lowat = 100000 }
[flow.users]
kind = "session"
sessions = 50
family = 6
[flow.ftp]
kind = "greedy"
"""


def setting() -> Setting:
    return experiment(WEB).setting({})


def test_server_at_the_source_and_clients_at_the_receiver() -> None:
    flows = expand(setting().flows, 1)
    addresses = {"snd": {4: "10.0.1.2", 6: "fd00:1::2"}, "rcv": {4: "10.0.2.2", 6: "fd00:2::2"}}
    made = plans(flows, addresses, [], zero_ns=0, end_s=20, sample_ms=100, out="/tmp/out")
    rcv, snd = (plan.lines[5:] for plan in made)
    assert snd[0] == "server cc=cubic port=5001 flow=1 lowat=100000"
    assert rcv[0] == (
        "web start_s=0 stop_s=18 rate_bps=7000000 id=1 kind=open to=10.0.1.2 port=5001 objects=8 "
        f"seed={flows[0].seed} maxseg=960"
    )
    assert snd[1].startswith("server cc=cubic port=5002") and "to=fd00:1::2 port=5002 sessions=50" in rcv[1]
    assert snd[2].startswith("flow id=3") and rcv[2].startswith("sink port=5003")


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"kind": "web"}, "rate_mbit"),
        ({"kind": "session"}, "sessions"),
        ({"kind": "web", "rate_mbit": 1.0, "proto": "udp"}, "proto = 'udp'"),
    ],
)
def test_refused(keys: dict[str, Any], named: str) -> None:
    with pytest.raises(TrafficError, match=named):
        expand({"web": FlowGroup(**keys)}, 1)


def test_machine_limits_only_with_web_traffic() -> None:
    """tcp_mem is a setting of the whole machine; only a job with web traffic sets it."""
    assert "tcp_mem" in make("x", {}, 1, setting()).files["host.sysctl"]
    assert "tcp_mem" not in make("x", {}, 1, experiment().setting({"background": "polite"})).files["host.sysctl"]


#: (began_s, took_s, flags, flow); all of flow 1 but the last
ROWS = [
    (9.0, 9.0, 0, 1),  # before the window
    (10.0, 0.2, 0, 1),
    (11.0, 0.4, records.SYN_RETRANS, 1),
    (12.0, 1.2, 0, 1),
    (13.0, 5.0, records.FAILED, 1),
    (19.0, 1.0, records.UNFINISHED, 1),
    (12.0, 2.0, records.PAGE, 1),
    (13.0, 4.0, records.PAGE | records.SYN_RETRANS, 1),
    (12.0, 7.0, 0, 2),
]


def rows() -> np.ndarray:
    made = np.zeros(len(ROWS), dtype=records.WEB)
    for row, (began, took, flags, flow) in zip(made, ROWS):
        row["t_ns"], row["dur_us"], row["flags"], row["flow"] = began * 1e9, took * 1e6, flags, flow
    return made


def measured(kind: str, flow: str) -> float:
    """Return a metric of ROWS in the window of 10 to 20 s."""
    made = series({1: 1.0})
    made.web = rows()
    return Run(made, setting(), expand(setting().flows, 1)).value(Metric(kind, flow=flow, threshold=0.5))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("object_s", 0.6),
        ("object_p50_s", 0.4),
        ("object_p95_s", 1.12),
        ("object_within", 40.0),
        # of five objects, of which two never end: 0.5 s less 0.2, less 0.4, and 0 for one of 1.2
        ("object_area", 0.08),
        ("objects", 3),
        ("page_s", 3.0),
        ("page_p50_s", 3.0),
        ("page_p95_s", 3.9),
        ("pages", 2),
        ("web_failed", 1),
        ("web_unfinished", 1),
        ("syn_lost", 1),
    ],
)
def test_value(kind: str, expected: float) -> None:
    assert measured(kind, "web") == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["object_s", "object_p95_s", "object_within", "object_area", "page_s", "page_p95_s"])
def test_no_object_has_no_time(kind: str) -> None:
    assert math.isnan(measured(kind, "ftp"))


def test_losses_of_a_family() -> None:
    counters = {"snd": {"Ip.OutRequests": 1000}, "rcv": {"Ip.InReceives": 950}}
    assert family_lost_pct(counters, "snd", "rcv") == pytest.approx(5.0)
    assert math.isnan(family_lost_pct({}, "snd", "rcv"))


def test_classes_of_hints_are_of_the_queue_s_own_device() -> None:
    made = [
        {"kind": "shred", "dev": dev, "classes": [{"hint": "1", "packets": packets, "drops": 2}]}
        for dev, packets in (("west", 99), ("east", 10))
    ]
    run = Run(series({1: 1.0}), setting(), expand(setting().flows, 1), {"qdiscs": {"rtr": [{"kind": "tbf"}, *made]}})
    assert run.value(Metric("hint_packets", hint="1")) == 10 and run.value(Metric("hint_drops", hint="1")) == 2
    assert run.value(Metric("hint_packets", hint="1", queue=2)) == 99
    assert math.isnan(run.value(Metric("hint_drops", hint="2-3")))
    assert math.isnan(run.value(Metric("hint_drops", hint="1", queue=7)))


def test_records_survive_the_cache() -> None:
    made = series({1: 1.0})
    made.web = rows()
    again = results.unpack(results.pack(made))
    assert (again.web == made.web).all()
    assert results.series_bytes(again) == results.series_bytes(made)


def test_runs_without_web_traffic_are_as_before() -> None:
    assert "web" not in results.pack(series({1: 1.0}))
    assert len(results.unpack(results.pack(series({1: 1.0}))).web) == 0


def test_modules_of_servers() -> None:
    assert traffic.modules_of({"web": FlowGroup(kind="web", rate_mbit=1.0, cc="lp")}) == ["tcp_lp"]
