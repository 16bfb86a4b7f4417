# SPDX-License-Identifier: GPL-2.0
"""The LowPri family under peers that acknowledge anything at any time: law_fuzz.c, and the module's own source."""

from __future__ import annotations

from pathlib import Path

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent
#: 500 ACKs each; 3000 of them take two seconds
PEERS = 3000


def test_no_peer_breaks_the_control(tmp_path: Path) -> None:
    """And each of its states is entered at least once in 200 ACKs."""
    module = hostc.sender(FOLDER / "tcp_lowpri.c")
    law = module.partition("/* Which variants to register */")[0] + hostc.table("lowpri_template", module)
    acks = hostc.fuzz(law, tmp_path, FOLDER, PEERS)
    assert sum(acks) == 500 * PEERS
    assert all(one > sum(acks) / 200 for one in acks), acks
