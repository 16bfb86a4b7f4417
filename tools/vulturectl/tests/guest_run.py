# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: run, bg and fg as a user meets them.

Called with the folder of vulturectl; prints "ok NAME" or "not ok NAME" with the
reason for each function named test_*.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

CTL = f"{sys.argv[1]}/vulturectl"
#: what the tests run as a command: a client that tells how its connection is set up, and holds it
CLIENT = """
import json, os, socket, sys, time
s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)
s.connect((sys.argv[1], int(sys.argv[2])))
if len(sys.argv) > 3:
    time.sleep(float(sys.argv[3]))
level, option = (41, 67) if ':' in sys.argv[1] else (0, 1)
print(json.dumps({"cc": s.getsockopt(6, 13, 16).split(b"\\0")[0].decode(), "tos": s.getsockopt(level, option),
                  "priority": s.getsockopt(1, 12), "uid": os.getuid()}), flush=True)
"""
Path("/tmp/client.py").write_text(CLIENT)


class Who(TypedDict, total=False):
    """For subprocess: the user as whom a command runs, and what else its process is given."""

    user: int
    group: int
    extra_groups: list[int]
    env: dict[str, str]
    cwd: str | Path
    umask: int
    pass_fds: list[int]


NOBODY = Who(user=65534, group=65534)
#: what is read from JSON
Object = dict[str, Any]


def ctl(*words: str, **more: Unpack[Who]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CTL, *words], capture_output=True, text=True, timeout=60, check=False, **more)


class Server:
    """A listening socket that holds what it accepts."""

    def __init__(self, family: int = socket.AF_INET) -> None:
        self.socket = socket.socket(family)
        self.socket.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self.socket.listen()
        self.address = self.socket.getsockname()[0]
        self.port = str(self.socket.getsockname()[1])

    def client(self, seconds: float | None = None) -> list[str]:
        words = [sys.executable, "/tmp/client.py", self.address, self.port]
        return words if seconds is None else [*words, str(seconds)]


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that a program says."""
    assert process.stdout
    return process.stdout.readline()


def tell(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin
    process.stdin.write(text)
    process.stdin.flush()


def hang_up(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.close()


def cgroups() -> set[str]:
    return {path.name for path in Path("/sys/fs/cgroup").glob("vulture-*")}


def rules() -> list[Object]:
    listed: list[Object] = json.loads(ctl("--json", "rule", "list").stdout)
    return listed


def flows() -> list[Object]:
    listed: list[Object] = json.loads(ctl("--json", "list").stdout)["connections"]
    return listed


def until(what: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait for a condition, 20 ms at a time."""
    for _ in range(int(seconds / 0.02)):
        if what():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come")


def background(said: Object) -> bool:
    return (said["cc"], said["tos"], said["priority"]) == ("lbe", 4, 1)


def test_root_both_ways_from_the_first_packet() -> None:
    for family in (socket.AF_INET, socket.AF_INET6):
        server = Server(family)
        done = ctl("run", "--", *server.client())
        assert done.returncode == 0, done.stderr
        assert background(json.loads(done.stdout)), done.stdout
        assert done.stderr == "", done.stderr
    assert not cgroups() and not rules(), "the guard left something"


def test_root_takes_children_and_downloads() -> None:
    server = Server()
    run = subprocess.Popen([CTL, "run", "--", "sh", "-c", " ".join(server.client(1)) + " & wait"], stdout=-1, text=True)
    until(lambda: len(flows()) == 1)
    assert background(json.loads(run.communicate(timeout=30)[0]))
    assert run.returncode == 0
    until(lambda: not cgroups() and not rules())


