# SPDX-License-Identifier: GPL-2.0
"""The shred queue inside the kernel: equal to sch_red without hints. Its configuration: tools/tc/tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.backends.machine import Machine
from testbed.backends.tools import build_tc_plugin
from testbed.backends.uml import HOST_ROOT, Uml
from testbed.run import runner
from testbed.spec.experiment import parse

pytestmark = pytest.mark.scenario

RED = "limit 300000 min 15000 max 45000 avpkt 1514 burst 20 bandwidth 10mbit probability 0.1"

#: the same with room for 40 packets of 1250 bytes
SMALL = RED.replace("limit 300000", "limit 50000")

# Two greedy flows beside one that takes a part of the link.
EXPERIMENT = """
[experiment]
claim = "the queue below greedy flows"
source = "made for this test"
duration_s = 20
measure_s = [1, 20]
runs = 1
modules = ["sch_shred"]
[topology]
rate_mbit = 10
delay_ms = 20
ecn = {ecn}
queue = {{ kind = "tc", packets = 200, tc = "{queue}" }}
reverse_queue = {{ packets = 200 }}
[flow.one]
cc = "reno"
[flow.two]
cc = "cubic"
start_s = 2
dscp = {dscp}
[flow.udp]
kind = "cbr"
proto = "udp"
rate_mbit = 9.5
pkt_bytes = 500
start_s = 0.2
[metric.one]
kind = "goodput"
flow = "one"
[metric.drops]
kind = "drops"
[metric.marks]
kind = "marks"
"""


#: a queue as `tc -j` shows it
Shown = dict[str, Any]


@pytest.fixture(scope="module")
def backend() -> Uml:
    made = Uml()
    made.prepare(["sch_shred"])
    return made


#: Begin of a guest's program: the module, and two devices that face each other, one of them in the namespace "far".
PAIR = """
set -eu
export TC_LIB_DIR=/tmp/job/tc
insmod {host}{module}
ip netns add far
ip link add near type veth peer name end netns far
ip addr add 10.8.0.1/24 dev near
ip -n far addr add 10.8.0.2/24 dev end
ip link set near up
ip -n far link set end up
"""

#: Packets of 1250 bytes, each of which takes 1 ms of the link. They arrive in bursts at fixed times, which lie halfway
#: between two departures: a burst takes less than 0.1 ms, and the link's departures keep their times while it has
#: a packet. So a packet meets the same packets in the queue however long a system call takes. The queue is never empty:
#: sch_red's idle time never begins below tbf, ours does. What arrived is stored as number and TOS byte of each packet.
COMPARED = PAIR + """ip link add idle type dummy
ip link set idle up
ip -n far link set end address 02:00:00:00:08:02
ip neigh replace 10.8.0.2 lladdr 02:00:00:00:08:02 dev near nud permanent
tc qdisc add dev near root handle 1: tbf rate 10mbit burst 1514 limit 10m
tc qdisc add dev near parent 1:1 handle 10: {queue}
tc qdisc add dev idle root handle 10: {other}
ip netns exec far /usr/bin/python3 -c '
import socket, struct
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
end.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
end.bind(("10.8.0.2", 9))
end.settimeout(2)
with open("'$LBE_OUT'/came", "wb") as file:
    while True:
        try:
            data, more, _, _ = end.recvmsg(2000, 100)
        except TimeoutError:
            break
        file.write(data[:4] + more[0][2][:1])
' &
sleep 1
/usr/bin/python3 - <<'END'
import os, socket, struct, time

os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
ends = []
for tos in {marks}:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)  # SO_SNDBUFFORCE
    one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    one.connect(("10.8.0.2", 9))
    ends.append(one)
number, longest = 0, 0.0
begin = time.monotonic() + 0.01
for burst in range(2001):
    # four packets leave between two bursts; now and then more than the averages know, and more than there is room for
    usual = 6 if burst % 500 > 400 else 4 + (burst % 4 == 0)
    size = {{0: 1, 1: 15}}.get(burst, 80 if burst % 200 == 199 else usual)
    at = begin + (0.004 * burst + 0.00025 if burst else 0.0)
    time.sleep(max(at - time.monotonic(), 0))
    for _ in range(size):
        ends[number % len(ends)].send(struct.pack("!I", number) + bytes(1204))
        number += 1
    longest = max(longest, time.monotonic() - at)
