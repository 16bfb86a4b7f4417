// SPDX-License-Identifier: GPL-2.0
/*
 * SHRED: RED that drops packets of small-window flows less.
 *
 * Each packet may carry its flow's congestion window in the TOS byte or
 * traffic class (hint.h). The lower threshold at which RED begins to drop is
 * moved per packet by the ratio of that window to the average one (shred.h);
 * all else is RED's own code (net/red.h), byte thresholds.
 *
 * Source: Claypool, Kinicki, Hartling, "Active Queue Management for Web
 * Traffic", Equations (1) to (4).
 *
 * Departs from the paper in:
 *  - A packet without a hint, and every packet with hint off, meets RED as
 *    it is: the paper says "normal RED dropping probabilities".
 *  - The first hint is the average; the paper does not say where it starts.
 *  - RED forgets its count of packets since the last drop whenever the average
 *    queue is below the lower threshold. Here that threshold belongs to one
 *    packet. A packet that is spared by its hint does not reset the count
 *    unless the queue is below every threshold, or one small flow would
 *    shield all others.
 *  - Gentle RED, which the paper's authors used, is an option: sch_red has none
 *    and without it this queue equals sch_red bit for bit when no hint is seen.
 *
 * Does not do: offload to hardware, qevents.
 *
 * Locking: all of struct shred_sched_data is under the qdisc's tree lock.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/red.h>

#include "hint.h"
#include "shred.h"

/* The adaptive rule runs twice a second, as red's. */
#define SHRED_ADAPT_PERIOD	(HZ / 2)

/* What the user set and RED's parameters do not hold. */
struct shred_parms {
	u32 limit_bytes;	/* of the default child; 0 = child set by graft */
	u32 avpkt_bytes;	/* a full-sized packet */
	u32 floor;		/* lowest threshold of any hinted packet, bytes << Wlog */
	u32 weight_q32;		/* of one hint in their average */
	u32 flags;		/* SHRED_F_* */
	u8 hint;		/* enum shred_hint_mode */
	u8 hint_pkts[256];	/* shred_hint_read() of every byte, but with hint off */
};

/* Counters, packets; first index 0 = unhinted, 1 = hinted. */
struct shred_stats {
	u64 class_pkts[1 + SHRED_CLASSES];	/* arrivals; 0 = unhinted, then by class */
	u64 early_drop[2];
	u64 forced_drop[2];
	u64 limit_drop[2];
	u64 early_mark[2];
	u64 forced_mark[2];
	u64 class_drops[SHRED_CLASSES];
};

struct shred_sched_data {
	struct shred_parms shred;
	u32 cwnd_avg_q22;		/* average hint, packets << 22; 0 = none seen */
	u32 gentle_random;		/* random number in force above qth_max */
	s32 gentle_count;		/* packets since it was drawn; -1 = draw with the next */

	struct red_parms parms;		/* RED's, as set and adapted */
	struct red_vars vars;		/* RED's moving state, shared by all packets */
	struct shred_stats stats;

	struct timer_list adapt_timer;
	struct Qdisc *sch;		/* for the timer */
	struct Qdisc *child;		/* holds the packets; bfifo unless grafted */
};

enum shred_verdict {
	SHRED_PASS,
	SHRED_DRAW,	/* pass, and RED's next random number is due */
	SHRED_ABOVE,	/* average queue at least qth_max: shred_above() decides */
	SHRED_EARLY,	/* by probability */
	SHRED_FORCED,	/* average queue above the last threshold */
};

/*
 * ---- one packet ----
 *
 * The usual packet's way calls nothing, whatever the compiler optimizes for: its steps are inline,
 * and what it seldom meets lies in functions of its own at the end. So no register is saved.
 */

/* TOS byte or traffic class of any packet; 0 of what is not IP. */
static u8 shred_far_tos(const struct sk_buff *skb)
{
	__be16 proto = skb_protocol(skb, true);		/* behind VLAN tags */
	__be16 buf;
	const __be16 *first = skb_header_pointer(skb, skb_network_offset(skb), sizeof(buf), &buf);

	if (!first)
		return 0;
	if (proto == htons(ETH_P_IP))
		return (u8)ntohs(*first);		/* version, length; TOS */
	if (proto == htons(ETH_P_IPV6))
		return (u8)(ntohs(*first) >> 4);	/* version; class; label */
	return 0;
}

