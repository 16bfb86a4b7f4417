/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of tcp_lowpri, emitted at decisions, not at each packet.
 *
 *	lowpri:lowpri_drop	a drop (or ECN mark): window before, after, limit
 *	lowpri:lowpri_timeout	a time-out: window before the first one in a row, window after
 *	lowpri:lowpri_undo	a reduction was undone
 *	lowpri:lowpri_regrown	slow start after a drop reached its limit
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM lowpri

#if !defined(LOWPRI_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LOWPRI_TRACE_H

#include <linux/tracepoint.h>
#include <net/sock.h>
#include <lbe/sock_trace.h>

DECLARE_EVENT_CLASS(lowpri_window,
	TP_PROTO(const struct sock *sk, u32 before_pkts, u32 after_pkts,
		 u32 limit_pkts),
	TP_ARGS(sk, before_pkts, after_pkts, limit_pkts),
	TP_STRUCT__entry(
		LBE_TRACE_SOCK_FIELDS
		__field(u32, before_pkts)
		__field(u32, after_pkts)
		__field(u32, limit_pkts)
	),
	TP_fast_assign(
		LBE_TRACE_SOCK_ASSIGN(sk);
		__entry->before_pkts = before_pkts;
		__entry->after_pkts = after_pkts;
		__entry->limit_pkts = limit_pkts;
	),
	TP_printk(LBE_TRACE_SOCK_FORMAT " before_pkts=%u after_pkts=%u limit_pkts=%u",
		  LBE_TRACE_SOCK_ARGS, __entry->before_pkts,
		  __entry->after_pkts, __entry->limit_pkts)
);

#define LOWPRI_EVENT(_name) \
DEFINE_EVENT(lowpri_window, _name, \
	TP_PROTO(const struct sock *sk, u32 before_pkts, u32 after_pkts, \
		 u32 limit_pkts), \
	TP_ARGS(sk, before_pkts, after_pkts, limit_pkts))

LOWPRI_EVENT(lowpri_drop);
LOWPRI_EVENT(lowpri_timeout);
LOWPRI_EVENT(lowpri_undo);
LOWPRI_EVENT(lowpri_regrown);

#endif /* LOWPRI_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE lowpri_trace
#include <trace/define_trace.h>
