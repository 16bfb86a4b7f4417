# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: fg and bg, for what a program has and for what it opens later.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from guest_run import CTL, Server, cgroups, ctl, flows, main, rules, until

USER = {"user": 65534, "group": 65534, "extra_groups": []}
#: for each number it reads, a connection more, and that many seconds later the control of each; "-" opens none
TALKER = """
import os, socket, sys, time
print(os.getpid(), flush=True)
opened = []
for word in sys.stdin:
    if word.strip() != "-":
        opened.append(socket.create_connection((sys.argv[1], int(sys.argv[2]))))
        time.sleep(float(word))
    print(*(one.getsockopt(6, 13, 16).split(b"\\0")[0].decode() for one in opened), flush=True)
"""
Path("/tmp/talker.py").write_text(TALKER)


class Talk:
    """A talker under run."""

    def __init__(self, *words: str, inner: bool = False, **who) -> None:
        self.server = Server()
        talker = [sys.executable, "/tmp/talker.py", self.server.address, self.server.port]
        # a shell gives a child in the background no input, unless it is told to
        command = ["sh", "-c", f"exec 3<&0; {' '.join(talker)} <&3 & wait"] if inner else talker
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [CTL, "run", *words, "--", *command], stdin=pipe, stdout=pipe, stderr=pipe, text=True, **who
        )
        self.pid = self.process.stdout.readline().strip()
        self.run = str(self.process.pid)

    def ask(self, word: str) -> list[str]:
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def end(self) -> str:
        error = self.process.communicate(timeout=60)[1]
        until(lambda: not cgroups() and not rules() and not flows())
        return error


@contextlib.contextmanager
def talk(*words: str, **more) -> Iterator[Talk]:
    one = Talk(*words, **more)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()


def test_what_a_run_opens_after_fg_is_in_the_foreground_and_after_bg_not():
    """By the command's number and by run's own; with rule and program as root, by looking as a user."""
    for who, wait in (({}, "0"), (USER, "0.3")):
        with talk(**who) as one:
            assert one.ask(wait) == ["lbe"] and len(flows()) == 1
            for target in (one.pid, one.run):
                done = ctl("fg", target, **who)
                assert done.returncode == 0 and done.stderr == "", done
                opened = one.ask("0.3")
                assert set(opened) == {"cubic"}, (who, target, opened)
                assert not flows() and not rules(), (who, target)
                done = ctl("bg", target, **who)
                assert done.returncode == 0 and done.stderr == "", done
                opened = one.ask(wait)
                assert set(opened) == {"lbe"} and len(flows()) == len(opened), (who, target, opened)
            said = one.end()
            assert said.count("\n") == bool(who) and said.count("do once: sudo systemctl enable") == bool(who), said


def test_near_a_deadline_fg_is_not_undone_at_the_next_cycle():
    """Of the whole command, and of one process of it."""
    for inner in (False, True):
        for who in ({}, USER):
            with talk("--deadline", "60s", inner=inner, **who) as one:
                assert one.ask("0.3") == ["lbe"]
                assert ctl("fg", one.pid, **who).returncode == 0
                seen = set()
                for _ in range(40):
                    time.sleep(1)
                    seen |= set(one.ask("-"))
                assert seen == {"cubic"}, (inner, who, seen)
                assert not flows()
                ctl("bg", one.pid, **who)
                assert one.ask("-") == ["lbe"], (inner, who)
                one.end()


def test_bg_after_the_deadline():
    with talk("--deadline", "1s") as one:
        one.ask("0")
        time.sleep(2)
        assert one.ask("0") == ["cubic", "cubic"] and not rules()
        done = ctl("bg", one.pid)
        assert one.ask("0") == ["lbe"] * 3 and len(flows()) == 3, done
        assert "the deadline has come" in one.end()


def test_what_stays_as_it_is_is_said():
    with talk(inner=True) as one:
        one.ask("0")
        done = ctl("fg", one.pid)
        said = f'go to the background again; "vulturectl fg {one.run}" takes all'
        assert done.returncode == 0 and said in done.stderr, done
        assert one.ask("0") == ["cubic", "lbe"], "as it says"
        assert done.stderr.count("\n") == 1, done
        one.process.kill()
        until(lambda: one.process.poll() is not None)
        done = ctl("fg", one.pid)
        assert done.returncode == 0 and "the vulturectl run that has started it was killed" in done.stderr, done
        one.process.stdin.close()
        until(lambda: not cgroups() and not rules() and not flows())
    server = Server()
    cgroup = Path("/sys/fs/cgroup/mine")
    cgroup.mkdir()
    number = json.loads(ctl("--json", "rule", "add", "--cgroup", str(cgroup)).stdout)["id"]
    words = f"echo 0 >{cgroup}/cgroup.procs; exec {' '.join(server.client(2))}"
    held = subprocess.Popen(["sh", "-c", words], stdout=-1)
    until(flows)
    done = ctl("fg", str(held.pid))
    assert f"later go to the background: rule {number} holds all of {cgroup}\n" in done.stderr, done
    held.communicate()
    ctl("rule", "del", str(number))
    cgroup.rmdir()
    plain = subprocess.Popen(server.client(1), stdout=-1)
    time.sleep(0.3)
    done = ctl("bg", str(plain.pid))
    assert done.returncode == 0 and "it opens later stay in the foreground, unless it accepts them" in done.stderr, done
    done = ctl("fg", str(plain.pid))
    assert done.returncode == 0 and done.stderr == "", done
    plain.communicate()


def test_another_users_run_is_not_told():
    """As under sudo: the command is the user's, and run is root's."""
    with talk(env={**os.environ, "SUDO_UID": "65534"}) as one:
        one.ask("0")
        done = ctl("fg", one.pid, **USER)
        assert done.returncode == 0 and "is another user's vulturectl run" in done.stderr, done
        assert one.ask("0") == ["cubic", "lbe"] and len(rules()) == 1
        one.end()


def test_a_process_in_another_network_namespace_is_named():
    words = ["unshare", "-n", "sleep", "4"]
    for who in ({}, {"env": {**os.environ, "SUDO_UID": "0"}}):
        done = ctl("run", "--", *words, **who)
        assert done.returncode == 0 and done.stderr.count("is in another network namespace") == 1, done
        assert done.stderr.count("\n") == 1, done
    assert ctl("run", "--up", "--", *words).stderr == "", "only rules are of a namespace"
    assert ctl("run", "--", "sleep", "4").stderr == ""


def test_a_deadline_by_the_clock_comes_at_its_minute():
    """Today, and past midnight."""
    os.environ["TZ"] = "UTC"
    for now, deadline in (("2027-03-01 10:28:20", "10:29"), ("2027-03-01 23:59:10", "00:00")):
        time.clock_settime(time.CLOCK_REALTIME, datetime.fromisoformat(f"{now}+00:00").timestamp())
        with talk("--deadline", deadline) as one:
            began = time.time()
            left_s = 60 - began % 60
            while time.time() < began + left_s - 2:
                time.sleep(1)
            assert one.ask("0") == ["lbe"], (deadline, time.time())
            time.sleep(4)
            assert one.ask("0") == ["cubic", "cubic"], (deadline, time.time())
            assert "the deadline has come" in one.end()
            assert one.process.returncode == 0


if __name__ == "__main__":
    main(dict(globals()))
