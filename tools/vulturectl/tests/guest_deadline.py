# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: near a deadline, connections that the command opens in a foreground part.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Unpack

from guest_run import CTL, Who, cgroups, ctl, flows, hang_up, main, rules, until
from guest_share import link, start
from guest_switch import talk
from guest_users import SLICE, USER, lent, service

DEADLINE_S = 60
#: A connection every 0.7 s for 62 s. For each: its age in s of the command, its control, and whether vulture
#: controls it, 0.3 s after it was opened.
OPENER = """
import json, os, socket, subprocess, sys, time
begin = time.time()
while time.time() < begin + 62:
    opened = time.time()
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    time.sleep(0.3)
    listed = json.loads(subprocess.run([sys.argv[3], "--json", "list"], capture_output=True, check=True).stdout)
    under = any(one["local"].endswith(f":{s.getsockname()[1]}") for one in listed["connections"])
    print(opened - begin, s.getsockopt(6, 13, 16).split(b"\\0")[0].decode(), int(under), flush=True)
    s.close()
    time.sleep(0.4)
"""
Path("/tmp/opener.py").write_text(OPENER)
#: a transfer by one connection after the other: address, port, "down" or "up", s of each connection, s of all
SHORT = """
import os, socket, sys, threading, time
def transfer():
    while True:
        end = time.monotonic() + float(sys.argv[4])
        with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:
            while time.monotonic() < end:
                s.recv(1 << 16) if sys.argv[3] == "down" else s.send(bytes(1 << 14))
threading.Thread(target=transfer, daemon=True).start()
time.sleep(float(sys.argv[5]))
os._exit(0)
"""
Path("/tmp/short.py").write_text(SHORT)
SHORT_S = 3


class Peer:
    """The other end of one program's transfers; it counts the bytes that it sends or receives.

    Each test has an address of its own: lbe keeps what it learns of a full path.
    """

    def __init__(self, way: str, address: str) -> None:
        self.way, self.bytes = way, 0
        self.socket = socket.create_server((address, 0), backlog=64)
        self.address = (address, str(self.socket.getsockname()[1]))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            threading.Thread(target=self.transfer, args=[self.socket.accept()[0]], daemon=True).start()

    def transfer(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError), peer:
            if self.way == "down":
                # what is counted has left but for a few packets
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
                while True:
                    self.bytes += peer.send(bytes(1 << 13))
            while data := peer.recv(1 << 16):
                self.bytes += len(data)

    def program(self, each_s: float, all_s: float) -> list[str]:
        return [sys.executable, "/tmp/short.py", *self.address, self.way, str(each_s), str(all_s)]


def opener(peer: Peer, **who: Unpack[Who]) -> subprocess.Popen[str]:
    words = [sys.executable, "/tmp/opener.py", *peer.address, CTL]
    return start(CTL, "run", "--deadline", f"{DEADLINE_S}s", "--", *words, **who)


def test_what_the_command_opens_is_where_the_cycle_says() -> None:
    """By rule and program as root, by looking at sockets as a user, and in a cgroup that the service lends."""
    peer = Peer("up", "127.3.0.1")
    programs = {"root": opener(peer), "alone": opener(peer, **USER)}
    until(lambda: len(rules()) == 1)
    time.sleep(0.5)
    with service():
        programs["served"] = opener(peer, **USER)
        until(lent)
        # s of the command in which its connections are in the background (False) or not, a switch and its delay apart
        parts = ((1, 9, False), (35.5, 39.4, False), (41.5, 44.5, True), (47.5, 49.2, False), (51.5, 61, True))
        for name, program in programs.items():
            said, error = program.communicate(timeout=120)
            assert "the deadline has come" in error and "lbe-background has ended" not in error, (name, error)
            seen = [(float(age), control, int(under)) for age, control, under in map(str.split, said.splitlines())]
            for begin, end, front in parts:
                part = {tuple(what) for age, *what in seen if begin < age < end}
                assert part == {("cubic", 0) if front else ("lbe", 1)}, (name, begin, end, part, error)
        until(lambda: not lent())
    until(lambda: not cgroups() and not rules() and not flows())


def test_a_foreground_part_ends_with_run() -> None:
    """If run is killed, its guard puts the command back, for good; after fg the command stays where it is."""
    for served in (False, True):
        with contextlib.ExitStack() as stack:
            who = USER if served else {}
            if served:
                stack.enter_context(service())
            one, other = (stack.enter_context(talk("--deadline", f"{DEADLINE_S}s", **who)) for _ in range(2))
            time.sleep(1)
            assert one.ask("0") == other.ask("0") == ["lbe"]
            assert ctl("fg", other.pid, **who).returncode == 0
            time.sleep(41)
            assert one.ask("0") == other.ask("0") == ["cubic"] * 2 and not flows(), served
            for each in (one, other):
                each.process.kill()
            time.sleep(1)
            assert one.ask("0") == ["lbe"] * 3 and other.ask("0") == ["cubic"] * 3, served
            assert len(flows()) == 3
            for each in (one, other):
                hang_up(each.process)
            until(lambda: not lent() and not cgroups() and not flows())


