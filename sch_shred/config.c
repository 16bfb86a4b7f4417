// SPDX-License-Identifier: GPL-2.0
/*
 * sch_shred's settings and statistics in netlink messages.
 *
 * A change starts from the present settings and replaces those that the request
 * contains. Times are converted to bytes by the link's rate, and the weight of RED's
 * average follows from burst, min and avpkt. A request is applied as a whole or refused.
 */

#include <net/netlink.h>

#include "queue.h"

#define SHRED_BURST_MAX		(1U << 24)

/* min is larger than is usual for RED: the larger queue keeps the link busy, and packets of young
 * flows do not wait behind it (measured: Documentation/sch_shred.md).
 */
const struct shred_config shred_defaults = {
	.rate_bytes_s	= 1250000,
	.limit_us	= SHRED_LIMIT_US,
	.min_us		= 80000,
	.max_us		= 168000,
	.avpkt_bytes	= 1500,
	.max_p_q32	= U32_MAX / 10,
	.flags		= SHRED_F_GENTLE,
	.weight_q32	= SHRED_WEIGHT_DEFAULT,
	.hint		= SHRED_HINT_DSCP,
};

/* ---- from a request ---- */

#define shred_refuse(extack, fmt, args...)				\
({									\
	NL_SET_ERR_MSG_FMT_MOD(extack, fmt, ##args);			\
	-EINVAL;							\
})

static const struct nla_policy shred_policy[TCA_SHRED_MAX_ATTR + 1] = {
	[TCA_SHRED_RATE64]	= { .type = NLA_U64 },
	[TCA_SHRED_LIMIT]	= { .type = NLA_U32 },
	[TCA_SHRED_MIN]		= { .type = NLA_U32 },
	[TCA_SHRED_MAX]		= { .type = NLA_U32 },
	[TCA_SHRED_LIMIT_US]	= { .type = NLA_U32 },
	[TCA_SHRED_MIN_US]	= { .type = NLA_U32 },
	[TCA_SHRED_MAX_US]	= { .type = NLA_U32 },
	[TCA_SHRED_AVPKT]	= { .type = NLA_U32 },
	[TCA_SHRED_BURST]	= { .type = NLA_U32 },
	[TCA_SHRED_WLOG]	= { .type = NLA_REJECT },
	[TCA_SHRED_MAX_P]	= { .type = NLA_U32 },
	[TCA_SHRED_FLAGS]	= NLA_POLICY_BITFIELD32(SHRED_F_ALL),
	[TCA_SHRED_HINT]	= { .type = NLA_U8 },
	[TCA_SHRED_WEIGHT]	= { .type = NLA_U32 },
};

static void shred_get_u32(struct nlattr *attr, u32 *value)
{
	if (attr)
		*value = nla_get_u32(attr);
}

/* A size in bytes or as time; either replaces the other form, and the time wins over the bytes. */
static void shred_get_size(struct nlattr *bytes_attr, struct nlattr *us_attr, u32 *bytes, u32 *us)
{
	if (bytes_attr)
		*us = 0;
	shred_get_u32(bytes_attr, bytes);
	shred_get_u32(us_attr, us);
}

static void shred_config_read(struct nlattr **tb, struct shred_config *c)
{
	struct nla_bitfield32 flags;

	shred_get_size(tb[TCA_SHRED_LIMIT], tb[TCA_SHRED_LIMIT_US], &c->limit_bytes, &c->limit_us);
	shred_get_size(tb[TCA_SHRED_MIN], tb[TCA_SHRED_MIN_US], &c->min_bytes, &c->min_us);
	shred_get_size(tb[TCA_SHRED_MAX], tb[TCA_SHRED_MAX_US], &c->max_bytes, &c->max_us);
	shred_get_u32(tb[TCA_SHRED_AVPKT], &c->avpkt_bytes);
	shred_get_u32(tb[TCA_SHRED_BURST], &c->burst_pkts);
	shred_get_u32(tb[TCA_SHRED_MAX_P], &c->max_p_q32);
	shred_get_u32(tb[TCA_SHRED_WEIGHT], &c->weight_q32);
	if (tb[TCA_SHRED_RATE64])
		c->rate_bytes_s = nla_get_u64(tb[TCA_SHRED_RATE64]);
	if (tb[TCA_SHRED_FLAGS]) {
		flags = nla_get_bitfield32(tb[TCA_SHRED_FLAGS]);
		c->flags = (c->flags & ~flags.selector) | flags.value;
	}
	if (tb[TCA_SHRED_HINT])
		c->hint = nla_get_u8(tb[TCA_SHRED_HINT]);
}

static int shred_set_time(u32 *bytes, u32 us, u64 rate_bytes_s, const char *name,
			  struct netlink_ext_ack *extack)
{
	u64 exact = mul_u64_u64_div_u64(us, rate_bytes_s, USEC_PER_SEC);

	if (exact > S32_MAX)
		return shred_refuse(extack, "%s %u us at %llu bytes/s: must be below 2^31 bytes",
				    name, us, rate_bytes_s);
	if (us)
		*bytes = (u32)exact;
	return 0;
}

/* Calculate the dependent settings, and check that all settings are valid and consistent. */
static int shred_config_check(struct shred_config *c, struct netlink_ext_ack *extack)
{
	u32 burst_pkts;
	int err;

	if (!c->rate_bytes_s || c->rate_bytes_s > 1ULL << 40 || !c->avpkt_bytes ||
	    c->avpkt_bytes > 1U << 20)
		return shred_refuse(extack,
				    "bandwidth %llu bytes/s, avpkt %u: must be 1 to 2^40 and 1 to 2^20",
				    c->rate_bytes_s, c->avpkt_bytes);
	err = shred_set_time(&c->limit_bytes, c->limit_us, c->rate_bytes_s, "limit", extack) ?:
	      shred_set_time(&c->min_bytes, c->min_us, c->rate_bytes_s, "min", extack) ?:
	      shred_set_time(&c->max_bytes, c->max_us, c->rate_bytes_s, "max", extack);
	if (err)
		return err;
	if (!c->min_bytes || c->min_bytes >= c->max_bytes)
		return shred_refuse(extack, "min %u: must be 1 to %u, below max %u", c->min_bytes,
				    c->max_bytes ? c->max_bytes - 1 : 0, c->max_bytes);
	if (c->limit_bytes < c->max_bytes || c->limit_bytes > S32_MAX)
		return shred_refuse(extack, "limit %u: must be max %u to 2^31 - 1",
				    c->limit_bytes, c->max_bytes);
	burst_pkts = c->burst_pkts ?: max_t(u32, DIV_ROUND_UP(c->min_bytes, c->avpkt_bytes),
					    div_u64(2ULL * c->min_bytes + c->max_bytes,
						    3 * c->avpkt_bytes));
	if (burst_pkts > SHRED_BURST_MAX)
		return shred_refuse(extack, "burst %u: must be 1 to %u packets", burst_pkts,
				    SHRED_BURST_MAX);
	c->wlog = shred_wlog(c->min_bytes, c->avpkt_bytes, burst_pkts);
	if (!c->wlog)
		return shred_refuse(extack,
				    "burst %u, min %u: must be %u packets and %u bytes or more",
				    burst_pkts, c->min_bytes,
				    DIV_ROUND_UP(c->min_bytes, c->avpkt_bytes), c->avpkt_bytes);
	if (!c->max_p_q32)
		return shred_refuse(extack, "probability 0: must be above 0, at most 1");
	if (c->hint >= __SHRED_HINT_MAX)
		return shred_refuse(extack, "hint %u: must be 0 (off), 1 (tos) or 2 (dscp)",
				    c->hint);
	if (c->flags & SHRED_F_NODROP && !(c->flags & SHRED_F_ECN))
		return shred_refuse(extack, "nodrop: only with ecn");
	if (c->flags & SHRED_F_ECN && c->hint == SHRED_HINT_TOS)
		return shred_refuse(extack,
				    "ecn: not with hint tos, whose windows read as marks");
	if (c->weight_q32 < SHRED_WEIGHT_MIN)
		return shred_refuse(extack, "weight %u / 2^32: must be %u (0.0001) to %u (1)",
				    c->weight_q32, SHRED_WEIGHT_MIN, SHRED_WEIGHT_MAX);
	/* an aggregate that is larger than the limit would never fit */
	c->split_bytes = c->flags & SHRED_F_SPLIT_GSO ? 0 : c->limit_bytes;
	return 0;
}

/* Apply a request, if there is one, to @c. Return: 0 if @c is valid. */
int shred_config_parse(struct nlattr *opt, struct shred_config *c, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_SHRED_MAX_ATTR + 1];
	int err;

	if (opt) {
		/* tc does not set NLA_F_NESTED on TCA_OPTIONS; parse the contents strictly */
		err = nla_parse(tb, TCA_SHRED_MAX_ATTR, nla_data(opt), nla_len(opt),
				shred_policy, extack);
		if (err)
			return err;
		shred_config_read(tb, c);
	}
	return shred_config_check(c, extack);
}

