# SPDX-License-Identifier: GPL-2.0
"""Debian's kernel, systemd and unmodified programs: what the units do, and what a user notices."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

from testbed.base.places import REPO
from testbed.proof import command, machine
from testbed.results import digest

SYSTEMD = Path(__file__).resolve().parent / "systemd.sh"
TESTS = re.findall(r"^(test_\w+)\(\)", SYSTEMD.read_text(encoding="utf-8"), re.MULTILINE)


@functools.cache
def said(folder: Path) -> dict[str, str]:
    """Map each test of systemd.sh to "ok" or its output."""
    files = {"apt-background.sh": (REPO / "packaging" / "apt-background.sh").read_text(encoding="utf-8")}
    files["background-unit.conf"] = (REPO / "packaging" / "background-unit.conf").read_text(encoding="utf-8")
    text = machine.boot(f"exec bash /tmp/job/{SYSTEMD.name}\n", folder, files | {SYSTEMD.name: SYSTEMD.read_text()})
    found = re.finditer(r"^(ok|not ok) (test_\w+)\n(.*?)(?=^ok |^not ok |\Z)", text, re.MULTILINE | re.DOTALL)
    return {match[2]: "ok" if match[1] == "ok" else match[3] for match in found}


@pytest.mark.kernels
@pytest.mark.parametrize("test", TESTS)
def test_systemd(test: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    results = said(tmp_path_factory.getbasetemp() / "proof-systemd")
    assert results.get(test, "it did not run") == "ok", results.get(test)


@pytest.mark.kernels
def test_a_person_beside_curl(tmp_path: Path) -> None:
    """A page takes more than twice its time alone beside plain curl, and about that time beside a background curl."""
    (alone,) = machine.noticed(command.NOBODY, (), tmp_path / "nobody")
    told = {one["mode"]: one for one in machine.noticed("curl", (), tmp_path / "curl")}
    assert set(told) == set(command.MODES)
    assert told["plain"]["page"] > 2 * alone["page"], "the link is too fast for this test to tell anything"
    assert told["background"]["page"] < 1.25 * alone["page"], (alone, told)
    assert command.background_was_seen(told["background"])
    assert told["background"]["took"] < 3 * told["alone"]["took"]


@pytest.mark.kernels
def test_a_program_that_fails_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(machine.ProofFailed, match="no such program here"):
        machine.boot("echo no such program here\nexit 1\n", tmp_path / "out")


# -- the numbers that are kept --------------------------------------------------------------------------


def document() -> dict:
    return {
        "format": 2, "identity": {"kernel": "a"}, "file_sha256": "b", "files": ["c"], "cases": [],
        "provenance": {"programs": {"curl": "8"}},
    }  # fmt: skip


@pytest.mark.harness
def test_a_run_again_takes_the_place_of_the_one_before() -> None:
    made = document()
    told = {"program": "curl", "mode": "plain", "page": 2.0, "voice": 100.0, "took": 9.0}
    command.with_case(made, {"program": "curl", "mode": "background", "took": 1.0, "seen": ["up lbe"]})
    command.with_case(made, told)
    command.with_case(made, told | {"page": 3.0})
    command.with_case(made, {"program": command.NOBODY, "mode": "alone", "page": 1.0})
    assert [(one["case"]["program"], one["case"]["mode"]) for one in made["cases"]] == [
        ("nobody", "alone"), ("curl", "plain"), ("curl", "background")
    ]  # fmt: skip
    assert made["cases"][1]["metrics"] == {"page": [3.0], "voice": [100.0], "took": [9.0]}
    assert "3.00" in command.table(made)


@pytest.mark.harness
def test_numbers_of_two_trees_do_not_stand_in_one_file() -> None:
    assert command.same_tree(document(), document())
    assert not command.same_tree(document(), document() | {"file_sha256": "other"})
    assert not command.same_tree(document(), document() | {"identity": {"kernel": "other"}})
    assert not command.same_tree(document(), document() | {"provenance": {"programs": {"curl": "9"}}})


@pytest.mark.harness
def test_the_kept_numbers_have_every_mode_of_a_program() -> None:
    kept = digest.load(digest.FOLDER / f"{command.NAME}.json")
    modes: dict[str, list[str]] = {}
    for one in kept["cases"]:
        modes.setdefault(one["case"]["program"], []).append(one["case"]["mode"])
    assert modes.pop(command.NOBODY) == ["alone"]
    assert modes and set(modes) <= set(command.programs())
    assert all(tuple(have) == command.MODES for have in modes.values()), modes
    for one in kept["cases"]:
        assert one["case"]["mode"] != "background" or one["seen"], f"{one['case']}: nothing was in the background"


@pytest.mark.harness
def test_every_source_of_vulturectl_makes_the_numbers_out_of_date() -> None:
    """The files that git knows; what a build in the tree has made is none of them."""
    words = ["git", "-C", str(REPO), "ls-files", "tools/vulturectl/*.[ch]", "tools/libvulture/*.[ch]"]
    known = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    tools = {name for name in command.FILES if name.startswith("tools/") and not name.endswith("/Makefile")}
    assert tools == {name for name in known if name.count("/") == 2} != set()


@pytest.mark.harness
def test_asked_for_what_there_is_not(tmp_path: Path) -> None:
    from testbed.__main__ import main

    assert main(["proof", "wget", "--out", str(tmp_path)]) == 2
    assert main(["proof", "curl", "--jobs", "0", "--out", str(tmp_path)]) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.harness
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_all_programs_are_measured_and_a_failure_is_no_end(tmp_path: Path, monkeypatch, capsys, jobs: str) -> None:
    from testbed.__main__ import main

    def noticed(name: str, *_: object) -> list[dict]:
        if name == "aria2c":
            raise machine.ProofFailed("it did not answer")
        return [{"program": name, "mode": mode, "took": 1.0, "seen": ["down credit"]} for mode in command.MODES]

    for name, made in (("ensure_disk", lambda *_: None), ("noticed", noticed)):
        monkeypatch.setattr(machine, name, made)
    monkeypatch.setattr(command, "empty", lambda *_: digest.load(digest.FOLDER / "proof.json") | {"cases": []})
    monkeypatch.setattr(command, "build_vulturectl", lambda *_: None)
    assert main(["proof", "curl", "aria2c", "skopeo", "--jobs", jobs, "--out", str(tmp_path)]) == 1
    kept = [(one["case"]["program"], one["case"]["mode"]) for one in digest.load(tmp_path / "proof.json")["cases"]]
    assert kept == [(name, mode) for name in ("curl", "skopeo") for mode in command.MODES]
    assert "FAILED: aria2c: it did not answer" in capsys.readouterr().out


@pytest.mark.harness
def test_programs_are_those_of_the_guest() -> None:
    assert command.programs()[:4] == ["nobody", "apt", "curl", "aria2c"]
    assert not any(" " in name for name in command.programs()), "a page's quote is words"
