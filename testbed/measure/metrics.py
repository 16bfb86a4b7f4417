# SPDX-License-Identifier: GPL-2.0
"""Metrics of one run: a function for each kind of metric in spec/metrics.py.

A metric that cannot be computed (no sample, no such event) is NaN, not zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..spec import metrics as catalogue
from ..spec.experiment import Setting
from ..spec.metrics import CROSSING_WINDOW_S, KINDS, PAUSE_STEP_S, PAUSE_STEPS, Metric
from ..spec.topology import build
from ..spec.traffic import Flow, FlowGroup
from . import web
from .series import Series, arrived, bridged, first_time, goodput_mbit, growth, longest_stall_s, rates


@dataclass(frozen=True)
class Run:
    """One run: its records, its setting and flows, and the facts read back from the nodes at its end."""

    series: Series
    setting: Setting
    flows: list[Flow]
    facts: dict[str, Any] = field(default_factory=dict)

    def ids(self, groups: str) -> list[int]:
        """Flow numbers of groups joined by +; empty string: all flows."""
        wanted = groups.split("+") if groups else list(self.setting.flows)
        return [flow.id for flow in self.flows if flow.group in wanted]

    def value(self, metric: Metric) -> float:
        """Value of one metric, NaN if the run has no data for it."""
        head = self.setting.head
        from_s = head.measure_s[0] if metric.from_s is None else metric.from_s
        to_s = head.measure_s[1] if metric.to_s is None else metric.to_s
        ids = self.ids(metric.flow)
        if KINDS[metric.kind].flows and not ids:
            return math.nan
        return FUNCTIONS[metric.kind](Asked(self, metric, ids, from_s, to_s))


@dataclass(frozen=True)
class Asked:
    """One metric of one run: the numbers of its flows, and its window in seconds."""

    run: Run
    metric: Metric
    ids: list[int]
    from_s: float
    to_s: float

    @property
    def series(self) -> Series:
        """Records of the run."""
        return self.run.series

    @property
    def duration_s(self) -> float:
        """Length of the window."""
        return self.to_s - self.from_s

    @property
    def capacity_mbit(self) -> float:
        """Payload rate that TCP can carry over the bottleneck."""
        return self.run.setting.topology.tcp_capacity_mbit()

    @property
    def goodput_mbit(self) -> float:
        """Payload rate of all flows of the metric."""
        return goodput_mbit(self.series, self.ids, self.from_s, self.to_s)

    @property
    def each_mbit(self) -> list[float]:
        """Payload rate of each flow of the metric."""
        return [goodput_mbit(self.series, [flow], self.from_s, self.to_s) for flow in self.ids]

    @property
    def group(self) -> FlowGroup:
        """The group that the metric names, or the run's first."""
        flows = self.run.setting.flows
        return flows[self.metric.flow or next(iter(flows))]

    def others(self) -> list[Flow]:
        """Flows to the same host that the metric does not name."""
        target = next(flow.spec.to for flow in self.run.flows if flow.id == self.ids[0])
        return [flow for flow in self.run.flows if flow.id not in self.ids and flow.spec.to == target]

    def sender_samples(self, column: str) -> np.ndarray:
        """The senders' samples of ``column`` in the window, without zeros, which mean that there is no value yet."""
        rows = self.series.send
        t = rows["t_ns"] / 1e9
        values = rows[np.isin(rows["flow"], self.ids) & (t >= self.from_s) & (t <= self.to_s)][column].astype(float)
        return values[values > 0]

    def queue_growth(self, column: str) -> float:
        """Increase of a counter of the metric's queue in the window."""
        return growth(self.series.queue, column, "queue", [self.metric.queue], self.from_s, self.to_s)

    def queue_delay_ms(self) -> np.ndarray:
        """Samples of the queueing delay: the time to send the queue's backlog at the link's rate, ms."""
        rows = self.series.queue
        t = rows["t_ns"] / 1e9
        rows = rows[(rows["queue"] == self.metric.queue) & (t >= self.from_s) & (t <= self.to_s)]
        return rows["backlog_bytes"] * 8 / (  # type: ignore[no-any-return]
            self.run.setting.topology.rate_mbit * 1e6
        ) * 1e3

    def link_used(self) -> float:
        """Utilization of the link of the metric's queue, 0 to 1."""
        bits = self.queue_growth("sent_bytes") * 8
        return bits / self.duration_s / (self.run.setting.topology.rate_mbit * 1e6)

    def on_link_mbit(self, flow: Flow) -> float:
        """Rate of a flow on the bottleneck, including headers as the link counts them."""
        topology = self.run.setting.topology
        payload = goodput_mbit(self.series, [flow.id], self.from_s, self.to_s)
        if flow.spec.proto == "udp" and flow.spec.pkt_bytes:
            around = topology.frame_bytes - topology.mtu + (28 if flow.spec.family == 4 else 48)
            return payload * (flow.spec.pkt_bytes + around) / flow.spec.pkt_bytes
        return payload / topology.tcp_capacity_mbit() * topology.rate_mbit


