// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink: the contract is at the top of uapi/vulture.h.
 */
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <net/genetlink.h>

#include "vulture.h"

static struct genl_family vulture_family;

enum { VULTURE_GROUP_EVENTS };

static bool vulture_listening;	/* the family is registered: events may go out */

/* Options. The paper's values for the paper's constants; for what it leaves
 * open, and beyond it, what measured best (Documentation/vulture.md).
 */
const struct vulture_options vulture_default_options = {
	.piv = {
		.tick_us = 1000,
		.zero_us = 0,
		.psi_us = 20000,
		.cons_low_us = 4000,
		.cons_high_us = 8000,
		.aggr_low_us = 12000,
		.aggr_high_us = 20000,
		.pairing = PIV_PAIR_EACH,
		.rising = true,
	},
	.policy = {
		.alpha_permille = 875,
		.increase_segs = 1,
		.positive_test = true,
		.thresh_cap = true,
		.goals = true,
		.thresh_permille = 500,
	},
	.settle = 1,
	.loss_permille = 125,
	.queue_high_us = 10000,
	.speedup = 3,
	.watch_bursts = 2,
	.outgrown_pct = 125,
};

/* As vulturectl and the YAML spec write it, its range, and where it is kept. */
#define VULTURE_OPTION(name, field, min, max)					\
	{ name, min, max, offsetof(struct vulture_options, field) +		\
	  BUILD_BUG_ON_ZERO(sizeof_field(struct vulture_options, field) != sizeof(u32)) }

static const struct {
	const char *name;
	u32 min, max;
	size_t offset;
} vulture_option[] = {
	[VULTURE_O_TICK_US] = VULTURE_OPTION("tick-us", piv.tick_us, 1, 10000),
	[VULTURE_O_ZERO_US] = VULTURE_OPTION("zero-us", piv.zero_us, 0, 10000),
	[VULTURE_O_PSI_US] = VULTURE_OPTION("psi-us", piv.psi_us, 1000, 1000000),
	[VULTURE_O_CONS_LOW_US] = VULTURE_OPTION("cons-low-us", piv.cons_low_us, 1, 1000000),
	[VULTURE_O_CONS_HIGH_US] = VULTURE_OPTION("cons-high-us", piv.cons_high_us, 1, 1000000),
	[VULTURE_O_AGGR_LOW_US] = VULTURE_OPTION("aggr-low-us", piv.aggr_low_us, 1, 1000000),
	[VULTURE_O_AGGR_HIGH_US] = VULTURE_OPTION("aggr-high-us", piv.aggr_high_us, 1, 1000000),
	[VULTURE_O_PAIRING] = VULTURE_OPTION("pairing", piv.pairing, 0, __VULTURE_PAIRING_MAX - 1),
	[VULTURE_O_ALPHA_PERMILLE] =
		VULTURE_OPTION("alpha-permille", policy.alpha_permille, 500, 999),
	[VULTURE_O_INCREASE_SEGS] = VULTURE_OPTION("increase-segs", policy.increase_segs, 1, 64),
	[VULTURE_O_POSITIVE_TEST] = VULTURE_OPTION("positive-test", policy.positive_test, 0, 1),
	[VULTURE_O_THRESH_CAP] = VULTURE_OPTION("thresh-cap", policy.thresh_cap, 0, 1),
	[VULTURE_O_THRESH_PERMILLE] =
		VULTURE_OPTION("thresh-permille", policy.thresh_permille, 250, 1000),
	[VULTURE_O_GOALS] = VULTURE_OPTION("goals", policy.goals, 0, 1),
	[VULTURE_O_SETTLE] = VULTURE_OPTION("settle", settle, 0, 1),
	[VULTURE_O_LOSS_PERMILLE] = VULTURE_OPTION("loss-permille", loss_permille, 0, 1000),
	[VULTURE_O_OBSERVE] = VULTURE_OPTION("observe", observe, 0, 1),
	[VULTURE_O_QUEUE_HIGH_US] = VULTURE_OPTION("queue-high-us", queue_high_us, 0, 1000000),
	[VULTURE_O_SPEEDUP] = VULTURE_OPTION("speedup", speedup, 0, 64),
	[VULTURE_O_WATCH_BURSTS] = VULTURE_OPTION("watch-bursts", watch_bursts, 0, 64),
	[VULTURE_O_OUTGROWN_PCT] = VULTURE_OPTION("outgrown-pct", outgrown_pct, 0, 1000),
	[VULTURE_O_RISING] = VULTURE_OPTION("rising", piv.rising, 0, 1),
};

static u32 vulture_option_get(const struct vulture_options *o, unsigned int option)
{
	return *(const u32 *)((const u8 *)o + vulture_option[option].offset);
}

static void vulture_option_set(struct vulture_options *o, unsigned int option, u32 value)
{
	*(u32 *)((u8 *)o + vulture_option[option].offset) = value;
}

/* Policies */

static const struct nla_policy vulture_options_policy[VULTURE_O_MAX + 1] = {
	[VULTURE_O_TICK_US] = { .type = NLA_U32 },
	[VULTURE_O_ZERO_US] = { .type = NLA_U32 },
	[VULTURE_O_PSI_US] = { .type = NLA_U32 },
	[VULTURE_O_CONS_LOW_US] = { .type = NLA_U32 },
	[VULTURE_O_CONS_HIGH_US] = { .type = NLA_U32 },
	[VULTURE_O_AGGR_LOW_US] = { .type = NLA_U32 },
	[VULTURE_O_AGGR_HIGH_US] = { .type = NLA_U32 },
	[VULTURE_O_PAIRING] = { .type = NLA_U32 },
	[VULTURE_O_ALPHA_PERMILLE] = { .type = NLA_U32 },
	[VULTURE_O_INCREASE_SEGS] = { .type = NLA_U32 },
	[VULTURE_O_POSITIVE_TEST] = { .type = NLA_U32 },
	[VULTURE_O_THRESH_CAP] = { .type = NLA_U32 },
	[VULTURE_O_THRESH_PERMILLE] = { .type = NLA_U32 },
	[VULTURE_O_GOALS] = { .type = NLA_U32 },
	[VULTURE_O_SETTLE] = { .type = NLA_U32 },
	[VULTURE_O_LOSS_PERMILLE] = { .type = NLA_U32 },
	[VULTURE_O_OBSERVE] = { .type = NLA_U32 },
	[VULTURE_O_QUEUE_HIGH_US] = { .type = NLA_U32 },
	[VULTURE_O_SPEEDUP] = { .type = NLA_U32 },
	[VULTURE_O_WATCH_BURSTS] = { .type = NLA_U32 },
	[VULTURE_O_OUTGROWN_PCT] = { .type = NLA_U32 },
	[VULTURE_O_RISING] = { .type = NLA_U32 },
};

