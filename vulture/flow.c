// SPDX-License-Identifier: GPL-2.0
/*
 * The table of connections under control of each network namespace. A flow is started by a
 * request or a rule, and ends by a request or with its socket.
 */
#include <linux/jhash.h>
#include <linux/moduleparam.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "vulture.h"
#include "trace.h"

static atomic64_t vulture_last_id = ATOMIC64_INIT(0);
static atomic_t vulture_flows = ATOMIC_INIT(0);	/* in all tables */
static bool vulture_unloading;	/* set once, at module exit: no flow starts any more */

/* Limit for the whole machine; the administrator of a namespace sets the limit of that namespace.
 * It is needed because flows that a rule starts are made while a packet is handled, so that their
 * memory is charged to no cgroup.
 */
static unsigned int vulture_machine_flows = VULTURE_MACHINE_FLOWS;
module_param_named(machine_flows, vulture_machine_flows, uint, 0644);
MODULE_PARM_DESC(machine_flows, "connections under control in all namespaces, at most (65536)");

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

/* The addresses and ports of this socket's packets. An IPv6 socket may use IPv4. */
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

/* Return: a reference to the flow with this id, or NULL. */
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

/* Return: a reference to the flow of this socket, or NULL. */
struct vulture_flow *vulture_flow_get_by_sock(struct sock *sk)
{
	struct vulture_flow *flow;
	struct vulture_key key;

	vulture_key_of_sock(sk, &key);
	rcu_read_lock();
	flow = vulture_flow_lookup(vulture_net(sock_net(sk)), &key);
	if (flow && (flow->sk != sk || !refcount_inc_not_zero(&flow->refs)))
		flow = NULL;
	rcu_read_unlock();
	return flow;
}

/* Beginning and end of a flow */

/* From now on the flow's controller is not called. Return: false if it was closed before. */
static bool vulture_flow_close(struct vulture_flow *flow)
{
	spin_lock_bh(&flow->lock);
	if (flow->dead) {
		spin_unlock_bh(&flow->lock);
		return false;
	}
	WRITE_ONCE(flow->dead, true);
	if (flow->controller->leave) {
		spin_lock(flow->state_lock);
		flow->controller->leave(flow->state, vulture_now_us());
		spin_unlock(flow->state_lock);
	}
	vulture_timer_end(flow);
	spin_unlock_bh(&flow->lock);
	return true;
}

/* The path may be freed after this, and the controller's statistics are not read any more. */
static void vulture_flow_leave_path(struct vulture_flow *flow)
{
	spin_lock_bh(&flow->lock);
	flow->left = true;
	flow->state_lock = &flow->own_lock;
	spin_unlock_bh(&flow->lock);
	if (flow->path)
		vulture_path_put(flow->vn, flow->path);
}

/**
 * vulture_flow_end() - end a flow and remove it from the table, once
 * @flow: the caller holds a reference, or is under RCU
 * @reason: enum vulture_reason
 *
 * Return: false if it had ended before.
 */
bool vulture_flow_end(struct vulture_flow *flow, u32 reason)
{
	struct vulture_net *vn = flow->vn;

	if (!vulture_flow_close(flow))
		return false;
	rhashtable_remove_fast(&vn->table, &flow->node, vulture_table_params);
	xa_erase_bh(&vn->ids, (unsigned long)flow->id);
	trace_vulture_flow(flow, false, reason);
	vulture_event(flow, VULTURE_CMD_EVENT_END, reason);
	vulture_flow_leave_path(flow);
	if (flow->user)
		atomic_dec(&flow->user->flows);
	atomic_dec(&vulture_flows);
	if (atomic_dec_and_test(&vn->flows))
		vulture_hooks_look(vn);
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

/* Whether the hook limits the SYN of this socket. It does not limit the SYN-ACK of an accepted
 * connection, or of one that both ends open at the same time.
 */
static bool vulture_syn_is_limited(const struct rwnd_controller *c, const struct sock *sk)
{
	return c->syn_segs && sk->sk_state == TCP_SYN_SENT;
}

/**
 * vulture_syn_bytes() - largest window of the connection's SYN, which is not scaled
 * @c: the controller with which a rule starts the connection
 * @sk: its socket
 */
u32 vulture_syn_bytes(const struct rwnd_controller *c, const struct sock *sk)
{
	return vulture_syn_is_limited(c, sk) ? min(c->syn_segs * tcp_sk(sk)->advmss, 65535U) :
					       65535U;
}

/* Set the edge to what TCP has advertised so far. @opening: that was in its SYN only, which the
 * hook has limited if the socket connects. If the rule was added after that SYN went out, more was
 * offered than is assumed here; data beyond it is counted when it arrives. Caller: holds the
 * socket's lock.
 */
static void vulture_flow_edge(struct vulture_flow *flow, const struct sock *sk, bool opening)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 own_bytes = tp->rcv_wnd;

	if (opening)
		own_bytes = min(own_bytes, vulture_syn_bytes(flow->controller, sk));
	edge_init(&flow->edge, tp->rcv_wup, own_bytes, tp->rx_opt.rcv_wscale);
}

