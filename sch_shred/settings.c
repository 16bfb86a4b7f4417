// SPDX-License-Identifier: GPL-2.0
/* shred_hint's settings, net.shred_hint.*, and the hooks, which are there only while wanted. */

#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "writer.h"

#define SHRED_HOOK(func, family, num)	\
	{ .hook = func, .pf = family, .hooknum = num, .priority = NF_IP_PRI_LAST }

static const struct nf_hook_ops shred_host_ops[] = {
	SHRED_HOOK(shred_host_hook, NFPROTO_IPV4, NF_INET_POST_ROUTING),
	SHRED_HOOK(shred_host_hook, NFPROTO_IPV6, NF_INET_POST_ROUTING),
};

static const struct nf_hook_ops shred_edge_ops[] = {
	SHRED_HOOK(shred_edge_hook, NFPROTO_IPV4, NF_INET_FORWARD),
	SHRED_HOOK(shred_edge_hook, NFPROTO_IPV6, NF_INET_FORWARD),
};

static int shred_hook(struct net *net, const struct nf_hook_ops *ops, unsigned int n,
		      bool want, bool *have)
{
	int err = 0;

	if (want && !*have)
		err = nf_register_net_hooks(net, ops, n);
	else if (!want && *have)
		nf_unregister_net_hooks(net, ops, n);
	if (!err)
		*have = want;
	return err;
}

/* Under hn->mutex. */
static int shred_hooks(struct shred_hint_net *hn)
{
	bool on = hn->mode != SHRED_HINT_OFF;
	int err = 0;

	if (on && hn->host)
		err = shred_host_prepare(hn);
	return err ?: shred_hook(hn->net, shred_host_ops, ARRAY_SIZE(shred_host_ops),
				 on && hn->host, &hn->hooked_host) ?:
	       shred_hook(hn->net, shred_edge_ops, ARRAY_SIZE(shred_edge_ops),
			  on && hn->edge, &hn->hooked_edge);
}

/* A setting and the hooks go together: if these fail the setting is as it was. */
static int shred_set_u8(struct shred_hint_net *hn, u8 *setting, u8 value)
{
	u8 old;
	int err;

	mutex_lock(&hn->mutex);
	old = *setting;
	WRITE_ONCE(*setting, value);
	err = shred_hooks(hn);
	if (err) {
		WRITE_ONCE(*setting, old);
		shred_hooks(hn);
	}
	mutex_unlock(&hn->mutex);
	return err;
}

/* ---- one handler each for names, switches and interfaces ---- */

static const char * const shred_mode_names[__SHRED_HINT_MAX] = { "off", "tos", "dscp" };

static int shred_sysctl_mode(LBE_CTL_CONST struct ctl_table *ctl, int write, void *buffer,
			     size_t *lenp, loff_t *ppos)
{
	struct shred_hint_net *hn = ctl->extra1;
	char name[8];
	struct ctl_table text = { .data = name, .maxlen = sizeof(name) };
	int err, mode;

	strscpy(name, shred_mode_names[READ_ONCE(hn->mode)], sizeof(name));
	err = proc_dostring(&text, write, buffer, lenp, ppos);
	if (err || !write)
		return err;
	mode = match_string(shred_mode_names, __SHRED_HINT_MAX, name);
	return mode < 0 ? -EINVAL : shred_set_u8(hn, &hn->mode, mode);
}

static int shred_sysctl_switch(LBE_CTL_CONST struct ctl_table *ctl, int write, void *buffer,
			       size_t *lenp, loff_t *ppos)
{
	struct shred_hint_net *hn = ctl->extra1;
	u8 value = READ_ONCE(*(u8 *)ctl->data);
	struct ctl_table number = {
		.data = &value, .maxlen = sizeof(value),
		.extra1 = SYSCTL_ZERO, .extra2 = SYSCTL_ONE,
	};
	int err = proc_dou8vec_minmax(&number, write, buffer, lenp, ppos);

	if (err || !write)
		return err;
	return shred_set_u8(hn, ctl->data, value);
}

/* The names between blanks, or an error. */
static int shred_devices_split(struct shred_devices *devices)
{
	char copy[SHRED_DEVICES_LEN], *rest = copy, *name;

	strscpy(copy, devices->text, sizeof(copy));
	while ((name = strsep(&rest, " "))) {
		if (!*name)
			continue;
		if (strlen(name) >= IFNAMSIZ || !dev_valid_name(name))
			return -EINVAL;
		strscpy(devices->names[devices->n++], name, IFNAMSIZ);
	}
	return 0;
}

