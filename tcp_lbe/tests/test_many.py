# SPDX-License-Identifier: GPL-2.0
"""Many flows of one host: they begin as one, and hear the path with a small rate and after many losses."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

from testbed.backends.uml import Uml
from testbed.run import job as jobs
from testbed.run.collect import compute
from testbed.run.runner import run_one
from testbed.spec.experiment import parse

pytestmark = pytest.mark.scenario

THOUSAND = """
[experiment]
claim = "a thousand flows start as one"
source = "made for this test"
duration_s = 5
measure_s = [2, 5]
sample_ms = 500
mem_mb = 1024
[topology]
rate_mbit = 100
access_rate_mbit = 1000
delay_ms = 18
access_delay_ms = 1
queue = { kind = "pfifo", packets = 1000 }
[flow.bg]
cc = "lbe"
count = 1000
options = { lowat = 32768 }
[metric.goodput]
kind = "goodput"
flow = "bg"
[metric.jain]
kind = "jain"
flow = "bg"
[metric.queue]
kind = "queue_mean"
"""

LITTLE = """
[experiment]
claim = "flows to which little is left give way, and come back"
source = "made for this test"
duration_s = 40
measure_s = [30, 40]
[topology]
rate_mbit = 2
delay_ms = 19
access_delay_ms = 1
queue = { kind = "tc", tc = "fq_codel limit 10240", packets = 86 }
[flow.be]
cc = "cubic"
start_s = 8
stop_s = 25
[flow.bg]
cc = "lbe"
count = 16
[metric.beside]
kind = "goodput"
flow = "bg"
from_s = 15
to_s = 25
[metric.after]
kind = "goodput"
flow = "bg"
"""


POLICED = """
[experiment]
claim = "flows whose packets START has lost use the link before all of them are sent again"
source = "made for this test"
duration_s = 25
measure_s = [12, 25]
[topology]
rate_mbit = 2.5
delay_ms = 113
access_delay_ms = 1
queue = { kind = "policer", packets = 47 }
[flow.bg]
cc = "lbe"
count = 4
[metric.goodput]
kind = "goodput"
flow = "bg"
"""


SLOW = """
[experiment]
claim = "behind a slow link with an AQM best effort has what it has alone; and what nobody else uses is used"
source = "made for this test"
duration_s = 40
measure_s = [15, 40]
[topology]
rate_mbit = {rate_mbit}
delay_ms = {delay_ms}
access_delay_ms = 1
queue = {{ kind = "tc", tc = "{aqm} limit 10240", packets = 50 }}
[flow.be]
cc = "cubic"
start_s = 8
count = {others}
[flow.bg]
cc = "lbe"
count = {flows}
[metric.be]
kind = "goodput"
flow = "be"
[metric.bg]
kind = "goodput"
flow = "bg"
"""


def measured(text: str, seed: int) -> dict[str, float]:
    backend = Uml()
    job = jobs.make("many", {}, seed, parse(text, Path("many.toml")).setting({}))
    backend.prepare(job.modules)
    return compute(job, run_one(job, backend))


def test_a_thousand_flows_fill_the_link_in_two_seconds() -> None:
    """The slots of all are spaced by the rate of the moment; at the first rate they would take eight seconds."""
    values = measured(THOUSAND, 1)
    assert values["goodput"] > 90
    assert values["jain"] > 0.8
    assert values["queue"] < 10


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_flows_to_which_little_is_left_are_heard(seed: int) -> None:
    """Sixteen flows have a packet in 46 ms, and nothing in flight: if only one of a slot's two packets were sent, its
    ACK could be a delayed one, which tells nothing. They would then keep that rate for ever."""
    values = measured(LITTLE, seed)
    assert values["beside"] < 0.5
    assert values["after"] > 0.9


def test_packets_that_are_sent_again_show_an_idle_link() -> None:
    """START has lost a round trip's packets of each flow at a policer. A train whose packets are all sent again tells
    as much as any other; if it counted as lost, none would pass before the last of them had arrived."""
    assert measured(POLICED, 1)["goodput"] > 2


@pytest.mark.parametrize(("aqm", "flows"), [("codel", 1), ("codel", 8), ("pie", 1), ("pie", 8)])
def test_behind_a_slow_aqm_best_effort_pays_for_no_queue_of_lbe(aqm: str, flows: int) -> None:
    """At 1 Mbit/s two packets take longer than CoDel lets a queue last; who ignores losses starves who does not."""
    case = {"rate_mbit": 1, "delay_ms": 49, "aqm": aqm, "others": 1}
    texts = [SLOW.format(**case, flows=number) for number in (0, flows)]
    alone, beside = (mean(measured(text, seed)["be"] for seed in (1, 2, 3)) for text in texts)
    assert beside > 0.8 * alone


@pytest.mark.parametrize(
    ("rate_mbit", "delay_ms", "aqm", "flows"),
    [(0.42, 44, "pie", 8), (0.41, 33, "fq_codel", 1), (1.19, 1.5, "pie", 8), (0.7, 2.5, "codel", 1)],
)
def test_a_link_that_holds_few_packets_is_used(rate_mbit: float, delay_ms: float, aqm: str, flows: int) -> None:
    """Its packets are farther apart than the time after which an ACK may be a delayed one."""
    case = {"rate_mbit": rate_mbit, "delay_ms": delay_ms, "aqm": aqm, "others": 0, "flows": flows}
    assert measured(SLOW.format(**case), 1)["bg"] > 0.85 * rate_mbit


@pytest.mark.parametrize("seed", [2, 6, 8])
def test_the_first_packets_tell_the_base_delay(seed: int) -> None:
    """At 450 kbit/s single ACKs come 27 ms apart, and TCP marks the first ten packets as limited by the application."""
    case = {"rate_mbit": 0.45, "delay_ms": 33, "aqm": "codel", "others": 0, "flows": 1}
    assert measured(SLOW.format(**case), seed)["bg"] > 0.9 * 0.45
