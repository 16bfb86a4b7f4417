# SPDX-License-Identifier: GPL-2.0
"""testbed/robustness: every part passes in its short form, stored corpus included; and parts can fail."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.base.places import REPO
from testbed.foreign import netfilter
from testbed.present import quoting, state
from testbed.robustness import command, fuzz, packets, parts, scenarios
from testbed.robustness.parts import PARTS, Part, PartOutcome
from testbed.run import identity, runner
from testbed.spec.experiment import load

THREATS = REPO / "Documentation" / "threats.md"
DRILLS = re.findall(
    r"^def ((?:lowpri|shred_hint|lp|ledbat|lbe|vulture)_\w+)\(wire: Wire\) ->",
    (parts.GUEST / "drills.py").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def part_of(key: str) -> Part:
    return next(part for part in PARTS if part.key == key)


CHECKS = re.findall(r'^    "(\w+)": \(', (parts.GUEST / "privilege.py").read_text(encoding="utf-8"), re.MULTILINE)


@functools.cache
def short(key: str) -> PartOutcome:
    """Run the short form of a part, once a session; a cached success with the same content is not run again."""
    return parts.run_part(part_of(key), short=True)


@pytest.mark.scenario
@pytest.mark.parametrize("key", [part.key for part in PARTS if part.short is not None])
def test_part(key: str) -> None:
    outcome = short(key)
    assert outcome.good, command.table([outcome])
    # these two parts use connections of scripts; all other parts run a stream beside it and check each byte
    assert outcome.bytes or key in ("drills/plain", "liars/sanitizer"), "no byte was carried beside it"


def test_the_scenarios_on_the_sanitizer_kernel_use_every_module_and_every_controller() -> None:
    names = [name for several in scenarios.EXPERIMENTS.values() for name in several]
    jobs = [job for name in names for job in runner.plan(load(name), runner.Options("short", runs=1))]
    assert {module for job in jobs for module in job.modules} >= set(parts.MODULES)
    commands = " ".join(event.run for job in jobs for event in job.setting.events)
    for controller in netfilter.CONTROLLERS:
        assert f"controller={controller}" in commands


@pytest.mark.scenario
@pytest.mark.parametrize("drill", DRILLS)
def test_drill(drill: str) -> None:
    """A module puts on the wire what its drill expects."""
    results = short("drills/plain").more["drills"]
    assert results.get(drill, "it did not run") == "ok", results.get(drill)


@pytest.mark.scenario
@pytest.mark.parametrize("check", CHECKS)
def test_privilege(check: str) -> None:
    """A user and a container's root may do what they are allowed to, and nothing else."""
    results = short("privilege/sanitizer").more["privilege"]
    assert results.get(check, "it was not tried") == "ok", results.get(check)


# ---- can it fail? -----------------------------------------------------------------------------


@pytest.mark.scenario
def test_a_module_that_does_otherwise_fails_its_drill() -> None:
    settings: dict[str, Any] = {"only": "lowpri_marks", "parameters": "mark=N"}  # texts; a part itself has numbers only
    broken = replace(part_of("drills/plain"), short=settings)
    outcome = parts.run_part(broken, short=True)
    assert not outcome.good
    assert "tos 0x04" in outcome.wrong[0] and "tos 0x0" in outcome.wrong[0]


@pytest.mark.scenario
def test_a_message_that_is_no_message_ends_a_part() -> None:
    """If the program of a part aborts, the part does not pass."""
    broken = replace(part_of("fuzz/sanitizer"), flavour="plain", files=lambda seed, settings: {"lines": "v zz\n"})
    outcome = parts.run_part(broken, short=True)
    assert not outcome.good and not outcome.cases
    assert "v zz" in str(outcome.more["failure"])


WARNING = "[    1.0] WARNING: CPU: 0 PID: 39 at {}\n"
LEAK = "unreferenced object 0x1 (size 16):\n  backtrace:\n    {}+0x1/0x2\n"


def test_only_what_is_the_kernels_own_is_forgiven() -> None:
    known = WARNING.format("kernel/trace/trace_events.c:2628 event_define_fields+0x387/0x3b9")
    other = WARNING.format("net/core/dev.c:1 vulture_in+0x1/0x2")
    assert parts.sorted_out(known + other, "") == (
        ["WARNING: CPU: 0 PID: 39 at kernel/trace/trace_events.c:2628 event_define_fields+0x387/0x3b9"],
        ["WARNING: CPU: 0 PID: 39 at net/core/dev.c:1 vulture_in+0x1/0x2"],
    )
    own, ours = parts.sorted_out("", LEAK.format("sysfs_slab_add") + LEAK.format("shred_flow_add"))
    assert len(own) == len(ours) == 1 and "shred_flow_add" in ours[0]


