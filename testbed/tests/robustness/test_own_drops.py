# SPDX-License-Identifier: GPL-2.0
"""The sender's own device drops packets, even the only one of a connection, and no transfer stops for ever.

TCP learns of such a drop at once, and arms no timer for a packet that its pacing has sent. Only a device that drops
everything for longer than TCP_USER_TIMEOUT ends a connection.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.support import guests

pytestmark = pytest.mark.scenario

#: Argument: a control. Beside a greedy ordinary transfer, a connection with that control begins every 2 s, and nearly
#: four times a second the device's queue has room for one packet only. (With a period of 250 ms each of TCP's probes,
#: which are half a second apart, would meet the same part of it, and 16 that are dropped end a connection of Reno too.)
#: Printed: how many bytes arrived over each connection in half a minute, half a minute after the end of the other
#: traffic.
CLIENT = """
import socket, subprocess, sys, threading, time
counts = []
def serve():
    while True:
        peer, _ = listener.accept()
        threading.Thread(target=take, args=[peer, len(counts)], daemon=True).start()
        counts.append(0)
def take(peer, number):
    while got := len(peer.recv(1 << 16)):
        counts[number] += got
def send(control, ended):
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    sender.connect(listener.getsockname())
    while not ended.is_set():
        sender.send(bytes(1 << 14))
def limit(packets):
    words = f"tc qdisc replace dev lo root netem delay 10ms rate 8mbit limit {packets}"
    subprocess.run(words.split(), check=True)
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
threading.Thread(target=serve, daemon=True).start()
limit(100)
other, ended = threading.Event(), threading.Event()
threading.Thread(target=send, args=["cubic", other], daemon=True).start()
time.sleep(1)
for number in range(12):
    threading.Thread(target=send, args=[sys.argv[1], ended], daemon=True).start()
    for _ in range(8):
        time.sleep(0.17)
        limit(1)
        time.sleep(0.1)
        limit(100)
other.set()
time.sleep(30)
before = counts[:]
time.sleep(30)
print("moved", *(after - before for before, after in list(zip(before, counts))[1:]), flush=True)
"""


#: module and control
CONTROLS = [("tcp_lp", "lp"), ("tcp_ledbat", "ledbat"), ("tcp_ledbat", "ledbatpp"), ("tcp_lbe", "lbe")]


@pytest.mark.parametrize(("module", "control"), CONTROLS)
def test_no_connection_stands(tmp_path: Path, module: str, control: str) -> None:
    script = f'ip link set lo mtu 1500 up\ninsmod "$KO"\npython3 client.py {control}\n'
    said = guests.run(module, tmp_path, script, {"client.py": CLIENT})
    (moved,) = re.findall(r"^moved (.*)$", said, re.MULTILINE)
    assert len(moved.split()) == 12 and all(int(one) > 0 for one in moved.split()), moved


#: Arguments: control, TCP_USER_TIMEOUT in ms (0: none), SO_MAX_PACING_RATE (-1: none), and turns PACKETS:SECONDS of
#: the sender's device, whose queue has room for as many packets of data: with none it drops everything. Ten connections
#: send all the time. ACKs pass always, so that nothing is in flight a round trip after the first drop. Printed for each
#: connection: "ETIMEDOUT", and how many seconds after the first turn's begin; or "moved", and how many bytes arrived in
#: the last ten seconds.
TURNS = """
import errno, socket, subprocess, sys, threading, time
control, timeout_ms, rate, *turns = sys.argv[1:]
counts, ends = [0] * 10, {}
def tc(words):
    subprocess.run(["tc", *words.split()], check=True)
def take(peer, number):
    while got := len(peer.recv(1 << 16)):
        counts[number] += got
def send(sender, number):
    try:
        while True:
            sender.send(bytes(1 << 14))
    except OSError as error:
        ends[number] = errno.errorcode[error.errno], time.monotonic()
tc("qdisc add dev lo root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0")
tc("qdisc add dev lo parent 1:2 handle 2: netem delay 10ms rate 8mbit limit 100")
tc("filter add dev lo parent 1: protocol ip u32 match ip dport 5001 0xffff flowid 1:2")
listener = socket.create_server(("127.0.0.1", 5001), backlog=64)
for number in range(10):
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timeout_ms))
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    sender.setsockopt(socket.SOL_SOCKET, 47, int(rate))
    sender.connect(listener.getsockname())
    threading.Thread(target=take, args=[listener.accept()[0], number], daemon=True).start()
    threading.Thread(target=send, args=[sender, number], daemon=True).start()
time.sleep(10)
begin = time.monotonic()
for packets, seconds in [turn.split(":") for turn in turns]:
    tc(f"qdisc change dev lo parent 1:2 handle 2: netem delay 10ms rate 8mbit limit {packets}")
    time.sleep(float(seconds))
before = counts[:]
time.sleep(10)
for number, count in enumerate(counts):
    if number in ends:
        print("connection", ends[number][0], round(ends[number][1] - begin, 3))
    else:
        print("connection moved", count - before[number])
"""


def ends(folder: Path, control: str, timeout_ms: int, turns: str, rate: int = -1) -> list[tuple[str, float]]:
    """Return how each of ten connections ended and when, or that it still sends and how much."""
    script = f'ip link set lo mtu 1500 up\ninsmod "$KO"\npython3 turns.py {control} {timeout_ms} {rate} {turns}\n'
    limit_s = guests.LIMIT_S + sum(float(turn.split(":")[1]) for turn in turns.split())
    said = guests.run("tcp_lbe", folder, script, {"turns.py": TURNS}, limit_s)
    found = re.findall(r"^connection (\w+) (\S+)$", said, re.MULTILINE)
    assert len(found) == 10, said
    return [(how, float(number)) for how, number in found]


@pytest.mark.parametrize(
    ("timeout_ms", "turn", "least_s", "most_s"), [(5000, "0:30", 5, 15), (0, "0:1100", 900, 1000)], ids=["5s", "none"]
)
def test_a_device_that_drops_everything_ends_each_connection(
    tmp_path: Path, timeout_ms: int, turn: str, least_s: float, most_s: float
) -> None:
    """With TCP_USER_TIMEOUT a connection ends after that time, at its next slot; each of the ten connections has a slot
    every few seconds. Without it a connection ends about when TCP gives up a peer that does not answer."""
    for how, after_s in ends(tmp_path, "lbe", timeout_ms, turn):
        assert how == "ETIMEDOUT" and least_s <= after_s <= most_s, (how, after_s)


@pytest.mark.parametrize(
    ("timeout_ms", "rate", "turns"),
    [
        (5000, -1, "0:3 100:5 0:3 100:5 0:3 100:20"),
        (500, 1000, "0:1.2 100:20"),
        (60000, -1, "0:40 100:20"),
        (0, -1, "0:800 100:20"),
    ],
    ids=["again", "rest", "60s", "none"],
)
def test_shorter_drops_end_no_connection(tmp_path: Path, timeout_ms: int, rate: int, turns: str) -> None:
    """No connection ends by several drops that together take longer than the time-out, by the drop of one packet before
    a rest that is longer, or by drops for longer than TCP probes a closed window."""
    for how, moved in ends(tmp_path, "lbe", timeout_ms, turns, rate):
        assert how == "moved" and moved > 0, (how, moved)
