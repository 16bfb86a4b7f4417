// SPDX-License-Identifier: GPL-2.0
/*
 * Writes the congestion window hint that the shred queue reads.
 *
 * On the sending host (net.shred_hint.host): every TCP packet that leaves
 * carries min(max(snd_cwnd, 1), 255), a SYN or SYN/ACK the initial window, a
 * packet of no connection (reset, TIME-WAIT) 1. With host 2 it carries the part
 * of the window in use: packets in flight, itself included, a SYN or SYN/ACK 1.
 *
 * At an edge router (net.shred_hint.edge): a packet that is forwarded without
 * a hint gets the bytes its flow has in flight, in packets (flight.h); with
 * net.shred_hint.police, so does one of a flow whose hint stays low although
 * its flight is large.
 *
 * Source: Claypool, Kinicki, Hartling, "Active Queue Management for Web
 * Traffic", section 5. Departs from the paper in: the IPv6 hint is the traffic
 * class rather than an extension header, which routers on the way would have
 * to be taught to pass.
 *
 * Does not do: fragments (only the first has a TCP header, so none is
 * touched), IPsec and other tunnels (what is inside is not seen).
 *
 * net.shred_hint.*, per network namespace, all off at first:
 *   mode		off, tos, dscp: coding of hint.h; off writes nothing
 *   host		0 off, 1 window, 2 packets in flight
 *   edge, police	0 or 1
 *   devices		names of the interfaces on which hints leave; empty: all
 *   max_flows		1 to 1048576, flows that the edge remembers (at most 65536
 *			where the namespace is not the first user namespace's)
 *   flow_timeout_s	1 to 86400, idle time after which a flow is forgotten
 * /proc/net/shred_hint shows the counters.
 *
 * Locking: settings and hooks change under shred_hint_net.mutex and are read
 * with READ_ONCE; a flow's state is under its own lock; flows are looked up
 * under RCU and freed after a grace period.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/rhashtable.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/sysctl.h>
#include <linux/tcp.h>
#include <net/dsfield.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "flight.h"
#include "hint.h"

/* Idle flows are looked for this often. */
#define SHRED_HINT_SWEEP	(5 * HZ)
/* A closed flow is kept this long for what is still under way. */
#define SHRED_HINT_CLOSED_S	5

#define SHRED_HINT_MAX_FLOWS	1048576
#define SHRED_HINT_DEFAULT_FLOWS 65536
#define SHRED_HINT_DEVICES_LEN	128

/* What the sending host writes. */
enum shred_hint_host {
	SHRED_HOST_OFF,
	SHRED_HOST_WINDOW,	/* snd_cwnd: the paper's hint */
	/* What duplicate ACKs could come from when this packet is lost. Where TCP begins with
	 * ten packets its window no longer tells a short flow from a long one; this does.
	 */
	SHRED_HOST_FLIGHT,
};

enum shred_hint_count {
	SHRED_HINT_WRITTEN_HOST,	/* packets written on the sending host */
	SHRED_HINT_WRITTEN_EDGE,	/* packets that came without a hint */
	SHRED_HINT_OVERWRITTEN,		/* packets of cheating flows */
	SHRED_HINT_KEPT,		/* packets whose hint was believed */
	SHRED_HINT_BLIND,		/* packets of flows whose ACKs pass elsewhere */
	SHRED_HINT_TABLE_FULL,		/* packets of flows that had no room */
	SHRED_HINT_COUNTS
};

static const char * const shred_hint_count_names[SHRED_HINT_COUNTS] = {
	"written_host", "written_edge", "overwritten", "kept", "blind", "table_full",
};

struct shred_hint_counters {
	u64 n[SHRED_HINT_COUNTS];
};

/* Data of one direction of one connection. */
struct shred_flow_key {
	struct in6_addr saddr;	/* IPv4: mapped */
	struct in6_addr daddr;
	__be16 sport;
	__be16 dport;
};

