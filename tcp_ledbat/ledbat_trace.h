/* SPDX-License-Identifier: GPL-2.0 */
/* Trace event ledbat:ledbat_state: emitted at each change of a flow's state. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ledbat

#if !defined(LEDBAT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LEDBAT_TRACE_H

#include <linux/tracepoint.h>
#include <net/tcp.h>
#include <lbe/sock_trace.h>

#include "ledbat.h"

#define ledbat_mode_names				\
	{ LEDBAT_SLOW_START, "slow_start" },		\
	{ LEDBAT_AVOID, "avoid" },			\
	{ LEDBAT_FREEZE, "freeze" },			\
	{ LEDBAT_RAMP, "ramp" }

#define ledbat_event_names				\
	{ LEDBAT_ENTERS, "enters" },			\
	{ LEDBAT_RESTS, "rests" },			\
	{ LEDBAT_SENDS, "sends" },			\
	{ LEDBAT_LEARNT, "learnt" },			\
	{ LEDBAT_LONGER_PATH, "longer_path" }

TRACE_EVENT(ledbat_state,
	TP_PROTO(const struct sock *sk, const struct ledbat *f,
		 enum ledbat_event event),
	TP_ARGS(sk, f, event),
	TP_STRUCT__entry(
		LBE_TRACE_SOCK_FIELDS
		__field(u8, event)
		__field(u8, mode)
		__field(u8, owd)
		__field(u8, rest_rtts)
		__field(u32, base_us)
		__field(u32, queue_us)
		__field(u32, target_us)
		__field(u32, full_us)
		__field(u32, cwnd_pkts)
		__field(u32, ssthresh_pkts)
	),
	TP_fast_assign(
		LBE_TRACE_SOCK_ASSIGN(sk);
		__entry->event = event;
		__entry->mode = f->mode;
		__entry->owd = lbe_owd_source(&f->path.owd) == LBE_OWD_SOURCE_TS;
		__entry->rest_rtts = f->rest_rtts;
		__entry->base_us = lbe_delay_base_us(&f->path);
		__entry->queue_us = f->queue_us;
		__entry->target_us = ledbat_flow_aim_us(f, ledbat_target_us(f));
		__entry->full_us = lbe_delay_range_us(&f->path);
		__entry->cwnd_pkts = tcp_snd_cwnd(tcp_sk(sk));
		__entry->ssthresh_pkts = tcp_sk(sk)->snd_ssthresh;
	),
	TP_printk(LBE_TRACE_SOCK_FORMAT " event=%s mode=%s signal=%s rest_rtts=%u base_us=%u queue_us=%u target_us=%u full_us=%u cwnd_pkts=%u ssthresh_pkts=%u",
		  LBE_TRACE_SOCK_ARGS,
		  __print_symbolic(__entry->event, ledbat_event_names),
		  __print_symbolic(__entry->mode, ledbat_mode_names),
		  __entry->owd ? "owd" : "rtt", __entry->rest_rtts,
		  __entry->base_us, __entry->queue_us, __entry->target_us,
		  __entry->full_us, __entry->cwnd_pkts, __entry->ssthresh_pkts)
);

#endif /* LEDBAT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE ledbat_trace
#include <trace/define_trace.h>
