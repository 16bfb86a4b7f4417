# SPDX-License-Identifier: GPL-2.0
"""Cost of an ACK: lbe beside bbr in the same network, with one flow and with 10,000.

    python3 -m tcp_lbe.tests.bench [SERIES]

Prints a table; exit status 1 if an ACK costs lbe more than BOUNDS times what it costs bbr. The aim is AIM; what is
reached, and why not more, is in Documentation/tcp_lbe.md ("Cost"). Counted is the time inside the control: what TCP
calls for an ACK, and each time that it would send (tests/tcp_lbe_bench.c). The controls take turns; ratios are
medians over the rounds, times are of the fastest round, at the rate of the CPU's counter.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from sch_shred.tests.bench import counter_mhz
from testbed.backends.uml import Uml
from testbed.base.errors import LbeError, exit_with
from testbed.run import job as jobs
from testbed.run.runner import run_one
from testbed.spec.experiment import parse

#: ticks inside the control for an ACK, of bbr's
AIM = 1.1
#: a guard against regressions while the aim is missed: flows -> the ratio. It follows from no limit: it allows a third
#: more than what Documentation/tcp_lbe.md gives ("Cost")
BOUNDS = {1: 4.5, 10_000: 11.0}
CONTROLS = ("bbr", "lbe")
ROUNDS = 5
#: flows -> the link, Mbit/s, and seconds: about 80,000 and 500,000 packets
FLOWS = {1: (100, 10), 10_000: (1000, 6)}

#: what the sockets of 10,000 flows hold is over what TCP allows itself here, pages
MEMORY = "net.ipv4.tcp_mem = 1000000 1000000 1000000\n"
#: 32 kB that wait in each socket: more than a flow sends at once
EXPERIMENT = """
[experiment]
claim = "what an ACK costs"
source = "bench"
duration_s = {seconds}
measure_s = [1, {seconds}]
sample_ms = 1000
mem_mb = 4096
modules = ["tcp_bbr", "tcp_lbe", "tcp_lbe_bench"]
[topology]
rate_mbit = {mbit}
access_rate_mbit = {mbit}
delay_ms = 18
access_delay_ms = 1
queue = {{ kind = "pfifo", packets = 100000 }}
[modules.tcp_lbe_bench]
names = "lbe,bbr"
[flow.bg]
cc = "{control}"
count = {flows}
options = {{ lowat = 32768 }}
[metric.goodput]
kind = "goodput"
flow = "bg"
"""


def ticks_of(backend: Uml, control: str, flows: int, seed: int) -> float:
    """CPU ticks inside the control for an ACK, in one run."""
    mbit, seconds = FLOWS[flows]
    text = EXPERIMENT.format(control=control, flows=flows, mbit=mbit, seconds=seconds)
    job = jobs.make("bench", {}, seed, parse(text, Path("bench.toml")).setting({}))
    job.files["snd.plan"] = job.files["snd.plan"].replace(f"cc={control} ", f"cc=cost_{control} ")
    job.files["host.sysctl"] += MEMORY
    job.files["job.sh"] += 'cat /sys/module/tcp_lbe_bench/parameters/costs > "$OUT/costs"\n'
    with tempfile.TemporaryDirectory(prefix="lbe-bench.") as folder:
        run_one(job, backend, Path(folder))
        lines = (Path(folder) / "out" / "costs").read_text(encoding="ascii").splitlines()
    numbers = {name: list(map(int, words)) for name, *words in map(str.split, lines)}
    acks, ack_ticks, _sends, send_ticks = numbers[control]
    if not acks:
        raise LbeError(f"no ACK reached cost_{control}")
    return (ack_ticks + send_ticks) / acks


def main(series: str = "6.12") -> int:
    """Measure and print."""
    backend = Uml(series)
    backend.prepare(["tcp_lbe", "tcp_bbr", "tcp_lbe_bench"])
    mhz = counter_mhz()
    print(f"kernel {backend.build.release}, counter at {mhz:.0f} MHz, {ROUNDS} rounds\n")
    print(f"{'flows':>8}" + "".join(f"{control + ', ns an ACK':>16}" for control in CONTROLS) + f"{'ratio':>8}")
    ratios = {}
    for flows in FLOWS:
        rounds = [{one: ticks_of(backend, one, flows, seed) for one in CONTROLS} for seed in range(1, ROUNDS + 1)]
        ratio = statistics.median(one["lbe"] / one["bbr"] for one in rounds)
        fastest = "".join(f"{min(one[control] for one in rounds) / mhz * 1e3:16.0f}" for control in CONTROLS)
        print(f"{flows:8}{fastest}{ratio:8.3f}", flush=True)
        ratios[flows] = ratio
    print(f"\nan ACK costs lbe, of bbr's (aim {AIM}):")
    for flows, ratio in ratios.items():
        words = ("met" if ratio <= AIM else "missed", "holds" if ratio <= BOUNDS[flows] else "MISSED")
        print(f"  {flows:6} flows{ratio:8.3f}, aim {words[0]}, bound {BOUNDS[flows]:g}: {words[1]}")
    return 0 if all(ratio <= BOUNDS[flows] for flows, ratio in ratios.items()) else 1


if __name__ == "__main__":
    exit_with("bench", lambda: main(*sys.argv[1:]))
