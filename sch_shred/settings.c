// SPDX-License-Identifier: GPL-2.0
/* shred_hint's settings, net.shred_hint.*, and its hooks, registered only while they are needed. */

#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "writer.h"

#define SHRED_HOOK(func, family, num)	\
	{ .hook = func, .pf = family, .hooknum = num, .priority = NF_IP_PRI_LAST }

static const struct nf_hook_ops shred_hooks[] = {
	SHRED_HOOK(shred_host_hook, NFPROTO_IPV4, NF_INET_POST_ROUTING),
	SHRED_HOOK(shred_host_hook, NFPROTO_IPV6, NF_INET_POST_ROUTING),
	SHRED_HOOK(shred_edge_hook, NFPROTO_IPV4, NF_INET_FORWARD),
	SHRED_HOOK(shred_edge_hook, NFPROTO_IPV6, NF_INET_FORWARD),
};

/* Register or unregister the hooks as the settings require. Called under hn->mutex. */
static int shred_hook(struct shred_hint_net *hn)
{
	bool wanted = hn->set[SHRED_MODE] && (hn->set[SHRED_HOST] || hn->set[SHRED_EDGE]);
	int err = 0;

	if (wanted && !hn->hooked)
		err = shred_flows_prepare(hn) ?:
		      nf_register_net_hooks(hn->net, shred_hooks, ARRAY_SIZE(shred_hooks));
	else if (!wanted && hn->hooked)
		nf_unregister_net_hooks(hn->net, shred_hooks, ARRAY_SIZE(shred_hooks));
	if (!err)
		hn->hooked = wanted;
	return err;
}

/* Change a setting and update the hooks; if that fails, restore the setting. */
static int shred_set(struct shred_hint_net *hn, u8 *setting, u8 value)
{
	u8 old;
	int err;

	mutex_lock(&hn->mutex);
	old = *setting;
	WRITE_ONCE(*setting, value);
	err = shred_hook(hn);
	if (err)
		WRITE_ONCE(*setting, old);
	mutex_unlock(&hn->mutex);
	return err;
}

/* ---- settings with named values ---- */

static const char * const shred_modes[] = { "off", "tos", "dscp", NULL };
static const char * const shred_switches[] = { "0", "1", NULL };
static const char * const shred_polices[] = { "0", "1", "2", NULL };

static int shred_sysctl_name(LBE_CTL_CONST struct ctl_table *ctl, int write, void *buffer,
			     size_t *lenp, loff_t *ppos)
{
	const char * const *names = ctl->extra2;
	u8 *setting = ctl->data;
	char name[8];
	struct ctl_table text = { .data = name, .maxlen = sizeof(name) };
	int err, value;

	strscpy(name, names[READ_ONCE(*setting)], sizeof(name));
	err = proc_dostring(&text, write, buffer, lenp, ppos);
	if (err || !write)
		return err;
	value = match_string(names, -1, name);
	return value < 0 ? -EINVAL : shred_set(ctl->extra1, setting, value);
}

/* ---- interfaces ---- */

/* Parse interface names separated by blanks. Return: the list, NULL if empty, or an ERR_PTR. */
static struct shred_devices *shred_devices_read(const char *text)
{
	char copy[SHRED_DEVICES_LEN], *rest = copy, *name;
	struct shred_devices *devices = kzalloc(sizeof(*devices), GFP_KERNEL);
	int err = devices ? 0 : -ENOMEM;

	strscpy(copy, text, sizeof(copy));
	while (!err && (name = strsep(&rest, " "))) {
		if (!*name)
			continue;
		if (!dev_valid_name(name))
			err = -EINVAL;
		else
			strscpy(devices->names[devices->n++], name, IFNAMSIZ);
	}
	if (!err && devices->n) {
		strscpy(devices->text, text, sizeof(devices->text));
		return devices;
	}
	kfree(devices);
	return ERR_PTR(err);
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
	char names[SHRED_DEVICES_LEN] = "";
	struct ctl_table text = { .data = names, .maxlen = sizeof(names) };
	struct shred_hint_net *hn = ctl->extra1;
	struct shred_devices *devices;
	int err;

	if (write && *lenp >= SHRED_DEVICES_LEN)
		return -EINVAL;		/* a truncated name could be that of another interface */
	rcu_read_lock();
	devices = rcu_dereference(hn->devices);
	if (devices)
		strscpy(names, devices->text, sizeof(names));
	rcu_read_unlock();
	err = proc_dostring(&text, write, buffer, lenp, ppos);
	if (err || !write)
		return err;
	devices = shred_devices_read(names);
	if (IS_ERR(devices))
		return PTR_ERR(devices);
	shred_devices_set(hn, devices);
	return 0;
}

/* ---- the table ---- */

#define SHRED_NAMED(name, values)						\
	{ .procname = name, .mode = 0644, .maxlen = 8, .extra2 = (void *)values,	\
	  .proc_handler = shred_sysctl_name }

/* In the order of enum shred_setting. */
static const struct ctl_table shred_sysctls[] = {
	SHRED_NAMED("mode", shred_modes),
	SHRED_NAMED("host", shred_switches),
	SHRED_NAMED("edge", shred_switches),
	SHRED_NAMED("police", shred_polices),
	{ .procname = "devices", .mode = 0644, .maxlen = SHRED_DEVICES_LEN,
	  .proc_handler = shred_sysctl_devices },
	{ }	/* for kernels whose registration takes no size */
};

#define SHRED_SYSCTLS	(ARRAY_SIZE(shred_sysctls) - 1)

int shred_settings_init(struct shred_hint_net *hn)
{
	struct ctl_table *table = kmemdup(shred_sysctls, sizeof(shred_sysctls), GFP_KERNEL);
	size_t i;

	if (!table)
		return -ENOMEM;
	for (i = 0; i < SHRED_SYSCTLS; i++) {
		table[i].extra1 = hn;
		table[i].data = &hn->set[i];	/* not used for devices */
	}
	hn->sysctls = register_net_sysctl_sz(hn->net, "net/shred_hint", table, SHRED_SYSCTLS);
	if (!hn->sysctls) {
		kfree(table);
		return -ENOMEM;
	}
	return 0;
}

/* Afterwards no setting can be written, and no hook is registered. */
void shred_settings_exit(struct shred_hint_net *hn)
{
	const struct ctl_table *table = hn->sysctls->ctl_table_arg;

	unregister_net_sysctl_table(hn->sysctls);
	kfree(table);
	shred_set(hn, &hn->set[SHRED_MODE], SHRED_HINT_OFF);
	shred_devices_set(hn, NULL);
}
