# SPDX-License-Identifier: GPL-2.0
"""The law of lbe under peers that acknowledge anything at any time: law_fuzz.c, undefined behaviour being an error."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from testbed.support.hostc import ROOT

#: 400 ACKs each; 20000 of them take a second
PEERS = 20000


def test_no_peer_makes_the_law_divide_by_zero(tmp_path: Path) -> None:
    """And each of its states is entered at least once in a hundred ACKs."""
    program = tmp_path / "law_fuzz"
    words = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]
    source = Path(__file__).with_name("law_fuzz.c")
    built = subprocess.run(
        [shutil.which("cc") or "gcc", *words, f"-I{ROOT / 'include'}", "-o", program, source],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert not built.returncode, built.stderr
    run = subprocess.run([program, "1", str(PEERS)], check=False, capture_output=True, text=True)
    assert not run.returncode, run.stderr
    acks = [int(word) for word in run.stdout.split()]
    assert len(acks) == 4 and sum(acks) == 400 * PEERS
    assert all(one > sum(acks) / 100 for one in acks), acks
