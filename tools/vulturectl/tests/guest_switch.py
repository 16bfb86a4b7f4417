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
from functools import partial
from pathlib import Path
from typing import Unpack

from guest_run import CTL, Server, Who, apply, cgroups, ctl, flows, hang_up, line_of, main, rules, tell, until

USER = Who(user=65534, group=65534, extra_groups=[])
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


class Talker:
    """A program that opens a connection when it is asked to."""

    process: subprocess.Popen[str]

    def ask(self, word: str) -> list[str]:
        tell(self.process, f"{word}\n")
        return line_of(self.process).split()


class Talk(Talker):
    """A talker under run; before: words that start run."""

    def __init__(self, *words: str, inner: bool = False, before: tuple[str, ...] = (), **who: Unpack[Who]) -> None:
        self.server = Server()
        talker = [sys.executable, "/tmp/talker.py", self.server.address, self.server.port]
        # a shell gives a child in the background no input, unless it is told to
        command = ["sh", "-c", f"exec 3<&0; {' '.join(talker)} <&3 & wait"] if inner else talker
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*before, CTL, "run", *words, "--", *command], stdin=pipe, stdout=pipe, stderr=pipe, text=True, **who
        )
        self.pid = line_of(self.process).strip()
        self.run = str(self.process.pid)

    def end(self) -> str:
        _, error = self.process.communicate(timeout=60)
        until(lambda: not cgroups() and not rules() and not flows())
        return error


@contextlib.contextmanager
def talk(*words: str, inner: bool = False, before: tuple[str, ...] = (), **who: Unpack[Who]) -> Iterator[Talk]:
    one = Talk(*words, inner=inner, before=before, **who)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()


def test_what_a_run_opens_after_fg_is_in_the_foreground_and_after_bg_not() -> None:
    """By the command's number and by run's own; with rule and program as root, by looking as a user."""
    for who, wait in ((Who(), "0"), (USER, "0.3")):
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


def test_near_a_deadline_fg_is_not_undone_at_the_next_cycle() -> None:
    """Of the whole command, and of one process of it."""
    for inner in (False, True):
        for who in (Who(), USER):
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


def test_bg_after_the_deadline() -> None:
    with talk("--deadline", "1s") as one:
        one.ask("0")
        time.sleep(2)
        assert one.ask("0") == ["cubic", "cubic"] and not rules()
        done = ctl("bg", one.pid)
        assert one.ask("0") == ["lbe"] * 3 and len(flows()) == 3, done
        assert "the deadline has come" in one.end()


def test_what_stays_as_it_is_is_said() -> None:
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
        hang_up(one.process)
        until(lambda: not cgroups() and not rules() and not flows())
    server = Server()
    plain = subprocess.Popen(server.client(1), stdout=-1, **USER)
    time.sleep(0.3)
    done = ctl("bg", str(plain.pid), **USER)
    said = "stay in the foreground, unless it accepts them: other processes are in its cgroup, too, and it cannot"
    assert done.returncode == 0 and said in done.stderr and "run this as root" in done.stderr, done
    done = ctl("fg", str(plain.pid), **USER)
    assert done.returncode == 0 and done.stderr == "", done
    plain.communicate()


SLICE = Path("/sys/fs/cgroup/held.slice")
UNIT = SLICE / "one.service"
PLAIN = Path("/sys/fs/cgroup/plain.service")


class Inside(Talker):
    """A talker in a cgroup of its own."""

    def __init__(self, folder: Path) -> None:
        self.server = Server()
        folder.mkdir(parents=True, exist_ok=True)
        talker = f"{sys.executable} /tmp/talker.py {self.server.address} {self.server.port}"
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            ["sh", "-c", f"echo 0 >{folder}/cgroup.procs; exec {talker}"], stdin=pipe, stdout=pipe, text=True
        )
        self.pid = line_of(self.process).strip()

    def now(self, control: str) -> None:
        """All connections that it has, and one more, are such ones; those of downloads too."""
        opened = self.ask("0")
        assert set(opened) == {control}, opened
        assert len(flows()) == (len(opened) if control == "lbe" else 0), (control, len(opened), flows())

    def end(self) -> None:
        self.process.communicate(timeout=60)
        until(lambda: not flows())


