// SPDX-License-Identifier: GPL-2.0
/*
 * The LowPri family under peers that acknowledge anything at any time: the module's own source but
 * for the choice of variants, compiled with fake_tcp.h (test_fuzz.py does that).
 */
#include "fake_peer.h"

#define ACKS	500

static unsigned int state_of(const struct sock *sk)
{
	const struct lowpri *ca = inet_csk_ca(sk);

	must(ca->part_q16 < LBE_ONE_Q16, "a part of a packet", ca->part_q16);
	must(lbe_counters_of(sk)->flows.counter == 1, "flows", lbe_counters_of(sk)->flows.counter);
	if (ca->before_pkts || ca->lift)
		return 1;
	return ca->growing_back ? 2 : 0;
}

static void peer(void)
{
	u32 number = (u32)draw(ARRAY_SIZE(lowpri_laws));

	memset(pernet, 0, sizeof(pernet));
	timeout_keep_percent = (u32)draw(101);
	lowpri_ops[number] = lowpri_template;
	tcp_live(&lowpri_ops[number], ACKS, state_of);
}
