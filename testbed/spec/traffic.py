# SPDX-License-Identifier: GPL-2.0
"""Traffic as plans of the guest agent: the flows, their hosts, sizes, rates and congestion control.

A flow group of an experiment becomes ``count`` flows. Each flow has a number, which identifies it in
all records. Its port follows from that number, so that hashes and ports do not vary between runs.
"""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass, field
from typing import Annotated, Any

from ..base.errors import LbeError
from . import traces, web
from .tables import OneOf, Within

EACH_SENDER = "each"  # source of a group whose flows are spread over the senders
SINK_PORT = 5000  # + flow id: port of the flow's receiver
#: congestion control -> (name for setsockopt, module or None when built in)
CONGESTION_CONTROLS: dict[str, tuple[str, str | None]] = {
    "cubic": ("cubic", None),
    "reno": ("reno", None),
    "vegas": ("vegas", "tcp_vegas"),
    "bbr": ("bbr", "tcp_bbr"),
    "lp_intree": ("lp", "tcp_lp_intree"),
    "lbe": ("lbe", "tcp_lbe"),
    "lp": ("lp", "tcp_lp"),
    "lp_ecn": ("lp_ecn", "tcp_lp"),
    "ledbat": ("ledbat", "tcp_ledbat"),
    "ledbatpp": ("ledbatpp", "tcp_ledbat"),
}
#: prefixes of the LowPri family's names, all of which come from one module
LOWPRI_PREFIXES = ("background", "lowpri")
#: prefix of congestion controls with the loss recovery of ns-2, for comparison (testbed/kernels/guest-modules)
NS2_PREFIX = "ns2_"


class TrafficError(LbeError):
    """A flow's parameters are wrong; the text names the key, the value and the allowed values."""

    exit_status = 2


@dataclass(frozen=True)
class FlowGroup:
    """Flows of one kind. Times are experiment seconds; rates are rates of payload.

    start_spread_s: each flow starts later by a random time up to this one; stagger_s: time between the starts of
    consecutive flows; low: a strict-priority queue serves the flows last; extra_delay_ms: one way, at the sender;
    source "each": flow i is at the i-th sender; count 0: the group is absent; options, sink_options, server_options:
    additional keys of the agent's plan, passed unchanged.
    For kinds web and session, objects: objects of a page; sessions: concurrent sessions; options: keys of the
    clients' line.
    """

    kind: Annotated[str, OneOf("greedy", "cbr", "square", "onoff", "trace", "bytes", *web.KINDS)] = "greedy"
    count: Annotated[int, Within(0, 20000)] = 1
    source: str = "snd"
    to: str = "rcv"
    proto: Annotated[str, OneOf("tcp", "udp")] = "tcp"
    family: Annotated[int, OneOf(4, 6)] = 4
    cc: str = "cubic"
    start_s: Annotated[float, Within(0, 1e6)] = 0.0
    stop_s: Annotated[float, Within(0, 1e6)] | None = None
    start_spread_s: Annotated[float, Within(0, 1e6)] = 0.0
    stagger_s: Annotated[float, Within(0, 1e6)] = 0.0
    rate_mbit: Annotated[float, Within(0.000001, 1e6)] | None = None
    period_s: Annotated[float, Within(0.00001, 1e6)] | None = None
    duty: Annotated[float, Within(0.001, 1)] | None = None
    on_s: Annotated[float, Within(0.000001, 1e6)] | None = None
    off_s: Annotated[float, Within(0.000001, 1e6)] | None = None
    exponential: bool = False
    bytes: Annotated[int, Within(1, 10**15)] | None = None
    file: str | None = None
    pkt_bytes: Annotated[int, Within(1, 65507)] | None = None
    dscp: Annotated[int, Within(0, 63)] | None = None
    low: bool = False
    extra_delay_ms: Annotated[float, Within(0, 10000)] = 0.0
    sink_mode: Annotated[str, OneOf("prompt", "every", "slow")] = "prompt"
    sink_rate_mbit: Annotated[float, Within(0.000001, 1e6)] | None = None
    read_ms: Annotated[float, Within(0.1, 100000)] | None = None
    verify: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    sink_options: dict[str, Any] = field(default_factory=dict)
    server_options: dict[str, Any] = field(default_factory=dict)
    objects: Annotated[int, Within(1, 1000)] | None = None
    sessions: Annotated[int, Within(1, 10000)] | None = None


@dataclass(frozen=True)
class Flow:
    """One flow, with its random parameters chosen by the seed."""

    id: int
    group: str
    index: int
    spec: FlowGroup
    start_s: float
    stop_s: float | None
    seed: int
    mark: int = 0

    @property
    def port(self) -> int:
        """Port of its receiver."""
        return SINK_PORT + self.id


