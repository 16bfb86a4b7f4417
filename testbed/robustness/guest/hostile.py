# SPDX-License-Identifier: GPL-2.0
"""Hostile packets (made by packets.py) through every hook, beside data that must arrive.

receiver    a peer sends to a connection under vulture's control; attackers inject forged segments, and the
            peer itself misbehaves: clocks, window scales, overlapping segments
sender      a connection under each congestion control sends to a peer with false ACKs
edge        packets forwarded through shred_hint (edge, police) into a shred queue, without a TCP endpoint
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import time
from typing import Any

import common
from common import (
    CONTROLS,
    F_CREATE,
    F_EXCL,
    HINT,
    MODULES,
    NETLINK_GENERIC,
    NETLINK_ROUTE,
    PATTERN,
    PERIOD,
    RTM_NEWQDISC,
    SETTINGS,
    V_FLOW,
    V_GET,
    V_MAIN,
    V_START,
    Netlink,
    attribute,
    attributes,
    by_fd,
    count,
    expect,
    family,
    finish,
    load,
    must,
    progress,
    qdisc,
    shred_options,
    unload,
    vulture,
    write,
)
from wire import WORD, Drill, Wire, checksum, parse, tcp_checksum, timestamps

RANDOM = random.Random(SETTINGS["seed"])
#: a packet with the places of its fields, by ../packets.py
Template = dict[str, Any]
TEMPLATES: list[Template] = [json.loads(line) for line in common.read("packets").splitlines()]
PAYLOAD = 1000
#: time without progress that counts as a stall; TCP's timers back off to two minutes
STALLED_S = 600


def pattern(at: int, size: int) -> bytes:
    """Bytes of the stream."""
    return PATTERN[at % PERIOD : at % PERIOD + size]


def patched(template: Template, seq: int, ack: int, tsval: int, tsecr: int, ports: tuple[int, int]) -> bytes:
    """A template with the connection's numbers filled in; with a correct checksum if it should have one."""
    data = bytearray.fromhex(template["hex"])
    at = template["tcp"]
    if at < 0 or at + 12 > len(data):
        return bytes(data)
    struct.pack_into("!HH", data, at, *ports)
    struct.pack_into("!I", data, at + 4, (seq + template["seq"]) % WORD)
    struct.pack_into("!I", data, at + 8, (ack + template["ack"]) % WORD)
    if template["ts"] >= 0 and template["ts"] + 8 <= len(data):
        struct.pack_into("!II", data, template["ts"], tsval % WORD, tsecr % WORD)
    if template["fill"] >= 0:  # correct bytes of the stream for its sequence number
        size = len(data) - template["fill"]
        data[template["fill"] :] = pattern((seq + template["seq"] - Drill.OUR_ISN - 1) % PERIOD, size)
    if template["sum"] and at + 18 <= len(data):
        four = data[0] >> 4 == 4
        source, target = (data[12:16], data[16:20]) if four else (data[8:24], data[24:40])
        data[at + 16 : at + 18] = b"\0\0"
        struct.pack_into("!H", data, at + 16, tcp_checksum(bytes(source), bytes(target), bytes(data[at:])))
    return bytes(data)


#: congestion control -> time of the longest transfer, seconds
longest: dict[str, int] = {}


