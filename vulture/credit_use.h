/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receiver-driven credit: what one sender uses in a round trip, measured by its arrivals.
 *
 *	arrivals   | | | |        | | |                        |
 *	           [ a round trip )[ the next    ) ... a pause [ ...
 *
 * A count of arrivals begins with the first arrival later than a round trip after the begin of the
 * count before. That earlier count, scaled to one round trip, is what the sender uses, until the
 * present count exceeds it.
 *
 * Pure functions. The caller holds the path's lock.
 */
#ifndef VULTURE_CREDIT_USE_H
#define VULTURE_CREDIT_USE_H

#include <lbe/arith.h>

/* A sender that is silent for so many round trips, and for longer than a retransmission time-out,
 * us, is one that writes now and then. With half as much, a flow whose share is less than a packet
 * a round trip looks like that; with twice as much, at 100 ms, a sender that writes each half
 * second holds a packet of W.
 */
#define CREDIT_PAUSE_TRIPS	4
#define CREDIT_PAUSE_US		300000U

struct credit_use {
	u64 began_us;		/* begin of the present count, our clock; 0 = no data yet */
	u32 bytes;		/* arrivals in the present count */
	u32 last_bytes;		/* arrivals of the count before, scaled to a round trip */
	bool paused;		/* the present count began after a pause */
};

/**
 * credit_use_add() - data arrived
 * @u: count of its sender
 * @now_us: our clock
 * @base_us: round trip, us
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
 * credit_use_trip() - credit that a sender uses in a round trip, bytes
 * @u: count of the sender
 * @mss_bytes: its segment size
 */
static inline u32 credit_use_trip(const struct credit_use *u, u32 mss_bytes)
{
	u32 bytes = u->bytes;

	/* The first packet after a pause is no sign that more follow. */
	if (u->paused)
		bytes -= min(bytes, mss_bytes);
	return max(bytes, u->last_bytes);
}

#endif /* VULTURE_CREDIT_USE_H */
