# SPDX-License-Identifier: GPL-2.0
"""Load and unload each module many times, without and with traffic through it.

With traffic: the module is loaded, connections use it, removal is attempted, it is removed in the middle of the
transfer, and the transfer continues. While a socket's congestion control or a queue uses a module, rmmod must
fail. vulture and shred_hint can be removed while traffic uses them.
"""

from __future__ import annotations

import errno
import random

from common import (
    CONTROLS,
    F_CREATE,
    F_EXCL,
    HINT,
    NETLINK_GENERIC,
    NETLINK_ROUTE,
    RTM_DELQDISC,
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
    loaded,
    must,
    progress,
    qdisc,
    rule_on,
    shred_options,
    unload,
    vulture,
    write,
)  # fmt: skip

RANDOM = random.Random(SETTINGS["seed"])
BYTES = SETTINGS["bytes"]
streams = {"127.0.0.1": Stream(), "::1": Stream("::1")}


def pump(size: int = BYTES) -> None:
    """Transfer data through the connections that exist during the whole test."""
    for one in streams.values():
        one.pump(size)


def idle(name: str) -> None:
    """Load and unload."""
    must(load(name), f"load {name}")
    must(unload(name), f"unload {name}")


def held(name: str) -> None:
    """Check that a module in use cannot be removed."""
    code = unload(name)
    expect(code in (errno.EWOULDBLOCK, errno.EBUSY), f"{name} was removed in use (errno {code})")
    count("removals refused")


def control(name: str) -> None:
    """A congestion control: two connections, one of which changes to cubic during the transfer."""
    must(load(name), f"load {name}")
    names = CONTROLS[name]
    one, two = Stream(control=RANDOM.choice(names)), Stream("::1", RANDOM.choice(names))
    one.pump(BYTES)
    two.pump(BYTES)
    held(name)
    one.step(1 << 16)
    one.control("cubic")
    one.pump(BYTES)
    two.step(1 << 16)
    two.close(name)
    # a closed socket releases its congestion control when it enters time-wait
    code = unload(name)
    expect(code == 0, f"unload {name} after its connections: errno {code}")
    if code:
        must(unload(name), f"unload {name}")
    one.pump(BYTES)
    one.close(name)


def receiver(name: str) -> None:
    """vulture: one connection by its socket, one by a rule; removal during the transfer."""
    must(load(name), f"load {name}")
    link, number = Netlink(NETLINK_GENERIC), family()
    code, text, _ = link.ask(vulture(V_START, by_fd(streams["127.0.0.1"].receiver), number))
    expect(code == 0, f"start: errno {code} {text}")
    code, text, _ = link.ask(vulture(V_RULE_ADD, rule_on(5999), number))
    expect(code == 0, f"rule: errno {code} {text}")
    one = Stream("::1", ports=(5999, 0))
    one.pump(BYTES)
    pump()
    one.step(1 << 16)
    streams["127.0.0.1"].step(1 << 16)
    must(unload(name), f"unload {name}")
    link.close()
    one.pump(BYTES)
    one.close(name)
    pump()


def queue(name: str) -> None:
    """sch_shred on lo, with traffic of both families."""
    must(load(name), f"load {name}")
    link = Netlink(NETLINK_ROUTE)
    code, text, _ = link.ask(qdisc(RTM_NEWQDISC, F_CREATE | F_EXCL, shred_options(), handle=0x10000))
    expect(code == 0, f"add: errno {code} {text}")
    pump()
    held(name)
    streams["::1"].step(1 << 16)
    code, text, _ = link.ask(qdisc(RTM_DELQDISC, 0, None))
    expect(code == 0, f"del: errno {code} {text}")
    link.close()
    must(unload(name), f"unload {name}")
    pump()


def writer(name: str) -> None:
    """shred_hint on the sending host; removal during the transfer."""
    must(load(name), f"load {name}")
    for setting, value in (("mode", "dscp"), ("host", "1"), ("edge", "1"), ("police", "1")):
        code = write(f"{HINT}/{setting}", value)
        expect(code == 0, f"{setting}={value}: errno {code}")
    pump()
    for one in streams.values():
        one.step(1 << 16)
    must(unload(name), f"unload {name}")
    pump()


USES = {
    "tcp_lp": control, "tcp_lowpri": control, "tcp_ledbat": control, "tcp_lbe": control, "vulture": receiver,
    "sch_shred": queue, "shred_hint": writer,
}  # fmt: skip


def main() -> None:
    total = len(USES) * (SETTINGS["idle"] + SETTINGS["busy"])
    done = 0
    for name, use in USES.items():
        for what, number, act in (("idle", SETTINGS["idle"], idle), ("under traffic", SETTINGS["busy"], use)):
            for _ in range(number):
                act(name)
                expect(not loaded(name), f"{name} is still there")
                count(f"{name} {what}")
                done += 1
                if not done % 50:
                    progress(done, total)
    for one in streams.values():
        one.close("a connection of all cycles")
    finish(done)


main()
