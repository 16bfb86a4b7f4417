# SPDX-License-Identifier: GPL-2.0
"""The simulators, and the identity of their results.

A simulator reads nothing of what a guest reads, so that its results are identified by what it is given:

    kernel    the simulator's release
    program   what runs a plan, writes the packet traces that it names, and converts its output to records
    metrics   the code that computes metrics from records; kinds: of kinds with a file of their own (run/identity.py)
    job       of each run: the plan, which has topology, flows and seed, its traces' identity, and what is measured

The rest of an experiment's file, such as a bound, its reason or what a plot shows, is no part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..backends.backend import Backend
from ..backends.ns2 import machine as ns2
from ..backends.ns2 import plan as ns2_plan
from ..backends.ns3 import machine as ns3
from ..backends.ns3 import plan as ns3_plan
from ..base.content import hash_of_programs
from ..results import digest
from ..results.digest import Document
from ..run import identity
from ..run import job as jobs
from ..run.identity import Identity
from ..run.job import Job
from ..spec import traffic
from ..spec.experiment import Experiment, load, names
from ..spec.metrics import Metric


@dataclass(frozen=True)
class SimulatorEntry:
    """A simulator: its subcommand, its name, and the prefix of its documents' names.

    backend: makes the backend. given: a run's plan, and what determines the other files that it names, or raises
    CannotSay. programs: what runs a plan, writes its other files and converts its output. own: experiments to run if
    none is named; none of them: those of all figures and of the comparison of senders.
    """

    command: str
    title: str
    prefix: str
    backend: Callable[[], Backend]
    given: Callable[[Job], dict[str, str]]
    programs: tuple[Path, ...]
    own: tuple[str, ...] = ()


def _ns2_given(job: Job) -> dict[str, str]:
    made = ns2_plan.text(job)
    return {"plan": "\n".join(made.lines), **{name: packets.identity() for name, packets in made.files.items()}}


def _ns3_given(job: Job) -> dict[str, str]:
    return {"plan": "\n".join(ns3_plan.text(job))}


CONVERSION = Path(ns2.__file__)
NS2 = SimulatorEntry("ns2", "ns-2", digest.NS2, ns2.Ns2, _ns2_given, (ns2.NETWORK, ns2.PACKETS, CONVERSION))
NS3 = SimulatorEntry(
    "ns3",
    "ns-3",
    digest.NS3,
    ns3.Ns3,
    _ns3_given,
    (ns3.NETWORK, Path(ns3.__file__), CONVERSION),
    ("lp_table1_paper", "lp_fig11_paper"),
)
BY_BACKEND = {simulator.command: simulator for simulator in (NS2, NS3)}


def expressible(one: Experiment, mode: str = "default", simulator: SimulatorEntry = NS2) -> list[dict[str, str]]:
    """The cases that a simulator can express."""
    found = []
    for case in one.cases(mode):
        try:
            simulator.given(jobs.make(one.name, case, one.head.seed, one.setting(case, mode)))
        except ns2_plan.CannotSay:
            continue
        found.append(case)
    return found


def _definition(metric: Metric) -> dict[str, Any]:
    """What determines a metric's value; a field with its default is left out, so that a new field changes nothing."""
    values = {field.name: (getattr(metric, field.name), field.default) for field in fields(metric)}
    return {name: value for name, (value, default) in values.items() if value != default and name != "label"}


def of_run(job: Job, measured: Iterable[str], simulator: SimulatorEntry) -> str:
    """Hash of what a run's numbers depend on, beside programs. measured: names of its metrics. Raises CannotSay."""
    setting = job.setting
    content = {
        "given": simulator.given(job),
        "groups": traffic.numbers(setting.flows),
        "capacity_mbit": setting.topology.tcp_capacity_mbit(),
        "measure_s": setting.head.measure_s,
        "metrics": {name: _definition(setting.metrics[name]) for name in measured if name in setting.metrics},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[: identity.DIGITS]


def of_tree(release: str, simulator: SimulatorEntry, kinds: Iterable[str] = ()) -> Identity:
    """Identity of a simulator's runs of this tree, without their jobs. kinds: of the metrics."""
    tree = identity.of_tree(f"{simulator.command} {release}", (), kinds)
    program = hash_of_programs(simulator.programs)[: identity.DIGITS]
    return {"program": program, **{key: tree[key] for key in ("kernel", "metrics", "kinds") if key in tree}}


def identified(document: Document, experiment: Experiment, simulator: SimulatorEntry) -> Document:
    """A simulator's results of an experiment as its document, with its name and identity."""
    cases, kinds = [], set()
    for case in document["cases"]:
        setting = experiment.setting(case["case"], document["mode"], document["sets"])
        kinds |= {metric.kind for metric in setting.metrics.values()}
        made = [jobs.make(experiment.name, case["case"], seed, setting) for seed in case["seeds"]]
        cases.append(case | {"jobs": [of_run(job, case["metrics"], simulator) for job in made]})
    return document | {
        "experiment": simulator.prefix + experiment.name,
        "identity": of_tree(document["provenance"]["kernel"]["release"], simulator, kinds),
        "cases": cases,
    }


def is_identified(document: Document) -> bool:
    """Whether a document is one of :func:`identified`. Older ones of a simulator are identified by their files."""
    return "program" in document["identity"]


def stale(document: Document) -> list[str]:
    """Parts of such a document's identity that differ from the present tree's; empty if it is current."""
    simulator = BY_BACKEND[document["provenance"]["backend"]]
    was = document["identity"]
    today = of_tree(document["provenance"]["kernel"]["release"], simulator, was.get("kinds", {}))
    parts = [part for part in ("program", "metrics") if today[part] != was[part]]
    parts += identity.changed_kinds(was, today)
    name = document["experiment"].removeprefix(simulator.prefix)
    if name not in names():
        return [*parts, "experiment (gone)"]
    experiment = load(name)

    def hash_of(job: Job, case: dict[str, Any]) -> str:
        try:
            return of_run(job, case["metrics"], simulator)
        except ns2_plan.CannotSay:
            return "cannot be expressed any more"

    changed = identity.changed_cases(document, experiment, hash_of)
    new = digest.new_cases(document, expressible(experiment, document["mode"], simulator))
    return parts + identity.experiment_parts(document, changed, new)
