# SPDX-License-Identifier: GPL-2.0
"""The agent's seeded random generators against theory. Only their headers are compiled, for this machine."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable

import numpy as np
import pytest

from testbed.support import hostc
from testbed.tests.agent.agent_build import SOURCE

DRAWS = 200_000
# Kolmogorov-Smirnov distance that a correct generator exceeds for one seed in a million
KS_LIMIT = math.sqrt(-0.5 * math.log(0.5e-6) / DRAWS)

WRAP = """
#include "rng.h"
#include "source.h"
#include "stream.h"

void uniform(u64 seed, int n, double *out)
{
	struct rng r;

	rng_seed(&r, seed);
	for (int i = 0; i < n; i++)
		out[i] = rng_uniform(&r);
}

void between(u64 seed, u32 low, u32 high, int n, double *out)
{
	struct rng r;

	rng_seed(&r, seed);
	for (int i = 0; i < n; i++)
		out[i] = rng_between(&r, low, high);
}

void exponential(u64 seed, double mean, int n, double *out)
{
	struct rng r;

	rng_seed(&r, seed);
	for (int i = 0; i < n; i++)
		out[i] = rng_exponential(&r, mean);
}

void pareto2(u64 seed, double shape, double scale, int n, double *out)
{
	struct rng r;

	rng_seed(&r, seed);
	for (int i = 0; i < n; i++)
		out[i] = rng_pareto2(&r, shape, scale);
}

double cut_mean(double shape, double scale, double low, double high)
{
	return pareto2_cut_mean(shape, scale, low, high);
}

double cut_scale(double shape, double mean, double low, double high)
{
	return pareto2_cut_scale(shape, mean, low, high);
}

u64 bytes_made(u64 rate_bps, u64 ns)
{
	return source_bytes(rate_bps, ns);
}

u64 packet_ns(u64 rate_bps, u32 pkt_bytes, u64 k)
{
	return source_packet_ns(rate_bps, pkt_bytes, k);
}

/* on and off times of a source's first n intervals */
void intervals(u32 kind, u64 period, double duty, u64 on, u64 off, u32 exponential, u64 seed, int n, u64 *out)
{
	struct flow_plan p = {
		.kind = kind, .period_ns = period, .duty = duty, .on_ns = on, .off_ns = off,
		.exponential = exponential, .seed = seed,
	};
	struct source s;

	source_init(&s, &p);
	for (int i = 0; i < n; i++, source_next(&s)) {
		out[2 * i] = s.on_ns;
		out[2 * i + 1] = s.off_ns;
	}
}

u32 kind_square(void) { return KIND_SQUARE; }
u32 kind_onoff(void) { return KIND_ONOFF; }

u64 stream_fault(u64 seed, u64 offset, u64 len, u64 wrong)
{
	u8 buf[4096];

	stream_fill(seed, offset, buf, len);
	for (u64 i = 0; i < len; i++)
		if (buf[i] != stream_byte(seed, offset + i))
			return 1000000;
	if (wrong < len)
		buf[wrong] ^= 0x80;
	return stream_match(seed, offset, buf, len);
}
"""

U64 = ctypes.c_uint64
REAL = ctypes.c_double
REALS = np.ctypeslib.ndpointer(np.float64, flags="C")


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = hostc.load(WRAP, tmp_path_factory.mktemp("rng"), SOURCE)
    library.uniform.argtypes = [U64, ctypes.c_int, REALS]
    library.between.argtypes = [U64, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int, REALS]
    library.exponential.argtypes = [U64, REAL, ctypes.c_int, REALS]
    library.pareto2.argtypes = [U64, REAL, REAL, ctypes.c_int, REALS]
    for name in ("cut_mean", "cut_scale"):
        getattr(library, name).argtypes = [REAL] * 4
        getattr(library, name).restype = REAL
    library.bytes_made.argtypes = [U64, U64]
    library.bytes_made.restype = U64
    library.packet_ns.argtypes = [U64, ctypes.c_uint32, U64]
    library.packet_ns.restype = U64
    library.intervals.argtypes = [
        ctypes.c_uint32,
        U64,
        REAL,
        U64,
        U64,
        ctypes.c_uint32,
        U64,
        ctypes.c_int,
        np.ctypeslib.ndpointer(np.uint64, flags="C"),
    ]
    library.stream_fault.argtypes = [U64] * 4
    library.stream_fault.restype = U64
    return library


def draws(function: Callable[..., object], *parameters: float, n: int = DRAWS) -> np.ndarray:
    out = np.empty(n)
    function(*parameters, n, out)
    return out


def ks_distance(sample: np.ndarray, cdf: np.ndarray) -> float:
    """Return the greatest distance between the sample's distribution and ``cdf``, given at the sorted sample."""
    n = len(sample)
    steps = np.arange(n + 1) / n
    return float(max(np.max(steps[1:] - cdf), np.max(cdf - steps[:-1])))


@pytest.mark.parametrize("seed", [0, 1, 2, 2**63])
def test_uniform(lib: ctypes.CDLL, seed: int) -> None:
    x = np.sort(draws(lib.uniform, seed))
    assert x[0] > 0
    assert x[-1] <= 1
    assert ks_distance(x, x) < KS_LIMIT


def test_near_seeds_are_unrelated(lib: ctypes.CDLL) -> None:
    a, b = draws(lib.uniform, 1), draws(lib.uniform, 2)
    # the correlation of independent samples has a standard deviation of 1/sqrt(n); the bound is five of them
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / math.sqrt(DRAWS)
    assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 5 / math.sqrt(DRAWS)


