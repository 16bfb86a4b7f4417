# SPDX-License-Identifier: GPL-2.0
"""Numbers out of a run's series, and their mean and interval over runs.

Every metric is a function of :class:`Series` (what the agents recorded) and of the run's setting.
A metric that cannot be computed (no sample, no such event) is NaN, never zero.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..spec import web as web_traffic
from ..spec.experiment import FLOW_KINDS, Metric, Setting
from ..spec.records import WEB
from ..spec.traffic import Flow
from . import web

#: what each kind of metric is measured in
UNITS = {
    "goodput": "Mbit/s",
    "share": "%",
    "spare_use": "%",
    "idle_use": "%",
    "active_share": "%",
    "gap_use": "%",
    "jain": "",
    "min_flow": "Mbit/s",
    "max_flow": "Mbit/s",
    "rtt_mean": "ms",
    "rtt_p95": "ms",
    "queue_mean": "ms",
    "queue_p95": "ms",
    "queue_min": "ms",
    "drops": "packets",
    "marks": "packets",
    "retransmits": "packets",
    "cwnd_mean": "packets",
    "cwnd_max": "packets",
    "yield_s": "s",
    "reap_s": "s",
    "longest_stall": "s",
    "completion_s": "s",
    "event_count": "",
    "link_use": "%",
    "kbytes_s": "kB/s",
    "kibytes_s": "KiB/s",
    "sharing": "",
    "variation": "",
    "udp_lost": "packets",
    "udp_delay_mean": "ms",
    "udp_delay_p50": "ms",
    "udp_delay_p95": "ms",
    "udp_delay_p99": "ms",
    "udp_delay_max": "ms",
    "object_s": "s",
    "object_p50_s": "s",
    "object_p95_s": "s",
    "object_within": "%",
    "page_s": "s",
    "page_p50_s": "s",
    "page_p95_s": "s",
    "objects": "",
    "pages": "",
    "web_failed": "objects",
    "web_unfinished": "objects",
    "syn_lost": "objects",
    "family_lost": "%",
    "kernel_count": "",
    "hint_packets": "packets",
    "hint_drops": "packets",
}

#: two-sided 95 % quantile of Student's t for 1 to 30 degrees of freedom; beyond: the normal's
T_95 = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
    2.120,
    2.110,
    2.101,
    2.093,
    2.086,
    2.080,
    2.074,
    2.069,
    2.064,
    2.060,
    2.056,
    2.052,
    2.048,
    2.045,
    2.042,
)


#: a flow pauses when nothing of it arrives for this many steps (0.3 s: above any round trip here)
PAUSE_STEP_S = 0.1
PAUSE_STEPS = 3


@dataclass
class Series:
    """What one run recorded; events are (t_s, flow, event, detail)."""

    send: np.ndarray
    recv: np.ndarray
    queue: np.ndarray
    events: list[tuple[float, int, str, str]] = field(default_factory=list)
    web: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=WEB))

    def received(self, flow: int) -> tuple[np.ndarray, np.ndarray]:
        """(seconds, bytes so far) of a flow at its receiver."""
        rows = self.recv[self.recv["flow"] == flow]
        return rows["t_ns"] / 1e9, rows["bytes"].astype(float)

    def sent(self, flow: int) -> np.ndarray:
        """Sender's samples of a flow."""
        return self.send[self.send["flow"] == flow]


def bytes_between(series: Series, flow: int, from_s: float, to_s: float) -> float:
    """Payload received in a window, bytes; linear between samples."""
    t, total = series.received(flow)
    if len(t) == 0:
        return 0.0
    low, high = np.interp([from_s, to_s], t, total, left=0.0)
    return float(high - low)


def goodput_mbit(series: Series, flows: list[int], from_s: float, to_s: float) -> float:
    """Payload rate of flows together, Mbit/s."""
    return sum(bytes_between(series, flow, from_s, to_s) for flow in flows) * 8 / (to_s - from_s) / 1e6


def jain(values: list[float]) -> float:
    """Jain's fairness index, 1/n to 1; NaN if nobody got anything."""
    total, squares = sum(values), sum(value * value for value in values)
    return total * total / (len(values) * squares) if squares else math.nan


def sharing(values: list[float]) -> float:
    """Equation (1) of the paper on filler traffic: deviation of the flows over their sum, 0 = equal shares."""
    total = sum(values)
    return float(np.std(values, ddof=1)) / total if len(values) > 1 and total else math.nan


def variation(values: list[float]) -> float:
    """Coefficient of variation, deviation over mean; what that paper's tables hold (Documentation/tcp_lowpri.md)."""
    return sharing(values) * len(values)


