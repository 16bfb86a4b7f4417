# SPDX-License-Identifier: GPL-2.0
"""The paper's Algorithms 1 to 6 (piv.h, policy.h) over long random inputs, against an oracle without queues of entries.

The oracle keeps each packet and each ACK by itself, in a list without an end, and has numbers without a limit. The C
has bounded rings of entries that stand for several packets. tests/vulture_kunit.c has the paper's own examples.
"""

from __future__ import annotations

import ctypes
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from testbed.support import hostc

pytestmark = pytest.mark.host

FOLDER = Path(__file__).resolve().parent.parent
WRAPPER = """
#include "policy.h"

static struct piv_params p;
static struct piv_queue q;
static struct piv_set set;
static struct rwnd w;
static struct cwnd_est e;
static struct piv_tick t;

void params(u32 tick, u32 psi, u32 cons_low, u32 cons_high, u32 aggr_low, u32 aggr_high, u32 pairing)
{
	p = (struct piv_params){ tick, psi, cons_low, cons_high, aggr_low, aggr_high, pairing };
}

bool params_ok(void) { return piv_params_ok(&p); }
void scale(u32 peer_tick_us) { p = piv_scale(&p, peer_tick_us); }
u32 param(u32 i) { return ((const u32 *)&p)[i]; }
u32 rounded(s64 t_us, u32 tick_us) { return piv_round(t_us, tick_us); }

void begin(void)
{
	piv_queue_clear(&q);
	memset(&set, 0, sizeof(set));
}

u32 data(s64 sent_us, s64 arrived_us, u32 n)
{
	piv_on_data(&q, &set, &p, sent_us, arrived_us, n);
	return q.len;
}

/* n, negative, zero, positive, sum, and the classes of both modes */
void counted(s64 *to)
{
	u32 mode, class;

	*to++ = set.n;
	*to++ = set.negative;
	*to++ = set.zero;
	*to++ = set.positive;
	*to++ = set.sum_us;
	for (mode = 0; mode < PIV_MODES; mode++)
		for (class = 0; class < PIV_CLASSES; class++)
			*to++ = set.by[mode][class];
}

u32 mode(u32 n, u32 positive, s64 sum_us, u32 positive_test)
{
	struct piv_set s = { .n = n, .positive = positive, .sum_us = sum_us };

	return piv_mode(&s, positive_test);
}

u32 policy(u32 n, u32 high, u32 low, u32 mode, u32 alpha, u32 bytes, u32 thresh)
{
	struct piv_set s = { .n = n };

	s.by[mode][PIV_HIGH] = high;
	s.by[mode][PIV_LOW] = low;
	return policy_make(&s, mode, alpha, bytes, thresh);
}

void window(u32 bytes, u32 thresh, u32 policy, u32 used, u32 floor, u32 goals)
{
	struct policy_params one = { .goals = goals };

	w = (struct rwnd){ .bytes = bytes, .thresh_bytes = thresh };
	rwnd_set_policy(&w, policy, used, floor, &one);
}

u32 acked(u32 bytes, u32 step, u32 floor, u32 may_grow) { return rwnd_on_ack(&w, bytes, step, floor, may_grow); }
u32 threshold(void) { return w.thresh_bytes; }
bool may_grow(u32 round_bytes, u32 rwnd, u32 mss) { return rwnd_may_grow(round_bytes, rwnd, mss); }

void estimate(void) { memset(&e, 0, sizeof(e)); }
void estimate_data(u32 tsecr, u32 bytes) { cwnd_on_data(&e, tsecr, bytes); }
u32 estimate_ack(u32 tsval, u32 bytes) { cwnd_on_ack(&e, tsval, bytes); return e.len; }
s64 estimated(void) { return e.bytes; }
u32 estimated_window(s64 bytes) { struct cwnd_est one = { .bytes = bytes }; return cwnd_est_bytes(&one); }

void clock_begin(void) { memset(&t, 0, sizeof(t)); }
bool clock_data(u64 now_us, u32 tsval) { return piv_tick_on_data(&t, now_us, tsval); }
u32 clock_tick(void) { return t.tick_us; }
s64 clock_sent(u32 tsval) { return piv_tick_sent_us(&t, tsval); }
"""
J = 4000
#: tick, PSI, conservative low and high, aggressive low and high: the paper's, with our finer clock
PAPER = (1, 5 * J, 1 * J, 2 * J, 3 * J, 5 * J)
GAP_US = 4_000_000
EACH, LITERAL = range(2)
CONSERVATIVE, AGGRESSIVE = range(2)
LOW, MIDDLE, HIGH = range(3)
FIX, INCREASE, DOUBLE, HALVE = range(4)
MOST = 65535 << 14
ENTRIES = 64


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    c = hostc.load(WRAPPER, tmp_path_factory.mktemp("piv"), FOLDER, "piv")
    c.data.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_uint32]
    c.rounded.argtypes = [ctypes.c_int64, ctypes.c_uint32]
    c.mode.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint32]
    c.clock_data.argtypes = [ctypes.c_uint64, ctypes.c_uint32]
    c.estimated_window.argtypes = [ctypes.c_int64]
    c.clock_sent.argtypes = [ctypes.c_uint32]
    c.clock_sent.restype = c.estimated.restype = ctypes.c_int64
    c.may_grow.restype = c.params_ok.restype = c.clock_data.restype = ctypes.c_bool
    for name in ("param", "rounded", "acked", "threshold", "data", "clock_tick", "estimated_window", "estimate_ack"):
        getattr(c, name).restype = ctypes.c_uint32
    return c