STATIC = """
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[2])) };
	char control[16] = "";
	socklen_t size = sizeof(control), room = sizeof(int);
	int fd = socket(AF_INET, SOCK_STREAM, 0), tos = 0, priority = 0;

	inet_pton(AF_INET, argv[1], &to.sin_addr);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return 1;
	usleep(argc > 3 ? 500000 : 0);
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &size);
	getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &room);
	getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, &room);
	printf("{\\"cc\\": \\"%s\\", \\"tos\\": %d, \\"priority\\": %d}\\n", control, tos, priority);
}
"""


def test_a_static_binary() -> None:
    """Nothing is preloaded, so that the linker does not matter."""
    Path("/tmp/static.c").write_text(STATIC)
    subprocess.run(["gcc", "-static", "-o", "/tmp/static", "/tmp/static.c"], check=True)
    server = Server()
    done = ctl("run", "--", "/tmp/static", server.address, server.port)
    assert background(json.loads(done.stdout)), done
    done = ctl("run", "--", "/tmp/static", server.address, server.port, "late", user=65534, group=65534)
    assert background(json.loads(done.stdout)), done


def test_an_address_of_version_4_on_a_socket_of_version_6() -> None:
    """As Java and servers of both families have them. Only its packets say whether the DSCP is theirs."""
    server = Server()
    script = f"""
import json, os, socket, time
s = socket.socket(socket.AF_INET6)
s.connect(("::ffff:127.0.0.1", {server.port}))
time.sleep(0.5)
print(json.dumps({{"cc": s.getsockopt(6, 13, 16).split(b"\\0")[0].decode(), "tos": s.getsockopt(0, 1),
                  "priority": s.getsockopt(1, 12)}}))
"""
    for user in (Who(), NOBODY):
        done = ctl("run", "--", sys.executable, "-c", script, **user)
        assert background(json.loads(done.stdout)), (user, done)


def test_up_alone_and_down_alone() -> None:
    server = Server()
    run = subprocess.Popen([CTL, "run", "--up", "--", *server.client(0.5)], stdout=-1, text=True)
    time.sleep(0.3)
    assert not rules() and not flows(), "--up made a rule"
    assert background(json.loads(run.communicate(timeout=30)[0]))
    done = ctl("run", "--down", "--", *server.client())
    said = json.loads(done.stdout)
    assert (said["cc"], said["tos"], said["priority"]) == ("cubic", 0, 0), said


def test_sudo_drops_to_the_invoking_user() -> None:
    server = Server()
    done = ctl("run", "--", *server.client(), env={**os.environ, "SUDO_UID": "65534", "SUDO_GID": "65534"})
    said = json.loads(done.stdout)
    assert said["uid"] == 65534 and background(said), said


def test_a_user_without_any_privilege() -> None:
    server = Server()
    run = subprocess.Popen(
        [CTL, "run", "--", *server.client(1)], stdout=-1, stderr=-1, text=True, user=65534, group=65534
    )
    until(lambda: len(flows()) == 1)
    out, error = run.communicate(timeout=30)
    assert run.returncode == 0 and background(json.loads(out)), (out, error)
    assert not cgroups() and not rules(), "an ordinary user has neither"


def test_a_killed_run_leaves_nothing() -> None:
    server = Server()
    run = subprocess.Popen([CTL, "run", "--", *server.client(2)], stdout=-1, text=True)
    until(lambda: len(rules()) == 1 and flows())
    run.kill()
    run.wait()
    assert rules(), "its command still runs, and is held in the background"
    until(lambda: not cgroups() and not rules(), 10)


def test_a_child_that_outlives_the_command_stays_in_the_background() -> None:
    server = Server()
    words = " ".join(server.client(1.5))
    done = ctl("run", "--", "sh", "-c", f"setsid {words} >/tmp/late </dev/null 2>&1 & sleep 0.3")
    assert done.returncode == 0 and "still run; they stay in the background" in done.stderr, done
    assert len(rules()) == 1
    until(lambda: not cgroups() and not rules(), 10)
    assert background(json.loads(Path("/tmp/late").read_text()))


