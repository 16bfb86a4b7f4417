// SPDX-License-Identifier: GPL-2.0
/*
 * "ledbat" and "ledbatpp" under peers that acknowledge anything at any time: the module's own
 * source, compiled with fake_tcp.h (test_fuzz.py does that).
 */
#include "fake_peer.h"

#define ACKS	500

static unsigned int state_of(const struct sock *sk)
{
	const struct ledbat *f = inet_csk_ca(sk);

	must(f->mode != LEDBAT_AVOID || f->queue_us <= LEDBAT_DELAY_MAX_US, "the queue, us",
	     f->queue_us);
	must(f->rest_rtts <= LEDBAT_REST_MAX_RTTS, "a rest, RTT", f->rest_rtts);
	must(lbe_counters_of(sk)->flows.counter == 1, "flows", lbe_counters_of(sk)->flows.counter);
	return f->rest_rtts ? 4 : f->mode;
}

static void peer(void)
{
	const struct tcp_congestion_ops *ops = draw(2) ? &ledbat_ops : &ledbatpp_ops;

	memset(pernet, 0, sizeof(pernet));
	draw_param(&target_us, 25000);
	draw_param(&gain_percent, 100);
	draw_param(&share_permille, 50);
	draw_param(&pp_target_us, 60000);
	draw_param(&min_window, 2);
	round_trip = one_in(8);
	paper = one_in(4);
	tcp_live(ops, ACKS, state_of);
}
