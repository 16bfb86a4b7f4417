# SPDX-License-Identifier: GPL-2.0
"""Send the lines of ../fuzz.py (file "lines") while checked connections transfer data, and check the answers.

A refused message must not change anything: the family's defaults, the configuration of a queue, a setting.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct

import common
from common import (
    F_REQUEST,
    LO,
    MODULES,
    NETLINK_GENERIC,
    NETLINK_ROUTE,
    RTM_DELQDISC,
    RTM_GETQDISC,
    RTM_NEWQDISC,
    SETTINGS,
    V_GET_DEFAULTS,
    V_MAIN,
    V_RULE_DEL,
    V_RULE_GET,
    V_SET,
    Netlink,
    Stream,
    attributes,
    count,
    expect,
    family,
    finish,
    load,
    max_flows,
    message,
    must,
    number_of,
    progress,
    qdisc,
    rule_by_id,
    rule_id,
    unload,
    vulture,
    write,
)  # fmt: skip

FAMILY_MARK = struct.pack("=H", SETTINGS["family_mark"])
PID_MARK = struct.pack("=I", SETTINGS["pid_mark"])
CGROUP_MARK = struct.pack("=Q", SETTINGS["cgroup_mark"])
IDLE = 2  # ifindex of a device without traffic

signatures: dict[str, str] = {}
#: what the descriptors of open_descriptors() belong to
kept: list[object] = []


def note(answer: str, line: str) -> None:
    """Keep the shortest line for each answer."""
    old = signatures.get(answer)
    if old is None or len(line) < len(old):
        signatures[answer] = line


def said(code: int, text: str) -> str:
    """An answer as text without digits, so that equal errors with different numbers are the same answer."""
    return f"{errno.errorcode.get(code, code)} {''.join(c for c in text if not c.isdigit())}"[:90]


def open_descriptors() -> list[Stream]:
    """Open the descriptors that the fuzzer uses (DESCRIPTORS in ../fuzz.py)."""
    streams = [Stream(ports=(5001, 6001)), Stream("::1", ports=(5002, 6002))]
    write("/proc/sys/net/ipv4/tcp_timestamps", "0")
    plain = Stream()
    write("/proc/sys/net/ipv4/tcp_timestamps", "1")
    closed = Stream()
    closed.sender.close()
    fresh = socket.socket()
    listening = socket.create_server(("127.0.0.1", 0))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    local = socket.socket(socket.AF_UNIX)
    null = os.open("/dev/null", os.O_RDWR)
    keep: list[socket.socket | int] = [
        streams[0].receiver, streams[0].sender, streams[1].receiver, streams[1].sender, listening, datagrams,
        closed.receiver, null, plain.receiver, local, fresh,
    ]  # fmt: skip
    for number, one in enumerate(keep, 100):
        os.dup2(one if isinstance(one, int) else one.fileno(), number)
    kept.extend(keep)
    return [*streams, plain]


class Kernel:
    """The two netlink sockets, and the state that refused messages must not change."""

    def __init__(self) -> None:
        self.number = family()
        self.generic, self.route = Netlink(NETLINK_GENERIC), Netlink(NETLINK_ROUTE)
        self.cgroup = struct.pack("=Q", os.stat("/sys/fs/cgroup").st_ino)
        self.pid = struct.pack("=I", os.getpid())
        self.defaults = self.read_defaults()

    def read_defaults(self) -> bytes:
        """Options and limit of the namespace."""
        code, text, bodies = self.generic.ask(vulture(V_GET_DEFAULTS, b"", self.number))
        must(code, f"get-defaults ({text})")
        found = attributes(bodies[0][4:])
        return found[V_MAIN["options"]] + found[V_MAIN["max-flows"]]

    def queues(self) -> list[bytes]:
        """Kind and options of every queue, in the dump's order."""
        self.route.socket.send(message(RTM_GETQDISC, bytes(20), F_REQUEST | 0x300))
        shown = []
        for kind, body in self.drain(self.route):
            if kind & 0xFFFF == RTM_NEWQDISC and len(body) > 20:
                found = attributes(body[20:])
                shown.append(body[4:16] + found.get(1, b"") + found.get(2, b""))
        return shown

    @staticmethod
    def drain(link: Netlink) -> list[tuple[int, bytes]]:
        """All answers, including all parts of a dump."""
        found = []
        while more := link.answers():
            found += more
        return found

    def send_vulture(self, line: str, data: bytes) -> None:
        """Send one message to the family."""
        data = data.replace(FAMILY_MARK, struct.pack("=H", self.number), 1)
        data = data.replace(PID_MARK, self.pid).replace(CGROUP_MARK, self.cgroup)
        code, text, bodies = self.generic.ask(data)
        command = data[16] if len(data) > 16 else 0
        note(f"{command if command < 12 else 'other'} {said(code, text)}", line)
        count("vulture refused" if code else "vulture accepted")
        if bodies:
            count("vulture answers", len(bodies))
        if code and command == V_SET:
            now = self.read_defaults()
            expect(now == self.defaults, f"refused, yet it changed the defaults: {line}")
            self.defaults = now
        elif command == V_SET:
            self.defaults = self.read_defaults()

    def send_queue(self, line: str, data: bytes) -> None:
        """Send one message about queues."""
        before = self.queues() if len(data) > 4 and data[4] == RTM_NEWQDISC else None
        code, text, _ = self.route.ask(data)
        self.drain(self.route)
        note(f"{data[4:5].hex()} {said(code, text)}", line)
        count("tc refused" if code else "tc accepted")
        # the kernel (sch_api.c) reads a size table, a top-level attribute, only after sch_shred has made the change
        if code and before is not None and "ize table" not in text:
            expect(self.queues() == before, f"refused ({text}), yet it changed a queue: {line}")

    def reset(self) -> None:
        """Reset the state: no rules, no queues, the default limit."""
        code, _, _ = self.generic.ask(vulture(V_SET, max_flows(16384), self.number))
        must(code, "set")
        self.defaults = self.read_defaults()
        with contextlib.closing(Netlink(NETLINK_GENERIC)) as dump:
            dump.socket.send(message(self.number, struct.pack("=BBH", V_RULE_GET, 1, 0), F_REQUEST | 0x300))
            for kind, body in self.drain(dump):
                if kind & 0xFFFF == self.number:
                    delete = vulture(V_RULE_DEL, rule_by_id(rule_id(body)), self.number)
                    must(self.generic.ask(delete)[0], "rule-del")
        for device in (LO, IDLE):
            self.route.ask(qdisc(RTM_DELQDISC, 0, None, device))
        # a dump that was started and not read would block the next one
        self.generic.close()
        self.route.close()
        self.generic, self.route = Netlink(NETLINK_GENERIC), Netlink(NETLINK_ROUTE)


