// SPDX-License-Identifier: GPL-2.0
/*
 * The operations of netlink_gen.c. The interface is described at the head of uapi/vulture.h.
 */
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <lbe/genl.h>

#include "netlink_gen.h"
#include "vulture.h"

/* Parsing. Each function puts the reason of a refusal into the extended ACK. The policies of
 * netlink_gen.c have been applied before, also to nests: types and ranges are right.
 */

static bool vulture_is_admin(struct sk_buff *skb, struct net *net)
{
	return netlink_ns_capable(skb, net->user_ns, CAP_NET_ADMIN);
}

/* Whether the user who writes to the netlink socket is the one who opened it. If a program of
 * another user was given the socket as its output, the request must not get the rights of that
 * program.
 */
static bool vulture_sender_is_caller(struct sk_buff *skb)
{
	const struct socket *socket = NETLINK_CB(skb).sk->sk_socket;

	return socket && socket->file &&
	       uid_eq(socket->file->f_cred->euid, current_euid());
}

static bool vulture_admin(struct sk_buff *skb, struct net *net,
			  struct netlink_ext_ack *extack)
{
	if (vulture_is_admin(skb, net))
		return true;
	NL_SET_ERR_MSG_MOD(extack, "needs CAP_NET_ADMIN; without it an application may start, stop and get its own sockets by file descriptor, and add rules for a cgroup of its own by cgroup-fd");
	return false;
}

/* Parse an address; 4 octets fill word 0 of @to. Return: the family, or 0. */
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

	err = nla_parse_nested(attrs, VULTURE_ADDR_MAX, nest, vulture_addr_nl_policy, extack);
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

/* Return: the one attribute that names the sockets of a request, or 0. */
static unsigned int vulture_target_kind(struct genl_info *info)
{
	static const u8 kinds[] = {
		VULTURE_A_FD, VULTURE_A_ADDR, VULTURE_A_PID, VULTURE_A_CGROUP, VULTURE_A_ID,
	};
	unsigned int i, kind = 0, given = 0;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (info->attrs[kinds[i]]) {
			kind = kinds[i];
			given++;
		}
	}
	if (given == 1)
		return kind;
	NL_SET_ERR_MSG_MOD(info->extack, "exactly one of fd, addr, pid, cgroup and id is needed");
	return 0;
}

static struct sock **vulture_targets_of_addr(const struct nlattr *attr, struct net *net,
					     unsigned int *n, struct netlink_ext_ack *extack)
{
	struct vulture_key key;
	int err = vulture_parse_key(attr, &key, extack);

	return err ? ERR_PTR(err) : vulture_sockets_of_addr(&key, net, n, extack);
}

static struct sock **vulture_targets_of_cgroup(u64 id, struct net *net, unsigned int *n,
					       struct netlink_ext_ack *extack)
{
	struct cgroup *cgroup = vulture_get_cgroup(id, extack);
	struct sock **socks;

	if (IS_ERR(cgroup))
		return ERR_CAST(cgroup);
	socks = vulture_sockets_of_cgroup(cgroup, net, n);
	cgroup_put(cgroup);
	return socks;
}

/* Find the sockets that a request names, by any attribute but an id. Sets *many if there may be any
 * number of them. @change: the request changes them, and does not only read.
 */
static struct sock **vulture_targets(struct sk_buff *skb, struct genl_info *info,
				     unsigned int kind, bool change, unsigned int *n,
				     bool *many)
{
	struct netlink_ext_ack *extack = info->extack;
	struct net *net = genl_info_net(info);
	const struct nlattr *attr = info->attrs[kind];

	*many = kind == VULTURE_A_PID || kind == VULTURE_A_CGROUP;
	if (kind == VULTURE_A_FD)
		return vulture_sockets_of_fd(nla_get_u32(attr), n, extack);
	if (change && !vulture_admin(skb, net, extack))
		return ERR_PTR(-EPERM);
	switch (kind) {
	case VULTURE_A_ADDR:
		return vulture_targets_of_addr(attr, net, n, extack);
	case VULTURE_A_PID:
		return vulture_sockets_of_pid(nla_get_u32(attr), net, n, extack);
	default:
		return vulture_targets_of_cgroup(nla_get_u64(attr), net, n, extack);
	}
}

static struct vulture_flow *vulture_target_of_id(struct genl_info *info)
{
	u64 id = nla_get_u64(info->attrs[VULTURE_A_ID]);
	struct vulture_flow *flow;

