# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_senders.py: other stacks' senders against the kernel's receiver and vulture.

    guest_senders.py BIN OUT     BIN: as guest_control.py has it, with wire.py and senders.py; OUT: file for the results

Three kinds of cases. In scripts each segment is written down. In the cases STACK-TROUBLE-CONTROLLER a model of
senders.py sends through a path of 3.2 Mbit/s and 100 ms with a long queue. In the cases kernel-CONTROLLER the sender is
the kernel's own in another namespace, behind a path that loses everything for 15 ms of its slow start.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path

BIN, OUT = sys.argv[1:3]
sys.path.insert(0, BIN)

import senders  # noqa: E402
from guest_control import ETH_P_ALL, beside_peer, number, scale_of  # noqa: E402
from senders import Ack, Options, Sender, Span, Trouble, merged, octets, without  # noqa: E402
from wire import WORD, Drill, DrillError, Segment, Wire, timestamps  # noqa: E402

import vulture  # noqa: E402

MSS, TOTAL = 1000, 300_000
SERVICE_S, WAY_S = 0.0025, 0.05
#: longest delay of an ACK that TCP makes, and a tick
DELACK_S = 0.205
#: time after which an ACK that leaves knows of an arrival
AT_ONCE_S = 0.005
#: a connection that is not complete after this time has failed
LIMIT_S = 120.0
TEXT = random.Random(9).randbytes(TOTAL)


class Peer(Drill):
    """A sender with an address in a network of its own, since controllers remember what they learnt of a network."""

    networks = itertools.count(1)

    def __init__(self, wire: Wire):
        network = next(self.networks)
        super().__init__(wire, 8000 + network)
        self.there = socket.inet_aton(f"10.9.{network}.2")

    def open(self, sack: bool = True, scale: int = 7, buffer: int = 0) -> socket.socket:
        """The handshake, and the kernel's socket."""
        self.listen(**({"receive_bytes": buffer} if buffer else {}))
        options = [f"mss {MSS + 12}", *(["sackOK"] if sack else []), "TS val 1000 ecr 0"]
        options += ["nop", f"wscale {scale}"] if scale else []
        self(f"< S 0:0(0) win 65535 <{','.join(options)}>")
        self("> S. 0:0(0) ack 1")
        if not scale:
            self.scale = 0
        self(f"+{2 * WAY_S} < . 1:1(0) ack 1 win 65535 <nop,nop,TS val 1100 ecr last>")
        return self.accept()

    def right_edge(self, one: Segment) -> int:
        """Of a segment of the kernel; octets from 0 on."""
        return self.acknowledged(one) + (one.window << self.scale)

    @staticmethod
    def acknowledged(one: Segment) -> int:
        """The same of its acknowledgment number."""
        return (one.ack - Drill.OUR_ISN - 1) % WORD

    def selected(self, one: Segment) -> tuple[Span, ...]:
        """Its selective acknowledgments, without D-SACK."""
        blocks = one.option(5) or b""
        numbers = struct.unpack(f"!{len(blocks) // 4}I", blocks)
        edges = [(number - Drill.OUR_ISN - 1) % WORD for number in numbers]
        spans = zip(edges[::2], edges[1::2], strict=True)
        return tuple(span for span in spans if span[1] > self.acknowledged(one))


