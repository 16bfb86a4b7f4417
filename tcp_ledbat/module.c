// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_ledbat: parameters and registration of "ledbat" and "ledbatpp".
 *
 * Parameters hold for flows that begin later; a flow keeps those it began with.
 * Names without prefix are ledbat's or both's, pp_ ledbatpp's.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "flow.h"

/* Parameters */

/**
 * struct ledbat_range - a number with its bounds
 * @value: now
 * @least: smallest allowed
 * @most: largest allowed
 */
struct ledbat_range {
	unsigned int value;
	unsigned int least;
	unsigned int most;
};

/* Length of a value as written by the user, without the newline of a shell. */
static int ledbat_text_len(const char *val)
{
	return val ? strcspn(val, "\n") : 0;
}

static int ledbat_set_range(const char *val, const struct kernel_param *kp)
{
	struct ledbat_range *range = kp->arg;
	unsigned int value;
	int err;

	err = val ? kstrtouint(val, 0, &value) : -EINVAL;
	if (!err && (value < range->least || value > range->most))
		err = -ERANGE;
	if (err) {
		pr_err("%s=%.*s refused: a number from %u to %u is wanted\n",
		       kp->name, ledbat_text_len(val), val ?: "", range->least,
		       range->most);
		return err;
	}
	WRITE_ONCE(range->value, value);
	return 0;
}

static int ledbat_get_range(char *buffer, const struct kernel_param *kp)
{
	const struct ledbat_range *range = kp->arg;

	return sysfs_emit(buffer, "%u\n", READ_ONCE(range->value));
}

static const struct kernel_param_ops ledbat_range_ops = {
	.set = ledbat_set_range,
	.get = ledbat_get_range,
};

#define LEDBAT_PARAM(_name, _default, _least, _most, _text)		\
	static struct ledbat_range _name = { _default, _least, _most };	\
	module_param_cb(_name, &ledbat_range_ops, &_name, 0644);	\
	MODULE_PARM_DESC(_name, _text " (" __stringify(_least) " to "	\
			 __stringify(_most) ", default "		\
			 __stringify(_default) ")")

/* RFC 6817 section 2.5 allows up to 100 ms; 25 ms is Abu and Gordon's. Twice
 * as much: twice the delay for others, and more noise tolerated.
 */
LEDBAT_PARAM(target_us, 25000, 1000, 100000,
	     "ledbat: queueing delay to settle at, us");
LEDBAT_PARAM(gain_percent, 100, 1, 100,
	     "ledbat: RFC 6817's GAIN, percent");
LEDBAT_PARAM(decrease_percent, 100, 0, 100,
	     "ledbat: part of its queue beyond the target that a flow gives back in a round trip, percent; 0: GAIN both ways");
LEDBAT_PARAM(allowed_increase_pkts, 1, 1, 1000,
	     "ledbat: window above what is in flight, packets");
LEDBAT_PARAM(history_min, 10, 1, 10,
	     "both: minutes for which a base delay holds");
LEDBAT_PARAM(filter_samples, 4, 4, 32,
	     "both: delay samples in the filter, none older than a round trip");
/* 60: a full buffer is 1.7 times the target, so TCP reaches delays at which the
 * flow gives way, and one 1.5 times as deep as the target set costs 10 % of it.
 * Twice as much: see Documentation/tcp_ledbat.md, "The buffer's depth".
 */
LEDBAT_PARAM(depth_percent, 60, 0, 100,
	     "ledbat: target as part of the delay at which losses occur, percent; 0: leave the target alone");
/* 16: 2 packets are then 1 % of a pipe and buffer that hold 11. Twice as much:
 * half of that, and twice as late to notice that TCP has left.
 */
LEDBAT_PARAM(rest_max_rtts, 16, 0, 64,
	     "both: longest rest between windows at the least window, round trips; needs pace");
LEDBAT_PARAM(share_permille, 50, 1, 500,
	     "ledbat: part of the capacity that a dynamic minimum window keeps for all flows of the host, permille");

