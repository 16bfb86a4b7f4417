# SPDX-License-Identifier: GPL-2.0
"""The papers' tables and figures against ours. The rules are in coverage.toml, the verdicts come from results."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..measure.metrics import Summary, summarise
from ..results import digest
from ..spec.experiment import Check, Experiment, ExperimentError, case_name, load_table, matches
from . import report

DATA = Path(__file__).parent
PAPERS = ("tcp_lp", "lowpri", "ledbat", "vulture", "shred")
#: not judged: its bounds are for longer runs than there are
WORDS = ("reproduced", "differs", "cannot be compared", "not judged", "not run")
ABOUT_PERCENT = 10.0


@dataclass(frozen=True)
class Curve:
    """The paper's values of a metric over the variants of a dimension."""

    metric: str
    over: str
    paper: dict[str, float]
    case: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """A number that no experiment's metric shows, beside the paper's; without bounds it holds if it is near."""

    what: str
    metric: str
    case: dict[str, Any]
    paper: float | None = None
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Figure:
    """A table or figure of a paper; coverage.toml says what each key means."""

    paper: str
    number: str
    shows: str
    experiment: str = ""
    also: str = ""
    at: str = ""
    checks: str = ""
    case: dict[str, Any] = field(default_factory=dict)
    about: float = ABOUT_PERCENT
    within: float | None = None
    why: str = ""
    cannot: str = ""
    curve: list[Curve] = field(default_factory=list)
    traced: str = ""
    finding: list[Finding] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Its name in addresses."""
        return f"{self.paper}-{self.number.lower().replace(' ', '-')}"

    @property
    def source(self) -> str:
        """What its numbers come from; "" if it cannot be compared."""
        return self.experiment or self.traced


@dataclass(frozen=True)
class Row:
    """One number of a figure: the paper's, ours, and whether it holds (None: not run in this form)."""

    what: str
    case: str
    paper: float | None
    ours: Summary
    reference: Summary | None
    rule: str
    holds: bool | None
    #: why it misses its bound, where its experiment says so
    why: str = ""


@dataclass(frozen=True)
class Verdict:
    """A figure's rows and what follows. word: one of WORDS."""

    figure: Figure
    rows: list[Row]
    word: str
    form: str

    @property
    def held(self) -> int:
        """Rows that hold."""
        return sum(row.holds is True for row in self.rows)

    @property
    def judged(self) -> int:
        """Rows that were run."""
        return sum(row.holds is not None for row in self.rows)


def figures() -> list[Figure]:
    """All of coverage.toml."""
    path = DATA / "coverage.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["figure"]
    made = [load_table(Figure, table, f"{path.name}:figure[{index}]") for index, table in enumerate(tables)]
    for one in made:
        if one.paper not in PAPERS:
            raise ExperimentError(f"{path.name}: {one.number}: paper {one.paper!r}: allowed are {', '.join(PAPERS)}")
        if sum(map(bool, (one.experiment, one.traced, one.cannot))) != 1:
            raise ExperimentError(f"{path.name}: {one.paper} {one.number}: give one of experiment, traced, cannot")
    return made


def chosen(figure: Figure, one: Experiment) -> list[Check]:
    """The experiment's checks that speak of this figure."""
    bounded = [check for check in one.checks if check.min is not None or check.max is not None]
    if figure.checks == "all":
        picked = one.checks
    elif figure.checks == "bounds":
        picked = bounded
    else:
        # "Table 1" is not "Table 10"
        pattern = re.compile(rf"(?:{figure.at or figure.number})(?!\d|[IVX])")
        picked = [check for check in one.checks if pattern.search(check.paper_at) or pattern.search(check.why)]
    return picked


def _allows(figure: Figure, case: dict[str, str] | None) -> bool:
    return case is None or all(
        dimension not in case or matches(case, {dimension: wanted}) for dimension, wanted in figure.case.items()
    )


def tolerance(figure: Figure, paper: float) -> tuple[float, str]:
    """How far a value without bounds may be from the paper's, and that in words."""
    if figure.within is not None:
        return figure.within, f"within {figure.within:g}"
    return abs(paper) * figure.about / 100, f"within {figure.about:g} %"


