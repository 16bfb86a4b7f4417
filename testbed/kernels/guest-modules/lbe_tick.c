// SPDX-License-Identifier: GPL-2.0
/*
 * lbe_tick - give a host another clock in its TCP timestamps
 *
 * A sender that measures one-way delay reads its peer's clock from the
 * timestamp option (RFC 7323) and must cope with whatever that clock is: ticks
 * from 1 us to 10 ms, an arbitrary offset, a speed error, a wrap in mid-run.
 * This module makes one kernel show them all. For testbeds, not for use.
 *
 * With t = microseconds of CLOCK_MONOTONIC, which is also TCP's clock:
 *
 *   out:  TSval := floor(t * (1 + drift) / tick) + offset + flow offset
 *   in:   TSecr := the millisecond at which that value was shown, estimated
 *                  late by less than two ticks
 *
 * Late, because a connect() whose echoed time is before its start is reset.
 * What echoes a SYN/ACK is mapped exactly, since 6.14 takes nothing else.
 * The host must run with net.ipv4.tcp_timestamps=2, that is, count its own
 * milliseconds without an offset.
 *
 * Per network namespace, net.lbe_tick:
 *   tick_us       length of a tick, 1 to 1000000; 0 (default) = off
 *   offset_ticks  added to TSval
 *   drift_ppm     speed error, -1000 to 1000
 *   per_flow      1 = add an offset of each connection's own
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/tcp.h>
#include <net/netns/generic.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#define TICK_MAX_US	1000000
#define DRIFT_MAX_PPM	1000
#define PPM		1000000
#define SHAKES		1024	/* connections whose SYN/ACK is remembered */

/* The TSval of a connection's latest SYN/ACK: as TCP wrote it, as it was shown. */
struct tick_shake {
	u32 key;		/* of the ports; 0 = free */
	u32 shown;
	u32 written;
};

/* Settings of a namespace: written by sysctl, read by the hooks without a lock. */
struct tick_net {
	unsigned int tick_us;		/* 0 = off */
	unsigned int offset_ticks;
	int drift_ppm;
	int per_flow;
	struct ctl_table_header *sysctls;
	/* Written and read by the hooks without a lock: what is torn is not found. */
	struct tick_shake shakes[SHAKES];
};

static unsigned int tick_net_id __read_mostly;
static int drift_min = -DRIFT_MAX_PPM, drift_max = DRIFT_MAX_PPM;
static unsigned int tick_max = TICK_MAX_US;

/* What the clock shows at a time. */
static u32 tick_at(const struct tick_net *tn, u32 tick_us, u64 now_us, u32 flow)
{
	u64 shown_us = now_us + div_s64((s64)now_us * READ_ONCE(tn->drift_ppm), PPM);

	return (u32)div_u64(shown_us, tick_us) + READ_ONCE(tn->offset_ticks) + flow;
}

/* The least time, in ms, that can have passed since a value was shown. */
static u32 elapsed_ms(const struct tick_net *tn, u32 tick_us, u32 now_ticks, u32 then_ticks)
{
	s32 ticks = now_ticks - then_ticks;
	u64 us;

	if (ticks <= 1)
		return 0;
	us = (u64)(ticks - 1) * tick_us;
	return (u32)div_u64(div_u64(us * PPM, PPM + READ_ONCE(tn->drift_ppm)), USEC_PER_MSEC);
}

static u32 flow_offset(const struct tick_net *tn, __be16 local, __be16 remote)
{
	if (!READ_ONCE(tn->per_flow))
		return 0;
	return jhash_2words((__force u16)local, (__force u16)remote, READ_ONCE(tn->offset_ticks));
}

/* The place of a connection's SYN/ACK; *key is set. A collision loses the older one. */
static struct tick_shake *shake_of(struct tick_net *tn, __be16 local, __be16 remote, u32 *key)
{
	*key = jhash_2words((__force u16)local, (__force u16)remote, 0) | 1;
	return &tn->shakes[(*key >> 1) % SHAKES];
}

