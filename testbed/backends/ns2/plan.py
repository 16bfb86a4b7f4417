# SPDX-License-Identifier: GPL-2.0
"""One run as ns-2's Tcl: the same topology, flows, start times and settings as for the kernels.

For anything that ns-2 cannot express (a congestion control of the project, a qdisc of Linux) CannotSay is raised,
which names it. Only flows whose `cc` is ns2_reno, ns2_newreno, ns2_sack or one of the LowPri laws that ns-2's
parameters can express have a sender in ns-2.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import LbeError
from ...run.job import Job
from ...spec import traces as generators
from ...spec.parameters import Queue
from ...spec.queues import queue_depth
from ...spec.topology import PROCESSING_CAP_US
from ...spec.traffic import Flow, FlowGroup
from .packets import Packets

#: octets of IP and TCP headers without options, which ns-2 adds to a packet's payload
TCP_HEADERS_BYTES = 40
UDP_HEADERS_BYTES = 28
#: congestion control -> ns-2's sender
SENDERS = {"ns2_reno": "Reno", "ns2_newreno": "Newreno", "ns2_sack": "Sack1"}
#: LowPri laws as Sack1 with other parameters. Binomial control (windowOption_ 6) reduces w to
#: w - (1 - decrease_num_) w^l; with k_parameter_ 0 it grows by a packet per round trip, as usual
LAWS: dict[str, dict[str, float | int]] = {
    "ns2_lowpri1": {"windowOption_": 6, "k_parameter_": 0, "l_parameter_": 0, "decrease_num_": -1},
    "ns2_lowpri2": {"windowOption_": 6, "k_parameter_": 0, "l_parameter_": 0.5, "decrease_num_": 0},
    "ns2_lowpri2.5": {"windowOption_": 6, "k_parameter_": 0, "l_parameter_": 0.6, "decrease_num_": 0},
    "ns2_lowpri4": {"decrease_num_": 0.66},
    "ns2_lowpri4.1": {"decrease_num_": 0.75},
}
#: a window, in packets, that no flow reaches
OPEN_WINDOW_PKTS = 100000
#: bands of strict priority (prio_ in ns-2's IP header)
FIRST, LAST = 10, 20
#: defaults of the kernel that the experiments change by a route or a parameter
RTO_MIN_S, RTO_INIT_S, INITIAL_WINDOW_PKTS = 0.2, 1.0, 10
#: granularity of time-outs, seconds; ns-2.35's default
TICK_S = 0.01


class CannotSay(LbeError):
    """ns-2 cannot express something in this run; the text names it."""


@dataclass(frozen=True)
class Text:
    """A plan, and the packet traces that it reads, by the name of their file."""

    lines: list[str]
    files: dict[str, Packets]


def _tcl(settings: Mapping[str, float | int | str]) -> str:
    return "{" + " ".join(f"{name} {value}" for name, value in settings.items()) + "}"


def _number(value: float) -> str:
    return f"{value:.9f}".rstrip("0").rstrip(".")


def _commands(job: Job, node: str) -> str:
    return " ".join(event.run for event in job.setting.events if event.node == node)


def _sysctl(job: Job, node: str, key: str) -> str | None:
    tables = job.setting.sysctl
    found = tables.get(node, {}).get(key, tables.get("all", {}).get(key))
    return None if found is None else str(found)


def rto_min_s(job: Job, node: str) -> float:
    """The minimum RTO of a sender, seconds: from a module parameter, a route, or a sysctl."""
    module_ms = job.setting.modules.get("lbe_ns2", {}).get("rto_min_ms")
    if module_ms is not None:
        return float(module_ms) / 1e3
    route = re.search(r"rto_min (\d+)(ms|s)\b", _commands(job, node))
    if route:
        return int(route[1]) / (1e3 if route[2] == "ms" else 1)
    least = _sysctl(job, node, "net.ipv4.tcp_rto_min_us")
    return RTO_MIN_S if least is None else int(least) / 1e6


def _initial_window(job: Job, node: str) -> int:
    route = re.search(r"initcwnd (\d+)", _commands(job, node))
    return int(route[1]) if route else INITIAL_WINDOW_PKTS


def _sender(job: Job, spec: FlowGroup) -> tuple[str, dict[str, float | int]]:
    """Kind and settings of the sending agent in ns-2."""
    law: dict[str, float | int] = {}
    if spec.cc in SENDERS:
        kind = SENDERS[spec.cc]
    elif spec.cc in LAWS:
        kind, law = "Sack1", LAWS[spec.cc]
    else:
        raise CannotSay(f"cc {spec.cc!r}: ns-2 has {', '.join([*SENDERS, *LAWS])}")
    topology, modules = job.setting.topology, job.setting.modules
    mss = spec.options.get("maxseg", topology.mtu - TCP_HEADERS_BYTES)
    window = spec.sink_options.get("window")
    jitter_us = topology.processing_us
    if jitter_us is None:
        jitter_us = min(PROCESSING_CAP_US, topology.frame_bytes * 8 / topology.rate_mbit)
    return kind, {
        "packetSize_": mss,
        "window_": OPEN_WINDOW_PKTS if window is None else max(1, int(window) // mss),
        "windowInit_": _initial_window(job, spec.source),
        "minrto_": rto_min_s(job, spec.source),
        "rtxcur_init_": float(modules.get("shred_rto", {}).get("initial_ms", RTO_INIT_S * 1e3)) / 1e3,
        "tcpTick_": TICK_S,
        "overhead_": jitter_us / 1e6,
        "singledup_": int(modules.get("lbe_ns2", {}).get("limited_transmit", True)),
        **law,
    }


def _sink(job: Job, spec: FlowGroup, kind: str) -> str:
    """ns-2's receiver: with an ACK for each packet if the route has quickack, else with delayed ACKs."""
    prompt = re.search(r"quickack 1\b", _commands(job, spec.to))
    return "TCPSink" + ("/Sack1" if kind == "Sack1" else "") + ("" if prompt else "/DelAck")


