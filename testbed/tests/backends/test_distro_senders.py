# SPDX-License-Identifier: GPL-2.0
"""lp, ledbat, ledbatpp on Debian's kernel with two CPUs: 64 flows beside cubic, and more than 2^32 bytes in a flow.

The user-mode kernel of the other experiments has one CPU. These runs take place in real time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.backends.distro import accelerator, ensure_image
from testbed.commands.choose import make_backend
from testbed.results.files import Result
from testbed.run.runner import Options, run
from testbed.spec.experiment import load

SERIES = "6.12"
#: The path of senders_chance. Samples are rare, as each one costs an emulated CPU much. The agent carries the 64 flows
#: (read_ms is nothing that iperf3 can do), iperf3 the cubic flow.
CROWD = """
[experiment]
claim = "64 flows leave a cubic flow far more than an equal part of the link, whichever starts first"
source = "made for this test"
duration_s = 75
measure_s = [30, 75]
sample_ms = 2000
runs = 1
mem_mb = 1024
[topology]
rate_mbit = 10
queue = { kind = "pfifo", packets = 86 }
[flow.bg]
count = 64
read_ms = 500
start_spread_s = 0.5
[flow.be]
[vary.control]
lp = { "flow.bg.cc" = "lp" }
ledbat = { "flow.bg.cc" = "ledbat" }
ledbatpp = { "flow.bg.cc" = "ledbatpp" }
[vary.order]
crowd_first = { "flow.be.start_s" = 10 }
crowd_last = { "flow.bg.start_s" = 10 }
[metric.bg]
kind = "share"
flow = "bg"
[metric.be]
kind = "share"
flow = "be"
"""
#: First the CPUs are the limit, so that many bytes pass; then the link has 10 Mbit/s, and cubic comes. Packets are
#: large, since an emulated CPU carries a limited number of them.
BYTES = """
[experiment]
claim = "after more than 2^32 bytes a flow steps aside as at its beginning"
source = "made for this test"
duration_s = {end_s}
measure_s = [{from_s}, {end_s}]
sample_ms = 1000
runs = 1
mem_mb = 1024
[topology]
rate_mbit = 10000
access_rate_mbit = 10000
delay_ms = 5
mtu = 9000
offloads = true
processing_us = 0
queue = {{ kind = "pfifo", packets = 3000 }}
[sysctl.rcv]
"net.ipv4.tcp_rmem" = "4096 4194304 16777216"
[flow.bg]
cc = "{control}"
[flow.be]
start_s = {start_s}
[[event]]
at_s = {fast_s}
set = {{ "topology.rate_mbit" = 10, "topology.queue.packets" = 20 }}
[metric.first]
kind = "goodput"
flow = "bg"
from_s = 0
to_s = {fast_s}
[metric.bg]
kind = "goodput"
flow = "bg"
[metric.be]
kind = "goodput"
flow = "be"
"""
#: time in which 2^32 bytes pass, s: emulated CPUs carry 100 to 250 Mbit/s, real ones a Gbit/s or more
FAST_S = {"tcg": 360, "kvm": 60}
#: Least part of the link that has to be carried, %. An emulated shaper is woken late for each packet, so that it sends
#: less than its rate; what a machine carries that has no time for it says nothing of the controls.
CARRIED = 25
#: Least part of what the link carries that cubic keeps beside 64 flows, %: a third less than the least of 30 seeds in
#: virtual time (senders_chance), and far from an equal part, which is a 65th.
KEPT = {"lp": 26, "ledbat": 59, "ledbatpp": 13}
MODULES = {"lp": "tcp_lp", "ledbat": "tcp_ledbat", "ledbatpp": "tcp_ledbat"}


def results_of(text: str, folder: Path, module: str, cases: dict[str, list[str]] | None = None) -> list[Result]:
    """Run an experiment on Debian's kernel."""
    file = folder / "senders.toml"
    file.write_text(text, encoding="utf-8")
    backend = make_backend("qemu", SERIES)
    backend.prepare({module})
    options = Options(reuse=False, cases=cases or {}, command="test")
    return run(load(str(file)), backend, options, lambda *_: None).results


@pytest.mark.kernels
@pytest.mark.parametrize("order", ["crowd_first", "crowd_last"])
@pytest.mark.parametrize("control", MODULES)
def test_64_flows_leave_a_cubic_flow_its_part(control: str, order: str, tmp_path: Path) -> None:
    (result,) = results_of(CROWD, tmp_path, MODULES[control], {"control": [control], "order": [order]})
    metrics = result.metrics
    carried = metrics["be"] + metrics["bg"]
    print(f"# {control}, {order}: cubic {metrics['be']:.1f}, the crowd {metrics['bg']:.1f} % of the link's rate")
    assert carried > CARRIED, metrics
    assert metrics["be"] > KEPT[control] / 100 * carried, metrics


@pytest.mark.kernels
@pytest.mark.parametrize("control", MODULES)
def test_a_flow_steps_aside_after_more_than_4_gib(control: str, tmp_path: Path) -> None:
    fast_s = FAST_S[accelerator(ensure_image(SERIES))]
    times = {"fast_s": fast_s, "start_s": fast_s + 10, "from_s": fast_s + 20, "end_s": fast_s + 45}
    (result,) = results_of(BYTES.format(control=control, **times), tmp_path, MODULES[control])
    metrics = result.metrics
    carried = metrics["be"] + metrics["bg"]
    print(f"# {control}: {metrics['first']:.0f} Mbit/s at first, then {metrics['bg']:.2f} of {carried:.2f} Mbit/s")
    assert metrics["first"] * 1e6 / 8 * fast_s > 1 << 32, metrics
    assert carried > CARRIED / 100 * 10, metrics
    assert metrics["be"] > 0.7 * carried, metrics
