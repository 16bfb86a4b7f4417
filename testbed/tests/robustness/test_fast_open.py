# SPDX-License-Identifier: GPL-2.0
"""A Fast Open client with each congestion control: the cookie from one connection is used in the next."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.support import guests

pytestmark = pytest.mark.kunit

CLIENT = """
import socket, sys
MSG_FASTOPEN, TCP_FASTOPEN, OPTIONS_AT, SYN_DATA = 0x20000000, 23, 5, 32
listener = socket.create_server(("127.0.0.1", 5001))
listener.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 5)
for number in 1, 2:
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
    sender.sendto(b"hello", MSG_FASTOPEN, ("127.0.0.1", 5001))
    peer, _ = listener.accept()
    assert peer.recv(100) == b"hello"
    options = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 64)[OPTIONS_AT]
    print("connection", number, "in the SYN" if options & SYN_DATA else "after the handshake", flush=True)
    sender.close()
    peer.close()
"""


@pytest.mark.parametrize(
    ("module", "control"),
    [
        ("tcp_lp", "reno"),
        ("tcp_lp", "lp"),
        ("tcp_ledbat", "ledbat"),
        ("tcp_ledbat", "ledbatpp"),
        ("tcp_lbe", "lbe"),
        ("tcp_lowpri", "background"),
    ],
)
def test_the_second_connection_has_data_in_its_syn(tmp_path: Path, module: str, control: str) -> None:
    script = f"""
ip link set lo up
echo 3 >/proc/sys/net/ipv4/tcp_fastopen
insmod "$KO"
python3 client.py {control}
"""
    said = guests.run(module, tmp_path, script, {"client.py": CLIENT})
    assert re.findall(r"^connection (.*)$", said, re.MULTILINE) == ["1 after the handshake", "2 in the SYN"]
