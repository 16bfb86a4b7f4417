# SPDX-License-Identifier: GPL-2.0
"""Both modules named lp inside the kernel, for tests: one flow's samples, and shell scripts."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np

from testbed.backends.machine import Machine
from testbed.backends.uml import HOST_ROOT, Uml
from testbed.run import runner
from testbed.run.collect import compute
from testbed.run.job import ZERO_S
from testbed.spec.experiment import parse

#: words of TCP_CC_INFO of ours: struct tcp_bbr_info
MIN_RTT, PACING_GAIN = 2, 3
SENDING = 256  # the pacing gain of a flow that is not at its floor
RECOVERY = 3  # TCP_CA_Recovery
EVENT = re.compile(r"([\d.]+): lp_state: (.*)")
TRACED = """
[[event]]
at_s = 0
node = "snd"
run = "mount -t tracefs none /sys/kernel/tracing; echo 1 > /sys/kernel/tracing/events/tcp_lp/lp_state/enable"
[[event]]
at_s = {last_s}
node = "snd"
run = "mount -t tracefs none /sys/kernel/tracing; cat /sys/kernel/tracing/trace > /tmp/out/trace"
[[event]]
at_s = {last_s}
node = "snd"
run = "ss -tin > /tmp/out/ss; cat /proc/net/lbe_lp > /tmp/out/counters"
"""

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
    """rows: the samples of bg's sender; metrics: by name, "bg" is its share in % of the link.

    events: fields of each lp_state event of ours, "at_ns" is on the clock of rows; ss, counters: what was
    shown at the end.
    """

    rows: np.ndarray
    metrics: dict[str, float]
    events: list[dict[str, str]] = field(default_factory=list)
    ss: str = ""
    counters: str = ""

    def indications(self, kind: str = "delay") -> list[float]:
        """When they came, ns."""
        return [float(event["at_ns"]) for event in self.events if event["event"] == kind]

    @property
    def cwnd(self) -> np.ndarray:
        """Windows in packets."""
        return self.rows["cwnd_pkts"].astype(int)


def prepared() -> Uml:
    """The default kernel with both modules, and the clocks that a peer may show."""
    made = Uml()
    made.prepare(["tcp_lp", "tcp_lp_intree", "lbe_tick"])
    return made


class Setting(TypedDict, total=False):
    """What an experiment may have that differs from DEFAULTS."""

    measure_s: int
    sample_ms: int
    topology: str
    flow: str
    more: str
    packets: int


#: one greedy flow alone on 10 Mbit/s, 100 ms
DEFAULTS = Setting(measure_s=1, sample_ms=100, topology="", flow="", more="", packets=86)


def text(cc: str, seconds: int = 30, **setting: Unpack[Setting]) -> str:
    """An experiment file."""
    return EXPERIMENT.format(cc=cc, seconds=seconds, **{**DEFAULTS, **setting})


def seen(backend: Uml, cc: str, seconds: int, **setting: Unpack[Setting]) -> Seen:
    """What the experiment text(cc, seconds, ...) showed of its flow bg."""
    traced = cc in ("lp", "lp_ecn")
    if traced:
        setting["more"] = setting.get("more", "") + TRACED.format(last_s=seconds - 0.03)
    one = parse(text(cc, seconds, **setting), Path("tcp_lp_guest.toml"))
    (job,) = runner.plan(one, runner.Options(runs=1, seed=1))
    with tempfile.TemporaryDirectory(prefix="lbe-lp-") as folder:
        record = runner.run_one(job, backend, Path(folder))
        files = {
            name: (Path(folder) / "out" / name).read_text() if traced else "" for name in ("trace", "ss", "counters")
        }
    (ours,) = [flow.id for flow in job.flows if flow.group == "bg"]
    rows = record.series.send
    events = [
        dict(word.split("=") for word in words.split()) | {"at_ns": str((float(at) - ZERO_S) * 1e9)}
        for at, words in EVENT.findall(files["trace"])
    ]
    return Seen(rows[rows["flow"] == ours], compute(job, record), events, files["ss"], files["counters"])


def guest(backend: Uml, tmp_path: Path, script: str) -> str:
    """Run shell lines in a fresh guest; returns what they wrote into $LBE_OUT/said."""
    job = tmp_path / "job"
    job.mkdir(parents=True)
    tools = backend.tools().modules
    head = "".join(f"{name}={HOST_ROOT}{path}\n" for name, path in tools.items() if name.startswith("tcp_lp"))
    (job / "job.sh").write_text(head + script)
    Machine(backend.build).run(job, tmp_path / "out", wall_limit_s=60)
    return (tmp_path / "out" / "said").read_text()
