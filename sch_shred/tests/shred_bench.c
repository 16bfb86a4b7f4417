// SPDX-License-Identifier: GPL-2.0
/*
 * Cost of a packet: enqueue and dequeue of several queues, and the writer's hooks.
 * For measurements only; sch_shred/tests/bench.py loads it.
 *
 *   devices=a,b,c   the root queues of these devices are measured in turn
 *   rounds=N        number of measurements of each, in turn, of PACKETS packets each
 *   fill=N          packets that are in the queue during a measurement
 *   cold=1          the memory of the queue and of its child is flushed from all caches
 *                   before each enqueue and dequeue, as on a host with many active
 *                   queues; the result includes the time of reading the counter
 *
 * The time of 100 packets in each round, in ticks of the CPU's counter, is in the
 * parameters ticks (queues: device after device within a round) and hook_ticks
 * (FORWARD and POST_ROUTING within a round). The queues are measured in turn, because
 * the host of the guest is not idle: evaluate the median of the ratios within rounds.
 * The counter is read directly: in virtual time the kernel's clocks do not advance.
 */

#include <linux/etherdevice.h>
#include <linux/inet.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <net/tcp.h>

#include <lbe/cpu_ticks.h>

#define PACKETS		20000
#define PAYLOAD		960
#define COLD_PACKETS	2000
#define CACHE_LINE	64
#define DEVICES_MAX	8
#define ROUNDS_MAX	64

static char *devices[DEVICES_MAX];
static int n_devices;
module_param_array(devices, charp, &n_devices, 0444);
MODULE_PARM_DESC(devices, "whose root queues are measured");

static unsigned int rounds = 20;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "measurements of each, 1 to 64");

static unsigned int fill = 30;
module_param(fill, uint, 0444);
MODULE_PARM_DESC(fill, "packets that stay in the queue, 1 to 1000");

static bool cold;
module_param(cold, bool, 0444);
MODULE_PARM_DESC(cold, "flush the queue's memory before each packet");

static bool mixed;
module_param(mixed, bool, 0444);
MODULE_PARM_DESC(mixed, "every other packet is of the oldest age");

static unsigned int ticks[DEVICES_MAX * ROUNDS_MAX];
static int n_ticks;
module_param_array(ticks, uint, &n_ticks, 0444);
MODULE_PARM_DESC(ticks, "result: CPU ticks of 100 packets");

static unsigned int hook_ticks[2 * ROUNDS_MAX];
static int n_hook_ticks;
module_param_array(hook_ticks, uint, &n_hook_ticks, 0444);
MODULE_PARM_DESC(hook_ticks, "result: CPU ticks of 100 packets in the hooks");

/* A TCP packet with an Ethernet header and DSCP 31 or 7, which are hints in both codings. */
static struct sk_buff *bench_packet(bool old)
{
	const int len = sizeof(struct iphdr) + sizeof(struct tcphdr) + PAYLOAD;
	struct sk_buff *skb = alloc_skb(ETH_HLEN + NET_IP_ALIGN + len, GFP_ATOMIC);
	struct iphdr *iph;
	struct tcphdr *th;

	if (!skb)
		return NULL;
	skb_reserve(skb, NET_IP_ALIGN);
	skb_put_zero(skb, ETH_HLEN + len);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb_set_transport_header(skb, ETH_HLEN + sizeof(*iph));
	skb->protocol = htons(ETH_P_IP);

	iph = ip_hdr(skb);
	iph->version = 4;
	iph->ihl = sizeof(*iph) / 4;
	iph->tos = (old ? 7 : 31) << 2;
	iph->ttl = 64;
	iph->protocol = IPPROTO_TCP;
	iph->tot_len = htons(len);
	iph->saddr = in_aton("192.0.2.1");
	iph->daddr = in_aton("192.0.2.2");
	ip_send_check(iph);

	th = tcp_hdr(skb);
	th->source = htons(80);
	th->dest = htons(1024);
	th->doff = sizeof(*th) / 4;
	th->ack = 1;
	return skb;
}

/* ---- queues ---- */

static int bench_put(struct Qdisc *sch, struct sk_buff *skb)
{
	struct sk_buff *to_free = NULL;
	int ret;

	qdisc_skb_cb(skb)->pkt_len = skb->len;
	ret = sch->enqueue(skb, sch, &to_free);
	kfree_skb_list(to_free);
	return ret;
}

static int bench_fill(struct Qdisc *sch)
{
	unsigned int i;

	for (i = 0; i < fill; i++) {
		struct sk_buff *skb = bench_packet(mixed && i % 2);

		if (!skb)
			return -ENOMEM;
		/* if red drops it, the next one takes its place */
		bench_put(sch, skb);
	}
	return sch->q.qlen ? 0 : -ENOBUFS;
}

/* Ticks of 100 pairs of dequeue and enqueue; a dropped packet is replaced by a new one. */
static int bench_queue(struct Qdisc *sch, unsigned int *result)
{
	struct sk_buff *skb;
	unsigned int i;
	u64 begin;

	spin_lock_bh(qdisc_lock(sch));
	begin = lbe_cpu_ticks();
	for (i = 0; i < PACKETS; i++) {
		skb = sch->dequeue(sch);
		while (skb && bench_put(sch, skb) != NET_XMIT_SUCCESS)
			skb = bench_packet(mixed && i % 2);
		if (!skb)
			break;
	}
	*result = div_u64(lbe_cpu_ticks() - begin, PACKETS / 100);
	spin_unlock_bh(qdisc_lock(sch));
	return i == PACKETS ? 0 : -ENOMEM;
}

