# SPDX-License-Identifier: GPL-2.0
"""The steps in which a user uses the suite on a distribution's kernel, each of them checked.

    user.py [STEP...]      in the guest (testbed/tests/backends/test_distro.py boots it); default: all

Every function named step_* is a step; it prints "ok NAME seconds" or "not ok NAME" with the reason. The program runs
as root on a machine of its own, in which a link of 50 Mbit/s, 10 ms each way, joins two namespaces, left and right.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MODULES = ("tcp_lowpri", "tcp_lp", "tcp_ledbat", "tcp_lbe", "vulture", "sch_shred", "shred_hint")
#: congestion control -> its module
CONTROLS = {
    "lp": "tcp_lp",
    "lp_ecn": "tcp_lp",
    "background": "tcp_lowpri",
    "lowpri3.7": "tcp_lowpri",
    "ledbat": "tcp_ledbat",
    "ledbatpp": "tcp_ledbat",
    "lbe": "tcp_lbe",
}
#: their parameters that are numbers: the default, and another value within the range
PARAMETERS = {
    "target_us": ("25000", "2000"),
    "pp_target_us": ("60000", "2000"),
    "gain_percent": ("100", "1"),
    "share_permille": ("50", "500"),
    "min_window": ("2", "0"),
    "delta_permille": ("150", "900"),
    "timeout_keep_percent": ("75", "0"),
    "machine_flows": ("65536", "4"),
}
#: what they show in /proc/net of each namespace
COUNTERS = ("lbe_lbe", "lbe_paths", "lbe_ledbat", "lbe_lowpri", "lbe_lp", "shred_hint")
ADDRESS = {"left": "10.9.0.1", "right": "10.9.0.2"}
PORT = 5201
SERVERS = len(CONTROLS)  # an iperf3 server serves one client at a time, so one server (and port) for each
ROUND_TRIP_MS = 20
LINK = ("dev", "v0", "root", "netem", "delay", "10ms", "rate", "50mbit", "limit", "500")
NOBODY = 65534
#: length of a transfer that its step ends, s
ENDLESS_S = 3600
#: longest wait, s. The machine may be emulated and busy: only what hangs reaches this
LIMIT_S = 300
TCP_CONGESTION = 13
TCP_MD5SIG = 14  # linux/tcp.h
TCP_AO_ADD_KEY = 38
CLONE_NEWNET = 0x40000000  # linux/sched.h
NETLINK_NETFILTER = 12  # linux/netlink.h
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
NFNL_SUBSYS_HOOK = 12  # linux/netfilter/nfnetlink.h
NFNLA_HOOK_HOOKNUM = 1  # linux/netfilter/nfnetlink_hook.h
NF_INET_LOCAL_IN = 1  # linux/netfilter.h
#: /proc/sys/kernel/tainted: a module from outside the tree (4096), not signed by a key that the kernel trusts (8192)
TAINT_EXPECTED = 4096 | 8192
#: messages of the kernel at level "warning" or worse that are no faults, and why
EXPECTED_LOG = (
    r"loading out-of-tree module taints kernel",  # the cause of TAINT_EXPECTED
    r"module verification failed: signature and/or required key missing",
    # the host of the virtual machine is busy
    r"clocksource: (Long readout interval|Marking clocksource tsc unstable|(Watchdog|Clocksource) +\w+ interval:)",
    r"TSC found unstable after boot",
    r"hrtimer: interrupt took \d+ ns",
)


def in_node(node: str) -> list[str]:
    """Return the words that run a command in a namespace. Not `ip netns exec`: it mounts a /sys without cgroups."""
    return ["nsenter", f"--net=/run/netns/{node}"] if node else []


def run(*words: str, node: str = "", status: int | None = 0, timeout_s: float = 60) -> str:
    """Run a command; return its output and errors. AssertionError if its status is not ``status`` (None: any)."""
    command = in_node(node) + list(words)
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout_s)
    said = done.stdout + done.stderr
    assert status is None or done.returncode == status, f"{' '.join(words)}: status {done.returncode}: {said[-600:]}"
    return said


def start(*words: str, node: str) -> subprocess.Popen:
    """Start a command in the background."""
    return subprocess.Popen([*in_node(node), *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def references(module: str) -> int:
    """Return the reference count of a module; -1 if it is not loaded."""
    path = Path(f"/sys/module/{module}/refcnt")
    return int(path.read_text()) if path.exists() else -1


def wait_until(true, what: str, limit_s: float = LIMIT_S, detail=lambda: "") -> None:
    """Poll a condition until it is true; if it never is, the error has the text of ``detail``."""
    until = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < until, f"not within {limit_s:g} s: {what}{detail()}"
        time.sleep(0.1)


def removable(module: str) -> None:
    """Wait until a module has no references, then remove it."""
    wait_until(
        lambda: references(module) == 0,
        f"{module} without references",
        detail=lambda: (
            f"; it has {references(module)}, and there are\n"
            + "".join(run("ss", "-tanO", node=node, status=None) for node in ADDRESS)
        ),
    )
    run("rmmod", module)
    assert references(module) == -1


def load(module: str) -> None:
    """Load a module by name, as a user does; the file must be DKMS's, not one that came with the kernel."""
    run("modprobe", module)
    path = run("modinfo", "-n", module).strip()
    assert "/updates/dkms/" in path, f"{module} is {path}"


