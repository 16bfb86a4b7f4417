/* SPDX-License-Identifier: GPL-2.0 */
/* Receivers: they count received data, and may compare it with the stream. */
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
	struct sink_conn *conns;	/* open connections */
	u32 accepted;
	u64 bytes;		/* of all connections */
	u64 packets;		/* UDP */
	u64 stamped;		/* of these, packets with a send time */
	u64 delay_ns;		/* sum of their one-way delays */
	u64 max_delay_ns;
	u64 *delays_ns;		/* delay of each stamped packet, for percentiles */
	u64 delays_room;	/* allocated entries */
	u64 read_bytes;		/* mode=slow: used part of the allowance */
	u64 slow_since_ns;	/* mode=slow: start of the allowance */
};

int sinks_open(const struct plan *p, u64 zero_ns);
void sinks_sample(u64 t_ns);	/* reads, then writes a struct rec_recv for each */
void sinks_close(void);		/* writes the last events, at the end of the run */

#endif
