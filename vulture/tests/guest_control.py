# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_control.py: the tools against the kernel, as a user meets them.

    guest_control.py BIN        BIN: folder of vulturectl, libvulture.so and the package vulture

Every function named test_* is a test; prints "ok NAME" or "not ok NAME" with the reason. It runs as
root in a namespace with lo alone, which has timestamps, large segments and GSO.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import http.server
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

BIN = sys.argv[1]
sys.path.insert(0, BIN)
os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"

import errno  # noqa: E402

import jsonschema  # noqa: E402

import vulture  # noqa: E402


def ctl(*words: str, status: int = 0) -> str:
    """Run vulturectl; its standard output, or its standard error where it is to fail."""
    done = subprocess.run(["vulturectl", *words], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, f"vulturectl {' '.join(words)}: {done.returncode}, {done.stderr}"
    return done.stderr if status else done.stdout


with open(f"{BIN}/vulturectl.schema.json") as file:
    SCHEMA = jsonschema.Draft202012Validator(json.load(file))
RULE = SCHEMA.evolve(schema={"$ref": "#/$defs/rule", "$defs": SCHEMA.schema["$defs"]})


def document(text: str) -> dict:
    """Return what vulturectl --json printed; its schema must hold."""
    said = json.loads(text)
    SCHEMA.validate(said)
    return said


def js(*words: str):
    """The same, as JSON: the connections of list, the one of show, the defaults of show alone, or all of it."""
    said = ctl("--json", *words)
    if words[0] == "list":
        return document(said)["connections"]
    if words[0] == "show":
        return document(said)["defaults"] if len(words) == 1 else document(said)["connections"][0]
    told = json.loads(said)
    if words[0] == "rule":
        for rule in told if isinstance(told, list) else [told]:
            RULE.validate(rule)
    return told


def listen(address: str) -> socket.socket:
    """A listening socket of the address's family, on any port."""
    return socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)


@contextlib.contextmanager
def pair(address: str = "127.0.0.1"):
    """A connected pair: (receiver, sender)."""
    with listen(address) as server:
        sender = socket.create_connection(server.getsockname()[:2])
        receiver, _ = server.accept()
    with receiver, sender:
        yield receiver, sender


def name(sockaddr) -> str:
    """Return the connection's name as vulturectl takes it."""
    return f"[{sockaddr[0]}]:{sockaddr[1]}" if ":" in sockaddr[0] else f"{sockaddr[0]}:{sockaddr[1]}"


def ends(receiver: socket.socket) -> tuple[str, str]:
    """Local and remote of a connection."""
    return name(receiver.getsockname()), name(receiver.getpeername())


def refused(number: int, words: str, call, *args, **kwargs) -> None:
    """The call fails with this errno, and the text says so."""
    try:
        call(*args, **kwargs)
    except OSError as error:
        assert error.errno == number, f"{error!r}, expected {errno.errorcode[number]}"
        assert words in str(error), f"{error}: does not say {words!r}"
    else:
        raise AssertionError(f"was not refused, expected {errno.errorcode[number]}")


def pump(sender: socket.socket, receiver: socket.socket, size: int, pause_s: float = 0.0) -> None:
    """Send seeded bytes through, and compare."""
    wanted, got = hashlib.sha256(), hashlib.sha256()

    def send() -> None:
        stream = random.Random(size)
        left = size
        while left:
            block = stream.randbytes(min(left, 65536))
            wanted.update(block)
            sender.sendall(block)
            left -= len(block)

    thread = threading.Thread(target=send)
    thread.start()
    left = size
    while left:
        block = receiver.recv(min(left, 65536))
        assert block, f"the stream ended {left} bytes early"
        got.update(block)
        left -= len(block)
        if pause_s:
            time.sleep(pause_s)
    thread.join()
    assert wanted.digest() == got.digest(), "the bytes differ"


def test_start_get_stop_by_descriptor():
    for address in ("127.0.0.1", "::1"):
        with pair(address) as (receiver, sender), vulture.Vulture() as v:
            v.start(receiver, controller="paper", psi_us=21000)
            pump(sender, receiver, 3 << 20)
            flow = v.get(receiver)
            assert flow.local == receiver.getsockname()[:2], flow.local
            assert flow.remote == receiver.getpeername()[:2], flow.remote
            assert flow.bytes == 3 << 20, flow.bytes
            assert flow.acks and flow.rewritten and flow.advertised_bytes <= flow.own_bytes
            assert flow.mss_bytes > 536 and flow.segments * flow.mss_bytes >= flow.bytes
            v.stop(receiver)
            refused(errno.ENOENT, "not under control", v.get, receiver)
            refused(errno.ENOENT, "not under control", v.stop, receiver)
            pump(sender, receiver, 1 << 20)


def test_mapped_address():
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        sender = socket.create_connection(("127.0.0.1", server.getsockname()[1]))
        receiver, _ = server.accept()
    with receiver, sender, vulture.Vulture() as v:
        v.start(receiver)
        pump(sender, receiver, 1 << 20)
        assert v.get(receiver).bytes == 1 << 20
        assert v.get(receiver).local[0] == "127.0.0.1"


