# SPDX-License-Identifier: GPL-2.0
"""The claims of the papers' abstracts, with the numbers behind them: the paper's, ns-2's and the modules'.

A number that is also a row of a figure has the figure's verdict and reason, so that the two pages cannot
contradict each other. Any other row is reproduced if the paper's number lies within our 95 % interval, or
within a tolerance (near) of at most 10 % with a stated reason. It is at least as good if our number is better
than the paper's, unknown if it is near with a value of a parameter that the paper does not give; otherwise it
differs. A row needs a number of the paper, or an order that the paper states, which is reproduced if the
whole interval is on its side. The rows are in claims.toml.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..measure.summary import Summary
from ..results import digest
from ..spec.experiment import load, matches
from ..spec.tables import ExperimentError, load_table
from . import checks, coverage
from .coverage import (
    DIFFERS,
    GOOD,
    REPRODUCED,
    TESTED,
    UNDECIDED,
    UNKNOWN,
    FigureVerdict,
    Row,
    against,
    inside,
    measured,
)
from .figures import NEAR_MOST_PERCENT, PAPERS, Figure, Source, Unknown, listed

DATA = Path(__file__).with_name("claims.toml")
WORDS = (REPRODUCED, GOOD, UNKNOWN, UNDECIDED, TESTED, DIFFERS, "not run")


@dataclass(frozen=True)
class Number:
    """One number behind a claim.

    case: of the experiment; the number is a mean over the dimensions that it leaves out. of: the number is in percent
    of the same metric in this other case (with how = "difference", minus it). read: how it was read off a curve; "" if
    the paper prints it. better: "higher" or "lower" if a deviation to that side is an improvement. near: percent, with
    near_why. cause: why it differs, and which change showed that. ns2: variants of ns-2's case that differ. order: the
    paper states an order without a number, which is this bound (min or max). unknown: as in coverage.toml.
    """

    what: str
    experiment: str
    metric: str
    paper: float | None = None
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
    order: bool = False
    min: float | None = None
    max: float | None = None
    unknown: Unknown | None = None

    @property
    def source(self) -> Source:
        """Where the number is from."""
        return Source(self.experiment, self.metric, self.case, self.of, self.how)

    @property
    def bound(self) -> checks.Limits:
        """The order that the paper states."""
        return self.min, self.max


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
    if one.order == (one.paper is not None) or one.order == (one.bound == (None, None)):
        raise ExperimentError(f"{where}: {one.what}: give a number of the paper, or order with min or max")
    experiment = load(one.experiment)
    if one.metric not in experiment.tables["metric"]:
        raise ExperimentError(f"{where}: {one.experiment} has no metric {one.metric!r}")
    swept = [(one.unknown.over, list(one.unknown.values))] if one.unknown else []
    for dimension, wanted in (*one.case.items(), *(one.of or {}).items(), *one.ns2.items(), *swept):
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
    if one.paper is None:
        if ours.whole and checks.contains(ours, one.bound):
            said = f"{checks.bound_text(one.bound)}: the interval contains the bound, which asks for more seeds. "
            return UNDECIDED, (said + one.cause).strip()
        half = 0.0 if math.isnan(ours.half) else ours.half
        held = ours.whole and all(checks.meets(edge, one.bound) for edge in (ours.mean - half, ours.mean + half))
        return (REPRODUCED, checks.bound_text(one.bound)) if held else (DIFFERS, one.cause)
    said = against(one.paper, ours, one.near or 0, one.better)
    if said == REPRODUCED:
        return said, "within the 95 % interval" if inside(one.paper, ours) else f"within {one.near:g} %: {one.near_why}"
    return said, f"{one.better} is better" if said == GOOD else one.cause


def with_unknown(one: Number, said: tuple[str, str], documents: dict[str, dict[str, Any]]) -> tuple[str, str]:
    """The verdict of a row that depends on a parameter which the paper does not give."""
    if one.unknown is None or said[0] not in (REPRODUCED, DIFFERS):
        return said
    for value in one.unknown.values:
        source = replace(one.source, case={**one.case, one.unknown.over: value})
        if word_of(one, measured(source, documents))[0] == REPRODUCED:
            return UNKNOWN, f"the paper does not give {one.unknown.parameter}; {one.unknown.over}={value} fits"
    return DIFFERS, one.cause


def same(one: Number, row: Row, documents: dict[str, dict[str, Any]]) -> bool:
    """Whether a figure's row, with a verdict beside the paper, is the number of a claim."""
    source = row.source
    if not row.against or source is None or (source.experiment, source.metric) != (one.experiment, one.metric):
        return False
    if source.of != one.of or (one.of and source.how != one.how):
        return False
    if row.paper != one.paper or row.order != one.order or (one.order and row.rule != checks.bound_text(one.bound)):
        return False
    cases = digest.result_set(documents[one.experiment]).asked_cases
    return all(matches(case, source.case) == matches(case, one.case) for case in cases)


def of_figure(
    one: Number, paper: str, verdicts: list[FigureVerdict], documents: dict[str, dict[str, Any]]
) -> tuple[Figure, Row] | None:
    """The same number in a figure, at best in the one that the claim names; None if no figure has it."""
    found = [
        (verdict.figure, row)
        for verdict in verdicts
        for row in verdict.rows
        if verdict.figure.paper == paper and same(one, row, documents)
    ]
    named = [pair for pair in found if re.search(rf"{pair[0].number}(?!\d|[IVX])", one.at)]
    return next(iter(named or found), None)


def as_figure(figure: Figure, row: Row) -> tuple[str, str]:
    """The verdict of a figure's row, and the rule or the reason that it follows from."""
    if row.against == REPRODUCED and row.paper is not None and not inside(row.paper, row.ours):
        near = next(near for near in figure.near if row.is_of(near))
        return REPRODUCED, f"within {near.percent:g} %: {near.why}"
    if row.against == REPRODUCED:
        return REPRODUCED, row.rule if row.order else "within the 95 % interval"
    if row.against == GOOD and row.paper is not None:
        return GOOD, f"{'higher' if row.ours.mean > row.paper else 'lower'} is better"
    return row.against, row.why or row.note


def judge(documents: dict[str, dict[str, Any]]) -> list[tuple[Claim, list[Found]]]:
    """All claims with measured numbers and verdicts."""
    made = []
    named = {one.experiment for claim in claims() for one in claim.number}
    verdicts = [coverage.judge(figure, documents) for figure in listed() if {figure.experiment, figure.also} & named]
    for claim in claims():
        found = []
        for one in claim.number:
            ours = measured(one.source, documents)
            simulated = replace(one.source, case={**one.case, **one.ns2})
            theirs = measured(simulated, documents, digest.NS2 + one.experiment)
            twin = of_figure(one, claim.paper, verdicts, documents)
            said = as_figure(*twin) if twin else with_unknown(one, word_of(one, ours), documents)
            found.append(Found(one, ours, theirs, *said))
        made.append((claim, found))
    return made
