// SPDX-License-Identifier: GPL-2.0
/*
 * The paths of a network namespace: found by destination, shared by its flows,
 * kept for a while after the last one left.
 */
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/proc_fs.h>
#include <linux/rculist.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "paths.h"

#define LBE_PATHS_BUCKETS	256
/* Paths without a flow that a namespace keeps at most. Double it: 512 kB more. */
#define LBE_PATHS_IDLE_MAX	1024
/* A path without a flow is forgotten after this. What it knew is older than the
 * window of base and capacity then.
 */
#define LBE_PATHS_KEEP		(600 * HZ)

/**
 * struct lbe_paths - paths of a network namespace
 * @lock: guards all; not held while a path's own lock is taken
 * @bucket: by hash of the destination; read under RCU too
 * @idle: paths without a flow
 */
struct lbe_paths {
	spinlock_t lock;
	struct hlist_head bucket[LBE_PATHS_BUCKETS];
	u32 idle;
};

static unsigned int lbe_paths_id __read_mostly;

static void lbe_daddr(const struct sock *sk, struct in6_addr *daddr)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		*daddr = sk->sk_v6_daddr;
		return;
	}
#endif
	ipv6_addr_set_v4mapped(sk->sk_daddr, daddr);
}

static void lbe_paths_forget(struct lbe_paths *paths, struct lbe_shared *shared)
{
	hlist_del_rcu(&shared->node);
	paths->idle--;
	kfree_rcu(shared, rcu);
}

/* Forget what is old in a bucket; all paths without a flow if there are too many. */
static void lbe_paths_age(struct lbe_paths *paths, struct hlist_head *head)
{
	struct lbe_shared *shared;
	struct hlist_node *next;

	hlist_for_each_entry_safe(shared, next, head, node)
		if (!shared->users &&
		    (paths->idle > LBE_PATHS_IDLE_MAX ||
		     time_after(jiffies, shared->left + LBE_PATHS_KEEP)))
			lbe_paths_forget(paths, shared);
}

static struct lbe_shared *lbe_paths_find(struct hlist_head *head, const struct in6_addr *daddr)
{
	struct lbe_shared *shared;

	hlist_for_each_entry(shared, head, node)
		if (ipv6_addr_equal(&shared->daddr, daddr))
			return shared;
	return NULL;
}

struct lbe_shared *lbe_shared_get(struct sock *sk, u64 now_us, u32 mss, u32 rtt_us)
{
	struct lbe_paths *paths = net_generic(sock_net(sk), lbe_paths_id);
	struct lbe_shared *shared;
	struct hlist_head *head;
	struct in6_addr daddr;

	lbe_daddr(sk, &daddr);
	head = &paths->bucket[__ipv6_addr_jhash(&daddr, 0) % LBE_PATHS_BUCKETS];
	spin_lock_bh(&paths->lock);
	lbe_paths_age(paths, head);
	shared = lbe_paths_find(head, &daddr);
	if (!shared) {
		shared = kzalloc(sizeof(*shared), GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
		if (!shared)
			goto out;
		shared->daddr = daddr;
		spin_lock_init(&shared->lock);
		lbe_path_init(&shared->law, now_us, mss, rtt_us);
		hlist_add_head_rcu(&shared->node, head);
	} else if (!shared->users) {
		paths->idle--;
	}
	shared->users++;
out:
	spin_unlock_bh(&paths->lock);
	return shared;
}

void lbe_shared_put(struct sock *sk, struct lbe_shared *shared)
{
	struct lbe_paths *paths = net_generic(sock_net(sk), lbe_paths_id);

	spin_lock_bh(&paths->lock);
	if (!--shared->users) {
		shared->left = jiffies;
		paths->idle++;
	}
	spin_unlock_bh(&paths->lock);
}

static int __net_init lbe_paths_init(struct net *net)
{
	struct lbe_paths *paths = net_generic(net, lbe_paths_id);
	int i;

	spin_lock_init(&paths->lock);
	for (i = 0; i < LBE_PATHS_BUCKETS; i++)
		INIT_HLIST_HEAD(&paths->bucket[i]);
	paths->idle = 0;
	return 0;
}

/* Sockets hold their namespace, or are gone before it is: no path has a flow. */
static void __net_exit lbe_paths_exit(struct net *net)
{
	struct lbe_paths *paths = net_generic(net, lbe_paths_id);
	struct lbe_shared *shared;
	struct hlist_node *next;
	int i;

	for (i = 0; i < LBE_PATHS_BUCKETS; i++)
		hlist_for_each_entry_safe(shared, next, &paths->bucket[i], node)
			lbe_paths_forget(paths, shared);
}

static struct pernet_operations lbe_paths_ops = {
	.init	= lbe_paths_init,
	.exit	= lbe_paths_exit,
	.id	= &lbe_paths_id,
	.size	= sizeof(struct lbe_paths),
};

int lbe_paths_register(void)
{
	return register_pernet_subsys(&lbe_paths_ops);
}

void lbe_paths_unregister(void)
{
	unregister_pernet_subsys(&lbe_paths_ops);
	rcu_barrier();
}
