# SPDX-License-Identifier: GPL-2.0
"""Cost of a packet: shred beside the kernel's red in one run, and the hint's writers.

    python3 -m sch_shred.tests.bench [SERIES]

Prints a table; exit status 1 if enqueue and dequeue cost more than BOUND times red's.
Ratios are medians over rounds in which the queues took turns, so that what else the machine
does falls on all alike; times are of the fastest round, at the rate of the CPU's counter.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from testbed.backends.machine import Machine
from testbed.backends.tools import build_tc_plugin
from testbed.backends.uml import HOST_ROOT, Uml
from testbed.base.errors import LbeError

#: the aim of the issue
BOUND = 1.05
ROUNDS = 31
RED = "limit 300000 min {low} max {high} avpkt 1000 burst {burst} bandwidth 100mbit probability 0.0002"
#: average queue of 30 packets below RED's thresholds, and between them (one drop in 50000)
STATES = {
    "below min": RED.format(low=60000, high=180000, burst=70),
    "between": RED.format(low=10000, high=200000, burst=80),
}

SCRIPT = """
set -eu
export TC_LIB_DIR=/tmp/job/tc
M={host}
insmod $M{sch_shred}
insmod $M{shred_hint}
measure() {{
    insmod $M{shred_bench} rounds={rounds} "$@"
    cat /sys/module/shred_bench/parameters/${{result}} > "$LBE_OUT/$name"
    rmmod shred_bench
}}
for dev in red off dscp tos; do ip link add $dev type dummy; done
result=ticks
name=0; queue="{below}"
for turn in 0 1; do
    tc qdisc replace dev red root handle 1: red $queue
    for hint in off dscp tos; do tc qdisc replace dev $hint root handle 1: shred $queue hint $hint; done
    name=$turn measure devices=red,off,dscp,tos
    for dev in red off dscp tos; do tc qdisc del dev $dev root; done
    queue="{between}"
done
result=hook_ticks
name=without measure
sysctl -q -w net.shred_hint.mode=dscp net.shred_hint.host=1 net.shred_hint.edge=1
name=with measure
"""


def counter_mhz() -> float:
    """Rate of the CPU's time counter, from the machine; NaN where it does not say."""
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("cpu MHz"):
            return float(line.split(":")[1])
    return float("nan")


def table(out: Path, name: str, columns: int) -> list[list[int]]:
    """Rounds of one measurement: a list for each column."""
    numbers = [int(word) for word in (out / name).read_text(encoding="ascii").split(",")]
    return [numbers[column::columns] for column in range(columns)]


def main(series: str = "6.12") -> int:
    """Measure and print."""
    backend = Uml(series)
    backend.prepare(["sch_shred", "shred_hint", "shred_bench"])
    modules = backend.tools().modules
    names = {name: modules[name] for name in ("sch_shred", "shred_hint", "shred_bench")}
    with tempfile.TemporaryDirectory(prefix="lbe-bench.") as folder:
        job, out = Path(folder) / "job", Path(folder) / "out"
        (job / "tc").mkdir(parents=True)
        out.mkdir()
        (job / "tc" / "q_shred.so").write_bytes(build_tc_plugin().read_bytes())
        script = SCRIPT.format(
            host=HOST_ROOT, rounds=ROUNDS, below=STATES["below min"], between=STATES["between"], **names
        )
        (job / "job.sh").write_text(script, encoding="ascii")
        Machine(backend.build).run(job, out, wall_limit_s=300)
        queues = {state: table(out, str(index), 4) for index, state in enumerate(STATES)}
        hooks = {name: table(out, name, 2) for name in ("without", "with")}

    mhz = counter_mhz()
    print(f"kernel {backend.build.release}, counter at {mhz:.0f} MHz, {ROUNDS} rounds of 20000 packets\n")
    print(f"{'enqueue and dequeue, ns a packet':34}{'red':>8}{'shred off':>12}{'dscp':>8}{'tos':>8}")
    worst = 0.0
    for state, rows in queues.items():
        print(f"  {state:32}" + "".join(f"{min(row) / mhz * 10:{w}.1f}" for row, w in zip(rows, (8, 12, 8, 8))))
        ratios = [statistics.median(own / red for own, red in zip(row, rows[0])) for row in rows]
        print(f"  {'  of red':32}" + "".join(f"{one:{w}.3f}" for one, w in zip(ratios, (8, 12, 8, 8))))
        worst = max(worst, *ratios[1:])
    print(f"\n{'writing the hint, ns a packet':34}{'edge':>8}{'host':>12}")
    for name, rows in hooks.items():
        print(f"  {name + ' the hook':32}" + "".join(f"{min(row) / mhz * 10:{w}.1f}" for row, w in zip(rows, (8, 12))))
    verdict = "met" if worst <= BOUND else "missed"
    print(f"\nshred costs at most {worst:.3f} of red; aim {BOUND}: {verdict}")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    began = time.monotonic()
    try:
        sys.exit(main(*sys.argv[1:]))
    except LbeError as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
