# SPDX-License-Identifier: GPL-2.0
"""A control that is chosen while the SYN is in flight: the options that the handshake negotiates still hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.support import guests

pytestmark = pytest.mark.kunit

CLIENT = """
import socket, sys, time
sender = socket.socket()
sender.setblocking(False)
sender.connect_ex(("10.0.0.2", 5001))
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
time.sleep(1)
sender.setblocking(True)
sender.send(bytes(100))
time.sleep(1)
print("ECT", sender.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) & 3, flush=True)
"""

SERVER = """
import socket
listener = socket.create_server(("10.0.0.2", 5001))
print("ready", flush=True)
peer, _ = listener.accept()
while peer.recv(100):
    pass
"""

SCRIPT = """
ip netns add peer
ip link add near type veth peer name far netns peer
ip addr add 10.0.0.1/24 dev near
ip link set near up
ip -n peer addr add 10.0.0.2/24 dev far
ip -n peer link set far up
tc -n peer qdisc add dev far root netem delay 100ms
echo 1 >/proc/sys/net/ipv4/tcp_ecn
ip netns exec peer sh -c 'echo 0 >/proc/sys/net/ipv4/tcp_ecn'
insmod "$KO"
ip netns exec peer python3 server.py &
sleep 1
"""


@pytest.mark.parametrize("control", ["lp", "lp_ecn"])
def test_nothing_says_ect_to_a_peer_that_refuses_it(tmp_path: Path, control: str) -> None:
    files = {"client.py": CLIENT, "server.py": SERVER}
    said = guests.run("tcp_lp", tmp_path, f"{SCRIPT}\npython3 client.py {control}\n", files)
    assert re.findall(r"^ECT (.*)$", said, re.MULTILINE) == ["0"]
