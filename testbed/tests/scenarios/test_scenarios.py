# SPDX-License-Identifier: GPL-2.0
"""Every experiment, in its short form on the real kernel, passes its checks; and checks can fail."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from testbed.backends.uml import Uml
from testbed.base.errors import LbeError
from testbed.judge import checks
from testbed.present import text
from testbed.results.files import ResultSet
from testbed.run.runner import Options, plan, run, warm
from testbed.spec.experiment import Experiment, load, names

pytestmark = pytest.mark.scenario


def run_short(
    one: Experiment, sets: dict[str, str] | None = None, cases: dict[str, list[str]] | None = None
) -> ResultSet:
    """Run the short form; reuse cached runs with the same content (test_determinism shows that this is sound)."""
    options = Options("short", command="pytest", sets=sets or {}, cases=cases or {})
    backend = Uml()
    backend.prepare({module for job in plan(one, options) for module in job.modules})
    return run(one, backend, options, lambda *_: None)


@pytest.fixture(scope="module", autouse=True)
def all_cpus(request: pytest.FixtureRequest) -> None:
    """Run the short forms of all selected experiments at once, not one experiment after the other."""
    selected = [item for item in request.session.items if item.path == request.path]
    parameters = [getattr(getattr(item, "callspec", None), "params", {}) for item in selected]
    chosen = [one["name"] for one in parameters if "name" in one]
    made = []
    for name in chosen:
        made += plan(load(name), Options("short"))
    backend = Uml()
    try:
        backend.prepare({module for job in made for module in job.modules})
        warm(made, backend)
    except LbeError:
        pass  # the test of that experiment fails with the same error


@pytest.mark.parametrize("name", names())
def test_experiment(name: str) -> None:
    one = load(name)
    made = run_short(one)
    verdicts = checks.judge(one, made)
    assert not checks.failures(verdicts), "\n" + text.text(one, made)
    assert any(verdict.status == "pass" for verdict in verdicts), f"{name}: nothing was checked"


def test_a_flow_that_does_not_yield_is_caught() -> None:
    one = load("lp_beside_cubic")
    made = run_short(one, sets={"flow.bg.cc": "cubic"}, cases={"background": ["lp"]})
    assert checks.failures(checks.judge(one, made))


def test_the_kernel_s_own_lp_is_caught() -> None:
    one = load("lp_table1")
    made = run_short(one, sets={"flow.lp.cc": "lp_intree"}, cases={"background": ["alone", "lp"], "link": ["10M"]})
    assert checks.failures(checks.judge(one, made))


def test_strict_priority_is_the_limit() -> None:
    """Strict priority, the reference: the low flow costs the other nothing, whichever began first."""
    one = load("demo")
    made = run_short(one, cases={"background": ["strict"]})
    for result in made.results:
        assert result.metrics["foreground"] > 99.5 and result.metrics["background"] < 0.5
        assert not math.isnan(result.metrics["alone"])


LINK = """
[experiment]
claim = "one cubic flow fills 10 Mbit/s of Ethernet to 9.41 Mbit/s of payload"
source = "1448 octets of payload in 1538 on the wire"
duration_s = 30
measure_s = [10, 30]
runs = 1
[flow.a]
[vary.way]
v4 = {}
v6 = { "flow.a.family" = 6 }
backward = { "flow.a.source" = "rcv", "flow.a.to" = "snd" }
[metric.a]
kind = "goodput"
flow = "a"
[metric.rtt]
kind = "rtt_mean"
flow = "a"
"""


def test_a_link_carries_what_its_framing_allows(tmp_path: Path) -> None:
    path = tmp_path / "link.toml"
    path.write_text(LINK)
    for result in run_short(load(str(path))).results:
        # payload of a packet with TCP timestamps; IPv6's header is 20 octets longer
        payload = 1428 if result.case["way"] == "v6" else 1448
        assert result.metrics["a"] == pytest.approx(10 * payload / 1538, abs=0.01), result.case
        # the path takes 100 ms, the queue at most 86 packets of 1.23 ms
        assert 100 < result.metrics["rtt"] < 210, result.case