/* The same where the header is in the linear part and not behind a VLAN tag; else -1. */
static __always_inline int shred_near_tos(const struct sk_buff *skb)
{
	unsigned int second = skb->network_header + 1;

	if (unlikely(second >= skb_tail_pointer(skb) - skb->head))
		return -1;
	if (likely(skb->protocol == htons(ETH_P_IP)))
		return skb->head[second];
	if (likely(skb->protocol == htons(ETH_P_IPV6)))
		return (u8)(skb->head[second - 1] << 4 | skb->head[second] >> 4);
	return -1;
}

static __always_inline void shred_note_hint(struct shred_sched_data *q, u32 hint_pkts)
{
	q->stats.class_pkts[1UL + shred_hint_class(hint_pkts)]++;
	q->cwnd_avg_q22 = shred_cwnd_avg(q->cwnd_avg_q22, hint_pkts,
					 q->shred.weight_q32);
}

static void shred_note_drop(struct shred_sched_data *q, u32 hint_pkts, u64 counter[2])
{
	counter[!!hint_pkts]++;
	if (hint_pkts)
		q->stats.class_drops[shred_hint_class(hint_pkts)]++;
}

/* Lowest threshold that a packet could meet now: below it RED's count starts anew. */
static __always_inline u32 shred_quiet_th(const struct shred_sched_data *q)
{
	return q->cwnd_avg_q22 ? q->shred.floor : q->parms.qth_min;
}

/* The average is at least qth_max, and drops become certain only at twice that. The count is one of
 * its own, because the random number has another scale.
 */
static enum shred_verdict shred_gentle(struct shred_sched_data *q, u32 hint_pkts)
{
	u32 min_mod = q->parms.qth_min;
	u32 p_q32;

	/* the last decision was made on the lower line */
	if (q->vars.qcount >= 0)
		q->gentle_count = -1;
	q->vars.qcount = -1;
	if (q->vars.qavg >= 2UL * q->parms.qth_max) {
		q->gentle_count = -1;
		return SHRED_FORCED;
	}
	if (!++q->gentle_count) {
		q->gentle_random = get_random_u32();
		return SHRED_PASS;
	}
	if (hint_pkts)
		min_mod = shred_min_th(q->parms.qth_min, q->parms.qth_max, q->shred.floor,
				       hint_pkts, q->cwnd_avg_q22);
	p_q32 = shred_max_p(q->parms.max_P, q->parms.qth_min, q->parms.qth_max, min_mod);
	p_q32 = shred_gentle_p(p_q32, q->parms.qth_max, q->vars.qavg);
	if (!shred_gentle_hit(p_q32, q->gentle_count, q->gentle_random))
		return SHRED_PASS;
	q->gentle_count = 0;
	q->gentle_random = get_random_u32();
	return SHRED_EARLY;
}

static enum shred_verdict shred_above(struct shred_sched_data *q, u32 hint_pkts)
{
	if (q->shred.flags & SHRED_F_GENTLE)
		return shred_gentle(q, hint_pkts);
	q->vars.qcount = -1;
	return SHRED_FORCED;
}

/* Below every threshold: all counts begin anew. */
static __always_inline enum shred_verdict shred_quiet(struct shred_sched_data *q)
{
	q->vars.qcount = -1;
	q->gentle_count = -1;
	return SHRED_PASS;
}

/* red_action(), on a line that starts at the packet's own threshold. */
static __always_inline enum shred_verdict shred_hinted(struct shred_sched_data *q,
						       unsigned long qavg, u32 hint_pkts)
{
	s64 excess;

	if (qavg < q->shred.floor)
		return shred_quiet(q);
	if (unlikely(qavg >= q->parms.qth_max))
		return SHRED_ABOVE;
	excess = shred_excess(q->parms.qth_min, q->parms.qth_max, qavg, hint_pkts,
			      q->cwnd_avg_q22);
	/* below its own threshold, but not below every packet's: the count goes on */
	if (excess < 0)
		return SHRED_PASS;
	if (unlikely(!++q->vars.qcount))
		return SHRED_DRAW;
	if (likely(!shred_hit(shred_excess_cap(excess, q->shred.floor, qavg, q->cwnd_avg_q22),
			      q->cwnd_avg_q22, q->parms.Wlog, q->vars.qcount, q->vars.qR)))
		return SHRED_PASS;
	q->vars.qcount = 0;
	return SHRED_EARLY;
}