static void remember(struct tick_net *tn, const struct tcphdr *th, u32 shown, u32 written)
{
	struct tick_shake *shake;
	u32 key;

	shake = shake_of(tn, th->source, th->dest, &key);
	*shake = (struct tick_shake){ key, shown, written };
}

/* Does this value echo the connection's SYN/ACK? Then *written is what TCP knows of it. */
static bool recall(struct tick_net *tn, const struct tcphdr *th, u32 echoed, u32 *written)
{
	struct tick_shake *shake;
	u32 key;

	shake = shake_of(tn, th->dest, th->source, &key);
	if (shake->key != key || shake->shown != echoed)
		return false;
	*written = shake->written;
	return true;
}

/* Offset of the timestamp's two values from the TCP header, 0 = no such option. */
static unsigned int find_timestamp(const struct tcphdr *th)
{
	const u8 *option = (const u8 *)(th + 1), *end = (const u8 *)th + th->doff * 4;

	while (option < end && *option != TCPOPT_EOL) {
		if (*option == TCPOPT_NOP) {
			option++;
			continue;
		}
		if (option + 1 >= end || option[1] < 2 || option + option[1] > end)
			return 0;
		if (*option == TCPOPT_TIMESTAMP && option[1] == TCPOLEN_TIMESTAMP)
			return option + 2 - (const u8 *)th;
		option += option[1];
	}
	return 0;
}

/* The TCP header, made writable with its options; NULL = leave the packet alone. */
static struct tcphdr *tcp_of(struct sk_buff *skb, u8 family)
{
	unsigned int at, need;
	struct tcphdr *th;

	if (family == NFPROTO_IPV4) {
		const struct iphdr *iph = ip_hdr(skb);

		if (iph->protocol != IPPROTO_TCP || ip_is_fragment(iph))
			return NULL;
		at = skb_network_offset(skb) + iph->ihl * 4;
	} else {
		if (ipv6_hdr(skb)->nexthdr != IPPROTO_TCP)
			return NULL;
		at = skb_network_offset(skb) + sizeof(struct ipv6hdr);
	}
	if (!pskb_may_pull(skb, at + sizeof(*th)))
		return NULL;
	th = (struct tcphdr *)(skb->data + at);
	need = at + th->doff * 4;
	if (th->doff * 4 < sizeof(*th) || skb_ensure_writable(skb, need))
		return NULL;
	return (struct tcphdr *)(skb->data + at);
}

static void replace(struct sk_buff *skb, struct tcphdr *th, unsigned int at, u32 value)
{
	__be32 *field = (__be32 *)((u8 *)th + at);
	__be32 from = get_unaligned(field), to = cpu_to_be32(value);

	put_unaligned(to, field);
	inet_proto_csum_replace4(&th->check, skb, from, to, false);
}

static unsigned int tick_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct tick_net *tn = net_generic(state->net, tick_net_id);
	u32 tick_us = READ_ONCE(tn->tick_us);
	u64 now_us = div_u64(ktime_get_ns(), NSEC_PER_USEC);
	bool out = state->hook == NF_INET_LOCAL_OUT;
	struct tcphdr *th;
	unsigned int at;
	u32 now_ticks;

	if (!tick_us)
		return NF_ACCEPT;
	th = tcp_of(skb, state->pf);
	if (!th)
		return NF_ACCEPT;
	at = find_timestamp(th);
	if (!at)
		return NF_ACCEPT;
	now_ticks = tick_at(tn, tick_us, now_us,
			    out ? flow_offset(tn, th->source, th->dest) :
				  flow_offset(tn, th->dest, th->source));
	if (out) {
		if (th->syn && th->ack)
			remember(tn, th, now_ticks, get_unaligned_be32((u8 *)th + at));
		replace(skb, th, at, now_ticks);
	} else if (th->ack) {
		u32 echoed = get_unaligned_be32((u8 *)th + at + 4);
		u32 own = (u32)div_u64(now_us, USEC_PER_MSEC) -
			  elapsed_ms(tn, tick_us, now_ticks, echoed);

		recall(tn, th, echoed, &own);
		if (echoed)
			replace(skb, th, at + 4, own);
	}
	return NF_ACCEPT;
}

