// SPDX-License-Identifier: GPL-2.0
/*
 * The two netfilter hooks: they read the data of incoming packets, and write the
 * window of outgoing ones.
 *
 * The one in LOCAL_IN runs last, after filters and address translation, so it sees
 * what TCP receives, with the addresses that TCP knows. The one in LOCAL_OUT runs
 * first: it sees TCP's own addresses too, and connection tracking sees the window
 * that goes on the wire.
 *
 * Neither hook drops a packet. A packet that cannot be read or rewritten (its header
 * is not there, or memory is short) passes as TCP made it.
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

/* The TCP header of a packet: its place, and a pointer by which it can be read. */
struct vulture_header {
	unsigned int offset;		/* from skb->data */
	const struct tcphdr *th;
	u8 buf[VULTURE_HEADER_MAX];	/* th points here if the header is not linear */
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

/* Read the addresses and the TCP header of a packet. Return: false if it is not an unfragmented TCP
 * packet with a complete header.
 */
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

/* Read the timestamps of a header. Return: false if it has none or is signed. */
static bool vulture_timestamps(const struct tcphdr *th, u32 *tsval, u32 *tsecr)
{
	return wire_timestamps((const u8 *)(th + 1), (const u8 *)th + th->doff * 4, tsval, tsecr);
}

static bool vulture_is_ce(const struct sk_buff *skb, u8 pf)
{
	return INET_ECN_is_ce(pf == NFPROTO_IPV4 ? ip_hdr(skb)->tos :
			      ipv6_get_dsfield(ipv6_hdr(skb)));
}

/* The number and size of the segments of an arrival: it is one segment, or an aggregate
 * made by GRO or by the peer's offload. No segment is longer than the MSS that we announced.
 */
static void vulture_geometry(const struct sk_buff *skb, u32 max_seg_bytes,
			     struct rwnd_data *data)
{
	u32 size = skb_shinfo(skb)->gso_size;

