# SPDX-License-Identifier: GPL-2.0
"""Choice of a form for each experiment such that all can be run within a given time, and the running of them.

Every experiment starts in its cheapest form. The remaining time is spent on longer forms, the cheapest first: for the
scoreboard, then for all cases of experiments for a paper's figure, then for their own lengths, then for the rest.
Cached runs cost nothing, so a second campaign, or one repeated after Ctrl-C, gets further. While the campaign runs, the
machine's speed is measured and forms are chosen again; at the end of the time the best available form is used.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..backends.backend import Backend
from ..base.errors import LbeError
from ..base.progress import RunsProgress
from ..judge import figures
from ..present import plots, text
from ..results import digest
from ..run.job import Job
from ..run.runner import Execute, Options, Task, is_cached, label, locally, plan, run, run_key, store
from ..spec.experiment import Experiment, load, names

#: (mode, runs per case; None: the experiment's number), cheapest first
FORMS: tuple[tuple[str, int | None], ...] = (("short", None), ("brief", None), ("default", 1), ("default", None))
FULL: tuple[tuple[str, int | None], ...] = (("full", None),)
MINUTES = 30.0
#: share of the time for which runs are planned; the rest is for pages, and for estimates that are too low
PLANNED = 0.85
#: share of the time after which no run is started or waited for; the rest is for pages
LAST_RUN = 0.93
#: shares of the time at which forms are chosen again, with the machine's speed measured so far
AGAIN = (0.1, 0.4, 0.7)
# CPU seconds of a run on the machine of Documentation/testbed.md: for the boot; for a simulated second, and in addition
# for each flow, for each Mbit/s (about 80 packets with their ACKs), and for each Mbit/s of web traffic
BOOT_S, SECOND_S, FLOW_S, MBIT_S, WEB_MBIT_S = 0.6, 0.003, 0.0003, 0.0011, 0.004


@dataclass
class PlannedForm:
    """One experiment in one form."""

    experiment: Experiment
    mode: str
    runs: int | None
    jobs: list[Job]
    keys: list[str]
    #: estimated CPU seconds of its missing runs
    cost_s: float = 0.0
    #: number of runs in the form, of which jobs may have only some
    wanted: int = 0

    def left(self, have: Collection[str]) -> dict[str, Job]:
        """Its runs that are not in ``have``, by key."""
        return {key: job for key, job in zip(self.keys, self.jobs, strict=True) if key not in have}

    def length_s(self) -> float:
        """Total simulated time of its runs."""
        return sum(job.setting.head.duration_s for job in self.jobs)


@dataclass
class CampaignOutcome:
    """Result of a campaign: digests and pictures by experiment, and failed runs."""

    documents: digest.Documents = field(default_factory=dict)
    failed: list[tuple[Job, str]] = field(default_factory=list)
    pictures: dict[str, list[Path]] = field(default_factory=dict)


def cost_s(job: Job) -> float:
    """Estimate of a run's CPU time, seconds, within a factor of two."""
    setting = job.setting
    rates = [setting.topology.rate_mbit, *(hop.rate_mbit for hop in setting.topology.hops)]
    both_ways = 2 if any(flow.spec.source != job.flows[0].spec.source for flow in job.flows) else 1
    web = any(flow.spec.kind in ("web", "session") for flow in job.flows)
    a_second = SECOND_S + FLOW_S * len(job.flows) + (WEB_MBIT_S if web else MBIT_S) * sum(rates) * both_ways
    return BOOT_S + setting.head.duration_s * a_second


def stand_for_something() -> list[str]:
    """The experiments for a table or figure of a paper."""
    listed = figures.listed()
    return [name for figure in listed for name in (figure.experiment, figure.also) if name]


def wanted() -> list[str]:
    """All experiments: scoreboards, then those for a figure, then the rest."""
    return list(dict.fromkeys(["scoreboard", "scoreboard_aqm", *stand_for_something(), *names()]))


def modules_of(chosen: Iterable[str]) -> set[str]:
    """Modules needed by any form of the chosen experiments."""
    return {module for name in chosen for job in plan(load(name), Options("brief", 1)) for module in job.modules}


def ladders_of(
    chosen: Iterable[str], backend: Backend, forms: tuple[tuple[str, int | None], ...] = FORMS
) -> list[list[PlannedForm]]:
    """All forms of each experiment, the cheapest first."""
    ladders = []
    for name in chosen:
        experiment = load(name)
        ladder = []
        for mode, runs in forms:
            jobs = plan(experiment, Options(mode, runs))
            ladder.append(
                PlannedForm(experiment, mode, runs, jobs, [run_key(job, backend) for job in jobs], 0.0, len(jobs))
            )
        ladders.append(ladder)
    return ladders