@contextlib.contextmanager
def held(folder: Path = SLICE) -> Iterator[subprocess.Popen[bytes]]:
    """As lbe-background.service holds background.slice."""
    folder.mkdir(exist_ok=True)
    before = len(rules())
    holder = subprocess.Popen([CTL, "hold", str(folder)])
    until(lambda: len(rules()) > before)
    time.sleep(0.2)
    try:
        yield holder
    finally:
        holder.terminate()
        holder.wait()


def empty(folder: Path) -> bool:
    return not (folder / "cgroup.procs").read_text()


def remove(*folders: Path, left: int = 0) -> None:
    """And with them all that was in force for them; so many rules are others'."""
    for folder in folders:
        until(partial(empty, folder))
        folder.rmdir()
    until(lambda: len(rules()) == left, 15)


def units() -> Who:
    """systemctl's word on the cgroup of a unit, for units that are a folder below held.slice or the root."""
    folder = Path("/tmp/fake-units")
    folder.mkdir(exist_ok=True)
    (folder / "systemctl").write_text(
        "#!/bin/sh\nfor last; do :; done\ncd /sys/fs/cgroup\n"
        'for one in "$last" "held.slice/$last"; do [ -d "$one" ] && echo "/$one"; done\n'
    )
    (folder / "systemctl").chmod(0o755)
    return {"env": {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}}


def switched(verb: str, target: str, **more: Unpack[Who]) -> None:
    """It says that later connections too are switched, and nothing else."""
    done = ctl(verb, target, **more)
    assert done.returncode == 0 and done.stderr == "" and "; later ones too" in done.stdout, done
    done = ctl("--json", verb, target, **more)
    assert json.loads(done.stdout)["later"] is True and done.stderr == "", done


def test_a_unit_of_a_held_slice_opens_in_the_foreground_from_fg_to_bg() -> None:
    """By its name and by a process's number; its neighbour in the slice stays in the background."""
    with held():
        one, other = Inside(UNIT), Inside(SLICE / "two.service")
        one.now("lbe")
        for target in ("one.service", one.pid):
            switched("fg", target, **units())
            one.now("cubic")
            assert other.ask("0")[-1] == "lbe" and flows(), "the neighbour"
            other.end()
            other = Inside(SLICE / "two.service")
            switched("bg", target, **units())
            one.now("lbe")
        assert len(rules()) == 1, "bg takes away what fg has added"
        switched("fg", "one.service", **units())
        one.end()
        other.end()
        remove(UNIT, left=1)
        again = Inside(UNIT)
        again.now("lbe")
        again.end()
    remove(UNIT, SLICE / "two.service", SLICE)


def test_a_unit_that_nobody_holds_opens_in_the_background_from_bg_to_fg() -> None:
    one = Inside(PLAIN)
    one.now("cubic")
    for target in ("plain.service", one.pid):
        switched("bg", target, **units())
        one.now("lbe")
        assert len(rules()) == 1
        switched("fg", target, **units())
        one.now("cubic")
        assert not rules(), "fg takes away what bg has added"
    switched("bg", "plain.service", **units())
    one.end()
    remove(PLAIN)


def test_fg_of_the_slice_itself_and_of_a_unit_within() -> None:
    """The cgroup that was named last and is nearest decides."""
    with held():
        one = Inside(UNIT)
        switched("fg", "held.slice", **units())
        one.now("cubic")
        switched("bg", "one.service", **units())
        one.now("lbe")
        switched("bg", "held.slice", **units())
        one.now("lbe")
        switched("fg", "one.service", **units())
        one.now("cubic")
        switched("bg", "held.slice", **units())
        assert one.ask("0")[-1] == "cubic", "bg of the slice leaves what fg says of the unit"
        switched("bg", "one.service", **units())
        one.now("lbe")
        one.end()
    remove(UNIT, SLICE)


def test_fg_lasts_when_the_holder_starts_anew() -> None:
    one = Inside(UNIT)
    with held():
        switched("fg", "one.service", **units())
    with held():
        one.now("cubic")
        switched("bg", "one.service", **units())
        one.now("lbe")
        one.end()
    remove(UNIT, SLICE)


def test_fg_of_a_cgroup_that_apply_has_put_there() -> None:
    """The program on that cgroup itself is switched, and apply finds it in force."""
    PLAIN.mkdir()
    line = f"cgroup {PLAIN}\n"
    apply(line)
    one = Inside(PLAIN)
    one.now("lbe")
    switched("fg", one.pid)
    one.now("cubic")
    assert apply(line).stdout == "0 added, 1 kept, 0 removed, 0 failed\n"
    one.now("cubic")
    switched("bg", one.pid)
    one.now("lbe")
    apply("")
    one.end()
    remove(PLAIN)