def test_bg_and_fg_of_a_running_program() -> None:
    server = Server()
    client = subprocess.Popen(server.client(1.5), stdout=-1, text=True)
    accepted = server.socket.accept()[0]
    done = ctl("bg", str(client.pid))
    assert done.returncode == 0 and "1 TCP sockets, 1 sending and 1 receiving" in done.stdout, done
    assert len(flows()) == 1
    done = ctl("--json", "fg", str(client.pid))
    assert json.loads(done.stdout) == {"target": str(client.pid), "sockets": 1, "up": 1, "down": 1, "later": True}
    assert not flows()
    said = json.loads(client.communicate(timeout=30)[0])
    assert (said["cc"], said["tos"], said["priority"]) == ("cubic", 0, 0), said
    accepted.close()


def test_fg_of_another_users_program_is_refused() -> None:
    server = Server()
    client = subprocess.Popen(server.client(1.0), stdout=-1, text=True)
    accepted = server.socket.accept()[0]
    done = ctl("bg", str(client.pid), user=65534, group=65534)
    assert done.returncode == 1 and "run this as its user, or as root" in done.stderr, done
    assert not flows()
    said = json.loads(client.communicate(timeout=30)[0])
    assert said["cc"] == "cubic", said
    accepted.close()


def test_a_callback_of_list_may_stop_what_it_sees() -> None:
    library = ctypes.CDLL(f"{sys.argv[1]}/libvulture.so", use_errno=True)
    library.vulture_open.restype = ctypes.c_void_p
    library.vulture_stop_id.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    handle = ctypes.c_void_p(library.vulture_open())
    server = Server()
    pairs = []
    for _ in range(60):
        client = socket.create_connection((server.address, int(server.port)))
        pairs += [client, server.socket.accept()[0]]
        assert library.vulture_start(handle, client.fileno(), None) == 0
    seen = []

    def stop(flow: ctypes._Pointer[ctypes.c_uint64], _: int | None) -> int:
        seen.append(flow[0])
        return 0 if library.vulture_stop_id(handle, flow[0]) == 0 else 1

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p)
    assert library.vulture_list(handle, callback(stop), None) == 0
    assert len(set(seen)) == 60 and not flows(), len(seen)
    library.vulture_close(handle)
    for one in pairs:
        one.close()


def test_handles_of_the_library_in_many_threads() -> None:
    """Each thread has its own handle, answers, callbacks and error text; none waits for another one's."""
    library = ctypes.CDLL(f"{sys.argv[1]}/libvulture.so", use_errno=True)
    library.vulture_open.restype = ctypes.c_void_p
    library.vulture_error.restype = ctypes.c_char_p
    library.vulture_error.argtypes = [ctypes.c_void_p]
    each_flow = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p)
    library.vulture_stop_id.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    failures: list[BaseException] = []
    server = Server()

    def use(number: int) -> None:
        try:
            handle = ctypes.c_void_p(library.vulture_open())
            with socket.create_connection((server.address, int(server.port))) as client:
                for _ in range(50):
                    assert library.vulture_start(handle, client.fileno(), None) == 0, library.vulture_error(handle)
                    seen: list[int] = []
                    keep = each_flow(lambda flow, _, seen=seen: seen.append(flow[0]) or 0)
                    assert library.vulture_list(handle, keep, None) == 0 and len(set(seen)) == len(seen) >= 1
                    assert library.vulture_stop_id(handle, 1 << 60 | number) == -1
                    assert library.vulture_error(handle) == f"no connection with id {1 << 60 | number}".encode()
                    assert library.vulture_stop(handle, client.fileno()) == 0
            library.vulture_close(handle)
        except BaseException as error:  # noqa: BLE001 - the main thread tells of it
            failures.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert not flows()


def test_a_directory_that_is_no_cgroup_is_refused() -> None:
    done = ctl("rule", "add", "--cgroup", "/tmp")
    assert done.returncode == 1 and "/tmp: not the directory of a v2 cgroup" in done.stderr, done
    assert not rules()


