/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The path object: what the flows of one network namespace to one destination share.
 */
#ifndef LBE_PATHS_H
#define LBE_PATHS_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#include <lbe/path.h>

struct sock;

/**
 * struct lbe_shared - a path, found by its destination
 * @node: in the namespace's table
 * @daddr: destination, IPv4 as mapped address; never changes
 * @lock: guards @law; held for a few hundred instructions, never over a call into TCP
 * @users: flows of it; guarded by the table's lock
 * @left: jiffies when the last flow left
 * @law: what the path knows
 * @rcu: readers without a lock (ss, the dump) may still look when it goes
 */
struct lbe_shared {
	struct hlist_node node;
	struct in6_addr daddr;
	spinlock_t lock;
	u32 users;
	unsigned long left;
	struct lbe_path law;
	struct rcu_head rcu;
};

struct lbe_shared *lbe_shared_get(struct sock *sk, u64 now_us, u32 mss, u32 rtt_us);
void lbe_shared_put(struct sock *sk, struct lbe_shared *shared);
int lbe_paths_register(void);
void lbe_paths_unregister(void);

#endif /* LBE_PATHS_H */
