# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: top, show and metrics, as a user meets them.

Every connection here is made to be held by one of us, the sender, the receiver and the application, and top must
say by which. Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Unpack

import jsonschema
from guest_run import CTL, Object, Who, ctl, line_of, main, until
from prometheus_client.parser import text_string_to_metric_families

SCHEMA = jsonschema.Draft202012Validator(json.loads(pathlib.Path("bin/vulturectl.schema.json").read_text()))
TCP_CONGESTION = 13


def document(text: str) -> Object:
    """What vulturectl --json printed; it is as its schema says."""
    said: Object = json.loads(text)
    SCHEMA.validate(said)
    return said


def top(*words: str, **more: Unpack[Who]) -> Object:
    done = ctl("--json", "top", "-c", "1", *words, **more)
    assert done.returncode == 0, done
    return document(done.stdout)


def name(end: tuple[Any, ...]) -> str:
    return f"[{end[0]}]:{end[1]}" if ":" in end[0] else f"{end[0]}:{end[1]}"


@contextlib.contextmanager
def pair(address: str = "127.0.0.1", buffer: int = 0) -> Iterator[tuple[socket.socket, socket.socket]]:
    """(receiver, sender); buffer: the receiver's, in bytes."""
    with socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as server:
        if buffer:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sender = socket.create_connection(server.getsockname()[:2])
        receiver, _ = server.accept()
    with receiver, sender:
        yield receiver, sender


@contextlib.contextmanager
def traffic(
    receiver: socket.socket, sender: socket.socket, gap_s: float = 0.002, read: bool = True, block: int = 65536
) -> Iterator[None]:
    """Bytes flow inside the block: a block each gap_s, or as fast as the link takes them; read: by the other end.

    The gap is never 0: in virtual time a loop that does not sleep takes no time, and so has no end.
    """
    stop = threading.Event()
    sender.settimeout(0.05)
    receiver.settimeout(0.05)

    def send() -> None:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                sender.sendall(bytes(block))
            time.sleep(gap_s)

    def take() -> None:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                receiver.recv(1 << 20)

    threads = [threading.Thread(target=send), *([threading.Thread(target=take)] if read else [])]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def start(receiver: socket.socket, *words: str) -> None:
    done = ctl("start", name(receiver.getsockname()), name(receiver.getpeername()), *words)
    assert done.returncode == 0, done


def slow_link(*words: str) -> None:
    """A path of ordinary packets; lo has packets of 64 kB otherwise."""
    subprocess.run(["ip", "link", "set", "lo", "mtu", "1500", "gso_max_segs", "1"], check=True)
    subprocess.run(["tc", "qdisc", "replace", "dev", "lo", "root", "netem", *words], check=True)


def fast_link() -> None:
    subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "mtu", "65536", "gso_max_segs", "65535"], check=True)


def only(said: Object, direction: str) -> Object:
    """The one connection in a direction; its program's line says the same."""
    found: list[Object] = [one for one in said["connections"] if one["direction"] == direction]
    (one,) = found
    (program,) = [program for program in said["programs"] if program["direction"] == direction]
    assert program["connections"] == 1
    assert all(program[key] == one[key] for key in ("held_by", "rate_bps", "queue_us", "program", "uid")), said
    assert one["program"]["name"].startswith("python3"), one
    return one


def test_nothing_is_a_table_without_lines() -> None:
    for words in ((), ("top", "-c", "1")):
        done = ctl(*words)
        assert done.returncode == 0 and done.stdout.startswith("0 background connections: 0.00 Mbit/s"), done
    assert top()["connections"] == [] == top()["programs"]


def test_both_directions_have_a_line_each() -> None:
    for address in ("127.0.0.1", "::1"):
        with pair(address) as (receiver, sender):
            start(receiver)
            sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"lbe")
            with traffic(receiver, sender):
                said = top()
            down, up = only(said, "down"), only(said, "up")
            assert down["local"] == up["remote"] == name(receiver.getsockname()), said
            assert down["remote"] == up["local"] == name(sender.getsockname()), said
            assert up["controller"] == "lbe" and up["bytes"] > 0 and "id" not in up
            assert down["rate_bps"] > 0 and up["rate_bps"] > 0
            text = ctl("top", "-c", "1").stdout
    lines = [line.split() for line in text.splitlines() if " python3 " in f" {line} "]
    assert sorted(line[2] for line in lines) == ["down", "up"], text


def test_an_idle_sender_holds_a_download() -> None:
    with pair() as (receiver, sender):
        start(receiver)
        with traffic(receiver, sender, gap_s=0.1, block=2000):
            assert only(top(), "down")["held_by"] == "sender"