	flow = vulture_flow_get_by_id(vulture_net(genl_info_net(info)), id);
	if (!flow)
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "no connection with id %llu", id);
	return flow;
}

/* Writing messages */

/* Put a rule into a message. Caller: holds rules_lock, or is under RCU. */
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
	     nla_put_u8(skb, VULTURE_R_REMOTE_PREFIX_BITS, rule->prefix_len)))
		return -EMSGSIZE;
	if (rule->by_dscp && nla_put_u8(skb, VULTURE_R_DSCP, rule->dscp))
		return -EMSGSIZE;
	if (rule->foreground && nla_put_flag(skb, VULTURE_R_FOREGROUND))
		return -EMSGSIZE;
	if (vulture_options_put(skb, VULTURE_R_OPTIONS, &rule->options) ||
	    nla_put_u64_64bit(skb, VULTURE_R_STARTED, atomic64_read(&rule->started),
			      VULTURE_R_PAD) ||
	    nla_put_u64_64bit(skb, VULTURE_R_FAILED, atomic64_read(&rule->failed),
			      VULTURE_R_PAD))
		return -EMSGSIZE;
	if (rule->user &&
	    nla_put_u32(skb, VULTURE_R_UID, from_kuid_munged(current_user_ns(), rule->user->uid)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static struct sk_buff *vulture_reply(struct genl_info *info, u8 cmd, void **header)
{
	struct sk_buff *msg = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);

	if (!msg)
		return NULL;
	*header = genlmsg_put_reply(msg, info, lbe_genl(&vulture_nl_family), 0, cmd);
	if (*header)
		return msg;
	nlmsg_free(msg);
	return NULL;
}

/* A dump has one message for each flow or rule, as many in a call as fit. The next call
 * continues with the id cb->args[0].
 */
static void *vulture_dump_begin(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			   lbe_genl(&vulture_nl_family), NLM_F_MULTI, cmd);
}

/* End a message of a dump. @err: from writing it. Return: there may be room for another one. */
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

/* Send a reply with a count. The reply was allocated before the request was carried out, so a
 * request that fails with "no memory" has changed nothing.
 */
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

/* Commands */

/* Time until which a request may wait for the locks of sockets, jiffies. The kernel handles the
 * requests of one packet one after another, and no family can be registered before the last one is
 * done. Therefore only the first of a packet may wait. The others are those with headroom: the
 * requests before them.
 */
static unsigned long vulture_wait_until(const struct sk_buff *skb)
{
	return jiffies + (skb_headroom(skb) ? 0 : VULTURE_LOCK_WAIT);
}

/* The hooks are registered before the flow starts, and held meanwhile: a segment that they do not
 * see would advertise more than the flow knows of.
 */
static int vulture_start_one(struct sock *sk, const struct vulture_options *options,
			     unsigned long until, u64 *id, struct netlink_ext_ack *extack)
{
	struct vulture_net *vn = vulture_net(sock_net(sk));
	int err = vulture_hooks_hold(vn);

	if (err) {
		NL_SET_ERR_MSG_MOD(extack, "the netfilter hooks could not be put in place");
		return err;
	}
	err = vulture_flow_start(sk, options, until, id, extack);
	vulture_hooks_release(vn);
	return err;
}

int vulture_nl_start_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct vulture_net *vn = vulture_net(genl_info_net(info));
	unsigned long until = vulture_wait_until(skb);
	unsigned int i, n, kind, started = 0;
	struct vulture_options options;
	struct sock **socks;
	struct sk_buff *msg;
	void *header;
	u64 id = 0;
	bool many;
	int err;

	mutex_lock(&vn->rules_lock);
	err = vulture_options_parse(vn, info->attrs[VULTURE_A_OPTIONS], &options, info->extack);
	mutex_unlock(&vn->rules_lock);
	if (err)
		return err;
	kind = vulture_target_kind(info);
	if (!kind)
		return -EINVAL;
	socks = vulture_targets(skb, info, kind, true, &n, &many);
	if (IS_ERR(socks))
		return PTR_ERR(socks);
	msg = vulture_reply(info, VULTURE_CMD_START, &header);
	err = msg ? -ENOENT : -ENOMEM;
	for (i = 0; msg && i < n; i++) {
		err = vulture_start_one(socks[i], &options, until, &id,
					many ? NULL : info->extack);
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

static unsigned int vulture_stop_socks(struct sk_buff *skb, struct genl_info *info,
				       unsigned int kind, int *err)
{
	unsigned long until = vulture_wait_until(skb);
	unsigned int i, n, stopped = 0;
	struct sock **socks;
	bool many;

	socks = vulture_targets(skb, info, kind, true, &n, &many);
	if (IS_ERR(socks)) {
		*err = PTR_ERR(socks);
		return 0;
	}
	*err = -ENOENT;
	for (i = 0; i < n; i++) {
		*err = vulture_flow_stop(socks[i], until, many ? NULL : info->extack);
		stopped += !*err;
	}
	vulture_sockets_put(socks, n);
	if (many && !stopped) {
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "none of %u TCP sockets is under control", n);
		*err = -ENOENT;
	}
	return stopped;
}

