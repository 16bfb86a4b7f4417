# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: a command under run gets each signal once, however it was sent.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Unpack

from guest_run import CTL, Who, cgroups, main, rules, until

HEARD = Path("/tmp/heard")
#: writes the name of each signal that it gets, until USR2 comes
COUNTER = f"""
import os, signal, sys
heard = open("{HEARD}", "a", buffering=1)
def hear(number, _):
    heard.write(signal.Signals(number).name + "\\n")
    if number == signal.SIGUSR2:
        sys.exit(7)
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, hear)
heard.write(str(os.getpid()) + "\\n")
while True:
    signal.pause()
"""
Path("/tmp/counter.py").write_text(COUNTER)
COMMAND = [CTL, "run", "--", sys.executable, "/tmp/counter.py"]
USER = Who(user=65534, group=65534, extra_groups=[])
#: a moment in which nothing else happens
MOMENT_S = 0.3


def start(*before: str, **more: Unpack[Who]) -> subprocess.Popen[bytes]:
    """A run in a process group of its own, once its command listens."""
    HEARD.write_text("")
    HEARD.chmod(0o666)
    held = subprocess.Popen([*before, *COMMAND], start_new_session=True, **more)
    until(HEARD.read_text)
    return held


def heard() -> list[str]:
    time.sleep(MOMENT_S)
    return HEARD.read_text().split()[1:]


def end(held: subprocess.Popen[bytes]) -> None:
    held.send_signal(signal.SIGUSR2)
    assert held.wait(timeout=10) == 7
    until(lambda: not cgroups() and not rules())
    assert not shown("vulture-witness")


def shown(name: str) -> list[str]:
    """The processes of a name."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            found += [path.parent.name] if path.read_text().strip() == name else []
        except OSError:
            continue
    return found


def test_a_signal_to_run_alone_comes_once() -> None:
    for who in (Who(), USER):
        held = start(**who)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            held.send_signal(number)
            time.sleep(MOMENT_S)
        assert heard() == ["SIGINT", "SIGTERM", "SIGINT", "SIGUSR1"], heard()
        end(held)


def test_a_signal_to_the_process_group_comes_once() -> None:
    for who in (Who(), USER):
        held = start(**who)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            os.killpg(held.pid, number)
            time.sleep(MOMENT_S)
        assert heard() == ["SIGTERM", "SIGINT", "SIGTERM"], heard()
        held.send_signal(signal.SIGTERM)
        assert heard() == ["SIGTERM", "SIGINT", "SIGTERM", "SIGTERM"], "it is run's alone after one of the group"
        end(held)


def test_a_signal_to_both_comes_once() -> None:
    """timeout(1) sends to its child, then to its group, as shells do with jobs."""
    held = start()
    for _ in range(3):
        held.send_signal(signal.SIGINT)
        os.killpg(held.pid, signal.SIGINT)
        time.sleep(MOMENT_S)
    assert heard() == ["SIGINT"] * 3, heard()
    end(held)
    for words, times in ((("-s", "INT"), 1), (("--foreground", "-s", "INT"), 1)):
        held = start("timeout", *words, "1")
        time.sleep(1)
        assert heard() == ["SIGINT"] * times, (words, heard())
        (run,) = {line.split("/")[-1] for line in cgroups()}
        os.kill(int(run.removeprefix("vulture-")), signal.SIGUSR2)
        assert held.wait(timeout=10) == 124
        until(lambda: not cgroups())


def in_a_terminal() -> tuple[int, int]:
    """A run that leads the session of a terminal, as ssh -t has it: its pid and the other end."""
    HEARD.write_text("")
    pid, end_of_user = pty.fork()
    if pid == 0:
        os.execv(COMMAND[0], COMMAND)
    until(HEARD.read_text)
    return pid, end_of_user


def test_keys_of_the_terminal_come_once() -> None:
    pid, terminal = in_a_terminal()
    for key in (b"\x03", b"\x1c", b"\x03"):
        os.write(terminal, key)
        time.sleep(MOMENT_S)
    assert heard() == ["SIGINT", "SIGQUIT", "SIGINT"], heard()
    os.kill(pid, signal.SIGUSR2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    os.close(terminal)


def test_a_terminal_that_hangs_up_is_told_to_the_command() -> None:
    """The kernel tells the session's leader alone, which is run."""
    pid, terminal = in_a_terminal()
    os.close(terminal)
    assert heard() == ["SIGHUP"], heard()
    os.kill(pid, signal.SIGUSR2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_a_killed_run_leaves_no_witness_and_its_guard_is_hard_to_end() -> None:
    """pkill -f finds run's processes by the words of the command."""
    held = start()
    held.kill()
    held.wait()
    until(lambda: not shown("vulture-witness"))
    (guard,) = shown("vulture-guard")
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        os.kill(int(guard), number)
    time.sleep(MOMENT_S)
    assert shown("vulture-guard") == [guard] and len(rules()) == 1, "it holds what the command needs"
    os.kill(int(HEARD.read_text().split()[0]), signal.SIGUSR2)
    until(lambda: not cgroups() and not rules())


if __name__ == "__main__":
    main(dict(globals()))
