# SPDX-License-Identifier: GPL-2.0
"""Race tests on several CPUs: a kernel with detectors in QEMU, with the root of a distribution.

    kernel.py (flavour race or memory) + modules.py -> modules in the guest's updates/, like DKMS's
    distro.py (root, tools)               -> Guest, CPUs in threads of their own -> dmesg -> Found

No distribution packages such kernels. KCSAN (flavour race) watches some accesses for a short time and reports any
unmarked concurrent access to the same bytes. KASAN and kmemleak (flavour memory) report accesses to freed memory, and
memory that nothing points to any more; a kernel has KCSAN or KASAN. lockdep, which is in both, checks the order of
locks, so it does not depend on the timing.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..backends.distro import Guest, Image, accelerator, add_text, ensure_image, ensure_installed
from ..backends.machine import judge, leaks_of, read_text, run_folder
from ..base.errors import MachineFailure
from ..base.progress import Report, silent
from ..kernels.build import KernelBuild, ensure_kernel
from ..kernels.modules import ensure_modules
from ..kernels.series import KernelSpec

#: number of CPUs of the guest; on a host with two CPUs more would only wait for one another
CPUS = 4
#: time limit; with emulation and KCSAN the kernel is five times slower than the distribution's
LIMIT_S = 720.0
#: memory of the guest, MiB; KASAN takes an eighth of it, and keeps what was freed for a while
MEM_MB = {"race": 2048, "memory": 3072}
#: prefix of each line of the kernel's log
STAMP = re.compile(r"^\[ *\d+\.\d+\] ?", re.MULTILINE)
REPORT = re.compile(r"^=+\n(BUG: KCSAN: .*?)^=+\n", re.MULTILINE | re.DOTALL)
#: a function of a module in a stack: name+0x12/0x34 [module]; in a title: name [module]
#: a line of a stack of kmemleak whose module is gone: an address without a name
OF_NONE = re.compile(r"^ +(?:\[<\w+>\] )?0x[0-9a-f]+$", re.MULTILINE)
#: a line with which kmemleak says that it looks no more
GIVEN_UP = re.compile(r"kmemleak: (?:Memory pool empty|Kernel memory leak detector disabled|Cannot allocate).*")
OF_MODULE = re.compile(r"[\w.]+(?:\+0x\w+/0x\w+)? \[(\w+)\]")


@dataclass(frozen=True)
class Race:
    """A report of KCSAN. modules: the modules with a function in one of its stacks."""

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
    """The races in which one of these modules is involved, at least as a caller."""
    wanted = set(modules)
    return [race for race in races if race.modules & wanted]


def leaks_of_modules(report: str, modules: Iterable[str]) -> list[str]:
    """The objects of a kmemleak report that one of these modules allocated, or a module that is gone by now."""
    wanted = set(modules)
    return [
        text for text in leaks_of(report) if wanted & set(OF_MODULE.findall(text)) or OF_NONE.search(text)
    ]


@dataclass(frozen=True)
class Kernel:
    """The kernel to boot: the build of the flavour with the project's modules, and the root of a series."""

    build: KernelBuild
    image: Image
    modules: dict[str, Path]


def ensure(series: str, report: Report = silent, flavour: str = "race") -> Kernel:
    """Take the kernel from the cache or build it (about five minutes on two CPUs)."""
    build = ensure_kernel(KernelSpec(series, flavour), report)
    return Kernel(build, ensure_image(series, report), ensure_modules(build, progress=report).paths)


def boot(
    kernel: Kernel, script: str, out: Path, files: dict[str, str], modules: dict[str, Path], report: Report = silent
) -> str:
    """Run a script in a guest with the suite's tools and these modules, which can be loaded by name. Returns the
    kernel's log.

    Raises a MachineFailure only if the guest did not finish; messages of the kernel alone do not raise one.
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
        image, mem_mb = Image(kernel.image.series, folder, kernel.build.key), MEM_MB[kernel.build.flavour]
        guest = Guest(image, installed, CPUS, mem_mb, acceleration=how)
        report(f"booting {release} ({kernel.build.flavour}) on {CPUS} CPUs", 0, None)
        try:
            guest.run(fill, out, limit_s=LIMIT_S, wall_limit_s=LIMIT_S + 100)
        except MachineFailure:
            if read_text(out / "status") != "ok\n":
                raise
    return read_text(out / "dmesg") or ""


def complaint(log: str) -> MachineFailure | None:
    """The failure in a log without KCSAN's reports, judged like that of any other kernel. kmemleak's lines say how many
    objects there are, and not whose: its own report does.
    """
    return judge("\n".join(line for line in log.splitlines() if "kmemleak: " not in line), "ok")