class Run:
    """One connection of a model, and what was seen of it."""

    def __init__(self, peer: Peer, model: type[Sender], trouble: Trouble):
        self.peer, self.model, self.trouble = peer, model, trouble
        self.events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self.order = itertools.count()
        self.free_at = 0.0
        self.hole_at = -1.0  # when the transmission HOLE was sent
        self.echo, self.waits = 0, False
        self.arrived: list[Span] = []  # octets that reached the kernel within an edge that was offered
        self.got = b""
        self.edge = self.last_edge = self.acked = 0  # furthest right edge, the latest, what is acknowledged
        self.wanted: deque[tuple[float, int]] = deque()  # (time, octets that had arrived in order)
        self.fresh_at = 0.0
        self.faults: list[str] = []
        self.seen = dict.fromkeys(("sent", "acks", "lefts", "zeros", "twice"), 0)
        self.silence_s = 0.0  # longest time without a new octet for the application
        self.began = time.monotonic()

    @property
    def now(self) -> float:
        """Time since the connection began."""
        return time.monotonic() - self.began

    def go(self, options: Options | None) -> dict[str, object]:
        """Open the connection, send everything, and say what was seen."""
        updates = 0
        with vulture.Vulture() as v:
            rule = v.rule_add(local_port=self.peer.port, **options) if options else None
            connection = self.peer.open(self.model.sack, self.model.scale, self.trouble.buffer)
            self.echo = self.peer.ts_last
            self.edge = self.last_edge = self.peer.latest.window
            sender = self.sender = self.model(TOTAL, MSS, self.edge)
            self.began = time.monotonic()
            sender.output(0.0)
            self.flush()
            while not sender.done and not sender.fault and self.now < LIMIT_S:
                self.step()
            if rule:
                updates = v.get(connection).updates
                v.rule_del(rule)
        if sender.fault:
            self.faults.append(sender.fault)
        if not sender.done:
            self.faults.append(f"stands at {sender.una} of {TOTAL}, timers {sender.timers}, window {sender.wnd}")
        elif self.got != TEXT:
            self.faults.append(f"other bytes: {len(self.got)} of {TOTAL}")
        return {
            "faults": self.faults, "took_s": round(self.now, 3), "silence_s": round(self.silence_s, 3),
            "beyond": sender.beyond, "probes": sender.probes, "updates": updates, **self.seen,
        }  # fmt: skip

    # ---- the path --------------------------------------------------------------------

    def later(self, when: float, what: Callable[..., None], *words: object) -> None:
        """Call something at a time of the connection."""
        heapq.heappush(self.events, (when, next(self.order), what, words))

    def loses(self, transmission: int, now: float) -> bool:
        """Whether the path loses this transmission."""
        if self.trouble.hole and transmission == senders.HOLE:
            self.hole_at = now
            return True
        return transmission > senders.HOLE + 2 and now < self.hole_at + self.trouble.blackout_s

    def flush(self) -> None:
        """Put what the sender sends onto the path."""
        for first, last in self.sender.out:
            self.seen["sent"] += 1
            now = self.now
            self.free_at = max(self.free_at, now) + SERVICE_S
            if not self.loses(self.seen["sent"], now):
                since, until, queue_s = self.trouble.queue
                delay_s = min(max(now - since, 0.0), queue_s) if now < until else 0.0
                stamp = timestamps(1100 + int(1000 * now), self.echo)
                self.later(self.free_at + WAY_S + delay_s, self.to_kernel, first, last, stamp)
        self.sender.out.clear()

    def reads(self) -> bool:
        """Whether the application reads."""
        since, until = self.trouble.pause
        return not since < self.now < until

    def step(self) -> None:
        """Wait for the next event, a timer of the sender or a segment of the kernel."""
        looks = [one[0] + DELACK_S for one in itertools.islice(self.wanted, 1)]
        due = min([LIMIT_S, *looks, *self.sender.timers.values(), *(one[0] for one in self.events[:1])])
        if self.waits and self.reads():
            self.take_in()
        self.waits = not self.reads()
        if self.waits:
            due = min(due, self.trouble.pause[1])
        # in short pieces: with each packet of another connection the wait begins again
        one = self.peer.take(min(max(due - self.now, 0.0005), 0.05))
        if one is not None:
            self.from_kernel(one)
        while self.events and self.events[0][0] <= self.now:
            _, _, what, words = heapq.heappop(self.events)
            what(*words)
        self.look(self.now - DELACK_S)
        self.sender.on_timer(self.now)
        self.flush()

    def to_kernel(self, first: int, last: int, stamp: bytes) -> None:
        """A segment arrives at the kernel."""
        if first < 0:  # a probe without data, of an octet that was acknowledged
            self.peer.send(self.peer.segment(".", 1 + first, b"", 1, options=stamp))
            return
        self.peer.send(self.peer.segment(".", 1 + first, TEXT[first:last], 1, options=stamp))
        self.seen["twice"] += last - first - octets(without([(first, last)], self.arrived))
        if last <= self.edge:
            self.arrived = merged([*self.arrived, (first, last)])
        self.noted()

    def noted(self) -> None:
        """Something arrived."""
        self.wanted.append((self.now, self.arrived[0][1] if self.arrived and not self.arrived[0][0] else 0))

    def from_kernel(self, one: Segment) -> None:
        """A segment leaves the kernel."""
        peer, now = self.peer, self.now
        self.seen["acks"] += 1
        ack, edge = peer.acknowledged(one), peer.right_edge(one)
        self.seen["lefts"] += edge <= self.last_edge - (1 << peer.scale)
        self.seen["zeros"] += not one.window
        self.last_edge, self.edge, self.acked = edge, max(self.edge, edge), max(self.acked, ack)
        self.look(now - AT_ONCE_S)
        self.take_in()
        count = self.seen["acks"]
        if self.trouble.lose_acks and count > senders.HOLE // 2 and count % 2 == 0:
            return
        made = Ack(ack, edge - ack, peer.selected(one))
        sent_at = (one.timestamps[1] - 1100) / 1000
        late_s = 0.0 if count % 3 else self.trouble.swap_s
        self.later(now + WAY_S + late_s, self.to_sender, made, sent_at, one.timestamps[0])

    def to_sender(self, ack: Ack, sent_at: float, echo: int) -> None:
        """A segment of the kernel arrives at the sender."""
        self.echo = echo
        self.sender.on_ack(self.now, Ack(ack.ack, ack.window, ack.sacks, self.now - sent_at))

    def take_in(self) -> None:
        """The application reads."""
        got = self.peer.read() if self.reads() else b""
        if got:
            self.got += got
            self.silence_s = max(self.silence_s, self.now - self.fresh_at)
            self.fresh_at = self.now

    def look(self, until: float) -> None:
        """All that arrived in order by then is acknowledged."""
        while self.wanted and self.wanted[0][0] <= until:
            _, wanted = self.wanted.popleft()
            # an octet that probes a closed window need not be taken
            if self.acked < wanted - 1:
                self.faults.append(f"{self.acked} acknowledged, {wanted} arrived within an edge that was offered")


