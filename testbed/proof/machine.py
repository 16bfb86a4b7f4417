# SPDX-License-Identifier: GPL-2.0
"""A guest for the proof: Debian with its kernel and systemd, the suite, and third-party programs from packages.

image (backends/distro.py) + suite (by DKMS) + packages (programs.sh) -> boot in virtual time -> guest/person.py
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..backends.distro import (
    IN_ROOT,
    Guest,
    Image,
    add_text,
    digest_of,
    ensure_image,
    ensure_installed,
    run_script,
)
from ..backends.machine import read_text
from ..backends.tools import build_vulturectl
from ..base.cache import cache_root, lock, need_space, remove, whole_entry
from ..base.errors import LbeError
from ..base.places import REPO, TESTBED
from ..base.progress import Report, silent

SERIES = "6.12"
PERSON = TESTBED / "proof" / "guest" / "person.py"
INSTALL = TESTBED / "proof" / "programs.sh"
PACKAGING = REPO / "packaging"
#: the programs, their servers, vulturectl's library, the packages for a user's session, and mke2fs
PACKAGES = (
    "curl", "aria2", "rsync", "restic", "restic-rest-server", "rclone", "git", "opentracker", "mktorrent", "skopeo",
    "podman", "docker-registry", "nginx-light", "libbpf1", "libpam-systemd", "dbus-user-session", "sudo", "e2fsprogs",
)  # fmt: skip
UNITS = ("background.slice", "background@.service", "lbe-background.service", "vulturectl.service")
JOB_UNIT = "[Unit]\nDescription=the job\n[Service]\nType=oneshot\nExecStart=/lbe/init.sh\n"
TARGET = "[Unit]\nRequires=job.service basic.target\nAfter=basic.target\n"
JOB = """
set -eu
modprobe vulture
modprobe tcp_lbe
systemctl start lbe-background.service
cd /
RUN={run} python3 /tmp/job/person.py {words}
"""
MEM_MB = 2048
#: size of the file system, with space for files written by a job; it is a sparse file
DISK_MIB = 3000


class ProofFailed(LbeError):
    """A program failed; the text has its output."""


@dataclass(frozen=True)
class Programs:
    """Packages to install with the suite. versions: package -> version."""

    folder: Path
    versions: dict[str, str]


def ensure_programs(image: Image, report: Report = silent) -> Programs:
    """The packages for an image, cached by the content of the list."""
    key = hashlib.sha256(f"{digest_of([INSTALL])} {PACKAGES}".encode()).hexdigest()[:16]
    final = cache_root() / "distro" / f"programs-{image.key}-{key}"
    if not final.is_dir():
        with lock(f"distro-{final.name}", report):
            if not final.is_dir():
                need_space(cache_root(), 2000, "installing programs into a Debian root")
                for old in final.parent.glob(f"programs-{image.series}-*"):
                    remove(old)
                report("installing programs of others", 0, None)
                with whole_entry(final) as work:
                    shutil.copy(INSTALL, work / INSTALL.name)
                    log = cache_root() / "logs" / f"distro-programs-{image.series}.log"
                    words = ["bash", f"/lbe/{INSTALL.name}", "install", *PACKAGES]
                    run_script(IN_ROOT, [image.folder / "root.tar", work, *words], log)
    os.utime(final)
    versions = dict(line.split() for line in (final / "versions").read_text(encoding="utf-8").splitlines())
    return Programs(final, versions)


def ensure_disk(report: Report = silent) -> Image:
    """An image that contains the suite and the packages; unpacking them at each emulated boot would take a minute."""
    image = ensure_image(SERIES, report)
    programs, installed = ensure_programs(image, report), ensure_installed(image, report)
    key = f"{image.series}-{programs.folder.name[-8:]}{installed.key[:8]}"
    final = cache_root() / "distro" / f"proof-{key}"
    if not final.is_dir():
        with lock(f"distro-{final.name}", report):
            if not final.is_dir():
                need_space(cache_root(), 2 * DISK_MIB, "a disk with the suite and programs of others")
                for old in final.parent.glob(f"proof-{image.series}-*"):
                    remove(old)
                report("making a disk with programs of others", 0, None)
                with whole_entry(final) as work:
                    for path in (programs.folder / "programs.tar", installed.folder / "installed.tar", INSTALL):
                        shutil.copy(path, work / path.name)
                    log = cache_root() / "logs" / f"distro-proof-{image.series}.log"
                    words = ["bash", f"/lbe/{INSTALL.name}", "disk", str(DISK_MIB)]
                    run_script(IN_ROOT, [image.folder / "root.tar", work, *words], log)
                    for name in ("programs.tar", "installed.tar", INSTALL.name):
                        remove(work / name)
                    for name in ("vmlinuz", "initrd", "release"):
                        shutil.copy(image.folder / name, work / name)
    os.utime(final)
    return Image(SERIES, final, key)


def boot(
    script: str,
    out: Path,
    files: dict[str, str] | None = None,
    limit_s: float = 2400,
    report: Report = silent,
    *,
    cpus: int = 1,
    wall_limit_s: float = 1500,
    programs: Sequence[Path] = (),
) -> str:
    """Run a shell script as root under systemd; returns its output.

    files: name -> text of further files in /tmp/job; programs: of this machine, to be put into /usr/bin. vulturectl is
    there, too, as in packages, and the units of packaging/ are installed. No module is loaded and no unit is started.
    """
    image = ensure_disk(report)
    control = build_vulturectl(report)
    out.mkdir(parents=True, exist_ok=True)

    def fill(archive: tarfile.TarFile) -> None:
        add_text(archive, "tmp/job/job.sh", f"rm /usr/local/bin/vulturectl\n{script}")
        for name, text in (files or {}).items():
            add_text(archive, f"tmp/job/{name}", text)
        for path in (control, *programs):
            member = archive.gettarinfo(path, f"usr/bin/{path.name}")
            member.uid = member.gid = 0
            member.mode = 0o755
            with open(path, "rb") as file:
                archive.addfile(member, file)
        for name in UNITS:
            add_text(archive, f"etc/systemd/system/{name}", (PACKAGING / name).read_text(encoding="utf-8"))
        add_text(archive, "etc/systemd/system/job.service", JOB_UNIT)
        add_text(archive, "etc/systemd/system/default.target", TARGET)
        # updating a status line on the console eight times a second would load an emulated machine
        add_text(archive, "etc/systemd/system.conf.d/quiet.conf", "[Manager]\nShowStatus=no\n")
        for name in ("etc/.updated", "var/.updated"):  # so that systemd does not treat this as a first boot
            add_text(archive, name, "")
        link = tarfile.TarInfo("etc/systemd/system/tmp.mount")  # masked: a tmpfs on /tmp would hide the job
        link.type, link.linkname = tarfile.SYMTYPE, "/dev/null"
        archive.addfile(link)

    guest = Guest(image, cpus=cpus, mem_mb=MEM_MB, init="/lib/systemd/systemd", virtual_time=True)
    try:
        guest.run(fill, out / "boot", limit_s=limit_s, wall_limit_s=wall_limit_s)
    except LbeError as error:
        said = read_text(out / "boot" / "job.log") or ""
        raise ProofFailed(f"{error}\nbefore that the job said:\n{said[-3000:]}") from error
    return read_text(out / "boot" / "job.log") or ""


def noticed(
    program: str, modes: tuple[str, ...], out: Path, report: Report = silent, *, run: int = 1
) -> list[dict[str, Any]]:
    """Output of person.py for a program in the run of this number, a table for each mode."""
    words = " ".join(f"'{word}'" for word in (program, *modes))
    said = boot(JOB.format(words=words, run=run), out, {"person.py": PERSON.read_text(encoding="utf-8")}, report=report)
    return [json.loads(line) for line in said.splitlines() if line.startswith('{"program"')]
