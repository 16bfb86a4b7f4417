# SPDX-License-Identifier: GPL-2.0
"""The other end of a wire: a TUN device, IP and TCP packets in Python, and packetdrill's notation for them.

It needs only the standard library, since the guest's Python is the system's. packetdrill itself is not packaged
in Debian or in a package registry. This part of its notation is supported:

    +0.1 < S. 0:0(0) ack 1 win 65535 tos 0x03 <mss 1000,sackOK,TS val 100 ecr 0,wscale 7>
         > P. 1:1001(1000) ack 1 win 229

"<" is sent to the kernel, ">" must be the kernel's next segment. Times are relative. Numbers count from each
side's first sequence number; "ecr last" means the kernel's latest timestamp. An expectation checks flags and
sequence numbers, and the other fields that it names.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import socket
import struct
import subprocess
import time
from dataclasses import dataclass
from socket import socket as Socket  # a connection has a property of the module's name
from typing import ClassVar

TUNSETIFF, IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x400454CA, 1, 0x1000, 0x4000
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, ".": 16, "U": 32, "E": 64, "W": 128}
TCP = 6
NO_VNET = bytes(10)
WORD = 1 << 32


def checksum(data: bytes) -> int:
    """The Internet checksum: the sum of the 16-bit words modulo 65535, inverted."""
    rest = int.from_bytes(data + b"\0" * (len(data) & 1), "big") % 65535
    return 65535 - rest


def tcp_checksum(source: bytes, target: bytes, segment: bytes) -> int:
    """Checksum with the pseudo header of either family."""
    return checksum(source + target + struct.pack("!II", len(segment), TCP) + segment)


def ip_packet(source: bytes, target: bytes, payload: bytes, tos: int = 0, protocol: int = TCP) -> bytes:
    """A complete IPv4 or IPv6 packet."""
    if len(source) == 16:
        return struct.pack("!IHBB", 6 << 28 | tos << 20, len(payload), protocol, 64) + source + target + payload
    head = struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(payload), 0, 0, 64, protocol, 0) + source + target
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


@dataclass
class Segment:
    """A TCP segment on the wire."""

    sport: int
    dport: int
    seq: int
    ack: int
    flags: int
    window: int  # the field, unscaled
    payload: bytes = b""
    options: bytes = b""
    tos: int = 0
    good_sum: bool = True
    size: int = 0  # of the IP packet

    def raw(self, source: bytes, target: bytes) -> bytes:
        """The IP packet, with correct checksums."""
        options = self.options + b"\1" * (-len(self.options) % 4)
        head = struct.pack(
            "!HHIIBBHHH", self.sport, self.dport, self.seq % WORD, self.ack % WORD, (5 + len(options) // 4) << 4,
            self.flags, self.window, 0, 0,
        )  # fmt: skip
        text = head + options + self.payload
        text = text[:16] + struct.pack("!H", tcp_checksum(source, target, text)) + text[18:]
        return ip_packet(source, target, text, self.tos)

    def option(self, kind: int) -> bytes | None:
        """Payload of an option."""
        at = 0
        while at < len(self.options) and self.options[at]:
            if self.options[at] == 1:
                at += 1
                continue
            length = self.options[at + 1]
            if self.options[at] == kind:
                return self.options[at + 2 : at + length]
            at += length
        return None

    @property
    def timestamps(self) -> tuple[int, int]:
        """(value, echo); zeros if there is no such option."""
        found = self.option(8)
        return struct.unpack("!II", found) if found else (0, 0)


def parse(packet: bytes) -> Segment | None:
    """The segment in an IP packet; None if there is none."""
    if packet[0] >> 4 == 4:
        at, tos, end = (packet[0] & 15) * 4, packet[1], int.from_bytes(packet[2:4], "big")
        source, target, protocol = packet[12:16], packet[16:20], packet[9]
    else:
        at, tos, end = 40, int.from_bytes(packet[:2], "big") >> 4 & 0xFF, 40 + int.from_bytes(packet[4:6], "big")
        source, target, protocol = packet[8:24], packet[24:40], packet[6]
    if protocol != TCP:
        return None
    text = packet[at:end]
    sport, dport, seq, ack, offset, flags, window = struct.unpack_from("!HHIIBBH", text)
    start = (offset >> 4) * 4
    good = int.from_bytes(source + target + struct.pack("!II", len(text), TCP) + text + b"\0" * (len(text) & 1), "big")
    return Segment(
        sport, dport, seq, ack, flags, window, text[start:], text[20:start], tos, good % 65535 == 0, len(packet)
    )


class Wire:
    """A TUN device: packets of the kernel are read here, and packets written here are received by the kernel."""

    def __init__(self, name: str, number: int):
        self.name = name
        self.here4, self.there4 = f"10.{number}.0.1", f"10.{number}.0.2"
        self.here6, self.there6 = f"fd{number:02x}::1", f"fd{number:02x}::2"
        self.device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.device, TUNSETIFF, struct.pack("16sH14x", name.encode(), IFF_TUN | IFF_NO_PI | IFF_VNET_HDR))
        commands = (
            f"sysctl -qw net.ipv6.conf.{name}.accept_dad=0 net.ipv6.conf.{name}.router_solicitations=0",
            f"ip addr add {self.here4}/24 dev {name}",
            f"ip link set {name} up",
            f"ip addr add {self.here6}/64 dev {name} nodad",
        )
        subprocess.run(" && ".join(commands), shell=True, check=True)
        self.poll = select.poll()
        self.poll.register(self.device, select.POLLIN)

    def addresses(self, six: bool) -> tuple[bytes, bytes]:
        """(address of the kernel, address of the script)."""
        family = socket.AF_INET6 if six else socket.AF_INET
        names = (self.here6, self.there6) if six else (self.here4, self.there4)
        return socket.inet_pton(family, names[0]), socket.inet_pton(family, names[1])

    def send(self, packet: bytes, vnet: bytes = NO_VNET) -> bool:
        """Send a packet to the kernel; False if the device refused it."""
        try:
            os.write(self.device, vnet + packet)
        except OSError:
            return False
        return True

    def take(self, limit_s: float = 0.0) -> bytes | None:
        """The next packet from the kernel."""
        while True:
            try:
                return os.read(self.device, 1 << 17)[10:]
            except BlockingIOError:
                if not limit_s or not self.poll.poll(limit_s * 1000):
                    return None

    def segment(self, limit_s: float = 0.0) -> Segment | None:
        """The next TCP segment."""
        while True:
            packet = self.take(limit_s)
            if packet is None:
                return None
            found = parse(packet)
            if found:
                return found


class DrillError(AssertionError):
    """An expectation of a script was not met; the text has the line."""


PACKET = re.compile(
    r"([<>]) ([SFRPEWU.]+) (\d+):(\d+)\((\d+)\)(?: ack (\d+))?(?: win (\d+))?(?: tos (\w+))?(?: <(.*)>)?$"
)


def timestamps(value: int, echo: int) -> bytes:
    """Options of a segment with timestamps only, in the kernel's order."""
    return struct.pack("!BBBBII", 1, 1, 8, 10, value % WORD, echo % WORD)


