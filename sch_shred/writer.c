// SPDX-License-Identifier: GPL-2.0
/*
 * shred_hint: writes the hint that the shred queue reads (hint.h).
 *
 *   host.c      hook on the sending host, with the packet's socket
 *   edge.c      hook at an edge router, without a socket
 *   flows.c     table of the bytes that each flow has sent
 *   packet.c    the byte in the header
 *   settings.c  net.shred_hint.*, per network namespace; all but police default to off:
 *
 *     mode        off, tos, dscp: coding of hint.h; off: no hint is written
 *     host, edge  0 or 1: write hints to packets of this host, to forwarded packets
 *     police      0: the edge keeps every hint; 1: it replaces hints less than the
 *                 flow's age; 2: in addition the debt of a pair of hosts raises ages
 *     devices     names of the output interfaces on which hints are written; empty: all
 *
 * /proc/net/shred_hint shows the counters.
 *
 * Source: Claypool, Kinicki, Hartling, "Active Queue Management for Web
 * Traffic", section 5. Departures from the paper: with IPv6 the hint is in the traffic
 * class, not in an extension header, which routers on the path would have to support;
 * the edge counts bytes sent instead of estimating the window ("any mapping where 1
 * yields the lowest drop probability").
 *
 * Not supported: tunnels and IPsec (the flows inside are not visible).
 */

#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "writer.h"

static unsigned int shred_hint_net_id;

struct shred_hint_net *shred_hint_pernet(const struct net *net)
{
	return net_generic(net, shred_hint_net_id);
}

static const char * const shred_hint_count_names[SHRED_COUNTS] = {
	"written_host", "written_edge", "overwritten", "kept", "skipped", "table_full",
};

static int shred_hint_show(struct seq_file *m, void *v)
{
	struct shred_hint_net *hn = shred_hint_pernet(seq_file_single_net(m));
	int cpu, i;

	seq_printf(m, "flows %u\n", shred_flows_known(hn));
	for (i = 0; i < SHRED_COUNTS; i++) {
		u64 sum = 0;

		for_each_possible_cpu(cpu)
			sum += per_cpu_ptr(hn->counters, cpu)->n[i];
		seq_printf(m, "%s %llu\n", shred_hint_count_names[i], sum);
	}
	return 0;
}

static int __net_init shred_hint_net_init(struct net *net)
{
	struct shred_hint_net *hn = shred_hint_pernet(net);

	hn->net = net;
	hn->set[SHRED_POLICE] = 1;
	mutex_init(&hn->mutex);
	hn->counters = alloc_percpu(struct shred_hint_counters);
	if (!hn->counters)
		return -ENOMEM;
	if (!proc_create_net_single("shred_hint", 0444, net->proc_net, shred_hint_show, NULL) &&
	    IS_ENABLED(CONFIG_PROC_FS))
		goto free_counters;
	if (!shred_settings_init(hn))
		return 0;
	remove_proc_entry("shred_hint", net->proc_net);
free_counters:
	free_percpu(hn->counters);
	return -ENOMEM;
}

/* Between pre_exit and exit the core waits until no CPU runs a hook any more. */
static void __net_exit shred_hint_net_pre_exit(struct net *net)
{
	struct shred_hint_net *hn = shred_hint_pernet(net);

	shred_settings_exit(hn);
	remove_proc_entry("shred_hint", net->proc_net);
}

static void __net_exit shred_hint_net_exit(struct net *net)
{
	struct shred_hint_net *hn = shred_hint_pernet(net);

	kvfree(hn->buckets);
	free_percpu(hn->counters);
}

static struct pernet_operations shred_hint_net_ops = {
	.init	= shred_hint_net_init,
	.pre_exit = shred_hint_net_pre_exit,
	.exit	= shred_hint_net_exit,
	.id	= &shred_hint_net_id,
	.size	= sizeof(struct shred_hint_net),
};

static int __init shred_hint_init(void)
{
	return register_pernet_subsys(&shred_hint_net_ops);
}

static void __exit shred_hint_exit(void)
{
	unregister_pernet_subsys(&shred_hint_net_ops);
	rcu_barrier();			/* pending kfree_rcu() of device lists */
}

module_init(shred_hint_init);
module_exit(shred_hint_exit);

MODULE_DESCRIPTION("Writes a flow's age or window into its packets, for the shred queue");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
