# SPDX-License-Identifier: GPL-2.0
"""The machine: each way in which a boot can end is recognised, and nothing is left behind.

Three parts: consoles stored from real boots (logs/*.log) are judged; a shell script runs in
place of a kernel; and real kernels are booted, some of them with a module that misbehaves.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from testbed.backends import machine
from testbed.backends.machine import Machine, MachineReport, judge, one_cpu
from testbed.base.errors import (
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
from testbed.kernels.build import KernelBuild, ensure_kernel
from testbed.kernels.series import KernelSpec
from testbed.tests.backends.misbehaving import misbehaving

HERE = Path(__file__).resolve().parent
LOGS = HERE / "logs"

# --- stored consoles ------------------------------------------------------------------

# log -> (status that the guest left, kind of failure, a string that is in its text)
STORED: dict[str, tuple[str | None, type[MachineFailure] | None, str]] = {
    "good": ("ok", None, ""),
    "job_failed": ("fail: job.sh returned 3", JobFailed, "returned 3"),
    "virtual_hang": ("hang: the job did not end in 100 s of virtual time", VirtualHang, "100 s"),
    "panic": (None, Panic, "sysrq triggered crash"),
    "oops": (None, Oops, "Kernel mode fault at addr 0x0"),
    "bug": (None, Oops, "misbehave.c"),
    "warning": ("ok", KernelWarning, "misbehave_init"),
    "oom": ("fail: job.sh returned 137", OutOfMemory, "tail invoked oom-killer"),
    "kasan": ("ok", Kasan, "use-after-free"),
    "ubsan": ("ok", Ubsan, "shift-out-of-bounds"),
    "lockdep": ("ok", Lockdep, "possible circular locking"),
    "atomic_sleep": ("fail: job.sh returned 1", AtomicSleep, "sleeping function"),
    "kmemleak": ("ok", Kmemleak, "new suspected memory leaks"),
    "cut_short": (None, CutShort, "no status"),
    "empty": (None, EmptyLog, "said nothing"),
}


@pytest.mark.parametrize("name", STORED)
def test_stored_console(name: str) -> None:
    status, kind, text = STORED[name]
    failure = judge((LOGS / f"{name}.log").read_text(), status)
    assert type(failure) is (kind or type(None))
    assert text in str(failure)
    if failure and name != "empty":
        assert failure.tail, "a failure shows the console's end"


LEAK = """unreferenced object 0x62c93740 (size 8):
  comm "{comm}", pid {pid}, jiffies 4294667296
  backtrace (crc 58c51868):
    kstrdup+0x41/0x73
