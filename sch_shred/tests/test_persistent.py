# SPDX-License-Identifier: GPL-2.0
"""Persistent connections beside greedy flows, under shred and under today's queues.

    python3 -m sch_shred.tests.test_persistent [SEEDS]

prints the table of Documentation/sch_shred.md; the test has one seed of it.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from sch_shred.tests.seeds import print_table
from testbed.backends.uml import Uml
from testbed.measure.series import Series
from testbed.run import runner
from testbed.spec.experiment import parse

pytestmark = pytest.mark.scenario

USERS, ANSWER_BYTES, EVERY_S, FIRST_S, END_S = 80, 20_000, 2.0, 6.0, 36.0
SAMPLE_S = 0.02
FTP = 10

#: 80 connections that are opened once; each carries an answer of 20 kB every 2 s (6.4 Mbit/s in all), which
#: its sender has within 10 ms. The rest is the set-up of testbed/experiments/sch_shred/shred_today.toml.
EXPERIMENT = f"""
[experiment]
claim = "answers over persistent connections"
source = "made for this test"
duration_s = {END_S + 4}
measure_s = [{FIRST_S}, {END_S}]
runs = 1
sample_ms = {SAMPLE_S * 1000:g}
modules = ["sch_shred", "shred_hint"]
[topology]
framing = "ip"
delay_ms = 58
access_delay_ms = 1
queue = {{{{ kind = "tc", bytes = 218750, tc = "{{queue}}" }}}}
[flow.ftp]
cc = "cubic"
count = {FTP}
family = 6
start_s = 0.5
start_spread_s = 3
options = {{{{ maxseg = 940 }}}}
[flow.user]
kind = "square"
cc = "cubic"
count = {USERS}
rate_mbit = {ANSWER_BYTES * 8 / 0.01 / 1e6}
period_s = {EVERY_S}
duty = {0.01 / EVERY_S}
start_s = {FIRST_S - 2 * EVERY_S}
stagger_s = {EVERY_S / USERS}
stop_s = {END_S + 2}
options = {{{{ maxseg = 960 }}}}
[sysctl.snd]
"net.shred_hint.mode" = "dscp"
"net.shred_hint.host" = "1"
[metric.user]
kind = "goodput"
flow = "user"
"""

QUEUES = {"shred": "shred bandwidth 10mbit", "fq_codel": "fq_codel", "cake": "cake flows besteffort"}


def answer_times(series: Series) -> np.ndarray:
    """Seconds from an answer's time to its last byte at the receiver, for each answer in the window."""
    times = []
    for user in range(USERS):
        t, got = series.received(FTP + 1 + user)
        begin_s = FIRST_S - 2 * EVERY_S + user * EVERY_S / USERS
        for number in range(2, int((END_S - FIRST_S) / EVERY_S)):
            done = np.searchsorted(got, (number + 1) * ANSWER_BYTES)
            end_s = t[done] if done < len(t) else END_S + 4
            times.append(end_s - begin_s - number * EVERY_S)
    return np.array(times)


def measure(backend: Uml, queue: str, seed: int) -> tuple[float, float, float]:
    """Mean and 95th percentile of an answer's time in seconds, FTP in Mbit/s; one run."""
    experiment = parse(EXPERIMENT.format(queue=queue), Path("persistent.toml"))
    (job,) = runner.plan(experiment, runner.Options(runs=1, seed=seed))
    series = runner.run_one(job, backend).series
    times = answer_times(series)
    ftp = sum(np.interp([FIRST_S, END_S], *series.received(flow)) @ [-1, 1] for flow in range(1, FTP + 1))
    return times.mean(), float(np.quantile(times, 0.95)), ftp * 8 / (END_S - FIRST_S) / 1e6


@pytest.fixture(scope="module")
def backend() -> Uml:
    made = Uml()
    made.prepare(["sch_shred", "shred_hint"])
    return made


@pytest.fixture(scope="module")
def measured(backend: Uml) -> dict[str, tuple[float, float, float]]:
    """By queue, of one seed."""
    return {name: measure(backend, queue, seed=1) for name, queue in QUEUES.items()}


@pytest.mark.parametrize("other", ["fq_codel", "cake"])
def test_answers_on_persistent_connections(measured: dict[str, tuple[float, float, float]], other: str) -> None:
    """Each answer is a short flow of its own, since the connection is idle for more than 1.5 s before it."""
    mean_s, p95_s, ftp_mbit = measured["shred"]
    assert mean_s <= 0.6 * measured[other][0] and p95_s <= 0.6 * measured[other][1], measured
    assert ftp_mbit >= 0.8 * measured[other][2], measured


def main(seeds: int) -> None:
    """Measure and print."""
    made = Uml()
    made.prepare(["sch_shred", "shred_hint"])
    heads = ("queue", "an answer, s", "its 95th percentile, s", "ten FTP flows, Mbit/s")
    print_table(heads, ((name, partial(measure, made, queue)) for name, queue in QUEUES.items()), seeds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
