# SPDX-License-Identifier: GPL-2.0
"""The agent in virtual time: its ACKs, rates and times, measured exactly.

snd --- rtr === rcv: 10 Mbit/s with 86 packets from the router on, 50 ms each way.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from testbed.backends.machine import Machine
from testbed.kernels.build import ensure_kernel
from testbed.kernels.series import KernelSpec
from testbed.tests.agent.agent_build import (
    QUEUE,
    RECV,
    SEND,
    WEB,
    WEB_FAILED,
    WEB_PAGE,
    WEB_SYN_RETRANS,
    WEB_UNFINISHED,
    Run,
    agent,
)

pytestmark = pytest.mark.scenario

ZERO_NS = 5_000_000_000

NETWORK = """\
set -eu
A=$PWD/lbe-agent
for node in snd rtr rcv; do
    ip netns add $node
    ip netns exec $node sysctl -q net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 \\
        net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.tcp_no_metrics_save=1
    ip -n $node link set lo up
done
ip link add eth0 netns snd address 02:00:00:00:00:01 type veth peer name west netns rtr address 02:00:00:00:00:02
ip link add east netns rtr address 02:00:00:00:00:03 type veth peer name eth0 netns rcv address 02:00:00:00:00:04
up() { # up NODE DEV NET HOST PEER MAC
    ip netns exec $1 "$A" offload off $2
    ip -n $1 addr add 10.0.$3.$4/24 dev $2
    ip -n $1 addr add fd00:$3::$4/64 dev $2 nodad
    ip -n $1 link set $2 up
    ip -n $1 neigh replace 10.0.$3.$5 lladdr $6 dev $2 nud permanent
    ip -n $1 neigh replace fd00:$3::$5 lladdr $6 dev $2 nud permanent
}
up snd eth0 1 2 1 02:00:00:00:00:02
up rtr west 1 1 2 02:00:00:00:00:01
up rtr east 2 1 2 02:00:00:00:00:04
up rcv eth0 2 2 1 02:00:00:00:00:03
for far in 0.0.0.0/0 ::/0; do
    case $far in *:*) via1=fd00:1::1 via2=fd00:2::1 ;; *) via1=10.0.1.1 via2=10.0.2.1 ;; esac
    ip -n snd route add $far via $via1
    ip -n rcv route add $far via $via2
done
tc -n snd qdisc add dev eth0 root handle 1: netem delay 50ms limit 100000
tc -n rtr qdisc add dev west root handle 1: netem delay 50ms limit 100000
tc -n rtr qdisc add dev east root handle 1: tbf rate 10mbit burst 1600 limit 1000000
tc -n rtr qdisc add dev east parent 1:1 handle 2: pfifo limit 86
"""

AGENTS = """
pids=
for plan in *.plan; do
    "$A" --netns ${plan%.plan} run $plan & pids="$pids $!"
