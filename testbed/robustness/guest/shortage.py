# SPDX-License-Identifier: GPL-2.0
"""Random allocation failures in every context: a percentage of atomic allocations fails under traffic.

failures.py steps through the allocations of a task. This program covers those of softirqs and timers:
connections started by a rule, hooks, queues, flows at the edge. Connections may be slow, or refused at their
start; data that was sent must arrive.
"""

from __future__ import annotations

import random
import socket
import struct

from common import (
    CONTROLS,
    F_CREATE,
    F_EXCL,
    MODULES,
    NETLINK_GENERIC,
    NETLINK_ROUTE,
    RTM_NEWQDISC,
    SETTINGS,
    V_RULE_ADD,
    V_START,
    Netlink,
    Stream,
    by_fd,
    count,
    expect,
    family,
    finish,
    load,
    must,
    progress,
    qdisc,
    rule_on,
    shred_options,
    unload,
    vulture,
    write,
)
from wire import Segment, Wire

RANDOM = random.Random(SETTINGS["seed"])
FAULTS = "/sys/kernel/debug/failslab"
PORT = 5997


def forward(west: Wire, east: Wire, number: int) -> None:
    """Send new flows through the edge, which has to change their headers."""
    source, target = west.addresses(False)[1], east.addresses(False)[1]
    for port in range(200):
        one = Segment(1000 + number % 30000, 1 + port, 5, 5, 16, 100, bytes(500))
        west.send(one.raw(source, target))
        while east.take() is not None:
            count("packets past the edge")


def main() -> None:
    for name in MODULES:
        must(load(name), f"load {name}")
    west, east = Wire("west", 7), Wire("east", 8)
    for path, value in (("ipv4/ip_forward", "1"), ("shred_hint/mode", "dscp"), ("shred_hint/edge", "1"),
                        ("shred_hint/host", "1"), ("shred_hint/police", "1")):  # fmt: skip
        must(write(f"/proc/sys/net/{path}", value), path)
    link, number = Netlink(NETLINK_GENERIC), family()
    must(link.ask(vulture(V_RULE_ADD, rule_on(PORT), number))[0], "rule")
    for device in ("lo", east.name):
        index = socket.if_nametoindex(device)
        add = qdisc(RTM_NEWQDISC, F_CREATE | F_EXCL, shred_options(), index, handle=0x10000)
        must(Netlink(NETLINK_ROUTE).ask(add)[0], f"queue on {device}")
    constant = Stream()
    must(link.ask(vulture(V_START, by_fd(constant.receiver), number))[0], "start")
    for setting, value in (("ignore-gfp-wait", "Y"), ("verbose", "0"), ("times", "-1"), ("interval", "1")):
        must(write(f"{FAULTS}/{setting}", value), setting)
    controls = [None, *[control for several in CONTROLS.values() for control in several]]
    rounds = SETTINGS["connections"]
    for done in range(rounds):
        must(write(f"{FAULTS}/probability", str(RANDOM.choice([1, 5, 20]))), "probability")
        try:
            one = Stream(RANDOM.choice(["127.0.0.1", "::1"]), RANDOM.choice(controls), ports=(PORT, 0))
        except OSError:
            count("connections refused")
            one = None
        if one:
            one.pump(100000)
            constant.pump(20000)
            count("connections carried")
        forward(west, east, done)
        must(write(f"{FAULTS}/probability", "0"), "probability")
        if one:
            one.close("with memory short")
        progress(done, rounds)
    constant.close("all the time, with memory short")
    ended, _, bodies = link.ask(vulture(5, b"", number))
    expect(not ended and struct.pack("=I", 0) in b"".join(bodies), "connections are left under control")
    must(write("/sys/kernel/debug/kmemleak", "scan"), "kmemleak went away, so its silence says nothing")
    for name in MODULES:
        if name == "sch_shred":
            for device in ("lo", east.name):
                Netlink(NETLINK_ROUTE).ask(qdisc(37, 0, None, socket.if_nametoindex(device)))
        must(unload(name), f"unload {name}")
    finish(rounds)


main()