/* LEDBAT++ section 4.2 (target), 4.3 (Constant) */
LEDBAT_PARAM(pp_target_us, 60000, 1000, 100000,
	     "ledbatpp: queueing delay to settle at, us");
LEDBAT_PARAM(pp_constant_percent, 100, 1, 100,
	     "ledbatpp: Constant of the multiplicative decrease, percent");
LEDBAT_PARAM(pp_depth_percent, 60, 0, 100,
	     "ledbatpp: target as part of the delay at which losses occur, percent; 0: leave the target alone");

static bool base_refresh = true;
module_param(base_refresh, bool, 0644);
MODULE_PARM_DESC(base_refresh, "ledbat: read the base delay again before its history forgets it (default Y)");

static bool pp_slowdowns = true;
module_param(pp_slowdowns, bool, 0644);
MODULE_PARM_DESC(pp_slowdowns, "ledbatpp: initial and periodic slowdowns (default Y)");

static bool pace = true;
module_param(pace, bool, 0644);
MODULE_PARM_DESC(pace, "both: spread the packets of a window over its round trip (default Y)");

static bool mark;
module_param(mark, bool, 0644);
MODULE_PARM_DESC(mark, "both: mark new flows as filler: DSCP LE and priority TC_PRIO_FILLER, unless the application chose its own (default N)");

/* min_window: a number of packets, or "dynamic" (0 here). */
#define LEDBAT_MIN_WINDOW_MOST	64U
#define LEDBAT_DYNAMIC		0U

static unsigned int min_window = 2;

static int ledbat_set_min_window(const char *val, const struct kernel_param *kp)
{
	unsigned int pkts;

	if (val && sysfs_streq(val, "dynamic")) {
		WRITE_ONCE(min_window, LEDBAT_DYNAMIC);
		return 0;
	}
	if (!val || kstrtouint(val, 0, &pkts) || !pkts ||
	    pkts > LEDBAT_MIN_WINDOW_MOST) {
		pr_err("%s=%.*s refused: packets from 1 to %u, or dynamic, are wanted\n",
		       kp->name, ledbat_text_len(val), val ?: "",
		       LEDBAT_MIN_WINDOW_MOST);
		return -EINVAL;
	}
	WRITE_ONCE(min_window, pkts);
	return 0;
}

static int ledbat_get_min_window(char *buffer, const struct kernel_param *kp)
{
	unsigned int pkts = READ_ONCE(min_window);

	if (pkts == LEDBAT_DYNAMIC)
		return sysfs_emit(buffer, "dynamic\n");
	return sysfs_emit(buffer, "%u\n", pkts);
}

static const struct kernel_param_ops ledbat_min_window_ops = {
	.set = ledbat_set_min_window,
	.get = ledbat_get_min_window,
};

module_param_cb(min_window, &ledbat_min_window_ops, NULL, 0644);
MODULE_PARM_DESC(min_window, "ledbat: least window, packets (1 to 64, default 2), or \"dynamic\": it follows the capacity");

static const char * const ledbat_signal_names[] = {
	[LEDBAT_SIGNAL_OWD] = "owd",
	[LEDBAT_SIGNAL_RTT] = "rtt",
};

static int signal = LEDBAT_SIGNAL_OWD;

static int ledbat_set_signal(const char *val, const struct kernel_param *kp)
{
	int index = val ? __sysfs_match_string(ledbat_signal_names,
					       ARRAY_SIZE(ledbat_signal_names),
					       val) : -EINVAL;

	if (index < 0) {
		pr_err("%s=%.*s refused: owd or rtt is wanted\n", kp->name,
		       ledbat_text_len(val), val ?: "");
		return -EINVAL;
	}
	WRITE_ONCE(signal, index);
	return 0;
}

static int ledbat_get_signal(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n", ledbat_signal_names[READ_ONCE(signal)]);
}

static const struct kernel_param_ops ledbat_signal_ops = {
	.set = ledbat_set_signal,
	.get = ledbat_get_signal,
};