class Packet(NamedTuple):
    sent_us: int
    arrived_us: int


@dataclass
class Round:
    """Algorithms 1 and 2, packet by packet. Sending times do not decrease."""

    psi_us: int
    tick_us: int
    each: bool
    waiting: list[Packet] = field(default_factory=list)
    variations: list[int] = field(default_factory=list)

    def data(self, sent_us: int, arrived_us: int, n: int) -> None:
        now = Packet(*(us // self.tick_us * self.tick_us for us in (sent_us, arrived_us)))
        unpaired = n
        while unpaired and self.waiting:
            if self.each:
                old = [one.sent_us for one in self.waiting if now.sent_us - one.sent_us >= self.psi_us]
                if old:
                    self.waiting = [one for one in self.waiting if one.sent_us >= max(old)]
            first = self.waiting[0]
            apart_us = now.sent_us - first.sent_us
            if apart_us > GAP_US:
                self.waiting = []
            elif apart_us < self.psi_us:
                break
            else:
                self.variations.append(now.arrived_us - first.arrived_us - apart_us)
                self.waiting.pop(0)
                unpaired -= 1
        self.waiting += [now] * (n if self.each else unpaired)


def class_of(size_us: int, low_us: int, high_us: int, low_is_in: bool) -> int:
    if size_us >= high_us:
        return HIGH
    return LOW if size_us < low_us or (low_is_in and size_us == low_us) else MIDDLE


def summary(variations: list[int], params: tuple[int, ...]) -> list[int]:
    """Algorithm 2 and both columns of Algorithm 3, in the order of counted()."""
    _, _, cons_low, cons_high, aggr_low, aggr_high = params
    counts = [len(variations), sum(v < 0 for v in variations), variations.count(0), sum(v > 0 for v in variations)]
    cons = [class_of(abs(v), cons_low, cons_high, False) for v in variations]
    aggr = [class_of(abs(v), aggr_low, aggr_high, True) for v in variations]
    return [*counts, sum(variations), *map(cons.count, range(3)), *map(aggr.count, range(3))]


def counted(library: ctypes.CDLL) -> list[int]:
    to = (ctypes.c_int64 * 11)()
    library.counted(to)
    return list(to)


def traffic(rng: random.Random, arrivals: int, least_us: int) -> list[tuple[int, int, int]]:
    """(sent, arrived, packets): bursts, pauses, sizes of aggregates and a queue that grows and drains."""
    made, sent_us = [], rng.randrange(-(10**6), 10**6)
    arrived_us = sent_us + rng.randrange(10**6)
    for _ in range(arrivals):
        step_us = rng.choice((0, 0, least_us, 3 * least_us, 2 * J, 5 * J - 1, 5 * J, 5 * J + 1, 9 * J))
        if rng.random() < 0.01:
            step_us = rng.choice((GAP_US, GAP_US + 1, 2 * GAP_US))
        sent_us += step_us
        arrived_us += max(0, step_us + rng.choice((0, 0, 1, -1, J - 1, J, -J, 2 * J, 3 * J, -4 * J, 5 * J, -6 * J)))
        made.append((sent_us, arrived_us, rng.choice((1, 1, 1, 2, 5))))
    return made


@pytest.mark.parametrize("pairing", [EACH, LITERAL], ids=["each", "as printed"])
@pytest.mark.parametrize("tick_us", [1, J])
def test_pairs_and_their_classes(library: ctypes.CDLL, pairing: int, tick_us: int) -> None:
    """Which packets form a pair, the variation of each, and what a round keeps of them."""
    pairs = 0
    for seed in range(25):
        rng = random.Random(seed)
        params = (tick_us, *PAPER[1:])
        library.params(*params, pairing)
        library.begin()
        oracle = Round(PAPER[1], tick_us, pairing == EACH)
        for sent_us, arrived_us, n in traffic(rng, 300, 2000):
            entries = library.data(sent_us, arrived_us, n)
            oracle.data(sent_us, arrived_us, n)
            assert entries < ENTRIES // 2, "entries would be merged, which the oracle does not do"
            assert counted(library) == summary(oracle.variations, params), seed
        pairs += len(oracle.variations)
    assert pairs > 2000


@pytest.mark.parametrize("per_s", [4000, 10000, 40000])
def test_merged_entries_lose_no_packet(library: ctypes.CDLL, per_s: int) -> None:
    """At a high rate an entry stands for several packets. Each packet still forms a pair, with an error below the time
    that is merged."""
    gap_us = 10**6 // per_s
    library.params(*PAPER, EACH)
    library.begin()
    oracle = Round(PAPER[1], 1, True)
    for i in range(per_s // 8):
        entries = library.data(i * gap_us, i * gap_us * 11 // 10, 1)
        oracle.data(i * gap_us, i * gap_us * 11 // 10, 1)
        assert entries <= ENTRIES
    n, negative, _, positive, sum_us = counted(library)[:5]
    mean_us = sum(oracle.variations) / len(oracle.variations)
    assert negative == 0 and positive == n
    assert n == pytest.approx(len(oracle.variations), rel=0.1)
    assert abs(sum_us / n - mean_us) < 500


def test_a_full_queue_takes_every_packet(library: ctypes.CDLL) -> None:
    """This holds also if the entries are too far apart to be merged: the last entry then stands for the rest."""
    library.params(1, 1_000_000, *PAPER[2:], EACH)
    library.begin()
    for i in range(200):
        assert library.data(i * 4000, i * 4000, 1) == min(i + 1, ENTRIES)
    library.data(3_000_000, 3_000_000, 200)
    assert counted(library)[0] == 200 - ENTRIES + 1  # those of the last entry, which is the latest


def test_times_are_rounded_down(library: ctypes.CDLL) -> None:
    for tick_us in (1, 7, J, 10000):
        for t_us in (-(10**12) - 1, -J, -1, 0, 1, J - 1, J, 10**12 + 3):
            assert library.rounded(t_us, tick_us) == t_us // tick_us * tick_us % 2**32


def test_thresholds_grow_with_the_tick_of_the_peer(library: ctypes.CDLL) -> None:
    for peer_us in (1, 1000, J, J + 1, 8000, 10000):
        library.params(*PAPER, LITERAL)
        library.scale(peer_us)
        factor = max(peer_us, J)
        expected = [PAPER[0], *(one * factor // J for one in PAPER[1:]), LITERAL]
        assert [library.param(i) for i in range(7)] == expected


@pytest.mark.parametrize(
    ("params", "fits"),
    [
        (PAPER, True),
        ((J, J, 5, 5, 4, 5), True),  # both at their bound
        ((J, J - 1, 5, 5, 4, 5), False),  # a tick above PSI
        ((J, J, 6, 5, 4, 5), False),
        ((J, J, 5, 5, 5, 5), False),
    ],
)
def test_thresholds_that_contradict_each_other(library: ctypes.CDLL, params: tuple[int, ...], fits: bool) -> None:
    library.params(*params, EACH)
    assert library.params_ok() == fits


def test_mode_and_policy_of_a_round(library: ctypes.CDLL) -> None:
    rng = random.Random(3)
    seen = set()
    for _ in range(20000):
        n = rng.choice((1, 2, 7, 8, 9, 40))
        positive, sum_us = rng.randrange(n + 1), rng.choice((-(10**9), -1, 0, 1, 10**9))
        careful = sum_us > 0 or positive > n - positive
        assert library.mode(n, positive, sum_us, 1) == (CONSERVATIVE if careful else AGGRESSIVE)
        assert library.mode(n, positive, sum_us, 0) == CONSERVATIVE
        high = rng.randrange(n + 1)
        low, mode = rng.randrange(n - high + 1), rng.randrange(2)
        bytes_, thresh = rng.choice((1, 2, 3)), rng.choice((1, 2, 3))
        expected = FIX
        if high / n > 7 / 8:
            expected = HALVE
        elif low / n > 7 / 8:
            expected = DOUBLE if bytes_ < thresh else INCREASE
        assert library.policy(n, high, low, mode, 875, bytes_, thresh) == expected
        seen.add((careful, expected))
    assert len(seen) == 8


@pytest.mark.parametrize("policy", [FIX, INCREASE, DOUBLE, HALVE], ids=["fix", "increase", "double", "halve"])
def test_windows_that_a_policy_makes(library: ctypes.CDLL, policy: int) -> None:
    """Algorithm 5 over a round of ACKs. Expected: what the head of policy.h says, ACK by ACK."""
    rng = random.Random(policy)
    for _ in range(2000):
        floor, step = 2000, rng.choice((1000, 3000))
        before = rng.choice((2000, 2001, 30000, 10**6, MOST // 2 + 1, MOST - 500, MOST))
        thresh = rng.choice((2000, before // 2, before, before * 3 // 2, MOST))
        used = rng.choice((0, 1000, before // 3, before, 2 * before))
        goals, grows = rng.random() < 0.5, rng.random() < 0.7
        library.window(before, thresh, policy, used, floor, goals)
        now, least, most, stepped = before, floor, MOST, False
        if policy == HALVE:
            thresh = now = max(min(before, used), floor)
            least = max(now // 2, floor) if goals else floor
        if policy == DOUBLE:
            most = min(thresh, 2 * before if goals else MOST, MOST)
        for _ in range(8):
            bytes_ = rng.choice((0, 1, 1000, 2896, 10**7))
            if policy == HALVE:
                now = max(now - bytes_, min(now, least))
            elif policy == DOUBLE and grows:
                now = max(now, min(now + bytes_, most))
            elif policy == INCREASE and grows and bytes_ and not stepped:
                now, stepped = min(now + step, MOST), True
            assert library.acked(bytes_, step, floor, grows) == now
            assert library.threshold() == thresh


def test_a_window_that_is_not_used_does_not_grow(library: ctypes.CDLL) -> None:
    for rwnd in (0, 7, 1000, 20000, 10**6, MOST):
        for short in (-3000, -2001, -2000, -1999, -1, 0, 1):
            used = rwnd - rwnd // 8 + short
            if 0 <= used < 2**32:
                assert library.may_grow(used, rwnd, 1000) == (short >= -2000)


def test_the_estimate_of_the_senders_window(library: ctypes.CDLL) -> None:
    """Algorithm 6 with an entry for each timestamp. Timestamps wrap on the way."""
    for seed in range(100):
        rng = random.Random(seed)
        library.estimate()
        pending: list[list[int]] = []  # [timestamp, octets not answered yet]
        estimate, clock, echoed = 0, 2**32 - 500, 2**32 - 501
        for _ in range(600):
            if rng.random() < 0.45 and len(pending) < ENTRIES - 1:
                clock += rng.choice((0, 1, 1, 3))
                octets = rng.choice((1000, 2000, 6000))
                library.estimate_ack(clock % 2**32, octets)
                if pending and pending[-1][0] >= clock:
                    pending[-1][1] += octets
                else:
                    pending.append([clock, octets])
                continue
            echoed = rng.choice((echoed, echoed + 1, clock, rng.randint(echoed, max(clock, echoed))))
            octets = rng.choice((1, 1000, 3000))
            library.estimate_data(echoed % 2**32, octets)
            while pending and pending[0][0] < echoed:
                estimate -= pending.pop(0)[1]  # the sender did not use it
            if pending and pending[0][0] == echoed:
                answered = min(octets, pending[0][1])
                pending[0][1] -= answered
                octets -= answered
                if not pending[0][1]:
                    pending.pop(0)
            estimate += octets
            assert library.estimated() == estimate, seed


def test_many_acks_are_kept_in_pairs(library: ctypes.CDLL) -> None:
    """A full queue merges neighbours. The number of octets stays, and later data still finds them."""
    library.estimate()
    for i in range(ENTRIES):
        assert library.estimate_ack(i, 1000) == i + 1
    assert library.estimate_ack(ENTRIES, 1000) == ENTRIES // 2 + 1
    library.estimate_data(1, 1999)  # answers the pair of 0 and 1, but for one octet
    assert library.estimated() == 0
    library.estimate_data(1, 2)
    assert library.estimated() == 1
    library.estimate_data(ENTRIES, 1000)
    assert library.estimated() == 1 - 1000 * (ENTRIES - 2)
    assert [library.estimated_window(b) for b in (-1, 0, 5, MOST + 1)] == [0, 0, 5, MOST]


@pytest.mark.parametrize("peer_us", [1, 1000, 2000, 4000, 10000])
@pytest.mark.parametrize("grows_us_s", [0, 100000, -50000], ids=["still", "fills", "drains"])
def test_the_tick_of_the_peer_is_found_and_kept(library: ctypes.CDLL, peer_us: int, grows_us_s: int) -> None:
    """The tick is found however the delay changes meanwhile. Sending times have no jump where the timestamp wraps."""
    library.clock_begin()
    first, changes = 2**32 - 10**6 // peer_us, 0
    for i in range(3000):  # each 10 ms
        sent_us = i * 10000
        now_us = 10**7 + sent_us + min(max(sent_us, 0), 10**6) * grows_us_s // 10**6
        tsval = (first + sent_us // peer_us) % 2**32
        changes += library.clock_data(now_us, tsval)
        if i == 60:
            assert library.clock_tick() == peer_us
            began_us = library.clock_sent(tsval) - sent_us // peer_us * peer_us
        if i > 60:
            assert library.clock_sent(tsval) - began_us == sent_us // peer_us * peer_us
    assert changes == 1


@pytest.mark.parametrize(
    ("peer_us", "found"), [(1400, False), (6000, False), (15625, True), (16667, True), (50000, True)]
)
def test_an_unknown_tick_is_at_most_known_to_be_coarse(library: ctypes.CDLL, peer_us: int, found: bool) -> None:
    library.clock_begin()
    for i in range(600):
        library.clock_data(10**7 + i * 10000, 5 + i * 10000 // peer_us)
    tick_us = library.clock_tick()
    assert (tick_us > 10000) == found and (found or tick_us == 0)
    assert not found or tick_us == pytest.approx(peer_us, rel=1 / 50)


def test_a_tick_that_was_wrong_is_corrected(library: ctypes.CDLL) -> None:
    """If the delay grows by 300 ms at first, the tick seems twice as long. The longer baseline decides."""
    library.clock_begin()
    for i in range(400):
        now_us = 10**7 + i * 10000 + min(i * 10000, 300000)
        library.clock_data(now_us, 5 + i * 10)
        if i == 20:
            assert library.clock_tick() == 2000
    assert library.clock_tick() == 1000
    # a peer whose timestamps go back begins anew, and keeps the tick meanwhile
    assert not library.clock_data(10**7 + 5 * 10**6, 1)
    assert library.clock_tick() == 1000
