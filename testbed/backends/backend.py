# SPDX-License-Identifier: GPL-2.0
"""Where a job runs: what the runner asks of a backend. It takes a job folder and leaves the guest's results in another.

uml is the default: a user-mode kernel in virtual time. Other backends (a distribution's kernel in QEMU,
the running kernel's namespaces, three machines) take the same job: they set AGENT, MODULES and OUT in env.sh.
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
    """How long a run took, in both kinds of time."""

    wall_s: float
    virtual_s: float


@dataclass
class Tools:
    """What runs need on the host: agent and modules, by content."""

    agent: Path
    modules: dict[str, Path] = field(default_factory=dict)
    modules_version: str = ""
    hashes: dict[str, str] = field(default_factory=dict)

    def module_hash(self, name: str) -> str:
        """Content of a module (its source, where it is ours); BackendError if it is not built."""
        if name not in self.modules:
            raise BackendError(
                f"module {name}: not built for this kernel; there are " + (", ".join(sorted(self.modules)) or "none")
            )
        return self.hashes[name]


class Backend(Protocol):
    """What the runner asks of every backend; one that runs jobs is a :class:`Guests` or a :class:`Simulator`."""

    @property
    def name(self) -> str:
        """As --backend has it."""

    @property
    def at_once(self) -> int | None:
        """How many machines at once where nobody said; None: one for each CPU."""

    def prepare(self, modules: Iterable[str], report: Report = silent) -> None:
        """Build or fetch what all runs share; ``modules``: those that some run loads."""

    def facts(self) -> dict[str, str]:
        """Kernel and modules, for the provenance."""

    def tools(self) -> Tools:
        """Agent and modules."""

    def key(self) -> str:
        """What of the backend decides a result."""


@runtime_checkable
class Guests(Backend, Protocol):
    """A backend with a guest, which leaves a folder to be read."""

    def run(
        self, job: Path, out: Path, *, seed: int, mem_mb: int, virtual_limit_s: float, wall_limit_s: float
    ) -> RunReport:
        """Run a job folder; an error (errors.MachineFailure) if it did not end well."""
