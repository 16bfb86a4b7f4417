# SPDX-License-Identifier: GPL-2.0
"""Runs on several machines with Dask (requirements-dask.txt).

Every worker needs this tree at the same commit and a kernel in its cache (run `python3 -m testbed demo` once).
The key of a run reveals a worker whose sources or kernel differ, and the run fails.
"""

from __future__ import annotations

import threading
from collections.abc import Generator

from ..backends.backend import Backend
from ..backends.uml import Uml
from ..base.errors import LbeError
from ..results.files import Record
from .job import Job
from .runner import Execute, Finished, Task, run_key, run_one

#: the backends that a worker has prepared, by kernel; one thread prepares while the others wait
_ready: dict[tuple[str, str], Uml] = {}
_preparing = threading.Lock()


def run_there(job: Job, series: str, flavour: str, key: str) -> Record:
    """Run one job on a worker, if its tree and kernel are the same as the client's."""
    with _preparing:
        backend = _ready.get((series, flavour))
        if backend is None or not set(job.modules) <= set(backend.tools().modules):
            backend = Uml(series, flavour)
            backend.prepare(job.modules)
            _ready[series, flavour] = backend
    if run_key(job, backend) != key:
        raise LbeError("this worker's tree or kernel is not that of the campaign: same commit, same release?")
    return run_one(job, backend)


def over(address: str) -> Execute:
    """Execute on the workers of the Dask scheduler at ``address``. LbeError if Dask or the scheduler is missing."""
    try:
        from distributed import Client, as_completed
    except ImportError as missing:
        raise LbeError(
            "--dask needs Dask: install requirements-dask.txt into the Python that `scripts/venv` prints"
        ) from missing

    def execute(tasks: list[Task], backend: Backend, _count: int) -> Generator[Finished, None, None]:
        try:
            client = Client(address, timeout="10s")
        except OSError as refused:
            raise LbeError(f"--dask {address}: no scheduler answers there: {refused}") from refused
        if not isinstance(backend, Uml):
            raise LbeError("--dask: its workers run the backend uml alone")
        try:
            spec = backend.spec
            futures = {
                client.submit(run_there, task.job, spec.series, spec.flavour, task.key, pure=False, retries=1): task
                for task in tasks
            }
            for future in as_completed(list(futures)):
                index = futures.pop(future).index
                error = future.exception()
                yield (index, None, str(error)) if error else (index, future.result(), None)
        finally:
            # runs that have not started are cancelled; those in progress run to their end
            client.cancel(list(futures))
            client.close()

    return execute
