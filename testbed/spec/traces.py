# SPDX-License-Identifier: GPL-2.0
"""Packet traces for open-loop replay: made by a seeded generator, or read from a capture.

What a flow's ``file`` may say:

    generate:ethernet [key=value ...]   the traffic of a 10 Mbit/s Ethernet, made up; keys: `Ethernet`
    pcap:FILE [key=value ...]           the packets of a capture (pcap or pcapng); keys: `Capture`
    FILE                                a trace as the agent reads it

A trace is times and sizes of IP packets. Made ones are a function of the keys, the duration and the seed.

The generator stands in for the traces of the paper on filler traffic (Harvard, an Ethernet at 10 Mbit/s),
which cannot be had. What the paper tells of them is met: 179.5 kB/s on average (Table 7), packets "either 1500
bytes or much smaller", and a delay of 0.396 ms above propagation with no drop, which is the transmission time
of 495 bytes at 10 Mbit/s: so packets hardly ever queue, since the wire they were captured on was as slow as
the link that carries them. The rest follows what is known of such wires (Leland et al. 1994, Willinger et al.
1997): transfers of heavy-tailed size, each at a rate of its own, laid over each other.

    transfers   start anywhere with equal chance (a Poisson process, given their number), size Pareto (shape 1.2)
                between 4 kB and 4 MB, rate log-uniform from 0.2 to 9 Mbit/s; two packets of 1500 bytes, then
                one of 40 (the acknowledgement on the shared wire), the last packet what is left
    small ones  Poisson; 40 bytes and an exponential with mean 60 more, at most 576: as many as bring the mean
                packet to 495 bytes
    the wire    serves all that in order of arrival at 10 Mbit/s with 38 bytes around each packet

A transfer that would run over the end goes on at the beginning, so the mean is exact and no part of the trace
is special.
"""

from __future__ import annotations

import builtins
import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ..base.errors import LbeError
from .tables import Within, load_words

#: raised whenever the same keys would give another trace
GENERATOR_FORMAT = 1
MAGIC = b"LBETRACE"
RECORD = np.dtype([("at_ns", "<u8"), ("bytes", "<u4")])
MTU = 1500
ACK_BYTES = 40
SMALL_MAX_BYTES = 576
#: preamble 8, Ethernet header 14, FCS 4, gap 12
WIRE_EXTRA_BYTES = 38
UDP_HEADERS_BYTES = 28


class TraceError(LbeError):
    """A trace cannot be made or read; the text names the key or the file."""

    exit_status = 2


@dataclass(frozen=True)
class Ethernet:
    """Keys of ``generate:ethernet``. Rates count IP packets; sizes are bytes.

    shape: of the transfers' sizes; wire_mbit: the wire that the packets come from.
    """

    mean_bytes_s: Annotated[float, Within(1e3, 1e6)] = 179533.0
    mean_packet_bytes: Annotated[float, Within(100, 900)] = 495.0
    shape: Annotated[float, Within(1.05, 3)] = 1.2
    min_transfer_bytes: Annotated[float, Within(1500, 1e6)] = 4e3
    max_transfer_bytes: Annotated[float, Within(1e4, 1e9)] = 4e6
    min_rate_mbit: Annotated[float, Within(0.01, 1000)] = 0.2
    max_rate_mbit: Annotated[float, Within(0.01, 1000)] = 9.0
    small_mean_bytes: Annotated[float, Within(45, 400)] = 100.0
    wire_mbit: Annotated[float, Within(1, 1000)] = 10.0


@dataclass(frozen=True)
class Capture:
    """Keys of ``pcap:FILE``: skip_s: the time to leave out at the beginning; loop: begin again at the end."""

    skip_s: Annotated[float, Within(0, 1e6)] = 0.0
    loop: Annotated[float, Within(0, 1)] = 1.0


@dataclass(frozen=True)
class Trace:
    """IP packets in order of time."""

    at_ns: np.ndarray
    bytes: np.ndarray

    def rate_bytes_s(self, duration_s: float) -> float:
        """Mean rate over a duration."""
        return float(self.bytes.sum()) / duration_s

    def tobytes(self) -> builtins.bytes:
        """The file that the agent reads."""
        records = np.empty(len(self.at_ns), RECORD)
        records["at_ns"], records["bytes"] = self.at_ns, self.bytes
        return MAGIC + records.tobytes()


def is_made(file: str) -> bool:
    """Whether ``file`` is something to be made here and not a file of the agent's own format."""
    return file.startswith(("generate:", "pcap:"))


