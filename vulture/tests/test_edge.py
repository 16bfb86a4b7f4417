# SPDX-License-Identifier: GPL-2.0
"""The right edge (edge.h) against an oracle that counts octets without an end, and rules of RFC 9293 and RFC 7323."""

from __future__ import annotations

import ctypes
import random
import shutil
from pathlib import Path

import pytest

from testbed.support import hostc

pytestmark = pytest.mark.host

FOLDER = Path(__file__).resolve().parent.parent
WRAPPER = """
#include <stdlib.h>
#include "edge.h"

struct edge *edge_new(u32 ack, u32 own, u32 scale)
{
	struct edge *e = calloc(1, sizeof(*e));

	edge_init(e, ack, own, scale);
	return e;
}

void edge_free(struct edge *e) { free(e); }
u32 edge_acked(struct edge *e, u32 ack) { return edge_acknowledged(e, ack); }
bool edge_near(struct edge *e, u32 seg_bytes) { return edge_reached(e, seg_bytes); }

u32 edge_send(struct edge *e, u32 ack, u32 own_field, u32 kind, u32 bytes, u32 edge_seq, u32 retract, u32 mss)
{
	struct rwnd_want want = { .kind = kind, .bytes = bytes, .edge_seq = edge_seq, .retract = retract };
	u32 acked = edge_acknowledged(e, ack);
	u16 field = edge_field(e, ack, acked, own_field, &want, mss);

	edge_advertised(e, ack, own_field, field, kind == RWND_LEAVE, 1);
	return field;
}

u32 edge_data(struct edge *e, u64 now_us, u32 seq, u32 bytes, u32 tsval)
{
	if (!edge_takes(e, now_us, seq, bytes, tsval))
		return 99;
	return edge_seen(e, now_us, seq, bytes, tsval);
}
"""
LEAVE, WINDOW, EDGE = range(3)
NEXT, HOLE, RETRANSMITTED, REORDERED, STRAY = 0, 1, 2, 3, 99
MSS = 1448
WRAP = 1 << 32


def load(folder: Path, change: tuple[str, str] | None = None) -> ctypes.CDLL:
    """Compile the headers as a library; ``change`` plants a fault, to see that a test finds it."""
    include = FOLDER
    if change:
        include = folder / "vulture"
        shutil.copytree(FOLDER / "uapi", include / "uapi")
        shutil.copy(FOLDER / "controller.h", include)
        text = (FOLDER / "edge.h").read_text(encoding="utf-8")
        assert change[0] in text, f"edge.h has no {change[0]!r} to change"
        (include / "edge.h").write_text(text.replace(*change), encoding="utf-8")
    library = hostc.load(WRAPPER, folder, include, "edge")
    library.edge_new.restype = ctypes.c_void_p
    library.edge_free.argtypes = [ctypes.c_void_p]
    library.edge_send.argtypes = [ctypes.c_void_p] + [ctypes.c_uint32] * 7
    library.edge_data.argtypes = [ctypes.c_void_p, ctypes.c_uint64, *[ctypes.c_uint32] * 3]
    library.edge_acked.argtypes = library.edge_near.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    library.edge_acked.restype, library.edge_near.restype = ctypes.c_uint32, ctypes.c_bool
    library.edge_send.restype = library.edge_data.restype = ctypes.c_uint32
    return library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return load(tmp_path_factory.mktemp("edge"))