/* ---- dumps ---- */

void shred_config_get(struct Qdisc *sch, struct shred_config *c)
{
	struct shred_sched_data *q = qdisc_priv(sch);

	sch_tree_lock(sch);
	*c = q->config;
	sch_tree_unlock(sch);
}

static int shred_put_set(struct sk_buff *skb, int attr, u32 value)
{
	return value ? nla_put_u32(skb, attr, value) : 0;
}

static int shred_put_config(struct sk_buff *skb, const struct shred_config *c)
{
	return nla_put_u64_64bit(skb, TCA_SHRED_RATE64, c->rate_bytes_s, TCA_SHRED_PAD) ?:
	       nla_put_u32(skb, TCA_SHRED_LIMIT, c->limit_bytes) ?:
	       nla_put_u32(skb, TCA_SHRED_MIN, c->min_bytes) ?:
	       nla_put_u32(skb, TCA_SHRED_MAX, c->max_bytes) ?:
	       shred_put_set(skb, TCA_SHRED_LIMIT_US, c->limit_us) ?:
	       shred_put_set(skb, TCA_SHRED_MIN_US, c->min_us) ?:
	       shred_put_set(skb, TCA_SHRED_MAX_US, c->max_us) ?:
	       nla_put_u32(skb, TCA_SHRED_AVPKT, c->avpkt_bytes) ?:
	       shred_put_set(skb, TCA_SHRED_BURST, c->burst_pkts) ?:
	       nla_put_u8(skb, TCA_SHRED_WLOG, c->wlog) ?:
	       nla_put_u32(skb, TCA_SHRED_MAX_P, c->max_p_q32) ?:
	       nla_put_bitfield32(skb, TCA_SHRED_FLAGS, c->flags, SHRED_F_ALL) ?:
	       nla_put_u8(skb, TCA_SHRED_HINT, c->hint) ?:
	       nla_put_u32(skb, TCA_SHRED_WEIGHT, c->weight_q32);
}

