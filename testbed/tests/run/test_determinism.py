# SPDX-License-Identifier: GPL-2.0
"""A run depends on experiment, seed and kernel only: its results are equal byte for byte, whatever the load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from testbed.backends.uml import Uml
from testbed.run import job as jobs
from testbed.run.runner import run_one
from testbed.spec.experiment import parse

pytestmark = pytest.mark.scenario

# everything that could depend on chance: random loss and processing times, IPv6, UDP, many flows, marks, a module
EXPERIMENT = """
[experiment]
claim = "c"
source = "s"
duration_s = 15
measure_s = [1, 15]
[topology]
loss_pct = 0.1
[flow.a]
start_spread_s = 1
[flow.b]
cc = "lp"
family = 6
start_spread_s = 1
[flow.c]
cc = "bbr"
count = 3
start_spread_s = 1
extra_delay_ms = 7
[flow.d]
kind = "square"
proto = "udp"
rate_mbit = 2
period_s = 0.3
[flow.e]
source = "rcv"
to = "snd"
start_spread_s = 1
"""
BUSY = "while True: pass"


@pytest.fixture(scope="module")
def backend() -> Uml:
    made = Uml()
    made.prepare({"tcp_lp", "tcp_bbr"})
    return made


def run(backend: Uml, seed: int, folder: Path) -> dict[str, bytes]:
    one = parse(EXPERIMENT, Path("determinism.toml"))
    folder.mkdir()
    run_one(jobs.make("determinism", {}, seed, one.setting({})), backend, keep=folder)
    names = [
        path.name
        for path in sorted((folder / "out").iterdir())
        if path.suffix in (".send", ".recv", ".queue", ".events", ".qdisc", ".counters")
    ]
    assert len(names) > 12
    return {name: (folder / "out" / name).read_bytes() for name in names}


def test_same_seed_same_bytes_on_a_loaded_machine(backend: Uml, tmp_path: Path) -> None:
    first = run(backend, 7, tmp_path / "idle")
    load = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(3)]
    try:
        again = run(backend, 7, tmp_path / "loaded")
    finally:
        for process in load:
            process.kill()
            process.wait()
    assert [name for name in first if first[name] != again[name]] == []


def test_another_seed_another_run(backend: Uml, tmp_path: Path) -> None:
    first, other = run(backend, 7, tmp_path / "a"), run(backend, 8, tmp_path / "b")
    for name in ("snd.send", "rcv.recv", "rtr.queue"):
        assert first[name] != other[name], name
