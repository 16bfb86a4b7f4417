/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations that the source files of vulture.ko share.
 *
 *	main.c       init and exit, of the module and of each namespace
 *	netlink_gen.c  policies, operations and family, made from Documentation/vulture.yaml
 *	netlink.c    requests and answers
 *	probe.c      the begin and end of connections, as TCP reports them
 *	hook.c       data of incoming packets, windows of outgoing ones
 *	sockets.c    which sockets a request names
 *	rules.c      which new connections come under control
 *	flow.c       the table of flows: start, change, stop, end
 *	message.c    a flow as a message; events
 *	options.c    controllers and their options, from and to messages
 *	path.c       state that the flows of one path share
 *	paper.c ...  the controllers
 *	update.c     a flow's timer, and ACKs that the module sends
 *	base.c       what all use: namespace, clock, references, locks of sockets
 *
 * A file calls by name only functions of files below it in this list. The controllers' functions
 * are called through struct rwnd_controller, by any file; tests/test_layers.py checks the rest.
 *
 * A flow lives from vulture_flow_start() until its socket enters TCP_CLOSE. The kernel reports this
 * by the tracepoint inet_sock_set_state under the socket's lock; close, reset, abort and time-wait
 * all pass through it. Therefore a flow needs no reference to its socket, and never outlives it.
 *
 * Locks, outer first: socket lock > vulture_net.rules_lock or hooks_lock >
 * vulture_flow.lock > vulture_flow.state_lock > vulture_flow.timer_lock. Each call of
 * a controller is made under lock and state_lock. Lookups are under RCU alone.
 */
#ifndef VULTURE_H
#define VULTURE_H

#include <linux/hrtimer.h>
#include <linux/llist.h>
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
#include "edge.h"
#include "uapi/vulture.h"

#define VULTURE_MAX_FLOWS_DEFAULT	16384	/* of a namespace: about 40 MiB at most */
#define VULTURE_MACHINE_FLOWS		65536	/* of all namespaces: about 160 MiB at most */
#define VULTURE_MAX_RULES		256	/* each new connection is compared with all */
/* Limits for users without CAP_NET_ADMIN. All of them together may have half of the rules and half
 * of the default table.
 */
#define VULTURE_USERS			16	/* users of a namespace at a time */
#define VULTURE_USER_RULES		8	/* rules of each */
#define VULTURE_USER_FLOWS		512	/* flows of each that such rules started */
#define VULTURE_PATH_BUCKETS		256
/* Time that a request, or the module's removal, waits for the locks of sockets in total, jiffies. A
 * recv() of a full buffer of 6 MiB copies for a few ms, and memory that comes from a disk takes
 * 10 ms a page. With half of it more of such applications are refused. A request keeps other
 * requests waiting for this time while a family of generic netlink is registered or unregistered:
 * with twice as much, twice as long.
 */
#define VULTURE_LOCK_WAIT		(HZ / 10)
/* On 7.2 system_wq warns that it is deprecated, and 6.1 does not have the queue that
 * replaces it. This queue does the same work, and all kernels have it.
 */
#define VULTURE_WQ			system_power_efficient_wq

/* Addresses and ports of a connection as its packets carry them. IPv4 uses word 0. */
struct vulture_key {
	__be32 local[4];
	__be32 remote[4];
	__be16 local_port;
	__be16 remote_port;
	u16 family;		/* AF_INET or AF_INET6, of the packets */
	u16 zero;		/* no padding: compared as memory */
};

/* A controller, and its options by attribute. */
struct vulture_options {
	u32 controller;		/* enum vulture_controller */
	u32 values[RWND_OPTIONS_MAX];
};

/* State that the flows of one path share: those of one controller to one network of peers (a /24 or
 * a /64) through one device. It outlives its last flow by VULTURE_PATH_LINGER, so that the next
 * flow need not learn it again.
 */
struct vulture_path {
	struct hlist_node node;		/* in vulture_net.paths; paths_lock */
	__be32 network[4];		/* constant; prefix of the peers' addresses */
	u16 family;			/* constant */
	u16 controller;			/* constant, enum vulture_controller */
	int ifindex;			/* constant, device; 0 = not known */
	unsigned int flows;		/* number of flows on it; paths_lock */
	unsigned long idle_since;	/* jiffies, while flows is 0; paths_lock */
	spinlock_t lock;		/* state; taken with BH off, inside a flow's lock */
	u64 state[];			/* the controller's */
};

/* A user who has rules without CAP_NET_ADMIN. The entry is free while both counts are 0. */
struct vulture_user {
	kuid_t uid;		/* rules_lock */
	u32 rules;		/* rules_lock */
	atomic_t flows;		/* flows that these rules started and that have not ended */
};