def read(path: str) -> bytes:
    """Content of a setting."""
    with open(path, "rb") as file:
        return file.read()


def send_text(line: str) -> None:
    """Write to a setting. If refused, it must be unchanged; if accepted, its new content must be accepted again."""
    _, path, offset, digits = line.split()
    data = b"" if digits == "-" else bytes.fromhex(digits)
    before = read(path)
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(descriptor, data, int(offset))
        code = 0
    except OSError as error:
        code = number_of(error)
    finally:
        os.close(descriptor)
    now = read(path)
    note(f"{path.rsplit('/', 1)[1]} {errno.errorcode.get(code, code)}", line)
    count("settings refused" if code else "settings accepted")
    if code:
        expect(now == before, f"refused, yet it changed {path}: {line}")
    else:
        again = write(path, now)
        expect(again == 0 and read(path) == now, f"{path} shows {now!r}, which it does not take: {line}")


def send_load(line: str) -> None:
    """Load a module with parameters; whether this fails or not, it must be possible to load it again."""
    _, name, digits = line.split()
    must(unload(name), f"unload {name}")
    code = load(name, b"" if digits == "-" else bytes.fromhex(digits))
    note(f"{name} {errno.errorcode.get(code, code)}", line)
    count("loads refused" if code else "loads accepted")
    if code:
        must(load(name), f"load {name} after a refused one")
    else:
        must(unload(name), f"unload {name}")
        must(load(name), f"load {name}")


def main() -> None:
    for name in MODULES:
        must(load(name), f"load {name}")
    os.system("ip link add idle type dummy && ip link set idle up")
    streams = open_descriptors()
    kernel = Kernel()
    lines = common.read("lines").splitlines()
    send = {"v": kernel.send_vulture, "t": kernel.send_queue}
    for done, line in enumerate(lines, 1):
        kind = line[0]
        try:
            if kind in send:
                send[kind](line, bytes.fromhex(line[2:]))
            elif kind == "s":
                send_text(line)
            else:
                send_load(line)
        except Exception as error:
            raise SystemExit(f"line {done}: {line}: {error!r}") from error
        if not done % 10:
            for one in streams:
                one.step(30000)
        if not done % 200 or done == len(lines):
            kernel.reset()
            for one in streams:
                missing = one.settle()
                expect(not missing and not one.broken, f"line {done}: {missing} missing {one.broken}")
            progress(done, len(lines))
    for one in streams:
        one.close("beside the messages")
    finish(len(lines), signatures=signatures)


main()
