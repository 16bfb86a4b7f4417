# SPDX-License-Identifier: GPL-2.0
"""Runs on Dask workers give the same bytes as runs without, even if a worker is killed. Run by `make check-report`."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.backends.uml import Uml
from testbed.base.errors import LbeError
from testbed.base.places import REPO
from testbed.campaign import campaign
from testbed.present import html_report, markdown
from testbed.results import files as results
from testbed.run import dask_engine, runner
from testbed.spec import experiment as experiments
from testbed.spec.experiment import parse
from testbed.tests.made import TWO_FLOWS

pytestmark = [pytest.mark.report, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Start a scheduler with two workers; return its address."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def backend() -> Uml:
    made = Uml()
    made.prepare(set())
    return made


def tasks(backend: Uml) -> list[runner.Task]:
    jobs = runner.plan(parse(TWO_FLOWS, Path("made.toml")), runner.Options())
    return [runner.Task(index, job, runner.run_key(job, backend)) for index, job in enumerate(jobs)]


def bytes_of(record: results.Record | None) -> bytes:
    assert record
    return results.series_bytes(record.series)


def test_two_workers_give_the_same_bytes_as_this_process(address: str, backend: Uml) -> None:
    from distributed import Client, get_task_stream

    todo = tasks(backend)
    with Client(address) as client:
        with get_task_stream(client) as stream:
            there = {index: (record, error) for index, record, error in dask_engine.over(address)(todo, backend, 1)}
        used = {task["worker"] for task in stream.data}
    assert len(there) == 6 and not any(error for _, error in there.values())
    assert len(used) == 2, "both workers took part"
    here = {index: record for index, record, _ in runner.locally(todo[:2], backend, 2)}
    for index, record in here.items():
        assert bytes_of(there[index][0]) == bytes_of(record)


@pytest.fixture
def four_workers(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and four workers in namespaces of their own (processes, mounts, host names): "machines"."""
    from distributed import LocalCluster

    alone = ["unshare", "--user", "--map-root-user", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)]
    with LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, *words]
        running = [
            subprocess.Popen(
                [*alone, *worker, "--name", f"machine{index}"], env={**os.environ, "PYTHONPATH": str(REPO)}
            )
            for index in range(4)
        ]
        try:
            yield address, running
        finally:
            for process in running:
                process.kill()
                process.wait()


@contextlib.contextmanager
def one_is_killed(address: str, running: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Kill the first of four workers that is seen to run a task; the block must complete without it."""
    from distributed import Client

    def kill_one(client: Client) -> None:
        while True:
            busy = [name for name, keys in client.processing().items() if keys]
            if busy:
                name = client.scheduler_info()["workers"][busy[0]]["name"]
                running[int(name.removeprefix("machine"))].kill()
                return
            time.sleep(0.05)

    with Client(address) as client:
        client.wait_for_workers(4, timeout=300)
        killer = threading.Thread(target=kill_one, args=(client,), daemon=True)
        killer.start()
        yield
        killer.join(60)
        assert len(client.scheduler_info()["workers"]) == 3, "nobody was killed"


def test_four_machines_of_which_one_dies_in_mid_run_give_the_same_bytes(
    four_workers: tuple[str, list[subprocess.Popen[bytes]]], backend: Uml
) -> None:
    address, running = four_workers
    todo = tasks(backend)
    with one_is_killed(address, running):
        there = {index: (record, error) for index, record, error in dask_engine.over(address)(todo, backend, 1)}
    assert sorted(there) == list(range(len(todo))) and not any(error for _, error in there.values())
    for index, record, _ in runner.locally(todo, backend, 2):
        assert bytes_of(there[index][0]) == bytes_of(record)


def test_four_machines_of_which_one_dies_make_the_same_pages(
    four_workers: tuple[str, list[subprocess.Popen[bytes]]],
    backend: Uml,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The campaign of `evaluate` on four workers and locally, each with a cache of its own: all runs are made twice.
    """
    address, running = four_workers
    file = tmp_path / "made.toml"
    file.write_text(TWO_FLOWS, encoding="utf-8")
    known = experiments.files() | {"made": file}
    monkeypatch.setattr(experiments, "files", lambda: known)

    def pages(where: str, execute: runner.Execute) -> dict[str, str]:
        runs = tmp_path / where / "runs"
        monkeypatch.setattr(runner, "_entry", lambda key: runs / key[:2] / key)
        parts, failed = campaign.spend(campaign.ladders_of(["made"], backend), backend, math.inf, 4, execute)
        outcome = campaign.carry_out(parts, backend, tmp_path / where, "evaluate", failed, draw=False)
        assert not outcome.failed and len(list(runs.glob("*/*"))) >= 6, "the runs are of this cache"
        written = {"index.html": html_report.page(outcome.documents, {}), **markdown.pages(outcome.documents)}
        return written | {"data": json.dumps(outcome.documents)}

    with one_is_killed(address, running):
        there = pages("there", dask_engine.over(address))
    here = pages("here", runner.locally)
    assert "| background=polite |" in here["checks.md"]
    assert here == there


def test_a_worker_with_another_tree_is_refused(address: str, backend: Uml) -> None:
    todo = tasks(backend)[:1]
    todo[0].key = "0" * 64
    ((_, record, error),) = dask_engine.over(address)(todo, backend, 1)
    assert record is None and error and "tree or kernel is not that of the campaign" in error


def test_no_scheduler_is_said(backend: Uml) -> None:
    with pytest.raises(LbeError, match="no scheduler answers there"):
        list(dask_engine.over("tcp://127.0.0.1:1")(tasks(backend)[:1], backend, 1))
