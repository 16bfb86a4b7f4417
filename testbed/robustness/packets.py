# SPDX-License-Identifier: GPL-2.0
"""Hostile packets made by scapy: templates that guest/hostile.py sends to a connection.

A template is an IP packet with relative sequence number, acknowledgment number and timestamps, and the
offsets of the fields that the guest fills in: ports and numbers (tcp), timestamps (ts), the stream's
bytes (fill), a correct checksum (sum). "into": may be sent into a connection that must survive. TCP
discards such a packet, or it repeats bytes of the stream. Other packets are not sent there: an attacker
who knows a connection's window can end it or insert data, with or without the modules.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from typing import Any

HERE4, THERE4, HERE6, THERE6 = "10.7.0.1", "10.7.0.2", "fd07::1", "fd07::2"
#: distance of a sequence number that is outside of any window
OUTSIDE = 1 << 30
STAMP = [("NOP", None), ("NOP", None), ("Timestamp", (1, 1))]


class Maker:
    """Templates from one seed."""

    def __init__(self, seed: int):
        # imported here, since importing scapy takes half a second
        from scapy import all as scapy

        self.scapy, self.random = scapy, random.Random(f"lbe packets {seed}")
        random.seed(f"lbe packets {seed}")  # used by scapy's fuzz()
        self.made: list[dict[str, object]] = []
        self.kinds: list[Callable[[int], None]] = [
            self.bad_offset, self.cut_options, self.odd_options, self.wrong_sum, self.wrong_ip_sum, self.fragments,
            self.absurd_timestamps, self.outside, self.scale_lies, self.overlap, self.cut_packet, self.length_lies,
            self.headers, self.fuzzed, self.segmentation_lies,
        ]  # fmt: skip

    # ---- pieces --------------------------------------------------------------------------

    def ip(self, family: int) -> Any:
        """An IP header towards the kernel."""
        if family == 6:
            return self.scapy.IPv6(src=THERE6, dst=HERE6, tc=self.random.getrandbits(8))
        return self.scapy.IP(src=THERE4, dst=HERE4, id=self.random.getrandbits(16), tos=self.random.getrandbits(8))

    def tcp(self, **fields: object) -> Any:
        """A TCP header with relative numbers."""
        given = {"sport": 1, "dport": 2, "seq": 0, "ack": 0, "flags": "A", "window": self.random.getrandbits(16)}
        return self.scapy.TCP(**{**given, **fields})

    def payload(self) -> bytes:
        """Random bytes, not from the stream."""
        return self.random.randbytes(self.random.choice([0, 1, 7, 100, 1000]))

    def keep(
        self, name: str, family: int, raw: bytes, *, seq: int = 0, ack: int = 0, right: bool = False, ts: bool = False,
        fill: bool = False, into: bool = True, vnet: bytes = bytes(10), tcp: int | None = None,
    ) -> None:  # fmt: skip
        """Add a template. tcp: offset of the TCP header, by default after a plain IP header; -1: there is none."""
        at = (20 if family == 4 else 40) if tcp is None else tcp
        stamp = -1
        if ts and at >= 0:
            place = raw.find(b"\x08\x0a", at + 20)
            stamp = place + 2 if place >= 0 else -1
        start = at + (raw[at + 12] >> 4) * 4 if fill else -1
        self.made.append(
            {
                "name": name, "family": family, "hex": raw.hex(), "tcp": at, "seq": seq, "ack": ack, "ts": stamp,
                "fill": start, "sum": right, "into": into, "vnet": vnet.hex(),
            }
        )  # fmt: skip

    # ---- kinds ---------------------------------------------------------------------------

    def bad_offset(self, family: int) -> None:
        """A data offset below the header's size, or beyond the packet."""
        offset = self.random.choice([0, 1, 2, 3, 4, 15])
        rest = self.random.randbytes(self.random.randint(0, 30))
        self.keep("data offset", family, bytes(self.ip(family) / self.tcp(dataofs=offset) / rest), right=True)

    def raw_options(self, text: bytes) -> bytes:
        """A TCP header with these bytes as its options, valid or not."""
        text = text[:40] + b"\0" * (-len(text[:40]) % 4)
        head = bytes(self.tcp())
        return head[:12] + bytes([(5 + len(text) // 4) << 4]) + head[13:20] + text

    def with_options(self, name: str, family: int, text: bytes, **more: Any) -> None:
        """Add a packet with these options, outside of the window unless ``more`` has another seq."""
        packet = self.ip(family) / self.scapy.Raw(self.raw_options(text) + self.payload())
        if family == 4:
            packet.proto = 6
        else:
            packet.nh = 6
        self.keep(name, family, bytes(packet), **{"seq": OUTSIDE, "right": True, **more})

    def cut_options(self, family: int) -> None:
        """Options whose length is 0, 1, too short, or beyond the header."""
        text = self.random.choice(
            [b"\x08", b"\x08\x00", b"\x08\x01", b"\x08\x09" + bytes(7), b"\x08\x0b" + bytes(9), b"\x08\xff",
             b"\x02\x04",
             b"\x01" * 39 + b"\x08", b"\x01" * 31 + b"\x08\x0a" + bytes(7), b"\x05\x02", b"\x05\xff", b"\x03\x03"]
        )  # fmt: skip
        self.with_options("options cut short", family, text)

    def odd_options(self, family: int) -> None:
        """Repeated options, unknown ones, signatures, SACK blocks of random numbers."""
        stamp = b"\x08\x0a" + self.random.randbytes(8)
        text = self.random.choice(
            [stamp * 4, stamp + b"\x13\x12" + bytes(16), b"\x1d\x10" + bytes(14) + stamp, b"\x00" * 8 + stamp,
             b"\xfe\x04\xf9\x89" + stamp, b"\x05\x22" + self.random.randbytes(32), b"\x1e\x0c" + bytes(10) + stamp,
             b"\x22\x12" + self.random.randbytes(16), self.random.randbytes(40)]
        )  # fmt: skip
        self.with_options("odd options", family, text)

    def wrong_sum(self, family: int) -> None:
        """A segment that is valid except for its checksum and its data."""
        tcp = self.tcp(options=STAMP, chksum=self.random.getrandbits(16))
        self.keep("tcp checksum", family, bytes(self.ip(family) / tcp / (b"forged bytes" * 80)), ts=True)

    def wrong_ip_sum(self, family: int) -> None:
        """A wrong checksum of the IPv4 header; IPv6 has none and gets a wrong version."""
        raw = bytearray(bytes(self.ip(family) / self.tcp() / b"forged bytes"))
        if family == 4:
            raw[10] ^= 0x55
        else:
            raw[0] = 0x50 | raw[0] & 15
        self.keep("ip checksum", family, bytes(raw), right=True)

    def fragments(self, family: int) -> None:
        """Fragments: some are missing, overlap, are tiny, or have no complete header."""
        whole = self.tcp(seq=0) / self.random.randbytes(200)
        offset = self.random.choice([0, 0, 1, 2, 100, 8191])
        more = self.random.getrandbits(1)
        piece = bytes(whole)[8 * min(offset, 20) : 8 * min(offset, 20) + self.random.choice([8, 16, 24, 100])]
        number = self.random.randint(1, 4)
        if family == 4:
            packet = self.scapy.IP(src=THERE4, dst=HERE4, id=number, frag=offset, flags="MF" if more else 0, proto=6)
            packet = packet / self.scapy.Raw(piece)
        else:
            packet = self.scapy.IPv6(src=THERE6, dst=HERE6)
            packet /= self.scapy.IPv6ExtHdrFragment(id=number, offset=offset, m=more, nh=6)
            packet /= self.scapy.Raw(piece)
        # reassembled fragments never have a correct checksum, since it covers other bytes
        self.keep("fragment", family, bytes(packet), tcp=-1)

    def absurd_timestamps(self, family: int) -> None:
        """Extreme timestamps, on segments that TCP does not accept."""
        value = self.random.choice([0, 1, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, self.random.getrandbits(32)])
        text = struct.pack("!BBII", 8, 10, value, self.random.getrandbits(32)) + b"\1\1"
        self.with_options("timestamp", family, text, right=bool(self.random.getrandbits(1)))

    def outside(self, family: int) -> None:
        """Resets, SYNs, FINs and data outside of the window."""
        flags = self.random.choice(["R", "RA", "S", "SA", "F", "FA", "PA", "", "FSRPAUEC", "U", "A"])
        seq = self.random.choice([OUTSIDE, -OUTSIDE, OUTSIDE + 5, -(1 << 31) + 1])
        raw = bytes(self.ip(family) / self.tcp(flags=flags, options=STAMP) / self.payload())
        ack = self.random.choice([0, 1 << 30])
        self.keep("outside of the window", family, raw, seq=seq, ack=ack, right=True, ts=True)

    def scale_lies(self, family: int) -> None:
        """Window scales of 14 and more and an MSS of 0 or 1, in the middle of a connection."""
        scale, size = self.random.choice([14, 15, 31, 128, 255]), self.random.choice([0, 1])
        text = struct.pack("!BBBBBBH", 1, 3, 3, scale, 2, 4, size)
        self.with_options("window scale", family, text)

    def overlap(self, family: int) -> None:
        """Bytes of the stream again, before or across the current sequence number."""
        size = self.random.choice([1, 10, 1000, 1400])
        raw = bytes(self.ip(family) / self.tcp(options=STAMP) / bytes(size))
        self.keep("overlap", family, raw, seq=self.random.choice([-3000, -1000, -500]), right=True, ts=True, fill=True)

    def cut_packet(self, family: int) -> None:
        """A truncated packet."""
        raw = bytes(self.ip(family) / self.tcp(options=STAMP) / b"forged bytes")
        cut = self.random.randint(1, len(raw) - 1)
        self.keep("packet cut short", family, raw[:cut], tcp=-1)

    def length_lies(self, family: int) -> None:
        """An IP length that is larger or smaller than the packet."""
        raw = bytearray(bytes(self.ip(family) / self.tcp() / b"forged bytes"))
        claim = self.random.choice([0, 1, 19, 21, 39, 41, len(raw) + 9, 65535])
        struct.pack_into("!H", raw, 2 if family == 4 else 4, claim)
        if family == 4 and self.random.getrandbits(1):
            raw[0] = 0x40 | self.random.choice([0, 1, 4, 6, 15])
        self.keep("length", family, bytes(raw))

    def headers(self, family: int) -> None:
        """Chains of IPv6 extension headers, or IPv4 options."""
        if family == 4:
            packet = self.ip(4)
            claim = self.random.choice([0, 1, 2, 3, 40, 255])
            text = self.random.randbytes(self.random.choice([1, 5, 37]))
            packet.options = self.scapy.IPOption(option=self.random.getrandbits(5), length=claim, value=text)
            raw = bytes(packet / self.tcp())
            self.keep("ip options", family, raw, tcp=-1)
            return
        packet = self.ip(6)
        for _ in range(self.random.randint(1, 9)):
            packet /= self.random.choice(
                [
                    self.scapy.IPv6ExtHdrHopByHop(), self.scapy.IPv6ExtHdrDestOpt(), self.scapy.IPv6ExtHdrRouting(),
                    self.scapy.IPv6ExtHdrFragment(),
                ]
            )  # fmt: skip
        raw = bytes(packet / self.tcp(chksum=1))
        self.keep("extension headers", family, raw[: self.random.randint(41, len(raw))], tcp=-1)

    def fuzzed(self, family: int) -> None:
        """Random fields, by scapy's fuzz()."""
        wrong = self.scapy.TCP(sport=1, dport=2, chksum=self.random.getrandbits(16))
        self.keep("fuzzed", family, bytes(self.ip(family) / self.scapy.fuzz(wrong)))
        raw = bytes(self.ip(family) / self.scapy.fuzz(self.scapy.TCP(sport=1, dport=2)))
        self.keep("fuzzed", family, raw, right=True, into=False)

    def segmentation_lies(self, family: int) -> None:
        """False values in the virtio-net header: segment sizes, header lengths, checksum offsets."""
        raw = bytes(self.ip(family) / self.tcp(chksum=7) / (b"forged bytes" * 200))
        vnet = struct.pack(
            "=BBHHHH", self.random.choice([0, 1, 2]), self.random.choice([0, 1, 4, 0x81, 0x84, 5, 255]),
            self.random.choice([0, 40, 60, 65535]), self.random.choice([0, 1, 7, 100, 1000, 65535]),
            self.random.choice([0, 20, 40, 60, 65535]), self.random.choice([0, 6, 16, 65535]),
        )  # fmt: skip
        # the kernel trusts a device about the checksum, so these bytes would enter the stream
        self.keep("segmentation", family, raw, vnet=vnet, into=False)

    def lines(self, number: int) -> str:
        """``number`` templates, of all kinds in turn and of both families, as JSON, one per line."""
        at = 0
        while len(self.made) < number:
            self.kinds[at % len(self.kinds)](4 if at // len(self.kinds) % 2 else 6)
            at += 1
        return "\n".join(json.dumps(one) for one in self.made[:number]) + "\n"