static const struct nla_policy vulture_addr_policy[VULTURE_ADDR_MAX + 1] = {
	[VULTURE_ADDR_LOCAL] = NLA_POLICY_RANGE(NLA_BINARY, 4, 16),
	[VULTURE_ADDR_LOCAL_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[VULTURE_ADDR_REMOTE] = NLA_POLICY_RANGE(NLA_BINARY, 4, 16),
	[VULTURE_ADDR_REMOTE_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
};

static const struct nla_policy vulture_rule_policy[VULTURE_R_MAX + 1] = {
	[VULTURE_R_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[VULTURE_R_CGROUP] = { .type = NLA_U64 },
	[VULTURE_R_LOCAL_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[VULTURE_R_REMOTE_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[VULTURE_R_REMOTE_PREFIX] = NLA_POLICY_RANGE(NLA_BINARY, 4, 16),
	[VULTURE_R_REMOTE_PREFIX_LEN] = NLA_POLICY_MAX(NLA_U8, 128),
	[VULTURE_R_OPTIONS] = NLA_POLICY_NESTED(vulture_options_policy),
};

static const struct nla_policy vulture_target_policy[VULTURE_A_OPTIONS + 1] = {
	[VULTURE_A_FD] = { .type = NLA_U32 },
	[VULTURE_A_ADDR] = NLA_POLICY_NESTED(vulture_addr_policy),
	[VULTURE_A_PID] = NLA_POLICY_MIN(NLA_U32, 1),
	[VULTURE_A_CGROUP] = { .type = NLA_U64 },
	[VULTURE_A_ID] = { .type = NLA_U64 },
	[VULTURE_A_OPTIONS] = NLA_POLICY_NESTED(vulture_options_policy),
};

static const struct nla_policy vulture_set_policy[VULTURE_A_MAX_FLOWS + 1] = {
	[VULTURE_A_OPTIONS] = NLA_POLICY_NESTED(vulture_options_policy),
	[VULTURE_A_MAX_FLOWS] = { .type = NLA_U32 },
};

static const struct nla_policy vulture_rule_only_policy[VULTURE_A_RULE + 1] = {
	[VULTURE_A_RULE] = NLA_POLICY_NESTED(vulture_rule_policy),
};

/* Parsing. Each says why it refuses. */

static bool vulture_admin(struct sk_buff *skb, struct net *net,
			  struct netlink_ext_ack *extack)
{
	if (netlink_ns_capable(skb, net->user_ns, CAP_NET_ADMIN))
		return true;
	NL_SET_ERR_MSG_MOD(extack, "needs CAP_NET_ADMIN; without it an application may start, stop and get its own sockets by file descriptor");
	return false;
}

/* Lay the options given over @options. On error @options is spoilt. */
static int vulture_parse_options(const struct nlattr *nest, struct vulture_options *options,
				 struct netlink_ext_ack *extack)
{
	struct nlattr *attrs[VULTURE_O_MAX + 1];
	unsigned int i;
	int err;

	if (!nest)
		return 0;
	err = nla_parse_nested(attrs, VULTURE_O_MAX, nest, vulture_options_policy, extack);
	if (err)
		return err;
	for (i = 1; i <= VULTURE_O_MAX; i++) {
		u32 min = vulture_option[i].min, max = vulture_option[i].max;
		u32 value;

		if (!attrs[i])
			continue;
		value = nla_get_u32(attrs[i]);
		if (value < min || value > max) {
			NL_SET_BAD_ATTR(extack, attrs[i]);
			NL_SET_ERR_MSG_FMT_MOD(extack, "%s %u is not within %u to %u",
					       vulture_option[i].name, value, min, max);
			return -ERANGE;
		}
		vulture_option_set(options, i, value);
	}
	if (!piv_params_ok(&options->piv)) {
		NL_SET_BAD_ATTR(extack, nest);
		NL_SET_ERR_MSG_MOD(extack, "options clash: cons-low-us <= cons-high-us, aggr-low-us < aggr-high-us and tick-us <= psi-us must hold");
		return -EINVAL;
	}
	return 0;
}

/* 4 octets fill word 0 of @to. Return: the family, or 0. */
static u16 vulture_parse_address(const struct nlattr *attr, __be32 *to,
				 struct netlink_ext_ack *extack)
{
	unsigned int length = nla_len(attr);

	if (length == sizeof(struct in_addr) || length == sizeof(struct in6_addr)) {
		memcpy(to, nla_data(attr), length);
		return length == sizeof(struct in_addr) ? AF_INET : AF_INET6;
	}
	NL_SET_BAD_ATTR(extack, attr);
	NL_SET_ERR_MSG_FMT_MOD(extack, "an address has 4 or 16 octets, not %u", length);
	return 0;
}

static int vulture_parse_key(const struct nlattr *nest, struct vulture_key *key,
			     struct netlink_ext_ack *extack)
{
	struct nlattr *attrs[VULTURE_ADDR_MAX + 1];
	u16 remote_family;
	unsigned int i;
	int err;

	err = nla_parse_nested(attrs, VULTURE_ADDR_MAX, nest, vulture_addr_policy, extack);
	if (err)
		return err;
	for (i = 1; i <= VULTURE_ADDR_MAX; i++) {
		if (!attrs[i]) {
			NL_SET_BAD_ATTR(extack, nest);
			NL_SET_ERR_MSG_MOD(extack, "both addresses and both ports are needed");
			return -EINVAL;
		}
	}
	memset(key, 0, sizeof(*key));
	key->family = vulture_parse_address(attrs[VULTURE_ADDR_LOCAL], key->local, extack);
	remote_family = vulture_parse_address(attrs[VULTURE_ADDR_REMOTE], key->remote, extack);
	if (!key->family || !remote_family)
		return -EINVAL;
	if (key->family != remote_family) {
		NL_SET_ERR_MSG_MOD(extack, "the addresses are of different families");
		return -EINVAL;
	}
	key->local_port = htons(nla_get_u16(attrs[VULTURE_ADDR_LOCAL_PORT]));
	key->remote_port = htons(nla_get_u16(attrs[VULTURE_ADDR_REMOTE_PORT]));
	return 0;
}

/* Targets: from a request to sockets */

struct vulture_fd_walk {
	struct net *net;
	struct sock **socks;
	unsigned int n, room, found;
};

static int vulture_fd_visit(const void *arg, struct file *file, unsigned int fd)
{
	struct vulture_fd_walk *walk = (struct vulture_fd_walk *)arg;
	struct socket *sock = sock_from_file(file);
	struct sock *sk = sock ? sock->sk : NULL;

	if (!sk || sk->sk_protocol != IPPROTO_TCP || sk->sk_type != SOCK_STREAM ||
	    !net_eq(sock_net(sk), walk->net))
		return 0;
	walk->found++;
	if (walk->n < walk->room) {
		sock_hold(sk);
		walk->socks[walk->n++] = sk;
	}
	return 0;
}

static struct sock **vulture_sockets_of_task(struct task_struct *task, struct net *net,
					     unsigned int *n)
{
	struct vulture_fd_walk walk = { .net = net, .room = 64 };

	for (;;) {
		walk.n = 0;
		walk.found = 0;
		walk.socks = kvmalloc_array(walk.room, sizeof(*walk.socks),
					    GFP_KERNEL_ACCOUNT);
		if (!walk.socks)
			return ERR_PTR(-ENOMEM);
		task_lock(task);
		iterate_fd(task->files, 0, vulture_fd_visit, &walk);
		task_unlock(task);
		*n = walk.n;
		if (walk.found <= walk.room)
			return walk.socks;
		vulture_sockets_put(walk.socks, walk.n);
		walk.room = walk.found + walk.found / 4;
	}
}

static struct sock **vulture_sockets_of_pid(u32 nr, struct net *net, unsigned int *n,
					    struct netlink_ext_ack *extack)
{
	struct task_struct *task;
	struct sock **socks;
	struct pid *pid;

	pid = find_get_pid(nr);
	task = pid ? get_pid_task(pid, PIDTYPE_TGID) : NULL;
	put_pid(pid);
	if (!task) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "no process %u", nr);
		return ERR_PTR(-ESRCH);
	}
	socks = vulture_sockets_of_task(task, net, n);
	put_task_struct(task);
	return socks;
}

static struct cgroup *vulture_get_cgroup(u64 id, struct netlink_ext_ack *extack)
{
#ifdef CONFIG_SOCK_CGROUP_DATA
	struct cgroup *cgroup = cgroup_get_from_id(id);

	if (!IS_ERR_OR_NULL(cgroup))
		return cgroup;
	NL_SET_ERR_MSG_FMT_MOD(extack, "no v2 cgroup with id %llu", id);
	return ERR_PTR(-ENOENT);
#else
	NL_SET_ERR_MSG_MOD(extack, "this kernel does not tie sockets to cgroups (CONFIG_SOCK_CGROUP_DATA)");
	return ERR_PTR(-EOPNOTSUPP);
#endif
}

static struct sock **vulture_sockets_of_cgroup(u64 id, struct net *net, unsigned int *n,
					       struct netlink_ext_ack *extack)
{
	struct vulture_match match = {};
	struct sock **socks;

	match.cgroup = vulture_get_cgroup(id, extack);
	if (IS_ERR(match.cgroup))
		return ERR_CAST(match.cgroup);
	socks = vulture_sockets_find(net, &match, n);
	cgroup_put(match.cgroup);
	return socks;
}

static struct sock **vulture_sockets_one(struct sock *sk, unsigned int *n)
{
	struct sock **socks = kvmalloc(sizeof(*socks), GFP_KERNEL);

	if (!socks) {
		sock_put(sk);
		return ERR_PTR(-ENOMEM);
	}
	socks[0] = sk;
	*n = 1;
	return socks;
}

static struct sock **vulture_sockets_of_fd(u32 fd, unsigned int *n,
					   struct netlink_ext_ack *extack)
{
	struct socket *sock;
	struct sock *sk;
	int err;

	sock = sockfd_lookup(fd, &err);
	if (!sock) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "file descriptor %u is not %s", fd,
				       err == -EBADF ? "open" : "a socket");
		return ERR_PTR(err);
	}
	sk = sock->sk;
	sock_hold(sk);
	sockfd_put(sock);
	return vulture_sockets_one(sk, n);
}

static struct sock **vulture_sockets_of_addr(const struct nlattr *nest, struct net *net,
					     unsigned int *n, struct netlink_ext_ack *extack)
{
	struct vulture_match match = {};
	struct vulture_key key;
	struct sock **socks;
	int err;

	err = vulture_parse_key(nest, &key, extack);
	if (err)
		return ERR_PTR(err);
	match.key = &key;
	socks = vulture_sockets_find(net, &match, n);
	if (!IS_ERR(socks) && !*n) {
		vulture_sockets_put(socks, 0);
		NL_SET_ERR_MSG_MOD(extack, "no such connection in this network namespace");
		return ERR_PTR(-ENOENT);
	}
	return socks;
}

static struct sock **vulture_sockets_of_id(u64 id, struct net *net, unsigned int *n,
					   struct netlink_ext_ack *extack)
{
	struct vulture_flow *flow = vulture_flow_get_by_id(vulture_net(net), id);
	struct sock *sk = NULL;

	if (flow) {
		sk = vulture_flow_hold_sock(flow);
		vulture_flow_put(flow);
	}
	if (!sk) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "no connection with id %llu", id);
		return ERR_PTR(-ENOENT);
	}
	return vulture_sockets_one(sk, n);
}

