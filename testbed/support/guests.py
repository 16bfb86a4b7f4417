# SPDX-License-Identifier: GPL-2.0
"""Run a shell script with one of the project's modules in a new guest, for the tests of modules."""

from __future__ import annotations

import functools
from pathlib import Path

from ..backends.machine import Machine
from ..kernels.build import KernelBuild, ensure_kernel
from ..kernels.modules import ensure_modules
from ..kernels.series import KernelSpec

#: time limit of a script, in virtual time
LIMIT_S = 120.0


@functools.cache
def built(module: str) -> tuple[KernelBuild, Path]:
    """Build the kernel and the module; returns the build and the module's file."""
    build = ensure_kernel(KernelSpec())
    return build, ensure_modules(build).paths[module].resolve()


def run(
    module: str, folder: Path, script: str, files: dict[str, str] | None = None, limit_s: float = LIMIT_S
) -> str:
    """Run a shell script as root in a new guest; $KO is the module. limit_s: in virtual time. Returns its output.

    Raises the failures of the machine (errors.MachineFailure).
    """
    build, path = built(module)
    job = folder / "job"
    job.mkdir()
    for name, text in (files or {}).items():
        (job / name).write_text(text)
    (job / "job.sh").write_text(f'KO="$LBE_HOST{path}"\n{script}\ntrue\n')
    Machine(build).run(job, folder / "out", 1, (), virtual_limit_s=limit_s)
    return (folder / "out" / "job.log").read_text()