def _priority(spec: FlowGroup, queue: Queue) -> int:
    low = spec.low if queue.low == "flows" else spec.dscp == 1
    return LAST if low else FIRST


def _red(text: str, limit_bytes: int) -> dict[str, float | int | str]:
    """RED's settings from the line of a shred queue without its hint, which is RED in bytes."""
    words = text.format(limit=0, limit_bytes=limit_bytes, rate_bit=0).split()
    if words[0] not in ("shred", "red") or (words[0] == "shred" and words[-2:] != ["hint", "off"]):
        raise CannotSay(f"queue {' '.join(words[:1])!r}: ns-2 has RED, drop tail and strict priority")
    pairs = dict(itertools.pairwise(words))
    mean = int(pairs["avpkt"])
    return {
        "limit_": limit_bytes // mean,
        "queue_in_bytes_": "true",
        "bytes_": "true",
        "mean_pktsize_": mean,
        "thresh_": int(pairs["min"]) / mean,
        "maxthresh_": int(pairs["max"]) / mean,
        "linterm_": 1 / float(pairs["probability"]),
        "q_weight_": 0.002,
        "gentle_": "true" if "gentle" in words else "false",
        "setbit_": "false",
        "drop_tail_": "true",
    }


def _queue(job: Job, queue: Queue, rate_mbit: float) -> str:
    """Kind and settings of a bottleneck's queue."""
    topology = job.setting.topology
    packets, size = queue_depth(topology, queue, rate_mbit)
    if queue.kind == "pfifo":
        # ns-2 drops the packet that would fill limit_: it queues at most limit_ - 1, beside the one on the wire
        return f"DropTail {_tcl({'limit_': packets + 1})}"
    if queue.kind == "bfifo":
        mean = topology.mtu if topology.mtu < 1500 else 1000
        settings: dict[str, int | str] = {"limit_": size // mean, "queue_in_bytes_": "true", "mean_pktsize_": mean}
        return f"DropTail {_tcl(settings)}"
    if queue.kind == "prio":
        return f"Priority {_tcl({'limit_': packets, 'packet_': topology.mtu})}"
    if queue.kind == "tc":
        return f"RED {_tcl(_red(queue.tc, size))}"
    raise CannotSay(f"queue kind {queue.kind!r}: ns-2 has RED, drop tail and strict priority")


def _network_lines(job: Job) -> list[str]:
    topology = job.setting.topology
    if topology.framing != "ip":
        raise CannotSay(f'framing {topology.framing!r}: ns-2 counts IP packets, framing = "ip"')
    if topology.loss_pct or topology.reverse_loss_pct or topology.tick:
        raise CannotSay("random loss and clocks of hosts are not written for ns-2")
    back = topology.reverse_rate_mbit or topology.rate_mbit
    around = topology.reverse_queue or topology.queue
    hops = [(topology.rate_mbit, back, topology.delay_ms, topology.queue, around)]
    hops += [(hop.rate_mbit, hop.rate_mbit, hop.delay_ms, hop.queue, hop.queue) for hop in topology.hops]
    routers = ["rtr", *(f"rtr{number}" for number in range(2, len(hops) + 2))]
    lines = [f"router {name}" for name in routers]
    for index, (rate, back, delay_ms, queue, around) in enumerate(hops):
        here, there = routers[index : index + 2]
        forward, backward = (1, 2) if index == 0 else (0, 0)
        lines.append(f"bottleneck {forward} {here} {there} {rate:g} {delay_ms:g} {_queue(job, queue, rate)}")
        lines.append(f"bottleneck {backward} {there} {here} {back:g} {delay_ms:g} {_queue(job, around, back)}")
    places = {"snd": routers[0], "rcv": routers[-1]}
    # hosts of a chain are attached to its routers; rcv is attached to the last router made here
    places |= dict(topology.hosts)
    for name, router in places.items():
        lines.append(f"host {name} {router} {topology.access_rate_mbit:g} {topology.access_delay_ms:g}")
    return lines


def _host(job: Job, spec: FlowGroup, lines: list[str]) -> str:
    """The sending host; a group with extra delay gets its own host."""
    if not spec.extra_delay_ms:
        return spec.source
    name = f"{spec.source}-{spec.extra_delay_ms:g}"
    topology = job.setting.topology
    line = next(one for one in lines if one.startswith(f"host {spec.source} "))
    router = line.split()[2]
    made = f"host {name} {router} {topology.access_rate_mbit:g} {topology.access_delay_ms + spec.extra_delay_ms:g}"
    if made not in lines:
        lines.append(made)
    return name


def pareto_scale(shape: float, mean: float, low: float, high: float) -> float:
    """Scale of a Pareto II variable clipped to [low, high] with this mean, computed as by the agent (rng.h)."""

    def cut_mean(scale: float) -> float:
        k = 1 - shape
        return float(low + scale / k * ((1 + high / scale) ** k - (1 + low / scale) ** k))

    small, large = 0.001, high * 1e3
    while large / small > 1.000000001:
        middle = (small * large) ** 0.5
        small, large = (middle, large) if cut_mean(middle) < mean else (small, middle)
    return float((small * large) ** 0.5)


def _sizes(spec: FlowGroup) -> tuple[float, float, float, float]:
    """Shape, scale, smallest and largest size of the objects of a group."""
    options = spec.options
    shape, mean = float(options.get("shape", 1.2)), float(options.get("mean_bytes", 10000))
    low, high = float(options.get("min_bytes", 12)), float(options.get("max_bytes", 2e6))
    return shape, pareto_scale(shape, mean, low, high), low, high


def _open_loop(flow: Flow, stop_s: float) -> list[str]:
    """All objects of a fixed offered load: after each page a wait for the time that its octets take at that rate."""
    shape, scale, low, high = _sizes(flow.spec)
    assert flow.spec.rate_mbit is not None
    draw, at_s, page, lines = random.Random(flow.seed), flow.start_s, 0, []
    while at_s < stop_s:
        total = 0.0
        for _ in range(draw.randint(1, flow.spec.objects or 1)):
            size = round(min(high, max(low, scale * ((1 - draw.random()) ** (-1 / shape) - 1))))
            lines.append(f'$ns at {_number(at_s)} "object {flow.id} {page} {size}"')
            total += size
        page += 1
        at_s += 8 * total / (flow.spec.rate_mbit * 1e6)
    return lines


def _web_lines(job: Job, flow: Flow, stop_s: float) -> list[str]:
    spec = flow.spec
    kind, settings = _sender(job, spec)
    if kind == "Sack1":
        raise CannotSay("web traffic over Sack1 is not written for ns-2")
    lines = [f"web {flow.id} {spec.source} {spec.to} {kind} {_tcl(settings)} {settings['packetSize_']}"]
    if spec.kind == "web":
        return lines + _open_loop(flow, stop_s)
    shape, scale, low, high = _sizes(spec)
    object_s = float(spec.options.get("object_ms", 1)) / 1e3
    for number in range(spec.sessions or 1):
        words: list[float | int | str] = [flow.id, 1000 * flow.id + number, flow.seed % 2**30 + number + 1]
        words += [spec.objects or 10, object_s, spec.options.get("page_s", 1.0), shape, scale, low, high]
        words += [_number(flow.start_s), stop_s]
        lines.append("session " + " ".join(map(str, words)))
    return lines


def packets_of(job: Job, flow: Flow, stop_s: float) -> Packets:
    """The packet trace that a flow replays."""
    if not generators.is_made(flow.spec.file or ""):
        raise CannotSay(f"trace {flow.spec.file!r}: only made ones are written for ns-2")
    return Packets(job.traces[f"flow{flow.id}.trace"], stop_s - flow.start_s)


def _flow_lines(job: Job, flow: Flow, lines: list[str], files: dict[str, Packets]) -> list[str]:
    spec, head = flow.spec, job.setting.head
    stop_s = min(head.duration_s, flow.stop_s if flow.stop_s is not None else head.duration_s)
    priority = _priority(spec, job.setting.topology.queue)
    ends = f"{flow.id} {_host(job, spec, lines)} {spec.to}"
    if spec.kind in ("web", "session"):
        return _web_lines(job, flow, stop_s)
    if spec.kind == "greedy":
        kind, settings = _sender(job, spec)
        stop = "-1" if flow.stop_s is None else _number(flow.stop_s)
        sink = _sink(job, spec, kind)
        return [f"greedy {ends} {kind} {_tcl(settings)} {sink} {priority} {_number(flow.start_s)} {stop}"]
    if spec.proto == "udp" and spec.kind == "trace":
        name = f"flow{flow.id}.packets"
        files[name] = packets_of(job, flow, stop_s)
        return [f"replay {ends} [file join $here {name}] {priority} {_number(flow.start_s)} {_number(stop_s)}"]
    if spec.proto == "udp" and spec.kind in ("square", "cbr"):
        size = (spec.pkt_bytes or job.setting.topology.mtu - UDP_HEADERS_BYTES) + UDP_HEADERS_BYTES
        assert spec.rate_mbit is not None
        rate = spec.rate_mbit * size / (size - UDP_HEADERS_BYTES)
        period_s = (spec.period_s or 0) if spec.kind == "square" else 0
        on_s = period_s * (0.5 if spec.duty is None else spec.duty)
        return [
            f"square {ends} {size} {rate:.9g} {_number(period_s)} {_number(on_s)} {priority}"
            f" {_number(flow.start_s)} {_number(stop_s)}"
        ]
    raise CannotSay(f"flow {flow.group}: {spec.proto} {spec.kind!r} is not written for ns-2")


def text(job: Job) -> Text:
    """The complete plan. Raises CannotSay."""
    files: dict[str, Packets] = {}
    lines, flows = _network_lines(job), []
    for flow in job.flows:
        flows += _flow_lines(job, flow, lines, files)
    head = job.setting.head
    return Text(
        [
            "# SPDX-License-Identifier: GPL-2.0",
            "set here [file dirname [info script]]",
            f"begin $here {job.seed}",
            *lines,
            *flows,
            f'$ns at 0 "sample {head.sample_ms / 1e3:g}"',
            f'$ns at {_number(head.duration_s + 0.000001)} "finish"',
        ],
        files,
    )


def write(job: Job, folder: Path) -> Path:
    """Write the plan and its files to a folder; returns the plan's path."""
    made = text(job)
    for name, packets in made.files.items():
        (folder / name).write_bytes(packets.content())
    path = folder / "plan.tcl"
    path.write_text("\n".join(made.lines) + "\n", encoding="ascii")
    return path