static unsigned int vulture_stop_id(struct sk_buff *skb, struct genl_info *info, int *err)
{
	struct vulture_flow *flow;

	*err = -EPERM;
	if (!vulture_admin(skb, genl_info_net(info), info->extack))
		return 0;
	*err = -ENOENT;
	flow = vulture_target_of_id(info);
	if (!flow)
		return 0;
	if (vulture_flow_remove(flow, VULTURE_REASON_STOPPED, vulture_wait_until(skb)))
		*err = 0;
	else
		NL_SET_ERR_MSG_MOD(info->extack, "the connection is not under control");
	vulture_flow_put(flow);
	return !*err;
}

int vulture_nl_stop_doit(struct sk_buff *skb, struct genl_info *info)
{
	unsigned int stopped, kind = vulture_target_kind(info);
	struct sk_buff *msg;
	void *header;
	int err;

	if (!kind)
		return -EINVAL;
	msg = vulture_reply(info, VULTURE_CMD_STOP, &header);
	if (!msg)
		return -ENOMEM;
	stopped = kind == VULTURE_A_ID ? vulture_stop_id(skb, info, &err) :
					 vulture_stop_socks(skb, info, kind, &err);
	if (stopped)
		return vulture_send_count(info, msg, header, stopped, 0);
	nlmsg_free(msg);
	return err;
}

static struct vulture_flow *vulture_get_flow(struct sk_buff *skb, struct genl_info *info,
					     unsigned int kind)
{
	struct vulture_flow *flow;
	struct sock **socks;
	unsigned int n;
	bool many;

	if (kind == VULTURE_A_ID) {
		flow = vulture_target_of_id(info);
		return flow ?: ERR_PTR(-ENOENT);
	}
	socks = vulture_targets(skb, info, kind, false, &n, &many);
	if (IS_ERR(socks))
		return ERR_CAST(socks);
	flow = vulture_flow_get_by_sock(socks[0]);
	vulture_sockets_put(socks, n);
	if (flow)
		return flow;
	NL_SET_ERR_MSG_MOD(info->extack, "the connection is not under control");
	return ERR_PTR(-ENOENT);
}

int vulture_nl_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	unsigned int kind = vulture_target_kind(info);
	struct vulture_flow *flow;
	struct sk_buff *msg;
	void *header;
	int err;

	if (!kind)
		return -EINVAL;
	flow = vulture_get_flow(skb, info, kind);
	if (IS_ERR(flow))
		return PTR_ERR(flow);
	msg = vulture_reply(info, VULTURE_CMD_GET, &header);
	err = msg ? vulture_flow_put_message(msg, flow) : -ENOMEM;
	vulture_flow_put(flow);
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

int vulture_nl_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct vulture_net *vn = vulture_net(sock_net(cb->skb->sk));
	struct vulture_flow *flow;
	unsigned long id;

	rcu_read_lock();
	xa_for_each_start(&vn->ids, id, flow, cb->args[0]) {
		void *header = vulture_dump_begin(skb, cb, VULTURE_CMD_GET);

		if (!header ||
		    !vulture_dump_end(skb, cb, header, vulture_flow_put_message(skb, flow), id))
			break;
	}
	rcu_read_unlock();
	return skb->len;
}

int vulture_nl_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	const struct nlattr *max_flows = info->attrs[VULTURE_A_MAX_FLOWS];
	struct vulture_net *vn = vulture_net(net);
	int err;

	if (!vulture_admin(skb, net, info->extack))
		return -EPERM;
	mutex_lock(&vn->rules_lock);
	err = vulture_defaults_parse(vn, info->attrs[VULTURE_A_OPTIONS], info->extack);
	if (!err && max_flows)
		WRITE_ONCE(vn->max_flows, nla_get_u32(max_flows));
	mutex_unlock(&vn->rules_lock);
	return err;
}

