// SPDX-License-Identifier: GPL-2.0
/*
 * Rules: which new connections come under control without a request.
 */
#include <linux/cgroup.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "vulture.h"

/* Interval at which rules are checked for cgroups that are gone. */
#define VULTURE_PRUNE_EVERY	(5 * HZ)

/* Return: a reference to the cgroup with this id, which is the inode of its directory. */
struct cgroup *vulture_get_cgroup(u64 id, struct netlink_ext_ack *extack)
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

/* The same by a file descriptor of the directory, to which the caller must be allowed to write: a
 * user who may write there may also freeze and kill the processes in the cgroup. The descriptor is
 * read only once, so that it cannot be replaced between check and use.
 */
struct cgroup *vulture_get_cgroup_fd(u32 fd, u64 *id, struct netlink_ext_ack *extack)
{
	struct cgroup *cgroup;
	struct file *file = fget(fd);

	if (!file) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "no file descriptor %u", fd);
		return ERR_PTR(-EBADF);
	}
	if (file_inode(file)->i_sb->s_magic != CGROUP2_SUPER_MAGIC ||
	    !S_ISDIR(file_inode(file)->i_mode)) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "file descriptor %u is not the directory of a v2 cgroup",
				       fd);
		cgroup = ERR_PTR(-ENOTDIR);
	} else if (file_permission(file, MAY_WRITE)) {
		NL_SET_ERR_MSG_MOD(extack, "you may not write to that cgroup's directory");
		cgroup = ERR_PTR(-EACCES);
	} else {
		*id = file_inode(file)->i_ino;
		cgroup = vulture_get_cgroup(*id, extack);
	}
	fput(file);
	return cgroup;
}

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

/* The DSCP with which the socket sends, as set by the application, a BPF program or the listener.
 * The DSCP of arriving packets is not used: networks on the way rewrite it, and the peer could
 * choose it.
 */
static u8 vulture_sock_dscp(const struct sock *sk, u16 family)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (family == AF_INET6)
		return READ_ONCE(inet6_sk(sk)->tclass) >> 2;
#endif
	return READ_ONCE(inet_sk(sk)->tos) >> 2;
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
	if (rule->by_dscp && rule->dscp != vulture_sock_dscp(sk, key->family))
		return false;
	return !rule->cgroup || vulture_sock_in_cgroup(sk, rule->cgroup);
}

/* The level of a rule's cgroup below the root. A rule for any cgroup counts as above the root, or
 * as below all cgroups if it is for the foreground.
 */
static int vulture_rule_level(const struct vulture_rule *rule)
{
#ifdef CONFIG_CGROUPS
	if (rule->cgroup)
		return rule->cgroup->level;
#endif
	return rule->foreground ? INT_MAX : -1;
}

/* Return: the rule that starts the connection, which is the first one that matches, or NULL. A
 * matching rule for the foreground hides the others, except those of cgroups below its own. Caller:
 * holds rcu_read_lock().
 */
static struct vulture_rule *vulture_rules_first(struct vulture_net *vn, const struct sock *sk)
{
	struct vulture_rule *rule;
	struct vulture_key key;
	int hidden = INT_MIN;	/* rules up to this level are hidden */

	vulture_key_of_sock(sk, &key);
	if (READ_ONCE(vn->n_foreground))
		list_for_each_entry_rcu(rule, &vn->rules, node)
			if (rule->foreground && vulture_rule_match(rule, sk, &key))
				hidden = max(hidden, vulture_rule_level(rule));
	list_for_each_entry_rcu(rule, &vn->rules, node)
		if (!rule->foreground && vulture_rule_level(rule) > hidden &&
		    vulture_rule_match(rule, sk, &key))
			return rule;
	return NULL;
}

/* Return: the controller with which a rule starts this connection, or NULL. Takes no lock. */
const struct rwnd_controller *vulture_rules_match(struct vulture_net *vn, const struct sock *sk)
{
	const struct rwnd_controller *found = NULL;
	const struct vulture_rule *rule;

	rcu_read_lock();
	rule = vulture_rules_first(vn, sk);
	if (rule)
		found = rwnd_controllers[rule->options.controller];
	rcu_read_unlock();
	return found;
}

