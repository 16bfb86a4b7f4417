# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: run is killed at each of its system calls, and leaves nothing.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

from guest_run import CTL, cgroups, main, rules, until

STARTED = Path("/tmp/command")
#: tells its number, and runs until it is killed
COMMAND = ["sh", "-c", f"echo $$ >{STARTED}; exec sleep 1000"]
#: requests of ptrace()
TRACEME, SYSCALL = 0, 24
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def kill_run_at(stop: int) -> bool:
    """Start run, and kill it where a debugger stops it that often: at the beginning and the end of each system call.

    Processes that run forks are not traced. Returns False if its command had started by then.
    """
    STARTED.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        LIBC.ptrace(TRACEME, 0, None, None)
        os.execv(CTL, [CTL, "run", "--", *COMMAND])
    os.waitpid(pid, 0)  # the end of execv()
    for _ in range(stop):
        LIBC.ptrace(SYSCALL, pid, None, None)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSTOPPED(status), f"run has ended: {status}"
        if STARTED.exists():
            break
    early = not STARTED.exists()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return early


def end_command() -> None:
    """It may start even though run was killed, and keeps its cgroup while it runs."""
    with contextlib.suppress(AssertionError):
        until(STARTED.exists, 0.1)
        until(lambda: STARTED.read_text().endswith("\n"))
        os.kill(int(STARTED.read_text()), signal.SIGKILL)


def left() -> list[object]:
    """Cgroups and helper processes of run; if there are none, rules."""
    names = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # the process has ended
            names.append(path.read_text().strip())
    return [*cgroups(), *(name for name in names if name.startswith("vulture-"))] or [*rules()]


def test_run_killed_at_any_system_call_leaves_nothing() -> None:
    calls, early = 0, True
    while early:
        early = kill_run_at(2 * calls + 1)
        end_command()
        try:
            until(lambda: not left(), 10)
        except AssertionError as error:
            raise AssertionError(f"killed at system call {calls}, it left {left()}") from error
        calls += 1
    assert calls > 50, "run was not stopped at its system calls"


if __name__ == "__main__":
    main(dict(globals()))