int vulture_nl_get_defaults_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct vulture_net *vn = vulture_net(genl_info_net(info));
	struct sk_buff *msg;
	void *header;
	int err;

	msg = vulture_reply(info, VULTURE_CMD_GET_DEFAULTS, &header);
	if (!msg)
		return -ENOMEM;
	mutex_lock(&vn->rules_lock);
	err = vulture_defaults_put(msg, VULTURE_A_OPTIONS, vn) ||
	      nla_put_u32(msg, VULTURE_A_FLOW_BYTES, vulture_flow_bytes(vn->controller));
	mutex_unlock(&vn->rules_lock);
	if (err || nla_put_u32(msg, VULTURE_A_MAX_FLOWS, READ_ONCE(vn->max_flows)) ||
	    nla_put_u32(msg, VULTURE_A_COUNT, atomic_read(&vn->flows)) ||
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
	const struct nlattr *length = attrs[VULTURE_R_REMOTE_PREFIX_BITS];
	unsigned int bits;

	if (!attrs[VULTURE_R_REMOTE_PREFIX]) {
		if (!length)
			return 0;
		NL_SET_ERR_MSG_MOD(extack, "remote-prefix-bits without remote-prefix");
		return -EINVAL;
	}
	rule->family = vulture_parse_address(attrs[VULTURE_R_REMOTE_PREFIX], rule->prefix, extack);
	if (!rule->family)
		return -EINVAL;
	bits = rule->family == AF_INET ? 32 : 128;
	rule->prefix_len = length ? nla_get_u8(length) : bits;
	if (rule->prefix_len > bits) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "remote-prefix-bits %u is not within 0 to %u",
				       rule->prefix_len, bits);
		return -ERANGE;
	}
	return 0;
}

/* Attributes that only answers have. They are in the policy too, since that is made from one list
 * for both directions.
 */
static int vulture_parse_answers(struct nlattr **attrs, struct netlink_ext_ack *extack)
{
	static const u8 kinds[] = { VULTURE_R_STARTED, VULTURE_R_FAILED, VULTURE_R_UID };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (attrs[kinds[i]]) {
			NL_SET_BAD_ATTR(extack, attrs[kinds[i]]);
			NL_SET_ERR_MSG_MOD(extack, "only the kernel sets started, failed and uid of a rule");
			return -EINVAL;
		}
	}
	return 0;
}

/* Caller: holds rules_lock. */
static int vulture_parse_rule(struct vulture_net *vn, struct nlattr **attrs,
			      struct vulture_rule *rule, struct netlink_ext_ack *extack)
{
	int err;

	if (attrs[VULTURE_R_CGROUP] && attrs[VULTURE_R_CGROUP_FD]) {
		NL_SET_ERR_MSG_MOD(extack, "a rule takes cgroup or cgroup-fd, not both");
		return -EINVAL;
	}
	if (attrs[VULTURE_R_ID] ||
	    (!attrs[VULTURE_R_CGROUP] && !attrs[VULTURE_R_CGROUP_FD] &&
	     !attrs[VULTURE_R_LOCAL_PORT] && !attrs[VULTURE_R_REMOTE_PORT] &&
	     !attrs[VULTURE_R_REMOTE_PREFIX] && !attrs[VULTURE_R_DSCP])) {
		NL_SET_ERR_MSG_MOD(extack, "a rule needs cgroup, local-port, remote-port, remote-prefix or dscp, and gets its id from the kernel");
		return -EINVAL;
	}
	err = vulture_parse_answers(attrs, extack);
	if (!err)
		err = vulture_options_parse(vn, attrs[VULTURE_R_OPTIONS], &rule->options, extack);
	if (!err)
		err = vulture_parse_prefix(attrs, rule, extack);
	if (err)
		return err;
	rule->foreground = attrs[VULTURE_R_FOREGROUND];
	rule->by_dscp = attrs[VULTURE_R_DSCP];
	if (rule->by_dscp)
		rule->dscp = nla_get_u8(attrs[VULTURE_R_DSCP]);
	if (attrs[VULTURE_R_LOCAL_PORT])
		rule->local_port = nla_get_u16(attrs[VULTURE_R_LOCAL_PORT]);
	if (attrs[VULTURE_R_REMOTE_PORT])
		rule->remote_port = nla_get_u16(attrs[VULTURE_R_REMOTE_PORT]);
	if (attrs[VULTURE_R_CGROUP_FD]) {
		rule->cgroup = vulture_get_cgroup_fd(nla_get_u32(attrs[VULTURE_R_CGROUP_FD]),
						     &rule->cgroup_id, extack);
	} else if (attrs[VULTURE_R_CGROUP]) {
		rule->cgroup_id = nla_get_u64(attrs[VULTURE_R_CGROUP]);
		rule->cgroup = vulture_get_cgroup(rule->cgroup_id, extack);
	}
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
				vulture_rule_nl_policy, info->extack);
}

