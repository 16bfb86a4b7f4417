# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_control.py: sockets whose application keeps them locked.

guest_busy.py BIN MODULE       as guest_lives.py has it

A system call on a TCP socket owns it while it copies, also while the memory to or from which it copies is waited for.
A userfaultfd stands for all that an application can make such a fault wait for, FUSE for one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

from guest_control import js, pair, refused, run_tests
from guest_lives import module_again, wait_for

import vulture
from vulture import _netlink

LIBC = ctypes.CDLL(None, use_errno=True)
SYS_USERFAULTFD = 323  # x86-64
UFFDIO_API, UFFDIO_REGISTER = 0xC018AA3F, 0xC020AA00
UFFD_API, UFFDIO_REGISTER_MODE_MISSING = 0xAA, 1

#: time in which anything that waits for a held socket has given up, s; the module waits for 0.1 s
BOUND_S = 1.0
#: time for what waits for nobody: rmmod has a few grace periods, s
FREE_S = 5.0


class Fault:
    """A page whose first access waits until release()."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.fd = LIBC.syscall(SYS_USERFAULTFD, os.O_CLOEXEC)
        assert self.fd >= 0, os.strerror(ctypes.get_errno())
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        fcntl.ioctl(self.fd, UFFDIO_API, bytearray(struct.pack("=QQQ", UFFD_API, 0, 0)))
        area = struct.pack("=QQQQ", start, mmap.PAGESIZE, UFFDIO_REGISTER_MODE_MISSING, 0)
        fcntl.ioctl(self.fd, UFFDIO_REGISTER, bytearray(area))

    def release(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


@contextlib.contextmanager
def held(*pairs: tuple[socket.socket, socket.socket]) -> Iterator[Fault]:
    """Hold each receiver in recv(), in a thread of its own whose copy waits for its page, until the block ends."""
    fault = Fault()
    threads = []
    for receiver, sender in pairs:
        sender.sendall(b"x")
        threads.append(threading.Thread(target=receiver.recv_into, args=(fault.memory,)))
        threads[-1].start()
    time.sleep(0.2)
    try:
        yield fault
    finally:
        fault.release()
        for thread in threads:
            thread.join()


def within(seconds: float, call: Callable, *args, **kwargs):
    """Return what the call returns, or raise what it raises, if it ends in time."""
    said: list = []

    def run() -> None:
        try:
            said.append((call(*args, **kwargs), None))
        except BaseException as error:  # noqa: BLE001 - the caller is to get it
            said.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert said, f"{getattr(call, '__name__', call)} still waits after {seconds} s"
    value, error = said[0]
    if error:
        raise error
    return value


def ask(command: str, *args, **kwargs):
    """Send a request on a handle of its own, so that a thread can make it."""
    with vulture.Vulture() as v:
        return getattr(v, command)(*args, **kwargs)


def test_a_held_socket_keeps_no_request_and_no_removal():
    """A request that names a held socket is refused. The module can be removed, and generic netlink answers others
    meanwhile."""
    with pair() as (receiver, sender):
        ends = (receiver.getsockname(), receiver.getpeername())
        with held((receiver, sender)):
            refused(errno.EBUSY, "try again", within, BOUND_S, ask, "start", receiver)
            refused(errno.EBUSY, "try again", within, BOUND_S, ask, "start", ends)
            assert within(BOUND_S, ask, "list") == []
            within(FREE_S, module_again)
            assert within(BOUND_S, ask, "list") == []


def test_a_held_connection_is_stopped_by_its_id_alone():
    """A request that needs the socket itself is refused; stopping by id and removing the module do not need it."""
    with pair() as (receiver, sender):
        ask("start", receiver)
        with held((receiver, sender)):
            refused(errno.EBUSY, "try again", within, BOUND_S, ask, "stop", receiver)
            refused(errno.EBUSY, "try again", within, BOUND_S, ask, "start", receiver, weight=7)
            (flow,) = within(BOUND_S, ask, "list")
            within(BOUND_S, ask, "stop_id", flow.id)
            assert within(BOUND_S, ask, "list") == []
        ask("start", receiver)
        with held((receiver, sender)):
            within(FREE_S, module_again)


def test_many_held_sockets_cost_a_request_no_more_than_one():
    """What the process starts and stops leaves held sockets out. The whole request waits only once."""
    with contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(pair()) for _ in range(30)]
        with held(*pairs):
            assert within(BOUND_S, ask, "start_pid", os.getpid()) == len(pairs)
            assert len(ask("list")) == len(pairs), "the senders alone"
            assert within(BOUND_S, ask, "stop_pid", os.getpid()) == len(pairs)
        assert within(BOUND_S, ask, "start_pid", os.getpid()) == 2 * len(pairs)
        with held(*pairs):
            within(FREE_S, module_again)


def test_many_requests_in_one_packet_wait_no_longer_than_one():
    """The kernel handles them one after another, and nobody registers a family until the last is done."""
    with pair() as (receiver, sender), held((receiver, sender)), vulture.Vulture() as v:
        link = v._netlink
        body = _netlink.GENL_HEADER.pack(_netlink.COMMANDS["start"], 1, 0)
        body += _netlink.encode("main", {"fd": receiver.fileno()})
        head = _netlink.HEADER.pack(
            _netlink.HEADER.size + len(body), link.family, _netlink.NLM_F_REQUEST | _netlink.NLM_F_ACK, 7, 0
        )
        within(BOUND_S, link.socket.send, (head + body) * 50)
        codes = []
        while len(codes) < 50:
            for _, _, _, answer in _netlink.messages(link.socket.recv(1 << 16)):
                codes.append(-struct.unpack_from("=i", answer)[0])
        assert set(codes) == {errno.EBUSY}, codes


def test_a_socket_that_is_let_go_of_soon_is_waited_for():
    with pair() as (receiver, sender), held((receiver, sender)) as fault:
        timer = threading.Timer(0.03, fault.release)
        begun = time.monotonic()
        timer.start()
        within(BOUND_S, ask, "start", receiver)
        assert time.monotonic() - begun >= 0.03
        timer.join()
        assert len(ask("list")) == 1


@contextlib.contextmanager
def held_from_its_begin(server: socket.socket) -> Iterator[Fault]:
    """A connection whose application owns it before the work item that applies the rules gets to it.

    Its first SYN finds the server's queue full, so that send() is in the kernel already when the second one opens the
    connection a second later; the thread's priority lets it run before the work item. The server does not see the ACK
    of the handshake, which TCP sends with the data.
    """
    fault = Fault()
    address = server.getsockname()

    def send() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        client.send(fault.memory)

    with socket.create_connection(address), socket.socket() as client:
        client.setblocking(False)
        assert client.connect_ex(address) == errno.EINPROGRESS
        client.setblocking(True)
        thread = threading.Thread(target=send)
        thread.start()
        time.sleep(0.2)
        server.accept()[0].close()
        time.sleep(1.3)
        try:
            yield fault
        finally:
            fault.release()
            thread.join()
            server.accept()[0].close()


def test_deferred_rules_pass_over_a_held_socket():
    """With PREEMPT_RT one work item serves all connections: a held socket must not stop it."""
    within(FREE_S, module_again, "defer=1")
    try:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen(0)
            port = str(server.getsockname()[1])
            rule = js("rule", "add", "--remote-port", port)["id"]
            with held_from_its_begin(server):
                with socket.create_connection(server.getsockname()) as one, server.accept()[0]:
                    wait_for(lambda: (one.getsockname(), rule) in {(f.local, f.rule) for f in ask("list")}, BOUND_S)
                assert ask("rules")[0].failed == 0, "it is given time"
                wait_for(lambda: ask("rules")[0].failed == 1)
            with held_from_its_begin(server):
                within(FREE_S, module_again)
    finally:
        within(FREE_S, module_again)


def test_deferred_rules_wait_for_a_socket_that_is_let_go_of():
    """A socket that is released comes under its rule, only later."""
    within(FREE_S, module_again, "defer=1")
    try:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen(0)
            port = str(server.getsockname()[1])
            js("rule", "add", "--remote-port", port)
            with held_from_its_begin(server) as fault:
                assert ask("rules")[0].started == 1, "that which fills the queue"
                fault.release()
                wait_for(lambda: ask("rules")[0].started == 2)
                assert ask("rules")[0].failed == 0
    finally:
        within(FREE_S, module_again)


if __name__ == "__main__":
    run_tests(globals())