/* red_action() as it is, but for what other packets' hints make of its count. */
static __always_inline enum shred_verdict shred_unhinted(struct shred_sched_data *q,
							 unsigned long qavg)
{
	if (qavg < q->parms.qth_min)
		return qavg < shred_quiet_th(q) ? shred_quiet(q) : SHRED_PASS;
	if (unlikely(qavg >= q->parms.qth_max))
		return SHRED_ABOVE;
	if (unlikely(!++q->vars.qcount))
		return SHRED_DRAW;
	if (likely(!red_mark_probability(&q->parms, &q->vars, qavg)))
		return SHRED_PASS;
	q->vars.qcount = 0;
	return SHRED_EARLY;
}

static __always_inline enum shred_verdict shred_verdict(struct shred_sched_data *q,
							unsigned long qavg, u32 hint_pkts)
{
	q->vars.qavg = qavg;
	if (hint_pkts) {
		shred_note_hint(q, hint_pkts);
		return shred_hinted(q, qavg, hint_pkts);
	}
	q->stats.class_pkts[0]++;
	return shred_unhinted(q, qavg);
}

static bool shred_may_mark(const struct shred_sched_data *q, enum shred_verdict verdict)
{
	if (!(q->shred.flags & SHRED_F_ECN))
		return false;
	return verdict == SHRED_EARLY || !(q->shred.flags & SHRED_F_HARDDROP);
}

/* Marks the packet, or says that it is to be dropped. */
static bool shred_punish(struct shred_sched_data *q, struct sk_buff *skb,
			 enum shred_verdict verdict, u32 hint_pkts)
{
	bool early = verdict == SHRED_EARLY;

	if (shred_may_mark(q, verdict)) {
		if (INET_ECN_set_ce(skb)) {
			if (early)
				q->stats.early_mark[!!hint_pkts]++;
			else
				q->stats.forced_mark[!!hint_pkts]++;
			return false;
		}
		if (q->shred.flags & SHRED_F_NODROP)
			return false;
	}
	shred_note_drop(q, hint_pkts,
			early ? q->stats.early_drop : q->stats.forced_drop);
	return true;
}

/* Acts on a verdict that is not "pass": true when the packet is gone. */
static bool shred_refuse(struct Qdisc *sch, struct sk_buff *skb, enum shred_verdict verdict,
			 u32 hint_pkts, struct sk_buff **to_free)
{
	qdisc_qstats_overlimit(sch);
	if (!shred_punish(qdisc_priv(sch), skb, verdict, hint_pkts))
		return false;
	lbe_qdisc_drop_reason(skb, sch, to_free,
			      verdict == SHRED_EARLY ? QDISC_DROP_CONGESTED :
						       QDISC_DROP_OVERLIMIT);
	return true;
}

/* ---- the child; its usual kind, bfifo, without indirect calls ---- */

static bool shred_child_is_bfifo(const struct Qdisc *child)
{
	return likely(child->ops == &bfifo_qdisc_ops);
}

/* Into any child, full or not. */
static noinline int shred_queue_any(struct sk_buff *skb, struct Qdisc *sch,
				    struct sk_buff **to_free, u32 hint_pkts)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret = qdisc_enqueue(skb, q->child, to_free);

	if (likely(ret == NET_XMIT_SUCCESS)) {
		qstats_backlog_add(sch, len);
		qdisc_qlen_inc(sch);
	} else if (net_xmit_drop_count(ret)) {
		shred_note_drop(q, hint_pkts, q->stats.limit_drop);
		qdisc_qstats_drop(sch);
	}
	return ret;
}

/* bfifo's own steps while it has room; what has none it drops itself. */
static int shred_queue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free,
		       u32 hint_pkts)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	struct Qdisc *child = q->child;

	if (unlikely(!shred_child_is_bfifo(child) ||
		     child->qstats.backlog + len > READ_ONCE(child->limit)))
		return shred_queue_any(skb, sch, to_free, hint_pkts);
	__qdisc_enqueue_tail(skb, &child->q);
	qstats_backlog_add(child, len);
	qstats_backlog_add(sch, len);
	qdisc_qlen_inc(sch);
	return NET_XMIT_SUCCESS;
}

/* ---- queue operations ---- */