int vulture_nl_rule_add_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *attrs[VULTURE_R_MAX + 1];
	struct net *net = genl_info_net(info);
	struct vulture_net *vn = vulture_net(net);
	struct vulture_rule *rule;
	struct sk_buff *msg;
	void *header;
	bool own;
	u32 id;
	int err;

	err = vulture_rule_attrs(info, attrs);
	if (err)
		return err;
	/* only an administrator may exempt connections from an administrator's rules */
	own = !vulture_is_admin(skb, net) && attrs[VULTURE_R_CGROUP_FD] &&
	      !attrs[VULTURE_R_FOREGROUND] && vulture_sender_is_caller(skb);
	if (!own && !vulture_admin(skb, net, info->extack))
		return -EPERM;
	rule = kzalloc(sizeof(*rule), GFP_KERNEL_ACCOUNT);
	msg = vulture_reply(info, VULTURE_CMD_RULE_ADD, &header);
	if (!rule || !msg) {
		kfree(rule);
		nlmsg_free(msg);
		return -ENOMEM;
	}

	err = vulture_hooks_hold(vn);
	if (err) {
		NL_SET_ERR_MSG_MOD(info->extack, "the netfilter hooks could not be put in place");
		goto err_free;
	}
	mutex_lock(&vn->rules_lock);
	err = vulture_parse_rule(vn, attrs, rule, info->extack);
	if (!err && own)
		err = vulture_rule_own(vn, rule, info->extack);
	if (!err)
		err = vulture_rule_insert(vn, rule, info->extack);
	id = rule->id;
	if (!err)
		err = vulture_put_rule(msg, rule);
	mutex_unlock(&vn->rules_lock);
	vulture_hooks_release(vn);
	if (!err) {
		genlmsg_end(msg, header);
		return genlmsg_reply(msg, info);
	}
	if (id)
		rule = vulture_rule_remove(vn, id, true);	/* NULL: it was deleted meanwhile */
err_free:
	if (rule)
		vulture_rule_free(rule);
	nlmsg_free(msg);
	return err;
}

int vulture_nl_rule_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *attrs[VULTURE_R_MAX + 1];
	struct net *net = genl_info_net(info);
	struct vulture_net *vn = vulture_net(net);
	struct vulture_rule *rule;
	u32 id;
	int err;

	err = vulture_rule_attrs(info, attrs);
	if (err)
		return err;
	if (!attrs[VULTURE_R_ID]) {
		NL_SET_ERR_MSG_MOD(info->extack, "the id of the rule is needed");
		return -EINVAL;
	}
	id = nla_get_u32(attrs[VULTURE_R_ID]);

	rule = vulture_rule_remove(vn, id, vulture_is_admin(skb, net));
	if (IS_ERR(rule)) {
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "rule %u is not yours: that needs CAP_NET_ADMIN",
				       id);
		return PTR_ERR(rule);
	}
	if (!rule) {
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "no rule with id %u", id);
		return -ENOENT;
	}
	vulture_hooks_look(vn);
	vulture_rule_free(rule);
	return 0;
}

int vulture_nl_rule_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct vulture_net *vn = vulture_net(sock_net(cb->skb->sk));
	struct vulture_rule *rule;

	mutex_lock(&vn->rules_lock);
	vulture_rules_prune(vn);
	list_for_each_entry(rule, &vn->rules, node) {
		void *header;

		/* it was in an earlier message */
		if ((unsigned long)rule->number < (unsigned long)cb->args[0])
			continue;
		header = vulture_dump_begin(skb, cb, VULTURE_CMD_RULE_GET);
		if (!header ||
		    !vulture_dump_end(skb, cb, header, vulture_put_rule(skb, rule),
				      rule->number))
			break;
	}
	mutex_unlock(&vn->rules_lock);
	return skb->len;
}

int __init vulture_netlink_init(void)
{
	int err = lbe_genl_register(&vulture_nl_family);

	vulture_events_enable(!err);
	return err;
}

void vulture_netlink_exit(void)
{
	vulture_events_enable(false);
	genl_unregister_family(lbe_genl(&vulture_nl_family));
}
