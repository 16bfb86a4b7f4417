# SPDX-License-Identifier: GPL-2.0
"""owd.h and lp.h against double precision, over whole traces and ranges."""

from __future__ import annotations

import ctypes
import math
import random
from collections.abc import Callable

import pytest

from tcp_lp.tests.lp_host import Ours, Path, library

KNOWN_TICKS_US = (1, 1000, 2000, 4000, 10000, 100000, 500000, 1000000)


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return library(tmp_path_factory.mktemp("lp"))


def burst(start: float, length: float, height_us: float) -> Callable[[float], float]:
    """A queue that fills over ``length`` seconds and drains as slowly, else empty."""

    def queue(t: float) -> float:
        x = (t - start) / length
        return height_us * max(0.0, 1 - abs(x - 1)) if x > 0 else 0.0

    return queue


@pytest.mark.parametrize("gamma_samples", [5000])
def test_smoothed_delay_stays_within_1_us_of_the_average(lib: ctypes.CDLL, gamma_samples: int) -> None:
    rng, ours = random.Random(1), Ours(lib)
    oracle: float | None = None
    for _ in range(gamma_samples):
        delay = rng.randint(1, 2_000_000)
        oracle = delay if oracle is None else oracle * 7 / 8 + delay / 8
        lib.flow_smooth(ours.flow, delay)
        # sd_q >> 3 drops less than 1 us a sample, and each later sample an eighth of what is left
        assert abs(ours.sd_q / 8 - oracle) <= 1.0


def test_margin_is_delta_of_the_range(lib: ctypes.CDLL) -> None:
    rng = random.Random(2)
    for _ in range(3000):
        dmin, dmax, delta = rng.randint(1, 10**6), rng.randint(0, 2**32 - 1), rng.randint(10, 900)
        span = max(dmax - dmin, 0)
        expect = max(span * delta / 1000, 1000)
        assert abs(Ours(lib, (dmin, max(dmax, 1)), delta).margin - expect) < 1


def test_margin_is_never_below_the_noise(lib: ctypes.CDLL) -> None:
    """A range of a few milliseconds: its part may be less than what delays move by on an empty path."""
    rng = random.Random(3)
    margins = []
    for _ in range(500):
        dmin, span, delta = rng.randint(1, 10**6), int(10 ** rng.uniform(0, 5)), rng.randint(10, 900)
        margins.append(Ours(lib, (dmin, dmin + span), delta).margin)
        assert abs(margins[-1] - max(span * delta / 1000, 1000)) < 1
    assert margins.count(1000) > 100 and max(margins) > 1000


def test_by_the_papers_rule_the_margin_is_delta_of_the_range_alone(lib: ctypes.CDLL) -> None:
    """Equation (2) knows no noise."""
    for span in (0, 999, 5000, 130000):
        assert Ours(lib, (50000, 50000 + span), 10, paper=True).margin == span * 10 // 1000
    assert Ours(lib, (50000, 55000), 10).margin == 1000


def test_an_inference_phase_ends_only_if_one_began(lib: ctypes.CDLL) -> None:
    ours = Ours(lib)
    assert not lib.flow_over(ours.flow, 5000), "no indication came"
    lib.flow_react(ours.flow, 100, 100000, 5000)
    end_ms = ours.itt_end
    assert end_ms > 5000 and not lib.flow_over(ours.flow, end_ms - 1)
    assert lib.flow_over(ours.flow, end_ms) and not lib.flow_over(ours.flow, end_ms + 1)


def test_the_second_indication_of_a_phase_leaves_one_packet(lib: ctypes.CDLL) -> None:
    """Section 3.2.2 of the paper; a loss at the floor does so at once."""
    for event in (lib.event_delay(), lib.event_ece()):
        ours = Ours(lib)
        lib.flow_smooth(ours.flow, 100000)
        assert lib.flow_react_to(ours.flow, event, 40, 100000, 0) == 20
        assert lib.flow_react_to(ours.flow, event, 20, 100000, 100) == 1
    assert lib.flow_react_to(Ours(lib).flow, lib.event_loss(), 40, 100000, 0) == 1


def test_half_the_queue_after_half_the_window_is_our_own(lib: ctypes.CDLL) -> None:
    """The delay fell to half of what it was at the cut: nobody else is there. The paper's rule does not ask."""
    for paper, expected in ((False, 10), (True, 1)):
        ours = Ours(lib, paper=paper)
        lib.flow_smooth(ours.flow, 100000)
        lib.flow_react_to(ours.flow, lib.event_delay(), 40, 100000, 0)
        for _ in range(60):
            lib.flow_smooth(ours.flow, 50000)
        assert lib.flow_react_to(ours.flow, lib.event_delay(), 20, 100000, 100) == expected


