# SPDX-License-Identifier: GPL-2.0
"""--backend ssh: the same experiments on three machines with real network cards.

    job folder -> a folder for each machine (its lines of job.sh and events.sh, its plan) -> ssh: scripts/machine.sh
               -> results of all three in one folder

Each machine has its own clock. Its experiment time 0 is computed from its uptime as read over ssh, with an error of
up to half a round trip of that connection. Documentation/three-machines.md says how to wire and configure the machines.

    python3 -m testbed.backends.ssh MACHINES.toml JOB OUT      a job folder that is laid out already
"""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import JobFailed, LbeError, VirtualHang
from ..base.places import SCRIPTS

if TYPE_CHECKING:
    from ..base.progress import Report
    from .backend import RunReport, Tools

#: the nodes of an experiment that three machines can represent, and the cards that each needs
NODES = {"snd": ("eth0",), "rtr": ("west", "east"), "rcv": ("eth0",)}
#: from the first ssh command to experiment time 0: cards come up again, queues are configured
SET_UP_S = 20
AFTER_S = 30.0
SENT = ("machine.sh", "undo.sh", "traffic.sh")
ENVIRONMENT = "export LBE_AGENT=$PWD/lbe-agent\nAGENT=$PWD/traffic.sh\nMODULES=$PWD/modules\nOUT=$LBE_OUT\n"


class BadMachines(LbeError):
    """The file of the machines, or a machine, is not as required."""

    exit_status = 2


@dataclass(frozen=True)
class MachineSpec:
    """One machine: its name for ssh, and the card for each device of its node."""

    node: str
    host: str
    cards: dict[str, str]


@dataclass(frozen=True)
class Machines:
    """ssh: the command as words; speed_mbit: speed to set on the cards, 0 does not change it; folder: on each machine.

    set_up_s: time from the first ssh command to experiment time 0.
    """

    ssh: tuple[str, ...]
    speed_mbit: int
    folder: str
    set_up_s: int
    by_node: dict[str, MachineSpec]


def read_machines(path: Path) -> Machines:
    """Read the file; BadMachines names the key, the value and the allowed values."""
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadMachines(f"{path}: {error}") from error
    unknown = set(table) - {"ssh", "speed_mbit", "folder", "set_up_s", *NODES}
    if unknown:
        allowed = ", ".join(("ssh", "speed_mbit", "folder", "set_up_s", *NODES))
        raise BadMachines(f"{path}: {', '.join(sorted(unknown))}: allowed are {allowed}")
    speed_mbit = table.get("speed_mbit", 0)
    if speed_mbit not in (0, 10, 100):
        raise BadMachines(f"{path}: speed_mbit = {speed_mbit!r}: allowed are 0 (leave it), 10, 100")
    machines = {}
    for node, devices in NODES.items():
        entry = table.get(node)
        if not isinstance(entry, dict) or set(entry) != {"host", *devices}:
            raise BadMachines(f"{path}: [{node}] needs host, {', '.join(devices)} and nothing else")
        for key, value in entry.items():
            if not isinstance(value, str) or not re.fullmatch(r"[\w.@:%-]+", value):
                raise BadMachines(f"{path}: {node}.{key} = {value!r}: a name of letters, digits and . @ : % - _")
        machines[node] = MachineSpec(node, entry["host"], {device: entry[device] for device in devices})
    folder = table.get("folder", "/var/tmp/lbe-testbed")
    if not re.fullmatch(r"(/[\w.-]+)+", folder):
        raise BadMachines(f"{path}: folder = {folder!r}: an absolute path without blanks")
    set_up_s = table.get("set_up_s", SET_UP_S)
    if not isinstance(set_up_s, int) or not 5 <= set_up_s <= 600:
        raise BadMachines(f"{path}: set_up_s = {set_up_s!r}: allowed are 5 to 600")
    words = shlex.split(table.get("ssh", "ssh -o BatchMode=yes"))
    return Machines(tuple(words), speed_mbit, folder, set_up_s, machines)


# ------------------------------------------------------------------------------- a machine's part


def of_node(line: str) -> str:
    """The node to which a line of job.sh or events.sh belongs; "" for all nodes."""
    words = r"\bip netns exec (\w+) | --netns (\w+) |\b(?:ip|tc)(?: -[sj])* -n (\w+) |\bip netns add (\w+)"
    match = re.search(words, line)
    return next((group for group in match.groups() if group), "") if match else ""


def word_after(word: str, plan: str) -> str:
    """What follows a word at the beginning of a line of a plan. Raises JobFailed."""
    found = re.search(rf"^{word} (\S+)", plan, re.MULTILINE)
    if found is None:
        raise JobFailed(f"a plan has no line {word!r}", plan)
    return found[1]


