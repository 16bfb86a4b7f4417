# SPDX-License-Identifier: GPL-2.0
"""Allocation failures: the first, the second, ... allocation of each operation fails, until it completes without one.

/proc/thread-self/fail-nth makes the N-th allocation of this task fail (Documentation/fault-injection of
the kernel). A failing operation must return ENOMEM or ENOBUFS, change nothing, and work the next time. An
operation that reports success must have taken effect. Allocations in softirq, which belong to no task,
fail at random in shortage.py.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import time
from collections.abc import Callable

import common
from common import (
    CLONE_NEWNET,
    CONTROLS,
    F_CREATE,
    F_EXCL,
    HINT,
    LIBC,
    MODULES,
    NETLINK_GENERIC,
    NETLINK_ROUTE,
    RTM_DELQDISC,
    RTM_NEWQDISC,
    SETTINGS,
    V_FLOW,
    V_GET,
    V_GET_DEFAULTS,
    V_MAIN,
    V_RULE_ADD,
    V_RULE_DEL,
    V_SET,
    V_START,
    V_STOP,
    Netlink,
    Stream,
    attribute,
    attributes,
    by_fd,
    count,
    expect,
    family,
    finish,
    load,
    loaded,
    max_flows,
    must,
    number_of,
    own_sockets,
    progress,
    qdisc,
    rule_by_id,
    rule_id,
    rule_on,
    shred_options,
    unload,
    vulture,
    write,
)

FAULTS = "/sys/kernel/debug"
STRIDE = SETTINGS["stride"]
CLEAN = (errno.ENOMEM, errno.ENOBUFS)
PORT = 5998

nth = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
sites = 0


def arm(number: int) -> None:
    """Make the ``number``-th allocation from now on fail; 0: none."""
    os.pwrite(nth, b"%d" % number, 0)


def injected() -> bool:
    """Disarm; returns whether the allocation has failed."""
    left = int(os.pread(nth, 16, 0))
    arm(0)
    return left == 0


def step(
    name: str,
    act: Callable[[], int],
    undo: Callable[[], object],
    refused: Callable[[], str] = lambda: "",
    done: Callable[[], str] = lambda: "",
    stride: int = 1,
    clean: tuple[int, ...] = CLEAN,
) -> None:
    """Fail each allocation of `act` in turn (each stride-th one of an operation that has hundreds).

    act: returns an errno. refused, done: describe a wrong state after a failure or a success ("" if it is
    correct). undo: reverts a success. clean: errnos allowed for a failure; empty: any.
    """
    global sites  # noqa: PLW0603 - the one count of the program
    number = 1
    while True:
        arm(number)
        code = act()
        hit = injected()
        if hit:
            sites += 1
            count(f"sites of {name}")
        if code:
            expect(hit, f"{name}: errno {code} without a failed allocation")
            what = errno.errorcode.get(code, code)
            expect(not clean or code in clean, f"{name}: allocation {number} gives errno {what}")
            # ENOBUFS means that the answer could not be sent; the operation may have succeeded
            text = "" if code == errno.ENOBUFS else refused()
            expect(not text, f"{name}: allocation {number}: refused ({errno.errorcode[code]}), but {text}")
            if text or code == errno.ENOBUFS:
                count("answers lost")
                undo()
        else:
            text = done()
            expect(not text, f"{name}: allocation {number}: accepted, but {text}")
            undo()
        if not hit:
            expect(code == 0, f"{name}: does not work without failures")
            count("operations that passed in the end")
            return
        number += stride


# ---- modules ------------------------------------------------------------------------------


def loads() -> None:
    """init_module(2), including the kernel's own allocations."""
    for name in MODULES:
        common.image(name)
        loads_one(name)


def loads_one(name: str) -> None:
    """init_module(2) of one module."""
    step(
        f"load {name}",
        lambda: load(name),
        lambda: unload(name),
        lambda: f"{name} is there" if loaded(name) else "",
        lambda: "" if loaded(name) else f"{name} is not there",
        STRIDE,
    )


# ---- vulture ------------------------------------------------------------------------------


