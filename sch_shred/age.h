/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The counts that the writer of hints keeps: bytes of payload sent so far, for each flow
 * and for each pair of hosts.
 *
 *   flow   age' = max(age, least) + payload     each packet; age = 0 after
 *                                               SHRED_IDLE_MS without a packet
 *   pair   debt' = debt + payload               each packet; the debt decreases by
 *                                               SHRED_PAIR_BYTES_MS continuously
 *
 * After an idle time a flow starts again with age 0: the next response on a
 * persistent connection is a short flow of its own, and TCP restarts its window
 * too (RFC 5681, section 4.1). By then a queue with the default limit holds no
 * packet of the flow, so a packet sent after the idle time overtakes none sent
 * before it. Between two idle times an age never decreases, even if least does.
 *
 * Both are kept in buckets of SHRED_WAYS entries. An entry whose age or debt is 0
 * can be reused. Pure functions.
 */
#ifndef _SHRED_AGE_H
#define _SHRED_AGE_H

#include <lbe/arith.h>

/* Longer than a packet can wait in a queue with the default limit (hint.h). If it is halved, new
 * packets of a flow that pauses can overtake its packets that still wait in the queue; if it is
 * doubled, more responses on persistent connections count as old.
 */
#define SHRED_IDLE_MS		1500U

/* Bytes. No coding distinguishes larger ages; a debt of this size takes 32 s to decrease to 0. */
#define SHRED_AGE_MAX		(1U << 21)

/* The pair's debt divided by this is the least age of its flows: pages of 1 MiB stay below the
 * last band (128 KiB). If it is doubled, so do pages of 2 MiB, and a user who opens a connection
 * for each object gains as much.
 */
#define SHRED_PAIR_SHARE	8U

/* Bytes a millisecond (0.5 Mbit/s) that a pair may always send as young flows; a page of 2 MiB
 * takes 32 s of it. If it is doubled, a pair that never pauses may send 1 Mbit/s as young flows.
 */
#define SHRED_PAIR_BYTES_MS	64U

/* Entries of a bucket: with the bucket's lock they fill a cache line. */
#define SHRED_WAYS		5U

struct shred_age {
	u32 tag;	/* of the flow or pair; lowest bit: 0 = flow, 1 = pair */
	u32 bytes;	/* age or debt, at most SHRED_AGE_MAX */
	u32 last_ms;	/* time of the last packet; wraps: after 49 idle days an old age or debt
			 * may be valid again once, at most with its old value
			 */
};

/* The tag for a hash. */
static inline u32 shred_age_tag(u64 hash, bool pair)
{
	return ((u32)hash & ~1U) | pair;
}

/**
 * shred_age_left() - present age of a flow or debt of a pair
 * @age: the stored entry
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
 * shred_age_count() - count a packet
 * @ages: the bucket
 * @tag: tag of the packet's flow or pair
 * @payload_bytes: payload of the packet
 * @least_bytes: least age, at most SHRED_AGE_MAX
 * @now_ms: a clock that wraps at 2^32
 *
 * Return: the age or debt before this packet, bytes; U32_MAX if the bucket has no free entry.
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
