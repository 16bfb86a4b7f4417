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
run = "mount -t tracefs none /sys/kernel/tracing; cat /sys/kernel/tracing/trace > /tmp/out/trace; ss -tin > /tmp/out/ss"
"""
EVENT = re.compile(r"(ledbat_\w+): sk=\S+ (.*)")
SS = re.compile(r"dctcp:\(ce_state:(\d+),alpha:(\d+),ab_ecn:(\d+),ab_tot:(\d+)\)")
MODES = ["slow_start", "avoid", "freeze", "ramp"]


def shown(tmp_path: Path, control: str, packets: int) -> tuple[list[tuple[str, dict[str, str]]], tuple[int, ...]]:
    """Trace events (name, fields) in their order, and what `ss -tin` says at the end: mode, base, queue, target."""
    backend = Uml()
    backend.prepare(["tcp_ledbat"])
    one = parse(FLOW.format(control=control, packets=packets), Path("tcp_ledbat_shown.toml"))
    (job,) = runner.plan(one, runner.Options(runs=1, seed=1))
    runner.run_one(job, backend, tmp_path)
    trace = (tmp_path / "out" / "trace").read_text()
    events = [(name, dict(field.split("=") for field in fields.split())) for name, fields in EVENT.findall(trace)]
    ss = (tmp_path / "out" / "ss").read_text()
    said = SS.search(ss)
    assert said, ss
    return events, tuple(int(word) for word in said.groups())


def test_events_and_ss_show_base_queue_target_and_mode(tmp_path: Path) -> None:
    """A buffer of 104 ms, a target of 100: slow start overruns it, and from then on the target is 60 % of it."""
    events, (mode, base_us, queue_us, target_us) = shown(tmp_path, "ledbat", 86)
    first = next(index for index, (name, _) in enumerate(events) if name == "ledbat_depth")
    before = [fields for name, fields in events[:first] if name == "ledbat_ack"]
    full_us = int(events[first][1]["full_us"])
    assert FULL_US * 0.9 < full_us <= FULL_US + TICK_US, events[first]
    assert {fields["target_us"] for fields in before} == {"100000"}
    last = [fields for name, fields in events if name == "ledbat_ack"][-1]
    assert last["mode"] == MODES[mode] == "avoid", last
    assert last["signal"] == "owd", last
    assert 0 <= base_us - BASE_US < 2 * PACKET_US  # an ACK answers two packets
    assert target_us == int(last["target_us"]) == pytest.approx(0.6 * int(last["full_us"]), abs=2), last
    assert abs(queue_us - target_us) < 0.1 * target_us
    for name, word in {"base_us": base_us, "queue_us": queue_us}.items():
        assert abs(int(last[name]) - word) < 2 * PACKET_US, (name, word, last)


def test_events_show_a_slowdown(tmp_path: Path) -> None:
    """Slow start, avoidance, the freeze at two packets, the ramp back to the window before, avoidance."""
    events, (mode, base_us, _, target_us) = shown(tmp_path, "ledbatpp", 200)
    modes = [fields for name, fields in events if name == "ledbat_mode"]
    names = [fields["mode"] for fields in modes]
    begin = names.index("freeze")
    assert names[begin - 1 : begin + 3] == ["avoid", "freeze", "ramp", "avoid"], names
    frozen, _, back = modes[begin : begin + 3]
    assert frozen["cwnd_pkts"] == "2"
    assert back["cwnd_pkts"] == frozen["ssthresh_pkts"], (frozen, back)
    assert MODES[mode] == names[-1]
    assert 0 <= base_us - BASE_US < 2 * PACKET_US  # an ACK answers two packets
    assert target_us == 60000