static void vulture_flow_init_controller(struct vulture_flow *flow, const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 min_rtt_us = tcp_min_rtt(tp);
	struct rwnd_start start = {
		.now_us = flow->started_us,
		.options = flow->options.values,
		.path = flow->path ? flow->path->state : NULL,
		.mss_bytes = inet_csk(sk)->icsk_ack.rcv_mss,
		.min_rtt_us = min_rtt_us != U32_MAX ? min_rtt_us : 0,
		.ack_seq = flow->edge.ack_seq,
		.edge_seq = flow->edge.edge_seq,
		.unit_bytes = 1U << flow->edge.scale,
		.fresh = !tp->bytes_received,
	};

	spin_lock_bh(&flow->lock);
	spin_lock(flow->state_lock);
	flow->controller->init(flow->state, &start, &flow->want);
	spin_unlock(flow->state_lock);
	spin_unlock_bh(&flow->lock);
}

/* Caller: holds the socket's lock. */
static struct vulture_flow *vulture_flow_new(struct vulture_net *vn, struct sock *sk,
					     const struct vulture_key *key,
					     const struct vulture_options *options,
					     const struct vulture_rule *rule, bool opening,
					     gfp_t gfp)
{
	const struct rwnd_controller *c = rwnd_controllers[options->controller];
	struct vulture_flow *flow;

	flow = vulture_flow_alloc(options, gfp);
	if (!flow)
		return NULL;
	if (c->path_bytes) {
		flow->path = vulture_path_get(vn, sk, key, options->controller, gfp);
		if (!flow->path) {
			vulture_flow_free(flow);
			return NULL;
		}
	}
	flow->key = *key;
	flow->sk = sk;
	flow->vn = vn;
	flow->controller = c;
	flow->id = atomic64_inc_return(&vulture_last_id);
	flow->started_us = vulture_now_us();
	flow->rule = rule ? rule->id : 0;
	flow->user = rule ? rule->user : NULL;
	flow->max_seg_bytes = max_t(u32, tcp_sk(sk)->advmss, TCP_MIN_MSS);
	spin_lock_init(&flow->lock);
	spin_lock_init(&flow->own_lock);
	flow->state_lock = flow->path ? &flow->path->lock : &flow->own_lock;
	vulture_timer_init(flow);
	vulture_flow_edge(flow, sk, opening);
	vulture_flow_init_controller(flow, sk);
	return flow;
}

/* Set other options of the same controller. Caller: holds the socket's lock. */
static int vulture_flow_change(struct vulture_flow *flow,
			       const struct vulture_options *options,
			       struct netlink_ext_ack *extack)
{
	u64 now_us = vulture_now_us();
	bool handed_back;

	spin_lock_bh(&flow->lock);
	if (!memcmp(&flow->options, options, sizeof(*options))) {
		spin_unlock_bh(&flow->lock);
		NL_SET_ERR_MSG_FMT_MOD(extack, "the connection is under control already, with these options (id %llu)",
				       flow->id);
		return -EALREADY;
	}
	if (flow->options.controller != options->controller) {
		spin_unlock_bh(&flow->lock);
		NL_SET_ERR_MSG_FMT_MOD(extack, "the connection is under control already, by controller %s (id %llu): stop it first",
				       flow->controller->name, flow->id);
		return -EALREADY;
	}
	flow->options = *options;
	spin_lock(flow->state_lock);
	flow->controller->change(flow->state, now_us, &flow->want);
	spin_unlock(flow->state_lock);
	handed_back = flow->want.kind == RWND_LEAVE &&
		      flow->edge.advertised_bytes < flow->edge.own_bytes;
	vulture_timer_arm(flow, now_us);
	spin_unlock_bh(&flow->lock);
	if (handed_back)
		vulture_send_update(flow, flow->sk);
	return 0;
}

