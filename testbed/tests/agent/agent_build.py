# SPDX-License-Identifier: GPL-2.0
"""What the agent's tests share: the built agent, a namespace to run it in, its records as arrays."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).resolve().parents[2] / "agent"

SEND = np.dtype(
    [("t_ns", "<u8")]
    + [
        (name, "<u4")
        for name in (
            "flow",
            "cwnd_pkts",
            "ssthresh_pkts",
            "srtt_us",
            "rttvar_us",
            "minrtt_us",
            "mss_bytes",
            "delivered_pkts",
            "retrans_pkts",
            "lost_pkts",
            "unacked_pkts",
            "ca_state",
        )
    ]
    + [("bytes_acked", "<u8"), ("bytes_sent", "<u8"), ("cc", "<u4", 5)]
)
RECV = np.dtype([("t_ns", "<u8"), ("flow", "<u4"), ("reserved", "<u4"), ("bytes", "<u8")])
QUEUE = np.dtype(
    [("t_ns", "<u8")]
    + [(name, "<u4") for name in ("queue", "qlen_pkts", "backlog_bytes", "drops", "overlimits", "requeues")]
    + [("sent_bytes", "<u8"), ("sent_pkts", "<u4"), ("marks", "<u4")]
)
WEB = np.dtype([("t_ns", "<u8")] + [(name, "<u4") for name in ("dur_us", "bytes", "page", "objects", "flow", "flags")])
WEB_SYN_RETRANS, WEB_FAILED, WEB_PAGE, WEB_UNFINISHED = 1, 2, 4, 8


@functools.cache
def agent() -> Path:
    """The agent, built once a session in a folder of its own."""
    folder = tempfile.TemporaryDirectory(prefix="lbe-agent-test.")
    agent.folder = folder  # removed with the process
    subprocess.run(["make", "-s", "-C", SOURCE, f"O={folder.name}"], check=True, timeout=300)
    return Path(folder.name) / "lbe-agent"


@dataclass
class Run:
    """A finished run: exit status, standard error, records."""

    status: int
    stderr: str
    out: Path

    def records(self, node: str, kind: str, dtype: np.dtype) -> np.ndarray:
        """All records of a file, which must hold whole ones only."""
        path = self.out / f"{node}.{kind}"
        assert path.stat().st_size % dtype.itemsize == 0, f"{path.name} does not hold whole records"
        return np.fromfile(path, dtype)

    def events(self, node: str, name: str, flow: int | None = None) -> list[tuple[int, int, dict[str, str]]]:
        """(t_ns, flow, detail) of the events of a name."""
        found = []
        for line in (self.out / f"{node}.events").read_text().splitlines():
            t_ns, number, event, *detail = line.split()
            if event == name and flow in (None, int(number)):
                words = dict(word.partition("=")[::2] for word in detail)
                found.append((int(t_ns), int(number), words))
        return found


@functools.cache
def become_root() -> tuple[list[str], list[str]]:
    """(words before unshare, options of unshare) that make one root of new namespaces on this machine.

    A user namespace asks nobody. Where the machine refuses those (a chroot, a container, a sysctl), root does it.
    """
    own = ["--user", "--map-root-user"]
    if subprocess.run(["unshare", *own, "true"], capture_output=True, check=False).returncode == 0:
        return [], own
    return ([] if os.geteuid() == 0 else ["sudo", "-n", "--preserve-env=AGENT"]), []


def namespace(script: str, folder: Path, timeout_s: float = 60) -> subprocess.CompletedProcess:
    """A shell script as root of a network namespace of its own, which is gone after it."""
    before, own = become_root()
    return subprocess.run(
        [*before, "unshare", *own, "--net", "--mount", "--pid", "--fork", "--kill-child",
         "/bin/sh", "-eu", "-c", script],
        cwd=folder, timeout=timeout_s, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "AGENT": str(agent()), "HOME": os.devnull},
    )  # fmt: skip


def run_loopback(folder: Path, plan: str, end_s: float) -> Run:
    """One agent that talks to itself through lo, which has a queue to sample (1: pfifo)."""
    (folder / "out").mkdir(exist_ok=True)
    (folder / "a.plan").write_text(f"node lo\nend_s {end_s}\nout out\n{plan}\n")
    done = namespace(
        'ip link set lo up\ntc qdisc add dev lo root handle 1: pfifo limit 1000\nexec "$AGENT" run a.plan',
        folder,
    )
    return Run(done.returncode, done.stderr, folder / "out")
