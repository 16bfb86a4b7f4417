# SPDX-License-Identifier: GPL-2.0
"""The shell: it sets up the nodes, runs commands in them, and leaves nothing behind at its end."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.scenario

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 300
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # some builds of iproute2 colour their output on a terminal


def test_shell_answers_and_powers_off() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed", "shell"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=ROOT,
    )
    clock = threading.Timer(LIMIT_S, process.kill)
    clock.start()
    seen: list[str] = []

    assert process.stdin and process.stdout
    said = process.stdout

    def until(words: str) -> None:
        for line in said:
            seen.append(line)
            if words in COLOUR.sub("", line):
                return
        raise AssertionError(f"no {words!r} in:\n" + "".join(seen))

    try:
        until("power off; nothing is kept")
        process.stdin.write("snd ip -br -4 addr; rtr tc qdisc show dev east\n")
        process.stdin.flush()
        until("10.0.1.2/24")
        until("pfifo 10: parent 1:1 limit 86p")
        process.stdin.write("flows 3 cubic lp\n")
        process.stdin.flush()
        until("cubic")
        until("Mbit/s")
        process.stdin.write("exit\n")
        process.stdin.flush()
        assert process.wait(timeout=300) == 0, "".join(seen)
    finally:
        clock.cancel()
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
