# SPDX-License-Identifier: GPL-2.0
"""The module in a guest kernel: what it refuses, what it registers, what a socket of it sends and shows."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from testbed.support import guests, yielding

pytestmark = pytest.mark.kunit

CONTROLS = "/proc/sys/net/ipv4/tcp_available_congestion_control"
KNOWN = (
    "all lowpri1 lowpri2 lowpri2.1 lowpri2.2 lowpri2.3 lowpri2.4 lowpri2.5 lowpri2.6 lowpri3 lowpri3.1 lowpri3.2"
    " lowpri3.3 lowpri3.4 lowpri3.5 background lowpri3.7 lowpri4 lowpri4.1 lowpri4.2 lowpri5 lowpri5.1 lowpri5.2"
    " lowpri6 lowpri6.1 lowpri6.2"
)


guest = functools.partial(guests.run, "tcp_lowpri")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("variants=lowpri1,lowpri7", f'variants: "lowpri7" is not known; known: {KNOWN}'),
        ("variants=", f'variants: "" is not known; known: {KNOWN}'),
        ("variants=lowpri1,", f'variants: "" is not known; known: {KNOWN}'),
        ("variants=Background", f'variants: "Background" is not known; known: {KNOWN}'),
        ("timeout_keep_percent=101", "timeout_keep_percent=101 refused: a percentage, 0 to 100, is wanted"),
        ("timeout_keep_percent=half", "timeout_keep_percent=half refused: a percentage, 0 to 100, is wanted"),
    ],
)
def test_refusals_change_nothing(tmp_path: Path, parameters: str, words: str) -> None:
    said = guest(tmp_path, f'insmod "$KO" {parameters} && echo loaded\ndmesg\ncat {CONTROLS}\nls /sys/module')
    assert "Invalid parameters" in said, "insmod's words for EINVAL"
    assert words in said
    assert "reno cubic\n" in said, "a control was registered"
    assert "loaded" not in said
    assert "tcp_lowpri\n" not in said


def test_variants(tmp_path: Path) -> None:
    script = f"""
for variants in "" variants=all variants=lowpri6.2,background,lowpri6.2 variants=lowpri1,lowpri2; do
    insmod "$KO" $variants
    cat {CONTROLS} /proc/sys/net/ipv4/tcp_allowed_congestion_control
    rmmod tcp_lowpri
done
cat {CONTROLS}
"""
    lines = guest(tmp_path, script).splitlines()
    assert lines == [
        "reno cubic background lowpri3.7",
        "reno cubic",  # nobody but who has CAP_NET_ADMIN
        f"reno cubic {KNOWN.removeprefix('all ')}",
        "reno cubic",
        "reno cubic background lowpri6.2",
        "reno cubic",
        "reno cubic lowpri1 lowpri2",
        "reno cubic",
        "reno cubic",
    ]


def test_a_parameter_out_of_range_leaves_the_old_one(tmp_path: Path) -> None:
    script = """
insmod "$KO"
cd /sys/module/tcp_lowpri/parameters
echo 150 > timeout_keep_percent || echo refused
cat timeout_keep_percent
echo 25 > timeout_keep_percent
cat timeout_keep_percent variants mark
"""
    said = guest(tmp_path, script)
    assert said.splitlines()[-5:] == ["refused", "75", "25", "background,lowpri3.7", "Y"]


# Asks for a control as a user without privileges.
CHOOSE = """
import os, socket, sys
os.setgid(65534)
os.setuid(65534)
asked = socket.socket()
try:
    asked.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
    print("chosen")
except OSError as error:
    print(error.strerror)
"""


def test_restricted_until_the_administrator_allows_it(tmp_path: Path) -> None:
    script = """
