# SPDX-License-Identifier: GPL-2.0
"""The claims of the papers' abstracts, with the numbers behind them: the paper's, ns-2's and the modules'.

A row is reproduced if the paper's number lies within our 95 % interval, or within a tolerance (near) of at most 10 %
with a stated reason. It is at least as good if our number is better than the paper's; otherwise it differs. Each row
needs a number of the paper. The rows are in claims.toml.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..measure.summary import Summary
from ..results import digest
from ..spec.experiment import load
from ..spec.tables import ExperimentError, load_table
from .coverage import DIFFERS, GOOD, NEAR_MOST_PERCENT, PAPERS, REPRODUCED, Source, against, inside, measured

DATA = Path(__file__).with_name("claims.toml")
WORDS = (REPRODUCED, GOOD, DIFFERS, "not run")


@dataclass(frozen=True)
class Number:
    """One number behind a claim.

    case: of the experiment; the number is a mean over the dimensions that it leaves out. of: the number is in percent
    of the same metric in this other case (with how = "difference", minus it). read: how it was read off a curve; "" if
    the paper prints it. better: "higher" or "lower" if a deviation to that side is an improvement. near: percent, with
    near_why. cause: why it differs, and which change showed that. ns2: variants of ns-2's case that differ.
    """

    what: str
    experiment: str
    metric: str
    paper: float
    case: dict[str, Any] = field(default_factory=dict)
    of: dict[str, str] | None = None
    how: str = "percent"
    at: str = ""
    read: str = ""
    better: str = ""
    near: float | None = None
    near_why: str = ""
    cause: str = ""
    ns2: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, paraphrased, and its numbers."""

    paper: str
    says: str
    number: tuple[Number, ...]


@dataclass(frozen=True)
class Found:
    """A number of a claim with the measured ones and the verdict."""

    number: Number
    ours: Summary
    ns2: Summary
    word: str
    rule: str


def _refuse(one: Number, where: str) -> None:
    """Raise ExperimentError for an invalid row."""
    if one.better not in ("", "higher", "lower"):
        raise ExperimentError(f'{where}: better = {one.better!r}: allowed are "higher", "lower"')
    if one.near is not None and not (0 < one.near <= NEAR_MOST_PERCENT and one.near_why):
        raise ExperimentError(f"{where}: near = {one.near:g}: above 0, up to {NEAR_MOST_PERCENT:g}, with near_why")
    experiment = load(one.experiment)
    if one.metric not in experiment.tables["metric"]:
        raise ExperimentError(f"{where}: {one.experiment} has no metric {one.metric!r}")
    for dimension, wanted in (*one.case.items(), *(one.of or {}).items(), *one.ns2.items()):
        variants = experiment.vary.get(dimension, {})
        for variant in wanted if isinstance(wanted, list) else [wanted]:
            if variant not in variants:
                raise ExperimentError(f"{where}: {one.experiment} has no {dimension}={variant}")


def claims() -> list[Claim]:
    """All of claims.toml."""
    tables = tomllib.loads(DATA.read_text(encoding="utf-8"))["claim"]
    made = [load_table(Claim, table, f"{DATA.name}:claim[{index}]") for index, table in enumerate(tables)]
    for index, claim in enumerate(made):
        where = f"{DATA.name}:claim[{index}]"
        if claim.paper not in PAPERS:
            raise ExperimentError(f"{where}: paper {claim.paper!r}: allowed are {', '.join(PAPERS)}")
        if not claim.number:
            raise ExperimentError(f"{where}: a claim without a number counts for nothing")
        for one in claim.number:
            _refuse(one, where)
    return made


def word_of(one: Number, ours: Summary) -> tuple[str, str]:
    """The verdict, and the rule that it follows from."""
    if not ours.n:
        return "not run", ""
    said = against(one.paper, ours, one.near or 0, one.better)
    if said == REPRODUCED:
        return said, "within the 95 % interval" if inside(one.paper, ours) else f"within {one.near:g} %: {one.near_why}"
    return said, f"{one.better} is better" if said == GOOD else one.cause


def judge(documents: dict[str, dict[str, Any]]) -> list[tuple[Claim, list[Found]]]:
    """All claims with measured numbers and verdicts."""
    made = []
    for claim in claims():
        found = []
        for one in claim.number:
            source = Source(one.experiment, one.metric, one.case, one.of, one.how)
            ours = measured(source, documents)
            simulated = replace(source, case={**one.case, **one.ns2})
            theirs = measured(simulated, documents, digest.NS2 + one.experiment)
            found.append(Found(one, ours, theirs, *word_of(one, ours)))
        made.append((claim, found))
    return made
