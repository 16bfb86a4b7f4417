# SPDX-License-Identifier: GPL-2.0
"""--backend qemu: the same experiments on a distribution's own kernel, in real time, traffic by iperf3."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from pathlib import Path

from ..base.content import hash_of_programs
from ..base.places import REPO, SCRIPTS, TESTBED
from ..base.progress import Report, silent
from . import iperf
from .backend import BackendError, RunReport, Tools
from .distro import Guest, Image, Installed, add_text, add_tree, ensure_image, ensure_installed
from .tools import build_agent

#: time for boot, set-up and shutdown in addition to the experiment, with emulation on a busy machine
REAL_EXTRA_S = 90
#: name here for the kernel's module that has the same name as one of the project's
IN_TREE_LP = "tcp_lp_intree"
#: the files that run a job in a guest
AROUND = (
    *(TESTBED / "backends" / f"{name}.py" for name in ("iperf", "qemu", "distro")),
    *(SCRIPTS / f"{name}.sh" for name in ("distro-init", "traffic", "now")),
)
ENVIRONMENT = """\
export LBE_AGENT=/usr/local/lib/lbe/lbe-agent
AGENT=/lbe/traffic.sh
MODULES=/tmp/job/modules
OUT=$LBE_OUT
"""


def module_paths(image: Image, installed: Installed) -> dict[str, str]:
    """Module -> its file in the guest: the project's installed module, else the distribution's."""
    paths = {}
    for line in (image.folder / "in-tree").read_text(encoding="ascii").splitlines():
        name = Path(line).name.split(".ko")[0]
        paths[IN_TREE_LP if name == "tcp_lp" else name] = f"/{line}"
    return paths | installed.modules()


class Qemu:
    """A distribution's kernel under QEMU with two CPUs. Making the image needs privileges, booting it does not."""

    name = "qemu"
    #: each machine has two CPUs: several machines at once would disturb one another in real time
    at_once = 1

    def __init__(self, series: str = "6.12"):
        self.series = series
        # all are set by prepare()
        self.image: Image
        self.installed: Installed
        self._tools: Tools

    def prepare(self, modules: Iterable[str], report: Report = silent) -> None:
        """Take image and installation from the cache, or make them."""
        self.image = ensure_image(self.series, report)
        self.installed = ensure_installed(self.image, report)
        paths = module_paths(self.image, self.installed)
        missing = sorted(set(modules) - set(paths))
        if missing:
            raise BackendError(f"{self.image.release} has no module {', '.join(missing)}")
        content = dict.fromkeys(paths, f"{self.image.key} {self.installed.key}")
        self._tools = Tools(build_agent(report), {name: Path(path) for name, path in paths.items()}, "", content)
        self._tools.modules_version = f"{(REPO / 'VERSION').read_text().strip()} ({self.installed.key})"

    def facts(self) -> dict[str, str]:
        """Facts about the kernel."""
        packages = (self.image.folder / "packages").read_text(encoding="utf-8")
        versions = dict(line.split("\t") for line in packages.splitlines())
        return {
            "series": self.series,
            "flavour": "distribution",
            "release": self.image.release,
            "source": f"linux-image-{self.image.release} {versions.get(f'linux-image-{self.image.release}', '')}",
            "iperf3": versions.get("iperf3", ""),
            "key": self.image.key,
        }

    def tools(self) -> Tools:
        """Agent and modules."""
        return self._tools

    def key(self) -> str:
        """Key of the image, the installation and the files that run a job in them."""
        return f"qemu-{self.image.key}-{self.installed.key}-{hash_of_programs(AROUND)[:16]}"

    def fill(self, archive: tarfile.TarFile, job: Path) -> None:
        """Fill the disk of a job."""
        modules = (job / "job.sh").read_text(encoding="ascii")
        for name in re.findall(r'insmod "\$MODULES/(\w+)\.ko"', modules):
            link = tarfile.TarInfo(f"tmp/job/modules/{name}.ko")
            link.type, link.linkname = tarfile.SYMTYPE, str(self._tools.modules[name])
            archive.addfile(link)
        add_tree(archive, job, "tmp/job")
        add_text(archive, "tmp/job/env.sh", ENVIRONMENT)
        add_text(archive, "lbe/traffic.sh", (SCRIPTS / "traffic.sh").read_text(encoding="utf-8"), 0o755)

    def run(
        self, job: Path, out: Path, *, seed: int, mem_mb: int, virtual_limit_s: float, wall_limit_s: float
    ) -> RunReport:
        """Boot, run in real time, power off."""
        taken = iperf.divide(job)
        iperf.start_when_ready(job)
        report = Guest(self.image, self.installed, mem_mb=max(mem_mb, 1024)).run(
            lambda archive: self.fill(archive, job),
            out,
            seed=seed,
            limit_s=virtual_limit_s + REAL_EXTRA_S,
            wall_limit_s=max(wall_limit_s, virtual_limit_s + 2 * REAL_EXTRA_S),
        )
        iperf.collect(taken, out)
        return RunReport(report.wall_s, report.guest_s)
