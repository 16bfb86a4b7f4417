// SPDX-License-Identifier: GPL-2.0
/*
 * "ledbatpp": LEDBAT++ (P. Balasubramanian, O. Ertugay, D. Havey, M. Bagnulo:
 * LEDBAT++: Congestion Control for Background Traffic, draft-irtf-iccrg-
 * ledbat-plus-plus) as a TCP congestion control.
 *
 * The law is in ledbat_law.h. What it mends in LEDBAT: flows agree on a fair
 * share (additive increase, multiplicative decrease), and slowdowns empty the
 * queue often enough for all of them to know the same base delay.
 *
 * How this differs from the draft, or where the draft is silent:
 *  - A ramp after a slowdown is standard slow start, not scaled by GAIN: at
 *    1/6 it takes 20 round trips back to 50 packets. It ends early only above
 *    the target.
 *  - Slow start leaves with the window that the target allows, not with all
 *    that was added before the delay came back.
 *  - Two slowdowns are at least a second apart.
 *  - At the least window the flow rests between round trips (rest_max_rtts).
 *  - A long delay that stood still for a minute is taken for the path's.
 *  - The target gives way to the depth of the buffer (pp_depth_percent).
 *  - After a time-out with an empty queue ssthresh is half of what the path
 *    carried of late.
 */
#include <linux/module.h>

#include "flow.h"

static void ledbatpp_control(struct sock *sk, struct ledbat *f, u32 divisor,
			     u32 acked)
{
	struct ledbat_window w = {
		.cwnd = tcp_snd_cwnd(tcp_sk(sk)),
		.part_q32 = f->part_q32,
	};
	u32 floor = f->params.min_pkts;
	s64 rate_q32 = w.cwnd < floor ? 1LL << 32 :
		       ledbatpp_rate_q32(&w, f->queue_us, f->aim_us, divisor,
					 f->params.gain_q16);

	if (!ledbat_feels_window(sk, f) ||
	    ledbat_rest(sk, f, &w, floor, rate_q32) ||
	    (rate_q32 > 0 && !tcp_is_cwnd_limited(sk)))
		return;
	ledbat_window_add(&w, ledbat_per_ack_q32(rate_q32, acked, &w), floor);
	ledbat_steer_window(sk, f, &w);
}

static void ledbatpp_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct ledbat *f = ledbat_heard(sk, acked);
	u32 divisor;

	if (!f)
		return;
	divisor = ledbatpp_divisor(f->params.target_us, f->base_us);
	acked = ledbat_before_law(sk, f, acked, divisor);
	if (acked)
		ledbatpp_control(sk, f, divisor, acked);
}

LEDBAT_OPS(ledbatpp);
