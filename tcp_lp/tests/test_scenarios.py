# SPDX-License-Identifier: GPL-2.0
"""tcp_lp inside the kernel: what arithmetic cannot show, beside the kernel's own module.

Faults 12, 16 and 18 of the list (see test_faults.py) are in what a module does with its socket;
loading, parameters and the shape of the law's sawtooth are tested here too. How lp shares a link
is shown by the experiments (testbed/experiments/lp_*.toml).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from testbed import runner
from testbed.backend import HOST_ROOT, Uml
from testbed.errors import LbeError
from testbed.experiment import parse
from testbed.machine import Machine

pytestmark = pytest.mark.scenario

LEARNT, INFERENCE, FLOOR, OWD = 1 << 1, 1 << 2, 1 << 3, 1 << 4
RECOVERY = 3

EXPERIMENT = """
[experiment]
claim = "one flow, and what its sender shows"
source = "tcp_lp/tests/test_scenarios.py"
duration_s = {seconds}
measure_s = [1, {seconds}]
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
[metric.bg]
kind = "share"
flow = "bg"
{more}
"""


@pytest.fixture(scope="module")
def backend() -> Uml:
    made = Uml()
    made.prepare(["tcp_lp", "tcp_lp_intree", "lbe_tick"])
    return made


def sent(
    backend: Uml,
    cc: str,
    seconds: int = 30,
    sample_ms: int = 100,
    topology: str = "",
    more: str = "",
    packets: int = 86,
) -> np.ndarray:
    """The senders' samples; without more: one greedy flow alone on 10 Mbit/s, 100 ms."""
    text = EXPERIMENT.format(cc=cc, seconds=seconds, sample_ms=sample_ms, topology=topology, more=more, packets=packets)
    (job,) = runner.plan(parse(text, Path("tcp_lp_scenario.toml")), runner.Options(runs=1, seed=1))
    return runner.run_one(job, backend).series.send


def growth_after_first_cut(rows: np.ndarray) -> int:
    """Largest growth of the window in a round trip (one sample), until the next cut or loss."""
    cwnd = rows["cwnd_pkts"].astype(int)
    cut = int(np.argmax(np.diff(cwnd) < -2))
    after = cwnd[cut + 1 :]
    ends = np.flatnonzero(np.diff(after) < 0)
    return int(np.max(np.diff(after[: ends[-1] + 1 if len(ends) else None])))


def test_fault_12_growth_after_an_indication_is_additive(backend: Uml) -> None:
    """The kernel's own lp leaves ssthresh where it was: back to slow start, and past the buffer.

    Its first sample is an indication if the peer's clock reads low enough; a fixed one does.
    """
    clock = "tick = { rcv = { offset_ticks = 0 } }"
    intree = sent(backend, "lp_intree", 10, topology=clock)
    ours = sent(backend, "lp", 30, topology=clock)
    assert growth_after_first_cut(intree) > 4
    settled = ours[ours["t_ns"] > 5e9]
    steps = np.diff(settled["cwnd_pkts"].astype(int))
    assert steps.max() <= 2  # +1 a round trip of 100 ms and more, two ACKs may fall into a sample
    assert (steps < -20).sum() >= 2  # and it did cut


def test_fault_16_indications_leave_recovery_alone(backend: Uml) -> None:
    """2 % loss under a queue that others fill: no indication is counted while a loss is repaired."""
    rows = sent(backend, "lp", 30, 5, topology="loss_pct = 2.0", more='[flow.be]\ncc = "cubic"\ncount = 2\n')
    rows = rows[rows["cc"][:, 0] > 0]  # lp's own; cubic shows nothing here
    count = rows["cc"][:, 0] >> 8
    state = rows["ca_state"]
    both = (state[1:] == RECOVERY) & (state[:-1] == RECOVERY)
    assert both.sum() > 20
    assert (np.diff(count.astype(int))[both] == 0).all()


def test_fault_18_state_is_visible_and_means_what_is_written(backend: Uml) -> None:
    assert not sent(backend, "lp_intree", 5)["cc"].any()
    rows = sent(backend, "lp", 20)
    rows = rows[rows["t_ns"] > 6e9]
    flags, margin, smoothed, least = rows["cc"][:, :4].T
    assert (flags & LEARNT).all() and (flags & OWD).all() and not (flags & FLOOR).any()
    assert (flags & INFERENCE).any() and not (flags & INFERENCE).all()
    # 86 packets of 1538 octets and the base, in us; the smoothed delay moves between them
    assert np.all(abs(least.astype(int) - 101500) < 2500)
    assert np.all(abs(margin.astype(int) - 0.15 * 86 * 1230) < 1500)
    assert smoothed.max() < 101500 + 0.15 * 86 * 1230 + 6000


