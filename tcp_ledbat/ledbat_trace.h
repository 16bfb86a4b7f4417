/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of tcp_ledbat.
 *
 *	ledbat:ledbat_ack	what one ACK told, and the window after it
 *	ledbat:ledbat_mode	slow start, avoidance, freeze or ramp began
 *	ledbat:ledbat_depth	a loss was taken for a full buffer
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ledbat

#if !defined(LEDBAT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LEDBAT_TRACE_H

#include <linux/tcp.h>
#include <linux/tracepoint.h>
#include <net/tcp.h>

#include "flow.h"

#define ledbat_mode_names				\
	{ LEDBAT_SLOW_START, "slow_start" },		\
	{ LEDBAT_AVOID, "avoid" },			\
	{ LEDBAT_FREEZE, "freeze" },			\
	{ LEDBAT_RAMP, "ramp" }

DECLARE_EVENT_CLASS(ledbat_state,
	TP_PROTO(const struct sock *sk, const struct ledbat *f),
	TP_ARGS(sk, f),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(u16, sport)
		__field(u16, dport)
		__field(u32, base_us)
		__field(u32, queue_us)
		__field(u32, target_us)
		__field(u32, full_us)
		__field(u32, cwnd_pkts)
		__field(u32, ssthresh_pkts)
		__field(u8, rest_rtts)
		__field(u8, mode)
		__field(u8, owd)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->base_us = f->base_us;
		__entry->queue_us = f->queue_us;
		__entry->target_us = f->aim_us;
		__entry->full_us = f->depth.full_us;
		__entry->cwnd_pkts = tcp_snd_cwnd(tcp_sk(sk));
		__entry->ssthresh_pkts = tcp_sk(sk)->snd_ssthresh;
		__entry->rest_rtts = f->rest_rtts;
		__entry->mode = f->slowdown.mode;
		__entry->owd = lbe_owd_source(&f->owd) == LBE_OWD_SOURCE_TS;
	),
	TP_printk("sk=%p sport=%u dport=%u base_us=%u queue_us=%u target_us=%u full_us=%u cwnd_pkts=%u ssthresh_pkts=%u rest_rtts=%u mode=%s signal=%s",
		  __entry->sk, __entry->sport, __entry->dport,
		  __entry->base_us, __entry->queue_us, __entry->target_us,
		  __entry->full_us, __entry->cwnd_pkts, __entry->ssthresh_pkts,
		  __entry->rest_rtts,
		  __print_symbolic(__entry->mode, ledbat_mode_names),
		  __entry->owd ? "owd" : "rtt")
);

#define LEDBAT_EVENT(_name)						\
DEFINE_EVENT(ledbat_state, _name,					\
	TP_PROTO(const struct sock *sk, const struct ledbat *f),	\
	TP_ARGS(sk, f))

LEDBAT_EVENT(ledbat_ack);
LEDBAT_EVENT(ledbat_mode);
LEDBAT_EVENT(ledbat_depth);

#endif /* LEDBAT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE ledbat_trace
#include <trace/define_trace.h>
