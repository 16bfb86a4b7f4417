# SPDX-License-Identifier: GPL-2.0
"""clock_back.h with owd.h, as the module calls them: delays of a flow whose peer's clock is set back."""

from __future__ import annotations

import ctypes

import pytest

from testbed.base.places import REPO
from testbed.support import hostc

pytestmark = pytest.mark.host

WRAPPER = """
#include <lbe/clock_back.h>

static struct lbe_owd o;
static u32 behind;

void begin(void)
{
	lbe_owd_init(&o);
	behind = 0;
}

/* Return: the delay, us; 0: none. */
u32 ack(u64 now_us, u32 tsval, u32 rtt_us, u32 min_rtt_us, bool has_tsval)
{
	struct lbe_owd_ack a = {
		.now_us = now_us, .tsval = tsval, .rtt_us = rtt_us, .min_rtt_us = min_rtt_us, .has_tsval = has_tsval,
	};

	behind = lbe_clock_back(&o, &a, behind);
	return behind ? 0 : lbe_owd_update(&o, &a);
}
"""
FORWARD_US, REVERSE_US = 20_000, 18_000
RTT_US = FORWARD_US + REVERSE_US


class Peer:
    """A path and the peer's clock, ahead of ours by ``ahead_us`` and slow by ``slow_ppm``, in ticks of ``tick_us``."""

    def __init__(self, library: ctypes.CDLL, tick_us: int = 1000, slow_ppm: int = 0, stamps: bool = True) -> None:
        self.ack, self.tick_us, self.slow_ppm, self.stamps = library.ack, tick_us, slow_ppm, stamps
        self.ahead_us, self.now_us, self.min_us = 3_000_000_000, 10_000_000, 2**32 - 1
        library.begin()

    def sample(self, forward_us: int = 0, reverse_us: int = 0, gap_us: int = 10_037) -> int:
        """The delay that the next ACK gives, with these queues; us."""
        self.now_us += gap_us
        sent_us = self.now_us - REVERSE_US - reverse_us
        clock_us = sent_us - sent_us * self.slow_ppm // 1_000_000 + self.ahead_us
        rtt_us = RTT_US + forward_us + reverse_us
        self.min_us = min(self.min_us, rtt_us)
        tsval = clock_us // self.tick_us % 2**32
        return int(self.ack(ctypes.c_uint64(self.now_us), tsval, rtt_us, self.min_us, self.stamps))

    def learn(self) -> None:
        """Long enough for the tick to be known."""
        for _ in range(2000):
            self.sample()
        assert self.sample() == RTT_US


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The two headers, for this machine."""
    return hostc.load(WRAPPER, tmp_path_factory.mktemp("clock_back"), REPO / "include")


@pytest.mark.parametrize("tick_us", [1, 1000, 4000, 10000])
@pytest.mark.parametrize("step_us", [40_000, 90_000, 3_000_000])
def test_no_delay_is_too_short_after_the_clock_was_set_back(library: ctypes.CDLL, tick_us: int, step_us: int) -> None:
    peer = Peer(library, tick_us)
    peer.learn()
    peer.ahead_us -= step_us
    delays = [peer.sample() for _ in range(5)]
    assert delays[:2] == [0, 0], "it is not known yet"
    assert all(RTT_US - 2 * tick_us - 2000 <= delay <= RTT_US for delay in delays[2:]), delays
    # the queues are told apart as before
    assert peer.sample(forward_us=30_000) - delays[-1] >= 30_000 - 2 * tick_us - 2000
    assert peer.sample(reverse_us=30_000) - delays[-1] <= 2 * tick_us + 2000


def test_a_step_beside_a_longer_queue_is_found_when_the_queue_is_short(library: ctypes.CDLL) -> None:
    peer = Peer(library)
    peer.learn()
    peer.ahead_us -= 40_000
    while_full = [peer.sample(forward_us=80_000) for _ in range(50)]
    assert all(delay >= RTT_US + 40_000 - 4000 for delay in while_full), "40 ms of the queue are still seen"
    for _ in range(3):
        peer.sample()
    assert all(RTT_US - 4000 <= peer.sample() <= RTT_US for _ in range(1000))


@pytest.mark.parametrize("slow_ppm", [-300, 0, 300])
def test_a_clock_that_is_not_set_loses_no_sample(library: ctypes.CDLL, slow_ppm: int) -> None:
    """An hour of drift, with queues that come and go either way."""
    peer = Peer(library, slow_ppm=slow_ppm)
    for _ in range(3000):
        peer.sample()
    delays = []
    for number in range(30_000):
        forward_us = (number * 7919) % 60_000 if number // 1000 % 2 else 0
        reverse_us = (number * 104_729) % 60_000 if number // 1500 % 2 else 0
        delays.append(peer.sample(forward_us, reverse_us, gap_us=120_000))
    # Where the paths are not empty for two minutes, a slow clock is 36 ms behind, as if it had been set.
    assert delays.count(0) <= (900 if slow_ppm > 0 else 0), delays.count(0)
    assert not any(delays[at : at + 3] == [0, 0, 0] for at in range(len(delays)))


def test_one_wrong_timestamp_moves_nothing(library: ctypes.CDLL) -> None:
    peer = Peer(library)
    peer.learn()
    for _ in range(100):
        peer.ahead_us -= 40_000
        peer.sample()
        peer.sample()
        peer.ahead_us += 40_000
        assert peer.sample() == RTT_US
        assert peer.sample() == RTT_US


@pytest.mark.parametrize(("tick_us", "stamps"), [(16_000, True), (1000, False)])
def test_without_a_fine_clock_every_sample_is_the_round_trip(library: ctypes.CDLL, tick_us: int, stamps: bool) -> None:
    peer = Peer(library, tick_us, stamps=stamps)
    for number in range(3000):
        peer.ahead_us -= 40_000 * (number == 2500)
        assert peer.sample() == RTT_US
