/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types and helpers of the arithmetic headers, for the kernel and for the host.
 *
 * The arithmetic of every module consists of pure functions in headers, so that the
 * same source is compiled into the module, into KUnit and into host tests that
 * compare it with a floating-point oracle. This file gives those headers their
 * integer types and helpers in the kernel and on the host, and nothing else: whatever is not
 * here (clocks, sockets, allocation) does not belong in arithmetic.
 */
#ifndef LBE_ARITH_H
#define LBE_ARITH_H

#ifdef __KERNEL__

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#else /* host tests */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#ifndef U32_MAX
#define U8_MAX		UINT8_MAX
#define U16_MAX		UINT16_MAX
#define U32_MAX		UINT32_MAX
#define S32_MAX		INT32_MAX
#define S32_MIN		INT32_MIN
#define U64_MAX		UINT64_MAX
#define S64_MAX		INT64_MAX
#endif

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define min_t(type, a, b)	((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max_t(type, a, b)	((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define clamp_t(type, v, lo, hi) min_t(type, max_t(type, v, lo), hi)
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define max3(a, b, c)		max(max(a, b), c)
#define clamp(v, lo, hi)	min(max(v, lo), hi)
#define likely(x)		(x)
#define unlikely(x)		(x)
#define BUILD_BUG_ON(cond)	_Static_assert(!(cond), #cond)

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline s64 div_s64(s64 dividend, s32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline u64 mul_u64_u32_shr(u64 a, u32 mul, unsigned int shift)
{
	return (u64)(((unsigned __int128)a * mul) >> shift);
}

#endif /* __KERNEL__ */

#endif /* LBE_ARITH_H */
