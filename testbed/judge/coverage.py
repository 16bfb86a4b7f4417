# SPDX-License-Identifier: GPL-2.0
"""Comparison with the papers' tables and figures. coverage.toml has the rules; verdicts are computed from results."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

from ..measure.summary import Summary, summarise
from ..results import digest
from ..results.files import ResultSet
from ..spec.experiment import Case, Check, Experiment, matches
from . import checks, formulas
from .figures import METRIC, PAPERS, Beside, Figure, Near, Source, Unknown, Why, listed, spoken_of

#: verdicts on a figure's claims, the worst first. not all run: some cases are newer than the results; few seeds: the
#: experiment has more; not judged: the bounds are for longer runs; no bound: there are only the paper's numbers to
#: compare with
WORDS = (
    "INCOMPLETE",
    "FAILS",
    "not all run",
    "few seeds",
    "undecided",
    "not reached",
    "holds",
    "no bound",
    "not judged",
    "not run",
    "cannot be compared",
)
#: verdicts on a number compared with the paper's, the best first. unknown: it depends on a parameter that the paper
#: does not give, and is near with one of the values that were tried. tested: the supposed cause of the difference was
#: changed, and the number changed accordingly
#: undecided: the interval contains the bound of an order or a trend
REPRODUCED, GOOD, UNKNOWN, UNDECIDED = "reproduced", "at least as good", "unknown", "undecided"
TESTED, DIFFERS = "differs, cause tested", "differs"
AGAINST = (REPRODUCED, GOOD, UNKNOWN, UNDECIDED, TESTED, DIFFERS)
#: verdict on a figure whose rows have no number of the paper
NO_NUMBER = "no number"


@dataclass(frozen=True)
class Row:
    """One number of a figure, with two verdicts: on the claim (a bound) and compared with the paper's number.

    status: as in checks.Verdict. against: one of AGAINST; "" if the paper has neither a number nor an order, if there
    is no measured number, or if the row does not count in the figure's verdict.
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
    #: the same number in ns-2 and in ns-3, if they have the senders
    ns2: Summary | None = None
    ns3: Summary | None = None
    #: the paper states an order or a trend, which is the bound, without a number
    order: bool = False
    #: why this row does not count in the figure's verdict
    beside: str = ""
    #: of which experiment or trace it is
    experiment: str = ""
    #: where the number is from, if the same number can be had in other cases; None if not
    source: Source | None = None

    def is_of(self, one: Why | Beside | Near | Unknown) -> bool:
        """Whether it is one of the rows that an entry of coverage.toml is about."""
        return spoken_of(self.metric, self.case, one, self.experiment)


@dataclass(frozen=True)
class FigureVerdict:
    """A figure's rows and verdict. word: one of WORDS; stale: parts of its results' identity that have changed; seeds:
    how many there are, if the experiment has more.
    """

    figure: Figure
    rows: list[Row]
    word: str
    form: str
    stale: tuple[str, ...] = ()
    seeds: str = ""

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


def near_percent(figure: Figure, metric: str, case: Case | None, experiment: str = "") -> float:
    """The tolerance of a row, in percent of the paper's number; 0 if coverage.toml gives none."""
    return next((one.percent for one in figure.near if spoken_of(metric, case, one, experiment)), 0.0)


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
    cases = [case for case in results.asked_cases if matches(case, source.case)]
    if source.of is None:
        return summarise(mean_by_seed([table.values(case, source.metric) for case in cases]))
    others = [{**case, **source.of} for case in cases]
    compared = [
        table.compare(case, source.metric, other, source.metric, source.how) for case, other in zip(cases, others)
    ]
    return summarise(mean_by_seed(compared))


def mean_by_seed(cases: list[list[float | None]]) -> list[float | None]:
    """The mean over the cases, seed by seed, so that the interval is of the seeds; None where a run is missing."""
    means: list[float | None] = []
    for values in zip(*cases):
        there = [value for value in values if value is not None]
        means.append(sum(there) / len(there) if len(there) == len(values) else None)
    return means


def in_order(status: str) -> str:
    """Verdict on an order or a trend from the status of its bound: only a pass is reproduced, few seeds say nothing."""
    if status in ("shown", "absent", "new", "few"):
        return ""
    if status in ("undecided", "unsettled"):
        return UNDECIDED
    return REPRODUCED if status == "pass" else DIFFERS


def stand_beside(figure: Figure, row: Row) -> Row:
    """The row, without the verdict compared with the paper if it does not count for the figure."""
    found = next((one for one in figure.beside if row.against and row.is_of(one)), None)
    return row if found is None else replace(row, against="", beside=found.why)


