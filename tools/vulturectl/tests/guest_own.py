# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: a user's bg and fg of a running program, by the administrator's service.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

from guest_run import Server, Who, background, ctl, flows, line_of, main, rules, tell, until
from guest_switch import Talker
from guest_users import ONCE, OTHER, USER, descriptors, lent, nothing_left, service, shell

ROOT = Path("/sys/fs/cgroup")
SOCKET = "/run/lbe/own.sock"
#: sends each line of its input as a request of its own, and prints the answer
ASKER = f"""
import socket, sys
for line in sys.stdin:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("{SOCKET}")
    try:
        s.send(line.rstrip("\\n").encode())
    except BrokenPipeError:
        pass  # the answer is there
    print(s.recv(500).decode(), flush=True)
    s.close()
"""
#: asks nothing, and prints an answer that comes nevertheless
IDLE = f"""
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect("{SOCKET}")
print("connected", flush=True)
print(s.recv(500).decode(), flush=True)
"""


class Plain(Talker):
    """A talker of a user's, beside all other processes."""

    def __init__(self, family: int = socket.AF_INET, **who: Unpack[Who]) -> None:
        self.server = Server(family)
        words = [sys.executable, "/tmp/talker.py", self.server.address, self.server.port]
        self.process = subprocess.Popen(words, stdin=-1, stdout=-1, text=True, **who)
        self.pid = line_of(self.process).strip()

    def now(self, control: str) -> None:
        """All connections that it has, and one more, are such ones; those of downloads too."""
        opened = self.ask("0")
        assert set(opened) == {control}, opened
        assert len(flows()) == (len(opened) if control == "lbe" else 0), (control, opened, flows())



@contextlib.contextmanager
def plain(family: int = socket.AF_INET, **who: Unpack[Who]) -> Iterator[Plain]:
    one = Plain(family, **who)
    try:
        yield one
        one.process.communicate(timeout=60)
    finally:
        one.process.kill()
        one.process.wait()


def switched(verb: str, target: str, **who: Unpack[Who]) -> None:
    """It says that later connections too are switched, and nothing else."""
    done = ctl(verb, target, **who)
    assert done.returncode == 0 and done.stderr == "" and "; later ones too" in done.stdout, done


def asked(*requests: str, **who: Unpack[Who]) -> list[str]:
    text = "".join(f"{request}\n" for request in requests)
    done = subprocess.run([sys.executable, "-c", ASKER], input=text, capture_output=True, text=True, check=True, **who)
    return done.stdout.splitlines()


def gone() -> None:
    """All but the service's own slice; a rule goes with its cgroup."""
    until(lambda: nothing_left() and not flows(), 15)


@contextlib.contextmanager
def serving() -> Iterator[subprocess.Popen[bytes]]:
    """The service, which has removed all that it has made when it ends."""
    with service() as holder:
        yield holder
        gone()


def test_what_it_opens_after_bg_is_in_the_background() -> None:
    with serving():
        for family in (socket.AF_INET, socket.AF_INET6):
            with plain(family, **USER) as one, plain(**USER) as other:
                one.now("cubic")
                for _ in range(2):
                    switched("bg", one.pid, **USER)
                    one.now("lbe")
                    assert other.ask("0")[-1] == "cubic", "what is beside it"
                    switched("fg", one.pid, **USER)
                    one.now("cubic")
                switched("bg", one.pid, **USER)
                assert [path.name for path in lent()] == [f"lbe-own-{one.pid}"] and lent()[0].owner() == "nobody"
            gone()


def test_its_children_of_before_and_after() -> None:
    with serving():
        server = Server()
        words = " ".join(server.client(0.5))
        script = f"(sleep 1; {words}) & (sleep 1; sh -c '{words} & wait') & sleep 1.5; {words}; wait"
        tree = subprocess.Popen(["sh", "-c", script], stdout=-1, text=True, **USER)
        time.sleep(0.5)
        switched("bg", str(tree.pid), **USER)
        said = [json.loads(line) for line in tree.communicate(timeout=60)[0].splitlines()]
        assert len(said) == 3 and all(background(one) for one in said), said


def test_a_program_whose_sockets_its_user_may_not_see() -> None:
    """As with yama, or after a change of rights. What it opens later goes to the background all the same."""
    server = Server()
    script = f"""
import ctypes, socket
ctypes.CDLL(None).prctl(4, 0)
opened = []
print(flush=True)
while input() != "end":
    opened.append(socket.create_connection(("127.0.0.1", {server.port})))
    print(*(one.getsockopt(6, 13, 16).split(b"\\0")[0].decode() for one in opened), flush=True)
"""
    with serving():
        words = [sys.executable, "-c", script]
        hidden = subprocess.Popen(words, stdin=-1, stdout=-1, text=True, bufsize=1, **USER)
        line_of(hidden)

        def ask() -> str:
            tell(hidden, "\n")
            return line_of(hidden)

        assert ask() == "cubic\n"
        done = ctl("bg", str(hidden.pid), **USER)
        assert done.returncode == 0 and "; later ones too" in done.stdout and done.stderr.count("\n") == 1, done
        assert "the connections that it has now do not change: you may not inspect the sockets of" in done.stderr, done
        assert ask() == "cubic lbe\n" and len(flows()) == 1
        assert ctl("bg", str(hidden.pid), **OTHER).returncode == 1
        hidden.communicate("end\n")