"""


def test_what_the_booting_kernel_leaks_is_its_own(tmp_path: Path) -> None:
    """Leaks that the kernel made while it booted are not a job's: one compiler's kernel reports 128 of its UARTs."""
    console, report = (LOGS / "kmemleak.log").read_text(), tmp_path / "kmemleak"
    report.write_text(LEAK.format(comm="swapper", pid=1) + LEAK.format(comm="swapper/0", pid=0))
    assert judge(console, "ok", out=tmp_path) is None
    report.write_text(LEAK.format(comm="swapper", pid=1) + LEAK.format(comm="insmod", pid=71))
    assert isinstance(judge(console, "ok", out=tmp_path), Kmemleak)
    assert isinstance(judge(console + "BUG: KASAN: x in f+0x1/0x2\n", "ok", out=tmp_path), Kmemleak)


def test_every_stored_console_is_judged() -> None:
    assert sorted(p.stem for p in LOGS.glob("*.log")) == sorted(STORED)


def test_kinds_are_distinct() -> None:
    kinds = [kind for _, kind, _ in STORED.values() if kind] + [WallHang]
    assert len({kind.kind for kind in kinds}) == len(set(kinds))


GOOD = (LOGS / "good.log").read_text()


def test_a_good_status_does_not_hide_a_complaint() -> None:
    assert isinstance(judge(GOOD + "[ 1.5] BUG: KASAN: slab-out-of-bounds in f+0x1/0x2\n", "ok"), Kasan)


def test_the_earliest_complaint_is_the_cause() -> None:
    failure = judge(
        GOOD + "[ 1.0] WARNING: CPU: 0 PID: 1 at net/core/dev.c:1 f+0x1\n"
        "[ 2.0] Kernel panic - not syncing: Attempted to kill init!\n",
        None,
    )
    assert isinstance(failure, KernelWarning)
    assert failure.also == ("kernel panic",)


def test_wall_hang_and_bad_exit() -> None:
    assert isinstance(judge(GOOD, None, killed_after_s=5), WallHang)
    assert isinstance(judge(GOOD, "ok", exit_code=-9), CutShort)
    assert "SIGBUS" in str(judge(GOOD, None, exit_code=-signal.SIGBUS))
    assert "SYS_PTRACE" in str(judge("ptrace: Operation not permitted\n", None, exit_code=1))


@pytest.mark.parametrize(
    "line",
    [
        "loading out-of-tree module taints kernel.",
        "random: crng init done",
        "FAULT_INJECTION: forcing a failure.",
        "TCP: lp registered",
        "Bugs in the debug output are none",
    ],
)
def test_lines_that_are_no_complaint(line: str) -> None:
    assert machine.signs_of(f"[    0.000000] {line}\n") == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("WARNING: possible recursive locking detected", Lockdep),
        ("WARNING: inconsistent lock state", Lockdep),
        ("WARNING: suspicious RCU usage", Lockdep),
        ("BUG: scheduling while atomic: sh/12/0x00000002", AtomicSleep),
        ("BUG kmalloc-64 (Tainted: G    B      O      ): Poison overwritten", Oops),
        ("refcount_t: underflow; use-after-free.", None),  # the line above it is a WARNING
        ("list_del corruption. prev->next should be 60, but was 0", KernelWarning),
        ("INFO: task ip:33 blocked for more than 120 seconds.", KernelWarning),
        ("unregister_netdevice: waiting for eth0 to become free. Usage count = 2", KernelWarning),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", KernelWarning),
        ("Out of memory: Killed process 40 (tail)", OutOfMemory),
    ],
)
def test_lines_that_are(line: str, kind: type | None) -> None:
    assert [found for found, _ in machine.signs_of(f"[   12.500000] {line}\n")] == ([kind] if kind else [])


# --- where the memory goes ------------------------------------------------------------


def test_memory_goes_to_the_fallback(tmp_path: Path) -> None:
    assert machine.memory_folder(1, tmp_path, shm=tmp_path / "none") == tmp_path
    assert machine.memory_folder(1, tmp_path, shm=tmp_path) == tmp_path


def test_memory_fits_nowhere(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="LBE_CACHE"):
        machine.memory_folder(1 << 40, tmp_path)


# --- a shell script in place of a kernel ----------------------------------------------


class Pretend:
    """Boots a shell script in place of a kernel. out: the results folder, $OUT in it; runs: the folders of boots."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self.runs = folder, folder / "out", folder / "cache" / "run"
        (folder / "job").mkdir()
        (folder / "job" / "job.sh").touch()

    def __call__(self, script: str, seed: int = 1, wall_limit_s: float = 300) -> MachineReport:
        linux = self.folder / "linux"
        linux.write_text(f"#!/bin/sh\nOUT={shlex.quote(str(self.out))}\n{script}\n")
        linux.chmod(0o755)
        build = KernelBuild(linux, self.folder, self.folder, "6.12.9", "6.12", "plain", "key")
        return Machine(build, mem_mb=1).run(self.folder / "job", self.out, seed, wall_limit_s=wall_limit_s)


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretend:
    monkeypatch.setenv("LBE_CACHE", str(tmp_path / "cache"))
    return Pretend(tmp_path)


def test_report(pretend: Pretend) -> None:
    report = pretend("echo booting; echo 12.50 >$OUT/uptime; echo ok >$OUT/status")
    assert report.virtual_s == 12.5
    assert report.console.read_text() == "booting\n"
    assert not list(pretend.runs.iterdir())


def test_yesterdays_status_does_not_count(pretend: Pretend) -> None:
    pretend("echo booting; echo ok >$OUT/status; echo 1 >$OUT/uptime")
    with pytest.raises(CutShort):
        pretend("echo booting")


def test_what_the_kernel_is_given(pretend: Pretend) -> None:
    pretend('env >$OUT/env; echo "$@" >$OUT/words; cat init modules >$OUT/init; echo ok >$OUT/status', seed=7)
    env = (pretend.out / "env").read_text().splitlines()
    assert "LBE_SEED=7" in env
    words = (pretend.out / "words").read_text()
    assert "time-travel=inf-cpu" in words
    assert " ro " in words
    assert str(pretend.runs) not in words, "the command line tells one boot from another"
    assert "LBE_SEED=7" in (pretend.out / "init").read_text()


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_seed_out_of_range(pretend: Pretend, seed: int) -> None:
    with pytest.raises(ValueError, match=str(seed)):
        pretend("exit 0", seed=seed)