def parse(file: str) -> tuple[str, Ethernet | Capture]:
    """What ``file`` asks for: the capture's path ("" for the generator), and the keys."""
    kind, _, rest = file.partition(":")
    name, *words = rest.split()
    if kind == "generate" and name != "ethernet":
        raise TraceError(f"file = {file!r}: known generators: ethernet")
    keys = load_words(Ethernet, words, "file") if kind == "generate" else load_words(Capture, words, "file")
    for low_key, high_key in (("min_transfer_bytes", "max_transfer_bytes"), ("min_rate_mbit", "max_rate_mbit")):
        if isinstance(keys, Ethernet) and getattr(keys, low_key) >= getattr(keys, high_key):
            raise TraceError(f"file = {file!r}: {low_key} must be below {high_key}")
    return ("" if kind == "generate" else name), keys


def identity(file: str, duration_s: float, seed: int) -> str:
    """What the trace is a function of, as a hash: two equal ones are the same bytes."""
    path, keys = parse(file)
    content = hashlib.sha256(_read(path)).hexdigest() if path else ""
    text = json.dumps([GENERATOR_FORMAT, content, dataclasses.asdict(keys), duration_s, 0 if path else seed])
    return hashlib.sha256(text.encode()).hexdigest()


def make(file: str, duration_s: float, seed: int) -> Trace:
    """The trace that ``file`` asks for, over ``duration_s`` seconds."""
    path, keys = parse(file)
    if isinstance(keys, Capture):
        return _capture(path, keys, duration_s)
    return ethernet(keys, duration_s, np.random.default_rng([seed, GENERATOR_FORMAT]))


# ------------------------------------------------------------------------------------- generator


def _pareto(keys: Ethernet, uniform: np.ndarray) -> np.ndarray:
    """Sizes from a Pareto distribution cut at its maximum (inverse of its distribution function)."""
    low, high, shape = keys.min_transfer_bytes, keys.max_transfer_bytes, keys.shape
    return np.asarray(low * (1 - uniform * (1 - (low / high) ** shape)) ** (-1 / shape))


def _sizes(keys: Ethernet, total_bytes: float, random: np.random.Generator) -> np.ndarray:
    """Transfers that sum to ``total_bytes``; the last one is what is left."""
    sizes: list[np.ndarray] = []
    have = 0.0
    while have < total_bytes:
        sizes.append(_pareto(keys, random.random(1024)))
        have += sizes[-1].sum()
    flat = np.concatenate(sizes)
    ends = np.cumsum(flat)
    count = int(np.searchsorted(ends, total_bytes)) + 1
    flat = flat[:count]
    flat[-1] -= ends[count - 1] - total_bytes
    return np.maximum(1, np.round(flat)).astype(np.int64)