def near(figure: Figure, paper: float | None, ours: Summary) -> tuple[bool | None, str]:
    """Whether a mean is as near to the paper's as the figure's rule asks."""
    if paper is None or math.isnan(ours.mean):
        return (False if paper is not None and ours.n else None), "-"
    room, text = tolerance(figure, paper)
    return abs(ours.mean - paper) <= room, text


def check_rows(figure: Figure, one: Experiment, document: dict[str, Any]) -> list[Row]:
    """Rows of the experiment's checks: by their bounds, or by nearness to the paper's value."""
    results = digest.result_set(document)
    metrics = one.setting(one.cases(results.mode)[0], results.mode).metrics
    wanted = chosen(figure, one)
    rows = []
    for verdict in report.judge(one, results):
        if verdict.check not in wanted or not _allows(figure, verdict.case):
            continue
        check = verdict.check
        holds: bool | None
        # the other side of a comparison may be missing where a form was run in part: that is no verdict
        run = verdict.case is not None and report.check_values(check, results.results, verdict.case)
        if verdict.status in ("pass", "fail", "differs"):
            holds, rule = verdict.status == "pass", report.bound_text(verdict.bound)
        else:
            holds, rule = near(figure, check.paper, verdict.ours)
        rows.append(
            Row(
                report.check_title(one, check, metrics),
                "" if verdict.case is None else case_name(verdict.case),
                check.paper,
                verdict.ours,
                verdict.reference,
                rule,
                holds if run else None,
                check.differs if verdict.status == "differs" else "",
            )
        )
    return rows


def curve_rows(figure: Figure, one: Experiment, document: dict[str, Any]) -> list[Row]:
    """Rows of the figure's own values."""
    results = digest.result_set(document)
    metrics = one.setting(one.cases(results.mode)[0], results.mode).metrics
    rows = []
    for curve in figure.curve:
        for variant, paper in curve.paper.items():
            case = {**curve.case, curve.over: variant}
            values = [run.metrics[curve.metric] for run in results.results if matches(run.case, case)]
            ours = summarise(values)
            holds, rule = near(figure, paper, ours)
            rows.append(
                Row(metrics[curve.metric].label or curve.metric, case_name(case), paper, ours, None, rule, holds)
            )
    return rows


def finding_rows(figure: Figure, document: dict[str, Any]) -> list[Row]:
    """Rows of numbers that a tool reads from the module's own trace."""
    runs = digest.result_set(document).results
    rows = []
    for one in figure.finding:
        values = [run.metrics[one.metric] for run in runs if one.metric in run.metrics and matches(run.case, one.case)]
        ours = summarise(values)
        holds: bool | None
        if one.min is None and one.max is None:
            holds, rule = near(figure, one.paper, ours)
        else:
            low, high = -math.inf if one.min is None else one.min, math.inf if one.max is None else one.max
            holds, rule = low <= ours.mean <= high if values else None, report.bound_text((one.min, one.max))
        rows.append(Row(one.what, case_name(one.case), one.paper, ours, None, rule, holds))
    return rows


def judge(figure: Figure, documents: dict[str, dict[str, Any]]) -> Verdict:
    """A figure's verdict from the digests."""
    if figure.cannot:
        return Verdict(figure, [], "cannot be compared", "")
    rows: list[Row] = []
    forms = []
    for name in filter(None, (figure.experiment, figure.also)):
        if name not in documents:
            continue
        one = digest.experiment_of(documents[name])
        rows += check_rows(figure, one, documents[name])
        if name == figure.experiment:
            rows += curve_rows(figure, one, documents[name])
        forms.append(documents[name]["mode"])
    if figure.traced in documents:
        rows += finding_rows(figure, documents[figure.traced])
        forms.append(documents[figure.traced]["mode"])
    verdict = Verdict(figure, rows, "", forms[0] if forms else "")
    if verdict.judged:
        word = "reproduced" if verdict.held == verdict.judged else "differs"
    else:
        word = "not judged" if any(row.ours.n for row in rows) else "not run"
    return Verdict(figure, rows, word, verdict.form)


def judge_all(documents: dict[str, dict[str, Any]]) -> list[Verdict]:
    """All figures, paper by paper."""
    order = {paper: index for index, paper in enumerate(PAPERS)}
    return [judge(figure, documents) for figure in sorted(figures(), key=lambda one: order[one.paper])]
