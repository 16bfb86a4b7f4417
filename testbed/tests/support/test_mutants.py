# SPDX-License-Identifier: GPL-2.0
"""The list of planted faults: each can be planted and names tests that exist. No fault is run here."""

from __future__ import annotations

import shutil
from pathlib import Path

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


def test_a_fault_that_has_lost_its_place_is_said(tmp_path: Path) -> None:
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
def test_a_fault_that_ends_the_tests_process_is_noticed(tmp_path: Path, body: str, passed: bool) -> None:
    (tmp_path / "test_one.py").write_text(f"import os, signal\ndef test_one():\n    {body}\n")
    assert mutants.passes(tmp_path, ("test_one.py",)) == passed


def test_tests_that_are_not_there_prove_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    with pytest.raises(mutants.MutantError, match="status 5"):
        mutants.passes(tmp_path, ("test_one.py", "-k", "another"))


def test_faults_are_planted_side_by_side_and_survivors_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "law.py").write_text("ONE = 1\nTWO = 2\n")
    (tmp_path / "tree" / "test_law.py").write_text(
        "import pathlib\ndef test_one():\n    assert 'ONE = 1' in pathlib.Path('law.py').read_text()\n"
    )

    def copied(folder: Path) -> Path:
        shutil.copytree(tmp_path / "tree", folder, dirs_exist_ok=True)
        return folder

    monkeypatch.setattr(mutants, "scratch", copied)
    planted = [mutants.Fault(f"one {n}", "law.py", "ONE = 1", f"ONE = {n}", ("test_law.py",)) for n in range(2, 6)]
    planted += [mutants.Fault("two", "law.py", "TWO = 2", "TWO = 3", ("test_law.py",))]
    planted += [mutants.Fault("lost", "law.py", "THREE", "FOUR", ("test_law.py",))]
    monkeypatch.setattr(mutants, "faults", lambda: planted)
    assert mutants.main(["--jobs", "3"]) == 1
    said = capsys.readouterr().out
    assert "SURVIVED: two" in said and "its text stands 0 times in law.py: lost" in said
    assert "6 faults, 4 noticed, 2 not" in said
    assert mutants.main(["one", "--jobs", "2"]) == 0

    (tmp_path / "tree" / "test_law.py").write_text("def test_one():\n    assert False\n")
    with pytest.raises(mutants.MutantError, match="without any fault these tests fail"):
        mutants.main(["--jobs", "2"])
    with pytest.raises(mutants.MutantError, match="--jobs 0: at least 1"):
        mutants.main(["--jobs", "0"])
