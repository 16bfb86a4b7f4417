# SPDX-License-Identifier: GPL-2.0
"""SHRED's arithmetic over its whole parameter range, against double precision.

The oracle is Equations (1) to (4) of the paper as they are printed.
"""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path

import numpy as np
import pytest

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent
CWND_ONE = 1 << 22
Q32 = float(1 << 32)
U32_MAX = (1 << 32) - 1

WRAPPER = """
#include "shred.h"
#include "hint.h"

u32 cwnd_avg(u32 avg, u32 sample, u32 weight) { return shred_cwnd_avg(avg, sample, weight); }
u32 min_th(u32 lo, u32 hi, u32 floor, u32 sample, u32 avg)
{ return shred_min_th(lo, hi, floor, sample, avg); }
s64 excess(u32 lo, u32 hi, u32 floor, u32 qavg, u32 sample, u32 avg)
{
	s64 excess = shred_excess(lo, hi, qavg, sample, avg);

	return excess < 0 ? excess : (s64)shred_excess_cap(excess, floor, qavg, avg);
}
u32 hit(s64 excess, u32 avg, u32 wlog, u32 count, u32 random)
{ return shred_hit(excess, avg, wlog, count, random); }
u32 max_p(u32 p, u32 lo, u32 hi, u32 mod) { return shred_max_p(p, lo, hi, mod); }
u32 gentle_p(u32 p, u32 hi, unsigned long qavg) { return shred_gentle_p(p, hi, qavg); }
u32 gentle_hit(u32 p, u32 count, u32 random) { return shred_gentle_hit(p, count, random); }
u32 hint_read(u32 mode, u32 tos) { return shred_hint_read(mode, tos); }
u32 hint_write(u32 mode, u32 tos, u32 cwnd) { return shred_hint_write(mode, tos, cwnd); }
u32 hint_class(u32 hint) { return shred_hint_class(hint); }
"""

OFF, TOS, DSCP = 0, 1, 2


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = hostc.load(WRAPPER, tmp_path_factory.mktemp("shred"), FOLDER)
    for name in (
        "cwnd_avg",
        "min_th",
        "hit",
        "max_p",
        "gentle_p",
        "gentle_hit",
        "hint_read",
        "hint_write",
        "hint_class",
    ):
        getattr(library, name).restype = ctypes.c_uint32
    library.excess.restype = ctypes.c_int64
    library.hit.argtypes = [ctypes.c_int64, *[ctypes.c_uint32] * 4]
    library.gentle_p.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_ulong]
    return library


def thresholds(rng: np.random.Generator, n: int) -> list[tuple[int, int]]:
    """(min, max) in bytes << Wlog, log-uniform from a few packets to the largest that RED takes."""
    pairs = [(1, 2), (1, U32_MAX), ((1 << 31), U32_MAX), (1500, 1501)]
    while len(pairs) < n:
        lo, hi = sorted(int(2.0**x) for x in rng.uniform(10, 31.99, 2))
        if lo < hi:
            pairs.append((lo, hi))
    return pairs


def test_the_question_without_a_division_has_the_same_answer(c: ctypes.CDLL) -> None:
    """Around the threshold itself, where one unit decides, and anywhere between floor and maximum."""
    rng = np.random.default_rng(7)
    for lo, hi in thresholds(rng, 300):
        floor = int(rng.integers(0, lo + 1))
        for _ in range(20):
            sample, avg = int(rng.integers(1, 256)), int(rng.integers(1 << 22, 255 << 22))
            threshold = c.min_th(lo, hi, floor, sample, avg)
            near = [threshold + step for step in (-1, 0, 1)]
            for qavg in [*near, floor, hi - 1, int(rng.integers(floor, hi))]:
                if floor <= qavg < hi:
                    excess = c.excess(lo, hi, floor, qavg, sample, avg)
                    assert (excess < 0) == (qavg < threshold), (lo, hi, floor, sample, avg, qavg)
                    assert abs(excess / avg - (qavg - threshold)) <= 1


