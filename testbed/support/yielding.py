# SPDX-License-Identifier: GPL-2.0
"""A flow in a guest that gives way to a cubic flow and then changes to Reno: what `ss` and the sender's counters show.

The tests of each sender's module call shown() once, and compare the result by expect_counted() and expect_fields().
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from ..base.places import REPO
from . import guests

#: a narrow link with a deep buffer on lo: each control has given way to cubic long before 20 s
NETWORK = """
ip link set lo up mtu 1500
tc qdisc add dev lo root netem delay 20ms rate 10mbit limit 100
insmod "$KO"
"""
PROGRAM = """
import json, os, socket, subprocess, sys, threading, time
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

def numbers(lines):
    return {name: int(value) for name, value in (line.split() for line in lines)}

def shown():
    return numbers(open("/proc/net/" + counters))

def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout

threading.Thread(target=drain, args=(socket.create_server(("127.0.0.1", 5001)),), daemon=True).start()
ours, other = connect(control), connect("cubic")
elsewhere = numbers(said("unshare", "-n", "cat", "/proc/self/net/" + counters).splitlines())
ss = said("ss", "-tinH")
# lp and background yield in phases: the change is made within one of them
deadline = time.monotonic() + 60
time.sleep(20)
while not shown()["yielding"] and time.monotonic() < deadline:
    time.sleep(0.05)
before = shown()
ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
facts = {"before": before, "after": shown(), "elsewhere": elsewhere, "ss": ss}
print("facts " + json.dumps(facts), flush=True)
os._exit(0)
"""


#: a counter of the file in /proc/net -> its value
Counters = dict[str, int]
#: the fields of BBR in a line of `ss -tin`, and in the sample of it on a page
SS = re.compile(r"\bbbr:\(([^)]*)\)")


@dataclass(frozen=True)
class Shown:
    """before, after: the counters while the only flow of the control yields, and right after it has changed to Reno.
    elsewhere: those of another network namespace, meanwhile. ss: what `ss -tin` prints, meanwhile."""

    before: Counters
    after: Counters
    elsewhere: Counters
    ss: str


def shown(module: str, control: str, folder: Path) -> Shown:
    """What is shown of the only flow of a module."""
    script = f"{NETWORK}\npython3 program.py {control} {module.replace('tcp_', 'lbe_')}\n"
    said = guests.run(module, folder, script, {"program.py": PROGRAM})
    (line,) = [line for line in said.splitlines() if line.startswith("facts ")] or [said]
    return Shown(**json.loads(line.removeprefix("facts ")))


def expect_counted(seen: Shown) -> None:
    """The flow is counted in its own namespace alone, and only while it has the control."""
    assert seen.before["flows"] == seen.before["yielding"] == 1 and seen.before["yields"] >= 1, seen.before
    assert seen.before["yielded_bytes"] > 0, seen.before
    assert seen.elsewhere == dict.fromkeys(seen.before, 0), seen.elsewhere
    assert seen.after["flows"] == seen.after["yielding"] == 0, seen.after
    assert seen.after["yields"] == seen.before["yields"], seen.after


def expect_fields(seen: Shown, control: str, page: str) -> None:
    """`ss` prints the fields that the page's sample has, in its order and no others, in the line of the control."""
    (sample,) = SS.findall((REPO / "Documentation" / page).read_text(encoding="utf-8"))
    (line,) = [line for line in seen.ss.splitlines() if "bbr:(" in line]
    assert line.split()[0] == control, line
    (printed,) = SS.findall(line)
    assert _names(printed) == _names(sample), line


def _names(fields: str) -> list[str]:
    return [field.split(":")[0] for field in fields.split(",")]
