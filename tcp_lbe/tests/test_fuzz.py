# SPDX-License-Identifier: GPL-2.0
"""The law of lbe under peers that acknowledge anything at any time: law_fuzz.c."""

from __future__ import annotations

from pathlib import Path

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent
#: 400 ACKs each; 20000 of them take a second
PEERS = 20000


def test_no_peer_makes_the_law_divide_by_zero(tmp_path: Path) -> None:
    """And each of its states is entered at least once in a hundred ACKs."""
    acks = hostc.fuzz("", tmp_path, FOLDER, PEERS)
    assert len(acks) == 4 and sum(acks) == 400 * PEERS
    assert all(one > sum(acks) / 100 for one in acks), acks
