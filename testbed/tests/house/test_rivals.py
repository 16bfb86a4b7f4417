# SPDX-License-Identifier: GPL-2.0
"""A bound on the harm of one of our controls to other traffic is missed by a rival control, or has a reason to stay."""

from __future__ import annotations

import pytest

from testbed.base.errors import LbeError
from testbed.judge import rivals
from testbed.results import digest
from testbed.results.files import ResultSet
from testbed.spec.experiment import Experiment, case_name, names
from testbed.tests.made import experiment, result_set

TEXT = """
[experiment]
title = "best effort beside a control of ours and beside cubic"
claim = "c"
source = "s"
duration_s = 20
measure_s = [10, 20]
runs = 2
[topology]
rate_mbit = 10
queue = { kind = "pfifo", packets = 50 }
[flow.be]
[flow.bg]
low = true
[flow.web]
kind = "session"
sessions = 2
count = 0
[vary.background]
nobody = { "flow.bg.count" = 0 }
lp = { "flow.bg.cc" = "lp", "flow.web.cc" = "lp" }
strict = { "topology.queue" = { kind = "prio", packets = 50 } }
vegas = { "flow.bg.cc" = "vegas" }
cubic = {}
vulture = {}
[[event]]
at_s = 1
case = { background = "vulture" }
node = "rcv"
run = "sh -c 'for port in $(seq 5002 5003); do vulturectl rule add --local-port $port; done'"
[metric.be]
kind = "goodput"
flow = "be"
[metric.bg]
kind = "goodput"
flow = "bg"
[metric.rtt]
kind = "rtt_mean"
flow = "be"
[metric.used]
kind = "spare_use"
flow = "be"
[[check]]
"""
LEAST = 'metric = "be"\ncase = { background = "lp" }\nmin = 8\nwhy = "w"\n'
KEPT = '[[check.rival]]\nwhy = "it shows safety"\n'
VALUES = {"nobody": 9.0, "lp": 8.9, "strict": 9.0, "vegas": 8.5, "cubic": 5.0, "vulture": 8.8}


def found(check: str, **values: float) -> tuple[Experiment, ResultSet]:
    one = experiment(TEXT + check)
    numbers = {"bg": 1.0, "rtt": 100.0, "used": 1.0}
    return one, result_set(one, {case: [numbers | {"be": be}] * 2 for case, be in (VALUES | values).items()})


def said(check: str, **values: float) -> list[str]:
    return [one.text for one in rivals.beside(*found(check, **values))]


def silent(check: str, **values: float) -> int:
    return len(rivals.undistinguished(rivals.beside(*found(check, **values))))


def needless(check: str, **values: float) -> list[str]:
    one, results = found(check, **values)
    return [kept.why for kept in rivals.needless(one, rivals.beside(one, results))]


def test_the_committed_bounds_are_missed_beside_a_rival_or_say_why_they_are_kept() -> None:
    silent, needless = [], []
    for name, document in digest.load_all(digest.FOLDER).items():
        if name not in names():
            continue
        one = digest.experiment_of(document)
        bounds = rivals.beside(one, digest.result_set(document))
        silent += [
            f"{name}: {bound.check.metric}, {case_name(bound.case)}: {bound.said}"
            for bound in rivals.undistinguished(bounds)
        ]
        needless += [f"{name}: {kept.case}: {kept.why}" for kept in rivals.needless(one, bounds)]
    assert not silent, "a rival meets these bounds, and `rival` does not say why they are kept:\n" + "\n".join(silent)
    assert not needless, "no rival meets these bounds, so `rival` must go:\n" + "\n".join(needless)


def test_a_bound_that_the_rival_misses_tells_them_apart() -> None:
    assert said(LEAST) == ["cubic 5 misses it"]
    assert not silent(LEAST)


def test_a_bound_that_the_rival_meets_must_say_why_it_is_kept() -> None:
    assert said(LEAST, cubic=8.5) == ["cubic 8.5 meets it too"]
    assert silent(LEAST, cubic=8.5) == 1
    kept = LEAST + KEPT
    assert said(kept, cubic=8.5) == ["cubic 8.5 meets it too: it shows safety"]
    assert not silent(kept, cubic=8.5) and not needless(kept, cubic=8.5)
    assert needless(kept) == ["it shows safety"], "the rival misses the bound: nothing is to be excused"


