/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receiver-driven credit: what one sender uses in a round trip, by what arrives.
 *
 *	arrivals   | | | |        | | |                        |
 *	           [ a round trip )[ the next    ) ... a pause [ ...
 *
 * A count begins with the first arrival later than a round trip after the one before began.
 * That one's arrivals, times a round trip over the time until then, are what the sender uses,
 * until the present count exceeds it.
 *
 * Pure functions. The caller holds the path's lock.
 */
#ifndef VULTURE_CREDIT_USE_H
#define VULTURE_CREDIT_USE_H

#include <lbe/arith.h>

/* Who is silent for so many round trips, and for longer than a sender's time-out, us, writes now
 * and then. Half: a share of less than a packet a round trip looks so; twice: at 100 ms, who
 * writes each half second holds a packet of W.
 */
#define CREDIT_PAUSE_TRIPS	4
#define CREDIT_PAUSE_US		300000U

struct credit_use {
	u64 began_us;		/* the present count, our clock; 0 = nothing came yet */
	u32 bytes;		/* arrivals in it */
	u32 last_bytes;		/* of the one before, a round trip's part */
	bool paused;		/* it began after a pause */
};

/**
 * credit_use_add() - data came
 * @u: of its sender
 * @now_us: our clock
 * @base_us: a round trip
 * @bytes: payload
 */
static inline void credit_use_add(struct credit_use *u, u64 now_us, u32 base_us, u32 bytes)
{
	u64 span_us = now_us - u->began_us;

	if (span_us > base_us) {
		u->last_bytes = (u32)div64_u64((u64)u->bytes * base_us, span_us);
		u->paused = u->began_us &&
			    span_us > max(CREDIT_PAUSE_US, CREDIT_PAUSE_TRIPS * base_us);
		u->began_us = now_us;
		u->bytes = 0;
	}
	u->bytes += bytes;
}

/**
 * credit_use_trip() - what is used in a round trip, bytes
 * @u: of a sender
 * @mss_bytes: its segment
 */
static inline u32 credit_use_trip(const struct credit_use *u, u32 mss_bytes)
{
	u32 bytes = u->bytes;

	/* Of one that writes now and then a packet is no sign that more follow. */
	if (u->paused)
		bytes -= min(bytes, mss_bytes);
	return max(bytes, u->last_bytes);
}

#endif /* VULTURE_CREDIT_USE_H */