class Receiver:
    """vulture's family, a connection, and queries about it."""

    def __init__(self) -> None:
        must(load("vulture"), "load vulture")
        self.link, self.number = Netlink(NETLINK_GENERIC), family()
        self.stream = Stream(ports=(PORT, 0))

    def ask(self, command: int, payload: bytes) -> int:
        """Send a request; returns the errno."""
        return self.link.ask(vulture(command, payload, self.number))[0]

    def shown(self, command: int, payload: bytes = b"") -> dict[int, bytes]:
        """Attributes of the reply to a request."""
        code, _, bodies = self.link.ask(vulture(command, payload, self.number))
        return attributes(bodies[0][4:]) if not code and bodies else {}

    def flows(self) -> int:
        """Number of connections under control."""
        return int.from_bytes(self.shown(V_GET_DEFAULTS)[V_MAIN["count"]], "little")

    def stop(self) -> None:
        """Stop control of all sockets of this process; start by cgroup or pid controls both ends."""
        self.ask(V_STOP, own_sockets())

    def acks(self, one: Stream) -> int:
        """Number of outgoing segments of a connection seen by the hook; -1 if it is not under control."""
        flow = attributes(self.shown(V_GET, by_fd(one.receiver)).get(V_MAIN["flow"], b""))
        return int.from_bytes(flow[V_FLOW["acks"]], "little") if flow else -1

    def in_force(self) -> str:
        """Check that the connection's segments pass the hook."""
        self.stream.pump(1 << 17)
        acks = self.acks(self.stream)
        return "" if acks > 0 else f"the hook sees nothing (acks {acks})"

    def rules(self) -> list[bytes]:
        """Ids of all rules."""
        with_dump = Netlink(NETLINK_GENERIC)
        with_dump.socket.send(common.message(self.number, struct.pack("=BBH", 8, 1, 0), 0x301))
        found = []
        while more := with_dump.answers():
            found += [rule_id(body) for kind, body in more if kind & 0xFFFF == self.number]
        with_dump.close()
        return found

    def delete_rules(self) -> None:
        """Delete all rules."""
        for rule in self.rules():
            self.ask(V_RULE_DEL, rule_by_id(rule))

    def rule_in_force(self) -> str:
        """Check that the rule starts control of a new connection, whose segments pass the hook."""
        one = Stream("::1", ports=(PORT, 0))
        one.pump(1 << 17)
        acks = self.acks(one)
        one.close("by rule")
        return "" if acks > 0 else f"it has no effect (acks {acks})"

    def hooks_gone(self) -> None:
        """Wait until the hooks are removed, a second after the last flow."""
        time.sleep(1.5)


def receiving() -> None:
    """Start, stop, get, set, rules."""
    one = Receiver()

    def stop() -> None:
        one.stop()
        one.hooks_gone()

    def controlled() -> str:
        one.hooks_gone()
        return "it is under control" if one.flows() else ""

    start = by_fd(one.stream.receiver)
    step("vulture start", lambda: one.ask(V_START, start), stop, controlled, one.in_force)

    def some() -> str:
        """A request for several connections succeeds if at least one can be started."""
        return "" if one.flows() else "none is under control"

    group = attribute(V_MAIN["cgroup"], struct.pack("=Q", os.stat("/sys/fs/cgroup").st_ino))
    step("vulture start by cgroup", lambda: one.ask(V_START, group), stop, controlled, some)
    step("vulture start by pid", lambda: one.ask(V_START, own_sockets()), stop, controlled, some)
    stop()

    def again() -> None:
        one.ask(V_START, start)

    again()
    step(
        "vulture stop", lambda: one.ask(V_STOP, start), again,
        lambda: "" if one.flows() == 1 else "it is not under control", lambda: "it is" if one.flows() else "",
    )  # fmt: skip
    step("vulture get", lambda: one.ask(V_GET, start), lambda: None)
    step("vulture get-defaults", lambda: one.ask(V_GET_DEFAULTS, b""), lambda: None)
    stop()

    def limit(flows: int) -> int:
        return one.ask(V_SET, max_flows(flows))

    def limited() -> int:
        return int.from_bytes(one.shown(V_GET_DEFAULTS)[V_MAIN["max-flows"]], "little")

    step(
        "vulture set", lambda: limit(7), lambda: limit(16384),
        lambda: "" if limited() == 16384 else "the limit changed",
    )  # fmt: skip

    def no_rules() -> None:
        one.delete_rules()
        one.hooks_gone()

    step(
        "vulture rule-add", lambda: one.ask(V_RULE_ADD, rule_on(PORT)), no_rules,
        lambda: f"there are {len(one.rules())} rules" if one.rules() else "", one.rule_in_force,
    )  # fmt: skip
    no_rules()
    one.ask(V_RULE_ADD, rule_on(PORT))

    def delete() -> int:
        return one.ask(V_RULE_DEL, rule_by_id(known[0]))

    def restore() -> None:
        one.ask(V_RULE_ADD, rule_on(PORT))
        known[:] = one.rules()

    known = one.rules()
    step("vulture rule-del", delete, restore, lambda: "" if one.rules() == known else "it is gone")
    one.delete_rules()
    one.stream.close("beside vulture's failures")
    one.link.close()
    must(unload("vulture"), "unload vulture")


