/* SPDX-License-Identifier: GPL-2.0 */
/* Sources: one struct flow a line of the plan, one conn a TCP connection. */
#ifndef LBE_AGENT_FLOW_H
#define LBE_AGENT_FLOW_H

#include "diag.h"
#include "loop.h"
#include "plan.h"
#include "records.h"
#include "source.h"

enum conn_state {
	CONN_CONNECTING,
	CONN_OPEN,
	CONN_DRAINING,		/* our end is shut, the peer still reads */
};

struct conn {
	struct watch watch;
	struct flow *flow;
	struct conn *next;	/* of the flow, the newest first */
	enum conn_state state;
	u32 index;		/* counts the flow's connections from 0 */
	struct diag_request diag;	/* what samples ask */
	u64 start_ns;		/* connect() was called, CLOCK_MONOTONIC */
	u64 made_bytes;		/* the source made so many; it may write them */
	u64 written_bytes;	/* of these the socket took so many */
};

struct flow {
	const struct flow_plan *plan;
	struct source source;
	struct trace trace;
	struct timer start;	/* start_s, then each repeat_s */
	struct timer stop;
	struct timer send;	/* tick, packet, begin or end of an interval */
	struct timer change;	/* next of plan->switches */
	struct conn *conns;	/* open ones */
	u32 started;		/* connections begun */
	u32 switched;		/* plan->switches done */
	u64 zero_ns;		/* CLOCK_MONOTONIC of the source's time 0 */
	u64 interval_base;	/* bytes made before the current interval */
	u64 packet;		/* UDP: next packet of the interval or trace */
	u64 packets_sent;
	u64 packets_refused;	/* the local stack had no room */
	u64 bytes_sent;
	int udp_fd;		/* -1 = not open */
};

/* All flows of the plan; refusals of options show here, before time 0. */
int flows_open(const struct plan *p, u64 zero_ns);
void flows_sample(u64 t_ns);	/* a struct rec_send for each open TCP flow */
void flows_close(void);		/* last events, at the end of the run */

#endif
