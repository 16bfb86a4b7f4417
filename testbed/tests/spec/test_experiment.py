# SPDX-License-Identifier: GPL-2.0
"""Experiment files: all of the suite load in every form; an error names file, place and allowed values."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.judge import claims
from testbed.run import job
from testbed.spec.experiment import MODES, case_name, load, names, parse_set
from testbed.spec.tables import ExperimentError
from testbed.tests.made import TWO_FLOWS, experiment

HEAD = """
[experiment]
claim = "c"
source = "s"
duration_s = 10
measure_s = [2, 10]
"""


#: experiments whose numbers are judged as claims of a paper, and the one whose cases are compared with ns-2's
JUDGED_ELSEWHERE = {number.experiment for claim in claims.claims() for number in claim.number} | {"ns2_tcp"}


def test_there_are_experiments() -> None:
    assert len(names()) >= 10


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("mode", MODES)
def test_every_experiment_becomes_jobs(name: str, mode: str) -> None:
    one = load(name)
    cases = one.cases(mode)
    assert cases
    for case in cases:
        made = job.make(name, case, 1, one.setting(case, mode))
        assert made.files["job.sh"].startswith("#!/bin/sh\n")
        # the guest reads ASCII; files for it must contain no path of this machine
        assert all(text.isascii() for text in made.files.values())


@pytest.mark.parametrize("name", names())
def test_every_experiment_says_what_it_claims_and_checks_it(name: str) -> None:
    one = load(name)
    assert one.head.title and one.head.claim and one.head.source and one.head.drawing.strip() and one.head.tags
    assert name in JUDGED_ELSEWHERE or [check for check in one.checks if check.min is not None or check.max is not None]


def test_cases_are_all_combinations_but_the_excluded() -> None:
    text = (
        HEAD
        + """
    [flow.a]
    [vary.x]
    p = {}
    q = { "topology.rate_mbit" = 3 }
    [sweep.cc]
    key = "flow.a.cc"
    values = ["reno", "cubic"]
    [[exclude]]
    x = "q"
    cc = "reno"
    """
    )
    one = experiment(text)
    assert [case_name(case) for case in one.cases()] == ["x=p cc=reno", "x=p cc=cubic", "x=q cc=cubic"]
    setting = one.setting({"x": "q", "cc": "cubic"})
    assert setting.topology.rate_mbit == 3 and setting.flows["a"].cc == "cubic"


def test_overrides_come_in_order_file_mode_case_command() -> None:
    text = (
        HEAD
        + """
    [topology]
    rate_mbit = 1
    [flow.a]
    [vary.x]
    p = {}
    q = { "topology.rate_mbit" = 3 }
    [short]
    set = { "topology.rate_mbit" = 2 }
    """
    )
    one = experiment(text)
    assert one.setting({"x": "p"}).topology.rate_mbit == 1
    assert one.setting({"x": "p"}, "short").topology.rate_mbit == 2
    assert one.setting({"x": "q"}, "short").topology.rate_mbit == 3
    assert one.setting({"x": "q"}, "short", {"topology.rate_mbit": 4}).topology.rate_mbit == 4


def test_events_become_timed_commands_in_their_cases_alone() -> None:
    text = (
        HEAD
        + """
    [flow.a]
    cc = "lp"
    [vary.x]
    p = {}
    q = {}
    [[event]]
    at_s = 4
    case = { x = "q" }
    set = { "topology.loss_pct" = 5.0 }
    [[event]]
    at_s = 5
    node = "rcv"
    run = "echo it's time"
    """
    )
    one = experiment(text)
    plain, changed = (job.make("e", {"x": x}, 1, one.setting({"x": x})) for x in "pq")
    assert len(plain.events) == 1
    assert [at for at, _, _ in changed.events] == [4, 5]
    assert "tc qdisc change" in changed.events[0][2] and "loss random 5%" in changed.events[0][2]
    assert "until_cs 1400" in changed.files["events.sh"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[flow.be]", "[flow.be]\ncongestion = 1"), r"made.toml:flow.be.congestion: unknown key.*allowed are kind"),
        (("rate_mbit = 10", "rate_mbitt = 10"), r"topology.rate_mbitt: unknown key \(did you mean 'rate_mbit'\?\)"),
        (('claim = "one yields"', ""), "claim is missing"),
        (("rate_mbit = 10", 'rate_mbit = "ten"'), "topology.rate_mbit = 'ten': expected float"),
        (("duration_s = 20", "duration_s = 15"), "must lie within 0 to duration_s = 15"),
        (("runs = 2", "runs = 2.5"), "runs = 2.5: expected int"),
        (("runs = 2", "runs = 0"), "experiment.runs = 0: allowed are 1 to 10000"),
        (("runs = 2", "runs = 2\nmem_mb = 1"), "experiment.mem_mb = 1: allowed are 64 to 65536"),
        (('kind = "goodput"\nflow = "be"', 'kind = "speed"\nflow = "be"'), "kind = 'speed': allowed are goodput"),
        (('flow = "bg"', 'flow = "bgg"'), "no flow 'bgg'; there are be, bg"),
        (
            ('case = { background = "polite" }\nof', 'case = { back = "polite" }\nof'),
            "no dimension 'back'; there are background",
        ),
        (
            ('case = { background = "polite" }\nof', 'case = { background = "rude" }\nof'),
            "no variant 'rude'; there are alone",
        ),
        (('metric = "be"', 'metric = "bee"'), "no metric 'bee'; there are be, bg"),
        (('why = "made up"', ""), "a bound needs its reason"),
        (("paper = 2.7", ""), "needs min, max or paper"),
        (("paper = 2.7", 'paper = 2.7\ndiffers = [{ why = "d", min = 1, max = 2 }]'), "differs tells why a bound"),
        (("[vary.background]", "[wary]\n[vary.background]"), "wary: unknown table"),
        (('{ "flow.bg.count" = 0 }', '{ "flow.xx.count" = 0 }'), "no flow 'xx'"),
        (('{ "flow.bg.count" = 0 }', '{ "vary.bg" = 0 }'), "cannot be set; keys begin with"),
        (("[topology]", "[topology"), "made.toml: "),
    ],
)
def test_refusals(change: tuple[str, str], message: str) -> None:
    assert change[0] in TWO_FLOWS
    with pytest.raises(ExperimentError, match=message):
        one = experiment(TWO_FLOWS.replace(change[0], change[1], 1))
        for case in one.cases():
            one.setting(case)


def test_a_wrong_name_tells_the_near_ones() -> None:
    with pytest.raises(ExperimentError, match=r"near: .*lp_beside_cubic"):
        load("lp_beside_cubik")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topology.rate_mbit=5", ("topology.rate_mbit", 5)),
        ("flow.bg.cc=vegas", ("flow.bg.cc", "vegas")),
        ("topology.ecn=true", ("topology.ecn", True)),
    ],
)
def test_set(text: str, expected: tuple[str, Any]) -> None:
    assert parse_set(text) == expected


def test_set_refuses_what_is_no_assignment() -> None:
    with pytest.raises(ExperimentError, match="expected key=value"):
        parse_set("fast")


CHANGES = """
[flow.a]
[vary.who]
nobody = { "flow.a.count" = 0 }
strict = { "topology.queue.kind" = "prio" }
[vary.how]
plain = {}
"""


@pytest.mark.parametrize(
    ("variant", "undone"),
    [
        ('many = { "flow.a.count" = 16 }', "flow.a.count undoes flow.a.count of who=nobody"),
        ('red = { "topology.queue" = { kind = "red", packets = 9 } }', "topology.queue undoes topology.queue.kind"),
        ('red = { "topology.queue.kind" = "red" }', "topology.queue.kind undoes topology.queue.kind of who=strict"),
    ],
)
def test_a_variant_that_undoes_another_s_is_refused(variant: str, undone: str) -> None:
    with pytest.raises(ExperimentError, match=undone):
        experiment(HEAD + CHANGES + variant)


@pytest.mark.parametrize("variant", ['none = { "flow.a.count" = 0 }', 'same = { "topology.queue.kind" = "prio" }'])
def test_a_flow_may_be_taken_away_and_the_same_be_set_twice(variant: str) -> None:
    experiment(HEAD + CHANGES + variant)


def test_a_case_that_is_excluded_undoes_nothing() -> None:
    excluded = '[[exclude]]\nwho = "nobody"\nhow = "many"\n'
    experiment(HEAD + CHANGES + 'many = { "flow.a.count" = 16 }\n' + excluded)
