// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_lbe_bench - the cost of congestion controls: the control cost_NAME is NAME with its
 * callbacks timed
 *
 *	insmod tcp_lbe_bench.ko names=lbe,bbr
 *	/sys/module/tcp_lbe_bench/parameters/costs
 *
 * has a line for each: NAME, ACKs, ticks, sends, ticks.
 *
 * It measures the callbacks that TCP calls for each ACK, and each time before it may send. Ticks
 * are those of the time stamp counter, on a machine with one CPU. For `make bench`, not for use.
 */
#include <linux/module.h>
#include <linux/net.h>
#include <net/sock.h>
#include <net/tcp.h>

#include <lbe/cpu_ticks.h>

#define COSTS_MAX	4

/**
 * struct cost - a control that is timed
 * @ops: the operations that are registered: those of @real, timed
 * @real: the operations of the real control
 * @pin: a socket with the real control, which keeps its module loaded
 * @acks: calls of cong_control or cong_avoid
 * @ack_ticks: spent in all callbacks for an ACK
 * @sends: calls of min_tso_segs
 * @send_ticks: spent in it
 */
struct cost {
	struct tcp_congestion_ops ops;
	const struct tcp_congestion_ops *real;
	struct socket *pin;
	u64 acks, ack_ticks;
	u64 sends, send_ticks;
};

static struct cost costs[COSTS_MAX];
static int n_costs;

static char *names[COSTS_MAX];
static int n_names;
module_param_array(names, charp, &n_names, 0444);
MODULE_PARM_DESC(names, "controls to time, loaded before");

static int costs_get(char *buffer, const struct kernel_param *param)
{
	int i, at = 0;

	for (i = 0; i < n_costs; i++)
		at += sysfs_emit_at(buffer, at, "%s %llu %llu %llu %llu\n",
				    costs[i].real->name, costs[i].acks, costs[i].ack_ticks,
				    costs[i].sends, costs[i].send_ticks);
	return at;
}

static const struct kernel_param_ops costs_ops = { .get = costs_get };
module_param_cb(costs, &costs_ops, NULL, 0444);
MODULE_PARM_DESC(costs, "result: name, ACKs, their ticks, sends and their ticks, of each");

static struct cost *cost_of(struct sock *sk)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;

	return container_of((struct tcp_congestion_ops *)ops, struct cost, ops);
}

static void cost_control(struct sock *sk, const struct rate_sample *rs)
{
	struct cost *cost = cost_of(sk);
	u64 began = lbe_cpu_ticks();

	LBE_CALL_CONG_CONTROL(cost->real, sk, rs);
	cost->ack_ticks += lbe_cpu_ticks() - began;
	cost->acks++;
}

LBE_DEFINE_CONG_CONTROL(cost_timed, cost_control);

static void cost_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct cost *cost = cost_of(sk);
	u64 began = lbe_cpu_ticks();

	cost->real->cong_avoid(sk, ack, acked);
	cost->ack_ticks += lbe_cpu_ticks() - began;
	cost->acks++;
}

static void cost_in_ack_event(struct sock *sk, u32 flags)
{
	struct cost *cost = cost_of(sk);
	u64 began = lbe_cpu_ticks();

	cost->real->in_ack_event(sk, flags);
	cost->ack_ticks += lbe_cpu_ticks() - began;
}

static void cost_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct cost *cost = cost_of(sk);
	u64 began = lbe_cpu_ticks();

	cost->real->pkts_acked(sk, sample);
	cost->ack_ticks += lbe_cpu_ticks() - began;
}

static u32 cost_min_tso_segs(struct sock *sk)
{
	struct cost *cost = cost_of(sk);
	u64 began = lbe_cpu_ticks();
	u32 segs = cost->real->min_tso_segs(sk);

	cost->send_ticks += lbe_cpu_ticks() - began;
	cost->sends++;
	return segs;
}

static const struct tcp_congestion_ops timed = {
	LBE_CONG_CONTROL(cost_timed),
	.cong_avoid = cost_cong_avoid,
	.in_ack_event = cost_in_ack_event,
	.pkts_acked = cost_pkts_acked,
	.min_tso_segs = cost_min_tso_segs,
};

/* Replace those callbacks that the control has by the timed ones. */
static void cost_time(struct tcp_congestion_ops *ops)
{
	if (ops->cong_control)
		ops->cong_control = timed.cong_control;
	if (ops->cong_avoid)
		ops->cong_avoid = timed.cong_avoid;
	if (ops->in_ack_event)
		ops->in_ack_event = timed.in_ack_event;
	if (ops->pkts_acked)
		ops->pkts_acked = timed.pkts_acked;
	if (ops->min_tso_segs)
		ops->min_tso_segs = timed.min_tso_segs;
}

/* Open a socket with the control @name, so that its module stays loaded. */
static int cost_pin(struct cost *cost, char *name)
{
	int err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, 0, &cost->pin);

	if (err)
		return err;
	err = READ_ONCE(cost->pin->ops)->setsockopt(cost->pin, SOL_TCP, TCP_CONGESTION,
						    KERNEL_SOCKPTR(name), strlen(name));
	if (err) {
		pr_err("tcp_lbe_bench: names=%s: no such control is loaded\n", name);
		sock_release(cost->pin);
		return err;
	}
	cost->real = inet_csk(cost->pin->sk)->icsk_ca_ops;
	return 0;
}

static int cost_register(struct cost *cost, char *name)
{
	int err = cost_pin(cost, name);

	if (err)
		return err;
	cost->ops = *cost->real;
	cost->ops.owner = THIS_MODULE;
	snprintf(cost->ops.name, sizeof(cost->ops.name), "cost_%s", name);
	cost_time(&cost->ops);
	err = tcp_register_congestion_control(&cost->ops);
	if (err)
		sock_release(cost->pin);
	return err;
}

static void cost_unregister_all(void)
{
	while (n_costs) {
		n_costs--;
		tcp_unregister_congestion_control(&costs[n_costs].ops);
		sock_release(costs[n_costs].pin);
	}
}

static int __init cost_module_init(void)
{
	int err = 0;

	while (!err && n_costs < n_names) {
		err = cost_register(&costs[n_costs], names[n_costs]);
		if (!err)
			n_costs++;
	}
	if (err)
		cost_unregister_all();
	return err;
}

static void __exit cost_module_exit(void)
{
	cost_unregister_all();
}

module_init(cost_module_init);
module_exit(cost_module_exit);

MODULE_AUTHOR("LBE transport project");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
MODULE_DESCRIPTION("What congestion controls cost, for make bench");