# ---- queues and settings ------------------------------------------------------------------


def queueing() -> None:
    """Add, change and delete a queue."""
    must(load("sch_shred"), "load sch_shred")
    link, stream = Netlink(NETLINK_ROUTE), Stream()

    def ask(kind: int, flags: int, options: bytes | None) -> int:
        return link.ask(qdisc(kind, flags, options, handle=0x10000 if options else 0))[0]

    def limit() -> int:
        """Limit of the shred queue on lo; 0 if there is none."""
        code, _, bodies = link.ask(common.message(common.RTM_GETQDISC, bytes(20), 0x301))
        for body in bodies:
            found = attributes(body[20:])
            if not code and found.get(1) == b"shred\0" and struct.unpack_from("=i", body, 4)[0] == common.LO:
                return int.from_bytes(attributes(found[2])[1], "little")
        return 0

    def carries() -> str:
        stream.pump(1 << 17)
        return "" if limit() else "there is no queue"

    def remove() -> None:
        ask(RTM_DELQDISC, 0, None)

    def add() -> int:
        return ask(RTM_NEWQDISC, F_CREATE | F_EXCL, shred_options())

    def change(size: int) -> int:
        return ask(RTM_NEWQDISC, 0, shred_options(size))

    step("qdisc add", add, remove, lambda: "there is a queue" if limit() else "", carries)
    must(add(), "qdisc add")
    step(
        "qdisc change", lambda: change(400000), lambda: change(300000),
        lambda: "" if limit() == 300000 else f"the limit is {limit()}", carries,
    )  # fmt: skip
    step("qdisc del", lambda: ask(RTM_DELQDISC, 0, None), add)
    remove()
    stream.close("beside a queue's failures")
    link.close()
    must(unload("sch_shred"), "unload sch_shred")


def settings() -> None:
    """shred_hint's sysctls, which register hooks."""
    must(load("shred_hint"), "load shred_hint")
    write(f"{HINT}/mode", "tos")

    def value(name: str) -> str:
        return common.read(f"{HINT}/{name}").strip()

    def set_and_reset(name: str, on: str, off: str) -> None:
        step(
            f"shred_hint {name}", lambda: write(f"{HINT}/{name}", on), lambda: write(f"{HINT}/{name}", off),
            lambda: "" if value(name) == off.strip() else f"it is {value(name)!r}",
        )  # fmt: skip

    for name, on, off in (("host", "1", "0"), ("edge", "1", "0"), ("mode", "dscp", "off"), ("devices", "lo", " ")):
        if name == "mode":
            write(f"{HINT}/host", "1")
            write(f"{HINT}/mode", "off")
        set_and_reset(name, on, off)
    must(unload("shred_hint"), "unload shred_hint")


def sockets() -> None:
    """Selection of congestion controls."""
    for name, controls in CONTROLS.items():
        must(load(name), f"load {name}")
        with socket.socket() as one:
            for control in controls:

                def choose(control: str = control, one: socket.socket = one) -> int:
                    try:
                        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
                    except OSError as error:
                        return number_of(error)
                    return 0

                def back(one: socket.socket = one) -> None:
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")

                step(f"choose {control}", choose, back)
        must(unload(name), f"unload {name}")


def namespaces() -> None:
    """A new network namespace while all modules are loaded."""
    for name in MODULES:
        must(load(name), f"load {name}")
    home = os.open("/proc/self/ns/net", os.O_RDONLY)

    def create() -> int:
        return ctypes.get_errno() if LIBC.unshare(CLONE_NEWNET) else 0

    # other subsystems return ENODEV, EAFNOSUPPORT or ENFILE if an allocation fails
    step("namespace", create, lambda: LIBC.setns(home, CLONE_NEWNET), stride=STRIDE, clean=())
    for name in MODULES:
        must(unload(name), f"unload {name}")


def main() -> None:
    for kind in ("failslab", "fail_page_alloc"):
        for setting, value in (("ignore-gfp-wait", "N"), ("verbose", "0"), ("probability", "0")):
            must(write(f"{FAULTS}/{kind}/{setting}", value), f"{kind}/{setting}")
    must(write(f"{FAULTS}/fail_page_alloc/min-order", "0"), "min-order")
    LIBC.mlockall(3)  # otherwise page faults of this process would fail
    parts = (sockets, settings, queueing, receiving, namespaces, loads)
    for done, part in enumerate(parts):
        progress(done, len(parts))
        part()
    must(write(f"{FAULTS}/kmemleak", "scan"), "kmemleak went away, so its silence says nothing")
    finish(sites)


main()
