/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The path object: the state that all flows of one network namespace to one destination share,
 * as long as their packets leave by the same device.
 *
 * The destination alone is not enough: fe80::1 on two links, one address in two VRFs, or sockets
 * bound to different devices are different paths. A flow whose route changes to another device
 * moves to that device's path with its next ACK. The network behind the device is not known. A
 * flow that meets other delays there than the other flows do (lbe_path_contradicts()) gets a path
 * of its own, until its device changes.
 */
#ifndef LBE_PATHS_H
#define LBE_PATHS_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <net/sock.h>

#include <lbe/path_send.h>

struct lbe_flow;
struct seq_file;

/**
 * struct lbe_shared - a path, found by destination and device
 * @node: in the namespace's table
 * @daddr: destination, IPv4 as mapped address; never changes
 * @ifindex: egress device; 0: there was no route when it was made; never changes
 * @alone: path of one flow that contradicted the others; no other flow finds it; never changes
 * @lock: guards the fields from @turn to @law; held for a few hundred instructions, and at most
 *	every 100 ms for a walk over the flows, never over a call into TCP. While it is held, the
 *	lock of another flow's socket is only tried
 * @users: number of its flows; written under the table's lock
 * @born: jiffies when it was made, 64 bits: does not wrap
 * @left: jiffies when the latest flow left, likewise; 0: none has
 * @turn: the flow that may send; NULL: none, and none waits. Flows leave before they end
 * @line: flows with data that wait for their turn, by lbe_flow.place
 * @rest: all other flows, likewise
 * @wake_ns: @turn asks again at this time, and may be woken earlier; U64_MAX: it could not be
 *	woken, and perhaps asks after a slice only; 0: it is asking now
 * @checked_ns: when flows that have ended were looked for
 * @law: state of the law (path.h)
 * @rcu: frees it when readers of /proc/net/lbe_paths are done
 */
struct lbe_shared {
	struct hlist_node node;
	struct in6_addr daddr;
	int ifindex;
	bool alone;
	spinlock_t lock;
	u32 users;
	u64 born;
	u64 left;
	struct lbe_flow *turn;
	struct list_head line;
	struct list_head rest;
	u64 wake_ns;
	u64 checked_ns;
	struct lbe_path law;
	struct rcu_head rcu;
};

/* Index of the device by which its packets leave; 0: it has no route at the moment. */
static inline int lbe_shared_device(struct sock *sk)
{
	const struct dst_entry *dst;
	int ifindex = 0;

	rcu_read_lock();
	dst = __sk_dst_get(sk);
	if (dst)
		ifindex = dst->dev->ifindex;
	rcu_read_unlock();
	return ifindex;
}

struct lbe_shared *lbe_shared_get(struct sock *sk, u64 now_us, bool alone);
void lbe_paths_each(struct net *net, void (*visit)(struct lbe_shared *shared));
void lbe_shared_put(const struct sock *sk, struct lbe_shared *shared);
void lbe_paths_totals(struct seq_file *seq, struct net *net);
int lbe_paths_register(void);
void lbe_paths_unregister(void);

/* In module.c: the weights of the namespace have changed. */
void lbe_flows_regroup(struct lbe_shared *shared);

#endif /* LBE_PATHS_H */
