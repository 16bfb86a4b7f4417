# SPDX-License-Identifier: GPL-2.0
"""The cost of control: the same traffic in a namespace with flows under control and in one without, in turns.

    python3 -m vulture.tests.bench [--write] [SERIES]

Prints a table of the cost of a packet and of opening and closing a connection, as ratios to the namespace without, at 1
to 100,000 connections under control, and the memory of each; --write puts the table into Documentation/vulture.md, too.
Two more rows are of traffic that is not under control: with the module loaded and not used, against the kernel without
it, and in a namespace with a rule that matches none of it, against one without rules. Exit status 1 if the cost grows
with the number under control by more than BOUND. Ratios are medians over rounds that took turns, so that what else the
machine does falls on both; times are of the fastest round, at the rate of the CPU's counter.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from sch_shred.tests.bench import counter_mhz
from testbed.backends.machine import Machine
from testbed.backends.tools import build_vulturectl
from testbed.backends.uml import HOST_ROOT, Uml
from testbed.base.errors import BuildFailed, LbeError, exit_with
from testbed.base.places import REPO

#: "flat": the ratio with most flows over the ratio with one; 10 % is the spread of a ratio from run to run
BOUND = 1.10
FLOWS = (1, 100, 10_000, 100_000)
ROUNDS = 31
#: where the memory of a flow is measured: enough to average, with as many not under control beside them
MEASURED = 10_000
#: 100,000 sockets and as many flows take about 0.8 GiB
MEM_MB = 4096
#: rows of traffic that is not under control, by the file that the guest writes
UNTOUCHED = {"idle": "loaded, not used", "foreign": "beside a rule"}
SOURCE = Path(__file__).with_name("bench_traffic.c")
PAGE = REPO / "Documentation" / "vulture.md"
BLOCK = re.compile(r"(?<=<!--made by python3 -m vulture\.tests\.bench-->\n).*?(?=<!--/made-->)", re.DOTALL)
HEAD = ("traffic", "packet, ns", "without", "ratio", "open and close, ns", "without", "ratio", "bytes each")
Numbers = dict[int | str, dict[str, list[int]]]


class BadPage(LbeError):
    """The page has no place for the table."""


SCRIPT = """
set -eu
mkdir /tmp/bin
cp bench_traffic vulturectl /tmp/bin
export PATH=/tmp/bin:$PATH
cat > /tmp/bin/count_flows <<'END'
#!/bin/sh
echo flows $(ip netns exec with vulturectl --json list | grep -o '"id"' | wc -l)
END
chmod +x /tmp/bin/count_flows
# A page for each of 100,000 sockets that hold no more than a FIN is over what TCP allows itself here. And the ends
# that closed must stay (in time-wait), or their ports are taken again and the RST ends a connection of the 100,000.
sysctl -q -w net.ipv4.tcp_mem='1000000 1000000 1000000'
for ns in with plain foreign; do
    ip netns add $ns
    ip -n $ns link set lo up mtu 1500
    ip netns exec $ns sysctl -q -w net.core.somaxconn=65535 net.ipv4.tcp_max_syn_backlog=65535 \\
        net.ipv4.ip_local_port_range='1024 65000' net.ipv4.tcp_max_tw_buckets=300000
done
bench_traffic beside plain plain {rounds} 'insmod {host}{module}' 'rmmod vulture' > "$LBE_OUT/idle"
insmod {host}{module}
ip netns exec foreign vulturectl rule add --remote-port 9
bench_traffic beside foreign plain {rounds} > "$LBE_OUT/foreign"
ip netns exec with vulturectl set -m 200000
for port in 7000 7001 7002 7003 7004 7005; do ip netns exec with vulturectl rule add --local-port $port; done
for flows in {flows}; do
    bench_traffic $flows {rounds} > "$LBE_OUT/$flows"
    sleep 2