def test_the_decision_without_a_division_is_equation_4(c: ctypes.CDLL) -> None:
    """A packet is hit when the paper's p_b, spaced as RED does, says so, but for one per cent or a byte."""
    rng = np.random.default_rng(8)
    hits = 0
    for lo, hi in thresholds(rng, 6000):
        # qth = bytes << Wlog: any number of bytes from one on
        wlog = int(rng.integers(1, min(hi.bit_length(), 32)))
        floor = int(rng.integers(0, lo + 1))
        sample, avg = int(rng.integers(1, 256)), int(rng.integers(1 << 22, 255 << 22))
        qavg, count = int(rng.integers(floor, hi)), int(2.0 ** rng.uniform(0, 22))
        excess = c.excess(lo, hi, floor, qavg, sample, avg)
        if excess < 0:
            continue
        # Equation (2) with its floor; RED's random number is uniform on (max - min) / max_p bytes
        threshold = max(lo + (hi - lo) * (1 - sample / (avg / CWND_ONE)), floor)
        reach = max(qavg - threshold, 0) / (1 << wlog) * count
        slack = 0.01 * reach + count + 2  # one per cent; RED itself cuts the queue to whole bytes
        for random in (reach - slack, reach + slack, 2.0 ** rng.uniform(0, 31.9)):
            number = int(random)
            if 0 <= number <= U32_MAX and abs(number - reach) >= slack - 1:
                hit = bool(c.hit(excess, avg, wlog, count, number))
                assert hit == (reach >= number), (lo, hi, wlog, floor, sample, avg, qavg, count, number)
                hits += hit
    assert hits > 1000


def test_a_count_without_end_does_not_overflow(c: ctypes.CDLL) -> None:
    largest = c.excess(1, U32_MAX, 0, U32_MAX, 255, 255 * CWND_ONE)
    assert largest > 1 << 61
    for count in (1, 1 << 23, U32_MAX):
        assert c.hit(largest, 255 * CWND_ONE, 0, count, U32_MAX - 1)
    assert not c.hit(0, 255 * CWND_ONE, 0, U32_MAX, 1)


def test_average_follows_equation_1(c: ctypes.CDLL) -> None:
    rng = np.random.default_rng(1)
    for weight in (0.0001, 0.002, 0.03, 0.5, 1 - 1 / Q32):
        weight_q32 = min(round(weight * Q32), U32_MAX)
        avg, oracle = 0, 0.0
        for sample in np.concatenate([rng.integers(1, 256, 4000), np.full(4000, 1), np.full(4000, 255)]):
            avg = c.cwnd_avg(avg, int(sample), weight_q32)
            oracle = (1 - weight) * oracle + weight * sample if oracle else float(sample)
            assert avg / CWND_ONE == pytest.approx(oracle, rel=0.01)
            assert CWND_ONE <= avg <= 255 * CWND_ONE


def test_threshold_is_equation_2_with_its_bounds(c: ctypes.CDLL) -> None:
    rng = np.random.default_rng(2)
    for lo, hi in thresholds(rng, 3000):
        floor = min(lo, int(2.0 ** rng.uniform(0, 31)))
        sample = int(rng.integers(1, 256))
        avg = int(rng.integers(CWND_ONE, 255 * CWND_ONE + 1))
        exact = lo + (hi - lo) * (1 - sample / (avg / CWND_ONE))
        got = c.min_th(lo, hi, floor, sample, avg)
        assert floor <= got <= hi
        assert got == pytest.approx(min(max(exact, floor), hi), rel=0.01, abs=1)


def test_slope_stays(c: ctypes.CDLL) -> None:
    """Equation (3), and (4) in the form that the queue uses: same slope, other start."""
    rng = np.random.default_rng(3)
    for lo, hi in thresholds(rng, 3000):
        max_p = int(2.0 ** rng.uniform(16, 32 - 1e-9))
        mod = int(rng.integers(0, hi))
        exact = max_p * (hi - mod) / (hi - lo)
        got = c.max_p(max_p, lo, hi, mod)
        assert got == pytest.approx(min(exact, U32_MAX), rel=0.01, abs=1)
        if 0 < got < U32_MAX:
            qavg = mod + (hi - mod) * 0.75
            p_b = got / Q32 * (qavg - mod) / (hi - mod)
            line = max_p / Q32 * (qavg - mod) / (hi - lo)
            assert p_b == pytest.approx(line, rel=0.01, abs=2 / Q32)


