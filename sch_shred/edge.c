// SPDX-License-Identifier: GPL-2.0
/*
 * shred_hint at an edge router.
 *
 * A packet that arrives without a hint gets its flow's age. With police, a hint that
 * says less than the flow's age is overwritten with that age, in every packet of every
 * protocol, since the count is exact. A packet that carries another DSCP is not changed.
 *
 * Police is on unless switched off: a host that writes no hints answers for a connection
 * that is gone with the TOS byte of the packet that it answers. Where that says the youngest
 * age, a reset that is believed overtakes the data of its connection, which is then lost.
 */

#include "writer.h"

unsigned int shred_edge_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct shred_hint_net *hn = shred_hint_pernet(state->net);
	u8 mode = READ_ONCE(hn->set[SHRED_MODE]), tos;
	u32 claim, hint = 0;

	if (mode == SHRED_HINT_OFF || !READ_ONCE(hn->set[SHRED_EDGE]) ||
	    !shred_device_wanted(hn, state->out))
		return NF_ACCEPT;
	tos = shred_packet_tos(skb, state->pf);
	claim = shred_hint_read(mode, tos);
	if (!claim && tos & ~SHRED_ECN_MASK) {
		shred_hint_count(hn, SHRED_SKIPPED);
		return NF_ACCEPT;
	}
	if (!claim || READ_ONCE(hn->set[SHRED_POLICE]))
		hint = shred_flow_hint(hn, skb, state->pf, mode);
	if (claim < hint)
		shred_packet_write(hn, skb, state->pf, mode, hint,
				   claim ? SHRED_OVERWRITTEN : SHRED_WRITTEN_EDGE);
	else
		shred_hint_count(hn, SHRED_KEPT);
	return NF_ACCEPT;
}
