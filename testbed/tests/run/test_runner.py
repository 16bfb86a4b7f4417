# SPDX-License-Identifier: GPL-2.0
"""Runs are parallel and reused by content; the first failure or Ctrl-C stops them and leaves no process behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.backends.backend import Tools
from testbed.base.errors import LbeError
from testbed.results import files as results
from testbed.run import runner
from testbed.run.runner import Options, RunFailed
from testbed.spec.experiment import Experiment, parse
from testbed.tests.made import TWO_FLOWS, PretendBackend


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendBackend:
    monkeypatch.setenv("LBE_CACHE", str(tmp_path / "cache"))
    agent = tmp_path / "agent"
    agent.write_bytes(b"agent")
    return PretendBackend(agent)


@pytest.fixture
def one(tmp_path: Path) -> Experiment:
    path = tmp_path / "made.toml"
    path.write_text(TWO_FLOWS)
    return parse(TWO_FLOWS, path)


def progress_list() -> tuple[list[tuple[int, int]], runner.OnProgress]:
    seen: list[tuple[int, int]] = []
    return seen, lambda done, total, text: seen.append((done, total))


def test_every_case_and_seed_once_in_order(backend: PretendBackend, one: Experiment) -> None:
    seen, progress = progress_list()
    made = runner.run(one, backend, Options(jobs=3), progress)
    assert [(result.case["background"], result.seed) for result in made.results] == [
        (variant, seed) for variant in ("alone", "polite", "strict") for seed in (1, 2)
    ]
    assert seen[0] == (0, 6) and seen[-1] == (6, 6)
    assert made.provenance["kernel"] and made.provenance["testbed"]
    assert made.results[0].facts["topology"] and made.results[0].facts["plans"]["snd"]


def test_runs_are_reused_by_content(backend: PretendBackend, one: Experiment) -> None:
    _, progress = progress_list()
    first = runner.run(one, backend, Options(jobs=1), progress)
    again = runner.run(one, backend, Options(jobs=1), progress)
    assert first.provenance["runs_reused"] == 0 and again.provenance["runs_reused"] == 6
    assert first.results[0].metrics.keys() == again.results[0].metrics.keys()
    assert runner.run(one, backend, Options(jobs=1, reuse=False), progress).provenance["runs_reused"] == 0
    assert runner.run(one, backend, Options(jobs=1, seed=2), progress).provenance["runs_reused"] == 3
    assert (
        runner.run(one, backend, Options(jobs=1, sets={"topology.rate_mbit": 5}), progress).provenance["runs_reused"]
        == 0
    )
    backend.agent.write_bytes(b"another agent")
    assert runner.run(one, backend, Options(jobs=1), progress).provenance["runs_reused"] == 0


def test_a_run_is_known_by_all_that_decides_it(
    backend: PretendBackend, one: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(module: str = "m", agent: str = "agent", boot: str = "pretend", seed: int = 1) -> str:
        (tmp_path / agent).write_text(agent)
        tools = Tools(tmp_path / agent, {"tcp_x": tmp_path}, "v0", {"tcp_x": module})
        monkeypatch.setattr(backend, "tools", lambda: tools)
        monkeypatch.setattr(backend, "key", lambda: boot)
        job = runner.plan(one, Options(seed=seed))[0]
        job.modules = ["tcp_x"]
        return runner.run_key(job, backend)

    keys = [key(), key(module="other"), key(agent="other"), key(boot="other"), key(seed=2)]
    assert len(set(keys)) == 5 and key() == keys[0]


def test_metrics_are_computed_anew_from_reused_series(backend: PretendBackend, one: Experiment) -> None:
    _, progress = progress_list()
    runner.run(one, backend, Options(jobs=1), progress)
    made = runner.run(one, backend, Options(jobs=1, sets={"metric.be.from_s": 12}), progress)
    assert made.provenance["runs_reused"] == 6


def test_a_cut_cache_entry_is_run_again(backend: PretendBackend, one: Experiment, tmp_path: Path) -> None:
    _, progress = progress_list()
    runner.run(one, backend, Options(jobs=1), progress)
    for path in (tmp_path / "cache" / "runs").rglob("series.npz"):
        path.write_bytes(path.read_bytes()[:100])
    assert runner.run(one, backend, Options(jobs=1), progress).provenance["runs_reused"] == 0


def test_runs_that_nobody_asked_for_are_forgotten(backend: PretendBackend, one: Experiment, tmp_path: Path) -> None:
    _, progress = progress_list()
    runner.run(one, backend, Options(jobs=1), progress)
    runs = tmp_path / "cache" / "runs"
    old, *young = runs.glob("??/*")
    os.utime(old, (0, 0))
    (runs / "looked").unlink(missing_ok=True)
    runner.forget_old()
    assert not old.exists() and all(folder.exists() for folder in young)


def test_a_failed_run_fails_the_experiment_and_says_which(backend: PretendBackend, one: Experiment) -> None:
    def spoil(out: Path) -> None:
        (out / "uname").unlink()

    backend.spoil = spoil
    _, progress = progress_list()
    with pytest.raises(RunFailed, match=r"made background=alone seed 1:\nthe run left no uname"):
        runner.run(one, backend, Options(jobs=1), progress)


def test_warming_runs_what_it_can_and_leaves_the_rest(backend: PretendBackend, one: Experiment) -> None:
    made = runner.plan(one, Options())

    runner.warm(made + made, backend)
    _, progress = progress_list()
    assert runner.run(one, backend, Options(), progress).provenance["runs_reused"] == len(made)
    backend.agent.write_bytes(b"one that fails")
    backend.spoil = lambda out: (out / "uname").unlink()
    runner.warm(made, backend)
    with pytest.raises(RunFailed):
        runner.run(one, backend, Options(), progress)


def test_a_worker_that_dies_is_a_failure(backend: PretendBackend, one: Experiment) -> None:
    backend.spoil = lambda out: os._exit(3)
    _, progress = progress_list()
    with pytest.raises(RunFailed, match=r"its worker ended 3 times \(status 3\)"):
        runner.run(one, backend, Options(jobs=2), progress)


def test_a_worker_that_is_ended_as_it_is_born_is_a_failure(backend: PretendBackend, one: Experiment) -> None:
    """A worker ended by SIGTERM right after fork() must not go on as a second copy of the caller.

    It could because it inherits the command line's handler, which raises wherever the process is.
    """
    caller, at_birth = os.getpid(), [True]

    def end_it() -> None:
        if at_birth:
            os.kill(os.getpid(), signal.SIGTERM)

    os.register_at_fork(after_in_child=end_it)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    _, progress = progress_list()
    try:
        with pytest.raises(RunFailed, match=r"status 143"):
            runner.run(one, backend, Options(jobs=2), progress)
    finally:
        if os.getpid() != caller:
            os._exit(9)
        at_birth.clear()
        signal.signal(signal.SIGTERM, before)


def test_a_worker_that_is_killed_in_mid_run_costs_nothing_but_time(
    backend: PretendBackend, one: Experiment, tmp_path: Path
) -> None:
    """Of four workers the first two that run are killed. All results are there, equal to those of an undisturbed run.
    """
    _, progress = progress_list()
    whole = runner.run(one, backend, Options(jobs=1), progress)

    def killed(out: Path) -> None:
        for name in ("first", "second"):
            with contextlib.suppress(FileExistsError):
                (tmp_path / name).mkdir()
                os.kill(os.getpid(), signal.SIGKILL)

    backend.spoil = killed
    again = runner.run(one, backend, Options(jobs=4, reuse=False), progress)
    assert (tmp_path / "first").exists() and (tmp_path / "second").exists(), "nobody was killed"
    assert [(run.case, run.seed, run.metrics) for run in again.results] == [
        (run.case, run.seed, run.metrics) for run in whole.results
    ]
    for mine, theirs in zip(again.results, whole.results, strict=True):
        assert results.series_bytes(mine.series) == results.series_bytes(theirs.series)


def test_zero_runs_are_refused(one: Experiment) -> None:
    with pytest.raises(LbeError, match="runs = 0: allowed are 1 to 10000"):
        runner.plan(one, Options(runs=0))
    with pytest.raises(LbeError, match="no case is left"):
        runner.plan(one, Options(cases={"background": ["polite"], "other": ["x"]}))


INTERRUPTED = """
import os, signal, subprocess, sys
from pathlib import Path
from testbed.run import runner
from testbed.spec.experiment import parse
from testbed.tests.made import PretendBackend, TWO_FLOWS