class Unsent(Run):
    """A fault: a segment seems to arrive, and the kernel gets nothing."""

    def to_kernel(self, first: int, last: int, stamp: bytes) -> None:
        if first == 100_000 and without([(first, last)], self.arrived):
            self.arrived = merged([*self.arrived, (first, last)])
            self.noted()
        else:
            super().to_kernel(first, last, stamp)


# ---- scripts --------------------------------------------------------------------------------


def retracted(wire: Wire, v: vulture.Vulture) -> tuple[Peer, int, int, list[int]]:
    """A connection whose edge has moved to the left. All up to 31000 arrived but the segment from 29000 on, and the
    script may have sent anything up to the old edge. Returns it, the old edge, the edge, a clock for timestamps."""
    one = Peer(wire)
    v.start(one.open(), **senders.CONTROLLERS["retract"])
    clock = [1200]
    for first in (*range(0, 29000, 1000), 30000):
        old = one.right_edge(one.latest) if first else one.latest.window
        put(one, clock, first, 1000)
        one.drain()
        one.read()
    edge = one.right_edge(one.latest)
    if not edge < old - 10_000:
        raise DrillError(f"the edge did not move to the left: {old}, {edge}")
    return one, old, edge, clock


def put(one: Peer, clock: list[int], first: int, size: int) -> None:
    """Send these octets."""
    clock[0] += 10
    time.sleep(0.01)
    one(f"< . {first + 1}:{first + 1 + size}({size}) ack 1 win 65535 <nop,nop,TS val {clock[0]} ecr last>")


def answer(one: Peer, acknowledged: int, *selected: Span) -> None:
    """The kernel answers with this acknowledgment and these selected octets, and the module does not repeat that."""
    found = [(one.acknowledged(segment), set(one.selected(segment))) for segment in one.drain()]
    if len(found) != 1 or any(one != (acknowledged, set(selected)) for one in found):
        raise DrillError(f"wanted {acknowledged} {selected}, got {found}")


def script_data_beyond_the_present_edge_is_taken(wire: Wire, v: vulture.Vulture) -> None:
    """What a sender had sent before it learnt of the smaller window, such as Linux and lwIP, which keep it as sent."""
    one, old, edge, clock = retracted(wire, v)
    put(one, clock, edge + 1000, 1000)
    answer(one, 29000, (30000, 31000), (edge + 1000, edge + 2000))
    put(one, clock, old - 1000, 1000)
    answer(one, 29000, (30000, 31000), (edge + 1000, edge + 2000), (old - 1000, old))
    put(one, clock, 29000, 1000)
    answer(one, 31000, (edge + 1000, edge + 2000), (old - 1000, old))
    for first in range(31000, edge + 1000, 1000):
        put(one, clock, first, min(1000, edge + 1000 - first))
        one.drain()
    if one.acknowledged(one.latest) != edge + 2000:
        raise DrillError(f"{one.acknowledged(one.latest)} acknowledged of {edge + 2000}")


