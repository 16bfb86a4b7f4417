# SPDX-License-Identifier: GPL-2.0
"""Judging an experiment's results by its checks, over the requested cases and seeds.

Cases come from the experiment and seeds from the request, never from the results. A lost run therefore makes a check
`incomplete`, and a case that was added to the experiment after its results were made is `new`. If fewer seeds were
requested than the experiment has, what they show is `few`, not yet a verdict.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from ..kernels.series import series_number
from ..measure.summary import Summary, summarise
from ..results import digest
from ..results.files import Result, ResultSet
from ..spec.experiment import OWN_LENGTHS, Bound, Case, Check, Differs, Experiment, case_name, matches
from ..spec.metrics import Metric, kind_of

#: status of a verdict -> its text on the pages
STATUS = {
    "pass": "holds",
    "fail": "FAILS",
    "differs": "not reached, as explained",
    "undecided": "undecided: more seeds",
    "unsettled": "undecided (explained): more seeds",
    "incomplete": "INCOMPLETE",
    "few": "few seeds",
    "new": "not run yet",
    "shown": "-",
    "absent": "not asked",
}
Limits = tuple[float | None, float | None]


@dataclass(frozen=True)
class Verdict:
    """One check in one case.

    status:
        pass        the bound is met, by the whole 95 % interval if there is one
        fail        it is missed, or a run has no value, or an explained miss is outside of its range
        differs     it is missed, within the range that the check's ``differs`` gives for this case
        undecided   the 95 % interval contains the bound
        unsettled   the same in a case whose miss ``differs`` explains, unless the mean misses by more than its range
        incomplete  a requested run is missing
        few         the bound is met, or missed as explained, by fewer seeds than the experiment has
        new         the case, or the metric, was added to the experiment after its results were made
        shown       there is no bound in this form
        absent      no case of the check was requested
    note: explanation of a status other than pass.
    """

    check: Check
    case: Case | None
    ours: Summary
    reference: Summary | None
    bound: Limits
    why: str
    status: str
    note: str = ""

    @property
    def red(self) -> bool:
        """Whether it needs work: missed without an explanation, undecided with the mean outside, or incomplete."""
        missed = not meets(self.ours.mean, self.bound)
        return self.status in ("fail", "incomplete") or (self.status == "undecided" and missed)


class Table:
    """Metrics by case, metric and seed. None: the requested run is missing, or is older than the metric.

    NaN: the run has no value. Runs with seeds beyond the requested ones count too.
    ``simulated``: the table of ns-2's numbers.
    """

    def __init__(self, results: list[Result], seeds: list[int], simulated: Table | None = None):
        self.seeds = seeds
        self.simulated = simulated
        self.runs: dict[frozenset[tuple[str, str]], dict[int, dict[str, float]]] = {}
        for one in results:
            self.runs.setdefault(frozenset(one.case.items()), {})[one.seed] = one.metrics

    @classmethod
    def of(cls, results: ResultSet, simulated: Table | None = None) -> Table:
        """The metrics of a set of results, over the requested seeds."""
        return cls(results.results, results.asked_seeds, simulated)

    def _runs(self, case: Case) -> dict[int, dict[str, float]]:
        return self.runs.get(frozenset(case.items()), {})

    def values(self, case: Case, metric: str, beside: Case | None = None) -> list[float | None]:
        """One value for each seed; with ``beside``, unrequested seeds count only if this other case has them too."""
        mine = self._runs(case)
        more = set(mine) & set(self._runs(case if beside is None else beside))
        runs = [mine.get(seed) for seed in sorted({*self.seeds, *more})]
        return [None if run is None else run.get(metric) for run in runs]

    def check(self, check: Check, case: Case) -> list[float | None]:
        """A check's number for each seed of a case; comparisons are between runs of the same seed."""
        if check.ns2:
            return self.beside_ns2(check, case)
        if check.of is None and not check.metric_of:
            return self.values(case, check.metric)
        other, other_metric = {**case, **(check.of or {})}, check.metric_of or check.metric
        return self.compare(case, check.metric, other, other_metric, check.how)

    def beside_ns2(self, check: Check, case: Case) -> list[float | None]:
        """Each seed's number compared with ns-2's mean, since ns-2's seeds have no relation to the kernel's; None if
        ns-2 has no number."""
        theirs = summarise(self.simulated.values(case, check.metric) if self.simulated else [])
        mean = None if not theirs.n or theirs.missing else theirs.mean
        return [compared(check.how, mine, mean) for mine in self.values(case, check.metric)]

    def compare(self, case: Case, metric: str, other: Case, other_metric: str, how: str) -> list[float | None]:
        """Numbers of one case compared with those of another, seed by seed."""
        ours, theirs = self.values(case, metric, other), self.values(other, other_metric, case)
        return [compared(how, mine, limit) for mine, limit in zip(ours, theirs)]

    def part(self, case: Case, metric: str, start: Case, end: Case) -> list[float | None]:
        """The part of the difference between two other cases that this case has, in percent, seed by seed."""
        three = [self._runs(one) for one in (start, end, case)]
        seeds = sorted({*self.seeds, *set.intersection(*map(set, three))})
        parts: list[float | None] = []
        for seed in seeds:
            first, last, mine = (runs.get(seed, {}).get(metric) for runs in three)
            if first is None or last is None or mine is None:
                parts.append(None)
            else:
                parts.append(compared("percent", mine - first, last - first))
        return parts


