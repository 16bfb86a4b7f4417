# SPDX-License-Identifier: GPL-2.0
"""Runs an experiment: every case with every seed, in parallel, reusing earlier runs.

Each worker is a process that boots one machine at a time. Ctrl-C ends the workers, and a worker that
ends stops its machine, so nothing remains running. A run with the same job, kernel, modules and agent
as an earlier run is read from the cache instead.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import hashlib
import io
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..backends.backend import Backend, Guests
from ..backends.tools import extras_of
from ..base.cache import cache_root
from ..base.errors import LbeError
from ..base.places import REPO
from ..results import files as results
from ..results.files import Record, Result, ResultSet
from ..spec.experiment import RUNS, Experiment, case_name, matches
from . import collect, identity
from . import job as jobs
from .job import Job

#: part of the limit on wall time that does not depend on the run's length: boots with sanitizers are slow
WALL_LIMIT_FLOOR_S = 180.0
#: wall time allowed per flow; a busy machine needs a tenth of it for a flow of 20 s
WALL_LIMIT_FLOW_S = 1.0
KEEP_DAYS = 30
#: how often a task is started if its worker is killed, by a user or by the OOM killer
LOST_TRIES = 3
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class RunFailed(LbeError):
    """A run failed; the text has the case, the seed and the machine's error."""


@dataclass
class Task:
    """One run to be made."""

    index: int
    job: Job
    key: str
    record: Record | None = None


@dataclass
class Options:
    """Options of a run. mode: one of experiment.MODES; runs, seed: None means the experiment's value."""

    mode: str = "default"
    runs: int | None = None
    jobs: int | None = None
    seed: int | None = None
    sets: dict[str, Any] = field(default_factory=dict)
    reuse: bool = True
    command: str = ""
    cases: dict[str, Any] = field(default_factory=dict)
    #: use cached runs only and make no new ones
    cached: bool = False


#: called with (done, total, text) whenever a run has finished
OnProgress = Callable[[int, int, str], None]
#: a finished task: its index, and its record or an error text
Finished = tuple[int, Record | None, str | None]
#: runs tasks, at most so many in parallel, and yields each one when it has finished
Execute = Callable[[list[Task], Backend, int], Generator[Finished, None, None]]


@functools.cache
def version() -> str:
    """The tree's version, from git describe."""
    script = REPO / "scripts" / "version"
    done = subprocess.run([str(script)], check=False, capture_output=True, text=True, cwd=REPO)
    text = done.stdout.strip()
    if done.returncode or not text:
        raise LbeError(f"no version: scripts/version returned {done.returncode}: {done.stderr.strip()}")
    return text


def plan(experiment: Experiment, options: Options) -> list[Job]:
    """All jobs of an experiment, case by case."""
    count = options.runs if options.runs is not None else experiment.runs(options.mode)
    RUNS.check(count, "runs")
    first = options.seed if options.seed is not None else experiment.head.seed
    made = []
    for case in experiment.cases(options.mode):
        if not matches(case, options.cases):
            continue
        setting = experiment.setting(case, options.mode, options.sets)
        made += [jobs.make(experiment.name, case, first + offset, setting) for offset in range(count)]
    if not made:
        raise LbeError(f"{experiment.name}: no case is left to run")
    return made


# ---------------------------------------------------------------------------------------- cache