with open(os.environ["LBE_OUT"] + "/sent", "w") as file:
    file.write(f"{{number}} {{longest}}")
END
wait
tc -s -j qdisc show dev near > "$LBE_OUT/queues"
"""


def came(backend: Uml, path: Path, queue: str, other: str, seed: int, marks: tuple[int, ...]) -> tuple[bytes, Shown]:
    """Which packets arrived below `queue`, and with which TOS byte; the queue at the end. `other` is set up on an idle
    device, so that both runs of a comparison have drawn the same random numbers before they begin."""
    out = guest(backend, path, COMPARED, seed=seed, queue=queue, other=other, marks=marks)
    sent, longest_s = (float(word) for word in (out / "sent").read_text().split())
    assert sent > 8_500 and longest_s < 0.0002, "a burst must end before the next departure"
    return (out / "came").read_bytes(), json.loads((out / "queues").read_text())[-1]


def compare(backend: Uml, path: Path, red: str, shred: str, seed: int, marks: tuple[int, ...] = (0, 7 << 2)) -> bool:
    """Are the same packets dropped and marked by both queues? The packets say what `marks` has for a TOS byte."""
    one, shown = came(backend, path / "red", red, shred, seed, marks)
    two, _ = came(backend, path / "shred", shred, red, seed, marks)
    # both of RED's regions and the limit were met
    assert len(one) > 5 * 7_000 and shown["early"] > 100 and shown["pdrop"] > 10, shown
    return one == two


@pytest.mark.parametrize(("flags", "seed"), [("", 1), ("", 2), ("ecn", 1), ("ecn harddrop", 2)])
def test_hint_off_is_red_bit_for_bit(backend: Uml, tmp_path: Path, flags: str, seed: int) -> None:
    """Same random numbers, same packets dropped or marked, whatever the packets say (DSCP 7 is the oldest age).

    Not so with adaptive: sch_red looks for it in the old flags, where today's tc does not put
    it, and never adapts (up to 7.2). Ours does; test_adaptive_adapts.
    """
    marks = (0, 7 << 2, 2, 7 << 2 | 1) if "ecn" in flags else (0, 7 << 2)
    assert compare(backend, tmp_path, f"red {SMALL} {flags}", f"shred {SMALL} {flags} hint off nogentle", seed, marks)


def test_with_hints_the_queue_is_not_red(backend: Uml, tmp_path: Path) -> None:
    """The comparison above can fail."""
    assert not compare(backend, tmp_path, f"red {SMALL}", f"shred {SMALL} nogentle", seed=1)


#: two UDP flows that offer 10 % more than the link carries; of each what its packets say, and their size
HINTED = """
[experiment]
claim = "drops in the ratio of Equation (4)"
source = "Claypool, Kinicki, Hartling, IPCCC 2004, Equations (1) to (4)"
duration_s = 31
measure_s = [1, 31]
runs = 1
sample_ms = 1000
modules = ["sch_shred"]
[topology]
framing = "ip"
rate_mbit = 10
delay_ms = 1
queue = {{ kind = "tc", packets = 400, tc = "{queue}" }}
[flow.small]
kind = "cbr"
proto = "udp"
rate_mbit = {small_mbit}
dscp = {small_dscp}
pkt_bytes = {small_bytes}
[flow.large]
kind = "cbr"
proto = "udp"
rate_mbit = {large_mbit}
dscp = {large_dscp}
pkt_bytes = {large_bytes}
start_s = 0.005
[metric.drops]
kind = "drops"
"""
LOW, HIGH, MAX_P, FLOOR = 50_000, 150_000, 0.1, 5000
HINTED_QUEUE = f"shred limit 400000 min {LOW} max {HIGH} avpkt 1000 burst 190 probability {MAX_P} bandwidth 10mbit"
FROM_S, TO_S = 6, 30


def hinted(backend: Uml, folder: Path, queue: str, **flows: float) -> tuple[list[Shown], list[dict[str, int]]]:
    """The queue at each second of the run; the packets and drops of each class that had any, in the order of hints."""
    text = HINTED.format(queue=queue, **flows)
    for at_s in range(FROM_S, TO_S + 1):
        run = f"tc -s -j qdisc show dev east > /tmp/out/at_{at_s}"
        text += f'[[event]]\nat_s = {at_s}\nnode = "rtr"\nrun = "{run}"\n'
    (job,) = runner.plan(parse(text, Path("shred_hinted.toml")), runner.Options(runs=1))
    runner.run_one(job, backend, keep=folder)
    shown = []
    for at_s in range(FROM_S, TO_S + 1):
        queues = json.loads((folder / "out" / f"at_{at_s}").read_text())
        shown.append(next(one for one in queues if one["kind"] == "shred"))
    classes = [
        {word: last[word] - first[word] for word in ("packets", "drops")}
        for first, last in zip(shown[0]["classes"], shown[-1]["classes"])
        if last["packets"] - first["packets"] > 100
    ]
    # nothing but the law dropped
    assert shown[-1]["pdrop"] == 0 and shown[-1]["early"] == shown[-1]["drops"] > 2000, shown[-1]
    return shown, classes


def test_the_queue_drops_in_the_ratio_of_equation_4(backend: Uml, tmp_path: Path) -> None:
    """Hints of 12 and 20, as many packets of each: the queue's own code, not a copy of its rule.

    RED's rule, a count of all packets times the packet's own probability, hits the larger hint three times as often.
    """
    # payloads of 1000-byte packets: TOS is the DSCP and two bits of 0
    flows = {f"{who}_{what}": value for who, dscp in (("small", 3), ("large", 5))
             for what, value in (("mbit", 5.3), ("dscp", dscp), ("bytes", 972))}  # fmt: skip
    shown, (small, large) = hinted(backend, tmp_path, f"{HINTED_QUEUE} hint tos", **flows)
    assert small["packets"] == pytest.approx(large["packets"], rel=0.01)
    expected = {12: 0.0, 20: 0.0}
    for one in shown:
        assert one["average_hint"] == pytest.approx(16, rel=0.05) and LOW < one["average_queue"] < HIGH
        for hint in expected:
            # Equations (2), (3) and (4) as they are printed
            low = max(LOW + (HIGH - LOW) * (1 - hint / one["average_hint"]), FLOOR)
            max_p = MAX_P * (HIGH - low) / (HIGH - LOW)
            expected[hint] += max(max_p * (one["average_queue"] - low) / (HIGH - low), 0) / len(shown)
    got = [flow["drops"] / flow["packets"] for flow in (small, large)]
    # about 700 and 2400 drops: three standard errors of the ratio are an eighth
    assert got[1] / got[0] == pytest.approx(expected[20] / expected[12], rel=0.13), (got, expected)
    # the gap between drops is uniform on 1 to 1 / p: they come about twice as often as p says
    mean = sum(expected.values()) / 2
    assert sum(got) / 2 == pytest.approx(2 * mean / (1 + mean), rel=0.1), (got, expected)


def test_byte_mode_drops_in_proportion_to_the_size(backend: Uml, tmp_path: Path) -> None:
    """Packets of 1000 and of 250 bytes, as many of each, with hints that are nearly the same."""
    flows = {"small_mbit": 2.12, "small_dscp": 15, "small_bytes": 222, "large_mbit": 9.28, "large_dscp": 16,
             "large_bytes": 972}  # fmt: skip
    shown, (small, large) = hinted(backend, tmp_path, f"{HINTED_QUEUE} hint tos bytes", **flows)
    assert small["packets"] == pytest.approx(large["packets"], rel=0.01)
    excess = {60: 0.0, 64: 0.0}
    for one in shown:
        for hint in excess:
            excess[hint] += one["average_queue"] - LOW - (HIGH - LOW) * (1 - hint / one["average_hint"])
    expected = 1000 * excess[64] / (250 * excess[60])
    assert large["drops"] / small["drops"] == pytest.approx(expected, rel=0.13), (small, large, excess)


IDLE = """
[experiment]
claim = "an idle queue's average falls"
source = "Floyd and Jacobson, 1993, section 4"
duration_s = 16
measure_s = [1, 16]
runs = 1
modules = ["sch_shred"]
[topology]
rate_mbit = 10
delay_ms = 20
queue = {{ kind = "tc", packets = 200, tc = "shred {red}", shaper = "{shaper}" }}
[flow.full]
kind = "cbr"
proto = "udp"
rate_mbit = 12
start_s = 1
stop_s = 6
[flow.late]
kind = "cbr"
proto = "udp"
rate_mbit = 0.1
start_s = 12
[metric.drops]
kind = "drops"
[[event]]
at_s = 5
node = "rtr"
run = "tc -s -j qdisc show dev east > /tmp/out/full"
[[event]]
at_s = 13
node = "rtr"
run = "tc -s -j qdisc show dev east > /tmp/out/late"
"""


@pytest.mark.parametrize("shaper", ["tbf", "htb"])
def test_idle_time_counts_below_a_shaper(backend: Uml, tmp_path: Path, shaper: str) -> None:
    """tbf only peeks into an empty queue, htb does not ask one at all: idle time begins all the same.

    Under tbf alone idle time may also begin at an empty dequeue, since this queue's peek is one. Six seconds are 5000
    packets of the link; 9 packets that then arrive would leave 90 % of an average whose weight is 1/256, where idle
    time did not count.
    """
    text = IDLE.format(red=RED, shaper=shaper)
    (job,) = runner.plan(parse(text, Path("shred_idle.toml")), runner.Options(runs=1))
    runner.run_one(job, backend, keep=tmp_path)
    average = {}
    for name in ("full", "late"):
        shown = json.loads((tmp_path / "out" / name).read_text())
        average[name] = next(one for one in shown if one["kind"] == "shred")["average_queue"]
    assert average["full"] > 15000 and average["late"] < 100, average


#: (at second, what happens to the queue, do packets with DSCP 7 count as hinted from then on?)
CHANGES = [
    (4, "change {queue} shred hint off", False),
    (6, "change {queue} shred hint dscp weight 0.1", True),
    (8, "change {queue} shred ecn nogentle", True),
    (10, "change {queue} shred limit 50000", True),
    (12, "change {queue} shred noecn split-gso wash", True),
    (14, "change {queue} shred hint tos", True),
    (16, "change {queue} shred limit 100000 bandwidth 20mbit", True),
    (18, "show dev lo", True),
]


def test_changes_under_traffic(backend: Uml, tmp_path: Path) -> None:
    """Every option, the limit above and below what is queued: packets go on, counters add up, none is purged."""
    # less of the flow that does not yield: those that carry hints need room; and more of them, so that packets wait
    text = EXPERIMENT.format(queue=f"shred {RED}", ecn="false", dscp=7).replace("rate_mbit = 9.5", "rate_mbit = 2")
    text = text.replace("start_s = 2\n", "start_s = 2\ncount = 4\n")
    for at_s, words, _ in CHANGES:
        tc = "tc qdisc " + words.format(queue="dev east parent 1:1 handle 10:")
        show = "tc -s -j qdisc show dev east > /tmp/out/{}_{}"
        run = f"{show.format('at', at_s)}; {tc}; {show.format('after', at_s)}"
        text += f'[[event]]\nat_s = {at_s}\nnode = "rtr"\nrun = "{run}"\n'
    (job,) = runner.plan(parse(text, Path("shred_changes.toml")), runner.Options(runs=1))
    series = runner.run_one(job, backend, keep=tmp_path).series
    shown: list[Shown] = []
    then: list[Shown] = []
    for when, into in (("at", shown), ("after", then)):
        for at_s, _, _ in CHANGES:
            queues = json.loads((tmp_path / "out" / f"{when}_{at_s}").read_text())
            into.append(next(one for one in queues if one["kind"] == "shred"))

    def arrived(one: Shown) -> dict[str, int]:
        packets = {row["hint"]: row["packets"] for row in one["classes"]}
        return {"unhinted": packets.pop("none"), "hinted": sum(packets.values())}

    for (_, words, counts), before, after in zip(CHANGES, shown, shown[1:]):
        new = {word: arrived(after)[word] - arrived(before)[word] for word in ("hinted", "unhinted")}
        assert new["unhinted"] > 100 and (new["hinted"] > 100) == counts, words
        # of what arrived some was sent on, some dropped, and no more is left than the limit lets in
        gone = after["packets"] + after["drops"] - before["packets"] - before["drops"]
        assert abs(sum(new.values()) - gone) < 250, words
    for (_, words, _), before, after in zip(CHANGES, shown, then):
        # what is queued stays, but for what a lower limit has no room for
        assert after["backlog"] <= after["options"]["limit"]
        assert after["backlog"] >= 0.3 * min(before["backlog"], after["options"]["limit"]), words
    assert sum(one["backlog"] > 10_000 for one in shown) >= 4
    options = [one["options"] for one in shown]
    assert [one["hint"] for one in options] == ["dscp", "off", *["dscp"] * 4, "tos", "tos"]
    assert [one["limit"] for one in options] == [*[300000] * 4, *[50000] * 3, 100000]
    assert [one["ecn"] for one in options] == [*[False] * 3, True, True, *[False] * 3]
    assert [one["gentle"] for one in options] == [*[True] * 3, *[False] * 5]
    assert all(one["min"] == 15000 and one["max"] == 45000 and one["avpkt"] == 1514 for one in options)
    assert options[1]["weight"] == pytest.approx(0.002, rel=0.01) and options[-1]["weight"] == pytest.approx(0.1)
    # the average of the old coding says nothing in a new one
    assert shown[0]["average_hint"] > 1 and then[0]["average_hint"] == shown[1]["average_hint"] == 0
    for second in range(3, 20):
        rows = series.recv[(series.recv["t_ns"] > second * 1e9) & (series.recv["t_ns"] <= (second + 1) * 1e9)]
        ranges = [np.ptp(rows["bytes"][rows["flow"] == flow].astype(float)) for flow in np.unique(rows["flow"])]
        assert sum(ranges) > 600_000, (second, ranges)


ADAPTIVE = """
set -eu
export TC_LIB_DIR=/tmp/job/tc
insmod {host}{module}
ip link add idle type dummy
tc qdisc add dev idle root shred {red} adaptive
sleep 5
tc -j qdisc show dev idle > "$LBE_OUT/idle"
ip link del idle
rmmod sch_shred
"""


def guest(backend: Uml, tmp_path: Path, script: str, seed: int = 1, **words: object) -> Path:
    """Run a script in a fresh guest with the queue's module and tc's plugin at hand."""
    job = tmp_path / "job"
    (job / "tc").mkdir(parents=True)
    shutil.copy(build_tc_plugin(), job / "tc")
    module = backend.tools().modules["sch_shred"]
    (job / "job.sh").write_text(script.format(host=HOST_ROOT, module=module, **words))
    Machine(backend.build).run(job, tmp_path / "out", seed, wall_limit_s=300)
    return tmp_path / "out"


def test_adaptive_adapts(backend: Uml, tmp_path: Path) -> None:
    """An idle queue is below its target: max_p falls by a tenth twice a second."""
    (shown,) = json.loads((guest(backend, tmp_path, ADAPTIVE, red=RED) / "idle").read_text())
    # ten steps in 5 s, at most one more or less
    assert 0.1 * 0.9**11 <= shown["options"]["probability"] <= 0.1 * 0.9**9


BRIDGED = """
set -eu
export TC_LIB_DIR=/tmp/job/tc
for name in llc stp bridge; do insmod {host}{intree}/$name.ko; done
insmod {host}{module}
ip link add br0 type bridge
for pair in "in in_br" "out_br out"; do
    set -- $pair
    ip link add $1 type veth peer name $2
    ip link set $1 up
    ip link set $2 up
