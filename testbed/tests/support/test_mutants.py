# SPDX-License-Identifier: GPL-2.0
"""The list of planted faults, without running any: each can be planted, and names tests that are there."""

from __future__ import annotations

import pytest

from testbed.base.places import REPO
from testbed.support import mutants

FAULTS = mutants.faults()


@pytest.mark.parametrize("fault", FAULTS, ids=[one.name for one in FAULTS])
def test_a_fault_has_its_place_and_its_tests(fault: mutants.Fault) -> None:
    assert not mutants.misplaced(fault)
    assert fault.new != fault.old and fault.tests
    if fault.tests[0] == "kunit":
        assert fault.tests[1:] and all(list((REPO / folder).glob("tests/*_kunit.c")) for folder in fault.tests[1:])
        return
    for test in fault.tests[: fault.tests.index("-k")] if "-k" in fault.tests else fault.tests:
        assert (REPO / test.partition("::")[0]).exists(), test


def test_a_fault_that_has_lost_its_place_is_said(tmp_path) -> None:
    fault = mutants.Fault("lost", "a.h", "one", "two", ("a",))
    assert mutants.misplaced(fault, tmp_path) == "a.h is not there"
    (tmp_path / "a.h").write_text("one one")
    assert mutants.misplaced(fault, tmp_path) == "its text stands 2 times in a.h"
    (tmp_path / "a.h").write_text("one")
    assert mutants.misplaced(fault, tmp_path) == ""


@pytest.mark.parametrize(
    ("body", "passed"),
    [("pass", True), ("assert False", False), ("os.kill(os.getpid(), signal.SIGFPE)", False)],
)
def test_a_fault_that_ends_the_tests_process_is_noticed(tmp_path, body: str, passed: bool) -> None:
    (tmp_path / "test_one.py").write_text(f"import os, signal\ndef test_one():\n    {body}\n")
    assert mutants.passes(tmp_path, ("test_one.py",)) == passed


def test_tests_that_are_not_there_prove_nothing(tmp_path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    with pytest.raises(mutants.MutantError, match="status 5"):
        mutants.passes(tmp_path, ("test_one.py", "-k", "another"))
