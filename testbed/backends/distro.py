# SPDX-License-Identifier: GPL-2.0
"""A distribution's own kernel in QEMU: its root file system, the suite installed in it, one boot.

    scripts/distro -> Image (root, kernel; one for each series)
                   -> scripts/in-root, scripts/install.sh -> Installed (one for each content of the project's sources)
                   -> Guest: reads and writes disks

The disks are plain tar archives on virtio-blk: Debian's cloud kernels have no 9p, and virtiofs needs a daemon
beside QEMU whose path differs between releases. virtme-ng needs one of the two, so it cannot be used.
Making a root changes owners and mounts, so it needs root or sudo; booting needs neither.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.cache import cache_root, lock, need_space, remove, whole_entry
from ..base.errors import BuildFailed, LbeError, MachineFailure, MissingTools
from ..base.places import REPO, SCRIPTS
from ..base.progress import Report, silent
from ..kernels.mirror import debian_mirror
from ..kernels.modules import content_key, module_folders
from ..kernels.series import SUITES
from .machine import judge, kill_group, memory_folder, read_text, run_folder, wait_for

MAKE_ROOT = REPO / "scripts" / "distro"
IN_ROOT = REPO / "scripts" / "in-root"
QEMU = "qemu-system-x86_64"
#: files that install.sh needs in addition to the module folders
INSTALL_ALSO = (
    "Kbuild", "Makefile", "VERSION", "LICENSE", "dkms.conf", "scripts/version", "include", "tools",
    "testbed/agent", "testbed/kernels/guest-modules", "testbed/backends/scripts/install.sh",
)  # fmt: skip
#: disk space of a root, its archive and its file system
IMAGE_MIB = 5000
OUT_BYTES = 1 << 30
KVM_TRIAL_S = 12
#: time limit for making a root or installing the suite, ten times the time on a slow machine: an archive may hang
SCRIPT_LIMIT_S = 1200
#: Emulated CPUs run in turn in one thread. With one thread each, a CPU may still execute the breakpoint of a static key
#: that another CPU has finished patching (an oops, "int3", in __ip_local_out while a netfilter hook was registered),
#: which no real CPU does. Threads are for a kernel that does not patch code at run time (flavour race), where CPUs must
#: be able to interleave at every instruction.
ACCELERATOR = {"kvm": "kvm", "tcg": "tcg,thread=single", "tcg-threads": "tcg,thread=multi"}
#: The basic model: its features work in every QEMU, emulated and with KVM (also where the host hides registers).
#: Without cx16: when it emulates cmpxchg16b, QEMU 7.2 sometimes returns invalid flags, and the kernel faults.
CPU = {"kvm": "qemu64,+x2apic", "tcg": "qemu64,-cx16", "tcg-threads": "qemu64,-cx16"}
#: Debian's PREEMPT_RT kernel. Almost all of its locks sleep, and softirqs run in preemptible threads. It reports code
#: that takes a lock or allocates memory where it must not sleep, which other kernels do not notice.
REALTIME = "rt-6.12"
#: the kernels with an image, named as for scripts/distro
KERNELS = (*SUITES, REALTIME)
ALLOWED_ENVIRONMENT = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class NoDistro(LbeError):
    """A distribution's kernel is not available here; the text says what is missing."""

    exit_status = 2


@dataclass(frozen=True)
class Image:
    """A Debian root file system with its kernel. ``key``: hash of the scripts that made it."""

    series: str
    folder: Path
    key: str

    @property
    def release(self) -> str:
        """The output of `uname -r`."""
        return (self.folder / "release").read_text(encoding="ascii").strip()


@dataclass(frozen=True)
class Installed:
    """The files that the installation of the suite adds to an image."""

    folder: Path
    key: str

    def modules(self) -> dict[str, str]:
        """Module name -> its path in the guest, also for the kernel's own congestion controls."""
        found = {}
        for line in (self.folder / "modules").read_text(encoding="utf-8").splitlines():
            found[Path(line).name.split(".ko")[0]] = f"/{line}"
        return found


