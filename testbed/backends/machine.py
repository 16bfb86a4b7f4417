# SPDX-License-Identifier: GPL-2.0
"""One boot of a user-mode kernel in virtual time, which runs a job.

    job folder (read-only) -> scripts/uml-init.sh -> job.sh -> results folder, status last
                                 console (a file of its own) -> judge()

Needs neither root nor KVM. The guest's memory is a sparse file on /dev/shm. It takes as much space
as the guest has touched, at most `mem_mb`. If /dev/shm is missing, has less free space than that, or is
mounted noexec, the file is in the cache folder (slower on a disk).
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.cache import MIB, cache_root, remove
from ..base.errors import (
    AtomicSleep,
    CutShort,
    EmptyLog,
    JobFailed,
    Kasan,
    KernelError,
    KernelWarning,
    Kmemleak,
    Lockdep,
    MachineFailure,
    Oops,
    OutOfMemory,
    Panic,
    Ubsan,
    VirtualHang,
    WallHang,
)
from ..base.places import SCRIPTS
from ..kernels.build import KernelBuild
from ..kernels.series import series_number

INIT = SCRIPTS / "uml-init.sh"
FSTAB = SCRIPTS / "uml.fstab"
SHM = Path("/dev/shm")

# Start of the guest's clock, 2026-01-01 UTC, so that no result depends on the date.
EPOCH_NS = 1_767_225_600_000_000_000
# From this series on user mode can use seccomp instead of ptrace for system calls: twice as fast.
SECCOMP_SINCE = (6, 16)
TAIL_LINES = 30

# Patterns of console lines, by class of failure. The first match of a line counts, so the special
# cases of "WARNING:" and "BUG:" come before the general ones.
SIGNS: list[tuple[type[MachineFailure], str]] = [
    (Kasan, r"BUG: KASAN: "),
    (Ubsan, r"UBSAN: "),
    (Kmemleak, r"kmemleak: \d+ new suspected memory leaks"),
    (
        Lockdep,
        r"WARNING: (possible (circular|recursive) locking|possible irq lock inversion"
        r"|inconsistent lock state|suspicious RCU usage|bad unlock balance"
        r"|held lock freed|(HARD|SOFT)IRQ-|lock held when returning|Nested lock|.* still held)"
        r"|INFO: trying to register non-static key|DEBUG_LOCKS_WARN_ON|BUG: MAX_LOCK|BUG: .* lock held",
    ),
    (AtomicSleep, r"BUG: (sleeping function called from invalid|scheduling while atomic)"),
    (OutOfMemory, r"invoked oom-killer|Out of memory|oom-kill:"),
    (
        Oops,
        r"BUG: failure at|kernel BUG at|BUG: kernel NULL|BUG: unable to handle|Oops"
        r"|Kernel mode fault at|Segfault with no mm|general protection|BUG [\w:.-]+ .*: "
        r"|\bBUG: ",
    ),
    (
        KernelWarning,
        r"WARNING: |ODEBUG: |list_(add|del) corruption|blocked for more than \d+ seconds"
        r"|rcu.* stall|unregister_netdevice: waiting for",
    ),
    (Panic, r"Kernel panic - not syncing"),
]
COMPILED_SIGNS = [(kind, re.compile(pattern)) for kind, pattern in SIGNS]


@dataclass(frozen=True)
class MachineReport:
    """A successful boot. `virtual_s`: the guest's uptime at its end."""

    wall_s: float
    virtual_s: float
    console: Path


def signs_of(console: str) -> list[tuple[type[MachineFailure], str]]:
    """(class, line) of each console line that reports a failure, in order."""
    found = []
    for line in console.splitlines():
        for kind, pattern in COMPILED_SIGNS:
            if pattern.search(line):
                found.append((kind, re.sub(r"^\[[ .\d]*\] ?", "", line).strip()))
                break
    return found


def tail_of(text: str, lines: int = TAIL_LINES) -> str:
    """The last lines of a text."""
    return "\n".join(text.rstrip().splitlines()[-lines:])


