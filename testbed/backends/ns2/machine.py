# SPDX-License-Identifier: GPL-2.0
"""The backend: runs ns on a plan and converts its output to the records of the other backends."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ...base.content import hash_of_programs
from ...base.errors import LbeError
from ...base.progress import Report, silent
from ...measure.series import Series
from ...results.files import Record
from ...run.job import Job
from ...spec.records import QUEUE, RECV, SEND, UNFINISHED, WEB
from ..backend import BackendError, Tools
from . import plan

HERE = Path(__file__).parent
NETWORK = HERE / "network.tcl"
PLAN = HERE / "plan.py"
PACKETS = HERE / "packets.py"
PROGRAM = "ns"
PACKAGE = "ns2"
#: columns of the files that network.tcl writes
COLUMNS = {
    "recv": ("t_s", "flow", "octets"),
    "send": ("t_s", "flow", "cwnd", "ssthresh", "srtt_us", "again"),
    "queue": ("t_s", "queue", "packets", "octets", "drops", "out_octets", "out_packets"),
    "web": ("t_s", "flow", "octets", "dur_us", "page"),
}


class Ns2Failed(LbeError):
    """A simulator failed, or its output is incomplete; the text has the end of its output."""


class NsTools(Tools):
    """Tools without modules: a plan expresses what a job's modules do in ns-2's terms, or is refused."""

    def module_hash(self, name: str) -> str:
        """Always empty: no module file affects a result."""
        return ""


def table(folder: Path, name: str, title: str = "ns-2") -> dict[str, np.ndarray]:
    """The columns of a file that the run wrote. Raises Ns2Failed."""
    columns = COLUMNS[name]
    try:
        lines = (folder / name).read_text(encoding="ascii").splitlines()
        rows = np.array([line.split() for line in lines], dtype=float)
    except (OSError, ValueError) as error:
        raise Ns2Failed(f"{title}: {name}: {error}") from error
    if rows.size == 0:
        rows = np.empty((0, len(columns)))
    if rows.shape[1] != len(columns):
        raise Ns2Failed(f"{title}: {name}: {rows.shape[1]} columns instead of {len(columns)}")
    return dict(zip(columns, rows.T))


def unwrapped(counts: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Counts of octets that ns-2 keeps in an int of 32 bits, as they would be in a wider one. of: whose each one is."""
    made = counts.copy()
    for one in np.unique(of):
        there = of == one
        steps = np.diff(counts[there], prepend=0.0)
        made[there] = np.cumsum(np.where(steps < -(2.0**31), steps + 2.0**32, steps))
    return made


def _filled(dtype: np.dtype, count: int, **columns: np.ndarray) -> np.ndarray:
    made = np.zeros(count, dtype=dtype)
    for name, values in columns.items():
        made[name] = np.round(values)
    return made


def _payload_share(job: Job) -> dict[int, float]:
    """Share of the payload in the octets of IP packets, by flow: the factor for a receiver's count.

    For TCP it is the factor that the topology's capacity assumes, so that a share of the link is the same with and
    without timestamps in the kernel's packets.
    """
    topology, shares = job.setting.topology, {}
    for flow in job.flows:
        if flow.spec.proto == "tcp":
            shares[flow.id] = topology.tcp_capacity_mbit() / topology.rate_mbit
        elif flow.spec.kind == "trace":
            shares[flow.id] = 1.0
        else:
            size = flow.spec.pkt_bytes or topology.mtu - plan.UDP_HEADERS_BYTES
            shares[flow.id] = size / (size + plan.UDP_HEADERS_BYTES)
    return shares