def set_up() -> None:
    """Make the two namespaces and their link, and start the iperf3 servers at the right."""
    run("ip", "netns", "add", "left")
    run("ip", "netns", "add", "right")
    run("ip", "link", "add", "v0", "netns", "left", "type", "veth", "peer", "name", "v0", "netns", "right")
    for node, address in ADDRESS.items():
        run("ip", "address", "add", f"{address}/24", "dev", "v0", node=node)
        run("ip", "link", "set", "lo", "up", node=node)
        run("ip", "link", "set", "v0", "up", node=node)
    run("tc", "qdisc", "add", *LINK, node="left")
    run("tc", "qdisc", "add", "dev", "v0", "root", "netem", "delay", "10ms", "limit", "5000", node="right")
    for number in range(SERVERS):
        run("iperf3", "-s", "-D", "-p", str(PORT + number), node="right")


class Transfer(NamedTuple):
    """A transfer that lasts until its step ends it, however slow the machine is."""

    client: subprocess.Popen
    port: int

    def moved(self) -> int:
        """Return the bytes acknowledged and received so far, from ss at the left."""
        assert self.client.poll() is None, f"{self.client.args}: {self.client.stdout.read()[-400:]}"
        return sum(int(sent) for sent in re.findall(r"bytes_(?:acked|received):(\d+)", sockets(self.port)))

    def goes_on(self) -> None:
        """Wait until more bytes are carried than at the call."""
        enough = self.moved() + 100000
        wait_until(lambda: self.moved() > enough, f"{' '.join(self.client.args)} moves data")

    def end(self) -> None:
        """Assert that it still carries data and ends in order on SIGINT."""
        self.goes_on()
        self.client.send_signal(signal.SIGINT)
        said, _ = self.client.communicate(timeout=LIMIT_S)
        carried = re.findall(r"([\d.]+) ([KMG])Bytes +[\d.]+ [KMG]?bits/sec", said)
        assert carried and "the client has terminated" in said, said[-500:]

    def kill(self) -> None:
        """Kill the client and wait for its end."""
        self.client.kill()
        self.client.communicate()


def iperf(*words: str, port: int = PORT) -> Transfer:
    """Start an iperf3 client at the left; return once its connection carries data.

    Both ends use cubic unless ``words`` name a control: bookworm's iperf3 server keeps the one of its last client.
    """
    control = () if "-C" in words else ("-C", "cubic")
    client = start(
        "iperf3", "-c", ADDRESS["right"], "-p", str(port), "-t", str(ENDLESS_S), *control, *words, node="left"
    )
    transfer = Transfer(client, port)
    transfer.goes_on()
    return transfer


def sockets(port: int, node: str = "left") -> str:
    """Return what ss prints of the clients' connections to a port, one line a socket."""
    return run("ss", "-tinHO", "dport", "=", f":{port}", node=node)


def in_child(work) -> str:
    """Call a function in a child process as user nobody; return its result."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writer, work().encode())
        except BaseException as error:  # noqa: BLE001 - the child says it, and ends here
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        said = file.read().decode()
    os.waitpid(child, 0)
    return said


@contextlib.contextmanager
def namespace(node: str) -> Iterator[None]:
    """Move this process to another network namespace for the block; "": it stays in its own."""
    if not node:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)  # bookworm's Python has no os.setns() yet
    with open("/proc/self/ns/net") as own, open(f"/run/netns/{node}") as other:
        assert libc.setns(other.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            libc.setns(own.fileno(), CLONE_NEWNET)


def choose(control: str) -> str:
    """Set a new socket's congestion control by setsockopt(); return what getsockopt() then reports."""
    with socket.socket() as one:
        one.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, control.encode())
        return one.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode()


# ------------------------------------------------------------------------------------------ steps


def step_load() -> None:
    """Every module loads by name from the file that was installed; loading changes nothing else."""
    before = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text()
    for module in MODULES:
        load(module)
        assert references(module) == 0, f"{module} is in use"
    assert Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text() == before
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    assert set(CONTROLS) <= set(available), available


def step_tools() -> None:
    """The tools run, and their manual pages and completions are installed."""
    assert "vulturectl" in run("vulturectl", "--help")
    for path in (
        "share/man/man8/vulturectl.8", "share/bash-completion/completions/vulturectl", "lib/pkgconfig/libvulture.pc",
    ):  # fmt: skip
        assert Path("/usr/local", path).is_file(), path


def step_choose_by_setsockopt() -> None:
    """Root may choose any control; an ordinary user what the module or tcp_allowed_congestion_control allows."""
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
    before = allowed.read_text()
    for control in CONTROLS:
        assert choose(control) == control
        said = in_child(lambda name=control: choose(name))
        if control in before.split():
            assert said == control, f"{control} is allowed, and nobody got: {said}"
        else:
            assert "PermissionError" in said, f"{control} is not allowed, and nobody got: {said}"
    allowed.write_text(before.strip() + " " + " ".join(c for c in CONTROLS if c not in before.split()))
    for control in CONTROLS:
        said = in_child(lambda name=control: choose(name))
        assert said == control, said
    allowed.write_text(before)
    for module in set(CONTROLS.values()):
        wait_until(lambda name=module: references(name) == 0, f"{module} unused")


