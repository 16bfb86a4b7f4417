// SPDX-License-Identifier: GPL-2.0
/*
 * The table of connections under control, per network namespace, and their
 * lives: started by request or by rule, ended by request or with the socket.
 */
#include <linux/cgroup.h>
#include <linux/file.h>
#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <net/inet_hashtables.h>
#include <net/ipv6.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "vulture.h"
#include "trace.h"

/* Hooks stay this long after the last flow: an application that switches modes
 * would else pay for their removal (a grace period) each time.
 */
#define VULTURE_HOOKS_LINGER	HZ
/* TCP gets this long to send the ACK itself, before we send a window update. */
#define VULTURE_KICK_DELAY	1	/* jiffy */
/* system_wq warns of its age on 7.2, and 6.1 does not know the name that took
 * its place. This one does the same work, and all kernels have it.
 */
#define VULTURE_WQ		system_power_efficient_wq

static unsigned int vulture_net_id __read_mostly;
static struct kmem_cache *vulture_flow_cache;
static struct tracepoint *vulture_state_tracepoint;
static atomic64_t vulture_last_id = ATOMIC64_INIT(0);
static bool vulture_unloading;	/* set once, at module exit: start nothing */

struct vulture_net *vulture_net(const struct net *net)
{
	return net_generic(net, vulture_net_id);
}

u64 vulture_now_us(void)
{
	return div_u64(ktime_get_ns(), NSEC_PER_USEC);
}

/* The table */

static u32 vulture_key_hash(const void *data, u32 len, u32 seed)
{
	const struct vulture_key *key = data;
	u32 ports = (__force u32)key->local_port << 16 | (__force u32)key->remote_port;

	if (key->family == AF_INET)
		return jhash_3words((__force u32)key->local[0],
				    (__force u32)key->remote[0], ports, seed);
	return jhash2((const u32 *)data, sizeof(*key) / sizeof(u32), seed);
}

static const struct rhashtable_params vulture_table_params = {
	.key_len = sizeof(struct vulture_key),
	.key_offset = offsetof(struct vulture_flow, key),
	.head_offset = offsetof(struct vulture_flow, node),
	.hashfn = vulture_key_hash,
	.automatic_shrinking = true,
};

/* What the packets of this socket carry: a v6 socket may speak IPv4. */
void vulture_key_of_sock(const struct sock *sk, struct vulture_key *key)
{
	const struct inet_sock *inet = inet_sk(sk);

	memset(key, 0, sizeof(*key));
	key->local_port = inet->inet_sport;
	key->remote_port = inet->inet_dport;
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		key->family = AF_INET6;
		memcpy(key->local, &sk->sk_v6_rcv_saddr, sizeof(key->local));
		memcpy(key->remote, &sk->sk_v6_daddr, sizeof(key->remote));
		return;
	}
#endif
	key->family = AF_INET;
	key->local[0] = sk->sk_rcv_saddr;
	key->remote[0] = sk->sk_daddr;
}

/* Caller: under RCU. */
struct vulture_flow *vulture_flow_lookup(struct vulture_net *vn,
					 const struct vulture_key *key)
{
	return rhashtable_lookup(&vn->table, key, vulture_table_params);
}

static void vulture_flow_free_rcu(struct rcu_head *head)
{
	kmem_cache_free(vulture_flow_cache, container_of(head, struct vulture_flow, rcu));
}

void vulture_flow_put(struct vulture_flow *flow)
{
	if (refcount_dec_and_test(&flow->refs))
		call_rcu(&flow->rcu, vulture_flow_free_rcu);
}

/* A reference to the flow with this id, or NULL. */
struct vulture_flow *vulture_flow_get_by_id(struct vulture_net *vn, u64 id)
{
	struct vulture_flow *flow;

	rcu_read_lock();
	flow = xa_load(&vn->ids, (unsigned long)id);
	if (flow && (flow->id != id || !refcount_inc_not_zero(&flow->refs)))
		flow = NULL;
	rcu_read_unlock();
	return flow;
}

/* A reference to the socket, or NULL if it has closed. Until its lock is taken
 * and dead is found unset, the socket may be another connection already (the
 * memory of TCP sockets is reused under RCU): look before acting.
 */
struct sock *vulture_flow_hold_sock(struct vulture_flow *flow)
{
	struct sock *sk = NULL;