def check_windows(library: ctypes.CDLL, seed: int, steps: int = 400) -> None:
    """Check each window of a random connection against the rules. Sequence numbers do not wrap in the oracle."""
    rng = random.Random(seed)
    scale, ack = rng.randrange(15), rng.randrange(WRAP)
    unit = 1 << scale
    own_edge = ack + rng.randrange(1, 4096) * unit
    handle = library.edge_new(ack % WRAP, own_edge - ack, scale)
    goal, furthest, edge_want = own_edge, own_edge, ack
    kind, want, retract = WINDOW, 0, False
    for _ in range(steps):
        if rng.random() < 0.1:
            kind, retract = rng.choice([WINDOW, WINDOW, EDGE, EDGE, LEAVE]), rng.random() < 0.2
            want = rng.randrange(60000 * unit) if rng.random() < 0.5 else rng.randrange(20 * MSS)
        fresh = rng.random() < 0.9
        if fresh:  # what the sender may have sent; TCP's own edge moves on and never back
            ack += rng.randrange(1, max(2, min(4 * MSS, furthest - ack)))
            own_edge = max(own_edge, ack + rng.randrange(65536) * unit)
        own_field = min(65535, (own_edge - ack) // unit)
        edge_want = max(edge_want, ack + want) if kind == EDGE else ack + min(want, own_field * unit)
        field = library.edge_send(handle, ack % WRAP, own_field, kind, want, edge_want % WRAP, retract, MSS)

        assert field <= own_field, "above TCP's own window"
        if kind == LEAVE:
            assert field == own_field
            goal = max(goal, ack + field * unit)
        else:
            wanted = min(edge_want, ack + own_field * unit)
            if wanted > goal:
                goal = wanted
            elif retract and fresh:
                goal = min(goal, max(wanted, ack + 2 * MSS))
            open_bytes = max(0, goal - ack)
            units = -(-open_bytes // unit) if kind == WINDOW else open_bytes // unit
            assert field == min(max(units, kind == WINDOW), own_field)
            if not retract and field < own_field and goal > ack:
                assert ack + field * unit > goal - unit, "the edge went left by a unit or more"
        furthest = max(furthest, ack + field * unit)
    library.edge_free(handle)


@pytest.mark.parametrize("seed", range(60))
def test_windows(library: ctypes.CDLL, seed: int) -> None:
    check_windows(library, seed)


@pytest.mark.parametrize("scale", range(15))
@pytest.mark.parametrize("per_ack", [1, 500, MSS, 2 * MSS, 10 * MSS])
def test_a_window_shrinks_at_any_scale(library: ctypes.CDLL, scale: int, per_ack: int) -> None:
    check_shrinks(library, scale, per_ack)


def check_shrinks(library: ctypes.CDLL, scale: int, per_ack: int) -> None:
    """While the window shrinks the edge stays: the receiver accepts what lies between the two windows, and no octet
    more."""
    unit, ack, own = 1 << scale, WRAP - 100000, 65535
    start, goal = max(64 * unit, 64 * MSS) // unit * unit, 2 * MSS
    handle = library.edge_new(ack, start, scale)
    left = start - goal
    while left > 0:
        ack += min(per_ack, left)
        left -= per_ack
        field = library.edge_send(handle, ack % WRAP, own, WINDOW, goal, 0, 0, MSS)
    library.edge_free(handle)
    assert field * unit < goal + unit, f"{field * unit} octets are open, {goal} were wanted"


#: (fault put in, the check that finds it)
FAULTS = [
    # The rule of before: the goal is kept in whole units, and moves on with each acknowledgment.
    (
        (
            "	if (left && edge_before(e->goal_seq, edge_seq))",
            "	(void)left;\n	if (edge_before(e->goal_seq, edge_seq))",
        ),
        lambda library: check_shrinks(library, 11, MSS),
    ),
    (("return (u16)min_t(u32, units, own_field);", "return (u16)units;"), None),
    (("	if (edge_before(ack + own_bytes, wanted_seq))\n		wanted_seq = ack + own_bytes;\n", ""), None),
    (("} else if (want->retract && fresh) {", "} else if (want->retract && (fresh || !fresh)) {"), None),
    (("if (want->kind == RWND_WINDOW && (!units", "if ((!units"), None),
]


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_faults_are_found(tmp_path: Path, number: int) -> None:
    change, check = FAULTS[number]
    library = load(tmp_path, change)
    with pytest.raises(AssertionError):
        if check:
            check(library)
        for seed in range(60):
            check_windows(library, seed)


def test_an_old_acknowledgment_moves_nothing_back(library: ctypes.CDLL) -> None:
    for start in (1000, WRAP - 500):
        handle = library.edge_new(start, 65535, 0)
        assert library.edge_acked(handle, (start + 2 * MSS) % WRAP) == 2 * MSS
        assert library.edge_acked(handle, (start + MSS) % WRAP) == 0, "overtaken by a newer one"
        assert library.edge_acked(handle, (start + 3 * MSS) % WRAP) == MSS, "counted from the newest"
        library.edge_free(handle)


def test_a_sender_is_at_the_edge_within_a_segment_of_it(library: ctypes.CDLL) -> None:
    for start in (1000, WRAP - 500):
        handle = library.edge_new(start, 65535, 0)
        ack = start + MSS
        assert library.edge_send(handle, ack % WRAP, 65535, WINDOW, 4 * MSS - 1, 0, 1, MSS) == 4 * MSS - 1
        for came, reached in enumerate((False, False, False, True)):
            assert library.edge_near(handle, MSS) is reached, f"{came} segments of a window of nearly four"
            library.edge_data(handle, 1 << 40, (ack + came * MSS) % WRAP, MSS, 7)
        library.edge_free(handle)


def test_data(library: ctypes.CDLL) -> None:
    """Compare a stream with holes, retransmissions, duplicates and forgeries with an oracle whose numbers do not wrap.
    """
    rng = random.Random(1)
    for seed in range(40):
        rng.seed(seed)
        ack, tick, now = rng.randrange(WRAP), rng.randrange(WRAP), 1 << 40
        handle = library.edge_new(ack % WRAP, 1 << 20, 0)
        edge, high, high_tick, recent, any_data = ack + (1 << 20), ack, tick, tick - 1, False
        for _ in range(300):
            now += rng.randrange(2000)
            tick += rng.randrange(3)
            seq = rng.choice(
                [
                    high,
                    high,
                    high + MSS,
                    ack,
                    max(ack - MSS, high - 5 * MSS),
                    ack - MSS,
                    ack + rng.randrange(-(1 << 31) + 1, 1 << 31),
                ]
            )
            ts = tick - rng.choice([0, 0, 0, 1, 3, 1 << 20])
            got = library.edge_data(handle, now, seq % WRAP, MSS, ts % WRAP)
            end = seq + MSS
            if end <= ack or end > edge or (any_data and ts < recent):
                assert got == STRAY, (seq - ack, ts - recent)
                continue
            kind = NEXT
            if any_data and seq < high:
                kind = RETRANSMITTED if ts > high_tick else REORDERED
            elif any_data and seq != high:
                kind = HOLE
            assert got == kind, (seq - high, ts - high_tick)
            if seq <= ack:
                recent = ts
            elif not any_data:
                recent = tick - (1 << 31)
            if not any_data or end > high:
                high, high_tick, any_data = end, ts, True
            if seq <= ack and rng.random() < 0.5:  # TCP has filled its holes, and says so
                ack = high
                library.edge_send(handle, ack % WRAP, 65535, LEAVE, 0, 0, 0, MSS)
                edge = max(edge, ack + 65535)
        library.edge_free(handle)
