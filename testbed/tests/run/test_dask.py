# SPDX-License-Identifier: GPL-2.0
"""Runs on Dask's workers: two on this machine, the same bytes as without. Run by `make check-report`."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.backends.uml import Uml
from testbed.base.errors import LbeError
from testbed.results import files as results
from testbed.run import dask_engine, runner
from testbed.spec.experiment import parse
from testbed.tests.made import TWO_FLOWS

pytestmark = [pytest.mark.report, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def address():
    """A scheduler with two workers."""
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
        assert results.series_bytes(there[index][0].series) == results.series_bytes(record.series)


def test_a_worker_with_another_tree_is_refused(address: str, backend: Uml) -> None:
    todo = tasks(backend)[:1]
    todo[0].key = "0" * 64
    ((_, record, error),) = dask_engine.over(address)(todo, backend, 1)
    assert record is None and "tree or kernel is not that of the campaign" in error


def test_no_scheduler_is_said(backend: Uml) -> None:
    with pytest.raises(LbeError, match="no scheduler answers there"):
        list(dask_engine.over("tcp://127.0.0.1:1")(tasks(backend)[:1], backend, 1))
