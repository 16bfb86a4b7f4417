// SPDX-License-Identifier: GPL-2.0
/*
 * What all files above this one use: the data of a namespace, the clock, the memory and references
 * of flows, and the locks of sockets.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/netns/generic.h>

#include "vulture.h"

/* Time for which the hooks stay after the last flow. Otherwise an application that starts and stops
 * the control of its sockets would wait for their removal (a grace period) each time.
 */
#define VULTURE_HOOKS_LINGER	HZ

unsigned int vulture_net_id __read_mostly;

/* One for each controller, as their states differ in size. */
static struct kmem_cache *vulture_flow_caches[__VULTURE_CONTROLLER_MAX];

struct vulture_net *vulture_net(const struct net *net)
{
	return net_generic(net, vulture_net_id);
}

u64 vulture_now_us(void)
{
	return div_u64(ktime_get_ns(), NSEC_PER_USEC);
}

/* Schedule a check whether the hooks are still needed. */
void vulture_hooks_look(struct vulture_net *vn)
{
	if (!READ_ONCE(vn->closing))
		mod_delayed_work(VULTURE_WQ, &vn->hooks_work, VULTURE_HOOKS_LINGER);
}

/* The locks of sockets */

/* Take ownership of a socket as lock_sock() does, if nobody has it. The kernel has no function for
 * this. With bh_lock_sock() alone, as in softirqs, the caller could not sleep, but the start of a
 * flow allocates memory that is charged to the caller's cgroup.
 */
static bool vulture_sock_trylock(struct sock *sk)
{
	bool owned;

	spin_lock_bh(&sk->sk_lock.slock);
	owned = sk->sk_lock.owned;
	sk->sk_lock.owned = 1;
	spin_unlock_bh(&sk->sk_lock.slock);
	if (!owned)
		mutex_acquire(&sk->sk_lock.dep_map, 0, 1, _RET_IP_);
	return !owned;
}

/**
 * vulture_sock_lock() - lock_sock() that gives up
 * @sk: socket; the caller holds a reference
 * @until: time at which to give up, jiffies; jiffies or before = tries once
 *
 * A system call owns its socket while it copies, also while a page of its memory is waited for. An
 * application can make that wait as long as it likes (userfaultfd, FUSE). Therefore nothing in this
 * module may wait for a socket without a bound. May sleep.
 *
 * Return: false if the socket is locked by another task; true, and release_sock() unlocks it.
 */
bool vulture_sock_lock(struct sock *sk, unsigned long until)
{
	long left = max(0L, (long)(until - jiffies));

	return wait_event_timeout(sk->sk_lock.wq, vulture_sock_trylock(sk), left);
}

/* Memory and references of flows */

/* Return: a flow with these options and one reference, otherwise zero; NULL without memory. */
struct vulture_flow *vulture_flow_alloc(const struct vulture_options *options, gfp_t gfp)
{
	struct vulture_flow *flow;

	flow = kmem_cache_zalloc(vulture_flow_caches[options->controller], gfp);
	if (!flow)
		return NULL;
	flow->options = *options;
	refcount_set(&flow->refs, 1);
	return flow;
}

/* Free a flow that nobody else has seen. */
void vulture_flow_free(struct vulture_flow *flow)
{
	kmem_cache_free(vulture_flow_caches[flow->options.controller], flow);
}

static void vulture_flow_free_rcu(struct rcu_head *head)
{
	vulture_flow_free(container_of(head, struct vulture_flow, rcu));
}

void vulture_flow_put(struct vulture_flow *flow)
{
	if (refcount_dec_and_test(&flow->refs))
		call_rcu(&flow->rcu, vulture_flow_free_rcu);
}

/* Return: a reference to the socket, or NULL if it has closed. The memory of TCP sockets is reused
 * under RCU, so the socket may already belong to another connection: the caller must take its lock
 * and check that dead is not set before it acts on the socket.
 */
struct sock *vulture_flow_hold_sock(struct vulture_flow *flow)
{
	struct sock *sk = NULL;

	rcu_read_lock();
	if (!READ_ONCE(flow->dead) && !READ_ONCE(flow->closed) &&
	    refcount_inc_not_zero(&flow->sk->sk_refcnt))
		sk = flow->sk;
	rcu_read_unlock();
	return sk;
}

/* Return: kernel memory for each connection of a controller, bytes. */
u32 vulture_flow_bytes(u32 controller)
{
	return sizeof(struct vulture_flow) +
	       ALIGN(rwnd_controllers[controller]->state_bytes, sizeof(u64));
}

int __init vulture_flows_init(void)
{
	unsigned int i;

	for (i = 0; i < __VULTURE_CONTROLLER_MAX; i++) {
		const struct rwnd_controller *c = rwnd_controllers[i];
		char name[32];

		if (!c)
			continue;
		snprintf(name, sizeof(name), "vulture_flow_%s", c->name);
		vulture_flow_caches[i] =
			kmem_cache_create(name, vulture_flow_bytes(i), 0,
					  SLAB_ACCOUNT | SLAB_HWCACHE_ALIGN, NULL);
		if (!vulture_flow_caches[i]) {
			vulture_flows_exit();
			return -ENOMEM;
		}
	}
	return 0;
}

void vulture_flows_exit(void)
{
	unsigned int i;

	for (i = 0; i < __VULTURE_CONTROLLER_MAX; i++)
		kmem_cache_destroy(vulture_flow_caches[i]);
}
