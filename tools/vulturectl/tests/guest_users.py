# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: a user's run, with the administrator's service and without it.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Unpack

from guest_run import CTL, Server, Who, background, ctl, flows, hang_up, line_of, main, rules, tell, until
from guest_switch import talk

USER = Who(user=65534, group=65534, extra_groups=[])
OTHER = Who(user=1234, group=1234, extra_groups=[])
ROOT = Path("/sys/fs/cgroup")
SLICE = ROOT / "served"
SOCKET = "/run/lbe/background.sock"
#: what an administrator is asked for
ONCE = "sudo systemctl enable --now lbe-background"
#: a caller that does not ask by run: it prints the answer and holds the connection until it is told to end
CALLER = f"""
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect("{SOCKET}")
print(s.recv(500).decode(), flush=True)
for line in sys.stdin:
    s.send(line.strip().encode())
    try:
        print(len(s.recv(500)), flush=True)
    except ConnectionResetError:
        print(0, flush=True)
"""
#: eight callers for each of 16 users, until the end of the input
CROWD = f"""
import ctypes, os, socket, sys
for number in range(128):
    if os.fork() == 0:
        os.setgid(2000 + number // 8)
        os.setuid(2000 + number // 8)
        ctypes.CDLL(None).prctl(4, 1)  # as after exec(): /proc shows whose it is
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect("{SOCKET}")
        os.write(1, s.recv(500) + b"\\n")
        sys.stdin.read()
        os._exit(0)
sys.stdin.read()
for _ in range(128):
    os.wait()
"""


@contextlib.contextmanager
def service(end: int = signal.SIGTERM) -> Iterator[subprocess.Popen[bytes]]:
    SLICE.mkdir(exist_ok=True)
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    Path("/tmp/users-ready").unlink(missing_ok=True)
    ready.bind("/tmp/users-ready")
    ready.settimeout(10)
    holder = subprocess.Popen(
        [CTL, "hold", "--users", str(SLICE)], env={**os.environ, "NOTIFY_SOCKET": "/tmp/users-ready"}
    )
    try:
        assert ready.recv(100) == b"READY=1"
        greet()
        yield holder
        assert holder.poll() is None, "it has ended by itself"
    finally:
        ready.close()
        holder.send_signal(end)
        holder.wait(timeout=10)