Function = Callable[[Asked], float]
FUNCTIONS: dict[str, Function] = {}


def computes(*kinds: str) -> Callable[[Function], Function]:
    """Register the function of some kinds; a kind must be in spec/metrics.py and have only one function."""

    def register(function: Function) -> Function:
        for kind in kinds:
            if kind not in KINDS or kind in FUNCTIONS:
                raise LookupError(f"metric {kind!r}: {'computed twice' if kind in KINDS else 'in no list of kinds'}")
            FUNCTIONS[kind] = function
        return function

    return register


def mean(values: np.ndarray) -> float:
    """Mean; NaN if there are no values."""
    return float(values.mean()) if len(values) else math.nan


def percentile(values: np.ndarray, percent: float) -> float:
    """Percentile; NaN if there are no values."""
    return float(np.percentile(values, percent)) if len(values) else math.nan


# ------------------------------------------------------------------------------------------- goodput


@computes("goodput")
def _goodput(asked: Asked) -> float:
    return asked.goodput_mbit


@computes("min_flow")
def _min_flow(asked: Asked) -> float:
    return min(asked.each_mbit)


@computes("max_flow")
def _max_flow(asked: Asked) -> float:
    return max(asked.each_mbit)


@computes("kbytes_s")
def _kbytes_s(asked: Asked) -> float:
    return asked.goodput_mbit * 1e6 / 8 / 1000


@computes("kibytes_s")
def _kibytes_s(asked: Asked) -> float:
    return asked.goodput_mbit * 1e6 / 8 / 1024


@computes("share")
def _share(asked: Asked) -> float:
    return 100 * asked.goodput_mbit / asked.capacity_mbit


@computes("spare_use")
def _spare_use(asked: Asked) -> float:
    taken = sum(asked.on_link_mbit(flow) for flow in asked.others())
    spare = asked.capacity_mbit * (1 - taken / asked.run.setting.topology.rate_mbit)
    return 100 * asked.goodput_mbit / spare if spare > 0 else math.nan


@computes("idle_use")
def _idle_use(asked: Asked) -> float:
    # ACKs of flows in the other direction use the link too, and count as use
    idle = max(0.0, 1 - asked.link_used()) * asked.capacity_mbit
    goodput = asked.goodput_mbit
    return 100 * goodput / (goodput + idle) if goodput + idle else math.nan


@computes("active_share", "gap_use")
def _pauses(asked: Asked) -> float:
    """active_share has a value even if the group is slowed so much that it never pauses; gap_use has none then."""
    t = np.arange(asked.from_s, asked.to_s, PAUSE_STEP_S)
    mine = arrived(asked.series, asked.ids, t)
    theirs = arrived(asked.series, [flow.id for flow in asked.others()], t)
    active = bridged(mine > 0, PAUSE_STEPS)
    if not active.any():
        return math.nan
    if asked.metric.kind == "active_share":
        return 100 * float(mine[active].sum() / (mine + theirs)[active].sum())
    if active.all():
        return math.nan
    return 100 * float(theirs[~active].mean()) * 8 / PAUSE_STEP_S / 1e6 / asked.capacity_mbit


# ------------------------------------------------------------------------------------------ fairness


def jain(values: list[float]) -> float:
    """Jain's fairness index, 1/n to 1; NaN if all values are 0."""
    total, squares = sum(values), sum(value * value for value in values)
    return total * total / (len(values) * squares) if squares else math.nan


def sharing(values: list[float]) -> float:
    """Equation (1) of the paper on filler traffic: deviation of the flows over their sum, 0 = equal shares."""
    total = sum(values)
    return float(np.std(values, ddof=1)) / total if len(values) > 1 and total else math.nan


