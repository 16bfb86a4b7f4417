# SPDX-License-Identifier: GPL-2.0
"""The backend: compiles network.cc, runs it on a plan, and reads its output."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ...base.content import hash_of_programs
from ...base.errors import LbeError
from ...base.progress import Report, silent
from ...results.files import Record
from ...run.job import Job
from ..backend import BackendError, Tools
from ..ns2 import machine as form
from . import package, plan

HERE = Path(__file__).parent
NETWORK = HERE / "network.cc"
PLAN = HERE / "plan.py"


class Ns3Failed(LbeError):
    """The program failed; the text has the end of its output."""


class Ns3:
    """ns-3 as its package for Python has it."""

    name = "ns3"
    at_once = None

    def __init__(self) -> None:
        self.program = Path()

    def prepare(self, modules: Iterable[str], report: Report = silent) -> None:
        """Compile the program. Raises BackendError."""
        try:
            self.program = package.ensure(NETWORK, report)
        except LbeError as error:
            raise BackendError(str(error)) from error

    def facts(self) -> dict[str, str]:
        """Facts about the simulator, in place of the kernel's."""
        program = f"network.cc {hash_of_programs([NETWORK])[:16]}"
        return {"series": "ns-3", "flavour": program, "release": f"ns-3 {package.VERSION}", "source": "", "key": ""}

    def tools(self) -> Tools:
        """The program takes the place of the agent."""
        return form.NsTools(NETWORK)

    def key(self) -> str:
        """Key of ns-3's version, the program, and the code that writes plans and reads output."""
        sources = [NETWORK, PLAN, Path(__file__), Path(form.__file__)]
        return f"ns3-{package.VERSION}-{hash_of_programs(sources)[:16]}"

    def record(self, job: Job, wall_limit_s: float) -> Record:
        """One run. Raises CannotSay, Ns3Failed."""
        with tempfile.TemporaryDirectory(prefix="lbe-ns3.") as name:
            path = plan.write(job, Path(name))
            try:
                done = subprocess.run(
                    [str(self.program), str(path)], check=False, capture_output=True, text=True, timeout=wall_limit_s
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise Ns3Failed(f"ns-3: {error}") from error
            if done.returncode:
                raise Ns3Failed(f"ns-3: exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
            facts = {"uname": f"ns-3 {package.VERSION}", "sysctls": {}, "qdiscs": {}, "counters": {}, "modules": {}}
            # the program counts payload
            return Record(facts, form.series(job, Path(name), "ns-3", {flow.id: 1.0 for flow in job.flows}))
