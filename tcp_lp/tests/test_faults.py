# SPDX-License-Identifier: GPL-2.0
"""The 21 faults of the kernel's own tcp_lp: a row each that its arithmetic fails and ours passes.

lp_intree.py restates that arithmetic; lp_host.py runs lp.h and owd.h. Faults 12, 16 and 18 are in what
the module does with the socket, not in arithmetic: test_intree.py runs both modules in the kernel for
them, and for the others that can be seen from outside.
Each test first shows the fault (the assertion about ``old``), then that ours is free of it.
"""

from __future__ import annotations

import ctypes
import random

import pytest

from tcp_lp.tests.lp_host import LEARNT, Ours, Path, library
from tcp_lp.tests.lp_intree import InTree

U32 = 0xFFFFFFFF


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return library(tmp_path_factory.mktemp("lp"))


def sawtooth(t: float) -> float:
    """A TCP flow's queue on 10 Mbit/s, 100 ms, 86 packets: 20 to 104 ms in 6 s, us."""
    return 20000 + 84000 * (t % 6) / 6 if t > 1 else 0


def crossing(t: float) -> float:
    """A queue that crosses the threshold (15 of 100 ms) every 5 s, for 2.5 s, us."""
    return 90000 if t > 1 and t % 5 > 2.5 else 0


def run_old(path: Path, seconds: float) -> InTree:
    old = InTree()
    for ack in path.acks(seconds):
        old.ack(ack.now_ms, ack.tsval, ack.tsecr)
    return old


def run_ours(lib: ctypes.CDLL, path: Path, seconds: float, learnt: tuple[int, int] | None = LEARNT) -> Ours:
    ours = Ours(lib, learnt)
    for ack in path.acks(seconds):
        ours.ack(ack)
    return ours


def test_01_the_clock_offset_is_no_delay(lib: ctypes.CDLL) -> None:
    """Two connections over one path, offsets apart: same indications, not a matter of luck."""
    offsets = [random.Random(seed).getrandbits(32) for seed in range(20)]
    old = {run_old(Path(sawtooth, offset=offset), 30).indications for offset in offsets}
    assert len(old) > 1
    ours = {run_ours(lib, Path(sawtooth, offset=offset), 30).indications for offset in offsets}
    assert len(ours) == 1 and ours.pop() > 10


def test_02_offsets_above_2_29_do_not_switch_the_signal_off(lib: ctypes.CDLL) -> None:
    path = Path(crossing, offset=0xA0000000)
    assert run_old(path, 60).indications == 0
    assert run_ours(lib, path, 60).indications >= 12


def test_03_the_threshold_stays_reachable_after_an_indication(lib: ctypes.CDLL) -> None:
    """Regular ACKs on whole milliseconds keep its rate estimate at 1000: fault 7 is out of the way."""
    path = Path(crossing, offset=50_000_000, gap_us=10000)
    old = run_old(path, 60)
    assert old.indications <= 3  # in 12 crossings
    assert old.threshold() - old.least > 3_600_000  # ms: an hour above
    ours = run_ours(lib, path, 60)
    assert ours.indications >= 12
    assert ours.margin == 15000


def test_04_the_margin_does_not_overflow(lib: ctypes.CDLL) -> None:
    old = InTree()
    old.least, old.most = 0, 300_000_000
    assert old.threshold() != 300_000_000 * 15 // 100
    assert Ours(lib, (1, 300_000_001)).margin == 300_000_000 * 15 // 100


def test_05_the_first_sample_is_no_indication(lib: ctypes.CDLL) -> None:
    path = Path(offset=1000)  # nothing queues
    old = InTree()
    hits = [old.ack(ack.now_ms, ack.tsval, ack.tsecr) for ack in path.acks(0.2)]
    assert min(hits) < 10
    assert run_ours(lib, path, 0.2, learnt=None).cwnd_is(10)


def test_06_the_peers_rate_is_not_taken_from_one_ack(lib: ctypes.CDLL) -> None:
    """Slow start: packets leave at twice the rate at which they arrive."""

    def doubling(t: float) -> float:
        return t * 1e6 if t < 0.05 else 50000

    old, ours = InTree(), Ours(lib, None)
    path = Path(doubling, gap_us=2003, offset=77)
    rates = []
    for ack in path.acks(10):
        old.ack(ack.now_ms, ack.tsval, ack.tsecr)
        ours.ack(ack)
        rates.append(old.hz)
        assert ours.tick in (0, 1000)
    assert any(rate and abs(rate - 1000) > 125 for rate in rates)
    assert ours.tick == 1000


