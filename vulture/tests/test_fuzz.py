# SPDX-License-Identifier: GPL-2.0
"""The controllers under senders that send anything at any time: law_fuzz.c."""

from __future__ import annotations

from pathlib import Path

from testbed.support import hostc
from vulture.tests.credit_model import MODULE, WORLD, without_kernel

#: 1000 choices each; 400 of them take two seconds
PEERS = 400


def test_no_sender_breaks_a_controller_or_stops_its_network(tmp_path: Path) -> None:
    """In addition, credit and paper are in each of their four states in at least one of a hundred events."""
    controllers = [(MODULE / name).read_text(encoding="utf-8") for name in ("credit.c", "paper.c", "rledbat.c")]
    events = hostc.fuzz(WORLD + "".join(map(without_kernel, controllers)), tmp_path, MODULE, PEERS)
    assert len(events) == 12
    assert all(one > sum(events[:4]) / 100 for one in events[:4]), events
    assert all(events[4:]), events
