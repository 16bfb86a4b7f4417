# SPDX-License-Identifier: GPL-2.0
"""LEDBAT's arithmetic over its whole range, against double precision.

The oracle is RFC 6817 section 2.4.2 and the LEDBAT++ draft's sections 4.2 and 4.3, written
down once more here, without integers.
"""

from __future__ import annotations

import ctypes
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent
ONE_Q16 = 65536
ONE_Q32 = 2.0**32
DELAY_MAX_US = 1 << 26
WINDOW_MAX = 1 << 20

WRAPPER = """
#include <lbe/ledbat_law.h>

s64 rate(u32 cwnd, u32 part, u32 q, u32 t, u32 rtt, u32 gain, u32 decrease)
{
	struct ledbat_window w = { cwnd, part };

	return ledbat_rate_q32(&w, q, t, rtt, gain, decrease);
}

s64 pp_rate(u32 cwnd, u32 part, u32 q, u32 t, u32 divisor, u32 constant)
{
	struct ledbat_window w = { cwnd, part };

	return ledbatpp_rate_q32(&w, q, t, divisor, constant);
}

s64 per_ack(s64 rate_q32, u32 acked, u32 cwnd, u32 part)
{
	struct ledbat_window w = { cwnd, part };

	return ledbat_per_ack_q32(rate_q32, acked, &w);
}

u64 add(u32 cwnd, u32 part, s64 delta, u32 floor_pkts)
{
	struct ledbat_window w = { cwnd, part };

	ledbat_window_add(&w, delta, floor_pkts);
	return (u64)w.cwnd << 32 | w.part_q32;
}

s64 reverse(u32 cwnd, s32 change, u32 rtt, u32 acked)
{
	struct ledbat_window w = { cwnd, 0 };

	return ledbat_reverse_q32(&w, change, rtt, acked);
}

u32 divisor(u32 t, u32 base) { return ledbatpp_divisor(t, base); }

u32 queue(u32 delay, u32 base) { return ledbat_queue_us(delay, base); }

u32 loss(u32 cwnd, u32 floor_pkts) { return ledbat_loss_pkts(cwnd, floor_pkts); }

u32 rest(u32 r, u32 less, u32 empty) { return ledbat_rest_rtts(r, less, empty, 16); }

u32 leaves(u32 q, u32 t) { return ledbat_leaves_slow_start(q, t); }

u32 aim(u32 target, u32 range, u32 noise) { return ledbat_aim_us(target, range, noise); }

u32 exit_pkts(u32 cwnd, u32 sent, u32 base, u32 q, u32 t)
{
	return ledbat_exit_pkts(cwnd, sent, base, q, t, 2);
}

u32 floor_of(u64 capacity, u32 share, u32 flows, u32 rtt, u32 packet)
{ return ledbat_floor_pkts(2, WINDOW, capacity, share, flows, rtt, packet); }
""".replace("WINDOW", "LEDBAT_WINDOW_MAX_PKTS")