struct vulture_flow {
	struct rhash_head node;		/* in vulture_net.table; RCU */
	struct vulture_key key;		/* constant */
	struct sock *sk;		/* constant; exists while !dead (see above) */
	struct vulture_net *vn;		/* constant */
	struct vulture_path *path;	/* constant; NULL if the controller keeps none */
	spinlock_t *state_lock;		/* for the controller's state: the path's lock, or own_lock
					 * without a path or once the flow has left it; lock
					 */
	spinlock_t own_lock;
	const struct rwnd_controller *controller;	/* constant */
	u64 id;				/* constant, unique on this machine */
	u64 started_us;			/* constant, monotonic clock */
	u32 rule;			/* constant, id of the rule; 0 = none */
	struct vulture_user *user;	/* constant, counts this flow; NULL = none */
	u32 max_seg_bytes;		/* constant, largest segment that the peer may send */

	bool closed;			/* its socket is gone, a work item will end it; xchg() */
	struct llist_node closed_node;	/* in the list of that work item; set once */
	refcount_t refs;		/* table, armed timer, and readers outside RCU */
	struct rcu_head rcu;

	spinlock_t timer_lock;		/* for the next five; taken with BH off, inside a path's */
	struct hrtimer timer;		/* for the earliest of want.wake_us, kick_us and poke_us */
	u64 timer_us;			/* it is armed for this time; 0 = it is not armed */
	u64 poke_us;			/* time that rwnd_wake() has set; 0 = none */
	bool timer_ends;		/* it must not be armed any more */
	bool timer_held;		/* it has a reference: it is armed, or its function runs */

	spinlock_t lock;		/* for all that follows; taken with BH off */
	u64 kick_us;			/* check at this time if TCP owes an ACK; 0 = no */
	bool dead;			/* it is out of the table; also read without lock */
	bool left;			/* it has left its path, which may be freed */
	struct edge edge;
	struct rwnd_want want;		/* what the controller wants */
	u64 segments, bytes;		/* received data */
	u64 acks, rewritten, updates;	/* sent segments; with a changed window; of the module */
	struct vulture_options options;	/* the present ones */
	u64 state[];			/* the controller's */
};

struct vulture_rule {
	struct list_head node;		/* in vulture_net.rules; RCU */
	struct rcu_head rcu;
	u64 number;			/* in the order in which the rules were added */
	u32 id;				/* above 0 */
	u64 cgroup_id;			/* 0 = any */
	struct cgroup *cgroup;		/* NULL = any; holds a reference */
	u16 local_port, remote_port;	/* 0 = any */
	u16 family;			/* of prefix; 0 = any */
	u8 prefix_len;			/* bits */
	__be32 prefix[4];
	bool by_dscp;			/* dscp is compared */
	u8 dscp;			/* DSCP with which the socket sends, 0 to 63 */
	bool foreground;		/* keeps what matches uncontrolled; vulture_rules_first() */
	struct vulture_options options;
	struct vulture_user *user;	/* its owner; NULL = an administrator */
	atomic64_t started, failed;	/* connections */
};

struct vulture_net {
	struct net *net;
	struct rhashtable table;	/* of struct vulture_flow, by key */
	struct xarray ids;		/* the same by id, for dumps in a fixed order */
	atomic_t flows;			/* number of flows in the table */
	u32 max_flows;			/* WRITE_ONCE under rules_lock */
	bool closing;			/* no new flows: namespace or module is being removed */

	struct mutex hooks_lock;	/* for hooked and hook_users */
	bool hooked;			/* the netfilter hooks are registered */
	u32 hook_users;			/* requests that are about to need them */
	struct delayed_work hooks_work;	/* registers or unregisters the hooks as needed */

	atomic_t timers;		/* armed or running; namespace exit waits for them */

	spinlock_t paths_lock;		/* for paths; taken with BH off */
	struct hlist_head paths[VULTURE_PATH_BUCKETS];
	unsigned int n_paths;
	struct delayed_work paths_work;	/* frees those that were idle for long enough */

	struct mutex rules_lock;	/* for writing rules, for options and next_rule */
	struct list_head rules;		/* of struct vulture_rule, oldest first */
	u32 n_rules;
	u32 n_foreground;		/* number of them with foreground set */
	struct vulture_user users[VULTURE_USERS];
	struct delayed_work rules_work;	/* removes rules whose cgroup is gone */
	u64 next_rule;			/* number of the next rule */
	u32 controller;			/* the default controller */
	u32 defaults[__VULTURE_CONTROLLER_MAX][RWND_OPTIONS_MAX];	/* default options */
};

/* probe.c */
int vulture_probe_init(void);
void vulture_probe_wait(void);
void vulture_probe_exit(void);

/* netlink.c */
int vulture_netlink_init(void);
void vulture_netlink_exit(void);

/* rules.c */
void vulture_rules_net_init(struct vulture_net *vn);
void vulture_rules_net_exit(struct vulture_net *vn);
void vulture_rules_apply(struct vulture_net *vn, struct sock *sk, bool opening);
void vulture_rules_fail(struct vulture_net *vn, const struct sock *sk);
const struct rwnd_controller *vulture_rules_match(struct vulture_net *vn, const struct sock *sk);
void vulture_rules_prune(struct vulture_net *vn);
int vulture_rule_insert(struct vulture_net *vn, struct vulture_rule *rule,
			struct netlink_ext_ack *extack);
