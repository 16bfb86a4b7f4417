# SPDX-License-Identifier: GPL-2.0
"""KUnit: every suite that the sources declare runs in the user-mode kernel; and the parser of its output."""

from __future__ import annotations

import functools
import os

import pytest

from testbed.backends.uml import Uml
from testbed.kernels.build import ensure_kernel
from testbed.kernels.modules import ensure_modules
from testbed.kernels.series import KernelSpec
from testbed.support import kunit
from testbed.support.kunit import State
from testbed.tests.backends.misbehaving import misbehaving

SUITES = kunit.expected_suites()


@functools.cache
def results() -> dict[str, kunit.SuiteResult]:
    """Map each suite to its result. A module that reported no suite has its own name as key."""
    build = ensure_kernel(KernelSpec())
    modules = ensure_modules(build)
    return {result.suite or name: result for name in modules.kunit for result in kunit.run_module(build, modules, name)}


@pytest.mark.kunit
@pytest.mark.parametrize(("folder", "suite"), SUITES, ids=[f"{f}-{s}" for f, s in SUITES])
def test_suite(folder: str, suite: str) -> None:
    assert suite in results(), f"{folder}: the suite {suite} did not run; there ran: {sorted(results())}"
    result = results()[suite]
    assert result.state is State.SUCCESS, result.explain()


@pytest.mark.kunit
def test_the_kernel_is_the_one_asked_for(request: pytest.FixtureRequest) -> None:
    """The choice of kernels in this process follows --series."""
    asked = request.config.getoption("--series") or os.environ.get("LBE_SERIES") or "6.12"
    assert ensure_kernel(KernelSpec()).series == Uml().spec.series == asked


@pytest.mark.kunit
def test_every_suite_that_ran_is_declared() -> None:
    """A suite that runs but is not in the list above would have no test that reports its failure."""
    assert SUITES, "the sources declare no KUnit suite"
    assert sorted(results()) == sorted(suite for _, suite in SUITES)


LIVE = {"pass": State.SUCCESS, "fail": State.FAILURE, "skip": State.SUCCESS, "oops": State.CRASHED}


@pytest.mark.kunit
@pytest.mark.parametrize(("kind", "state"), LIVE.items(), ids=LIVE)
def test_live_states(kind: str, state: State) -> None:
    """Of two tests one passes and the other ends as its kind says; a skip beside a pass is a success."""
    build = ensure_kernel(KernelSpec())
    results = kunit.run_module(build, misbehaving(), f"ending_{kind}_kunit")
    assert [(result.suite, result.state) for result in results] == [("ending", state)]


@pytest.mark.kunit
def test_live_module_without_suites() -> None:
    build = ensure_kernel(KernelSpec())
    modules = ensure_modules(build)
    results = kunit.run_module(build, modules, "tcp_vegas")
    assert [result.state for result in results] == [State.NO_TESTS]


@pytest.mark.kunit
def test_live_module_that_does_not_load() -> None:
    results = kunit.run_module(ensure_kernel(KernelSpec()), misbehaving(), "misbehave")
    assert [result.state for result in results] == [State.CRASHED]
    assert "misbehave.ko" in results[0].explain()


GOOD = """\
KTAP version 1
1..1
    KTAP version 1
    # Subtest: shred
    1..2
        KTAP version 1
        # Subtest: rows
        ok 1 ratio 1 is RED (paper: remains at min_th)
        ok 2 ratio 1/2: half way, # is no directive
    # rows: pass:2 fail:0 skip:0 total:2
    ok 1 rows
    ok 2 alone
# shred: pass:2 fail:0 skip:0 total:2
ok 1 shred
"""
FAILS = GOOD.replace("        ok 2 ratio", "        # rows: EXPECTATION FAILED at x.c:7\n        not ok 2 ratio")
CASES = {
    "good": (GOOD, State.SUCCESS),
    "a row fails, whatever the lines above it say": (FAILS, State.FAILURE),
    "a case fails": (GOOD.replace("    ok 2 alone", "    not ok 2 alone"), State.FAILURE),
    "the suite fails": (GOOD.replace("\nok 1 shred", "\nnot ok 1 shred"), State.FAILURE),
    "all skipped": (
        "KTAP version 1\n1..1\n    KTAP version 1\n    1..1\n    ok 1 a # SKIP no such thing\nok 1 s # SKIP\n",
        State.SKIPPED,
    ),
    "one skipped, one good": (GOOD.replace("ok 2 alone", "ok 2 alone # SKIP why"), State.SUCCESS),
    "ends in a row": (GOOD[: GOOD.index("        ok 2")], State.CRASHED),
    "ends in a case": (GOOD[: GOOD.index("    ok 2 alone")], State.CRASHED),
    "ends before the suite's line": (GOOD[: GOOD.index("ok 1 shred")], State.CRASHED),
    "fewer cases than planned": (GOOD.replace("    ok 2 alone\n", ""), State.CRASHED),
    "ends after its header": ("KTAP version 1\n1..1\n    KTAP version 1\n    1..3\n", State.CRASHED),
    "no case": ("KTAP version 1\n1..1\n    KTAP version 1\n    1..0\nok 1 empty\n", State.NO_TESTS),
    "no suite": ("KTAP version 1\n1..0\n", State.NO_TESTS),
    "empty": ("", State.FAILURE_TO_PARSE),
    "noise": ("Segmentation fault\n", State.FAILURE_TO_PARSE),
    "a result is lost": (GOOD.replace("    ok 1 rows\n", ""), State.FAILURE_TO_PARSE),
}


@pytest.mark.parametrize(("text", "state"), CASES.values(), ids=CASES)
def test_states(text: str, state: State) -> None:
    assert kunit.judge_suite("m", "s", text).state is state


OLD = GOOD.replace("        ok 1 ratio 1 is RED (paper: remains at min_th)\n", "")


def test_rows_that_an_old_kernel_lost() -> None:
    """6.1 logs only the last row of a table: the line of the case tells whether the other rows passed or failed."""
    assert kunit.judge_suite("m", "s", OLD).state is State.FAILURE_TO_PARSE
    assert kunit.judge_suite("m", "s", OLD, rows_lost=True).state is State.SUCCESS
    failing = OLD.replace("    ok 1 rows", "    not ok 1 rows")
    assert kunit.judge_suite("m", "s", failing, rows_lost=True).state is State.FAILURE
    lost_case = OLD.replace("    ok 1 rows\n", "").replace("1..2", "1..1")
    assert kunit.judge_suite("m", "s", lost_case, rows_lost=True).state is State.FAILURE_TO_PARSE


def test_green_is_success_and_skip_only() -> None:
    assert {state for state in State if state.green} == {State.SUCCESS, State.SKIPPED}


def test_explain_names_the_row_and_its_complaint() -> None:
    text = kunit.judge_suite("m", "s", FAILS).explain()
    assert "ratio 1/2: half way" in text
    assert "EXPECTATION FAILED at x.c:7" in text


def test_rows_are_counted() -> None:
    result = kunit.judge_suite("m", "s", GOOD)
    assert [leaf.name for node in result.tests for leaf in node.leaves()] == [
        "ratio 1 is RED (paper: remains at min_th)",
        "ratio 1/2: half way, # is no directive",
        "alone",
    ]
