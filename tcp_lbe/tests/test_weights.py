# SPDX-License-Identifier: GPL-2.0
"""Weights of cgroups, with real connections in a guest kernel: what a program gets, who may set them, their end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tcp_lbe.tests.test_module import flows, guest

pytestmark = pytest.mark.kunit

LINK = "ip link set lo mtu 1500\ntc qdisc add dev lo root netem delay 10ms rate 5mbit limit 100"

# What the programs below do with cgroups and weights.
WEIGHTS = """
import errno
FILE = "/proc/self/net/lbe_weights"
ROOT = "/sys/fs/cgroup"

def cgroup(name):
    os.makedirs(f"{ROOT}/{name}", exist_ok=True)
    return os.stat(f"{ROOT}/{name}").st_ino

def enter(name):
    open(f"{ROOT}/{name}/cgroup.procs", "w").write(str(os.getpid()))

def write(text):
    # the error's name, or "done"
    try:
        fd = os.open(FILE, os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def shown():
    head, *rows = [line.split() for line in open(FILE)]
    return {int(row[0]): dict(zip(head[1:], row[1:], strict=True)) for row in rows}

def program(name, count, port=5001):
    # a process in the cgroup with so many connections that send all the time; moved() gives what it has sent so far
    asked, ask = os.pipe()
    answer, said = os.pipe()
    if not os.fork():
        enter(name)
        senders = [connect(("127.0.0.1", port)) for _ in range(count)]
        def go(sender):
            while True:
                sender.send(bytes(20000))
        for sender in senders:
            threading.Thread(target=go, args=(sender,), daemon=True).start()
        while os.read(asked, 1):
            # bytes_acked of struct tcp_info
            bytes_acked = [struct.unpack_from("<Q", sender.getsockopt(6, socket.TCP_INFO, 256), 120)[0]
                           for sender in senders]
            os.write(said, b"%20d" % sum(bytes_acked))
        os._exit(0)
    def moved():
        os.write(ask, b"?")
        return int(os.read(answer, 20))
    return moved

def rates(seconds, *programs):
    before = [moved() for moved in programs]
    time.sleep(seconds)
    return [8 * (moved() - then) / seconds / 1e6 for moved, then in zip(programs, before, strict=True)]
"""


def shares(facts: dict[str, Any], *ratios: tuple[str, float]) -> None:
    """The link is full, and the first has so many times what the second has."""
    for name, ratio in ratios:
        first, second = facts[name]
        assert first + second > 4.5, (name, facts)
        assert 0.9 * ratio < first / second < 1.1 * ratio, (name, facts)


def test_programs_share_by_weight(tmp_path: Path) -> None:
    """Three connections with a weight together, beside an ordinary one; the weight changes while they send."""
    program = f"""{WEIGHTS}
serve("127.0.0.1")
heavy, plain = cgroup("heavy"), cgroup("plain")
facts = {{"set": write(f"set {{heavy}} 3000")}}
one, other = program("heavy", 3), program("plain", 1)
time.sleep(8)
facts["three to one"] = rates(30, one, other)
facts["shown"] = shown()[heavy]
facts["changed"] = write(f"set {{heavy}} 1000")
time.sleep(2)
facts["equal"] = rates(15, one, other)
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, LINK, program, 600)
    assert facts["set"] == facts["changed"] == "done", facts
    assert facts["shown"]["weight"] == "3000" and facts["shown"]["of"] == "all", facts
    shares(facts, ("three to one", 3), ("equal", 1))


def test_connections_share_by_weight(tmp_path: Path) -> None:
    """Three with a weight each, beside an ordinary one; then without, as they send."""
    program = f"""{WEIGHTS}
serve("127.0.0.1")
heavy, plain = cgroup("heavy"), cgroup("plain")
one, other = program("heavy", 3), program("plain", 1)
time.sleep(6)
facts = {{}}
facts["each"] = write(f"set {{heavy}} 2000 each"), shown()[heavy]["of"]
time.sleep(2)
facts["six to one"] = rates(15, one, other)
facts["deleted"] = write(f"del {{heavy}}"), shown()
time.sleep(2)
facts["by flows"] = rates(15, one, other)
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, LINK, program, 600)
    assert facts["each"] == ["done", "each"] and facts["deleted"] == ["done", {}], facts
    shares(facts, ("six to one", 6), ("by flows", 3))


def test_a_flow_without_data_takes_nothing_of_its_programs_weight(tmp_path: Path) -> None:
    """One of four connections sends, and has all of it."""
    program = f"""{WEIGHTS}