def test_a_seed_is_one_sequence(lib: ctypes.CDLL) -> None:
    assert np.array_equal(draws(lib.uniform, 7, n=1000), draws(lib.uniform, 7, n=1000))


@pytest.mark.parametrize("high", [1, 8, 16, 32])
def test_between_takes_each_value_alike(lib: ctypes.CDLL, high: int) -> None:
    x = draws(lib.between, 3, 1, high)
    values, counts = np.unique(x, return_counts=True)
    assert values.tolist() == list(range(1, high + 1))
    deviation = math.sqrt(DRAWS / high * (1 - 1 / high))
    assert np.all(np.abs(counts - DRAWS / high) <= 5 * deviation)


def test_exponential(lib: ctypes.CDLL) -> None:
    x = np.sort(draws(lib.exponential, 4, 2.5))
    assert ks_distance(x, 1 - np.exp(-x / 2.5)) < KS_LIMIT
    assert x.mean() == pytest.approx(2.5, abs=5 * 2.5 / math.sqrt(DRAWS))


@pytest.mark.parametrize(("shape", "scale"), [(1.2, 2000.0), (1.2, 3000.0), (2.5, 10.0)])
def test_pareto2(lib: ctypes.CDLL, shape: float, scale: float) -> None:
    x = np.sort(draws(lib.pareto2, 5, shape, scale))
    assert ks_distance(x, 1 - (1 + x / scale) ** -shape) < KS_LIMIT


def test_the_cut_mean_is_the_integral_of_the_survival_function(lib: ctypes.CDLL) -> None:
    low, high, shape, scale = 12.0, 2e6, 1.2, 2000.0
    x = np.geomspace(low, high, 200_001)
    survival = (1 + x / scale) ** -shape
    expected = low + np.sum((survival[1:] + survival[:-1]) / 2 * np.diff(x))
    assert lib.cut_mean(shape, scale, low, high) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("mean", [5000.0, 10_000.0, 100_000.0])
def test_the_scale_gives_the_mean_after_the_cut(lib: ctypes.CDLL, mean: float) -> None:
    scale = lib.cut_scale(1.2, mean, 12.0, 2e6)
    assert lib.cut_mean(1.2, scale, 12.0, 2e6) == pytest.approx(mean, rel=1e-6)
    x = np.clip(draws(lib.pareto2, 6, 1.2, scale), 12.0, 2e6)
    assert x.mean() == pytest.approx(mean, abs=5 * x.std() / math.sqrt(DRAWS))


@pytest.mark.parametrize(
    ("rate_bps", "ns", "expected"),
    [
        (8, 10**9, 1),
        (8, 10**9 - 1, 0),
        (6_000_000, 10**7, 7500),
        (10**12, 10**15, 125 * 10**15),  # an intermediate product would overflow 64 bits
    ],
)
def test_bytes_made(lib: ctypes.CDLL, rate_bps: int, ns: int, expected: int) -> None:
    assert lib.bytes_made(rate_bps, ns) == expected


@pytest.mark.parametrize(
    ("rate_bps", "size", "k", "expected"),
    [
        (8_000_000, 1000, 1, 10**6),
        (3_000_000, 1000, 3, 8 * 10**6),
        (3_000_000, 1000, 3_000_000, 8 * 10**12),  # no drift: k times the exact distance, not a rounded one
    ],
)
def test_packet_times(lib: ctypes.CDLL, rate_bps: int, size: int, k: int, expected: int) -> None:
    assert lib.packet_ns(rate_bps, size, k) == expected


def intervals(lib: ctypes.CDLL, *parameters: float, n: int) -> np.ndarray:
    out = np.empty(2 * n, np.uint64)
    lib.intervals(*parameters, n, out)
    return out.reshape(n, 2).astype(np.int64)


def test_square_wave(lib: ctypes.CDLL) -> None:
    got = intervals(lib, lib.kind_square(), 200, 0.25, 0, 0, 0, 1, n=3)
    assert got.tolist() == [[0, 50], [200, 250], [400, 450]]


def test_fixed_on_and_off(lib: ctypes.CDLL) -> None:
    got = intervals(lib, lib.kind_onoff(), 0, 0, 30, 70, 0, 1, n=3)
    assert got.tolist() == [[0, 30], [100, 130], [200, 230]]


def test_exponential_on_and_off(lib: ctypes.CDLL) -> None:
    n = 50_000
    got = intervals(lib, lib.kind_onoff(), 0, 0, 10**9, 3 * 10**9, 1, 9, n=n)
    on, off = got[:, 1] - got[:, 0], got[1:, 0] - got[:-1, 1]
    assert on.min() > 0
    assert off.min() > 0
    assert on.mean() == pytest.approx(1e9, rel=5 / math.sqrt(n))
    assert off.mean() == pytest.approx(3e9, rel=5 / math.sqrt(n))
    assert np.corrcoef(on[:-1], off)[0, 1] == pytest.approx(0, abs=5 / math.sqrt(n))


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 1000003])
@pytest.mark.parametrize("length", [1, 7, 8, 9, 4096])
def test_the_stream_is_the_same_in_any_piece(lib: ctypes.CDLL, offset: int, length: int) -> None:
    assert lib.stream_fault(5, offset, length, 2**40) == length
    for wrong in {0, length // 2, length - 1}:
        assert lib.stream_fault(5, offset, length, wrong) == wrong
