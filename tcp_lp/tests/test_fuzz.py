# SPDX-License-Identifier: GPL-2.0
"""lp and lp_ecn under peers that acknowledge anything at any time: law_fuzz.c, and the module's own source."""

from __future__ import annotations

from pathlib import Path

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent
#: 500 ACKs each; 3000 of them take two seconds
PEERS = 3000


def test_no_peer_breaks_the_control(tmp_path: Path) -> None:
    """And each of its states is entered at least once in 100 ACKs."""
    acks = hostc.fuzz(hostc.sender(FOLDER / "tcp_lp.c"), tmp_path, FOLDER, PEERS)
    assert sum(acks) == 500 * PEERS
    assert all(one > sum(acks) / 100 for one in acks), acks
