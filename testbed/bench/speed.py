# SPDX-License-Identifier: GPL-2.0
"""Speed of the testbed: simulated seconds per second of wall time, including boot and read-back.

    python3 -m testbed speed [--kernel SERIES] [--rounds N]

Three cases on each kernel, one machine at a time. The fastest round counts, since other load can only slow a run.
Then the same flows in ns-3, if its package is available (testbed/bench/ns3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..backends.uml import Uml
from ..base.errors import LbeError
from ..base.progress import Report, silent
from ..measure.metrics import Run
from ..run import job as jobs
from ..run.runner import run_one
from ..spec.experiment import parse
from . import ns3

SERIES = ("6.1", "6.12", "7.2")
#: the kernel for which the aims are meant, the default one
AIMED = "6.12"
#: seed of all runs
SEED = 1

TWO = """
[experiment]
claim = "two greedy flows"
source = "speed"
duration_s = 120
measure_s = [20, 120]
[flow.one]
[flow.two]
start_s = 5
[metric.flows]
kind = "goodput"
flow = "one+two"
"""
MANY = TWO.replace("[flow.one]", "[flow.one]\ncount = 63").replace("two greedy", "64 greedy")
# 170 s of 116 objects a second: 20,000 connections
WEB = """
[experiment]
claim = "20,000 web connections"
source = "speed"
duration_s = 175
measure_s = [0, 175]
[flow.web]
kind = "web"
cc = "reno"
rate_mbit = 9.3
stop_s = 172
[metric.flows]
kind = "objects"
flow = "web"
"""


@dataclass(frozen=True)
class Case:
    """A case. aim: simulated seconds per second on kernel AIMED; least: minimum of its metric for a valid run.

    beside: the aim as a multiple of ns-3's speed in the same rounds, instead of a fixed number.
    """

    name: str
    text: str
    aim: float | None
    least: float
    beside: float | None = None


CASES = (
    Case("two flows", TWO, 75.0, 9.0),
    Case("64 flows", MANY, None, 9.0, beside=1.5),
    Case("20,000 web connections", WEB, 5.0, 15000.0),
)


@dataclass(frozen=True)
class Speed:
    """One case on one kernel. speed: simulated seconds per second; metric: traffic carried (Mbit/s, objects)."""

    series: str
    case: Case
    simulated_s: float
    wall_s: float
    metric: float

    @property
    def speed(self) -> float:
        """Simulated seconds per second."""
        return self.simulated_s / self.wall_s


def measure(case: Case, backend: Uml, rounds: int) -> Speed:
    """The fastest round of one case."""
    setting = parse(case.text, Path("speed.toml")).setting({})
    job = jobs.make("speed", {}, SEED, setting)
    records = [run_one(job, backend) for _ in range(rounds)]
    value = Run(records[0].series, setting, job.flows).value(setting.metrics["flows"])
    wall_s = min(record.facts["wall_s"] for record in records)
    return Speed(backend.spec.series, case, setting.head.duration_s, wall_s, value)


def run_all(
    series: tuple[str, ...] = SERIES, rounds: int = 3, report: Report = silent, say: Callable[[str], None] = print
) -> list[Speed]:
    """Measure all cases on all kernels; prints a line when each is done."""
    made = []
    say(f"{'case':<26}{'kernel':<8}{'simulated':>10}{'wall':>9}{'speed':>9}{'aim':>6}{'through':>10}")
    for one in series:
        backend = Uml(one)
        backend.prepare(set(), report)
        for case in CASES:
            got = measure(case, backend, rounds)
            made.append(got)
            aim = "" if case.aim is None or one != AIMED else f"{case.aim:g}"
            say(
                f"{case.name:<26}{one:<8}{got.simulated_s:>8.0f} s{got.wall_s:>7.2f} s{got.speed:>9.1f}{aim:>6}"
                f"{got.metric:>10.1f}"
            )
    return made


def beside_ns3(
    rounds: int = 3, report: Report = silent, say: Callable[[str], None] = print
) -> dict[str, float] | None:
    """ns-3's speed with the same flows, with a line for each; None, with a message, if its package is not available."""
    speeds = {}
    try:
        for name, flows in (("two flows", 2), ("64 flows", 64)):
            seconds = 120.0
            wall_s, mbit = ns3.measure(flows, seconds, rounds, report)
            speeds[name] = seconds / wall_s
            say(f"{name:<26}{'ns-3':<8}{seconds:>8.0f} s{wall_s:>7.2f} s{seconds / wall_s:>9.1f}{'':>6}{mbit:>10.1f}")
    except LbeError as error:
        say(f"ns-3 does not install here: {error}")
        return None
    return speeds


def idle(made: list[Speed]) -> list[Speed]:
    """Cases that carried almost no traffic, so that their speed is meaningless."""
    return [one for one in made if not one.metric >= one.case.least]


def slow(made: list[Speed], simulator: dict[str, float] | None) -> list[tuple[Speed, float]]:
    """Cases that miss their aim, each with the aim. Without ns-3, cases to be compared with it have no aim."""
    missed = []
    for one in made:
        aim = one.case.aim
        if one.case.beside and simulator:
            aim = one.case.beside * simulator[one.case.name]
        if one.series == AIMED and aim is not None and one.speed < aim:
            missed.append((one, aim))
    return missed


__all__ = ["AIMED", "CASES", "SERIES", "Speed", "beside_ns3", "idle", "measure", "run_all", "slow"]
