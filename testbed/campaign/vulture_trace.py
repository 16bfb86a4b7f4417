# SPDX-License-Identifier: GPL-2.0
"""Figures of the paper on vulture's internal estimates: what the receiver measures of the path and the sender's window.

    python3 -m testbed.campaign.vulture_trace [RUNS [FOLDER]]

Runs the experiments vulture_piv (Figures 3 to 8) and vulture_cwnd (Figures 11 to 13) with the module's tracepoint
enabled, RUNS seeds for each case (default 5; cached runs are reused). Writes vulture_figures.json, which the evaluation
reads like a digest, and two pictures to FOLDER (default results/). `make report` does the same.
Exit status 1 if one of the paper's findings is not reproduced.
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from ..backends.backend import Backend
from ..backends.uml import Uml
from ..base.errors import LbeError, exit_with
from ..measure.summary import summarise
from ..results import digest
from ..results import files as results
from ..run import collect, identity, runner
from ..run.job import ZERO_S, Job
from ..spec.experiment import load, matches

NAME = "vulture_figures"
PIV, CWND = "vulture_piv", "vulture_cwnd"
#: files that affect the numbers, besides the kernel and the module
FILES = [
    f"testbed/experiments/vulture/{PIV}.toml",
    f"testbed/experiments/vulture/{CWND}.toml",
    "testbed/campaign/vulture_trace.py",
]
RUNS = 5
JIFFY_US = 4000
#: begin of background mode in vulture_cwnd, s
BACKGROUND_S = 45
#: a round with fewer variations is not used: its share can only be a value such as 0, 50 or 100 %
LEAST_PIVS = 8
SPARE_MBIT = 7
TRACE = "/sys/kernel/tracing"
ROUND = re.compile(
    r" (?P<t>\d+\.\d+): vulture_round: .*pivs=(?P<pivs>\d+) positive=(?P<positive>\d+) sum_us=(?P<sum_us>-?\d+) .*"
    r"rwnd_bytes=(?P<rwnd>\d+) .*cwnd_bytes=(?P<cwnd>\d+) "
)
Rounds = list[dict[str, float]]


def traced(job: Job, backend: Backend, run: bool, reuse: bool) -> tuple[Rounds, results.Record] | None:
    """(rounds, record) of one run, with times in experiment time; None if it is not cached and ``run`` is False."""
    start = f"echo 16384 > {TRACE}/buffer_size_kb\necho 1 > {TRACE}/events/vulture/vulture_round/enable\n"
    job.files["events.sh"] = job.files["events.sh"].replace("set -eu\n", f"set -eu\n{start}", 1)
    job.files["job.sh"] = job.files["job.sh"].replace(
        "set -eu\n", f"set -eu\ntrap 'cp {TRACE}/trace /tmp/out/trace' EXIT\n", 1
    )
    key = runner.run_key(job, backend)
    record = runner.load_cached(key) if reuse else None
    if record is None or "rounds" not in record.facts:
        if not run:
            return None
        with tempfile.TemporaryDirectory(prefix="lbe-figures.") as folder:
            record = runner.run_one(job, backend, Path(folder))
            text = (Path(folder) / "out" / "trace").read_text(encoding="ascii")
        rounds = [{name: float(value) for name, value in match.groupdict().items()} for match in ROUND.finditer(text)]
        if not rounds:
            raise LbeError(f"{job.experiment}: the tracepoint vulture_round told nothing")
        record.facts["rounds"] = rounds
        runner.store(key, record)
    return [{**one, "t": one["t"] - ZERO_S} for one in record.facts["rounds"]], record


def variations(job: Job, rounds: Rounds) -> dict[str, float]:
    """Largest and mean share of positive variations (%), largest sum (jiffies) of one run; NaN without a valid round.

    If no run at a rate has a round of LEAST_PIVS variations, its packets are too rare.
    """
    low, high = job.setting.head.measure_s
    whole = [one for one in rounds if low <= one["t"] <= high and one["pivs"] >= LEAST_PIVS]
    shares = [100 * one["positive"] / one["pivs"] for one in whole]
    return {
        "share": max(shares, default=math.nan),
        "mean_share": float(np.mean(shares)) if shares else math.nan,
        "sum": max((one["sum_us"] / JIFFY_US for one in whole), default=math.nan),
    }


def windows(job: Job, rounds: Rounds, record: results.Record, axis: Any = None) -> dict[str, float]:
    """Means of one run: vulture's estimate in percent of the sender's cwnd while vulture only observes, and in percent
    of the window that it wants while it controls; and the first window of background mode in percent of the estimate
    before it."""
    send = record.series.send[record.series.send["flow"] == next(f.id for f in job.flows if f.group == "download")]
    t = np.array([one["t"] for one in rounds])
    estimate = np.array([one["cwnd"] for one in rounds])
    own = np.interp(t, send["t_ns"] / 1e9, (send["cwnd_pkts"] * send["mss_bytes"]).astype(float))
    observed = ((t > 10) & (t < 45)) | ((t > 145) & (t < 178))
    control = (t > 50) & (t < 134)
    wanted = np.array([one["rwnd"] for one in rounds])
    begin = np.searchsorted(t, BACKGROUND_S)
    if axis is not None:
        axis.plot(t, own / 1448, label="sender's own", linewidth=0.8)
        axis.plot(t, estimate / 1448, label="estimate", linewidth=0.8)
        axis.plot(t[control], wanted[control] / 1448, label="window wanted", linewidth=0.8)
        axis.set_title(job.case["sender"], fontsize=9)
        axis.set_ylabel("segments")
        axis.legend(fontsize=7)
    return {
        "of_own": 100 * float(np.mean(estimate[observed] / own[observed])),
        "of_wanted": 100 * float(np.mean(estimate[control] / wanted[control])),
        "first": 100 * float(wanted[begin] / estimate[begin - 1]),
    }


def above_below(cases: list[dict[str, Any]], metric: str, index: int) -> float:
    """Smallest value above the spare rate minus the largest below it, of one seed; positive if as in the paper."""
    by_rate = {float(one["case"]["rate"]): one["metrics"][metric][index] for one in cases}
    over = [value for rate, value in by_rate.items() if rate > SPARE_MBIT and value is not None]
    under = [value for rate, value in by_rate.items() if rate < SPARE_MBIT and value is not None]
    return min(over) - max(under) if over and under else math.nan


def document(
    backend: Backend, runs: int = RUNS, run: bool = True, reuse: bool = True, axes: list[Any] | None = None
) -> dict[str, Any] | None:
    """All numbers as a digest; None if a run is not cached and ``run`` is False. axes: for plots, one per sender."""
    cases: list[dict[str, Any]] = []
    facts: list[dict[str, Any]] = []
    for name in (PIV, CWND):
        for job in runner.plan(load(name), runner.Options(runs=runs)):
            got = traced(job, backend, run, reuse)
            if got is None:
                return None
            first = not cases or cases[-1]["case"] != {"of": name, **job.case}
            if first:
                empty: dict[str, list[Any]] = {"seeds": [], "jobs": [], "queue": []}
                cases.append({"case": {"of": name, **job.case}, **empty, "metrics": {}})
            if name == PIV:
                values = variations(job, got[0])
            else:
                values = windows(job, *got, axes.pop(0) if axes and first else None)
            cases[-1]["seeds"].append(job.seed)
            cases[-1]["jobs"].append(identity.of_job(job))
            facts.append(got[1].facts)
            for metric, value in values.items():
                cases[-1]["metrics"].setdefault(metric, []).append(None if math.isnan(value) else round(value, 3))
    rates = [one for one in cases if one["case"]["of"] == PIV]
    seeds = rates[0]["seeds"]
    order = {metric: [above_below(rates, metric, index) for index in range(len(seeds))] for metric in ("share", "sum")}
    together = {"case": {"of": PIV, "rate": "above less below"}, "seeds": seeds, "jobs": [], "queue": []}
    cases.append(together | {"metrics": order})
    made: dict[str, Any] = results.plain(
        digest.of_files(
            NAME,
            (FILES, identity.hash_of_files(FILES)),
            identity.of_backend(backend, ["vulture"]),
            {
                "command": f"python3 -m testbed.campaign.vulture_trace {runs}",
                "kernel": backend.facts(),
                "backend": backend.name,
                "host": collect.host_facts(),
            },
            digest.ran(facts),
            seeds,
        )
        | {"cases": cases}
    )
    return made


def mean(made: dict[str, Any], metric: str, **case: str) -> float:
    """A metric's mean over the seeds of a case."""
    found = [run.metrics[metric] for run in digest.result_set(made).results if matches(run.case, case)]
    return summarise(found).mean


