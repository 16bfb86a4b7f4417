// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_lowpri: loss-based congestion controls for filler traffic, in a network that
 * serves filler traffic with strictly lowest priority.
 *
 * The laws, their source and the table of variants are in lowpri_law.h; each
 * row of the table is a congestion control. These are the states of a flow:
 *
 *	           drop: recovery to w' = law(w)       ack
 *	 linear  ---------------------------> PRR  ----------> slow start (s)
 *	 +1/RTT <-------------------------------------------- up to limit(w)
 *	    ^                                                   |    ^
 *	    |              window at the limit                  |    |
 *	    +---------------------------------------------------+    |
 *	    | time-out: 1 packet (LowPri3.7: part of w)   doubling   |
 *	    +----------------------------------------------> to w' --+
 *
 * With TCP-Background a drop reduces a window of 84 packets to 63. It then grows by half
 * a packet for each one acknowledged up to 67, then by one packet a round trip.
 *
 * Departures from the paper:
 *  - Loss detection and recovery (SACK, PRR, RACK, TLP, F-RTO, undo) are the kernel's;
 *    this module only sets the window at which recovery ends. In recovery ssthresh is
 *    w', to which PRR reduces the window; the first ACK after it raises ssthresh to
 *    the limit. The paper's simulator had SACK without the other mechanisms.
 *  - The paper defines the reaction to a time-out for LowPri3.7 only. Here ssthresh is
 *    set as by a drop, so after a time-out LowPri3 has slow start up to its limit,
 *    doubling up to w' and by s above it.
 *  - The first slow start and the one after an idle time have no limit, and double the
 *    window. After an idle time the window grows back to at least 3/4 of its old size, as
 *    with any TCP.
 *  - ECN marks count as drops.
 *
 * These controls do not yield to standard TCP in the same class (Table 14). Their use
 * therefore requires CAP_NET_ADMIN, unless the administrator allows them by
 * net.ipv4.tcp_allowed_congestion_control.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/tcp.h>

#define LBE_COUNTERS_FILE	"lbe_lowpri"
#include <lbe/counters.h>
#include <lbe/info.h>
#include <lbe/mark.h>

#include "lowpri_law.h"

#define CREATE_TRACE_POINTS
#include "lowpri_trace.h"

#define LOWPRI_DEFAULT_VARIANTS "background,lowpri3.7"

/* Part of its window that LowPri3.7 keeps after a time-out, percent: the same as after a
 * drop. Measured: Documentation/tcp_lowpri.md, "The time-out law". With a larger value a
 * longer burst is sent into a queue that may still be full; with a smaller one the window
 * takes longer to grow back.
 */
#define LOWPRI_DEFAULT_KEEP_PERCENT 75

/**
 * struct lowpri - state of a flow; written under the socket lock
 * @target_q16: window after the last drop, packets in Q16
 * @drop_target_pkts: the same in whole packets: slow start above it grows by the law's s;
 *	LOWPRI_NO_DROP: no drop yet, or none since an idle time
 * @limit_pkts: window at which slow start after a drop ends; 0: there is none
 * @before_pkts: window before the reductions of the present loss episode, packets;
 *	0: no loss episode
 * @part_q16: fraction of a packet gained in slow start, Q16, below 1
 * @undo_drop_target_pkts: @drop_target_pkts before the last reduction
 * @undo_limit_pkts: @limit_pkts before the last reduction
 * @undo_ssthresh_pkts: ssthresh before the last reduction; 0: no reduction by this control
 * @lift: ssthresh is still that of recovery; raise it to the limit at the next ACK
 * @undo_lift: @lift before the last reduction
 * @growing_back: in slow start after a drop, below the limit
 * @on: between init and release: the counters' flows include this one
 * @yielding: the counters' yielding flows include this one
 * @keep_percent: the parameter timeout_keep_percent at the start of the flow
 * @mark: parts of the LE mark that this flow has set (LBE_MARK_*); 0: none
 */
struct lowpri {
	u64 target_q16;
	u32 drop_target_pkts;
	u32 limit_pkts;
	u32 before_pkts;
	u32 part_q16;
	u32 undo_drop_target_pkts;
	u32 undo_limit_pkts;
	u32 undo_ssthresh_pkts;
	u8 lift:1,
	   undo_lift:1,
	   growing_back:1,
	   on:1,
	   yielding:1;
	u8 keep_percent;
	u8 mark;
};

