# SPDX-License-Identifier: GPL-2.0
"""Comparison with the papers' tables and figures. coverage.toml has the rules; verdicts are computed from results."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..measure.summary import Summary, summarise
from ..results import digest
from ..results.files import ResultSet
from ..spec.experiment import Case, Check, Differs, Experiment, matches
from ..spec.tables import ExperimentError, load_table
from . import checks

DATA = Path(__file__).parent
PAPERS = ("tcp_lp", "lowpri", "ledbat", "vulture", "shred")
#: verdicts on a figure's claims, the worst first. not all run: some cases are newer than the results; not judged: the
#: bounds are for longer runs; no bound: there are only the paper's numbers to compare with
WORDS = (
    "INCOMPLETE",
    "FAILS",
    "not all run",
    "undecided",
    "not reached",
    "holds",
    "no bound",
    "not judged",
    "not run",
    "cannot be compared",
)
#: verdicts on a number compared with the paper's, the best first. tested: the supposed cause of the difference was
#: changed, and the number changed accordingly
REPRODUCED, GOOD, TESTED, DIFFERS = "reproduced", "at least as good", "differs, cause tested", "differs"
AGAINST = (REPRODUCED, GOOD, TESTED, DIFFERS)
#: verdict on a figure whose rows have no number of the paper
NO_NUMBER = "no number"
#: maximum and default of a figure's tolerance ("near", "about")
NEAR_MOST_PERCENT = 10.0


@dataclass(frozen=True)
class Curve:
    """The paper's values of a metric over the variants of a dimension.

    better: "higher" or "lower" if a deviation to that side is an improvement; "" if no deviation is.
    """

    metric: str
    over: str
    paper: dict[str, float]
    better: str = ""
    case: dict[str, Any] = field(default_factory=dict)


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
class Source:
    """A number of an experiment: the mean over the cases that match ``case``; if ``of`` is given, compared with the
    cases that it changes them to."""

    experiment: str
    metric: str
    case: dict[str, Any] = field(default_factory=dict)
    of: dict[str, str] | None = None
    how: str = "percent"


@dataclass(frozen=True)
class Why:
    """Why rows of these metrics in these cases are not near the paper's values.

    tested: a run in which the supposed cause was changed. If its number is near the paper's, the cause is confirmed.
    """

    text: str
    metric: tuple[str, ...] = ()
    case: dict[str, Any] = field(default_factory=dict)
    tested: Source | None = None


@dataclass(frozen=True)
class Beside:
    """Rows that do not count in the figure's verdict, and why: the paper did not measure them, such as its protocol
    with today's TCP if another row has the paper's TCP, or another value of a parameter that the paper does not give.
    """

    why: str
    metric: tuple[str, ...] = ()
    case: dict[str, Any] = field(default_factory=dict)


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
    about: float = NEAR_MOST_PERCENT
    why: tuple[Why, ...] = ()
    beside: tuple[Beside, ...] = ()
    cannot: str = ""
    curve: list[Curve] = field(default_factory=list)
    trend: list[Trend] = field(default_factory=list)
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


@dataclass(frozen=True)
class Row:
    """One number of a figure, with two verdicts: on the claim (a bound) and compared with the paper's number.

    status: as in checks.Verdict. against: REPRODUCED, GOOD, TESTED or DIFFERS; "" if the paper has neither a number nor
    an order, if there is no measured number, or if the row does not count in the figure's verdict.
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
    against: str = ""
    note: str = ""
    #: why the number is not near the paper's, if coverage.toml explains it
    why: str = ""
    #: the same number in ns-2, if ns-2 has the senders
    ns2: Summary | None = None
    #: the paper states an order or a trend, which is the bound, without a number
    order: bool = False
    #: why this row does not count in the figure's verdict
    beside: str = ""


