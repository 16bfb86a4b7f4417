/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A flow's age as a router counts it: bytes of payload that passed before.
 *
 *   age' = age + payload                      each packet
 *   age' = payload                            after SHRED_IDLE_MS without any
 *
 * An idle flow begins anew: a persistent connection's next answer is a short
 * flow of its own, and TCP's window has begun anew too (RFC 5681, section 4.1).
 * Nothing of the flow is queued any more then, so that no packet of its new
 * life overtakes one of its old life. Pure functions.
 */
#ifndef _SHRED_AGE_H
#define _SHRED_AGE_H

#include <lbe/arith.h>

/* The smallest RTO of RFC 6298. Half of it, and a sender that pauses after each burst is young
 * twice as often; twice as much, and answers on a persistent connection find it old more often.
 */
#define SHRED_IDLE_MS		1000U

struct shred_age {
	u64 bytes;		/* counted so far; 2^64 are never reached */
	u32 last_ms;		/* when the last packet was counted; wraps, see shred_age_count() */
	bool started;		/* a packet was counted */
};

/**
 * shred_age_count() - counts a packet
 * @age: of its flow
 * @payload_bytes: what it carries
 * @now_ms: a clock that wraps at 2^32; an idle time of 49 days and up to a second more is taken
 *          for short, once
 *
 * Return: the flow's age before this packet, bytes.
 */
static inline u64 shred_age_count(struct shred_age *age, u32 payload_bytes, u32 now_ms)
{
	u64 before = age->bytes;

	if (!age->started || now_ms - age->last_ms > SHRED_IDLE_MS)
		before = 0;
	age->bytes = before + payload_bytes;
	age->last_ms = now_ms;
	age->started = true;
	return before;
}

#endif
