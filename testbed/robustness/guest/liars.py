# SPDX-License-Identifier: GPL-2.0
"""A peer that cheats to get more bandwidth: as the receiver with each congestion control, as the sender with each of
vulture's controllers. No lie may gain more than with Reno, or than with a receiver without vulture.

The peer is behind a link of 100 packets a second and 50 ms each way, with a queue of 20 packets. Each lie is applied to
one connection after the other, from its own address (in its own network of 256 addresses), so that state learnt from
one lie does not affect the next. The number of data segments sent or received by the kernel is compared. What the
kernel has sent to a lying receiver must also reach it, each byte, unless the lie is that it has come already.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import socket
import struct
import subprocess
import time

from common import (
    ATTRIBUTES,
    CONTROLS,
    NESTED,
    NETLINK_GENERIC,
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
    unload,
    vulture,
    write,
)
from wire import FLAGS, WORD, Drill, DrillError, Segment, Wire, timestamps

SECONDS = SETTINGS["seconds"]
SERVICE_S, WAY_S, BUFFER_PKTS = 0.01, 0.05, 20
MSS = 1000
#: the peer's receive window, packets: maximum in flight of any sender
WINDOW = 40
#: tolerance (factor, packets): a sender with pacing or another start may be slightly ahead at the end
SLACK = 1.15, 2 * WINDOW
#: RTT with a full queue, seconds
FULL_S = 2 * WAY_S + (BUFFER_PKTS + 1) * SERVICE_S
#: minimum number of segments for a meaningful comparison: one for each such RTT
LEAST = SECONDS / FULL_S

LIES = {
    "honest": "none",
    "divides": "four acknowledgments a segment, of a quarter each (ACK division)",
    "hurries": "acknowledges at once what is still on the way, or lost (optimistic ACKs)",
    "stands": "its timestamps stand still",
    "races": "its timestamps run ten times too fast",
    "echoes early": "echoes a stamp that is 40 ms younger: the round trip looks short",
    "echoes late": "echoes the first stamp for ever",
    "marks": "ECN-Echo on every acknowledgment",
    "selects": "SACK of what was never sent, and of what was acknowledged",
    "shuts": "closes its window for 0.2 s in each 0.5 s, and moves its edge to the left",
    "conceals": "agrees to ECN, and never echoes CE, which each segment has that waited for another",
    "reneges": "loses a segment each 0.4 s, and throws away what comes behind it, although it has sent SACK of that",
}
#: lies with ECN
ECN = ("marks", "conceals")
#: interval at which a receiver that reneges loses a segment, seconds
LOSES_EACH_S = 0.4
#: lies about loss and marks. Under these, data in order must come at least so often, seconds: after two time-outs, each
#: of 200 ms and the round trip. Lies about time may make the time-out itself long
PROMPT, STALL_S = ("honest", "conceals", "reneges"), 2 * (0.2 + FULL_S)
#: time in which all data of a connection must reach a lying receiver, seconds. TCP's longest time-out is 120 s, which a
#: peer that echoes the first stamp for ever meets under lbe
DELIVERED_S = 300
#: what the application sends, over and over; its length divides no segment's, so that a shifted byte is seen
TEXT = memoryview(bytes(range(251)) * 525)
#: lbe's flows to the same address share their knowledge of the path. After lies from an address, an honest connection
#: may have only a packet in two seconds, as long as the false base delay and capacity are remembered. It sends pairs,
#: so that a piece may have one packet less than its part: two pieces are taken together
LEAST_AFTER, REMEMBERED_S, PIECE_S = 0.5, 180, 15

SENDERS_LIES = {
    "honest": "none",
    "stands": "its timestamps stand still",
    "races": "its timestamps run ten times too fast",
    "hides": "its timestamps show that each segment left when it arrived: no segment seems to have waited",
    "echoes early": "echoes a stamp that is 40 ms younger: the round trip looks short",
    "echoes late": "echoes the first stamp for ever",
    "ignores": "sends as much as it was ever allowed to, whatever window it is shown",
    "marks": "CE on every segment, though none waited for it",
    "repeats": "sends each segment twice",
    "bursts": "sends its window at once, then is silent until all of it is acknowledged",
}
#: vulture's controllers by their number in uapi/vulture.h; None: without vulture
CONTROLLERS = {"nobody": None, "paper": 0, "credit": 1, "rledbat": 2}
#: window of an unlimited sender, packets, which keeps the queue full
SENDER_PKTS = 30


class Peer(Drill):
    """The end of the wire, with its own address."""

    def __init__(self, wire: Wire, port: int, network: int):
        super().__init__(wire, port)
        self.there = socket.inet_aton(f"10.9.{network}.2")


class Link:
    """One direction of the path: a queue with a rate, then a delay."""

    def __init__(self) -> None:
        self.free_at = 0.0

    def enters(self) -> float | None:
        """Time at which a packet that enters now arrives; None if the queue is full."""
        now = time.monotonic()
        wait = max(self.free_at - now, 0.0)
        if wait > BUFFER_PKTS * SERVICE_S:
            return None
        self.free_at = now + wait + SERVICE_S
        return self.free_at + WAY_S


def merged(have: int, late: dict[int, int]) -> tuple[int, dict[int, int]]:
    """The end of the contiguous data, and the ranges behind a hole."""
    while any(first <= have < last for first, last in late.items()):
        have = max(last for first, last in late.items() if first <= have)
    return have, {first: last for first, last in late.items() if last > have}


def clock_ms(lie: str, began: float) -> int:
    """Clock of the lying peer, ms."""
    spent_ms = int(1000 * (time.monotonic() - began))
    return 1000 + {"stands": 0, "races": 10 * spent_ms}.get(lie, spent_ms)


class Liar:
    """A lying receiver of the kernel's data, with the kernel's socket."""

    def __init__(self, wire: Wire, port: int, control: str, lie: str, network: int):
        self.lie, self.drill, self.link = lie, Peer(wire, port, network), Link()
        self.drill.listen(control)
        self.drill(f"< S{'EW' if lie in ECN else ''} 0:0(0) win 65535 <mss {MSS + 12},sackOK,TS val 1000 ecr 0>")
        answer = self.drill.must_take(1.0)
        if lie in ECN and not answer.flags & FLAGS["E"]:
            raise DrillError("the kernel does not agree to ECN")
        self.began = time.monotonic()
        self.drill.send(self.acknowledgment(0, 1000, self.drill.ts_last))
        self.drill.accept()
        # (when, order, tsval to echo, first octet, end, whether with CE)
        self.due: list[tuple[float, int, int, int, int, bool]] = []
        self.order, self.sent, self.lied, self.reduced = 0, 0, 0, 0
        self.have, self.end, self.written, self.other = 0, 0, 0, 0
        self.lost_at = self.came_at = self.began
        self.stall_s = 0.0
        self.late: dict[int, int] = {}

    def acknowledgment(self, have: int, value: int, echo: int, sack: tuple[int, int] | None = None) -> Segment:
        """An ACK without data."""
        window = WINDOW * MSS
        if self.lie == "shuts" and self.shut():
            window = 0
        options = timestamps(value, echo)
        if sack:
            edges = [(self.drill.isn + 1 + edge) % WORD for edge in sack]
            options += struct.pack("!BBBBII", 1, 1, 5, 10, *edges)
        flags = ".E" if self.lie == "marks" and have else "."
        return self.drill.segment(flags, 1, ack=1 + have, win=window, options=options)

    def shut(self) -> bool:
        """Whether the window is closed now, which it is for 0.2 s in each 0.5 s."""
        return (time.monotonic() - self.began) % 0.5 > 0.3

    def arrives(self, at: int, size: int, stamp: int, ect: bool) -> None:
        """A segment enters the queue; its ACK is due when the link has sent it, or never if the queue is full."""
        self.order += 1
        now, fresh = time.monotonic(), at >= self.end
        self.end = max(self.end, at + size)
        if self.lie == "hurries":
            heapq.heappush(self.due, (now + WAY_S, self.order, stamp, at, at + size, False))
            return
        if self.lie == "reneges" and fresh and now > self.lost_at + LOSES_EACH_S:
            self.lost_at = now
            return
        waits = self.link.free_at > now
        there = self.link.enters()
        if there is not None:
            heapq.heappush(self.due, (there + WAY_S, self.order, stamp, at, at + size, ect and waits))

    def reply(self, stamp: int, at: int, end: int, marked: bool) -> None:
        """Send the ACKs for one received segment."""
        before = self.have
        if self.lie == "hurries":
            self.have = max(self.have, end)
        elif self.lie != "reneges" or at <= self.have:
            self.late[at] = max(self.late.get(at, 0), end)
            self.have, self.late = merged(self.have, self.late)
        have = self.have
        if have > before:
            now = time.monotonic()
            self.stall_s, self.came_at = max(self.stall_s, now - self.came_at), now
        value = clock_ms(self.lie, self.began)
        echo = {"echoes early": stamp + 40, "echoes late": self.drill.ts_first}.get(self.lie, stamp)
        sack = None
        if self.lie == "selects":
            sack = (have + 5 * WINDOW * MSS, have + 6 * WINDOW * MSS) if self.order % 2 else (0, max(have - MSS, 1))
        elif at > have:
            sack = (at, end)
        parts = 4 if self.lie == "divides" and have > before else 1
        for part in range(1, parts + 1):
            one = self.acknowledgment(before + (have - before) * part // parts, value, echo, sack)
            self.drill.send(one)
        told = {"divides": parts > 1, "shuts": not one.window, "conceals": marked, "reneges": sack is not None}
        self.lied += told.get(self.lie, True)

    def write(self) -> None:
        """The kernel's application sends as much as its socket takes."""
        with contextlib.suppress(BlockingIOError):
            self.written += self.drill.socket.send(TEXT[self.written % 251 :])

    def delivered(self) -> bool:
        """Receive until what the kernel had sent when this began is here without a hole; whether it came in time."""
        end, wanted = time.monotonic() + DELIVERED_S, self.end
        while self.have < wanted and time.monotonic() < end:
            self.receive(time.monotonic() + FULL_S, wanted)
        return self.have >= wanted

    def run(self, seconds: float) -> int:
        """Run for ``seconds``. Returns the number of data segments that the kernel sent."""
        self.receive(time.monotonic() + seconds)
        return self.sent

    def alone(self, seconds: float) -> int:
        """Run for ``seconds``, and end the connection."""
        sent = self.run(seconds)
        self.drill.close()
        return sent

    def receive(self, end: float, wanted: int | None = None) -> None:
        """Receive until a time. wanted: the application sends nothing more, and it ends when this octet is there."""
        shut = False
        while (now := time.monotonic()) < end and (wanted is None or self.have < wanted):
            was, shut = shut, self.lie == "shuts" and self.shut()
            if was and not shut:  # announce the open window, or the kernel would wait for its window probe
                value = clock_ms(self.lie, self.began)
                self.drill.send(self.acknowledgment(self.have, value, self.drill.ts_last))
            if wanted is None:
                self.write()
            until = min(end, now + 0.05) if self.lie == "shuts" else end
            wait = min(self.due[0][0] if self.due else until, until) - now
            one = self.drill.take(max(wait, 0.0)) if wait > 0.0005 else self.drill.take()
            if one is not None and one.payload:
                self.sent += 1
                self.reduced += bool(one.flags & FLAGS["W"])
                at, size = (one.seq - self.drill.isn - 1) % WORD, len(one.payload)
                self.other += one.payload != TEXT[at % 251 : at % 251 + size]
                self.arrives(at, size, one.timestamps[0], bool(one.tos & 3))
            while self.due and self.due[0][0] <= time.monotonic() + 0.0005:
                _, _, stamp, at, last, marked = heapq.heappop(self.due)
                self.reply(stamp, at, last, marked)