def test_rests_double_up_to_eight_round_trips(lib: ctypes.CDLL) -> None:
    ours, event = Ours(lib), lib.event_delay()
    lib.flow_smooth(ours.flow, 100000)
    lib.flow_react_to(ours.flow, event, 40, 100000, 0)
    rests = []
    for _ in range(6):
        assert lib.flow_react_to(ours.flow, event, 2, 100000, 1000) == 1
        rests.append(lib.flow_rest(ours.flow))
        # three round trips of inference, and the rest
        assert ours.itt_end == 1000 + 100 * (3 + rests[-1])
    assert rests == [1, 2, 4, 8, 8, 8]
    lib.flow_react_to(ours.flow, event, 5, 100000, 1000)
    assert lib.flow_rest(ours.flow) == 1, "a window above the crowd's begins anew"


def test_windows_of_the_ns3_scenarios(lib: ctypes.CDLL) -> None:
    """ns-3's tcp-lp-test: a window of two packets is halved at the first delay above the threshold, and is one after
    another within the inference phase; the same with a window that shows which of the two it was.
    """
    ours = Ours(lib, (1000, 10000), 150)
    assert ours.margin == 1350, "0.15 of the range of 1 ms to 10 ms"
    lib.flow_smooth(ours.flow, 10000)
    assert lib.flow_react_to(ours.flow, lib.event_delay(), 2, 100_000, 0) == 1
    assert lib.flow_react_to(ours.flow, lib.event_delay(), 1, 100_000, 11) == 1
    ours = Ours(lib, (1000, 10000), 150)
    lib.flow_smooth(ours.flow, 10000)
    assert lib.flow_react_to(ours.flow, lib.event_delay(), 20, 100_000, 0) == 10
    assert lib.flow_react_to(ours.flow, lib.event_delay(), 10, 100_000, 11) == 1


def test_a_mark_across_the_wrap_of_sequence_numbers(lib: ctypes.CDLL) -> None:
    for snd_nxt in (1000, 2**32 - 1, 2**32 - 5, 2**31, 0):
        ours = Ours(lib)
        lib.flow_mark(ours.flow, snd_nxt)
        for snd_una, stale in ((-20, True), (0, True), (1, False)):
            assert lib.flow_stale(ours.flow, (snd_nxt + snd_una) % 2**32) == stale, (snd_nxt, snd_una)


def test_a_mark_of_another_half_of_the_sequence_space_is_not_compared(lib: ctypes.CDLL) -> None:
    """Any number of bytes after the last indication the next one still takes a round trip, and comes."""
    step = 1 << 24
    for gib in (1, 2, 3, 4, 6):
        ours = Ours(lib)
        now_us, seq = 10**6, 1000
        for rtt_us in (50_000, 50_000, 90_000):  # above the threshold, for less than a round trip
            now_us, seq = now_us + 10_000, seq + 1000
            ack(lib, ours, now_us, rtt_us, seq, 10_000)
        for _ in range(gib * 64):
            now_us, seq = now_us + 10_000, seq + step
            ack(lib, ours, now_us, 50_000, seq, step)
        assert ours.indications == 0
        for number in range(12):  # the first sets the mark, the eleventh after it is of data sent later
            assert ours.indications == 0, (gib, number)
            now_us, seq = now_us + 10_000, seq + 1000
            ack(lib, ours, now_us, 90_000, seq, 10_000)
        assert ours.indications == 1, gib


def ack(lib: ctypes.CDLL, ours: Ours, now_us: int, rtt_us: int, seq: int, flight: int) -> None:
    """Without timestamps, of two packets."""
    wrapped, ahead = seq & 0xFFFFFFFF, (seq + flight) & 0xFFFFFFFF
    lib.flow_ack(ours.flow, now_us, 0, False, rtt_us, 50_000, 2, False, wrapped, ahead)


@pytest.mark.parametrize("idle_s", [1, 2160, 2400, 4260, 4800, *(86_400 * days for days in (1, 24, 26, 40))])
@pytest.mark.parametrize("start_ms", [0, 5000, 2**31 - 1, 2**32 - 100])
def test_a_phase_is_over_after_any_pause(lib: ctypes.CDLL, start_ms: int, idle_s: int) -> None:
    """The clock of 32 bits in ms wraps in 49 days."""
    ours = Ours(lib)
    lib.flow_react(ours.flow, 100, 100_000, start_ms)
    assert not lib.flow_over(ours.flow, (start_ms + 299) & 0xFFFFFFFF)
    assert lib.flow_over(ours.flow, (start_ms + 300 + idle_s * 1000) & 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("srtt_us", "end_ms"), [(10_000_000, 320_000), (60_000_000, 1_920_000), (2**32 - 1, 1_920_000)]
)
def test_the_longest_phase_of_the_longest_round_trip(lib: ctypes.CDLL, srtt_us: int, end_ms: int) -> None:
    """At the floor with the longest rest, and few packets in the range: 8 times 3 round trips and 8."""
    ours = Ours(lib)
    lib.flow_held(ours.flow, 60_000)
    lib.flow_smooth(ours.flow, 100_000)
    for _ in range(6):
        lib.flow_react_to(ours.flow, lib.event_ece(), 2, srtt_us, 0)
    assert lib.flow_rest(ours.flow) == 8 and ours.itt_end == end_ms
    assert not lib.flow_over(ours.flow, end_ms - 1)
    assert lib.flow_over(ours.flow, end_ms)