def greet() -> None:
    """Root's question, which leaves nothing: by its answer the socket is closed that said that the service is ready."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one, contextlib.suppress(FileNotFoundError):
        one.connect(SOCKET)
        assert one.recv(500).startswith(b"-root") and not one.recv(500)


@contextlib.contextmanager
def caller(**who: Unpack[Who]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that has asked the service, and the answer."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", CALLER], stdin=pipe, stdout=pipe, text=True, **who)
    try:
        yield process, line_of(process).strip()
    finally:
        hang_up(process)
        process.wait(timeout=10)


def lent() -> list[Path]:
    """The cgroups that the service has made. They may go meanwhile, which Path.rglob() takes for an error."""
    return sorted(Path(folder, name) for folder, names, _ in os.walk(ROOT) for name in names if name.startswith("lbe-"))


def nothing_left() -> bool:
    return not lent() and len(rules()) == (SLICE.exists() and Path(SOCKET).exists())


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def sockets(pid: int) -> int:
    return sum(os.readlink(path).startswith("socket:") for path in Path(f"/proc/{pid}/fd").iterdir())


def shell(script: str, stdin: int | None = None, **who: Unpack[Who]) -> subprocess.CompletedProcess[str]:
    words = ["sh", "-c", script]
    return subprocess.run(words, stdin=stdin, capture_output=True, text=True, check=False, **who)


def run(*words: str, who: Who = USER) -> subprocess.CompletedProcess[str]:
    return ctl("run", *words, **who)


def test_a_user_has_both_ways_from_the_first_packet() -> None:
    with service():
        for family in (socket.AF_INET, socket.AF_INET6):
            server = Server(family)
            done = run("--", *server.client())
            assert done.returncode == 0 and done.stderr == "", done
            said = json.loads(done.stdout)
            assert background(said) and said["uid"] == 65534, said
        until(nothing_left)
        server = Server()
        held = subprocess.Popen([CTL, "run", "--", *server.client(1)], stdout=-1, text=True, **USER)
        until(lambda: len(flows()) == 1)
        assert [rule["uid"] for rule in rules() if "uid" in rule] == [65534], "the rule is the user's own"
        assert len(lent()) == 1 and lent()[0].owner() == "nobody"
        assert background(json.loads(held.communicate(timeout=30)[0]))
        until(nothing_left)


def test_children_and_up_alone() -> None:
    with service():
        server = Server()
        words = " ".join(server.client())
        done = run("--up", "--", "sh", "-c", f"({words}) & wait")
        assert background(json.loads(done.stdout)) and done.stderr == "", done
        until(nothing_left)


def test_down_alone_has_a_cgroup_without_the_program() -> None:
    with service() as holder:
        before = descriptors(holder.pid)
        server = Server()
        words = [CTL, "run", "--down", "--", *server.client(1)]
        held = subprocess.Popen(words, stdout=-1, stderr=-1, text=True, **USER)
        until(flows)
        assert [rule["id"] for rule in rules() if "uid" in rule] == [flows()[0]["rule"]], "from the first packet"
        out, error = held.communicate(timeout=30)
        said = json.loads(out)
        assert (said["cc"], said["tos"], said["priority"]) == ("cubic", 0, 0), "nobody asked for uploads"
        assert error == "" and held.returncode == 0, error
        until(nothing_left)
        assert descriptors(holder.pid) == before
        with caller(**USER) as (process, answer):
            assert answer == "+lbe"
            for answered in ("1\n", "0\n"):  # a second time it is nonsense
                tell(process, "down\n")
                assert line_of(process) == answered
        until(lambda: not lent())


def test_down_alone_where_a_cgroup_is_ones_own_or_none_is_lent() -> None:
    server = Server()
    done = run("--down", "--", *server.client(0.3))
    assert done.stderr.count(ONCE) == 1 and done.stderr.count("\n") == 1 and done.returncode == 0, done
    own = ROOT / "his"
    own.mkdir()
    for path in (own, own / "cgroup.procs"):
        os.chown(path, 65534, 65534)
    enter = f"echo 0 >{own}/cgroup.procs; exec setpriv --reuid 65534 --regid 65534 --clear-groups {CTL} run --down -- "
    done = shell(enter + " ".join(server.client()))
    assert (done.returncode, done.stderr) == (0, ""), done
    with service():
        shell(enter + f"sh -c 'ls -d {ROOT}/lbe-*/* {own}/* >/tmp/where'")
        assert f"{own}/vulture-" in Path("/tmp/where").read_text() and "lbe-" not in Path("/tmp/where").read_text()
    until(lambda: not list(own.glob("vulture-*")))
    own.rmdir()


def test_closed_standard_descriptors() -> None:
    """The connection to the service and the pipes of run do not take their numbers: the guard closes those."""
    with service():
        server = Server()
        for closed in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"):
            Path("/tmp/closed").write_text("")
            Path("/tmp/closed").chmod(0o666)
            script = f"ls /proc/self/fd >/tmp/fds; sleep 1; exec {' '.join(server.client())} >/tmp/closed 2>&1"
            Path("/tmp/closed.sh").write_text(script)
            held = subprocess.Popen(["sh", "-c", f"exec {CTL} run -- sh /tmp/closed.sh {closed}"], **USER)
            until(lent)
            time.sleep(0.3)
            held.kill()
            held.wait()
            until(lambda: Path("/tmp/closed").read_text())
            assert background(json.loads(Path("/tmp/closed").read_text())), closed
            until(nothing_left)


def test_cgroups_that_the_command_leaves_go_too() -> None:
    """Whatever its user has made there, a place is free again."""
    with service():
        script = "mkdir -p /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/one/two; cd /sys/fs/cgroup/lbe-*; mkdir three"
        done = run("--", "sh", "-c", script)
        assert done.returncode == 0 and done.stderr == "", done
        until(nothing_left)


def test_a_user_without_the_service_is_told_once_what_is_missing() -> None:
    server = Server()
    words = " ".join(server.client(0.5))
    done = run("--", "sh", "-c", f"{words} & {words} & wait")
    assert done.returncode == 0 and all(background(json.loads(line)) for line in done.stdout.splitlines()), done
    assert done.stderr.count(ONCE) == 1, done.stderr
    assert not ctl("run", "--", "true").stderr, "root needs no service"


def test_a_killed_run_is_held_by_its_guard_and_a_killed_guard_leaves_nothing() -> None:
    with service():
        server = Server()
        script = f"while :; do {' '.join(server.client())} >>/tmp/held; sleep 0.2; done"
        Path("/tmp/held").write_text("")
        Path("/tmp/held").chmod(0o666)
        held = subprocess.Popen([CTL, "run", "--", "sh", "-c", script], **USER)
        until(lambda: Path("/tmp/held").read_text().count("\n") > 1)
        held.kill()
        held.wait()
        time.sleep(0.5)
        assert all(background(json.loads(line)) for line in Path("/tmp/held").read_text().splitlines())
        (cgroup,) = lent()
        for pid in (cgroup / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.3)
        Path("/tmp/held").write_text("")
        until(lambda: Path("/tmp/held").read_text().count("\n") > 1)
        assert not any(background(json.loads(line)) for line in Path("/tmp/held").read_text().splitlines())
        (inner,) = cgroup.glob("vulture-*")
        (inner / "cgroup.kill").write_text("1")
        until(lambda: inner.exists() and "populated 0" in (inner / "cgroup.events").read_text())
        inner.rmdir()  # what a killed guard leaves is its user's
        until(lambda: not lent(), 10)
        until(lambda: len(rules()) == 1, 15)


def test_nobody_gets_another_users_process_in() -> None:
    stranger = subprocess.Popen(["sleep", "60"], **OTHER)
    with service(), caller(**USER) as (mine, answer), caller(**OTHER) as (theirs, _):
        assert answer == "+lbe", answer
        dirs = {cgroup.name: cgroup for cgroup in lent()}
        own, other = dirs[f"lbe-{mine.pid}"], dirs[f"lbe-{theirs.pid}"]
        assert (own.stat().st_uid, other.stat().st_uid) == (65534, 1234)
        for pid, where in ((stranger.pid, own), (theirs.pid, own), (mine.pid, other), (mine.pid, ROOT), (1, own)):
            assert shell(f"echo {pid} >{where}/cgroup.procs", **USER).returncode, (pid, where)
        assert shell(f"mkdir {other}/mine", **USER).returncode and not (other / "mine").exists()
        assert shell(f"echo 5 >{own}/cgroup.max.depth", **USER).returncode, "its limits are the administrator's"
        server = Server()
        assert json.loads(shell(" ".join(server.client()), **OTHER).stdout)["cc"] == "cubic"
    stranger.kill()
    stranger.wait()


def test_a_user_has_eight_and_others_are_served() -> None:
    with service() as holder, contextlib.ExitStack() as stack:
        before = descriptors(holder.pid)
        callers = [stack.enter_context(caller(**USER)) for _ in range(8)]
        assert [answer for _, answer in callers] == ["+lbe"] * 8
        with caller(**USER) as (_, answer):
            assert answer == "-user 65534 has 8 of them already", answer
        server = Server()
        done = run("--", *server.client(0.3))
        assert background(json.loads(done.stdout)) and "has 8 of them already" in done.stderr, done
        for _ in range(300):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.connect(SOCKET)
            one.close()
        with caller(**OTHER) as (_, answer):
            assert answer == "+lbe", answer
        stack.close()
        until(lambda: not lent())
        with caller(**USER) as (_, answer):
            assert answer == "+lbe", "the places are free again"
        until(lambda: not lent())
        until(lambda: descriptors(holder.pid) == before)


def test_all_places_taken_by_many_users() -> None:
    with service():
        # children of one process, as 128 programs are too much for this machine
        crowd = subprocess.Popen([sys.executable, "-c", CROWD], stdin=-1, stdout=-1, text=True)
        assert {line_of(crowd) for _ in range(128)} == {"+lbe\n"}
        assert len(lent()) == 128
        with caller(**USER) as (_, answer):
            assert answer == "-all 128 of them are taken", answer
        crowd.communicate()
        until(lambda: not lent())


def test_a_caller_says_nothing_and_root_needs_no_help() -> None:
    with service() as holder:
        with caller() as (_, answer):
            assert answer.startswith("-root needs no help"), answer
        with caller(**USER) as (process, answer):
            assert answer == "+lbe"
            tell(process, "/sys/fs/cgroup\n")
            assert line_of(process) == "0\n", "whoever speaks is hung up on"
        until(lambda: not lent())
        before = descriptors(holder.pid)
        # descriptors that come with a connection are not taken
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one.connect(SOCKET)
        with contextlib.suppress(OSError):
            socket.send_fds(one, [b"x"], [os.open("/sys/fs/cgroup", os.O_RDONLY)] * 50)
        one.close()
        until(lambda: descriptors(holder.pid) == before)


def test_a_process_that_left_gets_nothing() -> None:
    """The connection is handed on and the one that connected ends: its number may soon be another's."""
    with service() as holder:
        holder.send_signal(signal.SIGSTOP)
        script = f"""
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect("{SOCKET}")
child = os.fork()
if child:
    os._exit(0)
print(s.recv(500).decode(), flush=True)
"""
        process = subprocess.Popen([sys.executable, "-c", script], stdout=-1, text=True, **USER)
        process.wait()
        holder.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=10)[0].startswith("-process"), "it is gone"
        until(lambda: not lent())