def as_root() -> list[str]:
    """Words to put before a command that needs root; NoDistro if root is not available."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        kept = [f"{name}={os.environ[name]}" for name in ALLOWED_ENVIRONMENT if name in os.environ]
        silent_sudo = subprocess.run(["sudo", "-n", "true"], check=False, capture_output=True)
        if silent_sudo.returncode == 0:
            return ["sudo", "-n", "env", *kept]
        if sys.stdin.isatty() and sys.stderr.isatty():
            return ["sudo", "env", *kept]
    raise NoDistro("making a Debian root file system needs root, or sudo that does not ask; neither is here")


def check_tools(names: Sequence[str]) -> None:
    """MissingTools if one of these programs is not installed."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    missing = [name for name in names if not shutil.which(name, path=path)]
    if missing:
        raise MissingTools(f"not installed: {', '.join(missing)}; `scripts/deps distro` installs them")


def digest_of(files: Sequence[Path]) -> str:
    """Hash of the names and contents of files of this tree."""
    return content_key(REPO, [path.relative_to(REPO) for path in files])


def end_script(process: subprocess.Popen[bytes], patience_s: float = 10) -> None:
    """Terminate the process group, so that it can clean up; kill it if it does not end, as far as permitted."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        if wait_for(process, patience_s):
            return


def run_script(script: Path, words: Sequence[str | Path], log: Path, limit_s: float = SCRIPT_LIMIT_S) -> None:
    """Run one of the two scripts as root; BuildFailed with the end of its log if it fails or exceeds its limit."""
    log.parent.mkdir(exist_ok=True)
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [*as_root(), str(script), *map(str, words)],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
        in_time = False
        try:
            in_time = wait_for(process, limit_s)
        finally:
            if not in_time:
                end_script(process)
    if process.poll() != 0:
        tail = "\n".join((read_text(log) or "").splitlines()[-25:])
        ended = f"returned {process.returncode}" if in_time else f"was ended after {limit_s:g} s"
        raise BuildFailed(f"scripts/{script.name} {ended}:\n{tail}\nlog: {log}")
    log.unlink()


def ensure_image(series: str, report: Report = silent) -> Image:
    """The image of a series, from the cache or made (takes a minute and a half and fetches about 300 MB)."""
    if series not in KERNELS:
        raise NoDistro(f"no distribution kernel {series!r}: there are {', '.join(KERNELS)}")
    if platform.machine() != "x86_64":
        raise NoDistro(f"the distribution kernels are those of x86_64; this machine is {platform.machine()}")
    key = digest_of([MAKE_ROOT, SCRIPTS / "first.sh"])[:16]
    final = cache_root() / "distro" / f"{series}-{key}"
    if not final.is_dir():
        with lock(f"distro-{final.name}", report):
            if not final.is_dir():
                check_tools(("mmdebstrap", "mke2fs", "unshare"))
                need_space(cache_root(), IMAGE_MIB, f"a Debian root for {series}")
                mirror, keyring = debian_mirror()
                report(f"making a Debian root with kernel {series}", 0, None)
                with whole_entry(final) as work:
                    log = cache_root() / "logs" / f"distro-{series}.log"
                    run_script(MAKE_ROOT, [series, mirror, keyring, work], log)
    os.utime(final)
    return Image(series, final, f"{series}-{key}")


def source_names() -> list[str]:
    """The repository's files that an installation needs, as relative paths."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(REPO), "ls-files", "-co", "--exclude-standard", "-z",
         "--", *module_folders(REPO), *INSTALL_ALSO],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listing.returncode:
        raise NoDistro(f"git does not list the repository's files: {listing.stderr.strip()}")
    return sorted(name for name in listing.stdout.split("\0") if name and (REPO / name).is_file())


def ensure_installed(image: Image, report: Report = silent) -> Installed:
    """The suite, installed into an image by DKMS and cached by content."""
    names = [name for name in source_names() if "/tests/" not in name]
    key = hashlib.sha256((image.key + digest_of([REPO / name for name in names])).encode()).hexdigest()[:16]
    final = cache_root() / "distro" / f"installed-{image.series}-{key}"
    if not final.is_dir():
        with lock(f"distro-{final.name}", report):
            if not final.is_dir():
                forget_installed(final.parent, image.series)
                need_space(cache_root(), 2000, "installing into a Debian root")
                report(f"installing the suite for {image.release} by DKMS", 0, None)
                with whole_entry(final) as work:
                    for name in names:
                        (work / "source" / name).parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy(REPO / name, work / "source" / name)
                    log = cache_root() / "logs" / f"distro-install-{image.series}.log"
                    words = ["bash", "/lbe/source/testbed/backends/scripts/install.sh"]
                    run_script(IN_ROOT, [image.folder / "root.tar", work, *words], log)
                    for name in ("source", "guest-modules"):
                        remove(work / name)
    os.utime(final)
    return Installed(final, key)