static void shred_devices_set(struct shred_hint_net *hn, struct shred_devices *devices)
{
	mutex_lock(&hn->mutex);
	devices = rcu_replace_pointer(hn->devices, devices, lockdep_is_held(&hn->mutex));
	mutex_unlock(&hn->mutex);
	if (devices)
		kfree_rcu(devices, rcu);
}

static int shred_sysctl_devices(LBE_CTL_CONST struct ctl_table *ctl, int write,
				void *buffer, size_t *lenp, loff_t *ppos)
{
	struct shred_hint_net *hn = ctl->extra1;
	struct shred_devices *devices, *old;
	struct ctl_table text = { .maxlen = SHRED_DEVICES_LEN };
	int err;

	if (write && *lenp >= SHRED_DEVICES_LEN)
		return -EINVAL;		/* half a name would name another interface */
	devices = kzalloc(sizeof(*devices), GFP_KERNEL);
	if (!devices)
		return -ENOMEM;
	text.data = devices->text;
	rcu_read_lock();
	old = rcu_dereference(hn->devices);
	if (old)
		strscpy(devices->text, old->text, SHRED_DEVICES_LEN);
	rcu_read_unlock();
	err = proc_dostring(&text, write, buffer, lenp, ppos);
	if (!err && write)
		err = shred_devices_split(devices);
	if (err || !write || !devices->n) {
		kfree(devices);
		devices = NULL;
	}
	if (!err && write)
		shred_devices_set(hn, devices);
	return err;
}

/* ---- the table ---- */

static int shred_max_flows_limit = SHRED_MAX_FLOWS;
/* Packets charge a flow's memory to nobody: a container's root may not have more of it. */
static int shred_max_flows_user_limit = SHRED_DEFAULT_FLOWS;

static const struct ctl_table shred_sysctls[] = {
	{ .procname = "mode", .mode = 0644, .maxlen = 8, .proc_handler = shred_sysctl_mode },
	{ .procname = "host", .mode = 0644, .maxlen = 1, .proc_handler = shred_sysctl_switch },
	{ .procname = "edge", .mode = 0644, .maxlen = 1, .proc_handler = shred_sysctl_switch },
	{ .procname = "police", .mode = 0644, .maxlen = 1, .proc_handler = shred_sysctl_switch },
	{ .procname = "devices", .mode = 0644, .maxlen = SHRED_DEVICES_LEN,
	  .proc_handler = shred_sysctl_devices },
	{ .procname = "max_flows", .mode = 0644, .maxlen = sizeof(int),
	  .proc_handler = proc_dointvec_minmax,
	  .extra1 = SYSCTL_ONE, .extra2 = &shred_max_flows_limit },
	{ }	/* for kernels that take no size */
};

#define SHRED_SYSCTLS	(ARRAY_SIZE(shred_sysctls) - 1)

int shred_settings_init(struct shred_hint_net *hn)
{
	void *data[SHRED_SYSCTLS] = {
		&hn->mode, &hn->host, &hn->edge, &hn->police, NULL, &hn->max_flows,
	};
	struct ctl_table *table = kmemdup(shred_sysctls, sizeof(shred_sysctls), GFP_KERNEL);
	size_t i;

	if (!table)
		return -ENOMEM;
	for (i = 0; i < SHRED_SYSCTLS; i++) {
		table[i].data = data[i];
		if (!table[i].extra1)
			table[i].extra1 = hn;
		if (table[i].extra2 == &shred_max_flows_limit &&
		    hn->net->user_ns != &init_user_ns)
			table[i].extra2 = &shred_max_flows_user_limit;
	}
	hn->sysctls = register_net_sysctl_sz(hn->net, "net/shred_hint", table, SHRED_SYSCTLS);
	if (!hn->sysctls) {
		kfree(table);
		return -ENOMEM;
	}
	return 0;
}

/* No setting can be written any more, and no hook is in place afterwards. */
void shred_settings_exit(struct shred_hint_net *hn)
{
	const struct ctl_table *table = hn->sysctls->ctl_table_arg;

	unregister_net_sysctl_table(hn->sysctls);
	kfree(table);
	shred_set_u8(hn, &hn->mode, SHRED_HINT_OFF);
	shred_devices_set(hn, NULL);
}
