# SPDX-License-Identifier: GPL-2.0
"""A flow in a guest that gives way to a cubic flow and then changes to Reno, for the tests of senders' counters."""

from __future__ import annotations

import json
from pathlib import Path

from . import guests

#: a narrow link with a deep buffer on lo: a control that goes by delay has given way to cubic long before 20 s
NETWORK = """
ip link set lo up mtu 1500
tc qdisc add dev lo root netem delay 20ms rate 10mbit limit 100
insmod "$KO"
"""
PROGRAM = """
import json, os, socket, sys, threading, time
control, counters = sys.argv[1:]

def drain(listener):
    def read(peer):
        while peer.recv(1 << 20):
            pass
    while True:
        threading.Thread(target=read, args=(listener.accept()[0],), daemon=True).start()

def connect(control):
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    sender.connect(("127.0.0.1", 5001))
    threading.Thread(target=sender.sendall, args=(bytes(100000000),), daemon=True).start()
    return sender

def shown():
    return {name: int(value) for name, value in (line.split() for line in open(counters))}

threading.Thread(target=drain, args=(socket.create_server(("127.0.0.1", 5001)),), daemon=True).start()
ours, other = connect(control), connect("cubic")
# lp yields in phases: the change is made within one of them
deadline = time.monotonic() + 60
time.sleep(20)
while not shown()["yielding"] and time.monotonic() < deadline:
    time.sleep(0.05)
before = shown()
ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
print("facts " + json.dumps({"before": before, "after": shown()}), flush=True)
os._exit(0)
"""


def counters_of_a_switch(module: str, control: str, file: str, folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """What a module's counters show while its only flow yields, and right after this flow changes to Reno."""
    script = f"{NETWORK}\npython3 program.py {control} {file}\n"
    said = guests.run(module, folder, script, {"program.py": PROGRAM})
    (line,) = [line for line in said.splitlines() if line.startswith("facts ")] or [said]
    facts = json.loads(line.removeprefix("facts "))
    return facts["before"], facts["after"]