/* The sockets that a request means; *many if it may mean any number. */
static struct sock **vulture_targets(struct sk_buff *skb, struct genl_info *info,
				     unsigned int *n, bool *many)
{
	static const u8 kinds[] = {
		VULTURE_A_FD, VULTURE_A_ADDR, VULTURE_A_PID, VULTURE_A_CGROUP, VULTURE_A_ID,
	};
	struct netlink_ext_ack *extack = info->extack;
	struct net *net = genl_info_net(info);
	unsigned int i, kind = 0, given = 0;
	const struct nlattr *attr;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (info->attrs[kinds[i]]) {
			kind = kinds[i];
			given++;
		}
	}
	if (given != 1) {
		NL_SET_ERR_MSG_MOD(extack, "exactly one of fd, addr, pid, cgroup and id is needed");
		return ERR_PTR(-EINVAL);
	}
	attr = info->attrs[kind];
	*many = kind == VULTURE_A_PID || kind == VULTURE_A_CGROUP;
	if (kind == VULTURE_A_FD)
		return vulture_sockets_of_fd(nla_get_u32(attr), n, extack);
	if (!vulture_admin(skb, net, extack))
		return ERR_PTR(-EPERM);
	switch (kind) {
	case VULTURE_A_ADDR:
		return vulture_sockets_of_addr(attr, net, n, extack);
	case VULTURE_A_PID:
		return vulture_sockets_of_pid(nla_get_u32(attr), net, n, extack);
	case VULTURE_A_CGROUP:
		return vulture_sockets_of_cgroup(nla_get_u64(attr), net, n, extack);
	default:
		return vulture_sockets_of_id(nla_get_u64(attr), net, n, extack);
	}
}