def forget_installed(folder: Path, series: str, keep: int = 3) -> None:
    """Remove all but the last few installations of a series: every change of a source makes a new one."""
    old = sorted(folder.glob(f"installed-{series}-*"), key=lambda path: path.stat().st_mtime)
    for path in old[:-keep]:
        remove(path)


# ------------------------------------------------------------------------------------------ boot


def accelerator(image: Image) -> str:
    """kvm or tcg: $LBE_QEMU_ACCEL, else what boots this image here, which is tested once per boot of this machine.

    That /dev/kvm can be opened is not enough: some nested KVMs run the firmware but not the kernel.
    """
    given = os.environ.get("LBE_QEMU_ACCEL")
    if given:
        if given not in ("kvm", "tcg"):
            raise NoDistro(f"LBE_QEMU_ACCEL={given}: allowed are kvm and tcg")
        return given
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    known = cache_root() / "distro" / "accelerator"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    text = read_text(known) or ""
    if not text.startswith(boot_id):
        text = f"{boot_id} {'kvm' if kvm_boots(image) else 'tcg'}"
        known.write_text(text, encoding="ascii")
    return text.split()[1]


def kvm_boots(image: Image) -> bool:
    """Whether a guest runs to its end with KVM within the time that even emulation would need."""
    with run_folder() as run:
        try:
            Guest(image, acceleration="kvm").script("true\n", run, limit_s=KVM_TRIAL_S, wall_limit_s=KVM_TRIAL_S)
        except MachineFailure:
            return False
    return True


def tar_of(fill: Callable[[tarfile.TarFile], None], path: Path) -> None:
    """Write an archive filled by ``fill``; the size of a tar archive is suitable for a disk."""
    with tarfile.open(path, "w") as archive:
        fill(archive)


def add_text(archive: tarfile.TarFile, name: str, text: str, mode: int = 0o644) -> None:
    """Add a file with this text, owned by root."""
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), mode
    archive.addfile(member, io.BytesIO(data))


