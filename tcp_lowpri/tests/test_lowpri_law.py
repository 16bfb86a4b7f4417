# SPDX-License-Identifier: GPL-2.0
"""The LowPri laws at every window up to 2^20 packets, against double precision.

The oracle is Tables 1 to 5 of the paper as they are printed, typed in once more here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent
LARGEST = 1 << 20
LEAST = 2.0
ONE_Q16 = 65536.0

WRAPPER = """
#include "lowpri_law.h"

u32 laws(void) { return ARRAY_SIZE(lowpri_laws); }
const char *law_name(u32 i) { return lowpri_laws[i].name; }
u32 law_growth(u32 i) { return lowpri_laws[i].growth_q16; }
u32 law_keeps(u32 i) { return lowpri_laws[i].keeps_window; }

void targets(u32 i, u32 n, u64 *q16)
{ for (u32 w = 0; w < n; w++) q16[w] = lowpri_target_q16(&lowpri_laws[i], w); }
void limits(u32 i, u32 n, u64 *pkts)
{ for (u32 w = 0; w < n; w++) pkts[w] = lowpri_limit_pkts(&lowpri_laws[i], w); }
void powers(u32 p, u32 n, u64 *q16)
{ for (u32 w = 0; w < n; w++) q16[w] = lbe_pow_q16(w, p); }
void logs(u32 n, u64 *q27)
{ for (u32 w = 0; w < n; w++) q27[w] = lbe_ln_q27(w); }
u32 log2_of(u32 x) { return lbe_log2_q27(x); }
u64 exp2_of(u32 e) { return lbe_exp2_q16(e); }
u32 fraction(u32 num, u32 den) { return LBE_Q30(num, den); }
u64 scale(u32 x, u32 f) { return lbe_scale_q16(x, f); }
u64 power(u32 x, u32 p) { return lbe_pow_q16(x, p); }

struct lowpri_growth slow_start(u32 i, u32 cwnd, u32 part, u32 acked, u32 drop, u32 ssthresh)
{
	struct lowpri_growth g = { .cwnd = cwnd, .part_q16 = part, .acked = acked };

	lowpri_slow_start(&lowpri_laws[i], &g, drop, ssthresh);
	return g;
}

u32 timeout(u32 i, u32 w, u32 percent) { return lowpri_timeout_pkts(&lowpri_laws[i], w, percent); }
u32 credit(u64 q16) { return lowpri_credit(q16); }
"""


#: a window -> another, for all windows at once
Law = Callable[[np.ndarray], np.ndarray]


def minus(k: float) -> Law:
    return lambda w: w - k


def minus_power(p: float) -> Law:
    return lambda w: w - w**p


def times(f: float) -> Law:
    return lambda w: w * f


def power(p: float) -> Law:
    return lambda w: w**p


def minus_log(k: float) -> Law:
    return lambda w: w - k * np.log(w)


# name: (window after a drop, slow-start factor, limit), from Tables 1 to 5 and Section 4.4
PAPER: dict[str, tuple[Law, float, Law | None]] = {
    "lowpri1": (minus(2), 0, None),
    "lowpri2": (minus_power(0.5), 0, None),
    "lowpri2.1": (minus_power(0.33), 0, None),
    "lowpri2.2": (minus_power(0.66), 0, None),
    "lowpri2.3": (minus_power(0.25), 0, None),
    "lowpri2.4": (minus_power(0.4), 0, None),
    "lowpri2.5": (minus_power(0.6), 0, None),
    "lowpri2.6": (minus_power(0.75), 0, None),
    "lowpri3": (times(0.5), 1, minus(2)),
    "lowpri3.1": (times(0.5), 1, power(0.95)),
    "lowpri3.2": (times(0.5), 1, power(0.9)),
    "lowpri3.3": (times(0.5), 0.5, power(0.95)),
    "lowpri3.4": (times(0.75), 0.5, power(0.85)),
    "lowpri3.5": (times(0.75), 0.5, power(0.9)),
    "background": (times(0.75), 0.5, power(0.95)),
    "lowpri3.7": (times(0.75), 0.5, power(0.95)),
    "lowpri4": (times(0.66), 0, None),
    "lowpri4.1": (times(0.75), 0, None),
    "lowpri4.2": (times(0.25), 0, None),
    "lowpri5": (power(0.9), 0, None),
    "lowpri5.1": (power(0.85), 0, None),
    "lowpri5.2": (power(0.95), 0, None),
    "lowpri6": (minus_log(2), 0, None),
    "lowpri6.1": (minus_log(1), 0, None),
    "lowpri6.2": (minus_log(3), 0, None),
}


class Growth(ctypes.Structure):
    _fields_ = [("cwnd", ctypes.c_uint32), ("part_q16", ctypes.c_uint32), ("acked", ctypes.c_uint32)]


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = hostc.load(WRAPPER, tmp_path_factory.mktemp("lowpri"), FOLDER)
    library.law_name.restype = ctypes.c_char_p
    library.slow_start.restype = Growth
    for name in ("laws", "law_growth", "law_keeps", "log2_of", "timeout", "credit", "fraction"):
        getattr(library, name).restype = ctypes.c_uint32
    for name in ("exp2_of", "scale", "power"):
        getattr(library, name).restype = ctypes.c_uint64
    library.credit.argtypes = [ctypes.c_uint64]
    return library


@pytest.fixture(scope="module")
def row(c: ctypes.CDLL) -> dict[str, int]:
    """Index of each law in the module's table."""
    return {c.law_name(i).decode(): i for i in range(c.laws())}


