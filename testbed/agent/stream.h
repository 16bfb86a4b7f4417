/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The byte stream sent with verify=1: byte i is a function of the seed and i
 * only, so that either end can generate any part of it.
 */
#ifndef LBE_AGENT_STREAM_H
#define LBE_AGENT_STREAM_H

#include "rng.h"

static inline u8 stream_byte(u64 seed, u64 offset)
{
	return rng_mix(seed ^ (offset >> 3)) >> (8 * (offset & 7));
}

static inline void stream_fill(u64 seed, u64 offset, u8 *buf, size_t len)
{
	u64 word = 0;

	for (size_t i = 0; i < len; i++, offset++) {
		if (!i || !(offset & 7))
			word = rng_mix(seed ^ (offset >> 3));
		buf[i] = word >> (8 * (offset & 7));
	}
}

/* Number of leading bytes of buf that are correct; len if all are. */
static inline size_t stream_match(u64 seed, u64 offset, const u8 *buf,
				  size_t len)
{
	u64 word = 0;

	for (size_t i = 0; i < len; i++, offset++) {
		if (!i || !(offset & 7))
			word = rng_mix(seed ^ (offset >> 3));
		if (buf[i] != (u8)(word >> (8 * (offset & 7))))
			return i;
	}
	return len;
}

#endif
