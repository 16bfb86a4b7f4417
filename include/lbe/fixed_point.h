/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Powers, logarithms and products of window sizes in fixed point.
 *
 *	log2(x) = n + log2(m),   x = m 2^n, 1 <= m < 2     digit by digit
 *	2^e     = 2^n e^(f ln2), e = n + f, 0 <= f < 1     Horner's scheme
 *	x^p     = 2^(p log2(x)),      ln(x) = log2(x) ln2
 *
 * Qn stands for an integer that counts units of 2^-n.
 *
 * Error bounds (u = 2^-27; the tests compare with double precision):
 *  - log2, Q27: too low by at most 1.2 u. Each of the 27 digits needs a square, which is
 *    truncated to Q31: a relative error of 2^-31, weighted by 2^-i for the digit i. The sum
 *    of all is below 2.9 2^-31. The digits beyond the 27th are worth at most one u.
 *  - 2^e, relative: too low by at most 1.1 u. Eleven steps of Horner's scheme, each
 *    truncated to Q30 and divided by the step's number, add up to 4 2^-30, the truncations
 *    of f ln2 to 4 2^-30, and the terms beyond the eleventh to 2^-35.
 *  - x^p for x <= 2^20, relative: at most 4 u = 2^-25. p itself is rounded to
 *    2^-31, which the 20 binary digits of log2(x) turn into 1.25 u of the exponent.
 *    So the error at 2^20 is 1/32 packet, far below the half packet that is required.
 *
 * All functions are monotone: each step is a truncated product of factors that do not
 * decrease, and the values at both ends of an octave are approached from below.
 */
#ifndef LBE_FIXED_POINT_H
#define LBE_FIXED_POINT_H

#include <lbe/arith.h>

#ifdef __KERNEL__
#include <linux/bitops.h>
#endif

#define LBE_LOG2_BITS	27	/* log2 of any u32 is below 32: 5 bits + 27 */
#define LBE_FRAC_BITS	30	/* factors and exponents from 0 to below 4 */
#define LBE_ONE_Q30	(1U << LBE_FRAC_BITS)
#define LBE_ONE_Q16	(1U << 16)
#define LBE_LN2_Q30	744261117U	/* floor(ln(2) 2^30) */
#define LBE_EXP_TERMS	11	/* (ln 2)^12 / 12! = 2^-35 */

/* The fraction @num / @den, below 4, rounded to the nearest 2^-30. It is a constant
 * expression, so that a table can contain LBE_Q30(95, 100) for 0.95.
 */
#define LBE_Q30(num, den) \
	((u32)((((u64)(num) << LBE_FRAC_BITS) + (den) / 2) / (den)))

/* Position of the highest bit set; @x is not 0. */
static inline u32 lbe_ilog2(u32 x)
{
#ifdef __KERNEL__
	return fls(x) - 1;
#else
	return 31 - (u32)__builtin_clz(x);
#endif
}

/**
 * lbe_log2_q27 - binary logarithm
 * @x: any value; 0 is taken for 1
 *
 * Return: log2(@x) in Q27, at most 1.2 2^-27 too low.
 */
static inline u32 lbe_log2_q27(u32 x)
{
	u32 n, log, mantissa_q31, i;

	if (!x)
		return 0;
	n = lbe_ilog2(x);
	mantissa_q31 = x << (31 - n);
	log = n;
	for (i = 0; i < LBE_LOG2_BITS; i++) {
		u64 square_q62 = (u64)mantissa_q31 * mantissa_q31;
		u32 digit = (u32)(square_q62 >> 63);

		log = (log << 1) | digit;
		mantissa_q31 = (u32)(square_q62 >> (31 + digit));
	}
	return log;
}

/**
 * lbe_exp2_q16 - power of two
 * @e_q27: exponent in Q27, and so below 32
 *
 * Return: 2^@e in Q16, relative error at most 1.1 2^-27, then truncated to Q16.
 */
static inline u64 lbe_exp2_q16(u32 e_q27)
{
	u32 n = e_q27 >> LBE_LOG2_BITS;
	u32 fraction_q27 = e_q27 & ((1U << LBE_LOG2_BITS) - 1);
	u32 t_q30 = (u32)(((u64)fraction_q27 * LBE_LN2_Q30) >> LBE_LOG2_BITS);
	u32 sum_q30 = LBE_ONE_Q30;
	u32 k;

	for (k = LBE_EXP_TERMS; k > 0; k--)
		sum_q30 = LBE_ONE_Q30 +
			  (u32)(((u64)t_q30 * sum_q30) >> LBE_FRAC_BITS) / k;
	return n >= 14 ? (u64)sum_q30 << (n - 14) : sum_q30 >> (14 - n);
}

/**
 * lbe_pow_q16 - power with a fractional exponent
 * @x: base; 0 is taken for 1
 * @p_q30: exponent in Q30, 0 to 1
 *
 * Return: @x^@p in Q16, relative error at most 2^-25 for @x up to 2^20.
 */
static inline u64 lbe_pow_q16(u32 x, u32 p_q30)
{
	return lbe_exp2_q16((u32)(((u64)lbe_log2_q27(x) * p_q30) >> LBE_FRAC_BITS));
}

/**
 * lbe_ln_q27 - natural logarithm
 * @x: any value; 0 is taken for 1
 *
 * Return: ln(@x) in Q27, at most 6 2^-27 too low: the error of log2, 32 times the
 * truncation of ln(2), and the last truncation.
 */
static inline u32 lbe_ln_q27(u32 x)
{
	return (u32)(((u64)lbe_log2_q27(x) * LBE_LN2_Q30) >> LBE_FRAC_BITS);
}

/**
 * lbe_scale_q16 - product of a count and a fraction
 * @x: any value
 * @f_q30: factor in Q30
 *
 * Return: @x * @f in Q16, less than 2^-16 too low.
 */
static inline u64 lbe_scale_q16(u32 x, u32 f_q30)
{
	return ((u64)x * f_q30) >> (LBE_FRAC_BITS - 16);
}

#endif /* LBE_FIXED_POINT_H */