	rcu_read_lock();
	if (!READ_ONCE(flow->dead) && refcount_inc_not_zero(&flow->sk->sk_refcnt))
		sk = flow->sk;
	rcu_read_unlock();
	return sk;
}

/* Hooks: in place while there is a flow, or a rule that can start one (the
 * first ACK of a connection must not advertise all that TCP would).
 */

/* Return: 0, or the error of putting them in place; the work tries again. */
int vulture_hooks_settle(struct vulture_net *vn)
{
	bool wanted;
	int err = 0;

	mutex_lock(&vn->hooks_lock);
	wanted = atomic_read(&vn->flows) > 0 || !list_empty(&vn->rules);
	if (wanted && !vn->hooked) {
		err = vulture_hooks_add(vn->net);
		vn->hooked = !err;
	} else if (!wanted && vn->hooked) {
		vulture_hooks_remove(vn->net);
		vn->hooked = false;
	}
	mutex_unlock(&vn->hooks_lock);
	return err;
}

static void vulture_hooks_work(struct work_struct *work)
{
	struct vulture_net *vn = container_of(to_delayed_work(work), struct vulture_net,
					      hooks_work);

	if (vulture_hooks_settle(vn) && !READ_ONCE(vn->closing))
		mod_delayed_work(VULTURE_WQ, &vn->hooks_work, VULTURE_HOOKS_LINGER);
}

/* Window updates */

/* Does the sender stand at the edge while TCP sits on an ACK? */
static bool vulture_flow_owes(const struct vulture_flow *flow)
{
	return !flow->dead && flow->seen_out &&
	       flow->advertised_bytes < flow->own_bytes &&
	       (s32)(flow->high_seq - flow->ack_seq) > 0;
}

/* Caller: holds flow->lock. */
void vulture_flow_kick(struct vulture_flow *flow)
{
	struct vulture_net *vn = flow->vn;

	if (!vulture_flow_owes(flow))
		return;
	spin_lock(&vn->kick_lock);
	if (list_empty(&flow->kick)) {
		refcount_inc(&flow->refs);
		list_add_tail(&flow->kick, &vn->kicks);
		queue_delayed_work(VULTURE_WQ, &vn->kick_work, VULTURE_KICK_DELAY);
	}
	spin_unlock(&vn->kick_lock);
}

/* Caller: holds the socket's lock. */
static void vulture_send_update(struct vulture_flow *flow, struct sock *sk)
{
	spin_lock_bh(&flow->lock);
	flow->updates++;
	spin_unlock_bh(&flow->lock);
	lbe_tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt);
}

/* Return: false if the application holds the socket; try again later. */
static bool vulture_flow_pay(struct vulture_flow *flow)
{
	struct sock *sk = vulture_flow_hold_sock(flow);
	bool done = true, owes;

	if (!sk)
		return true;
	local_bh_disable();
	bh_lock_sock(sk);
	spin_lock(&flow->lock);
	owes = vulture_flow_owes(flow);
	spin_unlock(&flow->lock);
	if (owes && sock_owned_by_user(sk))
		done = false;
	else if (owes)
		vulture_send_update(flow, sk);
	bh_unlock_sock(sk);
	local_bh_enable();
	sock_put(sk);
	return done;
}

static void vulture_kick_work(struct work_struct *work)
{
	struct vulture_net *vn = container_of(to_delayed_work(work),
					      struct vulture_net, kick_work);
	struct vulture_flow *flow;
	unsigned int todo = 0;
	LIST_HEAD(kicks);

	spin_lock_bh(&vn->kick_lock);
	list_splice_init(&vn->kicks, &kicks);
	list_for_each_entry(flow, &kicks, kick)
		todo++;
	while (todo--) {
		flow = list_first_entry(&kicks, struct vulture_flow, kick);
		list_del_init(&flow->kick);
		spin_unlock_bh(&vn->kick_lock);

		if (!vulture_flow_pay(flow)) {
			spin_lock_bh(&flow->lock);
			vulture_flow_kick(flow);
			spin_unlock_bh(&flow->lock);
		}
		vulture_flow_put(flow);
		cond_resched();

		spin_lock_bh(&vn->kick_lock);
	}
	spin_unlock_bh(&vn->kick_lock);
}

/* Beginning and end of a flow */

