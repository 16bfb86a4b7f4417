/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Seeded random numbers and the distributions used by the traffic.
 *
 * Pure functions of the given state, so that a plan and a seed give the same
 * sequence on every machine and tests can compare it with theory.
 * Generator: xorshift64* (Marsaglia, Xorshift RNGs, 2003; Vigna's multiplier),
 * seeded through splitmix64 so that similar seeds give unrelated streams.
 */
#ifndef LBE_AGENT_RNG_H
#define LBE_AGENT_RNG_H

#include <math.h>

#include "types.h"

struct rng {
	u64 state;	/* never 0, the fixed point of xorshift */
};

/* splitmix64: a bijection of 64 bits, used as a hash */
static inline u64 rng_mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline void rng_seed(struct rng *r, u64 seed)
{
	r->state = rng_mix(seed);
	if (!r->state)
		r->state = 1;
}

static inline u64 rng_u64(struct rng *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return r->state * 0x2545f4914f6cdd1dull;
}

/* Uniform in (0, 1]: never 0, so that its logarithm is finite. */
static inline double rng_uniform(struct rng *r)
{
	return ldexp((rng_u64(r) >> 11) + 1, -53);
}

/* Uniform integer in [low, high], both included */
static inline u32 rng_between(struct rng *r, u32 low, u32 high)
{
	return low + (u32)(((u128)rng_u64(r) * ((u64)high - low + 1)) >> 64);
}

static inline double rng_exponential(struct rng *r, double mean)
{
	return -mean * log(rng_uniform(r));
}

/* Pareto II (Lomax): P(X > x) = (1 + x / scale)^-shape, x >= 0 */
static inline double rng_pareto2(struct rng *r, double shape, double scale)
{
	return scale * (pow(rng_uniform(r), -1.0 / shape) - 1.0);
}

/*
 * Mean of a Pareto II variable that is cut to [low, high] (values outside
 * become the bound): low + the integral of its survival function.
 */
static inline double pareto2_cut_mean(double shape, double scale, double low,
				      double high)
{
	double k = 1.0 - shape;

	return low + scale / k * (pow(1.0 + high / scale, k) -
				  pow(1.0 + low / scale, k));
}

/* The scale for which the cut variable has this mean; bisection to 1e-9. */
static inline double pareto2_cut_scale(double shape, double mean, double low,
				       double high)
{
	double a = 0.001, b = high * 1e3;

	for (int i = 0; i < 200 && b / a > 1.000000001; i++) {
		double mid = sqrt(a * b);

		if (pareto2_cut_mean(shape, mid, low, high) < mean)
			a = mid;
		else
			b = mid;
	}
	return sqrt(a * b);
}

#endif