def test_a_reason_is_of_its_cases_alone() -> None:
    both = LEAST.replace('"lp"', '["lp", "vulture"]')
    assert silent(both, cubic=8.5) == 2
    assert silent(both + KEPT + 'case = { background = "vulture" }\n', cubic=8.5) == 1
    of_none = both + KEPT + 'case = { background = "vegas" }\n'
    assert needless(of_none, cubic=8.5) == ["it shows safety"]
    with pytest.raises(LbeError, match=r"rival\[0\].case.background: no variant 'reno'"):
        found(LEAST + KEPT + 'case = { background = "reno" }\n')


def test_each_run_of_a_rival_must_meet_a_bound_on_each_run() -> None:
    one = experiment(TEXT + LEAST + "each = true\n")
    numbers = {"bg": 1.0, "rtt": 100.0, "used": 1.0}
    values = {case: [numbers | {"be": be}] * 2 for case, be in VALUES.items()}
    values["cubic"] = [numbers | {"be": 9.9}, numbers | {"be": 7.0}]
    assert not rivals.undistinguished(rivals.beside(one, result_set(one, values)))


def test_a_rival_that_was_not_run_is_said() -> None:
    one = experiment(TEXT + LEAST)
    made = result_set(one, {"lp": [{"be": 8.9}] * 2})
    assert [bound.text for bound in rivals.beside(one, made)] == ["cubic not run"]


def test_nobody_strict_priority_and_another_gentle_control_are_no_rivals() -> None:
    one = experiment(TEXT.replace("cubic = {}\n", "") + LEAST)
    numbers = {"be": 9.0, "bg": 1.0, "rtt": 100.0, "used": 1.0}
    made = result_set(one, {case: [numbers] * 2 for case in VALUES if case != "cubic"})
    assert [bound.text for bound in rivals.beside(one, made)] == ["no rival in the experiment"]


@pytest.mark.parametrize(
    "change",
    [
        '"topology.rate_mbit" = 20',
        '"flow.be.cc" = "reno"',
        '"flow.be.count" = 2',
        '"flow.web.count" = 1',
        '"experiment.measure_s" = [1, 5]',
    ],
)
def test_a_rival_is_of_the_same_run(change: str) -> None:
    one = experiment(TEXT.replace("cubic = {}\n", f"cubic = {{ {change} }}\n") + LEAST)
    made = result_set(one, {case: [{"be": 9.0, "bg": 1.0, "rtt": 100.0, "used": 1.0}] * 2 for case in VALUES})
    assert [bound.text for bound in rivals.beside(one, made)] == ["no rival in the experiment"]


def test_the_receiver_s_control_is_known_by_the_ports_of_its_commands() -> None:
    assert said(LEAST.replace('"lp"', '"vulture"')) == ["cubic 5 misses it"]


def test_a_flow_that_goes_to_our_control_in_the_run_is_ours() -> None:
    one = experiment(TEXT.replace("cubic = {}\n", 'cubic = { "flow.bg.options" = { switch_s = "5:lp" } }\n') + LEAST)
    made = result_set(one, {case: [{"be": 9.0, "bg": 1.0, "rtt": 100.0, "used": 1.0}] * 2 for case in VALUES})
    assert [bound.text for bound in rivals.beside(one, made)] == ["no rival in the experiment"]


@pytest.mark.parametrize(
    "check",
    [
        # the metric is of the background flow itself
        'metric = "bg"\ncase = { background = "lp" }\nmin = 0.5\nwhy = "w"\n',
        # a bound from below on the harm, not from above
        'metric = "be"\ncase = { background = "lp" }\nmax = 9\nwhy = "w"\n',
        'metric = "rtt"\ncase = { background = "lp" }\nmin = 9\nwhy = "w"\n',
        # the background is not one of our controls
        'metric = "be"\ncase = { background = "vegas" }\nmin = 8\nwhy = "w"\n',
        # the metric does not tell an effect on the other flow
        'metric = "used"\ncase = { background = "lp" }\nmin = 0\nwhy = "w"\n',
        # the bound already is on the distance from the rival
        'metric = "be"\ncase = { background = "lp" }\nof = { background = "cubic" }\nmin = 8\nwhy = "w"\n',
        # no bound
        'metric = "be"\ncase = { background = "lp" }\npaper = 8\n',
    ],
)
def test_other_bounds_are_not_asked(check: str) -> None:
    assert said(check) == []


def test_delay_is_limited_from_above() -> None:
    assert said('metric = "rtt"\ncase = { background = "lp" }\nmax = 120\nwhy = "w"\n') == ["cubic 100 meets it too"]
