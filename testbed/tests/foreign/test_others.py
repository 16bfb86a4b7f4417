# SPDX-License-Identifier: GPL-2.0
"""tc-testing with shred, and scenarios of other projects: each result is judged, and the output names what is absent.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.base.errors import BuildFailed, LbeError
from testbed.foreign import command, netfilter, packetdrill, played, tctesting
from testbed.foreign.netfilter import NetfilterRan
from testbed.foreign.packetdrill import PacketdrillRan, Suite
from testbed.foreign.tctesting import DIFFERENCES, Results
from testbed.present import quoting
from testbed.results import digest
from testbed.robustness.soak import Lived
from testbed.run import identity

KERNEL = {"series": "6.12", "flavour": "plain", "release": "6.12.1"}


def asked(*words: str) -> argparse.Namespace:
    top = argparse.ArgumentParser()
    command.add_parser(top.add_subparsers())
    return top.parse_args(["foreign", *words])


@pytest.mark.parametrize(
    ("passed", "failed", "faults"),
    [
        ({"aaaa", "bbbb"}, {"290a"}, []),
        ({"aaaa"}, {"bbbb", "290a"}, ["bbbb: failed"]),
        ({"aaaa", "290a"}, set(), [f"290a: passes, although {DIFFERENCES['290a']}"]),
    ],
)
def test_a_case_of_tc_that_fails_without_a_reason_is_a_fault_and_so_is_a_needless_reason(
    passed: set[str], failed: set[str], faults: list[str]
) -> None:
    outcome = tctesting.judge("red.json", Results(passed, failed, ""))
    assert outcome.faults == faults and outcome.good is not bool(faults)
    assert outcome.ran == len(passed | failed)
    document = command.tc_document(tctesting.TcRan(KERNEL, identity.of_tree("key", []), [outcome]))
    said = {"foreign_tc": document}
    assert quoting.quote("foreign_tc faults file=red.json", said) == str(len(faults))
    assert quoting.quote("foreign_tc ran file=red.json", said) == str(len(passed | failed))
    assert document["cases"][0]["faults"] == faults
    assert ("FAULT: " + faults[0] if faults else "1 of 1 good") in command.tc_table([outcome])


@pytest.mark.parametrize("suite", ["kernel", "netfilter", "tc"])
def test_a_document_says_how_long_its_suite_took(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the time that passes on the clock while the suite runs counts."""
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])

    def runs(result: object) -> Callable[..., object]:
        def run(*_: object) -> object:
            now_s[0] += 41.6
            return result

        return run

    tree = identity.of_tree("key", [])
    one = Suite("kernel", "scripts", "6.12", ())
    monkeypatch.setattr(Suite, "scripts", lambda *_: ["a.pkt"])
    monkeypatch.setattr(packetdrill, "ensure_suites", lambda *_: [one])
    monkeypatch.setattr(packetdrill, "ensure_packetdrill", lambda *_: Path())
    monkeypatch.setattr(packetdrill, "run", runs(PacketdrillRan(one, KERNEL, tree, {}, [])))
    monkeypatch.setattr(netfilter, "run", runs(NetfilterRan("6.12.1", "key", {}, {}, [])))
    monkeypatch.setattr(tctesting, "run", runs(tctesting.TcRan(KERNEL, tree, [])))
    documents: list[digest.Document] = []
    for part in command.RUNS:
        part(asked(), [suite], lambda *_: None, documents.append)
    (document,) = documents
    assert (document["experiment"], document["seconds"]) == (f"foreign_{suite}", 42)


def test_no_case_at_all_is_not_good() -> None:
    assert not tctesting.judge("red.json", Results(set(), {"290a"}, "")).good


def every_suite_runs(monkeypatch: pytest.MonkeyPatch, kernel: Path) -> None:
    """netfilter's, the kernel's and tc's suites without a machine. kernel: a folder for the kernel's scripts."""
    tree = identity.of_tree("key", [])
    (kernel / "tcp").mkdir(parents=True)
    (kernel / "tcp" / "a.pkt").write_text("")
    monkeypatch.setattr(packetdrill, "ensure_part", lambda *_: kernel)

    def runs(suite: Suite, *_: object) -> PacketdrillRan:
        packetdrill.ensure_packetdrill()
        return PacketdrillRan(suite, KERNEL, tree, {}, [])

    monkeypatch.setattr(packetdrill, "run", runs)
    monkeypatch.setattr(netfilter, "run", lambda *_: NetfilterRan("6.12.1", "key", {}, {}, []))
    monkeypatch.setattr(tctesting, "run", lambda *_: tctesting.TcRan(KERNEL, tree, []))