def script_data_beyond_every_edge_is_not_taken(wire: Wire, v: vulture.Vulture) -> None:
    """The octets behind the furthest edge: TCP's own answer each, which acknowledges nothing new."""
    one, old, _, clock = retracted(wire, v)
    for _ in range(10):
        put(one, clock, old + 4_000_000, 1000)
        answer(one, 29000, (30000, 31000))
    put(one, clock, 29000, 1000)
    answer(one, 31000)


def script_a_time_out_sends_again_within_the_smaller_window(wire: Wire, v: vulture.Vulture) -> None:
    """As BSD does from snd_una on, a part of a segment too; then what it had sent beyond the edge arrives late."""
    one, _, edge, clock = retracted(wire, v)
    put(one, clock, 29000, 500)
    answer(one, 29500, (30000, 31000))
    put(one, clock, 29500, 1000)
    answer(one, 31000)
    put(one, clock, edge + 1000, 1000)
    answer(one, 31000, (edge + 1000, edge + 2000))


def script_probes_of_one_octet_are_answered(wire: Wire, v: vulture.Vulture) -> None:
    """The persist timer of BSD and lwIP sends the octet at snd_una, again and again: one answer each, with an open
    window."""
    one, _, _, clock = retracted(wire, v)
    for _ in range(3):
        put(one, clock, 29000, 1)
        answer(one, 29001, (30000, 31000))
        if one.window_bytes < 2 * MSS:
            raise DrillError(f"a window of {one.window_bytes} octets")
    put(one, clock, 29000, 1000)
    answer(one, 31000)


def script_what_is_sent_twice_is_answered_once(wire: Wire, v: vulture.Vulture) -> None:
    """FreeBSD's RACK sends again what lay beyond a smaller window: one answer each, and no loss is counted."""
    one, _, edge, clock = retracted(wire, v)
    losses = v.get(one.socket).losses
    for _ in range(10):
        put(one, clock, edge + 1000, 1000)
        answer(one, 29000, (30000, 31000), (edge + 1000, edge + 2000))
    if v.get(one.socket).losses != losses:
        raise DrillError(f"losses: {losses}, then {v.get(one.socket).losses}")


SCRIPTS = {name.removeprefix("script_"): what for name, what in list(globals().items()) if name.startswith("script_")}


# ---- the kernel's own sender -----------------------------------------------------------------

#: octets of the download, and those after which the path loses everything
PORT, KERNEL_TOTAL, KERNEL_HOLE = 7100, 2_000_000, 40_000
SENDER = f"""
import random, socket
server = socket.create_server(("10.9.0.2", {PORT}))
print("ready", flush=True)
connection, _ = server.accept()
connection.sendall(random.Random(11).randbytes({KERNEL_TOTAL}))
connection.recv(1)
"""


def counted(name: str) -> int:
    """A counter of TCP in the sender's namespace."""
    words = ["ip", "netns", "exec", "peer", "cat", "/proc/net/netstat", "/proc/net/snmp"]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        if name in names.split():
            return int(values.split()[names.split().index(name)])
    raise KeyError(name)


