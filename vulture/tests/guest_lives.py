# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_control.py: how flows and rules begin and end, and what the wire sees of it.

guest_lives.py BIN MODULE       BIN: as guest_control.py has it; MODULE: vulture.ko, loaded
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
import time

MODULE = sys.argv.pop(2)

from guest_control import Wire, ctl, js, listen, name, pair, pump, refused, run_tests, send_from_peer, watch_windows  # noqa: E402

import vulture  # noqa: E402

CGROUP = "/sys/fs/cgroup"


def module_again(*parameters: str) -> None:
    """Remove the module and load it with other parameters."""
    subprocess.run(["rmmod", "vulture"], check=True)
    subprocess.run(["insmod", MODULE, *parameters], check=True)


def wait_for(what, seconds: float = 5.0) -> None:
    """Wait until the condition is true."""
    for _ in range(round(seconds * 50)):
        if what():
            return
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")


def test_an_active_opener_with_a_large_buffer():
    """The ACK of its handshake has advertised the whole buffer, and the edge may not move back from there."""
    with open("/proc/sys/net/core/rmem_max", "w") as file:
        file.write("16777216")
    wire = Wire("lo")
    with listen("127.0.0.1") as server, socket.socket() as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        receiver.connect(server.getsockname())
        sender, _ = server.accept()
        port = receiver.getsockname()[1]
        with sender, vulture.Vulture() as v:
            v.start(receiver, controller="paper", retract=0)
            pump(sender, receiver, 1 << 20)
    seen = watch_windows(wire, port, False)
    assert seen["windows"] > 3, seen


def test_options_of_a_running_flow_change():
    """The change does not give TCP's own window back in between."""
    with pair() as (receiver, sender), vulture.Vulture() as v:
        v.start(receiver, controller="paper")
        pump(sender, receiver, 2 << 20)
        before = js("list")[0]
        v.start(receiver, controller="paper", psi_us=30000)
        after = js("list")[0]
        assert after["id"] == before["id"] and after["options"]["psi-us"] == 30000
        assert after["bytes"] == before["bytes"] and after["rwnd_bytes"] < after["own_bytes"]
        refused(errno.EALREADY, "with these options", v.start, receiver, controller="paper", psi_us=30000)


def test_rledbat():
    """The third controller works from start to statistics. Starting the connection with another controller is refused.
    """
    with pair() as (receiver, sender), vulture.Vulture() as v:
        v.start(receiver, controller="rledbat", target_us=40000)
        pump(sender, receiver, 4 << 20, pause_s=0.001)
        flow = js("list")[0]
        assert flow["controller"] == "rledbat" and flow["options"]["target-us"] == 40000, flow
        assert flow["rewritten"] and flow["rtt_us"] and flow["samples"], flow
        refused(errno.EALREADY, "by controller rledbat", v.start, receiver, controller="paper")
        refused(errno.EINVAL, "options of rledbat, but", v.start, receiver, controller="paper", target_us=40000)
        ctl(
            "start",
            *(name(end) for end in (receiver.getsockname(), receiver.getpeername())),
            "-o",
            "controller=rledbat",
            "-o",
            "slowdown=0",
        )
        assert js("list")[0]["options"]["slowdown"] == 0