def has_sockets(pid: int, count: int) -> bool:
    return sockets(pid) == count


def test_the_service_ends_before_the_command() -> None:
    for end in (signal.SIGTERM, signal.SIGKILL):
        with service(end):
            server = Server()
            words = " ".join(server.client())
            script = f"while [ ! -e /tmp/go ]; do sleep 0.1; done; {words}; {' '.join(server.client(0.5))}"
            Path("/tmp/go").unlink(missing_ok=True)
            held = subprocess.Popen([CTL, "run", "--", "sh", "-c", script], stdout=-1, stderr=-1, text=True, **USER)
            until(lent)
            time.sleep(0.3)
            before = sockets(held.pid)
        until(partial(has_sockets, held.pid, before - 1))  # that to the service is closed
        Path("/tmp/go").touch()
        out, error = held.communicate(timeout=30)
        plain, looked_at = (json.loads(line) for line in out.splitlines())
        assert held.returncode == 0 and not background(plain) and background(looked_at), (out, error)
        assert error.count("lbe-background has ended") == 1 and error.count("\n") == 1, error
        for cgroup in lent():
            cgroup.rmdir()
        assert Path(SOCKET).exists() == (end == signal.SIGKILL)
        SLICE.rmdir()
        until(lambda: not rules(), 15)
    with service():  # the socket of a killed one is in nobody's way
        assert background(json.loads(run("--", *server.client()).stdout))