static void bench_flush(const void *memory, size_t size)
{
	const char *at = memory;

	for (; size; at += CACHE_LINE, size -= min_t(size_t, size, CACHE_LINE))
		asm volatile("clflush %0" : : "m" (*at) : "memory");
	asm volatile("mfence" : : : "memory");
}

static void bench_flush_queue(struct Qdisc *sch)
{
	const struct Qdisc_class_ops *cl_ops = sch->ops->cl_ops;
	struct Qdisc *child = NULL;

	bench_flush(sch, sizeof(*sch) + sch->ops->priv_size);
	if (cl_ops && cl_ops->leaf && cl_ops->find && cl_ops->find(sch, 1))
		child = cl_ops->leaf(sch, 1);
	if (child)
		bench_flush(child, sizeof(*child) + child->ops->priv_size);
}

/* The same with a cold cache: the time of the two calls only. */
static int bench_queue_cold(struct Qdisc *sch, unsigned int *result)
{
	u64 begin, sum = 0;
	struct sk_buff *skb;
	unsigned int i;

	spin_lock_bh(qdisc_lock(sch));
	for (i = 0; i < COLD_PACKETS; i++) {
		bench_flush_queue(sch);
		begin = lbe_cpu_ticks();
		skb = sch->dequeue(sch);
		sum += lbe_cpu_ticks() - begin;
		if (!skb)
			break;
		bench_flush_queue(sch);
		begin = lbe_cpu_ticks();
		if (bench_put(sch, skb) != NET_XMIT_SUCCESS) {
			skb = bench_packet(mixed && i % 2);
			if (skb)
				bench_put(sch, skb);
		}
		sum += lbe_cpu_ticks() - begin;
	}
	*result = div_u64(sum, COLD_PACKETS / 100);
	spin_unlock_bh(qdisc_lock(sch));
	return i == COLD_PACKETS ? 0 : -ENOMEM;
}

static struct Qdisc *bench_root(const char *name)
{
	struct net_device *dev = __dev_get_by_name(&init_net, name);

	return dev ? rtnl_dereference(dev->qdisc) : NULL;
}

static int bench_queues(void)
{
	struct Qdisc *sch[DEVICES_MAX];
	unsigned int round;
	int i, err = 0;

	rtnl_lock();
	for (i = 0; i < n_devices && !err; i++) {
		sch[i] = bench_root(devices[i]);
		err = !sch[i] ? -ENODEV : sch[i]->flags & TCQ_F_NOLOCK ? -EINVAL : 0;
		if (!err) {
			spin_lock_bh(qdisc_lock(sch[i]));
			err = bench_fill(sch[i]);
			spin_unlock_bh(qdisc_lock(sch[i]));
		}
	}
	for (round = 0; round < rounds && !err; round++)
		for (i = 0; i < n_devices && !err; i++)
			err = cold ? bench_queue_cold(sch[i], &ticks[n_ticks++]) :
				     bench_queue(sch[i], &ticks[n_ticks++]);
	rtnl_unlock();
	return err;
}

/* ---- hooks ---- */

static int bench_accept(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	return 0;
}

static int bench_hook(unsigned int hook, struct sk_buff *skb, struct net_device *dev,
		      unsigned int *result)
{
	struct tcphdr *th = tcp_hdr(skb);
	unsigned int i;
	u64 begin;

	begin = lbe_cpu_ticks();
	for (i = 0; i < PACKETS; i++) {
		th->seq = htonl(i * PAYLOAD);
		if (nf_hook(NFPROTO_IPV4, hook, &init_net, skb->sk, skb, dev, dev,
			    bench_accept) != 1)
			return -EPERM;		/* another hook dropped the packet */
	}
	*result = div_u64(lbe_cpu_ticks() - begin, PACKETS / 100);
	return 0;
}

static int bench_hooks(void)
{
	struct net_device *dev = init_net.loopback_dev;
	struct sk_buff *skb = bench_packet(false);
	struct socket *sock;
	unsigned int round;
	int err;

	if (!skb)
		return -ENOMEM;
	err = sock_create_kern(&init_net, PF_INET, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		goto free_packet;
	skb_pull(skb, ETH_HLEN);
	for (round = 0; round < rounds && !err; round++) {
		local_bh_disable();
		err = bench_hook(NF_INET_FORWARD, skb, dev, &hook_ticks[n_hook_ticks++]);
		skb->sk = sock->sk;
		if (!err)
			err = bench_hook(NF_INET_POST_ROUTING, skb, dev,
					 &hook_ticks[n_hook_ticks++]);
		skb->sk = NULL;
		local_bh_enable();
	}
	sock_release(sock);
free_packet:
	kfree_skb(skb);
	return err;
}

static int __init bench_init(void)
{
	if (!rounds || rounds > ROUNDS_MAX || !fill || fill > 1000)
		return -ERANGE;
	n_ticks = 0;
	n_hook_ticks = 0;
	return n_devices ? bench_queues() : bench_hooks();
}

/* The packets that are still queued are freed with the queues. */
static void __exit bench_exit(void)
{
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("Cost of a packet in shred and in the hint's hooks");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
