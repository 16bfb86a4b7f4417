# SPDX-License-Identifier: GPL-2.0
"""path_delay.h against an oracle: the rules of its head, over whole lists of what was sampled instead of a struct.

Delays go by the round trip here; what owd.h makes of timestamps has its own oracle in test_arithmetic.py.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testbed.support import hostc

SLOT_MS, NOISE_US, FLAT_SAMPLES = 300_000, 1_000, 6
MOST_PKT_US = 0xFFFF
EMPTY = 0xFFFFFFFF

WRAPPER = """
#include <stdlib.h>
#include <lbe/path_delay.h>

struct lbe_path_delay *path_new(u32 now_ms)
{
	struct lbe_path_delay *p = calloc(1, sizeof(*p));

	lbe_delay_init(p, now_ms);
	return p;
}

void path_free(struct lbe_path_delay *p) { free(p); }

/* Return: the queue, us; all ones: the ACK told nothing. */
u32 path_ack(struct lbe_path_delay *p, u64 now_us, u32 rtt_us, u32 pkts)
{
	struct lbe_delay_ack ack = { .pkts = pkts, .round_trip = true,
		.owd = { .now_us = now_us, .rtt_us = rtt_us, .min_rtt_us = rtt_us } };
	struct lbe_delay_sample sample;

	return lbe_delay_ack(p, &ack, &sample) ? sample.queue_us : U32_MAX;
}

u32 path_base(struct lbe_path_delay *p) { return lbe_delay_base_us(p); }
u32 path_full(struct lbe_path_delay *p) { return p->full_us; }
u32 path_noise(struct lbe_path_delay *p) { return lbe_delay_noise_us(p); }
void path_crowd(struct lbe_path_delay *p, u32 rtts) { p->crowd_rtts = rtts; }
void path_delivered(struct lbe_path_delay *p, u32 pkts, u32 us) { lbe_delay_delivered(p, pkts, us); }
void path_loss(struct lbe_path_delay *p) { lbe_delay_loss(p); }
void path_lost(struct lbe_path_delay *p, u32 us) { lbe_delay_lost(p, us); }
void path_undone(struct lbe_path_delay *p) { lbe_delay_undone(p); }
void path_repaired(struct lbe_path_delay *p) { lbe_delay_repaired(p); }
void path_unsteady(struct lbe_path_delay *p) { lbe_delay_unsteady(p); }
bool path_steady(struct lbe_path_delay *p, u32 us, u32 within_us, u32 wait_ms, u32 now_ms)
{ return lbe_delay_steady(p, us, within_us, wait_ms, now_ms); }
bool path_fades(struct lbe_path_delay *p, u32 within_us, u32 now_ms)
{ return lbe_delay_base_fades(p, within_us, now_ms); }
"""


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    lib = hostc.load(WRAPPER, tmp_path_factory.mktemp("path"), Path(), "path")
    lib.path_new.restype = ctypes.c_void_p
    for name in ("path_ack", "path_base", "path_full", "path_noise"):
        getattr(lib, name).restype = ctypes.c_uint32
    for name in ("path_steady", "path_fades"):
        getattr(lib, name).restype = ctypes.c_bool
    lib.path_ack.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32]
    return lib


class Ours:
    """A path of the header's; calls go to it by their names."""

    def __init__(self, lib: ctypes.CDLL, now_ms: int = 0):
        self.lib = lib
        self.path = ctypes.c_void_p(lib.path_new(now_ms & 0xFFFFFFFF))

    def __del__(self) -> None:
        self.lib.path_free(self.path)

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *words: int(getattr(self.lib, f"path_{name}")(self.path, *words))


def delays(rng: random.Random, seconds: float, gap_ms: int) -> Iterator[tuple[int, int, int]]:
    """Time in ms, delay in us and packets of ACKs; now and then a pause of up to half an hour."""
    now_ms, base_us = 0, rng.randint(1_000, 300_000)
    while now_ms < seconds * 1000:
        now_ms += rng.randint(1, gap_ms) if rng.random() < 0.999 else rng.randint(gap_ms, 1_800_000)
        if rng.random() < 0.002:
            base_us = rng.randint(1_000, 300_000)
        yield now_ms, base_us + int(rng.expovariate(1 / 20_000)), rng.choice((1, 1, 2, 3))


# 49.7 days after boot a count of ms wraps; 20 minutes before that, and at boot
STARTS_MS = (1_000, (1 << 32) - 1_200_000)


@pytest.mark.parametrize("start_ms", STARTS_MS)
@pytest.mark.parametrize("seed", range(8))
def test_base_is_the_least_delay_of_the_last_5_to_10_minutes(lib: ctypes.CDLL, seed: int, start_ms: int) -> None:
    seen: list[tuple[int, int]] = []
    ours = Ours(lib, start_ms)
    assert ours.base() == EMPTY
    for now_ms, delay_us, pkts in delays(random.Random(seed), 3000, 2000):
        ours.ack((start_ms + now_ms) * 1000, delay_us, pkts)
        seen = [one for one in seen if now_ms - one[0] < 2 * SLOT_MS] + [(now_ms, delay_us)]
        assert ours.base() <= min(us for ms, us in seen if now_ms - ms < SLOT_MS)
        assert ours.base() in {us for _, us in seen}


