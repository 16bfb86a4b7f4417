// SPDX-License-Identifier: GPL-2.0
/*
 * "ledbat": RFC 6817 (S. Shalunov, G. Hazel, J. Iyengar, M. Kuehlewind: Low
 * Extra Delay Background Transport, 2012) as a TCP congestion control.
 *
 * The law is in ledbat_law.h. Analysis beside TCP: A. J. Abu, S. Gordon,
 * "Performance Analysis of LEDBAT in the Presence of TCP-Newreno". Theirs is
 * target_us=25000 gain_percent=100 decrease_percent=0 min_window=1
 * depth_percent=0.
 *
 * How this differs from the RFC:
 *  - The decrease is larger than the increase: the packets a flow has in the
 *    queue beyond the target go within a round trip (decrease_percent).
 *  - Slow start, which the RFC leaves open, ends on delay, with the window that
 *    the target allows.
 *  - The flight clamp looks at the most that was in flight during the last two
 *    round trips and binds only a flow that TCP does not find limited by its
 *    window. Taken at each ACK by itself it strangles long paths.
 *  - The target gives way to the depth of the buffer (depth_percent): where the
 *    two are about the same, TCP would starve.
 *  - As the delay of the reverse path changes, the window follows, so that the
 *    rate does not.
 *  - A base delay that was not met again for the length of its history is read
 *    again by a slowdown of two round trips, else the flow's own queue becomes
 *    its base delay (base_refresh). So is one that the round trip contradicts
 *    for a minute (the peer's clock runs slow), and one beside which the reverse
 *    path became shorter at once (the route changed).
 *  - After a time-out with an empty queue ssthresh is half of what the path
 *    carried of late.
 *  - At the least window the flow rests between round trips (rest_max_rtts).
 *  - A long delay that stood still for a minute is taken for the path's.
 *  - min_window=dynamic.
 *
 * Does not: cure the latecomer's advantage (ledbatpp does), nor stay behind a
 * TCP flow that never lets the queue reach the target (AQM).
 */
#include <linux/module.h>

#include "flow.h"

/* A base delay older than this may be the peer's clock, us. At 200 ppm clocks
 * drift 12 ms in that time.
 */
#define LEDBAT_DRIFT_US		(60ULL * USEC_PER_SEC)

/* Does the round trip know of a queue that the one-way delay does not? It is
 * the reverse path's, or the peer's clock drifts.
 */
static bool ledbat_clock_doubtful(const struct ledbat *f)
{
	return f->rtt_us - f->base_us > f->queue_us + f->params.target_us / 2;
}

/* Plan to read the base delay again before its history forgets it. */
static void ledbat_plan_refresh(struct ledbat *f)
{
	u64 pause_us = max(f->params.history_min - 1, 1) *
		       (u64)LEDBAT_SLOT_S * USEC_PER_SEC;

	if (!f->params.slowdowns || f->slowdown.mode != LEDBAT_AVOID ||
	    f->slowdown.next_us <= f->now_us)
		return;
	if (f->params.signal == LEDBAT_SIGNAL_OWD && ledbat_clock_doubtful(f))
		pause_us = LEDBAT_DRIFT_US;
	f->slowdown.next_us = f->base_seen_us + pause_us;
}

static u32 ledbat_floor(const struct sock *sk, const struct ledbat *f)
{
	if (!f->host)
		return f->params.min_pkts;
	return ledbat_host_floor_pkts(f->host, sk, &f->params);
}

/* Below the minimum window (after a loss, or as the minimum grows) the window
 * rises as Reno's does, whatever the delay.
 */
static s64 ledbat_change_q32(const struct sock *sk, const struct ledbat *f,
			     const struct ledbat_window *w, u32 floor)
{
	if (w->cwnd < floor)
		return 1LL << 32;
	return ledbat_rate_q32(w, f->queue_us, f->aim_us, ledbat_srtt_us(sk),
			       f->params.gain_q16, f->params.decrease_q16);
}

/* What the reverse path's delay has done to the rate since the last ACK. */
static s64 ledbat_follow_reverse_q32(const struct sock *sk, struct ledbat *f,
				     const struct ledbat_window *w, u32 acked)
{
	u32 reverse_us = f->reverse_q3 >> LEDBAT_REVERSE_SHIFT;
	s32 change_us = reverse_us - f->reverse_felt_us;

	f->reverse_felt_us = reverse_us;
	return ledbat_reverse_q32(w, change_us, ledbat_srtt_us(sk), acked);
}

static void ledbat_control(struct sock *sk, struct ledbat *f, u32 acked)
{
	struct ledbat_window w = {
		.cwnd = tcp_snd_cwnd(tcp_sk(sk)),
		.part_q32 = f->part_q32,
	};
	bool limited = tcp_is_cwnd_limited(sk);
	u32 floor = ledbat_floor(sk, f);
	s64 rate_q32 = ledbat_change_q32(sk, f, &w, floor);
	s64 follow_q32 = ledbat_follow_reverse_q32(sk, f, &w, acked);

	if (!ledbat_feels_window(sk, f) ||
	    ledbat_rest(sk, f, &w, floor, rate_q32))
		return;
	if (rate_q32 < 0 || limited)
		ledbat_window_add(&w, ledbat_per_ack_q32(rate_q32, acked, &w),
				  floor);
	if (follow_q32 < 0 || limited)
		ledbat_window_add(&w, follow_q32, floor);
	if (!limited)
		ledbat_clamp(&w, max(f->flight_pkts[0], f->flight_pkts[1]),
			     f->params.allowed_increase_pkts,
			     f->params.min_pkts);
	ledbat_steer_window(sk, f, &w);
}

static void ledbat_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct ledbat *f = ledbat_heard(sk, acked);

	if (!f)
		return;
	ledbat_plan_refresh(f);
	acked = ledbat_before_law(sk, f, acked, 1);
	if (acked)
		ledbat_control(sk, f, acked);
}

LEDBAT_OPS(ledbat);