class Clock:
    """The peer's timestamps: correct, or false in one of the ways of LIES."""

    LIES = ("honest", "still", "leaping", "fast", "slow", "wild echo", "no echo", "echo ahead", "old echo")

    def __init__(self, kind: str):
        self.kind, self.value = kind, RANDOM.choice([1, 1 << 31, WORD - 5000, RANDOM.getrandbits(31)])
        self.began = time.monotonic()

    def stamp(self, echo: int) -> tuple[int, int]:
        """(value, echo) of the next segment. Values never decrease, or TCP would drop all further segments."""
        spent_ms = int(1000 * (time.monotonic() - self.began))
        if self.kind == "leaping":
            self.value += RANDOM.choice([0, 1, 1000, 1 << 20])
        went = {"still": 0, "fast": spent_ms * 1000, "slow": spent_ms // 100, "leaping": 0}.get(self.kind, spent_ms)
        wild = RANDOM.getrandbits(32)
        lies = {"wild echo": wild, "no echo": 0, "echo ahead": echo + 100000, "old echo": echo - 100000}
        return (self.value + went) % WORD, lies.get(self.kind, echo) % WORD


def options(clock: Clock, echo: int) -> bytes:
    """The timestamp option."""
    return timestamps(*clock.stamp(echo))


class Peer(Drill):
    """A connection whose other end misbehaves."""

    def opening(self, clock: Clock, scale: int, mss: int, flags: str = "S") -> bool:
        """Open a connection to the listening kernel; returns whether it answered."""
        self.clock = clock
        text = struct.pack("!BBHBBB", 2, 4, mss, 3, 3, scale) + b"\1" + options(clock, 0)
        self.send(self.segment(flags, 0, options=text))
        if self.take(2.0) is None:
            return False
        self.send(self.segment(".", 1, ack=1, options=options(clock, self.ts_last)))
        self.accept()
        return True

    def data(self, at: int, size: int = PAYLOAD, ack: int = 1) -> None:
        """Send correct bytes of the stream."""
        self.send(self.segment(".", 1 + at, pattern(at, size), ack, options=options(self.clock, self.ts_last)))

    @property
    def acked(self) -> int:
        """Bytes that the kernel has acknowledged."""
        return (self.latest.ack - self.OUR_ISN - 1) % WORD

    @property
    def room(self) -> int:
        """Right edge of the kernel's window, bytes of the stream."""
        return self.acked + self.window_bytes

    def forge(self, template: Template, at: int, ack: int) -> None:
        """Inject a forged packet into this connection."""
        data = patched(
            template, self.OUR_ISN + 1 + at, self.isn + ack, self.clock.stamp(self.ts_last)[0], self.ts_last,
            (self.OUR_PORT, self.port),
        )  # fmt: skip
        taken = self.wire.send(data, bytes.fromhex(template["vnet"]))
        count("hostile packets" if taken else "hostile packets that the device refused")


class Vulture(Netlink):
    """A netlink socket to vulture's family."""

    def __init__(self) -> None:
        super().__init__(NETLINK_GENERIC)
        self.number = family()

    def request(self, command: int, payload: bytes) -> tuple[int, str, list[bytes]]:
        """Send a request; returns what ask() does."""
        return self.ask(vulture(command, payload, self.number))


def swallow(peer: Peer, got: int) -> int:
    """Compare the data that the application reads; returns the total of bytes."""
    block = peer.read()
    while block:
        part = block[:PERIOD]
        expect(part == pattern(got, len(part)), f"{peer.clock.kind}: other bytes after {got}")
        got += len(part)
        block = block[PERIOD:]
    return got


def receiving(wire: Wire, number: int, link: Vulture, six: bool, templates: list[Template]) -> None:
    """One connection under vulture with a misbehaving peer and forged packets."""
    peer = Peer(wire, 7000 + number % 2000, six)
    peer.OUR_PORT = 20000 + number
    peer.listen(receive_bytes=RANDOM.choice([4096, 65536, 1 << 20]))
    kind = Clock.LIES[number % len(Clock.LIES)]
    if not peer.opening(Clock(kind), RANDOM.choice([0, 7, 14, 15, 255]), RANDOM.choice([0, 1, 88, 536, 1460, 65535])):
        expect(False, f"{kind}: no answer to a SYN")
        peer.close()
        return
    code, text, _ = link.request(V_START, by_fd(peer.socket))
    expect(code == 0, f"start: errno {code} {text}")
    total, sent, got, idle = PAYLOAD * 60, 0, 0, 0
    forged = iter(templates)
    while got < total and idle < 400:
        for template in (one for one in [next(forged, None)] if one):
            peer.forge(template, sent, 1)
        before = got
        if sent < total and sent + PAYLOAD <= peer.room:
            if RANDOM.random() < 0.1 and sent >= PAYLOAD:  # overlaps the previous segment
                peer.data(sent - PAYLOAD // 2, PAYLOAD // 2 + PAYLOAD)
            elif RANDOM.random() < 0.1 and sent + 3 * PAYLOAD <= min(total, peer.room):  # a hole, filled at once
                peer.data(sent + 2 * PAYLOAD)
                peer.data(sent + PAYLOAD // 2, 2 * PAYLOAD)
                peer.data(sent)
                sent += 2 * PAYLOAD
            else:
                peer.data(sent)
            sent += PAYLOAD
        else:
            peer.drain(0.02)
            if peer.acked < sent:  # retransmit missing data
                peer.data(peer.acked, min(PAYLOAD, sent - peer.acked))
        while peer.take():
            pass
        got = swallow(peer, got)
        idle = 0 if got > before else idle + 1
    for template in forged:
        peer.forge(template, sent, 1)
    reply = attributes(link.request(V_GET, by_fd(peer.socket))[2][0][4:])
    flow = attributes(reply[V_MAIN["flow"]])
    shown, own = (struct.unpack("=I", flow[V_FLOW[name]])[0] for name in ("advertised-bytes", "own-bytes"))
    expect(shown <= own, f"{kind}: advertises {shown}, TCP itself only {own}")
    common.total["bytes"] += got
    common.total["lost"] += total - got
    expect(got == total, f"receiver, clock {kind}, {'IPv6' if six else 'IPv4'}: {total - got} of {total} bytes lost")
    count("connections received")
    peer.close()


def sending(wire: Wire, number: int, control: str, six: bool, templates: list[Template]) -> None:
    """One connection that sends with a congestion control to a peer with false ACKs."""
    peer = Peer(wire, 9000 + number % 2000, six)
    peer.OUR_PORT = 20000 + number
    peer.listen(control)
    kind = Clock.LIES[number % len(Clock.LIES)]
    if not peer.opening(Clock(kind), RANDOM.choice([0, 7, 14, 15]), RANDOM.choice([88, 536, 1460]), "SEW"):
        expect(False, f"{control}: no answer to a SYN")
        peer.close()
        return
    total, pushed, have, idle = 200000, 0, 0, 0
    pieces: dict[int, bytes] = {}
    forged = iter(templates)
    alive_s = began = time.monotonic()
    while have < total and time.monotonic() - alive_s < STALLED_S:
        if pushed < total:
            with contextlib.suppress(BlockingIOError):
                pushed += peer.socket.send(pattern(pushed, min(PERIOD, total - pushed)))
        came = peer.drain(RANDOM.choice([0.0005, 0.005, 0.05]) if idle < 20 else 5.0)
        for one in came:
            at = (one.seq - peer.isn - 1) % WORD
            if one.payload:
                expect(one.payload == pattern(at, len(one.payload)), f"{control}: other bytes at {at}")
                if RANDOM.random() > 0.02:  # the other segments are lost
                    pieces[at] = max(pieces.get(at, b""), one.payload, key=len)
        before = have
        while any(at <= have < at + len(text) for at, text in pieces.items()):
            have = max(at + len(text) for at, text in pieces.items() if at <= have < at + len(text))
            pieces = {at: text for at, text in pieces.items() if at + len(text) > have}
        for template in (one for one in [next(forged, None)] if one):
            peer.forge(template, 0, 1 + have)
        letters = "." if RANDOM.random() < 0.95 else ".E"
        win = RANDOM.choice([65535, 65535, 65535, 1, 0x1FFF])
        # the kernel may have accepted a forged copy of the stream: use the sequence number that it expects
        stamp = options(peer.clock, peer.ts_last)
        peer.send(peer.segment(letters, 1 + peer.acked, ack=1 + have, win=win, options=stamp))
        if have == before:
            idle += 1
        else:
            idle, alive_s = 0, time.monotonic()
    common.total["bytes"] += have
    common.total["lost"] += total - have
    expect(have == total, f"{control}, clock {kind}: {total - have} of {total} bytes lost")
    expect(1 <= peer.cwnd <= 1 << 20, f"{control}, clock {kind}: a window of {peer.cwnd}")
    count(f"connections sent by {control}")
    longest[control] = max(longest.get(control, 0), round(time.monotonic() - began))
    peer.close()


def forwarding(west: Wire, east: Wire, templates: list[Template]) -> None:
    """Send packets from one wire to the other, through the edge."""
    four, six = (tuple(wire.addresses(family)[1] for wire in (west, east)) for family in (False, True))
    seq, came = 0, 0
    for template in templates:
        seq += RANDOM.choice([0, 1000, 1000, 1 << 31])
        data = bytearray(patched(template, seq, RANDOM.getrandbits(32), seq, seq - 5, (RANDOM.randint(1, 50), 80)))
        if len(data) > 40 and data[0] >> 4 == 6:
            data[8:40] = six[0] + six[1]
        elif len(data) >= 20:
            data[12:20] = four[0] + four[1]
            if template["name"] != "ip checksum":
                data[10:12] = b"\0\0"
                data[10:12] = struct.pack("!H", checksum(bytes(data[: (data[0] & 15) * 4])))
        if RANDOM.random() < 0.3 and len(data) > 4:  # with a random hint
            data[1] = RANDOM.getrandbits(8) if data[0] >> 4 == 4 else data[1]
        taken = west.send(bytes(data), bytes.fromhex(template["vnet"]))
        count("hostile packets" if taken else "hostile packets that the device refused")
        while (packet := east.take()) is not None:
            came += 1
            if came % 3 == 0 and len(packet) > 40:  # also back, like an answer
                back = bytearray(packet)
                if back[0] >> 4 == 4:
                    back[12:16], back[16:20] = back[16:20], back[12:16]
                else:
                    back[8:24], back[24:40] = back[24:40], back[8:24]
                east.send(bytes(back))
        while west.take() is not None:
            pass
    count("forwarded", came)
    expect(came > len(templates) // 20, f"only {came} of {len(templates)} packets were forwarded: the edge saw nothing")


def main() -> None:
    for name in MODULES:
        must(load(name), f"load {name}")
    wire, east = Wire("west", 7), Wire("east", 8)
    for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv4/tcp_ecn"):
        must(write(f"/proc/sys/net/{name}", "1"), name)
    route, link = Netlink(NETLINK_ROUTE), Vulture()
    for device in (wire.name, east.name):
        index = socket.if_nametoindex(device)
        add = qdisc(RTM_NEWQDISC, F_CREATE | F_EXCL, shred_options() + attribute(11, b"\1"), index, handle=0x10000)
        must(route.ask(add)[0], f"queue on {device}")
    for setting, value in (("mode", "tos"), ("host", "1"), ("edge", "1"), ("police", "2")):
        must(write(f"{HINT}/{setting}", value), setting)
    controls = [control for several in CONTROLS.values() for control in several]
    connections = SETTINGS["connections"]
    into = [one for one in TEMPLATES if one["into"]]
    share = max(1, len(TEMPLATES) // (3 * connections))
    for number in range(connections):
        six = bool(number % 2)
        chosen = [one for one in RANDOM.sample(into, min(3 * share, len(into))) if (one["family"] == 6) == six]
        receiving(wire, number, link, six, chosen)
        sending(wire, number, controls[number % len(controls)], six, chosen)
        progress(number, connections + 1)
    forwarding(wire, east, TEMPLATES)
    expect(parse(b"\x45" + bytes(40)) is None, "the parser reads what is no TCP")
    for name in ("vulture", "shred_hint", *CONTROLS):
        for _ in range(100):  # a closed connection releases its congestion control with its last timer
            code = unload(name)
            if not code:
                break
            time.sleep(10)
        must(code, f"unload {name}")
    finish(counts_of("hostile packets"), longest_s=longest)


def counts_of(what: str) -> int:
    """Value of a counter."""
    return common.counts.get(what, 0)


main()