/* A packet whose verdict is not "pass". */
static noinline int shred_enqueue_marked(struct sk_buff *skb, struct Qdisc *sch,
					 struct sk_buff **to_free, u32 hint_pkts,
					 enum shred_verdict verdict)
{
	struct shred_sched_data *q = qdisc_priv(sch);

	if (verdict == SHRED_ABOVE)
		verdict = shred_above(q, hint_pkts);
	else
		q->vars.qR = red_random(&q->parms);
	if (verdict >= SHRED_EARLY && shred_refuse(sch, skb, verdict, hint_pkts, to_free))
		return NET_XMIT_CN;
	return shred_queue_any(skb, sch, to_free, hint_pkts);
}

/* A packet that finds the queue idle, or whose header is not where it mostly is. */
static noinline int shred_enqueue_seldom(struct sk_buff *skb, struct Qdisc *sch,
					 struct sk_buff **to_free)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	u32 hint_pkts = q->shred.hint_pkts[shred_far_tos(skb)];
	unsigned long qavg = red_calc_qavg(&q->parms, &q->vars, q->child->qstats.backlog);
	enum shred_verdict verdict;

	if (red_is_idling(&q->vars))
		red_end_of_idle_period(&q->vars);
	verdict = shred_verdict(q, qavg, hint_pkts);
	if (verdict != SHRED_PASS)
		return shred_enqueue_marked(skb, sch, to_free, hint_pkts, verdict);
	return shred_queue_any(skb, sch, to_free, hint_pkts);
}

static int shred_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			 struct sk_buff **to_free)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	enum shred_verdict verdict;
	unsigned long qavg;
	u32 hint_pkts = 0;
	int tos;

	if (unlikely(red_is_idling(&q->vars)))
		return shred_enqueue_seldom(skb, sch, to_free);
	if (q->shred.hint != SHRED_HINT_OFF) {
		tos = shred_near_tos(skb);
		if (unlikely(tos < 0))
			return shred_enqueue_seldom(skb, sch, to_free);
		hint_pkts = q->shred.hint_pkts[tos];
	}
	qavg = red_calc_qavg_no_idle_time(&q->parms, &q->vars, q->child->qstats.backlog);
	verdict = shred_verdict(q, qavg, hint_pkts);
	if (unlikely(verdict != SHRED_PASS))
		return shred_enqueue_marked(skb, sch, to_free, hint_pkts, verdict);
	return shred_queue(skb, sch, to_free, hint_pkts);
}

/* From any child, empty or not. */
static noinline struct sk_buff *shred_dequeue_any(struct Qdisc *sch)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_dequeue_peeked(q->child);

	if (!skb) {
		if (!red_is_idling(&q->vars))
			red_start_of_idle_period(&q->vars);
		return NULL;
	}
	qdisc_bstats_update(sch, skb);
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_qlen_dec(sch);
	return skb;
}

/* bfifo's own steps: its peek takes nothing out, so nothing waits in gso_skb. */
static struct sk_buff *shred_dequeue(struct Qdisc *sch)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	struct Qdisc *child = q->child;
	struct sk_buff *skb;
	u64 pkts;

	if (unlikely(!shred_child_is_bfifo(child) || !child->q.head))
		return shred_dequeue_any(sch);
	skb = __qdisc_dequeue_head(&child->q);
	qdisc_qstats_backlog_dec(child, skb);
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_qlen_dec(sch);
	pkts = u64_stats_read(&sch->bstats.packets);
	qdisc_bstats_update(sch, skb);
	_bstats_update(&child->bstats, qdisc_pkt_len(skb),
		       u64_stats_read(&sch->bstats.packets) - pkts);
	return skb;
}

static struct sk_buff *shred_peek(struct Qdisc *sch)
{
	struct shred_sched_data *q = qdisc_priv(sch);

	return q->child->ops->peek(q->child);
}

static void shred_reset(struct Qdisc *sch)
{
	struct shred_sched_data *q = qdisc_priv(sch);

	qdisc_reset(q->child);
	red_restart(&q->vars);
	q->cwnd_avg_q22 = 0;
	q->gentle_count = -1;
}

static void shred_adapt(struct timer_list *t)
{
	struct shred_sched_data *q = timer_container_of(q, t, adapt_timer);
	spinlock_t *root_lock;

	rcu_read_lock();
	root_lock = qdisc_lock(qdisc_root_sleeping(q->sch));
	spin_lock(root_lock);
	/* Switched off while this waited for the lock? */
	if (q->shred.flags & SHRED_F_ADAPTIVE) {
		red_adaptative_algo(&q->parms, &q->vars);
		mod_timer(&q->adapt_timer, jiffies + SHRED_ADAPT_PERIOD);
	}
	spin_unlock(root_lock);
	rcu_read_unlock();
}