def test_refusals_by_descriptor():
    with pair() as (receiver, sender), vulture.Vulture() as v:

        class Closed:
            def fileno(self):
                return 999

        refused(errno.EBADF, "999 is not open", v.start, Closed())
        with open("/dev/null", "rb") as file:
            refused(errno.ENOTSOCK, "is not a socket", v.start, file)
        for kind in (
            (socket.AF_INET, socket.SOCK_DGRAM),
            (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_TCP),
            (socket.AF_UNIX, socket.SOCK_STREAM),
            (socket.AF_NETLINK, socket.SOCK_RAW),
            (socket.AF_PACKET, socket.SOCK_RAW),
        ):
            with socket.socket(*kind) as other:
                for call in (v.start, v.get, v.stop):
                    refused(errno.EPROTONOSUPPORT, "not a TCP socket", call, other)
        with socket.socket() as alone:
            refused(errno.ENOTCONN, "not connected", v.start, alone)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            refused(errno.ENOTCONN, "not connected", v.start, listener)
        for option, value, words in (
            ("psi_us", 999, "psi-us 999 is not within 1000 to 1000000"),
            ("tick_us", 0, "tick-us 0 is not within 1 to 10000"),
            ("alpha_permille", 1000, "alpha-permille 1000 is not within 500 to 999"),
            ("observe", 2, "observe 2 is not within 0 to 1"),
        ):
            refused(errno.ERANGE, words, v.start, receiver, controller="paper", **{option: value})
        refused(
            errno.EINVAL, "options clash", v.start, receiver, controller="paper", cons_low_us=9000, cons_high_us=8000
        )
        assert v.list() == []
        v.start(receiver)
        refused(errno.EALREADY, "under control already", v.start, receiver)
        sender.close()
        receiver.recv(1)
    with pair() as (receiver, sender), vulture.Vulture() as v:
        sender.close()
        assert receiver.recv(1) == b""
        refused(errno.ENOTCONN, "finished sending", v.start, receiver)


def test_multipath():
    """A descriptor of MPTCP is not a TCP socket and is refused. A rule takes its subflow, and no byte is lost."""
    mptcp = 262
    try:
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, mptcp)
    except OSError as error:
        assert error.errno == errno.EPROTONOSUPPORT  # 6.1 without it
        return
    with server, socket.socket(socket.AF_INET, socket.SOCK_STREAM, mptcp) as sender, vulture.Vulture() as v:
        server.bind(("127.0.0.1", 0))
        server.listen()
        rule = js("rule", "add", "--local-port", str(server.getsockname()[1]))["id"]
        sender.connect(server.getsockname())
        receiver, _ = server.accept()
        with receiver:
            refused(errno.EPROTONOSUPPORT, "not a TCP socket", v.start, receiver)
            pump(sender, receiver, 1 << 20)
            (flow,) = js("list")
            assert flow["rule"] == rule and flow["bytes"] >= 1 << 20, flow
        ctl("rule", "del", str(rule))


def test_without_timestamps():
    with open("/proc/sys/net/ipv4/tcp_timestamps", "w") as file:
        file.write("0")
    try:
        with pair() as (receiver, _), vulture.Vulture() as v:
            refused(errno.EOPNOTSUPP, "no timestamps", v.start, receiver)
    finally:
        with open("/proc/sys/net/ipv4/tcp_timestamps", "w") as file:
            file.write("1")


def test_unprivileged():
    """A user without privilege may control an own socket by descriptor, and nothing else: not by address, and no other
    user's."""
    with pair() as (receiver, _):
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                with vulture.Vulture() as v:
                    v.start(receiver)
                    # the subflow of the test before may still be closing
                    assert receiver.getsockname() in [flow.local for flow in v.list()], v.list()
                    v.stop(receiver)
                local, remote = ends(receiver)
                for words in (
                    ("start", local, remote),
                    ("stop", local, remote),
                    ("stop", "--id", "1"),
                    ("rule", "add", "--local-port", "80"),
                    ("set", "-m", "5"),
                ):
                    said = ctl(*words, status=1)
                    assert "CAP_NET_ADMIN" in said, f"{words}: {said}"
                # a process that root made, who alone may trace it
                assert "no connection was changed" in ctl("start", "--pid", str(os.getpid()), status=1)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - a forked child ends here, whatever it was
                traceback.print_exc()
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0, "see above"


def test_by_address():
    for address in ("127.0.0.1", "::1"):
        with pair(address) as (receiver, sender):
            local, remote = ends(receiver)
            assert ctl("start", local, remote) == "started 1 connection\n"
            pump(sender, receiver, 1 << 20)
            flow = js("show", local, remote)
            assert flow["local"] == local and flow["remote"] == remote, flow
            assert flow["bytes"] == 1 << 20
            assert [f["id"] for f in js("list")] == [flow["id"]]
            assert local in ctl("list")
            assert js("show", "--id", str(flow["id"]))["id"] == flow["id"]
            assert js("stop", "--id", str(flow["id"])) == {"stopped": 1}
            said = ctl("stop", local, remote, status=1)
            assert "not under control" in said, said
    said = ctl("start", "127.0.0.1:1", "127.0.0.1:2", status=1)
    assert "no such connection" in said, said


def test_by_pid():
    with pair(), pair():
        assert js("start", "--pid", str(os.getpid())) == {"started": 4}  # both ends of both
        assert js("stop", "--pid", str(os.getpid())) == {"stopped": 4}
        assert "none of" in ctl("stop", "--pid", str(os.getpid()), status=1)
    assert "no process" in ctl("start", "--pid", "99999", status=1)


