# SPDX-License-Identifier: GPL-2.0
"""What a tool reported as wrong makes the results red, as a missed bound of an experiment or of a life does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.campaign import command
from testbed.foreign.command import PREFIX
from testbed.present import markdown, state, tables
from testbed.results import digest
from testbed.run import identity
from testbed.spec import lives
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


def life(**best_effort: float) -> dict[str, Any]:
    """Make the document of a life: for each of these background flows, what it left best effort of the link."""
    files = ["testbed/robustness/lives/life_idle.toml"]
    document = of_tool("life_idle", []) | {"files": files, "file_sha256": identity.hash_of_files(files)}
    cases = {name: {"background": name, "idle": "day", "peer": "ms"} for name in best_effort}
    runs = [
        digest.counted(cases[name], ["before", "be", "after"], [9.3, share, 9.3]) for name, share in best_effort.items()
    ]
    return document | {"asked_cases": list(cases.values()), "cases": runs, "wrong": [], "differs": []}


MISSED = "best effort beside it, background=lbe idle=day peer=ms: 10.00, bound >= 89: FAILS"


@pytest.mark.parametrize(
    ("name", "good", "bad", "said"),
    [
        ("life_idle", life(lbe=99), life(lbe=10), f"life_idle: {MISSED}"),
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


def test_the_page_of_all_bounds_has_the_lives() -> None:
    text = markdown.pages({"life_idle": life(lbe=99, lp=10, background=40)})["checks.md"]
    sections = {part.partition("\n")[0]: part for part in text.split("\n## ")}
    rows = [line for line in sections["life_idle"].splitlines() if line.startswith("| best effort beside it | ")]
    for background, ours, verdict in (
        ("lbe", "99.00", "| holds |"),
        ("lp", "10.00", "| FAILS |"),
        ("background", "40.00", "| not reached, as explained: made for a low band"),
        ("ledbat", "-", "| not run yet: the case is newer than these results |"),
    ):
        row = next(row for row in rows if f"background={background} idle=day peer=ms" in row)
        assert f"| {ours} |" in row and verdict in row
    for name in set(lives.files()) - {"life_idle"}:
        assert sections[name].split("\n", 1)[1].strip() == "not run: `make soak` runs this long connection"


def test_a_lost_run_of_a_life_is_red() -> None:
    document = life(lbe=99)
    document["asked_cases"].append({"background": "lp", "idle": "day", "peer": "ms"})
    assert state.reds({"life_idle": document}) == ["life_idle: INCOMPLETE: 1 runs that were asked for are missing"]
    assert "INCOMPLETE: 1 of 1 runs missing" in [row[-1] for row in tables.check_rows(document)]
