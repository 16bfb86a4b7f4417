# SPDX-License-Identifier: GPL-2.0
"""What a tool reported as wrong makes the results red, as a missed bound of an experiment does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.campaign import command
from testbed.foreign.command import PREFIX
from testbed.present import markdown, state
from testbed.results import digest
from testbed.run import identity
from testbed.support import outcomes

NOTE = "a transfer that was cut short"


def of_tool(name: str, faults: list[str]) -> dict[str, Any]:
    """Make the document of a tool with one case."""
    provenance = {
        "command": "made up",
        "kernel": {"release": "6.12.0", "series": "6.12", "flavour": "plain"},
        "backend": "uml",
        "host": {"python": "3", "numpy": "2"},
    }
    document = digest.of_files(name, ([], ""), {}, provenance, {"testbed": ["v1"], "modules": {}}, [1])
    document["cases"] = [digest.counted({"subject": "lbe"}, ["ran"], [1], faults=faults)]
    return document


def life(wrong: list[str]) -> dict[str, Any]:
    """The committed life, with these checks missed."""
    document: dict[str, Any] = json.loads(json.dumps(digest.load(digest.FOLDER / "life_idle.json")))
    document["cases"] = [case for case in document["cases"] if case["case"] in document["asked_cases"]]
    return document | {"asked_cases": [case["case"] for case in document["cases"]], "wrong": wrong}


@pytest.mark.parametrize(
    ("name", "good", "bad", "said"),
    [
        ("life_idle", life([]), life([NOTE]), f"life_idle: {NOTE}"),
        *(
            (name, of_tool(name, []), of_tool(name, [NOTE]), f"{name}: subject=lbe: {NOTE}")
            for name in (f"{PREFIX}google", f"{PREFIX}netfilter", outcomes.NAME)
        ),
    ],
)
def test_a_fault_that_a_tool_reported_is_red(
    name: str, good: dict[str, Any], bad: dict[str, Any], said: str,
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    assert state.reds({name: good}) == [] and state.reds({name: bad}) == [said]
    monkeypatch.setattr(identity, "stale", lambda *_: [])
    for document, status in ((good, 0), (bad, 1)):
        markdown.write(state.mark_stale({name: document}), tmp_path)
        assert command.check(tmp_path / "out", tmp_path) == status
    assert f"RED {said}" in capsys.readouterr().out