struct shred_flow {
	struct rhash_head node;
	struct shred_flow_key key;
	struct shred_flight flight;	/* under lock */
	spinlock_t lock;
	unsigned long expires;		/* jiffies; written by any packet, read by the sweep */
	struct rcu_head rcu;
};

struct shred_hint_net {
	struct net *net;
	struct mutex mutex;		/* settings, hooks */
	u8 mode;			/* enum shred_hint_mode */
	u8 host;			/* enum shred_hint_host */
	u8 edge;
	u8 police;
	bool hooked_host;
	bool hooked_edge;
	unsigned int max_flows;
	unsigned int flow_timeout_s;
	char devices[SHRED_HINT_DEVICES_LEN];	/* names between blanks; under devices_lock */
	spinlock_t devices_lock;
	struct rhashtable flows;
	atomic_t n_flows;
	struct delayed_work sweep;
	struct shred_hint_counters __percpu *counters;
	struct ctl_table_header *sysctls;
};

static unsigned int shred_hint_net_id;

static const struct rhashtable_params shred_flow_params = {
	.key_len	= sizeof(struct shred_flow_key),
	.key_offset	= offsetof(struct shred_flow, key),
	.head_offset	= offsetof(struct shred_flow, node),
	.automatic_shrinking = true,
};

static struct shred_hint_net *shred_hint_pernet(const struct net *net)
{
	return net_generic(net, shred_hint_net_id);
}

static void shred_hint_count(struct shred_hint_net *hn, enum shred_hint_count what)
{
	this_cpu_inc(hn->counters->n[what]);
}

/* ---- one packet ---- */

/* Where the parts of a TCP packet are. */
struct shred_packet {
	int family;		/* NFPROTO_IPV4 or NFPROTO_IPV6 */
	u8 tos;			/* TOS byte or traffic class */
	struct shred_flow_key key;
	u32 seq;
	u32 ack_seq;
	u32 len;		/* sequence numbers taken */
	u32 segment_bytes;	/* payload of one segment */
	u32 tsval;		/* RFC 7323; 0 = none */
	u32 tsecr;
	bool syn, fin, rst, ack;
};

static bool shred_find_tcp4(const struct sk_buff *skb, struct shred_packet *p,
			    int *tcp_offset, int *payload_end)
{
	const struct iphdr *iph = ip_hdr(skb);

	if (iph->protocol != IPPROTO_TCP || ip_is_fragment(iph))
		return false;
	p->tos = iph->tos;
	ipv6_addr_set_v4mapped(iph->saddr, &p->key.saddr);
	ipv6_addr_set_v4mapped(iph->daddr, &p->key.daddr);
	*tcp_offset = skb_network_offset(skb) + iph->ihl * 4;
	*payload_end = skb_network_offset(skb) +
		       (skb_is_gso(skb) ? (int)(skb->len - skb_network_offset(skb)) :
					  ntohs(iph->tot_len));
	return true;
}

static bool shred_find_tcp6(const struct sk_buff *skb, struct shred_packet *p,
			    int *tcp_offset, int *payload_end)
{
	const struct ipv6hdr *ip6h = ipv6_hdr(skb);
	u8 nexthdr = ip6h->nexthdr;
	__be16 frag_off;

	*tcp_offset = ipv6_skip_exthdr(skb, skb_network_offset(skb) + sizeof(*ip6h),
				       &nexthdr, &frag_off);
	if (*tcp_offset < 0 || nexthdr != IPPROTO_TCP || frag_off)
		return false;
	p->tos = ipv6_get_dsfield(ip6h);
	p->key.saddr = ip6h->saddr;
	p->key.daddr = ip6h->daddr;
	*payload_end = skb->len;
	if (!skb_is_gso(skb) && ip6h->payload_len)
		*payload_end = skb_network_offset(skb) + sizeof(*ip6h) +
			       ntohs(ip6h->payload_len);
	return true;
}