@functools.lru_cache(maxsize=64)
def _hash_of(path: Path, _size: int, _changed_ns: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _file_hash(path: Path) -> str:
    """Hash of a file's content; the file is read again only if its size or time changes."""
    stat = path.stat()
    return _hash_of(path, stat.st_size, stat.st_mtime_ns)


def run_key(job: Job, backend: Backend) -> str:
    """Hash of everything that affects a run's result."""
    tools = backend.tools()
    content = {
        "results": results.FORMAT,
        "job": job.content_hash(),
        "backend": backend.key(),
        "agent": _file_hash(tools.agent),
        "extras": {extra.link: _file_hash(path) for extra, path in extras_of(job.files).items()},
        "modules": {name: tools.module_hash(name) for name in job.modules},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _entry(key: str) -> Path:
    return cache_root() / "runs" / key[:2] / key


def load_cached(key: str) -> Record | None:
    """An earlier run's record, or None."""
    folder = _entry(key)
    try:
        os.utime(folder)  # time of the last use, for forget_old()
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        arrays = np.load(io.BytesIO((folder / "series.npz").read_bytes()))
        return Record(facts, results.unpack({name: arrays[name] for name in arrays.files}))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def is_cached(key: str) -> bool:
    """Whether the cache has a run of this key; its files are not read."""
    return (_entry(key) / "facts.json").is_file()


def store(key: str, record: Record) -> None:
    """Store a record in the cache, atomically."""
    final = _entry(key)
    final.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{key[:8]}.", dir=final.parent))
    try:
        with open(work / "series.npz", "wb") as file:
            arrays: dict[str, Any] = dict(results.pack(record.series))
            np.savez_compressed(file, **arrays)
        (work / "facts.json").write_text(json.dumps(record.facts), encoding="utf-8")
        if final.exists():
            shutil.rmtree(final)
        work.rename(final)
    except OSError:
        # another process has stored the same run first, or the disk is full: the run itself is valid
        shutil.rmtree(work, ignore_errors=True)


def forget_old() -> None:
    """Remove cached runs not used for KEEP_DAYS; does so at most once a day."""
    runs, now = cache_root() / "runs", time.time()
    stamp = runs / "looked"
    if not runs.is_dir() or (stamp.exists() and now - stamp.stat().st_mtime < 86400):
        return
    stamp.touch()
    for folder in runs.glob("??/*"):
        if now - folder.stat().st_mtime > KEEP_DAYS * 86400:
            shutil.rmtree(folder, ignore_errors=True)


# -------------------------------------------------------------------------------------- workers


@runtime_checkable
class Simulator(Backend, Protocol):
    """A backend without a guest, which makes the records itself."""

    def record(self, job: Job, wall_limit_s: float) -> Record:
        """Run a job."""


def run_one(job: Job, backend: Backend, keep: Path | None = None) -> Record:
    """Run one job. keep: folder for the job and its raw output; without it they are removed, except after a failure."""
    duration = job.setting.head.duration_s
    if isinstance(backend, Simulator):
        return backend.record(job, WALL_LIMIT_FLOOR_S + 2 * duration)
    assert isinstance(backend, Guests), backend.name
    folder = keep or Path(tempfile.mkdtemp(prefix="lbe-run."))
    try:
        (folder / "job").mkdir(parents=True, exist_ok=True)
        (folder / "out").mkdir(exist_ok=True)
        job.write(folder / "job")
        report = backend.run(
            folder / "job",
            folder / "out",
            seed=job.seed,
            mem_mb=job.setting.head.mem_mb,
            virtual_limit_s=jobs.ZERO_S + duration + 60.0,
            wall_limit_s=WALL_LIMIT_FLOOR_S + 2 * duration + WALL_LIMIT_FLOW_S * len(job.flows),
        )
        record = collect.collect(job, folder / "out")
        record.facts["testbed"] = version()
        record.facts["wall_s"], record.facts["virtual_s"] = report.wall_s, report.virtual_s
    except LbeError:
        raise  # the folder stays, since the text names the console in it
    except BaseException:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    return record


def _end_with_parent() -> None:
    """Get SIGTERM when the parent ends for any reason, so that this process stops its machine too."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _worker(backend: Backend, line: Connection) -> None:
    """Run tasks received from ``line`` until None comes. SIGTERM raises SystemExit, so that the machine is stopped."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _end_with_parent()
    while (task := line.recv()) is not None:
        try:
            line.send((task.index, run_one(task.job, backend), None))
        except LbeError as error:
            line.send((task.index, None, str(error)))
        except Exception:  # noqa: BLE001 - an error of a worker must be reported, not lost with the process
            line.send((task.index, None, traceback.format_exc()))


def label(job: Job) -> str:
    """Name of a run for messages."""
    return f"{job.experiment} {case_name(job.case)} seed {job.seed}"


def locally(tasks: list[Task], backend: Backend, count: int) -> Generator[Finished, None, None]:
    """Execute on this machine with ``count`` worker processes, which end when the caller ends.

    If a worker is killed, a new worker runs its task again, up to LOST_TRIES times in total.
    """
    context = multiprocessing.get_context("fork")
    todo = collections.deque(tasks)
    lost: collections.Counter[int] = collections.Counter()
    workers: dict[Connection, tuple[BaseProcess, Task]] = {}

    def give(line: Connection, process: BaseProcess) -> None:
        """Send a worker its next task, or None to end it."""
        task = todo.popleft() if todo else None
        with contextlib.suppress(BrokenPipeError):  # recv() will report a worker that has ended already
            line.send(task)
        if task:
            workers[line] = process, task
        else:
            line.close()
            process.join()

    def start() -> None:
        line, theirs = context.Pipe()
        process = context.Process(target=_worker, args=(backend, theirs), daemon=True)
        # block SIGTERM until the new process has its own handler: otherwise it would raise in the copy of this frame
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        theirs.close()  # so that the end of the worker closes the connection
        give(line, process)

    try:
        for _ in range(min(count, len(tasks))):
            start()
        while workers:
            for line in wait(list(workers)):
                assert isinstance(line, Connection)
                process, task = workers.pop(line)
                try:
                    finished: Finished = line.recv()
                except (EOFError, ConnectionResetError):
                    line.close()
                    process.join()
                    lost[task.index] += 1
                    if lost[task.index] < LOST_TRIES:
                        todo.append(task)
                        start()
                        continue
                    finished = (
                        task.index,
                        None,
                        f"its worker ended {LOST_TRIES} times (status {process.exitcode})",
                    )
                    if todo:
                        start()
                else:
                    give(line, process)
                yield finished
    finally:
        for process, _ in workers.values():
            process.terminate()
        for process, _ in workers.values():
            process.join(10)
            if process.is_alive():
                process.kill()


def _run_parallel(
    tasks: list[Task],
    backend: Backend,
    count: int,
    progress: OnProgress,
    already: int,
    execute: Execute = locally,
) -> None:
    """Run ``tasks`` and set their records; stops at the first failure."""
    by_index = {task.index: task for task in tasks}
    total = already + len(tasks)
    running = execute(tasks, backend, count)
    try:
        for finished, (index, record, error) in enumerate(running, 1):
            task = by_index[index]
            if record is None:
                raise RunFailed(f"{label(task.job)}:\n{error}")
            task.record = record
            store(task.key, record)
            progress(already + finished, total, label(task.job))
    finally:
        running.close()


def default_jobs() -> int:
    """Default number of parallel machines: one for each CPU that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def missing(made: list[Job], backend: Backend) -> list[Task]:
    """Tasks for the jobs that are not in the cache, without duplicates."""
    tasks: dict[str, Task] = {}
    for job in made:
        key = run_key(job, backend)
        if key not in tasks and not is_cached(key):
            tasks[key] = Task(len(tasks), job, key)
    return list(tasks.values())


def warm(
    made: list[Job],
    backend: Backend,
    count: int | None = None,
    progress: OnProgress = lambda *_: None,
    execute: Execute = locally,
) -> list[tuple[Job, str]]:
    """Make missing runs of several experiments in parallel and cache them. Returns those that failed."""
    tasks = missing(made, backend)
    if not tasks:
        return []
    failed = []
    running = execute(tasks, backend, count or backend.at_once or default_jobs())
    try:
        for finished, (index, record, error) in enumerate(running, 1):
            task = tasks[index]
            if record is None:
                failed.append((task.job, error or ""))
            else:
                store(task.key, record)
            progress(finished, len(tasks), label(task.job))
    finally:
        running.close()
    return failed


def run(
    experiment: Experiment, backend: Backend, options: Options, progress: OnProgress, execute: Execute = locally
) -> ResultSet:
    """Make all runs, or take them from the cache, and compute the metrics."""
    began = time.time()
    forget_old()
    asked = plan(experiment, options)
    tasks = [Task(index, job, run_key(job, backend)) for index, job in enumerate(asked)]
    if options.reuse:
        for task in tasks:
            task.record = load_cached(task.key)
    if options.cached:
        tasks = [task for task in tasks if task.record is not None]
    left = [task for task in tasks if task.record is None]
    reused = len(tasks) - len(left)
    progress(reused, len(tasks), f"{reused} reused" if reused else "")
    if left:
        _run_parallel(left, backend, options.jobs or backend.at_once or default_jobs(), progress, reused, execute)

    made = []
    for task in tasks:
        job, record = task.job, task.record
        assert record is not None  # the missing ones have been run
        facts = {
            **record.facts,
            "key": task.key,
            "job": identity.of_job(job),
            "topology": job.network.lines(),
            "plans": {plan.node: plan.lines for plan in job.plans},
            "events": [list(event) for event in job.events],
        }
        made.append(Result(job.case, job.seed, collect.compute(job, record), facts, record.series))
    provenance = {
        "command": options.command,
        "kernel": backend.facts(),
        "backend": backend.name,
        "modules_version": backend.tools().modules_version,
        "testbed": version(),
        "host": collect.host_facts(),
        "runs_reused": reused,
        "wall_s": round(time.time() - began, 1),
    }
    return ResultSet(
        experiment.name,
        options.mode,
        experiment.path.read_text(encoding="utf-8"),
        options.sets,
        provenance,
        made,
        list({case_name(job.case): job.case for job in asked}.values()),
        sorted({job.seed for job in asked}),
        identity.of_backend(
            backend,
            {module for job in asked for module in job.modules},
            {metric.kind for job in asked for metric in job.setting.metrics.values()},
        ),
    )