/* Out of the table, once. Return: false if it was out already. */
static bool vulture_flow_end(struct vulture_flow *flow, u32 reason)
{
	struct vulture_net *vn = flow->vn;

	spin_lock_bh(&flow->lock);
	if (flow->dead) {
		spin_unlock_bh(&flow->lock);
		return false;
	}
	WRITE_ONCE(flow->dead, true);
	spin_unlock_bh(&flow->lock);

	rhashtable_remove_fast(&vn->table, &flow->node, vulture_table_params);
	xa_erase_bh(&vn->ids, (unsigned long)flow->id);
	trace_vulture_flow(flow, false, reason);
	vulture_netlink_event(flow, VULTURE_CMD_EVENT_END, reason);
	if (atomic_dec_and_test(&vn->flows) && !READ_ONCE(vn->closing))
		mod_delayed_work(VULTURE_WQ, &vn->hooks_work, VULTURE_HOOKS_LINGER);
	vulture_flow_put(flow);
	return true;
}

static bool vulture_sock_signed(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

#ifdef CONFIG_TCP_MD5SIG
	if (rcu_access_pointer(tp->md5sig_info))
		return true;
#endif
#ifdef CONFIG_TCP_AO
	if (rcu_access_pointer(tp->ao_info))
		return true;
#endif
	return !tp;
}

static struct vulture_flow *vulture_flow_new(struct vulture_net *vn, struct sock *sk,
					     const struct vulture_key *key,
					     const struct vulture_options *options,
					     u32 rule, gfp_t gfp)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct rwnd_start start = {
		.now_us = vulture_now_us(),
		.mss_bytes = inet_csk(sk)->icsk_ack.rcv_mss,
	};
	u32 rcv_wnd = tp->rcv_wnd, min_rtt_us = tcp_min_rtt(tp);
	struct vulture_flow *flow;

	if (min_rtt_us != U32_MAX)
		start.min_rtt_us = min_rtt_us;
	/* No data yet: only the SYN, which knows no scale, has said a window. */
	if (!tp->bytes_received) {
		rcv_wnd = min(rcv_wnd, 65535U);
		start.fresh_bytes = rcv_wnd;
	}

	flow = kmem_cache_zalloc(vulture_flow_cache, gfp);
	if (!flow)
		return NULL;
	flow->key = *key;
	flow->sk = sk;
	flow->vn = vn;
	flow->id = atomic64_inc_return(&vulture_last_id);
	flow->started_us = start.now_us;
	flow->rule = rule;
	flow->scale = tp->rx_opt.rcv_wscale;
	refcount_set(&flow->refs, 1);
	INIT_LIST_HEAD(&flow->kick);
	spin_lock_init(&flow->lock);
	/* Whatever TCP has advertised so far stays valid. */
	flow->edge_seq = tp->rcv_wup + rcv_wnd;
	flow->options = *options;
	flow->controller = &vulture_controller;
	flow->controller->init(flow->priv, options, &start);
	return flow;
}

/* From observing to background or back. Caller: holds the socket's lock. */
static int vulture_flow_change(struct vulture_flow *flow,
			       const struct vulture_options *options,
			       struct netlink_ext_ack *extack)
{
	bool was_observed, handed_back;

	spin_lock_bh(&flow->lock);
	was_observed = flow->options.observe;
	if (was_observed == !!options->observe) {
		spin_unlock_bh(&flow->lock);
		NL_SET_ERR_MSG_FMT_MOD(extack, "the connection is %s already (id %llu)",
				       was_observed ? "observed" : "under control", flow->id);
		return -EALREADY;
	}
	flow->options = *options;
	flow->controller->change(flow->priv, options, vulture_now_us());
	handed_back = options->observe && flow->advertised_bytes < flow->own_bytes;
	spin_unlock_bh(&flow->lock);
	if (handed_back)
		vulture_send_update(flow, flow->sk);
	return 0;
}

/* Caller: holds the socket's lock; the connection is or gets established. */
static int __vulture_flow_start(struct sock *sk, const struct vulture_options *options,
				u32 rule, gfp_t gfp, u64 *id,
				struct netlink_ext_ack *extack)
{
	struct vulture_net *vn = vulture_net(sock_net(sk));
	struct vulture_flow *flow, *old;
	u32 max_flows = READ_ONCE(vn->max_flows);
	struct vulture_key key;
	int err;