def rates(series: Series, flow: int, step_s: float, duration_s: float) -> tuple[np.ndarray, np.ndarray]:
    """(middle of step, Mbit/s) of a flow in steps of ``step_s``."""
    edges = np.arange(0, duration_s + step_s / 2, step_s)
    t, total = series.received(flow)
    if len(t) == 0:
        return edges[:-1] + step_s / 2, np.zeros(len(edges) - 1)
    return edges[:-1] + step_s / 2, np.diff(np.interp(edges, t, total, left=0.0)) * 8 / step_s / 1e6


def longest_stall_s(series: Series, flow: int, from_s: float, to_s: float) -> float:
    """The longest time in the window in which a flow's receiver got nothing, seconds."""
    t, total = series.received(flow)
    inside = (t >= from_s) & (t <= to_s)
    t, total = t[inside], total[inside]
    if len(t) == 0:
        return to_s - from_s
    grew = t[1:][np.diff(total) > 0]
    return float(np.max(np.diff(np.concatenate([[from_s], grew, [to_s]]))))


def first_time(t: np.ndarray, values: np.ndarray, at_s: float, reached: np.ndarray) -> float:
    """Seconds after ``at_s`` until ``reached`` first holds."""
    after = (t >= at_s) & reached
    return float(t[after][0] - at_s) if after.any() else math.nan


def bridged(active: np.ndarray, steps: int) -> np.ndarray:
    """The same, with gaps of fewer than ``steps`` counted as active."""
    out = active.copy()
    for first, then in itertools.pairwise(np.flatnonzero(active)):
        if then - first <= steps:
            out[first:then] = True
    return out