@dataclass(frozen=True)
class FigureVerdict:
    """A figure's rows and verdict. word: one of WORDS; stale: parts of its results' identity that have changed."""

    figure: Figure
    rows: list[Row]
    word: str
    form: str
    stale: tuple[str, ...] = ()

    @property
    def held(self) -> int:
        """Number of claims that hold."""
        return sum(row.status == "pass" for row in self.rows)

    @property
    def judged(self) -> int:
        """Number of claims that were judged, or should have been."""
        return sum(row.status not in ("shown", "absent") for row in self.rows)

    @property
    def compared(self) -> list[str]:
        """Verdict on each number that is compared with the paper's."""
        return [row.against for row in self.rows if row.against]

    @property
    def against(self) -> str:
        """The worst of these verdicts."""
        return next((word for word in reversed(AGAINST) if word in self.compared), NO_NUMBER)

    @property
    def red(self) -> bool:
        """Whether any row is red."""
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
        if not 0 < one.about <= NEAR_MOST_PERCENT:
            raise ExperimentError(
                f"{path.name}: {one.paper} {one.number}: about = {one.about:g}: above 0, up to {NEAR_MOST_PERCENT:g}"
            )
    return made


def chosen(figure: Figure, one: Experiment) -> list[Check]:
    """The experiment's checks that refer to this figure."""
    bounded = [check for check in one.checks if check.min is not None or check.max is not None]
    if figure.checks == "all":
        picked = one.checks
    elif figure.checks == "bounds":
        picked = bounded
    else:
        # "Table 1" must not match "Table 10"
        pattern = re.compile(rf"(?:{figure.at or figure.number})(?!\d|[IVX])")
        picked = [check for check in one.checks if pattern.search(check.paper_at) or pattern.search(check.why)]
    return picked


def _allows(figure: Figure, case: dict[str, str] | None) -> bool:
    return case is None or all(
        dimension not in case or matches(case, {dimension: wanted}) for dimension, wanted in figure.case.items()
    )


def inside(paper: float, ours: Summary) -> bool:
    """Whether the paper's number lies within our 95 % interval."""
    return not math.isnan(ours.half) and abs(ours.mean - paper) <= ours.half


def against(paper: float, ours: Summary, about_percent: float, better: str) -> str:
    """Verdict on our number compared with the paper's: reproduced if within our 95 % interval or ``about_percent``.

    better: "higher" or "lower" if a deviation to that side is an improvement; "" if no deviation is.
    """
    if ours.missing or ours.blank:
        return DIFFERS
    distance = ours.mean - paper
    if inside(paper, ours) or (about_percent and abs(distance) <= abs(paper) * about_percent / 100):
        return REPRODUCED
    beyond = (better == "higher" and distance > 0) or (better == "lower" and distance < 0)
    return GOOD if beyond else DIFFERS


def better(bound: checks.Limits) -> str:
    """The side on which a bound does not limit a number: "higher", "lower" or ""."""
    low, high = bound
    return "" if (low is None) == (high is None) else "lower" if low is None else "higher"


def measured(source: Source, documents: dict[str, dict[str, Any]], name: str = "") -> Summary:
    """A number from the document ``name`` (default: its experiment's); without value if there is no such document."""
    name = name or source.experiment
    if name not in documents:
        return summarise([])
    results = digest.result_set(documents[name])
    table = checks.Table.of(results)
    values: list[float | None] = []
    for case in results.asked_cases:
        if not matches(case, source.case):
            continue
        if source.of is None:
            values += table.values(case, source.metric)
        else:
            values += table.compare(case, source.metric, {**case, **source.of}, source.metric, source.how)
    return summarise(values)


def in_order(status: str) -> str:
    """Verdict on an order or a trend from the status of its bound: only a pass is reproduced."""
    return "" if status in ("shown", "absent", "new") else REPRODUCED if status == "pass" else DIFFERS


def _spoken_of(metric: str, case: Case | None, one: Why | Beside) -> bool:
    return metric in (one.metric or (metric,)) and matches(case or {}, one.case)


