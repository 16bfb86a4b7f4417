# SPDX-License-Identifier: GPL-2.0
"""The interface between the runner and a backend, which runs a job folder and stores its results in another folder.

uml is the default: a user-mode kernel in virtual time. Other backends (a distribution's kernel in QEMU,
the running kernel's namespaces, three machines) run the same jobs. They set AGENT, MODULES and OUT in env.sh.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from ..base.errors import LbeError
from ..base.progress import Report, silent


class BackendError(LbeError):
    """A backend is unknown or cannot run here."""

    exit_status = 2


@dataclass(frozen=True)
class RunReport:
    """Duration of a run, in wall time and in the guest's time."""

    wall_s: float
    virtual_s: float


@dataclass
class Tools:
    """Files on the host that runs need: the agent and the modules, with hashes of their content."""

    agent: Path
    modules: dict[str, Path] = field(default_factory=dict)
    modules_version: str = ""
    hashes: dict[str, str] = field(default_factory=dict)

    def module_hash(self, name: str) -> str:
        """Hash of a module (of its source if it is the project's); BackendError if it is not built."""
        if name not in self.modules:
            raise BackendError(
                f"module {name}: not built for this kernel; there are " + (", ".join(sorted(self.modules)) or "none")
            )
        return self.hashes[name]


class Backend(Protocol):
    """Methods of every backend; one that runs jobs is a :class:`Guests`, or a :class:`Simulator` (run/runner.py)."""

    @property
    def name(self) -> str:
        """Name for --backend."""

    @property
    def at_once(self) -> int | None:
        """Default number of machines that run at once; None: one for each CPU."""

    def prepare(self, modules: Iterable[str], report: Report = silent) -> None:
        """Build or fetch what all runs share; ``modules``: all modules that any run loads."""

    def facts(self) -> dict[str, str]:
        """Facts about the kernel, for the provenance of results."""

    def tools(self) -> Tools:
        """Agent and modules."""

    def key(self) -> str:
        """Key of everything in the backend that affects a result."""


@runtime_checkable
class Guests(Backend, Protocol):
    """A backend with a guest, whose results are read from a folder."""

    def run(
        self, job: Path, out: Path, *, seed: int, mem_mb: int, virtual_limit_s: float, wall_limit_s: float
    ) -> RunReport:
        """Run a job folder; raises errors.MachineFailure if the run failed."""
