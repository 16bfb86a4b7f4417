# SPDX-License-Identifier: GPL-2.0
"""Each commit that a committed result names is in the history, or lost_commits.toml says why it is not.

A version with `-dirty` has the files of no commit, so that it needs to be well-formed only. Without the whole history,
as in a shallow clone or an unpacked archive, the same holds for all versions, and the test prints that.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from testbed.base.places import REPO
from testbed.results import digest

LOST = Path(__file__).with_name("lost_commits.toml")
#: what scripts/version prints in a repository: a hash, a tag, or a tag with the number of commits since and a hash
VERSION = re.compile(r"(?:[0-9a-f]{7,40}|v\d[\w.]*(?:-\d+-g[0-9a-f]{7,40})?)(?:-dirty)?")
DIRTY = "-dirty"
#: version of a module that only tests load: a hash of its sources
TEST_ONLY = re.compile(r"testbed-[0-9a-f]{16}")
#: in place of the suite's version in a simulator's document
NOT_RECORDED, SIMULATORS = "not recorded", ("ns2", "ns3")

#: version -> the names of the documents that have it
Named = dict[str, list[str]]


def named(documents: digest.Documents) -> Named:
    """Return the versions of the suite and of its modules in documents."""
    found: Named = {}
    for name, document in documents.items():
        versions = set(document["ran"]["testbed"])
        for said in document["ran"]["modules"].values():
            versions |= {version for version in said.get("version", []) if not TEST_ONLY.fullmatch(version)}
        if document["provenance"]["backend"] in SIMULATORS:
            versions.discard(NOT_RECORDED)
        for version in versions:
            found.setdefault(version, []).append(name)
    return found


def git(repo: Path, *words: str) -> tuple[int, str]:
    """Return the exit status and the output of git in a folder; 127 without git."""
    command = ["git", "-c", "safe.directory=*", "-C", str(repo), *words]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return 127, ""
    return done.returncode, done.stdout.strip()


def lacks(repo: Path) -> str:
    """Return why the history in a folder is not whole, or ""."""
    status, top = git(repo, "rev-parse", "--show-toplevel")
    if status or Path(top) != repo.resolve():
        return "there is no git repository here"
    whole = git(repo, "rev-parse", "--is-shallow-repository")[1] == "false"
    return "" if whole else "the repository is a shallow clone"


def faults(repo: Path, versions: Named, lost: dict[str, str]) -> list[str]:
    """Return what is wrong with the versions; lost: commits that are not in the history, with the reason."""
    wrong = [
        f"{version!r} is no version ({', '.join(names)})"
        for version, names in versions.items()
        if not VERSION.fullmatch(version)
    ]
    wrong += [f"{commit}: no reason is given" for commit, why in lost.items() if not why.strip()]
    wrong += [f"{commit}: no result names it: take its entry out" for commit in lost if commit not in versions]
    if lacks(repo):
        return wrong
    for version, names in versions.items():
        if not VERSION.fullmatch(version) or version.endswith(DIRTY):
            continue
        there = git(repo, "merge-base", "--is-ancestor", version, "HEAD")[0] == 0
        if not there and version not in lost:
            wrong.append(f"{version} is not in the history ({', '.join(names)})")
        if there and version in lost:
            wrong.append(f"{version} is in the history: take its entry out")
    return wrong


def note(repo: Path, count: int) -> str:
    """Return a line that tells what was not checked of this number of versions, or ""."""
    why = lacks(repo)
    return f"\n{why}: {count} versions are well-formed, whether the history has them is not known\n" if why else ""


def test_each_commit_that_a_committed_result_names_is_in_the_history(capsys: pytest.CaptureFixture[str]) -> None:
    versions = named(digest.load_all(digest.FOLDER))
    assert versions
    entries = tomllib.loads(LOST.read_text(encoding="utf-8"))["commit"]
    lost = {entry["name"]: entry["why"] for entry in entries}
    assert len(lost) == len(entries), "a commit stands twice"
    wrong = faults(REPO, versions, lost)
    assert not wrong, "\n".join(wrong)
    with capsys.disabled():
        print(note(REPO, len(versions)), end="")


# ------------------------------------------------------------------------------ the test itself


class History:
    """A repository with a commit on its branch before the last one, and one that is on no branch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        self.first = self.commit("first")
        self.gone = self.commit("gone")
        self.git("reset", "-q", "--hard", self.first)
        self.last = self.commit("last")

    def git(self, *words: str) -> str:
        """Run git there."""
        status, said = git(self.folder, "-c", "user.name=a", "-c", "user.email=a@b", *words)
        assert status == 0, words
        return said

    def commit(self, text: str) -> str:
        """Make an empty commit; returns its short hash."""
        self.git("commit", "-q", "--allow-empty", "-m", text)
        return self.git("rev-parse", "--short=8", "HEAD")


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "repo")