def variation(values: list[float]) -> float:
    """Coefficient of variation, deviation over mean, as in that paper's tables (Documentation/tcp_lowpri.md)."""
    return sharing(values) * len(values)


@computes("jain")
def _jain(asked: Asked) -> float:
    return jain(asked.each_mbit)


@computes("sharing")
def _sharing(asked: Asked) -> float:
    return sharing(asked.each_mbit)


@computes("variation")
def _variation(asked: Asked) -> float:
    return variation(asked.each_mbit)


# ---------------------------------------------------------------------------- the senders' own view


@computes("rtt_mean")
def _rtt_mean(asked: Asked) -> float:
    return mean(asked.sender_samples("srtt_us")) / 1e3


@computes("rtt_p95")
def _rtt_p95(asked: Asked) -> float:
    return percentile(asked.sender_samples("srtt_us"), 95) / 1e3


@computes("cwnd_mean")
def _cwnd_mean(asked: Asked) -> float:
    return mean(asked.sender_samples("cwnd_pkts"))


@computes("cwnd_max")
def _cwnd_max(asked: Asked) -> float:
    return percentile(asked.sender_samples("cwnd_pkts"), 100)


@computes("retransmits")
def _retransmits(asked: Asked) -> float:
    return growth(asked.series.send, "retrans_pkts", "flow", asked.ids, asked.from_s, asked.to_s)


# ------------------------------------------------------------------------------- the bottleneck's queue


@computes("queue_mean")
def _queue_mean(asked: Asked) -> float:
    return mean(asked.queue_delay_ms())


@computes("queue_p95")
def _queue_p95(asked: Asked) -> float:
    return percentile(asked.queue_delay_ms(), 95)


@computes("queue_min")
def _queue_min(asked: Asked) -> float:
    return percentile(asked.queue_delay_ms(), 0)


@computes("drops", "marks")
def _queue_counter(asked: Asked) -> float:
    return asked.queue_growth(asked.metric.kind)


@computes("link_use")
def _link_use(asked: Asked) -> float:
    return 100 * asked.link_used()


@computes("hint_packets", "hint_drops")
def _hint_class(asked: Asked) -> float:
    queue = next((one for one in build(asked.run.setting.topology).queues if one.id == asked.metric.queue), None)
    if queue is None:
        return math.nan
    column = asked.metric.kind.removeprefix("hint_")
    return hint_class(asked.run.facts.get("qdiscs", {}).get(queue.node, []), queue.dev, asked.metric.hint, column)


def hint_class(qdiscs: list[dict[str, Any]], dev: str, hint: str, column: str) -> float:
    """``column`` ("packets", "drops") of a class of hints, from tc's dump of the shred queue of a device; else NaN."""
    for qdisc in qdiscs:
        if qdisc.get("kind") != "shred" or qdisc.get("dev") != dev:
            continue
        for one in qdisc.get("classes", []):
            if one.get("hint") == hint:
                return float(one[column])
    return math.nan


# --------------------------------------------------------------------------------- times and events


def _crossing(asked: Asked, falling: bool) -> float:
    """Time from ``at_s`` until the group's rate (over 1 s) is below or above ``threshold`` Mbit/s."""
    if not asked.ids:
        return math.nan
    head = asked.run.setting.head
    step = head.sample_ms / 1e3
    width = max(1, round(CROSSING_WINDOW_S / step))
    each = [rates(asked.series, flow, step, head.duration_s) for flow in asked.ids]
    t, total = each[0][0], sum(mbit for _, mbit in each)
    smooth = np.convolve(total, np.ones(width) / width)[: len(t)]  # type: ignore[arg-type]
    threshold = asked.metric.threshold or 0.0
    return first_time(t, asked.metric.at_s or 0.0, smooth < threshold if falling else smooth >= threshold)


@computes("yield_s")
def _yield_s(asked: Asked) -> float:
    return _crossing(asked, falling=True)


@computes("reap_s")
def _reap_s(asked: Asked) -> float:
    return _crossing(asked, falling=False)


@computes("longest_stall")
def _longest_stall(asked: Asked) -> float:
    stalls = (longest_stall_s(asked.series, flow, asked.from_s, asked.to_s) for flow in asked.ids)
    return max(stalls, default=math.nan)


@computes("completion_s")
def _completion_s(asked: Asked) -> float:
    starts = {flow.id: flow.start_s for flow in asked.run.flows}
    ends = [(flow, t) for t, flow, event, _ in asked.series.events if event == "finished" and flow in asked.ids]
    return mean(np.array([t - starts[flow] for flow, t in ends]))


