# SPDX-License-Identifier: GPL-2.0
"""Helpers of the agent's tests: build the agent, run it in a namespace of its own, read its records as arrays."""

from __future__ import annotations

import atexit
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
    """Build the agent once a session, in a folder of its own; return its path."""
    folder = tempfile.TemporaryDirectory(prefix="lbe-agent-test.")
    atexit.register(folder.cleanup)  # and no sooner: what is registered is kept
    subprocess.run(["make", "-s", "-C", SOURCE, f"O={folder.name}"], check=True, timeout=300)
    return Path(folder.name) / "lbe-agent"


@dataclass
class Run:
    """A finished run: exit status, standard error, records."""

    status: int
    stderr: str
    out: Path

    def records(self, node: str, kind: str, dtype: np.dtype) -> np.ndarray:
        """Return all records of a file; a partial record at its end fails the test."""
        path = self.out / f"{node}.{kind}"
        assert path.stat().st_size % dtype.itemsize == 0, f"{path.name} does not hold whole records"
        return np.fromfile(path, dtype)

    def events(self, node: str, name: str, flow: int | None = None) -> list[tuple[int, int, dict[str, str]]]:
        """Return (t_ns, flow, detail) of each event with this name."""
        found = []
        for line in (self.out / f"{node}.events").read_text().splitlines():
            t_ns, number, event, *detail = line.split()
            if event == name and flow in (None, int(number)):
                words = dict(word.partition("=")[::2] for word in detail)
                found.append((int(t_ns), int(number), words))
        return found


@functools.cache
def become_root() -> tuple[list[str], list[str]]:
    """Return (words before unshare, options of unshare) with which this machine gives us root in new namespaces.

    A user namespace needs no privilege. Where the machine refuses user namespaces (in a chroot or a container, or by
    a sysctl), unshare runs as root, by sudo if need be.
    """
    own = ["--user", "--map-root-user"]
    if subprocess.run(["unshare", *own, "true"], capture_output=True, check=False).returncode == 0:
        return [], own
    return ([] if os.geteuid() == 0 else ["sudo", "-n", "--preserve-env=AGENT"]), []


def namespace(script: str, folder: Path, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a shell script as root in a network namespace of its own, which ends with the script."""
    before, own = become_root()
    return subprocess.run(
        [*before, "unshare", *own, "--net", "--mount", "--pid", "--fork", "--kill-child",
         "/bin/sh", "-eu", "-c", script],
        cwd=folder, timeout=timeout_s, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "AGENT": str(agent()), "HOME": os.devnull},
    )  # fmt: skip


def run_loopback(folder: Path, plan: str, end_s: float) -> Run:
    """Run one agent that sends to itself over lo; the qdisc of lo (1: pfifo) can be sampled."""
    (folder / "out").mkdir(exist_ok=True)
    (folder / "a.plan").write_text(f"node lo\nend_s {end_s}\nout out\n{plan}\n")
    done = namespace(
        'ip link set lo up\ntc qdisc add dev lo root handle 1: pfifo limit 1000\nexec "$AGENT" run a.plan',
        folder,
    )
    return Run(done.returncode, done.stderr, folder / "out")
