/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of vulture.ko: events/vulture/ in tracefs.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM vulture

#if !defined(VULTURE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define VULTURE_TRACE_H

#include <linux/tracepoint.h>

#include "policy.h"
#include "vulture.h"

/* The controller paper has chosen a policy, at the end of a round or because of loss. */
TRACE_EVENT(vulture_round,
	TP_PROTO(const struct vulture_flow *flow, const struct rwnd_round *round),
	TP_ARGS(flow, round),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u32, pivs)
		__field(u32, positive)
		__field(s64, sum_us)
		__field(u32, mode)
		__field(u32, policy)
		__field(u32, rwnd)
		__field(u32, thresh)
		__field(u32, cwnd)
		__field(u32, rtt_us)
		__field(bool, loss)
	),
	TP_fast_assign(
		__entry->id = flow->id;
		__entry->pivs = round->set->n;
		__entry->positive = round->set->positive;
		__entry->sum_us = round->set->sum_us;
		__entry->mode = round->mode;
		__entry->policy = round->policy;
		__entry->rwnd = round->rwnd_bytes;
		__entry->thresh = round->thresh_bytes;
		__entry->cwnd = round->cwnd_bytes;
		__entry->rtt_us = round->rtt_us;
		__entry->loss = round->loss;
	),
	TP_printk("id=%llu pivs=%u positive=%u sum_us=%lld mode=%s policy=%s loss=%d rwnd_bytes=%u thresh_bytes=%u cwnd_bytes=%u rtt_us=%u",
		  __entry->id, __entry->pivs, __entry->positive, __entry->sum_us,
		  __print_symbolic(__entry->mode, { 0, "conservative" }, { 1, "aggressive" }),
		  __print_symbolic(__entry->policy, { 0, "fix" }, { 1, "increase" },
				   { 2, "double" }, { 3, "halve" }),
		  __entry->loss, __entry->rwnd, __entry->thresh, __entry->cwnd,
		  __entry->rtt_us)
);

/* A segment was sent with another window than TCP's own. */
TRACE_EVENT(vulture_window,
	TP_PROTO(const struct vulture_flow *flow, const struct edge *edge),
	TP_ARGS(flow, edge),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u32, ack)
		__field(u32, edge)
		__field(u32, goal)
		__field(u32, own)
		__field(u32, advertised)
	),
	TP_fast_assign(
		__entry->id = flow->id;
		__entry->ack = edge->ack_seq;
		__entry->edge = edge->edge_seq;
		__entry->goal = edge->goal_seq;
		__entry->own = edge->own_bytes;
		__entry->advertised = edge->advertised_bytes;
	),
	TP_printk("id=%llu ack=%u edge=%u goal_bytes=%d own_bytes=%u advertised_bytes=%u",
		  __entry->id, __entry->ack, __entry->edge,
		  (int)(__entry->goal - __entry->ack), __entry->own, __entry->advertised)
);

/* The control of a connection has started or ended. */
TRACE_EVENT(vulture_flow,
	TP_PROTO(const struct vulture_flow *flow, bool start, u32 reason),
	TP_ARGS(flow, start, reason),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u16, lport)
		__field(u16, rport)
		__field(bool, start)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->id = flow->id;
		__entry->lport = ntohs(flow->key.local_port);
		__entry->rport = ntohs(flow->key.remote_port);
		__entry->start = start;
		__entry->reason = reason;
	),
	TP_printk("id=%llu local_port=%u remote_port=%u %s%s",
		  __entry->id, __entry->lport, __entry->rport,
		  __entry->start ? "start" : "end ",
		  __entry->start ? "" :
		  __print_symbolic(__entry->reason, { 0, "stopped" }, { 1, "closed" },
				   { 2, "removed" }))
);

#endif /* VULTURE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
