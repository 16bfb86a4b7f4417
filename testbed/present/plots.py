# SPDX-License-Identifier: GPL-2.0
"""Plots of a result set, as PNG and SVG.

The colours are Okabe and Ito's, which remain distinct with any kind of colour vision; lines also differ in dash.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from ..judge.checks import metric_title
from ..measure import web
from ..measure.metrics import Run
from ..measure.series import rates
from ..measure.summary import summarise
from ..results.files import Result, ResultSet
from ..spec import traffic
from ..spec.experiment import Experiment, Plot, Setting, case_name, matches

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
#: rates are drawn in steps of this length, seconds, or of one sample if that is longer
RATE_STEP_S = 1.0


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "font.size": 9,
            "axes.grid": True,
            "grid.alpha": 0.3,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
            "svg.hashsalt": "lbe",
            # text remains text: files are a third of the size, and a search in the page finds it
            "svg.fonttype": "none",
            "lines.linewidth": 1.3,
            "axes.titlelocation": "left",
            "axes.titlesize": 10,
        }
    )
    return pyplot


def _save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a PNG and an SVG; without a date in them, so that equal results give equal files."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    figure.savefig(paths[0], dpi=130, metadata={"Software": None})
    figure.savefig(paths[1], metadata={"Date": None})
    return paths


def _style(index: int) -> dict[str, Any]:
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index % len(DASHES)]}


def _first(results: ResultSet, case: dict[str, str]) -> Result:
    return next(run for run in results.results if run.case == case)


def _cases(results: ResultSet) -> list[dict[str, str]]:
    seen: list[dict[str, str]] = []
    for run in results.results:
        if run.case not in seen:
            seen.append(run.case)
    return seen


def _queue_ms(result: Result, setting: Setting, queue: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rows = result.series.queue[result.series.queue["queue"] == queue]
    return rows["t_ns"] / 1e9, rows["backlog_bytes"] * 8 / (setting.topology.rate_mbit * 1e6) * 1e3


def time_plot(result: Result, setting: Setting, title: str, folder: Path, name: str) -> list[Path]:
    """Goodput, congestion window and queueing delay over time, of one run."""
    pyplot = _pyplot()
    flows = traffic.expand(setting.flows, result.seed)
    run = Run(result.series, setting, flows)
    duration = setting.head.duration_s
    step = max(RATE_STEP_S, setting.head.sample_ms / 1e3)
    figure, (top, middle, bottom) = pyplot.subplots(3, 1, sharex=True, figsize=(8, 7.5), height_ratios=(3, 2, 2))
    for index, group in enumerate(name for name, spec in setting.flows.items() if spec.count):
        ids = run.ids(group)
        each = [rates(result.series, flow, step, duration) for flow in ids]
        t, total = each[0][0], np.sum([mbit for _, mbit in each], axis=0)
        count = f" ({len(ids)} flows)" if len(ids) > 1 else ""
        cc = setting.flows[group].cc if setting.flows[group].proto == "tcp" else "UDP"
        top.plot(t, total, label=f"{group}: {cc}{count}", **_style(index))
        for order, flow in enumerate(ids[:4]):
            rows = result.series.sent(flow)
            if len(rows):
                middle.plot(rows["t_ns"] / 1e9, rows["cwnd_pkts"], alpha=1.0 if order == 0 else 0.4, **_style(index))
    capacity = setting.topology.tcp_capacity_mbit()
    top.axhline(capacity, color="#777777", linewidth=0.8)
    top.annotate(
        f"TCP's limit {capacity:.2f}",
        (0, capacity),
        xytext=(2, 2),
        textcoords="offset points",
        fontsize=7,
        color="#555555",
    )
    top.set_ylabel("goodput [Mbit/s]")
    top.set_ylim(0, capacity * 1.25)
    top.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=3)
    middle.set_ylabel("congestion window\n[packets]")
    middle.set_ylim(bottom=0)
    t, delay = _queue_ms(result, setting)
    bottom.plot(t, delay, color=COLOURS[6], linewidth=0.8)
    bottom.set_ylabel("queueing delay [ms]")
    bottom.set_ylim(bottom=0)
    bottom.set_xlabel("time [s]")
    bottom.set_xlim(0, duration)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    paths = _save(figure, folder, name)
    pyplot.close(figure)
    return paths


def panels_plot(experiment: Experiment, results: ResultSet, plot: Plot, folder: Path) -> list[Path]:
    """Goodput over time, with one panel below the other for each case."""
    pyplot = _pyplot()
    cases = [case for case in _cases(results) if matches(case, plot.case)]
    figure, axes = pyplot.subplots(
        len(cases), 1, sharex=True, sharey=True, squeeze=False, figsize=(8, 0.8 + 1.8 * len(cases))
    )
    for panel, case in zip(axes[:, 0], cases):
        result = _first(results, case)
        setting = experiment.setting(case, results.mode, results.sets)
        flows = traffic.expand(setting.flows, result.seed)
        run = Run(result.series, setting, flows)
        step = max(RATE_STEP_S, setting.head.sample_ms / 1e3)
        for index, group in enumerate(name for name, spec in setting.flows.items() if spec.count):
            each = [rates(result.series, flow, step, setting.head.duration_s) for flow in run.ids(group)]
            t, total = each[0][0], np.sum([mbit for _, mbit in each], axis=0)
            panel.plot(t, total, label=f"{group}: {setting.flows[group].cc}", **_style(index))
        panel.set_title(case_name(case), fontsize=9)
        panel.set_ylabel("Mbit/s")
        panel.set_ylim(0, setting.topology.tcp_capacity_mbit() * 1.15)
        panel.set_xlim(0, setting.head.duration_s)
        panel.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=3, fontsize=8)
    axes[-1, 0].set_xlabel("time [s]")
    figure.suptitle(plot.title or experiment.head.title, x=0.01, ha="left", fontsize=10)
    paths = _save(figure, folder, f"{experiment.name}-{plot.name}")
    pyplot.close(figure)
    return paths


def sweep_plot(experiment: Experiment, results: ResultSet, plot: Plot, folder: Path) -> list[Path]:
    """A metric over a sweep, a line for each combination of the other dimensions, with the paper's points."""
    pyplot = _pyplot()
    sweep = experiment.sweeps[plot.x]
    cases = [case for case in _cases(results) if matches(case, plot.case)]
    metrics = experiment.setting(cases[0], results.mode).metrics
    figure, axes = pyplot.subplots(
        len(plot.metric), 1, sharex=True, squeeze=False, figsize=(8, 3.2 * len(plot.metric) + 1)
    )
    for panel, name in zip(axes[:, 0], plot.metric):
        lines: dict[str, list[tuple[float, float, float]]] = {}
        for case in cases:
            rest = {key: value for key, value in case.items() if key != plot.x}
            summary = summarise([run.metrics.get(name, math.nan) for run in results.results if run.case == case])
            lines.setdefault(case_name(rest) if rest else name, []).append(
                (float(case[plot.x]), summary.mean, summary.half)
            )
        for index, (label, points) in enumerate(lines.items()):
            points.sort()
            x, y, half = (np.array(column) for column in zip(*points))
            panel.errorbar(
                x, y, yerr=np.nan_to_num(half), label=label, capsize=2, marker="o", markersize=3.5, **_style(index)
            )
        for index, (label, theirs) in enumerate(plot.paper.items()):
            panel.plot(
                *zip(*theirs),
                linestyle="none",
                marker="x^sdv"[index % 5],
                color="#555555",
                label=f"paper: {label}",
                markersize=5,
            )
        panel.set_ylabel(metric_title(name, metrics[name]))
        panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
        if sweep.log:
            panel.set_xscale("log")
    axes[0, 0].legend(fontsize=8)
    axes[-1, 0].set_xlabel(sweep.label or sweep.key)
    figure.suptitle(plot.title or experiment.head.title, x=0.01, ha="left", fontsize=10)
    paths = _save(figure, folder, f"{experiment.name}-{plot.name}")
    pyplot.close(figure)
    return paths


