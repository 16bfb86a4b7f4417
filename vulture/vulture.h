/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inside of vulture.ko: what its four rooms share.
 *
 *	netlink.c -> flow.c <- hook.c
 *	               |
 *	               v
 *	           paper.c (a struct rwnd_controller)
 *
 * A flow lives from vulture_flow_start() to the moment its socket enters
 * TCP_CLOSE, which the kernel reports by the tracepoint inet_sock_set_state
 * under the socket's lock: close, reset, abort and time-wait all pass through
 * it. So a flow holds no reference to its socket, and never outlives it.
 *
 * Locks, outer first: socket lock > vulture_net.rules_lock or hooks_lock >
 * vulture_flow.lock. Lookups are under RCU alone.
 */
#ifndef VULTURE_H
#define VULTURE_H

#include <linux/mutex.h>
#include <linux/netlink.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "controller.h"
#include "uapi/vulture.h"

#define VULTURE_MAX_FLOWS_DEFAULT	16384	/* about 40 MiB at most */
#define VULTURE_MAX_FLOWS_LIMIT		1000000
#define VULTURE_MAX_RULES		256	/* each new connection reads them all */

/* Both ends of a connection as its packets carry them. IPv4 uses word 0. */
struct vulture_key {
	__be32 local[4];
	__be32 remote[4];
	__be16 local_port;
	__be16 remote_port;
	u16 family;		/* AF_INET or AF_INET6, of the packets */
	u16 zero;		/* no padding: compared as memory */
};

struct vulture_flow {
	struct rhash_head node;		/* in vulture_net.table; RCU */
	struct vulture_key key;		/* constant */
	struct sock *sk;		/* constant; alive while !dead (see above) */
	struct vulture_net *vn;		/* constant */
	u64 id;				/* constant, unique on this machine */
	u64 started_us;			/* constant, monotonic clock */
	u32 rule;			/* constant, id of the rule; 0 = none */
	u8 scale;			/* constant, our window scale, 0 to 14 */

	refcount_t refs;		/* table, kick list, and readers outside RCU */
	struct rcu_head rcu;
	struct list_head kick;		/* in vulture_net.kicks; its kick_lock */

	spinlock_t lock;		/* all that follows; taken with BH off */
	bool dead;			/* out of the table; also read without lock */
	bool seen_out;			/* ack_seq, edge_seq and own_* are valid */
	u32 ack_seq;			/* latest acknowledgment number sent */
	u32 edge_seq;			/* furthest right edge advertised */
	u32 own_bytes;			/* TCP's own window in the latest segment */
	u32 advertised_bytes;		/* what went out instead */
	u32 high_seq;			/* end of the furthest data seen */
	u64 segments, bytes;		/* data in */
	u64 acks, rewritten, updates;	/* segments out */
	struct vulture_options options;	/* as started */
	const struct rwnd_controller *controller;
	u64 priv[RWND_PRIV_BYTES / sizeof(u64)];	/* the controller's */
};

struct vulture_rule {
	struct list_head node;		/* in vulture_net.rules; RCU */
	struct rcu_head rcu;
	u32 id;				/* above 0 */
	u64 cgroup_id;			/* 0 = any */
	struct cgroup *cgroup;		/* NULL = any; holds a reference */
	u16 local_port, remote_port;	/* 0 = any */
	u16 family;			/* of prefix; 0 = any */
	u8 prefix_len;			/* bits */
	__be32 prefix[4];
	struct vulture_options options;
	atomic64_t started;		/* connections */
};

struct vulture_net {
	struct net *net;
	struct rhashtable table;	/* of struct vulture_flow, by key */
	struct xarray ids;		/* the same by id: dumps in a fixed order */
	atomic_t flows;			/* in the table */
	u32 max_flows;			/* WRITE_ONCE under rules_lock */
	bool closing;			/* no new flows: namespace or module goes */

	struct mutex hooks_lock;	/* hooked */
	bool hooked;			/* the netfilter hooks are in place */
	struct delayed_work hooks_work;	/* puts hooks in or out of place */

	spinlock_t kick_lock;		/* kicks; taken with BH off */
	struct list_head kicks;		/* flows that may owe a window update */
	struct delayed_work kick_work;

	struct mutex rules_lock;	/* rules for writing, options, next_rule */
	struct list_head rules;		/* of struct vulture_rule, oldest first */
	u32 n_rules;
	u32 next_rule;			/* id of the next one */
	struct vulture_options options;	/* defaults */
};

/* Which sockets a request means; a test that vulture_sockets_find() applies. */
struct vulture_match {
	const struct vulture_key *key;	/* this connection, or NULL */
	struct cgroup *cgroup;		/* this cgroup and below, or NULL */
};

/* flow.c */
int vulture_flows_init(void);
void vulture_flows_stop(void);
void vulture_flows_exit(void);
struct vulture_net *vulture_net(const struct net *net);
u64 vulture_now_us(void);
void vulture_key_of_sock(const struct sock *sk, struct vulture_key *key);
struct vulture_flow *vulture_flow_lookup(struct vulture_net *vn,
					 const struct vulture_key *key);
struct vulture_flow *vulture_flow_get_by_id(struct vulture_net *vn, u64 id);
void vulture_flow_put(struct vulture_flow *flow);
int vulture_flow_start(struct sock *sk, const struct vulture_options *options,
		       u32 rule, gfp_t gfp, u64 *id, struct netlink_ext_ack *extack);
int vulture_flow_stop(struct sock *sk, struct netlink_ext_ack *extack);
struct sock *vulture_flow_hold_sock(struct vulture_flow *flow);
void vulture_flow_kick(struct vulture_flow *flow);
struct sock **vulture_sockets_find(struct net *net, const struct vulture_match *match,
				   unsigned int *n);
void vulture_sockets_put(struct sock **socks, unsigned int n);
int vulture_hooks_settle(struct vulture_net *vn);
bool vulture_sock_in_cgroup(const struct sock *sk, struct cgroup *cgroup);

/* hook.c */
int vulture_hooks_add(struct net *net);
void vulture_hooks_remove(struct net *net);

/* netlink.c */
int vulture_netlink_init(void);
void vulture_netlink_exit(void);
void vulture_netlink_event(struct vulture_flow *flow, u8 cmd, u32 reason);
extern const struct vulture_options vulture_default_options;

#endif /* VULTURE_H */
