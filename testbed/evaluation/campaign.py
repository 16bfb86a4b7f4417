# SPDX-License-Identifier: GPL-2.0
"""Which experiments are run in which form, so that all are done within a time, and the running of them.

Every experiment starts in its cheapest form. What is left of the time buys longer forms, the cheapest first: the
scoreboard, then all cases of what stands for a paper's figure, then their own lengths, then the rest. What the cache
already has costs nothing, so that a second campaign, or one after Ctrl-C, goes further.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .. import plots, report
from ..backend import Backend
from ..errors import LbeError
from ..experiment import Experiment, load, names
from ..job import Job
from ..runner import Execute, Options, Task, default_jobs, is_cached, label, locally, plan, run, run_key, store
from . import coverage, digest

#: (mode, runs a case; None: the experiment's own), cheapest first
FORMS: tuple[tuple[str, int | None], ...] = (("short", None), ("brief", None), ("default", 1), ("default", None))
FULL: tuple[tuple[str, int | None], ...] = (("full", None),)
MINUTES = 30.0
#: share of the time that is planned for; the rest is for pages, and for estimates that are too low
PLANNED = 0.85
# CPU seconds of a run on the machine of Documentation/testbed.md: boot, a simulated second, a flow's part of
# it, a megabit's part of it (about 80 packets there and back), a web object
BOOT_S, SECOND_S, FLOW_S, MBIT_S, WEB_MBIT_S = 0.6, 0.003, 0.0003, 0.0011, 0.004


@dataclass
class Part:
    """One experiment in the form chosen for it."""

    experiment: Experiment
    mode: str
    runs: int | None
    jobs: list[Job]
    cost_s: float
    #: runs that the form asks for, where only some of them are there
    wanted: int = 0


@dataclass
class Outcome:
    """What came of a campaign: digests by experiment, and runs that failed."""

    documents: dict[str, dict] = field(default_factory=dict)
    failed: list[tuple[Job, str]] = field(default_factory=list)
    pictures: dict[str, list[Path]] = field(default_factory=dict)


def cost_s(job: Job) -> float:
    """What a run takes of a CPU, seconds; right to a factor of two."""
    setting = job.setting
    rates = [setting.topology.rate_mbit, *(hop.rate_mbit for hop in setting.topology.hops)]
    both_ways = 2 if any(flow.spec.source != job.flows[0].spec.source for flow in job.flows) else 1
    web = any(flow.spec.kind in ("web", "session") for flow in job.flows)
    a_second = SECOND_S + FLOW_S * len(job.flows) + (WEB_MBIT_S if web else MBIT_S) * sum(rates) * both_ways
    return BOOT_S + setting.head.duration_s * a_second


def stand_for_something() -> list[str]:
    """The experiments that stand for a table or figure of a paper."""
    figures = coverage.figures()
    return [name for figure in figures for name in (figure.experiment, figure.also) if name]


def wanted() -> list[str]:
    """All experiments: those that stand for a figure first, then the rest."""
    return list(dict.fromkeys(["scoreboard", "scoreboard_aqm", *stand_for_something(), *names()]))


def modules_of(chosen: Iterable[str]) -> set[str]:
    """What must be built for any form of them."""
    return {module for name in chosen for job in plan(load(name), Options("brief", 1)) for module in job.modules}


def _part(one: Experiment, form: tuple[str, int | None], have: dict[str, bool], backend: Backend, reuse: bool) -> Part:
    mode, runs = form
    jobs = plan(one, Options(mode, runs))
    cost = 0.0
    for job in jobs:
        key = run_key(job, backend)
        if key not in have:
            have[key] = reuse and is_cached(key)
        if not have[key]:
            cost += cost_s(job)
    return Part(one, mode, runs, jobs, cost)


def choose(
    chosen: Iterable[str],
    backend: Backend,
    cpu_s: float,
    forms: tuple[tuple[str, int | None], ...] = FORMS,
    reuse: bool = True,
) -> list[Part]:
    """A form for each experiment such that all together cost at most ``cpu_s`` (but at least the cheapest form)."""
    have: dict[str, bool] = {}
    ladders = []
    for name in chosen:
        one = load(name)
        ladder: list[Part] = []
        for form in forms:
            part = _part(one, form, have, backend, reuse)
            # only what is more than the form before; a longer one that is there already takes its place
            if not ladder or len(part.jobs) > len(ladder[-1].jobs) or _length(part) > _length(ladder[-1]):
                ladder.append(part)
        ladders.append(ladder)
    level = [0] * len(ladders)
    left = cpu_s - sum(ladder[0].cost_s for ladder in ladders)
    standing = stand_for_something()
    # all cases of what the pages are about come first, and the scoreboard, which is compared as a whole, before them
    for allowed in (
        lambda part: digest.TRACED in part.experiment.head.tags,
        lambda part: part.experiment.name in standing and part.mode == "brief",
        lambda part: part.experiment.name in standing,
        lambda part: True,
    ):
        while True:
            # the cheapest next step of all
            steps = [
                (ladder[level[index] + 1].cost_s - ladder[level[index]].cost_s, index)
                for index, ladder in enumerate(ladders)
                if level[index] + 1 < len(ladder) and allowed(ladder[level[index] + 1])
            ]
            affordable = [step for step in steps if step[0] <= max(left, 0.0)]
            if not affordable:
                break
            price, index = min(affordable)
            left -= price
            level[index] += 1
    return [ladder[level[index]] for index, ladder in enumerate(ladders)]


def from_cache(chosen: Iterable[str], backend: Backend) -> list[Part]:
    """Of each experiment the longest form that the cache answers whole, else the one of which it has most, in part."""
    have: dict[str, bool] = {}
    parts = []
    for name in chosen:
        ladder = [_part(load(name), form, have, backend, True) for form in FORMS]
        for part in ladder:
            part.wanted = len(part.jobs)
            part.jobs = [job for job in part.jobs if have[run_key(job, backend)]]
        there = [part for part in ladder if part.jobs]
        if there:
            parts.append(max(there, key=lambda part: (part.cost_s == 0, _length(part))))
    return parts


def _length(part: Part) -> float:
    return sum(job.setting.head.duration_s for job in part.jobs)


class Clock:
    """Progress over all runs, by what they cost: a bar on a terminal, lines elsewhere."""

    def __init__(self, total_s: float):
        self.total_s, self.done_s, self.began, self.said = max(total_s, 1e-9), 0.0, time.monotonic(), 0.0
        self.bar = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self.bar = Progress(
                TextColumn("{task.description:<50.50}"),
                BarColumn(),
                TextColumn("{task.percentage:3.0f} %"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=Console(stderr=True),
            )
            self.bar.start()
            self.task = self.bar.add_task("", total=self.total_s, left="")

    def left(self) -> str:
        """Time left as a person says it."""
        spent = time.monotonic() - self.began
        seconds = spent / self.done_s * (self.total_s - self.done_s) if self.done_s else math.nan
        if math.isnan(seconds):
            return ""
        return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"

    def step(self, cost: float, text: str, done: int, total: int) -> None:
        """One run is done."""
        self.done_s += cost
        if self.bar:
            self.bar.update(self.task, completed=self.done_s, description=text, left=self.left())
            return
        now = time.monotonic()
        if now - self.said > 10 or done == total:
            self.said = now
            percent = 100 * self.done_s / self.total_s
            print(f"{percent:.0f} %, {done} of {total} runs, {self.left()} ({text})", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Give the terminal back."""
        if self.bar:
            self.bar.stop()