#: An object that the kernel allocated while booting, before the guest's first process. For which of these kmemleak
#: finds no pointer depends on where the compiler places the kernel's tables.
BOOTS_OWN = re.compile(r'^ *comm "swapper[^"]*", pid [01],', re.MULTILINE)


def leaks_of(report: str) -> list[str]:
    """The objects of a kmemleak report, without those that the kernel allocated while booting."""
    return [text for text in report.split("unreferenced object")[1:] if not BOOTS_OWN.search(text)]


def judge(
    console: str,
    status: str | None,
    *,
    out: Path | None = None,
    exit_code: int = 0,
    killed_after_s: float | None = None,
    path: Path | None = None,
) -> MachineFailure | None:
    """Judge a boot by its console and status: None if it succeeded, else the failure (returned, not raised).

    Messages of the kernel take precedence over the job's status, the earliest one first, because later
    ones may be its consequences. `status` is None if the guest wrote none.
    """
    tail = tail_of(console)
    found = signs_of(console)
    leaks = read_text(out / "kmemleak") if out else None
    if leaks and not leaks_of(leaks):
        found = [(kind, line) for kind, line in found if kind is not Kmemleak]
    if found:
        kind, line = found[0]
        also = tuple(dict.fromkeys(k.kind for k, _ in found if k is not kind))
        if kind is Kmemleak:
            tail = tail_of(leaks or tail)
        return kind(line, tail, path, also)
    if killed_after_s is not None:
        return WallHang(f"killed after {killed_after_s:g} s of wall time", tail, path)
    if status is None:
        if not console.strip():
            return EmptyLog(f"the kernel ended (exit status {exit_code}) and said nothing")
        hint = ""
        if re.search(r"ptrace.*(not permitted|denied)", console, re.IGNORECASE):
            hint = "; the host forbids ptrace (a container needs --cap-add=SYS_PTRACE)"
        elif exit_code == -signal.SIGBUS:
            hint = "; SIGBUS: the file system of its memory is full"
        return CutShort(f"no status was written (exit status {exit_code}){hint}", tail, path)
    status = status.strip()
    if status == "ok":
        if exit_code:
            return CutShort(f"the kernel did not power off (exit status {exit_code})", tail, path)
        return None
    job_log = tail_of(read_text(out / "job.log") or "") if out else ""
    if status.startswith("hang:"):
        return VirtualHang(status.removeprefix("hang:").strip(), job_log or tail, path)
    return JobFailed(status.removeprefix("fail:").strip(), job_log or tail, path)


def read_text(path: Path) -> str | None:
    """Text of a file, None if it does not exist."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def memory_folder(mem_mb: int, fallback: Path, shm: Path = SHM) -> Path:
    """Folder for the guest's memory file; raises KernelError if none has enough space."""
    with contextlib.suppress(OSError):
        noexec = os.statvfs(shm).f_flag & os.ST_NOEXEC
        if not noexec and os.access(shm, os.W_OK) and shutil.disk_usage(shm).free >= mem_mb * MIB:
            return shm
    free_mb = shutil.disk_usage(fallback).free // MIB
    if free_mb < mem_mb:
        raise KernelError(
            f"the guest's memory needs {mem_mb} MiB: neither {shm} nor {fallback} "
            f"({free_mb} MiB free) has that; free some, or set LBE_CACHE to a larger disk"
        )
    return fallback


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """A private folder for one boot, removed afterwards."""
    parent = cache_root() / "run"
    parent.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        remove(folder)


