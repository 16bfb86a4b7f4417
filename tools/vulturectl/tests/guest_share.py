# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: what a weight and a deadline give a program.

All downloads come over one link of 8 Mbit/s. Called and answered as guest_run.py is.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

from guest_run import CTL, Who, cgroups, ctl, flows, main, rules, until
from guest_top import fast_link, slow_link

LINK_BPS = 8e6
#: a download: address, port, number of connections, seconds; each second a line with all bytes until then
DOWNLOAD = """
import socket, sys, threading, time
total = [0]
def take():
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    while data := s.recv(1 << 16):
        total[0] += len(data)
for _ in range(int(sys.argv[3])):
    threading.Thread(target=take, daemon=True).start()
for _ in range(int(sys.argv[4])):
    time.sleep(1)
    print(total[0], flush=True)
import os
os._exit(0)
"""
Path("/tmp/download.py").write_text(DOWNLOAD)


class Source:
    """Sends to whoever connects, as fast as TCP takes it, until they close."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            threading.Thread(target=self.send, args=[self.socket.accept()[0]], daemon=True).start()

    def send(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError), peer:
            while True:
                peer.sendall(bytes(1 << 16))

    def download(self, connections: int, seconds: int) -> list[str]:
        return [
            sys.executable,
            "/tmp/download.py",
            "127.0.0.1",
            str(self.socket.getsockname()[1]),
            str(connections),
            str(seconds),
        ]


@contextlib.contextmanager
def link() -> Iterator[None]:
    slow_link("delay", "10ms", "rate", "8mbit", "limit", "100")
    try:
        yield
    finally:
        until(lambda: not flows() and not cgroups() and not rules(), 20)
        fast_link()


def start(*words: str, **more: Unpack[Who]) -> subprocess.Popen[str]:
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def rates(program: subprocess.Popen[str]) -> list[float]:
    """Bit/s in each second."""
    said, error = program.communicate(timeout=300)
    assert program.returncode == 0, error
    totals = [0, *map(int, said.split())]
    return [8.0 * (after - before) for before, after in itertools.pairwise(totals)]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def shares(first: tuple[str, int], second: tuple[str, int], **more: Unpack[Who]) -> tuple[float, float]:
    """Bit/s of two programs side by side, each (--weight, connections), over the last 30 s of 45."""
    source = Source()
    with link():
        programs = [
            start(CTL, "run", "--down", "--weight", weight, "--", *source.download(n, 45), **more)
            for weight, n in (first, second)
        ]
        one, two = (mean(rates(program)[15:]) for program in programs)
    print(f"# {first} {one / 1e6:.2f} Mbit/s, {second} {two / 1e6:.2f} Mbit/s", flush=True)
    return one, two


def test_a_weight_divides_what_is_spare() -> None:
    one, two = shares(("300", 1), ("100", 1))
    assert 2.2 < one / two < 4, (one, two)
    # it carries the ACKs too
    assert one + two > 0.65 * LINK_BPS, (one, two)


def test_a_weight_is_of_the_program_and_not_of_its_connections() -> None:
    one, two = shares(("100", 1), ("100", 4))
    assert 0.6 < one / two < 1.6, (one, two)


def test_a_weight_without_any_privilege() -> None:
    one, two = shares(("300", 1), ("100", 1), user=65534, group=65534)
    assert 2.2 < one / two < 4, (one, two)


def test_a_deadline_raises_the_share_until_the_program_is_an_ordinary_one() -> None:
    """Beside one ordinary download: little at first, half of the link from the deadline on."""
    source = Source()
    with link():
        program = start(CTL, "run", "--down", "--deadline", "130s", "--", *source.download(1, 240))
        time.sleep(5)
        other = start(*source.download(1, 235))
        mine = rates(program)
        rates(other)
    # two ordinary downloads take turns for 10 s and more, sawtooth by sawtooth, so no part is short
    parts = [mean(mine[begin:end]) / LINK_BPS for begin, end in ((20, 55), (60, 95), (130, 230))]
    print("# share of the link from 20, 60 and 130 s on:", *(f"{part:.3f}" for part in parts), flush=True)
    assert parts[0] < 0.25 and parts[0] + 0.05 < parts[1] < parts[2], parts
    assert 0.33 < parts[2] < 0.65, parts


def test_what_a_weight_cannot_do_is_said() -> None:
    for words, status, text in (
        (("--weight", "0"), 2, "weight '0' is not a number within 1 to 1000"),
        (("--weight", "1001"), 2, "weight '1001' is not a number within 1 to 1000"),
        (("--weight", "much"), 2, "weight 'much' is not a number within 1 to 1000"),
        (("--weight", "50", "-o", "controller=rledbat"), 2, "--weight is an option of the controller credit"),
    ):
        done = ctl("run", *words, "--", "touch", "/tmp/never")
        assert done.returncode == status and text in done.stderr, (words, done)
        assert not Path("/tmp/never").exists()


def test_new_connections_have_the_weight_from_their_first_packet() -> None:
    source = Source()
    with link():
        program = start(CTL, "run", "--down", "--weight", "20", "--", *source.download(1, 4))
        until(flows)
        (one,) = flows()
        assert one["options"]["weight"] == 200, one["options"]
        rates(program)
    assert json.loads(ctl("--json", "list").stdout)["connections"] == []


if __name__ == "__main__":
    main(dict(globals()))