def test_07_delay_does_not_jump_between_two_scales(lib: ctypes.CDLL) -> None:
    rng = random.Random(7)
    path = Path(lambda t: rng.choice((0, 700)), gap_us=7301, offset=1234567)
    old, ours, seen, mine = InTree(), Ours(lib), set(), set()
    for ack in path.acks(30):
        old.ack(ack.now_ms, ack.tsval, ack.tsecr)
        ours.ack(ack)
        seen.add(old.owd >> 24)
        mine.add(ours.delay)
    assert len(seen) > 1
    assert max(mine) - min(mine) <= 2000


def test_08_a_reordered_ack_poisons_nothing(lib: ctypes.CDLL) -> None:
    old, ours = InTree(), Ours(lib, None)
    for number, ack in enumerate(Path(offset=5_000_000).acks(10)):
        tsval = ack.tsval - 30 if number == 300 else ack.tsval
        old.ack(ack.now_ms, tsval, ack.tsecr)
        ack.tsval = tsval
        ours.ack(ack)
        if number == 300:
            assert old.hz > 10000
        if number == 400:  # a second later
            assert old.hz > 2000
    assert ours.tick == 1000
    assert ours.delay <= 51000


def test_09_the_reference_does_not_move_with_every_ack(lib: ctypes.CDLL) -> None:
    """Jitter of one tick between ACKs: the estimate wanders, a baseline of seconds does not."""
    rng = random.Random(9)
    path = Path(lambda t: rng.choice((0, 900)), gap_us=3001, offset=99)
    old, ours, rates, ticks = InTree(), Ours(lib, None), set(), set()
    for ack in path.acks(20):
        old.ack(ack.now_ms, ack.tsval, ack.tsecr)
        ours.ack(ack)
        if ack.now_us > (path.start_ms + 5000) * 1000:
            rates.add(old.hz)
            ticks.add(ours.tick)
    assert len(rates) > 3
    assert ticks == {1000}


def test_10_nothing_is_acted_upon_before_the_first_loss(lib: ctypes.CDLL) -> None:
    path = Path(lambda t: t * 40000, offset=1000)  # slow start fills the queue
    assert run_old(path, 2).indications > 0
    assert run_ours(lib, path, 2, learnt=None).indications == 0


class Told(InTree):
    """A flow that is told the delay instead of computing it."""

    told = 0

    def _owd(self, tsval: int, tsecr: int) -> int:
        self.valid_owd = True
        return self.told


def test_11_the_largest_delay_is_forgotten_on_evidence(lib: ctypes.CDLL) -> None:
    """A stall of 5 s once; then losses at 100 ms of queue as ever."""
    old = Told()
    old.most = old.reserve = old.least = 1
    old.valid_hz = True
    for owd in (50, 5050, 5050, *[150] * 1000):
        old.hz, old.remote_ref, old.local_ref = 1000, 0, 0
        old.told = owd
        old._sample(0, 0)
    assert old.most >= 5050
    ours = Ours(lib)
    lib.flow_smooth(ours.flow, 5050000)
    lib.flow_loss(ours.flow)
    assert ours.full <= 200000  # half of the range more, not 5 s
    for _ in range(100):
        lib.flow_smooth(ours.flow, 150000)
    for _ in range(100):  # an eighth of the way each
        lib.flow_loss(ours.flow)
    assert ours.full == pytest.approx(150000, abs=20)  # what two shifts by 3 cut off


def test_13_one_reaction_a_round_trip(lib: ctypes.CDLL) -> None:
    """A clock that makes its margin 0: each ACK is an indication, 1 packet within a round trip."""
    old = InTree(cwnd=64)
    for now in range(100, 120):
        old.valid_hz = old.valid_owd = True
        old.sowd, old.least, old.most = 5 << 3, 5, 5
        old.ack(now, 0, now - 100, rtt_us=0)
    assert old.cwnd == 1
    ours, least = Ours(lib), 10
    for ack in Path(lambda t: 90000).acks(0.42):  # a round trip is 140 ms, 14 packets: three of them
        least = min(least, ours.ack(ack, in_flight=14))
    assert ours.indications == 1 and least == 5


