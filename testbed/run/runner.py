# SPDX-License-Identifier: GPL-2.0
"""Runs an experiment: every case with every seed, in parallel, reusing what has been run before.

Each worker is a process of its own that boots one machine at a time. Ctrl-C ends the workers, and a
worker that is ended ends its machine: nothing is left running. A run whose job, kernel, modules and
agent are those of an earlier one is read from the cache instead.
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

#: what a run may take on the wall beyond its own length: boots under sanitizers are slow
WALL_LIMIT_FLOOR_S = 180.0
#: a busy machine needs a tenth of it for a flow of 20 s
WALL_LIMIT_FLOW_S = 1.0
KEEP_DAYS = 30
#: how often a task is begun whose worker is killed: by a person, or because memory is short
LOST_TRIES = 3
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class RunFailed(LbeError):
    """A run gave no result; the text has the case, the seed and the machine's words."""


@dataclass
class Task:
    """One run to be had."""

    index: int
    job: Job
    key: str
    record: Record | None = None


@dataclass
class Options:
    """How to run. mode: one of experiment.MODES; runs, seed None: the experiment's own."""

    mode: str = "default"
    runs: int | None = None
    jobs: int | None = None
    seed: int | None = None
    sets: dict[str, Any] = field(default_factory=dict)
    reuse: bool = True
    command: str = ""
    cases: dict[str, Any] = field(default_factory=dict)
    #: take what the cache has, run nothing
    cached: bool = False


#: called with (done, total, text) as runs come in
OnProgress = Callable[[int, int, str], None]
#: what runs tasks, so many at once; gives each one's (index, record, error) as it comes in
#: a task that ended: its index, and its record or what went wrong
Finished = tuple[int, Record | None, str | None]
Execute = Callable[[list[Task], Backend, int], Generator[Finished, None, None]]


@functools.cache
def version() -> str:
    """The tree's version as git describes it."""
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
    """A file's content as a hash; read once as long as it does not change."""
    stat = path.stat()
    return _hash_of(path, stat.st_size, stat.st_mtime_ns)


def run_key(job: Job, backend: Backend) -> str:
    """What decides a run's result, as a hash."""
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
        os.utime(folder)  # forget_old() goes by the last use
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        arrays = np.load(io.BytesIO((folder / "series.npz").read_bytes()))
        return Record(facts, results.unpack({name: arrays[name] for name in arrays.files}))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def is_cached(key: str) -> bool:
    """Whether an earlier run of this key is there, by name alone."""
    return (_entry(key) / "facts.json").is_file()


def store(key: str, record: Record) -> None:
    """Keep a record; an entry appears whole or not at all."""
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
        # another process stored the same run first, or the disk is full: the run itself is good
        shutil.rmtree(work, ignore_errors=True)


def forget_old() -> None:
    """Remove runs that nobody asked for in KEEP_DAYS; looks once a day."""
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
    """A backend without a guest: it makes the records itself."""

    def record(self, job: Job, wall_limit_s: float) -> Record:
        """Run a job."""


def run_one(job: Job, backend: Backend, keep: Path | None = None) -> Record:
    """Run one job now. keep: folder that receives the raw job and records; a failure keeps them always."""
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
        raise  # its text names the console, which must stay
    except BaseException:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    return record


def _end_with_parent() -> None:
    """However the parent ends, this process gets SIGTERM (and with it, the machine that it runs)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _worker(backend: Backend, line: Connection) -> None:
    """Run tasks from the line until it ends. SIGTERM unwinds through the machine's own clean-up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _end_with_parent()
    while (task := line.recv()) is not None:
        try:
            line.send((task.index, run_one(task.job, backend), None))
        except LbeError as error:
            line.send((task.index, None, str(error)))
        except Exception:  # noqa: BLE001 - a worker's fault must reach the person, not vanish with the process
            line.send((task.index, None, traceback.format_exc()))


def label(job: Job) -> str:
    """A run's name for people."""
    return f"{job.experiment} {case_name(job.case)} seed {job.seed}"


def locally(tasks: list[Task], backend: Backend, count: int) -> Generator[Finished, None, None]:
    """Execute on this machine: ``count`` worker processes, which end when the caller does.

    The task of a worker that is killed is run again by a new one, LOST_TRIES times in all.
    """
    context = multiprocessing.get_context("fork")
    todo = collections.deque(tasks)
    lost: collections.Counter[int] = collections.Counter()
    workers: dict[Connection, tuple[BaseProcess, Task]] = {}

    def give(line: Connection, process: BaseProcess) -> None:
        """Its next task to a worker, or its end."""
        task = todo.popleft() if todo else None
        with contextlib.suppress(BrokenPipeError):  # who is gone already is seen as the line's end
            line.send(task)
        if task:
            workers[line] = process, task
        else:
            line.close()
            process.join()

    def start() -> None:
        line, theirs = context.Pipe()
        process = context.Process(target=_worker, args=(backend, theirs), daemon=True)
        # a SIGTERM that finds the new process before it has its own handler would raise in this frame's copy
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        theirs.close()  # so that a worker's death ends the line
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
    """Fill in the records of ``tasks``; the first that fails ends all."""
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
    """One machine per CPU that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def missing(made: list[Job], backend: Backend) -> list[Task]:
    """Those jobs, each once, that no earlier run answers."""
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
    """Put runs of several experiments into the cache, all CPUs busy. What fails is given back, and the others run."""
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
    """Run (or reuse) everything and compute the metrics."""
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
        assert record is not None  # all that was left has run
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
        identity.of_backend(backend, {module for job in asked for module in job.modules}),
    )