def stand_beside(figure: Figure, row: Row) -> Row:
    """The row, without the verdict compared with the paper if it does not count for the figure."""
    found = next((one for one in figure.beside if row.against and _spoken_of(row.metric, row.case, one)), None)
    return row if found is None else replace(row, against="", beside=found.why)


def _explained(figure: Figure, metric: str, case: Case | None) -> Why | None:
    """Explanation in coverage.toml of this row's distance from the paper, if any."""
    return next((one for one in figure.why if _spoken_of(metric, case, one)), None)


def explain(figure: Figure, row: Row, documents: dict[str, dict[str, Any]]) -> Row:
    """The row, with the explanation why it differs from the paper and whether that was tested."""
    why = _explained(figure, row.metric, row.case) if row.against == DIFFERS else None
    if why is None:
        return row
    held = False
    if why.tested and row.paper is not None:
        found = measured(why.tested, documents)
        held = bool(found.n) and against(row.paper, found, figure.about, "") == REPRODUCED
    return replace(row, why=why.text, against=TESTED if held else DIFFERS)


def row_of(
    figure: Figure,
    what: tuple[str, str, Case | None],
    paper: float | None,
    ours: Summary,
    bound: checks.Limits,
    verdict: tuple[str, str, bool],
    reference: Summary | None = None,
    ns2: Summary | None = None,
    side: str = "",
    order: bool = False,
) -> Row:
    """A row with both verdicts; what: title, metric, case; verdict: status, note, red."""
    title, metric, case = what
    unknown = paper is None or not ours.asked or verdict[0] == "new"
    said = "" if paper is None or unknown else against(paper, ours, figure.about, side or better(bound))
    status, note, red = verdict
    if order:
        said = in_order(status)
    rule = checks.bound_text(bound)
    return Row(title, metric, case, paper, ours, reference, rule, status, red, said, note, "", ns2, order)


def ns2_summary(check: Check, case: Case | None, simulated: checks.Table | None) -> Summary | None:
    """A check's number in ns-2's document of the experiment; None if that lacks a case of it."""
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
            ns2_summary(verdict.check, verdict.case, simulated),
            order=verdict.check.order,
        )
        for verdict in checks.judge(one, results)
        if verdict.check in wanted and _allows(figure, verdict.case)
    ]


def curve_rows(figure: Figure, one: Experiment, results: ResultSet) -> list[Row]:
    """Rows of the figure's curves; each number is a mean over the matching cases."""
    metrics = one.setting(one.cases(results.mode)[0], results.mode).metrics
    table = checks.Table.of(results)
    rows = []
    for curve in figure.curve:
        for variant, paper in curve.paper.items():
            wanted = {**curve.case, curve.over: variant}
            cases = [case for case in results.asked_cases if matches(case, wanted)]
            ours = summarise([value for case in cases for value in table.values(case, curve.metric)])
            status = "absent" if not cases else "incomplete" if ours.missing else "shown"
            note = f"{ours.missing} of {ours.asked} runs missing" if ours.missing else ""
            status, note = checks.not_lost(status, note, cases, results)
            what = (metrics[curve.metric].label or curve.metric, curve.metric, wanted)
            verdict = (status, note, status == "incomplete")
            rows.append(row_of(figure, what, paper, ours, (None, None), verdict, side=curve.better))
    return rows


