// SPDX-License-Identifier: GPL-2.0
/*
 * The two netfilter hooks: data on its way in, windows on their way out.
 *
 * LOCAL_IN runs last, after filters and address translation, so it sees what
 * TCP gets with the addresses that TCP knows. LOCAL_OUT runs first, so that it
 * sees TCP's own addresses too, and so that connection tracking judges by the
 * window that goes on the wire.
 *
 * Neither drops anything. What cannot be read or rewritten (a header that is
 * not there, no memory) passes as TCP made it.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/checksum.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "vulture.h"
#include "trace.h"
#include "wire.h"

/* Largest TCP header: data offset of 15 words. */
#define VULTURE_HEADER_MAX	60

/* A TCP header in reach: its place in the packet, and a readable copy. */
struct vulture_header {
	unsigned int offset;		/* from skb->data */
	const struct tcphdr *th;
	u8 buf[VULTURE_HEADER_MAX];	/* where th points if not linear */
};

static bool vulture_read_ipv4(const struct sk_buff *skb, bool in,
			      struct vulture_key *key, unsigned int *offset)
{
	const struct iphdr *iph = ip_hdr(skb);

	if (iph->protocol != IPPROTO_TCP || ip_is_fragment(iph))
		return false;
	key->family = AF_INET;
	key->local[0] = in ? iph->daddr : iph->saddr;
	key->remote[0] = in ? iph->saddr : iph->daddr;
	*offset = skb_network_offset(skb) + iph->ihl * 4;
	return true;
}

static bool vulture_read_ipv6(const struct sk_buff *skb, bool in,
			      struct vulture_key *key, unsigned int *offset)
{
#if IS_ENABLED(CONFIG_IPV6)
	const struct ipv6hdr *iph = ipv6_hdr(skb);
	unsigned short fragment = 0;

	*offset = 0;
	if (ipv6_find_hdr(skb, offset, IPPROTO_TCP, &fragment, NULL) < 0 || fragment)
		return false;
	key->family = AF_INET6;
	memcpy(key->local, in ? &iph->daddr : &iph->saddr, sizeof(key->local));
	memcpy(key->remote, in ? &iph->saddr : &iph->daddr, sizeof(key->remote));
	return true;
#else
	return false;
#endif
}

/* Addresses and TCP header of a packet; false if it is none of ours to read. */
static bool vulture_read(const struct sk_buff *skb, u8 pf, bool in,
			 struct vulture_key *key, struct vulture_header *h)
{
	unsigned int length;
	bool tcp;

	memset(key, 0, sizeof(*key));
	if (pf == NFPROTO_IPV4)
		tcp = vulture_read_ipv4(skb, in, key, &h->offset);
	else
		tcp = vulture_read_ipv6(skb, in, key, &h->offset);
	if (!tcp)
		return false;
	h->th = skb_header_pointer(skb, h->offset, sizeof(struct tcphdr), h->buf);
	if (!h->th)
		return false;
	length = h->th->doff * 4;
	if (length < sizeof(struct tcphdr))
		return false;
	h->th = skb_header_pointer(skb, h->offset, length, h->buf);
	if (!h->th)
		return false;
	key->local_port = in ? h->th->dest : h->th->source;
	key->remote_port = in ? h->th->source : h->th->dest;
	return true;
}

/* The timestamps of a header; false if it has none or is signed. */
static bool vulture_timestamps(const struct tcphdr *th, u32 *tsval, u32 *tsecr)
{
	return wire_timestamps((const u8 *)(th + 1), (const u8 *)th + th->doff * 4, tsval, tsecr);
}

static bool vulture_is_ce(const struct sk_buff *skb, u8 pf)
{
	return INET_ECN_is_ce(pf == NFPROTO_IPV4 ? ip_hdr(skb)->tos :
			      ipv6_get_dsfield(ipv6_hdr(skb)));
}

/* Does TCP take this segment? Else it is stray or forged, and tells nothing. */
static bool vulture_in_window(const struct vulture_flow *flow, u32 seq, u32 bytes)
{
	u32 end = seq + bytes;

	return !flow->seen_out || !after(end, flow->edge_seq) ||
	       !after(end, flow->ack_seq + flow->own_bytes);
}

/* Packets on the wire that this buffer stands for. */
static u32 vulture_segments(const struct sk_buff *skb, u32 bytes)
{
	u32 size = skb_shinfo(skb)->gso_size;

	return size ? DIV_ROUND_UP(bytes, size) : 1;
}

