// SPDX-License-Identifier: GPL-2.0
/*
 * Begin and end of connections: TCP reports each change of a socket's state by the
 * tracepoint sock:inet_sock_set_state, under the socket's lock. At ESTABLISHED a rule
 * may start a flow, at CLOSE a flow ends.
 *
 * A probe runs with preemption off. On PREEMPT_RT it can neither take a spinlock_t nor
 * allocate memory. There (defer = 1) the probe only records the event, and a work item
 * does the rest: a flow that a rule starts begins some microseconds late, with the window
 * that TCP has advertised by then, and a flow that has ended is only marked (closed) until
 * the work item removes it.
 */
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/tracepoint.h>
#include <net/tcp.h>

#include "vulture.h"

/* Most connections that may wait for the work item, which runs within microseconds. If more
 * open at once, they are not put under control; no rule counts them as failed, but the kernel's
 * log says so once.
 */
#define VULTURE_PROBE_ROOM	1024

/* Connections that may wait because their application owns the socket when the work item gets to
 * it. Most applications let go of it within microseconds. To push such a connection out before the
 * next attempt, a user must open this many others and hold them in VULTURE_BUSY_RETRY, with half
 * the room half as many. Twice the room makes each attempt take twice as long.
 */
#define VULTURE_BUSY_ROOM	256
/* Interval between two attempts on these, jiffies. With half of it the CPU wakes up twice as often
 * for a socket that is held; twice as much lets a connection run without control for longer.
 */
#define VULTURE_BUSY_RETRY	msecs_to_jiffies(10)
/* Time after which such a connection is given up, jiffies. An application whose memory comes back
 * from a slow disk, at 10 ms a page, lets go of it earlier. Twice as long keeps places occupied
 * twice as long; half as long gives up on some of these applications.
 */
#define VULTURE_BUSY_KEEP	HZ

static bool vulture_defer __ro_after_init = IS_ENABLED(CONFIG_PREEMPT_RT);
module_param_named(defer, vulture_defer, bool, 0444);
MODULE_PARM_DESC(defer, "act on a connection's begin and end in a work, as PREEMPT_RT needs (its default there is 1)");

static struct tracepoint *vulture_state_tracepoint;

static DEFINE_RAW_SPINLOCK(vulture_opened_lock);	/* for the next three */
static struct sock *vulture_opened[VULTURE_PROBE_ROOM];	/* ring of sockets, with references */
static unsigned int vulture_opened_head, vulture_opened_len;
static LLIST_HEAD(vulture_closed);	/* flows, with references, by closed_node */

static struct sock *vulture_opened_pop(void)
{
	struct sock *sk = NULL;
	unsigned long flags;

	raw_spin_lock_irqsave(&vulture_opened_lock, flags);
	if (vulture_opened_len) {
		sk = vulture_opened[vulture_opened_head];
		vulture_opened_head = (vulture_opened_head + 1) % VULTURE_PROBE_ROOM;
		vulture_opened_len--;
	}
	raw_spin_unlock_irqrestore(&vulture_opened_lock, flags);
	return sk;
}

static void vulture_opened_push(struct sock *sk)
{
	unsigned long flags;
	bool full;

	raw_spin_lock_irqsave(&vulture_opened_lock, flags);
	full = vulture_opened_len == VULTURE_PROBE_ROOM;
	if (!full) {
		sock_hold(sk);
		vulture_opened[(vulture_opened_head + vulture_opened_len++) %
			       VULTURE_PROBE_ROOM] = sk;
	}
	raw_spin_unlock_irqrestore(&vulture_opened_lock, flags);
	if (full)
		pr_warn_once("vulture: more than %u connections opened at once: some are not under control\n",
			     VULTURE_PROBE_ROOM);
}

/* For the work item alone: the connections that wait, with references, oldest first. */
static struct vulture_busy {
	struct sock *sk;
	unsigned long until;		/* jiffies, when it is given up */
} vulture_busy[VULTURE_BUSY_ROOM];
static unsigned int vulture_busy_len;
static bool vulture_ending;		/* the work item gives up at once */

static void vulture_probe_work(struct work_struct *work);
static DECLARE_WORK(vulture_work, vulture_probe_work);

static void vulture_retry_work(struct work_struct *work)
{
	queue_work(VULTURE_WQ, &vulture_work);
}

static DECLARE_DELAYED_WORK(vulture_retry, vulture_retry_work);

static bool vulture_sock_is_open(const struct sock *sk)
{
	return (1 << READ_ONCE(sk->sk_state)) &
	       (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2);
}

/* Apply the rules to a connection, and drop the reference. Return: false if its application owns
 * the socket; then nothing is done.
 */
static bool vulture_probe_apply(struct sock *sk)
{
	if (!vulture_sock_lock(sk, jiffies))
		return false;
	if (vulture_sock_is_open(sk))
		vulture_rules_apply(vulture_net(sock_net(sk)), sk, false);
	release_sock(sk);
	sock_put(sk);
	return true;
}

/* Give a connection up, and drop the reference. */
static void vulture_probe_fail(struct sock *sk)
{
	if (vulture_sock_is_open(sk))
		vulture_rules_fail(vulture_net(sock_net(sk)), sk);
	sock_put(sk);
}

