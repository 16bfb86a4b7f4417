/* SPDX-License-Identifier: GPL-2.0 */
/* Trace event tcp_lp:lp_state: emitted at each change of a flow's state. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tcp_lp

#if !defined(LBE_TCP_LP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LBE_TCP_LP_TRACE_H

#include <linux/tracepoint.h>
#include <net/sock.h>
#include <lbe/sock_trace.h>
#include "lp.h"

#define LP_EVENT_NAMES							\
	{ LP_LEARNT, "learnt" }, { LP_DELAY, "delay" },			\
	{ LP_ECE, "ece" }, { LP_LOSS, "loss" },				\
	{ LP_LONGER_PATH, "longer_path" }, { LP_OVER, "over" }

TRACE_EVENT(lp_state,
	TP_PROTO(const struct sock *sk, const struct lp *lp, enum lp_event event,
		 u32 cwnd_before_pkts, u32 cwnd_after_pkts),
	TP_ARGS(sk, lp, event, cwnd_before_pkts, cwnd_after_pkts),

	TP_STRUCT__entry(
		LBE_TRACE_SOCK_FIELDS
		__field(u8, event)
		__field(u8, owd)
		__field(u8, rest_rtts)
		__field(u32, before)
		__field(u32, after)
		__field(u32, sd_us)
		__field(u32, base_us)
		__field(u32, full_us)
		__field(u32, margin_us)
	),

	TP_fast_assign(
		LBE_TRACE_SOCK_ASSIGN(sk);
		__entry->event = event;
		__entry->owd = lbe_owd_source(&lp->path.owd);
		__entry->rest_rtts = lp->rest_rtts;
		__entry->before = cwnd_before_pkts;
		__entry->after = cwnd_after_pkts;
		__entry->sd_us = lp_sd_us(lp);
		__entry->base_us = lbe_delay_base_us(&lp->path);
		__entry->full_us = lp->path.full_us;
		__entry->margin_us = lp_margin_us(lp);
	),

	TP_printk(LBE_TRACE_SOCK_FORMAT " event=%s signal=%s cwnd=%u->%u rest_rtts=%u sd_us=%u base_us=%u full_us=%u margin_us=%u",
		  LBE_TRACE_SOCK_ARGS,
		  __print_symbolic(__entry->event, LP_EVENT_NAMES),
		  __entry->owd ? "owd" : "rtt",
		  __entry->before, __entry->after, __entry->rest_rtts,
		  __entry->sd_us, __entry->base_us, __entry->full_us,
		  __entry->margin_us)
);

#endif /* LBE_TCP_LP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE lp_trace
#include <trace/define_trace.h>
