# SPDX-License-Identifier: GPL-2.0
"""Forge data of somebody else's connection, which its receiver throws away: wrong checksum, wrong sequence number.

forge.py COUNT [others]     in a guest: COUNT segments of 1400 bytes, a millisecond apart, with the addresses and
                            ports of the connection whose data is seen first; others: with other ports
"""

from __future__ import annotations

import socket
import struct
import sys
import time

PAYLOAD = bytes(1400)
ETH_P_ALL = 3


def seen_first() -> tuple[bytes, bytes, int, int]:
    """Addresses and ports of the first segment with data to a port of the traffic agent."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)) as tap:
        while True:
            packet, (_, protocol, *_) = tap.recvfrom(1 << 17)
            if protocol != 0x0800 or packet[9] != socket.IPPROTO_TCP:
                continue
            tcp = packet[4 * (packet[0] & 15) :]
            sport, dport = struct.unpack_from("!HH", tcp)
            if 5000 <= dport < 6000 and len(tcp) > 4 * (tcp[12] >> 4):
                return packet[12:16], packet[16:20], sport, dport


def main() -> None:
    """Forge."""
    count, others = int(sys.argv[1]), sys.argv[2:] == ["others"]
    source, target, sport, dport = seen_first()
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for number in range(count):
            forged = (sport + 1 + number % 100) % 65536 if others else sport
            # an acknowledgment with data, far from the window; the kernel writes the checksum of the IP header
            tcp = struct.pack("!HHIIBBHHH", forged, dport, 0x5EAF00D + number, 0, 5 << 4, 0x10, 1000, 0xBAD, 0)
            length = 20 + len(tcp) + len(PAYLOAD)
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, socket.IPPROTO_TCP, 0, source, target)
            raw.sendto(ip + tcp + PAYLOAD, (socket.inet_ntoa(target), 0))
            time.sleep(0.001)


if __name__ == "__main__":
    main()
