# SPDX-License-Identifier: GPL-2.0
"""What the papers claim and what holds: the sentences of their abstracts, the numbers behind them, ns-2's and ours.

A row is reproduced if the paper's number lies within our 95 % interval, or within a near tolerance of at most 10 %
that says its reason; at least as good if ours is beyond it on the side that the claim wants; else it differs. A row
without a number of the paper's cannot be written. The rows are in claims.toml.
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

    case: of the experiment; each dimension that it leaves out is averaged over. of: percent of (or, with how =
    "difference", less) the same metric there. read: how it was read off a curve; "" if the paper prints it. better:
    "higher" or "lower" where more than claimed is no fault. near: percent, with near_why. cause: why it differs, and
    what was changed to see so. ns2: dimensions that ns-2's run has instead, or nothing where it has the same.
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
    """What a paper says, in our words, and its numbers."""

    paper: str
    says: str
    number: tuple[Number, ...]


@dataclass(frozen=True)
class Found:
    """A number with what came out."""

    number: Number
    ours: Summary
    ns2: Summary
    word: str
    rule: str


def _refuse(one: Number, where: str) -> None:
    """What no row may be."""
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
    """A verdict, and the rule that gave it."""
    if not ours.n:
        return "not run", ""
    said = against(one.paper, ours, one.near or 0, one.better)
    if said == REPRODUCED:
        return said, "within the 95 % interval" if inside(one.paper, ours) else f"within {one.near:g} %: {one.near_why}"
    return said, f"{one.better} is better" if said == GOOD else one.cause


def judge(documents: dict[str, dict[str, Any]]) -> list[tuple[Claim, list[Found]]]:
    """Every claim with what came out."""
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