def compared(how: str, ours: float | None, theirs: float | None) -> float | None:
    """Compare two numbers of one seed; None if either run is missing."""
    if ours is None or theirs is None:
        return None
    if how == "difference":
        return ours - theirs
    return 100 * ours / theirs if theirs else math.nan


def meets(value: float, bound: Limits) -> bool:
    """Whether a number is within a bound."""
    low, high = bound
    return not math.isnan(value) and (low is None or value >= low) and (high is None or value <= high)


def _bound(check: Check, mode: str, release: str = "") -> tuple[Limits, str]:
    """A check's bounds in a form, on a kernel's release."""
    number = re.match(r"(\d+)\.(\d+)", release)
    if check.older and number and (int(number[1]), int(number[2])) < series_number(check.older.before):
        return (check.older.min, check.older.max), check.older.why
    if mode not in OWN_LENGTHS and isinstance(check.short, Bound):
        return (check.short.min, check.short.max), check.short.why
    if mode not in OWN_LENGTHS and check.short is False:
        return (None, None), check.why
    return (check.min, check.max), check.why


def contains(ours: Summary, bound: Limits) -> bool:
    """Whether an end of the bound lies inside the 95 % interval."""
    if math.isnan(ours.half):
        return False
    return any(edge is not None and ours.mean - ours.half < edge < ours.mean + ours.half for edge in bound)


def may_be_met(ours: Summary, bound: Limits, known: Differs) -> bool:
    """Whether the interval contains the end of the bound that the explained values miss, and the mean misses it by no
    more than they do."""
    low, high = bound
    if low is not None and known.max < low:
        return ours.mean >= known.min and contains(ours, (low, None))
    return ours.mean <= known.max and contains(ours, (None, high))


def explained(check: Check, case: Case) -> Differs | None:
    """The experiment's explanation of a miss in this case, if any."""
    return next((one for one in check.differs if matches(case, one.case)), None)


def status_of(check: Check, case: Case, values: list[float | None], bound: Limits, mode: str) -> tuple[str, str]:
    """A check's status in a case, and a note."""
    ours = summarise(values)
    known = explained(check, case)
    undecided = f"the interval contains the bound, of {ours.n} runs"
    if bound == (None, None):
        return ("incomplete", f"{ours.missing} of {len(values)} runs missing") if ours.missing else ("shown", "")
    if ours.blank:
        return "fail", f"no value in {ours.blank} of {len(values)} runs"
    if ours.missing:
        return "incomplete", f"{ours.missing} of {len(values)} runs missing"
    if known and mode not in OWN_LENGTHS:
        if not check.each:
            return "shown", "the range of its explanation is for its own lengths"
        known = None  # the explanation is for single runs of the longer form
    judged = values if check.each else [ours.mean]
    missed = [value for value in judged if value is None or not meets(value, bound)]
    if known:
        span = f"{known.min:g} to {known.max:g}"
        if not check.each and may_be_met(ours, bound, known):
            return "unsettled", f"{undecided}; explained: {known.why}"
        if not missed:
            return "fail", f"the bound is met: the explanation ({span}) must go"
        if not all(value is not None and meets(value, (known.min, known.max)) for value in missed):
            return "fail", f"outside of {span}, which is explained"
        return "differs", known.why
    if not check.each and contains(ours, bound):
        return "undecided", undecided
    return ("fail" if missed else "pass"), ""


def by_few(status: str, note: str, seeds: int, wanted: int) -> tuple[str, str]:
    """The status of a number from so many seeds; `few` if the experiment has more and the number is otherwise good.

    A miss stays one, and what is undecided needs more seeds anyway: these only say how many seeds they are from.
    """
    if seeds >= wanted or status not in ("pass", "differs", "fail", "undecided", "unsettled"):
        return status, note
    said = f"{seeds} of {wanted} seeds"
    if status in ("pass", "differs"):
        return "few", f"{said}, so far: {STATUS[status]}" + (f": {note}" if note else "")
    return status, f"{note}; {said}" if note else said


