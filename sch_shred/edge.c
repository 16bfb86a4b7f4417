// SPDX-License-Identifier: GPL-2.0
/*
 * shred_hint at an edge router: one byte counter a flow (age.h).
 *
 * A packet that comes without a hint gets its flow's age. With police a hint
 * that says less than the flow's age is overwritten with it, in every packet and
 * of whatever protocol: there is nothing to wait for, since the count is exact.
 *
 * Flows are told apart by addresses, protocol and ports. Fragments after the
 * first, and so all of them, count as a flow of their own between the two hosts.
 * A flow that has no room in the table is the oldest with police, and gets no
 * hint without.
 *
 * Locking: flows are looked up under RCU and freed after a grace period. The
 * packets of a flow may be on several CPUs; its lock is its own.
 */

#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/flow_dissector.h>
#include <net/ipv6.h>

#include "age.h"
#include "writer.h"

/* Idle flows are looked for this often. */
#define SHRED_SWEEP		(5 * HZ)

struct shred_flow_key {
	struct in6_addr saddr;	/* IPv4: mapped */
	struct in6_addr daddr;
	__be32 ports;		/* 0 of protocols without */
	u32 protocol;
};

struct shred_flow {
	struct rhash_head node;
	struct shred_flow_key key;
	spinlock_t lock;	/* of age */
	struct shred_age age;	/* the sweep reads last_ms without the lock */
	struct rcu_head rcu;
};

static const struct rhashtable_params shred_flow_params = {
	.key_len	= sizeof(struct shred_flow_key),
	.key_offset	= offsetof(struct shred_flow, key),
	.head_offset	= offsetof(struct shred_flow, node),
	.automatic_shrinking = true,
};

static u32 shred_now_ms(void)
{
	return jiffies_to_msecs(jiffies);
}

/* ---- one packet ---- */

/* Payload, so that acknowledgements do not make a flow old. */
static u32 shred_payload(const struct sk_buff *skb, const struct flow_keys *keys)
{
	int header = keys->control.thoff;
	struct tcphdr buf;
	const struct tcphdr *th;

	if (keys->control.flags & FLOW_DIS_IS_FRAGMENT)
		return skb->len;
	if (keys->basic.ip_proto == IPPROTO_TCP) {
		th = skb_header_pointer(skb, header, sizeof(buf), &buf);
		header += th ? th->doff * 4 : 0;
	} else if (keys->basic.ip_proto == IPPROTO_UDP) {
		header += sizeof(struct udphdr);
	}
	return (int)skb->len > header ? skb->len - header : 0;
}

static bool shred_key(const struct sk_buff *skb, int family, struct flow_keys *keys,
		      struct shred_flow_key *key)
{
	if (!skb_flow_dissect_flow_keys(skb, keys, FLOW_DISSECTOR_F_STOP_AT_ENCAP))
		return false;
	memset(key, 0, sizeof(*key));
	if (family == NFPROTO_IPV4) {
		ipv6_addr_set_v4mapped(keys->addrs.v4addrs.src, &key->saddr);
		ipv6_addr_set_v4mapped(keys->addrs.v4addrs.dst, &key->daddr);
	} else {
		key->saddr = keys->addrs.v6addrs.src;
		key->daddr = keys->addrs.v6addrs.dst;
	}
	key->ports = keys->ports.ports;
	key->protocol = keys->basic.ip_proto;
	return true;
}

/* ---- flows ---- */

static struct shred_flow *shred_flow_add(struct shred_hint_net *hn,
					 const struct shred_flow_key *key)
{
	struct shred_flow *flow, *old;

	if (atomic_inc_return(&hn->n_flows) > (int)READ_ONCE(hn->max_flows))
		goto undo;
	flow = kzalloc(sizeof(*flow), GFP_ATOMIC | __GFP_NOWARN);
	if (!flow)
		goto undo;
	flow->key = *key;
	spin_lock_init(&flow->lock);
	flow->age.last_ms = shred_now_ms();
	old = rhashtable_lookup_get_insert_fast(&hn->flows, &flow->node, shred_flow_params);
	if (!old) {
		if (!delayed_work_pending(&hn->sweep))
			schedule_delayed_work(&hn->sweep, SHRED_SWEEP);
		return flow;
	}
	kfree(flow);
	atomic_dec(&hn->n_flows);
	return IS_ERR(old) ? NULL : old;
undo:
	atomic_dec(&hn->n_flows);
	return NULL;
}

