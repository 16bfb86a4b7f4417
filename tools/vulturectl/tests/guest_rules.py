# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: rules and starts without capability, and what they must not reach.

Users 1001 to 1017 have no privilege. Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from guest_run import CTL, Server, ctl, flows, line_of, main, rules, tell, until

ROOT = Path("/sys/fs/cgroup")
ALICE, BOB = 1001, 1002
#: connects N times from inside a cgroup, says how many connections it has, and holds them until its input ends
OPENER = """
import os, resource, socket, sys
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
held = [socket.create_connection(("127.0.0.1", int(sys.argv[3]))) for _ in range(int(sys.argv[4]))]
print(len(held), flush=True)
sys.stdin.read()
"""


def as_user(uid: int, *words: str) -> subprocess.CompletedProcess[str]:
    return ctl(*words, user=uid, group=uid)


@contextlib.contextmanager
def cgroup(name: str, owner: int) -> Iterator[Path]:
    """A directory that its owner may write to, as a delegated one."""
    path = ROOT / name
    path.mkdir()
    os.chown(path, owner, owner)
    os.chown(path / "cgroup.procs", owner, owner)
    try:
        yield path
    finally:
        until(lambda: not (path / "cgroup.procs").read_text())
        path.rmdir()


@contextlib.contextmanager
def connections(path: Path, uid: int, server: Server, count: int) -> Iterator[None]:
    words = [sys.executable, "-c", OPENER, str(path), str(uid), server.port, str(count)]
    accepted: list[socket.socket] = []
    threading.Thread(target=lambda: accepted.extend(server.socket.accept()[0] for _ in range(count))).start()
    opener = subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, text=True)
    said = line_of(opener)
    assert said == f"{count}\n", said or opener.communicate()[1]
    try:
        yield
    finally:
        opener.communicate()
        for one in accepted:
            one.close()


def drop(*ids: int) -> None:
    for number in ids:
        assert ctl("rule", "del", str(number)).returncode == 0


def test_a_rule_for_a_cgroup_of_ones_own() -> None:
    server = Server()
    with cgroup("alice", ALICE) as path:
        done = as_user(ALICE, "--json", "rule", "add", "--cgroup", str(path), "-o", "controller=credit")
        assert done.returncode == 0, done
        rule = json.loads(done.stdout)
        assert rule["uid"] == ALICE and rule["cgroup"] == path.stat().st_ino, rule
        with connections(path, ALICE, server, 2):
            assert [flow["rule"] for flow in flows()] == [rule["id"]] * 2, "both, and nothing else"
            assert {flow["controller"] for flow in flows()} == {"credit"}
        assert "of user 1001" in ctl("rule", "list").stdout
        assert as_user(ALICE, "rule", "del", str(rule["id"])).returncode == 0
    assert not rules()


def test_a_rule_for_the_foreground_hides_the_others() -> None:
    """Whatever their age; but not those of a cgroup below its own."""
    server = Server()
    with cgroup("outer", 0) as outer, cgroup("outer/inner", 0) as inner:

        def add(*words: str) -> int:
            done = ctl("--json", "rule", "add", *words)
            assert done.returncode == 0, done
            return int(json.loads(done.stdout)["id"])

        def start() -> list[int]:
            with connections(inner, 0, server, 1):
                return [flow["rule"] for flow in flows()]

        first = add("--cgroup", str(outer))
        port = add("--foreground", "--remote-port", server.port)
        assert not start()
        assert f"{port:<4} remote-port {server.port} foreground\n" in ctl("rule", "list").stdout
        assert [rule.get("foreground") for rule in rules()] == [None, True]
        drop(port)
        assert start() == [first]
        other = add("--foreground", "--remote-port", "9")
        assert start() == [first], "it does not match"
        own = add("--foreground", "--cgroup", str(outer))
        assert not start(), "the same cgroup"
        within = add("--cgroup", str(inner))
        assert start() == [within], "below"
        deeper = add("--foreground", "--cgroup", str(inner))
        assert not start()
        drop(own, deeper)
        assert start() == [first], "the oldest of those that start it"
        drop(first, within, other)
        done = ctl("rule", "add", "--foreground", "--local-port", "9", "-o", "weight=9")
        assert done.returncode == 2 and "--foreground starts nothing: leave -o out" in done.stderr, done
        done = ctl("rule", "add", "--foreground")
        assert done.returncode == 2 and "needs at least one of --cgroup" in done.stderr, done
    assert not rules()


def test_a_rule_ends_with_its_cgroup() -> None:
    with cgroup("alice", ALICE) as path:
        assert as_user(ALICE, "rule", "add", "--cgroup", str(path)).returncode == 0
    until(lambda: not rules(), 15)


def refusals(user: int, *words: str) -> str:
    done = as_user(user, *words)
    assert done.returncode == 1, (words, done)
    return done.stderr


