// SPDX-License-Identifier: GPL-2.0
/*
 * vulture: background downloads, controlled by the receive window and thus on the receiver alone.
 *
 * The sender of a TCP connection keeps within the window that the receiver
 * advertises. This module observes the data of chosen connections as it arrives,
 * estimates whether other traffic needs the path (the controllers), and makes the window
 * of outgoing segments smaller than TCP itself would (edge.h). Nothing changes at the
 * sender, in the application or in the kernel's TCP.
 *
 * It does not raise a window above TCP's own, act on connections without timestamps
 * or with signed headers, or limit what this machine sends.
 */
#include <linux/module.h>
#include <net/genetlink.h>

#include "vulture.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Namespaces */

static int __net_init vulture_net_init(struct net *net)
{
	struct vulture_net *vn = vulture_net(net);

	vn->net = net;
	vn->max_flows = VULTURE_MAX_FLOWS_DEFAULT;
	vulture_hooks_net_init(vn);
	vulture_rules_net_init(vn);
	vulture_defaults_init(vn);
	vulture_paths_init(vn);
	return vulture_flows_net_init(vn);
}

/* The hooks are unregistered first. A grace period later, in .exit, no CPU runs them any more, and
 * the table may be freed too.
 */
static void __net_exit vulture_net_pre_exit(struct net *net)
{
	struct vulture_net *vn = vulture_net(net);

	WRITE_ONCE(vn->closing, true);
	cancel_delayed_work_sync(&vn->hooks_work);
	vulture_flows_flush(vn, jiffies);
	vulture_hooks_net_exit(vn);
}

static void __net_exit vulture_net_exit(struct net *net)
{
	struct vulture_net *vn = vulture_net(net);

	vulture_flows_flush(vn, jiffies);	/* a flow may have been starting before */
	cancel_delayed_work_sync(&vn->hooks_work);
	vulture_timers_wait(vn);
	vulture_rules_net_exit(vn);
	vulture_paths_exit(vn);
	vulture_flows_net_exit(vn);
}

static struct pernet_operations vulture_net_ops = {
	.init = vulture_net_init,
	.pre_exit = vulture_net_pre_exit,
	.exit = vulture_net_exit,
	.id = &vulture_net_id,
	.size = sizeof(struct vulture_net),
};

/* End the flows of all namespaces. While the flows of a namespace end, a reference to it is held
 * and not the lock of the list, since an application may hold a socket's lock. The removal waits
 * for all such applications together no longer than a request does.
 */
static void vulture_flush_all(void)
{
	unsigned long until = jiffies + VULTURE_LOCK_WAIT;
	struct net *net, *busy;

	do {
		busy = NULL;
		down_read(&net_rwsem);
		for_each_net(net) {
			if (atomic_read(&vulture_net(net)->flows) && maybe_get_net(net)) {
				busy = net;
				break;
			}
		}
		up_read(&net_rwsem);
		if (busy) {
			vulture_flows_flush(vulture_net(busy), until);
			put_net(busy);
		}
	} while (busy);
}

/* Loading and unloading */

static int __init vulture_init(void)
{
	int err;

	err = vulture_flows_init();
	if (err)
		return err;
	err = register_pernet_subsys(&vulture_net_ops);
	if (err)
		goto err_flows;
	err = vulture_probe_init();
	if (err)
		goto err_pernet;
	err = vulture_netlink_init();
	if (err)
		goto err_probe;
	return 0;

err_probe:
	vulture_probe_exit();
err_pernet:
	unregister_pernet_subsys(&vulture_net_ops);
	rcu_barrier();
err_flows:
	vulture_flows_exit();
	return err;
}

static void __exit vulture_exit(void)
{
	/* From here on no flow starts; flows that are being started are waited for, by the
	 * netlink core too. Flows are ended while the probe still sees their sockets close, and
	 * while the family still exists to send the events of their end.
	 */
	vulture_flows_refuse();
	vulture_probe_wait();
	vulture_flush_all();
	vulture_netlink_exit();
	vulture_flush_all();
	vulture_probe_exit();
	unregister_pernet_subsys(&vulture_net_ops);
	rcu_barrier();
	vulture_flows_exit();
}

module_init(vulture_init);
module_exit(vulture_exit);

MODULE_AUTHOR("LBE transport suite");
MODULE_DESCRIPTION("Vulture: background downloads by control of the receive window");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
MODULE_ALIAS_GENL_FAMILY("vulture");