def step_choose_by_sysctl() -> None:
    """The sysctl sets the default of a namespace, which every new connection in it uses.

    A restricted control (lowpri's) is tried in the first namespace only: the kernel refuses it in all others, and up
    to 7.2 it leaks a reference to the module when it does (tcp_set_default_congestion_control(),
    net/ipv4/tcp_cong.c).
    """
    for control, module in CONTROLS.items():
        node = "" if module == "tcp_lowpri" else "left"
        default = run("sysctl", "-n", "net.ipv4.tcp_congestion_control", node=node).strip()
        run("sysctl", "-q", "-w", f"net.ipv4.tcp_congestion_control={control}", node=node)
        with namespace(node), socket.socket() as one:
            assert one.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode() == control
        assert references(module) > 0, "the default holds the module"
        run("sysctl", "-q", "-w", f"net.ipv4.tcp_congestion_control={default}", node=node)


def step_iperf_through_each() -> None:
    """iperf3 -C uses every congestion control; ss names each; a module in use cannot be removed.

    One after the other: a control that gives way sends next to nothing beside the greedy ones of the same host.
    """
    for number, (control, module) in enumerate(CONTROLS.items()):
        client = iperf("-C", control, port=PORT + number)
        shown = sockets(PORT + number)
        assert re.search(rf" {re.escape(control)} ", shown), f"ss does not show {control}: {shown}"
        fields = re.search(r"bbr:\(bw:[1-9][\d.]*[KMG]?bps,mrtt:([\d.]+)", shown)
        assert fields and float(fields[1]) >= ROUND_TRIP_MS, f"ss does not show what {control} measures: {shown}"
        assert references(module) > 0
        assert "in use" in run("rmmod", module, status=1)
        client.end()


def step_remove_controls_under_traffic() -> None:
    """A module in use cannot be removed; after its last connection's close it can, and other connections go on."""
    for module in sorted(set(CONTROLS.values())):
        control = next(name for name, of in CONTROLS.items() if of == module)
        others = iperf(port=PORT + 1)
        client = iperf("-C", control)
        assert "in use" in run("rmmod", module, status=1)
        client.kill()
        removable(module)
        others.end()
        load(module)


SHRED = ["limit", "219000", "min", "30000", "max", "90000", "avpkt", "1000", "burst", "55", "probability", "0.1",
         "bandwidth", "50mbit", "gentle"]  # fmt: skip


def shred_shown() -> dict:
    """Return options and counters of the shred qdisc at the left."""
    shown = json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", "v0", node="left"))
    one = next(entry for entry in shown if entry["kind"] == "shred")
    return one | one.get("options", {})


def step_shred() -> None:
    """Add, change, show and delete a shred qdisc under traffic; remove its module while the traffic goes on."""
    client = iperf()
    shred = ["dev", "v0", "parent", "1:1", "handle", "10:", "shred"]
    run("tc", "qdisc", "replace", "dev", "v0", "root", "handle", "1:", "tbf", "rate", "50mbit", "burst", "20kb",
        "latency", "50ms", node="left")  # fmt: skip
    run("tc", "qdisc", "add", *shred, *SHRED, "hint", "dscp", node="left")
    run("sysctl", "-q", "-w", "net.shred_hint.mode=dscp", "net.shred_hint.host=1", node="left")
    wait_until(lambda: any(one["packets"] for one in shred_shown()["classes"][1:]), "packets with a hint")
    assert shred_shown()["limit"] == 219000
    run("tc", "qdisc", "change", *shred, "limit", "300000", "min", "40000", "max", "120000", "avpkt", "1000",
        node="left")  # fmt: skip
    assert shred_shown()["limit"] == 300000
    said = run("tc", "qdisc", "change", *shred, "limit", "1000", "min", "9000", "max", "2000", "avpkt", "1000",
               node="left", status=None)  # fmt: skip
    assert said.strip() and shred_shown()["limit"] == 300000, said
    assert "in use" in run("rmmod", "sch_shred", status=1)
    removable("shred_hint")
    run("tc", "qdisc", "del", "dev", "v0", "parent", "1:1", node="left", status=None)
    run("tc", "qdisc", "replace", *LINK, node="left")
    removable("sch_shred")
    client.end()
    load("sch_shred")
    load("shred_hint")