CONF = Path("/tmp/background.conf")


def apply(text: str, **more: Unpack[Who]) -> subprocess.CompletedProcess[str]:
    CONF.write_text(text)
    return ctl("apply", str(CONF), **more)


def said_inside(cgroup: str, server: Server) -> Object:
    words = " ".join(server.client())
    script = f"echo 0 >{cgroup}/cgroup.procs; exec {words}"
    done = subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True)
    said: Object = json.loads(done.stdout)
    return said


def test_apply_is_idempotent_and_takes_away_what_is_not_wanted() -> None:
    for name in ("one", "two"):
        Path(f"/sys/fs/cgroup/{name}").mkdir(exist_ok=True)
    both = "# mirrors\ncgroup /sys/fs/cgroup/one\ncgroup /sys/fs/cgroup/two up\nremote-port 873\n"
    done = apply(both)
    assert (done.returncode, done.stdout) == (0, "3 added, 0 kept, 0 removed, 0 failed\n"), done
    before = rules()
    assert len(before) == 2, before
    done = apply(both)
    assert (done.returncode, done.stdout) == (0, "0 added, 3 kept, 0 removed, 0 failed\n"), done
    assert rules() == before, "the second apply changed something"
    shown = ["cgroup /sys/fs/cgroup/one both", "cgroup /sys/fs/cgroup/two up", "remote-port 873 both"]
    assert ctl("showconf").stdout.splitlines() == shown
    server = Server()
    assert background(said_inside("/sys/fs/cgroup/one", server))
    assert background(said_inside("/sys/fs/cgroup/two", server))
    done = apply("cgroup /sys/fs/cgroup/two up\n")
    assert done.stdout == "0 added, 1 kept, 2 removed, 0 failed\n", done
    assert not rules()
    assert said_inside("/sys/fs/cgroup/one", server)["cc"] == "cubic"
    assert apply("").stdout == "0 added, 0 kept, 1 removed, 0 failed\n"
    assert said_inside("/sys/fs/cgroup/two", server)["cc"] == "cubic"
    assert ctl("showconf").stdout == ""
    apply("remote-port 873 down controller=0\n")
    assert ctl("showconf").stdout == "remote-port 873 down controller=0\n"
    apply("remote-port 873 controller=rledbat target-us=20000\n")
    assert ctl("showconf").stdout == "remote-port 873 both controller=rledbat target-us=20000\n"
    assert [rule["options"]["target-us"] for rule in rules()] == [20000]
    assert apply("remote-port 873\n").stdout == "1 added, 0 kept, 1 removed, 0 failed\n"
    assert apply("dscp le\ndscp 0\n").stdout == "2 added, 0 kept, 1 removed, 0 failed\n"
    assert [rule["dscp"] for rule in rules()] == [1, 0]
    assert ctl("showconf").stdout == "dscp le both\ndscp 0 both\n"
    assert apply("dscp le\n").stdout == "0 added, 1 kept, 1 removed, 0 failed\n"
    apply("")


