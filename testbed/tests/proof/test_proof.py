# SPDX-License-Identifier: GPL-2.0
"""Debian's kernel, systemd and unmodified programs: what the units do, and what a user notices."""

from __future__ import annotations

import copy
import functools
import importlib.util
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from testbed.base.places import REPO
from testbed.judge import proof
from testbed.present import markdown, quoting, state
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
    assert {one["user"] for one in told.values()} == {"person"}


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
def test_each_run_has_its_own_numbers_and_a_run_again_replaces_its_own() -> None:
    made = document() | {"asked_seeds": [1]}
    told = {"program": "curl", "mode": "background", "page": 2.0, "took": 9.0, "seen": ["1 down credit"]}
    command.with_seeds(made, 3)
    for run, page in ((3, 3.0), (1, 1.0), (2, 7.0), (2, 2.0)):
        command.with_case(made, told | {"page": page, "seen": [f"{run} down credit"]}, run)
    (case,) = made["cases"]
    assert (made["asked_seeds"], case["seeds"]) == ([1, 2, 3], [1, 2, 3])
    assert case["metrics"] == {"page": [1.0, 2.0, 3.0], "took": [9.0, 9.0, 9.0]}
    assert case["seen"] == ["3 down credit", "1 down credit", "2 down credit"]
    assert made["provenance"]["command"] == "python3 -m testbed proof --runs 3"
    assert "2.00 ±2.48" in command.table(made)
    command.with_seeds(made, 1)
    assert made["asked_seeds"] == [1, 2, 3], "the other runs stay"


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
    """The files that git knows count. Files that a build in the tree has made do not."""
    words = ["git", "-C", str(REPO), "ls-files", "tools/vulturectl/*.[ch]", "tools/libvulture/*.[ch]"]
    known = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    tools = {name for name in command.FILES if name.startswith("tools/") and not name.endswith("/Makefile")}
    assert tools == {name for name in known if name.count("/") == 2} != set()


@pytest.mark.harness
def test_asked_for_what_there_is_not(tmp_path: Path, capsys) -> None:
    from testbed.__main__ import main

    assert main(["proof", "wget", "--out", str(tmp_path)]) == 2
    assert main(["proof", "curl", "--jobs", "0", "--out", str(tmp_path)]) == 2
    for runs in ("0", "101"):
        assert main(["proof", "curl", "--runs", runs, "--out", str(tmp_path)]) == 2
        assert f"--runs {runs} is not from 1 to 100" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.harness
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_all_programs_are_measured_and_a_failure_is_no_end(tmp_path: Path, monkeypatch, capsys, jobs: str) -> None:
    from testbed.__main__ import main

    def noticed(name: str, *_: object, run: int) -> list[dict]:
        if name == "aria2c":
            raise machine.ProofFailed("it did not answer")
        return [{"program": name, "mode": mode, "took": run + 1.0, "seen": ["credit"]} for mode in command.MODES]

    for name, made in (("ensure_disk", lambda *_: None), ("noticed", noticed)):
        monkeypatch.setattr(machine, name, made)
    monkeypatch.setattr(command, "empty", lambda *_, **__: digest.load(digest.FOLDER / "proof.json") | {"cases": []})
    monkeypatch.setattr(command, "build_vulturectl", lambda *_: None)
    words = ["proof", "curl", "aria2c", "skopeo", "--jobs", jobs, "--runs", "2", "--out", str(tmp_path)]
    assert main(words) == 1
    document = digest.load(tmp_path / "proof.json")
    cases = document["cases"]
    assert digest.lost_runs(document) == 2 * len(command.MODES), "those of aria2c"
    assert all((one["seeds"], one["metrics"]) == ([1, 2], {"took": [2.0, 3.0]}) for one in cases)
    kept = [(one["case"]["program"], one["case"]["mode"]) for one in cases]
    assert kept == [(name, mode) for name in ("curl", "skopeo") for mode in command.MODES]
    assert "FAILED: aria2c: it did not answer" in capsys.readouterr().out


@pytest.mark.harness
def test_programs_are_those_of_the_guest() -> None:
    assert command.programs()[:4] == ["nobody", "apt", "curl", "aria2c"]
    assert not any(" " in name for name in command.programs()), "a page's quote is words"


# -- who starts a program -------------------------------------------------------------------------------