def part(job: Path, node: str, zero_s: float) -> dict[str, str]:
    """The files for a node, by name. zero_s: experiment time 0 on the CLOCK_MONOTONIC of that machine."""
    script = (job / "job.sh").read_text(encoding="ascii")
    nodes = set(re.findall(r"^ip netns add (\w+)$", script, re.MULTILINE))
    if nodes != set(NODES):
        have = ", ".join(sorted(nodes))
        raise BadMachines(f"this experiment has the nodes {have}; three machines are {', '.join(NODES)}")
    lines = []
    for line in script.splitlines():
        if of_node(line) not in ("", node) or line == f"ip netns add {node}":
            continue
        if line == "ip -batch links.ip":
            lines += addresses(job, node)
        else:
            lines.append(line)
    files = {f"{node}.sh": "\n".join(lines) + "\n"}
    for path in job.iterdir():
        if path.is_file() and (path.name.startswith(f"{node}.") or path.name == "host.sysctl"):
            files[path.name] = path.read_text(encoding="ascii", errors="surrogateescape")
    plan = files.get(f"{node}.plan")
    if plan:
        plan = re.sub(r"^zero_ns \d+", f"zero_ns {round(zero_s * 1e9)}", plan, flags=re.MULTILINE)
        files[f"{node}.plan"] = re.sub(r"^out .*", "out out", plan, flags=re.MULTILINE)
    fragment = files.get(f"{node}.iperf")
    if fragment:
        files[f"{node}.iperf"] = re.sub(r"zero_cs=\d+", f"zero_cs={round(zero_s * 100)}", fragment)
    events = job / "events.sh"
    if events.exists():
        any_plan = next(job.glob("*.plan")).read_text(encoding="ascii")
        shift = round(zero_s * 100) - int(word_after("zero_ns", any_plan)) // 10_000_000
        kept = [line for line in events.read_text(encoding="ascii").splitlines() if of_node(line) in ("", node)]
        files["events.sh"] = "".join(
            re.sub(r"^until_cs (\d+)", lambda match: f"until_cs {int(match[1]) + shift}", line) + "\n" for line in kept
        )
    return files


def addresses(job: Path, node: str) -> list[str]:
    """Lines that set the hardware addresses and MTUs of links.ip on a node's devices, which are existing cards."""
    text = (job / "links.ip").read_text(encoding="ascii")
    found = re.findall(r"name (\w+) netns (\w+) mtu (\d+) address ([\da-f:]+)", text)
    return [
        f"ip -n {node} link set dev {device} address {address} mtu {mtu}"
        for device, of, mtu, address in found
        if of == node
    ]


# ---------------------------------------------------------------------------------------- over ssh