def test_by_cgroup_and_rule():
    os.makedirs("/sys/fs/cgroup/a/b", exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import socket, sys, time; open('/sys/fs/cgroup/a/b/cgroup.procs', 'w').write('0');"
                f"s = socket.create_connection(('127.0.0.1', {server.getsockname()[1]})); print('up', flush=True);"
                "sys.stdin.read()",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        sender, _ = server.accept()
        assert child.stdout.readline() == b"up\n"
        with sender:
            assert js("start", "--cgroup", "/sys/fs/cgroup/a") == {"started": 1}
            assert js("stop", "--cgroup", "/sys/fs/cgroup/a/b") == {"stopped": 1}
        child.stdin.close()
        child.wait()
    assert "not the directory" in ctl("start", "--cgroup", "/dev/null", status=1)
    os.makedirs("/tmp/nocgroup", exist_ok=True)
    assert "not the directory of a v2 cgroup" in ctl("start", "--cgroup", "/tmp/nocgroup", status=1)
    os.rmdir("/sys/fs/cgroup/a/b")
    os.rmdir("/sys/fs/cgroup/a")


def test_rules():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        rule = js(
            "rule",
            "add",
            "--local-port",
            str(port),
            "--remote",
            "127.0.0.0/8",
            "-o",
            "controller=paper",
            "-o",
            "psi-us=22000",
        )
        assert rule["remote"] == "127.0.0.0/8" and rule["local_port"] == port
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
        with receiver, sender:
            (flow,) = js("list")
            assert flow["rule"] == rule["id"] and flow["options"]["psi-us"] == 22000, flow
            pump(sender, receiver, 1 << 20)
        assert js("rule", "list")[0]["started"] == 1
        assert f"local-port {port} remote 127.0.0.0/8 started 1" in ctl("rule", "list")
        ctl("rule", "del", str(rule["id"]))
        assert "no rule with id" in ctl("rule", "del", str(rule["id"]), status=1)
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
        with receiver, sender:
            assert js("list") == []
    rule = js("rule", "add", "--remote", "::1/128", "--remote-port", "7")
    assert rule["remote"] == "::1/128"
    ctl("rule", "del", str(rule["id"]))
    ctl("rule", "del", str(js("rule", "add", "--remote", "10.0.0.0/7")["id"]))
    assert "needs at least one" in ctl("rule", "add", status=2)
    assert "is not a number within 0 to 32" in ctl("rule", "add", "--remote", "10.0.0.0/33", status=2)


def started_by_rule(address: str, tos: int, marked: str, late: bool = False) -> set[str]:
    """Which ends are under control of a connection whose "client" or "listener" has that TOS."""
    there = address.removeprefix("::ffff:")
    six = ":" in there
    option = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if six else (socket.IPPROTO_IP, socket.IP_TOS)
    with listen(there) as server, socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as client:
        if not late:
            {"client": client, "listener": server}[marked].setsockopt(*option, tos)
        client.connect((address, server.getsockname()[1]))
        accepted, _ = server.accept()
        with accepted:
            if late:
                {"client": client, "listener": accepted}[marked].setsockopt(*option, tos)
            ports = {str(client.getsockname()[1]): "client", str(server.getsockname()[1]): "listener"}
            local = [flow["local"].rpartition(":")[2] for flow in js("list")]
            return {ports[port] for port in local if port in ports}


def test_rules_by_dscp():
    """A rule looks at what the socket itself sends, in both families. The peer's mark and a later mark do not count."""
    rule = js("rule", "add", "--dscp", "le")
    assert rule["dscp"] == 1 and f"{rule['id']:<4} dscp le started 0" in ctl("rule", "list")
    reflect = "/proc/sys/net/ipv4/tcp_reflect_tos"
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        assert started_by_rule(address, 1 << 2, "client") == {"client"}, address
        assert started_by_rule(address, 1 << 2 | 1, "client") == {"client"}, "ECN's bits are not the DSCP's"
        assert started_by_rule(address, 1 << 2, "listener") == {"listener"}, address
        assert started_by_rule(address, 8 << 2, "client") == set(), address
        assert started_by_rule(address, 0, "client") == set(), address
        assert started_by_rule(address, 1 << 2, "client", late=True) == set(), address
        with open(reflect, "w") as file:
            file.write("1")
        assert started_by_rule(address, 1 << 2, "client") == {"client", "listener"}, "the SYN's mark is taken over"
        with open(reflect, "w") as file:
            file.write("0")
    ctl("rule", "del", str(rule["id"]))
    rule = js("rule", "add", "--dscp", "0", "--remote", "::1")
    assert rule["dscp"] == 0
    assert started_by_rule("::1", 63 << 2, "client") == {"listener"}, "0 is a value, not every one"
    assert started_by_rule("127.0.0.1", 0, "client") == set()
    ctl("rule", "del", str(rule["id"]))
    assert "dscp" not in js("rule", "add", "--local-port", "9")
    ctl("rule", "del", str(js("rule", "list")[0]["id"]))
    for word in ("64", "-1", "ef", ""):
        said = ctl("rule", "add", "--dscp", word, status=2)
        assert f"dscp '{word}' is neither le, cs1 nor a number within 0 to 63" in said, said


def test_rules_are_capped():
    ids = [js("rule", "add", "--local-port", "9")["id"] for _ in range(256)]
    assert "256 rules already" in ctl("rule", "add", "--local-port", "9", status=1)
    assert [rule["id"] for rule in js("rule", "list")] == ids  # a dump of many messages, each once
    for one in ids:
        ctl("rule", "del", str(one))
    assert js("rule", "list") == []


def test_table_is_capped():
    ctl("set", "-m", "1")
    with pair() as (receiver, sender), vulture.Vulture() as v:
        v.start(receiver)
        refused(errno.ENOSPC, "the limit is 1", v.start, sender)
        v.stop(receiver)
        v.start(sender)
    assert "is not within 0 to 1000000" in ctl("set", "-m", "1000001", status=2)
    ctl("set", "-m", "16384")
    assert js("show")["max_flows"] == 16384


def test_rules_say_what_they_could_not_start():
    ctl("set", "-m", "1")
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as stack:
        rule = js("rule", "add", "--local-port", str(server.getsockname()[1]))
        assert rule["failed"] == 0 and "failed" not in ctl("rule", "list")
        for _ in range(3):
            stack.enter_context(socket.create_connection(server.getsockname()))
            stack.enter_context(server.accept()[0])
        (shown,) = js("rule", "list")
        assert (shown["started"], shown["failed"]) == (1, 2), shown
        assert "started 1 failed 2\n" in ctl("rule", "list")
        assert f'vulture_rule_failed_total{{rule="{rule["id"]}"}} 2\n' in ctl("metrics")
        ctl("rule", "del", str(rule["id"]))
    ctl("set", "-m", "16384")


def test_defaults():
    before = js("show")
    ctl("set", "-o", "psi-us=23000", "-o", "increase-segs=5")
    now = js("show")["options"]
    assert now["psi-us"] == 23000 and now["increase-segs"] == 5
    with pair() as (receiver, _), vulture.Vulture() as v:
        v.start(receiver)
        assert js("list")[0]["options"].items() <= now.items()
    said = ctl("set", "-o", "increase-segs=6", "-o", "psi-us=1", status=2)
    assert "psi-us '1' is not a number within 1000 to 1000000" in said, said
    assert js("show")["options"] == now, "a refused request changed something"
    were = before["options"]
    ctl("set", "-o", f"psi-us={were['psi-us']}", "-o", f"increase-segs={were['increase-segs']}")
    assert js("show")["options"] == before["options"]
    rows = [re.split("  +", line) for line in ctl("--help-options").splitlines()[1:]]
    assert {name: str(value) for name, value in before["options"].items()} == {row[0]: row[2] for row in rows}


#: every constant that the paper prints: the defaults of its controller
PAPER = {
    "tick-us": 4000,
    "psi-us": 20000,
    "cons-low-us": 4000,
    "cons-high-us": 8000,
    "aggr-low-us": 12000,
    "aggr-high-us": 20000,
    "alpha-permille": 875,
    "increase-segs": 1,
    "positive-test": 1,
}


def test_controllers_are_chosen():
    """A controller can be chosen by start, by rule, and as the namespace's default."""
    before = js("show")["options"]
    with pair() as (receiver, _), vulture.Vulture() as v:
        v.start(receiver, controller="paper")
        options = js("list")[0]["options"]
        assert options["controller"] == "paper" and options.items() >= PAPER.items(), options
        v.stop(receiver)
        ctl("start", *ends(receiver), "-o", "controller=paper", "-o", "increase-segs=7")
        assert js("list")[0]["options"] == options | {"increase-segs": 7}
        v.stop(receiver)
        ctl("set", "-o", "controller=paper")
        v.start(receiver)
        assert js("list")[0]["options"] == options
    said = ctl("rule", "add", "--local-port", "9", "-o", "controller=credit", "-o", "psi-us=21000", status=1)
    assert "options of paper, but controller credit is to run: say controller=" in said, said
    assert "there is no controller 'pigeon'" in ctl("set", "-o", "controller=pigeon", status=2)
    ctl("set", "-o", f"controller={before['controller']}")
    assert js("show")["options"] == before


def test_usage_errors_have_status_2():
    for words in (
        ("fly",),
        ("start",),
        ("start", "10.0.0.1:80"),
        ("start", "10.0.0.1", "10.0.0.2:1"),
        ("start", "10.0.0.1:80", "[fd00::1]:80"),
        ("start", "1.2.3.4:70000", "1.2.3.4:1"),
        ("start", "--pid", "x"),
        ("start", "--pid", "1", "--id", "2"),
        ("set",),
        ("rule",),
        ("rule", "add"),
        ("run",),
        ("set", "-o", "psi-us"),
        ("set", "-o", "altitude=1"),
        ("--loud", "list"),
        ("list", "x"),
        ("monitor", "-n", "0"),
        ("top", "-n", "0"),
        ("top", "-c", "x"),
        ("top", "x"),
        ("metrics", "x"),
    ):
        said = ctl(*words, status=2)
        assert said.startswith("vulturectl: ") and "usage:" in said, f"{words}: {said}"
    assert ctl("--help").startswith("usage:")


def test_run():
    """`run` covers children too, ends with the command's own exit status, and leaves nothing behind."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        child = subprocess.Popen(
            [
                "vulturectl",
                "run",
                "-u",
                "nobody",
                "--",
                "/bin/sh",
                "-c",
                f"{sys.executable} -c \"import os, socket; s = socket.create_connection(('127.0.0.1', {port}));"
                ' s.recv(1); exit(os.getuid() == 65534 and 7)"; exit $?',
            ]
        )
        sender, _ = server.accept()
        with sender:
            deadline = time.monotonic() + 5
            while not js("list") and time.monotonic() < deadline:
                time.sleep(0.05)
            (flow,) = js("list")
            assert flow["remote"] == name(sender.getsockname()), flow
            sender.send(b"x")
        assert child.wait(10) == 7
    assert js("rule", "list") == []
    assert not [one for one in os.listdir("/sys/fs/cgroup") if one.startswith("vulture-")]
    done = subprocess.run(["vulturectl", "run", "--", "/nonexistent"], check=False, capture_output=True, text=True)
    assert done.returncode == 127 and "/nonexistent" in done.stderr
    assert subprocess.run(["vulturectl", "run", "--", "sh", "-c", "kill -9 $$"], check=False).returncode == 137


def test_events_and_monitor():
    watcher = subprocess.Popen(["vulturectl", "--json", "monitor", "--events"], stdout=subprocess.PIPE, text=True)
    table = subprocess.Popen(["vulturectl", "monitor"], stdout=subprocess.PIPE, text=True)
    time.sleep(0.3)
    with pair() as (receiver, _), vulture.Vulture() as v:
        v.start(receiver)
        v.stop(receiver)
        v.start(receiver)
        time.sleep(1.2)
    said = [document(watcher.stdout.readline()) for _ in range(4)]
    watcher.kill()
    table.kill()
    assert [(one["event"], one.get("reason")) for one in said] == [
        ("start", None),
        ("end", "stopped"),
        ("start", None),
        ("end", "closed"),
    ], said
    text = table.stdout.read()
    assert "Mbit/s" in text and "127.0.0.1:" in text
    watcher.wait()
    table.wait()


def test_flows_end_with_their_sockets():
    """Close, reset, time-wait on either side, shutdown: the table is empty after each."""
    with vulture.Vulture() as v:
        for how in ("close", "reset", "peer closes", "peer resets", "shutdown"):
            with pair() as (receiver, sender):
                v.start(receiver)
                v.start(sender)
                pump(sender, receiver, 100000)
                first, then = (sender, receiver) if how.startswith("peer") else (receiver, sender)
                if "reset" in how:
                    first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                if how == "shutdown":
                    receiver.shutdown(socket.SHUT_RDWR)
                first.close()
                then.close()
            time.sleep(0.2)
            assert v.list() == [], how


def test_observe_then_background_then_back():
    with pair() as (receiver, sender), vulture.Vulture() as v:
        v.start(receiver, controller="paper", observe=1)
        pump(sender, receiver, 2 << 20)
        flow = v.get(receiver)
        assert flow.phase == 0 and not flow.rewritten and flow.cwnd_bytes, "it limits while it observes"
        v.start(receiver, controller="paper")
        assert v.get(receiver).phase == 2, "not in control at once"
        pump(sender, receiver, 2 << 20)
        assert v.get(receiver).rewritten
        v.start(receiver, controller="paper", observe=1)
        flow = v.get(receiver)
        pump(sender, receiver, 2 << 20)
        assert v.get(receiver).rewritten == flow.rewritten


def test_slow_reader_and_zero_window():
    """TCP's own window rules: to zero and back, under control."""
    with pair() as (receiver, sender), vulture.Vulture() as v:
        v.start(receiver)
        sender.setblocking(False)
        sent = 0
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                sent += sender.send(b"z" * 65536)
            except BlockingIOError:
                flow = v.get(receiver)
                if flow.own_bytes == 0:
                    break
                time.sleep(0.05)
        assert v.get(receiver).advertised_bytes == 0, "TCP says zero, we do not"
        sender.setblocking(True)
        began, got = time.monotonic(), 0
        while got < sent:
            got += len(receiver.recv(65536))
        pump(sender, receiver, 1 << 20)
        # TCP's window opens with the first read; a sender's timer would need 200 ms
        assert time.monotonic() - began < 0.1


def test_what_an_application_writes_late_is_not_held_back():
    """An application writes 8 Mbit/s in blocks, on a new path and then with pauses. No block waits, and none looks
    lost."""
    with listen("127.0.0.1") as server:
        sender = socket.create_connection(server.getsockname(), source_address=("127.9.0.1", 0))
        receiver, _ = server.accept()
    longest = 0.0
    with receiver, sender, vulture.Vulture() as v:
        v.start(receiver)
        for pause_s in (*[0.05] * 100, *[0.3] * 20):
            sender.sendall(bytes(50000))
            sent, left = time.monotonic(), 50000
            while left:
                left -= len(receiver.recv(left))
            longest = max(longest, time.monotonic() - sent)
            time.sleep(pause_s)
        flow = v.get(receiver)
    assert longest < 0.1, longest
    assert flow.yields == 0, flow


def test_loopback_is_not_slower_under_a_rule():
    """Loopback has segments of up to 65 kB, of which TCP's own window hardly holds one. Both ends are under control."""
    with vulture.Vulture() as v:
        rule = v.rule_add(remote="127.11.0.1", controller="credit")
        with listen("127.11.0.1") as server:
            sender = socket.create_connection(server.getsockname(), source_address=("127.11.0.1", 0))
            receiver, _ = server.accept()
        with receiver, sender:
            assert v.get(receiver).rule == rule.id
            receiver.settimeout(1)
            began = time.monotonic()
            pump(sender, receiver, 25 << 20)
            # 0.0003 s without control: nothing takes time here but waiting
            assert time.monotonic() - began < 0.05
        v.rule_del(rule)


def test_connections_that_receive_nothing_hold_no_credit():
    """The handshakes of connections that receive nothing have advertised the whole window of the path. A download that
    begins then is not held back."""
    with contextlib.ExitStack() as stack:
        v = stack.enter_context(vulture.Vulture())
        server = stack.enter_context(listen("127.12.0.1"))

        def connect():
            sender = stack.enter_context(
                socket.create_connection(server.getsockname(), source_address=("127.12.0.1", 0))
            )
            return sender, stack.enter_context(server.accept()[0])

        for _ in range(60):
            v.start(connect()[1])
        sender, receiver = connect()
        v.start(receiver)
        receiver.settimeout(1)
        began = time.monotonic()
        pump(sender, receiver, 8 << 20)
        assert time.monotonic() - began < 0.05


def test_idle_and_on():
    with pair() as (receiver, sender), vulture.Vulture() as v:
        v.start(receiver)
        for _ in range(3):
            pump(sender, receiver, 1 << 20)
            time.sleep(40)
        assert v.get(receiver).bytes == 3 << 20


ETH_P_ALL, STXCSUM, SIOCETHTOOL = 3, 0x17, 0x8946


class Wire:
    """All TCP segments that a device of this namespace carries, as (source port, header, addresses)."""

    def __init__(self, device: str):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.socket.bind((device, ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.settimeout(0.3)

    def segments(self):
        """What was caught so far: (packet from its IP header on, offset of TCP)."""
        with contextlib.suppress(TimeoutError):
            while True:
                packet, sender = self.socket.recvfrom(1 << 16)
                if sender[2] != socket.PACKET_OUTGOING:  # lo shows each packet again as it comes in
                    continue
                offset = (packet[0] & 15) * 4 if packet[0] >> 4 == 4 else 40
                if packet[9 if packet[0] >> 4 == 4 else 6] == 6:
                    yield packet, offset
        self.socket.close()


def number(packet: bytes, at: int, size: int) -> int:
    """Big-endian."""
    return int.from_bytes(packet[at : at + size], "big")


def scale_of(packet: bytes, offset: int) -> int | None:
    """The window scale option."""
    at, end = offset + 20, offset + (packet[offset + 12] >> 4) * 4
    while at < end and packet[at]:
        if packet[at] == 3:
            return packet[at + 2]
        at += 1 if packet[at] == 1 else packet[at + 1]
    return None


def checksum_good(packet: bytes, offset: int) -> bool:
    """TCP's, over pseudo header and segment."""
    addresses = packet[12:20] if packet[0] >> 4 == 4 else packet[8:40]
    segment = packet[offset:]
    data = addresses + (6).to_bytes(2, "big") + len(segment).to_bytes(2, "big") + segment + b"\0" * (len(segment) % 2)
    total = sum(number(data, at, 2) for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def watch_windows(wire: Wire, port: int, check_sums: bool) -> dict[str, int]:
    """Check the rules of the wire for what the receiver's port sends. Return counts of what was seen."""
    scale, edge, seen = 0, None, {"syn": 0, "windows": 0, "smaller": 0}
    sizes = set()
    for packet, offset in wire.segments():
        if number(packet, offset, 2) != port:
            continue
        flags, window, ack = packet[offset + 13], number(packet, offset + 14, 2), number(packet, offset + 8, 4)
        if check_sums:
            assert checksum_good(packet, offset), f"wrong checksum: {packet.hex()}"
        if flags & 2:
            seen["syn"] += 1
            scale = scale_of(packet, offset)
            assert window >= 32768, f"the window of a SYN was touched: {window}"
            continue
        if flags & 4:
            continue
        here = ack + (window << scale)
        # Rounding to the window's unit may take back less than one unit (RFC 7323 section 2.4).
        if edge is not None and edge - here < 1 << 31:
            assert edge - here < 1 << scale, f"the right edge went left by {edge - here}"
        edge = here if edge is None or here > edge or edge - here > 1 << 31 else edge
        seen["windows"] += 1
        sizes.add(window)
    seen["smaller"] = len(sizes)
    return seen


@contextlib.contextmanager
def window_events():
    """Every rewrite, from the tracepoint: a list of (TCP's own window, ours), filled when the block ends."""
    tracing, found = "/sys/kernel/tracing", []
    with open(f"{tracing}/trace", "w") as file:
        file.write("")
    with open(f"{tracing}/events/vulture/vulture_window/enable", "w") as file:
        file.write("1")
    yield found
    with open(f"{tracing}/events/vulture/vulture_window/enable", "w") as file:
        file.write("0")
    with open(f"{tracing}/trace") as file:
        found += [
            (int(own), int(ours)) for own, ours in re.findall(r"own_bytes=(\d+) advertised_bytes=(\d+)", file.read())
        ]


def test_wire_rules():
    """Loopback has large segments, and leaves checksums to hardware that does not exist."""
    with window_events() as rewrites:
        wire_rules()
    assert len(rewrites) > 20
    assert all(0 < ours < own for own, ours in rewrites), "not smaller than TCP's own, or zero by ourselves"


def wire_rules() -> None:
    """Check the right edge on the wire, and that SYNs are as TCP made them, in both families."""
    for address in ("127.0.0.1", "::1"):
        wire = Wire("lo")
        with listen(address) as server:
            port = server.getsockname()[1]
            rule = js("rule", "add", "--local-port", str(port), "-o", "controller=paper", "-o", "retract=0")
            sender = socket.create_connection(server.getsockname()[:2])
            receiver, _ = server.accept()
        with receiver, sender, vulture.Vulture() as v:
            pump(sender, receiver, 4 << 20)
            assert v.get(receiver).rewritten > 10
            v.stop(receiver)
            pump(sender, receiver, 1 << 20)
            v.start(receiver, controller="paper", retract=0)
            pump(sender, receiver, 4 << 20)
            receiver.sendall(b"an answer of our own" * 1000)
            sender.recv(20000, socket.MSG_WAITALL)
        ctl("rule", "del", str(rule["id"]))
        seen = watch_windows(wire, port, False)
        assert seen["syn"] == 1 and seen["windows"] > 20 and seen["smaller"] > 3, seen


def send_from_peer(address, times):
    """A process of the namespace "peer" that sends 16 bytes so many times to address and waits for its end."""
    program = (
        f"import socket; s = socket.create_connection({address});s.sendall(b'0123456789abcdef' * {times}); s.recv(1)"
    )
    return subprocess.Popen(["ip", "netns", "exec", "peer", sys.executable, "-c", program])


@contextlib.contextmanager
def beside_peer():
    """v0, with 10.9.0.1 and fd09::1, beside v1 in the namespace "peer", with 10.9.0.2 and fd09::2. Packets of 1500
    bytes, and no checksums by the device."""
    subprocess.run(["ip", "netns", "add", "peer"], check=True)
    subprocess.run(
        "ip link add v0 type veth peer name v1 netns peer && ip addr add 10.9.0.1/24 dev v0 &&"
        " ip addr add fd09::1/64 dev v0 nodad && ip link set v0 up && ip -n peer link set v1 up &&"
        " ip -n peer addr add 10.9.0.2/24 dev v1 && ip -n peer addr add fd09::2/64 dev v1 nodad",
        shell=True,
        check=True,
    )
    try:
        with socket.socket() as control:  # ETHTOOL_STXCSUM 0 also ends segmentation offload
            value = ctypes.create_string_buffer(struct.pack("II", STXCSUM, 0))
            fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP", b"v0", ctypes.addressof(value)))
        yield
    finally:
        subprocess.run(["ip", "link", "del", "v0"], check=False)
        subprocess.run(["ip", "netns", "del", "peer"], check=True)


def test_wire_checksums():
    """On a device without checksums, the kernel computes them after our hook, with our window."""
    with beside_peer():
        for address, there in (("10.9.0.1", "10.9.0.2"), ("fd09::1", "fd09::2")):
            wire = Wire("v0")
            with listen(address) as server:
                port = server.getsockname()[1]
                child = send_from_peer((address, port), 65536)
                receiver, _ = server.accept()
            with receiver, vulture.Vulture() as v:
                v.start(receiver, controller="paper", retract=0)
                assert receiver.getpeername()[0] == there
                assert receiver.recv(1 << 20, socket.MSG_WAITALL) == b"0123456789abcdef" * 65536
                assert v.get(receiver).rewritten > 10
                receiver.sendall(b"x")
            assert child.wait(10) == 0
            seen = watch_windows(wire, port, True)
            assert seen["windows"] > 20, seen


def offered_by_a_syn(address: str, *rule: str) -> int:
    """Connect to the peer beside a rule: the window of the SYN, bytes. Its checksum is right, and the connection works.
    The window after it is no smaller."""
    made = js("rule", "add", *rule)["id"] if rule else None
    wire = Wire("v0")
    family = "AF_INET6" if ":" in address else "AF_INET"
    server = (
        f"import socket; s = socket.create_server(({address!r}, 7000), family=socket.{family});"
        "print('ready', flush=True); c, _ = s.accept(); c.sendall(b'a' * 200000); c.recv(1)"
    )
    words = ["ip", "netns", "exec", "peer", sys.executable, "-c", server]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        with socket.create_connection((address, 7000)) as receiver:
            port = receiver.getsockname()[1]
            assert receiver.recv(200000, socket.MSG_WAITALL) == b"a" * 200000
            receiver.sendall(b"x")
    if made:
        ctl("rule", "del", str(made))
    sent = [one for one in wire.segments() if number(one[0], one[1], 2) == port]
    assert all(checksum_good(packet, offset) for packet, offset in sent)
    (packet, offset), (after, at) = sent[:2]
    assert packet[offset + 13] == 2 and after[at + 13] & 2 == 0
    offered = number(packet, offset + 14, 2)
    assert number(after, at + 14, 2) << scale_of(packet, offset) >= offered - 4096
    return offered


def test_a_syn_offers_an_initial_window():
    """Connections that open together offer a window before the path is known. Credit limits it, only for connections
    that it will control."""
    with beside_peer():
        for address, segment in (("10.9.0.2", 1460), ("fd09::2", 1440)):
            assert offered_by_a_syn(address, "--remote-port", "7000") == 10 * segment
            assert offered_by_a_syn(address) >= 32768
            assert offered_by_a_syn(address, "--remote-port", "7001") >= 32768
            assert offered_by_a_syn(address, "--remote-port", "7000", "-o", "controller=rledbat") >= 32768


def forge(latest: bytes, offset: int, ahead: int, beyond: int, flags: int) -> bytes:
    """Return a segment that could follow this one of the sender's, which acknowledges some octets more and has a later
    timestamp."""
    header = bytearray(latest[offset : offset + (latest[offset + 12] >> 4) * 4])
    length = len(latest) - offset - len(header)
    struct.pack_into(
        "!II",
        header,
        4,
        (number(latest, offset + 4, 4) + length) % (1 << 32),
        (number(latest, offset + 8, 4) + beyond) % (1 << 32),
    )
    at = header.index(b"\x08\x0a", 20) + 2
    struct.pack_into("!I", header, at, (number(header, at, 4) + ahead) % (1 << 32))
    header[13], segment = flags, bytes(1000)
    header[16:18] = b"\0\0"
    data = latest[12:20] + (6).to_bytes(2, "big") + (len(header) + 1000).to_bytes(2, "big") + header + segment
    total = sum(number(data, i, 2) for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", header, 16, 0xFFFF - total)
    return bytes(header) + segment


def test_what_tcp_refuses_ends_no_download():
    """A stranger's segment is inside the window, but acknowledges data that was never sent or is long past, or
    acknowledges nothing. TCP drops it, and the module ignores it."""
    wire = Wire("lo")
    with pair() as (receiver, sender), vulture.Vulture() as v:
        v.start(receiver)
        pump(sender, receiver, 1 << 20)
        time.sleep(0.1)
        port = sender.getsockname()[1]
        latest, offset = [
            (packet, offset)
            for packet, offset in wire.segments()
            if number(packet, offset, 2) == port and len(packet) > offset + 60
        ][-1]
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as stranger:
            for beyond, flags in ((1 << 30, 0x18), (-(1 << 30), 0x18), (0, 0x08)):
                stranger.sendto(forge(latest, offset, 1 << 30, beyond, flags), receiver.getsockname())
        time.sleep(0.1)
        before = v.get(receiver).bytes
        receiver.settimeout(5)
        pump(sender, receiver, 8 << 20)
        assert before == 1 << 20, f"{before - (1 << 20)} bytes of the stranger's count"


def test_no_download_stalls_beside_another():
    """A download that writes little and often holds all credit, since it was alone. A second one with a small buffer
    does not wait for the first to end."""
    with contextlib.ExitStack() as stack, vulture.Vulture() as v:
        servers = [stack.enter_context(listen("127.0.0.1")) for _ in range(2)]
        servers[1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        (busy, busy_end), (short, short_end) = [
            (
                stack.enter_context(socket.create_connection(server.getsockname(), source_address=("127.9.44.1", 0))),
                stack.enter_context(server.accept()[0]),
            )
            for server in servers
        ]
        for receiver in (busy_end, short_end):
            v.start(receiver)
        stop = threading.Event()

        def write_often() -> None:
            while not stop.is_set():
                pump(busy, busy_end, 200_000)
                time.sleep(0.01)

        def write_at_once() -> None:
            with contextlib.suppress(OSError):
                short.sendall(bytes(300_000))

        pump(busy, busy_end, 8 << 20)
        threads = [threading.Thread(target=write_often), threading.Thread(target=write_at_once)]
        for thread in threads:
            thread.start()
        short_end.settimeout(5)
        left = 300_000
        with contextlib.suppress(TimeoutError):
            while left:
                left -= len(short_end.recv(65536))
        stop.set()
        short_end.close()
        for thread in threads:
            thread.join()
        assert not left, f"it had {left} bytes to go"


def test_each_of_many_downloads_moves():
    """There are more downloads than the window W has segments, and each always has data to send."""
    with contextlib.ExitStack() as stack, vulture.Vulture() as v:
        server = stack.enter_context(listen("127.0.0.1"))
        pairs = []
        for _ in range(48):
            sender = stack.enter_context(
                socket.create_connection(server.getsockname(), source_address=("127.9.45.1", 0))
            )
            receiver = stack.enter_context(server.accept()[0])
            v.start(receiver)
            sender.setblocking(False)
            receiver.setblocking(False)
            pairs.append((sender, receiver))
        block = bytes(1 << 17)
        for seconds in (4, 1):
            got = [0] * len(pairs)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                for i, (sender, receiver) in enumerate(pairs):
                    with contextlib.suppress(BlockingIOError):
                        sender.send(block)
                    with contextlib.suppress(BlockingIOError):
                        got[i] += len(receiver.recv(1 << 20))
                time.sleep(0.001)
        assert min(got), f"of {len(pairs)} {got.count(0)} have stalled"


def test_thousands_of_starts_and_stops_under_traffic():
    with pair() as (receiver, sender):
        stop = threading.Event()

        def toggle() -> None:
            with vulture.Vulture() as v:
                while not stop.is_set():
                    for _ in range(50):
                        v.start(receiver)
                        v.stop(receiver)
                    time.sleep(0.01)

        thread = threading.Thread(target=toggle)
        thread.start()
        pump(sender, receiver, 16 << 20, pause_s=0.001)
        stop.set()
        thread.join()
        with vulture.Vulture() as v:
            for _ in range(2000):
                v.start(receiver)
                v.stop(receiver)
            assert v.list() == []
        pump(sender, receiver, 1 << 20)


def test_many_flows_in_a_dump():
    with contextlib.ExitStack() as stack, vulture.Vulture() as v:
        pairs = [stack.enter_context(pair()) for _ in range(150)]
        for one in pairs:
            for end in one:
                v.start(end)
        found = [flow.id for flow in v.list()]
        assert len(found) == 300 and len(set(found)) == 300
    time.sleep(0.2)
    assert js("list") == []


def test_namespaces_are_apart():
    subprocess.run(["ip", "netns", "add", "other"], check=True)
    try:
        with pair() as (receiver, _), vulture.Vulture() as v:
            v.start(receiver)
            there = subprocess.run(
                ["ip", "netns", "exec", "other", f"{BIN}/vulturectl", "--json", "list"],
                check=True,
                capture_output=True,
                text=True,
            )
            assert document(there.stdout)["connections"] == []
    finally:
        subprocess.run(["ip", "netns", "del", "other"], check=True)


LEFT_BEHIND = """
import socket, subprocess, sys
import vulture
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["vulturectl", "rule", "add", "--local-port", "9"], check=True, capture_output=True)
server = socket.create_server(("127.0.0.1", 0))
pairs = []
for _ in range(20):
    sender = socket.create_connection(server.getsockname())
    receiver, _ = server.accept()
    pairs.append((sender, receiver))
    with vulture.Vulture() as v:
        v.start(receiver)
        v.start(sender)
    sender.setblocking(False)
    try:
        while True:
            sender.send(bytes(65536))
    except BlockingIOError:
        pass
print("up", flush=True)
sys.stdin.read()
"""


def test_namespace_exit_with_flows():
    """The application is killed during a transfer, and then the namespace ends, with flows, rules and hooks. If
    something of it stayed, the module could not be removed, or the memory of its flows would be lost."""
    for _ in range(3):
        subprocess.run(["ip", "netns", "add", "gone"], check=True)
        inode = os.stat("/run/netns/gone").st_ino
        child = subprocess.Popen(
            ["ip", "netns", "exec", "gone", sys.executable, "-c", LEFT_BEHIND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": BIN},
        )
        assert child.stdout.readline() == b"up\n"
        with open("/run/netns/gone") as inside:
            assert os.fstat(inside.fileno()).st_ino == inode
        subprocess.run(["ip", "netns", "del", "gone"], check=True)
        child.kill()
        child.wait()
    time.sleep(2)


def feed(server: socket.socket, seconds: float) -> None:
    """Accept one connection and send for so long, 1 MB/s."""
    sender, _ = server.accept()
    with sender:
        for _ in range(round(seconds * 20)):
            sender.sendall(bytes(50000))
            time.sleep(0.05)


def test_example_in_c():
    """The client of the paper's experiments goes from best effort to the background and back."""
    with listen("127.0.0.1") as server:
        thread = threading.Thread(target=feed, args=(server, 9.5))
        thread.start()
        done = subprocess.run(
            [f"{BIN}/switching", "127.0.0.1", str(server.getsockname()[1]), "3", "3"],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            env={"LD_LIBRARY_PATH": BIN},
        )
        thread.join()
    seen = ["window" in line for line in done.stdout.splitlines()]
    assert len(seen) == 9, done.stdout
    assert (seen[:2], seen[3:5], seen[7:]) == ([False] * 2, [True] * 2, [False] * 2), done.stdout


def test_example_in_python():
    """The example fetches a file over HTTP, the second half of the time as an ordinary download."""
    body = random.Random(5).randbytes(6 << 20)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            for at in range(0, len(body), 65536):
                self.wfile.write(body[at : at + 65536])
                time.sleep(0.02)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request).start()
        watcher = subprocess.Popen(["vulturectl", "--json", "monitor", "--events"], stdout=subprocess.PIPE, text=True)
        time.sleep(0.3)
        url = f"http://127.0.0.1:{server.server_address[1]}/file"
        subprocess.run(
            [sys.executable, f"{BIN}/download.py", url, "/tmp/got", "1"],
            check=True,
            timeout=60,
            env=os.environ | {"PYTHONPATH": BIN},
        )
        said = [document(watcher.stdout.readline()) for _ in range(2)]
        watcher.kill()
        watcher.wait()
    with open("/tmp/got", "rb") as file:
        assert file.read() == body
    os.unlink("/tmp/got")
    assert [(one["event"], one.get("reason")) for one in said] == [("start", None), ("end", "stopped")], said


def test_removal_under_traffic():
    """This test is the last one, since it removes the module: the transfer goes on, byte for byte."""
    with pair() as (receiver, sender), pair() as (idle, _), vulture.Vulture() as v:
        v.start(receiver)
        v.start(idle)
        rule = js("rule", "add", "--local-port", "9")
        assert rule["id"]
        timer = threading.Timer(0.2, lambda: subprocess.run(["rmmod", "vulture"], check=True))
        timer.start()
        pump(sender, receiver, 32 << 20, pause_s=0.001)
        timer.join()
        refused(errno.ENOENT, "", v.list)
    assert not os.path.exists("/sys/module/vulture")
    assert "not loaded" in ctl("list", status=1)


def run_tests(module: dict) -> None:
    """Run a module's tests in the order of its file."""
    for title, test in list(module.items()):
        if not title.startswith("test_"):
            continue
        try:
            test()
            print(f"ok {title}", flush=True)
        except BaseException:  # noqa: BLE001 - the next test is to run
            print(f"not ok {title}: " + traceback.format_exc().replace("\n", "\n    "), flush=True)
            if os.path.exists("/sys/module/vulture"):
                subprocess.run(["vulturectl", "set", "-m", "16384"], check=False)


if __name__ == "__main__":
    run_tests(globals())