def test_an_application_that_does_not_read_holds_a_download() -> None:
    with pair() as (receiver, sender):
        start(receiver)
        with traffic(receiver, sender, read=False):
            time.sleep(0.5)
            one = only(top(), "down")
        assert one["held_by"] == "application", one


def test_a_small_receive_buffer_holds_a_download() -> None:
    slow_link("delay", "50ms")
    try:
        with pair(buffer=30000) as (receiver, sender):
            start(receiver, "-o", "controller=rledbat")
            with traffic(receiver, sender):
                time.sleep(2)
                one = only(top(), "down")
        assert one["held_by"] == "receiver", one
    finally:
        fast_link()


def test_the_law_holds_a_download_of_a_full_path() -> None:
    slow_link("delay", "10ms", "rate", "4mbit", "limit", "200")
    try:
        with pair() as (receiver, sender):
            start(receiver, "-o", "controller=rledbat")
            with traffic(receiver, sender):
                time.sleep(4)
                one = only(top("-n", "1"), "down")
        assert one["held_by"] == "us", one
        assert 2e6 < one["rate_bps"] < 4.4e6, one
    finally:
        fast_link()


def test_what_holds_an_upload() -> None:
    slow_link("delay", "10ms", "rate", "4mbit", "limit", "200")
    try:
        with pair() as (receiver, sender):
            sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"lbe")
            with traffic(receiver, sender):
                time.sleep(4)
                one = only(top(), "up")
        assert one["held_by"] == "us", one
        slow_link("delay", "20ms")
        # another peer: what lbe has learnt of the full path is kept for it
        with pair("::1", buffer=5000) as (receiver, sender):
            sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"lbe")
            with traffic(receiver, sender, read=False):
                time.sleep(10)
                one = only(top(), "up")
        assert one["held_by"] == "receiver", one
        with pair("127.9.0.1") as (receiver, sender):
            sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"lbe")
            with traffic(receiver, sender, gap_s=0.1, block=2000):
                one = only(top(), "up")
        assert one["held_by"] == "application", one
    finally:
        fast_link()


def test_bytes_in_the_pauses_of_others() -> None:
    """A foreground flow runs, then ends: what the background one moves after that counts, and nothing before.

    The law knows this path as one of Gbit/s, from the tests before, and must learn that it has 8 Mbit/s.
    """
    slow_link("delay", "10ms", "rate", "8mbit", "limit", "100")
    try:
        with pair() as (receiver, sender), pair() as (other_receiver, other_sender):
            start(receiver, "-o", "controller=credit")
            with traffic(receiver, sender):
                time.sleep(3)
                watcher = subprocess.Popen([CTL, "--json", "top", "-n", "1", "-c", "60"], stdout=-1, text=True)
                with traffic(other_receiver, other_sender):
                    time.sleep(6)
                said = [document(line) for line in watcher.communicate(timeout=120)[0].splitlines()]
        pauses = [one["connections"][0]["pause_bytes"] for one in said]
        assert len(pauses) == 60 and pauses == sorted(pauses), pauses
        assert pauses[5] < 300_000, "while the other one runs"
        assert pauses[-1] - pauses[5] > 25_000_000, f"after it has ended: {pauses}"
    finally:
        fast_link()
    # what was in the sender's buffer meets a closed socket
    until(lambda: not top()["connections"], 10)


def test_bytes_of_an_upload_in_the_pauses_of_others() -> None:
    """The same for what is sent: a foreground flow runs, then ends. Another peer: lbe keeps what it learns of one."""
    slow_link("delay", "10ms", "rate", "8mbit", "limit", "100")
    try:
        with pair("127.8.0.1") as (receiver, sender), pair("127.8.0.1") as (other_receiver, other_sender):
            sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"lbe")
            with traffic(receiver, sender):
                time.sleep(6)
                watcher = subprocess.Popen([CTL, "--json", "top", "-n", "1", "-c", "60"], stdout=-1, text=True)
                table = subprocess.Popen([CTL, "top", "-n", "1", "-c", "60"], stdout=-1, text=True)
                with traffic(other_receiver, other_sender):
                    time.sleep(8)
                said = [document(line) for line in watcher.communicate(timeout=120)[0].splitlines()]
        pauses = [one["pause_bytes"] for look in said for one in look["connections"] if one["direction"] == "up"]
        programs = [one["pause_bytes"] for look in said for one in look["programs"] if one["direction"] == "up"]
        print("#", pauses, flush=True)
        assert len(pauses) == 60 and pauses == sorted(pauses) == programs, pauses
        assert pauses[5] < 300_000, "while the other one runs"
        assert pauses[-1] - pauses[5] > 25_000_000, f"after it has ended: {pauses}"
        last = [line.split() for line in table.communicate(timeout=120)[0].splitlines() if " up " in line][-1]
        assert abs(float(last[-1]) * 1e6 - pauses[-1]) < 4_000_000, (last, pauses[-1])
    finally:
        fast_link()
    until(lambda: not top()["connections"], 10)


