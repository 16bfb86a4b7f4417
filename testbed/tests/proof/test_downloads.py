# SPDX-License-Identifier: GPL-2.0
"""Downloads under vulture from Linux senders with cubic, bbr and reno, by curl, aria2c and a static Go program."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from testbed.backends import tools
from testbed.base.errors import MissingTools
from testbed.proof import command, downloads, machine
from testbed.results import digest


@functools.cache
def said(control: str, folder: Path) -> dict[str, downloads.Told]:
    """Map each program to what was measured of it; one boot for a control."""
    return {told["program"]: told for told in downloads.measured(control, folder)}


@pytest.mark.kernels
@pytest.mark.parametrize("program", downloads.PROGRAMS)
@pytest.mark.parametrize("control", downloads.CONTROLS)
def test_a_download_from_a_linux_sender(control: str, program: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    told = said(control, tmp_path_factory.getbasetemp() / f"downloads-{control}")[program]
    print(f"# {told}")
    assert not downloads.faults(told)


# -- bounds, and the numbers that are kept ----------------------------------------------------------------


def good() -> downloads.Told:
    return {
        "control": "bbr", "program": "curl", "connections": 1, "expected_connections": 1, "page_empty": 1.0,
        "page_plain": 3.0, "page": 1.05, "page_second": 1.05, "alone": 99.0, "beside_plain": 60.0, "beside": 10.0,
        "beside_second": 10.0, "stopped": 99.0, "removed": 99.0, "intact_first": True, "intact_second": True,
        "long_plain": True, "long_first": True, "long_second": True,
    }  # fmt: skip


@pytest.mark.harness
def test_a_good_download_has_no_fault() -> None:
    assert downloads.faults(good()) == []


@pytest.mark.harness
@pytest.mark.parametrize(
    "wrong",
    [
        {"connections": 0},
        {"alone": 80.0},
        {"page": 2.0},
        {"page_plain": 1.1},
        {"beside_plain": 15.0},
        {"stopped": 20.0},
        {"page_second": 2.0},
        {"removed": 20.0},
        {"long_plain": False},
        {"long_first": False},
        {"long_second": False},
        {"intact_first": False},
        {"intact_second": False},
    ],
)
def test_each_bound_counts(wrong: downloads.Told) -> None:
    (text,) = downloads.faults(good() | wrong)
    assert text.startswith("bbr, curl: ")


@pytest.mark.harness
def test_a_case_again_takes_the_place_of_the_one_before() -> None:
    made = {"cases": []}
    for told in (good(), good() | {"control": "cubic", "program": "go"}, good() | {"page": 1.1}):
        downloads.with_case(made, told)
    assert [one["case"] for one in made["cases"]] == [
        {"sender": "cubic", "program": "go"}, {"sender": "bbr", "program": "curl"}
    ]  # fmt: skip
    assert made["cases"][1]["metrics"]["page"] == [1.1]
    assert len(downloads.table(made).splitlines()) == 3


@pytest.mark.harness
def test_asked_for_what_there_is_not(tmp_path: Path) -> None:
    from testbed.__main__ import main

    assert main(["downloads", "vegas", "--out", str(tmp_path)]) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.harness
def test_a_failure_is_no_end_and_a_missed_bound_is_one(tmp_path: Path, monkeypatch, capsys) -> None:
    from testbed.__main__ import main

    def measured(control: str, *_: object) -> list[downloads.Told]:
        if control == "bbr":
            raise machine.ProofFailed("it did not answer")
        return [good() | {"control": control, "stopped": 20.0}]

    monkeypatch.setattr(machine, "ensure_disk", lambda *_: None)
    monkeypatch.setattr(downloads, "build_vulturectl", lambda *_: None)
    monkeypatch.setattr(downloads, "measured", measured)
    kept = digest.load(digest.FOLDER / "proof.json") | {"cases": [], "experiment": downloads.NAME}
    monkeypatch.setattr(command, "empty", lambda *_: kept)
    assert main(["downloads", "--out", str(tmp_path)]) == 1
    cases = [one["case"]["sender"] for one in digest.load(tmp_path / "downloads.json")["cases"]]
    assert cases == ["cubic", "reno"]
    out = capsys.readouterr().out
    assert "FAILED: bbr: it did not answer" in out
    assert out.count("it goes on at full rate") == 2


@pytest.mark.harness
def test_names_are_those_of_the_guest() -> None:
    text = downloads.SCRIPTS[0].read_text(encoding="utf-8")
    assert all(f'    "{name}": ' in text for name in downloads.PROGRAMS)


@pytest.mark.harness
def test_no_go_compiler_is_said(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTools, match=r"no Go compiler for fetch\.go; `scripts/deps go` installs it"):
        tools.build_go_program(downloads.FETCH)
