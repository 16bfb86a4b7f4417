# SPDX-License-Identifier: GPL-2.0
"""tc lines for the queue, rate, delay and loss of a device."""

from __future__ import annotations

import math

from .parameters import FRAMINGS, Queue, Topology, TopologyError

#: netem holds all packets in flight on a path; its limit must be so high that netem itself never drops
NETEM_LIMIT_PKTS = 200000
PRIO_BANDS_MAX = 16  # TCQ_PRIO_BANDS of the kernel
LE_TOS = 0x04  # DSCP 1 (RFC 8622) in the TOS byte


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
        # forwarding sets skb->priority from the TOS byte, which gives LE the priority of best effort; these
        # filters run at egress, after that, and override it
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
    line = queue.tc.format(limit=packets, limit_bytes=size, rate_bit=round(rate_mbit * 1e6))
    return [f"{head} {line}"]


def _policer_lines(topology: Topology, rate_mbit: float, queue: Queue) -> list[str]:
    """A link that drops packets above its rate instead of queueing them; ``queue`` is the depth of its bucket."""
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


def bottleneck_lines(
    topology: Topology, dev: str, rate_mbit: float, queue: Queue, low_ports: list[int], *, trace: bool = False
) -> list[str]:
    """A link's rate (or trace) and queue at one of its ends."""
    stab = FRAMINGS[topology.framing]
    size_table = f" stab overhead {stab} linklayer ethernet" if stab else ""
    if queue.kind == "policer":
        return [line.replace("{dev}", dev) for line in _policer_lines(topology, rate_mbit, queue)]
    root, rate = f"qdisc add dev {{dev}} root handle 1:{size_table}", f"rate {round(rate_mbit * 1e6)}bit"
    # the shaper sends packet by packet, as a wire does: a burst of one packet for tbf; none for htb, whose tokens may
    # become negative
    lines = [f"{root} tbf {rate} burst {topology.frame_bytes + 16} limit 100000000"]
    if queue.kind == "skbprio" or (queue.shaper == "htb" and not trace):
        # tbf peeks by dequeueing: a low-priority packet that it has dequeued is sent before packets of higher
        # priority that arrive afterwards
        lines = [f"{root} htb default 1", f"class add dev {{dev}} parent 1: classid 1:1 htb {rate} burst 1 cburst 1"]
    elif trace:
        lines = [f"{root} lbe_link"]
    lines += _queue_lines(topology, queue, rate_mbit, low_ports)
    return [line.replace("{dev}", dev) for line in lines]


def wire_delay(delay_ms: float, spread_ms: float) -> str:
    """netem arguments of a wire. It has no rate, so a spread (delay_ms +- spread_ms, uniform) reorders packets."""
    return netem(delay_ms - spread_ms, 2e3 * spread_ms)


def netem(delay_ms: float, jitter_us: float = 0.0, rate_mbit: float = 0.0, loss_pct: float = 0.0) -> str:
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


def sender_lines(
    dev: str, delay_ms: float, jitter_us: float, rate_mbit: float, loss_pct: float, extra_ms: dict[int, float]
) -> list[str]:
    """Egress of a host: processing time, access rate and delay; marked flows are delayed by ``extra_ms`` more."""
    if not extra_ms:
        return [f"qdisc add dev {dev} root handle 1: {netem(delay_ms, jitter_us, rate_mbit, loss_pct)}"]
    delays = sorted(set(extra_ms.values()))
    if len(delays) + 1 > PRIO_BANDS_MAX:
        raise TopologyError(f"extra_delay_ms: {len(delays)} different values at one host, at most {PRIO_BANDS_MAX - 1}")
    lines = [f"qdisc add dev {dev} root handle 1: prio bands {len(delays) + 1} priomap" + " 0" * 16]
    for band, extra in enumerate([0.0, *delays], start=1):
        lines.append(
            f"qdisc add dev {dev} parent 1:{band} handle {100 + band}: "
            + netem(delay_ms + extra, jitter_us, rate_mbit, loss_pct)
        )
    for mark, extra in sorted(extra_ms.items()):
        band = delays.index(extra) + 2
        lines.append(f"filter add dev {dev} parent 1: protocol all handle {mark} fw classid 1:{band}")
    return lines
