/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of tcp_lbe.
 *
 *	lbe:lbe_ack	what one ACK told
 *	lbe:lbe_state	the path's state changed, and why
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM lbe

#if !defined(LBE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LBE_TRACE_H

#include <linux/tracepoint.h>
#include <net/tcp.h>

#include "paths.h"

DECLARE_EVENT_CLASS(lbe_path,
	TP_PROTO(const struct sock *sk, const struct lbe_path *p, const struct lbe_path_ack *a),
	TP_ARGS(sk, p, a),
	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, state)
		__field(u8, reason)
		__field(u32, base_us)
		__field(u32, delay_us)
		__field(u32, rtt_us)
		__field(u32, noise_us)
		__field(u64, mu)
		__field(u64, rate)
		__field(u64, in_flight)
		__field(u32, fails)
		__field(u32, score)
		__field(u32, path_rtt_us)
		__field(u32, train_bytes)
		__field(u32, train)
		__field(s32, growth)
	),
	TP_fast_assign(
		__entry->cookie = atomic64_read(&sk->sk_cookie);
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->state = p->state;
		__entry->reason = p->reason;
		__entry->base_us = p->base_us;
		__entry->delay_us = a->delay_us;
		__entry->rtt_us = a->rtt_us;
		__entry->noise_us = p->noise_us;
		__entry->mu = p->mu;
		__entry->rate = p->rate;
		__entry->in_flight = p->in_flight;
		__entry->fails = p->fails;
		__entry->score = p->score;
		__entry->path_rtt_us = p->rtt_us;
		__entry->train_bytes = p->train.bytes;
		__entry->train = p->train.on | p->train.throttled << 1 | p->local << 2;
		__entry->growth = p->growth_q10;
	),
	TP_printk("cookie=%llu sport=%u dport=%u state=%u reason=%u base_us=%u delay_us=%u rtt_us=%u noise_us=%u mu=%llu rate=%llu in_flight=%llu fails=%u score=%u path_rtt_us=%u train_bytes=%u train=%x growth=%d",
		  __entry->cookie, __entry->sport, __entry->dport, __entry->state,
		  __entry->reason, __entry->base_us, __entry->delay_us, __entry->rtt_us,
		  __entry->noise_us, __entry->mu, __entry->rate, __entry->in_flight,
		  __entry->fails, __entry->score, __entry->path_rtt_us,
		  __entry->train_bytes, __entry->train, __entry->growth)
);

DEFINE_EVENT(lbe_path, lbe_ack,
	TP_PROTO(const struct sock *sk, const struct lbe_path *p, const struct lbe_path_ack *a),
	TP_ARGS(sk, p, a));
DEFINE_EVENT(lbe_path, lbe_state,
	TP_PROTO(const struct sock *sk, const struct lbe_path *p, const struct lbe_path_ack *a),
	TP_ARGS(sk, p, a));

#endif /* LBE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE lbe_trace
#include <trace/define_trace.h>