def _transfers(
    keys: Ethernet, total_bytes: float, duration_s: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(seconds, bytes) of all packets of the transfers, in no order. ``total_bytes``: with acknowledgements."""
    share_of_data = 2 * MTU / (2 * MTU + ACK_BYTES)
    sizes = _sizes(keys, total_bytes * share_of_data, random)
    starts_s = random.uniform(0, duration_s, len(sizes))
    rates = np.exp(random.uniform(np.log(keys.min_rate_mbit), np.log(keys.max_rate_mbit), len(sizes))) * 1e6 / 8
    counts = -(-sizes // MTU)
    transfer = np.repeat(np.arange(len(sizes)), counts)
    index = np.arange(len(transfer)) - np.repeat(np.cumsum(counts) - counts, counts)
    left = sizes[transfer] - index * MTU
    data_s = starts_s[transfer] + index * MTU / rates[transfer]
    data_bytes = np.clip(left, ACK_BYTES, MTU)
    acked = index % 2 == 1
    ack_s = data_s[acked] + MTU / rates[transfer[acked]] / 2
    return np.concatenate([data_s, ack_s]), np.concatenate([data_bytes, np.full(len(ack_s), ACK_BYTES)])


def _small_bytes(keys: Ethernet, count: int, random: np.random.Generator) -> np.ndarray:
    sizes = ACK_BYTES + random.exponential(keys.small_mean_bytes - ACK_BYTES, count)
    return np.minimum(SMALL_MAX_BYTES, np.round(sizes)).astype(np.int64)


def serialise(at_s: np.ndarray, sizes: np.ndarray, wire_mbit: float) -> np.ndarray:
    """When each packet (in order of arrival) has left a wire of this rate, seconds."""
    took_s = (sizes + WIRE_EXTRA_BYTES) * 8 / (wire_mbit * 1e6)
    busy_s = np.cumsum(took_s)
    # Lindley: the wire ends packet i at the largest over j <= i of arrival j plus the work from j to i
    return np.maximum.accumulate(at_s - (busy_s - took_s)) + busy_s


def ethernet(keys: Ethernet, duration_s: float, random: np.random.Generator) -> Trace:
    """The generator of the module's head."""
    total_bytes = keys.mean_bytes_s * duration_s
    bulk_bytes = 2 * MTU + ACK_BYTES
    bulk_mean = bulk_bytes / 3
    small_mean = float(_small_bytes(keys, 100000, np.random.default_rng(0)).mean())
    if not small_mean < keys.mean_packet_bytes < bulk_mean:
        raise TraceError(
            f"mean_packet_bytes = {keys.mean_packet_bytes:g}: must lie between the small packets' "
            f"{small_mean:.0f} and the transfers' {bulk_mean:.0f}"
        )
    small_share = (bulk_mean - keys.mean_packet_bytes) / (bulk_mean - small_mean)
    small_count = round(total_bytes / keys.mean_packet_bytes * small_share)
    small_sizes = _small_bytes(keys, small_count, random)
    small_s = random.uniform(0, duration_s, small_count)
    bulk_s, bulk_sizes = _transfers(keys, total_bytes - small_sizes.sum(), duration_s, random)

    at_s = np.concatenate([small_s, bulk_s]) % duration_s
    sizes = np.concatenate([small_sizes, bulk_sizes])
    order = np.argsort(at_s, kind="stable")
    left_s = serialise(at_s[order], sizes[order], keys.wire_mbit)
    sizes = sizes[order]
    # what the wire still holds at the end stands at its beginning, as the transfers do
    wrapped = left_s >= duration_s
    left_s = np.concatenate([left_s[wrapped] - duration_s, left_s[~wrapped]])
    sizes = np.concatenate([sizes[wrapped], sizes[~wrapped]])
    order = np.argsort(left_s, kind="stable")
    at_ns = np.round(serialise(left_s[order], sizes[order], keys.wire_mbit) * 1e9).astype(np.uint64)
    return Trace(at_ns, sizes[order].astype(np.uint32))


# --------------------------------------------------------------------------------------- capture


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise TraceError(f"pcap {path}: {error.strerror}") from error


def _ip_bytes(dpkt: Any, link: int, frame: bytes, wire_bytes: int) -> int:
    """Length of the IP packet in a frame, 0 if it holds none."""
    makers = {dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet, dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL}
    versions = {4: dpkt.ip.IP, 6: dpkt.ip6.IP6}
    try:
        packet = makers[link](frame).data if link in makers else versions[frame[0] >> 4](frame)
    except (dpkt.UnpackError, KeyError, IndexError):
        return 0
    if isinstance(packet, dpkt.ip.IP):
        # 0: the card filled it in (segmentation offload)
        return int(packet.len or wire_bytes)
    if isinstance(packet, dpkt.ip6.IP6):
        return int(packet.plen) + 40
    return 0


def _capture(path: str, keys: Capture, duration_s: float) -> Trace:
    """IP packets of a capture; larger ones than the MTU (offloads) become several."""
    import dpkt  # only who replays a capture needs it

    stamps: list[float] = []
    sizes: list[int] = []
    _read(path)
    with open(path, "rb") as file:
        try:
            reader = dpkt.pcap.UniversalReader(file)
            link = reader.datalink()
            for stamp, frame in reader:
                left = min(65535, _ip_bytes(dpkt, link, frame, len(frame)))
                while left > 0:
                    stamps.append(float(stamp))
                    sizes.append(min(MTU, left))
                    left -= MTU
        except (ValueError, dpkt.dpkt.Error) as error:
            raise TraceError(f"pcap {path}: no capture that can be read ({error})") from error
    at_s = np.array(stamps, float)
    if len(at_s):
        at_s -= at_s.min() + keys.skip_s
    order = np.argsort(at_s, kind="stable")
    order = order[at_s[order] >= 0]
    if len(order) == 0:
        raise TraceError(f"pcap {path}: no IP packet in it after skip_s = {keys.skip_s:g}")
    at_s, size = at_s[order], np.array(sizes)[order]
    if keys.loop:
        # one mean gap between the last packet and the first of the next round
        period_s = at_s[-1] * len(at_s) / max(1, len(at_s) - 1) or duration_s
        rounds = int(np.ceil(duration_s / period_s))
        at_s = (at_s[None, :] + period_s * np.arange(rounds)[:, None]).ravel()
        size = np.tile(size, rounds)
    inside = at_s < duration_s
    return Trace(np.round(at_s[inside] * 1e9).astype(np.uint64), size[inside].astype(np.uint32))
