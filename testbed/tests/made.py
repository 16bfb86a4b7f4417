# SPDX-License-Identifier: GPL-2.0
"""Made-up runs for the harness's tests: series with known rates, and a backend without a guest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from testbed.backends.backend import RunReport, Tools
from testbed.base.progress import Report, silent
from testbed.measure.series import Series
from testbed.results.files import Record, Result, ResultSet
from testbed.spec.experiment import Experiment, parse
from testbed.spec.records import QUEUE, RECV, SEND

TWO_FLOWS = """
[experiment]
title = "two flows"
claim = "one yields"
source = "made up, Table 9"
duration_s = 20
measure_s = [10, 20]
runs = 2
reference = { background = "strict" }
[topology]
rate_mbit = 10
queue = { kind = "pfifo", packets = 50 }
[flow.be]
[flow.bg]
cc = "reno"
low = true
[vary.background]
alone = { "flow.bg.count" = 0 }
polite = {}
strict = { "topology.queue" = { kind = "prio", packets = 50 } }
[metric.be]
kind = "goodput"
flow = "be"
label = "best effort"
[metric.bg]
kind = "goodput"
flow = "bg"
[[check]]
metric = "be"
case = { background = "polite" }
of = { background = "alone" }
min = 95
paper = 96.8
paper_at = "Table 9"
why = "made up"
[[check]]
metric = "bg"
case = { background = "polite" }
paper = 2.7
paper_at = "Table 9"
"""


def experiment(text: str = TWO_FLOWS, name: str = "made") -> Experiment:
    """Parse an experiment from a text."""
    return parse(text, Path(f"{name}.toml"))


def series(
    rates_mbit: dict[int, float],
    duration_s: float = 20.0,
    step_s: float = 0.1,
    cwnd: int = 10,
    backlog_bytes: int = 1250,
) -> Series:
    """Make series of flows that each get exactly their rate and of a queue of constant length with a drop a second."""
    steps = np.round(np.arange(0, duration_s + step_s / 2, step_s), 6)
    recv, send = [], []
    for flow, mbit in rates_mbit.items():
        part = np.zeros(len(steps), dtype=RECV)
        part["t_ns"], part["flow"], part["bytes"] = np.round(steps * 1e9), flow, np.round(steps * mbit * 1e6 / 8)
        recv.append(part)
        one = np.zeros(len(steps), dtype=SEND)
        one["t_ns"], one["flow"], one["cwnd_pkts"], one["srtt_us"] = np.round(steps * 1e9), flow, cwnd, 50000
        one["retrans_pkts"] = np.round(steps * 2)
        send.append(one)
    queue = np.zeros(len(steps), dtype=QUEUE)
    queue["t_ns"], queue["queue"], queue["backlog_bytes"] = np.round(steps * 1e9), 1, backlog_bytes
    queue["drops"], queue["sent_bytes"] = np.round(steps), np.round(steps * 1e6)
    return Series(np.concatenate(send), np.concatenate(recv), queue, [(0.0, 1, "start", "conn=0")])


def result_set(one: Experiment, values: dict[str, list[dict[str, float]]], mode: str = "default") -> ResultSet:
    """Make results with given metrics. ``values``: variant of the only dimension -> a table of metrics a seed."""
    dimension = next(iter(one.vary))
    made = [
        Result({dimension: variant}, seed, metrics, {}, series({1: 9.0, 2: 0.4}))
        for variant, runs in values.items()
        for seed, metrics in enumerate(runs, start=1)
    ]
    provenance = {
        "command": "test",
        "kernel": {"release": "6.12.0"},
        "modules_version": "v0",
        "testbed": "v0",
        "backend": "none",
    }
    cases = [{dimension: variant} for variant in values]
    seeds = list(range(1, max(map(len, values.values())) + 1))
    return ResultSet(one.name, mode, TWO_FLOWS, {}, provenance, made, cases, seeds)


class PretendBackend:
    """Writes the results of a good run without a guest. ``spoil``: called with the folder, may damage them."""

    name = "pretend"
    at_once = None

    def __init__(
        self, agent: Path, spoil: Callable[[Path], object] | None = None, rates: dict[int, float] | None = None
    ) -> None:
        self.agent, self.spoil, self.rates, self.ran = agent, spoil, rates or {1: 9.0, 2: 0.4}, 0

    def prepare(self, modules: Iterable[str], report: Report = silent) -> None:
        """Build nothing."""

    def facts(self) -> dict[str, str]:
        """Return the facts of a kernel that does not exist."""
        return {"release": "6.12.0"}

    def tools(self) -> Tools:
        """Return an agent that is never run."""
        return Tools(self.agent, {}, "v0")

    def key(self) -> str:
        """Return a constant key."""
        return "pretend"

    def run(
        self, job: Path, out: Path, *, seed: int, mem_mb: int, virtual_limit_s: float, wall_limit_s: float
    ) -> RunReport:
        """Write the results of a good run, then let the test damage them."""
        self.ran += 1
        plans = {path.stem: path.read_text() for path in job.glob("*.plan")}
        made = series(
            {
                int(line.split("flow=")[1].split()[0]): self.rates.get(int(line.split("flow=")[1].split()[0]), 1.0)
                for text in plans.values()
                for line in text.splitlines()
                if line.startswith("sink")
            }
        )
        for node, text in plans.items():
            for kind, rows in (
                ("send", made.send if node == "snd" else made.send[:0]),
                ("recv", made.recv if node == "rcv" else made.recv[:0]),
                ("queue", made.queue if node == "rtr" else made.queue[:0]),
            ):
                rows.tofile(out / f"{node}.{kind}")
            (out / f"{node}.events").write_text("5000000 1 start conn=0\n" if "flow " in text else "")
        for path in job.glob("*.sysctl"):
            if path.stem != "host":
                lines = [line.replace("=", " = ", 1) for line in path.read_text().splitlines()]
                (out / path.name).write_text("\n".join(lines) + "\n")
                (out / f"{path.stem}.qdisc").write_text(json.dumps([{"kind": "tbf"}]))
                (out / f"{path.stem}.counters").write_text("Tcp: InSegs OutSegs\nTcp: 3 0\n")
        (out / "uname").write_text("Linux 6.12.0\n")
        (out / "modules").write_text("")
        if self.spoil:
            self.spoil(out)
        return RunReport(0.1, 30.0)


__all__ = ["TWO_FLOWS", "PretendBackend", "Record", "experiment", "result_set", "series"]
