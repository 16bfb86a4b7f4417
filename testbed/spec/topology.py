# SPDX-License-Identifier: GPL-2.0
"""Networks as lists of ip, tc and sysctl lines, as an administrator would type them.

One router (used by nearly every experiment):

    snd eth0 ---- west rtr east ---- eth0 rcv
    10.0.1.2      10.0.1.1 10.0.2.1      10.0.2.2

    snd:eth0  netem   processing time, access rate, all one-way delay of the forward path
    rtr:east  tbf     the bottleneck's rate, and below it the queue under test (skbprio: htb)
    rcv:eth0  netem   processing time, access rate, all one-way delay of the backward path
    rtr:west  tbf     the bottleneck backward: same rate, same queue

By default the bottleneck is not on a host's own device. There a TCP sender would learn of a drop by its own
qdisc at once and retransmit the packet without a sign of loss, and TCP small queues would keep the queue short.
A router causes neither.

In a chain (``hops`` given) a wire lies between each pair of routers: a namespace whose two devices add the
delay of that link and nothing else, so that the tbf at each end remains the only queue:

    snd -- rtr ==== w1 ---- rtr2 ==== w2 ---- rcv      hosts may be attached to any router

Additional senders, jitter behind the bottleneck and a bottleneck on the sender's own device also make a chain,
of one link. With a link trace, lbe_link replaces the tbf of the first hop.

Nothing here runs a command: :func:`build` is a pure function from parameters to a :class:`Network`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .parameters import Hop, Queue, Tick, Topology, TopologyError, check
from .queues import bottleneck_lines, netem, queue_depth, sender_lines, wire_delay

#: cap of the default random processing time at senders, microseconds
PROCESSING_CAP_US = 1000.0
IPV6_MTU_MIN = 1280  # RFC 8200; with a smaller MTU the network has IPv4 only
#: depth of the router's queue if the bottleneck is on the sender's own device: no queue can form in the router then
OWN_DEVICE_ROUTER_PKTS = 1000


@dataclass
class Node:
    """The commands for one node. Lines of ``ip`` and ``tc`` are passed to their -batch modes."""

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

#: Set on every host and router, so that results do not depend on the defaults of a kernel or distribution.
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


# ---------------------------------------------------------------------------------------- build


def _mac(subnet: int, host: int) -> str:
    return f"02:00:00:00:{subnet:02x}:{host:02x}"


class _Builder:
    """Collects the commands for the links, addresses and routes of the namespaces."""

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
        """A veth pair with static addresses and neighbours. Routers and wires get .1, hosts .2; of two routers the left
        one gets .1."""
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
            # a GSO train would pass the queue as one packet; an experiment enables offloads explicitly
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
        # last: this one switches lbe_tick on
        "net.lbe_tick.tick_us": str(tick.tick_us),
    }


def build(
    topology: Topology,
    low_ports: list[int] | None = None,
    extra_delay_ms: dict[str, dict[int, float]] | None = None,
    sysctl: dict[str, dict[str, str | int]] | None = None,
    zero_s: float = 10.0,
) -> Network:
    """Make the network's commands.

    low_ports: ports of flows that a strict-priority queue serves last; extra_delay_ms: per host, per
    SO_MARK, additional one-way delay; sysctl: per node (or "all") settings that override the pinned
    ones; zero_s: CLOCK_MONOTONIC at experiment time 0, for clocks that wrap at a given time.

    Raises TopologyError for keys that exclude each other; the range of each key was checked when its table was read.
    """
    check(topology)
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
        make.nodes[host].tc += sender_lines(
            "eth0", one_way_ms, jitter_us, topology.access_rate_mbit, loss_pct, extra.get(host, {})
        )
    make.nodes["rtr"].tc += bottleneck_lines(
        topology, "east", rate, topology.queue, low_ports, trace=bool(topology.link_trace)
    )
    make.nodes["rtr"].tc += bottleneck_lines(topology, "west", back_rate, back_queue, low_ports)

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
    """Routers in a line, wires between them, hosts at the ends and at the routers that ``hosts`` gives."""
    hops = [Hop(topology.rate_mbit, topology.delay_ms, topology.queue), *topology.hops]
    routers = ["rtr", *[f"rtr{index}" for index in range(2, len(hops) + 2)]]
    wires = [f"w{index}" for index in range(1, len(hops) + 1)]
    senders = {f"snd{number}": routers[0] for number in range(2, topology.senders + 1)}
    hosts = {"snd": routers[0], "rcv": routers[-1], **senders, **topology.hosts}
    if topology.own_device and extra.get("snd"):
        raise TopologyError('bottleneck = "sender": no flow of snd can have extra_delay_ms')
    for name, router in hosts.items():
        if router not in routers:
            raise TopologyError(f"hosts.{name} = {router!r}: allowed are {', '.join(routers)}")
    make = _Builder(topology, [*hosts, *routers, *wires], {*routers, *wires})
    queues = []
    for index, hop in enumerate(hops):
        queues += _lay_hop(make, index, hop, wires[index], routers[index : index + 2], low_ports)
    subnets = {host: number for number, host in enumerate(hosts, start=1)}
    for host, subnet in subnets.items():
        loss_pct = topology.loss_pct if host == "snd" or host in senders else 0.0
        _attach_host(make, host, hosts[host], subnet, loss_pct, low_ports, extra.get(host, {}))
    for host, subnet in subnets.items():
        _route_to_host(make, subnet, routers.index(hosts[host]), routers, wires)
    packets, size = queue_depth(topology, topology.queue, topology.rate_mbit)
    addresses = {host: {4: f"10.0.{subnet}.2", 6: f"fd00:{subnet}::2"} for host, subnet in subnets.items()}
    return Network(make.links, make.nodes, queues, addresses, packets, size)


def _halves(index: int) -> tuple[int, int]:
    """Subnets of a hop's west and east half; hosts have 1 (snd), 2 (rcv), 3, ..."""
    return 100 + 2 * index, 101 + 2 * index


