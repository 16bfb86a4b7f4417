# SPDX-License-Identifier: GPL-2.0
"""Networks as lists of commands: which qdisc is on which device, and which parameters are refused."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.base.errors import LbeError
from testbed.spec.parameters import Hop, Queue, Tick, Topology, TopologyError
from testbed.spec.queues import queue_depth
from testbed.spec.tables import load_table
from testbed.spec.topology import PINNED_SYSCTLS, Network, build, difference


def tc(network: Network, node: str, words: str) -> list[str]:
    return [line for line in network.nodes[node].tc if words in line]


def test_ethernet_framing_lets_tcp_carry_9_41_of_10() -> None:
    # 1448 octets of payload in a frame of 1538 on the wire
    assert Topology().tcp_capacity_mbit() == pytest.approx(9.415, abs=0.001)
    assert Topology().frame_bytes == 1538
    assert "stab overhead 24" in tc(build(Topology()), "rtr", "tbf")[0]
    assert "stab overhead -14" in tc(build(Topology(framing="ip")), "rtr", "tbf")[0]
    assert "stab" not in tc(build(Topology(framing="link")), "rtr", "tbf")[0]


def test_delays_of_both_directions_make_the_base_round_trip() -> None:
    topology = Topology(delay_ms=20, access_delay_ms=2, processing_us=0)
    network = build(topology)
    assert topology.base_rtt_s == pytest.approx(0.048)
    assert "delay 24000.0us" in tc(network, "snd", "netem")[0]
    assert "delay 24000.0us" in tc(network, "rcv", "netem")[0]
    assert not tc(network, "rtr", "netem"), "each direction's delay is on one device"


def test_processing_time_is_a_packet_s_and_never_reorders() -> None:
    line = tc(build(Topology(rate_mbit=100)), "snd", "netem")[0]
    # 1538 octets at 100 Mbit/s take 123 us; netem's jitter is plus or minus its half; a rate keeps packets in order
    assert "61.5us" in line and "rate 100000000bit" in line
    assert "500.0us" in tc(build(Topology(rate_mbit=1)), "snd", "netem")[0], "at most 1 ms"


@pytest.mark.parametrize(
    ("queue", "packets", "size"),
    [
        (Queue(packets=86), 86, 86 * 1538),
        (Queue(bytes=10000), 6, 10000),
        # 10 Mbit/s * 100 ms = 125000 octets
        (Queue(bdp=2.5), 203, 312500),
        (Queue(bdp=0.001), 1, 1538),
    ],
)
def test_depth(queue: Queue, packets: int, size: int) -> None:
    assert queue_depth(Topology(delay_ms=48, access_delay_ms=1), queue, 10) == (packets, size)


@pytest.mark.parametrize("queue", [Queue(), Queue(packets=5, bdp=1.0)])
def test_depth_is_given_exactly_once(queue: Queue) -> None:
    with pytest.raises(TopologyError, match="exactly one of packets, bytes, bdp"):
        build(Topology(queue=queue))


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (Queue(kind="pfifo", packets=86), "pfifo limit 86"),
        (Queue(kind="bfifo", bytes=9000), "bfifo limit 9000"),
        (
            Queue(
                kind="red",
                packets=100,
                red_min_fraction=0.15,
                red_max_packets=20,
                red_probability=1.0,
                red_flags="ecn nodrop",
            ),
            "red limit 153800 min 23070 max 30760 avpkt 1538 burst 17 bandwidth 10000000bit probability 1.0 ecn nodrop",
        ),
        (Queue(kind="skbprio", packets=64), "skbprio limit 64"),
        (Queue(kind="tc", packets=200, tc="fq_codel limit {limit}"), "fq_codel limit 200"),
    ],
)
def test_queue_lines(queue: Queue, expected: str) -> None:
    network = build(Topology(queue=queue))
    assert any(line.endswith("parent 1:1 handle 10: " + expected) for line in network.nodes["rtr"].tc)
    assert [line for line in tc(network, "rtr", expected) if "dev west" in line], "the link is symmetric"
    for host in ("snd", "rcv"):
        assert not [line for line in network.nodes[host].tc if "netem" not in line], "no bottleneck on a host"


@pytest.mark.parametrize(
    "queue", [Queue(packets=64, kind="skbprio"), Queue(packets=64, kind="prio", shaper="htb")], ids=["skbprio", "prio"]
)
def test_what_cannot_look_at_its_next_packet_stands_below_htb(queue: Queue) -> None:
    network = build(Topology(queue=queue))
    assert not tc(network, "rtr", "tbf")
    shaper = "class add dev east parent 1: classid 1:1 htb rate 10000000bit burst 1 cburst 1"
    assert shaper in network.nodes["rtr"].tc
    changed = build(Topology(rate_mbit=4, queue=queue))
    assert "tc class change dev east parent 1: classid 1:1 htb rate 4000000bit burst 1 cburst 1" in [
        line for _, line in difference(network, changed)
    ]


def test_strict_priority_by_flow_serves_both_directions_of_it_last() -> None:
    network = build(Topology(queue=Queue(kind="prio", packets=10)), low_ports=[5002])
    for dev in ("east", "west"):
        filters = [line for line in tc(network, "rtr", "flower") if f"dev {dev}" in line]
        assert {("dst_port 5002" in line) for line in filters} == {True, False}
        assert all("classid 10:2" in line for line in filters)


def test_strict_priority_by_dscp() -> None:
    lines = tc(build(Topology(queue=Queue(kind="prio", packets=10, low="le"))), "rtr", "flower")
    assert [line for line in lines if "protocol ip " in line and "ip_tos 0x04/0xfc" in line]
    assert [line for line in lines if "protocol ipv6 " in line and "ip_tos 0x04/0xfc" in line]


def test_every_pinned_sysctl_has_its_reason_and_is_on_every_node() -> None:
    assert all(reason for _value, reason in PINNED_SYSCTLS.values())
    network = build(Topology())
    for node in network.nodes.values():
        assert PINNED_SYSCTLS.keys() <= node.sysctl.keys()
    assert network.nodes["rtr"].sysctl["net.ipv4.ip_forward"] == "1"
    assert "net.ipv4.ip_forward" not in network.nodes["snd"].sysctl


def test_switches() -> None:
    assert build(Topology(ecn=True)).nodes["snd"].sysctl["net.ipv4.tcp_ecn"] == "1"
    assert build(Topology(timestamps=False)).nodes["rcv"].sysctl["net.ipv4.tcp_timestamps"] == "0"
    assert not [line for line in build(Topology(offloads=True)).nodes["snd"].ip if "gso_max_segs" in line]
    network = build(Topology(), sysctl={"all": {"net.ipv4.tcp_sack": "0"}, "rcv": {"net.ipv4.tcp_ecn": 0}})
    assert network.nodes["snd"].sysctl["net.ipv4.tcp_sack"] == "0"
    assert network.nodes["rcv"].sysctl["net.ipv4.tcp_ecn"] == "0"


def test_small_packets_leave_ipv6_out() -> None:
    assert not [line for line in build(Topology(mtu=1000)).nodes["snd"].ip if "fd00" in line]
    assert [line for line in build(Topology()).nodes["snd"].ip if "fd00" in line]


def test_flows_with_delay_of_their_own() -> None:
    network = build(Topology(), extra_delay_ms={"snd": {1: 20.0, 2: 50.0}})
    assert len(tc(network, "snd", "netem")) == 3
    assert tc(network, "snd", "handle 2 fw")[0].endswith("classid 1:3")
    with pytest.raises(TopologyError, match="16 different values at one host, at most 15"):
        build(Topology(), extra_delay_ms={"snd": {mark: mark * 1.0 for mark in range(1, 17)}})


def test_clock_wraps_at_the_time_asked_for() -> None:
    network = build(Topology(tick={"rcv": Tick(tick_us=1000, wrap_at_s=30)}), zero_s=10)
    settings = network.nodes["rcv"].sysctl
    # at 40 s of uptime, 40000 ticks of 1 ms, the value is 2^32 = 0
    assert (int(settings["net.lbe_tick.offset_ticks"]) + 40000) % 2**32 == 0
    assert list(settings)[-1] == "net.lbe_tick.tick_us", "what switches the module on comes last"
    assert settings["net.ipv4.tcp_timestamps"] == "2"


def test_chain_has_a_queue_and_a_wire_for_each_link() -> None:
    network = build(Topology(hops=(Hop(rate_mbit=5, delay_ms=10), Hop()), hosts={"mid": "rtr2"}))
    assert [queue.node for queue in network.queues] == ["rtr", "rtr2", "rtr2", "rtr3", "rtr3", "rtr4"]
    assert set(network.addresses) == {"snd", "rcv", "mid"}
    assert all(f"w{wire}" in network.nodes for wire in (1, 2, 3))
    # each router and wire has a route to each host
    for name in ("rtr", "rtr2", "rtr3", "rtr4", "w1", "w2", "w3"):
        text = "\n".join(network.nodes[name].ip)
        known = sum(f"10.0.{subnet}.0/24" in text or f"10.0.{subnet}.1/24" in text for subnet in (1, 2, 3))
        assert known == 3, name


def test_senders_hang_at_the_first_router() -> None:
    network = build(Topology(senders=3))
    assert set(network.addresses) == {"snd", "rcv", "snd2", "snd3"}
    assert network.addresses["snd3"][4] == "10.0.4.2"
    assert tc(network, "snd3", "netem") == tc(network, "snd", "netem")
    assert "snd2" not in build(Topology()).nodes


def test_jitter_is_behind_the_bottleneck_and_without_a_rate() -> None:
    (line,) = tc(build(Topology(jitter_ms=4)), "w1", "dev east root")
    # netem's second number is a deviation in both directions: 44 to 52 ms
    assert "delay 48000.0us 4000.0us" in line and "rate" not in line
    (back,) = tc(build(Topology(jitter_ms=4)), "w1", "dev west root")
    assert back.endswith("delay 48000.0us")


def test_a_bottleneck_on_the_sender_s_own_device() -> None:
    network = build(Topology(bottleneck="sender"))
    assert "rate 10000000bit" in tc(network, "snd", "tbf")[0] and tc(network, "snd", "pfifo limit 86")
    assert "rate 100000000bit" in tc(network, "rtr", "dev east root")[0]
    assert (network.queues[0].node, network.queues[0].dev) == ("snd", "eth0")
    with pytest.raises(TopologyError, match="no flow of snd can have extra_delay_ms"):
        build(Topology(bottleneck="sender"), extra_delay_ms={"snd": {1: 5.0}})


def test_a_policer_drops_at_the_rate_and_queues_nothing() -> None:
    network = build(Topology(queue=Queue(kind="policer", packets=20)))
    (police,) = tc(network, "rtr", "dev east egress")
    assert f"rate 10000000bit burst {20 * 1538}" in police and "overhead 24" in police
    assert "rate 100000000bit" in tc(network, "rtr", "dev east root")[0]


def test_a_link_trace_takes_the_shaper_s_place_forward() -> None:
    network = build(Topology(link_trace="generate:wifi"))
    assert tc(network, "rtr", "dev east root") == [
        "qdisc add dev east root handle 1: stab overhead 24 linklayer ethernet lbe_link"
    ]
    assert "tbf" in tc(network, "rtr", "dev west root")[0]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"rate_mbit": 0}, "topology.rate_mbit = 0: allowed are 0.01 to 10000"),
        ({"delay_ms": -1}, "delay_ms = -1"),
        ({"loss_pct": 101}, "loss_pct = 101: allowed are 0 to 100"),
        ({"mtu": 100}, "mtu = 100"),
        ({"reverse_rate_mbit": 0}, "reverse_rate_mbit = 0: allowed are 0.01 to 10000"),
        ({"processing_us": -1}, "processing_us = -1: allowed are 0 to 1000000"),
        ({"queue": {"packets": 0}}, "topology.queue.packets = 0: allowed are 1 to 1000000"),
        ({"reverse_queue": {"bdp": -1}}, "reverse_queue.bdp = -1: allowed are 0.001 to 1000"),
        ({"queue": {"packets": 1, "low": "all"}}, "queue.low = 'all': allowed are flows, le"),
        ({"hops": [{"rate_mbit": -1}]}, r"topology.hops\[0\].rate_mbit = -1: allowed are 0.01 to 10000"),
        ({"framing": "atm"}, "framing = 'atm': allowed are ip, link, ethernet"),
        ({"queue": {"kind": "fifo", "packets": 1}}, "queue.kind = 'fifo': allowed are pfifo"),
        ({"senders": 0}, "senders = 0: allowed are 1 to 90"),
        ({"jitter_ms": 49}, "jitter_ms = 49: allowed are 0 to delay_ms = 48"),
        ({"bottleneck": "receiver"}, "bottleneck = 'receiver': allowed are router, sender"),
        (
            {"link_trace": "generate:wifi", "queue": {"kind": "policer", "packets": 9}},
            "link_trace: a queue of kind 'policer' has a rate of its own",
        ),
        ({"tick": {"rcv": {"tick_us": 0}}}, "topology.tick.rcv.tick_us = 0: allowed are 1 to 1000000"),
        ({"tick": {"you": {}}}, "tick.you: no such node; there are snd, rtr, rcv"),
        ({"hops": [{}], "hosts": {"x": "rtr9"}}, "hosts.x = 'rtr9': allowed are rtr, rtr2"),
    ],
)
def test_refusals_name_the_value_and_the_range(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(LbeError, match=message):
        build(load_table(Topology, keys, "topology"))


def test_a_change_in_mid_run_is_the_difference_of_two_networks() -> None:
    before, after = build(Topology()), build(Topology(delay_ms=98))
    commands = difference(before, after)
    assert [node for node, _ in commands] == ["snd", "rcv"]
    assert all(line.startswith("tc qdisc change dev") and "netem" in line for _, line in commands)
    assert difference(before, before) == []
    with pytest.raises(TopologyError, match="can change rates, delays"):
        difference(before, build(Topology(mtu=1400)))
