# SPDX-License-Identifier: GPL-2.0
"""Shared code of the programs in the guest: modules, byte-checked connections, netlink, the report.

settings.json is in the program's folder: seed, modules (name -> path), attributes (set -> name -> number), and the
settings of the part in parts.py.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import random
import select
import socket
import struct
import time
from pathlib import Path

SETTINGS = json.loads(Path("settings.json").read_text(encoding="utf-8"))
OUT = Path(os.environ["LBE_OUT"])
LIBC = ctypes.CDLL(None, use_errno=True)
SYS_INIT_MODULE, SYS_DELETE_MODULE = 175, 176  # x86-64
CLONE_NEWNET = 0x40000000  # linux/sched.h
HINT = "/proc/sys/net/shred_hint"  # sysctls of shred_hint

#: module -> congestion controls that it registers
CONTROLS = {
    "tcp_lp": ("lp", "lp_ecn"),
    "tcp_lowpri": ("background", "lowpri1", "lowpri3.7"),
    "tcp_ledbat": ("ledbat", "ledbatpp"),
    "tcp_lbe": ("lbe",),
}

#: all modules of the suite
MODULES = (*CONTROLS, "vulture", "sch_shred", "shred_hint")

#: parameters with which a module must be loaded to register all of them
PARAMETERS = {"tcp_lowpri": b"variants=all"}

# ---- the report ---------------------------------------------------------------------------

counts: dict[str, int] = {}
wrong: list[str] = []
total = {"bytes": 0, "lost": 0}  # of all connections that were closed


def count(what: str, by: int = 1) -> None:
    """Increase a counter."""
    counts[what] = counts.get(what, 0) + by


def expect(good: bool, text: str) -> None:
    """Record a failed assertion; the part continues."""
    if not good:
        count("wrong")
        if len(wrong) < 50:
            wrong.append(text)


def progress(done: int, total: int) -> None:
    """Report progress to the host."""
    (OUT / "progress").write_text(f"{done} {total}", encoding="ascii")


def finish(cases: int, **more: object) -> None:
    """Write the result; a program calls this last."""
    result = {"cases": cases, "counts": counts, "wrong": wrong, **total, **more}
    (OUT / "result.json").write_text(json.dumps(result), encoding="utf-8")


# ---- modules ------------------------------------------------------------------------------

_images: dict[str, bytes] = {}


def _syscall(number: int, *words: object) -> int:
    """Call a system call; returns 0 or the errno."""
    return 0 if LIBC.syscall(number, *words) == 0 else ctypes.get_errno()


def number_of(error: OSError) -> int:
    """The errno of an error of the system."""
    return error.errno or errno.EIO


def image(name: str) -> bytes:
    """Content of a module's file, cached."""
    if name not in _images:
        _images[name] = Path(SETTINGS["modules"][name]).read_bytes()
    return _images[name]


def load(name: str, parameters: bytes | None = None) -> int:
    """init_module(2): 0 or the errno."""
    text = image(name)
    if parameters is None:
        parameters = PARAMETERS.get(name, b"")
    return _syscall(SYS_INIT_MODULE, text, ctypes.c_ulong(len(text)), parameters)


def unload(name: str) -> int:
    """delete_module(2), without waiting: 0 or the errno."""
    return _syscall(SYS_DELETE_MODULE, name.encode(), os.O_NONBLOCK)


def must(code: int, what: str) -> None:
    """Exit if a necessary step has failed."""
    if code:
        raise SystemExit(f"{what}: {errno.errorcode.get(code, code)}")


if "lbe_shadow" in SETTINGS["modules"]:
    must(load("lbe_shadow"), "load lbe_shadow")


def loaded(name: str) -> bool:
    """Whether a module is loaded."""
    return os.path.exists(f"/sys/module/{name}")


def write(path: str, text: str | bytes) -> int:
    """Write to a file in one call; returns 0 or the errno."""
    data = text.encode() if isinstance(text, str) else text
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except OSError as error:
        return number_of(error)
    try:
        os.write(descriptor, data)
    except OSError as error:
        return number_of(error)
    finally:
        os.close(descriptor)
    return 0


def read(path: str) -> str:
    """Text of a file."""
    return Path(path).read_text(encoding="utf-8", errors="replace")


# ---- connections whose every byte is checked ----------------------------------------------

PERIOD = 65521  # a prime, so that a lost or duplicate segment always shifts the pattern
PATTERN = random.Random(7).randbytes(PERIOD) * 3