@computes("event_count")
def _event_count(asked: Asked) -> float:
    wanted = [flow for _, flow, event, _ in asked.series.events if event == asked.metric.event]
    return float(sum(flow in asked.ids or not asked.metric.flow for flow in wanted))


# ------------------------------------------------------------------------------------- UDP and counters


@computes("udp_lost")
def _udp_lost(asked: Asked) -> float:
    sent = asked.series.event_sum(asked.ids, "sent", "packets")
    return sent - asked.series.event_sum(asked.ids, "received", "packets")


@computes("udp_delay_mean")
def _udp_delay_mean(asked: Asked) -> float:
    packets = asked.series.event_sum(asked.ids, "received", "stamped")
    return asked.series.event_sum(asked.ids, "received", "delay_ns") / packets / 1e6 if packets else math.nan


@computes("udp_delay_p50", "udp_delay_p95", "udp_delay_p99", "udp_delay_max")
def _udp_delay(asked: Asked) -> float:
    key = f"{asked.metric.kind.removeprefix('udp_delay_')}_delay_ns"
    each = (asked.series.event_sum([flow], "received", key) for flow in asked.ids)
    return max(each, default=math.nan) / 1e6


@computes("family_lost")
def _family_lost(asked: Asked) -> float:
    return family_lost_pct(asked.run.facts.get("counters", {}), asked.group.source, asked.group.to)


def family_lost_pct(counters: dict[str, dict[str, int]], source: str, to: str) -> float:
    """Percentage of the IPv4 packets of one host that did not reach the other, over the whole run.

    Correct for a group that is the only one to use IPv4 between the two hosts (the others have ``family = 6``):
    the hosts' IP counters then separate its losses from those of the others, with any queue. NaN without counters.
    """
    sent = counters.get(source, {}).get("Ip.OutRequests", 0)
    if not sent:
        return math.nan
    return 100.0 * (sent - counters.get(to, {}).get("Ip.InReceives", 0)) / sent


@computes("kernel_count")
def _kernel_count(asked: Asked) -> float:
    counters = asked.run.facts.get("counters", {}).get(asked.group.source)
    return float(counters.get(asked.metric.counter, 0)) if counters else math.nan


# --------------------------------------------------------------------------------------------- the web


def _web(asked: Asked) -> web.Rows:
    rows = web.sized(asked.series.web, asked.metric.bytes_from, asked.metric.bytes_to)
    return web.Rows(rows, asked.ids, asked.from_s, asked.to_s)


@computes("object_s")
def _object_s(asked: Asked) -> float:
    return mean(_web(asked).object_s)


@computes("object_p50_s")
def _object_p50_s(asked: Asked) -> float:
    return percentile(_web(asked).object_s, 50)


@computes("object_p95_s")
def _object_p95_s(asked: Asked) -> float:
    return percentile(_web(asked).object_s, 95)


@computes("object_within")
def _object_within(asked: Asked) -> float:
    took, every = _web(asked).object_s, len(_web(asked).objects)
    if not len(took):
        return math.nan
    return 100.0 * float(np.count_nonzero(took <= (asked.metric.threshold or 0.0))) / every


@computes("page_s")
def _page_s(asked: Asked) -> float:
    return mean(_web(asked).page_s)


@computes("page_p50_s")
def _page_p50_s(asked: Asked) -> float:
    return percentile(_web(asked).page_s, 50)


@computes("page_p95_s")
def _page_p95_s(asked: Asked) -> float:
    return percentile(_web(asked).page_s, 95)


@computes("objects")
def _objects(asked: Asked) -> float:
    return float(len(_web(asked).object_s))


@computes("pages")
def _pages(asked: Asked) -> float:
    return float(len(_web(asked).page_s))


@computes("web_failed")
def _web_failed(asked: Asked) -> float:
    return _web(asked).flagged(web.FAILED)


@computes("web_unfinished")
def _web_unfinished(asked: Asked) -> float:
    return _web(asked).flagged(web.UNFINISHED)


@computes("syn_lost")
def _syn_lost(asked: Asked) -> float:
    return _web(asked).flagged(web.SYN_RETRANS)


if missing := sorted(catalogue.KINDS.keys() - FUNCTIONS.keys()):
    raise LookupError(f"metrics without a function: {', '.join(missing)}")
