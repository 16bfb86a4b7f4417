# SPDX-License-Identifier: GPL-2.0
"""Digests: result sets without series, with the metrics of every run; small enough to be committed.

A digest records the identity of its runs (run/identity.py), the requested cases and seeds, and the versions that the
testbed and the modules reported at run time. Runs of different identity are never combined.
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

from ..base.content import hash_of_programs
from ..base.errors import LbeError
from ..base.places import REPO
from ..measure.series import Series, rates
from ..spec import experiment as experiments
from ..spec import lives, traffic
from ..spec.experiment import Experiment
from ..spec.records import QUEUE, RECV, SEND
from . import files as result_files
from .files import Result, ResultSet, plain

Document = dict[str, Any]
#: experiment -> document
Documents = dict[str, Document]

FORMAT = 2
#: significant digits of a stored metric; the rounding is much smaller than the difference between two seeds
DIGITS = 6
TRACE_POINTS = 60
#: key of a document: wall time of what it tells of, seconds, if it was recorded
SECONDS = "seconds"
#: folder of the committed digests
FOLDER = REPO / "Documentation" / "results" / "data"
#: prefixes of the names of simulators' digests of an experiment
NS2, NS3 = "ns2_", "ns3_"
#: tag of experiments in the scoreboard, which shows goodput over time for each cell
SCOREBOARD = "scoreboard"
#: digests of experiments with one of these tags have goodput over time
TRACED = {SCOREBOARD, "demo"}


class BadDigest(LbeError):
    """A digest is unreadable or has another format."""


def _rounded(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def text_hash(text: str) -> str:
    """Hash of the text of an experiment's file."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_hash(experiment: Experiment) -> str:
    """Hash of an experiment's file in the tree."""
    return text_hash(experiment.path.read_text(encoding="utf-8"))


def _queue_of(result: Result) -> list[str]:
    """tc lines of the bottleneck."""
    return [line for line in result.facts["topology"] if line.startswith("tc -n rtr qdisc") and "dev east" in line]


def _trace(experiment: Experiment, results: ResultSet, run: Result) -> dict[str, list[int]]:
    """Goodput of each group in one run, in percent of TCP's capacity, in at most TRACE_POINTS steps."""
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
    """The digest of a result set as plain JSON; with goodput over time if ``experiment`` has a tag of TRACED."""
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
    # "ran" has the versions at run time; those of the present moment are left out
    left_out = ("runs_reused", "wall_s", "modules_version", "testbed")
    provenance = {key: value for key, value in results.provenance.items() if key not in left_out}
    # paths and worker options concern only the machine that made the results
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
    """A document without cases, for numbers that do not depend on one experiment's file only.

    files: the programs and experiments on which they depend, and their hash. versions: in the form of ran(). A document
    may have "counts", a list of its metrics that are whole numbers.
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
    """A case of such a document: one number for each metric, without jobs; more: further keys of the case."""
    metrics = {name: [count] for name, count in zip(names, counts, strict=True)}
    return {"case": case, "seeds": [1], "jobs": [], "queue": [], "metrics": metrics, **more}


def ran(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """Versions of the testbed, and versions and parameters of the modules, as reported at run time by the runs."""
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
    """Write a document with one line for each case, so that diffs are readable."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document['experiment']}.json"
    cases = ",\n  ".join(json.dumps(case) for case in document["cases"])
    rest = json.dumps({key: value for key, value in document.items() if key != "cases"}, indent=1)
    path.write_text(rest[:-2] + ',\n "cases": [\n  ' + cases + "\n ]\n}\n", encoding="utf-8")
    return path


def load(path: Path) -> dict[str, Any]:
    """Read a document. Raises BadDigest."""
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise BadDigest(f"{path}: format {document['format']!r}, this testbed reads {FORMAT}")
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise BadDigest(f"{path}: {error!r}") from error
    return document


def from_results(path: Path) -> dict[str, Any]:
    """The digest of a result file written by `run`, with traces if the experiment has a tag for them."""
    results = result_files.load(path)
    return make(results, experiments.load(results.experiment))


def load_all(folder: Path) -> dict[str, dict[str, Any]]:
    """All digests of a folder, by experiment."""
    return {document["experiment"]: document for document in map(load, sorted(folder.glob("*.json")))}


