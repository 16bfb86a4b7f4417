# SPDX-License-Identifier: GPL-2.0
"""testbed/robustness/lives: each life passes in its short form, and a life can fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from testbed.__main__ import main
from testbed.backends.uml import Uml
from testbed.measure.series import Series
from testbed.present import quoting
from testbed.results import digest
from testbed.results.files import Result, ResultSet
from testbed.robustness import soak
from testbed.run import identity, runner
from testbed.spec import lives
from testbed.spec.experiment import Experiment, load
from testbed.spec.records import QUEUE, RECV, SEND

#: unread bytes at which the agent's receiver reads, whatever its period (testbed/agent/plan.c)
LOWAT_BYTES = 4 << 20
OURS = {"lbe", "lp", "ledbat", "ledbatpp", "background", "paper", "credit", "rledbat"}


@pytest.mark.scenario
@pytest.mark.parametrize("name", soak.lives(short=True))
def test_life(name: str) -> None:
    done = soak.live(name, runner.Options("short", jobs=2, command="test"))
    assert done is not None and done.checks > 0
    assert not done.wrong, soak.table([done])
    assert identity.stale(done.document, None) == []


@pytest.mark.scenario
def test_a_flow_that_does_not_step_aside_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = soak.lives()["life_clocks"].read_text(encoding="utf-8")
    other = tmp_path / "life_clocks.toml"
    other.write_text(text.replace('"flow.bg.cc" = "lp"', '"flow.bg.cc" = "cubic"'), encoding="utf-8")
    monkeypatch.setattr(lives, "FOLDER", tmp_path)
    done = soak.live("life_clocks", runner.Options("short", jobs=2, command="test"))
    assert done is not None
    assert done.wrong and all("background=lp" in one and ": be is" in one for one in done.wrong), done.wrong
    # with each of the two clocks, the share itself; a difference between shares may be wrong as well
    for clock in ("ms1", "ms16"):
        assert any(f"clock={clock}: be is" in one and "wanted >= 89" in one for one in done.wrong), done.wrong


def test_the_short_set_is_bytes_idleness_and_clocks() -> None:
    assert list(soak.lives(short=True)) == ["life_bytes", "life_clocks", "life_idle"]


@pytest.mark.parametrize("name", soak.lives())
def test_every_law_has_every_life(name: str) -> None:
    assert set(load(str(soak.lives()[name])).vary["background"]) >= OURS


@pytest.mark.parametrize("name", soak.lives())
def test_a_receiver_reads_more_often_than_its_buffer_fills(name: str) -> None:
    """A receiver without read_ms reads when it samples. With a sample each 10 s cubic alone got 2/3 of the link."""
    experiment = load(str(soak.lives()[name]))
    for case in experiment.cases("default"):
        setting = experiment.setting(case, "default")
        for flow in setting.flows.values():
            period_ms = flow.read_ms or setting.head.sample_ms
            assert setting.topology.rate_mbit * 1e3 / 8 * period_ms < LOWAT_BYTES, (case, period_ms)


def test_what_an_earlier_soak_left_is_not_the_whole_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """If runs are missing the document still lists all cases of the life, pages name the gaps, and the soak fails."""
    asked: list[dict[str, str]] = []

    def some(experiment: Experiment, _backend: Uml, options: runner.Options, _report: object) -> ResultSet:
        asked[:] = experiment.cases(options.mode)
        metrics = {"before": 9.3, "be": 99.0, "after": 9.3}
        empty = Series(np.empty(0, SEND), np.empty(0, RECV), np.empty(0, QUEUE))
        facts = {"job": "", "topology": [], "modules": {}, "testbed": "", "sysctls": {}, "wall_s": 2.25}
        runs = [Result(case, 1, metrics, facts, empty) for case in asked[:5]]
        provenance = {"command": "soak", "kernel": {"release": "6.12"}}
        return ResultSet(experiment.name, options.mode, "", {}, provenance, runs, asked, [1], {})

    monkeypatch.setattr(runner, "run", some)
    monkeypatch.setattr(Uml, "prepare", lambda *_: None)
    done = soak.live("life_idle", runner.Options("default", cached=True))
    assert done is not None
    assert (done.cases, done.missing) == (5, len(asked) - 5)
    assert done.checks > 0 and not done.wrong, done.wrong
    assert done.document["asked_cases"] == asked
    assert done.document["seconds"] == 11, "the time of five runs"
    assert digest.lost_runs(done.document) == len(asked) - 5
    assert f"life_idle: INCOMPLETE: {len(asked) - 5} cases have no run" in soak.table([done])
    lines = quoting.table("life_idle by background,idle peer=ms\nbe | best effort, %", {"life_idle": done.document})
    assert len(lines.splitlines()) == 2 + 8 * 6 and quoting.INCOMPLETE in lines


def lived(name: str, wrong: list[str], missing: int = 0) -> soak.Lived:
    """Make the result of a life that has one check and no case."""
    document = digest.of_files(name, ([], ""), {}, {}, {"testbed": [], "modules": {}}, [1])
    return soak.Lived(document | {digest.SECONDS: 1}, 1, wrong, [], missing)


@pytest.mark.parametrize(
    ("error", "status"), [(runner.RunFailed("the guest crashed"), 1), (KeyboardInterrupt(), 130)]
)
def test_what_ends_a_soak_does_not_lose_the_documents_of_the_lives_before_it(
    error: BaseException, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of three lives fails or is interrupted: the first one's document is there, the third does not run."""
    ran: list[str] = []

    def live(name: str, *_: object) -> soak.Lived:
        ran.append(name)
        if name == "life_idle":
            raise error
        return lived(name, [])

    monkeypatch.setattr(soak, "live", live)
    assert main(["soak", "life_clocks", "life_idle", "life_hours", "--out", str(tmp_path)]) == status
    assert ran == ["life_clocks", "life_idle"]
    assert [path.name for path in tmp_path.iterdir()] == ["life_clocks.json"]
    assert digest.load(tmp_path / "life_clocks.json")["experiment"] == "life_clocks"


@pytest.mark.parametrize(
    ("wrong", "missing", "status"), [([], 0, 0), (["background=lp: be is 50, wanted 99"], 0, 1), ([], 1, 1)]
)
def test_a_soak_fails_if_any_of_its_lives_fails(
    wrong: list[str], missing: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def live(name: str, *_: object) -> soak.Lived:
        return lived(name, wrong, missing) if name == "life_clocks" else lived(name, [])

    monkeypatch.setattr(soak, "live", live)
    assert main(["soak", "life_clocks", "life_idle", "--out", str(tmp_path)]) == status
    assert sorted(path.name for path in tmp_path.iterdir()) == ["life_clocks.json", "life_idle.json"]


def test_an_unknown_life_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["soak", "nosuch"]) == 2
    assert "no life nosuch; there are: life_bytes, life_clocks" in capsys.readouterr().err