def verdicts(made: dict[str, Any]) -> list[tuple[str, bool]]:
    """The paper's findings, and whether they are reproduced."""
    under = [mean(made, "share", of=PIV, rate=rate) for rate in load(PIV).vary["rate"] if float(rate) <= SPARE_MBIT]
    return [
        (
            "Figure 5: the share is larger above the spare rate than anywhere below",
            mean(made, "share", rate="above less below") > 0,
        ),
        ("Figure 5: at most half are positive up to the spare rate", np.nanmax(under) <= 50),
        (
            "Figure 8: the sum is larger above the spare rate than anywhere below",
            mean(made, "sum", rate="above less below") > 0,
        ),
        *(
            (
                f"Figures 11, 12: the estimate follows {sender}'s window within a tenth",
                abs(mean(made, "of_own", of=CWND, sender=sender) - 100) <= 10,
            )
            for sender in ("cubic", "reno")
        ),
        (
            "Figure 13: the first window of background mode is the estimate, within 2 %",
            abs(mean(made, "first", of=CWND, sender="competing") - 100) <= 2,
        ),
    ]


def main(runs: str = str(RUNS), folder: str = "results") -> int:
    """Entry point: run, print, draw."""
    if not runs.isdecimal():
        print("usage: python3 -m testbed.campaign.vulture_trace [RUNS [FOLDER]]", file=sys.stderr)
        return 2
    backend = Uml("6.12")
    backend.prepare(["vulture"])
    out = Path(folder)
    figure, axes = plt.subplots(3, 1, figsize=(7, 8), layout="constrained")
    made = document(backend, int(runs), axes=list(axes))
    assert made is not None
    print(f"{digest.save(made, out)}: kernel {backend.build.release}, {runs} runs a case\n")
    axes[-1].set_xlabel("s")
    figure.savefig(out / "vulture_cwnd.png", dpi=110)
    rates = list(load(PIV).vary["rate"])
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    units = {"share": "largest share of positive, %", "sum": "largest sum, jiffies"}
    for axis, (name, unit) in zip(axes, units.items(), strict=True):
        axis.plot([float(rate) for rate in rates], [mean(made, name, of=PIV, rate=rate) for rate in rates], marker="o")
        axis.axvline(SPARE_MBIT, linestyle=":")
        axis.set_xlabel("sending rate, Mbit/s (7 are spare)")
        axis.set_ylabel(unit)
    figure.savefig(out / "vulture_piv.png", dpi=110)
    print(f"{'Mbit/s':>7}{'largest share, %':>18}{'mean share, %':>15}{'largest sum, jiffies':>22}")
    for rate in rates:
        share, average, largest = (mean(made, name, of=PIV, rate=rate) for name in ("share", "mean_share", "sum"))
        print(f"{rate:>7}{share:18.0f}{average:15.0f}{largest:22.0f}")
    heads = ("estimate / own window, %", "estimate / window wanted, %", "first window / estimate, %")
    print(f"\n{'sender':>10}" + "".join(f"{head:>30}" for head in heads))
    for sender in load(CWND).vary["sender"]:
        shown = (mean(made, name, of=CWND, sender=sender) for name in ("of_own", "of_wanted", "first"))
        print(f"{sender:>10}" + "".join(f"{value:30.0f}" for value in shown))
    print()
    said = verdicts(made)
    for text, good in said:
        print(f"{'pass' if good else 'FAIL'}  {text}")
    return 0 if all(good for _, good in said) else 1


if __name__ == "__main__":
    exit_with("figures", lambda: main(*sys.argv[1:]))
