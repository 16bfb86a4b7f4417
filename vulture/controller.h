/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the hook tells a controller of receive windows, and what it wants back.
 *
 * A controller sees data as it comes in and acknowledgments as they go out,
 * and says how large a window it wants. It knows no socket, no packet and no
 * clock; the hook sees to what may go on the wire (policy.h, rwnd_field()).
 * A second algorithm is a second file with one of these.
 *
 * Every call is made under the flow's lock.
 */
#ifndef VULTURE_CONTROLLER_H
#define VULTURE_CONTROLLER_H

#include "policy.h"

struct vulture_options {
	struct piv_params piv;
	struct policy_params policy;
	u32 observe;		/* 1: only estimate */
	u32 settle;		/* 1: variations of a growing window do not count */
	u32 loss_permille;	/* what loss leaves of the window, 1/1000 */
	u32 queue_high_us;	/* drain above this queue, us; 0 = off */
	u32 watch_bursts;	/* bursts in a row that met more drain at once; 0 = off */
	u32 outgrown_pct;	/* of the queue drained last: halve above; 0 = off */
	u32 speedup;		/* increases in a row per further segment; 0 = off */
};

/* Room for a controller's state in each flow, bytes. */
#define RWND_PRIV_BYTES		2112
/* Window of a controller that does not limit. */
#define RWND_UNLIMITED		U32_MAX

/* What is known of a connection when control begins. */
struct rwnd_start {
	u64 now_us;
	u32 mss_bytes;		/* of the peer's segments as TCP knows it */
	u32 min_rtt_us;		/* least round trip that TCP knows; 0 = none */
	u32 fresh_bytes;	/* no data has come yet, and so much of a window
				 * was advertised; 0 = the connection is under way
				 */
};

/* One arrival: a segment with data, or a GRO aggregate of several. */
struct rwnd_data {
	u64 now_us;		/* our clock */
	u32 tsval, tsecr;	/* its timestamps */
	u32 seq;		/* first octet */
	u32 bytes;		/* payload, above 0 */
	u32 segs;		/* packets on the wire, above 0 */
	u32 acked;		/* what we have acknowledged up to */
	bool ce;		/* marked "congestion experienced" on its way */
};

/* One segment on its way out. */
struct rwnd_ack {
	u64 now_us;		/* our clock */
	u32 tsval;		/* its timestamp */
	u32 acked_bytes;	/* what it acknowledges for the first time */
	s32 edge_bytes;		/* from its acknowledgment number to the
				 * furthest right edge advertised so far
				 */
};

struct rwnd_stats {
	u32 phase, mode, policy;
	u32 rwnd_bytes, thresh_bytes, cwnd_bytes, mss_bytes;
	u32 rtt_us, min_rtt_us, peer_tick_us;
	struct piv_set last;		/* variations of the latest round */
	u64 negative, zero, positive;
	u64 by[PIV_CLASSES];
	u64 rounds, by_policy[RWND_POLICIES], losses;
	u64 mode_us[PIV_MODES];
};

struct rwnd_controller {
	const char *name;
	void (*init)(void *priv, const struct vulture_options *options,
		     const struct rwnd_start *start);
	/* Options of a connection that is observed already. */
	void (*change)(void *priv, const struct vulture_options *options,
		       u64 now_us);
	void (*on_data)(void *priv, const struct rwnd_data *data);
	/* Return: the window wanted, bytes, or RWND_UNLIMITED. */
	u32 (*on_ack)(void *priv, const struct rwnd_ack *ack);
	void (*stats)(const void *priv, u64 now_us, struct rwnd_stats *stats);
};

extern const struct rwnd_controller vulture_controller;

/* For the tracepoints; the controller calls it, the module supplies it. */
struct rwnd_round {
	const struct piv_set *set;
	u32 mode, policy, rwnd_bytes, thresh_bytes, cwnd_bytes, rtt_us;
	bool loss;
};

void vulture_trace_round(const void *priv, const struct rwnd_round *round);

#endif /* VULTURE_CONTROLLER_H */