class Machine:
    """Boots `build`. One object can be used for any number of runs, also concurrently from threads."""

    def __init__(self, build: KernelBuild, mem_mb: int = 512):
        self.build, self.mem_mb = build, mem_mb

    def command(self) -> list[str]:
        """The kernel's command line."""
        series = series_number(self.build.series)
        return [
            # No core file after a panic. The kernel is killed if the process that started it dies.
            # Fixed addresses, which newer series set themselves: otherwise the host's address layout affects the size
            # of the guest's memory.
            "setarch", "--addr-no-randomize", "prlimit", "--core=0:0", "setpriv", "--pdeathsig", "KILL", "--",
            str(self.build.linux),
            f"mem={self.mem_mb}M",
            "rootfstype=hostfs", "rootflags=/", "ro",
            # The kernel mixes its command line into the random numbers, so it must be the same for every
            # boot. /proc here is the host's, read through hostfs, and its cwd is the private folder.
            "init=/proc/self/cwd/init",
            "time-travel=inf-cpu", f"time-travel-start={EPOCH_NS}",
            "con0=null,fd:1", "con=null", "ssl=null",
            *(["seccomp=auto"] if series >= SECCOMP_SINCE else []),
        ]  # fmt: skip

    def prepare(self, run: Path, job: Path, out: Path, seed: int, modules: Sequence[Path], limit_s: float) -> None:
        """Fill the private folder that scripts/uml-init.sh reads."""
        (run / "job").symlink_to(job.resolve(strict=True))
        (run / "out").symlink_to(out.resolve(strict=True))
        (run / "modules").write_text("".join(f"{Path(m).resolve(strict=True)}\n" for m in modules), encoding="utf-8")
        init = run / "init"
        init.write_text(
            "#!/bin/sh\n"
            f"export LBE_RUN={shlex.quote(str(run))} LBE_LIMIT_S={limit_s:g} LBE_SEED={seed}\n"
            f"export LBE_FSTAB={shlex.quote(str(FSTAB))}\n"
            f"exec /bin/sh {shlex.quote(str(INIT))}\n",
            encoding="utf-8",
        )
        init.chmod(0o755)

    def run(
        self,
        job: Path,
        out: Path,
        seed: int = 1,
        modules: Sequence[Path] = (),
        virtual_limit_s: float = 3600.0,
        wall_limit_s: float = 300.0,
    ) -> MachineReport:
        """Run JOB/job.sh as root in a new guest; results, job.log and console are stored in `out`.

        `seed` (0 to 2^64 - 1) determines every random number in the guest. Raises a MachineFailure. In
        every case, also after Ctrl-C, no process remains.
        """
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed {seed} is outside 0 to 2^64 - 1")
        job, out = Path(job), Path(out)
        out.mkdir(parents=True, exist_ok=True)
        for name in ("status", "uptime", "job.log", "kmemleak", "processes", "console"):
            (out / name).unlink(missing_ok=True)
        console = out / "console"
        with run_folder() as run, one_cpu() as cpu:
            self.prepare(run, job, out, seed, modules, virtual_limit_s)
            environment = {
                "PATH": os.defpath + ":/usr/sbin:/sbin",
                "HOME": str(run),  # user mode stores its pid file and socket in ~/.uml
                "TMPDIR": str(memory_folder(self.mem_mb, run)),
                "LBE_SEED": str(seed),
            }
            began = time.monotonic()
            with open(console, "wb") as log:
                process = subprocess.Popen(
                    self.command(),
                    env=environment,
                    cwd=run,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                with contextlib.suppress(OSError):  # the process has ended already, or affinity may not be set here
                    os.sched_setaffinity(process.pid, {cpu})
                try:
                    in_time = wait_for(process, wall_limit_s)
                finally:
                    kill_group(process)
            wall_s = time.monotonic() - began
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
        return MachineReport(wall_s, float(read_text(out / "uptime") or "nan"), console)


@contextlib.contextmanager
def one_cpu() -> Iterator[int]:
    """A CPU for one machine: the one with the fewest machines of this user.

    A user-mode kernel and its guest's processes run alternately. On two CPUs each switch has to wake the
    other CPU, and a run takes more than half as long again.
    """
    folder = cache_root() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    cpus = sorted(os.sched_getaffinity(0))
    for number in itertools.count():
        level, place = divmod(number, len(cpus))
        cpu = cpus[place]
        with open(folder / f"cpu-{cpu}.{level}", "w", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield cpu
            return


def wait_for(process: subprocess.Popen, limit_s: float) -> bool:  # type: ignore[type-arg]
    """Sleep until the process ends; False if it has not ended within the limit."""
    watch = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        return bool(poll.poll(limit_s * 1000))
    finally:
        os.close(watch)


def kill_group(process: subprocess.Popen) -> None:  # type: ignore[type-arg]
    """Kill the process group, to which the guest's processes belong."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
