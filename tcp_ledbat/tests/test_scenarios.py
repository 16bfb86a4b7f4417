# SPDX-License-Identifier: GPL-2.0
"""What tcp_ledbat shows of a flow: trace events and `ss -i`.

How a flow shares a link is shown by the experiments (testbed/experiments/ledbat_*.toml).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.backends.uml import Uml
from testbed.run import runner
from testbed.spec.experiment import parse

pytestmark = pytest.mark.scenario

# 10 Mbit/s, a round trip of 99.2 ms: 98 of way and a packet's 1.2
BASE_US = 99_200
PACKET_US = 1_211
# 86 packets, and the one being sent
FULL_US = 87 * PACKET_US
# of the peer's clock: what a one-way delay is exact to
TICK_US = 1_000
FLOW = """
[experiment]
claim = "one flow alone, and what it shows"
source = "tcp_ledbat/tests/test_scenarios.py"
duration_s = 20
measure_s = [10, 20]
runs = 1
[topology]
rate_mbit = 10
delay_ms = 48
access_delay_ms = 1
queue = {{ kind = "pfifo", packets = {packets} }}
[modules.tcp_ledbat]
target_us = 100000
[flow.bg]
cc = "{control}"
[metric.bg]
kind = "share"
flow = "bg"
[[event]]
at_s = 0
node = "snd"
run = "mount -t tracefs none /sys/kernel/tracing; echo 1 > /sys/kernel/tracing/events/ledbat/enable"
[[event]]
at_s = 19.97
node = "snd"
run = "mount -t tracefs none /sys/kernel/tracing; cat /sys/kernel/tracing/trace > /tmp/out/trace"
[[event]]
at_s = 19.97
node = "snd"
run = "ss -tin > /tmp/out/ss; cat /proc/net/lbe_ledbat > /tmp/out/counters"
"""
EVENT = re.compile(r"ledbat_state: (.*)")
SS = re.compile(r"bbr:\(bw:\d+bps,mrtt:([\d.]+),pacing_gain:([\d.]+),cwnd_gain:([\d.]+)\)")


def shown(tmp_path: Path, control: str, packets: int) -> tuple[list[dict[str, str]], tuple[float, ...], dict[str, str]]:
    """Trace events in their order; least delay in ms and gains as `ss -tin` says them at the end; the counters."""
    backend = Uml()
    backend.prepare(["tcp_ledbat"])
    one = parse(FLOW.format(control=control, packets=packets), Path("tcp_ledbat_shown.toml"))
    (job,) = runner.plan(one, runner.Options(runs=1, seed=1))
    runner.run_one(job, backend, tmp_path)
    trace = (tmp_path / "out" / "trace").read_text()
    events = [dict(word.split("=") for word in words.split()) for words in EVENT.findall(trace)]
    ss = (tmp_path / "out" / "ss").read_text()
    said = SS.search(ss)
    assert said, ss
    counters = (tmp_path / "out" / "counters").read_text()
    return events, tuple(float(word) for word in said.groups()), dict(line.split() for line in counters.splitlines())


def test_events_and_ss_show_base_target_and_depth(tmp_path: Path) -> None:
    """A buffer of 104 ms, a target of 100: slow start overruns it, and from then on the target is 60 % of it."""
    events, (mrtt, pacing_gain, cwnd_gain), counters = shown(tmp_path, "ledbat", 86)
    learnt = next(event for event in events if event["event"] == "learnt")
    full_us = int(learnt["full_us"])
    assert FULL_US * 0.9 < full_us <= FULL_US + TICK_US, learnt
    assert {event["target_us"] for event in events[: events.index(learnt)]} <= {"100000"}
    assert int(learnt["target_us"]) == pytest.approx(0.6 * full_us, abs=2)
    assert learnt["signal"] in ("owd", "rtt")
    assert 0 <= 1000 * mrtt - BASE_US < 2 * PACKET_US  # an ACK answers two packets
    assert pacing_gain == 1
    # its queue is 60 ms above 100
    assert 1.3 < cwnd_gain < 1.8
    assert len({(event["cookie"], event["src"], event["dst"]) for event in events}) == 1
    assert re.fullmatch(r"10\.0\.\d+\.\d+:\d+", learnt["dst"])
    assert counters == {"flows": "1", "yielding": "0", "yields": "0", "yielded_bytes": "0"}


def test_events_show_a_slowdown(tmp_path: Path) -> None:
    """Slow start, avoidance, the freeze at two packets, the ramp back to the window before, avoidance."""
    events, (mrtt, _, _), _ = shown(tmp_path, "ledbatpp", 200)
    modes = [event for event in events if event["event"] == "enters"]
    names = [event["mode"] for event in modes]
    begin = names.index("freeze")
    assert names[begin - 1 : begin + 3] == ["avoid", "freeze", "ramp", "avoid"], names
    frozen, _, back = modes[begin : begin + 3]
    assert frozen["cwnd_pkts"] == "2"
    assert back["cwnd_pkts"] == frozen["ssthresh_pkts"], (frozen, back)
    assert {event["target_us"] for event in events} == {"60000"}
    assert 0 <= 1000 * mrtt - BASE_US < 2 * PACKET_US  # an ACK answers two packets
