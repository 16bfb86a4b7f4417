# SPDX-License-Identifier: GPL-2.0
"""TCP senders of other stacks as models: what each does when the right edge of the receive window moves to the left.

    Ack -> Sender.on_ack(), on_timer() -> Sender.out: spans of octets to send now

Each model has the rules of its stack that the window takes part in: which acknowledgment may change the window, what is
sent and what is sent again within it, and what a timer sends when the window is too small. They were written from the
sources that the classes name. Congestion control is the same for all: slow start, half of the window after a loss, one
segment after a time-out. Octets are counted from 0 and do not wrap.
"""

from __future__ import annotations

import abc
import itertools
from dataclasses import dataclass

Span = tuple[int, int]
Options = dict[str, int | str]

INFINITE = 1 << 40
INITIAL_SEGS = 10
#: what the retransmission time-out adds to the round trip at least: Linux's TCP_RTO_MIN, FreeBSD's rexmit_slop
LEAST_VAR_S = 0.2


@dataclass(frozen=True)
class Ack:
    """A segment of the receiver, as the sender sees it. rtt_s: from the timestamp that it echoes; 0: none."""

    ack: int
    window: int
    sacks: tuple[Span, ...] = ()
    rtt_s: float = 0.0


def merged(spans: list[Span]) -> list[Span]:
    """The same octets as sorted spans that neither overlap nor touch."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def octets(spans: list[Span]) -> int:
    """Number of octets in spans that do not overlap."""
    return sum(last - first for first, last in spans)


def without(spans: list[Span], gone: list[Span]) -> list[Span]:
    """The octets of spans that are in none of the others."""
    for low, high in gone:
        spans = [
            piece
            for first, last in spans
            for piece in ((first, min(last, low)), (max(first, high), last))
            if piece[0] < piece[1]
        ]
    return spans


class Sender(abc.ABC):
    """What all stacks have: the variables of RFC 9293 section 3.3.1, a congestion window, and timers by name."""

    #: options of the SYN: selective acknowledgments, window scale
    sack, scale = True, 7

    def __init__(self, total: int, mss: int, window: int):
        self.total, self.mss = total, mss
        self.una = self.nxt = self.high = 0  # first octet not acknowledged, next to send, end of the furthest sent
        self.wnd, self.wnd_ack = window, 0  # window, and the acknowledgment that it came with
        self.cwnd, self.ssthresh = INITIAL_SEGS * mss, INFINITE
        self.sacked: list[Span] = []
        self.again: list[Span] = []  # sent again in this recovery
        self.recover: int | None = None  # recovery lasts until this is acknowledged
        self.grows = False  # the window grows during recovery, which a time-out has begun
        self.dupacks = 0
        self.srtt_s = self.var_s = 0.0
        self.shift = 0  # of the timers' backoff
        self.timers: dict[str, float] = {}
        self.out: list[Span] = []
        self.beyond = 0  # most octets that were in flight beyond the window
        self.probes = 0  # of a window that is too small
        self.fault = ""

    # ---- what a stack defines ------------------------------------------------------------

    def may_update(self, ack: Ack) -> bool:
        """Whether this acknowledgment, which is not old, may change the window."""
        return ack.ack > self.wnd_ack or ack.window > self.wnd

    def is_duplicate(self, ack: Ack, news: bool, changed: bool) -> bool:
        """Whether it counts towards fast retransmit. news: it selects octets for the first time."""
        return news if self.sack else ack.ack == self.una and not changed and self.una < self.high

    @abc.abstractmethod
    def output(self, now: float) -> None:
        """Send what may be sent."""

    @abc.abstractmethod
    def timed_out(self, now: float) -> None:
        """The retransmission timer has expired."""

    @abc.abstractmethod
    def probe(self, now: float) -> None:
        """The persist timer has expired."""

    # ---- what all have ------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether everything was acknowledged."""
        return self.una == self.total

    @property
    def usable(self) -> int:
        """Octets that may be in flight."""
        return min(self.wnd, self.cwnd)

    @property
    def edge(self) -> int:
        """The right edge."""
        return self.una + self.wnd

    def rto_s(self) -> float:
        """The retransmission time-out (RFC 6298), with backoff."""
        known = self.srtt_s + max(4 * self.var_s, LEAST_VAR_S) if self.srtt_s else 1.0
        return float(known * (1 << min(self.shift, 6)))

    def holes(self) -> list[Span]:
        """What is missing below the furthest octet that was selected, and was not sent again."""
        if not self.sacked:
            return []
        return without([(self.una, self.sacked[-1][1])], [*self.sacked, *self.again])

    def pipe(self) -> int:
        """Octets in flight (RFC 6675)."""
        return self.high - self.una - octets(self.sacked) - octets(self.holes() if self.recover is not None else [])

    def on_ack(self, now: float, ack: Ack) -> None:
        """The receiver's segment arrives."""
        if ack.ack > self.high:
            self.fault = f"{ack.ack} was acknowledged, and {self.high} octets were sent"
            return
        if ack.ack < self.una:
            return
        self._measure(ack.rtt_s)
        before = self.una, self.wnd, octets(self.sacked)
        if self.may_update(ack):
            self.wnd, self.wnd_ack = ack.window, ack.ack
        self.una = ack.ack
        self.nxt = max(self.nxt, self.una)
        kept = merged([*self.sacked, *ack.sacks])
        self.sacked = without(kept, [(0, self.una)])
        self.again = without(self.again, [(0, self.una)])
        fresh, changed = self.una > before[0], self.una + self.wnd != before[0] + before[1]
        if fresh:
            self._acknowledged(now, self.una - before[0])
        elif self.is_duplicate(ack, octets(self.sacked) > before[2], changed):
            self.dupacks += 1
            if self.dupacks == 3 and self.recover is None:
                self.enter_recovery()
        self.window_changed(now)
        self.output(now)

    def window_changed(self, now: float) -> None:
        """Look at the window after an acknowledgment."""
        self.beyond = max(self.beyond, self.high - self.edge)

    def _measure(self, rtt_s: float) -> None:
        if not rtt_s:
            return
        if not self.srtt_s:
            self.srtt_s, self.var_s = rtt_s, rtt_s / 2
        self.var_s += (abs(rtt_s - self.srtt_s) - self.var_s) / 4
        self.srtt_s += (rtt_s - self.srtt_s) / 8

    def _acknowledged(self, now: float, fresh: int) -> None:
        self.dupacks = self.shift = 0
        if self.recover is not None and self.una >= self.recover:
            self.recover, self.again = None, []
        if self.recover is None or self.grows:
            slow_start = self.cwnd < self.ssthresh
            self.cwnd += fresh if slow_start else self.mss * fresh // self.cwnd
        self.timers.pop("retransmit", None)
        if self.una < self.high:
            self.timers["retransmit"] = now + self.rto_s()

    def enter_recovery(self) -> None:
        """Three duplicates, or selected octets in their place: half of the window."""
        self.ssthresh = max(self.usable // 2, 2 * self.mss)
        self.cwnd, self.recover, self.again, self.grows = self.ssthresh, self.high, [], False

    def lose(self) -> None:
        """A time-out: one segment, and all that was sent may be sent again."""
        self.ssthresh = max(self.usable // 2, 2 * self.mss)
        self.cwnd, self.recover, self.dupacks, self.again = self.mss, None, 0, []
        self.shift += 1

    def send(self, now: float, first: int, last: int) -> None:
        """Put a segment on the wire, under the retransmission timer."""
        self.out.append((first, last))
        self.high = max(self.high, last)
        self.timers.setdefault("retransmit", now + self.rto_s())

    def on_timer(self, now: float) -> None:
        """Carry out the timers that have expired."""
        for name, what in (("retransmit", self.timed_out), ("persist", self.probe)):
            if self.timers.get(name, INFINITE) <= now:
                del self.timers[name]
                self.probes += name == "persist"
                what(now)


class Linux(Sender):
    """Linux 6.12, net/ipv4: tcp_may_update_window(), __tcp_retransmit_skb(), tcp_snd_wnd_test(), tcp_write_wakeup().

    What lies beyond the edge is not sent again, except for the first segment if the window is zero. It is kept as sent,
    and new data waits until the edge has passed it.
    """

    def __init__(self, total: int, mss: int, window: int):
        super().__init__(total, mss, window)
        self.timed_out_at: int | None = None  # after a time-out, all up to this is taken for lost

    def may_update(self, ack: Ack) -> bool:
        return ack.ack > self.una or ack.window > self.wnd or not ack.window

    def holes(self) -> list[Span]:
        if self.timed_out_at is None or self.timed_out_at <= self.una:
            return super().holes()
        return without([(self.una, self.timed_out_at)], [*self.sacked, *self.again])

    def output(self, now: float) -> None:
        for first, last in self.holes() if self.recover is not None else []:
            while first < last and self.pipe() + self.mss <= max(self.cwnd, self.mss):
                room = self.edge - first
                if room <= 0 and first != self.una:
                    break
                size = min(self.mss, last - first, room if room > 0 else self.mss)
                self.again = merged([*self.again, (first, first + size)])
                self.send(now, first, first + size)
                first += size
        while self.nxt < self.total:
            size = min(self.mss, self.total - self.nxt)
            if self.nxt + size > self.edge or self.pipe() + size > self.cwnd:
                break
            self.send(now, self.nxt, self.nxt + size)
            self.nxt += size
        if self.una == self.high and self.nxt < self.total:
            self.timers.setdefault("persist", now + self.rto_s())
        else:
            self.timers.pop("persist", None)

    def timed_out(self, now: float) -> None:
        self.lose()
        self.recover, self.timed_out_at, self.grows = self.high, self.high, True
        self.output(now)
        self.timers["retransmit"] = now + self.rto_s()

    def probe(self, now: float) -> None:
        self.shift += 1
        room = min(self.edge - self.nxt, self.mss, self.total - self.nxt)
        if room > 0:
            self.send(now, self.nxt, self.nxt + room)
            self.nxt += room
        else:
            self.out.append((self.una - 1, self.una - 1))  # no octet: only an answer is wanted
            self.timers["persist"] = now + self.rto_s()


class Bsd(Sender):
    """FreeBSD, OpenBSD, NetBSD and macOS: tcp_output(), tcp_timer_rexmt(), tcp_timer_persist() of sys/netinet.

    The length to send is min(available, window, cwnd) less what lies between snd_una and snd_nxt. If that is negative,
    the sender waits for an acknowledgment. If the window is zero too, snd_nxt returns to snd_una, the retransmission
    timer is stopped, and the persist timer sends one octet, again and again. A time-out sends from snd_una again, never
    beyond the edge; what selective acknowledgments show as missing is sent wherever it lies.
    """

    persist_s = (5.0, 60.0)

    def __init__(self, total: int, mss: int, window: int):
        super().__init__(total, mss, window)
        self.widest = window  # max_sndwnd

    def window_changed(self, now: float) -> None:
        super().window_changed(now)
        self.widest = max(self.widest, self.wnd)
        if self.wnd and "persist" in self.timers:
            del self.timers["persist"]
            self.shift = 0

    def output(self, now: float, force: bool = False) -> None:
        while self._segment(now, force):
            force = False

    def _segment(self, now: float, force: bool) -> bool:
        """One turn of tcp_output(): whether a segment was sent and more may follow."""
        holes = self.holes() if self.recover is not None else []
        if holes:
            first, last = holes[0]
            size = min(self.mss, last - first, max(self.usable - self.pipe(), 0))
            if size > 0:
                self.again = merged([*self.again, (first, first + size)])
                self.send(now, first, first + size)
                return True
        for first, last in self.sacked:
            if first <= self.nxt < last:
                self.nxt = last
        usable = max(self.usable, 1) if force else self.usable
        at, left = self.nxt - self.una, self.total - self.nxt
        size = min(self.total - self.una, usable) - (at if self.recover is None else max(self.pipe(), at))
        if size <= 0:
            if self.usable == 0 and left > 0 and "persist" not in self.timers:
                self.timers.pop("retransmit", None)
                self.shift, self.nxt = 0, self.una
                self._persist(now)
            return False
        size = min(size, self.mss)
        again = self.nxt < self.high
        if not (size == self.mss or size == left or force or size >= self.widest // 2 or again):
            if "retransmit" not in self.timers and "persist" not in self.timers:
                self.shift = 0
                self._persist(now)
            return False
        if force and "persist" in self.timers:
            self.out.append((self.nxt, self.nxt + size))
            self.high = max(self.high, self.nxt + size)
            return False
        self.send(now, self.nxt, self.nxt + size)
        self.nxt += size
        self.timers.pop("persist", None)
        return True

    def _persist(self, now: float) -> None:
        least, most = self.persist_s
        self.timers["persist"] = now + min(max(self.rto_s(), least), most)
        self.shift += 1

    def timed_out(self, now: float) -> None:
        self.lose()
        self.nxt, self.sacked = self.una, []
        self.output(now)
        self.timers.setdefault("retransmit", now + self.rto_s())

    def probe(self, now: float) -> None:
        if self.usable == 0:
            self._persist(now)
        self.output(now, force=True)


class Rack(Bsd):
    """FreeBSD's other stack, tcp_stacks/rack.c as of FreeBSD 13: rack_collapsed_window(), rack_un_collapse_window().

    What lies beyond a smaller window is marked. As soon as the window holds all that is outstanding, it is sent again,
    whether or not it has arrived. (Later versions wait for a round trip first.) A smaller window counts even if the
    acknowledgment is not new.
    """

    def __init__(self, total: int, mss: int, window: int):
        super().__init__(total, mss, window)
        self.collapsed: Span | None = None

    def may_update(self, ack: Ack) -> bool:
        return ack.ack >= self.wnd_ack

    def window_changed(self, now: float) -> None:
        super().window_changed(now)
        if self.wnd < self.high - self.una:
            first = self.collapsed[0] if self.collapsed else self.edge
            self.collapsed = (min(first, self.edge), self.high)
        elif self.collapsed:
            (first, last), self.collapsed = self.collapsed, None
            for low, high in without([(max(first, self.una), last)], self.sacked):
                for at in range(low, high, self.mss):
                    self.send(now, at, min(at + self.mss, high))


class Lwip(Sender):
    """lwIP 2.1 and 2.2, src/core: tcp_receive(), tcp_output(), tcp_slowtmr(), tcp_zero_window_probe().

    Segments keep their length: one that does not fit the window waits, and is split if nothing is in flight when the
    persist timer expires. A time-out puts all unacknowledged segments back into the queue of unsent ones, from where
    they go out as the window allows. There are neither selective acknowledgments nor, by default, window scaling.
    Timers have ticks of half a second.
    """

    sack, scale = False, 0
    TICK_S = 0.5
    PERSIST_TICKS = (3, 6, 12, 24, 48, 96, 120)

    def __init__(self, total: int, mss: int, window: int):
        super().__init__(total, mss, window)
        self.unsent = [(first, min(first + mss, total)) for first in range(0, total, mss)]
        self.unacked: list[Span] = []
        self.cwnd = min(4 * mss, max(2 * mss, 4380))

    def rto_s(self) -> float:
        ticks = -(-super().rto_s() // self.TICK_S)
        return float(max(ticks, 2) * self.TICK_S)

    def output(self, now: float) -> None:
        self.unacked = [span for span in self.unacked if span[1] > self.una]
        self.unsent = [span for span in self.unsent if span[1] > self.una]
        if self.unsent and self.unsent[0][1] - self.una > self.usable:
            if self.usable == self.wnd and not self.unacked:
                self.timers.setdefault("persist", now + self.PERSIST_TICKS[0] * self.TICK_S)
            return
        self.timers.pop("persist", None)
        while self.unsent and self.unsent[0][1] - self.una <= self.usable:
            span = self.unsent.pop(0)
            self.unacked = sorted([*self.unacked, span])
            self.nxt = max(self.nxt, span[1])
            self.send(now, *span)

    def enter_recovery(self) -> None:
        super().enter_recovery()
        self.recover = self.una + 1  # any new acknowledgment ends it
        self.cwnd += 3 * self.mss
        self._requeue(1)

    def _acknowledged(self, now: float, fresh: int) -> None:
        if self.recover is not None:
            self.cwnd = self.ssthresh
        super()._acknowledged(now, fresh)

    def _requeue(self, number: int) -> None:
        moved, self.unacked = self.unacked[:number], self.unacked[number:]
        self.unsent = sorted([*moved, *self.unsent])

    def timed_out(self, now: float) -> None:
        self.lose()
        self._requeue(len(self.unacked))
        self.output(now)
        if self.unacked:
            self.timers["retransmit"] = now + self.rto_s()

    def probe(self, now: float) -> None:
        if not self.unsent:
            return
        first, last = self.unsent[0]
        self.shift += 1
        if self.wnd:
            self.unsent[:1] = [(first, first + self.wnd), (first + self.wnd, last)]
            self.output(now)
            return
        self.out.append((first, first + 1))
        self.high = max(self.high, first + 1)
        ticks = self.PERSIST_TICKS[min(self.shift, len(self.PERSIST_TICKS) - 1)]
        self.timers["persist"] = now + ticks * self.TICK_S


STACKS: dict[str, type[Sender]] = {"linux": Linux, "bsd": Bsd, "rack": Rack, "lwip": Lwip}

# ---- the cases of guest_senders.py ---------------------------------------------------------------


@dataclass(frozen=True)
class Trouble:
    """What the path, or the application, does to a connection."""

    hole: bool = True  # the transmission HOLE is lost
    blackout_s: float = 0.0  # two arrive after it, then nothing does for this time
    lose_acks: bool = False  # of the ACKs from then on, each second one is lost
    swap_s: float = 0.0  # each third ACK is later by this, and is overtaken by the next ones
    queue: tuple[float, float, float] = (0.0, 0.0, 0.0)  # from, to, and delay of a queue of other traffic, s
    pause: tuple[float, float] = (0.0, 0.0)  # from, to: the application reads nothing, s
    buffer: int = 0  # SO_RCVBUF


#: number of the transmission that is lost, in slow start: more is in flight than arrived in a round trip, so that a
#: window of what arrived ends in what was sent
HOLE = 60
TROUBLES = {
    "hole": Trouble(),
    "tail": Trouble(blackout_s=0.12),
    "acks": Trouble(lose_acks=True),
    "swap": Trouble(swap_s=0.015),
    "queue": Trouble(hole=False, queue=(0.5, 9.0, 0.08)),
    # TCP itself closes the window, and the sender probes it
    "pause": Trouble(hole=False, pause=(0.5, 7.5), buffer=80_000),
}
CONTROLLERS: dict[str, Options | None] = {
    "nobody": None,
    "retract": {"controller": "paper", "tick_us": 1000, "retract": 1},
    "stay": {"controller": "paper", "tick_us": 1000, "retract": 0},
    "credit": {"controller": "credit"},
}
#: (stack, trouble, controller). Without a controller the kernel is no more than a reference, and rack differs from bsd
#: in few cases
CASES = [
    (stack, trouble, controller)
    for stack, trouble, controller in itertools.product(STACKS, TROUBLES, CONTROLLERS)
    if (controller != "nobody" or trouble in ("hole", "pause"))
    and (stack != "rack" or trouble in ("tail", "swap", "queue"))
]
