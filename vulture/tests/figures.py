# SPDX-License-Identifier: GPL-2.0
"""The paper's figures that no rate shows: what a receiver sees of the path, and of the sender's window.

    python3 -m vulture.tests.figures [RUNS [FOLDER]]

Runs the experiments vulture_piv (Figures 3 to 8) and vulture_cwnd (Figures 11 to 13) with the module's tracepoint
on, RUNS seeds a case (default 3), and writes vulture_figures.json and two pictures into FOLDER (default results/).
Exit status 1 if one of the paper's findings does not show.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tempfile
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from testbed import runner
from testbed.backend import Uml
from testbed.errors import LbeError
from testbed.experiment import load
from testbed.job import ZERO_S, Job

JIFFY_US = 4000
#: a round of fewer variations has shares like 0, 50 and 100 %, whatever the path does
LEAST_PIVS = 8
SPARE_MBIT = 7
TRACE = "/sys/kernel/tracing"
ROUND = re.compile(
    r" (?P<t>\d+\.\d+): vulture_round: .*pivs=(?P<pivs>\d+) positive=(?P<positive>\d+) sum_us=(?P<sum_us>-?\d+) .*"
    r"rwnd_bytes=(?P<rwnd>\d+) .*cwnd_bytes=(?P<cwnd>\d+) "
)


def traced(job: Job, backend: Uml) -> tuple[list[dict[str, float]], runner.Record]:
    """(rounds, record) of one run; times of rounds on the experiment's clock."""
    start = f"echo 16384 > {TRACE}/buffer_size_kb\necho 1 > {TRACE}/events/vulture/vulture_round/enable\n"
    job.files["events.sh"] = job.files["events.sh"].replace("set -eu\n", f"set -eu\n{start}", 1)
    job.files["job.sh"] = job.files["job.sh"].replace("set -eu\n", "set -eu\ntrap 'cp "
                                                      f"{TRACE}/trace /tmp/out/trace' EXIT\n", 1)
    with tempfile.TemporaryDirectory(prefix="lbe-figures.") as folder:
        record = runner.run_one(job, backend, Path(folder))
        text = (Path(folder) / "out" / "trace").read_text(encoding="ascii")
    rounds = [{name: float(value) for name, value in match.groupdict().items()} for match in ROUND.finditer(text)]
    if not rounds:
        raise LbeError(f"{job.experiment}: the tracepoint vulture_round told nothing")
    for one in rounds:
        one["t"] -= ZERO_S
    return rounds, record


def plan(name: str, runs: int) -> list[Job]:
    """The experiment's jobs, with its own cases."""
    return runner.plan(load(name), runner.Options(runs=runs))


def variations(backend: Uml, runs: int) -> dict[str, dict[str, float]]:
    """Figures 3 to 8: rate -> largest share of positive variations (%) and largest sum (jiffies) of a round.

    A rate of which no run has a round of LEAST_PIVS (a packet now and then) is left out.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for job in plan("vulture_piv", runs):
        rounds, _ = traced(job, backend)
        low, high = job.setting.head.measure_s
        rounds = [one for one in rounds if low <= one["t"] <= high and one["pivs"] >= LEAST_PIVS]
        if not rounds:
            continue
        here = found.setdefault(job.case["rate"], {"share": [], "mean_share": [], "sum": []})
        here["share"].append(max(100 * one["positive"] / one["pivs"] for one in rounds))
        here["mean_share"].append(statistics.mean(100 * one["positive"] / one["pivs"] for one in rounds))
        here["sum"].append(max(one["sum_us"] for one in rounds) / JIFFY_US)
    return {rate: {name: statistics.mean(values) for name, values in one.items()} for rate, one in found.items()}


def windows(backend: Uml, runs: int, axes: list) -> dict[str, dict[str, float]]:
    """Figures 11 to 13: case -> the estimate over the sender's own window, % (mean over the observed times)."""
    found: dict[str, list[tuple[float, float]]] = {}
    for job in plan("vulture_cwnd", runs):
        rounds, record = traced(job, backend)
        send = record.series.send[record.series.send["flow"] == next(f.id for f in job.flows if f.group == "download")]
        t = np.array([one["t"] for one in rounds])
        estimate = np.array([one["cwnd"] for one in rounds])
        own = np.interp(t, send["t_ns"] / 1e9, (send["cwnd_pkts"] * send["mss_bytes"]).astype(float))
        observed = ((t > 10) & (t < 45)) | ((t > 145) & (t < 178))
        control = (t > 50) & (t < 134)
        wanted = np.array([one["rwnd"] for one in rounds])
        found.setdefault(job.case["sender"], []).append(
            (100 * float(np.mean(estimate[observed] / own[observed])),
             100 * float(np.mean(estimate[control] / wanted[control])))
        )
        if job.seed == 1:
            axis = axes.pop(0)
            axis.plot(t, own / 1448, label="sender's own", linewidth=0.8)
            axis.plot(t, estimate / 1448, label="estimate", linewidth=0.8)
            axis.plot(t[control], wanted[control] / 1448, label="window wanted", linewidth=0.8)
            axis.set_title(job.case["sender"], fontsize=9)
            axis.set_ylabel("segments")
            axis.legend(fontsize=7)
    return {case: {"of_own": statistics.mean(a for a, _ in values), "of_wanted": statistics.mean(b for _, b in values)}
            for case, values in found.items()}