done
ip link set in_br master br0
ip link set out_br master br0
ip link set br0 up
tc qdisc add dev out_br root shred {red} wash
/usr/bin/python3 - > "$LBE_OUT/frames" <<'END'
import socket, struct, time

ours = b"\\x02\\0\\0\\0\\0\\x01"
ipv4 = bytes.fromhex("45ff0028 00014000 4011beb2 0a000001 0a000002")
ipv6 = bytes.fromhex("6ff00000 00001140") + bytes(32)
listen = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
listen.bind(("out", 0))
listen.settimeout(2)
send = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
send.bind(("in", 0))
time.sleep(1)  # a bridge's port learns before it forwards
for vlan in ({vlans}):
    for ethertype, header in ((0x0800, ipv4), (0x86DD, ipv6)):
        tags = struct.pack(">HHHHH", 0x88A8, 7, 0x8100, vlan, ethertype)
        send.send(b"\\xff" * 6 + ours + tags + header + b"payload" * 6)
        while (frame := listen.recv(200))[6:12] != ours:
            pass
        # the outer tag is beside what is received
        print(vlan, ethertype, *struct.unpack(">H", frame[14:16]), frame[18:].removesuffix(b"payload" * 6).hex())
END
ip link del out_br
ip link del br0
rmmod sch_shred
"""


def test_a_bridged_frame_keeps_its_inner_vlan(backend: Uml, tmp_path: Path) -> None:
    """Of two tags the inner one is where the kernel says that the network header is: it is no TOS byte.

    VLANs 28 and 252 look like the oldest and the youngest age of IPv4, 448 like the oldest of IPv6. The header
    behind them says DSCP 63, and is washed.
    """
    intree = backend.build.kdir / "intree"
    lines = (guest(backend, tmp_path, BRIDGED, red=RED, intree=intree, vlans="28, 252, 448, 3") / "frames").read_text()
    rows = [line.split() for line in lines.splitlines()]
    assert [int(sent) for sent, *_ in rows] == [28, 28, 252, 252, 448, 448, 3, 3]
    washed4 = "45030028000140004011bfae0a0000010a000002"
    washed6 = "60300000" + "00001140" + "00" * 32
    for sent, ethertype, vlan, header in rows:
        assert vlan == sent and header == (washed4 if ethertype == "2048" else washed6), (sent, vlan, header)


SPLIT = PAIR + """tc qdisc add dev near root handle 1: tbf rate 50mbit burst 200k limit 10m
tc qdisc add dev near parent 1:1 handle 10: shred bandwidth 50mbit limit {limit} min 20000 max 40000 {words}
ip netns exec far /usr/bin/python3 -c '
import socket
client = socket.create_server(("10.8.0.2", 7)).accept()[0]
while client.recv(1 << 20):
    pass
