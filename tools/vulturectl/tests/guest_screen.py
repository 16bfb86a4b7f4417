# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: tables on terminals of any size, with thousands of lines, odd names.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import resource
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

from guest_run import CTL, ctl, hang_up, line_of, main, until
from guest_top import document, metrics

MANY = 3000
#: a program with uploads in the background; its name is the first argument, in hex, their number the second one
UPLOADER = """
import socket, sys, time
open('/proc/self/comm', 'wb').write(bytes.fromhex(sys.argv[1]))
server = socket.create_server(('127.0.0.1', 0), backlog=4096)
held = []
for _ in range(int(sys.argv[2])):
    held.append(socket.create_connection(server.getsockname()))
    held[-1].setsockopt(6, 13, b'lbe')
    held.append(server.accept()[0])
print(1, flush=True)
sys.stdin.read()
"""
#: many small programs with an upload each; each has a name of its own
CROWD = """
import os, socket, sys
server = socket.create_server(('127.0.0.1', 0), backlog=4096)
for number in range(int(sys.argv[1])):
    one = socket.create_connection(server.getsockname())
    one.setsockopt(6, 13, b'lbe')
    if os.fork() == 0:
        open('/proc/self/comm', 'w').write(f'crowd-{number}')
        server.close()
        sys.stdin.read()
        os._exit(0)
    one.close()
print(1, flush=True)
sys.stdin.read()
for _ in range(int(sys.argv[1])):
    os.wait()
"""


@contextlib.contextmanager
def program(script: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen([sys.executable, "-c", script, *words], stdin=-1, stdout=-1, text=True)
    try:
        assert line_of(started) == "1\n"
        yield started
    finally:
        hang_up(started)
        started.wait(timeout=60)


@contextlib.contextmanager
def terminal(rows: int, columns: int, *words: str) -> Iterator[int]:
    """vulturectl in a terminal; its other end."""
    pid, end = pty.fork()
    if pid == 0:
        time.sleep(0.1)
        os.execv(CTL, [CTL, *words])
    resize(end, rows, columns)
    try:
        yield end
    finally:
        os.kill(pid, 15)
        os.waitpid(pid, 0)
        os.close(end)


def resize(end: int, rows: int, columns: int) -> None:
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def pages(end: int, count: int) -> list[list[str]]:
    """So many whole pages, without the first one."""
    text = b""
    while text.count(b"\033[H\033[J") < count + 2:
        text += os.read(end, 65536)
    return [page.decode().replace("\r", "").splitlines() for page in text.split(b"\033[H\033[J")[2:-1]]


def test_a_page_fits_the_terminal() -> None:
    with program(CROWD, "40"):
        for rows, columns in ((24, 80), (10, 50), (3, 20)):
            with terminal(rows, columns, "top") as end:
                (page,) = pages(end, 1)
            assert len(page) == rows - 1 and max(map(len, page)) <= columns, (rows, columns, page)
            assert page[-1].startswith(f"and {40 - rows + 4} more"[:columns]), page
        with terminal(80, 200, "top") as end:
            (page,) = pages(end, 1)
        assert len(page) == 42 and not any("more" in line for line in page), page
        with terminal(0, 0, "top") as end:  # as on a serial line
            assert len(pages(end, 1)[0]) == 42
        assert len(ctl("top", "-c", "1").stdout.splitlines()) == 43, "a pipe has room for all"


def test_a_terminal_that_changes_its_size() -> None:
    with program(CROWD, "40"), terminal(24, 80, "top") as end:
        assert len(pages(end, 1)[0]) == 23
        resize(end, 12, 60)
        (page,) = pages(end, 2)[1:]
        assert len(page) == 11 and max(map(len, page)) <= 60, page
        resize(end, 60, 100)
        assert len(pages(end, 2)[1]) == 42


def test_names_that_are_no_text() -> None:
    """What is no ASCII is a question mark; cut in the middle of a character, it would be no UTF-8 anywhere else."""
    for name in (b"\xff\xfe\x80", "größe-äöüäöü".encode()[:15], b"a\tb\x7f\x9bc"):
        with program(UPLOADER, name.hex(), "1"):
            raw = subprocess.check_output([CTL, "--json", "top", "-c", "1"])
            said = document(raw.decode("ascii"))
            (one,) = said["programs"]
            shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "?" for byte in name)
            assert one["program"]["name"] == shown, (name, one)
            assert subprocess.check_output([CTL, "top", "-c", "1"]).isascii()
            (sample,) = metrics()["lbe_connections"].samples
            assert sample.labels["program"] == shown, sample


def test_thousands_of_connections() -> None:
    limit = 2 * MANY + 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with program(UPLOADER, b"many".hex(), str(MANY)) as many:
        assert ctl("start", "--pid", str(many.pid)).returncode == 0
        said = {verb: json.loads(ctl("--json", *verb.split()).stdout) for verb in ("list", "top -c 1")}
        assert len(said["list"]["connections"]) == 2 * MANY
        ways = [one["direction"] for one in said["top -c 1"]["connections"]]
        assert (ways.count("down"), ways.count("up")) == (2 * MANY, MANY)
        assert sorted(one["connections"] for one in said["top -c 1"]["programs"]) == [MANY, 2 * MANY]
        assert {one["program"]["name"] for one in said["top -c 1"]["connections"]} == {"many"}
        with terminal(24, 100, "monitor") as end:
            (page,) = pages(end, 1)
        assert len(page) == 23 and page[-1] == f"and {2 * MANY - 21} more", page[-1]
        done = ctl("fg", str(many.pid))
        assert done.returncode == 0 and f"{2 * MANY + 1} TCP sockets" in done.stdout, done
        assert not json.loads(ctl("--json", "list").stdout)["connections"]
        assert metrics()["vulture_flows"].samples[0].value == 0
    until(lambda: not json.loads(ctl("--json", "top", "-c", "1").stdout)["connections"], 20)


def test_one_schema_for_list_show_monitor_and_top() -> None:
    """The same connection has the same members, of the same meaning, in each of them."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0],
    ):
        ends = [f"{end[0]}:{end[1]}" for end in (client.getsockname(), client.getpeername())]
        assert ctl("start", *ends).returncode == 0
        watcher = subprocess.Popen([CTL, "--json", "monitor"], stdout=-1, text=True)
        said = {"monitor": document(line_of(watcher))}
        watcher.kill()
        watcher.wait()
        for words in (("list",), ("show", *ends), ("top", "-c", "1")):
            said[words[0]] = document(ctl("--json", *words).stdout)
    members = {verb: set(one["connections"][0]) for verb, one in said.items()}
    assert members["show"] == members["list"] == members["monitor"] - {"rate_bps"}, members
    assert members["list"] == members["top"] - {"rate_bps", "held_by", "pause_bytes", "program", "uid"}, members
    assert len({one["connections"][0]["id"] for one in said.values()}) == 1


if __name__ == "__main__":
    main(dict(globals()))