	if (!tcp_sk(sk)->rx_opt.tstamp_ok) {
		NL_SET_ERR_MSG_MOD(extack, "the connection has no timestamps (RFC 7323): net.ipv4.tcp_timestamps must be 1 at both ends when it opens");
		return -EOPNOTSUPP;
	}
	if (vulture_sock_signed(sk)) {
		NL_SET_ERR_MSG_MOD(extack, "the connection is signed (TCP-MD5 or TCP-AO): its window may not be rewritten");
		return -EOPNOTSUPP;
	}

	vulture_key_of_sock(sk, &key);
	rcu_read_lock();
	old = vulture_flow_lookup(vn, &key);
	if (old && old->sk == sk) {
		err = vulture_flow_change(old, options, extack);
		*id = old->id;
		rcu_read_unlock();
		return err;
	}
	rcu_read_unlock();

	if (READ_ONCE(vn->closing) || READ_ONCE(vulture_unloading)) {
		NL_SET_ERR_MSG_MOD(extack, "the module or the namespace is going away");
		return -ENOENT;
	}
	if (atomic_inc_return(&vn->flows) > max_flows) {
		err = -ENOSPC;
		NL_SET_ERR_MSG_FMT_MOD(extack, "the table is full: the limit is %u connections",
				       max_flows);
		goto err_count;
	}
	flow = vulture_flow_new(vn, sk, &key, options, rule, gfp);
	if (!flow) {
		err = -ENOMEM;
		goto err_count;
	}
	*id = flow->id;
	/* For ourselves: once in the table, the flow can end at any time. */
	refcount_inc(&flow->refs);
	err = rhashtable_lookup_insert_fast(&vn->table, &flow->node, vulture_table_params);
	if (err) {
		if (err == -EEXIST)
			NL_SET_ERR_MSG_MOD(extack, "another connection with the same addresses and ports is under control");
		kmem_cache_free(vulture_flow_cache, flow);
		goto err_count;
	}
	err = xa_err(xa_store_bh(&vn->ids, (unsigned long)flow->id, flow, gfp));
	if (err) {
		WRITE_ONCE(flow->dead, true);
		rhashtable_remove_fast(&vn->table, &flow->node, vulture_table_params);
		vulture_flow_put(flow);
		vulture_flow_put(flow);
		goto err_count;
	}
	trace_vulture_flow(flow, true, 0);
	vulture_netlink_event(flow, VULTURE_CMD_EVENT_START, 0);
	vulture_flow_put(flow);
	return 0;

err_count:
	if (atomic_dec_and_test(&vn->flows))
		mod_delayed_work(VULTURE_WQ, &vn->hooks_work, VULTURE_HOOKS_LINGER);
	return err;
}

static bool vulture_sock_is_tcp(const struct sock *sk)
{
	return sk->sk_type == SOCK_STREAM && sk->sk_protocol == IPPROTO_TCP &&
	       (sk->sk_family == AF_INET || sk->sk_family == AF_INET6);
}

/**
 * vulture_flow_start() - take a connection under control, or change its options
 * @sk: any socket; the caller holds a reference, not the lock
 * @options: checked
 * @rule: id of the rule that asks for it, 0 for none
 * @gfp: for the flow
 * @id: where to put the flow's id
 * @extack: where to put the reason of a refusal
 *
 * Return: 0 or one of the errors of uapi/vulture.h. The caller sees to
 * vulture_hooks_settle() afterwards.
 */
int vulture_flow_start(struct sock *sk, const struct vulture_options *options,
		       u32 rule, gfp_t gfp, u64 *id, struct netlink_ext_ack *extack)
{
	int err;

	if (!vulture_sock_is_tcp(sk)) {
		NL_SET_ERR_MSG_MOD(extack, "the socket is not a TCP socket");
		return -EPROTONOSUPPORT;
	}
	lock_sock(sk);
	if (!((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2))) {
		NL_SET_ERR_MSG_MOD(extack, "the socket is not connected, or the peer has finished sending");
		err = -ENOTCONN;
	} else {
		err = __vulture_flow_start(sk, options, rule, gfp, id, extack);
	}
	release_sock(sk);
	return err;
}

