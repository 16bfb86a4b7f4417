// SPDX-License-Identifier: GPL-2.0
/*
 * vulture: background downloads by receive window, on the receiver alone.
 *
 * The sender of a TCP connection keeps within the window that the receiver
 * advertises. This module looks at the data of chosen connections as it comes
 * in, judges whether others want the path
 * (the controllers), and makes the window of the segments that go out smaller than
 * TCP itself would (edge.h). Nothing changes at the sender, in the application or
 * in the kernel's TCP.
 *
 * Does not: raise a window above TCP's own; act on connections without
 * timestamps or with signed headers; hold back what this machine sends.
 */
#include <linux/module.h>
#include <linux/tracepoint.h>
#include <net/genetlink.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "vulture.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static unsigned int vulture_net_id __read_mostly;
static struct tracepoint *vulture_state_tracepoint;

struct vulture_net *vulture_net(const struct net *net)
{
	return net_generic(net, vulture_net_id);
}

/* Hooks: in place while there is a flow, a rule that can start one (the first ACK of
 * a connection must not advertise all that TCP would), or a request that is about to
 * make one of the two.
 */

/* Caller: holds hooks_lock. */
static int vulture_hooks_settle(struct vulture_net *vn)
{
	bool wanted = vn->hook_users || atomic_read(&vn->flows) > 0 || !list_empty(&vn->rules);
	int err = 0;

	if (wanted && !vn->hooked) {
		err = vulture_hooks_add(vn->net);
		vn->hooked = !err;
	} else if (!wanted && vn->hooked) {
		vulture_hooks_remove(vn->net);
		vn->hooked = false;
	}
	return err;
}

/* The hooks are in place from here to vulture_hooks_release(). */
int vulture_hooks_hold(struct vulture_net *vn)
{
	int err;

	mutex_lock(&vn->hooks_lock);
	vn->hook_users++;
	err = vulture_hooks_settle(vn);
	vn->hook_users -= !!err;
	mutex_unlock(&vn->hooks_lock);
	return err;
}

void vulture_hooks_release(struct vulture_net *vn)
{
	mutex_lock(&vn->hooks_lock);
	vn->hook_users--;
	mutex_unlock(&vn->hooks_lock);
	vulture_hooks_look(vn);
}

static void vulture_hooks_work(struct work_struct *work)
{
	struct vulture_net *vn = container_of(to_delayed_work(work), struct vulture_net,
					      hooks_work);

	mutex_lock(&vn->hooks_lock);
	vulture_hooks_settle(vn);
	mutex_unlock(&vn->hooks_lock);
}

/* The lives of connections */

/* Tracepoint sock:inet_sock_set_state, called with the socket's lock held. */
static void vulture_on_set_state(void *data, const struct sock *sk,
				 const int oldstate, const int newstate)
{
	struct sock *mutable = (struct sock *)sk;
	struct vulture_flow *flow;
	struct vulture_net *vn;

	if (newstate != TCP_ESTABLISHED && newstate != TCP_CLOSE)
		return;
	if (!vulture_sock_is_tcp(sk) || !check_net(sock_net(sk)))
		return;
	vn = vulture_net(sock_net(sk));
	if (newstate == TCP_ESTABLISHED) {
		vulture_rules_on_established(vn, mutable);
	} else if (oldstate != TCP_LISTEN && atomic_read(&vn->flows)) {
		flow = vulture_flow_get_by_sock(mutable);
		if (flow) {
			vulture_flow_end(flow, VULTURE_REASON_CLOSED);
			vulture_flow_put(flow);
		}
	}
}

/* Stock kernels do not export this tracepoint's symbol, but list it. */
static void vulture_find_tracepoint(struct tracepoint *tp, void *found)
{
	if (!strcmp(tp->name, "inet_sock_set_state"))
		*(struct tracepoint **)found = tp;
}

/* Namespaces */

static int __net_init vulture_net_init(struct net *net)
{
	struct vulture_net *vn = vulture_net(net);

	vn->net = net;
	vn->max_flows = VULTURE_MAX_FLOWS_DEFAULT;
	mutex_init(&vn->hooks_lock);
	INIT_DELAYED_WORK(&vn->hooks_work, vulture_hooks_work);
	vulture_rules_net_init(vn);
	vulture_defaults_init(vn);
	vulture_paths_init(vn);
	return vulture_flows_net_init(vn);
}

/* The hooks go first: a grace period later, in .exit, no CPU is inside them, and the
 * table may go too.
 */
static void __net_exit vulture_net_pre_exit(struct net *net)
{
	struct vulture_net *vn = vulture_net(net);

	WRITE_ONCE(vn->closing, true);
	cancel_delayed_work_sync(&vn->hooks_work);
	vulture_flows_flush(vn);
	mutex_lock(&vn->hooks_lock);
	if (vn->hooked)
		vulture_hooks_remove(net);
	vn->hooked = false;
	mutex_unlock(&vn->hooks_lock);
}

static void __net_exit vulture_net_exit(struct net *net)
{
	struct vulture_net *vn = vulture_net(net);

	vulture_flows_flush(vn);	/* one that was just being started */
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

/* End all flows everywhere. A namespace is held while its flows end, not the list of
 * all of them: that may take as long as an application holds a socket.
 */
static void vulture_flush_all(void)
{
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
			vulture_flows_flush(vulture_net(busy));
			put_net(busy);
		}
	} while (busy);
}

/* A controller has its state alone; the tracepoint names the flow. */
void vulture_trace_round(const void *state, const struct rwnd_round *round)
{
	trace_vulture_round(container_of(state, struct vulture_flow, state), round);
}

/* Loading and unloading */

static int __init vulture_init(void)
{
	int err;

	for_each_kernel_tracepoint(vulture_find_tracepoint, &vulture_state_tracepoint);
	if (!vulture_state_tracepoint) {
		pr_err("vulture: this kernel has no tracepoint sock:inet_sock_set_state (CONFIG_TRACEPOINTS)\n");
		return -EOPNOTSUPP;
	}
	err = vulture_flows_init();
	if (err)
		return err;
	err = register_pernet_subsys(&vulture_net_ops);
	if (err)
		goto err_flows;
	err = tracepoint_probe_register(vulture_state_tracepoint, vulture_on_set_state, NULL);
	if (err)
		goto err_pernet;
	err = vulture_netlink_init();
	if (err)
		goto err_probe;
	return 0;

err_probe:
	tracepoint_probe_unregister(vulture_state_tracepoint, vulture_on_set_state, NULL);
	tracepoint_synchronize_unregister();
err_pernet:
	unregister_pernet_subsys(&vulture_net_ops);
	rcu_barrier();
err_flows:
	vulture_flows_exit();
	return err;
}

static void __exit vulture_exit(void)
{
	/* From here on nothing starts. Wait for probes that are just starting one; the
	 * netlink core waits for requests. Flows end while the probe still sees their
	 * sockets close, and their end is told while the family still has listeners.
	 */
	vulture_flows_refuse();
	tracepoint_synchronize_unregister();
	vulture_flush_all();
	vulture_netlink_exit();
	vulture_flush_all();
	tracepoint_probe_unregister(vulture_state_tracepoint, vulture_on_set_state, NULL);
	tracepoint_synchronize_unregister();
	unregister_pernet_subsys(&vulture_net_ops);
	rcu_barrier();
	vulture_flows_exit();
}

module_init(vulture_init);
module_exit(vulture_exit);

MODULE_AUTHOR("LBE transport suite");
MODULE_DESCRIPTION("Less-than-best-effort receiving by receive window (Vulture)");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
MODULE_ALIAS_GENL_FAMILY("vulture");
