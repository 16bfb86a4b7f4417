# SPDX-License-Identifier: GPL-2.0
"""Parameters of a network: the keys of [topology] and their allowed values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from ..base.errors import LbeError
from .tables import OneOf, Within

ETHERNET_HEADER_BYTES = 14  # counted in the packet length that qdiscs see
#: octets on the wire beside the IP packet and the Ethernet header: preamble 8, FCS 4, gap 12
ETHERNET_EXTRA_BYTES = 24
#: what ``stab overhead`` adds to the qdisc's packet length for each way to count a link's bits
FRAMINGS = {"ip": -ETHERNET_HEADER_BYTES, "link": 0, "ethernet": ETHERNET_EXTRA_BYTES}


class TopologyError(LbeError):
    """A parameter of the network is wrong; the text names it and the allowed range."""

    exit_status = 2


@dataclass(frozen=True)
class Queue:
    """The queue under test. Its depth is given by exactly one of packets, bytes and bdp.

    packets: depth in packets of one MTU; bytes: depth in bytes as the qdisc counts them;
    bdp: depth as a multiple of rate times base round-trip time.
    low: (prio, skbprio) packets that are served last: "le" (DSCP LE) or "flows" (flows marked low).
    shaper: qdisc that limits the rate. "tbf" peeks by dequeueing the next packet from the queue, and after an idle
    period sends one packet of saved credit at once. "htb", like a wire, does neither. skbprio always has htb.
    red_*: thresholds (packets, or fraction of the depth), see Documentation/testbed.md.
    tc: (kind tc) the qdisc line, with {limit}, {limit_bytes}, {rate_bit} to be filled in.
    """

    kind: Annotated[str, OneOf("pfifo", "bfifo", "red", "prio", "skbprio", "policer", "tc")] = "pfifo"
    packets: Annotated[int, Within(1, 1000000)] | None = None
    bytes: Annotated[int, Within(1, 10**9)] | None = None
    bdp: Annotated[float, Within(0.001, 1000)] | None = None
    low: Annotated[str, OneOf("flows", "le")] = "flows"
    shaper: Annotated[str, OneOf("tbf", "htb")] = "tbf"
    red_min_packets: Annotated[float, Within(0, 1000000)] | None = None
    red_max_packets: Annotated[float, Within(0, 1000000)] | None = None
    red_min_fraction: Annotated[float, Within(0, 1)] | None = None
    red_max_fraction: Annotated[float, Within(0, 1)] | None = None
    red_probability: Annotated[float, Within(0, 1)] = 0.1
    red_burst_packets: Annotated[int, Within(1, 1000000)] | None = None
    red_flags: str = ""
    tc: str = ""


@dataclass(frozen=True)
class Hop:
    """An additional bottleneck link of a chain."""

    rate_mbit: Annotated[float, Within(0.01, 10000)] = 10.0
    delay_ms: Annotated[float, Within(0, 10000)] = 10.0
    queue: Queue = field(default_factory=lambda: Queue(packets=100))


@dataclass(frozen=True)
class Tick:
    """The clock of a host's TCP timestamps (module lbe_tick).

    tick_us: length of a tick; offset_ticks: added; drift_ppm: speed error; wrap_at_s: choose the offset so that
    the value wraps at this experiment time; per_flow: add a different offset to each connection, as Linux does.
    """

    tick_us: Annotated[int, Within(1, 1000000)] = 1000
    offset_ticks: int = 0
    drift_ppm: Annotated[int, Within(-1000, 1000)] = 0
    wrap_at_s: float | None = None
    per_flow: bool = False


@dataclass(frozen=True)
class Topology:
    """Parameters of a network; all delays are one way.

    rate_mbit: bottleneck; framing: which octets count ("ip", "link" = with the Ethernet header,
    "ethernet" = all that the wire carries); delay_ms: bottleneck link; access_*: the links of the
    hosts (two on a path); processing_us: random processing time of a sender per packet, which never reorders
    (None: one packet's transmission time at the bottleneck, at most 1 ms); loss_pct: random loss, forward.
    senders: number of sending hosts snd, snd2, ...; bottleneck: at the router, or on the own device of host snd;
    link_trace: sending opportunities instead of a rate, forward (links.py); jitter_ms: random variation of the
    delay behind the bottleneck, forward, independent for each packet, so that it reorders.
    """

    rate_mbit: Annotated[float, Within(0.01, 10000)] = 10.0
    reverse_rate_mbit: Annotated[float, Within(0.01, 10000)] | None = None
    framing: Annotated[str, OneOf(*FRAMINGS)] = "ethernet"
    mtu: Annotated[int, Within(576, 9000)] = 1500
    delay_ms: Annotated[float, Within(0, 10000)] = 48.0
    access_rate_mbit: Annotated[float, Within(0.01, 100000)] = 100.0
    access_delay_ms: Annotated[float, Within(0, 10000)] = 1.0
    processing_us: Annotated[float, Within(0, 1000000)] | None = None
    senders: Annotated[int, Within(1, 90)] = 1
    bottleneck: Annotated[str, OneOf("router", "sender")] = "router"
    link_trace: str = ""
    jitter_ms: Annotated[float, Within(0, 1000)] = 0.0
    queue: Queue = field(default_factory=lambda: Queue(packets=86))
    reverse_queue: Queue | None = None
    loss_pct: Annotated[float, Within(0, 100)] = 0.0
    reverse_loss_pct: Annotated[float, Within(0, 100)] = 0.0
    ecn: bool = False
    timestamps: bool = True
    offloads: bool = False
    hops: tuple[Hop, ...] = ()
    hosts: dict[str, str] = field(default_factory=dict)
    tick: dict[str, Tick] = field(default_factory=dict)

    @property
    def chained(self) -> bool:
        """Whether the network is built as a chain: routers with wires (delay nodes) between them."""
        return bool(self.hops or self.hosts or self.senders > 1 or self.jitter_ms or self.own_device)

    @property
    def own_device(self) -> bool:
        """Whether the bottleneck is on the sender's own device."""
        return self.bottleneck == "sender"

    @property
    def base_rtt_s(self) -> float:
        """Round-trip time of the empty path without transmission times, seconds."""
        links = self.delay_ms + sum(hop.delay_ms for hop in self.hops)
        return 2 * (links + 2 * self.access_delay_ms) / 1e3

    @property
    def frame_bytes(self) -> int:
        """Size of a full packet as the bottleneck counts it, bytes."""
        return self.mtu + ETHERNET_HEADER_BYTES + FRAMINGS[self.framing]

    def bdp_bytes(self) -> float:
        """Bandwidth-delay product of the bottleneck, bytes as the bottleneck counts them."""
        return self.rate_mbit * 1e6 / 8 * self.base_rtt_s

    def tcp_capacity_mbit(self) -> float:
        """The most that TCP with timestamps can carry over the bottleneck, Mbit/s of payload."""
        headers = 20 + 20 + (12 if self.timestamps else 0)
        return self.rate_mbit * (self.mtu - headers) / self.frame_bytes


def check(topology: Topology) -> None:
    """Refuse combinations of keys that no link can have; the range of each key is checked elsewhere."""
    if topology.jitter_ms > topology.delay_ms:
        raise TopologyError(f"jitter_ms = {topology.jitter_ms:g}: allowed are 0 to delay_ms = {topology.delay_ms:g}")
    if topology.link_trace and topology.queue.kind in ("skbprio", "policer"):
        raise TopologyError(f"link_trace: a queue of kind {topology.queue.kind!r} has a rate of its own")
