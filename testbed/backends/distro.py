# SPDX-License-Identifier: GPL-2.0
"""A distribution's own kernel in QEMU: its root file system, the suite installed in it, one boot.

    scripts/distro -> Image (root, kernel; one a series)
                   -> scripts/in-root, scripts/install.sh -> Installed (one a content of our sources)
                   -> Guest: disks in, disks out

The disks are plain tar archives on virtio-blk: Debian's cloud kernels have no 9p, and virtiofs needs a daemon
beside QEMU that is in another place in each release; virtme-ng needs one of the two, so it does not fit.
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
#: beyond the module folders: what install.sh needs
INSTALL_ALSO = (
    "Kbuild", "Makefile", "VERSION", "LICENSE", "dkms.conf", "scripts/version", "include", "tools",
    "testbed/agent", "testbed/kernels/guest-modules", "testbed/backends/scripts/install.sh",
)  # fmt: skip
#: what a root, its archive and its file system take
IMAGE_MIB = 5000
OUT_BYTES = 1 << 30
KVM_TRIAL_S = 12
#: of a root made or a suite installed, ten times what a slow machine takes: an archive may stop answering
SCRIPT_LIMIT_S = 1200
#: Emulated CPUs take turns in one thread. With a thread each, one may run the breakpoint of a static key that
#: another has finished patching (an oops, "int3", in __ip_local_out as a netfilter hook went in): no such CPU exists.
#: Threads are for a kernel that patches no code as it runs (flavour race): there CPUs must meet at every instruction.
ACCELERATOR = {"kvm": "kvm", "tcg": "tcg,thread=single", "tcg-threads": "tcg,thread=multi"}
#: The plain model: what it has works in every QEMU, emulated and (where the host hides registers) by KVM.
#: Without cx16: emulating cmpxchg16b, QEMU 7.2 now and then returns flags that are none, and the kernel faults.
CPU = {"kvm": "qemu64,+x2apic", "tcg": "qemu64,-cx16", "tcg-threads": "qemu64,-cx16"}
#: Debian's PREEMPT_RT kernel. Almost every lock of it sleeps, and softirqs run in threads that can be preempted. Code
#: that takes a lock or allocates memory where it may not sleep works elsewhere, and here the kernel reports it.
REALTIME = "rt-6.12"
#: the kernels that there are images of, as scripts/distro names them
KERNELS = (*SUITES, REALTIME)
ALLOWED_ENVIRONMENT = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class NoDistro(LbeError):
    """A distribution's kernel cannot be had here; the text says what is missing."""

    exit_status = 2


@dataclass(frozen=True)
class Image:
    """A Debian root with its own kernel. ``key``: what it was made from."""

    series: str
    folder: Path
    key: str

    @property
    def release(self) -> str:
        """As `uname -r` says it."""
        return (self.folder / "release").read_text(encoding="ascii").strip()


@dataclass(frozen=True)
class Installed:
    """What installing the suite added to an image."""

    folder: Path
    key: str

    def modules(self) -> dict[str, str]:
        """Module name -> its path in the guest; the kernel's own congestion controls too."""
        found = {}
        for line in (self.folder / "modules").read_text(encoding="utf-8").splitlines():
            found[Path(line).name.split(".ko")[0]] = f"/{line}"
        return found


def as_root() -> list[str]:
    """The words before a command that needs root; NoDistro where that cannot be had."""
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
    """Hash of names and contents of files of this tree."""
    return content_key(REPO, [path.relative_to(REPO) for path in files])


