# SPDX-License-Identifier: GPL-2.0
"""Every kind of network on the real kernel behaves as its parameters say."""

from __future__ import annotations

import math

import pytest

from testbed.backends.uml import Uml
from testbed.results.files import Result
from testbed.run.runner import Options, plan, run
from testbed.spec.experiment import load

pytestmark = pytest.mark.scenario

NETWORKS = """
[experiment]
claim = "each network does what its parameters say"
source = "the kernel's own qdiscs"
duration_s = 25
measure_s = [10, 25]
runs = 1
[topology]
queue = { kind = "pfifo", packets = 86 }
[flow.a]
[flow.b]
low = true
[vary.network]
pfifo = {}
prio = { "topology.queue" = { kind = "prio", packets = 86 } }
skbprio = { "topology.queue" = { kind = "skbprio", packets = 64 } }
skbprio_le = { "topology.queue" = { kind = "skbprio", packets = 64, low = "le" }, "flow.b.dscp" = 1 }
fq_codel = { "topology.queue" = { kind = "tc", packets = 200, tc = "fq_codel limit {limit}" } }
lossy = { "topology.loss_pct" = 5.0, "flow.b.count" = 0 }
offloads = { "topology.offloads" = true }
[vary.network.red]
"topology.queue" = { kind = "red", packets = 86, red_min_packets = 10, red_max_packets = 30, red_flags = "ecn" }
"topology.ecn" = true
[vary.network.prio_le]
"topology.queue" = { kind = "prio", packets = 86, low = "le" }
"flow.b.dscp" = 1
"flow.b.low" = false
[vary.network.prio_le_v6]
"topology.queue" = { kind = "prio", packets = 86, low = "le" }
"flow.b.dscp" = 1
"flow.a.family" = 6
"flow.b.family" = 6
[vary.network.chain]
"topology.hops" = [
    { rate_mbit = 5, delay_ms = 10, queue = { packets = 50 } },
    { rate_mbit = 20, delay_ms = 5 },
]
"topology.hosts" = { mid = "rtr2" }
"flow.b.source" = "mid"
[vary.network.far]
"flow.b.extra_delay_ms" = 100
"flow.a.kind" = "cbr"
"flow.a.rate_mbit" = 2
"flow.b.kind" = "cbr"
"flow.b.rate_mbit" = 2
[vary.network.senders]
"topology.senders" = 3
"topology.queue.packets" = 300
"flow.a.source" = "each"
"flow.a.count" = 3
"flow.b.count" = 0
[vary.network.wifi]
"topology.link_trace" = "generate:wifi mbit=10"
[vary.network.pauses]
"topology.link_trace" = "generate:pauses mbit=10 every_s=5 pause_ms=500"
"flow.b.count" = 0
"flow.a.kind" = "cbr"
"flow.a.proto" = "udp"
"flow.a.rate_mbit" = 2
[vary.network.jitter]
"topology.jitter_ms" = 10
"flow.a.kind" = "cbr"
"flow.a.proto" = "udp"
"flow.a.rate_mbit" = 2
"flow.b.count" = 0
[vary.network.own_device]
"topology.bottleneck" = "sender"
"flow.b.source" = "rcv"
"flow.b.to" = "snd"
[vary.network.policer]
"topology.queue" = { kind = "policer", packets = 30 }
[[event]]
at_s = 5
case = { network = ["pfifo", "skbprio"] }
set = { "topology.rate_mbit" = 4 }
[metric.a]
kind = "goodput"
flow = "a"
[metric.b]
kind = "goodput"
flow = "b"
[metric.a_rtt]
kind = "rtt_mean"
flow = "a"
[metric.b_rtt]
kind = "rtt_mean"
flow = "b"
[metric.drops]
kind = "drops"
[metric.marks]
kind = "marks"
[metric.queue]
kind = "queue_mean"
[metric.a_least]
kind = "min_flow"
flow = "a"
[metric.delay_p50]
kind = "udp_delay_p50"
flow = "a"
[metric.delay_p99]
kind = "udp_delay_p99"
flow = "a"
[metric.delay_max]
kind = "udp_delay_max"
flow = "a"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    path = tmp_path_factory.mktemp("networks") / "networks.toml"
    path.write_text(NETWORKS)
    one, options = load(str(path)), Options(command="pytest")
    backend = Uml()
    backend.prepare({module for job in plan(one, options) for module in job.modules})
    return {result.case["network"]: result for result in run(one, backend, options, lambda *_: None).results}


@pytest.mark.parametrize("network", ["pfifo", "skbprio"])
def test_an_event_changes_the_rate(results: dict[str, Result], network: str) -> None:
    metrics = results[network].metrics
    # 4 Mbit/s on the wire carry 3.77 Mbit/s of payload
    assert metrics["a"] + metrics["b"] == pytest.approx(4 * 1448 / 1538, rel=0.01)


def test_red_marks_instead_of_dropping(results: dict[str, Result]) -> None:
    metrics = results["red"].metrics
    assert metrics["marks"] > 10 and metrics["drops"] == 0
    assert metrics["queue"] < 30 * 1.23
    assert metrics["a"] + metrics["b"] > 8.5


@pytest.mark.parametrize("network", ["prio", "prio_le", "prio_le_v6", "skbprio", "skbprio_le"])
def test_low_traffic_is_served_last(results: dict[str, Result], network: str) -> None:
    metrics = results[network].metrics
    # with skbprio an event lowers the rate from 10 to 4 Mbit/s
    assert metrics["a"] > (3.7 if network == "skbprio" else 9.2) and metrics["b"] < 0.2, metrics


def test_any_tc_line(results: dict[str, Result]) -> None:
    metrics = results["fq_codel"].metrics
    # fq_codel serves both equally; the difference is that one may have a loss more: some round trips at 70 %
    assert metrics["a"] == pytest.approx(metrics["b"], rel=0.1)
    assert metrics["queue"] < 40


def test_a_flow_s_own_delay(results: dict[str, Result]) -> None:
    metrics = results["far"].metrics
    assert metrics["a"] == pytest.approx(2, rel=0.02) and metrics["b"] == pytest.approx(2, rel=0.02)
    assert metrics["b_rtt"] - metrics["a_rtt"] == pytest.approx(100, abs=5)


def test_random_loss_is_what_was_asked_for(results: dict[str, Result]) -> None:
    netem = next(one for one in results["lossy"].facts["qdiscs"]["snd"] if one["kind"] == "netem")
    packets = netem["drops"] + netem["packets"]
    # within three standard deviations for this number of packets; each kernel draws other random numbers
    assert netem["drops"] / packets == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / packets)), netem
    assert results["lossy"].metrics["a"] < 3


def test_offloads_cost_the_framing(results: dict[str, Result]) -> None:
    metrics = results["offloads"].metrics
    # tbf segments a GSO packet into frames of 1514 octets and does not count the 24 octets of framing of each
    assert metrics["a"] + metrics["b"] == pytest.approx(10 * 1448 / 1514, abs=0.02)


def test_a_chain_shares_its_narrowest_link(results: dict[str, Result]) -> None:
    metrics = results["chain"].metrics
    assert metrics["a"] + metrics["b"] == pytest.approx(5 * 1448 / 1538, rel=0.01)
    # the path of a takes 2 * (48 + 10 + 5 + 2) ms; b enters after the first link
    assert 130 < metrics["a_rtt"] < 130 + 320
    assert 34 < metrics["b_rtt"] < metrics["a_rtt"]


def test_each_sender_has_a_flow(results: dict[str, Result]) -> None:
    metrics = results["senders"].metrics
    assert metrics["a"] == pytest.approx(10 * 1448 / 1538, rel=0.02) and metrics["a_least"] > 0.5
    for host in ("snd", "snd2", "snd3"):
        assert results["senders"].facts["counters"][host]["Tcp.OutSegs"] > 1000, host


def test_aggregates_carry_the_link_s_rate(results: dict[str, Result]) -> None:
    metrics = results["wifi"].metrics
    assert metrics["a"] + metrics["b"] == pytest.approx(10 * 1448 / 1538, rel=0.01)


def test_a_link_that_pauses_holds_packets_back(results: dict[str, Result]) -> None:
    metrics = results["pauses"].metrics
    # a pause of 500 ms in each 5 s, then the backlog leaves at 10 Mbit/s: one packet in eight waits
    assert metrics["delay_p50"] < 52 and metrics["delay_max"] == pytest.approx(550, abs=5)
    assert 300 < metrics["delay_p99"] < metrics["delay_max"]


def test_jitter_spreads_delays_both_ways(results: dict[str, Result]) -> None:
    metrics = results["jitter"].metrics
    assert metrics["delay_max"] - metrics["delay_p50"] == pytest.approx(10, abs=1)
    assert metrics["delay_p99"] - metrics["delay_p50"] == pytest.approx(9.8, abs=1)


def test_the_sender_s_own_device_is_the_limit(results: dict[str, Result]) -> None:
    metrics = results["own_device"].metrics
    assert metrics["a"] == pytest.approx(10 * 1448 / 1538, rel=0.06), "the ACKs of b take the rest"
    # TSQ keeps the queue of a host's own device shorter than a router's
    assert 1 < metrics["queue"] < 30


def test_a_policer_drops_and_delays_nothing(results: dict[str, Result]) -> None:
    metrics = results["policer"].metrics
    assert 7 < metrics["a"] + metrics["b"] <= 10 * 1448 / 1538 * 1.01
    assert metrics["queue"] < 0.1 and metrics["a_rtt"] < 106


def test_what_was_set_up_is_what_the_kernel_shows(results: dict[str, Result]) -> None:
    for name, result in results.items():
        kinds = {one["kind"] for one in result.facts["qdiscs"]["rtr"]}
        link = {"skbprio": "htb", "skbprio_le": "htb", "wifi": "lbe_link", "pauses": "lbe_link"}.get(name, "tbf")
        assert link in kinds, name
        assert result.facts["sysctls"]["snd"]["net.ipv4.tcp_no_metrics_save"] == "1"
        assert result.facts["uname"].startswith("Linux ")