serve("127.0.0.1")
one, two = cgroup("one"), cgroup("two")
write(f"set {{one}} 1000")
if not os.fork():
    enter("one")
    quiet = [connect(("127.0.0.1", 5001)) for _ in range(3)]
    for sender in quiet:
        sender.send(b"x" * 5000)
    time.sleep(60)
facts = {{}}
first, second = program("one", 1), program("two", 1)
time.sleep(8)
facts["equal"] = rates(15, first, second)
facts["active"] = shown()[one]["active"]
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, LINK, program, 600)
    assert facts["active"] == "1", facts
    shares(facts, ("equal", 1))


def test_a_connection_that_was_reset_takes_nothing_of_its_programs_weight(tmp_path: Path) -> None:
    """Not even if it had the turn, and its process does not close it."""
    program = f"""{WEIGHTS}
serve("127.0.0.1")
def reset():
    # some of these connections have the turn when the peer resets them
    listener = socket.create_server(("127.0.0.1", 5002))
    for number in range(12):
        peer = listener.accept()[0]
        for _ in range(2 + number):
            peer.recv(50000, socket.MSG_WAITALL)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
threading.Thread(target=reset, daemon=True).start()
one, two = cgroup("one"), cgroup("two")
write(f"set {{one}} 1000")
first, second = program("one", 1), program("two", 1)
time.sleep(4)
if not os.fork():
    enter("one")
    kept = []
    for _ in range(12):
        kept.append(connect(("127.0.0.1", 5002)))
        try:
            while True:
                kept[-1].send(bytes(20000))
        except ConnectionError:
            pass
    os.mkdir("/tmp/all_reset")
    time.sleep(600)
while not os.path.exists("/tmp/all_reset"):
    time.sleep(1)
time.sleep(4)
facts = {{"equal": rates(15, first, second), "active": shown()[one]["active"]}}
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, LINK, program, 600)
    assert facts["active"] == "1", facts
    shares(facts, ("equal", 1))


def test_a_small_weight_starves_nobody(tmp_path: Path) -> None:
    """1 : 100 on 5 Mbit/s: the small one has its part, and never pauses for more than a second."""
    program = f"""{WEIGHTS}
serve("127.0.0.1")
facts = {{"set": write(f"set {{cgroup('small')}} 10")}}
small, plain = program("small", 1), program("plain", 1) if cgroup("plain") else None
time.sleep(8)
facts["rates"] = rates(30, small, plain)
pauses, last, since = [0.0], small(), time.monotonic()
for _ in range(1000):
    time.sleep(0.01)
    now = small()
    if now != last:
        pauses.append(time.monotonic() - since)
        last, since = now, time.monotonic()
facts["pause"] = max(pauses)
facts["retransmits"] = [line.split()[12] for line in open("/proc/net/snmp") if line.startswith("Tcp:")][1]
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, LINK, program, 600)
    small, plain = facts["rates"]
    assert small + plain > 4.5 and 60 < plain / small < 115, facts
    assert facts["pause"] < 1.2, facts