client.send(b"!")
' &
sleep 1
/usr/bin/python3 -c '
import socket
fetch = socket.create_connection(("10.8.0.2", 7))
fetch.sendall(bytes(4000000))
fetch.shutdown(socket.SHUT_WR)
assert fetch.recv(1) == b"!"
'
sleep 1
tc -s -j qdisc show dev near > "$LBE_OUT/queues"
ip link del near
ip netns del far
rmmod sch_shred
"""


@pytest.mark.parametrize("limit", [60_000, 600_000])
@pytest.mark.parametrize("words", ["", "split-gso"])
def test_aggregates_are_split_and_parents_count_right(backend: Uml, tmp_path: Path, words: str, limit: int) -> None:
    """A sender's aggregates arrive as they are, or packet by packet; when all is sent no queue holds any.

    A parent whose count of packets is wrong still has some, or was given a warning by the kernel.
    """
    shown = json.loads((guest(backend, tmp_path, SPLIT, words=words, limit=limit) / "queues").read_text())
    assert {one["kind"] for one in shown} == {"tbf", "shred"}
    assert all(one["backlog"] == one["qlen"] == 0 for one in shown), shown
    shred = next(one for one in shown if one["kind"] == "shred")
    sent_bytes = shred["bytes"] / sum(row["packets"] - row["drops"] for row in shred["classes"])
    assert sent_bytes < 1515 if words else sent_bytes > 3000


LARGE = PAIR + """tc qdisc add dev near root handle 1: prio
tc qdisc add dev near parent 1:1 handle 10: shred bandwidth 1mbit limit 20000 min 5000 max 15000 {words}
tc qdisc add dev near parent 1:2 handle 20: shred bandwidth 1mbit limit 20000 min 5000 max 15000 {words}
ip netns exec far /usr/bin/python3 -c '
import socket
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
end.bind(("10.8.0.2", 7))
end.settimeout(3)
count = 0
try:
    while len(end.recv(2000)) == 1000:
        count += 1
