# SPDX-License-Identifier: GPL-2.0
"""A result set without its series: metrics of every run, and what made them. Small enough to be committed."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import LbeError
from ..base.places import REPO
from ..kernels.modules import content_key
from ..measure.metrics import QUEUE, RECV, SEND, Series, rates
from ..spec import experiment as experiments
from ..spec import traffic
from ..spec.experiment import Experiment
from . import files as result_files
from .files import Result, ResultSet, plain

FORMAT = 1
#: significant digits of a stored metric: far below what two seeds differ by
DIGITS = 6
TRACE_POINTS = 60
#: experiments with this tag show goodput over time behind each cell
TRACED = "scoreboard"


class BadDigest(LbeError):
    """A digest is unreadable, or of another experiment than the one that is here."""


def _rounded(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def text_hash(text: str) -> str:
    """What an experiment's file is known by."""
    return hashlib.sha256(text.encode()).hexdigest()


def hash_of_files(names: list[str]) -> str:
    """Hash of files of the tree, for numbers that no experiment's file decides alone."""
    return content_key(REPO, [Path(name) for name in names])


def _queue_of(result: Result) -> list[str]:
    """The bottleneck's tc lines."""
    return [line for line in result.facts["topology"] if line.startswith("tc -n rtr qdisc") and "dev east" in line]


def _trace(one: Experiment, results: ResultSet, run: Result) -> dict[str, list[int]]:
    """Goodput of each group in its first run, percent of what TCP can carry, in at most TRACE_POINTS steps."""
    setting = one.setting(run.case, results.mode, results.sets)
    capacity = setting.topology.tcp_capacity_mbit()
    step_s = max(0.5, math.ceil(setting.head.duration_s / TRACE_POINTS))
    traces = {}
    for group, ids in traffic.numbers(setting.flows).items():
        if setting.flows[group].source == "rcv":
            continue
        total = sum(rates(run.series, flow, step_s, setting.head.duration_s)[1] for flow in ids)
        if np.any(total):
            traces[group] = [round(float(value)) for value in 100 * total / capacity]
    return traces


def make(results: ResultSet, traced: Experiment | None = None) -> dict[str, Any]:
    """The digest of a result set, as plain JSON. traced: the experiment, if goodput over time is wanted too."""
    cases: list[dict[str, Any]] = []
    for one in results.results:
        known = next((case for case in cases if case["case"] == one.case), None)
        if known is None:
            known = {"case": one.case, "seeds": [], "queue": _queue_of(one), "metrics": {}}
            if traced:
                known["trace"] = _trace(traced, results, one)
            cases.append(known)
        known["seeds"].append(one.seed)
        for name, value in one.metrics.items():
            known["metrics"].setdefault(name, []).append(_rounded(value))
    first = results.results[0]
    provenance = {key: value for key, value in results.provenance.items() if key not in ("runs_reused", "wall_s")}
    # where results were put is nobody's business but that machine's
    provenance["command"] = re.sub(r" --(out|docs|results)[ =]\S+", "", provenance["command"])
    return plain(
        {
            "format": FORMAT,
            "experiment": results.experiment,
            "mode": results.mode,
            "sets": results.sets,
            "file_sha256": text_hash(results.text),
            "provenance": provenance,
            "modules": first.facts["modules"],
            "sysctls": first.facts["sysctls"].get("snd", {}),
            "cases": cases,
        }
    )


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
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise BadDigest(f"{path}: format {document['format']!r}, this testbed reads {FORMAT}")
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise BadDigest(f"{path}: {error!r}") from error
    return document


def from_results(path: Path) -> dict[str, Any]:
    """The digest of a result file that `run` left, with its runs' traces if its experiment wants them."""
    results = result_files.load(path)
    one = experiments.load(results.experiment)
    made = make(results, one if TRACED in one.head.tags else None)
    made["runs_wanted"] = one.runs(results.mode) * len(one.cases(results.mode))
    return made


def load_all(folder: Path) -> dict[str, dict[str, Any]]:
    """All digests of a folder, by experiment."""
    return {document["experiment"]: document for document in map(load, sorted(folder.glob("*.json")))}


def runs(document: dict[str, Any]) -> int:
    """How many runs it has."""
    return sum(len(case["seeds"]) for case in document["cases"])


def with_more(mine: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """``mine``, with the cases of which ``other`` has more runs; if they differ in kind, whichever has more runs."""

    def kind(one: dict[str, Any]) -> tuple:
        return one["mode"], one["file_sha256"], one["provenance"]["kernel"]

    if kind(mine) != kind(other):
        return other if runs(other) > runs(mine) else mine
    better = {json.dumps(case["case"]): case for case in other["cases"]}
    cases, taken = [], False
    for case in mine["cases"]:
        theirs = better.pop(json.dumps(case["case"]), case)
        more = len(theirs["seeds"]) > len(case["seeds"])
        cases.append(theirs if more else case)
        taken |= more
    if not taken and not better:
        return mine
    versions = {one["provenance"]["modules_version"] for one in (mine, other)}
    provenance = mine["provenance"] | {"modules_version": ", ".join(sorted(versions))}
    return mine | {"cases": [*cases, *better.values()], "provenance": provenance}


def is_current(document: dict[str, Any], one: Experiment | None = None) -> bool:
    """Whether the experiment's file is still the one that was run; of numbers from files of their own, these."""
    if "files" in document:
        return all((REPO / name).is_file() for name in document["files"]) and document["file_sha256"] == hash_of_files(
            document["files"]
        )
    if one is None:
        if document["experiment"] not in experiments.names():
            return False
        one = experiment_of(document)
    return document["file_sha256"] == text_hash(one.path.read_text(encoding="utf-8"))


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
    return ResultSet(document["experiment"], document["mode"], "", document["sets"], document["provenance"], made)


def experiment_of(document: dict[str, Any]) -> Experiment:
    """The experiment as it is in the tree."""
    return experiments.load(document["experiment"])