STREAM = """
import common, sys
one = common.Stream()
one.pump(300000)
{damage}
one.close("it")
common.finish(1)
"""


@pytest.mark.parametrize(
    ("damage", "lost", "text"),
    [
        ("", 0, ""),
        # these never come: do not wait for them in real time
        ("one.settle(); one.got -= 5; settle = one.settle; one.settle = lambda: settle(0)", 5, "5 of"),
        ("one.settle(); one.got += 1; one.pump(100)", None, "other bytes"),
        ("one.settle(); one.sender.shutdown(1); one.pump(100000)", None, "send:"),
    ],
    ids=["whole", "short", "shifted", "cut"],
)
def test_a_missing_or_wrong_byte_is_seen(tmp_path: Path, damage: str, lost: int | None, text: str) -> None:
    """Run the guest's connections on this machine's loopback."""
    (tmp_path / "settings.json").write_text(json.dumps({"modules": {}, "attributes": parts.attributes()}))
    shutil.copy(parts.GUEST / "common.py", tmp_path)
    words = [sys.executable, "-c", STREAM.format(damage=damage)]
    subprocess.run(words, cwd=tmp_path, env={**os.environ, "LBE_OUT": str(tmp_path)}, check=True)
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["wrong"] == []) is (text == "")
    assert text in "".join(result["wrong"])
    if lost is not None:
        assert result["lost"] == lost


def test_an_outcome_of_nothing_is_not_good() -> None:
    assert not PartOutcome("fuzz", "6.12", 1).good
    assert PartOutcome("fuzz", "6.12", 1, cases=1).good
    for wrong in ({"lost": 1}, {"warnings": ["WARNING: x"]}, {"wrong": ["x"]}):
        assert not PartOutcome("fuzz", "6.12", 1, cases=1, **wrong).good


def test_the_document_has_a_case_for_each_part_and_kernel_and_what_is_wrong() -> None:
    outcomes = [
        *(PartOutcome("cycles", "6.12.1 plain", seed, cases=100, bytes=3_321_400_000, wall_s=8.4) for seed in (1, 2)),
        PartOutcome("cycles", "6.12.1 sanitizer", 1, cases=90, bytes=1_000_000, lost=3, wall_s=80.0),
        PartOutcome(
            "cycles", "6.12.1 sanitizer", 2, cases=110, warnings=["WARNING: x"], wrong=["y"], counts={parts.OWN: 2}
        ),
    ]
    document = command.document(outcomes, "6.12")
    assert document["experiment"] == "abuse" and document["provenance"]["kernel"]["flavour"] == parts.SANITIZER
    said = {"abuse": document}
    assert quoting.quote("abuse ran part=cycles kernel=plain", said) == "100"
    assert quoting.quote("abuse carried part=cycles kernel=plain", said) == "3321 ±0"
    assert quoting.quote("abuse own part=cycles kernel=sanitizer", said) == "1", "the mean of two seeds"
    assert quoting.quote("abuse @kernel", said) == "6.12.1"
    assert [case["faults"] for case in document["cases"]] == [[], ["3 bytes lost", "WARNING: x", "y"]]
    red = [f"abuse: part=cycles kernel=sanitizer: {text}" for text in ("3 bytes lost", "WARNING: x", "y")]
    assert state.reds(said) == red
    assert identity.stale(document, None) == []
    short = command.document([PartOutcome("fuzz", "6.12.1 sanitizer", 1)], "6.12", short=True)
    assert (short["experiment"], short["mode"]) == ("abuse_short", "short")
    assert short["cases"][0]["faults"] == ["nothing was tried: "]


# ---- what is sent -----------------------------------------------------------------------------


def test_the_same_seed_makes_the_same_messages() -> None:
    one, two, other = (list(fuzz.Fuzzer(seed).lines(500)) for seed in (7, 7, 8))
    assert one == two != other


def test_the_grammar_is_the_whole_family() -> None:
    """The grammar has every request of uapi/vulture_gen.h, and every attribute under its number."""
    header = (REPO / "vulture" / "uapi" / "vulture_gen.h").read_text(encoding="utf-8")
    grammar = fuzz.vulture_grammar()
    for name, prefix in (("main", "A"), ("options", "O"), ("rule", "R"), ("addr", "ADDR")):
        words = re.findall(rf"^\tVULTURE_{prefix}_(\w+)(?: = 1)?,$", header, re.MULTILINE)
        names = [word.lower().replace("_", "-") for word in words]
        assert [kind.name for kind in grammar.sets[name]] == names
    assert {command for command, *_ in grammar.requests} == set(range(1, 9))