def _lay_hop(
    make: _Builder, index: int, hop: Hop, wire: str, routers: list[str], low_ports: list[int]
) -> list[QueueHandle]:
    """A link of a chain between two routers, over its wire; its queues, forward and backward."""
    topology, (left, right), (near, far) = make.topology, routers, _halves(index)
    make.link(near, (left, "east"), (wire, "west"))
    make.link(far, (wire, "east"), (right, "west"))
    forward = QueueHandle(2 * index + 1, left, "east", "10:", f"hop {index + 1}")
    if index == 0 and topology.own_device:
        forward = QueueHandle(1, "snd", "eth0", "10:", "own device")
        wide = Queue(packets=OWN_DEVICE_ROUTER_PKTS)
        make.nodes[left].tc += bottleneck_lines(topology, "east", topology.access_rate_mbit, wide, [])
    else:
        trace = index == 0 and bool(topology.link_trace)
        make.nodes[left].tc += bottleneck_lines(topology, "east", hop.rate_mbit, hop.queue, low_ports, trace=trace)
    make.nodes[right].tc += bottleneck_lines(topology, "west", hop.rate_mbit, hop.queue, low_ports)
    for dev in ("west", "east"):
        spread_ms = topology.jitter_ms if index == 0 and dev == "east" else 0.0
        make.nodes[wire].tc.append(f"qdisc add dev {dev} root handle 1: {wire_delay(hop.delay_ms, spread_ms)}")
    return [forward, QueueHandle(2 * index + 2, right, "west", "10:", f"hop {index + 1} reverse")]


def _attach_host(
    make: _Builder,
    host: str,
    router: str,
    subnet: int,
    loss_pct: float,
    low_ports: list[int],
    extra_ms: dict[int, float],
) -> None:
    """A host of a chain, its access link and its default route."""
    topology, port = make.topology, f"h{subnet}"
    make.link(subnet, (host, "eth0"), (router, port))
    make.route(host, None, subnet, 1, "eth0")
    if host == "snd" and topology.own_device:
        make.nodes[host].tc += bottleneck_lines(
            topology, "eth0", topology.rate_mbit, topology.queue, low_ports, trace=bool(topology.link_trace)
        )
    else:
        make.nodes[host].tc += sender_lines(
            "eth0",
            topology.access_delay_ms,
            _processing_us(topology),
            topology.access_rate_mbit,
            loss_pct,
            extra_ms,
        )
    make.nodes[router].tc.append(
        f"qdisc add dev {port} root handle 1: " + netem(topology.access_delay_ms, 0.0, topology.access_rate_mbit)
    )


def _route_to_host(make: _Builder, subnet: int, at: int, routers: list[str], wires: list[str]) -> None:
    """Routes of all routers and wires to a host's subnet, which is attached to router number ``at``."""
    for index, wire in enumerate(wires):
        near, far = _halves(index)
        if at > index:  # the host lies east of this wire
            make.route(routers[index], subnet, near, 2, "east")
            make.route(wire, subnet, far, 2, "east")
        else:
            make.route(routers[index + 1], subnet, far, 1, "west")
            make.route(wire, subnet, near, 1, "west")


# --------------------------------------------------------------------------------------- change


def difference(before: Network, after: Network) -> list[tuple[str, str]]:
    """Commands (node, shell line) that turn a running ``before`` into ``after``.

    Only qdisc parameters and sysctls can change during a run; raises TopologyError for anything else.
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
