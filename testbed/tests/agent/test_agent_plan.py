# SPDX-License-Identifier: GPL-2.0
"""The agent's plans and verbs: which are accepted, and with which message the others are refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from testbed.tests.agent.agent_build import agent

HEAD = "node a\nend_s 60\nout out\n"
FLOW = "flow id=1 kind=greedy to=10.0.0.1 port=5001 "
CBR = "flow id=1 kind=cbr rate_bps=1e6 to=10.0.0.1 port=5001 "
WEB = "web id=1 kind=open rate_bps=1e6 to=10.0.0.1 port=80 "

GOOD = f"""\
# a comment, and one of everything
node a          # the node
zero_ns 5000000000
end_s 60.5
sample_ms 50
out some/where
sink port=5001 flow=1
sink port=5001 flow=2 proto=udp
sink port=5002 flow=3 mode=slow rate_bps=1e6 window=65536
{FLOW}cc=cubic start_s=1 stop_s=2.5 dscp=8 mark=3 priority=6 switch_s=1.5:reno switch_s=2:cubic
flow id=2 kind=cbr proto=udp rate_bps=6e6 pkt_bytes=1000 to=fd00::1 port=5001
flow id=3 kind=square proto=udp rate_bps=6e6 period_s=0.2 duty=0.3 to=fd00::1 port=5001
flow id=4 kind=onoff on_s=1 off_s=2 exp=1 seed=7 to=10.0.0.1 port=5004
flow id=5 kind=trace proto=udp file=x.trace time_scale=0.5 loop=1 to=10.0.0.1 port=5001
flow id=6 kind=bytes bytes=250000 repeat_s=0.5 verify=1 corrupt_at=5 to=10.0.0.1 port=5006
server port=80 flow=9 cc=reno
{WEB.replace("id=1", "id=9")}objects=8 pace=poisson
web id=10 kind=session sessions=5 page_s=2 object_ms=3 to=::1 port=80
queue id=1 dev=eth0
queue id=2 dev=eth0 handle=1:
queue id=3 dev=eth0 parent=1:a
"""

BAD = [
    ("end_s 60\nout o\n", "a plan needs node"),
    ("node a\nout o\n", "a plan needs end_s"),
    ("node a\nend_s 1\n", "a plan needs out"),
    ("node a/b\nend_s 1\nout o\n", "node a/b: must not contain /"),
    (HEAD + "node b\n", ":4: node is given twice"),
    (HEAD + "end_s\n", ":4: end_s takes one value"),
    (HEAD + "speed 5\n", ":4: unknown directive speed"),
    (HEAD + "sample_ms 0\n", ":4: sample_ms=0: out of range 0.1 to 1000000"),
    (HEAD + "sample_ms fast\n", ":4: sample_ms=fast: not a number"),
    (HEAD + "sample_ms nan\n", ":4: sample_ms=nan: not a number"),
    (HEAD + "sample_ms 0x10\n", ":4: sample_ms=0x10: not a number"),
    (HEAD + FLOW + "colour=red\n", ":4: unknown key colour"),
    (HEAD + FLOW + "cc\n", ":4: cc: must be key=value"),
    (HEAD + FLOW + "dscp=64\n", ":4: dscp=64: out of range 0 to 63"),
    (HEAD + FLOW + "dscp=1.5\n", ":4: dscp=1.5: not an integer, range 0 to 63"),
    (HEAD + FLOW + "dscp=\n", ":4: dscp=: not a number"),
    (HEAD + FLOW + "dscp=1 dscp=2\n", ":4: dscp is given twice"),
    (HEAD + FLOW + "start_s=-1\n", ":4: start_s=-1: out of range 0 to 1000000"),
    (HEAD + FLOW + "start_s=60\n", ":4: start_s is not before end_s"),
    (HEAD + FLOW + "start_s=5 stop_s=5\n", ":4: stop_s must be greater than start_s"),
    (HEAD + FLOW + "cc=a_name_that_is_too_long\n", ":4: cc=a_name_that_is_too_long: must have 1 to 15 characters"),
    (HEAD + FLOW + "switch_s=5\n", ":4: switch_s=5: must be SECONDS:NAME"),
    (HEAD + FLOW + "bytes=5\n", ":4: greedy has no use for bytes"),
    (HEAD + FLOW + "rate_bps=5\n", ":4: greedy has no use for rate_bps"),
    (HEAD + FLOW + "proto=udp\n", ":4: greedy needs proto=tcp"),
    (HEAD + FLOW + "pkt_bytes=5\n", ":4: tcp has no use for pkt_bytes"),
    (HEAD + FLOW + "corrupt_at=5\n", ":4: corrupt_at needs verify=1"),
    (HEAD + CBR + "proto=udp fastopen=1\n", ":4: udp has no use for fastopen"),
    (HEAD + FLOW + "fastopen=2\n", ":4: fastopen=2: out of range 0 to 1"),
    (HEAD + CBR + "proto=udp cc=reno\n", ":4: udp has no use for cc"),
    (HEAD + FLOW + "\n" + CBR + "\n", ":5: id=1: already in line 4"),
    (HEAD + FLOW.replace("id=1", "id=50000") + "\n", ":4: id=50000: above 45535 a flow needs sport"),
    (HEAD + FLOW.replace("greedy", "steady") + "\n",
     ":4: kind=steady: must be one of greedy, bytes, cbr, square, onoff, trace"),
    (HEAD + FLOW.replace("10.0.0.1", "10.0.0") + "\n", ":4: to=10.0.0: not an IPv4 or IPv6 address"),
    (HEAD + FLOW.replace("5001", "65536") + "\n", ":4: port=65536: out of range 1 to 65535"),
    (HEAD + "flow id=1 kind=greedy port=1\n", ":4: flow needs to"),
    (HEAD + "flow id=1 kind=cbr to=::1 port=1\n", ":4: cbr needs rate_bps"),
    (HEAD + "flow id=1 kind=square proto=udp period_s=1 to=::1 port=1\n", ":4: udp needs rate_bps"),
    (HEAD + "flow id=1 kind=onoff on_s=1 to=::1 port=1\n", ":4: onoff needs off_s"),
    (HEAD + "flow id=1 kind=bytes bytes=1 repeat_count=3 to=::1 port=1\n", ":4: repeat_count needs repeat_s"),
    (HEAD + "flow id=1 kind=trace file=x to=::1 port=1\n", ":4: trace needs proto=udp"),
    (HEAD + "sink port=1\n", ":4: sink needs flow"),
    (HEAD + "sink port=1 flow=1\nsink port=1 flow=2\n", ":5: port=1: already in line 4"),
    (HEAD + "sink port=1 flow=1\nserver port=1 flow=2\n", ":5: port=1: already in line 4"),
    (HEAD + "sink port=1 flow=1 proto=udp\nsink port=1 flow=2 proto=udp\n", ":5: port=1: already in line 4"),
    (HEAD + "sink port=1 flow=1 mode=slow\n", ":4: mode=slow needs rate_bps"),
    (HEAD + "sink port=1 flow=1 rate_bps=5\n", ":4: rate_bps needs mode=slow"),
    (HEAD + "sink port=1 flow=1 proto=udp verify=1\n", ":4: udp has no use for verify"),
    (HEAD + "sink port=1 flow=1 window=5000 rcvbuf=5000\n", ":4: window and rcvbuf exclude each other"),
    (HEAD + WEB + "sessions=2\n", ":4: open has no use for sessions"),
    (HEAD + WEB + "max_bytes=5000\n", ":4: mean_bytes=10000: must lie between min_bytes=12 and max_bytes=5000"),
    (HEAD + WEB.replace("rate_bps=1e6", "") + "\n", ":4: open needs rate_bps"),
    (HEAD + FLOW + "\n" + WEB + "\n", ":5: id=1: already in line 4"),
    (HEAD + "queue id=1\n", ":4: queue needs dev"),
    (HEAD + "queue id=1 dev=a_device_that_is_too_long\n",
     ":4: dev=a_device_that_is_too_long: must have 1 to 15 characters"),
    (HEAD + "queue id=1 dev=e handle=10000:\n", ":4: handle=10000:: not a handle, such as 1: or 1:2 (hexadecimal)"),
    (HEAD + "queue id=1 dev=e handle=1\n", ":4: handle=1: not a handle, such as 1: or 1:2 (hexadecimal)"),
    *((HEAD + f"queue id=1 dev=e parent={text}\n",
       f":4: parent={text}: not a handle, such as 1: or 1:2 (hexadecimal)")
      for text in ("", ":", "0:1", "1:10000", "1:2:3", "x:1", "root")),
    (HEAD + "queue id=1 dev=e\nqueue id=1 dev=f\n", ":5: queue id=1: already in line 4"),
]  # fmt: skip


def call(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([agent(), *words], capture_output=True, text=True, timeout=300, check=False)


def check(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    plan = folder / "a.plan"
    plan.write_text(text)
    return call("check", plan)


def test_one_of_everything_is_accepted(tmp_path: Path) -> None:
    done = check(tmp_path, GOOD)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(": 6 flows, 3 sinks, 2 web clients, 1 servers, 3 queues\n")


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message for _, message in BAD])
def test_is_refused(tmp_path: Path, text: str, message: str) -> None:
    done = check(tmp_path, text)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, "one message"
    assert message in done.stderr
    assert done.stderr.startswith(str(tmp_path / "a.plan") + ":")


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    done = call("check", tmp_path / "none")
    assert done.returncode == 2
    assert "No such file" in done.stderr


def test_a_bad_plan_writes_nothing(tmp_path: Path) -> None:
    plan = tmp_path / "a.plan"
    plan.write_text(f"node a\nend_s 1\nout {tmp_path}\nspeed 5\n")
    assert call("run", plan).returncode == 2
    assert list(tmp_path.iterdir()) == [plan]


@pytest.mark.parametrize(
    "words",
    [(), ("run",), ("run", "a", "b"), ("fly",), ("offload", "off"), ("offload", "maybe", "eth0"),
     ("sysctl",), ("facts", "a"), ("--netns", "a"),
     ("wait-until", "soon"), ("wait-until", "-5"), ("wait-until", "99999999999999999999")],
    ids=lambda words: " ".join(words) or "nothing",
)  # fmt: skip
def test_bad_usage(words: tuple[str, ...]) -> None:
    done = call(*words)
    assert done.returncode == 2
    assert done.stderr
    assert not done.stdout


def test_help_names_every_key_and_record() -> None:
    text = call("--help").stdout
    source = (Path(__file__).resolve().parents[2] / "agent" / "plan.c").read_text()
    keys = set(re.findall(r'^\t\{ "(\w+)", T_', source, re.MULTILINE))
    assert len(keys) > 40
    assert not [key for key in keys if not re.search(rf"^  {key} ", text, re.MULTILINE)]
    for record in ("send", "recv", "queue", "web", "events"):
        assert f"<out>/<node>.{record} " in text


def test_a_past_zero_is_refused(tmp_path: Path) -> None:
    plan = tmp_path / "a.plan"
    plan.write_text(f"node a\nzero_ns 1\nend_s 1\nout {tmp_path}\n")
    done = call("run", plan)
    assert done.returncode == 1
    assert "zero_ns 1 has passed" in done.stderr