def test_apply_gives_a_line_its_weight() -> None:
    """In percent of an ordinary background connection, as run has it; a unit by a slice for those of its weight."""
    apply("remote-port 873 weight 20\nremote-port 80 down min-kbit=9 weight 1000\n")
    assert [rule["options"]["weight"] for rule in rules()] == [200, 10000]
    assert {rule["options"]["controller"] for rule in rules()} == {"credit"}
    assert ctl("showconf").stdout == ("remote-port 873 both weight 20\nremote-port 80 down min-kbit=9 weight 1000\n")
    assert apply("remote-port 873 weight 30\n").stdout == "1 added, 0 kept, 2 removed, 0 failed\n"
    three = "unit restic.service weight 50\nunit mirror.service\nunit pull.service weight 50\n"
    done = apply(three)
    assert done.stdout == "3 added, 0 kept, 1 removed, 0 failed\n", done
    before = rules()
    drop_in = "/run/systemd/system/{}.service.d/50-lbe-background.conf"
    slices = {"restic": "background_50", "mirror": "background", "pull": "background_50"}
    for unit, name in slices.items():
        assert f"Slice={name}.slice\n" in Path(drop_in.format(unit)).read_text()
    assert sorted((rule["cgroup"], rule["options"]["weight"]) for rule in before) == sorted(
        (Path(f"/sys/fs/cgroup/{name}.slice").stat().st_ino, weight)
        for name, weight in (("background", 1000), ("background_50", 500))
    )
    assert apply(three).stdout == "0 added, 3 kept, 0 removed, 0 failed\n" and rules() == before
    for name in set(slices.values()):
        assert background(said_inside(f"/sys/fs/cgroup/{name}.slice", Server()))
    assert ctl("showconf").stdout == three
    # the first of two of a weight goes, then the other one has another weight
    apply("unit mirror.service\nunit pull.service weight 50\n")
    assert len(rules()) == 2 and background(said_inside("/sys/fs/cgroup/background_50.slice", Server()))
    apply("unit mirror.service\nunit pull.service weight 5\n")
    assert "Slice=background_5.slice\n" in Path(drop_in.format("pull")).read_text()
    assert sorted(rule["options"]["weight"] for rule in rules()) == [50, 1000]
    assert said_inside("/sys/fs/cgroup/background_50.slice", Server())["cc"] == "cubic"
    apply("")
    assert not rules()


def test_apply_leaves_a_rule_that_only_has_the_number_of_its_own() -> None:
    """Numbers begin anew with the module: what was applied is known by what it matches too."""
    state = Path("/run/lbe/applied")
    file = "remote-port 80\nremote 10.0.0.0/8\ndscp le\n"
    apply(file)
    hand = str(json.loads(ctl("--json", "rule", "add", "--local-port", "9").stdout)["id"])
    before = rules()
    # as if each of ours had that number
    lines = [line.rsplit(" ", 1)[0] for line in state.read_text().splitlines()]
    state.write_text("".join(f"{line} {hand}\n" for line in lines))
    done = apply(file)
    assert done.stdout == "3 added, 0 kept, 0 removed, 0 failed\n", done
    assert rules()[:4] == before and len(rules()) == 7, rules()
    assert apply(file).stdout == "0 added, 3 kept, 0 removed, 0 failed\n"
    state.write_text("".join(f"{line} {hand}\n" for line in lines))
    assert apply("").stdout == "0 added, 0 kept, 3 removed, 0 failed\n"
    assert len(rules()) == 7, "the rule of that number is another's"
    for rule in rules():
        ctl("rule", "del", str(rule["id"]))


def test_apply_puts_units_into_the_slice() -> None:
    done = apply("unit restic.service\nunit mirror.service\n")
    assert (done.returncode, done.stdout) == (0, "2 added, 0 kept, 0 removed, 0 failed\n"), done
    drop_in = Path("/run/systemd/system/restic.service.d/50-lbe-background.conf")
    assert "Slice=background.slice" in drop_in.read_text()
    assert len(rules()) == 1, "units share the slice's rule"
    assert background(said_inside("/sys/fs/cgroup/background.slice", Server()))
    done = apply("unit mirror.service\n")
    assert not drop_in.exists() and len(rules()) == 1, done
    assert background(said_inside("/sys/fs/cgroup/background.slice", Server()))
    apply("")
    assert not rules()