/* Parameters */

static char *variants = LOWPRI_DEFAULT_VARIANTS;
module_param(variants, charp, 0444);
MODULE_PARM_DESC(variants,
		 "controls to register: all, or names with commas (" LOWPRI_DEFAULT_VARIANTS ")");

LBE_MARK_PARAM();

static int lowpri_set_percent(const char *val, const struct kernel_param *kp)
{
	int err = param_set_uint_minmax(val, kp, 0, 100);

	if (err)
		pr_err("%s=%.*s refused: a percentage, 0 to 100, is wanted\n",
		       kp->name, (int)strcspn(val ?: "", "\n"), val ?: "");
	return err;
}

static const struct kernel_param_ops lowpri_percent_ops = {
	.set = lowpri_set_percent,
	.get = param_get_uint,
};

static unsigned int timeout_keep_percent = LOWPRI_DEFAULT_KEEP_PERCENT;
module_param_cb(timeout_keep_percent, &lowpri_percent_ops,
		&timeout_keep_percent, 0644);
MODULE_PARM_DESC(timeout_keep_percent,
		 "window that lowpri3.7 keeps over a time-out, 0 to 100 % ("
		 __stringify(LOWPRI_DEFAULT_KEEP_PERCENT) "); new flows");

/* The congestion control of each row of lowpri_laws, at the same index. */
static struct tcp_congestion_ops lowpri_ops[ARRAY_SIZE(lowpri_laws)];

static const struct lowpri_law *lowpri_law_of(const struct sock *sk)
{
	return &lowpri_laws[inet_csk(sk)->icsk_ca_ops - lowpri_ops];
}

/* For the counters a flow yields from a reduction until its window reaches the limit, or
 * without a limit until the loss is repaired.
 */
static void lowpri_count(const struct sock *sk, struct lowpri *ca, u32 bytes)
{
	bool yields = ca->before_pkts || ca->lift || ca->growing_back;

	if (!ca->on)
		return;
	lbe_counters_ack(sk, ca->yielding, yields, bytes);
	ca->yielding = yields;
}

/* Loss episodes */

/* The window from which a reduction is calculated. LowPri3.7 does not reduce a window that a
 * time-out has reduced already: until the end of the loss episode the window from before is
 * used.
 */
static u32 lowpri_reference_pkts(const struct sock *sk, const struct lowpri *ca)
{
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	if (lowpri_law_of(sk)->keeps_window &&
	    inet_csk(sk)->icsk_ca_state == TCP_CA_Loss)
		return max(cwnd, ca->before_pkts);
	return cwnd;
}

static void lowpri_remember_for_undo(const struct sock *sk, struct lowpri *ca)
{
	ca->undo_drop_target_pkts = ca->drop_target_pkts;
	ca->undo_limit_pkts = ca->limit_pkts;
	ca->undo_lift = ca->lift;
	ca->undo_ssthresh_pkts = tcp_sk(sk)->snd_ssthresh;
}

/* Called by TCP at the start of recovery, and at a time-out. */
static u32 lowpri_ssthresh(struct sock *sk)
{
	const struct lowpri_law *law = lowpri_law_of(sk);
	struct lowpri *ca = inet_csk_ca(sk);
	u32 before_pkts = lowpri_reference_pkts(sk, ca);

	lowpri_remember_for_undo(sk, ca);
	ca->before_pkts = before_pkts;
	ca->target_q16 = lowpri_target_q16(law, before_pkts);
	ca->drop_target_pkts = (u32)(ca->target_q16 >> 16);
	ca->limit_pkts = lowpri_limit_pkts(law, before_pkts);
	ca->part_q16 = 0;
	ca->lift = 1;
	ca->growing_back = 0;
	lowpri_count(sk, ca, 0);
	trace_lowpri_drop(sk, before_pkts, ca->drop_target_pkts, ca->limit_pkts);
	return ca->drop_target_pkts;
}

