# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed shell: an interactive shell on an experiment's nodes in real time."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..backends.machine import Machine, memory_folder, read_text, run_folder, tail_of
from ..backends.uml import Uml
from ..base.errors import JobFailed
from ..base.places import REPO, SCRIPTS
from ..base.progress import make_progress
from ..run import job as jobs
from ..spec.experiment import Experiment, load
from .shared import settings

#: the guest's watchdog needs a limit, but a shell should never reach it
LIMIT_S = 30 * 86400
RC = SCRIPTS / "shell.sh"
#: modules of the project, which can all be loaded together (the in-tree tcp_lp cannot be loaded with the project's)
MODULES = ("tcp_lp", "tcp_lowpri", "tcp_ledbat", "tcp_lbe", "vulture", "sch_shred")


@contextlib.contextmanager
def terminal_kept() -> Iterator[None]:
    """Restore the terminal's settings, which the guest's console may change."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _job(experiment: Experiment, sets: dict[str, Any]) -> jobs.Job:
    """The job of the experiment's first case, with a shell in place of the traffic."""
    case = experiment.cases()[0]
    job = jobs.make(experiment.name, case, 1, experiment.setting(case, sets=sets))
    ours = [name for name in MODULES if (REPO / name / "Kbuild").is_file()]
    job.modules = [*ours, *[name for name in job.modules if name not in ours and name != "tcp_lp_intree"]]
    nodes = " ".join(job.network.nodes)
    job.files["job.sh"] = jobs.shell_script(
        job,
        [
            f"export AGENT NODES='{nodes}' RCV={job.network.addresses['rcv'][4]} TERM=${{LBE_TERM:-linux}}",
            "setsid -c -w bash --noprofile --rcfile shell.rc -i < /dev/tty0 > /dev/tty0 2>&1 || true",
        ],
    )
    job.files["shell.rc"] = RC.read_text(encoding="ascii")
    return job


def command(machine: Machine) -> list[str]:
    """The machine's command line, changed to the host's clock and to the terminal as its console."""
    words = [word for word in machine.command() if not word.startswith(("time-travel", "con0="))]
    return [*words, "con0=fd:0,fd:1", "quiet", "loglevel=1"]


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
    sub = commands.add_parser("shell", help="a prompt on an experiment's nodes in real time, with the modules loaded")
    sub.add_argument(
        "name",
        nargs="?",
        default="lp_beside_cubic",
        help="experiment whose nodes are set up (default: lp_beside_cubic)",
    )
    sub.add_argument("--kernel", metavar="SERIES", help="6.1, 6.12 (default; else $LBE_SERIES) or 7.2")
    sub.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a parameter; may be repeated"
    )
    sub.set_defaults(do=lambda args: run_shell(load(args.name), args.kernel, settings(args.set)))


def run_shell(experiment: Experiment, series: str | None, sets: dict[str, Any]) -> int:
    """Boot, run the shell, power off. Returns the exit status; JobFailed if the nodes could not be set up."""
    job = _job(experiment, sets)
    backend = Uml(series)
    progress = make_progress()
    try:
        backend.prepare(job.modules, progress)
    finally:
        progress.close()
    machine = Machine(backend.build, mem_mb=job.setting.head.mem_mb)
    with tempfile.TemporaryDirectory(prefix="lbe-shell.") as name, run_folder() as run, terminal_kept():
        folder = Path(name)
        (folder / "job").mkdir()
        (folder / "out").mkdir()
        job.write(folder / "job")
        backend.lay_out(folder / "job")
        machine.prepare(run, folder / "job", folder / "out", job.seed, [], LIMIT_S)
        environment = {
            "PATH": os.defpath + ":/usr/sbin:/sbin",
            "HOME": str(run),
            "LBE_SEED": str(job.seed),
            "TMPDIR": str(memory_folder(machine.mem_mb, run)),
        }
        # it stays in this process group, which owns the terminal, so that Ctrl-C reaches the guest
        process = subprocess.Popen(command(machine), env=environment, cwd=run)
        try:
            process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        status = (read_text(folder / "out" / "status") or "no status").strip()
        if status != "ok":
            raise JobFailed(status.removeprefix("fail: "), tail_of(read_text(folder / "out" / "job.log") or ""))
    return 0