	data->seg_bytes = min3(size ?: data->bytes, data->bytes, max_seg_bytes);
	data->segs = DIV_ROUND_UP(data->bytes, data->seg_bytes);
}

/* Account for data that TCP will accept. Caller: holds flow->lock. */
static void vulture_take(struct vulture_flow *flow, struct rwnd_data *data)
{
	struct edge *e = &flow->edge;

	data->ack_seq = e->ack_seq;
	data->edge_seq = e->edge_seq;
	data->arrival = edge_seen(e, data->now_us, data->seq, data->bytes, data->tsval);
	flow->segments += data->segs;
	flow->bytes += data->bytes;
	spin_lock(flow->state_lock);
	flow->controller->on_data(flow->state, data, &flow->want);
	spin_unlock(flow->state_lock);
	if (flow->want.update)
		flow->kick_us = data->now_us;
	/* The sender has used up its window and waits for an ACK. With RWND_EDGE it waits for the
	 * controller instead.
	 */
	if (flow->want.kind == RWND_WINDOW && edge_reached(e, data->seg_bytes))
		vulture_flow_kick(flow, data->now_us);
	vulture_timer_arm(flow, data->now_us);
}

/* Whether TCP accepts a segment with this acknowledgment number (RFC 5961 section 5). Forged data
 * that hits the receive window must hit this range too. The upper end is not snd_nxt, which moves
 * only after its segment has gone out. Caller: under RCU, and holds flow->lock.
 */
static bool vulture_answers(const struct vulture_flow *flow, u32 ack_seq)
{
	const struct tcp_sock *tp = tcp_sk(flow->sk);

	return !flow->dead && !READ_ONCE(flow->closed) &&
	       !before(ack_seq, READ_ONCE(tp->snd_una) - READ_ONCE(tp->max_window)) &&
	       !after(ack_seq, READ_ONCE(tp->write_seq));
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
	if (!flow || h.th->syn || h.th->rst || !h.th->ack ||
	    skb->len <= h.offset + h.th->doff * 4 ||
	    !vulture_timestamps(h.th, &data.tsval, &data.tsecr) ||
	    nf_checksum(skb, state->hook, h.offset, IPPROTO_TCP, state->pf))
		return NF_ACCEPT;

	data.now_us = vulture_now_us();
	data.seq = ntohl(h.th->seq);
	data.bytes = skb->len - h.offset - h.th->doff * 4;
	data.push = h.th->psh;
	data.ce = vulture_is_ce(skb, state->pf);
	vulture_geometry(skb, flow->max_seg_bytes, &data);

	spin_lock_bh(&flow->lock);
	if (vulture_answers(flow, ntohl(h.th->ack_seq)) &&
	    edge_takes(&flow->edge, data.now_us, data.seq, data.bytes, data.tsval))
		vulture_take(flow, &data);
	spin_unlock_bh(&flow->lock);
	return NF_ACCEPT;
}

/* Return: the window field that the segment is to have. Caller: holds flow->lock. */
static u16 vulture_field(struct vulture_flow *flow, struct rwnd_ack *ack, u16 own_field)
{
	struct edge *e = &flow->edge;

	ack->edge_seq = e->edge_seq;
	ack->acked_bytes = edge_acknowledged(e, ack->ack_seq);
	ack->own_bytes = (u32)own_field << e->scale;
	spin_lock(flow->state_lock);
	flow->controller->on_ack(flow->state, ack, &flow->want);
	spin_unlock(flow->state_lock);
	flow->want.update = false;	/* this segment is the update */
	vulture_timer_arm(flow, ack->now_us);
	return edge_field(e, ack->ack_seq, ack->acked_bytes, own_field, &flow->want,
			  flow->max_seg_bytes);
}

static bool vulture_write(struct sk_buff *skb, const struct vulture_header *h, u16 own_field,
			  u16 field)
{
	struct tcphdr *th;

	if (skb_ensure_writable(skb, h->offset + h->th->doff * 4))
		return false;
	th = (struct tcphdr *)(skb->data + h->offset);
	/* With CHECKSUM_PARTIAL, th->check covers the pseudo header only and not the
	 * window, and this call leaves it alone.
	 */
	inet_proto_csum_replace2(&th->check, skb, htons(own_field), htons(field), false);
	th->window = htons(field);
	return true;
}

/* Whether the packet was sent by the flow's socket. Time-wait and request sockets, and
 * the kernel's control sockets, may have the same addresses.
 */
static bool vulture_sends(const struct vulture_flow *flow, const struct sk_buff *skb)
{
	return skb->sk == flow->sk;
}

/* Limit the window of a SYN if a rule will start the connection. Many connections may open at once,
 * and the data for the windows of their SYNs arrives before anything is known about the path.
 */
static void vulture_out_syn(struct sk_buff *skb, const struct vulture_header *h, struct net *net)
{
	struct vulture_net *vn = vulture_net(net);
	const struct rwnd_controller *c;
	u16 own_field = ntohs(h->th->window);
	u32 tsval, tsecr, bytes;

	if (list_empty(&vn->rules) || !skb->sk || !sk_fullsock(skb->sk) ||
	    !vulture_sock_is_tcp(skb->sk) || !vulture_timestamps(h->th, &tsval, &tsecr))
		return;
	c = vulture_rules_match(vn, skb->sk);
	if (!c)
		return;
	bytes = vulture_syn_bytes(c, skb->sk);
	if (bytes < own_field)
		vulture_write(skb, h, own_field, (u16)bytes);
}

static unsigned int vulture_out(void *priv, struct sk_buff *skb,
				const struct nf_hook_state *state)
{
	struct vulture_header h;
	struct vulture_flow *flow;
	struct vulture_key key;
	struct rwnd_ack ack;
	u16 own_field, field;
	bool written = true;
	u32 tsecr;

	if (!vulture_read(skb, state->pf, false, &key, &h))
		return NF_ACCEPT;
	if (h.th->syn) {
		vulture_out_syn(skb, &h, state->net);
		return NF_ACCEPT;
	}
	flow = vulture_flow_lookup(vulture_net(state->net), &key);
	if (!flow || !vulture_sends(flow, skb) || h.th->rst || !h.th->ack ||
	    !vulture_timestamps(h.th, &ack.tsval, &tsecr))
		return NF_ACCEPT;

	own_field = ntohs(h.th->window);
	ack.ack_seq = ntohl(h.th->ack_seq);
	ack.now_us = vulture_now_us();

	spin_lock_bh(&flow->lock);
	if (flow->dead || edge_is_repeated(&flow->edge, ack.ack_seq, own_field, ack.tsval))
		goto unlock;
	field = vulture_field(flow, &ack, own_field);
	if (field != own_field)
		written = vulture_write(skb, &h, own_field, field);
	if (!written)
		field = own_field;
	edge_advertised(&flow->edge, ack.ack_seq, own_field, field,
			flow->want.kind == RWND_LEAVE || !written, ack.tsval);
	flow->acks++;
	if (field != own_field) {
		flow->rewritten++;
		trace_vulture_window(flow, &flow->edge);
	}
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

/* The hooks are registered while there is a flow, a rule that can start one (the first ACK
 * of a connection must not advertise TCP's own window), or a request that is about to
 * make a flow or a rule.
 */

/* Register or unregister the hooks as needed. Caller: holds hooks_lock. */
static int vulture_hooks_settle(struct vulture_net *vn)
{
	bool wanted = vn->hook_users || atomic_read(&vn->flows) > 0 || !list_empty(&vn->rules);
	int err = 0;

	if (wanted && !vn->hooked) {
		err = nf_register_net_hooks(vn->net, vulture_hook_ops,
					    ARRAY_SIZE(vulture_hook_ops));
		vn->hooked = !err;
	} else if (!wanted && vn->hooked) {
		nf_unregister_net_hooks(vn->net, vulture_hook_ops, ARRAY_SIZE(vulture_hook_ops));
		vn->hooked = false;
	}
	return err;
}

/* The hooks stay registered from here to vulture_hooks_release(). */
int vulture_hooks_hold(struct vulture_net *vn)
{
	int err;

	mutex_lock(&vn->hooks_lock);
	vn->hook_users++;
	err = vulture_hooks_settle(vn);
	vn->hook_users -= !!err;
	mutex_unlock(&vn->hooks_lock);
	return err;
}

void vulture_hooks_release(struct vulture_net *vn)
{
	mutex_lock(&vn->hooks_lock);
	vn->hook_users--;
	mutex_unlock(&vn->hooks_lock);
	vulture_hooks_look(vn);
}

static void vulture_hooks_work(struct work_struct *work)
{
	struct vulture_net *vn = container_of(to_delayed_work(work), struct vulture_net,
					      hooks_work);

	mutex_lock(&vn->hooks_lock);
	vulture_hooks_settle(vn);
	mutex_unlock(&vn->hooks_lock);
}

void vulture_hooks_net_init(struct vulture_net *vn)
{
	mutex_init(&vn->hooks_lock);
	INIT_DELAYED_WORK(&vn->hooks_work, vulture_hooks_work);
}

/* Unregister the hooks, needed or not: the namespace is being removed. */
void vulture_hooks_net_exit(struct vulture_net *vn)
{
	mutex_lock(&vn->hooks_lock);
	if (vn->hooked)
		nf_unregister_net_hooks(vn->net, vulture_hook_ops, ARRAY_SIZE(vulture_hook_ops));
	vn->hooked = false;
	mutex_unlock(&vn->hooks_lock);
}