WORDS = ("--suite", "netfilter", "--suite", "kernel", "--suite", "tc", "--out")


def test_without_packetdrills_archive_its_suite_is_absent_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kernel's scripts are there, and the program that runs them is not."""
    every_suite_runs(monkeypatch, tmp_path / "kernel")
    monkeypatch.delenv("LBE_FOREIGN", raising=False)
    monkeypatch.setenv("LBE_PACKETDRILL", str(tmp_path / "none.tar.gz"))
    assert command.run(asked(*WORDS, str(tmp_path / "out"))) == 1
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("ABSENT: ")]
    assert len(said) == 1 and said[0].startswith(f"ABSENT: kernel: packetdrill is absent: {tmp_path}/none.tar.gz")
    stored = {path.name: digest.load(path)["experiment"] for path in (tmp_path / "out").iterdir()}
    assert stored == {f"foreign_{name}.json": f"foreign_{name}" for name in ("netfilter", "tc")}


def test_an_error_in_a_suite_does_not_lose_the_documents_of_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise BuildFailed("tc-testing cannot be built")

    every_suite_runs(monkeypatch, tmp_path / "kernel")
    monkeypatch.setattr(packetdrill, "ensure_packetdrill", lambda *_: tmp_path)
    monkeypatch.setattr(tctesting, "run", fails)
    with pytest.raises(BuildFailed):
        command.run(asked(*WORDS, str(tmp_path / "out")))
    stored = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert stored == ["foreign_kernel.json", "foreign_netfilter.json"]