def hooked() -> bool:
    """Whether vulture sees packets that the left receives, as the kernel lists its netfilter hooks."""
    get = NFNL_SUBSYS_HOOK << 8
    number = struct.pack("=HH", 8, NFNLA_HOOK_HOOKNUM) + struct.pack(">I", NF_INET_LOCAL_IN)
    body = struct.pack("=BBH", socket.AF_INET, 0, 0) + number
    header = struct.pack("=IHHII", 16 + len(body), get, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
    with namespace("left"), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as kernel:
        kernel.settimeout(LIMIT_S)
        kernel.send(header + body)
        said = b""
        while True:
            answer = kernel.recv(65536)
            said += answer
            while answer:
                length, kind = struct.unpack_from("=IH", answer)
                assert kind != NLMSG_ERROR, f"no list of hooks: {struct.unpack_from('=i', answer, 16)}"
                if kind == NLMSG_DONE:
                    return b"vulture" in said
                answer = answer[(length + 3) & ~3 :]


def step_hooks() -> None:
    """vulture's hooks are in place only while there is something to do for them. Debian's 6.1 cannot list hooks."""
    if os.uname().release.startswith("6.1."):
        return
    assert not hooked(), "nobody uses vulture"
    run("vulturectl", "rule", "add", "--remote-port", str(PORT), node="left")
    assert hooked(), "there is a rule"
    (rule,) = json.loads(run("vulturectl", "--json", "rule", "list", node="left"))
    run("vulturectl", "rule", "del", str(rule["id"]), node="left")
    wait_until(lambda: not hooked(), "the hooks go after the last rule")


def step_vulture() -> None:
    """vulturectl: start and stop by address, run, a rule. Transfers under control go on when vulture is removed."""
    client = iperf("-R")
    # the receiver of the download is at the left
    listed = [line.split()[3:5] for line in sockets(PORT).splitlines()]
    for local, remote in listed:
        run("vulturectl", "start", local, remote, node="left")
    shown = run("vulturectl", "list", node="left")
    assert all(local in shown for local, _ in listed), shown
    time.sleep(0.5)
    said = run("vulturectl", "--json", "list", node="left")
    assert '"bytes"' in said, said
    for local, remote in listed:
        run("vulturectl", "stop", local, remote, node="left")
    shown = run("vulturectl", "list", node="left")
    assert not any(local in shown for local, _ in listed), shown
    run("vulturectl", "rule", "add", "--remote-port", str(PORT + 1), node="left")
    under_rule = iperf("-R", port=PORT + 1)
    assert f":{PORT + 1}" in run("vulturectl", "list", node="left")
    children = run(
        "vulturectl", "run", "--", "iperf3", "-c", ADDRESS["right"], "-p", str(PORT + 2), "-t", "1", "-R", node="left"
    )
    assert "receiver" in children, children
    run("rmmod", "vulture")
    assert references("vulture") == -1
    under_rule.end()
    client.end()
    load("vulture")


def both_ends(connection: socket.socket) -> tuple[str, str]:
    """Return both ends of a connection in vulturectl's notation."""
    (local, port), (remote, remote_port) = connection.getsockname(), connection.getpeername()
    return f"{local}:{port}", f"{remote}:{remote_port}"


def md5_key(peer: str) -> bytes:
    """Return a struct tcp_md5sig: the key that signs segments from and to this address."""
    key = b"secret"
    return struct.pack("=HH4s120xBBHi80s", socket.AF_INET, 0, socket.inet_aton(peer), 0, 0, len(key), 0, key)


def ao_key(peer: str) -> bytes:
    """Return a struct tcp_ao_add: the same for TCP-AO."""
    key = b"secret"
    address = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(peer))
    return address + struct.pack("=64siIH6B80s", b"hmac(sha1)", 0, 0, 0, 32, 100, 100, 0, 0, len(key), key)


@contextlib.contextmanager
def download(option: int = 0, key=bytes) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Open a connection: (receiver at the left, sender at the right). With ``option`` both have a key beforehand."""
    with namespace("right"):
        server = socket.create_server((ADDRESS["right"], 0))
    with namespace("left"):
        receiver = socket.socket()
    with server, receiver:
        if option:
            server.setsockopt(socket.IPPROTO_TCP, option, key(ADDRESS["left"]))
            receiver.setsockopt(socket.IPPROTO_TCP, option, key(ADDRESS["right"]))
        receiver.settimeout(LIMIT_S)
        receiver.connect(server.getsockname())
        sender, _ = server.accept()
        with sender:
            sender.settimeout(LIMIT_S)
            yield receiver, sender


def carries(receiver: socket.socket, sender: socket.socket, size: int) -> None:
    """Assert that ``size`` bytes arrive as they were sent."""
    data = os.urandom(size)
    sending = threading.Thread(target=sender.sendall, args=(data,))
    sending.start()
    got = bytearray()
    while len(got) < size:
        block = receiver.recv(65536)
        assert block, f"the stream ended after {len(got)} bytes"
        got += block
    sending.join()
    assert bytes(got) == data, "the bytes differ"


def counted(connection: socket.socket, field: str) -> int:
    """A field of tcp_info: segments that are not acknowledged, or were sent, or came."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 144)
    (value,) = struct.unpack_from("=I", raw, {"unacked": 24, "segs_out": 136, "segs_in": 140}[field])
    return value


def refused_signatures(node: str) -> int:
    """Count the segments that a namespace's TCP dropped for a wrong, a missing or an unexpected signature."""
    names, values = (line.split() for line in run("cat", "/proc/net/netstat", node=node).splitlines()[:2])
    count = {name: int(value) for name, value in zip(names[1:], values[1:], strict=True)}
    return sum(value for name, value in count.items() if re.match(r"TCP(MD5|AO)", name) and name != "TCPAOGood")