/* The timestamp option, if there is a whole one. */
static void shred_parse_timestamps(const struct sk_buff *skb, int offset, int len,
				   struct shred_packet *p)
{
	u8 buf[MAX_TCP_OPTION_SPACE];
	const u8 *opt = len > 0 ? skb_header_pointer(skb, offset, len, buf) : NULL;
	int at = 0;

	while (opt && at < len && opt[at] != TCPOPT_EOL) {
		if (opt[at] == TCPOPT_NOP) {
			at++;
			continue;
		}
		if (at + 1 >= len || opt[at + 1] < 2 || at + opt[at + 1] > len)
			return;
		if (opt[at] == TCPOPT_TIMESTAMP && opt[at + 1] == TCPOLEN_TIMESTAMP) {
			p->tsval = get_unaligned_be32(opt + at + 2);
			p->tsecr = get_unaligned_be32(opt + at + 6);
			return;
		}
		at += opt[at + 1];
	}
}

static bool shred_parse(const struct sk_buff *skb, int family, struct shred_packet *p)
{
	const struct tcphdr *th;
	struct tcphdr buf;
	int tcp_offset, payload_end, payload;

	memset(p, 0, sizeof(*p));
	p->family = family;
	if (family == NFPROTO_IPV4 ?
	    !shred_find_tcp4(skb, p, &tcp_offset, &payload_end) :
	    !shred_find_tcp6(skb, p, &tcp_offset, &payload_end))
		return false;
	th = skb_header_pointer(skb, tcp_offset, sizeof(buf), &buf);
	if (!th)
		return false;
	payload = payload_end - tcp_offset - th->doff * 4;
	if (th->doff < sizeof(buf) / 4 || payload < 0 || payload_end > (int)skb->len)
		return false;

	p->key.sport = th->source;
	p->key.dport = th->dest;
	p->seq = ntohl(th->seq);
	p->ack_seq = ntohl(th->ack_seq);
	p->syn = th->syn;
	p->fin = th->fin;
	p->rst = th->rst;
	p->ack = th->ack;
	p->len = payload + th->syn + th->fin;
	p->segment_bytes = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : payload;
	shred_parse_timestamps(skb, tcp_offset + sizeof(buf),
			       th->doff * 4 - sizeof(buf), p);
	return true;
}

/* Returns false when there is no memory for a header of our own. */
static bool shred_write(struct sk_buff *skb, int family, u8 mode, u32 cwnd_pkts)
{
	int header = family == NFPROTO_IPV4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);

	if (skb_ensure_writable(skb, skb_network_offset(skb) + header))
		return false;
	if (family == NFPROTO_IPV4)
		ipv4_change_dsfield(ip_hdr(skb), 0,
				    shred_hint_write(mode, ip_hdr(skb)->tos, cwnd_pkts));
	else
		ipv6_change_dsfield(ipv6_hdr(skb), 0,
				    shred_hint_write(mode, ipv6_get_dsfield(ipv6_hdr(skb)),
						     cwnd_pkts));
	return true;
}

static bool shred_device_wanted(struct shred_hint_net *hn, const struct net_device *dev)
{
	size_t len = strlen(dev->name);
	bool wanted;
	const char *at;

	/* the empty list is common, and a torn read of its first byte is harmless */
	if (!READ_ONCE(hn->devices[0]))
		return true;
	spin_lock_bh(&hn->devices_lock);
	wanted = !hn->devices[0];
	for (at = hn->devices; !wanted && (at = strstr(at, dev->name)); at += len)
		wanted = (at == hn->devices || at[-1] == ' ') &&
			 (at[len] == '\0' || at[len] == ' ');
	spin_unlock_bh(&hn->devices_lock);
	return wanted;
}

/* ---- the sending host ---- */