#define TICK_HOOK(family, point, order) {				\
	.hook = tick_hook, .pf = family, .hooknum = point, .priority = order }

/* Last on the way out, first on the way in: next to the wire. */
static const struct nf_hook_ops tick_hooks[] = {
	TICK_HOOK(NFPROTO_IPV4, NF_INET_LOCAL_OUT, NF_IP_PRI_LAST),
	TICK_HOOK(NFPROTO_IPV4, NF_INET_LOCAL_IN, NF_IP_PRI_FIRST),
	TICK_HOOK(NFPROTO_IPV6, NF_INET_LOCAL_OUT, NF_IP6_PRI_LAST),
	TICK_HOOK(NFPROTO_IPV6, NF_INET_LOCAL_IN, NF_IP6_PRI_FIRST),
};

/* tick_us is last: it switches the rest on. The zero row ends the table before 6.6. */
static const struct ctl_table tick_sysctls[] = {
	{ .procname = "offset_ticks", .mode = 0644, .maxlen = sizeof(int),
	  .proc_handler = proc_douintvec },
	{ .procname = "drift_ppm", .mode = 0644, .maxlen = sizeof(int),
	  .proc_handler = proc_dointvec_minmax, .extra1 = &drift_min, .extra2 = &drift_max },
	{ .procname = "per_flow", .mode = 0644, .maxlen = sizeof(int),
	  .proc_handler = proc_dointvec_minmax, .extra1 = SYSCTL_ZERO, .extra2 = SYSCTL_ONE },
	{ .procname = "tick_us", .mode = 0644, .maxlen = sizeof(int),
	  .proc_handler = proc_douintvec_minmax, .extra1 = SYSCTL_ZERO, .extra2 = &tick_max },
	{ }
};

static int __net_init tick_net_init(struct net *net)
{
	struct tick_net *tn = net_generic(net, tick_net_id);
	struct ctl_table *table = kmemdup(tick_sysctls, sizeof(tick_sysctls), GFP_KERNEL);
	int err;

	if (!table)
		return -ENOMEM;
	table[0].data = &tn->offset_ticks;
	table[1].data = &tn->drift_ppm;
	table[2].data = &tn->per_flow;
	table[3].data = &tn->tick_us;
	tn->sysctls = register_net_sysctl_sz(net, "net/lbe_tick", table,
					     ARRAY_SIZE(tick_sysctls) - 1);
	if (!tn->sysctls) {
		kfree(table);
		return -ENOMEM;
	}
	err = nf_register_net_hooks(net, tick_hooks, ARRAY_SIZE(tick_hooks));
	if (err) {
		unregister_net_sysctl_table(tn->sysctls);
		kfree(table);
	}
	return err;
}

static void __net_exit tick_net_exit(struct net *net)
{
	struct tick_net *tn = net_generic(net, tick_net_id);
	const struct ctl_table *table = tn->sysctls->ctl_table_arg;

	nf_unregister_net_hooks(net, tick_hooks, ARRAY_SIZE(tick_hooks));
	unregister_net_sysctl_table(tn->sysctls);
	kfree(table);
}

static struct pernet_operations tick_net_ops = {
	.init = tick_net_init,
	.exit = tick_net_exit,
	.id = &tick_net_id,
	.size = sizeof(struct tick_net),
};

static int __init tick_init(void)
{
	return register_pernet_subsys(&tick_net_ops);
}

static void __exit tick_exit(void)
{
	unregister_pernet_subsys(&tick_net_ops);
}

module_init(tick_init);
module_exit(tick_exit);

MODULE_DESCRIPTION("Another clock in TCP timestamps, for testbeds");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