#: a guest that starts a child and writes the child's process id to a file; both run until they are killed
STAYS = "echo booting; sleep 987 & echo $! >$OUT/.child; mv $OUT/.child $OUT/child; wait"


def until(there: Callable[[], bool], limit_s: float = 300) -> bool:
    """Wait for a condition that an idle machine meets at once; only a fault makes it take as long as the limit."""
    deadline = time.monotonic() + limit_s
    while not there():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_wall_limit_kills_the_children_too(pretend: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    real = machine.wait_for

    def begun(process: subprocess.Popen[bytes], limit_s: float) -> bool:
        """Start the time limit only when the child exists."""
        assert until((pretend.out / "child").exists)
        return real(process, limit_s)

    monkeypatch.setattr(machine, "wait_for", begun)
    with pytest.raises(WallHang):
        pretend(STAYS, wall_limit_s=0.1)
    assert ended(int((pretend.out / "child").read_text()))
    assert not list(pretend.runs.iterdir())


def test_ctrl_c_leaves_no_process(pretend: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_process: subprocess.Popen[bytes], _limit_s: float) -> bool:
        assert until((pretend.out / "child").exists)
        raise KeyboardInterrupt

    monkeypatch.setattr(machine, "wait_for", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pretend(STAYS)
    assert ended(int((pretend.out / "child").read_text()))
    assert not list(pretend.runs.iterdir())


def ended(pid: int) -> bool:
    """Wait until a process is gone or a zombie, which takes a moment after a kill; False if it goes on running."""

    def gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except FileNotFoundError:
            return True

    return until(gone)


# --- real boots -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def misbehave() -> Path:
    """Return the path of the module misbehave, built for the plain kernel."""
    return misbehaving().paths["misbehave"]


def boot(
    tmp_path: Path, script: str, *, seed: int = 1, modules: Sequence[Path] = (), wall_limit_s: float = 300
) -> MachineReport:
    """Run a job that consists of one script in a real guest; the results are in tmp_path/out."""
    job = tmp_path / "job"
    job.mkdir(exist_ok=True)
    (job / "job.sh").write_text(script + "\n")
    booted = Machine(ensure_kernel(KernelSpec()), mem_mb=128)
    return booted.run(job, tmp_path / "out", seed, modules, virtual_limit_s=100, wall_limit_s=wall_limit_s)


@pytest.mark.kunit
def test_boot(tmp_path: Path) -> None:
    report = boot(
        tmp_path,
        'sleep 50; id -u >"$LBE_OUT/uid"; cat job.sh >"$LBE_OUT/copy"; '
        'touch /probe "$PWD/probe" 2>/dev/null && exit 1; echo scratch >/tmp/x && exit 0',
    )
    assert 50 <= report.virtual_s < 51
    assert (tmp_path / "out/uid").read_text() == "0\n"
    assert "sleep 50" in (tmp_path / "out/copy").read_text()


@pytest.mark.kunit
def test_a_jiffy_is_1_ms() -> None:
    assert "CONFIG_HZ=1000\n" in (ensure_kernel(KernelSpec()).kdir / ".config").read_text()


LIVE = {
    "job_failed": ("echo no such queue >&2; exit 3", JobFailed, "no such queue"),
    "panic": ("echo c >/proc/sysrq-trigger", Panic, "sysrq triggered crash"),
    "oops": ("insmod $KO kind=oops", Oops, "Kernel mode fault"),
    "bug": ("insmod $KO kind=bug", Oops, "misbehave.c"),
    "warning": ("insmod $KO kind=warn", KernelWarning, "misbehave_init"),
    "oom": ("tail /dev/zero", OutOfMemory, "tail invoked oom-killer"),
    "virtual_hang": ("sleep infinity", VirtualHang, "100 s"),
    "init_killed": ("kill -9 1; echo c >/proc/sysrq-trigger", Panic, "panic"),
}


@pytest.mark.kunit
@pytest.mark.parametrize("name", LIVE)
def test_live_failure(name: str, tmp_path: Path, misbehave: Path) -> None:
    script, kind, text = LIVE[name]
    with pytest.raises(kind, match=text) as caught:
        boot(tmp_path, script.replace("$KO", f"/tmp/host{misbehave}"))
    assert type(caught.value) is kind


@pytest.mark.kunit
def test_live_wall_hang_in_the_kernel(tmp_path: Path, misbehave: Path) -> None:
    with pytest.raises(WallHang):
        boot(tmp_path, f"insmod /tmp/host{misbehave} kind=spin", wall_limit_s=5)


@pytest.mark.kunit
def test_module_that_does_not_load(tmp_path: Path, misbehave: Path) -> None:
    with pytest.raises(JobFailed, match=r"misbehave\.ko"):
        boot(tmp_path, "exit 0", modules=[misbehave])


RANDOM = """
cat /proc/sys/kernel/random/uuid >"$LBE_OUT/random"
head -c 64 /dev/urandom | od -An -tx1 >>"$LBE_OUT/random"
for ns in a b; do ip netns add $ns; done
ip link add eth0 netns a type veth peer name eth0 netns b
for ns in a b; do ip -n $ns link set eth0 up; done
sleep 3
ip -n a addr >>"$LBE_OUT/random"
cat /proc/sys/kernel/random/uuid /proc/uptime >>"$LBE_OUT/random"
"""


@pytest.mark.kunit
def test_random_numbers_are_the_seeds(tmp_path: Path) -> None:
    """Equal seeds give equal uuids, addresses and uptimes, whatever the host does; other seeds give others."""

    def numbers(name: str, seed: int) -> str:
        boot(tmp_path / name, RANDOM, seed=seed)
        return (tmp_path / name / "out/random").read_text()

    for name in ("one", "two", "other"):
        (tmp_path / name).mkdir()
    first = numbers("one", 1)
    stop = threading.Event()
    burner = threading.Thread(target=lambda: [None for _ in iter(stop.is_set, True)])
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as load:
        burner.start()
        try:
            assert numbers("two", 1) == first
        finally:
            stop.set()
            load.kill()
            burner.join()
    other = numbers("other", 2)
    assert other.splitlines()[0] != first.splitlines()[0]


AS_SOMEBODY = """
import sys
from pathlib import Path
from testbed.kernels.build import KernelBuild
from testbed.backends.machine import Machine
top = Path(sys.argv[1])
build = KernelBuild(top / "linux", top, top, "6.12", "6.12", "plain", "key")
print(Machine(build, 128).run(top / "job", top / "out", wall_limit_s=300).virtual_s)
"""


@pytest.mark.kunit
def test_boots_as_an_ordinary_user() -> None:
    """A boot needs no privilege. If the tests run as root, this one runs as user 65534."""
    with tempfile.TemporaryDirectory() as work:
        top = Path(work)
        top.chmod(0o755)
        shutil.copy(ensure_kernel(KernelSpec()).linux, top / "linux")
        ignored = shutil.ignore_patterns("tests", "__pycache__", "agent")
        shutil.copytree(HERE.parents[1], top / "testbed", ignore=ignored)
        for name in ("job", "out", "cache"):
            (top / name).mkdir()
            (top / name).chmod(0o777)
        (top / "job/job.sh").write_text("ip netns add a && sleep 5\n")
        as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = subprocess.run(
            [*(as_user if os.geteuid() == 0 else []), "/usr/bin/python3", "-c", AS_SOMEBODY, work],
            cwd=top,
            env={"PATH": os.environ["PATH"], "LBE_CACHE": str(top / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) >= 5


@pytest.mark.kunit
def test_death_of_the_runner_ends_the_guest(tmp_path: Path) -> None:
    """A runner that is killed by SIGKILL cannot clean up: the kernel must end the guest."""
    code = (
        "import sys; from pathlib import Path; from testbed.kernels.build import *;"
        "from testbed.backends.machine import Machine;"
        "Machine(ensure_kernel(), 64).run(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    (tmp_path / "job").mkdir()
    (tmp_path / "job/job.sh").write_text('echo >"$LBE_OUT/here"; while :; do :; done\n')
    runner = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "job"), str(tmp_path / "out")], cwd=HERE.parents[2]
    )
    try:
        deadline = time.monotonic() + 300  # only a guest that hangs takes so long
        while not (tmp_path / "out/console").exists() or not children_of(runner.pid):
            assert time.monotonic() < deadline, "the guest did not start"
            time.sleep(0.1)
        time.sleep(1)
        guests = children_of(runner.pid)
        guests += [pid for guest in guests for pid in children_of(guest)]
    finally:
        runner.kill()
        runner.wait()
    assert guests
    assert all(ended(pid) for pid in guests)


def children_of(pid: int) -> list[int]:
    """Return the process ids of the children of all threads of a process."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in path.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def test_machines_spread_over_the_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LBE_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 2})
    with one_cpu() as first, one_cpu() as second, one_cpu() as third:
        assert (first, second, third) == (2, 4, 2)
    with one_cpu() as first, pytest.raises(BlockingIOError), one_cpu():
        raise BlockingIOError  # an error inside the block must not be mistaken for a busy CPU
    with one_cpu() as again:
        assert again == first == 2