def test_a_loss_of_one_of_many_is_an_indication(lib: ctypes.CDLL) -> None:
    """A window of up to four packets, or the floor; by the paper's rule no loss is one."""
    for paper in (False, True):
        for pkts in range(1, 9):
            assert lib.flow_repaired(Ours(lib, paper=paper).flow, pkts) == (pkts <= 4 and not paper), pkts
    ours = Ours(lib)
    lib.flow_react_to(ours.flow, lib.event_loss(), 40, 100_000, 0)
    assert lib.flow_repaired(ours.flow, 100)


def test_no_growth_above_the_threshold_or_while_it_infers(lib: ctypes.CDLL) -> None:
    ours = Ours(lib)
    assert lib.flow_grows(ours.flow)
    lib.flow_above(ours.flow, True)
    assert not lib.flow_grows(ours.flow)
    lib.flow_above(ours.flow, False)
    lib.flow_react_to(ours.flow, lib.event_delay(), 40, 100000, 0)
    assert not lib.flow_grows(ours.flow)


def test_snap_agrees_with_nearest_known_tick(lib: ctypes.CDLL) -> None:
    rng = random.Random(3)
    for _ in range(5000):
        span, ticks = rng.randint(2_000_000, 64_000_000), rng.randint(1, 64_000_000)
        tick = span / ticks
        near = [known for known in KNOWN_TICKS_US if abs(tick - known) <= known / 8]
        edge = any(abs(abs(tick - known) - known / 8) <= known / 500 for known in KNOWN_TICKS_US)
        assert edge or lib.snap(span, ticks) == (near[0] if near else 0), (span, ticks)


@pytest.mark.parametrize("tick_us", [1, 1000, 2000, 4000, 10000])
@pytest.mark.parametrize("offset", [0, 5, 0x1FFFFFFF, 0x20000000, 0x80000000, 0xFFFFFFFF - 15000])
@pytest.mark.parametrize("ppm", [0, 50, -50])
def test_delay_is_forward_queue_whatever_the_clock(lib: ctypes.CDLL, tick_us: int, offset: int, ppm: int) -> None:
    """Queues of 0 to 80 ms both ways, apart and together, after the tick is learnt."""
    path = Path(
        forward=lambda t: burst(12, 3, 80000)(t) + burst(27, 3, 80000)(t),
        reverse=lambda t: burst(20, 3, 80000)(t) + burst(28, 3, 60000)(t),
        tick_us=tick_us,
        offset=offset,
        ppm=ppm,
    )
    ours = Ours(lib, None)
    skew_us = abs(ppm) * 10  # 50 ppm between two empty moments less than 10 s apart
    for ack in path.acks(40):
        ours.ack(ack)
        if ack.now_us < (path.start_ms + 5000) * 1000:
            continue
        assert ours.source == 1
        error = ours.delay - path.base_us - ack.forward_us
        assert -skew_us - 2 <= error <= 2 * tick_us + skew_us + 2


@pytest.mark.parametrize("tick_us", [100000, 500000, 1000000])
def test_coarse_peers_and_missing_timestamps_fall_back_to_round_trip(lib: ctypes.CDLL, tick_us: int) -> None:
    path = Path(reverse=burst(12, 3, 80000), tick_us=tick_us)
    coarse, without = Ours(lib, None), Ours(lib, None)
    for ack in path.acks(40):
        coarse.ack(ack)
        without.ack(ack, timestamps=False)
        assert coarse.delay == without.delay == ack.rtt_us
        assert coarse.source == without.source == 0
    assert coarse.tick == tick_us


@pytest.mark.parametrize("reverse_ms", [0, 100, 240])
def test_tick_is_learnt_under_reverse_queues_that_move(lib: ctypes.CDLL, reverse_ms: int) -> None:
    """A queue that grows all through the first baseline costs at most a second, longer one."""
    path = Path(reverse=lambda t: min(t / 2, 1) * reverse_ms * 1000)
    ours = Ours(lib, None)
    for ack in path.acks(6):
        ours.ack(ack)
    assert ours.tick == 1000


