# SPDX-License-Identifier: GPL-2.0
"""What coverage.toml says: the papers' tables and figures, which numbers here belong to them, and the reasons."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..spec.experiment import Case, Differs, load, matches
from ..spec.tables import ExperimentError, load_table
from . import formulas

DATA = Path(__file__).parent
PAPERS = ("tcp_lp", "lowpri", "ledbat", "vulture", "shred")
#: "dimension" of a definition that the paper does not give: its values are metrics
METRIC = "metric"
#: the largest tolerance within which a number is near the paper's
NEAR_MOST_PERCENT = 10.0


@dataclass(frozen=True)
class Source:
    """A number of an experiment: the mean over the cases that match ``case``; if ``of`` is given, compared with the
    cases that it changes them to."""

    experiment: str
    metric: str
    case: dict[str, Any] = field(default_factory=dict)
    of: dict[str, str] | None = None
    how: str = "percent"


@dataclass(frozen=True)
class Curve:
    """The paper's values of a metric over the variants of a dimension.

    better: "higher" or "lower" if a deviation to that side is an improvement; "" if no deviation is. ns2: where ns-2's
    numbers are, if not those of the curve's own experiment and case. experiment: the figure's `also`, if it is of that.
    """

    metric: str
    over: str
    paper: dict[str, float]
    better: str = ""
    case: dict[str, Any] = field(default_factory=dict)
    ns2: Source | None = None
    experiment: str = ""


@dataclass(frozen=True)
class Trend:
    """The paper's statement how a number changes along a dimension, between two variants, first and last.

    of, how: the number is a comparison with this other case, as in a check. rises: False means that it falls.
    """

    metric: str
    over: str
    first: str
    last: str
    rises: bool
    case: dict[str, Any] = field(default_factory=dict)
    of: dict[str, str] | None = None
    how: str = "percent"


@dataclass(frozen=True)
class Formula:
    """A formula of the paper, with values of its variables and the value that the paper prints; nothing is measured."""

    what: str
    formula: str
    of: dict[str, float]
    paper: float


@dataclass(frozen=True)
class Finding:
    """A number that is not a metric of an experiment, compared with the paper's.

    differs, order: as in a check. lacks: why some runs have no value; the number is undecided then.
    """

    what: str
    metric: str
    case: dict[str, Any]
    paper: float | None = None
    min: float | None = None
    max: float | None = None
    differs: tuple[Differs, ...] = ()
    order: bool = False
    lacks: str = ""


@dataclass(frozen=True)
class Why:
    """Why rows of these metrics in these cases (of this experiment) are not near the paper's values.

    tested: a run in which the supposed cause was changed. If its number is near the paper's, the cause is confirmed.
    """

    text: str
    metric: tuple[str, ...] = ()
    case: dict[str, Any] = field(default_factory=dict)
    tested: Source | None = None
    experiment: str = ""


@dataclass(frozen=True)
class Beside:
    """Rows that do not count in the figure's verdict, and why: the paper did not measure them, such as its protocol
    with today's TCP if another row has the paper's TCP, or another value of a parameter that the paper does not give.
    """

    why: str
    metric: tuple[str, ...] = ()
    case: dict[str, Any] = field(default_factory=dict)
    experiment: str = ""


@dataclass(frozen=True)
class Near:
    """A tolerance for rows of these metrics in these cases (of this experiment), and its reason: a number is reproduced
    within so many percent of the paper's too. Without one, only the 95 % interval counts."""

    percent: float
    why: str
    metric: tuple[str, ...] = ()
    case: dict[str, Any] = field(default_factory=dict)
    experiment: str = ""


@dataclass(frozen=True)
class Unknown:
    """A parameter that the paper does not give, and the values of it that were tried.

    parameter: what it is. over, values: a dimension of an experiment, and its variants, which differ in this parameter;
    over = METRIC: metrics, which differ in how the paper's number may have been computed.
    sweep: that experiment (default: the row's own). set: what else differs there from a row's case. metric, case,
    experiment: the rows that depend on it.
    """

    parameter: str
    over: str
    values: tuple[str, ...]
    sweep: str = ""
    set: dict[str, str] = field(default_factory=dict)
    metric: tuple[str, ...] = ()
    case: dict[str, Any] = field(default_factory=dict)
    experiment: str = ""