class Capture:
    """What a device carries, in both directions."""

    def __init__(self, device: str):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.socket.bind((device, ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.setblocking(False)

    def edges(self, local: int) -> dict[str, int]:
        """Of the connection with that local port. lefts: how often the edge moved to the left; beyond: most octets that
        arrived beyond the present edge."""
        seen = {"lefts": 0, "beyond": 0, "acks": 0, "sent": 0}
        edge: int | None = None
        scale = 0
        while True:
            try:
                packet = self.socket.recv(1 << 16)
            except BlockingIOError:
                self.socket.close()
                return seen
            offset = (packet[0] & 15) * 4
            size = number(packet, 2, 2) - offset - (packet[offset + 12] >> 4) * 4
            ends = number(packet, offset, 2), number(packet, offset + 2, 2)
            if packet[9] != 6 or set(ends) != {PORT, local}:
                continue
            if ends[0] == PORT and size:
                seen["sent"] += 1
                if edge is not None:
                    seen["beyond"] = max(seen["beyond"], signed(number(packet, offset + 4, 4) + size - edge))
            elif ends[1] == PORT and packet[offset + 13] & 2:
                scale = scale_of(packet, offset) or 0
            elif ends[1] == PORT:
                seen["acks"] += 1
                new = number(packet, offset + 8, 4) + (number(packet, offset + 14, 2) << scale)
                seen["lefts"] += edge is not None and signed(new - edge) <= -(1 << scale)
                edge = new


def shape(more: str, verb: str = "add") -> None:
    """Set the path from the other namespace to this one."""
    way = f"delay {round(1000 * WAY_S)}ms"
    path = f"tc qdisc {verb} dev v1 root netem rate 3200kbit {way} limit 1000 {more}"
    subprocess.run(f"ip netns exec peer {path}", shell=True, check=True)
    if verb == "add":
        ours = f"ip -n peer link set v1 gso_max_segs 1 && tc qdisc add dev v0 root netem {way}"
        subprocess.run(ours, shell=True, check=True)


def signed(difference: int) -> int:
    """Of two sequence numbers."""
    return (difference + (1 << 31)) % WORD - (1 << 31)


def kernel_sender(options: Options | None) -> dict[str, object]:
    """A download from the other namespace."""
    capture, names = Capture("v0"), ("RetransSegs", "TCPTimeouts")
    before = [counted(name) for name in names]
    words = ["ip", "netns", "exec", "peer", sys.executable, "-c", SENDER]
    got, lossy = bytearray(), 0
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child, vulture.Vulture() as v:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        rule = v.rule_add(remote_port=PORT, **options) if options else None
        began = time.monotonic()
        with socket.create_connection(("10.9.0.2", PORT)) as receiver:
            receiver.settimeout(LIMIT_S)
            while len(got) < KERNEL_TOTAL and (block := receiver.recv(1 << 16)):
                got += block
                if lossy == 0 and len(got) > KERNEL_HOLE:
                    lossy, until = 1, time.monotonic() + 0.015
                    shape("loss 100%", "change")
                elif lossy == 1 and time.monotonic() > until:
                    lossy = 2
                    shape("", "change")
            took_s, local = time.monotonic() - began, receiver.getsockname()[1]
            receiver.sendall(b"x")
        if rule:
            v.rule_del(rule)
    faults = [] if bytes(got) == random.Random(11).randbytes(KERNEL_TOTAL) else [f"{len(got)} bytes, or others"]
    again, timeouts = (counted(name) - was for name, was in zip(names, before, strict=True))
    return {"faults": faults, "took_s": round(took_s, 2), "again": again, "timeouts": timeouts, **capture.edges(local)}


RESULTS: dict[str, dict[str, object]] = {}


def tried(name: str, what: Callable[..., dict[str, object] | None], *words: object) -> None:
    """Carry out a case; the next one must run whatever happens in it."""
    try:
        RESULTS[name] = what(*words) or {"faults": []}
    except Exception as error:  # noqa: BLE001 - see above
        RESULTS[name] = {"faults": [str(error) if isinstance(error, DrillError) else traceback.format_exc()]}
    Drill.forget()


def model_sender(wire: Wire, stack: str, trouble: str, controller: str) -> dict[str, object]:
    """A download from a model."""
    return Run(Peer(wire), senders.STACKS[stack], senders.TROUBLES[trouble]).go(senders.CONTROLLERS[controller])


def main() -> None:
    with beside_peer():
        shape("")
        for controller, options in senders.CONTROLLERS.items():
            tried(f"kernel-{controller}", kernel_sender, options)
    wire = Wire("wire", 9)
    subprocess.run(["ip", "route", "add", "10.9.0.0/16", "dev", "wire"], check=True)
    subprocess.run(["sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"], check=True)
    subprocess.run(["sysctl", "-qw", "net.ipv4.tcp_rmem=4096 1000000 4000000"], check=True)
    with vulture.Vulture() as v:
        for name, script in SCRIPTS.items():
            tried(name, script, wire, v)
    for case in senders.CASES:
        tried("-".join(case), model_sender, wire, *case)
    tried("fault", lambda: Unsent(Peer(wire), senders.STACKS["bsd"], senders.TROUBLES["queue"]).go(None))
    Path(OUT).write_text(json.dumps(RESULTS), encoding="utf-8")


main()