def over_range(function: Callable[..., object], *args: int) -> np.ndarray:
    """The values at 0 .. LARGEST packets."""
    values = np.zeros(LARGEST + 1, dtype=np.uint64)
    pointer = values.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64))
    function(*args, ctypes.c_uint32(LARGEST + 1), pointer)
    return values


WINDOWS = np.arange(LARGEST + 1, dtype=np.float64)
# Half a packet, and 0.1 % above 1000 packets: the largest error allowed.
ALLOWED = np.where(WINDOWS > 1000, np.minimum(0.5, WINDOWS * 0.001), 0.5)


def test_the_module_has_every_protocol_of_the_paper(c: ctypes.CDLL, row: dict[str, int]) -> None:
    assert sorted(row) == sorted(PAPER)
    assert c.laws() == len(PAPER), "a name is there twice"
    for name, (_, factor, _) in PAPER.items():
        assert c.law_growth(row[name]) == int(factor * ONE_Q16), name
    assert [name for name in row if c.law_keeps(row[name])] == ["lowpri3.7"]


@pytest.mark.parametrize("name", PAPER)
def test_window_after_a_drop(c: ctypes.CDLL, row: dict[str, int], name: str) -> None:
    law, _, _ = PAPER[name]
    got_q16 = over_range(c.targets, row[name])
    want = np.full(LARGEST + 1, LEAST)
    want[1:] = np.maximum(law(WINDOWS[1:]), LEAST)
    error = np.abs(got_q16 / ONE_Q16 - want)
    assert (error < ALLOWED).all()
    assert error.max() < 1 / 16, "the header promises 1/32 of a packet and the cut to Q16"
    assert (np.diff(got_q16.astype(np.int64)) >= 0).all(), "a larger window leaves less"
    assert (got_q16[3:] < (WINDOWS[3:] * ONE_Q16)).all(), "a drop that cuts nothing"


@pytest.mark.parametrize("name", [name for name, (_, _, limit) in PAPER.items() if limit])
def test_limit_of_growing_back(c: ctypes.CDLL, row: dict[str, int], name: str) -> None:
    _, _, limit = PAPER[name]
    assert limit
    got = over_range(c.limits, row[name]).astype(np.float64)
    want = np.maximum(limit(WINDOWS), 0.0)
    assert (np.abs(got - want)[1:] <= 0.5 + 1 / 16).all()
    assert (np.diff(got) >= 0).all()


@pytest.mark.parametrize("name", [name for name, (_, _, limit) in PAPER.items() if not limit])
def test_no_limit_without_growing_back(c: ctypes.CDLL, row: dict[str, int], name: str) -> None:
    assert not over_range(c.limits, row[name]).any()


@pytest.mark.parametrize(("num", "den"), [(0, 1), (1, 1), (1, 3), (2, 3), (95, 100), (66, 100), (3, 1), (399, 100)])
def test_a_fraction_is_rounded_to_the_nearest(c: ctypes.CDLL, num: int, den: int) -> None:
    assert c.fraction(num, den) == round(Fraction(num * 2**30, den))


@pytest.mark.parametrize("p", [0.0, 0.25, 0.33, 0.5, 0.66, 0.75, 0.85, 0.9, 0.95, 0.999, 1.0])
def test_power(c: ctypes.CDLL, p: float) -> None:
    got_q16 = over_range(c.powers, round(p * 2**30))
    want = WINDOWS[1:] ** p
    error = np.abs(got_q16[1:] / ONE_Q16 - want)
    assert (error <= want * 2.0**-25 + 1 / ONE_Q16).all(), "the bound in fixed_point.h"
    assert (np.diff(got_q16.astype(np.int64)) >= 0).all()