def verdicts(piv: dict[str, dict[str, float]], cwnd: dict[str, dict[str, float]]) -> list[tuple[str, bool]]:
    """The paper's findings, and whether they show."""
    under = [one for rate, one in piv.items() if float(rate) <= SPARE_MBIT - 1]
    over = [one for rate, one in piv.items() if float(rate) > SPARE_MBIT]
    return [
        ("Figure 5: the share is larger above the spare rate than anywhere below",
         min(one["share"] for one in over) > max(one["share"] for one in under)),
        ("Figure 5: at most half are positive below the spare rate", max(one["share"] for one in under) <= 50),
        ("Figure 8: the sum is larger above the spare rate than anywhere below",
         min(one["sum"] for one in over) > max(one["sum"] for one in under)),
        *((f"Figures 11, 12: the estimate follows {case}, at most a little above it (70 to 105 %)",
           70 <= one["of_own"] <= 105) for case, one in cwnd.items() if case != "competing"),
    ]


def main(runs: str = "3", folder: str = "results") -> int:
    """Run, print, draw."""
    backend = Uml("6.12")
    backend.prepare(["vulture"])
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    piv = variations(backend, int(runs))
    figure, axes = plt.subplots(3, 1, figsize=(7, 8), layout="constrained")
    cwnd = windows(backend, int(runs), list(axes))
    axes[-1].set_xlabel("s")
    figure.savefig(out / "vulture_cwnd.png", dpi=110)
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    units = {"share": "largest share of positive, %", "sum": "largest sum, jiffies"}
    for axis, (name, unit) in zip(axes, units.items(), strict=True):
        axis.plot([float(rate) for rate in piv], [one[name] for one in piv.values()], marker="o")
        axis.axvline(SPARE_MBIT, linestyle=":")
        axis.set_xlabel("sending rate, Mbit/s (7 are spare)")
        axis.set_ylabel(unit)
    figure.savefig(out / "vulture_piv.png", dpi=110)
    said = verdicts(piv, cwnd)
    (out / "vulture_figures.json").write_text(json.dumps(
        {"kernel": backend.build.release, "modules": backend.tools().modules_version, "runs": int(runs), "piv": piv,
         "cwnd": cwnd, "verdicts": {text: "pass" if good else "FAIL" for text, good in said}}, indent=1) + "\n")
    print(f"kernel {backend.build.release}, modules {backend.tools().modules_version}, {runs} runs a case\n")
    print(f"{'Mbit/s':>7}{'largest share, %':>18}{'mean share, %':>15}{'largest sum, jiffies':>22}")
    for rate in load("vulture_piv").vary["rate"]:
        if rate not in piv:
            print(f"{rate:>7}{f'no round has {LEAST_PIVS} variations':>55}")
            continue
        one = piv[rate]
        print(f"{rate:>7}{one['share']:18.0f}{one['mean_share']:15.0f}{one['sum']:22.0f}")
    print(f"\n{'sender':>10}{'estimate / own window, %':>27}{'estimate / window wanted, %':>30}")
    for case, one in cwnd.items():
        print(f"{case:>10}{one['of_own']:27.0f}{one['of_wanted']:30.0f}")
    print()
    for text, good in said:
        print(f"{'pass' if good else 'FAIL'}  {text}")
    return 0 if all(good for _, good in said) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except LbeError as error:
        print(f"figures: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
