// SPDX-License-Identifier: GPL-2.0
/*
 * The queue's decision under any packets and any settings that tc accepts: the sections of config.c
 * and queue.c that check the settings and decide on a packet, compiled behind WORLD of test_fuzz.py
 * and in front of this. And the counts of the writer of hints (age.h).
 *
 * Whoever sends chooses the hint, the length and the time of each packet; an administrator chooses
 * the settings, also while packets are queued.
 */
#include "age.h"

#define PACKETS		500

static struct shred_age ages[SHRED_WAYS];

/* Settings that tc accepts, half of them near the defaults */
static void configure(struct shred_sched_data *q)
{
	struct shred_config c;

	do {
		c = shred_defaults;
		c.hint = (u8)draw(__SHRED_HINT_MAX);
		c.flags = (u16)draw(SHRED_F_ALL + 1) & SHRED_F_ALL;
		if (draw(2)) {
			c.min_us = 0;
			c.max_us = 0;
			c.limit_us = 0;
			c.limit_bytes = (u32)draw_log(S32_MAX);
			c.max_bytes = (u32)draw_log(c.limit_bytes);
			c.min_bytes = (u32)draw_log(c.max_bytes);
			c.avpkt_bytes = 1 + (u32)draw_log(1 << 20);
		}
		if (draw(2))
			c.rate_bytes_s = 1 + draw_log(1ULL << 40);
		if (draw(2))
			c.burst_pkts = (u32)draw_log(1 << 25);
		if (draw(2))
			c.max_p_q32 = draw_u32();
		if (draw(2))
			c.weight_q32 = draw_u32();
	} while (shred_config_check(&c, NULL));
	must(c.wlog >= 1 && c.wlog <= SHRED_WLOG_MAX, "wlog", c.wlog);
	/* as shred_config_apply() does */
	q->qavg = c.wlog >= q->config.wlog ? q->qavg << (c.wlog - q->config.wlog) :
					     q->qavg >> (q->config.wlog - c.wlog);
	shred_forget_count(q);
	if (c.hint != q->config.hint)
		q->hint_avg_q22 = 0;
	q->config = c;
	q->floor_bytes = c.min_bytes;
	if (c.hint == SHRED_HINT_TOS)
		q->floor_bytes = min_t(u64, c.min_bytes, (u64)SHRED_FLOOR_PKTS * c.avpkt_bytes);
}

/* A packet arrives. As the byte may lie in memory that its sender writes meanwhile, the decision
 * may read another one than the average did.
 */
static void arrive(struct Qdisc *sch, struct shred_sched_data *q)
{
	enum shred_hint_mode mode = q->config.hint;
	u8 tos = (u8)draw(256);
	u32 hint = shred_hint_read(mode, tos), len = (u32)draw_log(one_in(8) ? 1 << 19 : 1500);
	u32 qavg_bytes;

	q->qavg = sch->q.qlen ? shred_qavg_of(sch, q) : shred_qavg_after_idle(q);
	must(shred_hint_class(mode, tos) < SHRED_CLASSES, "a class", shred_hint_class(mode, tos));
	if (hint) {
		q->hint_avg_q22 = shred_hint_avg(q->hint_avg_q22, hint, q->config.weight_q32);
		must(q->hint_avg_q22 >= 1 << SHRED_AVG_SHIFT &&
		     q->hint_avg_q22 <= SHRED_HINT_MAX << SHRED_AVG_SHIFT, "the average hint",
		     q->hint_avg_q22);
		must(shred_threshold_of(q, mode, hint) <= q->config.max_bytes, "a threshold",
		     shred_threshold_of(q, mode, hint));
	}
	qavg_bytes = (u32)(q->qavg >> q->config.wlog);
	must(q->qavg >> q->config.wlog <= S32_MAX, "the average queue",
	     q->qavg >> q->config.wlog);
	if (shred_passes(q, mode, qavg_bytes, hint)) {
		step(0);
	} else {
		if (one_in(16))
			hint = shred_hint_read(mode, (u8)draw(256));
		step(1 + shred_decide(q, qavg_bytes, hint, len));
	}
	if (sch->qstats.backlog + len <= q->config.limit_bytes && one_in(2)) {
		sch->qstats.backlog += len;
		sch->q.qlen++;
	}
}

/* Twice a second, as shred_adapt() does */
static void adapt(struct shred_config *c)
{
	if (draw(2) && c->max_p_q32 <= SHRED_MAX_P_MOST)
		c->max_p_q32 += min((u32)SHRED_MAX_P_STEP, c->max_p_q32 / 4);
	else if (c->max_p_q32 >= SHRED_MAX_P_STEP)
		c->max_p_q32 = c->max_p_q32 / 10 * 9;
	must(c->max_p_q32, "max_p", 0);
}

/* The writer counts a packet, and writes its hint. */
static void count_age(void)
{
	u32 tag = shred_age_tag(draw(16), one_in(2)), payload_bytes = draw_u32(), i;
	u32 least_bytes = (u32)draw_log(SHRED_AGE_MAX), at_ms = draw_u32(), bytes, class;

	bytes = shred_age_count(ages, tag, payload_bytes, least_bytes, at_ms);
	must(bytes <= SHRED_AGE_MAX || bytes == U32_MAX, "an age", bytes);
	class = shred_age_class(bytes);
	must(class < SHRED_AGE_CLASSES, "the class of an age", class);
	for (i = SHRED_HINT_TOS; i < __SHRED_HINT_MAX; i++)
		must(shred_hint_read(i, shred_hint_write(i, (u8)draw(256), 1U << class)),
		     "no hint for class", class);
}

static void peer(void)
{
	static struct shred_sched_data q;
	struct Qdisc sch = { .q.qlen = 0 };
	int i;

	memset(&q, 0, sizeof(q));
	memset(ages, 0, sizeof(ages));
	now_us = draw_log(1ULL << 50);
	q.idle_since = (s64)now_us;
	q.config.wlog = 1;
	configure(&q);
	for (i = 0; i < PACKETS; i++) {
		now_us += draw_us(10000);
		arrive(&sch, &q);
		count_age();
		if (one_in(64)) {
			sch = (struct Qdisc){ .q.qlen = 0 };
			q.idle_since = (s64)now_us;
		}
		if (one_in(64))
			adapt(&q.config);
		if (one_in(256))
			configure(&q);
	}
}