@pytest.mark.parametrize("packets", [43, 86, 215, 600])
def test_alone_the_second_indication_never_comes(backend: Uml, packets: int) -> None:
    """Once settled a flow alone halves and never goes to the floor: its own queue is no evidence."""
    rows = sent(backend, "lp", 60, packets=packets)
    rows = rows[rows["t_ns"] > 15e9]
    assert not (rows["cc"][:, 0] & FLOOR).any()
    assert rows["cwnd_pkts"].min() > 20


def guest(backend: Uml, tmp_path: Path, script: str) -> str:
    """Run shell lines in a fresh guest; returns what they wrote into $LBE_OUT/said."""
    job = tmp_path / "job"
    job.mkdir(parents=True)
    tools = backend.tools().modules
    head = "".join(f"{name}={HOST_ROOT}{path}\n" for name, path in tools.items() if name.startswith("tcp_lp"))
    (job / "job.sh").write_text(head + script)
    Machine(backend.build).run(job, tmp_path / "out", wall_limit_s=60)
    return (tmp_path / "out" / "said").read_text()


PARAMETERS = """
p=/sys/module/tcp_lp/parameters
exec >"$LBE_OUT/said" 2>&1
insmod "$tcp_lp" itt_rtts=21 && exit 1
insmod "$tcp_lp" delta_permille=300 itt_rtts=5 || exit 1
for setting in delta_permille=9 delta_permille=901 gamma_shift=5 itt_rtts=0 floor_us=49 \\
    min_age_s=9 max_age_losses=0 route_s=4 rest_max_rtts=65 floor_us=x floor_us=-1 floor_us=; do
	echo "${setting#*=}" 2>/dev/null >"$p/${setting%=*}" && { echo "taken $setting"; exit 1; }
done
for name in delta_permille gamma_shift itt_rtts floor_us min_age_s max_age_losses route_s rest_max_rtts; do
	echo "$name=$(cat "$p/$name")"
done
echo 2 >"$p/rest_max_rtts" || exit 1
echo "rest_max_rtts=$(cat "$p/rest_max_rtts")"
dmesg | grep -c "is not in the allowed range"
rmmod tcp_lp || exit 1
"""


def test_parameters_are_checked_and_a_refusal_changes_nothing(backend: Uml, tmp_path: Path) -> None:
    said = guest(backend, tmp_path, PARAMETERS)
    for line in (
        "delta_permille=300",
        "gamma_shift=3",
        "itt_rtts=5",
        "floor_us=1000",
        "min_age_s=600",
        "max_age_losses=8",
        "route_s=10",
        "rest_max_rtts=8",
        "rest_max_rtts=2",
    ):
        assert f"\n{line}\n" in said, said
    assert said.rstrip().endswith("13"), said  # each refusal said why


BOTH = """
exec >"$LBE_OUT/said" 2>&1
insmod "$tcp_lp_intree" || exit 1
insmod "$tcp_lp" && exit 1
dmesg | grep "the name lp is taken"
rmmod tcp_lp || exit 1
insmod "$tcp_lp" || exit 1
cat /proc/sys/net/ipv4/tcp_available_congestion_control
cat /proc/sys/net/ipv4/tcp_allowed_congestion_control
rmmod tcp_lp || exit 1
cat /proc/sys/net/ipv4/tcp_available_congestion_control
"""


def test_it_replaces_the_kernels_own_module(backend: Uml, tmp_path: Path) -> None:
    """Both at once cannot be; the refusal says what to remove. Unprivileged sockets may use it."""
    said = guest(backend, tmp_path, BOTH)
    assert "rmmod tcp_lp" in said or "File exists" in said, said
    available, allowed, after = said.splitlines()[-3:]
    assert {"lp", "lp_ecn"} <= set(available.split())
    assert {"lp", "lp_ecn"} <= set(allowed.split())
    assert not {"lp", "lp_ecn"} & set(after.split())


TRACE = """
t=/sys/kernel/tracing
mount -t tracefs none $t 2>/dev/null
insmod "$tcp_lp" || exit 1
cat $t/events/tcp_lp/lp_indication/format >"$LBE_OUT/said"
rmmod tcp_lp || exit 1
"""


def test_each_indication_has_a_trace_event(backend: Uml, tmp_path: Path) -> None:
    said = guest(backend, tmp_path, TRACE)
    for name in ("kind", "source", "before", "after", "sd_us", "dmin_us", "dmax_us", "threshold_us", "rest_rtts"):
        assert f" {name};" in said, said


def test_two_modules_of_one_name_in_one_run_are_refused() -> None:
    text = EXPERIMENT.format(
        cc="lp", seconds=5, sample_ms=100, topology="", more='[flow.be]\ncc = "lp_intree"\n', packets=86
    )
    with pytest.raises(LbeError, match="both are named"):
        runner.plan(parse(text, Path("tcp_lp_scenario.toml")), runner.Options(runs=1))
