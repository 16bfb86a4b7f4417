// SPDX-License-Identifier: GPL-2.0
/*
 * Capacity of the bottleneck as all LEDBAT flows of a network namespace saw it
 * together, for the dynamic minimum window (law: ledbat_law.h).
 *
 * Each flow adds what its ACKs confirm to one counter; once a second the rate
 * is taken, and the largest of the last ten minutes is the capacity. So flows
 * that share the link do not each take their own part of it for the whole, and
 * a flow that starts beside TCP knows what an earlier one found.
 *
 * Limit: a host has one capacity here, that of its access link; flows to a
 * narrower bottleneck elsewhere get a minimum window too large for it, which
 * loss then cuts (the window comes back to the minimum at Reno's pace only).
 */
#include <linux/atomic.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include <lbe/sender.h>

#include "ledbat.h"

/* Interval of one measurement, us: several round trips of any path. */
#define LEDBAT_HOST_INTERVAL_US	USEC_PER_SEC
/* One that took longer had idle time in it: it says nothing of the capacity. */
#define LEDBAT_HOST_STALE_US	(2 * USEC_PER_SEC)
#define LEDBAT_HOST_SLOTS	10
#define LEDBAT_SLOT_S		60

/**
 * struct ledbat_host - capacity of a network namespace
 * @lock: guards @since_us, @slots and @slot
 * @flows: flows with a dynamic minimum window
 * @bytes: delivered by them since @since_us
 * @since_us: beginning of the present interval, us
 * @slots: ages @slot
 * @slot: largest rate of each of the last minutes, bytes a second, inverted
 *	(~rate, since struct lbe_slots keeps minima)
 * @rate: largest of them, bytes a second; 0 = none yet; read without the lock
 */
struct ledbat_host {
	spinlock_t lock;	/* one flow at a time ends the interval */
	atomic_t flows;
	atomic64_t bytes;
	u64 since_us;
	struct lbe_slots slots;
	u32 slot[LEDBAT_HOST_SLOTS];
	u32 rate;
};

static unsigned int ledbat_net_id __read_mostly;

static struct ledbat_host *ledbat_host_of(const struct sock *sk)
{
	return net_generic(sock_net(sk), ledbat_net_id);
}

void ledbat_host_join(const struct sock *sk)
{
	atomic_inc(&ledbat_host_of(sk)->flows);
}

void ledbat_host_leave(const struct sock *sk)
{
	atomic_dec(&ledbat_host_of(sk)->flows);
}

/* End the interval if it is time; called with the lock. */
static void ledbat_host_measure(struct ledbat_host *host, u64 now_us)
{
	u64 span_us = now_us - host->since_us;
	u64 bytes, rate;

	if (span_us < LEDBAT_HOST_INTERVAL_US)
		return;
	bytes = atomic64_xchg(&host->bytes, 0);
	host->since_us = now_us;
	if (span_us > LEDBAT_HOST_STALE_US)
		return;
	rate = min_t(u64, div_u64(bytes * USEC_PER_SEC, span_us), U32_MAX - 1);
	WRITE_ONCE(host->rate,
		   ~lbe_slots_update(&host->slots, host->slot, LEDBAT_SLOT_S,
				     div_u64(now_us, USEC_PER_SEC), ~(u32)rate));
}

/* Count what an ACK confirmed, bytes. */
void ledbat_host_delivered(const struct sock *sk, u32 bytes)
{
	struct ledbat_host *host = ledbat_host_of(sk);
	u64 now_us = tcp_clock_us();

	atomic64_add(bytes, &host->bytes);
	if (now_us - READ_ONCE(host->since_us) < LEDBAT_HOST_INTERVAL_US)
		return;
	/* ACKs come in softirq and, from a socket's backlog, in process context. */
	spin_lock_bh(&host->lock);
	ledbat_host_measure(host, now_us);
	spin_unlock_bh(&host->lock);
}

/* Minimum window of a flow, packets, at least @fixed. */
u32 ledbat_host_floor_pkts(const struct sock *sk, u32 fixed, u32 share_permille)
{
	struct ledbat_host *host = ledbat_host_of(sk);

	return ledbat_floor_pkts(fixed, LEDBAT_WINDOW_MAX_PKTS,
				 READ_ONCE(host->rate), share_permille,
				 atomic_read(&host->flows),
				 lbe_srtt_us(tcp_sk(sk)),
				 max(tcp_sk(sk)->mss_cache, 1U));
}

static int __net_init ledbat_net_init(struct net *net)
{
	struct ledbat_host *host = net_generic(net, ledbat_net_id);

	spin_lock_init(&host->lock);
	atomic_set(&host->flows, 0);
	atomic64_set(&host->bytes, 0);
	host->since_us = 0;
	host->rate = 0;
	lbe_slots_init(&host->slots, host->slot, LEDBAT_HOST_SLOTS, 0);
	return 0;
}

static struct pernet_operations ledbat_net_ops = {
	.init	= ledbat_net_init,
	.id	= &ledbat_net_id,
	.size	= sizeof(struct ledbat_host),
};

int ledbat_host_register(void)
{
	return register_pernet_subsys(&ledbat_net_ops);
}

void ledbat_host_unregister(void)
{
	unregister_pernet_subsys(&ledbat_net_ops);
}