def test_ratio_one_is_red(c: ctypes.CDLL) -> None:
    """A packet with just the average window meets RED's own threshold, to the byte."""
    rng = np.random.default_rng(4)
    for lo, hi in thresholds(rng, 500):
        for window in (1, 2, 17, 255):
            assert c.min_th(lo, hi, 0, window, window * CWND_ONE) == lo


def test_smaller_windows_are_never_dropped_more(c: ctypes.CDLL) -> None:
    rng = np.random.default_rng(5)
    for lo, hi in thresholds(rng, 200):
        avg = int(rng.integers(CWND_ONE, 255 * CWND_ONE))
        starts = [c.min_th(lo, hi, min(lo, 7500), w, avg) for w in range(1, 256)]
        assert all(a >= b for a, b in itertools.pairwise(starts))


def test_gentle_rises_from_max_p_to_one(c: ctypes.CDLL) -> None:
    rng = np.random.default_rng(6)
    for _, hi in thresholds(rng, 500):
        max_p = int(2.0 ** rng.uniform(16, 32 - 1e-9))
        assert c.gentle_p(max_p, hi, hi) == max_p
        assert c.gentle_p(max_p, hi, 2 * hi) == U32_MAX
        qavg = hi + int(rng.integers(0, hi))
        exact = max_p / Q32 + (1 - max_p / Q32) * (qavg - hi) / hi
        assert c.gentle_p(max_p, hi, qavg) / Q32 == pytest.approx(exact, rel=0.01, abs=2 / Q32)


def test_gentle_spreads_drops_evenly(c: ctypes.CDLL) -> None:
    """With RED's spacing the gap between drops is uniform on 1 .. 1/p: its mean is (1 + 1/p) / 2."""
    rng = np.random.default_rng(7)
    p = 0.05
    gaps = []
    for random in rng.integers(0, 1 << 32, 4000, dtype=np.uint64):
        count = 1
        while not c.gentle_hit(round(p * Q32), count, int(random)):
            count += 1
        gaps.append(count)
    assert max(gaps) <= 1 / p + 1
    # 4000 uniform gaps: the standard error of their mean is 5.8 / 63 = 0.09
    assert np.mean(gaps) == pytest.approx((1 + 1 / p) / 2, abs=0.4)


def test_dscp_table_is_what_it_says(c: ctypes.CDLL) -> None:
    codes = [c.hint_read(DSCP, code << 2) for code in range(64)]
    assert codes == [0] + [max(code, round(255 ** ((code - 1) / 62))) for code in range(1, 64)]


def test_hints_read_back(c: ctypes.CDLL) -> None:
    for window in range(1, 256):
        assert c.hint_read(TOS, c.hint_write(TOS, 0, window)) == window
        for ecn in range(4):
            byte = c.hint_write(DSCP, 0xA8 | ecn, window)
            assert byte & 3 == ecn
            read = c.hint_read(DSCP, byte)
            assert read == window if window <= 43 else abs(read - window) / window <= 0.048
            nearest = min((c.hint_read(DSCP, k << 2) for k in range(1, 64)), key=lambda w: abs(w - window))
            assert abs(read - window) == abs(nearest - window)
    for mode in (TOS, DSCP):
        assert c.hint_read(mode, c.hint_write(mode, 0, 0)) == 1
        assert c.hint_read(mode, c.hint_write(mode, 0, U32_MAX)) == 255
    assert c.hint_write(OFF, 0xB8, 9) == 0xB8
    assert [c.hint_read(OFF, tos) for tos in (0, 1, 255)] == [0, 0, 0]


def test_classes_of_the_statistics(c: ctypes.CDLL) -> None:
    bounds = [(1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 63), (64, 127), (128, 255)]
    for number, (low, high) in enumerate(bounds):
        assert {c.hint_class(w) for w in range(low, high + 1)} == {number}
