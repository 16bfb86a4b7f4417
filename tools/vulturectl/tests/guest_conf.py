# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: apply with odd files, on full and read-only disks, twice at a time.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from guest_run import CTL, apply, ctl, main, rules

STATE = Path("/run/lbe")
UNITS = Path("/run/systemd/system")


@contextlib.contextmanager
def disk(where: Path, options: str) -> Iterator[None]:
    """A small file system in place of a folder."""
    where.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", where], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", where], check=True)


def fill(where: Path) -> None:
    with contextlib.suppress(OSError), (where / "full").open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


def matches() -> list[tuple[int | None, str | None]]:
    """What the rules match."""
    return [(rule.get("remote_port"), rule.get("cgroup")) for rule in rules()]


def none_is_left() -> None:
    done = apply("")
    assert done.returncode == 0 and not rules(), (done, rules())


def test_a_directory_that_is_no_cgroup_is_refused() -> None:
    """The number of its inode is some cgroup's, and that of a file system's root is often the root cgroup's."""
    for path in ("/tmp", "/proc", "/dev/shm", "/sys/fs/cgroup/cgroup.procs"):
        Path("/dev/shm").mkdir(exist_ok=True)
        done = apply(f"cgroup {path}\nremote-port 80\n")
        assert done.returncode == 1 and f"{path}: not the directory of a v2 cgroup" in done.stderr, done
        assert len(rules()) == 1, rules()
    none_is_left()


def test_a_file_that_cannot_be_read_changes_nothing() -> None:
    apply("remote-port 80\n")
    for path in ("/tmp", "/nonexistent", "/proc/self/mem"):
        done = ctl("apply", path)
        assert done.returncode == 1 and path in done.stderr and len(rules()) == 1, done
    none_is_left()


def test_a_line_that_is_too_long_is_no_two_lines() -> None:
    port = "remote-port 80"
    for line in ("# " + 1021 * "x" + f"{port}\n", port + 1100 * " " + "\n", 1023 * " " + port):
        done = apply("remote-port 443\n" + line)
        assert done.returncode == 2 and ":2: the line is longer than 1022 characters" in done.stderr, done
        assert not rules()
    done = apply("remote-port 443\n#" + 1021 * "x" + "\nremote-port 80")
    assert done.returncode == 0 and len(rules()) == 2, "the last line needs no end"
    none_is_left()


def test_the_same_twice_is_a_mistake() -> None:
    Path("/sys/fs/cgroup/one").mkdir(exist_ok=True)
    for text in (
        "remote-port 80\nremote-port 80 down\n",
        "remote-port 80\nremote-port 80 weight 20\n",
        "cgroup /sys/fs/cgroup/one up\ncgroup /sys/fs/cgroup/one\n",
        "unit a.service\nunit a.service weight 30\n",
    ):
        done = apply(text)
        assert done.returncode == 2 and ":2: " in done.stderr and "is in line 1 already" in done.stderr, (text, done)
        assert not rules()
    assert apply("remote-port 80\nlocal-port 80\n").returncode == 0
    none_is_left()


def test_a_state_that_cannot_be_kept_is_no_orphan() -> None:
    """Without it nobody would know which rules to take away."""
    for options in ("size=4k", "size=4k,nr_inodes=2", "ro"):
        with disk(STATE, options):
            if options == "size=4k":
                fill(STATE)
            done = apply("remote-port 80\nunit a.service\n")
            assert done.returncode == 1 and "cannot write /run/lbe/applied" in done.stderr, (options, done)
            assert done.stderr.count("\n") == 1 and not rules(), (options, done, rules())
            assert not (UNITS / "a.service.d/50-lbe-background.conf").exists()
    assert apply("remote-port 80\n").returncode == 0
    before = rules()
    with disk(Path("/run"), "ro"):
        done = apply("remote-port 81\n")
        assert done.returncode == 1 and rules() == before, done
    none_is_left()


def test_a_drop_in_that_cannot_be_written_is_said() -> None:
    with disk(UNITS, "size=4k"):
        fill(UNITS)
        done = apply("unit a.service\n")
        assert done.returncode == 1 and "1 failed" in done.stdout and "cannot write" in done.stderr, done
        (UNITS / "full").unlink()
        done = apply("unit a.service\n")
        text = (UNITS / "a.service.d/50-lbe-background.conf").read_text()
        assert done.returncode == 0 and "Slice=background.slice" in text, (done, text)
        apply("")
    none_is_left()


def test_a_killed_apply_leaves_one_rule_at_most() -> None:
    """It is killed by the limit on files when the state has more than 1024 bytes."""
    Path("/tmp/many.conf").write_text("".join(f"remote-port {port}\n" for port in range(1, 101)))
    script = f"ulimit -f 1; exec {CTL} apply /tmp/many.conf"
    done = subprocess.run(["sh", "-c", script], check=False, capture_output=True)
    assert done.returncode < 0 and 10 < len(rules()) <= 100, (done, len(rules()))
    assert ctl("apply", "/tmp/many.conf").returncode == 0
    assert 100 <= len(rules()) <= 101, len(rules())
    apply("")
    assert len(rules()) <= 1
    for rule in rules():
        ctl("rule", "del", str(rule["id"]))


def test_where_there_is_no_cgroup2() -> None:
    script = f"echo unit a.service >/tmp/unit.conf; umount /sys/fs/cgroup; {CTL} apply /tmp/unit.conf; ls -d /*.slice"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert "there is no v2 hierarchy of cgroups" in done.stderr and "1 failed" in done.stdout, done
    assert "background.slice" not in done.stdout and not rules(), done
    none_is_left()


def test_more_than_the_kernel_takes() -> None:
    """256 rules in a namespace."""
    hand = [ctl("rule", "add", "--local-port", "9") for _ in range(3)]
    assert all(one.returncode == 0 for one in hand)
    done = apply("".join(f"remote-port {port}\n" for port in range(1, 257)))
    assert done.returncode == 1 and "3 failed" in done.stdout and len(rules()) == 256, done
    done = apply("".join(f"remote-port {port}\n" for port in range(1, 258)))
    assert done.returncode == 2 and ":257: more than 256 lines" in done.stderr, done
    apply("")
    assert len(rules()) == 3
    for rule in rules():
        ctl("rule", "del", str(rule["id"]))


def test_zz_several_at_once() -> None:
    """The search for a congestion control, whose modules take their time here, comes between reading and writing."""
    Path("/tmp/slow").write_text("#!/bin/sh\nsleep 0.2\n")
    Path("/tmp/slow").chmod(0o755)
    Path("/proc/sys/kernel/modprobe").write_text("/tmp/slow")
    subprocess.run(["rmmod", "tcp_lbe"], check=True)
    Path("/tmp/many.conf").write_text("".join(f"remote-port {port} down\n" for port in range(1, 21)))
    many = [subprocess.Popen([CTL, "apply", "/tmp/many.conf"], stdout=-3) for _ in range(5)]
    assert [one.wait() for one in many] == [0] * 5
    assert len(rules()) == 20, len(rules())
    none_is_left()


if __name__ == "__main__":
    main(dict(globals()))