/**
 * __vulture_flow_start() - vulture_flow_start() of a locked TCP socket
 * @sk: the socket
 * @options: controller and its options
 * @rule: the rule that starts it; NULL = a request
 * @opening: the connection is about to be established, and our window was advertised
 *	in the SYN only
 * @gfp: for the flow's memory
 * @id: where to put the flow's id
 * @extack: where to put the reason of a refusal
 */
int __vulture_flow_start(struct sock *sk, const struct vulture_options *options,
			 const struct vulture_rule *rule, bool opening, gfp_t gfp,
			 u64 *id, struct netlink_ext_ack *extack)
{
	struct vulture_net *vn = vulture_net(sock_net(sk));
	struct vulture_user *user = rule ? rule->user : NULL;
	struct vulture_flow *flow, *old;
	u32 max_flows = READ_ONCE(vn->max_flows), machine_flows;
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
	if (old && READ_ONCE(old->closed)) {
		vulture_flow_end(old, VULTURE_REASON_CLOSED);
	} else if (old && old->sk == sk) {
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
	machine_flows = READ_ONCE(vulture_machine_flows);
	if (atomic_inc_return(&vulture_flows) > machine_flows) {
		err = -ENOSPC;
		NL_SET_ERR_MSG_FMT_MOD(extack, "the limit of %u connections in all namespaces is reached (module parameter machine_flows)",
				       machine_flows);
		goto err_machine;
	}
	if (user && atomic_inc_return(&user->flows) > VULTURE_USER_FLOWS) {
		err = -ENOSPC;
		goto err_user;
	}
	flow = vulture_flow_new(vn, sk, &key, options, rule, opening, gfp);
	if (!flow) {
		err = -ENOMEM;
		goto err_user;
	}
	*id = flow->id;
	/* A reference for this function: once in the table, the flow can end at any time. */
	refcount_inc(&flow->refs);
	err = rhashtable_lookup_insert_fast(&vn->table, &flow->node, vulture_table_params);
	if (err) {
		if (err == -EEXIST)
			NL_SET_ERR_MSG_MOD(extack, "another connection with the same addresses and ports is under control");
		goto err_flow;
	}
	err = xa_err(xa_store_bh(&vn->ids, (unsigned long)flow->id, flow, gfp));
	if (err) {
		rhashtable_remove_fast(&vn->table, &flow->node, vulture_table_params);
		goto err_flow;
	}
	trace_vulture_flow(flow, true, 0);
	vulture_event(flow, VULTURE_CMD_EVENT_START, 0);
	spin_lock_bh(&flow->lock);
	vulture_timer_arm(flow, vulture_now_us());
	spin_unlock_bh(&flow->lock);
	vulture_flow_put(flow);
	return 0;

err_flow:
	if (vulture_flow_close(flow))
		vulture_flow_leave_path(flow);
	vulture_flow_put(flow);	/* the reference of this function */
	vulture_flow_put(flow);
err_user:
	if (user)
		atomic_dec(&user->flows);
err_machine:
	atomic_dec(&vulture_flows);
err_count:
	if (atomic_dec_and_test(&vn->flows))
		vulture_hooks_look(vn);
	return err;
}

bool vulture_sock_is_tcp(const struct sock *sk)
{
	return sk->sk_type == SOCK_STREAM && sk->sk_protocol == IPPROTO_TCP &&
	       (sk->sk_family == AF_INET || sk->sk_family == AF_INET6);
}

/* Lock a socket for a request, which may wait until that time. */
static int vulture_flow_lock(struct sock *sk, unsigned long until, struct netlink_ext_ack *extack)
{
	if (vulture_sock_lock(sk, until))
		return 0;
	NL_SET_ERR_MSG_MOD(extack, "a system call of the application keeps the socket locked: try again later");
	return -EBUSY;
}

/**
 * vulture_flow_start() - take a connection under control, or change its options
 * @sk: TCP socket in any state; the caller holds a reference, not the lock
 * @options: controller and its options, checked
 * @until: time until which to wait for the socket's lock, jiffies
 * @id: where to put the flow's id
 * @extack: where to put the reason of a refusal
 *
 * The caller holds the namespace's hooks (vulture_hooks_hold()).
 * Return: 0 or one of the errors of uapi/vulture.h.
 */
int vulture_flow_start(struct sock *sk, const struct vulture_options *options,
		       unsigned long until, u64 *id, struct netlink_ext_ack *extack)
{
	int err = vulture_flow_lock(sk, until, extack);

	if (err)
		return err;
	if (!((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2))) {
		NL_SET_ERR_MSG_MOD(extack, "the socket is not connected, or the peer has finished sending");
		err = -ENOTCONN;
	} else {
		err = __vulture_flow_start(sk, options, NULL, false, GFP_KERNEL_ACCOUNT, id,
					   extack);
	}
	release_sock(sk);
	return err;
}

/**
 * vulture_flow_stop() - end the control of a connection, and advertise TCP's own window at once
 * @sk: TCP socket in any state; the caller holds a reference, not the lock
 * @until: time until which to wait for the socket's lock, jiffies
 * @extack: where to put the reason of a refusal
 *
 * Return: 0, -ENOENT if it is not under control, or -EBUSY.
 */
int vulture_flow_stop(struct sock *sk, unsigned long until, struct netlink_ext_ack *extack)
{
	struct vulture_flow *flow;
	int err = vulture_flow_lock(sk, until, extack);

	if (err)
		return err;
	flow = vulture_flow_get_by_sock(sk);
	if (flow && vulture_flow_end(flow, VULTURE_REASON_STOPPED)) {
		if (flow->edge.advertised_bytes < flow->edge.own_bytes)
			vulture_send_update(flow, sk);
	} else {
		NL_SET_ERR_MSG_MOD(extack, "the connection is not under control");
		err = -ENOENT;
	}
	if (flow)
		vulture_flow_put(flow);
	release_sock(sk);
	return err;
}

/**
 * vulture_flow_remove() - end a flow without holding its socket's lock
 * @flow: the caller holds a reference
 * @reason: enum vulture_reason
 * @until: time until which to wait for that lock, jiffies
 *
 * If the socket still exists, TCP's own window is advertised. If an application holds the socket's
 * lock for longer than that, this window goes out with TCP's next ACK, at the latest when the
 * sender probes the window. May sleep.
 *
 * Return: false if it had ended before.
 */
bool vulture_flow_remove(struct vulture_flow *flow, u32 reason, unsigned long until)
{
	struct sock *sk = vulture_flow_hold_sock(flow);
	bool ended = vulture_flow_end(flow, reason);

	if (sk && ended && flow->edge.advertised_bytes < flow->edge.own_bytes &&
	    vulture_sock_lock(sk, until)) {
		if (!((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN)))
			vulture_send_update(flow, sk);
		release_sock(sk);
	}
	if (sk)
		sock_put(sk);
	return ended;
}

/* End all flows that a namespace has now. @until: as of vulture_flow_remove(), for all together. */
void vulture_flows_flush(struct vulture_net *vn, unsigned long until)
{
	struct vulture_flow *flow;
	unsigned long id;

	xa_for_each(&vn->ids, id, flow) {
		flow = vulture_flow_get_by_id(vn, id);
		if (!flow)
			continue;
		vulture_flow_remove(flow, VULTURE_REASON_REMOVED, until);
		vulture_flow_put(flow);
		cond_resched();
	}
}

/* From now on no flow starts in any namespace. */
void vulture_flows_refuse(void)
{
	WRITE_ONCE(vulture_unloading, true);
}

int vulture_flows_net_init(struct vulture_net *vn)
{
	xa_init_flags(&vn->ids, XA_FLAGS_LOCK_BH);
	return rhashtable_init(&vn->table, &vulture_table_params);
}

void vulture_flows_net_exit(struct vulture_net *vn)
{
	xa_destroy(&vn->ids);
	rhashtable_destroy(&vn->table);
}