def test_fg_and_bg_twice_keep_what_the_service_lends() -> None:
    with service(), talk(**USER) as one:
        for word, control in (("bg", "lbe"), ("fg", "cubic"), ("fg", "cubic"), ("bg", "lbe"), ("bg", "lbe")):
            assert ctl(word, one.pid, **USER).returncode == 0
            time.sleep(0.3)
            assert set(one.ask("0")) == {control}, word
            assert len(lent()) == 1, word
        assert "lbe-background has ended" not in one.process.communicate(timeout=60)[1]
        until(lambda: not lent())


#: words that start a program in the cgroup that the service holds
INSIDE = ("sh", "-c", f'echo 0 >{SLICE}/cgroup.procs; exec "$@"', "sh")
AS_USER = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


def test_root_s_run_leaves_a_cgroup_that_is_held() -> None:
    """By fg, and in a foreground part: a job of background.slice may have a deadline."""
    with service():
        for words in ((), ("--down",), ("--up",)):
            with talk(*words, before=INSIDE) as one:
                assert one.ask("0") == ["lbe"] and len(flows()) == 1, words
                before = len(rules())
                for target in (one.pid, one.run):
                    done = ctl("fg", target)
                    assert "; later ones too" in done.stdout and done.stderr == "", done
                    assert set(one.ask("0")) == {"cubic"} and not flows(), words
                    assert any(rule.get("foreground") for rule in rules())
                    assert ctl("bg", target).returncode == 0
                    one.ask("0")
                    assert one.ask("0")[-1] == "lbe" and flows(), words
                    assert len(rules()) == before
                assert ctl("fg", one.pid).returncode == 0
                assert one.process.communicate(timeout=60)[1] == ""
                until(lambda: len(rules()) == 1)
        with talk("--deadline", f"{DEADLINE_S}s", before=INSIDE) as one:
            time.sleep(42)
            assert one.ask("0") == ["cubic"] and not flows()
            time.sleep(6)
            assert one.ask("0") == ["lbe"] * 2 and len(flows()) == 2
            one.process.communicate(timeout=60)
    until(lambda: not rules() and not flows())


def test_a_users_run_in_a_cgroup_that_is_held_says_what_stays() -> None:
    with service(), talk(before=(*INSIDE, *AS_USER)) as one:
        assert one.ask("0") == ["lbe"]
        done = ctl("--json", "fg", one.pid, **USER)
        assert done.stdout.endswith('"later":false}\n'), done
        assert "opens later stay in the background: the cgroup that vulturectl run was started in" in done.stderr, done
        one.ask("0")
        assert len(flows()) == 1, "as it says"
        said = one.process.communicate(timeout=60)[1]
        assert said.count("from now on stay in the background") == 1 == said.count("\n"), said
        until(lambda: not lent())


def test_a_rule_that_does_not_come_back_is_replaced_by_looks() -> None:
    """The run's downloads are in the background again after fg and bg, though other rules have taken its place."""
    with service(), talk("--down", **USER) as one:
        assert one.ask("0") == ["cubic"] and len(flows()) == 1
        assert ctl("fg", one.pid, **USER).returncode == 0
        (cgroup,) = (path for path in lent()[0].glob("vulture-*"))
        for port in range(1, 9):
            added = ctl("rule", "add", "--cgroup", str(cgroup), "--remote-port", str(port), **USER)
            assert added.returncode == 0, added
        assert ctl("bg", one.pid, **USER).returncode == 0
        one.ask("0.3")
        assert len(flows()) == 2
        error = one.process.communicate(timeout=60)[1]
        assert "the cgroup's rule could not be put in force again; from now on run watches" in error, error
        until(lambda: not lent())
    until(lambda: not rules() and not flows(), 20)


def test_short_transfers_have_their_share_before_the_deadline() -> None:
    """Beside one ordinary transfer the same way, whose connection lasts."""
    for way in ("down", "up"):
        mine, other = Peer(way, "127.4.0.1"), Peer(way, "127.4.0.1")
        with link():
            programs = [
                start(CTL, "run", f"--{way}", "--deadline", f"{DEADLINE_S}s", "--", *mine.program(SHORT_S, 59)),
                start(*other.program(1000, 59)),
            ]
            parts = []
            for _ in range(3):
                before = mine.bytes, other.bytes
                time.sleep(19)
                parts.append((mine.bytes - before[0]) / (mine.bytes - before[0] + other.bytes - before[1]))
            for program in programs:
                assert program.wait(timeout=60) == 0, program.communicate()
        print(f"# {way}: share in each third of the time:", *(f"{part:.3f}" for part in parts), flush=True)
        # Half of the link in the foreground parts, which are 0.7 of this third, less what TCP's convergence takes: ten
        # runs had 0.36 to 0.46 (down) and 0.16 to 0.37 (up). Each download begins with a start, which takes a part of
        # the link even in the background.
        assert {"down": 0.3, "up": 0.1}[way] < parts[2] < 0.65, (way, parts)
        assert way == "down" or parts[0] < 0.15, (way, parts)


if __name__ == "__main__":
    main(dict(globals()))