def test_apply_reads_the_whole_file_before_it_changes_anything() -> None:
    for text, why in (
        ("remote-port 80\nlocal-port 70000\n", ":2: port '70000' is not a number within 1 to 65535"),
        ("port 80\n", ":1: 'port' is none of unit, cgroup, user, local-port, remote-port, remote, dscp"),
        ("remote 10.0.0.0/33\n", "prefix length '33' is not a number within 0 to 32"),
        ("remote-port 80 up weight 20\n", "uploads have the weight of a cgroup"),
        ("unit restic.service down\n", "a unit goes to the background in both directions"),
        ("cgroup relative\n", "is not an absolute path"),
        ("user nosuchuser\n", "there is no user 'nosuchuser'"),
        ("remote-port 80 altitude=3\n", "there is no option 'altitude'"),
        ("unit\n", "unit needs a value"),
    ):
        done = apply(text)
        assert done.returncode == 2 and why in done.stderr, (text, done)
        assert not rules()
    done = apply("remote-port 80\n", user=65534, group=65534)
    assert done.returncode == 1 and "apply needs root" in done.stderr, done
    done = apply("cgroup /sys/fs/cgroup/absent\n")
    assert done.returncode == 1 and "apply again once it is there" in done.stderr, done
    assert ctl("showconf").stdout == "", "it is not in force"
    apply("")


def test_hold_keeps_a_cgroup_in_the_background_while_it_runs() -> None:
    folder = Path("/sys/fs/cgroup/held")
    folder.mkdir()
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ready.bind("/tmp/ready")
    ready.settimeout(10)
    for end in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        holder = subprocess.Popen([CTL, "hold", str(folder)], env={**os.environ, "NOTIFY_SOCKET": "/tmp/ready"})
        assert ready.recv(100) == b"READY=1"
        assert len(rules()) == 1 and background(said_inside(str(folder), Server()))
        holder.send_signal(end)
        assert holder.wait(timeout=10) == (-end if end == signal.SIGKILL else 0)
        assert not background(said_inside(str(folder), Server())), "the program went with it"
        assert len(rules()) == (end == signal.SIGKILL)
    folder.rmdir()
    until(lambda: not rules(), 15)
    done = ctl("hold", "/sys/fs/cgroup", user=65534, group=65534)
    assert done.returncode == 1 and "hold needs root" in done.stderr, done
    for words, status, text in ((("hold",), 2, "hold takes the directory"), (("hold", "/tmp"), 1, "a v2 cgroup")):
        done = ctl(*words)
        assert done.returncode == status and text in done.stderr, done


def test_from_the_deadline_on_it_is_an_ordinary_program() -> None:
    for user in (Who(), NOBODY):
        server = Server()
        words = [CTL, "run", "--deadline", "2s", "--", *server.client(4)]
        run = subprocess.Popen(words, stdout=-1, stderr=-1, text=True, **user)
        until(lambda: len(flows()) == 1)
        until(lambda: not flows())
        assert not rules(), "new connections too"
        out, error = run.communicate(timeout=30)
        said = json.loads(out)
        assert run.returncode == 0 and "the deadline has come" in error, (out, error)
        assert (said["cc"], said["tos"], said["priority"]) == ("cubic", 0, 0), said
        until(lambda: not cgroups())
    # one that ends before its deadline never hears of it
    server = Server()
    done = ctl("run", "--deadline", "00:00", "--", *server.client())
    assert done.returncode == 0 and done.stderr == "" and background(json.loads(done.stdout)), done
    until(lambda: not cgroups() and not rules())
    for text in ("24:00", "6:60", "0s", "-5s", "169h", "5", "5d", "soon", "06:00x", "4294967297s"):
        done = ctl("run", "--deadline", text, "--", "true")
        assert done.returncode == 2 and f"deadline '{text}' is neither a time of day" in done.stderr, (text, done)