insmod "$KO"
for name in reno background lowpri3.7; do /usr/bin/python3 choose.py $name; done
sysctl -q -w net.ipv4.tcp_allowed_congestion_control="$(sysctl -n net.ipv4.tcp_allowed_congestion_control) background"
for name in reno background lowpri3.7; do /usr/bin/python3 choose.py $name; done
"""
    said = guest(tmp_path, script, {"choose.py": CHOOSE})
    no = "Operation not permitted"
    assert said.splitlines() == ["chosen", no, no, "chosen", "chosen", no]


# One connection over lo. What is on the wire is read from a packet socket, not from the sockets.
FLOW = """
import json, os, socket, struct, subprocess, sys
IP_TOS, IPV6_TCLASS = 1, 67
family = socket.AF_INET6 if sys.argv[1] == "ipv6" else socket.AF_INET
address = "::1" if family == socket.AF_INET6 else "127.0.0.1"
level, option = (socket.IPPROTO_IPV6, IPV6_TCLASS) if family == socket.AF_INET6 else (socket.IPPROTO_IP, IP_TOS)
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
wire.bind(("lo", 0))
wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
listener = socket.create_server((address, 5001), family=family)
sender = socket.socket(family)
if "listener" in sys.argv:
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"background")
else:
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"background")
sender.connect((address, 5001))
peer, _ = listener.accept()
if "listener" in sys.argv:
    sender, peer = peer, sender
facts = {}

def look(name):
    port, sizes = sender.getsockname()[1], []
    sender.sendall(bytes(200000))
    left = 200000
    while left:
        left -= len(peer.recv(65536))
    seen = set()
    while True:
        try:
            packet, where = wire.recvfrom(128, socket.MSG_DONTWAIT)
        except BlockingIOError:
            break
        if where[2] != 4 and packet[0] >> 4 == 4:
            tos, tcp = packet[1], packet[20:]
        elif where[2] != 4:
            tos, tcp = (struct.unpack(">H", packet[:2])[0] >> 4) & 255, packet[40:]
        else:
            continue    # each packet is seen twice on lo: 4 is PACKET_OUTGOING
        source, = struct.unpack(">H", tcp[:2])
        here, peer_port = sender.getsockname()[1], sender.getpeername()[1]
        to, = struct.unpack(">H", tcp[2:4])
        if (source, to) == (here, peer_port):
            seen.add(("syn" if tcp[13] & 2 else "data") + f" {tos:#04x}")
        else:
            seen.add(f"back {tos:#04x}")
    facts[name] = {"wire": sorted(seen), "tos": sender.getsockopt(level, option),
                   "priority": sender.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY)}

look("joined")
facts["ss"] = subprocess.run(["ss", "-tinH", "state", "established"], capture_output=True, text=True).stdout
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
look("left")
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"lowpri3.7")
look("back")
sender.setsockopt(level, option, 0x28)
look("chosen")
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
look("chosen and left")
json.dump(facts, open("/tmp/out/facts", "w"))
"""

FILLER = {"tos": 0x04, "priority": 1}
PLAIN = {"tos": 0, "priority": 0}


#: what a guest says in JSON, by name
Facts = dict[str, Any]


def flow_facts(folder: Path, words: str, parameters: str = "") -> Facts:
    # The packet socket must see what leaves, not what arrived and was put together.
    script = f'insmod "$KO" {parameters} && /usr/bin/python3 flow.py {words}'
    said = guest(folder, script, {"flow.py": FLOW})
    facts = folder / "out" / "facts"
    assert facts.is_file(), said
    read: Facts = json.loads(facts.read_text())
    return read


def state(facts: Facts, name: str) -> dict[str, int]:
    return {key: facts[name][key] for key in ("tos", "priority")}


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_mark_on_the_wire(tmp_path: Path, family: str) -> None:
    facts = flow_facts(tmp_path, family)
    assert state(facts, "joined") == FILLER
    # The handshake's first packet goes before the control is told of the connection.
    assert facts["joined"]["wire"] == ["back 0x00", "data 0x04", "syn 0x00"]
    assert state(facts, "left") == PLAIN
    assert facts["left"]["wire"] == ["back 0x00", "data 0x00"]
    assert state(facts, "back") == FILLER
    assert facts["back"]["wire"] == ["back 0x00", "data 0x04"]
    # AF11, chosen while marked: it wins and stays.
    assert facts["chosen"]["tos"] == facts["chosen and left"]["tos"] == 0x28
    assert facts["chosen"]["wire"] == facts["chosen and left"]["wire"] == ["back 0x00", "data 0x28"]
    # IP_TOS set the priority too (to 2, which stays); IPV6_TCLASS left ours, which is taken off.
    assert facts["chosen and left"]["priority"] == (2 if family == "ipv4" else 0)


def test_mark_of_an_accepted_connection(tmp_path: Path) -> None:
    facts = flow_facts(tmp_path, "ipv4 listener")
    assert state(facts, "joined") == FILLER
    assert "data 0x04" in facts["joined"]["wire"]


def test_no_mark(tmp_path: Path) -> None:
    facts = flow_facts(tmp_path, "ipv4", "mark=0")
    assert state(facts, "joined") == state(facts, "back") == PLAIN
    assert facts["joined"]["wire"] == ["back 0x00", "data 0x00", "syn 0x00"]


def test_ecn_bits_are_the_stack_s(tmp_path: Path) -> None:
    facts = flow_facts(tmp_path, "ipv4", "; sysctl -q net.ipv4.tcp_ecn=1")
    assert "data 0x06" in facts["joined"]["wire"], "LE with ECT(0)"
    assert "data 0x02" in facts["left"]["wire"]
    assert set(facts["left"]["wire"]) <= {"back 0x00", "back 0x02", "data 0x00", "data 0x02"}


def test_ss_shows_it(tmp_path: Path) -> None:
    text = flow_facts(tmp_path, "ipv4")["ss"]
    assert " background " in text
    assert re.search(r"bbr:\(bw:\S+bps,mrtt:[\d.]+,pacing_gain:1,cwnd_gain:[\d.]+\)", text), text


# A transfer over a link that loses packets: what the counters say before, meanwhile and afterwards.
COUNTED = """
import socket, sys
counters = lambda: dict(line.split() for line in open("/proc/net/lbe_lowpri"))
listener = socket.create_server(("127.0.0.1", 5001))
sender = socket.socket()
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
print("before", counters())
sender.connect(("127.0.0.1", 5001))
peer, _ = listener.accept()
sender.setblocking(False)
left = 20000000
while left:
    try:
        left -= sender.send(bytes(min(left, 65536)))
    except BlockingIOError:
        peer.recv(1 << 20)