def test_a_process_among_others_gets_a_cgroup_of_its_own() -> None:
    """With its descendants, those of later too; the others in the unit stay as they are. It goes with the last one."""
    with held():
        one, other = Inside(UNIT), Inside(UNIT)
        for verb, control in (("fg", "cubic"), ("bg", "lbe"), ("fg", "cubic")):
            switched(verb, one.pid)
            assert set(one.ask("0")) == {control}, verb
            assert set(other.ask("0")) == {"lbe"}, verb
        own = UNIT / f"lbe-own-{one.pid}"
        assert (own / "cgroup.procs").read_text() == f"{one.pid}\n"
        one.process.communicate(timeout=60)
        until(lambda: not own.exists())
        other.end()
        until(lambda: len(rules()) == 1, 15)
        # a shell whose children it starts before and after
        server = Server()
        script = f"{' '.join(server.client(3))} & sleep 1; {' '.join(server.client(1))}; wait"
        shell = subprocess.Popen(["sh", "-c", script], stdout=-1, text=True)
        time.sleep(0.5)
        switched("bg", str(shell.pid))
        said = [json.loads(line)["cc"] for line in shell.communicate(timeout=60)[0].splitlines()]
        assert said == ["lbe"] * 2, said
        until(lambda: not list(Path("/sys/fs/cgroup").glob("lbe-own-*")) and len(rules()) == 1, 15)
    remove(UNIT, SLICE)


def test_a_user_may_not_take_a_unit_out() -> None:
    with held():
        one = Inside(UNIT)
        os.chown(UNIT, 65534, 65534)
        done = ctl("fg", one.pid, **USER)
        assert done.returncode == 1 and "run this as its user, or as root" in done.stderr, done
        done = ctl("rule", "add", "--foreground", "--cgroup", str(UNIT), **USER)
        assert done.returncode == 1 and "needs CAP_NET_ADMIN" in done.stderr, done
        one.now("lbe")
        one.end()
    remove(UNIT, SLICE)


def test_which_rules_of_others_bg_and_fg_delete() -> None:
    """bg: one for the foreground that takes the whole cgroup. fg of a user: the user's own for the whole cgroup."""

    def add(*words: str, **who: Unpack[Who]) -> int:
        done = ctl("--json", "rule", "add", "--cgroup", str(PLAIN), *words, **who)
        assert done.returncode == 0, done
        return int(json.loads(done.stdout)["id"])

    one = Inside(PLAIN)
    for path in (PLAIN, PLAIN / "cgroup.procs"):
        os.chown(path, 65534, 65534)
    add("--foreground")
    port = add("--foreground", "--remote-port", "9")
    switched("bg", one.pid)
    one.now("lbe")
    assert port in {rule["id"] for rule in rules()} and len(rules()) == 2, rules()
    switched("fg", one.pid)
    roots, users = add(), [add(**USER), add("-o", "min-kbit=9", **USER)]
    port_of_user = add("--remote-port", "9", **USER)
    ctl("fg", one.pid, **USER)
    left = {rule["id"] for rule in rules()}
    assert left == {port, roots, port_of_user} and not left & set(users), rules()
    for number in left:
        ctl("rule", "del", str(number))
    one.end()
    remove(PLAIN)


def test_another_users_run_is_not_told() -> None:
    """As under sudo: the command is the user's, and run is root's."""
    with talk(env={**os.environ, "SUDO_UID": "65534"}) as one:
        one.ask("0")
        done = ctl("fg", one.pid, **USER)
        assert done.returncode == 0 and "is another user's vulturectl run" in done.stderr, done
        assert one.ask("0") == ["cubic", "lbe"] and len(rules()) == 1
        one.end()


def test_a_process_in_another_network_namespace_is_named() -> None:
    words = ["unshare", "-n", "sleep", "4"]
    for who in (Who(), Who(env={**os.environ, "SUDO_UID": "0"})):
        done = ctl("run", "--", *words, **who)
        assert done.returncode == 0 and done.stderr.count("is in another network namespace") == 1, done
        assert done.stderr.count("\n") == 1, done
    assert ctl("run", "--up", "--", *words).stderr == "", "only rules are of a namespace"
    assert ctl("run", "--", "sleep", "4").stderr == ""


def test_a_deadline_by_the_clock_comes_at_its_minute() -> None:
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