struct vulture_rule *vulture_rule_remove(struct vulture_net *vn, u32 id, bool admin);
int vulture_rule_own(struct vulture_net *vn, struct vulture_rule *rule,
		     struct netlink_ext_ack *extack);
void vulture_rule_free(struct vulture_rule *rule);
struct cgroup *vulture_get_cgroup(u64 id, struct netlink_ext_ack *extack);
struct cgroup *vulture_get_cgroup_fd(u32 fd, u64 *id, struct netlink_ext_ack *extack);
bool vulture_sock_in_cgroup(const struct sock *sk, struct cgroup *cgroup);

/* sockets.c */
struct sock **vulture_sockets_of_fd(u32 fd, unsigned int *n, struct netlink_ext_ack *extack);
struct sock **vulture_sockets_of_addr(const struct vulture_key *key, struct net *net,
				      unsigned int *n, struct netlink_ext_ack *extack);
struct sock **vulture_sockets_of_pid(u32 nr, struct net *net, unsigned int *n,
				     struct netlink_ext_ack *extack);
struct sock **vulture_sockets_of_cgroup(struct cgroup *cgroup, struct net *net,
					unsigned int *n);
void vulture_sockets_put(struct sock **socks, unsigned int n);

/* options.c */
int vulture_options_parse(struct vulture_net *vn, const struct nlattr *nest,
			  struct vulture_options *options, struct netlink_ext_ack *extack);
int vulture_options_put(struct sk_buff *skb, int type, const struct vulture_options *options);
int vulture_defaults_parse(struct vulture_net *vn, const struct nlattr *nest,
			   struct netlink_ext_ack *extack);
int vulture_defaults_put(struct sk_buff *skb, int type, struct vulture_net *vn);
void vulture_defaults_init(struct vulture_net *vn);

/* hook.c */
int vulture_hooks_hold(struct vulture_net *vn);
void vulture_hooks_release(struct vulture_net *vn);
void vulture_hooks_net_init(struct vulture_net *vn);
void vulture_hooks_net_exit(struct vulture_net *vn);

/* flow.c */
void vulture_flows_refuse(void);
u32 vulture_syn_bytes(const struct rwnd_controller *c, const struct sock *sk);
int vulture_flows_net_init(struct vulture_net *vn);
void vulture_flows_net_exit(struct vulture_net *vn);
void vulture_flows_flush(struct vulture_net *vn, unsigned long until);
bool vulture_sock_is_tcp(const struct sock *sk);
void vulture_key_of_sock(const struct sock *sk, struct vulture_key *key);
struct vulture_flow *vulture_flow_lookup(struct vulture_net *vn,
					 const struct vulture_key *key);
struct vulture_flow *vulture_flow_get_by_id(struct vulture_net *vn, u64 id);
struct vulture_flow *vulture_flow_get_by_sock(struct sock *sk);
int __vulture_flow_start(struct sock *sk, const struct vulture_options *options,
			 const struct vulture_rule *rule, bool opening, gfp_t gfp,
			 u64 *id, struct netlink_ext_ack *extack);
int vulture_flow_start(struct sock *sk, const struct vulture_options *options,
		       unsigned long until, u64 *id, struct netlink_ext_ack *extack);
int vulture_flow_stop(struct sock *sk, unsigned long until, struct netlink_ext_ack *extack);
bool vulture_flow_end(struct vulture_flow *flow, u32 reason);
bool vulture_flow_remove(struct vulture_flow *flow, u32 reason, unsigned long until);

/* update.c */
void vulture_timer_init(struct vulture_flow *flow);
void vulture_timer_arm(struct vulture_flow *flow, u64 now_us);
void vulture_timer_end(struct vulture_flow *flow);
void vulture_timers_wait(struct vulture_net *vn);
void vulture_flow_kick(struct vulture_flow *flow, u64 now_us);
void vulture_send_update(struct vulture_flow *flow, struct sock *sk);

/* path.c */
struct vulture_path *vulture_path_get(struct vulture_net *vn, const struct sock *sk,
				      const struct vulture_key *key, u32 controller, gfp_t gfp);
void vulture_path_put(struct vulture_net *vn, struct vulture_path *path);
void vulture_paths_init(struct vulture_net *vn);
void vulture_paths_exit(struct vulture_net *vn);

/* message.c */
int vulture_flow_put_message(struct sk_buff *skb, struct vulture_flow *flow);
void vulture_event(struct vulture_flow *flow, u8 cmd, u32 reason);
void vulture_events_enable(bool on);

/* base.c */
extern unsigned int vulture_net_id;
struct vulture_net *vulture_net(const struct net *net);
u64 vulture_now_us(void);
void vulture_hooks_look(struct vulture_net *vn);
bool vulture_sock_lock(struct sock *sk, unsigned long until);
struct vulture_flow *vulture_flow_alloc(const struct vulture_options *options, gfp_t gfp);
void vulture_flow_free(struct vulture_flow *flow);
void vulture_flow_put(struct vulture_flow *flow);
struct sock *vulture_flow_hold_sock(struct vulture_flow *flow);
u32 vulture_flow_bytes(u32 controller);
int vulture_flows_init(void);
void vulture_flows_exit(void);

#endif /* VULTURE_H */
