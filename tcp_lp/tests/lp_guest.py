# SPDX-License-Identifier: GPL-2.0
"""Both modules named lp inside the kernel, for tests: one flow's samples, and shell scripts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from testbed.backends.machine import Machine
from testbed.backends.uml import HOST_ROOT, Uml
from testbed.results import files as results
from testbed.run import runner
from testbed.spec.experiment import parse

#: bits of the first word that `ss -i` shows of ours (tcp_lp_get_info)
LEARNT, INFERENCE, FLOOR, OWD = 1 << 1, 1 << 2, 1 << 3, 1 << 4
RECOVERY = 3  # TCP_CA_Recovery

EXPERIMENT = """
[experiment]
claim = "one flow, and what its sender shows"
source = "tcp_lp/tests/lp_guest.py"
duration_s = {seconds}
measure_s = [{measure_s}, {seconds}]
runs = 1
sample_ms = {sample_ms}
[topology]
rate_mbit = 10
delay_ms = 48
access_delay_ms = 1
queue = {{ kind = "pfifo", packets = {packets} }}
{topology}
[flow.bg]
cc = "{cc}"
{flow}
[metric.bg]
kind = "share"
flow = "bg"
{more}
"""


@dataclass
class Seen:
    """rows: the samples of bg's sender; metrics: by name, "bg" is its share in % of the link."""

    rows: np.ndarray
    metrics: dict[str, float]

    @property
    def cwnd(self) -> np.ndarray:
        """Windows in packets."""
        return self.rows["cwnd_pkts"].astype(int)


def prepared() -> Uml:
    """The default kernel with both modules, and the clocks that a peer may show."""
    made = Uml()
    made.prepare(["tcp_lp", "tcp_lp_intree", "lbe_tick"])
    return made


def text(
    cc: str,
    seconds: int = 30,
    measure_s: int = 1,
    sample_ms: int = 100,
    topology: str = "",
    flow: str = "",
    more: str = "",
    packets: int = 86,
) -> str:
    """An experiment file; without more: one greedy flow alone on 10 Mbit/s, 100 ms."""
    return EXPERIMENT.format(**locals())


def seen(backend: Uml, cc: str, *args, keep: Path | None = None, **keys) -> Seen:
    """What the experiment text(cc, ...) showed of its flow bg. keep: folder for the run's files."""
    one = parse(text(cc, *args, **keys), Path("tcp_lp_guest.toml"))
    (job,) = runner.plan(one, runner.Options(runs=1, seed=1))
    record = runner.run_one(job, backend, keep)
    (ours,) = [flow.id for flow in job.flows if flow.group == "bg"]
    rows = record.series.send
    return Seen(rows[rows["flow"] == ours], results.compute(job, record))


def guest(backend: Uml, tmp_path: Path, script: str) -> str:
    """Run shell lines in a fresh guest; returns what they wrote into $LBE_OUT/said."""
    job = tmp_path / "job"
    job.mkdir(parents=True)
    tools = backend.tools().modules
    head = "".join(f"{name}={HOST_ROOT}{path}\n" for name, path in tools.items() if name.startswith("tcp_lp"))
    (job / "job.sh").write_text(head + script)
    Machine(backend.build).run(job, tmp_path / "out", wall_limit_s=60)
    return (tmp_path / "out" / "said").read_text()
