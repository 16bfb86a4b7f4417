# SPDX-License-Identifier: GPL-2.0
"""A thousand flows of one host begin together: the path's rate doubles as one flow's does."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.backends.uml import Uml
from testbed.run import job as jobs
from testbed.run.collect import compute
from testbed.run.runner import run_one
from testbed.spec.experiment import parse

pytestmark = pytest.mark.scenario

EXPERIMENT = """
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


def test_a_thousand_flows_fill_the_link_in_two_seconds() -> None:
    """The slots of all are spaced by the rate of the moment; at the first rate they would take eight seconds."""
    backend = Uml()
    job = jobs.make("many", {}, 1, parse(EXPERIMENT, Path("many.toml")).setting({}))
    backend.prepare(job.modules)
    values = compute(job, run_one(job, backend))
    assert values["goodput"] > 90
    assert values["jain"] > 0.8
    assert values["queue"] < 10
