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


def matches() -> list:
    """What the rules match."""
    return [(rule.get("remote_port"), rule.get("cgroup")) for rule in rules()]


def none_is_left() -> None:
    done = apply("")
    assert done.returncode == 0 and not rules(), (done, rules())


def test_a_directory_that_is_no_cgroup_is_refused():
    """The number of its inode is some cgroup's, and that of a file system's root is often the root cgroup's."""
    for path in ("/tmp", "/proc", "/dev/shm", "/sys/fs/cgroup/cgroup.procs"):
        Path("/dev/shm").mkdir(exist_ok=True)
        done = apply(f"cgroup {path}\nremote-port 80\n")
        assert done.returncode == 1 and f"{path}: not the directory of a v2 cgroup" in done.stderr, done
        assert len(rules()) == 1, rules()
    none_is_left()


def test_a_file_that_cannot_be_read_changes_nothing():
    apply("remote-port 80\n")
    for path in ("/tmp", "/nonexistent", "/proc/self/mem"):
        done = ctl("apply", path)
        assert done.returncode == 1 and path in done.stderr and len(rules()) == 1, done
    none_is_left()


def test_a_line_that_is_too_long_is_no_two_lines():
    port = "remote-port 80"
    for line in ("# " + 1021 * "x" + f"{port}\n", port + 1100 * " " + "\n", 1023 * " " + port):
        done = apply("remote-port 443\n" + line)
        assert done.returncode == 2 and ":2: the line is longer than 1022 characters" in done.stderr, done
        assert not rules()
    done = apply("remote-port 443\n#" + 1021 * "x" + "\nremote-port 80")
    assert done.returncode == 0 and len(rules()) == 2, "the last line needs no end"
    none_is_left()


def test_the_same_twice_is_a_mistake():
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


def test_where_there_is_no_cgroup2():
    script = f"echo unit a.service >/tmp/unit.conf; umount /sys/fs/cgroup; {CTL} apply /tmp/unit.conf; ls -d /*.slice"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert "there is no v2 hierarchy of cgroups" in done.stderr and "1 failed" in done.stdout, done
    assert "background.slice" not in done.stdout and not rules(), done
    none_is_left()


if __name__ == "__main__":
    main(dict(globals()))
