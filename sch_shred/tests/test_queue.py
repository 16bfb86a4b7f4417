# SPDX-License-Identifier: GPL-2.0
"""The shred queue inside the kernel: equal to sch_red without hints. Its configuration: tools/tc/tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from testbed import runner
from testbed.backend import HOST_ROOT, Uml, build_tc_plugin
from testbed.experiment import parse
from testbed.machine import Machine

pytestmark = pytest.mark.scenario

RED = "limit 300000 min 15000 max 45000 avpkt 1514 burst 20 bandwidth 10mbit probability 0.1"

# Two greedy flows and one of small packets, so that both of RED's regions and the limit are met.
EXPERIMENT = """
[experiment]
claim = "one run for the comparison of two queues"
source = "issue 6"
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