module_param_cb(signal, &ledbat_signal_ops, NULL, 0644);
MODULE_PARM_DESC(signal, "ledbat: delay to go by, owd (needs TCP timestamps, else rtt) or rtt (default owd)");

static u32 ledbat_percent_q16(const struct ledbat_range *percent)
{
	return READ_ONCE(percent->value) * LEDBAT_ONE_Q16 / 100;
}

static struct ledbat_params ledbat_get_params(void)
{
	unsigned int min_pkts = READ_ONCE(min_window);
	bool dynamic = min_pkts == LEDBAT_DYNAMIC;

	return (struct ledbat_params) {
		.target_us = READ_ONCE(target_us.value),
		.gain_q16 = ledbat_percent_q16(&gain_percent),
		.decrease_q16 = ledbat_percent_q16(&decrease_percent),
		.depth_percent = READ_ONCE(depth_percent.value),
		.share_permille = READ_ONCE(share_permille.value),
		.min_pkts = dynamic ? LEDBAT_INIT_PKTS : min_pkts,
		.allowed_increase_pkts = READ_ONCE(allowed_increase_pkts.value),
		.history_min = READ_ONCE(history_min.value),
		.filter_samples = READ_ONCE(filter_samples.value),
		.rest_max_rtts = dynamic ? 0 : READ_ONCE(rest_max_rtts.value),
		.signal = READ_ONCE(signal),
		.dynamic = dynamic,
		.slowdowns = READ_ONCE(base_refresh),
		.mark = READ_ONCE(mark),
		.pace = READ_ONCE(pace),
	};
}

static struct ledbat_params ledbatpp_get_params(void)
{
	return (struct ledbat_params) {
		.target_us = READ_ONCE(pp_target_us.value),
		.gain_q16 = ledbat_percent_q16(&pp_constant_percent),
		.depth_percent = READ_ONCE(pp_depth_percent.value),
		.min_pkts = LEDBAT_INIT_PKTS,
		.history_min = READ_ONCE(history_min.value),
		.filter_samples = READ_ONCE(filter_samples.value),
		.rest_max_rtts = READ_ONCE(rest_max_rtts.value),
		.signal = LEDBAT_SIGNAL_RTT,
		.slowdowns = READ_ONCE(pp_slowdowns),
		.periodic = true,
		.mark = READ_ONCE(mark),
		.pace = READ_ONCE(pace),
	};
}

/* Parameters for a socket of either congestion control, as they are now. */
struct ledbat_params ledbat_params_of(const struct sock *sk)
{
	if (inet_csk(sk)->icsk_ca_ops == &ledbatpp_ops)
		return ledbatpp_get_params();
	return ledbat_get_params();
}

/* Registration */

static int __init ledbat_register(struct tcp_congestion_ops *ops)
{
	int err = tcp_register_congestion_control(ops);

	if (err)
		pr_err("%s could not be registered: error %d (another module of that name loaded?)\n",
		       ops->name, err);
	return err;
}

static int __init ledbat_module_init(void)
{
	int err;

	err = ledbat_host_register();
	if (err)
		return err;
	err = ledbat_register(&ledbat_ops);
	if (err)
		goto err_host;
	err = ledbat_register(&ledbatpp_ops);
	if (err)
		goto err_ledbat;
	return 0;

err_ledbat:
	tcp_unregister_congestion_control(&ledbat_ops);
err_host:
	ledbat_host_unregister();
	return err;
}

static void __exit ledbat_module_exit(void)
{
	tcp_unregister_congestion_control(&ledbatpp_ops);
	tcp_unregister_congestion_control(&ledbat_ops);
	ledbat_host_unregister();
}

module_init(ledbat_module_init);
module_exit(ledbat_module_exit);

MODULE_AUTHOR("LBE transport project");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
MODULE_DESCRIPTION("LEDBAT (RFC 6817) and LEDBAT++: TCP congestion controls for background traffic");
MODULE_ALIAS("tcp_ledbatpp");