def step_vulture_signed() -> None:
    """vulture refuses connections signed by TCP-MD5 or TCP-AO; one that is signed later it stops rewriting.

    No signature becomes invalid.
    """
    with download() as (receiver, sender):
        receiver.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, md5_key(ADDRESS["right"]))
        sender.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, md5_key(ADDRESS["left"]))
        said = run("vulturectl", "start", *both_ends(receiver), node="left", status=1)
        assert "is signed (TCP-MD5 or TCP-AO)" in said, said
        carries(receiver, sender, 1 << 20)
    with download() as (receiver, sender):
        # after the handshake nothing is in flight; kernels differ in which of its segments they count
        first = counted(receiver, "segs_out") - counted(sender, "segs_in")
        run("vulturectl", "start", *both_ends(receiver), node="left")
        carries(receiver, sender, 1 << 20)

        def quiet() -> bool:
            came = counted(receiver, "segs_out") - counted(sender, "segs_in") <= first
            return came and not counted(sender, "unacked")

        wait_until(quiet, "no ACK is in flight, which would be refused while only one end has the key")
        receiver.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, md5_key(ADDRESS["right"]))
        sender.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, md5_key(ADDRESS["left"]))
        (before,) = json.loads(run("vulturectl", "--json", "list", node="left"))["connections"]
        assert before["rewritten"], before
        bad = refused_signatures("right")
        carries(receiver, sender, 2 << 20)
        (after,) = json.loads(run("vulturectl", "--json", "list", node="left"))["connections"]
        assert (after["rewritten"], after["bytes"]) == (before["rewritten"], before["bytes"]), (before, after)
        assert refused_signatures("right") == bad
    config = Path(f"/lib/modules/{os.uname().release}/build/.config").read_text()
    if "CONFIG_TCP_AO=y" not in config:
        return
    # beside a signature the kernel offers either timestamps or SACK
    for node in ADDRESS:
        run("sysctl", "-q", "-w", "net.ipv4.tcp_sack=0", node=node)
    run("vulturectl", "rule", "add", "--remote", f"{ADDRESS['right']}/32", node="left")
    with download(TCP_AO_ADD_KEY, ao_key) as (receiver, sender):
        said = run("vulturectl", "start", *both_ends(receiver), node="left", status=1)
        assert "is signed (TCP-MD5 or TCP-AO)" in said, said
        assert json.loads(run("vulturectl", "--json", "list", node="left"))["connections"] == [], "a rule started it"
        carries(receiver, sender, 1 << 20)
    (rule,) = json.loads(run("vulturectl", "--json", "rule", "list", node="left"))
    run("vulturectl", "rule", "del", str(rule["id"]), node="left")
    for node in ADDRESS:
        run("sysctl", "-q", "-w", "net.ipv4.tcp_sack=1", node=node)


def connections() -> list[dict]:
    """Return the downloads that vulture controls at the left."""
    return json.loads(run("vulturectl", "--json", "list", node="left"))["connections"]


def passed_by(opens) -> socket.socket:
    """Return a socket that ``opens`` made in a child, which sent it by SCM_RIGHTS and ended before its receipt."""
    mine, childs = socket.socketpair()
    with mine, childs:
        child = os.fork()
        if child == 0:
            try:
                with opens() as one:
                    socket.send_fds(childs, [b"passed"], [one.fileno()])
            except BaseException as error:  # noqa: BLE001 - the child says it, and ends here
                childs.send(f"{type(error).__name__}: {error}"[:400].encode())
            os._exit(0)
        os.waitpid(child, 0)
        said, descriptors, _, _ = socket.recv_fds(mine, 500, 1)
    assert descriptors, said.decode()
    return socket.socket(fileno=descriptors[0])


def connected(server: socket.socket, control: str = "") -> socket.socket:
    """Connect a socket at the left to a server at the right."""
    with namespace("left"):
        one = socket.socket()
    if control:
        one.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, control.encode())
    one.settimeout(LIMIT_S)
    one.connect(server.getsockname())
    return one


def server_at_the_right() -> socket.socket:
    """Return a listening socket at the right."""
    with namespace("right"):
        server = socket.create_server((ADDRESS["right"], 0))
    server.settimeout(LIMIT_S)
    return server


def step_passed_sockets() -> None:
    """A socket under control is passed to another process and its opener ends: control lasts until the last close."""

    def download() -> socket.socket:
        one = connected(server)
        run("vulturectl", "start", *both_ends(one), node="left")
        return one

    with server_at_the_right() as server:
        with passed_by(download) as receiver, server.accept()[0] as sender:
            sender.settimeout(LIMIT_S)
            receiver.settimeout(LIMIT_S)
            before = connections()
            carries(receiver, sender, 1 << 20)
            (after,) = connections()
            assert before and after["bytes"] > before[0]["bytes"], (before, after)
        wait_until(lambda: not connections(), "no flow after the last close")
        with passed_by(lambda: connected(server, "lbe")) as sender, server.accept()[0] as receiver:
            receiver.settimeout(LIMIT_S)
            sender.settimeout(LIMIT_S)
            assert references("tcp_lbe") > 0
            shown = sockets(server.getsockname()[1])
            assert re.search(r" lbe ", shown), shown
            carries(receiver, sender, 1 << 20)
            assert "in use" in run("rmmod", "tcp_lbe", status=1)
    removable("tcp_lbe")
    load("tcp_lbe")


