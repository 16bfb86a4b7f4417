# SPDX-License-Identifier: GPL-2.0
"""The report of one experiment as text: the paper's number, ours with its interval, the reference, the verdict."""

from __future__ import annotations

import io
import math
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from ..judge.checks import STATUS, Table, Verdict, bound_text, bounded, check_title, judge, judged, metric_title
from ..measure.summary import Summary, summarise
from ..results.files import ResultSet
from ..spec.experiment import Experiment, case_name
from ..spec.metrics import Metric, kind_of

VERDICT_HEAD = ("what", "case", "paper", "ours", "off", "reference", "bound", "verdict")
#: columns with numbers
NUMBERS = VERDICT_HEAD[2:7]


def number(value: float | None) -> str:
    """A number with about four significant digits; "-" if there is none."""
    if value is None or math.isnan(value):
        return "-"
    size = abs(value)
    return (
        f"{value:.0f}"
        if size >= 1000
        else f"{value:.1f}"
        if size >= 100
        else f"{value:.2f}"
        if size >= 0.1 or value == 0
        else f"{value:.4f}"
    )


def interval(summary: Summary | None) -> str:
    """Mean and half-width of the 95 % interval, with equal decimals; with the number of runs if some have no value."""
    if summary is None or summary.n == 0:
        return "-"
    mean = number(summary.mean)
    some = "" if summary.whole else f" ({summary.n} of {summary.asked} runs)"
    if math.isnan(summary.half):
        return mean + some
    decimals = len(mean.partition(".")[2])
    return f"{mean} ±{summary.half:.{decimals}f}{some}"


def off(paper: float | None, ours: Summary) -> str:
    """Difference of a mean from the paper's number, in percent of that."""
    if paper is None or not paper or math.isnan(ours.mean):
        return "-"
    return f"{100 * (ours.mean - paper) / abs(paper):+.0f} %"


class _Page:
    """Plain text of a fixed width, with tables by rich; no text is interpreted as markup."""

    def __init__(self, width: int):
        from rich.console import Console

        self.buffer = io.StringIO()
        self.console = Console(file=self.buffer, width=width, color_system=None, force_terminal=False)

    def line(self, text: str) -> None:
        """Add a line, folded if it is too long."""
        self.console.print(text, markup=False, highlight=False)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], right: Container[str]) -> None:
        """Add a table; columns of ``right`` are right-aligned."""
        from rich import box
        from rich.markup import escape
        from rich.table import Table as TextTable

        table = TextTable(box=box.SIMPLE_HEAD, pad_edge=False)
        for title in head:
            table.add_column(escape(title), justify="right" if title in right else "left", overflow="fold")
        for row in rows:
            table.add_row(*map(escape, row))
        self.console.print(table)

    def text(self) -> str:
        """The complete text."""
        return "\n".join(line.rstrip() for line in self.buffer.getvalue().splitlines()) + "\n"


def text(experiment: Experiment, results: ResultSet, width: int = 118) -> str:
    """The report of one experiment as plain text."""
    page = _Page(width)
    metrics = experiment.setting(experiment.cases(results.mode)[0], results.mode).metrics
    verdicts = judge(experiment, results)
    for line in _origin(experiment, results):
        page.line(line)
    page.line("\nmean ± half of the 95 % interval")
    dimensions = list(experiment.vary) or ["case"]
    titles = [metric_title(name, metric) for name, metric in metrics.items()]
    page.table([*dimensions, *titles], _case_rows(dimensions, list(metrics), results), titles)
    if verdicts:
        page.line("against the paper and the bounds")
        page.table(VERDICT_HEAD, [_verdict_row(experiment, verdict, metrics) for verdict in verdicts], NUMBERS)
    for verdict in verdicts:
        if verdict.status in ("fail", "differs", "undecided", "unsettled", "incomplete") and verdict.case is not None:
            page.line(_remark(experiment, verdict, metrics))
    page.line(summary_line(experiment, verdicts))
    return page.text()