def remote(machines: Machines, node: str, command: str, data: bytes = b"", limit_s: float = 60) -> bytes:
    """Run a command on a machine; BadMachines with its standard error if it fails."""
    host = machines.by_node[node].host
    words = [*machines.ssh, host, command]
    try:
        done = subprocess.run(words, check=False, input=data, capture_output=True, timeout=limit_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadMachines(f"{node} ({host}): {error}") from error
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip()[-600:]
        raise BadMachines(f"{node} ({host}): {command.split()[0]} returned {done.returncode}: {text}")
    return done.stdout


def clock_offset_s(machines: Machines, node: str) -> float:
    """A machine's uptime minus the local monotonic clock, from the quickest of three answers."""
    best = (float("inf"), 0.0)
    for _ in range(3):
        before = time.monotonic()
        uptime_s = float(remote(machines, node, "cat /proc/uptime").split()[0])
        after = time.monotonic()
        best = min(best, (after - before, uptime_s - (before + after) / 2))
    return best[1]


def archive_of(files: dict[str, str], copies: dict[str, Path]) -> bytes:
    """A tar archive of texts and of files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            data = text.encode("ascii", errors="surrogateescape")
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
        for name, path in copies.items():
            data = path.read_bytes()
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def run_job(machines: Machines, job: Path, out: Path, agent: Path, length_s: float) -> dict[str, float]:
    """Run a complete job folder, with results in ``out``. Returns experiment time 0 of each node on its own clock."""
    out.mkdir(parents=True, exist_ok=True)
    offsets = {node: clock_offset_s(machines, node) for node in NODES}
    zero_at = time.monotonic() + machines.set_up_s
    zeros = {node: zero_at + offsets[node] for node in NODES}
    (out / "zeros.json").write_text(json.dumps(zeros), encoding="ascii")
    limit_s = machines.set_up_s + length_s + AFTER_S
    copies = {name: SCRIPTS / name for name in SENT}
    copies |= {"bin/insmod": SCRIPTS / "insmod", "lbe-agent": agent}
    copies |= {path.name: path for path in job.glob("*.trace")}

    def one(node: str) -> None:
        files = part(job, node, zeros[node]) | {"env.sh": ENVIRONMENT}
        folder = f"{machines.folder}.{node}"
        unpack = f"rm -rf {folder} && mkdir -p {folder} && tar -C {folder} -xf -"
        remote(machines, node, unpack, archive_of(files, copies))
        pairs = " ".join(f"{device}={card}" for device, card in machines.by_node[node].cards.items())
        command = f"sh {folder}/machine.sh {node} {machines.speed_mbit} {limit_s:g} {pairs}"
        remote(machines, node, command, limit_s=limit_s + 60)
        data = remote(machines, node, f"tar -C {folder}/out -cf - . && rm -rf {folder}")
        kept = out / f".{node}.tar"
        kept.write_bytes(data)
        subprocess.run(["tar", "-C", str(out), "--no-same-owner", "-xf", str(kept)], check=True)
        kept.unlink()

    with ThreadPoolExecutor(len(NODES)) as pool:
        for done in [pool.submit(one, node) for node in NODES]:
            done.result()
    for node in NODES:
        status = (out / f"{node}.status").read_text(encoding="utf-8").strip()
        log = (out / f"{node}.log").read_text(encoding="utf-8", errors="replace")[-2000:]
        if status.startswith("hang:"):
            raise VirtualHang(status, log)
        if status != "ok":
            raise JobFailed(status.removeprefix("fail:").strip(), log)
    return zeros


class Ssh:
    """Three machines."""

    name = "ssh"
    at_once = 1

    def __init__(self, file: Path):
        self.machines = read_machines(file)
        self._facts: dict[str, str] = {}
        # set by prepare()
        self._tools: Tools

    def prepare(self, modules: Iterable[str], report: Report | None = None) -> None:
        """Query each machine's kernel, programs, cards and modules; the error names what is missing."""
        from .backend import Tools
        from .netns import PROGRAMS
        from .tools import build_agent

        names = sorted(set(modules))
        if "tcp_lp_intree" in names:
            raise BadMachines("lp_intree cannot run where ours is installed and comes first: leave it out by --case")
        for node, machine in self.machines.by_node.items():
            questions = [
                'PATH="$PATH:/usr/sbin:/sbin"; [ "$(id -u)" = 0 ] || echo "is not root there"',
                *(f'command -v {name} >/dev/null || echo "has no {name}"' for name in (*PROGRAMS, "ethtool")),
                *(f'modinfo -n {name} >/dev/null 2>&1 || echo "has no module {name}"' for name in names),
                *(f'[ -e /sys/class/net/{card} ] || echo "has no card {card}"' for card in machine.cards.values()),
                'echo "kernel $(uname -sr)"',
            ]
            said = remote(self.machines, node, "; ".join(questions)).decode()
            lacks = [line for line in said.splitlines() if not line.startswith("kernel ")]
            if lacks:
                raise BadMachines(f"{node} ({machine.host}): " + "; ".join(lacks))
            self._facts[node] = said.split("kernel ", 1)[1].strip()
        content = dict.fromkeys(names, repr(sorted(self._facts.items())))
        self._tools = Tools(build_agent(), {name: Path(name) for name in names}, "installed", content)

    def facts(self) -> dict[str, str]:
        """Facts about the kernels."""
        return {"series": "ssh", "flavour": "running", "release": "; ".join(self._facts.values()), **self._facts}

    def tools(self) -> Tools:
        """Agent and modules."""
        return self._tools

    def key(self) -> str:
        """A new key for each call: runs on real machines are never taken from the cache."""
        return f"ssh-{time.time_ns()}"

    def run(
        self, job: Path, out: Path, *, seed: int, mem_mb: int, virtual_limit_s: float, wall_limit_s: float
    ) -> RunReport:
        """Run the job on the three machines; seed and mem_mb are ignored."""
        from . import iperf
        from .backend import RunReport

        began = time.monotonic()
        taken = iperf.divide(job)
        zeros = run_job(self.machines, job, out, self._tools.agent, virtual_limit_s)
        iperf.collect(taken, out, zeros)
        wall_s = time.monotonic() - began
        return RunReport(wall_s, wall_s)


def main(argv: list[str]) -> int:
    """Entry point. Exit status: 0 success, 1 failure, 2 wrong usage."""
    if len(argv) != 3:
        print(__doc__.strip().splitlines()[-1].strip(), file=sys.stderr)
        return 2
    job, out = Path(argv[1]), Path(argv[2])
    try:
        ends = [word_after("end_s", path.read_text(encoding="ascii")) for path in job.glob("*.plan")]
        run_job(read_machines(Path(argv[0])), job, out, job / "lbe-agent", max(map(float, ends)))
    except LbeError as error:
        print(f"testbed.backends.ssh: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
