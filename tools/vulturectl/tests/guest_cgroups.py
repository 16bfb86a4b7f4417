# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: apply and hold, whose cgroups come, go and come again.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
import subprocess
from pathlib import Path

from guest_run import CTL, Server, Who, apply, background, cgroups, ctl, main, rules, said_inside, until

ROOT = Path("/sys/fs/cgroup")
PINS = Path("/sys/fs/bpf/lbe")


def pins() -> list[str]:
    return sorted(path.name for path in PINS.iterdir())


def covered(cgroup: Path) -> bool:
    """Both ways: the program, and a rule."""
    number = cgroup.stat().st_ino
    return background(said_inside(str(cgroup), Server())) and number in {rule.get("cgroup") for rule in rules()}


def test_names_that_differ_in_a_dot_alone_have_a_program_each() -> None:
    for name in ("a.b", "a_b", "a"):
        (ROOT / name).mkdir(exist_ok=True)
    (ROOT / "a" / "b").mkdir(exist_ok=True)
    names = ("a.b", "a_b", "a/b")
    file = "".join(f"cgroup {ROOT}/{name}\n" for name in names)
    assert apply(file).returncode == 0
    assert [covered(ROOT / name) for name in names] == [True] * 3
    assert apply(file).stdout == "0 added, 3 kept, 0 removed, 0 failed\n"
    assert apply(f"cgroup {ROOT}/a.b\n").stdout == "0 added, 1 kept, 2 removed, 0 failed\n"
    assert covered(ROOT / "a.b") and not background(said_inside(f"{ROOT}/a_b", Server()))
    apply("")
    assert not pins() and not rules()


def test_a_cgroup_of_a_long_name() -> None:
    name = ROOT / ("x" * 200)
    name.mkdir()
    assert apply(f"cgroup {name}\n").returncode == 0 and covered(name)
    apply("")
    assert not pins()
    name.rmdir()


def test_a_cgroup_that_was_made_anew_is_applied_anew() -> None:
    """Programs and rules are of the cgroup, not of its name."""
    again = ROOT / "again"
    again.mkdir()
    line = f"cgroup {again}\n"
    assert apply(line).returncode == 0 and covered(again)
    again.rmdir()
    again.mkdir()
    assert not background(said_inside(str(again), Server()))
    done = apply(line)
    assert (done.returncode, done.stdout) == (0, "1 added, 0 kept, 0 removed, 0 failed\n"), done
    assert covered(again)
    assert apply(line).stdout == "0 added, 1 kept, 0 removed, 0 failed\n"
    again.rmdir()
    assert apply("").returncode == 0 and not pins()
    until(lambda: not rules(), 15)


def test_a_line_whose_direction_changes() -> None:
    """What the line no longer asks for is taken away, and what stays is not made anew."""
    one = ROOT / "turns"
    one.mkdir()

    def turn(direction: str, counts: str) -> tuple[int, ...]:
        """Apply the line twice. Return: the rules in force."""
        line = f"cgroup {one} {direction}\n"
        for expected in (counts, "0 added, 1 kept, 0 removed"):
            done = apply(line)
            assert (done.returncode, done.stdout) == (0, f"{expected}, 0 failed\n"), (direction, done)
        up, down = direction != "down", direction != "up"
        assert background(said_inside(str(one), Server())) == up and len(pins()) == up, direction
        assert ctl("showconf").stdout == line
        ids = tuple(rule["id"] for rule in rules())
        assert len(ids) == down, direction
        return ids

    both = turn("both", "1 added, 0 kept, 0 removed")
    assert turn("down", "0 added, 1 kept, 1 removed") == both
    turn("up", "1 added, 0 kept, 1 removed")
    turn("down", "1 added, 0 kept, 1 removed")
    down = turn("both", "1 added, 0 kept, 0 removed")
    turn("up", "0 added, 1 kept, 1 removed")
    assert turn("both", "1 added, 0 kept, 0 removed") != down
    turn("down", "0 added, 1 kept, 1 removed")
    assert apply("").stdout == "0 added, 0 kept, 1 removed, 0 failed\n"
    assert not pins() and not rules() and not background(said_inside(str(one), Server()))
    # its program goes too if the cgroup is not there any more
    apply(f"cgroup {one}\n")
    one.rmdir()
    done = apply(f"cgroup {one}\n")
    assert done.returncode == 1 and "apply again once it is there" in done.stderr and not pins(), done
    assert apply("").stdout == "0 added, 0 kept, 0 removed, 0 failed\n"
    until(lambda: not rules(), 15)