def test_fg_and_bg_of_what_has_a_lent_cgroup() -> None:
    """The program is the service's: it takes it away and attaches it again; nobody may say more."""
    with service() as holder:
        before = descriptors(holder.pid)
        with talk(**USER) as one:
            assert one.ask("0") == ["lbe"]
            for _ in range(2):
                assert ctl("fg", one.pid, **USER).stderr == ""
                opened = one.ask("0")
                assert set(opened) == {"cubic"} and not flows(), opened
                assert ctl("bg", one.pid, **USER).stderr == ""
                opened = one.ask("0")
                assert set(opened) == {"lbe"} and len(flows()) == len(opened), "from the first packet again"
            hang_up(one.process)
            assert one.process.stderr and one.process.wait(timeout=30) == 0 and one.process.stderr.read() == ""
        until(nothing_left)
        assert descriptors(holder.pid) == before
        with caller(**USER) as (process, answer):
            assert answer == "+lbe"
            for word, answered in (("down", "1\n"), ("up", "1\n"), ("up", "0\n")):  # it has it already
                tell(process, f"{word}\n")
                assert line_of(process) == answered, word
        until(lambda: not lent())


def test_from_the_deadline_on_it_is_an_ordinary_program() -> None:
    with service():
        server = Server()
        script = f"{' '.join(server.client())}; sleep 3; {' '.join(server.client())}"
        done = run("--deadline", "1s", "--", "sh", "-c", script)
        first, second = (json.loads(line) for line in done.stdout.splitlines())
        assert background(first) and second["cc"] == "cubic" and second["tos"] == 0, done
        assert done.stderr.count("\n") == 1 and "the deadline has come" in done.stderr, done.stderr
        until(nothing_left)


def test_a_user_whose_cgroup_is_his_own() -> None:
    """As below systemd's user manager."""
    own = ROOT / "his"
    own.mkdir()
    for path in (own, own / "cgroup.procs"):
        os.chown(path, 65534, 65534)
    enter = f"echo 0 >{own}/cgroup.procs; exec setpriv --reuid 65534 --regid 65534 --clear-groups {CTL} run -- "
    server = Server()
    with service():
        done = shell(enter + " ".join(server.client()))
        assert done.returncode == 0, done
        assert background(json.loads(done.stdout)) and done.stderr == "", done
        until(nothing_left)
        own.rmdir()