/* Keep a connection for later. If there is no room the oldest one is given up, so that sockets that
 * are held on purpose do not keep out those that are owned for a moment.
 */
static void vulture_busy_add(struct sock *sk)
{
	if (vulture_busy_len == VULTURE_BUSY_ROOM) {
		vulture_probe_fail(vulture_busy[0].sk);
		vulture_busy_len--;
		memmove(vulture_busy, vulture_busy + 1, vulture_busy_len * sizeof(*vulture_busy));
	}
	vulture_busy[vulture_busy_len++] = (struct vulture_busy){
		.sk = sk,
		.until = jiffies + VULTURE_BUSY_KEEP,
	};
}

/* Try those that wait again. @ending: give the others up. */
static void vulture_busy_try(bool ending)
{
	unsigned int i, left = 0;

	for (i = 0; i < vulture_busy_len; i++) {
		struct vulture_busy *busy = &vulture_busy[i];

		if (vulture_probe_apply(busy->sk))
			continue;
		if (ending || time_after_eq(jiffies, busy->until))
			vulture_probe_fail(busy->sk);
		else
			vulture_busy[left++] = *busy;
	}
	vulture_busy_len = left;
}

static void vulture_probe_work(struct work_struct *work)
{
	bool ending = READ_ONCE(vulture_ending);
	struct vulture_flow *flow, *next;
	struct sock *sk;

	llist_for_each_entry_safe(flow, next, llist_del_all(&vulture_closed), closed_node) {
		vulture_flow_end(flow, VULTURE_REASON_CLOSED);
		vulture_flow_put(flow);
	}
	vulture_busy_try(ending);
	while ((sk = vulture_opened_pop())) {
		if (vulture_probe_apply(sk))
			continue;
		if (ending)
			vulture_probe_fail(sk);
		else
			vulture_busy_add(sk);
	}
	if (vulture_busy_len)
		queue_delayed_work(VULTURE_WQ, &vulture_retry, VULTURE_BUSY_RETRY);
}

static void vulture_on_established(struct vulture_net *vn, struct sock *sk)
{
	if (list_empty(&vn->rules))
		return;
	if (!vulture_defer) {
		vulture_rules_apply(vn, sk, true);
	} else if (vulture_rules_match(vn, sk)) {
		vulture_opened_push(sk);
		queue_work(VULTURE_WQ, &vulture_work);
	}
}

static void vulture_on_closed(struct vulture_net *vn, struct sock *sk)
{
	struct vulture_flow *flow;

	if (!atomic_read(&vn->flows))
		return;
	flow = vulture_flow_get_by_sock(sk);
	if (!flow)
		return;
	if (!vulture_defer) {
		vulture_flow_end(flow, VULTURE_REASON_CLOSED);
	} else if (!xchg(&flow->closed, true)) {
		llist_add(&flow->closed_node, &vulture_closed);
		queue_work(VULTURE_WQ, &vulture_work);
		return;		/* the list keeps the reference */
	}
	vulture_flow_put(flow);
}

static void vulture_on_set_state(void *data, const struct sock *sk,
				 const int oldstate, const int newstate)
{
	struct vulture_net *vn;

	if (newstate != TCP_ESTABLISHED && newstate != TCP_CLOSE)
		return;
	if (!vulture_sock_is_tcp(sk) || !check_net(sock_net(sk)))
		return;
	vn = vulture_net(sock_net(sk));
	if (newstate == TCP_ESTABLISHED)
		vulture_on_established(vn, (struct sock *)sk);
	else if (oldstate != TCP_LISTEN)
		vulture_on_closed(vn, (struct sock *)sk);
}

/* Kernels do not export the symbol of this tracepoint, but it is in their list of tracepoints. */
static void vulture_find_tracepoint(struct tracepoint *tp, void *found)
{
	if (!strcmp(tp->name, "inet_sock_set_state"))
		*(struct tracepoint **)found = tp;
}

int __init vulture_probe_init(void)
{
	for_each_kernel_tracepoint(vulture_find_tracepoint, &vulture_state_tracepoint);
	if (!vulture_state_tracepoint) {
		pr_err("vulture: this kernel has no tracepoint sock:inet_sock_set_state (CONFIG_TRACEPOINTS)\n");
		return -EOPNOTSUPP;
	}
	return tracepoint_probe_register(vulture_state_tracepoint, vulture_on_set_state, NULL);
}

/* Wait for running probes and for the work item, which may be starting a flow. From now on it waits
 * for no application any more. May sleep.
 */
void vulture_probe_wait(void)
{
	WRITE_ONCE(vulture_ending, true);
	tracepoint_synchronize_unregister();
	queue_work(VULTURE_WQ, &vulture_work);
	flush_work(&vulture_work);
	/* No run of the work item queues this again, but it may just have queued a run. */
	cancel_delayed_work_sync(&vulture_retry);
	flush_work(&vulture_work);
}

void vulture_probe_exit(void)
{
	tracepoint_probe_unregister(vulture_state_tracepoint, vulture_on_set_state, NULL);
	vulture_probe_wait();
}
