# SPDX-License-Identifier: GPL-2.0
"""Flows as lines of plans: numbers, ports, values that the seed determines, refused parameters."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.base.errors import LbeError
from testbed.spec.tables import load_table
from testbed.spec.topology import QueueHandle
from testbed.spec.traffic import FlowGroup, Plan, TrafficError, expand, extra_delays, low_ports, modules_of, plans

ADDRESSES = {"snd": {4: "10.0.1.2", 6: "fd00:1::2"}, "rcv": {4: "10.0.2.2", 6: "fd00:2::2"}}


def made(groups: dict[str, FlowGroup], seed: int = 1) -> list[Plan]:
    return plans(
        expand(groups, seed),
        ADDRESSES,
        [QueueHandle(1, "rtr", "east", "10:", "")],
        zero_ns=10,
        end_s=5,
        sample_ms=100,
        out="/out",
    )


def test_a_flow_has_a_sink_and_a_source_with_one_number() -> None:
    texts = {plan.node: plan.text() for plan in made({"a": FlowGroup(), "b": FlowGroup(cc="lp", family=6)})}
    assert "sink port=5002 flow=2 proto=tcp mode=prompt" in texts["rcv"]
    assert "flow id=2 kind=greedy to=fd00:2::2 port=5002 proto=tcp cc=lp start_s=0" in texts["snd"]
    assert "queue id=1 dev=east handle=10:" in texts["rtr"]
    assert all(
        text.startswith(f"node {node}\nzero_ns 10\nend_s 5\nsample_ms 100\nout /out\n") for node, text in texts.items()
    )


def test_seed_shifts_starts_within_the_spread_and_nothing_else() -> None:
    group = FlowGroup(count=3, start_s=5, start_spread_s=2, stagger_s=10)
    first, again, other = (expand({"a": group}, seed) for seed in (1, 1, 2))
    assert first == again
    assert [flow.start_s for flow in first] != [flow.start_s for flow in other]
    for index, flow in enumerate(first):
        assert 5 + 10 * index <= flow.start_s <= 7 + 10 * index


def test_a_group_s_choices_do_not_hang_on_other_groups() -> None:
    alone = expand({"b": FlowGroup(start_spread_s=1)}, 1)
    beside = expand({"a": FlowGroup(count=4), "b": FlowGroup(start_spread_s=1)}, 1)
    assert alone[0].start_s == beside[-1].start_s


def test_reverse_flows_and_options() -> None:
    texts = {
        plan.node: plan.text()
        for plan in made(
            {"r": FlowGroup(source="rcv", to="snd", options={"nodelay": 1}, sink_options={"lowat": 1}, verify=True)}
        )
    }
    assert "to=10.0.1.2" in texts["rcv"] and "nodelay=1" in texts["rcv"] and "verify=1" in texts["rcv"]
    assert "lowat=1" in texts["snd"] and "seed=" in texts["snd"]


def test_low_ports_and_marks() -> None:
    flows = expand(
        {"a": FlowGroup(), "b": FlowGroup(low=True, extra_delay_ms=20), "c": FlowGroup(extra_delay_ms=20)}, 1
    )
    assert low_ports(flows) == [5002]
    assert [flow.mark for flow in flows] == [0, 1, 1]
    assert extra_delays(flows) == {"snd": {1: 20}}


def test_modules() -> None:
    groups = {
        "a": FlowGroup(),
        "b": FlowGroup(cc="lp_ecn"),
        "c": FlowGroup(cc="lowpri3.7"),
        "d": FlowGroup(cc="bbr", count=0),
    }
    assert modules_of(groups) == ["tcp_lowpri", "tcp_lp"]
    with pytest.raises(TrafficError, match="both are named"):
        modules_of({"a": FlowGroup(cc="lp"), "b": FlowGroup(cc="lp_intree")})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"kind": "fast"}, "flow.x.kind = 'fast': allowed are greedy"),
        ({"proto": "sctp"}, "allowed are tcp, udp"),
        ({"family": 5}, "allowed are 4, 6"),
        ({"cc": "quick"}, "cc 'quick': known are cubic"),
        ({"kind": "cbr"}, "needs rate_mbit"),
        ({"kind": "square", "rate_mbit": 1.0}, "needs period_s"),
        ({"kind": "onoff", "rate_mbit": 1.0}, "needs on_s"),
        ({"kind": "bytes"}, "needs bytes"),
        ({"kind": "trace", "proto": "udp"}, "needs file"),
        ({"proto": "udp"}, "a greedy flow over UDP has no rate"),
        ({"count": 20001}, "flow.x.count = 20001: allowed are 0 to 20000"),
        ({"kind": "cbr", "rate_mbit": -1.0}, "flow.x.rate_mbit = -1: allowed are 1e-06 to 1000000"),
        ({"start_s": -1.0}, "flow.x.start_s = -1: allowed are 0 to 1000000"),
        ({"dscp": 64}, "flow.x.dscp = 64: allowed are 0 to 63"),
        ({"extra_delay_ms": -1.0}, "flow.x.extra_delay_ms = -1: allowed are 0 to 10000"),
        ({"start_s": 5.0, "stop_s": 4.0}, "must be after start_s = 5"),
        ({"to": "moon"}, "hosts are snd, rcv"),
    ],
)
def test_refusals(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(LbeError, match=message):
        made({"x": load_table(FlowGroup, keys, "flow.x")})
