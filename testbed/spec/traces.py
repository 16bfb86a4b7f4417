# SPDX-License-Identifier: GPL-2.0
"""Packet traces for open-loop replay: generated from a seed, or read from a capture.

Forms of a flow's ``file``:

    generate:ethernet [key=value ...]   synthetic traffic of a 10 Mbit/s Ethernet; keys: `Ethernet`
    pcap:FILE [key=value ...]           the packets of a capture (pcap or pcapng); keys: `Capture`
    FILE                                a trace in the agent's own format

A trace holds times and sizes of IP packets. A generated trace depends on the keys, the duration and the seed only.

The generator replaces the traces of the paper on filler traffic (Harvard, an Ethernet at 10 Mbit/s), which are
not available. It reproduces what the paper says of them: 179.5 kB/s on average (Table 7), packets "either 1500
bytes or much smaller", and a delay of 0.396 ms above propagation without a drop, which is the transmission time
of 495 bytes at 10 Mbit/s. Packets therefore hardly ever queue: the Ethernet on which they were captured was as
slow as the link that carries them. The rest follows published measurements of such networks (Leland et al. 1994,
Willinger et al. 1997): a superposition of transfers of heavy-tailed size, each with its own rate.

    transfers      start times are uniform (a Poisson process, given their number), sizes Pareto (shape 1.2)
                   between 4 kB and 4 MB, rates log-uniform from 0.2 to 9 Mbit/s. After every two packets of 1500
                   bytes follows one of 40 (the ACK on the shared wire); the last packet carries the remainder.
    small packets  Poisson; 40 bytes plus an exponential with mean 60, at most 576. Their number is chosen so
                   that the mean packet has 495 bytes.
    the wire       serves all packets in order of arrival at 10 Mbit/s, with 38 bytes of overhead per packet

A transfer that would pass the end of the trace continues at its beginning. The mean is therefore exact, and the
trace is statistically the same everywhere.
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

#: incremented whenever a change of the generator makes the same keys give another trace
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

    shape: Pareto shape of the transfers' sizes; wire_mbit: rate of the emulated Ethernet.
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
    """Keys of ``pcap:FILE``. skip_s: time to skip at the beginning; loop: start again at the end."""

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
    """Whether ``file`` describes a trace that is made here, and is not a file in the agent's own format."""
    return file.startswith(("generate:", "pcap:"))


def parse(file: str) -> tuple[str, Ethernet | Capture]:
    """Parse ``file``: the capture's path ("" for the generator), and the keys."""
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
    """Hash of everything the trace depends on: two traces of equal identity have the same bytes."""
    path, keys = parse(file)
    content = hashlib.sha256(_read(path)).hexdigest() if path else ""
    text = json.dumps([GENERATOR_FORMAT, content, dataclasses.asdict(keys), duration_s, 0 if path else seed])
    return hashlib.sha256(text.encode()).hexdigest()


def make(file: str, duration_s: float, seed: int) -> Trace:
    """The trace that ``file`` describes, over ``duration_s`` seconds."""
    path, keys = parse(file)
    if isinstance(keys, Capture):
        return _capture(path, keys, duration_s)
    return ethernet(keys, duration_s, np.random.default_rng([seed, GENERATOR_FORMAT]))


# ------------------------------------------------------------------------------------- generator


def _pareto(keys: Ethernet, uniform: np.ndarray) -> np.ndarray:
    """Sizes from a truncated Pareto distribution, by the inverse of its distribution function."""
    low, high, shape = keys.min_transfer_bytes, keys.max_transfer_bytes, keys.shape
    return np.asarray(low * (1 - uniform * (1 - (low / high) ** shape)) ** (-1 / shape))


def _sizes(keys: Ethernet, total_bytes: float, random: np.random.Generator) -> np.ndarray:
    """Sizes of transfers that sum to ``total_bytes``; the last one is the remainder."""
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
    """(seconds, bytes) of all packets of the transfers, unsorted. ``total_bytes`` includes the ACKs."""
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
    """Times at which each packet (in order of arrival) has left a wire of this rate, seconds."""
    took_s = (sizes + WIRE_EXTRA_BYTES) * 8 / (wire_mbit * 1e6)
    busy_s = np.cumsum(took_s)
    # Lindley: packet i leaves at the maximum over j <= i of the arrival of j plus the service time of packets j to i
    return np.maximum.accumulate(at_s - (busy_s - took_s)) + busy_s


def ethernet(keys: Ethernet, duration_s: float, random: np.random.Generator) -> Trace:
    """The generator described at the head of this module."""
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
    # packets that leave the wire after the end of the trace move to its beginning, as the transfers do
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
        # the length is 0 where the network card fills it in (segmentation offload)
        return int(packet.len or wire_bytes)
    if isinstance(packet, dpkt.ip6.IP6):
        return int(packet.plen) + 40
    return 0


def _capture(path: str, keys: Capture, duration_s: float) -> Trace:
    """IP packets of a capture; packets larger than the MTU (offloads) are split."""
    import dpkt  # only needed to replay a capture

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
        # the gap between the last packet and the first one of the next round is the mean gap
        period_s = at_s[-1] * len(at_s) / max(1, len(at_s) - 1) or duration_s
        rounds = int(np.ceil(duration_s / period_s))
        at_s = (at_s[None, :] + period_s * np.arange(rounds)[:, None]).ravel()
        size = np.tile(size, rounds)
    inside = at_s < duration_s
    return Trace(np.round(at_s[inside] * 1e9).astype(np.uint64), size[inside].astype(np.uint32))