def test_a_cgroup_of_the_callers_own_that_is_made_unfit() -> None:
    """Whatever its user does to it, the service refuses politely, leaves nothing and serves others."""
    own = ROOT / "his"
    own.mkdir()
    with service() as holder:
        before = descriptors(holder.pid)
        for setting, reason in (
            ("echo 0 >cgroup.max.descendants", "Resource temporarily unavailable"),
            ("echo 0 >cgroup.max.depth", "Resource temporarily unavailable"),
            ("echo 0 >pids.max", ""),
            ("echo threaded >cgroup.type", "Operation not supported"),
        ):
            inner = own / "inner"
            inner.mkdir()
            for path in (own, own / "cgroup.procs", own / "cgroup.threads", inner, *inner.iterdir()):
                os.chown(path, 65534, 65534)
            Path("/tmp/caller.py").write_text(CALLER)
            as_user = "exec setpriv --reuid 65534 --regid 65534 --clear-groups"
            script = f"cd {inner}; echo 0 >cgroup.procs; {setting};"
            if "threaded" in setting:  # takes in only who is below the same domain
                script = f"cd {inner}; echo 0 >{own}/cgroup.procs; {setting}; echo $$ >cgroup.threads;"
            done = shell(f"{script} {as_user} {sys.executable} /tmp/caller.py", stdin=subprocess.DEVNULL)
            assert done.stdout.startswith("+lbe" if not reason else "-process"), (setting, done)
            assert reason in done.stdout, (setting, done)
            until(lambda: not lent())
            inner.rmdir()
            with caller(**OTHER) as (_, answer):
                assert answer == "+lbe", answer
            until(lambda: not lent())
        assert descriptors(holder.pid) == before
    own.rmdir()


def test_a_lent_cgroup_that_its_user_takes_away() -> None:
    """Below a cgroup of its own a user may remove what the service has made, and make another of that name."""
    own = ROOT / "his"
    own.mkdir()
    for path in (own, own / "cgroup.procs"):
        os.chown(path, 65534, 65534)
    Path("/tmp/caller.py").write_text(CALLER)
    with service() as holder:
        before = descriptors(holder.pid)
        for again in (False, True):
            words = f"echo 0 >{own}/cgroup.procs; exec setpriv --reuid 65534 --regid 65534 --clear-groups"
            script = f"{words} {sys.executable} /tmp/caller.py"
            process = subprocess.Popen(["sh", "-c", script], stdin=-1, stdout=-1, text=True)
            assert line_of(process) == "+lbe\n"
            (cgroup,) = lent()
            away = f"echo {process.pid} >{own}/cgroup.procs && rmdir {cgroup}"
            if again:
                away += f" && mkdir {cgroup} && mkdir {cgroup}/mine"
            assert shell(away, **USER).returncode == 0
            hang_up(process)
            process.wait(timeout=10)
            until(lambda: not lent())
            assert descriptors(holder.pid) == before
    own.rmdir()


def test_the_name_of_a_cgroup_is_no_line_of_its_own() -> None:
    """A path so long that /proc/PID/cgroup is read in two pieces, of which the second looks like another cgroup."""
    path = "/his"
    while len(path) < 800:
        path += "/" + 200 * "a"
    path += "/" + (1019 - len(path)) * "a" + "0::"
    assert f"0::{path}/served"[1023:] == "0::/served"
    folder = ROOT / f"{path}/served".lstrip("/")
    folder.mkdir(parents=True)
    Path("/tmp/caller.py").write_text(CALLER)
    enter = f"echo 0 >{folder}/cgroup.procs; exec setpriv --reuid 65534 --regid 65534 --clear-groups"
    with service():
        done = shell(f"{enter} {sys.executable} /tmp/caller.py", stdin=subprocess.DEVNULL)
        assert done.stdout.rstrip().endswith(": File name too long"), done
        assert not lent()
    while folder != ROOT:
        folder.rmdir()
        folder = folder.parent


def test_a_second_service_leaves_the_first_ones_users_alone() -> None:
    server = Server()
    other = ROOT / "other"
    other.mkdir(exist_ok=True)
    with service():
        second = subprocess.Popen([CTL, "hold", "--users", str(other)], stderr=-1, text=True)
        until(lambda: len(rules()) == 2)
        time.sleep(0.2)
        second.send_signal(signal.SIGTERM)
        said = second.communicate(timeout=10)[1]
        done = run("--", *server.client())
        assert background(json.loads(done.stdout)) and done.stderr == "", done
        assert second.returncode == 0 and "Address already in use" in said and said.count("\n") == 1, said
        until(nothing_left)
    other.rmdir()


def test_errors_of_hold() -> None:
    for words, text in (
        (("hold", "--users"), "hold takes the directory of a v2 cgroup"),
        (("hold", "--user=alice", "/sys/fs/cgroup"), "doesn't allow an argument"),
    ):
        done = ctl(*words)
        assert done.returncode == 2 and text in done.stderr, done
    done = ctl("hold", "--users", "/sys/fs/cgroup", **USER)
    assert done.returncode == 1 and "hold needs root" in done.stderr, done


if __name__ == "__main__":
    main(dict(globals()))
