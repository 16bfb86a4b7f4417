# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_control.py: the Python client against the kernel.

guest_client.py BIN             BIN: as guest_control.py has it
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import threading
import time

from guest_control import js, listen, pair, pump, refused, run_tests

import vulture


def test_client_flows():
    for address in ("127.0.0.1", "::1"):
        with pair(address) as (receiver, sender), vulture.Vulture() as v:
            v.start(receiver, controller="rledbat", target_us=30000)
            pump(sender, receiver, 1 << 20)
            flow = v.get(receiver)
            assert (flow.local, flow.remote) == (receiver.getsockname()[:2], receiver.getpeername()[:2]), flow
            assert flow.controller is vulture.Controller.RLEDBAT and flow.options["target_us"] == 30000, flow
            assert flow.bytes == 1 << 20 and flow.rwnd_bytes and flow.own_bytes and flow.segments and flow.acks, flow
            assert flow.state in vulture.RledbatState and flow.samples == flow.stats["samples"], flow
            assert not hasattr(flow, "altitude")
            assert v.get((flow.local, flow.remote)).id == flow.id
            assert [one.id for one in v.list()] == [flow.id]
            v.stop_id(flow.id)
            assert v.list() == []
            v.start((flow.local, flow.remote))
            v.stop((flow.local, flow.remote))


def test_client_processes_and_cgroups():
    folder = "/sys/fs/cgroup/client"
    os.mkdir(folder)
    with pair() as (receiver, _), vulture.Vulture() as v:
        child = subprocess.Popen(["sleep", "60"], pass_fds=[receiver.fileno()])
        assert v.start_pid(child.pid) == 1 and v.stop_pid(child.pid) == 1
        refused(errno.ENOENT, "none of 1 TCP sockets", v.stop_pid, child.pid)
        refused(errno.ESRCH, "", v.start_pid, 999999)
        child.kill()
        child.wait()
        rule = v.rule_add(cgroup=folder, remote="127.0.0.0/8", min_kbit=9, controller="credit")
        assert (rule.cgroup, rule.remote, rule.uid) == (os.stat(folder).st_ino, "127.0.0.0/8", None), rule
        assert rule.options == {"controller": "credit", "min_kbit": 9, "escape_s": 20, "weight": 1000}, rule
        assert v.rules() == [rule]
        refused(errno.ENOENT, "none of 0 TCP sockets", v.start_cgroup, folder)
        refused(errno.ENOENT, "none of 0 TCP sockets", v.stop_cgroup, folder)
        v.rule_del(rule)
        refused(errno.ENOENT, f"no rule with id {rule.id}", v.rule_del, rule.id)
        refused(errno.ENOTDIR, "is not the directory of a v2 cgroup", v.rule_add, cgroup="/tmp")
        refused(errno.EINVAL, "a rule needs", v.rule_add)
        for call in (v.start_cgroup, v.stop_cgroup):
            refused(errno.ENOTDIR, "is not the directory of a v2 cgroup", call, "/tmp")
            refused(errno.ENOENT, "", call, "/nonexistent")
        with vulture.background(receiver.makefile()) as handle:
            assert len(handle.list()) == 1
        assert v.list() == []
        with receiver.makefile() as file, vulture.background(file):
            file.close()
        v.stop(receiver)
        rule = v.rule_add(local_port=9, foreground=True)
        assert rule.foreground and v.rules() == [rule], rule
        v.rule_del(rule)
        rule = v.rule_add(dscp=63)
        assert not rule.foreground
        assert (rule.dscp, rule.cgroup) == (63, None) and v.rules() == [rule], rule
        v.rule_del(rule)
        refused(errno.ERANGE, "dscp 64 is not within 0 to 63", v.rule_add, dscp=64)
    os.rmdir(folder)


def test_client_defaults():
    with vulture.Vulture() as v:
        before = v.defaults()
        assert before.max_flows == 16384 and before.version
        assert before.options == {name.replace("-", "_"): value for name, value in js("show")["options"].items()}
        v.set_defaults(max_flows=77, psi_us=30000)
        now = v.defaults()
        assert (now.max_flows, now.options["psi_us"]) == (77, 30000) and js("show")["max_flows"] == 77
        refused(errno.ERANGE, "psi-us 1 is not within 1000 to 1000000", v.set_defaults, psi_us=1)
        v.set_defaults(max_flows=before.max_flows, psi_us=before.options["psi_us"])
        assert v.defaults() == before


def test_client_events():
    with vulture.Events() as events, vulture.Vulture() as v:
        with pair() as (receiver, _):
            for _ in range(3):
                v.start(receiver)
                v.stop(receiver)
            port = receiver.getsockname()[1]
            with vulture.background(receiver):
                receiver.close()
        said = [next(events) for _ in range(8)]
    assert [event.kind for event in said] == ["start", "end"] * 4
    assert [event.reason for event in said[1::2]] == [vulture.Reason.STOPPED] * 3 + [vulture.Reason.CLOSED]
    assert {event.flow.local[1] for event in said} == {port}


def test_client_events_while_other_things_run():
    """`async for` delivers events while another task runs. If it is cancelled, it leaves nothing behind."""

    async def watch(events: vulture.Events) -> list[str]:
        kinds: list[str] = []
        async for event in events:
            kinds.append(event.kind)
            if len(kinds) == 4:
                return kinds
        return kinds

    async def work(events: vulture.Events) -> list[str]:
        watcher = asyncio.create_task(watch(events))
        with pair() as (receiver, _), vulture.Vulture() as v:
            for _ in range(2):
                await asyncio.sleep(0.05)
                v.start(receiver)
                await asyncio.sleep(0.05)
                v.stop(receiver)
        return await asyncio.wait_for(watcher, 10)

    with vulture.Events() as events:
        assert asyncio.run(work(events)) == ["start", "end"] * 2


def test_client_says_that_events_were_lost():
    with vulture.Events() as events, pair() as (receiver, _), vulture.Vulture() as v:
        for _ in range(2000):
            v.start(receiver)
            v.stop(receiver)
        refused(errno.ENOBUFS, "", lambda: [next(events) for _ in range(4000)])
        assert next(events).kind in ("start", "end"), "it goes on"


def test_client_handles_of_many_threads():
    """Each thread has a handle of its own and gets the answers to its own requests."""
    failures: list[BaseException] = []

    def use(address: str) -> None:
        try:
            with pair(address) as (receiver, _), vulture.Vulture() as v:
                for _ in range(100):
                    v.start(receiver)
                    assert v.get(receiver).local == receiver.getsockname()[:2]
                    v.stop(receiver)
        except BaseException as error:  # noqa: BLE001 - the main thread tells of it
            failures.append(error)

    threads = [threading.Thread(target=use, args=(f"127.0.0.{n}",)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_client_of_an_ordinary_user():
    """An ordinary user controls the user's own sockets without privilege, and no others."""
    with listen("127.0.0.1") as server:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                with socket.create_connection(server.getsockname()) as own, vulture.Vulture() as v:
                    v.start(own)
                    assert v.get(own).local == own.getsockname()
                    v.stop(own)
                    for call in (lambda: v.start_pid(1), lambda: v.rule_add(local_port=80), lambda: v.stop_id(1)):
                        refused(errno.EPERM, "needs CAP_NET_ADMIN", call)
                    refused(errno.EACCES, "you may not write", lambda: v.rule_add(cgroup="/sys/fs/cgroup"))
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    time.sleep(0.1)


if __name__ == "__main__":
    run_tests(dict(globals()))