/* Writing messages */

static int vulture_put_options(struct sk_buff *skb, int type,
			       const struct vulture_options *options)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	unsigned int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 1; i <= VULTURE_O_MAX; i++)
		if (nla_put_u32(skb, i, vulture_option_get(options, i)))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int vulture_put_addr(struct sk_buff *skb, int type, const struct vulture_key *key)
{
	unsigned int length = key->family == AF_INET ? 4 : 16;
	struct nlattr *nest = nla_nest_start(skb, type);

	if (!nest ||
	    nla_put(skb, VULTURE_ADDR_LOCAL, length, key->local) ||
	    nla_put_u16(skb, VULTURE_ADDR_LOCAL_PORT, ntohs(key->local_port)) ||
	    nla_put(skb, VULTURE_ADDR_REMOTE, length, key->remote) ||
	    nla_put_u16(skb, VULTURE_ADDR_REMOTE_PORT, ntohs(key->remote_port)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* What a flow shows, taken under its lock in one piece. */
struct vulture_snapshot {
	struct rwnd_stats stats;
	struct vulture_options options;
	u32 own_bytes, advertised_bytes;
	u64 age_us, segments, bytes, acks, rewritten, updates;
};

static void vulture_snapshot(struct vulture_flow *flow, struct vulture_snapshot *s)
{
	u64 now_us = vulture_now_us();

	spin_lock_bh(&flow->lock);
	flow->controller->stats(flow->priv, now_us, &s->stats);
	s->options = flow->options;
	s->own_bytes = flow->own_bytes;
	s->advertised_bytes = flow->advertised_bytes;
	s->age_us = now_us - flow->started_us;
	s->segments = flow->segments;
	s->bytes = flow->bytes;
	s->acks = flow->acks;
	s->rewritten = flow->rewritten;
	s->updates = flow->updates;
	spin_unlock_bh(&flow->lock);
}

static int vulture_put_counters(struct sk_buff *skb, const struct vulture_snapshot *s)
{
	const struct { int type; u64 value; } counters[] = {
		{ VULTURE_F_AGE_US, s->age_us },
		{ VULTURE_F_PIV_NEGATIVE, s->stats.negative },
		{ VULTURE_F_PIV_ZERO, s->stats.zero },
		{ VULTURE_F_PIV_POSITIVE, s->stats.positive },
		{ VULTURE_F_PIV_LOW, s->stats.by[PIV_LOW] },
		{ VULTURE_F_PIV_MIDDLE, s->stats.by[PIV_MIDDLE] },
		{ VULTURE_F_PIV_HIGH, s->stats.by[PIV_HIGH] },
		{ VULTURE_F_ROUNDS, s->stats.rounds },
		{ VULTURE_F_FIXES, s->stats.by_policy[RWND_FIX] },
		{ VULTURE_F_INCREASES, s->stats.by_policy[RWND_INCREASE] },
		{ VULTURE_F_DOUBLINGS, s->stats.by_policy[RWND_DOUBLE] },
		{ VULTURE_F_HALVINGS, s->stats.by_policy[RWND_HALVE] },
		{ VULTURE_F_DRAINS, s->stats.by_policy[RWND_DRAIN] },
		{ VULTURE_F_LOSSES, s->stats.losses },
		{ VULTURE_F_CONSERVATIVE_US, s->stats.mode_us[PIV_CONSERVATIVE] },
		{ VULTURE_F_AGGRESSIVE_US, s->stats.mode_us[PIV_AGGRESSIVE] },
		{ VULTURE_F_SEGMENTS, s->segments },
		{ VULTURE_F_BYTES, s->bytes },
		{ VULTURE_F_ACKS, s->acks },
		{ VULTURE_F_REWRITTEN, s->rewritten },
		{ VULTURE_F_UPDATES, s->updates },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(counters); i++)
		if (nla_put_u64_64bit(skb, counters[i].type, counters[i].value,
				      VULTURE_F_PAD))
			return -EMSGSIZE;
	return 0;
}

static int vulture_put_state(struct sk_buff *skb, const struct vulture_snapshot *s)
{
	const struct { int type; u32 value; } fields[] = {
		{ VULTURE_F_PHASE, s->stats.phase },
		{ VULTURE_F_MODE, s->stats.mode },
		{ VULTURE_F_POLICY, s->stats.policy },
		{ VULTURE_F_RWND_BYTES, s->stats.rwnd_bytes },
		{ VULTURE_F_THRESH_BYTES, s->stats.thresh_bytes },
		{ VULTURE_F_ADVERTISED_BYTES, s->advertised_bytes },
		{ VULTURE_F_OWN_BYTES, s->own_bytes },
		{ VULTURE_F_CWND_BYTES, s->stats.cwnd_bytes },
		{ VULTURE_F_RTT_US, s->stats.rtt_us },
		{ VULTURE_F_MIN_RTT_US, s->stats.min_rtt_us },
		{ VULTURE_F_MSS_BYTES, s->stats.mss_bytes },
		{ VULTURE_F_PEER_TICK_US, s->stats.peer_tick_us },
		{ VULTURE_F_LAST_PIVS, s->stats.last.n },
		{ VULTURE_F_LAST_POSITIVE, s->stats.last.positive },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (nla_put_u32(skb, fields[i].type, fields[i].value))
			return -EMSGSIZE;
	return nla_put_s64(skb, VULTURE_F_LAST_SUM_US, s->stats.last.sum_us, VULTURE_F_PAD);
}

static int vulture_put_flow(struct sk_buff *skb, struct vulture_flow *flow)
{
	struct nlattr *nest = nla_nest_start(skb, VULTURE_A_FLOW);
	struct vulture_snapshot snapshot;

	if (!nest)
		return -EMSGSIZE;
	vulture_snapshot(flow, &snapshot);
	if (nla_put_u64_64bit(skb, VULTURE_F_ID, flow->id, VULTURE_F_PAD) ||
	    vulture_put_addr(skb, VULTURE_F_ADDR, &flow->key) ||
	    nla_put_u32(skb, VULTURE_F_RULE, flow->rule) ||
	    vulture_put_options(skb, VULTURE_F_OPTIONS, &snapshot.options) ||
	    vulture_put_state(skb, &snapshot) ||
	    vulture_put_counters(skb, &snapshot)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/* Caller: holds rules_lock, or is under RCU. */
static int vulture_put_rule(struct sk_buff *skb, const struct vulture_rule *rule)
{
	struct nlattr *nest = nla_nest_start(skb, VULTURE_A_RULE);
	unsigned int length = rule->family == AF_INET ? 4 : 16;

	if (!nest || nla_put_u32(skb, VULTURE_R_ID, rule->id))
		return -EMSGSIZE;
	if (rule->cgroup &&
	    nla_put_u64_64bit(skb, VULTURE_R_CGROUP, rule->cgroup_id, VULTURE_R_PAD))
		return -EMSGSIZE;
	if (rule->local_port && nla_put_u16(skb, VULTURE_R_LOCAL_PORT, rule->local_port))
		return -EMSGSIZE;
	if (rule->remote_port && nla_put_u16(skb, VULTURE_R_REMOTE_PORT, rule->remote_port))
		return -EMSGSIZE;
	if (rule->family &&
	    (nla_put(skb, VULTURE_R_REMOTE_PREFIX, length, rule->prefix) ||
	     nla_put_u8(skb, VULTURE_R_REMOTE_PREFIX_LEN, rule->prefix_len)))
		return -EMSGSIZE;
	if (vulture_put_options(skb, VULTURE_R_OPTIONS, &rule->options) ||
	    nla_put_u64_64bit(skb, VULTURE_R_STARTED, atomic64_read(&rule->started),
			      VULTURE_R_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static struct sk_buff *vulture_reply(struct genl_info *info, u8 cmd, void **header)
{
	struct sk_buff *msg = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);

	if (!msg)
		return NULL;
	*header = genlmsg_put_reply(msg, info, &vulture_family, 0, cmd);
	if (*header)
		return msg;
	nlmsg_free(msg);
	return NULL;
}

/* A dump's messages: one for each thing, as many as fit; the next call goes on
 * from cb->args[0], an id.
 */
static void *vulture_dump_begin(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			   &vulture_family, NLM_F_MULTI, cmd);
}

/* @err: of writing it. Return: there may be room for another. */
static bool vulture_dump_end(struct sk_buff *skb, struct netlink_callback *cb,
			     void *header, int err, unsigned long id)
{
	if (err) {
		genlmsg_cancel(skb, header);
		return false;
	}
	genlmsg_end(skb, header);
	cb->args[0] = id + 1;
	return true;
}

/* Begun before a request is acted upon: one that says "no memory" has done nothing. */
static int vulture_send_count(struct genl_info *info, struct sk_buff *msg, void *header,
			      u32 count, u64 id)
{
	if (nla_put_u32(msg, VULTURE_A_COUNT, count) ||
	    (id && nla_put_u64_64bit(msg, VULTURE_A_ID, id, VULTURE_A_PAD))) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

/* Tell the listeners, if there are any. Any context. */
void vulture_netlink_event(struct vulture_flow *flow, u8 cmd, u32 reason)
{
	struct net *net = flow->vn->net;
	struct sk_buff *msg;
	void *header;

	if (!READ_ONCE(vulture_listening) ||
	    !genl_has_listeners(&vulture_family, net, VULTURE_GROUP_EVENTS))
		return;
	msg = genlmsg_new(NLMSG_GOODSIZE, GFP_ATOMIC);
	if (!msg)
		return;
	header = genlmsg_put(msg, 0, 0, &vulture_family, 0, cmd);
	if (!header || vulture_put_flow(msg, flow) ||
	    (cmd == VULTURE_CMD_EVENT_END && nla_put_u32(msg, VULTURE_A_REASON, reason))) {
		nlmsg_free(msg);
		return;
	}
	genlmsg_end(msg, header);
	genlmsg_multicast_netns(&vulture_family, net, msg, 0, VULTURE_GROUP_EVENTS, GFP_ATOMIC);
}

/* Commands */

/* A flow without the hooks would be under control in name only. */
static int vulture_start_one(struct sock *sk, const struct vulture_options *options, u64 *id,
			     struct netlink_ext_ack *extack)
{
	int err = vulture_flow_start(sk, options, 0, GFP_KERNEL_ACCOUNT, id, extack);

	if (err)
		return err;
	err = vulture_hooks_settle(vulture_net(sock_net(sk)));
	if (!err)
		return 0;
	vulture_flow_stop(sk, NULL);
	NL_SET_ERR_MSG_MOD(extack, "the netfilter hooks could not be put in place");
	return err;
}

static int vulture_cmd_start(struct sk_buff *skb, struct genl_info *info)
{
	struct vulture_net *vn = vulture_net(genl_info_net(info));
	struct vulture_options options;
	unsigned int i, n, started = 0;
	struct sock **socks;
	struct sk_buff *msg;
	void *header;
	u64 id = 0;
	bool many;
	int err;

	mutex_lock(&vn->rules_lock);
	options = vn->options;
	mutex_unlock(&vn->rules_lock);
	err = vulture_parse_options(info->attrs[VULTURE_A_OPTIONS], &options, info->extack);
	if (err)
		return err;
	if (info->attrs[VULTURE_A_ID]) {
		NL_SET_ERR_MSG_MOD(info->extack, "an id names a connection under control: start it by fd or addr");
		return -EINVAL;
	}
	socks = vulture_targets(skb, info, &n, &many);
	if (IS_ERR(socks))
		return PTR_ERR(socks);
	msg = vulture_reply(info, VULTURE_CMD_START, &header);
	err = msg ? -ENOENT : -ENOMEM;
	for (i = 0; msg && i < n; i++) {
		err = vulture_start_one(socks[i], &options, &id, many ? NULL : info->extack);
		started += !err;
	}
	vulture_sockets_put(socks, n);
	if (started)
		return vulture_send_count(info, msg, header, started, many ? 0 : id);
	nlmsg_free(msg);
	if (many && err != -ENOMEM) {
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "none of %u TCP sockets can be started", n);
		return -ENOENT;
	}
	return err;
}

static int vulture_cmd_stop(struct sk_buff *skb, struct genl_info *info)
{
	unsigned int i, n, stopped = 0;
	struct sock **socks;
	struct sk_buff *msg;
	void *header;
	bool many;
	int err;

	socks = vulture_targets(skb, info, &n, &many);
	if (IS_ERR(socks))
		return PTR_ERR(socks);
	msg = vulture_reply(info, VULTURE_CMD_STOP, &header);
	err = msg ? -ENOENT : -ENOMEM;
	for (i = 0; msg && i < n; i++) {
		err = vulture_flow_stop(socks[i], many ? NULL : info->extack);
		stopped += !err;
	}
	vulture_sockets_put(socks, n);
	if (stopped)
		return vulture_send_count(info, msg, header, stopped, 0);
	nlmsg_free(msg);
	if (many && err != -ENOMEM) {
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "none of %u TCP sockets is under control", n);
		return -ENOENT;
	}
	return err;
}

static int vulture_cmd_get(struct sk_buff *skb, struct genl_info *info)
{
	struct vulture_flow *flow;
	struct vulture_key key;
	struct sock **socks;
	struct sk_buff *msg;
	unsigned int n;
	void *header;
	bool many;
	int err;

	if (info->attrs[VULTURE_A_PID] || info->attrs[VULTURE_A_CGROUP]) {
		NL_SET_ERR_MSG_MOD(info->extack, "get takes fd, addr or id; dump for more");
		return -EINVAL;
	}
	socks = vulture_targets(skb, info, &n, &many);
	if (IS_ERR(socks))
		return PTR_ERR(socks);
	vulture_key_of_sock(socks[0], &key);
	rcu_read_lock();
	flow = vulture_flow_lookup(vulture_net(sock_net(socks[0])), &key);
	if (flow && (flow->sk != socks[0] || !refcount_inc_not_zero(&flow->refs)))
		flow = NULL;
	rcu_read_unlock();
	vulture_sockets_put(socks, n);
	if (!flow) {
		NL_SET_ERR_MSG_MOD(info->extack, "the connection is not under control");
		return -ENOENT;
	}
	msg = vulture_reply(info, VULTURE_CMD_GET, &header);
	err = msg ? vulture_put_flow(msg, flow) : -ENOMEM;
	vulture_flow_put(flow);
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

static int vulture_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct vulture_net *vn = vulture_net(sock_net(cb->skb->sk));
	struct vulture_flow *flow;
	unsigned long id;

	rcu_read_lock();
	xa_for_each_start(&vn->ids, id, flow, cb->args[0]) {
		void *header = vulture_dump_begin(skb, cb, VULTURE_CMD_GET);

		if (!header ||
		    !vulture_dump_end(skb, cb, header, vulture_put_flow(skb, flow), id))
			break;
	}
	rcu_read_unlock();
	return skb->len;
}

static int vulture_cmd_set(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	struct vulture_net *vn = vulture_net(net);
	struct vulture_options options;
	u32 max_flows;
	int err;

	if (!vulture_admin(skb, net, info->extack))
		return -EPERM;
	mutex_lock(&vn->rules_lock);
	options = vn->options;
	max_flows = vn->max_flows;
	err = vulture_parse_options(info->attrs[VULTURE_A_OPTIONS], &options, info->extack);
	if (err)
		goto unlock;
	if (info->attrs[VULTURE_A_MAX_FLOWS])
		max_flows = nla_get_u32(info->attrs[VULTURE_A_MAX_FLOWS]);
	if (max_flows > VULTURE_MAX_FLOWS_LIMIT) {
		NL_SET_BAD_ATTR(info->extack, info->attrs[VULTURE_A_MAX_FLOWS]);
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "max-flows %u is not within 0 to %u",
				       max_flows, VULTURE_MAX_FLOWS_LIMIT);
		err = -ERANGE;
		goto unlock;
	}
	vn->options = options;
	WRITE_ONCE(vn->max_flows, max_flows);
unlock:
	mutex_unlock(&vn->rules_lock);
	return err;
}

static int vulture_cmd_get_defaults(struct sk_buff *skb, struct genl_info *info)
{
	struct vulture_net *vn = vulture_net(genl_info_net(info));
	struct sk_buff *msg;
	void *header;
	int err;

	msg = vulture_reply(info, VULTURE_CMD_GET_DEFAULTS, &header);
	if (!msg)
		return -ENOMEM;
	mutex_lock(&vn->rules_lock);
	err = vulture_put_options(msg, VULTURE_A_OPTIONS, &vn->options);
	mutex_unlock(&vn->rules_lock);
	if (err || nla_put_u32(msg, VULTURE_A_MAX_FLOWS, READ_ONCE(vn->max_flows)) ||
	    nla_put_u32(msg, VULTURE_A_COUNT, atomic_read(&vn->flows)) ||
	    nla_put_u32(msg, VULTURE_A_FLOW_BYTES, sizeof(struct vulture_flow)) ||
	    nla_put_string(msg, VULTURE_A_VERSION, LBE_VERSION)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

/* Rules */

static int vulture_parse_prefix(struct nlattr **attrs, struct vulture_rule *rule,
				struct netlink_ext_ack *extack)
{
	const struct nlattr *length = attrs[VULTURE_R_REMOTE_PREFIX_LEN];
	unsigned int bits;

	if (!attrs[VULTURE_R_REMOTE_PREFIX]) {
		if (!length)
			return 0;
		NL_SET_ERR_MSG_MOD(extack, "remote-prefix-len without remote-prefix");
		return -EINVAL;
	}
	rule->family = vulture_parse_address(attrs[VULTURE_R_REMOTE_PREFIX], rule->prefix, extack);
	if (!rule->family)
		return -EINVAL;
	bits = rule->family == AF_INET ? 32 : 128;
	rule->prefix_len = length ? nla_get_u8(length) : bits;
	if (rule->prefix_len > bits) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "remote-prefix-len %u is not within 0 to %u",
				       rule->prefix_len, bits);
		return -ERANGE;
	}
	return 0;
}

static int vulture_parse_rule(struct nlattr **attrs, struct vulture_rule *rule,
			      struct netlink_ext_ack *extack)
{
	int err;

	if (attrs[VULTURE_R_ID] ||
	    (!attrs[VULTURE_R_CGROUP] && !attrs[VULTURE_R_LOCAL_PORT] &&
	     !attrs[VULTURE_R_REMOTE_PORT] && !attrs[VULTURE_R_REMOTE_PREFIX])) {
		NL_SET_ERR_MSG_MOD(extack, "a rule needs cgroup, local-port, remote-port or remote-prefix, and gets its id from the kernel");
		return -EINVAL;
	}
	err = vulture_parse_options(attrs[VULTURE_R_OPTIONS], &rule->options, extack);
	if (!err)
		err = vulture_parse_prefix(attrs, rule, extack);
	if (err)
		return err;
	if (attrs[VULTURE_R_LOCAL_PORT])
		rule->local_port = nla_get_u16(attrs[VULTURE_R_LOCAL_PORT]);
	if (attrs[VULTURE_R_REMOTE_PORT])
		rule->remote_port = nla_get_u16(attrs[VULTURE_R_REMOTE_PORT]);
	if (!attrs[VULTURE_R_CGROUP])
		return 0;
	rule->cgroup_id = nla_get_u64(attrs[VULTURE_R_CGROUP]);
	rule->cgroup = vulture_get_cgroup(rule->cgroup_id, extack);
	if (!IS_ERR(rule->cgroup))
		return 0;
	err = PTR_ERR(rule->cgroup);
	rule->cgroup = NULL;
	return err;
}

static int vulture_rule_attrs(struct genl_info *info, struct nlattr **attrs)
{
	if (!info->attrs[VULTURE_A_RULE]) {
		NL_SET_ERR_MSG_MOD(info->extack, "a rule is needed");
		return -EINVAL;
	}
	return nla_parse_nested(attrs, VULTURE_R_MAX, info->attrs[VULTURE_A_RULE],
				vulture_rule_policy, info->extack);
}

static void vulture_rule_free(struct vulture_rule *rule)
{
	if (rule->cgroup)
		cgroup_put(rule->cgroup);
	kfree_rcu(rule, rcu);
}

/* Take a rule off the list. Connections being established may still look at it. */
static struct vulture_rule *vulture_rule_remove(struct vulture_net *vn, u32 id)
{
	struct vulture_rule *rule, *found = NULL;

	mutex_lock(&vn->rules_lock);
	list_for_each_entry(rule, &vn->rules, node) {
		if (rule->id == id) {
			found = rule;
			list_del_rcu(&rule->node);
			vn->n_rules--;
			break;
		}
	}
	mutex_unlock(&vn->rules_lock);
	return found;
}

static int vulture_cmd_rule_add(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *attrs[VULTURE_R_MAX + 1];
	struct net *net = genl_info_net(info);
	struct vulture_net *vn = vulture_net(net);
	struct vulture_rule *rule;
	struct sk_buff *msg;
	void *header;
	u32 id;
	int err;

	if (!vulture_admin(skb, net, info->extack))
		return -EPERM;
	err = vulture_rule_attrs(info, attrs);
	if (err)
		return err;
	rule = kzalloc(sizeof(*rule), GFP_KERNEL_ACCOUNT);
	msg = vulture_reply(info, VULTURE_CMD_RULE_ADD, &header);
	if (!rule || !msg) {
		kfree(rule);
		nlmsg_free(msg);
		return -ENOMEM;
	}

	mutex_lock(&vn->rules_lock);
	rule->options = vn->options;
	err = vulture_parse_rule(attrs, rule, info->extack);
	if (!err && vn->n_rules >= VULTURE_MAX_RULES) {
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "there are %u rules already, the limit",
				       vn->n_rules);
		err = -ENOSPC;
	}
	id = vn->next_rule;
	rule->id = id;
	if (!err)
		err = vulture_put_rule(msg, rule);
	if (!err) {
		vn->next_rule++;
		vn->n_rules++;
		list_add_tail_rcu(&rule->node, &vn->rules);
	}
	mutex_unlock(&vn->rules_lock);
	if (err)
		goto err_free;
	err = vulture_hooks_settle(vn);
	if (err) {
		NL_SET_ERR_MSG_MOD(info->extack, "the netfilter hooks could not be put in place");
		rule = vulture_rule_remove(vn, id);	/* NULL: another has deleted it */
		synchronize_rcu();
		goto err_free;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);

err_free:
	if (rule)
		vulture_rule_free(rule);
	nlmsg_free(msg);
	return err;
}

static int vulture_cmd_rule_del(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *attrs[VULTURE_R_MAX + 1];
	struct net *net = genl_info_net(info);
	struct vulture_net *vn = vulture_net(net);
	struct vulture_rule *rule;
	u32 id;
	int err;

	if (!vulture_admin(skb, net, info->extack))
		return -EPERM;
	err = vulture_rule_attrs(info, attrs);
	if (err)
		return err;
	if (!attrs[VULTURE_R_ID]) {
		NL_SET_ERR_MSG_MOD(info->extack, "the id of the rule is needed");
		return -EINVAL;
	}
	id = nla_get_u32(attrs[VULTURE_R_ID]);

	rule = vulture_rule_remove(vn, id);
	if (!rule) {
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "no rule with id %u", id);
		return -ENOENT;
	}
	vulture_hooks_settle(vn);
	synchronize_rcu();
	vulture_rule_free(rule);
	return 0;
}

static int vulture_rule_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct vulture_net *vn = vulture_net(sock_net(cb->skb->sk));
	struct vulture_rule *rule;

	mutex_lock(&vn->rules_lock);
	list_for_each_entry(rule, &vn->rules, node) {
		void *header;

		if (rule->id < (u32)cb->args[0])	/* was in a message before */
			continue;
		header = vulture_dump_begin(skb, cb, VULTURE_CMD_RULE_GET);
		if (!header ||
		    !vulture_dump_end(skb, cb, header, vulture_put_rule(skb, rule), rule->id))
			break;
	}
	mutex_unlock(&vn->rules_lock);
	return skb->len;
}

static const struct genl_ops vulture_ops[] = {
	{
		.cmd = VULTURE_CMD_START,
		.doit = vulture_cmd_start,
		.policy = vulture_target_policy,
		.maxattr = VULTURE_A_OPTIONS,
	}, {
		.cmd = VULTURE_CMD_STOP,
		.doit = vulture_cmd_stop,
		.policy = vulture_target_policy,
		.maxattr = VULTURE_A_ID,
	}, {
		.cmd = VULTURE_CMD_GET,
		.doit = vulture_cmd_get,
		.dumpit = vulture_dump,
		.policy = vulture_target_policy,
		.maxattr = VULTURE_A_ID,
	}, {
		.cmd = VULTURE_CMD_SET,
		.doit = vulture_cmd_set,
		.policy = vulture_set_policy,
		.maxattr = VULTURE_A_MAX_FLOWS,
	}, {
		.cmd = VULTURE_CMD_GET_DEFAULTS,
		.doit = vulture_cmd_get_defaults,
		.policy = vulture_set_policy,
		.maxattr = 0,
	}, {
		.cmd = VULTURE_CMD_RULE_ADD,
		.doit = vulture_cmd_rule_add,
		.policy = vulture_rule_only_policy,
		.maxattr = VULTURE_A_RULE,
	}, {
		.cmd = VULTURE_CMD_RULE_DEL,
		.doit = vulture_cmd_rule_del,
		.policy = vulture_rule_only_policy,
		.maxattr = VULTURE_A_RULE,
	}, {
		.cmd = VULTURE_CMD_RULE_GET,
		.dumpit = vulture_rule_dump,
		.policy = vulture_rule_only_policy,
		.maxattr = VULTURE_A_RULE,
	},
};

static const struct genl_multicast_group vulture_groups[] = {
	[VULTURE_GROUP_EVENTS] = { .name = VULTURE_MCGRP_EVENTS },
};

static struct genl_family vulture_family __ro_after_init = {
	.name = VULTURE_GENL_NAME,
	.version = VULTURE_GENL_VERSION,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = vulture_ops,
	.n_ops = ARRAY_SIZE(vulture_ops),
	.resv_start_op = VULTURE_CMD_UNSPEC + 1,
	.mcgrps = vulture_groups,
	.n_mcgrps = ARRAY_SIZE(vulture_groups),
};

int __init vulture_netlink_init(void)
{
	int err = genl_register_family(&vulture_family);

	WRITE_ONCE(vulture_listening, !err);
	return err;
}

void vulture_netlink_exit(void)
{
	WRITE_ONCE(vulture_listening, false);
	genl_unregister_family(&vulture_family);
}