def timestamps_option(text: str, echo: int) -> bytes:
    """The option for "TS val N ecr N|last"."""
    found = re.fullmatch(r"TS val (\d+) ecr (\w+)", text)
    if found is None:
        raise DrillError(f"cannot be read: {text}")
    value, wanted = found.groups()
    return struct.pack("!BBII", 8, 10, int(value) % WORD, echo if wanted == "last" else int(wanted) % WORD)


@dataclass
class Drill:
    """One connection between a local socket and a script on the wire."""

    wire: Wire
    port: int
    six: bool = False
    known_isn: int | None = None  # the kernel's first sequence number, once it is known
    ts_first: int = 0
    ts_last: int = 0
    scale: int = 0  # of the kernel's window field
    last: Segment | None = None  # the kernel's latest segment
    connection: Socket | None = None
    listener: Socket | None = None

    OUR_ISN = 1_000_000
    OUR_PORT = 40000
    opened: ClassVar[list[Drill]] = []

    @classmethod
    def forget(cls) -> None:
        """Close the connections that a failed script left open."""
        while cls.opened:
            cls.opened.pop().close()

    def __post_init__(self) -> None:
        self.opened.append(self)
        self.here, self.there = self.wire.addresses(self.six)

    @property
    def isn(self) -> int:
        """The kernel's first sequence number."""
        if self.known_isn is None:
            raise DrillError("the kernel has sent no SYN")
        return self.known_isn

    @property
    def socket(self) -> Socket:
        """The kernel's socket of the connection."""
        if self.connection is None:
            raise DrillError("no connection was accepted")
        return self.connection

    @property
    def latest(self) -> Segment:
        """The kernel's latest segment."""
        if self.last is None:
            raise DrillError("the kernel has sent nothing")
        return self.last

    # ---- the application ---------------------------------------------------------------

    def listen(self, control: str = "", **options: int) -> None:
        """Open a listening socket for the script's SYN."""
        family = socket.AF_INET6 if self.six else socket.AF_INET
        address = self.wire.here6 if self.six else self.wire.here4
        self.listener = socket.create_server((address, self.port), family=family)
        if control:
            self.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        if "receive_bytes" in options:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options["receive_bytes"])

    def accept(self) -> Socket:
        """Accept the connection."""
        if self.listener is None:
            raise DrillError("nobody listens")
        self.listener.settimeout(5)
        self.connection, _ = self.listener.accept()
        self.connection.setblocking(False)
        return self.connection

    def write(self, size: int) -> None:
        """The application sends ``size`` zero bytes."""
        done = self.socket.send(bytes(size))
        if done != size:
            raise DrillError(f"the socket took {done} of {size} bytes")

    def read(self) -> bytes:
        """The application reads all available data."""
        got = b""
        while True:
            try:
                block = self.socket.recv(1 << 18)
            except BlockingIOError:
                return got
            if not block:
                return got
            got += block

    def info(self, name: str) -> int:
        """A field of tcp_info, one of those used by scripts."""
        raw = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        at = {"rtt": 68, "snd_ssthresh": 76, "snd_cwnd": 80, "total_retrans": 100}[name]
        return int(struct.unpack_from("=I", raw, at)[0])

    @property
    def cwnd(self) -> int:
        """The sender's window, packets."""
        return self.info("snd_cwnd")

    # ---- the wire ----------------------------------------------------------------------

    def __call__(self, text: str) -> None:
        """Run lines of the notation."""
        for line in text.strip().splitlines():
            words = line.split("#")[0].strip()
            if words:
                self._line(words)

    def _line(self, line: str) -> None:
        wait = re.match(r"\+([\d.]+) ", line)
        match = PACKET.match(line[wait.end() :] if wait else line)
        if not match:
            raise DrillError(f"cannot be read: {line}")
        if match[1] == "<":
            if wait:
                time.sleep(float(wait[1]))
            self._inject(match)
        else:
            self._expect(line, match, float(wait[1]) if wait else None)

    def _options(self, text: str) -> bytes:
        made = b""
        for one in filter(None, (part.strip() for part in (text or "").split(","))):
            if one.startswith("TS"):
                made += timestamps_option(one, self.ts_last)
            elif one.startswith("mss"):
                made += struct.pack("!BBH", 2, 4, int(one.split()[1]))
            elif one.startswith("wscale"):
                made += struct.pack("!BBB", 3, 3, int(one.split()[1]))
            elif one.startswith("sack "):
                edges = [int(edge) for edge in re.findall(r"\d+", one)]
                made += struct.pack(f"!BB{len(edges)}I", 5, 2 + 4 * len(edges), *[(self.isn + e) % WORD for e in edges])
            else:
                made += {"nop": b"\1", "eol": b"\0", "sackOK": b"\4\2"}[one]
        return made

    def segment(self, flags: str, seq: int, payload: bytes = b"", ack: int = 0, win: int = 65535, tos: int = 0,
                options: bytes = b"") -> Segment:  # fmt: skip
        """A segment of the script, with numbers as in the notation."""
        bits = sum(FLAGS[letter] for letter in flags)
        number = (self.known_isn or 0) + ack if "." in flags else 0
        return Segment(self.OUR_PORT, self.port, self.OUR_ISN + seq, number, bits, win, payload, options, tos)

    def send(self, segment: Segment) -> None:
        """Send a segment to the kernel."""
        self.wire.send(segment.raw(self.there, self.here))

    def _inject(self, match: re.Match[str]) -> None:
        _, flags, first, end, size, ack, win, tos, options = match.groups()
        if int(end) - int(first) != int(size):
            raise DrillError(f"{first}:{end} is not {size} bytes")
        self.send(
            self.segment(
                flags, int(first), bytes(int(size)), int(ack or 0), int(win or 65535), int(tos or "0", 0),
                self._options(options),
            )
        )  # fmt: skip

    def take(self, limit_s: float = 0.0) -> Segment | None:
        """The next segment of this connection."""
        while True:
            found = self.wire.segment(limit_s)
            if found is None:
                return None
            if found.sport != self.port:
                continue
            if self.known_isn is None and found.flags & FLAGS["S"]:
                self.known_isn = found.seq
                scale = found.option(3)
                self.scale = scale[0] if scale else 0
            if found.timestamps[0]:
                self.ts_last = found.timestamps[0]
                self.ts_first = self.ts_first or self.ts_last
            if not found.good_sum:
                raise DrillError(f"a wrong checksum: {self.shown(found)}")
            self.last = found
            return found

    def must_take(self, limit_s: float) -> Segment:
        """The next segment of this connection, which has to come within the limit."""
        found = self.take(limit_s)
        if found is None:
            raise DrillError(f"nothing came within {limit_s:g} s")
        return found

    def drain(self, quiet_s: float = 0.02) -> list[Segment]:
        """All segments until none has come for ``quiet_s``."""
        found = []
        while one := self.take(quiet_s):
            found.append(one)
        return found

    def shown(self, one: Segment) -> str:
        """A segment in the notation."""
        letters = "".join(letter for letter, bit in FLAGS.items() if one.flags & bit)
        seq = (one.seq - (self.known_isn or 0)) % WORD
        ack = f" ack {(one.ack - self.OUR_ISN) % WORD}" if "." in letters else ""
        return f"> {letters} {seq}:{seq + len(one.payload)}({len(one.payload)}){ack} win {one.window} tos {one.tos:#x}"

    @property
    def window_bytes(self) -> int:
        """The window advertised by the kernel's latest segment."""
        return self.latest.window << self.scale

    def _expect(self, line: str, match: re.Match[str], after_s: float | None) -> None:
        _, flags, first, _, size, ack, win, tos, _ = match.groups()
        began = time.monotonic()
        one = self.take(2.0 if after_s is None else after_s + 1.0)
        if one is None:
            raise DrillError(f"nothing came: {line}")
        spent = time.monotonic() - began
        seq = (one.seq - self.isn) % WORD
        good = (
            one.flags == sum(FLAGS[letter] for letter in flags)
            and (seq, len(one.payload)) == (int(first), int(size))
            and (ack is None or (one.ack - self.OUR_ISN) % WORD == int(ack))
            and (win is None or one.window == int(win))
            and (tos is None or one.tos == int(tos, 0))
            # the kernel's timers have ticks of a millisecond and fire on the following tick
            and (after_s is None or abs(spent - after_s) <= 0.002)
        )
        if not good:
            raise DrillError(f"wanted {line}\n  got {self.shown(one)} after {spent:.4f} s")

    def close(self) -> None:
        """Close both sockets at once (with a reset, without time-wait), and discard the resulting packets."""
        for one in (self.connection, self.listener):
            if one and one.fileno() >= 0:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.close()
        while self.wire.take():
            pass
