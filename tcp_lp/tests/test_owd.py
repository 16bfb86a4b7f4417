# SPDX-License-Identifier: GPL-2.0
"""owd.h over hours, with clocks that drift, stop and are set: what base, the reference and the callers' delays become.

test_arithmetic.py compares the delay of each ACK with the queue of a simulated path, over some minutes.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from testbed.support import hostc

pytestmark = pytest.mark.host

WRAPPER = """
#include <lbe/path_delay.h>

static struct lbe_owd o;
static struct lbe_path_delay p;
static s32 before_us;

void begin(u32 now_ms)
{
	lbe_owd_init(&o);
	lbe_delay_init(&p, now_ms);
}

u32 ack(u64 now_us, u32 tsval, u32 rtt_us, u32 min_rtt_us)
{
	struct lbe_owd_ack a = {
		.now_us = now_us, .tsval = tsval, .rtt_us = rtt_us, .min_rtt_us = min_rtt_us, .has_tsval = true,
	};

	before_us = o.base_us;
	return lbe_owd_update(&o, &a);
}

bool by_timestamps(void) { return lbe_owd_source(&o) == LBE_OWD_SOURCE_TS; }
bool stray(void) { return lbe_owd_stray(&o); }
u32 tick_us(void) { return lbe_owd_tick_us(&o); }
s32 base_us(void) { return o.base_us; }
u32 rise_us(void) { return lbe_owd_rise_us(&o, before_us); }

/* The same of a path; @lost_us: the delay at which a loss was repaired, 0 = none. Return: the queue, or all ones. */
u32 path_ack(u64 now_us, u32 tsval, u32 rtt_us, u32 min_rtt_us)
{
	struct lbe_delay_ack a = { .pkts = 2, .owd = {
		.now_us = now_us, .tsval = tsval, .rtt_us = rtt_us, .min_rtt_us = min_rtt_us, .has_tsval = true,
	} };
	struct lbe_delay_sample sample;

	return lbe_delay_ack(&p, &a, &sample) ? sample.queue_us : U32_MAX;
}

void path_lost(u32 delay_us)
{
	lbe_delay_lost(&p, delay_us);
	lbe_delay_repaired(&p);
}