def test_one_variable_names_a_folder_with_the_archive_and_the_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable for one of them has precedence over it."""
    source = packetdrill.settings()["source"]
    content = gzip.compress(b"an archive")
    archive, other = tmp_path / source["default"], tmp_path / "other" / "a.tar.gz"
    other.parent.mkdir()
    (tmp_path / "link.down").write_text("3\n6\n")
    (other.parent / "link.up").write_text("3\n6\n")
    for path in (archive, other):
        path.write_bytes(content)
    known = source | {"sha256": hashlib.sha256(content).hexdigest()}
    for variable in (source["variable"], played.VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LBE_FOREIGN", str(tmp_path))
    assert packetdrill.archive(known) == archive
    assert played.recordings() == {"link.down": tmp_path / "link.down"}
    monkeypatch.setenv(source["variable"], str(other))
    monkeypatch.setenv(played.VARIABLE, str(other.parent))
    assert packetdrill.archive(known) == other
    assert played.recordings() == {"link.up": other.parent / "link.up"}


def test_recordings_that_are_absent_are_said_and_not_green(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(played.VARIABLE, str(tmp_path))
    assert command.run(asked("--suite", "recorded", "--out", str(tmp_path / "out"))) == 1
    said = f"ABSENT: recorded links are absent: {tmp_path} has none; set LBE_TRACES or LBE_FOREIGN"
    assert said in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_a_recordings_mean_is_the_links_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link.down").write_text("\n".join(str(3 * number) for number in range(1, 1001)))
    monkeypatch.setenv(played.VARIABLE, str(tmp_path))
    recording = played.recordings()["link.down"]
    assert played.sets_of(recording) == {"topology.link_trace": str(recording), "topology.rate_mbit": 4.0}


def test_the_recordings_are_the_files_that_begin_with_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording may be compressed. Files that describe the recordings, and archives of all of them, are not
    recordings."""
    monkeypatch.setenv(played.VARIABLE, str(tmp_path))
    trace = "".join(f"{3 * number}\n" for number in range(1, 1001)).encode()
    (tmp_path / "plain.down").write_bytes(trace)
    (tmp_path / "packed.up.gz").write_bytes(gzip.compress(trace))
    (tmp_path / "README.md").write_text("# 12 links\n12\n")
    (tmp_path / "SHA256SUMS").write_text("12 plain.down\n")
    (tmp_path / "empty").touch()
    (tmp_path / "deeper").mkdir()
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "plain.down", "12")
    with tarfile.open(tmp_path / "all.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "plain.down", "12")
    found = played.recordings()
    assert found == {"packed.up": tmp_path / "packed.up.gz", "plain.down": tmp_path / "plain.down"}
    assert {played.sets_of(one)["topology.rate_mbit"] for one in found.values()} == {4.0}
    assert {played.sha256(one) for one in found.values()} == {hashlib.sha256(trace).hexdigest()}
    (tmp_path / "plain.down.gz").write_bytes(gzip.compress(trace))
    with pytest.raises(LbeError, match=r"plain.down and plain.down.gz are one recording; remove one of them"):
        played.recordings()


def test_a_recordings_hash_is_in_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link.down").write_text("3\n6\n")
    monkeypatch.setenv(played.VARIABLE, str(tmp_path))
    monkeypatch.setattr(played, "play", lambda path, options, series, report: lived("link.down", []))
    document = played.run("recorded", "foreign_", "short").document
    assert document["recordings"] == {"link.down": hashlib.sha256(b"3\n6\n").hexdigest()}


def lived(name: str, wrong: list[str], missing: int = 0) -> Lived:
    case = {"case": {"background": "lbe"}, "seeds": [1], "jobs": [""], "queue": [], "metrics": {"be": [4.0]}}
    asked_cases = [case["case"]]
    document: digest.Document = {
        "experiment": "recorded", "sets": {"a": name}, "cases": [case], "asked_cases": asked_cases, "seconds": 3
    }  # fmt: skip
    return Lived(document | {"wrong": wrong, "differs": []}, 2, wrong, [], missing)


def test_several_recordings_are_one_experiment_with_a_dimension_more() -> None:
    one = played.together({"a.down": lived("a", []), "b.down": lived("b", ["be is 1, wanted >= 90"], 1)})
    cases = [{"recording": name, "background": "lbe"} for name in ("a.down", "b.down")]
    assert [case["case"] for case in one.document["cases"]] == one.document["asked_cases"] == cases
    assert one.wrong == one.document["wrong"] == ["recording=b.down be is 1, wanted >= 90"]
    assert (one.checks, one.missing, one.document["sets"]) == (4, 1, {}), "no path of this machine is in a document"
    assert one.document["seconds"] == 3 + 3, "the time of both"


def test_suites_without_subjects_are_not_of_a_run_of_some_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def part(_args: argparse.Namespace, wanted: list[str], *_: object) -> command.SuitePart:
        seen.append(wanted)
        return command.SuitePart()

    monkeypatch.setattr(command, "RUNS", (part,))
    for words in ([], ["lbe"], ["lbe", "--suite", "tc"], ["--suite", "wifi"]):
        assert command.run(asked(*words)) == 0
    every, some, named, alone = seen
    assert set(every) - set(some) == {"tc", "flent", "wifi", "recorded"} and (named, alone) == (["tc"], ["wifi"])


@pytest.mark.parametrize(("good", "status"), [(True, 0), (False, 1)])
def test_the_status_is_one_if_any_part_is_not_good(good: bool, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (command.SuitePart(), command.SuitePart(good=good), command.SuitePart())
    monkeypatch.setattr(command, "RUNS", tuple(lambda *_, part=part: part for part in parts))
    assert command.run(asked()) == status


@pytest.mark.scenario
def test_a_recording_is_played_to_each_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link of 4 Mbit/s, recorded as the times of its packets: all checks of the experiment hold on it."""
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "steady").write_text("\n".join(str(3 * number) for number in range(1, 10001)))
    monkeypatch.setenv(played.VARIABLE, str(tmp_path / "traces"))
    assert command.run(asked("--suite", "recorded", "--out", str(tmp_path))) == 0, capsys.readouterr().out
    documents = {"foreign_recorded": digest.load(tmp_path / "foreign_recorded.json")}
    share = quoting.quote("foreign_recorded be recording=steady background=lbe of background=nobody", documents)
    assert float(share) >= 90 and documents["foreign_recorded"]["wrong"] == []
