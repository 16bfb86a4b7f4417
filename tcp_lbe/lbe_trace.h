/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of tcp_lbe.
 *
 *	lbe:lbe_ack	the state of the path after an ACK, and the ACK's sample
 *	lbe:lbe_state	the state of the path has changed, and the reason
 *	lbe:lbe_split	the flow contradicts the other flows of the path, and leaves it
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM lbe

#if !defined(LBE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LBE_TRACE_H

#include <linux/tracepoint.h>
#include <net/tcp.h>
#include <lbe/sock_trace.h>

#include "paths.h"

#define lbe_state_names					\
	{ LBE_START, "start" },				\
	{ LBE_CRUISE, "cruise" },			\
	{ LBE_FLOOR, "floor" },				\
	{ LBE_PROBE, "probe" }

#define lbe_reason_names				\
	{ LBE_NEW, "new" },				\
	{ LBE_QUEUE_FOUND, "queue_found" },		\
	{ LBE_QUEUE_JUMPED, "queue_jumped" },		\
	{ LBE_PATH_IDLE, "path_idle" },			\
	{ LBE_TRAIN_GREW, "train_grew" },		\
	{ LBE_TRAIN_PASSED, "train_passed" },		\
	{ LBE_ISOLATED, "isolated" },			\
	{ LBE_TRAIN_LOST, "train_lost" },		\
	{ LBE_INSPECT, "inspect" },			\
	{ LBE_SLOWER, "slower" },			\
	{ LBE_FASTER, "faster" },			\
	{ LBE_HEAVY_LOSS, "heavy_loss" },		\
	{ LBE_NOTHING_LEFT, "nothing_left" },		\
	{ LBE_SILENCE, "silence" },		\
	{ LBE_MEASURED, "measured" },			\
	{ LBE_QUEUE_LOST, "queue_lost" }

DECLARE_EVENT_CLASS(lbe_path,
	TP_PROTO(const struct sock *sk, const struct lbe_path *p, u32 delay_us, u32 rtt_us),
	TP_ARGS(sk, p, delay_us, rtt_us),
	TP_STRUCT__entry(
		LBE_TRACE_SOCK_FIELDS
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
		__field(u32, pairs)
		__field(u32, path_rtt_us)
	),
	TP_fast_assign(
		LBE_TRACE_SOCK_ASSIGN(sk);
		__entry->state = p->state;
		__entry->reason = p->reason;
		__entry->base_us = p->base_us;
		__entry->delay_us = delay_us;
		__entry->rtt_us = rtt_us;
		__entry->noise_us = p->noise_us;
		__entry->mu = p->mu;
		__entry->rate = p->rate;
		__entry->in_flight = p->in_flight;
		__entry->fails = p->fails;
		__entry->pairs = p->n;
		__entry->path_rtt_us = p->rtt_us;
	),
	TP_printk(LBE_TRACE_SOCK_FORMAT " state=%s reason=%s base_us=%u delay_us=%u rtt_us=%u noise_us=%u mu=%llu rate=%llu in_flight=%llu fails=%u pairs=%u path_rtt_us=%u",
		  LBE_TRACE_SOCK_ARGS,
		  __print_symbolic(__entry->state, lbe_state_names),
		  __print_symbolic(__entry->reason, lbe_reason_names),
		  __entry->base_us, __entry->delay_us, __entry->rtt_us,
		  __entry->noise_us, __entry->mu, __entry->rate, __entry->in_flight,
		  __entry->fails, __entry->pairs, __entry->path_rtt_us)
);

DEFINE_EVENT(lbe_path, lbe_ack,
	TP_PROTO(const struct sock *sk, const struct lbe_path *p, u32 delay_us, u32 rtt_us),
	TP_ARGS(sk, p, delay_us, rtt_us));
DEFINE_EVENT(lbe_path, lbe_state,
	TP_PROTO(const struct sock *sk, const struct lbe_path *p, u32 delay_us, u32 rtt_us),
	TP_ARGS(sk, p, delay_us, rtt_us));
DEFINE_EVENT(lbe_path, lbe_split,
	TP_PROTO(const struct sock *sk, const struct lbe_path *p, u32 delay_us, u32 rtt_us),
	TP_ARGS(sk, p, delay_us, rtt_us));

#endif /* LBE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE lbe_trace
#include <trace/define_trace.h>
