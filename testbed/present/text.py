# SPDX-License-Identifier: GPL-2.0
"""The report of one experiment as text: the paper's figure, ours with its interval, the reference, the verdict."""

from __future__ import annotations

import io
import math
from typing import Any

from ..judge.checks import STATUS, Table, Verdict, bound_text, bounded, check_title, judge, judged, metric_title
from ..measure.summary import Summary, summarise
from ..results.files import ResultSet
from ..spec.experiment import Experiment, case_name
from ..spec.metrics import KINDS


def number(value: float | None) -> str:
    """Four digits of what matters."""
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
    """Mean and half-width of the 95 % interval, to as many decimals; of how many runs, where some have no value."""
    if summary is None or summary.n == 0:
        return "-"
    mean = number(summary.mean)
    some = "" if summary.whole else f" ({summary.n} of {summary.asked} runs)"
    if math.isnan(summary.half):
        return mean + some
    decimals = len(mean.partition(".")[2])
    return f"{mean} ±{summary.half:.{decimals}f}{some}"


def off(paper: float | None, ours: Summary) -> str:
    """How far a mean is from the paper's, in percent of it."""
    if paper is None or not paper or math.isnan(ours.mean):
        return "-"
    return f"{100 * (ours.mean - paper) / abs(paper):+.0f} %"


def _console(width: int) -> tuple[Any, io.StringIO]:
    from rich.console import Console

    buffer = io.StringIO()
    return Console(file=buffer, width=width, color_system=None, force_terminal=False), buffer


def text(experiment: Experiment, results: ResultSet, width: int = 118) -> str:
    """The report of one experiment as plain text."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table as TextTable

    console, buffer = _console(width)
    head = experiment.head
    metrics = experiment.setting(experiment.cases(results.mode)[0], results.mode).metrics
    console.print(f"{experiment.name}: {head.title or head.claim}", markup=False, highlight=False)
    console.print(f"source: {head.source}", markup=False, highlight=False)
    kernel = results.provenance["kernel"]
    seeds = len(results.asked_seeds)
    console.print(
        f"kernel {kernel.get('release', '?')}, modules {results.provenance['modules_version']}, "
        f"{seeds} run{'s' if seeds != 1 else ''} a case, {results.mode} form"
        + (f", set {results.sets}" if results.sets else ""),
        markup=False,
        highlight=False,
    )
    gone = results.missing()
    if gone:
        console.print(f"INCOMPLETE: {len(gone)} of the runs that were asked for are missing", markup=False)

    console.print("\nmean ± half of the 95 % interval", markup=False, highlight=False)
    dimensions = list(experiment.vary) or ["case"]
    table = TextTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for dimension in dimensions:
        table.add_column(dimension, overflow="fold")
    for name, metric in metrics.items():
        table.add_column(escape(metric_title(name, metric)), justify="right", overflow="fold")
    runs = Table.of(results)
    for case in results.asked_cases:
        cells = [case.get(dimension, "base") for dimension in dimensions]
        cells += [interval(summarise(runs.values(case, name))) for name in metrics]
        table.add_row(*cells)
    console.print(table)

    verdicts = judge(experiment, results)
    if verdicts:
        console.print("against the paper and the bounds", markup=False, highlight=False)
        table = TextTable(box=box.SIMPLE_HEAD, pad_edge=False)
        columns = ("what", "case", "paper", "ours", "off", "reference", "bound", "verdict")
        for column in columns:
            table.add_column(
                column,
                justify="right" if column in ("paper", "ours", "off", "reference", "bound") else "left",
                overflow="fold",
            )
        for one in verdicts:
            table.add_row(
                escape(check_title(experiment, one.check, metrics)),
                "not asked for" if one.case is None else case_name(one.case),
                number(one.check.paper),
                interval(one.ours),
                off(one.check.paper, one.ours),
                interval(one.reference),
                bound_text(one.bound),
                "-" if one.status == "absent" else STATUS[one.status],
            )
        console.print(table)
    for one in verdicts:
        if one.status in ("fail", "differs", "undecided", "incomplete") and one.case is not None:
            note = f". {one.note}" if one.note else ""
            console.print(
                f"{STATUS[one.status]}: {check_title(experiment, one.check, metrics)}, {case_name(one.case)}: "
                f"{number(one.ours.mean)} (runs from {number(one.ours.low)} to {number(one.ours.high)}), "
                f"bound {bound_text(one.bound)}: {one.why}{note}",
                markup=False,
                highlight=False,
            )
    console.print(summary_line(experiment, verdicts), markup=False, highlight=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def summary_line(experiment: Experiment, verdicts: list[Verdict]) -> str:
    """How many bounds are met, and what of the rest."""
    those = judged(verdicts)
    if not those:
        if bounded(experiment):
            return "NOTHING WAS JUDGED: no bound is for these cases in this form"
        return "no bounds"
    words = [f"{sum(one.status == 'pass' for one in those)} of {len(those)} bounds met"]
    for status in ("fail", "incomplete", "undecided", "differs"):
        count = sum(one.status == status for one in those)
        words += [f"{count} {STATUS[status]}"] if count else []
    return ", ".join(words)


def as_json(experiment: Experiment, results: ResultSet) -> dict[str, Any]:
    """The report for programs."""

    def summary(one: Summary | None) -> dict[str, Any] | None:
        return (
            None
            if one is None
            else {
                "n": one.n,
                "no_value": one.blank,
                "missing": one.missing,
                "mean": one.mean,
                "half95": one.half,
                "min": one.low,
                "median": one.median,
                "max": one.high,
            }
        )

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
                        **(summary(summarise(runs.values(case, name))) or {}),
                        "unit": KINDS[metrics[name].kind].unit,
                    }
                    for name in metrics
                },
            }
            for case in results.asked_cases
        ],
        "checks": [
            {
                "metric": one.check.metric,
                "case": one.case,
                "status": one.status,
                "paper": one.check.paper,
                "ours": summary(one.ours),
                "reference": summary(one.reference),
                "min": one.bound[0],
                "max": one.bound[1],
                "why": one.why,
                "red": one.red,
                "note": one.note,
            }
            for one in judge(experiment, results)
        ],
    }
