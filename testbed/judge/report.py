# SPDX-License-Identifier: GPL-2.0
"""Verdicts and the text report: the paper's figure, ours with its interval, the reference."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import Any

from ..measure.metrics import Summary, summarise
from ..results.files import Result, ResultSet
from ..spec.experiment import Bound, Check, Experiment, Metric, case_name, matches

UNITS = {
    "goodput": "Mbit/s",
    "share": "%",
    "spare_use": "%",
    "idle_use": "%",
    "active_share": "%",
    "gap_use": "%",
    "jain": "",
    "min_flow": "Mbit/s",
    "max_flow": "Mbit/s",
    "rtt_mean": "ms",
    "rtt_p95": "ms",
    "queue_mean": "ms",
    "queue_p95": "ms",
    "queue_min": "ms",
    "drops": "packets",
    "marks": "packets",
    "retransmits": "packets",
    "cwnd_mean": "packets",
    "cwnd_max": "packets",
    "yield_s": "s",
    "reap_s": "s",
    "longest_stall": "s",
    "completion_s": "s",
    "event_count": "",
    "link_use": "%",
    "kbytes_s": "kB/s",
    "sharing": "",
    "variation": "",
    "udp_lost": "packets",
    "udp_delay_mean": "ms",
    "udp_delay_p50": "ms",
    "udp_delay_p95": "ms",
    "udp_delay_p99": "ms",
    "udp_delay_max": "ms",
    "object_s": "s",
    "object_p50_s": "s",
    "object_p95_s": "s",
    "object_within": "%",
    "page_s": "s",
    "page_p50_s": "s",
    "page_p95_s": "s",
    "objects": "",
    "pages": "",
    "web_failed": "objects",
    "web_unfinished": "objects",
    "syn_lost": "objects",
    "family_lost": "%",
    "hint_packets": "packets",
    "hint_drops": "packets",
}


@dataclass(frozen=True)
class Verdict:
    """One check in one case.

    status: "pass", "fail", "differs" (missed, as the file's ``differs`` explains), "shown" (no bound in this form)
    or "absent" (no such case).
    """

    check: Check
    case: dict[str, str] | None
    ours: Summary
    reference: Summary | None
    bound: tuple[float | None, float | None]
    why: str
    status: str


def _values(results: list[Result], case: dict[str, str], metric: str) -> dict[int, float]:
    return {one.seed: one.metrics.get(metric, math.nan) for one in results if one.case == case}


def check_values(check: Check, results: list[Result], case: dict[str, str]) -> list[float]:
    """The check's number for each run of a case; comparisons are made seed by seed, with runs that are there."""
    ours = _values(results, case, check.metric)
    if check.of is None and not check.metric_of:
        return list(ours.values())
    theirs = _values(results, {**case, **(check.of or {})}, check.metric_of or check.metric)
    made = []
    for seed, value in ours.items():
        if seed not in theirs:
            continue
        other = theirs[seed]
        if check.how == "difference":
            made.append(value - other)
        else:
            made.append(100 * value / other if other else math.nan)
    return made


def _bound(check: Check, mode: str) -> tuple[tuple[float | None, float | None], str]:
    if mode in ("short", "brief") and isinstance(check.short, Bound):
        return (check.short.min, check.short.max), check.short.why
    if mode in ("short", "brief") and check.short is False:
        return (None, None), check.why
    return (check.min, check.max), check.why


def _meets(value: float, bound: tuple[float | None, float | None]) -> bool:
    low, high = bound
    return not math.isnan(value) and (low is None or value >= low) and (high is None or value <= high)


def _status(check: Check, values: list[float], bound: tuple[float | None, float | None]) -> str:
    if bound == (None, None):
        return "shown"
    if not values or any(math.isnan(value) for value in values):
        return "fail"
    judged = values if check.each else [summarise(values).mean]
    if all(_meets(value, bound) for value in judged):
        return "pass"
    return "differs" if check.differs else "fail"


def judge(experiment: Experiment, results: ResultSet) -> list[Verdict]:
    """Every check in every case it speaks of. A number that is missing is a failure, never a pass."""
    cases = []
    for result in results.results:
        if result.case not in cases:
            cases.append(result.case)
    verdicts = []
    for check in experiment.checks:
        bound, why = _bound(check, results.mode)
        mine = [case for case in cases if matches(case, check.case)]
        if check.of is not None:
            mine = [case for case in mine if {**case, **check.of} != case]
        if not mine:
            verdicts.append(Verdict(check, None, summarise([]), None, bound, why, "absent"))
        for case in mine:
            values = check_values(check, results.results, case)
            reference = None
            as_reference = {**case, **experiment.head.reference}
            if experiment.head.reference and as_reference in cases:
                reference = summarise(check_values(check, results.results, as_reference))
            status = _status(check, values, bound)
            verdicts.append(Verdict(check, case, summarise(values), reference, bound, why, status))
    return verdicts


# ----------------------------------------------------------------------------------------- text


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
    """Mean and half-width of the 95 % interval, to as many decimals."""
    if summary is None or summary.n == 0:
        return "-"
    mean = number(summary.mean)
    if math.isnan(summary.half):
        return mean
    decimals = len(mean.partition(".")[2])
    return f"{mean} ±{summary.half:.{decimals}f}"


def bound_text(bound: tuple[float | None, float | None]) -> str:
    """A bound as a person writes it."""
    low, high = bound
    parts = [f">= {low:g}"] if low is not None else []
    return ", ".join(parts + ([f"<= {high:g}"] if high is not None else [])) or "-"


def metric_title(name: str, metric: Metric) -> str:
    """Column head: the label (or name) and the unit."""
    unit = UNITS[metric.kind]
    return (metric.label or name) + (f" [{unit}]" if unit else "")


def check_title(experiment: Experiment, check: Check, metrics: dict[str, Metric]) -> str:
    """What a check speaks of, in words."""
    text = metrics[check.metric].label or check.metric
    if check.of is not None or check.metric_of:
        other = case_name(check.of) if check.of else ""
        if check.metric_of:
            other = f"{metrics[check.metric_of].label or check.metric_of} {other}".rstrip()
        text += f" minus {other}" if check.how == "difference" else f" in % of {other}"
    return text + (" (each run)" if check.each else "")


def _console(width: int) -> tuple[Any, io.StringIO]:
    from rich.console import Console

    buffer = io.StringIO()
    return Console(file=buffer, width=width, color_system=None, force_terminal=False), buffer


def text(experiment: Experiment, results: ResultSet, width: int = 118) -> str:
    """The report of one experiment as plain text."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    console, buffer = _console(width)
    head = experiment.head
    metrics = experiment.setting(experiment.cases(results.mode)[0], results.mode).metrics
    console.print(f"{experiment.name}: {head.title or head.claim}", markup=False, highlight=False)
    console.print(f"source: {head.source}", markup=False, highlight=False)
    kernel = results.provenance["kernel"]
    seeds = sorted({one.seed for one in results.results})
    console.print(
        f"kernel {kernel.get('release', '?')}, modules {results.provenance['modules_version']}, "
        f"{len(seeds)} run{'s' if len(seeds) != 1 else ''} a case, {results.mode} form"
        + (f", set {results.sets}" if results.sets else ""),
        markup=False,
        highlight=False,
    )

    console.print("\nmean ± half of the 95 % interval", markup=False, highlight=False)
    dimensions = list(experiment.vary) or ["case"]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for dimension in dimensions:
        table.add_column(dimension, overflow="fold")
    for name, metric in metrics.items():
        table.add_column(escape(metric_title(name, metric)), justify="right", overflow="fold")
    seen: list[dict[str, str]] = []
    for result in results.results:
        if result.case in seen:
            continue
        seen.append(result.case)
        cells = [result.case.get(dimension, "base") for dimension in dimensions]
        for name in metrics:
            cells.append(interval(summarise(list(_values(results.results, result.case, name).values()))))
        table.add_row(*cells)
    console.print(table)

    verdicts = judge(experiment, results)
    if verdicts:
        console.print("against the paper and the bounds", markup=False, highlight=False)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        columns = ("what", "case", "paper", "ours", "reference", "bound", "verdict")
        for column in columns:
            table.add_column(
                column,
                justify="right" if column in ("paper", "ours", "reference", "bound") else "left",
                overflow="fold",
            )
        for one in verdicts:
            table.add_row(
                escape(check_title(experiment, one.check, metrics)),
                "not in this form" if one.case is None else case_name(one.case),
                number(one.check.paper),
                interval(one.ours),
                interval(one.reference),
                bound_text(one.bound),
                {"fail": "FAIL", "differs": "NOT REACHED", "absent": "-"}.get(one.status, one.status),
            )
        console.print(table)
    missed = {
        "FAIL": [one for one in verdicts if one.status == "fail"],
        "NOT REACHED": [one for one in verdicts if one.status == "differs"],
    }
    for word, those in missed.items():
        for one in those:
            console.print(
                f"{word}: {check_title(experiment, one.check, metrics)}, {case_name(one.case)}: {number(one.ours.mean)}"
                f" (runs from {number(one.ours.low)} to {number(one.ours.high)}), bound {bound_text(one.bound)}:"
                f" {one.why}" + (f". Why not: {one.check.differs}" if one.status == "differs" else ""),
                markup=False,
                highlight=False,
            )
    passed = sum(one.status == "pass" for one in verdicts)
    count = passed + sum(map(len, missed.values()))
    console.print(
        f"{passed} of {count} bounds met"
        + (f", {len(missed['NOT REACHED'])} not reached as explained" if missed["NOT REACHED"] else ""),
        markup=False,
        highlight=False,
    )
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def as_json(experiment: Experiment, results: ResultSet) -> dict[str, Any]:
    """The report for programs."""

    def summary(one: Summary | None) -> dict[str, Any] | None:
        return (
            None
            if one is None
            else {
                "n": one.n,
                "mean": one.mean,
                "half95": one.half,
                "min": one.low,
                "median": one.median,
                "max": one.high,
            }
        )

    metrics = experiment.setting(experiment.cases(results.mode)[0], results.mode).metrics
    seen: list[dict[str, str]] = []
    for result in results.results:
        if result.case not in seen:
            seen.append(result.case)
    return {
        "experiment": experiment.name,
        "mode": results.mode,
        "provenance": results.provenance,
        "cases": [
            {
                "case": case,
                "metrics": {
                    name: {
                        **summary(summarise(list(_values(results.results, case, name).values()))),
                        "unit": UNITS[metrics[name].kind],
                    }
                    for name in metrics
                },
            }
            for case in seen
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
                "differs": one.check.differs,
            }
            for one in judge(experiment, results)
        ],
    }


def failures(verdicts: list[Verdict]) -> list[Verdict]:
    """Those that failed."""
    return [one for one in verdicts if one.status == "fail"]