/* Start a connection if a rule matches it. It is established, or about to be (@opening). Caller:
 * holds the socket's lock.
 */
void vulture_rules_apply(struct vulture_net *vn, struct sock *sk, bool opening)
{
	struct vulture_rule *rule;
	u64 id;

	rcu_read_lock();
	rule = vulture_rules_first(vn, sk);
	if (rule && __vulture_flow_start(sk, &rule->options, rule, opening, GFP_ATOMIC, &id, NULL))
		atomic64_inc(&rule->failed);
	else if (rule)
		atomic64_inc(&rule->started);
	rcu_read_unlock();
}

/* Count a connection as failed of the rule that would have started it. Takes no lock. */
void vulture_rules_fail(struct vulture_net *vn, const struct sock *sk)
{
	struct vulture_rule *rule;

	rcu_read_lock();
	rule = vulture_rules_first(vn, sk);
	if (rule)
		atomic64_inc(&rule->failed);
	rcu_read_unlock();
}

static void vulture_rule_free_rcu(struct rcu_head *head)
{
	struct vulture_rule *rule = container_of(head, struct vulture_rule, rcu);

	if (rule->cgroup)
		cgroup_put(rule->cgroup);
	kfree(rule);
}

/* Free a rule that is not on the list any more, or never was. */
void vulture_rule_free(struct vulture_rule *rule)
{
	call_rcu(&rule->rcu, vulture_rule_free_rcu);
}

/* Whether the cgroup's directory is gone, so that no connection can match any more. */
static bool vulture_rule_is_dead(const struct vulture_rule *rule)
{
#ifdef CONFIG_CGROUPS
	return rule->cgroup && !(rule->cgroup->self.flags & CSS_ONLINE);
#else
	return false;
#endif
}

/* Take a rule off the list. Caller: holds rules_lock. */
static void vulture_rule_unlist(struct vulture_net *vn, struct vulture_rule *rule)
{
	list_del_rcu(&rule->node);
	vn->n_rules--;
	WRITE_ONCE(vn->n_foreground, vn->n_foreground - rule->foreground);
	if (rule->user)
		rule->user->rules--;
}

/* Delete rules whose cgroup is gone: nothing else would if the program that added
 * them was killed. Caller: holds rules_lock.
 */
void vulture_rules_prune(struct vulture_net *vn)
{
	struct vulture_rule *rule, *next;

	list_for_each_entry_safe(rule, next, &vn->rules, node) {
		if (!vulture_rule_is_dead(rule))
			continue;
		vulture_rule_unlist(vn, rule);
		vulture_rule_free(rule);
	}
}

static void vulture_rules_work(struct work_struct *work)
{
	struct vulture_net *vn = container_of(to_delayed_work(work), struct vulture_net,
					      rules_work);
	bool left;

	mutex_lock(&vn->rules_lock);
	vulture_rules_prune(vn);
	left = vn->n_rules;
	mutex_unlock(&vn->rules_lock);
	vulture_hooks_look(vn);
	if (left && !READ_ONCE(vn->closing))
		queue_delayed_work(VULTURE_WQ, &vn->rules_work, VULTURE_PRUNE_EVERY);
}

/* Return: the user's entry, or a free one, or NULL without either. Caller: holds rules_lock. */
static struct vulture_user *vulture_user_find(struct vulture_net *vn, kuid_t uid)
{
	struct vulture_user *user, *free = NULL;

	for (user = vn->users; user < vn->users + VULTURE_USERS; user++) {
		if (!user->rules && !atomic_read(&user->flows))
			free = free ?: user;
		else if (uid_eq(user->uid, uid))
			return user;
	}
	return free;
}