def in_cache(ladders: list[list[PlannedForm]]) -> set[str]:
    """Keys of the runs that are in the cache."""
    return {key for key in {key for ladder in ladders for part in ladder for key in part.keys} if is_cached(key)}


def pick(ladders: list[list[PlannedForm]], have: Collection[str], cpu_s: float) -> list[PlannedForm]:
    """Choose a form for each experiment: in total they cost at most ``cpu_s``, or each has its cheapest form."""
    steps_of = []
    for ladder in ladders:
        rungs: list[PlannedForm] = []
        for part in ladder:
            part.cost_s = sum(cost_s(job) for job in part.left(have).values())
            # skip a form that is not longer than the one before; a longer form that costs no more replaces shorter ones
            if rungs and len(part.jobs) <= len(rungs[-1].jobs) and part.length_s() <= rungs[-1].length_s():
                continue
            while rungs and part.cost_s <= rungs[-1].cost_s:
                rungs.pop()
            rungs.append(part)
        steps_of.append(rungs)
    level = [0] * len(steps_of)
    left = cpu_s - sum(rungs[0].cost_s for rungs in steps_of)
    standing = stand_for_something()
    # the scoreboard first, since it is compared as a whole, then all cases of the papers' figures
    for allowed in (
        lambda part: digest.SCOREBOARD in part.experiment.head.tags,
        lambda part: part.experiment.name in standing and part.mode == "brief",
        lambda part: part.experiment.name in standing,
        lambda part: True,
    ):
        while True:
            # take the cheapest step to the next form
            steps = [
                (rungs[level[index] + 1].cost_s - rungs[level[index]].cost_s, index)
                for index, rungs in enumerate(steps_of)
                if level[index] + 1 < len(rungs) and allowed(rungs[level[index] + 1])
            ]
            affordable = [step for step in steps if step[0] <= max(left, 0.0)]
            if not affordable:
                break
            price, index = min(affordable)
            left -= price
            level[index] += 1
    return [rungs[level[index]] for index, rungs in enumerate(steps_of)]


def choose(
    chosen: Iterable[str],
    backend: Backend,
    cpu_s: float,
    forms: tuple[tuple[str, int | None], ...] = FORMS,
    reuse: bool = True,
) -> list[PlannedForm]:
    """pick() from all forms of these experiments; with ``reuse``, cached runs cost nothing."""
    ladders = ladders_of(chosen, backend, forms)
    return pick(ladders, in_cache(ladders) if reuse else set(), cpu_s)


def best_of(ladders: list[list[PlannedForm]], have: Collection[str]) -> list[PlannedForm]:
    """For each experiment the form with the most available cases; among equals the complete one, then the longest.

    An experiment without any available run is left out.
    """
    parts = []
    for ladder in ladders:
        there = []
        for part in ladder:
            jobs = [job for key, job in zip(part.keys, part.jobs, strict=True) if key in have]
            if jobs:
                keys = [key for key in part.keys if key in have]
                there.append(PlannedForm(part.experiment, part.mode, part.runs, jobs, keys, 0.0, len(part.jobs)))
        if there:
            parts.append(max(there, key=lambda form: (_cases(form), len(form.jobs) == form.wanted, form.length_s())))
    return parts


def _cases(part: PlannedForm) -> int:
    return len({tuple(job.case.items()) for job in part.jobs})


def from_cache(chosen: Iterable[str], backend: Backend) -> list[PlannedForm]:
    """best_of() the cached runs."""
    ladders = ladders_of(chosen, backend)
    return best_of(ladders, in_cache(ladders))


class Clock:
    """Progress over all runs, weighted by their cost in CPU seconds."""

    def __init__(self, limit_s: float = math.inf):
        self.total_s, self.done_s = 1e-9, 0.0
        self.progress = RunsProgress(limit_s)

    def pace(self, count: int) -> float:
        """Measured CPU seconds per estimated one, with ``count`` parallel runs; 1 before the first run is done."""
        return self.progress.spent_s() * count / self.done_s if self.done_s else 1.0

    def aim(self, cost: float) -> None:
        """Set the cost of the remaining runs."""
        self.total_s = max(self.done_s + cost, 1e-9)

    def step(self, cost: float, text: str, done: int, total: int) -> None:
        """Count a finished run."""
        self.done_s += cost
        self.progress(done, total, text, self.done_s / self.total_s)


