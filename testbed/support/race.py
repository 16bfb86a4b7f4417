# SPDX-License-Identifier: GPL-2.0
"""Races on several CPUs: a kernel with KCSAN and lockdep in QEMU, in the root of a distribution.

    kernel.py (flavour race) + modules.py -> modules in the guest's updates/, like DKMS's
    distro.py (root, tools)               -> Guest, CPUs in threads of their own -> dmesg -> Found

No distribution packages such a kernel. KCSAN watches some accesses for a moment and reports whoever touches the
same bytes meanwhile without saying so; lockdep follows the order of locks, so it needs no unlucky moment.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..backends.distro import Guest, Image, accelerator, add_text, ensure_image, ensure_installed
from ..backends.machine import judge, read_text, run_folder
from ..base.errors import MachineFailure
from ..base.progress import Report, silent
from ..kernels.build import KernelBuild, ensure_kernel
from ..kernels.modules import ensure_modules
from ..kernels.series import KernelSpec

#: as many as find work on a host of two; more would wait for one another
CPUS = 4
#: emulated, and every access through KCSAN: five times slower than the distribution's kernel
LIMIT_S = 560.0
#: what the kernel puts before each line of its log
STAMP = re.compile(r"^\[ *\d+\.\d+\] ?", re.MULTILINE)
REPORT = re.compile(r"^=+\n(BUG: KCSAN: .*?)^=+\n", re.MULTILINE | re.DOTALL)
#: a function of a module in a stack: name+0x12/0x34 [module]; in a title: name [module]
OF_MODULE = re.compile(r"[\w.]+(?:\+0x\w+/0x\w+)? \[(\w+)\]")


@dataclass(frozen=True)
class Race:
    """A report of KCSAN. modules: those that have a function in one of its stacks."""

    title: str
    text: str
    modules: frozenset[str]


def races_in(log: str) -> tuple[list[Race], str]:
    """KCSAN's reports in a kernel's log, and the log without them."""
    plain = STAMP.sub("", log)
    found = [
        Race(text.splitlines()[0].removeprefix("BUG: KCSAN: "), text, frozenset(OF_MODULE.findall(text)))
        for text in REPORT.findall(plain)
    ]
    return found, REPORT.sub("", plain)


def of_modules(races: Iterable[Race], modules: Iterable[str]) -> list[Race]:
    """Those in which one of these modules takes part, be it as a caller."""
    wanted = set(modules)
    return [race for race in races if race.modules & wanted]


@dataclass(frozen=True)
class Kernel:
    """What is booted: the flavour's build with our modules, in a series' root."""

    build: KernelBuild
    image: Image
    modules: dict[str, Path]


def ensure(series: str, report: Report = silent) -> Kernel:
    """From the cache or built (about five minutes of two CPUs)."""
    build = ensure_kernel(KernelSpec(series, "race"), report)
    return Kernel(build, ensure_image(series, report), ensure_modules(build, progress=report).paths)


def boot(
    kernel: Kernel, script: str, out: Path, files: dict[str, str], modules: dict[str, Path], report: Report = silent
) -> str:
    """Run a script in a guest with the suite's tools and these modules, to be loaded by name; the kernel's log.

    Raises a MachineFailure if the guest did not come to its end, whatever the kernel said meanwhile.
    """
    installed = ensure_installed(kernel.image, report)
    release = kernel.build.release
    out.mkdir(parents=True, exist_ok=True)

    def fill(archive: tarfile.TarFile) -> None:
        for name, path in modules.items():
            archive.add(path, f"lib/modules/{release}/updates/dkms/{name}.ko")
        for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            add_text(archive, f"lib/modules/{release}/{name}", "")
        add_text(archive, "tmp/job/job.sh", f"depmod {release}\n{script}")
        for name, text in files.items():
            add_text(archive, f"tmp/job/{name}", text)

    with run_folder() as folder:
        for name, path in (
            ("vmlinuz", kernel.build.linux),
            ("initrd", kernel.image.folder / "initrd"),
            ("root.ext4", kernel.image.folder / "root.ext4"),
        ):
            (folder / name).symlink_to(path)
        (folder / "release").write_text(release + "\n", encoding="ascii")
        how = "kvm" if accelerator(kernel.image) == "kvm" else "tcg-threads"
        guest = Guest(Image(kernel.image.series, folder, kernel.build.key), installed, CPUS, 2048, acceleration=how)
        report(f"booting {release} (race) on {CPUS} CPUs", 0, None)
        try:
            guest.run(fill, out, limit_s=LIMIT_S, wall_limit_s=LIMIT_S + 100)
        except MachineFailure:
            if read_text(out / "status") != "ok\n":
                raise
    return read_text(out / "dmesg") or ""


def complaint(log: str) -> MachineFailure | None:
    """What a log without KCSAN's reports says of the kernel, as of any other."""
    return judge(log, "ok")
