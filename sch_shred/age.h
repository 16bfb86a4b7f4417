/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The counts that a writer keeps: bytes of payload that have passed before, for each flow
 * and for each pair of hosts.
 *
 *   flow   age' = max(age, least) + payload     each packet; age = 0 after
 *                                               SHRED_IDLE_MS without any
 *   pair   debt' = debt + payload               each packet; it falls by
 *                                               SHRED_PAIR_BYTES_MS all the time
 *
 * An idle flow begins anew: a persistent connection's next answer is a short
 * flow of its own, and TCP's window has begun anew too (RFC 5681, section 4.1).
 * Nothing of the flow is queued any more then in a queue with the default limit,
 * so that no packet of its new life overtakes one of its old life. An age never
 * falls in between, whatever its least is.
 *
 * Both are kept in buckets of SHRED_WAYS. What is 0 takes no room. Pure functions.
 */
#ifndef _SHRED_AGE_H
#define _SHRED_AGE_H

#include <lbe/arith.h>

/* Longer than a packet can wait in a queue with the default limit (hint.h). With half of it, a flow
 * that pauses while its packets wait overtakes them; with twice as much, answers on a persistent
 * connection are old more often.
 */
#define SHRED_IDLE_MS		1500U

/* Bytes. No coding tells larger ages apart; a debt of so much takes 32 s to fall to nothing. */
#define SHRED_AGE_MAX		(1U << 21)

/* A pair's debt over its flows' least age: pages of 1 MiB stay below the last band (128 KiB).
 * If it is doubled, pages of 2 MiB do, and a user who opens a connection for each object gains as
 * much.
 */
#define SHRED_PAIR_SHARE	8U

/* Bytes a millisecond (0.5 Mbit/s) that a pair may always send as young, or a page of 2 MiB in
 * 32 s. If it is doubled, a pair that never pauses may send 1 Mbit/s as young.
 */
#define SHRED_PAIR_BYTES_MS	64U

/* With the lock of a bucket they fill a cache line. */
#define SHRED_WAYS		5U

struct shred_age {
	u32 tag;	/* the flow's or the pair's; its lowest bit says which */
	u32 bytes;	/* at most SHRED_AGE_MAX */
	u32 last_ms;	/* of the last packet; wraps: after 49 idle days a debt or an age may come
			 * back once, for at most what it was
			 */
};

/* The tag of a hash. */
static inline u32 shred_age_tag(u64 hash, bool pair)
{
	return ((u32)hash & ~1U) | pair;
}

/**
 * shred_age_left() - a flow's age or a pair's debt now
 * @age: as it is kept
 * @now_ms: a clock that wraps at 2^32
 *
 * Return: bytes.
 */
static inline u32 shred_age_left(const struct shred_age *age, u32 now_ms)
{
	u32 idle_ms = now_ms - age->last_ms;

	if (age->tag & 1)
		return age->bytes - (u32)min_t(u64, age->bytes, (u64)idle_ms * SHRED_PAIR_BYTES_MS);
	return idle_ms <= SHRED_IDLE_MS ? age->bytes : 0;
}

/**
 * shred_age_count() - counts a packet
 * @ages: the bucket
 * @tag: of its flow or pair
 * @payload_bytes: what it carries
 * @least_bytes: the age is at least this, at most SHRED_AGE_MAX
 * @now_ms: a clock that wraps at 2^32
 *
 * Return: the age or debt before this packet, bytes; U32_MAX when the bucket has no room.
 */
static inline u32 shred_age_count(struct shred_age ages[SHRED_WAYS], u32 tag, u32 payload_bytes,
				  u32 least_bytes, u32 now_ms)
{
	struct shred_age *age = NULL;
	u32 i, before;

	for (i = 0; i < SHRED_WAYS; i++) {
		if (ages[i].tag == tag) {
			age = &ages[i];
			break;
		}
		if (!shred_age_left(&ages[i], now_ms))
			age = &ages[i];
	}
	if (!age)
		return U32_MAX;
	before = age->tag == tag ? shred_age_left(age, now_ms) : 0;
	before = max(before, least_bytes);
	*age = (struct shred_age){
		.tag = tag, .last_ms = now_ms,
		.bytes = min_t(u64, (u64)before + payload_bytes, SHRED_AGE_MAX),
	};
	return before;
}

#endif
