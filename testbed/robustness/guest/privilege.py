# SPDX-License-Identifier: GPL-2.0
"""Permissions of an ordinary user, of root in a container (own user and network namespace), and of root.

Each check is an attempt and the errno that it must return; Documentation/threats.md has their names.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import socket
import struct
from collections.abc import Callable

import common
from common import (
    CLONE_NEWNET,
    F_CREATE,
    F_DUMP,
    F_EXCL,
    F_REQUEST,
    HINT,
    LIBC,
    MODULES,
    NETLINK_GENERIC,
    NETLINK_ROUTE,
    RTM_DELQDISC,
    RTM_NEWQDISC,
    V_GET,
    V_GET_DEFAULTS,
    V_MAIN,
    V_RULE_ADD,
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
    max_flows,
    message,
    must,
    number_of,
    own_sockets,
    qdisc,
    rule_on,
    shred_options,
    unload,
    vulture,
    write,
)

NOBODY = 65534
CLONE_NEWUSER = 0x10000000
LIMIT = max_flows(5)
REFUSED = (errno.EPERM, errno.EACCES)


def ask(command: int, payload: bytes = b"") -> int:
    """Send a request to the family; returns the errno."""
    with contextlib.closing(Netlink(NETLINK_GENERIC)) as link:
        return link.ask(vulture(command, payload, family()))[0]


def queue(kind: int, options: bytes | None) -> int:
    """Send a request about a queue on lo; returns the errno."""
    with contextlib.closing(Netlink(NETLINK_ROUTE)) as link:
        return link.ask(qdisc(kind, F_CREATE | F_EXCL if options else 0, options, handle=0x10000 if options else 0))[0]


def choose(name: str) -> int:
    """Select a congestion control; returns the errno."""
    with socket.socket() as one:
        try:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError as error:
            return number_of(error)
    return 0


def own_connection(command: int) -> int:
    """Start control of an own connection by its descriptor, then send the command; returns the errno."""
    one = Stream()
    code = ask(V_START, by_fd(one.receiver))
    if not code and command != V_START:
        code = ask(command, by_fd(one.receiver))
    one.pump(50000)
    one.close("of one's own")
    return code


#: for a user who tries to consume CPU time: number of connections, of lists never read, and of lists read completely
MANY, UNREAD, READ = 100, 10, 20


def wants_cpu() -> int:
    """Many connections under control, lists read repeatedly and others never; then a further request, whose errno is
    returned. A list that is not read must not block other requests."""
    number, lists = family(), message(family(), struct.pack("=BBH", V_GET, 1, 0), F_REQUEST | F_DUMP)
    with contextlib.ExitStack() as held:
        for _ in range(MANY):
            one = Stream()
            held.callback(one.close, "of one who wants CPU")
            with contextlib.closing(Netlink(NETLINK_GENERIC)) as link:
                code = link.ask(vulture(V_START, by_fd(one.receiver), number))[0]
            if code:
                return code
            one.pump(1000)
        for _ in range(UNREAD):
            held.enter_context(contextlib.closing(link := Netlink(NETLINK_GENERIC)))
            link.socket.send(lists)
        for _ in range(READ):
            with contextlib.closing(Netlink(NETLINK_GENERIC)) as link:
                code, _, bodies = link.ask(lists)
            expect(len(bodies) >= MANY, f"a list of {len(bodies)} connections, {MANY} are there")
            if code:
                return code
        return own_connection(V_STOP)


def limits() -> int:
    """Limit of connections of this namespace."""
    with contextlib.closing(Netlink(NETLINK_GENERIC)) as link:
        code, _, bodies = link.ask(vulture(V_GET_DEFAULTS, b"", family()))
    return struct.unpack("=I", attributes(bodies[0][4:])[V_MAIN["max-flows"]])[0] if not code else -code


#: name -> (attempt, allowed results)
Checks = dict[str, tuple[Callable[[], int], tuple[int, ...]]]

USER: Checks = {
    "user_starts_own_connection": (lambda: own_connection(V_START), (0,)),
    "user_stops_own_connection": (lambda: own_connection(V_STOP), (0,)),
    "user_sees_own_connection": (lambda: own_connection(V_GET), (0,)),
    "user_starts_by_number": (lambda: ask(V_START, own_sockets()), REFUSED),
    "user_stops_by_number": (lambda: ask(V_STOP, own_sockets()), REFUSED),
    "user_wants_cpu": (wants_cpu, (0,)),
    "user_adds_a_rule": (lambda: ask(V_RULE_ADD, rule_on(80)), REFUSED),
    "user_sets_defaults": (lambda: ask(V_SET, LIMIT), REFUSED),
    "user_adds_a_queue": (lambda: queue(RTM_NEWQDISC, shred_options()), REFUSED),
    "user_writes_a_sysctl": (lambda: write(f"{HINT}/host", "1"), REFUSED),
    "user_writes_a_parameter": (lambda: write("/sys/module/tcp_ledbat/parameters/target_us", "5000"), REFUSED),
    "user_loads_a_module": (lambda: load("tcp_lp"), REFUSED),
    "user_unloads_a_module": (lambda: unload("tcp_lp"), REFUSED),
    "user_chooses_lp": (lambda: choose("lp"), (0,)),
    "user_chooses_ledbat": (lambda: choose("ledbat"), (0,)),
    "user_chooses_lbe": (lambda: choose("lbe"), (0,)),
    "user_chooses_background": (lambda: choose("background"), REFUSED),
}

CONTAINER: Checks = {
    "container_sets_its_own_defaults": (lambda: ask(V_SET, LIMIT), (0,)),
    "container_adds_its_own_rule": (lambda: ask(V_RULE_ADD, rule_on(80)), (0,)),
    "container_adds_its_own_queue": (lambda: queue(RTM_NEWQDISC, shred_options()), (0,)),
    "container_deletes_its_own_queue": (lambda: queue(RTM_DELQDISC, None), (0,)),
    "container_writes_its_own_hint": (lambda: write(f"{HINT}/mode", "tos"), (0,)),
    "container_writes_a_parameter": (lambda: write("/sys/module/tcp_ledbat/parameters/target_us", "5000"), REFUSED),
    "container_loads_a_module": (lambda: load("tcp_lp"), REFUSED),
    "container_unloads_a_module": (lambda: unload("tcp_lp"), REFUSED),
    "container_stops_the_hosts_connection": (
        lambda: ask(V_STOP, attribute(V_MAIN["id"], struct.pack("=Q", host["id"]))), (errno.ENOENT,),
    ),
}  # fmt: skip

ROOT: Checks = {
    "root_asks_for_too_many_connections": (
        lambda: ask(V_SET, max_flows(1000001)), (errno.ERANGE,),
    ),
    "the_host_did_not_change": (lambda: limits() - 16384, (0,)),
}  # fmt: skip

host: dict[str, int] = {}


def attempt(checks: Checks) -> dict[str, str]:
    """Make the attempts: name -> "ok" or the wrong result."""
    found = {}
    for name, (act, allowed) in checks.items():
        code = act()
        names = " or ".join(errno.errorcode.get(one, str(one)) for one in allowed)
        found[name] = "ok" if code in allowed else f"gave {errno.errorcode.get(code, code)}, not {names}"
    return found


def as_child(prepare: Callable[[], None], checks: Checks) -> dict[str, str]:
    """Make the attempts in a process with other privileges."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            prepare()
            common.wrong.clear()
            found = attempt(checks)
            os.write(theirs, json.dumps([found, common.wrong, common.total]).encode())
        os._exit(0)
    os.close(theirs)
    text = b""
    while block := os.read(ours, 65536):
        text += block
    os.waitpid(child, 0)
    if not text:
        raise SystemExit(f"the process for {next(iter(checks))} and others ended early")
    told: dict[str, str]
    told, wrong, total = json.loads(text)
    common.wrong.extend(wrong)
    for name, number in total.items():
        common.total[name] += number
    return told