@dataclass(frozen=True)
class Figure:
    """A table or figure of a paper; coverage.toml explains the keys."""

    paper: str
    number: str
    shows: str
    experiment: str = ""
    also: str = ""
    at: str = ""
    checks: str = ""
    case: dict[str, Any] = field(default_factory=dict)
    near: tuple[Near, ...] = ()
    why: tuple[Why, ...] = ()
    beside: tuple[Beside, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    cannot: str = ""
    curve: list[Curve] = field(default_factory=list)
    trend: list[Trend] = field(default_factory=list)
    formula: list[Formula] = field(default_factory=list)
    traced: str = ""
    finding: list[Finding] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Its name in links."""
        return f"{self.paper}-{self.number.lower().replace(' ', '-')}"

    @property
    def source(self) -> str:
        """Name of the experiment or trace of its numbers; "" if it cannot be compared."""
        return self.experiment or self.traced


def _refuse_metrics(one: Figure, unknown: Unknown, where: str) -> None:
    """Raise ExperimentError if an experiment of the figure lacks one of the metrics that were tried."""
    for name in (name for name in (one.experiment, one.also) if name):
        for value in unknown.values:
            if value not in load(name).tables["metric"]:
                raise ExperimentError(f"{where}: {name} has no metric {value!r}")


def _refuse(one: Figure, where: str) -> None:
    """Raise ExperimentError for an invalid tolerance or sweep."""
    for near in one.near:
        if not 0 < near.percent <= NEAR_MOST_PERCENT:
            raise ExperimentError(f"{where}: near {near.percent:g} %: above 0, up to {NEAR_MOST_PERCENT:g}")
    for curve in one.curve:
        if curve.ns2 and curve.metric not in load(curve.ns2.experiment).tables["metric"]:
            raise ExperimentError(f"{where}: {curve.ns2.experiment} has no metric {curve.metric!r}")
        if curve.experiment and curve.experiment not in (one.experiment, one.also):
            raise ExperimentError(f"{where}: curve of {curve.experiment!r}: allowed are {one.experiment}, {one.also}")
    for formula in one.formula:
        formulas.value(formula.formula, formula.of, where)
    for unknown in one.unknown:
        if len(unknown.values) < 2:
            raise ExperimentError(f"{where}: {unknown.parameter}: a sweep has two values or more")
        if unknown.over == METRIC:
            _refuse_metrics(one, unknown, where)
            continue
        names = [unknown.sweep] if unknown.sweep else [name for name in (one.experiment, one.also) if name]
        variants = [variant for name in names for variant in load(name).vary.get(unknown.over, {})]
        for value in unknown.values:
            if value not in variants:
                raise ExperimentError(f"{where}: {' and '.join(names)}: no {unknown.over}={value}")


def listed() -> list[Figure]:
    """All of coverage.toml."""
    path = DATA / "coverage.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["figure"]
    made = [load_table(Figure, table, f"{path.name}:figure[{index}]") for index, table in enumerate(tables)]
    for one in made:
        if one.paper not in PAPERS:
            raise ExperimentError(f"{path.name}: {one.number}: paper {one.paper!r}: allowed are {', '.join(PAPERS)}")
        if sum(map(bool, (one.experiment, one.traced, one.cannot))) != 1:
            raise ExperimentError(f"{path.name}: {one.paper} {one.number}: give one of experiment, traced, cannot")
        _refuse(one, f"{path.name}: {one.paper} {one.number}")
    return made


def spoken_of(metric: str, case: Case | None, one: Why | Beside | Near | Unknown, experiment: str = "") -> bool:
    """Whether a row of this metric in this case of an experiment is one of those that an entry is about."""
    if one.experiment and one.experiment != experiment:
        return False
    return metric in (one.metric or (metric,)) and matches(case or {}, one.case)