def exchange(receiver: socket.socket, sender: socket.socket, seconds: float) -> None:
    """Send from one socket to the other for a while; this process has both."""
    block = bytes(1 << 16)
    until = time.monotonic() + seconds
    sender.setblocking(False)
    receiver.setblocking(False)
    while time.monotonic() < until:
        for call in (lambda: sender.send(block), lambda: receiver.recv(1 << 18)):
            with contextlib.suppress(BlockingIOError):
                call()
        time.sleep(0.002)


def ends_in_the_middle(work) -> None:
    """Run ``work`` in a child process, which ends with its sockets open and data queued in them."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError, AssertionError, subprocess.TimeoutExpired):  # a module may not be loaded now
            work()
        os._exit(0)
    os.waitpid(child, 0)


def at_once(**works) -> None:
    """Repeat each work in a process of its own until the time is over. Its argument: the number of the round."""
    until = time.monotonic() + float(os.environ.get("LBE_RACE_S", "5"))

    def again(name: str, work) -> int:
        child = os.fork()
        if child:
            return child
        done = 0
        try:
            while time.monotonic() < until:
                work(done)
                done += 1
            Path(f"/tmp/race.{name}").write_text(str(done))
        except BaseException:  # noqa: BLE001 - the child says it, and ends here
            Path(f"/tmp/race.{name}").write_text("failed: " + traceback.format_exc())
        os._exit(0)

    for child in [again(name, work) for name, work in works.items()]:
        os.waitpid(child, 0)
    rounds = {}
    for name in works:
        text = Path(f"/tmp/race.{name}").read_text()
        assert not text.startswith("failed"), f"{name}: {text}"
        rounds[name] = int(text)
    print("# races, rounds:", ", ".join(f"{name} {number}" for name, number in rounds.items()))
    assert all(rounds.values()), rounds


def race_flows(port: int, *words: str, node: str = "left"):
    """Return work: eight connections of one second; each round uses the next congestion control."""

    def one(turn: int) -> None:
        control = list(CONTROLS)[turn % len(CONTROLS)]
        run("iperf3", "-c", ADDRESS["right"], "-p", str(port), "-t", "1", "-P", "8", "-C", control, *words,
            node=node, status=None)  # fmt: skip

    return one


def race_rules(turn: int) -> None:
    """Add and delete rules."""
    run("vulturectl", "rule", "add", "--remote", f"{ADDRESS['right']}/32", node="left", status=None)
    run("vulturectl", "stop", "--pid", str(os.getpid()), node="left", status=None)
    shown = run("vulturectl", "--json", "rule", "list", node="left", status=None)
    for number in re.findall(r'"id": ?(\d+)', shown):
        run("vulturectl", "rule", "del", number, node="left", status=None)


def race_control(turn: int) -> None:
    """Start and stop vulture on single connections."""
    for line in sockets(PORT + 1).splitlines():
        ends = line.split()[3:5]  # of a download to the left
        run("vulturectl", "start", *ends, node="left", status=None)
        if turn % 2:
            run("vulturectl", "stop", *ends, node="left", status=None)


def race_queue(turn: int) -> None:
    """Make, show, change and delete a shred qdisc."""
    run("tc", "qdisc", "replace", "dev", "v0", "root", "handle", "7:", "shred", *SHRED, node="right", status=None)
    run("tc", "-s", "qdisc", "show", "dev", "v0", node="right", status=None)
    run("tc", "qdisc", "change", "dev", "v0", "root", "handle", "7:", "shred", "limit", str(219000 + turn), "avpkt",
        "1000", node="right", status=None)  # fmt: skip
    run("tc", "-s", "-j", "qdisc", "show", "dev", "v0", node="right", status=None)
    run("tc", "qdisc", "del", "dev", "v0", "root", node="right", status=None)


def race_removal(turn: int) -> None:
    """Remove a module if nothing uses it, and load it again."""
    module = MODULES[turn % len(MODULES)]
    run("rmmod", module, status=None)  # rightly refused while it is in use
    run("modprobe", module)
    if module == "shred_hint":
        run("sysctl", "-q", "-w", "net.shred_hint.mode=dscp", "net.shred_hint.host=1", node="left", status=None)


def race_passing(turn: int) -> None:
    """Pass a socket under control to another process, which closes it, reads on, or never receives it."""
    control = list(CONTROLS)[turn % len(CONTROLS)]
    with server_at_the_right() as server:

        def opens() -> socket.socket:
            one = connected(server, control)
            run("vulturectl", "start", *both_ends(one), node="left", status=None)
            return one

        def leaves() -> None:
            mine, childs = socket.socketpair()
            with mine, childs, opens() as one:
                socket.send_fds(childs, [b"passed"], [one.fileno()])

        with contextlib.suppress(OSError, AssertionError):
            if turn % 3 == 2:
                ends_in_the_middle(leaves)
                return
            with passed_by(opens) as one, server.accept()[0] as other:
                if turn % 3:
                    exchange(one, other, 0.1)
                    exchange(other, one, 0.1)


def race_dumps(turn: int) -> None:
    """Dump flows, rules and congestion controls while they appear and disappear."""
    run("vulturectl", "--json", "list", node="left", status=None)
    run("vulturectl", "rule", "list", node="left", status=None)
    run("ss", "-tinO", node="left", status=None)


def counters() -> Iterator[io.FileIO]:
    """Open what the modules show in /proc/net of this namespace, as far as they are loaded."""
    for name in COUNTERS:
        with contextlib.suppress(OSError):
            yield io.FileIO(f"/proc/self/net/{name}")


def more(one: io.FileIO, size: int) -> bool:
    """Read on in such a file; return whether there was more. Its module may have gone since."""
    try:
        return bool(one.read(size))
    except OSError:
        return False


def race_counters(turn: int) -> None:
    """Read the counters and the paths of a namespace at once, or in pieces, while paths, flows and modules go."""
    with namespace("left" if turn % 2 else "right"):
        shown = list(counters())
    left = shown
    while left:
        left = [one for one in left if more(one, 64 if turn % 3 else 1 << 16)]
        time.sleep(0.001)
    for one in shown:
        one.close()


def race_run(turn: int) -> None:
    """Put a command in the background with all that it starts; every third `vulturectl run` is killed before it ends.
    """
    words = ["vulturectl", "run", "--", "iperf3", "-c", ADDRESS["right"], "-p", str(PORT + 2), "-t", "1"]
    command = subprocess.Popen(
        [*in_node("left"), *words, *["-R"] * (turn % 2)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if turn % 3 == 2:
        time.sleep(0.3)
        command.kill()
    command.wait(timeout=LIMIT_S)


def race_namespaces(turn: int) -> None:
    """End a namespace that still has rules, flows and connections."""

    def work() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.unshare(CLONE_NEWNET) == 0
        run("ip", "link", "set", "lo", "up")
        run("vulturectl", "rule", "add", "--remote", "127.0.0.0/8", status=None)
        server = socket.create_server(("127.0.0.1", 0))
        sender = socket.socket()
        sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, list(CONTROLS)[turn % len(CONTROLS)].encode())
        sender.connect(server.getsockname())
        receiver, _ = server.accept()
        run("vulturectl", "--json", "list", status=None)
        shown = list(counters())  # they are open when the namespace ends
        exchange(receiver, sender, 0.2)
        for one in shown:
            more(one, 64)
        os._exit(0)

    ends_in_the_middle(work)


def race_cgroups(turn: int) -> None:
    """End a cgroup that has a rule while one of its connections is still closing."""
    folder = Path(f"/sys/fs/cgroup/race{turn}")
    folder.mkdir()

    def work() -> None:
        (folder / "cgroup.procs").write_text("0")
        with server_at_the_right() as server:
            receiver = connected(server)
            sender, _ = server.accept()
            if turn % 2:
                run("vulturectl", "start", "--cgroup", str(folder), node="left", status=None)
            exchange(receiver, sender, 0.2)
            os._exit(0)

    run("vulturectl", "rule", "add", "--cgroup", str(folder), node="left", status=None)
    ends_in_the_middle(work)
    folder.rmdir()
    run("vulturectl", "rule", "list", node="left", status=None)


def ended(*words: str, after_s: float, node: str) -> None:
    """Start a command that goes on without end, and end it."""
    command = start(*words, node=node)
    time.sleep(after_s)
    command.terminate()
    command.communicate(timeout=LIMIT_S)


def race_shown(turn: int) -> None:
    """Read what the queue, vulture and the table of hints show, once and live."""
    run("tc", "-s", "-j", "qdisc", "show", "dev", "v0", node="right", status=None)
    run("vulturectl", "metrics", node="left", status=None)
    run("vulturectl", "show", node="left", status=None)
    for line in sockets(PORT + 1).splitlines()[:1]:
        run("vulturectl", "show", "--all", *line.split()[3:5], node="left", status=None)
    ended("vulturectl", "monitor", *(["--events"] if turn % 2 else ["-n", "0.1"]), after_s=0.3, node="left")
    run("cat", "/proc/net/shred_hint", node="left", status=None)


def race_hints(turn: int) -> None:
    """Switch where hints are written, how they are coded, which of them are overwritten, and on which interfaces."""
    names = {"mode": ("dscp", "tos", "off"), "host": ("1", "0"), "edge": ("1", "0"), "police": ("2", "1", "0"),
             "devices": ("", "v0", "v1 v0")}  # fmt: skip
    for node in ("left", "right"):
        with namespace(node):
            for place, (name, values) in enumerate(names.items()):
                with contextlib.suppress(OSError):  # the module may have gone
                    Path(f"/proc/sys/net/shred_hint/{name}").write_text(values[(turn + place) % len(values)])
        time.sleep(0.2)  # each hook that comes or goes changes the kernel's code, which stops an emulated machine


def race_parameters(turn: int) -> None:
    """Write the parameters of the modules, and vulture's limit and defaults; flows that start read them."""
    for module in MODULES:
        for path in sorted(Path(f"/sys/module/{module}/parameters").glob("*")):
            with contextlib.suppress(OSError):  # the module may have gone
                if path.stat().st_mode & 0o200:
                    values = ("Y", "N") if path.read_text().strip() in ("Y", "N") else PARAMETERS[path.name]
                    path.write_text(values[turn % 2])
    controller = ("credit", "rledbat", "paper")[turn % 3]
    run("vulturectl", "set", "-m", ("16384", "4")[turn % 2], "-o", f"controller={controller}", node="left", status=None)


