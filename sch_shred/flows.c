// SPDX-License-Identifier: GPL-2.0
/*
 * shred_hint's table: bytes sent by each flow and each pair of hosts (age.h).
 *
 * The table has a fixed number of buckets, selected by a keyed hash that other hosts cannot
 * predict. If all entries of a bucket belong to active flows, a further flow has no entry and
 * is treated as one of the oldest. With a probability of 2^-31 a flow shares the entry of
 * another flow in its bucket; its age is then too large.
 *
 * A flow is identified by addresses, protocol and ports. All fragments between two hosts
 * count as one flow, since fragments after the first have no ports.
 * A pair is identified by its two addresses, with IPv6 by their upper halves, since a host
 * can choose the lower half freely.
 */

#include <linux/net.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/flow_dissector.h>
#include <net/ipv6.h>

#include "writer.h"

struct shred_flow_key {
	struct in6_addr saddr;	/* IPv4: mapped */
	struct in6_addr daddr;
	__be32 ports;		/* 0 for protocols without ports, and for a pair */
	u32 protocol;		/* 0 for a pair */
};

static u32 shred_now_ms(void)
{
	return jiffies_to_msecs(jiffies);
}

/* Count a packet. Return: bytes that the flow sent before, or the pair's debt; U32_MAX if there
 * is no free entry.
 */
u32 shred_flow_count(struct shred_hint_net *hn, u64 hash, bool pair, u32 payload_bytes,
		     u32 least_bytes)
{
	struct shred_bucket *bucket = &hn->buckets[hash >> (64 - SHRED_BUCKETS_LOG)];
	u32 before_bytes;

	spin_lock_bh(&bucket->lock);
	before_bytes = shred_age_count(bucket->ages, shred_age_tag(hash, pair), payload_bytes,
				       least_bytes, shred_now_ms());
	spin_unlock_bh(&bucket->lock);
	if (before_bytes == U32_MAX)
		shred_hint_count(hn, SHRED_TABLE_FULL);
	return before_bytes;
}

/* ---- flows identified by packet headers ---- */

static bool shred_dissect(const struct sk_buff *skb, int family, struct flow_keys *keys,
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

/* Only payload counts, so that ACKs do not raise a flow's age. */
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

static u64 shred_hash(const struct shred_flow_key *key)
{
	static siphash_aligned_key_t secret;

	net_get_random_once(&secret, sizeof(secret));
	return siphash(key, sizeof(*key), &secret);
}

/* The least age of a flow, from the debt of its pair of hosts. */
static u32 shred_pair_age(struct shred_hint_net *hn, struct shred_flow_key pair, int family,
			  u32 payload_bytes)
{
	u32 debt_bytes;

	pair.ports = 0;
	pair.protocol = 0;
	if (family == NFPROTO_IPV6) {
		memset(&pair.saddr.s6_addr32[2], 0, 8);
		memset(&pair.daddr.s6_addr32[2], 0, 8);
	}
	debt_bytes = shred_flow_count(hn, shred_hash(&pair), true, payload_bytes, 0);
	return min_t(u32, debt_bytes, SHRED_AGE_MAX) / SHRED_PAIR_SHARE;
}

/* Count the packet. Return: the hint for its flow's age. */
u32 shred_flow_hint(struct shred_hint_net *hn, const struct sk_buff *skb, int family, u8 mode)
{
	u32 age_bytes = U32_MAX, least_bytes = 0, payload_bytes;
	struct shred_flow_key key;
	struct flow_keys keys;

	if (shred_dissect(skb, family, &keys, &key)) {
		payload_bytes = shred_payload(skb, &keys);
		if (READ_ONCE(hn->set[SHRED_POLICE]) > 1)
			least_bytes = shred_pair_age(hn, key, family, payload_bytes);
		age_bytes = shred_flow_count(hn, shred_hash(&key), false, payload_bytes,
					     least_bytes);
	}
	/* the paper permits any mapping that increases with the flow's length: use units */
	if (mode == SHRED_HINT_TOS)
		return shred_hint_clamp(age_bytes >> SHRED_AGE_UNIT_LOG);
	return 1U << shred_age_class(age_bytes);
}

/* ---- the table ---- */

/* Called before the hooks are registered. The table then exists until the namespace exits. */
int shred_flows_prepare(struct shred_hint_net *hn)
{
	struct shred_bucket *buckets = hn->buckets;
	unsigned int i;

	if (buckets)
		return 0;
	buckets = kvcalloc(SHRED_BUCKETS, sizeof(*buckets), GFP_KERNEL_ACCOUNT);
	if (!buckets)
		return -ENOMEM;
	for (i = 0; i < SHRED_BUCKETS; i++)
		spin_lock_init(&buckets[i].lock);
	smp_store_release(&hn->buckets, buckets);	/* shred_flows_known() may be reading */
	return 0;
}

/* Number of flows and pairs whose age or debt is not 0; approximate, as no lock is held. */
unsigned int shred_flows_known(const struct shred_hint_net *hn)
{
	const struct shred_bucket *buckets = READ_ONCE(hn->buckets);
	unsigned int known = 0, i;

	for (i = 0; buckets && i < SHRED_BUCKETS * SHRED_WAYS; i++)
		known += !!shred_age_left(&buckets[i / SHRED_WAYS].ages[i % SHRED_WAYS],
					  shred_now_ms());
	return known;
}