@pytest.mark.parametrize("seed", range(8))
def test_queue_is_the_lesser_of_two_held_acks_above_base(lib: ctypes.CDLL, seed: int) -> None:
    ours, before_us = Ours(lib), 0
    for now_ms, delay_us, pkts in delays(random.Random(seed), 300, 100):
        queue_us = ours.ack(now_ms * 1000, delay_us, pkts)
        counts_us = min(delay_us, before_us) if pkts == 1 and before_us else delay_us
        assert queue_us == max(counts_us, ours.base()) - ours.base()
        before_us = delay_us


@pytest.mark.parametrize("seed", range(8))
def test_noise_is_jitter_and_the_least_time_between_packets(lib: ctypes.CDLL, seed: int) -> None:
    rng, ours = random.Random(seed), Ours(lib)
    least_us = 0  # none yet
    for _ in range(500):
        pkts, interval_us = rng.choice((0, 1, 2, 3, 40)), rng.choice((0, int(10 ** rng.uniform(1, 7))))
        ours.delivered(pkts, interval_us)
        if pkts > 1 and interval_us:
            each_us = min(max(interval_us // pkts, 1), MOST_PKT_US)
            least_us = min(each_us, least_us or each_us)
        assert ours.noise() == NOISE_US + least_us
    ours.crowd(3)
    assert ours.noise() == NOISE_US
    ours.crowd(1)  # a single loss may be chance
    assert ours.noise() == NOISE_US + least_us


@dataclass
class Full:
    """What losses teach of a full buffer, by the text."""

    base_us: int
    noise_us: int
    us: int = 0
    before_us: int = 0
    peaks: list[int] = field(default_factory=list)

    def repaired(self) -> None:
        peak, self.peaks = max(self.peaks, default=0), []
        if peak - self.base_us < 2 * self.noise_us:
            return  # clean: random
        if not self.us:
            self.us = peak
        elif peak >= self.us:  # half of the range at most, or the noise
            self.us = min(peak, self.us + max((self.us - self.base_us) // 2, NOISE_US))
        else:
            self.us -= (self.us - peak) // 8


@pytest.mark.parametrize("seed", range(20))
def test_full_follows_losses_that_came_with_a_queue(lib: ctypes.CDLL, seed: int) -> None:
    rng, base_us = random.Random(seed), 50_000
    ours = Ours(lib)
    ours.ack(1_000_000, base_us, 2)
    if seed % 2:
        ours.delivered(10, 12_000)
    oracle = Full(base_us, ours.noise())
    for _ in range(1000):
        act = rng.choice(("loss", "lost", "lost", "lost", "repaired", "undone"))
        if act == "loss":
            ours.loss()
            oracle.before_us = oracle.us
        elif act == "lost":
            delay_us = base_us + int(10 ** rng.uniform(1, 6))
            ours.lost(delay_us)
            oracle.peaks.append(delay_us)
        elif act == "undone":
            ours.undone()
            oracle.us, oracle.peaks = oracle.before_us, []
        else:
            ours.repaired()
            oracle.repaired()
        assert ours.full() == oracle.us


@pytest.mark.parametrize("start_ms", STARTS_MS)
@pytest.mark.parametrize("seed", range(12))
def test_a_delay_that_stands_still_is_a_longer_path(lib: ctypes.CDLL, seed: int, start_ms: int) -> None:
    rng, base_us, found = random.Random(seed), 50_000, 0
    within_us, wait_ms = rng.randint(500, 20_000), rng.randint(5_000, 60_000)
    ours = Ours(lib, start_ms)
    ours.ack(start_ms * 1000, base_us, 2)
    ours.lost(base_us + 100_000)
    ours.repaired()
    full_us, now_ms, level_us = base_us + 100_000, 0, base_us
    stretch: list[tuple[int, int]] = []
    for _ in range(4000):
        now_ms += rng.randint(1, rng.choice((1000, 12_000)))
        if rng.random() < 0.003:
            level_us = rng.randint(1_000, 400_000)
        delay_us = level_us + rng.randint(0, int(1.02 * within_us))
        if rng.random() < 0.002:
            ours.unsteady()
            stretch = []
        stretch.append((now_ms, delay_us))
        if max(us for _, us in stretch) - min(us for _, us in stretch) > within_us:
            stretch = stretch[-1:]
        still = now_ms - stretch[0][0] >= wait_ms and len(stretch) >= FLAT_SAMPLES
        assert ours.steady(delay_us, within_us, wait_ms, (start_ms + now_ms) & 0xFFFFFFFF) == still
        if still:
            found += 1
            least_us = min(us for _, us in stretch)
            full_us += least_us - base_us
            base_us, stretch = least_us, []
        assert ours.base() == base_us and ours.full() == full_us & 0xFFFFFFFF
    assert found > 3


def test_base_that_is_about_to_be_forgotten(lib: ctypes.CDLL) -> None:
    """From nine tenths of a slot on, unless it was met again in it, within so much."""
    ours = Ours(lib)
    ours.ack(0, 50_000, 2)
    assert not ours.fades(0, SLOT_MS)
    ours.ack(SLOT_MS * 1000, 60_000, 2)
    for within_us, ms in ((9_999, SLOT_MS * 19 // 10), (9_999, SLOT_MS * 2 - 1)):
        assert ours.fades(within_us, ms)
    assert not ours.fades(9_999, SLOT_MS * 19 // 10 - 1)
    assert not ours.fades(10_000, SLOT_MS * 2 - 1)
    ours.ack(SLOT_MS * 1500, 55_000, 2)
    assert not ours.fades(5_000, SLOT_MS * 2 - 1)