def test_the_library_tells_of_every_rule_and_of_the_defaults() -> None:
    """In C too: the peers' prefix, whose rule it is, and the memory of a connection."""
    library = ctypes.CDLL(f"{sys.argv[1]}/libvulture.so", use_errno=True)
    for name in ("vulture_open", "vulture_defaults_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.vulture_rule_uid.restype = ctypes.c_int64
    handle = ctypes.c_void_p(library.vulture_open())
    seen = []

    def each(rule: int, _: int | None) -> int:
        address = ctypes.create_string_buffer(b"\xff" * 28, 28)
        bits = library.vulture_rule_remote(ctypes.c_void_p(rule), address)
        family = int.from_bytes(address.raw[:2], sys.byteorder)
        text = ""
        if bits >= 0:
            raw = address.raw[4:8] if family == socket.AF_INET else address.raw[8:24]
            text = f"{socket.inet_ntop(family, raw)}/{bits}"
            assert address.raw[2:4] == bytes(2), "the port"
        else:
            assert address.raw == b"\xff" * 28, "nothing is written"
        seen.append((text, library.vulture_rule_uid(ctypes.c_void_p(rule))))
        return 0

    with cgroup("alice", ALICE) as path:
        for prefix in ("10.1.2.0/23", "0.0.0.0/0", "2001:db8::/32", "fd00::1/128"):
            assert ctl("rule", "add", "--remote", prefix).returncode == 0
        assert ctl("rule", "add", "--local-port", "9").returncode == 0
        assert as_user(ALICE, "rule", "add", "--cgroup", str(path)).returncode == 0
        callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        assert library.vulture_rule_list(handle, callback(each), None) == 0
        prefixes = ["10.1.2.0/23", "0.0.0.0/0", "2001:db8::/32", "fd00::1/128", ""]
        assert seen == [*((prefix, -1) for prefix in prefixes), ("", ALICE)], seen
        for rule in rules():
            ctl("rule", "del", str(rule["id"]))
    defaults = ctypes.c_void_p(library.vulture_defaults_new())
    assert library.vulture_get_defaults(handle, defaults) == 0
    shown = json.loads(ctl("--json", "show").stdout)["defaults"]
    assert library.vulture_defaults_flow_bytes(defaults) == shown["flow_bytes"] > 0
    library.vulture_defaults_free(defaults)
    library.vulture_close(handle)


ADDER = """
import ctypes, json, os, subprocess, sys
library = ctypes.CDLL(sys.argv[1], use_errno=True)
for name in ("vulture_open", "vulture_rule_new", "vulture_options_new", "vulture_rule_options", "vulture_error"):
    getattr(library, name).restype = ctypes.c_void_p
library.vulture_rule_cgroup.restype = ctypes.c_uint64
handle, rule = (ctypes.c_void_p(f()) for f in (library.vulture_open, library.vulture_rule_new))
options = ctypes.c_void_p(library.vulture_options_new())
directory = os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECTORY)
library.vulture_rule_set_cgroup_fd(rule, directory)
library.vulture_option(options, b"min-kbit", 9)
library.vulture_rule_set_options(rule, options)
for _ in sys.stdin:
    result = library.vulture_rule_add(handle, rule)
    value, reported = ctypes.c_uint32(), ctypes.c_void_p(library.vulture_rule_options(rule))
    library.vulture_option_get(reported, b"escape-s", ctypes.byref(value))
    said = ctypes.string_at(library.vulture_error(handle)).decode()
    print(json.dumps([result, library.vulture_rule_id(rule), library.vulture_rule_cgroup(rule), value.value, said]),
          flush=True)
"""


def test_a_rule_of_the_library_may_be_added_again() -> None:
    """Without privilege, too; what the caller has left to the defaults has those of the second call."""
    with cgroup("alice", ALICE) as path:
        words = [sys.executable, "-c", ADDER, f"{sys.argv[1]}/libvulture.so", str(path)]
        adder = subprocess.Popen(words, stdin=-1, stdout=-1, text=True, user=ALICE, group=ALICE, bufsize=1)
        seen = []
        for default in (21, 20):
            assert ctl("set", "-o", f"escape-s={default}").returncode == 0
            tell(adder, "\n")
            result, number, inode, value, said = json.loads(line_of(adder))
            assert result == 0 and inode == path.stat().st_ino and value == default, (result, value, said)
            seen.append(number)
        adder.communicate()
        assert [rule["id"] for rule in rules()] == seen and {rule["uid"] for rule in rules()} == {ALICE}
        assert [rule["options"]["min-kbit"] for rule in rules()] == [9, 9]
        drop(*seen)


def test_what_is_anothers_is_out_of_reach() -> None:
    server = Server()
    with cgroup("bob", BOB) as path:
        assert "you may not write to that cgroup's directory" in refusals(ALICE, "rule", "add", "--cgroup", str(path))
        assert "you may not write" in refusals(ALICE, "rule", "add", "--cgroup", str(ROOT))
        for words in (("--local-port", "80"), ("--remote", "127.0.0.0/8"), ("--remote-port", "1")):
            assert "needs CAP_NET_ADMIN" in refusals(ALICE, "rule", "add", *words)
        assert "needs CAP_NET_ADMIN" in refusals(ALICE, "set", "-m", "0")
        bobs = str(json.loads(as_user(BOB, "--json", "rule", "add", "--cgroup", str(path)).stdout)["id"])
        roots = str(json.loads(ctl("--json", "rule", "add", "--local-port", "9").stdout)["id"])
        for number in (bobs, roots):
            assert f"rule {number} is not yours" in refusals(ALICE, "rule", "del", number)
        assert len(rules()) == 2
        with connections(path, BOB, server, 1):
            (flow,) = flows()
            for words in (("--cgroup", str(path)), (flow["local"], flow["remote"])):
                refusals(ALICE, "stop", *words)
            refusals(ALICE, "stop", "--id", str(flow["id"]))
            assert [(now["id"], now["rule"]) for now in flows()] == [(flow["id"], int(bobs))]
        drop(int(bobs), int(roots))


def test_start_and_stop_of_ones_own_process() -> None:
    server = Server()
    with cgroup("bob", BOB) as path:
        words = [sys.executable, "-c", OPENER, str(path), str(BOB), server.port, "3"]
        opener = subprocess.Popen(words, stdin=-1, stdout=-1, text=True)
        assert line_of(opener) == "3\n"
        for target in (("--pid", str(opener.pid)), ("--cgroup", str(path))):
            assert as_user(ALICE, "start", *target).returncode == 1
            assert not flows(), "another user's connections were started"
            # its process was made by root, who alone may trace it until it starts a program
            assert "no connection was changed" in refusals(BOB, "start", *target)
            for verb, left in (("start", 3), ("stop", 0)):
                done = ctl(verb, *target)
                assert done.returncode == 0 and len(flows()) == left, done
        opener.communicate()
    client = subprocess.Popen(server.client(5), user=ALICE, group=ALICE, stdout=-1)
    accepted = [server.socket.accept()[0] for _ in range(4)]
    target = ("--pid", str(client.pid))
    assert "no connection was changed" in refusals(BOB, "start", *target)
    for verb, left in (("start", 1), ("stop", 0)):
        done = as_user(ALICE, "--json", verb, *target)
        assert done.returncode == 0 and len(flows()) == left, done
    client.kill()
    client.wait()
    assert len(accepted) == 4


def test_limits_per_user() -> None:
    server = Server()
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(cgroup("alice", ALICE))
        for _ in range(8):
            assert as_user(ALICE, "rule", "add", "--cgroup", str(path)).returncode == 0
        assert "you have 8 rules already, the limit without CAP_NET_ADMIN" in refusals(
            ALICE, "rule", "add", "--cgroup", str(path)
        )
        for uid in range(BOB, ALICE + 16):
            other = stack.enter_context(cgroup(f"user-{uid}", uid))
            assert as_user(uid, "rule", "add", "--cgroup", str(other)).returncode == 0
        last = stack.enter_context(cgroup("user-1017", ALICE + 16))
        assert "16 users have rules without CAP_NET_ADMIN already" in refusals(
            ALICE + 16, "rule", "add", "--cgroup", str(last)
        )
        assert ctl("rule", "add", "--cgroup", str(last)).returncode == 0, "an administrator has no such limit"
        drop(*[rule["id"] for rule in rules() if rule.get("uid") != ALICE])
        assert as_user(ALICE + 16, "rule", "add", "--cgroup", str(last)).returncode == 0, "a place is free again"
        # twice: what has ended no longer counts; and after a deletion, what lives still does
        for _ in range(2):
            with connections(path, ALICE, server, 600):
                assert len(flows()) == 512
            until(lambda: not flows())
        with connections(path, ALICE, server, 400):
            drop(*[rule["id"] for rule in rules() if rule.get("uid") == ALICE])
            assert as_user(ALICE, "rule", "add", "--cgroup", str(path)).returncode == 0
            with connections(path, ALICE, server, 200):
                assert len(flows()) == 512
        drop(*[rule["id"] for rule in rules()])


def test_run_in_a_cgroup_of_ones_own() -> None:
    """As below a user's service manager: downloads by a rule from the first packet, and nothing left behind."""
    server = Server()
    with cgroup("alice", ALICE) as path:
        enter = f"echo 0 > {path}/cgroup.procs; exec setpriv --reuid {ALICE} --regid {ALICE} --clear-groups"
        words = f"{enter} {CTL} run -- {' '.join(server.client(1))}"
        run = subprocess.Popen(["sh", "-c", words], stdout=-1, stderr=-1, text=True)
        until(lambda: len(flows()) == 1)
        assert len(rules()) == 1, run.communicate()
        (rule,) = rules()
        assert rule["uid"] == ALICE and flows()[0]["rule"] == rule["id"]
        out, error = run.communicate(timeout=30)
        # uploads need the administrator's service, which is not there: one line says so
        assert run.returncode == 0 and error.count("\n") == 1, (out, error)
        assert "sudo systemctl enable --now lbe-background" in error, error
        assert json.loads(out)["cc"] == "lbe" and json.loads(out)["uid"] == ALICE
        until(lambda: not rules() and not list(path.glob("vulture-*")))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    main(dict(globals()))