def trend_rows(figure: Figure, one: Experiment, results: ResultSet) -> list[Row]:
    """Rows of the figure's trends: the last number minus the first, seed by seed; the paper gives the sign."""
    metrics = one.setting(one.cases(results.mode)[0], results.mode).metrics
    table = checks.Table.of(results)
    rows = []
    for trend in figure.trend:
        bound: checks.Limits = (0, None) if trend.rises else (None, 0)
        check = Check(trend.metric, of=trend.of, how=trend.how, min=bound[0], max=bound[1], order=True)
        ends = [{**trend.case, trend.over: variant} for variant in (trend.first, trend.last)]
        cases = [[case for case in results.asked_cases if matches(case, end)] for end in ends]
        what = f"{checks.check_title(one, check, metrics)}: {trend.over}={trend.last} minus {trend.over}={trend.first}"
        spoken_of = (what, trend.metric, trend.case)
        if not all(cases):
            rows.append(row_of(figure, spoken_of, None, summarise([]), bound, ("absent", "", False)))
            continue
        first, last = (table.check(check, case[0]) for case in cases)
        values = [checks.compared("difference", new, old) for old, new in zip(first, last)]
        status, note = checks.status_of(check, trend.case, values, bound, results.mode)
        parts = [case[0] for case in cases] + [{**case[0], **(trend.of or {})} for case in cases]
        status, note = checks.not_lost(status, note, parts, results)
        row = row_of(figure, spoken_of, None, summarise(values), bound, (status, note, False), order=True)
        # the trend counts only in the comparison with the paper, not as a claim of the project
        rows.append(replace(row, status="new" if status == "new" else "shown"))
    return rows


def finding_rows(figure: Figure, results: ResultSet) -> list[Row]:
    """Rows of numbers that a tool computes from a trace of the module."""
    table = checks.Table.of(results)
    rows = []
    for one in figure.finding:
        cases = [case for case in results.asked_cases if matches(case, one.case)]
        values = [value for case in cases for value in table.values(case, one.metric)]
        ours, bound = summarise(values), (one.min, one.max)
        as_check = Check(one.metric, min=one.min, max=one.max, differs=one.differs, order=one.order)
        if not cases:
            status, note = "incomplete", "not measured"
        elif ours.n and ours.blank and one.lacks:
            status, note = "undecided", one.lacks
        else:
            status, note = checks.status_of(as_check, one.case, values, bound, results.mode)
        red = checks.Verdict(as_check, one.case, ours, None, bound, "", status).red
        what, verdict = (one.what, one.metric, one.case), (status, note, red)
        rows.append(row_of(figure, what, one.paper, ours, bound, verdict, order=one.order))
    return rows


def word_of(rows: list[Row]) -> str:
    """Verdict on a figure's claims: the worst of its rows."""
    seen = {row.status for row in rows}
    for status, word in (
        ("incomplete", "INCOMPLETE"),
        ("fail", "FAILS"),
        ("new", "not all run"),
        ("undecided", "undecided"),
        ("differs", "not reached"),
        ("pass", "holds"),
    ):
        if status in seen:
            return word
    if any(row.against for row in rows):
        return "no bound"
    return "not judged" if any(row.ours.n for row in rows) else "not run"


def judge(figure: Figure, documents: dict[str, dict[str, Any]]) -> FigureVerdict:
    """A figure's verdict from the digests."""
    if figure.cannot:
        return FigureVerdict(figure, [], "cannot be compared", "")
    rows: list[Row] = []
    used = [name for name in (figure.experiment, figure.also, figure.traced) if name in documents]
    for name in used:
        results = digest.result_set(documents[name])
        if name == figure.traced:
            rows += finding_rows(figure, results)
            continue
        one = digest.experiment_of(documents[name])
        rows += check_rows(figure, one, results, checks.ns2_table(documents.get(digest.NS2 + name)))
        if name == figure.experiment:
            rows += curve_rows(figure, one, results) + trend_rows(figure, one, results)
    old = dict.fromkeys(part for name in used for part in documents[name].get("stale", ()))
    rows = [explain(figure, stand_beside(figure, row), documents) for row in rows]
    form = documents[used[0]]["mode"] if used else ""
    return FigureVerdict(figure, rows, word_of(rows) if used else "not run", form, tuple(old))


def judge_all(documents: dict[str, dict[str, Any]]) -> list[FigureVerdict]:
    """All figures, paper by paper."""
    order = {paper: index for index, paper in enumerate(PAPERS)}
    return [judge(figure, documents) for figure in sorted(figures(), key=lambda one: order[one.paper])]
