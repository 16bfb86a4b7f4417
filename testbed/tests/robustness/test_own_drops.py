# SPDX-License-Identifier: GPL-2.0
"""The sender's own device drops packets, also the only one of a connection: no transfer stands for ever.

TCP learns of such a drop at once, and arms no timer for a packet that its pacing has sent.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.support import guests

pytestmark = pytest.mark.scenario

#: Argument: a control. Beside a greedy ordinary transfer, a connection with that control begins every 2 s, and four
#: times a second the device's queue has room for one packet only. Printed: how many bytes arrived over each connection
#: in half a minute, half a minute after the end of the other traffic.
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
        time.sleep(0.15)
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