class LyingSender:
    """A lying sender of data to the kernel, within the advertised window, over the link."""

    def __init__(self, wire: Wire, port: int, lie: str, network: int):
        self.lie, self.drill, self.link = lie, Peer(wire, port, network), Link()
        self.drill.listen(receive_bytes=1 << 20)
        self.drill("< SEW 0:0(0) win 65535 <mss 1012,sackOK,TS val 1000 ecr 0,nop,wscale 7>")
        if self.drill.take(1.0) is None:
            raise DrillError("no answer to a SYN")
        self.began = time.monotonic()
        stamps = timestamps(clock_ms(lie, self.began), self.drill.ts_last)
        self.drill.send(self.drill.segment(".", 1, ack=1, options=stamps))
        self.drill.accept()
        self.on_way: list[tuple[float, int, int, int]] = []  # (when, order, first octet, stamp) to the kernel
        self.heard: list[tuple[float, int, int, int, int]] = []  # (when, order, acknowledged, edge, stamp) back
        self.order = self.next = self.acked = 0
        self.again_at = time.monotonic() + 2 * FULL_S
        self.most = self.edge = 10 * MSS
        self.echo = self.drill.ts_last
        self.queue_s, self.entered = 0.0, 0

    def leaves(self, at: int) -> None:
        """A segment enters the queue."""
        for _ in range(2 if self.lie == "repeats" else 1):
            before = max(self.link.free_at - time.monotonic(), 0.0)
            there = self.link.enters()
            if there is None:
                return
            self.order += 1
            self.queue_s, self.entered = self.queue_s + before, self.entered + 1
            heapq.heappush(self.on_way, (there, self.order, at, clock_ms(self.lie, self.began)))

    def sends(self) -> None:
        """Send as much as the window, or the lie, allows."""
        edge = self.most if self.lie == "ignores" else self.edge
        if self.lie == "bursts" and self.next > self.acked:
            edge = self.next
        most = {"bursts": BUFFER_PKTS, "repeats": SENDER_PKTS // 2}.get(self.lie, SENDER_PKTS)
        while self.next + MSS <= min(edge, self.acked + most * MSS):
            self.leaves(self.next)
            self.next += MSS
        if self.next > self.acked and time.monotonic() > self.again_at:  # retransmission time-out
            self.leaves(self.acked)
            self.again_at = time.monotonic() + 2 * FULL_S

    def arrives(self, at: int, stamp: int) -> None:
        """A segment arrives at the kernel."""
        if self.lie == "hides":
            stamp = clock_ms(self.lie, self.began)
        echo = {"echoes early": self.echo + 40, "echoes late": self.drill.ts_first}.get(self.lie, self.echo)
        tos = {"marks": 3}.get(self.lie, 0)
        one = self.drill.segment(".", 1 + at, bytes(MSS), 1, tos=tos, options=timestamps(stamp, echo))
        self.drill.send(one)

    def hears(self, acked: int, edge: int, stamp: int) -> None:
        """An ACK arrives at the sender."""
        if acked > self.acked or self.next == self.acked:
            self.again_at = time.monotonic() + 2 * FULL_S
        self.acked = max(acked, self.acked)
        self.edge, self.most, self.echo = edge, max(edge, self.most), stamp

    def run(self, seconds: float) -> int:
        """Run for ``seconds``. Returns the number of segments that the kernel acknowledged."""
        end, before, self.queue_s, self.entered = time.monotonic() + seconds, self.acked, 0.0, 0
        while time.monotonic() < end:
            self.sends()
            next_at = min(one[0][0] for one in (self.on_way, self.heard, [(end,)]) if one)
            while (one := self.drill.take(min(max(next_at - time.monotonic(), 0.0), 0.01))) is not None:
                acked = (one.ack - Drill.OUR_ISN - 1) % WORD
                self.order += 1
                edge = acked + (one.window << self.drill.scale)
                heapq.heappush(self.heard, (time.monotonic() + WAY_S, self.order, acked, edge, one.timestamps[0]))
                if self.on_way and self.on_way[0][0] <= time.monotonic():
                    break
            while self.on_way and self.on_way[0][0] <= time.monotonic() + 0.0005:
                _, _, at, stamp = heapq.heappop(self.on_way)
                self.arrives(at, stamp)
            while self.heard and self.heard[0][0] <= time.monotonic() + 0.0005:
                _, _, acked, edge, stamp = heapq.heappop(self.heard)
                self.hears(acked, edge, stamp)
            self.drill.read()
        return (self.acked - before) // MSS


def start(link: Netlink, number: int, drill: Drill, controller: int) -> None:
    """Start one of vulture's controllers for a connection."""
    chosen = attribute(ATTRIBUTES["options"]["controller"], struct.pack("=I", controller))
    code, text, _ = link.ask(
        vulture(V_START, by_fd(drill.socket) + attribute(V_MAIN["options"] | NESTED, chosen), number)
    )
    if code:
        raise DrillError(f"start: errno {code} {text}")


def flow_of(link: Netlink, number: int, drill: Drill) -> dict[str, int]:
    """The window that vulture advertises for a connection, and TCP's own."""
    code, text, bodies = link.ask(vulture(V_GET, by_fd(drill.socket), number))
    if code:
        raise DrillError(f"get: errno {code} {text}")
    found = attributes(attributes(bodies[0][4:])[V_MAIN["flow"]])
    return {name: int.from_bytes(found[V_FLOW[name]], "little") for name in ("advertised-bytes", "own-bytes")}


def to_controls(wire: Wire) -> dict[str, dict[str, int]]:
    """Apply each lie to each congestion control."""
    controls = ["reno", *(control for several in CONTROLS.values() for control in several)]
    sent: dict[str, dict[str, int]] = {}
    for number, lie in enumerate(LIES):
        told = sent[lie] = {}
        for turn, control in enumerate(controls):
            try:
                liar = Liar(wire, 7000 + 20 * number + turn, control, lie, 1 + number)
                told[control] = liar.run(SECONDS)
                whole = liar.delivered()
                liar.drill.close()
            except DrillError as error:
                expect(False, f"{lie}, {control}: {error}")
                continue
            said = f"{lie}: {control} sends {told[control]}, Reno {told['reno']} segments"
            most = max(told["reno"], sent["honest"]["reno"])  # some lies slow down only Reno
            expect(told[control] <= SLACK[0] * most + SLACK[1], said)
            expect(told[control] >= LEAST, f"{said}; {LEAST:.0f} are a segment each round trip")
            expect(liar.lied >= LEAST / 4, f"{lie}: {control} was told it {liar.lied} times only")
            expect(lie != "marks" or bool(liar.reduced), f"{lie}: {control} never says that it has reduced its window")
            missing = f"{lie}: {control} leaves a hole at {liar.have} of {liar.end} octets for {DELIVERED_S} s"
            expect(whole or lie == "hurries", missing)
            stalled = f"{lie}: {control} brings no octet in order for {liar.stall_s:.2f} s"
            expect(lie not in PROMPT or liar.stall_s <= STALL_S, stalled)
            expect(not liar.other, f"{lie}: {control} sends {liar.other} segments with other bytes")
            count(lie)
        Drill.forget()
        progress(number + 1, len(LIES) + len(SENDERS_LIES) + 1)
    return sent


def after_lies(wire: Wire) -> dict[str, object]:
    """The rate of lbe's honest connections to the same address after lies: after all of them, and after each."""
    reno = Liar(wire, 7500, "reno", "honest", 100).alone(PIECE_S)
    for number, lie in enumerate(LIES):
        Liar(wire, 7510 + number, "lbe", lie, 101).alone(SECONDS)
    pieces = [Liar(wire, 7530 + at, "lbe", "honest", 101).alone(PIECE_S) for at in range(REMEMBERED_S // PIECE_S + 2)]
    after: dict[str, object] = {"reno": reno, "all": pieces}
    said = f"honest after all lies of its address: lbe sends {pieces}, Reno {reno} segments, each in {PIECE_S} s"
    both = [first + second for first, second in itertools.pairwise(pieces)]
    expect(min(both) >= LEAST_AFTER * 2 * PIECE_S, said)
    expect(max(pieces[-3:]) >= 0.5 * reno, f"{said}: it does not forget them in {REMEMBERED_S} s")
    count("honest after lies", len(pieces))
    for number, lie in enumerate(LIES if SETTINGS["singly"] else ()):
        Liar(wire, 7560 + number, "lbe", lie, 102 + number).alone(SECONDS)
        after[lie] = one = Liar(wire, 7580 + number, "lbe", "honest", 102 + number).alone(PIECE_S)
        expect(one >= LEAST_AFTER * PIECE_S, f"honest after {lie}: lbe sends {one}, Reno {reno} segments")
        count("honest after lies")
    return after


def to_controllers(wire: Wire) -> dict[str, dict[str, list[int]]]:
    """Apply each lie of a sender to each controller: (segments received, their mean queueing delay in ms)."""
    must(load("vulture"), "load vulture")
    link, number = Netlink(NETLINK_GENERIC), family()
    taken: dict[str, dict[str, list[int]]] = {}
    for turn, lie in enumerate(SENDERS_LIES):
        told = taken[lie] = {}
        for at, (name, controller) in enumerate(CONTROLLERS.items()):
            try:
                liar = LyingSender(wire, 8000 + 10 * turn + at, lie, 120 + turn)
                if controller is not None:
                    start(link, number, liar.drill, controller)
                liar.run(SECONDS)
                segments = liar.run(SECONDS)
                flow = flow_of(link, number, liar.drill) if controller is not None else {}
                liar.drill.close()
            except DrillError as error:
                expect(False, f"sender {lie}, {name}: {error}")
                continue
            told[name] = [segments, round(1000 * liar.queue_s / max(liar.entered, 1))]
            said = f"sender {lie}: {name} takes {told[name][0]} segments that wait {told[name][1]} ms"
            said += f", nobody {told['nobody'][0]} and {told['nobody'][1]} ms"
            most = SLACK[0] * told["nobody"][0] + 10, SLACK[0] * told["nobody"][1] + 10
            expect(told[name][0] <= most[0] and told[name][1] <= most[1], said)
            # credit limits a sender that seems to cause a queue to a minimal rate
            expect(segments >= (SECONDS / 2 if name == "credit" else LEAST), said)
            expect(not flow or flow["advertised-bytes"] <= flow["own-bytes"], f"sender {lie}, {name}: {flow}")
            count(f"sender {lie}")
        Drill.forget()
        progress(len(LIES) + 1 + turn + 1, len(LIES) + len(SENDERS_LIES) + 1)
    honest = taken["honest"]
    for name in ("credit", "rledbat"):
        expect(honest[name][1] < honest["nobody"][1] / 2, f"no lie, and {name} leaves the queue as it is: {honest}")
    link.close()
    must(unload("vulture"), "unload vulture")
    return taken


def main() -> None:
    wire = Wire("wire", 9)
    subprocess.run(["ip", "route", "add", "10.9.0.0/16", "dev", wire.name], check=True)
    for setting, value in (("tcp_ecn", "1"), ("tcp_no_metrics_save", "1")):
        must(write(f"/proc/sys/net/ipv4/{setting}", value), setting)
    for name in CONTROLS:
        must(load(name), f"load {name}")
    sent = to_controls(wire)
    after = after_lies(wire)
    for name in CONTROLS:
        must(unload(name), f"unload {name}")
    taken = to_controllers(wire)
    cases = sum(len(one) for one in sent.values()) + sum(len(one) for one in taken.values()) + len(after)
    finish(cases, sent=sent, taken=taken, after=after)


main()
