# SPDX-License-Identifier: GPL-2.0
"""Metrics of series whose values are known, and statistics compared with tables."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from testbed.measure import metrics
from testbed.measure.metrics import Run, jain, sharing, variation
from testbed.measure.series import Series, longest_stall_s, rates
from testbed.measure.summary import summarise
from testbed.spec import traffic
from testbed.spec.metrics import KINDS, Metric, lacks
from testbed.spec.records import RECV
from testbed.tests.made import experiment, series

RATES = {1: 6.0, 2: 3.0}


def value(kind: str, made: Series | None = None, **keys: Any) -> float:
    one = experiment()
    setting = one.setting({"background": "polite"})
    return Run(made or series(RATES), setting, traffic.expand(setting.flows, 1)).value(Metric(kind, **keys))


CAPACITY = 10 * 1448 / 1538


@pytest.mark.parametrize(
    ("kind", "keys", "expected"),
    [
        ("goodput", {"flow": "be"}, 6.0),
        ("goodput", {"flow": "be+bg"}, 9.0),
        ("goodput", {}, 9.0),
        ("kbytes_s", {"flow": "be"}, 750.0),
        ("kibytes_s", {"flow": "be"}, 732.421875),
        ("share", {"flow": "be"}, 100 * 6 / CAPACITY),
        ("spare_use", {"flow": "bg"}, 100 * 3 / (CAPACITY - 6)),
        # the queue sent 8 of 10 Mbit/s: 20 % of the capacity is idle
        ("idle_use", {"flow": "bg"}, 100 * 3 / (3 + 0.2 * CAPACITY)),
        ("jain", {}, 81 / (2 * 45)),
        ("min_flow", {}, 3.0),
        ("max_flow", {}, 6.0),
        ("rtt_mean", {"flow": "be"}, 50.0),
        ("rtt_p95", {"flow": "be"}, 50.0),
        ("cwnd_mean", {"flow": "be"}, 10.0),
        ("cwnd_max", {"flow": "be"}, 10.0),
        ("queue_mean", {}, 1.0),
        ("queue_p95", {}, 1.0),
        ("queue_min", {}, 1.0),
        ("drops", {}, 10.0),
        ("retransmits", {"flow": "be"}, 20.0),
        ("link_use", {}, 80.0),
        ("longest_stall", {"flow": "be"}, 0.1),
        ("event_count", {"event": "start"}, 1.0),
        ("event_count", {"event": "error"}, 0.0),
    ],
)
def test_value(kind: str, keys: dict[str, Any], expected: float) -> None:
    assert value(kind, **keys) == pytest.approx(expected, rel=1e-3)


def ramps() -> Series:
    """Make series that grow with time, so that mean, end and percentile differ, as do different windows."""
    made = series({1: 6.0}, backlog_bytes=0)
    i = np.arange(len(made.send))  # a sample each 0.1 s
    made.send["srtt_us"], made.send["cwnd_pkts"] = 1000 * i, i
    made.send["retrans_pkts"] = made.queue["drops"] = made.queue["marks"] = i * i
    made.queue["backlog_bytes"], made.queue["sent_bytes"] = 1250 * i, 500 * i * i
    made.recv["bytes"] = 100 * i * i
    return made


@pytest.mark.parametrize(
    ("kind", "keys", "expected"),
    [
        # the window is 10 to 20 s: samples 100 to 200
        ("goodput", {"flow": "be"}, 100 * (200**2 - 100**2) * 8 / 10 / 1e6),
        ("rtt_mean", {"flow": "be"}, 150.0),
        ("rtt_p95", {"flow": "be"}, 195.0),
        ("cwnd_mean", {"flow": "be"}, 150.0),
        ("cwnd_max", {"flow": "be"}, 200.0),
        ("queue_mean", {}, 150.0),
        ("queue_p95", {}, 195.0),
        ("queue_min", {}, 100.0),
        ("drops", {}, 200**2 - 100**2),
        ("marks", {}, 200**2 - 100**2),
        ("retransmits", {"flow": "be"}, 200**2 - 100**2),
        ("link_use", {}, 100 * 500 * (200**2 - 100**2) * 8 / 10 / 10e6),
        # the metric's own window, 2 to 6 s: samples 20 to 60
        ("goodput", {"flow": "be", "from_s": 2, "to_s": 6}, 100 * (60**2 - 20**2) * 8 / 4 / 1e6),
        ("rtt_p95", {"flow": "be", "from_s": 2, "to_s": 6}, 58.0),
        ("cwnd_max", {"flow": "be", "from_s": 2, "to_s": 6}, 60.0),
        ("queue_p95", {"from_s": 2, "to_s": 6}, 58.0),
        ("drops", {"from_s": 2, "to_s": 6}, 60**2 - 20**2),
    ],
)
def test_value_of_what_varies(kind: str, keys: dict[str, Any], expected: float) -> None:
    assert value(kind, ramps(), **keys) == pytest.approx(expected, rel=1e-3)


def test_udp_counts_and_delays() -> None:
    made = series(RATES)
    received = "packets=90 stamped=90 delay_ns=450000000 p50_delay_ns=4000000 p95_delay_ns=9000000 p99_delay_ns=9500000"
    made.events = [(20.0, 1, "sent", "packets=100"), (20.0, 1, "received", received + " max_delay_ns=20000000")]
    expected = {"mean": 5.0, "p50": 4.0, "p95": 9.0, "p99": 9.5, "max": 20.0}
    assert value("udp_lost", made, flow="be") == 10
    for name, number in expected.items():
        assert value(f"udp_delay_{name}", made, flow="be") == pytest.approx(number), name


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("rtt_mean", {"flow": "be"}),
        ("queue_mean", {"queue": 7}),
        ("completion_s", {}),
        ("reap_s", {"flow": "be", "threshold": 100.0}),
    ],
)
def test_what_was_not_seen_is_not_zero(kind: str, keys: dict[str, Any]) -> None:
    empty = series(RATES)
    empty.send = empty.send[:0]
    assert math.isnan(value(kind, empty, **keys))


def step_series(change_s: float) -> Series:
    made = series({1: 0.0, 2: 3.0})
    rows = made.recv[made.recv["flow"] == 1]
    t = rows["t_ns"] / 1e9
    made.recv["bytes"][made.recv["flow"] == 1] = np.where(t < change_s, 0, (t - change_s) * 8e6 / 8)
    return made


def test_time_to_reap() -> None:
    # the rate is the mean of the last second: it reaches 4 of 8 Mbit/s half a second after the step
    assert value("reap_s", step_series(12.0), flow="be", at_s=10.0, threshold=4.0) == pytest.approx(2.5, abs=0.15)


def test_time_to_yield() -> None:
    made = series({1: 8.0, 2: 3.0})
    rows = made.recv["flow"] == 1
    t = made.recv["t_ns"][rows] / 1e9
    made.recv["bytes"][rows] = np.minimum(t, 13.0) * 1e6
    # 8 Mbit/s until 13 s; the mean of the last second is down to 4 Mbit/s once half of that second is silent
    assert value("yield_s", made, flow="be", at_s=10.0, threshold=4.0) == pytest.approx(3.5, abs=0.15)
    assert value("reap_s", made, flow="be", at_s=10.0, threshold=4.0) == pytest.approx(0, abs=0.15)


def test_a_stall_is_the_longest_time_without_a_byte() -> None:
    made = series({1: 1.0})
    t = made.recv["t_ns"] / 1e9
    made.recv["bytes"] = np.where(t < 12, t, np.where(t < 17.5, 12, t)) * 1000
    assert longest_stall_s(made, 1, 10, 20) == pytest.approx(5.6, abs=0.15)
    assert longest_stall_s(made, 9, 10, 20) == 10, "a flow that was never seen stalled all the time"


def test_rates_are_steps_of_the_counter() -> None:
    t, mbit = rates(series(RATES), 1, 1.0, 20.0)
    assert len(t) == 20 and t[0] == 0.5
    assert mbit == pytest.approx(np.full(20, 6.0), rel=1e-3)


def test_sharing_is_the_deviation_over_the_sum_and_variation_over_the_mean() -> None:
    # 1 and 3: deviation sqrt(2), sum 4, mean 2
    assert sharing([1, 3]) == pytest.approx(math.sqrt(2) / 4)
    assert variation([1, 3]) == pytest.approx(math.sqrt(2) / 2)
    # one of five has all: the greatest value of both
    assert sharing([1, 0, 0, 0, 0]) == pytest.approx(1 / math.sqrt(5))
    assert variation([1, 0, 0, 0, 0]) == pytest.approx(math.sqrt(5))
    assert math.isnan(variation([1])) and math.isnan(variation([0, 0]))


def test_jain() -> None:
    assert jain([1, 1, 1, 1]) == 1
    assert jain([1, 0, 0, 0]) == 0.25
    assert math.isnan(jain([0, 0]))


@pytest.mark.parametrize(
    ("values", "mean", "half"),
    [
        # t(0.975) of 1, 2, 4 and 40 degrees of freedom: 12.706, 4.303, 2.776 and (normal) 1.96
        ([1, 3], 2, 12.706 * math.sqrt(2) / math.sqrt(2)),
        ([1, 2, 3], 2, 4.303 / math.sqrt(3)),
        ([1, 2, 3, 4, 5], 3, 2.776 * math.sqrt(2.5) / math.sqrt(5)),
        ([0, 1] * 20 + [0.5], 0.5, 1.96 * float(np.std([0, 1] * 20 + [0.5], ddof=1)) / math.sqrt(41)),
    ],
)
def test_interval(values: list[float], mean: float, half: float) -> None:
    got = summarise(values)
    assert got.mean == pytest.approx(mean) and got.half == pytest.approx(half, rel=1e-3)


def test_one_run_has_no_interval_and_none_no_mean() -> None:
    assert math.isnan(summarise([5]).half) and summarise([5]).mean == 5
    assert summarise([math.nan]).n == 0 and math.isnan(summarise([]).mean)


def test_receiver_layout_is_the_agent_s() -> None:
    # agent/records.h: 24, 92 and 48 octets
    assert RECV.itemsize == 24
    assert series({1: 1.0}).send.dtype.itemsize == 92 and series({1: 1.0}).queue.dtype.itemsize == 48


def test_what_a_udp_flow_leaves_counts_its_own_headers() -> None:
    # on a link that counts IP packets, 6 Mbit/s in payloads of 972 octets with 28 of headers leave 3.827 of 10 Mbit/s
    sets = {
        "topology.framing": "ip",
        "flow.be.proto": "udp",
        "flow.be.kind": "cbr",
        "flow.be.rate_mbit": 6,
        "flow.be.pkt_bytes": 972,
    }
    setting = experiment().setting({"background": "polite"}, sets=sets)
    run = Run(series(RATES), setting, traffic.expand(setting.flows, 1))
    left = (10 - 6 * 1000 / 972) * 1448 / 1500
    assert run.value(Metric("spare_use", flow="bg")) == pytest.approx(100 * 3 / left, rel=1e-3)


def test_every_kind_has_a_function_a_unit_and_a_sentence() -> None:
    assert list(metrics.FUNCTIONS) and set(metrics.FUNCTIONS) == set(KINDS)
    for name, kind in KINDS.items():
        assert kind.text.endswith("."), name
        assert set(kind.needs) <= {field.name for field in dataclasses.fields(Metric)}, name


@pytest.mark.parametrize("name", ["no_such_kind", "goodput"])
def test_a_function_of_no_kind_and_a_second_one_are_refused(name: str) -> None:
    with pytest.raises(LookupError, match=name):
        metrics.computes(name)(lambda asked: 0.0)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.flows])
def test_a_group_without_flows_has_no_number(name: str) -> None:
    assert math.isnan(value(name, flow="nobody"))


def test_what_a_kind_needs_must_be_given() -> None:
    assert lacks(Metric("yield_s")) == ["threshold"] and not lacks(Metric("yield_s", threshold=0.0))
    assert lacks(Metric("event_count")) == ["event"] and not lacks(Metric("goodput"))