def not_lost(status: str, note: str, cases: list[Case], results: ResultSet) -> tuple[str, str]:
    """The status of a number from these cases; `new` if none of their runs was lost, but a case or the metric is newer
    than the results."""
    if status != "incomplete" or any(case in cases for case, _ in results.lost()):
        return status, note
    if any(case in results.new_cases for case in cases):
        return "new", "the case is newer than these results"
    return ("new", "the metric is newer than these results") if results.outgrown else (status, note)


def simulated_table(document: dict[str, Any] | None) -> Table | None:
    """The numbers of a simulator's document of an experiment, if there is one."""
    return None if document is None else Table.of(digest.result_set(document))


def committed_ns2(experiment: Experiment) -> Table | None:
    """The committed numbers of ns-2, if a check needs them and they exist."""
    path = digest.FOLDER / f"{digest.NS2}{experiment.name}.json"
    if not any(check.ns2 for check in experiment.checks) or not path.exists():
        return None
    return simulated_table(digest.load(path))


def judge(experiment: Experiment, results: ResultSet) -> list[Verdict]:
    """Verdicts of all checks in all requested cases."""
    cases = results.asked_cases
    table = Table.of(results, committed_ns2(experiment))
    verdicts = []
    for check in experiment.checks:
        bound, why = _bound(check, results.mode, results.provenance.get("kernel", {}).get("release", ""))
        mine = [case for case in cases if matches(case, check.case)]
        if check.of is not None:
            mine = [case for case in mine if {**case, **check.of} != case and {**case, **check.of} in cases]
        if not mine:
            verdicts.append(Verdict(check, None, summarise([]), None, bound, why, "absent"))
        for case in mine:
            values = table.check(check, case)
            reference = None
            as_reference = {**case, **experiment.head.reference}
            if experiment.head.reference and as_reference in cases:
                reference = summarise(table.check(check, as_reference))
            status, note = status_of(check, case, values, bound, results.mode)
            status, note = by_few(status, note, len(values), experiment.runs(results.mode))
            if not (check.ns2 and None not in table.values(case, check.metric)):  # else ns-2's number is missing
                status, note = not_lost(status, note, [case, {**case, **(check.of or {})}], results)
            verdicts.append(Verdict(check, case, summarise(values), reference, bound, why, status, note))
    return verdicts


def failures(verdicts: list[Verdict]) -> list[Verdict]:
    """The red verdicts."""
    return [one for one in verdicts if one.red]


def judged(verdicts: list[Verdict]) -> list[Verdict]:
    """The verdicts on a bound."""
    return [one for one in verdicts if one.status not in ("shown", "absent", "new")]


def bounded(experiment: Experiment) -> bool:
    """Whether an experiment has any bound."""
    return any(check.min is not None or check.max is not None for check in experiment.checks)


def is_red(experiment: Experiment, results: ResultSet, verdicts: list[Verdict]) -> bool:
    """Whether results need work: a check is red, a run was lost, or there are bounds and none was judged."""
    nothing = bounded(experiment) and not judged(verdicts)
    return bool(failures(verdicts) or results.lost() or nothing)


# ---------------------------------------------------------------------------------------- titles


def bound_text(bound: tuple[float | None, float | None]) -> str:
    """Text of a bound."""
    low, high = bound
    parts = [f">= {low:g}"] if low is not None else []
    return ", ".join(parts + ([f"<= {high:g}"] if high is not None else [])) or "-"


def metric_title(name: str, metric: Metric) -> str:
    """Column head: the label (or name) and the unit."""
    unit = kind_of(metric).unit
    return (metric.label or name) + (f" [{unit}]" if unit else "")


def check_title(experiment: Experiment, check: Check, metrics: dict[str, Metric]) -> str:
    """The quantity that a check is about, in words."""
    text = metrics[check.metric].label or check.metric
    if check.ns2:
        text += " minus ns-2's" if check.how == "difference" else " in % of ns-2's"
    elif check.of is not None or check.metric_of:
        other = case_name(check.of) if check.of else ""
        if check.metric_of:
            other = f"{metrics[check.metric_of].label or check.metric_of} {other}".rstrip()
        text += f" minus {other}" if check.how == "difference" else f" in % of {other}"
    return text + (" (each run)" if check.each else "")