/**
 * vulture_flow_stop() - give a connection its window back, at once
 * @sk: any socket; the caller holds a reference, not the lock
 * @extack: where to put the reason of a refusal
 *
 * Return: 0, or -ENOENT if it is not under control.
 */
int vulture_flow_stop(struct sock *sk, struct netlink_ext_ack *extack)
{
	struct vulture_flow *flow;
	struct vulture_key key;
	int err = -ENOENT;

	if (!vulture_sock_is_tcp(sk)) {
		NL_SET_ERR_MSG_MOD(extack, "the socket is not a TCP socket");
		return -EPROTONOSUPPORT;
	}
	lock_sock(sk);
	vulture_key_of_sock(sk, &key);
	rcu_read_lock();
	flow = vulture_flow_lookup(vulture_net(sock_net(sk)), &key);
	if (flow && (flow->sk != sk || !refcount_inc_not_zero(&flow->refs)))
		flow = NULL;
	rcu_read_unlock();
	if (flow && vulture_flow_end(flow, VULTURE_REASON_STOPPED)) {
		if (flow->advertised_bytes < flow->own_bytes)
			vulture_send_update(flow, sk);
		err = 0;
	} else {
		NL_SET_ERR_MSG_MOD(extack, "the connection is not under control");
	}
	if (flow)
		vulture_flow_put(flow);
	release_sock(sk);
	return err;
}

/* Rules */

bool vulture_sock_in_cgroup(const struct sock *sk, struct cgroup *cgroup)
{
#ifdef CONFIG_SOCK_CGROUP_DATA
	struct cgroup *own = sock_cgroup_ptr((struct sock_cgroup_data *)&sk->sk_cgrp_data);

	return own && cgroup_is_descendant(own, cgroup);
#else
	return false;
#endif
}

static bool vulture_prefix_match(const struct vulture_rule *rule,
				 const struct vulture_key *key)
{
	unsigned int bits = rule->prefix_len, word = 0;

	if (rule->family != key->family)
		return false;
	for (; bits >= 32; bits -= 32, word++)
		if (rule->prefix[word] != key->remote[word])
			return false;
	return !bits || !((rule->prefix[word] ^ key->remote[word]) &
			  htonl(~0U << (32 - bits)));
}

static bool vulture_rule_match(const struct vulture_rule *rule, const struct sock *sk,
			       const struct vulture_key *key)
{
	if (rule->local_port && rule->local_port != ntohs(key->local_port))
		return false;
	if (rule->remote_port && rule->remote_port != ntohs(key->remote_port))
		return false;
	if (rule->family && !vulture_prefix_match(rule, key))
		return false;
	return !rule->cgroup || vulture_sock_in_cgroup(sk, rule->cgroup);
}

/* A connection is about to be established; its socket is locked. */
static void vulture_on_established(struct vulture_net *vn, struct sock *sk)
{
	struct vulture_rule *rule;
	struct vulture_key key;
	u64 id;

	if (list_empty(&vn->rules))
		return;
	vulture_key_of_sock(sk, &key);
	rcu_read_lock();
	list_for_each_entry_rcu(rule, &vn->rules, node) {
		if (!vulture_rule_match(rule, sk, &key))
			continue;
		if (!__vulture_flow_start(sk, &rule->options, rule->id, GFP_ATOMIC,
					  &id, NULL)) {
			atomic64_inc(&rule->started);
			mod_delayed_work(VULTURE_WQ, &vn->hooks_work, 0);
		}
		break;
	}
	rcu_read_unlock();
}

/* A connection has ended; its socket is locked. */
static void vulture_on_closed(struct vulture_net *vn, struct sock *sk)
{
	struct vulture_flow *flow;
	struct vulture_key key;

	if (!atomic_read(&vn->flows))
		return;
	vulture_key_of_sock(sk, &key);
	rcu_read_lock();
	flow = vulture_flow_lookup(vn, &key);
	if (flow && flow->sk == sk)
		vulture_flow_end(flow, VULTURE_REASON_CLOSED);
	rcu_read_unlock();
}