def explain(figure: Figure, row: Row, documents: dict[str, dict[str, Any]]) -> Row:
    """The row, with the explanation why it differs from the paper and whether that was tested."""
    not_there = row.against in (DIFFERS, UNDECIDED)
    why = next((one for one in figure.why if row.is_of(one)), None) if not_there else None
    if why is None:
        return row
    held = False
    if why.tested and row.paper is not None:
        held = _is_near(figure, row, measured(why.tested, documents))
    return replace(row, why=f"{row.why} {why.text}".lstrip(), against=TESTED if held else row.against)


def _is_near(figure: Figure, row: Row, ours: Summary) -> bool:
    """Whether another measured number is near a row's number of the paper."""
    if row.paper is None or not ours.n:
        return False
    near = near_percent(figure, row.metric, row.case, row.experiment)
    return against(row.paper, ours, near, "") == REPRODUCED


def _with_value(one: Unknown, value: str, row: Row, documents: dict[str, dict[str, Any]]) -> Summary:
    """A row's number with another value of the parameter that the paper does not give."""
    assert row.source is not None
    if one.over == METRIC:
        return measured(replace(row.source, metric=value), documents)
    name = one.sweep or row.source.experiment
    if name not in documents:
        return summarise([])
    dimensions = digest.experiment_of(documents[name]).vary
    case = {dimension: variant for dimension, variant in row.source.case.items() if dimension in dimensions}
    case = {**case, **one.set, one.over: value}
    return measured(replace(row.source, experiment=name, case=case), documents)


def try_values(figure: Figure, one: Unknown, rows: list[Row], documents: dict[str, dict[str, Any]]) -> list[Row]:
    """The rows, with the verdict of those that depend on a parameter which the paper does not give.

    One value, with which the most numbers are near the paper's, holds for all of them. Rows of the others stand beside.
    """
    mine = [row for row in rows if row.against and row.source and row.paper is not None and row.is_of(one)]
    numbers = {id(row): {value: _with_value(one, value, row, documents) for value in one.values} for row in mine}
    near = {value: sum(_is_near(figure, row, numbers[id(row)][value]) for row in mine) for value in one.values}
    if not any(near.values()):
        return rows
    best = max(one.values, key=lambda value: near[value])
    text = f"The paper does not give {one.parameter}. Of {', '.join(one.values)}, {best} fits best"

    def judged(row: Row) -> Row:
        own = row.metric if one.over == METRIC else (row.case or {}).get(one.over) if not one.sweep else None
        # an order or a trend with another value, too
        if own in one.values and own != best and row.against and row.is_of(one):
            return replace(row, against="", beside=f"{text}.")
        if id(row) not in numbers or (own != best and row.against in (REPRODUCED, GOOD)):
            return row
        if _is_near(figure, row, numbers[id(row)][best]):
            found = numbers[id(row)][best]
            return replace(row, against=UNKNOWN, why=f"{text}, with which it is {found.mean:.4g}.")
        return replace(row, why=f"{text}, but not here.")

    return [judged(row) for row in rows]


def row_of(
    figure: Figure,
    what: tuple[str, str, Case | None],
    paper: float | None,
    ours: Summary,
    bound: checks.Limits,
    verdict: tuple[str, str, bool],
    reference: Summary | None = None,
    ns2: Summary | None = None,
    ns3: Summary | None = None,
    side: str = "",
    order: bool = False,
    experiment: str = "",
    source: Source | None = None,
) -> Row:
    """A row with both verdicts; what: title, metric, case; verdict: status, note, red."""
    title, metric, case = what
    unknown = paper is None or not ours.asked or verdict[0] == "new"
    near = near_percent(figure, metric, case, experiment)
    said = "" if paper is None or unknown else against(paper, ours, near, side or better(bound))
    status, note, red = verdict
    if order:
        said = in_order(status)
    rule = checks.bound_text(bound)
    return Row(
        title,
        metric,
        case,
        paper,
        ours,
        reference,
        rule,
        status,
        red,
        said,
        note,
        ns2=ns2,
        ns3=ns3,
        order=order,
        experiment=experiment,
        source=source,
    )


def simulated_summary(check: Check, case: Case | None, simulated: checks.Table | None) -> Summary | None:
    """A check's number in a simulator's document of the experiment; None if that lacks a case of it."""
    if simulated is None or case is None:
        return None
    ours = summarise(simulated.check(check, case))
    return ours if ours.n and not ours.missing else None


def source_of(name: str, check: Check, case: Case | None) -> Source | None:
    """Where a check's number is from; None if it is compared with another metric or with ns-2."""
    if case is None or check.metric_of or check.ns2:
        return None
    return Source(name, check.metric, case, check.of, check.how)


