# SPDX-License-Identifier: GPL-2.0
"""The module in a guest kernel: what it refuses, who may use it, what a socket of it does and shows."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from testbed.support import guests, yielding

pytestmark = pytest.mark.kunit

CONTROLS = "/proc/sys/net/ipv4/tcp_available_congestion_control"


guest = functools.partial(guests.run, "tcp_ledbat")


REFUSED = {
    "target_us=100001": "target_us=100001 refused: a number from 1000 to 100000 is wanted",
    "target_us=0": "target_us=0 refused: a number from 1000 to 100000 is wanted",
    "gain_percent=101": "gain_percent=101 refused: a number from 1 to 100 is wanted",
    "share_permille=0": "share_permille=0 refused: a number from 1 to 500 is wanted",
    "min_window=65": "min_window=65 refused: a number from 0 to 64 is wanted",
    "min_window=dynamite": "min_window=dynamite refused: a number from 0 to 64 is wanted",
    "pp_target_us=999": "pp_target_us=999 refused: a number from 1000 to 100000 is wanted",
}


def test_refusals_change_nothing(tmp_path: Path) -> None:
    loads = "\n".join(f'insmod "$KO" {parameter} && echo loaded' for parameter in REFUSED)
    said = guest(tmp_path, f"{loads}\ndmesg\ncat {CONTROLS}\nls /sys/module")
    for words in REFUSED.values():
        assert words in said
    assert "reno cubic\n" in said, "a control was registered"
    assert "loaded" not in said
    assert "tcp_ledbat\n" not in said


def test_a_parameter_out_of_range_leaves_the_old_one(tmp_path: Path) -> None:
    script = """
insmod "$KO"
cd /sys/module/tcp_ledbat/parameters
echo 100001 > target_us || echo refused
echo both > round_trip || echo refused
echo 65 > min_window || echo refused
cat target_us round_trip min_window
echo 60000 > target_us
echo 1 > round_trip
echo 0 > min_window
cat target_us round_trip min_window
"""
    said = guest(tmp_path, script).splitlines()
    assert said.count("refused") == 3
    assert said[-6:] == ["25000", "N", "2", "60000", "Y", "0"]


# One connection over lo, by a user without any capability, through all the controls.
FLOW = """
import json, os, socket, struct, sys
family = socket.AF_INET6 if sys.argv[1] == "ipv6" else socket.AF_INET
address = "::1" if family == socket.AF_INET6 else "127.0.0.1"
os.setgid(65534)
os.setuid(65534)
listener = socket.create_server((address, 5001), family=family)
sender = socket.socket(family)
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"ledbat")
sender.connect((address, 5001))
peer, _ = listener.accept()
TCP_CC_INFO = 26
facts = {}

def transfer():
    data, got = os.urandom(200000), b""
    sender.sendall(data)
    while len(got) < len(data):
        got += peer.recv(65536)
    return got == data

for step, control in enumerate(["ledbat", "cubic", "ledbatpp", "reno", "ledbat", "ledbatpp", "ledbat"]):
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    whole = transfer()
    info = sender.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 64)
    tcp = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    facts[step] = {"control": control, "whole": whole, "cwnd": struct.unpack_from("<I", tcp, 80)[0],
                   "tos": sender.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) if family == socket.AF_INET
                   else sender.getsockopt(socket.IPPROTO_IPV6, 67)}
    if control.startswith("ledbat"):
        bw_lo, bw_hi, min_rtt, pacing_gain, cwnd_gain = struct.unpack_from("<5I", info)
        facts[step] |= {"min_rtt": min_rtt, "pacing_gain": pacing_gain, "cwnd_gain": cwnd_gain}
print("facts " + json.dumps(facts), flush=True)
sender.close()
peer.close()
"""


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize("mark", [0, 1])
def test_a_live_socket_from_control_to_control(tmp_path: Path, family: str, mark: int) -> None:
    """Unprivileged, the window stays sensible, ss's fields are filled, the mark comes and goes."""
    script = f"""
ip link set lo up
insmod "$KO" mark={mark}
python3 flow.py {family}
"""
    said = guest(tmp_path, script, {"flow.py": FLOW})
    line = next(line for line in said.splitlines() if line.startswith("facts "))
    facts = json.loads(line.removeprefix("facts "))
    for step in facts.values():
        ours = step["control"].startswith("ledbat")
        assert step["whole"], step
        assert step["cwnd"] >= 2, step
        assert step["tos"] & 0xFC == (4 if ours and mark else 0), step
        if ours:
            assert 1 <= step["min_rtt"] < 100_000, step
            assert 1 <= step["pacing_gain"] <= 256, step
            assert step["cwnd_gain"] > 0, step


@pytest.mark.parametrize("control", ["ledbat", "ledbatpp"])
def test_a_flow_is_counted_in_its_namespace_until_a_switch_and_ss_has_the_fields_of_the_page(
    tmp_path: Path, control: str
) -> None:
    shown = yielding.shown("tcp_ledbat", control, tmp_path)
    yielding.expect_counted(shown)
    yielding.expect_fields(shown, control, "tcp_ledbat.md")


def test_unload_waits_for_sockets(tmp_path: Path) -> None:
    script = """
ip link set lo up
insmod "$KO"
python3 - <<'END'
import socket, subprocess
listener = socket.create_server(("127.0.0.1", 5001))
sender = socket.socket()
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"ledbat")
sender.connect(("127.0.0.1", 5001))
busy = subprocess.run(["rmmod", "tcp_ledbat"], stderr=subprocess.DEVNULL).returncode
sender.close()
listener.close()
print("busy" if busy else "gone", flush=True)
END
sleep 1
rmmod tcp_ledbat && echo unloaded
"""
    said = guest(tmp_path, script).splitlines()
    assert "busy" in said
    assert "unloaded" in said