def race_congestion(turn: int) -> None:
    """Change the congestion control of a connection again and again while it sends and acknowledgments come in."""
    names = [*CONTROLS, "cubic", "reno"]
    first = turn % len(names)
    with (
        contextlib.suppress(OSError, AssertionError),
        server_at_the_right() as server,
        connected(server) as sender,
        server.accept()[0] as receiver,
    ):
        moving = threading.Thread(target=exchange, args=(receiver, sender, 0.5))
        moving.start()
        while moving.is_alive():
            for name in names[first:] + names[:first]:
                with contextlib.suppress(OSError):  # its module may not be loaded now
                    sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
                time.sleep(0.001)
        moving.join()


@contextlib.contextmanager
def host_behind_the_left() -> Iterator[str]:
    """Join a third namespace to the left, which forwards its packets to the right; give its name."""
    node = "behind"
    run("ip", "netns", "add", node)
    run("ip", "link", "add", "v0", "netns", node, "type", "veth", "peer", "name", "v1", "netns", "left")
    for at, device, address in ((node, "v0", "10.8.0.1"), ("left", "v1", "10.8.0.2")):
        run("ip", "address", "add", f"{address}/24", "dev", device, node=at)
        run("ip", "link", "set", device, "up", node=at)
    run("ip", "route", "add", "default", "via", "10.8.0.2", node=node)
    run("ip", "route", "add", "10.8.0.0/24", "via", ADDRESS["left"], node="right")
    run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1", node="left")
    try:
        yield node
    finally:
        run("ip", "netns", "del", node)