except TimeoutError:
    print(count)
' > "$LBE_OUT/came" &
sleep 1
/usr/bin/python3 -c '
import socket
send = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
send.setsockopt(17, 103, 1000)  # UDP_SEGMENT
send.connect(("10.8.0.2", 7))
for _ in range(10):
    send.send(bytes(40000))
'
wait
tc -s -j qdisc show dev near > "$LBE_OUT/queues"
ip link del near
ip netns del far
rmmod sch_shred
"""


def test_an_aggregate_larger_than_the_limit_is_split(backend: Uml, tmp_path: Path) -> None:
    """A sender's ten aggregates of 40 packets, where the queue holds 19: what fits passes, as with single packets."""
    out = guest(backend, tmp_path, LARGE, words="hint off")
    shown = [one for one in json.loads((out / "queues").read_text()) if one["kind"] == "shred"]
    came = int((out / "came").read_text())
    assert came > 100, (came, shown)
    assert all(one["backlog"] == one["qlen"] == 0 for one in shown)
    arrived = sum(row["packets"] for one in shown for row in one["classes"])
    assert arrived == sum(one["packets"] + one["drops"] for one in shown) >= 400


#: what a queue can be below -> its lines, with the place of each queue and its handle
PARENTS = {
    "root": "near root handle 10:",
    "mq": "near root handle 1: mq\nnear parent 1:1 handle 10:\nnear parent 1:2 handle 20:",
    "prio": "near root handle 1: prio\nnear parent 1:1 handle 10:\nnear parent 1:2 handle 20:\n"
    "near parent 1:3 handle 30:",
    "netem": "near root handle 1: netem delay 1ms limit 10000\nnear parent 1:1 handle 10:",
    "tbf": "near root handle 1: tbf rate 50mbit burst 20k limit 10m\nnear parent 1:1 handle 10:",
    "red": "near root handle 1: red limit 10m min 200k max 600k avpkt 1500 burst 250 bandwidth 50mbit\n"
    "near parent 1:1 handle 10:",
    "htb": "near root handle 1: htb default 1\nclass near parent 1: classid 1:1 htb rate 50mbit\n"
    "near parent 1:1 handle 10:",
}