@dataclass
class Plan:
    """The plan of one node's agent, as lines."""

    node: str
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Text of the plan file."""
        return "\n".join(self.lines) + "\n"


def module_of(cc: str) -> str | None:
    """The module that implements a congestion control, None if it is built in; TrafficError if unknown."""
    if cc in CONGESTION_CONTROLS:
        return CONGESTION_CONTROLS[cc][1]
    if cc.startswith(LOWPRI_PREFIXES):
        return "tcp_lowpri"
    if cc.startswith(NS2_PREFIX):
        return "lbe_ns2"
    known = ", ".join([*CONGESTION_CONTROLS, "background", "lowpri...", "ns2_sack", "ns2_..."])
    raise TrafficError(f"cc {cc!r}: known are {known}")


def setsockopt_name(cc: str) -> str:
    """The kernel's name of a congestion control (two modules may register the same name)."""
    return CONGESTION_CONTROLS.get(cc, (cc, None))[0]


def modules_of(groups: dict[str, FlowGroup]) -> list[str]:
    """Modules that the flows need, sorted. Two modules that register the same name cannot be used together."""
    used = {group.cc for group in groups.values() if group.count and group.proto == "tcp"}
    modules = sorted({module for cc in used if (module := module_of(cc))})
    if {"tcp_lp", "tcp_lp_intree"} <= set(modules):
        raise TrafficError('lp and lp_intree in one run: both are named "lp" in the kernel; use two cases')
    return modules


def _check(name: str, group: FlowGroup) -> None:
    def need(*keys: str) -> None:
        for key in keys:
            if getattr(group, key) is None:
                raise TrafficError(f"flow.{name}: kind {group.kind!r} needs {key}")

    if group.proto == "tcp":
        module_of(group.cc)
    # over TCP, a flow with pauses may be greedy between them and needs no rate
    if group.kind in ("cbr", "web") or (group.kind in ("square", "onoff") and group.proto == "udp"):
        need("rate_mbit")
    if group.kind == "square":
        need("period_s")
    if group.kind == "onoff":
        need("on_s", "off_s")
    if group.kind == "session":
        need("sessions")
    if group.kind in web.KINDS and group.proto != "tcp":
        raise TrafficError(f"flow.{name}.proto = {group.proto!r}: a {group.kind} flow is over tcp")
    if group.kind == "bytes":
        need("bytes")
    if group.kind == "trace":
        need("file")
        if traces.is_made(group.file or ""):
            traces.parse(group.file or "")
    if group.proto == "udp" and group.kind in ("greedy", "bytes"):
        raise TrafficError(f"flow.{name}: a {group.kind} flow over UDP has no rate; use cbr or square")
    if group.stop_s is not None and group.stop_s <= group.start_s:
        raise TrafficError(f"flow.{name}.stop_s = {group.stop_s:g}: must be after start_s = {group.start_s:g}")


def expand(groups: dict[str, FlowGroup], seed: int) -> list[Flow]:
    """Flows of all groups, numbered in order; ``seed`` decides the starts within each group's spread.

    The random numbers of a group depend on its name and the seed only: adding a group changes no other.
    """
    flows: list[Flow] = []
    number = 1
    delays: dict[str, dict[float, int]] = {}
    for name, group in groups.items():
        _check(name, group)
        mark = 0
        if group.extra_delay_ms:
            # all senders use the same marks as snd
            marks = delays.setdefault("snd" if group.source == EACH_SENDER else group.source, {})
            mark = marks.setdefault(group.extra_delay_ms, len(marks) + 1)
        for index in range(group.count):
            draw = random.Random(f"{seed}/{name}/{index}")
            shift = draw.uniform(0, group.start_spread_s) + index * group.stagger_s
            stop = None if group.stop_s is None else group.stop_s
            spec = group
            if group.source == EACH_SENDER:
                spec = dataclasses.replace(group, source=f"snd{index + 1}" if index else "snd")
            flows.append(
                Flow(
                    number + index,
                    name,
                    index,
                    spec,
                    round(group.start_s + shift, 6),
                    stop,
                    draw.getrandbits(31),
                    mark,
                )
            )
        number += max(1, group.count)
    return flows


def numbers(groups: dict[str, FlowGroup]) -> dict[str, list[int]]:
    """Flow numbers of each group that has flows."""
    by_group: dict[str, list[int]] = {}
    for flow in expand(groups, 0):
        by_group.setdefault(flow.group, []).append(flow.id)
    return by_group


def low_ports(flows: list[Flow]) -> list[int]:
    """Ports of the flows that a strict-priority queue serves last."""
    return [flow.port for flow in flows if flow.spec.low]


def extra_delays(flows: list[Flow]) -> dict[str, dict[int, float]]:
    """Per sending host: additional one-way delay of each mark, milliseconds."""
    table: dict[str, dict[int, float]] = {}
    for flow in flows:
        if flow.mark:
            table.setdefault(flow.spec.source, {})[flow.mark] = flow.spec.extra_delay_ms
    return table