/* Tracepoint sock:inet_sock_set_state, called with the socket's lock held. */
static void vulture_on_set_state(void *data, const struct sock *sk,
				 const int oldstate, const int newstate)
{
	struct sock *mutable = (struct sock *)sk;
	struct vulture_net *vn;

	if (newstate != TCP_ESTABLISHED && newstate != TCP_CLOSE)
		return;
	if (!vulture_sock_is_tcp(sk) || !check_net(sock_net(sk)))
		return;
	vn = vulture_net(sock_net(sk));
	if (newstate == TCP_ESTABLISHED)
		vulture_on_established(vn, mutable);
	else if (oldstate != TCP_LISTEN)
		vulture_on_closed(vn, mutable);
}

/* Finding sockets */

static bool vulture_match_sock(struct net *net, const struct vulture_match *match,
			       const struct sock *sk)
{
	struct vulture_key key;

	if (!sk_fullsock(sk) || !net_eq(sock_net(sk), net) || !vulture_sock_is_tcp(sk))
		return false;
	if (match->cgroup)
		return vulture_sock_in_cgroup(sk, match->cgroup);
	vulture_key_of_sock(sk, &key);
	return !memcmp(&key, match->key, sizeof(key));
}

void vulture_sockets_put(struct sock **socks, unsigned int n)
{
	while (n--)
		sock_put(socks[n]);
	kvfree(socks);
}

/* One pass over the established sockets. Return: how many match; at most @room
 * of them are held in @socks.
 */
static unsigned int vulture_sockets_scan(struct net *net, const struct vulture_match *match,
					 struct sock **socks, unsigned int room,
					 unsigned int *held)
{
	struct inet_hashinfo *hashinfo = net->ipv4.tcp_death_row.hashinfo;
	unsigned int bucket, found = 0;

	*held = 0;
	for (bucket = 0; bucket <= hashinfo->ehash_mask; bucket++) {
		struct hlist_nulls_node *node;
		struct sock *sk;

		if (hlist_nulls_empty(&hashinfo->ehash[bucket].chain))
			continue;
		rcu_read_lock();
		sk_nulls_for_each_rcu(sk, node, &hashinfo->ehash[bucket].chain) {
			if (!vulture_match_sock(net, match, sk))
				continue;
			found++;
			if (*held == room || !refcount_inc_not_zero(&sk->sk_refcnt))
				continue;
			if (vulture_match_sock(net, match, sk))
				socks[(*held)++] = sk;
			else
				sock_gen_put(sk);
		}
		rcu_read_unlock();
		cond_resched();
	}
	return found;
}

/**
 * vulture_sockets_find() - references to all connections that match
 * @net: namespace
 * @match: what to look for
 * @n: where to put how many
 *
 * Reads all of the machine's connections: for requests, not for packets.
 * Return: an array for vulture_sockets_put(), or an ERR_PTR().
 */
struct sock **vulture_sockets_find(struct net *net, const struct vulture_match *match,
				   unsigned int *n)
{
	unsigned int room = 64, found;
	struct sock **socks;

	for (;;) {
		socks = kvmalloc_array(room, sizeof(*socks), GFP_KERNEL_ACCOUNT);
		if (!socks)
			return ERR_PTR(-ENOMEM);
		found = vulture_sockets_scan(net, match, socks, room, n);
		if (found <= room)
			return socks;
		vulture_sockets_put(socks, *n);
		room = found + found / 4;
	}
}

/* Namespaces */

static int __net_init vulture_net_init(struct net *net)
{
	struct vulture_net *vn = vulture_net(net);

	vn->net = net;
	atomic_set(&vn->flows, 0);
	vn->max_flows = VULTURE_MAX_FLOWS_DEFAULT;
	mutex_init(&vn->hooks_lock);
	INIT_DELAYED_WORK(&vn->hooks_work, vulture_hooks_work);
	spin_lock_init(&vn->kick_lock);
	INIT_LIST_HEAD(&vn->kicks);
	INIT_DELAYED_WORK(&vn->kick_work, vulture_kick_work);
	mutex_init(&vn->rules_lock);
	INIT_LIST_HEAD(&vn->rules);
	vn->next_rule = 1;
	vn->options = vulture_default_options;
	xa_init_flags(&vn->ids, XA_FLAGS_LOCK_BH);
	return rhashtable_init(&vn->table, &vulture_table_params);
}

