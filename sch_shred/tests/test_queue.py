# SPDX-License-Identifier: GPL-2.0
"""The shred queue inside the kernel: equal to sch_red without hints. Its configuration: tools/tc/tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from testbed.backends.machine import Machine
from testbed.backends.tools import build_tc_plugin
from testbed.backends.uml import HOST_ROOT, Uml
from testbed.run import runner
from testbed.spec.experiment import parse

pytestmark = pytest.mark.scenario

RED = "limit 300000 min 15000 max 45000 avpkt 1514 burst 20 bandwidth 10mbit probability 0.1"

# Two greedy flows and one of small packets, so that both of RED's regions and the limit are met.
EXPERIMENT = """
[experiment]
claim = "one run for the comparison of two queues"
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
rate_mbit = 2
[metric.one]
kind = "goodput"
flow = "one"
[metric.drops]
kind = "drops"
[metric.marks]
kind = "marks"
"""


@pytest.fixture(scope="module")
def backend() -> Uml:
    made = Uml()
    made.prepare(["sch_shred"])
    return made


def record(backend: Uml, queue: str, other: str, seed: int, ecn: str = "false", dscp: int = 0):
    """One run with `queue` at the bottleneck; `other` is set up on an idle device.

    So that both runs of a comparison read the clock equally often before they begin: in
    virtual time that costs time, and a microsecond decides a packet's fate in the end.
    """
    lines = f"{queue}\\nqdisc add dev lo root handle 99: {other}"
    experiment = parse(EXPERIMENT.format(queue=lines, ecn=ecn, dscp=dscp), Path("shred_comparison.toml"))
    (job,) = runner.plan(experiment, runner.Options(runs=1, seed=seed))
    return runner.run_one(job, backend)


def flows(run) -> list[bytes]:
    """All samples of all flows, and the packets dropped and marked so far at each step."""
    queue = run.series.queue
    return [run.series.send.tobytes(), run.series.recv.tobytes(), queue["drops"].tobytes(), queue["marks"].tobytes()]


def compare(backend: Uml, red: str, shred: str, seed: int, ecn: str = "false", dscp: int = 0) -> bool:
    """Is what each flow sent, got and lost the same under both queues, at every step?"""
    one = record(backend, red, shred, seed, ecn, dscp)
    two = record(backend, shred, red, seed, ecn, dscp)
    return flows(one) == flows(two)


@pytest.mark.parametrize(("flags", "seed"), [("", 1), ("", 2), ("ecn", 1), ("ecn harddrop", 2)])
def test_a_queue_without_hints_is_red_bit_for_bit(backend: Uml, flags: str, seed: int) -> None:
    """Same random numbers, same packets dropped or marked.

    Not so with adaptive: sch_red looks for it in the old flags, where today's tc does not put
    it, and never adapts (up to 7.2). Ours does; test_adaptive_adapts.
    """
    ecn = "true" if "ecn" in flags else "false"
    assert compare(backend, f"red {RED} {flags}", f"shred {RED} {flags} hint dscp", seed, ecn)


def test_hint_off_is_red_whatever_the_packets_say(backend: Uml) -> None:
    assert compare(backend, f"red {RED}", f"shred {RED} hint off", seed=3, dscp=10)


def test_with_hints_the_queue_is_not_red(backend: Uml) -> None:
    """The comparison above can fail: DSCP 10 on one flow reads as a window of ten packets."""
    assert not compare(backend, f"red {RED}", f"shred {RED} hint dscp", seed=3, dscp=10)


#: (at second, what happens to the queue, do packets with a DSCP count as hinted from then on?)
CHANGES = [
    (4, "change {queue} shred hint off", False),
    (6, "change {queue} shred hint dscp weight 0.1", True),
    (8, f"change {{queue}} shred {RED} ecn gentle", True),
    (10, f"change {{queue}} shred {RED.replace('300000', '50000')}", True),
    (12, "add dev east parent 10:1 handle 20: pfifo limit 30", True),
    (14, "change {queue} shred hint tos", True),
    (16, f"change {{queue}} shred {RED.replace('300000', '100000')}", True),
    (18, "show dev lo", True),
]


def test_changes_under_traffic(backend: Uml, tmp_path: Path) -> None:
    """Every option, the limit below what is queued, a child of another kind: packets go on, counters add up."""
    text = EXPERIMENT.format(queue=f"shred {RED} hint dscp", ecn="false", dscp=10)
    for at_s, words, _ in CHANGES:
        tc = "tc qdisc " + words.format(queue="dev east parent 1:1 handle 10:")
        run = f"tc -s -j qdisc show dev east > /tmp/out/at_{at_s}; {tc}"
        text += f'[[event]]\nat_s = {at_s}\nnode = "rtr"\nrun = "{run}"\n'
    (job,) = runner.plan(parse(text, Path("shred_changes.toml")), runner.Options(runs=1))
    series = runner.run_one(job, backend, keep=tmp_path).series
    shown = []
    for at_s, _, _ in CHANGES:
        queues = json.loads((tmp_path / "out" / f"at_{at_s}").read_text())
        shown.append(next(one for one in queues if one["kind"] == "shred"))
    for (_, words, counts), before, after in zip(CHANGES, shown, shown[1:]):
        new = {word: after["arrived"][word] - before["arrived"][word] for word in ("hinted", "unhinted")}
        assert new["unhinted"] > 100 and (new["hinted"] > 100) == counts, words
        # of what arrived some was sent on, some dropped, and no more is left than the limit lets in
        gone = after["packets"] + after["drops"] - before["packets"] - before["drops"]
        assert abs(sum(new.values()) - gone) < 250, words
    options = [one["options"] for one in shown]
    assert [one["hint"] for one in options] == ["dscp", "off", *["dscp"] * 4, "tos", "tos"]
    assert [one["limit"] for one in options] == [*[300000] * 4, *[50000] * 3, 100000]
    assert [one["ecn"] and one["gentle"] for one in options] == [*[False] * 3, True, *[False] * 4]
    assert options[1]["weight"] == pytest.approx(0.002, rel=0.01) and options[-1]["weight"] == pytest.approx(0.1)
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


def guest(backend: Uml, tmp_path: Path, script: str, **words: object) -> Path:
    """Run a script in a fresh guest with the queue's module and tc's plugin at hand."""
    job = tmp_path / "job"
    (job / "tc").mkdir(parents=True)
    shutil.copy(build_tc_plugin(), job / "tc")
    module = backend.tools().modules["sch_shred"]
    (job / "job.sh").write_text(script.format(host=HOST_ROOT, module=module, **words))
    Machine(backend.build).run(job, tmp_path / "out", wall_limit_s=120)
    return tmp_path / "out"


def test_adaptive_adapts(backend: Uml, tmp_path: Path) -> None:
    """An idle queue is below its target: max_p falls by a tenth twice a second."""
    (shown,) = json.loads((guest(backend, tmp_path, ADAPTIVE, red=RED) / "idle").read_text())
    # ten steps in 5 s, at most one more or less
    assert 0.1 * 0.9**11 <= shown["options"]["probability"] <= 0.1 * 0.9**9