def step_races() -> None:
    """Many flows, starts and stops, commands in the background, changes of rules and queues, loads and removals of
    modules at once, on all CPUs."""
    at_once(
        up=race_flows(PORT),
        down=race_flows(PORT + 1, "-R"),
        rules=race_rules,
        control=race_control,
        queue=race_queue,
        run=race_run,
        removal=race_removal,
    )
    run("tc", "qdisc", "del", "dev", "v0", "root", node="right", status=None)


def step_races_of_ends() -> None:
    """Flows, removals, sockets passed between processes, dumps, counters that are read, commands in the background, and
    ends of namespaces and cgroups, all at once."""
    at_once(
        down=race_flows(PORT + 1, "-R"),
        passing=race_passing,
        dumps=race_dumps,
        counters=race_counters,
        run=race_run,
        namespaces=race_namespaces,
        cgroups=race_cgroups,
        removal=race_removal,
    )


def step_races_of_settings() -> None:
    """Flows of both hosts and forwarded ones, settings of all modules written and shown, queues changed, congestion
    controls changed in the middle of a transfer, and removals, all at once."""
    with host_behind_the_left() as behind:
        at_once(
            down=race_flows(PORT + 1, "-R"),
            forwarded=race_flows(PORT + 3, node=behind),
            queue=race_queue,
            shown=race_shown,
            hints=race_hints,
            parameters=race_parameters,
            congestion=race_congestion,
            removal=race_removal,
        )
    run("tc", "qdisc", "del", "dev", "v0", "root", node="right", status=None)


def step_remove_all() -> None:
    """After all connections are closed, every module can be removed: no reference has leaked."""
    for pid in run("ip", "netns", "pids", "right").split():
        os.kill(int(pid), signal.SIGKILL)
    for module in MODULES:
        removable(module)
    for node in ADDRESS:
        run("ip", "netns", "del", node)


def unexpected(said: str, boot: str) -> list[str]:
    """Return the lines of a kernel's log that are neither expected nor in the log of its boot."""
    before = boot.splitlines()
    return [
        line for line in said.splitlines()
        if line not in before and not any(re.search(pattern, line) for pattern in EXPECTED_LOG)
    ]  # fmt: skip


def step_log() -> None:
    """The kernel logged no unexpected warning, and its taint is the one that out-of-tree modules explain."""
    odd = unexpected(run("dmesg", "--level", "emerg,alert,crit,err,warn"), Path("/tmp/dmesg.before").read_text())
    assert not odd, "\n".join(odd[:20])
    taint = int(Path("/proc/sys/kernel/tainted").read_text())
    assert taint == TAINT_EXPECTED, f"taint {taint}, expected {TAINT_EXPECTED}"


def main(words: list[str]) -> int:
    """Run the steps in the order of this file; a failure does not stop the others."""
    steps = [name for name in globals() if name.startswith("step_")]
    wanted = [f"step_{word}" for word in words] or steps
    unknown = set(wanted) - set(steps)
    if unknown:
        print(f"no step {', '.join(unknown)}; there are {', '.join(steps)}")
        return 2
    Path("/tmp/dmesg.before").write_text(run("dmesg", "--level", "emerg,alert,crit,err,warn"))
    set_up()
    for name in wanted:
        began = time.monotonic()
        try:
            globals()[name]()
        except Exception:  # noqa: BLE001 - whatever it was, it is a step that failed
            print(f"not ok {name}\n{traceback.format_exc()}", flush=True)
        else:
            print(f"ok {name} {time.monotonic() - began:.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