u32 path_base(void) { return lbe_delay_base_us(&p); }
u32 path_full(void) { return p.full_us; }
s32 path_owd_base(void) { return p.owd.base_us; }
"""
RTT_US = 100_000
SKEW_PPM = 300
NOTHING = 2**32 - 1


class Peer:
    """Two hosts with their clocks. The peer's goes slow by ``slow_ppm``, and counts in ticks of ``tick_us``."""

    def __init__(self, library: ctypes.CDLL, tick_us: int = 1000, slow_ppm: int = 0, path: bool = False) -> None:
        self.c = library
        self.now_us, self.peer_us = 50_000_000, 7_000_000
        self.tick_us, self.slow_ppm = tick_us, slow_ppm
        self.call = library.path_ack if path else library.ack
        library.begin(self.now_us // 1000)
        for _ in range(25):  # the tick is learnt in the first 2 s
            self.after(0.1)
            self.ack()

    def after(self, seconds: float) -> None:
        step_us = round(seconds * 10**6)
        self.now_us += step_us
        self.peer_us += step_us - step_us * self.slow_ppm // 10**6

    def ack(self, forward_us: int = 0, reverse_us: int = 0, wrong: int = 0) -> int:
        """An ACK now. The peer stamped it before it waited on the way back."""
        tsval = ((self.peer_us - reverse_us) // self.tick_us + wrong) % 2**32
        return int(self.call(self.now_us, tsval, RTT_US + forward_us + reverse_us, RTT_US))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    c = hostc.load(WRAPPER, tmp_path_factory.mktemp("owd"), Path(), "owd")
    for call in (c.ack, c.path_ack):
        call.argtypes = [ctypes.c_uint64, *[ctypes.c_uint32] * 3]
        call.restype = ctypes.c_uint32
    c.by_timestamps.restype = c.stray.restype = ctypes.c_bool
    for name in ("tick_us", "rise_us", "path_base", "path_full"):
        getattr(c, name).restype = ctypes.c_uint32
    return c


@pytest.mark.parametrize("slow_ppm", [100, 1000])
def test_base_rises_no_faster_than_clocks_differ(library: ctypes.CDLL, slow_ppm: int) -> None:
    """However many samples ask for more. With clocks that differ by less it follows them."""
    peer = Peer(library, tick_us=1, slow_ppm=slow_ppm)
    began_us, began = peer.now_us, library.base_us()
    for _ in range(300):
        peer.after(0.1)
        peer.ack()
        passed_us = peer.now_us - began_us
        assert library.base_us() - began <= passed_us * SKEW_PPM // 10**6 + 1
    follows = passed_us * min(slow_ppm, SKEW_PPM) // 10**6
    assert library.base_us() - began == pytest.approx(follows, abs=100)


def test_a_rise_of_base_raises_what_callers_keep(library: ctypes.CDLL) -> None:
    """The least delay and the full buffer's move along, so that no queue appears. An empty slot stays empty."""
    peer = Peer(library, tick_us=1, slow_ppm=200, path=True)
    peer.ack(forward_us=80_000)
    library.path_lost(RTT_US + 80_000)
    least, full, base = library.path_base(), library.path_full(), library.path_owd_base()
    assert (least, full) == (RTT_US, RTT_US + 80_000)
    for _ in range(100):
        peer.after(0.1)
        assert peer.ack() <= 1 + 200 * 0.1
    rose = library.path_owd_base() - base
    assert rose > 1500
    # the next sample of an empty path corrects the least delay, not the full one
    assert library.path_full() - full == rose and library.path_base() <= RTT_US + 25


def test_what_a_rise_is(library: ctypes.CDLL) -> None:
    peer = Peer(library, tick_us=1, slow_ppm=200)
    rises = 0
    for _ in range(50):
        base = library.base_us()
        peer.after(0.1)
        peer.ack()
        assert library.rise_us() == library.base_us() - base
        rises += library.rise_us() > 0
        peer.ack()  # at the same time: nothing more
        assert library.rise_us() == 0
    assert rises > 40


@pytest.mark.parametrize("wrong", [2**30, -(2**30)])
def test_a_wrong_timestamp_is_ignored_and_three_are_a_new_clock(library: ctypes.CDLL, wrong: int) -> None:
    peer = Peer(library)
    for count in (1, 2):
        for _ in range(count):
            peer.after(0.1)
            assert peer.ack(forward_us=5000, wrong=wrong) == RTT_US + 5000
            assert library.stray() and not library.by_timestamps()
        peer.after(0.1)
        assert peer.ack(reverse_us=30_000) <= RTT_US + 1000  # as before: the way back is no queue
        assert library.by_timestamps() and not library.stray()
    for _ in range(3):
        peer.after(0.1)
        peer.ack(wrong=wrong)
    for _ in range(3):
        peer.after(0.1)
        assert peer.ack(wrong=wrong) == RTT_US
    assert library.by_timestamps() and not library.stray()


@pytest.mark.parametrize("tick_us", [1, 1000])
def test_a_flow_of_an_hour_keeps_its_base(library: ctypes.CDLL, tick_us: int) -> None:
    """The reference moves along. Were it to stay, the measurement would begin again each 17 minutes, in any queue."""
    peer = Peer(library, tick_us)
    for second in range(3600):
        peer.after(1)
        busy = second % 100 > 10
        delay_us = peer.ack(reverse_us=30_000 if busy else 0)
        assert library.by_timestamps()
        assert RTT_US <= delay_us <= RTT_US + 2 * tick_us, second


@pytest.mark.parametrize("pause_min", [18, 36, 40, 60, 71, 143])
def test_a_pause_after_which_a_timestamp_is_ambiguous(library: ctypes.CDLL, pause_min: int) -> None:
    """A clock in us has wrapped: the measurement begins again, by round trips, and the sample may be a least delay."""
    peer = Peer(library, tick_us=1)
    peer.after(60 * pause_min)
    for _ in range(3):
        assert peer.ack(forward_us=4000) == RTT_US + 4000
        assert not library.stray()
        peer.after(0.1)
    assert library.tick_us() == 1
    peer.ack(forward_us=4000)
    assert library.by_timestamps()
