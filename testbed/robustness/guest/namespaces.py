# SPDX-License-Identifier: GPL-2.0
"""Network namespaces are created and destroyed under load, while all modules work in them.

A process in each has connections on its lo through all the modules, rules, a queue, hints. It ends in one
of three ways: in order (all data received), by exit during the transfer, or killed. A veth pair connects
it to the initial namespace; the device there vanishes when the namespace is finally destroyed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import socket
import struct
import time

import common
from common import (
    CLONE_NEWNET,
    CONTROLS,
    F_CREATE,
    F_EXCL,
    HINT,
    LIBC,
    MODULES,
    NESTED,
    NETLINK_GENERIC,
    NETLINK_ROUTE,
    RTM_NEWQDISC,
    SETTINGS,
    V_RULE_ADD,
    V_START,
    Netlink,
    Stream,
    attribute,
    by_fd,
    count,
    expect,
    family,
    finish,
    load,
    message,
    must,
    progress,
    qdisc,
    rule_on,
    shred_options,
    unload,
    vulture,
    write,
)

RANDOM = random.Random(SETTINGS["seed"])
RTM_NEWLINK = 16
IFLA_IFNAME, IFLA_LINKINFO, IFLA_NET_NS_PID = 3, 18, 19
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
ALIVE = 4  # at once
ENDS = ("in order", "exit in mid transfer", "killed")


def up(name: str) -> None:
    """Set a device up."""
    with socket.socket() as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", name.encode(), IFF_UP))


def tie(name: str, pid: int) -> None:
    """A veth pair, with one device here and one in the namespace of a process."""
    peer = bytes(16) + attribute(IFLA_IFNAME, b"tie\0") + attribute(IFLA_NET_NS_PID, struct.pack("=I", pid))
    info = attribute(1, b"veth\0") + attribute(2 | NESTED, attribute(1 | NESTED, peer))
    body = bytes(16) + attribute(IFLA_IFNAME, name.encode() + b"\0") + attribute(IFLA_LINKINFO | NESTED, info)
    with contextlib.closing(Netlink(NETLINK_ROUTE)) as link:
        must(link.ask(message(RTM_NEWLINK, body, 5 | F_CREATE | F_EXCL))[0], f"card {name}")


def settle_in(controls: list[str]) -> list[Stream]:
    """Start the use of all modules on the lo of a new namespace."""
    up("lo")
    link = Netlink(NETLINK_ROUTE)
    must(link.ask(qdisc(RTM_NEWQDISC, F_CREATE | F_EXCL, shred_options(), handle=0x10000))[0], "queue")
    for name, value in (("mode", "dscp"), ("host", "1"), ("edge", "1"), ("police", "1")):
        must(write(f"{HINT}/{name}", value), f"shred_hint {name}")
    generic, number = Netlink(NETLINK_GENERIC), family()
    must(generic.ask(vulture(V_RULE_ADD, rule_on(5001), number))[0], "rule")
    streams = [Stream(ports=(5001, 0)), Stream("::1"), *[Stream(control=name) for name in controls]]
    must(generic.ask(vulture(V_START, by_fd(streams[1].receiver), number))[0], "start")
    return streams


def inhabitant(seed: int, end: str, ready: int, go: int, result: int) -> None:
    """The child process; does not return."""
    choose = random.Random(seed)
    if LIBC.unshare(CLONE_NEWNET):
        os._exit(1)
    streams = settle_in([choose.choice(names) for names in CONTROLS.values()])
    os.write(ready, b"1")
    os.read(go, 1)
    for one in streams:
        one.pump(SETTINGS["bytes"])
        one.step(1 << 17)
    if end == "in order":
        lost = sum(one.settle() for one in streams)
        broken = [one.broken for one in streams if one.broken]
        os.write(result, json.dumps([sum(one.got for one in streams), lost, broken]).encode())
    elif end == "killed":
        os.write(result, b"[0, 0, []]")
        while True:
            for one in streams:
                one.step(1 << 16)
            time.sleep(0.001)
    else:
        os.write(result, b"[0, 0, []]")
    os._exit(0)


def begin(number: int, outside: Stream) -> tuple[int, int, str]:
    """Start a child; returns (pid, pipe of its result, how it ends)."""
    end = ENDS[number % len(ENDS)]
    pipes = [os.pipe() for _ in range(3)]
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            inhabitant(SETTINGS["seed"] * 100003 + number, end, pipes[0][1], pipes[1][0], pipes[2][1])
        os._exit(2)
    for pipe, other in zip(pipes, (1, 0, 1)):
        os.close(pipe[other])
    if os.read(pipes[0][0], 1) == b"1":
        tie(f"tie{number}", pid)
    os.write(pipes[1][1], b"1")
    os.close(pipes[0][0])
    os.close(pipes[1][1])
    outside.pump(SETTINGS["bytes"])
    return pid, pipes[2][0], end


def finish_one(pid: int, pipe: int, end: str) -> None:
    """Wait for a child and evaluate its result."""
    text = os.read(pipe, 65536)
    os.close(pipe)
    if end == "killed":
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    wanted = -signal.SIGKILL if end == "killed" else 0
    code = os.waitstatus_to_exitcode(status)
    if not text or code != wanted:
        expect(False, f"{end}: a namespace's process ended with {code} and said {text!r}")
        return
    got, lost, broken = json.loads(text)
    common.total["bytes"] += got
    common.total["lost"] += lost
    expect(not lost and not broken, f"{end}: {lost} lost {broken}")
    count(f"ended: {end}")


def ties() -> list[str]:
    """Devices whose peer's namespace still exists."""
    return [name for name in os.listdir("/sys/class/net") if name.startswith("tie")]


def main() -> None:
    for name in MODULES:
        must(load(name), f"load {name}")
    outside = Stream()
    must(Netlink(NETLINK_GENERIC).ask(vulture(V_START, by_fd(outside.receiver), family()))[0], "start outside")
    alive: list[tuple[int, int, str]] = []
    for number in range(SETTINGS["namespaces"]):
        alive.append(begin(number, outside))
        if len(alive) == ALIVE:
            finish_one(*alive.pop(RANDOM.randrange(ALIVE)))
        progress(number, SETTINGS["namespaces"])
    # remove these modules while the last namespaces have traffic
    for name in ("vulture", "shred_hint"):
        must(unload(name), f"unload {name} while namespaces use it")
    for one in alive:
        finish_one(*one)
    for _ in range(600):
        if not ties():
            break
        time.sleep(1)
    expect(not ties(), f"{len(ties())} namespaces are still there after 10 minutes")
    outside.close("outside")
    for name in (*CONTROLS, "sch_shred"):
        must(unload(name), f"unload {name}")
    finish(SETTINGS["namespaces"])


main()