def _in_order(parts: list[PlannedForm], ladders: list[list[PlannedForm]], have: Collection[str]) -> dict[str, Job]:
    """The missing runs of the parts, the most important first, in case time runs out.

    The cheapest forms come first, which every plan contains, then part by part. Within a part all cases of one seed
    come before the next seed, and the variants of the first dimension (contenders) are together, so that finished runs
    can be compared.
    """
    cheapest = {id(ladder[0]) for ladder in ladders}
    todo: dict[str, Job] = {}
    for part in sorted(parts, key=lambda chosen: id(chosen) not in cheapest):
        places = {name: list(variants) for name, variants in part.experiment.vary.items()}

        def rank(item: tuple[str, Job], places: dict[str, list[str]] = places) -> tuple[int, list[int]]:
            job = item[1]
            return job.seed, [places[name].index(job.case[name]) for name in reversed(places)]

        todo |= dict(sorted(part.left(have).items(), key=rank))
    return todo


def fill(
    todo: dict[str, Job], backend: Backend, count: int, execute: Execute, clock: Clock, until_s: float = math.inf
) -> tuple[set[str], list[tuple[Job, str]]]:
    """Run all of ``todo``, or as much as is done at ``until_s``; returns the keys of the runs made, and failures."""
    tasks = [Task(index, job, key) for index, (key, job) in enumerate(todo.items())]
    ran: set[str] = set()
    failed: list[tuple[Job, str]] = []
    if not tasks:
        return ran, failed
    running = execute(tasks, backend, count)
    try:
        for index, record, error in running:
            task = tasks[index]
            ran.add(task.key)
            if error or record is None:
                failed.append((task.job, error or "no record"))
            else:
                store(task.key, record)
            clock.step(cost_s(task.job), label(task.job), len(ran), len(tasks))
            if clock.progress.spent_s() >= until_s:
                break
    finally:
        running.close()
    return ran, failed


def spend(
    ladders: list[list[PlannedForm]],
    backend: Backend,
    limit_s: float,
    count: int,
    execute: Execute = locally,
    reuse: bool = True,
) -> tuple[list[PlannedForm], list[tuple[Job, str]]]:
    """Make as many runs as fit into ``limit_s`` of wall time; returns the resulting forms, and failed runs.

    The costs of runs are estimates. Forms are chosen again with the measured speed of the machine, and runs that are
    not done when the time is over are left out.
    """
    have = in_cache(ladders) if reuse else set()
    failed: list[tuple[Job, str]] = []
    clock = Clock(LAST_RUN * limit_s)
    try:
        for share in (*AGAIN, LAST_RUN):
            if clock.progress.spent_s() >= LAST_RUN * limit_s:
                break
            left_s = max(0.0, PLANNED * limit_s - clock.progress.spent_s())
            parts = pick(ladders, have, left_s * count / clock.pace(count))
            todo = _in_order(parts, ladders, have)
            clock.aim(sum(map(cost_s, todo.values())))
            ran, broken = fill(todo, backend, count, execute, clock, share * limit_s)
            have |= ran
            failed += broken
            if len(ran) == len(todo):
                return parts, failed
    finally:
        clock.progress.close()
    return best_of(ladders, have), failed


def carry_out(
    parts: list[PlannedForm],
    backend: Backend,
    out: Path,
    command: str,
    failed: list[tuple[Job, str]],
    draw: bool = True,
) -> CampaignOutcome:
    """Write result files, plots and digests of cached runs, experiment by experiment."""
    outcome = CampaignOutcome(failed=failed)
    broken = {job.experiment for job, _ in failed}
    for part in parts:
        name = part.experiment.name
        if name in broken:
            continue
        options = Options(part.mode, part.runs, command=command, cached=True)
        results = run(part.experiment, backend, options, lambda *_: None)
        if not results.results:
            print(f"{name}: what the cache has of it cannot be read", file=sys.stderr)
            continue
        results.save(out)
        (out / f"{name}.txt").write_text(text.text(part.experiment, results), encoding="utf-8")
        document = digest.make(results, part.experiment)
        digest.save(document, out / "digests")
        outcome.documents[name] = document
        if draw:
            outcome.pictures[name] = [
                path for path in plots.draw(part.experiment, results, out) if path.suffix == ".svg"
            ]
    return outcome


def load_saved(out: Path) -> digest.Documents:
    """Digests of an earlier campaign. LbeError if there are none."""
    documents = digest.load_all(out / "digests")
    if not documents:
        raise LbeError(f"no digests in {out}/digests; make report makes some")
    return documents