static u32 lowpri_undo_cwnd(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lowpri *ca = inet_csk_ca(sk);
	u32 cwnd = max(tcp_snd_cwnd(tp), tp->prior_cwnd);

	trace_lowpri_undo(sk, tcp_snd_cwnd(tp), cwnd, ca->undo_limit_pkts);
	ca->drop_target_pkts = ca->undo_drop_target_pkts;
	ca->limit_pkts = ca->undo_limit_pkts;
	ca->before_pkts = 0;
	ca->lift = ca->undo_lift;
	ca->growing_back = 0;
	lowpri_count(sk, ca, 0);
	/* TCP restores ssthresh only if that raises it, but ssthresh may have been
	 * raised to the limit in the meantime. A reduction by a previous control is
	 * left to TCP.
	 */
	if (ca->undo_ssthresh_pkts)
		WRITE_ONCE(tp->snd_ssthresh, ca->undo_ssthresh_pkts);
	return cwnd;
}

/* TCP has just set the window for a time-out. (Or it has found a smaller path MTU; then
 * there is no loss episode.)
 */
static void lowpri_timeout(struct sock *sk, struct lowpri *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 keep_pkts;

	if (!ca->before_pkts)
		return;
	keep_pkts = lowpri_timeout_pkts(lowpri_law_of(sk), ca->before_pkts,
					ca->keep_percent);
	if (keep_pkts > tcp_snd_cwnd(tp))
		tcp_snd_cwnd_set(tp, min(keep_pkts, tp->snd_cwnd_clamp));
	ca->part_q16 = 0;
	trace_lowpri_timeout(sk, ca->before_pkts, tcp_snd_cwnd(tp),
			     ca->limit_pkts);
}

static void lowpri_set_state(struct sock *sk, u8 new_state)
{
	struct lowpri *ca = inet_csk_ca(sk);

	if (new_state == TCP_CA_Loss)
		lowpri_timeout(sk, ca);
	else if (new_state == TCP_CA_Open)
		ca->before_pkts = 0;
	lowpri_count(sk, ca, 0);
}

static void lowpri_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct lowpri *ca = inet_csk_ca(sk);

	if (event != CA_EVENT_CWND_RESTART)
		return;
	ca->drop_target_pkts = LOWPRI_NO_DROP;
	ca->part_q16 = 0;
	ca->lift = 0;
	ca->growing_back = 0;
	lowpri_count(sk, ca, 0);
}

/* Growth */

/* Recovery no longer uses ssthresh: set it to the limit of slow start, and credit the
 * fraction of a packet by which the target exceeds the window.
 */
static void lowpri_lift_ssthresh(struct sock *sk, struct lowpri *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ca->lift = 0;
	if (tcp_snd_cwnd(tp) == ca->drop_target_pkts)
		tp->snd_cwnd_cnt = lowpri_credit(ca->target_q16);
	if (ca->limit_pkts <= tp->snd_ssthresh)
		return;
	WRITE_ONCE(tp->snd_ssthresh, ca->limit_pkts);
	ca->growing_back = 1;
}

/* Return: the acknowledged packets that slow start did not use. */
static u32 lowpri_grow(struct sock *sk, struct lowpri *ca, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lowpri_growth g = {
		.cwnd = tcp_snd_cwnd(tp),
		.part_q16 = ca->part_q16,
		.acked = acked,
	};

	lowpri_slow_start(lowpri_law_of(sk), &g, ca->drop_target_pkts,
			  tp->snd_ssthresh);
	ca->part_q16 = g.part_q16;
	tcp_snd_cwnd_set(tp, min(g.cwnd, tp->snd_cwnd_clamp));
	if (ca->growing_back && g.cwnd >= min(ca->limit_pkts, tp->snd_cwnd_clamp)) {
		ca->growing_back = 0;
		trace_lowpri_regrown(sk, ca->drop_target_pkts, g.cwnd,
				     ca->limit_pkts);
	}
	return g.acked;
}

static void lowpri_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lowpri *ca = inet_csk_ca(sk);

	if (ca->lift)
		lowpri_lift_ssthresh(sk, ca);
	if (tcp_is_cwnd_limited(sk)) {
		if (tcp_in_slow_start(tp))
			acked = lowpri_grow(sk, ca, acked);
		if (acked)
			tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
	}
	lowpri_count(sk, ca, 0);
}

static void lowpri_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	lowpri_count(sk, inet_csk_ca(sk), sample->pkts_acked * tcp_sk(sk)->mss_cache);
}

/* Init, release, information */