/* ---- configuration ---- */

static const struct nla_policy shred_policy[TCA_SHRED_MAX_ATTR + 1] = {
	[TCA_SHRED_LIMIT]	= { .type = NLA_U32 },
	[TCA_SHRED_MIN]		= { .type = NLA_U32 },
	[TCA_SHRED_MAX]		= { .type = NLA_U32 },
	[TCA_SHRED_AVPKT]	= { .type = NLA_U32 },
	[TCA_SHRED_WLOG]	= { .type = NLA_U8 },
	[TCA_SHRED_PLOG]	= { .type = NLA_U8 },
	[TCA_SHRED_SCELL_LOG]	= { .type = NLA_U8 },
	[TCA_SHRED_STAB]	= NLA_POLICY_EXACT_LEN(RED_STAB_SIZE),
	[TCA_SHRED_MAX_P]	= { .type = NLA_U32 },
	[TCA_SHRED_FLAGS]	= NLA_POLICY_BITFIELD32(SHRED_F_ALL),
	[TCA_SHRED_HINT]	= { .type = NLA_U8 },
	[TCA_SHRED_WEIGHT]	= { .type = NLA_U32 },
};

/* A whole configuration, checked before any of it takes effect. */
struct shred_config {
	u32 limit_bytes;
	u32 min_bytes;
	u32 max_bytes;
	u32 avpkt_bytes;
	u32 max_p_q32;
	u32 flags;
	u32 weight_q32;
	u8 wlog;
	u8 plog;
	u8 scell_log;
	u8 hint;
	u8 stab[RED_STAB_SIZE];
	bool red_changed;	/* RED's part was given: its average starts anew */
};

static void shred_config_from(const struct shred_sched_data *q, struct shred_config *c)
{
	c->limit_bytes = q->shred.limit_bytes;
	c->min_bytes = q->parms.qth_min >> q->parms.Wlog;
	c->max_bytes = q->parms.qth_max >> q->parms.Wlog;
	c->avpkt_bytes = q->shred.avpkt_bytes;
	c->max_p_q32 = q->parms.max_P;
	c->flags = q->shred.flags;
	c->weight_q32 = q->shred.weight_q32;
	c->wlog = q->parms.Wlog;
	c->plog = q->parms.Plog;
	c->scell_log = q->parms.Scell_log;
	c->hint = q->shred.hint;
	memcpy(c->stab, q->parms.Stab, sizeof(c->stab));
	c->red_changed = false;
}

static void shred_config_read(struct nlattr **tb, struct shred_config *c)
{
	struct nla_bitfield32 flags;
	int i;

	for (i = TCA_SHRED_LIMIT; i <= TCA_SHRED_MAX_P; i++)
		if (tb[i])
			c->red_changed = true;

	if (tb[TCA_SHRED_LIMIT])
		c->limit_bytes = nla_get_u32(tb[TCA_SHRED_LIMIT]);
	if (tb[TCA_SHRED_MIN])
		c->min_bytes = nla_get_u32(tb[TCA_SHRED_MIN]);
	if (tb[TCA_SHRED_MAX])
		c->max_bytes = nla_get_u32(tb[TCA_SHRED_MAX]);
	if (tb[TCA_SHRED_AVPKT])
		c->avpkt_bytes = nla_get_u32(tb[TCA_SHRED_AVPKT]);
	if (tb[TCA_SHRED_WLOG])
		c->wlog = nla_get_u8(tb[TCA_SHRED_WLOG]);
	if (tb[TCA_SHRED_PLOG])
		c->plog = nla_get_u8(tb[TCA_SHRED_PLOG]);
	if (tb[TCA_SHRED_SCELL_LOG])
		c->scell_log = nla_get_u8(tb[TCA_SHRED_SCELL_LOG]);
	if (tb[TCA_SHRED_STAB])
		memcpy(c->stab, nla_data(tb[TCA_SHRED_STAB]), sizeof(c->stab));
	if (tb[TCA_SHRED_MAX_P])
		c->max_p_q32 = nla_get_u32(tb[TCA_SHRED_MAX_P]);
	if (tb[TCA_SHRED_FLAGS]) {
		flags = nla_get_bitfield32(tb[TCA_SHRED_FLAGS]);
		c->flags = (c->flags & ~flags.selector) | flags.value;
	}
	if (tb[TCA_SHRED_HINT])
		c->hint = nla_get_u8(tb[TCA_SHRED_HINT]);
	if (tb[TCA_SHRED_WEIGHT])
		c->weight_q32 = nla_get_u32(tb[TCA_SHRED_WEIGHT]);
}

