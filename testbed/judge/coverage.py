# SPDX-License-Identifier: GPL-2.0
"""The papers' tables and figures against ours. The rules are in coverage.toml, the verdicts come from results."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..measure.metrics import Summary, summarise
from ..results import digest
from ..results.files import ResultSet
from ..spec.experiment import Case, Check, Differs, Experiment, ExperimentError, load_table, matches
from . import checks

DATA = Path(__file__).parent
PAPERS = ("tcp_lp", "lowpri", "ledbat", "vulture", "shred")
#: what is said of a figure's claims, the worst first. not judged: its bounds are for longer runs than there are;
#: no bound: the paper's numbers are all there is to compare with
WORDS = (
    "INCOMPLETE",
    "FAILS",
    "undecided",
    "not reached",
    "holds",
    "no bound",
    "not judged",
    "not run",
    "cannot be compared",
)
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
    """A number that no experiment's metric shows, beside the paper's.

    differs: as a check's. lacks: why some runs have no such value; the others alone then leave it undecided.
    """

    what: str
    metric: str
    case: dict[str, Any]
    paper: float | None = None
    min: float | None = None
    max: float | None = None
    differs: tuple[Differs, ...] = ()
    lacks: str = ""


@dataclass(frozen=True)
class Why:
    """Why rows are not near the paper's values: said of rows of these metrics in these cases, and of no others."""

    text: str
    metric: tuple[str, ...] = ()
    case: dict[str, Any] = field(default_factory=dict)


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
    why: tuple[Why, ...] = ()
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
    """One number of a figure: two verdicts, on the claim (a bound) and on the paper's value (near it or not).

    status: as in checks.Verdict; near: None where there is no value of the paper's to compare with, or none of ours.
    """

    what: str
    metric: str
    case: Case | None
    paper: float | None
    ours: Summary
    reference: Summary | None
    rule: str
    status: str
    red: bool = False
    near: bool | None = None
    note: str = ""
    #: why it is not near, of the rows that say so
    why: str = ""
    #: the same number in ns-2, where it has the senders
    ns2: Summary | None = None


@dataclass(frozen=True)
class Verdict:
    """A figure's rows and what follows. word: one of WORDS; stale: what of its results is not of today's tree."""

    figure: Figure
    rows: list[Row]
    word: str
    form: str
    stale: tuple[str, ...] = ()

    @property
    def held(self) -> int:
        """Claims that hold."""
        return sum(row.status == "pass" for row in self.rows)

    @property
    def judged(self) -> int:
        """Claims that were judged, or should have been."""
        return sum(row.status not in ("shown", "absent") for row in self.rows)

    @property
    def near(self) -> int:
        """Values that are near the paper's."""
        return sum(row.near is True for row in self.rows)

    @property
    def compared(self) -> int:
        """Values that the paper has too."""
        return sum(row.near is not None for row in self.rows)

    @property
    def red(self) -> bool:
        """Whether a row is to be mended."""
        return any(row.red for row in self.rows)


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


def near(figure: Figure, paper: float | None, ours: Summary) -> bool | None:
    """Whether a mean is as near to the paper's as the figure's rule asks; a run without a value is not near."""
    if paper is None or not ours.asked:
        return None
    if ours.missing or ours.blank:
        return False
    return abs(ours.mean - paper) <= tolerance(figure, paper)[0]


def _explained(figure: Figure, metric: str, case: Case | None) -> str:
    """What coverage.toml says of this row's distance from the paper."""
    return next(
        (one.text for one in figure.why if metric in (one.metric or (metric,)) and matches(case or {}, one.case)), ""
    )


def row_of(
    figure: Figure,
    what: tuple[str, str, Case | None],
    paper: float | None,
    ours: Summary,
    bound: checks.Limits,
    verdict: tuple[str, str, bool],
    reference: Summary | None = None,
    ns2: Summary | None = None,
) -> Row:
    """A row with both its verdicts; what: title, metric, case; verdict: status, note, red."""
    title, metric, case = what
    close = near(figure, paper, ours)
    why = _explained(figure, metric, case) if close is False else ""
    status, note, red = verdict
    rule = checks.bound_text(bound)
    return Row(title, metric, case, paper, ours, reference, rule, status, red, close, note, why, ns2)


def in_ns2(check: Check, case: Case | None, simulated: checks.Table | None) -> Summary | None:
    """A check's number in ns-2's document of the experiment; None where that has not both its cases."""
    if simulated is None or case is None:
        return None
    ours = summarise(simulated.check(check, case))
    return ours if ours.n and not ours.missing else None