def test_units_that_change_their_places() -> None:
    """The rule and the program of their slice are kept with the first of them, whichever that is."""
    assert apply("unit a.service\nunit b.service\n").returncode == 0
    (before,) = rules()
    done = apply("unit b.service\nunit a.service\n")
    assert (done.returncode, done.stdout) == (0, "1 added, 1 kept, 0 removed, 0 failed\n"), done
    (after,) = rules()
    assert after["cgroup"] == before["cgroup"] and covered(ROOT / "background.slice")
    assert apply("").returncode == 0 and not rules() and not pins()


def test_a_mount_point_with_a_blank() -> None:
    """/proc/self/mounts has \\040 for it."""
    at = Path("/tmp/a mount\\of cgroups")
    at.mkdir()
    server = Server()
    script = f"umount {ROOT} && mount -t cgroup2 none '{at}' && exec {CTL} run -- {' '.join(server.client())}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "" and background(json.loads(done.stdout)), done


def test_a_user_who_has_not_logged_in() -> None:
    """systemd's part, the same cgroup until the next line, is in the test of a machine with systemd."""
    name = pwd.getpwuid(65534).pw_name
    done = apply(f"user {name}\n")
    assert done.returncode == 1 and "apply again once it is there" in done.stderr, done
    apply("")
    Path("/run/systemd/system").mkdir(parents=True, exist_ok=True)
    Path("/run/systemd/private").touch()  # what tells that it is systemd's machine
    fake = Path("/tmp/fake")
    fake.mkdir(exist_ok=True)
    (fake / "systemctl").write_text("#!/bin/sh\necho $* >>/tmp/asked\n")
    (fake / "systemctl").chmod(0o755)
    more = Who(env={**os.environ, "PATH": f"{fake}:{os.environ['PATH']}"})
    try:
        done = apply(f"user {name}\n", **more)
        assert (done.returncode, done.stderr) == (0, ""), done
        slice_of = ROOT / "user.slice" / "user-65534.slice"
        drop_in = Path("/run/systemd/system/user-65534.slice.d/50-lbe-background.conf")
        assert covered(slice_of) and "StopWhenUnneeded=no" in drop_in.read_text()
        assert Path("/tmp/asked").read_text() == "daemon-reload\n"
        assert apply(f"user {name}\n", **more).stdout == "0 added, 1 kept, 0 removed, 0 failed\n"
        assert Path("/tmp/asked").read_text() == "daemon-reload\n", "nothing has changed"
        assert apply("", **more).returncode == 0
        assert not drop_in.exists() and not pins() and not rules()
        assert Path("/tmp/asked").read_text() == "daemon-reload\n" * 2
    finally:
        Path("/run/systemd/private").unlink()


def test_a_holder_that_was_killed_takes_its_rule_up_again() -> None:
    held = ROOT / "held"
    held.mkdir()
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ready.bind("/tmp/held-ready")
    ready.settimeout(10)

    def hold(*words: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "NOTIFY_SOCKET": "/tmp/held-ready"}
        holder = subprocess.Popen([CTL, "hold", *words, str(held)], env=environment)
        assert ready.recv(100) == b"READY=1" and covered(held)
        return holder

    for _ in range(3):
        holder = hold()
        assert len(rules()) == 1, rules()
        before = rules()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert rules() == before, "downloads stay in the background meanwhile"
    # what an administrator wants otherwise now, and a rule of his own, which is nobody else's
    hand = ctl("rule", "add", "--cgroup", str(held)).stdout.split()[1]
    holder = hold("-o", "min-kbit=9")
    assert [rule["options"]["min-kbit"] for rule in rules()] == [2, 9], rules()
    holder.terminate()
    assert holder.wait(timeout=10) == 0
    assert [str(rule["id"]) for rule in rules()] == [hand]
    ctl("rule", "del", hand)
    held.rmdir()


def test_what_to_do_where_the_kernel_refuses_the_program_is_said() -> None:
    """Root of a container may have no right to load BPF programs."""
    server = Server()
    words = ["setpriv", "--bounding-set", "-bpf,-sys_admin", CTL, "run", "--", *server.client(0.3)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = "the kernel refuses the BPF program: it needs CAP_BPF and CAP_NET_ADMIN: in a container or a unit, add them"
    assert done.returncode == 0 and said in done.stderr and done.stderr.count("\n") == 1, done
    assert background(json.loads(done.stdout)), "run looks at the sockets"
    until(lambda: not cgroups() and not rules())


if __name__ == "__main__":
    main(dict(globals()))