class Run:
    """Computes the metrics of one run."""

    def __init__(self, series: Series, setting: Setting, flows: list[Flow], facts: dict[str, Any] | None = None):
        self.series, self.setting, self.flows, self.facts = series, setting, flows, facts or {}

    def ids(self, groups: str) -> list[int]:
        """Flow numbers of groups joined by +; empty string: all flows."""
        wanted = groups.split("+") if groups else list(self.setting.flows)
        return [flow.id for flow in self.flows if flow.group in wanted]

    def _samples(self, metric: Metric, from_s: float, to_s: float) -> np.ndarray:
        rows = self.series.send
        if len(rows) == 0:
            return rows
        t = rows["t_ns"] / 1e9
        return rows[np.isin(rows["flow"], self.ids(metric.flow)) & (t >= from_s) & (t <= to_s)]

    def _growth(self, rows: np.ndarray, column: str, key: str, ids: list[int], from_s: float, to_s: float) -> float:
        """How much a counter grew in the window, summed over ids."""
        total = 0.0
        for one in ids:
            mine = rows[rows[key] == one]
            if len(mine):
                low, high = np.interp([from_s, to_s], mine["t_ns"] / 1e9, mine[column].astype(float), left=0.0)
                total += high - low
        return float(total)

    def value(self, metric: Metric) -> float:
        """One metric's number, NaN if the run has nothing to compute it from."""
        head, topology = self.setting.head, self.setting.topology
        from_s = head.measure_s[0] if metric.from_s is None else metric.from_s
        to_s = head.measure_s[1] if metric.to_s is None else metric.to_s
        ids = self.ids(metric.flow)
        each = [goodput_mbit(self.series, [flow], from_s, to_s) for flow in ids]
        goodput = sum(each)
        capacity = topology.tcp_capacity_mbit()
        kind = metric.kind
        if kind in FLOW_KINDS and not ids:
            return math.nan
        if kind == "goodput":
            return goodput
        if kind == "kbytes_s":
            return goodput * 125
        if kind == "kibytes_s":
            return goodput * 125e3 / 1024
        if kind == "sharing":
            return sharing(each)
        if kind == "variation":
            return variation(each)
        if kind == "share":
            return 100 * goodput / capacity
        if kind == "spare_use":
            # what the others of its direction left, in TCP's payload; the group itself does not count
            others = [flow for flow in self.flows if flow.id not in ids and flow.spec.to == self._target(ids)]
            taken = sum(self._on_link(flow, from_s, to_s) for flow in others)
            spare = capacity * (1 - taken / topology.rate_mbit)
            return 100 * goodput / spare if spare > 0 else math.nan
        if kind == "idle_use":
            # of what the link would not have carried without the group: ACKs of reverse flows count as used
            used = self._growth(self.series.queue, "sent_bytes", "queue", [metric.queue], from_s, to_s)
            idle = max(0.0, 1 - used * 8 / (to_s - from_s) / (topology.rate_mbit * 1e6)) * capacity
            return 100 * goodput / (goodput + idle) if goodput + idle else math.nan
        if kind in ("active_share", "gap_use"):
            return self._pauses(ids, kind, from_s, to_s)
        if kind == "jain":
            return jain(each)
        if kind == "min_flow":
            return min(each)
        if kind == "max_flow":
            return max(each)
        if kind in ("rtt_mean", "rtt_p95", "cwnd_mean", "cwnd_max"):
            column = "srtt_us" if kind.startswith("rtt") else "cwnd_pkts"
            values = self._samples(metric, from_s, to_s)[column].astype(float)
            values = values[values > 0]
            if len(values) == 0:
                return math.nan
            if kind == "rtt_p95":
                return float(np.percentile(values, 95)) / 1e3
            if kind == "cwnd_max":
                return float(values.max())
            return float(values.mean()) / (1e3 if kind == "rtt_mean" else 1)
        if kind in ("queue_mean", "queue_p95", "queue_min"):
            return self._queue_delay(metric, from_s, to_s, kind)
        if kind in ("drops", "marks"):
            return self._growth(self.series.queue, kind, "queue", [metric.queue], from_s, to_s)
        if kind == "retransmits":
            return self._growth(self.series.send, "retrans_pkts", "flow", ids, from_s, to_s)
        if kind == "link_use":
            return (
                100
                * self._growth(self.series.queue, "sent_bytes", "queue", [metric.queue], from_s, to_s)
                * 8
                / (to_s - from_s)
                / (topology.rate_mbit * 1e6)
            )
        if kind == "longest_stall":
            return max((longest_stall_s(self.series, flow, from_s, to_s) for flow in ids), default=math.nan)
        if kind in ("yield_s", "reap_s"):
            return self._crossing(metric, ids, kind == "yield_s")
        if kind == "udp_lost":
            return self._udp(ids, "sent", "packets") - self._udp(ids, "received", "packets")
        if kind == "udp_delay_mean":
            packets = self._udp(ids, "received", "stamped")
            return self._udp(ids, "received", "delay_ns") / packets / 1e6 if packets else math.nan
        if kind in ("udp_delay_p50", "udp_delay_p95", "udp_delay_p99", "udp_delay_max"):
            key = f"{kind.rpartition('_')[2]}_delay_ns"
            return max((self._udp([flow], "received", key) for flow in ids), default=math.nan) / 1e6
        if kind in web_traffic.METRIC_KINDS:
            rows = web.sized(self.series.web, metric.bytes_from, metric.bytes_to)
            return web.value(rows, kind, ids, from_s, to_s, metric.threshold or 0.0)
        if kind == "family_lost":
            spec = self.setting.flows[metric.flow or next(iter(self.setting.flows))]
            return web.family_lost_pct(self.facts.get("counters", {}), spec.source, spec.to)
        if kind == "kernel_count":
            spec = self.setting.flows[metric.flow or next(iter(self.setting.flows))]
            counters = self.facts.get("counters", {}).get(spec.source)
            return float(counters.get(metric.counter, 0)) if counters else math.nan
        if kind in web_traffic.COUNTER_KINDS:
            return web.hint_class(self.facts.get("qdiscs", {}), metric.hint, kind.removeprefix("hint_"))
        if kind == "completion_s":
            starts = {flow.id: flow.start_s for flow in self.flows}
            times = [
                t - starts[flow] for t, flow, event, _ in self.series.events if event == "finished" and flow in ids
            ]
            return float(np.mean(times)) if times else math.nan
        # the last of METRIC_KINDS
        return float(
            sum(
                1
                for _, flow, event, _ in self.series.events
                if event == metric.event and (flow in ids or not metric.flow)
            )
        )

    def _pauses(self, ids: list[int], kind: str, from_s: float, to_s: float) -> float:
        """Shares while the group sends and while it pauses, %; NaN if it never does.

        One that is held up so much that it never comes to pause has a share while it sends.
        """
        others = [flow.id for flow in self.flows if flow.id not in ids and flow.spec.to == self._target(ids)]
        t = np.arange(from_s, to_s, PAUSE_STEP_S)
        mine, theirs = self._arrived(ids, t), self._arrived(others, t)
        active = bridged(mine > 0, PAUSE_STEPS)
        if not active.any() or (active.all() and kind == "gap_use"):
            return math.nan
        if kind == "active_share":
            return 100 * float(mine[active].sum() / (mine + theirs)[active].sum())
        mbit_s = float(theirs[~active].mean()) * 8 / PAUSE_STEP_S / 1e6
        return 100 * mbit_s / self.setting.topology.tcp_capacity_mbit()

    def _arrived(self, ids: list[int], t: np.ndarray) -> np.ndarray:
        """Payload of flows together in each step of ``t``, bytes."""
        total = np.zeros(len(t))
        for flow in ids:
            seconds, received = self.series.received(flow)
            if len(seconds):
                total += np.interp(t, seconds, received, left=0.0)
        return np.diff(total)

    def _on_link(self, flow: Flow, from_s: float, to_s: float) -> float:
        """What a flow takes of the bottleneck, Mbit/s with its headers as the link counts them."""
        topology, payload = self.setting.topology, goodput_mbit(self.series, [flow.id], from_s, to_s)
        if flow.spec.proto == "udp" and flow.spec.pkt_bytes:
            around = topology.frame_bytes - topology.mtu + (28 if flow.spec.family == 4 else 48)
            return payload * (flow.spec.pkt_bytes + around) / flow.spec.pkt_bytes
        return payload / topology.tcp_capacity_mbit() * topology.rate_mbit

    def _target(self, ids: list[int]) -> str:
        return next(flow.spec.to for flow in self.flows if flow.id == ids[0])

    def _udp(self, ids: list[int], event: str, key: str) -> float:
        """A number of the events that end UDP flows, summed over flows; NaN if there is none."""
        found = [
            re.search(rf"\b{key}=(\d+)", detail)
            for _, flow, name, detail in self.series.events
            if name == event and flow in ids
        ]
        return float(sum(int(one[1]) for one in found if one)) if any(found) else math.nan

    def _queue_delay(self, metric: Metric, from_s: float, to_s: float, kind: str) -> float:
        """Time that the queue's backlog takes at the link's rate, milliseconds."""
        rows = self.series.queue
        t = rows["t_ns"] / 1e9
        rows = rows[(rows["queue"] == metric.queue) & (t >= from_s) & (t <= to_s)]
        if len(rows) == 0:
            return math.nan
        delay_ms = rows["backlog_bytes"] * 8 / (self.setting.topology.rate_mbit * 1e6) * 1e3
        if kind == "queue_min":
            return float(delay_ms.min())
        return float(np.percentile(delay_ms, 95) if kind == "queue_p95" else delay_ms.mean())

    def _crossing(self, metric: Metric, ids: list[int], falling: bool) -> float:
        """Time from ``at_s`` until the group's rate (over 1 s) is below or above ``threshold`` Mbit/s."""
        head = self.setting.head
        step = head.sample_ms / 1e3
        width = max(1, round(1 / step))
        t, total = None, 0.0
        for flow in ids:
            t, mbit = rates(self.series, flow, step, head.duration_s)
            total = total + mbit
        if t is None:
            return math.nan
        smooth = np.convolve(total, np.ones(width) / width)[: len(t)]
        threshold = metric.threshold or 0.0
        return first_time(t, smooth, metric.at_s or 0.0, smooth < threshold if falling else smooth >= threshold)