def test_a_weight_is_that_of_the_nearest_cgroup_above(tmp_path: Path) -> None:
    """Of the socket's cgroup, or of one above; a process that moves later takes no socket with it."""
    program = f"""{WEIGHTS}
serve("127.0.0.1")
above, below, deep = cgroup("above"), cgroup("above/below"), cgroup("above/below/deep")
write(f"set {{above}} 500")
def active():
    time.sleep(0.5)
    return {{name: shown()[number]["active"] if number in shown() else None
            for name, number in (("above", above), ("below", below), ("deep", deep))}}
one = program("above/below/deep", 2)
time.sleep(10)
facts = {{"first": active()}}
facts["nearer"] = write(f"set {{below}} 700"), active()
facts["gone"] = write(f"del {{below}}"), active()
facts["none"] = write(f"del {{above}}"), active()
facts["own"] = write(f"set {{deep}} 900"), active()
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, LINK, program)
    assert facts["first"] == {"above": "2", "below": None, "deep": None}, facts
    assert facts["nearer"] == ["done", {"above": "0", "below": "2", "deep": None}], facts
    assert facts["gone"] == ["done", {"above": "2", "below": None, "deep": None}], facts
    assert facts["none"] == ["done", {"above": None, "below": None, "deep": None}], facts
    assert facts["own"] == ["done", {"above": None, "below": None, "deep": "2"}], facts


def test_a_weight_ends_with_its_cgroup(tmp_path: Path) -> None:
    """At once for readers, and for its connections, which another process has by then, within seconds."""
    program = f"""{WEIGHTS}
serve("127.0.0.1")
first = cgroup("first")
write(f"set {{first}} 3000")
enter("first")
kept = [connect(("127.0.0.1", 5001)) for _ in range(2)]
cgroup("second")
enter("second")
others = [connect(("127.0.0.1", 5001)) for _ in range(2)]
def go(sender):
    while True:
        sender.send(bytes(20000))
for sender in kept + others:
    threading.Thread(target=go, args=(sender,), daemon=True).start()
def moved(senders):
    return lambda: sum(struct.unpack_from("<Q", s.getsockopt(6, socket.TCP_INFO, 256), 120)[0] for s in senders)
time.sleep(8)
facts = {{"with": rates(20, moved(kept), moved(others)), "shown": len(shown())}}
os.rmdir(f"{{ROOT}}/first")
facts["after"] = len(shown())
facts["again"] = write(f"set {{first}} 3000"), write(f"del {{first}}")
time.sleep(6)
facts["without"] = rates(20, moved(kept), moved(others))
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, LINK, program, 600)
    assert facts["shown"] == 1 and facts["after"] == 0 and facts["again"] == ["ENOENT", "ENOENT"], facts
    kept, others = facts["with"]
    assert 0.9 * 1.5 < kept / others < 1.1 * 1.5, facts
    kept, others = facts["without"]
    assert 0.9 < kept / others < 1.1, facts


BAD = [
    ("set {a} 0", "ERANGE"), ("set {a} 1000001", "ERANGE"), ("set {a} 99999999999999", "ERANGE"),
    ("set {a} -1", "EINVAL"), ("set {a} ten", "EINVAL"), ("set {a}", "EINVAL"), ("set {a} 5 all", "EINVAL"),
    ("set {a} 5 each more", "EINVAL"), ("set 0 5", "EINVAL"), ("set -1 5", "EINVAL"), ("set x 5", "EINVAL"),
    ("set 18446744073709551615 5", "ENOENT"), ("set 18446744073709551616 5", "EINVAL"), ("del", "EINVAL"),
    ("del {a} 5", "EINVAL"), ("del {b}", "ENOENT"), ("del 0", "EINVAL"), ("add {a} 5", "EINVAL"), ("", "EINVAL"),
    ("\n", "EINVAL"), ("set {a} 5\nset {b} 5", "EINVAL"), ("set {a} 5\0", "EINVAL"),
    ("set {a} 5" + 5000 * " ", "EINVAL"),
]  # fmt: skip


