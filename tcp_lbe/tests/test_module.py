# SPDX-License-Identifier: GPL-2.0
"""The module in a guest kernel: who may use it, what a socket of it does and shows, and when it can go."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from testbed.support import guests

pytestmark = pytest.mark.kunit

guest = functools.partial(guests.run, "tcp_lbe")

# One connection over lo, by a user without any capability, from control to control.
FLOW = """
import json, os, socket, struct, sys
family = socket.AF_INET6 if sys.argv[1] == "ipv6" else socket.AF_INET
address = "::1" if family == socket.AF_INET6 else "127.0.0.1"
os.setgid(65534)
os.setuid(65534)
listener = socket.create_server((address, 5001), family=family)
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"lbe")
sender = socket.socket(family)
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"lbe")
sender.connect((address, 5001))
peer, _ = listener.accept()
TCP_CC_INFO = 26
facts = {"clone": peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode(), "steps": []}

def transfer():
    data, got = os.urandom(300000), b""
    sender.sendall(data)
    while len(got) < len(data):
        got += peer.recv(65536)
    return got == data

for control in ["lbe", "cubic", "lbe", "reno", "bbr", "lbe"]:
    if control == "bbr" and not os.path.exists("/sys/module/tcp_bbr"):
        continue
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    whole = transfer()
    info = sender.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 64)
    tcp = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    step = {"control": control, "whole": whole, "cwnd": struct.unpack_from("<I", tcp, 80)[0],
            "tos": sender.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) if family == socket.AF_INET
            else sender.getsockopt(socket.IPPROTO_IPV6, 67)}
    if control == "lbe":
        rate_lo, rate_hi, base_us = struct.unpack_from("<3I", info)
        step |= {"rate": rate_lo | rate_hi << 32, "base_us": base_us}
    facts["steps"].append(step)
print("facts " + json.dumps(facts), flush=True)
"""


@pytest.mark.parametrize(("family", "mark"), [("ipv4", 0), ("ipv4", 1), ("ipv6", 1)])
def test_a_live_socket_from_control_to_control(tmp_path: Path, family: str, mark: int) -> None:
    """Unprivileged; every byte arrives; ss's fields are filled; the mark comes and goes; accept() hands it on."""
    script = f"""
ip link set lo up
insmod "$KO" mark={mark}
python3 flow.py {family}
"""
    said = guest(tmp_path, script, {"flow.py": FLOW})
    line = next(line for line in said.splitlines() if line.startswith("facts "))
    facts = json.loads(line.removeprefix("facts "))
    assert facts["clone"] == "lbe"
    assert len(facts["steps"]) >= 5
    for step in facts["steps"]:
        ours = step["control"] == "lbe"
        assert step["whole"] and step["cwnd"] >= 2, step
        assert step["tos"] & 0xFC == (4 if ours and mark else 0), step
        if ours:
            assert step["rate"] > 0 and 0 < step["base_us"] < 1_000_000, step


def test_unload_waits_for_sockets(tmp_path: Path) -> None:
    script = """
ip link set lo up
insmod "$KO"
python3 - <<'END'
import socket, subprocess
listener = socket.create_server(("127.0.0.1", 5001))
sender = socket.socket()
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"lbe")
sender.connect(("127.0.0.1", 5001))
sender.sendall(b"x" * 100000)
busy = subprocess.run(["rmmod", "tcp_lbe"], stderr=subprocess.DEVNULL).returncode
sender.close()
listener.close()
print("busy" if busy else "gone", flush=True)
END
sleep 1
rmmod tcp_lbe && echo unloaded
insmod "$KO" && echo again
"""
    said = guest(tmp_path, script).splitlines()
    assert "busy" in said
    assert "unloaded" in said and "again" in said


def test_namespaces_come_and_go_with_their_paths(tmp_path: Path) -> None:
    """Twenty namespaces with flows in each, gone before the module: nothing is left and nothing oopses."""
    script = """
insmod "$KO"
cat > flows.py <<'END'
import socket
listener = socket.create_server(("127.0.0.1", 5001))
for _ in range(20):
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"lbe")
    sender.connect(("127.0.0.1", 5001))
    sender.sendall(b"x" * 20000)
    peer, _ = listener.accept()
    peer.close()
    sender.close()
END
for n in $(seq 20); do
    ip netns add n$n
    ip -n n$n link set lo up
    ip netns exec n$n python3 flows.py
done
for n in $(seq 20); do ip netns del n$n; done
sleep 70
rmmod tcp_lbe && echo unloaded
dmesg | grep -c -E "BUG|WARNING|Oops" || true
"""
    said = guest(tmp_path, script.replace("flows.py", "/tmp/flows.py")).splitlines()
    assert "unloaded" in said and said[-1] == "0", said
