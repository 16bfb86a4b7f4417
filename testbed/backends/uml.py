# SPDX-License-Identifier: GPL-2.0
"""The backend `uml`: a user-mode kernel in virtual time; needs neither root nor KVM."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ..base.content import hash_of_programs
from ..base.places import GUEST_MODULES, REPO, SCRIPTS, TESTBED
from ..base.progress import Report, silent
from ..kernels.build import KernelBuild, ensure_kernel
from ..kernels.modules import FOLDERS, ensure_modules, module_folders, program_hash
from ..kernels.series import DEFAULT_SERIES, FLAVOURS, USER_MODE_FLAVOURS, KernelSpec
from .backend import BackendError, RunReport, Tools
from .machine import Machine
from .tools import build_agent, build_guest_modules, extras_of

#: mount point of the host's root in the guest (scripts/uml-init.sh)
HOST_ROOT = "/tmp/host"
#: the files that boot a guest and set it up
BOOT = (SCRIPTS / "uml-init.sh", SCRIPTS / "uml.fstab", TESTBED / "backends" / "machine.py")


class Uml:
    """User-mode kernel in virtual time; needs neither root nor KVM."""

    name = "uml"
    at_once = None

    def __init__(self, series: str | None = None, flavour: str = "plain", source_dir: Path | None = None):
        """series: None means the default series."""
        if flavour in FLAVOURS and flavour not in USER_MODE_FLAVOURS:
            known = " and ".join(USER_MODE_FLAVOURS)
            raise BackendError(f"--flavour {flavour}: a kernel for QEMU alone; user mode has {known}")
        self.spec = KernelSpec(series=series or DEFAULT_SERIES, flavour=flavour, source_dir=source_dir)
        # both are set by prepare()
        self.build: KernelBuild
        self._tools: Tools

    def prepare(self, modules: Iterable[str], report: Report = silent) -> None:
        """Kernel, modules, agent: from the cache, or built into it."""
        modules = set(modules)
        agent = build_agent(report)
        self.build = ensure_kernel(self.spec, report)
        have = module_folders(REPO)
        folders = sorted({folder for name in modules if (folder := FOLDERS.get(name, name)) in have})
        built = ensure_modules(self.build, REPO, folders, report)
        paths = dict(built.paths)
        if any((GUEST_MODULES / f"{name}.c").is_file() for name in modules):
            paths |= build_guest_modules(self.build, report)
        # every commit changes the version string in the .ko files, so the project's modules are identified by their
        # sources
        hashes = {
            name: program_hash(name) or hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()
        }
        self._tools = Tools(agent, paths, built.version, hashes)

    def facts(self) -> dict[str, str]:
        """Facts about the kernel."""
        return {
            "series": self.spec.series,
            "flavour": self.spec.flavour,
            "release": str(self.build.release),
            "source": Path(self.build.source).name,
            "key": self.build.key,
        }

    def tools(self) -> Tools:
        """Agent and modules."""
        return self._tools

    def key(self) -> str:
        """Key of the kernel's build and of the files that boot it and set it up."""
        return f"uml-{self.build.key}-{hash_of_programs(BOOT)[:16]}"

    def lay_out(self, job: Path) -> None:
        """Add env.sh and links to the tools to a written job folder."""
        tools = self.tools()
        # the text that the guest reads does not depend on this machine's paths: the links do
        environment = "AGENT=/tmp/job/lbe-agent\nMODULES=/tmp/job/modules\nOUT=$LBE_OUT\n"
        files = {
            path.name: path.read_text(encoding="ascii")
            for path in job.iterdir()
            if path.is_file() and path.suffix in (".tc", ".sh")
        }
        called = {}
        for extra, path in extras_of(files).items():
            environment += extra.line + "\n"
            called[extra.link] = path
            (job / extra.link).parent.mkdir(exist_ok=True)
        (job / "env.sh").write_text(environment, encoding="ascii")
        (job / "modules").mkdir(exist_ok=True)
        links = {f"modules/{name}.ko": path for name, path in tools.modules.items()}
        for name, path in {"lbe-agent": tools.agent, **links, **called}.items():
            (job / name).unlink(missing_ok=True)
            (job / name).symlink_to(f"{HOST_ROOT}{path}")

    def run(
        self, job: Path, out: Path, *, seed: int, mem_mb: int, virtual_limit_s: float, wall_limit_s: float
    ) -> RunReport:
        """Boot, run, power off."""
        self.lay_out(job)
        done = Machine(self.build, mem_mb=mem_mb).run(
            job=job, out=out, seed=seed, modules=[], virtual_limit_s=virtual_limit_s, wall_limit_s=wall_limit_s
        )
        return RunReport(done.wall_s, done.virtual_s)