def check_rows(
    figure: Figure,
    one: Experiment,
    results: ResultSet,
    simulated: checks.Table | None = None,
    in_ns3: checks.Table | None = None,
) -> list[Row]:
    """Rows of the experiment's checks. simulated, in_ns3: the numbers of ns-2 and ns-3."""
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
            simulated_summary(verdict.check, verdict.case, simulated),
            simulated_summary(verdict.check, verdict.case, in_ns3),
            order=verdict.check.order,
            experiment=one.name,
            source=source_of(one.name, verdict.check, verdict.case),
        )
        for verdict in checks.judge(one, results)
        if verdict.check in wanted and _allows(figure, verdict.case)
    ]


def curve_rows(
    figure: Figure, one: Experiment, results: ResultSet, documents: dict[str, dict[str, Any]] | None = None
) -> list[Row]:
    """Rows of the figure's curves; each number is a mean over the matching cases."""
    metrics = one.setting(one.cases(results.mode)[0], results.mode).metrics
    table = checks.Table.of(results)
    rows = []
    for curve in (curve for curve in figure.curve if (curve.experiment or figure.experiment) == one.name):
        for variant, paper in curve.paper.items():
            wanted = {**curve.case, curve.over: variant}
            cases = [case for case in results.asked_cases if matches(case, wanted)]
            ours = summarise(mean_by_seed([table.values(case, curve.metric) for case in cases]))
            status = "absent" if not cases else "incomplete" if ours.missing else "shown"
            note = f"{ours.missing} of {ours.asked} runs missing" if ours.missing else ""
            status, note = checks.not_lost(status, note, cases, results)
            what = (metrics[curve.metric].label or curve.metric, curve.metric, wanted)
            verdict = (status, note, status == "incomplete")
            source = Source(one.name, curve.metric, wanted)
            theirs = replace(curve.ns2, case={**curve.ns2.case, curve.over: variant}) if curve.ns2 else source
            simulated = measured(theirs, documents or {}, digest.NS2 + theirs.experiment)
            row = row_of(figure, what, paper, ours, (None, None), verdict, side=curve.better, experiment=one.name)
            rows.append(replace(row, source=source, ns2=simulated if simulated.n and not simulated.missing else None))
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
        about = (what, trend.metric, trend.case)
        if not all(cases):
            rows.append(row_of(figure, about, None, summarise([]), bound, ("absent", "", False)))
            continue
        first, last = (table.check(check, case[0]) for case in cases)
        values = [checks.compared("difference", new, old) for old, new in zip(first, last)]
        status, note = checks.status_of(check, trend.case, values, bound, results.mode)
        parts = [case[0] for case in cases] + [{**case[0], **(trend.of or {})} for case in cases]
        status, note = checks.by_few(status, note, len(values), one.runs(results.mode))
        status, note = checks.not_lost(status, note, parts, results)
        verdict = (status, note, False)
        row = row_of(figure, about, None, summarise(values), bound, verdict, order=True, experiment=one.name)
        # the trend counts only in the comparison with the paper, not as a claim of the project
        rows.append(replace(row, status=status if status in ("new", "few") else "shown"))
    return rows


def formula_rows(figure: Figure) -> list[Row]:
    """Rows of the paper's formulas, which are evaluated and count for nothing, since nothing is measured."""
    rows = []
    for one in figure.formula:
        what = (one.what, "", {name: f"{value:g}" for name, value in one.of.items()})
        ours = summarise([formulas.value(one.formula, one.of)])
        row = row_of(figure, what, one.paper, ours, (None, None), ("shown", "", False))
        rows.append(replace(row, against="", beside="An evaluated formula, not a measurement."))
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
        ("few", "few seeds"),
        ("undecided", "undecided"),
        ("unsettled", "undecided"),
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
        simulated = [checks.simulated_table(documents.get(prefix + name)) for prefix in (digest.NS2, digest.NS3)]
        rows += check_rows(figure, one, results, *simulated)
        rows += curve_rows(figure, one, results, documents)
        if name == figure.experiment:
            rows += trend_rows(figure, one, results) + formula_rows(figure)
    old = dict.fromkeys(part for name in used for part in documents[name].get("stale", ()))
    rows = [stand_beside(figure, row) for row in rows]
    for unknown in figure.unknown:
        rows = try_values(figure, unknown, rows, documents)
    rows = [explain(figure, row, documents) for row in rows]
    form = documents[used[0]]["mode"] if used else ""
    seeds = next(filter(None, (digest.few_seeds(documents[name]) for name in used)), "")
    return FigureVerdict(figure, rows, word_of(rows) if used else "not run", form, tuple(old), seeds)


def judge_all(documents: dict[str, dict[str, Any]]) -> list[FigureVerdict]:
    """All figures, paper by paper."""
    order = {paper: index for index, paper in enumerate(PAPERS)}
    return [judge(figure, documents) for figure in sorted(listed(), key=lambda one: order[one.paper])]