@pytest.fixture(scope="module")
def law(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = hostc.load(WRAPPER, tmp_path_factory.mktemp("ledbat"), FOLDER, "ledbat_law")
    u32, s64, u64 = ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64
    for name, result, arguments in (
        ("rate", s64, [u32] * 7),
        ("pp_rate", s64, [u32] * 6),
        ("per_ack", s64, [s64, u32, u32, u32]),
        ("add", u64, [u32, u32, s64, u32]),
        ("reverse", s64, [u32, ctypes.c_int32, u32, u32]),
        ("divisor", u32, [u32] * 2),
        ("exit_pkts", u32, [u32] * 5),
        ("aim", u32, [u32] * 3),
        ("queue", u32, [u32] * 2),
        ("loss", u32, [u32] * 2),
        ("leaves", u32, [u32] * 2),
        ("rest", u32, [u32] * 3),
        ("floor_of", u32, [u64] + [u32] * 4),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(4)


def spread(random: np.random.Generator, low: float, high: float, count: int) -> list[int]:
    """Integers from low to high, as many in each octave."""
    numbers = np.exp(random.uniform(math.log(low), math.log(high), count))
    return [int(number) for number in np.unique(numbers.astype(np.uint64))]


def oracle_rate(window: float, queue: int, target: int, rtt: int, gain: float, decrease: float) -> float:
    window = min(max(window, 1.0), WINDOW_MAX)
    queue = min(queue, DELAY_MAX_US)
    if queue <= target:
        return gain * (target - queue) / target
    excess = min((queue - target) / max(rtt, 1), 1.0)
    return -min(window / 2, max(gain * (queue - target) / target, decrease * window * excess))


def oracle_pp_rate(window: float, queue: int, target: int, divisor: int, constant: float) -> float:
    window = min(max(window, 1.0), WINDOW_MAX)
    if queue <= target:
        return 1 / divisor
    return max(1 / divisor - constant * window * (queue / target - 1), -window / 2)


def close(got_q32: int, want: float, window: int) -> bool:
    """Within 2^-15 of the window's change that 1.16 fixed point can tell apart."""
    return abs(got_q32 / ONE_Q32 - want) <= 2**-14 + max(window, 1) * 2**-14 + abs(want) * 2**-12


def test_rate_of_rfc_6817(law: ctypes.CDLL, random: np.random.Generator) -> None:
    for cwnd in spread(random, 1, WINDOW_MAX, 25):
        for queue in [0, *spread(random, 1, DELAY_MAX_US, 25), 2**32 - 1]:
            for target in (1000, 25000, 60000, 100000):
                for gain, decrease in ((65536, 0), (65536, 65536), (32768, 16384)):
                    rtt = 100_000 + min(queue, DELAY_MAX_US)
                    got = law.rate(cwnd, 0, queue, target, rtt, gain, decrease)
                    want = oracle_rate(cwnd, queue, target, rtt, gain / ONE_Q16, decrease / ONE_Q16)
                    assert close(got, want, cwnd), (cwnd, queue, target, gain, decrease, got / ONE_Q32, want)


#: the scenarios of ns-3's tcp-ledbat-test, from the one-way delays of its two ACKs, ms: target 100 ms, gain 1, no
#: multiplicative decrease, two packets acknowledged, a window of two at least
NS3_TARGET_MS, NS3_ACKED, NS3_LEAST = 100, 2, 2


@pytest.mark.parametrize(
    ("window", "base_ms", "delay_ms", "wanted"),
    [(2, 1, 3, 2.98), (2, 1, 199, 2.0), (4, 1, 199, 4 - 0.98 / 2)],
    ids=["increment", "decrement, at the least window", "decrement"],
)
def test_windows_of_the_ns3_scenarios(
    law: ctypes.CDLL, window: int, base_ms: int, delay_ms: int, wanted: float
) -> None:
    queue, target = law.queue(1000 * delay_ms, 1000 * base_ms), 1000 * NS3_TARGET_MS
    change = law.per_ack(law.rate(window, 0, queue, target, 100_000, ONE_Q16, 0), NS3_ACKED, window, 0)
    got = law.add(window, 0, change, NS3_LEAST) / ONE_Q32
    assert abs(got - wanted) < 1e-3, (got, wanted)


def test_rate_of_ledbatpp(law: ctypes.CDLL, random: np.random.Generator) -> None:
    for cwnd in spread(random, 1, WINDOW_MAX, 25):
        for queue in [0, *spread(random, 1, DELAY_MAX_US, 40)]:
            for divisor in (1, 2, 5, 16):
                got = law.pp_rate(cwnd, 0, queue, 60000, divisor, 65536)
                want = oracle_pp_rate(cwnd, queue, 60000, divisor, 1.0)
                assert close(got, want, cwnd), (cwnd, queue, divisor, got / ONE_Q32, want)


def test_rates_fall_with_the_queue(law: ctypes.CDLL) -> None:
    """A longer queue never asks for more."""
    for cwnd in (2, 17, 300):
        rates = [law.rate(cwnd, 0, q, 25000, 100000 + q, 65536, 65536) for q in range(0, 200000, 97)]
        assert all(later <= earlier for earlier, later in pairwise(rates))
        rates = [law.pp_rate(cwnd, 0, q, 60000, 4, 65536) for q in range(0, 200000, 97)]
        assert all(later <= earlier for earlier, later in pairwise(rates))


def test_rfc_bounds(law: ctypes.CDLL, random: np.random.Generator) -> None:
    """Never more than Reno's packet a round trip up, never more than half the window down."""
    for cwnd in spread(random, 1, WINDOW_MAX, 50):
        for queue in [0, *spread(random, 1, 2**32 - 1, 50)]:
            change = law.rate(cwnd, 0, queue, 25000, 100000, 65536, 65536)
            assert -cwnd * 2**31 <= change <= 2**32
            change = law.pp_rate(cwnd, 0, queue, 60000, 1, 65536)
            assert -cwnd * 2**31 <= change <= 2**32


def test_acks_of_a_round_trip_add_up(law: ctypes.CDLL, random: np.random.Generator) -> None:
    """However the window is cut into ACKs, its change is that of the round trip, within 0.1 %."""
    for cwnd in spread(random, 1, 100_000, 40):
        for rate in (1.0, 1 / 16, -0.5, -cwnd / 2):
            rate_q32 = int(rate * ONE_Q32)
            total, left = 0, cwnd
            while left:
                acked = min(left, int(random.integers(1, 45)))
                total += law.per_ack(rate_q32, acked, cwnd, 0)
                left -= acked
            assert abs(total - rate_q32) <= abs(rate_q32) * 1e-3 + cwnd


def test_nothing_is_lost_at_large_windows(law: ctypes.CDLL) -> None:
    """The smallest change of a large window is kept: GAIN 1/16, 1 % below the target."""
    rate = law.rate(50_000, 0, 24750, 25000, 500_000, 65536 // 16, 0)
    assert law.per_ack(rate, 1, 50_000, 0) > 0


def test_window_addition(law: ctypes.CDLL, random: np.random.Generator) -> None:
    for _ in range(5000):
        cwnd, part = int(random.integers(1, WINDOW_MAX)), int(random.integers(0, 2**32))
        floor = int(random.integers(1, 20))
        delta = int(random.integers(-(2**40), 2**40))
        want = max((cwnd << 32 | part) + delta, min(floor, cwnd) << 32)
        assert law.add(cwnd, part, delta, floor) == want


def test_reverse_delay_that_comes_and_goes_leaves_the_window(law: ctypes.CDLL, random: np.random.Generator) -> None:
    """The window is a function of the reverse delay, whatever way that took."""
    window, reverse = 200.0, 0
    for change in [*random.integers(0, 900, 200), *(-random.integers(0, 900, 200))]:
        reverse += int(change)
        window += law.reverse(int(window), int(change), 100_000 + reverse, 10**6) / ONE_Q32
    assert window == pytest.approx(200 * (100_000 + reverse) / 100_000, rel=0.1)


def test_gain_divisor(law: ctypes.CDLL, random: np.random.Generator) -> None:
    for base in [0, 1, *spread(random, 2, 2**32 - 1, 200), 2**32 - 1]:
        for target in (1000, 60000, 100000):
            want = min(16, math.ceil(2 * target / base)) if base else 16
            assert law.divisor(target, base) == want, (target, base)


def test_exit_window(law: ctypes.CDLL, random: np.random.Generator) -> None:
    for sent in spread(random, 1, WINDOW_MAX, 30):
        for base in spread(random, 1, 10_000_000, 20):
            for queue in (0, 19000, 75001, 400_000):
                got = law.exit_pkts(2 * sent, sent, base, queue, 25000)
                assert got == min(2 * sent, max(2, sent * (base + 25000) // (base + queue)))


def test_aim_is_part_of_the_buffer_and_never_above_the_target(law: ctypes.CDLL, random: np.random.Generator) -> None:
    for target in (1000, 25000, 100_000):
        for depth in [0, *spread(random, 1, 2**32 - 1, 200)]:
            for noise in (1000, 2200, 66535):
                want = min(max(int(depth * 0.6), 2 * noise), target) if depth else target
                assert abs(law.aim(target, depth, noise) - want) <= 1


def test_dynamic_minimum(law: ctypes.CDLL, random: np.random.Generator) -> None:
    for capacity in spread(random, 1, 1e12, 60):
        for flows in (1, 3, 100):
            for rtt in (100, 100_000, 3_000_000):
                got = law.floor_of(capacity, 50, flows, rtt, 1500)
                want = 0.05 * capacity / flows * rtt / 1e6 / 1500
                assert got == min(max(2, int(want)), WINDOW_MAX) or abs(got - want) <= 1 + want * 1e-3


def test_dynamic_minimum_is_one_rate_for_all(law: ctypes.CDLL) -> None:
    """Flows of one host: with another round trip another window, but the same bytes a second."""
    for rtt in (200_000, 400_000, 800_000):
        window = law.floor_of(12_500_000, 50, 4, rtt, 1500)
        assert window * 1500 / (rtt / 1e6) == pytest.approx(0.05 * 12_500_000 / 4, rel=0.06)


def test_a_delay_below_the_base_is_no_queue(law: ctypes.CDLL, random: np.random.Generator) -> None:
    for base in (0, 1, *spread(random, 1, 2**32 - 1, 200)):
        for delay in (0, max(base - 1, 0), base):
            assert law.queue(delay, base) == 0, (delay, base)
        assert law.queue(min(base + 7, 2**32 - 1), base) == min(base + 7, 2**32 - 1) - base
    assert law.queue(2**32 - 1, 0) == DELAY_MAX_US


def test_a_loss_halves_the_window_down_to_the_least_and_never_raises_it(
    law: ctypes.CDLL, random: np.random.Generator
) -> None:
    for cwnd in (1, 2, 3, *spread(random, 1, WINDOW_MAX, 200)):
        for floor in (1, 2, *spread(random, 1, WINDOW_MAX, 20)):
            expected = min(cwnd, max(cwnd // 2, floor))
            assert law.loss(cwnd, floor) == expected <= cwnd, (cwnd, floor)


def test_a_rest_doubles_and_ends_slowly_unless_the_queue_is_empty(law: ctypes.CDLL) -> None:
    for rest in range(17):
        assert law.rest(rest, True, False) == min(max(2 * rest, 1), 16)
        assert law.rest(rest, False, True) == rest // 2
        assert law.rest(rest, False, False) == max(rest - 1, 0)


def test_slow_start_ends_at_three_quarters_of_the_target(law: ctypes.CDLL, random: np.random.Generator) -> None:
    """LEDBAT++ draft, section 4.3."""
    for target in (4, 60000, *spread(random, 4, DELAY_MAX_US, 200)):
        for queue in (0, target // 2, 3 * target // 4, 3 * target // 4 + 1, target, DELAY_MAX_US):
            assert bool(law.leaves(queue, target)) == (queue > 0.75 * target), (queue, target)