/* End one flow by hand; its window goes back if its socket still lives. */
static void vulture_flow_remove(struct vulture_flow *flow)
{
	struct sock *sk = vulture_flow_hold_sock(flow);

	if (!sk) {
		vulture_flow_end(flow, VULTURE_REASON_REMOVED);
		return;
	}
	lock_sock(sk);
	if (vulture_flow_end(flow, VULTURE_REASON_REMOVED) &&
	    flow->advertised_bytes < flow->own_bytes)
		vulture_send_update(flow, sk);
	release_sock(sk);
	sock_put(sk);
}

/* End all flows of a namespace in which none can start any more. */
static void vulture_flush(struct vulture_net *vn)
{
	struct vulture_flow *flow;
	unsigned long id;

	xa_for_each(&vn->ids, id, flow) {
		flow = vulture_flow_get_by_id(vn, id);
		if (!flow)
			continue;
		vulture_flow_remove(flow);
		vulture_flow_put(flow);
		cond_resched();
	}
}

static void vulture_drop_kicks(struct vulture_net *vn)
{
	struct vulture_flow *flow, *next;

	list_for_each_entry_safe(flow, next, &vn->kicks, kick) {
		list_del_init(&flow->kick);
		vulture_flow_put(flow);
	}
}

static void __net_exit vulture_net_exit(struct net *net)
{
	struct vulture_net *vn = vulture_net(net);
	struct vulture_rule *rule, *next;

	WRITE_ONCE(vn->closing, true);
	vulture_flush(vn);
	list_for_each_entry_safe(rule, next, &vn->rules, node) {
		list_del_rcu(&rule->node);
		if (rule->cgroup)
			cgroup_put(rule->cgroup);
		kfree_rcu(rule, rcu);
	}
	cancel_delayed_work_sync(&vn->hooks_work);
	vulture_hooks_settle(vn);
	cancel_delayed_work_sync(&vn->kick_work);
	vulture_drop_kicks(vn);
	xa_destroy(&vn->ids);
	rhashtable_destroy(&vn->table);
}

static struct pernet_operations vulture_net_ops = {
	.init = vulture_net_init,
	.exit = vulture_net_exit,
	.id = &vulture_net_id,
	.size = sizeof(struct vulture_net),
};

void vulture_trace_round(const void *priv, const struct rwnd_round *round)
{
	trace_vulture_round(container_of(priv, struct vulture_flow, priv), round);
}

/* Stock kernels do not export this tracepoint's symbol, but list it. */
static void vulture_find_tracepoint(struct tracepoint *tp, void *found)
{
	if (!strcmp(tp->name, "inet_sock_set_state"))
		*(struct tracepoint **)found = tp;
}

int __init vulture_flows_init(void)
{
	int err;

	for_each_kernel_tracepoint(vulture_find_tracepoint, &vulture_state_tracepoint);
	if (!vulture_state_tracepoint) {
		pr_err("vulture: this kernel has no tracepoint sock:inet_sock_set_state (CONFIG_TRACEPOINTS)\n");
		return -EOPNOTSUPP;
	}
	vulture_flow_cache = KMEM_CACHE(vulture_flow, SLAB_ACCOUNT | SLAB_HWCACHE_ALIGN);
	if (!vulture_flow_cache)
		return -ENOMEM;
	err = register_pernet_subsys(&vulture_net_ops);
	if (err)
		goto err_cache;
	err = tracepoint_probe_register(vulture_state_tracepoint, vulture_on_set_state, NULL);
	if (err)
		goto err_pernet;
	return 0;

err_pernet:
	unregister_pernet_subsys(&vulture_net_ops);
err_cache:
	kmem_cache_destroy(vulture_flow_cache);
	return err;
}

/* End all flows everywhere; from now on none starts. */
void vulture_flows_stop(void)
{
	struct net *net;

	WRITE_ONCE(vulture_unloading, true);
	/* Wait for probes that are just starting one. */
	tracepoint_synchronize_unregister();
	down_read(&net_rwsem);
	for_each_net(net)
		vulture_flush(vulture_net(net));
	up_read(&net_rwsem);
}

void vulture_flows_exit(void)
{
	/* No flow may live without the probe that ends it: a request that was
	 * under way during the first pass may have started one.
	 */
	vulture_flows_stop();
	tracepoint_probe_unregister(vulture_state_tracepoint, vulture_on_set_state, NULL);
	tracepoint_synchronize_unregister();
	unregister_pernet_subsys(&vulture_net_ops);
	rcu_barrier();
	kmem_cache_destroy(vulture_flow_cache);
}
