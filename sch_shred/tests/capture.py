# SPDX-License-Identifier: GPL-2.0
"""Runs in a guest: writes a line for each TCP or UDP packet that a node's devices see.

    capture.py FILE SECONDS

Returns once it listens; what writes the lines goes on in the background until SECONDS are over.
FILE has "t_ns device out family byte header_ok sport dport seq ack flags payload": t_ns is
CLOCK_MONOTONIC, out is 1 for a packet that leaves, byte the TOS byte or traffic class. Of UDP seq and
ack are 0, and flags is -1.
"""

import os
import socket
import struct
import sys
import time

ETH_P_ALL = 3
PACKET_OUTGOING = 4
TCP, UDP = 6, 17


def checksum_good(header: bytes) -> bool:
    """RFC 1071: the sum over a good header is all ones."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def line(packet: bytes) -> str:
    """What the file says of a packet; "" if it is neither TCP nor UDP over IPv4 or IPv6 without extensions."""
    kind, ip = packet[12:14], packet[14:]
    if kind == b"\x08\x00" and ip[9] in (TCP, UDP):
        size, protocol = (ip[0] & 15) * 4, ip[9]
        family, byte, good, end = 4, ip[1], checksum_good(ip[:size]), struct.unpack("!H", ip[2:4])[0]
    elif kind == b"\x86\xdd" and ip[6] in (TCP, UDP):
        size, protocol = 40, ip[6]
        family, byte, good = 6, (ip[0] & 15) << 4 | ip[1] >> 4, True
        end = size + struct.unpack("!H", ip[4:6])[0]
    else:
        return ""
    if protocol == UDP:
        sport, dport = struct.unpack("!HH", ip[size : size + 4])
        return f"{family} {byte} {good:d} {sport} {dport} 0 0 -1 {end - size - 8}"
    sport, dport, seq, ack, length, flags = struct.unpack("!HHIIBB", ip[size : size + 14])
    payload = end - size - (length >> 4) * 4
    return f"{family} {byte} {good:d} {sport} {dport} {seq} {ack} {flags} {payload}"


def main() -> None:
    """Listens, and until the time is over writes down what it hears."""
    end = time.monotonic() + float(sys.argv[2])
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    # from here on packets wait in the socket, whoever reads them
    if os.fork():
        return
    with open(sys.argv[1], "w", encoding="ascii") as file:
        while (left := end - time.monotonic()) > 0:
            tap.settimeout(left)
            try:
                packet, (device, _, direction, _, _) = tap.recvfrom(65535)
            except TimeoutError:
                break
            if text := line(packet):
                file.write(f"{time.monotonic_ns()} {device} {direction == PACKET_OUTGOING:d} {text}\n")


if __name__ == "__main__":
    main()