def test_what_is_no_request_changes_nothing(tmp_path: Path) -> None:
    """The error's number for the caller, and a line in the log that names the value and the range."""
    program = f"""{WEIGHTS}
a, b = cgroup("a"), cgroup("b")
good = write(f"set {{a}} 77"), write(f"set {{a}} 78\\n"), write("  set\\t" + str(a) + "   79  each \\n")
facts = {{"good": good, "before": shown()[a], "bad": []}}
for text, _ in {BAD!r}:
    # an empty write does not reach the file
    facts["bad"].append(write(text.format(a=a, b=b)) if text else "EINVAL")
facts["after"] = [shown()[a], len(shown())]
facts["log"] = [line.split("] ", 1)[-1] for line in subprocess.run(["dmesg"], capture_output=True, text=True)
                .stdout.splitlines() if "lbe_weights" in line][:3]
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, "", program)
    assert facts["good"] == ["done", "done", "done"], facts
    assert facts["before"] == {"weight": "79", "of": "each", "active": "0"}, facts
    assert list(zip([text for text, _ in BAD], facts["bad"], strict=True)) == BAD
    assert facts["after"] == [facts["before"], 1], facts
    assert facts["log"][0] == "tcp_lbe: lbe_weights: weight 0 refused: a number from 1 to 1000000 is wanted", facts


def test_who_may_write_and_how_many(tmp_path: Path) -> None:
    """CAP_NET_ADMIN of the process that opened the file; everybody reads; 255 cgroups have a weight."""
    program = f"""{WEIGHTS}
number = cgroup("a")
def as_other(change):
    reader, writer = os.pipe()
    if not os.fork():
        change()
        os.write(writer, json.dumps([write(f"set {{number}} 5"), len(shown())]).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(reader, 1000))
facts = {{"root": write(f"set {{number}} 6")}}
facts["user"] = as_other(lambda: (os.setgid(1001), os.setuid(1001)))
# root without the capability: the set of capabilities, version 3, without bit 12
def without():
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    assert not libc.capget(header, data)
    for i in range(2):
        data[i] &= ~(1 << 12)
    assert not libc.capset(header, data)
facts["without"] = as_other(without)
fd = os.open(FILE, os.O_WRONLY)
def lent():
    without()
    global write
    write = lambda text: os.write(fd, text.encode())
facts["lent"] = as_other(lent)
facts["many"] = [write(f"set {{cgroup(f'many{{i}}')}} 5") for i in range(256)]
facts["shown"] = len(shown())
os.rmdir(f"{{ROOT}}/many7")
facts["room"] = write(f"set {{cgroup('many255')}} 5"), write(f"set {{cgroup('many3')}} 7"), len(shown())
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, "", program)
    assert facts["root"] == "done" and facts["user"] == ["EACCES", 1] and facts["without"] == ["EPERM", 1], facts
    assert facts["lent"][0] > 0, "as with any descriptor: who opened it had the right"
    assert facts["many"] == 254 * ["done"] + 2 * ["ENOSPC"] and facts["shown"] == 255, facts
    assert facts["room"] == ["done", "done", 255], facts


def test_namespaces_are_apart_and_leave_nothing(tmp_path: Path) -> None:
    """A container's root sets weights of its own; weights that are left end with the namespace, or with the module."""
    script = """
ip link set lo up
insmod "$KO"
mkdir /sys/fs/cgroup/a
a=$(stat -c %i /sys/fs/cgroup/a)
echo "set $a 5" > /proc/net/lbe_weights
ip netns add other
ip netns exec other cat /proc/net/lbe_weights | wc -l
ip netns exec other sh -c "echo 'set $a 6' > /proc/net/lbe_weights; tail -n 1 /proc/net/lbe_weights"
tail -n 1 /proc/net/lbe_weights
unshare -Urn sh -c "echo 'set $a 7' > /proc/net/lbe_weights; tail -n 1 /proc/net/lbe_weights"
unshare -Ur sh -c "echo 'set $a 8' > /proc/net/lbe_weights" 2>/dev/null || echo refused
tail -n 1 /proc/net/lbe_weights
ip netns del other
sleep 3
rmmod tcp_lbe && insmod "$KO" && wc -l < /proc/net/lbe_weights
rmdir /sys/fs/cgroup/a
sleep 7
rmmod tcp_lbe && echo unloaded
dmesg | grep -c -E "BUG|WARNING|Oops" || true
"""
    said = guest(tmp_path, script).splitlines()[-9:]
    assert [line.split()[1:3] for line in (said[1], said[2], said[3], said[5])] == [
        ["6", "all"], ["5", "all"], ["7", "all"], ["5", "all"]
    ], said  # fmt: skip
    assert said[0] == "1" and said[4] == "refused" and said[6:] == ["1", "unloaded", "0"], said