def _number(value: float) -> str:
    """A number in the form of the plan's grammar: plain decimal."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def trace_name(flow: Flow) -> str:
    """Name of the file in the job folder with the trace made for a flow; "" if none is made."""
    return f"flow{flow.id}.trace" if flow.spec.kind == "trace" and traces.is_made(flow.spec.file or "") else ""


def _flow_line(flow: Flow, address: str) -> str:
    spec = flow.spec
    words = {"id": flow.id, "kind": spec.kind, "to": address, "port": flow.port, "proto": spec.proto}
    if spec.proto == "tcp":
        words["cc"] = setsockopt_name(spec.cc)
    words["start_s"] = _number(flow.start_s)
    if flow.stop_s is not None:
        words["stop_s"] = _number(flow.stop_s)
    if spec.rate_mbit is not None:
        words["rate_bps"] = round(spec.rate_mbit * 1e6)
    for key in ("period_s", "duty", "on_s", "off_s"):
        if getattr(spec, key) is not None:
            words[key] = _number(getattr(spec, key))
    if spec.exponential:
        words["exp"] = 1
    for key in ("bytes", "file", "pkt_bytes", "dscp"):
        if getattr(spec, key) is not None:
            words[key] = getattr(spec, key)
    if trace_name(flow):
        words["file"] = trace_name(flow)
        words["overhead_bytes"] = traces.UDP_HEADERS_BYTES
    if flow.mark:
        words["mark"] = flow.mark
    if spec.verify:
        words["verify"] = 1
    words["seed"] = flow.seed
    words |= spec.options
    return "flow " + " ".join(f"{key}={value}" for key, value in words.items())


def _web_lines(flow: Flow, server: str) -> tuple[str, str]:
    """The server's line and the clients' line."""
    spec = flow.spec
    times: dict[str, Any] = {"start_s": _number(flow.start_s)}
    if flow.stop_s is not None:
        times["stop_s"] = _number(flow.stop_s)
    if spec.kind == "web":
        assert spec.rate_mbit is not None  # _check() asks for it
        times["rate_bps"] = round(spec.rate_mbit * 1e6)

    def line(name: str, words: dict[str, Any]) -> str:
        return f"{name} " + " ".join(f"{key}={value}" for key, value in words.items())

    served = {"cc": setsockopt_name(spec.cc)} | web.server_words(flow)
    return line("server", served), line("web", times | web.client_words(flow, server))


def _sink_line(flow: Flow) -> str:
    spec = flow.spec
    words = {"port": flow.port, "flow": flow.id, "proto": spec.proto, "mode": spec.sink_mode}
    if spec.read_ms is not None:
        words["read_ms"] = _number(spec.read_ms)
    if spec.sink_rate_mbit is not None:
        words["rate_bps"] = round(spec.sink_rate_mbit * 1e6)
    if spec.verify:
        words["verify"] = 1
        words["seed"] = flow.seed
    words |= spec.sink_options
    return "sink " + " ".join(f"{key}={value}" for key, value in words.items())


def plans(
    flows: list[Flow],
    addresses: dict[str, dict[int, str]],
    queues: list[Any],
    *,
    zero_ns: int,
    end_s: float,
    sample_ms: int,
    out: str,
) -> list[Plan]:
    """One plan for each node that sends, receives or has a queue to be sampled."""
    plan_of: dict[str, Plan] = {}

    def plan(node: str) -> Plan:
        if node not in plan_of:
            plan_of[node] = Plan(
                node,
                [
                    f"node {node}",
                    f"zero_ns {zero_ns}",
                    f"end_s {_number(end_s)}",
                    f"sample_ms {sample_ms}",
                    f"out {out}",
                ],
            )
        return plan_of[node]

    for queue in queues:
        plan(queue.node).lines.append(f"queue id={queue.id} dev={queue.dev} handle={queue.handle}")
    for flow in flows:
        for key in ("source", "to"):
            if getattr(flow.spec, key) not in addresses:
                raise TrafficError(
                    f"flow.{flow.group}.{key} = {getattr(flow.spec, key)!r}: hosts are " + ", ".join(addresses)
                )
        if flow.spec.kind in web.KINDS:
            server, clients = _web_lines(flow, addresses[flow.spec.source][flow.spec.family])
            plan(flow.spec.source).lines.append(server)
            plan(flow.spec.to).lines.append(clients)
            continue
        plan(flow.spec.to).lines.append(_sink_line(flow))
        plan(flow.spec.source).lines.append(_flow_line(flow, addresses[flow.spec.to][flow.spec.family]))
    return [plan_of[node] for node in sorted(plan_of)]