def test_without_the_service_it_is_said_what_is_missing() -> None:
    with plain(**USER) as one:
        one.ask("0")
        done = ctl("bg", one.pid, **USER)
        assert done.returncode == 0 and done.stderr.count("\n") == 1 and f"or do once: {ONCE}\n" in done.stderr, done
        assert "later ones too" not in done.stdout and one.ask("0")[-1] == "cubic", "as it says"


def test_nobody_gets_another_users_process() -> None:
    """Nor a program with other rights, nor one that is elsewhere."""
    inner = ROOT / "inner"
    inner.mkdir(exist_ok=True)
    with serving(), plain(**USER) as mine, plain(**USER) as elsewhere, plain(**OTHER) as theirs:
        shell(f"echo {elsewhere.pid} >{inner}/cgroup.procs")
        script = "import os; os.setresuid(65534, 65534, 1234); print(flush=True); input()"
        mixed = subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, text=True)
        line_of(mixed)
        for pid in (theirs.pid, "1", str(mixed.pid), "4194303", "0", "-1"):
            for request in (f"bg {pid}", f"fg {pid}", f"in {pid} {mine.pid}"):
                (answer,) = asked(request, **USER)
                assert answer.startswith("-process") and " is not user 65534's" in answer, (request, answer)
        assert asked(f"in {elsewhere.pid} {mine.pid}", f"bg {mine.pid}", **USER)[1] == "+"
        for request in (f"in {elsewhere.pid} {mine.pid}", f"in {mine.pid} {mine.pid}"):
            assert " is not beside process" in asked(request, **USER)[0], request
        (answer,) = asked(f"in {mine.pid} {theirs.pid}", **USER)
        assert " is not beside process" in answer, answer
        assert " is not user 1234's" in asked(f"fg {mine.pid}", **OTHER)[0]
        assert "is in no cgroup of lbe-background" in asked(f"fg {elsewhere.pid}", **USER)[0]
        assert [path.name for path in lent()] == [f"lbe-own-{mine.pid}"]
        own = lent()[0]
        for pid, where in ((theirs.pid, own), ("1", own), (elsewhere.pid, own), (mine.pid, ROOT)):
            assert shell(f"echo {pid} >{where}/cgroup.procs", **USER).returncode, (pid, where)
        mixed.communicate("\n")
    inner.rmdir()


def test_what_is_no_request() -> None:
    with serving() as holder, plain(**USER) as one:
        before = descriptors(holder.pid)
        number = one.pid
        odd = ("b", "bg", "bg ", "BG 5", f"bg {number} ", f"bg {number}x", f"bg {number} 1", f"in {number}", "x" * 31)
        for request in (*odd, f"up {number}", f"fg {number} 1", f"in {number} 0", "bg 99999999999999999999"):
            assert asked(request, **USER)[0].startswith("-"), request
        assert not lent()
        assert asked(f"bg {number}")[0] == "-root needs no help"
        idle = []
        for count in range(3):
            idle.append(subprocess.Popen([sys.executable, "-c", IDLE], stdout=-1, text=True, **USER))
            assert line_of(idle[-1]) == "connected\n"
            assert count < 2 or line_of(idle[-1]) == "-lbe-background is busy\n"
        assert asked(f"bg {number}", **USER)[0] == "-lbe-background is busy"
        assert asked("bg 1", **OTHER)[0].endswith(" is not user 1234's"), "others are served"
        for process in idle:
            process.kill()
            process.wait()
        until(lambda: descriptors(holder.pid) == before)
        assert asked(f"bg {number}", **USER)[0] == "+"


def test_a_user_has_eight() -> None:
    with serving() as holder, contextlib.ExitStack() as stack:
        before = descriptors(holder.pid)
        many = [subprocess.Popen(["sleep", "600"], **USER) for _ in range(9)]
        for one in many:
            stack.callback(one.kill)
        answers = asked(*(f"bg {one.pid}" for one in many), **USER)
        assert answers[:8] == ["+"] * 8 and "has 8 programs in cgroups of lbe-background already" in answers[8], answers
        assert len(lent()) == 8 and asked(f"bg {many[0].pid}", **USER) == ["+"], "it has its cgroup"
        for one in many[:8]:
            one.kill()
            one.wait()
        until(lambda: not lent())
        until(lambda: descriptors(holder.pid) == before)
        assert asked(f"bg {many[8].pid}", **USER) == ["+"]
        many[8].kill()
        many[8].wait()


def test_what_root_says_of_it_holds() -> None:
    with serving(), plain(**USER) as one:
        switched("bg", one.pid, **USER)
        one.now("lbe")
        switched("fg", one.pid)
        one.now("cubic")
        switched("bg", one.pid)
        one.now("lbe")
        done = ctl("fg", one.pid, **USER)
        assert "later ones too" not in done.stdout and "run this as root" in done.stderr, done
        assert one.ask("0")[-1] == "lbe", "as it says"


def test_the_service_ends_before_the_program() -> None:
    """What bg has done lasts as long as the program."""
    for end in (signal.SIGTERM, signal.SIGKILL):
        with plain(**USER) as one:
            with service(end):
                switched("bg", one.pid, **USER)
                one.now("lbe")
            assert Path(SOCKET).exists() == (end == signal.SIGKILL)
            one.now("lbe")
            with service():
                one.now("lbe")
                done = ctl("fg", one.pid, **USER)
                assert "later ones too" not in done.stdout and "run this as root" in done.stderr, done
                switched("fg", one.pid)
                one.now("cubic")
        for cgroup in lent():
            cgroup.rmdir()
        until(lambda: not lent() and not [rule for rule in rules() if "uid" in rule], 15)


if __name__ == "__main__":
    main(dict(globals()))