static void shred_sweep(struct work_struct *work)
{
	struct shred_hint_net *hn = container_of(to_delayed_work(work),
						 struct shred_hint_net, sweep);
	u32 now_ms = shred_now_ms();
	struct rhashtable_iter iter;
	struct shred_flow *flow;

	rhashtable_walk_enter(&hn->flows, &iter);
	rhashtable_walk_start(&iter);
	while ((flow = rhashtable_walk_next(&iter))) {
		if (IS_ERR(flow))
			continue;	/* the table grew under the walk: it starts over */
		/* it would begin anew: it may as well be forgotten */
		if ((s32)(now_ms - READ_ONCE(flow->age.last_ms)) <= (s32)SHRED_IDLE_MS ||
		    rhashtable_remove_fast(&hn->flows, &flow->node, shred_flow_params))
			continue;
		atomic_dec(&hn->n_flows);
		kfree_rcu(flow, rcu);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
	if (atomic_read(&hn->n_flows))
		schedule_delayed_work(&hn->sweep, SHRED_SWEEP);
}

/* What the packet's flow has sent before, bytes; U64_MAX when it has no room in the table. */
static u64 shred_edge_age(struct shred_hint_net *hn, const struct sk_buff *skb, int family)
{
	struct shred_flow_key key;
	struct shred_flow *flow;
	struct flow_keys keys;
	u64 age_bytes;

	if (!shred_key(skb, family, &keys, &key))
		return U64_MAX;
	flow = rhashtable_lookup(&hn->flows, &key, shred_flow_params) ?:
	       shred_flow_add(hn, &key);
	if (!flow) {
		shred_hint_count(hn, SHRED_TABLE_FULL);
		return U64_MAX;
	}
	spin_lock_bh(&flow->lock);
	age_bytes = shred_age_count(&flow->age, shred_payload(skb, &keys), shred_now_ms());
	spin_unlock_bh(&flow->lock);
	return age_bytes;
}

/* ---- the hint ---- */

/* What the packet should say; 0 = nothing, as its flow has no room. Under RCU. */
u32 shred_edge_hint(struct shred_hint_net *hn, const struct sk_buff *skb, int family, u8 mode)
{
	u64 age_bytes = shred_edge_age(hn, skb, family);

	if (age_bytes == U64_MAX && !READ_ONCE(hn->police))
		return 0;
	/* the paper's coding carries any number that is larger for longer flows: units */
	if (mode == SHRED_HINT_TOS)
		return shred_hint_clamp(min_t(u64, age_bytes >> SHRED_AGE_UNIT_LOG, U32_MAX));
	return 1U << shred_age_class(age_bytes);
}

unsigned int shred_edge_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct shred_hint_net *hn = shred_hint_pernet(state->net);
	u8 mode = READ_ONCE(hn->mode), tos;
	u32 claim, hint;

	if (mode == SHRED_HINT_OFF || !shred_device_wanted(hn, state->out))
		return NF_ACCEPT;
	tos = shred_packet_tos(skb, state->pf);
	claim = shred_hint_read(mode, tos);
	if (!claim && tos & ~SHRED_ECN_MASK) {
		shred_hint_count(hn, SHRED_SKIPPED);
		return NF_ACCEPT;
	}
	hint = claim && !READ_ONCE(hn->police) ? 0 : shred_edge_hint(hn, skb, state->pf, mode);
	if (claim >= hint) {
		if (claim)
			shred_hint_count(hn, SHRED_KEPT);
		return NF_ACCEPT;
	}
	if (shred_packet_write(skb, state->pf, mode, hint))
		shred_hint_count(hn, claim ? SHRED_OVERWRITTEN : SHRED_WRITTEN_EDGE);
	return NF_ACCEPT;
}

/* ---- a namespace comes and goes ---- */

int shred_edge_init(struct shred_hint_net *hn)
{
	INIT_DELAYED_WORK(&hn->sweep, shred_sweep);
	return rhashtable_init(&hn->flows, &shred_flow_params);
}

static void shred_flow_free(void *flow, void *unused)
{
	kfree(flow);
}

/* After the hooks are gone. */
void shred_edge_free(struct shred_hint_net *hn)
{
	cancel_delayed_work_sync(&hn->sweep);
	rhashtable_free_and_destroy(&hn->flows, shred_flow_free, NULL);
}