def fill(parts: list[Part], backend: Backend, count: int, execute: Execute, reuse: bool) -> list[tuple[Job, str]]:
    """Run what the cache lacks of all parts, all CPUs busy; gives back what failed."""
    tasks: dict[str, Task] = {}
    for part in parts:
        for job in part.jobs:
            key = run_key(job, backend)
            if key not in tasks and not (reuse and is_cached(key)):
                tasks[key] = Task(len(tasks), job, key)
    # the long ones first: none of them is left to run alone at the end
    todo = sorted(tasks.values(), key=lambda task: -cost_s(task.job))
    by_index = {task.index: task for task in todo}
    if not todo:
        return []
    clock = Clock(sum(cost_s(task.job) for task in todo))
    failed = []
    running = execute(todo, backend, count)
    try:
        for done, (index, record, error) in enumerate(running, 1):
            task = by_index[index]
            if error or record is None:
                failed.append((task.job, error or "no record"))
            else:
                store(task.key, record)
            clock.step(cost_s(task.job), label(task.job), done, len(todo))
    finally:
        running.close()
        clock.close()
    return failed


def carry_out(
    parts: list[Part],
    backend: Backend,
    out: Path,
    command: str,
    jobs: int | None = None,
    execute: Execute = locally,
    reuse: bool = True,
    draw: bool = True,
    cached: bool = False,
) -> Outcome:
    """Run all parts (cached: nothing), then write result files, pictures and digests, experiment by experiment."""
    outcome = Outcome()
    if not cached:
        outcome.failed = fill(parts, backend, jobs or default_jobs(), execute, reuse)
    broken = {job.experiment for job, _ in outcome.failed}
    for part in parts:
        name = part.experiment.name
        if name in broken:
            continue
        options = Options(part.mode, part.runs, jobs, command=command, cached=cached)
        results = run(part.experiment, backend, options, lambda *_: None, execute)
        results.save(out)
        (out / f"{name}.txt").write_text(report.text(part.experiment, results), encoding="utf-8")
        document = digest.make(results, part.experiment if digest.TRACED in part.experiment.head.tags else None)
        document["runs_wanted"] = part.wanted or len(part.jobs)
        digest.save(document, out / "digests")
        outcome.documents[name] = document
        if draw:
            outcome.pictures[name] = [
                path for path in plots.draw(part.experiment, results, out) if path.suffix == ".svg"
            ]
    return outcome


def load_saved(out: Path) -> dict[str, dict]:
    """Digests of an earlier campaign. LbeError if there are none."""
    documents = digest.load_all(out / "digests")
    if not documents:
        raise LbeError(f"no digests in {out}/digests; make report makes some")
    return documents


__all__ = ["FORMS", "FULL", "MINUTES", "Outcome", "Part", "carry_out", "choose", "cost_s", "load_saved"]
