# SPDX-License-Identifier: GPL-2.0
"""tcp_lp inside the kernel: loading, parameters, what it shows, the shape of the law's sawtooth.

The kernel's own module and its faults are beside it in test_intree.py. How lp shares a link is
shown by the experiments (testbed/experiments/lp_*.toml).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcp_lp.tests.lp_guest import FLOOR, guest, prepared, seen, text
from testbed.backends.uml import Uml
from testbed.base.errors import LbeError
from testbed.run import runner
from testbed.spec.experiment import parse

pytestmark = pytest.mark.scenario


@pytest.fixture(scope="module")
def backend() -> Uml:
    return prepared()


@pytest.mark.parametrize("packets", [43, 86, 215, 600])
def test_alone_the_second_indication_never_comes(backend: Uml, packets: int) -> None:
    """Once settled a flow alone halves and never goes to the floor: its own queue is no evidence."""
    rows = seen(backend, "lp", 60, packets=packets).rows
    rows = rows[rows["t_ns"] > 15e9]
    assert not (rows["cc"][:, 0] & FLOOR).any()
    assert rows["cwnd_pkts"].min() > 20


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


LOOK = """
[[event]]
at_s = 0.5
node = "snd"
run = "mount -t tracefs none /sys/kernel/tracing; echo 1 > /sys/kernel/tracing/events/tcp_lp/lp_indication/enable"
[[event]]
at_s = 29.97
node = "snd"
run = "mount -t tracefs none /sys/kernel/tracing; cat /sys/kernel/tracing/trace > /tmp/out/trace; ss -tin > /tmp/out/ss"
"""


def test_each_indication_has_a_trace_event_and_ss_shows_the_state(backend: Uml, tmp_path: Path) -> None:
    rows = seen(backend, "lp", 30, more=LOOK, keep=tmp_path).rows
    trace = [line for line in (tmp_path / "out" / "trace").read_text().splitlines() if "lp_indication:" in line]
    assert len(trace) == rows["cc"][rows["t_ns"] < 29.95e9][-1, 0] >> 8 >= 4
    for name in ("kind", "source", "cwnd", "sd_us", "dmin_us", "dmax_us", "threshold_us", "rest_rtts"):
        assert all(f"{name}=" in line for line in trace), trace[0]
    ss = (tmp_path / "out" / "ss").read_text()
    assert re.search(r"\blp\b.*rtt:", ss), ss


def test_two_modules_of_one_name_in_one_run_are_refused() -> None:
    both = parse(text("lp", 5, more='[flow.be]\ncc = "lp_intree"\n'), Path("tcp_lp_guest.toml"))
    with pytest.raises(LbeError, match="both are named"):
        runner.plan(both, runner.Options(runs=1))
