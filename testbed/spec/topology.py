# SPDX-License-Identifier: GPL-2.0
"""Networks as lists of the ip, tc and sysctl lines that an administrator would type.

One router (what nearly every experiment uses):

    snd eth0 ---- west rtr east ---- eth0 rcv
    10.0.1.2      10.0.1.1 10.0.2.1      10.0.2.2

    snd:eth0  netem   processing time, access rate, all one-way delay of the forward path
    rtr:east  tbf     the bottleneck's rate, and below it the queue under test (skbprio: htb)
    rcv:eth0  netem   processing time, access rate, all one-way delay of the backward path
    rtr:west  tbf     the bottleneck backward: same rate, same queue

No host has the bottleneck on a device of its own: a TCP whose own qdisc drops a packet is told at
once, sends it again unseen, and keeps its queue short (small queues), none of which a router does.

A chain (``hops`` given) puts a wire between each pair of routers, a namespace whose two devices
carry that link's delay and nothing else, so that the tbf at each end stays the only queue:

    snd -- rtr ==== w1 ---- rtr2 ==== w2 ---- rcv      hosts may hang at any router

Further senders, jitter behind the bottleneck and a bottleneck on the sender's own device make a chain
too, of one link. With a link trace the link of the first hop is lbe_link in the tbf's place.

Nothing here runs a command: :func:`build` is a pure function from parameters to a :class:`Network`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..base.errors import LbeError
from . import ranges

ETHERNET_HEADER_BYTES = 14  # counted in the packet length that qdiscs see
#: octets on the wire beside the IP packet and the Ethernet header: preamble 8, FCS 4, gap 12
ETHERNET_EXTRA_BYTES = 24
#: what ``stab overhead`` adds to the qdisc's packet length for each way to count a link's bits
FRAMINGS = {"ip": -ETHERNET_HEADER_BYTES, "link": 0, "ethernet": ETHERNET_EXTRA_BYTES}
QUEUE_KINDS = ("pfifo", "bfifo", "red", "prio", "skbprio", "policer", "tc")
BOTTLENECKS = ("router", "sender")
LOW_KINDS = ("flows", "le")
#: allowed values of a network's, a queue's and a shown clock's numbers, in the unit of their names
RANGES = {
    "rate_mbit": (0.01, 10000),
    "reverse_rate_mbit": (0.01, 10000),
    "delay_ms": (0, 10000),
    "access_delay_ms": (0, 10000),
    "access_rate_mbit": (0.01, 100000),
    "processing_us": (0, 1000000),
    "mtu": (576, 9000),
    "senders": (1, 90),
    "jitter_ms": (0, 1000),
    "loss_pct": (0, 100),
    "reverse_loss_pct": (0, 100),
}
QUEUE_RANGES = {
    "packets": (1, 1000000),
    "bytes": (1, 10**9),
    "bdp": (0.001, 1000),
    "red_min_packets": (0, 1000000),
    "red_max_packets": (0, 1000000),
    "red_min_fraction": (0, 1),
    "red_max_fraction": (0, 1),
    "red_probability": (0, 1),
    "red_burst_packets": (1, 1000000),
}
TICK_RANGES = {"tick_us": (1, 1000000), "drift_ppm": (-1000, 1000)}
#: an idle netem holds all of a path's packets in flight; its own limit must never be the bottleneck
NETEM_LIMIT_PKTS = 200000
#: cap of the default random processing time at senders, microseconds
PROCESSING_CAP_US = 1000.0
IPV6_MTU_MIN = 1280  # RFC 8200; below, a network is IPv4 alone
#: behind a bottleneck on the sender's own device no queue can form
OWN_DEVICE_ROUTER_PKTS = 1000
PRIO_BANDS_MAX = 16  # TCQ_PRIO_BANDS of the kernel
LE_TOS = 0x04  # DSCP 1 (RFC 8622) in the TOS byte


class TopologyError(LbeError):
    """A parameter of the network is wrong; the text names it and the allowed range."""

    exit_status = 2


@dataclass(frozen=True)
class Queue:
    """The queue under test. Its depth is given by exactly one of packets, bytes and bdp.

    packets: depth in packets of one MTU; bytes: depth in bytes as the qdisc counts them;
    bdp: depth as a multiple of rate times base round-trip time.
    low: (prio, skbprio) what is served last: "le" (DSCP LE) or "flows" (flows marked low).
    red_*: thresholds (packets, or fraction of the depth), see Documentation/testbed.md.
    tc: (kind tc) the qdisc line, with {limit}, {limit_bytes}, {rate_bit} to be filled in.
    """

    kind: str = "pfifo"
    packets: int | None = None
    bytes: int | None = None
    bdp: float | None = None
    low: str = "flows"
    red_min_packets: float | None = None
    red_max_packets: float | None = None
    red_min_fraction: float | None = None
    red_max_fraction: float | None = None
    red_probability: float = 0.1
    red_burst_packets: int | None = None
    red_flags: str = ""
    tc: str = ""


@dataclass(frozen=True)
class Hop:
    """A further bottleneck link of a chain."""

    rate_mbit: float = 10.0
    delay_ms: float = 10.0
    queue: Queue = field(default_factory=lambda: Queue(packets=100))


@dataclass(frozen=True)
class Tick:
    """Clock that a host shows in its TCP timestamps (module lbe_tick).

    tick_us: length of a tick, 1 to 1000000; offset_ticks: added; drift_ppm: speed error,
    -1000 to 1000; wrap_at_s: choose the offset so that the value wraps at this experiment time;
    per_flow: add a different offset to each connection, as Linux does.
    """

    tick_us: int = 1000
    offset_ticks: int = 0
    drift_ppm: int = 0
    wrap_at_s: float | None = None
    per_flow: bool = False


@dataclass(frozen=True)
class Topology:
    """Parameters of a network; all delays are one way.

    rate_mbit: bottleneck; framing: which octets count ("ip", "link" = with the Ethernet header,
    "ethernet" = all that the wire carries); delay_ms: bottleneck link; access_*: the links of the
    hosts (two on a path); processing_us: random time a sender takes for a packet, never reordering
    (None: one packet's time at the bottleneck, at most 1 ms); loss_pct: random loss, forward.
    senders: hosts snd, snd2, ...; bottleneck: at the router, or on the device of "sender" snd itself;
    link_trace: opportunities to send instead of a rate, forward (links.py); jitter_ms: more or less
    delay behind the bottleneck, forward, for each packet by itself: it reorders.
    """

    rate_mbit: float = 10.0
    reverse_rate_mbit: float | None = None
    framing: str = "ethernet"
    mtu: int = 1500
    delay_ms: float = 48.0
    access_rate_mbit: float = 100.0
    access_delay_ms: float = 1.0
    processing_us: float | None = None
    senders: int = 1
    bottleneck: str = "router"
    link_trace: str = ""
    jitter_ms: float = 0.0
    queue: Queue = field(default_factory=lambda: Queue(packets=86))
    reverse_queue: Queue | None = None
    loss_pct: float = 0.0
    reverse_loss_pct: float = 0.0
    ecn: bool = False
    timestamps: bool = True
    offloads: bool = False
    hops: tuple[Hop, ...] = ()
    hosts: dict[str, str] = field(default_factory=dict)
    tick: dict[str, Tick] = field(default_factory=dict)

    @property
    def chained(self) -> bool:
        """Whether the link needs wires of its own beside the router."""
        return bool(self.hops or self.hosts or self.senders > 1 or self.jitter_ms or self.bottleneck == "sender")

    @property
    def base_rtt_s(self) -> float:
        """Round-trip time of the empty path without transmission times, seconds."""
        links = self.delay_ms + sum(hop.delay_ms for hop in self.hops)
        return 2 * (links + 2 * self.access_delay_ms) / 1e3

    @property
    def frame_bytes(self) -> int:
        """A full packet as the bottleneck counts it, bytes."""
        return self.mtu + ETHERNET_HEADER_BYTES + FRAMINGS[self.framing]

    def bdp_bytes(self) -> float:
        """Bandwidth-delay product of the bottleneck, bytes as the bottleneck counts them."""
        return self.rate_mbit * 1e6 / 8 * self.base_rtt_s

    def tcp_capacity_mbit(self) -> float:
        """The most that TCP with timestamps can carry over the bottleneck, Mbit/s of payload."""
        headers = 20 + 20 + (12 if self.timestamps else 0)
        return self.rate_mbit * (self.mtu - headers) / self.frame_bytes


@dataclass
class Node:
    """What is typed on one node. Lines of ``ip`` and ``tc`` go to their -batch modes."""

    name: str
    ip: list[str] = field(default_factory=list)
    tc: list[str] = field(default_factory=list)
    sysctl: dict[str, str] = field(default_factory=dict)
    devices: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class QueueHandle:
    """A queue to be sampled: ``id`` in the records, device and qdisc handle on its node."""

    id: int
    node: str
    dev: str
    handle: str
    label: str


@dataclass
class Network:
    """The network as printable commands."""

    links: list[str]
    nodes: dict[str, Node]
    queues: list[QueueHandle]
    addresses: dict[str, dict[int, str]]
    queue_packets: int
    queue_bytes: int

    def lines(self) -> list[str]:
        """Every command in the order in which the job runs them."""
        out = [f"ip netns add {name}" for name in self.nodes]
        out += [f"ip {line}" for line in self.links]
        for node in self.nodes.values():
            out += [f"ip netns exec {node.name} sysctl -w '{key}={value}'" for key, value in node.sysctl.items()]
            out += [f"ip -n {node.name} {line}" for line in node.ip]
            out += [f"tc -n {node.name} {line}" for line in node.tc]
        return out


# ------------------------------------------------------------------------------------- sysctls

#: Pinned on every host and router; a kernel's or distribution's default must not decide a result.
PINNED_SYSCTLS: dict[str, tuple[str, str]] = {
    # key: (value, reason)
    "net.ipv4.conf.all.rp_filter": ("0", "no source check: chains route per host"),
    "net.ipv4.tcp_congestion_control": ("cubic", "flows name theirs; this is for what names none"),
    "net.ipv4.tcp_no_metrics_save": ("1", "a connection must not inherit its predecessor's ssthresh"),
    "net.ipv4.tcp_timestamps": ("1", "one-way delay needs them; 1 = random offset per connection"),
    "net.ipv4.tcp_sack": ("1", "default, and what PRR and RACK build on"),
    "net.ipv4.tcp_dsack": ("1", "default: undo of spurious recoveries"),
    "net.ipv4.tcp_window_scaling": ("1", "default"),
    "net.ipv4.tcp_ecn": ("2", "default: ECN only if asked for, so that lp_ecn alone is marked"),
    "net.ipv4.tcp_slow_start_after_idle": ("1", "default: RFC 2861 for on/off sources"),
    "net.ipv4.tcp_early_retrans": ("3", "default: tail loss probe on"),
    "net.ipv4.tcp_recovery": ("1", "default: RACK on"),
    "net.ipv4.tcp_frto": ("2", "default"),
    "net.ipv4.tcp_moderate_rcvbuf": ("1", "default: receive buffer grows with the flow"),
    "net.ipv4.tcp_mtu_probing": ("0", "packet size is the experiment's"),
    "net.ipv4.tcp_autocorking": ("0", "what a paced source writes leaves when it is written"),
    "net.ipv4.tcp_syn_retries": ("12", "a path full of packets delays a connection, it does not end it"),
    "net.ipv4.tcp_synack_retries": ("12", "the same"),
    "net.ipv4.tcp_retries2": ("30", "the same"),
    "net.ipv4.tcp_max_syn_backlog": ("16384", "many connections may start at once"),
    "net.ipv4.tcp_fin_timeout": ("10", "ports of short connections come back soon"),
    "net.ipv4.tcp_max_tw_buckets": ("65536", "the same"),
    "net.ipv4.ip_local_port_range": ("30000 65000", "below are the agent's fixed ports"),
    "net.ipv4.tcp_rmem": ("4096 4194304 33554432", "the receive window never limits a sender"),
    "net.ipv4.tcp_wmem": ("4096 524288 33554432", "the send buffer never limits a sender"),
    "net.ipv6.conf.all.accept_ra": ("0", "addresses and routes are static"),
    "net.ipv6.conf.default.accept_ra": ("0", "the same, for devices to come"),
    "net.ipv6.conf.default.accept_dad": ("0", "duplicate detection sends packets at random times"),
    "net.ipv6.conf.default.dad_transmits": ("0", "the same"),
    "net.ipv6.conf.default.router_solicitations": ("0", "no packets but the experiment's"),
    "net.ipv6.conf.default.addr_gen_mode": ("1", "no link-local address: no MLD, no neighbour traffic"),
}

ROUTER_SYSCTLS = {"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"}


# --------------------------------------------------------------------------------------- queues


def queue_depth(topology: Topology, queue: Queue, rate_mbit: float) -> tuple[int, int]:
    """Depth of ``queue`` as (packets, bytes), at least one packet."""
    given = [name for name in ("packets", "bytes", "bdp") if getattr(queue, name) is not None]
    if len(given) != 1:
        raise TopologyError(f"queue: give exactly one of packets, bytes, bdp (got {given or 'none'})")
    frame = topology.frame_bytes
    if queue.packets is not None:
        packets, size = queue.packets, queue.packets * frame
    elif queue.bytes is not None:
        packets, size = max(1, queue.bytes // frame), queue.bytes
    else:
        bdp = rate_mbit * 1e6 / 8 * topology.base_rtt_s
        assert queue.bdp is not None  # one of the three is given
        size = round(queue.bdp * bdp)
        packets = max(1, round(size / frame))
    if packets < 1 or size < frame:
        packets, size = max(1, packets), max(frame, size)
    return packets, size


def _low_filters(parent: str, low: str, low_ports: list[int], action: str) -> list[str]:
    """Filters that send low-priority packets to ``action``; both directions of a flow match."""
    lines = []
    for preference, protocol in ((1, "ip"), (2, "ipv6")):
        base = f"filter add dev {{dev}} parent {parent} protocol {protocol} prio {preference} flower"
        if low == "le":
            lines.append(f"{base} ip_tos {LE_TOS:#04x}/0xfc {action}")
        else:
            for port in low_ports:
                for kind in ("tcp", "udp"):
                    lines.append(f"{base} ip_proto {kind} dst_port {port} {action}")
                    lines.append(f"{base} ip_proto {kind} src_port {port} {action}")
    return lines


def _red_threshold(packets: float | None, fraction: float | None, depth: int, otherwise: float) -> float:
    """A RED threshold in packets, given as such or as a fraction of the queue's depth."""
    if packets is not None and fraction is not None:
        raise TopologyError("queue: give a red threshold in packets or as a fraction, not both")
    if packets is not None:
        return packets
    return fraction * depth if fraction is not None else otherwise


def _queue_lines(topology: Topology, queue: Queue, rate_mbit: float, low_ports: list[int]) -> list[str]:
    """tc lines of the queue under test below ``parent 1:1``, with {dev} left open."""
    packets, size = queue_depth(topology, queue, rate_mbit)
    head = "qdisc add dev {dev} parent 1:1 handle 10:"
    if queue.kind == "pfifo":
        return [f"{head} pfifo limit {packets}"]
    if queue.kind == "bfifo":
        return [f"{head} bfifo limit {size}"]
    if queue.kind == "red":
        frame = topology.frame_bytes
        low = _red_threshold(queue.red_min_packets, queue.red_min_fraction, packets, packets / 12)
        high = _red_threshold(queue.red_max_packets, queue.red_max_fraction, packets, 3 * low)
        burst = queue.red_burst_packets or max(1, math.ceil((2 * low + high) / 3))
        flags = f" {queue.red_flags}" if queue.red_flags else ""
        return [
            f"{head} red limit {size} min {round(low * frame)} max {round(high * frame)} avpkt {frame}"
            f" burst {burst} bandwidth {round(rate_mbit * 1e6)}bit probability {queue.red_probability}{flags}"
        ]
    if queue.kind == "prio":
        return [
            f"{head} prio bands 2 priomap" + " 0" * 16,
            f"qdisc add dev {{dev}} parent 10:1 handle 11: pfifo limit {packets}",
            f"qdisc add dev {{dev}} parent 10:2 handle 12: pfifo limit {packets}",
            *_low_filters("10:", queue.low, low_ports, "classid 10:2"),
        ]
    if queue.kind == "skbprio":
        # forwarding sets skb->priority from the TOS byte, where LE is best effort: set it after that
        lift = "action skbedit priority {}"
        rest = [
            f"filter add dev {{dev}} egress protocol {proto} prio {pref} matchall {lift.format(1)}"
            for pref, proto in ((8, "ip"), (9, "ipv6"))
        ]
        lifted = [
            line.replace("parent egress", "egress")
            for line in _low_filters("egress", queue.low, low_ports, lift.format(0))
        ]
        return [f"{head} skbprio limit {packets}", "qdisc add dev {dev} clsact", *lifted, *rest]
    if queue.kind == "tc":
        line = queue.tc.format(limit=packets, limit_bytes=size, rate_bit=round(rate_mbit * 1e6))
        return [f"{head} {line}"]
    raise TopologyError(f"queue.kind {queue.kind!r}: allowed are {', '.join(QUEUE_KINDS)}")


def _policer_lines(topology: Topology, rate_mbit: float, queue: Queue) -> list[str]:
    """A link that drops what comes above its rate instead of queueing it; ``queue`` is the depth of its bucket."""
    _packets, size = queue_depth(topology, queue, rate_mbit)
    stab = FRAMINGS[topology.framing]
    overhead = f" overhead {stab}" if stab > 0 else ""
    return [
        f"qdisc add dev {{dev}} root handle 1: tbf rate {round(topology.access_rate_mbit * 1e6)}bit"
        f" burst {topology.frame_bytes + 16} limit 100000000",
        "qdisc add dev {dev} parent 1:1 handle 10: pfifo limit 1000",
        "qdisc add dev {dev} clsact",
        f"filter add dev {{dev}} egress protocol all prio 1 matchall action police rate {round(rate_mbit * 1e6)}bit"
        f" burst {size} mtu 65535{overhead} conform-exceed drop/ok",
    ]


def _bottleneck_lines(
    topology: Topology, dev: str, rate_mbit: float, queue: Queue, low_ports: list[int], *, trace: bool = False
) -> list[str]:
    """A link's rate (or trace) and queue at one of its ends."""
    stab = FRAMINGS[topology.framing]
    size_table = f" stab overhead {stab} linklayer ethernet" if stab else ""
    if queue.kind == "policer":
        return [line.replace("{dev}", dev) for line in _policer_lines(topology, rate_mbit, queue)]
    root, rate = f"qdisc add dev {{dev}} root handle 1:{size_table}", f"rate {round(rate_mbit * 1e6)}bit"
    # the shaper sends packet by packet, as a line does: one packet of burst for tbf, none for htb, which may overdraw
    lines = [f"{root} tbf {rate} burst {topology.frame_bytes + 16} limit 100000000"]
    if queue.kind == "skbprio":
        # tbf looks at the next packet by taking it out, and a filler packet so taken goes before what arrives then
        lines = [f"{root} htb default 1", f"class add dev {{dev}} parent 1: classid 1:1 htb {rate} burst 1 cburst 1"]
    elif trace:
        lines = [f"{root} lbe_link"]
    lines += _queue_lines(topology, queue, rate_mbit, low_ports)
    return [line.replace("{dev}", dev) for line in lines]


def _wire(delay_ms: float, spread_ms: float) -> str:
    """netem arguments of a wire. It has no rate, so a spread (more or less by so much, uniform) reorders."""
    return _netem(delay_ms - spread_ms, 2e3 * spread_ms)


def _netem(delay_ms: float, jitter_us: float = 0.0, rate_mbit: float = 0.0, loss_pct: float = 0.0) -> str:
    """netem arguments. With a rate netem keeps order whatever the jitter (it is added to the last packet's time)."""
    delay_us = delay_ms * 1e3 + jitter_us / 2
    words = [f"netem limit {NETEM_LIMIT_PKTS} delay {delay_us:.1f}us"]
    if jitter_us:
        words.append(f"{jitter_us / 2:.1f}us")
    if loss_pct:
        words.append(f"loss random {loss_pct:g}%")
    if rate_mbit:
        words.append(f"rate {round(rate_mbit * 1e6)}bit")
    return " ".join(words)


def _sender_lines(
    dev: str, delay_ms: float, jitter_us: float, rate_mbit: float, loss_pct: float, extra_ms: dict[int, float]
) -> list[str]:
    """A host's own egress: processing, access rate and delay; marked flows have ``extra_ms`` more."""
    if not extra_ms:
        return [f"qdisc add dev {dev} root handle 1: {_netem(delay_ms, jitter_us, rate_mbit, loss_pct)}"]
    delays = sorted(set(extra_ms.values()))
    if len(delays) + 1 > PRIO_BANDS_MAX:
        raise TopologyError(f"extra_delay_ms: {len(delays)} different values at one host, at most {PRIO_BANDS_MAX - 1}")
    lines = [f"qdisc add dev {dev} root handle 1: prio bands {len(delays) + 1} priomap" + " 0" * 16]
    for band, extra in enumerate([0.0, *delays], start=1):
        lines.append(
            f"qdisc add dev {dev} parent 1:{band} handle {100 + band}: "
            + _netem(delay_ms + extra, jitter_us, rate_mbit, loss_pct)
        )
    for mark, extra in sorted(extra_ms.items()):
        band = delays.index(extra) + 2
        lines.append(f"filter add dev {dev} parent 1: protocol all handle {mark} fw classid 1:{band}")
    return lines


# ---------------------------------------------------------------------------------------- build


def _mac(subnet: int, host: int) -> str:
    return f"02:00:00:00:{subnet:02x}:{host:02x}"


class _Builder:
    """Lays links between namespaces and keeps count of subnets."""

    def __init__(self, topology: Topology, names: list[str], routers: set[str]):
        self.topology = topology
        self.links: list[str] = []
        self.nodes = {name: Node(name) for name in names}
        self.routers = routers
        for name, node in self.nodes.items():
            node.sysctl = {key: value for key, (value, _reason) in PINNED_SYSCTLS.items()}
            if name in routers:
                node.sysctl |= ROUTER_SYSCTLS
            if topology.ecn:
                node.sysctl["net.ipv4.tcp_ecn"] = "1"
            if not topology.timestamps:
                node.sysctl["net.ipv4.tcp_timestamps"] = "0"
            node.ip.append("link set dev lo up")

    def link(self, subnet: int, left: tuple[str, str], right: tuple[str, str]) -> None:
        """A veth pair with static addresses and neighbours; left is .1's side unless it is a host."""
        ends = [(left, 2 if left[0] not in self.routers else 1), (right, 2 if left[0] in self.routers else 1)]
        (lnode, ldev), (rnode, rdev) = left, right
        self.links.append(
            f"link add name {ldev} netns {lnode} mtu {self.topology.mtu} address {_mac(subnet, ends[0][1])}"
            f" type veth peer name {rdev} netns {rnode} mtu {self.topology.mtu}"
            f" address {_mac(subnet, ends[1][1])}"
        )
        for ((node, dev), me), (_, peer) in zip(ends, reversed(ends)):
            lines = self.nodes[node].ip
            self.nodes[node].devices.append(dev)
            # a GSO train would cross the queue as one packet; offloads are the experiment's choice
            if not self.topology.offloads:
                lines.append(f"link set dev {dev} gso_max_segs 1")
            lines += [
                f"link set dev {dev} up",
                f"addr add 10.0.{subnet}.{me}/24 dev {dev}",
                f"neigh add 10.0.{subnet}.{peer} lladdr {_mac(subnet, peer)} dev {dev} nud permanent",
            ]
            if self.topology.mtu >= IPV6_MTU_MIN:
                lines += [
                    f"addr add fd00:{subnet}::{me}/64 dev {dev} nodad",
                    f"neigh add fd00:{subnet}::{peer} lladdr {_mac(subnet, peer)} dev {dev} nud permanent",
                ]

    def route(self, node: str, subnet: int | None, via_subnet: int, via_host: int, dev: str) -> None:
        """A static route for both families; subnet None is the default route."""
        four = "default" if subnet is None else f"10.0.{subnet}.0/24"
        six = "::/0" if subnet is None else f"fd00:{subnet}::/64"
        self.nodes[node].ip.append(f"route add {four} via 10.0.{via_subnet}.{via_host} dev {dev}")
        if self.topology.mtu >= IPV6_MTU_MIN:
            self.nodes[node].ip.append(f"route add {six} via fd00:{via_subnet}::{via_host} dev {dev}")


def _tick_sysctls(tick: Tick, zero_s: float) -> dict[str, str]:
    """Settings of lbe_tick on one host."""
    offset = tick.offset_ticks
    if tick.wrap_at_s is not None:
        ticks_then = round((zero_s + tick.wrap_at_s) * 1e6 / tick.tick_us * (1 + tick.drift_ppm / 1e6))
        offset = -ticks_then
    return {
        "net.lbe_tick.drift_ppm": str(tick.drift_ppm),
        "net.lbe_tick.offset_ticks": str(offset % 2**32),
        "net.lbe_tick.per_flow": str(int(tick.per_flow)),
        # the last one switches it on
        "net.lbe_tick.tick_us": str(tick.tick_us),
    }


def _check(topology: Topology) -> None:
    """Refuse what no link can be."""
    for name, bounds in RANGES.items():
        ranges.check(TopologyError, name, getattr(topology, name), bounds)
    for name in ("queue", "reverse_queue"):
        _check_queue(name, getattr(topology, name))
    for index, hop in enumerate(topology.hops):
        for name in ("rate_mbit", "delay_ms"):
            ranges.check(TopologyError, f"hops[{index}].{name}", getattr(hop, name), RANGES[name])
        _check_queue(f"hops[{index}].queue", hop.queue)
    if topology.bottleneck not in BOTTLENECKS:
        raise TopologyError(f"bottleneck {topology.bottleneck!r}: allowed are {', '.join(BOTTLENECKS)}")
    if topology.jitter_ms > topology.delay_ms:
        raise TopologyError(f"jitter_ms = {topology.jitter_ms:g}: allowed are 0 to delay_ms = {topology.delay_ms:g}")
    if topology.link_trace and topology.queue.kind in ("skbprio", "policer"):
        raise TopologyError(f"link_trace: a queue of kind {topology.queue.kind!r} has a rate of its own")
    if topology.framing not in FRAMINGS:
        raise TopologyError(f"framing {topology.framing!r}: allowed are {', '.join(FRAMINGS)}")
    for node, tick in topology.tick.items():
        for name, bounds in TICK_RANGES.items():
            ranges.check(TopologyError, f"tick.{node}.{name}", getattr(tick, name), bounds)


def _check_queue(place: str, queue: Queue | None) -> None:
    if not queue:
        return
    for name, bounds in QUEUE_RANGES.items():
        ranges.check(TopologyError, f"{place}.{name}", getattr(queue, name), bounds)
    if queue.low not in LOW_KINDS:
        raise TopologyError(f"{place}.low {queue.low!r}: allowed are {', '.join(LOW_KINDS)}")


def build(
    topology: Topology,
    low_ports: list[int] | None = None,
    extra_delay_ms: dict[str, dict[int, float]] | None = None,
    sysctl: dict[str, dict[str, str]] | None = None,
    zero_s: float = 10.0,
) -> Network:
    """Make the network's commands.

    low_ports: ports of flows that a strict-priority queue serves last; extra_delay_ms: per host, per
    SO_MARK, additional one-way delay; sysctl: per node (or "all") settings that override the pinned
    ones; zero_s: CLOCK_MONOTONIC at experiment time 0, for clocks that wrap at a given time.

    Raises TopologyError for a value out of range.
    """
    _check(topology)
    low_ports, extra_delay_ms = low_ports or [], extra_delay_ms or {}
    if topology.chained:
        network = _chain(topology, low_ports, extra_delay_ms)
    else:
        network = _single(topology, low_ports, extra_delay_ms)
    for name, tick in topology.tick.items():
        if name not in network.nodes:
            raise TopologyError(f"tick.{name}: no such node; there are {', '.join(network.nodes)}")
        network.nodes[name].sysctl["net.ipv4.tcp_timestamps"] = "2"  # lbe_tick counts from a clock without offset
        network.nodes[name].sysctl |= _tick_sysctls(tick, zero_s)
    for name, settings in (sysctl or {}).items():
        if name != "all" and name not in network.nodes:
            raise TopologyError(f"sysctl.{name}: no such node; there are all, {', '.join(network.nodes)}")
        for node in network.nodes.values() if name == "all" else [network.nodes[name]]:
            node.sysctl |= {key: str(value) for key, value in settings.items()}
    return network


def _processing_us(topology: Topology) -> float:
    if topology.processing_us is not None:
        return topology.processing_us
    return min(PROCESSING_CAP_US, topology.frame_bytes * 8 / topology.rate_mbit)


def _single(topology: Topology, low_ports: list[int], extra: dict[str, dict[int, float]]) -> Network:
    """Sender, router, receiver."""
    make = _Builder(topology, ["snd", "rtr", "rcv"], {"rtr"})
    make.link(1, ("snd", "eth0"), ("rtr", "west"))
    make.link(2, ("rtr", "east"), ("rcv", "eth0"))
    make.route("snd", None, 1, 1, "eth0")
    make.route("rcv", None, 2, 1, "eth0")

    one_way_ms = topology.delay_ms + 2 * topology.access_delay_ms
    jitter_us = _processing_us(topology)
    rate, back_rate = topology.rate_mbit, topology.reverse_rate_mbit or topology.rate_mbit
    back_queue = topology.reverse_queue or topology.queue
    for host, loss_pct in (("snd", topology.loss_pct), ("rcv", topology.reverse_loss_pct)):
        make.nodes[host].tc += _sender_lines(
            "eth0", one_way_ms, jitter_us, topology.access_rate_mbit, loss_pct, extra.get(host, {})
        )
    make.nodes["rtr"].tc += _bottleneck_lines(
        topology, "east", rate, topology.queue, low_ports, trace=bool(topology.link_trace)
    )
    make.nodes["rtr"].tc += _bottleneck_lines(topology, "west", back_rate, back_queue, low_ports)

    packets, size = queue_depth(topology, topology.queue, rate)
    return Network(
        make.links,
        make.nodes,
        [
            QueueHandle(1, "rtr", "east", "10:", "bottleneck"),
            QueueHandle(2, "rtr", "west", "10:", "reverse bottleneck"),
        ],
        {"snd": {4: "10.0.1.2", 6: "fd00:1::2"}, "rcv": {4: "10.0.2.2", 6: "fd00:2::2"}},
        packets,
        size,
    )


def _chain(topology: Topology, low_ports: list[int], extra: dict[str, dict[int, float]]) -> Network:
    """Routers in a line, wires between them, hosts at the ends and wherever ``hosts`` says."""
    first = Hop(topology.rate_mbit, topology.delay_ms, topology.queue)
    hops = [first, *topology.hops]
    routers = ["rtr", *[f"rtr{index}" for index in range(2, len(hops) + 2)]]
    wires = [f"w{index}" for index in range(1, len(hops) + 1)]
    senders = {f"snd{number}": routers[0] for number in range(2, topology.senders + 1)}
    hosts = {"snd": routers[0], "rcv": routers[-1], **senders, **topology.hosts}
    own_device = topology.bottleneck == "sender"
    if own_device and extra.get("snd"):
        raise TopologyError('bottleneck = "sender": no flow of snd can have extra_delay_ms')
    for name, router in hosts.items():
        if router not in routers:
            raise TopologyError(f"hosts.{name} = {router!r}: allowed are {', '.join(routers)}")
    make = _Builder(topology, [*hosts, *routers, *wires], {*routers, *wires})
    jitter_us = _processing_us(topology)

    queues = []
    # subnets: 100+2i west half and 101+2i east half of hop i; hosts 1 (snd), 2 (rcv), 3...
    for index, (hop, wire) in enumerate(zip(hops, wires)):
        left, right = routers[index], routers[index + 1]
        near, far = 100 + 2 * index, 101 + 2 * index
        make.link(near, (left, "east"), (wire, "west"))
        make.link(far, (wire, "east"), (right, "west"))
        if index == 0 and own_device:
            wide = Queue(packets=OWN_DEVICE_ROUTER_PKTS)
            make.nodes[left].tc += _bottleneck_lines(topology, "east", topology.access_rate_mbit, wide, [])
        else:
            trace = index == 0 and bool(topology.link_trace)
            make.nodes[left].tc += _bottleneck_lines(topology, "east", hop.rate_mbit, hop.queue, low_ports, trace=trace)
        make.nodes[right].tc += _bottleneck_lines(topology, "west", hop.rate_mbit, hop.queue, low_ports)
        for dev in ("west", "east"):
            spread_ms = topology.jitter_ms if index == 0 and dev == "east" else 0.0
            make.nodes[wire].tc.append(f"qdisc add dev {dev} root handle 1: {_wire(hop.delay_ms, spread_ms)}")
        queues += [
            QueueHandle(1, "snd", "eth0", "10:", "own device")
            if index == 0 and own_device
            else QueueHandle(2 * index + 1, left, "east", "10:", f"hop {index + 1}"),
            QueueHandle(2 * index + 2, right, "west", "10:", f"hop {index + 1} reverse"),
        ]

    subnets = {}
    for number, (host, router) in enumerate(hosts.items(), start=1):
        subnets[host] = number
        port = f"h{number}"
        make.link(number, (host, "eth0"), (router, port))
        make.route(host, None, number, 1, "eth0")
        if host == "snd" and own_device:
            make.nodes[host].tc += _bottleneck_lines(
                topology, "eth0", topology.rate_mbit, topology.queue, low_ports, trace=bool(topology.link_trace)
            )
        else:
            make.nodes[host].tc += _sender_lines(
                "eth0",
                topology.access_delay_ms,
                jitter_us,
                topology.access_rate_mbit,
                topology.loss_pct if host == "snd" or host in senders else 0.0,
                extra.get(host, {}),
            )
        make.nodes[router].tc.append(
            f"qdisc add dev {port} root handle 1: " + _netem(topology.access_delay_ms, 0.0, topology.access_rate_mbit)
        )

    for host, subnet in subnets.items():
        at = routers.index(hosts[host])
        for index, wire in enumerate(wires):
            near, far = 100 + 2 * index, 101 + 2 * index
            if at > index:  # host lies east of this wire
                make.route(routers[index], subnet, near, 2, "east")
                make.route(wire, subnet, far, 2, "east")
            else:
                make.route(routers[index + 1], subnet, far, 1, "west")
                make.route(wire, subnet, near, 1, "west")
    packets, size = queue_depth(topology, topology.queue, topology.rate_mbit)
    addresses = {host: {4: f"10.0.{subnet}.2", 6: f"fd00:{subnet}::2"} for host, subnet in subnets.items()}
    return Network(make.links, make.nodes, queues, addresses, packets, size)


# --------------------------------------------------------------------------------------- change


def difference(before: Network, after: Network) -> list[tuple[str, str]]:
    """Commands (node, shell line) that turn a running ``before`` into ``after``.

    Only qdisc parameters and sysctls can change in mid-run; raises TopologyError for anything else.
    """
    commands = []
    for name, node in after.nodes.items():
        old = before.nodes.get(name)
        if old is None or before.links != after.links or old.ip != node.ip or len(old.tc) != len(node.tc):
            raise TopologyError(
                f"node {name}: an event can change rates, delays, losses, queue limits and sysctls only"
            )
        for was, now in zip(old.tc, node.tc):
            if was != now:
                if not now.startswith(("qdisc add", "class add")):
                    raise TopologyError(f"an event cannot change {was!r} into {now!r}")
                commands.append((name, "tc " + now.replace(" add", " change", 1)))
        commands += [
            (name, f"sysctl -q -w '{key}={value}'")
            for key, value in node.sysctl.items()
            if old.sysctl.get(key) != value
        ]
    return commands