def test_errors_name_what_was_wrong() -> None:
    for words, text in (
        (("bg", "999999"), "there is no process 999999"),
        (("bg", "a b"), "neither a process number nor the name of a unit"),
        (("bg",), "takes a process number or the name of a unit"),
        (("run", "--sideways", "--", "true"), "unrecognized option"),
        (("run", "-u", "nosuchuser", "--", "true"), "there is no user 'nosuchuser'"),
        (("run",), "run needs a command"),
        (("run", "--up", "-o", "weight=10", "--", "touch", "/tmp/never"), "-o is for downloads only"),
        (("run", "-o", "weight=0", "--", "touch", "/tmp/never"), "weight '0' is not a number within 1 to 1000000"),
        (("rule", "add", "--remote", "10.0.0.0/33"), "prefix length '33' is not a number within 0 to 32"),
        (("rule", "add", "--remote", "home"), "'home' is neither an IPv4 nor an IPv6 prefix"),
        (("rule", "add", "--local-port", "65536"), "port '65536' is not a number within 1 to 65535"),
        (("set", "-m", "1000001"), "max-flows 1000001 is not within 0 to 1000000"),
    ):
        done = ctl(*words)
        assert done.returncode == (1 if text.startswith("there is no process") else 2), (words, done)
        assert text in done.stderr, (words, done)
    assert not cgroups() and not rules()


def test_signals_reach_the_command() -> None:
    run = subprocess.Popen([CTL, "run", "--", "sleep", "60"])
    until(cgroups)
    time.sleep(0.2)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=10) == 128 + signal.SIGTERM
    until(lambda: not cgroups() and not rules())


def test_zz_without_vulture_uploads_still_go_to_the_background() -> None:
    subprocess.run(["rmmod", "vulture"], check=True)
    server = Server()
    done = ctl("run", "--", *server.client())
    assert background(json.loads(done.stdout)), done
    assert "downloads stay in the foreground" in done.stderr, done.stderr


def test_a_build_without_bpf_says_so_and_works() -> None:
    """As root: the rule is there, and uploads are looked for."""
    server = Server()
    words = [f"{sys.argv[1]}/plain/vulturectl", "run", "--", *server.client(1)]
    run = subprocess.Popen(words, stdout=-1, stderr=-1, text=True)
    until(lambda: len(flows()) == 1 and len(rules()) == 1)
    out, error = run.communicate(timeout=30)
    assert run.returncode == 0 and background(json.loads(out)), (out, error)
    why = "run watches the command's sockets instead: vulturectl was built without BPF"
    assert error.count("\n") == 1 and why in error, error
    until(lambda: not cgroups() and not rules())


def removed(module: str) -> bool:
    return subprocess.run(["rmmod", module], check=False).returncode == 0


def test_zzy_without_lbe_the_next_control_is_used_and_named() -> None:
    """ledbatpp before lp, from the first packet and by looking."""
    subprocess.run(["rmmod", "tcp_lbe"], check=True)
    server = Server()
    for module, control in (("TCP_LP", "lp"), ("TCP_LEDBAT", "ledbatpp")):
        subprocess.run(["insmod", os.environ[module]], check=True)
        for who, wait in ((Who(), None), (NOBODY, 0.5)):
            done = ctl("run", "--", *server.client(wait), **who)
            said = json.loads(done.stdout)
            assert (said["cc"], said["tos"], said["priority"]) == (control, 4, 1), (who, done)
            assert f"run: uploads use {control}: lbe is not available (is tcp_lbe loaded?)\n" in done.stderr, done
    until(lambda: not cgroups())
    server.socket.close()
    for module in ("tcp_lp", "tcp_ledbat"):  # sockets that have just been closed keep it for a moment
        until(partial(removed, module))


def test_zzz_without_any_module_nothing_is_started() -> None:
    done = ctl("run", "--", "touch", "/tmp/started")
    assert done.returncode == 1 and "the command was not started" in done.stderr, done
    assert not Path("/tmp/started").exists()


def main(tests: dict[str, Any]) -> None:
    """Run all functions named test_*, by name."""
    os.setgroups([])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=True)
    for name, test in sorted(tests.items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            print("ok", name, flush=True)
        except BaseException:  # noqa: BLE001 - the next test is to run
            print("not ok", name, traceback.format_exc(), flush=True)


if __name__ == "__main__":
    main(dict(globals()))
