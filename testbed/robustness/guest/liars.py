# SPDX-License-Identifier: GPL-2.0
"""A peer that lies to get more, to each congestion control and to Reno: no lie may buy more than it buys from Reno.

The peer stands behind a link of 100 packets a second, 50 ms each way, that holds 20 packets. Each lie is told to one
connection after the other; what is compared is the number of segments that the kernel sent.
"""

from __future__ import annotations

import contextlib
import heapq
import struct
import time

from common import CONTROLS, SETTINGS, count, expect, finish, load, must, progress, unload, write
from wire import WORD, Drill, DrillError, Wire

SECONDS = SETTINGS["seconds"]
SERVICE_S, WAY_S, BUFFER_PKTS = 0.01, 0.05, 20
MSS = 1000
#: what the peer offers, packets: the most that any sender has on the way
WINDOW = 40
#: a sender that paces, or starts otherwise, may be a little ahead when the time is over
SLACK = 1.15, 2 * WINDOW

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
    "hurries again": "as above, so that nothing honest comes between it and the next",
    "honest again": "none, after all of these",
}
#: Flows of lbe share what they know. What the lies of an address leave an honest connection after them is a packet a
#: round trip, for as long as the base delay and the capacity that were told alone are remembered: of Reno's
LEAST_SHARE, AGAIN_S = 0.1, 15


class Liar:
    """One connection, from the kernel's socket to the end of the lie."""

    def __init__(self, wire: Wire, port: int, control: str, lie: str):
        self.lie, self.drill = lie.removesuffix(" again"), Drill(wire, port)
        self.drill.listen(control)
        self.drill(f"< S{'EW' if lie == 'marks' else ''} 0:0(0) win 65535 <mss {MSS + 12},sackOK,TS val 1000 ecr 0>")
        self.drill.take(1.0)
        self.drill.send(self.acknowledgment(0, 1000, self.drill.ts_last))
        self.drill.accept()
        self.began = time.monotonic()
        self.due: list[tuple[float, int, int, int]] = []  # (when, order, tsval to echo, end of what came)
        self.free_at, self.order, self.sent = 0.0, 0, 0
        self.have, self.late = 0, {}

    def acknowledgment(self, have: int, value: int, echo: int, sack: tuple[int, int] | None = None):
        """A segment without data."""
        window = WINDOW * MSS
        if self.lie == "shuts" and (time.monotonic() - getattr(self, "began", 0.0)) % 0.5 > 0.3:
            window = 0
        options = struct.pack("!BBBBII", 1, 1, 8, 10, value % WORD, echo % WORD)
        if sack:
            edges = [(self.drill.isn + 1 + edge) % WORD for edge in sack]
            options += struct.pack("!BBBBII", 1, 1, 5, 10, *edges)
        flags = ".E" if self.lie == "marks" and have else "."
        return self.drill.segment(flags, 1, ack=1 + have, win=window, options=options)

    def arrives(self, at: int, size: int, stamp: int) -> None:
        """A segment meets the queue; its acknowledgment is due when the link has served it, or never."""
        now = time.monotonic()
        wait = max(self.free_at - now, 0.0)
        self.order += 1
        if self.lie == "hurries":
            heapq.heappush(self.due, (now + WAY_S, self.order, stamp, at + size))
            self.have = max(self.have, at + size)
            return
        if wait > BUFFER_PKTS * SERVICE_S:
            return
        self.free_at = now + wait + SERVICE_S
        self.late[at] = max(self.late.get(at, 0), at + size)
        heapq.heappush(self.due, (self.free_at + 2 * WAY_S, self.order, stamp, at))

    def reply(self, stamp: int, at: int) -> None:
        """The acknowledgments of one arrival."""
        before = self.have
        if self.lie != "hurries":
            while any(first <= self.have < last for first, last in self.late.items()):
                self.have = max(last for first, last in self.late.items() if first <= self.have)
            self.late = {first: last for first, last in self.late.items() if last > self.have}
        have = at if self.lie == "hurries" else self.have
        value = 1000 + int(1000 * (time.monotonic() - self.began))
        value = {"stands": 1000, "races": 1000 + 10 * (value - 1000)}.get(self.lie, value)
        echo = {"echoes early": stamp + 40, "echoes late": self.drill.ts_first}.get(self.lie, stamp)
        sack = None
        if self.lie == "selects":
            sack = (have + 5 * WINDOW * MSS, have + 6 * WINDOW * MSS) if self.order % 2 else (0, max(have - MSS, 1))
        elif at > have:
            sack = (at, at + MSS)
        parts = 4 if self.lie == "divides" and have > before else 1
        for part in range(1, parts + 1):
            self.drill.send(self.acknowledgment(before + (have - before) * part // parts, value, echo, sack))

    def run(self, seconds: float) -> int:
        """Go on for so long. Return: segments with data that the kernel sent."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            with contextlib.suppress(BlockingIOError):
                self.drill.socket.send(bytes(1 << 17))
            wait = min(self.due[0][0] if self.due else end, end) - now
            one = self.drill.take(max(wait, 0.0)) if wait > 0.0005 else self.drill.take()
            if one is not None and one.payload:
                self.sent += 1
                self.arrives((one.seq - self.drill.isn - 1) % WORD, len(one.payload), one.timestamps[0])
            while self.due and self.due[0][0] <= time.monotonic() + 0.0005:
                _, _, stamp, at = heapq.heappop(self.due)
                self.reply(stamp, at)
        self.drill.close()
        return self.sent


def main() -> None:
    wire = Wire("wire", 9)
    for setting, value in (("tcp_ecn", "1"), ("tcp_no_metrics_save", "1")):
        write(f"/proc/sys/net/ipv4/{setting}", value)
    for name in CONTROLS:
        must(load(name), f"load {name}")
    controls = ["reno", *(control for several in CONTROLS.values() for control in several)]
    sent: dict[str, dict[str, int]] = {}
    for number, lie in enumerate(LIES):
        told = sent[lie] = {}
        for turn, control in enumerate(controls):
            try:
                again = lie == "honest again"
                told[control] = Liar(wire, 7000 + 20 * number + turn, control, lie).run(AGAIN_S if again else SECONDS)
            except DrillError as error:
                expect(False, f"{lie}, {control}: {error}")
                continue
            most = SLACK[0] * told["reno"] + SLACK[1]
            least = LEAST_SHARE * told["reno"] if again and control == "lbe" else 1
            said = f"{lie}: {control} sends {told[control]}, Reno {told['reno']} segments"
            expect(again or told[control] <= most, said)
            expect(told[control] >= least, said)
            count(lie)
        Drill.forget()
        progress(number + 1, len(LIES))
    for name in CONTROLS:
        must(unload(name), f"unload {name}")
    finish(sum(map(len, sent.values())), sent=sent)


main()
