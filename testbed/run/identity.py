# SPDX-License-Identifier: GPL-2.0
"""Identity of a result: hashes of everything that affects it. They are the same on every machine and need no kernel.

    kernel    the requested configuration and the edits of the source (the release is recorded separately)
    boot      the files that boot a guest and set it up
    agent     the sources of the traffic agent
    modules   the sources of each module that the runs load
    metrics   the code that computes metrics from records
    kinds     the code of those kinds of metric that have a file of their own, if the experiment has such metrics
    job       everything that the guest reads: the experiment's case and the seed

Comments are not part of it (base/content.py explains why sources are hashed, not objects). A result is current if the
present tree has the same identity. Otherwise it is stale: its numbers stay, marked as those of another tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..backends.backend import Backend
from ..backends.tools import agent_sources
from ..backends.uml import BOOT
from ..base.content import hash_of_programs
from ..base.places import REPO, TESTBED
from ..kernels.build import configuration_key
from ..kernels.modules import program_hash
from ..results import digest
from ..spec.experiment import Experiment
from .job import Job, make

#: stored digits of a hash
DIGITS = 16
#: the code that computes the metrics
METRIC_SOURCES = tuple(TESTBED / "measure" / name for name in ("metrics.py", "series.py", "web.py"))
#: kind of metric -> its own file, on which results of other kinds do not depend
OWN_SOURCES = {"object_area": TESTBED / "measure" / "areas.py"}
Identity = dict[str, Any]


def of_job(job: Job) -> str:
    """Hash of everything that a run's guest reads."""
    return job.content_hash()[:DIGITS]


def of_tree(kernel: str, modules: Iterable[str], kinds: Iterable[str] = ()) -> Identity:
    """Identity of runs of this tree, without their jobs. kernel: a hash or name that identifies the kernel. kinds: of
    the metrics."""
    own = {kind: hash_of_programs([OWN_SOURCES[kind]])[:DIGITS] for kind in sorted({*kinds} & {*OWN_SOURCES})}
    return {
        "kernel": kernel,
        "boot": hash_of_programs(BOOT)[:DIGITS],
        "agent": hash_of_programs(agent_sources())[:DIGITS],
        "metrics": hash_of_programs(METRIC_SOURCES)[:DIGITS],
        "modules": {name: program_hash(name)[:DIGITS] for name in sorted(modules)},
        **({"kinds": own} if own else {}),
    }


def of_backend(backend: Backend, modules: Iterable[str], kinds: Iterable[str] = ()) -> Identity:
    """Identity of runs with a backend. A kernel that the testbed does not build is identified by its release."""
    facts = backend.facts()
    if backend.name == "uml":
        return of_tree(configuration_key(facts["series"], facts["flavour"]), modules, kinds)
    return of_tree(f"{backend.name} {facts['release']}", modules, kinds)


def stale(document: dict[str, Any], experiment: Experiment | None) -> list[str]:
    """Parts of a digest's identity that differ from the present tree's; empty if it is current.

    experiment: the experiment in the tree, None if it no longer exists.
    """
    identity = document["identity"]
    if not identity and "files" in document:
        # a tool without a kernel of the testbed, or an older document of a simulator: only its files identify it
        known = document["provenance"]["backend"] != "uml" and digest.files_are(document)
        return [] if known else ["tool"]
    if not identity:
        changed = experiment is None or document["file_sha256"] != digest.file_hash(experiment)
        return ["made before results kept their identity", *["experiment (its file)"] * changed]
    kernel, known = document["provenance"]["kernel"], identity["kernel"]
    if document["provenance"]["backend"] == "uml":
        known = configuration_key(kernel["series"], kernel["flavour"])
    today = of_tree(known, identity["modules"], identity.get("kinds", {}))
    parts = [part for part in ("kernel", "boot", "agent", "metrics") if today[part] != identity[part]]
    parts += [f"module {name}" for name, was in identity["modules"].items() if today["modules"][name] != was]
    parts += changed_kinds(identity, today)
    if "files" in document:
        return parts + (["tool"] if not digest.files_are(document) else [])
    if experiment is None:
        return [*parts, "experiment (gone)"]
    return parts + experiment_parts(
        document, changed_cases(document, experiment), new_cases(document, experiment)
    )


def changed_kinds(was: Identity, today: Identity) -> list[str]:
    """Kinds of metric whose own files have changed between two identities."""
    return [f"metric {kind}" for kind, then in was.get("kinds", {}).items() if today.get("kinds", {}).get(kind) != then]


def experiment_parts(
    document: dict[str, Any], changed: list[dict[str, str]], new: list[dict[str, str]]
) -> list[str]:
    """What of a document's experiment is stale: cases that have changed since, and cases that are new."""
    parts = [f"experiment ({len(changed)} of {len(document['cases'])} cases)"] if changed else []
    return parts + ([f"experiment ({len(new)} new case{'s' * (len(new) > 1)})"] if new else [])


def _of_guest(job: Job, _case: dict[str, Any]) -> str:
    return of_job(job)


def changed_cases(
    document: dict[str, Any], experiment: Experiment, hash_of: Callable[[Job, dict[str, Any]], str] = _of_guest
) -> list[dict[str, str]]:
    """Cases of which a seed's job differs from the present one. hash_of: of a job and its case in the document.

    All seeds are compared: a case may have runs of several states of its file, and what is drawn from the seed, such as
    a start or a trace, may change for some seeds only.
    """
    changed = []
    known = experiment.cases(document["mode"])
    for case in document["cases"]:
        if case["case"] not in known:
            changed.append(case["case"])
            continue
        setting = experiment.setting(case["case"], document["mode"], document["sets"])
        made = [make(experiment.name, case["case"], seed, setting) for seed in case["seeds"]]
        if [hash_of(job, case) for job in made] != case["jobs"]:
            changed.append(case["case"])
    return changed


def new_cases(document: dict[str, Any], experiment: Experiment) -> list[dict[str, str]]:
    """Cases of the present experiment that were not requested when the document was made."""
    return digest.new_cases(document, experiment.cases(document["mode"]))


def hash_of_files(names: Iterable[str]) -> str:
    """Hash of programs and experiments of the tree, for numbers that do not depend on one experiment's file only."""
    return hash_of_programs([REPO / name for name in names])