print("sent", counters())
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
print("left", counters())
"""


@pytest.mark.parametrize("control", ["background", "lowpri1"])
def test_counters_and_trace(tmp_path: Path, control: str) -> None:
    """flows, those that give way, how often, and bytes meanwhile; each event names the socket and both addresses."""
    script = f"""
ip link set lo up
insmod "$KO" variants=all
echo 1 > /sys/kernel/tracing/events/lowpri/enable
tc qdisc add dev lo root netem delay 1ms limit 10000 loss 1%
/usr/bin/python3 counted.py {control}
cat /sys/kernel/tracing/trace | head -40
rmmod tcp_lowpri && ls /proc/net
"""
    said = guest(tmp_path, script, {"counted.py": COUNTED})
    shown = {line.split()[0]: line for line in said.splitlines() if line}
    none = "{'flows': '0', 'yielding': '0', 'yields': '0', 'yielded_bytes': '0'}"
    assert shown["before"] == f"before {none}"
    sent = re.search(r"'flows': '1', 'yielding': '[01]', 'yields': '(\d+)', 'yielded_bytes': '(\d+)'", shown["sent"])
    assert sent and int(sent[1]) > 0 and 0 < int(sent[2]) <= 20_000_000, said
    assert "'flows': '0', 'yielding': '0'" in shown["left"], said
    event = re.search(
        r"lowpri_drop: cookie=\w+ src=127.0.0.1:\d+ dst=127.0.0.1:5001 before_pkts=\d+ after_pkts=\d+", said
    )
    assert event, said
    assert "lbe_lowpri" not in said.split("lowpri_drop")[-1]


def test_a_flow_is_counted_in_its_namespace_until_a_switch_and_ss_has_the_fields_of_the_page(tmp_path: Path) -> None:
    shown = yielding.shown("tcp_lowpri", "background", tmp_path)
    yielding.expect_counted(shown)
    yielding.expect_fields(shown, "background", "tcp_lowpri.md")


def test_tracepoints(tmp_path: Path) -> None:
    said = guest(tmp_path, 'insmod "$KO"\nls /sys/kernel/tracing/events/lowpri')
    assert set(said.split()) >= {"lowpri_drop", "lowpri_regrown", "lowpri_timeout", "lowpri_undo"}