def test_power_grows_with_its_exponent(c: ctypes.CDLL) -> None:
    for x in (1, 2, 3, 84, 1000, LARGEST):
        values = [c.power(x, p) for p in range(0, 2**30 + 1, 2**20 - 1)]
        assert values == sorted(values), x


def test_logarithm(c: ctypes.CDLL) -> None:
    got_q27 = over_range(c.logs)
    below = np.log(WINDOWS[1:]) * 2.0**27 - got_q27[1:]
    assert below.min() > -1e-3
    assert below.max() <= 6.0, "the bound in fixed_point.h"
    assert (np.diff(got_q27.astype(np.int64)) >= 0).all()


def test_binary_logarithm_and_power_of_two_to_the_ends(c: ctypes.CDLL) -> None:
    assert c.log2_of(0) == c.log2_of(1) == 0
    for n in range(32):
        assert c.log2_of(1 << n) == n << 27
        assert c.exp2_of(n << 27) == 1 << (16 + n)
    rng = np.random.default_rng(3)
    for x in [int(2**e) for e in rng.uniform(0, 32, 20000)] + [2**32 - 1]:
        below = np.log2(x) * 2**27 - c.log2_of(x)
        assert -1e-3 < below <= 1.2, x
    previous = 0
    for e in sorted(int(e) for e in rng.integers(0, 2**32, 20000)):
        got, want = c.exp2_of(e), 2.0 ** (e / 2**27) * ONE_Q16
        assert 0 <= want - got <= want * 1.1 * 2**-27 + 1, e
        assert got >= previous
        previous = got


def test_product(c: ctypes.CDLL) -> None:
    for x in (0, 1, 3, 84, LARGEST, 2**32 - 1):
        for f in (0, 1, round(0.66 * 2**30), 2**30, 2**32 - 1):
            assert c.scale(x, f) == x * f >> 14


def reference_growth(cwnd: float, acked: float, factor: float, drop: float, ssthresh: float) -> tuple[float, float]:
    """Slow start in real numbers, one stretch after the other: (window, packets left over)."""
    for step, end in ((1.0, min(drop, ssthresh)), (factor, ssthresh)):
        if cwnd < end and step:
            used = min(acked, (end - cwnd) / step)
            cwnd, acked = cwnd + used * step, acked - used
    return cwnd, acked


@pytest.mark.parametrize("name", ["background", "lowpri3", "lowpri3.4", "lowpri1"])
def test_slow_start_against_real_numbers(c: ctypes.CDLL, row: dict[str, int], name: str) -> None:
    _, factor, _ = PAPER[name]
    rng = np.random.default_rng(7)
    for _ in range(5000):
        ssthresh = int(2 ** rng.uniform(1, 21))
        drop = 2**32 - 1 if rng.random() < 0.3 or not factor else int(rng.integers(2, ssthresh + 10))
        cwnd, acked = int(rng.integers(1, ssthresh + 3)), int(2 ** rng.uniform(0, 18))
        got = c.slow_start(row[name], cwnd, 0, acked, drop, ssthresh)
        window, left = reference_growth(cwnd, acked, factor, drop, ssthresh)
        assert abs(got.cwnd + got.part_q16 / ONE_Q16 - window) < 1e-3
        assert got.part_q16 < ONE_Q16
        # A packet that was only partly needed is used up: the window is whole packets.
        assert left - 1 <= got.acked <= left


def test_no_acknowledgement_is_lost_in_small_steps(c: ctypes.CDLL, row: dict[str, int]) -> None:
    """84 packets, a drop: 63, then one ACK at a time, eight of them to the limit of 67."""
    cwnd, part, steps = 63, 0, 0
    while cwnd < 67:
        g = c.slow_start(row["background"], cwnd, part, 1, 63, 67)
        cwnd, part, steps = g.cwnd, g.part_q16, steps + 1
        assert g.acked == 0
    assert steps == 8


def test_window_kept_over_a_timeout(c: ctypes.CDLL, row: dict[str, int]) -> None:
    for w in (0, 1, 84, LARGEST, 2**32 - 1):
        for percent in (0, 1, 50, 100):
            assert c.timeout(row["lowpri3.7"], w, percent) == w * percent // 100
            assert c.timeout(row["background"], w, percent) == 0


def test_credit_for_the_part_of_a_packet(c: ctypes.CDLL) -> None:
    for target in (2.0, 2.5, 74.835, 1000.999, LARGEST + 0.5):
        whole, part = int(target), target - int(target)
        got = c.credit(int(target * ONE_Q16))
        assert part * whole - 17 * (whole > 2**19) - 1 - whole / ONE_Q16 <= got <= part * whole
        assert got < whole
