# SPDX-License-Identifier: GPL-2.0
"""Scripts that check each module's packets on the wire. Each function is a script; its name and first line state the
claim.

wire.py defines the notation. If an algorithm needs seconds to learn, Path replaces the script: a receiver
behind a forward and a reverse delay, which can mark and lose packets. Time is virtual, so assertions are
exact, except where a comment gives the reason.
"""

from __future__ import annotations

import contextlib
import heapq
import struct
import subprocess
import time
import traceback
from collections.abc import Callable

from common import (
    ATTRIBUTES,
    HINT,
    NESTED,
    NETLINK_GENERIC,
    SETTINGS,
    V_FLOW,
    V_GET,
    V_MAIN,
    V_START,
    V_STOP,
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

SHAKE = "< S 0:0(0) win 65535 <mss 1012,TS val 1000 ecr 0,nop,wscale 7>"


def same(got: object, wanted: object, what: str) -> None:
    """Fail the drill unless the two are equal; the message shows both."""
    if got != wanted:
        raise DrillError(f"{what}: {got}, wanted {wanted}")


def within(got: float, least: float, most: float, what: str) -> None:
    """Fail the drill unless ``got`` is in the range, both ends included."""
    if not least <= got <= most:
        raise DrillError(f"{what}: {got}, wanted {least} to {most}")


def established(wire: Wire, port: int, control: str = "", six: bool = False, ecn: bool = False) -> Drill:
    """A connection opened by the script."""
    one = Drill(wire, port, six)
    one.listen(control)
    one(SHAKE.replace("< S ", "< SEW ") if ecn else SHAKE)
    one("> S.E 0:0(0) ack 1" if ecn else "> S. 0:0(0) ack 1")
    one("+0.1 < . 1:1(0) ack 1 win 60000 <nop,nop,TS val 1100 ecr last>")
    one.accept()
    return one


class Path:
    """A receiver of the kernel's data behind two delays; it acknowledges every segment when it arrives."""

    def __init__(self, drill: Drill):
        self.drill, self.began, self.have = drill, time.monotonic(), 0
        self.win = 60000  # value of the header field
        # (when, order, tsval, (ECE, tsecr), ack)
        self.due: list[tuple[float, int, int, tuple[bool, int], int]] = []
        self.order = 0
        self.late: dict[int, int] = {}  # data received behind a hole
        self.segments: list[tuple[float, int, int, int]] = []  # (when, relative seq, flags, tos) of the kernel's data

    def answer(self, seconds: float, forward_ms: float, reverse_ms: float, *, mark: int = 0, lose: int = 0) -> None:
        """Receive for ``seconds``. The first ``mark`` segments are answered with ECE; the first ``lose`` are lost."""
        drill = self.drill
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            wait = min(self.due[0][0] if self.due else end, end) - now
            one = drill.take(max(wait, 0.0)) if wait > 0.0005 else drill.take()
            if one is not None and one.payload:
                self._arrived(one, forward_ms, reverse_ms, mark > 0, lose > 0)
                mark, lose = mark - 1, lose - 1
            while self.due and self.due[0][0] <= time.monotonic() + 0.0005:
                _, _, value, echo, ack = heapq.heappop(self.due)
                stamp = timestamps(value, echo[1])
                drill.send(drill.segment(".E" if echo[0] else ".", 1, ack=1 + ack, win=self.win, options=stamp))

    def _arrived(self, one: Segment, forward_ms: float, reverse_ms: float, mark: bool, lost: bool) -> None:
        now = time.monotonic()
        at = (one.seq - self.drill.isn - 1) % WORD
        self.segments.append((now, at, one.flags, one.tos))
        if lost:
            return
        self.late[at] = max(self.late.get(at, 0), at + len(one.payload))
        while any(first <= self.have < last for first, last in self.late.items()):
            self.have = max(last for first, last in self.late.items() if first <= self.have)
            self.late = {first: last for first, last in self.late.items() if last > self.have}
        self.order += 1
        value = 1100 + int(1000 * (now - self.began) + forward_ms)
        when = now + (forward_ms + reverse_ms) / 1000
        heapq.heappush(self.due, (when, self.order, value, (mark, one.timestamps[0]), self.have))


# ---- the mark -----------------------------------------------------------------------------


def lowpri_marks_data_and_not_the_handshake(wire: Wire) -> None:
    """background: DSCP LE (0x04) on data, both families; the SYN/ACK has no mark."""
    for six in (False, True):
        one = Drill(wire, 8001, six)
        one.listen("background")
        one(SHAKE)
        one("> S. 0:0(0) ack 1 tos 0x00")
        one("+0.1 < . 1:1(0) ack 1 win 60000 <nop,nop,TS val 1100 ecr last>")
        one.accept()
        one.write(2000)
        one("> . 1:1001(1000) ack 1 tos 0x04")
        one("> P. 1001:2001(1000) ack 1 tos 0x04")
        one.close()


def lowpri_leaves_an_applications_own_mark(wire: Wire) -> None:
    """A TOS set by the application, before or after the congestion control, is not changed."""
    one = established(wire, 8002)
    one.socket.setsockopt(0, 1, 0x48)  # IPPROTO_IP, IP_TOS
    one.socket.setsockopt(6, 13, b"background")  # TCP_CONGESTION
    one.write(1000)
    one("> P. 1:1001(1000) ack 1 tos 0x48")
    one("< . 1:1(0) ack 1001 win 60000 <nop,nop,TS val 1200 ecr last>")
    one.close()
    two = established(wire, 8003, "background")
    two.socket.setsockopt(0, 1, 0x48)
    two.write(1000)
    two("> P. 1:1001(1000) ack 1 tos 0x48")
    two.close()


def lowpri_takes_its_mark_along(wire: Wire) -> None:
    """When the connection changes back to cubic, the next segment has no mark."""
    one = established(wire, 8004, "background")
    one.write(1000)
    one("> P. 1:1001(1000) ack 1 tos 0x04")
    one("< . 1:1(0) ack 1001 win 60000 <nop,nop,TS val 1200 ecr last>")
    one.socket.setsockopt(6, 13, b"cubic")
    one.write(1000)
    one("> P. 1001:2001(1000) ack 1 tos 0x00")
    one.close()


# ---- the hint -----------------------------------------------------------------------------


def shred_hint_writes_the_window_as_tos(wire: Wire) -> None:
    """mode tos: 1 on a SYN/ACK, then the window as it grows, 1 on a reset without a connection."""
    write(f"{HINT}/mode", "tos")
    write(f"{HINT}/host", "1")
    one = Drill(wire, 8010)
    one.listen("reno")
    one(SHAKE)
    one("> S. 0:0(0) ack 1 tos 1")
    one("+0.1 < . 1:1(0) ack 1 win 60000 <nop,nop,TS val 1100 ecr last>")
    one.accept()
    same(one.cwnd, 10, "initial window")
    one.write(10000)
    for at in range(1, 10001, 1000):  # not by the notation: the PSH flag may be on any segment
        sent = one.must_take(0.1)
        same(((sent.seq - one.isn) % WORD, len(sent.payload), sent.tos), (at, 1000, 10), "segment, size, hint")
    one("+0.1 < . 1:1(0) ack 10001 win 60000 <nop,nop,TS val 1200 ecr last>")
    same(one.cwnd, 20, "window after a round of slow start")
    one.write(1000)
    one("> P. 10001:11001(1000) ack 1 tos 20")
    one.close()
    stray = Drill(wire, 8011)  # no socket listens on this port
    stray.known_isn = 0
    stray.send(stray.segment(".", 5, ack=7))
    reset = stray.must_take(1.0)
    same((reset.flags, reset.tos), (FLAGS["R"], 1), "flags and hint of a reset")
    write(f"{HINT}/host", "0")


def shred_hint_codes_the_age_as_dscp(wire: Wire) -> None:
    """mode dscp: a young flow has DSCP 63, and the two bits of ECN are unchanged (ECT(0) on data)."""
    write(f"{HINT}/mode", "dscp")
    write(f"{HINT}/host", "1")
    one = established(wire, 8012, "reno", ecn=True)
    one.write(1000)
    one(f"> P. 1:1001(1000) ack 1 tos {63 << 2 | 2:#x}")
    one.close()
    write(f"{HINT}/host", "0")


# ---- delay and marks at the sender --------------------------------------------------------


def lp_learnt(wire: Wire, port: int, control: str = "lp", ecn: bool = False) -> Path:
    """A connection that has learnt its peer's clock, the RTT of the empty path (100 ms) and of the full one (a loss at
    200 ms)."""
    path = Path(established(wire, port, control, ecn=ecn))
    run_for(path, 0.3, 50, 50)
    run_for(path, 0.3, 150, 50)
    run_for(path, 0.3, 150, 50, lose=1)
    return path


def top_up(path: Path) -> None:
    """Keep the socket's send buffer full."""
    with contextlib.suppress(BlockingIOError):
        path.drill.socket.send(bytes(1 << 19))


def run_for(path: Path, seconds: float, forward_ms: float, reverse_ms: float, **how: int) -> list[int]:
    """Run the path for ``seconds`` with a full send buffer. Returns the window after each tenth of a second."""
    windows = []
    for step in range(round(10 * seconds)):
        top_up(path)
        path.answer(0.1, forward_ms, reverse_ms, **(how if not step else {}))
        windows.append(path.drill.cwnd)
    return windows


def lp_halves_when_the_forward_path_queues(wire: Wire) -> None:
    """lp: half of the window after a round trip of forward delay, no growth for three, a packet if the delay lasts."""
    path = lp_learnt(wire, 8020)
    before = run_for(path, 3.0, 50, 50)[-1]
    queued = run_for(path, 1.5, 130, 50)
    first = next((at for at, window in enumerate(queued) if window < before), None)
    if first is None:
        raise DrillError(f"no reaction: {before}, {queued}")
    half = queued[first - 1] // 2
    # three round trips of 180 ms: four or five tenths of a second
    same(queued[first : first + 4], [half] * 4, f"windows in the inference phase, after {queued[first - 1]}")
    same(max(queued[first + 5 :]) <= 2, True, f"a packet or a pair when the queue lasts: {queued}")
    path.drill.close()


def lp_does_not_mind_a_queue_on_the_way_back(wire: Wire) -> None:
    """lp: the same delay of the ACKs, which their timestamps reveal, does not stop the growth of the window."""
    path = lp_learnt(wire, 8021)
    calm = run_for(path, 3.0, 50, 50)
    queued = run_for(path, 2.0, 50, 130)
    if not all(after >= before for before, after in zip([calm[-1], *queued], queued)):
        raise DrillError(f"the window fell: {calm[-1]}, {queued}")
    path.drill.close()


def lp_halves_for_a_mark_and_says_so(wire: Wire) -> None:
    """lp and lp_ecn: ECE halves the window, the next segment carries CWR; ECE in the inference phase: one packet."""
    for port, control in ((8022, "lp"), (8023, "lp_ecn")):
        path = Path(established(wire, port, control, ecn=True))
        run_for(path, 0.4, 50, 50)
        path.segments.clear()
        # the mark is on a segment that is sent now, so that its echo arrives after a round trip
        at_mark, *after = run_for(path, 0.2, 50, 50, mark=1)
        # 1: the ACK with the mark may have increased the window first
        within(min(after), at_mark // 2 - 1, at_mark // 2 + 1, f"{control}: window after a mark at {at_mark}")
        if not any(flags & FLAGS["W"] for _, _, flags, _ in path.segments):
            raise DrillError(f"{control}: no CWR after ECE")
        if not all(tos & 3 == 2 for _, _, _, tos in path.segments):
            raise DrillError(f"{control}: data without ECT(0)")
        again = run_for(path, 0.3, 50, 50, mark=1)
        within(min(again), 1, 2, f"{control}: window after a second mark")
        path.drill.close()


def ledbat_holds_delay_at_its_target(wire: Wire) -> None:
    """ledbat: the window grows below the target of 25 ms, and falls above it; a queue of ACKs does not count.

    If the RTT shows a queue that the one-way delay does not show, the flow measures its base delay again, at most once
    a minute: two packets for two round trips, then slow start to the previous window.
    """
    path = Path(established(wire, 8030, "ledbat"))
    run_for(path, 3.0, 50, 50)
    first = path.drill.cwnd
    below = run_for(path, 2.0, 60, 50)
    if not below[-1] > first:
        raise DrillError(f"no growth at 10 ms of queue: {first}, {below}")
    above = run_for(path, 2.0, 120, 50)
    if not above[-1] < below[-1]:
        raise DrillError(f"no reduction at 70 ms of queue: {below[-1]}, {above}")
    low = run_for(path, 1.0, 50, 50)[-1]
    # 1.5 s: freeze and slow start are seven round trips of 170 ms
    look, kept = run_for(path, 1.5, 50, 120), run_for(path, 6.0, 50, 120)
    same(min(look), 2, f"the window in which the base delay is read again: {look}")
    if min(kept) < low or sorted(kept) != kept:
        raise DrillError(f"fell for a queue on the way back: {low}, {look}, {kept}")
    path.drill.close()


def ignores_forged_acknowledgments(wire: Wire, port: int, control: str) -> None:
    """Forged ACKs of an off-path attacker, which TCP discards, do not change the windows of the third second."""
    windows = []
    for forged in (False, True):
        path = Path(established(wire, port + forged, control))
        path.win = 400  # 51 packets
        seen = []
        for _ in range(30):
            seen += run_for(path, 0.1, 50, 50)
            if not forged:
                continue
            drill, ahead = path.drill, path.have + (1 << 30)
            echo = drill.ts_last
            for seq, ack, value in (
                (1 << 30, 1 + path.have, 1 << 31),  # outside of the window, with an extreme timestamp
                (1, 1 + ahead, 1 << 20),  # acknowledges data that was never sent
                (1, (1 + path.have - (1 << 30)) % WORD, 1 << 20),  # a very old acknowledgment
                (1, 1 + path.have, 1),  # an old timestamp
            ):
                stamp = timestamps(value, echo)
                drill.send(drill.segment(".", seq, ack=ack, win=1, options=stamp))
        windows.append(seen)
        path.drill.close()
    honest, attacked = windows
    # lbe's second connection starts with the first one's knowledge of the path
    if any(abs(one - other) > 2 + one // 10 for one, other in zip(honest[-10:], attacked[-10:], strict=True)):
        raise DrillError(f"{control}: windows {honest}, beside forged ACKs {attacked}")


def lp_ignores_forged_acknowledgments(wire: Wire) -> None:
    """lp: forged ACKs of an off-path attacker do not change the window."""
    ignores_forged_acknowledgments(wire, 8032, "lp")


def ledbat_ignores_forged_acknowledgments(wire: Wire) -> None:
    """ledbat: the same."""
    ignores_forged_acknowledgments(wire, 8034, "ledbat")


def lbe_ignores_forged_acknowledgments(wire: Wire) -> None:
    """lbe: the same."""
    ignores_forged_acknowledgments(wire, 8036, "lbe")


def lowpri_ignores_forged_acknowledgments(wire: Wire) -> None:
    """background: the same."""
    ignores_forged_acknowledgments(wire, 8038, "background")


# ---- the window field ---------------------------------------------------------------------


class Download:
    """A connection on which the script sends at the rate of a path of 1.6 Mbit/s and 100 ms, within the window.

    Data arrives when it is sent; the kernel's segments (acknowledgments, windows, timestamps) reach the
    sender after the round trip.
    """

    GAP_S, RTT_S = 0.005, 0.1

    def __init__(self, wire: Wire, port: int, six: bool = False):
        self.one = established(wire, port, six=six)
        self.link, self.number = Netlink(NETLINK_GENERIC), family()
        self.sent, self.edge = 0, 1000
        self.fields: list[int] = []
        self.began = time.monotonic()
        self.heard = [(0.0, 10000, self.one.ts_last)]  # (time of arrival, right edge, timestamp)
        self.echo = 0
        self.holes: list[tuple[float, int]] = []  # (time of the retransmission, first byte) of lost segments
        self.times: list[float] = []  # times at which the latest segments were sent

    def ask(self, command: int, payload: bytes = b"") -> dict[int, bytes]:
        """Send a request to vulture; returns the attributes of the reply."""
        data = by_fd(self.one.socket) + payload
        code, text, bodies = self.link.ask(vulture(command, data, self.number))
        if code:
            raise DrillError(f"vulture command {command}: errno {code} {text}")
        return attributes(bodies[0][4:])

    def start(self, **options: int) -> None:
        """Start the paper's controller, with options by name; by default the right edge is not retracted."""
        kinds, named = ATTRIBUTES["options"], ATTRIBUTES["paper-options"]
        options = {"retract": 0, "tick_us": 1000} | options
        inside = b"".join(
            attribute(named[name.replace("_", "-")], struct.pack("=I", value)) for name, value in options.items()
        )
        chosen = attribute(kinds["controller"], struct.pack("=I", 0)) + attribute(kinds["paper"] | NESTED, inside)
        self.ask(V_START, attribute(V_MAIN["options"] | NESTED, chosen))

    def flow(self, *kinds: int) -> int:
        """A field of the flow, or of a nested attribute in it."""
        found = self.ask(V_GET)[V_MAIN["flow"]]
        for kind in kinds:
            found = attributes(found)[kind]
        return int.from_bytes(found, "little")

    def used(self) -> int:
        """The window from which a reduction starts: the smaller of the window and a round trip's data plus two
        segments."""
        return min(self.fields[-1], 1000 * (len(self.times) + 2))

    def send(self, seconds: float, skip: int = 0) -> None:
        """Send for ``seconds``. The first ``skip`` segments are lost, and retransmitted after the round trip."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.GAP_S)
            self.look()
            while len(self.heard) > 1 and self.heard[1][0] <= time.monotonic() - self.RTT_S:
                self.heard.pop(0)
            _, edge, self.echo = self.heard[0]
            if self.holes and self.holes[0][0] <= time.monotonic():
                self._data(self.holes.pop(0)[1])
            elif self.sent + 1000 <= edge:
                if skip:
                    self.holes.append((time.monotonic() + self.RTT_S, self.sent))
                    skip -= 1
                else:
                    self._data(self.sent)
                self.sent += 1000
                self.times = [at for at in self.times if at > time.monotonic() - self.RTT_S] + [time.monotonic()]
            self.look()

    def _data(self, at: int) -> None:
        """Send a segment."""
        value = 1100 + int(1000 * (time.monotonic() - self.began))
        stamp = timestamps(value, self.echo)
        self.one.send(self.one.segment(".", 1 + at, bytes(1000), 1, options=stamp))

    def look(self) -> None:
        """Receive the kernel's segments; the right edge must never move to the left, except by rounding to the window's
        unit."""
        while (one := self.one.take(0.0002)) is not None:
            edge = (one.ack - Drill.OUR_ISN - 1) % WORD + (one.window << self.one.scale)
            if edge <= self.edge - (1 << self.one.scale):
                raise DrillError(f"the right edge moved from {self.edge} to {edge}: {self.one.shown(one)}")
            self.edge = max(edge, self.edge)
            self.fields.append(one.window << self.one.scale)
            self.heard.append((time.monotonic(), edge, self.one.ts_last))
        self.one.read()


RWND, ADVERTISED, SEGMENTS = ((V_FLOW[name],) for name in ("window-bytes", "advertised-bytes", "segments"))
THRESHOLD, DOUBLINGS, LOSSES = (
    (V_FLOW["paper"], ATTRIBUTES["paper-stats"][name]) for name in ("thresh-bytes", "doublings", "losses")
)


def vulture_leaves_a_window_alone_until_it_is_started(wire: Wire) -> None:
    """Before start and after stop the window field is TCP's; stop sends it at once; in between it is smaller."""
    for six in (False, True):
        load_ = Download(wire, 8040, six)
        load_.send(1.0)
        own = load_.fields[-1]
        load_.start()
        load_.send(5.0)
        time.sleep(0.1)
        load_.look()
        same(load_.flow(*ADVERTISED), load_.fields[-1], "what get says and what the wire has")
        if not load_.fields[-1] < own // 4:
            raise DrillError(f"the window is {load_.fields[-1]}, TCP's own {own}")
        within(load_.fields[-1], 2000, 1 << 20, "a window of two segments at least")
        load_.fields.clear()
        load_.ask(V_STOP)
        load_.look()
        same(len(load_.fields), 1, "segments at stop")
        if load_.fields[0] < own:
            raise DrillError(f"stop gives back {load_.fields[0]} of {own}")
        load_.one.close()


def limited(wire: Wire, port: int, **options: int) -> Download:
    """A connection under control for long enough that the window has converged to the path's capacity."""
    one = Download(wire, port)
    one.send(1.0)
    one.start(**options)
    one.send(5.0)
    return one


#: options of the paper's controller: "halve" ends at half of the window, and "double" is judged when it is done
HALVES = {"goals": 1, "settle": 1}


def vulture_halves_for_a_loss(wire: Wire) -> None:
    """A hole, with goals 1 and retract 0: half of the used window, by keeping the right edge, not by moving it back."""
    one = limited(wire, 8042, **HALVES)
    before = one.used()
    one.send(0.3, skip=1)
    same(one.flow(*LOSSES), 1, "losses seen")
    within(min(one.fields[-20:]), before // 2 - 2000, before // 2 + 2000, f"window after a loss at {before}")
    one.one.close()


def vulture_doubles_up_to_what_it_was(wire: Wire) -> None:
    """After a loss, which halves the window with goals 1, packets arrive as evenly as they are sent: the window doubles
    to its previous size."""
    one = limited(wire, 8043, **HALVES)
    before = one.used()
    one.send(0.5, skip=1)
    threshold = one.flow(*THRESHOLD)  # the window that the sender used
    # 2000: vulture's round trip begins and ends with packets, and is longer than RTT_S by the gaps
    within(threshold, before - 2000, before + 2000, f"threshold after a loss at {before}")
    one.send(1.0)
    # 127: the window field has units of 128 bytes, and is rounded up
    within(min(one.fields), threshold // 2, threshold // 2 + 127, "least window")
    if not any(threshold <= field <= threshold + 127 for field in one.fields):
        raise DrillError(f"no window of {threshold} on the way up: {sorted(set(one.fields))}")
    same(one.flow(*DOUBLINGS), 1, "doublings")
    one.one.close()


def ignores_what_tcp_throws_away(wire: Wire, port: int, controller: int, *kinds: tuple[int, ...]) -> None:
    """Forged segments (wrong checksum, outside of the window, old timestamp) change none of these fields."""
    one = Download(wire, port)
    number = attribute(ATTRIBUTES["options"]["controller"], struct.pack("=I", controller))
    one.ask(V_START, attribute(V_MAIN["options"] | NESTED, number))
    one.send(2.0)
    time.sleep(0.1)
    one.look()
    before = [one.flow(*kind) for kind in (SEGMENTS, *kinds)]
    same(before[0] > 50, True, f"segments that it counts: {before[0]}")
    for at in range(100):
        stamp = timestamps(900000 + at, one.one.ts_last)
        raw = bytearray(
            one.one.segment(".", 1 + one.sent + 500, b"forged", 1, options=stamp).raw(one.one.there, one.one.here)
        )
        raw[-1] ^= 0x55  # makes the checksum wrong
        wire.send(bytes(raw))
        one.one.send(one.one.segment(".", (1 << 30) + at, b"forged", 1, options=stamp))
        one.one.send(one.one.segment(".", (1 + one.sent - (1 << 30) - at) % WORD, b"forged", 1, options=stamp))
        old = timestamps(1 + at, one.one.ts_last)
        one.one.send(one.one.segment(".", 1 + one.sent + 500, b"forged", 1, options=old))
    same([one.flow(*kind) for kind in (SEGMENTS, *kinds)], before, f"segments, and fields {kinds}")
    one.one.close()


def vulture_ignores_what_tcp_throws_away(wire: Wire) -> None:
    """paper: no forged segment counts."""
    ignores_what_tcp_throws_away(wire, 8044, 0, LOSSES, RWND)


def vulture_credit_ignores_what_tcp_throws_away(wire: Wire) -> None:
    """credit: the same."""
    stats = ATTRIBUTES["credit-stats"]
    kinds = ((V_FLOW["credit"], stats[name]) for name in ("yields", "trains", "trains-failed"))
    ignores_what_tcp_throws_away(wire, 8045, 1, *kinds)


def vulture_rledbat_ignores_what_tcp_throws_away(wire: Wire) -> None:
    """rledbat: the same."""
    stats = ATTRIBUTES["rledbat-stats"]
    kinds = ((V_FLOW["rledbat"], stats[name]) for name in ("samples", "losses", "slowdowns"))
    ignores_what_tcp_throws_away(wire, 8046, 2, *kinds, RWND)


DRILLS: dict[str, tuple[str, Callable[[Wire], None]]] = {
    name: (module, function)
    for name, function in list(globals().items())
    for prefix, module in (
        ("lowpri_", "tcp_lowpri"), ("shred_hint_", "shred_hint"), ("lp_", "tcp_lp"), ("ledbat_", "tcp_ledbat"),
        ("lbe_", "tcp_lbe"), ("vulture_", "vulture"),
    )
    if name.startswith(prefix) and callable(function) and name != "lp_learnt"
}  # fmt: skip


def main() -> None:
    wire = Wire("wire", 9)
    write("/proc/sys/net/ipv4/tcp_ecn", "1")
    # exclude effects that the scripts do not expect
    write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1")
    subprocess.run(["sysctl", "-qw", "net.ipv4.tcp_rmem=4096 1000000 4000000"], check=True)
    results = {}
    for done, (name, (module, function)) in enumerate(DRILLS.items(), 1):
        if SETTINGS.get("only") and SETTINGS["only"] not in name:
            continue
        must(load(module, SETTINGS.get("parameters", "").encode() or None), f"load {module}")
        try:
            function(wire)
            results[name] = "ok"
        except Exception as error:  # noqa: BLE001 - the next script must run
            results[name] = f"{error}" if isinstance(error, DrillError) else traceback.format_exc()
        expect(results[name] == "ok", f"{name}: {results[name]}")
        count(module)
        while wire.take(0.5) is not None:
            pass
        Drill.forget()
        must(unload(module), f"unload {module} after {name}")
        progress(done, len(DRILLS))
    finish(len(results), drills=results)


main()