def test_get_needs_no_privilege():
    with pair() as (receiver, _), vulture.Vulture() as v:
        v.start(receiver)
        number = str(js("list")[0]["id"])
        said = subprocess.run(
            ["vulturectl", "show", "--id", number],
            user=65534,
            check=False,
            capture_output=True,
            text=True,
            env=os.environ,
        )
        assert said.returncode == 0 and f"id {number} " in said.stdout, said.stderr
        ends = (name(receiver.getsockname()), name(receiver.getpeername()))
        said = subprocess.run(["vulturectl", "show", *ends], user=65534, check=False, capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        said = subprocess.run(
            ["vulturectl", "stop", "--id", number], user=65534, check=False, capture_output=True, text=True
        )
        assert said.returncode == 1 and "CAP_NET_ADMIN" in said.stderr


def test_rules_of_dead_cgroups_go():
    """A program that made rules for a cgroup may have been killed. Its rules must not fill the list."""
    for number in range(300):
        folder = f"{CGROUP}/dead{number}"
        os.mkdir(folder)
        assert js("rule", "add", "--cgroup", folder)["id"]
        os.rmdir(folder)
    wait_for(lambda: js("rule", "list") == [], 20)


def test_cgroups_are_freed_with_their_rules():
    """The reference of the rule ends with it, so that the cgroup's memory is freed: the count of dying cgroups falls.
    """
    os.mkdir(f"{CGROUP}/freed")
    ctl("rule", "add", "--cgroup", f"{CGROUP}/freed")
    os.rmdir(f"{CGROUP}/freed")

    def dying() -> int:
        with open(f"{CGROUP}/cgroup.stat") as file:
            return int(dict(line.split() for line in file)["nr_dying_descendants"])

    wait_for(lambda: dying() == 0, 60)


def test_the_machine_has_a_limit():
    """The limit holds whatever a namespace's administrator allows."""
    parameter = "/sys/module/vulture/parameters/machine_flows"
    with open(parameter, "w") as file:
        file.write("1")
    try:
        with pair() as (receiver, sender), vulture.Vulture() as v:
            v.start(receiver)
            refused(errno.ENOSPC, "in all namespaces", v.start, sender)
            v.stop(receiver)
            v.start(sender)
    finally:
        with open(parameter, "w") as file:
            file.write("65536")


def test_a_device_that_passes_packets_twice():
    """A VRF passes each packet through the hook twice. The second time it already has the window that the hook wrote.
    """
    commands = """
        ip link add red type vrf table 10
        ip link set red up
        ip netns add peer
        ip link add v0 type veth peer name v1 netns peer
        ip link set v0 master red
        ip addr add 10.9.0.1/24 dev v0
        ip link set v0 up
        ip -n peer link set v1 up
        ip -n peer addr add 10.9.0.2/24 dev v1
    """
    for command in commands.strip().splitlines():
        subprocess.run(command.split(), check=True)
    try:
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"red")
            server.bind(("10.9.0.1", 0))
            server.listen()
            address = server.getsockname()
            child = send_from_peer(address, 262144)
            receiver, _ = server.accept()
        with receiver, vulture.Vulture() as v:
            v.start(receiver)
            assert len(receiver.recv(4 << 20, socket.MSG_WAITALL)) == 4 << 20
            flow = v.get(receiver)
            receiver.sendall(b"x")
        assert child.wait(10) == 0
        assert flow.rewritten > 10
        assert flow.own_bytes > flow.advertised_bytes, "our own window passes for TCP's"
        assert flow.acks <= flow.segments, f"{flow.acks} ACKs for {flow.segments} segments: they count twice"
    finally:
        subprocess.run(["ip", "link", "del", "v0"], check=False)
        subprocess.run(["ip", "link", "del", "red"], check=False)
        subprocess.run(["ip", "netns", "del", "peer"], check=False)


def churn(rounds: int) -> None:
    """Open connections that a rule starts, and close them in every possible way."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        rule = js("rule", "add", "--local-port", str(server.getsockname()[1]))
        for turn in range(rounds):
            sender = socket.create_connection(server.getsockname())
            receiver, _ = server.accept()
            with receiver, sender:
                wait_for(lambda: len(js("list")) == 1)
                pump(sender, receiver, 1 << 18)
                if turn % 2:  # reset
                    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            wait_for(lambda: js("list") == [])
        (shown,) = js("rule", "list")
        assert shown["started"] == rounds, shown
        ctl("rule", "del", str(rule["id"]))


def test_deferred_begin_and_end():
    """With PREEMPT_RT a work item starts and ends flows, since the probe itself may not."""
    module_again("defer=1")
    try:
        churn(20)
        with pair() as (receiver, sender), vulture.Vulture() as v:
            v.start(receiver)
            timer = threading.Timer(0.1, receiver.shutdown, [socket.SHUT_WR])
            timer.start()
            pump(sender, receiver, 4 << 20, pause_s=0.001)
            timer.join()
        wait_for(lambda: js("list") == [])
    finally:
        module_again()


if __name__ == "__main__":
    run_tests(globals())