def _origin(experiment: Experiment, results: ResultSet) -> Iterator[str]:
    """Lines about the experiment, the kernel and the runs."""
    yield f"{experiment.name}: {experiment.head.title or experiment.head.claim}"
    yield f"source: {experiment.head.source}"
    seeds = len(results.asked_seeds)
    yield (
        f"kernel {results.provenance['kernel'].get('release', '?')}, modules {results.provenance['modules_version']}, "
        f"{seeds} run{'s' if seeds != 1 else ''} a case, {results.mode} form"
        + (f", set {results.sets}" if results.sets else "")
    )
    missing = results.missing()
    if missing:
        yield f"INCOMPLETE: {len(missing)} of the runs that were asked for are missing"


def _case_rows(dimensions: list[str], metrics: list[str], results: ResultSet) -> Iterator[list[str]]:
    """A row for each case with its metrics."""
    runs = Table.of(results)
    for case in results.asked_cases:
        variants = [case.get(dimension, "base") for dimension in dimensions]
        yield variants + [interval(summarise(runs.values(case, metric))) for metric in metrics]


def _verdict_row(experiment: Experiment, verdict: Verdict, metrics: dict[str, Metric]) -> list[str]:
    return [
        check_title(experiment, verdict.check, metrics),
        "not asked for" if verdict.case is None else case_name(verdict.case),
        number(verdict.check.paper),
        interval(verdict.ours),
        off(verdict.check.paper, verdict.ours),
        interval(verdict.reference),
        bound_text(verdict.bound),
        _verdict_text(verdict),
    ]


def _verdict_text(verdict: Verdict) -> str:
    if verdict.status == "absent":
        return "-"
    return STATUS[verdict.status] + (f": {verdict.note}" if verdict.status == "few" else "")


def _remark(experiment: Experiment, verdict: Verdict, metrics: dict[str, Metric]) -> str:
    """Text for a bound that is not met, with the reason of the bound."""
    ours, note = verdict.ours, f". {verdict.note}" if verdict.note else ""
    return (
        f"{STATUS[verdict.status]}: {check_title(experiment, verdict.check, metrics)}, "
        f"{case_name(verdict.case or {})}: {number(ours.mean)} (runs from {number(ours.low)} to {number(ours.high)}), "
        f"bound {bound_text(verdict.bound)}: {verdict.why}{note}"
    )


def summary_line(experiment: Experiment, verdicts: list[Verdict]) -> str:
    """Number of bounds that are met, and of the others by status."""
    those = judged(verdicts)
    if not those:
        if bounded(experiment):
            return "NOTHING WAS JUDGED: no bound is for these cases in this form"
        return "no bounds"
    words = [f"{sum(verdict.status == 'pass' for verdict in those)} of {len(those)} bounds met"]
    for status in ("fail", "incomplete", "undecided", "unsettled", "differs", "few"):
        count = sum(verdict.status == status for verdict in those)
        words += [f"{count} {'judged by few seeds' if status == 'few' else STATUS[status]}"] if count else []
    return ", ".join(words)


def _plain(summary: Summary | None) -> dict[str, Any] | None:
    """A summary for programs."""
    if summary is None:
        return None
    return {
        "n": summary.n,
        "no_value": summary.blank,
        "missing": summary.missing,
        "mean": summary.mean,
        "half95": summary.half,
        "min": summary.low,
        "median": summary.median,
        "max": summary.high,
    }


def as_json(experiment: Experiment, results: ResultSet) -> dict[str, Any]:
    """The report for programs."""
    metrics = experiment.setting(experiment.cases(results.mode)[0], results.mode).metrics
    runs = Table.of(results)
    return {
        "experiment": experiment.name,
        "mode": results.mode,
        "provenance": results.provenance,
        "cases": [
            {
                "case": case,
                "metrics": {
                    name: {
                        **(_plain(summarise(runs.values(case, name))) or {}),
                        "unit": kind_of(metrics[name]).unit,
                    }
                    for name in metrics
                },
            }
            for case in results.asked_cases
        ],
        "checks": [
            {
                "metric": verdict.check.metric,
                "case": verdict.case,
                "status": verdict.status,
                "paper": verdict.check.paper,
                "ours": _plain(verdict.ours),
                "reference": _plain(verdict.reference),
                "min": verdict.bound[0],
                "max": verdict.bound[1],
                "why": verdict.why,
                "red": verdict.red,
                "note": verdict.note,
            }
            for verdict in judge(experiment, results)
        ],
    }