@dataclass(frozen=True)
class Summary:
    """Runs of one number: mean, half-width of the 95 % interval (NaN for one run), and the spread.

    n: runs with a value; blank: runs that were made and have none; missing: runs that were asked for and not made.
    """

    n: int
    mean: float
    half: float
    low: float
    median: float
    high: float
    blank: int = 0
    missing: int = 0

    @property
    def asked(self) -> int:
        """How many runs were asked for."""
        return self.n + self.blank + self.missing

    @property
    def whole(self) -> bool:
        """Whether every run that was asked for has a value."""
        return self.n > 0 and not self.blank and not self.missing


def summarise(values: Sequence[float | None]) -> Summary:
    """Mean with Student's interval. None (no run) and NaN (no value) are counted, and their number told."""
    missing = sum(value is None for value in values)
    made = [value for value in values if value is not None]
    real = [value for value in made if not math.isnan(value)]
    blank = len(made) - len(real)
    if not real:
        return Summary(0, math.nan, math.nan, math.nan, math.nan, math.nan, blank, missing)
    count = len(real)
    half = math.nan
    if count > 1:
        quantile = T_95[count - 2] if count - 2 < len(T_95) else 1.96
        half = quantile * float(np.std(real, ddof=1)) / math.sqrt(count)
    mean, median = float(np.mean(real)), float(np.median(real))
    return Summary(count, mean, half, min(real), median, max(real), blank, missing)
