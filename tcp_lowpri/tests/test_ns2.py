# SPDX-License-Identifier: GPL-2.0
"""The test-only controls with ns-2's loss recovery: a reference that cannot run proves nothing."""

from __future__ import annotations

import pytest

from testbed.backends.uml import Uml
from testbed.run.runner import Options, plan, run
from testbed.spec.experiment import load

pytestmark = pytest.mark.scenario


def test_five_flows_of_ns2_recovery_fill_a_link_as_reno_does() -> None:
    one = load("lowpri_short_delay")
    options = Options(
        "default",
        runs=1,
        command="pytest",
        sets={"experiment.duration_s": 30, "experiment.measure_s": [10, 30], "flow.pre.stop_s": 29},
        cases={"protocol": ["sack", "ns2_sack", "ns2_background"], "kernel": ["y2004"], "buffer": ["bdp"]},
    )
    # kernel 6.1 has no net.ipv4.tcp_rto_min_us, which the figures of 2004 need
    backend = Uml(series="6.12")
    backend.prepare({module for job in plan(one, options) for module in job.modules})
    made = {result.case["protocol"]: result.metrics for result in run(one, backend, options, lambda *_: None).results}
    for name, metrics in made.items():
        # 15 packets of buffer for a round trip of 12: even halved windows fill it, but for time-outs of 1 s
        assert metrics["use"] > 90, name
        assert metrics["retransmits"] > 100, name
    # no PRR: other transmissions, so another run
    assert made["ns2_sack"]["retransmits"] != made["sack"]["retransmits"]
    # a quarter cut, not half: more losses
    assert made["ns2_background"]["retransmits"] > 1.1 * made["ns2_sack"]["retransmits"]
