# SPDX-License-Identifier: GPL-2.0
"""A result set without its series: metrics of every run, and what decided them. Small enough to be committed.

A digest keeps the identity of its runs (run/identity.py), what was asked for, and the versions that ran by their own
word. Runs of unlike identity are never put together.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import LbeError
from ..base.places import REPO
from ..measure.series import Series, rates
from ..spec import experiment as experiments
from ..spec import traffic
from ..spec.experiment import Experiment
from ..spec.records import QUEUE, RECV, SEND
from . import files as result_files
from .files import Result, ResultSet, plain

Document = dict[str, Any]
#: by experiment
Documents = dict[str, Document]

FORMAT = 2
#: significant digits of a stored metric: far below what two seeds differ by
DIGITS = 6
TRACE_POINTS = 60
#: where the committed digests are
FOLDER = REPO / "Documentation" / "results" / "data"
#: ns-2's digest of an experiment is named after it, with this before the name
NS2 = "ns2_"
#: experiments with this tag are compared as a whole, and show goodput over time behind each cell
SCOREBOARD = "scoreboard"
#: experiments with one of these tags keep goodput over time
TRACED = {SCOREBOARD, "demo"}


class BadDigest(LbeError):
    """A digest is unreadable, or of another experiment than the one that is here."""


def _rounded(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def text_hash(text: str) -> str:
    """What an experiment's file is known by."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_hash(experiment: Experiment) -> str:
    """The same of the file that is in the tree."""
    return text_hash(experiment.path.read_text(encoding="utf-8"))


def _queue_of(result: Result) -> list[str]:
    """The bottleneck's tc lines."""
    return [line for line in result.facts["topology"] if line.startswith("tc -n rtr qdisc") and "dev east" in line]


def _trace(experiment: Experiment, results: ResultSet, run: Result) -> dict[str, list[int]]:
    """Goodput of each group in its first run, percent of what TCP can carry, in at most TRACE_POINTS steps."""
    setting = experiment.setting(run.case, results.mode, results.sets)
    capacity = setting.topology.tcp_capacity_mbit()
    step_s = max(0.5, math.ceil(setting.head.duration_s / TRACE_POINTS))
    traces = {}
    for group, ids in traffic.numbers(setting.flows).items():
        if setting.flows[group].source == "rcv":
            continue
        total = np.sum([rates(run.series, flow, step_s, setting.head.duration_s)[1] for flow in ids], axis=0)
        if np.any(total):
            traces[group] = [round(float(value)) for value in 100 * total / capacity]
    return traces


def make(results: ResultSet, experiment: Experiment | None = None) -> dict[str, Any]:
    """The digest of a result set, as plain JSON, with goodput over time if its experiment is given and wants it."""
    traced = experiment if experiment is not None and TRACED & set(experiment.head.tags) else None
    cases: list[dict[str, Any]] = []
    for run in results.results:
        known = next((case for case in cases if case["case"] == run.case), None)
        if known is None:
            known = {"case": run.case, "seeds": [], "jobs": [], "queue": _queue_of(run), "metrics": {}}
            if traced:
                known["trace"] = _trace(traced, results, run)
            cases.append(known)
        known["seeds"].append(run.seed)
        known["jobs"].append(run.facts["job"])
        for name, value in run.metrics.items():
            known["metrics"].setdefault(name, []).append(_rounded(value))
    first = results.results[0]
    # the versions of this moment are nobody's: what ran says its own
    left_out = ("runs_reused", "wall_s", "modules_version", "testbed")
    provenance = {key: value for key, value in results.provenance.items() if key not in left_out}
    # where they were made and put is nobody's business but that machine's
    provenance["command"] = re.sub(r" --(out|docs|results|dask|jobs)[ =]\S+", "", provenance["command"])
    made: dict[str, Any] = plain(
        {
            "format": FORMAT,
            "experiment": results.experiment,
            "mode": results.mode,
            "sets": results.sets,
            "file_sha256": text_hash(results.text),
            "asked_cases": results.asked_cases,
            "asked_seeds": results.asked_seeds,
            "identity": results.identity,
            "provenance": provenance,
            "ran": ran([run.facts for run in results.results]),
            "sysctls": first.facts["sysctls"].get("snd", {}),
            "cases": cases,
        }
    )
    return made