done
ip netns exec with vulturectl --json show > "$LBE_OUT/show"
"""


def measure(series: str) -> tuple[str, Numbers]:
    """(the kernel, numbers by name for each of FLOWS and UNTOUCHED)."""
    backend = Uml(series)
    backend.prepare(["vulture"])
    with tempfile.TemporaryDirectory(prefix="lbe-bench.") as folder:
        job, out = Path(folder) / "job", Path(folder) / "out"
        job.mkdir()
        command = ["cc", "-O2", "-Wall", "-Wextra", "-o", str(job / "bench_traffic"), str(SOURCE)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise BuildFailed(f"{SOURCE.name} does not build:\n{done.stderr}")
        (job / "vulturectl").write_bytes(build_vulturectl().read_bytes())
        (job / "vulturectl").chmod(0o755)
        words = {"host": HOST_ROOT, "module": backend.tools().modules["vulture"], "rounds": ROUNDS}
        (job / "job.sh").write_text(SCRIPT.format(flows=" ".join(map(str, FLOWS)), **words), encoding="ascii")
        Machine(backend.build, mem_mb=MEM_MB).run(job, out, wall_limit_s=600)
        numbers: Numbers = {}
        rows: tuple[int | str, ...] = (*FLOWS, *UNTOUCHED)
        for row in rows:
            numbers[row] = defaultdict(list)
            for line in (out / str(row)).read_text(encoding="ascii").splitlines():
                name, number = line.split()
                numbers[row][name].append(int(number))
    return backend.build.release, numbers


def ratio(numbers: dict[str, list[int]], what: str) -> float:
    """Median over rounds of with / without."""
    return statistics.median(a / b for a, b in zip(numbers[f"{what}_with"], numbers[f"{what}_plain"], strict=True))


def bytes_each(numbers: dict[str, list[int]]) -> int:
    """Memory of a connection under control, in the row of MEASURED."""
    return round((numbers["filled_with"][0] - numbers["filled_plain"][0]) * 1024 / (MEASURED - 1))


def table(kernel: str, numbers: Numbers, mhz: float) -> str:
    """The numbers as a table of a page."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 1)]
    for row, found in numbers.items():
        cells = [UNTOUCHED.get(str(row), f"{row} under control")]
        for what in ("packet", "flow"):
            cells += [f"{min(found[f'{what}_{side}']) / mhz * 1e3:.0f}" for side in ("with", "plain")]
            cells.append(f"{ratio(found, what):.3f}")
        cells.append(str(bytes_each(found)) if row == MEASURED else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Kernel {kernel}, {ROUNDS} rounds.", ""])


def with_table(text: str, made: str) -> str:
    """A page with this table in place of the one that it has."""
    if len(BLOCK.findall(text)) != 1:
        raise BadPage(f"{PAGE.name}: there is not one <!--made by python3 -m vulture.tests.bench--> ... <!--/made-->")
    return BLOCK.sub(lambda _: made, text)


def main(*words: str) -> int:
    """Measure and print."""
    write, (series, *more) = "--write" in words, [*(word for word in words if word != "--write"), "6.12"]
    if len(more) > 1 or series.startswith("-"):
        print(f"usage: python3 -m vulture.tests.bench [--write] [SERIES], not {' '.join(words)!r}", file=sys.stderr)
        return 2
    kernel, numbers = measure(series)
    mhz = counter_mhz()
    print(f"kernel {kernel}, counter at {mhz:.0f} MHz, {ROUNDS} rounds of 2000 packets and of 200 connections\n")
    heads = {"under control": 18, "packet, ns": 12, "without": 9, "ratio": 7}
    heads2 = {"open+close, ns": 16, "without": 9, "ratio": 7, "bytes each": 12}
    print("".join(f"{text:>{wide}}" for some in (heads, heads2) for text, wide in some.items()))
    for row, found in numbers.items():
        if row in FLOWS and found["flows"] != [row]:
            print(f"bench: {found['flows']} connections were under control, not {row}", file=sys.stderr)
            return 1
        cells = f"{UNTOUCHED.get(str(row), str(row)):>18}"
        for what, wide in (("packet", 12), ("flow", 16)):
            fastest = [min(found[f"{what}_{side}"]) / mhz * 1e3 for side in ("with", "plain")]
            cells += f"{fastest[0]:{wide}.0f}{fastest[1]:9.0f}{ratio(found, what):7.3f}"
        if row == MEASURED:
            cells += f"{bytes_each(found):12}"
        print(cells)
    if write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), table(kernel, numbers, mhz)), encoding="utf-8")
    worst = max(ratio(numbers[FLOWS[-1]], what) / ratio(numbers[FLOWS[0]], what) for what in ("packet", "flow"))
    verdict = "met" if worst <= BOUND else "missed"
    print(f"\n{FLOWS[-1]} connections cost {worst:.3f} of one, a packet or a connection; aim {BOUND}: {verdict}")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    exit_with("bench", lambda: main(*sys.argv[1:]))