def bars_plot(experiment: Experiment, results: ResultSet, plot: Plot, folder: Path, spread: bool) -> list[Path]:
    """A metric per case: bars with intervals, or every run as a dot."""
    pyplot = _pyplot()
    cases = [case for case in _cases(results) if matches(case, plot.case)]
    metrics = experiment.setting(cases[0], results.mode).metrics
    figure, axes = pyplot.subplots(
        1, len(plot.metric), squeeze=False, sharey=True, figsize=(2.2 + 3.4 * len(plot.metric), 1.3 + 0.42 * len(cases))
    )
    rows = np.arange(len(cases))
    for index, (panel, name) in enumerate(zip(axes[0], plot.metric)):
        values = [[run.metrics.get(name, math.nan) for run in results.results if run.case == case] for case in cases]
        summaries = list(map(summarise, values))
        if spread:
            for row, dots in zip(rows, values):
                offsets = np.linspace(-0.25, 0.25, len(dots)) if len(dots) > 1 else np.zeros(1)
                panel.plot(dots, row + offsets, linestyle="none", marker="o", markersize=3, color=COLOURS[index])
        else:
            panel.barh(
                rows,
                [summary.mean for summary in summaries],
                xerr=[np.nan_to_num(summary.half) for summary in summaries],
                height=0.6,
                color=COLOURS[index % len(COLOURS)],
                capsize=3,
            )
            room = max((summary.mean for summary in summaries if not math.isnan(summary.mean)), default=1.0)
            for row, summary in zip(rows, summaries):
                if not math.isnan(summary.mean):
                    panel.annotate(
                        f"{summary.mean:.2f}",
                        (summary.mean + np.nan_to_num(summary.half), row),
                        xytext=(4, 0),
                        textcoords="offset points",
                        va="center",
                        fontsize=8,
                    )
            panel.set_xlim(0, room * 1.25 if room > 0 else 1)
        panel.set_xlabel(metric_title(name, metrics[name]))
        panel.set_yticks(rows, [case_name(case) for case in cases])
    axes[0, 0].invert_yaxis()
    figure.suptitle(plot.title or experiment.head.title, x=0.01, ha="left", fontsize=10)
    paths = _save(figure, folder, f"{experiment.name}-{plot.name}")
    pyplot.close(figure)
    return paths