def check_rows(figure: Figure, one: Experiment, results: ResultSet, simulated: checks.Table | None = None) -> list[Row]:
    """Rows of the experiment's checks."""
    metrics = one.setting(one.cases(results.mode)[0], results.mode).metrics
    wanted = chosen(figure, one)
    return [
        row_of(
            figure,
            (checks.check_title(one, verdict.check, metrics), verdict.check.metric, verdict.case),
            verdict.check.paper,
            verdict.ours,
            verdict.bound,
            (verdict.status, verdict.note, verdict.red),
            verdict.reference,
            in_ns2(verdict.check, verdict.case, simulated),
        )
        for verdict in checks.judge(one, results)
        if verdict.check in wanted and _allows(figure, verdict.case)
    ]


def curve_rows(figure: Figure, one: Experiment, results: ResultSet) -> list[Row]:
    """Rows of the figure's own values: each a mean over the cases that its case names."""
    metrics = one.setting(one.cases(results.mode)[0], results.mode).metrics
    table = checks.Table(results.results, results.asked_seeds)
    rows = []
    for curve in figure.curve:
        for variant, paper in curve.paper.items():
            wanted = {**curve.case, curve.over: variant}
            cases = [case for case in results.asked_cases if matches(case, wanted)]
            ours = summarise([value for case in cases for value in table.values(case, curve.metric)])
            status = "absent" if not cases else "incomplete" if ours.missing else "shown"
            note = f"{ours.missing} of {ours.asked} runs missing" if ours.missing else ""
            what = (metrics[curve.metric].label or curve.metric, curve.metric, wanted)
            rows.append(row_of(figure, what, paper, ours, (None, None), (status, note, bool(ours.missing))))
    return rows


def finding_rows(figure: Figure, results: ResultSet) -> list[Row]:
    """Rows of numbers that a tool reads from the module's own trace."""
    table = checks.Table(results.results, results.asked_seeds)
    rows = []
    for one in figure.finding:
        cases = [case for case in results.asked_cases if matches(case, one.case)]
        values = [value for case in cases for value in table.values(case, one.metric)]
        ours, bound = summarise(values), (one.min, one.max)
        as_check = Check(one.metric, min=one.min, max=one.max, differs=one.differs)
        if not cases:
            status, note = "incomplete", "not measured"
        elif ours.n and ours.blank and one.lacks:
            status, note = "undecided", one.lacks
        else:
            status, note = checks.status_of(as_check, one.case, values, bound, results.mode)
        red = checks.Verdict(as_check, one.case, ours, None, bound, "", status).red
        rows.append(row_of(figure, (one.what, one.metric, one.case), one.paper, ours, bound, (status, note, red)))
    return rows


def word_of(rows: list[Row]) -> str:
    """What is said of a figure's claims: the worst of its rows."""
    seen = {row.status for row in rows}
    for status, word in (
        ("incomplete", "INCOMPLETE"),
        ("fail", "FAILS"),
        ("undecided", "undecided"),
        ("differs", "not reached"),
        ("pass", "holds"),
    ):
        if status in seen:
            return word
    if any(row.near is not None for row in rows):
        return "no bound"
    return "not judged" if any(row.ours.n for row in rows) else "not run"


def simulated(documents: dict[str, dict[str, Any]], name: str) -> checks.Table | None:
    """The numbers of ns-2's document of an experiment."""
    if digest.NS2 + name not in documents:
        return None
    results = digest.result_set(documents[digest.NS2 + name])
    return checks.Table(results.results, results.asked_seeds)


def judge(figure: Figure, documents: dict[str, dict[str, Any]]) -> Verdict:
    """A figure's verdict from the digests."""
    if figure.cannot:
        return Verdict(figure, [], "cannot be compared", "")
    rows: list[Row] = []
    used = [name for name in (figure.experiment, figure.also, figure.traced) if name in documents]
    for name in used:
        results = digest.result_set(documents[name])
        if name == figure.traced:
            rows += finding_rows(figure, results)
            continue
        one = digest.experiment_of(documents[name])
        rows += check_rows(figure, one, results, simulated(documents, name))
        if name == figure.experiment:
            rows += curve_rows(figure, one, results)
    old = dict.fromkeys(part for name in used for part in documents[name].get("stale", ()))
    form = documents[used[0]]["mode"] if used else ""
    return Verdict(figure, rows, word_of(rows) if used else "not run", form, tuple(old))


def judge_all(documents: dict[str, dict[str, Any]]) -> list[Verdict]:
    """All figures, paper by paper."""
    order = {paper: index for index, paper in enumerate(PAPERS)}
    return [judge(figure, documents) for figure in sorted(figures(), key=lambda one: order[one.paper])]
