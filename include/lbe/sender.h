/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions on sockets that the suite's congestion controls share: which ACKs may be used for a
 * delay, and how a rest or pacing begins and ends.
 *
 * The caller of each function holds the socket lock.
 */
#ifndef LBE_SENDER_H
#define LBE_SENDER_H

#include <linux/hrtimer.h>
#include <net/tcp.h>

#include <lbe/info.h>
#include <lbe/owd.h>

/**
 * lbe_ack_is_original - may the delay of this ACK be a least delay?
 * @sk: socket, in pkts_acked()
 *
 * When retransmitted data is acknowledged, TCP takes the round trip from timestamps of
 * whole milliseconds, so that it may be up to one millisecond too short. Retransmissions
 * are acknowledged in the states Recovery and Loss, and after a tail loss probe.
 */
static inline bool lbe_ack_is_original(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state <= TCP_CA_CWR &&
	       !tcp_sk(sk)->tlp_high_seq;
}

static inline u32 lbe_srtt_us(const struct tcp_sock *tp)
{
	return max_t(u32, tp->srtt_us >> 3, 1);
}

/* The latest ACK, in the form that lbe_owd_update() takes */
static inline struct lbe_owd_ack lbe_owd_ack_of(const struct tcp_sock *tp, u32 rtt_us)
{
	return (struct lbe_owd_ack) {
		.now_us = tp->tcp_mstamp,
		.tsval = tp->rx_opt.rcv_tsval,
		.rtt_us = rtt_us,
		.min_rtt_us = min(tcp_min_rtt(tp), rtt_us),
		.has_tsval = tp->rx_opt.saw_tstamp,
	};
}

/**
 * lbe_rest - send the next packet only after a rest
 * @sk: socket
 * @rest_us: length of the rest from now on, us
 *
 * This sets the departure time of the next packet, for which pacing (TCP's or sch_fq's)
 * waits.
 */
static inline void lbe_rest(struct sock *sk, u32 rest_us)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->tcp_wstamp_ns = max(tp->tcp_wstamp_ns, tp->tcp_clock_cache +
						   (u64)rest_us * NSEC_PER_USEC);
}

/**
 * lbe_rest_cancel - end a rest: another congestion control takes over
 * @sk: socket
 *
 * A timer that waits for the end of the rest fires at once. It holds a reference to the
 * socket. Only if it is stopped here is it started again, with the same reference; if the
 * socket is being destroyed, it is stopped already.
 */
static inline void lbe_rest_cancel(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, tcp_clock_ns());
	if (hrtimer_try_to_cancel(&tp->pacing_timer) == 1)
		hrtimer_start(&tp->pacing_timer, 0, HRTIMER_MODE_ABS_PINNED_SOFT);
}

/* Let TCP pace the socket. */
static inline void lbe_pacing_begin(struct sock *sk)
{
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

/* Another control takes over: end pacing, unless the application has set a rate. A control
 * that needs pacing enables it itself.
 */
static inline void lbe_pacing_end(struct sock *sk)
{
	if (READ_ONCE(sk->sk_max_pacing_rate) == ~0UL)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
}

#endif /* LBE_SENDER_H */
