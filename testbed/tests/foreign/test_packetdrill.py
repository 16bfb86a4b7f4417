# SPDX-License-Identifier: GPL-2.0
"""Other projects' suites: archives are verified, edits must apply, a fault never counts as an expected difference."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from testbed.backends.uml import Uml
from testbed.base.errors import BuildFailed, LbeError
from testbed.base.places import REPO
from testbed.base.progress import Report
from testbed.foreign import command, packetdrill, timestamps
from testbed.foreign.packetdrill import ForeignAbsent, PacketdrillOutcome, ScriptResult
from testbed.present import quoting
from testbed.run import identity


def result(script: str, status: str, variant: str = "ipv4") -> ScriptResult:
    return ScriptResult(script, variant, status, "line 3")


RENO = [result("tcp/a/x.pkt", "pass"), result("tcp/a/y.pkt", "fail"), result("tcp/a/w.pkt", "pass")]


#: packetdrill's loop in short: it waits for its other thread, whose state it reads in /proc
WAITS = """
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
static bool is_thread_sleeping(int process, int thread) { exit(process != thread ? 3 : 4); }
static int yield(void)
{
	return sched_yield();
}
int main(void)
{
	int thread_id = 0;
	bool done = false;

	while (!done) {
		if (yield() != 0)
			return 2;
		if (is_thread_sleeping(getpid(), thread_id))
			done = true;
	}
	return 0;
}
"""


def test_the_edited_packetdrill_waits_for_its_thread_without_a_look_into_proc(tmp_path: Path) -> None:
    source, program = tmp_path / "waits.c", tmp_path / "waits"
    source.write_text(WAITS)
    for edit in packetdrill.settings()["edit"]:
        if edit["find"] in WAITS:
            packetdrill.apply_edit(source, edit["find"], edit["replace"])
    assert "sched_yield" not in source.read_text()
    subprocess.run(["cc", "-D_DEFAULT_SOURCE", "-o", str(program), str(source)], check=True)
    assert subprocess.run([str(program)], timeout=300, check=False).returncode == 0


def test_scripts_of_clients_with_fast_open_run(tmp_path: Path) -> None:
    folder = tmp_path / "tcp" / "fastopen" / "client"
    folder.mkdir(parents=True)
    (folder / "poll.pkt").write_text("")
    suite = packetdrill.Suite("google", "what", "6.12", (tmp_path / "tcp",))
    assert suite.scripts() == ["tcp/fastopen/client/poll.pkt"]


def test_an_absent_archive_is_a_state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LBE_PACKETDRILL", str(tmp_path / "none.tar.gz"))
    with pytest.raises(ForeignAbsent, match=r"none\.tar\.gz does not exist; set LBE_PACKETDRILL"):
        packetdrill.archive(packetdrill.settings()["source"])


def test_an_archive_with_another_content_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.tar.gz"
    other.write_bytes(b"something else")
    monkeypatch.setenv("LBE_PACKETDRILL", str(other))
    with pytest.raises(ForeignAbsent, match=hashlib.sha256(b"something else").hexdigest()):
        packetdrill.archive(packetdrill.settings()["source"])


def test_an_edit_that_finds_nothing_fails(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("one two two")
    packetdrill.apply_edit(source, "two", "three")
    assert source.read_text() == "one three three"
    with pytest.raises(BuildFailed, match="no place reads 'four'"):
        packetdrill.apply_edit(source, "four", "five")


def test_results_are_read_whole() -> None:
    log = "noise\nRESULT\tpass\tipv4\ttcp/a/x.pkt\t2\t\n"
    log += "RESULT\tfail\tipv6\ttcp/a/y.pkt\t0\ty.pkt:3: expected: 1\n"
    assert packetdrill.read_results(log) == [
        ScriptResult("tcp/a/x.pkt", "ipv4", "pass", "", 2),
        ScriptResult("tcp/a/y.pkt", "ipv6", "fail", "y.pkt:3: expected: 1"),
    ]


def judged(
    statuses: dict[str, str],
    window: dict[str, bool] | None = None,
    expected: list[dict[str, Any]] | None = None,
    fault: list[dict[str, Any]] | None = None,
) -> PacketdrillOutcome:
    results = [result(script, status) for script, status in statuses.items()]
    patch = pytest.MonkeyPatch()
    patch.setattr(packetdrill, "settings", lambda: {"expected": expected or [], "fault": fault or []})
    try:
        return packetdrill.judge("google", "lp", results, RENO, window or {})
    finally:
        patch.undo()


def test_a_script_that_passes_with_reno_and_fails_here_is_a_fault() -> None:
    outcome = judged({"tcp/a/x.pkt": "fail", "tcp/a/y.pkt": "fail", "tcp/a/w.pkt": "pass"})
    assert outcome.faults == ["tcp/a/x.pkt (ipv4): line 3"]
    assert not outcome.good


def test_what_fails_with_reno_too_is_no_fault_and_slow_is_a_pass() -> None:
    outcome = judged({"tcp/a/x.pkt": "slow", "tcp/a/y.pkt": "fail", "tcp/a/w.pkt": "pass"})
    assert (outcome.passed, outcome.slow, outcome.failed, outcome.good) == (2, 1, 1, True)


@pytest.mark.parametrize(
    "said",
    [
        "sh: 6: ethtool: not found",
        "icmp-baseline.pkt:17: semantic error: bad ICMP code host_unreachable",
        "x.pkt:9: semantic error: TCP fast open cookie has an odd number of digits",
    ],
)
def test_a_script_that_the_set_up_fails_is_a_fault_of_the_reference_too(said: str) -> None:
    results = [RENO[0], ScriptResult("tcp/a/y.pkt", "ipv4", "fail", said)]
    outcome = packetdrill.judge("google", "reno", results, results, {})
    assert outcome.faults == [f"tcp/a/y.pkt (ipv4): {said} [the set-up]"] and not outcome.good
    assert outcome.as_reference == 0


def test_a_script_for_one_family_is_no_fault_of_the_set_up_over_the_other() -> None:
    said = "x.pkt:29: semantic error: bad ICMP code frag_needed"
    results = [RENO[0], ScriptResult("tcp/a/y.pkt", "ipv6", "fail", said)]
    outcome = packetdrill.judge("google", "reno", results, results, {})
    assert outcome.good and outcome.as_reference == 1


def test_the_set_up_defines_what_the_kernels_runner_defines() -> None:
    text = packetdrill.JOB.read_text(encoding="utf-8")
    four, six = (text.split("ipv4) set")[1].split(";;")[0], text.split("ipv6) set")[1].split(";;")[0])
    names = [set(re.findall(r"-D (\w+)=", part)) for part in (four, six)]
    assert names[0] == names[1] == {"TFO_COOKIE", "TFO_COOKIE_ZERO", "CODE", "CMSG_LEVEL_IP", "CMSG_TYPE_RECVERR"}
    assert "CODE=host_unreachable" in four and "CODE=address_unreachable" in six
    deps = (REPO / "scripts" / "deps").read_text(encoding="utf-8")
    (packages,) = re.findall(r"^\tforeign\)\s+echo (.*) ;;$", deps, re.MULTILINE)
    assert "ethtool" in packages.split()


def test_a_window_that_a_script_asserts_may_differ() -> None:
    outcome = judged({"tcp/a/x.pkt": "pass", "tcp/a/w.pkt": "fail"}, {"tcp/a/w.pkt": True})
    assert outcome.windows == ["tcp/a/w.pkt (ipv4): line 3"]
    assert outcome.good


def test_an_expected_difference_is_none_for_others_and_goes_out_of_date() -> None:
    listed = [{"subjects": ["lp"], "script": "tcp/a/x.pkt", "why": "starts with two packets"}]
    assert judged({"tcp/a/x.pkt": "fail", "tcp/a/w.pkt": "pass"}, expected=listed).good
    back = judged({"tcp/a/x.pkt": "pass", "tcp/a/w.pkt": "pass"}, expected=listed)
    assert back.outdated and not back.good
    others = [{**listed[0], "subjects": ["ledbat*"]}]
    assert not judged({"tcp/a/x.pkt": "fail"}, expected=others).good


def test_an_entry_for_another_suite_does_not_count() -> None:
    listed = [{"subjects": ["lp"], "suite": "kernel", "script": "tcp/a/x.pkt", "why": "a smaller window"}]
    assert judged({"tcp/a/x.pkt": "pass"}, expected=listed).good
    assert judged({"tcp/a/x.pkt": "fail"}, expected=listed).faults
    mine = [{**listed[0], "suite": "google"}]
    assert judged({"tcp/a/x.pkt": "fail", "tcp/a/w.pkt": "pass"}, expected=mine).good


def test_a_known_fault_stays_red_and_says_its_cause() -> None:
    listed = [{"subjects": ["lp"], "script": "tcp/a/x.pkt", "why": "a cookie is lost"}]
    outcome = judged({"tcp/a/x.pkt": "fail", "tcp/a/w.pkt": "pass"}, {"tcp/a/x.pkt": True}, fault=listed)
    assert outcome.faults == ["tcp/a/x.pkt (ipv4): line 3 [known: a cookie is lost]"]
    assert not outcome.good and not outcome.windows
    assert judged({"tcp/a/x.pkt": "pass"}, fault=listed).outdated


def test_nothing_that_ran_is_not_good() -> None:
    assert not judged({}).good


def test_every_edit_and_expectation_has_a_reason() -> None:
    said = packetdrill.settings()
    for entry in [*said["edit"], *said["left_out"], *said.get("expected", []), *said.get("fault", [])]:
        assert len(entry["why"]) > 20, entry


def test_an_unknown_subject_is_refused() -> None:
    with pytest.raises(LbeError, match="no subject nosuch; there are: reno, reno-paced"):
        packetdrill.chosen(["nosuch"])
    there = "google, kernel, google_timestamps, kernel_timestamps"
    with pytest.raises(LbeError, match=f"no suite nosuch; there are: {there}"):
        packetdrill.ensure_suites(["nosuch"])


SCRIPT = """\
// < S 0:0(0) win 1 <mss 1000> in a comment
`../common/defaults.sh`
   +0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 8>
  +.1 < . 1:1(0) ack 1 win 257
   +0 write(4, ..., 1000) = 1000
   +0 > P. 1:1001(1000) ack 1
 +.05 < . 1:1(0) ack 1 win 257 <sack 1001:2001,nop,nop> // a hole
   +0 > R. 1001:1001(0) ack 1