def test_the_shred_attributes_are_all_there() -> None:
    header = (REPO / "sch_shred" / "uapi" / "shred.h").read_text(encoding="utf-8")
    (listed,) = re.findall(r"TCA_SHRED_UNSPEC,(.*?)__TCA_SHRED_MAX", header, re.DOTALL)
    names = [word.lower().replace("_", "-") for word in re.findall(r"TCA_SHRED_(\w+),", listed)]
    assert [kind.name for kind in fuzz.SHRED] == names


def test_every_setting_is_written_to() -> None:
    """The fuzzer writes to all sysctls of shred_hint and all module parameters that are writable at run time."""
    table = (REPO / "sch_shred" / "settings.c").read_text(encoding="utf-8")
    found = set(re.findall(r'(?:\.procname = |SHRED_NAMED\()"(\w+)"', table))
    sources = {
        "tcp_lp": r"^LBE_PARAM\((\w+),|module_param(?:_cb|_named)?\((\w+),.*0644\)|^LBE_(MARK)_PARAM",
        "tcp_ledbat": r"^LBE_PARAM\((\w+),|module_param(?:_cb|_named)?\((\w+),.*0644\)|^LBE_(MARK)_PARAM",
        "tcp_lbe": r"module_param\((\w+),.*0644\)",
        "tcp_lowpri": r"module_param(?:_cb)?\((\w+),.*0644\)|module_param_cb\((timeout_keep_percent),"
        r"|^LBE_(MARK)_PARAM",
    }
    for module, pattern in sources.items():
        text = "".join(path.read_text(encoding="utf-8") for path in (REPO / module).glob("*.c"))
        found |= {name.lower() for match in re.finditer(pattern, text, re.MULTILINE) for name in match.groups() if name}
    found -= {"_name", "name"}
    assert found == {path.rsplit("/", 1)[1] for path in fuzz.TEXTS}


def test_the_corpus_is_there_and_can_be_read() -> None:
    lines = fuzz.stored()
    assert {line[0] for line in lines} == set(fuzz.NAMES)
    assert len(lines) == len(set(lines)) > 300
    for line in lines:
        if line[0] in "vt":
            bytes.fromhex(line[2:])
    gone = {line.split()[1] for line in lines if line[0] == "s"} - set(fuzz.TEXTS)
    assert not gone, f"no module has these settings: {gone}"


def test_every_kind_of_hostile_packet_is_made_for_both_families() -> None:
    maker = packets.Maker(1)
    lines = [json.loads(line) for line in maker.lines(4 * len(maker.kinds)).splitlines()]
    names = {family: {one["name"] for one in lines if one["family"] == family} for family in (4, 6)}
    both = names[4] & names[6]
    assert both == {
        "data offset", "options cut short", "odd options", "tcp checksum", "ip checksum", "fragment", "timestamp",
        "outside of the window", "window scale", "overlap", "packet cut short", "length", "fuzzed", "segmentation",
    }  # fmt: skip
    assert "ip options" in names[4] and "extension headers" in names[6]
    assert packets.Maker(1).lines(60) == packets.Maker(1).lines(60) != packets.Maker(2).lines(60)


# ---- the threat page --------------------------------------------------------------------------


def functions_of(path: Path) -> set[str]:
    """Return the names of a file's functions; for this file also its tests of single parts and drills."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    if path == Path(__file__):
        names |= {f"test_part[{part.key}]" for part in PARTS if part.short is not None}
        names |= {f"test_drill[{drill}]" for drill in DRILLS}
        names |= {f"test_privilege[{check}]" for check in CHECKS}
    return names


def test_every_line_of_the_threat_page_names_a_test_that_there_is() -> None:
    threats = THREATS.read_text(encoding="utf-8").split("## Not defended against")[0]
    rows = [row for row in threats.splitlines() if row.startswith("| ")]
    lines = [row for row in rows if not row.startswith(("| action ", "| input "))]
    assert len(lines) > 20
    for row in lines:
        named = re.findall(r"`([\w/.]+\.py)::(test_\w+(?:\[[\w/.]+\])?)`", row.split("|")[-2])
        assert named, f"no test: {row}"
        for file, name in named:
            assert (REPO / file).is_file(), f"{file} is not there: {row}"
            assert name in functions_of(REPO / file), f"{file} has no {name}: {row}"