class Stream:
    """A TCP connection between two sockets of this process, with a check of every byte."""

    def __init__(self, address: str = "127.0.0.1", control: str | None = None, ports: tuple[int, int] = (0, 0)):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.create_server((address, ports[0]), family=family) as server:
            self.sender = socket.socket(family, socket.SOCK_STREAM)
            self.sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if ports[1]:
                self.sender.bind((address, ports[1]))
            if control:
                self.control(control)
            # longer than a handshake in which each packet is retransmitted as often as TCP does (127 s)
            server.settimeout(300)
            try:
                self.sender.connect(server.getsockname()[:2])
                self.receiver, _ = server.accept()
            except OSError:
                self.sender.close()
                raise
        self.sent = self.got = 0
        self.broken = ""
        for one in (self.sender, self.receiver):
            one.setblocking(False)

    def control(self, name: str) -> None:
        """Set the sender's congestion control."""
        self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())

    def _send(self, size: int) -> int:
        at = self.sent % PERIOD
        try:
            done = self.sender.send(memoryview(PATTERN)[at : at + min(size, 2 * PERIOD)])
        except BlockingIOError:
            return 0
        except OSError as error:
            self.broken = self.broken or f"send: {error}"
            return 0
        self.sent += done
        return done

    def _receive(self) -> int:
        try:
            block = self.receiver.recv(2 * PERIOD)
        except BlockingIOError:
            return 0
        except OSError as error:
            self.broken = self.broken or f"receive: {error}"
            return 0
        at = self.got % PERIOD
        if block != PATTERN[at : at + len(block)]:
            self.broken = self.broken or f"other bytes after {self.got}"
        self.got += len(block)
        return len(block)

    def step(self, size: int) -> int:
        """Send up to ``size`` bytes and receive all available data, without waiting. Returns the bytes sent."""
        done = self._send(size) if size else 0
        while self._receive():
            pass
        return done

    def pump(self, size: int, limit_s: float = 600.0) -> None:
        """Send ``size`` bytes and receive all available data; waits for the network (in virtual time)."""
        end, idle = time.monotonic() + limit_s, 0
        while size > 0 and not self.broken:
            done = self.step(size)
            size -= done
            idle = 0 if done else idle + 1
            if idle:
                if time.monotonic() > end:
                    self.broken = f"nothing could be sent for {limit_s:g} s after {self.sent} bytes"
                self._wait(1.0, True)
            if idle > 100:  # poll() returns although nothing can be sent: sleep, or virtual time would not advance
                time.sleep(0.1)

    def _wait(self, limit_s: float, sending: bool) -> None:
        poll = select.poll()
        poll.register(self.receiver, select.POLLIN)
        if sending:
            poll.register(self.sender, select.POLLOUT)
        poll.poll(limit_s * 1000)

    def settle(self, limit_s: float = 1200.0) -> int:
        """Wait for data in flight. Returns the number of bytes that did not arrive."""
        end = time.monotonic() + limit_s
        while self.got < self.sent and not self.broken and time.monotonic() < end:
            if not self._receive():
                self._wait(1.0, False)
        return self.sent - self.got

    def close(self, what: str = "") -> None:
        """Wait for data in flight, count, close."""
        lost = self.settle()
        total["bytes"] += self.got
        total["lost"] += lost
        expect(not self.broken and not lost, f"{what or 'a connection'}: {lost} of {self.sent} lost {self.broken}")
        self.sender.close()
        self.receiver.close()


# ---- netlink ------------------------------------------------------------------------------

NLMSG_ERROR, NLMSG_DONE = 2, 3
F_REQUEST, F_ACK, F_DUMP, F_REPLACE, F_EXCL, F_CREATE = 1, 4, 0x300, 0x100, 0x200, 0x400
SOL_NETLINK, EXT_ACK, CAP_ACK = 270, 11, 10
NETLINK_ROUTE, NETLINK_GENERIC = 0, 16
NESTED = 0x8000
# linux/rtnetlink.h, linux/pkt_sched.h
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
TCA_KIND, TCA_OPTIONS = 1, 2
ROOT = 0xFFFFFFFF
LO = 1