static int shred_config_check(struct shred_config *c, struct netlink_ext_ack *extack)
{
	if (!c->avpkt_bytes) {
		NL_SET_ERR_MSG_MOD(extack, "avpkt 0: must be 1 byte or more");
		return -EINVAL;
	}
	if (!c->min_bytes || c->min_bytes >= c->max_bytes) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "min %u: must be 1 to %u, below max %u",
				       c->min_bytes, c->max_bytes ? c->max_bytes - 1 : 0,
				       c->max_bytes);
		return -EINVAL;
	}
	if (c->limit_bytes && c->limit_bytes < c->max_bytes) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "limit %u: must be at least max %u",
				       c->limit_bytes, c->max_bytes);
		return -EINVAL;
	}
	if (!red_check_params(c->min_bytes, c->max_bytes, c->wlog, c->scell_log,
			      c->stab)) {
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "max %u, weight 2^-%u: their product must be below 2^31; cell size 2^%u and damping table: below 2^32",
				       c->max_bytes, c->wlog, c->scell_log);
		return -EINVAL;
	}
	if (!c->max_p_q32) {
		NL_SET_ERR_MSG_MOD(extack, "probability 0: must be above 0, at most 1");
		return -EINVAL;
	}
	if (c->flags & SHRED_F_NODROP && !(c->flags & SHRED_F_ECN)) {
		NL_SET_ERR_MSG_MOD(extack, "nodrop: only with ecn");
		return -EINVAL;
	}
	if (c->hint >= __SHRED_HINT_MAX) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "hint %u: must be 0 (off), 1 (tos) or 2 (dscp)",
				       c->hint);
		return -EINVAL;
	}
	if (c->weight_q32 < SHRED_WEIGHT_MIN) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "weight %u / 2^32: must be %u (0.0001) to %u (1)",
				       c->weight_q32, SHRED_WEIGHT_MIN, SHRED_WEIGHT_MAX);
		return -EINVAL;
	}
	return 0;
}

/* Under the tree lock. */
static void shred_config_apply(struct shred_sched_data *q, const struct shred_config *c)
{
	u64 floor_bytes = (u64)SHRED_FLOOR_PKTS * c->avpkt_bytes;
	unsigned int tos;

	q->shred.limit_bytes = c->limit_bytes;
	q->shred.avpkt_bytes = c->avpkt_bytes;
	q->shred.floor = (u32)min_t(u64, floor_bytes, c->min_bytes) << c->wlog;
	q->shred.weight_q32 = c->weight_q32;
	q->shred.flags = c->flags;
	q->shred.hint = c->hint;
	for (tos = 0; tos < ARRAY_SIZE(q->shred.hint_pkts); tos++)
		q->shred.hint_pkts[tos] = shred_hint_read(c->hint, tos);

	if (!c->red_changed)
		return;
	red_set_parms(&q->parms, c->min_bytes, c->max_bytes, c->wlog, c->plog,
		      c->scell_log, (u8 *)c->stab, c->max_p_q32);
	red_set_vars(&q->vars);
	q->gentle_count = -1;
	if (!q->child->q.qlen)
		red_start_of_idle_period(&q->vars);
}

static int shred_install(struct Qdisc *sch, const struct shred_config *c, bool new_child,
			 struct netlink_ext_ack *extack)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	struct Qdisc *child = NULL, *old = NULL;

	if (new_child) {
		child = fifo_create_dflt(sch, &bfifo_qdisc_ops, c->limit_bytes, extack);
		if (IS_ERR(child))
			return PTR_ERR(child);
		qdisc_hash_add(child, true);
	}

	sch_tree_lock(sch);
	if (child) {
		qdisc_purge_queue(q->child);
		old = q->child;
		q->child = child;
	}
	shred_config_apply(q, c);
	timer_delete(&q->adapt_timer);
	if (c->flags & SHRED_F_ADAPTIVE)
		mod_timer(&q->adapt_timer, jiffies + SHRED_ADAPT_PERIOD);
	sch_tree_unlock(sch);

	if (old)
		qdisc_put(old);
	return 0;
}