/**
 * vulture_rule_own() - make a rule the calling user's
 * @vn: namespace; the caller holds rules_lock, and inserts the rule under it
 * @rule: not on the list yet
 * @extack: where to put the reason of a refusal
 *
 * A rule that was just taken off the list may still start connections for as long as RCU readers
 * see it. They are counted, from start to end, in the entry that the rule had, even if that belongs
 * to another user by then.
 */
int vulture_rule_own(struct vulture_net *vn, struct vulture_rule *rule,
		     struct netlink_ext_ack *extack)
{
	struct vulture_user *user = vulture_user_find(vn, current_euid());

	if (!user) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "%u users have rules without CAP_NET_ADMIN already, the limit",
				       VULTURE_USERS);
		return -ENOSPC;
	}
	if (user->rules >= VULTURE_USER_RULES) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "you have %u rules already, the limit without CAP_NET_ADMIN",
				       user->rules);
		return -ENOSPC;
	}
	user->uid = current_euid();
	rule->user = user;
	return 0;
}

/* Find a rule by its id and take it off the list. Connections that are being established may still
 * use it. @admin: the rule may have any owner, otherwise it must be the calling user's. Return: the
 * rule, NULL if there is none with that id, or -EPERM.
 */
struct vulture_rule *vulture_rule_remove(struct vulture_net *vn, u32 id, bool admin)
{
	struct vulture_rule *rule, *found = NULL;

	mutex_lock(&vn->rules_lock);
	list_for_each_entry(rule, &vn->rules, node) {
		if (rule->id == id) {
			if (!admin && !(rule->user && uid_eq(rule->user->uid, current_euid()))) {
				found = ERR_PTR(-EPERM);
				break;
			}
			found = rule;
			vulture_rule_unlist(vn, rule);
			break;
		}
	}
	mutex_unlock(&vn->rules_lock);
	return found;
}

/* Number a rule. Its id is the low half of the number, which is not 0 and not in use: after 2^32
 * rules a user could otherwise delete another one's. Caller: holds rules_lock.
 */
static void vulture_rule_number(struct vulture_net *vn, struct vulture_rule *rule)
{
	const struct vulture_rule *other;
	bool used;

	do {
		rule->number = vn->next_rule++;
		rule->id = lower_32_bits(rule->number);
		used = !rule->id;
		list_for_each_entry(other, &vn->rules, node)
			used |= other->id == rule->id;
	} while (used);
}

/**
 * vulture_rule_insert() - add a rule at the end of the list
 * @vn: namespace; the caller holds rules_lock
 * @rule: complete except for its id and number, which are set here
 * @extack: where to put the reason of a refusal
 */
int vulture_rule_insert(struct vulture_net *vn, struct vulture_rule *rule,
			struct netlink_ext_ack *extack)
{
	vulture_rules_prune(vn);
	if (vn->n_rules >= VULTURE_MAX_RULES) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "there are %u rules already, the limit",
				       vn->n_rules);
		return -ENOSPC;
	}
	vulture_rule_number(vn, rule);
	vn->n_rules++;
	WRITE_ONCE(vn->n_foreground, vn->n_foreground + rule->foreground);
	if (rule->user)
		rule->user->rules++;
	list_add_tail_rcu(&rule->node, &vn->rules);
	queue_delayed_work(VULTURE_WQ, &vn->rules_work, VULTURE_PRUNE_EVERY);
	return 0;
}

void vulture_rules_net_init(struct vulture_net *vn)
{
	mutex_init(&vn->rules_lock);
	INIT_LIST_HEAD(&vn->rules);
	INIT_DELAYED_WORK(&vn->rules_work, vulture_rules_work);
	vn->next_rule = 1;
}

/* The namespace is being removed: nothing else reads its rules. */
void vulture_rules_net_exit(struct vulture_net *vn)
{
	struct vulture_rule *rule, *next;

	cancel_delayed_work_sync(&vn->rules_work);
	list_for_each_entry_safe(rule, next, &vn->rules, node) {
		list_del_rcu(&rule->node);
		vulture_rule_free(rule);
	}
}
