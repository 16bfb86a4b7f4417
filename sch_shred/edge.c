// SPDX-License-Identifier: GPL-2.0
/*
 * shred_hint at an edge router.
 *
 * A packet that arrives without a hint gets its flow's age. With police, a hint that is
 * less than the flow's age is replaced by that age, in every packet of every protocol:
 * the edge's count is exact. A packet that carries another DSCP is not changed.
 *
 * Police is on by default because of resets: if a connection no longer exists, a host that
 * writes no hints sends its reset with the TOS byte of the packet that it answers. If that
 * byte carries the youngest age and the edge keeps it, the reset overtakes the connection's
 * data, and the receiver discards this data.
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