def end_script(process: subprocess.Popen, patience_s: float = 10) -> None:
    """Ask the process's session to end, so that it removes what it made; then end it, as far as we may."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        if wait_for(process, patience_s):
            return


def run_script(script: Path, words: Sequence[str | Path], log: Path, limit_s: float = SCRIPT_LIMIT_S) -> None:
    """Run one of the two scripts as root; BuildFailed with the log's end, also where it takes longer than its limit."""
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
    """The image of a series, from the cache or made (a minute and a half, about 300 MB to fetch)."""
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
    """The repository's files that an installation is made from, relative."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(REPO), "ls-files", "-co", "--exclude-standard", "-z",
         "--", *module_folders(REPO), *INSTALL_ALSO],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listing.returncode:
        raise NoDistro(f"git does not list the repository's files: {listing.stderr.strip()}")
    return sorted(name for name in listing.stdout.split("\0") if name and (REPO / name).is_file())


def ensure_installed(image: Image, report: Report = silent) -> Installed:
    """The suite, installed into an image by DKMS; once per content."""
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
    """Keep the last few installations of a series: every change of a source makes one."""
    old = sorted(folder.glob(f"installed-{series}-*"), key=lambda path: path.stat().st_mtime)
    for path in old[:-keep]:
        remove(path)


# ------------------------------------------------------------------------------------------ boot


def accelerator(image: Image) -> str:
    """kvm or tcg: $LBE_QEMU_ACCEL, else what boots this image here; tried once per boot of this machine.

    A /dev/kvm that opens proves little: nested ones have been seen that run the firmware and not the kernel.
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
    """Whether a kernel reaches its end by KVM in the time that even emulation would need."""
    with run_folder() as run:
        try:
            Guest(image, acceleration="kvm").script("true\n", run, limit_s=KVM_TRIAL_S, wall_limit_s=KVM_TRIAL_S)
        except MachineFailure:
            return False
    return True


def tar_of(fill: Callable[[tarfile.TarFile], None], path: Path) -> None:
    """An archive, filled; its size suits a disk."""
    with tarfile.open(path, "w") as archive:
        fill(archive)


def add_text(archive: tarfile.TarFile, name: str, text: str, mode: int = 0o644) -> None:
    """A file of root's with this text."""
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), mode
    archive.addfile(member, io.BytesIO(data))


def add_tree(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    """A folder, owned by root."""

    def owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member

    archive.add(folder, name, filter=owned)


@dataclass(frozen=True)
class BootReport:
    """A boot that went well. guest_s: its uptime at the end; tainted: /proc/sys/kernel/tainted."""

    wall_s: float
    guest_s: float
    tainted: int
    accelerator: str


@dataclass
class Guest:
    """Boots an image; ``installed`` None: without the suite.

    init: the first program, "" is the job's runner; acceleration: "" is the best that works here.
    virtual_time: one emulated CPU whose clock counts its instructions, a nanosecond each, and jumps over idle time:
    what the guest measures is the same on a busy machine.
    """

    image: Image
    installed: Installed | None = None
    cpus: int = 2
    mem_mb: int = 1024
    init: str = ""
    acceleration: str = ""
    virtual_time: bool = False

    def command(self, disks: Sequence[Path], acceleration: str) -> list[str]:
        """QEMU's command line. The first disk's changes are thrown away, the last one is written."""
        append = "console=ttyS0 loglevel=5 panic=-1 mitigations=off net.ifnames=0"
        append += f" lbe.init={self.init}" if self.init else ""
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
            words[words.index("-smp") + 1] = "1"
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
        """Boot, run /tmp/job/job.sh (``fill`` puts it there), power off; what it left in /tmp/out is in ``out``.

        Raises a MachineFailure as the user-mode machine does; no process is left.
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
            # an unfinished guest leaves an empty disk: the status tells
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

    def script(self, text: str, out: Path, files: dict[str, str] | None = None, **options: float) -> BootReport:
        """A shell script as the job; ``files``: name -> text, beside it."""

        def fill(archive: tarfile.TarFile) -> None:
            add_text(archive, "tmp/job/job.sh", text)
            for name, content in (files or {}).items():
                add_text(archive, f"tmp/job/{name}", content, 0o755)

        return self.run(fill, out, **options)


def main(argv: list[str] | None = None) -> int:
    """python3 -m testbed.backends.distro SERIES [COMMAND]: boot, run a shell command beside the suite, print it."""
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
