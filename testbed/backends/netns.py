# SPDX-License-Identifier: GPL-2.0
"""--backend host: the same experiments in namespaces of the running kernel, in real time, traffic by iperf3.

Needs root and the permission to load modules; without them it refuses to run and changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from ..base.content import hash_of_programs
from ..base.errors import JobFailed, VirtualHang
from ..base.places import SCRIPTS, TESTBED
from ..base.progress import Report, silent
from . import iperf
from .backend import BackendError, RunReport, Tools
from .machine import read_text, tail_of
from .tools import build_agent

SCRIPT = SCRIPTS / "host.sh"
PROGRAMS = ("ip", "tc", "ss", "iperf3", "unshare", "modprobe", "sysctl")
REAL_EXTRA_S = 30
#: the files that run a job
AROUND = (
    *(TESTBED / "backends" / f"{name}.py" for name in ("iperf", "netns")),
    *(SCRIPTS / f"{name}.sh" for name in ("host", "undo", "traffic", "now")),
)
ENVIRONMENT = "export LBE_AGENT=/tmp/job/lbe-agent\nAGENT=/tmp/job/traffic.sh\nMODULES=/tmp/job/modules\nOUT=$LBE_OUT\n"


def lay_out(job: Path, agent: Path) -> iperf.Taken:
    """Complete a written job folder so that host.sh can run it from any path."""
    taken = iperf.divide(job)
    iperf.start_when_ready(job)
    (job / "env.sh").write_text(ENVIRONMENT, encoding="ascii")
    (job / "bin").mkdir(exist_ok=True)
    shutil.copy(agent, job / "lbe-agent")
    for name, target in (("traffic.sh", "traffic.sh"), ("undo.sh", "undo.sh"), ("insmod", "bin/insmod")):
        shutil.copy(SCRIPTS / name, job / target)
    for name in ("lbe-agent", "traffic.sh", "bin/insmod"):
        (job / name).chmod(0o755)
    return taken


def need_success(out: Path) -> None:
    """Raise the failure that the status file reports, if any."""
    status = (read_text(out / "status") or "fail: no status").strip()
    log = tail_of(read_text(out / "job.log") or "")
    if status.startswith("hang:"):
        raise VirtualHang(status.removeprefix("hang:").strip(), log)
    if status != "ok":
        raise JobFailed(status.removeprefix("fail:").strip(), log)


def module_file(name: str) -> Path | None:
    """File in which modprobe finds a module, None if it finds none; for a built-in module "(builtin)", not a path."""
    done = subprocess.run(["modinfo", "-n", name], check=False, capture_output=True, text=True)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


class Host:
    """The running kernel."""

    name = "host"
    at_once = 1

    def __init__(self) -> None:
        # set by prepare()
        self._tools: Tools

    def prepare(self, modules: Iterable[str], report: Report = silent) -> None:
        """Check the requirements, with an error of one sentence for each that is not met, and build the agent."""
        release = platform.release()
        if os.geteuid() != 0:
            raise BackendError(
                "--backend host makes namespaces and loads modules into the running kernel, which needs root: "
                "say sudo -E python3 -m testbed ..., or use --backend uml, which needs nothing"
            )
        path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
        missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
        if missing:
            raise BackendError(f"--backend host needs {', '.join(missing)}; `scripts/deps host` installs them")
        found = {name: module_file(name) for name in sorted(set(modules))}
        files = {name: file for name, file in found.items() if file is not None}
        absent = [name for name in found if name not in files]
        if "tcp_lp_intree" in absent:
            raise BackendError(
                "--backend host cannot run lp_intree: on an installed system both modules are named tcp_lp, and ours "
                "comes first; use --case to leave it out"
            )
        if absent:
            raise BackendError(
                f"the running kernel {release} has no module {', '.join(absent)}: `sudo make dkms` or "
                "`make modules && sudo make install` installs ours; --backend uml and qemu need none"
            )
        unloaded = [name for name in files if not Path("/sys/module", name).exists()]
        locked = (read_text(Path("/proc/sys/kernel/modules_disabled")) or "0").strip() == "1"
        if unloaded and locked:
            raise BackendError(
                f"the running kernel takes no modules any more (kernel.modules_disabled = 1), and "
                f"{', '.join(unloaded)} {'is' if len(unloaded) == 1 else 'are'} not loaded"
            )
        content = {
            name: hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else release
            for name, file in files.items()
        }
        self._tools = Tools(build_agent(report), files, "installed", content)

    def facts(self) -> dict[str, str]:
        """Facts about the kernel."""
        return {"series": "host", "flavour": "running", "release": platform.release(), "source": platform.version()}

    def tools(self) -> Tools:
        """Agent and modules."""
        return self._tools

    def key(self) -> str:
        """Key of the kernel's release and version, and of the files that run a job."""
        return f"host-{platform.release()}-{platform.version()}-{hash_of_programs(AROUND)[:16]}"

    def run(
        self, job: Path, out: Path, *, seed: int, mem_mb: int, virtual_limit_s: float, wall_limit_s: float
    ) -> RunReport:
        """Run the job in real time; mem_mb is ignored, and the seed does not affect the kernel."""
        taken = lay_out(job, self._tools.agent)
        began = time.monotonic()
        subprocess.run(
            ["sh", str(SCRIPT), str(job), str(out), f"{virtual_limit_s + REAL_EXTRA_S:g}"],
            check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin", "LBE_SEED": str(seed)},
        )  # fmt: skip
        need_success(out)
        iperf.collect(taken, out)
        wall_s = time.monotonic() - began
        return RunReport(wall_s, wall_s)