"""
STAMPED = """\
// < S 0:0(0) win 1 <mss 1000> in a comment
`../common/defaults.sh`
   +0 < S 0:0(0) win 32792 <mss 1012,sackOK,TS val 1000 ecr 0,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <mss 1472,sackOK,TS val 1 ecr 1000,nop,wscale 8>
  +.1 < . 1:1(0) ack 1 win 257 <nop,nop,TS val 1100 ecr 1>
   +0 write(4, ..., 1000) = 1000
   +0 > P. 1:1001(1000) ack 1 <nop,nop,TS val 2 ecr 1000>
 +.05 < . 1:1(0) ack 1 win 257 <nop,nop,TS val 1150 ecr 2,nop,nop,sack 1001:2001> // a hole
   +0 > R. 1001:1001(0) ack 1 <...>
"""


def test_a_script_is_written_again_with_timestamps() -> None:
    assert timestamps.with_timestamps(SCRIPT) == STAMPED
    assert timestamps.with_timestamps(STAMPED) is None
    assert timestamps.with_timestamps(SCRIPT.replace("sackOK,", "md5 abcd,")) is None
    bare = timestamps.with_timestamps("+0 < S 0:0(0) win 1 <mss 1000>\n+0 < [ce] . 1:11(10) ack 1\n")
    assert bare is not None and bare.splitlines() == [
        "+0 < S 0:0(0) win 1 <mss 1012,nop,nop,TS val 1000 ecr 0>",
        "+0 < [ce] . 1:11(10) ack 1 <nop,nop,TS val 1000 ecr 0>",
    ]


def test_a_suite_with_timestamps_is_vultures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in" / "tcp" / "a").mkdir(parents=True)
    (tmp_path / "in" / "tcp" / "a" / "x.pkt").write_text(SCRIPT)
    (tmp_path / "in" / "tcp" / "a" / "y.pkt").write_text(STAMPED)
    monkeypatch.setattr(packetdrill, "cache_root", lambda: tmp_path)
    original = packetdrill.Suite("google", "what", "6.12", (tmp_path / "in" / "tcp",))
    entry = next(one for one in packetdrill.settings()["suite"] if one["name"] == "google_timestamps")
    suite = packetdrill.ensure_timestamps(original, entry)
    assert suite.scripts() == ["tcp/a/x.pkt"] and suite.text("tcp/a/x.pkt") == STAMPED
    assert suite.mtu_extra_bytes == 12
    vulture = {subject.name for subject in packetdrill.SUBJECTS if subject.vulture}
    assert set(suite.subjects) == {"reno"} | vulture
    assert packetdrill.wanted_of(suite, []) == list(suite.subjects)
    assert packetdrill.wanted_of(suite, ["lp", "credit"]) == ["credit"]
    assert packetdrill.wanted_of(suite, ["lp"]) == []
    assert packetdrill.wanted_of(original, ["lp"]) == ["lp"]


def test_a_subject_is_compared_with_what_starts_and_sends_like_it() -> None:
    by_name = {subject.name: subject for subject in packetdrill.SUBJECTS}
    for subject in packetdrill.SUBJECTS:
        assert by_name[subject.reference].control == "reno"
    names = [subject.name for subject in packetdrill.chosen(["ledbat"])]
    assert names == ["reno", "reno-paced-two", "ledbat"]


def test_what_fails_with_the_reference_is_not_run() -> None:
    assert packetdrill.passed_in([*RENO, result("tcp/a/y.pkt", "slow", "ipv6")]) == [
        "tcp/a/w.pkt", "tcp/a/x.pkt", "tcp/a/y.pkt",
    ]  # fmt: skip
    assert packetdrill.passed_in(RENO) == ["tcp/a/w.pkt", "tcp/a/x.pkt"]


def test_an_entry_means_the_kernels_script_of_that_name_too() -> None:
    assert packetdrill.is_meant("tcp/eor/no-coalesce-small.pkt", "tcp/eor/no-*")
    assert packetdrill.is_meant("packetdrill/tcp_eor_no-coalesce-small.pkt", "tcp/eor/no-*")
    assert not packetdrill.is_meant("packetdrill/tcp_sack_no-coalesce-small.pkt", "tcp/eor/no-*")
    kernels = [result("packetdrill/tcp_a_x.pkt", "fail")]
    patch = pytest.MonkeyPatch()
    entry = {"subjects": ["lp"], "script": "tcp/a/x.pkt", "why": "its law"}
    patch.setattr(packetdrill, "settings", lambda: {"expected": [entry]})
    before = [result("packetdrill/tcp_a_x.pkt", "pass")]
    outcome = packetdrill.judge("kernel", "lp", kernels, before, {})
    again = packetdrill.judge("kernel", "lp", before, before, {})
    patch.undo()
    assert (outcome.faults, outcome.outdated, len(outcome.expected)) == ([], [], 1)
    assert again.outdated == ["tcp/a/x.pkt: listed as different, and it is not"]


def test_the_document_has_counts_and_every_script_that_did_not_pass() -> None:
    suite = packetdrill.Suite("google", "what", "6.12", ())
    facts = {"series": "6.12", "flavour": "plain", "release": "6.12.1"}
    lp = [
        ScriptResult("tcp/a/x.pkt", "ipv4", "pass", "", 3),
        result("tcp/a/w.pkt", "fail"),
        result("tcp/a/w.pkt", "fail", "ipv6"),
    ]
    outcome = packetdrill.judge("google", "lp", lp, RENO, {})
    ran = packetdrill.PacketdrillRan(suite, facts, identity.of_tree("key", []), {"lp": lp}, [outcome])
    document = command.document(ran)
    (case,) = document["cases"]
    assert document["experiment"] == "foreign_google"
    assert case["failed"] == {"tcp/a/w.pkt": "ipv4: line 3; ipv6: line 3"}
    assert case["faults"] == ["tcp/a/w.pkt (ipv4): line 3"]
    counts = {name: values for name, (values,) in case["metrics"].items()}
    assert counts == {
        "ran": 3, "passed": 1, "slow": 0, "failed": 2, "as_reference": 1, "by_law": 0, "expected": 0, "faults": 1,
        "outdated": 0, "taken": 3, "with_taken": 1,
    }  # fmt: skip
    assert quoting.quote("foreign_google passed subject=lp", {"foreign_google": document}) == "1"
    assert quoting.quote("foreign_google @kernel", {"foreign_google": document}) == "6.12.1"


def test_a_boot_that_stands_still_loses_no_script(monkeypatch: pytest.MonkeyPatch) -> None:
    reno, suite = packetdrill.SUBJECTS[0], packetdrill.Suite("google", "what", "6.12", ())
    boots: list[list[str]] = []

    def boot(
        _backend: Uml, _suite: packetdrill.Suite, _subject: packetdrill.Subject, scripts: list[str], _report: Report
    ) -> list[ScriptResult]:
        boots.append(scripts)
        if scripts[0] == "stuck":
            return []
        if len(boots) == 1:  # the second script hung over IPv6
            return [result("a", "pass"), result("a", "pass", "ipv6"), result("b", "pass")]
        return [result(script, "pass", family) for script in scripts[:2] for family in ("ipv4", "ipv6")]

    monkeypatch.setattr(packetdrill, "boot", boot)
    results = packetdrill.run_subject(Uml(), suite, reno, ["a", "b", "c", "stuck", "d"])
    assert boots == [
        ["a", "b", "c", "stuck", "d"],
        ["b", "c", "stuck", "d"],
        ["c", "stuck", "d"],
        ["stuck", "d"],
        ["d"],
    ]
    assert [(one.script, one.variant) for one in results if one.status == "pass"] == [
        (script, family) for script in "abcd" for family in ("ipv4", "ipv6")
    ]
    assert [one for one in results if one.status == "fail"] == [
        ScriptResult("stuck", "ipv4", "fail", "the machine stood still")
    ]