def test_14_the_inference_phase_is_latched(lib: ctypes.CDLL) -> None:
    old, ends = InTree(), []
    old.last_drop = 100_000
    for now, rtt in ((100_060, 50), (100_200, 150), (100_210, 40)):
        old.ack(now, 0, now - rtt, rtt_us=0)
        ends.append(old.last_drop + old.inference)
    assert len(set(ends)) == 3
    ours, ours_ends = Ours(lib), set()
    for ack in Path(lambda t: 90000 if t < 0.3 else 0).acks(0.6):
        ours.ack(ack, in_flight=14)
        if ours.indications:
            ours_ends.add(ours.itt_end)
    assert len(ours_ends) == 1


def test_15_the_ack_of_a_reaction_does_not_grow_the_window(lib: ctypes.CDLL) -> None:
    old = InTree()
    old.valid_hz = old.valid_owd = True
    old.sowd, old.least, old.most = 100 << 3, 50, 60
    assert old.ack(5000, 0, 4900, rtt_us=0) == 5 and old.may_grow()
    ours = Ours(lib)
    for ack in Path(lambda t: 90000).acks(0.5):
        if ours.ack(ack, in_flight=14) < 10:
            break
    assert ours.indications == 1
    assert not ours.grows


def test_17_without_timestamps_round_trip_time_is_the_signal(lib: ctypes.CDLL) -> None:
    path = Path(crossing)
    old, ours = InTree(), Ours(lib)
    for ack in path.acks(60):
        old.ack(ack.now_ms, 0, 0)  # rx_opt of a connection without the option
        ours.ack(ack, timestamps=False)
    assert old.indications == 0
    assert ours.indications >= 12


def test_19_a_minimum_learnt_on_a_standing_queue_is_corrected(lib: ctypes.CDLL) -> None:
    """Latecomer: the queue holds 60 ms at its start, then drains, then fills again."""

    def queue(t: float) -> float:
        return 60000 + 10000 * (t % 3) if t < 5 or t > 8 else 0

    ours = run_ours(lib, Path(queue), 20, learnt=(110000, 160000))
    assert ours.base == 50000
    assert ours.indications > 0
    # its own: after an indication the congested delay is the new minimum
    old = run_old(Path(lambda t: 60000 if t > 8 else 0, offset=1000, gap_us=10000), 20)
    assert old.least - (1000 + 25) > 40  # ms above the empty path


@pytest.mark.parametrize("hold_ms", [40, 200])
def test_20_a_delayed_ack_is_no_queue(lib: ctypes.CDLL, hold_ms: int) -> None:
    """One packet at a time, held by the receiver: no indication on an empty path."""
    path = Path(hold_us=hold_ms * 1000, gap_us=400000, offset=1000)
    ours, free = Ours(lib), Path(gap_us=400000)
    first = next(iter(free.acks(1)))
    ours.ack(first)
    for ack in path.acks(60):
        ours.ack(ack, lone=True)
    assert ours.indications == 0
    old, delays = InTree(), []
    for number, (held, prompt) in enumerate(zip(path.acks(8), free.acks(8))):
        ack = prompt if number % 2 else held  # as with an odd number of packets
        old.ack(ack.now_ms, ack.tsval + (1000 if number % 2 else 0), ack.tsecr)
        delays.append(ack.tsval + (1000 if number % 2 else 0) - ack.tsecr)
    assert max(delays) - min(delays) >= hold_ms  # the hold is in what it measures


def test_21_microsecond_peers_are_measured_in_microseconds(lib: ctypes.CDLL) -> None:
    """TCP_USEC_TS at the peer: its arithmetic multiplies by 1000 / 1000000 = 0."""
    path = Path(crossing, tick_us=1, offset=42)
    old, ours = InTree(), Ours(lib, None)
    for ack in path.acks(30):
        old.ack(ack.now_ms, ack.tsval, ack.tsecr)
        ours.ack(ack)
    assert old.owd == (-ack.tsecr) & U32  # minus our own clock
    assert ours.tick == 1 and ours.source == 1
