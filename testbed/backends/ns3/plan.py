# SPDX-License-Identifier: GPL-2.0
"""One run as lines for network.cc: the same topology, flows, start times and settings as for the kernels.

For anything that ns-3 cannot express here CannotSay is raised, which names it. Only flows whose `cc` is lp, ns2_reno or
ns2_newreno have a sender. ns-3 has no plain Reno: its NewReno stands for it, with SACK. Without SACK, the NewReno of
ns-3.44 that loses several packets of a window sends for the rest of a run again what has arrived.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from ...run.job import Job
from ...spec.parameters import Queue
from ...spec.queues import queue_depth
from ...spec.traffic import Flow
from ..ns2.plan import RTO_MIN_S, TCP_HEADERS_BYTES, UDP_HEADERS_BYTES, CannotSay, rto_min_s

#: congestion control -> ns-3's
SENDERS = {"lp": "TcpLp", "ns2_reno": "TcpNewReno", "ns2_newreno": "TcpNewReno"}
#: octets of the timestamp option in a segment
TIMESTAMP_BYTES = 12
#: a window, in octets, that no flow fills
OPEN_WINDOW_BYTES = 1 << 26
#: defaults of the kernel
RTO_INIT_MS, INITIAL_WINDOW_PKTS, DELAYED_ACK_PKTS = 1000, 10, 2


def _commands(job: Job, node: str) -> str:
    return " ".join(event.run for event in job.setting.events if event.node == node)


def _depth(job: Job, queue: Queue, rate_mbit: float) -> int:
    if queue.kind != "pfifo":
        raise CannotSay(f"queue kind {queue.kind!r}: drop tail in packets is written for ns-3")
    return queue_depth(job.setting.topology, queue, rate_mbit)[0]


def _network_lines(job: Job) -> list[str]:
    topology = job.setting.topology
    if topology.framing != "ip":
        raise CannotSay(f'framing {topology.framing!r}: ns-3 counts IP packets, framing = "ip"')
    if topology.loss_pct or topology.reverse_loss_pct or topology.tick or topology.hops or topology.senders > 1:
        raise CannotSay("random loss, clocks of hosts, and more than one link or sender are not written for ns-3")
    if topology.processing_us != 0:
        raise CannotSay("processing_us: ns-3's senders take no time for a packet, processing_us = 0")
    back = topology.reverse_rate_mbit or topology.rate_mbit
    depth = _depth(job, topology.queue, topology.rate_mbit)
    back_depth = _depth(job, topology.reverse_queue or topology.queue, back)
    lines = [f"node {name}" for name in ("snd", "rcv", "rtr", "rtr2")]
    lines.append(f"link rtr rtr2 {topology.rate_mbit:g} {back:g} {topology.delay_ms:g} {depth} {back_depth} 1")
    for host, router in (("snd", "rtr"), ("rcv", "rtr2")):
        rate, delay_ms = topology.access_rate_mbit, topology.access_delay_ms
        lines.append(f"link {host} {router} {rate:g} {rate:g} {delay_ms:g} 100000 100000 0")
    return lines


def _greedy(job: Job, flow: Flow) -> str:
    spec, topology = flow.spec, job.setting.topology
    if spec.cc not in SENDERS:
        raise CannotSay(f"cc {spec.cc!r}: ns-3 has {', '.join(SENDERS)} here")
    if spec.cc == "lp" and any(job.setting.modules.get("tcp_lp", {}).values()):
        raise CannotSay("ns-3's TcpLp has no parameters: modules.tcp_lp")
    if spec.extra_delay_ms or flow.stop_s is not None:
        raise CannotSay(f"flow {flow.group}: extra delay and stop_s are not written for ns-3")
    mss = spec.options.get("maxseg", topology.mtu - TCP_HEADERS_BYTES) - TIMESTAMP_BYTES * topology.timestamps
    initial = re.search(r"initcwnd (\d+)", _commands(job, spec.source))
    prompt = re.search(r"quickack 1\b", _commands(job, spec.to))
    words = [
        f"greedy {flow.id} {spec.source} {spec.to} {SENDERS[spec.cc]} {mss}",
        spec.sink_options.get("window", OPEN_WINDOW_BYTES),
        initial[1] if initial else INITIAL_WINDOW_PKTS,
        # the parameter of lbe_ns2 is for its own senders
        RTO_MIN_S if spec.cc == "lp" else rto_min_s(job, spec.source),
        1 if prompt else DELAYED_ACK_PKTS,
        f"{flow.start_s:.9g}",
    ]
    return " ".join(map(str, words))


def _flow_line(job: Job, flow: Flow) -> str:
    spec = flow.spec
    stop_s = min(job.setting.head.duration_s, math.inf if flow.stop_s is None else flow.stop_s)
    if spec.kind == "greedy" and spec.proto == "tcp":
        return _greedy(job, flow)
    if spec.kind in ("square", "cbr") and spec.proto == "udp":
        assert spec.rate_mbit is not None
        size = spec.pkt_bytes or job.setting.topology.mtu - UDP_HEADERS_BYTES
        period_s = (spec.period_s or 0) if spec.kind == "square" else 0
        on_s = period_s * (0.5 if spec.duty is None else spec.duty)
        ends = f"{flow.id} {spec.source} {spec.to}"
        return f"square {ends} {size} {spec.rate_mbit:g} {period_s:g} {on_s:g} {flow.start_s:.9g} {stop_s:.9g}"
    raise CannotSay(f"flow {flow.group}: {spec.proto} {spec.kind!r} is not written for ns-3")


def text(job: Job) -> list[str]:
    """The lines of the plan. Raises CannotSay."""
    topology, head = job.setting.topology, job.setting.head
    if not topology.timestamps and any(flow.spec.cc == "lp" for flow in job.flows):
        raise CannotSay("timestamps = false: TcpLp measures by them")
    limited = int(job.setting.modules.get("lbe_ns2", {}).get("limited_transmit", True))
    initial_s = float(job.setting.modules.get("shred_rto", {}).get("initial_ms", RTO_INIT_MS)) / 1e3
    return [
        f"begin {job.seed} {topology.mtu} {int(topology.timestamps)} {limited} {initial_s:g}",
        *_network_lines(job),
        "routes",
        *(_flow_line(job, flow) for flow in job.flows),
        f"sample {head.sample_ms / 1e3:g}",
        f"finish {head.duration_s + 0.000001:.9g}",
    ]


def write(job: Job, folder: Path) -> Path:
    """Write the plan to a folder; returns its path."""
    path = folder / "plan"
    path.write_text("# SPDX-License-Identifier: GPL-2.0\n" + "\n".join(text(job)) + "\n", encoding="ascii")
    return path
