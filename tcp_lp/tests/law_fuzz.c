// SPDX-License-Identifier: GPL-2.0
/*
 * "lp" and "lp_ecn" under peers that acknowledge anything at any time: the module's own source,
 * compiled with fake_tcp.h (test_fuzz.py does that).
 */
#include "fake_peer.h"

#define ACKS	500

static unsigned int state_of(const struct sock *sk)
{
	const struct lp *lp = inet_csk_ca(sk);

	must(lp->rest_rtts <= LP_REST_MAX_RTTS, "a rest, RTT", lp->rest_rtts);
	must(lp_margin_us(lp) <= max(lbe_delay_range_us(&lp->path), 66535U), "the margin, us",
	     lp_margin_us(lp));
	must(lbe_counters_of(sk)->flows.counter == 1, "flows", lbe_counters_of(sk)->flows.counter);
	must(lbe_counters_of(sk)->yielding.counter == lp->inference, "flows that give way",
	     lbe_counters_of(sk)->yielding.counter);
	if (lp->inference)
		return lp->floor ? 3 : 2;
	return lp_learnt(lp);
}

static void peer(void)
{
	static const struct tcp_congestion_ops *const all[] = { &tcp_lp, &tcp_lp_ecn };
	const struct tcp_congestion_ops *ops = all[draw(ARRAY_SIZE(all))];

	memset(pernet, 0, sizeof(pernet));
	draw_param(&delta_permille, 150);
	paper = one_in(4);
	tcp_live(ops, ACKS, state_of);
}