def runs(document: dict[str, Any]) -> int:
    """Number of runs in a document."""
    return sum(len(case["seeds"]) for case in document["cases"])


def kind(document: dict[str, Any]) -> tuple[Any, ...]:
    """The properties that must be equal for runs to be combined."""
    return document["mode"], document["sets"], document["identity"], document["provenance"]["kernel"]


def with_more(mine: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """``mine``, with the cases that have more runs in ``other``; if the kinds differ, the document with more runs."""
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
    """The cases that were requested for either document."""
    asked: list[dict[str, str]] = []
    for document in (mine, other):
        had = document.get("asked_cases", asked_cases(document))
        asked += [case for case in had if case not in asked]
    return asked


def _united(mine: Any, other: Any) -> Any:
    """Union of two such tables: tables are merged by key, lists as sets."""
    if isinstance(mine, dict):
        return {
            key: _united(mine[key], other[key]) if key in mine and key in other else mine.get(key, other.get(key))
            for key in {**mine, **other}
        }
    return sorted({*mine, *other})


def asked_cases(document: dict[str, Any]) -> list[dict[str, str]]:
    """The cases that the present experiment has in the document's form. For a tool's numbers, and for experiments that
    are neither in the report nor lives, the requested cases, or those of the document if it does not list them."""
    return _asked_today(document, _listed(document))


def _listed(document: dict[str, Any]) -> Experiment | None:
    """The experiment of a document, if it is in the tree."""
    return experiment_of(document) if document["experiment"] in lives.judged() else None


def _asked_today(document: dict[str, Any], experiment: Experiment | None) -> list[dict[str, str]]:
    if experiment is not None:
        return experiment.cases(document["mode"])
    asked: list[dict[str, str]] = document.get("asked_cases", [case["case"] for case in document["cases"]])
    return asked


def new_cases(document: dict[str, Any], asked_today: list[dict[str, str]]) -> list[dict[str, str]]:
    """Cases of ``asked_today`` that were not requested when the document was made, and so have not been run yet.

    Any other missing case was lost. If a document does not list its requested cases, all cases count as requested.
    """
    known = {frozenset(case.items()) for case in document.get("asked_cases", asked_today)}
    return [case for case in asked_today if frozenset(case.items()) not in known]


def result_set(document: dict[str, Any]) -> ResultSet:
    """A result set for verdicts: results with metrics and without series."""
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
    outgrown = experiment is not None and not _unchanged(document, experiment)
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


def files_are(document: dict[str, Any]) -> bool:
    """Whether the files that a document was made with are unchanged."""
    paths = [REPO / name for name in document["files"]]
    return all(path.is_file() for path in paths) and document["file_sha256"] == hash_of_programs(paths)


def _unchanged(document: dict[str, Any], experiment: Experiment) -> bool:
    """Whether the experiment is the one of the document; a life's document names its files."""
    return files_are(document) if "files" in document else document["file_sha256"] == file_hash(experiment)


def lost_runs(document: dict[str, Any]) -> int:
    """Number of runs that were requested when the document was made and do not exist."""
    return len(result_set(document).lost())


def not_run_yet(document: dict[str, Any]) -> tuple[int, int]:
    """Number of cases added to the experiment after the document was made, and number of their runs.

    They are not red, since no requested run is hidden. The pages say "not run yet" in place of their numbers.
    """
    new = len(new_cases(document, asked_cases(document)))
    return new, new * len(document["asked_seeds"])


def few_seeds(document: dict[str, Any]) -> str:
    """How many seeds the case with the fewest has, as "1 of 5 seeds"; "" if each has as many as the experiment wants.

    A requested seed counts also if its run is missing: that is a lost run, not a smaller request.
    """
    experiment = _listed(document)
    if experiment is None or not document["cases"]:
        return ""
    wanted = experiment.runs(document["mode"])
    fewest = min(len({*document["asked_seeds"], *case["seeds"]}) for case in document["cases"])
    return f"{fewest} of {wanted} seeds" if fewest < wanted else ""


def experiment_of(document: dict[str, Any]) -> Experiment:
    """The experiment of a document, from the tree: one of the report, or a life."""
    name = document["experiment"]
    return experiments.load(str(lives.files().get(name, name)))