#: 200 packets of each kind, all with DSCP 63, then a queue that is changed, replaced and deleted while it is full
BELOW = """
set -eu
export TC_LIB_DIR=/tmp/job/tc
insmod {host}{module}
ip netns add far
ip link add near numtxqueues 2 numrxqueues 2 type veth peer name end netns far
ip addr add 10.8.0.1/24 dev near
ip addr add fd00:8::1/64 dev near nodad
ip -n far addr add 10.8.0.2/24 dev end
ip -n far addr add fd00:8::2/64 dev end nodad
ip link set near up
ip -n far link set end address 02:00:00:00:08:02 up
for far in 10.8.0.2 fd00:8::2; do ip neigh replace $far lladdr 02:00:00:00:08:02 dev near nud permanent; done
sleep 2
{lines}
/usr/bin/python3 - <<'END'
import socket

def send(family, to, size, options=b""):
    end = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET:
        end.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 63 << 2)
    else:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 63 << 2)
    if options:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, options)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    for _ in range(200):
        end.sendto(bytes(size), (to, 9))

send(socket.AF_INET, "10.8.0.2", 500)
send(socket.AF_INET, "10.8.0.2", 4000)
send(socket.AF_INET6, "fd00:8::2", 500)
send(socket.AF_INET6, "fd00:8::2", 4000)
send(socket.AF_INET6, "fd00:8::2", 500, bytes([0, 0, 1, 4, 0, 0, 0, 0]))
END
sleep 3
tc -s -j qdisc show dev near > "$LBE_OUT/passed"
tc qdisc del dev near root
tc qdisc add dev near root handle 1: htb default 1
tc class add dev near parent 1: classid 1:1 htb rate 200kbit
tc qdisc add dev near parent 1:1 handle 10: shred bandwidth 10mbit
flood() {{ /usr/bin/python3 -c '
import socket
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
for tos in (0, 63 << 2, 7 << 2, 1, 2, 3):
    end.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    for _ in range(30):
        end.sendto(bytes(1000), ("10.8.0.2", 9))
'; }}
flood
tc qdisc change dev near parent 1:1 handle 10: shred limit 60000 min 20000 max 50000 ecn
flood
tc -s -j qdisc show dev near > "$LBE_OUT/full"
for hint in off tos dscp off; do
    tc qdisc change dev near parent 1:1 handle 10: shred noecn hint $hint
    flood
done
tc qdisc replace dev near parent 1:1 handle 20: pfifo limit 100
flood
tc qdisc replace dev near parent 1:1 handle 10: shred bandwidth 1mbit split-gso wash
flood
tc qdisc del dev near parent 1:1
tc qdisc add dev near parent 1:1 handle 10: shred bandwidth 1mbit
tc class change dev near parent 1: classid 1:1 htb rate 50mbit
flood
sleep 3
tc -s -j qdisc show dev near > "$LBE_OUT/empty"
ip link del near
ip netns del far
rmmod sch_shred
"""