def of_files(
    name: str,
    files: tuple[list[str], str],
    identity: dict[str, Any],
    provenance: dict[str, Any],
    versions: dict[str, Any],
    seeds: list[int],
) -> dict[str, Any]:
    """A document without a case yet, of numbers that no experiment's file decides alone.

    files: the programs and experiments that decide them, and their hash. versions: as ran() has them. A document may
    say "counts": its metrics that are whole numbers.
    """
    names, file_sha256 = files
    return {
        "format": FORMAT,
        "experiment": name,
        "mode": "default",
        "sets": {},
        "file_sha256": file_sha256,
        "files": names,
        "provenance": provenance,
        "asked_seeds": seeds,
        "identity": identity,
        "ran": versions,
        "sysctls": {},
        "cases": [],
    }


def counted(case: dict[str, str], names: Sequence[str], counts: Sequence[float], **more: Any) -> dict[str, Any]:
    """A case of such a document: a number for each metric, of one seed and no run; more: what else it says."""
    metrics = {name: [count] for name, count in zip(names, counts, strict=True)}
    return {"case": case, "seeds": [1], "jobs": [], "queue": [], "metrics": metrics, **more}


def ran(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """What ran, by its own word: versions of the testbed, and what each module said of itself in any run."""
    modules: dict[str, dict[str, set[str]]] = {}
    for run_facts in facts:
        for name, said in run_facts["modules"].items():
            for key, value in said.items():
                modules.setdefault(name, {}).setdefault(key, set()).add(str(value))
    return {
        "testbed": sorted({str(run_facts.get("testbed", "not recorded")) for run_facts in facts}),
        "modules": {name: {key: sorted(values) for key, values in said.items()} for name, said in modules.items()},
    }


def save(document: dict[str, Any], folder: Path) -> Path:
    """Write it, a line a case, so that a change shows as one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document['experiment']}.json"
    cases = ",\n  ".join(json.dumps(case) for case in document["cases"])
    rest = json.dumps({key: value for key, value in document.items() if key != "cases"}, indent=1)
    path.write_text(rest[:-2] + ',\n "cases": [\n  ' + cases + "\n ]\n}\n", encoding="utf-8")
    return path


def load(path: Path) -> dict[str, Any]:
    """Read one back. Raises BadDigest."""
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise BadDigest(f"{path}: format {document['format']!r}, this testbed reads {FORMAT}")
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise BadDigest(f"{path}: {error!r}") from error
    return document


def from_results(path: Path) -> dict[str, Any]:
    """The digest of a result file that `run` left, with its runs' traces if its experiment wants them."""
    results = result_files.load(path)
    return make(results, experiments.load(results.experiment))


def load_all(folder: Path) -> dict[str, dict[str, Any]]:
    """All digests of a folder, by experiment."""
    return {document["experiment"]: document for document in map(load, sorted(folder.glob("*.json")))}


def runs(document: dict[str, Any]) -> int:
    """How many runs it has."""
    return sum(len(case["seeds"]) for case in document["cases"])


def kind(document: dict[str, Any]) -> tuple[Any, ...]:
    """What must be equal in runs that are shown together."""
    return document["mode"], document["sets"], document["identity"], document["provenance"]["kernel"]


def with_more(mine: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """``mine``, with the cases of which ``other`` has more runs; of unlike kind, whichever has more runs."""
    if not mine["identity"] or kind(mine) != kind(other):
        return other if runs(other) > runs(mine) else mine
    better = {json.dumps(case["case"]): case for case in other["cases"]}
    cases = []
    for case in mine["cases"]:
        theirs = better.pop(json.dumps(case["case"]), case)
        cases.append(theirs if len(theirs["seeds"]) > len(case["seeds"]) else case)
    return mine | {
        "cases": [*cases, *better.values()],
        "asked_cases": _asked_of_both(mine, other),
        "asked_seeds": sorted({*mine["asked_seeds"], *other["asked_seeds"]}),
        "ran": _united(mine["ran"], other["ran"]),
    }


def _asked_of_both(mine: dict[str, Any], other: dict[str, Any]) -> list[dict[str, str]]:
    """The cases that either was asked for."""
    asked: list[dict[str, str]] = []
    for document in (mine, other):
        had = document.get("asked_cases", asked_cases(document))
        asked += [case for case in had if case not in asked]
    return asked


def _united(mine: Any, other: Any) -> Any:
    """What ran in either: tables by key, lists as sets."""
    if isinstance(mine, dict):
        return {
            key: _united(mine[key], other[key]) if key in mine and key in other else mine.get(key, other.get(key))
            for key in {**mine, **other}
        }
    return sorted({*mine, *other})


def asked_cases(document: dict[str, Any]) -> list[dict[str, str]]:
    """The cases that the experiment has in the document's form today; of a tool's numbers, and of experiments that are
    not among the report's, those that were asked for, or that it has where it does not say."""
    return _asked_today(document, _listed(document))


def _listed(document: dict[str, Any]) -> Experiment | None:
    """The experiment, if it is among the report's."""
    return experiment_of(document) if document["experiment"] in experiments.names() else None


def _asked_today(document: dict[str, Any], experiment: Experiment | None) -> list[dict[str, str]]:
    if experiment is not None:
        return experiment.cases(document["mode"])
    asked: list[dict[str, str]] = document.get("asked_cases", [case["case"] for case in document["cases"]])
    return asked


def new_cases(document: dict[str, Any], asked_today: list[dict[str, str]]) -> list[dict[str, str]]:
    """Of the cases asked for today those that nobody asked for when the document was made: they are not run yet.

    Every other case that is not there was lost. A document that does not say what was asked for was asked for all.
    """
    known = {frozenset(case.items()) for case in document.get("asked_cases", asked_today)}
    return [case for case in asked_today if frozenset(case.items()) not in known]


def result_set(document: dict[str, Any]) -> ResultSet:
    """As the verdicts want it: results with metrics and no series."""
    empty = Series(np.empty(0, SEND), np.empty(0, RECV), np.empty(0, QUEUE))
    made = []
    for case in document["cases"]:
        for index, seed in enumerate(case["seeds"]):
            metrics = {
                name: math.nan if values[index] is None else values[index] for name, values in case["metrics"].items()
            }
            made.append(Result(case["case"], seed, metrics, {}, empty))
    experiment = _listed(document)
    asked = _asked_today(document, experiment)
    outgrown = experiment is not None and document["file_sha256"] != file_hash(experiment)
    return ResultSet(
        document["experiment"],
        document["mode"],
        "",
        document["sets"],
        document["provenance"],
        made,
        asked,
        document["asked_seeds"],
        document["identity"],
        new_cases(document, asked),
        outgrown,
    )


def lost_runs(document: dict[str, Any]) -> int:
    """Runs that were asked for when the document was made and are not there."""
    return len(result_set(document).lost())


def not_run_yet(document: dict[str, Any]) -> tuple[int, int]:
    """Cases that its experiment got after the document was made, and their runs.

    They are not red, since nothing that was asked for is hidden. The pages say it where their numbers would be.
    """
    new = len(new_cases(document, asked_cases(document)))
    return new, new * len(document["asked_seeds"])


def experiment_of(document: dict[str, Any]) -> Experiment:
    """The experiment as it is in the tree."""
    return experiments.load(document["experiment"])