def series(job: Job, folder: Path, title: str = "ns-2", shares: dict[int, float] | None = None) -> Series:
    """The records of a run's files. Raises Ns2Failed. shares: of the payload in a receiver's count, by flow."""
    recv, send, queue, web = (table(folder, name, title) for name in COLUMNS)
    if len(queue["t_s"]) == 0 or queue["t_s"].max() + 0.001 < job.setting.head.measure_s[1] - 1:
        raise Ns2Failed(f"{title}: the run ended before its time")
    share = _payload_share(job) if shares is None else shares
    ratio = np.array([share.get(int(flow), 1.0) for flow in recv["flow"]])
    received = unwrapped(recv["octets"], recv["flow"]) * ratio
    done = web["dur_us"] >= 0
    return Series(
        _filled(
            SEND,
            len(send["t_s"]),
            t_ns=send["t_s"] * 1e9,
            flow=send["flow"],
            cwnd_pkts=send["cwnd"],
            ssthresh_pkts=send["ssthresh"],
            srtt_us=send["srtt_us"],
            retrans_pkts=send["again"],
        ),
        _filled(RECV, len(recv["t_s"]), t_ns=recv["t_s"] * 1e9, flow=recv["flow"], bytes=received),
        _filled(
            QUEUE,
            len(queue["t_s"]),
            t_ns=queue["t_s"] * 1e9,
            queue=queue["queue"],
            qlen_pkts=queue["packets"],
            backlog_bytes=queue["octets"],
            drops=queue["drops"],
            sent_bytes=unwrapped(queue["out_octets"], queue["queue"]),
            sent_pkts=queue["out_packets"],
        ),
        [],
        _filled(
            WEB,
            len(web["t_s"]),
            t_ns=web["t_s"] * 1e9,
            dur_us=np.where(done, web["dur_us"], 0),
            bytes=web["octets"],
            flow=web["flow"],
            objects=np.ones(len(done)),
            flags=np.where(done, 0, UNFINISHED),
        ),
    )


class Ns2:
    """ns-2 as Debian packages it."""

    name = "ns2"
    at_once = None

    def __init__(self) -> None:
        self.version = ""

    def prepare(self, modules: Iterable[str], report: Report = silent) -> None:
        """Find the program and its version. Raises BackendError."""
        program = shutil.which(PROGRAM)
        if program is None:
            raise BackendError(
                f"ns-2: no program {PROGRAM!r} here: scripts/deps ns2 installs Debian's package {PACKAGE}"
            )
        asked = ["dpkg-query", "-W", "-f", "${Version}", PACKAGE]
        try:
            self.version = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            self.version = hashlib.sha256(Path(program).read_bytes()).hexdigest()[:16]

    def facts(self) -> dict[str, str]:
        """Facts about the simulator, in place of the kernel's."""
        program = f"network.tcl {hash_of_programs([NETWORK])[:16]}"
        return {"series": "ns-2", "flavour": program, "release": f"ns-2 {self.version}", "source": "", "key": ""}

    def tools(self) -> Tools:
        """The Tcl program takes the place of the agent."""
        return NsTools(NETWORK)

    def key(self) -> str:
        """Key of ns-2's version, the Tcl program, and the code that writes plans and reads output."""
        return f"ns2-{self.version}-{hash_of_programs([NETWORK, PLAN, PACKETS, Path(__file__)])[:16]}"

    def record(self, job: Job, wall_limit_s: float) -> Record:
        """One run. Raises CannotSay, Ns2Failed."""
        with tempfile.TemporaryDirectory(prefix="lbe-ns2.") as name:
            folder = Path(name)
            path = plan.write(job, folder)
            try:
                done = subprocess.run(
                    [PROGRAM, str(NETWORK), str(path)],
                    check=False,
                    capture_output=True,
                    text=True,
                    timeout=wall_limit_s,
                )
            except subprocess.TimeoutExpired as error:
                raise Ns2Failed(f"ns-2: not done after {wall_limit_s:.0f} s") from error
            if done.returncode:
                raise Ns2Failed(f"ns-2: exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
            facts = {"uname": f"ns-2 {self.version}", "sysctls": {}, "qdiscs": {}, "counters": {}, "modules": {}}
            return Record(facts, series(job, folder))
