/* SPDX-License-Identifier: GPL-2.0 */
/* Receivers: they count what arrives, and may compare it with the stream. */
#ifndef LBE_AGENT_SINK_H
#define LBE_AGENT_SINK_H

#include "loop.h"
#include "plan.h"
#include "records.h"

struct sink_conn {
	struct watch watch;
	struct sink *sink;
	struct sink_conn *next;	/* of the sink, the newest first */
	u32 index;		/* counts the sink's connections from 0 */
	u64 accepted_ns;	/* CLOCK_MONOTONIC */
	u64 bytes;
	u64 corrupt_at;		/* first wrong byte; NEVER_NS = none */
};

struct sink {
	const struct sink_plan *plan;
	struct watch listener[2];	/* IPv4 and IPv6; or the UDP sockets */
	struct timer read;
	struct sink_conn *conns;	/* open ones */
	u32 accepted;
	u64 bytes;		/* all connections */
	u64 packets;		/* UDP */
	u64 stamped;		/* of them, with a time of departure */
	u64 delay_ns;		/* sum over these, one way */
	u64 max_delay_ns;
	u64 *delays_ns;		/* each of the stamped ones, for percentiles */
	u64 delays_room;	/* entries allocated */
	u64 read_bytes;		/* mode=slow: allowance used up */
	u64 slow_since_ns;	/* mode=slow: the allowance counts from here */
};

int sinks_open(const struct plan *p, u64 zero_ns);
void sinks_sample(u64 t_ns);	/* reads, then a struct rec_recv each */
void sinks_close(void);		/* last events, at the end of the run */

#endif