static int shred_configure(struct Qdisc *sch, struct nlattr **tb, struct shred_config *c,
			   struct netlink_ext_ack *extack)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	u32 old_limit_bytes = q->shred.limit_bytes;
	int err;

	shred_config_read(tb, c);
	err = shred_config_check(c, extack);
	if (err)
		return err;
	return shred_install(sch, c,
			     c->limit_bytes && c->limit_bytes != old_limit_bytes,
			     extack);
}

static int shred_parse(struct nlattr *opt, struct nlattr **tb,
		       struct netlink_ext_ack *extack)
{
	/* tc does not flag TCA_OPTIONS as a nest, so check strictly what is inside */
	return nla_parse(tb, TCA_SHRED_MAX_ATTR, nla_data(opt), nla_len(opt),
			 shred_policy, extack);
}

static int shred_change(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_SHRED_MAX_ATTR + 1];
	struct shred_config *config;
	int err;

	err = shred_parse(opt, tb, extack);
	if (err)
		return err;
	config = kmalloc(sizeof(*config), GFP_KERNEL);
	if (!config)
		return -ENOMEM;
	shred_config_from(q, config);
	err = shred_configure(sch, tb, config, extack);
	kfree(config);
	return err;
}

static int shred_init(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	static const u8 required[] = {
		TCA_SHRED_LIMIT, TCA_SHRED_MIN, TCA_SHRED_MAX, TCA_SHRED_AVPKT,
		TCA_SHRED_WLOG, TCA_SHRED_SCELL_LOG, TCA_SHRED_STAB, TCA_SHRED_MAX_P,
	};
	struct shred_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_SHRED_MAX_ATTR + 1];
	struct shred_config *config;
	size_t i;
	int err;

	/* destroy runs even when init fails */
	q->child = &noop_qdisc;
	q->sch = sch;
	timer_setup(&q->adapt_timer, shred_adapt, 0);

	if (!opt) {
		NL_SET_ERR_MSG_MOD(extack, "limit, min, max and avpkt are required");
		return -EINVAL;
	}
	err = shred_parse(opt, tb, extack);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(required); i++) {
		if (!tb[required[i]]) {
			NL_SET_ERR_MSG_FMT_MOD(extack, "attribute %u is required to make the queue",
					       required[i]);
			return -EINVAL;
		}
	}
	if (!nla_get_u32(tb[TCA_SHRED_LIMIT])) {
		NL_SET_ERR_MSG_MOD(extack, "limit 0: must be at least max");
		return -EINVAL;
	}

	config = kzalloc(sizeof(*config), GFP_KERNEL);
	if (!config)
		return -ENOMEM;
	config->hint = SHRED_HINT_TOS;
	config->weight_q32 = SHRED_WEIGHT_DEFAULT;
	err = shred_configure(sch, tb, config, extack);
	kfree(config);
	return err;
}

static void shred_destroy(struct Qdisc *sch)
{
	struct shred_sched_data *q = qdisc_priv(sch);

	timer_delete_sync(&q->adapt_timer);
	qdisc_put(q->child);
}

/* ---- seeing inside ---- */