def attribute(kind: int, payload: bytes) -> bytes:
    """One attribute, padded."""
    return struct.pack("=HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def message(kind: int, body: bytes, flags: int = F_REQUEST | F_ACK, seq: int = 1) -> bytes:
    """A netlink message."""
    return struct.pack("=IHHII", 16 + len(body), kind, flags, seq, 0) + body


def attributes(data: bytes) -> dict[int, bytes]:
    """Type -> payload of consecutive attributes."""
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


class Netlink:
    """A netlink socket that returns the kernel's answers to each message."""

    def __init__(self, protocol: int):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self.socket.bind((0, 0))
        self.socket.setsockopt(SOL_NETLINK, EXT_ACK, 1)
        self.socket.setsockopt(SOL_NETLINK, CAP_ACK, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def close(self) -> None:
        """Close the socket; this also ends a dump that was not read completely."""
        self.socket.close()

    def answers(self) -> list[tuple[int, bytes]]:
        """(type, body) of all queued answers; the kernel answers before send() returns."""
        found: list[tuple[int, bytes]] = []
        while True:
            try:
                data = self.socket.recv(1 << 18, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            except OSError as error:  # an overrun: the queued answers are lost
                found.append((NLMSG_ERROR, struct.pack("=i", -number_of(error)) + b"\0" * 16))
                continue
            at = 0
            while at + 16 <= len(data):
                length, kind, flags, _, _ = struct.unpack_from("=IHHII", data, at)
                if length < 16:
                    break
                found.append((kind | (flags & 0x300) << 16, data[at + 16 : at + length]))
                at += (length + 3) & ~3

    def ask(self, data: bytes) -> tuple[int, str, list[bytes]]:
        """Send one message; returns (errno, extended text, bodies of replies)."""
        try:
            self.socket.send(data)
        except OSError as error:
            return number_of(error), "send", []
        code, text, bodies = 0, "", []
        for kind, body in self.answers():
            if kind & 0xFFFF == NLMSG_ERROR:
                (number,) = struct.unpack_from("=i", body)
                code = -number
                if kind >> 16 & 0x200:  # with CAP_ACK the error and the request's header precede the text
                    text = attributes(body[20:]).get(1, b"").rstrip(b"\0").decode("utf-8", "replace")
            elif kind & 0xFFFF != NLMSG_DONE:
                bodies.append(body)
        return code, text, bodies


def family(name: str = "vulture") -> int:
    """Number of a generic netlink family; 0 if there is none."""
    with contextlib.closing(Netlink(NETLINK_GENERIC)) as one:
        body = struct.pack("=BBH", 3, 1, 0) + attribute(2, name.encode() + b"\0")  # CTRL_CMD_GETFAMILY
        code, _, bodies = one.ask(message(16, body))
    return struct.unpack("=H", attributes(bodies[0][4:])[1][:2])[0] if not code and bodies else 0


def vulture(command: int, payload: bytes, number: int) -> bytes:
    """A request to vulture's family, which has this number."""
    return message(number, struct.pack("=BBH", command, 1, 0) + payload)


# vulture/uapi/vulture.h
V_START, V_STOP, V_GET, V_SET, V_GET_DEFAULTS, V_RULE_ADD, V_RULE_DEL, V_RULE_GET = range(1, 9)

#: numbers of vulture's attributes, from Documentation/vulture.yaml: set -> name -> number
ATTRIBUTES: dict[str, dict[str, int]] = SETTINGS["attributes"]
V_MAIN, V_FLOW = ATTRIBUTES["main"], ATTRIBUTES["flow"]


def by_fd(one: socket.socket) -> bytes:
    """The attribute for a socket of this process."""
    return attribute(V_MAIN["fd"], struct.pack("=I", one.fileno()))


def max_flows(flows: int) -> bytes:
    """The attribute for the namespace's limit of flows."""
    return attribute(V_MAIN["max-flows"], struct.pack("=I", flows))


def own_sockets() -> bytes:
    """The attribute for all sockets of this process."""
    return attribute(V_MAIN["pid"], struct.pack("=I", os.getpid()))


def rule_id(body: bytes) -> bytes:
    """The id in an answer about rules, as bytes of the attribute."""
    return attributes(attributes(body[4:])[V_MAIN["rule"]])[ATTRIBUTES["rule"]["id"]]


def rule_by_id(number: bytes) -> bytes:
    """The attribute for a rule by its id."""
    return attribute(V_MAIN["rule"] | NESTED, attribute(ATTRIBUTES["rule"]["id"], number))


def rule_on(port: int) -> bytes:
    """The attribute for a rule on a local port."""
    return attribute(V_MAIN["rule"] | NESTED, attribute(ATTRIBUTES["rule"]["local-port"], struct.pack("=H", port)))


def shred_options(limit: int = 300000, least: int = 15000, most: int = 45000) -> bytes:
    """Attributes of a shred queue, as in sch_shred/uapi/shred.h."""
    return (
        attribute(1, struct.pack("=I", limit))
        + attribute(2, struct.pack("=I", least))
        + attribute(3, struct.pack("=I", most))
        + attribute(4, struct.pack("=I", 1514))
        + attribute(9, struct.pack("=I", 1 << 28))
    )


def qdisc(kind: int, flags: int, options: bytes | None, device: int = LO, parent: int = ROOT, handle: int = 0) -> bytes:
    """A tc message about a shred queue."""
    body = struct.pack("=BxHiIII", 0, 0, device, handle, parent, 0)
    if options is not None:
        body += attribute(TCA_KIND, b"shred\0") + attribute(TCA_OPTIONS, options)
    return message(kind, body, F_REQUEST | F_ACK | flags)
