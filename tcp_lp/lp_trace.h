/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace event tcp_lp:lp_indication: one line for each early congestion
 * indication that was acted upon.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tcp_lp

#if !defined(LBE_TCP_LP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LBE_TCP_LP_TRACE_H

#include <linux/tracepoint.h>
#include <net/sock.h>
#include "lp.h"

TRACE_DEFINE_ENUM(LP_DELAY);
TRACE_DEFINE_ENUM(LP_ECE);

TRACE_EVENT(lp_indication,
	TP_PROTO(const struct sock *sk, const struct lp *lp, enum lp_kind kind,
		 u32 cwnd_before_pkts, u32 cwnd_after_pkts),
	TP_ARGS(sk, lp, kind, cwnd_before_pkts, cwnd_after_pkts),

	TP_STRUCT__entry(
		__field(const void *, skaddr)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, kind)
		__field(u8, source)
		__field(u8, rest_rtts)
		__field(u32, before)
		__field(u32, after)
		__field(u32, sd_us)
		__field(u32, dmin_us)
		__field(u32, dmax_us)
		__field(u32, threshold_us)
	),

	TP_fast_assign(
		__entry->skaddr = sk;
		__entry->sport = sk->sk_num;
		__entry->dport = ntohs(sk->sk_dport);
		__entry->kind = kind;
		__entry->source = lbe_owd_source(&lp->owd);
		__entry->rest_rtts = lp->rest_rtts;
		__entry->before = cwnd_before_pkts;
		__entry->after = cwnd_after_pkts;
		__entry->sd_us = lp_sd_us(lp);
		__entry->dmin_us = lp_dmin_us(lp);
		__entry->dmax_us = lp->dmax_us;
		__entry->threshold_us = lp_threshold_us(lp);
	),

	TP_printk("sk=%p sport=%u dport=%u kind=%s source=%s cwnd=%u->%u rest_rtts=%u sd_us=%u dmin_us=%u dmax_us=%u threshold_us=%u",
		  __entry->skaddr, __entry->sport, __entry->dport,
		  __print_symbolic(__entry->kind,
				   { LP_DELAY, "delay" }, { LP_ECE, "ece" }),
		  __entry->source ? "owd" : "rtt",
		  __entry->before, __entry->after, __entry->rest_rtts,
		  __entry->sd_us, __entry->dmin_us, __entry->dmax_us,
		  __entry->threshold_us)
);

#endif /* LBE_TCP_LP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE lp_trace
#include <trace/define_trace.h>