def guest() -> ModuleType:
    """Return the module guest/person.py, which needs nothing of the testbed."""
    spec = importlib.util.spec_from_file_location("person", machine.PERSON)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.harness
@pytest.mark.parametrize("mode", command.MODES)
@pytest.mark.parametrize("program", [name for name in command.programs() if name not in ("nobody", "apt")])
def test_an_ordinary_user_starts_each_program_in_each_mode(program: str, mode: str) -> None:
    person = guest()
    words = person.words_of(program, mode)
    in_a_session = words[: len(person.IN_A_SESSION)] == list(person.IN_A_SESSION)
    assert in_a_session == (program not in person.BY_ROOT) == (program != "podman")
    assert (words[-6:-3] == ["vulturectl", "run", "--"]) == (mode == "background")


@pytest.mark.harness
def test_each_run_begins_the_program_at_another_time(monkeypatch) -> None:
    begins = set()
    for run in range(1, 21):
        monkeypatch.setenv("RUN", str(run))
        begins.add(round(guest().PROGRAM_AT_S, 3))
    assert len(begins) == 20 and min(begins) == 3.0 and max(begins) < 5.0
    monkeypatch.delenv("RUN")
    assert guest().PROGRAM_AT_S == 3.0


# -- the bounds, and the pages --------------------------------------------------------------------------


def kept() -> dict:
    return digest.load(digest.FOLDER / f"{command.NAME}.json")


@pytest.mark.harness
def test_the_kept_numbers_meet_every_bound() -> None:
    verdicts = proof.judge(kept())
    assert len(verdicts) == len(proof.CHECKS) * (len(command.programs()) - 1)
    assert [one for one in verdicts if one.status != "pass"] == []
    assert state.proof_faults(kept()) == []


@pytest.mark.harness
@pytest.mark.parametrize(
    ("metric", "bad", "said"),
    [
        ("page", 1.3 * 0.5939, "page in % of that beside nobody, program=curl mode=background: 130.0, bound <= 125"),
        ("voice", 57.0, "call's queueing delay minus that beside nobody [ms], program=curl mode=background: 20.54"),
        ("took", 13.0, "time of the program in % of that of the plain program, program=curl mode=background: 157.5"),
    ],
)
def test_each_bound_counts(metric: str, bad: float, said: str) -> None:
    made = {"cases": []}
    for mode, page, voice, took in (("alone", 0, 0, 7.0), ("plain", 2.0, 198.0, 8.2531), ("background", 0.6, 40, 9)):
        told = {"program": "curl", "mode": mode, "page": page, "voice": voice, "took": took}
        command.with_case(made, told | ({metric: bad} if mode == "background" else {}))
    command.with_case(made, {"program": command.NOBODY, "mode": "alone", "page": 0.5939, "voice": 36.464})
    made = kept() | made
    (fault,) = state.proof_faults(made)
    assert fault.startswith(said)
    assert f"proof: {fault}" in state.reds({"proof": made})


@pytest.mark.harness
def test_a_bound_is_not_judged_without_the_person_alone() -> None:
    made = kept()
    made["cases"] = [one for one in made["cases"] if one["case"]["program"] == "curl"]
    assert {one.check.metric: one.status for one in proof.judge(made)} == {
        "page": "incomplete", "voice": "incomplete", "took": "pass"
    }  # fmt: skip
    assert state.proof_faults(made) == []


@pytest.mark.harness
def test_the_pages_have_a_row_for_each_bound_and_no_empty_block() -> None:
    shown = markdown.pages({"proof": kept()})
    rows = [line for line in shown["checks.md"].splitlines() if "program=curl mode=background" in line]
    assert len(rows) == len(proof.CHECKS) and all("| holds |" in row for row in rows)
    assert "misses it" in rows[0] and "misses it" in rows[1]
    assert "## proof" in shown["checks.md"] and "of each program" in shown["checks.md"]
    assert "## " in shown["experiments.md"] and not re.search(r"```\n\s*```", shown["experiments.md"])


@pytest.mark.harness
def test_a_page_says_the_number_of_runs_in_words() -> None:
    made = copy.deepcopy(kept())
    assert quoting.said("proof @runs", {"proof": made}) == "one run"
    for one in made["cases"]:
        one["seeds"] = [1, 2, 3]
    assert quoting.said("proof @runs", {"proof": made}) == "three runs"
    made["cases"][0]["seeds"] = [1]
    assert quoting.said("proof @runs", {"proof": made}) == "one to three runs"