UNKNOWN = "0123456"


def test_a_commit_that_is_in_no_branch_or_unknown_is_a_fault_unless_a_reason_is_given(history: History) -> None:
    repo, first, last, gone = history.folder, history.first, history.last, history.gone
    history.git("tag", "v1.0", first)
    since = history.git("describe", "--tags", "--long")
    assert since.startswith("v1.0-1-g")
    assert lacks(repo) == ""
    assert faults(repo, {first: ["a"], last: ["a"], "v1.0": ["a"], since: ["a"]}, {}) == []
    assert faults(repo, {gone: ["a", "b"]}, {}) == [f"{gone} is not in the history (a, b)"]
    assert faults(repo, {UNKNOWN: ["a"], "v9.9": ["b"]}, {}) == [
        f"{UNKNOWN} is not in the history (a)", "v9.9 is not in the history (b)",
    ]  # fmt: skip
    assert faults(repo, {f"{gone}-dirty": ["a"], f"{UNKNOWN}-dirty": ["a"]}, {}) == []
    assert faults(repo, {gone: ["a"], UNKNOWN: ["a"]}, {gone: "not kept", UNKNOWN: "not kept"}) == []


def test_a_reason_that_is_empty_or_not_needed_is_a_fault(history: History) -> None:
    repo, first, gone = history.folder, history.first, history.gone
    assert faults(repo, {gone: ["a"]}, {gone: " "}) == [f"{gone}: no reason is given"]
    assert faults(repo, {first: ["a"]}, {first: "why"}) == [f"{first} is in the history: take its entry out"]
    assert faults(repo, {}, {gone: "why"}) == [f"{gone}: no result names it: take its entry out"]


@pytest.mark.parametrize("version", ["", "unknown", NOT_RECORDED, "123456", "0123456-dirt", "0123456 ", "g0123456"])
def test_what_is_no_version_is_a_fault_with_and_without_the_history(
    version: str, history: History, tmp_path: Path
) -> None:
    for repo in (history.folder, tmp_path):
        assert faults(repo, {version: ["a"]}, {}) == [f"{version!r} is no version (a)"]


def test_without_the_whole_history_versions_are_well_formed_and_that_is_told(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert note(history.folder, 2) == ""
    shallow = tmp_path / "shallow"
    history.git("clone", "-q", "--depth", "1", f"file://{history.folder}", str(shallow))
    inside = history.folder / "unpacked"
    inside.mkdir()
    for folder, why in (
        (shallow, "the repository is a shallow clone"),
        (tmp_path, "there is no git repository here"),
        (inside, "there is no git repository here"),
    ):
        assert faults(folder, {history.first: ["a"], UNKNOWN: ["a"]}, {}) == []
        told = f"\n{why}: 2 versions are well-formed, whether the history has them is not known\n"
        assert note(folder, 2) == told
    monkeypatch.setenv("PATH", "/nonexistent")
    assert lacks(history.folder) == "there is no git repository here"


def test_versions_are_those_of_the_suite_and_of_its_modules() -> None:
    def document(backend: str, testbed: list[str], **modules: str) -> digest.Document:
        ran = {"testbed": testbed, "modules": {name: {"version": [said]} for name, said in modules.items()}}
        return {"ran": ran, "provenance": {"backend": backend}}

    documents = {
        "a": document("uml", ["1111111"], tcp_lp="2222222", lbe_tick="testbed-0123456789abcdef"),
        "b": document("uml", ["1111111", NOT_RECORDED]),
        "c": document("ns2", [NOT_RECORDED]),
    }
    assert named(documents) == {"1111111": ["a", "b"], "2222222": ["a"], NOT_RECORDED: ["b"]}