def shreds(out: Path, name: str) -> list[Shown]:
    """The queues of a guest's file, after a look at their sums."""
    shown = json.loads((out / name).read_text())
    found = [one for one in shown if one["kind"] == "shred"]
    for one in found:
        arrived = sum(row["packets"] for row in one["classes"])
        # what a parent has looked at is still the queue's
        assert 0 <= arrived - one["packets"] - one["drops"] - one["qlen"] <= 1, one
    return found


@pytest.mark.parametrize("parent", PARENTS)
def test_below_each_parent(backend: Uml, tmp_path: Path, parent: str) -> None:
    """Fragments and IPv6 extension headers carry their hint too; no count is off, and no packet is left."""
    shred, lines = "shred bandwidth 100mbit limit 20m min 4m max 12m", []  # all that is sent is 2 MB: no drop
    for line in PARENTS[parent].splitlines():
        if line.startswith("class "):
            lines.append(f"tc class add dev {line.removeprefix('class ')}")
        else:
            lines.append(f"tc qdisc add dev {line} {shred if line.endswith('0:') else ''}")
    out = guest(backend, tmp_path, BELOW, lines="\n".join(lines))
    passed = shreds(out, "passed")
    youngest = sum(row["packets"] for one in passed for row in one["classes"] if row["hint"] == "1")
    # 4000 bytes are three fragments
    assert youngest == 200 * (1 + 3 + 1 + 3 + 1), json.dumps(passed)
    assert all(one["qlen"] == one["backlog"] == one["drops"] == 0 for one in passed), json.dumps(passed)
    (full,) = shreds(out, "full")
    assert 40_000 < full["backlog"] <= 60_000 and full["drops"] > 50
    (empty,) = shreds(out, "empty")
    assert empty["qlen"] == empty["backlog"] == 0 and empty["packets"] >= 15