static unsigned int vulture_in(void *priv, struct sk_buff *skb,
			       const struct nf_hook_state *state)
{
	struct vulture_header h;
	struct vulture_flow *flow;
	struct vulture_key key;
	struct rwnd_data data;

	if (!vulture_read(skb, state->pf, true, &key, &h))
		return NF_ACCEPT;
	flow = vulture_flow_lookup(vulture_net(state->net), &key);
	if (!flow || h.th->syn || h.th->rst ||
	    skb->len <= h.offset + h.th->doff * 4 ||
	    !vulture_timestamps(h.th, &data.tsval, &data.tsecr) ||
	    nf_checksum(skb, state->hook, h.offset, IPPROTO_TCP, state->pf))
		return NF_ACCEPT;

	data.now_us = vulture_now_us();
	data.seq = ntohl(h.th->seq);
	data.bytes = skb->len - h.offset - h.th->doff * 4;
	data.segs = vulture_segments(skb, data.bytes);
	data.ce = vulture_is_ce(skb, state->pf);

	spin_lock_bh(&flow->lock);
	if (!flow->dead && vulture_in_window(flow, data.seq, data.bytes)) {
		u32 end = data.seq + data.bytes;

		data.acked = flow->seen_out ? flow->ack_seq : data.seq;
		if (!flow->segments || after(end, flow->high_seq))
			flow->high_seq = end;
		flow->segments += data.segs;
		flow->bytes += data.bytes;
		flow->controller->on_data(flow->priv, &data);
		/* Less credit left than one such segment: the sender waits. */
		if (after(flow->high_seq + data.bytes / data.segs, flow->edge_seq))
			vulture_flow_kick(flow);
	}
	spin_unlock_bh(&flow->lock);
	return NF_ACCEPT;
}

/* What the segment is to advertise. Caller: holds flow->lock. */
static u16 vulture_field(struct vulture_flow *flow, u32 ack, u16 own_field,
			 u32 tsval, u32 *want_bytes)
{
	struct rwnd_ack sample = {
		.now_us = vulture_now_us(),
		.tsval = tsval,
		.edge_bytes = (s32)(flow->edge_seq - ack),
	};

	if (!flow->seen_out || after(ack, flow->ack_seq)) {
		sample.acked_bytes = flow->seen_out ? ack - flow->ack_seq : 0;
		flow->ack_seq = ack;
		flow->seen_out = true;
	}
	*want_bytes = flow->controller->on_ack(flow->priv, &sample);
	if (*want_bytes == RWND_UNLIMITED)
		return own_field;
	return rwnd_field(own_field, flow->scale, ack, flow->edge_seq, *want_bytes);
}

/* Take note of what goes out. Caller: holds flow->lock. */
static void vulture_advertised(struct vulture_flow *flow, u32 ack, u16 own_field,
			       u16 field, u32 want_bytes)
{
	u32 edge = ack + ((u32)field << flow->scale);

	flow->acks++;
	flow->own_bytes = (u32)own_field << flow->scale;
	flow->advertised_bytes = (u32)field << flow->scale;
	if (after(edge, flow->edge_seq))
		flow->edge_seq = edge;
	if (field != own_field) {
		flow->rewritten++;
		trace_vulture_window(flow, want_bytes);
	}
}

/* Is the socket of this packet the flow's? Time-wait and request sockets, and
 * the kernel's own that answer for nobody, share addresses with it at most.
 */
static bool vulture_sends(const struct vulture_flow *flow, const struct sk_buff *skb)
{
	return skb->sk == flow->sk;
}

static unsigned int vulture_out(void *priv, struct sk_buff *skb,
				const struct nf_hook_state *state)
{
	u32 tsval, tsecr, ack, want_bytes;
	u16 own_field, field;
	struct vulture_header h;
	struct vulture_flow *flow;
	struct vulture_key key;
	unsigned int end;
	struct tcphdr *th;

	if (!vulture_read(skb, state->pf, false, &key, &h))
		return NF_ACCEPT;
	flow = vulture_flow_lookup(vulture_net(state->net), &key);
	if (!flow || !vulture_sends(flow, skb) || h.th->syn || h.th->rst || !h.th->ack ||
	    !vulture_timestamps(h.th, &tsval, &tsecr))
		return NF_ACCEPT;

	own_field = ntohs(h.th->window);
	ack = ntohl(h.th->ack_seq);
	end = h.offset + h.th->doff * 4;

	spin_lock_bh(&flow->lock);
	if (flow->dead)
		goto unlock;
	field = vulture_field(flow, ack, own_field, tsval, &want_bytes);
	if (field != own_field && skb_ensure_writable(skb, end))
		field = own_field;
	if (field != own_field) {
		th = (struct tcphdr *)(skb->data + h.offset);
		/* CHECKSUM_PARTIAL sums the pseudo header only, and no window:
		 * that case leaves th->check alone.
		 */
		inet_proto_csum_replace2(&th->check, skb, htons(own_field),
					 htons(field), false);
		th->window = htons(field);
	}
	vulture_advertised(flow, ack, own_field, field, want_bytes);
unlock:
	spin_unlock_bh(&flow->lock);
	return NF_ACCEPT;
}

static const struct nf_hook_ops vulture_hook_ops[] = {
	{
		.hook = vulture_in,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_LAST,
	}, {
		.hook = vulture_out,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP_PRI_FIRST,
	},
#if IS_ENABLED(CONFIG_IPV6)
	{
		.hook = vulture_in,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP6_PRI_LAST,
	}, {
		.hook = vulture_out,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP6_PRI_FIRST,
	},
#endif
};

int vulture_hooks_add(struct net *net)
{
	return nf_register_net_hooks(net, vulture_hook_ops, ARRAY_SIZE(vulture_hook_ops));
}

void vulture_hooks_remove(struct net *net)
{
	nf_unregister_net_hooks(net, vulture_hook_ops, ARRAY_SIZE(vulture_hook_ops));
}