@pytest.mark.parametrize("ppm", [200, -200])
def test_skew_of_200_ppm_hides_no_more_than_the_smallest_queue(lib: ctypes.CDLL, ppm: int) -> None:
    """Ten minutes of a sawtooth of 10 to 60 ms: base is off by 10 ms at most, and right when idle."""
    path = Path(forward=lambda t: 10000 + 50000 * (t % 5) / 5 if 10 < t < 610 else 0, ppm=ppm, gap_us=50021)
    ours = Ours(lib, None)
    worst = 0
    for ack in path.acks(640):
        ours.ack(ack)
        if ack.now_us > (path.start_ms + 5000) * 1000:
            worst = max(worst, abs(ours.delay - path.base_us - ack.forward_us))
    assert worst <= 10000 + 3000
    assert abs(ours.delay - path.base_us) <= 2000


@pytest.mark.parametrize("tick_us", [1, 1000, 4000, 10000])
@pytest.mark.parametrize("ppm", [0, -200])
@pytest.mark.parametrize("least_ms", [60, 100])
def test_a_reverse_path_that_is_never_empty_is_no_queue(
    lib: ctypes.CDLL, tick_us: int, ppm: int, least_ms: int
) -> None:
    """Ten minutes of reverse sawtooth that the first round trips were before; nothing in the forward queue."""
    path = Path(
        reverse=lambda t: min(30 + 100 * t, least_ms + 40 * (t % 3) / 3) * 1000, tick_us=tick_us, ppm=ppm, gap_us=50021
    )
    ours = Ours(lib, None)
    for ack in path.acks(600):
        ours.ack(ack)
        if ack.now_us > (path.start_ms + 20000) * 1000:
            # two ticks of rounding, and what a clock of 200 ppm makes of the 16 s in which a tick is learnt
            assert ours.delay <= ours.base + 2 * tick_us + 4000, ack.now_us


def overtaken_for(length: float) -> Callable[[float], float]:
    """A queue of 50 ms that is 10 ms for so many seconds from 30 s on."""
    return lambda t: 10000 if 30 <= t < 30 + length else 50000


def test_one_ack_that_overtakes_the_reverse_queue_is_nobodys_least(lib: ctypes.CDLL) -> None:
    """A single round trip 40 ms below all others sets no minimum; three in a row are the path."""
    for count in (1, 2, 3):
        path = Path(reverse=overtaken_for(0.05 * count), gap_us=50000)
        ours, least = Ours(lib, None), 0
        for ack in path.acks(40):
            ours.ack(ack)
            if ack.now_us < (path.start_ms + 29000) * 1000:
                least = ours.base
        assert (ours.base < least - 30000) == (count == 3), count
        assert ours.delay <= ours.base + 2000


def test_one_hour_of_microsecond_ticks_wraps_and_goes_on(lib: ctypes.CDLL) -> None:
    """A 1 us TSval wraps after 71.6 min; idle for half an hour, then reverse queue again."""
    path = Path(reverse=lambda t: 30000 if t % 60 > 50 else 0, tick_us=1, gap_us=997003)
    ours = Ours(lib, None)
    for ack in path.acks(3 * 3600):
        minute = ack.now_us / 60e6 - path.start_ms / 60e3
        if 60 < minute < 90:
            continue
        ours.ack(ack)
        if minute > 1 and not 90 <= minute < 91:
            assert ours.delay <= path.base_us + 5, minute


def test_window_never_leaves_its_range(lib: ctypes.CDLL) -> None:
    """Random delays, losses and gaps: 1 <= window, margin within the range, no trap (UBSan)."""
    rng, ours = random.Random(4), Ours(lib, None)
    now, seq = 10**6, 0
    for _ in range(200_000):
        now += rng.choice((100, 5000, 100_000, 30_000_000 if rng.random() < 0.01 else 1))
        seq += rng.randint(0, 3)
        rtt = rng.choice((1, 50_000, 60_000, 100_000, 150_000, 4_000_000_000 if rng.random() < 0.001 else 70_000))
        cwnd = lib.flow_ack(
            ours.flow,
            now,
            rng.getrandbits(32) if rng.random() < 0.3 else now // 1000,
            rng.random() < 0.9,
            rtt,
            min(rtt, 50_000),
            rng.randint(0, 64),
            rng.random() < 0.2,
            seq & 0xFFFFFFFF,
            (seq + 10) & 0xFFFFFFFF,
        )
        if rng.random() < 0.001:
            lib.flow_loss(ours.flow)
        assert 1 <= cwnd <= 10
        assert math.isfinite(ours.margin)