def add_tree(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    """Add a folder, owned by root."""

    def owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member

    archive.add(folder, name, filter=owned)


@dataclass(frozen=True)
class BootReport:
    """A successful boot. guest_s: the guest's uptime at its end; tainted: /proc/sys/kernel/tainted."""

    wall_s: float
    guest_s: float
    tainted: int
    accelerator: str


@dataclass
class Guest:
    """Boots an image; with ``installed`` None, without the suite.

    init: the first program; "" means the job's runner; acceleration: "" means the best that works here.
    virtual_time: emulated CPUs whose clock advances by a nanosecond with each instruction of any of them and skips idle
    time, so that the guest's measurements do not depend on the load of this machine.
    """

    image: Image
    installed: Installed | None = None
    cpus: int = 2
    mem_mb: int = 1024
    init: str = ""
    acceleration: str = ""
    virtual_time: bool = False

    def command(self, disks: Sequence[Path], acceleration: str) -> list[str]:
        """QEMU's command line. Changes of the first disk are discarded; the last disk is written."""
        append = "console=ttyS0 loglevel=5 panic=-1 mitigations=off net.ifnames=0"
        append += f" lbe.init={self.init}" if self.init else ""
        if acceleration != "kvm":
            # The kernel tests the timer interrupt for some milliseconds. It panics if none comes, as on a busy host.
            # Under KVM it omits the test by itself.
            append += " no_timer_check"
        words = [
            "setpriv", "--pdeathsig", "KILL", "--",
            QEMU, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            "-machine", "pc", "-accel", ACCELERATOR[acceleration],
            "-cpu", CPU[acceleration],
            "-smp", str(self.cpus), "-m", str(self.mem_mb), "-serial", "stdio",
            "-kernel", str(self.image.folder / "vmlinuz"),
            "-initrd", str(self.image.folder / "initrd"),
            "-append", append,
        ]  # fmt: skip
        if self.virtual_time:
            words += ["-icount", "shift=0,sleep=off", "-rtc", "clock=vm"]
        for number, disk in enumerate(disks):
            how = "snapshot=on,cache=unsafe" if number == 0 else "readonly=on"
            if number == len(disks) - 1:
                how = "cache=unsafe"
            words += ["-drive", f"file={disk},format=raw,if=none,id=d{number},{how}"]
            words += ["-device", f"virtio-blk-pci,drive=d{number}"]
        return words

    def run(
        self,
        fill: Callable[[tarfile.TarFile], None],
        out: Path,
        *,
        seed: int = 1,
        limit_s: float = 120,
        wall_limit_s: float = 300,
    ) -> BootReport:
        """Boot, run /tmp/job/job.sh (added by ``fill``), power off, and copy the guest's /tmp/out to ``out``.

        Raises a MachineFailure like the user-mode machine; no process remains.
        """
        check_tools((QEMU, "setpriv"))
        acceleration = "tcg" if self.virtual_time else self.acceleration or accelerator(self.image)
        out.mkdir(parents=True, exist_ok=True)
        settings = f"LBE_LIMIT_S={limit_s:g}\nLBE_SEED={seed}\n"

        def everything(archive: tarfile.TarFile) -> None:
            add_text(archive, "lbe/settings", settings)
            add_text(archive, "lbe/init.sh", (SCRIPTS / "distro-init.sh").read_text(encoding="utf-8"), 0o755)
            fill(archive)

        console = out / "console"
        with run_folder() as run:
            scratch = memory_folder(self.mem_mb, run)
            nothing, job, results = run / "nothing", run / "job", run / "results"
            tar_of(lambda _: None, nothing)
            tar_of(everything, job)
            with open(results, "wb") as file:
                file.truncate(OUT_BYTES)
            disks = [
                self.image.folder / "root.ext4",
                self.installed.folder / "installed.tar" if self.installed else nothing,
                job,
                results,
            ]
            began = time.monotonic()
            with open(console, "wb") as log:
                process = subprocess.Popen(
                    self.command(disks, acceleration),
                    env={"PATH": os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin", "TMPDIR": str(scratch)},
                    cwd=run, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
                try:
                    in_time = wait_for(process, wall_limit_s)
                finally:
                    kill_group(process)
            wall_s = time.monotonic() - began
            # the disk of an unfinished guest is empty; judge() finds that the status is missing
            subprocess.run(
                ["tar", "-C", str(out), "--no-same-owner", "-xf", str(results)], check=False, capture_output=True
            )
        failure = judge(
            read_text(console) or "",
            read_text(out / "status"),
            out=out,
            exit_code=process.returncode,
            killed_after_s=None if in_time else wall_limit_s,
            path=console,
        )
        if failure:
            raise failure
        uptime_s = float(read_text(out / "uptime") or "nan")
        return BootReport(wall_s, uptime_s, int(read_text(out / "tainted") or -1), acceleration)

    def script(self, text: str, out: Path, files: dict[str, str] | None = None, **options: Any) -> BootReport:
        """Run a shell script as the job; ``files``: name -> text of further files in its folder."""

        def fill(archive: tarfile.TarFile) -> None:
            add_text(archive, "tmp/job/job.sh", text)
            for name, content in (files or {}).items():
                add_text(archive, f"tmp/job/{name}", content, 0o755)

        return self.run(fill, out, **options)


def main(argv: list[str] | None = None) -> int:
    """python3 -m testbed.backends.distro SERIES [COMMAND]: boot with the suite, run a command, print its output."""
    from ..base.progress import make_progress

    words = sys.argv[1:] if argv is None else argv
    if not words:
        print(f"usage: python3 -m testbed.backends.distro {'|'.join(KERNELS)} [COMMAND]", file=sys.stderr)
        return 2
    progress = make_progress()
    try:
        image = ensure_image(words[0], progress)
        installed = ensure_installed(image, progress)
        progress.close()
        command = shlex.join(words[1:]) if len(words) > 2 else (words[1] if len(words) > 1 else "uname -a")
        with run_folder() as run:
            try:
                report = Guest(image, installed).script(command + "\n", run, limit_s=600, wall_limit_s=900)
            finally:
                print(read_text(run / "job.log") or read_text(run / "console") or "", end="")
            print(f"# {report}", file=sys.stderr)
    except LbeError as error:
        print(f"testbed.backends.distro: {error}", file=sys.stderr)
        return error.exit_status
    finally:
        progress.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
