/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suite's delay-based congestion controls have in common: the beginning of a flow, each
 * ACK, and the end, when another control takes over.
 *
 * One file of a module includes this header, and defines LBE_COUNTERS_FILE before that
 * (counters.h). The module then has the parameter "mark" (mark.h).
 */
#ifndef LBE_CONTROL_H
#define LBE_CONTROL_H

#include <linux/init.h>

#include <lbe/counters.h>
#include <lbe/mark.h>
#include <lbe/path_delay.h>
#include <lbe/sender.h>

LBE_MARK_PARAM();

/* A flow begins. @paces: TCP is to pace it. Return: the argument @marked of lbe_control_end(). */
static u8 __maybe_unused lbe_control_begin(struct sock *sk, bool paces)
{
	if (paces)
		lbe_pacing_begin(sk);
	lbe_counters_join(sk);
	return READ_ONCE(mark) ? lbe_mark_set(sk) : 0;
}

/* Another control takes over. It begins at once, and with ssthresh as on a new connection: ssthresh
 * is the window at which this flow gave way to other traffic, or after a loss half of a window that
 * had given way, which is no limit for a flow that does not give way. @yielding: this flow gives
 * way now, for the counters.
 */
static void __maybe_unused lbe_control_end(struct sock *sk, bool paces, bool yielding,
					   u8 marked)
{
	lbe_counters_leave(sk, yielding);
	lbe_mark_clear(sk, marked);
	lbe_rest_cancel(sk);
	if (paces)
		lbe_pacing_end(sk);
	WRITE_ONCE(tcp_sk(sk)->snd_ssthresh, TCP_INFINITE_SSTHRESH);
}

static inline u32 lbe_now_ms(const struct sock *sk)
{
	return div_u64(tcp_sk(sk)->tcp_mstamp, USEC_PER_MSEC);
}

/* Was the packet alone in flight? Its receiver may have delayed the ACK. */
static inline bool lbe_ack_is_lone(const struct sock *sk, const struct ack_sample *sample)
{
	return sample->pkts_acked <= 1 && sample->in_flight <= tcp_sk(sk)->mss_cache;
}

/* Take in an ACK by lbe_delay_ack(), if it is of data that was sent once. Return: false if it gives
 * no sample.
 */
static inline bool lbe_hears(struct sock *sk, struct lbe_path_delay *path, bool round_trip,
			     const struct ack_sample *sample, struct lbe_delay_sample *told)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct lbe_delay_ack ack = {
		.owd = lbe_owd_ack_of(tp, max_t(s32, sample->rtt_us, 1)),
		.pkts = sample->pkts_acked,
		.round_trip = round_trip,
	};

	if (sample->rtt_us < 0 || !lbe_ack_is_original(sk))
		return false;
	lbe_delay_delivered(path, tp->rate_delivered, tp->rate_interval_us);
	return lbe_delay_ack(path, &ack, told);
}

#endif /* LBE_CONTROL_H */