def become_user() -> None:
    """Drop all privileges."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def become_container() -> None:
    """Become root in a user namespace of an ordinary user, with its own network namespace."""
    become_user()
    # a process that has changed its uid may not write its maps unless it is dumpable
    LIBC.prctl(4, 1)  # PR_SET_DUMPABLE
    must(ctypes.get_errno() if LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNET) else 0, "unshare")
    must(write("/proc/self/setgroups", "deny"), "setgroups")
    must(write("/proc/self/gid_map", f"0 {NOBODY} 1"), "gid_map")
    must(write("/proc/self/uid_map", f"0 {NOBODY} 1"), "uid_map")
    LIBC.prctl(4, 1)


def main() -> None:
    for name in MODULES:
        must(load(name), f"load {name}")
    constant = Stream()
    with contextlib.closing(Netlink(NETLINK_GENERIC)) as link:
        code, text, bodies = link.ask(vulture(V_START, by_fd(constant.receiver), family()))
    must(code, f"start {text}")
    host["id"] = struct.unpack("=Q", attributes(bodies[0][4:])[V_MAIN["id"]])[0]
    results = as_child(become_user, USER) | as_child(become_container, CONTAINER) | attempt(ROOT)
    for name, result in results.items():
        expect(result == "ok", f"{name}: {result}")
        count(name.split("_")[0])
    constant.pump(100000)
    constant.close("the host's")
    finish(len(results), privilege=results)


main()