def test_a_stranger_sees_no_names() -> None:
    with pair() as (receiver, sender):
        start(receiver)
        with traffic(receiver, sender):
            said = top(user=65534, group=65534)
            text = ctl("top", "-c", "1", user=65534, group=65534).stdout
    assert said["connections"][0]["program"] is None and said["programs"][0]["uid"] == 0, said
    assert "(of root)" in text, text


def test_a_name_that_would_break_the_output() -> None:
    """A program names itself; neither the terminal nor a JSON or metrics reader is to suffer."""
    script = (
        "import socket, time; open('/proc/self/comm', 'w').write('a\"b\\\\\\x1b[31m\\n')\n"
        "s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname())\n"
        "c.setsockopt(6, 13, b'lbe'); print(1, flush=True); time.sleep(30)"
    )
    program = subprocess.Popen([sys.executable, "-c", script], stdout=-1, text=True)
    try:
        line_of(program)
        assert top()["programs"][0]["program"]["name"].startswith('a"b\\?'), top()
        assert "\x1b" not in ctl("top", "-c", "1").stdout
        (sample,) = metrics()["lbe_connections"].samples
        assert sample.labels["program"].startswith('a"b\\?'), sample
    finally:
        program.kill()
        program.wait()


def test_show_speaks_plainly() -> None:
    with pair() as (receiver, sender):
        start(receiver)
        with traffic(receiver, sender, gap_s=0.1, block=2000):
            plain = ctl("show", "--id", str(top()["connections"][0]["id"])).stdout
            every = ctl("show", "--all", name(receiver.getsockname()), name(receiver.getpeername())).stdout
    for words in ("held by      the sender: it sends less than it may", "program      python3", "Mbit/s", "round trip"):
        assert words in plain, plain
    assert "trains_failed" not in plain and "trains_failed" in every, every


def test_values_of_enums_have_names() -> None:
    """Of each controller; Python's client and the specification have the same names."""
    for controller, name, values in (
        ("credit", "phase", {"start", "cruise", "floor", "probe"}),
        ("rledbat", "state", {"start", "steady", "down", "ramp"}),
        ("paper", "phase", {"observe", "start", "wait", "collect"}),
    ):
        with pair() as (receiver, sender):
            start(receiver, "-o", f"controller={controller}")
            with traffic(receiver, sender, gap_s=0.1, block=2000):
                (one,) = document(ctl("--json", "list").stdout)["connections"]
                every = ctl("show", "--all", "--id", str(one["id"])).stdout
        assert one[name] in values, one
        (line,) = (line for line in every.splitlines() if line.split()[:1] == [name])
        assert line.split()[1] in values, line


def metrics() -> Object:
    done = ctl("metrics")
    assert done.returncode == 0, done
    return {family.name: family for family in text_string_to_metric_families(done.stdout)}


def test_metrics_are_read_by_a_parser() -> None:
    rule = ctl("rule", "add", "--local-port", "7777").stdout.split()[1]
    try:
        with (
            socket.create_server(("127.0.0.1", 7777)) as server,
            socket.create_connection(server.getsockname()) as client,
            server.accept()[0] as accepted,
        ):
            with traffic(accepted, client, gap_s=0.05, block=1000):
                time.sleep(1)
                running = metrics()
            time.sleep(0.3)
            found = metrics()
        one = {"direction": "down", "program": "python3", "pid": str(os.getpid())}
        (sample,) = running["lbe_held_by"].samples
        assert (sample.labels, sample.value) == (one | {"held_by": "sender"}, 1), sample
        (sample,) = running["lbe_rate_bytes_per_second"].samples
        assert sample.labels == one and 18000 < sample.value < 22000, sample
        assert found["lbe_rate_bytes_per_second"].samples[0].value == 0
        value = {key: family.samples[0].value for key, family in found.items()}
        assert value["vulture_up"] == 1 and value["vulture_flows"] == 1 and value["vulture_flows_limit"] == 16384, value
        assert value["lbe_live_bytes"] >= 20000 and value["lbe_connections"] == 1, value
        started = found["vulture_rule_started"]
        assert started.type == "counter" and started.samples[0].labels == {"rule": rule}, started
        assert value[started.name] == 1, value
        assert found["lbe_connections"].samples[0].labels["direction"] == "down"
        assert found["vulture_info"].samples[0].labels["version"], found
    finally:
        ctl("rule", "del", rule)


if __name__ == "__main__":
    main(dict(globals()))