static void lowpri_init(struct sock *sk)
{
	struct lowpri *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->drop_target_pkts = LOWPRI_NO_DROP;
	ca->undo_drop_target_pkts = LOWPRI_NO_DROP;
	ca->keep_percent = READ_ONCE(timeout_keep_percent);
	if (READ_ONCE(mark))
		ca->mark = lbe_mark_set(sk);
	ca->on = 1;
	lbe_counters_join(sk);
}

/* May be called twice, and without init (6.1, 6.12). */
static void lowpri_release(struct sock *sk)
{
	struct lowpri *ca = inet_csk_ca(sk);

	if (!ca->on)
		return;
	lbe_counters_leave(sk, ca->yielding);
	lbe_mark_clear(sk, ca->mark);
	ca->on = 0;
}

static size_t lowpri_get_info(struct sock *sk, u32 ext, int *attr,
			      union tcp_cc_info *info)
{
	return lbe_bbr_info(sk, lowpri_get_info, tcp_min_rtt(tcp_sk(sk)), 0, ext, attr, info);
}

/* Which variants to register */

static void __init lowpri_refuse(const char *name)
{
	char known[ARRAY_SIZE(lowpri_laws) * TCP_CA_NAME_MAX];
	size_t used = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(lowpri_laws); i++)
		used += scnprintf(known + used, sizeof(known) - used, "%s%s",
				  i ? " " : "", lowpri_laws[i].name);
	pr_err("variants: \"%s\" is not known; known: all %s\n", name, known);
}

static int __init lowpri_find(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(lowpri_laws); i++)
		if (!strcmp(name, lowpri_laws[i].name))
			return i;
	return -EINVAL;
}

/* Set a bit of @wanted for each row of lowpri_laws that @list names. */
static int __init lowpri_parse_variants(const char *list, unsigned long *wanted)
{
	char *copy, *rest, *name;
	int err = 0, i;

	copy = kstrdup(list, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	rest = strim(copy);
	if (!strcmp(rest, "all")) {
		bitmap_fill(wanted, ARRAY_SIZE(lowpri_laws));
		goto out;
	}
	while ((name = strsep(&rest, ","))) {
		name = strim(name);
		i = lowpri_find(name);
		if (i < 0) {
			lowpri_refuse(name);
			err = i;
			break;
		}
		__set_bit(i, wanted);
	}
out:
	kfree(copy);
	return err;
}

static const struct tcp_congestion_ops lowpri_template __initconst = {
	.init		= lowpri_init,
	.release	= lowpri_release,
	.ssthresh	= lowpri_ssthresh,
	.cong_avoid	= lowpri_cong_avoid,
	.pkts_acked	= lowpri_pkts_acked,
	.set_state	= lowpri_set_state,
	.cwnd_event	= lowpri_cwnd_event,
	.undo_cwnd	= lowpri_undo_cwnd,
	.get_info	= lowpri_get_info,
	.owner		= THIS_MODULE,
};

static struct tcp_congestion_ops *lowpri_registered[ARRAY_SIZE(lowpri_laws)];
static unsigned int lowpri_nr;

static int __init lowpri_module_init(void)
{
	DECLARE_BITMAP(wanted, ARRAY_SIZE(lowpri_laws)) = {};
	int err, i;

	BUILD_BUG_ON(sizeof(struct lowpri) > ICSK_CA_PRIV_SIZE);
	err = lowpri_parse_variants(variants, wanted);
	if (err)
		return err;
	for_each_set_bit(i, wanted, ARRAY_SIZE(lowpri_laws)) {
		lowpri_ops[i] = lowpri_template;
		strscpy(lowpri_ops[i].name, lowpri_laws[i].name,
			sizeof(lowpri_ops[i].name));
		lowpri_registered[lowpri_nr++] = &lowpri_ops[i];
	}
	return lbe_register(lowpri_registered, lowpri_nr);
}

static void __exit lowpri_module_exit(void)
{
	lbe_unregister(lowpri_registered, lowpri_nr);
}

module_init(lowpri_module_init);
module_exit(lowpri_module_exit);

MODULE_AUTHOR("LBE transport project");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
MODULE_DESCRIPTION("LowPri family: TCP congestion controls for filler traffic");
MODULE_ALIAS("tcp_background");
MODULE_ALIAS("tcp_lowpri3.7");