int shred_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);
	struct shred_config c;

	shred_config_get(sch, &c);
	if (!nest || shred_put_config(skb, &c)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

/* Drops and marks by reason: counters and attributes are in the same order. */
static int shred_put_stats(struct sk_buff *skb, const struct shred_stats *st)
{
	int i, err = 0;

	for (i = 0; i < SHRED_VERDICTS; i++)
		err |= nla_put_u64_64bit(skb, TCA_SHRED_STATS_EARLY + i, st->drops[i],
					 TCA_SHRED_STATS_PAD);
	for (i = 0; i < SHRED_LIMIT; i++)
		err |= nla_put_u64_64bit(skb, TCA_SHRED_STATS_EARLY_MARK + i, st->marks[i],
					 TCA_SHRED_STATS_PAD);
	return err ?:
	       nla_put(skb, TCA_SHRED_STATS_CLASS_PKTS, sizeof(st->class_pkts), st->class_pkts) ?:
	       nla_put(skb, TCA_SHRED_STATS_CLASS_DROPS, sizeof(st->class_drops),
		       st->class_drops);
}

int shred_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct shred_sched_data *q = qdisc_priv(sch);
	u32 hint_avg_q22, qavg_bytes;
	struct shred_stats st;
	struct nlattr *nest;

	/* under the lock, so that the counters are consistent */
	sch_tree_lock(sch);
	st = q->stats;
	hint_avg_q22 = q->hint_avg_q22;
	qavg_bytes = q->qavg >> q->config.wlog;
	sch_tree_unlock(sch);

	nest = nla_nest_start_noflag(d->skb, TCA_STATS_APP);
	if (!nest || shred_put_stats(d->skb, &st) ||
	    nla_put_u32(d->skb, TCA_SHRED_STATS_HINT_AVG, hint_avg_q22) ||
	    nla_put_u32(d->skb, TCA_SHRED_STATS_QAVG, qavg_bytes)) {
		nla_nest_cancel(d->skb, nest);
		return -1;
	}
	nla_nest_end(d->skb, nest);
	return 0;
}
