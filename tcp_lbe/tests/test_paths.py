# SPDX-License-Identifier: GPL-2.0
"""How many paths a namespace keeps without a flow, and for how long; and that a path belongs to no user."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcp_lbe.tests.test_module import flows

pytestmark = pytest.mark.kunit

#: one connection for a moment to each address
BRIEFLY = """
def briefly(address):
    sender = connect((address, 5001))
    send(sender, 2000)
    sender.close()
serve("0.0.0.0")
"""
IDLE_MAX = 1024  # LBE_PATHS_IDLE_MAX of paths.c
KEEP_S = 600  # LBE_PATHS_KEEP


def test_a_path_is_kept_for_ten_minutes_after_its_last_flow(tmp_path: Path) -> None:
    program = f"""{BRIEFLY}
briefly("127.0.0.1")
time.sleep({KEEP_S - 10})
facts = {{"before": paths(), "counted": counters()["paths"]}}
time.sleep(15)
facts |= {{"after": paths(), "none": counters()["paths"]}}
briefly("127.0.0.1")
time.sleep(1)
facts["again"] = paths()
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, "", program, limit_s=KEEP_S + 120)
    (path,) = facts["before"]
    assert facts["counted"] == 1 and path["flows"] == "0" and int(path["idle_s"]) >= KEEP_S - 12, facts
    assert facts["after"] == [] and facts["none"] == 0, facts
    (path,) = facts["again"]
    assert int(path["age_s"]) <= 5, "a path of its own, which knows nothing of the old one"


def test_a_namespace_keeps_so_many_paths_without_a_flow(tmp_path: Path) -> None:
    """1100 addresses, one connection after the other. A connection to a further one works as any other does."""
    program = f"""{BRIEFLY}
for number in range(1100):
    briefly(f"127.0.{{number // 200}}.{{number % 200 + 1}}")
time.sleep(5)
facts = {{"rows": len(paths()), "counters": counters()}}
last = connect(("127.0.9.9", 5001))
facts["took"] = send(last, 100000)
facts["last"] = [path for path in paths() if path["flows"] != "0"]
print("facts " + json.dumps(facts))
"""
    facts = flows(tmp_path, "", program)
    assert IDLE_MAX - 100 <= facts["rows"] == facts["counters"]["paths"] <= IDLE_MAX, facts
    assert facts["counters"]["flows"] == 0
    assert [path["destination"] for path in facts["last"]] == ["127.0.9.9"] and facts["took"] < 2, facts


def test_users_share_the_path_to_an_address(tmp_path: Path) -> None:
    """A user's seven connections leave another user's one an eighth of the path, and are in one row with it."""
    program = """
serve("127.0.0.1")
def user(uid, count):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setgid(uid)
        os.setuid(uid)
        senders = [connect(("127.0.0.1", 5001)) for _ in range(count)]
        def go(sender):
            while True:
                sender.send(bytes(20000))
        for sender in senders:
            threading.Thread(target=go, args=(sender,), daemon=True).start()
        time.sleep(10)
        def moved():
            # bytes_acked of struct tcp_info
            return [struct.unpack_from("<Q", sender.getsockopt(6, socket.TCP_INFO, 256), 120)[0] for sender in senders]
        before = moved()
        time.sleep(20)
        os.write(writer, json.dumps([now - then for now, then in zip(moved(), before)]).encode())
        time.sleep(5)
        os._exit(0)
    os.close(writer)
    return os.fdopen(reader)
asked = [user(1001, 1), user(1002, 7)]
time.sleep(15)
facts = {"paths": paths(), "moved": [json.load(one) for one in asked]}
print("facts " + json.dumps(facts))
"""
    network = "ip link set lo mtu 1500\ntc qdisc add dev lo root netem delay 10ms rate 10mbit limit 100"
    facts = flows(tmp_path, network, program)
    (path,) = facts["paths"]
    assert path["flows"] == "8" and path["path"] == "shared", facts
    (one,), seven = facts["moved"]
    everything = one + sum(seven)
    assert 8 * everything / 20 > 7e6, "they fill the link"
    assert 0.06 < one / everything < 0.25, facts
