# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: the weight of what a program sends.

What two weights come to is a test of the module (tcp_lbe/tests/test_weights.py); here they are in its table or not.
Called and answered as guest_run.py is.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from guest_run import CTL, NOBODY, apply, ctl, line_of, main, tell, until
from guest_top import fast_link, slow_link
from guest_users import ROOT, USER, caller, service

TABLE = Path("/proc/self/net/lbe_weights")
EVENLY = "run: uploads share evenly: "
#: what a command prints: the table as it is while it runs
SHOW = ("sh", "-c", f"tail -n +2 {TABLE}")


def table() -> dict[int, tuple[str, str]]:
    rows = [line.split() for line in TABLE.read_text().splitlines()[1:]]
    return {int(row[0]): (row[1], row[2]) for row in rows}


def shown(text: str) -> list[list[str]]:
    return [line.split()[1:3] for line in text.splitlines()]


def test_a_command_of_root_has_its_weight_and_takes_it_along() -> None:
    words: tuple[str, ...]
    for words in (("--weight", "20"), ("--weight", "20", "--up")):
        done = ctl("run", *words, "--", *SHOW)
        assert done.returncode == 0 and shown(done.stdout) == [["200", "all"]], (words, done)
        assert EVENLY not in done.stderr, done
        until(lambda: not table())
    for words in (("--weight", "20", "--down"), ("--up",), ()):
        done = ctl("run", *words, "--", *SHOW)
        assert done.returncode == 0 and not done.stdout, (words, done)


def test_its_connections_have_it() -> None:
    """Those of its children too."""
    send = "import socket\ns = socket.create_connection(('127.0.0.1', 7777))\nwhile True: s.send(bytes(100000))\n"
    Path("/tmp/send.py").write_text(send)
    read = "import socket\nc = socket.create_server(('127.0.0.1', 7777)).accept()[0]\nwhile c.recv(1 << 16): pass\n"
    sink = subprocess.Popen(["python3", "-c", read])
    slow_link("delay", "10ms", "rate", "8mbit", "limit", "100")
    time.sleep(1)
    script = f"timeout 4 python3 /tmp/send.py & sleep 3; tail -n +2 {TABLE}; wait"
    done = ctl("run", "--weight", "20", "--up", "--", "sh", "-c", script)
    fast_link()
    sink.kill()
    sink.wait()
    assert [line.split()[1:] for line in done.stdout.splitlines()] == [["200", "all", "1"]], done


def test_a_users_command_has_it_from_the_service() -> None:
    with service():
        for words in (("--weight", "20"), ("--weight", "1000", "--up")):
            done = ctl("run", *words, "--", *SHOW, **USER)
            assert done.returncode == 0, done
            assert shown(done.stdout) == [[f"{int(words[1]) * 10}", "all"]], (words, done)
            assert EVENLY not in done.stderr, done
        until(lambda: not table(), 20)
    done = ctl("run", "--weight", "20", "--", *SHOW, **NOBODY)
    assert done.returncode == 0 and not done.stdout, done
    assert EVENLY in done.stderr and done.stderr.count(EVENLY) == 1, done


def test_a_caller_of_the_service_names_no_other_weight() -> None:
    """One that is out of range, or no request, ends the loan."""
    with service():
        for text, length in (("weight 200", 1), ("weight 200 each", 1), ("weight 10000", 1)):
            with caller(**USER) as (process, answer):
                assert answer == "+lbe", answer
                tell(process, f"{text}\n")
                assert int(line_of(process)) == length, text
                assert len(table()) == 1
        wrong = "weight", "weight 0", "weight 10001", "weight 1001 each", "weight -5", "weight 5 all", "weight5x"
        for text in (*wrong, "weight 5 each x"):
            with caller(**USER) as (process, _):
                tell(process, f"{text}\n")
                assert int(line_of(process)) == 0, text
        until(lambda: not table(), 20)


def test_the_weight_is_in_the_callers_network_namespace() -> None:
    with service():
        words = ["unshare", "-n", CTL, "run", "--weight", "30", "--up", "--", *SHOW]
        done = subprocess.run(["unshare", "-Ur", *words], capture_output=True, text=True, check=False)
        assert not table(), done
        outside = "nsenter --net=/run/netns/far --setuid 65534 --setgid 65534"
        subprocess.run(["ip", "netns", "add", "far"], check=True)
        script = f"{outside} {CTL} run --weight 30 --up -- {SHOW[0]} {SHOW[1]} '{SHOW[2]}'"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        assert shown(done.stdout) == [["300", "all"]] and not table(), done
        subprocess.run(["ip", "netns", "del", "far"], check=True)


def test_a_weight_rises_with_a_deadline() -> None:
    """From 1000 on for each connection, or from that of the program, until the deadline."""
    script = f"for i in 1 2 3 4 5 6 7; do sleep 5; tail -n +2 {TABLE}; done"
    for words, first, of in ((("--weight", "50"), 500, "all"), ((), 1000, "each")):
        done = ctl("run", "--up", *words, "--deadline", "40s", "--", "sh", "-c", script)
        weights = [int(row[0]) for row in shown(done.stdout)]
        assert {row[1] for row in shown(done.stdout)} == {of}, done
        assert weights == sorted(weights) and first <= weights[0] < 1.5 * first < 4 * first < weights[-1], weights


def test_apply_gives_a_cgroup_its_weight() -> None:
    """For each connection, as for downloads; a line for uploads alone too; it goes with the line."""
    one, two = ROOT / "one", ROOT / "two"
    for path in (one, two):
        path.mkdir(exist_ok=True)
    first, second = one.stat().st_ino, two.stat().st_ino
    assert apply(f"cgroup {one} weight 20\ncgroup {two} up weight 300\n").stdout == (
        "2 added, 0 kept, 0 removed, 0 failed\n"
    )
    assert table() == {first: ("200", "each"), second: ("3000", "each")}
    subprocess.run(["sh", "-c", f"echo 'del {first}' > {TABLE}"], check=True)
    assert apply(f"cgroup {one} weight 20\ncgroup {two} weight 400 down\n").returncode == 0
    assert table() == {first: ("200", "each")}, (first, second, table())
    apply("unit restic.service weight 50\nunit mirror.service\nunit pull.service weight 50\n")
    assert table() == {(ROOT / "background_50.slice").stat().st_ino: ("500", "each")}
    apply("")
    assert not table()
    for path in (one, two):
        path.rmdir()
    done = apply("remote-port 80 up weight 20\n")
    assert done.returncode == 2 and ":1: uploads have the weight of a cgroup" in done.stderr, done


def test_zz_a_control_without_weights_is_named() -> None:
    """ledbatpp has none: uploads are in the background all the same."""
    subprocess.run(["rmmod", "tcp_lbe"], check=True)
    subprocess.run(["insmod", os.environ["TCP_LEDBAT"]], check=True)
    done = ctl("run", "--weight", "20", "--up", "--", "true")
    assert done.returncode == 0 and f"{EVENLY}only lbe has weights\n" in done.stderr, done
    one = ROOT / "one"
    one.mkdir(exist_ok=True)
    done = apply(f"cgroup {one} weight 20\n")
    assert done.returncode == 0 and f"cgroup {one}: uploads have no weight: ledbatpp has none\n" in done.stderr, done
    apply("")
    one.rmdir()


if __name__ == "__main__":
    main(dict(globals()))