static u32 shred_initial_cwnd(const struct sk_buff *skb)
{
	u32 cwnd = skb_dst(skb) ? dst_metric(skb_dst(skb), RTAX_INITCWND) : 0;

	return cwnd ?: TCP_INIT_CWND;
}

/* The packet itself is counted by TCP only after it left. */
static u32 shred_host_flight(const struct sk_buff *skb, const struct tcp_sock *tp)
{
	return tcp_packets_in_flight(tp) + max_t(u32, skb_shinfo(skb)->gso_segs, 1);
}

static u32 shred_host_pkts(const struct sk_buff *skb, const struct sock *sk,
			   const struct shred_packet *p, u8 host)
{
	if (p->syn)
		return host == SHRED_HOST_FLIGHT ? 1 : shred_initial_cwnd(skb);
	if (!sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP ||
	    sk->sk_type != SOCK_STREAM || sk->sk_state == TCP_LISTEN)
		return 1;
	return host == SHRED_HOST_FLIGHT ? shred_host_flight(skb, tcp_sk(sk)) :
					   tcp_snd_cwnd(tcp_sk(sk));
}

static unsigned int shred_host_hook(void *priv, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	struct shred_hint_net *hn = shred_hint_pernet(state->net);
	u8 mode = READ_ONCE(hn->mode), host = READ_ONCE(hn->host);
	struct shred_packet p;

	/* a forwarded packet has no socket and is the edge's */
	if (!skb->sk || mode == SHRED_HINT_OFF || !shred_device_wanted(hn, state->out))
		return NF_ACCEPT;
	if (shred_parse(skb, state->pf, &p) &&
	    shred_write(skb, state->pf, mode, shred_host_pkts(skb, skb->sk, &p, host)))
		shred_hint_count(hn, SHRED_HINT_WRITTEN_HOST);
	return NF_ACCEPT;
}

/* ---- the edge's flows ---- */

static struct shred_flow *shred_flow_find(struct shred_hint_net *hn,
					  const struct shred_flow_key *key)
{
	return rhashtable_lookup(&hn->flows, key, shred_flow_params);
}

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
	flow->expires = jiffies + READ_ONCE(hn->flow_timeout_s) * HZ;
	old = rhashtable_lookup_get_insert_fast(&hn->flows, &flow->node, shred_flow_params);
	if (!old)
		return flow;
	kfree(flow);
	atomic_dec(&hn->n_flows);
	return IS_ERR(old) ? NULL : old;
undo:
	atomic_dec(&hn->n_flows);
	return NULL;
}

static void shred_flow_forget(struct shred_hint_net *hn, struct shred_flow *flow)
{
	if (rhashtable_remove_fast(&hn->flows, &flow->node, shred_flow_params))
		return;
	atomic_dec(&hn->n_flows);
	kfree_rcu(flow, rcu);
}