static int shred_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	struct nlattr *opts = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!opts)
		return -EMSGSIZE;
	if (nla_put_u32(skb, TCA_SHRED_LIMIT, q->shred.limit_bytes) ||
	    nla_put_u32(skb, TCA_SHRED_MIN, q->parms.qth_min >> q->parms.Wlog) ||
	    nla_put_u32(skb, TCA_SHRED_MAX, q->parms.qth_max >> q->parms.Wlog) ||
	    nla_put_u32(skb, TCA_SHRED_AVPKT, q->shred.avpkt_bytes) ||
	    nla_put_u8(skb, TCA_SHRED_WLOG, q->parms.Wlog) ||
	    nla_put_u8(skb, TCA_SHRED_PLOG, q->parms.Plog) ||
	    nla_put_u8(skb, TCA_SHRED_SCELL_LOG, q->parms.Scell_log) ||
	    nla_put_u32(skb, TCA_SHRED_MAX_P, READ_ONCE(q->parms.max_P)) ||
	    nla_put_bitfield32(skb, TCA_SHRED_FLAGS, q->shred.flags, SHRED_F_ALL) ||
	    nla_put_u8(skb, TCA_SHRED_HINT, q->shred.hint) ||
	    nla_put_u32(skb, TCA_SHRED_WEIGHT, q->shred.weight_q32)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

static int shred_put_split(struct sk_buff *skb, int attr_hinted, const u64 counter[2])
{
	return nla_put_u64_64bit(skb, attr_hinted, counter[1], TCA_SHRED_STATS_PAD) ||
	       nla_put_u64_64bit(skb, attr_hinted + 1, counter[0], TCA_SHRED_STATS_PAD);
}

static int shred_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	struct shred_stats st;
	struct nlattr *nest;
	u64 pkts[2] = {};
	u32 cwnd_avg_q22;
	u32 qavg_bytes;
	int i;

	/* one picture: the shares must add up */
	sch_tree_lock(sch);
	st = q->stats;
	cwnd_avg_q22 = q->cwnd_avg_q22;
	qavg_bytes = q->vars.qavg >> q->parms.Wlog;
	sch_tree_unlock(sch);

	pkts[0] = st.class_pkts[0];
	for (i = 1; i <= SHRED_CLASSES; i++)
		pkts[1] += st.class_pkts[i];

	nest = nla_nest_start_noflag(d->skb, TCA_STATS_APP);
	if (!nest)
		return -1;
	if (shred_put_split(d->skb, TCA_SHRED_STATS_EARLY_HINTED, st.early_drop) ||
	    shred_put_split(d->skb, TCA_SHRED_STATS_FORCED_HINTED, st.forced_drop) ||
	    shred_put_split(d->skb, TCA_SHRED_STATS_LIMIT_HINTED, st.limit_drop) ||
	    shred_put_split(d->skb, TCA_SHRED_STATS_EARLY_MARK_HINTED, st.early_mark) ||
	    shred_put_split(d->skb, TCA_SHRED_STATS_FORCED_MARK_HINTED, st.forced_mark) ||
	    shred_put_split(d->skb, TCA_SHRED_STATS_PKTS_HINTED, pkts) ||
	    nla_put_u32(d->skb, TCA_SHRED_STATS_CWND_AVG, cwnd_avg_q22) ||
	    nla_put_u32(d->skb, TCA_SHRED_STATS_QAVG, qavg_bytes) ||
	    nla_put(d->skb, TCA_SHRED_STATS_HINT_PKTS,
		    SHRED_CLASSES * sizeof(*st.class_pkts), st.class_pkts + 1) ||
	    nla_put(d->skb, TCA_SHRED_STATS_HINT_DROPS, sizeof(st.class_drops),
		    st.class_drops)) {
		nla_nest_cancel(d->skb, nest);
		return -1;
	}
	nla_nest_end(d->skb, nest);
	return 0;
}

/* ---- the one class: the child queue, as red's ---- */

static int shred_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			    struct tcmsg *tcm)
{
	struct shred_sched_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->child->handle;
	return 0;
}

static int shred_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
		       struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct shred_sched_data *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->child);
	return 0;
}

static struct Qdisc *shred_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct shred_sched_data *q = qdisc_priv(sch);

	return q->child;
}

static unsigned long shred_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void shred_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, 1, walker);
}

static const struct Qdisc_class_ops shred_class_ops = {
	.graft		= shred_graft,
	.leaf		= shred_leaf,
	.find		= shred_find,
	.walk		= shred_walk,
	.dump		= shred_dump_class,
};

static struct Qdisc_ops shred_qdisc_ops __read_mostly = {
	.id		= "shred",
	.priv_size	= sizeof(struct shred_sched_data),
	.cl_ops		= &shred_class_ops,
	.enqueue	= shred_enqueue,
	.dequeue	= shred_dequeue,
	.peek		= shred_peek,
	.init		= shred_init,
	.reset		= shred_reset,
	.destroy	= shred_destroy,
	.change		= shred_change,
	.dump		= shred_dump,
	.dump_stats	= shred_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init shred_module_init(void)
{
	return register_qdisc(&shred_qdisc_ops);
}

static void __exit shred_module_exit(void)
{
	unregister_qdisc(&shred_qdisc_ops);
}

module_init(shred_module_init);
module_exit(shred_module_exit);

MODULE_ALIAS_NET_SCH("shred");
MODULE_DESCRIPTION("SHRED: RED that drops packets of small-window flows less");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