def cdf_plot(experiment: Experiment, results: ResultSet, plot: Plot, folder: Path) -> list[Path]:
    """Distribution of the objects' times, a line for each case over all its runs."""
    pyplot = _pyplot()
    figure, (body, tail) = pyplot.subplots(1, 2, figsize=(9.5, 4.2))
    for index, case in enumerate(case for case in _cases(results) if matches(case, plot.case)):
        setting = experiment.setting(case, results.mode, results.sets)
        metric = setting.metrics[plot.metric[0]]
        took = []
        for result in (run for run in results.results if run.case == case):
            ids = Run(result.series, setting, traffic.expand(setting.flows, result.seed)).ids(metric.flow)
            took.append(web.Rows(result.series.web, ids, *setting.head.measure_s).object_s)
        seconds = np.sort(np.concatenate(took))
        share = np.arange(1, len(seconds) + 1) / max(1, len(seconds))
        for panel in (body, tail):
            panel.plot(seconds, share, label=case_name(case), **_style(index))
    for panel, (low, high), (bottom, top) in ((body, (0, 2), (0, 1)), (tail, (0, 8), (0.8, 1))):
        panel.set_xlim(low, high)
        panel.set_ylim(bottom, top)
        panel.set_xlabel("transmission time [s]")
    body.set_ylabel("share of objects")
    tail.legend(loc="lower right", fontsize=8)
    figure.suptitle(plot.title or experiment.head.title, x=0.01, ha="left", fontsize=10)
    paths = _save(figure, folder, f"{experiment.name}-{plot.name}")
    pyplot.close(figure)
    return paths


#: bin edges of the plot by size, bytes
SIZE_BINS = (300, 1000, 3000, 10000, 30000, 100000, 300000, 1000000)


def sizes_plot(experiment: Experiment, results: ResultSet, plot: Plot, folder: Path) -> list[Path]:
    """Mean time of web objects by their size, a line for each case over all its runs."""
    pyplot = _pyplot()
    figure, panel = pyplot.subplots(figsize=(8, 4.2))
    for index, case in enumerate(case for case in _cases(results) if matches(case, plot.case)):
        setting = experiment.setting(case, results.mode, results.sets)
        metric = setting.metrics[plot.metric[0]]
        rows = []
        for result in (run for run in results.results if run.case == case):
            ids = Run(result.series, setting, traffic.expand(setting.flows, result.seed)).ids(metric.flow)
            rows.append(web.Rows(result.series.web, ids, *setting.head.measure_s).complete)
        every = np.concatenate(rows)
        x, y = [], []
        for low, high in itertools.pairwise(SIZE_BINS):
            some = web.sized(every, low, high)
            if len(some):
                x.append(math.sqrt(low * high) / 1e3)
                y.append(float(some["dur_us"].mean()) / 1e6)
        panel.plot(x, y, label=case_name(case), marker="o", markersize=3.5, **_style(index))
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("size of the object [kB]")
    panel.set_ylabel("mean response time [s]")
    panel.legend(fontsize=8)
    figure.suptitle(plot.title or experiment.head.title, x=0.01, ha="left", fontsize=10)
    paths = _save(figure, folder, f"{experiment.name}-{plot.name}")
    pyplot.close(figure)
    return paths


def _file_name(case: dict[str, str]) -> str:
    return "-".join("".join(c if c.isalnum() or c in "._" else "_" for c in value) for value in case.values())


def draw(experiment: Experiment, results: ResultSet, folder: Path) -> list[Path]:
    """Draw all plots of an experiment, except those whose cases were not run."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    plots = experiment.plots or [Plot(name="time")]
    for plot in plots:
        cases = [case for case in _cases(results) if matches(case, plot.case)]
        if not cases:
            continue
        if plot.kind == "sweep":
            paths += sweep_plot(experiment, results, plot, folder)
        elif plot.kind == "panels":
            paths += panels_plot(experiment, results, plot, folder)
        elif plot.kind == "sizes":
            paths += sizes_plot(experiment, results, plot, folder)
        elif plot.kind == "cdf":
            paths += cdf_plot(experiment, results, plot, folder)
        elif plot.kind in ("bars", "spread"):
            paths += bars_plot(experiment, results, plot, folder, plot.kind == "spread")
        else:
            for case in cases:
                result = _first(results, case)
                setting = experiment.setting(case, results.mode, results.sets)
                title = (
                    f"{plot.title or experiment.head.title or experiment.name}: {case_name(case)}, seed {result.seed}"
                )
                suffix = f"-{_file_name(case)}" if case else ""
                paths += time_plot(result, setting, title, folder, f"{experiment.name}-{plot.name}{suffix}")
    return paths