static void shred_sweep(struct work_struct *work)
{
	struct shred_hint_net *hn = container_of(to_delayed_work(work),
						 struct shred_hint_net, sweep);
	struct rhashtable_iter iter;
	struct shred_flow *flow;

	rhashtable_walk_enter(&hn->flows, &iter);
	rhashtable_walk_start(&iter);
	while ((flow = rhashtable_walk_next(&iter))) {
		if (IS_ERR(flow))
			continue;	/* the table grew under the walk: it starts over */
		if (time_after(jiffies, READ_ONCE(flow->expires)))
			shred_flow_forget(hn, flow);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
	schedule_delayed_work(&hn->sweep, SHRED_HINT_SWEEP);
}

/* ---- the edge ---- */

static void shred_flow_touch(struct shred_hint_net *hn, struct shred_flow *flow,
			     const struct shred_packet *p)
{
	unsigned int keep_s = READ_ONCE(hn->flow_timeout_s);

	if (p->fin || p->rst)
		keep_s = min_t(unsigned int, keep_s, SHRED_HINT_CLOSED_S);
	WRITE_ONCE(flow->expires, jiffies + keep_s * HZ);
}

/* The ACK in this packet tells of the other direction's flow. */
static void shred_edge_ack(struct shred_hint_net *hn, const struct shred_packet *p)
{
	struct shred_flow_key key = {
		.saddr = p->key.daddr, .daddr = p->key.saddr,
		.sport = p->key.dport, .dport = p->key.sport,
	};
	struct shred_flow *flow;

	if (!p->ack)
		return;
	flow = shred_flow_find(hn, &key);
	if (!flow)
		return;
	spin_lock_bh(&flow->lock);
	shred_flight_acked(&flow->flight, p->ack_seq, p->tsval);
	spin_unlock_bh(&flow->lock);
}

/* Window to write into this packet; 0 = leave it as it is. */
static u32 shred_edge_verdict(struct shred_hint_net *hn, struct shred_flow *flow,
			      const struct shred_packet *p, u32 hint_pkts)
{
	bool lies = false, new_data;
	u32 pkts;

	spin_lock_bh(&flow->lock);
	if (p->syn)
		shred_flight_syn(&flow->flight, p->seq);
	new_data = shred_flight_sent(&flow->flight, p->seq, p->len, p->segment_bytes,
				     p->tsecr);
	pkts = shred_flight_pkts(&flow->flight);
	if (hint_pkts && READ_ONCE(hn->police))
		lies = shred_flight_judge(&flow->flight, hint_pkts, new_data);
	spin_unlock_bh(&flow->lock);

	if (!pkts)
		shred_hint_count(hn, SHRED_HINT_BLIND);
	else if (lies)
		shred_hint_count(hn, SHRED_HINT_OVERWRITTEN);
	else if (hint_pkts)
		shred_hint_count(hn, SHRED_HINT_KEPT);
	else
		shred_hint_count(hn, SHRED_HINT_WRITTEN_EDGE);
	return hint_pkts && !lies ? 0 : pkts;
}

static void shred_edge_data(struct shred_hint_net *hn, struct sk_buff *skb, u8 mode,
			    const struct shred_packet *p)
{
	struct shred_flow *flow = shred_flow_find(hn, &p->key);
	u32 pkts;

	/* an ACK alone does not begin a flow: nothing of it would be in flight */
	if (!flow && p->len && !p->rst)
		flow = shred_flow_add(hn, &p->key);
	if (!flow) {
		if (p->len)
			shred_hint_count(hn, SHRED_HINT_TABLE_FULL);
		return;
	}
	pkts = shred_edge_verdict(hn, flow, p, shred_hint_read(mode, p->tos));
	shred_flow_touch(hn, flow, p);
	if (pkts)
		shred_write(skb, p->family, mode, pkts);
}

static unsigned int shred_edge_hook(void *priv, struct sk_buff *skb,
				    const struct nf_hook_state *state)
{
	struct shred_hint_net *hn = shred_hint_pernet(state->net);
	u8 mode = READ_ONCE(hn->mode);
	struct shred_packet p;

	if (mode == SHRED_HINT_OFF || !shred_parse(skb, state->pf, &p))
		return NF_ACCEPT;
	rcu_read_lock();
	shred_edge_ack(hn, &p);
	if (shred_device_wanted(hn, state->out))
		shred_edge_data(hn, skb, mode, &p);
	rcu_read_unlock();
	return NF_ACCEPT;
}

/* ---- hooks, there only while wanted ---- */

static const struct nf_hook_ops shred_host_ops[] = {
	{
		.hook		= shred_host_hook,
		.pf		= NFPROTO_IPV4,
		.hooknum	= NF_INET_POST_ROUTING,
		.priority	= NF_IP_PRI_LAST,
	},
	{
		.hook		= shred_host_hook,
		.pf		= NFPROTO_IPV6,
		.hooknum	= NF_INET_POST_ROUTING,
		.priority	= NF_IP6_PRI_LAST,
	},
};

static const struct nf_hook_ops shred_edge_ops[] = {
	{
		.hook		= shred_edge_hook,
		.pf		= NFPROTO_IPV4,
		.hooknum	= NF_INET_FORWARD,
		.priority	= NF_IP_PRI_LAST,
	},
	{
		.hook		= shred_edge_hook,
		.pf		= NFPROTO_IPV6,
		.hooknum	= NF_INET_FORWARD,
		.priority	= NF_IP6_PRI_LAST,
	},
};

static int shred_hook(struct net *net, const struct nf_hook_ops *ops, unsigned int n,
		      bool want, bool *have)
{
	int err = 0;

	if (want && !*have)
		err = nf_register_net_hooks(net, ops, n);
	else if (!want && *have)
		nf_unregister_net_hooks(net, ops, n);
	if (!err)
		*have = want;
	return err;
}

/* Under hn->mutex. */
static int shred_hint_hooks(struct shred_hint_net *hn)
{
	bool on = hn->mode != SHRED_HINT_OFF;
	int err;

	err = shred_hook(hn->net, shred_host_ops, ARRAY_SIZE(shred_host_ops),
			 on && hn->host, &hn->hooked_host);
	if (err)
		return err;
	return shred_hook(hn->net, shred_edge_ops, ARRAY_SIZE(shred_edge_ops),
			  on && hn->edge, &hn->hooked_edge);
}

/* ---- settings ---- */

static const char * const shred_mode_names[__SHRED_HINT_MAX] = { "off", "tos", "dscp" };

/* A setting and the hooks go together: if these fail the setting is as it was. */
static int shred_set_u8(struct shred_hint_net *hn, u8 *setting, u8 value)
{
	u8 old;
	int err;

	mutex_lock(&hn->mutex);
	old = *setting;
	WRITE_ONCE(*setting, value);
	err = shred_hint_hooks(hn);
	if (err) {
		WRITE_ONCE(*setting, old);
		shred_hint_hooks(hn);
	}
	mutex_unlock(&hn->mutex);
	return err;
}

static int shred_sysctl_mode(LBE_CTL_CONST struct ctl_table *ctl, int write, void *buffer,
			     size_t *lenp, loff_t *ppos)
{
	struct shred_hint_net *hn = ctl->extra1;
	char name[8];
	struct ctl_table text = { .data = name, .maxlen = sizeof(name) };
	int err, mode;

	strscpy(name, shred_mode_names[READ_ONCE(hn->mode)], sizeof(name));
	err = proc_dostring(&text, write, buffer, lenp, ppos);
	if (err || !write)
		return err;
	mode = match_string(shred_mode_names, __SHRED_HINT_MAX, name);
	return mode < 0 ? -EINVAL : shred_set_u8(hn, &hn->mode, mode);
}

static int shred_sysctl_switch(LBE_CTL_CONST struct ctl_table *ctl, int write, void *buffer,
			       size_t *lenp, loff_t *ppos)
{
	struct shred_hint_net *hn = ctl->extra1;
	u8 value = READ_ONCE(*(u8 *)ctl->data);
	struct ctl_table number = {
		.data = &value, .maxlen = sizeof(value),
		.extra1 = SYSCTL_ZERO,
		.extra2 = ctl->data == &hn->host ? SYSCTL_TWO : SYSCTL_ONE,
	};
	int err = proc_dou8vec_minmax(&number, write, buffer, lenp, ppos);

	if (err || !write)
		return err;
	return shred_set_u8(hn, ctl->data, value);
}

/* Could each of these be the name of an interface? Between blanks. */
static bool shred_names_ok(const char *names)
{
	char name[IFNAMSIZ];
	size_t len;

	for (names += strspn(names, " "); *names; names += strspn(names, " ")) {
		len = strcspn(names, " ");
		if (len >= sizeof(name))
			return false;
		memcpy(name, names, len);
		name[len] = '\0';
		if (!dev_valid_name(name))
			return false;
		names += len;
	}
	return true;
}

static int shred_sysctl_devices(LBE_CTL_CONST struct ctl_table *ctl, int write,
				void *buffer, size_t *lenp, loff_t *ppos)
{
	struct shred_hint_net *hn = ctl->extra1;
	char names[SHRED_HINT_DEVICES_LEN];
	struct ctl_table text = { .data = names, .maxlen = sizeof(names) };
	int err;

	spin_lock_bh(&hn->devices_lock);
	strscpy(names, hn->devices, sizeof(names));
	spin_unlock_bh(&hn->devices_lock);
	if (write && *lenp >= sizeof(names))
		return -EINVAL;		/* half a name would name another interface */
	err = proc_dostring(&text, write, buffer, lenp, ppos);
	if (err || !write)
		return err;
	if (!shred_names_ok(names))
		return -EINVAL;
	spin_lock_bh(&hn->devices_lock);
	strscpy(hn->devices, strim(names), sizeof(hn->devices));
	spin_unlock_bh(&hn->devices_lock);
	return 0;
}

static int shred_hint_max_flows_limit = SHRED_HINT_MAX_FLOWS;
/* Packets charge a flow's memory to nobody: a container's root may not have more of it. */
static int shred_hint_max_flows_user_limit = SHRED_HINT_DEFAULT_FLOWS;
static int shred_hint_timeout_limit_s = 86400;

static const struct ctl_table shred_hint_sysctls[] = {
	{ .procname = "mode", .mode = 0644, .maxlen = 8, .proc_handler = shred_sysctl_mode },
	{ .procname = "host", .mode = 0644, .maxlen = 1, .proc_handler = shred_sysctl_switch },
	{ .procname = "edge", .mode = 0644, .maxlen = 1, .proc_handler = shred_sysctl_switch },
	{ .procname = "police", .mode = 0644, .maxlen = 1, .proc_handler = shred_sysctl_switch },
	{ .procname = "devices", .mode = 0644, .maxlen = SHRED_HINT_DEVICES_LEN,
	  .proc_handler = shred_sysctl_devices },
	{ .procname = "max_flows", .mode = 0644, .maxlen = sizeof(int),
	  .proc_handler = proc_dointvec_minmax,
	  .extra1 = SYSCTL_ONE, .extra2 = &shred_hint_max_flows_limit },
	{ .procname = "flow_timeout_s", .mode = 0644, .maxlen = sizeof(int),
	  .proc_handler = proc_dointvec_minmax,
	  .extra1 = SYSCTL_ONE, .extra2 = &shred_hint_timeout_limit_s },
	{ }	/* for kernels that take no size */
};

#define SHRED_HINT_SYSCTLS	(ARRAY_SIZE(shred_hint_sysctls) - 1)

static int shred_sysctl_init(struct shred_hint_net *hn)
{
	void *data[SHRED_HINT_SYSCTLS] = {
		&hn->mode, &hn->host, &hn->edge, &hn->police, hn->devices,
		&hn->max_flows, &hn->flow_timeout_s,
	};
	struct ctl_table *table = kmemdup(shred_hint_sysctls, sizeof(shred_hint_sysctls),
					  GFP_KERNEL);
	size_t i;

	if (!table)
		return -ENOMEM;
	for (i = 0; i < SHRED_HINT_SYSCTLS; i++) {
		table[i].data = data[i];
		if (!table[i].extra1)
			table[i].extra1 = hn;
		if (table[i].extra2 == &shred_hint_max_flows_limit &&
		    hn->net->user_ns != &init_user_ns)
			table[i].extra2 = &shred_hint_max_flows_user_limit;
	}
	hn->sysctls = register_net_sysctl_sz(hn->net, "net/shred_hint", table,
					     SHRED_HINT_SYSCTLS);
	if (!hn->sysctls) {
		kfree(table);
		return -ENOMEM;
	}
	return 0;
}

static void shred_sysctl_exit(struct shred_hint_net *hn)
{
	const struct ctl_table *table = hn->sysctls->ctl_table_arg;

	unregister_net_sysctl_table(hn->sysctls);
	kfree(table);
}

/* ---- seeing inside ---- */

static int shred_hint_show(struct seq_file *m, void *v)
{
	struct shred_hint_net *hn = shred_hint_pernet(seq_file_single_net(m));
	int cpu, i;

	seq_printf(m, "flows %d\n", atomic_read(&hn->n_flows));
	for (i = 0; i < SHRED_HINT_COUNTS; i++) {
		u64 sum = 0;

		for_each_possible_cpu(cpu)
			sum += per_cpu_ptr(hn->counters, cpu)->n[i];
		seq_printf(m, "%s %llu\n", shred_hint_count_names[i], sum);
	}
	return 0;
}

/* ---- a namespace comes and goes ---- */

static int __net_init shred_hint_net_init(struct net *net)
{
	struct shred_hint_net *hn = shred_hint_pernet(net);
	int err;

	hn->net = net;
	mutex_init(&hn->mutex);
	spin_lock_init(&hn->devices_lock);
	hn->max_flows = SHRED_HINT_DEFAULT_FLOWS;
	hn->flow_timeout_s = 60;
	INIT_DELAYED_WORK(&hn->sweep, shred_sweep);

	hn->counters = alloc_percpu(struct shred_hint_counters);
	if (!hn->counters)
		return -ENOMEM;
	err = rhashtable_init(&hn->flows, &shred_flow_params);
	if (err)
		goto free_counters;
	err = -ENOMEM;
	if (!proc_create_net_single("shred_hint", 0444, net->proc_net, shred_hint_show, NULL))
		goto free_flows;
	err = shred_sysctl_init(hn);
	if (err)
		goto remove_proc;
	schedule_delayed_work(&hn->sweep, SHRED_HINT_SWEEP);
	return 0;

remove_proc:
	remove_proc_entry("shred_hint", net->proc_net);
free_flows:
	rhashtable_destroy(&hn->flows);
free_counters:
	free_percpu(hn->counters);
	return err;
}

static void shred_flow_free(void *flow, void *unused)
{
	kfree(flow);
}

/* Between this and exit the core waits until no packet is in a hook any more. */
static void __net_exit shred_hint_net_pre_exit(struct net *net)
{
	struct shred_hint_net *hn = shred_hint_pernet(net);

	shred_sysctl_exit(hn);
	remove_proc_entry("shred_hint", net->proc_net);
	hn->mode = SHRED_HINT_OFF;
	shred_hint_hooks(hn);
}

static void __net_exit shred_hint_net_exit(struct net *net)
{
	struct shred_hint_net *hn = shred_hint_pernet(net);

	cancel_delayed_work_sync(&hn->sweep);
	rhashtable_free_and_destroy(&hn->flows, shred_flow_free, NULL);
	free_percpu(hn->counters);
}

static struct pernet_operations shred_hint_net_ops = {
	.init	= shred_hint_net_init,
	.pre_exit = shred_hint_net_pre_exit,
	.exit	= shred_hint_net_exit,
	.id	= &shred_hint_net_id,
	.size	= sizeof(struct shred_hint_net),
};

static int __init shred_hint_init(void)
{
	return register_pernet_subsys(&shred_hint_net_ops);
}

static void __exit shred_hint_exit(void)
{
	unregister_pernet_subsys(&shred_hint_net_ops);
	rcu_barrier();			/* flows that were forgotten */
}

module_init(shred_hint_init);
module_exit(shred_hint_exit);

MODULE_DESCRIPTION("Writes TCP's congestion window into the TOS byte, for the shred queue");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