done
for pid in $pids; do wait $pid; done
"""


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine(ensure_kernel(KernelSpec()))


def boot(machine: Machine, folder: Path, end_s: float, plans: dict[str, str], more: str = "", seed: int = 1) -> Run:
    """Run the agents of `plans` (node -> lines) on the network after the shell lines `more` have changed it."""
    job, out = folder / "job", folder / "out"
    job.mkdir(parents=True)
    shutil.copy(agent(), job / "lbe-agent")
    for node, lines in plans.items():
        (job / f"{node}.plan").write_text(f"node {node}\nzero_ns {ZERO_NS}\nend_s {end_s}\nout /tmp/out\n{lines}\n")
    (job / "job.sh").write_text(NETWORK + more + AGENTS)
    machine.run(job, out, seed, virtual_limit_s=end_s + 60)
    return Run(0, (out / "job.log").read_text(), out)


def goodput_mbit(run: Run, flow: int, from_s: float, to_s: float) -> float:
    rows = run.records("rcv", "recv", RECV)
    rows = rows[rows["flow"] == flow]
    at = np.searchsorted(rows["t_ns"], [round(from_s * 1e9), round(to_s * 1e9)])
    first, last = rows[at]
    return (float(last["bytes"]) - float(first["bytes"])) * 8e3 / float(last["t_ns"] - first["t_ns"])


def srtt_ms(run: Run, flow: int, from_s: float) -> float:
    rows = run.records("snd", "send", SEND)
    return float(rows[(rows["flow"] == flow) & (rows["t_ns"] >= from_s * 1e9)]["srtt_us"].mean() / 1e3)


SOURCES = {
    "greedy": "flow id=1 kind=greedy cc=cubic to={to} port=5001",
    "cbr": "flow id=1 kind=cbr rate_bps=6e6 cc=cubic to={to} port=5001",
}


@pytest.mark.parametrize("to", ["10.0.2.2", "fd00:2::2"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_prompt_sink_is_as_one_that_reads_at_once(machine: Machine, tmp_path: Path, source: str, to: str) -> None:
    got = {}
    for mode in ("prompt", "every"):
        run = boot(
            machine, tmp_path / mode, 30,
            {"snd": SOURCES[source].format(to=to), "rcv": f"sink port=5001 flow=1 mode={mode}",
             "rtr": "queue id=1 dev=east handle=2:"},
        )  # fmt: skip
        got[mode] = (goodput_mbit(run, 1, 15, 30), srtt_ms(run, 1, 15))
        assert run.records("rtr", "queue", QUEUE)["qlen_pkts"].max() <= 86
    for ours, reference in zip(got["prompt"], got["every"]):
        assert ours == pytest.approx(reference, rel=0.01)
    goodput, rtt_ms = got["prompt"]
    if source == "greedy":
        # the link's rate times the payload in a frame: 1448 of 1514 bytes, with IPv6 1428 of 1514
        assert goodput == pytest.approx(10 * (1428 if ":" in to else 1448) / 1514, rel=0.002)
    else:
        assert goodput == pytest.approx(6.0, rel=0.002)
        # 100 ms of propagation; plus at most a tick's packets at the bottleneck, and a tick for an odd segment's ACK
        assert 100 < rtt_ms < 100 + 6 + 10


def test_the_ack_delay_that_the_low_water_mark_avoids(machine: Machine, tmp_path: Path) -> None:
    """With SO_RCVLOWAT at 1 the same sink delays ACKs, which shows that the test above can fail."""
    run = {
        lowat: boot(
            machine, tmp_path / str(lowat), 30,
            {"snd": SOURCES["cbr"].format(to="10.0.2.2"),
             "rcv": f"sink port=5001 flow=1 read_ms=500 lowat={lowat} rcvbuf=400000"},
        )
        for lowat in (1, 4194304)
    }  # fmt: skip
    assert srtt_ms(run[1], 1, 10) > 1.03 * srtt_ms(run[4194304], 1, 10)


def test_udp_packets_are_spaced_exactly(machine: Machine, tmp_path: Path) -> None:
    """At 99 % of the link's rate no packet waits for another: the longest delay equals the mean."""
    run = boot(
        machine, tmp_path, 10,
        {"snd": "flow id=1 kind=cbr proto=udp rate_bps=9.6e6 pkt_bytes=1472 to=10.0.2.2 port=5001 stop_s=9",
         "rcv": "sink port=5001 flow=1 proto=udp", "rtr": "queue id=1 dev=east handle=2:"},
    )  # fmt: skip
    (sent,) = run.events("snd", "sent")
    (received,) = run.events("rcv", "received")
    expected = -(-9 * 9_600_000 // (8 * 1472))  # packet 0 at 0 s, none at 9 s or later
    assert int(sent[2]["packets"]) == int(received[2]["packets"]) == expected
    mean_us = int(received[2]["delay_ns"]) / expected / 1e3
    assert int(received[2]["max_delay_ns"]) / 1e3 == pytest.approx(mean_us, abs=100)
    assert goodput_mbit(run, 1, 1, 8) == pytest.approx(9.6, rel=0.002)


def test_percentiles_of_udp_delays(machine: Machine, tmp_path: Path) -> None:
    """At twice the link's rate each packet waits longer than the one before: the percentiles lie on a line."""
    run = boot(
        machine, tmp_path, 10,
        {"snd": "flow id=1 kind=cbr proto=udp rate_bps=19.2e6 pkt_bytes=1472 to=10.0.2.2 port=5001 stop_s=0.1",
         "rcv": "sink port=5001 flow=1 proto=udp", "rtr": "queue id=1 dev=east handle=2:"},
    )  # fmt: skip
    ((_, _, detail),) = run.events("rcv", "received")
    ms = {key: int(value) / 1e6 for key, value in detail.items() if key.endswith("delay_ns")}
    packets = int(detail["packets"])
    growth_ms = 2 * (ms["max_delay_ns"] - ms["delay_ns"] / packets)
    assert packets == 164 and growth_ms > 40
    for pct in (50, 95, 99):
        expected_ms = ms["max_delay_ns"] - (1 - pct / 100) * growth_ms
        assert ms[f"p{pct}_delay_ns"] == pytest.approx(expected_ms, abs=1), f"percentile {pct}"


def test_records_lie_on_the_grid(machine: Machine, tmp_path: Path) -> None:
    run = boot(
        machine, tmp_path, 5,
        {"snd": "sample_ms 50\n" + SOURCES["greedy"].format(to="10.0.2.2"),
         "rcv": "sample_ms 50\nsink port=5001 flow=1", "rtr": "sample_ms 50\nqueue id=1 dev=east handle=2:"},
    )  # fmt: skip
    grid = np.arange(101, dtype=np.uint64) * np.uint64(50_000_000)
    assert np.array_equal(run.records("rcv", "recv", RECV)["t_ns"], grid)
    assert np.array_equal(run.records("rtr", "queue", QUEUE)["t_ns"], grid)
    # the handshake takes 100 ms; the first sample after it is the fourth of the grid
    assert np.array_equal(run.records("snd", "send", SEND)["t_ns"], grid[3:])


def test_equal_seeds_are_equal_records(machine: Machine, tmp_path: Path) -> None:
    plans = {
        "snd": SOURCES["greedy"].format(to="10.0.2.2") + "\nserver port=80 flow=2",
        "rcv": "sink port=5001 flow=1\nweb id=2 kind=open rate_bps=2e6 to=10.0.1.2 port=80",
        "rtr": "queue id=1 dev=east handle=2:",
    }
    runs = [boot(machine, tmp_path / str(i), 15, plans) for i in range(2)]
    names = sorted(path.name for path in runs[0].out.glob("*.*") if path.suffix != ".log")
    assert len(names) >= 15
    for name in names:
        assert (runs[0].out / name).read_bytes() == (runs[1].out / name).read_bytes(), name


def test_completion_does_not_wait_for_a_read(machine: Machine, tmp_path: Path) -> None:
    run = boot(
        machine, tmp_path, 10,
        {"snd": "flow id=1 kind=bytes bytes=100000 start_s=1 to=10.0.2.2 port=5001",
         "rcv": "sink port=5001 flow=1 read_ms=5000"},
    )  # fmt: skip
    (at_receiver,), (at_sender,) = run.events("rcv", "finished"), run.events("snd", "finished")
    # the sender learns it half a round trip later
    assert (at_sender[0] - at_receiver[0]) / 1e6 == pytest.approx(50, abs=1)
    # 70 packets from an initial window of 10 are rounds of 10 + 20 + 40: the handshake (0.1 s), half a round trip to
    # the receiver, two more round trips, and the last round's serialization
    assert at_receiver[0] / 1e9 == pytest.approx(1 + 0.1 + 0.05 + 2 * 0.1 + 40 * 1514 * 8 / 10e6, abs=0.03)


def test_dscp_mark_and_port_on_the_wire(machine: Machine, tmp_path: Path) -> None:
    """The filters of a qdisc sort packets into classes, whose counters show the DSCP, the mark and the port."""
    more = """
tc -n snd qdisc del dev eth0 root
tc -n snd qdisc add dev eth0 root handle 1: prio bands 4 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
tc -n snd filter add dev eth0 parent 1: pref 1 protocol ip u32 match ip tos 0x20 0xfc \\
    match ip sport 20001 0xffff flowid 1:2
tc -n snd filter add dev eth0 parent 1: pref 2 protocol ipv6 u32 match ip6 priority 0x20 0xfc \\
    match ip6 sport 20002 0xffff flowid 1:3
tc -n snd filter add dev eth0 parent 1: pref 3 handle 7 protocol ip fw flowid 1:4
for band in 2 3 4; do tc -n snd qdisc add dev eth0 parent 1:$band pfifo limit 1000; done
"""
    run = boot(
        machine, tmp_path, 2,
        {"snd": """flow id=1 kind=cbr rate_bps=80000 pkt_bytes=100 proto=udp dscp=8 to=10.0.2.2 port=5001
                   flow id=2 kind=cbr rate_bps=80000 pkt_bytes=100 proto=udp dscp=8 to=fd00:2::2 port=5002
                   flow id=3 kind=cbr rate_bps=40000 pkt_bytes=100 proto=udp mark=7 to=10.0.2.2 port=5003
                   queue id=2 dev=eth0 parent=1:2
                   queue id=3 dev=eth0 parent=1:3
                   queue id=4 dev=eth0 parent=1:4""",
         "rcv": "\n".join(f"sink port=500{i} flow={i} proto=udp" for i in (1, 2, 3))},
        more,
    )  # fmt: skip
    queue = run.records("snd", "queue", QUEUE)
    # the samples at 0, 0.1, ... s are taken before the packets of the same instant are sent
    for number, packets_a_second in ((2, 100), (3, 100), (4, 50)):
        mine = queue[queue["queue"] == number]
        assert mine["sent_pkts"].tolist() == [packets_a_second * step // 10 for step in range(21)]


def test_window_is_a_hard_bound(machine: Machine, tmp_path: Path) -> None:
    """Autotuning does not raise the window, however long the flow lasts."""
    run = boot(
        machine, tmp_path, 20,
        {"snd": SOURCES["greedy"].format(to="10.0.2.2"), "rcv": "sink port=5001 flow=1 window=60000"},
    )  # fmt: skip
    sent = run.records("snd", "send", SEND)
    assert sent[sent["t_ns"] > 1e9]["unacked_pkts"].max() * 1448 <= 60_000
    # one window of whole segments a round trip
    assert goodput_mbit(run, 1, 5, 20) == pytest.approx(60_000 * 8 / 0.1 / 1e6, rel=0.1)


def test_the_marks_of_red_are_counted(machine: Machine, tmp_path: Path) -> None:
    more = """
tc -n rtr qdisc del dev east parent 1:1
tc -n rtr qdisc add dev east parent 1:1 handle 2: red limit 200000 min 15000 max 45000 avpkt 1000 burst 30 \\
    probability 0.1 bandwidth 10mbit ecn
for node in snd rcv; do ip netns exec $node sysctl -q net.ipv4.tcp_ecn=1; done
"""
    run = boot(
        machine, tmp_path, 20,
        {"snd": SOURCES["greedy"].format(to="10.0.2.2"), "rcv": "sink port=5001 flow=1",
         "rtr": "queue id=1 dev=east handle=2:"},
        more,
    )  # fmt: skip
    assert run.records("rtr", "queue", QUEUE)["marks"][-1] > 3


def test_offloads_make_single_segments(machine: Machine, tmp_path: Path) -> None:
    """Off: every packet of a bulk flow is a single frame at the sender's own qdisc. On: some are longer."""
    more = {
        "off": "",
        "on": '"$A" --netns snd offload on eth0\n',
    }
    size = {}
    for state, lines in more.items():
        lines += "ip -n snd -d link show eth0\n"
        run = boot(
            machine, tmp_path / state, 5,
            {"snd": SOURCES["greedy"].format(to="10.0.2.2") + "\nqueue id=1 dev=eth0", "rcv": "sink port=5001 flow=1"},
            lines,
        )  # fmt: skip
        queue = run.records("snd", "queue", QUEUE)
        rows = queue[queue["qlen_pkts"] > 0]
        size[state] = (rows["backlog_bytes"] / rows["qlen_pkts"]).max()
        assert re.findall(r"gso_max_segs (\d+)", run.stderr) == ["1" if state == "off" else "65535"]
    assert size["off"] <= 1514
    assert size["on"] > 1514


def web_objects(run: Run) -> np.ndarray:
    rows = run.records("rcv", "web", WEB)
    objects: np.ndarray = rows[rows["flags"] & WEB_PAGE == 0]
    return objects


def test_web_times_are_exact(machine: Machine, tmp_path: Path) -> None:
    """An object of one packet takes the handshake and one round trip; records show lost SYNs by a flag."""
    plans = {
        "snd": "server port=80 flow=1",
        "rcv": "web id=1 kind=open rate_bps=1e5 mean_bytes=500 min_bytes=499 max_bytes=501 to=10.0.1.2 port=80",
    }
    clean = web_objects(boot(machine, tmp_path / "clean", 10, plans))
    done = clean[clean["bytes"] > 0]
    assert len(done) > 200
    assert np.all((done["dur_us"] >= 200_000) & (done["dur_us"] < 203_000))
    assert not np.any(clean["flags"] & (WEB_SYN_RETRANS | WEB_FAILED))
    lossy = web_objects(
        boot(machine, tmp_path / "lossy", 20, plans, "tc -n rtr qdisc change dev west root netem delay 50ms loss 20%\n")
    )
    again = lossy["flags"] & WEB_SYN_RETRANS != 0
    # each lost SYN adds a second or more
    assert np.all(lossy["dur_us"][again] > 1_000_000)
    assert 0.1 < again.mean() < 0.3


def test_web_connections_are_capped(machine: Machine, tmp_path: Path) -> None:
    """An object beyond conns_max fails at once and is recorded as failed; no connections pile up."""
    run = boot(
        machine, tmp_path, 5,
        {"snd": "server port=80 flow=1",
         "rcv": "web id=1 kind=open rate_bps=5e6 objects=8 conns_max=5 to=10.0.1.2 port=80"},
    )  # fmt: skip
    objects = web_objects(run)
    failed = objects["flags"] & WEB_FAILED != 0
    assert 0 < failed.sum() < len(objects)
    assert not objects["bytes"][failed].any()
    assert not objects["dur_us"][failed].any()


def test_twenty_thousand_connections(machine: Machine, tmp_path: Path) -> None:
    """1250 objects a second through 200 Mbit/s: ports, descriptors and memory suffice."""
    more = """
tc -n rtr qdisc del dev east root
tc -n rtr qdisc add dev east root netem delay 1ms limit 10000 rate 200mbit
tc -n rtr qdisc change dev west root netem delay 1ms limit 10000
tc -n snd qdisc change dev eth0 root netem delay 1ms limit 10000
"""
    run = boot(
        machine, tmp_path, 17,
        {"snd": "server port=80 flow=1", "rcv": "web id=1 kind=open rate_bps=1e8 to=10.0.1.2 port=80 stop_s=16.5"},
        more,
    )  # fmt: skip
    objects = web_objects(run)
    assert len(objects) >= 20_000
    assert not np.any(objects["flags"] & WEB_FAILED)
    # the offered load, which does not depend on what the network carries
    assert objects["bytes"].sum() * 8 / 16.5 == pytest.approx(1e8, rel=0.02)


def test_sessions_ask_for_as_many_pages_as_their_users_think_of(machine: Machine, tmp_path: Path) -> None:
    """20 users load for 2 s a page each 0.1 s plus the 10 ms over which its requests are spread: about 364 pages."""
    plan = "server port=80 flow=1\nweb id=1 kind=session sessions=20 page_s=0.1 to=::1 port=80 stop_s=2"
    run = boot(machine, tmp_path, 3, {"snd": plan})
    records = run.records("snd", "web", WEB)
    pages = records[records["flags"] & WEB_PAGE != 0]
    assert not np.any(records["flags"] & (WEB_FAILED | WEB_UNFINISHED))
    assert len(pages) == pytest.approx(20 * 2 / 0.11, rel=0.15)