class Slow(PretendBackend):
    def run(self, job, out, **keys):
        child = subprocess.Popen(["sleep", "600.125"])
        try:
            os.write(1, b"running\\n")
            child.wait()
        finally:
            child.kill()
            child.wait()

# who runs the tests in the background has SIGINT ignored, and a child inherits that
signal.signal(signal.SIGINT, signal.default_int_handler)
folder = Path(sys.argv[1])
(folder / "made.toml").write_text(TWO_FLOWS)
(folder / "agent").write_bytes(b"")
try:
    runner.run(parse(TWO_FLOWS, folder / "made.toml"), Slow(folder / "agent"), runner.Options(jobs=2), lambda *_: None)
except KeyboardInterrupt:
    sys.exit(130)
"""


def children(group: int) -> list[str]:
    done = subprocess.run(["ps", "-eo", "sid=,args="], check=True, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if line.split()[0] == str(group)]


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_end_from_outside_leaves_nothing_running(tmp_path: Path, sent: int, status: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "LBE_CACHE": str(tmp_path / "cache")},
        cwd=Path(__file__).resolve().parents[3],
    )
    assert process.stdout
    try:
        assert [process.stdout.readline() for _ in range(2)] == ["running\n"] * 2
        os.kill(process.pid, sent)
        assert process.wait(timeout=300) == status
        deadline = time.monotonic() + 300  # half the time that the guests sleep: only a fault takes so long
        while children(process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert children(process.pid) == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
