# SPDX-License-Identifier: GPL-2.0
"""netfilter's selftests beside vulture: each script's output is read completely, and every difference is reported."""

from __future__ import annotations

import argparse

import pytest

from testbed.base.errors import LbeError
from testbed.foreign import command, netfilter
from testbed.foreign.netfilter import NetfilterOutcome, NetfilterResult
from testbed.present import quoting

LOG = """\
RUN a.sh
PASS: tcp via ns1-Ab3xYz, 17 packets
some words
END 0 3
RUN b.sh
SKIP: no sctp
END 4 0
RUN c.sh
PASS: first
FAIL: second
END 1 2
RUN d.sh
PASS: and then the machine stood still
"""


def judged(log: str, reference: str = LOG, subject: str = "credit") -> NetfilterOutcome:
    return netfilter.judge(subject, netfilter.read_results(log), netfilter.read_results(reference))


def test_results_are_read_whole() -> None:
    assert netfilter.read_results(LOG) == [
        NetfilterResult("a.sh", 0, ("PASS: tcp via ns1-Ab3xYz, 17 packets",), 3),
        NetfilterResult("b.sh", 4, ("SKIP: no sctp",), 0),
        NetfilterResult("c.sh", 1, ("PASS: first", "FAIL: second"), 2),
    ]


def test_numbers_and_names_by_chance_are_no_difference() -> None:
    outcome = judged(LOG.replace("ns1-Ab3xYz, 17", "ns1-Zz9qQq, 18"))
    assert (outcome.passed, outcome.skipped, outcome.failed, outcome.as_reference, outcome.taken) == (1, 1, 1, 3, 5)
    assert outcome.good and not outcome.faults


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("END 0 3", "END 1 3", "a.sh: pass without vulture, fail with it"),
        ("PASS: first\n", "", "c.sh: fail without vulture, fail with it; does not say 'PASS: first'"),
        ("PASS: first", "FAIL: first", "says 'FAIL: first'; does not say 'PASS: first'"),
        ("END 4 0", "END 0 0", "b.sh: skip without vulture, pass with it"),
        ("END 1 2", "", "c.sh: did not come to its end"),
    ],
)
def test_a_difference_is_a_fault(before: str, after: str, told: str) -> None:
    outcome = judged(LOG.replace(before, after))
    assert not outcome.good and told in outcome.faults[0]


def test_rules_that_took_nothing_prove_nothing() -> None:
    idle = LOG.replace("END 0 3", "END 0 0").replace("END 1 2", "END 1 0")
    assert not judged(idle).good
    assert judged(idle, idle, netfilter.REFERENCE).good


def test_the_document_has_counts_and_what_did_not_pass() -> None:
    results = {name: netfilter.read_results(LOG) for name in ("none", "credit")}
    outcomes = [netfilter.judge(name, results[name], results["none"]) for name in results]
    document = command.netfilter_document(
        netfilter.NetfilterRan("6.12.1-cloud", "key", {"socat": "1.8"}, results, outcomes)
    )
    assert document["experiment"] == "foreign_netfilter"
    assert document["cases"][1]["failed"] == {"c.sh": ["PASS: first", "FAIL: second"]}
    said = {"foreign_netfilter": document}
    assert quoting.quote("foreign_netfilter taken subject=credit", said) == "5"
    assert quoting.quote("foreign_netfilter faults subject=credit", said) == "0"
    assert quoting.quote("foreign_netfilter @kernel", said) == "6.12.1-cloud"


def asked(*words: str) -> argparse.Namespace:
    top = argparse.ArgumentParser()
    command.add_parser(top.add_subparsers())
    return top.parse_args(["foreign", *words])


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(LbeError, match=r"no suite nosuch; there are: google, kernel, .*netfilter"):
        command.run(asked("--suite", "nosuch"))
    with pytest.raises(LbeError, match="subjects lbe: no script of suite netfilter matches"):
        command.run(asked("lbe", "--suite", "netfilter"))
    with pytest.raises(LbeError, match=r"--only x\*: no script of suite netfilter matches"):
        command.run(asked("--suite", "netfilter", "--only", "x*"))
