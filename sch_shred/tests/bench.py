# SPDX-License-Identifier: GPL-2.0
"""Cost of a packet: shred beside the kernel's red, fq_codel and cake in one run, and the hint's writers.

    python3 -m sch_shred.tests.bench [SERIES]

Prints a table; exit status 1 if enqueue and dequeue cost more than BOUNDS times red's. The aim is AIM; what is
reached, and why not more, is in Documentation/sch_shred.md ("Cost"). The bounds are higher than the aim, since the
ratios of a run on a busy machine differ by up to a fifth.
Ratios are medians over rounds in which the queues took turns, so that other work of the machine affects all of them;
times are of the fastest round, at the rate of the CPU's counter.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from testbed.backends.machine import Machine
from testbed.backends.tools import build_tc_plugin
from testbed.backends.uml import HOST_ROOT, Uml
from testbed.base.errors import exit_with

#: enqueue and dequeue, of red's
AIM = 1.02
#: highest ratios that pass: with a hot cache, with a cold one, and with a hot one if two bands compete
BOUNDS = {"hot": 1.3, "cold": 1.1, "bands": 1.3}
#: name of a device -> its queue; the bounds are for those of shred
QUEUES = {
    "red": "red {red}",
    "off": "shred {red} nogentle hint off",
    "dscp": "shred {red} nogentle",
    "tos": "shred {red} nogentle hint tos",
    "fqcodel": "fq_codel limit 1000",
    "cake": "cake unlimited flows",
}
OURS = ("off", "dscp", "tos")
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
{make}
result=ticks
{queues_below}
name=0 measure devices={devices}
name=cold0 measure devices={devices} cold=1
{queues_between}
name=1 measure devices={devices}
name=cold1 measure devices={devices} cold=1
name=bands measure devices={devices} mixed=1
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


def replace(red: str) -> str:
    """Shell lines that give each device its queue anew."""
    lines = []
    for name, queue in QUEUES.items():
        lines.append(f"tc qdisc del dev {name} root 2> /dev/null || true")
        lines.append(f"tc qdisc replace dev {name} root handle 1: {queue.format(red=red)}")
    return "\n".join(lines)


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
        words = {
            "make": "; ".join(f"ip link add {name} type dummy" for name in QUEUES),
            "devices": ",".join(QUEUES),
            "queues_below": replace(STATES["below min"]),
            "queues_between": replace(STATES["between"]),
        }
        script = SCRIPT.format(host=HOST_ROOT, rounds=ROUNDS, **words, **names)
        (job / "job.sh").write_text(script, encoding="ascii")
        Machine(backend.build).run(job, out, wall_limit_s=600)
        tables = {
            (f"{state}, {cache} cache", cache): table(out, f"{prefix}{index}", len(QUEUES))
            for cache, prefix in (("hot", ""), ("cold", "cold"))
            for index, state in enumerate(STATES)
        }
        tables["between, two bands, hot cache", "bands"] = table(out, "bands", len(QUEUES))
        hooks = {name: table(out, name, 2) for name in ("without", "with")}

    mhz = counter_mhz()
    print(f"kernel {backend.build.release}, counter at {mhz:.0f} MHz, {ROUNDS} rounds of 20000 packets\n")
    print(f"{'enqueue and dequeue, ns a packet':34}" + "".join(f"{name:>9}" for name in QUEUES))
    worst = dict.fromkeys(BOUNDS, 0.0)
    for (state, kind), rows in tables.items():
        print(f"  {state:32}" + "".join(f"{min(row) / mhz * 10:9.1f}" for row in rows))
        ratios = dict(zip(QUEUES, (statistics.median(own / red for own, red in zip(row, rows[0])) for row in rows)))
        print(f"  {'  of red':32}" + "".join(f"{one:9.3f}" for one in ratios.values()))
        worst[kind] = max(worst[kind], *(ratios[name] for name in OURS))
    print(f"\n{'writing the hint, ns a packet':34}{'edge':>8}{'host':>12}")
    for name, rows in hooks.items():
        print(f"  {name + ' the hook':32}" + "".join(f"{min(row) / mhz * 10:{w}.1f}" for row, w in zip(rows, (8, 12))))
    print(f"\nshred costs at most, of red (aim {AIM}):")
    for kind, bound in BOUNDS.items():
        aim, held = "met" if worst[kind] <= AIM else "missed", "holds" if worst[kind] <= bound else "MISSED"
        print(f"  {kind:6}{worst[kind]:6.3f}, aim {aim}, bound {bound}: {held}")
    return 0 if all(worst[kind] <= bound for kind, bound in BOUNDS.items()) else 1


if __name__ == "__main__":
    exit_with("bench", lambda: main(*sys.argv[1:]))
